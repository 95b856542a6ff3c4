//! Calls that make, change and remove names.

use libc::AT_FDCWD;

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::system::{room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let path = |at| words.path(bench, at);
    Some(done(match words.name() {
        "mkdir" => sys!(SYS_mkdirat, AT_FDCWD, path(1), mode(words, 2, 0o755)),
        "mknod" => mknod(bench, words),
        "symlink" => sys!(SYS_symlinkat, path(1), AT_FDCWD, path(2)),
        "link" => sys!(SYS_linkat, AT_FDCWD, path(1), AT_FDCWD, path(2), 0),
        "linkf" => {
            let follow = libc::AT_SYMLINK_FOLLOW;
            sys!(SYS_linkat, AT_FDCWD, path(1), AT_FDCWD, path(2), follow)
        }
        "linkfd" => {
            let (file, empty) = (bench.file(words, 1), c"".to_owned());
            let flags = libc::AT_EMPTY_PATH;
            sys!(SYS_linkat, file, empty, AT_FDCWD, path(2), flags)
        }
        "unlink" => sys!(SYS_unlinkat, AT_FDCWD, path(1), 0),
        "rmdir" => sys!(SYS_unlinkat, AT_FDCWD, path(1), libc::AT_REMOVEDIR),
        "rename" => {
            let flags = words.get(3).map_or(0, |_| words.flags(3, RENAME));
            sys!(SYS_renameat2, AT_FDCWD, path(1), AT_FDCWD, path(2), flags)
        }
        "readlink" => return Some(read_link(bench, words)),
        "chdir" => sys!(SYS_chdir, path(1)),
        "fchdir" => sys!(SYS_fchdir, bench.file(words, 1)),
        "umask" => sys!(SYS_umask, words.number(1)),
        "bind" => return Some(bind(words)),
        "mount" => sys!(
            SYS_mount,
            c"none".to_owned(),
            path(1),
            c"tmpfs".to_owned(),
            0,
            0
        ),
        "umount" => sys!(SYS_umount2, path(1), libc::MNT_DETACH),
        _ => return None,
    }))
}

const RENAME: &[(&str, i64)] = &[
    ("NOREPLACE", libc::RENAME_NOREPLACE as i64),
    ("EXCHANGE", libc::RENAME_EXCHANGE as i64),
    ("WHITEOUT", libc::RENAME_WHITEOUT as i64),
    ("UNKNOWN", 1 << 20),
];

fn mode(words: &Words<'_>, at: usize, default: i64) -> i64 {
    words.get(at).map_or(default, |_| words.number(at))
}

fn mknod(bench: &Bench, words: &Words<'_>) -> Result<i64, i32> {
    let (kind, device) = match words.word(2) {
        "reg" => (libc::S_IFREG, 0),
        "none" => (0, 0),
        "fifo" => (libc::S_IFIFO, 0),
        "socket" => (libc::S_IFSOCK, 0),
        "char" => (libc::S_IFCHR, libc::makedev(1, 3)),
        "whiteout" => (libc::S_IFCHR, 0),
        "block" => (libc::S_IFBLK, libc::makedev(7, 200)),
        "big" => (libc::S_IFCHR, libc::makedev(0xabc, 0x12345)),
        "dir" => (libc::S_IFDIR, 0),
        "link" => (libc::S_IFLNK, 0),
        other => panic!("no type {other}"),
    };
    let mode = i64::from(kind) | mode(words, 3, 0o644);
    sys!(SYS_mknodat, AT_FDCWD, words.path(bench, 1), mode, device)
}

fn read_link(bench: &Bench, words: &Words<'_>) -> Outcome {
    let mut target = vec![0u8; 5000];
    let path = words.path(bench, 1);
    let count = sys!(SYS_readlinkat, AT_FDCWD, path, room(&mut target[..]), 5000)?;
    target.truncate(count as usize);
    Ok(match target.len() {
        0..200 => String::from_utf8_lossy(&target).into_owned(),
        long => format!("{long} bytes"),
    })
}

/// Makes the name of a socket.
fn bind(words: &Words<'_>) -> Outcome {
    let socket = sys!(SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(words.bytes(1));
    address.push(0);
    let bound = sys!(SYS_bind, socket, address, address.len());
    sys!(SYS_close, socket)?;
    done(bound)
}
