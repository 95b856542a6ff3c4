//! A catalogue of messages and their translations.

use std::collections::HashMap;
use std::fmt;

use ibi::message::{Localize, Message};

/// The context of the texts of clap.
const HELP: &str = "help";

/// The rule that chooses between the two forms of a plural, in the header of the catalogue: zero and one have
/// the first form in Brazilian Portuguese.
const PLURAL_FORMS: &str = "Plural-Forms: nplurals=2; plural=(n > 1);";

/// The reason why a text is not a catalogue.
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

/// The translation of a template.
#[derive(Debug)]
struct Translation {
    /// The only form, or that for one.
    one: String,
    /// The form for other numbers.
    other: Option<String>,
}

/// A catalogue of messages.
#[derive(Debug)]
pub struct Catalogue {
    /// By the template.
    messages: HashMap<String, Translation>,
    /// The texts of clap.
    help: HashMap<String, String>,
}

impl Catalogue {
    /// Parses a PO file.
    ///
    /// # Errors
    ///
    /// The text is not a PO file; an entry is not translated, or there twice; the rule for plurals is not that
    /// of Brazilian Portuguese.
    pub fn parse(text: &str) -> Result<Catalogue, CatalogueError> {
        let error = |what: String| CatalogueError { what };
        let parsed = polib::po_file::parse_from_reader(text.as_bytes());
        let parsed = parsed.map_err(|refused| error(refused.to_string()))?;
        if !text.contains(PLURAL_FORMS) {
            return Err(error(format!("the header has no '{PLURAL_FORMS}'")));
        }
        let mut catalogue = Catalogue {
            messages: HashMap::new(),
            help: HashMap::new(),
        };
        for message in parsed.messages() {
            let english = message.msgid().to_owned();
            let refused = |what: &str| error(format!("'{english}': {what}"));
            let forms = match message.msgstr_plural() {
                Ok(forms) => forms.clone(),
                Err(_) => vec![message.msgstr().unwrap_or_default().to_owned()],
            };
            if message.flags().is_fuzzy() || forms.iter().any(String::is_empty) {
                return Err(refused("is not translated"));
            }
            let mut forms = forms.into_iter();
            let one = forms.next().ok_or_else(|| refused("is not translated"))?;
            let other = forms.next();
            let is_known = match message.msgctxt().unwrap_or_default() {
                HELP => catalogue.help.insert(english.clone(), one).is_some(),
                "" => {
                    let translation = Translation { one, other };
                    let before = catalogue.messages.insert(english.clone(), translation);
                    before.is_some()
                }
                _ => return Err(refused("has an unknown context")),
            };
            if is_known {
                return Err(refused("is there twice"));
            }
        }
        Ok(catalogue)
    }

    /// A message in the language. A part that the catalogue lacks stays English.
    #[must_use]
    pub fn translate(&self, message: &impl Localize) -> String {
        message
            .message()
            .translated(&|template, count| self.find(template, count))
    }

    /// The text of a message without arguments.
    #[must_use]
    pub fn text(&self, message: &Message) -> &str {
        let template = message.template().text;
        self.find(template, None).unwrap_or(template)
    }

    /// A text of clap in the language, if it is in the catalogue.
    #[must_use]
    pub fn help(&self, text: &str) -> Option<&str> {
        self.help.get(text).map(String::as_str)
    }

    /// The translation of a template, for a number if it is a plural.
    fn find(&self, template: &str, count: Option<u64>) -> Option<&str> {
        let found = self.messages.get(template)?;
        match (&found.other, count) {
            (Some(other), Some(2..)) => Some(other),
            _ => Some(&found.one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::language::PT_BR;
    use ibi::{message, plural};

    fn catalogue(entries: &str) -> Result<Catalogue, CatalogueError> {
        let header = format!("msgid \"\"\nmsgstr \"\"\n\"{PLURAL_FORMS}\\n\"\n");
        Catalogue::parse(&format!("{header}\n{entries}"))
    }

    const ENTRIES: &str = r#"
msgid "the index is damaged"
msgstr "o índice está danificado"

msgid "move '{from}' to '{to}'"
msgstr "para '{to}' mova '{from}'"

msgid "{what}: {error}"
msgstr "{what}: {error}"

msgid "{count} item"
msgid_plural "{count} items"
msgstr[0] "{count} unidade"
msgstr[1] "{count} unidades"

msgid "No such file or directory (os error 2)"
msgstr "Arquivo inexistente"

msgctxt "help"
msgid "Options:"
msgstr "Opções:"
"#;

    #[track_caller]
    fn translates(message: &Message, expected: &str) {
        let catalogue = catalogue(ENTRIES).expect("a catalogue");
        assert_eq!(catalogue.translate(message), expected, "{message}");
    }

    #[test]
    fn a_message_is_looked_up_by_its_template() {
        let error = message!("the index is damaged");
        translates(&error, "o índice está danificado");
        translates(
            &message!("move '{from}' to '{to}'", from = "a", to = "b"),
            "para 'b' mova 'a'",
        );
        translates(
            &message!("{what}: {error}", what = "the index is damaged", error),
            "the index is damaged: o índice está danificado",
        );
        translates(
            &message!(
                "{what}: {error}",
                what = "x",
                error = std::io::Error::from_raw_os_error(2)
            ),
            "x: Arquivo inexistente",
        );
        translates(&message!("a text that it lacks"), "a text that it lacks");
        translates(&message!("Options:"), "Options:");
    }

    #[test]
    fn a_number_chooses_the_form() {
        let items = |count: u64| plural!("{count} item", "{count} items", count);
        translates(&items(0), "0 unidade");
        translates(&items(1), "1 unidade");
        translates(&items(2), "2 unidades");
    }

    #[test]
    fn the_help_is_apart() {
        let catalogue = catalogue(ENTRIES).expect("a catalogue");
        assert_eq!(catalogue.help("Options:"), Some("Opções:"));
        assert_eq!(catalogue.help("the index is damaged"), None);
    }

    #[test]
    fn an_invalid_catalogue_is_refused() {
        let refused = |entries: &str| {
            let refused = catalogue(entries).expect_err("it is not valid");
            refused.to_string()
        };
        let entry = "msgid \"a\"\nmsgstr \"b\"\n\n";
        assert_eq!(
            refused("msgid \"a\"\nmsgstr \"\"\n"),
            "'a': is not translated"
        );
        assert_eq!(
            refused(&format!("#, fuzzy\n{entry}")),
            "'a': is not translated"
        );
        assert_eq!(
            refused("msgid \"a\"\nmsgid_plural \"as\"\nmsgstr[0] \"b\"\nmsgstr[1] \"\"\n"),
            "'a': is not translated"
        );
        assert_eq!(
            refused(&format!("msgctxt \"noun\"\n{entry}")),
            "'a': has an unknown context"
        );
        assert!(Catalogue::parse("msgid \"\"\nmsgstr \"Language: pt\\n\"\n").is_err());
        assert!(Catalogue::parse("msgid nothing").is_err());
    }

    #[test]
    fn the_catalogue_of_portuguese_is_valid() {
        assert!(Catalogue::parse(PT_BR).is_ok());
    }
}
