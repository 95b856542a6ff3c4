//! PREMIS 3.0 (loc.gov/standards/premis): what preservation systems record of an item and of a package. The item is an
//! intellectual entity, each file is an object that is part of it; what was done to the item, and the packing, are events by
//! users and by ibifs.

mod reading;

use std::collections::BTreeMap;

use quick_xml::escape::escape;

use super::hex::Hex;
use super::history::earlier::{as_it_was, tellers};
use super::history::{EventKind, Told};
use super::item::Names;
use super::pronom::Formats;

pub use reading::events_in;

/// The file of a package in which preservation systems look for it (E-ARK CSIP, section 5.4).
pub const PREMIS: &str = "metadata/preservation/premis.xml";
/// The most files that are described; a package of more has no such file.
pub const MOST_FILES: usize = 100_000;

const NAMESPACE: &str = "http://www.loc.gov/premis/v3";
const SCHEMA: &str = "https://www.loc.gov/standards/premis/premis.xsd";
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The vocabularies for values.
const VOCABULARIES: &str = "http://id.loc.gov/vocabulary/preservation";
/// The identifier of the event of packing.
const PACKING: &str = "packing";
/// The end of the identifier of an agent who tells events of others.
const TELLS: &str = " (tells)";
/// This program, as events name it.
const PROGRAM: &str = concat!("ibifs ", env!("CARGO_PKG_VERSION"));

/// A file of a package.
#[derive(Clone, Copy, Debug)]
pub struct PremisFile<'a> {
    /// Its path in the package.
    pub path: &'a str,
    /// Its length in bytes.
    pub length: u64,
    /// Its digest by SHA-512, in hexadecimal digits.
    pub sha512: &'a str,
    /// Its formats, if they were identified.
    pub formats: Option<&'a Formats>,
}

/// An event of an item.
#[derive(Clone, Debug)]
pub struct PremisEvent {
    /// Its entry in the log of the store, which identifies it.
    pub entry: [u8; 32],
    /// What is told of it.
    pub told: Told,
}

/// The agents of events, by their identifiers, with all but these.
type Agents = BTreeMap<String, String>;

/// The document about an item, its files and its events. `packed`: the day on which a package is made (`2009-02-16`).
pub fn document<'a>(
    names: &Names,
    files: impl Iterator<Item = PremisFile<'a>>,
    events: &[PremisEvent],
    packed: Option<&str>,
) -> String {
    let name = names.preferred();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<premis xmlns=\"{NAMESPACE}\"\n    xmlns:xsi=\"{XSI}\"\n    \
         xsi:schemaLocation=\"{NAMESPACE} {SCHEMA}\" version=\"3.0\">\n  \
         <object xsi:type=\"intellectualEntity\">\n"
    );
    let rep = names.rep().map(ToString::to_string);
    let ibip = names.ibip().map(ToString::to_string);
    for name in [rep, ibip].into_iter().flatten() {
        xml.push_str(&format!("    {}\n", identifier("object", "IBI", &name, "")));
    }
    xml.push_str("  </object>\n");
    for file in files {
        xml.push_str(&of_file(&file, &name));
    }
    let mut agents = Agents::new();
    for event in events {
        xml.push_str(&of_event(event, &name, &mut agents));
    }
    if let Some(day) = packed {
        xml.push_str(&format!(
            "  <event>\n    {}\n    <eventType>packing</eventType>\n    \
             <eventDateTime>{day}</eventDateTime>\n    {}\n    {}\n  </event>\n",
            identifier("event", "local", PACKING, ""),
            by_program(PROGRAM, &mut agents),
            identifier("linkingObject", "IBI", &name, ""),
        ));
    }
    for (id, about) in agents {
        xml.push_str(&format!(
            "  <agent>\n    {}\n    {about}\n  </agent>\n",
            identifier("agent", "local", &id, "")
        ));
    }
    xml.push_str("</premis>\n");
    xml
}

