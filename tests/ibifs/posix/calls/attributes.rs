//! Modes, owners, sizes, times.

use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW};

use super::words::{Words, number};
use super::{Bench, Outcome, done};
use crate::posix::snapshot::{look, looked};
use crate::posix::system::{room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let path = || words.path(bench, 1);
    let file = || bench.file(words, 1);
    let owner = || (words.user(2), words.user(3));
    Some(match words.name() {
        "chmod" => done(sys!(SYS_fchmodat, AT_FDCWD, path(), words.number(2))),
        "fchmod" => done(sys!(SYS_fchmod, file(), words.number(2))),
        "lchmod" => done(sys!(
            SYS_fchmodat2,
            AT_FDCWD,
            path(),
            words.number(2),
            AT_SYMLINK_NOFOLLOW
        )),
        "chown" => done(sys!(
            SYS_fchownat,
            AT_FDCWD,
            path(),
            owner().0,
            owner().1,
            0
        )),
        "lchown" => done(sys!(
            SYS_fchownat,
            AT_FDCWD,
            path(),
            owner().0,
            owner().1,
            AT_SYMLINK_NOFOLLOW
        )),
        "fchown" => done(sys!(SYS_fchown, file(), owner().0, owner().1)),
        "truncate" => done(sys!(SYS_truncate, path(), words.number(2))),
        "ftruncate" => done(sys!(SYS_ftruncate, file(), words.number(2))),
        "utimes" => done(sys!(SYS_utimensat, AT_FDCWD, path(), times(words, 2), 0)),
        "lutimes" => done(sys!(
            SYS_utimensat,
            AT_FDCWD,
            path(),
            times(words, 2),
            AT_SYMLINK_NOFOLLOW
        )),
        "futimes" => done(sys!(SYS_utimensat, file(), 0, times(words, 2), 0)),
        // Without times: both now, which a user who may write may ask for.
        "touch" => done(sys!(SYS_utimensat, AT_FDCWD, path(), 0, 0)),
        "stat" => look(AT_FDCWD, &path(), 0).map(|seen| seen.shown()),
        "lstat" => look(AT_FDCWD, &path(), AT_SYMLINK_NOFOLLOW).map(|seen| seen.shown()),
        "fstat" => looked(file()).map(|seen| seen.shown()),
        "statx" => statx(bench, words),
        "inode" => look(AT_FDCWD, &path(), AT_SYMLINK_NOFOLLOW).map(|seen| {
            let name = words.step.bound.clone().unwrap_or_default();
            bench.inodes.insert(name, seen.inode);
            String::new()
        }),
        "finode" => looked(file()).map(|seen| {
            let name = words.step.bound.clone().unwrap_or_default();
            bench.inodes.insert(name, seen.inode);
            String::new()
        }),
        "same" => {
            let [one, other] = [1, 2].map(|at| bench.inodes.get(words.word(at)));
            Ok(if one == other { "yes" } else { "no" }.to_owned())
        }
        "statfs" => statfs(bench, words),
        "sync" => done(sys!(SYS_fsync, file())),
        "datasync" => done(sys!(SYS_fdatasync, file())),
        "syncfs" => done(sys!(SYS_syncfs, file())),
        "syncrange" => done(sys!(SYS_sync_file_range, file(), 0, 0, 7)),
        _ => return None,
    })
}

/// Two times, of access and of change: `now`, `omit`, or SECONDS.NANOSECONDS, which count forward
/// from the second.
fn times(words: &Words<'_>, at: usize) -> Vec<i64> {
    let one = |at: usize| match words.word(at) {
        "now" => [0, libc::UTIME_NOW],
        "omit" => [0, libc::UTIME_OMIT],
        word => {
            let (seconds, nanoseconds) = word.split_once('.').unwrap_or((word, "0"));
            let digits = nanoseconds.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            [number(seconds), number(digits)]
        }
    };
    [one(at), one(at + 1)].concat()
}

/// Prints the answer of statx(2) that `stat` leaves out: the mask of fields and the block size.
fn statx(bench: &Bench, words: &Words<'_>) -> Outcome {
    let path = words.path(bench, 1);
    let seen = look(AT_FDCWD, &path, AT_SYMLINK_NOFOLLOW)?;
    Ok(match words.word(2) {
        "basic" => format!("{:x}", seen.mask & libc::STATX_BASIC_STATS),
        "birth" => format!("{:x}", seen.mask & libc::STATX_BTIME),
        "blocksize" => seen.block_size.to_string(),
        "attributes" => format!("{:x}", seen.attributes & !(0x2000 | 0x20_0000)),
        other => panic!("no field {other}"),
    })
}

/// Prints the answer of statfs(2), without the values that change by the second.
fn statfs(bench: &Bench, words: &Words<'_>) -> Outcome {
    let path = words.path(bench, 1);
    let mut found = [0i64; 15];
    sys!(SYS_statfs, path, room(&mut found))?;
    let [_, block, blocks, free, _, files, _, _, name, fragment, ..] = found;
    assert!(free <= blocks, "more is free than there is");
    Ok(format!("{block} {fragment} {blocks} {files} {name}"))
}
