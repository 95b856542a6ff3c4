//! The destination of the files of a package: the staging directory, or directly a zip file there, so that
//! a package needs no more room than it takes itself.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use zip::ZipWriter;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

use super::PackageError;
use super::naming::PAYLOAD;
use super::work::{ExportDirectory, make_directories, make_file, parent_of};
use crate::archive::tree::{Action, open_far};

/// The files of one package while they are written, one after the other.
pub(super) struct PackageWriter<'a> {
    work: &'a ExportDirectory,
    zip: Option<ZipFile>,
    /// The file that is being written to the staging directory.
    file: Option<File>,
}

struct ZipFile {
    /// The directory in it.
    top: String,
    writer: ZipWriter<ZipOutput>,
    /// The same open file.
    file: File,
    is_given_up: Rc<Cell<bool>>,
}

/// A zip file on the disk. The library completes a file that is given up, too, and prints if it cannot; nothing is
/// written then, and only its position in the file is counted.
struct ZipOutput {
    file: BufWriter<File>,
    is_given_up: Rc<Cell<bool>>,
    position: u64,
    end: u64,
}

impl ZipOutput {
    fn new(file: File, is_given_up: &Rc<Cell<bool>>) -> ZipOutput {
        ZipOutput {
            file: BufWriter::new(file),
            is_given_up: is_given_up.clone(),
            position: 0,
            end: 0,
        }
    }
}

impl<'a> PackageWriter<'a> {
    /// Writes to the staging directory.
    pub(super) fn directory(work: &'a ExportDirectory) -> Result<PackageWriter<'a>, PackageError> {
        // A bag without files has it, too.
        make_directories(&work.directory, PAYLOAD.as_bytes())
            .map_err(PackageError::io(Action::Make, PAYLOAD))?;
        Ok(PackageWriter {
            work,
            zip: None,
            file: None,
        })
    }

    /// Writes into a zip file of this name in the staging directory, below a directory of the name `top`.
    pub(super) fn zip(
        work: &'a ExportDirectory,
        made: &str,
        top: String,
    ) -> Result<PackageWriter<'a>, PackageError> {
        let failed = PackageError::io(Action::Make, made);
        let opened = make_file(&work.directory, made).and_then(|file| {
            let same = file.try_clone().map_err(|error| errno(&error))?;
            Ok((file, same))
        });
        let (file, same) = opened.map_err(failed)?;
        let is_given_up = Rc::new(Cell::new(false));
        let output = ZipOutput::new(file, &is_given_up);
        Ok(PackageWriter {
            work,
            zip: Some(ZipFile {
                top,
                writer: ZipWriter::new(output),
                file: same,
                is_given_up,
            }),
            file: None,
        })
    }

    /// Begins a file; the last one is complete.
    pub(super) fn begin(&mut self, path: &str) -> Result<(), PackageError> {
        let begun = match &mut self.zip {
            Some(zip) => {
                let options = SimpleFileOptions::default()
                    .large_file(true)
                    .unix_permissions(0o644);
                let name = format!("{}/{path}", zip.top);
                let begun = zip.writer.start_file(name, options);
                begun.map_err(|error| errno(&of_zip(error)))
            }
            None => make_file(&self.work.directory, path).map(|file| self.file = Some(file)),
        };
        begun.map_err(PackageError::io(Action::Write, path))
    }

