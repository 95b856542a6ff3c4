//! Attributes as they are shown, native extended attributes, and the rights on the path to an item.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Access, FileType, XattrFlags};
use rustix::io::Errno;

use super::fixture::{Fixture, ibip, rep, split};
use crate::archive::Actor;
use crate::fuse::inode::{Generated, Node, NodeKind};
use crate::fuse::inside::CAPABILITY;
use crate::fuse::namespace::NameLifetime;
use crate::fuse::namespace::modes::ACL;

fn set_mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("a mode");
}

/// An access control list that grants the user of this number the right to read.
fn list_with_a_user(uid: u32) -> Vec<u8> {
    let mut list = vec![2, 0, 0, 0];
    let nobody = u32::MAX;
    for (tag, bits, number) in [
        (1_u8, 7, nobody),
        (2, 4, uid),
        (4, 5, nobody),
        (0x10, 5, nobody),
        (0x20, 5, nobody),
    ] {
        list.extend([tag, 0, bits, 0]);
        list.extend(number.to_le_bytes());
    }
    list
}

fn set_list(path: &Path, list: &[u8]) {
    rustix::fs::setxattr(path, ACL, list, XattrFlags::empty()).expect("a list");
}

#[test]
fn virtual_names_have_the_attributes_of_their_kind() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "doc/a", "x");
    let root = fixture.namespace.attributes(&fixture.node(""));
    let root = root.expect("attributes");
    let list = Generated::FileList(item.id);
    let target = b"../there".to_vec();
    let length = target.len() as u64;
    for (kind, file_type, permissions, size, uid) in [
        (
            NodeKind::Link(target.clone()),
            FileType::Symlink,
            0o777,
            length,
            root.uid,
        ),
        (
            NodeKind::OwnLink(target, 4711),
            FileType::Symlink,
            0o777,
            length,
            4711,
        ),
        (
            NodeKind::Text(b"title".to_vec()),
            FileType::RegularFile,
            0o444,
            5,
            root.uid,
        ),
        (
            NodeKind::Generated(list),
            FileType::RegularFile,
            0o444,
            0,
            root.uid,
        ),
        (
            NodeKind::Prefix("8JMKD3MGP8W".into()),
            FileType::Directory,
            root.permissions | 0o1222,
            root.size,
            root.uid,
        ),
        (
            NodeKind::Mint,
            FileType::Directory,
            root.permissions,
            root.size,
            root.uid,
        ),
    ] {
        let attr = fixture.namespace.virtual_attr(&kind).expect("attributes");
        assert_eq!(
            (attr.kind, attr.permissions, attr.size, attr.uid),
            (file_type, permissions, size, uid),
            "{kind:?}"
        );
    }
    // A list that was read is as long as it was then.
    let read = fixture.namespace.generate(&fixture.caller, list);
    let read = read.expect("a list");
    let attr = fixture.namespace.virtual_attr(&NodeKind::Generated(list));
    assert_eq!(attr.expect("attributes").size, read.bytes().len() as u64);
}

#[test]
fn names_inside_an_item_are_of_the_kind_on_the_disk() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "a", "x");
    for (path, kind) in [
        (String::new(), FileType::Directory),
        ("/doc".to_owned(), FileType::Directory),
        ("/a".to_owned(), FileType::RegularFile),
    ] {
        let [here, there] = [rep(&item), ibip(&item)].map(|name| {
            let entry = fixture.find(&format!("{name}{path}")).expect("found");
            assert_eq!(entry.attr.kind, kind, "{name}{path}");
            entry.node
        });
        // The kernel allows a directory one parent only, and shares the pages of a file.
        let is_one = kind == FileType::RegularFile;
        assert_eq!(here.id == there.id, is_one, "{path}");
        assert_eq!(here.view == there.view, is_one, "{path}");
    }
    let statistics = |path: &str| {
        let statistics = fixture.namespace.statistics(&fixture.node(path));
        statistics.expect("statistics").f_blocks
    };
    assert_eq!(statistics(&rep(&item)), statistics(".mint"));
}

