//! Differences between the tree and the index, as findings.

use super::super::ledger::LEDGER;
use super::context::{ScanSummary, is_below};
use super::finding::{CheckCode, CheckFinding, CheckReport};
use crate::archive::store::{Difference, DifferenceKind, Store, StoreUse};
use crate::archive::tree::{Area, Place};
use crate::archive::{ArchiveError, Clock, Keeper};
use ibi::Timestamp;
use ibi::message;
use ibi::message::{Localize, Message};
use ibi::pairs::{Pairs, Value};

/// The seconds that the last date given out may be ahead of the clock.
const AHEAD_SECONDS: i64 = 60;

impl Keeper<'_> {
    /// Compares this Archive, which was read from the tree, with the index.
    pub(super) fn compare(
        &self,
        index: &Store,
        report: &mut CheckReport,
    ) -> Result<(), ArchiveError> {
        let differences = match self.store.differences(index) {
            Err(error) if error.is_damage() => {
                report.add(
                    CheckFinding::new(CheckCode::IndexDamaged, crate::archive::store::FILE)
                        .with_detail(error.cause()),
                );
                return Ok(());
            }
            other => other?,
        };
        let missing = self.missing_areas(&differences)?;
        for (area, count) in &missing {
            let known = message!("the index knows {count}", count);
            report.add(CheckFinding::new(CheckCode::AreaMissing, area.name()).with_detail(known));
        }
        let unreadable = report.subjects(CheckCode::Unreadable);
        let name_taken = report.subjects(CheckCode::NameTaken);
        let alias_taken = report.subjects(CheckCode::AliasTaken);
        let not_minted = report.subjects(CheckCode::NotMinted);
        let is_service_missing = report.has(CheckCode::ServiceMissing);
        for difference in differences {
            let is_hidden = area_of(&difference)
                .is_some_and(|lies| missing.iter().any(|(area, _)| *area == lies))
                || difference.names.as_ref().is_some_and(|names| {
                    let is_lost = matches!(difference.kind, DifferenceKind::OnlySecond { .. });
                    is_lost && is_below(&Place::of(names), &unreadable)
                });
            let is_service = difference
                .names
                .as_ref()
                .is_some_and(|names| names.matches(&self.facts.service));
            if is_hidden || is_service && is_service_missing {
                continue;
            }
            let finding = self.finding_of(difference)?;
            // A finding that follows from another one of the same item is not reported.
            let is_explained = match finding.code {
                CheckCode::ChangedSidecar => {
                    name_taken.contains(&finding.subject) || alias_taken.contains(&finding.subject)
                }
                CheckCode::IndexDiffers => name_taken.contains(&finding.subject),
                // An index of an older version may have it.
                CheckCode::NotInTree => not_minted.contains(&finding.subject),
                _ => false,
            };
            if !is_explained {
                report.add(finding);
            }
        }
        Ok(())
    }

    /// The areas that hold no item although the index has some: a disk that is not mounted, or the
    /// loss of all items.
    fn missing_areas(&self, lost: &[Difference]) -> Result<Vec<(Area, usize)>, ArchiveError> {
        let mut missing = Vec::new();
        for area in [Area::Col, Area::Ibip] {
            let count = lost.iter().filter(|lost| area_of(lost) == Some(area));
            let count = count.count();
            let is_there = self.tree.is_directory(area.name());
            // The service's own item is in `col/`, which is therefore never empty.
            let is_empty = area == Area::Col && !self.store.has_reps()?;
            if count > 0 && (!is_there || is_empty) {
                missing.push((area, count));
            }
        }
        Ok(missing)
    }

    fn finding_of(&self, difference: Difference) -> Result<CheckFinding, ArchiveError> {
        let (code, detail) = match difference.kind {
            DifferenceKind::OnlyFirst => (CheckCode::NotIndexed, None),
            DifferenceKind::OnlySecond {
                is_removed,
                is_unsettled,
            } => match &difference.names {
                None => (
                    CheckCode::IndexDiffers,
                    Some(message!("a row of the index has no valid names")),
                ),
                // The tree has the item under another of its names.
                Some(names) if self.store.find_by_names(names)?.is_some() => {
                    let what = message!("the index has it as an item of its own");
                    (CheckCode::IndexDiffers, Some(what))
                }
                Some(_) if is_removed => (CheckCode::MissingTombstone, None),
                Some(_) if is_unsettled => (CheckCode::MintUnfinished, None),
                Some(_) => (CheckCode::NotInTree, None),
            },
            DifferenceKind::Differs {
                what,
                sidecar,
                is_removed,
            } => match (sidecar, is_removed) {
                (true, (false, false)) => (CheckCode::ChangedSidecar, detail_of(what)),
                (true, (true, true)) => (CheckCode::ChangedTombstone, detail_of(what)),
                _ => (CheckCode::IndexDiffers, detail_of(what)),
            },
        };
        Ok(CheckFinding {
            detail,
            names: difference.names.map(Box::new),
            ..CheckFinding::new(code, difference.subject)
        })
    }

    /// Compares the records of the last date given out.
    pub(super) fn check_dates(
        &self,
        index: &Store,
        summary: &ScanSummary,
        store_use: StoreUse,
        clock: &dyn Clock,
        report: &mut CheckReport,
    ) -> Result<(), ArchiveError> {
        let (last, reserved) = match (index.last_date(), index.reserved_date()) {
            (Ok(last), Ok(reserved)) => (last, reserved),
            (Err(error), _) | (_, Err(error)) => {
                report.add(
                    CheckFinding::new(CheckCode::IndexDamaged, crate::archive::store::FILE)
                        .with_detail(error.cause()),
                );
                return Ok(());
            }
        };
        let mark = last.clone().max(reserved.clone());
        if let Some((date, rep)) = &summary.own
            && Some(date) > mark.as_ref()
        {
            report.add(CheckFinding::new(CheckCode::DateBehind, rep));
        }
        if let Some(mark) = &mark
            && mark.seconds() > clock.now().seconds() + AHEAD_SECONDS
        {
            let ahead = CheckFinding::new(CheckCode::DateAhead, mark.to_rfc3339());
            // The latest item may be the only reason, if it dates from a version that accepted such items.
            report.add(match &summary.latest {
                Some((date, rep)) if date == mark => {
                    ahead.with_detail(message!("it is that of {rep}", rep))
                }
                _ => ahead,
            });
        }
        if store_use == StoreUse::Idle {
            self.check_ledger(last, reserved, report);
        }
        Ok(())
    }

    /// The ledger is written at each regular end. After any other end the index is ahead of it.
    fn check_ledger(
        &self,
        last: Option<Timestamp>,
        reserved: Option<Timestamp>,
        report: &mut CheckReport,
    ) {
        let broken = |what: &dyn Localize| {
            CheckFinding::new(CheckCode::LedgerBroken, LEDGER).with_detail(what)
        };
        let text = match self.tree.read_small(LEDGER) {
            Ok(Some(text)) => text,
            Ok(None) => return report.add(broken(&message!("it is not there"))),
            Err(error) => return report.add(broken(&error)),
        };
        let pairs = match Pairs::parse(&text) {
            Ok(pairs) => pairs,
            Err(error) => return report.add(broken(&error)),
        };
        if !matches!(pairs.get("store"), Some(Value::Word(_))) {
            return report.add(broken(&message!("it does not name its store")));
        }
        let noted = match pairs.get("last") {
            None => None,
            Some(value) => match Timestamp::parse_rfc3339(&value.to_string()) {
                Ok(noted) => Some(noted),
                Err(error) => return report.add(broken(&error)),
            },
        };
        let agrees = match reserved {
            // Hosts that share a store write no ledger.
            None => noted == last || self.facts.index.is_some() && noted < last,
            Some(reserved) => noted <= last.clone().max(Some(reserved)),
        };
        if !agrees {
            let shown = |date: Option<Timestamp>| {
                date.map_or_else(
                    || message!("nothing"),
                    |date| Message::verbatim(date.to_rfc3339()),
                )
            };
            let differs = CheckFinding::new(CheckCode::LedgerDiffers, LEDGER);
            report.add(differs.with_detail(message!(
                "{noted} in the ledger, {last} in the index",
                noted = shown(noted),
                last = shown(last)
            )));
        }
    }
}

fn detail_of(what: Option<Message>) -> Option<Message> {
    what.or_else(|| Some(message!("only in pairs that ibifs does not read")))
}

/// The area of an item that only the index has, if the item should be present.
fn area_of(difference: &Difference) -> Option<Area> {
    match (&difference.kind, &difference.names) {
        (
            DifferenceKind::OnlySecond {
                is_removed: false,
                is_unsettled: false,
            },
            Some(names),
        ) => Some(match names.rep() {
            Some(_) => Area::Col,
            None => Area::Ibip,
        }),
        _ => None,
    }
}
