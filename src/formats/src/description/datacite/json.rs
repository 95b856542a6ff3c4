//! The JSON of DataCite 4.5, as its schema has it (`datacite-v4.5.json`).

use serde_json::{Map, Value, json};

use super::{DATACITE, ORCID, Resource, name_type};
use crate::description::{Description, PersonName, add};
use crate::metadata::SPDX;

/// The document.
pub(in super::super) fn write(description: &Description) -> String {
    format!("{:#}\n", of(&Resource::of(description)))
}

fn of(resource: &Resource<'_>) -> Value {
    let mut made = Map::new();
    let mut add = |name: &str, value: Value| add(&mut made, name, value);
    let (identifier, scheme) = resource.identifier;
    add("schemaVersion", json!(DATACITE));
    add(
        if scheme == "DOI" { "doi" } else { "url" },
        json!(identifier),
    );
    let creators = resource.creators.iter();
    add(
        "creators",
        creators
            .map(|(name, id)| agent(name, None, id.as_deref()))
            .collect(),
    );
    let titles = resource.titles.iter();
    let title = |(title, kind): &(&str, Option<&str>)| match kind {
        Some(kind) => json!({ "title": title, "titleType": kind }),
        None => json!({ "title": title }),
    };
    add("titles", titles.map(title).collect());
    add("publisher", json!({ "name": resource.publisher }));
    add("publicationYear", json!(format!("{:04}", resource.year)));
    let (kind, general) = resource.kind;
    add(
        "types",
        json!({ "resourceType": kind, "resourceTypeGeneral": general }),
    );
    let each = |values: &[&str], name: &str| -> Value {
        let values = values.iter();
        values.map(|value| json!({ name: value })).collect()
    };
    let qualified = |values: &[(&str, &str)], name: &str, qualifier: &str| -> Value {
        let values = values.iter();
        values
            .map(|(value, word)| json!({ name: value, qualifier: word }))
            .collect()
    };
    add("subjects", each(&resource.subjects, "subject"));
    let contributors = resource.contributors.iter();
    add(
        "contributors",
        contributors
            .map(|(name, role)| agent(name, Some(role), None))
            .collect(),
    );
    let dates = resource.dates.iter();
    let dates: Vec<_> = dates.map(|(date, kind)| (&**date, *kind)).collect();
    add("dates", qualified(&dates, "date", "dateType"));
    add("language", json!(resource.language));
    let (alternate, kind) = ("alternateIdentifier", "alternateIdentifierType");
    add(
        "alternateIdentifiers",
        qualified(&resource.alternates, alternate, kind),
    );
    let related = resource.related.iter().map(|(url, relation)| {
        json!({ "relatedIdentifier": url, "relatedIdentifierType": "URL", "relationType": relation })
    });
    add("relatedIdentifiers", related.collect());
    add("formats", json!(resource.formats));
    add("version", json!(resource.version));
    let rights = resource.rights.iter().map(|(text, licence)| {
        let mut rights = json!({ "rights": text });
        if let Some(licence) = licence {
            rights["rightsUri"] = json!(licence.url);
            if let Some(spdx) = &licence.spdx {
                rights["rightsIdentifier"] = json!(spdx);
                rights["rightsIdentifierScheme"] = json!("SPDX");
                rights["schemeUri"] = json!(SPDX);
            }
        }
        rights
    });
    add("rightsList", rights.collect());
    add(
        "descriptions",
        qualified(&resource.descriptions, "description", "descriptionType"),
    );
    let funding = resource.funding.iter().map(|(funder, award)| match award {
        Some(award) => json!({ "funderName": funder, "awardNumber": award }),
        None => json!({ "funderName": funder }),
    });
    add("fundingReferences", funding.collect());
    Value::Object(made)
}

/// A creator, or a contributor in a role.
fn agent(name: &PersonName<'_>, role: Option<&str>, orcid: Option<&str>) -> Value {
    let mut agent = Map::new();
    let mut add = |key: &str, value: Option<&str>| {
        agent.extend(value.map(|value| (key.to_owned(), Value::from(value))));
    };
    add("name", Some(name.whole));
    add("nameType", name_type(name));
    add("givenName", name.family.map(|_| name.given));
    add("familyName", name.family);
    add("contributorType", role);
    if let Some(orcid) = orcid {
        let identifier = json!({
            "nameIdentifier": format!("{ORCID}{orcid}"),
            "nameIdentifierScheme": "ORCID",
            "schemeUri": ORCID,
        });
        agent.insert("nameIdentifiers".to_owned(), json!([identifier]));
    }
    Value::Object(agent)
}
