//! Parses a persistent URL, see ibi(7), "PERSISTENT URLS": `ibi [mdf] [path-absolute] ["?" query]`, and its
//! other spellings.

use std::fmt;

use super::ArchiveQuery;
use crate::item::Names;
use crate::name_spaces::{NameSpace, NameSpaces};
use crate::query::{Query, QueryError, encoded, percent_decoded_bytes};
use ibi::Quoted;
use ibi::persistent::{
    Identifier, PersistentError as NameError, PersistentKind, PersistentName, Reader,
};
use ibi::relation::Request;

/// The most prefixes that complete one name: each may be a resolution of its own.
const MOST_COMPLETED: usize = 4;

/// The most levels of a path below which an Archive may lie.
const MOST_ABOVE: usize = 8;

/// The request of a persistent URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistent {
    /// The identifier, the path and the requested related item.
    pub question: ArchiveQuery,
    /// The thing that is asked for: the item, a download of a file, or the whole item as one file.
    pub kind: PersistentKind,
    /// Whether only the original is acceptable.
    pub is_original_required: bool,
}

/// The reason why a URL is not a persistent URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentUrlError {
    /// A `%` in the path is not followed by two hexadecimal digits.
    Encoding,
    /// It holds no identifier, or what follows the identifier is not valid.
    Name(NameError),
    /// It names the items below a level, which no Archive can be asked for.
    Level(String),
    /// The query is not valid.
    Query(QueryError),
}

