//! Writes answers as XML.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use super::date::written;
use super::fault::OaiError;
use super::{ListPosition, OaiFormat, spec_of};

const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
const SCHEMA: &str =
    "http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The most characters of a foreign text that an error repeats.
const LONGEST_QUOTE: usize = 400;

/// The description of an Archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryDescription {
    /// Its name.
    pub name: String,
    /// The address of its administrator.
    pub email: String,
    /// The earliest datestamp of a record, in Unix seconds.
    pub earliest: i64,
    /// Whether it reports deleted records permanently.
    pub is_persistent: bool,
}

/// The header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its OAI identifier.
    pub identifier: String,
    /// Its last change, in Unix seconds.
    pub datestamp: i64,
    /// Whether it has been deleted.
    pub is_deleted: bool,
    /// Its set.
    pub set: String,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OaiRecord {
    /// Its header.
    pub header: Header,
    /// Its element in the wanted format; None for a deleted record.
    pub metadata: Option<String>,
}

/// The end of a list: `Some(Some(_))` if it continues, `Some(None)` at the end of one in several parts, None
/// for a list in one part.
type ListEnd = Option<Option<ListPosition>>;

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OaiContent {
    /// Errors.
    Faults(Vec<OaiError>),
    /// The description of the Archive.
    Repository(RepositoryDescription),
    /// The formats in which one record, or records at all, are harvested.
    Formats(Vec<OaiFormat>),
    /// The sets of these collections.
    Sets(Vec<String>),
    /// One record.
    Record(OaiRecord),
    /// Headers, and the position where the list continues.
    Headers(Vec<Header>, ListEnd),
    /// Records, and the position where the list continues.
    Records(Vec<OaiRecord>, ListEnd),
}

/// An answer.
#[derive(Debug)]
pub struct OaiAnswer<'a> {
    /// The URL of the service.
    pub base_url: &'a str,
    /// The current time, in Unix seconds.
    pub at: i64,
    /// The arguments of the request.
    pub arguments: &'a [(String, String)],
    /// The content.
    pub reply: OaiContent,
}

impl OaiAnswer<'_> {
    /// The XML document.
    #[must_use]
    pub fn to_xml(&self) -> Vec<u8> {
        let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
        // Writing to memory does not fail.
        if let Err(error) = self.write(&mut xml) {
            debug_assert!(false, "{error}");
        }
        let mut bytes = xml.into_inner();
        bytes.push(b'\n');
        bytes
    }

    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let attributes = [
            ("xmlns", OAI),
            ("xmlns:xsi", XSI),
            ("xsi:schemaLocation", SCHEMA),
        ];
        within(xml, "OAI-PMH", &attributes, |xml| {
            text(xml, "responseDate", &written(self.at))?;
            let arguments = self.arguments.iter();
            let arguments: Vec<(&str, &str)> = arguments
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            xml.create_element("request")
                .with_attributes(arguments)
                .write_text_content(BytesText::new(self.base_url))?;
            self.reply.write(self.verb(), self.base_url, xml)
        })
    }

    fn verb(&self) -> &str {
        let mut arguments = self.arguments.iter();
        let verb = arguments.find(|(name, _)| name == "verb");
        verb.map_or("", |(_, verb)| verb)
    }
}

type Xml = Writer<Vec<u8>>;

