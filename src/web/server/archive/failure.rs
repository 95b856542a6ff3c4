//! What is answered where the Archive refuses or fails.
//!
//! Where a store lies and what is in it that is not published is nobody's business: only the log says
//! more.

use axum::body::Body;
use axum::http::{Response, StatusCode};
use rustix::io::Errno;

use crate::archive::ArchiveError;
use crate::web::server::answer;

/// When to ask again, in seconds, where there were too many at once.
const ASK_AGAIN: u16 = 10;

/// What is answered by an error about an item or what is in it.
pub(super) fn of(error: &ArchiveError) -> Response<Body> {
    let not_found = |sentence: &str| answer::refusal(StatusCode::NOT_FOUND, sentence);
    match error {
        ArchiveError::Tree(tree) => match tree.errno() {
            Errno::NOENT
            | Errno::ACCESS
            | Errno::PERM
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::XDEV
            | Errno::INVAL
            | Errno::NAMETOOLONG => {
                not_found("there is no such file in this item, or not for everybody")
            }
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
                answer::busy("too much is asked for at the moment; ask again", ASK_AGAIN)
            }
            // Another program has a lease on the file, which it is asked to give back.
            Errno::AGAIN => {
                let sentence = "another program keeps this file; ask again";
                answer::busy(sentence, ASK_AGAIN)
            }
            _ => fault(error),
        },
        ArchiveError::Ibi(_)
        | ArchiveError::Unknown { .. }
        | ArchiveError::NoRelation { .. }
        | ArchiveError::Cycle { .. } => not_found(&error.to_string()),
        error => fault(error),
    }
}

/// What is answered where the store cannot be read, whatever was asked for.
pub(super) fn fault(error: &ArchiveError) -> Response<Body> {
    log::error!("a request fails: {error}");
    answer::refusal(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the store cannot be read; its keeper finds why in the log",
    )
}
