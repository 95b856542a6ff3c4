//! The mounts of this process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// The mounts of this process, by their numbers. After the last one has ended there are no new ones.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Mutex<MountsState>);

#[derive(Debug, Default)]
struct MountsState {
    last: u64,
    is_over: bool,
    paths: BTreeMap<u64, PathBuf>,
}

impl Mounts {
    /// The number of a new mount. None if the process ends.
    pub(crate) fn begin(&self, path: &Path) -> Option<u64> {
        let mut state = self.0.lock();
        if state.is_over {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.paths.insert(number, path.to_owned());
        Some(number)
    }

    /// A mount has ended, or was not made. Returns whether that was the last one.
    pub(crate) fn end(&self, number: u64) -> bool {
        let mut state = self.0.lock();
        state.paths.remove(&number);
        state.is_over |= state.paths.is_empty();
        state.is_over
    }

    /// There are no new mounts.
    pub(crate) fn close(&self) {
        self.0.lock().is_over = true;
    }

    /// Returns the paths of the mounts.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().paths.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_new_mount_after_the_last_one() {
        let mounts = Mounts::default();
        let first = mounts.begin(Path::new("/a")).expect("a number");
        let second = mounts.begin(Path::new("/b")).expect("a number");
        assert!(!mounts.end(first));
        assert_eq!(mounts.paths(), [Path::new("/b")]);
        assert!(mounts.end(second));
        assert!(mounts.begin(Path::new("/c")).is_none());
    }
}
