//! The operations of a user, as plain data: an operation can be printed, performed by the model and by a real process,
//! and left out.

use super::tree::{View, Who};

/// The place of an operation.
#[derive(Clone, Debug)]
pub enum Where {
    /// An item by its number, with what stands behind its name, and a path below that.
    In {
        item: usize,
        view: View,
        tail: &'static str,
        path: String,
        /// Whether the item's name is given in capitals.
        shout: bool,
    },
    /// A name beside an item.
    Beside {
        item: usize,
        view: View,
        name: String,
    },
    /// A path below the mount point.
    At(String),
    /// A path below the directory in which the client is.
    Here(String),
}

/// The target of a link, or the value of an attribute.
#[derive(Clone, Debug)]
pub enum Text {
    Plain(String),
    /// The path of an item in a tree, with something before and behind it.
    Item {
        before: String,
        item: usize,
        view: View,
        behind: String,
    },
}

/// Bytes that show where in the file they belong.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub letter: u8,
    pub length: usize,
}

impl Data {
    pub fn bytes(self) -> Vec<u8> {
        let byte = |index: usize| self.letter.wrapping_add((index * 7) as u8);
        (0..self.length).map(byte).collect()
    }
}

/// A change of a sidecar.
#[derive(Clone, Debug)]
pub enum Edit {
    Relation(&'static str, usize),
    Text(&'static str, String),
    Unset(&'static str),
    /// The original is here, or in the other Archive.
    Service {
        is_ours: bool,
    },
    /// All the names that the item has where it comes from.
    Names,
}

/// The ways in which a sidecar is written.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Over the old one.
    Over,
    /// Beside it, and renamed.
    Beside,
}

/// The operations.
#[derive(Clone, Debug)]
pub enum Act {
    Stat(Where),
    List(Where),
    ReadLink(Where),
    Enter(Where),
    Get(Where),
    Put {
        at: Where,
        flags: i32,
        mode: u32,
        data: Data,
    },
    Open {
        slot: usize,
        at: Where,
        flags: i32,
        mode: u32,
    },
    Read {
        slot: usize,
        offset: u64,
        length: usize,
    },
    Write {
        slot: usize,
        offset: Option<u64>,
        data: Data,
    },
    Cut {
        slot: usize,
        length: u64,
    },
    StatOpen {
        slot: usize,
    },
    Sync {
        slot: usize,
    },
    Close {
        slot: usize,
    },
    Truncate {
        at: Where,
        length: u64,
    },
    MakeDirectory {
        at: Where,
        mode: u32,
    },
    RemoveDirectory(Where),
    Remove(Where),
    MakeLink {
        target: Text,
        at: Where,
    },
    Link {
        from: Where,
        to: Where,
    },
    Rename {
        from: Where,
        to: Where,
        flags: u32,
    },
    ChangeMode {
        at: Where,
        mode: u32,
    },
    ChangeOwner {
        at: Where,
        owner: (u32, u32),
    },
    SetAttribute {
        at: Where,
        name: &'static str,
        value: Text,
        flags: i32,
    },
    GetAttribute {
        at: Where,
        name: &'static str,
    },
    ListAttributes(Where),
    RemoveAttribute {
        at: Where,
        name: &'static str,
    },
    /// mkdir .mint/LABEL and `doc` in it; if asked to, that twice.
    Mint {
        item: usize,
        label: String,
        with_doc: bool,
    },
    /// mkdir of a modifier.
    MintRelated {
        item: usize,
        at: Where,
    },
    /// mkdir of an item of the other Archive, or of a removed one, and of what is above it.
    Bring {
        item: usize,
        view: View,
    },
    /// rm -r.
    RemoveItem {
        item: usize,
        view: View,
    },
    Sidecar {
        item: usize,
        view: View,
        how: How,
        edits: Vec<Edit>,
    },
    /// rm .ibi
    RemoveSidecar {
        item: usize,
        view: View,
    },
    Remount {
        kill: bool,
    },
}

/// An operation of a client.
#[derive(Clone, Debug)]
pub struct Operation {
    pub client: usize,
    pub who: Who,
    pub act: Act,
}

/// The report of `stat`; None is not compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub kind: char,
    pub size: Option<u64>,
    /// Mode, user, group, links.
    pub owned: Option<(u32, u32, u32, u64)>,
}

/// The result of an operation.
#[derive(Clone, PartialEq)]
pub enum Answer {
    Done,
    Refused(i32),
    /// So many bytes; where the descriptor is then.
    Written {
        count: u64,
        position: u64,
    },
    Bytes(Vec<u8>),
    Text(String),
    Names(Vec<(String, char)>),
    Seen(Seen),
    /// A new item's rep and IBIp, which only the real one knows.
    Minted(String, String),
    /// A document that names these.
    Document(Vec<String>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Refused(errno) => f.write_str(&crate::posix::system::errno_name(*errno)),
            Answer::Written { count, position } => write!(f, "{count} bytes, at {position} now"),
            Answer::Bytes(bytes) if bytes.len() > 400 => {
                let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
                write!(f, "{} bytes, sum {sum}, {:?}...", bytes.len(), &bytes[..20])
            }
            Answer::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Answer::Text(text) => write!(f, "{text:?}"),
            Answer::Names(names) => write!(f, "{names:?}"),
            Answer::Seen(seen) => write!(f, "{seen:?}"),
            Answer::Minted(rep, ibip) => write!(f, "minted {rep} {ibip}"),
            Answer::Document(names) => write!(f, "a document about {names:?}"),
        }
    }
}

/// In the place of an errno: either will do.
pub const GONE_OR_DENIED: i32 = -2;

impl Answer {
    /// Whether a real answer is what was expected.
    pub fn is_met_by(&self, real: &Answer) -> bool {
        match (self, real) {
            (Answer::Minted(..), Answer::Minted(..)) => true,
            (Answer::Refused(GONE_OR_DENIED), Answer::Refused(errno)) => {
                matches!(
                    *errno,
                    libc::ENOENT | libc::EACCES | libc::EPERM | libc::EXDEV
                )
            }
            (Answer::Document(names), Answer::Bytes(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                text.starts_with("<?xml") && names.iter().all(|name| text.contains(name.as_str()))
            }
            (Answer::Seen(expected), Answer::Seen(real)) => {
                expected.kind == real.kind
                    && (expected.size.is_none() || expected.size == real.size)
                    && (expected.owned.is_none() || expected.owned == real.owned)
            }
            (expected, real) => expected == real,
        }
    }
}
