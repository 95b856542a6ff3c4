//! The scheme, the host and the port at the beginning of a link.

use super::{Authority, PersistentError, RESOLVER};

/// Schemes of other names, whose numbers are not ports.
const OTHER_SCHEMES: [&str; 6] = ["doi", "hdl", "isbn", "issn", "pmid", "arxiv"];
/// Whether a text is a URL, its host and port, and what follows them. The resolver is not an Archive.
pub(super) fn authority(text: &str) -> Result<(bool, Option<Authority>, &str), PersistentError> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Ok((false, None, text));
    };
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok((false, None, text));
    }
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => {}
        "ibi" | "upn" | "oai" => return Ok((false, None, text)),
        scheme if OTHER_SCHEMES.contains(&scheme) => {
            return Err(PersistentError::Scheme(scheme.to_owned()));
        }
        // A host and a port.
        _ if rest.starts_with(|first: char| first.is_ascii_digit()) => {
            return Ok((false, None, text));
        }
        _ => return Err(PersistentError::Scheme(scheme.to_owned())),
    }
    let Some(rest) = rest.strip_prefix("//") else {
        return Err(PersistentError::Authority(rest.to_owned()));
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (found, rest) = rest.split_at(end);
    let authority =
        read_authority(found).ok_or_else(|| PersistentError::Authority(found.to_owned()))?;
    let is_resolver = authority.host == RESOLVER;
    Ok((true, (!is_resolver).then_some(authority), rest))
}

/// A host and a port.
pub(super) fn read_authority(text: &str) -> Option<Authority> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = match port {
                "" => None,
                port => Some(port.parse().ok().filter(|_| is_number)?),
            };
            (host, port)
        }
        _ => (text, None),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    // Only an IPv6 address has colons.
    let signs: &[u8] = if host.starts_with('[') && host.ends_with(']') {
        b".[]:"
    } else {
        b".-_"
    };
    let takes = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
    (!host.is_empty() && host.bytes().all(takes)).then(|| Authority {
        host: host.to_ascii_lowercase(),
        port,
    })
}
