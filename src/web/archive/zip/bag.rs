//! The parts that make a zip file a BagIt bag (RFC 8493): the files of the item are its payload, and the texts that
//! name and prove them follow when the digest of each is known.

use std::collections::BTreeMap;

use sha2::{Digest, Sha512};

use crate::archive::package::naming::payload_path;
use crate::archive::store::Item;
use crate::archive::{Archive, Clock, SystemClock};
use crate::formats::bag;
use crate::formats::description::DescriptionFormat;
use crate::formats::hex::Hex;
use crate::web::archive::act;

/// The digests of the files that were written so far.
#[derive(Debug, Default)]
pub(super) struct BagManifest {
    files: BTreeMap<Vec<u8>, [u8; 64]>,
    bytes: u64,
}

/// The directory of a bag in its zip file.
pub(super) fn directory(item: &Item) -> String {
    item.names.preferred().replace('/', "_")
}

/// The path of a file or directory of the item in the bag, as `ibifs export` has it. That of a directory ends with a
/// slash.
pub(super) fn path_in_bag(path: &[u8]) -> Vec<u8> {
    let (path, end) = match path.strip_suffix(b"/") {
        Some(path) => (path, "/"),
        None => (path, ""),
    };
    (payload_path(path) + end).into_bytes()
}

impl BagManifest {
    /// Adds a file by its path in the bag.
    pub(super) fn add(&mut self, path: Vec<u8>, digest: Sha512, length: u64) {
        self.bytes += length;
        self.files.insert(path, digest.finalize().into());
    }

    /// The texts of the bag, each with its path. The item's description is one of them if the public may read it.
    pub(super) fn texts(&self, archive: &Archive, item: &Item) -> Vec<(&'static str, Vec<u8>)> {
        let now = SystemClock.now().to_rfc3339();
        let payload = bag::Payload {
            host: &archive.facts().host,
            names: &item.names,
            files: self.files.len(),
            bytes: self.bytes,
        };
        let info = bag::info(&payload, now.split('T').next().unwrap_or_default());
        let files = self.files.iter();
        let manifest = bag::manifest(files.map(|(path, digest)| (path.as_slice(), Hex(digest))));
        let mut texts = vec![
            (bag::DECLARATION, bag::DECLARED.as_bytes().to_vec()),
            (bag::INFO, info.into_bytes()),
            (bag::MANIFEST_512, manifest),
        ];
        match archive
            .read_as(&act)
            .document(item, None, DescriptionFormat::OaiDc)
        {
            Ok(text) => texts.push((bag::DUBLIN_CORE, text.into_bytes())),
            Err(error) => log::debug!("the bag of {} has no Dublin Core: {error}", item.names),
        }
        texts.sort();
        let digests = texts
            .iter()
            .map(|(path, text)| (path.as_bytes(), Sha512::digest(text)));
        let digests: Vec<(&[u8], String)> = digests
            .map(|(path, digest)| (path, Hex(&digest).to_string()))
            .collect();
        let tags = bag::manifest(digests);
        texts.push((bag::TAG_MANIFEST_512, tags));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_bag_are_utf_8() {
        assert_eq!(path_in_bag("doc/São".as_bytes()), "data/doc/São".as_bytes());
        assert_eq!(path_in_bag(b"S\xe3o/"), b"data/S=E3o/");
    }
}
