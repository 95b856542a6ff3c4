//! The content of an item's page, independent of its form. HTML and JSON show the same.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::archive::store::Item;
use crate::archive::{ArchiveError, GoneRelation, Listing, PublicFile, Relations};
use crate::formats::description::{AccessRight, Description, DescriptionFormat};
use crate::formats::history::Told;
use crate::formats::item::{Names, Seal, State};
use crate::formats::metadata::{DublinCore, Element};
use crate::formats::query::encoded;
use crate::http::server::page::html::shown;
use crate::web::archive::{Site, act};
use crate::web::service::content_url;
use ibi::Timestamp;

/// The most translations on a page.
pub(super) const MOST_TRANSLATIONS: usize = 1000;

/// The most translations, and the most claims, whose titles are on a page.
const MOST_TITLES: usize = 12;

/// The most editions before an item, and after it, on a page.
const MOST_EDITIONS: usize = 8;

/// The most claims of other items on a page.
const MOST_CLAIMS: usize = 100;

/// The most events on a page.
const MOST_EVENTS: usize = 10;

/// The choice whether the title of another item is looked up, which reads its metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Titled {
    Yes,
    No,
}

impl Titled {
    /// For an item that follows so many others in a list.
    fn after(others: usize) -> Titled {
        if others < MOST_TITLES {
            Titled::Yes
        } else {
            Titled::No
        }
    }
}

/// Another item that a page links to.
#[derive(Debug)]
pub(super) struct OtherItem {
    pub(super) names: Names,
    pub(super) is_held: bool,
    /// None if it is not held here, or not public, or one of very many.
    pub(super) title: Option<String>,
    url: String,
}

impl OtherItem {
    fn of(site: &Site, names: Names, with_title: Titled) -> Result<OtherItem, ArchiveError> {
        let archive = &site.archive;
        let held = archive.held(&names)?;
        let url = if held.is_some() {
            page_url(&names)
        } else {
            archive.facts().persistent_url(&names)
        };
        let with_title = held.as_ref().filter(|_| with_title == Titled::Yes);
        Ok(OtherItem {
            is_held: held.is_some(),
            title: with_title.and_then(|held| title(site, held)),
            names,
            url,
        })
    }

    /// Its title, or its name.
    pub(super) fn text(&self) -> String {
        let title = self.title.clone();
        title.unwrap_or_else(|| self.names.preferred())
    }

