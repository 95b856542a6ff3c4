//! The parts of an identifier by their names, and the characters that they are made of, for errors.

use crate::message;
use crate::message::{Localize, Message};

/// The kind of thing that a text is read as, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Ibi,
    Rep,
    RepPrefix,
    Ibip,
    IbipPrefix,
    IbipSuffix,
    LegacyIbip,
    Alias,
    Host,
    Component,
    Subdomain,
    SubdomainWord,
    LastSubdomainWord,
    Word,
    Prefix,
    Suffix,
    Address,
    Port,
    Date,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Seconds,
    Fraction,
}

impl Localize for Part {
    fn message(&self) -> Message {
        match self {
            Part::Ibi => message!("IBI"),
            Part::Rep => message!("rep"),
            Part::RepPrefix => message!("rep prefix"),
            Part::Ibip => message!("IBIp"),
            Part::IbipPrefix => message!("IBIp prefix"),
            Part::IbipSuffix => message!("IBIp suffix"),
            Part::LegacyIbip => message!("legacy IBIp"),
            Part::Alias => message!("alias"),
            Part::Host => message!("host"),
            Part::Component => message!("component"),
            Part::Subdomain => message!("subdomain"),
            Part::SubdomainWord => message!("word of the subdomain"),
            Part::LastSubdomainWord => message!("last word of the subdomain"),
            Part::Word => message!("word"),
            Part::Prefix => message!("prefix"),
            Part::Suffix => message!("suffix"),
            Part::Address => message!("address"),
            Part::Port => message!("port"),
            Part::Date => message!("date"),
            Part::Year => message!("year"),
            Part::Month => message!("month"),
            Part::Day => message!("day"),
            Part::Hour => message!("hour"),
            Part::Minute => message!("minute"),
            Part::Second => message!("second"),
            Part::Seconds => message!("seconds"),
            Part::Fraction => message!("fraction"),
        }
    }
}

/// The characters that a part is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    Digits,
    LettersAndDigits,
    Label,
    Base27,
    /// Digits of base 27, where both separators have been taken away.
    Base27Number,
    /// Digits and separators of base 53.
    Base53,
    Base53Number,
}

impl Localize for Alphabet {
    fn message(&self) -> Message {
        match self {
            Alphabet::Digits => message!("only digits do"),
            Alphabet::LettersAndDigits => message!("only letters and digits do"),
            Alphabet::Label => message!("only letters, digits and inner hyphens do"),
            Alphabet::Base27 => {
                message!("only 2 to 9 and letters except I, O, V, Y and Z do")
            }
            Alphabet::Base53 => message!("only 2 to 9 and letters except I, O and l do"),
            Alphabet::Base53Number => {
                message!("only 2 to 9 and letters except I, O, W, X, Y, Z and l do")
            }
            Alphabet::Base27Number => message!("W and X separate, and have their place once"),
        }
    }
}
