//! The parts of an item that are not sent over HTTP, counted so that they can be reported.

use rustix::fs::Stat;

use crate::archive::backup::{SET_IDS, UserAttributes};
use crate::os::access_lists;
use ibi::message::Message;
use ibi::plural;

/// The numbers of an item's entries that have something that is not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotSent {
    /// Entries with another owner or group than the item's directory.
    pub owners: u64,
    /// Entries with an access control list.
    pub access_lists: u64,
    /// Entries with a set-user-ID or set-group-ID bit.
    pub set_ids: u64,
    /// Entries with extended attributes that are not a user's.
    pub attributes: u64,
    /// The way by which the item went.
    pub way: Way,
}

/// The way by which an item went to another Archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Between stores of one machine, with all that it has.
    #[default]
    Local,
    /// It was sent over HTTP.
    Sent,
    /// It was fetched over HTTP from an Archive, which does not say what it leaves out.
    Fetched,
}

impl NotSent {
    /// Counts what an entry of an item has, beside the state of the item's directory.
    pub(super) fn count(&mut self, item: &Stat, entry: &Stat, attributes: &UserAttributes) {
        let is_other = (item.st_uid, item.st_gid) != (entry.st_uid, entry.st_gid);
        let is = |name: &[u8], begin: &[u8]| name.starts_with(begin);
        let lists = attributes.iter().any(|(name, _)| is(name, b"system."));
        // The label of a security module is given to files by the system of each machine.
        let others = attributes.iter().any(|(name, _)| {
            !is(name, b"system.") && !is(name, b"user.") && name != b"security.selinux"
        });
        self.owners += u64::from(is_other);
        self.access_lists += u64::from(lists);
        self.set_ids += u64::from(entry.st_mode & SET_IDS != 0);
        self.attributes += u64::from(others);
    }

    /// Returns what is not sent, if an entry has any of it.
    #[must_use]
    pub fn sentence(&self) -> Option<Message> {
        let owners = plural!(
            "owner or group of {count} entry",
            "owner or group of {count} entries",
            count = self.owners
        );
        let lists = plural!(
            "{count} access control list",
            "access control lists of {count} entries",
            count = self.access_lists
        );
        let set_ids = plural!(
            "set-user-ID or set-group-ID bit of {count} entry",
            "set-user-ID or set-group-ID bits of {count} entries",
            count = self.set_ids
        );
        let attributes = plural!(
            "extended attributes other than 'user.' of {count} entry",
            "extended attributes other than 'user.' of {count} entries",
            count = self.attributes
        );
        let counts = [
            (self.owners, owners),
            (self.access_lists, lists),
            (self.set_ids, set_ids),
            (self.attributes, attributes),
        ];
        let some = counts.into_iter().filter(|(count, _)| *count > 0);
        Message::joined(some.map(|(_, what)| what).collect())
    }
}

/// The mode of an entry without its access control list.
pub(super) fn mode_without_list(mode: u32, attributes: &UserAttributes) -> u32 {
    let list = attributes
        .iter()
        .find(|(name, _)| name == access_lists::ATTRIBUTE.as_bytes());
    list.map_or(mode, |(_, list)| access_lists::mode_without(list, mode))
}
