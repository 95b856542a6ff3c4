//! Chooses the language of a person from the environment, as gettext does.

/// A language of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locale {
    /// The language of the sources, and the default.
    English,
    /// Brazilian Portuguese, for all locales of Portuguese.
    Portuguese,
}

impl Locale {
    /// The language by LANGUAGE, LC_ALL, LC_MESSAGES and LANG, which `variable` returns. LANGUAGE is a list
    /// of preferences and is ignored in the locale C.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Locale {
        let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(set);
        let locale = match locale.as_deref() {
            None | Some("C" | "POSIX") => return Locale::English,
            Some(locale) if locale.starts_with("C.") || !is_utf8(locale) => return Locale::English,
            Some(locale) => locale,
        };
        let wishes = set(&"LANGUAGE").unwrap_or_default();
        let mut wishes = wishes.split(':').filter(|wish| !wish.is_empty());
        let known = wishes.find_map(Locale::named);
        known.or(Locale::named(locale)).unwrap_or(Locale::English)
    }

    /// The language of a locale such as `pt_BR.UTF-8`, if it is supported.
    fn named(locale: &str) -> Option<Locale> {
        match locale.split(['_', '.', '@', '-']).next() {
            Some("pt") => Some(Locale::Portuguese),
            Some("en" | "C" | "POSIX") => Some(Locale::English),
            _ => None,
        }
    }
}

/// Whether a terminal of this locale shows UTF-8; English does not need it.
fn is_utf8(locale: &str) -> bool {
    let codeset = locale.split_once('.').map_or("", |(_, codeset)| codeset);
    let codeset = codeset.split('@').next().unwrap_or_default();
    let plain = codeset.replace('-', "").to_ascii_lowercase();
    plain.is_empty() || plain == "utf8"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(environment: &[(&str, &str)], expected: Locale) {
        let found = Locale::of(|name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        assert_eq!(found, expected, "{environment:?}");
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn the_language_is_found_as_gettext_finds_it() {
        use Locale::{English, Portuguese};
        is(&[], English);
        is(&[("LANG", "pt_BR.UTF-8")], Portuguese);
        is(&[("LANG", "pt_BR.utf8")], Portuguese);
        is(&[("LANG", "pt_BR")], Portuguese);
        is(&[("LANG", "pt_PT.UTF-8@euro")], Portuguese);
        is(&[("LANG", "pt")], Portuguese);
        is(&[("LANG", "ptx_BR.UTF-8")], English);
        is(&[("LANG", "de_DE.UTF-8")], English);
        is(&[("LANG", "pt_BR.ISO-8859-1")], English);
        // The first variable that is set and not empty.
        is(&[("LANG", "pt_BR.UTF-8"), ("LC_MESSAGES", "en_GB.UTF-8")], English);
        is(&[("LANG", "en_US.UTF-8"), ("LC_MESSAGES", "pt_BR.UTF-8")], Portuguese);
        is(&[("LC_MESSAGES", "pt_BR.UTF-8"), ("LC_ALL", "C")], English);
        is(&[("LC_MESSAGES", "pt_BR.UTF-8"), ("LC_ALL", "POSIX")], English);
        is(&[("LANG", "pt_BR.UTF-8"), ("LC_ALL", "")], Portuguese);
        // The list of preferences, unless the locale is C.
        is(&[("LANGUAGE", "pt_BR:en"), ("LANG", "en_US.UTF-8")], Portuguese);
        is(&[("LANGUAGE", "en:pt_BR"), ("LANG", "pt_BR.UTF-8")], English);
        is(&[("LANGUAGE", "fr::pt"), ("LANG", "fr_FR.UTF-8")], Portuguese);
        is(&[("LANGUAGE", "fr"), ("LANG", "pt_BR.UTF-8")], Portuguese);
        is(&[("LANGUAGE", "pt_BR"), ("LANG", "C")], English);
        is(&[("LANGUAGE", "pt_BR"), ("LANG", "C.UTF-8")], English);
        is(&[("LANGUAGE", "pt_BR")], English);
        is(&[("LANGUAGE", ""), ("LANG", "pt_BR.UTF-8")], Portuguese);
    }
}
