//! Unpacks zip and tar files into an empty directory.
//!
//! They are not trusted: no name leads out of the directory, no name is made twice, nothing is made but directories and
//! regular files, and not more than fits on the disk. The directory belongs to no other user meanwhile.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::PackageError;
use super::pax::Pax;
use super::work::{make_directories, new_file};
use crate::archive::tree::Action;
use crate::formats::bag::DECLARATION;
use crate::formats::entry::stays_below;
use crate::formats::fixity::shown;
use crate::os::directory::Directory;
use crate::os::writing;
use ibi::message::Message;
use ibi::{Timestamp, message};

/// The most files and directories of an archive file.
const MOST_ENTRIES: usize = 1_000_000;
/// The longest path, in bytes.
const LONGEST_PATH: usize = 4096;
/// The longest part of a text of others in an error, in bytes.
const LONGEST_SHOWN: usize = 1024;
/// From so many bytes on, an archive file must not unpack to more than [`MOST_TIMES`] its length.
const FREE: u64 = 1 << 30;
const MOST_TIMES: u64 = 1000;
/// The longest headers of an entry of a tar file, in bytes: its long name and its extensions, which are read into memory.
const LONGEST_HEADERS: u64 = 1 << 20;

/// The most memory that a file by xz may need, in KiB; `xz -9` needs a third of it.
const MOST_XZ: u32 = 200 << 10;

/// A format of files that have others in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveFormat {
    Zip,
    Tar,
    TarGz,
    TarBz2,
    TarXz,
}

impl ArchiveFormat {
    /// The format of a file, by its first bytes. It is read from its start afterwards.
    pub(super) fn of(file: &mut (impl Read + Seek)) -> std::io::Result<Option<ArchiveFormat>> {
        let mut start = Vec::new();
        Read::by_ref(file).take(512).read_to_end(&mut start)?;
        file.seek(SeekFrom::Start(0))?;
        let is_zip = start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06");
        let is_tar = start.get(257..262) == Some(b"ustar");
        Ok(if is_zip {
            Some(ArchiveFormat::Zip)
        } else if is_tar {
            Some(ArchiveFormat::Tar)
        } else if start.starts_with(&[0x1f, 0x8b]) {
            Some(ArchiveFormat::TarGz)
        } else if start.starts_with(b"BZh") {
            Some(ArchiveFormat::TarBz2)
        } else if start.starts_with(b"\xfd7zXZ\0") {
            Some(ArchiveFormat::TarXz)
        } else {
            None
        })
    }
}

/// Whether a file is a zip file that holds a bag in a directory of its own (RFC 8493, section 5).
pub(super) fn holds_bag(file: impl Read + Seek) -> bool {
    let is_declaration = |name: &str| {
        let parts = name.split_once(['/', '\\']);
        parts.is_some_and(|(_, below)| below == DECLARATION)
    };
    let archive = zip::ZipArchive::new(std::io::BufReader::new(file));
    archive.is_ok_and(|archive| {
        let mut names = archive.file_names();
        names.any(|name| name.is_ok_and(|name| is_declaration(&name)))
    })
}

/// Unpacks a file. `count` receives the bytes written, and 0 at the start of each file.
pub(super) fn unpack(
    file: File,
    format: ArchiveFormat,
    to: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let length = file.metadata().map_or(0, |found| found.len());
    let most = length.saturating_mul(MOST_TIMES).max(FREE);
    unpack_at_most(most, file, format, to, count)
}

/// Unpacks at most so many bytes.
pub(super) fn unpack_at_most(
    most: u64,
    file: impl Read + Seek,
    format: ArchiveFormat,
    to: &Directory,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let mut unpacking = Unpacking {
        to,
        most,
        written: 0,
        entries: 0,
        count,
    };
    let file = std::io::BufReader::new(file);
    match format {
        ArchiveFormat::Zip => unpacking.zip(file),
        ArchiveFormat::Tar => unpacking.tar(file),
        ArchiveFormat::TarGz => unpacking.tar(flate2::read::MultiGzDecoder::new(file)),
        ArchiveFormat::TarBz2 => unpacking.tar(bzip2::read::MultiBzDecoder::new(file)),
        ArchiveFormat::TarXz => {
            unpacking.tar(lzma_rust2::XzReader::new_mem_limit(file, true, MOST_XZ))
        }
    }
}

