//! Admission control: which names an item may get, by whatever route it comes.
//!
//! In this Archive's own name space, in any spelling, a name is admitted if it was minted here or
//! if its date is not later than the last one given out. Elsewhere a user can only add a name that
//! mkdir in the mount could have created: the rep of an item in the directory of its IBIp, the IBIp
//! of one in the directory of its rep. No item gets a name that another one has, and no item of the
//! own name space becomes an original because a user claims it.
//!
//! Items read from the tree, where the author may be unknown, pass the same checks: the place gives
//! an item one name, the sidecar only what is admitted.

use std::os::fd::AsFd;

use rustix::fs::Access;

use super::actor::may_replace;
use super::identifiers::is_ibip;
use super::{ArchiveError, Depositor, Keeper, Role};
use crate::archive::store::{Item, Record};
use crate::archive::tree::Action;
use crate::archive::tree::Place;
use crate::formats::item::{Names, Sidecar, State};
use ibi::{AliasPair, Ibi, Ibip, Rep, Timestamp};

/// The forms of an identifier, one after the other.
pub(super) fn forms(names: &Names) -> impl Iterator<Item = Ibi> {
    let rep = names.rep().cloned().map(Ibi::Rep);
    rep.into_iter().chain(names.ibip().cloned().map(Ibi::Ibip))
}

fn date_of(ibi: &Ibi) -> Timestamp {
    match ibi {
        Ibi::Rep(rep) => rep.timestamp(),
        Ibi::Ibip(ibip) => ibip.timestamp(),
    }
}

