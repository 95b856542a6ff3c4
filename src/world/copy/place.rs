//! An Archive as a place from which a damaged file is mended.

use super::copying::CopySource;
use super::download::download;
use super::found::{CopyRequest, ItemToCopy, digest_of};
use crate::archive::repair::{CopyPlace, FetchOutcome, MissingContent, Template};
use crate::archive::transfer::{Incoming, Local, Skip, TransferError};
use crate::formats::inventory::{Entry, EntryKind};
use crate::formats::item::Names;
use crate::world::remote::content::RemoteFile;
use crate::world::remote::fetching::Stopped;
use ibi::message::Localize;

/// An Archive that is asked by its URL.
#[derive(Debug)]
pub(crate) struct ArchivePlace {
    source: CopySource,
    url: String,
    /// The item that was found last, by the names that were asked for.
    found: Option<(Names, ItemToCopy)>,
}

impl ArchivePlace {
    /// The Archive of a source, by this URL.
    pub(crate) fn new(source: CopySource, url: &str) -> ArchivePlace {
        ArchivePlace {
            source,
            url: url.to_owned(),
            found: None,
        }
    }

    /// Fetches one entry of an item.
    fn entry(
        source: &CopySource,
        found: &ItemToCopy,
        entry: &Entry,
        wanted: &MissingContent<'_>,
        into: &Incoming<'_>,
    ) -> Result<FetchOutcome, TransferError> {
        let digest = match &entry.kind {
            EntryKind::Text(text) if digest_of(text) == wanted.digest => {
                let mut receiving = into.receive(wanted.digest, text.len() as u64)?;
                receiving.take(text)?;
                receiving.finish()?;
                wanted.digest
            }
            EntryKind::Text(text) => digest_of(text),
            EntryKind::File(file) if wanted.size.is_some_and(|it| it != file.size) => {
                return Ok(FetchOutcome::Other(None));
            }
            EntryKind::File(file) => match file.digest {
                Some(other) if other != wanted.digest => other,
                _ => {
                    into.has_room_for(file.size)?;
                    let url = found.url(entry);
                    let key = RemoteFile::new(url.clone(), file.clone()).key().to_owned();
                    match into.arrived(&key)? {
                        Some(digest) => digest,
                        None => {
                            let part = into.part(&key, file.size)?;
                            let fetching = download(&source.remote, &url, file, part);
                            match source.runtime.block_on(fetching).digest {
                                Ok(digest) => digest,
                                Err(Stopped::ForeignError(error)) => {
                                    return Ok(FetchOutcome::Unread(error.message()));
                                }
                                Err(Stopped::Disk(error)) => {
                                    return Err(into.not_written(&key, &error));
                                }
                            }
                        }
                    }
                }
            },
            _ => return Ok(FetchOutcome::Missing),
        };
        Ok(if digest == wanted.digest {
            FetchOutcome::Arrived(Template::Entry(entry.stat).into())
        } else {
            FetchOutcome::Other(Some(digest))
        })
    }
}

impl CopyPlace for ArchivePlace {
    fn name(&self) -> &str {
        &self.url
    }

    fn holder(&self) -> String {
        self.url.clone()
    }

    fn bring_back(&mut self, names: &Names, to: &Local) -> Result<bool, TransferError> {
        let found = match self.source.find(&CopyRequest::of(names)) {
            Err(TransferError::Skip(Skip::NotFound)) => return Ok(false),
            found => found?,
        };
        self.source.bring_back(&found, to)?;
        Ok(true)
    }

    fn fetch(
        &mut self,
        wanted: &MissingContent<'_>,
        into: &Incoming<'_>,
    ) -> Result<FetchOutcome, TransferError> {
        if !matches!(&self.found, Some((names, _)) if names == wanted.names) {
            match self.source.find(&CopyRequest::of(wanted.names)) {
                Ok(found) => self.found = Some((wanted.names.clone(), found)),
                Err(TransferError::Skip(Skip::NotFound)) => return Ok(FetchOutcome::Missing),
                Err(error) => return Ok(FetchOutcome::Unread(error.message())),
            }
        }
        let Some((_, found)) = &self.found else {
            return Ok(FetchOutcome::Missing);
        };
        let mut outcome = FetchOutcome::Missing;
        let is_same = |entry: &Entry| match &entry.kind {
            EntryKind::File(file) => file.digest == Some(wanted.digest),
            _ => false,
        };
        let at_path = |entry: &Entry| entry.path == wanted.path;
        let first = found.entries().filter(|(entry, _)| at_path(entry));
        let others = found
            .entries()
            .filter(|(entry, _)| !at_path(entry) && is_same(entry));
        for (entry, further) in first.chain(others) {
            let is_first = at_path(entry);
            let entry = further.unwrap_or(entry);
            match Self::entry(&self.source, found, entry, wanted, into)? {
                arrived @ FetchOutcome::Arrived(_) => return Ok(arrived),
                other if is_first => outcome = other,
                _ => {}
            }
        }
        Ok(outcome)
    }
}
