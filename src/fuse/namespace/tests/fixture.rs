//! A namespace over a [`TestArchive`], with a timer that the test moves.

use std::ffi::OsStr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::archive::Relative;
use crate::archive::operations::testing::TestArchive;
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::Place;
use crate::formats::item::Sidecar;
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::ErrnoResult;
use crate::fuse::namespace::timer::{ManualTimer, Timer};
use crate::fuse::namespace::{
    Context, DirectoryEntry, Entry, Invalidate, MkdirResult, Namespace, Options, Stale,
};
use crate::os::caller::Caller;

/// A kernel's cache that records what is invalidated.
#[derive(Default)]
pub(super) struct TestCache {
    pub(super) before_reply: Mutex<Vec<Stale>>,
    pub(super) after_reply: Mutex<Vec<Stale>>,
}

impl Invalidate for TestCache {
    fn invalidate(&self, stale: Vec<Stale>) {
        self.before_reply.lock().extend(stale);
    }

    fn invalidate_after_reply(&self, stale: Vec<Stale>) {
        self.after_reply.lock().extend(stale);
    }
}

/// A namespace and a caller: the user who runs the tests.
pub(super) struct Fixture {
    archive: TestArchive,
    pub(super) namespace: Namespace,
    pub(super) caller: Caller,
    pub(super) cache: TestCache,
    timer: Arc<ManualTimer>,
}

impl Deref for Fixture {
    type Target = TestArchive;

    fn deref(&self) -> &TestArchive {
        &self.archive
    }
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::with(Options::default())
    }

    pub(super) fn with(options: Options) -> Fixture {
        let archive = TestArchive::ticking();
        let timer = Arc::new(ManualTimer::default());
        let handed_in = Arc::clone(&timer) as Arc<dyn Timer>;
        let namespace = Namespace::with_timer(archive.share(), options, handed_in);
        let namespace = namespace.expect("a namespace");
        namespace.root().expect("the root");
        let caller = Caller {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id(),
        };
        Fixture {
            archive,
            namespace,
            caller,
            cache: TestCache::default(),
            timer,
        }
    }

    /// A change by the caller.
    pub(super) fn context(&self) -> Context<'_> {
        Context {
            caller: &self.caller,
            cache: &self.cache,
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        self.timer.sleep(time);
        let milliseconds = i64::try_from(time.as_millis()).expect("a time");
        self.archive.clock.advance_milliseconds(milliseconds);
    }

    /// Returns what has been invalidated before a reply since the last call.
    pub(super) fn take_stale(&self) -> Vec<Stale> {
        std::mem::take(&mut *self.cache.before_reply.lock())
    }

    /// The same after a reply.
    pub(super) fn take_stale_after_reply(&self) -> Vec<Stale> {
        std::mem::take(&mut *self.cache.after_reply.lock())
    }

    /// The same user in another program.
    pub(super) fn other_program(&self) -> Caller {
        Caller {
            pid: 0,
            ..self.caller
        }
    }

    /// Looks a path up from the root.
    pub(super) fn find(&self, path: &str) -> ErrnoResult<Entry> {
        self.find_as(&self.other_program(), path)
    }

    pub(super) fn find_as(&self, caller: &Caller, path: &str) -> ErrnoResult<Entry> {
        let mut entry = self.namespace.root()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            entry = self
                .namespace
                .lookup(caller, &entry.node, OsStr::new(name))?;
        }
        Ok(entry)
    }

    /// The node of a path that exists.
    pub(super) fn node(&self, path: &str) -> Arc<Node> {
        let found = self.find(path);
        found.unwrap_or_else(|errno| panic!("{path}: {errno}")).node
    }

    /// Returns what a path is, in a word, with the target of a link and the text of a virtual file.
    pub(super) fn describe(&self, path: &str) -> Result<String, Errno> {
        let entry = self.find(path)?;
        Ok(match entry.attr.kind {
            FileType::Directory => "directory".to_owned(),
            FileType::Symlink => {
                let target = self.namespace.read_link(&entry.node)?;
                format!("-> {}", String::from_utf8_lossy(&target))
            }
            _ => match &entry.node.kind {
                NodeKind::Text(text) => format!("text of {} bytes", text.len()),
                NodeKind::Generated(_) => "generated".to_owned(),
                _ => "file".to_owned(),
            },
        })
    }

    /// Mints an item with `doc/`, as `ibifs mint` does.
    pub(super) fn mint(&self, relative: Option<&Relative>) -> Item {
        let minted = self.archive.depositor(&self.caller).mint(relative, None);
        minted.expect("an item")
    }

    /// `mkdir` at the levels of identifiers, which mints if it has to.
    pub(super) fn mkdir(&self, parent: &str, name: &str) -> ErrnoResult<Entry> {
        let parent = self.node(parent);
        let name = OsStr::new(name);
        let namespace = &self.namespace;
        match namespace.make_directory(&self.context(), &parent, name, (0o755, 0))? {
            MkdirResult::Done(entry) => Ok(entry),
            MkdirResult::Minting(minting) => namespace.mint(&self.context(), &minting),
        }
    }

    /// The listing of a directory above the items.
    pub(super) fn lines(&self, path: &str) -> ErrnoResult<Vec<DirectoryEntry>> {
        let node = self.node(path);
        let NodeKind::Prefix(prefix) = &node.kind else {
            return self.namespace.list(&self.caller, &node);
        };
        let listing = self.namespace.open_prefix(prefix)?;
        let mut lines = Vec::new();
        self.namespace.list_prefix(&listing, &node, 0, |line, _| {
            lines.push(line.clone());
            false
        })?;
        Ok(lines)
    }

    /// The names in a directory above the items, in order.
    pub(super) fn list(&self, path: &str) -> ErrnoResult<Vec<String>> {
        let listed = self.lines(path)?;
        let names = listed.iter().map(|line| line.name.to_string_lossy());
        let mut names: Vec<String> = names.map(|name| name.into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// Writes a file inside an item's directory, beneath the namespace.
    pub(super) fn write(&self, item: &Item, name: &str, text: &str) {
        std::fs::write(self.file(item, name), text).expect("written");
    }

    /// The tombstone of a removed item.
    pub(super) fn tombstone(&self, item: &Item) -> Sidecar {
        let bytes = self.archive.tree().read_tombstone(&Place::of(&item.names));
        let bytes = bytes.expect("the store").expect("a tombstone");
        Sidecar::parse(&bytes).expect("a sidecar")
    }

    pub(super) fn item(&self, id: ItemId) -> Item {
        let found = self.archive.store().item(id);
        found.expect("the index").expect("an item")
    }
}

/// The rep of an item: its path in the rep tree.
pub(super) fn rep(item: &Item) -> String {
    item.names.rep().expect("a rep").to_string()
}

/// The IBIp of an item: its path in the IBIp tree.
pub(super) fn ibip(item: &Item) -> String {
    item.names.ibip().expect("an IBIp").to_string()
}

/// The directory of a path, and its last name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').expect("a path of two components")
}
