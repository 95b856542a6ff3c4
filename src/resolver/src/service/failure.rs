//! Maps the errors of the resolver to HTTP statuses. No catch-all: a new error does not compile until a
//! status is chosen.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use crate::registry::RegistryError;
use ibifs_formats::resolution::PersistentUrlError;
use ibifs_http::server::answer;

/// The seconds after which a client may try again while the server of the database does not answer.
pub(super) const ASK_AGAIN: u16 = 2;

/// The answer to a request that the registry refuses or cannot execute.
pub(super) fn of(error: &RegistryError) -> Response<Body> {
    match error {
        RegistryError::NotRegistered(_)
        | RegistryError::WrongKey(_)
        | RegistryError::TwoArchives(_) => {
            answer::refusal(StatusCode::FORBIDDEN, &error.to_string())
        }
        RegistryError::Engine(_) if error.is_temporary() => {
            // `keep_up` logs it once.
            log::debug!("{error}");
            let sentence = "the resolver's database cannot be reached now; try again later";
            answer::busy(sentence, ASK_AGAIN)
        }
        // The database is missing, damaged, unsafe or busy. No HTTP request causes `NoActor` or `NoDocument`:
        // the protocol of 2009 answers in its own XML.
        RegistryError::NoName
        | RegistryError::Directory(_)
        | RegistryError::Open { .. }
        | RegistryError::Unfit(_)
        | RegistryError::Engine(_)
        | RegistryError::Newer(_)
        | RegistryError::Broken(_)
        | RegistryError::Hash(_)
        | RegistryError::NoActor(_)
        | RegistryError::NoDocument(_) => {
            log::error!("{error}");
            if let Some(fault) = error.disk_fault() {
                return answer::disk(fault);
            }
            let sentence = "the resolver's database cannot be used";
            answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, sentence)
        }
    }
}

/// The answer to a URL that is not a persistent URL.
pub(super) fn of_link(error: &PersistentUrlError) -> Response<Body> {
    let status = match error {
        PersistentUrlError::Level(_) => StatusCode::NOT_FOUND,
        PersistentUrlError::Name(error) if error.holds_no_identifier() => StatusCode::NOT_FOUND,
        PersistentUrlError::Encoding
        | PersistentUrlError::Name(_)
        | PersistentUrlError::Query(_) => StatusCode::BAD_REQUEST,
    };
    answer::refusal(status, &error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibi::message;
    use ibi::persistent::PersistentError as NameError;
    use ibifs_sql::error::StoreError;

    #[test]
    fn statuses() {
        let service = ibi::Ibi::parse("J8LNKB5R7W/3FUQHC5").expect("an IBIp");
        let names = Box::new(ibifs_formats::item::Names::from(service));
        let cases = [
            (RegistryError::NotRegistered(names.clone()), 403),
            (RegistryError::WrongKey(names.clone()), 403),
            (RegistryError::TwoArchives(names), 403),
            (RegistryError::Newer(9), 500),
            (RegistryError::Engine(StoreError::Conflict), 503),
            (RegistryError::Engine(StoreError::NotAFile), 500),
            (RegistryError::Broken(message!("a row")), 500),
            (RegistryError::NoActor("hermes".to_owned()), 500),
        ];
        for (error, status) in cases {
            assert_eq!(of(&error).status().as_u16(), status, "{error}");
        }
    }

    #[test]
    fn statuses_of_links() {
        let no_identifier = NameError::NoIdentifier {
            found: "x".to_owned(),
            reason: None,
        };
        let cases = [
            (PersistentUrlError::Name(no_identifier), 404),
            (PersistentUrlError::Level("a.b".to_owned()), 404),
            (PersistentUrlError::Encoding, 400),
            (
                PersistentUrlError::Name(NameError::Status("Copy".to_owned())),
                400,
            ),
        ];
        for (error, status) in cases {
            assert_eq!(of_link(&error).status().as_u16(), status, "{error}");
        }
    }
}
