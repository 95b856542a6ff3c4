//! Signposts for programs (signposting.org/FAIR): typed links in the header `Link` (RFC 8288) and as a set of
//! links (RFC 9264), and the same facts in the head of a page.

use axum::body::Body;
use axum::http::header::LINK;
use axum::http::{HeaderValue, Response, StatusCode};
use maud::html;
use serde_json::{Map, Value, json};

use super::view::{self, ItemView, OtherItem};
use crate::archive::store::Item;
use crate::formats::description::{
    AccessRight, Description, DescriptionFormat, licence_url, uri_in,
};
use crate::formats::item::Names;
use crate::formats::metadata::Element;
use crate::http::server::answer;
use crate::http::server::page::html::{data, finished};
use crate::web::archive::Site;

/// The most links of one relation in a header. The set of links has all.
const MOST_IN_HEADER: usize = 20;

/// The media type of a set of links.
const LINKSET: &str = "application/linkset+json";

/// A typed link.
struct TypedLink {
    relation: &'static str,
    target: String,
    media_type: Option<String>,
    language: Option<String>,
}

impl TypedLink {
    fn to(relation: &'static str, target: String) -> TypedLink {
        TypedLink {
            relation,
            target,
            media_type: None,
            language: None,
        }
    }

    fn of_type(self, media_type: &str) -> TypedLink {
        let whole = media_type.split(';').next().unwrap_or(media_type);
        TypedLink {
            media_type: Some(whole.to_owned()),
            ..self
        }
    }

    /// Adds it to the value of a header.
    fn write(&self, text: &mut String) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        let mut push = |parts: &[&str]| parts.iter().for_each(|part| text.push_str(part));
        push(&["<", &self.target, ">; rel=\"", self.relation, "\""]);
        for (name, value) in [("type", &self.media_type), ("hreflang", &self.language)] {
            if let Some(value) = value {
                push(&["; ", name, "=\"", value, "\""]);
            }
        }
    }

    fn json(&self) -> Value {
        let mut target = Map::new();
        target.insert("href".to_owned(), json!(self.target));
        if let Some(media_type) = &self.media_type {
            target.insert("type".to_owned(), json!(media_type));
        }
        if let Some(language) = &self.language {
            target.insert("hreflang".to_owned(), json!([language]));
        }
        Value::Object(target)
    }
}

/// The absolute form of a path of this service; other URLs stay as they are.
fn absolute(site: &Site, url: &str) -> String {
    match url.strip_prefix('/') {
        Some(path) => site.url().at(path),
        None => url.to_owned(),
    }
}

/// The links that need nothing but the names of an item.
fn of_names(site: &Site, names: &Names) -> Vec<TypedLink> {
    let persistent = site.archive.facts().persistent_url(names);
    // Every redirection has these links.
    let item = absolute(site, &view::page_url(names));
    let mut links = vec![
        TypedLink::to("cite-as", persistent),
        TypedLink::to("linkset", item.clone() + view::LINKSET_QUERY).of_type(LINKSET),
    ];
    for format in DescriptionFormat::ALL {
        let url = item.clone() + &view::description_modifier(format);
        links.push(TypedLink::to("describedby", url).of_type(format.media_type()));
    }
    links
}

/// All links of an item.
fn of_view(site: &Site, item: &ItemView) -> Vec<TypedLink> {
    let names = &item.names;
    let at = |url: &str| absolute(site, url);
    let mut links = of_names(site, names);
    links.push(TypedLink::to(
        "type",
        "https://schema.org/AboutPage".to_owned(),
    ));
    if let Some(description) = &item.description {
        let class = description.record.kind().schema_org();
        links.push(TypedLink::to("type", format!("https://schema.org/{class}")));
        let core = &description.record.core;
        let licences = core.values(Element::Rights).filter_map(licence_url);
        links.extend(licences.map(|uri| TypedLink::to("license", uri)));
        let authors = core.values(Element::Creator).filter_map(uri_in);
        links.extend(authors.map(|uri| TypedLink::to("author", uri)));
    }
    for file in &item.listing.files {
        let url = at(&view::file_url(names, &file.path));
        let kind = crate::web::archive::file::media_type(&file.path);
        links.push(TypedLink::to("item", url).of_type(kind));
    }
    if item.closed != Some(AccessRight::Embargoed) {
        let zip = at(&view::zip_url(names));
        links.push(TypedLink::to("item", zip).of_type("application/zip"));
    }
    // RFC 5829.
    let editions = [
        ("latest-version", &item.last_edition),
        ("successor-version", &item.next_edition),
        ("predecessor-version", &item.previous_edition),
    ];
    for (relation, other) in editions {
        let other = other.as_ref().map(|other| at(other.url()));
        links.extend(other.map(|url| TypedLink::to(relation, url)));
    }
    for (language, other) in &item.translations {
        links.push(TypedLink {
            language: Some(language.clone()),
            ..TypedLink::to("alternate", at(other.url()))
        });
    }
    let source = item.translation_of.as_ref().map(OtherItem::url);
    links.extend(source.map(|url| TypedLink::to("alternate", at(url))));
    links
}

