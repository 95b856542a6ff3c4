//! Copies of items in a store of this machine.
//!
//! All files of an item are fetched into the store's directory for arriving items. When all are there, the item is
//! assembled and added. A part that has arrived is not fetched again, by any run: a file goes on where it was cut,
//! after the pieces that are there have been compared.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::archive::scrub::marks_of;
use crate::archive::store::By;
use crate::archive::transfer::{
    Incoming, Inventory as Contents, Local, Moved, NotSent, Skip, TransferError, TransferOutcome,
    Way, bring_back_arrived, may_arrive, recorded_of_lost,
};
use crate::archive::tree::{Place, Tree};
use crate::archive::{Clock, Process, SystemClock};
use crate::formats::audit::SaidOfItself;
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::{CopyKind, KnownCopy, Proof};
use crate::formats::inventory::{FileEntry, Page};
use crate::formats::item::Names;
use crate::formats::query::encoded;
use crate::http::client::Network;
use crate::world::copy::download::download;
use crate::world::copy::found::{CopyRequest, Digests, ItemToCopy, digest_of};
use crate::world::copy::held::{HeldCopy, is_same};
use crate::world::error::ForeignError;
use crate::world::remote::content::RemoteFile;
use crate::world::remote::fetching::Stopped;
use crate::world::remote::inventory::Position;
use crate::world::remote::items::ask;
use crate::world::remote::requests::{RemoteServers, SentPage};
use crate::world::remote::sources::SourceOrder;
use ibi::Timestamp;
use ibi::message::{Localize, Message};

/// The time that it waits until a server says where an item is.
const FIND_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which the events of an item have to come.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(30);
/// The bytes of events that are read at least: those of the latest ones that are told, if each is as long as they may be.
const LONGEST_HISTORY: usize = 8 << 20;
/// The number of files that are fetched at a time.
const MOST_AT_ONCE: usize = 4;
/// The number of times that an item is asked for if it changes meanwhile.
const MOST_ATTEMPTS: usize = 3;

/// The Archives and resolvers from which items are copied.
#[derive(Debug)]
pub(crate) struct CopySource {
    pub(super) runtime: Runtime,
    pub(super) remote: Arc<RemoteServers>,
    sources: SourceOrder,
}

/// The store that items are copied to.
pub(crate) struct CopyDestination<'a> {
    /// The store.
    pub(crate) store: &'a Local,
    /// The store in which files arrive, or a directory of the user in its place.
    pub(crate) arrivals: &'a Tree,
    /// Whether it is mounted.
    pub(crate) is_mounted: bool,
    /// Whether items are copied that were removed there.
    pub(crate) brings_back: bool,
    /// Whether the files of a copy are read that is the same by its metadata.
    pub(crate) verifies: bool,
    /// Opens it for changes, when all files of an item have arrived.
    pub(crate) open: &'a dyn Fn() -> Result<Local, TransferError>,
}

impl std::fmt::Debug for CopyDestination<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Destination").finish_non_exhaustive()
    }
}

/// A file to be fetched.
struct MissingFile {
    position: Position,
    key: String,
    url: String,
    entry: FileEntry,
}

/// Returns why an item is not copied.
fn skip_of(trouble: ForeignError) -> TransferError {
    match trouble {
        ForeignError::Missing => Skip::NotFound,
        ForeignError::Changed => Skip::ChangedThere,
        ForeignError::Unreachable(_) | ForeignError::Loop => Skip::Unreachable(trouble.message()),
        other => Skip::Unread(other.message()),
    }
    .into()
}

/// Notes that an Archive has what was fetched from it. By its URL and the sidecar it is not proved which one that is: it is noted
/// by its service only if that is at this address, or if `archive.ibi` says so for audits.
fn note_source(store: &Local, names: &Names, said: &Names, base: &BaseUrl) {
    let said = said.preferred();
    let mut listed = store.archive().facts().audits.iter();
    let holder = match listed.find(|(url, _)| url == base) {
        Some((url, key)) => SaidOfItself::holder(Some(&said), url, key),
        None => SaidOfItself::holder_at(Some(&said), base),
    };
    let copy = KnownCopy {
        proof: Some(Proof {
            at: Timestamp::from_unix(SystemClock.now().seconds(), 0),
            is_good: true,
        }),
        ..KnownCopy::new(CopyKind::Archive, holder)
    };
    store.note_copy(std::slice::from_ref(names), &copy);
}

