//! `.mint`, and minting what a modifier names.
//!
//! A program that has just made a directory goes on filling it under the name that it gave: `cp -a DIR
//! .mint/` makes `.mint/DIR` and then what is in it. So `.mint/NAME` is a directory, empty but for the
//! sidecar, which is not in its maker's way (see `filling`), and `mkdir '<ibi>+(pt)'` is a directory for
//! the program that made it, while it fills it, and a link for all others.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::names::is_year;
use super::requests::{Sibling, relative_of};
use super::{Entry, Namespace};
use crate::archive::tree::{Owner, Place};
use crate::archive::{ArchiveError, Relative};
use crate::fuse::inode::{Kind, Node, NodeId, View};
use crate::fuse::inside::Outcome;
use crate::os::caller::Caller;

/// What came of a mkdir.
#[derive(Debug)]
pub enum Made {
    /// The directory is there.
    Done(Entry),
    /// It is to be minted, which may have to wait: see [`Namespace::mint`].
    Minting(Minting),
}

/// A mint that was asked for.
#[derive(Debug)]
pub struct Minting {
    relative: Option<Relative>,
    label: Option<String>,
    declared: Option<(NodeId, OsString)>,
    owner: Owner,
    /// The view of what is made under a modifier's name: its links climb as in that tree.
    view: View,
}

/// Who owns what is minted for a caller.
pub(super) fn owner(caller: &Caller, mode: u32, umask: u32) -> Owner {
    Owner {
        uid: caller.uid,
        gid: caller.gid,
        mode: mode & !umask & 0o7777,
    }
}

impl Namespace {
    /// mkdir at the levels of identifiers.
    pub fn make_directory(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        mode: u32,
        umask: u32,
    ) -> Outcome<Made> {
        let name_text = name.to_str().ok_or(Errno::INVAL)?;
        let minting = |relative, label, declared| {
            Ok(Made::Minting(Minting {
                relative,
                label,
                declared,
                owner: owner(caller, mode, umask),
                view: View::declared_in(parent.view),
            }))
        };
        match &parent.kind {
            Kind::Mint => {
                if name_text.starts_with('.') {
                    return Err(Errno::INVAL);
                }
                if self.labels.find(caller.uid, name_text).is_some() {
                    return Err(Errno::EXIST);
                }
                minting(None, Some(name_text.to_owned()), None)
            }
            Kind::Level(path) if !is_year(path) => {
                self.level(caller, parent, name_text, mode, umask)
            }
            Kind::Level(_) | Kind::Prefix(_) => match self.sibling(parent, name_text)? {
                Some(Sibling { item, request }) => {
                    let relative = relative_of(&item.names, &request).ok_or(Errno::INVAL)?;
                    self.check_change(caller, &item)?;
                    self.archive.check_relative(caller, &relative)?;
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
    ) -> Outcome<Made> {
        Ok(Made::Done(
            self.make_level(caller, parent, name, mode, umask)?,
        ))
    }

    /// Mints, waiting for the date where it must (SPEC 4). Called in a thread of its own; EINTR as
    /// soon as the caller is interrupted.
    pub fn mint(&self, caller: &Caller, minting: &Minting) -> Outcome<Entry> {
        let item = loop {
            let reservation = self.archive.reserve()?;
            wait(caller, reservation.wait)?;
            let owner = Some(minting.owner);
            let relative = minting.relative.as_ref();
            match self
                .archive
                .mint_empty(caller, &reservation.date, relative, owner)
            {
                // The name came from elsewhere before we minted it: the next date is ours.
                Err(ArchiveError::Exists(_)) => continue,
                other => break other?,
            }
        };
        self.note_placed(&item.names);
        if let Some(label) = &minting.label
            // Two of the same label at once: the later one keeps its item but not the label.
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

/// Waits for a date to come, looking up now and then whether the caller still does.
fn wait(caller: &Caller, wait: Duration) -> Outcome<()> {
    let until = Instant::now() + wait;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
        if caller.is_interrupted() {
            return Err(Errno::INTR);
        }
    }
}
