//! The way of a resolver from a persistent URL to the URL of what it names, see ibi-resolution(7): the queries to
//! Archives, and the meaning of their answers. No socket, no clock.

mod persistent;

use crate::base_url::BaseUrl;
use crate::item::{Names, State};
use crate::query::encoded;
use ibi::Ibi;
use ibi::pairs::{Pairs, Value};
use ibi::relation::{Language, Request, Step};

pub use persistent::{Persistent, PersistentUrlError, item_of};

/// Returns the URL of the Archive service with these names, at the URL of its Archive.
#[must_use]
pub fn service_url(url: &BaseUrl, service: &Names) -> String {
    url.at(&encoded(service.preferred().as_bytes()))
}

/// The query that all Archives get in one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveQuery {
    /// The identifier.
    pub ibi: String,
    /// The path of a file of the item, which need not be UTF-8.
    pub filepath: Option<Vec<u8>>,
    /// The requested related item, or the list of its files; None for the item itself.
    pub request: Option<Request>,
}

/// The place at which the requested item is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The URL to which the reader is redirected.
    pub url: String,
    /// Its state there, original or copy, if the answer says so.
    pub state: Option<State>,
    /// The pairs that are sent back to the Archive (`acknowledgment`, see ibi-resolution(7)): contenttype,
    /// ibi, state, urlkey.
    acknowledged: Vec<(&'static str, String)>,
}

/// The meaning of an Archive's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerMeaning {
    /// The Archive does not know the identifier.
    Nothing,
    /// The item was removed there.
    Deleted,
    /// The Archive knows the item, but neither has what is requested nor names another item to ask for.
    Unsatisfying,
    /// The Archive has what is requested.
    Reached(Location),
    /// The next query, to all Archives.
    Onward(ArchiveQuery),
}

impl ArchiveQuery {
    /// The query of `urlRequest`. It contains neither the languages that a reader prefers, which are private
    /// to the reader, nor that an original is required, which a dishonest Archive must not know.
    #[must_use]
    pub fn query(&self, reader: &str) -> String {
        let mut pairs = vec![
            ("clientinformation.ipaddress", reader.as_bytes()),
            ("parsedibiurl.ibi", self.ibi.as_bytes()),
        ];
        let path = self
            .filepath
            .as_ref()
            .map(|path| [b"/", path.as_slice()].concat());
        if let Some(path) = &path {
            pairs.push(("parsedibiurl.filepath", path));
        }
        // An empty list keeps the answer short: without a list, an Archive returns all relations.
        let verbs = self.request.as_ref().map_or(String::new(), Request::verbs);
        pairs.push(("parsedibiurl.verblist", verbs.as_bytes()));
        pairs.push(("servicesubject", b"urlRequest"));
        query_of(&pairs)
    }

