//! The items that are known, for as long as `fresh` says.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::formats::hex::Hex;
use crate::formats::inventory::Page;
use crate::formats::item::Names;
use crate::os::memory;
use crate::world::cache::{Cache, CachedText};
use crate::world::error::ForeignError;
use crate::world::remote::fresh::{AnswerClock, Fresh, FreshTable, Recalled};
use crate::world::remote::inventory::ForeignInventory;
use crate::world::remote::requests::{
    ItemAnswer, LOOKUP_TIMEOUT, Located, RemoteServers, SentPage,
};
use crate::world::remote::sources::{SourceNumber, SourceOrder};
use ibi::Ibi;
use ibi::pairs::{percent_decode, percent_encode};

/// The bytes of inventories held in memory before those that were not used for the longest time are forgotten. In
/// memory they take two to three times as much as the text.
const MOST_HELD: usize = 128 << 20;
/// The interval at which items are forgotten: the kernel forgets their names later than it is asked to.
const SHED_INTERVAL: Duration = Duration::from_secs(1);
/// The most identifiers of which something is remembered.
const MOST_SLOTS: usize = 100_000;

/// An item of an Archive, as it was when it was last described.
#[derive(Debug)]
pub(crate) struct ForeignItem {
    /// Its entries.
    pub(crate) inventory: ForeignInventory,
    /// The URL of its Archive.
    pub(crate) base: String,
    /// Its name there.
    name: String,
    /// Each page's beginning and entity tag.
    pages: Vec<(Vec<u8>, String)>,
    held: HeldBytes,
}

/// Counts the bytes of an inventory while it is held.
#[derive(Debug)]
struct HeldBytes {
    bytes: usize,
    all: Arc<AtomicUsize>,
}

impl HeldBytes {
    fn new(bytes: usize, all: &Arc<AtomicUsize>) -> HeldBytes {
        all.fetch_add(bytes, Ordering::Relaxed);
        HeldBytes {
            bytes,
            all: Arc::clone(all),
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ForeignItem {
    /// The URL of its page.
    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.base, self.name)
    }

    /// The URL of one of its files.
    pub(crate) fn file_url(&self, path: &[u8]) -> String {
        let below = crate::web::service::content_url(self.inventory.names(), path);
        format!("{}/{below}", self.base)
    }
}

/// All that is known of one identifier; its key is the canonical spelling.
pub(crate) type ItemSlot = Fresh<ForeignItem>;

/// Called with the slot of an item that has changed, with the item before and after.
pub(crate) type OnChange = Box<dyn Fn(&ItemSlot, &ForeignItem, Option<&ForeignItem>) + Send + Sync>;

/// All items that are known.
pub(crate) struct ForeignItems {
    remote: Arc<RemoteServers>,
    cache: Arc<Cache>,
    /// The servers that are asked. Their answers count for no others.
    scope: String,
    known: FreshTable<ForeignItem>,
    sources: SourceOrder,
    on_change: OnceLock<OnChange>,
    /// The bytes of all inventories in memory.
    bytes_held: Arc<AtomicUsize>,
    shed_at: Mutex<Option<Instant>>,
}

impl fmt::Debug for ForeignItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

impl ForeignItems {
    /// No items yet.
    pub(crate) fn new(
        remote: Arc<RemoteServers>,
        cache: Arc<Cache>,
        clock: Arc<dyn AnswerClock>,
    ) -> ForeignItems {
        ForeignItems {
            scope: remote.scope(),
            remote,
            cache,
            known: FreshTable::new(MOST_SLOTS, clock),
            sources: SourceOrder::default(),
            on_change: OnceLock::new(),
            bytes_held: Arc::default(),
            shed_at: Mutex::default(),
        }
    }

    /// Sets what is called when an item has changed.
    pub(crate) fn notify(&self, on_change: OnChange) {
        let _ = self.on_change.set(on_change);
    }

    /// Returns the number of items that are known.
    pub(crate) fn len(&self) -> usize {
        self.known.values().len()
    }

    /// The clock by which answers grow old.
    pub(crate) fn clock(&self) -> &Arc<dyn AnswerClock> {
        self.known.clock()
    }

