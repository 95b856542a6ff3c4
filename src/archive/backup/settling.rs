//! Makes the copied tree agree with an index of one instant.
//!
//! The items, their sidecars and tombstones are taken from the index, because the copies in the tree are of
//! many moments. Where the store's own tree and index disagree, and not because of a write in progress, the
//! tree is the truth: the copy gets the content of the tree. Items that the index has and the copy lacks are
//! copied now. Items that were removed by now are also removed in a newer index, which is taken then. The result is
//! checked as `fsck` does.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::copier::Copier;
use super::finding::{BackupCode, BackupError};
use crate::archive::store::{self, Item, ItemId, Store};
use crate::archive::tree::Action;
use crate::archive::tree::{Area, Author, Place, SIDECAR};
use crate::archive::{Archive, ArchiveError, CheckCode, Clock, holder};
use crate::formats::item::{Names, State};
use crate::os::opening::by_descriptor;
use ibi::message;
use ibi::pairs::{Pairs, Value};
use ibi::{Ibi, Rep};

/// The number of times that a newer index is taken.
const ROUNDS: usize = 10;

/// The total time of waiting for writes in progress.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The age of a sidecar that is not a write in progress: the index does not accept it, as where its owner
/// claims what the item may not have.
const SETTLED: Duration = Duration::from_secs(2);

pub(super) const LEDGER: &str = "ledger";

/// The index is copied to here first.
const STAGING: &str = "staging";

