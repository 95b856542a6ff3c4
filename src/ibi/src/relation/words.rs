//! The parameters of modifiers: languages and metadata formats.
//!
//! Only the shape of a language is checked; which ones exist, and which formats we can
//! write, is known elsewhere.

use std::fmt;

use super::error::{Cause, ModifierError};

/// A language of two lower-case letters (ISO 639-1), with a country of two upper-case letters
/// (ISO 3166-1) where it matters: `pt`, `pt-BR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Language {
    language: [u8; 2],
    country: Option<[u8; 2]>,
}

impl Language {
    /// Reads `pt` or `pt-BR`.
    ///
    /// # Errors
    /// Any other shape.
    pub fn parse(text: &str) -> Result<Language, ModifierError> {
        let found = match *text.as_bytes() {
            [a, b] => Some(Language {
                language: [a, b],
                country: None,
            }),
            [a, b, b'-', c, d] => Some(Language {
                language: [a, b],
                country: Some([c, d]),
            }),
            _ => None,
        };
        found
            .filter(Language::is_shaped)
            .ok_or_else(|| ModifierError::new(text, Cause::Language))
    }

    /// Reads the name of a locale, as in `LANG`: `pt_BR.UTF-8` is `pt-BR`; `C`, `POSIX` and
    /// languages of three letters are `None`, and a country that is not two letters is passed over.
    #[must_use]
    pub fn from_locale(locale: &str) -> Option<Language> {
        let name = locale.split(['.', '@']).next()?;
        let (language, country) = name.split_once('_').unwrap_or((name, ""));
        Language::parse(&format!("{language}-{country}"))
            .or_else(|_| Language::parse(language))
            .ok()
    }

    /// Returns whether a text in this language satisfies a request for the wanted one: `pt` is satisfied by `pt` and
    /// by `pt-BR`, `pt-BR` by itself alone.
    #[must_use]
    pub fn matches(&self, wanted: &Language) -> bool {
        self.language == wanted.language
            && (wanted.country.is_none() || self.country == wanted.country)
    }

    /// The language alone, of whatever country.
    #[must_use]
    pub fn without_country(self) -> Language {
        Language {
            country: None,
            ..self
        }
    }

    fn is_shaped(&self) -> bool {
        self.language.iter().all(u8::is_ascii_lowercase)
            && self
                .country
                .is_none_or(|country| country.iter().all(u8::is_ascii_uppercase))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.language.map(char::from);
        write!(f, "{a}{b}")?;
        match self.country.map(|country| country.map(char::from)) {
            Some([c, d]) => write!(f, "-{c}{d}"),
            None => Ok(()),
        }
    }
}

/// A metadata format, a word of letters, digits, `_` and `-` such as `oai_dc`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataFormat(String);

impl MetadataFormat {
    /// Reads a format; whether we have it is not asked here.
    ///
    /// # Errors
    /// An empty word, or another character in it.
    pub fn parse(text: &str) -> Result<MetadataFormat, ModifierError> {
        let belongs = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if text.is_empty() || !text.bytes().all(belongs) {
            return Err(ModifierError::new(text, Cause::Format));
        }
        Ok(MetadataFormat(text.to_owned()))
    }

    /// Dublin Core as in OAI-PMH 2.0.
    #[must_use]
    pub fn oai_dc() -> MetadataFormat {
        MetadataFormat("oai_dc".to_owned())
    }

    /// Returns whether it is Dublin Core as in OAI-PMH 2.0, the one format that every Archive can give.
    #[must_use]
    pub fn is_oai_dc(&self) -> bool {
        self.0 == "oai_dc"
    }

    /// The word itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MetadataFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

crate::text_arguments!(Language, MetadataFormat);

#[cfg(test)]
mod tests {
    use super::*;

    fn language(text: &str) -> Language {
        Language::parse(text).expect(text)
    }

    #[track_caller]
    fn locale(text: &str, expected: &str) {
        let found = Language::from_locale(text).map(|language| language.to_string());
        assert_eq!(found.unwrap_or_default(), expected);
    }

    #[track_caller]
    fn met(held: &str, wanted: &str, expected: bool) {
        assert_eq!(language(held).matches(&language(wanted)), expected);
    }

    #[track_caller]
    fn bad_language(text: &str) {
        assert_eq!(
            Language::parse(text).expect_err(text).to_string(),
            format!(
                "language '{text}' is not two lower-case letters, or these with a hyphen and two \
                 upper-case ones, as pt or pt-BR"
            )
        );
    }

    #[track_caller]
    fn bad_format(text: &str) {
        let expected = format!("format '{text}' is not a word of letters, digits, _ and -");
        assert_eq!(
            MetadataFormat::parse(text).expect_err(text).to_string(),
            expected
        );
    }

    #[test]
    fn languages() {
        for text in ["pt", "pt-BR", "en", "zz-ZZ"] {
            assert_eq!(language(text).to_string(), text);
        }
        for text in [
            "", "p", "PT", "por", "pt-br", "pt-B", "pt_BR", "pt-BRA", "p1", "é", "pt-", "pt-é",
        ] {
            bad_language(text);
        }
        for (text, without) in [("pt", "pt"), ("pt-BR", "pt")] {
            assert_eq!(language(text).without_country(), language(without));
        }
        assert!(language("pt") < language("pt-BR") && language("pt-BR") < language("ru"));
    }

    #[test]
    fn locales() {
        locale("pt_BR.UTF-8", "pt-BR");
        locale("pt_BR", "pt-BR");
        locale("de_DE@euro", "de-DE");
        locale("en", "en");
        locale("en.UTF-8", "en");
        locale("es_419", "es");
        locale("C", "");
        locale("C.UTF-8", "");
        locale("POSIX", "");
        locale("ast_ES.UTF-8", "");
        locale("", "");
    }

    #[test]
    fn wanted_languages() {
        met("pt", "pt", true);
        met("pt-BR", "pt", true);
        met("pt-BR", "pt-BR", true);
        met("pt", "pt-BR", false);
        met("pt-PT", "pt-BR", false);
        met("en", "pt", false);
    }

    #[test]
    fn formats() {
        for text in ["oai_dc", "BibINPE", "a-1"] {
            let format = MetadataFormat::parse(text).expect(text);
            assert_eq!((format.as_str(), format.to_string().as_str()), (text, text));
        }
        assert!(MetadataFormat::parse("oai_dc").is_ok_and(|format| format.is_oai_dc()));
        assert!(MetadataFormat::parse("OAI_DC").is_ok_and(|format| !format.is_oai_dc()));
        for text in ["", "a b", "a)", "é"] {
            bad_format(text);
        }
    }
}
