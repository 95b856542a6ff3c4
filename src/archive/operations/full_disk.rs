//! Removals work on a full disk: the tree keeps a reserve for them.

use super::ArchiveError;
use crate::archive::tree::Tree;

/// Whether there is no room left on the disk.
fn is_full(error: &ArchiveError) -> bool {
    match error {
        ArchiveError::Store(error) => error.kind() == std::io::ErrorKind::StorageFull,
        ArchiveError::Tree(error) => error.errno() == rustix::io::Errno::NOSPC,
        _ => false,
    }
}

/// Does what a removal needs. Where the disk is full, the reserve is spent and `act` is called again, so
/// that a user who makes room is not refused for want of room.
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
