//! Relations between items, and the modifiers that follow an identifier to name a related one
//!: `!` last edition, `+` translation, `:` metadata, in fourteen compositions, or by verbs.
//!
//! This module knows how a modified name is written and read. It does not know which items are
//! related, nor which language a reader prefers.

mod error;
mod kind;
mod words;

use std::fmt;

pub use error::ModifierError;
use error::{Cause, Form};
pub use kind::RelationKind;
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

/// What follows an identifier to name a related item: one of the fourteen compositions.
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

/// What is asked of an item: a related item, or the list of its files.
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
    /// A word that is no verb, a parameter where none belongs, none of the fourteen compositions.
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

    /// What a modifier and the verbs of a query ask for together: those of the query that the modifier
    /// does not say itself are added behind its own. Nothing is asked for by neither.
    ///
    /// # Errors
    /// What [`Request::parse_tail`] and [`Request::parse_verbs`] refuse, and what together is none of the
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

    /// What steps ask for, or the list of the files of what they lead to; None for neither.
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
    /// What [`Modifier::parse`] and [`Request::parse_verbs`] refuse.
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
        ("GetFileList", None) => return Ok(None),
        ("GetLastEdition" | "GetFileList", Some(_)) => return Err(refuse(Cause::NoParameter)),
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
mod tests {
    use super::*;

    #[test]
    fn two_question_marks_ask_for_the_metadata() {
        for (older, signs) in [("??", ":"), ("!??", "!:"), ("!+(pt)??", "!+(pt):")] {
            assert_eq!(Request::parse_tail(older), Request::parse_tail(signs));
        }
        for bad in ["???", ":??", "??:", "?GetMetadata??"] {
            assert!(Request::parse_tail(bad).is_err(), "{bad}");
        }
    }

    /// One row of the table of compositions, in all three spellings.
    #[track_caller]
    fn row(signs: &str, relation: &str, verbs: &str) {
        let modifier = Modifier::parse(signs).expect(signs);
        assert_eq!(modifier.to_string(), signs);
        assert_eq!(modifier.relation_path(), relation);
        assert_eq!(modifier.verbs(), verbs);
        let request = Request::Modifier(modifier);
        assert_eq!(Request::parse_tail(signs).as_ref(), Ok(&request));
        assert_eq!(
            Request::parse_tail(&format!("?{verbs}")).as_ref(),
            Ok(&request)
        );
        assert_eq!(
            Request::parse_verbs(&verbs.replace('+', " ")).as_ref(),
            Ok(&request)
        );
        assert_eq!(request.to_string(), signs);
    }

    #[track_caller]
    fn file_list(verbs: &str, signs: Option<&str>) {
        let modifier = signs.map(|signs| Modifier::parse(signs).expect(signs));
        let request = Request::parse_verbs(verbs).expect(verbs);
        assert_eq!(request, Request::FileList(modifier));
        assert_eq!(Request::parse_tail(&request.to_string()), Ok(request));
    }

    #[track_caller]
    fn bad(tail: &str, sentence: &str) {
        assert_eq!(
            Request::parse_tail(tail).expect_err(tail).to_string(),
            sentence
        );
    }

    #[track_caller]
    fn union(tail: &str, verbs: &str, expected: &str) {
        let request = Request::union(tail, verbs).expect(tail);
        let text = request.map_or(String::new(), |request| request.to_string());
        assert_eq!(text, expected, "{tail} and {verbs}");
    }

    /// Verbs after those of the modifier, no repeats.
    #[test]
    fn a_modifier_and_verbs_together() {
        union("", "", "");
        union("!", "", "!");
        union("+", "GetMetadata", "+:");
        union(
            "!:(oai_dc)",
            "GetLastEdition GetMetadata(oai_dc)",
            "!:(oai_dc)",
        );
        union("!", "GetFileList", "?GetLastEdition+GetFileList");
        union("", " GetFileList ", "?GetFileList");
        union("", "GetTranslation GetMetadata GetTranslation", "+:+");
        union("?GetLastEdition", "GetMetadata(oai_dc)", "!:(oai_dc)");
        let sentence = Request::union(":", "GetLastEdition").expect_err("no composition");
        assert!(sentence.to_string().contains(":!"), "{sentence}");
        assert!(Request::union("", "GetNothing").is_err());
    }

