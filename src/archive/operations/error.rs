//! What the Archive refuses and why, as sentences for people; the doors choose errno and status.

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::archive::store::StoreError;
use crate::archive::tree::{Tree, TreeError};
use crate::formats::item::{Names, SidecarError};
use ibi::ParseError;
use ibi::distributor::WaitTooLong;
use ibi::pairs::PairsError;

/// Who holds a store: the process that writes it, and where it has mounted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process number, where it could be read.
    pub pid: Option<u32>,
    /// Mount point, if the holder is a mount.
    pub mount_point: Option<PathBuf>,
}

/// Why the Archive did not do what it was asked.
#[derive(Debug)]
pub enum ArchiveError {
    /// The relation store failed.
    Store(StoreError),
    /// The directories failed.
    Tree(TreeError),
    /// An identifier could not be read or made.
    Ibi(ParseError),
    /// A store that this user may not enter.
    ClosedStore {
        /// Where it is.
        path: PathBuf,
    },
    /// The store directory is not a store.
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory of the new store is one already.
    IsAStore {
        /// The directory.
        path: PathBuf,
    },
    /// A backup that was interrupted.
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// `archive.ibi` cannot be read.
    Facts {
        /// What is wrong with it.
        what: String,
    },
    /// The store cannot be locked.
    Lock {
        /// What is wrong with the lock file.
        what: String,
    },
    /// Somebody else writes this store.
    Busy(Holder),
    /// The store was opened for reading.
    ReadOnly,
    /// No item of this name is held here.
    Unknown {
        /// The name.
        name: String,
    },
    /// There is no such relation.
    NoRelation {
        /// The item, and what was asked of it.
        what: String,
    },
    /// The item is here already.
    Exists(Box<Names>),
    /// The item has a relation of this kind already.
    HasOne {
        /// The item.
        names: Box<Names>,
        /// The relation, by its pair in the sidecar.
        kind: String,
        /// What it leads to.
        target: Box<Names>,
    },
    /// A date of this Archive's own name space that it has not handed out.
    NotMintedYet {
        /// The refused name.
        name: String,
    },
    /// A name that the user who claims it for an item could not make.
    MayNotName {
        /// The item.
        names: Box<Names>,
        /// The refused name.
        name: String,
    },
    /// An original of the own name space that is not known to have been minted here.
    NotMintedHere(Box<Names>),
    /// Another item has this alias.
    AliasTaken {
        /// The alias.
        alias: String,
        /// The item that has it.
        holder: Box<Names>,
    },
    /// An IBIp is no alias.
    NoAlias {
        /// The IBIp.
        alias: String,
    },
    /// The Archive service's own item cannot be removed or handed over.
    ServiceItem,
    /// The user may not change what the item says of itself.
    NotAllowed(Box<Names>),
    /// Neither end of the relation is an original of this Archive.
    NotOriginal {
        /// The two ends.
        what: String,
    },
    /// The editions would go in a circle.
    Cycle {
        /// Where the circle closes.
        names: Box<Names>,
    },
    /// The item's sidecar on disk cannot be believed, so it is not rewritten.
    Sidecar {
        /// The item.
        names: Box<Names>,
        /// What is wrong.
        cause: Box<SidecarError>,
    },
    /// The sidecar belongs to another item.
    OtherItem {
        /// The item it lies in.
        names: Box<Names>,
        /// The item it names.
        found: Box<Names>,
    },
    /// The sidecar on disk is not the one that was last believed: it was changed beside us.
    Changed(Box<Names>),
    /// `archive.ibi` is not what it was when the store was last used.
    FactsChanged,
    /// Minting would have to wait too long.
    Wait(WaitTooLong),
    /// The item still holds files.
    NotEmpty(Box<Names>),
    /// The item has been given to another Archive, which may not have taken it yet.
    Given(Box<Names>),
    /// What is noted of an item that is being handed over cannot be read.
    Handover {
        /// Where it is noted.
        path: PathBuf,
    },
}

impl ArchiveError {
    /// Why a directory is not taken for a store.
    pub(super) fn no_store(path: &Path) -> ArchiveError {
        let path = path.to_owned();
        match std::fs::metadata(path.join(super::facts::FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                ArchiveError::ClosedStore { path }
            }
            _ => ArchiveError::NotAStore { path },
        }
    }

