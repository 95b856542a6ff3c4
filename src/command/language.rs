//! Messages for a person, in that person's language.
//!
//! A message is a template and its arguments ([`mod@ibi::message`]). Errors, findings, JSON and logs are English,
//! the same for every script in any locale. Where the command prints for a person, [`localized`] looks the
//! template up in the catalogue of the locale and fills in the same arguments; a message among the arguments
//! is looked up in turn. A template that the catalogue lacks stays English.
//!
//! The catalogue is a gettext PO file. A msgid is the template of a `message!`, with its placeholders, or the
//! two templates of a `plural!`. A msgstr names the same placeholders, and may move or repeat them. Texts of
//! the system and of libraries are msgids without placeholders; the texts of clap's help have the context
//! `help`.

mod catalogue;
mod locale;

use std::sync::OnceLock;

use ibi::message::Localize;

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
    let translated = chosen().and_then(|catalogue| catalogue.help(text));
    translated.unwrap_or(text)
}

/// A message in the chosen language.
#[must_use]
pub fn localized(message: &impl Localize) -> String {
    match chosen() {
        Some(catalogue) => catalogue.translate(message),
        None => message.message().to_string(),
    }
}
