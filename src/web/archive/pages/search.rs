//! `/search`: items by words of their descriptions, and the values by which items can be listed.

use axum::body::Body;
use axum::http::Response;
use axum::http::request::Parts;
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::words::{ArchiveWords, BOTH};
use super::{PAGE, section, view};
use crate::archive::store::{Item, SearchIndex};
use crate::archive::{ArchiveError, SearchIndexes};
use crate::formats::description::Description;
use crate::formats::metadata::Element;
use crate::formats::query::{FormFields, encoded};
use crate::formats::search::{SearchField, SearchQuery};
use crate::http::server::answer;
use crate::http::server::page::Page;
use crate::http::server::page::accept::Representation;
use crate::http::server::page::html::{finished, link};
use crate::web::archive::{Site, failure, searches};

/// The items on a page.
const ITEMS: usize = 20;
/// The values on a page.
const VALUES: usize = 500;
/// The last page that can be asked for.
const LAST_PAGE: usize = 500;
/// The seconds after which a reader tries again while the index is made.
const ASK_AGAIN: u16 = 5;

/// The fields by which items are listed, in the order of the words for them.
const LISTED: [SearchField; 6] = [
    SearchField::Creator,
    SearchField::Subject,
    SearchField::Year,
    SearchField::Type,
    SearchField::Language,
    SearchField::Collection,
];

/// The question of a request.
struct Asked {
    text: String,
    page: usize,
    by: Option<SearchField>,
    after: String,
}

impl Asked {
    /// Arguments that mean nothing are passed over.
    fn of(request: &Parts) -> Asked {
        let fields = FormFields::parse(request.uri.query().unwrap_or_default());
        let value = |name: &str| {
            let fields = fields.as_ref().ok()?;
            let found = fields.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_owned())
        };
        let page = value("page").and_then(|text| text.parse().ok());
        let by = value("by").and_then(|name| SearchField::from_name(&name));
        Asked {
            text: value("q").unwrap_or_default(),
            page: page.unwrap_or(0).min(LAST_PAGE),
            by: by.filter(|field| LISTED.contains(field)),
            after: value("after").unwrap_or_default(),
        }
    }
}

/// The page of a search, or of the values of a field.
pub(in super::super) fn search(site: &Site, request: &Parts) -> Response<Body> {
    let asked = Asked::of(request);
    let page = Page::asked(&site.url, BOTH, request, &PAGE);
    match answered(site, &page, &asked) {
        Ok(Some(response)) => response,
        Ok(None) => answer::busy("the items are being read; try again later", ASK_AGAIN),
        Err(error) => failure::fault(&error),
    }
}

fn answered(
    site: &Site,
    page: &Page<'_, ArchiveWords>,
    asked: &Asked,
) -> Result<Option<Response<Body>>, ArchiveError> {
    let wanted = SearchQuery::parse(&asked.text);
    if wanted.is_none() && asked.by.is_none() {
        return Ok(Some(empty(page, asked)));
    }
    let Some(indexes) = searches::up_to_date(site)? else {
        return Ok(None);
    };
    Ok(Some(match (wanted, asked.by) {
        (Some(wanted), _) => found(site, page, asked, indexes, &wanted)?,
        (None, Some(field)) => values(page, asked, &indexes.descriptions, field)?,
        (None, None) => empty(page, asked),
    }))
}

/// A form without an answer.
fn empty(page: &Page<'_, ArchiveWords>, asked: &Asked) -> Response<Body> {
    if page.form == Representation::Json {
        return page.json(&json!({"query": asked.text, "items": []}));
    }
    let words = page.words;
    page.html(
        words.search_title,
        &html! { (form(words, &asked.text)) (lists(words)) },
    )
}

/// The form of a search. An element without content is closed, which XML requires.
pub(super) fn form(words: &ArchiveWords, text: &str) -> Markup {
    let value = finished(&html! { (text) });
    html! {
        form action="/search" method="get" role="search" {
            label {
                (words.search_title) " "
                (PreEscaped(format!("<input type=\"search\" name=\"q\" value=\"{value}\" />")))
            }
            " "
            button type="submit" { (words.search) }
            p { small { (words.search_help) } }
        }
    }
}

/// Links to the lists of values.
fn lists(words: &ArchiveWords) -> Markup {
    let fields = LISTED.iter().zip(words.fields);
    section(
        words.browse,
        &html! {
            ul {
                @for (field, word) in fields {
                    li { (link(&format!("/search?by={}", field.name()), word)) }
                }
            }
        },
    )
}

