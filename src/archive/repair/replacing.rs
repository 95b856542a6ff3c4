//! A file with the right content in the place of a damaged or lost one.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::place::Template;
use crate::archive::backup::{SET_IDS, copy_metadata, owner_of, times_of};
use crate::archive::tree::{Tree, times};
use crate::formats::entry::EntryStat;
use crate::formats::fixity::Written;
use crate::os::deep::split;
use crate::os::directory::Directory;
use crate::os::opening::again;

/// The directory of a path in an item. That of a lost file may be lost, too: it is made.
pub(super) fn directory_of(item: &Tree, path: &[u8]) -> Result<Directory, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = Directory::from(item.open_far(b"", flags)?);
    let (parents, _) = split(path);
    for name in parents
        .split(|byte| *byte == b'/')
        .filter(|it| !it.is_empty())
    {
        directory = match directory.directory(name) {
            Err(Errno::NOENT) => {
                let above = directory.stat()?;
                let made = directory.make_directory(name, 0o700)?;
                let (uid, gid) = owner_of(&above);
                match rustix::fs::fchown(made.descriptor(), uid, gid) {
                    Ok(()) | Err(Errno::PERM) => {}
                    Err(errno) => return Err(errno),
                }
                let mode = Mode::from_raw_mode(above.st_mode & 0o1777);
                rustix::fs::fchmod(made.descriptor(), mode)?;
                directory.sync()?;
                made
            }
            opened => opened?,
        };
    }
    Ok(directory)
}

/// Gives new content all that the damaged file has.
pub(super) fn like_damaged(damaged: &OwnedFd, stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    // Attributes cannot be read of what was found with O_PATH.
    let read = again(damaged, OFlags::RDONLY)?;
    copy_metadata(&read, stat, to)?;
    without_rights(stat, to)
}

/// Gives new content what a lost file had, as far as it is known: its time from the record, the rest from another place. It
/// belongs to the owner of its directory where that has no owner for it.
pub(super) fn like_lost(
    template: &Template,
    recorded: Option<&Written>,
    directory: &Stat,
    to: &OwnedFd,
) -> Result<(), Errno> {
    match template {
        Template::File(file, stat) => {
            copy_metadata(file, stat, to)?;
            without_rights(stat, to)?;
        }
        Template::Entry(entry) => {
            let (uid, gid) = owner_of(directory);
            match rustix::fs::fchown(to, uid, gid) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(errno),
            }
            rustix::fs::fchmod(to, Mode::from_raw_mode(u32::from(entry.mode) & 0o1777))?;
            rustix::fs::futimens(to, &times(*entry))?;
        }
    }
    match recorded {
        Some(written) => rustix::fs::futimens(
            to,
            &times(EntryStat {
                mode: 0,
                modified: (written.seconds, written.nanoseconds),
            }),
        ),
        None => Ok(()),
    }
}

/// Takes away what would let the content act as another user: who owns the directory of the item may have put the file of another
/// one in the place of their own.
fn without_rights(stat: &Stat, to: &OwnedFd) -> Result<(), Errno> {
    match rustix::fs::fremovexattr(to, "security.capability") {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::fchmod(to, Mode::from_raw_mode(stat.st_mode & 0o7777 & !SET_IDS))?;
    rustix::fs::futimens(to, &times_of(stat))
}

/// Moves a complete file to its name, durably; the time of its directory stays.
pub(super) fn place(
    (from, name): (&Directory, &str),
    (to, last): (&Directory, &[u8]),
) -> Result<(), Errno> {
    let before = to.stat()?;
    from.rename_over(name, to, last)?;
    rustix::fs::futimens(to.descriptor(), &times_of(&before))?;
    to.sync()
}

/// Gives a complete file a further name, in place of what has it.
pub(super) fn link(
    (from, first): (&Directory, &[u8]),
    (to, last): (&Directory, &[u8]),
    (staging, temporary): (&Directory, &str),
) -> Result<(), Errno> {
    let _ = staging.remove_file(temporary);
    rustix::fs::linkat(from, first, staging, temporary, AtFlags::empty())?;
    let placed = place((staging, temporary), (to, last));
    let _ = staging.remove_file(temporary);
    placed
}
