//! Writes whole files: under a temporary name, synced, and renamed into place.
//!
//! The space is charged to the charged user of this thread, see [`charging`].

use std::fs::{File, FileTimes};
use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::charging;

/// Sets the time of the last change of content. The time of access becomes now: some filesystems in user space do nothing
/// when only one of the two is set, and report success.
pub fn set_modified(file: &File, time: SystemTime) -> std::io::Result<()> {
    let times = FileTimes::new().set_accessed(SystemTime::now());
    file.set_times(times.set_modified(time))
}

/// A user and a group, by number.
pub type Ids = (u32, u32);

/// Writes all bytes at the current position of a file.
pub fn write_all(file: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(&file, rest) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes a file with this content, mode and owner; not synced. Without an owner it belongs to the user as
/// whom this thread writes. A process without the right to change owners keeps it.
///
/// # Errors
/// EEXIST where the name is taken, perhaps by a link to another user's file. After any other error
/// no file is left behind.
pub fn create(
    directory: impl AsFd,
    name: &str,
    bytes: &[u8],
    mode: u32,
    owner: Option<Ids>,
) -> Result<OwnedFd, Errno> {
    let mode = Mode::from_raw_mode(mode);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    charging::charged(|| {
        let file = rustix::fs::openat(&directory, name, flags, mode)?;
        let filled = write_all(&file, bytes)
            // Independent of the process's umask, which may be the last caller's.
            .and_then(|()| rustix::fs::fchmod(&file, mode))
            .and_then(|()| match owner {
                Some(owner) => give(&file, owner),
                None => Ok(()),
            });
        match filled {
            Ok(()) => Ok(file),
            Err(errno) => {
                let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
                Err(errno)
            }
        }
    })
}

/// Gives a file to a user and a group. A process without the right to change owners keeps it.
pub fn give(file: impl AsFd, (uid, gid): Ids) -> Result<(), Errno> {
    match rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))) {
        // A daemon of an ordinary user cannot change owners.
        Err(Errno::PERM) => Ok(()),
        other => other,
    }
}

/// The state on disk of the content of a file before it has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is synced before.
    Synced,
    /// It may be written later.
    Unsynced,
}

/// Renames a new file into place, in the same or another directory of its filesystem. The caller syncs the
/// directory. On an error the new file is removed.
pub fn rename_into_place(
    file: &OwnedFd,
    (from, temporary): (impl AsFd, &str),
    (to, name): (impl AsFd, &str),
    durability: Durability,
) -> Result<(), Errno> {
    let synced = match durability {
        Durability::Synced => rustix::fs::fsync(file),
        Durability::Unsynced => Ok(()),
    };
    let renamed = synced
        .and_then(|()| charging::charged(|| rustix::fs::renameat(&from, temporary, &to, name)));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(&from, temporary, AtFlags::empty());
    }
    renamed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::testing::TemporaryDirectory;

    struct Fixture(TemporaryDirectory, std::fs::File);

    impl Fixture {
        fn new() -> Fixture {
            let directory = TemporaryDirectory::new();
            let opened = directory.opened();
            Fixture(directory, opened)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(self.0.path()).expect("listed");
            let name = |entry: std::io::Result<std::fs::DirEntry>| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            };
            let mut names: Vec<_> = entries.map(name).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_file_is_made_with_its_mode_and_replaces_another() {
        let fixture = Fixture::new();
        let directory = &fixture.1;
        std::fs::write(fixture.0.join("name"), "before").expect("written");
        for (mode, content) in [(0o600, &b"new"[..]), (0o1644, b""), (0o640, &[7; 100_000])] {
            let file = create(directory, "temporary", content, mode, None).expect("made");
            assert_eq!(fixture.names(), ["name", "temporary"]);
            rename_into_place(
                &file,
                (directory, "temporary"),
                (directory, "name"),
                Durability::Synced,
            )
            .expect("renamed");
            assert_eq!(fixture.names(), ["name"]);
            assert_eq!(
                std::fs::read(fixture.0.join("name")).expect("read"),
                content
            );
            let metadata = fixture.0.join("name").metadata().expect("there");
            assert_eq!(metadata.permissions().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn a_taken_name_is_left_alone() {
        let fixture = Fixture::new();
        std::fs::write(fixture.0.join("other"), "another's").expect("written");
        std::os::unix::fs::symlink("other", fixture.0.join("link")).expect("made");
        for name in ["other", "link"] {
            let made = create(&fixture.1, name, b"ours", 0o644, None);
            assert_eq!(made.err(), Some(Errno::EXIST));
        }
        let content = std::fs::read(fixture.0.join("other")).expect("read");
        assert_eq!(content, b"another's");
    }

    #[test]
    fn nothing_is_left_where_the_rename_fails() {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.0.join("name")).expect("made");
        let file = create(&fixture.1, "temporary", b"x", 0o644, None).expect("made");
        let renamed = rename_into_place(
            &file,
            (&fixture.1, "temporary"),
            (&fixture.1, "name"),
            Durability::Unsynced,
        );
        assert_eq!(renamed, Err(Errno::ISDIR));
        assert_eq!(fixture.names(), ["name"]);
    }

    /// An ordinary user keeps the file; root changes its owner.
    #[test]
    fn an_owner_that_cannot_be_given_is_passed_over() {
        let fixture = Fixture::new();
        create(&fixture.1, "file", b"", 0o644, Some((65534, 65534))).expect("made");
        let uid = fixture.0.join("file").metadata().expect("there").uid();
        let own = rustix::process::geteuid();
        let expected = if own.is_root() { 65534 } else { own.as_raw() };
        assert_eq!(uid, expected);
    }
}
