//! Reads a whole file from the disk, at the requested rate, and only if the file does not change meanwhile.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, FileType, OFlags};
use rustix::io::Errno;
use sha2::Digest as _;

use crate::archive::piece_hasher::PieceHasher;
use crate::archive::tree::{Tree, each_entry_of};
use crate::formats::fixity::{Digest, Written};
use crate::formats::inventory::CHUNK;

/// The number of bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// The block size for a rate: smaller blocks keep a slow rate even.
fn block(rate: Option<u64>) -> usize {
    let tenth = rate.and_then(|rate| usize::try_from(rate / 10).ok());
    tenth.unwrap_or(BLOCK).clamp(4096, BLOCK)
}

/// The number of times that a file is read that changes meanwhile.
const TRIES: usize = 3;

/// Whether an error is one of the disk, and not of rights or of the moment: a sector that is not read, or a checksum of the
/// filesystem that is wrong.
fn is_of_disk(errno: Errno) -> bool {
    [Errno::IO, Errno::BADMSG, Errno::UCLEAN, Errno::ILSEQ].contains(&errno)
}

/// Whether a file that cannot be read for this reason is damaged, and not its item, or its filesystem, out of reach.
pub(super) fn is_damage(tree: &Tree, item: &str, errno: Errno) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let directory = || tree.open_far(item.as_bytes(), flags);
    is_of_disk(errno) && directory().is_ok_and(|it| each_entry_of(&it, |_, _| ()).is_ok())
}

/// The time lost in a pause that may be made up for.
const CREDIT: Duration = Duration::from_millis(100);

/// Bytes before the content of a file, by its path and size, in a second digest of it.
pub type BytesBefore<'a> = dyn Fn(&[u8], u64) -> Vec<u8> + 'a;

/// The result of reading a file.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    Digest(FileDigests, Written),
    /// It is not, or no longer, a regular file.
    NoFile,
    Unreadable(Errno),
    /// It changed during each attempt.
    Unsteady,
}

/// The digests of a file.
#[derive(Debug)]
pub(super) struct FileDigests {
    pub(super) whole: Digest,
    /// Those of its pieces, of a file that has several, where they are wanted.
    pub(super) pieces: Vec<Digest>,
    /// The digest of other bytes and the whole, where there are such bytes.
    pub(super) answer: Option<Digest>,
}

/// Reads files one after another.
pub(super) struct ItemReader<'a> {
    tree: &'a Tree,
    /// As long as the largest file so far, at most a block.
    buffer: Vec<u8>,
    rate: Option<u64>,
    /// Whether the digests of pieces are wanted.
    pub(super) wants_pieces: bool,
    /// Returns bytes before the content of a file, by its path below the store and its size, of which there is a second digest.
    pub(super) before: Option<&'a BytesBefore<'a>>,
    due: Instant,
    /// The number of the current item.
    pub(super) items: u64,
    bytes: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl<'a> ItemReader<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        rate: Option<u64>,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> ItemReader<'a> {
        ItemReader {
            tree,
            buffer: Vec::new(),
            rate,
            wants_pieces: false,
            before: None,
            due: Instant::now(),
            items: 0,
            bytes: 0,
            progress,
        }
    }

    /// The digest of the file at a path below the store.
    pub(super) fn digest(&mut self, path: &[u8]) -> ReadOutcome {
        let mut failed = None;
        for _ in 0..TRIES {
            match self.try_once(path) {
                Ok(Some(seen)) => return seen,
                Ok(None) => {}
                // The next reading may succeed.
                Err(errno) if is_of_disk(errno) && failed.is_none() => failed = Some(errno),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
                    return ReadOutcome::NoFile;
                }
                Err(errno) => return ReadOutcome::Unreadable(errno),
            }
        }
        failed.map_or(ReadOutcome::Unsteady, ReadOutcome::Unreadable)
    }

    /// None where the file was written or replaced meanwhile.
    fn try_once(&mut self, path: &[u8]) -> Result<Option<ReadOutcome>, Errno> {
        let file = self.tree.open_to_read(path)?;
        let before = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Ok(Some(ReadOutcome::NoFile));
        }
        // The page cache may differ from the disk.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        let size = usize::try_from(before.st_size).unwrap_or(usize::MAX);
        if size > block(self.rate) {
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
        }
        // One byte more: a read that gets less has come to the end.
        let wanted = size.saturating_add(1).min(block(self.rate));
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = self.read_through(path, &file, written(&before).size);
        // The scrub leaves nothing in the page cache that others do not need.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
        let digests = read?;
        // A file that is replaced loses a name, which changes the time of its inode.
        let after = rustix::fs::fstat(&file)?;
        let is_same = written(&before) == written(&after)
            && (before.st_ctime, before.st_ctime_nsec) == (after.st_ctime, after.st_ctime_nsec);
        Ok(is_same.then(|| ReadOutcome::Digest(digests, written(&after))))
    }

    fn read_through(
        &mut self,
        path: &[u8],
        mut file: &File,
        size: u64,
    ) -> Result<FileDigests, Errno> {
        let mut hasher = sha2::Sha256::new();
        let before = self.before.map(|before| before(path, size));
        let mut answer = before.map(sha2::Sha256::new_with_prefix);
        let mut pieces = (self.wants_pieces && size > CHUNK).then(PieceHasher::default);
        let mut offset = 0_u64;
        loop {
            let count = match file.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            };
            hasher.update(&self.buffer[..count]);
            if let Some(answer) = &mut answer {
                answer.update(&self.buffer[..count]);
            }
            if let Some(pieces) = &mut pieces {
                pieces.update(&self.buffer[..count]);
            }
            let start = offset;
            offset += count as u64;
            self.bytes += count as u64;
            (self.progress)(self.items, self.bytes);
            self.keep_pace(count as u64);
            if offset == size && count < self.buffer.len() {
                // The end of the file. If it has grown meanwhile, it is read again.
                break;
            }
            let length = NonZeroU64::new(count as u64);
            let _ = rustix::fs::fadvise(file, start, length, Advice::DontNeed);
        }
        Ok(FileDigests {
            whole: Digest(hasher.finalize().into()),
            pieces: pieces.map(PieceHasher::finish).unwrap_or_default(),
            answer: answer.map(|hasher| Digest(hasher.finalize().into())),
        })
    }

    fn keep_pace(&mut self, count: u64) {
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else {
            return;
        };
        let now = Instant::now();
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let takes = Duration::from_secs_f64(count as f64 / rate as f64);
        self.due = self.due.max(earliest) + takes;
        std::thread::sleep(self.due.saturating_duration_since(now));
    }
}

/// Size and modification time as the system reports them.
pub(super) fn written(stat: &rustix::fs::Stat) -> Written {
    Written {
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        seconds: stat.st_mtime,
        nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    }
}
