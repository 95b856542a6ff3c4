//! Renaming that replaces nothing, also on filesystems without `RENAME_NOREPLACE` (renameat2(2)): network filesystems,
//! and filesystems in user space.
//!
//! There rename(2) fails if the new name is a directory that is not empty, and link(2) fails if it exists; both without a
//! gap. Only an empty directory, or a file where the filesystem has no hard links, could be replaced if it appeared
//! between the look for it and the renaming.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Renames something to a name that does not exist. EEXIST if it does.
pub fn rename_new(
    from: impl AsFd,
    old: impl Arg + Copy,
    to: impl AsFd,
    new: impl Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(&from, old, &to, new, RenameFlags::NOREPLACE) {
        // EINVAL is also the answer to a directory that is moved into itself, which what follows gives, too.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => without_flag(from, old, to, new),
        done => done,
    }
}

fn without_flag(
    from: impl AsFd,
    old: impl Arg + Copy,
    to: impl AsFd,
    new: impl Arg + Copy,
) -> Result<(), Errno> {
    let found = rustix::fs::statat(&from, old, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        match rustix::fs::linkat(&from, old, &to, new, AtFlags::empty()) {
            Ok(()) => return rustix::fs::unlinkat(&from, old, AtFlags::empty()),
            // The filesystem has no hard links, or not of such a file.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {}
            Err(errno) => return Err(errno),
        }
    }
    match rustix::fs::statat(&to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => return Err(Errno::EXIST),
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    match rustix::fs::renameat(from, old, to, new) {
        Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => Err(Errno::EXIST),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_replaced() {
        let place = std::env::temp_dir().join(format!("ibifs-renaming-{}", std::process::id()));
        std::fs::create_dir_all(place.join("full/x")).expect("a directory");
        std::fs::create_dir_all(place.join("empty")).expect("a directory");
        std::fs::create_dir_all(place.join("moved/x")).expect("a directory");
        std::fs::write(place.join("file"), "file").expect("a file");
        std::fs::write(place.join("other"), "other").expect("a file");
        let here = std::fs::File::open(&place).expect("a directory");
        for rename in [rename_new, without_flag] as [fn(_, _, _, _) -> _; 2] {
            for taken in ["full", "empty", "file"] {
                for old in ["moved", "other"] {
                    let done = rename(&here, old, &here, taken);
                    assert_eq!(done, Err(Errno::EXIST), "{old} to {taken}");
                }
            }
            assert_eq!(rename(&here, "none", &here, "new"), Err(Errno::NOENT));
            for (old, new) in [("moved", "new"), ("other", "new")] {
                assert_eq!(rename(&here, old, &here, new), Ok(()));
                assert!(place.join(new).exists() && !place.join(old).exists());
                assert_eq!(rename(&here, new, &here, old), Ok(()));
            }
        }
        std::fs::remove_dir_all(&place).expect("removed");
    }
}
