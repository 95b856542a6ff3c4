//! Lists of pairs, and sidecars, which are written as lists of pairs.

use std::ops::Range;

use ibi::pairs::{Pairs, Value, percent_decode};
use ibi::relation::{Language, RelationKind};
use ibi::{AliasPair, Ibi, Timestamp};
use ibifs::formats::item::{Names, Sidecar, State};

use super::{sentence, text};

/// How many pairs of a document are changed one by one. Documents may have any number.
const CHANGED: usize = 8;

/// Reads and changes a document as a list of pairs and as a sidecar.
pub fn check(data: &[u8]) {
    let spans = spans(data);
    let pairs = match Pairs::parse(data) {
        Ok(pairs) => pairs,
        Err(error) => {
            assert!(spans.is_none(), "refused, though it follows the grammar");
            sentence(&error);
            assert!(Sidecar::parse(data).is_err());
            return;
        }
    };
    let spans = spans.expect("read, though it does not follow the grammar");
    assert_eq!(pairs.to_bytes(), data);
    assert_eq!(pairs.iter().count(), spans.len());
    for ((name, value), span) in pairs.iter().zip(&spans) {
        assert_eq!(name.as_bytes(), &data[span.name.clone()]);
        assert_eq!(*value, span.value(data));
    }
    for span in spans.iter().take(CHANGED) {
        replaced(data, &pairs, &spans, span);
        removed(data, &pairs, &spans, span);
    }
    added(data, &pairs);
    match Sidecar::parse(data) {
        Ok(read) => sidecar(data, read),
        Err(error) => sentence(&error),
    }
}

/// The place of a pair: its name, and its value with the braces.
struct Span {
    name: Range<usize>,
    written: Range<usize>,
}

impl Span {
    fn value(&self, data: &[u8]) -> Value {
        let written = std::str::from_utf8(&data[self.written.clone()]).expect("ASCII");
        match written
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(inside) => {
                Value::List(inside.split_ascii_whitespace().map(str::to_owned).collect())
            }
            None => Value::Word(written.to_owned()),
        }
    }

    /// The pair with the space before it. `from` is the end of the previous pair.
    fn whole(&self, from: usize) -> Range<usize> {
        from..self.written.end
    }
}

/// A second, simple parser of the grammar in ibi-resolution(7), "List of pairs": the places of the pairs, or
/// None.
fn spans(data: &[u8]) -> Option<Vec<Span>> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let is_letter = |byte: u8| (0x21..=0x7e).contains(&byte) && byte != b'{' && byte != b'}';
    let end = |from: usize, belongs: &dyn Fn(u8) -> bool| {
        let length = data[from..]
            .iter()
            .take_while(|byte| belongs(**byte))
            .count();
        from + length
    };
    let mut spans: Vec<Span> = Vec::new();
    let mut at = 0;
    loop {
        let name_start = end(at, &is_space);
        if name_start == data.len() {
            return Some(spans);
        }
        let name_end = end(name_start, &is_letter);
        let start = end(name_end, &is_space);
        let is_apart = at < name_start || spans.is_empty();
        if !is_apart || name_start == name_end || name_end == start {
            return None;
        }
        at = if data.get(start) == Some(&b'{') {
            let inside = end(start + 1, &|byte| is_space(byte) || is_letter(byte));
            (data.get(inside) == Some(&b'}')).then_some(inside + 1)?
        } else {
            end(start, &is_letter)
        };
        if at == start {
            return None;
        }
        spans.push(Span {
            name: name_start..name_end,
            written: start..at,
        });
    }
}

/// A new value replaces the first value of its name, and the rest stays unchanged.
fn replaced(data: &[u8], pairs: &Pairs, spans: &[Span], span: &Span) {
    let name = &data[span.name.clone()];
    let first = spans
        .iter()
        .find(|other| &data[other.name.clone()] == name)
        .expect("it is there");
    let mut changed = pairs.clone();
    let text = std::str::from_utf8(name).expect("ASCII");
    changed.set(
        text,
        Value::List(vec!["new".to_owned(), "value".to_owned()]),
    );
    let expected = [
        &data[..first.written.start],
        b"{new value}",
        &data[first.written.end..],
    ];
    assert_eq!(changed.to_bytes(), expected.concat());
    assert_eq!(Pairs::parse(&changed.to_bytes()).as_ref(), Ok(&changed));
    // Setting the original value gives the same document again, except for space and order, which the grammar
    // ignores.
    let value = pairs.get(text).expect("it is there").clone();
    changed.set(text, value.clone());
    assert_eq!(changed.get(text), Some(&value));
    assert_eq!(Pairs::parse(&changed.to_bytes()).as_ref(), Ok(&changed));
}

