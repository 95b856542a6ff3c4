//! Backups of several dates in one directory: a store for each, which is read only.
//!
//! A generation is made in `unfinished/` and then gets its date for a name. What is no longer kept is renamed to `removing/`
//! and loses its `archive.ibi` first, so that it is not opened with a part of its items. Whatever stops this, the next
//! backup goes on with the one and ends the other.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::destination::{Closed, close_to_others, closed_directory};
use super::earlier::Earlier;
use super::filling::{fill, note_in_store};
use super::finding::{BackupCode, BackupError, BackupFinding, BackupTally};
use super::keep::{Keep, date_of, name_of};
use super::note::{self, BackupNote, Sharing};
use crate::archive::finding::Reporter;
use crate::archive::tree::{Action, Tree};
use crate::archive::{Archive, ArchiveError, BACKUP_NOTE, Clock, FACTS, StoreLock};
use crate::formats::item::Names;
use crate::os::deep::walk_noting;
use crate::os::directory::Directory;
use crate::os::opening::read_regular;
use crate::os::writing::Durability;
use ibi::Timestamp;
use ibi::pairs::Pairs;

/// The file that says that a directory has generations, and of which Archive.
pub(super) const GENERATIONS: &str = "generations.ibi";
const UNFINISHED: &str = "unfinished";
const REMOVING: &str = "removing";

/// The seconds by which the date of a generation may be ahead without being reported: each one has a date of its own.
const AHEAD: i64 = 60 * 60;

/// The bytes of the blocks that stat(2) counts.
const BLOCK: u64 = 512;

/// A backup of one date.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The name of its directory, which is its date where it is finished.
    pub name: String,
    /// When it was finished.
    pub date: Option<Timestamp>,
    /// The number of its items.
    pub items: Option<u64>,
    /// Whether it shares blocks with the one before, and not files.
    pub shares_blocks: bool,
}

/// The names of generations that a backup made and removed.
#[derive(Clone, Debug, Default)]
pub struct GenerationChanges {
    /// The new one.
    pub made: String,
    /// Those that are no longer kept.
    pub removed: Vec<String>,
    /// The number of generations that there are now.
    pub kept: usize,
    /// Whether the filesystem can share nothing among them.
    pub is_unshared: bool,
}

/// The generations of a directory, the oldest first, and one that is not finished. None where it has none.
pub fn list(path: &Path) -> Result<Option<Vec<Generation>>, Errno> {
    let directory = Directory::open(path)?;
    match service_of(path, &directory) {
        Some(service) => generations(path, &directory, &service).map(Some),
        None => Ok(None),
    }
}

/// The room that a generation alone takes: that of files with no name in another one. An error where that cannot be read.
pub fn own_size(path: &Path, generation: &Generation) -> Result<u64, Errno> {
    let root = Directory::open(path)?.directory(&generation.name)?;
    let (mut own, mut names) = (0, HashMap::new());
    let mut count = |stat: Stat| own += u64::try_from(stat.st_blocks).unwrap_or_default() * BLOCK;
    let mut read = |directory: &OwnedFd| -> Result<(), Errno> {
        count(rustix::fs::fstat(directory)?);
        for (name, kind) in Directory::reopened(directory)?.entries()? {
            if kind == FileType::Directory {
                continue;
            }
            let stat = rustix::fs::statat(directory, &name[..], AtFlags::SYMLINK_NOFOLLOW)?;
            let found = names.entry(stat.st_ino).or_insert(0);
            *found += 1;
            if *found == stat.st_nlink {
                count(stat);
            }
        }
        Ok(())
    };
    let mut done = Ok(());
    walk_noting(
        root.descriptor(),
        b"",
        |_| (),
        |directory, _| {
            if done.is_ok() {
                done = read(directory);
            }
        },
    )?;
    done.map(|()| own)
}

