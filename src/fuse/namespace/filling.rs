//! What is being filled: the programs that make things under a label or a modifier's name, and what
//! minting has put in their way.
//!
//! A program that has just made a directory takes it for empty. Where it has minted an item, the sidecar
//! is there nevertheless; so under the name that it gave, its own thread group does not find the sidecar
//! until it makes one, until it has paused for [`PAUSE`], or until another program looks for it there.
//! By the item's own names the sidecar is there for everyone. A hidden sidecar is known by its inode
//! number: nothing else is ever hidden, whatever is renamed into its place.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::Namespace;
use crate::archive::store::ItemId;
use crate::archive::tree::{Place, SIDECAR};
use crate::fuse::inode::{Kind, Node, NodeId};
use crate::fuse::inside::{self, Outcome};
use crate::os::caller::{Caller, ThreadGroup};

/// A program that has made nothing for so long, and holds nothing open that it has made, has paused.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a sidecar that was removed stays hidden from the program that removed it.
const REMOVED: Duration = Duration::from_secs(1);
/// How many programs, and items that they have minted, are remembered of each user.
const LIMIT: usize = 256;

/// A program that makes things under a label or a modifier's name.
#[derive(Debug)]
struct Filler {
    group: ThreadGroup,
    uid: u32,
    /// When it last made or closed something.
    last: Instant,
    /// How many files it has open that it has made.
    open: usize,
}

/// A sidecar, or a name, that means something else to the program that has made it.
#[derive(Debug)]
struct Hidden {
    group: ThreadGroup,
    uid: u32,
    item: ItemId,
    /// The directory and name under which the item was made, for a modifier.
    declared: Option<(NodeId, OsString)>,
    /// Device and inode number of the hidden sidecar.
    sidecar: Option<(u64, u64)>,
    /// Until when, in any tree; without it, under the name that its maker gave, while it fills.
    until: Option<Instant>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The thread groups of threads that were looked up within [`PAUSE`].
    threads: HashMap<u32, (ThreadGroup, u32, Instant)>,
    fillers: VecDeque<Filler>,
    hidden: VecDeque<Hidden>,
}

impl Inner {
    fn filler(&mut self, group: ThreadGroup) -> Option<&mut Filler> {
        self.fillers.iter_mut().find(|known| known.group == group)
    }

    fn is_at_it(&self, group: ThreadGroup) -> bool {
        let known = self.fillers.iter().find(|known| known.group == group);
        known.is_some_and(|known| known.open > 0 || known.last.elapsed() < PAUSE)
    }
}

/// Takes the oldest of a user's out where there are [`LIMIT`] of them.
fn make_way<T>(all: &mut VecDeque<T>, is_of_user: impl Fn(&T) -> bool) {
    if all.iter().filter(|one| is_of_user(one)).count() >= LIMIT
        && let Some(oldest) = all.iter().position(is_of_user)
    {
        all.remove(oldest);
    }
}

/// The programs that fill items. Its lock is a leaf.
#[derive(Debug, Default)]
pub(super) struct Filling {
    inner: Mutex<Inner>,
    any_hidden: AtomicBool,
}

/// A file that a program has made under a label and holds open.
#[derive(Debug)]
pub struct Held {
    filling: Arc<Filling>,
    group: ThreadGroup,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut inner = self.filling.inner.lock();
        if let Some(filler) = inner.filler(self.group) {
            filler.open = filler.open.saturating_sub(1);
            filler.last = Instant::now();
        }
    }
}

impl Filling {
    /// The thread group of a caller who goes on filling, asked for once in a while.
    fn group_of(&self, caller: &Caller) -> Option<ThreadGroup> {
        {
            let inner = self.inner.lock();
            if let Some((group, uid, told)) = inner.threads.get(&caller.pid)
                && *uid == caller.uid
                && told.elapsed() < PAUSE
            {
                return Some(*group);
            }
        }
        let group = caller.thread_group()?;
        let mut inner = self.inner.lock();
        let threads = &mut inner.threads;
        if threads.len() >= LIMIT {
            threads.retain(|_, (.., told)| told.elapsed() < PAUSE);
        }
        if threads.len() < LIMIT {
            threads.insert(caller.pid, (group, caller.uid, Instant::now()));
        }
        Some(group)
    }

    /// Notes that a caller has made something under a name to be filled.
    fn fills(&self, caller: &Caller) -> Option<ThreadGroup> {
        let group = self.group_of(caller)?;
        self.note(caller, group);
        Some(group)
    }

    fn note(&self, caller: &Caller, group: ThreadGroup) {
        let mut inner = self.inner.lock();
        match inner.filler(group) {
            Some(known) => known.last = Instant::now(),
            None => {
                make_way(&mut inner.fillers, |known| known.uid == caller.uid);
                inner.fillers.push_back(Filler {
                    group,
                    uid: caller.uid,
                    last: Instant::now(),
                    open: 0,
                });
            }
        }
    }

    fn hide(&self, hidden: Hidden) {
        let mut inner = self.inner.lock();
        let all = &mut inner.hidden;
        all.retain(|known| known.until.is_none_or(|until| until > Instant::now()));
        make_way(all, |known| known.uid == hidden.uid);
        all.push_back(hidden);
        self.any_hidden.store(true, Ordering::Relaxed);
    }

    /// Ends what `is_over` says of what is hidden.
    fn end(&self, is_over: impl Fn(&Hidden) -> bool) {
        let mut inner = self.inner.lock();
        inner.hidden.retain_mut(|hidden| {
            if is_over(hidden) {
                hidden.sidecar = None;
            }
            hidden.sidecar.is_some() || hidden.declared.is_some()
        });
        let any = !inner.hidden.is_empty();
        self.any_hidden.store(any, Ordering::Relaxed);
    }
}

