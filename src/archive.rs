//! The Archive: the mount, the web services and the command call it.
//!
//! It knows no inode number and no HTTP status. It reads the errno of the system calls that it makes, and its
//! errors keep that errno; which errno the mount replies with is decided in one table, `fuse/errno.rs`.
//!
//! - [`finding`]: tables of what a check, a scrub, a backup or a transfer reports.
//! - [`lock_order`]: mutexes with a rank, and the order in which they are taken.
//! - [`owner`]: the owner of what is made in a store.
//! - [`store`]: the relation store: all the SQL, and the ledger of dates handed out.
//! - [`piece_hasher`]: the digests of the pieces of a file.
//! - [`tree`]: the store's directories. What it writes is on disk when it returns.
//! - [`signing_key`]: keys that an Archive signs with.
//! - [`log_files`]: the files of the transparency log of a store.
//! - [`manifest`]: the digest of an item's manifest.
//! - [`scrub`]: reads every file again and compares it with its recorded digest. Needs no index.
//! - [`copies`]: the ledger of the copies of items.
//! - [`operations`]: mint, find, relate, resolve, remove, check. The tree is the truth and the store
//!   its index: the tree is written first.
//! - [`backup`]: copies a store to another one that is the same at one instant.
//! - [`deposit`]: a directory becomes what is in a new item.
//! - [`package`]: exports and imports items as BagIt bags and OCFL objects.
//! - [`transfer`]: copies items to another Archive, and transfers originals to it.
//! - [`repair`]: damaged files get the content that was recorded of them.
//! - [`mod@drill`]: a restore that is tried.
//! - [`audit`]: items are compared with their copies in another place.
//! - [`learned`]: what the service for audits learns, for the ledger of copies.
//! - [`answering`]: audits by other Archives.
//! - [`witness`]: cosigns checkpoints of the logs of others.

pub(crate) mod answering;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod copies;
pub(crate) mod deposit;
pub(crate) mod drill;
pub(crate) mod finding;
pub(crate) mod learned;
pub(crate) mod lock_order;
pub(crate) mod log_files;
pub(crate) mod manifest;
pub(crate) mod operations;
pub(crate) mod owner;
pub(crate) mod package;
pub(crate) mod piece_hasher;
pub(crate) mod repair;
pub(crate) mod scrub;
pub(crate) mod signing_key;
pub(crate) mod store;
pub(crate) mod transfer;
pub(crate) mod tree;
pub(crate) mod witness;

pub use manifest::is_beside;
pub use operations::*;
pub use package::{OcflInventory, texts};
pub use transfer::{Inventory, Tokens};
