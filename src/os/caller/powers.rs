//! The rights of a caller beside its user and first group, and which of them a thread takes while it acts as
//! the caller.

use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use super::status;

/// The capabilities over files of other users. A thread that acts as another user drops these.
pub(super) const OVER_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MKNOD);

/// The capabilities that an acting thread drops, including CAP_SYS_RESOURCE, which grants root's reserve on a
/// disk and overrides quotas.
pub(super) const LOST: CapabilitySet = LOST_WITH_THE_USER.union(CapabilitySet::SYS_RESOURCE);

/// What the kernel drops when the filesystem user changes from 0, see capabilities(7).
pub(super) const LOST_WITH_THE_USER: CapabilitySet = OVER_FILES.union(CapabilitySet::MAC_OVERRIDE);

/// Groups and capabilities of a process beside its user and first group.
#[derive(Debug)]
pub(super) struct Powers {
    pub(super) groups: Vec<u32>,
    pub(super) capabilities: CapabilitySet,
}

impl Powers {
    pub(super) const NONE: Powers = Powers {
        groups: Vec::new(),
        capabilities: CapabilitySet::empty(),
    };

    /// The supplementary groups of a process and its capabilities over files of other users; both are empty
    /// where they cannot be read.
    pub(super) fn of(pid: u32) -> Powers {
        let Some(status) = status::read(pid) else {
            return Powers::NONE;
        };
        Powers {
            groups: status::groups(&status),
            capabilities: status::capabilities(pid, &status) & LOST,
        }
    }
}

/// Sets the supplementary groups of this thread alone.
pub(super) fn set_groups(groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer and length describe a live slice; the raw system call, unlike the C
    // library's function, changes this thread only.
    let set = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    match set {
        0 => Ok(()),
        _ => Err(Errno::PERM),
    }
}
