//! Events: what was done to an item or a store, when, by whom and with which outcome, each as one line of JSON.
//!
//! The line is what the log of a store is about: its hash is there, so it never changes. Terms are those of PREMIS, with the
//! codes of `id.loc.gov/vocabulary/preservation/eventType`.
//!
//! - [`earlier`]: events that others tell.

pub mod earlier;

use earlier::Earlier;
use ibi::{Ibi, Timestamp};
use serde_json::{Map, Value, json};

use crate::item::Names;
use crate::tlog::proof::Proof;
use ring::digest::{SHA256, digest};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The item was minted.
    Minted,
    /// It came from elsewhere: it was copied in, imported or adopted.
    Arrived,
    /// Its directory was opened to all.
    Published,
    /// Files in it changed.
    Changed,
    /// Its sidecar changed, other than below.
    Described,
    /// A relation was declared or removed.
    Related,
    /// Owner, group, mode or access control list of its directory changed.
    RightsChanged,
    /// Its files are withheld until an instant, or are not any more.
    Embargoed,
    /// Its files change no more.
    Sealed,
    /// They may again.
    Unsealed,
    /// It is not shown any more.
    Withdrawn,
    /// It was removed.
    Removed,
    /// It is back after it was removed or withdrawn.
    Restored,
    /// The original went to another Archive or came from one.
    Transferred,
    /// A copy of it, or files of one, came from another Archive.
    CopiedIn,
    /// A copy of it, or files of one, went to another Archive.
    CopiedOut,
    /// The original was claimed, which another Archive had removed.
    Claimed,
    /// It was written to a package.
    Exported,
    /// It was made from a package or a table.
    Imported,
    /// The store was mounted.
    Mounted,
    /// It was unmounted.
    Unmounted,
    /// Its index was made again from the tree.
    Reindexed,
    /// Its index was brought up to date with a newer version.
    Upgraded,
    /// The findings of a check were repaired.
    Repaired,
    /// It was checked, and there is no error.
    Checked,
    /// It was checked, and errors are left. It has the word of the other outcome.
    CheckFailed,
    /// `archive.ibi` was changed.
    PolicyChanged,
    /// Its log has got another key.
    NewKey,
    /// Its files were read and compared with what is recorded of them; of the store, those of all items.
    Scrubbed,
    /// Files in it are not what was recorded of them.
    Damaged,
    /// They are again.
    Mended,
    /// The store was copied as a whole.
    BackedUp,
    /// A copy of an item in another place was compared with the item here.
    Audited,
    /// It was compared with a copy, and one of them is not what it should be.
    Differs,
    /// It was tried to get items back from a copy.
    Drilled,
    /// That was tried, and failed. It has the word of the other outcome.
    DrillFailed,
    /// Another Archive, or a package, tells what was done to the item before it arrived.
    Told,
}

