//! The item or metadata to which a modifier leads, held here or elsewhere.

use axum::http::StatusCode;
use axum::http::request::Parts;

use super::item::{ContentRequest, of_item, present};
use super::reply::{ContentReply, failed, redirect, refuse};
use crate::archive::Related;
use crate::archive::store::Item;
use crate::formats::base_url::BaseUrl;
use crate::formats::item::Names;
use crate::formats::query::{encoded, with_pairs};
use crate::http::server::answer::Refusal;
use crate::web::archive::{Site, pages};
use ibi::relation::{Language, Modifier, Step};

/// An item, and the modifier that leads to a related one.
pub(super) struct Modified {
    pub(super) item: Item,
    pub(super) modifier: Modifier,
    pub(super) preferences: Vec<Language>,
}

/// The item or metadata to which a modifier leads.
pub(super) fn of_related(
    site: &Site,
    modified: &Modified,
    wanted: &ContentRequest,
    request: &Parts,
) -> Result<ContentReply, Refusal> {
    let Modified {
        item,
        modifier,
        preferences,
    } = modified;
    let related = site
        .public()
        .resolve_shown(&item.names, modifier, preferences)
        .map_err(failed)?;
    match related {
        Some(Related::Item(names)) => match site.archive.store().find_by_names(&names) {
            Ok(Some(item)) => of_item(
                site,
                present(site, Some(item), &names.preferred(), request)?,
                wanted,
                request,
            ),
            Ok(None) => elsewhere(site, modified, wanted),
            Err(error) => Err(failed(error.into())),
        },
        Some(Related::Text(item)) => {
            wanted.refuse_paths()?;
            wanted.refuse_copies(&item)?;
            if pages::is_for_people(request) || pages::is_for_programs(request) {
                return Ok(ContentReply::Answer(pages::metadata(site, &item, request)));
            }
            let found = site.public().open_metadata_text(&item);
            Ok(ContentReply::Text(found.map_err(failed)?))
        }
        Some(Related::Description { item, from, format }) => {
            wanted.refuse_paths()?;
            wanted.refuse_copies(&item)?;
            let root = site.public().open_content(&item, b"");
            root.map_err(failed)?;
            let document = pages::description(site, &item, from.as_ref(), format);
            Ok(ContentReply::Answer(document))
        }
        None => elsewhere(site, modified, wanted),
    }
}

/// Redirects to the persistent URL of the first item on the way that is not held here.
fn elsewhere(
    site: &Site,
    modified: &Modified,
    wanted: &ContentRequest,
) -> Result<ContentReply, Refusal> {
    let steps = modified.modifier.steps();
    for count in 1..=steps.len() {
        let (taken, left) = steps.split_at(count);
        let Some(way) = Modifier::from_steps(taken.to_vec()) else {
            continue;
        };
        let met = site
            .public()
            .resolve_shown(&modified.item.names, &way, &modified.preferences);
        let Some(Related::Item(names)) = met.map_err(failed)? else {
            continue;
        };
        if site.archive.held(&names).map_err(failed)?.is_some() {
            continue;
        }
        // This Archive does not know whether that edition has a successor.
        let mut rest = left.to_vec();
        if taken.last() == Some(&Step::LastEdition) {
            rest.insert(0, Step::LastEdition);
        }
        let signs = Modifier::from_steps(rest).map(|rest| rest.to_string());
        let Some(resolver) = &site.archive.facts().resolver else {
            let sentence = format!(
                "{} is held by another Archive, and this one names no resolver that finds it",
                names.preferred()
            );
            return Err(refuse(StatusCode::NOT_FOUND, &sentence));
        };
        return Ok(ContentReply::Answer(redirect(&onward(
            resolver,
            &names,
            &signs.unwrap_or_default(),
            wanted,
        ))));
    }
    let sentence = format!(
        "{} has no '{}' that this Archive knows",
        modified.item.names.preferred(),
        modified.modifier
    );
    Err(refuse(StatusCode::NOT_FOUND, &sentence))
}

/// The persistent URL of what is wanted of an item that is held elsewhere, with the resolver that finds it.
fn onward(resolver: &BaseUrl, names: &Names, signs: &str, wanted: &ContentRequest) -> String {
    let name = match names.ibip() {
        Some(ibip) => ibip.to_string(),
        None => names.preferred(),
    };
    let mut url = resolver.at(&if wanted.is_zip {
        format!("archive.cgi/{name}{signs}")
    } else {
        format!("{name}{signs}")
    });
    if !wanted.below.is_empty() {
        url.push_str(&format!("/{}", encoded(&wanted.below)));
    }
    let pairs = [
        (wanted.is_list, "ibiurl.verblist=GetFileList"),
        (wanted.is_original, "ibiurl.requireditemstatus=Original"),
    ];
    let pairs: Vec<&str> = pairs
        .into_iter()
        .filter_map(|(is_wanted, pair)| is_wanted.then_some(pair))
        .collect();
    let url = if pairs.is_empty() {
        url
    } else {
        format!("{url}?{}", pairs.join("&"))
    };
    with_pairs(url, &wanted.query)
}
