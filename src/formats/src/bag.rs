//! The texts of a BagIt bag (RFC 8493): the declaration, the manifests and the metadata. The files of a bag are read
//! elsewhere.

mod texts;

use std::fmt::{Display, Write};

use super::fixity;
use super::item::Names;
pub use texts::{Declaration, tags};

/// The directory of the item's own files.
pub const PAYLOAD: &str = "data";
/// The file that makes a directory a bag.
pub const DECLARATION: &str = "bagit.txt";
/// Its text.
pub const DECLARED: &str = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
/// The metadata of the bag.
pub const INFO: &str = "bag-info.txt";
/// The metadata of bags before version 0.96.
pub const OLD_INFO: &str = "package-info.txt";
/// The tag with the bytes and files of the payload.
pub const OXUM: &str = "Payload-Oxum";
/// The list of the places of files that a bag does not have.
pub const FETCH: &str = "fetch.txt";
/// The tag with a name of the item.
pub const IDENTIFIER: &str = "External-Identifier";
/// The digests of the files by SHA-512, which RFC 8493, section 2.4, recommends.
pub const MANIFEST_512: &str = "manifest-sha512.txt";
/// The digests of all other files by SHA-512.
pub const TAG_MANIFEST_512: &str = "tagmanifest-sha512.txt";
/// The description of the item, where Archivematica has it.
pub const DUBLIN_CORE: &str = "metadata/dc.xml";

/// A manifest: a line for each path in the bag, with its digest in hexadecimal digits.
pub fn manifest<'a, D: Display>(files: impl IntoIterator<Item = (&'a [u8], D)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, digest) in files {
        text.extend_from_slice(format!("{digest}  ").as_bytes());
        text.extend_from_slice(&fixity::encode(path));
        text.push(b'\n');
    }
    text
}

/// The contents of a bag.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The host of the Archive.
    pub host: &'a str,
    /// The names of the item.
    pub names: &'a Names,
    /// The number of its files.
    pub files: usize,
    /// Their size together, in bytes.
    pub bytes: u64,
}

/// The metadata of a bag that is made on a day (`2009-02-16`).
pub fn info(payload: &Payload<'_>, day: &str) -> String {
    let Payload {
        host,
        names,
        files,
        bytes,
    } = payload;
    let mut info = format!(
        "Source-Organization: {host}\nBagging-Date: {day}\nBag-Software-Agent: ibifs {}\n\
         Payload-Oxum: {bytes}.{files}\n",
        env!("CARGO_PKG_VERSION"),
    );
    let rep = names.rep().map(ToString::to_string);
    let ibip = names.ibip().map(ToString::to_string);
    for name in [rep, ibip].into_iter().flatten() {
        // Writing to a String does not fail.
        let _ = writeln!(info, "{IDENTIFIER}: {name}");
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_a_manifest() {
        let lines = [(&b"data/a b"[..], "12"), (b"data/100%\n", "ab")];
        assert_eq!(manifest(lines), b"12  data/a b\nab  data/100%25%0A\n");
    }

    #[test]
    fn the_metadata_name_the_item() {
        let rep = ibi::Rep::parse("example.org/a/2020/01.01.00.00").expect("a rep");
        let names = Names::new(Some(rep), None).expect("a name");
        let payload = Payload {
            host: "archive.example.org",
            names: &names,
            files: 2,
            bytes: 30,
        };
        let info = info(&payload, "2009-02-16");
        assert!(
            info.starts_with(
                "Source-Organization: archive.example.org\nBagging-Date: 2009-02-16\n"
            )
        );
        assert!(info.ends_with(
            "Payload-Oxum: 30.2\nExternal-Identifier: example.org/a/2020/01.01.00.00\n"
        ));
    }
}
