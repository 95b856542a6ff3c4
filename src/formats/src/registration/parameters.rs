//! The parameters of a verb: those that occur once, and the groups of metadata in their order.

use super::error::MOST_METADATA;
use super::{Credentials, Password, RequestError, Verb};
use crate::query::FormFields;
use ibi::Ibi;

/// The longest text, in bytes.
pub(super) const LONGEST_TEXT: usize = 255;
/// The longest URL, in bytes.
pub(super) const LONGEST_URL: usize = 2048;

/// The given parameters; none of them is empty.
pub(super) struct Parameters<'a> {
    verb: Verb,
    once: Vec<(&'static str, &'a str)>,
    groups: Vec<Vec<(&'static str, &'a str)>>,
}

impl<'a> Parameters<'a> {
    /// Sorts the given parameters. An unknown, repeated or too long one is an error.
    pub(super) fn of(verb: Verb, fields: &'a FormFields) -> Result<Parameters<'a>, RequestError> {
        let mut once = Vec::new();
        let mut groups: Vec<Vec<(&'static str, &'a str)>> = Vec::new();
        let of_verb =
            |names: &[&'static str], name: &str| names.iter().copied().find(|known| *known == name);
        for (name, value) in fields.iter().filter(|(name, _)| *name != "verb") {
            let (name, place) = if let Some(name) = of_verb(verb.parameters(), name) {
                (name, &mut once)
            } else if let Some(name) = of_verb(verb.group(), name) {
                if verb.group().first() == Some(&name) {
                    groups.push(Vec::new());
                }
                // A blank parameter belongs to no group, so that a form may leave a group blank.
                match groups.last_mut() {
                    Some(group) => (name, group),
                    None if value.is_empty() => continue,
                    None => return Err(RequestError::NoGroup(name)),
                }
            } else {
                return Err(RequestError::UnknownParameter(verb, name.to_owned()));
            };
            let most = if name.ends_with("URL") {
                LONGEST_URL
            } else {
                LONGEST_TEXT
            };
            if value.len() > most {
                return Err(RequestError::TooLong(name, most));
            }
            if place.iter().any(|(known, _)| *known == name) {
                return Err(RequestError::Twice(name));
            }
            place.push((name, value));
        }
        let is_given = |parameters: &mut Vec<(&'static str, &'a str)>| {
            parameters.retain(|(_, value)| !value.is_empty());
            !parameters.is_empty()
        };
        is_given(&mut once);
        groups.retain_mut(is_given);
        if groups.len() > MOST_METADATA {
            Err(RequestError::TooManyMetadata)
        } else {
            Ok(Parameters { verb, once, groups })
        }
    }

    pub(super) fn get(&self, name: &'static str) -> Option<&'a str> {
        find(&self.once, name)
    }

    pub(super) fn required(&self, name: &'static str) -> Result<&'a str, RequestError> {
        self.get(name).ok_or(RequestError::Missing(self.verb, name))
    }

    pub(super) fn ibi(&self, name: &'static str) -> Result<Ibi, RequestError> {
        let text = self.required(name)?;
        Ibi::parse(text).map_err(|error| RequestError::Identifier(name, error))
    }

    pub(super) fn password(&self, name: &'static str) -> Result<Password, RequestError> {
        Password::parse(name, self.required(name)?)
    }

    pub(super) fn credentials(&self) -> Result<Credentials, RequestError> {
        Ok(Credentials {
            actor: self.ibi("actorID")?,
            password: self.password("password")?,
        })
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.groups.iter().map(|group| Group(group))
    }
}

/// The parameters of one group.
pub(super) struct Group<'a>(&'a [(&'static str, &'a str)]);

impl<'a> Group<'a> {
    pub(super) fn get(&self, name: &'static str) -> Option<&'a str> {
        find(self.0, name)
    }
}

fn find<'a>(parameters: &[(&'static str, &'a str)], name: &str) -> Option<&'a str> {
    let found = parameters.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}
