//! The home page of the Archive: its address, and the latest items.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Response;
use axum::http::request::Parts;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::words::{ArchiveWords, BOTH};
use super::{PAGE, fact, heads, section, time, view};
use crate::archive::ArchiveError;
use crate::formats::item::Names;
use crate::http::server::page::Page;
use crate::http::server::page::accept::Representation;
use crate::http::server::page::html::{finished, link};
use crate::web::archive::{Site, failure};

/// The most items on the page.
const LATEST_ITEMS: usize = 50;
/// The number of the latest items that are examined to find public ones.
const EXAMINED_FOR_LATEST: usize = 500;
/// The time that the content of the page is cached while the index does not change. Counting reads every item.
const KEPT_FOR: Duration = Duration::from_secs(5);
/// The same while it changes, as when a draft is published.
const KEPT_AT_LEAST: Duration = Duration::from_secs(1);

/// The cached content of the home page.
#[derive(Debug, Default)]
pub(in super::super) struct Front {
    kept: Mutex<Option<(Instant, Option<i64>, Overview)>>,
}

/// The content of the home page.
#[derive(Clone, Debug)]
struct Overview {
    /// The number of items held, without those that are withdrawn, and those of the latest that are not public.
    items: u64,
    /// The latest public items, each with its title.
    latest: Vec<(Names, Option<String>)>,
}

/// The home page of the Archive.
pub(in super::super) fn home(site: &Site, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.url, BOTH, request, &PAGE);
    let overview = match overview(site) {
        Ok(overview) => overview,
        Err(error) => return failure::fault(&error),
    };
    let facts = site.archive.facts();
    if page.form == Representation::Json {
        let latest = overview.latest.iter().map(|(names, title)| {
            let mut value = view::json_of_names(names);
            value["title"] = json!(title);
            value["identified_at"] = json!(view::date_of(names).as_ref().map(view::second));
            value["url"] = json!(view::page_url(names));
            value
        });
        return page.json(&json!({
            "host": facts.host,
            "address": site.url.address(),
            "url": site.url.to_string(),
            "archive_service": view::json_of_names(&facts.service),
            "items": overview.items,
            "latest": latest.collect::<Vec<Value>>(),
        }));
    }
    let words = page.words;
    page.html_with(
        &format!("{} {}", words.home_title, facts.host),
        &head(site),
        &html! {
            p { (words.home_sentence) }
            (super::search::form(words, ""))
            dl {
                (fact(words.address, &html! { (link(&site.url.at(""), &site.url.to_string())) }))
                (fact(words.service, &service(&facts.service)))
                (fact(words.items, &html! { (overview.items) }))
            }
            (section(words.latest, &table(words, &overview)))
        },
    )
}

/// The latest public items, each with its title.
pub(in super::super) fn latest(site: &Site) -> Result<Vec<(Names, Option<String>)>, ArchiveError> {
    Ok(overview(site)?.latest)
}

/// The links of the head of the home page: to the feed, and to how a browser searches.
fn head(site: &Site) -> String {
    let link = |relation: &str, kind: &str, path: &str| {
        let url = finished(&html! { (site.url.at(path)) });
        format!("<link rel=\"{relation}\" type=\"{kind}\" href=\"{url}\" />\n")
    };
    link("alternate", "application/atom+xml", "feed.atom")
        + &link(
            "search",
            "application/opensearchdescription+xml",
            "opensearch.xml",
        )
}

fn service(names: &Names) -> Markup {
    let ibip = names.ibip().filter(|_| names.rep().is_some());
    html! {
        (link(&view::page_url(names), &names.preferred()))
        @if let Some(ibip) = ibip { " " code { (ibip.to_string()) } }
    }
}

fn table(words: &ArchiveWords, overview: &Overview) -> Markup {
    if overview.latest.is_empty() {
        return html! { p { (words.no_items) } };
    }
    html! {
        table class="stacked" {
            (heads(&[words.item, words.identified]))
            tbody {
                @for (names, title) in &overview.latest {
                    tr {
                        th scope="row" {
                            (link(
                                &view::landing_url(names),
                                title.as_deref().unwrap_or(&names.preferred()),
                            ))
                        }
                        td class="quiet" {
                            @if let Some(date) = view::date_of(names) { (time(&date)) }
                        }
                    }
                }
            }
        }
    }
}

/// The content of the page. It is computed again when it is older than [`KEPT_FOR`]; concurrent requests wait
/// for the result instead of counting too.
fn overview(site: &Site) -> Result<Overview, ArchiveError> {
    let mut kept = site.front.kept.lock();
    let version = site.index_version();
    if let Some((since, read, overview)) = kept.as_ref()
        && since.elapsed()
            < if *read == version {
                KEPT_FOR
            } else {
                KEPT_AT_LEAST
            }
    {
        let mut overview = overview.clone();
        drop(kept);
        // Permissions may have changed since.
        let is_shown = |names: &Names| site.public().is_shown(names);
        overview
            .latest
            .retain(|(names, _)| is_shown(names).unwrap_or(false));
        return Ok(overview);
    }
    let store = site.archive.store();
    let prefix = site.archive.facts().rep_prefix()?.to_string();
    let (mut latest, mut hidden) = (Vec::new(), 0);
    for item in store.latest_of_prefix(&prefix, EXAMINED_FOR_LATEST)? {
        if !site.public().is_public(&item)? {
            // The index knows the number of those that are withdrawn.
            hidden += u64::from(item.life.withdrawn.is_none());
        } else if latest.len() < LATEST_ITEMS {
            let title = view::title(site, &item);
            latest.push((item.names, title));
        }
    }
    let counts = store.counts()?;
    let overview = Overview {
        latest,
        items: (counts.originals + counts.copies).saturating_sub(counts.withdrawn + hidden),
    };
    *kept = Some((Instant::now(), version, overview.clone()));
    Ok(overview)
}
