//! Hosts that share a store: what one that dies has left is done by another.

use std::sync::{Arc, Weak};

use super::{Archive, ArchiveError, Keeper, Stranger};
use crate::archive::store::{BEAT, Sharing, Standing};
use crate::os::processors;

/// Starts to look after the other hosts that share the store, in a thread that ends with the Archive.
pub fn watch_peers(archive: &Arc<Archive>) -> std::io::Result<()> {
    let archive = Arc::downgrade(archive);
    processors::spawn_unbound("peers", move || watch(&archive))
}

impl Keeper<'_> {
    /// Takes over what hosts have left that are gone. If this one has counted as gone itself, it starts afresh.
    fn look_after_peers(&self) -> Result<(), ArchiveError> {
        if self.store.standing()? == Standing::Lapsed {
            log::warn!(
                "this host was not heard of for too long; others may have done what it had begun"
            );
            self.store.enter_again(Sharing::Shared)?;
            self.stage_as_entered();
            self.recovery.log_again()?;
        }
        self.store.take_over()?;
        self.recover_content()?;
        if self.store.has_left_marks()? {
            self.edit(&Stranger, |it| {
                it.make_again()?;
                it.recover_marked()
            })?;
        }
        self.clear_staging()
    }

    /// Removes from `staging/` what processes have left that are gone: all of it, if this one has the store to itself.
    pub fn clear_staging(&self) -> Result<(), ArchiveError> {
        if self.is_shared() {
            let there = || self.store.host_numbers();
            self.tree.clear_left_staging(there)?;
        } else {
            self.tree.clear_staging();
        }
        Ok(())
    }

    /// Gives names in `staging/` the number that this host has in the index.
    pub(super) fn stage_as_entered(&self) {
        if let Some(number) = self.store.own_number() {
            self.tree.stage_as(number);
        }
    }
}

fn watch(archive: &Weak<Archive>) {
    loop {
        std::thread::sleep(BEAT);
        let Some(archive) = archive.upgrade() else {
            return;
        };
        if let Err(error) = archive.keeper().look_after_peers() {
            log::info!("what other hosts have left is done later: {error}");
        }
    }
}
