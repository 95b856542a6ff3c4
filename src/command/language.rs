//! What a person is told, in that person's language.
//!
//! Inside, every message is English: errors, findings, JSON and logs are the same for every script,
//! whatever the locale. Where the command prints for a person, [`told`] looks the finished sentence
//! up in a catalogue of templates and says it again in the language of the locale. What is in no
//! template is printed as it is.
//!
//! The catalogue is a gettext PO file, so that translators have their tools. A msgid is the text of
//! a format string as the sources have it, `no item '{name}' is held here`. In the msgstr a hole
//! keeps its name, or its number where it has none, and may come elsewhere or twice. What was filled
//! in is given back byte for byte, unless the msgstr says that it is itself a message:
//!
//! - `{cause:m}`: it is one of ours, or the template does not fit;
//! - `{cause:m?}`: it is said in the language if it is one of ours, and as it is otherwise;
//! - `{part:noun}`: it is one of the context (msgctxt) `noun`, where parts of sentences are that are
//!   no messages by themselves; `{part:noun|m?}` likewise, of either.
//!
//! The texts of clap, which are looked up whole, stand there in the context `help`.

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

/// Chooses the language of this process by its environment, once.
pub fn choose(variable: impl Fn(&str) -> Option<String>) {
    CHOSEN.get_or_init(|| match Locale::of(variable) {
        Locale::English => None,
        // A test reads the catalogue; were it broken, English does.
        Locale::Portuguese => Catalogue::parse(PT_BR).ok(),
    });
}

/// The catalogue of the language that was chosen; None for English.
pub fn chosen() -> Option<&'static Catalogue> {
    CHOSEN.get().and_then(Option::as_ref)
}

/// A text of the help, in the language that was chosen.
#[must_use]
pub fn help(text: &str) -> &str {
    let said = chosen().and_then(|catalogue| catalogue.help(text));
    said.unwrap_or(text)
}

/// A message of ours, in the language that was chosen.
pub fn told(message: impl Display) -> String {
    let message = message.to_string();
    match chosen() {
        Some(catalogue) => catalogue.told(&message),
        None => message,
    }
}