fn of_event(event: &PremisEvent, item: &str, agents: &mut Agents) -> String {
    let told = as_it_was(&event.told);
    let kind = match told.kind().and_then(EventKind::premis) {
        Some((code, term)) => of_vocabulary("eventType", code, term),
        None => element("eventType", &told.event),
    };
    let detail = match told.note.as_str() {
        "" => told.event.clone(),
        note => format!("{}: {note}", told.event),
    };
    let outcome = match told.outcome.as_str() {
        "success" => of_vocabulary("eventOutcome", "suc", "success"),
        outcome => element("eventOutcome", outcome),
    };
    let mut by = by_program(&told.program, agents);
    let tellers = tellers(&event.told);
    if told.is_by_user() {
        by = format!("{}\n    {by}", by_user(told, tellers.as_deref(), agents));
    }
    for teller in event.told.earlier.iter().flat_map(|_| &event.told.by) {
        by = format!("{by}\n    {}", by_teller(teller, agents));
    }
    format!(
        "  <event>\n    {}\n    {kind}\n    {}\n    \
         <eventDetailInformation>{}</eventDetailInformation>\n    \
         <eventOutcomeInformation>{outcome}</eventOutcomeInformation>\n    {by}\n    {}\n  </event>\n",
        identifier("event", "local", &Hex(&event.entry).to_string(), ""),
        element("eventDateTime", &told.time.to_rfc3339()),
        element("eventDetail", &detail),
        identifier("linkingObject", "IBI", item, ""),
    )
}

/// The link to the program by which something was done, which is added to the agents.
fn by_program(program: &str, agents: &mut Agents) -> String {
    let (name, version) = program.split_once(' ').unwrap_or((program, ""));
    let mut about = element("agentName", name) + "<agentType>software</agentType>";
    if !version.is_empty() {
        about.push_str(&element("agentVersion", version));
    }
    agents.insert(program.to_owned(), about);
    let role = of_vocabulary("linkingAgentRole", "exe", "executing program");
    identifier("linkingAgent", "local", program, &role)
}

/// The link to one who tells the event. It has no role, since that one did not do it.
fn by_teller(teller: &str, agents: &mut Agents) -> String {
    let about = element("agentName", teller) + "<agentType>organization</agentType>";
    agents.insert(format!("{teller}{TELLS}"), about);
    identifier("linkingAgent", "local", &format!("{teller}{TELLS}"), "")
}

/// The same of a user. Two may have had one name, also at others who tell of them.
fn by_user(told: &Told, tellers: Option<&str>, agents: &mut Agents) -> String {
    let id = match (told.uid, tellers) {
        (Some(uid), _) => format!("{} (uid {uid})", told.agent),
        (None, Some(tellers)) => format!("{} (at {tellers})", told.agent),
        (None, None) => told.agent.clone(),
    };
    let about = element("agentName", &told.agent) + "<agentType>person</agentType>";
    agents.insert(id.clone(), about);
    let role = of_vocabulary("linkingAgentRole", "imp", "implementer");
    identifier("linkingAgent", "local", &id, &role)
}

fn of_file(file: &PremisFile<'_>, item: &str) -> String {
    let media_type = mime_guess::from_path(file.path).first_raw();
    let formats = file.formats.into_iter();
    let mut registered = formats.flat_map(|it| it.puids.iter().map(|puid| in_pronom(puid, it)));
    format!(
        "  <object xsi:type=\"file\">\n    {}\n    <objectCharacteristics>\n      \
         <fixity><messageDigestAlgorithm>SHA-512</messageDigestAlgorithm>\
         <messageDigest>{}</messageDigest></fixity>\n      <size>{}</size>\n      \
         <format><formatDesignation><formatName>{}</formatName></formatDesignation>{}</format>{}\n    \
         </objectCharacteristics>\n    <relationship>\
         <relationshipType>structural</relationshipType><relationshipSubType>is part of</relationshipSubType>{}\
         </relationship>\n  </object>\n",
        identifier("object", "local", file.path, ""),
        file.sha512,
        file.length,
        media_type.unwrap_or("application/octet-stream"),
        registered.next().unwrap_or_default(),
        registered
            .map(|it| format!("\n      <format>{it}</format>"))
            .collect::<String>(),
        identifier("relatedObject", "IBI", item, ""),
    )
}

/// A format in PRONOM, and who has found it when.
fn in_pronom(puid: &str, formats: &Formats) -> String {
    let Formats { tool, day, .. } = formats;
    format!(
        "<formatRegistry><formatRegistryName>PRONOM</formatRegistryName>{}\
         <formatRegistryRole>specification</formatRegistryRole></formatRegistry>{}",
        element("formatRegistryKey", puid),
        element("formatNote", &format!("{tool}, {day}"))
    )
}

