//! The names below the levels of one Archive, as it lists them, and how old that knowledge is.
//!
//! A level is fetched in pages, when a listing gets there, and counts for as long as `fresh` says.

use std::sync::Arc;
use std::time::Instant;

use crate::formats::entry::EntryStat;
use crate::formats::level::{LevelName, LevelPage, ListOrder, MEDIA_TYPE, NameKind};
use crate::formats::query::encoded;
use crate::formats::tree_name::LevelPath;
use crate::world::cache::{Cache, CachedText};
use crate::world::error::ForeignError;
use crate::world::remote::fresh::{AnswerClock, Fresh, FreshTable, Recalled};
use crate::world::remote::items::{cache_name, read_written, written};
use crate::world::remote::requests::{LOOKUP_TIMEOUT, PageAnswer, Paged, RemoteServers, SentPage};

/// The memory that a name takes beyond its bytes.
const OVERHEAD: usize = 64;
/// The most memory that the names of a level may take, in bytes: that of 1,500,000 items.
const MOST_WEIGHT: usize = 128 << 20;
/// The most pages of a level.
const MOST_PAGES: usize = 2_048;
/// The most memory for the names of all levels that are remembered, in bytes.
const MOST_HELD: usize = 32 << 20;
/// The most levels of which something is remembered.
const MOST_SLOTS: usize = 20_000;

/// A page of a level.
#[derive(Debug)]
struct ListedPage {
    /// The place at which it begins.
    after: Vec<u8>,
    /// Its entity tag, with the quotes.
    tag: String,
    names: Vec<LevelName>,
    /// The number of names before it.
    before: usize,
}

/// The names below a level, as far as they have been fetched.
#[derive(Debug)]
pub(crate) struct RemoteListing {
    /// The level in the spelling that is recorded.
    pub(crate) path: LevelPath,
    /// Its known attributes.
    pub(crate) stat: EntryStat,
    pages: Vec<Arc<ListedPage>>,
    order: ListOrder,
    /// The memory that the names take, in bytes.
    weight: usize,
    /// The beginning of the next page.
    next: Option<Vec<u8>>,
}

/// The answer of a listing about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingSays<'a> {
    /// It is there, in this spelling.
    There(&'a LevelName),
    /// It is not there.
    Missing,
    /// Nothing, since it has not been fetched so far.
    Nothing,
}

fn broken(what: impl std::fmt::Display) -> ForeignError {
    ForeignError::Broken(format!("a level: {what}"))
}

impl RemoteListing {
    /// The listing that begins with a page.
    fn begin(asked: &LevelPath, sent: &SentPage) -> Result<RemoteListing, ForeignError> {
        let page = LevelPage::parse(&sent.text).map_err(broken)?;
        let begun = RemoteListing {
            path: page.path.clone(),
            stat: page.stat,
            pages: Vec::new(),
            order: ListOrder::default(),
            weight: 0,
            next: None,
        };
        if begun.path.key() != asked.key() {
            return Err(broken(format!("it is not '{}'", asked.as_str())));
        }
        begun.and(page, sent)
    }

    /// The listing with a further page.
    fn with(&self, sent: &SentPage) -> Result<RemoteListing, ForeignError> {
        let page = LevelPage::parse(&sent.text).map_err(broken)?;
        let copy = RemoteListing {
            path: self.path.clone(),
            stat: self.stat,
            pages: self.pages.clone(),
            order: self.order.clone(),
            weight: self.weight,
            next: None,
        };
        copy.and(page, sent)
    }

    fn and(mut self, page: LevelPage, sent: &SentPage) -> Result<RemoteListing, ForeignError> {
        if page.path.key() != self.path.key() {
            return Err(broken("its pages are those of several levels"));
        }
        let before = self.len();
        let is_endless = page.next.as_ref() == Some(&sent.after);
        let names = page.names.iter();
        self.weight += names.map(|name| name.name.len() + OVERHEAD).sum::<usize>();
        if is_endless || self.pages.len() >= MOST_PAGES || self.weight > MOST_WEIGHT {
            return Err(broken("it has more names than a level may have"));
        }
        for name in &page.names {
            if !self.order.add(&self.path, name) {
                return Err(broken("its pages are not in order"));
            }
        }
        self.pages.push(Arc::new(ListedPage {
            after: sent.after.clone(),
            tag: sent.tag.clone(),
            names: page.names,
            before,
        }));
        self.next = page.next;
        Ok(self)
    }

    /// Returns the number of names that are known.
    pub(crate) fn len(&self) -> usize {
        let last = self.pages.last();
        last.map_or(0, |page| page.before + page.names.len())
    }

