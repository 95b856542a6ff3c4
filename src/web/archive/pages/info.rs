//! The inflection `?info` of ARKs: who, what, when and where an item is, and what the Archive promises of its
//! identifier, as an Electronic Resource Citation (Kunze, "A Metadata Kernel for Electronic Permanence", 2001) in ANVL.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::view::{date_of, record, second};
use crate::archive::store::Item;
use crate::formats::metadata::Element;
use crate::http::server::answer;
use crate::web::archive::Site;

/// The word for a value that is not known.
const UNAVAILABLE: &str = "(:unav)";
/// The promise of every Archive, by the documents.
const COMMITMENT: &str = "The identifier is never given to another item. If the item is removed from this Archive, its \
     name and the date of the removal are kept.";

/// The record of an item.
pub(in super::super) fn info(site: &Site, item: &Item) -> Response<Body> {
    let core = record(site, item).unwrap_or_default();
    let creators: Vec<&str> = core.values(Element::Creator).collect();
    let identified = date_of(&item.names).map(|date| second(&date));
    let when = core.first(Element::Date).map(str::to_owned).or(identified);
    let facts = site.archive.facts();
    let lines = [
        ("erc", None),
        ("who", Some(creators.join("; "))),
        ("what", core.first(Element::Title).map(str::to_owned)),
        ("when", when),
        ("where", Some(facts.persistent_url(&item.names))),
        ("erc-support", None),
        ("who", Some(facts.host.clone())),
        (
            "what",
            Some(facts.commitment.clone().unwrap_or(COMMITMENT.to_owned())),
        ),
        ("where", Some(site.url.at(""))),
    ];
    let mut text = String::new();
    for (label, value) in lines {
        if label.starts_with("erc") {
            text.push_str(&format!("{label}:\n"));
        } else {
            text.push_str(&format!("{label}: {}\n", one_line(value)));
        }
    }
    let kind = "text/plain; charset=utf-8";
    answer::fresh(answer::whole(StatusCode::OK, kind, text))
}

/// A value, which ends with its line.
fn one_line(value: Option<String>) -> String {
    let value = value.unwrap_or_default();
    let words: Vec<&str> = value
        .split(|sign: char| sign.is_whitespace() || sign.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        UNAVAILABLE.to_owned()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line() {
        let of = |text: &str| one_line(Some(text.to_owned()));
        assert_eq!(of("a\nwhere: b\u{1b}[0m  c"), "a where: b [0m c");
        assert_eq!(of(" \n"), UNAVAILABLE);
        assert_eq!(one_line(None), UNAVAILABLE);
    }
}
