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
//!
//! The modules by their subjects:
//!
//! - The store: `init`, `open`, `lock`, `services` (of other processes), `status`, `facts`, `own_files`, `one_database`, `full_disk`.
//! - Dates and mint: `dates` (in memory), `ledger` (on disk), `mint`, `settle_queue`, `settle`.
//! - Items: `identifiers`, `name_spaces`, `lookup`, `register`, `take_in`, `import`, `ownership_transfer`.
//! - Users of an Archive: `views` (who reads, adds, changes, and the lock for changes), `seen` (the part of an index that one may see), `events` (what happens to items).
//! - Sidecars: `sidecars`, `refused`, `rewritten`, `admission` (which names an item may get).
//! - Relations: `relations`, `far_ends` (the other item), `resolve` (modifiers).
//! - Users: `actor`, `rights` (who may write), `public` (who may read), `drafts` (who may enter), `seal` (what changes no more), `withdrawal` (kept, and not shown), `event_log`, `history` and `published_log` (who did what), `told` (to whom that is told), `earlier` (what others tell of an item).
//! - Copies: `copies` (where they are, and whether they are enough), `report` (what can be shown of the preservation).
//! - Content: `publish` (files), `content` (in numbers), `access` (what the public may read), `directory` (names in one directory), `describe` (descriptions), `search`, `links_out`.
//! - Agreement of tree and index: `recovery_log`, `leaves` (the directories of items), `recovery` (after a crash), `work` (after changes beside the mount), `check` (fsck, reindex).
//! - Hosts that share a store: `peers`.
//! - Errors: `error`.

mod access;
mod actor;
mod admission;
mod check;
mod content;
mod copies;
mod dates;
mod describe;
mod directory;
mod drafts;
mod earlier;
mod error;
mod event_log;
mod events;
mod facts;
mod far_ends;
mod full_disk;
mod history;
mod identifiers;
mod import;
mod init;
mod leaves;
mod ledger;
mod links_out;
mod lock;
mod lookup;
mod mint;
mod name_spaces;
mod one_database;
mod open;
mod own_files;
mod ownership_transfer;
mod peers;
mod public;
mod publish;
mod published_log;
mod recovery;
mod recovery_log;
mod refused;
mod register;
mod relations;
mod report;
mod resolve;
mod rewritten;
mod rights;
mod seal;
mod search;
mod seen;
mod services;
mod settle;
mod settle_queue;
mod sidecars;
mod status;
mod take_in;
#[cfg(test)]
pub(crate) mod testing;
mod told;
mod views;
mod withdrawal;
mod work;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use crate::os::clock::{Clock, SystemClock};
pub use actor::{Actor, OwnerOnDisk, Process, Stranger, may_replace};
pub use check::{CheckCode, CheckFinding, CheckReport, ItemProgress, Severity, metadata_problems};
pub use content::{ContentChange, watch_content};
pub use copies::{CopyFigures, ItemCopies};
pub use describe::{FileList, RunAs};
pub use directory::PublicDirectory;
pub use drafts::{closed, is_draft, opened};
pub use error::{ArchiveError, Holder};
pub use event_log::{Event, log_event};
pub use events::{Happened, Position, RelationEvent, Subject, catch_up, present};
pub use facts::{Facts, is_email};
pub use history::{
    event_in, keep_log, keeps_history, leave_event, line_of_event, log_of, premis_event_in,
};
pub use import::Planned;
pub use init::Setup;
pub use lock::{holder, is_held_by};
pub use lookup::{read_written, reader_of};
pub use mint::{Begun, Relative};
pub use name_spaces::{change_name_spaces, name_spaces};
pub use open::StoreLock;
pub use own_files::{BACKUP_NOTE, DATABASE, FACTS};
pub use ownership_transfer::{OwnershipTransfer, Role, TransferLock, TransferRecord};
pub use peers::watch_peers;
use publish::NewestTimes;
pub use publish::{Listing, PublicFile, ReadAgain, is_below_hidden};
pub use published_log::{LogFile, PublishedLog};
pub use recovery_log::WriteIntent;
pub use refused::{Bringing, RefusedSidecar};
pub use report::{Met, PreservationReport, ReportCell};
pub use resolve::{Claims, GoneRelation, Related, Relations, matching_translation};
pub use seal::watch_seals;
pub use search::{
    PUBLIC_SEARCH_FILE, PUBLIC_TEXT_FILE, SEARCH_FILE, SearchCache, SearchIndexes, SearchPage,
    SearchScope, SearchStop, TEXT_FILE, WrittenFiles,
};
pub use seen::{attribute_of, line_of, line_of_mark, lines, mark_in, names_in_mount, record_in};
pub use services::{SERVICE_FILES, Service, ServiceRecord, ServiceState, services};
pub use sidecars::{Acceptance, Fact};
pub use status::{IndexState, PendingTransfer, Status, names_of_place};
pub use told::MOST_TOLD;
pub use views::{Depositor, Editor, Keeper, ReadAs};
pub use work::{LevelWork, Taken};

