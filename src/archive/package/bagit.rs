//! BagIt bags, RFC 8493.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use rustix::io::Errno;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::files::{files_below, open_file, read_through};
use super::naming::{MTREE, PAYLOAD};
use super::reading::{Digests, StagedFiles, digests};
use super::work::{ExportDirectory, make_file, write_file};
use super::{ExportOutcome, PackageError};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::{Archive, Clock};
use crate::formats::bag;
use crate::formats::description::DescriptionFormat;
use crate::formats::fixity::{self, Manifest};
use crate::formats::premis::{self, PremisFile};

/// Where bags are assembled.
pub(super) const STAGING: &str = ".ibifs-export";
/// The digests of the tag files by SHA-256.
const TAG_MANIFEST: &str = "tagmanifest-sha256.txt";

/// How a bag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serialization {
    /// As a directory.
    None,
    /// As a zip file with one directory, RFC 8493, section 5.
    Zip,
}

/// Writes the files of a directory into a zip file, in a directory of this name.
fn zip(work: &ExportDirectory, bag: &str, top: &str, made: &str) -> Result<(), PackageError> {
    let failed = |error: std::io::Error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        PackageError::io(Action::Write, made)(errno)
    };
    let file = make_file(&work.directory, made).map_err(PackageError::io(Action::Make, made))?;
    let mut zip = ZipWriter::new(BufWriter::new(file));
    let options = SimpleFileOptions::default()
        .large_file(true)
        .unix_permissions(0o644);
    for path in files_below(&work.directory, bag)? {
        let below = path.get(bag.len()..).unwrap_or_default();
        let name = format!("{top}{}", String::from_utf8_lossy(below));
        zip.start_file(name, options)
            .map_err(|error| failed(error.into()))?;
        let mut content =
            open_file(&work.directory, &path).map_err(PackageError::io(Action::Open, &path))?;
        read_through(&mut content, &path, |bytes| {
            zip.write_all(bytes).map_err(failed)
        })?;
    }
    let written = zip.finish().map_err(|error| failed(error.into()))?;
    written
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    Ok(())
}

/// Makes a bag of a staged item, with the path that its name gives.
pub(super) fn finish(
    archive: &Archive,
    item: &Item,
    staged: &StagedFiles,
    work: &ExportDirectory,
    clock: &dyn Clock,
    serialization: Serialization,
) -> Result<ExportOutcome, PackageError> {
    let path = item.names.preferred();
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
    let described = archive.document(item, None, DescriptionFormat::OaiDc, &|read| read())?;
    let texts = [
        (bag::DECLARATION, bag::DECLARED.as_bytes()),
        (bag::INFO, info.as_bytes()),
        (bag::DUBLIN_CORE, described.as_bytes()),
        (fixity::MANIFEST, &fixity::manifest_text(&manifest)),
        (bag::MANIFEST_512, &manifest_512(&payload)),
    ];
    let preserved = preserved(item, &payload, day);
    let preserved = preserved
        .as_deref()
        .map(|text| (premis::PREMIS, text.as_bytes()));
    for (name, text) in texts.into_iter().chain(preserved) {
        write_file(&work.directory, name, text)?;
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
    write_file(&work.directory, TAG_MANIFEST, &fixity::manifest_text(&tags))?;
    let by_512 = manifest_512(&of_tags);
    write_file(&work.directory, bag::TAG_MANIFEST_512, &by_512)?;
    let gathered = "bag";
    work.gather(gathered)?;
    let (made, path) = match serialization {
        Serialization::None => (gathered, path),
        Serialization::Zip => {
            let made = "bag.zip";
            zip(work, gathered, &path.replace('/', "_"), made)?;
            (made, path + ".zip")
        }
    };
    match work.appear(made, &path) {
        Ok(()) => Ok(ExportOutcome::New(path)),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(PackageError::Exists { path }),
        Err(errno) => Err(PackageError::io(Action::Make, &path)(errno)),
    }
}

/// The record of the payload for preservation systems, unless it would be very long.
fn preserved(item: &Item, payload: &BTreeMap<&str, &Digests>, day: &str) -> Option<String> {
    if payload.len() > premis::MOST_FILES {
        return None;
    }
    let files = payload.iter().map(|(path, digests)| PremisFile {
        path,
        length: digests.length,
        sha512: &digests.sha512,
    });
    Some(premis::document(&item.names, files, day))
}

/// The text of a manifest by SHA-512.
fn manifest_512(files: &BTreeMap<&str, &Digests>) -> Vec<u8> {
    let lines = files
        .iter()
        .map(|(path, digests)| (path.as_bytes(), &digests.sha512));
    bag::manifest(lines)
}
