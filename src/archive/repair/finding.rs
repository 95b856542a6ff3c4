//! The outcomes of damaged and lost files: words for scripts and sentences for people.

use crate::archive::finding::{Severity, findings, with_detail};
use ibi::message::Message;

findings! {
    /// The outcome of a damaged or lost file.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum RepairCode {
        Mended(from: String) "mended" Notice
            "has the recorded content again, from {from}"
        BroughtBack(from: String) "brought-back" Notice
            "the item was lost, and is here again, from {from}"
        WrongRecord "wrong-record" Error
            "all copies that were asked are like the file here, so the recorded digest is the wrong one; nothing is changed; accept the file with 'ibifs scrub --accept'"
        NoCopy "no-copy" Error
            "no place that was asked has the recorded content, and nothing is changed; name another place with --from"
        NotReplaced(why: Message) "not-replaced" Error
            "is left as it is: {why}"
        LostItem "lost-item" Error
            "the item is missing, though it was not removed; name a place that has it with --from, copy it from another Archive with 'ibifs copy', or restore it from a backup"
    }
}

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairFinding {
    /// The outcome.
    pub code: RepairCode,
    /// The place of the item, relative to the store.
    pub item: String,
    /// The path of the file below the item; empty for the item itself.
    pub path: Vec<u8>,
    /// Where the damaged file is kept, relative to the store.
    pub kept: Option<Vec<u8>>,
    /// The place from which it was mended, as others know it: an Archive, or a backup of one.
    pub source: Option<String>,
    /// The content that the places have instead.
    pub detail: Option<Message>,
}

impl RepairFinding {
    /// A sentence: what became of it, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(&self.code, self.detail.as_ref())
    }

    /// The place from which it was mended, by the name that the user called it.
    #[must_use]
    pub fn from(&self) -> Option<&str> {
        match &self.code {
            RepairCode::Mended(from) | RepairCode::BroughtBack(from) => Some(from),
            _ => None,
        }
    }

    /// Whether it is damaged or lost still.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.code.severity() == Severity::Error
    }
}
