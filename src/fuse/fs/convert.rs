//! Our values to the protocol's and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, INodeNo, TimeOrNow};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::fuse::attr::{Attr, Time};
use crate::fuse::inside::NewTime;
use crate::os::caller::Caller;

pub(super) fn errno(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

pub(super) fn caller(request: &fuser::Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
        pid: request.pid(),
    }
}

pub(super) fn file_attr(number: u64, attr: &Attr) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: attr.size,
        blocks: attr.blocks,
        atime: system_time(attr.accessed),
        mtime: system_time(attr.modified),
        ctime: system_time(attr.changed),
        crtime: UNIX_EPOCH,
        kind: file_type(attr.kind),
        perm: attr.permissions,
        nlink: attr.links,
        uid: attr.uid,
        gid: attr.gid,
        rdev: attr.device,
        blksize: attr.block_size,
        flags: 0,
    }
}

pub(super) fn file_type(kind: FileType) -> fuser::FileType {
    match kind {
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharacterDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        FileType::RegularFile | FileType::Unknown => fuser::FileType::RegularFile,
    }
}

fn system_time(time: Time) -> SystemTime {
    let nanoseconds = Duration::from_nanos(time.nanoseconds.into());
    match u64::try_from(time.seconds) {
        Ok(seconds) => UNIX_EPOCH + Duration::from_secs(seconds) + nanoseconds,
        Err(_) => UNIX_EPOCH - Duration::from_secs(time.seconds.unsigned_abs()) + nanoseconds,
    }
}

pub(super) fn new_time(time: TimeOrNow) -> NewTime {
    match time {
        TimeOrNow::Now => NewTime::Now,
        TimeOrNow::SpecificTime(time) => NewTime::At(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Time {
                seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: after.subsec_nanos(),
            },
            Err(error) => before_1970(error.duration()),
        }),
    }
}

/// fuser takes the nanoseconds, which count forward from the second, off the time instead of adding
/// them; here they are taken for what they were.
fn before_1970(before: Duration) -> Time {
    Time {
        seconds: -i64::try_from(before.as_secs()).unwrap_or(i64::MAX),
        nanoseconds: before.subsec_nanos(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time as fuser 0.18.0 reads it from a request.
    fn as_fuser_reads(time: Time) -> SystemTime {
        let nanoseconds = time.nanoseconds;
        match u64::try_from(time.seconds) {
            Ok(seconds) => UNIX_EPOCH + Duration::new(seconds, nanoseconds),
            Err(_) => UNIX_EPOCH - Duration::new(time.seconds.unsigned_abs(), nanoseconds),
        }
    }

    #[test]
    fn times_are_taken_as_they_were_asked_for() {
        for time in [
            (0, 0),
            (1, 5),
            (-1, 0),
            (-1, 999_999_999),
            (-2, 1),
            (4_000_000_000, 7),
        ] {
            let time = Time {
                seconds: time.0,
                nanoseconds: time.1,
            };
            match new_time(TimeOrNow::SpecificTime(as_fuser_reads(time))) {
                NewTime::At(back) => assert_eq!(back, time),
                NewTime::Now => panic!("a given time is not now"),
            }
        }
    }
}
