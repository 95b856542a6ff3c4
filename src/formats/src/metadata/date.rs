//! Dates as records have them: the Extended Date/Time Format (EDTF), and what people and programs write in its place.
//!
//! A record keeps its date as it was given. Whatever needs a year, or a date of ISO 8601, asks [`GivenDate::read`], so
//! that all formats and searches understand the same. Months are recognized by their English, Portuguese, Spanish,
//! French and German names, seasons by their English, Portuguese and Spanish ones. No clock is read.

use edtf_core::{Bound, Date, Edtf, IntervalEndpoint};

/// The longest text that can be a date, in bytes.
const LONGEST: usize = 80;

/// A date that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenDate {
    /// Year, month and day, as far as they are given. The first ones of an interval.
    start: Vec<i32>,
    /// The last ones of an interval; empty if it is open.
    end: Option<Vec<i32>>,
    season: Option<u8>,
    is_approximate: bool,
    is_ambiguous: bool,
    /// Whether the text is a date or an interval of ISO 8601.
    is_iso: bool,
}

impl GivenDate {
    /// Understands a text. None of one that is no date, such as "in press".
    #[must_use]
    pub fn read(text: &str) -> Option<GivenDate> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        if let Some(ambiguous) = ambiguous_year(text) {
            return Some(GivenDate {
                is_ambiguous: true,
                ..GivenDate::of(ambiguous)?
            });
        }
        let found = GivenDate::of(&in_edtf(text, 0)?)?;
        // A fraction of a second is none of EDTF.
        let is_timed = text.get(10..11) == Some("T");
        let is_of_edtf = || Edtf::parse(text).is_ok_and(|edtf| edtf.level() == 0);
        let is_iso = found.is_exact() && (is_timed || is_of_edtf());
        Some(GivenDate { is_iso, ..found })
    }

    fn of(edtf: &str) -> Option<GivenDate> {
        let edtf = Edtf::parse(edtf).ok()?;
        let mut season = None;
        let (start, end) = match &edtf {
            Edtf::Date(date) => {
                let month = date.month.and_then(|month| month.value());
                season = month.filter(|month| (21..=24).contains(month));
                (parts(date), None)
            }
            Edtf::DateTime(at) => (parts(&at.date), None),
            Edtf::Interval(interval) => (
                endpoint(&interval.start),
                Some(endpoint(&interval.end).unwrap_or_default()),
            ),
            Edtf::Set(_) => (None, Some(bound(edtf.bounds().latest).unwrap_or_default())),
        };
        // Of a decade, `201X`, the first and the last year.
        let bounds = edtf.bounds();
        let year = |at| bound(at).map(|parts| parts.into_iter().take(1).collect::<Vec<_>>());
        let end = match (&start, end) {
            (None, None) => year(bounds.latest),
            (_, end) => end,
        };
        Some(GivenDate {
            start: start.or_else(|| year(bounds.earliest))?,
            end,
            season,
            is_approximate: edtf.is_approximate()
                || edtf.is_uncertain()
                || matches!(&edtf, Edtf::Set(_)),
            is_ambiguous: false,
            is_iso: false,
        })
    }

    /// The year, the first of an interval. That of ISO 8601, in which 0 is 1 BC.
    #[must_use]
    pub fn year(&self) -> i32 {
        self.start.first().copied().unwrap_or_default()
    }

    /// Year, month and day, as far as they are given; the first ones of an interval.
    #[must_use]
    pub fn parts(&self) -> &[i32] {
        &self.start
    }

    /// Year, month and day at the end of an interval, as far as they are given. Empty if it is open.
    #[must_use]
    pub fn end(&self) -> Option<&[i32]> {
        self.end.as_deref()
    }

    /// The season, as EDTF numbers them: spring is 21, winter 24.
    #[must_use]
    pub fn season(&self) -> Option<u8> {
        self.season
    }

    /// Whether it is approximate or uncertain.
    #[must_use]
    pub fn is_approximate(&self) -> bool {
        self.is_approximate
    }

    /// Whether day and month cannot be told apart, so that the year alone is understood.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// Whether a date of ISO 8601 says all of it.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_approximate && !self.is_ambiguous && self.season.is_none()
    }

    /// The date of ISO 8601, or the interval of two.
    #[must_use]
    pub fn iso(&self) -> String {
        match &self.end {
            Some(end) => format!("{}/{}", iso(&self.start), iso(end)),
            None => iso(&self.start),
        }
    }

    /// The text if it is a date of ISO 8601 itself, with a time perhaps, and else [`GivenDate::iso`].
    #[must_use]
    pub fn iso_of<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.is_iso {
            text.trim().into()
        } else {
            self.iso().into()
        }
    }
}

