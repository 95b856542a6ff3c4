//! The answer to PROPFIND, made in steps of limited work: an Archive has a million items, and an item a million files.

use std::sync::Arc;

use super::target::{Target, is_level_shown, is_prefix_shown};
use crate::archive::store::{key_after_level, level_bounds};
use crate::archive::tree::Published;
use crate::archive::{ArchiveError, PublicDirectory};
use crate::formats::item::Names;
use crate::formats::query::encoded;
use crate::formats::webdav::{BEGIN, END, FileProperties, Resource, Wanted};
use crate::web::server::archive::{Site, act, file, pages};
use ibi::Timestamp;

/// How much is written in one piece, in bytes, if there is more.
const PIECE: usize = 64 * 1024;
/// How many steps are made for one piece at most.
const MOST_STEPS: usize = 16;
/// How many items are read from the index at a time.
const PAGE: usize = 256;
/// How many components a level has whose members are items.
const YEAR: usize = 3;

/// What remains to be listed.
enum Source {
    /// The names below a level of so many components, as far as they follow a key and come before another.
    Level {
        depth: usize,
        after: String,
        end: String,
    },
    /// The prefixes of items without a rep, after a key.
    Prefixes(String),
    /// The items with a prefix, after a key.
    Items {
        prefix: String,
        without_rep: bool,
        after: Option<String>,
    },
    Directory(PublicDirectory),
    /// The end of the document.
    End,
    Nothing,
}

/// A list that is being written.
pub(super) struct Listing {
    site: Arc<Site>,
    wanted: Wanted,
    /// The path of the resource that was asked for, percent-encoded. That of a collection ends with a slash.
    href: String,
    now: i64,
    source: Source,
}

impl Listing {
    /// Begins a list with the resource itself; its members follow if it is a collection and they are wanted. `path` has
    /// the components below the drive.
    pub(super) fn begin(
        site: Arc<Site>,
        wanted: Wanted,
        target: Target,
        path: &[Vec<u8>],
        with_members: bool,
    ) -> Result<(Listing, String), ArchiveError> {
        let href = [site.url.prefix().as_bytes(), b"/", super::PATH.as_bytes()].concat();
        let href = path.iter().fold(encoded(&href), |href, part| {
            format!("{href}/{}", encoded(part))
        });
        let mut listing = Listing {
            now: site.clock.seconds(),
            site,
            wanted,
            href,
            source: Source::End,
        };
        let mut name = path.last().cloned().unwrap_or_default();
        if path.is_empty() {
            name = listing.site.archive.facts().host.clone().into_bytes();
        }
        let (resource, source) = listing.of_target(target, name)?;
        if resource.file.is_none() {
            listing.href.push('/');
        }
        let mut xml = BEGIN.to_owned();
        let resource = Resource {
            href: listing.href.clone(),
            ..resource
        };
        listing.wanted.write(&resource, &mut xml);
        if with_members {
            listing.source = source;
        }
        Ok((listing, xml))
    }

    /// The resource that was asked for, and where its members are found.
    fn of_target(&self, target: Target, name: Vec<u8>) -> Result<(Resource, Source), ArchiveError> {
        let archive = &self.site.archive;
        let collection = |name: Vec<u8>| Resource {
            name,
            ..Resource::default()
        };
        Ok(match target {
            Target::Root => {
                let (after, end) = level_bounds("");
                let depth = 0;
                (collection(name), Source::Level { depth, after, end })
            }
            Target::Level(level) => {
                let (after, end) = level_bounds(&level);
                let depth = level.split('/').count();
                (collection(name), Source::Level { depth, after, end })
            }
            Target::Prefix(prefix) => {
                let without_rep = archive.store().has_items_without_rep(&prefix)?;
                let source = Source::Items {
                    prefix,
                    without_rep,
                    after: None,
                };
                (collection(name), source)
            }
            Target::Content(item, path) => {
                let directory = archive.open_public_directory(&item.names, &path, &act)?;
                let mut resource = self.of_found(name, directory.itself());
                if path.is_empty() {
                    resource.created = created(&item.names);
                }
                match resource.file {
                    Some(_) => (resource, Source::End),
                    None => (resource, Source::Directory(directory)),
                }
            }
            Target::Text(item) => {
                let found = archive.open_metadata_text(&item, &act)?;
                let mut resource = self.of_found(name, &found);
                if let Some(file) = &mut resource.file {
                    file.media_type = file::media_type(b"metadata.txt");
                }
                (resource, Source::End)
            }
            Target::Description(item, from, format) => {
                archive.open_content(&item, b"", &act)?;
                let document = archive.document(&item, from.as_ref(), format, &act)?;
                let file = FileProperties {
                    length: document.len() as u64,
                    media_type: format.media_type(),
                    tag: None,
                };
                let resource = Resource {
                    file: Some(file),
                    ..collection(name)
                };
                (resource, Source::End)
            }
        })
    }

    fn of_found(&self, name: Vec<u8>, found: &Published) -> Resource {
        let version = file::version_of(found, self.now);
        let file = found.is_file().then(|| FileProperties {
            length: found.length(),
            media_type: file::media_type(&name),
            tag: Some(version.tag),
        });
        Resource {
            name,
            file,
            changed: version.changed.map(httpdate::fmt_http_date),
            ..Resource::default()
        }
    }

