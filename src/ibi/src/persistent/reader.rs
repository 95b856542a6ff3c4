//! Reading: from a text to its parts, and from the parts to what they name.

use super::authority::{authority, read_authority};
use super::found::{MOST_SIGNS, PUNCTUATION, link_in, mended};
use super::leading::{LeadingIdentifier, identifier, level};
use super::{
    Authority, Identifier, PersistentError, PersistentKind, PersistentName, RESOLVER, Reader,
};
use crate::ParseError;
use crate::pairs::percent_decode;
use crate::relation::Request;

/// The scripts that show the record of an item whose identifier is a parameter.
pub(super) const RECORDS: [&str; 2] = ["mirrorget.cgi", "mirror.cgi"];
/// The parameter that names the record.
pub(super) const RECORD: &str = "metadatarepository";
/// The length of the name of a name space.
const NAME_SPACE: usize = 6;

/// The parts of a text before anything is known of them.
#[derive(Clone)]
struct Parts<'a> {
    reader: Reader,
    text: &'a str,
    has_scheme: bool,
    /// The beginning of the identifier of a `upn:` name.
    prefix: Option<&'a str>,
    archive: Option<Authority>,
    query: String,
    fragment: Option<&'a str>,
    /// The components of the path, decoded.
    path: Vec<Vec<u8>>,
    /// Whether the path ends with a slash.
    is_directory: bool,
}

/// Reads a name of a filesystem as it is, and a link also as it stands in running text.
pub(super) fn read(
    reader: Reader,
    text: &str,
    prefix: Option<&str>,
) -> Result<PersistentName, PersistentError> {
    if reader.is_literal {
        return read_exact(reader, text, prefix);
    }
    let text = link_in(text);
    let found = read_with_punctuation(reader, text, prefix);
    if found.is_ok() {
        return found;
    }
    // The name of a file may have any sign, so that it is not mended.
    let mended = mended(text).map(|text| read_with_punctuation(reader, &text, prefix));
    match mended {
        Some(Ok(name)) if name.path.is_empty() => Ok(name),
        _ => found,
    }
}

/// Reads a link; one that cannot be read, without the punctuation after it.
fn read_with_punctuation(
    reader: Reader,
    text: &str,
    prefix: Option<&str>,
) -> Result<PersistentName, PersistentError> {
    let found = read_exact(reader, text, prefix);
    if found.is_ok() {
        return found;
    }
    let mut rest = text;
    for _ in 0..MOST_SIGNS {
        let Some(shorter) = rest.strip_suffix(PUNCTUATION) else {
            break;
        };
        rest = shorter.trim_end();
        if let Ok(name) = read_exact(reader, rest, prefix) {
            return Ok(name);
        }
    }
    found
}

fn read_exact(
    reader: Reader,
    text: &str,
    prefix: Option<&str>,
) -> Result<PersistentName, PersistentError> {
    if text.is_empty() {
        return Err(PersistentError::Empty);
    }
    let decoded = (!reader.is_literal && is_encoded_whole(text)).then(|| percent_decode(text));
    let decoded = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = decoded.as_deref().unwrap_or(text);
    let (address, fragment) = match text.split_once('#') {
        Some((before, fragment)) if !reader.is_literal => (before, Some(fragment)),
        _ => (text, None),
    };
    let (has_scheme, archive, rest) = authority(address)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let query = if reader.is_literal {
        query.to_owned()
    } else {
        // As in the source of a page.
        query.replace("&amp;", "&").replace("&#38;", "&")
    };
    Parts {
        reader,
        text,
        has_scheme,
        prefix,
        archive,
        query,
        fragment,
        path: components(reader, path),
        is_directory: path.ends_with('/'),
    }
    .name()
}

