//! Sentences as data: a template and its arguments, which can be rendered in any language.
//!
//! An error implements [`Localize`] instead of writing its sentence in `Display`. The sentence stands
//! once, in [`message!`](crate::message!); [`display_message!`](crate::display_message!) makes the
//! English `Display` of it, and a program that speaks other languages looks the template up, as gettext
//! does with a msgid, and fills in the same arguments.
//!
//! ```
//! use ibi::message::Localize;
//! use ibi::{Rep, message};
//!
//! let name = "x/y";
//! let cause = Rep::parse(name).unwrap_err();
//! let refused = message!("cannot mint '{name}': {cause}", name, cause);
//! assert_eq!(
//!     refused.to_string(),
//!     "cannot mint 'x/y': rep 'x/y' has 2 components, not 4"
//! );
//!
//! let portuguese = refused.translated(&|template, _| match template {
//!     "cannot mint '{name}': {cause}" => Some("não se pode cunhar '{name}': {cause}"),
//!     _ => None,
//! });
//! assert_eq!(
//!     portuguese,
//!     "não se pode cunhar 'x/y': rep 'x/y' has 2 components, not 4"
//! );
//! ```

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::message;

/// A sentence: its template and what is filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    template: &'static Template,
    arguments: Vec<Argument>,
}

/// The constant part of a message. [`message!`](crate::message!) and [`plural!`](crate::plural!) make
/// it, and the compiler checks that its placeholders and its names agree.
#[derive(Debug, PartialEq, Eq)]
pub struct Template {
    /// The sentence, with `{name}` for each argument and `{{` for a brace.
    pub text: &'static str,
    /// The sentence for a number other than one, where the two differ.
    pub plural: Option<&'static str>,
    /// The names of the arguments, in their order.
    pub names: &'static [&'static str],
}

/// A value that is filled into a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A name, a path, a number: the same in every language.
    Text(String),
    /// A sentence or part of one.
    Message(Message),
    /// A text of the system or of a library. A catalogue may have it, as it is, without placeholders.
    Foreign(String),
    /// A number; [`plural!`](crate::plural!) chooses the template by it.
    Count(u64),
}

/// Looks a template up in another language. The number is that of a [`plural!`](crate::plural!);
/// `None` where the catalogue lacks the text, which is then English.
pub type TemplateLookup<'a> = dyn Fn(&str, Option<u64>) -> Option<&'a str> + 'a;

/// A thing that has a sentence of its own: an error, a finding, a report.
pub trait Localize {
    /// The sentence, as data.
    fn message(&self) -> Message;
}

/// A value that can be filled into a template.
pub trait ToArgument {
    /// The value as an argument.
    fn to_argument(&self) -> Argument;
}

impl Message {
    /// A message of parts that belong together, as the macros put them.
    #[doc(hidden)]
    #[must_use]
    pub fn new(template: &'static Template, arguments: Vec<Argument>) -> Message {
        Message {
            template,
            arguments,
        }
    }

    /// A text of the system or of a library, as a message of its own.
    #[must_use]
    pub fn foreign(text: impl Into<String>) -> Message {
        let text = Argument::Foreign(text.into());
        Message::new(&WHOLE, vec![text])
    }

    /// A text that is the same in every language, as a message of its own.
    #[must_use]
    pub fn verbatim(text: impl Into<String>) -> Message {
        Message::new(&WHOLE, vec![Argument::Text(text.into())])
    }

    /// Several messages as one, with semicolons between them; `None` where there are none.
    #[must_use]
    pub fn joined(messages: Vec<Message>) -> Option<Message> {
        let mut messages = messages.into_iter();
        let first = messages.next()?;
        Some(messages.fold(first, |before, next| {
            message!("{before}; {next}", before, next)
        }))
    }

