//! The views of an Archive: what a user may read, who adds items, who changes items and holds the lock for that, and the
//! keeping of the store as a whole.

use std::ops::Deref;

use super::{Actor, Archive, ArchiveError, RunAs, Stranger};
use crate::archive::lock_order::RankedGuard;
use crate::archive::store::Turn;
use crate::archive::tree::Dependencies;

/// The lock for changes of items, and the turn among the hosts that share the store. The turn ends first.
#[derive(Debug)]
#[must_use]
pub(super) struct Edits<'archive> {
    #[allow(dead_code, reason = "held, not read")]
    turn: Option<Turn<'archive>>,
    _edits: RankedGuard<'archive, ()>,
}

/// An Archive with the files that one user may read. [`Archive::read_as`] makes one.
#[derive(Clone, Copy)]
pub struct ReadAs<'a> {
    archive: &'a Archive,
    pub(super) act: RunAs<'a>,
    /// Records the files and directories on which what is found depends.
    pub(super) dependencies: Option<&'a Dependencies>,
    /// The number of the user for whom the index has statistics.
    pub(super) number: Option<u32>,
}

impl Deref for ReadAs<'_> {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        self.archive
    }
}

/// An Archive with the permissions of one user, who adds items: mints, registers, takes in. [`Archive::depositor`] makes one.
#[derive(Clone, Copy)]
pub struct Depositor<'a> {
    archive: &'a Archive,
    pub(super) actor: &'a dyn Actor,
}

impl Deref for Depositor<'_> {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        self.archive
    }
}

/// A depositor who changes items as well. While it exists, no other thread and no other host changes items: it holds the
/// lock for changes. [`Archive::edit`] makes one.
#[derive(Clone, Copy)]
pub struct Editor<'a> {
    depositor: Depositor<'a>,
    edits: &'a Edits<'a>,
}

impl<'a> Deref for Editor<'a> {
    type Target = Depositor<'a>;

    fn deref(&self) -> &Depositor<'a> {
        &self.depositor
    }
}

/// An Archive whose store is kept as a whole: checked, indexed, settled, taken over from other hosts. [`Archive::keeper`]
/// makes one; front ends that serve readers or depositors need none.
#[derive(Clone, Copy)]
pub struct Keeper<'a>(&'a Archive);

impl Deref for Keeper<'_> {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        self.0
    }
}

impl Editor<'_> {
    /// The same lock, for changes on behalf of another user.
    pub(super) fn by<'b>(&'b self, actor: &'b dyn Actor) -> Editor<'b> {
        Editor {
            depositor: self.depositor(actor),
            edits: self.edits,
        }
    }
}

impl<'a> ReadAs<'a> {
    /// The same, which records the files and directories on which what it finds depends.
    #[must_use]
    pub fn recording(self, dependencies: &'a Dependencies) -> ReadAs<'a> {
        ReadAs {
            dependencies: Some(dependencies),
            ..self
        }
    }

    /// The same, where `act` runs as the user with this number: what the index knows of the content of items for this
    /// user is not looked for in the tree.
    #[must_use]
    pub fn numbered(self, number: u32) -> ReadAs<'a> {
        ReadAs {
            number: Some(number),
            ..self
        }
    }

    /// Prevents that what is found is cached: it depends on something that cannot be checked again.
    pub(super) fn give_up(&self) {
        self.dependencies.inspect(|it| it.give_up());
    }
}

impl Archive {
    /// This Archive for a user who reads; `act` runs a closure as that user.
    pub fn read_as<'a>(&'a self, act: RunAs<'a>) -> ReadAs<'a> {
        ReadAs {
            archive: self,
            act,
            dependencies: None,
            number: None,
        }
    }

    /// This Archive for a user who adds items.
    pub fn depositor<'a>(&'a self, actor: &'a dyn Actor) -> Depositor<'a> {
        Depositor {
            archive: self,
            actor,
        }
    }

    /// This Archive for what concerns its store as a whole.
    pub fn keeper(&self) -> Keeper<'_> {
        Keeper(self)
    }

    /// Runs a change of items on behalf of a user. It waits until no other thread, and no other host that shares the store,
    /// changes items.
    ///
    /// # Errors
    /// The Archive is open for reading alone; the turn of this host does not come; the error of the change.
    pub fn edit<T>(
        &self,
        actor: &dyn Actor,
        change: impl FnOnce(&Editor<'_>) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        self.writable()?;
        let edits = self.edits()?;
        change(&Editor {
            depositor: self.depositor(actor),
            edits: &edits,
        })
    }

    /// Takes the lock for changes of items, and first reads the places that an earlier error has queued. On hosts that
    /// share the store one after the other has it.
    pub(super) fn edits(&self) -> Result<Edits<'_>, ArchiveError> {
        let lock = self.edits.lock();
        let turn = if self.is_shared() {
            Some(self.store.take_turn()?)
        } else {
            None
        };
        let edits = Edits { turn, _edits: lock };
        if self.lock.is_some() && self.recovery.is_queued() {
            let editor = Editor {
                depositor: self.depositor(&Stranger),
                edits: &edits,
            };
            editor.replay();
        }
        Ok(edits)
    }
}
