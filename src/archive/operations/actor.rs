//! The user on whose behalf a change is made, and that user's permissions on the native filesystem.
//!
//! The Archive knows neither requests nor processes: its callers name the user. Items that come
//! from elsewhere are brought by a user as well; files read from the disk act for their owner.

use crate::os::opening::by_descriptor;
use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, Mode};
use rustix::process::{getegid, geteuid};

/// A user who asks for a change.
pub trait Actor {
    /// Whether the user has this access to an open file or directory, as the native filesystem
    /// would grant it. A descriptor with O_PATH suffices. The path to the file is not checked.
    fn may(&self, file: BorrowedFd<'_>, access: Access) -> bool;

    /// Whether files of `uid` count as this user's own, as in a sticky directory.
    fn owns(&self, uid: u32) -> bool;

    /// Runs `act` with the user's credentials. Returns false, without running it, if this process
    /// cannot take them.
    fn run(&self, act: &mut dyn FnMut()) -> bool;

    /// The user and primary group that own files which the user creates; None if they are not known.
    fn owner(&self) -> Option<(u32, u32)> {
        None
    }
}

/// Whether a user may create, remove and rename entries in a directory. In a sticky directory,
/// `owner` is the owner of the file in question.
pub fn may_replace(actor: &dyn Actor, directory: BorrowedFd<'_>, owner: Option<u32>) -> bool {
    if !actor.may(directory, Access::WRITE_OK | Access::EXEC_OK) {
        return false;
    }
    let Ok(above) = rustix::fs::fstat(directory) else {
        return false;
    };
    let is_sticky = Mode::from_raw_mode(above.st_mode).contains(Mode::SVTX);
    !is_sticky || actor.owns(above.st_uid) || owner.is_none_or(|owner| actor.owns(owner))
}

/// The user of this process, for a command on a store that is not mounted.
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Actor for Process {
    fn may(&self, file: BorrowedFd<'_>, access: Access) -> bool {
        let path = by_descriptor(file);
        rustix::fs::accessat(rustix::fs::CWD, path, access, AtFlags::EACCESS).is_ok()
    }

    fn owns(&self, uid: u32) -> bool {
        geteuid().is_root() || geteuid().as_raw() == uid
    }

    fn run(&self, act: &mut dyn FnMut()) -> bool {
        act();
        true
    }

    fn owner(&self) -> Option<(u32, u32)> {
        Some((geteuid().as_raw(), getegid().as_raw()))
    }
}

/// An Archive at the other end of a connection, which has no permissions in this one.
#[derive(Clone, Copy, Debug)]
pub struct Stranger;

impl Actor for Stranger {
    fn may(&self, _: BorrowedFd<'_>, _: Access) -> bool {
        false
    }

    fn owns(&self, _: u32) -> bool {
        false
    }

    fn run(&self, _: &mut dyn FnMut()) -> bool {
        false
    }
}

/// The owner of a file, with the permissions that follow from the disk alone. They are therefore
/// the same at any time and in any process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerOnDisk {
    /// The user.
    pub uid: u32,
    /// A group of which the user is known to be a member.
    pub gid: Option<u32>,
}

impl Actor for OwnerOnDisk {
    fn may(&self, file: BorrowedFd<'_>, access: Access) -> bool {
        if self.uid == 0 {
            return true;
        }
        let Ok(stat) = rustix::fs::fstat(file) else {
            return false;
        };
        let bits = match (self.uid == stat.st_uid, self.gid == Some(stat.st_gid)) {
            (true, _) => stat.st_mode >> 6,
            // An access list may grant this user less than the mode bits do.
            _ if has_access_list(file) => 0,
            (_, true) => stat.st_mode >> 3,
            _ => stat.st_mode,
        };
        access.bits() & !bits & 0o7 == 0
    }

    fn owns(&self, uid: u32) -> bool {
        self.uid == 0 || self.uid == uid
    }

    fn run(&self, _: &mut dyn FnMut()) -> bool {
        false
    }

    fn owner(&self) -> Option<(u32, u32)> {
        self.gid.map(|gid| (self.uid, gid))
    }
}

fn has_access_list(file: BorrowedFd<'_>) -> bool {
    let path = by_descriptor(file);
    rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 0][..]).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::os::testing::TemporaryDirectory;

    #[test]
    fn rights_of_an_owner_follow_from_the_mode() {
        let directory = TemporaryDirectory::new();
        let opened = directory.opened();
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let (other, group) = (uid + 4711, gid + 4711);
        let allowed = |mode: u32| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.path(), mode).expect("a mode");
            [(uid, gid), (other, gid), (other, group)].map(|(uid, gid)| {
                let owner = OwnerOnDisk {
                    uid,
                    gid: Some(gid),
                };
                owner.may(opened.as_fd(), Access::WRITE_OK | Access::EXEC_OK)
            })
        };
        assert_eq!(allowed(0o755), [true, false, false]);
        assert_eq!(allowed(0o770), [true, true, false]);
        assert_eq!(allowed(0o707), [true, false, true]);
        assert_eq!(allowed(0o777), [true, true, true]);
        assert!(!Stranger.may(opened.as_fd(), Access::READ_OK));
        assert!(Process.may(opened.as_fd(), Access::READ_OK));
        let sticky = |owner: Option<u32>| {
            allowed(0o1777);
            let user = OwnerOnDisk {
                uid: other,
                gid: None,
            };
            may_replace(&user, opened.as_fd(), owner)
        };
        assert!(sticky(None) && sticky(Some(other)) && !sticky(Some(other + 1)));
    }
}
