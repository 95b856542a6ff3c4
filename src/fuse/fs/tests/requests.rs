//! Lookups, what they count, and refusals.

use std::ffi::OsStr;

use fuser::{FileHandle, INodeNo, OpenFlags, WriteFlags};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::fixture::Adapter;
use crate::archive::operations::testing::OTHER_USER;
use crate::fuse::fs::handles::{Handle, Handles};
use crate::fuse::fs::io::WritePlace;
use crate::fuse::inode::{NodeId, ROOT};
use crate::fuse::inside::{self, Removal};
use crate::os::caller::Caller;

const MODE: (u32, u32) = (0o755, 0);

#[test]
fn names_of_each_kind_are_looked_up() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    let (subdomain, _) = rep.split_once('/').expect("levels");
    let ibip = item.names.ibip().expect("an IBIp").to_string();
    let (prefix, _) = ibip.split_once('/').expect("a prefix");
    for (path, kind) in [
        (subdomain.to_owned(), Ok(FileType::Directory)),
        (subdomain.to_uppercase(), Ok(FileType::Symlink)),
        (rep.clone(), Ok(FileType::Directory)),
        (prefix.to_owned(), Ok(FileType::Directory)),
        (ibip.clone(), Ok(FileType::Directory)),
        (".mint".to_owned(), Ok(FileType::Directory)),
        (".find".to_owned(), Ok(FileType::Directory)),
        (format!("{rep}/doc"), Ok(FileType::Directory)),
        (format!("{ibip}/.ibi"), Ok(FileType::RegularFile)),
        (format!("{rep}/.ibi/x"), Err(Errno::NOTDIR)),
        (format!("{rep}?GetFileList"), Ok(FileType::RegularFile)),
        (format!("{rep}!?GetFileList"), Err(Errno::NOENT)),
        (format!("{rep}/missing"), Err(Errno::NOENT)),
        (format!("{prefix}/ZZZZZZ"), Err(Errno::NOENT)),
        ("missing.org".to_owned(), Err(Errno::NOENT)),
        ("a".repeat(256), Err(Errno::NAMETOOLONG)),
    ] {
        let found = adapter.find(&path).map(|entry| entry.attr.kind);
        assert_eq!(found, kind, "{path}");
    }
    let unknown = adapter.look_up(&adapter.caller, INodeNo(9999), OsStr::new("a"));
    assert_eq!(unknown.err(), Some(Errno::STALE));
}

#[test]
fn a_node_is_known_until_each_lookup_is_forgotten() {
    for (lookups, forgotten, is_known) in [
        (1, &[1][..], false),
        (1, &[][..], true),
        (3, &[1, 1][..], true),
        (3, &[1, 2][..], false),
        (3, &[3][..], false),
        (2, &[9][..], false),
    ] {
        let adapter = Adapter::new();
        let (_, rep) = adapter.mint();
        let parent = adapter.number(&rep);
        let find = || adapter.look_up(&adapter.caller, parent, OsStr::new("doc"));
        let found: Vec<_> = (0..lookups).map(|_| find().expect("found")).collect();
        let id = found[0].node.id;
        drop(found);
        for count in forgotten {
            adapter.forget_node(id, *count);
        }
        let known = adapter.node(INodeNo(id.0)).map(drop);
        let expected = if is_known { Ok(()) } else { Err(Errno::STALE) };
        assert_eq!(
            known, expected,
            "{lookups} lookups, forgotten {forgotten:?}"
        );
    }
}

#[test]
fn the_root_is_never_forgotten() {
    let adapter = Adapter::new();
    adapter.forget_node(ROOT, u64::MAX);
    assert!(adapter.node(INodeNo(ROOT.0)).is_ok());
}

#[test]
fn refused_changes_of_names_have_their_errno() {
    let adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let caller = &adapter.caller;
    let in_item = |name: &str| format!("{rep}/{name}");
    let file = in_item("a");
    adapter.create(&file, libc::O_RDWR).expect("a file");
    adapter
        .create(&in_item("doc/b"), libc::O_RDWR)
        .expect("a file");
    let make = |path: &str| {
        let made = adapter.make_directory(*caller, adapter.name(path), MODE);
        made.err()
    };
    let remove = |path: &str, removal| adapter.remove(caller, adapter.name(path), removal).err();
    let rename = |from: &str, to: &str, flags| {
        let (from, to) = (adapter.name(from), adapter.name(to));
        adapter.rename_name(caller, from, to, flags).err()
    };
    let set = |name: &str, flags| {
        let name = (adapter.number(&rep), OsStr::new(name));
        adapter.set_xattr(caller, name, b"x", flags).err()
    };
    let create = |path: &str| adapter.create(path, libc::O_RDWR | libc::O_EXCL).err();
    let link = |path: &str| adapter.make_link(caller, adapter.name(path), b"to").err();
    for (refused, errno, what) in [
        (make(".mint/.hidden"), Errno::INVAL, "mkdir .mint/.hidden"),
        (make(".Trash"), Errno::PERM, "mkdir .Trash"),
        (make(&file), Errno::EXIST, "mkdir of a file"),
        (create(&file), Errno::EXIST, "create with O_EXCL"),
        (link(&file), Errno::EXIST, "symlink"),
        (
            remove(&in_item("none"), Removal::Unlink),
            Errno::NOENT,
            "unlink",
        ),
        (
            remove(&in_item("doc"), Removal::Unlink),
            Errno::ISDIR,
            "unlink",
        ),
        (remove(&file, Removal::Rmdir), Errno::NOTDIR, "rmdir"),
        (
            remove(&in_item("doc"), Removal::Rmdir),
            Errno::NOTEMPTY,
            "rmdir",
        ),
        (rename(&file, &in_item("doc"), 0), Errno::ISDIR, "rename"),
        (
            rename(&file, &in_item("doc/b"), 1),
            Errno::EXIST,
            "RENAME_NOREPLACE",
        ),
        (set("user.ibi.nonsense", 0), Errno::PERM, "setxattr"),
        (
            set("user.a", libc::XATTR_REPLACE),
            Errno::NODATA,
            "XATTR_REPLACE",
        ),
    ] {
        assert_eq!(refused, Some(errno), "{what}");
    }
}

