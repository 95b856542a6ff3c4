//! Pins, which stay in the cache until they are dropped, also after a restart: a pin names the files that it keeps.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{Cache, CachedText, LEAST, blocks};
use crate::world::error::ForeignError;

/// The space that pinned files leave for others, in bytes.
const FREE: u64 = LEAST / 4;

/// The files that a pin keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pin {
    /// Its description, for people and programs.
    pub(crate) what: String,
    /// The names of its files.
    pub(crate) files: HashSet<String>,
}

/// All pins, by their names.
pub(super) type Pins = BTreeMap<String, Pin>;

impl Pin {
    fn written(&self) -> Vec<u8> {
        let mut text = format!("{}\n", self.what);
        for name in &self.files {
            text.push_str(name);
            text.push('\n');
        }
        text.into_bytes()
    }

    fn parse(text: &[u8]) -> Option<Pin> {
        let mut lines = str::from_utf8(text).ok()?.lines().map(str::to_owned);
        Some(Pin {
            what: lines.next()?,
            files: lines.collect(),
        })
    }
}

impl Cache {
    /// Reads the pins of an earlier run.
    pub(super) fn read_pins(&self) {
        for name in self.names(CachedText::Pin.folder()) {
            let key = name.rsplit('/').next().unwrap_or_default();
            match self
                .get(CachedText::Pin, key)
                .and_then(|text| Pin::parse(&text))
            {
                Some(pin) => self.hold(key, &name, pin),
                None => log::warn!("the pin {key} is damaged; its files are no longer kept"),
            }
        }
    }

    fn hold(&self, key: &str, file: &str, pin: Pin) {
        let mut state = self.state.lock();
        for name in pin.files.iter().map(String::as_str).chain([file]) {
            state.pin(name);
        }
        drop(state);
        let before = self.pins.lock().insert(key.to_owned(), pin);
        if let Some(before) = before {
            self.let_go(&before, file);
        }
    }

    fn let_go(&self, pin: &Pin, file: &str) {
        let mut state = self.state.lock();
        for name in pin.files.iter().map(String::as_str).chain([file]) {
            state.unpin(name);
        }
    }

    /// Keeps these files, which need not be there yet, until this is dropped.
    pub(crate) fn keep_for_now(self: &Arc<Self>) -> Keeping {
        Keeping {
            cache: Arc::clone(self),
            names: HashSet::new(),
        }
    }

    /// Keeps files until they are dropped, in place of those that this pin has kept before.
    pub(crate) fn pin(self: &Arc<Self>, key: &str, pin: Pin) -> Result<(), ForeignError> {
        self.put_text(CachedText::Pin, key, &pin.written())?;
        self.hold(key, &format!("{}/{key}", CachedText::Pin.folder()), pin);
        Ok(())
    }

    /// Ends a pin. Returns what it has kept.
    pub(crate) fn unpin(&self, key: &str) -> Option<Pin> {
        let pin = self.pins.lock().remove(key)?;
        let file = format!("{}/{key}", CachedText::Pin.folder());
        self.let_go(&pin, &file);
        self.remove(&file);
        Some(pin)
    }

    /// A pin.
    pub(crate) fn pinned(&self, key: &str) -> Option<Pin> {
        self.pins.lock().get(key).cloned()
    }

    /// Returns what is pinned, and how many bytes its files take.
    pub(crate) fn all_pinned(&self) -> (Vec<String>, u64) {
        let what = self
            .pins
            .lock()
            .values()
            .map(|pin| pin.what.clone())
            .collect();
        (what, self.state.lock().pinned())
    }

    /// Whether something keeps a file.
    pub(crate) fn is_pinned(&self, name: &str) -> bool {
        self.state.lock().is_pinned(name)
    }

    /// Returns how many more bytes can be pinned.
    pub(crate) fn room_for_pins(&self) -> u64 {
        let state = self.state.lock();
        state
            .limit
            .saturating_sub(FREE)
            .saturating_sub(state.pinned())
    }

    /// Returns the space that a file of this size takes on the disk.
    pub(crate) fn taken_by(size: u64) -> u64 {
        blocks(size)
    }

    /// Removes a file that no pin keeps and that the kernel has not open. Returns whether it was there.
    pub(crate) fn discard_unpinned(&self, name: &str) -> bool {
        let mut state = self.state.lock();
        let whole = state.whole_of(name).map(|(whole, _)| whole);
        let mut is_removed = false;
        for name in whole.iter().map(String::as_str).chain([name]) {
            if state.files.contains_key(name) && state.is_removable(name) {
                self.discard(&mut state, name);
                is_removed = true;
            }
        }
        is_removed
    }
}

/// Files that are kept for now.
#[derive(Debug)]
pub(crate) struct Keeping {
    cache: Arc<Cache>,
    names: HashSet<String>,
}

impl Keeping {
    /// Keeps one more.
    pub(crate) fn add(&mut self, name: String) {
        if !self.names.contains(&name) {
            self.cache.state.lock().pin(&name);
            self.names.insert(name);
        }
    }

    /// Their names.
    pub(crate) fn names(&self) -> &HashSet<String> {
        &self.names
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        for name in &self.names {
            state.unpin(name);
        }
    }
}
