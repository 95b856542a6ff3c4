//! The nodes that names mean, and what is known of them.
//!
//! The levels above an item answer to every name that may be part of an identifier, without a request, and list
//! nothing; those of one Archive answer and list what it lists. An item is asked for when it is looked up; what is in it
//! needs no further request.
//!
//! - [`changes`]: names and directories that the kernel must forget.

mod changes;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::formats::entry::EntryStat;
use crate::formats::inventory::EntryKind;
use crate::formats::tree_name::LevelPath;
use crate::os::deep::split;
use crate::world::cache::Cache;
use crate::world::error::ForeignError;
use crate::world::mount::listed;
use crate::world::mount::meaning::{NameMeaning, asked, inside, link_target, target_of};
use crate::world::mount::mounts::Mounts;
use crate::world::mount::nodes::{ForeignNode, ForeignNodeKind, ForeignText, ForeignView, Nodes};
use crate::world::remote::content::{RemoteContent, RemoteFile};
use crate::world::remote::fresh::HostClock;
use crate::world::remote::inventory;
use crate::world::remote::items::{ForeignItems, ItemSlot};
use crate::world::remote::levels::{Levels, RemoteListing};
use crate::world::remote::related::{RelatedAnswer, RelatedItems, RelatedQuestion};
use crate::world::remote::requests::RemoteServers;
use ibi::Ibi;
use ibi::pairs::percent_encode;

pub(crate) use changes::ForeignStale;

/// The attribute of the root that says what the process holds and has done.
pub(crate) const STATUS: &str = "user.ibi.status";
/// The longest list in the attribute that tells the status, in bytes.
const LONGEST_LIST: usize = 16 << 10;
/// The time that a look at the root waits for its attributes.
const ROOT_TIMEOUT: Duration = Duration::from_secs(1);
/// The content of a node, as a program can read it.
#[derive(Clone, Debug)]
pub(crate) enum OpenedContent {
    /// Bytes that are there.
    Text(Arc<[u8]>),
    /// A file of an Archive.
    File(Arc<RemoteFile>),
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct ForeignEntry {
    /// Its name.
    pub(crate) name: Vec<u8>,
    /// Its node, as long as the kernel does not know it.
    pub(crate) kind: ForeignNodeKind,
}

/// The entries of a directory.
#[derive(Clone, Debug)]
pub(crate) enum ForeignEntries {
    /// All of them.
    All(Vec<ForeignEntry>),
    /// Those of a level, as far as they have been fetched.
    Level(Arc<RemoteListing>),
}

/// The names of all items.
#[derive(Debug)]
pub(crate) struct ForeignTree {
    /// The nodes that the kernel knows.
    pub(crate) nodes: Nodes,
    /// The items that are known.
    pub(crate) items: Arc<ForeignItems>,
    /// The items that modifiers lead to.
    related: Arc<RelatedItems>,
    /// Reads files.
    pub(crate) content: Arc<RemoteContent>,
    /// The files that have been fetched.
    pub(crate) cache: Arc<Cache>,
    /// The servers that it asks.
    pub(crate) remote: Arc<RemoteServers>,
    /// All mounts of this process, and the number of this one.
    mounts: (Arc<Mounts>, u64),
    /// The number of open files that the kernel reads itself, if it does that.
    read_by_kernel: Mutex<Option<usize>>,
    /// The levels, if it shows one Archive.
    pub(crate) levels: Option<Arc<Levels>>,
}

impl ForeignTree {
    /// The names of the items that these Archives hold.
    pub(crate) fn new(
        remote: RemoteServers,
        cache: Arc<Cache>,
        mounts: Arc<Mounts>,
        number: u64,
    ) -> ForeignTree {
        let remote = Arc::new(remote);
        let (servers, files) = (Arc::clone(&remote), Arc::clone(&cache));
        let items = Arc::new(ForeignItems::new(servers, files, Arc::new(HostClock)));
        ForeignTree {
            nodes: Nodes::default(),
            related: Arc::new(RelatedItems::new(Arc::clone(&items))),
            items,
            content: Arc::new(RemoteContent::new(Arc::clone(&remote), Arc::clone(&cache))),
            cache,
            remote,
            mounts: (mounts, number),
            read_by_kernel: Mutex::default(),
            levels: None,
        }
    }

