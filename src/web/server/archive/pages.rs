//! Pages for people, and the same content as JSON for their programs.
//!
//! They need no script and no network but their own answer. Whatever an item is called and whatever
//! its metadata say stays text.

mod told;
mod words;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{HeaderValue, LINK};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};

use self::told::{Other, Told};
use self::words::{BOTH, Words};
use super::{Site, act, failure};
use crate::archive::store::Item;
use crate::archive::tree::Looks;
use crate::archive::{ArchiveError, PublicFile, persistent_url};
use crate::formats::item::Names;
use crate::formats::query::{Query, encoded, percent_decoded_bytes};
use crate::web::server::page::Page;
use crate::web::server::page::accept::{self, Form};
use crate::web::server::page::html::{Html, shown};
use ibi::Timestamp;

/// How many files an item's page shows.
const FILES_ON_A_PAGE: usize = 1000;
/// How many files one part of the list holds; the next part is linked to.
const FILES_IN_A_PART: usize = 10_000;
/// The same for the list as lines of text, of which there are no pages to turn.
const FILES_IN_A_TEXT: usize = 100_000;
/// How many items the Archive's own page shows.
const LATEST_ITEMS: usize = 50;
/// Among how many those are looked for that are public.
const LOOKED_AT_FOR_LATEST: usize = 500;
/// How long what the Archive's own page tells is kept: to tell it, every item is counted.
const FRONT_KEPT: Duration = Duration::from_secs(5);

/// Both forms of most pages.
const PAGE: [Form; 2] = [Form::Html, Form::Json];

/// What the Archive's own page tells, and when it was found out.
#[derive(Debug, Default)]
pub(super) struct Front {
    told: Mutex<Option<(Instant, FrontTold)>>,
}

#[derive(Clone, Debug)]
struct FrontTold {
    items: u64,
    latest: Vec<(Names, Option<String>)>,
}

/// Whether a request names pages as what it accepts, as browsers do.
pub(super) fn is_for_people(request: &Parts) -> bool {
    accept::names(&request.headers, Form::Html)
}

/// Whether a request names JSON as what it accepts, and no pages.
pub(super) fn is_for_programs(request: &Parts) -> bool {
    accept::names(&request.headers, Form::Json) && !is_for_people(request)
}

/// An item's own page.
pub(super) fn landing(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.address, BOTH, request, &PAGE);
    let told = match Told::of(site, item, FILES_ON_A_PAGE) {
        Ok(told) => told,
        Err(error) => return failure::of(&error),
    };
    if page.form == Form::Json {
        return page.json(&told.json());
    }
    let words = page.words;
    let name = item.names.preferred();
    page.html(told.title.as_deref().unwrap_or(&name), |html| {
        if let Some(url) = &told.main_file {
            html.tag("p", &[], |html| html.link(url, words.main_file));
        }
        html.tag("dl", &[], |html| facts(html, words, &told));
        section(html, words.editions, |html| editions(html, words, &told));
        if !told.translations.is_empty() || told.translation_of.is_some() {
            section(html, words.translations, |html| {
                translations(html, words, &told);
            });
        }
        section(html, words.metadata, |html| {
            html.tag("ul", &[], |html| metadata_links(html, words, &told));
        });
        if !told.claims.is_empty() {
            section(html, words.claims, |html| claims(html, words, &told));
        }
        section(html, words.files, |html| {
            files(html, words, &item.names, &told.listing.files);
            html.tag("p", &[], |html| {
                if told.listing.has_more {
                    html.text(words.more_files);
                    html.text(" ");
                }
                html.link(&told::list_url(&item.names), words.all_files);
            });
        });
    })
}

fn section(html: &mut Html, title: &str, inside: impl FnOnce(&mut Html)) {
    html.tag("section", &[], |html| {
        html.line("h2", title);
        inside(html);
    });
}

fn fact(html: &mut Html, name: &str, value: impl FnOnce(&mut Html)) {
    html.line("dt", name);
    html.tag("dd", &[], value);
}

fn both_names(html: &mut Html, words: &Words, names: &Names) {
    if let Some(rep) = names.rep() {
        fact(html, words.rep, |html| html.line("code", &rep.to_string()));
    }
    if let Some(ibip) = names.ibip() {
        fact(html, words.ibip, |html| {
            html.line("code", &ibip.to_string());
        });
    }
}

