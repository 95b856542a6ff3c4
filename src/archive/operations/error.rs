//! The errors of the Archive, as sentences for people. The front ends choose errno and HTTP status.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::archive::store::{DiskFault, StoreError};
use crate::archive::tree::{Tree, TreeError};
use crate::formats::item::{Names, SidecarError};
use ibi::ParseError;
use ibi::distributor::WaitTooLong;
use ibi::message::{Localize, Message};
use ibi::pairs::PairsError;
use ibi::{display_message, message};

/// The holder of a store: the process that writes it, and its mount point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process ID, if it could be read.
    pub pid: Option<u32>,
    /// Mount point, if the holder is a mount.
    pub mount_point: Option<PathBuf>,
}

/// An error of the Archive.
#[derive(Debug)]
pub enum ArchiveError {
    /// The relation store failed.
    Store(StoreError),
    /// The tree failed.
    Tree(TreeError),
    /// An identifier could not be parsed or created.
    Ibi(ParseError),
    /// This user may not enter the store.
    ClosedStore {
        /// The path of the store.
        path: PathBuf,
    },
    /// The store directory is not a store.
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The path does not exist.
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A database for a new index has that of another Archive.
    IndexInUse {
        /// The database.
        place: String,
    },
    /// Several hosts are to use an index that is a file.
    IndexInFile {
        /// The store.
        path: PathBuf,
    },
    /// The directory for a new store is a store already.
    IsAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The directory for a new store has something else in it, or is open to every user.
    UnfitDirectory {
        /// The fault, and the remedy.
        what: Message,
    },
    /// The directory is a backup that was interrupted.
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// The directory is one generation of a backup, which is not written.
    Generation {
        /// The directory.
        path: PathBuf,
    },
    /// Another database has the index, and may be written.
    OtherDatabase {
        /// Host, port and name of that one.
        place: String,
        /// The process that writes it, or why that is not known.
        why: Message,
        /// The file that records it.
        record: PathBuf,
    },
    /// `archive.ibi` cannot be read.
    Facts {
        /// The cause.
        what: Message,
    },
    /// The table of name spaces cannot be read.
    NameSpaces {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong there.
        what: Message,
    },
    /// Only the owner of the store changes this file.
    NotStoreOwner {
        /// The file.
        path: PathBuf,
    },
    /// The store cannot be locked.
    Lock {
        /// The cause.
        what: Message,
    },
    /// Another process writes this store.
    Busy(Holder),
    /// The store was opened for reading.
    ReadOnly,
    /// No item of this name is held here.
    Unknown {
        /// The name.
        name: String,
    },
    /// The relation is missing.
    NoRelation {
        /// The item and the relation.
        what: Message,
    },
    /// The item is held here already.
    Exists(Box<Names>),
    /// The item has a relation of this kind already.
    HasOne {
        /// The item.
        names: Box<Names>,
        /// The relation, by its pair in the sidecar.
        kind: String,
        /// Its target.
        target: Box<Names>,
    },
    /// A name of this Archive's own name space with a date that was not given out.
    NotMintedYet {
        /// The refused name.
        name: String,
    },
    /// The user who claims a name for an item could not create it.
    MayNotName {
        /// The item.
        names: Box<Names>,
        /// The refused name.
        name: String,
    },
    /// An original of the own name space that was not minted here, as far as is known.
    NotMintedHere(Box<Names>),
    /// Another item has this alias.
    AliasTaken {
        /// The alias.
        alias: String,
        /// The item that has it.
        holder: Box<Names>,
    },
    /// An IBIp cannot be an alias.
    NoAlias {
        /// The IBIp.
        alias: String,
    },
    /// The Archive service's own item cannot be removed or transferred.
    ServiceItem,
    /// The user may not change the item's sidecar.
    NotAllowed(Box<Names>),
    /// The item is sealed.
    Sealed {
        /// The item.
        names: Box<Names>,
        /// The instant of the seal.
        at: ibi::Timestamp,
    },
    /// The item cannot be sealed or unsealed now.
    SealRefused {
        /// The item.
        names: Box<Names>,
        /// The reason.
        why: Message,
    },
    /// The log of the store cannot be read or written.
    Log {
        /// The reason.
        why: Message,
    },
    /// Neither end of the relation is an original of this Archive.
    NotOriginal {
        /// The two ends.
        what: Message,
    },
    /// The editions would form a circle.
    Cycle {
        /// The item at which the circle closes.
        names: Box<Names>,
    },
    /// The item's sidecar on disk is not valid, so it is not rewritten.
    Sidecar {
        /// The item.
        names: Box<Names>,
        /// The cause.
        cause: Box<SidecarError>,
    },
    /// The sidecar belongs to another item.
    OtherItem {
        /// The item whose directory contains it.
        names: Box<Names>,
        /// The item that it names.
        found: Box<Names>,
    },
    /// The sidecar on disk is not the one that was last accepted: it was changed outside the Archive.
    Changed(Box<Names>),
    /// `archive.ibi` has changed since the store was last used.
    FactsChanged,
    /// Minting would have to wait too long.
    Wait(WaitTooLong),
    /// The item still holds files.
    NotEmpty(Box<Names>),
    /// The item is a draft, which cannot be withdrawn.
    Draft(Box<Names>),
    /// The item was given to another Archive, which may not have claimed it yet.
    Given(Box<Names>),
    /// The record of a transfer of ownership cannot be read.
    TransferRecord {
        /// The path of the record.
        path: PathBuf,
    },
}