fn described(site: &Site, item: &Item) -> Option<Description> {
    site.public().description(item, None).ok()
}

fn found(
    site: &Site,
    page: &Page<'_, ArchiveWords>,
    asked: &Asked,
    indexes: &SearchIndexes,
    wanted: &SearchQuery,
) -> Result<Response<Body>, ArchiveError> {
    let skipped = asked.page * ITEMS;
    let found = site.public().search(indexes, wanted, skipped, ITEMS)?;
    let is_last = !found.has_more || asked.page >= LAST_PAGE;
    let next = (!is_last).then(|| {
        let text = encoded(asked.text.as_bytes());
        format!("/search?q={text}&page={}", asked.page + 1)
    });
    let items = found.items.iter();
    let items: Vec<(&Item, Option<Description>)> =
        items.map(|item| (item, described(site, item))).collect();
    if page.form == Representation::Json {
        let items = items.iter().map(|(item, description)| {
            let mut value = view::json_of_names(&item.names);
            let core = description.as_ref().map(|it| &it.record.core);
            let all = |element| core.map(|core| core.values(element).collect::<Vec<_>>());
            value["title"] = json!(core.and_then(|core| core.first(Element::Title)));
            value["creators"] = json!(all(Element::Creator).unwrap_or_default());
            value["dates"] = json!(all(Element::Date).unwrap_or_default());
            value["url"] = json!(view::landing_url(&item.names));
            value
        });
        let items = items.collect::<Vec<Value>>();
        let answer = json!({"query": asked.text, "items": items, "next_url": next});
        return Ok(page.json(&answer));
    }
    let words = page.words;
    let title = format!("{}: {}", words.search, asked.text);
    let main = html! {
        (form(words, &asked.text))
        @if items.is_empty() { p { (words.none_found) } }
        ul {
            @for (item, description) in &items { (result(item, description.as_ref())) }
        }
        @if let Some(next) = &next { p { (link(next, words.next_page)) } }
    };
    Ok(page.html(&title, &main))
}

fn result(item: &Item, description: Option<&Description>) -> Markup {
    let name = item.names.preferred();
    let core = description.map(|description| &description.record.core);
    let title = core.and_then(|core| core.first(Element::Title));
    let creators: Vec<&str> = core.map_or(Vec::new(), |core| {
        core.values(Element::Creator).take(5).collect()
    });
    let date = core.and_then(|core| core.first(Element::Date));
    let date = date.map(|date| date.split('T').next().unwrap_or_default());
    html! {
        li {
            (link(&view::landing_url(&item.names), title.unwrap_or(&name)))
            " " small {
                @if !creators.is_empty() { bdi { (creators.join("; ")) } " " }
                @if let Some(date) = date { bdi { (date) } }
            }
        }
    }
}

fn values(
    page: &Page<'_, ArchiveWords>,
    asked: &Asked,
    index: &SearchIndex,
    field: SearchField,
) -> Result<Response<Body>, ArchiveError> {
    let mut values = index.values(field, &asked.after, VALUES + 1)?;
    let next = (values.len() > VALUES).then(|| {
        values.truncate(VALUES);
        let last = values.last().map_or("", |(text, _)| text);
        let after = encoded(last.as_bytes());
        format!("/search?by={}&after={after}", field.name())
    });
    let url = |text: &str| {
        let text = text.replace('"', " ");
        let text = format!("{}:\"{text}\"", field.name());
        format!("/search?q={}", encoded(text.as_bytes()))
    };
    if page.form == Representation::Json {
        let values = values
            .iter()
            .map(|(text, count)| json!({"value": text, "items": count, "url": url(text)}));
        let values = values.collect::<Vec<Value>>();
        let answer = json!({"by": field.name(), "values": values, "next_url": next});
        return Ok(page.json(&answer));
    }
    let words = page.words;
    let word = LISTED.iter().zip(words.fields);
    let word = word
        .filter(|(known, _)| **known == field)
        .map(|(_, word)| word);
    let title = format!("{} {}", words.browse, word.collect::<String>());
    let main = html! {
        (form(words, ""))
        ul {
            @for (text, count) in &values {
                li { (link(&url(text), text)) " " small { "(" (count) ")" } }
            }
        }
        @if let Some(next) = &next { p { (link(next, words.next_page)) } }
    };
    Ok(page.html(&title, &main))
}
