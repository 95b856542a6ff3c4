//! The lookups of one answer in the Archive. Each runs once for each item, even if many relations lead to it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::archive::store::Item;
use crate::archive::{ArchiveError, ReadAs};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::Names;
use ibi::Timestamp;
use ibi::relation::Language;

/// An Archive with the results of the lookups for one answer.
pub(super) struct Memo<'a> {
    archive: ReadAs<'a>,
    held: Memoized<Option<Item>>,
    last: Memoized<Option<Names>>,
    translations: Memoized<Vec<(Language, Names)>>,
    metadata: Memoized<Option<Names>>,
    is_metadata: Memoized<bool>,
    has_text: Memoized<bool>,
    shown: Memoized<bool>,
    paths: Memoized<Option<Vec<u8>>>,
    updated: Memoized<Option<Timestamp>>,
    described: Memoized<Option<Timestamp>>,
}

/// The results of one kind of lookup, by item.
struct Memoized<T>(RefCell<HashMap<Names, T>>);

impl<T> Default for Memoized<T> {
    fn default() -> Memoized<T> {
        Memoized(RefCell::default())
    }
}

impl<T: Clone> Memoized<T> {
    fn once(
        &self,
        names: &Names,
        find: impl FnOnce() -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        if let Some(found) = self.0.borrow().get(names) {
            return Ok(found.clone());
        }
        let found = find()?;
        self.0.borrow_mut().insert(names.clone(), found.clone());
        Ok(found)
    }
}

impl<'a> Memo<'a> {
    pub(super) fn new(archive: ReadAs<'a>) -> Memo<'a> {
        Memo {
            archive,
            held: Memoized::default(),
            last: Memoized::default(),
            translations: Memoized::default(),
            metadata: Memoized::default(),
            is_metadata: Memoized::default(),
            has_text: Memoized::default(),
            shown: Memoized::default(),
            paths: Memoized::default(),
            updated: Memoized::default(),
            described: Memoized::default(),
        }
    }

    pub(super) fn held(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        self.held.once(names, || self.archive.held(names))
    }

    /// Whether an item is public.
    pub(super) fn is_shown(&self, names: &Names) -> Result<bool, ArchiveError> {
        let find = || self.archive.is_shown(names);
        self.shown.once(names, find)
    }

    /// The last edition, as far as this Archive knows. It does not know the successors of an edition that is
    /// held elsewhere.
    pub(super) fn last_edition(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.last
            .once(names, || match self.archive.last_edition_shown(names) {
                Ok(last) => Ok(self.held(&last)?.map(|item| item.names)),
                Err(ArchiveError::Cycle { .. }) => Ok(None),
                Err(error) => Err(error),
            })
    }

    pub(super) fn translations(
        &self,
        names: &Names,
    ) -> Result<Vec<(Language, Names)>, ArchiveError> {
        let find = || {
            let mut shown = Vec::new();
            for (language, names) in self.archive.translations(names)? {
                if self.is_shown(&names)? {
                    shown.push((language, names));
                }
            }
            Ok(shown)
        };
        self.translations.once(names, find)
    }

    /// The next edition, if it is public.
    pub(super) fn next_edition(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        let next = self.archive.next_edition(names)?;
        self.if_shown(next)
    }

    fn if_shown(&self, names: Option<Names>) -> Result<Option<Names>, ArchiveError> {
        match names {
            Some(names) if self.is_shown(&names)? => Ok(Some(names)),
            _ => Ok(None),
        }
    }

    pub(super) fn metadata(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.metadata.once(names, || {
            let metadata = self.archive.metadata(names)?;
            self.if_shown(metadata)
        })
    }

    pub(super) fn is_metadata(&self, item: &Item) -> Result<bool, ArchiveError> {
        let find = || {
            let described = self.archive.metadata_of(item)?;
            Ok(self.if_shown(described)?.is_some())
        };
        self.is_metadata.once(&item.names, find)
    }

    pub(super) fn has_metadata_text(&self, item: &Item) -> Result<bool, ArchiveError> {
        let find = || self.archive.has_metadata_text(item);
        self.has_text.once(&item.names, find)
    }

    /// Whether an item is described in a format.
    pub(super) fn has_format(
        &self,
        item: &Item,
        format: DescriptionFormat,
    ) -> Result<bool, ArchiveError> {
        self.archive.has_format(item, format)
    }

    /// The path of the requested file. One answer requests only one path.
    pub(super) fn content_path(
        &self,
        item: &Item,
        path: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let find = || self.archive.content_path(item, path);
        self.paths.once(&item.names, find)
    }

    pub(super) fn updated(&self, item: &Item) -> Result<Option<Timestamp>, ArchiveError> {
        let find = || self.archive.updated(item);
        self.updated.once(&item.names, find)
    }

    /// The last change of the description of an item.
    pub(super) fn described(&self, item: &Item) -> Result<Option<Timestamp>, ArchiveError> {
        let find = || {
            let metadata = self.metadata(&item.names)?;
            let metadata = metadata.map(|names| self.held(&names)).transpose()?;
            let metadata = metadata.flatten();
            self.archive.description_updated(item, metadata.as_ref())
        };
        self.described.once(&item.names, find)
    }
}