impl fmt::Display for PersistentUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersistentUrlError::Encoding => {
                f.write_str("the path is not percent-encoded; write % as %25")
            }
            PersistentUrlError::Name(error) => error.fmt(f),
            PersistentUrlError::Level(level) => write!(
                f,
                "{} is not an identifier but a level above items; ask an Archive for its list",
                Quoted(level)
            ),
            PersistentUrlError::Query(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PersistentUrlError {}

impl Persistent {
    /// Parses the path, without its first slash, and the query, without its question mark.
    ///
    /// # Errors
    /// The path holds no identifier, or the request is not valid.
    pub fn parse(path: &str, query: &str) -> Result<Persistent, PersistentUrlError> {
        let mut all = Persistent::parse_all(path, query, &NameSpaces::default())?;
        Ok(all.swap_remove(0))
    }

    /// Parses as [`Persistent::parse`] does. A `upn:` name without a whole identifier is completed by the
    /// prefixes of its name space: the first few that make an identifier of it, in the order of the table.
    /// There is always one result.
    ///
    /// # Errors
    /// The path holds no identifier, also with a prefix, or the request is not valid.
    pub fn parse_all(
        path: &str,
        query: &str,
        table: &NameSpaces,
    ) -> Result<Vec<Persistent>, PersistentUrlError> {
        // A second question mark belongs to the identifier: `<ibi>??`.
        Query::parse(query.trim_start_matches('?')).map_err(PersistentUrlError::Query)?;
        if path
            .split('/')
            .any(|part| percent_decoded_bytes(part).is_none())
        {
            return Err(PersistentUrlError::Encoding);
        }
        let text = if query.is_empty() {
            format!("/{path}")
        } else {
            format!("/{path}?{query}")
        };
        let reader = Reader::new().with_aliases();
        let name = reader.parse(&text);
        let name_space = match &name {
            Err(NameError::Suffix { name_space, .. }) => Some(name_space),
            Ok(name) if !matches!(name.identifier, Identifier::Ibi(_)) => name.name_space.as_ref(),
            _ => None,
        };
        let entry = name_space.and_then(|it| table.get(it));
        let prefixes = entry.map_or(&[][..], NameSpace::prefixes).iter();
        let completed = prefixes.filter_map(|prefix| reader.parse_below(prefix, &text).ok());
        let completed = completed.filter(|it| matches!(it.identifier, Identifier::Ibi(_)));
        let completed = completed.take(MOST_COMPLETED).map(Persistent::of);
        let mut all = completed.collect::<Result<Vec<Persistent>, PersistentUrlError>>()?;
        match name {
            Ok(name) => all.push(Persistent::of(name)?),
            Err(error) if all.is_empty() => return Err(PersistentUrlError::Name(error)),
            Err(_) => {}
        }
        Ok(all)
    }

    fn of(name: PersistentName) -> Result<Persistent, PersistentUrlError> {
        let ibi = match name.identifier {
            Identifier::Ibi(ibi) => Names::from(ibi).preferred(),
            Identifier::Alias(alias) => alias.to_string(),
            Identifier::Level(level) => return Err(PersistentUrlError::Level(level)),
        };
        let request = match (name.kind, name.request) {
            (PersistentKind::FileList, None) => Some(Request::FileList(None)),
            (PersistentKind::FileList, Some(Request::Modifier(modifier))) => {
                Some(Request::FileList(Some(modifier)))
            }
            (_, request) => request,
        };
        Ok(Persistent {
            question: ArchiveQuery {
                ibi,
                filepath: (!name.path.is_empty()).then_some(name.path),
                request,
            },
            kind: name.kind,
            is_original_required: name.is_original_required,
        })
    }

    /// The URL to which a reader is redirected, from the one that an Archive has answered: the same, or that
    /// of the download or the whole item there.
    #[must_use]
    pub fn delivered(&self, url: &str) -> String {
        self.delivery(url).unwrap_or_else(|| url.to_owned())
    }

    fn delivery(&self, url: &str) -> Option<String> {
        let (script, has_path) = match self.kind {
            PersistentKind::Download => ("attachment.cgi/", true),
            PersistentKind::Package => ("archive.cgi/", false),
            _ => return None,
        };
        let (mut delivered, name) = of_item(url, script)?;
        if has_path && !name.path.is_empty() {
            delivered.push_str(&format!("/{}", encoded(&name.path)));
        }
        Some(delivered)
    }

    /// The URL at which an Archive describes the item of the URL that it has answered, to programs that say in `Accept`
    /// in what form. None if a file of the item was asked for.
    #[must_use]
    pub fn described(&self, url: &str) -> Option<String> {
        let is_item = self.kind == PersistentKind::Item && self.question.filepath.is_none();
        let is_list = matches!(self.question.request, Some(Request::FileList(_)));
        if !is_item || is_list {
            return None;
        }
        of_item(url, "").map(|(described, _)| described)
    }
}

/// The URL of the Archive to which a URL leads, and the identifier of the item there. None if the URL names no item, or
/// what a modifier after its identifier asks for.
#[must_use]
pub fn item_of(url: &str) -> Option<(String, String)> {
    let (item, name) = of_item(url, "")?;
    let identifier = name.identifier.to_string();
    let base = item.strip_suffix(&format!("/{}", encoded(identifier.as_bytes())))?;
    Some((base.to_owned(), identifier))
}

/// The URL of the item to which a URL of an Archive leads, with a script before its identifier, and what the URL names.
/// The Archive may lie below a path.
fn of_item(url: &str, script: &str) -> Option<(String, PersistentName)> {
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest.split_once('/')?;
    let path = format!("/{path}");
    let mut begins = path.match_indices('/').take(MOST_ABOVE);
    let (prefix, name) = begins.find_map(|(at, _)| {
        let (prefix, below) = path.split_at(at);
        let name = PersistentName::parse(&format!("{scheme}://{authority}{below}"));
        Some((prefix, name.ok()?))
    })?;
    if name.request.is_some() || matches!(name.identifier, Identifier::Level(_)) {
        return None;
    }
    let identifier = encoded(name.identifier.to_string().as_bytes());
    let item = format!("{scheme}://{authority}{prefix}/{script}{identifier}");
    Some((item, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_is_reached_as_a_download() {
        let delivered = |path: &str, url: &str| {
            let persistent = Persistent::parse(path, "").expect(path);
            persistent.delivered(url)
        };
        let file = "http://a.b:8080/col/sid.inpe.br/a/2009/02.16.17.46/doc/a%20b%25.txt";
        let ibi = "8JMKD3MGP8W/34PGRBS";
        assert_eq!(delivered(ibi, file), file);
        assert_eq!(
            delivered(&format!("attachment.cgi/{ibi}"), file),
            "http://a.b:8080/attachment.cgi/sid.inpe.br/a/2009/02.16.17.46/doc/a%20b%25.txt"
        );
        assert_eq!(
            delivered(&format!("archive.cgi/{ibi}"), file),
            "http://a.b:8080/archive.cgi/sid.inpe.br/a/2009/02.16.17.46"
        );
        assert_eq!(
            delivered(
                &format!("archive.cgi/{ibi}"),
                "https://a.b/x/y/col/a.b/c/2009/02.16.17.46/"
            ),
            "https://a.b/x/y/archive.cgi/a.b/c/2009/02.16.17.46"
        );
        for other in [
            "http://a.b/8JMKD3MGP8W/34PGRBS:",
            "http://a.b/x.html",
            "http://a.b",
        ] {
            assert_eq!(delivered(&format!("archive.cgi/{ibi}"), other), other);
        }
    }

    #[test]
    fn an_item_is_described_where_it_is() {
        let described = |path: &str, query: &str, url: &str| {
            let persistent = Persistent::parse(path, query).expect(path);
            persistent.described(url)
        };
        let file = "https://a.b/x/col/sid.inpe.br/a/2009/02.16.17.46/doc/a%20b.txt";
        let ibi = "8JMKD3MGP8W/34PGRBS";
        let item = Some("https://a.b/x/sid.inpe.br/a/2009/02.16.17.46".to_owned());
        assert_eq!(described(ibi, "", file), item);
        assert_eq!(described(&format!("{ibi}!"), "", file), item);
        let page = "http://a.b:80/8JMKD3MGP8W/34PGRBS";
        assert_eq!(described(ibi, "", page), Some(page.to_owned()));
        for (path, query) in [
            (format!("{ibi}/a b.txt"), ""),
            (format!("attachment.cgi/{ibi}"), ""),
            (ibi.to_owned(), "ibiurl.verblist=GetFileList"),
        ] {
            assert_eq!(described(&path, query, file), None, "{path}?{query}");
        }
        assert_eq!(described(ibi, "", "http://a.b/x.html"), None);
    }

    #[test]
    fn a_name_is_completed_by_a_table() {
        let table = b"ABCDEF a.b/c 8JMKD3MGP8W x.y/z/2009\n";
        let table = NameSpaces::parse(table).expect("a table");
        let names = |path: &str| -> Vec<String> {
            let all = Persistent::parse_all(path, "", &table);
            let all = all.unwrap_or_default().into_iter();
            all.map(|it| it.question.ibi).collect()
        };
        assert_eq!(
            names("upn:abcdef:2009/01.02.03.04"),
            ["a.b/c/2009/01.02.03.04"]
        );
        assert_eq!(names("upn:ABCDEF:01.02.03.04"), ["x.y/z/2009/01.02.03.04"]);
        assert_eq!(names("upn:ABCDEF:34PGRBS"), ["8JMKD3MGP8W/34PGRBS"]);
        assert_eq!(
            names("upn:ABCDEF:8JMKD3MGPCW/3EUFCFP"),
            ["8JMKD3MGPCW/3EUFCFP"]
        );
        for none in ["upn:QQQQQQ:34PGRBS", "upn:ABCDEF:x_y", "34PGRBS"] {
            assert!(names(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_path_is_decoded_once() {
        let parsed = Persistent::parse("8JMKD3MGP8W/34PGRBS/a%2525b", "").expect("a path");
        assert_eq!(parsed.question.filepath.as_deref(), Some(&b"a%25b"[..]));
    }
}
