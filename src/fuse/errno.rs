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
        ArchiveError::IsAStore { .. }
        | ArchiveError::UnfitDirectory { .. }
        | ArchiveError::IndexInUse { .. } => Errno::EXIST,
        ArchiveError::Unfinished { .. } | ArchiveError::OtherDatabase { .. } => Errno::BUSY,
        ArchiveError::Generation { .. } => Errno::ROFS,
        ArchiveError::IndexInFile { .. } => Errno::INVAL,
        ArchiveError::NotStoreOwner { .. } => Errno::ACCESS,
        ArchiveError::Facts { .. }
        | ArchiveError::NameSpaces { .. }
        | ArchiveError::FactsChanged
        | ArchiveError::Lock { .. }
        | ArchiveError::TransferRecord { .. } => Errno::IO,
        ArchiveError::Busy(_) | ArchiveError::SealRefused { .. } => Errno::BUSY,
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
        | ArchiveError::Sealed { .. }
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
        ArchiveError::Draft(_) => Errno::PERM,
        ArchiveError::Log { .. } => Errno::IO,
    }
}

fn of_store(error: &StoreError) -> Errno {
    match error {
        StoreError::Away { .. } | StoreError::Conflict => Errno::AGAIN,
        StoreError::InUse { .. } => Errno::BUSY,
        StoreError::Lapsed => Errno::STALE,
        StoreError::Sqlite(_)
        | StoreError::System { .. }
        | StoreError::Server { .. }
        | StoreError::Beside(_) => match error.kind() {
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

/// The errno of an error of the index.
pub(crate) fn of_index(error: StoreError) -> Errno {
    ArchiveError::from(error).into()
}

impl From<TreeError> for Errno {
    fn from(error: TreeError) -> Errno {
        ArchiveError::from(error).into()
    }
}

impl From<ArchiveError> for Errno {
    fn from(error: ArchiveError) -> Errno {
        match &error {
            // An administrator would not learn of it otherwise.
            ArchiveError::Store(StoreError::Beside(_)) => log::warn!("{error}"),
            _ => log::debug!("refused: {error}"),
        }
        of(&error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::archive::Holder;
    use crate::archive::store::BesideError;
    use crate::archive::tree::Action;
    use crate::formats::item::{Names, Sidecar};
    use ibi::distributor::WaitTooLong;
    use ibi::message::Message;
    use ibi::{Ibi, Rep};
    use rusqlite::Error::QueryReturnedNoRows;

    fn names() -> Names {
        let rep = Rep::parse("iconet.com.br/banon/2001/02.10.22.55").expect("a rep");
        Names::from(Ibi::Rep(rep))
    }

    fn table() -> Vec<(ArchiveError, Errno)> {
        let path = || std::path::PathBuf::from("/store");
        let item = || Box::new(names());
        let name = || "iconet.com.br/banon/2001/02.10.22.55".to_owned();
        let what = || Message::verbatim("what");
        let no_space = std::io::Error::from(Errno::NOSPC);
        let sidecar = Sidecar::parse(b"no sidecar").expect_err("no sidecar");
        let store = ArchiveError::Store;
        let too_long = WaitTooLong {
            next: None,
            wait: Duration::from_secs(11),
            limit: Duration::from_secs(10),
        };
        vec![
            (store(StoreError::Sqlite(QueryReturnedNoRows)), Errno::IO),
            (store(StoreError::NotAFile), Errno::IO),
            (
                store(StoreError::System {
                    error: QueryReturnedNoRows,
                    cause: no_space,
                }),
                Errno::NOSPC,
            ),
            (store(StoreError::Newer { found: 2, known: 1 }), Errno::IO),
            (store(StoreError::Older { found: 1 }), Errno::IO),
            (store(StoreError::Broken { what: what() }), Errno::IO),
            (
                store(StoreError::Taken {
                    name: name(),
                    holder: item(),
                }),
                Errno::EXIST,
            ),
            (
                TreeError::new(Action::Open, "col", Errno::XDEV).into(),
                Errno::XDEV,
            ),
            (
                Rep::parse("").expect_err("an empty rep").into(),
                Errno::INVAL,
            ),
            (ArchiveError::ClosedStore { path: path() }, Errno::ACCESS),
            (ArchiveError::NotAStore { path: path() }, Errno::NOENT),
            (ArchiveError::IsAStore { path: path() }, Errno::EXIST),
            (ArchiveError::Unfinished { path: path() }, Errno::BUSY),
            (ArchiveError::Generation { path: path() }, Errno::ROFS),
            (ArchiveError::Facts { what: what() }, Errno::IO),
            (ArchiveError::Lock { what: what() }, Errno::IO),
            (ArchiveError::Busy(Holder::default()), Errno::BUSY),
            (ArchiveError::ReadOnly, Errno::ROFS),
            (ArchiveError::Unknown { name: name() }, Errno::NOENT),
            (ArchiveError::NoRelation { what: what() }, Errno::NOENT),
            (ArchiveError::Exists(item()), Errno::EXIST),
            (
                ArchiveError::HasOne {
                    names: item(),
                    kind: "previous".to_owned(),
                    target: item(),
                },
                Errno::EXIST,
            ),
            (ArchiveError::NotMintedYet { name: name() }, Errno::PERM),
            (
                ArchiveError::MayNotName {
                    names: item(),
                    name: name(),
                },
                Errno::ACCESS,
            ),
            (ArchiveError::NotMintedHere(item()), Errno::PERM),
            (
                ArchiveError::AliasTaken {
                    alias: "lib/map".to_owned(),
                    holder: item(),
                },
                Errno::EXIST,
            ),
            (ArchiveError::NoAlias { alias: name() }, Errno::INVAL),
            (ArchiveError::ServiceItem, Errno::NOTEMPTY),
            (ArchiveError::NotAllowed(item()), Errno::ACCESS),
            (ArchiveError::NotOriginal { what: what() }, Errno::PERM),
            (ArchiveError::Cycle { names: item() }, Errno::LOOP),
            (
                ArchiveError::Sidecar {
                    names: item(),
                    cause: Box::new(sidecar),
                },
                Errno::BADMSG,
            ),
            (
                ArchiveError::OtherItem {
                    names: item(),
                    found: item(),
                },
                Errno::BADMSG,
            ),
            (ArchiveError::Changed(item()), Errno::BADMSG),
            (ArchiveError::FactsChanged, Errno::IO),
            (ArchiveError::Wait(too_long), Errno::AGAIN),
            (ArchiveError::NotEmpty(item()), Errno::NOTEMPTY),
            (ArchiveError::Given(item()), Errno::PERM),
            (ArchiveError::TransferRecord { path: path() }, Errno::IO),
            (ArchiveError::Missing { path: path() }, Errno::NOENT),
            (
                ArchiveError::NameSpaces {
                    path: path(),
                    what: what(),
                },
                Errno::IO,
            ),
            (ArchiveError::NotStoreOwner { path: path() }, Errno::ACCESS),
            (
                store(StoreError::Away {
                    place: name(),
                    what: what(),
                }),
                Errno::AGAIN,
            ),
            (
                store(StoreError::Server {
                    place: name(),
                    kind: std::io::ErrorKind::StorageFull,
                    what: what(),
                }),
                Errno::NOSPC,
            ),
            (store(StoreError::Conflict), Errno::AGAIN),
            (ArchiveError::IndexInUse { place: name() }, Errno::EXIST),
            (
                store(StoreError::InUse {
                    host: name(),
                    pid: 7,
                }),
                Errno::BUSY,
            ),
            (store(StoreError::Lapsed), Errno::STALE),
            (ArchiveError::IndexInFile { path: path() }, Errno::INVAL),
            (
                ArchiveError::OtherDatabase {
                    place: name(),
                    why: what(),
                    record: path(),
                },
                Errno::BUSY,
            ),
            (
                store(StoreError::Beside(Box::new(BesideError {
                    file: what(),
                    remedy: what(),
                    error: StoreError::System {
                        error: QueryReturnedNoRows,
                        cause: Errno::NOSPC.into(),
                    },
                }))),
                Errno::NOSPC,
            ),
            (ArchiveError::UnfitDirectory { what: what() }, Errno::EXIST),
        ]
    }

    #[test]
    fn each_error_of_the_archive_has_its_errno() {
        for (error, errno) in table() {
            assert_eq!(of(&error), errno, "{error}");
        }
    }

    #[test]
    fn a_system_error_of_the_index_keeps_its_meaning() {
        for (cause, errno) in [
            (Errno::NOSPC, Errno::NOSPC),
            (Errno::DQUOT, Errno::DQUOT),
            (Errno::ROFS, Errno::ROFS),
            (Errno::BUSY, Errno::AGAIN),
            (Errno::NOMEM, Errno::NOMEM),
            (Errno::ACCESS, Errno::ACCESS),
            (Errno::IO, Errno::IO),
        ] {
            let error = StoreError::System {
                error: QueryReturnedNoRows,
                cause: cause.into(),
            };
            assert_eq!(of_store(&error), errno, "{cause}");
        }
    }

    #[test]
    fn a_file_in_the_way_of_the_index_is_an_io_error() {
        assert_eq!(of_store(&StoreError::NotAFile), Errno::IO);
    }
}
