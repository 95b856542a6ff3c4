//! The templates of all messages in the sources: the literals of `message!`, `plural!` and the tables of
//! `findings!`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A template, and its plural.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Template {
    pub text: String,
    pub plural: Option<String>,
}

/// The templates of `src`, each with a file that has it, below `src`. Tests are left out.
pub fn templates() -> BTreeMap<Template, PathBuf> {
    let mut found = BTreeMap::new();
    for (file, tokens) in files() {
        collect(tokens, &mut |template| {
            found.insert(template, file.clone());
        });
    }
    found
}

/// The files of `src` and their tokens. Files of tests are left out.
pub fn files() -> Vec<(PathBuf, TokenStream)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut waiting = vec![src.clone()];
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        let is_test = path.ends_with("tests") || path.ends_with("tests.rs");
        if path.is_dir() && !is_test {
            let entries = std::fs::read_dir(&path).expect("a directory of sources");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|it| it == "rs") && !is_test {
            let source = std::fs::read_to_string(&path).expect("a readable source");
            let tokens: TokenStream = source.parse().expect("Rust");
            let file = path.strip_prefix(&src).expect("below src").to_owned();
            found.push((file, tokens));
        }
    }
    found
}

/// Collects the templates of a stream of tokens.
pub fn collect(tokens: TokenStream, add: &mut dyn FnMut(Template)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if is_test_attribute(token) {
            at += item_length(&tokens[at..]);
            continue;
        }
        if let (TokenTree::Ident(name), Some(TokenTree::Punct(sign)), Some(TokenTree::Group(group))) =
            (token, tokens.get(at), tokens.get(at + 1))
            && sign.as_char() == '!'
        {
            of_macro(&name.to_string(), group, add);
        }
        if let TokenTree::Group(group) = token {
            collect(group.stream(), add);
        }
    }
}

/// The number of tokens of the item at the start: it ends with its body or a semicolon.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    };
    tokens.iter().position(is_end).map_or(0, |end| end + 1)
}

/// The templates of one use of a macro.
fn of_macro(name: &str, group: &Group, add: &mut dyn FnMut(Template)) {
    let mut texts = group.stream().into_iter().filter_map(|it| literal(&it));
    match name {
        // The body of a macro that makes messages of its own argument has no literal there.
        "message" => texts
            .next()
            .filter(|_| begins_with_literal(group))
            .into_iter()
            .for_each(|text| add(Template { text, plural: None })),
        "plural" => texts
            .next()
            .filter(|_| begins_with_literal(group))
            .into_iter()
            .for_each(|text| {
                let plural = texts.next();
                add(Template { text, plural });
            }),
        "findings" => sentences(group.stream()).into_iter().for_each(|text| {
            add(Template { text, plural: None });
        }),
        _ => {}
    }
}

/// The sentences of a table of findings: in a row a word follows the name of the variant, and sentences follow
/// a severity or a mark of repair.
fn sentences(table: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_word = true;
    for token in table {
        match &token {
            TokenTree::Ident(name) => {
                let marks = ["Error", "Warning", "Notice", "repaired", "reported"];
                is_word = !marks.contains(&&*name.to_string());
            }
            TokenTree::Literal(_) if !is_word => found.extend(literal(&token)),
            // The body of the enum; a variant's value is in parentheses.
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                found.extend(sentences(group.stream()));
            }
            _ => {}
        }
    }
    found
}

fn begins_with_literal(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Literal(_)))
}

fn literal(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else {
        return None;
    };
    syn::parse_str::<syn::LitStr>(&literal.to_string())
        .ok()
        .map(|text| text.value())
}

/// Whether a token is the body of `#[cfg(test)]` or of `#[test]`.
fn is_test_attribute(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let text = group.stream().to_string().replace(' ', "");
    group.delimiter() == Delimiter::Bracket && (text == "cfg(test)" || text == "test")
}

/// The sentences of a source that no `message!` or `plural!` makes: literals outside of attributes, tests and log
/// messages in which a space separates two words, or a word and a placeholder.
pub fn bare_sentences(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if is_test_attribute(token) {
            at += item_length(&tokens[at..]);
            continue;
        }
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                // The attribute, or `!` and the attribute of the whole file. That of a test is looked at next.
                let is_inner = matches!(tokens.get(at), Some(TokenTree::Punct(_)));
                let attribute = at + usize::from(is_inner);
                if !tokens.get(attribute).is_some_and(is_test_attribute) {
                    at = attribute + 1;
                }
            }
            TokenTree::Ident(name) if is_macro(&tokens[at..]) => {
                let is_message = MESSAGES.contains(&&*name.to_string());
                match tokens.get(at + 1) {
                    Some(TokenTree::Group(group)) if !is_message => {
                        found.extend(bare_sentences(group.stream()));
                    }
                    // Arguments of a message may be made of sentences.
                    Some(TokenTree::Group(group)) => {
                        found.extend(bare_sentences(without_literals(group)));
                    }
                    _ => {}
                }
                at += 2;
            }
            TokenTree::Group(group) => found.extend(bare_sentences(group.stream())),
            TokenTree::Literal(_) => {
                found.extend(literal(token).filter(|text| is_sentence(text)));
            }
            _ => {}
        }
    }
    found
}

