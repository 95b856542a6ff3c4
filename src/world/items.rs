//! The items that are known, and how old that knowledge is.
//!
//! What an Archive says of an item counts for a minute. Then it is asked again, once for all who look meanwhile, while
//! the old answer is given. If nobody answers the old answer stays. That an item is missing counts for a minute, too.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::formats::hex::Hex;
use crate::formats::inventory::Page;
use crate::formats::item::Names;
use crate::world::cache::{Cache, Kind};
use crate::world::inventory::Inventory;
use crate::world::remote::{Described, LOOKUP_TIMEOUT, Located, Remote, SentPage};
use crate::world::trouble::Trouble;
use ibi::Ibi;
use ibi::pairs::{percent_decode, percent_encode};

/// For how long an answer counts.
const FRESH: Duration = Duration::from_secs(60);
/// For how long an Archive that did not answer is not asked again about an item.
const PAUSE: Duration = Duration::from_secs(5);
/// The most entries of inventories in memory that nobody looks at.
const MOST_ENTRIES: usize = 400_000;
/// The most identifiers of which something is remembered.
const MOST_SLOTS: usize = 100_000;

/// An item of an Archive, as it was when it was last described.
#[derive(Debug)]
pub(crate) struct Item {
    /// What is in it.
    pub(crate) inventory: Inventory,
    /// The URL of its Archive.
    pub(crate) base: String,
    /// Its name there.
    name: String,
    /// Each page's beginning and entity tag.
    pages: Vec<(Vec<u8>, String)>,
    /// When the Archive last said that it is so, in Unix seconds.
    confirmed: AtomicI64,
    /// When it was last asked.
    asked: Mutex<Option<Instant>>,
    is_asking: AtomicBool,
}

