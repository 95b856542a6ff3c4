//! The Archive: mint, find, relate, resolve, remove. Both front ends and the commands use it.
//!
//! The tree is authoritative and the relation store is its index. A change is written to the tree
//! first and to the index after it, so that after a crash the index can be updated from the tree.
//! Only minting uses the opposite order: a minted item is a synced row of the index, and a start
//! after a crash creates its directory if it is missing.
//!
//! The parts of an [`Archive`] have their own locks and maintain their own invariants: `DateLedger`
//! (the dates given out), `RecoveryLog` (where tree and index may differ), `SettleQueue` (minted
//! items to be synced), `RewrittenSidecars`. The order of all locks is in
//! [`crate::archive::lock_order`], which checks it in debug builds.

mod actor;
mod admission;
mod check;
mod dates;
mod describe;
mod error;
mod facts;
mod full_disk;
mod handover;
mod identifiers;
mod import;
mod init;
mod ledger;
mod lock;
mod mint;
mod own_files;
mod public;
mod publish;
mod recovery;
mod recovery_log;
mod refused;
mod relations;
mod resolve;
mod rewritten;
mod rights;
mod settle;
mod settle_queue;
mod sidecars;
mod status;
#[cfg(test)]
pub(crate) mod testing;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use actor::{Actor, OwnerOnDisk, Process, Stranger, may_replace};
pub use check::{CheckCode, CheckFinding, CheckReport, ItemProgress, Severity};
pub use describe::{FileList, RunAs, persistent_url};
pub use error::{ArchiveError, Holder};
pub use facts::Facts;
pub use handover::{Handover, HandoverLock, Role};
pub use import::Planned;
pub use init::Setup;
pub use lock::{holder, is_held_by};
pub use mint::Relative;
pub use own_files::BACKUP_NOTE;
pub use publish::{Listing, PublicFile};
pub use recovery_log::WriteIntent;
pub use refused::{Bringing, RefusedSidecar};
pub use resolve::{Claims, Related, Relations, matching_translation};
pub use sidecars::{Acceptance, Fact};
pub use status::{IndexState, Minted, Status};

use dates::DateLedger;
use full_disk::with_reserve;
use recovery_log::{Durability, RecoveryLog};
use rewritten::RewrittenSidecars;
use settle_queue::SettleQueue;

use crate::archive::lock_order::{Rank, RankedGuard, RankedMutex};
use crate::archive::store::{Item, ItemId, Record, Store};
use crate::archive::tree::{Creator, Place, Tree};
use crate::formats::item::{Names, State};
use ibi::pairs::Pairs;
use ibi::{AliasPair, Ibi, Ibip, Rep, Timestamp};

/// The longest wait of a request to mint. A request that would have to wait longer is refused.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// A lock on a store: no other process can open it for writing.
#[derive(Debug)]
#[must_use]
pub struct StoreLock(#[allow(dead_code, reason = "held, not read")] lock::Lock);

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The present instant, UTC.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Not the calendar library's own clock, which panics after the last year that it can represent.
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Timestamp::from_unix(
                i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                after.subsec_nanos(),
            ),
            Err(_) => Timestamp::from_unix(0, 0),
        }
    }
}

/// What is done with an `archive.ibi` that differs from the copy in the index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangedFacts {
    Accept,
    Refuse,
}

/// An open Archive.
pub struct Archive {
    facts: Facts,
    tree: Arc<Tree>,
    store: Arc<Store>,
    clock: Box<dyn Clock>,
    /// Serialises changes of the tree and the index.
    edits: RankedMutex<()>,
    dates: DateLedger,
    recovery: RecoveryLog,
    minted: SettleQueue,
    rewritten: RewrittenSidecars,
    lock: Option<lock::Lock>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens a store for writing. Fails with [`ArchiveError::Busy`] while another process has it
    /// open. A missing index is rebuilt from the tree.
    pub fn open(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        let archive = Archive::open_as_it_is(path, clock)?;
        if archive.store.is_empty()? {
            log::warn!("the index is missing; it is rebuilt from the tree");
            archive.reindex(&mut |_| ())?;
        }
        Ok(archive)
    }

