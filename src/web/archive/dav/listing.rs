//! The answer to PROPFIND and the page of a collection, made in steps of limited work: an Archive has a million items, and an item a million files.

use std::sync::Arc;

use super::target::Target;
use crate::archive::tree::Published;
use crate::archive::{ArchiveError, PublicDirectory};
use crate::formats::item::Names;
use crate::formats::query::encoded;
use crate::formats::webdav::{BEGIN, END, FileProperties, PAGE_BEGIN, PAGE_END, Resource, Wanted};
use crate::web::archive::levels::{Member, Members};
use crate::web::archive::{Site, act, file, pages};
use ibi::Timestamp;

/// The bytes that are written in one piece, if there is more.
const PIECE: usize = 64 * 1024;
/// The most steps that are made for one piece.
const MOST_STEPS: usize = 16;

/// The rest that is to be listed.
enum Source {
    /// The names below a level.
    Members(Members),
    Directory(PublicDirectory),
    /// The end of the document.
    End,
    Nothing,
}

/// The form in which resources are listed.
pub(super) enum Form {
    /// Properties in XML.
    Properties(Wanted),
    /// A page with links to the members.
    Page,
}

/// A list that is being written.
pub(super) struct Listing {
    site: Arc<Site>,
    form: Form,
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
        form: Form,
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
            form,
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
        let xml = match &listing.form {
            Form::Page => PAGE_BEGIN.to_owned(),
            Form::Properties(wanted) => {
                let mut xml = BEGIN.to_owned();
                let resource = Resource {
                    href: listing.href.clone(),
                    ..resource
                };
                wanted.write(&resource, &mut xml);
                xml
            }
        };
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
            Target::Level(level) => {
                let members = Members::of(&self.site, &level)?;
                (collection(name), Source::Members(members))
            }
            Target::Content(item, path) => {
                let directory = archive.read_as(&act).open_public_directory(&item, &path)?;
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
                let found = archive.read_as(&act).open_metadata_text(&item)?;
                let mut resource = self.of_found(name, &found);
                if let Some(file) = &mut resource.file {
                    file.media_type = file::media_type(b"metadata.txt");
                }
                (resource, Source::End)
            }
            Target::Description(item, from, format) => {
                archive.read_as(&act).open_content(&item, b"")?;
                let document = archive
                    .read_as(&act)
                    .document(&item, from.as_ref(), format)?;
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
                    xml.push_str(match self.form {
                        Form::Properties(_) => END,
                        Form::Page => PAGE_END,
                    });
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
            Source::Members(mut members) => {
                let visit = |member| match member {
                    Member::Level(path, _) => self.add(self.member(path.name().into()), xml),
                    Member::Item(names, name, found) => {
                        let mut resource = self.of_found(name.into_bytes(), &found);
                        resource.created = created(&names);
                        self.add(resource, xml);
                    }
                };
                Ok(if members.next(&self.site, visit)? {
                    Source::Members(members)
                } else {
                    Source::End
                })
            }
            Source::Directory(directory) => {
                let visit = |name: &[u8], found: &Published| {
                    let resource = self.of_found(name.to_vec(), found);
                    self.add(resource, xml);
                };
                let archive = &self.site.archive;
                let has_more = archive
                    .read_as(&act)
                    .next_public_entries(&directory, visit)?;
                Ok(if has_more {
                    Source::Directory(directory)
                } else {
                    Source::End
                })
            }
            other @ (Source::End | Source::Nothing) => Ok(other),
        }
    }

    /// A collection without further properties.
    fn member(&self, name: Vec<u8>) -> Resource {
        Resource {
            name,
            ..Resource::default()
        }
    }

    /// Writes a member.
    fn add(&self, mut resource: Resource, xml: &mut String) {
        let end = if resource.file.is_some() { "" } else { "/" };
        resource.href = format!("{}{}{end}", self.href, encoded(&resource.name));
        match &self.form {
            Form::Properties(wanted) => wanted.write(&resource, xml),
            Form::Page => resource.write_line(xml),
        }
    }
}

/// Returns when an item was identified.
fn created(names: &Names) -> Option<String> {
    let date = pages::date_of(names)?;
    Some(Timestamp::from_unix(date.seconds(), 0).to_rfc3339())
}
