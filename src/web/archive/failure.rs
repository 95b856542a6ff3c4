//! Maps the errors of the Archive to HTTP statuses.
//!
//! An answer never contains the path of the store or unpublished content; the log does.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use rustix::io::Errno;

use crate::archive::ArchiveError;
use crate::archive::store::StoreError;
use crate::http::server::answer;

/// The seconds after which an overloaded server may be asked again.
const ASK_AGAIN: u16 = 10;

/// The meaning of an error for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorMeaning {
    /// 404, with the error's own message.
    NotFound,
    /// 404: the file does not exist, or is not public.
    NoFile,
    /// 503: the server is out of descriptors or memory.
    Overload,
    /// 503: another program holds a lease on the file, and has been asked to release it.
    Leased,
    /// 500: the store cannot be read.
    Fault,
}

/// Maps each error. No catch-all: a new error does not compile until its meaning is chosen.
fn meaning(error: &ArchiveError) -> ErrorMeaning {
    match error {
        ArchiveError::Tree(error) => meaning_of(error.errno()),
        ArchiveError::Ibi(_)
        | ArchiveError::Unknown { .. }
        | ArchiveError::NoRelation { .. }
        | ArchiveError::Cycle { .. } => ErrorMeaning::NotFound,
        ArchiveError::Store(StoreError::Away { .. } | StoreError::Conflict) => {
            ErrorMeaning::Overload
        }
        // The store or the index is damaged, closed or replaced.
        ArchiveError::Store(_)
        | ArchiveError::ClosedStore { .. }
        | ArchiveError::NotAStore { .. }
        | ArchiveError::Missing { .. }
        | ArchiveError::Unfinished { .. }
        | ArchiveError::Generation { .. }
        | ArchiveError::OtherDatabase { .. }
        | ArchiveError::Facts { .. }
        | ArchiveError::NameSpaces { .. }
        | ArchiveError::FactsChanged
        | ArchiveError::Sidecar { .. }
        | ArchiveError::OtherItem { .. }
        | ArchiveError::Changed(_)
        | ArchiveError::TransferRecord { .. } => ErrorMeaning::Fault,
        // These errors refuse a change. A read does not cause them.
        ArchiveError::IsAStore { .. }
        | ArchiveError::UnfitDirectory { .. }
        | ArchiveError::IndexInUse { .. }
        | ArchiveError::IndexInFile { .. }
        | ArchiveError::Lock { .. }
        | ArchiveError::NotStoreOwner { .. }
        | ArchiveError::Busy(_)
        | ArchiveError::ReadOnly
        | ArchiveError::Exists(_)
        | ArchiveError::HasOne { .. }
        | ArchiveError::NotMintedYet { .. }
        | ArchiveError::MayNotName { .. }
        | ArchiveError::NotMintedHere(_)
        | ArchiveError::AliasTaken { .. }
        | ArchiveError::NoAlias { .. }
        | ArchiveError::ServiceItem
        | ArchiveError::NotAllowed(_)
        | ArchiveError::Sealed { .. }
        | ArchiveError::SealRefused { .. }
        | ArchiveError::Log { .. }
        | ArchiveError::NotOriginal { .. }
        | ArchiveError::Wait(_)
        | ArchiveError::NotEmpty(_)
        | ArchiveError::Draft(_)
        | ArchiveError::Given(_) => ErrorMeaning::Fault,
    }
}

/// Maps the system's errors about a path. They are an open set: an errno that is not listed says nothing
/// about the request.
fn meaning_of(errno: Errno) -> ErrorMeaning {
    match errno {
        Errno::NOENT
        | Errno::ACCESS
        | Errno::PERM
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::XDEV
        | Errno::INVAL
        | Errno::NAMETOOLONG => ErrorMeaning::NoFile,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => ErrorMeaning::Overload,
        Errno::AGAIN => ErrorMeaning::Leased,
        _ => ErrorMeaning::Fault,
    }
}

/// The answer for an error about an item or its content.
pub(super) fn of(error: &ArchiveError) -> Response<Body> {
    let not_found = |sentence: &str| answer::refusal(StatusCode::NOT_FOUND, sentence);
    match meaning(error) {
        ErrorMeaning::NotFound => not_found(&error.to_string()),
        ErrorMeaning::NoFile => not_found("this item has no such public file"),
        ErrorMeaning::Overload => {
            let sentence = "the server is busy; try again later";
            answer::busy(sentence, ASK_AGAIN)
        }
        ErrorMeaning::Leased => {
            let sentence = "another program has locked this file; try again later";
            answer::busy(sentence, ASK_AGAIN)
        }
        ErrorMeaning::Fault => fault(error),
    }
}

/// The answer if the store cannot be read, or if the disk does not take what a search has to write first.
pub(super) fn fault(error: &ArchiveError) -> Response<Body> {
    log::error!("a request fails: {error}");
    if let ArchiveError::Store(error) = error
        && let Some(fault) = error.disk_fault()
    {
        return answer::disk(fault);
    }
    answer::refusal(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the store cannot be read; the log has the reason",
    )
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::archive::store::StoreError;

    #[track_caller]
    fn check(error: ArchiveError, status: u16) {
        assert_eq!(of(&error).status().as_u16(), status, "{error}");
    }

    #[test]
    fn statuses() {
        check(
            ArchiveError::Unknown {
                name: "a/b/2009/02.16".to_owned(),
            },
            404,
        );
        check(
            ArchiveError::NoRelation {
                what: ibi::message!("a translation"),
            },
            404,
        );
        check(
            ArchiveError::Ibi(ibi::Ibi::parse("").expect_err("empty")),
            404,
        );
        check(ArchiveError::FactsChanged, 500);
        check(ArchiveError::ReadOnly, 500);
        let what = ibi::message!("item.rep");
        check(StoreError::Broken { what }.into(), 500);
        for (code, status) in [
            (rusqlite::ffi::SQLITE_FULL, 507),
            (rusqlite::ffi::SQLITE_IOERR_FSYNC, 503),
            (rusqlite::ffi::SQLITE_CORRUPT, 500),
        ] {
            let error = rusqlite::ffi::Error::new(code);
            let error = StoreError::Sqlite(rusqlite::Error::SqliteFailure(error, None));
            check(error.into(), status);
        }
    }

    #[test]
    fn statuses_of_the_systems_errors() {
        let cases = [
            (Errno::NOENT, ErrorMeaning::NoFile),
            (Errno::ACCESS, ErrorMeaning::NoFile),
            (Errno::LOOP, ErrorMeaning::NoFile),
            (Errno::MFILE, ErrorMeaning::Overload),
            (Errno::NOMEM, ErrorMeaning::Overload),
            (Errno::AGAIN, ErrorMeaning::Leased),
            (Errno::IO, ErrorMeaning::Fault),
            (Errno::STALE, ErrorMeaning::Fault),
        ];
        for (errno, expected) in cases {
            assert_eq!(meaning_of(errno), expected, "{errno}");
        }
    }

    #[test]
    fn a_fault_does_not_say_where_the_store_is() {
        let error = ArchiveError::NotAStore {
            path: "/srv/secret".into(),
        };
        assert!(error.to_string().contains("/srv/secret"));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let body = of(&error).into_body().collect();
        let body = runtime.expect("a runtime").block_on(body);
        assert_eq!(
            body.expect("a body").to_bytes(),
            "the store cannot be read; the log has the reason\n"
        );
    }
}
