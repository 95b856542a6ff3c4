//! Items, one after the other, oldest comparison first.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::finding::{AuditCode, AuditFinding, AuditTally};
use super::gone::{gone_here, note_gone, note_told};
use super::peer::{AuditPeer, Comparison, remember};
use crate::archive::copies::{CopyLedger, noted_copies};
use crate::archive::finding::Reporter;
use crate::archive::scrub::{
    BytesBefore, ItemDigests, RecordedDigests, ScrubError, answered_digests, recorded_change,
};
use crate::archive::store::{By, Item, ItemId};
use crate::archive::transfer::{Local, TransferError};
use crate::archive::tree::{Place, Tree, joined};
use crate::archive::{Clock, Process, SystemClock};
use crate::formats::copies::{CopyKind, Gone, KnownCopy, Proof};
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use crate::formats::item::{Names, State};
use ibi::message::Message;
use ibi::{Timestamp, message};

/// The number of items that are read from the index at a time.
const PAGE: usize = 500;

/// One of the two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The store that is audited.
    Here,
    /// The place with which it is compared.
    There,
}

/// Mends what is damaged of an item on a side, and reports what became of it; or returns why that was not tried.
pub type Mend<'a> = dyn FnMut(Side, &Names) -> Result<Option<Message>, TransferError> + 'a;

/// A running audit.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct Audit<'a> {
    /// The store, open for reading.
    pub store: &'a Local,
    /// The place with which it is compared.
    pub peer: &'a mut dyn AuditPeer,
    /// Receives what differs.
    pub report: &'a mut Reporter<'a, AuditFinding>,
    /// Mends it.
    pub mend: &'a mut Mend<'a>,
    /// Receives the number of the item, from 1, and the bytes read.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// The counts so far.
    pub tally: AuditTally,
}

/// Both sides of an item.
struct Compared {
    /// None of an item that is not there.
    here: Option<ItemDigests>,
    there: Option<ItemDigests>,
    /// The findings besides damage that can be mended.
    findings: Vec<AuditFinding>,
    /// Paths that are not what was recorded of them, or are lost; here and there.
    damaged: [BTreeSet<Vec<u8>>; 2],
    /// Whether each side has what it should have.
    is_good: [bool; 2],
}

