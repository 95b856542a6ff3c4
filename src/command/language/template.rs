//! A sentence with placeholders: parsing one, matching a finished sentence, and filling one in.

use std::collections::BTreeMap;

/// The most positions that are tried for one finished sentence, over all templates and messages within it.
/// Sentences take a few dozen; this bounds the cost of a crafted name.
const MOST_TRIES: u32 = 4096;

/// The number of remaining attempts.
#[derive(Debug)]
pub(super) struct Tries(u32);

impl Tries {
    pub(super) fn new() -> Tries {
        Tries(MOST_TRIES)
    }

    /// Counts one attempt; false when none are left.
    fn take(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// The kind of value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A message (`:m`), or a text of another context.
    Message {
        /// The contexts; `m` is the empty one.
        contexts: Vec<String>,
        /// Whether any other text is accepted as well (`:m?`).
        is_maybe: bool,
    },
}

impl Kind {
    fn parse(spec: &str) -> Kind {
        let names = spec.strip_suffix('?').unwrap_or(spec);
        // A specification such as `02` is the format of a number.
        if !names.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            return Kind::Text;
        }
        let context = |name: &str| match name {
            "m" => String::new(),
            name => name.to_owned(),
        };
        Kind::Message {
            contexts: names.split('|').map(context).collect(),
            is_maybe: names != spec,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Hole(String, Kind),
}

/// Literal texts with placeholders between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    /// Parses a format string: `{}`, `{2}`, `{name}`, `{name:m}`, and `{{` for a brace. Any other text after
    /// the colon, as in `{low:02}`, is ignored. None for an unmatched brace.
    pub(super) fn parse(text: &str) -> Option<Template> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut unnamed = 0;
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            literal.push_str(before);
            if let Some(escaped) = after.strip_prefix("{{").or(after.strip_prefix("}}")) {
                literal.push_str(&after[..1]);
                rest = escaped;
                continue;
            }
            let (inside, behind) = after.strip_prefix('{')?.split_once('}')?;
            let (name, spec) = inside.split_once(':').unwrap_or((inside, ""));
            let name = match name {
                "" => {
                    unnamed += 1;
                    (unnamed - 1).to_string()
                }
                name => name.to_owned(),
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Hole(name, Kind::parse(spec)));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Some(Template(pieces))
    }

    /// The number of bytes outside placeholders.
    pub(super) fn weight(&self) -> usize {
        let literals = self.0.iter().map(|piece| match piece {
            Piece::Literal(text) => text.len(),
            Piece::Hole(..) => 0,
        });
        literals.sum()
    }

    /// The names of the placeholders, each with its kind.
    pub(super) fn holes(&self) -> impl Iterator<Item = (&str, &Kind)> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Hole(name, kind) => Some((name.as_str(), kind)),
            Piece::Literal(_) => None,
        })
    }

    /// Whether two placeholders are adjacent, so that the end of the first is ambiguous.
    pub(super) fn has_holes_side_by_side(&self) -> bool {
        let is_hole = |piece: &Piece| matches!(piece, Piece::Hole(..));
        self.0.windows(2).any(|two| two.iter().all(is_hole))
    }

    /// Matches a finished sentence with this template, and passes the values of the placeholders to `taker`,
    /// for each way to match, the shortest first.
    pub(super) fn fit<'a>(&'a self, sentence: &'a str, tries: &mut Tries, taker: &mut dyn Taker) {
        // Most templates have another end, and are excluded at once.
        if let Some(Piece::Literal(last)) = self.0.last()
            && !sentence.ends_with(last.as_str())
        {
            return;
        }
        fit(&self.0, sentence, &mut BTreeMap::new(), tries, taker);
    }

    /// The template with its placeholders filled in; None if one has no value.
    pub(super) fn filled(
        &self,
        mut filling: impl FnMut(&str, &Kind) -> Option<String>,
    ) -> Option<String> {
        let mut sentence = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => sentence.push_str(text),
                Piece::Hole(name, kind) => sentence.push_str(&filling(name, kind)?),
            }
        }
        Some(sentence)
    }
}

/// Receives the values of the placeholders.
pub(super) trait Taker {
    /// Whether the placeholder of this name may have this value.
    fn may_be(&mut self, name: &str, text: &str, tries: &mut Tries) -> bool;

    /// Receives all values; true to stop the search.
    fn take(&mut self, found: &BTreeMap<&str, &str>, tries: &mut Tries) -> bool;
}

/// Matches the first part and then the others; true to stop the search.
fn fit<'a>(
    pieces: &'a [Piece],
    rest: &'a str,
    found: &mut BTreeMap<&'a str, &'a str>,
    tries: &mut Tries,
    taker: &mut dyn Taker,
) -> bool {
    let Some((first, others)) = pieces.split_first() else {
        return rest.is_empty() && taker.take(found, tries);
    };
    let name = match first {
        Piece::Literal(text) => {
            let after = rest.strip_prefix(text.as_str());
            return after.is_some_and(|after| fit(others, after, found, tries, taker));
        }
        Piece::Hole(name, _) => name.as_str(),
    };
    // A placeholder that occurs again has the same value.
    if let Some(same) = found.get(name) {
        let after = rest.strip_prefix(*same);
        return after.is_some_and(|after| fit(others, after, found, tries, taker));
    }
    let mut fill = |end: usize| {
        if !tries.take() {
            return true;
        }
        let (text, after) = rest.split_at(end);
        if !taker.may_be(name, text, tries) {
            return false;
        }
        found.insert(name, text);
        let enough = fit(others, after, found, tries, taker);
        found.remove(name);
        enough
    };
    match others.first() {
        Some(Piece::Literal(next)) => rest.match_indices(next.as_str()).any(|(end, _)| fill(end)),
        _ => fill(rest.len()),
    }
}
