//! The adapter over a [`TestArchive`], without a kernel: a test calls what `protocol` calls, and gets what it replies.

use std::ffi::OsStr;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fuser::{FileHandle, INodeNo};
use rustix::io::Errno;

use crate::archive::operations::testing::TestArchive;
use crate::archive::store::Item;
use crate::fuse::fs::Ibifs;
use crate::fuse::fs::kernel_cache::KernelCache;
use crate::fuse::fs::open::OpenFile;
use crate::fuse::fs::outcome::Outcome;
use crate::fuse::inode::ROOT;
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::{Entry, Namespace, Options};
use crate::os::access_times::AccessTimes;
use crate::os::caller::Caller;

/// The longest time that a test waits for an answer.
const LONGEST: Duration = Duration::from_secs(30);

/// The adapter, and a caller: the user who runs the tests.
pub(super) struct Adapter {
    filesystem: Ibifs,
    /// The kernel's cache; none until the test sets one.
    pub(super) cache: Arc<OnceLock<Box<dyn KernelCache>>>,
    pub(super) archive: TestArchive,
    pub(super) caller: Caller,
}

impl Deref for Adapter {
    type Target = Ibifs;

    fn deref(&self) -> &Ibifs {
        &self.filesystem
    }
}

impl DerefMut for Adapter {
    fn deref_mut(&mut self) -> &mut Ibifs {
        &mut self.filesystem
    }
}

impl Adapter {
    pub(super) fn new() -> Adapter {
        Adapter::with_passthrough(false)
    }

    pub(super) fn with_passthrough(passthrough: bool) -> Adapter {
        let archive = TestArchive::ticking();
        let namespace = Namespace::new(archive.share(), Options::default());
        let namespace = namespace.expect("a namespace");
        namespace.root().expect("the root");
        let cache = Arc::default();
        let filesystem = Ibifs::new(
            namespace,
            passthrough,
            false,
            AccessTimes::kept(),
            Arc::clone(&cache),
            &Arc::default(),
            || {},
        );
        Adapter {
            filesystem: filesystem.expect("threads"),
            cache,
            archive,
            caller: Caller {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                pid: std::process::id(),
            },
        }
    }

    /// Mints an item with `doc/`, and returns its rep.
    pub(super) fn mint(&self) -> (Item, String) {
        let minted = self.archive.depositor(&self.caller).mint(None, None);
        let item = minted.expect("an item");
        let rep = item.names.rep().expect("a rep").to_string();
        (item, rep)
    }

    /// Looks a path up from the root, name by name.
    pub(super) fn find(&self, path: &str) -> ErrnoResult<Entry> {
        let mut found = None;
        let mut parent = INodeNo(ROOT.0);
        for name in path.split('/') {
            let entry = self.look_up(&self.caller, parent, OsStr::new(name))?;
            parent = INodeNo(entry.node.id.0);
            found = Some(entry);
        }
        found.ok_or(Errno::INVAL)
    }

    /// The number of a path that exists; of the root if it is empty.
    pub(super) fn number(&self, path: &str) -> INodeNo {
        if path.is_empty() {
            return INodeNo(ROOT.0);
        }
        let found = self.find(path);
        let entry = found.unwrap_or_else(|errno| panic!("{path}: {errno}"));
        INodeNo(entry.node.id.0)
    }

    /// The directory of a path, and its last name.
    pub(super) fn name<'a>(&self, path: &'a str) -> (INodeNo, &'a OsStr) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.number(parent), OsStr::new(name))
    }

    /// Waits for an answer.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        answer: ErrnoResult<Outcome<T>>,
    ) -> ErrnoResult<T> {
        let (send, received) = channel();
        self.answer(answer, move |_, found| send.send(found).expect("heard"));
        received.recv_timeout(LONGEST).expect("an answer")
    }

    /// Opens a file for which the kernel has no passthrough.
    pub(super) fn open(&self, path: &str, flags: i32) -> ErrnoResult<OpenFile> {
        let opened = self.wait(self.open_file(self.caller, self.number(path), flags))?;
        Ok(self.register(opened, |_| Err(Errno::PERM.into())))
    }

    /// Makes and opens a file.
    pub(super) fn create(&self, path: &str, flags: i32) -> ErrnoResult<FileHandle> {
        let created = self.create_file(&self.caller, self.name(path), flags, (0o644, 0));
        let (_, opened) = created?;
        Ok(self.register(opened, |_| Err(Errno::PERM.into())).handle)
    }

    pub(super) fn open_list(&self, path: &str) -> FileHandle {
        let opened = self.wait(self.open_directory(self.caller, self.number(path)));
        opened.map(|opened| opened.handle).expect(path)
    }

    pub(super) fn close(&self, handle: FileHandle) -> ErrnoResult<()> {
        self.release_file(&self.caller, handle).0
    }

    pub(super) fn xattr_of_root(&self, name: &str) -> String {
        let root = self.node(INodeNo(ROOT.0)).expect("the root");
        let value = self.xattr(&root, OsStr::new(name), 1024);
        String::from_utf8(value.expect(name)).expect("text")
    }
}
