//! `ibifs import` of packages: each one is verified before it is imported, and a failed one does not stop the
//! others.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde_json::json;

use super::staging;
use crate::archive::package::{self, Found, Package, PackageError, UnpackOptions};
use crate::archive::store::By;
use crate::archive::{Archive, ArchiveError, Process, SystemClock};
use crate::command::cli;
use crate::command::commands::access::StoreAccess;
use crate::command::commands::{failed_at, say};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::command::terminal::OneLine;
use crate::formats::item::Names;
use crate::os::directory::Directory;
use ibi::message::Localize;
use ibi::{message, plural};

/// The one who tells the events in a package.
const PACKAGE: &str = "package";

pub(super) fn run(
    options: &cli::Import,
    access: &StoreAccess,
    source: &Path,
) -> Result<Exit, Failure> {
    let opened = Source::open(source)?;
    let paths = opened.packages()?;
    let archive = match (&access.mount_point, options.dry_run) {
        (None, false) => Archive::open_beside(&access.store, Box::new(SystemClock))?,
        _ => access.read()?,
    };
    let mut import = Import {
        options,
        source,
        access,
        archive: &archive,
        progress: ProgressLine::of(&message!("files"), || None),
        files: 0,
        bytes: 0,
        exit: Exit::Done,
        taken: 0,
    };
    let result = paths
        .iter()
        .try_for_each(|path| import.one(opened.found(path), &below(source, path)));
    let (exit, taken) = (import.exit, import.taken);
    drop(import);
    if access.mount_point.is_none() && !options.dry_run {
        archive.close();
    }
    result?;
    say(&tally(paths.len(), taken, options))?;
    Ok(exit)
}

/// The source of packages that a user names: a directory, or one packed file.
pub(super) struct Source<'a> {
    path: &'a Path,
    root: Option<Directory>,
}

impl Source<'_> {
    /// Opens a source.
    pub(super) fn open(path: &Path) -> Result<Source<'_>, Failure> {
        let root = match Directory::open(path) {
            Ok(root) => Some(root),
            Err(Errno::NOTDIR) => None,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                return Err(failed_at(path, Exit::Failed, &error));
            }
        };
        Ok(Source { path, root })
    }

    /// The paths of its packages below it; the empty path for itself.
    pub(super) fn packages(&self) -> Result<Vec<PathBuf>, PackageError> {
        match &self.root {
            Some(root) => package::find(root.descriptor(), self.path),
            None => Ok(vec![PathBuf::new()]),
        }
    }

    /// The package at one of these paths.
    pub(super) fn found(&self, path: &Path) -> Result<Found, PackageError> {
        match &self.root {
            Some(root) => Found::below(root.descriptor(), path),
            None => Found::named(self.path),
        }
    }
}

/// The path of a package that was found at a path below a directory, or is the directory itself.
pub(super) fn below(source: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        source.to_owned()
    } else {
        source.join(path)
    }
}

struct Import<'a> {
    options: &'a cli::Import,
    source: &'a Path,
    access: &'a StoreAccess,
    archive: &'a Archive,
    progress: ProgressLine,
    files: u64,
    bytes: u64,
    exit: Exit,
    taken: usize,
}

