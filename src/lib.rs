//! ibifs: a FUSE filesystem for digital archives, in which every identifier is a path.
//!
//! # The rooms, from the inside out
//!
//! Pure: no clock, disk, database or system call.
//!
//! - [`ibi`]: identifiers in both forms, dates, modifiers, the list of pairs, the temporal
//!   distributor. A package of its own, in `src/ibi/`, which needs nothing of this one.
//! - [`item`]: an item's names and state, and its sidecar.
//! - [`fixity`]: the digests of an item's files, as texts, and what one that differs means.
//! - [`metadata`]: Dublin Core, and the formats it is read from.
//! - [`table`]: the import table, from its text to rows.
//! - [`mtree`]: what a filesystem keeps of files beside their content, as a text.
//! - [`locks`]: taking a lock whole after a panic.
//! - [`query`]: the query string of a URL, and values in one.
//! - [`resolution`]: from a persistent URL to what Archives are asked, and what their answers mean.
//! - [`registration`]: the requests and answers of the registration protocol of 2009.
//! - [`links`]: what a symbolic link that climbs out of an item says in either tree.
//!
//! The Archive: what every door calls.
//!
//! - [`credentials`]: the user and the group that a thread acts as.
//! - [`payer`]: who pays for what is written to the disk.
//! - [`opening`]: opening files that others own, without waiting for them.
//! - [`database`]: the files that SQLite opens, and no others.
//! - [`store`]: the relation store. All the SQL, and the ledger of dates handed out.
//! - [`tree`]: the store's directories. What it writes is on disk when it returns.
//! - [`scrub`]: reads every file again and compares it with its digest. Needs no index.
//! - [`archive`]: mint, find, relate, resolve, remove, check. The tree is the truth and the store
//!   its index: the tree is written first. Knows no inode, errno or HTTP status.
//! - [`backup`]: another store that is the same as this one at one instant.
//! - [`package`]: items as BagIt bags and OCFL objects, there and back.
//! - [`transfer`]: items copied to another Archive, and originals handed over to it.
//!
//! The mounted tree.
//!
//! - [`attr`], [`caller`], [`descriptors`]: what `stat` tells, who asks, which files are open.
//! - [`inside`]: inside an item. Each operation on the native filesystem, by descriptor. Knows
//!   neither items nor identifiers.
//! - [`inode`]: the nodes that the kernel knows. A data structure, nothing else.
//! - [`errno`]: the one table from what the Archive refuses to errno.
//! - [`namespace`]: above and beside the items: which node is this name here. No FUSE type.
//! - [`fs`]: the FUSE door. Translate a request, call, translate the answer. Decides nothing.
//! - [`mount`]: start and stop: options, checks, signals, unmounting.
//!
//! The services.
//!
//! - [`registry`]: what a resolver knows of the Archives that are registered with it. Its own SQL.
//! - [`service`]: what the Archive service says of an identifier, as a list of pairs. No socket.
//! - [`oai`]: OAI-PMH. Arguments to requests, answers to XML. Pure.
//! - [`harvest`]: which items have records for harvesters, and since when each says what it says.
//! - [`http`]: the HTTP door. Read the request, call, write the answer; bounds of what a client may take.
//!
//! The command.
//!
//! - [`terminal`]: what a person is shown, with nothing in it that a terminal would obey.
//! - [`language`]: what a person is told, in that person's language: the one room that translates.
//! - [`progress`]: how far a long command is, on the terminal of whoever waits for it.
//! - [`logging`]: where what is worth knowing is told: standard error, the journal, the system's log.
//! - [`cli`]: what can be said, and its help. Touches nothing.
//! - [`exit`]: exit codes, and failures that carry one.
//! - [`commands`]: what each command does. On a mounted store it works through the mount.
//!
//! A room calls rooms above it in this list, never below. Each outside crate has its home: `fuser`
//! in `fs` and `mount`, `rusqlite` in `store`, the clock in `archive`, handed in when it is opened.
//! A test reads the sources and notices a stray.
#![warn(missing_docs)]

pub mod archive;
pub mod attr;
pub mod backup;
pub mod caller;
pub mod cli;
pub mod commands;
pub mod credentials;
pub mod database;
pub mod descriptors;
pub mod errno;
pub mod exit;
pub mod fixity;
pub mod fs;
pub mod harvest;
pub mod http;
pub mod inode;
pub mod inside;
pub mod item;
pub mod language;
pub mod links;
pub mod locks;
pub mod logging;
pub mod metadata;
pub mod mount;
pub mod mtree;
pub mod namespace;
pub mod oai;
pub mod opening;
pub mod package;
pub mod payer;
pub mod progress;
pub mod query;
pub mod registration;
pub mod registry;
pub mod resolution;
pub mod scrub;
pub mod service;
pub mod store;
pub mod table;
pub mod terminal;
pub mod transfer;
pub mod tree;

pub use ::ibi;
pub use ::ibi::{distributor, pairs, relation};
