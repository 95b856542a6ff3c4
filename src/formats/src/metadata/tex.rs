//! Converts the TeX of a bibliography to plain text: accents, letters and symbols, without layout.
//!
//! An accent is composed with its letter, and braces are removed. An unknown command stays as it is written, with its
//! argument. The text is read once from left to right without recursion, so
//! that neither deep nor broken input does harm. Macros of the user are not known.

use std::iter::Peekable;
use std::str::Chars;

use unicode_normalization::char::compose;

/// The plain text of a piece of TeX.
pub(super) fn plain(tex: &str) -> String {
    read(tex).text
}

/// The commands that are not known, as often as they are there.
pub(super) fn unknown_commands(tex: &str) -> Vec<String> {
    read(tex).unknown
}

fn read(tex: &str) -> Reader<'_> {
    let mut reader = Reader {
        rest: tex.chars().peekable(),
        text: String::with_capacity(tex.len()),
        accents: Vec::new(),
        kept: Vec::new(),
        unknown: Vec::new(),
    };
    while let Some(character) = reader.rest.next() {
        reader.take(character);
    }
    reader.end_of_argument();
    reader
}

/// The text of a field such as a URL: only braces and escapes are removed.
pub(super) fn verbatim(tex: &str) -> String {
    let mut text = String::with_capacity(tex.len());
    let mut rest = tex.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '{' | '}' => {}
            '\\' => {
                let name = command_name(&mut rest);
                match name.as_str() {
                    "" => text.extend(rest.next()),
                    "textasciitilde" => text.push('~'),
                    "textunderscore" => text.push('_'),
                    _ => {}
                }
                if !name.is_empty() {
                    skip_spaces(&mut rest);
                }
            }
            _ => text.push(character),
        }
    }
    text
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    text: String,
    /// Accents that wait for a letter, the outermost first.
    accents: Vec<char>,
    /// The open braces: whether each is part of an unknown command and kept.
    kept: Vec<bool>,
    unknown: Vec<String>,
}

impl Reader<'_> {
    fn take(&mut self, character: char) {
        match character {
            '\\' => self.command(),
            '$' => {}
            '{' => self.kept.push(false),
            '}' => {
                self.end_of_argument();
                if self.kept.pop() == Some(true) {
                    self.text.push('}');
                }
            }
            '~' => self.set(' '),
            '-' if self.rest.next_if_eq(&'-').is_some() => {
                let dash = if self.rest.next_if_eq(&'-').is_some() {
                    '—'
                } else {
                    '–'
                };
                self.set(dash);
            }
            '`' if self.rest.next_if_eq(&'`').is_some() => self.set('“'),
            '\'' if self.rest.next_if_eq(&'\'').is_some() => self.set('”'),
            _ => self.set(character),
        }
    }

    fn command(&mut self) {
        let name = command_name(&mut self.rest);
        if name.is_empty() {
            match self.rest.next() {
                None | Some('-' | '/' | '!' | '@' | '(' | ')' | '[' | ']') => {}
                Some('\\' | ',' | ';' | ':' | '>') => self.set(' '),
                Some(sign) => match accent(sign.encode_utf8(&mut [0; 4])) {
                    Some(mark) => self.accents.push(mark),
                    None => self.set(sign),
                },
            }
        } else if let Some(mark) = accent(&name) {
            self.accents.push(mark);
        } else if let Some((_, sign)) = SIGNS.iter().find(|(known, _)| *known == name) {
            sign.chars().for_each(|character| self.set(character));
            skip_spaces(&mut self.rest);
        } else if SILENT.contains(&name.as_str()) {
            skip_spaces(&mut self.rest);
        } else if !WITH_ARGUMENT.contains(&name.as_str()) {
            self.text.push('\\');
            self.text.push_str(&name);
            if self.rest.next_if_eq(&'{').is_some() {
                self.text.push('{');
                self.kept.push(true);
            }
            self.unknown.push(name);
        }
    }

    /// Appends a character with the accents that wait for one.
    fn set(&mut self, character: char) {
        if self.accents.is_empty() {
            self.text.push(character);
            return;
        }
        if character.is_whitespace() {
            return;
        }
        let mut letter = match character {
            'ı' => 'i',
            'ȷ' => 'j',
            other => other,
        };
        while let Some(mark) = self.accents.pop() {
            match compose(letter, mark) {
                Some(composed) => letter = composed,
                None => {
                    self.text.push(letter);
                    letter = mark;
                }
            }
        }
        self.text.push(letter);
    }

    /// Ends an argument with pending accents: `\~{}` and `\^{}` are the TeX spelling of these two characters,
    /// and other accents without a letter are dropped.
    fn end_of_argument(&mut self) {
        for mark in self.accents.drain(..) {
            match mark {
                '\u{302}' => self.text.push('^'),
                '\u{303}' => self.text.push('~'),
                _ => {}
            }
        }
    }
}