impl Namespace {
    /// Notes that a caller has made something in a directory, where that is one to be filled.
    pub fn note_filling(&self, caller: &Caller, parent: &Node) {
        if parent.view.is_deposit() {
            self.filling.fills(caller);
        }
    }

    /// The same for a file that stays open: until it is closed, its maker goes on filling.
    pub fn note_held(&self, caller: &Caller, parent: &Node) -> Option<Held> {
        if !parent.view.is_deposit() {
            return None;
        }
        let group = self.filling.fills(caller)?;
        self.filling.inner.lock().filler(group)?.open += 1;
        Some(Held {
            filling: Arc::clone(&self.filling),
            group,
        })
    }

    /// Whether a caller's program has made something under a label: what it removes there is its own
    /// business, as the temporary files of rsync and git are.
    pub(super) fn has_filled(&self, caller: &Caller) -> bool {
        let Some(group) = caller.thread_group() else {
            return false;
        };
        self.filling.inner.lock().filler(group).is_some()
    }

    /// After a caller has minted an item: what that has put there is not in its way.
    pub(super) fn note_minted(
        &self,
        caller: &Caller,
        item: ItemId,
        place: &Place,
        declared: Option<(NodeId, OsString)>,
    ) {
        if let Some(group) = caller.thread_group() {
            self.filling.note(caller, group);
            self.filling.hide(Hidden {
                group,
                uid: caller.uid,
                item,
                declared,
                sidecar: self.sidecar_at(place),
                until: None,
            });
        }
    }

    /// After a caller has removed an item's sidecar, which is written again: a program that removes it to
    /// put its own in its place, as tar does, must be able to make that.
    pub(super) fn hide_sidecar(&self, caller: &Caller, item: ItemId, place: &Place) {
        if let Some(group) = caller.thread_group()
            && let Some(sidecar) = self.sidecar_at(place)
        {
            self.filling.hide(Hidden {
                group,
                uid: caller.uid,
                item,
                declared: None,
                sidecar: Some(sidecar),
                until: Some(Instant::now() + REMOVED),
            });
        }
    }

    pub(super) fn sidecar_at(&self, place: &Place) -> Option<(u64, u64)> {
        let directory = self.archive.tree().open_item(place).ok()?;
        let stat = rustix::fs::statat(&directory, SIDECAR, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// After an item was removed: nothing of it is hidden when it comes back.
    pub(super) fn forget_filling(&self, item: ItemId) {
        self.filling
            .inner
            .lock()
            .hidden
            .retain(|hidden| hidden.item != item);
    }

    /// The item that this caller has made under a modifier's name, a directory for it while it fills it.
    pub(super) fn declared_by(
        &self,
        caller: &Caller,
        parent: NodeId,
        name: &str,
    ) -> Option<ItemId> {
        if !self.filling.any_hidden.load(Ordering::Relaxed) {
            return None;
        }
        let is_this = |hidden: &Hidden| {
            let declared = hidden.declared.as_ref();
            declared.is_some_and(|(directory, known)| *directory == parent && known == name)
        };
        if !self.filling.inner.lock().hidden.iter().any(is_this) {
            return None;
        }
        let group = caller.thread_group()?;
        let inner = self.filling.inner.lock();
        let mut all = inner.hidden.iter().rev();
        let made = all.find(|hidden| hidden.group == group && is_this(hidden))?;
        inner.is_at_it(group).then_some(made.item)
    }

    /// Whether a name in a directory is a sidecar that is hidden from a caller. A look by another program
    /// under the same name, or by its maker after a pause, ends that.
    pub(super) fn is_hidden_from(&self, caller: &Caller, parent: &Node, name: &OsStr) -> bool {
        let Kind::Item(item) = parent.kind else {
            return false;
        };
        if name != SIDECAR || !self.filling.any_hidden.load(Ordering::Relaxed) {
            return false;
        }
        // Under which names it counts: those given by its maker, or for a while any.
        let counts = |hidden: &Hidden| {
            hidden.item == item
                && hidden.sidecar.is_some()
                && match hidden.until {
                    None => parent.view.is_deposit(),
                    Some(until) => until > Instant::now(),
                }
        };
        if !self.filling.inner.lock().hidden.iter().any(counts) {
            return false;
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = parent
            .file()
            .and_then(|above| rustix::fs::statat(&*above, name, flags));
        let Ok(stat) = found else {
            return false;
        };
        let group = caller.thread_group();
        let is_hidden = {
            let inner = self.filling.inner.lock();
            inner
                .hidden
                .iter()
                .filter(|hidden| counts(hidden))
                .any(|hidden| {
                    hidden.sidecar == Some((stat.st_dev, stat.st_ino))
                        && Some(hidden.group) == group
                        && (hidden.until.is_some() || inner.is_at_it(hidden.group))
                })
        };
        if !is_hidden {
            self.filling.end(|hidden| {
                counts(hidden) && (hidden.until.is_none() || Some(hidden.group) == group)
            });
        }
        is_hidden
    }

    /// Before a caller makes a name in an item: what is there and hidden from it goes, as far as the
    /// caller may remove it itself. Gives the name where something went: other trees may know it.
    pub fn make_way<'a>(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &'a OsStr,
    ) -> Outcome<Option<&'a OsStr>> {
        let has_gone = self.replace_withdrawn(caller, parent, name)?;
        if !self.is_hidden_from(caller, parent, name) {
            return Ok(has_gone.then_some(name));
        }
        if let Kind::Item(item) = parent.kind {
            let above = parent.file()?;
            match caller.act(|| inside::remove(above.as_fd(), name, false)) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            self.filling.end(|hidden| hidden.item == item);
        }
        Ok(Some(name))
    }
}
