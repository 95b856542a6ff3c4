//! MODS 3, the Metadata Object Description Schema of the Library of Congress, and the `dublin_core.xml` of DSpace.

use super::person::inverted;
use super::xml::Element as Xml;
use super::{BibliographicRecord, Element, MetadataError, RecordKind};

impl BibliographicRecord {
    /// Parses the first record of a MODS document.
    pub fn from_mods(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        let document = Xml::document(bytes)?;
        document
            .find("mods")
            .map(mods)
            .ok_or(MetadataError::NoXmlRecord)
    }

    /// Parses the `dublin_core.xml` of DSpace's Simple Archive Format.
    pub fn from_dspace(bytes: &[u8]) -> Result<BibliographicRecord, MetadataError> {
        let document = Xml::document(bytes)?;
        document
            .find("dublin_core")
            .map(dspace)
            .ok_or(MetadataError::NoXmlRecord)
    }
}

fn mods(mods: &Xml) -> BibliographicRecord {
    let genres: Vec<String> = mods.all("genre").map(Xml::text).collect();
    let kind = genres.iter().find_map(|genre| RecordKind::from_word(genre));
    let kind = kind.or_else(|| kind_of_resource(&mods.text_of("typeOfResource")));
    let mut record = BibliographicRecord::of_kind(kind);
    // The title proper has no type.
    let (proper, others): (Vec<&Xml>, Vec<&Xml>) = mods
        .all("titleInfo")
        .partition(|title| title.attribute("type").is_empty());
    for title in proper.into_iter().chain(others) {
        record.core.push(Element::Title, title_in(title));
    }
    for name in mods.all("name") {
        let roles = name.members("role").map(|role| role.text().to_lowercase());
        let roles: Vec<String> = roles.collect();
        let is = |words: &[&str]| roles.iter().any(|role| words.contains(&&**role));
        let whole = name_in(name);
        if name.all("etal").next().is_some() {
            record.keep("others", "author");
            continue;
        }
        if roles.is_empty() || is(&["aut", "author", "cre", "creator", "dis", "dissertant"]) {
            let mut ids = name.all("nameIdentifier");
            let id = ids.find(|id| id.attribute("type").eq_ignore_ascii_case("orcid"));
            record.push_creator(&whole, id.map(Xml::text).as_deref());
        } else if is(&["edt", "editor"]) {
            record.push_contributor("editor", &whole);
        } else if is(&["trl", "translator"]) {
            record.push_contributor("translator", &whole);
        } else {
            record.core.push(Element::Contributor, whole);
        }
        for affiliation in name.all("affiliation") {
            record.keep("affiliation", &affiliation.text());
        }
    }
    for origin in mods.all("originInfo") {
        for publisher in origin.all("publisher") {
            record.push_publisher(&publisher.text());
        }
        record.keep("edition", &origin.text_of("edition"));
        for place in origin.members("place") {
            if place.attribute("type") != "code" {
                record.keep("address", &place.text());
            }
        }
    }
    record.core.push(Element::Date, date_in(mods));
    for genre in genres {
        record.core.push(Element::Type, genre);
    }
    for language in mods.members("language") {
        record.core.push(Element::Language, language.text());
    }
    for text in mods.all("abstract") {
        record.core.push(Element::Description, text.text());
    }
    for note in mods.all("note") {
        match note.attribute("type") {
            "funding" => record.keep("funding", &note.text()),
            "version identification" => record.keep("version", &note.text()),
            _ => record.push_note(&note.text()),
        }
    }
    for part in mods.members("subject") {
        match &*part.name {
            "geographic" | "temporal" | "hierarchicalGeographic" | "cartographics" => {
                record.core.push(Element::Coverage, part.text());
            }
            "titleInfo" => record.core.push(Element::Subject, title_in(part)),
            "name" => record.core.push(Element::Subject, name_in(part)),
            _ => record.core.push(Element::Subject, part.text()),
        }
    }
    for description in mods.all("physicalDescription").flat_map(Xml::children) {
        if ["internetMediaType", "extent", "form"].contains(&&*description.name) {
            record.core.push(Element::Format, description.text());
        }
    }
    for identifier in mods.all("identifier") {
        record.push_identifier(identifier.attribute("type"), &identifier.text());
    }
    for location in mods.members("location").filter(|it| it.name == "url") {
        record.push_identifier("url", &location.text());
    }
    for rights in mods.all("accessCondition") {
        let rights = match rights.text() {
            none if none.is_empty() => rights.attribute("href").to_owned(),
            text => text,
        };
        record.core.push(Element::Rights, rights);
    }
    for related in mods.all("relatedItem") {
        let title = related.all("titleInfo").next().map(title_in);
        match related.attribute("type") {
            "host" => {
                record.push_container(&title.unwrap_or_default());
                for identifier in related.all("identifier") {
                    if ["issn", "isbn"].contains(&identifier.attribute("type")) {
                        record.push_identifier(identifier.attribute("type"), &identifier.text());
                    }
                }
            }
            "series" => record.keep("series", &title.unwrap_or_default()),
            _ => {
                let url = related.all("identifier").next().map(Xml::text);
                record
                    .core
                    .push(Element::Relation, url.or(title).unwrap_or_default());
            }
        }
    }
    let host = mods
        .all("relatedItem")
        .filter(|related| related.attribute("type") == "host");
    for part in mods
        .all("part")
        .chain(host.flat_map(|host| host.all("part")))
    {
        for detail in part.all("detail") {
            let field = match detail.attribute("type") {
                "volume" => "volume",
                "issue" | "number" => "number",
                _ => continue,
            };
            record.keep(field, &detail.text_of("number"));
        }
        for extent in part
            .all("extent")
            .filter(|it| it.attribute("unit").starts_with("page"))
        {
            record.keep_pages(&extent.text_of("start"), &extent.text_of("end"));
        }
    }
    record
}

