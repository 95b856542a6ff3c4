//! The output of `ibifs id explain`: the parts of a persistent name, see ibi(7).

use serde_json::{Map, Value, json};

use crate::command::json;
use crate::command::terminal::OneLine;
use ibi::Explanation;
use ibi::pairs::percent_encode;
use ibi::persistent::{Identifier, PersistentName};
use ibi::relation::Request;

/// The parts that may be missing, by the names that people and programs read.
struct ExplainedParts {
    archive: Option<String>,
    name_space: Option<String>,
    modifier: Option<String>,
    path: Option<String>,
    citation_key: Option<String>,
    required_state: Option<&'static str>,
}

impl ExplainedParts {
    fn of(name: &PersistentName) -> ExplainedParts {
        let modifier = name.request.as_ref().and_then(|request| match request {
            Request::Modifier(modifier) | Request::FileList(Some(modifier)) => {
                Some(modifier.to_string())
            }
            Request::FileList(None) => None,
        });
        ExplainedParts {
            archive: name.archive.as_ref().map(ToString::to_string),
            name_space: name.name_space.clone(),
            modifier,
            path: (!name.path.is_empty()).then(|| path_text(&name.path)),
            citation_key: name.citation_key.clone(),
            required_state: name.is_original_required.then_some("Original"),
        }
    }
}

/// A path in UTF-8 as it is, any other percent-encoded.
pub(super) fn path_text(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(path) => path.to_owned(),
        Err(_) => percent_encode(path),
    }
}

/// Returns what the identifier alone says, where it is one of an item.
fn explanation(name: &PersistentName) -> Option<Explanation> {
    match &name.identifier {
        Identifier::Ibi(ibi) => Some(ibi.explain()),
        Identifier::Alias(_) | Identifier::Level(_) => None,
    }
}

/// The parts as one object.
pub(super) fn as_json(name: &PersistentName) -> String {
    let mut object = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    add("kind", Some(json!(name.kind.as_str())));
    match explanation(name) {
        Some(explanation) => {
            add("form", Some(json!(explanation.form)));
            add("canonical", Some(json!(explanation.canonical)));
            add("host", explanation.host.map(Value::from));
            add("address", explanation.address.map(Value::from));
            add("port", explanation.port.map(Value::from));
            let prefix = explanation.likely_rep_prefix;
            add("likely_rep_prefix", prefix.map(Value::from));
            add("date", Some(json!(explanation.date)));
            add("rep_suffix", Some(json!(explanation.rep_suffix)));
            add("ibip_suffix", Some(json!(explanation.ibip_suffix)));
        }
        None => {
            add("form", Some(json!("level")));
            add("canonical", Some(json!(name.identifier.to_string())));
        }
    }
    let parts = ExplainedParts::of(name);
    add("archive", parts.archive.map(Value::from));
    add("name_space", parts.name_space.map(Value::from));
    add("modifier", parts.modifier.map(Value::from));
    add("path", parts.path.map(Value::from));
    add("citation_key", parts.citation_key.map(Value::from));
    add("required_state", parts.required_state.map(Value::from));
    let navigation = name.navigation.iter();
    let navigation: Vec<Value> = navigation
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    add(
        "navigation",
        (!navigation.is_empty()).then(|| Value::from(navigation)),
    );
    json::pretty(&Value::Object(object))
}

/// The parts, one a line.
pub(super) fn as_text(name: &PersistentName) -> String {
    let mut rows = vec![("kind", Some(name.kind.to_string()))];
    match explanation(name) {
        Some(explanation) => rows.extend([
            ("form", Some(explanation.form.to_owned())),
            ("canonical", Some(explanation.canonical)),
            ("host", explanation.host),
            ("address", explanation.address),
            ("port", explanation.port.map(|port| port.to_string())),
            ("likely rep", explanation.likely_rep_prefix),
            ("date", Some(explanation.date)),
            ("rep suffix", Some(explanation.rep_suffix)),
            ("IBIp suffix", explanation.ibip_suffix),
        ]),
        None => rows.push(("level", Some(name.identifier.to_string()))),
    }
    let parts = ExplainedParts::of(name);
    rows.extend([
        ("archive", parts.archive),
        ("name space", parts.name_space),
        ("modifier", parts.modifier),
        ("path", parts.path),
        ("citation key", parts.citation_key),
        ("state", parts.required_state.map(str::to_owned)),
    ]);
    let navigation = name.navigation.iter();
    rows.extend(navigation.map(|(name, value)| ("navigation", Some(format!("{name}={value}")))));
    rows.into_iter()
        .filter_map(|(name, value)| Some(format!("{name:<12} {}\n", OneLine(value?))))
        .collect()
}
