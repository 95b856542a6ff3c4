//! Names of fields in metadata texts: those of Dublin Core, their aliases, and the nearest known name of an
//! unknown one.
//!
//! An alias is a name under which people and bibliographic programs write an element: `author` for creator,
//! `resumo` for description.

use super::{DublinCore, Element, fields};

/// A name other than that of its element, and the element.
const ALIASES: &[(&str, Element)] = &[
    ("subtitle", Element::Title),
    ("alternatetitle", Element::Title),
    ("alternative", Element::Title),
    ("titulo", Element::Title),
    ("título", Element::Title),
    ("author", Element::Creator),
    ("authors", Element::Creator),
    ("creators", Element::Creator),
    ("autor", Element::Creator),
    ("autores", Element::Creator),
    ("subjects", Element::Subject),
    ("keyword", Element::Subject),
    ("keywords", Element::Subject),
    ("tag", Element::Subject),
    ("tags", Element::Subject),
    ("assunto", Element::Subject),
    ("palavra-chave", Element::Subject),
    ("palavras-chave", Element::Subject),
    ("abstract", Element::Description),
    ("summary", Element::Description),
    ("note", Element::Description),
    ("resumo", Element::Description),
    ("descricao", Element::Description),
    ("descrição", Element::Description),
    ("nota", Element::Description),
    ("editora", Element::Publisher),
    ("contributors", Element::Contributor),
    ("editor", Element::Contributor),
    ("supervisor", Element::Contributor),
    ("advisor", Element::Contributor),
    ("committee", Element::Contributor),
    ("translator", Element::Contributor),
    ("orientador", Element::Contributor),
    ("colaborador", Element::Contributor),
    ("year", Element::Date),
    ("issued", Element::Date),
    ("created", Element::Date),
    ("data", Element::Date),
    ("ano", Element::Date),
    ("typeofwork", Element::Type),
    ("genre", Element::Type),
    ("tipo", Element::Type),
    ("size", Element::Format),
    ("formato", Element::Format),
    ("doi", Element::Identifier),
    ("ibi", Element::Identifier),
    ("isbn", Element::Identifier),
    ("issn", Element::Identifier),
    ("uri", Element::Identifier),
    ("url", Element::Identifier),
    ("identificador", Element::Identifier),
    ("journal", Element::Source),
    ("booktitle", Element::Source),
    ("fonte", Element::Source),
    ("lang", Element::Language),
    ("idioma", Element::Language),
    ("lingua", Element::Language),
    ("língua", Element::Language),
    ("spatial", Element::Coverage),
    ("temporal", Element::Coverage),
    ("cobertura", Element::Coverage),
    ("copyright", Element::Rights),
    ("licence", Element::Rights),
    ("license", Element::Rights),
    ("rightsholder", Element::Rights),
    ("direitos", Element::Rights),
    ("licença", Element::Rights),
];

/// Names of fields that Dublin Core has no element for, and the names under which they are kept.
const KEPT: &[(&str, &str)] = &[
    ("orcid", "orcid"),
    ("version", "version"),
    ("versão", "version"),
    ("versao", "version"),
    ("funding", "funding"),
    ("funder", "funding"),
    ("grant", "funding"),
    ("sponsor", "funding"),
    ("financiamento", "funding"),
    ("affiliation", "affiliation"),
    ("volume", "volume"),
    ("number", "number"),
    ("issue", "number"),
    ("pages", "pages"),
    ("series", "series"),
    ("edition", "edition"),
];

/// The name under which a field is kept, by its name in any case.
pub(super) fn kept_named(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let known = KEPT.iter().find(|(known, _)| *known == lower);
    known.map(|(_, field)| *field)
}

/// The element that a name or an alias of it means, in any case.
pub(super) fn element_named(name: &str) -> Option<Element> {
    Element::from_name(name).or_else(|| {
        let lower = name.to_lowercase();
        let known = ALIASES.iter().find(|(alias, _)| *alias == lower);
        known.map(|(_, element)| *element)
    })
}

/// Adds a value under one of the names of its element. Standard numbers become URIs, lists of keywords values.
pub(super) fn push_named(record: &mut DublinCore, name: &str, element: Element, value: &str) {
    match name.to_lowercase().as_str() {
        "doi" => record.push(element, fields::doi(value)),
        "isbn" => record.push(element, fields::isbn(value)),
        "issn" => record.push(element, fields::issn(value)),
        "keyword" | "keywords" | "tag" | "tags" | "palavra-chave" | "palavras-chave" => {
            fields::push_subjects(record, value, str::to_string);
        }
        _ => record.push(element, value),
    }
}

/// The most characters of a name for which a similar one is looked for.
const LONGEST_NAME: usize = 24;

/// The known name that differs least from an unknown one: by one character, or by two in a name of at least five.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name: Vec<char> = name.trim().to_lowercase().chars().collect();
    if name.is_empty() || name.len() > LONGEST_NAME {
        return None;
    }
    let most = if name.len() < 5 { 1 } else { 2 };
    let names = Element::ALL.into_iter().map(Element::name);
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let kept = KEPT.iter().map(|(name, _)| *name);
    names
        .chain(aliases)
        .chain(kept)
        .map(|known| (distance(&name, known), known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The number of characters to add, remove, replace or exchange with the next to make one name of the other.
fn distance(name: &[char], known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=known.len()).collect();
    for (row, letter) in name.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, other) in known.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut least = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            let is_exchanged =
                row > 0 && column > 0 && *letter == known[column - 1] && name[row - 1] == *other;
            if is_exchanged {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[known.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_names_of_elements_in_any_case() {
        for (name, element) in [
            ("title", Some(Element::Title)),
            ("Author", Some(Element::Creator)),
            ("TÍTULO", Some(Element::Title)),
            ("Resumo", Some(Element::Description)),
            ("licence", Some(Element::Rights)),
            ("from", None),
            ("", None),
        ] {
            assert_eq!(element_named(name), element, "{name}");
        }
        for (position, (alias, _)) in ALIASES.iter().enumerate() {
            assert_eq!(*alias, alias.to_lowercase());
            assert_eq!(Element::from_name(alias), None, "{alias}");
            let again = ALIASES.iter().rposition(|(other, _)| other == alias);
            assert_eq!(again, Some(position), "{alias}");
        }
    }

    #[test]
    fn an_unknown_name_has_a_nearest_one() {
        for (name, known) in [
            ("titel", Some("title")),
            ("tilte", Some("title")),
            ("creater", Some("creator")),
            ("Autheur", Some("author")),
            ("descripton", Some("description")),
            ("dat", Some("data")),
            ("xyz", None),
            ("", None),
            ("fundin", Some("funding")),
            (&"title".repeat(1000), None),
        ] {
            let found = nearest(name);
            if name == "dat" {
                assert!(matches!(found, Some("date" | "data")));
            } else {
                assert_eq!(found, known, "{name}");
            }
        }
    }
}
