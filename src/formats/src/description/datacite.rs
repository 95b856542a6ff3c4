//! DataCite 4, for registration agencies and data catalogues, in XML and in JSON.
//!
//! A mandatory value that the record lacks is `:unav`, unavailable, as the standard says. The identifier is the DOI
//! if the item has one, and else its persistent URL.

mod json;
mod xml;

use std::borrow::Cow;

use super::{DescribedRelation, Description, PersonName};
use crate::metadata::{Element, License};

pub(super) use json::write as json;
pub(super) use xml::element;

/// The namespace of DataCite 4.
pub const DATACITE: &str = "http://datacite.org/schema/kernel-4";
/// The URL of its schema.
pub const DATACITE_SCHEMA: &str = "https://schema.datacite.org/meta/kernel-4/metadata.xsd";

/// The value of what is mandatory and not known.
const UNAVAILABLE: &str = ":unav";
/// The beginning of the URLs of ORCID iDs.
pub(super) const ORCID: &str = "https://orcid.org/";
/// The creator that stands for those who are not named.
const OTHERS: &str = ":etal";

/// The properties of an item, in the order of the standard. A property is a value and the word that qualifies it.
struct Resource<'a> {
    /// DOI, or URL.
    identifier: (&'a str, &'static str),
    /// Each with an ORCID iD.
    creators: Vec<(PersonName<'a>, Option<String>)>,
    /// The second word is that of all but the first title.
    titles: Vec<(&'a str, Option<&'static str>)>,
    publisher: &'a str,
    year: i32,
    /// The resource type in free text, and the general type.
    kind: (&'a str, &'static str),
    subjects: Vec<&'a str>,
    contributors: Vec<(PersonName<'a>, &'static str)>,
    /// The date of issue, and that from which the files are open.
    dates: Vec<(Cow<'a, str>, &'static str)>,
    language: Option<&'a str>,
    alternates: Vec<(&'a str, &'static str)>,
    related: Vec<(&'a str, &'static str)>,
    formats: Vec<&'a str>,
    version: Option<&'a str>,
    /// Each with its licence. What the public may read has the URL of its term alone.
    rights: Vec<(&'a str, Option<License>)>,
    descriptions: Vec<(&'a str, &'static str)>,
    /// Funders, each with the number of the award.
    funding: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> Resource<'a> {
    fn of(description: &'a Description) -> Resource<'a> {
        let core = &description.record.core;
        let (url, doi) = (&*description.url, description.doi());
        let orcids = description.record.orcids();
        let with_id = |name: PersonName<'a>| (name, orcids.get(name.whole).cloned());
        let mut creators: Vec<_> = description.creators().map(with_id).collect();
        if creators.is_empty() {
            creators.push((PersonName::of(UNAVAILABLE), None));
        } else if description.has_others() {
            creators.push((PersonName::of(OTHERS), None));
        }
        let others = core.values(Element::Title).skip(1);
        let others = others.map(|title| (title, Some("AlternativeTitle")));
        // A date that is not understood is not that of today.
        let year = match (description.date(), description.first(Element::Date)) {
            (Some(date), _) => date.year().max(0),
            (None, Some(_)) => 0,
            (None, None) => i32::from(description.made_on.0),
        };
        let kind = description.kind();
        let dcmi = kind.dcmi();
        let mut types = core.values(Element::Type);
        let editors: Vec<PersonName<'_>> = description.named("editor").collect();
        let contributors = core.values(Element::Contributor).map(PersonName::of);
        let mut alternates = vec![(&*description.ibi, "IBI")];
        alternates.extend(doi.map(|_| (url, "URL")));
        let abstracts = description.abstract_text().into_iter();
        let abstracts = abstracts.map(|text| (text, "Abstract"));
        let notes = description.notes().into_iter().map(|text| (text, "Other"));
        let access = description.access.and_then(|right| {
            let (url, spdx) = (right.term()?.to_owned(), None);
            Some((right.label(), Some(License { spdx, url })))
        });
        let issued = description.iso_date().into_iter();
        let issued = issued.map(|date| (date, "Issued"));
        let available = description.available.iter();
        let available = available.map(|day| (Cow::from(day), "Available"));
        Resource {
            identifier: doi.map_or((url, "URL"), |doi| (doi, "DOI")),
            creators,
            titles: std::iter::once((description.title(), None))
                .chain(others)
                .collect(),
            publisher: description.publisher().unwrap_or(UNAVAILABLE),
            year,
            kind: (
                types.find(|value| *value != dcmi).unwrap_or(kind.bibtex()),
                kind.datacite(),
            ),
            subjects: core.values(Element::Subject).collect(),
            contributors: contributors
                .map(|name| {
                    let is_editor = editors.contains(&name);
                    (name, if is_editor { "Editor" } else { "Other" })
                })
                .collect(),
            dates: issued.chain(available).collect(),
            language: core
                .first(Element::Language)
                .filter(|text| is_language(text)),
            alternates,
            related: description
                .related
                .iter()
                .map(|(relation, url)| (&**url, word(*relation)))
                .collect(),
            formats: core.values(Element::Format).collect(),
            version: description.record.field("version"),
            rights: core
                .values(Element::Rights)
                .map(|text| (text, License::read(text)))
                .chain(access)
                .collect(),
            descriptions: abstracts.chain(notes).collect(),
            funding: description.record.funding().collect(),
        }
    }
}

pub(super) fn word(relation: DescribedRelation) -> &'static str {
    match relation {
        DescribedRelation::LaterEdition => "IsPreviousVersionOf",
        DescribedRelation::EarlierEdition => "IsNewVersionOf",
        DescribedRelation::Translation => "IsVariantFormOf",
    }
}

/// Whether a name is of a person or of an organization. None if it is not known.
fn name_type(name: &PersonName<'_>) -> Option<&'static str> {
    match name.family {
        _ if [UNAVAILABLE, OTHERS].contains(&name.whole) => None,
        Some(_) => Some("Personal"),
        None => Some("Organizational"),
    }
}

/// Whether a text has the form of a language tag.
pub(super) fn is_language(text: &str) -> bool {
    let is_word = |word: &str, least: usize| {
        (least..=8).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let mut words = text.split('-');
    let first = words.next().unwrap_or_default();
    let is_alphabetic = first.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word(first, 2) && is_alphabetic && words.all(|word| is_word(word, 1))
}
