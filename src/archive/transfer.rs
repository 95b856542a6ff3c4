//! Copies items to another Archive, and transfers originals to it.
//!
//! A copy is the item's directory as it is, with the sidecar last. While the sidecar is missing or differs,
//! the copy may be incomplete, and the next run continues it. Before the sidecar is placed, all files are
//! read again on both sides and their digests are compared.
//!
//! An original is transferred in steps, each on disk before the next begins. First the receiver has the
//! content and draws a one-time token for this transfer. Then the giver records the receiver and the token,
//! and its sidecar names the other Archive as the holder of the original. Finally the receiver gets the token
//! and names itself as the holder. At whatever step either side is stopped, at most one claims the original,
//! both have the content, and the same command continues the transfer, or cancels it.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`skip`]: why an item is not copied or transferred.
//! - [`not_sent`]: what of an item is not sent over HTTP.
//! - [`outcome`]: results and errors.
//! - [`token`]: the tokens of other Archives.
//! - [`inventory`]: all that is in an item, as a text.
//! - [`local`]: a store on this machine.
//! - [`holder`]: the Archive that a sidecar names.
//! - [`arrival`]: an arriving item.
//! - [`batch`]: several arriving items at once.
//! - [`destination`]: an Archive that receives items.
//! - [`sending`]: a copy or a transfer, step by step.
//! - [`mod@cancel`]: a transfer that is cancelled.
//! - [`building`]: an item that is assembled from its files.
//! - [`part`]: a file that arrives in parts.
//! - [`incoming`]: an item that arrives over HTTP.
//! - [`restoring`]: an item of a backup that is put back.
//! - [`mod@claim`]: a copy that becomes the original.

mod arrival;
mod batch;
mod building;
mod cancel;
mod claim;
mod destination;
mod holder;
mod incoming;
mod inventory;
mod local;
mod not_sent;
mod outcome;
mod part;
mod restoring;
mod sending;
mod skip;
mod token;

pub use cancel::{Cancelled, cancel};
pub use claim::{Remover, claim};
pub use destination::Destination;
pub use incoming::Incoming;
pub use inventory::{Inventory, InventoryEntry, InventoryKind};
pub use local::Local;
pub use not_sent::{NotSent, Way};
pub use outcome::{ByteProgress, CompareWhen, Moved, RemoteStatus, TransferError, TransferOutcome};
pub use part::Part;
pub use restoring::{bring_back, bring_back_arrived, recorded_of_lost, restore, restore_to};
pub use sending::{copy_first, hand_over, may_arrive};
pub use skip::Skip;
pub use token::{Giver, Tokens};