/// All kinds: the word, and code and term of PREMIS.
const KINDS: [(EventKind, &str, &str, &str); 35] = [
    (EventKind::Minted, "minted", "cre", "creation"),
    (EventKind::Arrived, "arrived", "ing", "ingestion"),
    (
        EventKind::Published,
        "published",
        "poa",
        "policy assignment",
    ),
    (EventKind::Changed, "changed", "mod", "modification"),
    (
        EventKind::Described,
        "described",
        "mem",
        "metadata modification",
    ),
    (
        EventKind::Related,
        "related",
        "mem",
        "metadata modification",
    ),
    (
        EventKind::RightsChanged,
        "rights",
        "poa",
        "policy assignment",
    ),
    (
        EventKind::Embargoed,
        "embargoed",
        "poa",
        "policy assignment",
    ),
    (EventKind::Sealed, "sealed", "poa", "policy assignment"),
    (EventKind::Unsealed, "unsealed", "poa", "policy assignment"),
    (EventKind::Withdrawn, "withdrawn", "dea", "deaccession"),
    (EventKind::Removed, "removed", "del", "deletion"),
    (EventKind::Restored, "restored", "rec", "recovery"),
    (EventKind::Transferred, "transferred", "tra", "transfer"),
    (EventKind::CopiedIn, "copied-in", "rep", "replication"),
    (EventKind::CopiedOut, "copied-out", "rep", "replication"),
    (EventKind::Claimed, "claimed", "tra", "transfer"),
    (EventKind::Exported, "exported", "exp", "exporting"),
    (EventKind::Imported, "imported", "ing", "ingestion"),
    (EventKind::Mounted, "mounted", "", ""),
    (EventKind::Unmounted, "unmounted", "", ""),
    (
        EventKind::Reindexed,
        "reindexed",
        "mem",
        "metadata modification",
    ),
    (EventKind::Upgraded, "upgraded", "", ""),
    (EventKind::Repaired, "repaired", "rec", "recovery"),
    (EventKind::Checked, "checked", "val", "validation"),
    (
        EventKind::PolicyChanged,
        "policy",
        "poa",
        "policy assignment",
    ),
    (EventKind::NewKey, "new-key", "", ""),
    (EventKind::Scrubbed, "scrubbed", "fix", "fixity check"),
    (EventKind::Damaged, "damaged", "fix", "fixity check"),
    (EventKind::Mended, "mended", "rec", "recovery"),
    (EventKind::BackedUp, "backed-up", "rep", "replication"),
    (EventKind::Audited, "audited", "fix", "fixity check"),
    (EventKind::Differs, "differs", "fix", "fixity check"),
    (EventKind::Drilled, "drilled", "val", "validation"),
    (EventKind::Told, "told", "", ""),
];

impl EventKind {
    fn row(self) -> (&'static str, &'static str, &'static str) {
        let of_word = match self {
            EventKind::CheckFailed => EventKind::Checked,
            EventKind::DrillFailed => EventKind::Drilled,
            kind => kind,
        };
        let row = KINDS.iter().find(|(kind, ..)| *kind == of_word);
        row.map_or(("", "", ""), |(_, word, code, term)| (*word, *code, *term))
    }

    /// The word for it, `minted`.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.row().0
    }

    /// The kind with a word.
    #[must_use]
    pub fn of(word: &str) -> Option<EventKind> {
        let row = KINDS.iter().find(|(_, it, ..)| *it == word);
        row.map(|(kind, ..)| *kind)
    }

    /// The words of all kinds.
    pub fn words() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, word, ..)| *word)
    }

    /// Code and term of PREMIS; None of a store's events that PREMIS has no term for.
    #[must_use]
    pub fn premis(self) -> Option<(&'static str, &'static str)> {
        let (_, code, term) = self.row();
        (!code.is_empty()).then_some((code, term))
    }

    /// Whether it tells if files are what was recorded of them.
    #[must_use]
    pub fn is_of_fixity(self) -> bool {
        matches!(
            self,
            EventKind::Scrubbed
                | EventKind::Damaged
                | EventKind::Mended
                | EventKind::Audited
                | EventKind::Differs
        )
    }

    /// Whether files of the item may have changed with it.
    #[must_use]
    pub fn is_of_content(self) -> bool {
        matches!(
            self,
            EventKind::Minted
                | EventKind::Arrived
                | EventKind::Changed
                | EventKind::Described
                | EventKind::Restored
                | EventKind::Transferred
                | EventKind::CopiedIn
                | EventKind::Imported
                | EventKind::Mended
        )
    }

    /// The outcome of what it tells.
    fn outcome(self) -> &'static str {
        match self {
            EventKind::Damaged
            | EventKind::Differs
            | EventKind::CheckFailed
            | EventKind::DrillFailed => "failure",
            _ => "success",
        }
    }
}

/// The one who has done something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agent {
    /// A user of the system, with the name at the time.
    User {
        /// The number.
        uid: u32,
        /// The name; the number where there is none.
        name: String,
    },
    /// The program by itself, or for an Archive that the note names.
    Program,
}

