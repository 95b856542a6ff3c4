//! The errors of the protocol.

/// Which error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An argument is missing, repeated, unknown, or not of its form.
    BadArgument,
    /// No token of ours.
    BadResumptionToken,
    /// No verb, two, or none of the six.
    BadVerb,
    /// Another format than oai_dc.
    CannotDisseminateFormat,
    /// No record of this Archive has this identifier.
    IdDoesNotExist,
    /// The list is empty.
    NoRecordsMatch,
    /// The record is deleted.
    NoMetadataFormats,
    /// There are no sets.
    NoSetHierarchy,
}

impl Code {
    /// As the protocol spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Code::BadArgument => "badArgument",
            Code::BadResumptionToken => "badResumptionToken",
            Code::BadVerb => "badVerb",
            Code::CannotDisseminateFormat => "cannotDisseminateFormat",
            Code::IdDoesNotExist => "idDoesNotExist",
            Code::NoRecordsMatch => "noRecordsMatch",
            Code::NoMetadataFormats => "noMetadataFormats",
            Code::NoSetHierarchy => "noSetHierarchy",
        }
    }
}

/// An error, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which error.
    pub code: Code,
    /// What is wrong, and what would be right.
    pub sentence: String,
}

impl Fault {
    /// An error with its sentence.
    #[must_use]
    pub fn new(code: Code, sentence: impl Into<String>) -> Fault {
        Fault {
            code,
            sentence: sentence.into(),
        }
    }
}
