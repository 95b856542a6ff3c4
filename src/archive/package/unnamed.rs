//! What becomes a new item: a package without an identifier, a zip or tar file, or a directory. Also the packages in such
//! files that name their item.
//!
//! It is copied into a staging directory as the item will be: what has `doc` at its top as it is, anything else as
//! `doc`. What describes a package becomes the metadata text of the item.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::files::DIRECTORY;
use super::opened::{self, tags};
use super::unpack::{ArchiveFormat, unpack};
use super::{PackageError, UnpackOptions, filling, object};
use crate::archive::backup::{BackupFinding, ItemCopier};
use crate::archive::tree::{Action, METADATA_TEXT, SIDECAR, Tree};
use crate::formats::bag::{DECLARATION, INFO};
use crate::formats::metadata::{DublinCore, Element, MAX_BYTES};
use ibi::message;

/// The name of the item's directory in the staging directory.
const ITEM: &str = "item";
/// Where an archive file is unpacked in the staging directory.
const UNPACKED: &str = "unpacked";
/// The directory of an item's own files.
const DOC: &str = "doc";

/// How many XML files of a package are read as descriptions.
const MOST_DESCRIPTIONS: usize = 50;

/// Copies a source into the directory [`ITEM`] of a staging directory, which is empty, and returns its path. All
/// digests of a package are compared before.
///
/// # Errors
/// The source cannot be read, its digests do not match, it names an item, or it is not safe to unpack.
pub fn stage_unnamed(
    source: &Path,
    staging: &Path,
    count: &mut dyn FnMut(u64),
) -> Result<PathBuf, PackageError> {
    let item = staging.join(ITEM);
    std::fs::create_dir(&item).map_err(failed(&item))?;
    let found = std::fs::metadata(source).map_err(failed(source))?;
    if found.is_dir() {
        let root = source.to_owned();
        return stage_directory(&root, &item, Ownership::Readers, count).map(|()| item);
    }
    let mut file = File::open(source).map_err(failed(source))?;
    let format = ArchiveFormat::of(&mut file).map_err(failed(source))?;
    let Some(format) = format else {
        let path = source.display();
        let what = message!(
            "'{path}' is neither a directory nor a zip or tar file; --mint makes items of these alone",
            path
        );
        return Err(PackageError::Unfit { what });
    };
    let root = unpacked(file, format, staging, count)?;
    stage_directory(&root, &item, Ownership::Ours, count).map(|()| item)
}

/// Unpacks the package that a zip or tar file holds into a staging directory, which is empty, and returns its path.
///
/// # Errors
/// The file cannot be read, is not safe to unpack, or holds no package.
pub fn unpack_package(
    source: &Path,
    staging: &Path,
    count: &mut dyn FnMut(u64),
) -> Result<PathBuf, PackageError> {
    let mut file = File::open(source).map_err(failed(source))?;
    let format = ArchiveFormat::of(&mut file).map_err(failed(source))?;
    let root = match format {
        Some(format) => Some(unpacked(file, format, staging, count)?),
        None => None,
    };
    let root = root.filter(|root| is_package(root).unwrap_or_default());
    root.ok_or_else(|| PackageError::Nothing {
        path: source.to_owned(),
    })
}

/// Whether a file is a zip or tar file.
///
/// # Errors
/// It cannot be read.
pub fn is_packed(source: &Path) -> Result<bool, PackageError> {
    let mut file = File::open(source).map_err(failed(source))?;
    let format = ArchiveFormat::of(&mut file).map_err(failed(source))?;
    Ok(format.is_some())
}

/// Unpacks a file. Packages are often in a directory of their own in it.
fn unpacked(
    file: File,
    format: ArchiveFormat,
    staging: &Path,
    count: &mut dyn FnMut(u64),
) -> Result<PathBuf, PackageError> {
    let unpacked = staging.join(UNPACKED);
    std::fs::create_dir(&unpacked).map_err(failed(&unpacked))?;
    unpack(file, format, &unpacked, count)?;
    Ok(match only_directory(&unpacked)? {
        Some(only) if is_package(&only)? => only,
        _ => unpacked,
    })
}

/// Whose a directory is that becomes an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// It stays as it is.
    Readers,
    /// It may be moved.
    Ours,
}

fn stage_directory(
    root: &Path,
    item: &Path,
    ownership: Ownership,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let record = if is_package(root)? {
        let package = opened::open(root, count)?;
        if let Some(names) = package.names() {
            let what = message!(
                "it is a package of item {names}; import it without --mint",
                names = names.preferred()
            );
            return Err(PackageError::broken(&root.display().to_string(), what));
        }
        let to = if package.has(DOC) {
            item.to_owned()
        } else {
            item.join(DOC)
        };
        let _ = std::fs::create_dir(&to);
        filling::fill(
            &package,
            &opened_directory(&to)?,
            UnpackOptions::default(),
            count,
        )?;
        described(root, Described::Package)?
    } else {
        let is_item = root.join(DOC).is_dir();
        if root.join(SIDECAR).symlink_metadata().is_ok() {
            let what = message!(
                "it is the sidecar of an item; bring items with 'ibifs copy' or 'ibifs import' without --mint, or remove that file"
            );
            let path = root.join(SIDECAR).display().to_string();
            return Err(PackageError::broken(&path, what));
        }
        let record = described(root, Described::Directory)?;
        let to = if is_item {
            item.to_owned()
        } else {
            item.join(DOC)
        };
        match ownership {
            Ownership::Ours => {
                let _ = std::fs::remove_dir(item);
                if !is_item {
                    std::fs::create_dir(item).map_err(failed(item))?;
                }
                std::fs::rename(root, &to).map_err(failed(&to))?;
            }
            Ownership::Readers => {
                let _ = std::fs::create_dir(&to);
                copy(root, &to, count)?;
            }
        }
        record
    };
    let text = item.join(METADATA_TEXT);
    if let Some(record) = record
        && text.symlink_metadata().is_err()
    {
        std::fs::write(&text, record).map_err(failed(&text))?;
    }
    Ok(())
}

