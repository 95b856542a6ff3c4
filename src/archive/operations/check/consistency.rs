//! Checks that need the index of the tree only: the item of the Archive's service, chains of editions, and
//! relations whose two ends differ.

use super::context::is_below;
use super::finding::{CheckCode, CheckFinding, CheckReport};
use super::item_set::ItemSet;
use crate::archive::tree::Place;
use crate::archive::{ArchiveError, Keeper};
use crate::formats::item::State;
use ibi::message;

impl Keeper<'_> {
    pub(super) fn check_service(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        let held = self.held(&self.facts.service)?;
        if held.is_none_or(|item| item.state != State::Original)
            && !is_below(
                &Place::of(&self.facts.service),
                &report.subjects(CheckCode::Unreadable),
            )
        {
            report.add(CheckFinding::of(
                CheckCode::ServiceMissing,
                &self.facts.service,
            ));
        }
        Ok(())
    }

    pub(super) fn check_editions(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        // Each chain is followed once: a chain that leads into one that ends, ends as well.
        let (mut ending, mut circling) = (ItemSet::default(), ItemSet::default());
        for id in self.store.with_next_edition()? {
            let Some(item) = self.store.item(id)? else {
                continue;
            };
            if item.state == State::Deleted {
                continue;
            }
            let mut chain = Vec::new();
            let mut current = item.names.clone();
            let mut passed = ItemSet::default();
            let is_circle = loop {
                if ending.has(&current) {
                    break false;
                }
                if circling.has(&current) || passed.has(&current) {
                    break true;
                }
                passed.add(&current);
                chain.push(current.clone());
                match self.next_edition(&current)? {
                    Some(next) => current = next,
                    None => break false,
                }
            };
            if is_circle {
                report.add(CheckFinding::of(CheckCode::EditionCycle, &item.names));
            }
            let set = if is_circle {
                &mut circling
            } else {
                &mut ending
            };
            chain.iter().for_each(|names| set.add(names));
        }
        Ok(())
    }

    pub(super) fn check_relations(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        for claim in self.store.contested()? {
            // A claim by an item whose owner may not write this one is not a fault of this one.
            if !self.may_declare_for(&claim.other, &claim.names)? {
                continue;
            }
            // The other one has taken the place of one that was removed.
            if self.is_removed(&claim.target)? {
                continue;
            }
            let differ = CheckFinding::of(CheckCode::RelationsDiffer, &claim.names);
            report.add(differ.with_detail(message!(
                "its {kind} is {target}, and {other} says it is that too",
                kind = claim.kind.pair_name(),
                target = claim.target.preferred(),
                other = claim.other.preferred()
            )));
        }
        for (names, kind, removed) in self.store.to_removed()? {
            // Of a removed copy the original is elsewhere.
            if self.is_removed(&removed)? {
                let found = CheckFinding::of(CheckCode::RemovedTarget, &names);
                report.add(found.with_detail(message!(
                    "{kind} {far}",
                    kind = kind.pair_name(),
                    far = removed.preferred()
                )));
            }
        }
        let circling = report.subjects(CheckCode::EditionCycle);
        for claim in self.store.one_sided()? {
            // The edition in a circle that is wrong is not known, so no missing pair is added to one.
            if circling.contains(&claim.near.preferred()) {
                continue;
            }
            // The near end alone suffices if its owner may not write the far end.
            if !self.may_declare_for(&claim.near, &claim.far)? {
                continue;
            }
            let one_sided = CheckFinding::of(CheckCode::OneSided, &claim.near);
            report.add(one_sided.with_detail(message!(
                "{kind} {far}",
                kind = claim.kind.pair_name(),
                far = claim.far.preferred()
            )));
        }
        Ok(())
    }
}
