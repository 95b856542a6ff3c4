//! Beside an item: its modifiers, and the names that tools stage to replace them (DESIGN 3).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::levels::below;
use super::minting::single_step;
use super::staging::may_be_staged;
use super::{Entry, Namespace, is_year, metadata_text, text};
use crate::archive::store::Item;
use crate::archive::tree::{Place, SMALL_FILE_LIMIT};
use crate::archive::{Act, Related, may_replace};
use crate::formats::item::{Names, State};
use crate::fuse::inode::{Asked, Kind, Node, View};
use crate::fuse::inside::{self, Outcome};
use crate::os::caller::Caller;
use ibi::Rep;
use ibi::relation::{RelationKind, Request, Step, split_name};

/// A name beside an item that asks for something related.
#[derive(Debug)]
pub(super) struct Sibling {
    /// The item that is held here.
    pub(super) item: Item,
    /// What is asked of it.
    pub(super) request: Request,
}

impl Namespace {
    /// Reads `<ibi><mdf>` and `<ibi>?<verbs>` of an item held here; None for any other name.
    pub(super) fn sibling(&self, parent: &Node, name: &str) -> Outcome<Option<Sibling>> {
        let Some((base, tail)) = split_name(name) else {
            return Ok(None);
        };
        let Ok(request) = Request::parse_tail(tail) else {
            return Ok(None);
        };
        let item = match &parent.kind {
            Kind::Level(path) if is_year(path) => match Rep::parse(&below(path, base)) {
                Ok(rep) => {
                    let found = self.archive.store().find_by_rep(&rep)?;
                    found.filter(|item| item.state != State::Deleted)
                }
                Err(_) => None,
            },
            Kind::Prefix(prefix) => self.item_below_prefix(prefix, base)?.map(|(item, _)| item),
            _ => None,
        };
        Ok(item.map(|item| Sibling { item, request }))
    }

    /// Whether modifiers live in this directory.
    pub(super) fn has_siblings(&self, parent: &Node) -> bool {
        match &parent.kind {
            Kind::Level(path) => is_year(path),
            Kind::Prefix(_) => true,
            _ => false,
        }
    }

    pub(super) fn lookup_sibling(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
    ) -> Outcome<Entry> {
        if let Some(id) = self.declared_by(caller, parent.number, name) {
            let item = self.archive.store().item(id)?;
            return self.item_entry(&item.ok_or(Errno::NOENT)?, View::declared_in(parent.view));
        }
        let Some(Sibling { item, request }) = self.sibling(parent, name)? else {
            return match self.staging.open(parent.number, OsStr::new(name)) {
                Some(descriptor) => self.real(descriptor?, View::Rep, Kind::Inside, false),
                None => Err(Errno::NOENT),
            };
        };
        // What is told of an item is what lies in its directory.
        self.check_item(caller, &item, Access::READ_OK | Access::EXEC_OK)?;
        if let Kind::Prefix(_) = parent.kind {
            self.check_way(caller, &item)?;
        }
        let modifier = match request {
            Request::Modifier(modifier) => modifier,
            Request::FileList(modifier) => {
                let listed = match modifier {
                    None => item,
                    Some(modifier) => match self.resolve(&item, &modifier)? {
                        Related::Item(names) => self.archive.held(&names)?.ok_or(Errno::NOENT)?,
                        _ => return Err(Errno::NOENT),
                    },
                };
                self.check_item(caller, &listed, Access::READ_OK | Access::EXEC_OK)?;
                let asked = Asked::FileList(listed.id);
                return self.virtual_entry(View::Rep, Kind::Asked(asked));
            }
        };
        match self.resolve(&item, &modifier)? {
            Related::Item(names) => {
                let target = self.path_from_sibling(parent, &names);
                let is_own = caller.is_other() && self.check_change(caller, &item).is_ok();
                let link = if is_own {
                    Kind::OwnLink(target, caller.uid)
                } else {
                    Kind::Link(target)
                };
                self.virtual_entry(parent.view, link)
            }
            Related::Text(item) => self.text_entry(&item),
            Related::DublinCore { item, from } => {
                let from_item = match &from {
                    Some(names) => Some(names.clone()),
                    None => self.archive.metadata(&item.names)?,
                };
                if let Some(names) = from_item
                    && self.archive.held(&names)?.is_some()
                {
                    // As many files as it has are read for it.
                    let from = from.map(|names| self.archive.held(&names)).transpose()?;
                    let asked = Asked::Record {
                        item: item.id,
                        from: from.flatten().map(|from| from.id),
                    };
                    return self.virtual_entry(View::Rep, Kind::Asked(asked));
                }
                let act: Act<'_> = &reading_as(caller);
                let document = self.archive.dublin_core(&item, from.as_ref(), act)?;
                self.virtual_entry(View::Rep, Kind::Text(document.into_bytes()))
            }
        }
    }