/// An entry of an archive file.
struct Unpacked {
    path: Vec<u8>,
    shown: String,
    size: u64,
    is_executable: bool,
    time: Option<SystemTime>,
}

struct Unpacking<'a> {
    to: &'a Directory,
    /// The most bytes that are written in all.
    most: u64,
    written: u64,
    entries: usize,
    count: &'a mut dyn FnMut(u64),
}

impl Unpacking<'_> {
    fn zip(&mut self, file: impl Read + Seek) -> Result<(), PackageError> {
        let broken = |error: zip::result::ZipError| PackageError::broken("zip", said(&error));
        let mut archive = zip::ZipArchive::new(file).map_err(broken)?;
        for number in 0..archive.len() {
            let found = archive.by_index_raw(number).map_err(broken)?;
            let name = zip_name(&found).map_err(broken)?;
            let (size, mode) = (found.size(), found.unix_mode().unwrap_or(0));
            let is_encrypted = found.encrypted();
            let is_directory = name.ends_with(b"/");
            let time = found.last_modified().and_then(zip_time);
            drop(found);
            let entry = self.entry(&name, size, mode, time)?;
            if is_encrypted {
                let what =
                    message!("it is encrypted; unpack it yourself, and import the directory");
                return Err(PackageError::broken(&entry.shown, what));
            }
            // The upper bits of the mode are the kind of file, if the program that wrote it knew of any.
            match mode & 0o170_000 {
                0 | 0o040_000 | 0o100_000 => {}
                0o120_000 => return Err(is_link(&entry)),
                _ => return Err(is_special(&entry)),
            }
            if is_directory {
                self.directory(&entry)?;
            } else {
                let content = archive.by_index(number).map_err(broken)?;
                self.file(&entry, content)?;
            }
        }
        Ok(())
    }

    fn tar(&mut self, reader: impl Read) -> Result<(), PackageError> {
        let left = Cell::new(LONGEST_HEADERS);
        let broken = |error: std::io::Error| {
            let what = if left.get() == 0 {
                message!("the headers of an entry are longer than 1 MiB")
            } else {
                said(&error)
            };
            PackageError::broken("tar", what)
        };
        let mut archive = tar::Archive::new(Limited {
            reader,
            left: &left,
        });
        for entry in archive.entries().map_err(broken)? {
            let found = entry.map_err(broken)?;
            let mut found = found;
            let kind = found.header().entry_type();
            let is_global = kind.is_pax_global_extensions();
            if is_global && found.size() > LONGEST_HEADERS {
                left.set(0);
                return Err(broken(ErrorKind::FileTooLarge.into()));
            }
            // Its content, which is read or passed over, and then the headers of the next one.
            left.set(found.size().saturating_add(LONGEST_HEADERS));
            let mut name = found.path_bytes().into_owned();
            let shown = start_shown(&name);
            let wrong = |what| PackageError::broken(&shown, what);
            let pax = found.pax_extensions().map_err(broken)?;
            let pax = pax
                .map(Pax::read)
                .transpose()
                .map_err(wrong)?
                .unwrap_or_default();
            if is_global {
                if pax.name.is_some() || pax.sparse.is_some() {
                    let what = message!("a header for all files has a name or a content");
                    return Err(wrong(what));
                }
                continue;
            }
            name = pax.name.unwrap_or(name);
            let header = found.header();
            let mode = header.mode().map_err(broken)?;
            let time = header.mtime().ok();
            let time = time.and_then(|seconds| {
                SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
            });
            let is_top = matches!(&name[..], b"." | b"./");
            if kind.is_dir() && is_top {
                continue;
            }
            let stored = found.size();
            let size = pax.sparse.as_ref().map_or(stored, |sparse| sparse.size);
            let entry = self.entry(&name, size, mode, time)?;
            if kind.is_dir() {
                self.directory(&entry)?;
            } else if let (Some(sparse), true) = (pax.sparse, kind.is_file()) {
                let wrong = |what| PackageError::broken(&entry.shown, what);
                let content = sparse.content(found, stored).map_err(wrong)?;
                self.file(&entry, content)?;
                left.set(LONGEST_HEADERS);
            } else if kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse() {
                self.file(&entry, found)?;
                left.set(LONGEST_HEADERS);
            } else if kind.is_symlink() || kind.is_hard_link() {
                return Err(is_link(&entry));
            } else {
                return Err(is_special(&entry));
            }
        }
        // A compressed file has its check at the end.
        left.set(self.most);
        std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(broken)?;
        Ok(())
    }

    /// An entry with a name that stays in the directory.
    fn entry(
        &mut self,
        name: &[u8],
        size: u64,
        mode: u32,
        time: Option<SystemTime>,
    ) -> Result<Unpacked, PackageError> {
        let shown = start_shown(name);
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            let most = MOST_ENTRIES;
            let what = message!(
                "there are more than {most} files before it",
                most = most.to_string()
            );
            return Err(PackageError::broken(&shown, what));
        }
        let name = name.strip_prefix(b"./").unwrap_or(name);
        let name = name.strip_suffix(b"/").unwrap_or(name);
        if name.len() > LONGEST_PATH || !stays_below(name) {
            let what = message!("its path does not stay in the directory where it is unpacked");
            return Err(PackageError::broken(&shown, what));
        }
        let path = name.to_vec();
        if self.written.saturating_add(size) > self.most {
            let what = message!(
                "with it, more than a thousand times the length of the archive file is unpacked; unpack it yourself, and import the directory"
            );
            return Err(PackageError::broken(&shown, what));
        }
        if size > self.room() {
            return Err(PackageError::io(Action::Make, shown.as_bytes())(
                Errno::NOSPC,
            ));
        }
        Ok(Unpacked {
            path,
            shown,
            size,
            is_executable: mode & 0o111 != 0,
            time,
        })
    }

    /// The bytes that the disk has room for.
    fn room(&self) -> u64 {
        rustix::fs::fstatvfs(self.to).map_or(u64::MAX, |found| {
            found.f_bavail.saturating_mul(found.f_frsize)
        })
    }

    fn directory(&mut self, entry: &Unpacked) -> Result<(), PackageError> {
        make_directories(self.to.descriptor(), &entry.path).map_err(made(entry))
    }

    fn file(&mut self, entry: &Unpacked, content: impl Read) -> Result<(), PackageError> {
        let mode = if entry.is_executable { 0o777 } else { 0o666 };
        let opened = new_file(self.to.descriptor(), &entry.path, mode);
        let mut file = opened.map_err(|errno| match errno {
            Errno::EXIST => PackageError::broken(&entry.shown, message!("it is there twice")),
            _ => made(entry)(errno),
        })?;
        (self.count)(0);
        let mut content = content.take(entry.size.saturating_add(1));
        let mut buffer = vec![0; 1 << 16];
        let mut written = 0;
        loop {
            let read = content
                .read(&mut buffer)
                .map_err(|error| PackageError::broken(&entry.shown, said(&error)))?;
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            file.write_all(bytes).map_err(made_io(entry))?;
            written += read as u64;
            (self.count)(read as u64);
        }
        if written != entry.size {
            let what = message!("it has another length than the archive file says");
            return Err(PackageError::broken(&entry.shown, what));
        }
        self.written += written;
        if let Some(time) = entry.time {
            writing::set_modified(&file, time).map_err(made_io(entry))?;
        }
        Ok(())
    }
}

