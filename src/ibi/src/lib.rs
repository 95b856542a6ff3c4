//! Internet-based identifiers (IBI): parse, print, compare, mint.
//!
//! An IBI names an item of information (a thesis, a map, a data set) for ever, and needs no
//! registry: it is built from the host name or the IP address of the computer that mints it and
//! from the time. Brazil's space research institute (INPE) has used such identifiers since 1995.
//! An IBI has two forms.
//!
//! | form | example | built on |
//! |---|---|---|
//! | *rep*, [`Rep`] | `sid.inpe.br/mtc-m18@80/2009/02.16.17.46` | a host name |
//! | *IBIp*, [`Ibip`] | `8JMKD3MGP8W/34PGRBS` | an IP address |
//!
//! ```
//! use ibi::Ibi;
//!
//! let rep = Ibi::parse("sid.inpe.br/mtc-m18@80/2009/02.16.17.46")?;
//! let ibip = Ibi::parse("8JMKD3MGP8W/34PGRBS")?;
//! assert_eq!(rep.explain().host.as_deref(), Some("mtc-m18.sid.inpe.br"));
//! assert_eq!(ibip.explain().address.as_deref(), Some("150.163.34.243"));
//! assert_eq!(rep.explain().date, ibip.explain().date);
//! # Ok::<(), ibi::ParseError>(())
//! ```
//!
//! Values of these types are always valid: their date exists, their address and port can be used,
//! and they print exactly what was read. Equality, order and hash ignore case, as identifiers do.
//! Neither form follows from the other: an item's two names are recorded together.
//!
//! # Grammar
//!
//! In ABNF, with `|` between alternatives:
//!
//! ```text
//! rep       = subdomain "/" word [("." | "@") port] "/" year "/" date
//! subdomain = *(word ".") last-word ["."]
//! word      = ALNUM | ALNUM *(ALNUM | "-") ALNUM
//! last-word = ALPHA | ALPHA *(ALNUM | "-") ALNUM
//! port      = 1*DIGIT                          ; 80 when left out
//! year      = 4*DIGIT
//! date      = month "." day "." hour "." minute ["." second ["." fraction]]
//!
//! IBIp      = b27(address) ("W" | "X") [b27(port)] "/" b27(seconds) ["W" b27(fraction)]
//! ```
//!
//! `W` follows an IPv4 address and `X` an IPv6 address; port 800 is left out; seconds count from
//! 1995-08-01T00:00:00Z. The digits of base 27 are `23456789ABCDEFGHJKLMNPQRSTU`.
//!
//! # What follows an identifier
//!
//! A modifier asks for something related: `!` the last edition, `+(pt)` a translation, `:` the
//! metadata, in fourteen compositions. See [`relation`].
//!
//! # What else is here
//!
//! - [`persistent`] reads identifiers and links in every form in which they are found;
//! - [`names`] has both forms of an item's identifier together;
//! - [`LegacyIbip`] is the form that IBIps had until about 2009;
//! - [`distributor`] gives out the dates of new identifiers so that no two are the same;
//! - [`pairs`] reads and writes the list of pairs in which Archives answer;
//! - [`mod@message`] holds the sentences of errors as data, so that a program can translate them.
//!
//! Nothing here reads a clock, a file or a socket: the caller passes the instant in.
//!
//! # Features
//!
//! - `serde`: identifiers, prefixes, dates, languages, formats and modifiers serialize as the text
//!   that they print, and are checked when they are read.
//!
//! # Sources
//!
//! Banon (2011), *Identificador com base na Internet (IBI): sistema de identificação*, and its
//! companion on resolution, *sistema de resolução*, National Institute for Space Research (INPE),
//! São José dos Campos. The grammar, the fourteen compositions and the rule of the temporal
//! distributor are theirs. Where the printed text is silent this package decides: a fraction of a second
//! is a string of digits without trailing zeros, and each of its leading zeros is written as `2` in an
//! IBIp, so that .5, .05 and .005 are `W7`, `W27` and `W227`.
#![forbid(unsafe_code)]