    /// Why a path leads to no store.
    pub fn not_found(path: &Path) -> ArchiveError {
        match Tree::open_as_it_is(path) {
            Err(error) if error.errno() == Errno::NAMETOOLONG => error.into(),
            _ => ArchiveError::no_store(path),
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveError::Store(error) => error.fmt(f),
            ArchiveError::Tree(error) => error.fmt(f),
            ArchiveError::Ibi(error) => error.fmt(f),
            ArchiveError::ClosedStore { path } => write!(
                f,
                "the store '{}' is open to its owner only; work on its mount with mkdir, ln, setfattr and getfattr instead",
                path.display()
            ),
            ArchiveError::NotAStore { path } => write!(
                f,
                "'{}' is not an ibifs store (no archive.ibi in it); make one with 'ibifs init {}'",
                path.display(),
                path.display()
            ),
            ArchiveError::IsAStore { path } => write!(
                f,
                "'{}' is a store already; use it as it is, or name another directory",
                path.display()
            ),
            ArchiveError::Unfinished { path } => write!(
                f,
                "'{}' is a backup that is not finished; make it again with 'ibifs backup', or, if the \
                 store is lost, remove '{}' and run 'ibifs reindex'",
                path.display(),
                path.join(super::BACKUP_NOTE).display()
            ),
            ArchiveError::Facts { what } => {
                write!(f, "archive.ibi: {what}; mend it by hand or from a backup")
            }
            ArchiveError::Lock { what } => f.write_str(what),
            ArchiveError::Busy(holder) => {
                let at = holder.mount_point.as_ref().map(|at| at.display());
                match (holder.pid, at) {
                    (Some(pid), Some(at)) => write!(
                        f,
                        "the store is in use by process {pid}, mounted at '{at}'; unmount it first with \
                         'ibifs umount {at}'"
                    ),
                    (None, Some(at)) => write!(
                        f,
                        "the store is in use, mounted at '{at}'; unmount it first with 'ibifs umount {at}'"
                    ),
                    (Some(pid), None) => write!(
                        f,
                        "the store is in use by process {pid}; wait until that command has ended"
                    ),
                    (None, None) => {
                        f.write_str("the store is in use; wait until that command has ended")
                    }
                }
            }
            ArchiveError::ReadOnly => f.write_str("the store is open for reading only"),
            ArchiveError::Unknown { name } => write!(f, "no item '{name}' is held here"),
            ArchiveError::NoRelation { what } => write!(f, "no such relation: {what}"),
            ArchiveError::Exists(names) => write!(f, "item {names} is here already"),
            ArchiveError::HasOne {
                names,
                kind,
                target,
            } => write!(
                f,
                "{names} has its {kind} already, {target}; name that one, or take the relation back \
                 with 'ibifs unrelate'"
            ),
            ArchiveError::NotMintedYet { name } => write!(
                f,
                "'{name}' is of this Archive's own name space and later than its last date; \
                 only minting makes it: mkdir .mint/NAME or 'ibifs mint'"
            ),
            ArchiveError::MayNotName { names, name } => write!(
                f,
                "{names} does not get the name '{name}': the user who claims it may not make that \
                 directory"
            ),
            ArchiveError::NotMintedHere(names) => write!(
                f,
                "{names} does not become an original: its name is of this Archive's own name space, \
                 and was not minted here as far as is known"
            ),
            ArchiveError::AliasTaken { alias, holder } => {
                write!(f, "alias {alias} is that of {holder}")
            }
            ArchiveError::NoAlias { alias } => write!(
                f,
                "'{alias}' is an IBIp and no alias; write it in the pair 'ibi' of the item that has it"
            ),
            ArchiveError::ServiceItem => {
                f.write_str("the Archive service's own item can be neither removed nor handed over")
            }
            ArchiveError::NotAllowed(names) => write!(
                f,
                "you may not write the sidecar .ibi of {names}; ask its owner to declare it"
            ),
            ArchiveError::NotOriginal { what } => write!(
                f,
                "neither end of {what} is an original of this Archive; declare it where one is"
            ),
            ArchiveError::Cycle { names } => write!(
                f,
                "the editions would go in a circle through {names}; an edition cannot follow itself"
            ),
            ArchiveError::Sidecar { names, cause } => write!(
                f,
                "the sidecar .ibi of {names} cannot be believed: {}; mend it or run 'ibifs fsck --repair'",
                with_sources(cause.as_ref())
            ),
            ArchiveError::OtherItem { names, found } => {
                write!(f, "the sidecar .ibi of {names} names another item, {found}")
            }
            ArchiveError::Changed(names) => write!(
                f,
                "the sidecar .ibi of {names} is not the one that was last believed; see with \
                 'ibifs fsck' what was changed beside ibifs"
            ),
            ArchiveError::FactsChanged => f.write_str(
                "archive.ibi is not what it was when the store was last used; write it as it was, \
                 or run 'ibifs reindex' if the change is meant",
            ),
            ArchiveError::Wait(error) => error.fmt(f),
            ArchiveError::NotEmpty(names) => write!(f, "item {names} still holds files"),
            ArchiveError::Given(names) => write!(
                f,
                "item {names} is being handed over to another Archive; finish that with \
                 'ibifs transfer --pending'"
            ),
            ArchiveError::Handover { path } => write!(
                f,
                "'{}' cannot be read; it is noted there to which Archive an item is being handed \
                 over: see what that Archive says of the item, and remove it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ArchiveError::Store(error) => Some(error),
            ArchiveError::Tree(error) => Some(error),
            ArchiveError::Ibi(error) => Some(error),
            ArchiveError::Sidecar { cause, .. } => Some(cause.as_ref()),
            _ => None,
        }
    }
}

/// An error and what caused it, as one sentence.
pub(super) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        sentence.push_str(&format!(": {error}"));
        source = error.source();
    }
    sentence
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        ArchiveError::Store(error)
    }
}

impl From<TreeError> for ArchiveError {
    fn from(error: TreeError) -> Self {
        ArchiveError::Tree(error)
    }
}

impl From<ParseError> for ArchiveError {
    fn from(error: ParseError) -> Self {
        ArchiveError::Ibi(error)
    }
}

impl From<WaitTooLong> for ArchiveError {
    fn from(error: WaitTooLong) -> Self {
        ArchiveError::Wait(error)
    }
}

impl From<PairsError> for ArchiveError {
    fn from(error: PairsError) -> Self {
        ArchiveError::Facts {
            what: error.to_string(),
        }
    }
}
