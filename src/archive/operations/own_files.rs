//! Names of the files in which a store and a backup describe themselves.

/// The file with the facts of an Archive: the parts of its identifiers, and its service.
pub const FACTS: &str = "archive.ibi";

/// The table of name spaces of `upn:` names.
pub(super) const NAME_SPACES: &str = "upn.txt";

/// The record of the database that has the index, if that is in a server.
pub const DATABASE: &str = "database";

/// The file in which a backup describes itself. A backup is not opened unless the file says `finished`.
pub const BACKUP_NOTE: &str = "backup.ibi";