    /// The constant part.
    #[must_use]
    pub fn template(&self) -> &'static Template {
        self.template
    }

    /// The sentence in another language.
    #[must_use]
    pub fn translated(&self, lookup: &TemplateLookup<'_>) -> String {
        let mut sentence = String::new();
        // Writing to a String does not fail.
        let _ = self.render(&mut sentence, Some(lookup));
        sentence
    }

    fn render(&self, out: &mut dyn Write, lookup: Option<&TemplateLookup<'_>>) -> fmt::Result {
        let Template { text, plural, .. } = self.template;
        let count = plural.and_then(|_| self.count());
        let english = match (plural, count) {
            (Some(plural), Some(count)) if count != 1 => plural,
            _ => text,
        };
        let translated = lookup.and_then(|lookup| lookup(text, count));
        for piece in pieces(translated.unwrap_or(english)) {
            match piece {
                Piece::Text(text) => out.write_str(text)?,
                Piece::Argument(name) => self.render_argument(name, out, lookup)?,
            }
        }
        Ok(())
    }

    fn render_argument(
        &self,
        name: &str,
        out: &mut dyn Write,
        lookup: Option<&TemplateLookup<'_>>,
    ) -> fmt::Result {
        let at = self.template.names.iter().position(|known| *known == name);
        match at.and_then(|at| self.arguments.get(at)) {
            Some(Argument::Text(text)) => out.write_str(text),
            Some(Argument::Message(message)) => message.render(out, lookup),
            Some(Argument::Foreign(text)) => {
                let translated = lookup.and_then(|lookup| lookup(text, None));
                out.write_str(translated.unwrap_or(text))
            }
            Some(Argument::Count(count)) => write!(out, "{count}"),
            // A translation names what there is not; a test of the catalogue refuses it.
            None => write!(out, "{{{name}}}"),
        }
    }

    /// The number that chooses the template: the first.
    fn count(&self) -> Option<u64> {
        self.arguments.iter().find_map(|argument| match argument {
            Argument::Count(count) => Some(*count),
            _ => None,
        })
    }
}

/// The template of a text that is not one of ours.
static WHOLE: Template = Template {
    text: "{text}",
    plural: None,
    names: &["text"],
};

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.render(f, None)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// As its English sentence.
#[cfg(feature = "serde")]
impl serde::Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Localize for Message {
    fn message(&self) -> Message {
        self.clone()
    }
}

impl<T: Localize + ?Sized> Localize for &T {
    fn message(&self) -> Message {
        (**self).message()
    }
}

impl<T: Localize + ?Sized> ToArgument for T {
    fn to_argument(&self) -> Argument {
        Argument::Message(self.message())
    }
}

impl Localize for std::io::Error {
    fn message(&self) -> Message {
        Message::foreign(self.to_string())
    }
}

impl ToArgument for Argument {
    fn to_argument(&self) -> Argument {
        self.clone()
    }
}

/// Makes arguments of types whose `Display` is the same in every language: names, numbers, paths.
#[macro_export]
macro_rules! text_arguments {
    ($($kind:ty),* $(,)?) => {$(
        impl $crate::message::ToArgument for $kind {
            fn to_argument(&self) -> $crate::message::Argument {
                $crate::message::Argument::Text(self.to_string())
            }
        }
    )*};
}

text_arguments!(
    str,
    String,
    Cow<'_, str>,
    char,
    u8,
    u16,
    u32,
    u64,
    usize,
    i32,
    i64,
    fmt::Arguments<'_>,
    std::path::Display<'_>,
    std::net::IpAddr,
    std::net::SocketAddr,
);

/// A message: its template, and the arguments by their names.
///
/// Each placeholder is `{name}`, and each name follows, as it is or with its value. An argument is
/// whatever implements [`ToArgument`]; an error, or another message, keeps
/// its parts and is translated with the sentence. Names that do not agree with the template do not
/// compile.
///
/// ```
/// use ibi::message;
///
/// let line = 7;
/// let refused = message!("line {line}: {what}", line, what = message!("it is empty"));
/// assert_eq!(refused.to_string(), "line 7: it is empty");
/// ```
///
/// ```compile_fail
/// let line = 7;
/// ibi::message!("line {number}", line);
/// ```
#[macro_export]
macro_rules! message {
    ($template:literal $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        #[allow(unused_imports)]
        use $crate::message::ToArgument as _;
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        const { $crate::message::check($template, NAMES) };
        $crate::message::Message::new(
            const {
                &$crate::message::Template {
                    text: $template,
                    plural: None,
                    names: NAMES,
                }
            },
            vec![$($crate::argument!($name $(= $value)?)),*],
        )
    }};
}

