//! Services of an Archive over HTTP.
//!
//! - [`service`]: what the Archive service answers for an identifier, as a list of pairs. No socket.
//! - [`harvest`]: which items have records for harvesters, and when each last changed.
//! - [`announcement`]: the announcement of an Archive to resolvers.
//! - [`remote_archive`]: an Archive that is reached by HTTP.
//! - [`audit`]: an Archive that is asked to read items again.
//! - [`witness`]: a witness that is asked to cosign a checkpoint, and a time stamping authority.
//! - [`archive`]: the Archive over HTTP.
//! - [`texts`]: what the private parsers make of texts, for the fuzz targets.

pub mod announcement;
pub mod archive;
pub mod audit;
pub(crate) mod harvest;
pub mod remote_archive;
pub(crate) mod service;
#[doc(hidden)]
pub mod texts;
pub mod witness;
