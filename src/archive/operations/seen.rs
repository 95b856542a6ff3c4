//! The part of an index that concerns some items, as a user may see it: for a command of a user who may not enter the store.
//!
//! The daemon of a mount collects it ([`ReadAs::records_near`]), and the command has it as an Archive whose tree is the mount
//! ([`Archive::of_mount`]). The content of items is so read through the mount, with the rights of the command itself.

use std::collections::{HashSet, VecDeque};
use std::path::Path;

use rustix::io::Errno;

use super::{Archive, ArchiveError, Facts, ReadAs, SystemClock};
use crate::archive::scrub::marks_of;
use crate::archive::store::{Item, ItemId, Record, Speaker, Store};
use crate::archive::tree::{OpenItem, Place, Tree};
use crate::formats::fixity::{Mark, Marks, marks_text, parse_marks};
use crate::formats::item::{Names, Sidecar, State};
use crate::formats::name_spaces::NameSpaces;
use crate::formats::question::Line;
use ibi::pairs::{percent_decode, percent_encode};
use ibi::{AliasPair, Ibi};

/// The most items of one answer.
const MOST_NEAR: usize = 2_000;

/// The most declarations by other items that are followed from one.
const MOST_DECLARATIONS: usize = 1_000;

/// The most damaged files of an item that are told.
const MOST_DAMAGED: usize = 1_000;

/// An item of an index in a line.
#[must_use]
pub fn line_of(word: &str, id: ItemId, record: &Record) -> Line {
    let mut sidecar = Sidecar::new(&record.names);
    sidecar.set_state(record.state);
    if let Some(service) = &record.service {
        sidecar.set_archive_service(service);
    }
    if let Some(at) = &record.removed_at {
        sidecar.set_timestamp(at);
    }
    if let Some(language) = &record.language {
        sidecar.set_language(language);
    }
    if let Some(target) = &record.target {
        sidecar.set_target(target);
    }
    sidecar.set_life(record.life.clone());
    for (kind, target) in &record.relations {
        sidecar.set_relation(kind, target);
    }
    for alias in &record.aliases {
        sidecar.add_alias(alias);
    }
    let text = String::from_utf8_lossy(&sidecar.to_bytes()).into_owned();
    let line = Line::new(word).with("id", id.0).with("sidecar", text);
    match record.speaker {
        Some(speaker) => {
            let line = line.with("uid", speaker.uid);
            line.with_all("gid", speaker.gid)
        }
        None => line,
    }
}

/// The item of a line; None for another one.
#[must_use]
pub fn record_in(line: &Line) -> Option<(ItemId, Record)> {
    let id = ItemId(line.get("id")?.parse().ok()?);
    let sidecar = Sidecar::parse(line.get("sidecar")?.as_bytes()).ok()?;
    let speaker = match line.get("uid") {
        Some(uid) => Some(Speaker {
            uid: uid.parse().ok()?,
            gid: line.get("gid").map(str::parse).transpose().ok()?,
        }),
        None => None,
    };
    let record = Record {
        service: sidecar.archive_service().cloned(),
        language: sidecar.language().copied(),
        target: sidecar.target(),
        removed_at: sidecar.timestamp(),
        life: sidecar.life().clone(),
        relations: sidecar.relations(),
        speaker,
        aliases: sidecar.aliases().to_vec(),
        ..Record::bare(sidecar.names().clone(), sidecar.state()?)
    };
    Some((id, record))
}

/// A damaged or lost file in a line.
#[must_use]
pub fn line_of_mark((path, mark): (Vec<u8>, Mark)) -> Line {
    let text = marks_text(&Marks::from([(path, mark)]));
    Line::new("damaged").with("mark", percent_encode(text))
}

/// The file of a line; None for another one.
#[must_use]
pub fn mark_in(line: &Line) -> Option<(Vec<u8>, Mark)> {
    parse_marks(&percent_decode(line.get("mark")?)).pop_first()
}

/// The lines of a conversation that are items or events, read and written again: for the fuzz targets in `tests/fuzz`.
pub mod lines {
    use super::super::Happened;
    use super::{Line, line_of, record_in};

    /// An item.
    #[must_use]
    pub fn record(line: &Line) -> Option<Line> {
        record_in(line).map(|(id, record)| line_of("item", id, &record))
    }

    /// An event.
    #[must_use]
    pub fn event(line: &Line) -> Option<Line> {
        Happened::in_line(line).map(|event| event.to_line())
    }
}

/// Both names of an item, as its directory in a mount has them: a user of the mount need not be able to enter the store.
#[must_use]
pub fn names_in_mount(path: &Path) -> Option<Names> {
    let name = |attribute| Ibi::parse(&attribute_of(path, attribute)?).ok();
    let names = ["user.ibi.rep", "user.ibi.ibip"].map(name);
    Names::collect(names.into_iter().flatten())
}

