//! Making, linking and removing names: inside items on the native filesystem, above them by the rules of
//! identifiers.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::invalidation::{Context, Stale};
use super::{Entry, MkdirResult, Namespace, OpenDeposit, authors};
use crate::archive::tree::{METADATA_TEXT, SIDECAR};
use crate::archive::{ContentChange, WriteIntent};
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, ErrnoResult, New, Removal};
use crate::os::caller::Caller;
use crate::os::entries::each_entry_of;
use crate::os::serving::is_kept_open;

/// A regular file that has just been made.
#[derive(Debug)]
pub struct Created {
    /// Its entry.
    pub entry: Entry,
    /// The file, open as it was asked for.
    pub file: OwnedFd,
    /// The deposit in which it was made, if any: to be dropped when the file is closed.
    pub deposit: Option<OpenDeposit>,
}

impl Namespace {
    fn names_changed(&self, by: &Context<'_>, parent: &Node, name: Option<&OsStr>) {
        by.cache.invalidate(self.stale_names(parent, name));
    }

    /// mknod(2); EPERM above the items.
    pub fn make_node(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        device: u32,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<Entry> {
        if parent.is_in_item() {
            self.make_inside(by, parent, name, New::Node(device), (mode, umask))
        } else {
            Err(Errno::PERM)
        }
    }

    /// mkdir(2). Above the items it makes a level, a prefix or an item, or mints.
    pub fn make_directory(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<MkdirResult> {
        let made = if parent.is_in_item() {
            MkdirResult::Done(self.make_inside(by, parent, name, New::Directory, (mode, umask))?)
        } else {
            self.make_level_or_mint(by.caller, parent, name, mode, umask)?
        };
        match made {
            MkdirResult::Done(_) => self.settle(by, Ok(made)),
            MkdirResult::Minting(_) => Ok(made),
        }
    }

    /// symlink(2). Beside items it declares a relation.
    pub fn make_link(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        target: &[u8],
    ) -> ErrnoResult<Entry> {
        if parent.is_in_item() {
            let kept = self.link_to_keep(parent, target)?;
            self.make_inside(by, parent, name, New::Link(&kept), (0o777, 0))
        } else {
            self.settle(by, self.link_beside(by.caller, parent, name, target))
        }
    }

    fn make_inside(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        new: New<'_>,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<Entry> {
        let content = self.change_unsealed(by.caller, parent, Some(name))?;
        let replaced = self.make_room(by.caller, parent, name)?;
        let above = parent.file()?;
        let made = inside::make(above.as_fd(), name, new, mode, umask, by.caller)?;
        content.iter().for_each(ContentChange::made);
        self.note_deposit(by.caller, parent);
        self.names_changed(by, parent, replaced);
        self.made_inside(parent, name, made)
    }

    /// Makes and opens a regular file. Beside items it is a metadata text or a staged file.
    pub fn create(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        flags: i32,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<Created> {
        if !parent.is_in_item() {
            let made = self.create_beside(by.caller, parent, name, flags, mode, umask);
            let (entry, file) = self.settle(by, made)?;
            return Ok(Created {
                entry,
                file,
                deposit: None,
            });
        }
        let change = self.changing(parent, name)?;
        let content = self.change_unsealed(by.caller, parent, Some(name))?;
        let replaced = self.make_room(by.caller, parent, name)?;
        let above = parent.file()?;
        let file = inside::create(above.as_fd(), name, flags, mode, umask, by.caller)?;
        content.iter().for_each(ContentChange::made);
        self.names_changed(by, parent, replaced);
        let entry = self.made_open(parent, name, file.as_fd())?;
        entry
            .node
            .learnt
            .set_lacks_capability(OFlags::from_bits_retain(flags as u32).contains(OFlags::EXCL));
        // It is marked again as one that is open for writing.
        change.into_iter().for_each(WriteIntent::done);
        let deposit = self.note_open_deposit(by.caller, parent);
        Ok(Created {
            entry,
            file,
            deposit,
        })
    }

    /// link(2); EPERM above the items.
    pub fn make_hard_link(
        &self,
        by: &Context<'_>,
        node: &Node,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<Entry> {
        if !parent.is_in_item() {
            return Err(Errno::PERM);
        }
        let change = self.changing(parent, name)?;
        // A file with names in two items is counted in neither.
        let content = [
            self.change_unsealed(by.caller, node, None)?,
            self.change_unsealed(by.caller, parent, Some(name))?,
        ];
        let replaced = self.make_room(by.caller, parent, name)?;
        let (file, above) = (node.file()?, parent.file()?);
        // With another name it may be written by that one.
        self.before_writing(by.caller, node)?;
        if change.is_some() {
            authors::before_naming(by.caller, file.as_fd(), above.as_fd())?;
        }
        let made = inside::link(file.as_fd(), above.as_fd(), name, by.caller)?;
        content.iter().flatten().for_each(ContentChange::made);
        self.note_speaker(node)?;
        self.note_deposit(by.caller, parent);
        by.cache.invalidate(self.stale_attributes(node));
        self.names_changed(by, parent, replaced);
        let entry = self.made_inside(parent, name, made)?;
        if entry.node.id != node.id {
            // A symbolic link of one tree with a new name in another one, where it is another node: the
            // kernel counts the name there.
            by.cache.invalidate(vec![Stale::Attributes(node.id)]);
        }
        self.name_made(by, parent, name)?;
        change.into_iter().for_each(WriteIntent::done);
        Ok(entry)
    }

    /// unlink(2) and rmdir(2). Above the items they remove relations, labels, levels and items.
    pub fn remove(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        removal: Removal,
    ) -> ErrnoResult<()> {
        if parent.is_in_item() {
            return self.remove_inside(by, parent, name, removal);
        }
        if removal == Removal::Unlink {
            return self.settle(by, self.remove_beside(by.caller, parent, name));
        }
        match self.remove_directory(by.caller, parent, name) {
            Ok(stale) => {
                by.cache.invalidate(stale);
                Ok(())
            }
            Err(errno) => {
                // A sync may have failed after the directory was removed.
                let stale = Stale::Name(parent.id, name.to_owned());
                by.cache.invalidate_after_reply(vec![stale]);
                Err(errno)
            }
        }
    }

    fn remove_inside(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        removal: Removal,
    ) -> ErrnoResult<()> {
        let change = self.changing(parent, name)?;
        let content = self.change_unsealed(by.caller, parent, Some(name))?;
        let above = parent.file()?;
        let losing = self.losing(parent, name);
        if let NodeKind::Item(item) = parent.kind
            && name == METADATA_TEXT
        {
            self.archive.keep_text(item);
        }
        inside::remove(above.as_fd(), name, removal)?;
        content.iter().for_each(ContentChange::made);
        if let Some(node) = losing.sidecar {
            self.note_speaker(&node)?;
        }
        let is_file = removal == Removal::Unlink && name != SIDECAR;
        if let Some(content) = content.filter(|_| is_file && parent.view.is_deposit()) {
            self.just_minted.note_lost_file(by.caller, content.item());
        }
        by.cache.invalidate(losing.stale);
        self.settle(by, self.name_gone(by.caller, parent, name))?;
        self.names_changed(by, parent, Some(name));
        change.into_iter().for_each(WriteIntent::done);
        Ok(())
    }

    /// Whether a directory holds nothing but, at most, a sidecar and files that were removed while they were open, which
    /// their server keeps there until they are closed.
    pub fn holds_only_kept_open(&self, caller: &Caller, parent: &Node, name: &OsStr) -> bool {
        let Ok(found) = self.lookup(caller, parent, name) else {
            return false;
        };
        let opened = found.node.file();
        let opened = opened.and_then(|directory| inside::open_directory(directory.as_fd()));
        // The kernel does not get the entry.
        self.nodes.forget(found.node.id, 1);
        let (mut keeps, mut holds) = (false, false);
        let listed = opened.and_then(|directory| {
            each_entry_of(&directory, |name, _| {
                let is_kept = is_kept_open(name);
                keeps |= is_kept;
                holds |= !is_kept && name != SIDECAR.as_bytes();
            })
        });
        listed.is_ok() && keeps && !holds
    }

    /// Syncs a directory above the items.
    pub fn sync_directory(&self, node: &Node, content_only: bool) -> ErrnoResult<()> {
        if node.real.is_none() {
            return Ok(());
        }
        let opened = inside::open_directory(node.file()?.as_fd())?;
        inside::sync(opened.as_fd(), content_only)
    }
}
