//! XML documents as trees of elements, for records that are read from them.
//!
//! Nothing is fetched and nothing expands: a document type is ignored, and only the five standard entities and
//! character references are known. A document is at most as large as a record, and not deep.

use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use quick_xml::reader::Reader;

use super::decode::{line_at, utf8, windows_1252, without_mark};
use super::error::beginning;
use super::{MetadataError, check_size};

/// The deepest nesting of elements; an OAI-PMH response needs six levels.
pub(super) const MAX_DEPTH: usize = 64;

/// The bytes in which the end of an XML declaration is searched for.
const MAX_DECLARATION: usize = 256;

/// The text of a document in UTF-8 or ISO-8859-1.
pub(super) fn decode_xml(bytes: &[u8]) -> Result<String, MetadataError> {
    let unknown = |name: &str| {
        Err(MetadataError::UnknownEncoding {
            name: beginning(name),
        })
    };
    if bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe") {
        return unknown("UTF-16");
    }
    let unmarked = without_mark(bytes);
    let declared = declared_encoding(unmarked).map(|name| name.to_ascii_lowercase());
    match declared.as_deref() {
        None | Some("utf-8" | "utf8" | "us-ascii") => utf8(unmarked).map(str::to_string),
        // The byte order mark means UTF-8, whatever the declaration says.
        Some(_) if unmarked.len() < bytes.len() => utf8(unmarked).map(str::to_string),
        Some("iso-8859-1" | "iso_8859-1" | "latin1") => Ok(windows_1252(bytes)),
        Some(name) => unknown(name),
    }
}

fn declared_encoding(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(MAX_DECLARATION)];
    let end = head.windows(2).position(|pair| pair == b"?>")? + 2;
    let head = windows_1252(&head[..end]);
    match Reader::from_str(&head).read_event() {
        Ok(Event::Decl(declaration)) => Some(declaration.encoding()?.ok()?.into_owned()),
        _ => None,
    }
}

/// An element with its attributes by their local names.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    content: Vec<Content>,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Element(Element),
}

impl Element {
    /// An element that contains the root of a document.
    pub(super) fn document(bytes: &[u8]) -> Result<Element, MetadataError> {
        check_size(bytes)?;
        let text = decode_xml(bytes)?;
        let mut reader = NsReader::from_str(&text);
        reader.config_mut().expand_empty_elements = true;
        let line = |place: usize| line_at(text.as_bytes(), place);
        let bad = |place: usize| MetadataError::BadXml {
            line: line(place),
            text: beginning(text.get(place..).unwrap_or_default()),
        };
        let mut open = vec![(0, Element::default())];
        loop {
            let start = position(reader.buffer_position());
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(_) => return Err(bad(position(reader.error_position()))),
            };
            match event {
                Event::Eof => break,
                Event::Start(tag) => {
                    let (namespace, local) = reader.resolver().resolve_element(tag.name());
                    if let ResolveResult::Unknown(prefix) = namespace {
                        return Err(MetadataError::UnknownPrefix {
                            line: line(start),
                            prefix: beginning(&prefix),
                        });
                    }
                    if open.len() > MAX_DEPTH {
                        return Err(MetadataError::TooDeep {
                            line: line(start),
                            limit: MAX_DEPTH,
                        });
                    }
                    let name = local.as_ref().to_owned();
                    let attributes = attributes(&tag).ok_or_else(|| bad(start))?;
                    let content = Vec::new();
                    open.push((
                        start,
                        Element {
                            name,
                            attributes,
                            content,
                        },
                    ));
                }
                Event::End(_) => {
                    if let Some((_, ended)) = open.pop()
                        && let Some((_, parent)) = open.last_mut()
                    {
                        parent.content.push(Content::Element(ended));
                    }
                }
                Event::Text(text) => add(&mut open, &text.into_inner()),
                Event::CData(text) => add(&mut open, &text.into_inner()),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Err(_) => return Err(bad(start)),
                    Ok(Some(character)) => add(&mut open, character.encode_utf8(&mut [0; 4])),
                    Ok(None) => match resolve_predefined_entity(&reference) {
                        Some(text) => add(&mut open, text),
                        None => {
                            return Err(MetadataError::UnknownEntity {
                                line: line(start),
                                name: beginning(&reference),
                            });
                        }
                    },
                },
                _ => {}
            }
        }
        match open.pop() {
            Some((_, document)) if open.is_empty() => Ok(document),
            Some((start, element)) => Err(MetadataError::NotClosed {
                line: line(start),
                name: beginning(&element.name),
            }),
            None => Ok(Element::default()),
        }
    }

    /// The child elements.
    pub(super) fn children(&self) -> impl Iterator<Item = &Element> {
        self.content.iter().filter_map(|content| match content {
            Content::Element(element) => Some(element),
            Content::Text(_) => None,
        })
    }

    /// The children with a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children().filter(move |child| child.name == name)
    }

    /// The children of the children with a name: the members of a list.
    pub(super) fn members<'a>(&'a self, list: &'a str) -> impl Iterator<Item = &'a Element> {
        self.all(list).flat_map(Element::children)
    }

    /// The first element with a name, at any depth, in the order of the document.
    pub(super) fn find(&self, name: &str) -> Option<&Element> {
        self.children().find_map(|child| {
            if child.name == name {
                Some(child)
            } else {
                child.find(name)
            }
        })
    }

    /// The text of the first child with a name; empty if there is none.
    pub(super) fn text_of(&self, name: &str) -> String {
        self.all(name).next().map(Element::text).unwrap_or_default()
    }

    /// The value of an attribute; empty if there is none.
    pub(super) fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// All text in it.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.collect(&mut text);
        text.trim().to_owned()
    }

    fn collect(&self, text: &mut String) {
        for content in &self.content {
            match content {
                Content::Text(part) => text.push_str(part),
                Content::Element(element) => element.collect(text),
            }
        }
    }
}

