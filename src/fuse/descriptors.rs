//! The files of nodes, and a limit on how many are open.
//!
//! The kernel may know a million nodes; a process may not open a million files. So a file is found without
//! being opened, and its handle kept (name_to_handle_at(2)). The handle opens the file when it is needed, and
//! again after its descriptor was closed to make room for newer ones. Without handles (an ordinary user's
//! daemon, a filesystem that has none) descriptors stay open. A handle also distinguishes a file from a later
//! one with the same inode number.
//!
//! On a disk no other file gets the inode number of an open one. Elsewhere it may (`os/src/serving.rs`).

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::os::memory;
use crate::os::opening;
use crate::os::serving::{self, Server};

/// The longest handle of a filesystem that the kernel gives out.
const LONGEST: usize = libc::MAX_HANDLE_SZ as usize;
/// The longest that is kept; those of the usual filesystems have 8 to 24 bytes.
const KEPT: usize = 31;

/// Returns the number of descriptors that this process may have.
pub fn limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(1 << 18, |limit| usize::try_from(limit).unwrap_or(1 << 18))
}

/// Identifies a file on its filesystem, including deleted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHandle {
    kind: i32,
    length: u8,
    bytes: [u8; KEPT],
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
        FileHandle::at(file, c"", libc::AT_EMPTY_PATH)
    }

    fn at(directory: BorrowedFd<'_>, name: &CStr, flags: i32) -> Option<FileHandle> {
        let mut raw = Raw {
            bytes: LONGEST as u32,
            kind: 0,
            handle: [0; LONGEST],
        };
        let mut mount = 0;
        // SAFETY: the structure begins as file_handle does and has the room it says; the name ends
        // with a NUL.
        let returned = unsafe {
            libc::name_to_handle_at(
                directory.as_raw_fd(),
                name.as_ptr(),
                (&raw mut raw).cast(),
                &mut mount,
                flags,
            )
        };
        let length = usize::try_from(raw.bytes).ok()?;
        if returned != 0 || length > KEPT {
            return None;
        }
        let mut bytes = [0; KEPT];
        bytes[..length].copy_from_slice(&raw.handle[..length]);
        Some(FileHandle {
            kind: raw.kind,
            length: length as u8,
            bytes,
        })
    }

    /// Opens the file; ESTALE when it is gone.
    fn open(&self, filesystem: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut raw = Raw {
            bytes: self.length.into(),
            kind: self.kind,
            handle: [0; LONGEST],
        };
        raw.handle[..KEPT].copy_from_slice(&self.bytes);
        let flags = (flags | OFlags::CLOEXEC).bits() as i32;
        // SAFETY: as above; the descriptor that comes back is ours alone.
        unsafe {
            match libc::open_by_handle_at(filesystem.as_raw_fd(), (&raw mut raw).cast(), flags) {
                -1 => Err(last_error()),
                descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
            }
        }
    }
}

/// The flags for a file that is opened to be named, not read.
const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// A file, open or to be opened again: a descriptor or a handle is there.
#[derive(Debug)]
struct OpenState {
    descriptor: Option<Arc<OwnedFd>>,
    handle: Option<FileHandle>,
    /// The file as a program has opened it, if it still does: it need not be opened once more.
    opened: Weak<OwnedFd>,
}

type Slot = Mutex<OpenState>;

/// The way in which a symbolic link is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// By its handle.
    ByHandle,
    /// Only by opening it, because its descriptor shows its path.
    Opened,
}

/// The time for which the descriptor of a pinned file stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// Until too many are open; the file is then opened again by its handle.
    ByHandle,
    /// As long as the file is pinned.
    ByDescriptor,
}

/// The number of descriptors that are closed at a time when there are too many.
const BATCH: usize = 64;
/// The time for which descriptors to close are gathered.
const GATHERING: Duration = Duration::from_millis(5);
/// With more than so many waiting to be closed, a thread that adds one closes it itself.
const BACKLOG: usize = 4096;

/// From so many forgotten files on, memory is given back.
const MANY: usize = 2048;
/// Before that, fewer than so many must be forgotten in a time.
const FEW: usize = 512;
const QUIET: Duration = Duration::from_secs(1);

/// A descriptor to be closed.
#[derive(Debug)]
enum Closing {
    /// The descriptor of a file that can be opened again.
    Surplus(Weak<Slot>),
    /// The descriptor of a file whose node is forgotten.
    Forgotten(Arc<OwnedFd>),
}

