//! The ways in which the files of a mount are read and written: the words of its attribute `user.ibi.data`, which
//! `ibifs status` reads from another process, and their sentences.

use ibi::message;
use ibi::message::{Localize, Message};

/// The way in which files are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// By the kernel.
    Kernel,
    /// By the kernel, unless the first file that is opened cannot be registered.
    Untried,
    /// By the daemon.
    Daemon(Reason),
}

/// The reason why files are read and written by the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The mount was made with `-o passthrough=no`.
    Option,
    /// The kernel is older than Linux 6.9.
    OldKernel,
    /// The daemon does not have CAP_SYS_ADMIN.
    NoCapability,
    /// The filesystem of the store is stacked on others.
    Stacked,
    /// The filesystem of the store does not support it.
    Unsupported,
    /// The kernel refused the first file for another reason, with this error number.
    System(i32),
}

impl DataPath {
    /// The value of the attribute: `passthrough`, `untried`, or `daemon` and a reason.
    pub(super) fn to_words(self) -> String {
        match self {
            DataPath::Kernel => "passthrough".to_owned(),
            DataPath::Untried => "untried".to_owned(),
            DataPath::Daemon(Reason::System(number)) => format!("daemon error {number}"),
            DataPath::Daemon(reason) => format!("daemon {}", reason.word()),
        }
    }

    /// Reads the value of the attribute; None for a value of another version.
    #[must_use]
    pub fn parse(words: &str) -> Option<DataPath> {
        match words {
            "passthrough" => return Some(DataPath::Kernel),
            "untried" => return Some(DataPath::Untried),
            _ => {}
        }
        let reason = words.strip_prefix("daemon ")?;
        if let Some(number) = reason.strip_prefix("error ") {
            let number = number.parse().ok()?;
            return Some(DataPath::Daemon(Reason::System(number)));
        }
        let known = Reason::WORDS.iter().find(|known| known.word() == reason);
        known.map(|reason| DataPath::Daemon(*reason))
    }

    /// The reason, if the daemon reads and writes files.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            DataPath::Daemon(reason) => Some(reason),
            DataPath::Kernel | DataPath::Untried => None,
        }
    }
}

impl Reason {
    /// The reasons that have a word of their own.
    const WORDS: [Reason; 5] = [
        Reason::Option,
        Reason::OldKernel,
        Reason::NoCapability,
        Reason::Stacked,
        Reason::Unsupported,
    ];

    /// The reason for an error of the kernel when a file is registered.
    pub(super) fn of(error: &std::io::Error) -> Reason {
        match error.raw_os_error() {
            Some(libc::EPERM) => Reason::NoCapability,
            Some(libc::ELOOP) => Reason::Stacked,
            Some(libc::EOPNOTSUPP) => Reason::Unsupported,
            other => Reason::System(other.unwrap_or(libc::EIO)),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Reason::Option => "option",
            Reason::OldKernel => "old-kernel",
            Reason::NoCapability => "no-capability",
            Reason::Stacked => "stacked",
            Reason::Unsupported => "unsupported",
            Reason::System(_) => "error",
        }
    }
}

impl Localize for DataPath {
    fn message(&self) -> Message {
        match self {
            DataPath::Kernel => {
                message!("the kernel reads and writes files itself (FUSE passthrough)")
            }
            DataPath::Untried => message!("no file has been opened yet"),
            DataPath::Daemon(reason) => {
                message!("the daemon reads and writes files: {reason}", reason)
            }
        }
    }
}

impl Localize for Reason {
    fn message(&self) -> Message {
        match self {
            Reason::Option => message!("requested with -o passthrough=no"),
            Reason::OldKernel => message!("this kernel has no FUSE passthrough (Linux 6.9)"),
            Reason::NoCapability => message!("FUSE passthrough requires CAP_SYS_ADMIN"),
            Reason::Stacked => {
                message!("the store is on a filesystem that is itself stacked on others")
            }
            Reason::Unsupported => message!("the store's filesystem does not support passthrough"),
            Reason::System(number) => std::io::Error::from_raw_os_error(*number).message(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        let of = |number| DataPath::Daemon(Reason::of(&std::io::Error::from_raw_os_error(number)));
        for (path, words) in [
            (DataPath::Kernel, "passthrough"),
            (DataPath::Untried, "untried"),
            (DataPath::Daemon(Reason::Option), "daemon option"),
            (DataPath::Daemon(Reason::OldKernel), "daemon old-kernel"),
            (of(libc::EPERM), "daemon no-capability"),
            (of(libc::ELOOP), "daemon stacked"),
            (of(libc::EOPNOTSUPP), "daemon unsupported"),
            (of(libc::EIO), "daemon error 5"),
        ] {
            assert_eq!(path.to_words(), words);
            assert_eq!(DataPath::parse(words), Some(path));
        }
        for words in [
            "",
            "daemon",
            "daemon x",
            "daemon error",
            "daemon error x",
            "Kernel",
        ] {
            assert_eq!(DataPath::parse(words), None, "{words}");
        }
    }
}
