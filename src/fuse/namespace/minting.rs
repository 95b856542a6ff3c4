//! `.mint`, and minting by creating a modifier's name.
//!
//! A program that has just created a directory continues to fill it under the same name: `cp -a DIR .mint/`
//! creates `.mint/DIR` and then its content. Therefore `.mint/NAME` is a directory. It is empty except for
//! the sidecar, which does not hinder its creator (see `just_minted`). Likewise `mkdir '<ibi>+(pt)'` creates a
//! directory for the program that called it, while it fills it, and a link for all others.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::requests::{Sibling, relative_of};
use super::staged_directories::is_staged_directory;
use super::timer::Timer;
use super::{Context, Entry, Namespace};
use crate::archive::tree::{Filled, Owner, Place};
use crate::archive::{ArchiveError, Begun, Relative};
use crate::formats::item::Names;
use crate::formats::mint_request::parse_question;
use crate::formats::tree_name::is_year;
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeId, NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;

/// The result of a mkdir.
#[derive(Debug)]
pub enum MkdirResult {
    /// The directory exists.
    Done(Entry),
    /// An item must be minted, which may have to wait: see [`Namespace::mint`].
    Minting(Minting),
}

/// A requested mint.
#[derive(Debug)]
pub struct Minting {
    relative: Option<Relative>,
    label: Option<String>,
    declared: Option<(NodeId, OsString)>,
    owner: Owner,
    /// The view of a directory under a modifier's name: its links are relative to that tree.
    view: View,
}

/// The owner and mode of what is minted for a caller.
pub(super) fn owner(caller: &Caller, mode: u32, umask: u32) -> Owner {
    let mode = mode & !umask & 0o7777;
    Owner {
        uid: caller.uid,
        gid: caller.gid,
        mode,
        doc_mode: mode,
    }
}

