//! Requests that make, link, rename and remove names, and the extended attributes of nodes: by the node
//! numbers of the protocol.

use std::ffi::OsStr;

use fuser::INodeNo;
use rustix::io::Errno;

use super::Inner;
use super::outcome::{Outcome, Wait};
use super::scheduler::JobQueue;
use crate::fuse::inside::{ErrnoResult, Removal};
use crate::fuse::namespace::{Entry, MkdirResult};
use crate::os::caller::Caller;
use crate::os::charging;

/// A name in a directory.
pub(super) type NameIn<'a> = (INodeNo, &'a OsStr);

impl Inner {
    pub(super) fn make_node(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        device: u32,
        mode: (u32, u32),
    ) -> ErrnoResult<Entry> {
        self.change(format_args!("mknod"), caller, (parent, name), || {
            let (parent, by) = (self.node(parent)?, self.context(caller));
            self.namespace.make_node(&by, &parent, name, device, mode)
        })
    }

    /// Makes a directory: later if it is an item to be minted.
    pub(super) fn make_directory(
        &self,
        caller: Caller,
        (parent, name): NameIn<'_>,
        mode: (u32, u32),
    ) -> ErrnoResult<Outcome<Entry>> {
        let _charged = charging::charge_to(caller.charged_user());
        let made = self.change(format_args!("mkdir"), &caller, (parent, name), || {
            let (parent, by) = (self.node(parent)?, self.context(&caller));
            self.namespace.make_directory(&by, &parent, name, mode)
        })?;
        Ok(match made {
            MkdirResult::Done(entry) => Outcome::Now(entry),
            MkdirResult::Minting(minting) => {
                Outcome::later(Wait::Queue(JobQueue::Date), caller.uid, move |inner| {
                    let _charged = charging::charge_to(caller.charged_user());
                    inner.namespace.mint(&inner.context(&caller), &minting)
                })
            }
        })
    }

    pub(super) fn make_link(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        target: &[u8],
    ) -> ErrnoResult<Entry> {
        let _charged = charging::charge_to(caller.charged_user());
        self.change(format_args!("symlink"), caller, (parent, name), || {
            let (parent, by) = (self.node(parent)?, self.context(caller));
            self.namespace.make_link(&by, &parent, name, target)
        })
    }

    pub(super) fn make_hard_link(
        &self,
        caller: &Caller,
        number: INodeNo,
        (parent, name): NameIn<'_>,
    ) -> ErrnoResult<Entry> {
        self.change(format_args!("link"), caller, (parent, name), || {
            let (node, parent) = (self.node(number)?, self.node(parent)?);
            let by = self.context(caller);
            self.namespace.make_hard_link(&by, &node, &parent, name)
        })
    }

    pub(super) fn remove(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        removal: Removal,
    ) -> ErrnoResult<()> {
        let request = match removal {
            Removal::Unlink => "unlink",
            Removal::Rmdir => "rmdir",
        };
        self.change(format_args!("{request}"), caller, (parent, name), || {
            let (parent, by) = (self.node(parent)?, self.context(caller));
            self.namespace.remove(&by, &parent, name, removal)
        })
    }

    pub(super) fn rename_name(
        &self,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        (new_parent, new_name): NameIn<'_>,
        flags: u32,
    ) -> ErrnoResult<()> {
        let _charged = charging::charge_to(caller.charged_user());
        let request = format_args!("rename to {new_name:?} of");
        self.change(request, caller, (parent, name), || {
            let (parent, new_parent) = (self.node(parent)?, self.node(new_parent)?);
            let by = self.context(caller);
            self.namespace
                .rename(&by, (&parent, name), (&new_parent, new_name), flags)
        })
    }

    /// The kernel turns EAGAIN of setxattr(2) into EOPNOTSUPP, after which a tool does without the attribute:
    /// EBUSY instead.
    pub(super) fn set_xattr(
        &self,
        caller: &Caller,
        (number, name): NameIn<'_>,
        value: &[u8],
        flags: i32,
    ) -> ErrnoResult<()> {
        let _charged = charging::charge_to(caller.charged_user());
        self.change(format_args!("setxattr"), caller, (number, name), || {
            let (node, by) = (self.node(number)?, self.context(caller));
            match self.namespace.set_xattr(&by, &node, name, value, flags) {
                Err(Errno::AGAIN) => Err(Errno::BUSY),
                set => set,
            }
        })
    }

    pub(super) fn remove_xattr(
        &self,
        caller: &Caller,
        (number, name): NameIn<'_>,
    ) -> ErrnoResult<()> {
        self.change(format_args!("removexattr"), caller, (number, name), || {
            let (node, by) = (self.node(number)?, self.context(caller));
            let is_written = || self.handles.is_written(node.id);
            self.namespace.remove_xattr(&by, &node, name, is_written)
        })
    }
}