/// An event to be told.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// The instant.
    pub time: Timestamp,
    /// The kind.
    pub kind: EventKind,
    /// The item; None for an event of the store.
    pub item: Option<&'a Names>,
    /// The one who did it.
    pub agent: Agent,
    /// The program, with its version.
    pub program: &'a str,
    /// The host on which it ran.
    pub host: &'a str,
    /// More about it, such as the reason of a withdrawal; empty if there is no more.
    pub note: String,
    /// The event of another one that it tells.
    pub earlier: Option<&'a Earlier>,
}

impl Event<'_> {
    /// The line, without a newline.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
        put("time", json!(self.time.to_rfc3339()));
        put("event", json!(self.kind.word()));
        if let Some((code, _)) = self.kind.premis() {
            put("type", json!(code));
        }
        if let Some(names) = self.item {
            put("item", json!(names.preferred()));
        }
        match &self.agent {
            Agent::User { uid, name } => {
                put("agent", json!(name));
                put("uid", json!(uid));
            }
            Agent::Program => {
                put("agent", json!(PROGRAM));
            }
        }
        put("program", json!(self.program));
        put("host", json!(self.host));
        put("outcome", json!(self.kind.outcome()));
        if !self.note.is_empty() {
            put("note", json!(self.note));
        }
        line.extend(self.earlier.map(Earlier::fields).into_iter().flatten());
        Value::Object(line).to_string()
    }
}

/// An event as its line tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The line.
    pub line: String,
    /// The instant.
    pub time: Timestamp,
    /// The word for its kind, which a later version may have made.
    pub event: String,
    /// The item; empty for an event of the store.
    pub item: String,
    /// The one who did it.
    pub agent: String,
    /// The number of the user who did it; None of the program, and of one whom the public is told of.
    pub uid: Option<u64>,
    /// The program, with its version.
    pub program: String,
    /// The outcome.
    pub outcome: String,
    /// More about it.
    pub note: String,
    /// Those who tell another event, which this one is of: the one from whom it came first.
    pub by: Vec<String>,
    /// The event, as they say that it was.
    pub earlier: Option<Box<Told>>,
}

/// The item of which the line of an event tells; None of an event of the store.
#[must_use]
pub fn item_in(line: &str) -> Option<Names> {
    let value: Value = serde_json::from_str(line).ok()?;
    let item = value.get("item").and_then(Value::as_str)?;
    Ibi::parse(item).ok().map(Names::from)
}

/// The fields of a line that the public is told.
const PUBLIC_FIELDS: [&str; 9] = [
    "time", "event", "type", "item", "agent", "program", "outcome", "note", "by",
];

/// The kinds whose notes have nothing but what the public sees of an item anyway: dates, digests, names of items and reasons.
const PUBLIC_NOTES: [EventKind; 10] = [
    EventKind::Arrived,
    EventKind::Claimed,
    EventKind::CopiedIn,
    EventKind::CopiedOut,
    EventKind::Embargoed,
    EventKind::Related,
    EventKind::Restored,
    EventKind::Sealed,
    EventKind::Transferred,
    EventKind::Withdrawn,
];

/// The agent of what the program does by itself.
const PROGRAM: &str = "ibifs";

/// The agent in place of each user of whom the public is told.
const SOME_USER: &str = "user";

impl Told {
    /// Reads a line; None if it is none of an event.
    #[must_use]
    pub fn parse(line: &str) -> Option<Told> {
        let value: Value = serde_json::from_str(line).ok()?;
        let earlier = value.get("earlier").filter(|it| it.is_object());
        // Which has none of its own.
        let earlier = earlier.and_then(|it| {
            let it = Told::of_value(it, &it.to_string())?;
            Some(Box::new(it))
        });
        let told = Told::of_value(&value, line)?;
        Some(Told { earlier, ..told })
    }

