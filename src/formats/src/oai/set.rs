//! Sets: the collections of an Archive, which are the first two components of reps, or the prefix of an IBIp. The set
//! `example.org:archive` has the records whose names begin with `example.org/archive/`, and is in the set `example.org`.

use std::fmt::Write;

/// The set of a record, by its local name.
#[must_use]
pub fn set_of(local_name: &str) -> String {
    spec_of(collection_of(local_name))
}

/// The beginning of the local names of a collection, without the slash at its end.
#[must_use]
pub fn collection_of(local_name: &str) -> &str {
    let slashes: Vec<usize> = local_name.match_indices('/').map(|(at, _)| at).collect();
    let end = match slashes.as_slice() {
        // A rep has four components, an IBIp two.
        [_, second, _] => *second,
        [first, ..] => *first,
        [] => local_name.len(),
    };
    local_name.get(..end).unwrap_or(local_name)
}

/// The set of the names that begin so. A character that no set may have is written as `~` and two digits.
#[must_use]
pub fn spec_of(collection: &str) -> String {
    let mut spec = String::new();
    for byte in collection.bytes() {
        match byte {
            b'/' => spec.push(':'),
            byte if byte.is_ascii_alphanumeric() || b"-_.!*'()".contains(&byte) => {
                spec.push(char::from(byte));
            }
            // Writing to a String does not fail.
            byte => drop(write!(spec, "~{byte:02x}")),
        }
    }
    spec
}

/// The beginning of the local names in a set. None if it is not a set of this kind.
#[must_use]
pub fn collection_in(spec: &str) -> Option<String> {
    let mut collection = Vec::new();
    let mut bytes = spec.bytes();
    while let Some(byte) = bytes.next() {
        collection.push(match byte {
            b':' => b'/',
            b'~' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    let collection = String::from_utf8(collection).ok()?;
    (spec_of(&collection) == spec).then_some(collection)
}

/// The sets of collections and of what they are in, in order.
#[must_use]
pub fn sets_of(collections: &[String]) -> Vec<String> {
    let above = |collection: &String| {
        let (above, _) = collection.split_once('/')?;
        Some(above.to_owned())
    };
    let mut all: Vec<String> = collections.iter().filter_map(above).collect();
    all.extend_from_slice(collections);
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_in_the_set_of_its_collection() {
        for (name, spec, collection) in [
            (
                "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
                "sid.inpe.br:mtc-m18~4080",
                "sid.inpe.br/mtc-m18@80",
            ),
            ("8jmkd3mgp8w/34pgrbs", "8jmkd3mgp8w", "8jmkd3mgp8w"),
        ] {
            assert_eq!(set_of(name), spec);
            assert_eq!(collection_in(spec).as_deref(), Some(collection));
        }
        for spec in ["a~4", "a~zz", "a~ff", "a~61", "a~C3~A3"] {
            assert_eq!(collection_in(spec), None, "{spec}");
        }
        let collections = ["a.b/c", "a.b/d", "8jmkd3mgp8w"].map(str::to_owned);
        assert_eq!(
            sets_of(&collections),
            ["8jmkd3mgp8w", "a.b", "a.b/c", "a.b/d"]
        );
    }
}
