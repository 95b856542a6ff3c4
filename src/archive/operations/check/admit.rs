//! The record that an item in the tree gets: that of its sidecar, if the item may have those names and
//! that state, else that of its place or of the sidecar that was accepted last. Writes nothing.

use super::super::admission::Evidence;
use super::super::identifiers::{as_alias, is_ibip};
use super::context::{PlaceContext, ReadRecord, ScanSummary};
use super::finding::{CheckCode, CheckFinding};
use crate::archive::store::{Item, Record, StoreError};
use crate::archive::tree::Place;
use crate::archive::{ArchiveError, Keeper};
use crate::formats::item::{Names, Sidecar, State};
use ibi::message;
use ibi::{Ibi, Ibip};

/// A finding for an alias in the sidecar that is an IBIp: a sidecar cannot give its item an IBIp that way.
fn refused_aliases(place: &Names, record: &Record) -> Option<CheckFinding> {
    let bytes = record.sidecar.as_ref()?;
    // Few sidecars contain the pair, so only those are parsed a second time.
    bytes.windows(ALIAS.len()).find(|part| *part == ALIAS)?;
    let sidecar = Sidecar::parse(bytes).ok()?;
    let alias = sidecar
        .aliases()
        .iter()
        .find(|alias| is_ibip(alias))?
        .to_string();
    Some(
        CheckFinding::of(CheckCode::NameRefused, place)
            .with_detail(ArchiveError::NoAlias { alias }),
    )
}

/// The error for a record whose IBIp belongs to another item.
pub(super) fn ibip_taken(record: &Record, holder: Names) -> StoreError {
    let ibip = record.names.ibip();
    StoreError::Taken {
        name: ibip.map_or_else(String::new, Ibip::to_string),
        holder: Box::new(holder),
    }
}

/// The name of the pair that holds aliases.
const ALIAS: &[u8] = b"ibi.alias";

impl Keeper<'_> {
    /// The record of an item that is present: according to its sidecar, if the item may have those
    /// names and that state, else according to its place alone. None if its place gives it a name that was not minted.
    pub(super) fn admitted(
        &self,
        context: &PlaceContext<'_>,
        read: ReadRecord,
        summary: &mut ScanSummary,
    ) -> Result<Option<ReadRecord>, ArchiveError> {
        let report = &mut summary.report;
        let (place, record) = (context.place, &read.record);
        let is_known =
            record.sidecar.is_some() && record.sidecar.as_deref() == context.accepted_before;
        let known = if is_known {
            None
        } else {
            context.before.item(place)?
        };
        let known = Evidence {
            last: context.present.last.as_ref(),
            was_accepted: is_known,
            item: known.as_ref(),
        };
        report.findings.extend(refused_aliases(place, record));
        let Some(error) = self.refusal_of_read(place, record, &known)? else {
            if !is_known && let Some(holder) = self.holder_of_ibip(context, record)? {
                let taken = ibip_taken(record, holder);
                report.add(CheckFinding::of(CheckCode::NameTaken, place).with_detail(taken));
                return Ok(Some(ReadRecord::bare(place, State::Copy)));
            }
            if Place::of(&record.names) != Place::of(place) {
                let rep = message!("its rep is {rep}", rep = record.names.preferred());
                report.add(CheckFinding::of(CheckCode::NotMoved, place).with_detail(rep));
                summary.unmoved.push(place.clone());
                return Ok(Some(ReadRecord::bare(place, State::Copy)));
            }
            return Ok(Some(read));
        };
        let code =
            match self.refusal_of_read(place, &Record::bare(place.clone(), State::Copy), &known)? {
                Some(_) => CheckCode::NotMinted,
                None => CheckCode::NameRefused,
            };
        report.add(CheckFinding::of(code, place).with_detail(error));
        let is_served = code != CheckCode::NotMinted;
        Ok(is_served.then(|| ReadRecord::bare(place, State::Copy)))
    }

    /// Another item that is present and has the IBIp that a sidecar claims, according to its place
    /// or to the previous index.
    fn holder_of_ibip(
        &self,
        context: &PlaceContext<'_>,
        record: &Record,
    ) -> Result<Option<Names>, ArchiveError> {
        let (Some(_), Some(ibip)) = (context.place.rep(), record.names.ibip()) else {
            return Ok(None);
        };
        let by_place = Names::from(Ibi::Ibip(ibip.clone()));
        let upper = Ibip::parse(&ibip.canonical()).map(|ibip| Place::of_ibip(&ibip));
        let places = [Some(Place::of(&by_place)), upper.ok()];
        let is_there = |place: &Place| self.tree.is_directory(place.as_str());
        if places.iter().flatten().any(is_there) {
            return Ok(Some(by_place));
        }
        let known = match (context.before.item(&by_place)?, as_alias(ibip)) {
            // One in base 53 may have become an alias of the item that had it.
            (None, Some(alias)) => context.before.query(|index| index.find_by_alias(&alias))?,
            (known, _) => known,
        };
        let is_another = |item: &Item| {
            item.state != State::Deleted
                && item.names.rep() != context.place.rep()
                && is_there(&Place::of(&item.names))
        };
        Ok(known.filter(is_another).map(|item| item.names))
    }

    /// The previous record of an item whose sidecar is not accepted. It is kept until the sidecar
    /// is repaired from it.
    pub(super) fn previously_accepted(
        &self,
        context: &PlaceContext<'_>,
        record: &Record,
    ) -> Result<Option<Record>, ArchiveError> {
        let Some(bytes) = context.accepted_before else {
            return Ok(None);
        };
        let names = &record.names;
        let Some(before) = Sidecar::parse(bytes).ok() else {
            return Ok(None);
        };
        let was_removed = before.state() == Some(State::Deleted);
        let known = match (was_removed, record.state == State::Deleted) {
            (false, false) => self.record_from(names, bytes.to_vec()).ok(),
            (true, true) => return Ok(self.tombstone_from(names, bytes).ok()),
            _ => None,
        };
        let Some(known) = known else {
            return Ok(None);
        };
        let gate = Evidence {
            last: context.present.last.as_ref(),
            was_accepted: true,
            item: None,
        };
        let refused = self.refusal_of_read(context.place, &known, &gate)?;
        // The file that is there now may be another user's.
        let speaker = context.before.speaker(context.place)?;
        let known = Record { speaker, ..known };
        Ok(refused.is_none().then_some(known))
    }
}