    /// The same, where the levels are those of the Archive at this URL.
    pub(crate) fn listing(self, archive: &str) -> ForeignTree {
        let (remote, cache) = (Arc::clone(&self.remote), Arc::clone(&self.cache));
        ForeignTree {
            levels: Some(Arc::new(Levels::new(
                archive,
                remote,
                cache,
                Arc::clone(self.items.clock()),
            ))),
            ..self
        }
    }

    /// Whether the kernel reads complete files of the cache itself.
    pub(crate) fn is_read_by_kernel(&self) -> bool {
        self.read_by_kernel.lock().is_some()
    }

    /// Sets how many it reads, if it does that.
    pub(crate) fn read_by_kernel(&self, count: Option<usize>) {
        *self.read_by_kernel.lock() = count;
    }

    /// A name that can be answered without a request. None if a request is needed.
    pub(crate) fn lookup_now(
        &self,
        parent: &ForeignNode,
        name: &OsStr,
    ) -> Option<Result<Arc<ForeignNode>, ForeignError>> {
        match asked(parent, name) {
            Err(trouble) => Some(Err(trouble)),
            Ok(NameMeaning::Known(kind)) => {
                let kind = match self.levels_of(&kind) {
                    Some(levels) => listed::lookup_now(levels, parent, &kind)?,
                    None => Ok(kind),
                };
                Some(kind.map(|kind| self.nodes.remember(kind)))
            }
            Ok(NameMeaning::Item(ibi, view)) => {
                let found = self.items.now(&ibi)?;
                Some(found.and_then(|slot| self.root_of(slot, view)))
            }
            Ok(NameMeaning::Related(wanted, view)) => {
                let found = self.related.now(&wanted)?;
                Some(found.map(|related| self.node_of(&wanted, view, &related)))
            }
        }
    }

    /// The node of a name.
    pub(crate) async fn lookup(
        &self,
        parent: &ForeignNode,
        name: &OsStr,
    ) -> Result<Arc<ForeignNode>, ForeignError> {
        match asked(parent, name)? {
            NameMeaning::Known(kind) => {
                let kind = match self.levels_of(&kind) {
                    Some(levels) => listed::lookup(levels, kind).await?,
                    None => kind,
                };
                Ok(self.nodes.remember(kind))
            }
            NameMeaning::Item(ibi, view) => self.root_of(self.items.find(&ibi).await?, view),
            NameMeaning::Related(wanted, view) => {
                let found = self.related.find(&wanted).await?;
                Ok(self.node_of(&wanted, view, &found))
            }
        }
    }

    fn node_of(
        &self,
        wanted: &RelatedQuestion,
        view: ForeignView,
        related: &RelatedAnswer,
    ) -> Arc<ForeignNode> {
        self.nodes.remember(match related {
            RelatedAnswer::Item(names) => ForeignNodeKind::Link(link_target(view, names)),
            RelatedAnswer::Text(text) => {
                ForeignNodeKind::Text(ForeignText::new(wanted.clone(), text))
            }
        })
    }

    fn root_of(
        &self,
        slot: Arc<ItemSlot>,
        view: ForeignView,
    ) -> Result<Arc<ForeignNode>, ForeignError> {
        let inside = inside(&slot, view, inventory::ROOT)?;
        Ok(self.nodes.remember(ForeignNodeKind::Inside(inside)))
    }

    /// The levels, if a node is one of those of an Archive.
    fn levels_of(&self, kind: &ForeignNodeKind) -> Option<&Arc<Levels>> {
        let levels = self.levels.as_ref()?;
        listed::path_of(kind).map(|_| levels)
    }

    /// Returns what an Archive says of a level.
    pub(crate) fn level_stat(&self, kind: &ForeignNodeKind) -> Option<EntryStat> {
        listed::stat(self.levels.as_ref()?, kind)
    }

