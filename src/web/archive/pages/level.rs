//! The list of the public items below a level of reps, such as `sid.inpe.br/banon/2001`.

use axum::body::Body;
use axum::http::Response;
use axum::http::request::Parts;
use maud::html;
use serde_json::{Value, json};

use super::words::BOTH;
use super::{time, unknown, view};
use crate::formats::item::Names;
use crate::http::server::page::Page;
use crate::http::server::page::accept::Representation;
use crate::http::server::page::html::link;
use crate::web::archive::{Site, failure};

/// The most items in the list.
const MOST_ITEMS: usize = 10_000;

/// The list of the items below a level. A level without public items is answered as an unknown name.
pub(in super::super) fn level(site: &Site, level: &str, request: &Parts) -> Response<Body> {
    let mut components = level.splitn(4, '/');
    let above: Vec<&str> = components.by_ref().take(3).collect();
    // The last component may be the beginning of a date.
    let date = components.next().unwrap_or_default();
    let begins = |names: &Names| {
        let date_of = |rep: &ibi::Rep| rep.suffix().rsplit_once('/').map(|it| it.1.to_owned());
        let known = names.rep().and_then(date_of).unwrap_or_default();
        date.is_empty() || known.starts_with(&format!("{date}."))
    };
    let items = match site.archive.store().items_below(&above.join("/")) {
        Ok(items) => items,
        Err(error) => return failure::fault(&error.into()),
    };
    let is_public = |names: &Names| site.public().is_shown(names);
    let names = items.into_iter().map(|item| item.names);
    let shown: Vec<Names> = names
        .filter(|names| begins(names) && is_public(names).unwrap_or(false))
        .take(MOST_ITEMS)
        .collect();
    if shown.is_empty() {
        return unknown(site, level, request);
    }
    let forms = [
        Representation::Html,
        Representation::Json,
        Representation::Text,
    ];
    let page = Page::asked(&site.url, BOTH, request, &forms);
    match page.form {
        Representation::Json => {
            let items = shown.iter().map(|names| {
                let mut value = view::json_of_names(names);
                value["url"] = json!(view::page_url(names));
                value
            });
            page.json(&json!({"level": level, "items": items.collect::<Vec<Value>>()}))
        }
        Representation::Text => {
            page.text(shown.iter().map(|names| names.preferred() + "\n").collect())
        }
        Representation::Html => page.html(
            &format!("{}: {level}", page.words.items),
            &html! {
                ul {
                    @for names in &shown {
                        li {
                            (link(&view::landing_url(names), &names.preferred()))
                            @if let Some(date) = view::date_of(names) { " " (time(&date)) }
                        }
                    }
                }
            },
        ),
    }
}
