//! `.mint`, and minting what a modifier names.
//!
//! Whoever has just made a directory goes on filling it under the name that it gave: `cp -a DIR
//! .mint/` makes `.mint/DIR` and then, sure that it is empty, `.mint/DIR/doc`. So what minting puts
//! into an item (`doc/` and the sidecar) is not in the way of the very process that minted it when
//! that process goes on to make it, and `mkdir '<ibi>+(pt)'` is a directory for that process, a link
//! for all others and for whoever reads the link.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::siblings::Sibling;
use super::{Entry, Namespace, is_year, text};
use crate::archive::{ArchiveError, Relative};
use crate::caller::{Caller, Intent};
use crate::inode::{Kind, Node, View};
use crate::inside::{self, Outcome};
use crate::locks::locked;
use crate::relation::{Modifier, Request, Step};
use crate::store::{Item, ItemId};
use crate::tree::{Owner, SIDECAR};

/// How many mints are remembered for those who made them.
const FRESH_LIMIT: usize = 1024;
/// How long a sidecar that somebody has removed stays hidden from it.
const GONE: Duration = Duration::from_secs(10);

/// An item just minted, and by whom.
#[derive(Debug)]
pub(super) struct Fresh {
    pid: u32,
    item: ItemId,
    /// The directory and name under which it was made, for a modifier.
    declared: Option<(u64, OsString)>,
    /// What minting put there and its maker has not made yet.
    hidden: Vec<&'static str>,
    /// When it is hidden no longer, made or not.
    until: Option<Instant>,
}

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
    declared: Option<(u64, OsString)>,
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
                if locked(&self.labels).contains_key(name_text) {
                    return Err(Errno::EXIST);
                }
                minting(None, Some(name_text.to_owned()), None)
            }
            Kind::Level(path) if !is_year(path) => {
                self.level(caller, parent, name_text, mode, umask)
            }
            Kind::Level(_) | Kind::Prefix(_) => match self.sibling(parent, name_text)? {
                Some(Sibling { item, request }) => {
                    let relative = relative_of(&item, &request).ok_or(Errno::INVAL)?;
                    self.check_change(caller, &item)?;
                    self.archive.check_relative(caller, &relative)?;
                    minting(Some(relative), None, Some((parent.number, name.to_owned())))
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
                .mint_reserved(caller, &reservation.date, relative, owner)
            {
                // The name came from elsewhere before we minted it: the next date is ours.
                Err(ArchiveError::Exists(_)) => continue,
                other => break other?,
            }
        };
        self.note_placed(&item.names);
        if let Some(label) = &minting.label {
            let mut labels = locked(&self.labels);
            // Two of the same label at once: the later one keeps its item but not the label.
            if labels.contains_key(label) {
                return Err(Errno::EXIST);
            }
            labels.insert(label.clone(), item.id);
        }
        self.remember_fresh(Fresh {
            pid: caller.pid,
            item: item.id,
            declared: minting.declared.clone(),
            hidden: vec!["doc", SIDECAR],
            until: None,
        });
        let view = match minting.label {
            Some(_) => View::Mint,
            None => minting.view,
        };
        self.item_entry(&item, view)
    }

    /// After somebody removed an item's sidecar, which is written again: whoever removed it to put
    /// its own (tar does, and tries for ever) must be able to make it.
    pub(super) fn hide_sidecar(&self, caller: &Caller, item: ItemId) {
        self.remember_fresh(Fresh {
            pid: caller.pid,
            item,
            declared: None,
            hidden: vec![SIDECAR],
            until: Some(Instant::now() + GONE),
        });
    }

    fn remember_fresh(&self, fresh: Fresh) {
        let mut all = locked(&self.fresh);
        all.retain(|known| known.until.is_none_or(|until| until > Instant::now()));
        while all.len() >= FRESH_LIMIT {
            all.pop_front();
        }
        all.push_back(fresh);
    }

    /// After an item was removed: nothing of it is hidden from anybody when it comes back.
    pub(super) fn forget_fresh(&self, item: ItemId) {
        locked(&self.fresh).retain(|fresh| fresh.item != item);
    }

    /// The item that this caller has made under a modifier's name, still a directory for it.
    pub(super) fn declared_by(&self, caller: &Caller, parent: u64, name: &str) -> Option<ItemId> {
        let found = {
            let all = locked(&self.fresh);
            let fresh = all.iter().rev().find(|fresh| {
                let is_this = |(directory, declared): &(u64, OsString)| {
                    *directory == parent && declared == name
                };
                fresh.pid == caller.pid && fresh.declared.as_ref().is_some_and(is_this)
            });
            fresh.map(|fresh| fresh.item)
        };
        found.filter(|_| caller.intent(OsStr::new(name)) != Intent::ReadLink)
    }

    /// Whether a name in an item is hidden from its maker, who believes the item empty.
    /// It is, while that process is about to make it; to read or write it there is no harm in.
    pub fn is_hidden_from(&self, caller: &Caller, item: ItemId, name: &OsStr) -> bool {
        let may_be_hidden = locked(&self.fresh).iter().any(|fresh| {
            fresh.pid == caller.pid
                && fresh.item == item
                && fresh.until.is_none_or(|until| until > Instant::now())
                && fresh.hidden.iter().any(|hidden| name == *hidden)
        });
        may_be_hidden && caller.intent(name) == Intent::Make
    }

    /// The maker now makes a hidden name itself: from here on it sees what is there. Says whether
    /// it was hidden.
    pub fn reveal(&self, caller: &Caller, item: ItemId, name: &OsStr) -> bool {
        let mut revealed = false;
        let mut all: std::sync::MutexGuard<'_, VecDeque<Fresh>> = locked(&self.fresh);
        for fresh in all.iter_mut() {
            let expired = fresh.until.is_some_and(|until| until <= Instant::now());
            if fresh.pid == caller.pid && fresh.item == item && !expired {
                let before = fresh.hidden.len();
                fresh.hidden.retain(|hidden| name != *hidden);
                revealed |= fresh.hidden.len() < before;
            }
        }
        revealed
    }

    pub(super) fn lookup_label(&self, caller: &Caller, name: &OsStr) -> Outcome<Entry> {
        let name = text(name)?;
        let (label, is_link) = match name.strip_prefix('.') {
            Some(label) => (label, true),
            None => (name, false),
        };
        let id = locked(&self.labels)
            .get(label)
            .copied()
            .ok_or(Errno::NOENT)?;
        let item = self.archive.store().item(id)?;
        let item = item.ok_or(Errno::NOENT)?;
        match is_link {
            true => {
                let target = format!("../{}", item.names.preferred());
                self.virtual_entry(View::Mint, Kind::Link(target.into_bytes()))
            }
            false => self.item_entry_beside(caller, &item, View::Mint),
        }
    }

    pub(super) fn forget_label(&self, label: &str) -> Outcome<()> {
        match locked(&self.labels).remove(label) {
            Some(_) => Ok(()),
            None => Err(Errno::NOENT),
        }
    }

    /// The labels, for listing `.mint`.
    pub(super) fn labels(&self) -> Vec<(String, ItemId)> {
        locked(&self.labels)
            .iter()
            .map(|(label, item)| (label.clone(), *item))
            .collect()
    }

    /// The real directory of a hidden name that its maker makes now.
    pub fn revealed(&self, parent: &Node, name: &OsStr) -> Outcome<Entry> {
        let descriptor = inside::find(super::directory(parent)?.as_fd(), name)?;
        self.real(descriptor, parent.view, Kind::Inside, true)
    }
}

/// What a newly minted item is, by the modifier whose name was given to mkdir.
fn relative_of(item: &Item, request: &Request) -> Option<Relative> {
    let Request::Modifier(modifier) = request else {
        return None;
    };
    let names = item.names.clone();
    match single_step(modifier)? {
        Step::LastEdition => Some(Relative::EditionOf(names)),
        Step::Translation(Some(language)) => Some(Relative::TranslationOf(names, *language)),
        Step::Metadata(None) => Some(Relative::MetadataOf(names)),
        _ => None,
    }
}

pub(super) fn single_step(modifier: &Modifier) -> Option<&Step> {
    match modifier.steps() {
        [step] => Some(step),
        _ => None,
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
