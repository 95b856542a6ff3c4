//! The languages that a reader prefers, from `Accept-Language` (RFC 9110, section 12.5.4).

use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Request, Uri, header};

use super::preference::{BEST, quality, ranges, thousandths};
use ibi::relation::Language;

/// The most language ranges that are read.
const MOST: usize = 32;

/// The languages in order of preference. A language with a country is followed by the language alone.
/// Malformed ranges, and languages in which no item can be, are skipped.
pub fn preferred(headers: &HeaderMap) -> Vec<Language> {
    let mut wanted: Vec<(Language, u16)> = ranges(headers, &header::ACCEPT_LANGUAGE)
        .take(MOST)
        .filter_map(range)
        .collect();
    // The sort is stable, so languages of equal quality keep their order.
    wanted.sort_by_key(|(_, quality)| std::cmp::Reverse(*quality));
    let refused: Vec<Language> = wanted
        .iter()
        .filter(|(_, quality)| *quality == 0)
        .map(|(language, _)| *language)
        .collect();
    let mut preferred = Vec::new();
    for (language, quality) in wanted {
        for language in [language, language.without_country()] {
            if quality > 0 && !refused.contains(&language) && !preferred.contains(&language) {
                preferred.push(language);
            }
        }
    }
    preferred
}

/// Puts the language that a reader has chosen by `lang=TAG` in the query in the place of `Accept-Language`.
pub fn take_chosen<B>(request: &mut Request<B>) {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let mut chosen = pairs.filter_map(|pair| pair.strip_prefix("lang="));
    let chosen = chosen.rfind(|tag| language(tag).is_some());
    if let Some(Ok(tag)) = chosen.map(HeaderValue::from_str) {
        request.headers_mut().insert(header::ACCEPT_LANGUAGE, tag);
    }
}

/// The URI without `lang=TAG`. None if it has none.
pub fn without_chosen(uri: &Uri) -> Option<Uri> {
    let is_chosen = |pair: &&str| pair.starts_with("lang=");
    let (chosen, others): (Vec<&str>, Vec<&str>) = uri.query()?.split('&').partition(is_chosen);
    if chosen.is_empty() {
        return None;
    }
    let text = match others.as_slice() {
        [] => uri.path().to_owned(),
        others => format!("{}?{}", uri.path(), others.join("&")),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(text.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// One range, such as `pt-BR;q=0.8`, with its quality in thousandths.
fn range(text: &str) -> Option<(Language, u16)> {
    let mut words = text.split(';').map(str::trim);
    let language = language(words.next()?)?;
    let quality = match words.next() {
        Some(parameter) => thousandths(quality(parameter)?)?,
        None => BEST,
    };
    words.next().is_none().then_some((language, quality))
}

/// Any case, and with a script or more: `zh-Hant-TW` is `zh-TW`, `es-419` is `es`.
fn language(tag: &str) -> Option<Language> {
    let mut words = tag.split('-');
    let language = words.next()?.to_ascii_lowercase();
    let country = words.find(|word| word.len() == 2 && word.chars().all(char::is_alphabetic));
    let text = match country {
        Some(country) => format!("{language}-{}", country.to_ascii_uppercase()),
        None => language,
    };
    Language::parse(&text).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn prefers(text: &str, expected: &str) {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(text).expect(text);
        headers.insert(header::ACCEPT_LANGUAGE, value);
        let words: Vec<String> = preferred(&headers)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn preferences() {
        assert_eq!(preferred(&HeaderMap::new()), Vec::new());
        prefers("", "");
        prefers("pt", "pt");
        prefers("pt-BR, en;q=0.5", "pt-BR pt en");
        prefers("en;q=0.5,pt-br;q=0.9", "pt-BR pt en");
        prefers("en ; q=0.1 , pt ; Q=0.2", "pt en");
        prefers("en,fr;q=0,pt;q=1.000", "en pt");
        prefers("pt-BR,pt;q=0,en;q=0.001", "pt-BR en");
        // Some clients write more or fewer digits.
        prefers("fr;q=0.1234,pt;q=.3", "pt fr");
        prefers("*", "");
        prefers("zh-Hant-TW,es-419", "zh-TW zh es");
        // A malformed range does not affect the others.
        prefers(
            "en;q=2,fr;q=0.12x4,de;x=1,ru;q=,it;q=0.5;a=b,,ast,p t,pt;q=0.3",
            "pt",
        );
    }
}
