//! The targets of paths below `dav/`: a level of reps, an IBIp prefix, an item with a path in it, or a text of an item.

use axum::http::StatusCode;

use crate::archive::store::Item;
use crate::archive::{ArchiveError, Related};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::{Names, State};
use crate::formats::tree_name::{LevelPath, split_request};
use crate::http::server::answer::{self, Refusal};
use crate::web::archive::Site;
use crate::web::archive::content::{failed, refuse};
use crate::web::archive::levels::visible;
use ibi::Rep;
use ibi::relation::{Language, Request, Step, from_portable};

/// The thing that a path names.
pub(super) enum Target {
    /// A level above the items: its path, as it was spelled.
    Level(LevelPath),
    /// An item, and a path in it, which is not examined.
    Content(Item, Vec<u8>),
    /// The metadata text of an item.
    Text(Item),
    /// The description of an item in a format, from another record if it has one.
    Description(Item, Option<Names>, DescriptionFormat),
}

/// Calls `answer` with what a path names. Returns also whether that depends on the languages of the reader; a refusal
/// says so itself.
pub(super) fn answered<T>(
    site: &Site,
    path: &[Vec<u8>],
    preferences: &[Language],
    answer: impl FnOnce(Target) -> Result<T, Refusal>,
) -> Result<(T, bool), Refusal> {
    let mut depends_on_reader = false;
    let target = find(site, path, preferences, &mut depends_on_reader);
    match target.and_then(answer) {
        Ok(answer) => Ok((answer, depends_on_reader)),
        Err(refusal) if depends_on_reader => Err(Box::new(answer::by_language(*refusal))),
        Err(refusal) => Err(refusal),
    }
}

fn find(
    site: &Site,
    path: &[Vec<u8>],
    preferences: &[Language],
    depends_on_reader: &mut bool,
) -> Result<Target, Refusal> {
    if path.is_empty() {
        return Ok(Target::Level(LevelPath::Root));
    }
    let texts = path.iter().take(4).map(|part| str::from_utf8(part).ok());
    let texts: Vec<&str> = texts.map_while(|text| text).collect();
    if path.len() == texts.len()
        && let Some(level) = LevelPath::parse(&texts.join("/"))
        && visible(site, &level, false).map_err(failed)?.0.is_some()
    {
        return Ok(Target::Level(level));
    }
    for (count, above) in [(4, 3), (2, 1)] {
        if let Some(names) = texts.get(..count)
            && let Some(found) = identified(site, &names[..above].join("/"), names[above], count)?
        {
            let below = path.get(count..).unwrap_or_default().join(&b'/');
            return related(site, found, below, preferences, depends_on_reader);
        }
    }
    Err(nothing())
}

pub(super) fn nothing() -> Refusal {
    refuse(
        StatusCode::NOT_FOUND,
        "nothing public has this path; it begins with the rep or the IBIp of an item",
    )
}

/// An item that is held here, and what is wanted of it.
type Identified = (Item, Option<Request>);

/// The item with a name, which may end with a modifier in one of its spellings.
fn identified(
    site: &Site,
    above: &str,
    name: &str,
    count: usize,
) -> Result<Option<Identified>, Refusal> {
    let plain = from_portable(name);
    let plain = plain.as_deref().unwrap_or(name);
    let Some((base, request)) = split_request(plain) else {
        return Ok(None);
    };
    let text = format!("{above}/{base}");
    if count == 4 && Rep::parse(&text).is_err() {
        return Ok(None);
    }
    let found = match site.archive.find_named(&text) {
        Ok(found) => found,
        Err(ArchiveError::Ibi(_)) => None,
        Err(error) => return Err(failed(error)),
    };
    let found = found.filter(|item| item.state != State::Deleted && item.life.withdrawn.is_none());
    Ok(found.map(|item| (item, request)))
}

/// A path in an item. All are refused while its files are withheld, if it is public.
fn content(site: &Site, item: Item, below: Vec<u8>) -> Result<Target, Refusal> {
    if let Some(until) = site.archive.withheld_until(&item)
        && !below.is_empty()
        && site.public().is_public(&item).map_err(failed)?
    {
        let until = until.to_rfc3339();
        let sentence = format!("the files of this item are withheld until {until}");
        return Err(refuse(StatusCode::FORBIDDEN, &sentence));
    }
    Ok(Target::Content(item, below))
}

/// The item itself, or that to which its modifier leads.
fn related(
    site: &Site,
    (item, request): Identified,
    below: Vec<u8>,
    preferences: &[Language],
    depends_on_reader: &mut bool,
) -> Result<Target, Refusal> {
    let modifier = match request {
        None => return content(site, item, below),
        Some(Request::Modifier(modifier)) => modifier,
        // The list is what a client shows of the item.
        Some(Request::FileList(_)) => return Err(nothing()),
    };
    *depends_on_reader = modifier.steps().contains(&Step::Translation(None));
    let is_public = |item: &Item| site.public().is_public(item);
    if !is_public(&item).map_err(failed)? {
        return Err(nothing());
    }
    let found = site
        .public()
        .resolve_shown(&item.names, &modifier, preferences);
    Ok(match found.map_err(failed)? {
        Some(Related::Item(names)) => {
            let held = site.archive.held(&names).map_err(failed)?;
            content(site, held.ok_or_else(nothing)?, below)?
        }
        Some(_) if !below.is_empty() => return Err(nothing()),
        Some(Related::Text(item)) => Target::Text(item),
        Some(Related::Description { item, from, format }) => {
            Target::Description(item, from, format)
        }
        None => return Err(nothing()),
    })
}