impl Item {
    /// For how long the Archive has not confirmed it.
    pub(crate) fn age(&self) -> Duration {
        let seconds = unix_seconds() - self.confirmed.load(Ordering::Relaxed);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

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

fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[derive(Debug, Clone)]
enum State {
    Unknown,
    Missing(Instant),
    Known(Arc<Item>),
}

/// What is known of one identifier.
#[derive(Debug)]
pub(crate) struct Slot {
    key: String,
    state: Mutex<State>,
    /// Only one lookup asks at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Slot {
    /// The item as it is known at the moment.
    pub(crate) fn item(&self) -> Option<Arc<Item>> {
        match &*self.state.lock() {
            State::Known(item) => Some(Arc::clone(item)),
            _ => None,
        }
    }

    /// The identifier in its canonical spelling.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// What a name with a modifier leads to.
#[derive(Clone, Debug)]
pub(crate) enum Related {
    /// An item.
    Item(Names),
    /// A text.
    Text(Arc<[u8]>),
}

/// When somebody was asked, and what the answer was.
type Answered<T> = (Instant, Result<T, Trouble>);

/// Called with the slot of an item that has changed, with the item before and after.
pub(crate) type OnChange = Box<dyn Fn(&Slot, &Item, Option<&Item>) + Send + Sync>;

/// All items that are known.
pub(crate) struct Items {
    remote: Arc<Remote>,
    cache: Arc<Cache>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    related: Mutex<HashMap<String, Answered<Related>>>,
    on_change: OnceLock<OnChange>,
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

impl Items {
    /// No items yet.
    pub(crate) fn new(remote: Arc<Remote>, cache: Arc<Cache>) -> Items {
        Items {
            remote,
            cache,
            slots: Mutex::default(),
            related: Mutex::default(),
            on_change: OnceLock::new(),
        }
    }

    /// Sets what is called when an item has changed.
    pub(crate) fn notify(&self, on_change: OnChange) {
        let _ = self.on_change.set(on_change);
    }

    /// How many items are known.
    pub(crate) fn len(&self) -> usize {
        let slots = self.slots.lock();
        slots.values().filter(|slot| slot.item().is_some()).count()
    }

    fn slot(&self, key: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        if slots.len() >= MOST_SLOTS {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        let slot = Arc::new(Slot {
            key: key.to_owned(),
            state: Mutex::new(State::Unknown),
            turn: tokio::sync::Mutex::default(),
        });
        slots.insert(key.to_owned(), Arc::clone(&slot));
        slot
    }

    /// What is known of an identifier without asking anybody. None if somebody has to be asked.
    pub(crate) fn now(self: &Arc<Self>, ibi: &Ibi) -> Option<Result<Arc<Slot>, Trouble>> {
        let slot = self.slot(&ibi.canonical());
        let state = slot.state.lock().clone();
        match state {
            State::Known(item) => {
                self.keep_fresh(&slot, &item);
                Some(Ok(slot))
            }
            State::Missing(since) if since.elapsed() < FRESH => Some(Err(Trouble::Missing)),
            _ => None,
        }
    }

    /// The item of an identifier.
    pub(crate) async fn find(self: &Arc<Self>, ibi: &Ibi) -> Result<Arc<Slot>, Trouble> {
        if let Some(known) = self.now(ibi) {
            return known;
        }
        let slot = self.slot(&ibi.canonical());
        let until = Instant::now() + LOOKUP_TIMEOUT;
        let turn = tokio::time::timeout_at(until.into(), slot.turn.lock()).await;
        let Ok(_turn) = turn else {
            return Err(Trouble::Unreachable("no answer in time".to_owned()));
        };
        if let Some(known) = self.now(ibi) {
            return known;
        }
        if let Some(item) = self.cached(slot.key(), ibi) {
            *slot.state.lock() = State::Known(item);
            return self.now(ibi).unwrap_or(Err(Trouble::Missing));
        }
        match self.fetch(ibi, until).await {
            Ok(item) => {
                *slot.state.lock() = State::Known(Arc::new(item));
                self.shed();
                Ok(Arc::clone(&slot))
            }
            Err(Trouble::Missing) => {
                *slot.state.lock() = State::Missing(Instant::now());
                Err(Trouble::Missing)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Asks for an item: the Archives that the user has named, then a resolver.
    async fn fetch(&self, ibi: &Ibi, until: Instant) -> Result<Item, Trouble> {
        let mut trouble = None;
        for archive in self.remote.archives() {
            let base = archive.at("");
            let base = base.trim_end_matches('/');
            match self.describe(base, &ibi.to_string(), ibi, until).await {
                Err(Trouble::Missing) => {}
                Err(error) => trouble = Some(error),
                item => return item,
            }
        }
        if self.remote.has_resolver() {
            match self.remote.locate(&ibi.to_string(), until).await {
                Ok(Located::Item(base, name)) => {
                    return self.describe(&base, &name, ibi, until).await;
                }
                Ok(Located::Text(url)) => {
                    let text = format!("{url}: the Archive does not tell what is in an item");
                    return Err(Trouble::Unsupported(text));
                }
                Err(Trouble::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Err(trouble.unwrap_or(Trouble::Missing))
    }

    async fn describe(
        &self,
        base: &str,
        name: &str,
        ibi: &Ibi,
        until: Instant,
    ) -> Result<Item, Trouble> {
        match self.remote.describe(base, name, until).await? {
            Described::Pages(pages) => {
                let confirmed = unix_seconds();
                let item = item_of(base, name, ibi, confirmed, &pages)?;
                let text = written(base, name, confirmed, &pages);
                self.cache
                    .put(Kind::Item, &cache_name(&ibi.canonical()), &text);
                Ok(item)
            }
            Described::Text(_) => {
                let text = format!("{base}: the Archive does not tell what is in an item");
                Err(Trouble::Unsupported(text))
            }
        }
    }

    /// Asks in the background whether an item is still as it was, if that was confirmed too long ago.
    fn keep_fresh(self: &Arc<Self>, slot: &Arc<Slot>, item: &Arc<Item>) {
        if item.age() < FRESH || item.asked.lock().is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        if item.is_asking.swap(true, Ordering::AcqRel) {
            return;
        }
        *item.asked.lock() = Some(Instant::now());
        let (items, slot, item) = (Arc::clone(self), Arc::clone(slot), Arc::clone(item));
        tokio::spawn(async move {
            items.confirm(&slot, &item).await;
            item.is_asking.store(false, Ordering::Release);
        });
    }

    async fn confirm(&self, slot: &Arc<Slot>, item: &Arc<Item>) {
        let Ok(ibi) = Ibi::parse(slot.key()) else {
            return;
        };
        let is_same = self
            .remote
            .is_same(&item.base, &item.name, &item.pages)
            .await;
        let fetched = match is_same {
            Ok(true) => {
                item.confirmed.store(unix_seconds(), Ordering::Relaxed);
                return self.keep_time(slot.key(), item);
            }
            Ok(false) => {
                let until = Instant::now() + LOOKUP_TIMEOUT;
                self.describe(&item.base, &item.name, &ibi, until).await
            }
            // It may have moved to another Archive.
            Err(Trouble::Missing) => self.fetch(&ibi, Instant::now() + LOOKUP_TIMEOUT).await,
            Err(trouble) => Err(trouble),
        };
        match fetched {
            Ok(new) => {
                let new = Arc::new(new);
                *slot.state.lock() = State::Known(Arc::clone(&new));
                if let Some(on_change) = self.on_change.get() {
                    on_change(slot, item, Some(&new));
                }
            }
            Err(Trouble::Missing) => {
                *slot.state.lock() = State::Missing(Instant::now());
                self.cache.drop_text(Kind::Item, &cache_name(slot.key()));
                if let Some(on_change) = self.on_change.get() {
                    on_change(slot, item, None);
                }
            }
            Err(trouble) => log::info!("{}: {trouble}", slot.key()),
        }
    }

    fn keep_time(&self, key: &str, item: &Item) {
        let name = cache_name(key);
        let Some(text) = self.cache.get(Kind::Item, &name) else {
            return;
        };
        if let Some(cut) = text.iter().position(|byte| *byte == b'\n') {
            let time = item.confirmed.load(Ordering::Relaxed).to_string();
            let text = [time.as_bytes(), &text[cut..]].concat();
            self.cache.put(Kind::Item, &name, &text);
        }
    }

    fn cached(&self, key: &str, ibi: &Ibi) -> Option<Arc<Item>> {
        let text = self.cache.get(Kind::Item, &cache_name(key))?;
        let item = read_cached(&text, ibi);
        if item.is_none() {
            self.cache.drop_text(Kind::Item, &cache_name(key));
        }
        item.map(Arc::new)
    }

    /// Forgets items that nobody looks at, while there are many.
    fn shed(&self) {
        let mut slots = self.slots.lock();
        let mut entries: usize = slots
            .values()
            .filter_map(|slot| Some(slot.item()?.inventory.len()))
            .sum();
        if entries <= MOST_ENTRIES {
            return;
        }
        slots.retain(|_, slot| {
            let unused = Arc::strong_count(slot) == 1;
            let count = slot.item().map_or(0, |item| item.inventory.len());
            if unused && entries > MOST_ENTRIES {
                entries -= count;
                return false;
            }
            true
        });
    }

    /// What a name with a modifier leads to.
    pub(crate) async fn related(&self, name: &str) -> Result<Related, Trouble> {
        if let Some((when, known)) = self.related.lock().get(name)
            && when.elapsed() < FRESH
        {
            return known.clone();
        }
        let found = self
            .ask_related(name, Instant::now() + LOOKUP_TIMEOUT)
            .await;
        if matches!(found, Ok(_) | Err(Trouble::Missing)) {
            let mut related = self.related.lock();
            if related.len() >= MOST_SLOTS {
                related.clear();
            }
            related.insert(name.to_owned(), (Instant::now(), found.clone()));
        }
        found
    }

    async fn ask_related(&self, name: &str, until: Instant) -> Result<Related, Trouble> {
        let named = |identifier: &str| {
            let ibi = Ibi::parse(identifier);
            let ibi = ibi.map_err(|error| Trouble::Unsupported(error.to_string()))?;
            Ok(Related::Item(Names::from(ibi)))
        };
        let mut trouble = None;
        for archive in self.remote.archives() {
            let base = archive.at("");
            match self
                .remote
                .describe(base.trim_end_matches('/'), name, until)
                .await
            {
                Ok(Described::Text(text)) => return Ok(Related::Text(text.into())),
                Ok(Described::Pages(pages)) => {
                    let first = pages.first().map(|page| Page::parse(&page.text));
                    return match first {
                        Some(Ok(page)) => Ok(Related::Item(page.names)),
                        _ => Err(Trouble::Broken(format!("{base}: no inventory"))),
                    };
                }
                Err(Trouble::Missing) => {}
                Err(error) => trouble = Some(error),
            }
        }
        if self.remote.has_resolver() {
            match self.remote.locate(name, until).await {
                Ok(Located::Item(_, identifier)) => return named(&identifier),
                Ok(Located::Text(url)) => {
                    return Ok(Related::Text(self.remote.text(&url, until).await?.into()));
                }
                Err(Trouble::Missing) => {}
                Err(error) => return Err(error),
            }
        }
        Err(trouble.unwrap_or(Trouble::Missing))
    }
}

fn cache_name(key: &str) -> String {
    Hex(&Sha256::digest(key)).to_string()
}

/// An item as the cache keeps it: the time in Unix seconds, the URL of the Archive, the name there, and the pages, each
/// behind a line with its length, its entity tag and its beginning.
fn written(base: &str, name: &str, confirmed: i64, pages: &[SentPage]) -> Vec<u8> {
    let mut text = format!("{confirmed}\n{base}\n{name}\n").into_bytes();
    for page in pages {
        let (tag, after) = (page.tag.as_bytes(), &page.after);
        let [tag, after] = [tag, after].map(percent_encode);
        text.extend(format!("{} {tag} {after}\n", page.text.len()).into_bytes());
        text.extend_from_slice(&page.text);
    }
    text
}

fn read_cached(text: &[u8], ibi: &Ibi) -> Option<Item> {
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
    item_of(&base, &name, ibi, confirmed, &pages).ok()
}

fn item_of(
    base: &str,
    name: &str,
    ibi: &Ibi,
    confirmed: i64,
    sent: &[SentPage],
) -> Result<Item, Trouble> {
    let broken = |what: &dyn fmt::Display| Trouble::Broken(format!("{base}: {what}"));
    let pages = sent.iter().map(|page| Page::parse(&page.text));
    let pages = pages
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| broken(&error))?;
    let inventory = Inventory::of_pages(pages)?;
    let names = inventory.names();
    let is_asked = match ibi {
        Ibi::Rep(rep) => names.rep() == Some(rep),
        Ibi::Ibip(ibip) => names.ibip() == Some(ibip),
    };
    if !is_asked {
        return Err(broken(&format!("it answers with {names} instead of {ibi}")));
    }
    Ok(Item {
        inventory,
        base: base.to_owned(),
        name: name.to_owned(),
        pages: sent
            .iter()
            .map(|page| (page.after.clone(), page.tag.clone()))
            .collect(),
        confirmed: AtomicI64::new(confirmed),
        asked: Mutex::default(),
        is_asking: AtomicBool::new(false),
    })
}