fn facts(html: &mut Html, words: &Words, told: &Told) {
    both_names(html, words, &told.names);
    fact(html, words.persistent, |html| {
        let url = persistent_url(&told.names);
        html.link(&url, &url);
    });
    fact(html, words.state, |html| {
        html.text(words.of_state(told.state));
    });
    if let Some(language) = &told.language {
        fact(html, words.language, |html| html.text(language));
    }
    for (name, instant) in [
        (words.identified, &told.identified),
        (words.changed, &told.changed),
    ] {
        if let Some(instant) = instant {
            fact(html, name, |html| time(html, instant));
        }
    }
    fact(html, words.accesses, |html| {
        html.text(&told.accesses.to_string());
    });
}

fn time(html: &mut Html, instant: &Timestamp) {
    let second = told::second(instant);
    let text = second.replacen('T', " ", 1).replacen('Z', " UTC", 1);
    html.tag("time", &[("datetime", &second)], |html| html.text(&text));
}

fn other(html: &mut Html, words: &Words, other: &Other) {
    html.link(&other.url(), &other.names.preferred());
    if !other.is_held {
        html.text(" ");
        html.line("small", words.elsewhere);
    }
}

fn others(html: &mut Html, words: &Words, named: &[(&str, &Option<Other>)]) {
    let known = || {
        named
            .iter()
            .filter_map(|(name, found)| found.as_ref().map(|found| (name, found)))
    };
    // An empty list is not valid.
    if known().next().is_some() {
        html.tag("dl", &[], |html| {
            for (name, found) in known() {
                fact(html, name, |html| other(html, words, found));
            }
        });
    }
}

fn editions(html: &mut Html, words: &Words, told: &Told) {
    let is_last = |last: &Other| last.names.matches(&told.names);
    let named = [
        (words.next_edition, &told.next_edition),
        (words.previous_edition, &told.previous_edition),
    ];
    if told.last_edition.as_ref().is_some_and(is_last) {
        html.line("p", words.is_last_edition);
        others(html, words, &named);
    } else {
        let last = (words.last_edition, &told.last_edition);
        others(html, words, &[&[last], named.as_slice()].concat());
    }
}

fn translations(html: &mut Html, words: &Words, told: &Told) {
    html.tag("dl", &[], |html| {
        if let Some(source) = &told.translation_of {
            fact(html, words.translation_of, |html| {
                other(html, words, source);
            });
        }
        for (language, found) in &told.translations {
            fact(html, language, |html| other(html, words, found));
        }
    });
    if told.has_more_translations {
        html.line("p", words.more_translations);
    }
}

/// What others say of the item, with their words for it.
fn claims(html: &mut Html, words: &Words, told: &Told) {
    html.line("p", words.claims_sentence);
    html.tag("ul", &[], |html| {
        for (relation, found) in &told.claims {
            html.tag("li", &[], |html| {
                other(html, words, found);
                html.text(" ");
                html.line("code", relation);
            });
        }
    });
}

fn metadata_links(html: &mut Html, words: &Words, told: &Told) {
    let item = |html: &mut Html, name: &str, found: &Other| {
        html.tag("li", &[], |html| {
            html.text(name);
            html.text(": ");
            other(html, words, found);
        });
    };
    if let Some(metadata) = &told.metadata {
        item(html, words.metadata_item, metadata);
    }
    if let Some(described) = &told.metadata_of {
        item(html, words.metadata_of, described);
    }
    if told.has_metadata_text {
        html.tag("li", &[], |html| {
            html.link(&told::metadata_url(&told.names), words.metadata_table);
        });
    }
    html.tag("li", &[], |html| {
        html.link(&told::dublin_core_url(&told.names), words.dublin_core);
    });
}

fn files(html: &mut Html, words: &Words, names: &Names, files: &[PublicFile]) {
    if files.is_empty() {
        html.line("p", words.no_files);
        return;
    }
    html.tag("table", &[("class", "stacked")], |html| {
        heads(html, &[words.name, words.size, words.changed]);
        html.tag("tbody", &[], |html| {
            for file in files {
                html.tag("tr", &[], |html| {
                    html.tag("th", &[("scope", "row")], |html| {
                        html.link(&told::file_url(names, &file.path), &shown(&file.path));
                    });
                    html.tag("td", &[("class", "quiet")], |html| {
                        html.text(&words.bytes(file.length));
                    });
                    html.tag("td", &[("class", "quiet")], |html| {
                        time(html, &file.changed);
                    });
                });
            }
        });
    });
}

fn heads(html: &mut Html, names: &[&str]) {
    html.tag("thead", &[], |html| {
        html.tag("tr", &[], |html| {
            for name in names {
                html.tag("th", &[("scope", "col")], |html| html.text(name));
            }
        });
    });
}

