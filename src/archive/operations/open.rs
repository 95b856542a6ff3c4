//! Opens a store: for writing, to rebuild its index, or for reading.

use std::path::Path;

use rustix::fs::{AtFlags, OFlags};

use super::lock::Hold;
use super::{
    Archive, ArchiveError, BACKUP_NOTE, Clock, Facts, Process, Stranger, SystemClock, lock,
    one_database, own_files,
};
use crate::archive::scrub::Finished;
use crate::archive::store::{By, HostState, Sharing, Store, StoreError, StoreUse};
use crate::archive::tree::Tree;
use crate::formats::history::EventKind;
use crate::os::mounts::is_trusted;
use crate::os::opening::read_regular;
use crate::sql::index_url::NamedBy;
use ibi::Timestamp;
use ibi::pairs::Pairs;

/// A lock on a store: no other process can open it for writing.
#[derive(Debug)]
#[must_use]
pub struct StoreLock(#[allow(dead_code, reason = "held, not read")] lock::Lock);

/// The treatment of an `archive.ibi` that differs from the copy in the index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangedFacts {
    Accept,
    Refuse,
}

impl Archive {
    /// Opens a store for writing. Fails with [`ArchiveError::Busy`] while another process has it
    /// open. A missing index is rebuilt from the tree.
    pub fn open(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        let archive = Archive::open_as_it_is(path, clock)?;
        if archive.store.is_empty()? {
            log::warn!("the index is missing; it is rebuilt from the tree");
            archive.keeper().reindex(&mut |_| ())?;
        }
        Ok(archive)
    }

    /// Opens a store for writing and does not rebuild an empty index.
    pub fn open_as_it_is(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        // A directory that is not a store is not locked.
        Archive::refuse_other_directories(path)?;
        Archive::refuse_generation(path)?;
        let lock = lock::Lock::take(&Tree::open_as_it_is(path)?)?;
        Archive::open_held(path, clock, Hold::Alone(lock), ChangedFacts::Refuse)
    }

    /// Opens a store to rebuild its index, with `archive.ibi` as it is now.
    pub fn open_for_reindex(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        Archive::refuse_other_directories(path)?;
        Archive::refuse_generation(path)?;
        let lock = lock::Lock::take(&Tree::open_as_it_is(path)?)?;
        Archive::open_held(path, clock, Hold::Alone(lock), ChangedFacts::Accept)
    }

    /// Opens a store for writing, beside processes of any host that do the same. Its index must be in a server. A missing
    /// index is rebuilt from the tree first, if no other process has the store open.
    pub fn open_shared(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        Archive::refuse_other_directories(path)?;
        Archive::refuse_generation(path)?;
        let tree = Tree::open_as_it_is(path)?;
        let (facts, _) = Archive::open_tree(path)?;
        let Some(index) = &facts.index else {
            return Err(ArchiveError::IndexInFile {
                path: path.to_owned(),
            });
        };
        if Store::open(tree.root(), Some(index))?.is_empty()? {
            Archive::open(path, Box::new(SystemClock))?.close();
        }
        let lock = lock::Lock::share(&tree)?;
        Archive::open_held(path, clock, Hold::Shared(lock), ChangedFacts::Refuse)
    }

    /// Opens a store for writing: beside those that share it, if there are any, otherwise alone.
    pub fn open_beside(path: &Path, clock: Box<dyn Clock>) -> Result<Archive, ArchiveError> {
        let shares = |host: &HostState| host.sharing == Sharing::Shared;
        if Archive::writers(path).iter().any(shares) {
            Archive::open_shared(path, clock)
        } else {
            Archive::open(path, clock)
        }
    }

    /// The processes of any host that write a store whose index is in a server; none if that does not answer.
    pub(super) fn writers(path: &Path) -> Vec<HostState> {
        let hosts = || -> Result<Vec<HostState>, ArchiveError> {
            // Nothing is made in a store that may be damaged.
            let tree = Tree::open_as_it_is(path)?;
            match &facts_of(&tree)?.index {
                None => Ok(Vec::new()),
                index => Ok(Store::open_read_only(tree.root(), index.as_ref())?.hosts()?),
            }
        };
        let mut hosts = hosts().unwrap_or_default();
        hosts.retain(HostState::is_alive);
        hosts
    }