    /// The steps to the requested item; none for the item itself.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.request.as_ref().map_or(&[], Request::steps)
    }

    fn is_file_list(&self) -> bool {
        matches!(self.request, Some(Request::FileList(_)))
    }

    /// This query for another item, with the remaining steps.
    fn from(&self, names: &Names, steps: &[Step]) -> Option<ArchiveQuery> {
        Some(ArchiveQuery {
            ibi: names.preferred(),
            filepath: self.filepath.clone(),
            request: Request::of_steps(steps.to_vec(), self.is_file_list()).ok()?,
        })
    }

    /// The meaning of an Archive's answer to this query. `languages` are the reader's preferences, best
    /// first.
    #[must_use]
    pub fn meaning(&self, answer: &Pairs, languages: &[Language]) -> AnswerMeaning {
        let Some(ibi) = answer.get("ibi").and_then(names) else {
            return AnswerMeaning::Nothing;
        };
        if word(answer, "state") == Some("Deleted") {
            return AnswerMeaning::Deleted;
        }
        let known = ArchiveAnswer {
            answer,
            languages,
            itself: &ibi,
        };
        let reached = known.best("url", self.steps());
        let reached = reached.and_then(|found| match found.value.words() {
            [url] if is_url(url) => Some((found.rank, known.reached(&found.relation, url))),
            _ => None,
        });
        let onward = self.onward(&known, reached.as_ref().map(|(rank, _)| rank.as_slice()));
        match (onward, reached) {
            (Some(next), _) => AnswerMeaning::Onward(next),
            (None, Some((_, reached))) => AnswerMeaning::Reached(reached),
            (None, None) => AnswerMeaning::Unsatisfying,
        }
    }

    /// The query for the state of the item itself, if a related item is requested and the answer does not
    /// have that state, which an Archive may omit. The state determines whether the answer is authoritative.
    #[must_use]
    pub fn about_the_item(&self, answer: &Pairs) -> Option<ArchiveQuery> {
        let is_untold = !self.steps().is_empty()
            && answer.get("ibi").is_some()
            && answer.get("state").is_none();
        is_untold.then(|| ArchiveQuery {
            ibi: self.ibi.clone(),
            filepath: None,
            request: None,
        })
    }

    /// Whether a related item is requested and the answering Archive does not hold the original. Such an
    /// Archive reports only what it has of items of others. `item` is its answer about the item itself.
    #[must_use]
    pub fn is_hearsay(&self, item: &Pairs) -> bool {
        !self.steps().is_empty() && word(item, "state") != Some("Original")
    }

    /// The next query, if it suits the reader better than what has been reached, if anything.
    fn onward(&self, known: &ArchiveAnswer<'_>, reached: Option<&[usize]>) -> Option<ArchiveQuery> {
        let steps = self.steps();
        let part = |count: usize| {
            let (way, rest) = steps.split_at_checked(count)?;
            let found = known.best("ibi", way)?;
            let is_better = reached
                .is_none_or(|rank| found.rank.as_slice() < rank.get(..count).unwrap_or(rank));
            self.from(&names(found.value).filter(|_| is_better)?, rest)
        };
        // An item with the metadata in another format is not these metadata. An Archive with the described
        // item has them in the requested format.
        let is_in_format = matches!(steps.last(), Some(Step::Metadata(Some(_))));
        let whole = (!steps.is_empty()).then_some(steps.len());
        let (first, last) = if is_in_format {
            (None, whole)
        } else {
            (whole, None)
        };
        let next_edition = || {
            let is_wanted = reached.is_none() && steps.first() == Some(&Step::LastEdition);
            let next = known.answer.get("ibi.nextedition").filter(|_| is_wanted)?;
            self.from(&names(next)?, steps)
        };
        first
            .and_then(part)
            .or_else(|| (1..steps.len()).rev().find_map(part))
            .or_else(next_edition)
            .or_else(|| last.and_then(part))
    }
}

impl Location {
    /// The query of `acknowledgment`, for a reader who used this persistent URL.
    #[must_use]
    pub fn acknowledgment(&self, reader: &str, persistent: &str) -> String {
        let mut pairs = self.acknowledged.clone();
        pairs.extend([
            ("clientinformation.ipaddress", reader.to_owned()),
            ("servicesubject", "acknowledgment".to_owned()),
            ("url", self.url.clone()),
            ("url.persistent", persistent.to_owned()),
        ]);
        pairs.sort();
        query_of(&pairs)
    }
}

fn query_of<T: AsRef<[u8]>>(pairs: &[(&'static str, T)]) -> String {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value.as_ref())));
    pairs.collect::<Vec<String>>().join("&")
}

fn word<'a>(answer: &'a Pairs, name: &str) -> Option<&'a str> {
    match answer.get(name)?.words() {
        [word] => Some(word),
        _ => None,
    }
}

fn names(value: &Value) -> Option<Names> {
    Names::from_value(value).ok().or_else(|| {
        // A single form may be written without braces.
        let [word] = value.words() else { return None };
        Ibi::parse(word).ok().map(Names::from)
    })
}

