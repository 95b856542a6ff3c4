//! What harvesters ask for: the arguments of OAI-PMH, and the tokens with which a list goes on.

use ibifs::formats::oai::{
    ListPosition, ListSelection, OaiArguments, OaiRequest, collection_in, spec_of,
};
use ibifs::formats::query::FormFields;

use super::text;

/// A query is read or refused with sentences; a token reads back to the same position.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    if let Some(position) = ListPosition::from_token(text) {
        token(&position);
    }
    if let Some(collection) = collection_in(text) {
        assert_eq!(spec_of(&collection), text);
    }
    assert_eq!(collection_in(&spec_of(text)).as_deref(), Some(text));
    let Ok(fields) = FormFields::parse(text) else {
        return;
    };
    match OaiArguments::read(&fields).request {
        Ok(OaiRequest::ListRecords(list) | OaiRequest::ListIdentifiers(list)) => selection(&list),
        Ok(_) => {}
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!(fault.sentence.len() < 8192 && !fault.sentence.is_empty());
            }
        }
    }
}

fn token(position: &ListPosition) {
    assert_eq!(
        ListPosition::from_token(&position.to_token()).as_ref(),
        Some(position)
    );
    assert!(ibi::Ibi::parse(&position.name).is_ok() && position.datestamp >= 0);
}

fn selection(list: &ListSelection) {
    if let (Some(from), Some(until)) = (list.from, list.until) {
        assert!(from <= until, "{list:?}");
    }
    if let Some(position) = &list.after {
        token(position);
        assert_eq!((list.until, list.format), (position.until, position.format));
    }
}
