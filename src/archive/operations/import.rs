//! Import. The rows of a table become part of the sidecars of their items: all rows are checked
//! first, then all are written.

use std::collections::{BTreeMap, BTreeSet};

use super::recovery_log::ChangeDurability;
use super::{Acceptance, ArchiveError, Depositor, Editor};
use crate::archive::store::Item;
use crate::archive::tree::Place;
use crate::formats::item::{Names, Sidecar, State};
use crate::formats::table::{Row, RowError};
use ibi::Ibi;
use ibi::message;
use ibi::message::{Localize, Message};
use ibi::pairs::percent_encode;
use ibi::relation::RelationKind;

/// The new sidecar for a row of a table.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The line number of the row.
    pub line: u64,
    /// The item, by its present names.
    pub names: Names,
    /// The new sidecar.
    pub sidecar: Vec<u8>,
    /// The pairs that are new or have another value than before.
    pub changed: Vec<String>,
}

/// The sidecar of one row while the other rows are checked.
struct Draft {
    line: u64,
    names: Names,
    /// The present sidecar; for an item without one, a sidecar that contains only the names.
    before: Sidecar,
    sidecar: Sidecar,
}

impl Draft {
    fn planned(self) -> Planned {
        let values = |sidecar: &Sidecar| -> BTreeMap<String, String> {
            let pairs = sidecar.pairs().iter();
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_string()))
                .collect()
        };
        let (old, new) = (values(&self.before), values(&self.sidecar));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let differ = names
            .into_iter()
            .filter(|name| old.get(*name) != new.get(*name));
        Planned {
            line: self.line,
            names: self.names,
            sidecar: self.sidecar.to_bytes(),
            changed: differ.cloned().collect(),
        }
    }
}

/// The next edition of each item, from the table and the Archive together.
type Editions = BTreeMap<String, Names>;

