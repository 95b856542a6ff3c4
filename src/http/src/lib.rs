//! HTTP for the services of ibifs: a client, and a server that limits what each client may take. Knows nothing of an Archive.
//!
//! - [`client`]: the HTTP client.
//! - [`server`]: the HTTP server. Reads the request, calls, writes the answer; limits what a client may take.
//! - [`texts`]: what the private parsers make of texts, for the fuzz targets.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "a test works in a directory of its own"
    )
)]
#![allow(rustdoc::private_intra_doc_links)]

pub mod client;
pub mod server;
#[doc(hidden)]
pub mod texts;
