//! The sidecar `.ibi` of an item: its names and relations, as a list of pairs.
//!
//! Known pairs are validated when the document is parsed, and their values are stored. Unknown pairs are
//! preserved byte for byte. A sidecar does not have the state of the item in an Archive, except that of a
//! removed item, which has `state` and `timestamp`.

use std::collections::BTreeSet;
use std::fmt;

use super::error::{PairCause, SidecarError};
use super::{Life, Names, State};
use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};
use ibi::relation::{Language, RelationKind};
use ibi::{AliasPair, ParseError, Timestamp};

const IBI: &str = "ibi";
const ARCHIVE_SERVICE: &str = "ibi.archiveservice";
const ALIAS: &str = "ibi.alias";
const LANGUAGE: &str = "language";
const TARGET: &str = "target";
const STATE: &str = "state";
const TIMESTAMP: &str = "timestamp";
const UNMINTED: &str = "unminted";

/// The data that travels with an item and is the same in every Archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    pairs: Pairs,
    names: Names,
    known: ValidPairs,
}

/// The validated values of the pairs, kept consistent with the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ValidPairs {
    archive_service: Option<Names>,
    relations: Vec<(RelationKind, Names)>,
    aliases: Vec<AliasPair>,
    language: Option<Language>,
    state: Option<State>,
    timestamp: Option<Timestamp>,
    life: Life,
}

impl Sidecar {
    /// A sidecar with only the names of an item.
    #[must_use]
    pub fn new(names: &Names) -> Sidecar {
        let mut pairs = Pairs::default();
        pairs.set(IBI, names.to_value());
        Sidecar {
            pairs,
            names: names.clone(),
            known: ValidPairs::default(),
        }
    }

    /// Parses a sidecar.
    ///
    /// # Errors
    /// The text is not a list of pairs, has no `ibi`, or has a known pair that is invalid or repeated.
    pub fn parse(bytes: &[u8]) -> Result<Sidecar, SidecarError> {
        let pairs = Pairs::parse(bytes).map_err(SidecarError::Pairs)?;
        let mut names = None;
        let mut known = ValidPairs::default();
        let mut seen = BTreeSet::new();
        for (name, value) in pairs.iter() {
            let fault = |cause| SidecarError::Pair {
                name: name.to_owned(),
                cause,
            };
            if name == IBI {
                names = Some(Names::from_value(value).map_err(|error| fault(error.into()))?);
            } else if !known.read(name, value).map_err(fault)? {
                continue;
            }
            if !seen.insert(name) {
                return Err(SidecarError::Twice {
                    name: name.to_owned(),
                });
            }
        }
        let names = names.ok_or(SidecarError::Nameless)?;
        Ok(Sidecar {
            pairs,
            names,
            known,
        })
    }

