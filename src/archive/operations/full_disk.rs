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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::io::Errno;

    use super::super::testing::TestArchive;
    use super::*;
    use crate::archive::tree::{Action, RESERVE};

    #[test]
    fn a_removal_on_a_full_disk_uses_the_reserve() {
        let archive = TestArchive::new();
        let tree = archive.tree();
        let reserve = archive.path().join(RESERVE);
        tree.keep_reserve();
        assert!(reserve.exists());
        for (errno, has_reserve, attempts) in [
            (Errno::NOSPC, true, 2),
            (Errno::IO, true, 1),
            (Errno::NOSPC, false, 1),
        ] {
            if !has_reserve {
                assert!(tree.spend_reserve());
            }
            let tried = Cell::new(0);
            let outcome = with_reserve(tree, || {
                tried.set(tried.get() + 1);
                match tried.get() {
                    1 => Err(tree.error(Action::Write, "x", errno).into()),
                    _ => {
                        assert!(!reserve.exists(), "the space is free now");
                        Ok(())
                    }
                }
            });
            assert_eq!(tried.get(), attempts, "{errno} {has_reserve}");
            assert_eq!(outcome.is_ok(), attempts == 2);
            assert_eq!(reserve.exists(), has_reserve, "reserved again");
        }
    }

    #[test]
    fn other_errors_do_not_mean_that_the_disk_is_full() {
        assert!(!is_full(&ArchiveError::ReadOnly));
    }
}