fn set(links: &[TypedLink], response: &mut Response<Body>) {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut text = String::with_capacity(links.len() * 160);
    for link in links {
        let known = counts.iter().position(|(name, _)| *name == link.relation);
        let at = known.unwrap_or_else(|| {
            counts.push((link.relation, 0));
            counts.len() - 1
        });
        counts[at].1 += 1;
        if counts[at].1 <= MOST_IN_HEADER {
            link.write(&mut text);
        }
    }
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(LINK, value);
    }
}

/// Adds the signposts to the answer to a persistent name that leads to a file.
pub(in super::super) fn add_signposts(site: &Site, item: &Item, response: &mut Response<Body>) {
    let mut links = of_names(site, &item.names);
    let page = absolute(site, &view::landing_url(&item.names));
    links.push(TypedLink::to("collection", page).of_type("text/html"));
    set(&links, response);
}

/// Adds the signposts to an item's page.
pub(super) fn add_to_page(site: &Site, item: &ItemView, response: &mut Response<Body>) {
    set(&of_view(site, item), response);
}

/// The links of an item as a set.
pub(super) fn linkset(site: &Site, item: &ItemView) -> Response<Body> {
    let mut context = Map::new();
    let page = absolute(site, &view::landing_url(&item.names));
    context.insert("anchor".to_owned(), json!(page));
    for link in of_view(site, item) {
        let targets = context.entry(link.relation).or_insert_with(|| json!([]));
        if let Value::Array(targets) = targets {
            targets.push(link.json());
        }
    }
    let document = json!({ "linkset": [context] });
    answer::fresh(answer::whole(
        StatusCode::OK,
        LINKSET,
        format!("{document:#}\n"),
    ))
}

/// The elements of a page's head that describe its item: for search engines, Google Scholar and Zotero.
pub(super) fn head(site: &Site, item: &ItemView) -> String {
    let mut text = String::new();
    let mut element = |name: &str, pairs: &[(&str, &str)]| {
        text.push_str(&format!("<{name}"));
        for (attribute, value) in pairs {
            let value = finished(&html! { (value) });
            text.push_str(&format!(" {attribute}=\"{value}\""));
        }
        text.push_str(" />\n");
    };
    for link in of_names(site, &item.names) {
        let media_type = link.media_type.as_deref().unwrap_or_default();
        let pairs = [
            ("rel", link.relation),
            ("href", &link.target),
            ("type", media_type),
        ];
        let known = if media_type.is_empty() { 2 } else { 3 };
        element("link", &pairs[..known]);
    }
    let Some(description) = &item.description else {
        return text;
    };
    for (name, value) in citation(site, item, description) {
        element("meta", &[("name", name), ("content", &value)]);
    }
    let document = description.write(DescriptionFormat::JsonLd);
    text.push_str("<script type=\"application/ld+json\">");
    text.push_str(&data(&document));
    text.push_str("</script>\n");
    text
}

/// The tags of Google Scholar's inclusion guidelines.
fn citation(
    site: &Site,
    item: &ItemView,
    description: &Description,
) -> Vec<(&'static str, String)> {
    let record = &description.record;
    let core = &record.core;
    let mut tags: Vec<(&'static str, String)> = Vec::new();
    let title = item.title.clone().unwrap_or_else(|| item.names.preferred());
    tags.push(("citation_title", title));
    let authors = core.values(Element::Creator).map(str::to_owned);
    tags.extend(authors.map(|author| ("citation_author", author)));
    for (name, element) in [
        ("citation_publisher", Element::Publisher),
        ("citation_language", Element::Language),
        ("citation_keywords", Element::Subject),
    ] {
        tags.extend(core.values(element).map(|value| (name, value.to_owned())));
    }
    if let Some(date) = core.first(Element::Date) {
        let day = date.split('T').next().unwrap_or_default();
        tags.push(("citation_publication_date", day.replace('-', "/")));
    }
    for (name, field) in [
        ("citation_journal_title", "journal"),
        ("citation_conference_title", "booktitle"),
        ("citation_volume", "volume"),
        ("citation_issue", "number"),
        ("citation_isbn", "isbn"),
        ("citation_issn", "issn"),
        ("citation_doi", "doi"),
        ("citation_dissertation_institution", "school"),
        ("citation_technical_report_institution", "institution"),
    ] {
        let value = record.field(field).map(str::to_owned);
        tags.extend(value.map(|value| (name, value)));
    }
    let page = absolute(site, &view::landing_url(&item.names));
    tags.push(("citation_abstract_html_url", page));
    let main_file = item.main_file.as_deref();
    let main_file = main_file.filter(|url| url.to_ascii_lowercase().ends_with(".pdf"));
    tags.extend(main_file.map(|url| ("citation_pdf_url", absolute(site, url))));
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_in_a_text_is_one_that_can_stand_in_a_link() {
        for (text, expected) in [
            (
                "https://creativecommons.org/licenses/by/4.0/",
                Some("https://creativecommons.org/licenses/by/4.0/"),
            ),
            (
                "CC BY (http://example.org/x).",
                Some("http://example.org/x"),
            ),
            (
                "https://a.example/>; rel=\"evil\"",
                Some("https://a.example/"),
            ),
            ("https://a.example/x\r\ny", Some("https://a.example/x")),
            ("all rights reserved", None),
            ("https://", None),
        ] {
            assert_eq!(uri_in(text).as_deref(), expected, "{text}");
        }
    }
}