    fn of_value(value: &Value, line: &str) -> Option<Told> {
        let by = value.get("by").and_then(Value::as_array);
        let by = by.into_iter().flatten().filter_map(Value::as_str);
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let event = text("event").to_owned();
        Some(Told {
            time: Timestamp::parse_rfc3339(text("time")).ok()?,
            item: text("item").to_owned(),
            agent: text("agent").to_owned(),
            uid: value.get("uid").and_then(Value::as_u64),
            program: text("program").to_owned(),
            outcome: text("outcome").to_owned(),
            note: text("note").to_owned(),
            line: line.to_owned(),
            event: (!event.is_empty()).then_some(event)?,
            by: by.map(str::to_owned).collect(),
            earlier: None,
        })
    }

    /// The kind; None of one that a later version has made.
    #[must_use]
    pub fn kind(&self) -> Option<EventKind> {
        EventKind::of(&self.event)
    }

    /// Whether its note may name files of the item.
    #[must_use]
    pub fn names_files(&self) -> bool {
        let names_files = |told: &Told| {
            let kind = told.kind();
            kind.is_none_or(|kind| kind.is_of_fixity() || kind == EventKind::Changed)
        };
        names_files(self) || self.earlier.as_deref().is_some_and(names_files)
    }

    /// The line without the notes.
    #[must_use]
    pub fn without_notes(&self) -> String {
        let mut fields: Map<String, Value> = serde_json::from_str(&self.line).unwrap_or_default();
        fields.remove("note");
        if let Some(Value::Object(earlier)) = fields.get_mut("earlier") {
            earlier.remove("note");
        }
        Value::Object(fields).to_string()
    }

    /// The items that it names, itself and in notes.
    pub fn named(&self) -> impl Iterator<Item = Ibi> {
        let is_around = |sign: char| !sign.is_alphanumeric();
        let earlier = self.earlier.iter().map(|it| it.note.as_str());
        let words = earlier
            .chain([self.note.as_str()])
            .flat_map(|note| note.split([' ', ',']))
            .map(move |word| word.trim_matches(is_around));
        let words = words.chain([self.item.as_str()]);
        words.filter_map(|word| Ibi::parse(word).ok())
    }

    /// Whether each relation in its note has a name that can be read: the last one may have been cut.
    fn names_whole_items(&self) -> bool {
        let mut relations = self.note.split(", ");
        relations.all(|it| {
            it.rsplit(' ')
                .next()
                .is_some_and(|name| Ibi::parse(name).is_ok())
        })
    }

    /// Whether a user did it, not the program.
    #[must_use]
    pub fn is_by_user(&self) -> bool {
        self.uid.is_some() || self.agent != PROGRAM
    }

    /// The same by a user without a name.
    fn by_some_user(&self) -> Option<Told> {
        let mut fields: Map<String, Value> = serde_json::from_str(&self.line).ok()?;
        fields.insert("agent".to_owned(), json!(SOME_USER));
        Told::parse(&Value::Object(fields).to_string())
    }

    /// The same for the public, without what may say who did it and where: names of users are personal data. None if the line
    /// is none of an event.
    #[must_use]
    pub fn for_public(&self) -> Option<Told> {
        let mut fields: Map<String, Value> = serde_json::from_str(&self.line).ok()?;
        fields.retain(|name, _| PUBLIC_FIELDS.contains(&name.as_str()));
        if self.uid.is_some() {
            fields.insert("agent".to_owned(), json!(SOME_USER));
        }
        if let Some(earlier) = &self.earlier {
            let mut event = earlier.for_public()?;
            if event.is_by_user() {
                event = event.by_some_user()?;
            }
            fields.insert(
                "earlier".to_owned(),
                serde_json::from_str(&event.line).ok()?,
            );
        }
        let is_public = self.kind().is_some_and(|kind| PUBLIC_NOTES.contains(&kind));
        if !is_public || self.kind() == Some(EventKind::Related) && !self.names_whole_items() {
            fields.remove("note");
        }
        Told::parse(&Value::Object(fields).to_string())
    }
}

/// The number of random bytes before a line, without which its hash cannot be guessed.
pub const SALT: usize = 16;