/// Whether a text says that there is no date.
#[must_use]
pub fn is_undated(text: &str) -> bool {
    let bare: String = text
        .chars()
        .filter(|sign| sign.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect();
    ["nd", "sd", "undated", "nodate", "semdata", "sinfecha"].contains(&&*bare)
}

fn iso(parts: &[i32]) -> String {
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        text.push_str(&match index {
            0 if *part < 0 => format!("{part:05}"),
            0 => format!("{part:04}"),
            _ => format!("-{part:02}"),
        });
    }
    text
}

/// Year, month and day. None if digits of the year are not known.
fn parts(date: &Date) -> Option<Vec<i32>> {
    let year = date.year.value().and_then(|year| i32::try_from(year).ok());
    let mut parts = vec![year.filter(|year| (-9999..=9999).contains(year))?];
    let month = date.month.and_then(|month| month.value());
    if let Some(month) = month.filter(|month| (1..=12).contains(month)) {
        parts.push(i32::from(month));
        parts.extend(date.day.and_then(|day| day.value()).map(i32::from));
    }
    Some(parts)
}

fn endpoint(end: &IntervalEndpoint) -> Option<Vec<i32>> {
    match end {
        IntervalEndpoint::Date(date)
        | IntervalEndpoint::OnOrBefore(date)
        | IntervalEndpoint::OnOrAfter(date) => parts(date),
        IntervalEndpoint::Open | IntervalEndpoint::Unknown => None,
    }
}

fn bound(bound: Bound) -> Option<Vec<i32>> {
    let Bound::Date(date) = bound else {
        return None;
    };
    let year = i32::try_from(date.year).ok()?;
    let is_near = (-9999..=9999).contains(&year);
    is_near.then(|| vec![year, i32::from(date.month), i32::from(date.day)])
}

/// The most marks around a date that are removed: "[ca. 1920?]" has three.
const MOST_MARKS: usize = 4;

/// The date in EDTF, which may yet be none of the calendar.
fn in_edtf(text: &str, marks: usize) -> Option<String> {
    let text = text.trim().trim_end_matches([',', ';']);
    if text.is_empty() || marks > MOST_MARKS {
        return None;
    }
    let next = |rest: &str| in_edtf(rest, marks + 1);
    // A year that the cataloguer supplies, "[1920]", is a set of one in EDTF.
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(inner) = inner.filter(|inner| !inner.contains(',') && !inner.contains("..")) {
        return next(inner);
    }
    if Edtf::parse(text).is_ok() {
        return Some(text.to_owned());
    }
    // With a time that EDTF does not have, or after a space.
    let is_timed = text.get(10..11).is_some_and(|sign| "T ".contains(sign));
    if let Some(day) = text.get(..10).filter(|_| is_timed)
        && text[11..].starts_with(|sign: char| sign.is_ascii_digit())
        && Edtf::parse(day).is_ok()
    {
        return Some(day.to_owned());
    }
    if let Some(rest) = text.strip_suffix('?') {
        return Some(next(rest)?.trim_end_matches(['~', '?']).to_owned() + "?");
    }
    if let Some(rest) = after_word(
        text,
        &[
            "circa", "ca.", "ca", "c. ", "c ", "about", "cerca de", "aprox.", "~",
        ],
    ) {
        return Some(next(rest)?.trim_end_matches(['~', '?']).to_owned() + "~");
    }
    // The year of a copyright.
    if let Some(rest) = after_word(text, &["©", "copyright", "cop.", "c", "p"])
        && rest.len() >= 4
        && rest.starts_with(|sign: char| sign.is_ascii_digit())
    {
        return next(rest);
    }
    numbered(text).or_else(|| worded(text))
}

