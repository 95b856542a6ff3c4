//! `ibifs mint --from`: a directory becomes what is in the new item; and `--with-files`: the new edition gets a copy of the
//! files of the one before it.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, AtFlags, CWD};

use super::super::access::{self, StoreAccess};
use crate::archive::ArchiveError;
use crate::archive::deposit::{self, DepositError, Moving, Source, SourceError};
use crate::archive::scrub::{Scrub, ScrubFinding, ScrubOptions};
use crate::archive::tree::{METADATA_TEXT, Place, Tree};
use crate::command::cli::Mint;
use crate::command::exit::{Exit, Failure};
use crate::formats::item::Names;
use crate::os::directory::Directory;
use ibi::message;

fn refused(error: &SourceError) -> Failure {
    let exit = match error {
        SourceError::Io(_, rustix::io::Errno::NOENT) => Exit::NotFound,
        SourceError::Io(..) => Exit::Failed,
        _ => Exit::Refused,
    };
    Failure::new(exit, error)
}

/// A directory to be deposited in a store.
pub(super) struct Deposit<'a> {
    access: &'a StoreAccess,
    shown: String,
    source: Source,
}

impl<'a> Deposit<'a> {
    /// The directory that the options name, checked before anything is minted.
    pub(super) fn of(
        options: &Mint,
        access: &'a StoreAccess,
    ) -> Result<Option<Deposit<'a>>, Failure> {
        let Some(path) = &options.from else {
            return Ok(None);
        };
        let moving = if options.keep {
            Moving::Copied
        } else {
            Moving::Moved
        };
        if access::is_in_mount(path) && path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(refused(&SourceError::InStore(path.clone())));
        }
        let source = Source::check(path, moving).map_err(|error| refused(&error))?;
        if options.with_metadata && source.has(METADATA_TEXT) {
            let metadata = path.join(METADATA_TEXT);
            return Err(Failure::new(
                Exit::Refused,
                message!(
                    "'{path}' is a metadata text of its own; leave --with-metadata out",
                    path = metadata.display()
                ),
            ));
        }
        Ok(Some(Deposit {
            access,
            shown: path.display().to_string(),
            source,
        }))
    }

    /// A directory in one that is held open; it is moved.
    pub(super) fn moving(
        access: &'a StoreAccess,
        above: &Directory,
        name: &str,
    ) -> Result<Deposit<'a>, Failure> {
        let shown = name.to_owned();
        let above = above
            .again()
            .map_err(|errno| SourceError::Io(name.into(), errno));
        let source =
            above.and_then(|above| Source::in_directory(above, name.as_ref(), Moving::Moved));
        Ok(Deposit {
            access,
            shown,
            source: source.map_err(|error| refused(&error))?,
        })
    }

    /// Mints an item, or goes on with that of a run that did not end, and fills it.
    pub(super) fn make(
        &self,
        mint: impl FnOnce() -> Result<Names, Failure>,
    ) -> Result<Names, Failure> {
        let failed = |error: &SourceError| Failure::new(Exit::Failed, error);
        let begun = self.source.begun().map_err(|error| failed(&error))?;
        let is_begun = begun.is_some();
        let names = match begun {
            // A user who may not look into the store sees the item in the mount.
            Some(names) => match self.access.path_in_mount(&names) {
                Some(path) if path.is_dir() => names,
                _ => access::find(&names.preferred(), Some(self.access.place()))?.names,
            },
            None => {
                let names = mint()?;
                self.source
                    .set_mark(&names)
                    .map_err(|error| failed(&error))?;
                names
            }
        };
        if is_begun {
            let item = self.access.directory_of(&names).symlink_metadata();
            let own = rustix::process::geteuid().as_raw();
            if item.is_ok_and(|item| item.uid() != own) {
                return Err(refused(&self.source.bad_mark()));
            }
        }
        fill(self.access, &self.source, &names).map_err(|error| {
            Failure::new(
                Exit::Failed,
                message!(
                    "'{directory}' is not deposited yet in {item}: {error}; run the command again",
                    directory = &self.shown,
                    item = names.preferred(),
                    error
                ),
            )
        })?;
        Ok(names)
    }
}

/// The files of an item, of which its next edition gets a copy.
pub(super) struct Files<'a> {
    access: &'a StoreAccess,
    source: Source,
}

impl<'a> Files<'a> {
    /// The files of an item, checked before anything is minted.
    pub(super) fn of(access: &'a StoreAccess, names: &Names) -> Result<Files<'a>, Failure> {
        let path = access.directory_of(names);
        // In the store, content can be shared with the copy.
        let native = Tree::open(&access.store).and_then(|tree| tree.open_item(&Place::of(names)));
        let may = |directory: &OwnedFd| {
            let action = Access::READ_OK | Access::EXEC_OK;
            rustix::fs::accessat(directory, ".", action, AtFlags::EACCESS).is_ok()
        };
        let directory = match native.ok().filter(may) {
            Some(directory) => Ok(Directory::from(directory)),
            None => Directory::open(&path),
        };
        let source = directory
            .map_err(|errno| SourceError::Io(path.clone(), errno))
            .and_then(|directory| Source::of_item(directory, path));
        Ok(Files {
            access,
            source: source.map_err(|error| refused(&error))?,
        })
    }

    /// Copies them to a new item.
    pub(super) fn copy_to(&self, names: &Names) -> Result<(), Failure> {
        fill(self.access, &self.source, names).map_err(|error| {
            Failure::new(
                Exit::Failed,
                message!(
                    "{item} is minted, and its files are not complete: {error}; copy the rest yourself, with cp -a",
                    item = names.preferred(),
                    error
                ),
            )
        })
    }
}

/// Fills an item, and records the digests of its files, if this user may; otherwise the next scrub does.
fn fill(access: &StoreAccess, source: &Source, names: &Names) -> Result<(), DepositError> {
    let native = access.store.join(Place::of(names).as_str());
    let action = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let may = rustix::fs::accessat(CWD, &native, action, AtFlags::EACCESS).is_ok();
    deposit::fill(source, may.then_some(&native), &access.directory_of(names))?;
    let recorded = || {
        let tree = Tree::open(&access.store).map_err(ArchiveError::from)?;
        let (mut report, mut progress) = (|_: &ScrubFinding| Ok(()), |_, _| ());
        let scrub = Scrub::new(&tree, ScrubOptions::default(), &mut report, &mut progress)?;
        scrub.some(&[Place::of(names)])?;
        Ok::<(), Failure>(())
    };
    if let Err(failure) = recorded() {
        log::info!("the digests of {names} are left to the next scrub: {failure}");
    }
    Ok(())
}
