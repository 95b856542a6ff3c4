//! The events of an item as readers are told of them, and as packages have them.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Archive, ArchiveError, ReadAs};
use crate::archive::store::{EventRow, Item};
use crate::formats::description::DescriptionFormat;
use crate::formats::history::{EventKind, Told, entry};
use crate::formats::item::Names;
use crate::formats::premis::{self, PremisEvent};
use ibi::Ibi;

/// The most events of an item of which readers are told: the latest.
pub const MOST_TOLD: usize = 1_000;

impl Archive {
    /// Whether an item is described in a format: in all of them but PREMIS, for which it needs a history.
    pub fn has_format(&self, item: &Item, format: DescriptionFormat) -> Result<bool, ArchiveError> {
        match format {
            DescriptionFormat::Premis => self.has_premis(item),
            _ => Ok(true),
        }
    }

    /// Whether events of an item are or were recorded.
    pub(super) fn has_premis(&self, item: &Item) -> Result<bool, ArchiveError> {
        Ok(self.facts.history || !self.store.latest_events_of(&item.names, 1)?.is_empty())
    }

    /// All events of an item, with who did it: for packages. That it was exported is none of them, or each package would differ
    /// from the one before.
    pub fn premis_events(&self, names: &Names) -> Result<Vec<PremisEvent>, ArchiveError> {
        let mut events = self.told.get().cloned().unwrap_or_default();
        self.each_event(Some(names), |event| {
            events.extend(premis_event(event));
            Ok::<(), ArchiveError>(())
        })?;
        events.retain(|event| event.told.kind() != Some(EventKind::Exported));
        Ok(events)
    }

    /// The same Archive, of a mount, with what its daemon tells of an item.
    #[must_use]
    pub fn told(self, events: Vec<PremisEvent>) -> Archive {
        Archive {
            told: OnceLock::from(events),
            ..self
        }
    }
}

fn premis_event(event: &EventRow) -> Option<PremisEvent> {
    Some(PremisEvent {
        entry: entry(&event.salt, &event.line),
        told: Told::parse(&event.line)?,
    })
}

impl ReadAs<'_> {
    /// The latest events of an item of which the reader may know, at most `most`, in their order, without who did it. One
    /// that names an item which the reader does not see is none of them.
    pub fn events_told(&self, item: &Item, most: usize) -> Result<Vec<PremisEvent>, ArchiveError> {
        if !self.is_public(item)? {
            return Ok(Vec::new());
        }
        let mut shown: HashMap<Ibi, bool> = HashMap::new();
        let mut told = Vec::new();
        let events = self.store.latest_events_of(&item.names, MOST_TOLD)?;
        for event in events.iter().rev().filter_map(premis_event) {
            let mut is_told = true;
            for named in event.told.named() {
                let names = Names::from(named.clone());
                is_told &= match shown.get(&named) {
                    Some(known) => *known,
                    None if names.matches(&item.names) => true,
                    None => {
                        let is_shown = self.is_shown(&names)?;
                        shown.insert(named, is_shown);
                        is_shown
                    }
                };
            }
            if is_told && let Some(public) = event.told.for_public() {
                let told_here = PremisEvent {
                    told: public,
                    ..event
                };
                told.push(told_here);
            }
            if told.len() == most {
                break;
            }
        }
        told.reverse();
        Ok(told)
    }

    /// The events of an item in PREMIS.
    pub(super) fn premis(&self, item: &Item) -> Result<String, ArchiveError> {
        let events = self.events_told(item, MOST_TOLD)?;
        Ok(premis::document(
            &item.names,
            std::iter::empty(),
            &events,
            None,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestArchive;
    use super::*;
    use crate::archive::store::By;
    use crate::formats::history::EventKind;

    fn own(act: &mut dyn FnMut()) {
        act();
    }

    #[test]
    fn readers_are_told_of_what_they_see() {
        let archive = TestArchive::new();
        archive.store().begin_history();
        let (one, hidden) = (archive.new_item(), archive.new_item());
        let relation = format!("ibi.nextedition {}", hidden.names.preferred());
        let tell = |kind, item: &Item, note: &str| {
            let told = archive
                .store()
                .tell(By::User(4_711), kind, Some(&item.names), note);
            told.expect("told");
        };
        tell(EventKind::Withdrawn, &one, "1 < 2");
        tell(EventKind::Related, &one, &relation);
        tell(EventKind::Changed, &one, "doc/secret");
        let told = |item: &Item, most: usize| {
            let events = archive.read_as(&own).events_told(item, most);
            let events = events.expect("read").into_iter();
            events
                .map(|event| (event.told.event, event.told.note))
                .collect::<Vec<_>>()
        };
        let event = |word: &str, note: &str| (word.to_owned(), note.to_owned());
        let all = [
            event("minted", ""),
            event("withdrawn", "1 < 2"),
            event("related", &relation),
            event("changed", ""),
        ];
        assert_eq!(told(&one, MOST_TOLD), all);
        assert_eq!(told(&one, 1), all[3..]);
        let document = archive.read_as(&own).premis(&one).expect("a document");
        assert!(!document.contains("4711") && document.contains("1 &lt; 2"));
        assert!(archive.premis_events(&one.names).expect("events").len() == 4);

        let path = archive.file(&hidden, "");
        let path = path.to_str().expect("text").trim_end_matches('/');
        std::fs::rename(path, archive.path().join("hidden")).expect("hidden");
        let mut seen = all.to_vec();
        seen.remove(2);
        assert_eq!(told(&one, MOST_TOLD), seen);
        assert_eq!(told(&one, 2), seen[1..]);
        assert_eq!(told(&hidden, MOST_TOLD), []);
    }

    #[test]
    fn premis_is_a_format_of_items_with_events() {
        let archive = TestArchive::new();
        let before = archive.new_item();
        archive.store().begin_history();
        let after = archive.new_item();
        let has = |item: &Item, format| archive.has_format(item, format).expect("read");
        assert!(has(&after, DescriptionFormat::Premis));
        assert!(!has(&before, DescriptionFormat::Premis));
        assert!(has(&before, DescriptionFormat::OaiDc));
        let formats = |item: &Item| {
            let format = DescriptionFormat::Formats;
            let text = archive.read_as(&own).document(item, None, format);
            text.expect("the formats").contains("\npremis\t")
        };
        assert!(formats(&after) && !formats(&before));
    }

    #[test]
    fn the_latest_events_are_in_their_order() {
        let archive = TestArchive::new();
        archive.store().begin_history();
        let item = archive.new_item();
        for note in ["1", "2", "3"] {
            let told =
                archive
                    .store()
                    .tell(By::Program, EventKind::Changed, Some(&item.names), note);
            told.expect("told");
        }
        let latest = |most| {
            let events = archive.store().latest_events_of(&item.names, most);
            let events = events.expect("read").into_iter();
            events
                .filter_map(|event| Some(Told::parse(&event.line)?.note))
                .collect::<Vec<_>>()
        };
        assert_eq!(latest(0), [""; 0]);
        assert_eq!(latest(2), ["2", "3"]);
        assert_eq!(latest(9), ["", "1", "2", "3"]);
    }
}