impl ArchiveError {
    /// The error for a directory that is not a store.
    pub(super) fn no_store(path: &Path) -> ArchiveError {
        let path = path.to_owned();
        let kind = |error: std::io::Error| error.kind();
        let file = path.join(super::own_files::FACTS);
        if file.metadata().map_err(kind).err() == Some(std::io::ErrorKind::PermissionDenied) {
            ArchiveError::ClosedStore { path }
        } else if path.metadata().map_err(kind).err() == Some(std::io::ErrorKind::NotFound) {
            ArchiveError::Missing { path }
        } else {
            ArchiveError::NotAStore { path }
        }
    }

    /// The error for a path that does not lead to a store.
    pub fn not_found(path: &Path) -> ArchiveError {
        match Tree::open_as_it_is(path) {
            Err(error) if error.errno() == Errno::NAMETOOLONG => error.into(),
            _ => ArchiveError::no_store(path),
        }
    }
}

impl ArchiveError {
    /// The fault of the disk that is the cause, if it is one.
    #[must_use]
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            ArchiveError::Store(error) => error.disk_fault(),
            ArchiveError::Tree(error) => DiskFault::of(error.errno()),
            ArchiveError::ReadOnly => Some(DiskFault::Broken),
            _ => None,
        }
    }
}

impl Localize for ArchiveError {
    fn message(&self) -> Message {
        match self {
            ArchiveError::Store(error) => error.message(),
            ArchiveError::Tree(error) => error.message(),
            ArchiveError::Ibi(error) => error.message(),
            ArchiveError::ClosedStore { path } => message!(
                "'{path}' may not be read: permission denied; run the command as the owner of the store, or work in its mount",
                path = path.display()
            ),
            ArchiveError::Missing { path } => message!(
                "'{path}' does not exist; name a store, or create one with 'ibifs init'",
                path = path.display()
            ),
            ArchiveError::NotAStore { path } => message!(
                "'{path}' is not a store (it has no archive.ibi), and no store is mounted there; name a store, or mount one there",
                path = path.display()
            ),
            ArchiveError::UnfitDirectory { what } => what.clone(),
            ArchiveError::IsAStore { path } => message!(
                "'{path}' is a store already; use it as it is, or name another directory",
                path = path.display()
            ),
            ArchiveError::IndexInUse { place } => message!(
                "{place} holds the index of another Archive; name an empty database",
                place
            ),
            ArchiveError::IndexInFile { path } => message!(
                "the index of '{path}' is a file, which one host uses; move it to a server with 'ibifs reindex --to' to share the store",
                path = path.display()
            ),
            ArchiveError::Unfinished { path } => message!(
                "'{path}' is an unfinished backup; finish it with 'ibifs backup' or, if the store is lost, remove '{note}' and run 'ibifs reindex'",
                path = path.display(),
                note = path.join(super::own_files::BACKUP_NOTE).display()
            ),
            ArchiveError::Generation { path } => message!(
                "'{path}' is one generation of a backup, which shares files with others and is not written; mount it with '-o ro', or make a store of it with 'ibifs backup {path} DEST'",
                path = path.display()
            ),
            ArchiveError::OtherDatabase { place, why, record } => message!(
                "the index of this store is in {place} ({why}), and archive.ibi names another database; name that one again, end what writes it, or remove '{record}' if it is gone for good",
                place,
                why,
                record = record.display()
            ),
            ArchiveError::Facts { what } => {
                message!(
                    "archive.ibi: {what}; correct it, or restore it from a backup",
                    what
                )
            }
            ArchiveError::NameSpaces { path, what } => message!(
                "{path}: {what}; correct it, or restore it from a backup",
                path = path.display(),
                what
            ),
            ArchiveError::NotStoreOwner { path } => message!(
                "'{path}' may not be changed: only the owner of the store may; run the command as that user",
                path = path.display()
            ),
            ArchiveError::Lock { what } => what.clone(),
            ArchiveError::Busy(holder) => {
                let at = holder.mount_point.as_ref().map(|at| at.display());
                match (holder.pid, at) {
                    (Some(pid), Some(at)) => message!(
                        "the store is in use by process {pid}, mounted at '{at}'; unmount it first with \
                         'ibifs umount {at}'",
                        pid,
                        at
                    ),
                    (None, Some(at)) => message!(
                        "the store is in use, mounted at '{at}'; unmount it first with 'ibifs umount {at}'",
                        at
                    ),
                    (Some(pid), None) => message!(
                        "the store is in use by process {pid}; wait until that command has ended",
                        pid
                    ),
                    (None, None) => {
                        message!("the store is in use; wait until that command has ended")
                    }
                }
            }
            ArchiveError::ReadOnly => message!("the store is open for reading only"),
            ArchiveError::Unknown { name } => message!("no item '{name}' is held here", name),
            ArchiveError::NoRelation { what } => message!("no such relation: {what}", what),
            ArchiveError::Exists(names) => message!("item {names} is here already", names),
            ArchiveError::HasOne {
                names,
                kind,
                target,
            } => message!(
                "{names} has its {kind} already, {target}; use that one, or remove the relation with 'ibifs unrelate'",
                names,
                kind,
                target
            ),
            ArchiveError::NotMintedYet { name } => message!(
                "'{name}' is in this Archive's own name space and later than its last date; only minting creates it: mkdir .mint/NAME or 'ibifs mint'",
                name
            ),
            ArchiveError::MayNotName { names, name } => message!(
                "{names} does not get the name '{name}': the user who claims it may not make that \
                 directory",
                names,
                name
            ),
            ArchiveError::NotMintedHere(names) => message!(
                "{names} does not become an original: its name is of this Archive's own name space, \
                 and was not minted here as far as is known",
                names
            ),
            ArchiveError::AliasTaken { alias, holder } => {
                message!("alias {alias} is that of {holder}", alias, holder)
            }
            ArchiveError::NoAlias { alias } => message!(
                "'{alias}' is an IBIp and not an alias; write it in the pair 'ibi' of the item that has it",
                alias
            ),
            ArchiveError::ServiceItem => {
                message!("the Archive service's own item can be neither removed nor transferred")
            }
            ArchiveError::NotAllowed(names) => message!(
                "you may not write the sidecar .ibi of {names}; ask its owner to declare it",
                names
            ),
            ArchiveError::Sealed { names, at } => message!(
                "{names} is sealed since {at}, and its files do not change any more; its owner may end that with 'ibifs unseal'",
                names,
                at = at.to_rfc3339()
            ),
            ArchiveError::SealRefused { names, why } => message!("{names}: {why}", names, why),
            ArchiveError::Log { why } => why.clone(),
            ArchiveError::NotOriginal { what } => message!(
                "neither end of {what} is an original of this Archive; declare it where one is",
                what
            ),
            ArchiveError::Cycle { names } => message!(
                "the editions would form a cycle through {names}; an edition cannot follow itself",
                names
            ),
            ArchiveError::Sidecar { names, cause } => message!(
                "the sidecar .ibi of {names} is not valid: {cause}; correct it or run 'ibifs fsck --repair'",
                names,
                cause = cause.with_cause()
            ),
            ArchiveError::OtherItem { names, found } => {
                message!(
                    "the sidecar .ibi of {names} names another item, {found}",
                    names,
                    found
                )
            }
            ArchiveError::Changed(names) => message!(
                "the sidecar .ibi of {names} has changed since it was last accepted; 'ibifs fsck' shows what was changed outside ibifs",
                names
            ),
            ArchiveError::FactsChanged => message!(
                "archive.ibi is not what it was when the store was last used; restore it, or run 'ibifs reindex' if the change is intended"
            ),
            ArchiveError::Wait(error) => error.message(),
            ArchiveError::NotEmpty(names) => message!("item {names} still holds files", names),
            ArchiveError::Draft(names) => message!(
                "item {names} is closed to other users, as a draft is; there is nothing to withdraw",
                names
            ),
            ArchiveError::Given(names) => message!(
                "item {names} is being transferred to another Archive; finish that with \
                 'ibifs transfer --pending'",
                names
            ),
            ArchiveError::TransferRecord { path } => message!(
                "'{path}' cannot be read; it names the Archive to which an item is being transferred: ask that Archive which of the two holds the item, and remove it",
                path = path.display()
            ),
        }
    }
}

