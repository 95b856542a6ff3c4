//! The Archive service of SPEC 8: what an Archive answers of an identifier, as a list of pairs.
//!
//! It knows what there is to say and under which URL it can be had; not who asks, nor how the answer
//! travels.

mod accesses;
mod keys;
mod known;
mod spread;

use crate::archive::store::Item;
use crate::archive::tree::Dependencies;
use crate::archive::{Act, Archive, ArchiveError};
use crate::formats::item::{Names, State};
use crate::formats::query::encoded;
use ibi::Timestamp;
use ibi::pairs::{Pairs, Value};
use ibi::relation::Request;

pub use accesses::Accesses;
pub use keys::Keys;
use known::Known;
use spread::{Found, Target};

/// What is asked of an Archive (SPEC 8, `urlRequest`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The identifier, in either form, or a recorded alias.
    pub ibi: String,
    /// The file whose URL is wanted, relative to the item's `doc/` (SPEC 5).
    pub filepath: Option<String>,
    /// Which of the items related to it.
    pub wanted: Wanted,
}

impl Question {
    /// How many bytes it takes, roughly.
    pub fn size(&self) -> usize {
        let path = self.filepath.as_ref().map_or(0, String::len);
        size_of::<Question>() + self.ibi.len() + path
    }
}

/// Which of the related items an answer is to tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// All that is known.
    All,
    /// The item itself: no verbs were given.
    Itself,
    /// What these verbs lead to.
    By(Request),
}

/// An Archive that answers.
#[allow(missing_debug_implementations, reason = "it borrows a closure")]
pub struct Service<'a> {
    /// The Archive.
    pub archive: &'a Archive,
    /// Where it is reached: `host` or `host:port` (SPEC 8, `archiveaddress`).
    pub address: &'a str,
    /// Whoever the content is for: only what they may read has a URL.
    pub act: Act<'a>,
    /// What is looked at for an answer, beside the index.
    pub dependencies: &'a Dependencies,
}

/// An answer, of which only the key is missing, which is new each time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The pairs before the key's and after it, one a line.
    before: Vec<u8>,
    after: Vec<u8>,
    /// The item that a key is handed out for, by its name; None where none is.
    item: Option<String>,
}

impl Answer {
    /// The whole answer. `key` makes the `urlkey` for an item.
    pub fn with_key(&self, key: impl FnOnce(&str) -> String) -> Vec<u8> {
        let mut bytes = self.before.clone();
        if let Some(item) = &self.item {
            let mut pair = Pairs::default();
            pair.set(KEY, word(key(item)));
            bytes.extend(pair.to_bytes());
        }
        bytes.extend_from_slice(&self.after);
        bytes
    }

    /// How many bytes it takes, roughly.
    pub fn size(&self) -> usize {
        self.before.len() + self.after.len() + self.item.as_ref().map_or(0, String::len)
    }
}

/// The pair that is new in each answer.
const KEY: &str = "urlkey";

