//! The record of an item in a search index: the words and the values of its description.

use sha2::{Digest, Sha256};

use crate::archive::store::{Item, SearchEntry};
use crate::formats::description::Description;
use crate::formats::item::Names;
use crate::formats::metadata::{DublinCore, Element, GivenDate};
use crate::formats::search::SearchField;

/// The bytes of an item's text that are indexed in one field.
const LONGEST_TEXT: usize = 64 << 10;

/// The longest value by which items are listed, in bytes, and how many an item has in a field.
const LONGEST_VALUE: usize = 300;
const MOST_VALUES: usize = 100;

/// The level at which items are listed together.
fn collection_of(names: &Names) -> String {
    match (names.rep(), names.ibip()) {
        (Some(rep), _) => {
            let components: Vec<&str> = rep.as_str().split('/').take(2).collect();
            components.join("/")
        }
        (None, Some(ibip)) => ibip.prefix().to_owned(),
        (None, None) => String::new(),
    }
}

/// The years in a date or at the ends of an interval; of one that is not understood, numbers of four digits.
fn years_in(date: &str) -> Vec<String> {
    let year = |year: i32| format!("{year:04}");
    if let Some(given) = GivenDate::read(date) {
        let last = given.end().and_then(|end| end.first());
        let mut years = vec![year(given.year())];
        years.extend(last.copied().map(year).filter(|last| *last != years[0]));
        return years;
    }
    let numbers = date.split(|sign: char| !sign.is_ascii_digit());
    let years = numbers.filter(|number| number.len() == 4).take(2);
    years.map(str::to_owned).collect()
}

/// Returns what is recorded of an item and its description.
pub(super) fn entry_of(item: &Item, description: &Description) -> SearchEntry {
    let core = &description.record.core;
    let mut entry = SearchEntry {
        item: item.id.0,
        ..SearchEntry::default()
    };
    for &field in SearchField::DESCRIBED {
        let values = values_of(field, core, item);
        let is_listed = !matches!(
            field,
            SearchField::Title | SearchField::Abstract | SearchField::Other
        );
        let mut left = LONGEST_TEXT;
        for (number, value) in values.iter().enumerate() {
            if is_listed && number < MOST_VALUES && value.len() <= LONGEST_VALUE {
                entry.values.push((field, value.clone()));
            }
            let text = start_of(value, left);
            left -= text.len();
            if !text.is_empty() {
                entry.texts.push((field, text.to_owned()));
            }
        }
    }
    let all = entry.texts.iter().chain(&entry.values);
    entry.mark = mark_of(all.flat_map(|(field, text)| [field.name().as_bytes(), text.as_bytes()]));
    entry
}

/// A digest of some values.
pub(super) fn mark_of<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut digest = Sha256::new();
    for value in values {
        digest.update(value);
        digest.update([0]);
    }
    let mut mark = digest.finalize().to_vec();
    mark.truncate(16);
    mark
}

fn values_of(field: SearchField, core: &DublinCore, item: &Item) -> Vec<String> {
    let elements: &[Element] = match field {
        SearchField::Title => &[Element::Title],
        SearchField::Creator => &[Element::Creator, Element::Contributor],
        SearchField::Subject => &[Element::Subject],
        SearchField::Abstract => &[Element::Description],
        SearchField::Type => &[Element::Type],
        SearchField::Language => &[Element::Language],
        SearchField::Other => &[
            Element::Publisher,
            Element::Identifier,
            Element::Source,
            Element::Coverage,
            Element::Rights,
        ],
        SearchField::Collection => return vec![collection_of(&item.names)],
        SearchField::Text => return Vec::new(),
        SearchField::Year => {
            let dates = core.values(Element::Date);
            let mut years: Vec<String> = dates.flat_map(years_in).collect();
            years.dedup();
            return years;
        }
    };
    let values = elements.iter().flat_map(|element| core.values(*element));
    values.map(str::to_owned).collect()
}

/// The start of a text, of at most so many bytes.
pub(super) fn start_of(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_dates() {
        for (date, expected) in [
            ("2009-02-16", vec!["2009"]),
            ("1995/1998", vec!["1995", "1998"]),
            ("Feb. 16, 2009", vec!["2009"]),
            ("16.02.09", vec![]),
            ("20090216", vec!["2009"]),
            ("15/03/2010", vec!["2010"]),
            ("about 1234 of 5678", vec!["1234", "5678"]),
        ] {
            assert_eq!(years_in(date), expected, "{date}");
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(start_of("maré", 4), "mar");
        assert_eq!(start_of("maré", 5), "maré");
    }
}
