//! Transparency logs as C2SP has them: signed notes, checkpoints, tiles, and proofs that an entry is in a log.
//!
//! - [`note`]: a text with signatures (signed-note), and the keys that make and check them.
//! - [`checkpoint`]: the size and root hash of a log at a time (tlog-checkpoint), and the cosignatures of witnesses.
//! - [`merkle`]: the tree of hashes of RFC 6962, and proofs in it.
//! - [`tile`]: the files in which a log is kept (tlog-tiles).
//! - [`proof`]: a proof that an entry is in a log, which can be checked offline (tlog-proof).
//! - [`policy`]: the logs and witnesses that are trusted (tlog-policy).
//! - [`witness`]: the request to a witness (tlog-witness).
//!
//! No input or output: files are read and written elsewhere.

pub mod checkpoint;
pub mod merkle;
pub mod note;
pub mod policy;
pub mod proof;
pub mod tile;
pub mod witness;

use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The reason for which a text of a log is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// The line of a text is not what its format has there.
    Line {
        /// The number of the line, from 1 on.
        line: usize,
        /// The thing that the format has there.
        expected: Expected,
    },
    /// A key is not in the form `NAME+HASH+KEY`, or of an unknown kind.
    Key,
    /// No signature of a text is one of this key.
    NotSigned {
        /// The name of the key.
        name: String,
    },
    /// A signature by this key does not belong to the text.
    Forged {
        /// The name of the key.
        name: String,
    },
    /// A policy names no log.
    NoLog,
    /// Another log was expected.
    Origin {
        /// The origin of the checkpoint.
        found: String,
    },
    /// The hashes do not lead from the entry to the checkpoint.
    NotIncluded,
    /// The witnesses that have cosigned the checkpoint are too few for the policy.
    Witnesses {
        /// The number of those that have.
        found: usize,
        /// The name of the quorum.
        wanted: String,
    },
}

impl LogError {
    fn line(line: usize, expected: Expected) -> LogError {
        LogError::Line { line, expected }
    }

    /// The same error in a text that follows so many lines.
    fn after(self, before: usize) -> LogError {
        match self {
            LogError::Line { line, expected } => LogError::line(line + before, expected),
            error => error,
        }
    }
}

/// The content that a line should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The first line of a proof.
    Magic,
    /// The number of an entry.
    Index,
    /// The name of a log.
    Origin,
    /// The number of entries of a log.
    Size,
    /// A hash of 32 bytes in Base64.
    Hash,
    /// Text that ends in an empty line.
    Text,
    /// A signature.
    Signature,
    /// A line of a policy.
    Policy,
    /// A key that no line before has.
    Key,
    /// A name that no line before has.
    NewName,
    /// The name of a witness or group of a line before, which is in no group yet.
    Member,
    /// A number of members, `any` or `all`.
    Threshold,
    /// One quorum, which comes last.
    Quorum,
    /// The size of the checkpoint that a witness cosigned last.
    OldSize,
    /// The key of a log that no line before has.
    LogKey,
    /// No further key.
    End,
}

impl Localize for Expected {
    fn message(&self) -> Message {
        match self {
            Expected::Magic => message!("the line '{magic}'", magic = proof::MAGIC),
            Expected::Index => message!("'index' and a number"),
            Expected::Origin => message!("the name of a log"),
            Expected::Size => message!("the number of entries of a log"),
            Expected::Hash => message!("a hash of 32 bytes in Base64"),
            Expected::Text => message!("text before an empty line"),
            Expected::Signature => message!("a signature"),
            Expected::Policy => {
                message!("'log', 'witness', 'group' or 'quorum', and what belongs to it")
            }
            Expected::Key => message!("a key that no line before has"),
            Expected::NewName => message!("a name that no line before has"),
            Expected::Member => {
                message!(
                    "the name of a witness or group of a line before, which is in no group yet"
                )
            }
            Expected::Threshold => message!("a number of members, 'any' or 'all'"),
            Expected::Quorum => message!("one line 'quorum NAME'"),
            Expected::OldSize => message!("'old' and a number, before hashes and an empty line"),
            Expected::LogKey => message!(
                "the key of a log for Ed25519 in the form NAME+HASH+KEY, which no line before has"
            ),
            Expected::End => message!("no more than {most} keys", most = witness::MOST_LOGS),
        }
    }
}

impl Localize for LogError {
    fn message(&self) -> Message {
        match self {
            LogError::Line { line, expected } => {
                message!("line {line}: expected {expected}", line, expected)
            }
            LogError::Key => message!("not a key for Ed25519 in the form NAME+HASH+KEY"),
            LogError::NotSigned { name } => {
                message!("not signed by the key of '{name}' that was given", name)
            }
            LogError::Forged { name } => message!(
                "the signature of '{name}' does not belong to the text: one of them was changed",
                name
            ),
            LogError::NoLog => message!("the policy names no log"),
            LogError::Origin { found } => message!(
                "it is of the log '{found}', and the key that was given is that of another one",
                found
            ),
            LogError::NotIncluded => {
                message!("the hashes do not lead from the entry to the checkpoint")
            }
            LogError::Witnesses { found, wanted } => message!(
                "{found} witnesses of the policy have cosigned the checkpoint, which is no quorum '{wanted}'",
                found,
                wanted
            ),
        }
    }
}

display_message!(LogError);

impl Error for LogError {}

/// The bytes of a text in Base64 in the one form in which they are written.
fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// A number in the one form in which it is written.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    (is_plain && is_short).then(|| text.parse().ok()).flatten()
}
