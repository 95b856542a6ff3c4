//! The names of an item: both forms of its identifier, or the one that is known. Neither follows from the other.

use std::error::Error;
use std::fmt;

use crate::message::{Localize, Message};
use crate::pairs::Value;
use crate::{Ibi, Ibip, ParseError, Quoted, Rep, display_message, message, text_arguments};

/// The recorded forms of an item's identifier, at least one.
///
/// Names are equal when they have the same forms and these are equal; see [`Names::matches`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names {
    rep: Option<Rep>,
    ibip: Option<Ibip>,
}

impl Names {
    /// Names from both forms; `None` if both are missing.
    #[must_use]
    pub fn new(rep: Option<Rep>, ibip: Option<Ibip>) -> Option<Names> {
        (rep.is_some() || ibip.is_some()).then_some(Names { rep, ibip })
    }

    /// The names that some identifiers of one item form; `None` without any.
    #[must_use]
    pub fn collect(ibis: impl IntoIterator<Item = Ibi>) -> Option<Names> {
        let (mut rep, mut ibip) = (None, None);
        for ibi in ibis {
            match ibi {
                Ibi::Rep(found) => rep = Some(found),
                Ibi::Ibip(found) => ibip = Some(found),
            }
        }
        Names::new(rep, ibip)
    }

    /// The text by which items are ordered: the rep if it is known, else the IBIp, in the canonical spelling.
    #[must_use]
    pub fn key(&self) -> String {
        let ibip = || self.ibip.as_ref().map(Ibip::canonical).unwrap_or_default();
        self.rep.as_ref().map_or_else(ibip, Rep::canonical)
    }

    /// Returns whether one of the forms begins so, in any case of its letters.
    #[must_use]
    pub fn begin_with(&self, prefix: &str) -> bool {
        let forms = [
            self.rep.as_ref().map(Rep::canonical),
            self.ibip.as_ref().map(Ibip::canonical),
        ];
        forms.iter().flatten().any(|form| {
            let start = form.get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        })
    }

    /// Names with both forms.
    #[must_use]
    pub fn both(rep: Rep, ibip: Ibip) -> Names {
        Names {
            rep: Some(rep),
            ibip: Some(ibip),
        }
    }

    /// Parses the value of an `ibi` pair: `{rep R}`, `{ibip P}` or `{rep R ibip P}`.
    ///
    /// # Errors
    /// Another form, or an invalid identifier.
    pub fn from_value(value: &Value) -> Result<Names, NamesError> {
        let words: Vec<&str> = value.words().iter().map(String::as_str).collect();
        let (rep, ibip) = match words[..] {
            ["rep", rep] => (Some(rep), None),
            ["ibip", ibip] => (None, Some(ibip)),
            ["rep", rep, "ibip", ibip] | ["ibip", ibip, "rep", rep] => (Some(rep), Some(ibip)),
            _ => return Err(NamesError::Shape(value.to_string())),
        };
        let rep = rep.map(Rep::parse).transpose().map_err(NamesError::Ibi)?;
        let ibip = ibip.map(Ibip::parse).transpose().map_err(NamesError::Ibi)?;
        Ok(Names { rep, ibip })
    }

    /// The value of an `ibi` pair, spelled as recorded.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let rep = self
            .rep
            .iter()
            .flat_map(|rep| ["rep".to_owned(), rep.to_string()]);
        let ibip = self
            .ibip
            .iter()
            .flat_map(|ibip| ["ibip".to_owned(), ibip.to_string()]);
        Value::List(rep.chain(ibip).collect())
    }

    /// The rep, where one is known.
    #[must_use]
    pub fn rep(&self) -> Option<&Rep> {
        self.rep.as_ref()
    }

    /// The IBIp, where one is known.
    #[must_use]
    pub fn ibip(&self) -> Option<&Ibip> {
        self.ibip.as_ref()
    }

    /// Whether both have a form that differs: they cannot name the same item.
    #[must_use]
    pub fn contradicts(&self, other: &Names) -> bool {
        let rep_differs = self.rep.is_some() && other.rep.is_some() && self.rep != other.rep;
        let ibip_differs = self.ibip.is_some() && other.ibip.is_some() && self.ibip != other.ibip;
        rep_differs || ibip_differs
    }

    /// Whether both name the same item: they share at least one form.
    #[must_use]
    pub fn matches(&self, other: &Names) -> bool {
        let same_rep = self.rep.is_some() && self.rep == other.rep;
        let same_ibip = self.ibip.is_some() && self.ibip == other.ibip;
        same_rep || same_ibip
    }

    /// The form to print where only one is printed: the rep, or else the IBIp.
    #[must_use]
    pub fn preferred(&self) -> String {
        let rep = self.rep.as_ref().map(Rep::as_str);
        rep.or(self.ibip.as_ref().map(Ibip::as_str))
            .unwrap_or_default()
            .to_owned()
    }
}