/// The list of an item's files: as a page, as JSON, or one path a line. What one answer cannot hold
/// is had by following its link to the next.
pub(super) fn file_list(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(
        &site.address,
        BOTH,
        request,
        &[Form::Html, Form::Json, Form::Text],
    );
    let most = match page.form {
        Form::Text => FILES_IN_A_TEXT,
        Form::Html | Form::Json => FILES_IN_A_PART,
    };
    let after = after(request).unwrap_or_default();
    let listing = match site.archive.listing(item, &after, most, &act) {
        Ok(listing) => listing,
        Err(error) => return failure::of(&error),
    };
    let next = listing.files.last().filter(|_| listing.has_more);
    let next = next.map(|last| {
        let list = told::list_url(&item.names);
        format!("{list}&after={}", encoded(encoded(&last.path).as_bytes()))
    });
    let mut response = match page.form {
        Form::Json => {
            let mut value = told::json_of_names(&item.names);
            value["files"] = Value::from(told::json_of_files(&item.names, &listing.files));
            value["next_url"] = json!(next);
            page.json(&value)
        }
        Form::Text => {
            let lines = listing.files.iter().map(|file| line(&file.path));
            page.text(lines.collect())
        }
        Form::Html => {
            let words = page.words;
            let title = format!("{}: {}", words.files, item.names.preferred());
            page.html(&title, |html| {
                html.tag("p", &[], |html| {
                    html.link(&told::page_url(&item.names), words.back);
                });
                files(html, words, &item.names, &listing.files);
                if let Some(next) = &next {
                    html.tag("p", &[], |html| html.link(next, words.next_files));
                }
            })
        }
    };
    let link = next.map(|next| format!("<{next}>; rel=\"next\""));
    if let Some(Ok(link)) = link.map(HeaderValue::try_from) {
        response.headers_mut().insert(LINK, link);
    }
    response
}

/// The path after which a part of the list begins. It need not be UTF-8, as a value in a query must:
/// it is percent-encoded within its value.
fn after(request: &Parts) -> Option<Vec<u8>> {
    let query = Query::parse(request.uri.query()?).ok()?;
    percent_decoded_bytes(query.get("after")?)
}

/// A path on one line of UTF-8: a control character, `%`, and what is not UTF-8 are written `%hh`.
fn line(path: &[u8]) -> String {
    let mut line = String::new();
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0'..='\u{1f}' | '\u{7f}' | '%' => {
                    line.push_str(&format!("%{:02X}", u32::from(character)));
                }
                character => line.push(character),
            }
        }
        for byte in chunk.invalid() {
            line.push_str(&format!("%{byte:02X}"));
        }
    }
    line.push('\n');
    line
}

/// The metadata of an item as a table.
pub(super) fn metadata(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.address, BOTH, request, &PAGE);
    let record = told::record(site, item).unwrap_or_default();
    let name = item.names.preferred();
    if page.form == Form::Json {
        let mut value = told::json_of_names(&item.names);
        value["oai_dc_url"] = json!(told::dublin_core_url(&item.names));
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
    page.html(&format!("{}: {name}", words.metadata), |html| {
        html.tag("p", &[], |html| {
            html.link(&told::page_url(&item.names), words.back);
        });
        html.tag("table", &[("class", "stacked named")], |html| {
            heads(html, &[words.element, words.value]);
            html.tag("tbody", &[], |html| {
                for (element, value) in record.iter() {
                    html.tag("tr", &[], |html| {
                        html.tag("th", &[("scope", "row")], |html| {
                            html.text(words.of_element(element));
                        });
                        html.tag("td", &[], |html| {
                            html.tag("bdi", &[], |html| html.text(value));
                        });
                    });
                }
            });
        });
        html.tag("p", &[], |html| {
            html.link(&told::dublin_core_url(&item.names), words.dublin_core);
        });
    })
}

/// What is left of an item that was removed: 410.
pub(super) fn removed(site: &Site, item: &Item, request: &Parts) -> Response<Body> {
    let mut page = Page::asked(&site.address, BOTH, request, &PAGE);
    page.status = StatusCode::GONE;
    let words = page.words;
    if page.form == Form::Json {
        let mut value = told::json_of_none(page.status, words.removed_title);
        value["state"] = json!(item.state.to_string());
        value["removed_at"] = json!(item.removed_at.as_ref().map(told::second));
        for (name, form) in told::json_of_names(&item.names)
            .as_object()
            .into_iter()
            .flatten()
        {
            value[name] = form.clone();
        }
        return page.json(&value);
    }
    page.html(words.removed_title, |html| {
        html.line("p", words.removed_sentence);
        html.tag("dl", &[], |html| {
            both_names(html, words, &item.names);
            if let Some(removed) = &item.removed_at {
                fact(html, words.removed, |html| time(html, removed));
            }
        });
    })
}