    pub(super) fn open_held(
        path: &Path,
        clock: Box<dyn Clock>,
        lock: Hold,
        changed_facts: ChangedFacts,
    ) -> Result<Archive, ArchiveError> {
        let (facts, tree) = Archive::open_tree(path)?;
        one_database::record(&tree, facts.index.as_ref())?;
        let older = if facts.history {
            version_of_older(&tree, &facts)
        } else {
            None
        };
        let store = Store::open(tree.root(), facts.index.as_ref())?;
        store.enter(match lock {
            Hold::Alone(_) => Sharing::Alone,
            Hold::Shared(_) => Sharing::Shared,
        })?;
        let archive = Archive::over(facts, tree, store, clock, Some(lock));
        if archive.facts.history {
            archive.store.begin_history();
            // Before anything is told: a new index gets the events in their order.
            if let Err(error) = archive.read_log() {
                log::warn!("history may be incomplete: {error}");
            }
            if let Some(version) = older {
                let note = format!("from version {version}");
                archive.tell(By::of(&Process), EventKind::Upgraded, None, &note);
            }
        }
        archive.check_facts(changed_facts)?;
        if archive.is_shared() {
            archive.keeper().stage_as_entered();
            archive.dates.set_ahead(archive.keeper().ahead_in_ledger());
        } else {
            archive.keeper().read_ledger()?;
        }
        if let Err(error) = archive.edit(&Stranger, |it| it.make_again()) {
            log::warn!("not all that was minted before a crash is in the tree again: {error}");
        }
        archive.tree.keep_reserve();
        if let Err(error) = archive.edit(&Stranger, |it| it.recover_marked()) {
            log::warn!("the index may say less than the tree after a crash: {error}");
        }
        if let Err(error) = archive.keeper().recover_content() {
            log::warn!("the size of items may be wrong after a crash: {error}");
        }
        archive.store.read_seals()?;
        if let Err(error) = archive.edit(&Stranger, |it| it.record_all_speakers()) {
            log::warn!("not all declarations of an earlier version count: {error}");
        }
        if let Err(error) = archive.edit(&Stranger, |it| it.redirect_tombstones()) {
            log::warn!("not every record of a removal names who has claimed the original: {error}");
        }
        Ok(archive)
    }

    /// `archive.ibi` determines what is minted. A file that differs from the copy in the index is
    /// accepted only if the caller requests it.
    fn check_facts(&self, changed_facts: ChangedFacts) -> Result<(), ArchiveError> {
        let text = self.tree.read_small(own_files::FACTS)?.unwrap_or_default();
        let known = self.store.facts()?;
        let is_changed = known.as_ref().is_some_and(|known| *known != text);
        let had_history = |text: &Vec<u8>| Facts::parse(text).is_ok_and(|it| it.history);
        let is_end = is_changed && !self.facts.history && known.as_ref().is_some_and(had_history);
        match known {
            Some(known) if known == text => Ok(()),
            // URLs are not part of what is minted.
            Some(known)
                if Facts::parse(&known).is_ok_and(|known| known.is_same_archive(&self.facts)) =>
            {
                Ok(self.store.set_facts(&text)?)
            }
            Some(_) if changed_facts == ChangedFacts::Refuse => Err(ArchiveError::FactsChanged),
            _ => Ok(self.store.set_facts(&text)?),
        }?;
        if is_end {
            self.tell_end(By::of(&Process));
        } else if is_changed {
            self.tell(By::of(&Process), EventKind::PolicyChanged, None, "");
        }
        Ok(())
    }

    pub(super) fn refuse_other_directories(path: &Path) -> Result<(), ArchiveError> {
        if path.join(own_files::FACTS).is_file() {
            Ok(())
        } else {
            Err(ArchiveError::no_store(path))
        }
    }

