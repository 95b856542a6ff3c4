//! Events of an item that others tell: those of before it arrived, from the Archive where it was or from a package.
//!
//! Each is an event of its own of the Archive where the item has arrived, of the kind `told`: by whom it is told, and the event
//! as that one says it was. Nothing of it is checked, and nothing of it is an event of this Archive.

use serde_json::{Map, Value, json};

use super::{EventKind, Told};
use ibi::Timestamp;

/// The most events that one item brings along.
pub const MOST_EARLIER: usize = 500;

/// The most that tell an event, one of the other.
const MOST_TELLERS: usize = 8;

/// The longest event with those who tell it, in bytes.
const LONGEST: usize = 16 << 10;

/// The fields of an event that are told.
const FIELDS: [&str; 7] = [
    "time", "event", "type", "agent", "program", "outcome", "note",
];

/// An event, and those who tell it: the one from whom it came first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Earlier {
    by: Vec<String>,
    event: String,
}

impl Earlier {
    /// The event of a line that someone tells. None if it is none, or too long.
    #[must_use]
    pub fn of_line(line: &str, teller: &str) -> Option<Earlier> {
        if line.len() > LONGEST {
            return None;
        }
        let told = Told::parse(line)?;
        let mut by = vec![teller.to_owned()];
        let event = match told.earlier {
            Some(event) => {
                by.extend(told.by);
                event.line
            }
            None => told.line,
        };
        let mut fields: Map<String, Value> = serde_json::from_str(&event).ok()?;
        fields.retain(|name, value| FIELDS.contains(&name.as_str()) && value.is_string());
        let event = Value::Object(fields).to_string();
        let length = by.iter().map(String::len).sum::<usize>() + event.len();
        (by.len() <= MOST_TELLERS && length <= LONGEST).then_some(Earlier { by, event })
    }

    /// Whether one of those who tell it has this name.
    #[must_use]
    pub fn is_by(&self, name: &str) -> bool {
        self.by.iter().any(|by| by == name)
    }

    /// The fields of the line of an event that tells it.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let event: Value = serde_json::from_str(&self.event).unwrap_or_default();
        let fields = [("by", json!(self.by)), ("earlier", event)];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    /// The event that a line tells of another one. None if it tells of none.
    #[must_use]
    pub fn in_told(told: &Told) -> Option<Earlier> {
        Some(Earlier {
            event: told.earlier.as_ref()?.line.clone(),
            by: told.by.clone(),
        })
    }
}

/// The line of an event that another Archive tells by other means than a line.
#[must_use]
pub fn line_of(kind: EventKind, at: &Timestamp, note: &str) -> String {
    let (time, event) = (at.to_rfc3339(), kind.word());
    json!({"time": time, "event": event, "note": note}).to_string()
}

/// Those who tell an event, as one text; None of an event that is told by its Archive itself.
#[must_use]
pub fn tellers(told: &Told) -> Option<String> {
    told.earlier.as_ref().map(|_| told.by.join(", "))
}

/// The event as it was, or the one that it tells.
#[must_use]
pub fn as_it_was(told: &Told) -> &Told {
    told.earlier.as_deref().unwrap_or(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(note: &str) -> String {
        format!(
            "{{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"minted\",\"item\":\"8JMKD3MGP8W/34PGRBS\",\"agent\":\"ana\",\"uid\":7,\
             \"program\":\"p 1\",\"host\":\"pc\",\"outcome\":\"success\",\"note\":\"{note}\"}}"
        )
    }

    /// The line of an Archive to which an event was told.
    fn told(earlier: &Earlier) -> String {
        let mut fields = Map::new();
        fields.insert("time".to_owned(), json!("1970-01-02T00:00:00Z"));
        fields.insert("event".to_owned(), json!("told"));
        fields.insert("agent".to_owned(), json!("root"));
        fields.insert("uid".to_owned(), json!(0));
        fields.extend(earlier.fields());
        Value::Object(fields).to_string()
    }

    #[test]
    fn an_event_goes_from_archive_to_archive() {
        let first = Earlier::of_line(&line("x"), "a.example.org").expect("an event");
        let read = Told::parse(&told(&first)).expect("an event");
        assert_eq!((read.event.as_str(), read.agent.as_str()), ("told", "root"));
        assert_eq!(Earlier::in_told(&read).as_ref(), Some(&first));
        let event = as_it_was(&read);
        assert_eq!(
            event.line,
            "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"minted\",\"agent\":\"ana\",\"program\":\"p 1\",\"outcome\":\"success\",\"note\":\"x\"}"
        );
        assert_eq!((event.uid, event.item.as_str()), (None, ""));
        let second = Earlier::of_line(&told(&first), "b.example.org").expect("an event");
        let read = Told::parse(&told(&second)).expect("an event");
        assert_eq!(
            tellers(&read).as_deref(),
            Some("b.example.org, a.example.org")
        );
        assert_eq!(as_it_was(&read).event, "minted");
        assert!(second.is_by("a.example.org") && !first.is_by("b.example.org"));
        // The public is told of no user.
        let public = read.for_public().expect("an event");
        assert_eq!(public.line.matches("ana").count(), 0, "{}", public.line);
        assert_eq!(as_it_was(&public).agent, "user");
        assert_eq!(tellers(&public), tellers(&read));
    }

    #[test]
    fn what_is_told_has_bounds() {
        assert!(Earlier::of_line(&line(&"x".repeat(LONGEST)), "a").is_none());
        assert!(Earlier::of_line("{}", "a").is_none());
        assert!(Earlier::of_line(&"[".repeat(10_000), "a").is_none());
        let mut earlier = Earlier::of_line(&line(""), "a").expect("an event");
        for _ in 1..MOST_TELLERS {
            earlier = Earlier::of_line(&told(&earlier), "a").expect("an event");
        }
        assert_eq!(Earlier::of_line(&told(&earlier), "a"), None);
        // An event in an event in an event is none.
        let nested = told(&earlier).replace(
            "\"note\":\"\"",
            "\"earlier\":{\"event\":\"x\",\"time\":\"1970-01-01T00:00:00Z\"}",
        );
        let read = Told::parse(&nested).expect("an event");
        assert!(read.earlier.is_some_and(|it| it.earlier.is_none()));
        for wrong in ["7", "[]", "{}", "\"x\"", "null"] {
            let line = format!(
                "{{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"told\",\"by\":{wrong},\"earlier\":{wrong}}}"
            );
            let read = Told::parse(&line).expect("an event");
            assert!(read.earlier.is_none() && read.by.is_empty(), "{wrong}");
        }
    }
}
