//! A catalogue of messages and their translations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::template::{Kind, Taker, Template, Tries};

/// The context of the texts of clap.
const HELP: &str = "help";

/// The deepest nesting of messages in messages.
const DEEPEST: u32 = 8;

/// A longer sentence is printed unchanged; all messages are much shorter.
const LONGEST: usize = 16 * 1024;

/// Why a text is not a catalogue.
#[derive(Debug)]
pub struct CatalogueError {
    what: String,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for CatalogueError {}

/// Messages of one context, by their English text.
#[derive(Debug, Default)]
struct Context {
    /// Messages without placeholders.
    whole: HashMap<String, String>,
    /// Templates and their translations.
    templates: Vec<(Template, Template)>,
}

impl Context {
    /// Sorts by length of literal text, and then by number of messages within: the most specific template
    /// comes first.
    fn sort(&mut self) {
        self.templates.sort_by_key(|(template, said)| {
            let kinds = || said.holes().map(|(_, kind)| kind);
            let is_certain =
                |kind: &&Kind| matches!(kind, Kind::Message { is_maybe, .. } if !is_maybe);
            let certain = kinds().filter(is_certain).count();
            let messages = kinds().filter(|kind| **kind != Kind::Text).count();
            Reverse((template.weight(), certain, messages))
        });
    }
}

/// A catalogue of messages.
#[derive(Debug)]
pub struct Catalogue {
    contexts: HashMap<String, Context>,
}

impl Catalogue {
    /// Parses a PO file.
    ///
    /// # Errors
    ///
    /// The text is not a PO file; an entry is not translated; msgid and msgstr do not have the same
    /// placeholders.
    pub fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        let parsed = polib::po_file::parse_from_reader(text.as_bytes());
        let parsed = parsed.map_err(|error| CatalogueError {
            what: error.to_string(),
        })?;
        let mut contexts: HashMap<String, Context> = HashMap::new();
        for message in parsed.messages() {
            let (english, said) = (message.msgid(), message.msgstr().unwrap_or_default());
            let refused = |what: &str| CatalogueError {
                what: format!("'{english}': {what}"),
            };
            if said.is_empty() || message.flags().is_fuzzy() {
                return Err(refused("is not translated"));
            }
            let context = message.msgctxt().unwrap_or_default();
            let into = contexts.entry(context.to_owned()).or_default();
            // A text with an unmatched brace is not a format string.
            let template = Template::parse(english).filter(|_| context != HELP);
            let Some(template) = template else {
                into.whole.insert(english.to_owned(), said.to_owned());
                continue;
            };
            let said = Template::parse(said).ok_or_else(|| refused("a brace is alone"))?;
            check(&template, &said).map_err(refused)?;
            if template.holes().next().is_none() {
                let whole = |template: Template| template.filled(|_, _| None).unwrap_or_default();
                into.whole.insert(whole(template), whole(said));
            } else {
                into.templates.push((template, said));
            }
        }
        contexts.values_mut().for_each(Context::sort);
        Ok(Catalogue { contexts })
    }

    /// A message in the language; any other text is returned unchanged.
    #[must_use]
    pub fn told(&self, message: &str) -> String {
        // The line end is not part of a message.
        let line = message.trim_end_matches('\n');
        match self.find("", line, DEEPEST, &mut Tries::new()) {
            Some(mut told) => {
                told.push_str(&message[line.len()..]);
                told
            }
            None => message.to_owned(),
        }
    }

    /// A text of clap in the language, if it is in the catalogue.
    #[must_use]
    pub fn help(&self, text: &str) -> Option<&str> {
        let help = self.contexts.get(HELP)?;
        help.whole.get(text).map(String::as_str)
    }

    /// A text of clap with its `{}` filled in, in their order.
    #[must_use]
    pub fn help_with(&self, text: &'static str, filling: &[&str]) -> String {
        let template = Template::parse(self.help(text).unwrap_or(text));
        let of = |name: &str, _: &Kind| {
            let at: usize = name.parse().ok()?;
            filling.get(at).map(|text| (*text).to_owned())
        };
        let filled = template.and_then(|template| template.filled(of));
        filled.unwrap_or_else(|| text.to_owned())
    }