    fn resolve(&self, item: &Item, modifier: &ibi::relation::Modifier) -> Outcome<Related> {
        let related = self
            .archive
            .resolve(&item.names, modifier, &self.options.languages)?;
        related.ok_or(Errno::NOENT)
    }

    /// The metadata text of an item is one file with two names: `<ibi>:` and its own in the item.
    fn text_entry(&self, item: &Item) -> Outcome<Entry> {
        let directory = self.item_directory(item)?;
        let descriptor = inside::find(directory.as_fd(), metadata_text())?;
        self.real(descriptor, View::Rep, Kind::Inside, false)
    }

    /// Refuses a caller what it may not do with an item's directory.
    fn check_item(&self, caller: &Caller, item: &Item, access: Access) -> Outcome<()> {
        let directory = self.item_directory(item)?;
        inside::check_access(directory.as_fd(), access, caller)
    }

    /// Refuses to change what is said of an item for a caller who may not write in its directory.
    pub(super) fn check_change(&self, caller: &Caller, item: &Item) -> Outcome<()> {
        self.check_item(caller, item, Access::WRITE_OK | Access::EXEC_OK)
    }

    fn item_directory(&self, item: &Item) -> Outcome<OwnedFd> {
        let tree = self.archive.tree();
        Ok(tree.open_item(&Place::of(&item.names))?)
    }

    /// The way from the directory of a modifier to an item, in the same tree where it has a name
    /// there.
    pub(super) fn path_from_sibling(&self, parent: &Node, names: &Names) -> Vec<u8> {
        let (climb, name) = match (&parent.kind, names.rep(), names.ibip()) {
            (Kind::Prefix(_), _, Some(ibip)) => ("..", ibip.to_string()),
            (Kind::Prefix(_), ..) => ("..", names.preferred()),
            (_, Some(rep), _) => ("../../..", rep.to_string()),
            _ => ("../../..", names.preferred()),
        };
        format!("{climb}/{name}").into_bytes()
    }

    /// `ln -s TARGET NAME` beside an item: a relation, or a staged link.
    pub fn make_link(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        target: &[u8],
    ) -> Outcome<Entry> {
        let name_text = name.to_str().ok_or(Errno::PERM)?;
        if !self.has_siblings(parent) {
            return Err(Errno::PERM);
        }
        if let Some(sibling) = self.sibling(parent, name_text)? {
            self.check_change(caller, &sibling.item)?;
            self.declare(caller, parent, &sibling, target)?;
            return self.lookup_sibling(caller, parent, name_text);
        }
        self.stage(caller, parent, name_text, |directory, kept| {
            rustix::fs::symlinkat(target, directory, kept)?;
            inside::find(directory, kept)
        })
    }

    /// Declares what a link beside an item says.
    fn declare(
        &self,
        caller: &Caller,
        parent: &Node,
        sibling: &Sibling,
        target: &[u8],
    ) -> Outcome<()> {
        let kind = relation_of(&sibling.request).ok_or(Errno::INVAL)?;
        let target = std::str::from_utf8(target).map_err(|_| Errno::INVAL)?;
        // A target relative to this directory may name no more than an item's last component.
        let from_here = match &parent.kind {
            Kind::Level(path) | Kind::Prefix(path) => normal(path, target),
            _ => None,
        };
        let names = from_here
            .and_then(|path| self.archive.names_at_end_of(&path))
            .or_else(|| self.archive.names_at_end_of(target))
            .ok_or(Errno::INVAL)?;
        Ok(self
            .archive
            .relate(caller, &sibling.item.names, &kind, &names)?)
    }