    /// Whether all names are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.next.is_none()
    }

    /// A name by its number.
    pub(crate) fn get(&self, at: usize) -> Option<&LevelName> {
        let page = self.pages.partition_point(|page| page.before <= at);
        let page = self.pages.get(page.checked_sub(1)?)?;
        page.names.get(at - page.before)
    }

    /// Returns what it says of the name of a level below it, in any spelling.
    pub(crate) fn level(&self, name: &str) -> ListingSays<'_> {
        let order = |name: &LevelName| self.path.order(&name.name, name.kind);
        let Some(wanted) = self.path.order(name, NameKind::Level(self.stat)) else {
            return ListingSays::Missing;
        };
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle) {
                Some(found) if order(found).as_ref() < Some(&wanted) => low = middle + 1,
                _ => high = middle,
            }
        }
        match self.get(low) {
            Some(found) if order(found).as_ref() == Some(&wanted) => ListingSays::There(found),
            Some(_) => ListingSays::Missing,
            None if self.is_complete() => ListingSays::Missing,
            None => ListingSays::Nothing,
        }
    }

    /// Its pages as they were sent.
    fn sent(&self) -> Vec<SentPage> {
        let after = self.pages.iter().skip(1).map(|page| Some(&page.after));
        let pages = self.pages.iter().zip(after.chain([self.next.as_ref()]));
        pages
            .map(|(page, next)| {
                let text = LevelPage {
                    path: self.path.clone(),
                    stat: self.stat,
                    names: page.names.clone(),
                    next: next.cloned(),
                };
                SentPage {
                    after: page.after.clone(),
                    tag: page.tag.clone(),
                    text: text.to_string().into_bytes(),
                }
            })
            .collect()
    }
}

type LevelSlot = Fresh<RemoteListing>;

/// The levels of an Archive.
#[derive(Debug)]
pub(crate) struct Levels {
    /// The URL of the Archive, without a slash at its end.
    base: String,
    remote: Arc<RemoteServers>,
    cache: Arc<Cache>,
    known: FreshTable<RemoteListing>,
}

impl Levels {
    /// The levels of the Archive at this URL. Nothing is known of them yet.
    pub(crate) fn new(
        base: &str,
        remote: Arc<RemoteServers>,
        cache: Arc<Cache>,
        clock: Arc<dyn AnswerClock>,
    ) -> Levels {
        Levels {
            base: base.trim_end_matches('/').to_owned(),
            remote,
            cache,
            known: FreshTable::new(MOST_SLOTS, clock),
        }
    }

    /// Returns what is in memory of a level, however old it is.
    pub(crate) fn held(&self, path: &LevelPath) -> Option<Arc<RemoteListing>> {
        self.known.held(&path.key())
    }

    /// The first page of a level, or more, without a request. None if that takes one.
    pub(crate) fn now(
        self: &Arc<Self>,
        path: &LevelPath,
    ) -> Option<Result<Arc<RemoteListing>, ForeignError>> {
        let slot = self.known.slot(&path.key());
        match slot.recall() {
            Recalled::Nothing => None,
            Recalled::Missing => Some(Err(ForeignError::Missing)),
            Recalled::Known(listing) => Some(Ok(listing)),
            Recalled::Due(listing) => {
                let (levels, old) = (Arc::clone(self), Arc::clone(&listing));
                tokio::spawn(async move { levels.confirm(&slot, &old).await });
                Some(Ok(listing))
            }
        }
    }

    /// The first page of a level, or more.
    pub(crate) async fn find(
        self: &Arc<Self>,
        path: &LevelPath,
    ) -> Result<Arc<RemoteListing>, ForeignError> {
        if let Some(known) = self.now(path) {
            return known;
        }
        let slot = self.known.slot(&path.key());
        let until = Instant::now() + LOOKUP_TIMEOUT;
        let _turn = slot.turn(until).await?;
        if let Some(known) = self.now(path) {
            return known;
        }
        if let Some((listing, confirmed)) = self.cached(path, &slot) {
            self.keep(&slot, slot.know(listing, confirmed));
            if let Some(known) = self.now(path) {
                return known;
            }
        }
        let page = self.page(path, b"", until).await;
        self.settle(
            &slot,
            page.and_then(|page| RemoteListing::begin(path, &page)),
        )
    }

    /// A listing with one more page.
    pub(crate) async fn longer(
        &self,
        listing: &Arc<RemoteListing>,
    ) -> Result<Arc<RemoteListing>, ForeignError> {
        let Some(next) = &listing.next else {
            return Ok(Arc::clone(listing));
        };
        let slot = self.known.slot(&listing.path.key());
        let until = Instant::now() + LOOKUP_TIMEOUT;
        let _turn = slot.turn(until).await?;
        if let Some(known) = slot.value()
            && is_longer(&known, listing)
        {
            return Ok(known);
        }
        // The list has not ended: its level has gone.
        let page = match self.page(&listing.path, next, until).await {
            Err(ForeignError::Missing) => Err(ForeignError::Changed),
            page => page,
        };
        let longer = listing.with(&page?)?;
        let current = slot.value();
        if current.is_some_and(|known| Arc::ptr_eq(&known, listing)) {
            return Ok(self.keep(&slot, slot.know(longer, slot.confirmed())));
        }
        Ok(Arc::new(longer))
    }

