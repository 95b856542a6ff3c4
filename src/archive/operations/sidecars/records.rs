//! The index record of an item from its sidecar. Reads the tree, and writes nothing.

use super::super::identifiers::is_ibip;
use crate::archive::store::{By, Record};
use crate::archive::tree::Place;
use crate::archive::{Archive, ArchiveError};
use crate::formats::item::{Names, Sidecar, State};
use ibi::AliasPair;

impl Archive {
    /// The index record of a present item according to its sidecar. Its state follows from the
    /// Archive service that the sidecar names; the pairs of a tombstone are ignored. The author is that of the file
    /// that the item has now.
    pub(in crate::archive::operations) fn record_of(
        &self,
        names: Names,
        sidecar: &Sidecar,
        bytes: Vec<u8>,
    ) -> Record {
        let service = sidecar.archive_service().cloned();
        let original = service
            .as_ref()
            .is_some_and(|service| service.matches(&self.facts.service));
        let relations = sidecar.relations();
        let speaker = if relations.is_empty() {
            None
        } else {
            self.speaker_on_disk(&names)
        };
        Record {
            names,
            state: if original {
                State::Original
            } else {
                State::Copy
            },
            service,
            language: sidecar.language().cloned(),
            target: sidecar.target(),
            removed_at: None,
            life: sidecar.life().clone(),
            relations,
            speaker,
            aliases: admitted_aliases(sidecar),
            sidecar: Some(bytes),
            by: By::Program,
        }
    }

    /// The index record of a removed item according to its tombstone. It has no relations.
    pub(in crate::archive::operations) fn record_of_removed(
        &self,
        names: Names,
        tombstone: &Sidecar,
        bytes: Vec<u8>,
    ) -> Record {
        Record {
            state: State::Deleted,
            removed_at: tombstone.timestamp(),
            relations: Vec::new(),
            ..self.record_of(names, tombstone, bytes)
        }
    }

    /// Reads an item's directory into a record, with the error if its sidecar is not accepted.
    pub(in crate::archive::operations) fn read_item(
        &self,
        names: &Names,
    ) -> Result<(Record, Option<ArchiveError>), ArchiveError> {
        let place = Place::of(names);
        let bare = |names: &Names| -> Result<Record, ArchiveError> {
            // An item that is restored file by file keeps the names in its tombstone.
            let tombstone = self.tree.read_tombstone(&place)?;
            let known = tombstone.and_then(|bytes| self.parse_for(names, &bytes).ok());
            let names = known.map_or_else(|| names.clone(), |given| merged(names, given.names()));
            Ok(Record::bare(names, State::Copy))
        };
        let bytes = match self.tree.read_sidecar(&place) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok((bare(names)?, None)),
            Err(error) => return Ok((bare(names)?, Some(error.into()))),
        };
        match self.record_from(names, bytes) {
            Ok(record) if record.state == State::Original => {
                // For an item in a transfer of ownership, the transfer record says which Archive
                // has the original.
                let given = self.given(&record.names).ok().flatten();
                match given.filter(|given| given.is_taken) {
                    None => Ok((record, None)),
                    Some(given) => {
                        let (state, service) = (State::Copy, Some(given.other));
                        let record = Record {
                            state,
                            service,
                            ..record
                        };
                        Ok((record, None))
                    }
                }
            }
            Ok(record) => Ok((record, None)),
            Err(error) => Ok((bare(names)?, Some(error))),
        }
    }

    /// A record from the bytes of an item's sidecar, if they are valid.
    pub(in crate::archive::operations) fn record_from(
        &self,
        names: &Names,
        bytes: Vec<u8>,
    ) -> Result<Record, ArchiveError> {
        let sidecar = self.parse_for(names, &bytes)?;
        let names = merged(names, sidecar.names());
        Ok(self.record_of(names, &sidecar, bytes))
    }

    pub(in crate::archive::operations) fn parse_for(
        &self,
        names: &Names,
        bytes: &[u8],
    ) -> Result<Sidecar, ArchiveError> {
        let sidecar = Sidecar::parse(bytes).map_err(|cause| ArchiveError::Sidecar {
            names: names.clone().into(),
            cause: cause.into(),
        })?;
        let found = sidecar.names();
        let differs = match (names.rep(), found.rep()) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (Some(_), None) => !found.matches(names),
            (None, _) => false,
        } || match (names.ibip(), found.ibip()) {
            (Some(ours), Some(theirs)) => ours != theirs,
            (Some(_), None) => names.rep().is_none(),
            (None, _) => false,
        };
        if differs {
            return Err(ArchiveError::OtherItem {
                names: names.clone().into(),
                found: found.clone().into(),
            });
        }
        Ok(sidecar)
    }
}

/// The aliases that a sidecar gives its item, unless another item has them.
fn admitted_aliases(sidecar: &Sidecar) -> Vec<AliasPair> {
    let aliases = sidecar.aliases().iter();
    aliases.filter(|alias| !is_ibip(alias)).cloned().collect()
}

/// Combines the names from two sources. The place gives the rep, or the IBIp of an item without a
/// rep; the sidecar gives the other form.
pub(in crate::archive::operations) fn merged(known: &Names, given: &Names) -> Names {
    let rep = known.rep().or(given.rep()).cloned();
    let ibip = match rep {
        Some(_) => given.ibip().or(known.ibip()).cloned(),
        None => known.ibip().cloned(),
    };
    Names::new(rep, ibip).unwrap_or_else(|| known.clone())
}
