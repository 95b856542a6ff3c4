//! The verbs of the protocol of 2009. Each module of the registry adds those of its own tables.

use ibi::Ibi;

use ibifs_formats::registration::Document;
use ibifs_sql::engine::Connection;

/// The database connection of the verbs, whose lock is held.
pub(super) struct Verbs<'a>(pub(super) &'a Connection);

/// A request to register a document.
pub(super) struct DocumentRequest<'a> {
    /// The document's identifier; None for a new one.
    pub(super) id: Option<&'a Ibi>,
    pub(super) document: &'a Document,
    /// Whether the identifier is of the actor's own making.
    pub(super) is_own: bool,
}
