//! The notifications that what the kernel has cached is stale.
//!
//! fuser sends them, except for that of a node: it does not say that the kernel does not know the node.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};

use fuser::{Filesystem, INodeNo, Notifier, Session};
use rustix::io::Errno;

use crate::fuse::inode::NodeId;

/// FUSE_NOTIFY_INVAL_INODE of the protocol.
const INVAL_INODE: i32 = 2;

/// The kernel's cache of one mount.
pub trait KernelCache: Debug + Send + Sync {
    /// Drops a name in a directory.
    ///
    /// # Errors
    /// The kernel does not take it.
    fn drop_name(&self, parent: NodeId, name: &OsStr) -> std::io::Result<()>;

    /// Drops the attributes of a node, and what it has of its content or listing from an offset on; nothing of that if
    /// the offset is negative.
    ///
    /// # Errors
    /// ENOENT: the kernel does not know the node.
    fn drop_node(&self, node: NodeId, offset: i64) -> Result<(), Errno>;
}

/// The cache of a session.
#[derive(Debug)]
pub struct SessionCache {
    notifier: Notifier,
    device: OwnedFd,
}

impl SessionCache {
    /// The cache of a session that has begun.
    ///
    /// # Errors
    /// Those of dup(2): this process has no descriptor left.
    pub fn of(session: &Session<impl Filesystem>) -> std::io::Result<SessionCache> {
        Ok(SessionCache {
            notifier: session.notifier(),
            device: session.as_fd().try_clone_to_owned()?,
        })
    }
}

impl KernelCache for SessionCache {
    fn drop_name(&self, parent: NodeId, name: &OsStr) -> std::io::Result<()> {
        self.notifier.inval_entry(INodeNo(parent.0), name)
    }

    fn drop_node(&self, node: NodeId, offset: i64) -> Result<(), Errno> {
        let message = inval_inode(node, offset);
        rustix::io::write(&self.device, &message).map(|_| ())
    }
}

/// A message: `fuse_out_header`, in which a notification has its code for an error and no number of a request, and
/// `fuse_notify_inval_inode_out`, whose length 0 means to the end.
fn inval_inode(node: NodeId, offset: i64) -> [u8; 40] {
    let mut message = [0; 40];
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..8].copy_from_slice(&INVAL_INODE.to_ne_bytes());
    message[16..24].copy_from_slice(&node.0.to_ne_bytes());
    message[24..32].copy_from_slice(&offset.to_ne_bytes());
    message
}