/// The value of an attribute, as text.
#[must_use]
pub fn attribute_of(path: &Path, attribute: &str) -> Option<String> {
    let mut buffer = vec![0; 4096];
    let count = rustix::fs::getxattr(path, attribute, &mut buffer[..]).ok()?;
    buffer.truncate(count);
    String::from_utf8(buffer).ok()
}

/// Whether the nearest directory above a path that is there can be read.
fn may_list_above(open: &OpenItem, path: &[u8]) -> bool {
    let mut above = path;
    loop {
        let cut = above.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        above = &above[..cut];
        match open.publish(above) {
            Err(error) if error.errno() == Errno::NOENT && !above.is_empty() => {}
            found => return found.is_ok(),
        }
    }
}

impl ReadAs<'_> {
    /// The record of an item, with those of its relations whose other end the reader may see.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn record_shown(&self, item: &Item) -> Result<Record, ArchiveError> {
        self.record_with(item, |target| self.is_shown(target))
    }

    /// The damaged and lost files of an item that are in directories that the reader may list.
    ///
    /// # Errors
    /// It cannot be found out whether the reader may see the item.
    pub fn marks_shown(&self, item: &Item) -> Result<Marks, ArchiveError> {
        let place = Place::of(&item.names);
        let mut marks = marks_of(&self.tree, place.as_str()).unwrap_or_default();
        if marks.is_empty() || item.state == State::Deleted || !self.is_public(item)? {
            return Ok(Marks::new());
        }
        self.acting(|| {
            let open = self.tree.open_for_reader(&place)?;
            marks.retain(|path, _| may_list_above(&open, path));
            Ok::<(), ArchiveError>(())
        })?;
        Ok(marks.into_iter().take(MOST_DAMAGED).collect())
    }

    /// Calls `visit` with the items of some names and all that are connected with them, as far as the reader may see them.
    /// Fails with the first error of `visit`.
    ///
    /// # Errors
    /// Those of `visit`; the index cannot be read.
    pub fn records_near<E: From<ArchiveError>>(
        &self,
        wanted: impl IntoIterator<Item = Names>,
        mut visit: impl FnMut(ItemId, Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left: VecDeque<Names> = wanted.into_iter().collect();
        let mut known = HashSet::new();
        while let Some(names) = left.pop_front() {
            let found = self.store.find_by_names(&names);
            let Some(item) = found.map_err(ArchiveError::from)? else {
                continue;
            };
            if known.len() >= MOST_NEAR || !known.insert(item.id) || !self.is_public(&item)? {
                continue;
            }
            let record = self.record_shown(&item)?;
            left.extend(record.relations.iter().map(|(_, target)| target.clone()));
            let pointing = self.store.relations_to(&item.names, MOST_DECLARATIONS);
            let pointing = pointing.map_err(ArchiveError::from)?.into_iter();
            left.extend(pointing.map(|(_, source, _)| source.names));
            visit(item.id, record)?;
        }
        Ok(())
    }
}

impl Archive {
    /// The record of an item, with those of its relations whose other end is shown.
    pub(super) fn record_with(
        &self,
        item: &Item,
        is_shown: impl Fn(&Names) -> Result<bool, ArchiveError>,
    ) -> Result<Record, ArchiveError> {
        let mut relations = Vec::new();
        for (kind, target) in self.store.relations_of(item.id)? {
            if is_shown(&target)? {
                relations.push((kind, target));
            }
        }
        let aliases = self.store.aliases_of(item.id)?;
        let aliases = aliases.iter().map(|alias| AliasPair::parse(alias));
        Ok(Record {
            service: item.service.clone(),
            language: item.language,
            target: item.target.clone(),
            removed_at: item.removed_at.clone(),
            life: item.life.clone(),
            relations,
            speaker: self.store.speaker(item.id)?,
            aliases: aliases.filter_map(Result::ok).collect(),
            ..Record::bare(item.names.clone(), item.state)
        })
    }

    /// The Archive of a mount, with the facts and name spaces of a line ([`Archive::facts_line`]), which knows these items
    /// alone. It only reads.
    ///
    /// # Errors
    /// The mount cannot be opened; the line is not valid, or the items contradict each other.
    pub fn of_mount(
        mount_point: &Path,
        facts: &Line,
        records: &[Record],
    ) -> Result<Archive, ArchiveError> {
        let text = |name| facts.get(name).unwrap_or_default().as_bytes();
        let store = Store::temporary()?;
        store.put_new(records)?;
        let tree = Tree::of_mount(mount_point)?;
        let clock = Box::new(SystemClock);
        let archive = Archive::over(Facts::parse(text("text"))?, tree, store, clock, None);
        if let Ok(table) = NameSpaces::parse(text("upn")) {
            let _ = archive.name_spaces.set(table);
        }
        Ok(archive)
    }

    /// The facts of this Archive, without what concerns its store alone, and its table of name spaces.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn facts_line(&self) -> Result<Line, ArchiveError> {
        let facts = Facts {
            index: None,
            ..self.facts.clone()
        };
        let line = Line::new("facts").with("text", facts.to_text());
        Ok(line.with("upn", self.name_spaces()?.to_text()))
    }
}
