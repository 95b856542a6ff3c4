//! Making the copied tree agree with an index of one instant.
//!
//! Which items there are, their sidecars and tombstones are taken from the index: the copies in the
//! tree are of many moments. Where the store's own tree and index do not agree, and not because something
//! is just being written, the tree is the truth, and the copy gets what it holds. What the index
//! has and the copy lacks is copied now; what is gone by now is so in a newer index, which is taken
//! then. The result is checked as `fsck` does.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use super::copying::Copier;
use super::{BackupError, Code, each_item_of};
use crate::archive::store::{self, Item, ItemId, Store};
use crate::archive::tree::Action;
use crate::archive::tree::{Area, Author, Place, SIDECAR};
use crate::archive::{Archive, ArchiveError, Clock, holder};
use crate::formats::item::State;
use ibi::message;
use ibi::pairs::{Pairs, Value};
use ibi::{Ibi, Rep};

/// How often a newer index is taken.
const ROUNDS: usize = 10;

/// How long is waited, all in all, for what is just being written.
const PATIENCE: Duration = Duration::from_secs(5);

const LEDGER: &str = "ledger";

/// The index is copied to here first.
const STAGING: &str = "staging";

pub(super) fn settle(
    from: &Archive,
    destination: &Path,
    copier: &mut Copier<'_>,
    vanished: &[Vec<u8>],
    clock: &dyn Clock,
) -> Result<(), BackupError> {
    let mut last = None;
    for round in 1..=ROUNDS {
        let missing = one_round(from, copier)?;
        if missing > 0 && round < ROUNDS {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        let report = Archive::check(destination, clock, &mut |_| {})?;
        copier.tally.items = report.items;
        // The same twice is not something that was just being written.
        if report.findings.is_empty() || last.as_ref() == Some(&report.findings) || round == ROUNDS
        {
            for finding in report.findings.iter().filter(|finding| finding.is_left()) {
                let why = message!(
                    "{code}: {finding}",
                    code = finding.code.word(),
                    finding = finding.sentence()
                );
                copier.found(Code::Unsound, finding.subject.as_bytes(), Some(why))?;
            }
            break;
        }
        last = Some(report.findings);
    }
    // The last to close a database for writing takes its log away.
    drop(Store::open(copier.to.root())?);
    for path in vanished {
        let is_kept = copier.to.open_far(path, rustix::fs::OFlags::PATH).is_ok()
            && copier
                .from
                .open_far(path, rustix::fs::OFlags::PATH)
                .is_err();
        if is_kept {
            copier.found(Code::Kept, path, None)?;
        }
    }
    Ok(())
}

/// Takes the index as it is now and makes the tree agree. Tells how many items could not be had.
fn one_round(from: &Archive, copier: &mut Copier<'_>) -> Result<u64, BackupError> {
    let staging = copier
        .to
        .open_directory(STAGING)
        .map_err(ArchiveError::from)?;
    remove_index(&staging);
    from.store().copy_to(staging.as_fd())?;
    // Two connections: one goes through the items, the other is asked about them.
    let index = Store::open(staging.as_fd())?;
    let asked = Store::open(staging.as_fd())?;
    let mut round = Round {
        from,
        copier,
        index: &asked,
        missing: 0,
        patience: PATIENCE,
    };
    each_item_of(&index, |item| round.item(item))?;
    round.what_is_too_much()?;
    let missing = round.missing;
    // Every directory will be on disk before the backup says that it is finished.
    let unsettled: Vec<ItemId> = asked.unsettled()?.iter().map(|lost| lost.item.id).collect();
    if missing == 0 {
        asked.settle(&unsettled)?;
    }
    let ledger = from.tree().read_small(LEDGER)?.unwrap_or_default();
    let mut ledger = Pairs::parse(&ledger).unwrap_or_default();
    if let Some(last) = asked.last_date()? {
        // The ledger goes with the index, whatever the store has minted since.
        ledger.set("last", Value::Word(last.to_rfc3339()));
    }
    copier
        .to
        .write_small(".", LEDGER, &ledger.to_bytes(), None)?;
    drop(asked);
    drop(index);
    let root = copier.to.root();
    // Its log belongs to the old one.
    remove_index(root);
    rustix::fs::renameat(&staging, store::FILE, root, store::FILE)
        .map_err(|errno| copier.to.error(Action::Rename, store::FILE, errno).into())
        .map_err(BackupError::Archive)?;
    Ok(missing)
}

fn remove_index(directory: impl AsFd) {
    for tail in ["", "-wal", "-shm", "-journal"] {
        let name = format!("{}{tail}", store::FILE);
        // Mostly there is none; one that stays is told by whoever opens it.
        let _ = rustix::fs::unlinkat(&directory, name, rustix::fs::AtFlags::empty());
    }
}

struct Round<'a, 'b> {
    from: &'a Archive,
    copier: &'a mut Copier<'b>,
    index: &'a Store,
    missing: u64,
    patience: Duration,
}

impl Round<'_, '_> {
    fn item(&mut self, item: &Item) -> Result<(), BackupError> {
        let place = Place::of(&item.names);
        let to = self.copier.to;
        let said = self.index.sidecar(item.id)?;
        if item.state == State::Deleted {
            if to.is_directory(place.as_str()) {
                self.copier.remove_unit(place.as_str())?;
            }
            // One that is not believed is no good list of pairs, and is not made better here.
            let there = to.read_tombstone(&place).ok().flatten();
            if let Some(said) = said.filter(|said| Some(said) != there.as_ref())
                && (there.is_none() || !self.is_settled_otherwise(item, &place, &said)?)
            {
                to.write_tombstone(&place, &said)?;
            }
            return Ok(());
        }
        if !to.is_directory(place.as_str()) {
            if !self.copier.unit(place.as_str().as_bytes())? {
                self.missing += 1;
                return Ok(());
            }
            self.copier.dress_above(place.as_str().as_bytes())?;
        }
        to.remove_tombstone(&place)?;
        match to.read_sidecar(&place) {
            Ok(there) if there == said => return Ok(()),
            _ => {}
        }
        if self.is_settled_otherwise(item, &place, said.as_deref().unwrap_or_default())? {
            self.copier.unit(place.as_str().as_bytes())?;
            return Ok(());
        }
        match said {
            Some(said) => to.write_sidecar(&place, &said, Author::Same)?,
            None => self
                .copier
                .remove_unit(&format!("{}/{SIDECAR}", place.as_str()))?,
        }
        // The directory has been written to.
        self.copier.set_metadata(place.as_str().as_bytes(), None)?;
        Ok(())
    }

    /// Whether the store's tree says something else than its index, for good.
    fn is_settled_otherwise(
        &mut self,
        item: &Item,
        place: &Place,
        said: &[u8],
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
                // Written again, removed or moved since: the instant of the index counts.
                _ if !is_same => return Ok(false),
                Ok(in_tree) if in_tree == in_index => return Ok(false),
                Ok(Some(in_tree)) if in_tree == said => return Ok(false),
                _ if !self.waits() => return Ok(true),
                _ => {}
            }
        }
    }

    /// What the copy has and the index has not: items that came too late, or that have moved to
    /// the place their rep gives them, and the tombstones of items that have come back.
    fn what_is_too_much(&mut self) -> Result<(), BackupError> {
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

    /// Waits a moment, if there is time left to wait and anybody who could be writing.
    fn waits(&mut self) -> bool {
        let pause = Duration::from_millis(20);
        self.patience = self.patience.saturating_sub(pause);
        let is_worth_it = !self.patience.is_zero() && holder(self.from.tree().path()).is_some();
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
            // No item: there as long as the store has it.
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
        // In the tree and not in the index: either it has just been made, and the next backup has it,
        // or nobody has met it yet, and it is the store's all the same.
        loop {
            if find(self.from.store())?.is_some() || !self.from.tree().is_directory(&full) {
                return Ok(false);
            }
            if !self.waits() {
                return Ok(true);
            }
        }
    }
}
