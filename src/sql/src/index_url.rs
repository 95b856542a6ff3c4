//! The place of the index of an Archive, or of the registry of a resolver, if it is not a file:
//! `postgres://USER@HOST:PORT/DATABASE`.

use std::fmt;
use std::path::PathBuf;

use ibi::message::{Localize, Message};
use ibi::pairs::percent_decode;
use ibi::{Quoted, display_message, message};

/// The longest URL, in bytes.
const LONGEST_URL: usize = 1024;

/// A text that is not the URL of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexUrlError {
    /// It has another form.
    Form(String),
    /// It has a password, which everybody could read who may read `archive.ibi` or the list of processes.
    Password,
    /// It has an `@` that does not end the user. It may be that of a password, or of a user before one.
    At,
}

impl Localize for IndexUrlError {
    fn message(&self) -> Message {
        match self {
            IndexUrlError::Form(text) => message!(
                "{text} is not the URL of a database; write postgres://USER@HOST:PORT/DATABASE",
                text = Quoted(text)
            ),
            IndexUrlError::Password => message!(
                "a password has no place in the URL of a database; write it into ~/.pgpass or the file that PGPASSFILE names"
            ),
            IndexUrlError::At => message!(
                "the URL of a database has an @ twice; write %40 for one that is part of the user or of a parameter"
            ),
        }
    }
}

display_message!(IndexUrlError);

impl std::error::Error for IndexUrlError {}

/// The author of the name of a server in a URL, who so decides where a password goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// The caller, on the command line.
    Caller,
    /// `archive.ibi` of a store of root or of the caller.
    Store,
    /// `archive.ibi` of a store of another user.
    StoreOfAnother,
}

/// The URL of a database in a server, which has an index or a registry.
#[derive(Clone, Debug)]
pub struct IndexUrl {
    text: String,
    named_by: NamedBy,
}

impl PartialEq for IndexUrl {
    fn eq(&self, other: &IndexUrl) -> bool {
        self.text == other.text
    }
}

impl Eq for IndexUrl {}

impl IndexUrl {
    /// Checks the form of a URL, which counts as named by a store of another user. Nothing is looked up.
    pub fn parse(text: &str) -> Result<IndexUrl, IndexUrlError> {
        let refuse = || IndexUrlError::Form(text.to_owned());
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or_else(refuse)?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let (user, place) = rest.split_once('@').ok_or_else(refuse)?;
        if user.contains(':') || rest.contains("password=") || has_password(place) {
            return Err(IndexUrlError::Password);
        }
        if place.contains('@') {
            return Err(IndexUrlError::At);
        }
        let (host, database) = place.split_once('/').ok_or_else(refuse)?;
        let database = database.split('?').next().unwrap_or_default();
        // Parameters follow the database.
        let is_complete = !user.is_empty()
            && !user.contains(['/', '?'])
            && !host.is_empty()
            && !host.contains('?')
            && !database.is_empty();
        if !is_plain || !is_complete || text.len() > LONGEST_URL || text.contains(['{', '}']) {
            return Err(refuse());
        }
        Ok(IndexUrl {
            text: text.to_owned(),
            named_by: NamedBy::StoreOfAnother,
        })
    }

    /// The same URL, named by this one.
    #[must_use]
    pub fn named_by(self, named_by: NamedBy) -> IndexUrl {
        IndexUrl { named_by, ..self }
    }

    /// Returns who has named the server.
    #[must_use]
    pub fn origin(&self) -> NamedBy {
        self.named_by
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Host, port and database, for messages.
    #[must_use]
    pub fn place(&self) -> &str {
        let place = self
            .text
            .split_once('@')
            .map_or(self.text.as_str(), |(_, place)| place);
        place.split('?').next().unwrap_or(place)
    }

    /// The URL without `sslrootcert`, which the library that connects does not know, and the file that it names.
    #[must_use]
    pub fn without_certificates(&self) -> (String, Option<PathBuf>) {
        let Some((base, query)) = self.text.split_once('?') else {
            return (self.text.clone(), None);
        };
        let mut certificates = None;
        let mut kept = Vec::new();
        for part in query.split('&') {
            match part.strip_prefix("sslrootcert=") {
                Some(file) => {
                    let decoded = percent_decoded(file);
                    certificates = Some(PathBuf::from(decoded.as_deref().unwrap_or(file)));
                }
                None => kept.push(part),
            }
        }
        let url = if kept.is_empty() {
            base.to_owned()
        } else {
            format!("{base}?{}", kept.join("&"))
        };
        (url, certificates)
    }
}

/// Whether a parameter is a password, however its name is written.
fn has_password(place: &str) -> bool {
    let (_, query) = place.split_once('?').unwrap_or_default();
    query.split('&').any(|part| {
        let name = part.split('=').next().unwrap_or_default();
        percent_decoded(name).as_deref() == Some("password")
    })
}

/// A text without percent-encoding; None if the encoding is invalid, or the bytes are not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let is_good = text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    String::from_utf8(is_good.then(|| percent_decode(text))?).ok()
}

