//! The reasons why something cannot be shown. Only an Archive or a resolver that says so makes a name missing: trouble
//! is never ENOENT.

use std::fmt;

use ibi::message;
use ibi::message::{Localize, Message};
use rustix::io::Errno;

/// The reason why something cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForeignError {
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
    /// The files of the item are withheld until a date.
    Withheld,
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

impl ForeignError {
    /// The errno for a process, see ibifs-world(1), "ERRORS".
    pub(crate) fn errno(&self) -> Errno {
        match self {
            ForeignError::Missing => Errno::NOENT,
            ForeignError::Unreachable(_) => Errno::HOSTUNREACH,
            ForeignError::Broken(_) => Errno::IO,
            ForeignError::Changed => Errno::STALE,
            ForeignError::Unsupported(_) => Errno::OPNOTSUPP,
            ForeignError::Loop => Errno::LOOP,
            ForeignError::Full => Errno::NOSPC,
            ForeignError::Withheld | ForeignError::Unlisted => Errno::ACCESS,
            ForeignError::NotDirectory => Errno::NOTDIR,
            ForeignError::IsDirectory => Errno::ISDIR,
            ForeignError::Invalid => Errno::INVAL,
            ForeignError::Interrupted => Errno::INTR,
        }
    }
}

impl Localize for ForeignError {
    fn message(&self) -> Message {
        match self {
            ForeignError::Unreachable(what)
            | ForeignError::Broken(what)
            | ForeignError::Unsupported(what) => Message::foreign(what.as_str()),
            ForeignError::Missing => message!("it does not exist"),
            ForeignError::Changed => message!("it has been changed at its Archive"),
            ForeignError::Loop => message!("the links have no end"),
            ForeignError::Full => message!("the cache is full"),
            ForeignError::Withheld => message!("the files of the item are withheld until a date"),
            ForeignError::Unlisted => message!("its entries are not known"),
            ForeignError::NotDirectory => message!("it is not a directory"),
            ForeignError::IsDirectory => message!("it is a directory"),
            ForeignError::Invalid => message!("the operation is not possible"),
            ForeignError::Interrupted => message!("a signal interrupted it"),
        }
    }
}

impl fmt::Display for ForeignError {
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
            (ForeignError::Missing, Errno::NOENT),
            (ForeignError::Unreachable(why()), Errno::HOSTUNREACH),
            (ForeignError::Broken(why()), Errno::IO),
            (ForeignError::Changed, Errno::STALE),
            (ForeignError::Unsupported(why()), Errno::OPNOTSUPP),
            (ForeignError::Loop, Errno::LOOP),
            (ForeignError::Full, Errno::NOSPC),
            (ForeignError::Withheld, Errno::ACCESS),
            (ForeignError::Unlisted, Errno::ACCESS),
            (ForeignError::NotDirectory, Errno::NOTDIR),
            (ForeignError::IsDirectory, Errno::ISDIR),
            (ForeignError::Invalid, Errno::INVAL),
            (ForeignError::Interrupted, Errno::INTR),
        ] {
            assert_eq!(trouble.errno(), errno, "{trouble}");
        }
    }
}
