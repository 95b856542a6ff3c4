//! Files that are made, opened, read, written and closed.

use std::cell::Cell;

use fuser::{FopenFlags, OpenFlags, WriteFlags};
use rustix::io::Errno;

use super::fixture::Adapter;
use crate::fuse::fs::DATA;
use crate::fuse::fs::io::WritePlace;
use crate::fuse::fs::outcome::Outcome;
use crate::fuse::inside::AttributeChange;

#[test]
fn a_file_is_made_written_read_and_closed() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    let caller = &adapter.caller;
    let handle = adapter.create(&format!("{rep}/a"), libc::O_RDWR);
    let handle = handle.expect("a file");
    for (offset, flags, is_page, bytes, after) in [
        (0, 0, false, "first", "first"),
        (5, 0, false, " last", "first last"),
        (6, 0, false, "L", "first Last"),
        (0, libc::O_APPEND, false, "!", "first Last!"),
        (0, libc::O_APPEND, true, "F", "First Last!"),
    ] {
        let page = WriteFlags::FUSE_WRITE_CACHE;
        let write_flags = if is_page { page } else { WriteFlags::empty() };
        let at = WritePlace::new(offset, OpenFlags(flags), write_flags);
        let written = adapter.write_file(caller, handle, at, bytes.as_bytes());
        assert_eq!(written, Ok(bytes.len()), "{bytes}");
        let read = adapter.read_file(handle, 0, 100).expect("read");
        assert_eq!(String::from_utf8_lossy(&read), after);
    }
    for (offset, size, part) in [(0, 5, "First"), (6, 99, "Last!"), (99, 1, "")] {
        let read = adapter.read_file(handle, offset, size);
        assert_eq!(read.as_deref(), Ok(part.as_bytes()), "{offset}");
    }
    assert_eq!(adapter.closed(caller, handle), Ok(()));
    assert_eq!(adapter.close(handle), Ok(()));
    assert_eq!(adapter.read_file(handle, 0, 1).err(), Some(Errno::BADF));
    assert_eq!(adapter.handles.len(), 0);
    let on_disk = std::fs::read_to_string(adapter.archive.file(&item, "a"));
    assert_eq!(on_disk.expect("a file"), "First Last!");
}

#[test]
fn parts_of_generated_texts_are_read_as_those_of_files() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    std::fs::write(adapter.archive.file(&item, "doc/report.txt"), "").expect("a file");
    let opened = adapter.open(&format!("{rep}?GetFileList"), libc::O_RDONLY);
    let opened = opened.expect("opens");
    let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH;
    assert_eq!(opened.flags, flags, "another open may have another text");
    let whole = adapter.read_file(opened.handle, 0, usize::MAX);
    let whole = whole.expect("a text");
    assert!(!whole.is_empty());
    let length = whole.len();
    for (offset, size, expected) in [
        (0, 4, &whole[..4]),
        (4, length, &whole[4..]),
        (length, 1, &[]),
        (usize::MAX, 1, &[]),
    ] {
        let part = adapter.read_file(opened.handle, offset as u64, size);
        assert_eq!(part.as_deref(), Ok(expected), "{offset}");
    }
}

#[test]
fn a_file_is_registered_once_with_its_reply_and_no_more_if_that_is_refused() {
    for (passthrough, errno, tried, words) in [
        (false, Errno::PERM, 0, "daemon option"),
        (true, Errno::PERM, 1, "daemon no-capability"),
        (true, Errno::LOOP, 1, "daemon stacked"),
        (true, Errno::OPNOTSUPP, 1, "daemon unsupported"),
        (true, Errno::IO, 1, "daemon error 5"),
    ] {
        let adapter = Adapter::with_passthrough(passthrough);
        let (_, rep) = adapter.mint();
        let number = adapter.number(&format!("{rep}/.ibi"));
        let count = Cell::new(0);
        for _ in 0..2 {
            let opened = adapter.open_file(adapter.caller, number, libc::O_RDONLY);
            let Ok(Outcome::Now(opened)) = opened else {
                panic!("not opened at once");
            };
            let opened = adapter.register(opened, |_| {
                count.set(count.get() + 1);
                Err(errno.into())
            });
            assert!(opened.backing.is_none());
            assert!(opened.flags.contains(FopenFlags::FOPEN_KEEP_CACHE));
        }
        assert_eq!((count.get(), &*adapter.xattr_of_root(DATA)), (tried, words));
    }
}

#[test]
fn a_close_that_leaves_a_sidecar_nothing_can_read_fails() {
    let adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let sidecar = format!("{rep}/.ibi");
    let opened = adapter.open(&sidecar, libc::O_WRONLY | libc::O_TRUNC);
    let handle = opened.expect("opens").handle;
    let at = WritePlace::new(0, OpenFlags(0), WriteFlags::empty());
    let written = adapter.write_file(&adapter.caller, handle, at, b"nonsense\n");
    assert_eq!(written, Ok(9));
    let closed = adapter.closed(&adapter.caller, handle);
    assert_eq!(closed, Err(Errno::INVAL));
    assert_eq!(adapter.close(handle), Ok(()));
}

#[test]
fn attributes_are_set_by_handle_and_by_name() {
    let adapter = Adapter::new();
    let (_, rep) = adapter.mint();
    let handle = adapter.create(&format!("{rep}/a"), libc::O_RDWR);
    let handle = handle.expect("a file");
    let number = adapter.number(&format!("{rep}/a"));
    for (handle, size, mode) in [
        (Some(handle), Some(10), None),
        (None, Some(3), None),
        (None, None, Some(0o600)),
    ] {
        let change = AttributeChange {
            size,
            mode,
            ..AttributeChange::default()
        };
        let changed = adapter.set_attributes(adapter.caller, number, handle, change);
        let Ok(Outcome::Now((_, attr))) = changed else {
            panic!("not changed at once");
        };
        let asked = adapter.wait(adapter.attributes(adapter.caller, number));
        let (_, asked) = asked.expect("attributes");
        assert_eq!(attr.size, size.unwrap_or(3));
        assert_eq!(attr.permissions, if mode.is_some() { 0o600 } else { 0o644 });
        assert_eq!(
            (attr.size, attr.permissions),
            (asked.size, asked.permissions)
        );
    }
}