fn command_name(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(letter) = rest.next_if(char::is_ascii_alphabetic) {
        name.push(letter);
    }
    name
}

fn skip_spaces(rest: &mut Peekable<Chars<'_>>) {
    while rest
        .next_if(|character| character.is_whitespace())
        .is_some()
    {}
}

/// The combining character of a command that sets an accent.
fn accent(command: &str) -> Option<char> {
    Some(match command {
        "`" => '\u{300}',
        "'" => '\u{301}',
        "^" => '\u{302}',
        "~" => '\u{303}',
        "=" => '\u{304}',
        "u" => '\u{306}',
        "." => '\u{307}',
        "\"" => '\u{308}',
        "r" => '\u{30a}',
        "H" => '\u{30b}',
        "v" => '\u{30c}',
        "d" => '\u{323}',
        "c" => '\u{327}',
        "k" => '\u{328}',
        "b" => '\u{331}',
        "t" => '\u{361}',
        _ => return None,
    })
}

/// Commands for letters and symbols.
const SIGNS: &[(&str, &str)] = &[
    ("i", "ı"),
    ("j", "ȷ"),
    ("o", "ø"),
    ("O", "Ø"),
    ("l", "ł"),
    ("L", "Ł"),
    ("ss", "ß"),
    ("ae", "æ"),
    ("AE", "Æ"),
    ("oe", "œ"),
    ("OE", "Œ"),
    ("aa", "å"),
    ("AA", "Å"),
    ("th", "þ"),
    ("TH", "Þ"),
    ("dh", "ð"),
    ("DH", "Ð"),
    ("dj", "đ"),
    ("DJ", "Đ"),
    ("ng", "ŋ"),
    ("NG", "Ŋ"),
    ("S", "§"),
    ("P", "¶"),
    ("dag", "†"),
    ("ddag", "‡"),
    ("dots", "…"),
    ("ldots", "…"),
    ("textellipsis", "…"),
    ("pounds", "£"),
    ("euro", "€"),
    ("texteuro", "€"),
    ("copyright", "©"),
    ("textcopyright", "©"),
    ("textregistered", "®"),
    ("texttrademark", "™"),
    ("textordfeminine", "ª"),
    ("textordmasculine", "º"),
    ("textdegree", "°"),
    ("guillemotleft", "«"),
    ("guillemotright", "»"),
    ("textexclamdown", "¡"),
    ("textquestiondown", "¿"),
    ("textquoteleft", "‘"),
    ("textquoteright", "’"),
    ("textquotedblleft", "“"),
    ("textquotedblright", "”"),
    ("textendash", "–"),
    ("textemdash", "—"),
    ("textasciitilde", "~"),
    ("textasciicircum", "^"),
    ("textbackslash", "\\"),
    ("textunderscore", "_"),
    ("textbraceleft", "{"),
    ("textbraceright", "}"),
    ("textbar", "|"),
    ("textless", "<"),
    ("textgreater", ">"),
    ("textbullet", "•"),
    ("textperiodcentered", "·"),
    ("times", "×"),
    ("pm", "±"),
    ("mu", "µ"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ϵ"),
    ("varepsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "ϕ"),
    ("varphi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Xi", "Ξ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("leq", "≤"),
    ("le", "≤"),
    ("geq", "≥"),
    ("ge", "≥"),
    ("approx", "≈"),
    ("sim", "∼"),
    ("to", "→"),
    ("rightarrow", "→"),
    ("infty", "∞"),
    ("cdot", "⋅"),
    ("circ", "∘"),
    ("textmu", "µ"),
    ("textasteriskcentered", "*"),
    ("textquotesingle", "'"),
    ("textdollar", "$"),
    ("slash", "/"),
    ("TeX", "TeX"),
    ("LaTeX", "LaTeX"),
    ("quad", " "),
    ("space", " "),
];

/// Commands of which the argument alone is text.
const WITH_ARGUMENT: &[&str] = &[
    "emph",
    "textbf",
    "textit",
    "textmd",
    "textnormal",
    "textrm",
    "textsc",
    "textsf",
    "textsl",
    "texttt",
    "textup",
    "textsuperscript",
    "textsubscript",
    "underline",
    "mbox",
    "text",
    "hbox",
    "url",
    "path",
    "mathrm",
    "mathbf",
    "mathit",
    "mathsf",
    "mathtt",
    "mathcal",
    "mathbb",
    "ensuremath",
    "uppercase",
    "lowercase",
    "MakeUppercase",
    "MakeLowercase",
    "enquote",
    "nocase",
    "NoCaseChange",
];

/// Commands that change only the appearance of text.
const SILENT: &[&str] = &[
    "bf",
    "em",
    "it",
    "rm",
    "sc",
    "sf",
    "sl",
    "tt",
    "bfseries",
    "itshape",
    "scshape",
    "upshape",
    "normalfont",
    "tiny",
    "small",
    "large",
    "Large",
    "relax",
    "protect",
    "noindent",
    "par",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tex_becomes_plain_text() {
        let cases = [
            ("plain", "plain"),
            (r"S{\~a}o Jos\'e dos Campos", "São José dos Campos"),
            (r"S\~{a}o Jos{\'{e}}", "São José"),
            (r"{\c c}{\~a}o \c{c}\~ao Fran\c cois", "ção ção François"),
            (
                r#"G{\"o}del, \"Ubung, {\'\i}ndio, \'{\i}ndio, na\"{\i}ve"#,
                "Gödel, Übung, índio, índio, naïve",
            ),
            (
                r"\v{S}koda {\H o} \r{a} \k{a} \.z \d{a} \u{g}",
                "Škoda ő å ą ż ạ ğ",
            ),
            (
                r#"{\o}re {\O}re \AA ngstr\"om Stra{\ss}e \L{}\'od\'z"#,
                "øre Øre Ångström Straße Łódź",
            ),
            (r"\'{\^a} \=q", "ấ q\u{304}"),
            (
                r"A \& B, 50\%, \$5, a\_b, \#1, \{x\}",
                "A & B, 50%, $5, a_b, #1, {x}",
            ),
            ("pages 1--2 --- ``so''", "pages 1–2 — “so”"),
            (r"D.~E. Knuth\,\ldots", "D. E. Knuth …"),
            (
                r"\emph{an} \textbf{old} {\it tale} of $\alpha$ and $x^2$",
                "an old tale of α and x^2",
            ),
            (r"\unknown{a {b}} \other c", r"\unknown{a b} \other c"),
            (r"{The {ESA} {L}ab}", "The ESA Lab"),
            (r"\~{}user a\^{}b \'{}", "~user a^b "),
            (r"\", ""),
            (r"\'", ""),
            ("}}}{{{", ""),
            (r"\'\'\'", ""),
        ];
        for (tex, expected) in cases {
            assert_eq!(plain(tex), expected, "{tex}");
        }
    }

    #[test]
    fn urls_stay_urls() {
        let cases = [
            ("http://urlib.net/a--b/~x_y", "http://urlib.net/a--b/~x_y"),
            (
                r"\url{http://a.b/c\_d\%20\~{}e\&f}",
                "http://a.b/c_d%20~e&f",
            ),
            (r"10.1000/a{\_}b\textunderscore c", "10.1000/a_b_c"),
            (r"\", ""),
        ];
        for (tex, expected) in cases {
            assert_eq!(verbatim(tex), expected, "{tex}");
        }
    }
}
