//! The Archive service (ibi-resolution(7), "urlRequest"): the answer of an Archive about an identifier, as a
//! list of pairs.
//!
//! It decides which pairs there are and which URLs they hold. It does not know the client or the protocol.

mod accesses;
mod keys;
mod memo;
mod related;

use crate::archive::store::Item;
use crate::archive::{ArchiveError, ReadAs};
use crate::formats::base_url::BaseUrl;
use crate::formats::item::{Names, State};
use crate::formats::query::encoded;
use ibi::Timestamp;
use ibi::pairs::{Pairs, Value};
use ibi::relation::Request;

pub use accesses::AccessCounter;
pub use keys::Keys;
use memo::Memo;
use related::{RelatedItem, Subject};

/// A urlRequest (ibi-resolution(7)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UrlRequest {
    /// The identifier, in either form, or a recorded alias.
    pub ibi: String,
    /// The file whose URL is wanted, relative to the item's `doc/`. Its name need not be UTF-8.
    pub filepath: Option<Vec<u8>>,
    /// The related items that the answer describes.
    pub wanted: WantedItems,
}

impl UrlRequest {
    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        let path = self.filepath.as_ref().map_or(0, Vec::len);
        size_of::<UrlRequest>() + self.ibi.len() + path
    }
}

/// The related items that an answer describes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WantedItems {
    /// All that are known.
    All,
    /// The item itself: the request has no verbs.
    Itself,
    /// Those to which these verbs lead.
    By(Request),
}

/// An Archive that answers.
#[allow(missing_debug_implementations, reason = "it borrows a closure")]
pub struct Service<'a> {
    /// The Archive as the public reads it: only what the public may read has a URL.
    pub archive: ReadAs<'a>,
    /// The URL at which it is reached. The pair `archiveaddress` has its host and port.
    pub url: &'a BaseUrl,
}

/// An answer without its key, which is different each time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlAnswer {
    /// The formatted pairs before the key and after it.
    before: Vec<u8>,
    after: Vec<u8>,
    /// The item for which a key is issued. None for an answer without a key.
    item: Option<String>,
}

impl UrlAnswer {
    /// The complete answer. `key` returns the `urlkey` for an item.
    pub fn with_key(&self, key: impl FnOnce(&str) -> String) -> Vec<u8> {
        let mut bytes = self.before.clone();
        if let Some(item) = &self.item {
            let mut pair = Pairs::default();
            pair.set(KEY, word(key(item)));
            bytes.extend(pair.to_http_bytes());
        }
        bytes.extend_from_slice(&self.after);
        bytes
    }

    /// Its approximate size in bytes.
    pub fn size(&self) -> usize {
        self.before.len() + self.after.len() + self.item.as_ref().map_or(0, String::len)
    }
}

/// The pair that is different in each answer.
const KEY: &str = "urlkey";

