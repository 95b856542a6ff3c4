//! Permission bits and times of entries, from the system and to it.

use rustix::fs::{Stat, Timespec, Timestamps};

use crate::formats::entry::EntryStat;

/// Returns the permission bits and the time of what was found.
pub fn entry_stat(found: &Stat) -> EntryStat {
    EntryStat {
        mode: u16::try_from(found.st_mode & 0o7777).unwrap_or(0),
        modified: (
            found.st_mtime,
            u32::try_from(found.st_mtime_nsec).unwrap_or(0),
        ),
    }
}

/// The times that an entry gets.
pub fn times(stat: EntryStat) -> Timestamps {
    let time = Timespec {
        tv_sec: stat.modified.0,
        tv_nsec: stat.modified.1.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}