    /// Opens a store for writing and does not rebuild an empty index.
    pub fn open_as_it_is(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        // A directory that is not a store is not locked.
        Archive::refuse_other_directories(path)?;
        let lock = lock::Lock::take(&Tree::open_as_it_is(path)?)?;
        Archive::open_held(path, clock, lock, ChangedFacts::Refuse)
    }

    /// Opens a store to rebuild its index, with `archive.ibi` as it is now.
    pub fn open_for_reindex(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        Archive::refuse_other_directories(path)?;
        let lock = lock::Lock::take(&Tree::open_as_it_is(path)?)?;
        Archive::open_held(path, clock, lock, ChangedFacts::Accept)
    }

    fn open_held(
        path: &Path,
        clock: Box<dyn Clock>,
        lock: lock::Lock,
        changed_facts: ChangedFacts,
    ) -> Result<Archive, ArchiveError> {
        let (facts, tree) = Archive::open_tree(path)?;
        let store = Store::open(tree.root())?;
        let archive = Archive::over(facts, tree, store, clock, Some(lock));
        archive.check_facts(changed_facts)?;
        archive.read_ledger()?;
        if let Err(error) = archive.make_again() {
            log::warn!("not all that was minted before a crash is in the tree again: {error}");
        }
        archive.tree.keep_reserve();
        if let Err(error) = archive.recover() {
            log::warn!("the index may say less than the tree after a crash: {error}");
        }
        if let Err(error) = archive.redirect_tombstones() {
            log::warn!("not every record of a removal names who has claimed the original: {error}");
        }
        Ok(archive)
    }

    /// `archive.ibi` determines what is minted. A file that differs from the copy in the index is
    /// accepted only if the caller requests it.
    fn check_facts(&self, changed_facts: ChangedFacts) -> Result<(), ArchiveError> {
        let text = self.tree.read_small(own_files::FACTS)?.unwrap_or_default();
        match self.store.facts()? {
            Some(known) if known == text => Ok(()),
            Some(_) if changed_facts == ChangedFacts::Refuse => Err(ArchiveError::FactsChanged),
            _ => Ok(self.store.set_facts(&text)?),
        }
    }

    fn refuse_other_directories(path: &Path) -> Result<(), ArchiveError> {
        if path.join(own_files::FACTS).is_file() {
            Ok(())
        } else {
            Err(ArchiveError::no_store(path))
        }
    }

    /// Opens a store for reading, beside a process that writes it.
    pub fn open_read_only(path: &Path) -> Result<Archive, ArchiveError> {
        let (facts, tree) = Archive::open_tree(path)?;
        let store = Store::open_read_only(tree.root())?;
        let clock = Box::new(SystemClock);
        Ok(Archive::over(facts, tree, store, clock, None))
    }

    /// Builds an Archive from its parts, without any dates.
    fn over(
        facts: Facts,
        tree: Tree,
        store: Store,
        clock: Box<dyn Clock>,
        lock: Option<lock::Lock>,
    ) -> Archive {
        let (tree, store) = (Arc::new(tree), Arc::new(store));
        Archive {
            edits: RankedMutex::new(Rank::Changes, ()),
            dates: DateLedger::after(facts.granularity, None),
            recovery: RecoveryLog::new(Arc::clone(&tree), Arc::clone(&store)),
            minted: SettleQueue::new(Arc::clone(&tree), Arc::clone(&store)),
            rewritten: RewrittenSidecars::default(),
            facts,
            tree,
            store,
            clock,
            lock,
        }
    }

    /// Prevents other processes from opening a store for writing until the result is dropped.
    pub fn hold(tree: &Tree) -> Result<StoreLock, ArchiveError> {
        Ok(StoreLock(lock::Lock::take(tree)?))
    }

