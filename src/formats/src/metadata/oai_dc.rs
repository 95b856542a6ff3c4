//! oai_dc, the Dublin Core XML of OAI-PMH: parsing and writing.
//!
//! The parser takes the first element `dc` anywhere in a document, so that a whole OAI-PMH response is
//! accepted, and its children in the namespace of Dublin Core, with any prefix. Nothing is fetched and
//! nothing expands: a document type is ignored, and only the five standard entities and character references
//! are known. The output is valid under the schema of OAI-PMH, but may lack elements that a use requires.

use quick_xml::NsReader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::ResolveResult;

use super::decode::line_at;
use super::error::beginning;
use super::xml::{MAX_DEPTH, decode_xml, position};
use super::{DublinCore, Element, MetadataError, check_size};

/// The namespace of oai_dc.
pub const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
/// The URL of its schema.
pub const OAI_DC_SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd";
const DC: &str = "http://purl.org/dc/elements/1.1/";
const TERMS: &str = "http://purl.org/dc/terms/";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

impl DublinCore {
    /// Parses the first Dublin Core record of an XML document in UTF-8 or ISO-8859-1.
    pub fn from_oai_dc(bytes: &[u8]) -> Result<DublinCore, MetadataError> {
        check_size(bytes)?;
        let text = decode_xml(bytes)?;
        match Document::new(&text).read() {
            // Other containers of Dublin Core, such as RDF: all elements in its namespace are the record.
            Err(MetadataError::NoDublinCore) => {
                let mut document = Document::new(&text);
                document.record = Some(DublinCore::default());
                document.is_anywhere = true;
                let record = document.read()?;
                if record.is_empty() {
                    Err(MetadataError::NoDublinCore)
                } else {
                    Ok(record)
                }
            }
            read => read,
        }
    }

    /// The record as an oai_dc document.
    pub fn to_oai_dc(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
            self.to_oai_dc_element()
        )
    }

    /// The record as an oai_dc element for use in another document.
    pub fn to_oai_dc_element(&self) -> String {
        let mut xml = format!(
            "<oai_dc:dc xmlns:oai_dc=\"{OAI_DC}\"\n    \
             xmlns:dc=\"{DC}\"\n    \
             xmlns:xsi=\"{XSI}\"\n    \
             xsi:schemaLocation=\"{OAI_DC} {OAI_DC_SCHEMA}\">\n"
        );
        for (element, value) in self.iter() {
            let name = element.name();
            xml.push_str(&format!("  <dc:{name}>{}</dc:{name}>\n", escape(value)));
        }
        xml.push_str("</oai_dc:dc>\n");
        xml
    }
}

