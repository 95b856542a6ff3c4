//! The `dublin_core.xml` of an item in DSpace's Simple Archive Format: values with an element and a qualifier of the
//! metadata registry that every DSpace has.

use super::Description;
use super::xml::Xml;
use crate::metadata::{Element, GivenDate, License};

/// The document without its declaration.
pub(super) fn element(description: &Description) -> String {
    Xml::element("dublin_core schema=\"dc\"", |xml| {
        for (element, qualifier, value) in values(description) {
            let attributes = [("element", element.name()), ("qualifier", qualifier)];
            xml.text("dcvalue", &attributes, &value);
        }
    })
}

fn values(description: &Description) -> Vec<(Element, &'static str, String)> {
    let record = &description.record;
    let core = description.normal_core();
    let mut values: Vec<(Element, &'static str, String)> = Vec::new();
    let mut add =
        |element, qualifier, value: &str| values.push((element, qualifier, value.to_owned()));
    add(Element::Title, "none", description.title());
    for title in core.values(Element::Title).skip(1) {
        add(Element::Title, "alternative", title);
    }
    for name in core.values(Element::Creator) {
        add(Element::Contributor, "author", name);
    }
    for name in core.values(Element::Contributor) {
        let is_editor = record.values("editor").any(|editor| editor == name);
        add(
            Element::Contributor,
            if is_editor { "editor" } else { "other" },
            name,
        );
    }
    for genre in description.genres() {
        add(Element::Type, "none", genre);
    }
    for (index, date) in core.values(Element::Date).enumerate() {
        add(
            Element::Date,
            if index == 0 { "issued" } else { "none" },
            date,
        );
    }
    if let Some(text) = description.abstract_text() {
        add(Element::Description, "abstract", text);
    }
    for note in description.notes() {
        add(Element::Description, "none", note);
    }
    for funding in record.values("funding") {
        add(Element::Description, "sponsorship", funding);
    }
    for (element, qualifier) in [
        (Element::Subject, "none"),
        (Element::Publisher, "none"),
        (Element::Language, "iso"),
    ] {
        core.values(element)
            .for_each(|value| add(element, qualifier, value));
    }
    for format in core.values(Element::Format) {
        add(
            Element::Format,
            if format.contains('/') {
                "mimetype"
            } else {
                "extent"
            },
            format,
        );
    }
    let container = description.container();
    if let Some(container) = container {
        add(Element::Relation, "ispartof", container);
    }
    for source in core.values(Element::Source) {
        if Some(source) != container {
            add(Element::Source, "none", source);
        }
    }
    for identifier in core.values(Element::Identifier) {
        let scheme = |scheme| {
            Some((
                scheme,
                identifier
                    .strip_prefix("urn:")?
                    .strip_prefix(scheme)?
                    .strip_prefix(':')?,
            ))
        };
        let number = scheme("isbn").or_else(|| scheme("issn"));
        let qualifier = if identifier.contains("://") {
            "uri"
        } else {
            "other"
        };
        let (qualifier, identifier) = number.unwrap_or((qualifier, identifier));
        add(Element::Identifier, qualifier, identifier);
    }
    if let Some(series) = record.field("series") {
        add(Element::Relation, "ispartofseries", series);
    }
    for relation in core.values(Element::Relation) {
        add(Element::Relation, "uri", relation);
    }
    for coverage in core.values(Element::Coverage) {
        let is_time = GivenDate::read(coverage).is_some();
        add(
            Element::Coverage,
            if is_time { "temporal" } else { "spatial" },
            coverage,
        );
    }
    for rights in core.values(Element::Rights) {
        add(Element::Rights, "none", rights);
        if let Some(licence) = License::read(rights).filter(|licence| licence.url != rights) {
            add(Element::Rights, "uri", &licence.url);
        }
    }
    values
}