impl Service<'_> {
    /// The answer, its pairs by name; empty for what is not known here.
    pub fn answer(&self, question: &Question) -> Result<Answer, ArchiveError> {
        let Some(item) = self.archive.find_named(&question.ibi)? else {
            return Ok(Answer::default());
        };
        if !self.archive.is_public(&item, self.act, self.dependencies)? {
            return Ok(Answer::default());
        }
        let mut said = vec![
            ("archiveaddress".to_owned(), word(self.address)),
            ("ibi".to_owned(), item.names.to_value()),
            (
                "ibi.archiveservice".to_owned(),
                self.archive.facts().service.to_value(),
            ),
            ("ibi.platformsoftware".to_owned(), Value::List(Vec::new())),
        ];
        if item.state == State::Deleted {
            said.push(("state".to_owned(), word(item.state.to_string())));
            if let Some(removed) = &item.removed_at {
                said.push(("timestamp".to_owned(), word(removed.to_rfc3339())));
            }
            return Ok(answer(said, None));
        }
        let known = Known::new(self.archive, self.act, self.dependencies);
        if let Some(next) = known.next_edition(&item.names)? {
            said.push(("ibi.nextedition".to_owned(), next.to_value()));
        }
        for found in found(&known, &item, &question.wanted)? {
            self.say(&known, &found, question, &mut said)?;
        }
        Ok(answer(said, Some(item.names.preferred())))
    }

    fn say(
        &self,
        known: &Known<'_>,
        found: &Found,
        question: &Question,
        said: &mut Vec<(String, Value)>,
    ) -> Result<(), ArchiveError> {
        let name = |what: &str| format!("{what}{}", found.relation);
        let names = match &found.target {
            Target::Item(names) => Some(names.clone()),
            Target::Text(_) => None,
            Target::DublinCore { metadata, .. } => metadata.clone(),
        };
        if let Some(names) = names.filter(|_| !found.relation.is_empty()) {
            said.push((name("ibi"), names.to_value()));
        }
        let Some((item, url)) = self.url(known, found, question)? else {
            return Ok(());
        };
        let content = if found.is_metadata() || known.is_metadata(&item)? {
            "Metadata"
        } else {
            "Data"
        };
        said.push((name("contenttype"), word(content)));
        said.push((name("state"), word(item.state.to_string())));
        if let Some(updated) = known.updated(&item)? {
            said.push((name("timestamp"), word(seconds(&updated))));
        }
        said.push((name("url"), word(url)));
        Ok(())
    }

    /// The URL of what was found, with the item that is had there; None where it is not here, or not
    /// for whoever asks.
    fn url(
        &self,
        known: &Known<'_>,
        found: &Found,
        question: &Question,
    ) -> Result<Option<(Item, String)>, ArchiveError> {
        let is_list = matches!(question.wanted, Wanted::By(Request::FileList(_)));
        match &found.target {
            Target::Item(names) => {
                let Some(item) = known.held(names)? else {
                    return Ok(None);
                };
                let path = match (is_list, &question.filepath) {
                    (true, _) => Some(format!(
                        "{}?ibiurl.verblist=GetFileList",
                        encoded(item.names.preferred().as_bytes())
                    )),
                    (false, Some(path)) => known
                        .content_path(&item, Some(path))?
                        .map(|path| content_url(&item.names, &path)),
                    (false, None) => Some(match known.content_path(&item, None)? {
                        Some(path) => content_url(&item.names, &path),
                        None => encoded(item.names.preferred().as_bytes()),
                    }),
                };
                Ok(path.map(|path| (item, self.absolute(&path))))
            }
            Target::Text(item) => {
                let path = format!("{}:", encoded(item.names.preferred().as_bytes()));
                Ok(Some((item.clone(), self.absolute(&path))))
            }
            Target::DublinCore { item, signs, .. } => {
                let path = format!("{}{signs}", encoded(item.names.preferred().as_bytes()));
                Ok(Some((item.clone(), self.absolute(&path))))
            }
        }
    }

    fn absolute(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

/// What an answer tells of.
fn found(known: &Known<'_>, item: &Item, wanted: &Wanted) -> Result<Vec<Found>, ArchiveError> {
    match wanted {
        Wanted::All => spread::all(known, item),
        Wanted::Itself | Wanted::By(Request::FileList(None)) => Ok(vec![Found::itself(item)]),
        Wanted::By(Request::FileList(Some(modifier)) | Request::Modifier(modifier)) => {
            let way = spread::follow(known, item, modifier.steps())?;
            Ok([way.reached, way.elsewhere].concat())
        }
    }
}

/// Where the content of an item is had: `col/<rep>/path`, or below its IBIp where it has no rep.
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

/// An instant to the second, as the documents write it.
fn seconds(instant: &Timestamp) -> String {
    Timestamp::from_unix(instant.seconds(), 0).to_rfc3339()
}

fn answer(mut said: Vec<(String, Value)>, item: Option<String>) -> Answer {
    said.sort_by(|left, right| left.0.cmp(&right.0));
    let (mut before, mut after) = (Pairs::default(), Pairs::default());
    for (name, value) in said {
        if name.as_str() < KEY {
            before.set(&name, value);
        } else {
            after.set(&name, value);
        }
    }
    Answer {
        before: before.to_bytes(),
        after: after.to_bytes(),
        item,
    }
}
