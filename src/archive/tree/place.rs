//! The places of things in a store, and the errors of operations on them.

use std::path::PathBuf;

use rustix::io::Errno;

use crate::archive::owner::Owner;
use crate::formats::item::Names;
use ibi::message::{Localize, Message};
use ibi::{Ibip, Rep, display_message, message};

use super::Action;

/// File name of an item's sidecar.
pub const SIDECAR: &str = ".ibi";
/// File name of the metadata text of an item whose metadata are not an item themselves.
pub const METADATA_TEXT: &str = ".ibi.metadata";

/// A failed operation on the store's directories: the action, the path, and the system's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeError {
    action: Action,
    path: String,
    errno: Errno,
}

impl TreeError {
    /// The error of `action` on a path.
    pub fn new(action: Action, path: &str, errno: Errno) -> TreeError {
        TreeError {
            action,
            path: path.to_owned(),
            errno,
        }
    }

    /// The system's error number.
    pub fn errno(&self) -> Errno {
        self.errno
    }

    /// The path of a store that this user may not open.
    pub fn closed_store(&self) -> Option<PathBuf> {
        let is_closed = self.action == Action::OpenStore && self.errno == Errno::ACCESS;
        is_closed.then(|| PathBuf::from(&self.path))
    }
}

impl Localize for TreeError {
    fn message(&self) -> Message {
        let (action, path) = (self.action, &self.path);
        let error = std::io::Error::from(self.errno);
        message!("cannot {action} '{path}': {error}", action, path, error)
    }
}

display_message!(TreeError);

impl std::error::Error for TreeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.errno)
    }
}

pub(super) fn failed<'a>(action: Action, path: &'a str) -> impl FnOnce(Errno) -> TreeError + 'a {
    move |errno| TreeError::new(action, path, errno)
}

/// The place of an item below the store: `col/<rep>` when it has a rep, else `ibip/<ibip>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(String);

impl Place {
    /// The place of the item with these names.
    pub fn of(names: &Names) -> Place {
        match (names.rep(), names.ibip()) {
            (Some(rep), _) => Place::of_rep(rep),
            (None, Some(ibip)) => Place::of_ibip(ibip),
            (None, None) => Place(String::new()),
        }
    }

    /// The places that an item may be known by, one for each of its names.
    pub fn all_of(names: &Names) -> impl Iterator<Item = Place> {
        let of_rep = names.rep().map(Place::of_rep);
        of_rep.into_iter().chain(names.ibip().map(Place::of_ibip))
    }

    /// The place of an item known by its rep.
    pub fn of_rep(rep: &Rep) -> Place {
        Place(format!("col/{}", rep.as_str()))
    }

    /// The place of an item known by an IBIp alone.
    pub fn of_ibip(ibip: &Ibip) -> Place {
        Place(format!("ibip/{}", ibip.as_str()))
    }

    /// The path relative to the store.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory of the place, relative to the store.
    pub fn parent(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(parent, _)| parent)
    }

    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(_, name)| name)
    }
}

/// Owner and mode with which a directory is made.
#[derive(Clone, Copy, Debug)]
pub struct Creator {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Permission bits asked for.
    pub mode: u32,
    /// Permission bits that are removed, unless a default ACL applies.
    pub umask: u32,
}

/// The owner of a sidecar that replaces another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The owner of the previous one, or the owner of the item where it had none.
    Same,
    /// To a user.
    User {
        /// User number.
        uid: u32,
        /// Group number.
        gid: u32,
    },
    /// To a user who has not written what it said before: marked with [`STRANGERS`].
    Marked {
        /// User number.
        uid: u32,
        /// Group number.
        gid: u32,
    },
    /// The previous one is lost, and its owner with it. The new one belongs to the owner of the item; where
    /// other users may write in the item as well, it is marked with [`STRANGERS`].
    Unknown,
}

/// The permission bit of a sidecar for which its owner is not responsible: it came from another Archive over
/// the network, another user has written it, or its owner was lost. The bit has no other meaning on a file.
pub const STRANGERS: u32 = 0o1000;

/// The permission bits of a sidecar that does not speak for its owner: others may write it, or have done so.
pub const NOT_OWNERS: u32 = STRANGERS | 0o022;

/// The contents of a new item beside its sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Nothing: the caller fills it.
    Empty,
    /// `doc/`, which holds an item's own files by convention.
    WithDoc,
}

impl Owner {
    /// The two numbers.
    pub(super) fn ids(self) -> (u32, u32) {
        (self.uid, self.gid)
    }
}

/// The two areas of the store that hold items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// `col/`, items with a rep, four levels deep.
    Col,
    /// `ibip/`, items known by an IBIp alone, two levels deep.
    Ibip,
}

impl Area {
    /// The directory's name in the store.
    pub fn name(self) -> &'static str {
        match self {
            Area::Col => "col",
            Area::Ibip => "ibip",
        }
    }

    /// Returns how many levels below it the items are.
    pub fn depth(self) -> usize {
        match self {
            Area::Col => 4,
            Area::Ibip => 2,
        }
    }
}
