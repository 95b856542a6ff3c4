//! BagIt bags, RFC 8493.

use std::collections::BTreeMap;

use rustix::io::Errno;

use super::naming::{MTREE, PAYLOAD};
use super::reading::{StagedFiles, digests};
use super::work::{ExportDirectory, write_file};
use super::{ExportOutcome, PackageError};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::{Archive, Clock};
use crate::formats::fixity::{self, Digest, Manifest};

/// Where bags are assembled.
pub(super) const STAGING: &str = ".ibifs-export";
/// The file that makes a directory a bag.
pub(super) const DECLARATION: &str = "bagit.txt";
/// The digests of the tag files.
pub(super) const TAG_MANIFEST: &str = "tagmanifest-sha256.txt";
/// The metadata of the bag.
pub(super) const INFO: &str = "bag-info.txt";
/// The tag with the names of the item.
pub(super) const IDENTIFIER: &str = "External-Identifier";

/// Makes a bag of a staged item, with the path that its name gives.
pub(super) fn finish(
    archive: &Archive,
    item: &Item,
    staged: &StagedFiles,
    work: &ExportDirectory,
    clock: &dyn Clock,
) -> Result<ExportOutcome, PackageError> {
    let path = item.names.preferred();
    let is_payload = |path: &str| path.starts_with(&format!("{PAYLOAD}/"));
    let payload = staged.files.iter().filter(|(path, _)| is_payload(path));
    let manifest: Manifest = payload
        .map(|(path, digests)| (path.clone().into_bytes(), digests.sha256))
        .collect();
    let mut tags: BTreeMap<&str, Digest> = BTreeMap::new();
    tags.extend(staged.files.get(MTREE).map(|found| (MTREE, found.sha256)));
    let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    let info = info(archive, item, staged, manifest.len(), clock);
    let texts = [
        (DECLARATION, declaration.as_bytes()),
        (INFO, info.as_bytes()),
        (fixity::MANIFEST, &fixity::manifest_text(&manifest)),
    ];
    for (name, text) in texts {
        write_file(&work.directory, name, text)?;
        tags.insert(name, digests(text).sha256);
    }
    let tags: Manifest = tags
        .into_iter()
        .map(|(name, digest)| (name.as_bytes().to_vec(), digest))
        .collect();
    write_file(&work.directory, TAG_MANIFEST, &fixity::manifest_text(&tags))?;
    let bag = "bag";
    work.gather(bag)?;
    match work.appear(bag, &path) {
        Ok(()) => Ok(ExportOutcome::New(path)),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(PackageError::Exists { path }),
        Err(errno) => Err(PackageError::io(Action::Make, &path)(errno)),
    }
}

fn info(
    archive: &Archive,
    item: &Item,
    staged: &StagedFiles,
    count: usize,
    clock: &dyn Clock,
) -> String {
    let now = clock.now().to_rfc3339();
    let date = now.split('T').next().unwrap_or_default();
    let mut info = format!(
        "Source-Organization: {}\nBagging-Date: {date}\nBag-Software-Agent: ibifs {}\n\
         Payload-Oxum: {}.{count}\n",
        archive.facts().host,
        env!("CARGO_PKG_VERSION"),
        staged.bytes,
    );
    let names = &item.names;
    let names = [
        names.rep().map(ToString::to_string),
        names.ibip().map(ToString::to_string),
    ];
    for name in names.into_iter().flatten() {
        info.push_str(&format!("{IDENTIFIER}: {name}\n"));
    }
    info
}