    #[test]
    fn relations_of_pairs() {
        for signs in ["!", "+(pt-BR):(oai_dc)", "+!:+", "!+:+(en)"] {
            let modifier = Modifier::parse(signs).expect(signs);
            let relation = modifier.relation_path();
            let steps = Step::parse_relation(&relation).expect(signs);
            let bare: String = steps.iter().map(Step::relation).collect();
            assert_eq!(bare, relation);
        }
        let steps = Modifier::parse("!+(pt-BR):(oai_dc)").expect("good").steps;
        let text = ".lastedition.translation(pt-BR).metadata(oai_dc)";
        assert_eq!(Step::parse_relation(text), Some(steps));
        assert_eq!(Step::parse_relation(""), Some(Vec::new()));
        for bad in [
            "x",
            ".",
            ".nextedition",
            ".lastedition(pt)",
            ".translation(pt",
            ".translation()",
            ".metadata.",
        ] {
            assert_eq!(Step::parse_relation(bad), None, "{bad}");
        }
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn the_table_of_spec_6() {
        row(":", ".metadata", "GetMetadata");
        row(":+", ".metadata.translation", "GetMetadata+GetTranslation");
        row("!", ".lastedition", "GetLastEdition");
        row("!+", ".lastedition.translation", "GetLastEdition+GetTranslation");
        row("!:", ".lastedition.metadata", "GetLastEdition+GetMetadata");
        row("!+:", ".lastedition.translation.metadata", "GetLastEdition+GetTranslation+GetMetadata");
        row("!:+", ".lastedition.metadata.translation", "GetLastEdition+GetMetadata+GetTranslation");
        row("!+:+", ".lastedition.translation.metadata.translation", "GetLastEdition+GetTranslation+GetMetadata+GetTranslation");
        row("+", ".translation", "GetTranslation");
        row("+!", ".translation.lastedition", "GetTranslation+GetLastEdition");
        row("+:", ".translation.metadata", "GetTranslation+GetMetadata");
        row("+!:", ".translation.lastedition.metadata", "GetTranslation+GetLastEdition+GetMetadata");
        row("+:+", ".translation.metadata.translation", "GetTranslation+GetMetadata+GetTranslation");
        row("+!:+", ".translation.lastedition.metadata.translation", "GetTranslation+GetLastEdition+GetMetadata+GetTranslation");
    }

    #[test]
    fn parameters() {
        row(":(oai_dc)", ".metadata", "GetMetadata(oai_dc)");
        row(":(BibINPE)", ".metadata", "GetMetadata(BibINPE)");
        row("+(pt)", ".translation", "GetTranslation(pt)");
        row("+(pt-BR)", ".translation", "GetTranslation(pt-BR)");
        row(
            "!:(oai_dc)",
            ".lastedition.metadata",
            "GetLastEdition+GetMetadata(oai_dc)",
        );
        row(
            "+(pt)!:(oai_dc)+(en)",
            ".translation.lastedition.metadata.translation",
            "GetTranslation(pt)+GetLastEdition+GetMetadata(oai_dc)+GetTranslation(en)",
        );
    }

    #[test]
    fn file_lists() {
        file_list("GetFileList", None);
        file_list("GetLastEdition+GetFileList", Some("!"));
        file_list("GetFileList+GetLastEdition", Some("!"));
        file_list(
            "GetLastEdition+GetFileList+GetMetadata(oai_dc)",
            Some("!:(oai_dc)"),
        );
    }

    #[test]
    fn exactly_fourteen_compositions() {
        let mut found = 0;
        for number in 0..3usize.pow(6) {
            let signs: String = (0..6)
                .map(|place| ['!', '+', ':'][number / 3usize.pow(place) % 3])
                .collect();
            let all_lengths = (1..=6).filter(|length| number < 3usize.pow(*length as u32));
            found += all_lengths
                .filter(|length| Modifier::parse(&signs[..*length]).is_ok())
                .count();
        }
        assert_eq!(found, 14);
    }

    #[test]
    fn names() {
        assert_eq!(split_name("34PGRBS!"), Some(("34PGRBS", "!")));
        assert_eq!(split_name("34PGRBS+(pt):"), Some(("34PGRBS", "+(pt):")));
        assert_eq!(
            split_name("02.16.17.46?GetFileList"),
            Some(("02.16.17.46", "?GetFileList"))
        );
        assert_eq!(split_name("34PGRBS"), None);
        assert_eq!(split_name(""), None);
        assert_eq!(split_name("!"), None);
        assert_eq!(split_name("é:é"), Some(("é", ":é")));
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn what_is_no_modifier() {
        let fourteen =
            "is not one of the fourteen compositions of last edition, translation and metadata";
        let language = "is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR";
        let verb = "is not one of GetLastEdition, GetTranslation, GetMetadata and GetFileList";
        bad("", &format!("modifier '' {fourteen}"));
        bad("!!", &format!("modifier '!!' {fourteen}"));
        bad(":!", &format!("modifier ':!' {fourteen}"));
        bad("+!+", &format!("modifier '+!+' {fourteen}"));
        bad("!x", "character 'x' at byte 2 of modifier '!x' is not one of !, + and :");
        bad("!(pt)", "character '(' at byte 2 of modifier '!(pt)' is not one of !, + and :");
        bad("!é(", "character 'é' at byte 2 of modifier '!é(' is not one of !, + and :");
        bad("!+(pt", "parenthesis '(' at byte 3 of modifier '!+(pt' is not closed");
        bad("!+(PT)", &format!("language 'PT' at byte 4 of modifier '!+(PT)' {language}"));
        bad("+()", &format!("language '' at byte 3 of modifier '+()' {language}"));
        bad(":(oai dc)", "format 'oai dc' at byte 3 of modifier ':(oai dc)' is not a word of letters, digits, _ and -");
        bad("!?GetMetadata", "character '?' at byte 2 of modifier '!?GetMetadata' is not one of !, + and :");
        bad("?", &format!("verb '' at byte 1 of verbs '' {verb}"));
        bad("?getmetadata", &format!("verb 'getmetadata' at byte 1 of verbs 'getmetadata' {verb}"));
        bad("?GetMetadata+", &format!("verb '' at byte 13 of verbs 'GetMetadata+' {verb}"));
        bad("?GetMetadata(a", &format!("verb 'GetMetadata(a' at byte 1 of verbs 'GetMetadata(a' {verb}"));
        bad("?GetMetadata+GetLastEdition(1)", "verb 'GetLastEdition(1)' at byte 13 of verbs 'GetMetadata+GetLastEdition(1)' takes no parameter");
        bad("?GetFileList+GetFileList", "verb 'GetFileList' at byte 13 of verbs 'GetFileList+GetFileList' was there before");
        bad("?GetMetadata+GetMetadata", &format!("modifier 'GetMetadata+GetMetadata' {fourteen}"));
        bad("?GetTranslation(x)", &format!("language 'x' at byte 16 of verbs 'GetTranslation(x)' {language}"));
    }
}