/// The name of an entry of a zip file. That of Unicode is preferred, and UTF-8 by its bytes: some programs do not mark it.
/// Others have the characters of MS-DOS, and perhaps its separators; on Unix a name has any bytes.
fn zip_name<R: Read>(found: &zip::read::ZipFile<'_, R>) -> zip::result::ZipResult<Vec<u8>> {
    let raw = found.name_raw();
    let unicode = found.extra_data_fields().find_map(|field| match field {
        zip::ExtraField::UnicodePath(field) => field.clone().unwrap_valid(raw).ok(),
        _ => None,
    });
    if let Some(unicode) = unicode {
        return Ok(unicode.into_vec());
    }
    if found.system() == zip::System::Unix {
        return Ok(raw.to_vec());
    }
    let name = found.name()?;
    Ok(match found.system() {
        zip::System::Dos if !name.contains('/') => name.replace('\\', "/").into_bytes(),
        _ => name.into_owned().into_bytes(),
    })
}

/// Returns what a library says of a file; it may repeat a name.
fn said(error: &impl Display) -> Message {
    Message::foreign(start_shown(error.to_string().as_bytes()))
}

/// A text of others for one line on a terminal, of bounded length.
fn start_shown(text: &[u8]) -> String {
    shown(text.get(..LONGEST_SHOWN).unwrap_or(text))
}