/// The text behind one of these words, in any case.
fn after_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|word| {
        let beginning = text.get(..word.len())?;
        let rest = text[word.len()..].trim_start();
        let is_date = rest.starts_with(|sign: char| sign.is_ascii_digit() || sign == '[');
        (beginning.eq_ignore_ascii_case(word) && is_date).then_some(rest)
    })
}

/// Numbers of a text that has nothing but numbers and one kind of separator.
fn numbers(text: &str) -> Option<(char, Vec<&str>)> {
    let separator = text.chars().find(|sign| !sign.is_ascii_digit())?;
    let parts: Vec<&str> = text.split(separator).map(str::trim).collect();
    let is_number = |part: &&str| {
        matches!(part.len(), 1 | 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_separator = matches!(separator, '/' | '.' | '-' | '\u{2013}' | ' ');
    (is_separator && parts.iter().all(is_number)).then_some((separator, parts))
}

/// The year of `05/06/2010`, which may be in May or in June.
fn ambiguous_year(text: &str) -> Option<&str> {
    let (separator, parts) = numbers(text)?;
    let [first, second, year] = parts[..] else {
        return None;
    };
    let small = |part: &str| part.len() < 3 && part.parse::<u8>().is_ok_and(|it| it <= 12);
    // With dots the day comes first.
    let is_so = separator != '.' && year.len() == 4 && first.parse::<u8>() != second.parse::<u8>();
    (is_so && small(first) && small(second)).then_some(year)
}

/// Dates of numbers: `15/03/2010`, `3/15/2010`, `15.3.2010`, `2010/03/15`, `03/2010`, `20100315`, `1999-2003`.
fn numbered(text: &str) -> Option<String> {
    let day = |year: &str, month: &str, day: &str| format!("{year}-{month:0>2}-{day:0>2}");
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(day(&text[..4], &text[4..6], &text[6..]));
    }
    if let Some(year) = text.strip_suffix(['-', '\u{2013}']) {
        return (year.len() == 4).then(|| format!("{year}/.."));
    }
    if let Some(decade) = text.strip_suffix('s') {
        let decade = decade.trim_end_matches(['\'', '\u{2019}']);
        let years = decade.strip_suffix('0').filter(|years| years.len() == 3);
        return Some(format!("{}X", years?));
    }
    let (separator, parts) = numbers(text)?;
    match parts[..] {
        [first, second, third] if first.len() == 4 => Some(day(first, second, third)),
        [first, second, third] if third.len() == 4 => {
            // A month is at most 12; `ambiguous_year` has taken those that could be either.
            let is_month_first = separator != '.' && second.parse::<u8>().is_ok_and(|it| it > 12);
            let (of_month, month) = if is_month_first {
                (second, first)
            } else {
                (first, second)
            };
            Some(day(third, month, of_month))
        }
        [first, second] if first.len() == 4 && second.len() == 4 => {
            Some(format!("{first}/{second}"))
        }
        [year, month] if year.len() == 4 && month.len() < 3 => Some(format!("{year}-{month:0>2}")),
        [month, year] if year.len() == 4 && month.len() < 3 => Some(format!("{year}-{month:0>2}")),
        _ => None,
    }
}

/// Dates with a month or a season in words: `Mar 2010`, `15 de março de 2010`, `March 15th, 2010`, `spring 2010`.
fn worded(text: &str) -> Option<String> {
    let (mut year, mut day) = (None, None);
    let mut months: Vec<String> = Vec::new();
    let lower = text.to_lowercase();
    let words = lower.split(|sign: char| !sign.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = word.split_at(digits);
        match (digits, rest) {
            (4, "") if year.is_none() => year = Some(number),
            (1 | 2, "" | "st" | "nd" | "rd" | "th" | "º" | "°" | "er") if day.is_none() => {
                day = Some(number);
            }
            (0, "de" | "del" | "do" | "of" | "the" | "a" | "e") => {}
            (0, _) => months.push(month_number(word)?),
            _ => return None,
        }
    }
    let year = year?;
    match (&months[..], day) {
        ([month], None) => Some(format!("{year}-{month}")),
        ([month], Some(day)) => Some(format!("{year}-{month}-{day:0>2}")),
        // "Jul.-Aug. 2009"
        ([first, last], None) => Some(format!("{year}-{first}/{year}-{last}")),
        _ => None,
    }
}

/// The number of the month, or the number that EDTF gives the season, which a word names.
fn month_number(word: &str) -> Option<String> {
    let number = |names: &[&[&str]], first: usize| {
        let position = names.iter().position(|names| {
            names.iter().any(|name| {
                let is_short = word.chars().count() >= 3 && name.starts_with(word);
                is_short || (*name == "september" && word == "sept")
            })
        })?;
        Some(format!("{:02}", position + first))
    };
    number(MONTHS, 1).or_else(|| number(SEASONS, 21))
}

const MONTHS: &[&[&str]] = &[
    &["january", "janeiro", "enero", "janvier", "januar"],
    &["february", "fevereiro", "febrero", "février", "februar"],
    &["march", "março", "marco", "marzo", "mars", "märz"],
    &["april", "abril", "avril"],
    &["may", "maio", "mayo", "mai"],
    &["june", "junho", "junio", "juin", "juni"],
    &["july", "julho", "julio", "juillet", "juli"],
    &["august", "agosto", "août"],
    &["september", "setembro", "septiembre", "septembre"],
    &["october", "outubro", "octubre", "octobre", "oktober"],
    &["november", "novembro", "noviembre", "novembre"],
    &["december", "dezembro", "diciembre", "décembre", "dezember"],
];

const SEASONS: &[&[&str]] = &[
    &["spring", "primavera"],
    &["summer", "verão", "verao", "verano"],
    &["autumn", "fall", "outono", "otoño"],
    &["winter", "inverno", "invierno"],
];

/// The date of a record whose format has fields for the year and for the month, which may be a whole date.
pub(super) fn date(year: &str, month: &str) -> String {
    let (year, month) = (year.trim(), month.trim());
    let iso = |text: &str| {
        let read = GivenDate::read(text).filter(|date| date.is_exact());
        read.map(|date| date.iso())
    };
    let is_year = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    if month.contains('-') && Edtf::parse(month).is_ok() && iso(month).is_some() {
        month.to_owned()
    } else if month.is_empty() || !is_year {
        year.to_owned()
    } else {
        let numbered = month
            .parse::<u8>()
            .map(|month| format!("{year}-{month:02}"));
        let whole = numbered.unwrap_or_else(|_| format!("{month} {year}"));
        match GivenDate::read(&whole) {
            Some(date) if date.is_exact() => date.iso(),
            Some(_) => whole,
            // "16-20 Feb."
            None => {
                let mut words = month.split(|sign: char| !sign.is_alphabetic());
                let named = words.find_map(|word| month_number(&word.to_lowercase()));
                match named.filter(|number| &**number <= "12") {
                    Some(number) => format!("{year}-{number}"),
                    None => year.to_owned(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_understood_as_they_are_written() {
        let exact: &[(&str, &str)] = &[
            ("2009", "2009"),
            ("2009-02", "2009-02"),
            (" 2009-02-16 ", "2009-02-16"),
            ("-0044-03-15", "-0044-03-15"),
            ("15/03/2010", "2010-03-15"),
            ("3/15/2010", "2010-03-15"),
            ("05/05/2010", "2010-05-05"),
            ("5.6.2010", "2010-06-05"),
            ("2010/03/15", "2010-03-15"),
            ("2010.3.5", "2010-03-05"),
            ("03/2010", "2010-03"),
            ("20100315", "2010-03-15"),
            ("2010-03-15T12:00:00Z", "2010-03-15"),
            ("2010-03-15T12:00:00.123+00:00", "2010-03-15"),
            ("2010-03-15 12:00:00", "2010-03-15"),
            ("1999/2003", "1999/2003"),
            ("1999-2003", "1999/2003"),
            ("1999\u{2013}2003", "1999/2003"),
            ("2009-02-16/2010", "2009-02-16/2010"),
            ("2010/..", "2010/"),
            ("2010-", "2010/"),
            ("2010-XX", "2010"),
            ("[1920]", "1920"),
            ("c1999", "1999"),
            ("©1999", "1999"),
            ("Mar 2010", "2010-03"),
            ("Sept. 2010", "2010-09"),
            ("março de 2010", "2010-03"),
            ("15 de março de 2010", "2010-03-15"),
            ("1º de maio de 2010", "2010-05-01"),
            ("March 15th, 2010", "2010-03-15"),
            ("15 mars 2010", "2010-03-15"),
            ("2010 Mar 15", "2010-03-15"),
            ("Jul.-Aug. 2009", "2009-07/2009-08"),
        ];
        for (text, iso) in exact {
            let date = GivenDate::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.iso(), *iso, "{text}");
            assert!(date.is_exact(), "{text}");
        }
        let others: &[(&str, &str, bool)] = &[
            ("1920~", "1920", true),
            ("1920?", "1920", true),
            ("c1920?", "1920", true),
            ("[1920?]", "1920", true),
            ("[ca. 1920?]", "1920", true),
            ("ca. 1920", "1920", true),
            ("circa 1920", "1920", true),
            ("c. 1920", "1920", true),
            ("1985-04~", "1985-04", true),
            ("201X", "2010/2019", false),
            ("1920s", "1920/1929", false),
            ("spring 2010", "2010", false),
            ("2010-21", "2010", false),
            ("verão de 2010", "2010", false),
            // Day first, or month first.
            ("05/06/2010", "2010", false),
            ("5-6-2010", "2010", false),
        ];
        for (text, iso, is_approximate) in others {
            let date = GivenDate::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.iso(), *iso, "{text}");
            assert_eq!(date.is_approximate(), *is_approximate, "{text}");
        }
        assert_eq!(
            GivenDate::read("spring 2010").and_then(|it| it.season()),
            Some(21)
        );
        assert!(GivenDate::read("05/06/2010").is_some_and(|it| it.is_ambiguous()));
        let long = "1".repeat(1_000_000);
        for text in [
            "",
            "in press",
            "n.d.",
            "2010-02-30",
            "2009-13",
            "20091",
            "31/02/2010",
            "marsupials 2010",
            "1/2/3",
            "c",
            "may",
            "[",
            "[]",
            "??????????",
            "cccccc1999",
            "15/03/10",
            "no. 1234 of 1999",
            &long,
        ] {
            assert_eq!(GivenDate::read(text), None, "{text}");
        }
        for text in ["n.d.", "[s.d.]", "S. d.", "undated"] {
            assert!(is_undated(text), "{text}");
        }
        assert!(!is_undated("in press"));
    }

    #[test]
    fn a_text_of_iso_8601_stays() {
        for (text, iso) in [
            ("2010-03-15T12:00:00Z", "2010-03-15T12:00:00Z"),
            ("2010-03-15T12:00:00.5Z", "2010-03-15T12:00:00.5Z"),
            ("1999/2003", "1999/2003"),
            ("15/03/2010", "2010-03-15"),
            ("ca. 1920", "1920"),
        ] {
            let date = GivenDate::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(date.iso_of(text), iso);
        }
    }

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
            ("2009", "16-20 fev.", "2009-02"),
            ("2009", "16 de dez.", "2009-12-16"),
            ("2009", "1~feb", "2009-02-01"),
            ("2009", "Jul.-Aug.", "2009-07/2009-08"),
            ("2009", "spring", "spring 2009"),
            ("2009", "2009-02-16", "2009-02-16"),
            ("2009-02-16", "", "2009-02-16"),
            ("2009-13", "", "2009-13"),
            ("2009-02-16/2010-01-01", "", "2009-02-16/2010-01-01"),
            ("c1999", "", "c1999"),
            ("20091", "may", "20091"),
            ("in press", "may", "in press"),
            ("", "", ""),
        ];
        for (year, month, expected) in cases {
            assert_eq!(date(year, month), expected, "{year:?} {month:?}");
        }
    }
}
