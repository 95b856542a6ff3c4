//! A level of the tree in which a command works. The daemon of the mount logs, durably, that it may change, and takes in what
//! the command leaves, also if this process is killed.

use std::path::{Path, PathBuf};

use super::super::access::StoreAccess;
use super::Place;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::question::Line;
use crate::formats::tree_name::{LevelPath, is_prefix};
use crate::fuse::mount::{Answer, AskError, Mounted, ask};
use ibi::message;

/// A level that is worked in.
pub(super) struct Level {
    /// Its directory in the mount.
    pub(super) shown: Place,
    /// Its directory in the store.
    pub(super) native: Place,
    daemon: Answer,
}

/// The level of a mount that a path names: its path in the mount, the mount, and the level's path below the store. None for
/// a path in an item, or outside of mounts.
fn found(path: &Path) -> Option<(PathBuf, Mounted, String)> {
    let shown = std::fs::canonicalize(path).ok()?;
    let mounted = Mounted::containing(&shown)?;
    let below = shown.strip_prefix(&mounted.mount_point).ok();
    let level = match below.and_then(Path::to_str).map(LevelPath::parse) {
        Some(Some(LevelPath::Root)) => "col".to_owned(),
        Some(Some(LevelPath::Rep(path))) => format!("col/{path}"),
        Some(Some(LevelPath::Prefix(prefix))) => format!("ibip/{prefix}"),
        Some(None) | None => return None,
    };
    Some((shown, mounted, level))
}

impl Level {
    /// Begins work in the level that a path names; None if it names none.
    pub(super) fn begin(path: &Path) -> Result<Option<Level>, Failure> {
        let Some((over, mounted, level)) = found(path) else {
            return Ok(None);
        };
        let access = StoreAccess::at(&over)?;
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
        let refused = |error: AskError| match error {
            AskError::Refused(why) => {
                Failure::new(Exit::Refused, message!("the daemon refuses: {why}", why))
            }
            error => Failure::new(
                Exit::Refused,
                message!(
                    "the daemon of '{path}' takes no work in levels: {error}",
                    path = over.display(),
                    error
                ),
            ),
        };
        let question = Line::new("work").with("level", level);
        let (_, mut daemon) = ask(&mounted, &question).map_err(refused)?;
        // It takes in any number of items at the end.
        daemon.wait().map_err(refused)?;
        Ok(Some(Level {
            shown,
            native,
            daemon,
        }))
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
        let mut is_accepted = true;
        if self.daemon.end().is_err() {
            return Err(self.gone());
        }
        loop {
            let line = match self.daemon.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(is_accepted),
                Err(AskError::Refused(why)) => {
                    let message = message!(
                        "not all of '{path}' was taken in, the next start of the daemon goes on: {why}",
                        path = self.shown.path.display(),
                        why
                    );
                    return Err(Failure::new(Exit::Failed, message));
                }
                Err(_) => return Err(self.gone()),
            };
            if let Some(count) = line.get("count").and_then(|count| count.parse().ok()) {
                progress.at(count);
            }
            if let (Some(path), Some(why)) = (line.get("path"), line.get("why")) {
                is_accepted = false;
                let sentence = message!("'{path}' is refused, and not served: {why}", path, why);
                progress.aside(|| eprintln!("ibifs: {}", localized(&sentence)));
            }
        }
    }
}
