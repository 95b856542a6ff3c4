//! Removals on a full disk: the tree keeps a reserve of space for them.

use super::ArchiveError;
use crate::archive::tree::Tree;

/// Whether the disk is full.
fn is_full(error: &ArchiveError) -> bool {
    match error {
        ArchiveError::Store(error) => error.kind() == std::io::ErrorKind::StorageFull,
        ArchiveError::Tree(error) => error.errno() == rustix::io::Errno::NOSPC,
        _ => false,
    }
}

/// Runs the writes of a removal. If the disk is full, the reserve is released and `act` is called
/// again, so that a user can free space on a full disk.
pub(super) fn with_reserve(
    tree: &Tree,
    act: impl Fn() -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    match act() {
        Err(error) if is_full(&error) && tree.spend_reserve() => {
            let done = act();
            tree.keep_reserve();
            done
        }
        other => other,
    }
}
