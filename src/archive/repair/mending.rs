//! An item whose damaged and lost files are mended, one after the other.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::finding::{RepairCode, RepairFinding};
use super::kept::Kept;
use super::place::{CopyPlace, FetchOutcome, MissingContent, Template};
use super::replacing::{directory_of, like_damaged, like_lost, link, place};
use crate::archive::finding::Reporter;
use crate::archive::manifest::read_digest;
use crate::archive::names_of_place;
use crate::archive::scrub::{
    RecordedDigests, Scrub, ScrubFinding, ScrubOptions, change_marks, damage, damage_found,
    item_digests, marks_of, recorded_digests, recorded_writing,
};
use crate::archive::store::{Item, ItemId};
use crate::archive::transfer::{Incoming, Local, TransferError};
use crate::archive::tree::{Action, DeepEntry, Place, Tree};
use crate::formats::fixity::{Digest, Found, Mark, Marks, shown};
use crate::formats::item::{Names, State};
use crate::os::deep::split;
use crate::os::directory::{Directory, Entry, is_same_file};
use ibi::message;
use ibi::message::{Localize, Message};

/// The number of items that are read from the index at a time.
const PAGE: usize = 500;

/// Notifies the daemon of a mounted store that names of an item lead to other files.
pub type Renewed<'a> = dyn Fn(&Names, &[Vec<u8>]) + 'a;

/// A repair of a store.
#[allow(missing_debug_implementations, reason = "it holds closures")]
pub struct Repair<'a> {
    /// The store, open for changes.
    pub store: &'a Local,
    /// Where content is looked for, in this order.
    pub places: &'a mut [Box<dyn CopyPlace>],
    /// Receives what became of each file.
    pub report: &'a mut Reporter<'a, RepairFinding>,
    /// Receives the names that lead to other files.
    pub renewed: &'a Renewed<'a>,
    /// Receives the number of the item, from 1, and the bytes read.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// The items so far.
    pub items: u64,
    /// The other generations of a backup, if the store is one. They share files, and each that has a damaged one is mended.
    pub generations: Option<&'a [Tree]>,
}

/// The findings of a scrub that no marks tell.
#[derive(Default)]
struct Scrubbed {
    /// The paths whose recorded digests were altered.
    altered: BTreeSet<Vec<u8>>,
    /// The paths that cannot be read, with the reason.
    unread: Vec<(Vec<u8>, Message)>,
}

/// An item that is mended.
struct Patient<'a> {
    names: &'a Names,
    place: &'a str,
    directory: Tree,
    marks: &'a Marks,
    recorded: RecordedDigests,
}

/// A damaged file as it was opened; None for a lost one.
type Opened = Option<(OwnedFd, Stat)>;

