//! Sources of a new item: a package without an identifier, a zip or tar file, or a directory. Also the packages in such
//! files that name their item.
//!
//! It is copied into a staging directory as the item will be: what has `doc` at its top as it is, anything else as
//! `doc`. The description of a package becomes the metadata text of the item.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::files::{DIRECTORY, below, open_file, read_through};
use super::identity::{KEPT, PackageIdentity, RECORD};
use super::inventory::INVENTORY;
use super::opened::{self, Kind, Package};
use super::rules::Fault;
use super::unpack::{ArchiveFormat, unpack};
use super::work::new_file;
use super::{PackageError, Problem, UnpackOptions, filling};
use crate::archive::backup::{BackupFinding, ItemCopier};
use crate::archive::tree::{Action, METADATA_TEXT, SIDECAR, Tree, each_entry_of, joined, open_far};
use crate::formats::metadata::{
    DublinCore, Element, MAX_BYTES, RecordFormat, read_metadata_text, sniff_text,
};
use crate::os::directory::{Directory, NOT_REGULAR, is_own};
use crate::os::opening::regular;
use crate::os::writing;
use ibi::message;

/// The name of the item's directory in the staging directory.
pub const ITEM: &str = "item";
/// The directory in the staging directory in which an archive file is unpacked.
const UNPACKED: &str = "unpacked";
/// The directory of an item's own files.
const DOC: &str = "doc";

/// The number of XML files of a package that are read as descriptions.
const MOST_DESCRIPTIONS: usize = 50;

