//! Who looks at the names it has listed.
//!
//! With a listing the kernel can be given the attributes of every name in it (READDIRPLUS). That
//! saves `ls -l` and rsync a request for each name, and costs `find`, which looks at none, several
//! times its run. The kernel asks for both when a listing begins and cannot tell them apart. So it
//! is noted who, after listing a directory, looks up a file in it: such a process gets attributes
//! from then on.

use parking_lot::Mutex;

use crate::fuse::inode::NodeId;

/// How many processes are remembered, each at the place its number gives it.
const PLACES: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    process: u32,
    directory: Option<NodeId>,
    looks: bool,
}

/// The latest processes that listed directories. Its lock is a leaf.
#[derive(Debug)]
pub(super) struct Readers {
    places: Mutex<[Reader; PLACES]>,
}

impl Default for Readers {
    fn default() -> Readers {
        Readers {
            places: Mutex::new([Reader::default(); PLACES]),
        }
    }
}

impl Readers {
    /// Notes that a process lists a directory, and says whether it looks at names.
    pub(super) fn lists(&self, process: u32, directory: NodeId) -> bool {
        let mut places = self.places.lock();
        let reader = &mut places[process as usize % PLACES];
        if reader.process != process {
            *reader = Reader::default();
        }
        reader.process = process;
        reader.directory = Some(directory);
        reader.looks
    }

    /// Notes that a process looks up a file in a directory.
    pub(super) fn looks(&self, process: u32, directory: NodeId) {
        let mut places = self.places.lock();
        let reader = &mut places[process as usize % PLACES];
        if reader.process == process && reader.directory == Some(directory) {
            reader.looks = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_at_what_it_listed_is_known_afterwards() {
        let readers = Readers::default();
        assert!(!readers.lists(7, NodeId(1)));
        readers.looks(7, NodeId(2));
        assert!(!readers.lists(7, NodeId(1)), "that was another directory");
        readers.looks(8, NodeId(1));
        assert!(!readers.lists(7, NodeId(1)), "that was another process");
        readers.looks(7, NodeId(1));
        assert!(readers.lists(7, NodeId(3)));
        assert!(
            !readers.lists(7 + 64, NodeId(3)),
            "the place has a new owner"
        );
        assert!(!readers.lists(7, NodeId(3)));
    }
}
