//! Which node is this name here: the mounted tree above and beside the items.
//!
//! Names at the levels of identifiers mean something; inside an item they are a filesystem's. This
//! room answers lookups and changes at the former and knows where the latter begin. It speaks
//! nodes, attributes and errno, no FUSE type, and keeps nothing but what ends with the mount:
//! labels, staged names, and what has only just been minted.

mod actor;
mod attributes;
mod declarations;
mod filling;
mod items;
mod labels;
mod levels;
mod listing;
mod minting;
mod names;
mod requests;
mod search;
mod siblings;
mod spellings;
mod staging;
mod told;
mod virtual_entries;

#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::archive::store::ItemId;
use crate::archive::tree::{Place, SIDECAR};
use crate::archive::{Acceptance, Archive, ArchiveError, WriteIntent};
use crate::formats::item::Names;
use crate::fuse::attr::Attr;
use crate::fuse::descriptors::{self, Descriptors, Pinned};
use crate::fuse::inode::{Kind, Node, NodeId, Real, Table, View};
use crate::fuse::inside::{self, Outcome};
use crate::os::caller::Caller;
use ibi::relation::Language;

pub use attributes::is_virtual;
pub use filling::Held;
pub use listing::Listed;
pub use minting::Made;
pub use told::Told;

use filling::Filling;
use labels::{Labels, Withdrawn};
use names::is_year;
use spellings::Spellings;
use staging::Staging;
use told::Texts;

/// The longest name, as on nearly every filesystem; statfs tells what the native one takes.
const LONGEST_NAME: usize = 255;
/// The longest text of a symbolic link that the kernel passes on.
const LONGEST_LINK: usize = 4095;

/// The mode that is shown of a directory where items lie. The owner of an item declares beside it how it
/// is related, whoever may write in the directory: the kernel must let that pass, and asks us. The sticky
/// bit has it protect each name from others, here and in a copy on another filesystem. What may be made
/// there is checked by the mode on the disk.
fn shown_to_declare(permissions: u16) -> u16 {
    match permissions & 0o222 {
        0o222 => permissions,
        _ => permissions | 0o1222,
    }
}

/// The mode on the disk of a directory where items lie that is made or changed to one that is shown.
fn as_on_disk(mode: u32) -> u32 {
    match mode & 0o1222 {
        0o1222 => mode & !0o1022,
        _ => mode,
    }
}

/// What the mount was told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Languages that `+` prefers, best first.
    pub languages: Vec<Language>,
    /// Whether listings show everything that can be looked up.
    pub list_all: bool,
}

/// A name's answer.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The node.
    pub node: Arc<Node>,
    /// Its attributes.
    pub attr: Attr,
    /// Whether the name goes on meaning this node until we say otherwise; a virtual name does not.
    pub lasting: bool,
}

/// What the kernel must be told to look up again, in whichever tree it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// A name in a directory node.
    Name(NodeId, OsString),
    /// A node's attributes.
    Attributes(NodeId),
    /// A directory's listing and attributes.
    Listing(NodeId),
}

/// The mounted tree.
#[derive(Debug)]
pub struct Namespace {
    archive: Arc<Archive>,
    /// The nodes that the kernel knows.
    pub nodes: Table,
    options: Options,
    collection: OwnedFd,
    descriptors: Arc<Descriptors>,
    labels: Labels,
    withdrawn: Withdrawn,
    filling: Arc<Filling>,
    /// Items that have come since the kernel was last told.
    placed: Mutex<Vec<Names>>,
    /// Items whose own directories have got or lost a name by what was done beside them.
    changed: Mutex<Vec<Names>>,
    staging: Staging,
    spellings: Spellings,
    texts: Texts,
}

impl Namespace {
    /// The tree of an Archive.
    pub fn new(archive: Arc<Archive>, options: Options) -> Result<Namespace, ArchiveError> {
        let collection = archive.tree().open_directory("col")?;
        let staging = Staging::new(archive.tree())?;
        // A quarter for nodes; the others are for open files.
        let limit = descriptors::limit() / 4;
        let descriptors = Descriptors::new(archive.tree().root(), limit)
            .map_err(|errno| archive.tree().error("open", "col", errno))?;
        Ok(Namespace {
            archive,
            nodes: Table::new(rustix::fs::fstat(&collection).map_or(0, |stat| stat.st_dev)),
            options,
            collection,
            descriptors: Arc::new(descriptors),
            labels: Labels::default(),
            withdrawn: Withdrawn::default(),
            filling: Arc::default(),
            placed: Mutex::default(),
            changed: Mutex::default(),
            staging,
            spellings: Spellings::default(),
            texts: Texts::default(),
        })
    }

