//! The events in a document of PREMIS, as lines of JSON like those of a log. A document of other programs has them, too.

use std::collections::HashMap;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde_json::{Map, json};

use super::TELLS;
use crate::history::EventKind;
use crate::item::moment;

/// The deepest nesting of elements.
const MOST_DEEP: usize = 64;

/// The most bytes of a text that is read.
const LONGEST: usize = 8 << 10;

/// The most links of an event to agents.
const MOST_AGENTS: usize = 16;

/// The texts of an event, by the names of elements.
#[derive(Debug, Default)]
struct Found {
    texts: HashMap<String, String>,
    /// The last part of the URI of its type.
    code: Option<String>,
    /// Identifiers and roles of agents.
    agents: Vec<(String, String)>,
}

/// The last events in a document, at most so many, in its order. What cannot be read ends it; nothing is fetched, and no entity
/// is expanded that the document declares.
#[must_use]
pub fn events_in(document: &str, most: usize) -> Vec<String> {
    let mut reader = Reader::from_str(document);
    reader.config_mut().expand_empty_elements = true;
    let mut open: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut found: Option<Found> = None;
    let mut lines = std::collections::VecDeque::new();
    let add = |text: &mut String, more: &str| {
        if text.len() + more.len() <= LONGEST {
            text.push_str(more);
        }
    };
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Eof => break,
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                if open.len() == MOST_DEEP {
                    break;
                }
                text.clear();
                if name == "event" {
                    found = Some(Found::default());
                }
                if let (Some(found), "eventType") = (&mut found, name.as_str()) {
                    let uri = tag.try_get_attribute("valueURI").ok().flatten();
                    let code = uri.and_then(|uri| Some(uri.value.rsplit_once('/')?.1.to_owned()));
                    found.code = code.filter(|code| code.len() <= LONGEST);
                }
                open.push(name);
            }
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                let value = std::mem::take(&mut text).trim().to_owned();
                match (&mut found, name.as_str()) {
                    (Some(_), "event") => {
                        lines.extend(found.take().and_then(|it| it.line()));
                        if lines.len() > most {
                            lines.pop_front();
                        }
                    }
                    (Some(found), "linkingAgentIdentifierValue")
                        if found.agents.len() < MOST_AGENTS =>
                    {
                        found.agents.push((value, String::new()));
                    }
                    (Some(found), "linkingAgentRole") => {
                        if let Some((_, role)) = found.agents.last_mut() {
                            *role = value;
                        }
                    }
                    (
                        Some(found),
                        "eventType" | "eventDateTime" | "eventDetail" | "eventOutcome",
                    ) => {
                        found.texts.insert(name, value);
                    }
                    _ => {}
                }
            }
            Event::Text(part) => add(&mut text, &part.into_inner()),
            Event::CData(part) => add(&mut text, &part.into_inner()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(sign)) => add(&mut text, sign.encode_utf8(&mut [0; 4])),
                _ => add(
                    &mut text,
                    resolve_predefined_entity(&reference).unwrap_or_default(),
                ),
            },
            _ => {}
        }
    }
    lines.into()
}

impl Found {
    /// The line. None if it has no type.
    fn line(self) -> Option<String> {
        let text = |name: &str| self.texts.get(name).map_or("", String::as_str);
        let detail = text("eventDetail");
        // As this program writes it, or as others do.
        let (word, note) = detail.split_once(": ").unwrap_or((detail, ""));
        let (word, note) = match EventKind::of(word) {
            Some(kind) => (kind.word(), note),
            None => (text("eventType"), detail),
        };
        let agent_of = |role: &str| {
            let mut agents = self.agents.iter().filter(|(_, it)| it == role);
            agents.next().map(|(name, _)| name.as_str())
        };
        let program = agent_of("executing program");
        let others = |(name, role): &&(String, String)| {
            role != "executing program" && !name.ends_with(TELLS)
        };
        let user = self.agents.iter().find(others);
        let user = user.map(|(name, _)| without_uid(name));
        let by = self.agents.iter();
        let by: Vec<_> = by
            .filter_map(|(name, _)| name.strip_suffix(TELLS))
            .collect();
        let time = text("eventDateTime");
        let time = moment(time).map_or_else(|| time.to_owned(), |it| it.to_rfc3339());
        let mut line = Map::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                line.insert(name.to_owned(), json!(value));
            }
        };
        put("time", &time);
        put("event", word);
        put("type", self.code.as_deref().unwrap_or_default());
        let program_alone = program.and_then(|program| program.split(' ').next());
        put("agent", user.or(program_alone).unwrap_or_default());
        put("program", program.unwrap_or_default());
        put("outcome", text("eventOutcome"));
        put("note", note);
        if by.is_empty() {
            return (!word.is_empty()).then(|| json!(line).to_string());
        }
        let told =
            json!({ "time": time, "event": EventKind::Told.word(), "by": by, "earlier": line });
        Some(told.to_string())
    }
}