impl Repair<'_> {
    /// Reads all items of the store, and mends them.
    pub fn all(&mut self) -> Result<(), TransferError> {
        let mut after = ItemId(0);
        loop {
            let items = self.store.archive().store().items_after(after, PAGE)?;
            let Some(last) = items.last() else {
                return self.unknown();
            };
            after = last.id;
            for item in items.iter().filter(|item| item.state != State::Deleted) {
                self.item(&item.names)?;
            }
        }
    }

    /// Lost items that the index does not have any more.
    fn unknown(&mut self) -> Result<(), TransferError> {
        let archive = self.store.archive();
        for (at, _) in damage(archive.tree()) {
            if let Some(names) = names_of_place(&at)
                && archive.store().find_by_names(&names)?.is_none()
            {
                self.item(&names)?;
            }
        }
        Ok(())
    }

    /// Reads an item, and mends it.
    pub fn item(&mut self, names: &Names) -> Result<(), TransferError> {
        self.items += 1;
        let archive = self.store.archive();
        let item = archive.held(names)?;
        let names = item.as_ref().map_or(names, |item| &item.names);
        let at = Place::of(names);
        let tree = archive.tree();
        if self.generations.is_some() {
            return self.item_of_generation(names, &at);
        }
        let before = marks_of(tree, at.as_str())?;
        if let Some(item) = &item
            && self.store.is_for_changes()
            && tree.read_tombstone(&at)?.is_none()
            && self.store.is_lost(item)?
        {
            if !tree.is_directory(at.as_str()) {
                // It is marked, by which a run after a crash knows that nothing was removed.
                self.scrub(&at)?;
            }
            if !self.is_brought_back(names, &at)? {
                return Ok(());
            }
        }
        let found = self.scrub(&at)?;
        let marks = marks_of(tree, at.as_str())?;
        // A run that was interrupted may not have come to it.
        let whole: Vec<Vec<u8>> = before
            .into_keys()
            .filter(|it| !marks.contains_key(it))
            .collect();
        if !whole.is_empty() {
            (self.renewed)(names, &whole);
        }
        for (path, why) in found.unread {
            if !marks.contains_key(&path) {
                self.tell(at.as_str(), &path, RepairCode::NotReplaced(why))?;
            }
        }
        if marks.is_empty() && found.altered.is_empty() {
            return Ok(());
        }
        if !tree.is_directory(at.as_str()) {
            if !self.store.is_for_changes() {
                return self.tell(at.as_str(), b"", RepairCode::LostItem);
            }
            if self.is_brought_back(names, &at)? {
                self.scrub(&at)?;
            }
            return Ok(());
        }
        self.patient(names, at.as_str(), item.as_ref(), &marks, &found.altered)
    }

    /// Reads an item of a generation, in which nothing is recorded, and mends it.
    fn item_of_generation(&mut self, names: &Names, at: &Place) -> Result<(), TransferError> {
        let tree = self.store.archive().tree();
        if !tree.is_directory(at.as_str()) {
            return self.tell(at.as_str(), b"", RepairCode::LostItem);
        }
        let (number, progress) = (self.items, &mut self.progress);
        let mut count = |_, bytes| progress(number, bytes);
        let found = item_digests(tree, at.as_str(), &mut count)?;
        let marks = damage_found(tree, at.as_str(), &found)?;
        for (path, why) in &found.unread {
            if !marks.contains_key(path) {
                self.tell(at.as_str(), path, RepairCode::NotReplaced(why.clone()))?;
            }
        }
        let altered: BTreeSet<Vec<u8>> = found.altered.into_iter().collect();
        if marks.is_empty() && altered.is_empty() {
            return Ok(());
        }
        self.patient(names, at.as_str(), None, &marks, &altered)
    }

    /// Puts a lost item back, and reports what became of it.
    fn is_brought_back(&mut self, names: &Names, at: &Place) -> Result<bool, TransferError> {
        let mut said = Vec::new();
        // The daemon of a mount takes it for one that is there.
        let is_mounted = !self.store.is_held();
        if is_mounted {
            said.push(message!("unmount the store, and run the command again"));
        }
        for place in self.places.iter_mut().filter(|_| !is_mounted) {
            let name = place.name().to_owned();
            said.push(match place.bring_back(names, self.store) {
                Ok(true) => {
                    let source = Some(place.holder());
                    let code = RepairCode::BroughtBack(name);
                    self.tell_all(at.as_str(), b"", code, (source, None))?;
                    return Ok(true);
                }
                Ok(false) => message!("'{name}' does not have it", name),
                Err(TransferError::Skip(why)) => {
                    message!("'{name}': {why}", name, why = why.sentence())
                }
                Err(error) => message!("'{name}': {why}", name, why = error),
            });
        }
        let detail = (None, Message::joined(said));
        self.tell_all(at.as_str(), b"", RepairCode::LostItem, detail)?;
        Ok(false)
    }

    /// Scrubs an item.
    fn scrub(&mut self, at: &Place) -> Result<Scrubbed, TransferError> {
        let mut found = Scrubbed::default();
        let mut report = |finding: &ScrubFinding| {
            if finding.is_of_unread() {
                found
                    .unread
                    .push((finding.path.clone(), finding.sentence()));
            }
            if finding.is_of_altered_digest() {
                found.altered.insert(finding.path.clone());
            }
            Ok(())
        };
        let (number, progress) = (self.items, &mut self.progress);
        let mut count = |_, bytes| progress(number, bytes);
        let tree = self.store.archive().tree();
        let scrub = Scrub::new(tree, ScrubOptions::default(), &mut report, &mut count)?;
        scrub.some(std::slice::from_ref(at))?;
        Ok(found)
    }

    fn patient(
        &mut self,
        names: &Names,
        at: &str,
        item: Option<&Item>,
        marks: &Marks,
        altered: &BTreeSet<Vec<u8>>,
    ) -> Result<(), TransferError> {
        let tree = self.store.archive().tree();
        let directory = tree.open_item_alone(&Place::of(names))?;
        let patient = Patient {
            names,
            place: at,
            directory,
            marks,
            recorded: RecordedDigests::of(tree, at, i64::MAX).unwrap_or_default(),
        };
        let incoming = Incoming::of(tree, names)?;
        incoming.lock()?;
        // The daemon of a mount follows the change by itself.
        let held = item.filter(|_| self.store.is_held());
        let _content = held.map(|item| self.store.archive().change_content(item.id));
        let mut is_cut = false;
        for (path, mark) in marks {
            // A further name of a file that was mended before it.
            let is_mended = match self.generations {
                None => !marks_of(tree, at)?.contains_key(path),
                Some(_) => is_whole(&patient.directory, path, &mark.recorded),
            };
            if is_mended {
                continue;
            }
            let found = match self.file(&patient, path, mark, &incoming, &mut is_cut) {
                Err(TransferError::Skip(skip)) => RepairFinding {
                    code: RepairCode::NotReplaced(skip.sentence()),
                    item: at.to_owned(),
                    path: path.clone(),
                    kept: None,
                    source: None,
                    detail: None,
                },
                found => found?,
            };
            (self.report)(&found).map_err(not_told)?;
        }
        let recorded = recorded_digests(tree, at)?;
        for path in altered {
            let Some(digest) = recorded.get(path) else {
                continue;
            };
            let found = read_damaged(&patient.directory, path);
            let found = found
                .ok()
                .flatten()
                .and_then(|(file, _)| read_digest(&file).ok());
            let wanted = MissingContent {
                names,
                path,
                digest: *digest,
                size: patient.recorded.size(path, digest),
            };
            let code = match self.fetch(&wanted, found, &incoming, &mut is_cut)? {
                Ok(_) => RepairCode::NotReplaced(message!(
                    "its recorded digest was altered, and a copy has that content; compare both with a third copy"
                )),
                Err((code, _)) => code,
            };
            self.tell(at, path, code)?;
        }
        if !is_cut {
            incoming.discard()?;
        }
        Ok(())
    }

    fn tell(&mut self, item: &str, path: &[u8], code: RepairCode) -> Result<(), TransferError> {
        self.tell_all(item, path, code, (None, None))
    }

    fn tell_all(
        &mut self,
        item: &str,
        path: &[u8],
        code: RepairCode,
        (source, detail): (Option<String>, Option<Message>),
    ) -> Result<(), TransferError> {
        let found = RepairFinding {
            code,
            item: item.to_owned(),
            path: path.to_vec(),
            kept: None,
            source,
            detail,
        };
        (self.report)(&found).map_err(not_told)
    }

    /// Mends a file.
    fn file(
        &mut self,
        patient: &Patient<'_>,
        path: &[u8],
        mark: &Mark,
        incoming: &Incoming<'_>,
        is_cut: &mut bool,
    ) -> Result<RepairFinding, TransferError> {
        let finding = |code, kept, detail| RepairFinding {
            code,
            item: patient.place.to_owned(),
            path: path.to_vec(),
            kept,
            source: None,
            detail,
        };
        let left = |why: Message| finding(RepairCode::NotReplaced(why), None, None);
        let damaged = match read_damaged(&patient.directory, path) {
            Ok(damaged) => damaged,
            Err(why) => return Ok(left(why)),
        };
        let now = match &damaged {
            None => Found::Nothing,
            Some((file, _)) => read_digest(file).map_or(Found::Unreadable, Found::Content),
        };
        if now != mark.found {
            return Ok(left(changed()));
        }
        let wanted = MissingContent {
            names: patient.names,
            path,
            digest: mark.recorded,
            size: patient.recorded.size(path, &mark.recorded),
        };
        let here = match now {
            Found::Content(digest) => Some(digest),
            Found::Unreadable | Found::Nothing => None,
        };
        let (from, source, template) = match self.fetch(&wanted, here, incoming, is_cut)? {
            Ok(arrived) => arrived,
            Err((code, detail)) => return Ok(finding(code, None, detail)),
        };
        match self.replace(patient, path, mark, (damaged, &template), incoming) {
            Ok(Ok(kept)) => Ok(RepairFinding {
                source: Some(source),
                ..finding(RepairCode::Mended(from), kept, None)
            }),
            Ok(Err(why)) => Ok(left(why)),
            // What another user may cause, who exchanges names in the item.
            Err(
                errno @ (Errno::EXIST
                | Errno::NOENT
                | Errno::NOTDIR
                | Errno::ISDIR
                | Errno::NOTEMPTY
                | Errno::LOOP
                | Errno::INVAL
                | Errno::STALE
                // It cannot be read, and cannot be kept without that.
                | Errno::IO),
            ) => Ok(left(std::io::Error::from(errno).message())),
            Err(errno) => {
                let path = shown(&[patient.place.as_bytes(), path].join(&b'/'));
                let tree = self.store.archive().tree();
                Err(tree.error(Action::Write, &path, errno).into())
            }
        }
    }

    /// Fetches content from the first place that has it, and returns its name and that by which others know it, or what there is instead. `here` is the
    /// digest of the file here.
    #[allow(clippy::type_complexity, reason = "it is taken apart at once")]
    fn fetch(
        &mut self,
        wanted: &MissingContent<'_>,
        here: Option<Digest>,
        incoming: &Incoming<'_>,
        is_cut: &mut bool,
    ) -> Result<Result<(String, String, Template), (RepairCode, Option<Message>)>, TransferError>
    {
        let (mut others, mut said) = (Vec::new(), Vec::new());
        for place in self.places.iter_mut() {
            let name = place.name().to_owned();
            said.push(match place.fetch(wanted, incoming)? {
                FetchOutcome::Arrived(template) => {
                    return Ok(Ok((name, place.holder(), *template)));
                }
                FetchOutcome::Other(digest) => {
                    others.push(digest);
                    message!("'{name}' has other content there", name)
                }
                FetchOutcome::Missing => message!("'{name}' does not have it", name),
                FetchOutcome::Unread(why) => {
                    *is_cut = true;
                    message!("'{name}': {why}", name, why)
                }
            });
        }
        let is_here = |other: &Option<Digest>| other.is_some() && *other == here;
        if !others.is_empty() && others.iter().all(is_here) {
            return Ok(Err((RepairCode::WrongRecord, None)));
        }
        Ok(Err((RepairCode::NoCopy, Message::joined(said))))
    }

    /// Puts what has arrived in the place of a file. Returns where the damaged one is kept, or why nothing was replaced.
    fn replace(
        &self,
        patient: &Patient<'_>,
        path: &[u8],
        mark: &Mark,
        (damaged, template): (Opened, &Template),
        incoming: &Incoming<'_>,
    ) -> Result<Result<Option<Vec<u8>>, Message>, Errno> {
        let tree = self.store.archive().tree();
        let name = mark.recorded.to_string();
        let staging = incoming.directory()?;
        let new = OwnedFd::from(staging.file_to_change(&name)?);
        if read_digest(&new).ok() != Some(mark.recorded) {
            return Ok(Err(message!(
                "what has arrived has another digest; try again"
            )));
        }
        let to = directory_of(&patient.directory, path)?;
        let (_, last) = split(path);
        let mut kept = None;
        let mut names = vec![path.to_vec()];
        match &damaged {
            Some((file, stat)) => {
                like_damaged(file, stat, &new)?;
                rustix::fs::fsync(&new)?;
                let identifier = patient.names.preferred();
                let made = Kept::keep(tree, &identifier, path, (file, stat))?;
                names = names_of(&patient.directory, path, stat);
                let others = self.names_in_others(patient, path, stat);
                let known = names.len() + others.len() + usize::from(made.is_linked);
                let after = rustix::fs::fstat(file)?;
                let is_there = to.entry(last).is_ok_and(|it| is_same_file(it.stat(), stat));
                let why = if after.st_nlink as usize > known {
                    Some(message!(
                        "it has another name (a hard link) outside the item; remove that first"
                    ))
                } else if !is_there || written(&after) != written(stat) {
                    Some(changed())
                } else {
                    None
                };
                if let Some(why) = why {
                    made.discard();
                    return Ok(Err(why));
                }
                // The one by which the damage was found is the last, so that the same command goes on after a crash.
                for (other, path, recorded) in &others {
                    if *recorded == Some(mark.recorded) {
                        let to = directory_of(other, path)?;
                        link(
                            (&staging, name.as_bytes()),
                            (&to, split(path).1),
                            (&staging, "link"),
                        )?;
                    }
                }
                if let Err(errno) = place((&staging, &name), (&to, last)) {
                    let is_there = |it: Entry| is_same_file(it.stat(), stat);
                    if to.entry(last).is_ok_and(is_there) {
                        made.discard();
                    }
                    return Err(errno);
                }
                kept = Some(made.path);
            }
            None => {
                let recorded = recorded_writing(tree, patient.place, path);
                let above = to.stat()?;
                like_lost(template, recorded.as_ref(), &above, &new)?;
                rustix::fs::fsync(&new)?;
                staging.rename_new(&name, &to, last)?;
                to.sync()?;
            }
        }
        // The other names of the damaged file, if they are to have the same content.
        names.retain(|other| {
            other == path
                || patient
                    .marks
                    .get(other)
                    .is_some_and(|it| it.recorded == mark.recorded)
                    && self.link(patient, (&to, last), other, &staging).is_ok()
        });
        (self.renewed)(patient.names, &names);
        let forgotten = change_marks(tree, patient.place, |marks| {
            marks.retain(|path, _| !names.contains(path));
        });
        if let Err(error) = forgotten {
            // The next scrub finds it whole.
            log::warn!("{}: {error}", patient.place);
        }
        Ok(Ok(kept))
    }

    /// The names that a damaged file has in other generations, with the directory of the item there, and the digest that is
    /// recorded there.
    fn names_in_others(
        &self,
        patient: &Patient<'_>,
        path: &[u8],
        stat: &Stat,
    ) -> Vec<(Rc<Tree>, Vec<u8>, Option<Digest>)> {
        let mut found = Vec::new();
        for tree in self.generations.unwrap_or_default() {
            let Ok(item) = tree.open_item_alone(&Place::of(patient.names)) else {
                continue;
            };
            let item = Rc::new(item);
            let recorded = recorded_digests(tree, patient.place).unwrap_or_default();
            let names = names_of(&item, path, stat).into_iter();
            found.extend(names.filter(|it| is_same_at(&item, it, stat)).map(|it| {
                let recorded = recorded.get(&it).copied();
                (Rc::clone(&item), it, recorded)
            }));
        }
        found
    }

    fn link(
        &self,
        patient: &Patient<'_>,
        first: (&Directory, &[u8]),
        other: &[u8],
        staging: &Directory,
    ) -> Result<(), Errno> {
        let to = directory_of(&patient.directory, other)?;
        link(first, (&to, split(other).1), (staging, "link"))
    }
}

