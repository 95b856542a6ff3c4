//! The metadata of files: owner, permission bits, extended attributes (including access control lists) and
//! times.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use crate::os::directory::Entry;

/// Whether a file has not changed between two calls of stat(2).
pub(super) fn is_same(before: &Stat, after: &Stat) -> bool {
    (before.st_size, modified(before), changed(before))
        == (after.st_size, modified(after), changed(after))
}

/// Returns whether a file that has several names got or lost one between two calls, and has not changed otherwise.
pub(super) fn has_other_names(before: &Stat, after: &Stat) -> bool {
    after.st_nlink > 1 && (before.st_size, modified(before)) == (after.st_size, modified(after))
}

/// Returns whether a copy is up to date: it is like the original, and was made after the last change of that.
pub(super) fn is_copied(original: &Stat, copy: &Stat) -> bool {
    is_like(original, copy) && changed(original) < changed(copy)
}

/// Whether a copy has the file type, size and modification time of the original, as far as its filesystem keeps that.
pub(super) fn is_like(original: &Stat, copy: &Stat) -> bool {
    FileType::from_raw_mode(original.st_mode) == FileType::from_raw_mode(copy.st_mode)
        && original.st_size == copy.st_size
        && is_kept_as(modified(original), modified(copy))
}

/// Whether a filesystem may have kept the one time as the other: it may cut off digits of the nanoseconds, as MooseFS,
/// which keeps whole seconds.
fn is_kept_as(time: (i64, u64), kept: (i64, u64)) -> bool {
    let mut units = std::iter::successors(Some(1_u64), |unit| Some(unit * 10)).take(10);
    time.0 == kept.0 && units.any(|unit| time.1 - time.1 % unit == kept.1)
}

fn modified(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

pub(super) fn changed(stat: &Stat) -> (i64, u64) {
    (stat.st_ctime, stat.st_ctime_nsec)
}

/// The times of a file, for another one.
pub fn times(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.cast_signed(),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// The owner and group of a file, for another one.
pub fn owner(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
    )
}

/// The bits that let a program act as the owner or group of its file.
pub const SET_IDS: u32 = 0o6000;

/// The permission bits for a copy after its owner and group were set. Only root may change owners: an ordinary
/// user's copies belong to that user, and must not let others act as that user.
fn mode_after(given: Result<(), Errno>, stat: &Stat) -> Result<Mode, Errno> {
    let refused = match given {
        Ok(()) => 0,
        Err(Errno::PERM) => SET_IDS,
        Err(other) => return Err(other),
    };
    Ok(Mode::from_raw_mode(stat.st_mode & 0o7777 & !refused))
}

/// Copies the metadata of a file to a new file.
pub fn file(from: &OwnedFd, stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    let (uid, gid) = owner(stat);
    // After the owner, whose change removes set-user-ID bits and capabilities.
    let mode = mode_after(rustix::fs::fchown(to, uid, gid), stat)?;
    rustix::fs::fchmod(to, mode)?;
    attributes(from, to)?;
    rustix::fs::futimens(to, &times(stat))
}

/// Copies the metadata of a directory to another one, where they differ.
pub(super) fn directory(from: &OwnedFd, stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    let now = rustix::fs::fstat(to)?;
    let mut given = Ok(());
    if (now.st_uid, now.st_gid) != (stat.st_uid, stat.st_gid) {
        let (uid, gid) = owner(stat);
        given = rustix::fs::fchown(to, uid, gid);
    }
    let mode = mode_after(given, stat)?;
    let now = rustix::fs::fstat(to)?;
    if Mode::from_raw_mode(now.st_mode) != mode {
        rustix::fs::fchmod(to, mode)?;
    }
    attributes(from, to)?;
    if modified(&now) == modified(stat) {
        Ok(())
    } else {
        rustix::fs::futimens(to, &times(stat))
    }
}

/// Copies the metadata of a symbolic link, FIFO, socket or device.
pub(super) fn special(stat: &Stat, to: &Entry) -> Result<(), Errno> {
    let (uid, gid) = owner(stat);
    let mode = mode_after(to.set_owner(uid, gid), stat)?;
    if to.kind() != FileType::Symlink {
        to.set_mode(mode.as_raw_mode())?;
    }
    to.set_times(&times(stat))
}

/// Replaces the extended attributes of a file by those of another.
fn attributes(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let (wanted, there) = (names(from)?, names(to)?);
    for name in there.iter().filter(|name| !wanted.contains(name)) {
        let_pass(name, rustix::fs::fremovexattr(to, &name[..]))?;
    }
    for name in &wanted {
        let Some(value) = value(from, name)? else {
            continue;
        };
        if there.contains(name) && self::value(to, name)?.as_ref() == Some(&value) {
            continue;
        }
        let set = rustix::fs::fsetxattr(to, &name[..], &value, XattrFlags::empty());
        let_pass(name, set)?;
    }
    Ok(())
}

/// Extended attributes, by name.
pub type UserAttributes = Vec<(Vec<u8>, Vec<u8>)>;

/// The extended attributes of a file.
pub fn attributes_of(file: &OwnedFd) -> Result<UserAttributes, Errno> {
    let mut found = Vec::new();
    for name in names(file)? {
        if let Some(value) = value(file, &name)? {
            found.push((name, value));
        }
    }
    Ok(found)
}

/// Ignores a refusal for attributes of system security, which only the system or root may set.
fn let_pass(name: &[u8], outcome: Result<(), Errno>) -> Result<(), Errno> {
    let is_ours = !name.starts_with(b"security.") && !name.starts_with(b"trusted.");
    match outcome {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if !is_ours => Ok(()),
        other => other,
    }
}

fn names(file: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let listed = grown(|buffer| rustix::fs::flistxattr(file, buffer));
    let listed = match listed {
        // The filesystem does not support extended attributes.
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        other => other?,
    };
    let names = listed.split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

fn value(file: &OwnedFd, name: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
    match grown(|buffer| rustix::fs::fgetxattr(file, name, buffer)) {
        Ok(value) => Ok(Some(value)),
        // Removed meanwhile.
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Calls `ask` with a larger buffer until the result fits.
fn grown(mut ask: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match ask(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer);
            }
            // 64 KiB is the maximum of both a value and a list of names.
            Err(Errno::RANGE) if buffer.len() < 65_536 => buffer.resize(65_536, 0),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_as_it_is_or_with_fewer_digits() {
        let time = (7, 123_456_789);
        for kept in [123_456_789, 123_456_700, 123_456_000, 120_000_000, 0] {
            assert!(is_kept_as(time, (7, kept)), "{kept}");
        }
        for kept in [1, 123_456_788, 123_456_790, 200_000_000, 100_000_001] {
            assert!(!is_kept_as(time, (7, kept)), "{kept}");
        }
        assert!(!is_kept_as(time, (8, 0)));
        assert!(!is_kept_as((7, 0), (7, 5)));
    }
}