    /// Refuses a backup that was interrupted.
    pub fn refuse_unfinished(path: &Path) -> Result<(), ArchiveError> {
        let is_unfinished = match std::fs::read(path.join(BACKUP_NOTE)) {
            Ok(note) => Pairs::parse(&note).map_or(true, |pairs| pairs.get("finished").is_none()),
            Err(_) => false,
        };
        if is_unfinished {
            Err(ArchiveError::Unfinished {
                path: path.to_owned(),
            })
        } else {
            Ok(())
        }
    }

    fn open_tree(path: &Path) -> Result<(Facts, Tree), ArchiveError> {
        Archive::refuse_other_directories(path)?;
        Archive::refuse_unfinished(path)?;
        let tree = Tree::open(path)?;
        let text = tree.read_small(own_files::FACTS)?.unwrap_or_default();
        Ok((Facts::parse(&text)?, tree))
    }

    /// The identity of this Archive.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The store's directories.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The relation store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Records the mount point, which other processes report in their error message.
    pub fn describe_mount(&self, mount_point: &Path) {
        let Some(lock) = &self.lock else {
            return;
        };
        lock.mounted_at(mount_point);
        self.close();
    }

    /// Takes the lock for changes of items, and first reads the places that an earlier error has queued.
    fn edits(&self) -> RankedGuard<'_, ()> {
        let edits = self.edits.lock();
        if self.lock.is_some() && self.recovery.is_queued() {
            self.replay();
        }
        edits
    }

    fn writable(&self) -> Result<(), ArchiveError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(ArchiveError::ReadOnly),
        }
    }

    /// The item with this identifier, in any form and spelling, including removed items.
    pub fn find(&self, ibi: &Ibi) -> Result<Option<Item>, ArchiveError> {
        Ok(match ibi {
            Ibi::Rep(rep) => self.store.find_by_rep(rep)?,
            Ibi::Ibip(ibip) => match self.store.find_by_ibip(ibip)? {
                Some(item) => Some(item),
                None => self.find_by_former_ibip(ibip)?,
            },
        })
    }

    /// The item that has an IBIp in base 53 as an alias, beside the IBIp that it has now.
    fn find_by_former_ibip(&self, ibip: &Ibip) -> Result<Option<Item>, ArchiveError> {
        Ok(match identifiers::as_alias(ibip) {
            Some(alias) => self.store.find_by_alias(&alias)?,
            None => None,
        })
    }

    /// The item with a name: a rep, an IBIp or a recorded alias. Returns None if the item is unknown.
    pub fn find_named(&self, text: &str) -> Result<Option<Item>, ArchiveError> {
        match Ibi::parse(text) {
            Ok(ibi) => self.find(&ibi),
            Err(error) => match AliasPair::parse(text) {
                Ok(alias) => Ok(self.store.find_by_alias(&alias)?),
                Err(_) => Err(error.into()),
            },
        }
    }

    /// The item that is held here under one of these names.
    pub fn held(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        let found = self.store.find_by_names(names)?;
        Ok(found.filter(|item| item.state != State::Deleted))
    }

    /// The item in the directory of this rep. If a crash has kept a directory out of the index, it
    /// is registered now.
    pub fn item_at(&self, rep: &Rep) -> Result<Item, ArchiveError> {
        match self.store.find_by_rep(rep)? {
            Some(item) if item.state != State::Deleted => Ok(item),
            _ => self.register_in_place(&Names::from(Ibi::Rep(rep.clone()))),
        }
    }

    /// Registers an item whose directory is in the tree, according to its sidecar.
    pub fn register_in_place(&self, names: &Names) -> Result<Item, ArchiveError> {
        // Another thread may just have removed it; it must not be registered again.
        let _edits = self.edits();
        if !self.tree.is_directory(Place::of(names).as_str()) {
            return Err(ArchiveError::Unknown {
                name: names.preferred(),
            });
        }
        // The place gives its name. The owner of its sidecar counts as the user who brings it.
        let (record, _) = self.read_item(names)?;
        let bare = match record.sidecar {
            Some(_) => names.clone(),
            None => record.names,
        };
        let id = self.store.put(&Record::bare(bare.clone(), State::Copy))?;
        let taken = self.with_author(&bare, |author| self.accept(author, id));
        if let Acceptance::Rejected(error) = taken? {
            log::warn!("{error}");
        }
        self.known(id)
    }

    fn known(&self, id: ItemId) -> Result<Item, ArchiveError> {
        self.store.item(id)?.ok_or_else(|| ArchiveError::Unknown {
            name: format!("number {}", id.0),
        })
    }

    /// Registers a directory created for an item that is being copied in. It is a copy until its sidecar
    /// says otherwise. In this Archive's own name space only dates already given out are accepted.
    pub fn register(
        &self,
        actor: &dyn Actor,
        names: &Names,
        creator: Creator,
    ) -> Result<Item, ArchiveError> {
        self.writable()?;
        self.refuse_unminted(actor, names)?;
        let known = self.store.find_by_names(names)?;
        let names = match &known {
            Some(item) if item.state != State::Deleted => {
                return Err(ArchiveError::Exists(item.names.clone().into()));
            }
            // A removed item that is restored under one of its names gets all of them.
            Some(item) => {
                self.refuse_elsewhere(actor, names, &item.names)?;
                item.names.clone()
            }
            None => names.clone(),
        };
        let place = Place::of(&names);
        let change = self.recovery.begin(&place, Durability::Unsynced)?;
        self.tree.make_item(&place, creator)?;
        let id = match self.store.put(&Record::bare(names, State::Copy)) {
            Ok(id) => id,
            Err(error) => {
                // The directory is still empty, so removing it reverts the change.
                if self.tree.remove_item(&place).is_ok() {
                    change.done();
                }
                return Err(error.into());
            }
        };
        change.done();
        self.known(id)
    }

    /// Whether a rep is in this Archive's own name space.
    pub fn is_own_rep(&self, rep: &Rep) -> Result<bool, ArchiveError> {
        let own = self.facts.rep_prefix()?.canonical();
        Ok(rep
            .canonical()
            .strip_prefix(&own)
            .is_some_and(|rest| rest.starts_with('/')))
    }

    /// The rep in the spelling of its levels here, so that each level is a single directory.
    fn as_spelled_here(&self, rep: &Rep) -> Result<Rep, ArchiveError> {
        let [subdomain, word, year, time] = rep.components();
        let mut path = "col".to_owned();
        for component in [subdomain, word, year] {
            let spelled = self.tree.spelling_in(&path, component)?;
            path = format!("{path}/{}", spelled.as_deref().unwrap_or(component));
        }
        let below = path.strip_prefix("col/").unwrap_or(&path);
        Ok(Rep::parse(&format!("{below}/{time}"))?)
    }

    /// Removes an item that contains nothing but its sidecar, and writes a tombstone.
    pub fn remove(&self, id: ItemId) -> Result<(), ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        let item = self.known(id)?;
        if item.names.matches(&self.facts.service) {
            return Err(ArchiveError::ServiceItem);
        }
        let place = Place::of(&item.names);
        if !self.tree.holds_only_sidecar(&place)? {
            return Err(ArchiveError::NotEmpty(item.names.into()));
        }
        with_reserve(&self.tree, || {
            let change = self.recovery.begin(&place, Durability::Synced)?;
            self.write_tombstone(&item, &place)?;
            change.done();
            Ok(())
        })?;
        if item.state == State::Original {
            log::warn!(
                "original of {} removed; copies elsewhere have no original now ('ibifs claim')",
                item.names
            );
        }
        Ok(())
    }

    /// Writes the tombstone of an item.
    fn write_tombstone(&self, item: &Item, place: &Place) -> Result<(), ArchiveError> {
        let tombstone = self.tombstone_of(item)?;
        let bytes = tombstone.to_bytes();
        self.tree.write_tombstone(place, &bytes)?;
        if self.tree.is_directory(place.as_str()) {
            self.tree.remove_item(place)?;
        }
        self.store
            .put(&self.record_of_removed(item.names.clone(), &tombstone, bytes))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
