//! The one table from what the Archive refuses to the errno that a caller sees.

use std::io::ErrorKind;

use rustix::io::Errno;

use crate::archive::ArchiveError;
use crate::archive::store::StoreError;
use crate::archive::tree::TreeError;

/// The errno of a refusal. No catch-all: a new error does not compile until one is chosen.
pub fn of(error: &ArchiveError) -> Errno {
    match error {
        ArchiveError::Store(error) => of_store(error),
        ArchiveError::Tree(error) => error.errno(),
        ArchiveError::Ibi(_) => Errno::INVAL,
        ArchiveError::ClosedStore { .. } => Errno::ACCESS,
        ArchiveError::NotAStore { .. } | ArchiveError::Missing { .. } => Errno::NOENT,
        ArchiveError::IsAStore { .. } => Errno::EXIST,
        ArchiveError::Unfinished { .. } => Errno::BUSY,
        ArchiveError::Facts { .. }
        | ArchiveError::FactsChanged
        | ArchiveError::Lock { .. }
        | ArchiveError::Handover { .. } => Errno::IO,
        ArchiveError::Busy(_) => Errno::BUSY,
        ArchiveError::ReadOnly => Errno::ROFS,
        ArchiveError::Unknown { .. } | ArchiveError::NoRelation { .. } => Errno::NOENT,
        ArchiveError::Exists(_) | ArchiveError::HasOne { .. } | ArchiveError::AliasTaken { .. } => {
            Errno::EXIST
        }
        ArchiveError::NoAlias { .. } => Errno::INVAL,
        ArchiveError::MayNotName { .. } => Errno::ACCESS,
        ArchiveError::NotMintedYet { .. }
        | ArchiveError::NotMintedHere(_)
        | ArchiveError::NotOriginal { .. }
        | ArchiveError::Given(_) => Errno::PERM,
        // Its sidecar is always in it. rsync --delete goes on after this error alone.
        ArchiveError::ServiceItem => Errno::NOTEMPTY,
        ArchiveError::NotAllowed(_) => Errno::ACCESS,
        ArchiveError::Cycle { .. } => Errno::LOOP,
        // "Not a data message" is the nearest there is to "this text says something else".
        ArchiveError::Sidecar { .. }
        | ArchiveError::OtherItem { .. }
        | ArchiveError::Changed(_) => Errno::BADMSG,
        ArchiveError::Wait(_) => Errno::AGAIN,
        ArchiveError::NotEmpty(_) => Errno::NOTEMPTY,
    }
}

fn of_store(error: &StoreError) -> Errno {
    match error {
        StoreError::Sqlite(_) | StoreError::System { .. } => match error.kind() {
            ErrorKind::StorageFull => Errno::NOSPC,
            ErrorKind::QuotaExceeded => Errno::DQUOT,
            ErrorKind::ReadOnlyFilesystem => Errno::ROFS,
            ErrorKind::ResourceBusy => Errno::AGAIN,
            ErrorKind::OutOfMemory => Errno::NOMEM,
            ErrorKind::PermissionDenied => Errno::ACCESS,
            _ => Errno::IO,
        },
        StoreError::Newer { .. }
        | StoreError::Older { .. }
        | StoreError::Broken { .. }
        | StoreError::NotAFile => Errno::IO,
        StoreError::Taken { .. } => Errno::EXIST,
    }
}

impl From<StoreError> for Errno {
    fn from(error: StoreError) -> Errno {
        ArchiveError::from(error).into()
    }
}

impl From<TreeError> for Errno {
    fn from(error: TreeError) -> Errno {
        ArchiveError::from(error).into()
    }
}

impl From<ArchiveError> for Errno {
    fn from(error: ArchiveError) -> Errno {
        log::debug!("refused: {error}");
        of(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::item::Names;
    use ibi::{Ibi, Rep};

    fn names() -> Names {
        let rep = Rep::parse("iconet.com.br/banon/2001/02.10.22.55").expect("a rep");
        Names::from(Ibi::Rep(rep))
    }

    #[test]
    fn what_the_archive_refuses_has_its_errno() {
        let path = || std::path::PathBuf::from("/store");
        for (error, errno) in [
            (ArchiveError::ReadOnly, Errno::ROFS),
            (ArchiveError::ServiceItem, Errno::NOTEMPTY),
            (ArchiveError::FactsChanged, Errno::IO),
            (ArchiveError::Exists(Box::new(names())), Errno::EXIST),
            (ArchiveError::NotMintedHere(Box::new(names())), Errno::PERM),
            (ArchiveError::NotAStore { path: path() }, Errno::NOENT),
            (ArchiveError::Missing { path: path() }, Errno::NOENT),
            (ArchiveError::IsAStore { path: path() }, Errno::EXIST),
            (ArchiveError::Unfinished { path: path() }, Errno::BUSY),
        ] {
            assert_eq!(of(&error), errno, "{error}");
        }
    }

    #[test]
    fn a_file_in_the_way_of_the_index_is_an_io_error() {
        assert_eq!(Errno::from(StoreError::NotAFile), Errno::IO);
    }
}