    /// The Archive behind the tree.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The mount's root.
    pub fn root(&self) -> Outcome<Entry> {
        let descriptor = inside::find(self.collection.as_fd(), OsStr::new("."))?;
        self.real(descriptor, View::Rep, Kind::Root, true)
    }

    /// Makes the entry of a real file.
    fn real(&self, descriptor: OwnedFd, view: View, kind: Kind, lasting: bool) -> Outcome<Entry> {
        let stat = rustix::fs::fstat(&descriptor)?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let (view, lasting) = if is_link {
            self.link_as_met(descriptor.as_fd(), view, lasting)
        } else {
            (view, lasting)
        };
        // Where a link lies is told by the way it was opened: one that is read otherwise stays open.
        let may_close = !is_link || view == View::Rep;
        let file = self.descriptors.keep(descriptor, &stat, may_close);
        Ok(self.entry(stat, file, view, kind, lasting))
    }

    /// In which tree a symbolic link counts as met: one that says the same in all of them is one node in
    /// all of them, so that a program sees that it is one. Whether one with `..` does depends on where it
    /// lies, so that its name does not last.
    fn link_as_met(&self, link: BorrowedFd<'_>, view: View, lasting: bool) -> (View, bool) {
        if view.has_disk_depth() {
            return (View::Rep, lasting);
        }
        let Ok(target) = inside::read_link(link) else {
            return (view, false);
        };
        if !target.starts_with(b".") {
            return (View::Rep, lasting);
        }
        match self.position(link, 1) {
            Some(position) if crate::formats::links::climbs_out(&target, position.depth) => {
                (view, lasting)
            }
            _ => (View::Rep, false),
        }
    }

    fn entry(&self, stat: Stat, file: Pinned, view: View, kind: Kind, lasting: bool) -> Entry {
        let attr = Attr::from(stat);
        // Only what leads on or climbs out differs between the trees.
        let view = match attr.kind {
            FileType::Directory | FileType::Symlink => view,
            _ => View::Rep,
        };
        let real = Real {
            file,
            device: stat.st_dev,
            inode: stat.st_ino,
            is_link: attr.kind == FileType::Symlink,
        };
        let node = self.nodes.remember(real, view, kind);
        Entry {
            attr: self.as_met(&node, attr),
            node,
            lasting,
        }
    }

    /// The mode to keep where one is asked for; None where the one that is shown is. A tool that copies a
    /// level of a mount sets what it has seen there, which must not open the level on the disk.
    pub fn mode_to_keep(&self, node: &Node, mode: u32) -> Option<u32> {
        match &node.kind {
            Kind::Level(path) if is_year(path) => {
                let shown = self.attributes(node).map(|attr| attr.permissions);
                let is_shown = shown.is_ok_and(|shown| u32::from(shown) == mode & 0o7777);
                (!is_shown).then(|| as_on_disk(mode))
            }
            _ => Some(mode),
        }
    }

    /// The same of an access control list that says no more than such a mode.
    pub fn list_to_keep(&self, node: &Node, name: &OsStr, list: &[u8]) -> Vec<u8> {
        let mut list = list.to_vec();
        // A version, then a tag, permissions and a number each: owner, group, others.
        let is_mode = name == "system.posix_acl_access" && list.len() == 4 + 3 * 8;
        if is_mode
            && matches!(&node.kind, Kind::Level(path) if is_year(path))
            && [6, 14, 22]
                .iter()
                .all(|at| list.get(*at).is_some_and(|bits| bits & 2 != 0))
        {
            for at in [14, 22] {
                if let Some(bits) = list.get_mut(at) {
                    *bits &= !2;
                }
            }
        }
        list
    }

