//! Marks sidecars in which a text would get the rights of a user who has not written it, before that can be.
//!
//! A sidecar speaks with the rights of the owner of the file (`archive/operations/rights.rs`). One that another
//! user opens for writing, or brings, has the mark of a stranger ([`STRANGERS`]) from then on; root, who may write
//! everything, does not mark what it writes. The right to write is not decided here.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, Gid, Stat, Uid};

use crate::archive::tree::{NOT_OWNERS, SIDECAR, STRANGERS, mark_strangers, speaks_for_owner};
use crate::fuse::inside::{AttributeChange, ErrnoResult};
use crate::os::caller::Caller;

const ROOT: u32 = 0;

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Marks a file that is a sidecar, or is about to be one, if the user who may write it from now on, or brings it,
/// is not its owner.
pub(super) fn before_writing(caller: &Caller, file: BorrowedFd<'_>) -> ErrnoResult<()> {
    let stat = rustix::fs::fstat(file)?;
    let is_stranger = caller.uid != stat.st_uid && caller.uid != ROOT;
    if is_stranger && is_regular(&stat) && stat.st_mode & STRANGERS == 0 {
        mark_strangers(file)?;
    }
    Ok(())
}

/// Before a file gets the name of the sidecar in an item's directory. A file of root's own, with which a command
/// of root replaces the sidecar of a user, keeps the owner and the mark of that one, since it says what that said.
pub(super) fn before_naming(
    caller: &Caller,
    file: BorrowedFd<'_>,
    item: BorrowedFd<'_>,
) -> ErrnoResult<()> {
    before_writing(caller, file)?;
    let Ok(replaced) = rustix::fs::statat(item, SIDECAR, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(());
    };
    let stat = rustix::fs::fstat(file)?;
    let is_roots = caller.uid == ROOT && stat.st_uid == ROOT;
    if !is_roots || !is_regular(&stat) || !is_regular(&replaced) {
        return Ok(());
    }
    if !speaks_for_owner(&replaced) {
        mark_strangers(file)?;
    }
    if replaced.st_uid != ROOT {
        let (uid, gid) = (
            Uid::from_raw(replaced.st_uid),
            Gid::from_raw(replaced.st_gid),
        );
        rustix::fs::chownat(file, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

/// Before the access control list of a sidecar changes: others who may write it may have done so.
pub(super) fn before_list_changes(file: BorrowedFd<'_>) -> ErrnoResult<()> {
    let mode = rustix::fs::fstat(file)?.st_mode;
    if mode & NOT_OWNERS != 0 && mode & STRANGERS == 0 {
        mark_strangers(file)?;
    }
    Ok(())
}

/// Before attributes of a sidecar change. Returns the change to make: a mode that closes it to others keeps the
/// mark, which is removed by a change of nothing else alone (chmod -t).
pub(super) fn before_changing(
    caller: &Caller,
    file: BorrowedFd<'_>,
    change: AttributeChange,
) -> ErrnoResult<AttributeChange> {
    if change.size.is_some() {
        before_writing(caller, file)?;
    }
    let stat = rustix::fs::fstat(file)?;
    let gets_owner = change.uid.is_some_and(|uid| uid != stat.st_uid);
    if gets_owner && stat.st_uid != ROOT && is_regular(&stat) {
        mark_strangers(file)?;
    }
    let before = rustix::fs::fstat(file)?.st_mode & 0o7777;
    let is_mode_alone = change.uid.is_none() && change.size.is_none();
    let marked = |mode: u32| {
        let is_kept = before & NOT_OWNERS != 0;
        let is_meant = is_mode_alone && mode & 0o7777 == before & !STRANGERS;
        if is_kept && !is_meant {
            mode | STRANGERS
        } else {
            mode
        }
    };
    Ok(AttributeChange {
        mode: change.mode.map(marked),
        ..change
    })
}