    /// Looks a message up in a context.
    fn find(&self, context: &str, text: &str, depth: u32, tries: &mut Tries) -> Option<String> {
        if text.is_empty() || text.len() > LONGEST || depth == 0 {
            return None;
        }
        let context = self.contexts.get(context)?;
        let mut templates = context.templates.iter();
        context.whole.get(text).cloned().or_else(|| {
            templates.find_map(|(template, said)| {
                let mut saying = Saying {
                    catalogue: self,
                    said,
                    depth,
                    best: None,
                };
                template.fit(text, tries, &mut saying);
                saying.best.map(|(_, sentence)| sentence)
            })
        })
    }
}

/// Translates a text of one template. If the text matches in several ways, the one with the most messages is
/// used: a file name may look like part of a message.
struct Saying<'a> {
    catalogue: &'a Catalogue,
    said: &'a Template,
    depth: u32,
    /// The best translation so far, and how many values in it could have been messages but are not.
    best: Option<(usize, String)>,
}

impl Saying<'_> {
    fn find(&self, contexts: &[String], text: &str, tries: &mut Tries) -> Option<String> {
        let mut contexts = contexts.iter();
        contexts.find_map(|context| self.catalogue.find(context, text, self.depth - 1, tries))
    }
}

impl Taker for Saying<'_> {
    fn may_be(&mut self, name: &str, text: &str, tries: &mut Tries) -> bool {
        let mut holes = self.said.holes().filter(|(known, _)| *known == name);
        holes.all(|(_, kind)| match kind {
            Kind::Message { contexts, is_maybe } => {
                *is_maybe || self.find(contexts, text, tries).is_some()
            }
            Kind::Text => true,
        })
    }

    fn take(&mut self, found: &BTreeMap<&str, &str>, tries: &mut Tries) -> bool {
        let mut unknown = 0;
        let sentence = self.said.filled(|name, kind| {
            let text = *found.get(name)?;
            let told = match kind {
                Kind::Message { contexts, .. } => self.find(contexts, text, tries),
                Kind::Text => return Some(text.to_owned()),
            };
            unknown += usize::from(told.is_none());
            // Values that must be messages have been checked before.
            told.or_else(|| Some(text.to_owned()))
        });
        if let Some(sentence) = sentence
            && self.best.as_ref().is_none_or(|(known, _)| unknown < *known)
        {
            self.best = Some((unknown, sentence));
        }
        unknown == 0
    }
}