/// Copies a source into the directory [`ITEM`] of a staging directory, which is empty. All digests of a package are
/// compared before. Returns the identity of a package, and what it should have otherwise.
///
/// # Errors
/// The source cannot be read, its digests do not match, it names an item, or it is not safe to unpack.
pub fn stage_unnamed(
    source: &Path,
    staging: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<Staged, PackageError> {
    let item = staging.make_directory(ITEM, 0o777).map_err(made(ITEM))?;
    let opened = match Directory::open(source) {
        Ok(root) => return stage_directory(&Root::of_readers(root, source), &item, count),
        Err(Errno::NOTDIR) => regular(source, OFlags::empty()),
        Err(errno) => Err(errno),
    };
    let mut file = opened.map_err(failed(source))?;
    let format = ArchiveFormat::of(&mut file).map_err(failed_io(source))?;
    let Some(format) = format else {
        let path = source.display();
        let what = message!(
            "'{path}' is neither a directory nor a zip or tar file; --mint makes items of these alone",
            path
        );
        return Err(PackageError::Unfit { what });
    };
    let root = unpacked(file, format, staging, count)?;
    stage_directory(&root, &item, count)
}

/// Unpacks the package that a zip or tar file holds into a staging directory, which is empty, and returns its directory.
/// Errors name the file `source`.
///
/// # Errors
/// The file cannot be read, is not safe to unpack, or holds no package.
pub fn unpack_package(
    mut file: File,
    source: &Path,
    staging: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<Directory, PackageError> {
    let format = ArchiveFormat::of(&mut file).map_err(failed_io(source))?;
    let root = match format {
        Some(format) => Some(unpacked(file, format, staging, count)?.directory),
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
    let mut file = regular(source, OFlags::empty()).map_err(failed(source))?;
    let format = ArchiveFormat::of(&mut file).map_err(failed_io(source))?;
    Ok(format.is_some())
}

/// A directory that becomes an item.
struct Root {
    directory: Directory,
    /// For messages.
    shown: String,
    /// Its place in the staging directory, if it may be moved from there: the directory above it, and its name.
    movable: Option<(Directory, Vec<u8>)>,
}

impl Root {
    /// One that stays as it is.
    fn of_readers(directory: Directory, path: &Path) -> Root {
        Root {
            directory,
            shown: path.display().to_string(),
            movable: None,
        }
    }
}

/// Unpacks a file. Packages are often in a directory of their own in it.
fn unpacked(
    file: File,
    format: ArchiveFormat,
    staging: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<Root, PackageError> {
    let unpacked = staging.make_directory(UNPACKED, 0o777);
    let unpacked = unpacked.map_err(made(UNPACKED))?;
    unpack(file, format, &unpacked, count)?;
    if let Some(name) = only_directory(&unpacked)? {
        let only = unpacked.directory(&name).map_err(made(UNPACKED))?;
        if is_package(&only)? {
            return Ok(Root {
                directory: only,
                shown: crate::formats::fixity::shown(&name),
                movable: Some((unpacked, name)),
            });
        }
    }
    Ok(Root {
        directory: unpacked,
        shown: UNPACKED.to_owned(),
        movable: Some((
            staging.again().map_err(made(UNPACKED))?,
            UNPACKED.as_bytes().to_vec(),
        )),
    })
}

/// Fills the empty directory `item`, which lies in the staging directory.
fn stage_directory(
    root: &Root,
    item: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<Staged, PackageError> {
    let mut staged = Staged::default();
    let record = if is_package(&root.directory)? {
        let again = root.directory.again().map_err(made(ITEM))?;
        let package = opened::open(again.into(), count)?;
        if let Some(names) = package.names() {
            let what = message!(
                "it is a package of item {names}; import it without --mint",
                names = names.preferred()
            );
            return Err(PackageError::broken(&root.shown, what));
        }
        let to = place_in(item, package.has(DOC))?;
        filling::fill(&package, to.descriptor(), UnpackOptions::default(), count)?;
        staged.warnings = package.warnings().to_vec();
        staged.identity = Some(package.identity());
        keep(&package, item, count)?;
        described(&root.directory, Some(&package.info))?
    } else {
        let is_item = root.directory.directory(DOC).is_ok();
        if root.directory.entry(SIDECAR).is_ok() {
            let what = message!(
                "it is the sidecar of an item; bring items with 'ibifs copy' or 'ibifs import' without --mint, or remove that file"
            );
            return Err(PackageError::broken(
                &format!("{}/{SIDECAR}", root.shown),
                what,
            ));
        }
        let record = described(&root.directory, None)?;
        match &root.movable {
            Some((above, name)) => take(above, name, item, is_item).map_err(made(ITEM))?,
            None => copy(root, &place_in(item, is_item)?, count)?,
        }
        record
    };
    if let Some(record) = record {
        match item.create(METADATA_TEXT, 0o666) {
            Ok(text) => writing::write_all(text, &record),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
        .map_err(made(METADATA_TEXT))?;
    }
    Ok(staged)
}

/// Staged files.
#[derive(Debug, Default)]
pub struct Staged {
    /// None if it is not a package.
    pub identity: Option<PackageIdentity>,
    /// The rules that the package should keep and does not.
    pub warnings: Vec<Fault>,
}

/// Keeps what is beside the content of a package: its metadata and manifests.
fn keep(
    package: &Package,
    item: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let names = (1..).map(|number| match number {
        1 => KEPT.to_owned(),
        number => format!("{KEPT}-{number}"),
    });
    // A package may have a directory of this name.
    let to = names
        .map(|name| item.make_directory(&name, 0o777))
        .find(|made| !matches!(made, Err(Errno::EXIST)));
    let to = to.unwrap_or(Err(Errno::EXIST)).map_err(made(KEPT))?;
    let mut paths = below(&package.root, "")?.files;
    paths.retain(|path| match package.kind {
        Kind::Bag => !path.starts_with(b"data/"),
        // The content of earlier versions is not that of the item.
        Kind::Object => path.starts_with(INVENTORY.as_bytes()),
    });
    for path in paths {
        let failed = |errno| PackageError::io(Action::Make, &path)(errno);
        let Ok(mut from) = open_file(&package.root, &path) else {
            return Err(PackageError::file(&path, Problem::NotRegular));
        };
        let mut file = new_file(to.descriptor(), &path, 0o666).map_err(failed)?;
        read_through(&mut from, &path, |bytes| {
            count(bytes.len() as u64);
            let written = file.write_all(bytes);
            written.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
        })?;
    }
    let record = package.identity().text();
    let made_record = to.create(RECORD, 0o666);
    match made_record.and_then(|file| writing::write_all(file, record.as_bytes())) {
        // A tag file has its name.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(made(RECORD)(errno)),
    }
}

/// The identity of the package that an item was made of. Only what the caller or root has written counts: others could say
/// that they have made an item of each package.
pub fn made_from(item: OwnedFd) -> Option<PackageIdentity> {
    let kept = Directory::from(item).directory(KEPT).ok()?;
    let file = kept.file(RECORD).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if !is_own(&stat) && stat.st_uid != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_BYTES as u64).read_to_string(&mut text).ok()?;
    Some(PackageIdentity::parse(&text))
}

/// The directory that gets the content: the item's own, or its `doc`.
fn place_in(item: &Directory, is_item: bool) -> Result<Directory, PackageError> {
    if is_item {
        item.again()
    } else {
        item.make_directory(DOC, 0o777)
    }
    .map_err(made(DOC))
}

/// Moves what was unpacked into the item.
fn take(above: &Directory, name: &[u8], item: &Directory, is_item: bool) -> Result<(), Errno> {
    if !is_item {
        return above.rename_new(name, item, DOC);
    }
    let root = above.directory(name)?;
    for (name, _) in root.entries()? {
        root.rename_new(&name, item, &name)?;
    }
    Ok(())
}

/// Copies a directory with all that `cp -a` copies.
fn copy(root: &Root, to: &Directory, count: &mut dyn FnMut(u64)) -> Result<(), PackageError> {
    let tree = |directory: &Directory, shown: &str| {
        let directory = directory.again().map_err(made(shown))?;
        Ok::<Tree, PackageError>(Tree::over(shown.into(), directory.into()))
    };
    let (source, destination) = (tree(&root.directory, &root.shown)?, tree(to, ITEM)?);
    let mut first = None;
    let mut report = |finding: &BackupFinding| {
        first.get_or_insert_with(|| (finding.path.clone(), finding.sentence()));
        Ok(())
    };
    let mut units = |bytes: u64| count(bytes);
    let staging = to.again().map_err(made(ITEM))?;
    let mut copier = ItemCopier::new(
        &source,
        &destination,
        std::os::fd::OwnedFd::from(staging),
        &mut report,
        &mut units,
    );
    let copied = copier.content().and_then(|_| copier.finish());
    drop(copier);
    copied.map_err(|error| PackageError::broken(&root.shown, error))?;
    match first {
        Some((path, sentence)) => {
            let path = crate::formats::fixity::shown(&path);
            Err(PackageError::broken(&path, sentence))
        }
        None => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(Errno) -> PackageError + '_ {
    move |errno| PackageError::io(Action::Open, path.as_os_str().as_encoded_bytes())(errno)
}

fn failed_io(path: &Path) -> impl FnOnce(std::io::Error) -> PackageError + '_ {
    move |error| failed(path)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The error of something that is made in the staging directory.
fn made(name: &str) -> impl FnOnce(Errno) -> PackageError + '_ {
    move |errno| PackageError::io(Action::Make, name)(errno)
}

/// Whether a directory is a bag or an OCFL object.
fn is_package(root: &Directory) -> Result<bool, PackageError> {
    let kind = opened::kind_of(root).map_err(PackageError::io(Action::List, "."))?;
    Ok(kind.is_some())
}

/// The name of the directory that is all there is in another one.
fn only_directory(directory: &Directory) -> Result<Option<Vec<u8>>, PackageError> {
    let mut entries = directory.entries().map_err(made(UNPACKED))?;
    Ok(match entries.pop() {
        Some((name, FileType::Directory)) if entries.is_empty() => Some(name),
        _ => None,
    })
}

/// The metadata text that describes a package, which has these tags, or a directory: from a record in XML, which is looked
/// for in the tag files of a bag, in what is beside the content of an object, or in the directory, and from the tags.
/// Without tags, a record that is not plain Dublin Core is the text as it is.
fn described(
    root: &Directory,
    info: Option<&[(String, String)]>,
) -> Result<Option<Vec<u8>>, PackageError> {
    let mut core = DublinCore::default();
    for path in descriptions(root, info.is_some())? {
        let Some(bytes) = small(root, &path)? else {
            continue;
        };
        let is_plain = match sniff_text(&bytes) {
            RecordFormat::OaiDc => true,
            RecordFormat::Datacite | RecordFormat::Mods | RecordFormat::Dspace => false,
            _ => continue,
        };
        let read = read_metadata_text(&bytes).ok();
        let read = read.filter(|record| is_plain || record.core.first(Element::Title).is_some());
        match read {
            None => {}
            Some(_) if !is_plain && info.is_none() => return Ok(Some(bytes)),
            Some(record) => {
                core.extend(&record.core);
                break;
            }
        }
    }
    for (name, value) in info.unwrap_or_default() {
        // The reserved names of RFC 8493, section 2.2.2, that describe the content.
        let element = match name.to_ascii_lowercase().as_str() {
            "source-organization" => Element::Publisher,
            "external-description" => Element::Description,
            "external-identifier" | "internal-sender-identifier" => Element::Identifier,
            "title" => Element::Title,
            _ => continue,
        };
        core.push(element, value.clone());
    }
    let lines = core.to_text();
    Ok((!lines.is_empty()).then(|| lines.into_bytes()))
}

/// The XML files that may be descriptions, the likeliest first.
fn descriptions(root: &Directory, is_package: bool) -> Result<Vec<Vec<u8>>, PackageError> {
    let mut found = Vec::new();
    for directory in ["metadata", ".", "data/metadata"] {
        let Ok(opened) = open_far(root.descriptor(), directory.as_bytes(), DIRECTORY) else {
            continue;
        };
        let mut names = Vec::new();
        each_entry_of(&opened, |name, _| names.push(name.to_vec()))
            .map_err(PackageError::io(Action::List, directory))?;
        for name in names {
            let text = String::from_utf8_lossy(&name).to_lowercase();
            let is_named = text.contains("dc") || text.contains("dublin");
            if text.ends_with(".xml") && (is_named || is_package) {
                found.push((!is_named, joined(directory.as_bytes(), &name)));
            }
        }
    }
    found.sort();
    found.truncate(MOST_DESCRIPTIONS);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// A file of a record's size; None if it is missing, larger or no regular file.
fn small(root: &Directory, path: &[u8]) -> Result<Option<Vec<u8>>, PackageError> {
    let failed = |errno| PackageError::io(Action::Read, path)(errno);
    let file = match open_file(root.descriptor(), path) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | NOT_REGULAR) => {
            return Ok(None);
        }
        Err(errno) => return Err(failed(errno)),
    };
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    Ok((bytes.len() <= MAX_BYTES).then_some(bytes))
}
