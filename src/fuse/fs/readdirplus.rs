//! The processes that get attributes with their listings (READDIRPLUS).
//!
//! With a listing the kernel can be given the attributes of every name in it. That saves `ls -l` and rsync a
//! request for each name, and costs `find`, which looks at none, several times its run time. The kernel asks
//! for both when a listing begins and cannot tell the two apart. So a process that looks up a file in a
//! directory that it has listed gets attributes from then on.

use parking_lot::Mutex;

use crate::fuse::inode::NodeId;

/// The number of processes that are remembered, each at the place that its number gives it.
const PLACES: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct ListingProcess {
    pid: u32,
    directory: Option<NodeId>,
    looks_at_names: bool,
}

/// The latest processes that listed directories. No other lock is taken under its lock.
#[derive(Debug)]
pub(super) struct ReaddirplusHeuristic {
    places: Mutex<[ListingProcess; PLACES]>,
}

impl Default for ReaddirplusHeuristic {
    fn default() -> ReaddirplusHeuristic {
        ReaddirplusHeuristic {
            places: Mutex::new([ListingProcess::default(); PLACES]),
        }
    }
}

impl ReaddirplusHeuristic {
    /// Notes that a process lists a directory; returns whether it is known to look at names.
    pub(super) fn note_listing(&self, pid: u32, directory: NodeId) -> bool {
        let mut places = self.places.lock();
        let process = &mut places[pid as usize % PLACES];
        if process.pid != pid {
            *process = ListingProcess::default();
        }
        process.pid = pid;
        process.directory = Some(directory);
        process.looks_at_names
    }

    /// Notes that a process looks up a file in a directory.
    pub(super) fn note_lookup(&self, pid: u32, directory: NodeId) {
        let mut places = self.places.lock();
        let process = &mut places[pid as usize % PLACES];
        if process.pid == pid && process.directory == Some(directory) {
            process.looks_at_names = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_looks_at_names_it_has_listed_is_remembered() {
        let heuristic = ReaddirplusHeuristic::default();
        let list = |pid, directory| heuristic.note_listing(pid, NodeId(directory));
        let look = |pid, directory| heuristic.note_lookup(pid, NodeId(directory));
        assert!(!list(7, 1));
        look(7, 2);
        assert!(!list(7, 1), "that was another directory");
        look(8, 1);
        assert!(!list(7, 1), "that was another process");
        look(7, 1);
        assert!(list(7, 3));
        assert!(!list(7 + 64, 3), "another process has the place");
        assert!(!list(7, 3));
    }
}
