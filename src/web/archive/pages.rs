//! Pages for people, and the same content as JSON for programs.
//!
//! A page needs no script, and loads nothing from elsewhere. Names and metadata are always text, never markup.

mod claims;
mod files;
mod home;
mod info;
mod landing;
mod level;
pub(crate) mod preview;
mod search;
mod signposts;
mod view;
mod words;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use maud::{Markup, html};
use serde_json::json;

use self::view::ItemView;
use self::words::{ArchiveWords, BOTH};
use super::{Site, failure};
use crate::archive::store::Item;
use crate::formats::citation::{CitationError, cite};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::{Names, State};
use crate::http::server::answer;
use crate::http::server::negotiation::{self, CITATION, Negotiated, TURTLE};
use crate::http::server::page::accept::{self, Representation};
use crate::http::server::page::html::link;
use crate::http::server::page::{self, Page};
use ibi::Timestamp;

pub(super) use claims::KeptClaims;
pub(super) use files::file_list;
pub(super) use home::{Front, home, latest};
pub(super) use info::info;
pub(super) use level::level;
pub(super) use search::search;
pub(super) use signposts::add_signposts;
pub(super) use view::date_of;

/// The most files on an item's page.
const FILES_ON_A_PAGE: usize = 1000;

/// The forms in which most pages are available.
const PAGE: [Representation; 2] = [Representation::Html, Representation::Json];

/// Whether a request explicitly accepts HTML, as browsers do.
pub(super) fn is_for_people(request: &Parts) -> bool {
    accept::names(&request.headers, Representation::Html)
}

/// Whether a request explicitly accepts JSON but not HTML.
pub(super) fn is_for_programs(request: &Parts) -> bool {
    accept::names(&request.headers, Representation::Json) && !is_for_people(request)
}

/// An item's page.
pub(super) fn landing(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.url, BOTH, request, &PAGE);
    let view = match ItemView::of(site, item, FILES_ON_A_PAGE) {
        Ok(view) => view,
        Err(error) => return failure::of(&error),
    };
    let mut response = if page.form == Representation::Json {
        page.json(&view.json())
    } else {
        let name = item.names.preferred();
        let title = view.title.as_deref().unwrap_or(&name);
        let mut head = signposts::head(site, &view);
        if view.description.is_some() {
            head.push_str(&page::copying());
        }
        let preview = preview::section(site, item, &view, page.words);
        let closed = files::Closed::of(site, item);
        let main = landing::main(page.words, &view, closed.as_ref(), preview.as_ref());
        let mut response = page.html_with(title, &head, &main);
        if view.description.is_some() {
            page::allow_copying(&mut response);
        }
        response
    };
    signposts::add_to_page(site, &view, &mut response);
    response
}

/// The links of an item as a set.
pub(super) fn linkset(site: &Site, item: &Item) -> Response<Body> {
    match ItemView::of(site, item, FILES_ON_A_PAGE) {
        Ok(view) => signposts::linkset(site, &view),
        Err(error) => failure::of(&error),
    }
}

/// The description of an item in a format, from another record than its own if there is one.
pub(super) fn description(
    site: &Site,
    item: &Item,
    from: Option<&Names>,
    format: DescriptionFormat,
) -> Response<Body> {
    match site.public().document(item, from, format) {
        Ok(document) => {
            let kind = format.media_type();
            answer::fresh(answer::whole(StatusCode::OK, kind, document))
        }
        Err(error) => failure::of(&error),
    }
}

/// The answer that a request has negotiated of an item, under the media type that it names.
pub(super) fn negotiated(
    site: &Site,
    item: &Item,
    wanted: Negotiated,
    request: &Parts,
) -> Response<Body> {
    let (kind, response) = match wanted {
        Negotiated::Format(format, kind) if kind == negotiation::media_type(format) => {
            return description(site, item, None, format);
        }
        Negotiated::Format(format, kind) => (kind, description(site, item, None, format)),
        Negotiated::Turtle => {
            let response = match site.public().description(item, None) {
                Ok(description) => {
                    let document = description.to_turtle();
                    answer::fresh(answer::whole(StatusCode::OK, TURTLE, document))
                }
                Err(error) => failure::of(&error),
            };
            (TURTLE, response)
        }
        Negotiated::Citation => {
            let style = negotiation::citation_style(&request.headers);
            let response = citation(site, item, style.unwrap_or("apa"), request);
            (CITATION, response)
        }
    };
    if response.status() == StatusCode::OK {
        answer::of_type(response, kind)
    } else {
        response
    }
}

