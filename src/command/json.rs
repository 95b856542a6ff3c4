//! JSON for programs: the objects that ibifs-json(7) describes and `json/ibifs.schema.json` defines. A value
//! has the same form in every command.
//!
//! Sentences are English in every locale. Control characters are escaped, including those from 0x7f on, which
//! JSON allows and a terminal interprets.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::archive::Archive;
use crate::archive::store::Item;
use crate::formats::copies::Gone;
use crate::formats::item::{Names, State};
use ibi::Ibi;
use ibi::relation::RelationKind;

/// A value over several lines.
pub(super) fn pretty(value: &Value) -> String {
    escaped(&format!("{value:#}\n"))
}

/// A value on one line.
pub(super) fn line(value: &Value) -> String {
    escaped(&format!("{value}\n"))
}

fn escaped(json: &str) -> String {
    let mut text = String::new();
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => text.push(character),
        }
    }
    text
}

/// The end of an item, by the word of its Archive.
pub(super) fn gone(gone: Option<&Gone>) -> Value {
    gone.map_or(
        Value::Null,
        |gone| json!({"what": gone.word(), "at": gone.at.to_rfc3339(), "reason": gone.reason}),
    )
}

/// The identifiers of an item: `rep` and `ibip`, null for an unknown form.
pub(super) fn names(names: &Names) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("rep".into(), json!(names.rep().map(ToString::to_string)));
    object.insert("ibip".into(), json!(names.ibip().map(ToString::to_string)));
    object
}

/// An item with the state that the store has for it.
pub(super) fn item(item: &Item) -> Map<String, Value> {
    let removed_at = item.removed_at.as_ref().map(ibi::Timestamp::to_rfc3339);
    item_with(&item.names, item.state, removed_at)
}

/// An item from its parts; a removed one has the time of its removal.
pub(super) fn item_with(
    of: &Names,
    state: State,
    removed_at: Option<String>,
) -> Map<String, Value> {
    let mut object = names(of);
    object.insert("state".into(), json!(state.to_string()));
    if let Some(removed_at) = removed_at {
        object.insert("timestamp".into(), json!(removed_at));
    }
    object
}

/// The identifiers of the item at a place of a store: those that the index has, else the one in its path; nulls if it has none.
pub(super) fn names_at(archive: Option<&Archive>, place: &str) -> Map<String, Value> {
    let (_, name) = place.split_once('/').unwrap_or_default();
    let Ok(name) = Ibi::parse(name).map(Names::from) else {
        return no_names();
    };
    let known = archive.and_then(|it| it.store().find_by_names(&name).ok()?);
    names(&known.map_or(name, |it| it.names))
}

/// The identifiers of an unknown item.
pub(super) fn no_names() -> Map<String, Value> {
    ["rep", "ibip"]
        .into_iter()
        .map(|form| (form.to_owned(), Value::Null))
        .collect()
}

/// The name of a relation: `nextedition`, `translation(pt)`.
pub(super) fn relation(kind: &RelationKind) -> String {
    let pair = kind.pair_name();
    pair.strip_prefix("ibi.").unwrap_or(&pair).to_owned()
}

/// An absolute path, with links resolved as far as possible.
pub(super) fn path(path: &Path) -> String {
    let resolved = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    resolved.as_deref().unwrap_or(path).display().to_string()
}

/// Returns why a command failed, on one line.
#[must_use]
pub fn error(word: &str, status: i32, sentence: &str) -> String {
    line(&json!({ "error": word, "status": status, "sentence": sentence }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_and_read_back() {
        let hostile = "a\u{1b}\u{7f}\u{9b}\n\"é";
        let written = line(&json!({ "text": hostile }));
        assert_eq!(written, "{\"text\":\"a\\u001b\\u007f\\u009b\\n\\\"é\"}\n");
        let read: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(read["text"], hostile);
    }

    #[test]
    fn an_item_has_one_shape() {
        let of = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
        let item = item_with(&of, State::Original, None);
        assert_eq!(
            Value::Object(item),
            json!({ "rep": null, "ibip": "8JMKD3MGP8W/34PGRBS", "state": "Original" })
        );
        assert_eq!(names_at(None, "col/none"), no_names());
        assert_eq!(relation(&RelationKind::NextEdition), "nextedition");
    }
}
