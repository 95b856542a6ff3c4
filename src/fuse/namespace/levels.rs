//! The levels above the items: the root, the folders of a rep, the IBIp prefixes.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::names::{WORLD, text};
use super::staged_directories::is_staged_directory;
use super::virtual_entries::link_target;
use super::{Entry, NameLifetime, Namespace, Stale};
use crate::archive::store::Item;
use crate::archive::tree::Creator;
use crate::formats::item::Names;
use crate::formats::tree_name::{below, component_below, is_year, split_request};
use crate::fuse::descriptors::Pinning;
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeKind, Real, View};
use crate::fuse::inside::{self, ErrnoResult, New, Removal};
use crate::os::caller::Caller;
use ibi::{Ibi, Ibip, ParseError, Rep, ibip, rep};

/// The seconds for which it holds that a directory is that of an item, in a store that hosts share.
const CONFIRMED: u32 = 10;

impl Namespace {
    pub(super) fn lookup_in_root(&self, name: &OsStr) -> ErrnoResult<Entry> {
        if name == ".mint" {
            return self.cached_entry(View::Mint, NodeKind::Mint);
        }
        if name == WORLD {
            return self.lookup_world();
        }
        if name == ".find" {
            return self.cached_entry(View::Rep, NodeKind::Find);
        }
        match self.find_level("", self.root_descriptor(), text(name)?) {
            Err(Errno::NOENT) => self.lookup_prefix(text(name)?),
            other => other,
        }
    }

    /// The entry of a virtual directory whose name the kernel may cache.
    pub(super) fn cached_entry(&self, view: View, kind: NodeKind) -> ErrnoResult<Entry> {
        let entry = self.virtual_entry(view, kind)?;
        Ok(Entry {
            lifetime: NameLifetime::UntilInvalidated,
            ..entry
        })
    }

