//! WebDAV (RFC 4918): what a PROPFIND asks for, and the answer to it as XML.
//!
//! A request is short, and nothing in it expands: a document type is refused, and of the values of properties only their
//! names are read. The answer is written resource by resource, so that a long one need not be held.

use std::fmt::Write;

use quick_xml::NsReader;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

/// The namespace of WebDAV.
const DAV: &str = "DAV:";
/// The deepest nesting of elements. A request has three levels; more may be in what is ignored.
const MAX_DEPTH: usize = 32;
/// The longest list of names that an answer repeats for each resource, in bytes.
const LONGEST_NAMES: usize = 8 * 1024;

/// The beginning of an answer.
pub const BEGIN: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
/// The end of an answer.
pub const END: &str = "</D:multistatus>\n";
/// The beginning of the page of a collection. Its style and its language are those of the browser.
pub const PAGE_BEGIN: &str =
    "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"/><title>/</title></head><body><pre>\n";
/// The end of it.
pub const PAGE_END: &str = "</pre></body></html>\n";
/// The body of the refusal to list everything below a resource (RFC 4918, section 9.1).
pub const FINITE_DEPTH: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

/// The properties that resources have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Property {
    ResourceType,
    DisplayName,
    Length,
    MediaType,
    EntityTag,
    Changed,
    Created,
}

const PROPERTIES: [(Property, &str); 7] = [
    (Property::ResourceType, "resourcetype"),
    (Property::DisplayName, "displayname"),
    (Property::Length, "getcontentlength"),
    (Property::MediaType, "getcontenttype"),
    (Property::EntityTag, "getetag"),
    (Property::Changed, "getlastmodified"),
    (Property::Created, "creationdate"),
];

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProperties {
    /// Its length in bytes.
    pub length: u64,
    /// Its media type.
    pub media_type: &'static str,
    /// Its entity tag, with its quotes.
    pub tag: Option<String>,
}

/// A resource in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its path, percent-encoded. That of a collection ends with a slash.
    pub href: String,
    /// Its name.
    pub name: Vec<u8>,
    /// None for a collection.
    pub file: Option<FileProperties>,
    /// Its last change, as a date of HTTP.
    pub changed: Option<String>,
    /// The time at which it was made, in RFC 3339.
    pub created: Option<String>,
}

impl Resource {
    /// The value of a property as XML.
    fn value(&self, property: Property) -> Option<String> {
        let file = self.file.as_ref();
        match property {
            Property::ResourceType if file.is_some() => Some(String::new()),
            Property::ResourceType => Some("<D:collection/>".to_owned()),
            Property::DisplayName => {
                let text = String::from_utf8_lossy(&self.name);
                // XML 1.0 has no control characters, not even as references.
                let text = text.replace(is_forbidden, "\u{fffd}");
                Some(escape(text).into_owned())
            }
            Property::Length => file.map(|file| file.length.to_string()),
            Property::MediaType => file.map(|file| escape(file.media_type).into_owned()),
            Property::EntityTag => {
                let tag = file?.tag.as_deref()?;
                Some(escape(tag).into_owned())
            }
            Property::Changed => self.changed.clone(),
            Property::Created => self.created.clone(),
        }
    }
}

impl Resource {
    /// Writes a line of the page of the collection that it is a member of, in the form that servers usually have, which
    /// programs read: a relative link, the last change and the length.
    pub fn write_line(&self, page: &mut String) {
        let path = self.href.trim_end_matches('/');
        let (_, link) = path.rsplit_once('/').unwrap_or(("", path));
        let end = if self.file.is_some() { "" } else { "/" };
        // A text before a colon would be a scheme.
        let link = link.replace(':', "%3A");
        let name = self.value(Property::DisplayName).unwrap_or_default();
        let changed = self.changed.as_deref().and_then(day_and_time);
        let changed = changed.unwrap_or_else(|| "-".to_owned());
        let length = self.value(Property::Length);
        let length = length.unwrap_or_else(|| "-".to_owned());
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "<a href=\"{link}{end}\">{name}{end}</a>  {changed}  {length}"
        );
    }
}

/// `02-Feb-2020 02:02` of a date of HTTP.
fn day_and_time(date: &str) -> Option<String> {
    let mut words = date.split(' ').skip(1);
    let [day, month, year, time] = [(); 4].map(|()| words.next());
    let (day, month, year, time) = (day?, month?, year?, time?.get(..5)?);
    Some(format!("{day}-{month}-{year} {time}"))
}

fn is_forbidden(character: char) -> bool {
    character.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&character)
}

/// The reason why a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropfindError {
    /// It is not well-formed XML in UTF-8, or has a document type.
    Xml,
    /// It is not a `propfind` with one of `prop`, `propname` and `allprop`.
    Unknown,
    /// It names too many properties.
    TooMany,
}

impl PropfindError {
    /// The reason as a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            PropfindError::Xml => {
                "the body is not well-formed XML in UTF-8 without a document type"
            }
            PropfindError::Unknown => {
                "the body is no propfind element with one of prop, propname and allprop"
            }
            PropfindError::TooMany => "the body names too many properties",
        }
    }
}

/// The properties that a PROPFIND asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All properties with their values.
    All,
    /// The names of all properties.
    Names,
    /// Some properties.
    Some(WantedProperties),
}

/// Some properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedProperties {
    known: Vec<Property>,
    /// The properties that no resource has, as empty elements.
    unknown: String,
}

