//! Descriptions of an item: its Dublin Core record and the list of its files.

use rustix::io::Errno;

use super::{Archive, ArchiveError, ReadAs, Relations};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{Directories, METADATA_TEXT, OpenItem, Place, SIDECAR, TreeError};
use crate::formats::description::{AccessRight, DescribedRelation, Description, DescriptionFormat};
use crate::formats::item::Names;
use crate::formats::metadata::{
    BibliographicRecord, DublinCore, Element, RecordFormat, read_metadata_text,
};
use ibi::Timestamp;

/// The seconds of a day.
const DAY: i64 = 86_400;

/// Runs a closure with the credentials of a user.
pub type RunAs<'a> = &'a dyn Fn(&mut dyn FnMut());

impl ReadAs<'_> {
    /// The item's description in a format, see ibi(7). The record comes from the metadata item
    /// `from`, else from the item's own metadata item or text. Identifier, date, type, and the
    /// known language and relations are always included. The files are read by `act`, with the
    /// credentials of the reader.
    pub fn document(
        &self,
        item: &Item,
        from: Option<&Names>,
        format: DescriptionFormat,
    ) -> Result<String, ArchiveError> {
        match format {
            DescriptionFormat::Premis => self.premis(item),
            DescriptionFormat::Formats if self.has_premis(item)? => {
                let others = self.description(item, from)?.write(format);
                Ok(others + &DescriptionFormat::Premis.listed())
            }
            format => Ok(self.description(item, from)?.write(format)),
        }
    }

    /// The Dublin Core of what [`ReadAs::description`] returns.
    pub fn described(&self, item: &Item, from: Option<&Names>) -> Result<DublinCore, ArchiveError> {
        Ok(self.description(item, from)?.record.core)
    }

    /// Returns what is known of an item for its description, see [`ReadAs::document`].
    pub fn description(
        &self,
        item: &Item,
        from: Option<&Names>,
    ) -> Result<Description, ArchiveError> {
        let relations = self.relations_shown(item)?;
        self.description_with(item, from, &relations)
    }

    /// [`ReadAs::description`], with the relations that the reader is shown.
    pub fn description_with(
        &self,
        item: &Item,
        from: Option<&Names>,
        relations: &Relations,
    ) -> Result<Description, ArchiveError> {
        let record = self.record_about(item, from)?;
        self.description_by(item, record, relations)
    }

    /// The description with what a record says.
    pub(super) fn description_by(
        &self,
        item: &Item,
        mut record: BibliographicRecord,
        relations: &Relations,
    ) -> Result<Description, ArchiveError> {
        let mut core = DublinCore::default();
        for name in [
            item.names.rep().map(ToString::to_string),
            item.names.ibip().map(ToString::to_string),
        ]
        .into_iter()
        .flatten()
        {
            core.push(Element::Identifier, name);
        }
        core.push(Element::Identifier, self.facts.persistent_url(&item.names));
        core.extend(&record.core);
        if core.first(Element::Date).is_none()
            && let Some(date) = date_of(&item.names)
        {
            core.push(Element::Date, date);
        }
        if core.first(Element::Type).is_none() {
            // A set of files is a collection in the DCMI type vocabulary.
            core.push(Element::Type, "Collection");
        }
        if let Some(language) = &item.language {
            core.push(Element::Language, language.to_string());
        }
        let mut related: Vec<(DescribedRelation, String)> = Vec::new();
        for (name, names) in relations {
            let relation = match name.as_str() {
                "nextedition" | "lastedition" => DescribedRelation::LaterEdition,
                "editionof" => DescribedRelation::EarlierEdition,
                name if name.starts_with("translation") => DescribedRelation::Translation,
                _ => continue,
            };
            if !names.matches(&item.names) {
                let url = self.facts.persistent_url(names);
                if !related.iter().any(|(_, known)| *known == url) {
                    related.push((relation, url.clone()));
                }
                core.push(Element::Relation, url);
            }
        }
        record.core = core;
        Ok(Description {
            record,
            ibi: match item.names.ibip() {
                Some(ibip) => ibip.to_string(),
                None => item.names.preferred(),
            },
            url: self.facts.persistent_url(&item.names),
            // The name of a file that is withheld is withheld.
            target_file: match self.withheld_until(item) {
                Some(_) => None,
                None => item.target.clone(),
            },
            related,
            made_on: self.today(),
            access: item
                .life
                .available
                .as_ref()
                .map(|_| self.right_by_date(item)),
            available: item.life.available.as_ref().map(day),
        })
    }

    /// What the public may read of an item with a date from which its files are open, by that date alone.
    fn right_by_date(&self, item: &Item) -> AccessRight {
        match self.withheld_until(item) {
            Some(_) => AccessRight::Embargoed,
            None => AccessRight::Open,
        }
    }

    /// The title in an item's description. The rest of it is not looked up.
    pub fn title(&self, item: &Item) -> Result<Option<String>, ArchiveError> {
        let own = self.own_description(item)?;
        Ok(own.first(Element::Title).map(str::to_owned))
    }

    /// Reads an item's own description, without facts of its sidecar.
    pub fn own_description(&self, item: &Item) -> Result<DublinCore, ArchiveError> {
        Ok(self.record_about(item, None)?.core)
    }

    /// Reads the record that describes an item, and returns an error if the reader may not.
    pub(super) fn read_description(&self, item: &Item) -> Result<(), ArchiveError> {
        self.record_about(item, None).map(drop)
    }

    /// The record that describes an item. A record that cannot be read counts as none.
    pub(super) fn record_about(
        &self,
        item: &Item,
        from: Option<&Names>,
    ) -> Result<BibliographicRecord, ArchiveError> {
        let metadata = match from {
            Some(names) => Some(names.clone()),
            None => self.metadata(&item.names)?,
        };
        if let Some(names) = metadata {
            let record = match self.held(&names)? {
                Some(metadata) => self.record_in(&metadata)?,
                None => BibliographicRecord::default(),
            };
            // A metadata item that says nothing yet hides no text.
            if from.is_some() || record != BibliographicRecord::default() {
                return Ok(record);
            }
        }
        let text = self.acting(|| {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            open.read_small(METADATA_TEXT)
        })?;
        let Some(text) = text else {
            return Ok(BibliographicRecord::default());
        };
        Ok(read_metadata_text(&text).unwrap_or_else(|error| {
            log::warn!("the metadata text of {}: {error}", item.names);
            BibliographicRecord::default()
        }))
    }

    /// The best record among the files of a metadata item: in order of preference `oai_dc` XML,
    /// BibTeX, `refer`, the other formats, and the metadata text of ibifs.
    fn record_in(&self, metadata: &Item) -> Result<BibliographicRecord, ArchiveError> {
        self.acting(|| {
            let open = self.tree.open_for_reader(&Place::of(&metadata.names))?;
            self.record_of_files(metadata, &open)
        })
    }

    /// The result of reading with the credentials of a user.
    pub(super) fn acting<T, E: From<TreeError>>(
        &self,
        mut read: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut outcome = None;
        (self.act)(&mut || outcome = Some(read()));
        // If the credentials could not be taken, access is denied.
        outcome.unwrap_or_else(|| Err(self.tree.error(Action::Read, ".", Errno::ACCESS).into()))
    }

    /// The item's files, one path per line, relative to the item. A control character or `%` in a
    /// name is written `%hh`. Files that ibifs keeps beside the content are left out.
    ///
    /// The directories are read by `act`, with the credentials of the reader. Fails if the reader
    /// may not read all of them.
    pub fn file_list(&self, item: &Item) -> Result<FileList, ArchiveError> {
        let mut list = Vec::new();
        let began = self.clock.now().as_nanoseconds();
        let files = self.acting(|| {
            let open = self.tree.open_for_reader(&Place::of(&item.names))?;
            self.tree.files_in(&open)
        })?;
        for file in files.paths {
            if file == SIDECAR.as_bytes() || file == METADATA_TEXT.as_bytes() {
                continue;
            }
            let mut rest = &file[..];
            let is_encoded = |byte: &u8| matches!(byte, 0..=31 | 127 | b'%');
            while let Some(at) = rest.iter().position(is_encoded) {
                list.extend_from_slice(&rest[..at]);
                list.extend(format!("%{:02X}", rest[at]).bytes());
                rest = &rest[at + 1..];
            }
            list.extend_from_slice(rest);
            list.push(b'\n');
        }
        let directories = files.directories;
        list.shrink_to_fit();
        Ok(FileList {
            text: list,
            directories: directories.filter(|directories| directories.are_settled(began)),
        })
    }

    /// Whether a list of an item's files is still current, with the credentials of `act`.
    pub fn is_list_still(&self, item: &Item, list: &FileList) -> bool {
        let Some(directories) = &list.directories else {
            return false;
        };
        let place = Place::of(&item.names);
        let mut is_so = false;
        (self.act)(&mut || {
            let open = self.tree.open_for_reader(&place);
            is_so = open.is_ok_and(|open| self.tree.are_so_still(&open, directories));
        });
        is_so
    }

    /// The present date in UTC: year, month and day.
    fn today(&self) -> (u16, u8, u8) {
        let date = Timestamp::from_unix(self.clock.now().seconds(), 0).to_rfc3339();
        let mut parts = date.splitn(3, '-');
        let year = parts.next().and_then(|year| year.parse().ok());
        let month = parts.next().and_then(|month| month.parse().ok());
        let day = parts.next().and_then(|day| day.get(..2)?.parse().ok());
        (
            year.unwrap_or_default(),
            month.unwrap_or_default(),
            day.unwrap_or_default(),
        )
    }

    fn record_of_files(
        &self,
        metadata: &Item,
        open: &OpenItem,
    ) -> Result<BibliographicRecord, ArchiveError> {
        let mut best: Option<(u8, BibliographicRecord)> = None;
        for file in self.tree.files_in(open)?.paths {
            let Ok(path) = String::from_utf8(file) else {
                continue;
            };
            let Some(name) = path.strip_prefix("doc/") else {
                continue;
            };
            let bytes = match open.read_small(&path) {
                Ok(Some(bytes)) => bytes,
                // This reader may not read the record.
                Err(error) if error.errno() == Errno::ACCESS => return Err(error.into()),
                Ok(None) | Err(_) => continue,
            };
            let Some(format) = crate::formats::metadata::sniff(name, &bytes) else {
                continue;
            };
            let rank = match format {
                RecordFormat::OaiDc => 0,
                RecordFormat::Bibtex => 1,
                RecordFormat::Refer => 2,
                RecordFormat::Datacite | RecordFormat::Mods | RecordFormat::Json => 3,
                RecordFormat::Ris | RecordFormat::Cff | RecordFormat::Dspace => 4,
                RecordFormat::Text => 5,
            };
            if best.as_ref().is_some_and(|(known, _)| *known <= rank) {
                continue;
            }
            match BibliographicRecord::read(name, &bytes) {
                Some(Ok(record)) => best = Some((rank, record)),
                Some(Err(error)) => log::warn!("{}: {path}: {error}", metadata.names),
                None => {}
            }
        }
        Ok(best.map(|(_, record)| record).unwrap_or_default())
    }
}

