//! What a filesystem keeps of a file beside its content: owner, permission bits, extended attributes
//! (access control lists are some of them), times.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

/// Whether nobody has written to a file or changed anything about it between two looks.
pub(super) fn is_same(before: &Stat, after: &Stat) -> bool {
    (before.st_size, modified(before), changed(before))
        == (after.st_size, modified(after), changed(after))
}

/// Whether a copy is of this original: the same kind, size and time of modification, and made after
/// anything of the original was last changed.
pub(super) fn is_copied(original: &Stat, copy: &Stat) -> bool {
    FileType::from_raw_mode(original.st_mode) == FileType::from_raw_mode(copy.st_mode)
        && original.st_size == copy.st_size
        && modified(original) == modified(copy)
        && changed(original) < changed(copy)
}

fn modified(stat: &Stat) -> (i64, u64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

fn changed(stat: &Stat) -> (i64, u64) {
    (stat.st_ctime, stat.st_ctime_nsec)
}

fn times(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.cast_signed(),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

fn owner(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (
        Some(Uid::from_raw(stat.st_uid)),
        Some(Gid::from_raw(stat.st_gid)),
    )
}

/// Only root gives files away; what an ordinary user keeps is that user's.
fn as_far_as_allowed(given: Result<(), Errno>) -> Result<(), Errno> {
    match given {
        Err(Errno::PERM) => Ok(()),
        other => other,
    }
}

/// Gives a new file what another has.
pub(super) fn file(from: &OwnedFd, stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    let (uid, gid) = owner(stat);
    as_far_as_allowed(rustix::fs::fchown(to, uid, gid))?;
    // After the owner, whose change takes set-user-ID bits and capabilities away.
    rustix::fs::fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    attributes(from, to)?;
    rustix::fs::futimens(to, &times(stat))
}

/// Gives a directory what another has, as far as it differs.
pub(super) fn directory(from: &OwnedFd, stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    let now = rustix::fs::fstat(to)?;
    if (now.st_uid, now.st_gid) != (stat.st_uid, stat.st_gid) {
        let (uid, gid) = owner(stat);
        as_far_as_allowed(rustix::fs::fchown(to, uid, gid))?;
    }
    let now = rustix::fs::fstat(to)?;
    if now.st_mode != stat.st_mode {
        rustix::fs::fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    }
    attributes(from, to)?;
    if modified(&now) == modified(stat) {
        Ok(())
    } else {
        rustix::fs::futimens(to, &times(stat))
    }
}

/// Gives a symbolic link, FIFO, socket or device what another has.
pub(super) fn special(stat: &Stat, directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let (uid, gid) = owner(stat);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    as_far_as_allowed(rustix::fs::chownat(directory, name, uid, gid, flags))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        rustix::fs::chmodat(directory, name, mode, AtFlags::empty())?;
    }
    rustix::fs::utimensat(directory, name, &times(stat), flags)
}

/// Makes the extended attributes of a file those of another.
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
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// The extended attributes of a file.
pub fn attributes_of(file: &OwnedFd) -> Result<Attributes, Errno> {
    let mut found = Vec::new();
    for name in names(file)? {
        if let Some(value) = value(file, &name)? {
            found.push((name, value));
        }
    }
    Ok(found)
}

/// Attributes of the system's own security are for the system, or root, to set.
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
        // A filesystem without them.
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
        // Taken away meanwhile.
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Asks with room for as much as there may be.
fn grown(mut ask: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match ask(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer);
            }
            // 64 KiB is the most that there can be of either.
            Err(Errno::RANGE) if buffer.len() < 65_536 => buffer.resize(65_536, 0),
            Err(errno) => return Err(errno),
        }
    }
}
