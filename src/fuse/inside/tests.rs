use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, FileType};

use super::*;
use crate::fuse::attr::Time;
use crate::os::caller::Caller;
use crate::os::testing::TemporaryDirectory;

/// A temporary directory, open, and the user who runs the tests.
struct Directory {
    _root: TemporaryDirectory,
    file: OwnedFd,
    caller: Caller,
}

impl Directory {
    fn new() -> Directory {
        let root = TemporaryDirectory::new();
        let file = OwnedFd::from(root.opened());
        let caller = Caller {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id(),
        };
        Directory {
            _root: root,
            file,
            caller,
        }
    }

    fn create(&self, name: &str, flags: i32) -> ErrnoResult<OwnedFd> {
        let flags = flags | libc::O_RDWR;
        let name = OsStr::new(name);
        create(self.file.as_fd(), name, flags, 0o640, 0o022, &self.caller)
    }

    fn make(&self, name: &str, new: New<'_>, mode: u32) -> ErrnoResult<OwnedFd> {
        let name = OsStr::new(name);
        make(self.file.as_fd(), name, new, mode, 0o027, &self.caller)
    }

    fn find(&self, name: &str) -> ErrnoResult<OwnedFd> {
        find(self.file.as_fd(), OsStr::new(name))
    }

    fn write(&self, file: &OwnedFd, place: Where, text: &str) -> usize {
        let written = write_as(file.as_fd(), place, text.as_bytes(), false, &self.caller);
        written.expect("written")
    }

    fn names(&self) -> Vec<String> {
        let opened = open_directory(self.file.as_fd()).expect("opens");
        let mut names = Vec::new();
        list(opened.as_fd(), 0, |name, _, _, _| {
            names.push(name.to_string_lossy().into_owned());
            true
        })
        .expect("listed");
        names.retain(|name| name != "." && name != "..");
        names.sort();
        names
    }
}

#[test]
fn names_are_made_with_mode_and_umask() {
    let directory = Directory::new();
    for (name, new, mode, kind, permissions) in [
        ("a", New::Directory, 0o777, FileType::Directory, 0o750),
        ("b", New::Link(b"../x"), 0o777, FileType::Symlink, 0o777),
        (
            "c",
            New::Node(0),
            libc::S_IFIFO | 0o666,
            FileType::Fifo,
            0o640,
        ),
        (
            "d",
            New::Node(0),
            libc::S_IFREG | 0o600,
            FileType::RegularFile,
            0o600,
        ),
    ] {
        let made = directory.make(name, new, mode).expect("made");
        let attr = attributes(&made).expect("attributes");
        assert_eq!((attr.kind, attr.permissions), (kind, permissions), "{name}");
        assert_eq!(
            directory.make(name, new, mode).err(),
            Some(Errno::EXIST),
            "{name}"
        );
    }
    assert_eq!(
        read_link(directory.find("b").expect("found").as_fd()),
        Ok(b"../x".to_vec())
    );
    assert_eq!(directory.names(), ["a", "b", "c", "d"]);
}

#[test]
fn files_are_created_read_and_written() {
    let directory = Directory::new();
    let file = directory.create("a", libc::O_EXCL).expect("created");
    assert_eq!(directory.write(&file, Where::At(0), "hello world"), 11);
    assert_eq!(directory.write(&file, Where::At(6), "there"), 5);
    assert_eq!(directory.write(&file, Where::End, "!"), 1);
    for (offset, size, text) in [(0, 5, "hello"), (6, 99, "there!"), (12, 1, ""), (99, 1, "")] {
        assert_eq!(
            read(file.as_fd(), offset, size),
            Ok(text.as_bytes().to_vec())
        );
    }
    assert_eq!(
        directory.create("a", libc::O_EXCL).err(),
        Some(Errno::EXIST)
    );
    assert!(
        directory.create("a", 0).is_ok(),
        "an existing file is opened"
    );
    directory
        .make("fifo", New::Node(0), libc::S_IFIFO | 0o600)
        .expect("made");
    assert_eq!(
        directory.create("fifo", 0).err(),
        Some(Errno::STALE),
        "a FIFO would block"
    );
    directory.make("dir", New::Directory, 0o700).expect("made");
    assert_eq!(directory.create("dir", 0).err(), Some(Errno::ISDIR));
    assert_eq!(sync(file.as_fd(), true), Ok(()));
    assert_eq!(sync(file.as_fd(), false), Ok(()));
    assert_eq!(seek(file.as_fd(), -2, libc::SEEK_END), Ok(10));
    assert_eq!(seek(file.as_fd(), -1, libc::SEEK_SET), Err(Errno::INVAL));
}