impl Audit<'_> {
    /// Compares all items that both places have, until the time is up; the first is compared in any case.
    ///
    /// # Errors
    /// A store cannot be read, the ledger cannot be written, or the place does not answer.
    pub fn all(&mut self, budget: Option<Duration>) -> Result<(), TransferError> {
        let started = Instant::now();
        self.tell_gone(None);
        let items = self.oldest_first()?;
        self.tally.wanted = items.len() as u64;
        let mut rest = &items[..];
        while !rest.is_empty() {
            let left = budget.map_or(Duration::MAX, |most| most.saturating_sub(started.elapsed()));
            if left.is_zero() && self.tally.items > 0 {
                break;
            }
            let (next, _) = rest.split_at(rest.len().min(self.peer.batch()));
            let compared = self.at_once(next, left)?;
            rest = rest.get(compared..).unwrap_or_default();
            if compared == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Compares items at once, and those file by file that are not the same. Returns how many of them were compared.
    fn at_once(&mut self, items: &[Names], time: Duration) -> Result<usize, TransferError> {
        let (tree, read) = (self.store.archive().tree(), self.tally.bytes);
        let (number, progress) = (self.tally.items, &mut self.progress);
        let (mut count, mut bytes) = (0, 0);
        let mut here = |names: &Names, before: Option<&BytesBefore<'_>>| {
            count += 1;
            let mut last = 0;
            let found = read_here(tree, names, before, &mut |now| {
                last = now;
                progress(number + count, read + bytes + now);
            });
            bytes += last;
            found
        };
        let compared = self.peer.compare(items, time, &mut here)?;
        for (names, found) in items.iter().zip(&compared) {
            let last = self.last_proof(names)?;
            let was_good = last.as_ref().is_some_and(|it| it.is_good);
            match found {
                Comparison::Same(here) => {
                    self.tally.items += 1;
                    self.tally.good += 1;
                    self.tally.files += here.manifest.len() as u64;
                    remember(self.store, names, Some(here), true);
                    self.note(names, [true, true], [None, None])?;
                    if last.is_some_and(|it| !it.is_good) {
                        self.tell(names, &[]);
                    }
                }
                // It was never known to be there.
                Comparison::Missing if !was_good => self.tally.wanted -= 1,
                Comparison::Gone(gone) => {
                    self.tally.wanted -= 1;
                    self.gone(names, gone)?;
                }
                Comparison::Missing | Comparison::Open => self.item(names, false)?,
            }
        }
        self.tally.bytes += bytes;
        Ok(compared.len())
    }

    /// Tells the place what was withdrawn or removed here, of all or of the named items, where it is known to have a copy. Returns
    /// the removed ones of which it knows.
    fn tell_gone(&mut self, named: Option<&[Names]>) -> Vec<Names> {
        let archive = self.store.archive();
        let is_it = |holder: &str| self.peer.is_named(holder);
        let told = gone_here(archive, named, &is_it).and_then(|mut gone| {
            let removed = gone.iter().filter(|it| it.gone.is_removed);
            let removed = removed.map(|it| it.names.clone()).collect();
            gone.retain(|it| !it.is_told);
            let new = gone.into_iter().map(|it| (it.names, it.gone));
            let new: Vec<(Names, Gone)> = new.collect();
            let own = self.store.service().preferred();
            self.peer.tell_gone(&own, &new)?;
            let is_it = |holder: &str| self.peer.is_named(holder);
            new.iter()
                .try_for_each(|(names, gone)| note_told(archive, (names, &gone.at), &is_it))?;
            Ok(removed)
        });
        told.unwrap_or_else(|error| {
            log::warn!(
                "{} is told at the next time what was withdrawn or removed here: {error}",
                self.peer.name()
            );
            Vec::new()
        })
    }

    /// Notes that the place says that it has withdrawn or removed an item. Nothing is changed in the item.
    fn gone(&mut self, names: &Names, gone: &Gone) -> Result<(), TransferError> {
        let is_it = |holder: &str| self.peer.is_named(holder);
        let is_new = note_gone(self.store.archive(), names, gone, &is_it, true)?;
        let item = self.store.item(names)?;
        let is_copy = item.state == State::Copy
            && item
                .service
                .is_some_and(|service| is_it(&service.preferred()));
        let code = match gone.is_removed {
            true if is_copy => AuditCode::Removed,
            // A copy that was there is missed once.
            true if is_new => AuditCode::Gone,
            false if is_copy || is_new => AuditCode::Withdrawn,
            _ => return Ok(()),
        };
        let at = gone.at.to_rfc3339();
        let detail = match &*gone.reason {
            "" => Message::foreign(at),
            reason => message!("{at}, for this reason: {reason}", at, reason),
        };
        let finding = self.finding(code, Side::There, names, b"", Some(detail));
        self.report(&finding)
    }

    fn report(&mut self, finding: &AuditFinding) -> Result<(), TransferError> {
        let printed = (self.report)(finding);
        printed.map_err(|error| TransferError::System(message!("standard output: {error}", error)))
    }

    /// Compares some items, without those that were removed here and are known there to be.
    ///
    /// # Errors
    /// As [`Audit::all`], or an item is not held here.
    pub fn some(&mut self, items: &[Names]) -> Result<(), TransferError> {
        let removed = self.tell_gone(Some(items));
        let is_left = |it: &&Names| !removed.iter().any(|removed| removed.matches(it));
        let left: Vec<&Names> = items.iter().filter(is_left).collect();
        self.tally.wanted = left.len() as u64;
        left.into_iter()
            .try_for_each(|names| self.item(names, true))
    }

    /// The items that both places may have, those first that were never compared.
    fn oldest_first(&mut self) -> Result<Vec<Names>, TransferError> {
        let (mut items, mut after) = (Vec::new(), ItemId(0));
        loop {
            let page = self.store.archive().store().items_after(after, PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.id;
            for item in page.iter().filter(|item| item.state != State::Deleted) {
                let last = self.last_proof(&item.names)?;
                let is_public = || {
                    let place = Place::of(&item.names);
                    item.life.withdrawn.is_none() && self.store.archive().tree().is_for_all(&place)
                };
                // What was there is missed once, unless it is not shown any more.
                let was_there =
                    item.life.withdrawn.is_none() && last.as_ref().is_some_and(|it| it.is_good);
                if self.peer.may_hold(&item.names, &is_public)? || was_there {
                    items.push((last.map(|it| it.at), item.names.clone()));
                }
            }
        }
        items.sort_by_cached_key(|(at, names)| (at.clone(), names.preferred()));
        Ok(items.into_iter().map(|(_, names)| names).collect())
    }

    /// The last comparison of an item with this place.
    fn last_proof(&self, names: &Names) -> Result<Option<Proof>, TransferError> {
        let copy = self.peer.copy();
        let known = noted_copies(self.store.archive().tree(), &Place::of(names))?;
        let is_it = |it: &KnownCopy| (it.kind, &it.holder) == (copy.kind, &copy.holder);
        Ok(known.into_iter().find(is_it).and_then(|it| it.proof))
    }

    fn item(&mut self, names: &Names, is_named: bool) -> Result<(), TransferError> {
        let item = self.store.item(names)?;
        let gone_here = self.store.archive().gone_in_public(&item)?;
        let names = &item.names;
        self.tally.items += 1;
        let last = self.last_proof(names)?;
        let mut compared = self.compare(names)?;
        let gone = self.peer.said_gone();
        if let Some(gone) = &gone {
            self.gone(names, gone)?;
            if compared.there.is_none() {
                self.tally.items -= 1;
                self.tally.wanted -= 1;
                return Ok(());
            }
        }
        let mut is_tried = false;
        let mut left = Vec::new();
        let found = [&compared.here, &compared.there];
        let sides = [Side::Here, Side::There].into_iter().zip(&compared.damaged);
        for ((side, damaged), found) in sides.zip(found) {
            if damaged.is_empty() {
                continue;
            }
            match (self.mend)(side, names)? {
                None => is_tried = true,
                Some(why) => left.extend(damaged.iter().map(|path| {
                    let is_in = |paths: fn(&ItemDigests) -> &Vec<Vec<u8>>| {
                        found.as_ref().is_some_and(|it| paths(it).contains(path))
                    };
                    let code = if is_in(|it| &it.damaged) {
                        AuditCode::Damaged
                    } else if is_in(|it| &it.unreadable) {
                        AuditCode::Unread
                    } else {
                        AuditCode::Lost
                    };
                    self.finding(code, side, names, path, Some(why.clone()))
                })),
            }
        }
        if is_tried {
            // Only what both sides have now is proved.
            compared = self.compare(names)?;
            let _ = self.peer.said_gone();
        }
        left.append(&mut compared.findings);
        for finding in &left {
            self.report(finding)?;
        }
        let is_doubtful = left.iter().any(|it| it.code == AuditCode::WrongRecord);
        if !is_doubtful {
            remember(self.store, names, compared.here.as_ref(), true);
            self.peer.remember(names, compared.there.as_ref());
        }
        let [here, there] = compared.is_good;
        self.tally.good += u64::from(here && there);
        self.note(names, compared.is_good, [gone_here, gone])?;
        // The history has one event of a whole pass, unless the outcome is another one than before.
        if is_named || last.is_none_or(|it| it.is_good) != there {
            self.tell(names, &left);
        }
        Ok(())
    }

    /// Reads an item in both places.
    fn compare(&mut self, names: &Names) -> Result<Compared, TransferError> {
        let item = self.store.item(names)?;
        let (number, read) = (self.tally.items, self.tally.bytes);
        let tree = self.store.archive().tree();
        let (bytes_here, bytes_there) = (Cell::new(0), Cell::new(0));
        let progress = RefCell::new(&mut self.progress);
        let count = |bytes: &Cell<u64>, now| {
            bytes.set(now);
            (progress.borrow_mut())(number, read + bytes_here.get() + bytes_there.get());
        };
        let mut read_it = |names: &Names, before: Option<&BytesBefore<'_>>| {
            read_here(tree, names, before, &mut |now| count(&bytes_here, now))
        };
        let both = self
            .peer
            .both(names, &mut read_it, &mut |now| count(&bytes_there, now));
        let [here, there] = both?;
        let (bytes_here, bytes_there) = (bytes_here.get(), bytes_there.get());
        self.tally.bytes += bytes_here + bytes_there;
        self.tally.files += here.as_ref().map_or(0, |it| it.manifest.len()) as u64;
        let mut compared = Compared {
            here: None,
            there: None,
            findings: Vec::new(),
            damaged: [BTreeSet::new(), BTreeSet::new()],
            is_good: [true, true],
        };
        if let (Some(here), Some(there)) = (&here, &there) {
            self.differences(names, [here, there], &mut compared);
        }
        for (at, (side, found)) in [(Side::Here, &here), (Side::There, &there)]
            .iter()
            .enumerate()
        {
            let Some(found) = found else {
                let gone = self.finding(self.gone_code(*side, &item), *side, names, b"", None);
                compared.findings.push(gone);
                compared.is_good[at] = false;
                continue;
            };
            // What can be mended is not told twice.
            let is_left = |it: &&(Vec<u8>, _)| !compared.damaged[at].contains(&it.0);
            for (path, why) in found.unread.iter().filter(is_left) {
                let why = Some(why.clone());
                let unread = self.finding(AuditCode::Unread, *side, names, path, why);
                compared.findings.push(unread);
                compared.is_good[at] = false;
            }
        }
        (compared.here, compared.there) = (here, there);
        Ok(compared)
    }

    /// The finding of an item that is missing, by what brings it back.
    fn gone_code(&self, side: Side, item: &Item) -> AuditCode {
        let service = item.service.as_ref().filter(|_| item.state == State::Copy);
        let is_its = service.is_some_and(|service| self.peer.is_named(&service.preferred()));
        match side {
            Side::There if self.peer.copy().kind == CopyKind::Backup => AuditCode::GoneFromBackup,
            Side::There if is_its => AuditCode::GoneOriginal,
            Side::Here if item.state == State::Original => AuditCode::GoneOriginal,
            _ => AuditCode::Gone,
        }
    }

    /// Compares the digests of both sides, file by file.
    fn differences(&self, names: &Names, both: [&ItemDigests; 2], compared: &mut Compared) {
        let [here, there] = both.map(ItemDigests::compared);
        let paths: BTreeSet<&Vec<u8>> = here.keys().chain(there.keys()).collect();
        let is_backup = self.peer.copy().kind == CopyKind::Backup;
        let (tree, place) = (self.store.archive().tree(), Place::of(names));
        let before = if here == there {
            RecordedDigests::default()
        } else {
            self.recorded_before_backup(tree, place.as_str())
        };
        let begun = self.peer.begun();
        for path in paths {
            let is_same = here.get(path) == there.get(path);
            let wrong = both.map(|it| it.damaged.contains(path));
            let altered = both.map(|it| it.altered.contains(path));
            let lost = both.map(|it| it.absent.contains(path) || it.unreadable.contains(path));
            let sides = [Side::Here, Side::There].into_iter().enumerate();
            if is_same {
                for (at, side) in sides.filter(|(at, _)| wrong[*at] || altered[*at]) {
                    let code = AuditCode::WrongRecord;
                    let finding = self.finding(code, side, names, path, None);
                    compared.findings.push(finding);
                    compared.is_good[at] = false;
                }
                continue;
            }
            let mut is_explained = false;
            for (at, _) in sides.filter(|(at, _)| wrong[*at] || lost[*at]) {
                compared.damaged[at].insert(path.clone());
                compared.is_good[at] = false;
                is_explained = true;
            }
            // An unread file is reported as such.
            let is_unread = both
                .iter()
                .any(|it| it.unread.iter().any(|(other, _)| other == path));
            if is_explained || is_unread {
                continue;
            }
            let is_old = || is_older(tree, &joined(place.as_str().as_bytes(), path), begun);
            let had_it = here.get(path).is_some_and(|it| {
                both[1].changed_in_backup.contains(path) && is_old()
                    || before.is_as_recorded(tree, place.as_str(), path, it)
            });
            let (code, detail) = match there.get(path) {
                Some(_) if had_it => (AuditCode::Damaged, Some(not_in_backup())),
                None if had_it => (AuditCode::Lost, Some(not_in_backup())),
                _ if is_backup => (AuditCode::Older, None),
                _ => (AuditCode::Differs, None),
            };
            let finding = self.finding(code, Side::There, names, path, detail);
            compared.findings.push(finding);
            compared.is_good = [compared.is_good[0] && had_it, false];
        }
    }

    /// What was recorded here of an item before a backup was made, so that the backup should have it.
    fn recorded_before_backup(&self, tree: &Tree, item: &str) -> RecordedDigests {
        let changed = recorded_change(tree, item);
        if changed.is_none() || changed >= self.peer.begun() {
            return RecordedDigests::default();
        }
        RecordedDigests::of(tree, item, i64::MAX).unwrap_or_default()
    }

    fn finding(
        &self,
        code: AuditCode,
        side: Side,
        names: &Names,
        path: &[u8],
        detail: Option<Message>,
    ) -> AuditFinding {
        AuditFinding {
            code,
            peer: (side == Side::There).then(|| self.peer.name().to_owned()),
            item: Place::of(names).as_str().to_owned(),
            path: path.to_vec(),
            detail,
        }
    }

    /// Notes the comparison in the ledgers of both sides.
    fn note(
        &mut self,
        names: &Names,
        [here, there]: [bool; 2],
        [gone_here, gone]: [Option<Gone>; 2],
    ) -> Result<(), TransferError> {
        let archive = self.store.archive();
        let facts = archive.facts();
        let proof = |is_good| {
            Some(Proof {
                at: Timestamp::from_unix(SystemClock.now().seconds(), 0),
                is_good,
            })
        };
        // What a side was told of an item that is shown again does not count for the next time.
        let told = |gone: &Option<Gone>| gone.as_ref().map(|it| it.at.clone());
        let (told_here, told_there) = (told(&gone), told(&gone_here));
        let copy = KnownCopy {
            proof: proof(there),
            gone,
            told: told_there,
            ..self.peer.copy()
        };
        CopyLedger::of(archive.tree())?.note(&Place::of(names), copy)?;
        let copy = KnownCopy {
            place: facts.place.clone(),
            proof: proof(here),
            gone: gone_here,
            told: told_here,
            ..KnownCopy::new(CopyKind::Archive, facts.service.preferred())
        };
        self.peer.note(names, &copy);
        Ok(())
    }

    /// Tells the history how the comparison of an item ended.
    fn tell(&self, names: &Names, left: &[AuditFinding]) {
        let mut notes = vec![self.peer.copy().holder];
        notes.extend(
            left.iter()
                .map(|it| format!("{} {}", it.code.word(), shown(&it.path))),
        );
        let is_good = left.iter().all(|it| it.code == AuditCode::Older);
        let kind = if is_good {
            EventKind::Audited
        } else {
            EventKind::Differs
        };
        let (by, archive) = (By::of(&Process), self.store.archive());
        archive.tell(by, kind, Some(names), &notes.join(", "));
    }
}

/// Whether a file has not changed since a time, in seconds since 1970.
fn is_older(tree: &Tree, path: &[u8], time: Option<i64>) -> bool {
    let found = tree.stat_far(path);
    found.is_ok_and(|stat| Some(stat.st_ctime) < time)
}

fn not_in_backup() -> Message {
    message!(
        "the backup does not have it as the store had it; make the backup again with 'ibifs backup'"
    )
}

/// Reads an item of a store. None if it is lost.
fn read_here(
    tree: &Tree,
    names: &Names,
    before: Option<&BytesBefore<'_>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<ItemDigests>, TransferError> {
    let place = Place::of(names);
    match answered_digests(tree, place.as_str(), before, &mut |_, bytes| {
        progress(bytes);
    }) {
        Err(ScrubError::Tree(error)) if error.errno() == Errno::NOENT => Ok(None),
        found => Ok(Some(found?)),
    }
}
