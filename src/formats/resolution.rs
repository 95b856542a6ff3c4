//! How a resolver comes from a persistent URL to the URL of what it names (see ibi-resolution(7)): what is asked
//! of Archives, and what their answers mean. No socket, no clock.

mod persistent;

use crate::formats::item::{Names, State};
use crate::formats::query::encoded;
use ibi::Ibi;
use ibi::pairs::{Pairs, Value};
use ibi::relation::{Language, Request, Step};

pub use persistent::{Persistent, PersistentError, asked};

/// What is asked of all Archives in one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The identifier.
    pub ibi: String,
    /// The path of a file of the item.
    pub filepath: Option<String>,
    /// What related item, or the list of its files; None for the item itself.
    pub request: Option<Request>,
}

/// Where what was asked for is had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The URL to which a reader is sent.
    pub url: String,
    /// Whether it is the original, where that is said.
    pub state: Option<State>,
    /// The pairs with which the Archive is told (`acknowledgment`, see ibi-resolution(7)): contenttype, ibi, state, urlkey.
    told: Vec<(&'static str, String)>,
}

/// What an Archive's answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It knows nothing of the identifier.
    Nothing,
    /// The item was removed there.
    Deleted,
    /// It knows the item, and neither has what is asked for nor says who may.
    Unsatisfying,
    /// What is asked for is had there.
    Reached(Reached),
    /// What to ask next, of all.
    Onward(Question),
}

impl Question {
    /// The query of `urlRequest`. It says neither what languages a reader prefers nor that an original is
    /// wanted: the one is the reader's own affair, the other a dishonest Archive must not know.
    #[must_use]
    pub fn query(&self, reader: &str) -> String {
        let mut pairs = vec![
            ("clientinformation.ipaddress", reader.to_owned()),
            ("parsedibiurl.ibi", self.ibi.clone()),
        ];
        if let Some(path) = &self.filepath {
            pairs.push(("parsedibiurl.filepath", path.clone()));
        }
        // An empty list keeps the answer short: all relations are told without one.
        let verbs = self.request.as_ref().map_or(String::new(), Request::verbs);
        pairs.push(("parsedibiurl.verblist", verbs));
        pairs.push(("servicesubject", "urlRequest".to_owned()));
        query_of(&pairs)
    }

