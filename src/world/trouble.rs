//! The reasons why something cannot be shown. Only an Archive or a resolver that says so makes a name missing: trouble
//! is never ENOENT.

use std::fmt;

use ibi::message;
use ibi::message::{Localize, Message};
use rustix::io::Errno;

/// The reason why something cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// An Archive or a resolver says that it is not there, or a name is not an identifier.
    Missing,
    /// No server that may know was reached.
    Unreachable(String),
    /// Bytes were not delivered, or not those that were announced.
    Broken(String),
    /// The file has been changed at its Archive since it was opened or looked up.
    Changed,
    /// The Archive does not tell what is in an item.
    Unsupported(String),
    /// The links from Archive to Archive have no end.
    Loop,
    /// The limit of the cache is too low, or its disk is full.
    Full,
    /// It is a directory whose entries are not known.
    Unlisted,
    /// It is not a directory.
    NotDirectory,
    /// It is a directory.
    IsDirectory,
    /// The operation is not possible on this file.
    Invalid,
    /// A signal interrupted the process that waited.
    Interrupted,
}

impl Trouble {
    /// The errno for a process, see ibifs-world(1), "ERRORS".
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Trouble::Missing => Errno::NOENT,
            Trouble::Unreachable(_) => Errno::HOSTUNREACH,
            Trouble::Broken(_) => Errno::IO,
            Trouble::Changed => Errno::STALE,
            Trouble::Unsupported(_) => Errno::OPNOTSUPP,
            Trouble::Loop => Errno::LOOP,
            Trouble::Full => Errno::NOSPC,
            Trouble::Unlisted => Errno::ACCESS,
            Trouble::NotDirectory => Errno::NOTDIR,
            Trouble::IsDirectory => Errno::ISDIR,
            Trouble::Invalid => Errno::INVAL,
            Trouble::Interrupted => Errno::INTR,
        }
    }
}

impl Localize for Trouble {
    fn message(&self) -> Message {
        match self {
            Trouble::Unreachable(what) | Trouble::Broken(what) | Trouble::Unsupported(what) => {
                Message::foreign(what.as_str())
            }
            Trouble::Missing => message!("it does not exist"),
            Trouble::Changed => message!("it has been changed at its Archive"),
            Trouble::Loop => message!("the links have no end"),
            Trouble::Full => message!("the cache is full"),
            Trouble::Unlisted => message!("its entries are not known"),
            Trouble::NotDirectory => message!("it is not a directory"),
            Trouble::IsDirectory => message!("it is a directory"),
            Trouble::Invalid => message!("the operation is not possible"),
            Trouble::Interrupted => message!("a signal interrupted it"),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_thing_does_not_exist() {
        let why = || "x".to_owned();
        for (trouble, errno) in [
            (Trouble::Missing, Errno::NOENT),
            (Trouble::Unreachable(why()), Errno::HOSTUNREACH),
            (Trouble::Broken(why()), Errno::IO),
            (Trouble::Changed, Errno::STALE),
            (Trouble::Unsupported(why()), Errno::OPNOTSUPP),
            (Trouble::Loop, Errno::LOOP),
            (Trouble::Full, Errno::NOSPC),
            (Trouble::Unlisted, Errno::ACCESS),
            (Trouble::NotDirectory, Errno::NOTDIR),
            (Trouble::IsDirectory, Errno::ISDIR),
            (Trouble::Invalid, Errno::INVAL),
            (Trouble::Interrupted, Errno::INTR),
        ] {
            assert_eq!(trouble.errno(), errno, "{trouble}");
        }
    }
}