    /// Returns what is known of an identifier without a request. None if a request is needed.
    pub(crate) fn now(self: &Arc<Self>, ibi: &Ibi) -> Option<Result<Arc<ItemSlot>, ForeignError>> {
        let slot = self.known.slot(&ibi.canonical());
        match slot.recall() {
            Recalled::Nothing => return None,
            Recalled::Missing => return Some(Err(ForeignError::Missing)),
            Recalled::Known(_) => {}
            Recalled::Due(item) => {
                let (items, slot) = (Arc::clone(self), Arc::clone(&slot));
                tokio::spawn(async move { items.confirm(&slot, &item).await });
            }
        }
        Some(Ok(slot))
    }

    /// The item of an identifier.
    pub(crate) async fn find(self: &Arc<Self>, ibi: &Ibi) -> Result<Arc<ItemSlot>, ForeignError> {
        if let Some(known) = self.now(ibi) {
            return known;
        }
        let slot = self.known.slot(&ibi.canonical());
        let until = Instant::now() + LOOKUP_TIMEOUT;
        let _turn = slot.turn(until).await?;
        if let Some(known) = self.now(ibi) {
            return known;
        }
        if let Some((item, confirmed)) = self.cached(slot.key(), ibi) {
            slot.know(item, confirmed);
            self.shed();
            return self.now(ibi).unwrap_or(Err(ForeignError::Missing));
        }
        slot.settle(self.fetch(ibi, until).await)?;
        self.shed();
        Ok(Arc::clone(&slot))
    }

    /// The name of an item in the cache.
    pub(crate) fn key_of(&self, key: &str) -> String {
        Hex(&Sha256::digest(format!("{}\n{key}", self.scope))).to_string()
    }

    /// The file of the cache that has the inventory of an item.
    pub(crate) fn file_of(&self, key: &str) -> String {
        Cache::file_of(CachedText::Item, &self.key_of(key))
    }

    /// An item that is known, or in the cache.
    pub(crate) fn held(&self, ibi: &Ibi) -> Option<Arc<ForeignItem>> {
        let key = ibi.canonical();
        let known = self.known.held(&key);
        known.or_else(|| Some(Arc::new(self.cached(&key, ibi)?.0)))
    }

    /// Returns the servers that it asks.
    pub(crate) fn remote(&self) -> &RemoteServers {
        &self.remote
    }

    /// Asks the Archives that the user has named, and a resolver, about a name: their numbers are those of the Archives,
    /// and one more.
    pub(crate) async fn ask_sources<T, F>(
        &self,
        name: &str,
        until: Instant,
        ask: impl Fn(SourceNumber) -> F,
    ) -> Result<T, ForeignError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ForeignError>> + Send + 'static,
    {
        self.sources
            .ask(name, self.remote.sources(), until, ask)
            .await
    }

    /// Asks for an item.
    async fn fetch(
        self: &Arc<Self>,
        ibi: &Ibi,
        until: Instant,
    ) -> Result<ForeignItem, ForeignError> {
        let (items, asked) = (Arc::clone(self), ibi.clone());
        let accept = move |base: &str, name: &str, pages: Vec<SentPage>| {
            items.accept((base, name), &asked, &pages)
        };
        ask(&self.remote, &self.sources, &ibi.to_string(), until, accept).await
    }

    async fn describe(
        &self,
        base: &str,
        name: &str,
        ibi: &Ibi,
        until: Instant,
    ) -> Result<ForeignItem, ForeignError> {
        match self.remote.describe(base, name, until).await? {
            ItemAnswer::Pages(pages) => self.accept((base, name), ibi, &pages),
            ItemAnswer::Text(_) => Err(untold(base)),
        }
    }

    /// The item in an answer, which is cached.
    fn accept(
        &self,
        (base, name): (&str, &str),
        ibi: &Ibi,
        pages: &[SentPage],
    ) -> Result<ForeignItem, ForeignError> {
        let item = self.item_of(base, name, ibi, pages)?;
        let text = written(base, name, self.clock().unix_seconds(), pages);
        self.cache
            .put(CachedText::Item, &self.key_of(&ibi.canonical()), &text);
        Ok(item)
    }