/// The service of the Archive whose generations a directory has.
fn service_of(path: &Path, directory: &Directory) -> Option<Names> {
    directory.file(GENERATIONS).ok()?;
    let bytes = read_regular(path.join(GENERATIONS), OFlags::NOFOLLOW).ok()?;
    let pairs = Pairs::parse(&bytes).ok()?;
    Names::from_value(pairs.get("ibi.archiveservice")?).ok()
}

fn generations(
    path: &Path,
    directory: &Directory,
    service: &Names,
) -> Result<Vec<Generation>, Errno> {
    let mut found = Vec::new();
    for (name, kind) in directory.entries()? {
        // A link, or anything else that only has the name of one, is none.
        let (Ok(name), FileType::Directory) = (String::from_utf8(name), kind) else {
            continue;
        };
        let date = date_of(&name);
        if date.is_none() && name != UNFINISHED {
            continue;
        }
        let note = note::read(&path.join(&name)).filter(|note| note.service.matches(service));
        let is_finished = note.as_ref().is_some_and(|note| note.finished.is_some());
        if date.is_some() && !is_finished {
            continue;
        }
        let shares_blocks = note.as_ref().is_some_and(|note| note.shares_blocks);
        let items = note.and_then(|note| note.items).filter(|_| date.is_some());
        found.push(Generation {
            name,
            date,
            items,
            shares_blocks,
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Makes a new generation, and removes those that are no longer kept.
pub fn make_generation(
    from: &Archive,
    destination: &Path,
    keep: &Keep,
    clock: &dyn Clock,
    report: &mut Reporter<'_, BackupFinding>,
    progress: &mut dyn FnMut(u64),
) -> Result<(BackupTally, GenerationChanges), BackupError> {
    let (path, directory, is_closed) = closed_directory(from, destination)?;
    let entries = directory.entries().unwrap_or_default();
    let is_new = entries
        .iter()
        .all(|(name, _)| [&b"lock"[..], b"generations.ibi.new"].contains(&&name[..]));
    if matches!(is_closed, Closed::Never) || matches!(is_closed, Closed::Now) && !entries.is_empty()
    {
        return Err(BackupError::OfOthers { path });
    }
    let reopened = directory.again().map_err(|errno| {
        BackupError::Archive(from.tree().error(Action::Open, ".", errno).into())
    })?;
    let above = Tree::over(path.clone(), reopened.into());
    let it = Container {
        from,
        path: &path,
        directory,
        above: &above,
    };
    if !is_new {
        it.check()?;
    }
    let _lock = Archive::hold(&above)?;
    let service = format!("ibi.archiveservice {}\n", from.facts().service);
    if is_new {
        above.write_beside(".", GENERATIONS, service.as_bytes(), Durability::Synced)?;
    }
    it.check()?;
    it.end_removal()?;
    let started = clock.now();
    let (tally, name, sharing) = it.make(clock, report, progress)?;
    note_in_store(from, &path, started, tally.items);
    let names: Vec<String> = it.finished()?;
    let mut changes = GenerationChanges {
        made: name,
        is_unshared: sharing == Some(Sharing::Nothing),
        ..GenerationChanges::default()
    };
    for other in keep.others(&names).into_iter().rev() {
        it.remove(other)?;
        changes.removed.push(other.to_owned());
    }
    changes.kept = names.len() - changes.removed.len();
    Ok((tally, changes))
}

/// A directory of generations that is open.
struct Container<'a> {
    from: &'a Archive,
    path: &'a Path,
    directory: Directory,
    above: &'a Tree,
}

impl Container<'_> {
    fn failed<'a>(&'a self, action: Action, name: &'a str) -> impl Fn(Errno) -> BackupError + 'a {
        move |errno| BackupError::Archive(self.above.error(action, name, errno).into())
    }

    /// Rejects a directory with anything but generations of this Archive.
    fn check(&self) -> Result<(), BackupError> {
        let path = self.path.to_owned();
        match service_of(self.path, &self.directory) {
            Some(service) if service.matches(&self.from.facts().service) => Ok(()),
            Some(service) => Err(BackupError::OtherArchive {
                service: service.into(),
            }),
            None if self.directory.entry(BACKUP_NOTE).is_ok() => {
                Err(BackupError::OneGeneration { path })
            }
            None => Err(BackupError::NotABackup { path }),
        }
    }

    /// The names of the finished generations, the oldest first.
    fn finished(&self) -> Result<Vec<String>, BackupError> {
        let service = &self.from.facts().service;
        let found = generations(self.path, &self.directory, service)
            .map_err(self.failed(Action::List, "."))?;
        let dated = found.into_iter().filter(|it| it.date.is_some());
        Ok(dated.map(|it| it.name).collect())
    }

    /// Opens a generation, if this user can trust it.
    fn opened(&self, name: &str) -> Result<Option<(Tree, note::FileTime)>, BackupError> {
        let opened = self.directory.directory(name);
        let opened = opened.map_err(self.failed(Action::Open, name))?;
        let path = self.path.join(name);
        let since = note::read(&path).and_then(|note| note.since);
        let (stat, store) = (opened.stat(), rustix::fs::fstat(self.from.tree().root()));
        let is_trusted = stat.is_ok_and(|stat| {
            crate::os::directory::is_own(&stat)
                || store.is_ok_and(|store| store.st_uid == stat.st_uid)
        });
        let since = since.filter(|_| is_trusted);
        Ok(since.map(|since| (Tree::over(path, opened.into()), since)))
    }

    fn make(
        &self,
        clock: &dyn Clock,
        report: &mut Reporter<'_, BackupFinding>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(BackupTally, String, Option<Sharing>), BackupError> {
        let failed = self.failed(Action::Make, UNFINISHED);
        let opened = match self.directory.make_directory(UNFINISHED, 0o700) {
            Err(Errno::EXIST) => self.directory.directory(UNFINISHED),
            made => made,
        }
        .map_err(&failed)?;
        if !matches!(
            close_to_others(self.from, &opened).map_err(&failed)?,
            Closed::Before
        ) {
            return Err(BackupError::OfOthers {
                path: self.path.join(UNFINISHED),
            });
        }
        let to = Tree::create_over(self.path.join(UNFINISHED), &opened)?;
        let _lock = Archive::hold(&to)?;
        let last = self.finished()?.pop();
        let newest = match &last {
            Some(name) => self.opened(name)?,
            None => None,
        };
        let started = clock.now().to_rfc3339();
        let note = BackupNote::begin(self.from, &to, started, true)?;
        let earlier = newest
            .as_ref()
            .map(|(tree, since)| Earlier::new(tree, *since));
        let (tally, sharing) = fill(self.from, &to, earlier, clock, report, progress)?;
        let next = |date: &Timestamp| Timestamp::from_unix(date.seconds() + 1, 0);
        // The newest one by its name is the one that was made last, also if the clock was ahead.
        let (now, last) = (clock.now(), last.as_deref().and_then(date_of));
        let mut date = last.iter().map(next).fold(now.clone(), Ord::max);
        while self.directory.entry(name_of(&date)).is_ok() {
            date = next(&date);
        }
        let name = name_of(&date);
        note.finish(&now.to_rfc3339(), tally.items, sharing)?;
        let placed = self
            .directory
            .rename_new(UNFINISHED, &self.directory, &name)
            .and_then(|()| self.directory.sync());
        placed.map_err(self.failed(Action::Rename, UNFINISHED))?;
        if let Some(last) = last.filter(|it| it.seconds() > now.seconds() + AHEAD) {
            let finding = BackupFinding {
                code: BackupCode::Ahead,
                path: name_of(&last).into_bytes(),
                detail: None,
            };
            report(&finding).map_err(BackupError::Report)?;
        }
        Ok((tally, name, sharing))
    }

    fn remove(&self, name: &str) -> Result<(), BackupError> {
        let moved = self
            .directory
            .rename_new(name, &self.directory, REMOVING)
            .and_then(|()| self.directory.sync());
        moved.map_err(self.failed(Action::Remove, name))?;
        self.end_removal()
    }

    /// Removes what an earlier backup had begun to remove.
    fn end_removal(&self) -> Result<(), BackupError> {
        let opened = match self.directory.directory(REMOVING) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened,
        };
        let removed = opened.and_then(|opened| {
            match opened.remove_file(FACTS) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            opened.sync()?;
            opened.clear()?;
            self.directory.remove_directory(REMOVING)
        });
        removed.map_err(self.failed(Action::Remove, REMOVING))
    }
}

/// The finished generations in a directory, or only the newest one. None of a directory that is not one of generations, also of a
/// path that names nothing.
///
/// # Errors
/// There are none that are finished, or they cannot be read.
pub fn generations_at(path: &Path, all: bool) -> Result<Option<Vec<PathBuf>>, BackupError> {
    let is_dated =
        path.symlink_metadata().is_err() && path.to_str().is_some_and(|it| it.contains('@'));
    if is_dated {
        return find(path).map(|found| Some(vec![found]));
    }
    let Ok(Some(found)) = list(path) else {
        return Ok(None);
    };
    let dated = found.into_iter().filter(|it| it.date.is_some());
    let mut paths: Vec<PathBuf> = dated.map(|it| path.join(it.name)).collect();
    if !all {
        paths.drain(..paths.len().saturating_sub(1));
    }
    if paths.is_empty() {
        let (path, date) = (path.to_owned(), String::new());
        return Err(BackupError::NoGeneration { path, date });
    }
    Ok(Some(paths))
}

/// The other finished generations of the backup of which one is, and a lock, without which no generation is made or removed.
pub fn other_generations(one: &Path) -> Result<(Vec<Tree>, StoreLock), BackupError> {
    let resolved = std::fs::canonicalize(one).unwrap_or_else(|_| one.to_owned());
    let (path, own) = match (resolved.parent(), resolved.file_name()) {
        (Some(path), Some(own)) => (path, own),
        _ => (one, one.as_os_str()),
    };
    let open = || {
        let directory = Directory::open(path)?;
        let above = Tree::over(path.to_owned(), directory.again()?.into());
        Ok::<_, Errno>((directory, above))
    };
    let (directory, above) = open().map_err(|_| BackupError::NotABackup {
        path: path.to_owned(),
    })?;
    let failed =
        |name: &str, errno| BackupError::Archive(above.error(Action::Open, name, errno).into());
    let lock = Archive::hold(&above)?;
    let all = list(path).map_err(|errno| failed(".", errno))?;
    let mut others = Vec::new();
    for it in all.unwrap_or_default() {
        if it.date.is_some() && it.name.as_str() != own {
            let opened = directory.directory(&it.name);
            let opened = opened.map_err(|errno| failed(&it.name, errno))?;
            others.push(Tree::over(path.join(&it.name), opened.into()));
        }
    }
    Ok((others, lock))
}

/// The path of a finished backup: a directory, or one of the generations in it, whose date begins with what follows an `@`,
/// else the newest one.
pub fn find(text: &Path) -> Result<PathBuf, BackupError> {
    let given = text.to_str().and_then(|text| text.rsplit_once('@'));
    let (path, date) = match given {
        Some((path, date)) if text.symlink_metadata().is_err() => (Path::new(path), date),
        _ => (text, ""),
    };
    let none = || BackupError::NoGeneration {
        path: path.to_owned(),
        date: date.to_owned(),
    };
    let listed = list(path).map_err(|errno| match errno {
        Errno::ACCESS => ArchiveError::ClosedStore { path: path.into() }.into(),
        _ => none(),
    });
    let Some(found) = listed? else {
        return if date.is_empty() && note::read(path).is_some() {
            Ok(path.to_owned())
        } else {
            Err(none())
        };
    };
    let mut dated = found.into_iter().filter(|it| it.date.is_some());
    let found = dated.rfind(|it| it.name.starts_with(date));
    Ok(path.join(found.ok_or_else(none)?.name))
}
