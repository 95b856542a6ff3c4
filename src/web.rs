//! Services over HTTP.
//!
//! - [`registry`]: what a resolver knows of the Archives that are registered with it. Its own SQL.
//! - [`service`]: what the Archive service answers for an identifier, as a list of pairs. No socket.
//! - [`harvest`]: which items have records for harvesters, and when each last changed.
//! - [`client`]: the HTTP client, and an Archive that is reached by HTTP.
//! - [`server`]: the HTTP server. Reads the request, calls, writes the answer; limits what a client may take.

pub mod client;
pub(crate) mod harvest;
pub mod registry;
pub(crate) mod server;
pub(crate) mod service;
#[doc(hidden)]
pub use server::texts;
