//! Events of items that other Archives and packages tell.

use std::collections::HashSet;

use super::history::{keeps_history, log_untold};
use super::{Archive, ArchiveError};
use crate::archive::log_files;
use crate::archive::store::{By, Teller};
use crate::formats::history::earlier::{Earlier, MOST_EARLIER, as_it_was};
use crate::formats::history::{EventKind, Told};
use crate::formats::item::Names;

impl Archive {
    /// The lines of the last events of an item, for those to whom it goes, or as the public is told of them if they are not on
    /// this machine. That other items had a part in them is for the public of those to say.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn events_to_tell(
        &self,
        names: &Names,
        is_public: bool,
    ) -> Result<Vec<String>, ArchiveError> {
        let mut events = self.premis_events(names)?;
        let before = events.len().saturating_sub(MOST_EARLIER);
        events.drain(..before);
        // Of others, notes have the names of Archives alone.
        let is_of_item = |told: &Told| {
            as_it_was(told).kind() != Some(EventKind::Related)
                || told.named().all(|it| Names::from(it).matches(names))
        };
        let lines = events.into_iter().filter_map(|event| {
            if is_public {
                event.told.for_public().filter(is_of_item)
            } else {
                Some(event.told)
            }
        });
        Ok(lines.map(|told| told.line).collect())
    }

    /// Records the events that someone tells of an item, without those that are recorded already or are said to come from
    /// this Archive. A failure is logged.
    pub fn tell_earlier(&self, by: By, names: &Names, teller: (&str, &str), lines: &[String]) {
        let told = self.record_earlier(by, names, teller, lines);
        log_untold(EventKind::Told, told);
    }

    fn record_earlier(
        &self,
        by: By,
        names: &Names,
        (teller, note): (&str, &str),
        lines: &[String],
    ) -> Result<(), ArchiveError> {
        let keeps = match self.lock {
            Some(_) => self.store.has_history(),
            None => keeps_history(&self.tree),
        };
        if !keeps || lines.is_empty() {
            return Ok(());
        }
        let mut known = HashSet::new();
        self.each_event(Some(names), |event| {
            known.extend(Told::parse(&event.line).and_then(|told| Earlier::in_told(&told)));
            Ok::<(), ArchiveError>(())
        })?;
        let own = self.facts.service.preferred();
        let last = lines.len().saturating_sub(MOST_EARLIER);
        let events = lines.iter().skip(last);
        let events = events.filter_map(|line| Earlier::of_line(line, teller));
        let events = events.filter(|event| !event.is_by(&own) && known.insert(event.clone()));
        let events: Vec<Earlier> = events.collect();
        if self.lock.is_some() {
            return Ok(self.store.tell_earlier(by, names, note, &events)?);
        }
        let teller = Teller::default();
        for event in &events {
            let line = teller.line(by, EventKind::Told, Some(names), note, Some(event));
            log_files::leave(self.tree.root(), &line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestArchive;
    use super::*;

    #[test]
    fn what_is_told_is_recorded_once() {
        let archive = TestArchive::new();
        archive.store().begin_history();
        let names = archive.new_item().names;
        let line = |note: &str| {
            format!(
                "{{\"time\":\"1970-01-01T00:00:00Z\",\"event\":\"minted\",\"agent\":\"ana\",\"note\":\"{note}\"}}"
            )
        };
        let recorded = || {
            let mut told = Vec::new();
            let done = archive.each_event(Some(&names), |event| {
                told.extend(Told::parse(&event.line).filter(|it| it.earlier.is_some()));
                Ok::<(), ArchiveError>(())
            });
            done.expect("read");
            told
        };
        let tell = |teller: &str, lines: &[String]| {
            archive.tell_earlier(By::User(7), &names, (teller, ""), lines);
            recorded().len()
        };
        assert_eq!(tell("b", &[line("1"), "nonsense".to_owned(), line("2")]), 2);
        assert_eq!(tell("b", &[line("1"), line("2"), line("3"), line("3")]), 3);
        assert_eq!(tell("c", &[line("3")]), 4);
        // It comes back from where it went.
        let told = archive.events_to_tell(&names, false).expect("read");
        let own = archive.facts().service.preferred();
        let back: Vec<_> = told
            .iter()
            .filter_map(|line| Earlier::of_line(line, &own))
            .map(|event| {
                Teller::default().line(By::Program, EventKind::Told, None, "", Some(&event))
            })
            .collect();
        assert_eq!((told.len(), back.len()), (5, 5));
        assert_eq!(tell("b", &back), 4);
        let public = archive.events_to_tell(&names, true).expect("read");
        assert!(
            public.len() == 5 && !public.concat().contains("ana"),
            "{public:?}"
        );
        let many: Vec<_> = (0..MOST_EARLIER + 9)
            .map(|it| line(&format!("n{it}")))
            .collect();
        assert_eq!(tell("d", &many), 4 + MOST_EARLIER);
        assert_eq!(
            recorded()[4].earlier.as_ref().map(|it| it.note.as_str()),
            Some("n9")
        );
        assert_eq!(
            archive.events_to_tell(&names, false).expect("read").len(),
            MOST_EARLIER
        );
    }
}
