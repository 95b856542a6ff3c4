//! The place in which zip and tar files are unpacked.

use std::path::Path;

use crate::command::commands::access::{self, StoreAccess};
use crate::command::exit::{Exit, Failure};
use crate::os::directory::Directory;
use crate::os::private_directory::PrivateDirectory;
use ibi::message;

/// Makes a directory in which a source is prepared, beside the source, or where temporary files are. Others may write
/// beside the source, and in no way in this one.
pub(super) fn beside(source: &Path) -> Result<PrivateDirectory, Failure> {
    let beside = source.parent().map(|parent| {
        if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        }
    });
    // In a mount or a store it would be a part of an item.
    let is_ours = |path: &&Path| access::is_in_mount(path) || StoreAccess::at(path).is_ok();
    let beside = beside.filter(|path| !is_ours(path)).map(Path::to_owned);
    let make = |path: &Path| PrivateDirectory::make(&Directory::open(path)?, ".ibifs-import-");
    if let Some(made) = beside.and_then(|path| make(&path).ok()) {
        return Ok(made);
    }
    let path = std::env::temp_dir();
    make(&path).map_err(|errno| {
        Failure::new(
            Exit::Failed,
            message!(
                "cannot make '{path}': {error}",
                path = path.join(".ibifs-import-").display(),
                error = std::io::Error::from(errno)
            ),
        )
    })
}
