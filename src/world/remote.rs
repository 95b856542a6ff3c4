//! Answers of Archives and resolvers, and the time for which they count. It knows no store and no kernel.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`fresh`]: an answer that is remembered, and when it is asked for again.
//! - [`breaker`]: hosts that do not answer are left alone for a while.
//! - [`inventory`]: what is in an item, in memory.
//! - [`requests`]: requests to resolvers and Archives.
//! - [`sources`]: whom to ask, in which order.
//! - [`items`]: the items that are known.
//! - [`related`]: what modifiers lead to.
//! - [`levels`]: what an Archive lists above its items.
//! - [`mod@file`]: a file of an Archive, and its pieces.
//! - [`pace`]: whether what is read arrives.
//! - [`fetching`]: a download that goes on where it was cut.
//! - [`content`]: the bytes of files, verified.

mod breaker;
pub(crate) mod content;
pub(crate) mod fetching;
pub(crate) mod file;
pub(crate) mod fresh;
pub(crate) mod inventory;
pub(crate) mod items;
pub(crate) mod levels;
pub(crate) mod pace;
pub(crate) mod related;
pub(crate) mod requests;
pub(crate) mod sources;
#[cfg(test)]
pub(crate) mod testing;