/// The elements in the namespace of Dublin Core that it does not have, each with its line; those of a document that
/// can be read.
pub(super) fn unknown_elements(bytes: &[u8]) -> Vec<(usize, String)> {
    let Ok(text) = decode_xml(bytes) else {
        return Vec::new();
    };
    let mut document = Document::new(&text);
    document.unknown = Some(Vec::new());
    match document.walk() {
        Ok(()) => document.unknown.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

struct Document<'a> {
    text: &'a str,
    reader: NsReader<&'a [u8]>,
    /// The open elements: the position and name of each.
    open: Vec<(usize, String)>,
    record: Option<DublinCore>,
    /// The number of elements that were open when the record began, including its own.
    record_depth: usize,
    /// The current element of the record, and its text so far.
    current: Option<(Element, String)>,
    /// Dates, which are added at the end, the best of them first.
    dates: Vec<(usize, String)>,
    /// The rank of the date that is being read.
    date_rank: usize,
    /// Whether the record has ended; later records are ignored.
    ended: bool,
    /// Whether elements of the record are wherever their namespace is.
    is_anywhere: bool,
    /// The elements in the namespace that Dublin Core does not have, if they are wanted.
    unknown: Option<Vec<(usize, String)>>,
}

/// Dates, the best of them first: the others say what happened to the record or to the file.
const DATES: &[&str] = &["issued", "date", "created", "dateCopyrighted"];

/// The element that a term of DCMI refines, or has the name of.
fn term(name: &str) -> Option<Element> {
    Element::from_name(name).or_else(|| {
        Some(match name {
            "alternative" => Element::Title,
            "abstract" | "tableOfContents" => Element::Description,
            "issued" | "created" | "available" | "dateAccepted" | "dateCopyrighted"
            | "dateSubmitted" | "modified" | "valid" => Element::Date,
            "extent" | "medium" => Element::Format,
            "bibliographicCitation" => Element::Identifier,
            "spatial" | "temporal" => Element::Coverage,
            "license" | "accessRights" | "rightsHolder" => Element::Rights,
            "isPartOf" | "hasPart" | "isVersionOf" | "hasVersion" | "isFormatOf" | "hasFormat"
            | "isReferencedBy" | "references" | "isReplacedBy" | "replaces" | "isRequiredBy"
            | "requires" | "conformsTo" => Element::Relation,
            _ => return None,
        })
    })
}

/// The most unknown elements that are returned.
const MOST_UNKNOWN: usize = 100;

impl<'a> Document<'a> {
    fn new(text: &'a str) -> Self {
        let mut reader = NsReader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Document {
            text,
            reader,
            open: Vec::new(),
            record: None,
            record_depth: 0,
            current: None,
            dates: Vec::new(),
            date_rank: 0,
            ended: false,
            is_anywhere: false,
            unknown: None,
        }
    }

    fn read(mut self) -> Result<DublinCore, MetadataError> {
        self.walk()?;
        let mut record = self.record.ok_or(MetadataError::NoDublinCore)?;
        // The sort keeps the order of those of one rank.
        self.dates.sort_by_key(|(rank, _)| *rank);
        for (_, date) in self.dates {
            record.push(Element::Date, date);
        }
        Ok(record)
    }

    fn walk(&mut self) -> Result<(), MetadataError> {
        loop {
            let start = position(self.reader.buffer_position());
            match self.reader.read_event() {
                Err(_) => return Err(self.bad_xml(position(self.reader.error_position()))),
                Ok(Event::Eof) => break,
                Ok(Event::Start(element)) => self.start(start, &element)?,
                Ok(Event::End(_)) => self.end(),
                Ok(Event::Text(text)) => self.add(&text.into_inner()),
                Ok(Event::CData(text)) => self.add(&text.into_inner()),
                Ok(Event::GeneralRef(reference)) => self.reference(start, &reference)?,
                Ok(_) => {}
            }
        }
        if let Some((start, name)) = self.open.last() {
            return Err(MetadataError::NotClosed {
                line: self.line(*start),
                name: beginning(name),
            });
        }
        Ok(())
    }

    fn start(&mut self, start: usize, element: &BytesStart<'_>) -> Result<(), MetadataError> {
        self.open.push((start, element.name().as_ref().to_string()));
        if self.open.len() > MAX_DEPTH {
            return Err(MetadataError::TooDeep {
                line: self.line(start),
                limit: MAX_DEPTH,
            });
        }
        let (namespace, local) = self.reader.resolver().resolve_element(element.name());
        let local = local.as_ref();
        let is_simple =
            matches!(&namespace, ResolveResult::Bound(namespace) if namespace.as_ref() == DC);
        let (in_dublin_core, element) = match namespace {
            ResolveResult::Unknown(prefix) => {
                return Err(MetadataError::UnknownPrefix {
                    line: self.line(start),
                    prefix: beginning(&prefix),
                });
            }
            _ if is_simple => (true, Element::from_name(local)),
            ResolveResult::Bound(namespace) if namespace.as_ref() == TERMS => (true, term(local)),
            _ => (false, None),
        };
        let is_unknown = is_simple && element.is_none() && local != "dc";
        if is_unknown
            && self
                .unknown
                .as_ref()
                .is_some_and(|unknown| unknown.len() < MOST_UNKNOWN)
        {
            let found = (self.line(start), local.to_owned());
            if let Some(unknown) = &mut self.unknown {
                unknown.push(found);
            }
        }
        let is_member = match &self.record {
            Some(_) if self.is_anywhere => true,
            Some(_) => !self.ended && self.open.len() == self.record_depth + 1,
            None if local == "dc" => {
                self.record = Some(DublinCore::default());
                self.record_depth = self.open.len();
                false
            }
            None => false,
        };
        if is_member && in_dublin_core {
            let rank = DATES.iter().position(|name| *name == local);
            self.date_rank = rank.unwrap_or(DATES.len());
            self.current = element.map(|element| (element, String::new()));
            if self.is_anywhere && element.is_some() {
                self.record_depth = self.open.len() - 1;
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        // The members of a list of RDF are values of their own.
        let is_value_of_list = self.open.pop().is_some_and(|(_, name)| name == "rdf:li");
        if self.open.len() <= self.record_depth {
            if let Some((element, value)) = self.current.take() {
                self.push(element, value);
            }
        } else if is_value_of_list && let Some((element, value)) = &mut self.current {
            let (element, value) = (*element, std::mem::take(value));
            self.push(element, value);
        }
        if !self.is_anywhere && self.record.is_some() && self.open.len() < self.record_depth {
            self.ended = true;
        }
    }

    fn push(&mut self, element: Element, value: String) {
        if element == Element::Date {
            self.dates.push((self.date_rank, value));
        } else if let Some(record) = &mut self.record {
            record.push(element, value);
        }
    }

    fn add(&mut self, text: &str) {
        if let Some((_, value)) = &mut self.current {
            value.push_str(text);
        }
    }

    fn reference(&mut self, start: usize, reference: &BytesRef<'_>) -> Result<(), MetadataError> {
        match reference.resolve_char_ref() {
            Err(_) => return Err(self.bad_xml(start)),
            Ok(Some(character)) => self.add(character.encode_utf8(&mut [0; 4])),
            Ok(None) => match resolve_predefined_entity(reference) {
                Some(text) => self.add(text),
                None => {
                    return Err(MetadataError::UnknownEntity {
                        line: self.line(start),
                        name: beginning(reference),
                    });
                }
            },
        }
        Ok(())
    }

    fn line(&self, place: usize) -> usize {
        line_at(self.text.as_bytes(), place)
    }

    fn bad_xml(&self, place: usize) -> MetadataError {
        let text = beginning(self.text.get(place..).unwrap_or_default());
        MetadataError::BadXml {
            line: self.line(place),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str = "xmlns:o='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:d='http://purl.org/dc/elements/1.1/'";

    #[track_caller]
    fn reads(bytes: &[u8], expected: &str) {
        let shown = DublinCore::from_oai_dc(bytes)
            .map_or_else(|error| error.to_string(), |record| record.to_text());
        assert_eq!(shown, expected, "{}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn documents_are_read() {
        let cases = [
            (
                "<d:title>A &amp; B &lt;c&gt; &#233;&#xE9;</d:title>",
                "title: A & B <c> éé\n",
            ),
            (
                "<d:title xml:lang='pt'>a</d:title><d:title>b</d:title>",
                "title: a\ntitle: b\n",
            ),
            (
                "<d:title><![CDATA[<a> & ]]>b<!-- c --></d:title>",
                "title: <a> & b\n",
            ),
            ("<d:title>\n  a\n  b\n</d:title><d:date/>", "title: a b\n"),
            ("<d:title>a<b>c</b>d</d:title>", "title: acd\n"),
            (
                "<title>a</title><d:unknown>b</d:unknown><x><d:date>c</d:date></x>",
                "",
            ),
            (
                "<title xmlns='http://purl.org/dc/elements/1.1/'>a</title>",
                "title: a\n",
            ),
            ("<d:title>a&#1;b</d:title>", "title: ab\n"),
        ];
        for (inner, expected) in cases {
            reads(
                format!("<o:dc {DECLARED}>{inner}</o:dc>").as_bytes(),
                expected,
            );
        }
    }

    #[test]
    fn documents_are_found_and_decoded() {
        let record = "<dc xmlns='http://purl.org/dc/elements/1.1/'><title>S\u{e3}o</title></dc>";
        let latin = record
            .chars()
            .map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?'));
        let latin: Vec<u8> = b"<?xml version='1.0' encoding='ISO-8859-1'?>"
            .iter()
            .copied()
            .chain(latin)
            .collect();
        let answer = format!(
            "<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><GetRecord><record><header><identifier>x</identifier>\
             </header><metadata>{record}</metadata></record><record><metadata><o:dc {DECLARED}><d:title>second</d:title>\
             </o:dc></metadata></record></GetRecord></OAI-PMH>"
        );
        let marked = format!("\u{feff}<?xml version='1.0' encoding='ISO-8859-1'?>{record}");
        let typed = format!("<!DOCTYPE dc SYSTEM 'http://x/y.dtd' [<!ENTITY a 'b'>]>{record}");
        let cases: [(&[u8], &str); 9] = [
            (record.as_bytes(), "title: São\n"),
            (&latin, "title: São\n"),
            (marked.as_bytes(), "title: São\n"),
            (typed.as_bytes(), "title: São\n"),
            (answer.as_bytes(), "title: São\n"),
            (
                &latin[43..],
                "line 1 of the metadata is not UTF-8: '<dc xmlns='http://purl.org/dc/elements/1...'",
            ),
            (
                b"\xff\xfe<\0",
                "XML in the encoding 'UTF-16' is not read, only in UTF-8 and ISO-8859-1",
            ),
            (
                b"<?xml version='1.0' encoding='Shift_JIS'?><dc/>",
                "XML in the encoding 'shift_jis' is not read, only in UTF-8 and ISO-8859-1",
            ),
            (b"<dc/>", ""),
        ];
        for (bytes, expected) in cases {
            reads(bytes, expected);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("", "the XML has no Dublin Core record, no element 'dc'"),
            (
                "<html/>",
                "the XML has no Dublin Core record, no element 'dc'",
            ),
            (
                "<dc>\n<title>a",
                "the XML ends inside the element 'title' that begins on line 2",
            ),
            (
                "<dc>\n</title>",
                "line 2 of the XML is not well formed near '</title>'",
            ),
            (
                "<dc>\n<title",
                "line 2 of the XML is not well formed near '<title'",
            ),
            (
                "<dc>\n<title></title=\u{1b}[2J\n></dc>",
                "line 2 of the XML is not well formed near '</title=\\u{1b}[2J\\n></dc>'",
            ),
            (
                "<dc>\n<d:title/></dc>",
                "line 2 of the XML has the prefix 'd' that is bound to no namespace",
            ),
            (
                "<dc>&#0;</dc>",
                "line 1 of the XML is not well formed near '&#0;</dc>'",
            ),
            (
                "<dc>\n\n&eacute;</dc>",
                "line 3 of the XML refers to the unknown entity 'eacute'; only amp, lt, gt, apos and quot are known",
            ),
        ];
        for (text, expected) in cases {
            reads(text.as_bytes(), expected);
        }
        reads(
            "<a>".repeat(100_000).as_bytes(),
            "line 1 of the XML nests more than 64 elements",
        );
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut record = DublinCore::default();
        for element in Element::ALL {
            for value in [
                "<&>\"'",
                "]]>",
                "São José — 日本 😀",
                "a\u{0}\u{1f}b\r\nc",
                "&amp;",
                "\u{7f}\u{9f}",
            ] {
                record.push(element, value);
            }
        }
        let xml = record.to_oai_dc();
        assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<oai_dc:dc "));
        assert!(xml.ends_with("</oai_dc:dc>\n"));
        assert_eq!(DublinCore::from_oai_dc(xml.as_bytes()).ok(), Some(record));
    }
}
