//! Texts that are generated when they are opened or wanted for their size: the list of an item's files, and
//! the record of a metadata item. Not when their name is looked up, because a lookup locks its directory.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Namespace;
use crate::archive::store::{Item, ItemId};
use crate::archive::{FileList, RunAs};
use crate::fuse::attr::Attr;
use crate::fuse::errno;
use crate::fuse::inode::Generated;
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;

/// The bytes of texts that a user may hold: the longest one open, and once more while its size is wanted for.
const MOST_OF_ONE: usize = 640 << 20;
/// The bytes that all users may hold.
const MOST: usize = 2 << 30;
/// Lists of up to so many bytes are cached after they were closed.
const LONGEST_CACHED: usize = 16 << 20;
/// The bytes that are cached in all.
const MOST_CACHED: usize = 64 << 20;

/// A text that was generated, as long as it is open or cached.
#[derive(Debug)]
pub struct GeneratedText {
    list: FileList,
    user: u32,
    usage: Arc<Mutex<Usage>>,
}

impl GeneratedText {
    /// Its content.
    pub fn bytes(&self) -> &[u8] {
        &self.list.text
    }
}

impl Drop for GeneratedText {
    fn drop(&mut self) {
        let size = self.list.size();
        let mut usage = self.usage.lock();
        if let Some(count) = usage.of_users.get_mut(&self.user) {
            *count = count.saturating_sub(size);
            if *count == 0 {
                usage.of_users.remove(&self.user);
            }
        }
    }
}

/// The bytes that are in memory, by the user for whom they were generated.
#[derive(Debug, Default)]
struct Usage {
    of_users: HashMap<u32, usize>,
}

#[derive(Debug, Default)]
struct TextCache {
    known: HashMap<Generated, Weak<GeneratedText>>,
    /// The latest texts, the newest last.
    latest: Vec<(Generated, Arc<GeneratedText>)>,
}

/// The texts that are open or cached.
#[derive(Debug, Default)]
pub(super) struct GeneratedTexts {
    usage: Arc<Mutex<Usage>>,
    cache: Mutex<TextCache>,
}

impl GeneratedTexts {
    fn known(&self, wanted: Generated) -> Option<Arc<GeneratedText>> {
        let cache = self.cache.lock();
        cache.known.get(&wanted).and_then(Weak::upgrade)
    }

    /// Counts a text as a user's; ENOMEM if the user, or all, would hold too much.
    fn hold(&self, list: FileList, user: u32) -> ErrnoResult<Arc<GeneratedText>> {
        let size = list.size();
        let is_too_much = |usage: &Usage| {
            let own = usage.of_users.get(&user).copied().unwrap_or(0);
            let all: usize = usage.of_users.values().sum();
            own + size > MOST_OF_ONE || all + size > MOST
        };
        if is_too_much(&self.usage.lock()) {
            // A text that is not open is dropped first.
            let gone = std::mem::take(&mut self.cache.lock().latest);
            drop(gone);
        }
        let mut usage = self.usage.lock();
        if is_too_much(&usage) {
            log::warn!("user {user} holds too much in open lists");
            return Err(Errno::NOMEM);
        }
        *usage.of_users.entry(user).or_default() += size;
        drop(usage);
        Ok(Arc::new(GeneratedText {
            list,
            user,
            usage: Arc::clone(&self.usage),
        }))
    }

    fn keep(&self, wanted: Generated, text: &Arc<GeneratedText>) {
        let mut gone = Vec::new();
        let mut cache = self.cache.lock();
        cache.known.retain(|_, known| known.strong_count() > 0);
        cache.known.insert(wanted, Arc::downgrade(text));
        if let Some(at) = cache.latest.iter().position(|(known, _)| *known == wanted) {
            gone.push(cache.latest.remove(at));
        }
        if text.list.lasts() && text.list.size() <= LONGEST_CACHED {
            cache.latest.push((wanted, Arc::clone(text)));
        }
        let all = |cache: &TextCache| {
            cache
                .latest
                .iter()
                .map(|(_, text)| text.list.size())
                .sum::<usize>()
        };
        while all(&cache) > MOST_CACHED {
            gone.push(cache.latest.remove(0));
        }
        drop(cache);
        drop(gone);
    }
}

