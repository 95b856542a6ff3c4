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

    #[test]
    fn the_owner_of_what_a_user_creates_is_known_of_some() {
        let owner = OwnerOnDisk {
            uid: geteuid().as_raw(),
            gid: Some(7),
        };
        assert_eq!(owner.owner(), Some((owner.uid, 7)));
        assert_eq!(OwnerOnDisk { gid: None, ..owner }.owner(), None);
        assert_eq!(Stranger.owner(), None);
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        assert_eq!(Process.owner(), Some((uid, gid)));
    }

    #[test]
    fn a_user_owns_the_files_of_its_number_and_root_owns_all() {
        let uid = geteuid().as_raw();
        let (root, other) = (
            OwnerOnDisk { uid: 0, gid: None },
            OwnerOnDisk {
                uid: 4711,
                gid: None,
            },
        );
        for (actor, of, owns) in [
            (&Process as &dyn Actor, uid, true),
            (&Process, uid + 1, geteuid().is_root()),
            (&Stranger, uid, false),
            (&root, 4711, true),
            (&other, 4711, true),
            (&other, 0, false),
        ] {
            assert_eq!(actor.owns(of), owns, "{of}");
        }
    }

    /// Not even root may run a file that is executable for no user.
    #[test]
    fn the_user_of_the_process_has_the_access_that_the_system_grants() {
        let directory = TemporaryDirectory::new();
        std::fs::write(directory.join("plain"), "x").expect("written");
        let file = std::fs::File::open(directory.join("plain")).expect("opened");
        assert!(Process.may(file.as_fd(), Access::READ_OK));
        assert!(!Process.may(file.as_fd(), Access::EXEC_OK));
    }

    /// An access control list may deny a user what the mode grants to all: who is not the owner is
    /// not granted anything.
    #[test]
    fn an_access_list_counts_against_all_but_the_owner() {
        let directory = TemporaryDirectory::new();
        let opened = directory.opened();
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), mode).expect("a mode");
        // Version 2; tag, permissions and number of owner, a user, group, mask, others.
        let mut list = vec![2, 0, 0, 0];
        for (tag, bits, number) in [
            (1_u8, 7, u32::MAX),
            (2, 0, 4711),
            (4, 7, u32::MAX),
            (0x10, 7, u32::MAX),
            (0x20, 7, u32::MAX),
        ] {
            list.extend([tag, 0, bits, 0]);
            list.extend(number.to_le_bytes());
        }
        let may = |uid| {
            let user = OwnerOnDisk { uid, gid: None };
            user.may(opened.as_fd(), Access::WRITE_OK)
        };
        let (owner, other) = (geteuid().as_raw(), geteuid().as_raw() + 4712);
        assert_eq!([owner, other].map(may), [true, true]);
        let (name, flags) = ("system.posix_acl_access", rustix::fs::XattrFlags::empty());
        rustix::fs::setxattr(directory.path(), name, &list, flags).expect("a list");
        assert_eq!([owner, other].map(may), [true, false]);
    }
}