mod base27;
pub mod distributor;
mod error;
pub mod ibip;
mod legacy;
pub mod message;
pub mod names;
pub mod pairs;
mod part;
pub mod persistent;
pub mod relation;
pub mod rep;
#[cfg(feature = "serde")]
mod serialize;
mod timestamp;

use std::fmt;
use std::str::FromStr;

use error::{Cause, Source};
pub use error::{ParseError, Quoted};
pub use ibip::{Ibip, IbipPrefix};
pub use legacy::LegacyIbip;
use part::{Alphabet, Part};
pub use rep::{Rep, RepPrefix};
pub use timestamp::Timestamp;

/// An identifier of an item in either of its forms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ibi {
    /// Built on a host name, four components.
    Rep(Rep),
    /// Built on an IP address, two components.
    Ibip(Ibip),
}

impl Ibi {
    /// Reads an identifier; the number of its components determines the form.
    ///
    /// # Errors
    /// Neither four components nor two, or what [`Rep::parse`] or [`Ibip::parse`] refuses.
    pub fn parse(text: &str) -> Result<Ibi, ParseError> {
        match text.split('/').count() {
            4 => Rep::parse(text).map(Ibi::Rep),
            2 => Ibip::parse(text).map(Ibi::Ibip),
            _ => Err(Source::new(Part::Ibi, text).fault(Part::Ibi, text, Cause::Shape)),
        }
    }

    /// The spelling that all spellings of this identifier share.
    #[must_use]
    pub fn canonical(&self) -> String {
        match self {
            Ibi::Rep(rep) => rep.canonical(),
            Ibi::Ibip(ibip) => ibip.canonical(),
        }
    }

    /// Takes the identifier apart for a reader.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let (form, date) = match self {
            Ibi::Rep(rep) => ("rep", rep.timestamp()),
            Ibi::Ibip(ibip) if ibip.legacy().is_some() => ("legacy", ibip.timestamp()),
            Ibi::Ibip(ibip) => ("ibip", ibip.timestamp()),
        };
        let (host, address, port) = match self {
            Ibi::Rep(rep) => (Some(rep.host()), None, Some(rep.port())),
            Ibi::Ibip(ibip) => (None, ibip.address().map(|it| it.to_string()), ibip.port()),
        };
        let likely_rep_prefix = match self {
            Ibi::Rep(_) => None,
            Ibi::Ibip(ibip) => ibip.legacy().and_then(LegacyIbip::likely_rep_prefix),
        };
        Explanation {
            form,
            canonical: self.canonical(),
            host,
            address,
            port,
            likely_rep_prefix,
            date: date.to_rfc3339(),
            rep_suffix: date.rep_suffix(),
            ibip_suffix: date.ibip_suffix().ok(),
        }
    }
}

impl fmt::Display for Ibi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ibi::Rep(rep) => rep.fmt(f),
            Ibi::Ibip(ibip) => ibip.fmt(f),
        }
    }
}

impl FromStr for Ibi {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Ibi, ParseError> {
        Ibi::parse(text)
    }
}

impl From<Rep> for Ibi {
    fn from(rep: Rep) -> Ibi {
        Ibi::Rep(rep)
    }
}

impl From<Ibip> for Ibi {
    fn from(ibip: Ibip) -> Ibi {
        Ibi::Ibip(ibip)
    }
}

/// An explanation of an identifier, part by part.
///
/// The identifier's other form is not among it: neither form can be derived from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// `rep`, `ibip`, or `legacy` for an IBIp in base 53.
    pub form: &'static str,
    /// The canonical spelling.
    pub canonical: String,
    /// The host of a rep.
    pub host: Option<String>,
    /// The IP address of an IBIp.
    pub address: Option<String>,
    /// The port, also where it is left out; None in base 53.
    pub port: Option<u16>,
    /// In base 53, the prefix of the rep that the prefix stands for, as far as it can be read.
    pub likely_rep_prefix: Option<String>,
    /// The date in RFC 3339.
    pub date: String,
    /// The date as the suffix of a rep.
    pub rep_suffix: String,
    /// The date as the suffix of an IBIp, from 1995-08-01 on.
    pub ibip_suffix: Option<String>,
}

