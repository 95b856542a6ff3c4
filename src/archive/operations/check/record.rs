//! Puts the items of the tree into a new index. If two items claim one name, the previous index decides
//! which of them keeps it.

use super::admit::ibip_taken;
use super::context::{PlaceContext, ReadRecord};
use super::finding::{CheckCode, CheckFinding, CheckReport};
use crate::archive::store::{Item, Record, Refill, StoreError};
use crate::archive::{ArchiveError, Keeper};
use crate::formats::item::{Names, State};
use ibi::message;

impl Keeper<'_> {
    /// Records an item according to its sidecar, or to the last sidecar that was accepted.
    pub(super) fn put_accepted(
        &self,
        context: &PlaceContext<'_>,
        read: ReadRecord,
        refill: &Refill<'_>,
        report: &mut CheckReport,
    ) -> Result<(), ArchiveError> {
        let ReadRecord {
            mut record,
            is_accepted,
        } = read;
        if !is_accepted || record.sidecar.is_none() {
            if let Some(known) = self.previously_accepted(context, &record)? {
                if is_accepted {
                    report.add(CheckFinding::of(CheckCode::MissingSidecar, &known.names));
                }
                record = known;
            }
        } else if context.before.is_last
            && let Some(known) = context.accepted_before
            && record.sidecar.as_deref() != Some(known)
        {
            let code = match record.state {
                State::Deleted => CheckCode::ChangedTombstone,
                _ => CheckCode::ChangedSidecar,
            };
            report.add(CheckFinding::of(code, &record.names));
        }
        for alias in &record.aliases {
            if let Some(holder) = refill.holder_of_alias(alias)?
                && !holder.matches(&record.names)
            {
                let taken = |names: &Names, holder: &Names| {
                    let taken = CheckFinding::of(CheckCode::AliasTaken, names);
                    taken.with_detail(message!(
                        "{alias} is {holder}",
                        alias,
                        holder = holder.preferred()
                    ))
                };
                // Only the previous index shows which item had the alias first.
                if context.before.has_alias(context.place, alias)? {
                    refill.free_alias(alias)?;
                    report.add(taken(&holder, &record.names));
                } else {
                    report.add(taken(&record.names, &holder));
                }
            }
        }
        match self.put_or_replace(context, &record, refill, report)? {
            Some(error) => {
                report
                    .add(CheckFinding::of(CheckCode::NameTaken, &record.names).with_detail(error));
                self.put_without_taken_name(context, &record, refill)
            }
            None => Ok(()),
        }
    }

    /// Records an item. If another item has one of its names, and neither its place nor the
    /// previous index gives it to this one, the error is returned.
    fn put_or_replace(
        &self,
        context: &PlaceContext<'_>,
        record: &Record,
        refill: &Refill<'_>,
        report: &mut CheckReport,
    ) -> Result<Option<StoreError>, ArchiveError> {
        let (error, holder) = match refill.put(record) {
            Ok(()) => return Ok(None),
            Err(StoreError::Taken { name, holder }) => {
                let names = (*holder).clone();
                (StoreError::Taken { name, holder }, names)
            }
            Err(error) => return Err(error.into()),
        };
        let had = |known: Item| known.names.ibip() == record.names.ibip();
        let is_proper = context.place.rep().is_none()
            || record.names.ibip().is_some()
                && context.before.item(context.place)?.is_some_and(had);
        if !is_proper || holder.rep().is_none() || holder.rep() == record.names.rep() {
            return Ok(Some(error));
        }
        refill.reduce_to_rep(&holder)?;
        match refill.put(record) {
            Ok(()) => {
                let taken = ibip_taken(record, record.names.clone());
                report.add(CheckFinding::of(CheckCode::NameTaken, &holder).with_detail(taken));
                Ok(None)
            }
            Err(error @ StoreError::Taken { .. }) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Indexes an item that claims the name of another one: by its previous record, else by its place alone.
    fn put_without_taken_name(
        &self,
        context: &PlaceContext<'_>,
        record: &Record,
        refill: &Refill<'_>,
    ) -> Result<(), ArchiveError> {
        let by_place = Record {
            names: context.place.clone(),
            ..record.clone()
        };
        let known = self.previously_accepted(context, &by_place)?;
        for record in known.iter().chain([&by_place]) {
            match refill.put(record) {
                Err(StoreError::Taken { .. }) => {}
                other => return Ok(other?),
            }
        }
        Ok(())
    }
}
