//! The page of an item.

use maud::{Markup, html};

use super::files::Closed;
use super::view::{self, ItemView, OtherItem};
use super::words::ArchiveWords;
use super::{both_names, fact, files, section, time};
use crate::formats::citation::short_styles;
use crate::formats::description::DescriptionFormat;
use crate::formats::history::earlier::{as_it_was, tellers};
use crate::formats::metadata::{BibliographicRecord, DublinCore, Element, License};
use crate::http::server::page::html::link;

/// The most creators below a title, and the most values of an element on a page. The table of the metadata has all.
const MOST_CREATORS: usize = 20;
const MOST_VALUES: usize = 50;

/// The content below the title.
pub(super) fn main(
    words: &ArchiveWords,
    item: &ItemView,
    closed: Option<&Closed<'_>>,
    preview: Option<&Markup>,
) -> Markup {
    html! {
        @if let Some(description) = &item.description {
            (byline(&description.record))
        }
        @if !item.damaged.is_empty() {
            p class="note" { (words.damaged) " " (item.damaged.join(", ")) }
        }
        @if let Some(last) = &item.last_edition {
            @if !last.names.matches(&item.names) {
                p class="note" { (words.newer_edition) " " (other(words, last)) }
            }
        }
        @if let Some(url) = &item.main_file {
            p { strong { (link(url, words.main_file)) } }
        }
        @if let Some(description) = &item.description {
            (about(words, &description.record.core))
        }
        @if let Some(preview) = preview { (preview) }
        (section(words.files, &html! {
            (files::table(words, &item.names, &item.listing.files, closed))
            p {
                @if item.listing.has_more { (words.more_files) " " }
                (link(&view::list_url(&item.names), words.all_files))
            }
            @if !matches!(closed, Some(Closed::Until(_))) {
                p {
                    (link(&view::zip_url(&item.names), words.zip)) " "
                    (link(&view::bag_url(&item.names), words.bag))
                }
            }
        }))
        @if item.description.is_some() {
            (section(words.how_to_cite, &citations(words, item)))
        }
        (section(words.identity, &html! { dl { (facts(words, item)) } }))
        (section(words.editions, &editions(words, item)))
        @if !item.translations.is_empty() || item.translation_of.is_some() {
            (section(words.translations, &translations(words, item)))
        }
        (section(words.metadata, &html! { ul { (metadata_links(words, item)) } }))
        @if !item.removed.is_empty() {
            (section(words.removed_relations, &removed(words, item)))
        }
        @if !item.claims.is_empty() {
            (section(words.claims, &claims(words, item)))
        }
        @if !item.history.is_empty() {
            (section(words.history, &history(words, item)))
        }
    }
}

/// The creators, with links to their ORCID records, and the date, as below a title.
fn byline(record: &BibliographicRecord) -> Markup {
    let core = &record.core;
    let creators: Vec<&str> = core.values(Element::Creator).take(MOST_CREATORS).collect();
    let orcids = record.orcids();
    let date = core.first(Element::Date);
    let date = date.map(|date| date.split('T').next().unwrap_or_default());
    html! {
        p {
            @for (index, creator) in creators.iter().enumerate() {
                @if index > 0 { "; " }
                @match orcids.get(creator) {
                    Some(id) => (link(&format!("https://orcid.org/{id}"), creator)),
                    None => bdi { (creator) },
                }
            }
            " "
            @if let Some(date) = date { small { bdi { (date) } } }
        }
    }
}

/// The abstract, and what else a description says of the content.
fn about(words: &ArchiveWords, core: &DublinCore) -> Markup {
    let shown = [
        Element::Description,
        Element::Subject,
        Element::Publisher,
        Element::Type,
        Element::Rights,
    ];
    let shown = shown
        .into_iter()
        .filter(|element| core.first(*element).is_some());
    let shown: Vec<Element> = shown.collect();
    html! {
        @if !shown.is_empty() {
            (section(words.about, &html! {
                dl {
                    @for element in &shown {
                        dt { (words.of_element(*element)) }
                        @for value in core.values(*element).take(MOST_VALUES) {
                            dd {
                                @if *element == Element::Rights { (licence(value)) } @else { (linked(value)) }
                            }
                        }
                    }
                }
            }))
        }
    }
}

/// Shows what is said of rights; a link if that is a licence, whose URL is replaced by its identifier.
fn licence(text: &str) -> Markup {
    match License::read(text) {
        Some(License {
            spdx: Some(id),
            url,
        }) if text.contains("://") => link(&url, &id),
        Some(licence) => link(&licence.url, text),
        None => linked(text),
    }
}