/// Closes descriptors in a thread of its own: with a file's last one it may have to free all its
/// blocks, for which no request should wait.
#[derive(Debug, Default)]
struct Closer {
    waiting: Mutex<(Vec<Closing>, bool)>,
    woken: Condvar,
    /// The files whose descriptors are open, from the oldest on, and files that are forgotten.
    open: Mutex<VecDeque<Weak<Slot>>>,
    /// The number of files that were forgotten since memory was last given back.
    forgotten: AtomicUsize,
}

impl Closer {
    fn start() -> Result<Arc<Closer>, Errno> {
        let closer = Arc::new(Closer::default());
        let served = Arc::clone(&closer);
        std::thread::Builder::new()
            .name("closing".to_owned())
            .spawn(move || served.serve())
            .map_err(|_| Errno::AGAIN)?;
        Ok(closer)
    }

    fn serve(&self) {
        // SAFETY: takes no pointer; 0 is the calling thread. Requests come first.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
        // The number of files that were forgotten at a time.
        let mut seen = (Instant::now(), 0);
        loop {
            let mut waiting = self.waiting.lock();
            while waiting.0.is_empty() && !waiting.1 {
                let forgotten = self.forgotten.load(Ordering::Relaxed);
                if forgotten < MANY {
                    self.woken.wait(&mut waiting);
                } else {
                    self.woken.wait_for(&mut waiting, QUIET);
                }
                if seen.0.elapsed() >= QUIET {
                    let forgotten = self.forgotten.load(Ordering::Relaxed);
                    let is_quiet = forgotten.saturating_sub(seen.1) < FEW;
                    if forgotten >= MANY && is_quiet {
                        MutexGuard::unlocked(&mut waiting, || self.free());
                    }
                    seen = (Instant::now(), forgotten);
                }
            }
            let is_over = waiting.1;
            drop(waiting);
            if !is_over {
                std::thread::sleep(GATHERING);
            }
            let gathered = std::mem::take(&mut self.waiting.lock().0);
            for closing in gathered {
                close(closing);
            }
            if is_over {
                return;
            }
        }
    }

    /// Notes that a file was forgotten.
    fn note_forgotten(&self) {
        if self.forgotten.fetch_add(1, Ordering::Relaxed) + 1 == MANY {
            let _waiting = self.waiting.lock();
            self.woken.notify_one();
        }
    }

    /// Frees what is kept of forgotten files.
    fn free(&self) {
        self.forgotten.store(0, Ordering::Relaxed);
        let mut open = self.open.lock();
        open.retain(|slot| slot.strong_count() > 0);
        open.shrink_to_fit();
        drop(open);
        memory::give_back();
    }

    fn add(&self, more: impl Iterator<Item = Closing>) {
        let mut waiting = self.waiting.lock();
        if waiting.0.len() > BACKLOG {
            drop(waiting);
            more.for_each(close);
            return;
        }
        let was_empty = waiting.0.is_empty();
        waiting.0.extend(more);
        if was_empty && !waiting.0.is_empty() {
            self.woken.notify_one();
        }
    }
}

/// The latest descriptors, of which a limited number stays open.
#[derive(Debug)]
pub struct Descriptors {
    filesystem: OwnedFd,
    device: u64,
    limit: usize,
    by_handle: bool,
    server: Server,
    closer: Arc<Closer>,
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.closer.waiting.lock().1 = true;
        self.closer.woken.notify_one();
    }
}

impl Descriptors {
    /// For the files of the filesystem on which `root` lies.
    pub fn new(root: BorrowedFd<'_>, limit: usize) -> Result<Descriptors, Errno> {
        let filesystem = rustix::io::fcntl_dupfd_cloexec(root, 3)?;
        let device = rustix::fs::fstat(&filesystem)?.st_dev;
        let server = Server::of(&filesystem);
        let own = FileHandle::of(filesystem.as_fd());
        let by_handle = own.is_some_and(|handle| handle.open(filesystem.as_fd(), NAMED).is_ok());
        Ok(Descriptors {
            filesystem,
            device,
            limit: limit.max(BATCH),
            // A handle of FUSE is valid only while the kernel happens to know the file.
            by_handle: by_handle && server != Server::Process,
            server,
            closer: Closer::start()?,
        })
    }

    /// Returns who has the files.
    pub fn server(&self) -> Server {
        self.server
    }

