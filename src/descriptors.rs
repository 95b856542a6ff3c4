//! Descriptors of the files that nodes stand for, and a bound on how many are open.
//!
//! The kernel may know a million nodes; a process may not open a million files. A node keeps its
//! file's handle (name_to_handle_at), by which it is opened again when its descriptor has been
//! closed for newer ones. Where handles are not to be had (an ordinary user's daemon, a filesystem
//! without them) descriptors stay open. A handle also tells a file from a later one that was given
//! the same inode number.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};

use rustix::io::Errno;

use crate::locks::locked;

/// The longest handle of a filesystem that the kernel gives out.
const LONGEST: usize = libc::MAX_HANDLE_SZ as usize;

/// What tells a file on its filesystem, deleted ones included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHandle {
    kind: i32,
    bytes: Box<[u8]>,
}

/// The C structure, with room for any handle behind it.
#[repr(C)]
struct Raw {
    bytes: u32,
    kind: i32,
    handle: [u8; LONGEST],
}

impl FileHandle {
    /// The handle of an open file; None where its filesystem has none.
    fn of(file: BorrowedFd<'_>) -> Option<FileHandle> {
        let mut raw = Raw {
            bytes: LONGEST as u32,
            kind: 0,
            handle: [0; LONGEST],
        };
        let mut mount = 0;
        // SAFETY: the structure begins as file_handle does and has the room it says; the empty
        // path with AT_EMPTY_PATH names the open file itself.
        let outcome = unsafe {
            libc::name_to_handle_at(
                file.as_raw_fd(),
                c"".as_ptr(),
                (&raw mut raw).cast(),
                &mut mount,
                libc::AT_EMPTY_PATH,
            )
        };
        let length = usize::try_from(raw.bytes).ok()?;
        (outcome == 0).then(|| FileHandle {
            kind: raw.kind,
            bytes: raw.handle[..length.min(LONGEST)].into(),
        })
    }

    /// Opens the file again, with O_PATH; ESTALE when it is no more.
    fn open(&self, filesystem: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
        let mut raw = Raw {
            bytes: self.bytes.len() as u32,
            kind: self.kind,
            handle: [0; LONGEST],
        };
        raw.handle[..self.bytes.len()].copy_from_slice(&self.bytes);
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: as above; the descriptor that comes back is ours alone.
        unsafe {
            match libc::open_by_handle_at(filesystem.as_raw_fd(), (&raw mut raw).cast(), flags) {
                -1 => Err(last_error()),
                descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
            }
        }
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

type Slot = Mutex<Option<Arc<OwnedFd>>>;

/// Keeps descriptors open up to a number of them, the latest ones.
#[derive(Debug)]
pub struct Descriptors {
    filesystem: OwnedFd,
    device: u64,
    limit: usize,
    by_handle: bool,
    open: Mutex<VecDeque<Weak<Slot>>>,
}

impl Descriptors {
    /// For the files of the filesystem on which `root` lies.
    pub fn new(root: BorrowedFd<'_>, limit: usize) -> Result<Descriptors, Errno> {
        let filesystem = rustix::io::fcntl_dupfd_cloexec(root, 3)?;
        let device = rustix::fs::fstat(&filesystem)?.st_dev;
        let own = FileHandle::of(filesystem.as_fd());
        let by_handle = own.is_some_and(|handle| handle.open(filesystem.as_fd()).is_ok());
        Ok(Descriptors {
            filesystem,
            device,
            limit: limit.max(16),
            by_handle,
            open: Mutex::default(),
        })
    }

    /// Takes over the descriptor of a node's file.
    pub fn keep(self: &Arc<Self>, descriptor: OwnedFd, device: u64, may_close: bool) -> Kept {
        let handle = match self.by_handle && device == self.device {
            true => FileHandle::of(descriptor.as_fd()),
            false => None,
        };
        let slot = Arc::new(Mutex::new(Some(Arc::new(descriptor))));
        if handle.is_some() && may_close {
            self.note(&slot);
        }
        Kept {
            handle,
            slot,
            keeper: Arc::clone(self),
        }
    }

    /// Counts one more open descriptor and closes the oldest where that is one too many.
    fn note(&self, slot: &Arc<Slot>) {
        let oldest = {
            let mut open = locked(&self.open);
            open.push_back(Arc::downgrade(slot));
            match open.len() > self.limit {
                true => open.pop_front(),
                false => None,
            }
        };
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            let closed = locked(&oldest).take();
            drop(closed);
        }
    }
}

/// The file of a node, open or to be opened again.
#[derive(Debug)]
pub struct Kept {
    handle: Option<FileHandle>,
    slot: Arc<Slot>,
    keeper: Arc<Descriptors>,
}

impl Kept {
    /// The open file.
    pub fn open(&self) -> Result<Arc<OwnedFd>, Errno> {
        let mut slot = locked(&self.slot);
        if let Some(descriptor) = &*slot {
            return Ok(Arc::clone(descriptor));
        }
        let handle = self.handle.as_ref().ok_or(Errno::STALE)?;
        let descriptor = Arc::new(handle.open(self.keeper.filesystem.as_fd())?);
        *slot = Some(Arc::clone(&descriptor));
        drop(slot);
        self.keeper.note(&self.slot);
        Ok(descriptor)
    }

    /// Whether both are the same file, as far as handles tell.
    pub fn is_same_file(&self, other: &Kept) -> bool {
        self.handle == other.handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device_of(descriptor: &OwnedFd) -> u64 {
        rustix::fs::fstat(descriptor).expect("an open file").st_dev
    }

    #[test]
    fn closed_descriptors_come_back_as_the_same_file() {
        let directory = std::env::temp_dir().join(format!("ibifs-fds-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let root = OwnedFd::from(std::fs::File::open(&directory).expect("opens"));
        let keeper = Arc::new(Descriptors::new(root.as_fd(), 16).expect("a keeper"));
        assert!(keeper.by_handle, "root on a local filesystem has handles");
        let kept: Vec<Kept> = (0..100)
            .map(|number| {
                let path = directory.join(format!("file-{number}"));
                let file = OwnedFd::from(std::fs::File::create(path).expect("a file"));
                let device = device_of(&file);
                keeper.keep(file, device, true)
            })
            .collect();
        let open = kept.iter().filter(|kept| locked(&kept.slot).is_some());
        assert_eq!(open.count(), 16);
        let inodes: Vec<u64> = kept
            .iter()
            .map(|kept| {
                rustix::fs::fstat(kept.open().expect("opens again"))
                    .expect("is")
                    .st_ino
            })
            .collect();
        let expected: Vec<u64> = (0..100)
            .map(|number| {
                let path = directory.join(format!("file-{number}"));
                rustix::fs::stat(path).expect("is there").st_ino
            })
            .collect();
        assert_eq!(inodes, expected);
        assert!(!kept[0].is_same_file(&kept[1]));
        std::fs::remove_dir_all(&directory).expect("removed");
        assert_eq!(kept[0].open().err(), Some(Errno::STALE));
    }
}