impl Archive {
    /// The item that is the metadata of an item. None if there is none, or if it is not held here.
    pub fn metadata_held(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        let names = self.complete(names)?;
        let Some(metadata) = self.metadata(&names)? else {
            return Ok(None);
        };
        Ok(self.held(&metadata)?.map(|metadata| metadata.names))
    }
}

/// A text made from the contents of an item.
#[derive(Debug)]
pub struct FileList {
    /// The text.
    pub text: Vec<u8>,
    /// The directories that it was made from, if a change of them can be detected.
    directories: Option<Directories>,
}

impl From<Vec<u8>> for FileList {
    fn from(text: Vec<u8>) -> FileList {
        FileList {
            text,
            directories: None,
        }
    }
}

impl FileList {
    /// Whether it can be checked later that the list is still current.
    pub fn lasts(&self) -> bool {
        self.directories.is_some()
    }

    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        self.text.capacity() + self.directories.as_ref().map_or(0, Directories::size)
    }
}

/// The first day that is not before an instant, in UTC: a date says no less than how long files are withheld.
fn day(at: &Timestamp) -> String {
    let next = Timestamp::from_unix(at.seconds().saturating_add(DAY - 1), 0);
    let text = next.to_rfc3339();
    text.split('T').next().unwrap_or_default().to_owned()
}

fn date_of(names: &Names) -> Option<String> {
    let date = match (names.rep(), names.ibip()) {
        (Some(rep), _) => rep.timestamp(),
        (None, Some(ibip)) => ibip.timestamp(),
        (None, None) => return None,
    };
    Some(date.to_rfc3339())
}

#[cfg(test)]
mod tests;
