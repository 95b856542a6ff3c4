//! MODS 3.8, the Metadata Object Description Schema of the Library of Congress.

use super::datacite::{ORCID, is_language};
use super::xml::{XSI, Xml};
use super::{DescribedRelation, Description, PersonName};
use crate::metadata::{Element, GivenDate, License, RecordKind};

/// The namespace of MODS 3.
pub(super) const MODS: &str = "http://www.loc.gov/mods/v3";
/// The URL of its schema.
pub(super) const MODS_SCHEMA: &str = "http://www.loc.gov/standards/mods/v3/mods-3-8.xsd";

/// The document without its declaration.
pub(super) fn element(description: &Description) -> String {
    let tag = format!(
        "mods xmlns=\"{MODS}\" version=\"3.8\"\n    xmlns:xlink=\"http://www.w3.org/1999/xlink\"\n    \
         xmlns:xsi=\"{XSI}\"\n    xsi:schemaLocation=\"{MODS} {MODS_SCHEMA}\""
    );
    Xml::element(&tag, |xml| {
        let core = &description.record.core;
        title(xml, "titleInfo", Some(description.title()));
        for other in core.values(Element::Title).skip(1) {
            title(xml, "titleInfo type=\"alternative\"", Some(other));
        }
        names(xml, description);
        resource(xml, description);
        origin(xml, description);
        for language in core.values(Element::Language) {
            let code = [("type", "code"), ("authority", "rfc5646")];
            let kind = if is_language(language) {
                &code[..]
            } else {
                &[("type", "text")]
            };
            xml.group("language", |xml| xml.text("languageTerm", kind, language));
        }
        // A format is a media type, or words such as "12 p."
        let (types, extents): (Vec<&str>, Vec<&str>) = core
            .values(Element::Format)
            .partition(|format| format.contains('/'));
        xml.group("physicalDescription", |xml| {
            xml.texts("internetMediaType", types);
            xml.texts("extent", extents);
        });
        xml.texts("abstract", description.abstract_text());
        notes(xml, description);
        for subject in core.values(Element::Subject) {
            xml.group("subject", |xml| xml.text("topic", &[], subject));
        }
        for coverage in core.values(Element::Coverage) {
            let is_time = GivenDate::read(coverage).is_some();
            let name = if is_time { "temporal" } else { "geographic" };
            xml.group("subject", |xml| xml.text(name, &[], coverage));
        }
        related(xml, description);
        identifiers(xml, description);
        for rights in core.values(Element::Rights) {
            let url = License::read(rights).map(|licence| licence.url);
            let link = url
                .as_deref()
                .map(|url| [("type", "use and reproduction"), ("xlink:href", url)]);
            let attributes = link.as_ref().map_or(&[][..], |link| &link[..]);
            xml.text("accessCondition", attributes, rights);
        }
    })
}

fn title(xml: &mut Xml, tag: &str, title: Option<&str>) {
    xml.group(tag, |xml| xml.texts("title", title));
}

fn names(xml: &mut Xml, description: &Description) {
    let orcids = description.record.orcids();
    for name in description.creators() {
        agent(xml, name, "author", orcids.get(name.whole));
    }
    if description.has_others() {
        xml.group("name", |xml| {
            xml.text("etal", &[], "et al.");
            role(xml, "author");
        });
    }
    let (editors, translators): (Vec<_>, Vec<_>) = (
        description.named("editor").collect(),
        description.named("translator").collect(),
    );
    for whole in description.record.core.values(Element::Contributor) {
        let name = PersonName::of(whole);
        let role = match &name {
            name if editors.contains(name) => "editor",
            name if translators.contains(name) => "translator",
            _ => "contributor",
        };
        agent(xml, name, role, None);
    }
}

fn role(xml: &mut Xml, role: &str) {
    let attributes = [("type", "text"), ("authority", "marcrelator")];
    xml.group("role", |xml| xml.text("roleTerm", &attributes, role));
}

