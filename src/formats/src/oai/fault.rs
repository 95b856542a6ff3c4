//! The errors of the protocol.

/// The error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OaiErrorCode {
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

impl OaiErrorCode {
    /// The code as the protocol spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            OaiErrorCode::BadArgument => "badArgument",
            OaiErrorCode::BadResumptionToken => "badResumptionToken",
            OaiErrorCode::BadVerb => "badVerb",
            OaiErrorCode::CannotDisseminateFormat => "cannotDisseminateFormat",
            OaiErrorCode::IdDoesNotExist => "idDoesNotExist",
            OaiErrorCode::NoRecordsMatch => "noRecordsMatch",
            OaiErrorCode::NoMetadataFormats => "noMetadataFormats",
            OaiErrorCode::NoSetHierarchy => "noSetHierarchy",
        }
    }
}

/// An error, with a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OaiError {
    /// The error code.
    pub code: OaiErrorCode,
    /// The error, and the correct form.
    pub sentence: String,
}

impl OaiError {
    /// An error with its sentence.
    #[must_use]
    pub fn new(code: OaiErrorCode, sentence: impl Into<String>) -> OaiError {
        OaiError {
            code,
            sentence: sentence.into(),
        }
    }
}
