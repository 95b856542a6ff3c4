//! ibifs: a FUSE filesystem for digital archives, in which every identifier is a path.
//!
//! Each folder uses folders above it in this list, never one below.
//!
//! - [`ibi`]: identifiers, dates, relations, lists of pairs. A package of its own, in `src/ibi/`.
//! - [`formats`]: what is read and written as text or bytes. No clock, disk, socket or database. A package, in `src/formats/`.
//! - [`os`]: what only Unix knows: acting as a caller, opening files of others, descriptor limits. A package, in `src/os/`.
//! - [`sql`]: connections to SQLite and PostgreSQL, schemas, errors of databases. A package, in `src/sql/`.
//! - [`http`]: an HTTP client, and a server that limits what each client may take. A package, in `src/http/`.
//! - [`resolver`]: the resolver and its registry. A package, in `src/resolver/`.
//! - [`archive`]: the Archive: index, directory tree, mint, relate, check, backup, transfer.
//! - [`fuse`]: the mounted filesystem.
//! - [`web`]: the services of an Archive over HTTP.
//! - [`world`]: items of other Archives as files.
//! - [`command`]: the command line, its output and its languages.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "a test works in a directory of its own"
    )
)]
// The documentation is for readers of the source: `cargo doc --document-private-items`.
#![allow(rustdoc::private_intra_doc_links)]

pub(crate) mod archive;
pub mod command;
pub(crate) mod fuse;
pub use ibifs_formats as formats;
use ibifs_http as http;
use ibifs_os as os;
pub use ibifs_resolver as resolver;
pub use ibifs_sql as sql;
pub(crate) mod web;
pub(crate) mod world;

pub use ::ibi;

/// The parts of private modules that the tests and the fuzz targets use.
#[doc(hidden)]
pub mod outside {
    pub mod archive {
        pub mod store {
            pub use crate::archive::store::{Item, Store};
        }
        pub mod tree {
            pub use crate::archive::tree::Place;
        }
        pub use crate::archive::{
            Archive, ArchiveError, CheckCode, CheckFinding, CheckReport, Clock, Facts, Inventory,
            OcflInventory, Process, Setup, SystemClock, Tokens, TransferRecord, lines, texts,
        };
    }
    pub mod fuse {
        pub use crate::fuse::{mount, texts};
    }
    pub mod http {
        pub use crate::http::client::Network;
    }
    pub mod web {
        pub use crate::web::{texts, witness};
    }
    pub mod world {
        pub use crate::world::texts;
    }
}