    async fn page(
        &self,
        path: &LevelPath,
        after: &[u8],
        until: Instant,
    ) -> Result<SentPage, ForeignError> {
        let url = self.url(path);
        match self
            .remote
            .page(&paged(&url), after, None, until, &mut None)
            .await
        {
            Ok(PageAnswer::Page(page)) => Ok(page),
            Ok(PageAnswer::Text(_) | PageAnswer::Same) => Err(self.untold()),
            // An Archive that has no root does not list its items.
            Err(ForeignError::Missing) if *path == LevelPath::Root => Err(self.untold()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Caches what is known now of a level.
    fn keep(&self, slot: &LevelSlot, listing: Arc<RemoteListing>) -> Arc<RemoteListing> {
        if listing.is_complete() {
            let (path, confirmed) = (listing.path.as_str(), slot.confirmed());
            let text = written(&self.base, path, confirmed, &listing.sent());
            let name = self.cache_name(slot);
            self.cache.put(CachedText::Level, &name, &text);
        }
        self.shed();
        listing
    }

    /// Remembers what a server has said of a level.
    fn settle(
        &self,
        slot: &LevelSlot,
        answer: Result<RemoteListing, ForeignError>,
    ) -> Result<Arc<RemoteListing>, ForeignError> {
        let settled = slot.settle(answer);
        if let Err(ForeignError::Missing) = &settled {
            let name = self.cache_name(slot);
            self.cache.drop_text(CachedText::Level, &name);
        }
        Ok(self.keep(slot, settled?))
    }

    fn cache_name(&self, slot: &LevelSlot) -> String {
        cache_name(&format!("{} {}", self.base, slot.key()))
    }

    fn untold(&self) -> ForeignError {
        ForeignError::Unsupported(format!("{}: the Archive lists nothing", self.base))
    }

    fn url(&self, path: &LevelPath) -> String {
        match path {
            LevelPath::Root => format!("{}/", self.base),
            LevelPath::Rep(path) => format!("{}/col/{}", self.base, encoded(path.as_bytes())),
            LevelPath::Prefix(prefix) => format!("{}/{}", self.base, encoded(prefix.as_bytes())),
        }
    }

    /// The level as the cache has it, and the time in Unix seconds at which its Archive last said so.
    fn cached(&self, path: &LevelPath, slot: &LevelSlot) -> Option<(RemoteListing, i64)> {
        let text = self.cache.get(CachedText::Level, &self.cache_name(slot))?;
        let (confirmed, base, _, pages) = read_written(&text)?;
        let (first, further) = pages.split_first()?;
        if base != self.base {
            return None;
        }
        let mut listing = RemoteListing::begin(path, first).ok()?;
        for page in further {
            listing = listing.with(page).ok()?;
        }
        listing.is_complete().then_some((listing, confirmed))
    }

    /// Asks whether a level is still as it was.
    async fn confirm(&self, slot: &LevelSlot, listing: &RemoteListing) {
        let (path, url) = (&listing.path, self.url(&listing.path));
        let pages = listing.pages.iter();
        let pages = pages.map(|page| (page.after.as_slice(), page.tag.as_str()));
        let changed = match self.remote.are_same(&paged(&url), pages).await {
            Ok(true) => return slot.confirm(),
            Ok(false) => {
                let until = Instant::now() + LOOKUP_TIMEOUT;
                let page = self.page(path, b"", until).await;
                page.and_then(|page| RemoteListing::begin(path, &page))
            }
            Err(ForeignError::Missing) if *path == LevelPath::Root => Err(self.untold()),
            Err(trouble) => Err(trouble),
        };
        if let Err(trouble) = self.settle(slot, changed) {
            log::info!("{url}: {trouble}");
        }
    }

    /// Forgets levels while there are many. An open listing goes on with what it has.
    fn shed(&self) {
        let held: usize = self.known.values().iter().map(|level| level.weight).sum();
        let excess = held.saturating_sub(MOST_HELD);
        self.known.shed(excess, |level| level.weight);
    }
}

/// Whether a listing has the pages of another one, and more.
fn is_longer(listing: &RemoteListing, other: &RemoteListing) -> bool {
    let mut both = listing.pages.iter().zip(&other.pages);
    listing.pages.len() > other.pages.len() && both.all(|(one, other)| Arc::ptr_eq(one, other))
}

fn paged(url: &str) -> Paged<'_> {
    Paged {
        url,
        query: "level",
        media_type: MEDIA_TYPE,
    }
}

#[cfg(test)]
mod tests;