/// Whether desktops make such a directory to keep removed files in, `.Trash` or `.Trash-UID`.
fn is_bin(name: &str) -> bool {
    name.strip_prefix(".Trash")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

impl Namespace {
    /// mkdir(2) at the levels of identifiers.
    pub(super) fn make_level_or_mint(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        mode: u32,
        umask: u32,
    ) -> ErrnoResult<MkdirResult> {
        let is_level = matches!(parent.kind, NodeKind::Root | NodeKind::Level(_));
        if is_level && is_staged_directory(name) {
            let staged = self.stage_directory(caller, parent, name, (mode, umask))?;
            return Ok(MkdirResult::Done(staged));
        }
        let name_text = name.to_str().ok_or(Errno::INVAL)?;
        if is_bin(name_text) {
            return Err(Errno::PERM);
        }
        let mut owner = owner(caller, mode, umask);
        if self.archive.facts().drafts {
            owner = owner.of_draft();
        }
        let minting = |relative, label, declared| {
            Ok(MkdirResult::Minting(Minting {
                relative,
                label,
                declared,
                owner,
                view: View::declared_in(parent.view),
            }))
        };
        match &parent.kind {
            NodeKind::Mint => {
                if name_text.starts_with('.') {
                    return Err(Errno::INVAL);
                }
                if self.labels.find(caller.uid, name_text).is_some() {
                    return Err(Errno::EXIST);
                }
                minting(None, Some(name_text.to_owned()), None)
            }
            NodeKind::Level(path) if !is_year(path) => {
                self.level(caller, parent, name_text, mode, umask)
            }
            NodeKind::Level(_) | NodeKind::Prefix(_) => match self.sibling(parent, name_text)? {
                Some(Sibling { item, request }) => {
                    let relative = relative_of(&item.names, &request).ok_or(Errno::INVAL)?;
                    self.check_change(caller, &item)?;
                    self.archive.depositor(caller).check_relative(&relative)?;
                    minting(Some(relative), None, Some((parent.id, name.to_owned())))
                }
                None => self.level(caller, parent, name_text, mode, umask),
            },
            _ => self.level(caller, parent, name_text, mode, umask),
        }
    }

    fn level(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
        mode: u32,
        umask: u32,
    ) -> ErrnoResult<MkdirResult> {
        Ok(MkdirResult::Done(
            self.make_level(caller, parent, name, mode, umask)?,
        ))
    }

    /// Mints, and waits for the date if necessary: no two items get the same date (ibi(7), "Dates"). EINTR as
    /// soon as the caller is interrupted.
    pub fn mint(&self, by: &Context<'_>, minting: &Minting) -> ErrnoResult<Entry> {
        let minted = self.mint_item(by.caller, minting);
        self.settle(by, minted)
    }

    /// Mints items with `doc/` beside one that the caller's program has just minted by mkdir(2), whose mode they get, so
    /// that their dates and records are written together. Returns the names of at least one and at most as many as the
    /// question says.
    ///
    /// A directory can be asked for more than the caller may do: of a mount that is read-only for the caller it is open as
    /// well. The item that it has minted shows that it may mint. EPERM for another item.
    pub fn mint_beside(
        &self,
        by: &Context<'_>,
        first: &Node,
        question: &[u8],
    ) -> ErrnoResult<Vec<Names>> {
        let NodeKind::Item(item) = first.kind else {
            return Err(Errno::NOTTY);
        };
        if !self.has_just_minted(by.caller, item) {
            return Err(Errno::PERM);
        }
        let known = self.archive.store().item(item).map_err(errno::of_index)?;
        let known = known.ok_or(Errno::STALE)?;
        let count = parse_question(question, &known.names).ok_or(Errno::INVAL)?;
        let above = first.file()?;
        let mode = rustix::fs::fstat(&*above)?.st_mode;
        let doc = rustix::fs::statat(&*above, "doc", AtFlags::SYMLINK_NOFOLLOW);
        let owner = Some(Owner {
            doc_mode: doc.map_or(mode, |doc| doc.st_mode) & 0o7777,
            ..owner(by.caller, mode, 0)
        });
        let depositor = self.archive.depositor(by.caller);
        let items = loop {
            let begun = depositor.begin_together(count, owner, Filled::WithDoc)?;
            if let Some(last) = begun.reserved.last() {
                wait(last.wait, &*self.timer, || by.caller.is_interrupted())?;
            }
            match depositor.mint_together(begun, owner, Filled::WithDoc) {
                Err(ArchiveError::Exists(_)) => continue,
                other => break other?,
            }
        };
        let names: Vec<Names> = items.into_iter().map(|item| item.names).collect();
        for minted in &names {
            self.note_placed(minted);
        }
        self.settle(by, Ok(names))
    }

    fn mint_item(&self, caller: &Caller, minting: &Minting) -> ErrnoResult<Entry> {
        let item = loop {
            let (relative, owner) = (minting.relative.as_ref(), Some(minting.owner));
            let begun = self
                .archive
                .depositor(caller)
                .begin_mint(relative, owner, Filled::Empty);
            let minted = match begun {
                Ok(Begun::Reserved(reservation)) => {
                    let is_interrupted = || caller.is_interrupted();
                    wait(reservation.wait, &*self.timer, is_interrupted)?;
                    let date = &reservation.date;
                    self.archive
                        .depositor(caller)
                        .mint_empty(date, relative, owner)
                }
                Ok(Begun::Minted(item)) => Ok(*item),
                Err(error) => Err(error),
            };
            match minted {
                // An item with this name was copied in meanwhile: take the next date.
                Err(ArchiveError::Exists(_)) => continue,
                other => break other?,
            }
        };
        self.note_placed(&item.names);
        if let Some(label) = &minting.label
            // Of two concurrent mints with the same label, the later one keeps its item but not the label.
            && !self.labels.add(caller.uid, label, item.id)
        {
            return Err(Errno::EXIST);
        }
        let place = Place::of(&item.names);
        self.note_minted(caller, item.id, &place, minting.declared.clone());
        let view = match minting.label {
            Some(_) => View::Mint,
            None => minting.view,
        };
        self.item_entry(&item, view)
    }
}

/// The time that a thread that waits for a date sleeps before it checks whether the caller was interrupted.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until a date has come. EINTR if the caller is interrupted meanwhile.
fn wait(time: Duration, timer: &dyn Timer, is_interrupted: impl Fn() -> bool) -> ErrnoResult<()> {
    let until = timer.now() + time;
    loop {
        let left = until.saturating_duration_since(timer.now());
        if left.is_zero() {
            return Ok(());
        }
        timer.sleep(left.min(CHECK_INTERVAL));
        if is_interrupted() {
            return Err(Errno::INTR);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::fuse::namespace::timer::ManualTimer;

    #[test]
    fn an_item_has_the_mode_that_mkdir_asks_for() {
        let caller = Caller {
            uid: 1000,
            gid: 100,
            pid: 1,
        };
        for (mode, umask, expected) in [
            (0o777, 0o022, 0o755),
            (0o40_770, 0o007, 0o770),
            (0o2775, 0, 0o2775),
        ] {
            let made = owner(&caller, mode, umask);
            assert_eq!((made.uid, made.gid, made.mode), (1000, 100, expected));
        }
    }

    #[test]
    fn a_wait_ends_with_the_time_or_the_caller() {
        let milliseconds = Duration::from_millis;
        for (time, interrupted_after, expected, slept) in [
            (0, 0, Ok(()), 0),
            (1, 9, Ok(()), 1),
            (120, 9, Ok(()), 120),
            (120, 1, Err(Errno::INTR), 50),
            (120, 2, Err(Errno::INTR), 100),
        ] {
            let timer = ManualTimer::default();
            let before = timer.now();
            let checks = Cell::new(0);
            let is_interrupted = || {
                checks.set(checks.get() + 1);
                checks.get() >= interrupted_after
            };
            assert_eq!(wait(milliseconds(time), &timer, is_interrupted), expected);
            assert_eq!(timer.now() - before, milliseconds(slept), "{time}");
        }
    }
}