    /// Makes and opens a regular file beside an item: its metadata text, or a staged file.
    pub fn create_file(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        mode: u32,
        umask: u32,
    ) -> Outcome<(Entry, OwnedFd)> {
        let name_text = name.to_str().ok_or(Errno::PERM)?;
        if !self.has_siblings(parent) {
            return Err(Errno::PERM);
        }
        let mut opened = None;
        let entry = match self.sibling(parent, name_text)? {
            Some(sibling) => {
                if !is_metadata(&sibling.request)
                    || self.archive.metadata(&sibling.item.names)?.is_some()
                {
                    return Err(Errno::PERM);
                }
                let directory = self.item_directory(&sibling.item)?;
                let name = metadata_text();
                opened = Some(inside::create(
                    directory.as_fd(),
                    name,
                    flags,
                    mode,
                    umask,
                    caller,
                )?);
                self.note_changed(&sibling.item.names);
                self.text_entry(&sibling.item)?
            }
            None => self.stage(caller, parent, name_text, |directory, kept| {
                let mode = Mode::from_raw_mode(mode & !umask & 0o777);
                let flags = inside::content_flags(flags) | OFlags::CREATE | OFlags::EXCL;
                let file = rustix::fs::openat(directory, kept, flags, mode)?;
                // Our umask may be the last caller's.
                rustix::fs::fchmod(&file, mode)?;
                opened = Some(file);
                inside::find(directory, kept)
            })?,
        };
        Ok((entry, opened.ok_or(Errno::IO)?))
    }

    /// Makes a staged name and gives it to its maker: where it is kept no user may make any.
    fn stage(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
        make: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Outcome<OwnedFd>,
    ) -> Outcome<Entry> {
        if !may_be_staged(name) {
            return Err(Errno::PERM);
        }
        self.check_staged(caller, parent, OsStr::new(name))?;
        let kept = self.staging.fresh_name(caller.uid)?;
        let staged = self.staging.directory();
        let made = make(staged, &kept).and_then(|made| {
            if caller.is_other() {
                let (uid, gid) = (Uid::from_raw(caller.uid), Gid::from_raw(caller.gid));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(staged, &kept, Some(uid), Some(gid), flags)?;
            }
            Ok(made)
        });
        let made = match made {
            Ok(made) => made,
            Err(errno) => {
                let _ = inside::remove(staged, &kept, false);
                return Err(errno);
            }
        };
        self.staging.note(parent.number, OsStr::new(name), kept);
        self.real(made, View::Rep, Kind::Inside, false)
    }

    /// Refuses a caller a staged name that another user has made.
    fn check_staged(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<()> {
        let Some(staged) = self.staging.open(parent.number, name) else {
            return Ok(());
        };
        let owner = rustix::fs::fstat(staged?)?.st_uid;
        if owner == caller.uid || caller.owns_all() {
            Ok(())
        } else {
            Err(Errno::PERM)
        }
    }

    /// Refuses a caller to remove or replace an item's metadata text where the native filesystem would.
    fn check_text(&self, caller: &Caller, item: &Item) -> Outcome<OwnedFd> {
        let directory = self.item_directory(item)?;
        let owner = match inside::find(directory.as_fd(), metadata_text()) {
            Ok(text) => Some(rustix::fs::fstat(&text)?.st_uid),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno),
        };
        inside::check_access(
            directory.as_fd(),
            Access::WRITE_OK | Access::EXEC_OK,
            caller,
        )?;
        if may_replace(caller, directory.as_fd(), owner) {
            Ok(directory)
        } else {
            Err(Errno::PERM)
        }
    }

    /// rm beside an item: a relation, its metadata text, or a staged name.
    pub fn remove_name(&self, caller: &Caller, parent: &Node, name: &OsStr) -> Outcome<()> {
        let name_text = text(name)?;
        self.check_staged(caller, parent, name)?;
        if let Some(kept) = self.staging.take(parent.number, name) {
            return inside::remove(self.staging.directory(), &kept, false);
        }
        let Some(Sibling { item, request }) = self.sibling(parent, name_text)? else {
            return Err(Errno::PERM);
        };
        self.check_change(caller, &item)?;
        if is_metadata(&request) && self.archive.metadata(&item.names)?.is_none() {
            let directory = self.check_text(caller, &item)?;
            self.note_changed(&item.names);
            return inside::remove(directory.as_fd(), metadata_text(), false);
        }
        let kind = match relation_of(&request) {
            Some(kind) => kind,
            None => self.kind_of_unnamed_translation(&item, &request)?,
        };
        Ok(self.archive.unrelate(caller, &item.names, &kind)?)
    }

    /// `rm '<ibi>+'` takes away the translation that `<ibi>+` leads to.
    fn kind_of_unnamed_translation(&self, item: &Item, request: &Request) -> Outcome<RelationKind> {
        let Request::Modifier(modifier) = request else {
            return Err(Errno::PERM);
        };
        let (Some(Step::Translation(None)), Related::Item(names)) =
            (single_step(modifier), self.resolve(item, modifier)?)
        else {
            return Err(Errno::PERM);
        };
        let all = self.archive.translations(&item.names)?;
        all.into_iter()
            .find(|(_, known)| known.matches(&names))
            .map(|(language, _)| RelationKind::Translation(language))
            .ok_or(Errno::NOENT)
    }