/// What names nothing here: 404.
pub(super) fn unknown(site: &Site, text: &str, request: &Parts) -> Response<Body> {
    let mut page = Page::asked(&site.address, BOTH, request, &PAGE);
    page.status = StatusCode::NOT_FOUND;
    let words = page.words;
    if page.form == Form::Json {
        let mut value = told::json_of_none(page.status, words.unknown_title);
        value["name"] = json!(text);
        return page.json(&value);
    }
    page.html(words.unknown_title, |html| {
        html.line("p", words.unknown_sentence);
        html.tag("p", &[], |html| html.line("code", text));
    })
}

/// The Archive's own page.
pub(super) fn home(site: &Site, request: &Parts) -> Response<Body> {
    let page = Page::asked(&site.address, BOTH, request, &PAGE);
    let front = match front(site) {
        Ok(front) => front,
        Err(error) => return failure::fault(&error),
    };
    let facts = site.archive.facts();
    if page.form == Form::Json {
        let latest = front.latest.iter().map(|(names, title)| {
            let mut value = told::json_of_names(names);
            value["title"] = json!(title);
            value["identified_at"] = json!(told::date_of(names).as_ref().map(told::second));
            value["url"] = json!(told::page_url(names));
            value
        });
        return page.json(&json!({
            "host": facts.host,
            "address": site.address,
            "archive_service": told::json_of_names(&facts.service),
            "items": front.items,
            "latest": latest.collect::<Vec<Value>>(),
        }));
    }
    let words = page.words;
    page.html(&format!("{} {}", words.home_title, facts.host), |html| {
        html.line("p", words.home_sentence);
        html.tag("dl", &[], |html| {
            fact(html, words.address, |html| html.text(&site.address));
            fact(html, words.service, |html| {
                let names = &facts.service;
                html.link(&told::page_url(names), &names.preferred());
                if let Some(ibip) = names.ibip().filter(|_| names.rep().is_some()) {
                    html.text(" ");
                    html.line("code", &ibip.to_string());
                }
            });
            fact(html, words.items, |html| {
                html.text(&front.items.to_string());
            });
        });
        section(html, words.latest, |html| latest(html, words, &front));
    })
}

fn latest(html: &mut Html, words: &Words, front: &FrontTold) {
    if front.latest.is_empty() {
        html.line("p", words.no_items);
        return;
    }
    html.tag("table", &[("class", "stacked")], |html| {
        heads(html, &[words.item, words.identified]);
        html.tag("tbody", &[], |html| {
            for (names, title) in &front.latest {
                html.tag("tr", &[], |html| {
                    html.tag("th", &[("scope", "row")], |html| {
                        let name = names.preferred();
                        let text = title.as_deref().unwrap_or(&name);
                        html.link(&told::page_url(names), text);
                    });
                    html.tag("td", &[("class", "quiet")], |html| {
                        if let Some(date) = told::date_of(names) {
                            time(html, &date);
                        }
                    });
                });
            }
        });
    });
}

/// What the Archive's page tells, found out anew when it is old. Who comes meanwhile waits for it
/// rather than counting too.
fn front(site: &Site) -> Result<FrontTold, ArchiveError> {
    let mut told = site.front.told.lock();
    if let Some((since, front)) = told.as_ref()
        && since.elapsed() < FRONT_KEPT
    {
        let mut front = front.clone();
        // Who may read what can have changed since.
        let looks = Looks::default();
        let is_shown = |names: &Names| site.archive.is_shown(names, &act, &looks);
        front
            .latest
            .retain(|(names, _)| is_shown(names).unwrap_or(false));
        return Ok(front);
    }
    let store = site.archive.store();
    let prefix = site.archive.facts().rep_prefix()?.to_string();
    let mut latest = Vec::new();
    for item in store.latest_of_prefix(&prefix, LOOKED_AT_FOR_LATEST)? {
        if latest.len() == LATEST_ITEMS {
            break;
        }
        if site.archive.is_public(&item, &act, &Looks::default())? {
            let title = told::title(site, &item);
            latest.push((item.names, title));
        }
    }
    let front = FrontTold {
        latest,
        items: store.held_items()?,
    };
    *told = Some((Instant::now(), front.clone()));
    Ok(front)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_list() {
        assert_eq!(line("doc/São 100%.txt".as_bytes()), "doc/São 100%25.txt\n");
        assert_eq!(line(b"a\nb\xf3\x7f"), "a%0Ab%F3%7F\n");
    }
}
