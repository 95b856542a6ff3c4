//! OCFL storage roots, version 1.1: how a root is marked, and where an object lies in it.
//!
//! The layout is extension 0003: three directories, of three digits each, from the SHA-256 digest of the
//! identifier, and then the percent-encoded identifier.

use std::os::fd::OwnedFd;

use crate::formats::hex::Hex;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use sha2::Digest as _;

use super::PackageError;
use super::files::read_small;
use super::work::write_file;
use crate::archive::tree::Action;
use crate::archive::tree::{each_entry_of, open_far};
use ibi::message;

/// The directory in which objects are assembled: a root may hold the extensions of any program.
pub(super) const STAGING: &str = "extensions/ibifs-export";
/// The file that makes a directory a storage root.
pub(super) const ROOT: &str = "0=ocfl_1.1";
const LAYOUT: &str = "0003-hash-and-id-n-tuple-storage-layout";
const LAYOUT_FILE: &str = "ocfl_layout.json";
/// The longest encoded identifier that is not shortened.
const LONGEST: usize = 100;

/// Makes a storage root of an empty directory. Rejects a root with another layout, and a directory with other
/// content.
pub(super) fn prepare_root(root: &OwnedFd) -> Result<(), PackageError> {
    let config = format!("extensions/{LAYOUT}/config.json");
    let settings = json!({
        "extensionName": LAYOUT,
        "digestAlgorithm": "sha256",
        "tupleSize": 3,
        "numberOfTuples": 3,
    });
    let layout = json!({
        "extension": LAYOUT,
        "description": "Directories by the digest of the identifier, objects by the identifier",
    });
    if read_small(root, ROOT.as_bytes())?.is_some() {
        let extension = read_json(root, LAYOUT_FILE)?;
        let extension = extension.as_ref().and_then(|value| value.get("extension"));
        let is_ours = extension.and_then(Value::as_str) == Some(LAYOUT);
        // Members that the file omits have the same default.
        let given = read_json(root, &config)?.unwrap_or_else(|| json!({}));
        let is_same = |name: &str| given.get(name).is_none_or(|value| *value == settings[name]);
        let names = ["digestAlgorithm", "tupleSize", "numberOfTuples"];
        return if is_ours && names.into_iter().all(is_same) {
            Ok(())
        } else {
            Err(PackageError::Unfit {
                what: message!(
                    "it is a storage root with another layout than {layout}; name another directory",
                    layout = LAYOUT
                ),
            })
        };
    }
    let mut is_empty = true;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let listed = open_far(root, b".", flags).and_then(|directory| {
        each_entry_of(&directory, |name, _| {
            is_empty &= name == b"extensions" || name == LAYOUT_FILE.as_bytes();
        })
    });
    listed.map_err(PackageError::io(Action::List, "."))?;
    if !is_empty {
        return Err(PackageError::Unfit {
            what: message!(
                "it is not empty and not an OCFL 1.1 storage root; name another directory"
            ),
        });
    }
    // The declaration comes last, so that an interrupted run is repeated.
    for (path, text) in [
        (config.as_str(), format!("{settings:#}\n")),
        (LAYOUT_FILE, format!("{layout:#}\n")),
        (ROOT, "ocfl_1.1\n".to_owned()),
    ] {
        match read_small(root, path.as_bytes())? {
            Some(_) => {}
            None => write_file(root, path, text.as_bytes())?,
        }
    }
    Ok(())
}

fn read_json(root: &OwnedFd, path: &str) -> Result<Option<Value>, PackageError> {
    let Some(bytes) = read_small(root, path.as_bytes())? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| PackageError::Unfit {
        what: message!(
            "'{path}' of the storage root is not JSON: {error}",
            path,
            error = error.to_string()
        ),
    })
}

/// The path in the root of the object with this identifier.
pub(super) fn path_of(id: &str) -> String {
    let digest = Hex(&sha2::Sha256::digest(id)).to_string();
    let mut encoded = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
    if encoded.len() > LONGEST {
        encoded = format!("{}-{digest}", &encoded[..LONGEST]);
    }
    let tuples = [0, 3, 6].map(|at| &digest[at..at + 3]);
    format!("{}/{encoded}", tuples.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples in the text of the extension.
    #[test]
    fn objects_lie_where_the_extension_says() {
        assert_eq!(path_of("object-01"), "3c0/ff4/240/object-01");
        assert_eq!(
            path_of("..hor/rib:le-$id"),
            "487/326/d8c/%2e%2ehor%2frib%3ale-%24id"
        );
        let long = format!("abcdefghij{}", "abcdefghij".repeat(25));
        assert!(path_of(&long).len() <= 12 + LONGEST + 1 + 64);
    }
}