    /// Refuses a caller to make a name in a directory where items lie, which is shown as open to all.
    pub(super) fn check_making(&self, caller: &Caller, parent: &Node) -> Outcome<()> {
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        match &parent.kind {
            Kind::Prefix(_) => inside::check_access(self.collection.as_fd(), access, caller),
            Kind::Level(_) => inside::check_access(parent.file()?.as_fd(), access, caller),
            _ => Ok(()),
        }
    }

    /// Attributes as the tree has them in which a node is met: a link is as long as what it says, and
    /// the directories where items lie are open to those who own items there.
    fn as_met(&self, node: &Node, mut attr: Attr) -> Attr {
        if attr.kind == FileType::Symlink
            && !node.view.has_disk_depth()
            && let Ok(target) = self.read_link(node)
        {
            attr.size = target.len() as u64;
        }
        if let Kind::Level(path) = &node.kind
            && is_year(path)
        {
            attr.permissions = shown_to_declare(attr.permissions);
        }
        attr
    }

    /// Makes the entry of something virtual, which may mean something else the next time.
    fn virtual_entry(&self, view: View, kind: Kind) -> Outcome<Entry> {
        let attr = self.virtual_attr(&kind)?;
        Ok(Entry {
            node: self.nodes.remember_virtual(view, kind),
            attr,
            lasting: false,
        })
    }

    /// The attributes of a virtual node: as old and owned as the collection itself.
    fn virtual_attr(&self, kind: &Kind) -> Outcome<Attr> {
        let like = inside::attributes(&self.collection)?;
        Ok(match kind {
            Kind::Link(target) => {
                Attr::virtual_like(&like, FileType::Symlink, 0o777, target.len() as u64)
            }
            Kind::OwnLink(target, uid) => Attr {
                uid: *uid,
                ..Attr::virtual_like(&like, FileType::Symlink, 0o777, target.len() as u64)
            },
            Kind::Text(text) => {
                Attr::virtual_like(&like, FileType::RegularFile, 0o444, text.len() as u64)
            }
            // The size is not known before it is made, and asked for again.
            Kind::Generated(asked) => self.attributes_of_text(self.last_length(*asked))?,
            Kind::Prefix(_) => {
                let shown = shown_to_declare(like.permissions);
                Attr::virtual_like(&like, FileType::Directory, shown, like.size)
            }
            _ => Attr::virtual_like(&like, FileType::Directory, like.permissions, like.size),
        })
    }

    /// A node's attributes.
    pub fn attributes(&self, node: &Node) -> Outcome<Attr> {
        match &node.real {
            Some(real) => Ok(self.as_met(node, inside::attributes(real.file.open()?)?)),
            None => self.virtual_attr(&node.kind),
        }
    }

