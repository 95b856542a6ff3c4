//! The rights of a caller beside its user and first group, and which of them a thread takes while it acts as
//! the caller.

use rustix::thread::CapabilitySet;

use super::status;
use crate::credentials::OF_THE_USER;

/// The capabilities that a thread that acts as another user has only if that user has them: also
/// CAP_SYS_RESOURCE, which grants root's reserve on a disk and overrides quotas.
pub(super) const LOST: CapabilitySet = OF_THE_USER.union(CapabilitySet::SYS_RESOURCE);

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
