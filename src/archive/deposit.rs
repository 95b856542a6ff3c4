//! Deposits: a directory becomes what is in an item that was just minted.
//!
//! All is done with the rights of the process, which deposits nothing that it may not read or move. A directory that
//! is moved gets a file [`MARK`] with the names of the item before the first change. Each file is in the
//! directory or in the item at every moment, and a second run goes on with the item of the mark. Other users may be able
//! to write in the directory: it is opened once, and nothing in it is reached by a path.
//!
//! - [`mark`]: the mark in a directory.
//! - [`source`]: which directories may be deposited.
//! - [`filling`]: fills the item, and removes the directory.

mod filling;
mod mark;
mod source;

pub use filling::{DepositError, fill};
pub use source::{Moving, Source, SourceError};

use crate::archive::backup::DEPOSIT_MARK as MARK;
