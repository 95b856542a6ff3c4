//! A program that identifies the formats of files, and what is recorded of them beside the digests.
//!
//! The program opens files by names in a directory of its own, each of which leads to a file that is open here: the owner of the
//! items can exchange no file for another one while the program looks for it.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::finding::ScrubError;
use super::records::{DIRECTORY, recorded};
use crate::archive::tree::{Tree, TreeError};
use crate::formats::fixity::Digest;
use crate::formats::pronom::{self, FORMATS, FormatProgram, FormatRecord};
use crate::os::directory::Directory;
use crate::os::private_directory::PrivateDirectory;
use crate::os::running::{NoResult, output};
use ibi::message;
use ibi::message::{Localize, Message};

/// The time that a program has for some files.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The longest extension that it is told.
const LONGEST_EXTENSION: usize = 16;

/// A program that identifies formats, as it is installed here.
#[derive(Clone, Debug)]
pub struct FormatTool {
    program: FormatProgram,
    path: PathBuf,
    signatures: Option<PathBuf>,
    /// The program and its signatures, with their versions.
    pub(super) version: String,
}

impl FormatTool {
    /// Finds a program, which is then asked for its version.
    ///
    /// # Errors
    /// It is not one that is known, or cannot be run.
    pub fn find(path: &Path, signatures: Option<&Path>) -> Result<FormatTool, Message> {
        let shown = path.display();
        let Some(program) = FormatProgram::named(path) else {
            return Err(message!(
                "'{shown}' is no program by which formats are identified: name 'fido' or 'sf', or the path of one of them",
                shown
            ));
        };
        // A path with a slash is not looked for in PATH, and the program runs in the root directory.
        let path = match path.components().count() {
            1 => Ok(path.to_owned()),
            _ => std::path::absolute(path),
        };
        let signatures = signatures.map(std::path::absolute).transpose();
        let failed = |error: std::io::Error| message!("'{shown}': {error}", shown, error);
        let mut tool = FormatTool {
            program,
            path: path.map_err(failed)?,
            signatures: signatures.map_err(failed)?,
            version: String::new(),
        };
        let mut command = tool.command();
        command.args(program.version_arguments());
        let printed = output(command, TIMEOUT).map_err(|error| {
            let error = why(error);
            message!("'{shown}' does not run: {error}", shown, error)
        })?;
        let version = program.version(&String::from_utf8_lossy(&printed));
        tool.version =
            version.ok_or_else(|| message!("'{shown}' does not print its version", shown))?;
        Ok(tool)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.stdin(Stdio::null());
        if let Some(file) = &self.signatures {
            command.args(self.program.signatures(file));
        }
        command
    }

    /// The PUIDs of some files, by their numbers.
    pub(super) fn identify(
        &self,
        files: &[Unidentified],
    ) -> Result<HashMap<usize, Vec<String>>, Message> {
        let failed = |errno: rustix::io::Errno| std::io::Error::from(errno).message();
        let above = std::env::temp_dir();
        let above = Directory::open(above.as_path()).map_err(failed)?;
        let names = PrivateDirectory::make(&above, "ibifs-formats-").map_err(failed)?;
        let directory = names.path().map_err(|error| error.message())?;
        let mut command = self.command();
        command.args(self.program.arguments());
        let mut numbers = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            let name = format!("{number}{}", extension(&file.path));
            let target = format!("/proc/{}/fd/{}", std::process::id(), file.file.as_raw_fd());
            rustix::fs::symlinkat(target, names.descriptor(), name.as_str()).map_err(failed)?;
            let path = directory.join(name);
            command.arg(&path);
            numbers.insert(path, number);
        }
        let printed = output(command, TIMEOUT).map_err(why)?;
        let answers = self.program.answers(&printed).into_iter();
        Ok(answers
            .filter_map(|(name, puids)| Some((*numbers.get(Path::new(&name))?, puids)))
            .collect())
    }
}

fn why(error: NoResult) -> Message {
    match error {
        NoResult::NotStarted(error) => error.message(),
        NoResult::Failed(status) => message!("{status}", status),
    }
}

/// The extension of a file, with its dot, if it is one that no program can misread.
fn extension(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let at = name
        .iter()
        .rposition(|byte| *byte == b'.')
        .unwrap_or(name.len());
    let extension = name.get(at + 1..).unwrap_or_default();
    let is_plain = extension.iter().all(u8::is_ascii_alphanumeric);
    match std::str::from_utf8(extension) {
        Ok(text) if is_plain && !text.is_empty() && text.len() <= LONGEST_EXTENSION => {
            format!(".{text}")
        }
        _ => String::new(),
    }
}

/// A file with its recorded digest whose format is not recorded.
#[derive(Debug)]
pub(super) struct Unidentified {
    pub(super) item: String,
    pub(super) path: Vec<u8>,
    pub(super) digest: Digest,
    pub(super) file: File,
}

/// The formats that are recorded of an item, by its place: those of the content that a scrub has recorded.
///
/// # Errors
/// The record cannot be read.
pub fn recorded_formats(tree: &Tree, item: &str) -> Result<FormatRecord, ScrubError> {
    let mut record = record_of(tree, item)?;
    if !record.is_empty() {
        let manifest = recorded(tree, item)?.manifest;
        record.retain(|path, formats| manifest.get(path) == Some(&formats.digest));
    }
    Ok(record)
}

/// The record of an item, also of content that it has not any more.
pub(super) fn record_of(tree: &Tree, item: &str) -> Result<FormatRecord, TreeError> {
    let bytes = tree.read_whole(&format!("{DIRECTORY}/{item}/{FORMATS}"))?;
    Ok(pronom::parse(&bytes.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_extensions_are_told() {
        for (path, expected) in [
            ("a/b.PDF", ".PDF"),
            ("a.b/c", ""),
            (".profile", ".profile"),
            ("a.", ""),
            ("a.p\ndf", ""),
            ("a.tar gz", ""),
            ("a.abcdefghijklmnopq", ""),
        ] {
            assert_eq!(extension(path.as_bytes()), expected, "{path}");
        }
    }
}
