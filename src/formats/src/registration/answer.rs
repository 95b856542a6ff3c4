//! Answers as XML in UTF-8: an `answer` with the `verb` of the request, and in it the value or an
//! `errorMessage`. The names of the elements are those of the protocol.

use quick_xml::escape::escape;

use super::{Document, Verb, WebUrl};
use ibi::relation::{Language, Step};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationAnswer {
    /// The identifier of an actor.
    Actor(String),
    /// The identifier of a document.
    Document(String),
    /// The request was carried out.
    Confirmed(String),
    /// Everything that is registered of a document.
    Registered(Box<DocumentRecord>),
    /// The request was refused, with the reason.
    Refused(String),
}

/// Everything that is registered of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord {
    /// Its identifier.
    pub document: String,
    /// The holding of each actor: first the one that is not a copy, then the copies, the oldest first.
    pub holdings: Vec<Holding>,
}

/// The registration of a document by one actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The identifier of the actor.
    pub actor: String,
    /// Whether it is a copy.
    pub is_copy: bool,
    /// Whether the actor made the identifier, or received it from the actor that made it. If not, the
    /// document counts as an original only for its actor.
    pub is_own: bool,
    /// The actor's description of it.
    pub document: Document,
}

impl DocumentRecord {
    /// The URL for the steps of a request, first where the document is not a copy. With `is_original` only
    /// the original counts, if the maker of the identifier declares it. `nextEditionURL` is the last edition.
    #[must_use]
    pub fn url(&self, steps: &[Step], is_original: bool, languages: &[Language]) -> Option<&str> {
        let mut holdings: Vec<&Holding> = self.holdings.iter().collect();
        holdings.retain(|holding| holding.document.is_original && holding.is_own || !is_original);
        let holdings = || holdings.iter().map(|holding| &holding.document);
        let next = holdings().find_map(|document| document.next.as_ref());
        let url = match (steps, next) {
            ([Step::LastEdition], Some(next)) => Some(next),
            ([] | [Step::LastEdition], _) => {
                let content = holdings().find_map(|document| document.content.as_ref());
                content.map(|content| &content.url)
            }
            ([Step::Metadata(format)], _) | ([Step::LastEdition, Step::Metadata(format)], None) => {
                let metadata =
                    holdings().find_map(|document| document.described(format.as_ref(), languages));
                metadata.map(|metadata| &metadata.url)
            }
            _ => None,
        };
        url.map(WebUrl::as_str)
    }
}

impl RegistrationAnswer {
    /// Whether the request was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, RegistrationAnswer::Refused(_))
    }

    /// The XML document to send, with the verb if it is known.
    #[must_use]
    pub fn to_xml(&self, verb: Option<Verb>) -> String {
        let mut xml = XmlText::default();
        match verb {
            Some(verb) => xml.open(&format!("answer verb=\"{}\"", verb.name())),
            None => xml.open("answer"),
        }
        match self {
            RegistrationAnswer::Actor(id) => xml.element("actorID", id),
            RegistrationAnswer::Document(id) => xml.element("documentID", id),
            RegistrationAnswer::Confirmed(sentence) => xml.element("confirmationMessage", sentence),
            RegistrationAnswer::Refused(sentence) => xml.element("errorMessage", sentence),
            RegistrationAnswer::Registered(record) => xml.record(record),
        }
        xml.close("answer");
        xml.text
    }
}

/// An XML document in construction.
struct XmlText {
    text: String,
    depth: usize,
}

impl Default for XmlText {
    fn default() -> XmlText {
        XmlText {
            text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(),
            depth: 0,
        }
    }
}

impl XmlText {
    fn line(&mut self, line: &str) {
        let indent = "  ".repeat(self.depth);
        self.text.push_str(&format!("{indent}{line}\n"));
    }

    fn open(&mut self, tag: &str) {
        self.line(&format!("<{tag}>"));
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }

    fn element(&mut self, name: &str, value: &str) {
        // Characters that XML cannot represent, even escaped, are replaced.
        let value = value.replace(|c: char| !is_in_xml(c), "\u{fffd}");
        self.line(&format!("<{name}>{}</{name}>", escape(value.as_str())));
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    fn record(&mut self, record: &DocumentRecord) {
        self.open("registration");
        self.element("documentID", &record.document);
        for holding in &record.holdings {
            self.open("actor");
            self.element("actorID", &holding.actor);
            self.holding(holding);
            self.close("actor");
        }
        self.close("registration");
    }

    fn holding(&mut self, holding: &Holding) {
        let document = &holding.document;
        // As in the protocol's example, a copy has no such element: its value could only be `no`.
        if !holding.is_copy {
            let word = if document.is_original { "yes" } else { "no" };
            self.element("originalDocument", word);
        }
        if let Some(content) = &document.content {
            self.element("documentURL", content.url.as_str());
            self.element("documentLastUpdate", content.updated.as_str());
        }
        let fingerprint = document.fingerprint.as_ref();
        self.optional("fingerprint", fingerprint.map(|found| found.as_str()));
        for metadata in &document.metadata {
            self.open("metadata");
            self.element("metadataURL", metadata.url.as_str());
            self.element("metadataLastUpdate", metadata.updated.as_str());
            let format = metadata.format.as_ref();
            self.optional("metadataFormat", format.map(|format| format.as_str()));
            let language = metadata.language.as_ref().map(ToString::to_string);
            self.optional("metadataLanguage", language.as_deref());
            self.close("metadata");
        }
        let previous = document.previous.as_ref();
        self.optional("previousEditionURL", previous.map(|url| url.as_str()));
        let next = document.next.as_ref();
        self.optional("nextEditionURL", next.map(|url| url.as_str()));
    }
}

/// `Char` of XML 1.0.
fn is_in_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