/// A reader that fails after so many bytes.
struct Limited<'a, R> {
    reader: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let read = Read::by_ref(&mut self.reader).take(left).read(buffer)?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

fn made(entry: &Unpacked) -> impl FnOnce(Errno) -> PackageError + '_ {
    |errno| PackageError::io(Action::Make, entry.shown.as_bytes())(errno)
}

fn made_io(entry: &Unpacked) -> impl FnOnce(std::io::Error) -> PackageError + '_ {
    |error| made(entry)(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn is_link(entry: &Unpacked) -> PackageError {
    let what = message!("it is a link; unpack it yourself, and import the directory");
    PackageError::broken(&entry.shown, what)
}

fn is_special(entry: &Unpacked) -> PackageError {
    let what = message!("it is neither a file nor a directory");
    PackageError::broken(&entry.shown, what)
}

/// The time of a zip file's entry, which has no time zone and is taken as UTC.
fn zip_time(time: zip::DateTime) -> Option<SystemTime> {
    let text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    let time = Timestamp::parse_rfc3339(&text).ok()?;
    let seconds = u64::try_from(time.seconds()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;

    /// The header of an entry of a tar file.
    fn header(kind: tar::EntryType, size: u64) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_path("x").expect("a name");
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn unpacked(reader: impl Read) -> (Result<(), PackageError>, usize) {
        let directory = TemporaryDirectory::new();
        let mut unpacking = Unpacking {
            to: &Directory::open(directory.path()).expect("a directory"),
            most: FREE,
            written: 0,
            entries: 0,
            count: &mut |_| {},
        };
        let result = unpacking.tar(reader);
        let listed = std::fs::read_dir(directory.path()).expect("a directory");
        (result, listed.count())
    }

    /// Compressed, a name of a gibibyte has a mebibyte.
    #[test]
    fn long_headers_are_not_read_into_memory() {
        for kind in [
            tar::EntryType::GNULongName,
            tar::EntryType::GNULongLink,
            tar::EntryType::XHeader,
        ] {
            let first = header(tar::EntryType::Regular, 0);
            let long = header(kind, 64 << 20);
            let mut read = 0;
            let endless = std::io::Cursor::new([first, long].concat());
            let mut endless = endless.chain(std::io::repeat(b'a'));
            let counted = Counted(&mut endless, &mut read);
            let (result, files) = unpacked(counted);
            let error = result.expect_err("refused").to_string();
            assert!(error.contains("longer than 1 MiB"), "{error}");
            assert_eq!(files, 1);
            assert!(read < 2 << 20, "{read} bytes");
        }
    }

    #[test]
    fn errors_can_be_shown() {
        let with_name = |path: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path);
            header.set_size(0);
            header
        };
        let mut strange = with_name(b"\x1b[31mred\n");
        strange.as_old_mut().mode = *b"wrong!!!";
        strange.set_cksum();
        let (result, _) = unpacked(strange.as_bytes().as_slice());
        let error = result.expect_err("no number").to_string();
        assert!(error.contains("%1B[31mred%0A"), "{error}");

        let long = header(tar::EntryType::GNULongName, 512 << 10);
        let mut bytes = [long, vec![b'a'; 512 << 10]].concat();
        bytes.extend(header(tar::EntryType::Regular, 0));
        let (result, _) = unpacked(bytes.as_slice());
        let error = result.expect_err("a long name").to_string();
        assert!(error.len() < 4096, "{} bytes", error.len());
    }

    #[test]
    fn long_content_needs_no_long_headers() {
        let content = vec![b'a'; 3 << 20];
        let mut bytes = header(tar::EntryType::Regular, content.len() as u64);
        bytes.extend(&content);
        // A header about all entries that changes neither names nor content is passed over.
        bytes.extend(header(tar::EntryType::XGlobalHeader, 512));
        bytes.extend([b"512 comment=".to_vec(), vec![b'a'; 499], vec![b'\n']].concat());
        bytes.extend([0; 1024]);
        let (result, files) = unpacked(bytes.as_slice());
        result.expect("unpacked");
        assert_eq!(files, 1);
    }

    struct Counted<'a, R>(R, &'a mut u64);

    impl<R: Read> Read for Counted<'_, R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            *self.1 += read as u64;
            Ok(read)
        }
    }
}