fn agent(xml: &mut Xml, name: PersonName<'_>, of: &str, orcid: Option<&String>) {
    let is_person = name.family.is_some();
    let tag = if is_person {
        "name type=\"personal\""
    } else {
        "name"
    };
    xml.group(tag, |xml| {
        match name.family {
            None => xml.text("namePart", &[], name.whole),
            Some(family) => {
                xml.text("namePart", &[("type", "family")], family);
                xml.text("namePart", &[("type", "given")], name.given);
            }
        }
        if let Some(suffix) = name.suffix {
            xml.text("namePart", &[("type", "termsOfAddress")], suffix);
        }
        role(xml, of);
        if let Some(orcid) = orcid {
            xml.text(
                "nameIdentifier",
                &[("type", "orcid")],
                &format!("{ORCID}{orcid}"),
            );
        }
    });
}

/// The type of resource, one of the list of MODS, and the genres.
fn resource(xml: &mut Xml, description: &Description) {
    let kind = description.kind();
    let word = match kind {
        RecordKind::Dataset | RecordKind::Software | RecordKind::WebPage => "software, multimedia",
        RecordKind::Image => "still image",
        RecordKind::Map => "cartographic",
        RecordKind::Sound => "sound recording",
        RecordKind::MovingImage => "moving image",
        RecordKind::Collection | RecordKind::Other => "mixed material",
        _ => "text",
    };
    let collection = [("collection", "yes")];
    let is_collection = kind == RecordKind::Collection;
    xml.text(
        "typeOfResource",
        if is_collection { &collection } else { &[] },
        word,
    );
    let genres = description.genres();
    xml.texts("genre", genres.iter().copied());
}

fn origin(xml: &mut Xml, description: &Description) {
    let record = &description.record;
    xml.group("originInfo", |xml| {
        xml.group("place", |xml| {
            if let Some(place) = record.field("address") {
                xml.text("placeTerm", &[("type", "text")], place);
            }
        });
        xml.texts("publisher", record.core.values(Element::Publisher));
        if let Some(date) = description.normal_core().first(Element::Date) {
            let is_exact = description.date().is_some_and(|date| date.is_exact());
            let key = [("keyDate", "yes"), ("encoding", "edtf")];
            xml.text("dateIssued", &key[..if is_exact { 2 } else { 1 }], date);
        }
        xml.texts("edition", record.field("edition"));
    });
}

/// The notes, and what MODS has types of notes for.
fn notes(xml: &mut Xml, description: &Description) {
    let record = &description.record;
    xml.texts("note", description.notes());
    let versions = record.field("version").into_iter();
    let versions = versions.map(|version| ("version identification", version));
    let funding = record.values("funding").map(|funding| ("funding", funding));
    for (kind, text) in versions.chain(funding) {
        xml.text("note", &[("type", kind)], text);
    }
}

/// The journal or book in which it appeared, the series, and related items.
fn related(xml: &mut Xml, description: &Description) {
    let record = &description.record;
    xml.group("relatedItem type=\"host\"", |xml| {
        title(xml, "titleInfo", description.container());
        if let Some(issn) = description.number("issn", "urn:issn:") {
            xml.text("identifier", &[("type", "issn")], issn);
        }
        xml.group("part", |xml| {
            for (kind, field) in [("volume", "volume"), ("issue", "number")] {
                xml.group(&format!("detail type=\"{kind}\""), |xml| {
                    xml.texts("number", record.field(field));
                });
            }
            let (first, last) = description.pages();
            xml.group("extent unit=\"pages\"", |xml| {
                xml.texts("start", first);
                xml.texts("end", last);
            });
        });
    });
    xml.group("relatedItem type=\"series\"", |xml| {
        title(xml, "titleInfo", record.field("series"));
    });
    for (relation, url) in &description.related {
        let kind = match relation {
            DescribedRelation::LaterEdition => "succeeding",
            DescribedRelation::EarlierEdition => "preceding",
            DescribedRelation::Translation => "otherVersion",
        };
        xml.group(&format!("relatedItem type=\"{kind}\""), |xml| {
            xml.text("identifier", &[("type", "uri")], url);
        });
    }
}

fn identifiers(xml: &mut Xml, description: &Description) {
    xml.text("identifier", &[("type", "ibi")], &description.ibi);
    let numbers = [
        ("doi", description.doi()),
        ("isbn", description.number("isbn", "urn:isbn:")),
    ];
    for (scheme, number) in numbers {
        if let Some(number) = number {
            xml.text("identifier", &[("type", scheme)], number);
        }
    }
    xml.group("location", |xml| {
        xml.text("url", &[("usage", "primary")], &description.url);
    });
}