/// The macros whose first texts are templates of the catalogue, or messages for the log, which is English.
const MESSAGES: [&str; 7] = [
    "message", "plural", "error", "warn", "info", "debug", "trace",
];

fn is_macro(behind: &[TokenTree]) -> bool {
    matches!(
        behind,
        [TokenTree::Punct(sign), TokenTree::Group(_), ..] if sign.as_char() == '!'
    )
}

/// The arguments of a macro without its own texts.
fn without_literals(group: &Group) -> TokenStream {
    let tokens = group.stream().into_iter();
    tokens
        .filter(|token| !matches!(token, TokenTree::Literal(_)))
        .collect()
}

/// Whether a line has two words side by side, or a word and a placeholder. Columns, which have wider gaps, count
/// one by one; `copied: {name}` and `ibifs: {}` are no sentences.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && !"{}:".contains(c));
        word.chars().count() > 1 && word.chars().all(char::is_alphabetic)
    };
    let is_placeholder = |word: &str| word.contains('{') && word.contains('}');
    let mut columns = text.lines().flat_map(|line| line.split("  "));
    columns.any(|column| {
        let words: Vec<&str> = column.split_whitespace().collect();
        words.windows(2).any(|pair| {
            let (one, other) = (pair[0], pair[1]);
            is_word(one) && (is_word(other) || is_placeholder(other))
                || is_placeholder(one) && is_word(other)
        })
    })
}

#[test]
fn templates_are_found() {
    let source = r#"
        fn one() -> Message { message!("a {b}", b = message!("c")) }
        fn other(name: &str) {
            vec![plural!("{count} d", "{count} ds", count, name = "not this")];
            format!("nor {}", message!("e" , f = "nor this"));
            log::warn!("nor this");
        }
        findings! {
            const ALL:
            /// Rows.
            pub enum Code {
                First "first" Error repaired "g" "h"
                // A comment.
                Second "second" Notice reported "i" "j"
            }
        }
        findings! {
            pub enum Skip {
                Held(by: String) "held" Warning "k {by}"
                Late(days: u32) "late" Error "l {hours}" (hours = days * 24)
            }
        }
        macro_rules! row { ($what:literal) => { ::ibi::message!($what) }; }
        #[cfg(test)]
        mod tests { fn x() { message!("nor this"); } }
        #[cfg(test)]
        mod more;
        fn last() { message!("m\
                              n"); }
    "#;
    let mut found = Vec::new();
    collect(source.parse().expect("Rust"), &mut |template| {
        found.push((template.text, template.plural));
    });
    found.sort();
    let plain = [
        "a {b}",
        "c",
        "e",
        "g",
        "h",
        "i",
        "j",
        "k {by}",
        "l {hours}",
        "mn",
    ];
    let mut expected: Vec<_> = plain
        .iter()
        .map(|text| ((*text).to_owned(), None))
        .collect();
    expected.push(("{count} d".to_owned(), Some("{count} ds".to_owned())));
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn bare_sentences_are_found() {
    let source = r#"
        #![doc = "not this one"]
        /// Nor this.
        #[arg(help = "nor this one")]
        fn one() {
            println!("a planted sentence");
            eprint!("{count} files");
            let text = format!("{}: {}", message!("not this {text}", text = format!("in {it}")), 1);
            out.write("two words".to_owned());
            log::warn!("nor this one");
            plural!("{count} d e", "{count} ds e", count);
            print!("ibifs: {}", "--no-sentence");
            print!("copied: {name}\nitems    {count}");
        }
        #[cfg(test)]
        mod tests { fn x() { println!("nor this one"); } }
        fn last() { Failure::new("the last one") }
    "#;
    let found = bare_sentences(source.parse().expect("Rust"));
    let expected = [
        "a planted sentence",
        "{count} files",
        "in {it}",
        "two words",
        "the last one",
    ];
    assert_eq!(found, expected);
}
