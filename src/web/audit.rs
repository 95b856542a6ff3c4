//! Audits of other Archives, which are asked over HTTP, see [`crate::formats::audit`].
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`asking`]: a request and its answer, with limits on time and size.
//! - [`peer`]: an Archive with which items are compared.

mod asking;
mod peer;

pub use peer::ArchivePeer;