    /// Finds a name in a directory without opening it. None if it has to be opened: a symbolic link with
    /// [`Links::Opened`], a file of another filesystem, and any file if there are no handles.
    pub fn find(
        self: &Arc<Self>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        links: Links,
    ) -> Result<Option<(Stat, Pinned)>, Errno> {
        if !self.by_handle {
            return Ok(None);
        }
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        let stat = rustix::fs::statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        if stat.st_dev != self.device || (is_link && links == Links::Opened) {
            return Ok(None);
        }
        // Another file may have taken the name since: that is seen when the handle is used.
        let handle = FileHandle::at(directory, &name, 0);
        Ok(handle.map(|handle| (stat, self.kept(&stat, None, Some(handle)))))
    }

    /// Pins a file that is open now by its handle; None if there are no handles.
    pub fn note_open(
        self: &Arc<Self>,
        file: BorrowedFd<'_>,
    ) -> Result<Option<(Stat, Pinned)>, Errno> {
        let stat = rustix::fs::fstat(file)?;
        if !self.by_handle || stat.st_dev != self.device {
            return Ok(None);
        }
        let handle = FileHandle::of(file);
        Ok(handle.map(|handle| (stat, self.kept(&stat, None, Some(handle)))))
    }

    fn kept(
        self: &Arc<Self>,
        stat: &Stat,
        descriptor: Option<OwnedFd>,
        handle: Option<FileHandle>,
    ) -> Pinned {
        Pinned {
            slot: Arc::new(Mutex::new(OpenState {
                descriptor: descriptor.map(Arc::new),
                handle,
                opened: Weak::new(),
            })),
            identity: (stat.st_dev, stat.st_ino),
            keeper: Arc::clone(self),
        }
    }

    /// Pins a node's file by its descriptor.
    pub fn keep(self: &Arc<Self>, descriptor: OwnedFd, stat: &Stat, pinning: Pinning) -> Pinned {
        let kept = self.kept(stat, Some(descriptor), None);
        if pinning == Pinning::ByHandle && self.by_handle && stat.st_dev == self.device {
            self.note(&kept.slot);
        }
        kept
    }

    /// Counts one more open descriptor and has the oldest ones closed when there are too many.
    fn note(&self, slot: &Arc<Slot>) {
        let oldest: Vec<Weak<Slot>> = {
            let mut open = self.closer.open.lock();
            open.push_back(Arc::downgrade(slot));
            if open.len() > self.limit {
                open.drain(..BATCH).collect()
            } else {
                return;
            }
        };
        self.closer.add(oldest.into_iter().map(Closing::Surplus));
    }
}

fn close(closing: Closing) {
    let slot = match closing {
        Closing::Forgotten(descriptor) => return drop(descriptor),
        Closing::Surplus(slot) => slot.upgrade(),
    };
    let Some(slot) = slot else {
        return;
    };
    let mut state = slot.lock();
    if state.handle.is_none()
        && let Some(descriptor) = &state.descriptor
    {
        state.handle = FileHandle::of(descriptor.as_fd());
    }
    let closed = match state.handle {
        Some(_) => state.descriptor.take(),
        None => None,
    };
    drop(state);
    drop(closed);
}

/// The file of a node, pinned: open, or to be opened by its handle.
#[derive(Debug)]
pub struct Pinned {
    slot: Arc<Slot>,
    /// Device and inode number.
    identity: (u64, u64),
    keeper: Arc<Descriptors>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let forgotten = self.slot.lock().descriptor.take();
        if let Some(forgotten) = forgotten {
            let closing = std::iter::once(Closing::Forgotten(forgotten));
            self.keeper.closer.add(closing);
        }
        self.keeper.closer.note_forgotten();
    }
}

impl Pinned {
    /// Notes that a program has opened the file.
    pub fn note_opened(&self, opened: &Arc<OwnedFd>) {
        self.slot.lock().opened = Arc::downgrade(opened);
    }

    /// Whether a program has the file open.
    pub fn is_opened(&self) -> bool {
        self.slot.lock().opened.strong_count() > 0
    }

    /// The open file, with O_PATH or as a program has opened it. ESTALE where it leads nowhere: the kernel then looks the
    /// name up again, which may be another one of a file that has several.
    pub fn open(&self) -> Result<Arc<OwnedFd>, Errno> {
        let mut state = self.slot.lock();
        if let Some(descriptor) = &state.descriptor
            && (self.keeper.server != Server::Process || serving::attributes(descriptor).is_ok())
        {
            return Ok(Arc::clone(descriptor));
        }
        if let Some(opened) = state.opened.upgrade() {
            return Ok(opened);
        }
        let handle = state.handle.as_ref().ok_or(Errno::STALE)?;
        let descriptor = Arc::new(self.open_by(handle, NAMED)?);
        state.descriptor = Some(Arc::clone(&descriptor));
        drop(state);
        self.keeper.note(&self.slot);
        Ok(descriptor)
    }

