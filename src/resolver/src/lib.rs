//! The resolver: it leads persistent links to the Archive that holds an item.
//!
//! - [`registry`]: what a resolver knows of the Archives that are registered with it. Its own SQL.
//! - [`archive_service`]: the service of an Archive as a resolver uses it.
//! - [`service`]: the resolver over HTTP.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "a test works in a directory of its own"
    )
)]
#![allow(rustdoc::private_intra_doc_links)]
#![cfg_attr(
    not(feature = "registration-2009"),
    allow(dead_code, reason = "the protocol of 2009 alone uses it")
)]

mod archive_service;
pub mod registry;
pub mod service;
