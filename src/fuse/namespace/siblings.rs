//! Serving the names beside an item: rights, then the entry that `virtual_entries` computes.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::Access;
use rustix::io::Errno;

use super::metadata_text::mark_metadata_text;
use super::requests::Sibling;
use super::virtual_entries::{self, VirtualEntry};
use super::{Entry, NameLifetime, Namespace};
use crate::archive::RunAs;
use crate::archive::store::Item;
use crate::archive::tree::METADATA_TEXT;
use crate::fuse::errno;
use crate::fuse::inode::{Generated, Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;

impl Namespace {
    pub(super) fn lookup_sibling(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
    ) -> ErrnoResult<Entry> {
        if let Some(id) = self.minted_as(caller, parent.id, name) {
            let item = self.archive.store().item(id).map_err(errno::of_index)?;
            return self.item_entry(&item.ok_or(Errno::NOENT)?, View::declared_in(parent.view));
        }
        let _near = self.read_near(parent, name)?;
        let Some(sibling) = self.sibling(parent, name)? else {
            return match self.staging.open(parent.id, OsStr::new(name)) {
                Some(descriptor) => self.real(
                    descriptor?,
                    View::Rep,
                    NodeKind::Inside,
                    NameLifetime::Uncached,
                ),
                None => Err(Errno::NOENT),
            };
        };
        self.serve_sibling(caller, parent, &sibling)
    }

    fn serve_sibling(
        &self,
        caller: &Caller,
        parent: &Node,
        sibling: &Sibling,
    ) -> ErrnoResult<Entry> {
        self.check_shown(caller, &sibling.item)?;
        let languages = &self.options.languages;
        if caller.is_other() {
            for item in virtual_entries::passed(&self.archive, languages, sibling)? {
                self.check_shown(caller, &item)?;
            }
        }
        let computed = virtual_entries::compute(&self.archive, languages, sibling)?;
        if let Some(item) = computed.shown() {
            self.check_shown(caller, item)?;
        }
        match computed {
            VirtualEntry::Link(names) => {
                let target = self.link_to(parent.view, &names)?;
                let is_own = caller.is_other() && self.check_change(caller, &sibling.item).is_ok();
                let link = if is_own {
                    NodeKind::OwnLink(target, caller.uid)
                } else {
                    NodeKind::Link(target)
                };
                self.virtual_entry(parent.view, link)
            }
            VirtualEntry::MetadataText(item) => self.text_entry(&item),
            VirtualEntry::FileList(item) => {
                let list = Generated::FileList(item.id);
                self.virtual_entry(View::Rep, NodeKind::Generated(list))
            }
            // Generated when it is opened: it takes reading all files of the metadata item.
            VirtualEntry::Record { item, from, format } => {
                let item = item.id;
                let record = Generated::Record { item, from, format };
                self.virtual_entry(View::Rep, NodeKind::Generated(record))
            }
            VirtualEntry::ShortRecord { item, from, format } => {
                let act: RunAs<'_> = &reading_as(caller);
                let document = self
                    .archive
                    .read_as(act)
                    .document(&item, from.as_ref(), format)?;
                self.virtual_entry(View::Rep, NodeKind::Text(document.into_bytes()))
            }
        }
    }

    /// The entry of an item's metadata text: one file with two names, `<ibi>:` and its own in the item.
    pub(super) fn text_entry(&self, item: &Item) -> ErrnoResult<Entry> {
        let directory = self.item_directory(item)?;
        let descriptor = inside::find(directory.as_fd(), OsStr::new(METADATA_TEXT))?;
        let lifetime = NameLifetime::Uncached;
        let entry = self.real(descriptor, View::Rep, NodeKind::Inside, lifetime)?;
        mark_metadata_text(&entry, item);
        Ok(entry)
    }

    /// EACCES if a caller may not read an item's directory, or not search the levels above it. Whatever a name
    /// beside one item says of another passes here: the names are never cached, so that each caller is checked.
    fn check_shown(&self, caller: &Caller, item: &Item) -> ErrnoResult<()> {
        self.check_item(caller, item, Access::READ_OK | Access::EXEC_OK)?;
        self.check_search(caller, item)?;
        Ok(())
    }

    /// EACCES if a caller does not have this access to an item's directory.
    fn check_item(&self, caller: &Caller, item: &Item, access: Access) -> ErrnoResult<()> {
        let directory = self.item_directory(item)?;
        inside::check_access(directory.as_fd(), access, caller)
    }

    /// EACCES if a caller may not write in an item's directory, and so not change the item's relations.
    pub(super) fn check_change(&self, caller: &Caller, item: &Item) -> ErrnoResult<()> {
        self.check_item(caller, item, Access::WRITE_OK | Access::EXEC_OK)
    }
}

/// Runs the Archive's reading of files with the caller's credentials.
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
