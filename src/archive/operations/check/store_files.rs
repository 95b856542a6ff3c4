//! Checks of the store itself: its index, its facts and the files in its own directory.

use std::time::SystemTime;

use super::super::identifiers::names_at;
use super::super::ledger::LEDGER;
use super::super::open::facts_of;
use super::super::search::{PUBLIC_SEARCH_FILE, PUBLIC_TEXT_FILE, SEARCH_FILE, TEXT_FILE};
use super::super::status::damaged_items;
use super::super::{lock, own_files};
use super::finding::{CheckCode, CheckFinding, CheckReport};
use crate::archive::store::{self, Store, StoreError, StoreUse};
use crate::archive::tree::{DAMAGED, HANDOVER, RESERVE, Tree};
use crate::archive::{Archive, ArchiveError, Facts, OwnershipTransfer, Role};
use crate::formats::fixity::shown;
use ibi::message::{Localize, Message};
use ibi::{message, plural};

/// The entries of the store's directory that only the Archive should be able to write.
const OWN: [&str; 25] = [
    ".",
    own_files::FACTS,
    own_files::DATABASE,
    own_files::NAME_SPACES,
    LEDGER,
    lock::FILE,
    "staging",
    RESERVE,
    "fixity",
    DAMAGED,
    HANDOVER,
    store::FILE,
    "relations.sqlite3-wal",
    "relations.sqlite3-shm",
    store::HARVEST_FILE,
    store::ACCESSES_FILE,
    store::PICTURES_FILE,
    SEARCH_FILE,
    PUBLIC_SEARCH_FILE,
    TEXT_FILE,
    PUBLIC_TEXT_FILE,
    "witness",
    "audit",
    "log",
    "log/told",
];