/// An identifier: `<xIdentifier>` with its type and its value, and what follows them.
fn identifier(of: &str, kind: &str, value: &str, more: &str) -> String {
    format!(
        "<{of}Identifier><{of}IdentifierType>{kind}</{of}IdentifierType>{}{more}</{of}Identifier>",
        element(&format!("{of}IdentifierValue"), value)
    )
}

/// An element with a text.
fn element(name: &str, text: &str) -> String {
    // XML 1.0 has no control characters, not even as references.
    let text = text.replace(|sign: char| sign.is_control() && sign != '\n', "\u{fffd}");
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    format!("<{name}>{}</{name}>", escape(text))
}

/// An element with a value of a vocabulary of the Library of Congress.
fn of_vocabulary(name: &str, code: &str, term: &str) -> String {
    let vocabulary = match name {
        "linkingAgentRole" => "eventRelatedAgentRole",
        name => name,
    };
    let uri = format!("{VOCABULARIES}/{vocabulary}");
    format!(
        "<{name} authority=\"{vocabulary}\" authorityURI=\"{uri}\" valueURI=\"{uri}/{code}\">{term}</{name}>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixity::Digest;

    #[test]
    fn a_package_is_described() {
        let rep = ibi::Rep::parse("example.org/a/2020/01.01.00.00").expect("a rep");
        let names = Names::new(Some(rep), None).expect("a name");
        let formats = Formats {
            digest: Digest([7; 32]),
            puids: vec!["fmt/18".to_owned(), "fmt/19".to_owned()],
            day: "2026-11-29".to_owned(),
            tool: "a & b".to_owned(),
        };
        let file = PremisFile {
            path: "data/doc/a<b>.pdf",
            length: 30,
            sha512: "ab12",
            formats: Some(&formats),
        };
        let told = |line: &str| PremisEvent {
            entry: [7; 32],
            told: Told::parse(line).expect("an event"),
        };
        let events = [
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"withdrawn\",\"agent\":\"a<b\",\"uid\":7,\"program\":\"ibifs 1\",\
             \"outcome\":\"success\",\"note\":\"1 < 2\\u0001\"}",
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"later\",\"agent\":\"ibifs\",\"program\":\"ibifs 1\",\"outcome\":\"failure\"}",
        ];
        let events = events.map(told);
        let text = document(&names, [file].into_iter(), &events, Some("2020-01-02"));
        for part in [
            "<objectIdentifier><objectIdentifierType>IBI</objectIdentifierType>\
             <objectIdentifierValue>example.org/a/2020/01.01.00.00</objectIdentifierValue></objectIdentifier>",
            "<objectIdentifierValue>data/doc/a&lt;b&gt;.pdf</objectIdentifierValue>",
            "<messageDigest>ab12</messageDigest></fixity>\n      <size>30</size>",
            "<formatName>application/pdf</formatName></formatDesignation><formatRegistry>\
             <formatRegistryName>PRONOM</formatRegistryName><formatRegistryKey>fmt/18</formatRegistryKey>\
             <formatRegistryRole>specification</formatRegistryRole></formatRegistry>\
             <formatNote>a &amp; b, 2026-11-29</formatNote></format>\n      <format><formatRegistry>",
            "<formatRegistryKey>fmt/19</formatRegistryKey>",
            "<eventDateTime>2020-01-02</eventDateTime>",
            "<eventIdentifierValue>0707070707070707070707070707070707070707070707070707070707070707</eventIdentifierValue>",
            "<eventType authority=\"eventType\" authorityURI=\"http://id.loc.gov/vocabulary/preservation/eventType\" \
             valueURI=\"http://id.loc.gov/vocabulary/preservation/eventType/dea\">deaccession</eventType>",
            "<eventType>later</eventType>",
            "<eventDetail>withdrawn: 1 &lt; 2\u{fffd}</eventDetail>",
            "<eventDetail>later</eventDetail>",
            "/eventOutcome/suc\">success</eventOutcome>",
            "<eventOutcome>failure</eventOutcome>",
            "<linkingAgentIdentifierValue>a&lt;b (uid 7)</linkingAgentIdentifierValue><linkingAgentRole",
            "<agentName>a&lt;b</agentName><agentType>person</agentType>",
            "<agentName>ibifs</agentName><agentType>software</agentType><agentVersion>1</agentVersion>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Two versions of the program, and one user.
        assert_eq!(text.matches("<agent>").count(), 3);
    }
}
