//! Findings of an audit: words for scripts and sentences for people.

use crate::archive::finding::{findings, with_detail};
use ibi::message::Message;

findings! {
    /// The kind of a fault of a file, or of an item.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AuditCode {
        Damaged "damaged" Error
            "has other content than was recorded of it"
        Lost "lost" Error
            "is missing, though it was not removed"
        Differs "differs" Error
            "has not the same content in both places, and neither is damaged according to its record; bring the copy up to date with 'ibifs copy --verify'"
        WrongRecord "wrong-record" Error
            "both places have the same content, so the recorded digest is the wrong one; nothing is changed; accept the file with 'ibifs scrub --accept'"
        Unread "unread" Error
            "cannot be read"
        Gone "gone" Error
            "is not there; copy the item again with 'ibifs copy'"
        // The same, where it is the original.
        GoneOriginal "gone" Error
            "is not there; bring the item back with 'ibifs repair'"
        // The same, where the place is a backup.
        GoneFromBackup "gone" Error
            "is not there; make the backup again with 'ibifs backup'"
        Withdrawn "withdrawn" Notice
            "was withdrawn by its Archive; 'ibifs withdraw' does the same on the other side"
        Removed "removed" Notice
            "was removed by its Archive; 'ibifs remove' does the same on the other side, and 'ibifs claim' makes the copy the original"
        Older "older" Notice
            "was written, added or removed since the backup was made"
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    /// The kind of finding.
    pub code: AuditCode,
    /// The place where it is so; None for the store here.
    pub peer: Option<String>,
    /// The place of the item, relative to the store here.
    pub item: String,
    /// The path of the file below the item; empty for the item itself.
    pub path: Vec<u8>,
    /// More about this case.
    pub detail: Option<Message>,
}

impl AuditFinding {
    /// A sentence: what is wrong, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }
}

/// Counts of what an audit has compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditTally {
    /// The items that both places have, as far as they were to be compared.
    pub wanted: u64,
    /// Those that were.
    pub items: u64,
    /// Those that are the same in both places now.
    pub good: u64,
    /// The files here.
    pub files: u64,
    /// Their bytes, and those there as far as they are known.
    pub bytes: u64,
}