/// All pairs of the name are removed, and the others stay unchanged.
fn removed(data: &[u8], pairs: &Pairs, spans: &[Span], span: &Span) {
    let name = &data[span.name.clone()];
    let mut expected = Vec::new();
    let mut from = 0;
    let mut went_first = None;
    for other in spans {
        let whole = other.whole(from);
        let before = from..other.name.start;
        from = whole.end;
        if &data[other.name.clone()] == name {
            if expected.is_empty() && went_first.is_none() {
                went_first = Some(before);
            }
        } else if let Some(first) = went_first.clone().filter(|_| expected.is_empty()) {
            // The new first pair begins where the document began.
            expected.extend_from_slice(&data[first]);
            expected.extend_from_slice(&data[other.name.start..whole.end]);
        } else {
            expected.extend_from_slice(&data[whole]);
        }
    }
    match went_first.filter(|_| expected.is_empty()) {
        Some(first) => expected.extend_from_slice(&data[first]),
        None => expected.extend_from_slice(&data[from..]),
    }
    let mut changed = pairs.clone();
    let text = std::str::from_utf8(name).expect("ASCII");
    assert!(changed.remove(text));
    assert!(!changed.remove(text));
    assert_eq!(changed.to_bytes(), expected);
    assert_eq!(Pairs::parse(&changed.to_bytes()).as_ref(), Ok(&changed));
    let left = pairs.iter().filter(|(other, _)| *other != text);
    assert!(changed.iter().eq(left));
}

/// A new pair is appended to the document, whatever its name and value contain.
fn added(data: &[u8], pairs: &Pairs) {
    let word = String::from_utf8_lossy(data.get(..64).unwrap_or(data)).into_owned();
    for (name, written) in [
        ("a.new.pair", "a.new.pair"),
        ("näme {x}", "n%C3%A4me%20%7Bx%7D"),
    ] {
        if pairs.get(written).is_some() {
            continue;
        }
        for value in [
            Value::Word(word.clone()),
            Value::List(word.split(' ').map(str::to_owned).collect()),
        ] {
            let mut changed = pairs.clone();
            changed.set(name, value.clone());
            let bytes = changed.to_bytes();
            assert!(bytes.starts_with(data));
            assert_eq!(Pairs::parse(&bytes).as_ref(), Ok(&changed));
            let kept = changed.get(written).expect("the new pair");
            assert!(changed.iter().eq(pairs.iter().chain([(written, kept)])));
            // Words without a `%` are read back unchanged.
            if !word.contains('%') {
                let found = kept.words().iter().map(|word| percent_decode(word));
                let meant = value.words().iter().filter(|word| !word.is_empty());
                assert!(found.eq(meant.map(|word| word.clone().into_bytes())));
            }
        }
    }
    let mut changed = pairs.clone();
    changed.set("", Value::Word(word));
    assert_eq!(changed, *pairs);
}

/// All values can be changed, and the document reads back to the same values.
fn sidecar(data: &[u8], read: Sidecar) {
    assert_eq!(read.to_bytes(), data);
    assert_eq!(
        Names::from_value(&read.names().to_value()).as_ref(),
        Ok(read.names())
    );
    let other = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
    let pt = Language::parse("pt").expect("a language");
    let mut kinds: Vec<RelationKind> = vec![
        RelationKind::NextEdition,
        RelationKind::Translation(pt),
        RelationKind::Metadata,
        RelationKind::EditionOf,
        RelationKind::TranslationOf,
        RelationKind::MetadataOf,
    ];
    kinds.extend(read.relations().iter().take(CHANGED).map(|(kind, _)| *kind));
    for kind in kinds {
        let had = read.relations().iter().any(|(found, _)| *found == kind);
        let mut changed = read.clone();
        changed.set_relation(&kind, &other);
        whole(&changed);
        assert!(changed.relations().contains(&(kind, other.clone())));
        assert!(changed.remove_relation(&kind));
        whole(&changed);
        assert!(changed.relations().iter().all(|(found, _)| *found != kind));
        let mut changed = read.clone();
        assert_eq!(changed.remove_relation(&kind), had);
        whole(&changed);
    }
    let mut changed = read;
    changed.set_names(&other);
    changed.set_archive_service(&other);
    changed.set_language(&pt);
    let target = data.get(..300).unwrap_or(data);
    changed.set_target(target);
    assert_eq!(changed.target_bytes().as_deref(), Some(target));
    let alias = AliasPair::parse("6RPa7umaZ/UaJFT").expect("an alias");
    changed.add_alias(&alias);
    changed.set_state(State::Deleted);
    changed.set_timestamp(&Timestamp::from_unix(1_234_806_360, 500_000_000));
    whole(&changed);
    assert_eq!(changed.names(), &other);
    assert_eq!(
        changed
            .aliases()
            .iter()
            .filter(|found| **found == alias)
            .count(),
        1
    );
    changed.remove_language();
    changed.remove_target();
    whole(&changed);
    assert_eq!((changed.language(), changed.target_bytes()), (None, None));
}

#[track_caller]
fn whole(sidecar: &Sidecar) {
    let bytes = sidecar.to_bytes();
    assert!(text(&bytes).is_some());
    assert_eq!(Sidecar::parse(&bytes).as_ref(), Ok(sidecar));
}
