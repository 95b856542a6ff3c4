//! Files with a token or a key.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::failed_at;
use crate::command::exit::{Exit, Failure};
use crate::resolver::registry::ArchiveKey;
use ibi::message;

/// The mode bits of users other than the owner, all of which must be off.
const OTHERS: u32 = 0o077;

/// The text of a file with a secret. An error if other users than its owner may read or write it.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let failed = |error: std::io::Error| failed_at(path, Exit::Failed, &error);
    #[expect(
        clippy::disallowed_methods,
        reason = "the user named it; it may be a pipe"
    )]
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    // A pipe from another program is not accessible to others.
    if metadata.is_file() && metadata.mode() & OTHERS != 0 {
        let mode = metadata.mode() & 0o7777;
        let message = message!(
            "'{shown}' holds a secret and is accessible to other users (mode {mode}); restrict it with 'chmod 600 {shown}'",
            shown,
            mode = format_args!("{mode:04o}")
        );
        return Err(Failure::new(Exit::Refused, message));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// The registration key in a file; on the command line the list of processes would show it.
pub(super) fn key(file: &Path) -> Result<ArchiveKey, Failure> {
    let text = read(file)?;
    ArchiveKey::parse(text.trim()).map_err(|error| failed_at(file, Exit::Usage, &error))
}