/// Whether a reader may be redirected to this text: an `http` or `https` URL.
fn is_url(text: &str) -> bool {
    let is_web = ["http://", "https://"]
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    is_web && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// An answer, with the reader's languages and the item that it is about.
struct ArchiveAnswer<'a> {
    answer: &'a Pairs,
    languages: &'a [Language],
    itself: &'a Names,
}

/// A pair whose relation is the requested one.
struct RankedPair<'a> {
    /// Its rank for the reader, step by step; lower is better.
    rank: Vec<usize>,
    /// The relation as written.
    relation: String,
    value: &'a Value,
}

impl<'a> ArchiveAnswer<'a> {
    fn reached(&self, relation: &str, url: &str) -> Location {
        let mut acknowledged = Vec::new();
        let mut acknowledge = |what: &'static str, name: &str| {
            if let Some(value) = self.answer.get(name) {
                acknowledged.push((what, value.words().join(" ")));
            }
        };
        acknowledge("contenttype", &format!("contenttype{relation}"));
        acknowledge("ibi", &format!("ibi{relation}"));
        acknowledge("state", &format!("state{relation}"));
        acknowledge("urlkey", "urlkey");
        let state = word(self.answer, &format!("state{relation}"));
        Location {
            url: url.to_owned(),
            state: state.and_then(|state| state.parse().ok()),
            acknowledged,
        }
    }

    /// Of the pairs `what<relation>` with the requested relation, the one that suits the reader best.
    fn best(&self, what: &str, wanted: &[Step]) -> Option<RankedPair<'a>> {
        let fitting = self.answer.iter().filter_map(|(name, value)| {
            let relation = name.strip_prefix(what)?;
            Some(RankedPair {
                rank: self.rank(wanted, relation)?,
                relation: relation.to_owned(),
                value,
            })
        });
        fitting.min_by(|left, right| left.rank.cmp(&right.rank))
    }

    /// Returns how well the steps of a relation match the requested ones; None if they differ.
    fn rank(&self, wanted: &[Step], relation: &str) -> Option<Vec<usize>> {
        let given = Step::parse_relation(relation)?;
        if wanted.len() != given.len() {
            return None;
        }
        let mut ends = relation.match_indices('.').map(|(at, _)| at).skip(1);
        let mut rank = Vec::with_capacity(given.len());
        for (wanted, given) in wanted.iter().zip(&given) {
            let end = ends.next().unwrap_or(relation.len());
            rank.push(match (wanted, given) {
                (Step::LastEdition, Step::LastEdition) => 0,
                (Step::Metadata(wanted), Step::Metadata(given)) if wanted == given => 0,
                // Metadata in any format.
                (Step::Metadata(None), Step::Metadata(Some(_))) => 1,
                (Step::Translation(Some(wanted)), Step::Translation(Some(given))) => {
                    match (wanted == given, given.matches(wanted)) {
                        (true, _) => 0,
                        (false, true) => 1,
                        (false, false) => return None,
                    }
                }
                (Step::Translation(None), Step::Translation(given)) => {
                    self.preference(given.as_ref(), relation.get(..end)?)
                }
                _ => return None,
            });
        }
        Some(rank)
    }

    /// The reader's preference for the target of a relation that ends in a translation. If it matches no
    /// preferred language, the item itself is better than any other text, if its language is known.
    fn preference(&self, given: Option<&Language>, relation: &str) -> usize {
        let meets = |wanted: &Language| given.is_some_and(|given| given.matches(wanted));
        let place = self.languages.iter().position(meets);
        place.unwrap_or_else(|| {
            let target = self.answer.get(&format!("ibi{relation}")).and_then(names);
            let is_itself = target.is_some_and(|target| target.matches(self.itself));
            self.languages.len() + usize::from(!is_itself || given.is_none())
        })
    }
}

#[cfg(test)]
mod tests;