    /// The date in its identifier, as a day.
    pub(super) fn day(&self) -> Option<String> {
        let second = second(&date_of(&self.names)?);
        second.get(..10).map(str::to_owned)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Its page, if it is held here.
    pub(super) fn page(&self) -> String {
        if self.is_held {
            landing_url(&self.names)
        } else {
            self.url.clone()
        }
    }

    fn json(&self) -> Value {
        let mut value = json_of_names(&self.names);
        value["held"] = json!(self.is_held);
        value["title"] = json!(self.title);
        value["url"] = json!(self.url());
        value
    }
}

/// The content of an item's page.
#[derive(Debug)]
pub(super) struct ItemView {
    pub(super) names: Names,
    pub(super) persistent_url: String,
    pub(super) state: State,
    pub(super) title: Option<String>,
    /// None if it is not public.
    pub(super) description: Option<Description>,
    pub(super) language: Option<String>,
    pub(super) identified: Option<Timestamp>,
    /// From when on its files change no more.
    pub(super) sealed: Option<Seal>,
    pub(super) changed: Option<Timestamp>,
    pub(super) accesses: u64,
    /// The path of the main file in the item.
    pub(super) main_path: Option<Vec<u8>>,
    pub(super) main_file: Option<String>,
    /// What the public may read of it, unless that is all.
    pub(super) closed: Option<AccessRight>,
    /// The files that were found damaged.
    pub(super) damaged: Vec<String>,
    /// The instant until which its files are or were withheld.
    pub(super) available: Option<Timestamp>,
    pub(super) last_edition: Option<OtherItem>,
    pub(super) next_edition: Option<OtherItem>,
    pub(super) previous_edition: Option<OtherItem>,
    /// The editions before it, the nearest first.
    pub(super) earlier: Vec<OtherItem>,
    /// The editions after it, the nearest first.
    pub(super) later: Vec<OtherItem>,
    pub(super) translations: Vec<(String, OtherItem)>,
    pub(super) has_more_translations: bool,
    pub(super) translation_of: Option<OtherItem>,
    pub(super) metadata: Option<OtherItem>,
    pub(super) metadata_of: Option<OtherItem>,
    /// Its relations to items that were removed here or are withdrawn.
    pub(super) removed: Vec<(GoneRelation, OtherItem)>,
    /// Relations that other items claim and this one does not.
    pub(super) claims: Vec<(String, OtherItem)>,
    /// The latest events.
    pub(super) history: Vec<Told>,
    pub(super) has_metadata_text: bool,
    pub(super) listing: Listing,
}

impl ItemView {
    pub(super) fn of(
        site: &Site,
        item: &Item,
        most_files: usize,
    ) -> Result<ItemView, ArchiveError> {
        let archive = &site.archive;
        let mut relations = archive.read_as(&act).relations_shown(item)?;
        let description = archive
            .read_as(&act)
            .description_with(item, None, &relations);
        let mut description = known(item, description);
        let closed = archive.read_as(&act).closed(item);
        if let Some(description) = &mut description {
            description.access = closed.or(description.access);
        }
        let mut one = |name: &str| -> Result<Option<OtherItem>, ArchiveError> {
            let found = taken(&mut relations, name);
            found
                .map(|names| OtherItem::of(site, names, Titled::Yes))
                .transpose()
        };
        let last_edition = one("lastedition")?;
        let next_edition = one("nextedition")?;
        let previous_edition = one("editionof")?;
        let translation_of = one("translationof")?;
        let metadata = one("metadata")?;
        let metadata_of = one("metadataof")?;
        let language_in = |name: &str| {
            let inside = name.strip_prefix("translation(")?.strip_suffix(')')?;
            Some(inside.to_owned())
        };
        let mut translations = Vec::new();
        let mut has_more_translations = false;
        for (name, names) in relations {
            if let Some(language) = language_in(&name) {
                if translations.len() == MOST_TRANSLATIONS {
                    has_more_translations = true;
                    break;
                }
                let titled = Titled::after(translations.len());
                translations.push((language, OtherItem::of(site, names, titled)?));
            }
        }
        let mut removed = Vec::new();
        for relation in archive.read_as(&act).removed_relations_shown(item)? {
            let target = OtherItem::of(site, relation.target.clone(), Titled::No)?;
            removed.push((relation, target));
        }
        let claims = claims(site, item)?;
        let damaged = site.damaged_files(item);
        let earlier = editions(site, &previous_edition, |held| {
            archive.previous_edition(held)
        })?;
        let later = editions(site, &next_edition, |held| {
            archive.next_edition(&held.names)
        })?;
        let main_path = archive
            .read_as(&act)
            .content_path(item, None)
            .unwrap_or_default();
        Ok(ItemView {
            names: item.names.clone(),
            persistent_url: archive.facts().persistent_url(&item.names),
            state: item.state,
            title: description.as_ref().and_then(title_of),
            description,
            language: item.language.map(|language| language.to_string()),
            identified: date_of(&item.names),
            sealed: item.life.sealed.clone(),
            changed: site.public().updated(item).unwrap_or_default(),
            accesses: site.accesses.of(archive, &item.names.preferred()),
            closed,
            damaged: damaged.iter().map(|path| shown(path)).collect(),
            available: item.life.available.clone(),
            main_file: main_path.as_deref().map(|path| file_url(&item.names, path)),
            main_path,
            last_edition,
            next_edition,
            previous_edition,
            earlier,
            later,
            translations,
            has_more_translations,
            translation_of,
            metadata,
            metadata_of,
            removed,
            claims,
            history: history(site, item)?,
            has_metadata_text: archive.read_as(&act).has_metadata_text(item)?,
            listing: archive.read_as(&act).listing(item, b"", most_files)?,
        })
    }

