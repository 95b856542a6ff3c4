//! Findings of a scrub: words for scripts and sentences for people.

use std::collections::BTreeMap;

use crate::archive::finding::{Severity, findings, with_detail};
use crate::archive::tree::TreeError;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

findings! {
    /// A finding about a file or an item.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ScrubCode {
        Damaged "damaged" Error
            "has other content than before, though its time says that it was not written; restore it from a copy, or accept it with --accept"
        Lost "lost" Error
            "is missing, though it was not removed; restore it from a copy, or forget it with --accept"
        Unreadable "unreadable" Error
            "cannot be read"
        BrokenManifest "broken-manifest" Error
            "the manifest is damaged; correct it, or rebuild it from the files as they are with --accept"
        BrokenSeal "broken-seal" Error
            "is not what it was when it was sealed; restore its files from a copy, or let its owner end the seal with 'ibifs unseal'"
        Unsteady "unsteady" Warning
            "was written during each attempt; scrub the item again"
        NotIdentified "not-identified" Warning
            "has a format that the program has not answered for; scrub the item again"
        Changed "changed" Notice
            "has been written since"
        Missing "missing" Notice
            "has been removed since"
        New "new" Notice
            "has been added since"
    }
}

impl ScrubCode {
    /// Whether the finding is an error, not a mere difference.
    pub fn is_wrong(self) -> bool {
        self.severity() == Severity::Error
    }

    /// Whether a file was changed, removed or added, as is done.
    pub fn is_change(self) -> bool {
        matches!(
            self,
            ScrubCode::Changed | ScrubCode::Missing | ScrubCode::New
        )
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubFinding {
    /// The kind of finding.
    pub code: ScrubCode,
    /// The place of the item, relative to the store.
    pub item: String,
    /// The path of the file below the item; empty for the item itself.
    pub path: Vec<u8>,
    /// More about this case, if there is more to say.
    pub detail: Option<Message>,
    /// Whether the current content is recorded as right.
    pub accepted: bool,
}

impl ScrubFinding {
    /// Whether a file or a directory cannot be read.
    pub fn is_of_unread(&self) -> bool {
        self.code == ScrubCode::Unreadable
    }

    /// Whether the recorded digest of a file was altered, and not the file.
    pub fn is_of_altered_digest(&self) -> bool {
        self.code == ScrubCode::BrokenManifest && !self.path.is_empty()
    }

    /// A sentence: what is wrong, and what can be done.
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }
}

/// Counts of what a scrub has read and found.
#[derive(Clone, Debug, Default)]
pub struct ScrubTally {
    /// Items read.
    pub items: u64,
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Items recorded for the first time.
    pub recorded: u64,
    /// Files whose format was identified.
    pub identified: u64,
    /// Number of findings of each code.
    pub found: BTreeMap<ScrubCode, u64>,
    /// Whether there is an error that was not accepted.
    pub is_wrong: bool,
}

impl ScrubTally {
    pub(super) fn count(&mut self, finding: &ScrubFinding) {
        *self.found.entry(finding.code).or_default() += 1;
        self.is_wrong |= finding.code.is_wrong() && !finding.accepted;
    }
}

/// The reason why a scrub ends early.
#[derive(Debug)]
pub enum ScrubError {
    /// An operation on the store's directories failed.
    Tree(TreeError),
    /// Another scrub is running.
    Busy,
    /// A finding could not be reported.
    Report(std::io::Error),
}

impl Localize for ScrubError {
    fn message(&self) -> Message {
        match self {
            ScrubError::Tree(error) => error.message(),
            ScrubError::Busy => message!(
                "another scrub of this store is running; wait until it ends, or use --dry-run"
            ),
            ScrubError::Report(error) => message!("standard output: {error}", error),
        }
    }
}

display_message!(ScrubError);

impl std::error::Error for ScrubError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ScrubError::Tree(error) => Some(error),
            ScrubError::Busy => None,
            ScrubError::Report(error) => Some(error),
        }
    }
}

impl From<TreeError> for ScrubError {
    fn from(error: TreeError) -> ScrubError {
        ScrubError::Tree(error)
    }
}
