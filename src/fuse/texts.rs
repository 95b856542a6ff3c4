//! Calls the parser of names with a text, for the fuzz targets in `tests/fuzz`, which are outside of this crate.
//! Nothing else uses it.

use super::namespace::found::{name_of_link, named_by_link, query_of};
use crate::formats::item::Names;
use crate::formats::search::SearchQuery;

/// The query of a path below `.find`.
#[must_use]
pub fn query(path: &str) -> Option<SearchQuery> {
    query_of(path)
}

/// The names of the item that a link below `.find` with this name leads to.
#[must_use]
pub fn found(link: &str) -> Option<Names> {
    named_by_link(link)
}

/// The name of the link to an item below `.find`.
#[must_use]
pub fn link(names: &Names) -> String {
    name_of_link(names)
}
