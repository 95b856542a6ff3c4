//! Places that may have the content of a damaged file: another store, a backup, an Archive.

use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::archive::BACKUP_NOTE;
use crate::archive::manifest::read_digest;
use crate::archive::scrub::recorded_paths;
use crate::archive::transfer::{Incoming, Local, TransferError, bring_back};
use crate::archive::tree::{Place, Tree};
use crate::formats::entry::EntryStat;
use crate::formats::fixity::Digest;
use crate::formats::item::Names;
use ibi::message::{Localize, Message};

/// The number of bytes that are copied at once.
const BLOCK: usize = 1 << 20;

/// The content that is looked for.
#[derive(Debug)]
pub struct MissingContent<'a> {
    /// The names of the item.
    pub names: &'a Names,
    /// The path of the file below it.
    pub path: &'a [u8],
    /// Its digest.
    pub digest: Digest,
    /// Its size, if that was recorded.
    pub size: Option<u64>,
}

/// The source of the metadata of a lost file.
#[derive(Debug)]
pub enum Template {
    /// Those of this file.
    File(OwnedFd, Box<Stat>),
    /// Mode and time of it elsewhere.
    Entry(EntryStat),
}

/// The answer of a place.
#[derive(Debug)]
pub enum FetchOutcome {
    /// The content, which has come.
    Arrived(Box<Template>),
    /// Other content at this path, with its digest if it has the recorded size.
    Other(Option<Digest>),
    /// Neither the content nor the path.
    Missing,
    /// Nothing that could be read.
    Unread(Message),
}

/// A place that may have it.
pub trait CopyPlace {
    /// The name by which the user called it.
    fn name(&self) -> &str;

    /// The place as others know it: an Archive, or a backup of one.
    fn holder(&self) -> String;

    /// Puts a lost item back whole. False where it is not there.
    ///
    /// # Errors
    /// It cannot be put back.
    fn bring_back(&mut self, names: &Names, to: &Local) -> Result<bool, TransferError>;

    /// Fetches content, which comes under its digest.
    ///
    /// # Errors
    /// It cannot be written here.
    fn fetch(
        &mut self,
        wanted: &MissingContent<'_>,
        into: &Incoming<'_>,
    ) -> Result<FetchOutcome, TransferError>;
}

/// A store on this machine, or a backup of one.
#[derive(Debug)]
pub struct StorePlace {
    store: Local,
    name: String,
}

impl StorePlace {
    /// A store that is open for reading, by this name.
    #[must_use]
    pub fn new(store: Local, name: &str) -> StorePlace {
        StorePlace {
            store,
            name: name.to_owned(),
        }
    }
}

impl CopyPlace for StorePlace {
    fn name(&self) -> &str {
        &self.name
    }

    fn holder(&self) -> String {
        let archive = self.store.archive();
        let service = archive.facts().service.preferred();
        if archive.tree().path().join(BACKUP_NOTE).is_file() {
            format!("a backup of {service}")
        } else {
            service
        }
    }

    fn bring_back(&mut self, names: &Names, to: &Local) -> Result<bool, TransferError> {
        let held = self.store.archive().held(names)?;
        if held.is_none_or(|item| self.store.has_lost(&item)) {
            return Ok(false);
        }
        bring_back(&self.store, names, to, &mut |_| ())?;
        Ok(true)
    }

    fn fetch(
        &mut self,
        wanted: &MissingContent<'_>,
        into: &Incoming<'_>,
    ) -> Result<FetchOutcome, TransferError> {
        let archive = self.store.archive();
        let item = match archive.held(wanted.names) {
            Ok(Some(item)) => item,
            Ok(None) => return Ok(FetchOutcome::Missing),
            Err(error) => return Ok(FetchOutcome::Unread(error.message())),
        };
        let directory = match self.store.directory(&item) {
            Ok(directory) => directory,
            Err(error) => return Ok(FetchOutcome::Unread(error.message())),
        };
        let others = recorded_paths(
            archive.tree(),
            Place::of(&item.names).as_str(),
            &wanted.digest,
        );
        let mut outcome = FetchOutcome::Missing;
        let is_other = |path: &Vec<u8>| path != wanted.path;
        let others = others.into_iter().filter(is_other);
        for path in std::iter::once(wanted.path.to_vec()).chain(others) {
            let is_first = path == wanted.path;
            match read(&directory, &path, wanted, into) {
                Ok((file, stat, Some(digest))) if digest == wanted.digest => {
                    let has_come = copy(&file, &stat, digest, into)?;
                    if has_come {
                        return Ok(FetchOutcome::Arrived(
                            Template::File(file, stat.into()).into(),
                        ));
                    }
                }
                Ok((_, _, digest)) if is_first => outcome = FetchOutcome::Other(digest),
                Err(why) if is_first => outcome = why.map_or(outcome, FetchOutcome::Unread),
                _ => {}
            }
        }
        Ok(outcome)
    }
}

/// A file with its digest, if it may be what is wanted. The error is empty where there is no regular file.
fn read(
    directory: &Tree,
    path: &[u8],
    wanted: &MissingContent<'_>,
    into: &Incoming<'_>,
) -> Result<(OwnedFd, Stat, Option<Digest>), Option<Message>> {
    let of = |errno: Errno| match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV => None,
        errno => Some(std::io::Error::from(errno).message()),
    };
    let file = OwnedFd::from(directory.open_to_read(path).map_err(of)?);
    let stat = rustix::fs::fstat(&file).map_err(of)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(None);
    }
    // The owner of the other store may have made it as long as they like.
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    match wanted.size {
        Some(wanted) if wanted != size => return Ok((file, stat, None)),
        Some(_) => {}
        None => into
            .has_room_for(size)
            .map_err(|error| Some(error.message()))?,
    }
    let digest = read_digest(&file).map_err(Some)?;
    Ok((file, stat, Some(digest)))
}

/// Copies a file under its digest. False where it has changed since it was read.
fn copy(
    file: &OwnedFd,
    stat: &Stat,
    digest: Digest,
    into: &Incoming<'_>,
) -> Result<bool, TransferError> {
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let mut receiving = into.receive(digest, size)?;
    let (mut buffer, mut at) = (vec![0; BLOCK], 0);
    while at < size {
        let most = usize::try_from(size - at).map_or(BLOCK, |left| left.min(BLOCK));
        match rustix::io::pread(file, &mut buffer[..most], at) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                receiving.take(&buffer[..count])?;
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return Ok(false),
        }
    }
    if receiving.digest() != digest {
        return Ok(false);
    }
    receiving.finish()?;
    Ok(true)
}