impl Wanted {
    /// Reads the body of a request. An empty one asks for all.
    ///
    /// # Errors The body cannot be read.
    pub fn parse(body: &[u8]) -> Result<Wanted, PropfindError> {
        let text = std::str::from_utf8(body).map_err(|_| PropfindError::Xml)?;
        let text = text.trim_start_matches('\u{feff}');
        if text.trim().is_empty() {
            return Ok(Wanted::All);
        }
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let mut depth = 0;
        let (mut is_begun, mut wanted, mut names_at) = (false, None, false);
        loop {
            match reader.read_event().map_err(|_| PropfindError::Xml)? {
                Event::Start(element) => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(PropfindError::Xml);
                    }
                    check_attributes(&element)?;
                    let (namespace, name) = resolved(&reader, &element)?;
                    let is_dav = namespace == DAV;
                    match depth {
                        1 if is_begun || !is_dav || name != "propfind" => {
                            return Err(PropfindError::Unknown);
                        }
                        1 => is_begun = true,
                        2 if is_dav => {
                            names_at = name == "prop";
                            let asked = match name.as_str() {
                                "prop" => Wanted::Some(WantedProperties::default()),
                                "allprop" => Wanted::All,
                                "propname" => Wanted::Names,
                                // All properties that there are, are in `allprop` already.
                                _ => continue,
                            };
                            if wanted.replace(asked).is_some() {
                                return Err(PropfindError::Unknown);
                            }
                        }
                        2 => names_at = false,
                        3 if names_at => {
                            if let Some(Wanted::Some(list)) = &mut wanted {
                                list.add(&namespace, &name)?;
                            }
                        }
                        _ => {}
                    }
                }
                Event::End(_) => depth -= 1,
                Event::DocType(_) => return Err(PropfindError::Xml),
                Event::Text(text) if depth == 0 && !text.trim().is_empty() => {
                    return Err(PropfindError::Xml);
                }
                Event::Eof if depth > 0 => return Err(PropfindError::Xml),
                Event::Eof => break,
                _ => {}
            }
        }
        wanted.ok_or(PropfindError::Unknown)
    }

    /// Writes the response for a resource.
    pub fn write(&self, resource: &Resource, xml: &mut String) {
        let all = || PROPERTIES.map(|(property, _)| property).to_vec();
        let (properties, unknown) = match self {
            Wanted::All | Wanted::Names => (all(), ""),
            Wanted::Some(list) => (list.known.clone(), list.unknown.as_str()),
        };
        let (mut found, mut missing) = (String::new(), unknown.to_owned());
        for (property, name) in PROPERTIES {
            if !properties.contains(&property) {
                continue;
            }
            match (resource.value(property), self) {
                (Some(_), Wanted::Names) => element(&mut found, name, ""),
                (Some(value), _) => element(&mut found, name, &value),
                (None, Wanted::Some(_)) => element(&mut missing, name, ""),
                (None, _) => {}
            }
        }
        let href = escape(resource.href.as_str());
        xml.push_str("<D:response><D:href>");
        xml.push_str(&href);
        xml.push_str("</D:href>");
        // A response has at least one status.
        if !found.is_empty() || missing.is_empty() {
            status(xml, &found, "200 OK");
        }
        if !missing.is_empty() {
            status(xml, &missing, "404 Not Found");
        }
        xml.push_str("</D:response>\n");
    }
}

impl WantedProperties {
    fn add(&mut self, namespace: &str, name: &str) -> Result<(), PropfindError> {
        let known = PROPERTIES.iter().find(|(_, known)| *known == name);
        match known {
            Some((property, _)) if namespace == DAV => {
                if !self.known.contains(property) {
                    self.known.push(*property);
                }
            }
            _ if namespace == DAV => element(&mut self.unknown, name, ""),
            _ if namespace.is_empty() => {
                // Writing to a string does not fail.
                let _ = write!(self.unknown, "<{name} xmlns=\"\"/>");
            }
            _ => {
                let _ = write!(
                    self.unknown,
                    "<N:{name} xmlns:N=\"{}\"/>",
                    escape(namespace)
                );
            }
        }
        if self.unknown.len() > LONGEST_NAMES {
            Err(PropfindError::TooMany)
        } else {
            Ok(())
        }
    }
}

/// Writes an element of WebDAV.
fn element(xml: &mut String, name: &str, value: &str) {
    let _ = if value.is_empty() {
        write!(xml, "<D:{name}/>")
    } else {
        write!(xml, "<D:{name}>{value}</D:{name}>")
    };
}

fn status(xml: &mut String, properties: &str, status: &str) {
    let _ = write!(
        xml,
        "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
    );
}

fn check_attributes(element: &BytesStart<'_>) -> Result<(), PropfindError> {
    match element.attributes().find(Result::is_err) {
        Some(_) => Err(PropfindError::Xml),
        None => Ok(()),
    }
}

/// The namespace and the name of an element, which an answer can repeat.
fn resolved(
    reader: &NsReader<&[u8]>,
    element: &BytesStart<'_>,
) -> Result<(String, String), PropfindError> {
    let (namespace, local) = reader.resolver().resolve_element(element.name());
    let namespace = match namespace {
        ResolveResult::Bound(namespace) => {
            let text = unescape(namespace.as_ref()).map_err(|_| PropfindError::Xml)?;
            text.into_owned()
        }
        ResolveResult::Unbound => String::new(),
        ResolveResult::Unknown(_) => return Err(PropfindError::Xml),
    };
    let name = local.as_ref();
    let mut characters = name.chars();
    let is_first = |character: char| character.is_alphabetic() || character == '_';
    let is_name = characters.next().is_some_and(is_first)
        && characters.all(|character| character.is_alphanumeric() || "-_.".contains(character));
    if is_name && !namespace.contains(is_forbidden) {
        Ok((namespace, name.to_owned()))
    } else {
        Err(PropfindError::Xml)
    }
}

#[cfg(test)]
mod tests;