impl Depositor<'_> {
    /// Returns the sidecars that the rows of a table produce, or the reasons why they cannot be
    /// accepted. With `replace`, a row takes precedence over a different value in the item's
    /// sidecar. Nothing is changed.
    pub fn plan(
        &self,
        rows: &[Row],
        replace: bool,
    ) -> Result<(Vec<Planned>, Vec<RowError>), ArchiveError> {
        let (mut drafts, mut faults) = (Vec::new(), Vec::new());
        let (mut items, mut taken) = (BTreeMap::new(), BTreeMap::new());
        let editions = self.editions_of(rows)?;
        for row in rows {
            let line = row.line;
            let item = match self.item_of(row)? {
                Ok(item) => item,
                Err(what) => {
                    faults.push(RowError::new(line, what));
                    continue;
                }
            };
            let ibip = row.names.ibip().map(|ibip| ibip.canonical());
            let before = items.insert(item.id.0, line);
            let before = before.or(ibip.and_then(|ibip| taken.insert(ibip, line)));
            if let Some(before) = before {
                let what = message!(
                    "line {before} names the same item; combine the two rows",
                    before
                );
                faults.push(RowError::new(line, what));
                continue;
            }
            if let Some(circle) = self.circle(row, &item, &editions)? {
                let what = message!(
                    "the editions would form a cycle through {circle}; an edition cannot follow itself",
                    circle
                );
                faults.push(RowError::new(line, what));
                continue;
            }
            match self.sidecar_of(row, &item, replace)? {
                Ok(draft) => drafts.push(draft),
                Err(what) => faults.push(RowError::new(line, what)),
            }
        }
        self.complete_inverse_relations(&mut drafts);
        Ok((drafts.into_iter().map(Draft::planned).collect(), faults))
    }

    /// Writes relations between originals of the table at both ends. An item may become an original
    /// only now, in which case nothing else would write the far end later.
    fn complete_inverse_relations(&self, drafts: &mut [Draft]) {
        let is_original = |sidecar: &Sidecar| {
            let service = sidecar.archive_service();
            service.is_some_and(|service| service.matches(&self.facts.service))
        };
        let mut by_name = BTreeMap::new();
        let mut declared = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            if is_original(&draft.sidecar) {
                let names = draft.sidecar.names();
                by_name.extend(names.rep().map(|rep| (rep.canonical(), at)));
                by_name.extend(names.ibip().map(|ibip| (ibip.canonical(), at)));
                let relations = draft.sidecar.relations().into_iter();
                declared.extend(relations.map(|(kind, far)| (at, kind, far)));
            }
        }
        for (near, kind, far) in declared {
            let far = [
                far.rep().map(|rep| rep.canonical()),
                far.ibip().map(|ibip| ibip.canonical()),
            ];
            let far = far
                .into_iter()
                .flatten()
                .find_map(|name| by_name.get(&name));
            let near = drafts.get(near).map(|draft| draft.sidecar.clone());
            let (Some(far), Some(near)) = (far.and_then(|at| drafts.get_mut(*at)), near) else {
                continue;
            };
            let Some(back) = kind.inverse(near.language().copied()) else {
                continue;
            };
            if !far
                .sidecar
                .relations()
                .iter()
                .any(|(known, _)| *known == back)
            {
                far.sidecar.set_relation(&back, near.names());
            }
        }
    }

    /// The item of a row.
    fn item_of(&self, row: &Row) -> Result<Result<Item, Message>, ArchiveError> {
        let find = |ibi: Option<Ibi>| match ibi {
            Some(ibi) => self.held(&Names::from(ibi)),
            None => Ok(None),
        };
        let by_rep = find(row.names.rep().cloned().map(Ibi::Rep))?;
        let by_ibip = match (row.names.ibip(), &by_rep) {
            // A removed item keeps its name as well.
            (Some(ibip), Some(_)) => self.store.find_by_ibip(ibip)?,
            (ibip, _) => find(ibip.cloned().map(Ibi::Ibip))?,
        };
        Ok(match (by_rep, by_ibip) {
            (Some(first), Some(second)) if first.id != second.id => Err(message!(
                "its rep and its IBIp are those of two items here, {names} and {names2}; correct one of the two",
                names = first.names,
                names2 = second.names
            )),
            (Some(item), _) | (None, Some(item)) => {
                if item.names.contradicts(&row.names) {
                    Err(message!(
                        "the item is {names} here, and a name that is recorded does not change; correct the row",
                        names = item.names
                    ))
                } else {
                    Ok(item)
                }
            }
            (None, None) => Err(message!(
                "no item '{names}' is held here; copy it here first, or remove the row",
                names = row.names.preferred()
            )),
        })
    }

    /// The sidecar of an item with the contents of a row.
    fn sidecar_of(
        &self,
        row: &Row,
        item: &Item,
        replace: bool,
    ) -> Result<Result<Draft, Message>, ArchiveError> {
        let on_disk = self.tree.read_sidecar(&Place::of(&item.names))?;
        let known = self.store.sidecar(item.id)?;
        if on_disk.is_some() && on_disk != known {
            return Ok(Err(message!(
                "the item's sidecar has changed since it was last accepted; 'ibifs fsck' shows what was changed outside ibifs"
            )));
        }
        let before = self.accepted_sidecar(item)?;
        let sidecar = self.planned_sidecar(row, item, before.clone(), replace)?;
        Ok(sidecar.map(|sidecar| Draft {
            line: row.line,
            names: item.names.clone(),
            before: known.map_or_else(|| Sidecar::new(&item.names), |_| before),
            sidecar,
        }))
    }

    /// Adds the contents of a row to a sidecar.
    fn planned_sidecar(
        &self,
        row: &Row,
        item: &Item,
        mut sidecar: Sidecar,
        replace: bool,
    ) -> Result<Result<Sidecar, Message>, ArchiveError> {
        let contrary = |pair: &str, known: &dyn std::fmt::Display| {
            Err(message!(
                "its {pair} is {known} already; leave it out, or use --replace if the table is right",
                pair,
                known = known.to_string()
            ))
        };
        let names = super::sidecars::merged(&item.names, &row.names);
        if names != *sidecar.names() {
            sidecar.set_names(&names);
        }
        if let Some(language) = &row.language {
            match sidecar.language() {
                Some(known) if known != language && !replace => {
                    return Ok(contrary("language", known));
                }
                _ => sidecar.set_language(language),
            }
        }
        if let Some(target) = &row.target {
            match sidecar.target_bytes() {
                Some(known) if known != *target && !replace => {
                    return Ok(contrary("target", &percent_encode(known)));
                }
                _ => sidecar.set_target(target),
            }
        }
        for (kind, names) in &row.relations {
            let known = sidecar.relations();
            let known = known.into_iter().find(|(known, _)| known == kind);
            if names.matches(&item.names) || names.matches(&row.names) {
                return Ok(Err(message!(
                    "its {kind} would be the item itself; correct the row",
                    kind = kind.pair_name()
                )));
            }
            match known {
                Some((_, known)) if known.matches(names) => {}
                Some((_, known)) if !replace => return Ok(contrary(&kind.pair_name(), &known)),
                _ => sidecar.set_relation(kind, &self.complete(names)?),
            }
        }
        for alias in &row.aliases {
            match self.check_alias(item, alias) {
                Err(ArchiveError::AliasTaken { alias, holder }) => {
                    return Ok(Err(message!(
                        "alias {alias} is that of {holder}; correct one of the two",
                        alias,
                        holder
                    )));
                }
                Err(error @ ArchiveError::NoAlias { .. }) => return Ok(Err(error.message())),
                other => other?,
            }
            sidecar.add_alias(alias);
        }
        let sidecar = match self.stated(row.state, item, sidecar, replace) {
            Ok(sidecar) => sidecar,
            Err(what) => return Ok(Err(what)),
        };
        // Any user may run the command; the permissions are checked again when the sidecar is written.
        let refusal = self.refusal(item, &names, &sidecar)?;
        Ok(match refusal {
            Some(error) => Err(error.message()),
            None => Ok(sidecar),
        })
    }

    fn stated(
        &self,
        state: Option<State>,
        item: &Item,
        mut sidecar: Sidecar,
        replace: bool,
    ) -> Result<Sidecar, Message> {
        let service = sidecar.archive_service().cloned();
        let elsewhere = service.filter(|service| !service.matches(&self.facts.service));
        match (state, elsewhere) {
            (Some(State::Original), Some(service)) if !replace => Err(message!(
                "its sidecar says that the Archive of {service} holds the original; transfer it there, or use --replace if the table is right",
                service
            )),
            (Some(State::Original), _) => {
                if item.state != State::Original {
                    sidecar.set_archive_service(&self.facts.service);
                }
                Ok(sidecar)
            }
            (Some(State::Copy), None) if item.names.matches(&self.facts.service) => Err(message!(
                "the Archive service's own item is the original; remove the state from the row"
            )),
            (Some(State::Copy), None) => {
                sidecar.remove_archive_service();
                Ok(sidecar)
            }
            _ => Ok(sidecar),
        }
    }

    fn edition_key(&self, names: &Names) -> Result<String, ArchiveError> {
        Ok(self.complete(names)?.preferred().to_ascii_lowercase())
    }

    /// The editions that the rows declare, by the item that they follow.
    fn editions_of(&self, rows: &[Row]) -> Result<Editions, ArchiveError> {
        let mut editions = Editions::new();
        for row in rows {
            for (kind, names) in &row.relations {
                let (first, next) = match kind {
                    RelationKind::NextEdition => (&row.names, names),
                    RelationKind::EditionOf => (names, &row.names),
                    _ => continue,
                };
                editions.insert(self.edition_key(first)?, next.clone());
            }
        }
        Ok(editions)
    }

    /// The item at which the editions of a row's item would form a circle.
    fn circle(
        &self,
        row: &Row,
        item: &Item,
        editions: &Editions,
    ) -> Result<Option<String>, ArchiveError> {
        let declares = |kind: &RelationKind| {
            matches!(kind, RelationKind::NextEdition | RelationKind::EditionOf)
        };
        if !row.relations.iter().any(|(kind, _)| declares(kind)) {
            return Ok(None);
        }
        let start = self.edition_key(&item.names)?;
        let mut passed = BTreeSet::new();
        let mut current = item.names.clone();
        loop {
            let key = self.edition_key(&current)?;
            let next = match editions.get(&key) {
                Some(next) => Some(next.clone()),
                None => self.next_edition(&current)?,
            };
            let Some(next) = next else {
                return Ok(None);
            };
            if self.edition_key(&next)? == start {
                return Ok(Some(current.preferred()));
            }
            // A circle among other items is reported for those items.
            if !passed.insert(key) {
                return Ok(None);
            }
            current = next;
        }
    }
}

impl Editor<'_> {
    /// Writes an item's sidecar as a user who edits it would, and accepts it.
    pub fn replace_sidecar(&self, names: &Names, bytes: &[u8]) -> Result<(), ArchiveError> {
        let item = self.held_by(names)?;
        let author = self.author_after(&item.names)?;
        let change = self
            .recovery
            .begin(&Place::of(&item.names), ChangeDurability::Unsynced)?;
        let before = self.store.relations_of(item.id)?;
        self.write_sidecar(&item.names, bytes, author)?;
        let acceptance = self.with_writer(&item.names, |writer| self.by(writer).accept(item.id))?;
        change.done();
        match acceptance {
            Acceptance::Rejected(error) => Err(error),
            Acceptance::Unchanged => Ok(()),
            // A relation that this user adds has the rights of this user, and not one that the sidecar had before.
            Acceptance::Accepted(item) => self.update_far_ends(&item, &before, |_| true),
        }
    }
}

#[cfg(test)]
mod tests;
