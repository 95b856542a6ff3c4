//! The request of a modifier after an identifier, and the relation that it can declare.

use crate::archive::Relative;
use crate::archive::store::Item;
use crate::formats::item::Names;
use ibi::relation::{Modifier, RelationKind, Request, Step};

/// A name beside an item that asks for something related.
#[derive(Debug)]
pub(super) struct Sibling {
    /// The item that is held here.
    pub(super) item: Item,
    /// The request about it.
    pub(super) request: Request,
}

/// The step of a modifier that has only one.
pub(super) fn single_step(modifier: &Modifier) -> Option<&Step> {
    match modifier.steps() {
        [step] => Some(step),
        _ => None,
    }
}

/// Whether a request is `:` alone.
pub(super) fn is_metadata(request: &Request) -> bool {
    match request {
        Request::Modifier(modifier) => {
            matches!(single_step(modifier), Some(Step::Metadata(None)))
        }
        Request::FileList(_) => false,
    }
}

/// The relation that a request of one step declares; None if it declares none.
pub(super) fn relation_of(request: &Request) -> Option<RelationKind> {
    let Request::Modifier(modifier) = request else {
        return None;
    };
    match single_step(modifier)? {
        Step::LastEdition => Some(RelationKind::NextEdition),
        Step::Translation(Some(language)) => Some(RelationKind::Translation(*language)),
        Step::Metadata(None) => Some(RelationKind::Metadata),
        _ => None,
    }
}

/// Returns how an item minted under a modifier's name is related to the item before the modifier.
pub(super) fn relative_of(names: &Names, request: &Request) -> Option<Relative> {
    let Request::Modifier(modifier) = request else {
        return None;
    };
    let names = names.clone();
    match single_step(modifier)? {
        Step::LastEdition => Some(Relative::Edition(names)),
        Step::Translation(Some(language)) => Some(Relative::Translation(names, *language)),
        Step::Metadata(None) => Some(Relative::Metadata(names)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibi::{Ibi, Rep};

    fn request(tail: &str) -> Request {
        Request::parse_tail(tail).expect("a request")
    }

    #[test]
    fn only_single_steps_declare_relations() {
        let relation = |tail| relation_of(&request(tail)).map(|kind| kind.pair_name());
        for (tail, declared) in [
            ("!", Some("ibi.nextedition")),
            ("+(pt)", Some("ibi.translation(pt)")),
            (":", Some("ibi.metadata")),
            ("+", None),
            (":(oai_dc)", None),
            ("!:", None),
            ("?GetFileList", None),
        ] {
            assert_eq!(relation(tail).as_deref(), declared, "{tail}");
            assert_eq!(is_metadata(&request(tail)), tail == ":", "{tail}");
        }
    }

    #[test]
    fn a_new_item_is_related_as_the_modifier_says() {
        let rep = Rep::parse("iconet.com.br/banon/2001/02.10.22.55").expect("a rep");
        let names = Names::from(Ibi::Rep(rep));
        let relative = |tail| relative_of(&names, &request(tail));
        assert!(matches!(relative("!"), Some(Relative::Edition(_))));
        assert!(matches!(relative("+(pt)"), Some(Relative::Translation(..))));
        assert!(matches!(relative(":"), Some(Relative::Metadata(_))));
        for tail in ["+", "!:", ":(oai_dc)", "?GetFileList"] {
            assert!(relative(tail).is_none(), "{tail}");
        }
    }
}
