//! BagIt bags, RFC 8493.

use std::collections::BTreeMap;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::naming::{MTREE, PAYLOAD};
use super::reading::{Digests, StagedFiles, digests, stage};
use super::work::ExportDirectory;
use super::writing::PackageWriter;
use super::{ExportOutcome, PackageError, preserved};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::{Archive, Clock};
use crate::formats::bag;
use crate::formats::description::DescriptionFormat;
use crate::formats::fixity::{self, Manifest};
use crate::formats::premis;

/// The directory in which bags are assembled.
pub(super) const STAGING: &str = ".ibifs-export";
/// The digests of the tag files by SHA-256.
const TAG_MANIFEST: &str = "tagmanifest-sha256.txt";

/// The form in which a bag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serialization {
    /// As a directory.
    None,
    /// As a zip file with one directory, RFC 8493, section 5.
    Zip,
}

/// Makes a bag of an item, at the path that its name gives. `count` receives the bytes read, and 0 at the start of
/// each file.
pub(super) fn make(
    archive: &Archive,
    item: &Item,
    work: &ExportDirectory,
    clock: &dyn Clock,
    serialization: Serialization,
    count: &mut dyn FnMut(u64),
) -> Result<ExportOutcome, PackageError> {
    let name = item.names.preferred();
    let (made, path) = match serialization {
        Serialization::None => ("bag", name.clone()),
        Serialization::Zip => ("bag.zip", name.clone() + ".zip"),
    };
    // It would be found at the end only, when everything has been copied.
    if work.open(&path, OFlags::PATH).is_ok() {
        return Err(PackageError::Exists { path });
    }
    let mut writer = match serialization {
        Serialization::None => PackageWriter::directory(work)?,
        Serialization::Zip => PackageWriter::zip(work, made, name.replace('/', "_"))?,
    };
    let staged = stage(archive, item, &mut writer, None, count)?;
    write_tags(archive, item, &staged, &mut writer, clock)?;
    writer.end()?;
    if serialization == Serialization::None {
        work.gather(made)?;
    }
    match work.appear(made, &path) {
        Ok(()) => Ok(ExportOutcome::New(path)),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(PackageError::Exists { path }),
        Err(errno) => Err(PackageError::io(Action::Make, &path)(errno)),
    }
}

/// Writes what a bag has beside its payload.
fn write_tags(
    archive: &Archive,
    item: &Item,
    staged: &StagedFiles,
    writer: &mut PackageWriter<'_>,
    clock: &dyn Clock,
) -> Result<(), PackageError> {
    let is_payload = |path: &str| path.starts_with(&format!("{PAYLOAD}/"));
    let payload = staged.files.iter().filter(|(path, _)| is_payload(path));
    let payload: BTreeMap<&str, &Digests> = payload
        .map(|(path, digests)| (path.as_str(), digests))
        .collect();
    let manifest: Manifest = payload
        .iter()
        .map(|(path, digests)| (path.as_bytes().to_vec(), digests.sha256))
        .collect();
    let mut tags: BTreeMap<&str, Digests> = BTreeMap::new();
    tags.extend(staged.files.get(MTREE).map(|found| (MTREE, found.clone())));
    let now = clock.now().to_rfc3339();
    let contained = bag::Payload {
        host: &archive.facts().host,
        names: &item.names,
        files: manifest.len(),
        bytes: staged.bytes,
    };
    let day = now.split('T').next().unwrap_or_default();
    let info = bag::info(&contained, day);
    let described =
        archive
            .read_as(&|read| read())
            .document(item, None, DescriptionFormat::OaiDc)?;
    let texts = [
        (bag::DECLARATION, bag::DECLARED.as_bytes()),
        (bag::INFO, info.as_bytes()),
        (bag::DUBLIN_CORE, described.as_bytes()),
        (fixity::MANIFEST, &fixity::manifest_text(&manifest)),
        (bag::MANIFEST_512, &manifest_512(&payload)),
    ];
    let events = archive.premis_events(&item.names)?;
    let preserved = preserved::text(archive.tree(), item, staged, &events, Some(day));
    let preserved = preserved
        .as_deref()
        .map(|text| (premis::PREMIS, text.as_bytes()));
    for (name, text) in texts.into_iter().chain(preserved) {
        writer.whole(name, text)?;
        tags.insert(name, digests(text));
    }
    let of_tags: BTreeMap<&str, &Digests> = tags
        .iter()
        .map(|(name, digests)| (*name, digests))
        .collect();
    let tags: Manifest = tags
        .iter()
        .map(|(name, digests)| (name.as_bytes().to_vec(), digests.sha256))
        .collect();
    writer.whole(TAG_MANIFEST, &fixity::manifest_text(&tags))?;
    writer.whole(bag::TAG_MANIFEST_512, &manifest_512(&of_tags))
}

/// The text of a manifest by SHA-512.
fn manifest_512(files: &BTreeMap<&str, &Digests>) -> Vec<u8> {
    let lines = files
        .iter()
        .map(|(path, digests)| (path.as_bytes(), &digests.sha512));
    bag::manifest(lines)
}
