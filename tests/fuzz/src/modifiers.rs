//! Modifiers in signs and verbs, their languages and formats, names of relations.

use ibi::relation::{Language, MetadataFormat, Modifier, RelationKind, Request, split_name};

use super::{sentence, text};

/// A text, read as everything that may follow an identifier in a name.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    match Modifier::parse(text) {
        Ok(modifier) => {
            assert_eq!(modifier.to_string(), text);
            written(&modifier);
        }
        Err(error) => sentence(&error),
    }
    match Request::parse_tail(text) {
        Ok(request) => both(&request),
        Err(error) => sentence(&error),
    }
    if let Some((base, tail)) = split_name(text) {
        assert!(!base.is_empty() && !tail.is_empty());
        assert_eq!(format!("{base}{tail}"), text);
        assert!(!base.contains(['!', '+', ':', '?']));
    }
    match Language::parse(text) {
        Ok(language) => {
            assert_eq!(language.to_string(), text);
            assert!(language.matches(&language) && language.matches(&language.without_country()));
        }
        Err(error) => sentence(&error),
    }
    if let Some(language) = Language::from_locale(text) {
        assert_eq!(Language::parse(&language.to_string()), Ok(language));
        assert!(text.starts_with(&language.without_country().to_string()));
    }
    match MetadataFormat::parse(text) {
        Ok(format) => assert_eq!(format.to_string(), text),
        Err(error) => sentence(&error),
    }
    match RelationKind::from_pair_name(text) {
        Some(Ok(kind)) => {
            assert_eq!(kind.pair_name(), text);
            let far = kind
                .inverse(Language::parse("pt").ok())
                .expect("the other end");
            assert_ne!(kind.is_inverse(), far.is_inverse());
        }
        Some(Err(error)) => sentence(&error),
        None => {}
    }
}

/// A request prints as what reads back to it.
pub(crate) fn both(request: &Request) {
    let shown = request.to_string();
    assert_eq!(Request::parse_tail(&shown).as_ref(), Ok(request));
    if let Request::Modifier(modifier) | Request::FileList(Some(modifier)) = request {
        written(modifier);
    }
}

fn written(modifier: &Modifier) {
    assert!((1..=4).contains(&modifier.steps().len()));
    assert_eq!(
        Modifier::parse(&modifier.to_string()).as_ref(),
        Ok(modifier)
    );
    assert_eq!(
        Modifier::from_steps(modifier.steps().to_vec()).as_ref(),
        Some(modifier)
    );
    let request = Request::Modifier(modifier.clone());
    let verbs = modifier.verbs();
    assert_eq!(Request::parse_verbs(&verbs).as_ref(), Ok(&request));
    assert_eq!(
        Request::parse_verbs(&verbs.replace('+', " ")).as_ref(),
        Ok(&request)
    );
    let path = modifier.relation_path();
    assert_eq!(path.matches('.').count(), modifier.steps().len());
}
