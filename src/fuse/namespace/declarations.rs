//! Declaring relations by names beside an item: `ln`, `rm`, `mv`, and writing the metadata text.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use super::names::{resolve_dots, text};
use super::requests::{Sibling, is_metadata, relation_of, single_step};
use super::staging::may_be_staged;
use super::virtual_entries::related;
use super::{Entry, Namespace};
use crate::archive::store::Item;
use crate::archive::tree::{METADATA_TEXT, SMALL_FILE_LIMIT};
use crate::archive::{Related, may_replace};
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;
use ibi::persistent::is_link;
use ibi::relation::{RelationKind, Request, Step};

impl Namespace {
    /// `ln -s TARGET NAME` beside an item: declares a relation, or makes a staged link.
    pub(super) fn link_beside(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        target: &[u8],
    ) -> ErrnoResult<Entry> {
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

    /// Declares the relation that a link beside an item stands for.
    fn declare(
        &self,
        caller: &Caller,
        parent: &Node,
        sibling: &Sibling,
        target: &[u8],
    ) -> ErrnoResult<()> {
        let kind = relation_of(&sibling.request).ok_or(Errno::INVAL)?;
        let target = std::str::from_utf8(target).map_err(|_| Errno::INVAL)?;
        // A target relative to this directory may be no more than the last component of an identifier.
        let from_here = match &parent.kind {
            NodeKind::Level(_) | NodeKind::Prefix(_) if is_link(target) => None,
            NodeKind::Level(path) | NodeKind::Prefix(path) => resolve_dots(path, target),
            _ => None,
        };
        let names = from_here
            .and_then(|path| self.archive.names_at_end_of(&path))
            .or_else(|| self.archive.names_at_end_of(target))
            .ok_or(Errno::INVAL)?;
        Ok(self
            .archive
            .edit(caller, |it| it.relate(&sibling.item.names, &kind, &names))?)
    }

    /// Makes and opens a regular file beside an item: its metadata text, or a staged file.
    pub(super) fn create_beside(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        mode: u32,
        umask: u32,
    ) -> ErrnoResult<(Entry, OwnedFd)> {
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
                let name = OsStr::new(METADATA_TEXT);
                opened = Some(inside::create(
                    directory.as_fd(),
                    name,
                    flags,
                    mode,
                    umask,
                    caller,
                )?);
                self.text_changed(caller, &sibling.item);
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

    /// The directory of an item, if the native filesystem would let the caller remove or replace the
    /// metadata text in it.
    fn check_text(&self, caller: &Caller, item: &Item) -> ErrnoResult<OwnedFd> {
        let directory = self.item_directory(item)?;
        let owner = match inside::find(directory.as_fd(), OsStr::new(METADATA_TEXT)) {
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

    /// `rm` beside an item: removes a relation, the metadata text, or a staged name.
    pub(super) fn remove_beside(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        let name_text = text(name)?;
        if parent.kind == NodeKind::Mint {
            return self.forget_label(caller, name_text);
        }
        self.check_staged(caller, parent, name)?;
        if let Some(kept) = self.staging.take(parent.id, name) {
            return inside::remove(self.staging.directory(), &kept, Removal::Unlink);
        }
        let Some(Sibling { item, request }) = self.sibling(parent, name_text)? else {
            return Err(Errno::PERM);
        };
        self.check_change(caller, &item)?;
        if is_metadata(&request) && self.archive.metadata(&item.names)?.is_none() {
            let directory = self.check_text(caller, &item)?;
            inside::remove(
                directory.as_fd(),
                OsStr::new(METADATA_TEXT),
                Removal::Unlink,
            )?;
            self.text_changed(caller, &item);
            return Ok(());
        }
        let kind = match relation_of(&request) {
            Some(kind) => kind,
            None => self.kind_of_unnamed_translation(&item, &request)?,
        };
        Ok(self
            .archive
            .edit(caller, |it| it.unrelate(&item.names, &kind))?)
    }

    /// `rm '<ibi>+'` removes the translation that `<ibi>+` leads to.
    fn kind_of_unnamed_translation(
        &self,
        item: &Item,
        request: &Request,
    ) -> ErrnoResult<RelationKind> {
        let Request::Modifier(modifier) = request else {
            return Err(Errno::PERM);
        };
        let (Some(Step::Translation(None)), Related::Item(names)) = (
            single_step(modifier),
            related(&self.archive, &self.options.languages, item, modifier)?,
        ) else {
            return Err(Errno::PERM);
        };
        let all = self.archive.translations(&item.names)?;
        all.into_iter()
            .find(|(_, known)| known.matches(&names))
            .map(|(language, _)| RelationKind::Translation(language))
            .ok_or(Errno::NOENT)
    }

    /// `mv` beside items: a staged name replaces the name that it was made for.
    pub(super) fn rename_beside(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        new_parent: &Node,
        new_name: &OsStr,
        flags: u32,
    ) -> ErrnoResult<()> {
        if !self.has_siblings(parent) || !self.has_siblings(new_parent) {
            return Err(Errno::PERM);
        }
        if flags & !rustix::fs::RenameFlags::NOREPLACE.bits() != 0 {
            return Err(Errno::INVAL);
        }
        let (from_text, to_text) = (text(name)?, new_name.to_str().ok_or(Errno::PERM)?);
        self.check_staged(caller, parent, name)?;
        self.check_staged(caller, new_parent, new_name)?;
        let staged = self.staging.find(parent.id, name);
        let target = self.sibling(new_parent, to_text)?;
        match (staged, target) {
            (Some(kept), Some(sibling)) => {
                self.check_change(caller, &sibling.item)?;
                self.replace(caller, new_parent, &sibling, &kept)?;
                if self.staging.take(parent.id, name).is_some() {
                    // A text has been moved to its item; a link is still there.
                    let _ = inside::remove(self.staging.directory(), &kept, Removal::Unlink);
                }
                Ok(())
            }
            (Some(_), None) => {
                if !may_be_staged(to_text) {
                    return Err(Errno::PERM);
                }
                if let Some(kept) = self.staging.take(parent.id, name) {
                    self.staging.note(new_parent.id, new_name, kept);
                }
                Ok(())
            }
            // An editor renames the old text to a backup before it writes the new one.
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
                inside::rename(directory.as_fd(), OsStr::new(METADATA_TEXT), to, &kept, 0)?;
                self.text_changed(caller, &sibling.item);
                self.staging.note(new_parent.id, new_name, kept);
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
    ) -> ErrnoResult<()> {
        let staged = inside::find(self.staging.directory(), kept)?;
        let attr = inside::attributes(&staged)?;
        match attr.kind {
            rustix::fs::FileType::Symlink => {
                let target = inside::read_link(staged.as_fd())?;
                self.declare(caller, parent, sibling, &target)
            }
            _ if is_metadata(&sibling.request) => {
                if self.archive.metadata(&sibling.item.names)?.is_some() {
                    return Err(Errno::PERM);
                }
                if attr.size > SMALL_FILE_LIMIT {
                    return Err(Errno::FBIG);
                }
                let directory = self.check_text(caller, &sibling.item)?;
                self.check_staged_text(&sibling.item, &staged)?;
                let from = self.staging.directory();
                let name = OsStr::new(METADATA_TEXT);
                inside::rename(from, kept, directory.as_fd(), name, 0)?;
                self.text_changed(caller, &sibling.item);
                Ok(())
            }
            _ => Err(Errno::PERM),
        }
    }
}