/// A text; a link if all of it is a URL.
fn linked(text: &str) -> Markup {
    let is_url = ["https://", "http://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
        && text.chars().all(|sign| sign.is_ascii_graphic());
    if is_url {
        link(text, text)
    } else {
        html! { bdi { (text) } }
    }
}

/// Links to citations: each is computed when it is asked for, which takes longer than a page.
fn citations(words: &ArchiveWords, item: &ItemView) -> Markup {
    let formats = [
        (DescriptionFormat::Bibtex, "BibTeX"),
        (DescriptionFormat::Ris, "RIS"),
        (DescriptionFormat::Csl, "CSL-JSON"),
    ];
    html! {
        ul class="inline" {
            @for (style, name) in short_styles() {
                @let copied = format!("{}: {name}", words.copied);
                li {
                    (link(&view::citation_url(&item.names, style), &name)) " "
                    button type="button" hidden="hidden" data-copied=(copied) aria-label=(format!("{} {name}", words.copy)) {
                        (words.copy)
                    }
                }
            }
            @for (format, name) in formats {
                li { (link(&view::description_url(&item.names, format), name)) }
            }
        }
        output {}
    }
}

fn facts(words: &ArchiveWords, item: &ItemView) -> Markup {
    let url = &item.persistent_url;
    html! {
        (both_names(words, &item.names))
        (fact(words.persistent, &link(url, url)))
        (fact(words.state, &html! { (words.of_state(item.state)) }))
        @if let Some(language) = &item.language {
            (fact(words.language, &html! { (language) }))
        }
        @if let Some(instant) = &item.identified {
            (fact(words.identified, &time(instant)))
        }
        @if let Some(seal) = &item.sealed {
            // The page may be cached for longer than until then.
            @let word = if seal.digest.is_some() { words.sealed } else { words.sealed_from };
            (fact(word, &time(&seal.at)))
        }
        @if let Some(instant) = &item.changed {
            (fact(words.changed, &time(instant)))
        }
        (fact(words.accesses, &html! { (item.accesses) }))
    }
}

fn other(words: &ArchiveWords, other: &OtherItem) -> Markup {
    html! {
        (link(&other.page(), &other.text()))
        @if !other.is_held { " " small { (words.elsewhere) } }
    }
}

/// The editions in the order of time, each with the date in its identifier.
fn editions(words: &ArchiveWords, item: &ItemView) -> Markup {
    let is_last = |last: &OtherItem| last.names.matches(&item.names);
    if item.last_edition.as_ref().is_some_and(is_last)
        && item.earlier.is_empty()
        && item.later.is_empty()
    {
        return html! { p { (words.is_last_edition) } };
    }
    let day = item.identified.as_ref().map(view::second);
    let day = day.as_deref().and_then(|second| second.get(..10));
    html! {
        ol class="editions" {
            @for earlier in item.earlier.iter().rev() { (edition(words, earlier)) }
            li aria-current="true" {
                @if let Some(day) = day { (date(day)) " " }
                strong { (words.this_edition) }
                @if item.last_edition.as_ref().is_some_and(is_last) { " " (words.is_last_edition) }
            }
            @for later in &item.later { (edition(words, later)) }
        }
    }
}

fn edition(words: &ArchiveWords, found: &OtherItem) -> Markup {
    html! {
        li {
            @if let Some(day) = found.day() { (date(&day)) " " }
            (other(words, found))
        }
    }
}

fn date(day: &str) -> Markup {
    html! { time datetime=(day) { (day) } }
}

fn translations(words: &ArchiveWords, item: &ItemView) -> Markup {
    html! {
        dl {
            @if let Some(source) = &item.translation_of {
                (fact(words.translation_of, &other(words, source)))
            }
            @for (language, found) in &item.translations {
                (fact(language, &other(words, found)))
            }
        }
        @if item.has_more_translations { p { (words.more_translations) } }
    }
}

/// The relations to items that were removed or are withdrawn, whose pages say when.
fn removed(words: &ArchiveWords, item: &ItemView) -> Markup {
    html! {
        ul {
            @for (relation, found) in &item.removed {
                @let said = if relation.is_withdrawn { words.is_withdrawn } else { words.is_removed };
                li { (link(&found.page(), &found.text())) " " small { (said) } " " code { (relation.name) } }
            }
        }
    }
}

/// The claims of other items about this one, each with its relation.
fn claims(words: &ArchiveWords, item: &ItemView) -> Markup {
    html! {
        p { (words.claims_sentence) }
        ul {
            @for (relation, found) in &item.claims {
                li { (other(words, found)) " " code { (relation) } }
            }
        }
    }
}

/// The latest events, each with its date and what is said of it.
fn history(words: &ArchiveWords, item: &ItemView) -> Markup {
    html! {
        details {
            summary { (words.show_here) }
            ul {
                @for event in &item.history {
                    @let was = as_it_was(event);
                    li {
                        (time(&was.time)) " " (words.of_event(was))
                        @if !was.note.is_empty() { ": " bdi { (was.note) } }
                        @if let Some(tellers) = tellers(event) {
                            ", " (words.told_by) " " bdi { (tellers) }
                        }
                    }
                }
            }
            p {
                (link(&view::history_url(&item.names), words.all_events)) " "
                (link(&view::description_url(&item.names, DescriptionFormat::Premis), "PREMIS"))
            }
        }
    }
}

fn metadata_links(words: &ArchiveWords, item: &ItemView) -> Markup {
    html! {
        @if let Some(metadata) = &item.metadata {
            li { (words.metadata_item) ": " (other(words, metadata)) }
        }
        @if let Some(described) = &item.metadata_of {
            li { (words.metadata_of) ": " (other(words, described)) }
        }
        @if item.has_metadata_text {
            li { (link(&view::metadata_url(&item.names), words.metadata_table)) }
        }
        li { (link(&view::dublin_core_url(&item.names), words.dublin_core)) }
    }
}