/// The citation of an item in a style, in the language of the reader.
pub(super) fn citation(site: &Site, item: &Item, style: &str, request: &Parts) -> Response<Body> {
    let description = match site.public().description(item, None) {
        Ok(description) => description,
        Err(error) => return failure::of(&error),
    };
    let words = accept::words(&request.headers, BOTH);
    match cite(&description, style, words.of_citations) {
        Ok(line) => {
            let kind = "text/plain; charset=utf-8";
            let whole = answer::whole(StatusCode::OK, kind, format!("{line}\n"));
            answer::by_language(answer::fresh(whole))
        }
        Err(error @ CitationError::NotCited { .. }) => {
            log::warn!("{}: {error}", item.names);
            answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
        }
        Err(error) => answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

/// The metadata of an item as a table.
pub(super) fn metadata(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.url, BOTH, request, &PAGE);
    let record = view::record(site, item).unwrap_or_default();
    if page.form == Representation::Json {
        let mut value = view::json_of_names(&item.names);
        value["oai_dc_url"] = json!(view::dublin_core_url(&item.names));
        let mut elements = json!({});
        for (element, text) in record.iter() {
            if let Some(values) = elements[element.name()].as_array_mut() {
                values.push(json!(text));
            } else {
                elements[element.name()] = json!([text]);
            }
        }
        value["dublin_core"] = elements;
        return page.json(&value);
    }
    let words = page.words;
    page.html(
        &format!("{}: {}", words.metadata, item.names.preferred()),
        &html! {
            p { (link(&view::landing_url(&item.names), words.back)) }
            table class="stacked named" {
                (heads(&[words.element, words.value]))
                tbody {
                    @for (element, value) in record.iter() {
                        tr {
                            th scope="row" { (words.of_element(element)) }
                            td { bdi { (value) } }
                        }
                    }
                }
            }
            p { (link(&view::dublin_core_url(&item.names), words.dublin_core)) }
        },
    )
}

/// The page of an item that was removed or withdrawn: 410.
pub(super) fn removed(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let mut page = Page::asked(&site.url, BOTH, request, &PAGE);
    page.status = StatusCode::GONE;
    let words = page.words;
    let withdrawn = item.life.withdrawn.as_ref();
    // One that was withdrawn and then removed is not there any more.
    let is_withdrawn = item.state != State::Deleted;
    let (title, sentence) = if is_withdrawn {
        (words.withdrawn_title, words.withdrawn_sentence)
    } else {
        (words.removed_title, words.removed_sentence)
    };
    let reason = withdrawn.map(|it| it.reason.as_str());
    let reason = reason.filter(|reason| !reason.is_empty());
    let citation = item.life.citation.as_ref();
    if page.form == Representation::Json {
        let mut value = view::json_of_none(page.status, title);
        if !is_withdrawn {
            value["state"] = json!(item.state.to_string());
        }
        value["removed_at"] = json!(item.removed_at.as_ref().map(view::second));
        value["withdrawn_at"] = json!(withdrawn.map(|it| view::second(&it.at)));
        value["reason"] = json!(reason);
        value["citation"] = json!(citation);
        for (name, form) in view::json_of_names(&item.names)
            .as_object()
            .into_iter()
            .flatten()
        {
            value[name] = form.clone();
        }
        return page.json(&value);
    }
    page.html(
        title,
        &html! {
            p { (sentence) }
            dl {
                @if let Some(citation) = citation {
                    (fact(words.citation, &html! { bdi { (citation) } }))
                }
                @if let Some(reason) = reason {
                    (fact(words.reason, &html! { bdi { (reason) } }))
                }
                (both_names(words, &item.names))
                @if let Some(withdrawn) = withdrawn {
                    (fact(words.withdrawn, &time(&withdrawn.at)))
                }
                @if let Some(removed) = &item.removed_at {
                    (fact(words.removed, &time(removed)))
                }
            }
        },
    )
}

/// The page in place of a file of an item whose files are withheld: 403. It is the same for each path, and a cache asks
/// again. None if they are not withheld.
pub(super) fn withheld(site: &Site, item: &Item, request: &Parts) -> Option<Response<Body>> {
    let until = site.archive.withheld_until(item)?;
    let mut page = Page::asked(&site.url, BOTH, request, &PAGE);
    page.status = StatusCode::FORBIDDEN;
    let words = page.words;
    let response = if page.form == Representation::Json {
        let mut value = view::json_of_none(page.status, words.withheld_title);
        value["available"] = json!(until.to_rfc3339());
        page.json(&value)
    } else {
        page.html(
            words.withheld_title,
            &html! {
                p { (words.withheld_until) " " (time(until)) "." }
                p { (link(&view::landing_url(&item.names), words.back)) }
            },
        )
    };
    Some(answer::fresh(response))
}

/// The page for an unknown name: 404.
pub(super) fn unknown(site: &Site, text: &str, request: &Parts) -> Response<Body> {
    let mut page = Page::asked(&site.url, BOTH, request, &PAGE);
    page.status = StatusCode::NOT_FOUND;
    let words = page.words;
    if page.form == Representation::Json {
        let mut value = view::json_of_none(page.status, words.unknown_title);
        value["name"] = json!(text);
        return page.json(&value);
    }
    page.html(
        words.unknown_title,
        &html! {
            p { (words.unknown_sentence) }
            p { code { (text) } }
        },
    )
}

/// A section of a page with a heading.
fn section(title: &str, content: &Markup) -> Markup {
    html! { section { h2 { (title) } (content) } }
}

/// An entry of a list of facts.
fn fact(name: &str, value: &Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

fn both_names(words: &ArchiveWords, names: &Names) -> Markup {
    html! {
        @if let Some(rep) = names.rep() {
            (fact(words.rep, &html! { code { (rep.to_string()) } }))
        }
        @if let Some(ibip) = names.ibip() {
            (fact(words.ibip, &html! { code { (ibip.to_string()) } }))
        }
    }
}

fn time(instant: &Timestamp) -> Markup {
    let second = view::second(instant);
    let text = second.replacen('T', " ", 1).replacen('Z', " UTC", 1);
    html! { time datetime=(second) { (text) } }
}

/// The head of a table.
fn heads(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}
