//! Items that the Archive of a copy has withdrawn or removed: it says so, and what that means here is decided here.

use crate::archive::Archive;
use crate::archive::copies::{CopyLedger, mark_gone, noted_copies};
use crate::archive::store::{By, Item};
use crate::archive::transfer::TransferError;
use crate::archive::tree::Place;
use crate::formats::copies::{CopyKind, Gone, KnownCopy};
use crate::formats::history::EventKind;
use crate::formats::history::earlier::line_of;
use crate::formats::item::{Names, State};
use ibi::Timestamp;

/// The names by which a ledger may have an Archive.
pub type IsNameOf<'a> = dyn Fn(&str) -> bool + 'a;

/// Notes that an Archive says that it has withdrawn or removed an item. Returns whether that was not known. It is ignored of an
/// item that is not held here, or of which that Archive is known to have neither the original nor a copy.
///
/// # Errors
/// The ledger cannot be read or written.
pub fn note_gone(
    archive: &Archive,
    names: &Names,
    gone: &Gone,
    is_it: &IsNameOf<'_>,
    is_told: bool,
) -> Result<bool, TransferError> {
    let Some(item) = archive.held(names)? else {
        return Ok(false);
    };
    let place = Place::of(&item.names);
    let is_its = |copy: &KnownCopy| copy.kind == CopyKind::Archive && is_it(&copy.holder);
    let known = noted_copies(archive.tree(), &place)?;
    let noted = known.iter().find(|copy| is_its(copy)).cloned();
    let original = original_at(&item).filter(|service| is_it(service));
    let copy = match (&noted, &original) {
        (Some(copy), _) => copy.clone(),
        (None, Some(service)) => KnownCopy::new(CopyKind::Archive, service.clone()),
        (None, None) => {
            log::info!("{names} is said to be gone by an Archive that is not known to have it");
            return Ok(false);
        }
    };
    if copy.gone.as_ref() == Some(gone) {
        return Ok(false);
    }
    let holder = copy.holder.clone();
    let ledger = CopyLedger::of(archive.tree())?;
    // A mark without it is passed over.
    if original.is_some() {
        mark_gone(archive.tree(), &place)?;
    }
    ledger.change(&place, |copies| {
        copies.retain(|known| known.kind != copy.kind || known.holder != copy.holder);
        copies.push(KnownCopy {
            gone: Some(gone.clone()),
            ..copy
        });
    })?;
    if is_told {
        let kind = if gone.is_removed {
            EventKind::Removed
        } else {
            EventKind::Withdrawn
        };
        let line = line_of(kind, &gone.at, &gone.reason);
        archive.tell_earlier(By::Program, &item.names, (&holder, ""), &[line]);
    }
    Ok(true)
}

/// The Archive that has the original of a copy.
fn original_at(item: &Item) -> Option<String> {
    let service = item.service.as_ref();
    let service = service.filter(|_| item.state == State::Copy);
    service.map(Names::preferred)
}

/// An item that was withdrawn or removed here.
#[derive(Debug)]
pub struct GoneHere {
    pub names: Names,
    pub gone: Gone,
    /// Whether the other Archive was told.
    pub is_told: bool,
}

/// The items that were withdrawn or removed here, all or those of the named ones, of which the Archive with these names is known
/// to have a copy, and which were public.
///
/// # Errors
/// The index cannot be read.
pub fn gone_here(
    archive: &Archive,
    named: Option<&[Names]>,
    is_it: &IsNameOf<'_>,
) -> Result<Vec<GoneHere>, TransferError> {
    let mut candidates = Vec::new();
    match named {
        None => archive.store().each_with_life(|item| {
            candidates.push(item.clone());
            Ok(())
        })?,
        Some(named) => {
            for names in named {
                candidates.extend(archive.store().find_by_names(names)?);
            }
        }
    }
    candidates.retain(|item| item.state == State::Deleted || item.life.withdrawn.is_some());
    let mut gone = Vec::new();
    for item in candidates {
        let known = noted_copies(archive.tree(), &Place::of(&item.names))?;
        let mut known = known.into_iter();
        let copy = known.find(|copy| copy.kind == CopyKind::Archive && is_it(&copy.holder));
        let Some(copy) = copy.filter(|copy| copy.gone.is_none()) else {
            continue;
        };
        if let Some(what) = archive.gone_in_public(&item)? {
            gone.push(GoneHere {
                is_told: copy.told.as_ref() == Some(&what.at),
                names: item.names,
                gone: what,
            });
        }
    }
    Ok(gone)
}

/// Notes that an Archive was told what was withdrawn or removed here.
///
/// # Errors
/// The ledger cannot be written.
pub fn note_told(
    archive: &Archive,
    (names, at): (&Names, &Timestamp),
    is_it: &IsNameOf<'_>,
) -> Result<(), TransferError> {
    let ledger = CopyLedger::of(archive.tree())?;
    let noted = ledger.change(&Place::of(names), |copies| {
        let mut copies = copies.iter_mut();
        if let Some(copy) =
            copies.find(|copy| copy.kind == CopyKind::Archive && is_it(&copy.holder))
        {
            copy.told = Some(at.clone());
        }
    });
    Ok(noted?)
}