    /// Opens a store for reading, beside a process that writes it.
    pub fn open_read_only(path: &Path) -> Result<Archive, ArchiveError> {
        let (facts, tree) = Archive::open_tree(path)?;
        let index = facts.index.as_ref();
        let store = if Archive::is_generation(path) {
            // Nothing writes it: no auxiliary files are made beside it.
            Store::open_as_it_is(tree.root(), index, StoreUse::Idle)?
        } else {
            Store::open_read_only(tree.root(), index)?
        };
        let clock = Box::new(SystemClock);
        Ok(Archive::over(facts, tree, store, clock, None))
    }

    /// Prevents other processes from opening a store for writing until the result is dropped.
    pub fn hold(tree: &Tree) -> Result<StoreLock, ArchiveError> {
        Ok(StoreLock(lock::Lock::take(tree)?))
    }

    /// Refuses a backup that was interrupted.
    pub fn refuse_unfinished(path: &Path) -> Result<(), ArchiveError> {
        match backup_note(path) {
            Some(note) if note.get("finished").is_none() => Err(ArchiveError::Unfinished {
                path: path.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether a store is one generation of a backup: its files may be those of other generations, too.
    #[must_use]
    pub fn is_generation(path: &Path) -> bool {
        backup_note(path).is_some_and(|note| note.get("generation").is_some())
    }

    /// When a backup was finished, as it says itself.
    #[must_use]
    pub fn finished_backup(path: &Path) -> Finished {
        let note = backup_note(path).unwrap_or_default();
        let text = note.get("finished").map(ToString::to_string);
        Finished(text.and_then(|text| Timestamp::parse_rfc3339(&text).ok()))
    }

    /// When a backup was last begun, as it says itself.
    #[must_use]
    pub fn begun_backup(path: &Path) -> Option<Timestamp> {
        let begun = backup_note(path)?.get("started")?.to_string();
        Timestamp::parse_rfc3339(&begun).ok()
    }

    /// Refuses to change a generation of a backup.
    pub(super) fn refuse_generation(path: &Path) -> Result<(), ArchiveError> {
        if Archive::is_generation(path) {
            Err(ArchiveError::Generation {
                path: path.to_owned(),
            })
        } else {
            Ok(())
        }
    }

    pub(super) fn open_tree(path: &Path) -> Result<(Facts, Tree), ArchiveError> {
        Archive::refuse_other_directories(path)?;
        Archive::refuse_unfinished(path)?;
        let tree = Tree::open(path)?;
        Ok((facts_of(&tree)?, tree))
    }
}

/// The version of an index that an older ibifs has written.
fn version_of_older(tree: &Tree, facts: &Facts) -> Option<usize> {
    match Store::open_read_only(tree.root(), facts.index.as_ref()) {
        Err(StoreError::Older { found }) if found > 0 => Some(found),
        _ => None,
    }
}

/// The statements of a backup about itself; empty if they cannot be understood, None where it is not a backup.
fn backup_note(path: &Path) -> Option<Pairs> {
    let note = read_regular(path.join(BACKUP_NOTE), OFlags::NOFOLLOW).ok()?;
    Some(Pairs::parse(&note).unwrap_or_default())
}

/// Reads `archive.ibi`, and by whom its server counts as named. The server that a store of another user names gets no password of this one.
pub(super) fn facts_of(tree: &Tree) -> Result<Facts, ArchiveError> {
    let text = tree.read_small(own_files::FACTS)?.unwrap_or_default();
    let mut facts = Facts::parse(&text)?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let owners = [
        rustix::fs::fstat(tree.root()),
        rustix::fs::statat(tree.root(), own_files::FACTS, flags),
    ];
    let is_own = owners
        .iter()
        .all(|found| found.is_ok_and(|found| is_trusted(found.st_uid)));
    let named_by = if is_own {
        NamedBy::Store
    } else {
        NamedBy::StoreOfAnother
    };
    facts.index = facts.index.map(|url| url.named_by(named_by));
    Ok(facts)
}
