//! Extended attributes: which are the native filesystem's, which are virtual, and which are refused.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::changed_beside::CHANGED_BESIDE;
use super::invalidation::Context;
use super::item_xattrs::is_virtual;
use super::modes::ACL;
use super::{Namespace, authors};
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, CAPABILITY, ErrnoResult};
use crate::os::caller::Caller;

/// The SELinux label of a file. Where SELinux runs, the kernel answers by itself. Elsewhere `ls -l` asks for
/// every file until the answer is EOPNOTSUPP, no labels here.
const LABEL: &str = "security.selinux";

/// An attribute of the root of a mount in which names that do not exist lead to other Archives.
pub const FALLBACK: &str = "user.ibi.fallback";

impl Namespace {
    /// The value of an attribute; ERANGE if it is longer than `limit` (0: no limit).
    pub fn xattr(&self, node: &Node, name: &OsStr, limit: usize) -> ErrnoResult<Vec<u8>> {
        match (&node.kind, &node.real) {
            (NodeKind::Root, _) if self.options.fallback && name == FALLBACK => Ok(b"yes".to_vec()),
            (NodeKind::Item(item), _) if is_virtual(name) => self.item_xattr(*item, name),
            // The kernel asks before the first write to a file whether there is one to remove.
            (..) if limit == 0 && name == CAPABILITY && node.learnt.lacks_capability() => {
                Err(Errno::NODATA)
            }
            (_, Some(real)) => {
                let value = inside::get_attribute(real.file.open()?.as_fd(), name, limit);
                match value {
                    Err(Errno::NODATA) if name == LABEL => Err(Errno::OPNOTSUPP),
                    Err(Errno::NODATA) if name == CAPABILITY => {
                        node.learnt.set_lacks_capability(true);
                        value
                    }
                    value => value,
                }
            }
            // As the owner and the mode, the list of a virtual directory is the root's.
            (NodeKind::Mint | NodeKind::Find | NodeKind::Found(_) | NodeKind::Prefix(_), None)
                if name == ACL =>
            {
                inside::get_attribute(self.collection.as_fd(), name, limit)
            }
            _ => Err(Errno::NODATA),
        }
    }

    /// The names of the attributes, each ended by a NUL; virtual ones are not listed, so that no tool copies
    /// them.
    pub fn xattr_names(&self, caller: &Caller, node: &Node, limit: usize) -> ErrnoResult<Vec<u8>> {
        match &node.real {
            Some(real) => inside::list_attributes(real.file.open()?.as_fd(), limit, caller),
            None => Ok(Vec::new()),
        }
    }

    /// Sets an attribute, with the flags of setxattr(2).
    pub fn set_xattr(
        &self,
        by: &Context<'_>,
        node: &Node,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> ErrnoResult<()> {
        if let NodeKind::Item(item) = node.kind
            && is_virtual(name)
        {
            let exists = self.item_xattr(item, name).is_ok();
            return match (exists, XattrFlags::from_bits_retain(flags as u32)) {
                (true, XattrFlags::CREATE) => Err(Errno::EXIST),
                (false, XattrFlags::REPLACE) => Err(Errno::NODATA),
                _ => self.settle(by, self.set_item_xattr(by.caller, item, name, value)),
            };
        }
        if name == CHANGED_BESIDE
            && let Some(item) = node.learnt.sidecar_of()
        {
            return self.changed_beside(by, item, value);
        }
        if node.real.is_none() {
            // A tool that copies a prefix directory can do without.
            return Err(Errno::OPNOTSUPP);
        }
        let file = node.file()?;
        self.check_unsealed(node)?;
        let _content = (name == ACL).then(|| self.change_content(node));
        let value = self.list_to_keep(node, name, value);
        let before = match node.kind {
            NodeKind::Item(_) if name == ACL => Some(rustix::fs::fstat(&*file)?.st_mode),
            _ => None,
        };
        let mut intent = None;
        if name == ACL && node.learnt.sidecar_of().is_some() {
            intent = self.changing_file(node)?;
            authors::before_list_changes(file.as_fd())?;
        }
        self.check_again(by, node, || {
            inside::set_attribute(file.as_fd(), name, &value, flags, by.caller)
        })?;
        if let Some(intent) = intent {
            self.note_speaker(node)?;
            intent.done();
        }
        if name == CAPABILITY {
            node.learnt.set_lacks_capability(false);
        }
        self.xattr_changed(by, node, name);
        if let Some(before) = before {
            self.note_published(node, before);
        }
        Ok(())
    }

    /// Removes an attribute; `is_written` says whether a process has the file open for writing.
    pub fn remove_xattr(
        &self,
        by: &Context<'_>,
        node: &Node,
        name: &OsStr,
        is_written: impl Fn() -> bool,
    ) -> ErrnoResult<()> {
        if let NodeKind::Item(item) = node.kind
            && is_virtual(name)
        {
            return self.settle(by, self.remove_item_xattr(by.caller, item, name));
        }
        if node.real.is_none() {
            return Err(Errno::OPNOTSUPP);
        }
        let file = node.file()?;
        self.check_unsealed(node)?;
        let _content = (name == ACL).then(|| self.change_content(node));
        if name == CAPABILITY {
            inside::check_loss(file.as_fd(), by.caller, is_written)?;
        }
        self.check_again(by, node, || inside::remove_attribute(file.as_fd(), name))?;
        self.xattr_changed(by, node, name);
        Ok(())
    }

    fn xattr_changed(&self, by: &Context<'_>, node: &Node, name: &OsStr) {
        by.cache.invalidate(self.stale_attributes(node));
        if name == ACL {
            by.cache.invalidate(self.stale_search(node));
            self.note_readers(node);
            if let NodeKind::Item(item) = node.kind {
                self.archive.tell_list(by.caller, item);
            }
        }
    }
}
