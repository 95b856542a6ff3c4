//! The files of lines, one for each month. Numbers go up from line to line and from file to file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use rustix::io::Errno;

use super::error::{LogFileError, errno_of, failed};
use super::files::{
    CHECKPOINT, LogFiles, PRIVATE, PRIVATE_DIRECTORY, WITNESSED, Writing, is_derived, not_opened,
    shown,
};
use super::line::{LONGEST_LINE, LogLine, number_of};
use crate::archive::tree::Action;
use crate::formats::tlog::merkle::Hash;
use crate::formats::tlog::tile::{Tile, WIDTH};
use crate::os::directory::Directory;

/// The directory of the files.
pub(super) const EVENTS: &str = "events";

/// The lines of the log from one on, as they are in the files.
pub(super) struct Lines<'a> {
    files: &'a LogFiles,
    names: std::vec::IntoIter<String>,
    open: Option<(String, BufReader<File>)>,
}

impl Lines<'_> {
    /// The lines from that of an entry on, if there is one.
    pub(super) fn from(files: &LogFiles, first: u64) -> Result<Lines<'_>, LogFileError> {
        let mut names = names(files)?;
        let mut open = None;
        while let Some(name) = names.pop() {
            let Some(file) = files.file(&path_of(&name))? else {
                continue;
            };
            let begin = line_from(&file, 0).map_err(unread(&name))?;
            let is_later = begin.is_none_or(|(_, number)| number.is_none_or(|it| it > first));
            if is_later && !names.is_empty() {
                continue;
            }
            let mut reader = BufReader::new(file);
            let at = offset_of(reader.get_ref(), first).map_err(unread(&name))?;
            reader.seek(SeekFrom::Start(at)).map_err(unread(&name))?;
            open = Some((name, reader));
            break;
        }
        let mut after = self::names(files)?;
        after.retain(|it| open.as_ref().is_some_and(|(name, _)| it > name));
        let names = after.into_iter();
        Ok(Lines { files, names, open })
    }

    /// Returns the next line with its newline, or a part of one that is too long.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, LogFileError> {
        while let Some((name, reader)) = &mut self.open {
            let line = next_line(reader).map_err(unread(name))?;
            if !line.is_empty() {
                return Ok(Some(line));
            }
            self.open = None;
            for name in self.names.by_ref() {
                if let Some(file) = self.files.file(&path_of(&name))? {
                    self.open = Some((name, BufReader::new(file)));
                    break;
                }
            }
        }
        Ok(None)
    }
}

/// Calls `each` with the lines of these entries, until it breaks.
pub(super) fn each_line(
    files: &LogFiles,
    numbers: Range<u64>,
    each: &mut dyn FnMut(u64, LogLine) -> ControlFlow<()>,
) -> Result<(), LogFileError> {
    let mut lines = Lines::from(files, numbers.start)?;
    for number in numbers {
        let line = lines.next()?;
        match line.as_deref().and_then(LogLine::parse) {
            Some((found, line)) if found == number => {
                if each(number, line).is_break() {
                    break;
                }
            }
            _ => return Err(LogFileError::Line { number }),
        }
    }
    Ok(())
}

/// Computes the entries of the last tile or bundle from the lines, where what is there of it could not be read because of
/// `error`. That error, if it is not one that a power cut leaves.
pub(super) fn derived(
    files: &LogFiles,
    tile: Tile,
    error: LogFileError,
) -> Result<Vec<Hash>, LogFileError> {
    if !is_derived(tile) || !error.is_of_files() {
        return Err(error);
    }
    let begin = tile.number * WIDTH as u64;
    let mut entries = Vec::new();
    let read = each_line(files, begin..begin + tile.width as u64, &mut |_, line| {
        entries.push(line.entry());
        ControlFlow::Continue(())
    });
    read.map(|()| entries).map_err(|_| error)
}

/// Cuts off the lines from that of an entry on. Nothing is changed if the one before it is missing.
pub(super) fn cut(files: &LogFiles, size: u64) -> Result<(), LogFileError> {
    let mut number = size.checked_sub(1);
    let mut cut = Vec::new();
    if let Some(directory) = files.directory(EVENTS)? {
        for name in names(files)?.into_iter().rev() {
            let path = path_of(&name);
            let file = to_change(&directory, &name).map_err(not_opened(&path))?;
            let end = offset_of(&file, size).map_err(unread(&name))?;
            let before = number_before(&file, end).map_err(unread(&name))?;
            number = number.filter(|it| Some(*it) != before);
            cut.push((path, file, end));
            if end > 0 {
                break;
            }
        }
    }
    if let Some(number) = number {
        return Err(LogFileError::Line { number });
    }
    for (path, file, end) in cut {
        let failed = failed(Action::Write, &shown(&path));
        shorten(&file, end).map_err(|error| failed(errno_of(&error)))?;
    }
    Ok(())
}

