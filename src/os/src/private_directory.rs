//! A directory that only this user may enter, for files that are not complete, also where others may write.
//!
//! Its name is random, and it is held open: another user may rename it where it lies, but reaches nothing in it.

use std::ops::Deref;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::directory::{Directory, is_own, is_same_file, random_name};

/// The permission bits, but for the set-group-ID bit, which the directory above passes on.
const PERMISSIONS: u32 = 0o5777;

/// A directory of mode 0700, which is removed with all that is in it.
#[derive(Debug)]
pub struct PrivateDirectory {
    above: Directory,
    name: String,
    directory: Directory,
    is_removed: bool,
}

impl PrivateDirectory {
    /// Makes a directory in another one. Its name begins with `prefix`.
    ///
    /// # Errors
    /// ESTALE if another user has exchanged it meanwhile; what is there then is left alone.
    pub fn make(above: &Directory, prefix: &str) -> Result<PrivateDirectory, Errno> {
        let above = above.again()?;
        let name = random_name(prefix)?;
        rustix::fs::mkdirat(&above, &name, Mode::RWXU)?;
        let directory = above.directory(&name)?;
        let stat = directory.stat()?;
        let is_private = is_own(&stat) && stat.st_mode & PERMISSIONS == 0o700;
        if !is_private || !directory.entries()?.is_empty() {
            return Err(Errno::STALE);
        }
        Ok(PrivateDirectory {
            above,
            name,
            directory,
            is_removed: false,
        })
    }

    /// The name in the directory in which it was made.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes it, with all that is in it, for a caller whom an error concerns.
    ///
    /// # Errors
    /// ESTALE if another user has put something else in its place, which is left alone.
    pub fn close(mut self) -> Result<(), Errno> {
        self.is_removed = true;
        self.remove()
    }

    fn remove(&self) -> Result<(), Errno> {
        self.directory.clear()?;
        let there = self.above.entry(&self.name)?;
        if !is_same_file(there.stat(), &self.directory.stat()?) {
            return Err(Errno::STALE);
        }
        self.above.remove_directory(&self.name)
    }
}

impl Deref for PrivateDirectory {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.directory
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        if let Err(errno) = self.remove() {
            log::warn!("the directory {} is left: {errno}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::TemporaryDirectory;

    #[test]
    fn it_is_the_users_own_and_is_removed_with_all_that_is_in_it() {
        let root = TemporaryDirectory::new();
        let above = Directory::open(root.path()).expect("a directory");
        let private = PrivateDirectory::make(&above, ".x-").expect("made");
        let path = root.join(private.name());
        let found = path.metadata().expect("there");
        assert_eq!(found.permissions().mode() & 0o7777, 0o700);
        let below = private.make_directory("below", 0o700).expect("made");
        drop(below.create("file", 0o400).expect("made"));
        drop(private);
        assert_eq!(above.entries().expect("listed"), []);
    }

    #[test]
    fn what_has_taken_its_name_is_left_alone() {
        let root = TemporaryDirectory::new();
        let above = Directory::open(root.path()).expect("a directory");
        let private = PrivateDirectory::make(&above, ".x-").expect("made");
        let name = private.name().to_owned();
        above.rename_new(&name, &above, "away").expect("moved");
        above.make_directory(&name, 0o755).expect("made");
        std::fs::write(root.join(&name).join("file"), "another's").expect("written");
        drop(private.create("ours", 0o600).expect("made"));
        drop(private);
        let left = root.join("away").read_dir().expect("listed").count();
        assert_eq!(left, 0, "what is in it is removed wherever it is");
        assert!(root.join(&name).join("file").exists());
    }
}