    /// The sidecar as bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.pairs.to_bytes()
    }

    /// The list of all pairs, including unknown ones.
    #[must_use]
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// The names of the item (`ibi`).
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Sets the names of the item.
    pub fn set_names(&mut self, names: &Names) {
        self.pairs.set(IBI, names.to_value());
        self.names = names.clone();
    }

    /// The service of the Archive that holds the original (`ibi.archiveservice`).
    #[must_use]
    pub fn archive_service(&self) -> Option<&Names> {
        self.known.archive_service.as_ref()
    }

    /// Sets the Archive that holds the original; a transfer changes nothing else.
    pub fn set_archive_service(&mut self, service: &Names) {
        self.pairs.set(ARCHIVE_SERVICE, service.to_value());
        self.known.archive_service = Some(service.clone());
    }

    /// Removes the Archive that holds the original.
    pub fn remove_archive_service(&mut self) {
        self.known.archive_service = None;
        self.pairs.remove(ARCHIVE_SERVICE);
    }

    /// The relations, in the order of the document.
    #[must_use]
    pub fn relations(&self) -> Vec<(RelationKind, Names)> {
        self.known.relations.clone()
    }

    /// Sets a relation, replacing the one of the same kind.
    pub fn set_relation(&mut self, kind: &RelationKind, names: &Names) {
        self.pairs.set(&kind.pair_name(), names.to_value());
        match self
            .known
            .relations
            .iter_mut()
            .find(|(found, _)| found == kind)
        {
            Some((_, found)) => *found = names.clone(),
            None => self.known.relations.push((*kind, names.clone())),
        }
    }

    /// Removes the relation of this kind; returns whether it existed.
    pub fn remove_relation(&mut self, kind: &RelationKind) -> bool {
        self.known.relations.retain(|(found, _)| found != kind);
        self.pairs.remove(&kind.pair_name())
    }

    /// Removes the language of the item.
    pub fn remove_language(&mut self) {
        self.known.language = None;
        self.pairs.remove("language");
    }

    /// Removes the default file of the item.
    pub fn remove_target(&mut self) {
        self.pairs.remove("target");
    }

    /// The language of the item (`language`).
    #[must_use]
    pub fn language(&self) -> Option<&Language> {
        self.known.language.as_ref()
    }

    /// Sets the language of the item.
    pub fn set_language(&mut self, language: &Language) {
        self.pairs.set(LANGUAGE, Value::Word(language.to_string()));
        self.known.language = Some(*language);
    }

    /// The item's default file (`target`), percent-decoded; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn target(&self) -> Option<String> {
        self.target_bytes()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The item's default file as the bytes of its name, which need not be UTF-8, see ibifs-tree(7). The
    /// sidecar is not trusted: the caller must check that this is a path inside the item.
    #[must_use]
    pub fn target_bytes(&self) -> Option<Vec<u8>> {
        let words = self.pairs.get(TARGET)?.words();
        let target = (!words.is_empty()).then(|| percent_decode(&words.join(" ")));
        // No file has such a name.
        target.filter(|target| !target.contains(&0))
    }

    /// Sets the item's default file.
    pub fn set_target(&mut self, target: impl AsRef<[u8]>) {
        self.pairs.set(TARGET, Value::Word(percent_encode(target)));
    }

    /// The older names of the item (`ibi.alias`).
    #[must_use]
    pub fn aliases(&self) -> &[AliasPair] {
        &self.known.aliases
    }

    /// Adds an older name, unless the sidecar has it already.
    pub fn add_alias(&mut self, alias: &AliasPair) {
        if !self.known.aliases.contains(alias) {
            self.known.aliases.push(alias.clone());
            let words = self.known.aliases.iter().map(AliasPair::to_string);
            self.pairs.set(ALIAS, Value::List(words.collect()));
        }
    }

    /// The state of a removed item (`state`). The state of other items follows from the Archive service.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.known.state
    }

    /// Sets the state, in the last sidecar of a removed item.
    pub fn set_state(&mut self, state: State) {
        self.pairs.set(STATE, Value::Word(state.to_string()));
        self.known.state = Some(state);
    }

    /// The time of removal (`timestamp`).
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.known.timestamp.clone()
    }

    /// Sets the time of removal.
    pub fn set_timestamp(&mut self, timestamp: &Timestamp) {
        self.pairs
            .set(TIMESTAMP, Value::Word(timestamp.to_rfc3339()));
        self.known.timestamp = Some(timestamp.clone());
    }

    /// What was decided about the item (`available`, `sealed`, `withdrawn`).
    #[must_use]
    pub fn life(&self) -> &Life {
        &self.known.life
    }

    /// Sets what was decided about the item.
    pub fn set_life(&mut self, life: Life) {
        life.write(&mut self.pairs);
        self.known.life = life;
    }

    /// Returns whether the mint of a removed item was taken back (`unminted yes`).
    #[must_use]
    pub fn is_unminted(&self) -> bool {
        self.pairs.get(UNMINTED).is_some()
    }

    /// Marks the last sidecar of a removed item whose mint was taken back.
    pub fn set_unminted(&mut self) {
        self.pairs.set(UNMINTED, Value::Word("yes".to_owned()));
    }
}

impl fmt::Display for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pairs.fmt(f)
    }
}