    /// Renames beside items: what was staged becomes what it was meant for.
    pub fn rename(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        new_parent: &Node,
        new_name: &OsStr,
        flags: u32,
    ) -> Outcome<()> {
        if !self.has_siblings(parent) || !self.has_siblings(new_parent) {
            return Err(Errno::PERM);
        }
        if flags & !rustix::fs::RenameFlags::NOREPLACE.bits() != 0 {
            return Err(Errno::INVAL);
        }
        let (from_text, to_text) = (text(name)?, new_name.to_str().ok_or(Errno::PERM)?);
        self.check_staged(caller, parent, name)?;
        self.check_staged(caller, new_parent, new_name)?;
        let staged = self.staging.find(parent.number, name);
        let target = self.sibling(new_parent, to_text)?;
        match (staged, target) {
            (Some(kept), Some(sibling)) => {
                self.check_change(caller, &sibling.item)?;
                self.replace(caller, new_parent, &sibling, &kept)?;
                if self.staging.take(parent.number, name).is_some() {
                    // A text has gone from there to its item.
                    let _ = inside::remove(self.staging.directory(), &kept, false);
                }
                Ok(())
            }
            (Some(_), None) => {
                if !may_be_staged(to_text) {
                    return Err(Errno::PERM);
                }
                if let Some(kept) = self.staging.take(parent.number, name) {
                    self.staging.note(new_parent.number, new_name, kept);
                }
                Ok(())
            }
            // An editor puts the old text aside before it writes the new one.
            (None, None) if may_be_staged(to_text) => {
                let Some(sibling) = self.sibling(parent, from_text)? else {
                    return Err(Errno::PERM);
                };
                if !is_metadata(&sibling.request) {
                    return Err(Errno::PERM);
                }
                let directory = self.check_text(caller, &sibling.item)?;
                let kept = self.staging.fresh_name(caller.uid)?;
                let to = self.staging.directory();
                inside::rename(directory.as_fd(), metadata_text(), to, &kept, 0)?;
                self.note_changed(&sibling.item.names);
                self.staging.note(new_parent.number, new_name, kept);
                Ok(())
            }
            _ => Err(Errno::PERM),
        }
    }

    /// A staged link declares a relation, a staged file becomes the metadata text.
    fn replace(
        &self,
        caller: &Caller,
        parent: &Node,
        sibling: &Sibling,
        kept: &OsStr,
    ) -> Outcome<()> {
        let staged = inside::find(self.staging.directory(), kept)?;
        let attr = inside::attributes(&staged)?;
        match attr.kind {
            rustix::fs::FileType::Symlink => {
                let target = inside::read_link(staged.as_fd())?;
                self.declare(caller, parent, sibling, &target)
            }
            _ if is_metadata_text(sibling) => {
                if self.archive.metadata(&sibling.item.names)?.is_some() {
                    return Err(Errno::PERM);
                }
                if attr.size > SMALL_FILE_LIMIT {
                    return Err(Errno::FBIG);
                }
                let directory = self.check_text(caller, &sibling.item)?;
                let from = self.staging.directory();
                self.note_changed(&sibling.item.names);
                inside::rename(from, kept, directory.as_fd(), metadata_text(), 0)
            }
            _ => Err(Errno::PERM),
        }
    }
}

/// Reads as a caller.
pub(super) fn reading_as(caller: &Caller) -> impl Fn(&mut dyn FnMut()) {
    |read| {
        let ran = caller.act(|| {
            read();
            Ok::<(), Errno>(())
        });
        if let Err(errno) = ran {
            log::error!("nothing is read as user {}: {errno}", caller.uid);
        }
    }
}

fn is_metadata_text(sibling: &Sibling) -> bool {
    is_metadata(&sibling.request)
}

/// Whether a request is `:` alone.
fn is_metadata(request: &Request) -> bool {
    match request {
        Request::Modifier(modifier) => {
            matches!(single_step(modifier), Some(Step::Metadata(None)))
        }
        Request::FileList(_) => false,
    }
}

/// The relation that a modifier of one step stands for, where it can be declared.
fn relation_of(request: &Request) -> Option<RelationKind> {
    let Request::Modifier(modifier) = request else {
        return None;
    };
    match single_step(modifier)? {
        Step::LastEdition => Some(RelationKind::NextEdition),
        Step::Translation(Some(language)) => Some(RelationKind::Translation(*language)),
        Step::Metadata(None) => Some(RelationKind::Metadata),
        _ => None,
    }
}

/// A path relative to a directory of the tree, without its dots; None where it leaves the tree or
/// is absolute.
fn normal(directory: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