fn shorten(file: &File, end: u64) -> std::io::Result<()> {
    if file.metadata()?.len() > end {
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(())
}

/// Appends lines to the file of a month; they are on disk when it returns.
pub(super) fn append(
    files: &LogFiles,
    writing: &mut Writing<'_>,
    month: &str,
    (first, lines): (u64, &[LogLine]),
) -> Result<(), LogFileError> {
    let name = format!("{month}.txt");
    if !is_name(&name) {
        return Err(failed(Action::Write, &shown(&path_of(&name)))(Errno::INVAL));
    }
    let directory = writing.directory(EVENTS, PRIVATE_DIRECTORY)?;
    // The clock may have been set back, and numbers go up from file to file.
    let last = names(files)?.pop().filter(|last| *last > name);
    let name = last.unwrap_or(name);
    let path = path_of(&name);
    let file = match to_change(&directory, &name) {
        Err(Errno::NOENT) => directory.create(&name, PRIVATE),
        opened => opened,
    };
    let mut file = BufWriter::new(file.map_err(not_opened(&path))?);
    let unwritten = failed(Action::Write, &shown(&path));
    let unwritten = |error: std::io::Error| unwritten(errno_of(&error));
    file.seek(SeekFrom::End(0)).map_err(unwritten)?;
    for (number, line) in (first..).zip(lines) {
        let line = line.numbered(number);
        let line = line.ok_or(LogFileError::Unwritable { number })?;
        file.write_all(line.as_bytes()).map_err(unwritten)?;
    }
    let file = file.into_inner().map_err(|error| unwritten(error.into()))?;
    writing.written(EVENTS, path, file.into());
    Ok(())
}

/// Whether there is no log yet: no checkpoint, and nothing that one has counted.
pub(super) fn is_none_yet(files: &LogFiles) -> Result<bool, LogFileError> {
    if files.text(CHECKPOINT)?.is_some() {
        return Ok(false);
    }
    let is_counted = !names(files)?.is_empty() || files.directory("tile")?.is_some();
    if is_counted || files.text(WITNESSED)?.is_some() {
        let path = shown(CHECKPOINT);
        return Err(LogFileError::Missing { path });
    }
    Ok(true)
}

/// The names of the files, in their order.
fn names(files: &LogFiles) -> Result<Vec<String>, LogFileError> {
    let Some(directory) = files.directory(EVENTS)? else {
        return Ok(Vec::new());
    };
    let entries = directory.entries();
    let entries = entries.map_err(failed(Action::List, &shown(EVENTS)))?;
    let names = entries.into_iter().map(|(name, _)| name);
    let mut names: Vec<_> = names
        .filter_map(|name| String::from_utf8(name).ok().filter(|name| is_name(name)))
        .collect();
    names.sort();
    Ok(names)
}

/// Whether a name is `YYYY-MM.txt`.
fn is_name(name: &str) -> bool {
    let like = "0000-00.txt";
    let is_like = |(byte, like): (u8, u8)| match like {
        b'0' => byte.is_ascii_digit(),
        like => byte == like,
    };
    name.len() == like.len() && name.bytes().zip(like.bytes()).all(is_like)
}

fn path_of(name: &str) -> String {
    format!("{EVENTS}/{name}")
}

/// The error of reading a file.
fn unread(name: &str) -> impl Fn(std::io::Error) -> LogFileError + use<> {
    let failed = failed(Action::Read, &shown(&path_of(name)));
    move |error| failed(errno_of(&error))
}

/// Opens a file for a change, if it has no second name, which could belong to any user.
fn to_change(directory: &Directory, name: &str) -> Result<File, Errno> {
    let file = directory.file_to_change(name)?;
    match file.metadata() {
        Ok(found) if found.nlink() <= 1 => Ok(file),
        Ok(_) => Err(Errno::MLINK),
        Err(error) => Err(errno_of(&error)),
    }
}

/// Reads a line with its newline, or a part of one that is too long.
fn next_line(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut reader = reader.take(LONGEST_LINE as u64);
    reader.read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Finds the first line that begins at an offset or after it: where it is, and its number, if it is a line.
fn line_from(file: &File, at: u64) -> std::io::Result<Option<(Range<u64>, Option<u64>)>> {
    let mut begin = at.saturating_sub(1);
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(begin))?;
    if at > 0 {
        let before = next_line(&mut reader)?;
        if !before.ends_with(b"\n") {
            return Ok(None);
        }
        begin += before.len() as u64;
    }
    let line = next_line(&mut reader)?;
    let end = begin + line.len() as u64;
    Ok((begin < end).then(|| (begin..end, number_of(&line))))
}

/// Finds where the lines from an entry on begin: after all lines with smaller numbers. What a crash left is no line, and
/// comes after them.
fn offset_of(file: &File, number: u64) -> std::io::Result<u64> {
    let length = file.metadata()?.len();
    let (mut low, mut high, mut found) = (0, length, length);
    while low < high {
        let middle = low + (high - low) / 2;
        match line_from(file, middle)? {
            Some((at, Some(smaller))) if smaller < number && at.start < high => low = at.end,
            Some((at, _)) if at.start < high => (high, found) = (middle, at.start),
            _ => high = middle,
        }
    }
    Ok(found)
}

/// Returns the number of the line that ends at an offset.
fn number_before(file: &File, end: u64) -> std::io::Result<Option<u64>> {
    let begin = end.saturating_sub(LONGEST_LINE as u64);
    let mut bytes = vec![0; (end - begin) as usize];
    file.read_exact_at(&mut bytes, begin)?;
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next_back();
    Ok(line.and_then(number_of))
}