#[test]
fn refused_requests_on_open_files_have_their_errno() {
    let adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let caller = &adapter.caller;
    let read_only = adapter.open(&format!("{rep}/.ibi"), libc::O_RDONLY);
    let generated = adapter.open(&format!("{rep}?GetFileList"), libc::O_RDONLY);
    let (file, text) = (read_only.expect("opens"), generated.expect("opens"));
    let (file, text, none) = (file.handle, text.handle, FileHandle(9999));
    let write = |handle| {
        let at = WritePlace::new(0, OpenFlags(0), WriteFlags::empty());
        adapter.write_file(caller, handle, at, b"x").err()
    };
    let open = |path: &str, flags| adapter.open(path, flags).err();
    let seek = |handle| {
        let seek = adapter.with_file(handle, |file| inside::seek(file, 0, 99));
        seek.err()
    };
    let list = |handle| adapter.list(handle, 0, |_, _| false).err();
    let sync = |handle| adapter.wait(Ok(adapter.sync(caller, handle, false))).err();
    let control = |handle| {
        let root = (INodeNo(ROOT.0), handle);
        adapter.control(*caller, root, 0, b"").err()
    };
    let stale = adapter.open_file(*caller, INodeNo(9999), libc::O_RDONLY);
    for (refused, errno, what) in [
        (
            stale.err(),
            Errno::STALE,
            "open of a node that is not known",
        ),
        (
            open(&format!("{rep}?GetFileList"), libc::O_RDWR),
            Errno::PERM,
            "open",
        ),
        (
            open(".mint", libc::O_RDONLY),
            Errno::PERM,
            "open of a virtual directory",
        ),
        (
            adapter.read_file(none, 0, 1).err(),
            Errno::BADF,
            "read without a handle",
        ),
        (write(none), Errno::BADF, "write without a handle"),
        (write(text), Errno::BADF, "write to a virtual file"),
        (
            write(file),
            Errno::BADF,
            "write to a file that is open for reading",
        ),
        (list(file), Errno::BADF, "readdir of a file"),
        (list(none), Errno::BADF, "readdir without a handle"),
        (seek(text), Errno::BADF, "lseek in a virtual file"),
        (seek(file), Errno::INVAL, "lseek to nowhere"),
        (sync(none), Errno::BADF, "fsync without a handle"),
        (control(text), Errno::NOTTY, "ioctl of a virtual file"),
    ] {
        assert_eq!(refused, Some(errno), "{what}");
    }
}

#[test]
fn a_user_with_too_many_open_files_opens_no_more() {
    let mut adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let other = Caller {
        uid: OTHER_USER.uid,
        ..adapter.caller
    };
    let inner = std::sync::Arc::get_mut(&mut adapter.inner).expect("no job has it");
    inner.handles = Handles::new(1);
    let directory = adapter.number(&rep);
    let (sidecar, new) = (adapter.number(&format!("{rep}/.ibi")), OsStr::new("new"));
    let open = || {
        [
            adapter.open_file(other, sidecar, 0).err(),
            adapter.open_directory(other, directory).err(),
            adapter
                .create_file(&other, (directory, new), libc::O_RDWR, MODE)
                .err(),
        ]
    };
    let node = adapter.node(sidecar).expect("known");
    let handle = adapter.handles.add(other.uid, Handle::Text(node));
    assert_eq!(open(), [Some(Errno::NFILE); 3]);
    assert!(
        adapter.open(&format!("{rep}/.ibi"), 0).is_ok(),
        "another user"
    );
    drop(adapter.handles.remove(handle));
    assert_eq!(adapter.handles.check(other.uid), Ok(()));
}

#[test]
fn numbers_of_what_is_held_go_back() {
    let adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let held = || adapter.xattr_of_root(crate::fuse::fs::HELD);
    let before = held();
    let entry = adapter.find(&format!("{rep}/doc")).expect("found");
    let id: NodeId = entry.node.id;
    drop(entry);
    let list = adapter.open_list(&format!("{rep}/doc"));
    assert!(held().ends_with("handles 1 backings 0"), "{}", held());
    drop(adapter.handles.remove(list));
    adapter.forget_node(id, 2);
    for level in (1..=rep.split('/').count()).rev() {
        let path: Vec<_> = rep.split('/').take(level).collect();
        let id = NodeId(adapter.number(&path.join("/")).0);
        adapter.forget_node(id, u64::MAX);
    }
    assert_eq!(held(), before);
}