#[test]
fn a_file_is_opened_by_its_descriptor() {
    let directory = Directory::new();
    let file = directory.create("a", 0).expect("created");
    directory.write(&file, Where::At(0), "text");
    let found = directory.find("a").expect("found");
    remove(directory.file.as_fd(), OsStr::new("a"), Removal::Unlink).expect("removed");
    let opened = open(found.as_fd(), libc::O_RDONLY, &directory.caller).expect("opens");
    assert_eq!(read(opened.as_fd(), 0, 9), Ok(b"text".to_vec()));
    let truncated = libc::O_WRONLY | libc::O_TRUNC;
    open(found.as_fd(), truncated, &directory.caller).expect("opens");
    assert_eq!(read(opened.as_fd(), 0, 9), Ok(Vec::new()));
    let again = find_open(found.as_fd()).expect("opens");
    assert_eq!(attributes(&again).expect("attributes").links, 0);
    let flags = content_flags(libc::O_DIRECT | libc::O_APPEND | libc::O_NOFOLLOW | libc::O_RDWR);
    assert_eq!(
        flags,
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC
    );
}

#[test]
fn names_are_linked_renamed_and_removed() {
    let directory = Directory::new();
    let (above, caller) = (directory.file.as_fd(), &directory.caller);
    let name = OsStr::new;
    let file = directory.create("a", 0).expect("created");
    link(file.as_fd(), above, name("b"), caller).expect("linked");
    assert_eq!(attributes(&file).expect("attributes").links, 2);
    let renamed = rename_for(above, name("b"), above, name("c"), 0, caller);
    assert_eq!(renamed, Ok(()));
    directory.create("d", 0).expect("created");
    let no_replace = libc::RENAME_NOREPLACE;
    let renamed = rename_for(above, name("c"), above, name("d"), no_replace, caller);
    assert_eq!(renamed, Err(Errno::EXIST));
    assert_eq!(rename(above, name("c"), above, name("d"), 0), Ok(()));
    assert_eq!(directory.names(), ["a", "d"]);
    directory.make("dir", New::Directory, 0o700).expect("made");
    assert_eq!(
        remove(above, name("dir"), Removal::Unlink),
        Err(Errno::ISDIR)
    );
    assert_eq!(remove(above, name("a"), Removal::Rmdir), Err(Errno::NOTDIR));
    assert_eq!(remove(above, name("dir"), Removal::Rmdir), Ok(()));
    assert_eq!(remove(above, name("a"), Removal::Unlink), Ok(()));
    assert_eq!(remove(above, name("a"), Removal::Unlink), Err(Errno::NOENT));
}

#[test]
fn attributes_are_changed_one_by_one() {
    let directory = Directory::new();
    let file = directory.create("a", 0).expect("created");
    directory.write(&file, Where::At(0), "some text");
    let found = directory.find("a").expect("found");
    let set = |change_to: &AttributeChange, open: Option<&OwnedFd>| {
        let open = open.map(|file| file.as_fd());
        let changed = change(found.as_fd(), open, change_to, &directory.caller, || true);
        changed.expect("changed");
        attributes(&found).expect("attributes")
    };
    let mode = AttributeChange {
        mode: Some(0o604),
        ..AttributeChange::default()
    };
    assert_eq!(set(&mode, None).permissions, 0o604);
    let size = |size| AttributeChange {
        size: Some(size),
        ..AttributeChange::default()
    };
    assert_eq!(set(&size(4), None).size, 4);
    assert_eq!(set(&size(7), Some(&file)).size, 7);
    let time = Time {
        seconds: -5,
        nanoseconds: 7,
    };
    let times = AttributeChange {
        modified: Some(NewTime::At(time)),
        ..AttributeChange::default()
    };
    let before = attributes(&found).expect("attributes");
    let after = set(&times, None);
    assert_eq!((after.modified, after.accessed), (time, before.accessed));
    let now = AttributeChange {
        accessed: Some(NewTime::Now),
        ..AttributeChange::default()
    };
    assert_eq!(set(&now, None).modified, time);
    let owner = AttributeChange {
        uid: Some(directory.caller.uid),
        ..AttributeChange::default()
    };
    assert_eq!(set(&owner, None).uid, directory.caller.uid);
    let unchanged = set(&AttributeChange::default(), None);
    assert_eq!((unchanged.permissions, unchanged.size), (0o604, 7));
}

