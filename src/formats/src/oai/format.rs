//! The formats in which records are harvested.

use crate::description::{DescriptionFormat, OPENAIRE, OPENAIRE_SCHEMA};

/// A format of records, one that has an XML schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OaiFormat {
    /// Dublin Core, the format of records that every service has.
    OaiDc,
    /// DataCite 4.
    Datacite,
    /// The profile of OpenAIRE, which not every record has: some of its elements are mandatory.
    Openaire,
}

impl OaiFormat {
    /// All formats.
    pub const ALL: [OaiFormat; 3] = [OaiFormat::OaiDc, OaiFormat::Datacite, OaiFormat::Openaire];

    /// Its prefix.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            OaiFormat::OaiDc => "oai_dc",
            OaiFormat::Datacite => "datacite",
            OaiFormat::Openaire => "oai_openaire",
        }
    }

    /// The format with a prefix.
    #[must_use]
    pub fn of_prefix(prefix: &str) -> Option<OaiFormat> {
        let formats = OaiFormat::ALL.into_iter();
        formats.into_iter().find(|format| format.prefix() == prefix)
    }

    /// Its namespace and its schema.
    #[must_use]
    pub fn schema(self) -> (&'static str, &'static str) {
        let described = self.description().and_then(DescriptionFormat::schema);
        described.unwrap_or((OPENAIRE, OPENAIRE_SCHEMA))
    }

    /// The format of descriptions that is the same.
    #[must_use]
    pub fn description(self) -> Option<DescriptionFormat> {
        match self {
            OaiFormat::OaiDc => Some(DescriptionFormat::OaiDc),
            OaiFormat::Datacite => Some(DescriptionFormat::Datacite),
            OaiFormat::Openaire => None,
        }
    }
}