/// The name of a user, as this program identifies one.
fn without_uid(id: &str) -> &str {
    let name = id.strip_suffix(')').and_then(|id| id.rsplit_once(" ("));
    match name {
        Some((name, rest)) if rest.starts_with("uid ") || rest.starts_with("at ") => name,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PremisEvent, document};
    use super::*;
    use crate::history::Told;
    use crate::history::earlier::{Earlier, as_it_was, tellers};
    use crate::item::Names;
    use ibi::Ibi;

    #[test]
    fn events_are_read_as_they_were_written() {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an identifier"));
        let lines = [
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"withdrawn\",\"type\":\"dea\",\"agent\":\"a<b\",\"uid\":7,\"program\":\"ibifs 1\",\"outcome\":\"success\",\"note\":\"1 < 2: x\"}",
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"told\",\"by\":[\"b\",\"a\"],\"earlier\":{\"time\":\"1960-01-01T00:00:00Z\",\"event\":\"minted\",\"agent\":\"ana\",\"program\":\"ibifs 0\",\"outcome\":\"success\"}}",
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"changed\",\"agent\":\"ibifs\",\"program\":\"ibifs 1\",\"outcome\":\"failure\"}",
        ];
        let events = lines.map(|line| PremisEvent {
            entry: [0; 32],
            told: Told::parse(line).expect("an event"),
        });
        let text = document(&names, std::iter::empty(), &events, None);
        let read = events_in(&text, 10);
        let read: Vec<_> = read
            .iter()
            .map(|line| Told::parse(line).expect("an event"))
            .collect();
        assert_eq!(read.len(), 3);
        for (read, written) in read.iter().zip(&events) {
            assert_eq!(tellers(read), tellers(&written.told));
            let (one, other) = (as_it_was(read), as_it_was(&written.told));
            assert_eq!(
                (&one.time, &one.event, &one.program, &one.outcome, &one.note),
                (
                    &other.time,
                    &other.event,
                    &other.program,
                    &other.outcome,
                    &other.note
                )
            );
            assert_eq!(one.agent, other.agent);
        }
        let again = Earlier::of_line(&read[1].line, "c").expect("an event");
        assert!(again.is_by("a") && again.is_by("c"));
        assert_eq!(events_in(&text, 1).len(), 1);
    }

    /// As Archivematica writes them.
    #[test]
    fn events_of_other_programs_are_read() {
        let text = "<mets:x xmlns:mets='m' xmlns:premis='p'><premis:event><premis:eventIdentifier/>\
            <premis:eventType>ingestion</premis:eventType><premis:eventDateTime>2019-10-08T18:20:01+00:00</premis:eventDateTime>\
            <premis:eventDetail>a: &lt;b&gt; &x;</premis:eventDetail><premis:eventOutcomeInformation><premis:eventOutcome>ok</premis:eventOutcome>\
            </premis:eventOutcomeInformation><premis:linkingAgentIdentifier><premis:linkingAgentIdentifierType>x</premis:linkingAgentIdentifierType>\
            <premis:linkingAgentIdentifierValue>Archivematica-1.10</premis:linkingAgentIdentifierValue></premis:linkingAgentIdentifier></premis:event>";
        assert_eq!(
            events_in(text, 10),
            [
                "{\"time\":\"2019-10-08T18:20:01Z\",\"event\":\"ingestion\",\"agent\":\"Archivematica-1.10\",\"outcome\":\"ok\",\"note\":\"a: <b>\"}"
            ]
        );
        for text in [
            "",
            "<event>",
            "<event/>",
            "<a></b>",
            "<event><eventType>x</eventType>",
            &"<event>".repeat(100_000),
            &format!(
                "<event><eventType valueURI='a/{0}'>{0}</eventType></event>",
                "x".repeat(100_000)
            ),
        ] {
            assert_eq!(events_in(text, 10), Vec::<String>::new());
        }
    }
}