/// A pair `word/word`, good only as the recorded alias of an item.
///
/// Both words are ASCII letters and digits, 1 to 64 of them, and keep their case. An Archive ignores the case
/// of one that is not an IBIp in base 53.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AliasPair(String);

impl AliasPair {
    /// Reads a pair.
    ///
    /// # Errors
    /// Not two words, an empty or overlong word, a character other than ASCII letters and digits.
    pub fn parse(text: &str) -> Result<AliasPair, ParseError> {
        const LONGEST: usize = 64;
        let source = Source::new(Part::Alias, text);
        let words: Vec<&str> = text.split('/').collect();
        if words.len() != 2 {
            let found = words.len();
            return Err(source.fault(Part::Alias, text, Cause::Components { found, wanted: 2 }));
        }
        for word in words {
            if word.is_empty() {
                return Err(source.fault(Part::Word, word, Cause::Empty));
            }
            let takes = Alphabet::LettersAndDigits;
            source.check_characters(Part::Word, word, takes, |c| c.is_ascii_alphanumeric())?;
            if word.len() > LONGEST {
                return Err(source.fault(Part::Word, word, Cause::TooLong { limit: LONGEST }));
            }
        }
        Ok(AliasPair(text.to_owned()))
    }

    /// The pair as recorded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AliasPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

crate::text_arguments!(Ibi, AliasPair);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same_date(rep: &str, ibip: &str) {
        let rep = Rep::parse(rep).expect(rep);
        let ibip = Ibip::parse(ibip).expect(ibip);
        assert_eq!(rep.timestamp(), ibip.timestamp());
    }

    #[track_caller]
    fn good(text: &str, form: &str) {
        let ibi = Ibi::parse(text).expect(text);
        assert_eq!((ibi.to_string().as_str(), ibi.explain().form), (text, form));
        assert_eq!(ibi.canonical().parse(), Ok(ibi));
    }

    #[track_caller]
    fn bad(text: &str, sentence: &str) {
        assert_eq!(Ibi::parse(text).expect_err(text).to_string(), sentence);
    }

    #[track_caller]
    fn alias(text: &str) {
        assert_eq!(AliasPair::parse(text).expect(text).to_string(), text);
        assert!(Ibi::parse(text).is_err());
    }

    #[track_caller]
    fn bad_alias(text: &str, sentence: &str) {
        assert_eq!(
            AliasPair::parse(text).expect_err(text).to_string(),
            sentence
        );
    }