impl Import<'_> {
    /// Imports one package, and prints the result.
    fn one(&mut self, found: Result<Found, PackageError>, path: &Path) -> Result<(), Failure> {
        let taken = found.map_err(Failure::from);
        let taken = taken.and_then(|found| self.take(found, path));
        let (word, names, sentence) = match &taken {
            Ok((names, events)) => {
                self.taken += 1;
                if !self.options.dry_run {
                    self.access.tell_imported(names, path);
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let (by, teller) = (By::of(&Process), (PACKAGE, name.as_ref()));
                    self.archive.tell_earlier(by, names, teller, events);
                }
                ("taken", Some(names), None)
            }
            Err(failure) => {
                // A failure takes precedence over a refusal.
                if self.exit != Exit::Failed {
                    self.exit = failure.exit;
                }
                ("not-taken", None, Some(failure.message.clone()))
            }
        };
        let package = path.display().to_string();
        if self.options.output.json {
            let mut object = names.map_or_else(json::no_names, json::names);
            object.insert("package".into(), json!(package));
            object.insert("outcome".into(), json!(word));
            object.insert("sentence".into(), json!(sentence));
            return self.progress.aside(|| say(&json::line(&object.into())));
        }
        let sentence = sentence.as_ref().map(localized);
        let rest = names.map(Names::preferred).or(sentence).unwrap_or_default();
        let word = match (word, self.options.dry_run) {
            ("taken", true) => message!("would be taken"),
            ("taken", false) => message!("taken"),
            _ => message!("not taken"),
        };
        let word = localized(&word);
        let line = format!("{word}: {}: {}\n", OneLine(package), OneLine(rest));
        self.progress.aside(|| say(&line))
    }

    /// Imports a package. Returns the names of the item, and the events that the package tells of it.
    fn take(&mut self, found: Found, path: &Path) -> Result<(Names, Vec<String>), Failure> {
        let mut count = |bytes: u64| {
            self.files += u64::from(bytes == 0);
            self.bytes += bytes;
            self.progress.at_bytes(self.files, self.bytes);
        };
        let options = UnpackOptions {
            same_owner: self.options.same_owner,
            of_others: found.is_of_others(),
        };
        let staging;
        let root = match found {
            Found::Directory(root) => root,
            Found::File(file) => {
                staging = staging::beside(self.source)?;
                package::unpack_package(file, path, &staging, &mut count)?.into()
            }
        };
        let package = package::open(root, &mut count)?;
        let names = package.names().ok_or(PackageError::Nameless)?.clone();
        self.archive.depositor(&Process).check_taking(&names)?;
        let events = package.events();
        if self.options.dry_run {
            return Ok((names, events));
        }
        match &self.access.mount_point {
            None => {
                let fill = |item: &_| package::fill(&package, item, options, &mut count);
                let depositor = self.archive.depositor(&Process);
                depositor.take_in::<PackageError>(&names, fill)?;
            }
            Some(mount_point) => {
                let item = mount_point.join(names.preferred());
                through_mount(&package, &names, &item, options, &mut count)?;
            }
        }
        Ok((names, events))
    }
}

/// Copies an item in through the mount, as `cp -a` would.
fn through_mount(
    package: &Package,
    names: &Names,
    item: &Path,
    options: UnpackOptions,
    count: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        let error = match Errno::from_io_error(&error) {
            Some(Errno::PERM) => {
                let name = names.preferred();
                return Failure::from(ArchiveError::NotMintedYet { name });
            }
            Some(Errno::EXIST) => {
                return Failure::from(ArchiveError::Exists(names.clone().into()));
            }
            _ => error.message(),
        };
        Failure::new(
            Exit::Failed,
            message!(
                "cannot make '{path}': {error}",
                path = item.display(),
                error
            ),
        )
    };
    let (Some(parent), Some(name)) = (item.parent(), item.file_name()) else {
        return Err(refused(Errno::INVAL.into()));
    };
    #[expect(clippy::disallowed_methods, reason = "the daemon makes levels of it")]
    std::fs::create_dir_all(parent).map_err(refused)?;
    let opened = Directory::open(parent)
        .and_then(|parent| parent.make_directory(name.as_bytes(), 0o755))
        .map_err(|errno| refused(errno.into()))?;
    package::fill(package, opened.descriptor(), options, count).map_err(|error| {
        let failure = Failure::from(error);
        let left = message!(
            "a part of the item is at '{path}': remove it with 'rm -r', and import the package again",
            path = item.display()
        );
        failure.and(&left)
    })
}

fn tally(packages: usize, taken: usize, options: &cli::Import) -> String {
    if options.output.json {
        let value = json!({
            "packages": packages,
            "taken": taken,
            "dry_run": options.dry_run,
        });
        return json::line(&value);
    }
    let packages = plural!("{count} package", "{count} packages", count = packages);
    let taken = if options.dry_run {
        plural!(
            "{count} would be taken in",
            "{count} would be taken in",
            count = taken
        )
    } else {
        plural!("{count} taken in", "{count} taken in", count = taken)
    };
    let line = message!("{packages}, {taken}", packages, taken);
    format!("{}\n", localized(&line))
}
