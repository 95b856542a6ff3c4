//! An item in the index, and what is recorded of it.

use std::fmt;

use crate::archive::owner::Owner;
use crate::formats::item::{Life, Names, State};
use ibi::relation::{Language, RelationKind};
use ibi::{AliasPair, Timestamp};

/// An item's number in this index. It has no meaning outside the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub i64);

/// An item in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number in the index.
    pub id: ItemId,
    /// The known forms of its identifier.
    pub names: Names,
    /// Original, Copy or Deleted.
    pub state: State,
    /// The Archive service that holds the original, if known.
    pub service: Option<Names>,
    /// Its language, if declared.
    pub language: Option<Language>,
    /// Its target (default) file below `doc/`, if declared.
    pub target: Option<String>,
    /// The time at which it was removed, for a Deleted one.
    pub removed_at: Option<Timestamp>,
    /// What was decided about it.
    pub life: Life,
}

impl Item {
    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        let names = [Some(&self.names), self.service.as_ref()];
        let forms = names.into_iter().flatten().map(|names| {
            names.rep().map_or(0, |rep| rep.as_str().len())
                + names.ibip().map_or(0, |ibip| ibip.as_str().len())
        });
        size_of::<Item>() + forms.sum::<usize>() + self.target.as_ref().map_or(0, String::len)
    }
}

/// The user with whose rights a sidecar speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// The user number.
    pub uid: u32,
    /// The number of a group of which the user is a member.
    pub gid: Option<u32>,
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gid {
            Some(gid) => write!(f, "{}:{gid}", self.uid),
            None => write!(f, "{}", self.uid),
        }
    }
}

/// The one who makes a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The program, by itself or for another Archive.
    Program,
    /// A user of the system, by number.
    User(u32),
}

/// An item to be recorded.
#[derive(Clone, Debug)]
pub struct Record {
    /// The forms of its identifier.
    pub names: Names,
    /// Original, Copy or Deleted.
    pub state: State,
    /// The Archive service that holds the original.
    pub service: Option<Names>,
    /// Its language.
    pub language: Option<Language>,
    /// Its target file.
    pub target: Option<String>,
    /// The time at which it was removed.
    pub removed_at: Option<Timestamp>,
    /// What was decided about it.
    pub life: Life,
    /// The last accepted sidecar, byte for byte.
    pub sidecar: Option<Vec<u8>>,
    /// The relations that the sidecar declares.
    pub relations: Vec<(RelationKind, Names)>,
    /// The user whose rights the relations have; None if the sidecar speaks with none.
    pub speaker: Option<Speaker>,
    /// Recorded aliases.
    pub aliases: Vec<AliasPair>,
    /// The one who changes it so.
    pub by: By,
}

impl Record {
    /// The item that is recorded so, under a number.
    pub fn item(&self, id: ItemId) -> Item {
        Item {
            id,
            names: self.names.clone(),
            state: self.state,
            service: self.service.clone(),
            language: self.language,
            target: self.target.clone(),
            removed_at: self.removed_at.clone(),
            life: self.life.clone(),
        }
    }

    /// An item of which only the names and the state are known.
    pub fn bare(names: Names, state: State) -> Record {
        Record {
            names,
            state,
            service: None,
            language: None,
            target: None,
            removed_at: None,
            life: Life::default(),
            sidecar: None,
            relations: Vec::new(),
            speaker: None,
            aliases: Vec::new(),
            by: By::Program,
        }
    }
}

/// A minted item whose directory is not known to be on disk.
#[derive(Debug)]
pub struct Unsettled {
    /// The item.
    pub item: Item,
    /// Its sidecar, byte for byte.
    pub sidecar: Vec<u8>,
    /// The owner of the new directory, None for the Archive itself.
    pub owner: Option<Owner>,
}