#[test]
fn attributes_of_files_are_the_disks_own() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    fixture.write(&item, "a", "x");
    let path = format!("{}/a", rep(&item));
    let file = fixture.node(&path);
    let (namespace, by) = (&fixture.namespace, fixture.context());
    let get = |node: &Node, name: &str, limit| namespace.xattr(node, OsStr::new(name), limit);
    let set = |name: &str, value: &[u8], flags: XattrFlags| {
        namespace.set_xattr(&by, &file, OsStr::new(name), value, flags.bits() as i32)
    };
    let none = XattrFlags::empty();
    assert_eq!(get(&file, "user.x", 0), Err(Errno::NODATA));
    assert_eq!(
        set("user.x", b"abc", XattrFlags::REPLACE),
        Err(Errno::NODATA)
    );
    assert_eq!(set("user.x", b"abc", none), Ok(()));
    assert_eq!(set("user.x", b"abc", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(get(&file, "user.x", 0), Ok(b"abc".to_vec()));
    assert_eq!(get(&file, "user.x", 3), Ok(b"abc".to_vec()));
    assert_eq!(get(&file, "user.x", 2), Err(Errno::RANGE));
    let names = namespace.xattr_names(&fixture.caller, &file, 0);
    assert_eq!(names, Ok(b"user.x\0".to_vec()));
    assert_eq!(
        get(&file, "security.selinux", 0),
        Err(Errno::OPNOTSUPP),
        "without labels `ls -l` asks once"
    );
    // The kernel asks for a capability before each first write: the answer is remembered.
    assert!(!file.learnt.lacks_capability());
    assert_eq!(get(&file, CAPABILITY, 0), Err(Errno::NODATA));
    assert!(file.learnt.lacks_capability());
    assert_eq!(get(&file, "user.x", 0), Ok(b"abc".to_vec()));
    assert_eq!(set("user.x", b"d", none), Ok(()));
    assert!(file.learnt.lacks_capability(), "another attribute was set");
    let remove = |node: &Node| namespace.remove_xattr(&by, node, OsStr::new("user.x"), || false);
    assert_eq!(remove(&file), Ok(()));
    assert_eq!(remove(&file), Err(Errno::NODATA));
    let year = fixture.node(split(&rep(&item)).0);
    let mint = fixture.node(".mint");
    assert_eq!(remove(&mint), Err(Errno::OPNOTSUPP));
    assert_eq!(namespace.xattr_names(&fixture.caller, &mint, 0), Ok(vec![]));
    assert_eq!(
        get(&year, "user.ibi.rep", 0),
        Err(Errno::NODATA),
        "a level is not an item"
    );
}

/// Copying tools compare the list of a virtual directory with that of the root, whose owner and mode it has.
#[test]
fn virtual_directories_have_the_access_list_of_the_root() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let list = list_with_a_user(4711);
    let collection = fixture.path().join("col");
    set_list(&collection, &list);
    let other = "user.x";
    rustix::fs::setxattr(&collection, other, b"y", XattrFlags::empty()).expect("set");
    let name = ibip(&item);
    for path in [split(&name).0, ".mint"] {
        let node = fixture.node(path);
        let get = |name: &str| fixture.namespace.xattr(&node, OsStr::new(name), 0);
        assert_eq!(get(ACL), Ok(list.clone()), "{path}");
        assert_eq!(get(other), Err(Errno::NODATA), "{path}");
    }
}

/// The kernel does not check the levels of the rep tree on the path by the IBIp: it must ask each time.
#[test]
fn an_item_below_a_restricted_level_is_looked_up_for_each_user() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let is_cached = || {
        let entry = fixture.find(&ibip(&item)).expect("found");
        entry.lifetime == NameLifetime::UntilInvalidated
    };
    assert!(is_cached());
    for (level, is_checked_by_the_kernel) in [
        (".", true),
        ("..", false),
        ("../..", false),
        ("../../..", false),
        ("../../../..", true),
    ] {
        let level = fixture.file(&item, level).canonicalize().expect("a level");
        let metadata = std::fs::metadata(&level).expect("a level");
        for mode in [0o700, 0o744, 0o766] {
            set_mode(&level, mode);
            assert_eq!(is_cached(), is_checked_by_the_kernel, "{level:?} {mode:o}");
        }
        set_mode(&level, metadata.permissions().mode());
        assert!(is_cached(), "{level:?}");
    }
    let year = fixture.file(&item, "..");
    set_list(&year, &list_with_a_user(4711));
    assert!(!is_cached(), "a list may deny what the mode grants");
    let in_rep = fixture.find(&rep(&item)).expect("found");
    assert_eq!(
        in_rep.lifetime,
        NameLifetime::UntilInvalidated,
        "in the rep tree the kernel checks"
    );
}

#[test]
fn a_caller_owns_what_its_user_owns() {
    let fixture = Fixture::new();
    let caller = fixture.caller;
    assert!(caller.owns(caller.uid));
    assert_eq!(caller.owner(), Some((caller.uid, caller.gid)));
    let item = fixture.mint(None);
    fixture.write(&item, "a", "x");
    let file = std::fs::File::open(fixture.file(&item, "a")).expect("opened");
    assert!(caller.may(file.as_fd(), Access::READ_OK));
    assert!(!caller.may(file.as_fd(), Access::EXEC_OK), "not even root");
}
