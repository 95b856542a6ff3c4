//! The description of a document that an actor registers.

use super::parameters::{Group, Parameters};
use super::{DocumentFingerprint, LastUpdate, RequestError, WebUrl};
use ibi::relation::{Language, MetadataFormat};

/// A document as one actor describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Whether its author has assigned the rights in it to the actor.
    pub is_original: bool,
    /// Its location; None where only its metadata are registered.
    pub content: Option<DocumentContent>,
    /// The MD5 digest of the document.
    pub fingerprint: Option<DocumentFingerprint>,
    /// Its metadata, in the order given.
    pub metadata: Vec<Metadata>,
    /// The URL of its previous edition.
    pub previous: Option<WebUrl>,
    /// The URL of its next edition.
    pub next: Option<WebUrl>,
}

/// The location of a document, and the time of its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentContent {
    /// The URL.
    pub url: WebUrl,
    /// The time of the last change.
    pub updated: LastUpdate,
}

/// Metadata of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The URL.
    pub url: WebUrl,
    /// The time of the last change.
    pub updated: LastUpdate,
    /// The format, if it is given.
    pub format: Option<MetadataFormat>,
    /// The language, if it is given.
    pub language: Option<Language>,
}

impl Document {
    pub(super) fn of(parameters: &Parameters<'_>) -> Result<Document, RequestError> {
        let url = |name: &'static str| {
            let text = parameters.get(name);
            text.map(|text| WebUrl::parse(name, text)).transpose()
        };
        let updated = parameters.get("documentLastUpdate");
        let content = match (url("documentURL")?, updated) {
            (Some(url), Some(updated)) => Some(DocumentContent {
                url,
                updated: LastUpdate::parse("documentLastUpdate", updated)?,
            }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(RequestError::Alone("documentURL", "documentLastUpdate"));
            }
            (None, Some(_)) => {
                return Err(RequestError::Alone("documentLastUpdate", "documentURL"));
            }
        };
        let metadata = parameters.groups().map(|group| Metadata::of(&group));
        let document = Document {
            is_original: match parameters.get("originalDocument") {
                Some("yes") => true,
                Some("no") | None => false,
                Some(other) => {
                    return Err(RequestError::Form {
                        name: "originalDocument",
                        value: other.to_owned(),
                        wanted: "yes or no",
                    });
                }
            },
            content,
            fingerprint: parameters
                .get("fingerprint")
                .map(DocumentFingerprint::parse)
                .transpose()?,
            metadata: metadata.collect::<Result<_, _>>()?,
            previous: url("previousEditionURL")?,
            next: url("nextEditionURL")?,
        };
        if document.content.is_none() && document.metadata.is_empty() {
            Err(RequestError::NoUrl)
        } else {
            Ok(document)
        }
    }

    /// The metadata in a format, or in any, in the language that comes first in `languages`.
    #[must_use]
    pub fn described(
        &self,
        format: Option<&MetadataFormat>,
        languages: &[Language],
    ) -> Option<&Metadata> {
        let fitting = self.metadata.iter();
        let fitting =
            fitting.filter(|metadata| format.is_none() || metadata.format.as_ref() == format);
        fitting.min_by_key(|metadata| {
            let given = metadata.language.as_ref();
            let meets = |wanted: &Language| given.is_some_and(|given| given.matches(wanted));
            languages.iter().position(meets).unwrap_or(languages.len())
        })
    }

    /// All URLs of the document, each with the name of its parameter.
    pub fn urls(&self) -> impl Iterator<Item = (&'static str, &WebUrl)> {
        let content = self.content.iter().map(|found| ("documentURL", &found.url));
        let metadata = self
            .metadata
            .iter()
            .map(|found| ("metadataURL", &found.url));
        let previous = self.previous.iter().map(|url| ("previousEditionURL", url));
        let next = self.next.iter().map(|url| ("nextEditionURL", url));
        content.chain(metadata).chain(previous).chain(next)
    }
}

impl Metadata {
    fn of(group: &Group<'_>) -> Result<Metadata, RequestError> {
        let url = group.get("metadataURL");
        let updated = group.get("metadataLastUpdate");
        let format = group
            .get("metadataFormat")
            .map(MetadataFormat::parse)
            .transpose();
        let language = group.get("metadataLanguage").map(Language::parse);
        let (Some(url), Some(updated)) = (url, updated) else {
            let alone = match url {
                Some(_) => RequestError::Alone("metadataURL", "metadataLastUpdate"),
                None if updated.is_some() => {
                    RequestError::Alone("metadataLastUpdate", "metadataURL")
                }
                None => RequestError::Alone("metadataFormat or metadataLanguage", "metadataURL"),
            };
            return Err(alone);
        };
        Ok(Metadata {
            url: WebUrl::parse("metadataURL", url)?,
            updated: LastUpdate::parse("metadataLastUpdate", updated)?,
            format: format.map_err(|error| RequestError::Word("metadataFormat", error))?,
            language: language
                .transpose()
                .map_err(|error| RequestError::Word("metadataLanguage", error))?,
        })
    }
}