    /// Asks whether an item is still as it was.
    async fn confirm(self: &Arc<Self>, slot: &ItemSlot, item: &ForeignItem) {
        let Ok(ibi) = Ibi::parse(slot.key()) else {
            return;
        };
        let is_same = self
            .remote
            .is_same(&item.base, &item.name, &item.pages)
            .await;
        let fetched = match is_same {
            Ok(true) => {
                slot.confirm();
                return self.keep_time(slot);
            }
            Ok(false) => {
                let until = Instant::now() + LOOKUP_TIMEOUT;
                self.describe(&item.base, &item.name, &ibi, until).await
            }
            // It may have moved to another Archive.
            Err(ForeignError::Missing) => self.fetch(&ibi, Instant::now() + LOOKUP_TIMEOUT).await,
            Err(trouble) => Err(trouble),
        };
        let new = match slot.settle(fetched) {
            Ok(new) => Some(new),
            Err(ForeignError::Missing) => {
                let url = item.url();
                log::info!("{url} does not give the item out any more; its page says why");
                let name = self.key_of(slot.key());
                self.cache.drop_text(CachedText::Item, &name);
                None
            }
            Err(trouble) => return log::info!("{}: {trouble}", slot.key()),
        };
        if let Some(on_change) = self.on_change.get() {
            on_change(slot, item, new.as_deref());
        }
    }

    fn keep_time(&self, slot: &ItemSlot) {
        let name = self.key_of(slot.key());
        let Some(text) = self.cache.get(CachedText::Item, &name) else {
            return;
        };
        if let Some(cut) = text.iter().position(|byte| *byte == b'\n') {
            let text = [slot.confirmed().to_string().as_bytes(), &text[cut..]].concat();
            self.cache.put(CachedText::Item, &name, &text);
        }
    }

    /// An item as the cache has it, and the time in Unix seconds at which its Archive last said so.
    fn cached(&self, key: &str, ibi: &Ibi) -> Option<(ForeignItem, i64)> {
        let text = self.cache.get(CachedText::Item, &self.key_of(key))?;
        let item = self.read_cached(&text, ibi);
        if item.is_none() {
            self.cache.drop_text(CachedText::Item, &self.key_of(key));
        }
        item
    }

    /// Forgets the items that were not used for the longest time, while there are many. The names of those that the
    /// kernel knows are made stale first; they are forgotten when the kernel has forgotten them.
    fn shed(&self) {
        let held = self.bytes_held.load(Ordering::Relaxed);
        if held <= MOST_HELD {
            return;
        }
        let mut shed_at = self.shed_at.lock();
        if shed_at.is_some_and(|at| at.elapsed() < SHED_INTERVAL) {
            return;
        }
        *shed_at = Some(Instant::now());
        let excess = held - MOST_HELD;
        let in_use = self.known.shed(excess, |item| item.held.bytes);
        if let Some(on_change) = self.on_change.get() {
            for (slot, item) in in_use {
                on_change(&slot, &item, None);
            }
        }
        tokio::spawn(async {
            tokio::time::sleep(SHED_INTERVAL).await;
            tokio::task::spawn_blocking(memory::give_back);
        });
    }
}

fn untold(base: &str) -> ForeignError {
    ForeignError::Unsupported(format!(
        "{base}: the Archive does not tell what is in an item"
    ))
}

/// Asks for the item with a name, an identifier with or without a modifier: the Archives that the user has named, and a
/// resolver. `accept` gets the URL of the Archive that answers, the name there, and the pages of the inventory.
pub(crate) async fn ask<T: Send + 'static>(
    remote: &Arc<RemoteServers>,
    sources: &SourceOrder,
    name: &str,
    until: Instant,
    accept: impl Fn(&str, &str, Vec<SentPage>) -> Result<T, ForeignError> + Send + Sync + 'static,
) -> Result<T, ForeignError> {
    let accept = Arc::new(accept);
    let count = remote.sources();
    let ask = |number: SourceNumber| {
        let (remote, accept, name) = (Arc::clone(remote), Arc::clone(&accept), name.to_owned());
        async move {
            let (base, name) = match remote.archives().get(number) {
                Some(archive) => (archive.at("").trim_end_matches('/').to_owned(), name),
                None => match remote.locate(&name, until).await? {
                    Located::Item(base, name) => (base, name),
                    Located::Text(url) => return Err(untold(&url)),
                },
            };
            match remote.describe(&base, &name, until).await? {
                ItemAnswer::Pages(pages) => accept(&base, &name, pages),
                ItemAnswer::Text(_) => Err(untold(&base)),
            }
        }
    };
    sources.ask(name, count, until, ask).await
}