impl CopySource {
    /// These Archives, then these resolvers, and with `allows_private` Archives with addresses that are not public, if a
    /// resolver names them.
    pub(crate) fn new(
        network: &Network,
        archives: Vec<BaseUrl>,
        resolvers: Vec<BaseUrl>,
        allows_private: bool,
    ) -> std::io::Result<CopySource> {
        Ok(CopySource {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?,
            remote: Arc::new(RemoteServers::new(
                network,
                resolvers,
                archives,
                allows_private,
            )),
            sources: SourceOrder::default(),
        })
    }

    /// Finds an item.
    pub(crate) fn find(&self, asked: &CopyRequest) -> Result<ItemToCopy, TransferError> {
        let identity = asked.clone();
        let accept = move |base: &str, _: &str, sent: Vec<SentPage>| {
            let pages = sent.iter().map(|page| Page::parse(&page.text));
            let pages = pages
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| ForeignError::Broken(format!("{base}: {error}")))?;
            ItemToCopy::of_pages(base, pages, &identity)
        };
        let until = Instant::now() + FIND_TIMEOUT;
        let asking = ask(&self.remote, &self.sources, &asked.name, until, accept);
        self.runtime.block_on(asking).map_err(skip_of)
    }

    /// Copies an item to a store. The sidecar counts as one from an Archive that has no rights there.
    pub(crate) fn copy(
        &self,
        asked: &CopyRequest,
        found: ItemToCopy,
        to: &CopyDestination<'_>,
    ) -> Result<TransferOutcome, TransferError> {
        may_arrive(&to.store.state_of(found.names())?, to.brings_back)?;
        found.check(&SystemClock.now())?;
        let incoming = Incoming::of(to.arrivals, found.names())?;
        incoming.lock()?;
        self.copy_into(&incoming, asked, found, to)
    }

    fn copy_into(
        &self,
        incoming: &Incoming<'_>,
        asked: &CopyRequest,
        mut found: ItemToCopy,
        to: &CopyDestination<'_>,
    ) -> Result<TransferOutcome, TransferError> {
        let mut bytes = 0;
        let mut attempt = 1;
        let place = Place::of(found.names());
        let marks = marks_of(to.store.archive().tree(), place.as_str());
        let is_whole = marks.is_ok_and(|marks| marks.is_empty());
        let contents = loop {
            if is_whole && !to.verifies && is_same(&found, to.store)? {
                return Ok(TransferOutcome::Unchanged);
            }
            match self.fetch(&found, (to.store, to.is_mounted), incoming, &mut bytes) {
                Err(TransferError::Skip(Skip::ChangedThere)) if attempt < MOST_ATTEMPTS => {
                    found = self.find(asked)?;
                    attempt += 1;
                }
                fetched => break fetched?,
            }
        };
        let events = self.events_of(&found);
        let local = (to.open)()?.for_strangers(By::of(&Process));
        let from = found.sidecar().archive_service().unwrap_or(found.names());
        let (names, text) = (found.names(), found.text());
        let moved = incoming.complete(&local, names, from, &contents, text, &mut |_| ());
        if moved.as_ref().is_ok_and(|moved| moved.files > 0) {
            local.tell_earlier(names, found.base(), &events);
        }
        // All that is there was compared with the digests in the inventory.
        if moved.is_ok()
            && let Ok(base) = BaseUrl::parse(found.base())
        {
            note_source(&local, names, from, &base);
        }
        local.close();
        let moved = moved?;
        Ok(match moved.files {
            0 => TransferOutcome::Unchanged,
            files => TransferOutcome::Copied(Moved {
                files,
                bytes,
                is_proved: moved.is_proved,
                mended: moved.mended,
                not_sent: NotSent {
                    way: Way::Fetched,
                    ..NotSent::default()
                },
            }),
        })
    }

    /// Puts a lost item back into a store that is open for changes.
    pub(super) fn bring_back(
        &self,
        found: &ItemToCopy,
        to: &Local,
    ) -> Result<Moved, TransferError> {
        let names = found.names();
        recorded_of_lost(to, names)?;
        let incoming = Incoming::of(to.archive().tree(), names)?;
        incoming.lock()?;
        let contents = self.fetch(found, (to, false), &incoming, &mut 0)?;
        let from = found.sidecar().archive_service().unwrap_or(names);
        bring_back_arrived(&incoming, (names, from), &contents, to)
    }

    /// Returns the events that the Archive of an item tells of it; none if it keeps no history.
    fn events_of(&self, found: &ItemToCopy) -> Vec<String> {
        let url = format!(
            "{}/{}?history",
            found.base(),
            encoded(found.names().preferred().as_bytes())
        );
        let until = Instant::now() + HISTORY_TIMEOUT;
        let text = self.remote.end_of_text(&url, LONGEST_HISTORY, until);
        match self.runtime.block_on(text) {
            Ok(text) => String::from_utf8_lossy(&text)
                .lines()
                .map(str::to_owned)
                .collect(),
            Err(ForeignError::Missing) => Vec::new(),
            Err(error) => {
                log::warn!("earlier events do not come along: {url}: {error}");
                Vec::new()
            }
        }
    }

    /// Fetches the files that are neither here nor in the copy that the store has. Adds the bytes that have come.
    fn fetch(
        &self,
        found: &ItemToCopy,
        (store, is_mounted): (&Local, bool),
        incoming: &Incoming<'_>,
        bytes: &mut u64,
    ) -> Result<Contents, TransferError> {
        let held = HeldCopy::of(store, found.names())?;
        let (mut digests, mut wanted) = (Digests::new(), Vec::new());
        let mut all: u64 = 0;
        for (position, entry, file) in found.files() {
            let url = found.url(entry);
            let key = RemoteFile::new(url.clone(), file.clone()).key().to_owned();
            all = all.saturating_add(file.size);
            let known = file.digest;
            let arrived = match known {
                Some(digest) if incoming.has(&digest) || held.has(&entry.path, &digest) => known,
                _ => incoming.arrived(&key)?,
            };
            match arrived.filter(|digest| known.is_none_or(|known| known == *digest)) {
                Some(digest) => drop(digests.insert(position, digest)),
                None => wanted.push(MissingFile {
                    position,
                    key,
                    url,
                    entry: file.clone(),
                }),
            }
        }
        let sizes = wanted.iter().map(|wanted| wanted.entry.size);
        let missing = sizes.fold(0, u64::saturating_add);
        // The files that came become the item, unless the store has a copy, or is mounted: then they are copied.
        let is_copied = held.is_there() || is_mounted;
        incoming.has_room_for(missing.saturating_add(if is_copied { all } else { 0 }))?;
        for (entry, text) in found.texts() {
            let digest = digest_of(text);
            if !incoming.has(&digest) && !held.has(&entry.path, &digest) {
                let mut receiving = incoming.receive(digest, text.len() as u64)?;
                receiving.take(text)?;
                receiving.finish()?;
            }
        }
        let fetching = self.fetch_all(found, &held, incoming, wanted, &mut digests, bytes);
        self.runtime.block_on(fetching)?;
        found.contents(&digests)
    }

    async fn fetch_all(
        &self,
        found: &ItemToCopy,
        held: &HeldCopy,
        incoming: &Incoming<'_>,
        wanted: Vec<MissingFile>,
        digests: &mut Digests,
        bytes: &mut u64,
    ) -> Result<(), TransferError> {
        let mut waiting = wanted.into_iter();
        let mut tasks = JoinSet::new();
        loop {
            while tasks.len() < MOST_AT_ONCE
                && let Some(file) = waiting.next()
            {
                let mut part = incoming.part(&file.key, file.entry.size)?;
                if let Some(same) = held.like(found.entry(file.position), &part) {
                    let begun = part.begin_with(same);
                    begun.map_err(|error| incoming.not_written(&file.key, &error))?;
                }
                let remote = Arc::clone(&self.remote);
                tasks.spawn(async move {
                    let done = download(&remote, &file.url, &file.entry, part).await;
                    (file.position, file.key, done)
                });
            }
            match tasks.join_next().await {
                None => return Ok(()),
                Some(Ok((position, key, done))) => {
                    *bytes += done.bytes;
                    let digest = done.digest.map_err(|stopped| match stopped {
                        Stopped::ForeignError(trouble) => skip_of(trouble),
                        Stopped::Disk(error) => incoming.not_written(&key, &error),
                    })?;
                    digests.insert(position, digest);
                }
                Some(Err(error)) => {
                    let error = error.to_string();
                    return Err(Skip::Unread(Message::foreign(error)).into());
                }
            }
        }
    }
}
