//! The names in a directory of the store.

use ibi::rep::component_key;
use rustix::fs::OFlags;

use super::place::failed;
use super::{Action, Tree, TreeError};
use crate::os::entries::each_entry_of;

impl Tree {
    /// Calls `visit` with every name in a directory and whether the name is a directory.
    pub fn each_name(&self, path: &str, visit: impl FnMut(&[u8], bool)) -> Result<(), TreeError> {
        let directory = self
            .open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(failed(Action::Open, path))?;
        each_entry_of(&directory, visit).map_err(failed(Action::List, path))
    }

    /// The spelling of a name in a directory, compared without regard to case.
    pub fn spelling_in(&self, path: &str, name: &str) -> Result<Option<String>, TreeError> {
        if self.is_directory(&format!("{path}/{name}")) {
            return Ok(Some(name.to_owned()));
        }
        if !self.is_directory(path) {
            return Ok(None);
        }
        let names = self.directories_in(path)?;
        let key = component_key(name);
        Ok(names.into_iter().find(|known| component_key(known) == key))
    }

    /// The names of directories in a directory, sorted. A name that is not UTF-8 is skipped: it is not part
    /// of an identifier.
    pub fn directories_in(&self, path: &str) -> Result<Vec<String>, TreeError> {
        let mut names = Vec::new();
        self.each_name(path, |name, is_directory| {
            if let (true, Ok(name)) = (is_directory, std::str::from_utf8(name)) {
                names.push(name.to_owned());
            }
        })?;
        names.sort();
        Ok(names)
    }
}
