//! Audit: the files of items are read here and in another place at once, and compared with each other and with what was
//! recorded of them.
//!
//! The items whose comparison with that place is the oldest come first, so that a pass that was interrupted, or whose time was
//! up, needs no note of where it stopped. What was found is noted in the ledgers of both sides as soon as an item was compared;
//! files that are not what was recorded of them are marked on the side where they are.
//!
//! What a place says of itself concerns the copy that it has, and nothing here: what is damaged here is so by the record here.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`finding`]: what differs, and counts.
//! - [`gone`]: what was withdrawn or removed on a side.
//! - [`peer`]: a place with which items are compared.
//! - [`pass`]: items, one after the other.

mod finding;
mod gone;
mod pass;
mod peer;

pub use finding::{AuditFinding, AuditTally};
pub use gone::note_gone;
pub use pass::{Audit, Side};
pub use peer::{AuditPeer, Comparison, ReadHere, StorePeer};
