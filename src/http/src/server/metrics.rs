//! The reports of a service, at an address of its own: whether it works, and its counts and times in the text
//! format of Prometheus.
//!
//! - [`text`]: the format.
//! - [`requests`]: counts and latencies of requests.
//! - [`process`]: what the process uses.
//! - [`listen`]: the address.

mod listen;
mod process;
mod requests;
mod text;

use std::sync::Arc;

use axum::http::HeaderMap;

pub use listen::MetricsSocket;
pub use listen::{Reporter, serve};
pub use requests::{RequestCounts, RequestKinds};
pub use text::{MetricKind, MetricsText};

/// A service that reports of itself.
pub trait Monitored: Send + Sync {
    /// Returns why it cannot answer. None if it can.
    fn trouble(&self) -> Option<String>;

    /// Adds what it knows. It may wait for the disk.
    fn measure(&self, text: &mut MetricsText);

    /// A page for the administrator, in the language that the headers ask for. None where there is none of this path. It may
    /// wait for the disk.
    fn page(&self, _path: &str, _headers: &HeaderMap) -> Option<String> {
        None
    }
}

/// A service, for the threads that answer and the one that reports.
pub type SharedMonitored = Arc<dyn Monitored>;