#[test]
fn access_is_that_of_the_caller() {
    let directory = Directory::new();
    let found = directory.make("dir", New::Directory, 0o500).expect("made");
    let write = check_access(found.as_fd(), Access::WRITE_OK, &directory.caller);
    let expected = if directory.caller.uid == 0 {
        Ok(())
    } else {
        Err(Errno::ACCESS)
    };
    assert_eq!(write, expected);
    let read = check_access(found.as_fd(), Access::READ_OK, &directory.caller);
    assert_eq!(read, Ok(()));
    let above = directory.file.as_fd();
    assert_eq!(
        check_removal(above, found.as_fd(), &directory.caller),
        Ok(())
    );
}

#[test]
fn extended_attributes_are_set_listed_and_removed() {
    let directory = Directory::new();
    let file = directory.create("a", 0).expect("created");
    let (file, caller) = (file.as_fd(), &directory.caller);
    let name = OsStr::new("user.test");
    let set = |value: &str, flags| set_attribute(file, name, value.as_bytes(), flags, caller);
    match set("value", 0) {
        // Not every temporary directory has them.
        Err(Errno::OPNOTSUPP) => return,
        set => assert_eq!(set, Ok(())),
    }
    assert_eq!(set("other", libc::XATTR_CREATE), Err(Errno::EXIST));
    assert_eq!(get_attribute(file, name, 0), Ok(b"value".to_vec()));
    assert_eq!(get_attribute(file, name, 2), Err(Errno::RANGE));
    let names = list_attributes(file, 0, caller).expect("listed");
    assert!(
        names
            .split(|byte| *byte == 0)
            .any(|name| name == b"user.test")
    );
    assert_eq!(remove_attribute(file, name), Ok(()));
    assert_eq!(remove_attribute(file, name), Err(Errno::NODATA));
    assert_eq!(set("x", libc::XATTR_REPLACE), Err(Errno::NODATA));
    let bad = OsString::from("user.\0");
    assert_eq!(get_attribute(file, &bad, 0), Err(Errno::INVAL));
}

#[test]
fn ranges_are_copied_and_allocated() {
    let directory = Directory::new();
    let (from, to) = (
        directory.create("a", 0).expect("created"),
        directory.create("b", 0).expect("created"),
    );
    directory.write(&from, Where::At(0), "some text");
    let caller = &directory.caller;
    assert_eq!(
        copy_range(from.as_fd(), 5, to.as_fd(), 2, 99, caller),
        Ok(4)
    );
    assert_eq!(read(to.as_fd(), 0, 9), Ok(b"\0\0text".to_vec()));
    assert_eq!(allocate(to.as_fd(), 0, 0, 100, caller), Ok(()));
    assert_eq!(attributes(&to).expect("attributes").size, 100);
    let unknown = control(to.as_fd(), 0x1234, &[], caller);
    assert_eq!(unknown, Err(Errno::NOTTY));
    let too_short = control(to.as_fd(), 0x4008_6602, &[0], caller);
    assert_eq!(too_short, Err(Errno::INVAL));
}

#[test]
fn a_listing_continues_where_it_was_left() {
    let directory = Directory::new();
    for number in 0..100 {
        directory
            .create(&format!("file-{number:03}"), 0)
            .expect("created");
    }
    let opened = open_directory(directory.file.as_fd()).expect("opens");
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let before = names.len();
        list(opened.as_fd(), offset, |name, _, _, next| {
            names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
            offset = next;
            names.len() - before < 7
        })
        .expect("listed");
        if names.len() == before {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 102, "with . and ..");
}