/// A text that may be a URL, for messages: dots are in the place of a password, or of all if it is not clear where one
/// ends.
#[must_use]
pub fn without_password(text: &str) -> String {
    const HIDDEN: &str = "...";
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    // A password may have any character; a host has no `@`.
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, rest),
    };
    if user.is_some_and(|user| user.contains("password=")) {
        return format!("{scheme}://{HIDDEN}");
    }
    let user = user.map(|user| match user.split_once(':') {
        Some((name, _)) => format!("{name}:{HIDDEN}@"),
        None => format!("{user}@"),
    });
    let place = place.split_inclusive(['?', '&']).map(|part| {
        let end = part.strip_suffix(['?', '&']).unwrap_or(part).len();
        match part.strip_prefix("password=") {
            Some(_) => format!("password={HIDDEN}{}", &part[end..]),
            None => part.to_owned(),
        }
    });
    let place: String = place.collect();
    format!("{scheme}://{}{place}", user.unwrap_or_default())
}

/// The place of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexPlace {
    /// A file in the store.
    File,
    /// A database server.
    Server(IndexUrl),
}

impl fmt::Display for IndexUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden() {
        for (text, hidden) in [
            ("postgres://u:a@b/c@h:5/d?x=y", "postgres://u:...@h:5/d?x=y"),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://u@h/d?password=p@q", "postgres://..."),
            ("postgres://u@h:5/d?a=b&password=p@q", "postgres://..."),
            (
                "postgres://u@h/d?password=p&a=b&password=q",
                "postgres://u@h/d?password=...&a=b&password=...",
            ),
            (
                "postgres://u:a@password=?x=y",
                "postgres://u:...@password=...?x=y",
            ),
            ("r.db", "r.db"),
        ] {
            assert_eq!(without_password(text), hidden);
        }
    }

    #[test]
    fn certificates_are_taken_from_the_url() {
        for (text, url, file) in [
            (
                "postgres://u@h/d?sslmode=require&sslrootcert=/a%20b",
                "postgres://u@h/d?sslmode=require",
                Some("/a b"),
            ),
            (
                "postgres://u@h/d?sslrootcert=c",
                "postgres://u@h/d",
                Some("c"),
            ),
            ("postgres://u@h/d", "postgres://u@h/d", None),
        ] {
            let parsed = IndexUrl::parse(text).expect(text);
            let expected = (url.to_owned(), file.map(PathBuf::from));
            assert_eq!(parsed.without_certificates(), expected);
        }
    }

    #[test]
    fn a_url_names_user_host_and_database() {
        let url = "postgres://ibifs@db.example.org:5433/archive?sslmode=require";
        let parsed = IndexUrl::parse(url).expect(url);
        assert_eq!(parsed.to_string(), url);
        assert_eq!(parsed.place(), "db.example.org:5433/archive");
        for wrong in [
            "",
            "archive",
            "http://ibifs@h/d",
            "postgres://h/d",
            "postgres://@h/d",
            "postgres://u@h",
            "postgres://u@h/",
            "postgres://u@/d",
            "postgres://u@?h/d",
            "postgres://u@h?x=/d",
            "postgres://u/x@h/d",
            "postgres://u?x@h/d",
            "postgres://u@h/d\n",
            "postgres://u@h/d{}",
        ] {
            let refused = IndexUrl::parse(wrong).expect_err(wrong);
            assert_eq!(refused, IndexUrlError::Form(wrong.to_owned()));
        }
        for secret in [
            "postgres://u:p@h/d",
            "postgres://u@h/d?password=p",
            "postgres://u@h/d?a=b&pass%77ord=p",
            "postgres://u?password=p@h/d",
        ] {
            let refused = IndexUrl::parse(secret).expect_err(secret);
            assert_eq!(refused, IndexUrlError::Password);
        }
        for twice in [
            "postgres://me@example.org:secret@h/d",
            "postgres://u@h/d@x",
            "postgres://u@h:5432/d?sslm@ode=require",
        ] {
            let refused = IndexUrl::parse(twice).expect_err(twice);
            assert_eq!(refused, IndexUrlError::At);
        }
        IndexUrl::parse("postgres://me%40example.org@h/d").expect("a URL");
    }
}