use content::ContentChanges;
use dates::DateLedger;
use recovery_log::RecoveryLog;
use rewritten::RewrittenSidecars;
use settle_queue::SettleQueue;
use withdrawal::LastTexts;

use parking_lot::Mutex;

use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::log_files::LogWriter;
use crate::archive::store::{By, Store};
use crate::archive::tree::Tree;
use crate::formats::base_url::BaseUrl;
use crate::formats::history::EventKind;
use crate::formats::name_spaces::NameSpaces;
use crate::formats::premis::PremisEvent;

/// The longest wait of a request to mint. A request that would have to wait longer is refused.
pub const WAIT_LIMIT: Duration = Duration::from_secs(10);

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
    last_texts: LastTexts,
    newest: NewestTimes,
    content: Arc<ContentChanges>,
    /// The table of name spaces, see [`Archive::keep_name_spaces`].
    name_spaces: OnceLock<NameSpaces>,
    /// The files of the log, if this process has written to it.
    log: Mutex<Option<LogWriter>>,
    /// The events of an item, as the daemon of a mount tells them to this user.
    told: OnceLock<Vec<PremisEvent>>,
    lock: Option<lock::Hold>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Builds an Archive from its parts, without any dates.
    fn over(
        facts: Facts,
        tree: Tree,
        store: Store,
        clock: Box<dyn Clock>,
        lock: Option<lock::Hold>,
    ) -> Archive {
        let (tree, store) = (Arc::new(tree), Arc::new(store));
        Archive {
            edits: RankedMutex::new(Rank::Changes, ()),
            dates: DateLedger::after(facts.granularity, None),
            recovery: RecoveryLog::new(Arc::clone(&tree), Arc::clone(&store)),
            minted: SettleQueue::new(Arc::clone(&tree), Arc::clone(&store)),
            rewritten: RewrittenSidecars::default(),
            last_texts: LastTexts::default(),
            newest: NewestTimes::default(),
            content: Arc::default(),
            name_spaces: OnceLock::new(),
            log: Mutex::default(),
            told: OnceLock::new(),
            facts,
            tree,
            store,
            clock,
            lock,
        }
    }

    /// The identity of this Archive.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Sets the URL at which it is served, in place of that in `archive.ibi`.
    #[must_use]
    pub fn served_at(mut self, url: BaseUrl) -> Archive {
        self.facts.url = Some(url);
        self
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
        if let Some(lock) = self.alone() {
            lock.mounted_at(mount_point);
        }
        if let Err(error) = self.store.mounted_at(&mount_point.to_string_lossy()) {
            log::warn!("the index does not say where this store is mounted: {error}");
        }
        let place = mount_point.to_string_lossy();
        self.tell(By::of(&Process), EventKind::Mounted, None, &place);
        self.keeper().write_down();
    }

    /// Syncs minted items and writes the ledger for the next start. The Archive does not depend on
    /// it, but it also protects a store whose database is lost afterwards.
    pub fn close(&self) {
        self.keeper().write_down();
        self.keeper().end_content();
        self.keeper().end_history();
        if self.lock.is_some() {
            self.store.leave();
        }
    }

    /// The lock of a process that has the store to itself.
    fn alone(&self) -> Option<&lock::Lock> {
        match &self.lock {
            Some(lock::Hold::Alone(lock)) => Some(lock),
            Some(lock::Hold::Shared(_)) | None => None,
        }
    }

    /// Whether other hosts may have the store open for writing, too.
    pub fn is_shared(&self) -> bool {
        matches!(self.lock, Some(lock::Hold::Shared(_)))
    }

    fn writable(&self) -> Result<(), ArchiveError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(ArchiveError::ReadOnly),
        }
    }
}

#[cfg(test)]
mod tests;