/// Copies a directory with all that `cp -a` copies.
fn copy(from: &Path, to: &Path, count: &mut dyn FnMut(u64)) -> Result<(), PackageError> {
    let archived = |error: crate::archive::tree::TreeError| PackageError::Archive(error.into());
    let (source, destination) = (
        Tree::open_as_it_is(from).map_err(archived)?,
        Tree::open_as_it_is(to).map_err(archived)?,
    );
    let mut first = None;
    let mut report = |finding: &BackupFinding| {
        first.get_or_insert_with(|| (finding.path.clone(), finding.sentence()));
        Ok(())
    };
    let mut units = |bytes: u64| count(bytes);
    let staging = opened_directory(to)?;
    let mut copier = ItemCopier::new(&source, &destination, staging, &mut report, &mut units);
    let copied = copier.content().and_then(|_| copier.finish());
    drop(copier);
    copied.map_err(|error| PackageError::broken(&from.display().to_string(), error))?;
    match first {
        Some((path, sentence)) => {
            let path = crate::formats::fixity::shown(&path);
            Err(PackageError::broken(&path, sentence))
        }
        None => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> PackageError + '_ {
    move |error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        PackageError::io(Action::Open, path.as_os_str().as_encoded_bytes())(errno)
    }
}

fn opened_directory(path: &Path) -> Result<OwnedFd, PackageError> {
    let opened = rustix::fs::open(path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
    opened.map_err(PackageError::io(
        Action::Open,
        path.as_os_str().as_encoded_bytes(),
    ))
}

/// Whether a directory is a bag or an OCFL object.
fn is_package(path: &Path) -> Result<bool, PackageError> {
    let is_bag = path.join(DECLARATION).symlink_metadata().is_ok();
    Ok(is_bag || object::is_object(&opened_directory(path)?)?)
}

/// The directory that is all there is in another one.
fn only_directory(path: &Path) -> Result<Option<PathBuf>, PackageError> {
    let listed = std::fs::read_dir(path).map_err(failed(path))?;
    let mut entries = Vec::new();
    for entry in listed.take(2) {
        entries.push(entry.map_err(failed(path))?.path());
    }
    match entries.as_slice() {
        [only] if only.is_dir() => Ok(Some(only.clone())),
        _ => Ok(None),
    }
}

/// Where descriptions are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Described {
    /// In the tag files of a bag, and what is beside the content of an object.
    Package,
    /// In the directory itself.
    Directory,
}

/// The metadata text that describes a package, from Dublin Core in XML and from `bag-info.txt`.
fn described(root: &Path, place: Described) -> Result<Option<String>, PackageError> {
    let mut core = DublinCore::default();
    for path in descriptions(root, place)? {
        let read = small(&path)?.and_then(|bytes| DublinCore::from_oai_dc(&bytes).ok());
        if let Some(read) = read {
            core.extend(&read);
            break;
        }
    }
    let info = match place {
        Described::Package => small(&root.join(INFO))?.unwrap_or_default(),
        Described::Directory => Vec::new(),
    };
    for (name, value) in tags(&info) {
        // The reserved names of RFC 8493, section 2.2.2, that describe the content.
        let element = match name.as_str() {
            "source-organization" => Element::Publisher,
            "external-description" => Element::Description,
            "external-identifier" | "internal-sender-identifier" => Element::Identifier,
            "title" => Element::Title,
            _ => continue,
        };
        core.push(element, value);
    }
    let lines: String = core
        .iter()
        .map(|(element, value)| format!("{}: {value}\n", element.name()))
        .collect();
    Ok((!lines.is_empty()).then_some(lines))
}

/// The XML files that may be descriptions, the likeliest first.
fn descriptions(root: &Path, place: Described) -> Result<Vec<PathBuf>, PackageError> {
    let mut found = Vec::new();
    for directory in ["metadata", ".", "data/metadata"] {
        let is_of_bag = place == Described::Package;
        let directory = root.join(directory);
        let Ok(listed) = std::fs::read_dir(&directory) else {
            continue;
        };
        let mut paths = Vec::new();
        for entry in listed {
            paths.push(entry.map_err(failed(&directory))?.path());
        }
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.to_lowercase();
            let is_named = name.contains("dc") || name.contains("dublin");
            if name.ends_with(".xml") && (is_named || is_of_bag) {
                found.push((!is_named, path));
            }
        }
    }
    found.sort();
    found.truncate(MOST_DESCRIPTIONS);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// A file of a record's size; None if it is missing, larger or no regular file.
fn small(path: &Path) -> Result<Option<Vec<u8>>, PackageError> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    if !is_file {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let most = MAX_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(failed(path))?;
    Ok((bytes.len() <= MAX_BYTES).then_some(bytes))
}