impl OaiContent {
    fn write(&self, verb: &str, base_url: &str, xml: &mut Xml) -> io::Result<()> {
        match self {
            OaiContent::Faults(faults) => faults.iter().try_for_each(|fault| {
                xml.create_element("error")
                    .with_attribute(("code", fault.code.as_str()))
                    .write_text_content(BytesText::new(&quoted(&fault.sentence)))
                    .map(drop)
            }),
            OaiContent::Repository(identity) => within(xml, verb, &[], |xml| {
                let deleted = if identity.is_persistent {
                    "persistent"
                } else {
                    "transient"
                };
                for (name, value) in [
                    ("repositoryName", identity.name.as_str()),
                    ("baseURL", base_url),
                    ("protocolVersion", "2.0"),
                    ("adminEmail", &identity.email),
                    ("earliestDatestamp", &written(identity.earliest)),
                    ("deletedRecord", deleted),
                    ("granularity", "YYYY-MM-DDThh:mm:ssZ"),
                ] {
                    text(xml, name, value)?;
                }
                Ok(())
            }),
            OaiContent::Formats(formats) => within(xml, verb, &[], |xml| {
                formats.iter().try_for_each(|format| {
                    let (namespace, schema) = format.schema();
                    within(xml, "metadataFormat", &[], |xml| {
                        text(xml, "metadataPrefix", format.prefix())?;
                        text(xml, "schema", schema)?;
                        text(xml, "metadataNamespace", namespace)
                    })
                })
            }),
            OaiContent::Sets(collections) => within(xml, verb, &[], |xml| {
                collections.iter().try_for_each(|collection| {
                    within(xml, "set", &[], |xml| {
                        text(xml, "setSpec", &spec_of(collection))?;
                        text(xml, "setName", collection)
                    })
                })
            }),
            OaiContent::Record(record) => within(xml, verb, &[], |xml| record.write(xml)),
            OaiContent::Headers(headers, next) => within(xml, verb, &[], |xml| {
                headers.iter().try_for_each(|header| header.write(xml))?;
                write_token(next, headers.len(), xml)
            }),
            OaiContent::Records(records, next) => within(xml, verb, &[], |xml| {
                records.iter().try_for_each(|record| record.write(xml))?;
                write_token(next, records.len(), xml)
            }),
        }
    }
}

impl Header {
    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        let attributes: &[(&str, &str)] = if self.is_deleted {
            &[("status", "deleted")]
        } else {
            &[]
        };
        within(xml, "header", attributes, |xml| {
            text(xml, "identifier", &self.identifier)?;
            text(xml, "datestamp", &written(self.datestamp))?;
            text(xml, "setSpec", &self.set)
        })
    }
}

impl OaiRecord {
    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        within(xml, "record", &[], |xml| {
            self.header.write(xml)?;
            let Some(metadata) = &self.metadata else {
                return Ok(());
            };
            within(xml, "metadata", &[], |xml| {
                // The metadata are XML already.
                let element = BytesText::from_escaped(format!("\n{metadata}"));
                xml.write_event(Event::Text(element))
            })
        })
    }
}

/// The token after a part of so many records.
fn write_token(next: &ListEnd, part: usize, xml: &mut Xml) -> io::Result<()> {
    let Some(position) = next else {
        return Ok(());
    };
    let Some(position) = position else {
        return text(xml, "resumptionToken", "");
    };
    let (size, before) = (
        position.size.to_string(),
        position.listed.saturating_sub(part as u64).to_string(),
    );
    let attributes = [("completeListSize", size.as_str()), ("cursor", &before)];
    let known = attributes.into_iter().filter(|_| position.size > 0);
    xml.create_element("resumptionToken")
        .with_attributes(known)
        .write_text_content(BytesText::new(&position.to_token()))
        .map(drop)
}

fn within(
    xml: &mut Xml,
    name: &str,
    attributes: &[(&str, &str)],
    write: impl FnOnce(&mut Xml) -> io::Result<()>,
) -> io::Result<()> {
    let start = BytesStart::new(name).with_attributes(attributes.iter().copied());
    xml.write_event(Event::Start(start))?;
    write(xml)?;
    xml.write_event(Event::End(BytesEnd::new(name)))
}

fn text(xml: &mut Xml, name: &str, value: &str) -> io::Result<()> {
    xml.create_element(name)
        .write_text_content(BytesText::new(value))
        .map(drop)
}