/// Opens the index and runs SQLite's checks. Returns None if it cannot be read.
pub(super) fn open_index(
    tree: &Tree,
    store_use: StoreUse,
    report: &mut CheckReport,
) -> Result<Option<Store>, ArchiveError> {
    let path = tree.path().join(store::FILE);
    let found = |code| CheckFinding::new(code, store::FILE);
    let facts = facts_of(tree).ok();
    let url = facts.and_then(|facts| facts.index);
    if url.is_none() && path.symlink_metadata().is_err() {
        report.add(found(CheckCode::IndexMissing));
        return Ok(None);
    }
    let opened = Store::open_as_it_is(tree.root(), url.as_ref(), store_use)
        .and_then(|index| index.complaints().map(|complaints| (index, complaints)));
    match opened {
        Ok((index, complaints)) => {
            if let Some(complaints) = Message::joined(complaints) {
                report.add(found(CheckCode::IndexDamaged).with_detail(complaints));
            }
            Ok(Some(index))
        }
        Err(error @ StoreError::Newer { .. }) => {
            report.add(found(CheckCode::IndexNewer).with_detail(error));
            Ok(None)
        }
        // No ibifs leaves a file without tables: it was emptied.
        Err(StoreError::Older { found: 0 }) if url.is_none() => {
            let detail = message!("it has no tables");
            report.add(found(CheckCode::IndexDamaged).with_detail(detail));
            Ok(None)
        }
        Err(StoreError::Older { found: version }) => {
            report.add(
                found(CheckCode::IndexOlder).with_detail(message!("schema {version}", version)),
            );
            Ok(None)
        }
        Err(error) if error.is_damage() => {
            report.add(found(CheckCode::IndexDamaged).with_detail(error.cause()));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The identity of the Archive: as it was when the store was last used, else from the facts file.
pub(super) fn read_facts(
    tree: &Tree,
    index: Option<&Store>,
    report: &mut CheckReport,
) -> Option<Facts> {
    let kept = index.and_then(|index| index.facts().ok().flatten());
    let kept_facts = kept.as_deref().and_then(|text| Facts::parse(text).ok());
    let is_kept_well = kept.is_none() || kept_facts.is_some();
    let (code, detail, facts) = match tree.read_small(own_files::FACTS) {
        Ok(None) => (Some(CheckCode::FactsMissing), None, kept_facts.clone()),
        Err(error) => {
            let detail = Some(error.message());
            (Some(CheckCode::FactsBroken), detail, kept_facts.clone())
        }
        Ok(Some(text)) => match Facts::parse(&text) {
            Err(error) => {
                let detail = Some(error.message());
                (Some(CheckCode::FactsBroken), detail, kept_facts.clone())
            }
            Ok(facts) if !is_kept_well => {
                let detail = message!("the index has no valid copy of it");
                (Some(CheckCode::IndexDiffers), Some(detail), Some(facts))
            }
            Ok(facts) => match &kept_facts {
                // URLs are not part of what is minted, see `Archive::check_facts`.
                Some(kept) if !kept.is_same_archive(&facts) => {
                    let detail = what_changed(&kept.to_text(), &facts.to_text());
                    (
                        Some(CheckCode::FactsChanged),
                        Some(detail),
                        kept_facts.clone(),
                    )
                }
                _ => (None, None, Some(facts)),
            },
        },
    };
    if let Some(code) = code {
        let finding = CheckFinding::new(code, own_files::FACTS);
        report.add(CheckFinding {
            detail,
            repairable: finding.repairable
                && (kept_facts.is_some() || code == CheckCode::IndexDiffers),
            ..finding
        });
    }
    facts
}

/// A message with the first line that differs.
fn what_changed(before: &str, now: &str) -> Message {
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (before, now) = (lines(before), lines(now));
    for at in 0..before.len().max(now.len()) {
        let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
        if line(&before) != line(&now) {
            return message!(
                "it says '{now}' and said '{before}'",
                now = line(&now),
                before = line(&before)
            );
        }
    }
    message!("only in the space between its words")
}

/// Reports if users who do not own the store can reach its contents: their own files, for which
/// they can make the daemon wait, and the index.
pub(super) fn check_store_mode(tree: &Tree, report: &mut CheckReport) {
    if let Some(mode) = tree.mode_of(".")
        && mode & 0o001 != 0
    {
        report.add(
            CheckFinding::new(CheckCode::StoreOpen, ".")
                .with_detail(message!("mode {mode}", mode = format!("{mode:04o}"))),
        );
    }
}

/// Checks the store's own directory, if no process writes it now.
pub(super) fn check_own_files(tree: &Tree, report: &mut CheckReport) {
    for name in tree.left_in_staging() {
        report.add(CheckFinding::new(
            CheckCode::StagingLeft,
            format!("staging/{}", shown(&name)),
        ));
    }
    for name in OWN {
        if let Some(mode) = tree.mode_of(name)
            && mode & 0o002 != 0
        {
            let loose = CheckFinding::new(CheckCode::LoosePermissions, name);
            report.add(loose.with_detail(message!("mode {mode}", mode = format!("{mode:04o}"))));
        }
    }
}

/// Reports what is left of items that other Archives no longer send.
pub(super) fn check_arrivals(tree: &Tree, report: &mut CheckReport) {
    match tree.abandoned_arrivals(SystemTime::now()) {
        Ok(keys) => {
            for key in keys {
                let path = Tree::arriving_path(&key);
                report.add(CheckFinding::new(CheckCode::ArrivalLeft, path));
            }
        }
        // A user who may not read what arrives cannot remove it either.
        Err(error) => log::debug!("what is left of arriving items is not known: {error}"),
    }
}

/// Counts the items with fewer copies than the Archive wants, if it wants any.
pub(super) fn check_copies(
    archive: &Archive,
    report: &mut CheckReport,
) -> Result<(), ArchiveError> {
    if !archive.facts().has_policy() {
        return Ok(());
    }
    let mut count = 0_u64;
    archive.each_copies::<ArchiveError>(|copies| {
        count += u64::from(!copies.count.is_enough);
        Ok(())
    })?;
    if count > 0 {
        let found = CheckFinding::new(CheckCode::TooFewCopies, own_files::FACTS);
        let items = plural!("{count} item", "{count} items", count);
        report.add(found.with_detail(items));
    }
    Ok(())
}

/// Reports the items with files that a scrub, or a copy, has found damaged or lost.
pub(super) fn check_damage(tree: &Tree, report: &mut CheckReport) {
    for (names, count) in damaged_items(tree) {
        let found = CheckFinding::of(CheckCode::DamagedFiles, &names);
        let detail = plural!("{count} file", "{count} files", count);
        report.add(found.with_detail(detail));
    }
}

/// Reports unfinished transfers of ownership to other Archives.
pub(super) fn check_handovers(archive: &Archive, report: &mut CheckReport) {
    let visited = archive.tree().each_handover::<ArchiveError>(|area, path| {
        let Some(names) = names_at(area, path) else {
            return Ok(());
        };
        let found = |code| CheckFinding::of(code, &names);
        let recorded = archive.handover(&names);
        let recorded = recorded.and_then(|it| Ok((it, archive.gone_receivers(&names)?)));
        match recorded {
            Ok((current, gone)) => {
                if let Some(handover) = current.filter(OwnershipTransfer::is_pending) {
                    let other = handover.other;
                    report.add(found(CheckCode::HandoverPending).with_detail(
                        if handover.role == Role::TakesBack {
                            message!(
                                "its transfer to the Archive {other} is being cancelled",
                                other
                            )
                        } else {
                            message!("to the Archive {other}", other)
                        },
                    ));
                }
                for other in gone {
                    let cancelled = found(CheckCode::HandoverCancelled);
                    report.add(cancelled.with_detail(message!("to the Archive {other}", other)));
                }
            }
            Err(error) => report.add(found(CheckCode::HandoverBroken).with_detail(error)),
        }
        Ok(())
    });
    if let Err(error) = visited {
        // A user who may not read the records cannot finish a transfer either.
        log::debug!("the items being transferred are not known: {error}");
    }
}