    /// Opens the file by its handle; None where it is kept open instead. EAGAIN where another program
    /// has a lease on it.
    pub fn open_content(&self, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        let handle = self.slot.lock().handle;
        let Some(handle) = handle else {
            return Ok(None);
        };
        let opened = self.open_by(&handle, flags | OFlags::NONBLOCK)?;
        opening::settled(opened, flags).map(Some)
    }

    fn open_by(&self, handle: &FileHandle, flags: OFlags) -> Result<OwnedFd, Errno> {
        let descriptor = handle.open(self.keeper.filesystem.as_fd(), flags)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        if self.identity == (stat.st_dev, stat.st_ino) {
            Ok(descriptor)
        } else {
            Err(Errno::STALE)
        }
    }

    /// Whether two files with the same device and inode number are the same. While one is open no other file
    /// gets its number, unless a server has them; otherwise the handles are compared.
    pub fn is_same_file(&self, other: &Pinned) -> bool {
        let state = self.slot.lock();
        if let Some(descriptor) = &state.descriptor {
            return self.keeper.server == Server::Kernel || is_there(descriptor, self.identity.1);
        }
        let others = other.slot.lock().handle;
        let others = others.or_else(|| {
            other
                .open()
                .ok()
                .and_then(|file| FileHandle::of(file.as_fd()))
        });
        state.handle == others
    }
}

/// Whether a descriptor still leads to the file with an inode number, and the file has a name.
fn is_there(descriptor: &OwnedFd, inode: u64) -> bool {
    serving::attributes(descriptor).is_ok_and(|found| found.stx_ino == inode && found.stx_nlink > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(what: impl Fn() -> bool) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !what() {
            assert!(std::time::Instant::now() < end, "waited for nothing");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn closed_descriptors_come_back_as_the_same_file() {
        let directory = crate::os::testing::TemporaryDirectory::new();
        let root = directory.opened();
        let keeper = Arc::new(Descriptors::new(root.as_fd(), 16).expect("a keeper"));
        // open_by_handle_at(2) is for root; the descriptors of other users stay open.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(keeper.by_handle, is_root);
        let path = |number: usize| directory.join(format!("file-{number}"));
        let keep = |file: std::fs::File| {
            let file = OwnedFd::from(file);
            let stat = rustix::fs::fstat(&file).expect("an open file");
            keeper.keep(file, &stat, Pinning::ByHandle)
        };
        let count = 4 * BATCH;
        let kept: Vec<Pinned> = (0..count)
            .map(|number| keep(std::fs::File::create(path(number)).expect("a file")))
            .collect();
        let is_open = |kept: &&Pinned| kept.slot.lock().descriptor.is_some();
        if !is_root {
            assert_eq!(kept.iter().filter(is_open).count(), count);
            return;
        }
        wait_until(|| kept.iter().filter(is_open).count() <= BATCH);
        let again = keep(std::fs::File::open(path(0)).expect("opens"));
        assert!(kept[0].is_same_file(&again));
        assert!(!kept[0].is_same_file(&kept[1]));
        let inodes: Vec<u64> = kept
            .iter()
            .map(|kept| {
                rustix::fs::fstat(kept.open().expect("opens again"))
                    .expect("is")
                    .st_ino
            })
            .collect();
        let expected: Vec<u64> = (0..count)
            .map(|number| rustix::fs::stat(path(number)).expect("is there").st_ino)
            .collect();
        assert_eq!(inodes, expected);
        wait_until(|| !is_open(&&kept[0]));
        let name = |number| std::ffi::OsString::from(format!("file-{number}"));
        let (stat, found) = keeper
            .find(root.as_fd(), &name(1), Links::ByHandle)
            .expect("is there")
            .expect("has a handle");
        assert!(found.is_same_file(&kept[1]) && !found.is_same_file(&kept[2]));
        assert_eq!(stat.st_ino, inodes[1]);
        let content = found.open_content(OFlags::RDONLY).expect("opens");
        let content = rustix::fs::fstat(content.expect("by its handle"));
        assert_eq!(content.expect("is open").st_ino, inodes[1]);
        let mut wrong = stat;
        wrong.st_ino = inodes[2];
        let other = keeper.kept(&wrong, None, found.slot.lock().handle);
        assert_eq!(
            other.open().err(),
            Some(Errno::STALE),
            "another file's handle"
        );
        drop(again);
        std::fs::remove_dir_all(directory.path()).expect("removed");
        assert_eq!(kept[0].open().err(), Some(Errno::STALE));
    }
}
