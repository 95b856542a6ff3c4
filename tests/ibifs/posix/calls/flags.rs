//! The flags of a file (chattr), its generation, and its handle.

use libc::AT_FDCWD;

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::snapshot::{look, looked};
use crate::posix::system::{room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    Some(match words.name() {
        "getflags" => on(bench, words, |file| {
            let flags = get(file)?;
            // Extents and the index of a directory are ext4's own business.
            let shown = FLAGS.iter().filter(|(_, bit)| flags & bit != 0);
            let names: Vec<&str> = shown.map(|(name, _)| *name).collect();
            Ok(names.join("|"))
        }),
        // Adds flags, and takes away with a `-` before them.
        "setflags" => on(bench, words, |file| {
            let flags = get(file)?;
            let word = words.word(2);
            let mut new = match word.strip_prefix('-') {
                Some(names) => flags & !super::words::flags(names, FLAGS),
                None => flags | super::words::flags(word, FLAGS),
            };
            let set = 0x4008_6602u32; // FS_IOC_SETFLAGS
            done(sys!(SYS_ioctl, file, set, room(&mut new)))
        }),
        "generation" => on(bench, words, |file| {
            let mut number = 0i64;
            let get = 0x8008_7601u32; // FS_IOC_GETVERSION
            sys!(SYS_ioctl, file, get, room(&mut number)).map(|_| String::new())
        }),
        // An unknown request.
        "ioctl" => on(bench, words, |file| {
            let mut nothing = 0i64;
            done(sys!(SYS_ioctl, file, words.number(2), room(&mut nothing)))
        }),
        "handle" => handle(bench, words),
        _ => return None,
    })
}

const FLAGS: &[(&str, i64)] = &[
    ("IMMUTABLE", 0x10),
    ("APPEND", 0x20),
    ("NODUMP", 0x40),
    ("NOATIME", 0x80),
];

fn get(file: i64) -> Result<i64, i32> {
    let mut flags = 0i64;
    let get = 0x8008_6601u32; // FS_IOC_GETFLAGS
    sys!(SYS_ioctl, file, get, room(&mut flags))?;
    Ok(flags & 0xffff_ffff)
}

fn on(bench: &Bench, words: &Words<'_>, action: impl FnOnce(i64) -> Outcome) -> Outcome {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = sys!(SYS_openat, AT_FDCWD, words.path(bench, 1), flags, 0)?;
    let outcome = action(file);
    sys!(SYS_close, file)?;
    outcome
}

/// Takes the handle of a file and opens the file by it: the same file.
fn handle(bench: &Bench, words: &Words<'_>) -> Outcome {
    let path = words.path(bench, 1);
    let mut handle = [0u32; 2 + 32];
    handle[0] = 128;
    let mut mount = 0i32;
    let before = look(AT_FDCWD, &path, libc::AT_SYMLINK_NOFOLLOW)?;
    let (room_of_handle, room_of_mount) = (room(&mut handle), room(&mut mount));
    sys!(
        SYS_name_to_handle_at,
        AT_FDCWD,
        path,
        room_of_handle,
        room_of_mount,
        0
    )?;
    let flags = libc::O_DIRECTORY | libc::O_CLOEXEC;
    let here = sys!(SYS_openat, AT_FDCWD, c".".to_owned(), flags, 0)?;
    let opened = sys!(
        SYS_open_by_handle_at,
        here,
        room_of_handle,
        libc::O_PATH | libc::O_CLOEXEC
    );
    sys!(SYS_close, here)?;
    let opened = opened?;
    let after = looked(opened as i32)?;
    sys!(SYS_close, opened)?;
    Ok(if before.inode == after.inode {
        String::new()
    } else {
        "another file".to_owned()
    })
}