/// Whether a translation fits its template.
fn check(template: &Template, said: &Template) -> Result<(), &'static str> {
    let has = |one: &Template, name: &str| one.holes().any(|(known, _)| known == name);
    if said.holes().any(|(name, _)| !has(template, name)) {
        return Err("a hole of the msgstr is not in the msgid");
    }
    if template.holes().any(|(name, _)| !has(said, name)) {
        return Err("a hole of the msgid is not in the msgstr");
    }
    if template.has_holes_side_by_side() {
        return Err("two holes stand side by side");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::command::language::PT_BR;

    fn catalogue(entries: &[(&str, &str, &str)]) -> Result<Catalogue, CatalogueError> {
        let mut text = "msgid \"\"\nmsgstr \"\"\n\"Language: pt_BR\\n\"\n".to_owned();
        for (context, english, said) in entries {
            if !context.is_empty() {
                text.push_str(&format!("\nmsgctxt \"{context}\""));
            }
            text.push_str(&format!("\nmsgid \"{english}\"\nmsgstr \"{said}\"\n"));
        }
        Catalogue::parse(&text)
    }

    #[track_caller]
    fn says(message: &str, expected: &str) {
        let entries = [
            ("", "the index is damaged", "o índice está danificado"),
            (
                "",
                "no item '{name}' is held here",
                "aqui não há o item '{name}'",
            ),
            ("", "move '{}' to '{}'", "para '{1}' mova '{0}'"),
            ("", "{what}: {}", "{what}: {0:m}"),
            (
                "",
                "{sentence}: {detail}",
                "{sentence:m}: {detail:detail|m?}",
            ),
            (
                "",
                "'{at}' is full; empty '{at}'",
                "'{at}' está cheio; esvazie '{at}'",
            ),
            (
                "",
                "{part} {found} {cause}",
                "{part:part} {found} {cause:cause}",
            ),
            ("", "{{a}} {low:02}", "{{b}} {low}"),
            ("", "a word or '{'", "uma palavra ou '{'"),
            ("part", "year", "ano"),
            ("cause", "is empty", "está em branco"),
            ("detail", "mode {mode:04o}", "modo {mode}"),
            ("help", "Usage:", "Uso:"),
        ];
        let catalogue = catalogue(&entries).expect("good");
        assert_eq!(catalogue.told(message), expected);
    }

    #[test]
    fn messages_are_said_in_the_language() {
        says("the index is damaged", "o índice está danificado");
        says("the index is damaged\n", "o índice está danificado\n");
        says("no item 'x' is held here", "aqui não há o item 'x'");
        says("move 'a' to 'b'", "para 'b' mova 'a'");
        says("year '20' is empty", "ano '20' está em branco");
        says("{a} 07", "{b} 07");
        says("a word or '{'", "uma palavra ou '{'");
        // A placeholder that occurs twice has the same value.
        says("'x' is full; empty 'x'", "'x' está cheio; esvazie 'x'");
        says("'x' is full; empty 'y'", "'x' is full; empty 'y'");
    }

    #[test]
    fn a_cause_is_said_in_the_language_too() {
        says(
            "'/x': the index is damaged",
            "'/x': o índice está danificado",
        );
        says(
            "the index is damaged: mode 0700",
            "o índice está danificado: modo 0700",
        );
        says(
            "the index is damaged: page 7",
            "o índice está danificado: page 7",
        );
        says(
            "the index is damaged: no item ': x' is held here",
            "o índice está danificado: aqui não há o item ': x'",
        );
        says(
            "a: b: the index is damaged",
            "a: b: o índice está danificado",
        );
    }

    #[test]
    fn what_is_no_message_stays() {
        for text in [
            "",
            "\n",
            "x",
            "a: b",
            "Usage:",
            "mode 0700",
            "year",
            "is empty",
            "{}",
            "é: é",
        ] {
            says(text, text);
        }
    }

    /// A name that looks like a message is not translated.
    #[test]
    fn a_name_that_looks_like_a_message_stays() {
        says(
            "no item 'the index is damaged' is held here",
            "aqui não há o item 'the index is damaged'",
        );
        says(
            "move 'no item 'x' is held here' to 'the index is damaged'",
            "para 'the index is damaged' mova 'no item 'x' is held here'",
        );
        says("year 'is empty' is empty", "ano 'is empty' está em branco");
    }

    #[test]
    fn a_catalogue_that_is_not_good_is_refused() {
        let refused = |english, said| {
            let refused = catalogue(&[("", english, said)]);
            refused.expect_err("it is not good").to_string()
        };
        assert_eq!(refused("a", ""), "'a': is not translated");
        assert!(refused("a {x}", "b {y}").ends_with("is not in the msgid"));
        assert!(refused("a {x}", "b").ends_with("is not in the msgstr"));
        assert!(refused("a {x}{y}", "b {x}{y}").ends_with("stand side by side"));
        assert!(refused("a {x}", "b {x} }").ends_with("a brace is alone"));
        assert!(Catalogue::parse("msgid nothing").is_err());
    }

    #[test]
    fn no_text_takes_long() {
        let catalogue = Catalogue::parse(PT_BR).expect("a good catalogue");
        let pieces = [
            ": ",
            "' ",
            " ",
            "; ",
            "the index is damaged: ",
            "rep 'x' at byte 1 of rep 'x' ",
            "' in the tree, '",
            "cannot open 'x': ",
            "year ",
        ];
        let mut longest = Duration::ZERO;
        for piece in pieces {
            for count in [10, 100, 1000] {
                let text = piece.repeat(count);
                for text in [text.clone(), format!("{text}is empty"), format!("x{text}")] {
                    let started = Instant::now();
                    std::hint::black_box(catalogue.told(&text));
                    longest = longest.max(started.elapsed());
                }
            }
        }
        assert!(longest < Duration::from_secs(5), "{longest:?}");
    }
}