display_message!(ArchiveError);

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ArchiveError::Store(error) => Some(error),
            ArchiveError::Tree(error) => Some(error),
            ArchiveError::Ibi(error) => Some(error),
            ArchiveError::Sidecar { cause, .. } => Some(cause.as_ref()),
            ArchiveError::Wait(error) => Some(error),
            ArchiveError::ClosedStore { .. }
            | ArchiveError::NotAStore { .. }
            | ArchiveError::Missing { .. }
            | ArchiveError::IsAStore { .. }
            | ArchiveError::UnfitDirectory { .. }
            | ArchiveError::IndexInUse { .. }
            | ArchiveError::IndexInFile { .. }
            | ArchiveError::Unfinished { .. }
            | ArchiveError::Generation { .. }
            | ArchiveError::OtherDatabase { .. }
            | ArchiveError::Facts { .. }
            | ArchiveError::NameSpaces { .. }
            | ArchiveError::NotStoreOwner { .. }
            | ArchiveError::Lock { .. }
            | ArchiveError::Busy(..)
            | ArchiveError::ReadOnly
            | ArchiveError::Unknown { .. }
            | ArchiveError::NoRelation { .. }
            | ArchiveError::Exists(..)
            | ArchiveError::HasOne { .. }
            | ArchiveError::NotMintedYet { .. }
            | ArchiveError::MayNotName { .. }
            | ArchiveError::NotMintedHere(..)
            | ArchiveError::AliasTaken { .. }
            | ArchiveError::NoAlias { .. }
            | ArchiveError::ServiceItem
            | ArchiveError::NotAllowed(..)
            | ArchiveError::Sealed { .. }
            | ArchiveError::SealRefused { .. }
            | ArchiveError::Log { .. }
            | ArchiveError::NotOriginal { .. }
            | ArchiveError::Cycle { .. }
            | ArchiveError::OtherItem { .. }
            | ArchiveError::Changed(..)
            | ArchiveError::FactsChanged
            | ArchiveError::NotEmpty(..)
            | ArchiveError::Draft(..)
            | ArchiveError::Given(..)
            | ArchiveError::TransferRecord { .. } => None,
        }
    }
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        ArchiveError::Store(error)
    }
}

