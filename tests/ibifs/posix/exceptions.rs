//! The differences between an item and the native filesystem: the rows, the difference, and the sentence of the
//! manual. Nothing else may differ, and these may differ in this way only.

use super::places::{IBIP_TREE, WITHOUT_PASSTHROUGH};

/// A documented difference.
#[derive(Debug)]
pub struct Exception {
    /// A text that the names of its rows contain.
    pub rows: &'static str,
    /// The one place where it is met, or all.
    pub place: Option<&'static str>,
    pub difference: Difference,
    /// The sentence of `man/ibifs-tree.7`, with the line ends and macros taken out.
    pub manual: &'static str,
}

/// The ways in which a row may differ.
#[derive(Debug)]
pub enum Difference {
    /// The first step that answers otherwise, and what is answered on the mount; what comes after
    /// it follows from it.
    Answer(&'static str, &'static str),
    /// The step is refused natively in this way, and may succeed on the mount.
    Allows(&'static str, &'static str),
    /// These times of its files may stay as they were.
    Times(&'static str),
}

use Difference::{Allows, Answer, Times};

pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        rows: "a file with no name",
        place: None,
        difference: Answer("O_TMPFILE", "EOPNOTSUPP"),
        manual: "files without a name",
    },
    Exception {
        rows: "fallocate COLLAPSE of",
        place: None,
        difference: Answer("COLLAPSE", "EOPNOTSUPP"),
        manual: "ranges cut out of a file and put into one",
    },
    Exception {
        rows: "fallocate INSERT of",
        place: None,
        difference: Answer("INSERT", "EOPNOTSUPP"),
        manual: "ranges cut out of a file and put into one",
    },
    Exception {
        rows: "statx tells the time of birth",
        place: None,
        difference: Answer("statx f birth", "0"),
        manual: "time of birth",
    },
    Exception {
        rows: "a fifo carries bytes",
        place: None,
        difference: Times("amc"),
        manual: "times of a FIFO",
    },
    Exception {
        rows: "an opened fifo where nothing may be written",
        place: None,
        difference: Times("amc"),
        manual: "times of a FIFO",
    },
    Exception {
        rows: "two mappings are one",
        place: Some(WITHOUT_PASSTHROUGH),
        difference: Times("amc"),
        manual: "written through a shared mapping",
    },
    Exception {
        rows: "a mapping at an offset",
        place: Some(WITHOUT_PASSTHROUGH),
        difference: Times("mc"),
        manual: "written through a shared mapping",
    },
    Exception {
        rows: "direct I/O of",
        place: Some(WITHOUT_PASSTHROUGH),
        difference: Allows("direct-", "EINVAL"),
        manual: "of any length at any offset",
    },
    Exception {
        rows: "link",
        place: Some(IBIP_TREE),
        difference: Times("a"),
        manual: "reads the link",
    },
    Exception {
        rows: "lchown does not",
        place: Some(IBIP_TREE),
        difference: Times("a"),
        manual: "reads the link",
    },
    Exception {
        rows: "a listing tells",
        place: Some(IBIP_TREE),
        difference: Times("a"),
        manual: "reads the link",
    },
    Exception {
        rows: "a listing tells inode numbers",
        place: Some(IBIP_TREE),
        difference: Answer("listed-inode", "1 wrong"),
        manual: "another inode number than .Xr stat 2 for a directory",
    },
    Exception {
        rows: "a handle opens its file",
        place: Some(IBIP_TREE),
        difference: Times("a"),
        manual: "reads the link",
    },
    Exception {
        rows: "where nothing may be written",
        place: None,
        difference: Times("a"),
        manual: "time of access in the store",
    },
    Exception {
        rows: "",
        place: Some(WITHOUT_PASSTHROUGH),
        difference: Times("a"),
        manual: "time of access",
    },
];