pub(crate) fn cache_name(key: &str) -> String {
    Hex(&Sha256::digest(key)).to_string()
}

/// An item as the cache keeps it: the time in Unix seconds, the URL of the Archive, the name there, and the pages, each
/// behind a line with its length, its entity tag and its beginning.
pub(crate) fn written(base: &str, name: &str, confirmed: i64, pages: &[SentPage]) -> Vec<u8> {
    let mut text = format!("{confirmed}\n{base}\n{name}\n").into_bytes();
    for page in pages {
        let (tag, after) = (page.tag.as_bytes(), &page.after);
        let [tag, after] = [tag, after].map(percent_encode);
        text.extend(format!("{} {tag} {after}\n", page.text.len()).into_bytes());
        text.extend_from_slice(&page.text);
    }
    text
}

/// Reads what [`written`] has written: the time, the URL, the name and the pages.
pub(crate) fn read_written(text: &[u8]) -> Option<(i64, String, String, Vec<SentPage>)> {
    let mut rest = text;
    let mut line = || {
        let cut = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at(cut);
        rest = &after[1..];
        str::from_utf8(line).ok().map(str::to_owned)
    };
    let (confirmed, base, name) = (line()?.parse().ok()?, line()?, line()?);
    let mut pages = Vec::new();
    while !rest.is_empty() {
        let cut = rest.iter().position(|byte| *byte == b'\n')?;
        let (head, after) = rest.split_at(cut);
        let words: Vec<&str> = str::from_utf8(head).ok()?.split(' ').collect();
        let [length, tag, begins] = words[..] else {
            return None;
        };
        let (text, after) = after[1..].split_at_checked(length.parse().ok()?)?;
        pages.push(SentPage {
            after: percent_decode(begins),
            tag: String::from_utf8(percent_decode(tag)).ok()?,
            text: text.to_vec(),
        });
        rest = after;
    }
    Some((confirmed, base, name, pages))
}

/// Whether an identifier is one of an item's names.
pub(crate) fn is_named(names: &Names, ibi: &Ibi) -> bool {
    match ibi {
        Ibi::Rep(rep) => names.rep() == Some(rep),
        Ibi::Ibip(ibip) => names.ibip() == Some(ibip),
    }
}

impl ForeignItems {
    fn read_cached(&self, text: &[u8], ibi: &Ibi) -> Option<(ForeignItem, i64)> {
        let (confirmed, base, name, pages) = read_written(text)?;
        let item = self.item_of(&base, &name, ibi, &pages).ok()?;
        Some((item, confirmed))
    }

    fn item_of(
        &self,
        base: &str,
        name: &str,
        ibi: &Ibi,
        sent: &[SentPage],
    ) -> Result<ForeignItem, ForeignError> {
        let broken = |what: &dyn fmt::Display| ForeignError::Broken(format!("{base}: {what}"));
        let pages = sent.iter().map(|page| Page::parse(&page.text));
        let pages = pages
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| broken(&error))?;
        let inventory = ForeignInventory::of_pages(pages)?;
        let names = inventory.names();
        if !is_named(names, ibi) {
            return Err(broken(&format!("it answers with {names} instead of {ibi}")));
        }
        Ok(ForeignItem {
            inventory,
            base: base.to_owned(),
            name: name.to_owned(),
            pages: sent
                .iter()
                .map(|page| (page.after.clone(), page.tag.clone()))
                .collect(),
            held: HeldBytes::new(
                sent.iter().map(|page| page.text.len()).sum(),
                &self.bytes_held,
            ),
        })
    }
}

#[cfg(test)]
mod tests;
