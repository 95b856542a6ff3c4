//! The errors of the protocol.

/// The error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An argument is missing, repeated, unknown or malformed.
    BadArgument,
    /// The resumption token is not valid.
    BadResumptionToken,
    /// The verb is missing, repeated, or not one of the six.
    BadVerb,
    /// The format is not oai_dc.
    CannotDisseminateFormat,
    /// No record of this Archive has the identifier.
    IdDoesNotExist,
    /// The list is empty.
    NoRecordsMatch,
    /// The record is deleted.
    NoMetadataFormats,
    /// The Archive has no sets.
    NoSetHierarchy,
}

impl Code {
    /// The code as the protocol spells it.
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
    /// The error code.
    pub code: Code,
    /// What is wrong, and the correct form.
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