fn not_told(error: std::io::Error) -> TransferError {
    TransferError::System(message!("standard output: {error}", error))
}

fn changed() -> Message {
    message!("it was changed meanwhile; try again when it is no longer written")
}

/// Size and time.
fn written(stat: &Stat) -> (i64, i64, u64) {
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
}

/// Finds a damaged file with O_PATH; None for a lost one.
fn read_damaged(item: &Tree, path: &[u8]) -> Result<Opened, Message> {
    let other = || message!("something else is in its place; see to it, and run the command again");
    let file = match item.open_far(path, OFlags::PATH | OFlags::NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(other()),
        opened => opened.map_err(|errno| std::io::Error::from(errno).message())?,
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| std::io::Error::from(errno).message())?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some((file, stat))),
        _ => Err(other()),
    }
}

/// The names that a file has in an item, of which one is known.
fn names_of(item: &Tree, path: &[u8], stat: &Stat) -> Vec<Vec<u8>> {
    let mut names = vec![path.to_vec()];
    if stat.st_nlink > 1 {
        let mut paths = Vec::new();
        let walked = item.each_deep_entry("", |entry| {
            if let DeepEntry::Entry(other) = entry
                && other != path
            {
                paths.push(other);
            }
        });
        if walked.is_ok() {
            let is_same = |other: &Vec<u8>| is_same_at(item, other, stat);
            names.extend(paths.into_iter().filter(is_same));
        }
    }
    names
}

/// Whether a path of an item leads to a file.
fn is_same_at(item: &Tree, path: &[u8], stat: &Stat) -> bool {
    let found = item.stat_far(path);
    found.is_ok_and(|found| is_same_file(&found, stat))
}

/// Whether a file has a content.
fn is_whole(item: &Tree, path: &[u8], wanted: &Digest) -> bool {
    let found = read_damaged(item, path).ok().flatten();
    found.is_some_and(|(file, _)| read_digest(&file).as_ref() == Ok(wanted))
}
