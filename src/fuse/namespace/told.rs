//! Texts that take long to make: the list of an item's files, and the record of a metadata item. They are
//! made when they are opened or asked for their size, not when their name is looked up: a lookup keeps
//! its directory from others.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Namespace;
use crate::archive::store::{Item, ItemId};
use crate::archive::{Act, FileList};
use crate::fuse::attr::Attr;
use crate::fuse::inode::Generated;
use crate::fuse::inside::{self, Outcome};
use crate::os::caller::Caller;

/// How much a user may hold in texts, in bytes: the longest, open, and once more while its size is asked for.
const MOST_OF_ONE: usize = 640 << 20;
/// How much all may.
const MOST: usize = 2 << 30;
/// Lists up to this long are kept after they were closed.
const LONGEST_KEPT: usize = 16 << 20;
/// How much is kept in all.
const MOST_KEPT: usize = 64 << 20;

/// A text that has been made, as long as it is open or kept.
#[derive(Debug)]
pub struct Told {
    list: FileList,
    user: u32,
    held: Arc<Mutex<Held>>,
}

impl Told {
    /// What it says.
    pub fn bytes(&self) -> &[u8] {
        &self.list.text
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let size = self.list.size();
        let mut held = self.held.lock();
        if let Some(count) = held.of_users.get_mut(&self.user) {
            *count = count.saturating_sub(size);
            if *count == 0 {
                held.of_users.remove(&self.user);
            }
        }
    }
}

/// How many bytes are held, by the user who had them made.
#[derive(Debug, Default)]
struct Held {
    of_users: HashMap<u32, usize>,
}

#[derive(Debug, Default)]
struct Kept {
    known: HashMap<Generated, Weak<Told>>,
    /// The last ones, the newest behind.
    kept: Vec<(Generated, Arc<Told>)>,
}

/// The texts that are open or kept.
#[derive(Debug, Default)]
pub(super) struct Texts {
    held: Arc<Mutex<Held>>,
    kept: Mutex<Kept>,
}

impl Texts {
    fn known(&self, asked: Generated) -> Option<Arc<Told>> {
        let kept = self.kept.lock();
        kept.known.get(&asked).and_then(Weak::upgrade)
    }

    /// Counts a text as a user's; ENOMEM where that would be too much.
    fn hold(&self, list: FileList, user: u32) -> Outcome<Arc<Told>> {
        let size = list.size();
        let is_too_much = |held: &Held| {
            let own = held.of_users.get(&user).copied().unwrap_or(0);
            let all: usize = held.of_users.values().sum();
            own + size > MOST_OF_ONE || all + size > MOST
        };
        if is_too_much(&self.held.lock()) {
            // What nobody has open gives way.
            let gone = std::mem::take(&mut self.kept.lock().kept);
            drop(gone);
        }
        let mut held = self.held.lock();
        if is_too_much(&held) {
            log::warn!("user {user} holds too much in open lists");
            return Err(Errno::NOMEM);
        }
        *held.of_users.entry(user).or_default() += size;
        drop(held);
        Ok(Arc::new(Told {
            list,
            user,
            held: Arc::clone(&self.held),
        }))
    }

    fn keep(&self, asked: Generated, told: &Arc<Told>) {
        let mut gone = Vec::new();
        let mut kept = self.kept.lock();
        kept.known.retain(|_, known| known.strong_count() > 0);
        kept.known.insert(asked, Arc::downgrade(told));
        if let Some(at) = kept.kept.iter().position(|(known, _)| *known == asked) {
            gone.push(kept.kept.remove(at));
        }
        if told.list.lasts() && told.list.size() <= LONGEST_KEPT {
            kept.kept.push((asked, Arc::clone(told)));
        }
        let all = |kept: &Kept| {
            kept.kept
                .iter()
                .map(|(_, told)| told.list.size())
                .sum::<usize>()
        };
        while all(&kept) > MOST_KEPT {
            gone.push(kept.kept.remove(0));
        }
        drop(kept);
        drop(gone);
    }
}

impl Namespace {
    /// Makes what is asked for, or gives it as it was made before where it still says so.
    pub fn tell(&self, caller: &Caller, asked: Generated) -> Outcome<Arc<Told>> {
        let act: Act<'_> = &super::siblings::reading_as(caller);
        match asked {
            Generated::FileList(id) => {
                let item = self.asked_item(id)?;
                if let Some(known) = self.texts.known(asked)
                    && self.archive.is_list_still(&item, &known.list, act)
                {
                    return Ok(known);
                }
                let list = self.archive.file_list(&item, act)?;
                let told = self.texts.hold(list, caller.uid)?;
                self.texts.keep(asked, &told);
                Ok(told)
            }
            Generated::Record { item, from } => {
                let item = self.asked_item(item)?;
                let from = from.map(|from| self.asked_item(from)).transpose()?;
                let from = from.map(|from| from.names);
                let document = self.archive.dublin_core(&item, from.as_ref(), act)?;
                let told = self.texts.hold(document.into_bytes().into(), caller.uid)?;
                self.texts.keep(asked, &told);
                Ok(told)
            }
        }
    }

    fn asked_item(&self, id: ItemId) -> Outcome<Item> {
        let item = self.archive.store().item(id)?;
        item.filter(|item| item.state != crate::formats::item::State::Deleted)
            .ok_or(Errno::NOENT)
    }

    /// The attributes of a text that has been made.
    pub fn told_attributes(&self, told: &Told) -> Outcome<Attr> {
        self.attributes_of_text(told.bytes().len() as u64)
    }

    pub(super) fn attributes_of_text(&self, size: u64) -> Outcome<Attr> {
        let like = inside::attributes(&self.collection)?;
        Ok(Attr::virtual_like(
            &like,
            FileType::RegularFile,
            0o444,
            size,
        ))
    }

    /// How long a text was when it was made last, as long as somebody has it open.
    pub(super) fn last_length(&self, asked: Generated) -> u64 {
        let known = self.texts.known(asked);
        known.map_or(0, |known| known.bytes().len() as u64)
    }
}