    /// Whether the attributes of a node take a request.
    pub(crate) fn is_unknown(&self, kind: &ForeignNodeKind) -> bool {
        matches!(kind, ForeignNodeKind::Unseen(..))
            || self.levels_of(kind).is_some() && self.level_stat(kind).is_none()
    }

    /// A node after a request for its attributes. The root has some in any case: what looks at mount
    /// points waits a moment, and is not refused.
    pub(crate) async fn learn(
        &self,
        kind: ForeignNodeKind,
    ) -> Result<ForeignNodeKind, ForeignError> {
        match (&kind, self.levels_of(&kind)) {
            (ForeignNodeKind::Unseen(item, view), _) => {
                let ibi = Ibi::parse(item).map_err(|_| ForeignError::Missing)?;
                let slot = self.items.find(&ibi).await?;
                Ok(ForeignNodeKind::Inside(inside(
                    &slot,
                    *view,
                    inventory::ROOT,
                )?))
            }
            (ForeignNodeKind::Level(LevelPath::Root), Some(levels)) => {
                let asked = levels.find(&LevelPath::Root);
                if let Ok(Err(trouble)) = tokio::time::timeout(ROOT_TIMEOUT, asked).await {
                    log::debug!("the root: {trouble}");
                }
                Ok(kind)
            }
            (_, Some(levels)) => listed::lookup(levels, kind).await,
            _ => Ok(kind),
        }
    }

    /// The entries of a directory, from what is known. None if that takes a request.
    pub(crate) fn list_now(
        &self,
        node: &ForeignNode,
    ) -> Option<Result<ForeignEntries, ForeignError>> {
        let levels = match self.levels_of(&node.kind) {
            Some(levels) => levels,
            None if matches!(node.kind, ForeignNodeKind::Unseen(..)) => return None,
            None => return Some(self.list_known(node).map(ForeignEntries::All)),
        };
        let listing = levels.now(listed::path_of(&node.kind)?)?;
        Some(listing.map(ForeignEntries::Level))
    }

    /// The entries of a directory. Those of a level are fetched while they are listed.
    pub(crate) async fn list(&self, node: &ForeignNode) -> Result<ForeignEntries, ForeignError> {
        match (self.levels_of(&node.kind), listed::path_of(&node.kind)) {
            (Some(levels), Some(path)) => Ok(ForeignEntries::Level(levels.find(path).await?)),
            _ => {
                let kind = self.learn(node.kind.clone()).await?;
                let node = ForeignNode { id: node.id, kind };
                self.list_known(&node).map(ForeignEntries::All)
            }
        }
    }

    /// A listing of a level with more names.
    pub(crate) async fn longer(
        &self,
        listing: &Arc<RemoteListing>,
    ) -> Result<Arc<RemoteListing>, ForeignError> {
        match &self.levels {
            Some(levels) => levels.longer(listing).await,
            None => Ok(Arc::clone(listing)),
        }
    }

    fn list_known(&self, node: &ForeignNode) -> Result<Vec<ForeignEntry>, ForeignError> {
        let ForeignNodeKind::Inside(found) = &node.kind else {
            return match node.kind {
                ForeignNodeKind::Link(_) | ForeignNodeKind::Text(_) => {
                    Err(ForeignError::NotDirectory)
                }
                _ => Err(ForeignError::Unlisted),
            };
        };
        let item = found.slot.value().ok_or(ForeignError::Changed)?;
        let position = item.inventory.position(&found.entry.path);
        let position = position.ok_or(ForeignError::Changed)?;
        let below = item.inventory.below(position).iter();
        below
            .map(|at| {
                let entry = item.inventory.entry(*at);
                Ok(ForeignEntry {
                    name: split(&entry.path).1.to_vec(),
                    kind: ForeignNodeKind::Inside(inside(&found.slot, found.view, *at)?),
                })
            })
            .collect()
    }

    /// The target of a link.
    pub(crate) fn target(&self, node: &ForeignNode) -> Result<Vec<u8>, ForeignError> {
        match &node.kind {
            ForeignNodeKind::Link(target) => Ok(target.clone()),
            ForeignNodeKind::Inside(inside) => target_of(inside).ok_or(ForeignError::Invalid),
            _ => Err(ForeignError::Invalid),
        }
    }

