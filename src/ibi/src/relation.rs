//! Relations between items, and the modifiers that follow an identifier to name a related one
//!: `!` last edition, `+` translation, `:` metadata, in fourteen compositions, or by verbs.
//!
//! This module knows how a modified name is written and read. It does not know which items are
//! related, nor which language a reader prefers.

mod error;
mod kind;
mod portable;
mod words;

use std::fmt;

pub use error::ModifierError;
use error::{Cause, Form};
pub use kind::RelationKind;
pub use portable::{from_portable, portable_name};
pub use words::{Language, MetadataFormat};

/// The fourteen compositions, without their parameters.
const COMPOSITIONS: [&str; 14] = [
    ":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+",
];

/// One sign of a modifier with its parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `!`: the last edition.
    LastEdition,
    /// `+`: the translation into a language, or into the one the reader prefers.
    Translation(Option<Language>),
    /// `:`: the metadata, in a format where one is named.
    Metadata(Option<MetadataFormat>),
}

impl Step {
    fn sign(&self) -> char {
        match self {
            Step::LastEdition => '!',
            Step::Translation(_) => '+',
            Step::Metadata(_) => ':',
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Step::LastEdition => "GetLastEdition",
            Step::Translation(_) => "GetTranslation",
            Step::Metadata(_) => "GetMetadata",
        }
    }

    /// Reads a relation as it follows the name of a pair, such as `.translation(pt).metadata`;
    /// nothing is the relation of an item to itself.
    #[must_use]
    pub fn parse_relation(text: &str) -> Option<Vec<Step>> {
        let mut parts = text.split('.');
        if parts.next() != Some("") {
            return None;
        }
        parts.map(Step::of_relation).collect()
    }

    fn of_relation(text: &str) -> Option<Step> {
        let (name, parameter) = match text.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')')?)),
            None => (text, None),
        };
        match (name, parameter) {
            ("lastedition", None) => Some(Step::LastEdition),
            ("translation", _) => {
                let language = parameter.map(Language::parse).transpose().ok()?;
                Some(Step::Translation(language))
            }
            ("metadata", _) => {
                let format = parameter.map(MetadataFormat::parse).transpose().ok()?;
                Some(Step::Metadata(format))
            }
            _ => None,
        }
    }

    fn relation(&self) -> &'static str {
        match self {
            Step::LastEdition => ".lastedition",
            Step::Translation(_) => ".translation",
            Step::Metadata(_) => ".metadata",
        }
    }

    /// The sign with its parameter.
    fn signs(&self) -> String {
        format!("{}{}", self.sign(), self.parameter())
    }

    /// The parameter in its parentheses, or nothing.
    fn parameter(&self) -> String {
        match self {
            Step::Translation(Some(language)) => format!("({language})"),
            Step::Metadata(Some(format)) => format!("({format})"),
            _ => String::new(),
        }
    }
}

/// The text after an identifier that names a related item: one of the fourteen compositions.
///
/// ```
/// use ibi::relation::{Modifier, Step};
///
/// let modifier = Modifier::parse("!+(pt):(oai_dc)")?;
/// assert_eq!(modifier.steps()[0], Step::LastEdition);
/// assert_eq!(modifier.relation_path(), ".lastedition.translation.metadata");
/// assert_eq!(modifier.verbs(), "GetLastEdition+GetTranslation(pt)+GetMetadata(oai_dc)");
/// assert!(Modifier::parse(":!").is_err());
/// # Ok::<(), ibi::relation::ModifierError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Modifier {
    steps: Vec<Step>,
}

impl Modifier {
    /// Reads a modifier in signs, such as `!+(pt):(oai_dc)`.
    ///
    /// # Errors
    /// Something else than the three signs and their parameters, or none of the fourteen compositions.
    pub fn parse(text: &str) -> Result<Modifier, ModifierError> {
        let mut steps = Vec::new();
        let mut rest = text;
        while let Some(sign) = rest.chars().next() {
            let before = text.len() - rest.len();
            let after = rest.get(sign.len_utf8()..).unwrap_or_default();
            let inside = after
                .strip_prefix('(')
                .filter(|_| matches!(sign, '+' | ':'));
            let parameter = match inside.map(|inside| inside.split_once(')')) {
                None => {
                    rest = after;
                    None
                }
                Some(Some((parameter, after))) => {
                    rest = after;
                    Some(parameter)
                }
                Some(None) => {
                    let error = ModifierError::new("(", Cause::Unclosed);
                    return Err(error.within(Form::Modifier, text, before + 1));
                }
            };
            let step = match sign {
                '!' => Ok(Step::LastEdition),
                '+' => parameter
                    .map(Language::parse)
                    .transpose()
                    .map(Step::Translation),
                ':' => parameter
                    .map(MetadataFormat::parse)
                    .transpose()
                    .map(Step::Metadata),
                _ => {
                    let error = ModifierError::new(&sign.to_string(), Cause::Sign);
                    return Err(error.within(Form::Modifier, text, before));
                }
            };
            // A parameter stands after its sign and the parenthesis.
            steps.push(step.map_err(|error| error.within(Form::Modifier, text, before + 2))?);
        }
        Modifier::from_steps(steps).ok_or_else(|| ModifierError::new(text, Cause::Composition))
    }

