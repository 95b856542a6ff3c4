//! The mark in a directory that is being moved: a file with the names of its item.
//!
//! Others may write in the directory. So a mark counts only if it is a regular file with one name, this user's own, that
//! no other user may write, and if it names the very directory that it lies in.

use std::fs::File;
use std::io::{Read, Write};
use std::time::SystemTime;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::MARK;
use crate::formats::item::Names;
use crate::os::directory::{Directory, NOT_REGULAR, is_own};
use crate::os::opening;
use crate::os::writing;
use ibi::Ibi;

/// The line after which the directory is removed.
const COPIED: &str = "copied";

/// A mark is shorter than this, in bytes.
const LONGEST: u64 = 1 << 16;

/// The mark of this user.
#[derive(Debug)]
pub(super) struct Mark {
    /// The names of the item.
    pub(super) names: Names,
    /// Whether all is in the item.
    pub(super) is_copied: bool,
    file: File,
}

/// The thing in the place of the mark.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Mark(Mark),
    /// Something that does not count.
    Other,
}

/// The line that names a directory.
fn line_of(directory: &Directory) -> Result<String, Errno> {
    let stat = directory.stat()?;
    Ok(format!("directory {} {}", stat.st_dev, stat.st_ino))
}

impl Mark {
    /// Looks for the mark in a directory. One that this user began and did not complete is removed: nothing was moved yet.
    pub(super) fn find(directory: &Directory) -> Result<Found, Errno> {
        let file = match directory.file(MARK) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(NOT_REGULAR) => return Ok(Found::Other),
            Err(errno) => return Err(errno),
        };
        let stat = rustix::fs::fstat(&file)?;
        if !is_own(&stat) || stat.st_nlink != 1 || stat.st_mode & 0o022 != 0 {
            return Ok(Found::Other);
        }
        let mut bytes = Vec::new();
        let read = (&file).take(LONGEST).read_to_end(&mut bytes);
        read.map_err(|error| errno_of(&error))?;
        let text = String::from_utf8_lossy(&bytes);
        // The last line but that of the copy is written with the names.
        let Some(end) = text
            .find("directory ")
            .filter(|at| text[*at..].contains('\n'))
        else {
            directory.remove_file(MARK)?;
            return Ok(Found::Nothing);
        };
        let (names, rest) = text.split_at(end);
        let mut rest = rest.lines();
        let names = Names::collect(names.lines().map_while(|line| Ibi::parse(line).ok()));
        let is_of_directory = rest.next() == Some(line_of(directory)?.as_str());
        Ok(match names.filter(|_| is_of_directory) {
            Some(names) => Found::Mark(Mark {
                names,
                is_copied: rest.any(|line| line == COPIED),
                file,
            }),
            None => Found::Other,
        })
    }

    /// Writes the mark, durably, with the time of the directory.
    ///
    /// # Errors
    /// EEXIST if something is in its place.
    pub(super) fn write(
        directory: &Directory,
        names: &Names,
        time: SystemTime,
    ) -> Result<(), Errno> {
        let names = [
            names.rep().map(ToString::to_string),
            names.ibip().map(ToString::to_string),
        ];
        let lines = names.into_iter().flatten().chain([line_of(directory)?]);
        let text = lines.fold(String::new(), |text, line| text + &line + "\n");
        let file = directory.create(MARK, 0o600)?;
        writing::write_all(&file, text.as_bytes())?;
        writing::set_modified(&file, time).map_err(|error| errno_of(&error))?;
        rustix::fs::fsync(&file)?;
        directory.sync()
    }

    /// Writes into the mark, durably, that all is in the item: from now on the directory is removed.
    pub(super) fn add_copied(&self) -> Result<(), Errno> {
        let file = opening::again(&self.file, OFlags::WRONLY | OFlags::APPEND)?;
        let mut file = File::from(file);
        let written = file.write_all(format!("{COPIED}\n").as_bytes());
        written
            .and_then(|()| file.sync_all())
            .map_err(|error| errno_of(&error))
    }

    /// The time of the directory before the mark was made in it.
    pub(super) fn time(&self) -> std::io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }
}

pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
