//! The allocation of a file's bytes: allocating, holes, seeking, copying ranges.

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::snapshot::looked;
use crate::posix::system::{room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let file = || bench.file(words, 1);
    Some(match words.name() {
        "fallocate" => {
            let mode = words.flags(2, MODES);
            let (offset, length) = (words.number(3), words.number(4));
            done(sys!(SYS_fallocate, file(), mode, offset, length))
        }
        "seek" => {
            let whence = words.flags(3, WHENCES);
            sys!(SYS_lseek, file(), words.number(2), whence).map(|at| at.to_string())
        }
        // The space that is allocated, in KiB, once all is on disk.
        "allocated" => sys!(SYS_fsync, file())
            .and_then(|_| looked(file()))
            .map(|seen| (seen.blocks / 2).to_string()),
        "copyrange" => {
            let mut from = words.number(2);
            let other = bench.file(words, 3);
            let mut to = words.number(4);
            let length = words.number(5);
            let (from, to) = (room(&mut from), room(&mut to));
            sys!(SYS_copy_file_range, file(), from, other, to, length, 0)
                .map(|count| count.to_string())
        }
        "clone" => {
            let request = 0x4004_9409u32; // FICLONE
            done(sys!(SYS_ioctl, file(), request, bench.file(words, 2)))
        }
        "advise" => done(sys!(SYS_fadvise64, file(), 0, 0, libc::POSIX_FADV_DONTNEED)),
        "readahead" => done(sys!(SYS_readahead, file(), 0, words.number(2))),
        _ => return None,
    })
}

const MODES: &[(&str, i64)] = &[
    ("0", 0),
    ("KEEP", libc::FALLOC_FL_KEEP_SIZE as i64),
    ("PUNCH", libc::FALLOC_FL_PUNCH_HOLE as i64),
    ("ZERO", libc::FALLOC_FL_ZERO_RANGE as i64),
    ("COLLAPSE", libc::FALLOC_FL_COLLAPSE_RANGE as i64),
    ("INSERT", libc::FALLOC_FL_INSERT_RANGE as i64),
    ("UNKNOWN", 0x4000_0000),
];

const WHENCES: &[(&str, i64)] = &[
    ("SET", libc::SEEK_SET as i64),
    ("CUR", libc::SEEK_CUR as i64),
    ("END", libc::SEEK_END as i64),
    ("DATA", libc::SEEK_DATA as i64),
    ("HOLE", libc::SEEK_HOLE as i64),
    ("UNKNOWN", 9),
];
