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
use crate::formats::description::DescriptionFormat;
use crate::formats::fixity::{self, Manifest};

/// Where bags are assembled.
pub(super) const STAGING: &str = ".ibifs-export";
/// The file that makes a directory a bag.
pub(super) const DECLARATION: &str = "bagit.txt";
/// The digests of the tag files, by SHA-256 and by SHA-512.
const TAG_MANIFESTS: [&str; 2] = ["tagmanifest-sha256.txt", "tagmanifest-sha512.txt"];
/// The digests of the files by SHA-512, which RFC 8493, section 2.4, recommends.
const MANIFEST_512: &str = "manifest-sha512.txt";
/// The description of the item, where Archivematica has it.
const DUBLIN_CORE: &str = "metadata/dc.xml";
/// The metadata of the bag.
pub(super) const INFO: &str = "bag-info.txt";
/// The tag with the names of the item.
pub(super) const IDENTIFIER: &str = "External-Identifier";

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
    let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    let info = info(archive, item, staged, manifest.len(), clock);
    let described = archive.document(item, None, DescriptionFormat::OaiDc, &|read| read())?;
    let texts = [
        (DECLARATION, declaration.as_bytes()),
        (INFO, info.as_bytes()),
        (DUBLIN_CORE, described.as_bytes()),
        (fixity::MANIFEST, &fixity::manifest_text(&manifest)),
        (MANIFEST_512, &manifest_512(&payload)),
    ];
    for (name, text) in texts {
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
    let [short, long] = TAG_MANIFESTS;
    write_file(&work.directory, short, &fixity::manifest_text(&tags))?;
    write_file(&work.directory, long, &manifest_512(&of_tags))?;
    let bag = "bag";
    work.gather(bag)?;
    let (made, path) = match serialization {
        Serialization::None => (bag, path),
        Serialization::Zip => {
            let made = "bag.zip";
            zip(work, bag, &path.replace('/', "_"), made)?;
            (made, path + ".zip")
        }
    };
    match work.appear(made, &path) {
        Ok(()) => Ok(ExportOutcome::New(path)),
        Err(Errno::EXIST | Errno::NOTEMPTY) => Err(PackageError::Exists { path }),
        Err(errno) => Err(PackageError::io(Action::Make, &path)(errno)),
    }
}

/// The text of a manifest by SHA-512.
fn manifest_512(files: &BTreeMap<&str, &Digests>) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, digests) in files {
        text.extend_from_slice(format!("{}  ", digests.sha512).as_bytes());
        text.extend_from_slice(&fixity::encode(path.as_bytes()));
        text.push(b'\n');
    }
    text
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