/// A sentence without characters that XML cannot represent, shortened to a maximum length.
fn quoted(sentence: &str) -> String {
    let characters = sentence.chars().map(|character| match character {
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
            '\u{fffd}'
        }
        character => character,
    });
    let mut short: String = characters.clone().take(LONGEST_QUOTE).collect();
    if characters.count() > LONGEST_QUOTE {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::super::fault::OaiErrorCode;
    use super::*;

    fn answer(arguments: &[(&str, &str)], reply: OaiContent) -> String {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let arguments: Vec<(String, String)> = arguments.iter().map(owned).collect();
        let answer = OaiAnswer {
            base_url: "http://a.example.org/oai",
            at: 1,
            arguments: &arguments,
            reply,
        };
        String::from_utf8(answer.to_xml()).expect("UTF-8")
    }

    const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">
 <responseDate>1970-01-01T00:00:01Z</responseDate>
"#;

    #[test]
    fn records_are_written() {
        let header = |name: &str, is_deleted: bool| Header {
            identifier: format!("oai:a.example.org:{name}"),
            datestamp: 0,
            is_deleted,
            set: "a:b".to_owned(),
        };
        let records = vec![
            OaiRecord {
                header: header("x", false),
                metadata: Some("<oai_dc:dc>&amp;</oai_dc:dc>\n".to_owned()),
            },
            OaiRecord {
                header: header("y", true),
                metadata: None,
            },
        ];
        let position = ListPosition {
            datestamp: 0,
            name: "y".to_owned(),
            until: None,
            format: OaiFormat::OaiDc,
            collection: None,
            listed: 12,
            size: 30,
        };
        let arguments = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc")];
        let expected = format!(
            r#"{HEAD} <request verb="ListRecords" metadataPrefix="oai_dc">http://a.example.org/oai</request>
 <ListRecords>
  <record>
   <header>
    <identifier>oai:a.example.org:x</identifier>
    <datestamp>1970-01-01T00:00:00Z</datestamp>
    <setSpec>a:b</setSpec>
   </header>
   <metadata>
<oai_dc:dc>&amp;</oai_dc:dc>
</metadata>
  </record>
  <record>
   <header status="deleted">
    <identifier>oai:a.example.org:y</identifier>
    <datestamp>1970-01-01T00:00:00Z</datestamp>
    <setSpec>a:b</setSpec>
   </header>
  </record>
  <resumptionToken completeListSize="30" cursor="10">,0,y,12,30</resumptionToken>
 </ListRecords>
</OAI-PMH>
"#
        );
        let written = answer(
            &arguments,
            OaiContent::Records(records.clone(), Some(Some(position))),
        );
        assert_eq!(written, expected);
        let last = answer(&arguments, OaiContent::Records(records.clone(), Some(None)));
        assert!(
            last.contains("<resumptionToken></resumptionToken>"),
            "{last}"
        );
        let only = answer(&arguments, OaiContent::Records(records, None));
        assert!(!only.contains("resumptionToken"), "{only}");
    }

    #[test]
    fn what_others_wrote_is_held() {
        let faults = vec![OaiError::new(
            OaiErrorCode::BadVerb,
            "'<&\u{0}\u{ffff}\u{1b}\"'",
        )];
        let written = answer(&[], OaiContent::Faults(faults));
        let expected = format!(
            "{HEAD} <request>http://a.example.org/oai</request>\n <error code=\"badVerb\">\
             &apos;&lt;&amp;\u{fffd}\u{fffd}\u{fffd}&quot;&apos;</error>\n</OAI-PMH>\n"
        );
        assert_eq!(written, expected);
        let written = answer(
            &[("identifier", "a\"<&>'b")],
            OaiContent::Faults(Vec::new()),
        );
        assert!(
            written.contains("identifier=\"a&quot;&lt;&amp;&gt;&apos;b\""),
            "{written}"
        );
        let long = OaiError::new(OaiErrorCode::BadVerb, "é".repeat(1000));
        let written = answer(&[], OaiContent::Faults(vec![long]));
        assert!(
            written.contains(&format!("{}...<", "é".repeat(400))),
            "{written}"
        );
    }
}
