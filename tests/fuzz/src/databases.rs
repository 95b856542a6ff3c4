//! URLs of databases, as options and `archive.ibi` have them.

use ibifs::sql::index_url::{IndexUrl, without_password};

use super::{sentence, text};

/// A URL that is taken has no password and can be shown; of any other text, what is shown has none either.
pub fn check(data: &[u8]) {
    let Some(text) = text(data) else {
        return;
    };
    let hidden = without_password(text);
    assert_eq!(without_password(&hidden), hidden);
    match IndexUrl::parse(text) {
        Ok(url) => {
            assert_eq!(url.as_str(), text);
            assert_eq!(IndexUrl::parse(url.as_str()).as_ref(), Ok(&url));
            let place = url.place();
            assert!(!place.is_empty() && text.contains(place), "{place}");
            assert!(!text.contains("password="), "{text}");
            let (user, _) = text.split_once('@').expect("a user");
            assert_eq!(user.matches(':').count(), 1, "{text}");
            // What the library is given is again a URL, which names no other server and no file of certificates.
            let (without, file) = url.without_certificates();
            let rest = IndexUrl::parse(&without).expect(&without);
            assert_eq!(rest.place(), place);
            assert_eq!(rest.without_certificates(), (without, None));
            assert_eq!(file.is_some(), rest != url, "{text}");
        }
        Err(error) => sentence(&error),
    }
    // The user's part up to the last sign that ends it, and each parameter of that name.
    let Some((_, rest)) = hidden.split_once("://") else {
        return;
    };
    if let Some((user, _)) = rest.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
    {
        assert_eq!(password, "...", "{text}");
    }
    for part in rest.split(['?', '&']) {
        let value = part.strip_prefix("password=");
        assert!(value.is_none_or(|value| value == "..."), "{text}");
    }
}
