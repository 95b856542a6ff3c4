//! Functions on descriptors that make a directory and give it to a user: mode, default ACL, set-group-ID bit,
//! owner.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::archive::owner::Owner;
use crate::os::charging;
use crate::os::opening::{self, by_descriptor};
use crate::os::serving::Server;

/// Opens a directory in another one (O_PATH) without following a link.
pub(super) fn open_below(directory: &OwnedFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Makes a directory above the items that all users may read. The process's umask is not used: it may be the
/// last caller's. A default ACL of the directory above applies as with any mkdir.
pub(super) fn make_level(directory: &OwnedFd, name: &str) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o755);
    charging::charged(|| rustix::fs::mkdirat(directory, name, mode))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if !is_ours(&made)? {
        return Ok(());
    }
    if let Some(payer) = charging::charged_user() {
        // The charged user does not become the owner.
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let stat = rustix::fs::fstat(&made)?;
        let inherits = Mode::from_raw_mode(stat.st_mode).contains(Mode::SGID);
        let has_gid = stat.st_gid == payer.gid && !inherits;
        rustix::fs::fchown(&made, Some(uid), has_gid.then_some(gid))?;
    }
    if has_default_acl(&made) {
        Ok(())
    } else {
        rustix::fs::fchmod(&made, mode)
    }
}

pub(super) fn has_default_acl(directory: &OwnedFd) -> bool {
    let path = by_descriptor(directory.as_fd());
    rustix::fs::getxattr(path, "system.posix_acl_default", &mut [0; 0][..]).is_ok()
}

/// Whether this process made the directory, and it has not been replaced by another user's.
fn is_ours(directory: &OwnedFd) -> Result<bool, Errno> {
    let made_by = rustix::fs::fstat(directory)?.st_uid;
    let own = rustix::process::geteuid().as_raw();
    Ok(match charging::charged_user() {
        None => made_by == own,
        // A server may have refused it to the user, see `charging::charged`; a disk does not.
        Some(payer) => {
            made_by == payer.uid || (made_by == own && Server::of(directory) != Server::Kernel)
        }
    })
}

pub(super) fn give_to(directory: &OwnedFd, owner: Owner) -> Result<(), Errno> {
    give_away(directory, owner.uid, Some(owner.gid))?;
    opening::set_mode(directory.as_fd(), Mode::from_raw_mode(owner.mode & 0o7777))
}

/// Gives a new level to a user, and to the user's group unless it has inherited another one.
pub(super) fn give_level(
    directory: &OwnedFd,
    name: &str,
    (uid, gid): (u32, u32),
) -> Result<(), Errno> {
    let level = open_below(directory, name)?;
    let stat = rustix::fs::fstat(&level)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        // Another directory has taken its place.
        return Err(Errno::STALE);
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    chown_for(&level, uid, (!mode.contains(Mode::SGID)).then_some(gid))
}

pub(super) fn give_away(directory: &OwnedFd, uid: u32, gid: Option<u32>) -> Result<(), Errno> {
    if !is_ours(directory)? {
        return Err(Errno::STALE);
    }
    chown_for(directory, uid, gid)
}

fn chown_for(directory: &OwnedFd, uid: u32, gid: Option<u32>) -> Result<(), Errno> {
    let (uid, gid) = (Some(Uid::from_raw(uid)), gid.map(Gid::from_raw));
    match rustix::fs::chownat(directory, "", uid, gid, AtFlags::EMPTY_PATH) {
        // A service that runs as an ordinary user cannot change owners.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}
