//! The relations that are recorded, each as a pair of an item's sidecar.
//!
//! A relation is written from either end: `ibi.nextedition` on the older edition, `ibi.editionof`
//! on the newer, each naming the other item.

use super::error::{Cause, Form, ModifierError};
use super::words::Language;

/// The statement of a recorded pair of an item about the item that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelationKind {
    /// The named item is the next edition of this one.
    NextEdition,
    /// The named item is the translation of this one into the language.
    Translation(Language),
    /// The named item is the metadata of this one.
    Metadata,
    /// This item is the next edition of the named one.
    EditionOf,
    /// This item is a translation of the named one.
    TranslationOf,
    /// This item is the metadata of the named one.
    MetadataOf,
}

impl RelationKind {
    /// The name of the pair, such as `ibi.translation(pt)`.
    #[must_use]
    pub fn pair_name(&self) -> String {
        match self {
            RelationKind::NextEdition => "ibi.nextedition".to_owned(),
            RelationKind::Translation(language) => format!("ibi.translation({language})"),
            RelationKind::Metadata => "ibi.metadata".to_owned(),
            RelationKind::EditionOf => "ibi.editionof".to_owned(),
            RelationKind::TranslationOf => "ibi.translationof".to_owned(),
            RelationKind::MetadataOf => "ibi.metadataof".to_owned(),
        }
    }

    /// Reads the name of a pair; `None` if the name is that of no relation.
    ///
    /// # Errors
    /// A translation without a language, or into one that is not shaped like one.
    #[must_use]
    pub fn from_pair_name(name: &str) -> Option<Result<RelationKind, ModifierError>> {
        const TRANSLATION: &str = "ibi.translation";
        let kind = match name {
            "ibi.nextedition" => RelationKind::NextEdition,
            "ibi.metadata" => RelationKind::Metadata,
            "ibi.editionof" => RelationKind::EditionOf,
            "ibi.translationof" => RelationKind::TranslationOf,
            "ibi.metadataof" => RelationKind::MetadataOf,
            TRANSLATION => return Some(Err(ModifierError::new(name, Cause::LanguageMissing))),
            _ => {
                let parameter = name.strip_prefix(TRANSLATION)?.strip_prefix('(')?;
                let Some(text) = parameter.strip_suffix(')') else {
                    let error = ModifierError::new("(", Cause::Unclosed);
                    return Some(Err(error.within(Form::Relation, name, TRANSLATION.len())));
                };
                let language = Language::parse(text)
                    .map_err(|error| error.within(Form::Relation, name, TRANSLATION.len() + 1));
                return Some(language.map(RelationKind::Translation));
            }
        };
        Some(Ok(kind))
    }

    /// Returns whether this is the inverse relation, declared at the target: `...of`.
    #[must_use]
    pub fn is_inverse(&self) -> bool {
        use RelationKind::{EditionOf, MetadataOf, TranslationOf};
        matches!(self, EditionOf | TranslationOf | MetadataOf)
    }

    /// The same relation in the words of the other end; `language` is that of the translation, and
    /// without it the other end of [`RelationKind::TranslationOf`] has no name.
    #[must_use]
    pub fn inverse(&self, language: Option<Language>) -> Option<RelationKind> {
        match self {
            RelationKind::NextEdition => Some(RelationKind::EditionOf),
            RelationKind::Translation(_) => Some(RelationKind::TranslationOf),
            RelationKind::Metadata => Some(RelationKind::MetadataOf),
            RelationKind::EditionOf => Some(RelationKind::NextEdition),
            RelationKind::TranslationOf => language.map(RelationKind::Translation),
            RelationKind::MetadataOf => Some(RelationKind::Metadata),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn kind(name: &str, inverse: &str) {
        let kind = RelationKind::from_pair_name(name).expect(name).expect(name);
        assert_eq!(kind.pair_name(), name);
        let far = kind
            .inverse(Language::parse("pt").ok())
            .expect("a language is given");
        assert_eq!(far.pair_name(), inverse);
        assert_ne!(kind.is_inverse(), far.is_inverse());
    }

    #[track_caller]
    fn bad(name: &str, sentence: &str) {
        let error = RelationKind::from_pair_name(name)
            .expect(name)
            .expect_err(name);
        assert_eq!(error.to_string(), sentence);
    }

    #[test]
    fn kinds_and_their_other_ends() {
        kind("ibi.nextedition", "ibi.editionof");
        kind("ibi.translation(pt)", "ibi.translationof");
        kind("ibi.translation(pt-BR)", "ibi.translationof");
        kind("ibi.metadata", "ibi.metadataof");
        kind("ibi.editionof", "ibi.nextedition");
        kind("ibi.translationof", "ibi.translation(pt)");
        kind("ibi.metadataof", "ibi.metadata");
        assert_eq!(RelationKind::TranslationOf.inverse(None), None);
    }

    #[test]
    fn other_pairs_are_no_relations() {
        for name in [
            "ibi",
            "ibi.alias",
            "ibi.archiveservice",
            "ibi.translations",
            "IBI.metadata",
            "language",
            "",
        ] {
            assert_eq!(RelationKind::from_pair_name(name), None);
        }
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn bad_translations() {
        bad("ibi.translation", "relation 'ibi.translation' needs a language, as in ibi.translation(pt)");
        bad("ibi.translation(pt", "parenthesis '(' at byte 16 of relation 'ibi.translation(pt' is not closed");
        bad("ibi.translation(PT)", "language 'PT' at byte 17 of relation 'ibi.translation(PT)' is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR");
    }
}