    #[test]
    fn the_form_is_in_the_shape() {
        good("8JMKD3MGP8W/34PGRBS", "ibip");
        good("sid.inpe.br/MTC-m18@80/2009/02.16.17.46", "rep");
        let shape = "is neither a rep (four components, as in sid.inpe.br/mtc-m18/2009/02.16.17.46) \
                     nor an IBIp (two, as in 8JMKD3MGP8W/34PGRBS)";
        bad("", &format!("'' {shape}"));
        bad("a/b/c", &format!("'a/b/c' {shape}"));
        bad(
            "8JMKD3MGP8W/",
            "empty suffix at byte 13 of IBIp '8JMKD3MGP8W/'",
        );
        bad(
            "a.b/c/2009/",
            "date '' at byte 12 of rep 'a.b/c/2009/' is not of the shape MM.DD.hh.mm[.ss[.f]]",
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn both_forms_of_one_item() {
        same_date("iconet.com.br/banon/2009/09.09.22.01", "LK47B6W/362SFKH");
        same_date("sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "8JMKD3MGP7W/3EPGUE5");
        same_date("sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "8JMKD3MGP8W/34PGRBS");
        same_date("sid.inpe.br/mtc-m18@80/2009/07.21.14.43", "8JMKD3MGP8W/35MMLL8");
    }

    #[test]
    fn explanations() {
        let rep = Ibi::parse("sid.inpe.br/MTC-m18@1905/2009/02.16.17.46").expect("a rep");
        let expected = Explanation {
            form: "rep",
            canonical: "sid.inpe.br/mtc-m18@1905/2009/02.16.17.46".to_owned(),
            host: Some("mtc-m18.sid.inpe.br".to_owned()),
            address: None,
            port: Some(1905),
            likely_rep_prefix: None,
            date: "2009-02-16T17:46:00Z".to_owned(),
            rep_suffix: "2009/02.16.17.46".to_owned(),
            ibip_suffix: Some("34PGRBS".to_owned()),
        };
        assert_eq!(rep.explain(), expected);
        let ibip = Ibi::parse("8jmkd3mgp8w/34pgrbs").expect("an IBIp");
        let expected = Explanation {
            form: "ibip",
            canonical: "8JMKD3MGP8W/34PGRBS".to_owned(),
            host: None,
            address: Some("150.163.34.243".to_owned()),
            port: Some(800),
            ..expected
        };
        assert_eq!(ibip.explain(), expected);
        let legacy = Ibi::parse("83LX3pFwXQZ5Jpy/Bkjzd").expect("a legacy IBIp");
        let expected = Explanation {
            form: "legacy",
            canonical: "83LX3pFwXQZ5Jpy/Bkjzd".to_owned(),
            host: None,
            address: None,
            port: None,
            likely_rep_prefix: Some("dpi.inpe.br/lise".to_owned()),
            date: "2004-03-02T15:20:00Z".to_owned(),
            rep_suffix: "2004/03.02.15.20".to_owned(),
            ibip_suffix: Some("LRTFPE".to_owned()),
        };
        assert_eq!(legacy.explain(), expected);
    }

    #[test]
    fn aliases() {
        alias("lib/map");
        alias("I/O");
        assert_ne!(
            AliasPair::parse("6RPa7umaZ/UaJFT"),
            AliasPair::parse("6rpa7umaz/uajft")
        );
        bad_alias("a", "alias 'a' has 1 component, not 2");
        bad_alias("a/", "empty word at byte 3 of alias 'a/'");
        bad_alias(
            "a/b c",
            "character ' ' in the word at byte 4 of alias 'a/b c' does not belong there: only letters and digits do",
        );
        alias(&format!("a/{}", "a".repeat(64)));
        assert_eq!(AliasPair::parse("I/O").expect("an alias").as_str(), "I/O");
        let long = "a".repeat(65);
        bad_alias(
            &format!("a/{long}"),
            &format!("word '{long}' at byte 3 of alias 'a/{long}' is longer than 64 characters"),
        );
    }

    #[test]
    fn whatever_parses_prints_and_parses_back() {
        const PIECES: [&str; 16] = [
            "a",
            "Z9",
            "-",
            ".",
            "/",
            "@",
            "80",
            "2009",
            "02",
            "16",
            ".17.46",
            "W",
            "x",
            "8JMKD3MGP8W",
            "/34PGRBS",
            "2",
        ];
        let mut state = 1u64;
        let mut parsed = 0;
        for round in 0..200_000u64 {
            let mut text = if round % 2 == 0 {
                String::new()
            } else {
                "a.b/c/2009/02.16.17.46".to_owned()
            };
            for _ in 0..1 + round % 3 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let random = (state >> 33) as usize;
                let at = (random >> 4) % (text.len() + 1);
                text.insert_str(at, PIECES[random % PIECES.len()]);
            }
            if let Ok(ibi) = Ibi::parse(&text) {
                parsed += 1;
                assert_eq!(ibi.to_string(), text);
                assert_eq!(Ibi::parse(&ibi.canonical()).as_ref(), Ok(&ibi));
            }
        }
        assert!(parsed > 1000, "{parsed}");
    }
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