    /// The fourteen compositions, without parameters.
    pub fn compositions() -> impl Iterator<Item = Modifier> {
        COMPOSITIONS
            .iter()
            .filter_map(|signs| Modifier::parse(signs).ok())
    }

    /// Makes a modifier of steps; `None` if they are none of the fourteen compositions.
    #[must_use]
    pub fn from_steps(steps: Vec<Step>) -> Option<Modifier> {
        let signs: String = steps.iter().map(Step::sign).collect();
        COMPOSITIONS
            .contains(&signs.as_str())
            .then_some(Modifier { steps })
    }

    /// The steps, in the order in which they are followed; there is always one.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The relation without parameters, such as `.lastedition.translation.metadata`.
    #[must_use]
    pub fn relation_path(&self) -> String {
        self.steps.iter().map(Step::relation).collect()
    }

    /// The same in verbs, such as `GetLastEdition+GetTranslation(pt)`.
    #[must_use]
    pub fn verbs(&self) -> String {
        let verbs = self
            .steps
            .iter()
            .map(|step| format!("{}{}", step.verb(), step.parameter()));
        verbs.collect::<Vec<String>>().join("+")
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps
            .iter()
            .try_for_each(|step| f.write_str(&step.signs()))
    }
}

/// The thing that is asked of an item: a related item, or the list of its files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// The item that the modifier names.
    Modifier(Modifier),
    /// The files of the item, or of the one that the modifier names.
    FileList(Option<Modifier>),
}

impl Request {
    /// Reads verbs joined by `+`, as in a URL, or by a space, as between services.
    ///
    /// # Errors
    /// A word that is not a verb, a parameter where none belongs, none of the fourteen compositions.
    pub fn parse_verbs(text: &str) -> Result<Request, ModifierError> {
        let mut steps = Vec::new();
        let mut is_file_list = false;
        let mut before = 0;
        for verb in text.split(['+', ' ']) {
            match parse_verb(text, before, verb)? {
                Some(step) => steps.push(step),
                None if is_file_list => {
                    let error = ModifierError::new(verb, Cause::FileListTwice);
                    return Err(error.within(Form::Verbs, text, before));
                }
                None => is_file_list = true,
            }
            before += verb.len() + 1;
        }
        let refuse = || ModifierError::new(text, Cause::Composition);
        let request = Request::of_steps(steps, is_file_list).map_err(|_| refuse())?;
        request.ok_or_else(refuse)
    }

    /// Joins what a modifier and the verbs of a query ask for: those of the query that the modifier
    /// does not say itself are added behind its own. Nothing is asked for by neither.
    ///
    /// # Errors
    /// The errors of [`Request::parse_tail`] and [`Request::parse_verbs`], and a union that is not one of the
    /// compositions.
    pub fn union(tail: &str, verbs: &str) -> Result<Option<Request>, ModifierError> {
        let verbs = verbs.trim();
        let tail = (!tail.is_empty()).then(|| Request::parse_tail(tail));
        let verbs = (!verbs.is_empty()).then(|| Request::parse_verbs(verbs));
        let (tail, verbs) = (tail.transpose()?, verbs.transpose()?);
        let steps_of = |request: &Option<Request>| match request {
            Some(request) => request.steps().to_vec(),
            None => Vec::new(),
        };
        let mut steps = steps_of(&tail);
        let added = steps_of(&verbs).into_iter();
        let added: Vec<Step> = added.filter(|step| !steps.contains(step)).collect();
        steps.extend(added);
        let is_list = |request: &Option<Request>| matches!(request, Some(Request::FileList(_)));
        let is_file_list = is_list(&tail) || is_list(&verbs);
        let request = Request::of_steps(steps, is_file_list);
        request.map_err(|text| ModifierError::new(&text, Cause::Composition))
    }