    /// Goes on with the file that was begun.
    pub(super) fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), PackageError> {
        let written = match (&mut self.zip, &mut self.file) {
            (Some(zip), _) => zip.writer.write_all(bytes),
            (None, Some(file)) => file.write_all(bytes),
            (None, None) => Ok(()),
        };
        written.map_err(|error| PackageError::io(Action::Write, path)(errno(&error)))
    }

    /// Shares the content of a file with the one that was begun, where the filesystem can do so, and returns that. It
    /// takes no room, and does not change while it is read.
    pub(super) fn share(&mut self, from: impl AsFd) -> Option<File> {
        let file = self.file.as_ref()?;
        rustix::fs::ioctl_ficlone(file, from).ok()?;
        self.file.take()
    }

    /// Removes the file that was written last.
    pub(super) fn abandon(&mut self, path: &str) -> Result<(), PackageError> {
        let removed = match &mut self.zip {
            Some(zip) => zip.abandon().map_err(|error| errno(&error)),
            None => {
                self.file = None;
                let (parent, name) = parent_of(path);
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                let parent = open_far(&self.work.directory, parent.as_bytes(), flags);
                parent.and_then(|parent| rustix::fs::unlinkat(&parent, name, AtFlags::empty()))
            }
        };
        removed.map_err(PackageError::io(Action::Write, path))
    }

    /// Writes a whole file.
    pub(super) fn whole(&mut self, path: &str, bytes: &[u8]) -> Result<(), PackageError> {
        self.begin(path)?;
        self.write(path, bytes)
    }

    /// Completes what is being written.
    pub(super) fn end(mut self) -> Result<(), PackageError> {
        let Some(zip) = self.zip.as_mut() else {
            return Ok(());
        };
        zip.end()
            .map_err(|error| PackageError::io(Action::Write, &zip.top)(errno(&error)))
    }
}

impl ZipFile {
    fn abandon(&mut self) -> std::io::Result<()> {
        self.writer.abort_file().map_err(of_zip)?;
        // The writer goes back to where the file began, and leaves what is behind.
        let end = self.file.stream_position()?;
        self.file.set_len(end)
    }

    fn end(&mut self) -> std::io::Result<()> {
        let nothing = ZipOutput::new(self.file.try_clone()?, &self.is_given_up);
        let writer = std::mem::replace(&mut self.writer, ZipWriter::new(nothing));
        writer.finish().map_err(of_zip)?.flush()
    }
}

impl Drop for ZipFile {
    fn drop(&mut self) {
        self.is_given_up.set(true);
    }
}

impl Write for ZipOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = if self.is_given_up.get() {
            bytes.len()
        } else {
            self.file.write(bytes)?
        };
        self.position += count as u64;
        self.end = self.end.max(self.position);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.is_given_up.get() {
            Ok(())
        } else {
            self.file.flush()
        }
    }
}

impl Seek for ZipOutput {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.position = if self.is_given_up.get() {
            match to {
                SeekFrom::Start(at) => at,
                SeekFrom::Current(by) => self.position.saturating_add_signed(by),
                SeekFrom::End(by) => self.end.saturating_add_signed(by),
            }
        } else {
            self.file.seek(to)?
        };
        Ok(self.position)
    }
}

/// The error of the system, which the library wraps.
fn of_zip(error: ZipError) -> std::io::Error {
    match error {
        ZipError::Io(error) => error,
        error => error.into(),
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;
    use std::io::Read;

    /// A file that changed while it was read is written again; nothing is left of the first time.
    #[test]
    fn what_is_abandoned_takes_no_room() {
        for abandoned in [0, 7, 1 << 20] {
            let directory = TemporaryDirectory::new();
            let path = directory.path();
            let work = ExportDirectory::begin(path, "staging", |_| Ok(())).expect("a directory");
            let mut writer = PackageWriter::zip(&work, "a.zip", "top".to_owned()).expect("made");
            writer.whole("first", b"one").expect("written");
            // Bytes that do not compress.
            let bytes: Vec<u8> = (0..abandoned)
                .map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect();
            writer.whole("second", &bytes).expect("written");
            writer.abandon("second").expect("removed");
            writer.whole("second", b"two").expect("written");
            writer.end().expect("complete");
            let file = File::open(path.join("staging/a.zip")).expect("a file");
            assert!(file.metadata().expect("its size").len() < 1000);
            let mut zip = zip::ZipArchive::new(file).expect("a zip file");
            for (name, content) in [("top/first", "one"), ("top/second", "two")] {
                let mut read = String::new();
                let mut entry = zip.by_name(name).expect("an entry");
                entry.read_to_string(&mut read).expect("read");
                assert_eq!(read, content, "{abandoned} bytes");
            }
            assert_eq!(zip.len(), 2);
        }
    }
}