/// Whether a whole URL is encoded, as in a parameter of another one.
fn is_encoded_whole(text: &str) -> bool {
    ["http%3a", "https%3a"].iter().any(|scheme| {
        let start = text.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

/// The components of a path, decoded. An encoded slash separates, since no name has one. `..` takes back the
/// component before it (RFC 3986, section 5.2.4); at the start it leads to a page of the same Archive.
fn components(reader: Reader, path: &str) -> Vec<Vec<u8>> {
    let mut components: Vec<Vec<u8>> = Vec::new();
    for part in path.split('/') {
        let decoded = if reader.is_literal {
            part.as_bytes().to_vec()
        } else {
            percent_decode(part)
        };
        for component in decoded.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => {}
                b".." => drop(components.pop()),
                component => components.push(component.to_vec()),
            }
        }
    }
    components
}

/// Whether a component begins with a scheme.
fn begins(component: &[u8], scheme: &[u8]) -> bool {
    let start = component.get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Returns what the first component of a path says of the rest.
pub(super) fn kind_of(keyword: &[u8]) -> Option<PersistentKind> {
    match keyword {
        b"rep" | b"ibi" => Some(PersistentKind::Item),
        b"rep-" | b"ibi-" => Some(PersistentKind::FileList),
        b"col" => Some(PersistentKind::File),
        b"attachment.cgi" => Some(PersistentKind::Download),
        b"archive.cgi" => Some(PersistentKind::Package),
        _ => None,
    }
}

impl Parts<'_> {
    fn name(mut self) -> Result<PersistentName, PersistentError> {
        if let Some(at) = self.path.iter().rposition(|it| it == b"goto-") {
            self.path.drain(..=at);
            return self.identified(None, None);
        }
        if let Some(record) = self.record() {
            return record;
        }
        if let Some(name) = self.relative() {
            return Ok(name);
        }
        let Some(first) = self.path.first() else {
            return Err(self.no_identifier(None));
        };
        if let Some(kind) = kind_of(first) {
            self.path.remove(0);
            self.pass_over_scheme();
            return self.identified(Some(kind), None);
        }
        if begins(first, b"ibi:") {
            self.pass_over_scheme();
            return self.identified(None, None);
        }
        if begins(first, b"upn:") {
            return self.of_name_space();
        }
        if begins(first, b"oai:") {
            return self.of_record();
        }
        match self.identified(None, None) {
            Err(error @ PersistentError::NoIdentifier { .. }) if self.begins_with_host() => {
                // The error is that of the whole path, unless a keyword shows that it begins with a host.
                let has_keyword = self.path.get(1).is_some_and(|it| kind_of(it).is_some());
                let name = self.without_scheme();
                if has_keyword {
                    name
                } else {
                    name.map_err(|_| error)
                }
            }
            name => name,
        }
    }

    /// Leaves `ibi:` out where an identifier follows it.
    fn pass_over_scheme(&mut self) {
        let Some(first) = self.path.first_mut().filter(|it| begins(it, b"ibi:")) else {
            return;
        };
        first.drain(..b"ibi:".len());
        if first.is_empty() {
            self.path.remove(0);
        }
    }

    /// Reads what a relative link names, `./ibi:IBI` or `./upn:NAME:IBI`, behind the path of the page that has it.
    fn relative(&self) -> Option<PersistentName> {
        let is_one = |it: &Vec<u8>| begins(it, b"ibi:") || begins(it, b"upn:");
        let at = self.path.iter().rposition(is_one).filter(|at| *at > 0)?;
        let is_of_keyword = |first, link| kind_of(first).is_some() && begins(link, b"ibi:");
        if at == 1 && is_of_keyword(&self.path[0], &self.path[1]) {
            return None;
        }
        let mut link = self.clone();
        link.path.drain(..at);
        link.name().ok()
    }

    /// The record that a script shows, where the path ends in one and the query says which.
    fn record(&self) -> Option<Result<PersistentName, PersistentError>> {
        let is_script = |it: &Vec<u8>| RECORDS.iter().any(|name| it == name.as_bytes());
        if !self.path.iter().any(is_script) {
            return None;
        }
        let parameters = self.parameters();
        let (_, record) = parameters.iter().find(|(name, _)| name == RECORD)?;
        let components: Vec<Vec<u8>> = record
            .split('/')
            .filter(|it| !it.is_empty())
            .map(|it| it.as_bytes().to_vec())
            .collect();
        let found = match identifier(&components, self.reader) {
            Ok(found) if found.below == components.len() && found.tail.is_empty() => found,
            Ok(_) => return Some(Err(no_identifier(record, None))),
            Err(reason) => return Some(Err(no_identifier(record, reason))),
        };
        Some(Ok(PersistentName {
            kind: PersistentKind::Record,
            identifier: found.identifier,
            archive: self.archive.clone(),
            request: None,
            citation_key: found.citation_key,
            path: Vec::new(),
            name_space: None,
            is_original_required: false,
            navigation: self.navigation(|name| name == RECORD),
        }))
    }

    /// `oai:HOST:IBI`, the identifier of a record in OAI-PMH.
    fn of_record(mut self) -> Result<PersistentName, PersistentError> {
        let first = String::from_utf8_lossy(&self.path[0]).into_owned();
        let mut fields = first.splitn(3, ':').skip(1);
        let host = fields.next().unwrap_or_default();
        let archive =
            read_authority(host).ok_or_else(|| PersistentError::Authority(host.to_owned()))?;
        let identifier = fields.next().unwrap_or_default();
        self.path[0] = identifier.as_bytes().to_vec();
        if self.archive.is_none() {
            self.archive = (archive.host != RESOLVER).then_some(archive);
        }
        self.identified(None, None)
    }

    /// `upn:NAME[-]:IBI[/PATH]`
    fn of_name_space(mut self) -> Result<PersistentName, PersistentError> {
        let first = String::from_utf8_lossy(&self.path[0]).into_owned();
        let mut fields = first.splitn(3, ':').skip(1);
        let name = fields.next().unwrap_or_default();
        let (name, is_list) = match name.strip_suffix('-') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let is_name =
            name.len() == NAME_SPACE && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_name {
            return Err(PersistentError::NameSpace(name.to_owned()));
        }
        let Some(identifier) = fields.next() else {
            return Err(self.no_identifier(None));
        };
        let before = self.prefix.iter().flat_map(|prefix| prefix.split('/'));
        // A slash may stand before the identifier.
        let identifier = Some(identifier).filter(|identifier| !identifier.is_empty());
        let before = before.chain(identifier).map(|it| it.as_bytes().to_vec());
        self.path.splice(..1, before);
        let kind = is_list.then_some(PersistentKind::FileList);
        let name_space = name.to_ascii_uppercase();
        match self.identified(kind, Some(name_space.clone())) {
            Err(cause @ PersistentError::NoIdentifier { .. }) if self.prefix.is_none() => {
                let cause = Box::new(cause);
                Err(PersistentError::Suffix { name_space, cause })
            }
            found => found,
        }
    }

    fn begins_with_host(&self) -> bool {
        let first = self
            .path
            .first()
            .and_then(|it| std::str::from_utf8(it).ok());
        let authority = first.and_then(read_authority);
        !self.has_scheme
            && self.path.len() > 1
            && authority.is_some_and(|it| it.host.contains('.') || it.port.is_some())
    }

    /// A URL that begins with its host.
    fn without_scheme(mut self) -> Result<PersistentName, PersistentError> {
        let first = String::from_utf8_lossy(&self.path.remove(0)).into_owned();
        self.archive = read_authority(&first).filter(|it| it.host != RESOLVER);
        let kind = self.path.first().and_then(|first| kind_of(first));
        if kind.is_some() {
            self.path.remove(0);
        }
        self.identified(kind, None)
    }

    /// Reads what the identifier at the start of the path names, with what follows it.
    fn identified(
        &self,
        keyword: Option<PersistentKind>,
        name_space: Option<String>,
    ) -> Result<PersistentName, PersistentError> {
        let takes_levels = match keyword {
            Some(PersistentKind::FileList | PersistentKind::File) => true,
            Some(PersistentKind::Item) => self.is_directory,
            _ => false,
        };
        let found = match identifier(&self.path, self.reader) {
            Ok(found) => found,
            Err(reason) => match level(&self.path).filter(|_| takes_levels) {
                Some(level) => LeadingIdentifier {
                    identifier: Identifier::Level(level),
                    tail: String::new(),
                    citation_key: None,
                    below: self.path.len(),
                },
                None => return Err(self.no_identifier(reason)),
            },
        };
        let path = self.path.get(found.below..).unwrap_or_default().join(&b'/');
        let kind = match (keyword, &found.identifier) {
            (_, Identifier::Level(_)) => PersistentKind::Level,
            (Some(PersistentKind::FileList), _) if name_space.is_some() && !path.is_empty() => {
                PersistentKind::File
            }
            (Some(PersistentKind::File) | None, _) if path.is_empty() => PersistentKind::Item,
            (Some(PersistentKind::Item) | None, _) if !path.is_empty() => PersistentKind::File,
            (Some(kind), _) => kind,
            (None, _) => PersistentKind::Item,
        };
        let (request, is_original_required) = self.request(&found.tail, keyword)?;
        let is_list = kind == PersistentKind::Item && matches!(request, Some(Request::FileList(_)));
        Ok(PersistentName {
            kind: if is_list {
                PersistentKind::FileList
            } else {
                kind
            },
            identifier: found.identifier,
            archive: self.archive.clone(),
            request,
            citation_key: found.citation_key,
            path,
            name_space,
            is_original_required,
            navigation: self
                .navigation(|name| matches!(name, "ibiurl.verblist" | "ibiurl.requireditemstatus")),
        })
    }

    /// Reads what the signs after the identifier and the query ask for together, and whether the original alone
    /// will do.
    fn request(
        &self,
        tail: &str,
        keyword: Option<PersistentKind>,
    ) -> Result<(Option<Request>, bool), PersistentError> {
        // IBI?? names the metadata; what follows may be a query of its own.
        let (tail, query) = match self.query.strip_prefix('?') {
            Some(query) => (format!("{tail}:"), query.trim_start_matches('?')),
            None => (tail.to_owned(), self.query.as_str()),
        };
        let parameters = parameters(query);
        let value = |name: &str| {
            let pair = parameters.iter().find(|(known, _)| known == name);
            pair.map_or("", |(_, value)| value.as_str())
        };
        // Links carry other words there, which only navigate.
        let is_words = !query.is_empty() && !query.contains('=');
        let is_link = keyword.is_some() || self.has_scheme || self.text.starts_with('/');
        let is_verbs = is_words && (!is_link || Request::parse_verbs(query).is_ok());
        let verbs = if is_verbs {
            query
        } else {
            value("ibiurl.verblist")
        };
        let request = Request::union(&tail, verbs)?;
        match value("ibiurl.requireditemstatus") {
            "" => Ok((request, false)),
            "Original" => Ok((request, true)),
            other => Err(PersistentError::Status(other.to_owned())),
        }
    }

    fn parameters(&self) -> Vec<(String, String)> {
        parameters(self.query.trim_start_matches('?'))
    }

    fn navigation(&self, identifies: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let parameters = self.parameters().into_iter();
        let fragment = self.fragment.map(|it| ("#".to_owned(), it.to_owned()));
        parameters
            .filter(|(name, _)| !identifies(name))
            .chain(fragment)
            .collect()
    }

    fn no_identifier(&self, reason: Option<ParseError>) -> PersistentError {
        no_identifier(self.text, reason)
    }
}

fn no_identifier(found: &str, reason: Option<ParseError>) -> PersistentError {
    PersistentError::NoIdentifier {
        found: found.to_owned(),
        reason,
    }
}

/// The pairs of a query; `+` is a space, what has no `=` is passed over.
fn parameters(query: &str) -> Vec<(String, String)> {
    let text = |it: &str| {
        let bytes = percent_decode(&it.replace('+', " "));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