    /// The text of a node that a modifier leads to. The node has one text only.
    pub(crate) async fn text(&self, text: &ForeignText) -> Result<OpenedContent, ForeignError> {
        match self.related.find(&text.wanted).await? {
            RelatedAnswer::Text(found) if text.is(&found) => Ok(OpenedContent::Text(found)),
            _ => Err(ForeignError::Changed),
        }
    }

    /// Returns what a program reads of a node. None for a text that must be fetched.
    pub(crate) fn open_now(
        &self,
        node: &ForeignNode,
    ) -> Option<Result<OpenedContent, ForeignError>> {
        if let ForeignNodeKind::Text(text) = &node.kind {
            return match self.related.now(&text.wanted)? {
                Ok(RelatedAnswer::Text(found)) if text.is(&found) => {
                    Some(Ok(OpenedContent::Text(found)))
                }
                _ => Some(Err(ForeignError::Changed)),
            };
        }
        Some(self.open_file(node))
    }

    fn open_file(&self, node: &ForeignNode) -> Result<OpenedContent, ForeignError> {
        match &node.kind {
            ForeignNodeKind::Inside(inside) => match &inside.entry.kind {
                EntryKind::File(file) => {
                    let url = inside.item.file_url(&inside.entry.path);
                    Ok(OpenedContent::File(Arc::new(RemoteFile::new(
                        url,
                        file.clone(),
                    ))))
                }
                EntryKind::Text(text) => Ok(OpenedContent::Text(text.as_slice().into())),
                EntryKind::Directory => Err(ForeignError::IsDirectory),
                _ => Err(ForeignError::Invalid),
            },
            ForeignNodeKind::Link(_) | ForeignNodeKind::Text(_) => Err(ForeignError::Loop),
            _ => Err(ForeignError::IsDirectory),
        }
    }

    /// An attribute that is read by its name and not listed, so that no program copies it.
    pub(crate) fn attribute(&self, node: &ForeignNode, name: &OsStr) -> Option<Vec<u8>> {
        let name = name.to_str()?.strip_prefix("user.ibi.")?;
        if let (ForeignNodeKind::Level(LevelPath::Root), "status") = (&node.kind, name) {
            return Some(self.status().into_bytes());
        }
        let ForeignNodeKind::Inside(inside) = &node.kind else {
            return None;
        };
        let item = inside.slot.value().unwrap_or(Arc::clone(&inside.item));
        let names = item.inventory.names();
        let text = match name {
            "age" => inside.slot.age().as_secs().to_string(),
            "archive" => item.base.clone(),
            "source" if inside.entry.path.is_empty() => item.url(),
            "source" => item.file_url(&inside.entry.path),
            "rep" => names.rep()?.to_string(),
            "ibip" => names.ibip()?.to_string(),
            _ => return None,
        };
        Some(text.into_bytes())
    }

    /// Returns what the process holds and has done, as a list of pairs.
    fn status(&self) -> String {
        let path = |path: &Path| percent_encode(path.as_os_str().as_bytes());
        let (pinned, pinned_bytes) = self.cache.all_pinned();
        let (mounts, number) = &self.mounts;
        let mounts = mounts.paths();
        let mounts = within(mounts.iter().map(|mount| path(mount)));
        format!(
            "{} cache {} mount {number} mounts {{{mounts}}} pinned {} pinned_bytes {pinned_bytes} \
             pinned_items {{{}}} items {} nodes {} passthrough {} requests {} silent {{{}}}",
            self.cache.usage(),
            path(self.cache.name()),
            pinned.len(),
            within(pinned.into_iter()),
            self.items.len(),
            self.nodes.len(),
            self.read_by_kernel.lock().unwrap_or(0),
            self.remote.requests(),
            within(self.remote.silent().into_iter())
        )
    }
}

/// Words, as many of them as an attribute can have beside others.
fn within(words: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for word in words {
        if text.len() + word.len() > LONGEST_LIST {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&word);
    }
    text
}
