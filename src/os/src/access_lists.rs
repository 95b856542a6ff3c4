//! A trial of whether a filesystem checks access control lists (acl(5)). Some keep a list with a file and check the
//! mode alone, and none says so, so that another user tries.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use crate::caller::Caller;
use crate::opening;

/// The attribute in which a file has its list.
pub const ATTRIBUTE: &str = "system.posix_acl_access";

/// The longest value of an attribute, in bytes (xattr(7)).
const LONGEST: usize = 64 * 1024;

/// The length of a list of some thirty entries, for which nothing is allocated where there is none.
const USUAL: usize = 256;

/// Tags of entries: owner, a user, group, mask, others (`linux/posix_acl.h`).
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The permission to read, in an entry.
const READ: u16 = 4;

/// Returns what a list lets the owning group of its file do, which its mask may restrict. None if it is not a list.
#[must_use]
pub fn group_of(list: &[u8]) -> Option<u8> {
    let entries = list.get(4..)?.chunks_exact(8);
    let permission = |wanted: u16| {
        let mut found = entries.clone().filter_map(|entry| match entry {
            [tag, tag_high, permission, ..] if u16::from_le_bytes([*tag, *tag_high]) == wanted => {
                Some(permission & 0o7)
            }
            _ => None,
        });
        found.next()
    };
    Some(permission(GROUP)? & permission(MASK).unwrap_or(0o7))
}

/// The mode of a file without its access control list. With a list the bits of the group are the list's mask, which may be
/// more than the group itself has.
#[must_use]
pub fn mode_without(list: &[u8], mode: u32) -> u32 {
    match group_of(list) {
        Some(group) => mode & (!0o070 | u32::from(group) << 3),
        None => mode,
    }
}

/// The access control list of a file, which may have been opened with O_PATH. None if it has none.
pub fn list_of(file: impl AsFd) -> Result<Option<Vec<u8>>, Errno> {
    let path = opening::by_descriptor(file.as_fd());
    let mut usual = [0; USUAL];
    let list = match rustix::fs::getxattr(path.as_str(), ATTRIBUTE, &mut usual) {
        Ok(length) => usual[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut list = vec![0; LONGEST];
            let length = rustix::fs::getxattr(path.as_str(), ATTRIBUTE, &mut list)?;
            list.truncate(length);
            list
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    Ok(Some(list))
}

/// Whether lists that grant and lists that refuse access to files in this directory, which is empty, have an effect for
/// a user. None if that cannot be tried: without the rights to act as another user, where lists cannot be set, and where
/// the user that asks is not the one whom the filesystem sees.
pub fn are_checked(directory: BorrowedFd<'_>) -> Option<bool> {
    if !Caller::NOBODY.is_other() {
        return None;
    }
    // The other user must pass through it.
    let through = Mode::RWXU | Mode::XGRP | Mode::XOTH;
    rustix::fs::fchmod(directory, through).ok()?;
    // A file for each case: nothing that the kernel or a server remembers of one is the answer for another.
    make(directory, "closed", Mode::empty(), None)?;
    make(directory, "open", Mode::ROTH, None)?;
    make(directory, "granted", Mode::empty(), Some(READ))?;
    make(directory, "refused", Mode::ROTH, Some(0))?;
    let names = ["closed", "open", "granted", "refused"];
    // The groups of the thread change.
    let tried = std::thread::scope(|scope| {
        let tried = scope.spawn(|| names.map(|name| reads(directory, name)));
        tried.join().ok()
    });
    match tried? {
        [Some(false), Some(true), Some(is_granted), Some(is_read)] => Some(is_granted && !is_read),
        _ => None,
    }
}

/// Makes a file that its owner and these may read, with a list that says what [`Caller::NOBODY`] may.
fn make(directory: BorrowedFd<'_>, name: &str, mode: Mode, other: Option<u16>) -> Option<()> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::RUSR).ok()?;
    rustix::fs::fchmod(&file, Mode::RUSR | mode).ok()?;
    if let Some(other) = other {
        let others = if mode.contains(Mode::ROTH) { READ } else { 0 };
        let list = list(Caller::NOBODY.uid, other, others);
        rustix::fs::fsetxattr(&file, ATTRIBUTE, &list, XattrFlags::empty()).ok()?;
    }
    Some(())
}

/// Whether [`Caller::NOBODY`] opens a file for reading; None for other reasons than its permissions.
fn reads(directory: BorrowedFd<'_>, name: &str) -> Option<bool> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened =
        Caller::NOBODY.act(|| rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()));
    match opened {
        Ok(_) => Some(true),
        Err(Errno::ACCESS) => Some(false),
        Err(_) => None,
    }
}

/// A list as [`ATTRIBUTE`] has it: version 2, then tag, permissions and number of each entry.
fn list(user: u32, its: u16, others: u16) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, number) in [
        (OWNER, READ, u32::MAX),
        (USER, its, user),
        (GROUP, 0, u32::MAX),
        (MASK, READ, u32::MAX),
        (OTHERS, others, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(number.to_le_bytes());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TemporaryDirectory;

    /// Only root can try as another user. The files are told apart: of those without a list one is read and one is not.
    #[test]
    fn the_system_checks_lists() {
        let directory = TemporaryDirectory::new();
        let opened = directory.opened();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(are_checked(opened.as_fd()), is_root.then_some(true));
    }

    /// Nothing is said of a directory in which it cannot be tried.
    #[test]
    fn what_cannot_be_tried_is_not_said() {
        let directory = TemporaryDirectory::new();
        std::fs::write(directory.join("open"), "").expect("written");
        assert_eq!(are_checked(directory.opened().as_fd()), None);
        let proc = std::fs::File::open("/proc/self").expect("a directory");
        assert_eq!(are_checked(proc.as_fd()), None);
    }
}
