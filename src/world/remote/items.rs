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
use crate::world::remote::fresh::{AnswerClock, Fresh, FreshTable, Recalled};
use crate::world::remote::inventory::ForeignInventory;
use crate::world::remote::requests::{
    ItemAnswer, LOOKUP_TIMEOUT, Located, RemoteServers, SentPage,
};
use crate::world::remote::sources::{SourceNumber, SourceOrder};
use crate::world::trouble::Trouble;
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
    pub(crate) fn now(self: &Arc<Self>, ibi: &Ibi) -> Option<Result<Arc<ItemSlot>, Trouble>> {
        let slot = self.known.slot(&ibi.canonical());
        match slot.recall() {
            Recalled::Nothing => return None,
            Recalled::Missing => return Some(Err(Trouble::Missing)),
            Recalled::Known(_) => {}
            Recalled::Due(item) => {
                let (items, slot) = (Arc::clone(self), Arc::clone(&slot));
                tokio::spawn(async move { items.confirm(&slot, &item).await });
            }
        }
        Some(Ok(slot))
    }

    /// The item of an identifier.
    pub(crate) async fn find(self: &Arc<Self>, ibi: &Ibi) -> Result<Arc<ItemSlot>, Trouble> {
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
            return self.now(ibi).unwrap_or(Err(Trouble::Missing));
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
    ) -> Result<T, Trouble>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        self.sources
            .ask(name, self.remote.sources(), until, ask)
            .await
    }

    /// Asks for an item.
    async fn fetch(self: &Arc<Self>, ibi: &Ibi, until: Instant) -> Result<ForeignItem, Trouble> {
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
    ) -> Result<ForeignItem, Trouble> {
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
    ) -> Result<ForeignItem, Trouble> {
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
            Err(Trouble::Missing) => self.fetch(&ibi, Instant::now() + LOOKUP_TIMEOUT).await,
            Err(trouble) => Err(trouble),
        };
        let new = match slot.settle(fetched) {
            Ok(new) => Some(new),
            Err(Trouble::Missing) => {
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

fn untold(base: &str) -> Trouble {
    Trouble::Unsupported(format!(
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
    accept: impl Fn(&str, &str, Vec<SentPage>) -> Result<T, Trouble> + Send + Sync + 'static,
) -> Result<T, Trouble> {
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
    ) -> Result<ForeignItem, Trouble> {
        let broken = |what: &dyn fmt::Display| Trouble::Broken(format!("{base}: {what}"));
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
mod tests {
    use super::*;
    use crate::world::remote::fresh::tests::SetClock;
    use crate::world::remote::testing::{ITEM, Peer, answer, cache, inventory};

    const ROOT: &str = "directory 755 1.0 .\nend\n";

    fn items(peer: &Peer, cache: &Arc<Cache>, clock: &Arc<SetClock>) -> (Arc<ForeignItems>, Ibi) {
        let clock = Arc::clone(clock) as Arc<dyn AnswerClock>;
        let items = ForeignItems::new(peer.archive(), Arc::clone(cache), clock);
        (Arc::new(items), Ibi::parse(ITEM).expect("an identifier"))
    }

    async fn until(is_so: impl Fn() -> bool) {
        for _ in 0..500 {
            if is_so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it does not come");
    }

    #[tokio::test]
    async fn an_item_is_asked_for_once_also_by_later_processes() {
        let peer = Peer::answering(|_| inventory(ITEM, "1", ROOT)).await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        for _ in 0..2 {
            let (items, ibi) = items(&peer, &cache, &clock);
            assert!(items.now(&ibi).is_none());
            for _ in 0..2 {
                let slot = items.find(&ibi).await.expect("an item");
                assert_eq!(
                    slot.value().expect("an item").url(),
                    format!("{}/{ITEM}", peer.url)
                );
            }
            assert_eq!((peer.asked(), items.len()), (1, 1));
        }
    }

    #[tokio::test]
    async fn an_item_with_another_name_is_refused() {
        for (item, lines) in [
            ("8JMKD3MGP8W/34PGRB2", ROOT),
            (ITEM, "end\n"),
            (ITEM, "directory 755 1.0 .\nfile 644 1.0 ../x 1 1 -\nend\n"),
            (ITEM, "directory 755 1.0 .\nfile 644 1.0 /x 1 1 -\nend\n"),
            (
                ITEM,
                "directory 755 1.0 .\nfile 644 1.0 x 1 1 -\nfile 644 1.0 x 1 1 -\nend\n",
            ),
            (ITEM, "directory 755 1.0 .\n"),
        ] {
            let peer = Peer::answering(move |_| inventory(item, "1", lines)).await;
            let ((_directory, cache), clock) = (cache(), SetClock::new());
            let (items, ibi) = items(&peer, &cache, &clock);
            let found = items.find(&ibi).await;
            assert!(matches!(found, Err(Trouble::Broken(_))), "{item} {lines}");
            assert_eq!(items.len(), 0);
        }
    }

    #[tokio::test]
    async fn a_missing_item_is_asked_for_after_a_minute() {
        let peer = Peer::answering(|_| answer(404, "", b"")).await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        let (items, ibi) = items(&peer, &cache, &clock);
        for (seconds, asked) in [(0, 1), (59, 1), (1, 2)] {
            clock.pass(seconds);
            assert_eq!(items.find(&ibi).await.err(), Some(Trouble::Missing));
            assert_eq!(peer.asked(), asked, "{seconds}");
        }
    }

    #[tokio::test]
    async fn a_change_is_noted_after_a_minute_while_the_old_item_is_given() {
        let peer = Peer::answering(|head| match head.to_lowercase() {
            head if head.contains("if-none-match") => inventory(ITEM, "2", ROOT),
            _ => inventory(
                ITEM,
                "2",
                "directory 755 1.0 .\nfile 644 1.0 x 1 1 -\nend\n",
            ),
        })
        .await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        let (items, ibi) = items(&peer, &cache, &clock);
        let changes = Arc::new(AtomicUsize::new(0));
        let noted = Arc::clone(&changes);
        items.notify(Box::new(move |_, _, after| {
            noted.fetch_add(usize::from(after.is_some()), Ordering::Relaxed);
        }));
        let slot = items.find(&ibi).await.expect("an item");
        let old = slot.value().expect("an item");
        clock.pass(60);
        assert!(items.now(&ibi).expect("an item").is_ok());
        until(|| changes.load(Ordering::Relaxed) == 1).await;
        assert!(!Arc::ptr_eq(&old, &slot.value().expect("an item")));
        assert_eq!((slot.age(), peer.asked()), (Duration::ZERO, 3));
    }

    #[tokio::test]
    async fn an_item_that_has_gone_is_missing_after_a_minute() {
        let is_gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let gone = Arc::clone(&is_gone);
        let peer = Peer::answering(move |_| {
            if gone.load(Ordering::Relaxed) {
                answer(404, "", b"")
            } else {
                inventory(ITEM, "1", ROOT)
            }
        })
        .await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        let (items, ibi) = items(&peer, &cache, &clock);
        items.find(&ibi).await.expect("an item");
        is_gone.store(true, Ordering::Relaxed);
        clock.pass(60);
        assert!(items.now(&ibi).expect("an item").is_ok());
        until(|| matches!(items.now(&ibi), Some(Err(Trouble::Missing)))).await;
        assert!(
            items.held(&ibi).is_none(),
            "neither in memory nor in the cache"
        );
    }

    #[test]
    fn what_was_written_of_an_item_is_read_and_a_torn_record_is_not() {
        let page = SentPage {
            after: b"a b\n".to_vec(),
            tag: "\"1\"".to_owned(),
            text: b"x\n\xff".to_vec(),
        };
        let pages = [page.clone(), page];
        let text = written("http://a.org", ITEM, 7, &pages);
        let read = read_written(&text).expect("an item");
        assert_eq!(
            read,
            (
                7,
                "http://a.org".to_owned(),
                ITEM.to_owned(),
                pages.to_vec()
            )
        );
        for end in [0, 3, text.len() - 1] {
            assert_eq!(read_written(&text[..end]), None, "{end}");
        }
        assert_eq!(read_written(b"7\nu\nn\n9 t a\nxx"), None);
    }
}
