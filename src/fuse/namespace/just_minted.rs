//! The just-minted overlay: what a program sees of an item that it has just minted and is depositing into.
//!
//! A program that has just made a directory expects it to be empty. If the directory is a minted item, the
//! sidecar is in it nevertheless. So under the name that the program gave, its own thread group does not
//! find the sidecar until it makes one, until it has paused for [`PAUSE`], or until another program looks for
//! the sidecar there. By the item's own names every program finds it. A masked sidecar is identified by its
//! inode number: no other file is ever masked, whatever is renamed into its place.

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
use super::timer::Timer;
use crate::archive::store::ItemId;
use crate::archive::tree::{Place, SIDECAR};
use crate::fuse::inode::{Node, NodeId, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::{Caller, ThreadGroup};

/// A program that has made nothing for so long, and has no file open that it has made, has paused.
const PAUSE: Duration = Duration::from_secs(1);
/// The time that a sidecar that was removed stays masked for the program that removed it.
const REMOVED: Duration = Duration::from_secs(1);
/// The number of programs, and items that they have minted, that are remembered for each user.
const LIMIT: usize = 256;

/// A program that deposits: it makes files under a label or a modifier's name.
#[derive(Debug)]
struct Depositor {
    group: ThreadGroup,
    uid: u32,
    /// The time at which it last made or closed something.
    last: Instant,
    /// The number of files that it has open and has made.
    open: usize,
}

/// A sidecar or a modifier's name that is something else to the program that has minted the item.
#[derive(Debug)]
struct Masked {
    group: ThreadGroup,
    uid: u32,
    item: ItemId,
    /// The directory and name under which the item was made, for a modifier.
    declared: Option<(NodeId, OsString)>,
    /// Device and inode number of the sidecar.
    sidecar: Option<(u64, u64)>,
    /// The time until when it is masked in any tree; None: under the name that the depositor gave, while it deposits.
    until: Option<Instant>,
}

impl Masked {
    /// Whether it counts under a name of an item in a tree: under those that the depositor gave, or under any for a
    /// while.
    fn counts(&self, item: ItemId, view: View, now: Instant) -> bool {
        self.item == item
            && self.sidecar.is_some()
            && match self.until {
                None => view.is_deposit(),
                Some(until) => until > now,
            }
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// The thread groups that were looked up within [`PAUSE`], by thread.
    threads: HashMap<u32, (ThreadGroup, u32, Instant)>,
    depositors: VecDeque<Depositor>,
    masked: VecDeque<Masked>,
    /// Items from which a user has removed a file under their labels.
    lost_files: VecDeque<(u32, ItemId)>,
}

impl Inner {
    fn depositor(&mut self, group: ThreadGroup) -> Option<&mut Depositor> {
        self.depositors
            .iter_mut()
            .find(|known| known.group == group)
    }

    fn is_depositing(&self, group: ThreadGroup, now: Instant) -> bool {
        let known = self.depositors.iter().find(|known| known.group == group);
        known.is_some_and(|known| known.open > 0 || now < known.last + PAUSE)
    }
}

/// Removes a user's oldest entry if there are [`LIMIT`] of them.
fn evict_oldest<T>(all: &mut VecDeque<T>, is_of_user: impl Fn(&T) -> bool) {
    if all.iter().filter(|one| is_of_user(one)).count() >= LIMIT
        && let Some(oldest) = all.iter().position(is_of_user)
    {
        all.remove(oldest);
    }
}

/// The depositing programs, and what is masked for them. No other lock is taken under its lock.
#[derive(Debug)]
pub(super) struct JustMinted {
    timer: Arc<dyn Timer>,
    inner: Mutex<Inner>,
    any_masked: AtomicBool,
}

/// A file that a depositor has made and has open: the deposit goes on until it is dropped.
#[derive(Debug)]
pub struct OpenDeposit {
    just_minted: Arc<JustMinted>,
    group: ThreadGroup,
}

impl Drop for OpenDeposit {
    fn drop(&mut self) {
        let mut inner = self.just_minted.inner.lock();
        if let Some(depositor) = inner.depositor(self.group) {
            depositor.open = depositor.open.saturating_sub(1);
            depositor.last = self.just_minted.timer.now();
        }
    }
}

impl JustMinted {
    pub(super) fn new(timer: Arc<dyn Timer>) -> JustMinted {
        JustMinted {
            timer,
            inner: Mutex::default(),
            any_masked: AtomicBool::new(false),
        }
    }

    /// The thread group of a caller who goes on depositing, cached for [`PAUSE`].
    fn group_of(&self, caller: &Caller) -> Option<ThreadGroup> {
        let now = self.timer.now();
        {
            let inner = self.inner.lock();
            if let Some((group, uid, since)) = inner.threads.get(&caller.pid)
                && *uid == caller.uid
                && now < *since + PAUSE
            {
                return Some(*group);
            }
        }
        let group = caller.thread_group()?;
        let mut inner = self.inner.lock();
        let threads = &mut inner.threads;
        if threads.len() >= LIMIT {
            threads.retain(|_, (.., since)| now < *since + PAUSE);
        }
        if threads.len() < LIMIT {
            threads.insert(caller.pid, (group, caller.uid, now));
        }
        Some(group)
    }

    /// Notes that a caller has made something in a deposit.
    fn note_caller(&self, caller: &Caller) -> Option<ThreadGroup> {
        let group = self.group_of(caller)?;
        self.note(caller, group);
        Some(group)
    }

    fn note(&self, caller: &Caller, group: ThreadGroup) {
        let now = self.timer.now();
        let mut inner = self.inner.lock();
        match inner.depositor(group) {
            Some(known) => known.last = now,
            None => {
                evict_oldest(&mut inner.depositors, |known| known.uid == caller.uid);
                inner.depositors.push_back(Depositor {
                    group,
                    uid: caller.uid,
                    last: now,
                    open: 0,
                });
            }
        }
    }

    /// Notes that a caller has removed a file of an item under its label.
    pub(super) fn note_lost_file(&self, caller: &Caller, item: ItemId) {
        let all = &mut self.inner.lock().lost_files;
        if !all.contains(&(caller.uid, item)) {
            evict_oldest(all, |(uid, _)| *uid == caller.uid);
            all.push_back((caller.uid, item));
        }
    }

    pub(super) fn has_lost_files(&self, item: ItemId) -> bool {
        let inner = self.inner.lock();
        inner.lost_files.iter().any(|(_, known)| *known == item)
    }

    fn mask(&self, masked: Masked) {
        let now = self.timer.now();
        let mut inner = self.inner.lock();
        let all = &mut inner.masked;
        all.retain(|known| known.until.is_none_or(|until| until > now));
        evict_oldest(all, |known| known.uid == masked.uid);
        all.push_back(masked);
        self.any_masked.store(true, Ordering::Relaxed);
    }

    /// Unmasks the sidecars for which `is_over` returns true.
    fn unmask(&self, is_over: impl Fn(&Masked) -> bool) {
        let mut inner = self.inner.lock();
        inner.masked.retain_mut(|masked| {
            if is_over(masked) {
                masked.sidecar = None;
            }
            masked.sidecar.is_some() || masked.declared.is_some()
        });
        let any = !inner.masked.is_empty();
        self.any_masked.store(any, Ordering::Relaxed);
    }
}

impl Namespace {
    /// Notes that a caller has made something in a directory, if that is in a deposit.
    pub(super) fn note_deposit(&self, caller: &Caller, parent: &Node) {
        if parent.view.is_deposit() {
            self.just_minted.note_caller(caller);
        }
    }

    /// The same for a file that stays open: until it is closed, the caller goes on depositing.
    pub(super) fn note_open_deposit(&self, caller: &Caller, parent: &Node) -> Option<OpenDeposit> {
        if !parent.view.is_deposit() {
            return None;
        }
        let group = self.just_minted.note_caller(caller)?;
        self.just_minted.inner.lock().depositor(group)?.open += 1;
        Some(OpenDeposit {
            just_minted: Arc::clone(&self.just_minted),
            group,
        })
    }

    /// After a caller has minted an item: its sidecar is masked for the caller.
    pub(super) fn note_minted(
        &self,
        caller: &Caller,
        item: ItemId,
        place: &Place,
        declared: Option<(NodeId, OsString)>,
    ) {
        if let Some(group) = caller.thread_group() {
            self.just_minted.note(caller, group);
            self.just_minted.mask(Masked {
                group,
                uid: caller.uid,
                item,
                declared,
                sidecar: self.sidecar_at(place),
                until: None,
            });
        }
    }

    /// After a caller has removed an item's sidecar, which is restored: a program that replaces it, as tar
    /// does, must be able to make its own.
    pub(super) fn mask_sidecar(&self, caller: &Caller, item: ItemId, place: &Place) {
        if let Some(group) = caller.thread_group()
            && let Some(sidecar) = self.sidecar_at(place)
        {
            self.just_minted.mask(Masked {
                group,
                uid: caller.uid,
                item,
                declared: None,
                sidecar: Some(sidecar),
                until: Some(self.timer.now() + REMOVED),
            });
        }
    }

    /// Whether a caller's program has minted an item, and nothing has shown since that it has finished.
    pub(super) fn has_just_minted(&self, caller: &Caller, item: ItemId) -> bool {
        let Some(group) = caller.thread_group() else {
            return false;
        };
        let inner = self.just_minted.inner.lock();
        let mut masked = inner.masked.iter();
        masked.any(|it| (it.item, it.group, it.uid, it.until) == (item, group, caller.uid, None))
    }

    pub(super) fn sidecar_at(&self, place: &Place) -> Option<(u64, u64)> {
        let directory = self.archive.tree().open_item(place).ok()?;
        let stat = rustix::fs::statat(&directory, SIDECAR, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// After an item was removed: nothing of it is masked if it is added again.
    pub(super) fn forget_just_minted(&self, item: ItemId) {
        let mut inner = self.just_minted.inner.lock();
        inner.masked.retain(|masked| masked.item != item);
        inner.lost_files.retain(|(_, known)| *known != item);
    }

    /// The item that this caller has minted under a modifier's name, which is a directory for it while it
    /// deposits.
    pub(super) fn minted_as(&self, caller: &Caller, parent: NodeId, name: &str) -> Option<ItemId> {
        if !self.just_minted.any_masked.load(Ordering::Relaxed) {
            return None;
        }
        let is_this = |masked: &Masked| {
            let declared = masked.declared.as_ref();
            declared.is_some_and(|(directory, known)| *directory == parent && known == name)
        };
        if !self.just_minted.inner.lock().masked.iter().any(is_this) {
            return None;
        }
        let group = caller.thread_group()?;
        let inner = self.just_minted.inner.lock();
        let mut all = inner.masked.iter().rev();
        let made = all.find(|masked| masked.group == group && is_this(masked))?;
        inner
            .is_depositing(group, self.timer.now())
            .then_some(made.item)
    }

    /// Whether a name in a directory is a sidecar that is masked for a caller. A lookup by another program
    /// under the same name, or by the depositor after a pause, unmasks it.
    pub(super) fn is_masked_for(&self, caller: &Caller, parent: &Node, name: &OsStr) -> bool {
        let NodeKind::Item(item) = parent.kind else {
            return false;
        };
        let is_masked = name == SIDECAR && self.is_sidecar_masked(caller, parent);
        if name == SIDECAR && !is_masked && self.just_minted.any_masked.load(Ordering::Relaxed) {
            let (group, now) = (caller.thread_group(), self.timer.now());
            self.just_minted.unmask(|masked| {
                masked.counts(item, parent.view, now)
                    && (masked.until.is_none() || Some(masked.group) == group)
            });
        }
        is_masked
    }

    /// Whether the sidecar in a directory is masked for a caller, whose listing leaves it out then.
    pub fn is_sidecar_masked(&self, caller: &Caller, directory: &Node) -> bool {
        let NodeKind::Item(item) = directory.kind else {
            return false;
        };
        if !self.just_minted.any_masked.load(Ordering::Relaxed) {
            return false;
        }
        let now = self.timer.now();
        let counts = |masked: &&Masked| masked.counts(item, directory.view, now);
        if self
            .just_minted
            .inner
            .lock()
            .masked
            .iter()
            .find(counts)
            .is_none()
        {
            return false;
        }
        let found = directory
            .file()
            .and_then(|above| rustix::fs::statat(&*above, SIDECAR, AtFlags::SYMLINK_NOFOLLOW));
        let (Ok(stat), Some(group)) = (found, caller.thread_group()) else {
            return false;
        };
        let inner = self.just_minted.inner.lock();
        inner.masked.iter().filter(counts).any(|masked| {
            masked.sidecar == Some((stat.st_dev, stat.st_ino))
                && masked.group == group
                && (masked.until.is_some() || inner.is_depositing(group, now))
        })
    }

    /// Before a caller makes a name in an item: removes the file of that name that the caller cannot see, with
    /// the caller's rights. Returns the name if a file was removed, because other trees may know it.
    pub(super) fn make_room<'a>(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &'a OsStr,
    ) -> ErrnoResult<Option<&'a OsStr>> {
        if !self.is_masked_for(caller, parent, name) {
            return Ok(None);
        }
        if let NodeKind::Item(item) = parent.kind {
            let above = parent.file()?;
            match caller.act(|| inside::remove(above.as_fd(), name, Removal::Unlink)) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            self.just_minted.unmask(|masked| masked.item == item);
        }
        Ok(Some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::timer::ManualTimer;
    use super::*;

    fn overlay() -> (JustMinted, Arc<ManualTimer>) {
        let timer = Arc::new(ManualTimer::default());
        let handed_in = Arc::clone(&timer) as Arc<dyn Timer>;
        (JustMinted::new(handed_in), timer)
    }

    fn caller() -> Caller {
        Caller {
            uid: 1000,
            gid: 1000,
            pid: std::process::id(),
        }
    }

    fn masked(uid: u32, item: i64, until: Option<Instant>) -> Masked {
        Masked {
            group: caller().thread_group().expect("of this process"),
            uid,
            item: ItemId(item),
            declared: None,
            sidecar: Some((1, 1)),
            until,
        }
    }

    fn items(overlay: &JustMinted) -> Vec<(u32, i64)> {
        let inner = overlay.inner.lock();
        inner
            .masked
            .iter()
            .map(|one| (one.uid, one.item.0))
            .collect()
    }

    #[test]
    fn a_users_oldest_sidecar_is_unmasked_for_a_new_one() {
        let (overlay, _) = overlay();
        overlay.mask(masked(2, 1, None));
        for item in 0..LIMIT as i64 {
            overlay.mask(masked(1, item, None));
        }
        assert_eq!(items(&overlay).len(), LIMIT + 1);
        overlay.mask(masked(1, 4711, None));
        let left = items(&overlay);
        assert_eq!(left.len(), LIMIT + 1);
        assert!(left.contains(&(2, 1)) && left.contains(&(1, 1)) && left.contains(&(1, 4711)));
        assert!(!left.contains(&(1, 0)));
    }

    #[test]
    fn a_removed_sidecar_is_masked_for_its_time() {
        let (overlay, timer) = overlay();
        overlay.mask(masked(1, 1, Some(timer.now() + REMOVED)));
        overlay.mask(masked(1, 2, None));
        timer.sleep(REMOVED - Duration::from_millis(1));
        overlay.mask(masked(1, 3, None));
        assert_eq!(items(&overlay), [(1, 1), (1, 2), (1, 3)]);
        timer.sleep(Duration::from_millis(1));
        overlay.mask(masked(1, 4, None));
        assert_eq!(items(&overlay), [(1, 2), (1, 3), (1, 4)]);
        overlay.unmask(|masked| masked.item != ItemId(3));
        assert_eq!(items(&overlay), [(1, 3)]);
        assert!(overlay.any_masked.load(Ordering::Relaxed));
        overlay.unmask(|_| true);
        assert!(!overlay.any_masked.load(Ordering::Relaxed));
    }

    #[test]
    fn the_program_of_a_thread_is_looked_up_after_a_pause() {
        let (overlay, timer) = overlay();
        let (caller, group) = (caller(), caller().thread_group().expect("this process"));
        let other = ThreadGroup::default();
        let remember = |thread: u32, uid: u32| {
            let now = timer.now();
            let threads = &mut overlay.inner.lock().threads;
            threads.insert(thread, (other, uid, now));
        };
        remember(caller.pid, caller.uid);
        assert_eq!(overlay.group_of(&caller), Some(other));
        timer.sleep(PAUSE - Duration::from_millis(1));
        assert_eq!(overlay.group_of(&caller), Some(other));
        timer.sleep(Duration::from_millis(1));
        assert_eq!(overlay.group_of(&caller), Some(group));
        // The number of an ended thread may be that of another user's by now.
        remember(caller.pid, caller.uid + 1);
        assert_eq!(overlay.group_of(&caller), Some(group));
        // So many threads are remembered, and those first whose time is over make way.
        overlay.inner.lock().threads.clear();
        for thread in 0..LIMIT as u32 {
            remember(u32::MAX - thread, 1);
        }
        let known = || overlay.inner.lock().threads.len();
        assert_eq!(overlay.group_of(&caller), Some(group));
        assert_eq!(known(), LIMIT);
        timer.sleep(PAUSE - Duration::from_millis(1));
        remember(u32::MAX, 1);
        timer.sleep(Duration::from_millis(1));
        assert_eq!(overlay.group_of(&caller), Some(group));
        assert_eq!(known(), 2);
    }

    #[test]
    fn a_program_deposits_until_it_pauses_with_nothing_open() {
        let (overlay, timer) = overlay();
        let (caller, other) = (caller(), ThreadGroup::default());
        let is_depositing = |group| overlay.inner.lock().is_depositing(group, timer.now());
        let group = overlay.note_caller(&caller).expect("this process");
        overlay.note(&caller, other);
        assert!(is_depositing(group) && is_depositing(other));
        timer.sleep(PAUSE / 2);
        overlay.note(&caller, group);
        timer.sleep(PAUSE / 2);
        assert!(is_depositing(group) && !is_depositing(other));
        assert_eq!(overlay.inner.lock().depositors.len(), 2);
    }
}
