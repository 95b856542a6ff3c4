//! ORCID iDs: sixteen characters, of which the last one is a check of the others (ISO 7064, MOD 11-2).

/// The iD in a text, which may be a URL, as `0000-0002-1825-0097`. None if the text has none, or a wrong one.
#[must_use]
pub fn orcid(text: &str) -> Option<String> {
    let bare = shape(text)?;
    let mut digits = bare.chars().filter(|sign| *sign != '-');
    let mut total = 0_u32;
    for digit in digits.clone().take(15) {
        total = (total + digit.to_digit(10)?) * 2;
    }
    let check = (12 - total % 11) % 11;
    let expected = if check == 10 {
        'X'
    } else {
        char::from_digit(check, 10)?
    };
    (digits.next_back() == Some(expected)).then_some(bare)
}

/// The four groups of an iD, whether or not the check fits.
fn shape(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches('/');
    let last = text.rsplit('/').next()?;
    let last = last
        .trim_start_matches("orcid:")
        .trim()
        .to_ascii_uppercase();
    let groups: Vec<&str> = last.split('-').collect();
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let [one, two, three, four] = groups[..] else {
        return None;
    };
    let is_so = [one, two, three, four].iter().all(|group| group.len() == 4)
        && is_digits(one)
        && is_digits(two)
        && is_digits(three)
        && four.get(..3).is_some_and(is_digits);
    is_so.then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_is_checked() {
        for (text, expected) in [
            ("0000-0002-1825-0097", Some("0000-0002-1825-0097")),
            (
                "https://orcid.org/0000-0002-1694-233x",
                Some("0000-0002-1694-233X"),
            ),
            ("orcid:0000-0002-1825-0097", Some("0000-0002-1825-0097")),
            ("0000-0002-1825-0098", None),
            ("0000-0002-1825-009é", None),
            ("0000-0002-1825", None),
            ("", None),
        ] {
            assert_eq!(orcid(text).as_deref(), expected, "{text}");
        }
    }
}
