//! Messages for a person, in that person's language.
//!
//! All messages are created in English: errors, findings, JSON and logs are the same for every script, in any
//! locale. Where the command prints for a person, [`told`] looks the finished sentence up in a catalogue of
//! templates and translates it into the language of the locale. A sentence without a template is printed
//! unchanged.
//!
//! The catalogue is a gettext PO file, so that translators can use their tools. A msgid is the text of a
//! format string in the sources, `no item '{name}' is held here`. In the msgstr a placeholder keeps its name,
//! or its number where it has none, and may be moved or repeated. Its value is copied byte for byte, unless
//! the msgstr marks it as a message:
//!
//! - `{cause:m}`: the value is a message, or the template does not match;
//! - `{cause:m?}`: the value is translated if it is a message, and copied otherwise;
//! - `{part:noun}`: the value is in the context (msgctxt) `noun`, for parts of sentences that are not
//!   messages by themselves; `{part:noun|m?}` likewise, in either.
//!
//! The texts of clap, which are looked up as a whole, have the context `help`.

mod catalogue;
mod locale;
mod template;

use std::fmt::Display;
use std::sync::OnceLock;

pub use catalogue::{Catalogue, CatalogueError};
pub use locale::Locale;

/// The catalogue of Brazilian Portuguese.
pub const PT_BR: &str = include_str!("language/pt_BR.po");

/// The catalogue of this process; English has none.
static CHOSEN: OnceLock<Option<Catalogue>> = OnceLock::new();

/// Sets the language of this process from its environment, once.
pub fn choose(variable: impl Fn(&str) -> Option<String>) {
    CHOSEN.get_or_init(|| match Locale::of(variable) {
        Locale::English => None,
        // A test parses the catalogue; if it were invalid, messages would be in English.
        Locale::Portuguese => Catalogue::parse(PT_BR).ok(),
    });
}

/// The catalogue of the chosen language; None for English.
pub fn chosen() -> Option<&'static Catalogue> {
    CHOSEN.get().and_then(Option::as_ref)
}

/// A text of the help, in the chosen language.
#[must_use]
pub fn help(text: &str) -> &str {
    let said = chosen().and_then(|catalogue| catalogue.help(text));
    said.unwrap_or(text)
}

/// A message in the chosen language.
pub fn told(message: impl Display) -> String {
    let message = message.to_string();
    match chosen() {
        Some(catalogue) => catalogue.told(&message),
        None => message,
    }
}
