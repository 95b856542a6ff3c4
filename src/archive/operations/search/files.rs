//! The files of an item that everyone may read, and their texts.
//!
//! A search by a word of a file says that the file has it. So only files are read that owner, group and others may read,
//! in directories that all of them may search, and where no access control list says otherwise.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use rustix::io::Errno;

use super::super::publish::walk::{NextEntries, Walk};
use super::super::publish::{inspect_published, publish};
use crate::archive::store::FileVersion;
use crate::archive::tree::{OpenItem, Published, TreeError};
use crate::formats::file_text::{HEAD, TextKind, text_of};
use crate::os::confinement;
use crate::os::running::NoResult;

/// The bytes of text that are indexed of a file, and of all files of an item.
pub const LONGEST_FILE_TEXT: usize = 1 << 20;
pub const LONGEST_ITEM_TEXT: usize = 8 << 20;
/// The number of files of an item that are examined.
const MOST_FILES: usize = 1_000;
/// The longest PDF file that is read, in bytes.
const LONGEST_PDF: u64 = 64 << 20;
/// The text of a PDF file is not longer than so many times the file, so that small files do not fill the index.
const MOST_EXPANDED: u64 = 8;
const ALWAYS_EXPANDED: u64 = 16 << 10;
/// The time that reading a PDF file may take.
const TIMEOUT: Duration = Duration::from_secs(12);
/// Changes when texts are read differently.
const METHOD: u32 = 1;

/// Whether everyone may read a file, or read and search a directory.
fn is_for_everyone(found: &Published) -> bool {
    let wanted = if found.is_file() { 0o444 } else { 0o555 };
    found.permissions() & wanted == wanted && !found.has_access_list()
}

fn version_of(found: &Published) -> String {
    format!("{METHOD}-{}", found.fingerprint())
}

/// The files of an item that everyone may read, in the order of their paths.
pub(super) fn readable_files(open: &OpenItem) -> Result<Vec<FileVersion>, TreeError> {
    let mut walk = Walk::new(open, b"", NextEntries::FilesAndDirectories);
    let mut files = Vec::new();
    // The directory that is not for everyone, of which everything below is passed over.
    let mut shut: Option<Vec<u8>> = None;
    let mut examined = 0;
    while let Some(path) = walk.next()? {
        examined += 1;
        if examined > MOST_FILES {
            break;
        }
        if shut.as_ref().is_some_and(|shut| path.starts_with(shut)) {
            continue;
        }
        let is_directory = path.ends_with(b"/");
        let found = open.inspect(path.strip_suffix(b"/").unwrap_or(&path)).ok();
        let found = found.filter(|found| {
            found.is_file() != is_directory && found.led_to().is_none() && is_for_everyone(found)
        });
        match found {
            None if is_directory => shut = Some(path),
            Some(found) if !is_directory && found.length() > 0 => {
                let version = version_of(&found);
                files.push(FileVersion { path, version });
            }
            _ => {}
        }
    }
    Ok(files)
}

/// A change of a file that was read, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileChange {
    /// Nothing.
    None,
    /// It has another content.
    Content,
    /// It is gone, or there are users who may not read it.
    Hidden,
}

/// Returns what has become of a file since it was read.
pub(super) fn change_of(open: &OpenItem, file: &FileVersion) -> FileChange {
    let mut end = 0;
    while let Some(slash) = file.path[end..].iter().position(|byte| *byte == b'/') {
        let above = open.inspect(&file.path[..end + slash]);
        if !above.is_ok_and(|above| above.led_to().is_none() && is_for_everyone(&above)) {
            return FileChange::Hidden;
        }
        end += slash + 1;
    }
    match inspect_published(open, &file.path) {
        Ok(found) if found.is_file() && found.led_to().is_none() && is_for_everyone(&found) => {
            if version_of(&found) == file.version {
                FileChange::None
            } else {
                FileChange::Content
            }
        }
        _ => FileChange::Hidden,
    }
}

/// The text of a file; empty if it has none. None if the file has changed meanwhile.
///
/// # Errors
/// It cannot be read now, for reasons that are not its own.
pub(super) fn read_text(open: &OpenItem, file: &FileVersion) -> Result<Option<String>, Errno> {
    let Ok(found) = publish(open, &file.path) else {
        return Ok(None);
    };
    if !found.is_file() || version_of(&found) != file.version {
        return Ok(None);
    }
    let text = content(&found)?;
    // The text may have been written after the file was made secret.
    Ok(found.is_unchanged()?.then_some(text))
}

fn content(found: &Published) -> Result<String, Errno> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut bytes = Vec::new();
    let mut head = (&found.file).take(HEAD as u64);
    head.read_to_end(&mut bytes).map_err(failed)?;
    match TextKind::of_head(&bytes) {
        None => Ok(String::new()),
        Some(TextKind::Pdf) if found.length() > LONGEST_PDF => Ok(String::new()),
        Some(TextKind::Pdf) => pdf(found),
        Some(kind) => {
            let rest = LONGEST_FILE_TEXT - bytes.len();
            let mut rest = (&found.file).take(rest as u64);
            rest.read_to_end(&mut bytes).map_err(failed)?;
            Ok(text_of(kind, &bytes, LONGEST_FILE_TEXT).unwrap_or_default())
        }
    }
}

/// The text of a PDF file, which a process without rights reads. Empty if that fails.
fn pdf(found: &Published) -> Result<String, Errno> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let mut input = found.file.try_clone().map_err(failed)?;
    input.seek(SeekFrom::Start(0)).map_err(failed)?;
    let longest = found.length().saturating_mul(MOST_EXPANDED);
    let longest = longest.max(ALWAYS_EXPANDED).min(LONGEST_FILE_TEXT as u64);
    let longest = longest.to_string();
    match confinement::run(&["text-helper", &longest], input, TIMEOUT) {
        Ok(bytes) => Ok(String::from_utf8(bytes).unwrap_or_default()),
        Err(NoResult::Failed(reason)) => {
            log::debug!("a PDF file is passed over: {reason}");
            Ok(String::new())
        }
        Err(NoResult::NotStarted(error)) => Err(failed(error)),
    }
}
