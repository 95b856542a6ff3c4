//! The place of incomplete files: on the filesystem of the copy, where no other user reaches them.
//!
//! An item may be a user's, who may exchange any name in it at any time. So nothing is made there but a directory that
//! only this process may enter, and what is complete is moved from it.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::os::directory::Directory;
use crate::os::private_directory::PrivateDirectory;

/// The beginning of the name of a directory for incomplete files in an item.
pub(super) const PREFIX: &str = ".ibifs-copy-";

/// A directory for incomplete files.
#[derive(Debug)]
pub enum Staging {
    /// One in which no other user may write.
    Own(Directory),
    /// One that is made in an item when it is needed.
    InItem(Directory, Option<PrivateDirectory>),
}

/// In an item, if nothing else is known.
impl From<OwnedFd> for Staging {
    fn from(item: OwnedFd) -> Staging {
        Staging::InItem(item.into(), None)
    }
}

impl Staging {
    /// The directory.
    pub(super) fn directory(&mut self) -> Result<&Directory, Errno> {
        match self {
            Staging::Own(directory) => Ok(directory),
            Staging::InItem(_, Some(made)) => Ok(made),
            Staging::InItem(item, made) => Ok(made.insert(PrivateDirectory::make(item, PREFIX)?)),
        }
    }

    /// Returns whether this is the path of the directory in the item.
    pub(super) fn is_at(&self, path: &[u8]) -> bool {
        matches!(self, Staging::InItem(_, Some(made)) if made.name().as_bytes() == path)
    }

    /// Removes the directory from the item.
    pub(super) fn remove(&mut self) -> Result<(), Errno> {
        match self {
            Staging::InItem(_, made) => made.take().map_or(Ok(()), PrivateDirectory::close),
            Staging::Own(_) => Ok(()),
        }
    }
}