    pub(super) fn json(&self) -> Value {
        let other = |other: &Option<OtherItem>| other.as_ref().map(OtherItem::json);
        let others =
            |others: &[OtherItem]| others.iter().map(OtherItem::json).collect::<Vec<Value>>();
        let translations = self.translations.iter().map(|(language, other)| {
            let mut value = other.json();
            value["language"] = json!(language);
            value
        });
        let removed = self.removed.iter();
        let removed = removed.map(|(relation, other)| {
            let mut value = json_of_names(&other.names);
            value["withdrawn"] = json!(relation.is_withdrawn);
            (relation.name.clone(), value)
        });
        let claims = self.claims.iter().map(|(relation, other)| {
            let mut value = other.json();
            value["relation"] = json!(relation);
            value
        });
        let is_withheld = self.closed == Some(AccessRight::Embargoed);
        let mut value = json_of_names(&self.names);
        let more = json!({
            "persistent_url": self.persistent_url,
            "state": self.state.to_string(),
            "title": self.title,
            "language": self.language,
            "identified_at": self.identified.as_ref().map(second),
            "changed_at": self.changed.as_ref().map(second),
            "accesses": self.accesses,
            "access": self.closed.map(AccessRight::label),
            "available": self.available.as_ref().map(Timestamp::to_rfc3339),
            "main_file_url": self.main_file,
            "last_edition": other(&self.last_edition),
            "next_edition": other(&self.next_edition),
            "previous_edition": other(&self.previous_edition),
            "earlier_editions": others(&self.earlier),
            "later_editions": others(&self.later),
            "translations": translations.collect::<Vec<Value>>(),
            "has_more_translations": self.has_more_translations,
            "translation_of": other(&self.translation_of),
            "metadata": other(&self.metadata),
            "metadata_of": other(&self.metadata_of),
            "removed_relations": removed.collect::<serde_json::Map<_, _>>(),
            "claims": claims.collect::<Vec<Value>>(),
            "metadata_url": self.has_metadata_text.then(|| metadata_url(&self.names)),
            "oai_dc_url": dublin_core_url(&self.names),
            "file_list_url": list_url(&self.names),
            "zip_url": (!is_withheld).then(|| zip_url(&self.names)),
            "bag_url": (!is_withheld).then(|| bag_url(&self.names)),
            "files": json_of_files(&self.names, &self.listing.files),
            "has_more_files": self.listing.has_more,
        });
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        if !self.history.is_empty() {
            let events = self.history.iter().map(|event| event.line.as_str());
            let events = events.filter_map(|line| serde_json::from_str(line).ok());
            value["history"] = Value::Array(events.collect());
            value["history_url"] = json!(history_url(&self.names));
        }
        value
    }
}

/// The latest events of which the public is told.
fn history(site: &Site, item: &Item) -> Result<Vec<Told>, ArchiveError> {
    let events = site.public().events_told(item, MOST_EVENTS)?.into_iter();
    Ok(events.map(|event| event.told).collect())
}

/// The claims of public items to be related to an item.
fn claims(site: &Site, item: &Item) -> Result<Vec<(String, OtherItem)>, ArchiveError> {
    let archive = &site.archive;
    let mut claims = Vec::new();
    for (kind, names) in site.claims.of(site, item)?.listed {
        if !archive.read_as(&act).is_shown(&names)? {
            continue;
        }
        let claimant = archive.held(&names)?;
        let is_public = |claimant: Item| archive.read_as(&act).open_content(&claimant, b"").is_ok();
        if claimant.is_some_and(is_public) {
            let titled = Titled::after(claims.len());
            claims.push((kind.pair_name(), OtherItem::of(site, names, titled)?));
        }
        if claims.len() == MOST_CLAIMS {
            break;
        }
    }
    Ok(claims)
}

/// The public editions that follow a neighbouring one, with itself; `follow` finds the next one. Editions that say
/// of each other that they are the next, in a circle, end at [`MOST_EDITIONS`].
fn editions(
    site: &Site,
    neighbour: &Option<OtherItem>,
    follow: impl Fn(&Item) -> Result<Option<Names>, ArchiveError>,
) -> Result<Vec<OtherItem>, ArchiveError> {
    let archive = &site.archive;
    let mut editions: Vec<OtherItem> = Vec::new();
    let mut next = neighbour.as_ref().map(|other| other.names.clone());
    while let Some(names) = next.take() {
        let edition = OtherItem::of(site, names, Titled::Yes)?;
        let held = archive.held(&edition.names)?;
        editions.push(edition);
        if let Some(held) = held
            && editions.len() < MOST_EDITIONS
            && let Some(names) = follow(&held)?
            && archive.read_as(&act).is_shown(&names)?
            && !editions.iter().any(|other| other.names.matches(&names))
        {
            next = Some(names);
        }
    }
    Ok(editions)
}

fn taken(relations: &mut Relations, name: &str) -> Option<Names> {
    let at = relations.iter().position(|(known, _)| known == name)?;
    Some(relations.remove(at).1)
}

/// The item's Dublin Core. None if it is not public.
pub(super) fn record(site: &Site, item: &Item) -> Option<DublinCore> {
    known(item, site.public().described(item, None))
}

/// Returns what the public may know of an item.
fn known<T>(item: &Item, found: Result<T, ArchiveError>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) => {
            log::debug!("the metadata of {} are not shown: {error}", item.names);
            None
        }
    }
}