impl From<Ibi> for Names {
    fn from(ibi: Ibi) -> Names {
        match ibi {
            Ibi::Rep(rep) => Names {
                rep: Some(rep),
                ibip: None,
            },
            Ibi::Ibip(ibip) => Names {
                rep: None,
                ibip: Some(ibip),
            },
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

text_arguments!(Names);

/// A value is not the names of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamesError {
    /// The words do not have the form `{rep R}`, `{ibip P}` or `{rep R ibip P}`.
    Shape(String),
    /// An identifier in it is not valid.
    Ibi(ParseError),
}

impl Localize for NamesError {
    fn message(&self) -> Message {
        match self {
            NamesError::Shape(found) => {
                let found = Quoted(found);
                message!(
                    "{found} is not of the shape {{rep R}}, {{ibip P}} or {{rep R ibip P}}",
                    found
                )
            }
            NamesError::Ibi(error) => error.message(),
        }
    }
}

display_message!(NamesError);

impl Error for NamesError {}

#[cfg(test)]
mod tests {
    use super::*;

    const REP: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
    const IBIP: &str = "8JMKD3MGP8W/35MMLL8";

    fn value(words: &str) -> Value {
        Value::List(words.split_whitespace().map(str::to_owned).collect())
    }

    fn names(words: &str) -> Names {
        Names::from_value(&value(words)).expect(words)
    }

    #[track_caller]
    fn good(words: &str, preferred: &str) {
        let names = names(words);
        assert_eq!(names.to_string(), format!("{{{words}}}"));
        assert_eq!(names.preferred(), preferred);
        assert_eq!(
            Names::new(names.rep().cloned(), names.ibip().cloned()),
            Some(names)
        );
    }

    #[track_caller]
    fn bad(words: &str, sentence: &str) {
        assert_eq!(
            Names::from_value(&value(words))
                .expect_err(words)
                .to_string(),
            sentence
        );
    }

    #[test]
    fn values_of_spec_8() {
        good(&format!("rep {REP}"), REP);
        good(&format!("ibip {IBIP}"), IBIP);
        good(&format!("rep {REP} ibip {IBIP}"), REP);
        assert_eq!(
            names(&format!("ibip {IBIP} rep {REP}")),
            names(&format!("rep {REP} ibip {IBIP}"))
        );
        assert_eq!(Names::new(None, None), None);
        assert_eq!(
            Ibi::parse(IBIP).map(Names::from),
            Ok(names(&format!("ibip {IBIP}")))
        );
    }

    #[test]
    fn what_names_nothing() {
        let shape = "is not of the shape {rep R}, {ibip P} or {rep R ibip P}";
        bad("", &format!("'{{}}' {shape}"));
        bad("rep", &format!("'{{rep}}' {shape}"));
        bad("REP x", &format!("'{{REP x}}' {shape}"));
        bad("rep a rep b", &format!("'{{rep a rep b}}' {shape}"));
        bad("rep a", "rep 'a' has 1 component, not 4");
        bad(
            "ibip 8JMKD3MGP8W/",
            "empty suffix at byte 13 of IBIp '8JMKD3MGP8W/'",
        );
    }

    #[test]
    fn names_of_one_item_share_a_form() {
        let both = names(&format!("rep {REP} ibip {IBIP}"));
        let rep = names(&format!("rep {}", REP.to_ascii_uppercase()));
        let ibip = names(&format!("ibip {}", IBIP.to_ascii_lowercase()));
        assert!(both.matches(&rep) && rep.matches(&both) && both.matches(&ibip));
        assert!(!rep.matches(&ibip));
        assert!(!rep.matches(&names("rep a.b/c/2009/07.21.14.43")));
    }
}