impl From<TreeError> for ArchiveError {
    fn from(error: TreeError) -> Self {
        match error.closed_store() {
            // Filesystems in user space find names that are remembered in directories that the user may not enter.
            Some(path) => ArchiveError::ClosedStore { path },
            None => ArchiveError::Tree(error),
        }
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
            what: error.message(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::os::testing::TemporaryDirectory;

    #[test]
    fn the_cause_of_an_error_can_be_asked_for() {
        let parse = "no identifier".parse::<ibi::Ibi>().expect_err("not one");
        let tree = Tree::open_as_it_is(Path::new("/nowhere")).expect_err("not there");
        let sidecar = crate::formats::item::Sidecar::parse(b"ibi {").expect_err("broken");
        let names = Names::from("8JMKD3MGP8W/35MMLL8".parse::<ibi::Ibi>().expect("an IBIp"));
        let sidecar = ArchiveError::Sidecar {
            names: names.into(),
            cause: sidecar.into(),
        };
        for (error, has_cause) in [
            (ArchiveError::from(parse), true),
            (ArchiveError::from(tree), true),
            (sidecar, true),
            (ArchiveError::ReadOnly, false),
        ] {
            assert_eq!(error.source().is_some(), has_cause, "{error}");
        }
    }

    #[test]
    fn a_path_that_leads_to_no_store_is_told_apart_by_what_is_there() {
        let directory = TemporaryDirectory::new();
        let not_found = |path: &str| ArchiveError::not_found(&directory.join(path));
        assert!(matches!(not_found("x"), ArchiveError::Missing { .. }));
        assert!(matches!(not_found(""), ArchiveError::NotAStore { .. }));
        let long = "x".repeat(300);
        assert!(matches!(not_found(&long), ArchiveError::Tree(_)));
    }
}
