//! Why an item was not copied or handed over: one table of codes, which ibifs-copy(1) lists as well.

use std::fmt;

use crate::formats::item::Names;
use ibi::Timestamp;

/// Why an item was not copied or handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It was removed here, and only its name is left.
    RemovedHere,
    /// The destination holds the original.
    OriginalThere,
    /// It was removed at the destination.
    RemovedThere(Option<Box<Timestamp>>),
    /// It is the item of the Archive's own service.
    Service,
    /// Another Archive holds the original.
    NotOriginal(Option<Box<Names>>),
    /// It is being handed over to another Archive.
    GivenTo(Box<Names>),
    /// A file is damaged here, by what a scrub has recorded of it.
    Damaged(String),
    /// Something in it cannot be read, or changed all the while.
    Unread(String),
    /// It was changed here while it was handed over.
    Changed,
    /// What arrived is not what was sent.
    Differs(String),
    /// The destination does not take it.
    NotTaken(String),
    /// Something in it cannot be made there.
    NotCopied(String),
    /// The original is held here already.
    OriginalHere,
    /// The copy's sidecar names another Archive as the original's, or none.
    OtherArchive(Option<Box<Names>>),
    /// The other Archive knows nothing of it.
    UnknownThere(Box<Names>),
    /// The other Archive holds the original.
    StillOriginal(Box<Names>),
    /// The other Archive holds a copy, and no record of its removal.
    CopyThere(Box<Names>),
    /// The original went on to another Archive.
    WentOn(Box<Names>),
}

impl Skip {
    /// The stable word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Skip::RemovedHere => "removed-here",
            Skip::OriginalThere => "original-there",
            Skip::RemovedThere(_) => "removed-there",
            Skip::Service => "service",
            Skip::NotOriginal(_) => "not-original",
            Skip::GivenTo(_) => "given",
            Skip::Damaged(_) => "damaged",
            Skip::Unread(_) => "unread",
            Skip::Changed => "changed",
            Skip::Differs(_) => "differs",
            Skip::NotTaken(_) => "not-taken",
            Skip::NotCopied(_) => "not-copied",
            Skip::OriginalHere => "original-here",
            Skip::OtherArchive(_) => "other-archive",
            Skip::UnknownThere(_) => "unknown-there",
            Skip::StillOriginal(_) => "still-original",
            Skip::CopyThere(_) => "copy-there",
            Skip::WentOn(_) => "went-on",
        }
    }

    /// What is said of it to the other Archive: the reason alone, where that has one of its own.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Skip::NotTaken(why) => why.clone(),
            other => other.to_string(),
        }
    }

    /// Whether it is as it should be: nothing is wrong with the item or on the way.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        matches!(
            self,
            Skip::RemovedHere
                | Skip::OriginalThere
                | Skip::RemovedThere(_)
                | Skip::Service
                | Skip::NotOriginal(_)
                | Skip::OriginalHere
                | Skip::OtherArchive(_)
                | Skip::UnknownThere(_)
                | Skip::StillOriginal(_)
                | Skip::CopyThere(_)
                | Skip::WentOn(_)
        )
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::RemovedHere => f.write_str("it was removed here"),
            Skip::OriginalThere => f.write_str("the destination holds the original"),
            Skip::RemovedThere(None) => f.write_str(
                "it was removed at the destination; --bring-back copies it all the same",
            ),
            Skip::RemovedThere(Some(when)) => write!(
                f,
                "it was removed at the destination at {}; --bring-back copies it all the same",
                when.to_rfc3339()
            ),
            Skip::Service => {
                f.write_str("it is the item of the Archive's own service, which is nobody else's")
            }
            Skip::NotOriginal(Some(holder)) => {
                write!(f, "the original is held by the Archive {holder}")
            }
            Skip::NotOriginal(None) => f.write_str("it is not known here who holds the original"),
            Skip::GivenTo(other) => write!(
                f,
                "it is being handed over to the Archive {other}; finish that first"
            ),
            Skip::Damaged(path) => write!(
                f,
                "'{path}' is damaged here; see 'ibifs scrub', and put it back from a copy"
            ),
            Skip::Unread(what) => write!(f, "it cannot be read whole: {what}"),
            Skip::Changed => {
                f.write_str("it was changed here while it was handed over; try again when it rests")
            }
            Skip::Differs(path) => write!(f, "'{path}' is not there what it is here; try again"),
            Skip::NotTaken(why) => write!(f, "the destination does not take it: {why}"),
            Skip::NotCopied(what) => write!(f, "not all of it can be copied: {what}"),
            Skip::OriginalHere => f.write_str("the original is held here already"),
            Skip::OtherArchive(Some(holder)) => write!(
                f,
                "its sidecar names the Archive {holder} as the original's; claim it from that one"
            ),
            Skip::OtherArchive(None) => {
                f.write_str("its sidecar names no Archive that holds the original")
            }
            Skip::UnknownThere(other) => write!(
                f,
                "the Archive {other} knows nothing of it, and so has no record of its removal"
            ),
            Skip::StillOriginal(other) => write!(f, "the Archive {other} still holds the original"),
            Skip::CopyThere(other) => write!(
                f,
                "the Archive {other} holds a copy of it, and no record of its removal"
            ),
            Skip::WentOn(holder) => write!(f, "the original went on to the Archive {holder}"),
        }
    }
}
