//! Names of persons and organizations, as records have them: "Family, Given", "Family, Given, Jr", or one text.

/// A name in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonName<'a> {
    /// The whole name as it was given.
    pub whole: &'a str,
    /// The family name; None of a name in one part, such as that of an organization.
    pub family: Option<&'a str>,
    /// The given names.
    pub given: &'a str,
    /// The part after the name, such as Jr.
    pub suffix: Option<&'a str>,
}

impl<'a> PersonName<'a> {
    /// The parts of a name.
    #[must_use]
    pub fn of(whole: &'a str) -> PersonName<'a> {
        let parts: Vec<&str> = whole.split(',').map(str::trim).collect();
        let (family, given, suffix) = match parts[..] {
            [family, given] => (Some(family), given, None),
            [family, given, suffix] => (Some(family), given, Some(suffix)),
            _ => (None, "", None),
        };
        let is_empty = family.is_some_and(str::is_empty)
            || (family.is_some() && given.is_empty())
            || suffix.is_some_and(str::is_empty);
        // A name that is written in another way is left as it is.
        let is_whole = is_empty || parts.join(", ") != whole;
        let parted = PersonName {
            whole,
            family,
            given,
            suffix,
        };
        if is_whole {
            PersonName {
                family: None,
                given: "",
                suffix: None,
                ..parted
            }
        } else {
            parted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_parts() {
        for (whole, family, given, suffix) in [
            ("Banon, Gerald", Some("Banon"), "Gerald", None),
            (
                "King, Martin Luther, Jr",
                Some("King"),
                "Martin Luther",
                Some("Jr"),
            ),
            ("INPE", None, "", None),
            ("INPE,", None, "", None),
            (", x", None, "", None),
            ("a, b, ", None, "", None),
            ("a, b, c, d", None, "", None),
            ("a,b", None, "", None),
            ("", None, "", None),
        ] {
            let name = PersonName::of(whole);
            assert_eq!(
                (name.family, name.given, name.suffix),
                (family, given, suffix),
                "{whole}"
            );
        }
    }
}
