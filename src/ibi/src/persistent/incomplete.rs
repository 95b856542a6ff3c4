//! The beginning of the identifier in a link that is being typed.

use super::reader::{RECORD, RECORDS, kind_of};

/// A link whose identifier is incomplete or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteLink<'a> {
    /// The text in front of the identifier.
    pub head: &'a str,
    /// The beginning of the identifier, and what may follow it.
    pub identifier: &'a str,
    /// The name of the name space of a `upn:` name, in upper case.
    pub name_space: Option<String>,
}

impl<'a> IncompleteLink<'a> {
    /// Reads the beginning of a link. None for a text that has nothing in front of an identifier, or not all
    /// of it: a host without the slash behind it, a `upn:` name without the second colon.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<IncompleteLink<'a>> {
        let scheme = scheme_of(text);
        // A text after a question mark navigates, except in front of a record.
        let last = (!text.contains('?')).then(|| last_link(text)).flatten();
        let (start, name_space) = match (in_query(text), last) {
            (Some(start), _) => (start, None),
            _ if text.contains('?') => return None,
            (None, Some((start, after))) if begins_with(after, "upn:") => {
                let (name, identifier) = after.get("upn:".len()..)?.split_once(':')?;
                let name = name.strip_suffix('-').unwrap_or(name).to_ascii_uppercase();
                (start + (after.len() - identifier.len()), Some(name))
            }
            (None, Some((start, after))) => {
                let identifier = after.get("ibi:".len()..)?.trim_start_matches('/');
                (start + (after.len() - identifier.len()), None)
            }
            (None, None) => (in_path(text, scheme)?, None),
        };
        let (head, identifier) = text.split_at_checked(start).filter(|_| start > 0)?;
        Some(IncompleteLink {
            head,
            identifier,
            name_space,
        })
    }
}

fn begins_with(text: &str, scheme: &str) -> bool {
    let start = text.get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Returns the length of the scheme of a URL and the slashes behind it.
fn scheme_of(text: &str) -> usize {
    let schemes = ["http://", "https://", "//"].into_iter();
    let mut found = schemes.filter(|scheme| begins_with(text, scheme));
    found.next().map_or(0, str::len)
}

/// The value of the parameter by which a script shows a record.
fn in_query(text: &str) -> Option<usize> {
    let (path, query) = text.split_once('?')?;
    let mut scripts = path.split('/').filter(|it| RECORDS.contains(it));
    scripts.next()?;
    let parameter = format!("{RECORD}=");
    let mut start = path.len() + 1;
    for pair in query.split('&') {
        if let Some(value) = pair.strip_prefix(&parameter) {
            // Parameters after it are not completed.
            let is_last = start + pair.len() == text.len();
            return is_last.then(|| start + (pair.len() - value.len()));
        }
        start += pair.len() + 1;
    }
    None
}

/// The last component that begins with `ibi:` or `upn:`, and the text from it on.
fn last_link(text: &str) -> Option<(usize, &str)> {
    let starts = text.match_indices('/').map(|(at, _)| at + 1);
    let texts = [0].into_iter().chain(starts);
    let mut texts = texts.filter_map(|at| Some((at, text.get(at..)?)));
    texts.rfind(|(_, it)| begins_with(it, "ibi:") || begins_with(it, "upn:"))
}

/// The identifier behind a host and a keyword of a path.
fn in_path(text: &str, scheme: usize) -> Option<usize> {
    if let Some(at) = text.rfind("/goto-/") {
        return Some(at + "/goto-/".len());
    }
    let mut start = scheme;
    if scheme > 0 {
        start += text.get(start..)?.find('/')? + 1;
    }
    let mut has_host = scheme > 0;
    loop {
        let rest = text.get(start..)?;
        let Some((component, _)) = rest.split_once('/') else {
            // A host alone may be the first component of a rep as well.
            let is_host_alone = rest.is_empty() && has_host && scheme == 0;
            return (!is_host_alone).then_some(start);
        };
        let is_passed_over = matches!(component, "" | "." | "..");
        let is_host = !has_host && component.contains(['.', ':']);
        if !is_passed_over && kind_of(component.as_bytes()).is_some() {
            return Some(start + component.len() + 1);
        }
        if !is_passed_over && !is_host {
            return Some(start);
        }
        has_host |= !is_passed_over;
        start += component.len() + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, head: &str, identifier: &str) {
        let link = IncompleteLink::parse(text);
        let found = link.as_ref().map(|link| (link.head, link.identifier));
        assert_eq!(found, Some((head, identifier)), "{text}");
    }

    #[test]
    fn an_identifier_begins_behind_what_leads_to_it() {
        for head in [
            "http://urlib.net/",
            "http://urlib.net/rep/",
            "HTTPS://a.b:8080/ibi-/",
            "//a.b/col/",
            "urlib.net/ibi/",
            "localhost:8080/attachment.cgi/",
            "a.b/",
            "/rep/",
            "../../col/",
            "ibi:",
            "IBI://",
            "http://a.b/ibi/ibi:",
            "./ibi:",
            "upn:LCETB2:",
            "http://urlib.net/upn:lcetb2-:",
            "http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/goto-/",
            "http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/ibi:",
            "http://a.b/doc/mirrorget.cgi?choice=full&metadatarepository=",
        ] {
            for identifier in [
                "",
                "8JM",
                "sid.inpe.br/mtc-m18@80/20",
                "8JMKD3MGP8W/34PGRBS!+(",
            ] {
                if head == "a.b/" && identifier.is_empty() {
                    continue;
                }
                reads(&format!("{head}{identifier}"), head, identifier);
            }
        }
        let name_space = |text: &str| IncompleteLink::parse(text)?.name_space;
        let found = name_space("http://a.b/upn:lcetb2-:x");
        assert_eq!(found.as_deref(), Some("LCETB2"));
        assert_eq!(name_space("ibi:x"), None);
    }

    #[test]
    fn other_texts_have_nothing_in_front() {
        for text in [
            "",
            "sid.in",
            "8JMKD3MGP8W/34",
            "http:",
            "http://urlib.net",
            "a.b/",
            "upn:LCETB2",
            "http://a.b/mirrorget.cgi?metadatarepository=x&y=z",
        ] {
            assert_eq!(
                IncompleteLink::parse(text).map(|it| it.head),
                None,
                "{text}"
            );
        }
    }
}