impl Depositor<'_> {
    /// Refuses names of the own name space that have not been given out. Of the dates given out
    /// while the clock ran ahead, an item that is known here keeps its own; only the administrator
    /// can restore others.
    pub(super) fn refuse_unminted(&self, names: &Names) -> Result<(), ArchiveError> {
        let mut last = None;
        for ibi in forms(names).filter(|ibi| self.facts.is_own(ibi)) {
            let date = date_of(&ibi);
            let last = match &last {
                Some(last) => last,
                None => last.insert(self.handed_out()?),
            };
            let is_minted = Some(&date) <= last.as_ref()
                || self.dates.is_ahead(&date)
                    && (self.is_administrator()? || self.find(&ibi)?.is_some());
            if !is_minted {
                return Err(ArchiveError::NotMintedYet {
                    name: ibi.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Whether a user administers the store: root or the owner of the store.
    fn is_administrator(&self) -> Result<bool, ArchiveError> {
        let root = rustix::fs::fstat(self.tree.root());
        let root = root.map_err(|errno| self.tree.error(Action::Read, ".", errno))?;
        Ok(self.actor.owns(root.st_uid))
    }

    /// The reason why an item does not get the names and the state in its sidecar, if any.
    pub(super) fn refusal(
        &self,
        item: &Item,
        names: &Names,
        sidecar: &Sidecar,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let checked = self.check_new_names(item, names);
        match checked.and_then(|()| self.check_claim(item, names, sidecar)) {
            Ok(()) => Ok(None),
            Err(
                error @ (ArchiveError::NotMintedYet { .. }
                | ArchiveError::NotMintedHere(_)
                | ArchiveError::MayNotName { .. }
                | ArchiveError::Exists(_)),
            ) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Refuses names that a sidecar adds to those of an item.
    fn check_new_names(&self, item: &Item, names: &Names) -> Result<(), ArchiveError> {
        let is_new = |ibi: &Ibi| !item.names.matches(&Names::from(ibi.clone()));
        let Some(added) = Names::collect(forms(names).filter(is_new)) else {
            return Ok(());
        };
        self.refuse_unminted(&added)?;
        for ibi in forms(&added) {
            if let Some(other) = self.find(&ibi)?
                && other.id != item.id
                && (other.state != State::Deleted || other.names.contradicts(names))
            {
                return Err(ArchiveError::Exists(other.names.into()));
            }
        }
        let (from, to) = (Place::of(&item.names), Place::of(names));
        let may = if from == to {
            // The other name makes the item visible below the mount point.
            self.may_make("col")?
        } else {
            self.may_move(&from, &to)?
        };
        if may {
            Ok(())
        } else {
            Err(ArchiveError::MayNotName {
                names: item.names.clone().into(),
                name: added.preferred(),
            })
        }
    }

    /// Whether a user could create a directory in this one, including the missing levels above it.
    pub(super) fn may_make(&self, path: &str) -> Result<bool, ArchiveError> {
        let mut level = self.tree.open_directory("col")?;
        let below = path.strip_prefix("col/").unwrap_or_default();
        for (at, _) in below.match_indices('/').chain([(below.len(), "")]) {
            let path = format!("col/{}", below.get(..at).unwrap_or(below));
            if below.is_empty() || !self.tree.is_directory(&path) {
                break;
            }
            if !self.actor.may(level.as_fd(), Access::EXEC_OK) {
                return Ok(false);
            }
            level = self.tree.open_directory(&path)?;
        }
        Ok(self
            .actor
            .may(level.as_fd(), Access::WRITE_OK | Access::EXEC_OK))
    }

    /// Whether a user could move an item from the directory of its IBIp to that of its rep.
    fn may_move(&self, from: &Place, to: &Place) -> Result<bool, ArchiveError> {
        Ok(self.may_make(to.parent())? && self.may_take(from)?)
    }

    /// Whether a user could move an item out of the directory of its IBIp. The prefixes have the
    /// owner and the mode of the mount's root.
    fn may_take(&self, place: &Place) -> Result<bool, ArchiveError> {
        let above = self.tree.open_directory("col")?;
        let item = self.tree.open_item(place)?;
        let owner = rustix::fs::fstat(&item).ok().map(|stat| stat.st_uid);
        Ok(may_replace(self.actor, above.as_fd(), owner.or(Some(0))))
    }

    /// Creates the levels of a place for the user whose item is to be there.
    pub(super) fn make_levels(&self, place: &Place) -> Result<(), ArchiveError> {
        Ok(self
            .tree
            .make_levels_for(place.parent(), self.actor.owner())?)
    }

    /// Refuses to restore a removed item by its IBIp, if the user could not create the directory
    /// of its rep.
    pub(super) fn refuse_elsewhere(
        &self,
        wanted: &Names,
        known: &Names,
    ) -> Result<(), ArchiveError> {
        let place = Place::of(known);
        if Place::of(wanted) == place || wanted.rep().is_some() || self.may_make(place.parent())? {
            Ok(())
        } else {
            Err(ArchiveError::MayNotName {
                names: wanted.clone().into(),
                name: known.preferred(),
            })
        }
    }

    /// Refuses a sidecar that makes an original of a name in the own name space that was not minted
    /// here, as far as is known. The administrator restores originals that are no longer known.
    fn check_claim(
        &self,
        item: &Item,
        names: &Names,
        sidecar: &Sidecar,
    ) -> Result<(), ArchiveError> {
        let is_own = |ibi: Ibi| self.facts.is_own(&ibi);
        if !self.facts.claims_original(sidecar) || !forms(names).any(is_own) {
            return Ok(());
        }
        // Even the administrator cannot create an original dated in the future.
        self.refuse_unminted(names)?;
        if item.state == State::Original
            || self.is_administrator()?
            || self.keeper().was_original(names)?
        {
            return Ok(());
        }
        let noted = self.handover(names)?;
        match noted.map(|noted| noted.role) {
            Some(Role::Expects | Role::TakesBack) => Ok(()),
            Some(Role::Gives) | None => Err(ArchiveError::NotMintedHere(names.clone().into())),
        }
    }

    /// Refuses an alias that another item has, or that is an IBIp.
    pub(super) fn check_alias(&self, item: &Item, alias: &AliasPair) -> Result<(), ArchiveError> {
        let holder = match Ibip::parse(alias.as_str()) {
            Ok(ibip) => self.find(&Ibi::Ibip(ibip))?,
            Err(_) => self.store.find_by_alias(alias)?,
        };
        let alias_text = alias.to_string();
        match holder {
            Some(holder) if holder.id != item.id => Err(ArchiveError::AliasTaken {
                alias: alias_text,
                holder: holder.names.into(),
            }),
            _ if is_ibip(alias) => Err(ArchiveError::NoAlias { alias: alias_text }),
            _ => Ok(()),
        }
    }

    /// The last date that counts as given out.
    fn handed_out(&self) -> Result<Option<Timestamp>, ArchiveError> {
        match self.alone() {
            Some(_) => Ok(self.dates.last()),
            // A reader, or one of several writers, uses the dates in the index.
            None => Ok(self.store.last_date()?.max(self.store.reserved_date()?)),
        }
    }

    /// Logs the aliases in a sidecar that its item does not get.
    pub(super) fn log_refused_aliases(&self, item: &Item, sidecar: &Sidecar) {
        for alias in sidecar.aliases() {
            if let Err(error) = self.check_alias(item, alias) {
                log::warn!("{}: {error}", item.names);
            }
        }
    }

    /// Reads an item that the index knows into a record: by its place alone, if it may not have the
    /// names and the state in its sidecar, or has not been moved to the place of its names.
    pub(super) fn read_admitted(&self, place: &Names, item: &Item) -> Result<Record, ArchiveError> {
        let (record, _) = self.read_item(place)?;
        let last = self.handed_out()?.max(Some(self.clock.now()));
        let known = Evidence {
            last: last.as_ref(),
            was_accepted: false,
            item: Some(item),
        };
        let refused = self.keeper().refusal_of_read(place, &record, &known)?;
        Ok(match refused {
            None if Place::of(&record.names) == Place::of(place) => record,
            refused => {
                refused.inspect(|error| log::warn!("{error}"));
                Record::bare(place.clone(), State::Copy)
            }
        })
    }
}

impl Keeper<'_> {
    /// Whether the tombstone says that the item was an original here.
    fn was_original(&self, names: &Names) -> Result<bool, ArchiveError> {
        for place in Place::all_of(names) {
            let bytes = self.tree.read_tombstone(&place)?;
            let tombstone = bytes.and_then(|bytes| Sidecar::parse(&bytes).ok());
            if tombstone.is_some_and(|tombstone| self.facts.claims_original(&tombstone)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The reason why an item read from the tree is not recorded with the contents of its sidecar,
    /// if any. The place gives it one name, and the author of the sidecar is only known as the
    /// owner of the file.
    pub(super) fn refusal_of_read(
        &self,
        place: &Names,
        record: &Record,
        known: &Evidence<'_>,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        let is_own = |ibi: &Ibi| self.facts.is_own(ibi);
        for ibi in forms(&record.names).filter(is_own) {
            let date = date_of(&ibi);
            if Some(&date) > known.last && !self.dates.is_ahead(&date) {
                return Ok(Some(ArchiveError::NotMintedYet {
                    name: ibi.to_string(),
                }));
            }
        }
        let added = match (place.rep(), record.names.rep(), record.names.ibip()) {
            // It was not moved to the directory of its rep: refused, or not finished.
            (None, Some(rep), _) => (!self.may_finish_move(place, rep)?).then(|| rep.to_string()),
            (Some(_), _, Some(ibip)) if !known.was_accepted => match known.item {
                Some(item) if item.names.ibip().is_none() => {
                    let may =
                        self.with_author(place, |author| self.depositor(author).may_make("col"))?;
                    (!may).then(|| ibip.to_string())
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(name) = added {
            return Ok(Some(ArchiveError::MayNotName {
                names: place.clone().into(),
                name,
            }));
        }
        let is_claim = record.state == State::Original
            && !known.was_accepted
            && known.item.is_none_or(|item| item.state != State::Original)
            && forms(&record.names).any(|ibi| is_own(&ibi));
        if is_claim && !self.may_be_original(place, &record.names, known)? {
            return Ok(Some(ArchiveError::NotMintedHere(
                record.names.clone().into(),
            )));
        }
        Ok(None)
    }

    /// Whether the author of the sidecar of an item in the directory of its IBIp could move it to
    /// that of its rep, which is free.
    fn may_finish_move(&self, place: &Names, rep: &Rep) -> Result<bool, ArchiveError> {
        let from = Place::of(place);
        let to = Place::of_rep(&self.as_spelled_here(rep)?);
        if self.tree.is_directory(to.as_str()) {
            return Ok(false);
        }
        self.with_author(place, |author| self.depositor(author).may_move(&from, &to))
    }

    /// Whether an item of the own name space that claims to be an original may be one, although the
    /// index does not have it as one.
    fn may_be_original(
        &self,
        place: &Names,
        names: &Names,
        known: &Evidence<'_>,
    ) -> Result<bool, ArchiveError> {
        let known = known.item.filter(|item| item.state != State::Deleted);
        if let (Some(rep), None) = (place.rep(), known) {
            // If the index is lost, the items in the Archive's own levels are those that were minted.
            if self.facts.is_own(&Ibi::Rep(rep.clone())) {
                return Ok(true);
            }
            // It may have been minted under an earlier host name; then the owner of its sidecar, whether the
            // sidecar speaks for that user or not, cannot write in its levels.
            let level = Place::of_rep(rep);
            if let Some((owner, _)) = self.owner_of_sidecar(place)?
                && !self.depositor(&owner).may_make(level.parent())?
            {
                return Ok(true);
            }
        }
        Ok(
            self.with_author(place, |author| self.depositor(author).is_administrator())?
                || self.was_original(names)?,
        )
    }
}

/// Facts from outside of the tree, while the tree is read.
pub(super) struct Evidence<'a> {
    /// Names of the own name space count as given out up to this date; not before the present.
    pub(super) last: Option<&'a Timestamp>,
    /// Whether this same sidecar was accepted before, when its author was known.
    pub(super) was_accepted: bool,
    /// The previous index entry of the item.
    pub(super) item: Option<&'a Item>,
}

#[cfg(test)]
mod tests;
