//! A level of the tree in which a command works. The daemon of the mount logs, durably, that it may change, and takes in what
//! the command leaves, also if this process is killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::access::StoreAccess;
use super::Place;
use crate::archive::WORK_SOCKET;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::level_work::{Answer, END, question};
use crate::formats::tree_name::{LevelPath, is_prefix};
use crate::fuse::mount::Mounted;
use crate::os::directory::Directory;
use crate::os::opening;
use ibi::message;

/// A level that is worked in.
pub(super) struct Level {
    /// Its directory in the mount.
    pub(super) shown: Place,
    /// Its directory in the store.
    pub(super) native: Place,
    daemon: BufReader<UnixStream>,
}

/// The level of a mount that a path names: its path in the mount, the store, and the level's path below the store. None for
/// a path in an item, or outside of mounts.
fn found(path: &Path) -> Result<Option<(PathBuf, StoreAccess, String)>, Failure> {
    let Ok(shown) = std::fs::canonicalize(path) else {
        return Ok(None);
    };
    let Some(mounted) = Mounted::containing(&shown) else {
        return Ok(None);
    };
    let below = shown.strip_prefix(&mounted.mount_point).ok();
    let level = match below.and_then(Path::to_str).map(LevelPath::parse) {
        Some(Some(LevelPath::Root)) => "col".to_owned(),
        Some(Some(LevelPath::Rep(path))) => format!("col/{path}"),
        Some(Some(LevelPath::Prefix(prefix))) => format!("ibip/{prefix}"),
        Some(None) | None => return Ok(None),
    };
    let access = StoreAccess::at(&shown)?;
    Ok(Some((shown, access, level)))
}

impl Level {
    /// Begins work in the level that a path names; None if it names none.
    pub(super) fn begin(path: &Path) -> Result<Option<Level>, Failure> {
        let Some((over, access, level)) = found(path)? else {
            return Ok(None);
        };
        let directory = access.store.join(&level);
        if let Err(error) = std::fs::metadata(&directory) {
            let prefix = level.strip_prefix("ibip/").is_some_and(is_prefix);
            if prefix && error.kind() == std::io::ErrorKind::NotFound {
                return Err(Failure::new(
                    Exit::Refused,
                    message!(
                        "'{path}': all items of this prefix have a rep; work in the level of their reps",
                        path = over.display()
                    ),
                ));
            }
            return Err(super::super::failed_at(&directory, Exit::Refused, &error));
        }
        let native = Place::in_store(&access.store, &level)?;
        let shown = Place::open(over.clone())?;
        let unheard = |error: std::io::Error| {
            Failure::new(
                Exit::Refused,
                message!(
                    "the daemon of '{path}' takes no work in levels: {error}; it may be read-only, of a store on several hosts, or of an older version",
                    path = over.display(),
                    error
                ),
            )
        };
        let store = opening::found(&access.store, OFlags::DIRECTORY);
        let store = store.map_err(|errno| unheard(errno.into()))?;
        let daemon = Directory::from(store).connect(WORK_SOCKET);
        let mut daemon = daemon.map_err(unheard)?;
        daemon
            .write_all(question(&level).as_bytes())
            .map_err(unheard)?;
        let mut begun = Level {
            shown,
            native,
            daemon: BufReader::new(daemon),
        };
        match begun.answer() {
            Some(Answer::Ready) => Ok(Some(begun)),
            Some(Answer::Failed(why)) => Err(Failure::new(
                Exit::Refused,
                message!("the daemon refuses: {why}", why),
            )),
            _ => Err(begun.gone()),
        }
    }

    fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        self.daemon.read_line(&mut line).ok()?;
        Answer::parse(&line)
    }

    fn gone(&self) -> Failure {
        let message = message!(
            "the daemon of '{path}' is gone; its next start takes in what has changed",
            path = self.shown.path.display()
        );
        Failure::new(Exit::Failed, message)
    }

    /// Has the daemon take in what has changed. False if something was refused.
    pub(super) fn end(mut self) -> Result<bool, Failure> {
        let progress = ProgressLine::of_items(|| None);
        let is_told = self.daemon.get_mut().write_all(END.as_bytes()).is_ok();
        let mut is_accepted = true;
        while is_told && let Some(answer) = self.answer() {
            match answer {
                Answer::Ready => {}
                Answer::Read(count) => progress.at(count),
                Answer::Refused(path, why) => {
                    is_accepted = false;
                    let sentence =
                        message!("'{path}' is refused, and not served: {why}", path, why);
                    progress.aside(|| eprintln!("ibifs: {}", localized(&sentence)));
                }
                Answer::Done => return Ok(is_accepted),
                Answer::Failed(why) => {
                    let message = message!(
                        "not all of '{path}' was taken in, the next start of the daemon goes on: {why}",
                        path = self.shown.path.display(),
                        why
                    );
                    return Err(Failure::new(Exit::Failed, message));
                }
            }
        }
        Err(self.gone())
    }
}