fn kind_of_resource(word: &str) -> Option<RecordKind> {
    let word = word.to_lowercase();
    let words = [
        ("cartographic", RecordKind::Map),
        ("sound", RecordKind::Sound),
        ("still image", RecordKind::Image),
        ("moving image", RecordKind::MovingImage),
        ("software", RecordKind::Software),
    ];
    let known = words.iter().find(|(start, _)| word.starts_with(start));
    known.map(|(_, kind)| *kind)
}

fn title_in(title: &Xml) -> String {
    let whole = [title.text_of("nonSort"), title.text_of("title")].join(" ");
    let subtitle = title.text_of("subTitle");
    let whole = whole.trim();
    if subtitle.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}: {subtitle}")
    }
}

/// A name as "Family, Given".
fn name_in(name: &Xml) -> String {
    let part = |kind: &str| {
        let parts = name
            .all("namePart")
            .filter(|part| part.attribute("type") == kind);
        let parts: Vec<String> = parts.map(Xml::text).collect();
        parts.join(" ")
    };
    let [family, given, suffix] = ["family", "given", "termsOfAddress"].map(part);
    match family.is_empty() {
        false => inverted(&family, &given, &suffix),
        true if part("").is_empty() => name.text_of("displayForm"),
        true => part(""),
    }
}

/// The date of issue, or else another one; of two points the interval.
fn date_in(mods: &Xml) -> String {
    for name in ["dateIssued", "copyrightDate", "dateCreated", "dateOther"] {
        let dates = || mods.members("originInfo").filter(|date| date.name == name);
        let point = |point: &str| {
            let found = dates().find(|date| date.attribute("point") == point);
            found.map(Xml::text)
        };
        if let (Some(start), Some(end)) = (point("start"), point("end")) {
            return format!("{start}/{end}");
        }
        let key = dates().find(|date| {
            date.attribute("keyDate") == "yes" || !date.attribute("encoding").is_empty()
        });
        if let Some(date) = key.or_else(|| dates().next()) {
            let text = date.text();
            return match date.attribute("qualifier") {
                "approximate" | "inferred" => format!("{text}~"),
                "questionable" => format!("{text}?"),
                _ => text,
            };
        }
    }
    String::new()
}

fn dspace(document: &Xml) -> BibliographicRecord {
    let values = || document.all("dcvalue");
    let of = |element: &str, qualifier: &str| {
        let found = values().find(|it| {
            it.attribute("element") == element && it.attribute("qualifier") == qualifier
        });
        found.map(Xml::text).unwrap_or_default()
    };
    let mut record = BibliographicRecord::of_kind(
        RecordKind::from_word(&of("type", "none"))
            .or_else(|| RecordKind::from_word(&of("type", ""))),
    );
    // The dates of the repository's work are none of the item.
    let dates = [
        ("date", "issued"),
        ("date", "created"),
        ("date", "copyright"),
        ("date", "none"),
        ("date", ""),
    ];
    let date = dates
        .iter()
        .map(|(element, qualifier)| of(element, qualifier))
        .find(|date| !date.is_empty());
    record.core.push(Element::Date, date.unwrap_or_default());
    let has_abstract = !of("description", "abstract").is_empty();
    for value in values() {
        let text = value.text();
        match (value.attribute("element"), value.attribute("qualifier")) {
            ("contributor", "author") | ("creator", _) => record.push_creator(&text, None),
            ("contributor", role @ ("editor" | "translator")) => {
                record.push_contributor(role, &text);
            }
            ("identifier", "citation") => record.keep("citation", &text),
            ("identifier", scheme) => record.push_identifier(scheme, &text),
            ("relation", "ispartof") => record.push_container(&text),
            ("relation", "ispartofseries") => record.keep("series", &text),
            // Provenance has names and addresses of the staff.
            ("date", _) | ("description", "provenance") => {}
            ("description", "none" | "") if has_abstract => record.push_note(&text),
            ("description", "abstract" | "none" | "") => {
                record.core.push(Element::Description, text);
            }
            ("description", "sponsorship") => record.keep_funding(&text, ""),
            ("description", _) => record.push_note(&text),
            ("publisher", _) => record.push_publisher(&text),
            ("rights", _) => record.push_rights(&text),
            (element, _) => {
                if let Some(element) = Element::from_name(element) {
                    record.core.push(element, text);
                }
            }
        }
    }
    record
}
