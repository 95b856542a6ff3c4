//! Converts dates of records to the forms `YYYY`, `YYYY-MM` or `YYYY-MM-DD` of Dublin Core.
//!
//! Months are recognized by number and by their English, Portuguese and Spanish names, long or short. A text
//! that is not a date is returned unchanged, because "in press" is more useful than nothing. No clock is
//! read.

/// A year, with the month if it is known; a text without a year is returned unchanged.
pub(super) fn date(year: &str, month: &str) -> String {
    if is_iso_date(month) {
        return month.trim().to_string();
    }
    let Some(year_digits) = four_digits(year) else {
        return year.trim().to_string();
    };
    match month_number(month) {
        Some(number) => format!("{year_digits}-{number:02}"),
        None if is_iso_date(year) => year.trim().to_string(),
        None => year_digits.to_string(),
    }
}

/// The first year in a text: four digits that are not part of a longer number.
fn four_digits(text: &str) -> Option<&str> {
    text.split(|character: char| !character.is_ascii_digit())
        .find(|digits| digits.len() == 4)
}

/// Whether a text is `YYYY-MM` or `YYYY-MM-DD`.
fn is_iso_date(text: &str) -> bool {
    let mut parts = text.trim().split('-');
    let mut number = |length: usize| {
        parts
            .next()
            .filter(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|part| part.parse::<u16>().ok())
    };
    let (year, month) = (number(4), number(2));
    year.is_some()
        && month.is_some_and(|month| (1..=12).contains(&month))
        && match parts.next() {
            None => true,
            Some(day) => {
                day.len() == 2 && day.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
            }
        }
        && parts.next().is_none()
}

/// The month that a text names, by its first three letters or by a number that is the whole text.
fn month_number(text: &str) -> Option<u8> {
    if let Ok(number) = text.trim().parse::<u8>() {
        return (1..=12).contains(&number).then_some(number);
    }
    text.split(|character: char| !character.is_alphabetic())
        .find_map(|word| {
            let short: String = word.chars().take(3).flat_map(char::to_lowercase).collect();
            let position = MONTHS
                .iter()
                .position(|names| names.contains(&short.as_str()))?;
            u8::try_from(position + 1).ok()
        })
}

const MONTHS: [&[&str]; 12] = [
    &["jan", "ene"],
    &["feb", "fev"],
    &["mar"],
    &["apr", "abr"],
    &["may", "mai"],
    &["jun"],
    &["jul"],
    &["aug", "ago"],
    &["sep", "set"],
    &["oct", "out"],
    &["nov"],
    &["dec", "dez", "dic"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_years_and_months() {
        let cases = [
            ("2009", "", "2009"),
            (" 2009 ", "feb", "2009-02"),
            ("2009", "February", "2009-02"),
            ("2009", "fevereiro", "2009-02"),
            ("2009", "Março", "2009-03"),
            ("2009", "12", "2009-12"),
            ("2009", "13", "2009"),
            ("2009", "16 de dez.", "2009-12"),
            ("2009", "Jul.-Aug.", "2009-07"),
            ("2009", "spring", "2009"),
            ("2009", "2009-02-16", "2009-02-16"),
            ("2009-02-16", "", "2009-02-16"),
            ("2009-13", "", "2009"),
            ("2009-02-16/2010-01-01", "", "2009"),
            ("c1999", "", "1999"),
            ("20091", "may", "20091"),
            ("in press", "may", "in press"),
            ("", "", ""),
        ];
        for (year, month, expected) in cases {
            assert_eq!(date(year, month), expected, "{year:?} {month:?}");
        }
    }
}