/// Its title. None if it is not public.
pub(super) fn title(site: &Site, item: &Item) -> Option<String> {
    known(item, site.public().title(item)).flatten()
}

fn title_of(description: &Description) -> Option<String> {
    let title = description.record.core.first(Element::Title);
    title.map(str::to_owned)
}

/// The date in an item's identifier.
pub(in super::super) fn date_of(names: &Names) -> Option<Timestamp> {
    let by_rep = names.rep().map(|rep| rep.timestamp());
    by_rep.or_else(|| names.ibip().map(|ibip| ibip.timestamp()))
}

/// A time in RFC 3339, to the second.
pub(super) fn second(instant: &Timestamp) -> String {
    Timestamp::from_unix(instant.seconds(), 0).to_rfc3339()
}

pub(super) fn page_url(names: &Names) -> String {
    format!("/{}", encoded(names.preferred().as_bytes()))
}

pub(super) fn metadata_url(names: &Names) -> String {
    format!("{}:", page_url(names))
}

pub(super) fn dublin_core_url(names: &Names) -> String {
    description_url(names, DescriptionFormat::OaiDc)
}

pub(super) fn description_url(names: &Names, format: DescriptionFormat) -> String {
    page_url(names) + &description_modifier(format)
}

/// Returns what follows the URL of an item in that of its description.
pub(super) fn description_modifier(format: DescriptionFormat) -> String {
    format!(":({})", format.word())
}

/// The item's page itself, also where its persistent URL leads to a file.
pub(super) fn landing_url(names: &Names) -> String {
    format!("{}?page", page_url(names))
}

/// The citation of an item in a style.
pub(super) fn citation_url(names: &Names, style: &str) -> String {
    format!("{}?cite={style}", page_url(names))
}

/// The end of the URL of an item's links, after that of the item.
pub(super) const LINKSET_QUERY: &str = "?linkset";

pub(super) fn list_url(names: &Names) -> String {
    format!("{}?ibiurl.verblist=GetFileList", page_url(names))
}

pub(super) fn zip_url(names: &Names) -> String {
    format!("/archive.cgi/{}", encoded(names.preferred().as_bytes()))
}

pub(super) fn history_url(names: &Names) -> String {
    format!("{}?history", page_url(names))
}

/// All of an item as a BagIt bag in a zip file.
pub(super) fn bag_url(names: &Names) -> String {
    format!("{}?bag", zip_url(names))
}

pub(super) fn file_url(names: &Names, path: &[u8]) -> String {
    format!("/{}", content_url(names, path))
}

/// Both forms of the identifier. An unknown form is null.
pub(super) fn json_of_names(names: &Names) -> Value {
    json!({
        "rep": names.rep().map(ToString::to_string),
        "ibip": names.ibip().map(ToString::to_string),
    })
}

pub(super) fn json_of_files(names: &Names, files: &[PublicFile]) -> Vec<Value> {
    let file = |file: &PublicFile| {
        json!({
            "path": shown(&file.path),
            "url": file_url(names, &file.path),
            "size": file.length,
            "changed_at": second(&file.changed),
        })
    };
    files.iter().map(file).collect()
}

/// The JSON of an error page.
pub(super) fn json_of_none(status: StatusCode, title: &str) -> Value {
    json!({ "status": status.as_u16(), "error": title })
}