    fn root_descriptor(&self) -> BorrowedFd<'_> {
        self.collection.as_fd()
    }

    pub(super) fn lookup_in_level(
        &self,
        parent: &Node,
        path: &str,
        name: &OsStr,
    ) -> ErrnoResult<Entry> {
        self.find_level(path, parent.file()?.as_fd(), text(name)?)
    }

    /// A level in its recorded spelling is the real directory; in another spelling it is a link to it.
    fn find_level(&self, path: &str, parent: BorrowedFd<'_>, name: &str) -> ErrnoResult<Entry> {
        if rep::check_component(component_below(path), name).is_err() {
            return Err(Errno::NOENT);
        }
        let below = below(path, name);
        match inside::find(parent, OsStr::new(name)) {
            Ok(descriptor) => {
                let entry = self.real(
                    descriptor,
                    View::Rep,
                    NodeKind::Level(below),
                    NameLifetime::UntilInvalidated,
                )?;
                match entry.attr.kind {
                    FileType::Directory => Ok(entry),
                    _ => {
                        self.nodes.forget(entry.node.id, 1);
                        Err(Errno::NOENT)
                    }
                }
            }
            Err(Errno::NOENT) => match self.recorded_level(&below, parent, name)? {
                Some(recorded) => {
                    self.virtual_entry(View::Rep, NodeKind::Link(recorded.into_bytes()))
                }
                None => Err(Errno::NOENT),
            },
            Err(errno) => Err(errno),
        }
    }

    /// The recorded spelling of the last component of a level, if it differs from the asked one.
    fn recorded_level(
        &self,
        path: &str,
        parent: BorrowedFd<'_>,
        name: &str,
    ) -> ErrnoResult<Option<String>> {
        let store = self.archive.store();
        let recorded = store.spelling_of_level(path).map_err(errno::of_index)?;
        if let Some(recorded) = recorded
            && let Some((_, last)) = format!("/{recorded}").rsplit_once('/')
            && last != name
        {
            return Ok(Some(last.to_owned()));
        }
        // A level that holds no item yet is known to the directory alone.
        self.spellings.find(parent, name)
    }

    /// An IBIp prefix is a directory if an item, an alias or an empty directory has it.
    fn lookup_prefix(&self, name: &str) -> ErrnoResult<Entry> {
        let store = self.archive.store();
        if ibip::check_prefix(name).is_ok() {
            let recorded = store.spelling_of_prefix(name).map_err(errno::of_index)?;
            let recorded = recorded.or_else(|| {
                let made = |spelling: &String| {
                    self.archive
                        .tree()
                        .is_directory(&format!("ibip/{spelling}"))
                };
                [name.to_owned(), ibip::prefix_key(name)]
                    .into_iter()
                    .find(made)
            });
            match recorded {
                Some(recorded) if recorded == name => {
                    return self.cached_entry(View::Ibip, NodeKind::Prefix(recorded));
                }
                Some(recorded) => {
                    return self.virtual_entry(View::Ibip, NodeKind::Link(recorded.into_bytes()));
                }
                None => {}
            }
        }
        if store.has_alias_prefix(name).map_err(errno::of_index)? {
            return self.virtual_entry(View::Ibip, NodeKind::Prefix(name.to_owned()));
        }
        Err(Errno::NOENT)
    }

    pub(super) fn lookup_in_year(
        &self,
        caller: &Caller,
        parent: &Node,
        path: &str,
        name: &OsStr,
    ) -> ErrnoResult<Entry> {
        let name = text(name)?;
        if let Ok(rep) = Rep::parse(&below(path, name)) {
            let descriptor = inside::find(parent.file()?.as_fd(), OsStr::new(name))?;
            let stat = rustix::fs::fstat(&descriptor)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Err(Errno::NOENT);
            }
            return self.item_in_year(parent, &rep, descriptor, stat);
        }
        self.lookup_sibling(caller, parent, name)
    }

    /// The seconds since the mount began, at least 1.
    fn seconds(&self) -> u32 {
        let passed = self.timer.now().saturating_duration_since(self.began);
        u32::try_from(passed.as_secs() + 1).unwrap_or(u32::MAX)
    }

    /// The entry of an item by its rep. Where hosts share the store, the kernel asks time and again, and what the index
    /// has said lately of the same directory holds; while its server is away, whatever it has said.
    fn item_in_year(
        &self,
        parent: &Node,
        rep: &Rep,
        descriptor: OwnedFd,
        stat: Stat,
    ) -> ErrnoResult<Entry> {
        let file = self.descriptors.keep(descriptor, &stat, Pinning::ByHandle);
        let lifetime = NameLifetime::UntilInvalidated;
        let now = self.seconds();
        if parent.is_shared {
            let number = self.nodes.id_of(stat.st_dev, stat.st_ino, View::Rep);
            let known = self.nodes.get(number).filter(|node| {
                let is_same = |real: &Real| real.file.is_same_file(&file);
                let confirmed = node.learnt.confirmed();
                let is_away = || matches!(self.archive.store().version(), Ok(None));
                confirmed > 0
                    && node.real.as_ref().is_some_and(is_same)
                    && (now.saturating_sub(confirmed) < CONFIRMED || is_away())
            });
            if let Some(known) = known {
                return Ok(self.entry(stat, file, View::Rep, known.kind.clone(), lifetime));
            }
        }
        let kind = NodeKind::Item(self.archive.item_at(rep)?.id);
        let entry = self.entry(stat, file, View::Rep, kind, lifetime);
        entry.node.learnt.set_confirmed(now);
        Ok(entry)
    }

    pub(super) fn lookup_in_prefix(
        &self,
        caller: &Caller,
        parent: &Node,
        prefix: &str,
        name: &OsStr,
    ) -> ErrnoResult<Entry> {
        let name = text(name)?;
        match self.item_below_prefix(prefix, name)? {
            Some((item, true)) => self.item_entry_beside(caller, &item, View::Ibip),
            Some((item, false)) => {
                self.check_search(caller, &item)?;
                let target = link_target(View::Ibip, &item.names);
                self.virtual_entry(View::Ibip, NodeKind::Link(target))
            }
            None => self.lookup_sibling(caller, parent, name),
        }
    }

    /// Makes a level, a prefix, or an item's own directory.
    pub(super) fn make_level(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
        mode: u32,
        umask: u32,
    ) -> ErrnoResult<Entry> {
        let creator = Creator {
            uid: caller.uid,
            gid: caller.gid,
            mode,
            umask,
        };
        match &parent.kind {
            NodeKind::Root if ibip::check_prefix(name).is_ok() => {
                self.archive.tree().make_prefix(name)?;
                self.cached_entry(View::Ibip, NodeKind::Prefix(name.to_owned()))
            }
            NodeKind::Level(path) if is_year(path) => {
                let rep = Rep::parse(&below(path, name)).map_err(|error| refused(name, &error))?;
                self.make_item(caller, parent, Ibi::Rep(rep), creator, View::Rep)
            }
            NodeKind::Root | NodeKind::Level(_) => {
                let path = match &parent.kind {
                    NodeKind::Level(path) => path.as_str(),
                    _ => "",
                };
                rep::check_component(component_below(path), name).map_err(|error| {
                    log::debug!("refused: {error}");
                    Errno::INVAL
                })?;
                let mode = if is_year(&below(path, name)) {
                    super::modes::as_on_disk(mode)
                } else {
                    mode
                };
                let made = inside::make(
                    parent.file()?.as_fd(),
                    OsStr::new(name),
                    New::Directory,
                    mode,
                    umask,
                    caller,
                )?;
                self.spellings.note(parent.file()?.as_fd(), name);
                self.real(
                    made,
                    View::Rep,
                    NodeKind::Level(below(path, name)),
                    NameLifetime::UntilInvalidated,
                )
            }
            NodeKind::Prefix(prefix) => {
                let ibip = Ibip::parse(&format!("{prefix}/{name}"));
                let ibip = ibip.map_err(|error| refused(name, &error))?;
                self.make_item(caller, parent, Ibi::Ibip(ibip), creator, View::Ibip)
            }
            _ => Err(Errno::PERM),
        }
    }

    /// Creates the directory of an item that is not held here.
    fn make_item(
        &self,
        caller: &Caller,
        parent: &Node,
        ibi: Ibi,
        creator: Creator,
        view: View,
    ) -> ErrnoResult<Entry> {
        self.check_making(caller, parent)?;
        let item = self
            .archive
            .depositor(caller)
            .register(&Names::from(ibi), creator)?;
        self.note_made_in(parent, &item.names);
        self.item_entry(&item, view)
    }

    /// Removes an empty level, an empty prefix, or an item that holds nothing but its sidecar.
    pub(super) fn remove_directory(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<Vec<Stale>> {
        if self.staging.find(parent.id, name).is_some() && is_staged_directory(name) {
            self.remove_staged_directory(caller, parent, name)?;
            return Ok(Vec::new());
        }
        match &parent.kind {
            NodeKind::Mint => {
                let item = self.labelled(caller, text(name)?)?;
                self.remove_item(caller, parent, &item)
            }
            NodeKind::Level(path) if is_year(path) => {
                let rep = Rep::parse(&below(path, text(name)?)).map_err(|_| Errno::NOTDIR)?;
                let item = self.archive.item_at(&rep)?;
                self.remove_item(caller, parent, &item)
            }
            NodeKind::Prefix(prefix) => match self.item_below_prefix(prefix, text(name)?)? {
                Some((item, true)) => self.remove_item(caller, parent, &item),
                _ => Err(Errno::NOTDIR),
            },
            NodeKind::Root if name == ".mint" || name == WORLD => Err(Errno::PERM),
            NodeKind::Root if ibip::check_prefix(text(name)?).is_ok() => {
                let store = self.archive.store();
                let taken = store
                    .spelling_of_prefix(text(name)?)
                    .map_err(errno::of_index)?;
                if taken.is_some() {
                    return Err(Errno::NOTEMPTY);
                }
                let ibip = self.archive.tree().open_directory("ibip")?;
                inside::remove(ibip.as_fd(), name, Removal::Rmdir)?;
                Ok(Vec::new())
            }
            NodeKind::Root | NodeKind::Level(_) => {
                inside::remove(parent.file()?.as_fd(), name, Removal::Rmdir)?;
                Ok(Vec::new())
            }
            _ => Err(Errno::PERM),
        }
    }

    /// Removes an item by its name in a directory. The kernel drops that name from its cache, and locks that
    /// directory until the answer; returns what else becomes stale.
    fn remove_item(&self, caller: &Caller, parent: &Node, item: &Item) -> ErrnoResult<Vec<Stale>> {
        // The kernel has checked the directory in which the name was found, which may be a prefix.
        let place = crate::archive::tree::Place::of(&item.names);
        let tree = self.archive.tree();
        let directory = tree.open_item(&place)?;
        let owner = rustix::fs::fstat(&directory)?.st_uid;
        match item.names.rep() {
            // As in a directory with the sticky bit, which is how the one above is shown.
            _ if owner == caller.uid => {}
            Some(_) => {
                let above = tree.open_directory(place.parent())?;
                inside::check_removal(above.as_fd(), directory.as_fd(), caller)?;
            }
            // The root of the mount says who may make items in a prefix, as in `check_making`.
            None => inside::check_removal(self.collection.as_fd(), directory.as_fd(), caller)?,
        }
        let levels = self.levels_above(&item.names).into_iter();
        let mut stale: Vec<Stale> = levels.map(|(level, _)| Stale::Attributes(level)).collect();
        if let Some(rep) = item.names.rep()
            && let Some((year, name)) = rep.as_str().rsplit_once('/')
            && let Ok(year) = self.archive.tree().open_directory(&format!("col/{year}"))
        {
            let known = self.known_directory(year.as_fd());
            stale.extend(known.into_iter().map(|node| Stale::Name(node, name.into())));
        }
        let place = crate::archive::tree::Place::of(&item.names);
        if let Ok(directory) = self.archive.tree().open_item(&place) {
            let known = self.known_directory(directory.as_fd());
            stale.extend(known.iter().copied().map(Stale::Attributes));
            self.keep_nodes_open(known);
        }
        let by_label = parent.kind == NodeKind::Mint;
        self.archive.edit(caller, |it| {
            if by_label {
                it.unmint(item.id, self.just_minted.has_lost_files(item.id))
            } else {
                it.remove(item.id)
            }
        })?;
        self.labels.forget_item(item.id);
        self.forget_just_minted(item.id);
        if let Some(ibip) = item.names.ibip() {
            let prefix = NodeKind::Prefix(ibip.prefix().to_owned());
            let node = self.nodes.id_of_virtual(&prefix);
            stale.push(Stale::Name(node, ibip.suffix().into()));
            if self
                .archive
                .store()
                .spelling_of_prefix(ibip.prefix())
                .map_err(errno::of_index)?
                .is_none()
            {
                stale.push(Stale::Name(crate::fuse::inode::ROOT, ibip.prefix().into()));
            }
        }
        stale.retain(|stale| !matches!(stale, Stale::Name(node, _) if *node == parent.id));
        Ok(stale)
    }
}

/// The errno for making a name that is not an identifier: ENOENT if the item of a modifier is not here, else
/// EINVAL.
fn refused(name: &str, error: &ParseError) -> Errno {
    log::debug!("refused: {error}");
    match split_request(name) {
        Some((_, Some(_))) => Errno::NOENT,
        _ => Errno::INVAL,
    }
}