impl ValidPairs {
    /// Stores the value of a known pair; returns whether the pair is known.
    fn read(&mut self, name: &str, value: &Value) -> Result<bool, PairCause> {
        match name {
            ARCHIVE_SERVICE => self.archive_service = Some(Names::from_value(value)?),
            ALIAS => {
                let aliases = value.words().iter().map(|word| AliasPair::parse(word));
                self.aliases = aliases.collect::<Result<_, ParseError>>()?;
            }
            LANGUAGE => self.language = Some(Language::parse(one_word(value)?)?),
            STATE => self.state = Some(one_word(value)?.parse::<State>()?),
            TIMESTAMP => self.timestamp = Some(Timestamp::parse_rfc3339(one_word(value)?)?),
            TARGET => {}
            _ if self.life.read(name, value)? => {}
            _ => match RelationKind::from_pair_name(name) {
                None => return Ok(false),
                Some(kind) => self.relations.push((kind?, Names::from_value(value)?)),
            },
        }
        Ok(true)
    }
}

fn one_word(value: &Value) -> Result<&str, PairCause> {
    match value.words() {
        [word] => Ok(word),
        _ => Err(PairCause::NotOneWord(value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// A sidecar with each kind of pair.
    const EXAMPLE: &str =
        "ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}
ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}
ibi.nextedition {rep sid.inpe.br/mtc-m18/2012/07.12.18.08}
ibi.metadata {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05}
ibi.translation(pt) {rep sid.inpe.br/mtc-m18@80/2009/08.25.19.43}
language en
target CCSDS%20650.0-B-1.pdf
";
    const NAMES: &str = "ibi {ibip 8JMKD3MGP8W/35MMLL8}\n";

    fn sidecar(text: &str) -> Sidecar {
        let sidecar = Sidecar::parse(text.as_bytes()).expect(text);
        assert_eq!(sidecar.to_bytes(), text.as_bytes());
        sidecar
    }

    fn names(rep: &str) -> Names {
        Names::from(rep.parse::<ibi::Ibi>().expect(rep))
    }

    /// After a change the document parses to the same values.
    #[track_caller]
    fn written(sidecar: &Sidecar, expected: &str) {
        assert_eq!(sidecar.to_string(), expected);
        assert_eq!(Sidecar::parse(&sidecar.to_bytes()).as_ref(), Ok(sidecar));
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str, cause: &str) {
        let error = Sidecar::parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.to_string(), sentence);
        assert_eq!(
            error.source().map(ToString::to_string).unwrap_or_default(),
            cause
        );
    }

    #[track_caller]
    fn bad_pair(pair: &str, name: &str, cause: &str) {
        let sentence = format!("pair '{name}' of the sidecar is not valid");
        bad(&format!("{NAMES}{pair}\n"), &sentence, cause);
    }

    #[test]
    fn the_example_of_design_2() {
        let sidecar = sidecar(EXAMPLE);
        let service = names("sid.inpe.br/mtc-m18@80/2008/03.17.15.17");
        assert_eq!(
            sidecar.names().to_string(),
            "{rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}"
        );
        assert_eq!(sidecar.archive_service(), Some(&service));
        let pt = Language::parse("pt").expect("pt");
        assert_eq!(
            sidecar.relations(),
            [
                (
                    RelationKind::NextEdition,
                    names("sid.inpe.br/mtc-m18/2012/07.12.18.08")
                ),
                (
                    RelationKind::Metadata,
                    names("sid.inpe.br/mtc-m18@80/2009/07.21.14.43.05")
                ),
                (
                    RelationKind::Translation(pt),
                    names("sid.inpe.br/mtc-m18@80/2009/08.25.19.43")
                ),
            ]
        );
        assert_eq!(
            sidecar.language().map(ToString::to_string).as_deref(),
            Some("en")
        );
        assert_eq!(sidecar.target().as_deref(), Some("CCSDS 650.0-B-1.pdf"));
        assert_eq!(
            (sidecar.state(), sidecar.timestamp(), sidecar.aliases()),
            (None, None, &[][..])
        );
    }

    #[test]
    fn changes_leave_the_rest_byte_for_byte() {
        let mut example = sidecar(&format!(
            "x.unknown {{a  b}}\t{EXAMPLE}x.unknown   again\n\n"
        ));
        let service = names("sid.inpe.br/mtc-m19/2010/01.01.00.00");
        example.set_archive_service(&service);
        assert!(example.remove_relation(&RelationKind::Metadata));
        assert!(!example.remove_relation(&RelationKind::Metadata));
        example.set_relation(&RelationKind::NextEdition, &service);
        example.set_relation(&RelationKind::EditionOf, &names("8JMKD3MGP8W/34PGRBS"));
        let expected = "x.unknown {a  b}\tibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}
ibi.archiveservice {rep sid.inpe.br/mtc-m19/2010/01.01.00.00}
ibi.nextedition {rep sid.inpe.br/mtc-m19/2010/01.01.00.00}
ibi.translation(pt) {rep sid.inpe.br/mtc-m18@80/2009/08.25.19.43}
language en
target CCSDS%20650.0-B-1.pdf
x.unknown   again

ibi.editionof {ibip 8JMKD3MGP8W/34PGRBS}
";
        written(&example, expected);
    }

    #[test]
    fn a_sidecar_from_nothing() {
        let mut made = Sidecar::new(&names("8JMKD3MGP8W/35MMLL8"));
        written(&made, NAMES);
        made.set_names(&names("8JMKD3MGP8W/34PGRBS"));
        made.set_language(&Language::parse("pt-BR").expect("pt-BR"));
        made.set_target("relatório 1.pdf");
        for alias in [
            "6RPa7umaZ/UaJFT",
            "83LX3pFwXQZ5Jpy/Bkjzd",
            "6RPa7umaZ/UaJFT",
        ] {
            made.add_alias(&AliasPair::parse(alias).expect(alias));
        }
        made.set_state(State::Deleted);
        made.set_timestamp(&Timestamp::from_unix(1_234_806_360, 500_000_000));
        written(
            &made,
            "ibi {ibip 8JMKD3MGP8W/34PGRBS}
language pt-BR
target relat%C3%B3rio%201.pdf
ibi.alias {6RPa7umaZ/UaJFT 83LX3pFwXQZ5Jpy/Bkjzd}
state Deleted
timestamp 2009-02-16T17:46:00.5Z
",
        );
        assert_eq!(
            (made.aliases().len(), made.state()),
            (2, Some(State::Deleted))
        );
        assert_eq!(made.target().as_deref(), Some("relatório 1.pdf"));
        made.set_target(b"caf\xe9.txt");
        assert_eq!(made.target_bytes().as_deref(), Some(&b"caf\xe9.txt"[..]));
        assert_eq!(made.target().as_deref(), Some("caf\u{fffd}.txt"));
        made.set_target(b"a\0b");
        assert_eq!(made.target(), None);
        made.set_target("");
        assert_eq!(made.target(), None);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn what_is_no_sidecar() {
        bad("", "sidecar has no pair 'ibi', so it names no item", "");
        bad("language en\n", "sidecar has no pair 'ibi', so it names no item", "");
        bad("ibi {", "sidecar is not a list of pairs", "line 1, column 6 of the list of pairs: expected a word or '}', found the end");
        bad("ibi x", "pair 'ibi' of the sidecar is not valid", "'x' is not of the shape {rep R}, {ibip P} or {rep R ibip P}");
        bad(&format!("{NAMES}{NAMES}"), "pair 'ibi' of the sidecar occurs twice", "");
        bad(&format!("{NAMES}language en language pt"), "pair 'language' of the sidecar occurs twice", "");
        let shape = "is not of the shape {rep R}, {ibip P} or {rep R ibip P}";
        for name in [
            "ibi.archiveservice",
            "ibi.nextedition",
            "ibi.translation(pt)",
            "ibi.metadata",
            "ibi.editionof",
            "ibi.translationof",
            "ibi.metadataof",
        ] {
            bad_pair(&format!("{name} {{}}"), name, &format!("'{{}}' {shape}"));
        }
        bad_pair("ibi.nextedition {rep a}", "ibi.nextedition", "rep 'a' has 1 component, not 4");
        bad_pair("ibi.translation {rep a}", "ibi.translation", "relation 'ibi.translation' needs a language, as in ibi.translation(pt)");
        bad_pair("ibi.alias {a/b c}", "ibi.alias", "alias 'c' has 1 component, not 2");
        bad_pair("language {en pt}", "language", "value '{en pt}' is not one word");
        bad_pair("language EN", "language", "language 'EN' is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR");
        bad_pair("state original", "state", "state 'original' is not Original, Copy or Deleted");
        bad_pair("timestamp now", "timestamp", "date 'now' is not of the shape YYYY-MM-DDThh:mm:ss[.f]Z");
    }
}
