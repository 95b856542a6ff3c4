//! The directories above the items: made where they are missing, and synced.

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::action::Action;
use super::new_directory::{give_level, make_level};
use super::place::{TreeError, failed};
use super::root::Tree;

/// The mode that is shown for a directory in which items lie. The owner of an item declares relations by
/// names beside it, without write permission in the directory: the kernel must let these requests pass, and
/// the mount checks them. The sticky bit protects each name from other users, here and in a copy on another
/// filesystem. Making other things there is checked by the mode on the disk.
pub fn shown_to_declare(permissions: u16) -> u16 {
    match permissions & 0o222 {
        0o222 => permissions,
        _ => permissions | 0o1222,
    }
}

impl Tree {
    pub(super) fn make_levels(&self, path: &str) -> Result<(), TreeError> {
        self.make_levels_for(path, None)
    }

    /// Makes the missing levels of a path, owned by a user and a group, or else by this process.
    pub fn make_levels_for(&self, path: &str, owner: Option<(u32, u32)>) -> Result<(), TreeError> {
        if self.is_directory(path) {
            return Ok(());
        }
        let mut made = String::new();
        for name in path.split('/') {
            let parent = made.clone();
            if !made.is_empty() {
                made.push('/');
            }
            made.push_str(name);
            let directory = self.open_directory(if parent.is_empty() { "." } else { &parent })?;
            let level = make_level(&directory, name).and_then(|()| match owner {
                Some(owner) => give_level(&directory, name, owner),
                None => Ok(()),
            });
            match level {
                Ok(()) => self.sync_directory(if parent.is_empty() { "." } else { &parent })?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(Action::Make, &made)(errno)),
            }
        }
        Ok(())
    }

    /// The levels of a path that do not exist, the deepest first.
    pub fn missing_levels(&self, path: &str) -> Vec<String> {
        let ends = path.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain([path.len()]);
        let levels = ends.filter_map(|end| path.get(..end));
        let mut missing: Vec<String> = levels
            .filter(|level| !self.is_directory(level))
            .map(str::to_owned)
            .collect();
        missing.reverse();
        missing
    }

    /// Removes levels that were made for an item that is not placed there, the deepest first. One that holds
    /// something by now stays, with those above it.
    pub(in crate::archive) fn remove_levels(&self, levels: &[String]) -> Result<(), TreeError> {
        for level in levels {
            let (parent, name) = level.rsplit_once('/').unwrap_or((".", level));
            let directory = match self.open_directory(parent) {
                // The level above could not be made either.
                Err(error) if error.errno() == Errno::NOENT => continue,
                opened => opened?,
            };
            match rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR) {
                Ok(()) => self.sync_directory(parent)?,
                Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(()),
                Err(errno) => return Err(failed(Action::Remove, level)(errno)),
            }
        }
        Ok(())
    }

    /// Makes an empty IBIp prefix. The mount shows a prefix with the owner and mode of the root, and every
    /// user who may write there may make one, so the owner of its directory here has no meaning.
    pub fn make_prefix(&self, name: &str) -> Result<(), TreeError> {
        let failed = failed(Action::Make, name);
        make_level(&self.open_directory("ibip")?, name).map_err(failed)?;
        self.sync_directory("ibip")
    }

    /// Makes a directory and the missing ones above it, without waiting for the disk.
    pub fn make_directories(&self, path: &str) -> Result<(), TreeError> {
        if self.is_directory(path) {
            return Ok(());
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
        if parent != "." {
            self.make_directories(parent)?;
        }
        let parent = self.open_directory(parent)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(Action::Make, path)(errno)),
        }
    }
}
