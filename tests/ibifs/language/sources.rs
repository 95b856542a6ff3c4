//! The texts in the sources that may reach a person, read from the syntax trees.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, Lit, LitStr, Macro, Token};

/// A text, and the file below `src` that it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    pub file: PathBuf,
    pub text: String,
    pub role: Role,
}

/// What a text is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The first argument of a macro that formats.
    Format,
    /// An argument of one of `NAMING`: a part of a sentence.
    Word,
    Other,
}

/// Functions that take a part of a sentence: what was done, or what something is called.
const NAMING: [&str; 14] = [
    "of",
    "told",
    "help_with",
    "says",
    "failed",
    "error",
    "io_error",
    "fault",
    "check_characters",
    "check_digits",
    "within",
    "expected",
    "word",
    "refused",
];

/// Modules whose texts reach a person through the command. The others speak to
/// programs and to readers of pages, or to whoever reads the log.
const SPEAKING: [&str; 18] = [
    "archive",
    "command/cli",
    "command/commands",
    "command/exit",
    "command/progress",
    "command/terminal",
    "formats/fixity",
    "formats/item",
    "formats/mtree",
    "formats/table",
    "fuse/fs/backing",
    "fuse/fs/protocol",
    "fuse/mount",
    "ibi/src",
    "web/registry/error",
    "web/registry/inclusion",
    "web/registry/key",
    "web/server/archive/announce",
];

/// Whether a text of the sources is for people, as far as its form tells: it has words of its own
/// beside others or beside what is filled in, or it is a part of a sentence.
pub fn is_for_people(text: &Text) -> bool {
    let file = text.file.with_extension("");
    // The help is read from the commands themselves.
    let is_help = file.ends_with("cli/examples");
    if is_help || !SPEAKING.iter().any(|module| file.starts_with(module)) {
        return false;
    }
    let is_sql = [
        "SELECT ",
        "WHERE ",
        "INSERT ",
        "UPDATE ",
        "DELETE ",
        "CREATE ",
        "PRAGMA ",
        "ORDER BY ",
    ];
    if is_sql.iter().any(|word| text.text.contains(word)) {
        return false;
    }
    let is_word = |word: &str| {
        let letters = word.trim_matches(|c: char| c.is_ascii_punctuation());
        letters.len() > 1
            && letters
                .chars()
                .all(|c| c.is_alphabetic() || "-'./_".contains(c))
    };
    let (own, holes) = own_words(&text.text);
    let words = own.split_whitespace().filter(|word| is_word(word)).count();
    match text.role {
        Role::Word => words > 0,
        Role::Format => {
            words > 1 || words + holes > 1 && (words > 0 && own.contains(' ') || own.contains(": "))
        }
        Role::Other => words > 1,
    }
}

/// A format string without its holes, and how many there are.
fn own_words(text: &str) -> (String, usize) {
    let (mut own, mut holes, mut depth) = (String::new(), 0, 0);
    for character in text.chars() {
        match character {
            '{' => {
                depth += 1;
                holes += 1;
            }
            '}' => depth -= 1,
            character if depth == 0 => own.push(character),
            _ => {}
        }
    }
    (own, holes)
}

/// Every literal text of `src` that is in no test, no attribute, no log and no `expect`.
pub fn literals() -> Vec<Text> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut waiting = vec![src.clone()];
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory of sources");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            let source = std::fs::read_to_string(&path).expect("a readable source");
            let mut reader = Reader {
                file: path.strip_prefix(&src).expect("below src").to_owned(),
                role: Role::Other,
                found: &mut found,
            };
            reader.visit_file(&syn::parse_file(&source).expect("Rust"));
        }
    }
    found.sort();
    found
}

struct Reader<'a> {
    file: PathBuf,
    role: Role,
    found: &'a mut Vec<Text>,
}

impl Reader<'_> {
    fn add(&mut self, literal: &LitStr, role: Role) {
        self.found.push(Text {
            file: self.file.clone(),
            text: literal.value(),
            role,
        });
    }

    fn arguments<'a>(&mut self, function: &str, arguments: impl Iterator<Item = &'a Expr>) {
        for argument in arguments {
            let is_text = matches!(argument, Expr::Lit(_));
            if is_text && NAMING.contains(&function) {
                self.role = Role::Word;
            }
            self.visit_expr(argument);
            self.role = Role::Other;
        }
    }

    /// The texts of a macro whose arguments are no expressions.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut is_attribute = false;
        for token in tokens {
            let is_in_attribute = is_attribute;
            is_attribute = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '#');
            match token {
                TokenTree::Group(_) if is_in_attribute => {}
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        self.add(&text, Role::Other);
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let is_of_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
        is_cfg && attribute.meta.require_list().is_ok_and(is_of_test)
    })
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Mod(it) => &it.attrs,
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(it) if is_test(&it.attrs) => {}
            _ => visit::visit_impl_item(self, item),
        }
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if call.method != "expect" {
            self.arguments(&call.method.to_string(), call.args.iter());
        }
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        self.visit_expr(&call.func);
        let name = match &*call.func {
            Expr::Path(it) => it.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.arguments(&name.unwrap_or_default(), call.args.iter());
    }

    fn visit_lit_str(&mut self, literal: &'a LitStr) {
        self.add(literal, self.role);
    }

    fn visit_macro(&mut self, it: &'a Macro) {
        let name = it.path.segments.last().map(|last| last.ident.to_string());
        let name = name.unwrap_or_default();
        let is_log = it.path.segments.len() > 1 && it.path.segments[0].ident == "log";
        if is_log || matches!(&*name, "panic" | "unreachable" | "debug_assert" | "assert") {
            return;
        }
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        let Ok(arguments) = parser.parse2(it.tokens.clone()) else {
            return self.tokens(it.tokens.clone());
        };
        let formats = [
            "format",
            "format_args",
            "write",
            "writeln",
            "print",
            "println",
            "eprint",
            "eprintln",
        ];
        let mut is_first = formats.contains(&&*name);
        for argument in &arguments {
            match argument {
                Expr::Lit(literal) if is_first => {
                    if let Lit::Str(text) = &literal.lit {
                        self.add(text, Role::Format);
                        is_first = false;
                    }
                }
                other => self.visit_expr(other),
            }
        }
    }
}
