//! One way to talk SQL, to SQLite and to a PostgreSQL server, for the index of an Archive, what is beside it, and the
//! registry of a resolver. Knows no Archive, and none of its tables but that of the hosts that share an index.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`index_url`]: where a database in a server is, as a text.
//! - [`database`]: files of SQLite, and the schemas in them.
//! - [`error`]: errors of databases, as sentences with the remedy.
//! - [`engine`]: connections, statements, rows and transactions of either engine.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "a test works in a directory of its own"
    )
)]
#![allow(rustdoc::private_intra_doc_links)]

pub mod database;
pub mod engine;
pub mod error;
pub mod index_url;
