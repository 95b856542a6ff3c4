//! The inventory of an OCFL object: the parts that ibifs reads and writes. No input or output.

use ibi::message::Message;
use ibi::{Quoted, message};
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The file's name in an object and in each of its versions.
pub(super) const INVENTORY: &str = "inventory.json";
/// The file with the digest of the inventory.
pub(super) const SIDECAR: &str = "inventory.json.sha512";

/// Paths by their digest.
pub type ByDigest = BTreeMap<String, Vec<String>>;

/// An inventory.
#[derive(Clone, Debug)]
pub struct OcflInventory {
    /// The identifier of the object.
    pub id: String,
    /// The number of the last version.
    pub head: u64,
    /// The paths of content in the object, by digest.
    pub manifest: ByDigest,
    /// The logical paths of the last version, by digest.
    pub state: ByDigest,
    /// All versions, unchanged.
    versions: Map<String, Value>,
    /// All other members, unchanged.
    rest: Map<String, Value>,
}

impl OcflInventory {
    /// The inventory of an object that has no version yet.
    pub fn new(id: &str) -> OcflInventory {
        OcflInventory {
            id: id.to_owned(),
            head: 0,
            manifest: ByDigest::new(),
            state: ByDigest::new(),
            versions: Map::new(),
            rest: Map::new(),
        }
    }

    /// Reads an inventory.
    pub fn parse(bytes: &[u8]) -> Result<OcflInventory, Message> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| Message::foreign(error.to_string()))?;
        let Value::Object(mut object) = value else {
            return Err(message!("it is not a JSON object"));
        };
        let mut take = |name: &str| {
            object
                .remove(name)
                .ok_or_else(|| message!("it has no {name}", name))
        };
        let text = |name: &str, value: Value| match value {
            Value::String(text) => Ok(text),
            _ => Err(message!("its {name} is not a text", name)),
        };
        let algorithm = text("digestAlgorithm", take("digestAlgorithm")?)?;
        if algorithm != "sha512" {
            return Err(message!(
                "its digests are {algorithm}, and ibifs reads sha512",
                algorithm = Quoted(&algorithm)
            ));
        }
        let id = text("id", take("id")?)?;
        let head = text("head", take("head")?)?;
        // Another version comes behind it.
        let number = head
            .strip_prefix('v')
            .filter(|digits| !digits.starts_with('+'));
        let number = number.and_then(|digits| digits.parse::<u32>().ok());
        let manifest = by_digest("manifest", &take("manifest")?)?;
        let Value::Object(versions) = take("versions")? else {
            return Err(message!("its versions are not a JSON object"));
        };
        let last = versions.get(&head).and_then(|version| version.get("state"));
        let last = last
            .ok_or_else(|| message!("it has no state of its head {head}", head = Quoted(&head)))?;
        Ok(OcflInventory {
            id,
            head: number.map(u64::from).ok_or_else(|| {
                message!("its head {head} is not a version", head = Quoted(&head))
            })?,
            state: by_digest("state", last)?,
            manifest,
            versions,
            rest: object,
        })
    }

    /// Adds a version with these files, a time of creation, and a user: a name and an address.
    pub fn add(&mut self, state: ByDigest, created: &str, user: (&str, &str)) {
        self.head += 1;
        let version = json!({
            "created": created,
            "message": "ibifs export",
            "user": { "name": user.0, "address": user.1 },
            "state": state,
        });
        self.versions.insert(format!("v{}", self.head), version);
        self.state = state;
    }

    /// Whether this is the next inventory after an earlier one of the same object: with one version more.
    pub(super) fn follows(&self, earlier: &OcflInventory) -> bool {
        let mut before = self.versions.clone();
        before.remove(&format!("v{}", self.head));
        self.id == earlier.id
            && Some(self.head) == earlier.head.checked_add(1)
            && before == earlier.versions
    }

    /// The inventory as bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut object = Map::new();
        object.insert("id".into(), json!(self.id));
        object.insert("type".into(), json!("https://ocfl.io/1.1/spec/#inventory"));
        object.insert("digestAlgorithm".into(), json!("sha512"));
        object.insert("head".into(), json!(format!("v{}", self.head)));
        object.insert("manifest".into(), json!(self.manifest));
        object.insert("versions".into(), Value::Object(self.versions.clone()));
        for (name, value) in &self.rest {
            object.entry(name.clone()).or_insert_with(|| value.clone());
        }
        format!("{:#}\n", Value::Object(object)).into_bytes()
    }
}

fn by_digest(name: &str, value: &Value) -> Result<ByDigest, Message> {
    let fault = || message!("its {name} is not a list of paths by digest", name);
    let mut found = ByDigest::new();
    for (digest, paths) in value.as_object().ok_or_else(fault)? {
        let paths: Option<Vec<String>> = paths
            .as_array()
            .ok_or_else(fault)?
            .iter()
            .map(|path| path.as_str().map(str::to_owned))
            .collect();
        let digest = digest.to_ascii_lowercase();
        found
            .entry(digest)
            .or_default()
            .extend(paths.ok_or_else(fault)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut inventory = OcflInventory::new("http://urlib.net/a");
        inventory.manifest = [("ab".to_owned(), vec!["v1/content/x".to_owned()])].into();
        let state: ByDigest = [("ab".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into();
        inventory.add(
            state.clone(),
            "2026-11-22T00:00:00Z",
            ("a.org", "http://a.org"),
        );
        let read = OcflInventory::parse(&inventory.to_bytes()).expect("its own text");
        assert_eq!(
            (read.head, read.state, read.id),
            (1, state, "http://urlib.net/a".to_owned())
        );
        assert_eq!(read.manifest, inventory.manifest);
    }

    #[test]
    fn what_is_no_inventory() {
        let bad = |text: &str, sentence: &str| {
            let refused = OcflInventory::parse(text.as_bytes()).expect_err(text);
            assert_eq!(refused.to_string(), sentence);
        };
        bad("[]", "it is not a JSON object");
        bad("{}", "it has no digestAlgorithm");
        bad(
            r#"{"digestAlgorithm": "md5"}"#,
            "its digests are 'md5', and ibifs reads sha512",
        );
        // A text from it that is printed does not control a terminal.
        bad(
            r#"{"digestAlgorithm": "\u001b[31mred"}"#,
            r"its digests are '\u{1b}[31mred', and ibifs reads sha512",
        );
        bad(
            r#"{"digestAlgorithm": "sha512", "id": "a", "head": "v1", "manifest": {"a": 1}}"#,
            "its manifest is not a list of paths by digest",
        );
        bad(
            r#"{"digestAlgorithm": "sha512", "id": "a", "head": "v1", "manifest": {}, "versions": {}}"#,
            "it has no state of its head 'v1'",
        );
        for head in ["v18446744073709551615", "v+1", "v", "1"] {
            let text = r#"{"digestAlgorithm": "sha512", "id": "a", "head": "HEAD", "manifest": {}, "versions": {"HEAD": {"state": {}}}}"#;
            bad(
                &text.replace("HEAD", head),
                &format!("its head '{head}' is not a version"),
            );
        }
    }
}