fn add(open: &mut [(usize, Element)], text: &str) {
    if let Some((_, element)) = open.last_mut() {
        match element.content.last_mut() {
            Some(Content::Text(before)) => before.push_str(text),
            _ => element.content.push(Content::Text(text.to_owned())),
        }
    }
}

/// The attributes by their local names. None if they are not well formed.
fn attributes(tag: &BytesStart<'_>) -> Option<Vec<(String, String)>> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.ok()?;
        let name = attribute.key.local_name().as_ref().to_owned();
        let value = quick_xml::escape::unescape(&attribute.value).ok()?;
        attributes.push((name, value.into_owned()));
    }
    Some(attributes)
}

pub(super) fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_trees() {
        let document = Element::document(
            b"<?xml version='1.0'?><!DOCTYPE a><a:r xmlns:a='x' b='1 &amp; 2'><t>A <i>B</i> &lt;<![CDATA[C]]></t><t/></a:r>",
        );
        let document = document.unwrap_or_else(|error| panic!("{error}"));
        let root = document.find("r").expect("a root");
        assert_eq!(root.attribute("b"), "1 & 2");
        assert_eq!(root.text_of("t"), "A B <C");
        assert_eq!(root.all("t").count(), 2);
    }

    #[test]
    fn broken_documents_are_errors() {
        let deep = "<a>".repeat(100_000);
        for (text, error) in [
            (
                "<a>",
                "the XML ends inside the element 'a' that begins on line 1",
            ),
            (
                "<a></b>",
                "line 1 of the XML is not well formed near '</b>'",
            ),
            (
                "<a>&x;</a>",
                "line 1 of the XML refers to the unknown entity 'x'; only amp, lt, gt, apos and quot are known",
            ),
            (
                "<x:a/>",
                "line 1 of the XML has the prefix 'x' that is bound to no namespace",
            ),
            (&*deep, "line 1 of the XML nests more than 64 elements"),
        ] {
            let found = Element::document(text.as_bytes()).map_err(|error| error.to_string());
            assert_eq!(found.err().as_deref(), Some(error), "{text:.20}");
        }
    }
}