    /// Finds a name in a directory. The kernel asks this before it makes, renames or removes a
    /// name, so one that is too long is refused here for all of them.
    pub fn lookup(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<Entry> {
        // Inside an item the native filesystem knows its own limit.
        if !matches!(parent.kind, Kind::Item(_) | Kind::Inside) && name.len() > LONGEST_NAME {
            return Err(Errno::NAMETOOLONG);
        }
        match &parent.kind {
            Kind::Root => self.lookup_in_root(name),
            Kind::Level(path) if is_year(path) => self.lookup_in_year(caller, parent, path, name),
            Kind::Level(path) => self.lookup_in_level(parent, path, name),
            Kind::Item(item) => {
                if self.is_hidden_from(caller, parent, name) {
                    return Err(Errno::NOENT);
                }
                let mut entry = self.lookup_inside(parent, name)?;
                note_sidecar(&mut entry, *item, name);
                Ok(entry)
            }
            Kind::Inside => self.lookup_inside(parent, name),
            Kind::Prefix(prefix) => self.lookup_in_prefix(caller, parent, prefix, name),
            Kind::Mint => self.lookup_label(caller, name),
            Kind::Link(_) | Kind::OwnLink(..) | Kind::Text(_) | Kind::Generated(_) => {
                Err(Errno::NOTDIR)
            }
        }
    }

    fn lookup_inside(&self, parent: &Node, name: &OsStr) -> Outcome<Entry> {
        if self.is_out_of_sight(parent, name, None) {
            return Err(Errno::NOENT);
        }
        let directory = parent.file()?;
        let view = parent.view;
        match self
            .descriptors
            .find(directory.as_fd(), name, view != View::Rep)?
        {
            Some((stat, file)) => Ok(self.entry(stat, file, view, Kind::Inside, true)),
            None => {
                let descriptor = inside::find(directory.as_fd(), name)?;
                self.real(descriptor, view, Kind::Inside, true)
            }
        }
    }

    /// The entry of a regular file that has just been made inside an item and is open.
    pub fn made_open(&self, parent: &Node, name: &OsStr, file: BorrowedFd<'_>) -> Outcome<Entry> {
        let mut entry = match self.descriptors.note_open(file)? {
            Some((stat, file)) => self.entry(stat, file, parent.view, Kind::Inside, true),
            None => self.real(inside::find_open(file)?, parent.view, Kind::Inside, true)?,
        };
        if let Kind::Item(item) = parent.kind {
            note_sidecar(&mut entry, item, name);
        }
        Ok(entry)
    }

    /// The entry of a name that a listing has told.
    pub fn listed(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<Entry> {
        match &parent.kind {
            Kind::Item(item) => {
                let mut entry = self.lookup_inside(parent, name)?;
                note_sidecar(&mut entry, *item, name);
                Ok(entry)
            }
            _ => self.lookup(caller, parent, name),
        }
    }

    /// The entry of a file that has just been made inside an item.
    pub fn made_inside(&self, parent: &Node, name: &OsStr, descriptor: OwnedFd) -> Outcome<Entry> {
        let mut entry = self.real(descriptor, parent.view, Kind::Inside, true)?;
        if let Kind::Item(item) = parent.kind {
            note_sidecar(&mut entry, item, name);
        }
        Ok(entry)
    }

    /// Before a name in an item's own directory changes what it means: its sidecar's is noted.
    pub fn changing(&self, parent: &Node, name: &OsStr) -> Outcome<Option<WriteIntent>> {
        match parent.kind {
            Kind::Item(item) if name == SIDECAR => Ok(Some(self.archive.begin_write(item)?)),
            _ => Ok(None),
        }
    }

    /// After a sidecar was closed or renamed into an item: it is taken in.
    pub fn sidecar_written(&self, caller: &Caller, item: ItemId) -> Outcome<()> {
        match self.archive.accept_sidecar(caller, item)? {
            Acceptance::Accepted(item) => {
                log::info!("sidecar of {} taken in", item.names);
                self.note_placed(&item.names);
            }
            Acceptance::Unchanged => {}
            Acceptance::Rejected(error) => log::warn!("{error}"),
        }
        Ok(())
    }

    /// After a name was removed from or renamed away in an item's own directory.
    pub fn name_gone(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<()> {
        if let Kind::Item(item) = parent.kind
            && name == SIDECAR
        {
            let known = self.archive.store().item(item)?;
            let place = known.map(|item| Place::of(&item.names));
            // What another name has brought there is not ours to hide.
            let had_gone = place.filter(|place| self.sidecar_at(place).is_none());
            self.archive.restore_sidecar(item)?;
            if let Some(place) = had_gone {
                self.hide_sidecar(caller, item, &place);
            }
        }
        Ok(())
    }

    /// Reads a link: what is kept on disk, as the tree reads it in which it is met.
    pub fn read_link(&self, node: &Node) -> Outcome<Vec<u8>> {
        match (&node.kind, &node.real) {
            (Kind::Link(target) | Kind::OwnLink(target, _), _) => Ok(target.clone()),
            (_, Some(real)) => {
                let file = real.file.open()?;
                let target = inside::read_link(file.as_fd())?;
                if node.view.has_disk_depth() || !target.starts_with(b".") {
                    return Ok(target);
                }
                let Some(position) = self.position(file.as_fd(), 1) else {
                    return Ok(target);
                };
                let rep = position.names.rep().map(|rep| rep.components());
                let read = crate::formats::links::read_in_ibip_tree(&target, position.depth, rep);
                // The way round over the root may be longer than any link can be.
                if read.len() > LONGEST_LINK {
                    return Err(Errno::NAMETOOLONG);
                }
                Ok(read)
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// What is kept on disk of a link that is made in a directory.
    pub fn link_to_keep(&self, parent: &Node, target: &[u8]) -> Outcome<Vec<u8>> {
        if parent.view.has_disk_depth() || !target.starts_with(b".") {
            return Ok(target.to_vec());
        }
        let Some(position) = self.position(parent.file()?.as_fd(), 0) else {
            return Ok(target.to_vec());
        };
        let prefix = position.names.ibip().map(|ibip| ibip.prefix().to_owned());
        Ok(crate::formats::links::written_in_ibip_tree(
            target,
            position.depth,
            prefix.as_deref(),
        ))
    }

    /// Where in which item a file lies, by its path on the disk; `last` components are its own name.
    fn position(&self, file: BorrowedFd<'_>, last: usize) -> Option<Position> {
        use std::os::fd::AsRawFd;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let below = path.strip_prefix(self.archive.tree().path()).ok()?;
        let parts: Vec<&OsStr> = below.iter().collect();
        let levels = match parts.first()?.to_str()? {
            "col" => 4,
            "ibip" => 2,
            _ => return None,
        };
        let depth = parts.len().checked_sub(1 + levels + last)?;
        let named: Vec<&str> = parts[1..=levels]
            .iter()
            .map(|part| part.to_str())
            .collect::<Option<_>>()?;
        let item = self.archive.find_named(&named.join("/")).ok()??;
        Some(Position {
            item: item.id,
            names: item.names,
            depth,
        })
    }

    /// What becomes stale by what we have done ourselves since this was last asked: of the items whose
    /// sidecars or metadata texts were written, their directories; of those that have come, the times of
    /// the levels above them.
    pub fn stale_items(&self) -> Vec<Stale> {
        let mut stale = Vec::new();
        let changed = std::mem::take(&mut *self.changed.lock());
        for names in self.archive.take_rewritten().into_iter().chain(changed) {
            // One that has gone meanwhile has nothing to remember.
            if let Ok(directory) = self.archive.tree().open_item(&Place::of(&names)) {
                let known = self.known_directory(directory.as_fd());
                stale.extend(known.into_iter().map(Stale::Listing));
            }
        }
        let placed = std::mem::take(&mut *self.placed.lock());
        for names in placed {
            stale.extend(self.stale_levels(&names));
        }
        stale
    }

    fn known_directory(&self, directory: BorrowedFd<'_>) -> Vec<NodeId> {
        let Ok(stat) = rustix::fs::fstat(directory) else {
            return Vec::new();
        };
        self.nodes.in_all_views(stat.st_dev, stat.st_ino)
    }

    /// Notes that an item's own directory has got or lost a name.
    fn note_changed(&self, names: &Names) {
        self.changed.lock().push(names.clone());
    }

    /// Notes that an item has come.
    fn note_placed(&self, names: &Names) {
        self.placed.lock().push(names.clone());
    }

    /// The levels above an item, the times of which change when it comes or goes.
    fn stale_levels(&self, names: &Names) -> Vec<Stale> {
        let mut stale = vec![Stale::Attributes(crate::fuse::inode::ROOT)];
        let mut path = "col".to_owned();
        for component in names
            .rep()
            .iter()
            .flat_map(|rep| rep.components().into_iter().take(3))
        {
            path.push('/');
            path.push_str(component);
            if let Ok(level) = self.archive.tree().open_directory(&path) {
                let known = self.known_directory(level.as_fd());
                stale.extend(known.into_iter().map(Stale::Attributes));
            }
        }
        stale
    }

    /// What becomes stale in the other trees when a name in a directory changes; where it is a new
    /// one, nobody remembers it.
    pub fn stale_names(&self, parent: &Node, name: Option<&OsStr>) -> Vec<Stale> {
        let mut stale = Vec::new();
        for number in self.nodes.in_other_views(parent) {
            if let Some(name) = name {
                stale.push(Stale::Name(number, name.to_owned()));
            }
            stale.push(Stale::Listing(number));
        }
        stale
    }

    /// The access control list of a virtual directory: the root's, as are its owner and mode.
    pub fn virtual_acl(&self, name: &OsStr, limit: usize) -> Outcome<Vec<u8>> {
        inside::get_attribute(self.collection.as_fd(), name, limit)
    }

    /// Whether the kernel knows this directory or link in another tree, too.
    pub fn is_met_elsewhere(&self, node: &Node) -> bool {
        !self.nodes.in_other_views(node).is_empty()
    }

    /// What becomes stale in the other trees when a name's file loses that name: its link count. To
    /// be asked while it still has it.
    pub fn stale_victim(&self, parent: &Node, name: &OsStr) -> Vec<Stale> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let Ok(stat) = parent
            .file()
            .and_then(|above| rustix::fs::statat(&*above, name, flags))
        else {
            return Vec::new();
        };
        // A symbolic link with more names may be known in another tree by one of those.
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let has_others = is_link && stat.st_nlink > 1;
        if !has_others && !self.is_met_elsewhere(parent) {
            return Vec::new();
        }
        let numbers = self.nodes.in_all_views(stat.st_dev, stat.st_ino);
        numbers.into_iter().map(Stale::Attributes).collect()
    }

    /// Whether two names lead to one file.
    pub fn is_same(&self, one: (&Node, &OsStr), other: (&Node, &OsStr)) -> bool {
        let identity = |(parent, name): (&Node, &OsStr)| {
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            let stat = rustix::fs::statat(&*parent.file().ok()?, name, flags).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        identity(one).is_some_and(|one| identity(other) == Some(one))
    }

    /// After the kernel was told that a file has taken the place of itself by another name: it takes the
    /// node that it met there for removed, and the other one for moved.
    pub fn renamed_to_itself(&self, parent: &Node, name: &OsStr) {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        if let Ok(stat) = parent
            .file()
            .and_then(|above| rustix::fs::statat(&*above, name, flags))
        {
            let number = self.nodes.id_of(stat.st_dev, stat.st_ino, parent.view);
            self.nodes.retire(number);
        }
    }

    /// What becomes stale when a name's file has come there from another directory: what symbolic links
    /// say that climb out of an item, where they are read otherwise than on disk.
    pub fn stale_links(&self, parent: &Node, name: &OsStr) -> Vec<Stale> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let Ok(stat) = parent
            .file()
            .and_then(|above| rustix::fs::statat(&*above, name, flags))
        else {
            return Vec::new();
        };
        let links = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.nodes.in_all_views(stat.st_dev, stat.st_ino),
            // Which of them lie in it only their paths would tell.
            FileType::Directory => self.nodes.translated_links(),
            _ => Vec::new(),
        };
        links.into_iter().map(Stale::Listing).collect()
    }

    /// Opens a directory that is about to be removed, where the kernel knows it: who is in it finds
    /// nothing there, but is somewhere.
    pub fn hold(&self, parent: &Node, name: &OsStr) {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        if let Ok(above) = parent.file()
            && let Ok(stat) = rustix::fs::statat(&*above, name, flags)
            && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        {
            self.hold_known(self.nodes.in_all_views(stat.st_dev, stat.st_ino));
        }
    }

    fn hold_known(&self, numbers: Vec<NodeId>) {
        for node in numbers
            .into_iter()
            .filter_map(|number| self.nodes.get(number))
        {
            // Where it cannot be opened it has gone already.
            let _ = node.file();
        }
    }

    /// What becomes stale in the other trees when the attributes of a directory or link change.
    pub fn stale_attributes(&self, node: &Node) -> Vec<Stale> {
        let mut numbers = self.nodes.in_other_views(node);
        if node.kind == Kind::Root {
            // They are as the root is.
            numbers.extend(self.nodes.virtual_directories());
        }
        numbers.into_iter().map(Stale::Attributes).collect()
    }
}

struct Position {
    item: ItemId,
    names: Names,
    depth: usize,
}

/// A name of an item's own directory: its sidecar is known as such. The file under that name changes
/// when a relation is declared or a foreign sidecar is not believed, so that the name does not last;
/// nor does one that rsync will rename to it (`..ibi.AbCd12`): the kernel keeps what it knew of the
/// old name.
fn note_sidecar(entry: &mut Entry, item: ItemId, name: &OsStr) {
    if name == SIDECAR {
        entry.node.learnt.set_sidecar_of(Some(item));
    }
    if name.to_str().is_some_and(|name| name.contains(SIDECAR)) {
        entry.lasting = false;
    }
}