pub(super) fn settle(
    from: &Archive,
    copier: &mut Copier<'_>,
    vanished: &[Vec<u8>],
    clock: &dyn Clock,
) -> Result<(), BackupError> {
    let destination = PathBuf::from(by_descriptor(copier.to.root()));
    let mut last = None;
    let mut time_left = TIMEOUT;
    for round in 1..=ROUNDS {
        let missing = one_round(from, copier, &mut time_left)?;
        if missing > 0 && round < ROUNDS {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        // Items that neither the store nor an earlier backup has.
        copier.tally.incomplete += missing;
        copier.log()?;
        let report = Archive::check(&destination, clock, &mut |_| {})?;
        copier.tally.items = report.items;
        // A finding that occurs twice is not a write in progress.
        if report.findings.is_empty() || last.as_ref() == Some(&report.findings) || round == ROUNDS
        {
            for finding in report.findings.iter().filter(|finding| finding.is_left()) {
                let why = message!(
                    "{code}: {finding}",
                    code = finding.code.word(),
                    finding = finding.sentence()
                );
                copier.found(BackupCode::Unsound, finding.subject.as_bytes(), Some(why))?;
            }
            break;
        }
        for finding in &report.findings {
            // The sidecar may have got the mark of a stranger after it was copied, and have the same text.
            if finding.code == CheckCode::IndexDiffers
                && let Ok(ibi) = Ibi::parse(&finding.subject)
            {
                copier.unit(Place::of(&Names::from(ibi)).as_str().as_bytes())?;
            }
        }
        last = Some(report.findings);
    }
    // The last connection that closes a database for writing removes its log.
    drop(Store::open(copier.to.root(), None)?);
    for path in vanished {
        let is_kept = copier.to.open_far(path, rustix::fs::OFlags::PATH).is_ok()
            && copier
                .from
                .open_far(path, rustix::fs::OFlags::PATH)
                .is_err();
        if is_kept {
            copier.found(BackupCode::Kept, path, None)?;
        }
    }
    Ok(())
}

/// Copies the current index and makes the tree agree with it. Returns how many items could not be copied.
fn one_round(
    from: &Archive,
    copier: &mut Copier<'_>,
    time_left: &mut Duration,
) -> Result<u64, BackupError> {
    let staging = copier
        .to
        .open_directory(STAGING)
        .map_err(ArchiveError::from)?;
    remove_index(&staging);
    from.store().copy_to(staging.as_fd())?;
    // Two connections: one lists the items, the other answers queries about them.
    let index = Store::open(staging.as_fd(), None)?;
    let queried = Store::open(staging.as_fd(), None)?;
    let mut settling = Settling {
        from,
        copier,
        index: &queried,
        missing: 0,
        time_left,
    };
    each_item_of(&index, |item| settling.item(item))?;
    settling.remove_unknown()?;
    let missing = settling.missing;
    // Every directory is on disk before the backup is marked as finished.
    let unsettled: Vec<ItemId> = queried
        .unsettled()?
        .iter()
        .map(|lost| lost.item.id)
        .collect();
    if missing == 0 {
        queried.settle(&unsettled)?;
    }
    let ledger = from.tree().read_small(LEDGER)?.unwrap_or_default();
    let mut ledger = Pairs::parse(&ledger).unwrap_or_default();
    if let Some(last) = queried.last_date()? {
        // The ledger must match the index, whatever the store has minted since.
        ledger.set("last", Value::Word(last.to_rfc3339()));
    }
    copier
        .to
        .write_small(".", LEDGER, &ledger.to_bytes(), None)?;
    drop(queried);
    drop(index);
    let root = copier.to.root();
    // The log belongs to the old index.
    remove_index(root);
    rustix::fs::renameat(&staging, store::FILE, root, store::FILE)
        .map_err(|errno| copier.to.error(Action::Rename, store::FILE, errno).into())
        .map_err(BackupError::Archive)?;
    Ok(missing)
}

fn remove_index(directory: impl AsFd) {
    for tail in ["", "-wal", "-shm", "-journal"] {
        let name = format!("{}{tail}", store::FILE);
        // Usually missing; one that cannot be removed causes an error when the index is opened.
        let _ = rustix::fs::unlinkat(&directory, name, rustix::fs::AtFlags::empty());
    }
}

struct Settling<'a, 'b> {
    from: &'a Archive,
    copier: &'a mut Copier<'b>,
    index: &'a Store,
    missing: u64,
    time_left: &'a mut Duration,
}

impl Settling<'_, '_> {
    fn item(&mut self, item: &Item) -> Result<(), BackupError> {
        let place = Place::of(&item.names);
        let to = self.copier.to;
        let accepted = self.index.sidecar(item.id)?;
        if item.state == State::Deleted {
            if to.is_directory(place.as_str()) {
                self.copier.remove_unit(place.as_str())?;
            }
            // A tombstone that is not accepted is not a valid list of pairs, and is not repaired here.
            let there = to.read_tombstone(&place).ok().flatten();
            if let Some(accepted) = accepted.filter(|accepted| Some(accepted) != there.as_ref())
                && (there.is_none() || !self.is_settled_later(item, &place, &accepted)?)
            {
                to.write_tombstone(&place, &accepted)?;
            }
            return Ok(());
        }
        if !to.is_directory(place.as_str()) {
            let path = place.as_str().as_bytes();
            if !self.copier.unit(path)? {
                if self.copier.keep_directory(path)? {
                    self.copier.found(BackupCode::Kept, path, None)?;
                } else {
                    self.missing += 1;
                    return Ok(());
                }
            }
            self.copier.set_metadata_above(place.as_str().as_bytes())?;
        }
        to.remove_tombstone(&place)?;
        match to.read_sidecar(&place) {
            Ok(there) if there == accepted => return Ok(()),
            _ => {}
        }
        if self.is_settled_later(item, &place, accepted.as_deref().unwrap_or_default())? {
            self.copier.unit(place.as_str().as_bytes())?;
            return Ok(());
        }
        match accepted {
            Some(accepted) => to.write_sidecar(&place, &accepted, Author::Same)?,
            None => self
                .copier
                .remove_unit(&format!("{}/{SIDECAR}", place.as_str()))?,
        }
        // The write has changed the directory's time.
        self.copier.set_metadata(place.as_str().as_bytes(), None)?;
        Ok(())
    }

    /// Whether the store's tree disagrees with its index permanently.
    fn is_settled_later(
        &mut self,
        item: &Item,
        place: &Place,
        accepted: &[u8],
    ) -> Result<bool, BackupError> {
        loop {
            let tree = self.from.tree();
            let in_tree = match item.state {
                State::Deleted => tree.read_tombstone(place),
                _ => tree.read_sidecar(place),
            };
            let now = self.from.store().find_by_names(&item.names)?;
            let is_same = now.as_ref().is_some_and(|now| {
                (now.state == State::Deleted) == (item.state == State::Deleted)
                    && Place::of(&now.names) == *place
            });
            let in_index = match &now {
                Some(now) => self.from.store().sidecar(now.id)?,
                None => None,
            };
            match in_tree {
                // Written again, removed or moved since: the index copy decides.
                _ if !is_same => return Ok(false),
                Ok(in_tree) if in_tree == in_index => return Ok(false),
                Ok(Some(in_tree)) if in_tree == accepted => return Ok(false),
                _ if self.is_old(place) || !self.wait_for_writer() => return Ok(true),
                _ => {}
            }
        }
    }

    /// Returns whether the sidecar of an item has not changed for as long as a write may take.
    fn is_old(&self, place: &Place) -> bool {
        let tree = self.from.tree();
        let sidecar = tree.open_sidecar(place).ok().flatten();
        let changed = sidecar.and_then(|sidecar| std::fs::File::from(sidecar).metadata().ok());
        let changed = changed.and_then(|found| u64::try_from(found.ctime()).ok());
        let age = changed.and_then(|seconds| {
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            changed.elapsed().ok()
        });
        age.is_some_and(|age| age > SETTLED)
    }

    /// Removes from the copy what the index does not have: items that were made too late, or that have moved
    /// to the place of their rep, and tombstones of items that exist again.
    fn remove_unknown(&mut self) -> Result<(), BackupError> {
        let to = self.copier.to;
        let mut places = Vec::new();
        to.each_item::<BackupError>(|area, path| {
            if !self.is_known(area, path)? {
                places.push(format!("{}/{path}", area.name()));
            }
            Ok(())
        })?;
        for place in places {
            self.copier.remove_unit(&place)?;
        }
        Ok(())
    }

    /// Waits a moment, if there is time left and another process may be writing.
    fn wait_for_writer(&mut self) -> bool {
        let pause = Duration::from_millis(20);
        *self.time_left = self.time_left.saturating_sub(pause);
        let is_worth_it = !self.time_left.is_zero() && holder(self.from.tree().path()).is_some();
        if is_worth_it {
            std::thread::sleep(pause);
        }
        is_worth_it
    }

    fn is_known(&mut self, area: Area, path: &str) -> Result<bool, BackupError> {
        let ibi = match area {
            Area::Col => Rep::parse(path).ok().map(Ibi::Rep),
            Area::Ibip => Ibi::parse(path).ok(),
        };
        let full = format!("{}/{path}", area.name());
        let Some(ibi) = ibi else {
            // Not an item: it is kept as long as the store has it.
            return Ok(self.from.tree().is_directory(&full));
        };
        let find = |store: &Store| match &ibi {
            Ibi::Rep(rep) => store.find_by_rep(rep),
            Ibi::Ibip(ibip) => store.find_by_ibip(ibip),
        };
        let is_here = |item: &Item| {
            item.state != State::Deleted
                && Place::of(&item.names).as_str().eq_ignore_ascii_case(&full)
        };
        match find(self.index)? {
            Some(item) => return Ok(is_here(&item)),
            None if !self.from.tree().is_directory(&full) => return Ok(false),
            None => {}
        }
        // In the tree and not in the index: either it is new, and the next backup has it, or the index does
        // not know it yet, and it belongs to the store all the same.
        loop {
            if find(self.from.store())?.is_some() || !self.from.tree().is_directory(&full) {
                return Ok(false);
            }
            if !self.wait_for_writer() {
                return Ok(true);
            }
        }
    }
}

/// The number of items that are read from an index at once.
const PAGE: usize = 1000;

/// Visits every item of an index. The index is not locked during `visit`, which may query another index.
pub(super) fn each_item_of(
    index: &Store,
    mut visit: impl FnMut(&Item) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let mut after = ItemId(0);
    loop {
        let items = index.items_after(after, PAGE)?;
        let Some(last) = items.last() else {
            return Ok(());
        };
        after = last.id;
        items.iter().try_for_each(&mut visit)?;
    }
}