    /// Returns what steps ask for, or the list of the files of what they lead to; None for neither.
    ///
    /// # Errors
    /// The steps, as signs, are none of the compositions.
    pub fn of_steps(steps: Vec<Step>, is_file_list: bool) -> Result<Option<Request>, String> {
        if steps.is_empty() {
            return Ok(is_file_list.then_some(Request::FileList(None)));
        }
        let text: String = steps.iter().map(Step::signs).collect();
        let modifier = Modifier::from_steps(steps).ok_or(text)?;
        Ok(Some(if is_file_list {
            Request::FileList(Some(modifier))
        } else {
            Request::Modifier(modifier)
        }))
    }

    /// The steps that lead to what is asked for; none for the item itself.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        match self {
            Request::Modifier(modifier) | Request::FileList(Some(modifier)) => modifier.steps(),
            Request::FileList(None) => &[],
        }
    }

    /// The request in verbs joined by spaces, as between services.
    #[must_use]
    pub fn verbs(&self) -> String {
        match self {
            Request::Modifier(modifier) => modifier.verbs().replace('+', " "),
            Request::FileList(None) => "GetFileList".to_owned(),
            Request::FileList(Some(modifier)) => {
                format!("{} GetFileList", modifier.verbs().replace('+', " "))
            }
        }
    }

    /// Reads what follows an identifier in a name: signs, or `?` and verbs. `??` at the end is the older
    /// spelling of `:`.
    ///
    /// # Errors
    /// The errors of [`Modifier::parse`] and [`Request::parse_verbs`].
    pub fn parse_tail(tail: &str) -> Result<Request, ModifierError> {
        if let Some(signs) = tail.strip_suffix("??") {
            return Modifier::parse(&format!("{signs}:")).map(Request::Modifier);
        }
        match tail.strip_prefix('?') {
            Some(verbs) => Request::parse_verbs(verbs),
            None => Modifier::parse(tail).map(Request::Modifier),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Modifier(modifier) => modifier.fmt(f),
            Request::FileList(None) => f.write_str("?GetFileList"),
            Request::FileList(Some(modifier)) => write!(f, "?{}+GetFileList", modifier.verbs()),
        }
    }
}

/// The word of the list of formats, in the place of a format: `GetFormats` is `GetMetadata(formats)`.
pub const FORMATS: &str = "formats";

/// Reads the verb after the first `before` bytes of the text; `None` is GetFileList, no step.
fn parse_verb(text: &str, before: usize, verb: &str) -> Result<Option<Step>, ModifierError> {
    let refuse = |cause| ModifierError::new(verb, cause).within(Form::Verbs, text, before);
    let (name, parameter) = match verb.split_once('(') {
        Some((name, rest)) => (
            name,
            Some(rest.strip_suffix(')').ok_or_else(|| refuse(Cause::Verb))?),
        ),
        None => (verb, None),
    };
    let step = match (name, parameter) {
        ("GetTranslation", _) => parameter
            .map(Language::parse)
            .transpose()
            .map(Step::Translation),
        ("GetMetadata", _) => parameter
            .map(MetadataFormat::parse)
            .transpose()
            .map(Step::Metadata),
        ("GetLastEdition", None) => Ok(Step::LastEdition),
        // The list is what metadata in a format of its own are.
        ("GetFormats", None) => MetadataFormat::parse(FORMATS).map(|it| Step::Metadata(Some(it))),
        ("GetFileList", None) => return Ok(None),
        ("GetLastEdition" | "GetFileList" | "GetFormats", Some(_)) => {
            return Err(refuse(Cause::NoParameter));
        }
        _ => return Err(refuse(Cause::Verb)),
    };
    // A parameter stands after its verb and the parenthesis.
    step.map(Some)
        .map_err(|error| error.within(Form::Verbs, text, before + name.len() + 1))
}

/// Splits the name of a directory entry before its first `!`, `+`, `:` or `?`: the part that
/// belongs to the identifier, and the tail; `None` if there is no sign or nothing before it.
#[must_use]
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    let at = name.find(['!', '+', ':', '?'])?;
    (at > 0).then(|| name.split_at(at))
}

/// Splits an identifier as it stands in a path from the tail behind its last component, which is empty
/// where there is no sign.
#[must_use]
pub fn split_tail(path: &str) -> (&str, &str) {
    let last = path.rsplit('/').next().unwrap_or(path);
    let tail = split_name(last).map_or("", |(_, tail)| tail);
    path.split_at(path.len() - tail.len())
}

#[cfg(test)]
mod tests;