/// The entry of a log for a line.
#[must_use]
pub fn entry(salt: &[u8; SALT], line: &str) -> [u8; 32] {
    let digest = digest(&SHA256, &[salt, line.as_bytes()].concat());
    let mut entry = [0; 32];
    entry.copy_from_slice(digest.as_ref());
    entry
}

/// The entry and the line of which a proof is; None if it has none of them.
#[must_use]
pub fn proved(proof: &Proof) -> Option<([u8; 32], String)> {
    let (salt, line) = proof.extra.as_ref()?.split_first_chunk::<SALT>()?;
    let line = String::from_utf8(line.to_vec()).ok()?;
    Told::parse(&line)?;
    Some((entry(salt, &line), line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happened() {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an identifier"));
        let event = Event {
            time: Timestamp::from_unix(0, 5_000_000),
            kind: EventKind::Withdrawn,
            item: Some(&names),
            agent: Agent::User {
                uid: 7,
                name: "ana".to_owned(),
            },
            program: "ibifs 1",
            host: "a",
            note: "wrong \"data\"\n".to_owned(),
            earlier: None,
        };
        let line = event.line();
        assert_eq!(
            line,
            "{\"time\":\"1970-01-01T00:00:00.005Z\",\"event\":\"withdrawn\",\"type\":\"dea\",\
             \"item\":\"8JMKD3MGP8W/34PGRBS\",\"agent\":\"ana\",\"uid\":7,\"program\":\"ibifs 1\",\
             \"host\":\"a\",\"outcome\":\"success\",\"note\":\"wrong \\\"data\\\"\\n\"}"
        );
        let told = Told::parse(&line).expect("an event");
        assert_eq!(
            (told.time, told.event.as_str(), told.note.as_str()),
            (event.time, "withdrawn", "wrong \"data\"\n")
        );
        for wrong in [
            "",
            "{}",
            "[]",
            "{\"time\":\"1970-01-01T00:00:00Z\"}",
            "{\"event\":\"minted\"}",
        ] {
            assert_eq!(Told::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_public_is_not_told_who_did_it() {
        let line = |event: &str| {
            format!(
                "{{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"{event}\",\"agent\":\"ana\",\"uid\":7,\"program\":\"ibifs 1\",\
                 \"host\":\"ana-pc\",\"outcome\":\"success\",\"note\":\"of ana\",\"later\":\"ana\"}}"
            )
        };
        let public = |event: &str| Told::parse(&line(event)).and_then(|it| it.for_public());
        let public = |event: &str| public(event).map(|it| it.line);
        let told = "{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"rights\",\"agent\":\"user\",\"program\":\"ibifs 1\",\"outcome\":\"success\"}";
        assert_eq!(public("rights").as_deref(), Some(told));
        let other = told.replace("rights", "later");
        assert_eq!(public("later").as_deref(), Some(other.as_str()));
        let withdrawn = told.replace("rights", "withdrawn");
        let withdrawn = withdrawn.replace('}', ",\"note\":\"of ana\"}");
        assert_eq!(public("withdrawn").as_deref(), Some(withdrawn.as_str()));
        let related = |note: &str| {
            let line = line("related").replace("of ana", note);
            let public = Told::parse(&line).and_then(|it| it.for_public());
            public.map(|it| it.note)
        };
        let whole = "ibi.nextedition 8JMKD3MGP8W/34PGRBS, -ibi.metadata x.org/a/2020/01.01.00.00";
        assert_eq!(related(whole).as_deref(), Some(whole));
        assert_eq!(related(&whole[..whole.len() - 1]).as_deref(), Some(""));
        let program = line("minted").replace("ana\",\"uid\":7", "ibifs\"");
        let public = Told::parse(&program).and_then(|it| it.for_public());
        assert_eq!(public.map(|it| it.agent).as_deref(), Some("ibifs"));
    }

    #[test]
    fn each_kind_has_one_word() {
        for (kind, word, code, term) in KINDS {
            assert_eq!(EventKind::of(word), Some(kind));
            assert_eq!(kind.word(), word);
            assert_eq!(kind.premis(), (!code.is_empty()).then_some((code, term)));
        }
    }
}