/// A message about a number: the template for one, that for any other, the number, other arguments.
///
/// ```
/// use ibi::plural;
///
/// let items = |count: u64| plural!("{count} item", "{count} items", count).to_string();
/// assert_eq!((items(1), items(2)), ("1 item".to_owned(), "2 items".to_owned()));
/// ```
#[macro_export]
macro_rules! plural {
    ($one:literal, $other:literal, $count:ident $(= $number:expr)? $(, $name:ident $(= $value:expr)?)* $(,)?) => {{
        #[allow(unused_imports)]
        use $crate::message::ToArgument as _;
        const NAMES: &[&str] = &[stringify!($count) $(, stringify!($name))*];
        const { $crate::message::check($one, NAMES) };
        const { $crate::message::check($other, NAMES) };
        $crate::message::Message::new(
            const {
                &$crate::message::Template {
                    text: $one,
                    plural: Some($other),
                    names: NAMES,
                }
            },
            vec![
                $crate::count!($count $(= $number)?)
                $(, $crate::argument!($name $(= $value)?))*
            ],
        )
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! argument {
    ($name:ident) => {
        $name.to_argument()
    };
    ($name:ident = $value:expr) => {
        ($value).to_argument()
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! count {
    ($name:ident) => {
        $crate::count!($name = $name)
    };
    ($name:ident = $value:expr) => {
        $crate::message::Argument::Count(u64::try_from($value).unwrap_or(u64::MAX))
    };
}

/// Prints types that implement [`Localize`] as their English sentence.
#[macro_export]
macro_rules! display_message {
    ($($kind:ty),* $(,)?) => {$(
        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&$crate::message::Localize::message(self), f)
            }
        }
    )*};
}

enum Piece<'a> {
    Text(&'a str),
    Argument(&'a str),
}

/// The pieces of a template. A part that is not a placeholder is text, a brace as well.
fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        let (piece, after) = next_piece(rest)?;
        rest = after;
        Some(piece)
    })
}

fn next_piece(rest: &str) -> Option<(Piece<'_>, &str)> {
    if rest.is_empty() {
        return None;
    }
    let at = rest.find(['{', '}']).unwrap_or(rest.len());
    if at > 0 {
        let (text, after) = rest.split_at(at);
        return Some((Piece::Text(text), after));
    }
    let is_doubled = rest.starts_with("{{") || rest.starts_with("}}");
    if let Some((name, after)) = rest.get(1..).and_then(|inner| inner.split_once('}'))
        && rest.starts_with('{')
        && !is_doubled
    {
        return Some((Piece::Argument(name), after));
    }
    let (brace, after) = rest.split_at(1);
    let after = if is_doubled {
        after.get(1..)
    } else {
        Some(after)
    };
    Some((Piece::Text(brace), after.unwrap_or_default()))
}

/// The names of the placeholders in a template, for tests of catalogues.
#[must_use]
pub fn placeholders(template: &str) -> Vec<&str> {
    let names = pieces(template).filter_map(|piece| match piece {
        Piece::Argument(name) => Some(name),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// Refuses, while compiling, a template whose placeholders are not the names of its arguments.
#[doc(hidden)]
pub const fn check(template: &str, names: &[&str]) {
    let text = template.as_bytes();
    let mut is_used = 0_u64;
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'}' {
            assert!(
                at + 1 < text.len() && text[at + 1] == b'}',
                "a brace stands alone: write '}}'"
            );
            at += 1;
        } else if text[at] == b'{' {
            assert!(at + 1 < text.len(), "a brace stands alone: write '{{'");
            if text[at + 1] == b'{' {
                at += 1;
            } else {
                let mut end = at + 1;
                while end < text.len() && text[end] != b'}' {
                    end += 1;
                }
                assert!(end < text.len(), "a brace stands alone: write '{{'");
                let found = find(text, at + 1, end, names);
                assert!(
                    found < names.len(),
                    "a placeholder has no argument of its name"
                );
                is_used |= 1 << found;
                at = end;
            }
        }
        at += 1;
    }
    assert!(
        is_used.count_ones() as usize == names.len(),
        "an argument has no placeholder of its name"
    );
}

/// Returns which of the names stands there; their number when none does.
const fn find(text: &[u8], start: usize, end: usize, names: &[&str]) -> usize {
    let mut which = 0;
    while which < names.len() {
        let name = names[which].as_bytes();
        if name.len() == end - start {
            let mut at = 0;
            while at < name.len() && name[at] == text[start + at] {
                at += 1;
            }
            if at == name.len() {
                return which;
            }
        }
        which += 1;
    }
    which
}

#[cfg(test)]
mod tests;