impl Service<'_> {
    /// The answer, with its pairs sorted by name. Empty for an item that is unknown or not public.
    pub fn answer(&self, question: &UrlRequest) -> Result<UrlAnswer, ArchiveError> {
        let item = match self.archive.find_named(&question.ibi) {
            Ok(Some(item)) => item,
            // A text that is not an identifier is an unknown one.
            Ok(None) | Err(ArchiveError::Ibi(_)) => return Ok(UrlAnswer::default()),
            Err(error) => return Err(error),
        };
        let is_withdrawn = self.archive.is_withdrawn(&item)?;
        if !is_withdrawn && !self.archive.is_public(&item)? {
            return Ok(UrlAnswer::default());
        }
        let mut pairs = vec![
            ("archiveaddress".to_owned(), word(self.url.address())),
            ("ibi".to_owned(), item.names.to_value()),
            (
                "ibi.archiveservice".to_owned(),
                self.archive.facts().service.to_value(),
            ),
            ("ibi.platformsoftware".to_owned(), Value::List(Vec::new())),
        ];
        // Resolvers treat one that is withdrawn as one that was removed.
        let gone = match (&item.life.withdrawn, is_withdrawn) {
            (Some(withdrawn), true) => Some(&withdrawn.at),
            _ => item.removed_at.as_ref(),
        };
        if is_withdrawn || item.state == State::Deleted {
            pairs.push(("state".to_owned(), word(State::Deleted.to_string())));
            if let Some(removed) = gone {
                pairs.push(("timestamp".to_owned(), word(removed.to_rfc3339())));
            }
            // An original that is withdrawn is still the original: no other Archive may claim it.
            if is_withdrawn {
                pairs.push(("withdrawn".to_owned(), word(item.state.to_string())));
            }
            return Ok(answer(pairs, None));
        }
        let memo = Memo::new(self.archive);
        if let Some(next) = memo.next_edition(&item.names)? {
            pairs.push(("ibi.nextedition".to_owned(), next.to_value()));
        }
        for subject in subjects(&memo, &item, &question.wanted)? {
            self.describe(&memo, &subject, question, &mut pairs)?;
        }
        Ok(answer(pairs, Some(item.names.preferred())))
    }

    fn describe(
        &self,
        memo: &Memo<'_>,
        subject: &Subject,
        question: &UrlRequest,
        pairs: &mut Vec<(String, Value)>,
    ) -> Result<(), ArchiveError> {
        let name = |what: &str| format!("{what}{}", subject.relation);
        let names = match &subject.target {
            RelatedItem::Item(names) => Some(names.clone()),
            RelatedItem::Text(_) => None,
            RelatedItem::Description { metadata, .. } => metadata.clone(),
        };
        if let Some(names) = names.filter(|_| !subject.relation.is_empty()) {
            pairs.push((name("ibi"), names.to_value()));
        }
        let Some((item, url)) = self.url(memo, subject, question)? else {
            return Ok(());
        };
        let content = if subject.is_metadata() || memo.is_metadata(&item)? {
            "Metadata"
        } else {
            "Data"
        };
        pairs.push((name("contenttype"), word(content)));
        pairs.push((name("state"), word(item.state.to_string())));
        let updated = match &subject.target {
            RelatedItem::Item(_) => memo.updated(&item)?,
            RelatedItem::Text(_) | RelatedItem::Description { .. } => memo.described(&item)?,
        };
        if let Some(updated) = updated {
            pairs.push((name("timestamp"), word(seconds(&updated))));
        }
        pairs.push((name("url"), word(url)));
        Ok(())
    }

    /// The URL of a subject, with the item that it serves. None if the item is not held here or not public.
    fn url(
        &self,
        memo: &Memo<'_>,
        subject: &Subject,
        question: &UrlRequest,
    ) -> Result<Option<(Item, String)>, ArchiveError> {
        let is_list = matches!(question.wanted, WantedItems::By(Request::FileList(_)));
        match &subject.target {
            RelatedItem::Item(names) => {
                let Some(item) = memo.held(names)? else {
                    return Ok(None);
                };
                let path = match (is_list, &question.filepath) {
                    (true, _) => Some(format!(
                        "{}?ibiurl.verblist=GetFileList",
                        encoded(item.names.preferred().as_bytes())
                    )),
                    (false, Some(path)) => memo
                        .content_path(&item, Some(path))?
                        .map(|path| content_url(&item.names, &path)),
                    (false, None) => Some(match memo.content_path(&item, None)? {
                        Some(path) => content_url(&item.names, &path),
                        None => encoded(item.names.preferred().as_bytes()),
                    }),
                };
                Ok(path.map(|path| (item, self.absolute(&path))))
            }
            RelatedItem::Text(item) => {
                let path = format!("{}:", encoded(item.names.preferred().as_bytes()));
                Ok(Some((item.clone(), self.absolute(&path))))
            }
            RelatedItem::Description { item, signs, .. } => {
                let path = format!("{}{signs}", encoded(item.names.preferred().as_bytes()));
                Ok(Some((item.clone(), self.absolute(&path))))
            }
        }
    }

    fn absolute(&self, path: &str) -> String {
        self.url.at(path)
    }
}

/// The subjects of an answer.
fn subjects(
    memo: &Memo<'_>,
    item: &Item,
    wanted: &WantedItems,
) -> Result<Vec<Subject>, ArchiveError> {
    match wanted {
        WantedItems::All => related::all(memo, item),
        WantedItems::Itself | WantedItems::By(Request::FileList(None)) => {
            Ok(vec![Subject::itself(item)])
        }
        WantedItems::By(Request::FileList(Some(modifier)) | Request::Modifier(modifier)) => {
            let followed = related::follow(memo, item, modifier.steps())?;
            Ok([followed.reached, followed.elsewhere].concat())
        }
    }
}

/// The path of the content of an item: `col/<rep>/path`, or below its IBIp if it has no rep.
#[must_use]
pub fn content_url(names: &Names, path: &[u8]) -> String {
    let place = match names.rep() {
        Some(rep) => format!("col/{rep}"),
        None => names.preferred(),
    };
    format!("{}/{}", encoded(place.as_bytes()), encoded(path))
}

fn word(text: impl Into<String>) -> Value {
    Value::Word(text.into())
}

/// A time in RFC 3339, to the second.
fn seconds(instant: &Timestamp) -> String {
    Timestamp::from_unix(instant.seconds(), 0).to_rfc3339()
}

fn answer(mut pairs: Vec<(String, Value)>, item: Option<String>) -> UrlAnswer {
    pairs.sort_by(|left, right| left.0.cmp(&right.0));
    let (mut before, mut after) = (Pairs::default(), Pairs::default());
    for (name, value) in pairs {
        if name.as_str() < KEY {
            before.set(&name, value);
        } else {
            after.set(&name, value);
        }
    }
    UrlAnswer {
        before: before.to_http_bytes(),
        after: after.to_http_bytes(),
        item,
    }
}

#[cfg(test)]
mod tests;