    /// The steps that lead to what is asked for; none for the item itself.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.request.as_ref().map_or(&[], Request::steps)
    }

    fn is_file_list(&self) -> bool {
        matches!(self.request, Some(Request::FileList(_)))
    }

    /// The same, of another item, for what is left of the way.
    fn from(&self, names: &Names, steps: &[Step]) -> Option<Question> {
        Some(Question {
            ibi: names.preferred(),
            filepath: self.filepath.clone(),
            request: Request::of_steps(steps.to_vec(), self.is_file_list()).ok()?,
        })
    }

    /// What an Archive's answer to this means. `languages` are what the reader prefers, best first.
    #[must_use]
    pub fn meaning(&self, answer: &Pairs, languages: &[Language]) -> Meaning {
        let Some(ibi) = answer.get("ibi").and_then(names) else {
            return Meaning::Nothing;
        };
        if word(answer, "state") == Some("Deleted") {
            return Meaning::Deleted;
        }
        let known = Known {
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
            (Some(next), _) => Meaning::Onward(next),
            (None, Some((_, reached))) => Meaning::Reached(reached),
            (None, None) => Meaning::Unsatisfying,
        }
    }

    /// What tells whose word an answer is, where what is asked for is related to the item and the answer
    /// does not say the state of the item itself, as an Archive may leave out what is not asked for.
    #[must_use]
    pub fn about_the_item(&self, answer: &Pairs) -> Option<Question> {
        let is_untold = !self.steps().is_empty()
            && answer.get("ibi").is_some()
            && answer.get("state").is_none();
        is_untold.then(|| Question {
            ibi: self.ibi.clone(),
            filepath: None,
            request: None,
        })
    }

    /// Whether what is asked for is related to the item, and the answer is not that of the Archive which
    /// holds the original: such an Archive says what it has of the items of others. `item` is its answer
    /// about the item itself.
    #[must_use]
    pub fn is_hearsay(&self, item: &Pairs) -> bool {
        !self.steps().is_empty() && word(item, "state") != Some("Original")
    }

    /// What to ask next, where that suits the reader better than what is reached, if anything is.
    fn onward(&self, known: &Known<'_>, reached: Option<&[usize]>) -> Option<Question> {
        let steps = self.steps();
        let part = |count: usize| {
            let (way, rest) = steps.split_at_checked(count)?;
            let found = known.best("ibi", way)?;
            let is_better = reached
                .is_none_or(|rank| found.rank.as_slice() < rank.get(..count).unwrap_or(rank));
            self.from(&names(found.value).filter(|_| is_better)?, rest)
        };
        // The item that has the metadata in another format is not these metadata: whoever holds what
        // they describe has them in the format that is asked for.
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

impl Reached {
    /// The query of `acknowledgment`, for a reader who asked by this persistent URL.
    #[must_use]
    pub fn acknowledgment(&self, reader: &str, persistent: &str) -> String {
        let mut pairs = self.told.clone();
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

fn query_of(pairs: &[(&'static str, String)]) -> String {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value.as_bytes())));
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
        // One form alone may be written as it is.
        let [word] = value.words() else { return None };
        Ibi::parse(word).ok().map(Names::from)
    })
}

/// Whether a reader may be sent there.
fn is_url(text: &str) -> bool {
    let is_web = ["http://", "https://"]
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    is_web && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What an answer says, and to whom.
struct Known<'a> {
    answer: &'a Pairs,
    languages: &'a [Language],
    itself: &'a Names,
}

/// A pair whose relation is the one that is asked for.
struct Found<'a> {
    /// How well it suits the reader, step by step, the lower the better.
    rank: Vec<usize>,
    /// The relation as written.
    relation: String,
    value: &'a Value,
}

impl<'a> Known<'a> {
    fn reached(&self, relation: &str, url: &str) -> Reached {
        let mut told = Vec::new();
        let mut tell = |what: &'static str, name: &str| {
            if let Some(value) = self.answer.get(name) {
                told.push((what, value.words().join(" ")));
            }
        };
        tell("contenttype", &format!("contenttype{relation}"));
        tell("ibi", &format!("ibi{relation}"));
        tell("state", &format!("state{relation}"));
        tell("urlkey", "urlkey");
        let state = word(self.answer, &format!("state{relation}"));
        Reached {
            url: url.to_owned(),
            state: state.and_then(|state| state.parse().ok()),
            told,
        }
    }

    /// Of the pairs `what<relation>` whose relation is the one that is asked for, the one that suits the
    /// reader best.
    fn best(&self, what: &str, wanted: &[Step]) -> Option<Found<'a>> {
        let fitting = self.answer.iter().filter_map(|(name, value)| {
            let relation = name.strip_prefix(what)?;
            Some(Found {
                rank: self.rank(wanted, relation)?,
                relation: relation.to_owned(),
                value,
            })
        });
        fitting.min_by(|left, right| left.rank.cmp(&right.rank))
    }

    /// How well the steps of a relation are those that are asked for; None if they are others.
    fn rank(&self, wanted: &[Step], relation: &str) -> Option<Vec<usize>> {
        let told = Step::parse_relation(relation)?;
        if wanted.len() != told.len() {
            return None;
        }
        let mut ends = relation.match_indices('.').map(|(at, _)| at).skip(1);
        let mut rank = Vec::with_capacity(told.len());
        for (wanted, told) in wanted.iter().zip(&told) {
            let end = ends.next().unwrap_or(relation.len());
            rank.push(match (wanted, told) {
                (Step::LastEdition, Step::LastEdition) => 0,
                (Step::Metadata(wanted), Step::Metadata(told)) if wanted == told => 0,
                // Metadata in whatever format.
                (Step::Metadata(None), Step::Metadata(Some(_))) => 1,
                (Step::Translation(Some(wanted)), Step::Translation(Some(told))) => {
                    match (wanted == told, told.matches(wanted)) {
                        (true, _) => 0,
                        (false, true) => 1,
                        (false, false) => return None,
                    }
                }
                (Step::Translation(None), Step::Translation(told)) => {
                    self.preference(told.as_ref(), relation.get(..end)?)
                }
                _ => return None,
            });
        }
        Some(rank)
    }

    /// How much a reader prefers what a relation ending in a translation leads to. Where it fits no
    /// preference, any other text is better than the one the reader has already.
    fn preference(&self, told: Option<&Language>, relation: &str) -> usize {
        let meets = |wanted: &Language| told.is_some_and(|told| told.matches(wanted));
        let place = self.languages.iter().position(meets);
        place.unwrap_or_else(|| {
            let target = self.answer.get(&format!("ibi{relation}")).and_then(names);
            let is_itself = target.is_some_and(|target| target.matches(self.itself));
            self.languages.len() + usize::from(is_itself)
        })
    }
}

#[cfg(test)]
mod tests;
