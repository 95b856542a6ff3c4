//! A caller of the mount as a user who asks the Archive for a change.

use std::os::fd::BorrowedFd;

use rustix::fs::Access;

use crate::archive::Actor;
use crate::fuse::inside;
use crate::os::caller::Caller;

impl Actor for Caller {
    fn may(&self, file: BorrowedFd<'_>, access: Access) -> bool {
        inside::check_access(file, access, self).is_ok()
    }

    fn owns(&self, uid: u32) -> bool {
        self.uid == uid || self.owns_all()
    }

    fn owner(&self) -> Option<(u32, u32)> {
        Some((self.uid, self.gid))
    }
}
