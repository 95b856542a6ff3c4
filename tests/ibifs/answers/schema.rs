//! The published JSON Schema, and as much of a validator as it needs.

use serde_json::{Deserializer, Value};

/// `src/command/json/ibifs.schema.json`.
pub struct Schema {
    root: Value,
}

impl Schema {
    pub fn read() -> Schema {
        let text = include_str!("../../../src/command/json/ibifs.schema.json");
        Schema {
            root: serde_json::from_str(text).expect("a schema"),
        }
    }

    /// Each value of a text, one or one a line, is as the definition of this name says.
    #[track_caller]
    pub fn holds(&self, name: &str, text: &str) {
        let definition = &self.root["$defs"][name];
        assert!(definition.is_object(), "no definition of {name}");
        let mut count = 0;
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            if let Err(wrong) = self.check(definition, &value) {
                panic!("{name}: {wrong}: {value:#}");
            }
            count += 1;
        }
        assert!(count > 0, "{name} printed nothing");
    }

    fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let keywords = schema.as_object().expect("a schema is an object");
        for (keyword, expected) in keywords {
            self.keyword(schema, keyword, expected, value)
                .map_err(|wrong| format!("{keyword}: {wrong}"))?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        schema: &Value,
        keyword: &str,
        expected: &Value,
        value: &Value,
    ) -> Result<(), String> {
        let is = |holds: bool, wrong: String| if holds { Ok(()) } else { Err(wrong) };
        let list = || expected.as_array().expect("a list").iter();
        match keyword {
            "description" => Ok(()),
            "$ref" => {
                let name = expected
                    .as_str()
                    .and_then(|path| path.strip_prefix("#/$defs/"));
                self.check(&self.root["$defs"][name.expect("a definition")], value)
            }
            "type" => {
                let types = match expected {
                    Value::Array(types) => types.clone(),
                    one => vec![one.clone()],
                };
                let holds = types.iter().any(|kind| is_of(kind, value));
                is(holds, format!("{value} is not {expected}"))
            }
            "enum" => is(
                list().any(|one| one == value),
                format!("{value} is not in {expected}"),
            ),
            "oneOf" => {
                let tried: Vec<_> = list().map(|one| self.check(one, value)).collect();
                let count = tried.iter().filter(|result| result.is_ok()).count();
                is(count == 1, format!("{count} of {tried:?}"))
            }
            "items" => {
                let mut items = value.as_array().into_iter().flatten();
                items.try_for_each(|item| self.check(expected, item))
            }
            "required" => list().try_for_each(|name| {
                let name = name.as_str().expect("a name");
                is(value.get(name).is_some(), format!("no {name}"))
            }),
            "properties" => {
                let known = expected.as_object().expect("properties");
                known
                    .iter()
                    .try_for_each(|(name, schema)| match value.get(name) {
                        Some(value) => self
                            .check(schema, value)
                            .map_err(|wrong| format!("{name}: {wrong}")),
                        None => Ok(()),
                    })
            }
            "additionalProperties" => {
                let known = &schema["properties"];
                let found = value.as_object().into_iter().flatten();
                found
                    .filter(|(name, _)| known.get(name.as_str()).is_none())
                    .try_for_each(|(name, value)| match expected {
                        Value::Bool(false) => Err(format!("{name} is not in the schema")),
                        schema => self.check(schema, value),
                    })
            }
            other => panic!("the validator does not know {other}"),
        }
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        other => panic!("the validator does not know the type {other:?}"),
    }
}