    /// Whether the resource itself is a file.
    pub(super) fn is_of_file(&self) -> bool {
        !self.href.ends_with('/')
    }

    /// Writes the next piece, which may be empty. Returns false after the last one.
    pub(super) fn next(&mut self, xml: &mut String) -> Result<bool, ArchiveError> {
        for _ in 0..MOST_STEPS {
            if xml.len() >= PIECE {
                break;
            }
            match std::mem::replace(&mut self.source, Source::Nothing) {
                Source::Nothing => return Ok(false),
                Source::End => {
                    xml.push_str(END);
                    return Ok(false);
                }
                source => self.source = self.step(source, xml)?,
            }
        }
        Ok(true)
    }

    /// Writes some members, and returns where the next ones are found.
    fn step(&self, source: Source, xml: &mut String) -> Result<Source, ArchiveError> {
        match source {
            Source::Level { depth, after, end } if depth < YEAR => {
                self.next_level(depth, after, end, xml)
            }
            Source::Level { depth, after, end } => self.items_of_year(depth, after, end, xml),
            Source::Prefixes(after) => {
                let found = self.site.archive.store().prefix_after(true, &after)?;
                let Some((prefix, next)) = found else {
                    return Ok(Source::End);
                };
                if is_prefix_shown(&self.site, &prefix, true)? {
                    self.add(self.member(prefix.into_bytes()), xml);
                }
                Ok(Source::Prefixes(next))
            }
            Source::Items {
                prefix,
                without_rep,
                after,
            } => {
                let store = self.site.archive.store();
                let rows = store.prefix_page(&prefix, without_rep, after.as_deref(), PAGE)?;
                for row in &rows {
                    if let Some(ibip) = row.names.ibip() {
                        self.add_item(&row.names, ibip.suffix(), xml)?;
                    }
                }
                Ok(match rows.into_iter().next_back() {
                    Some(row) => Source::Items {
                        prefix,
                        without_rep,
                        after: Some(row.key),
                    },
                    None => Source::End,
                })
            }
            Source::Directory(directory) => {
                let visit = |name: &[u8], found: &Published| {
                    let resource = self.of_found(name.to_vec(), found);
                    self.add(resource, xml);
                };
                let archive = &self.site.archive;
                let has_more = archive.next_public_entries(&directory, &act, visit)?;
                Ok(if has_more {
                    Source::Directory(directory)
                } else {
                    Source::End
                })
            }
            other @ (Source::End | Source::Nothing) => Ok(other),
        }
    }

    /// The next level below one of so many components.
    fn next_level(
        &self,
        depth: usize,
        after: String,
        end: String,
        xml: &mut String,
    ) -> Result<Source, ArchiveError> {
        let rows = self.site.archive.store().rep_page(&after, &end, 1)?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(match depth {
                0 => Source::Prefixes(String::new()),
                _ => Source::End,
            });
        };
        let recorded = row.names.as_ref().and_then(Names::rep);
        if let Some(rep) = recorded {
            let components = rep.components();
            let level = components.get(..=depth).unwrap_or_default().join("/");
            if is_level_shown(&self.site, &level)?
                && let Some(name) = components.get(depth)
            {
                self.add(self.member(name.as_bytes().to_vec()), xml);
            }
        }
        let after = key_after_level(&row.key, depth + 1).unwrap_or(row.key);
        Ok(Source::Level { depth, after, end })
    }

    fn items_of_year(
        &self,
        depth: usize,
        after: String,
        end: String,
        xml: &mut String,
    ) -> Result<Source, ArchiveError> {
        let rows = self.site.archive.store().rep_page(&after, &end, PAGE)?;
        for row in &rows {
            if let Some(names) = &row.names
                && let Some(rep) = names.rep()
                && let Some(name) = rep.components().get(depth)
            {
                self.add_item(names, name, xml)?;
            }
        }
        Ok(match rows.into_iter().next_back() {
            Some(row) => Source::Level {
                depth,
                after: row.key,
                end,
            },
            None => Source::End,
        })
    }

    /// A collection without further properties.
    fn member(&self, name: Vec<u8>) -> Resource {
        Resource {
            name,
            ..Resource::default()
        }
    }

    /// Writes an item that the public may read.
    fn add_item(&self, names: &Names, name: &str, xml: &mut String) -> Result<(), ArchiveError> {
        if let Some(found) = self.site.archive.visible_item(names, &act)? {
            let mut resource = self.of_found(name.as_bytes().to_vec(), &found);
            resource.created = created(names);
            self.add(resource, xml);
        }
        Ok(())
    }

    /// Writes a member.
    fn add(&self, mut resource: Resource, xml: &mut String) {
        let end = if resource.file.is_some() { "" } else { "/" };
        resource.href = format!("{}{}{end}", self.href, encoded(&resource.name));
        self.wanted.write(&resource, xml);
    }
}

/// When an item was identified.
fn created(names: &Names) -> Option<String> {
    let date = pages::date_of(names)?;
    Some(Timestamp::from_unix(date.seconds(), 0).to_rfc3339())
}
