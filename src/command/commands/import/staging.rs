//! Where zip and tar files are unpacked.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::archive::tree::clear;
use crate::command::commands::access::{self, StoreAccess};
use crate::command::exit::{Exit, Failure};
use ibi::message;

/// A directory in which a source is prepared. It is removed with all that is in it.
#[derive(Debug)]
pub(super) struct Staging(PathBuf);

impl Staging {
    /// Beside the source, or where temporary files are.
    pub(super) fn beside(source: &Path) -> Result<Staging, Failure> {
        let name = format!(".ibifs-import-{}", std::process::id());
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
        let mut last = None;
        for place in beside.into_iter().chain([std::env::temp_dir()]) {
            let path = place.join(&name);
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Staging(path)),
                Err(error) => last = Some((path, error)),
            }
        }
        let (path, error) =
            last.unwrap_or_else(|| (PathBuf::from(&name), std::io::Error::other("")));
        Err(Failure::new(
            Exit::Failed,
            message!(
                "cannot make '{path}': {error}",
                path = path.display(),
                error
            ),
        ))
    }
}

impl Staging {
    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let removed = rustix::fs::open(&self.0, flags, Mode::empty())
            .and_then(|directory| clear(&directory))
            .and_then(|()| rustix::fs::rmdir(&self.0));
        if let Err(error) = removed {
            log::warn!("{} is left: {error}", self.0.display());
        }
    }
}