impl Namespace {
    /// Generates a text, or returns the one generated before if it is still valid.
    pub fn generate(&self, caller: &Caller, wanted: Generated) -> ErrnoResult<Arc<GeneratedText>> {
        let act: RunAs<'_> = &super::siblings::reading_as(caller);
        match wanted {
            Generated::FileList(id) => {
                let item = self.wanted_item(id)?;
                if let Some(known) = self.texts.known(wanted)
                    && self.archive.read_as(act).is_list_still(&item, &known.list)
                {
                    return Ok(known);
                }
                let list = self.archive.read_as(act).file_list(&item)?;
                let text = self.texts.hold(list, caller.uid)?;
                self.texts.keep(wanted, &text);
                Ok(text)
            }
            Generated::Record { item, from, format } => {
                let item = self.wanted_item(item)?;
                let from = from.map(|from| self.wanted_item(from)).transpose()?;
                let from = from.map(|from| from.names);
                let document = self
                    .archive
                    .read_as(act)
                    .document(&item, from.as_ref(), format)?;
                let text = self.texts.hold(document.into_bytes().into(), caller.uid)?;
                self.texts.keep(wanted, &text);
                Ok(text)
            }
        }
    }

    fn wanted_item(&self, id: ItemId) -> ErrnoResult<Item> {
        let item = self.archive.store().item(id).map_err(errno::of_index)?;
        item.filter(|item| item.state != crate::formats::item::State::Deleted)
            .ok_or(Errno::NOENT)
    }

    /// The attributes of a text, which is generated to know its size.
    pub fn generated_attributes(&self, caller: &Caller, generated: Generated) -> ErrnoResult<Attr> {
        let text = self.generate(caller, generated)?;
        self.attributes_of_text(text.bytes().len() as u64)
    }

    /// The attributes of a virtual text of this size.
    pub(super) fn attributes_of_text(&self, size: u64) -> ErrnoResult<Attr> {
        let like = inside::attributes(&self.collection)?;
        Ok(Attr::virtual_like(
            &like,
            FileType::RegularFile,
            0o444,
            size,
        ))
    }

    /// Returns how long a text was when it was generated last; 0 if it is neither open nor cached.
    pub(super) fn last_length(&self, wanted: Generated) -> u64 {
        let known = self.texts.known(wanted);
        known.map_or(0, |known| known.bytes().len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::store::ItemId;

    /// A text of this length. The memory is not touched.
    fn text(length: usize) -> FileList {
        vec![0; length].into()
    }

    #[test]
    fn a_user_holds_so_many_bytes_until_they_are_closed() {
        let texts = GeneratedTexts::default();
        let hold = |length, user| texts.hold(text(length), user);
        let first = hold(MOST_OF_ONE - 1, 1).expect("allowed");
        let second = hold(1, 1).expect("just allowed");
        assert_eq!(hold(1, 1).err(), Some(Errno::NOMEM));
        assert!(hold(1, 2).is_ok(), "another user");
        drop(second);
        assert!(hold(1, 1).is_ok());
        drop(first);
        assert!(hold(MOST_OF_ONE, 1).is_ok());
        assert!(texts.usage.lock().of_users.is_empty(), "all are closed");
    }

    #[test]
    fn all_users_together_hold_so_many_bytes() {
        let texts = GeneratedTexts::default();
        let hold = |length, user| texts.hold(text(length), user);
        let quarter = MOST / 4;
        let held: Vec<_> = (0..4).map(|user| hold(quarter, user)).collect();
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(hold(1, 5).err(), Some(Errno::NOMEM));
        drop(held);
        assert!(hold(1, 5).is_ok());
    }

    #[test]
    fn a_text_that_cannot_be_checked_is_known_while_it_is_open() {
        let texts = GeneratedTexts::default();
        let wanted = Generated::FileList(ItemId(1));
        let other = Generated::FileList(ItemId(2));
        let open = texts.hold(text(5), 1).expect("allowed");
        texts.keep(wanted, &open);
        assert!(
            texts
                .known(wanted)
                .is_some_and(|known| Arc::ptr_eq(&known, &open))
        );
        assert!(texts.known(other).is_none());
        drop(open);
        assert!(texts.known(wanted).is_none());
    }
}
