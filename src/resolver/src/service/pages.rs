//! The pages of the resolver: its home page, and alerts for readers who are not redirected.

mod words;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use maud::html;
use serde_json::json;

use super::tally::Alert;
use super::{ASK_AGAIN, Resolver};
use ibifs_http::server::answer;
use ibifs_http::server::page::Page;
use ibifs_http::server::page::accept::Representation;
use ibifs_http::server::page::html::link;
use words::BOTH;

const FORMS: [Representation; 2] = [Representation::Html, Representation::Json];

/// The page that explains why a reader is not redirected.
pub(super) fn alert(
    resolver: &Resolver,
    alert: &Alert,
    ibi: &str,
    request: &Parts,
) -> Response<Body> {
    let mut page = Page::asked(resolver.url(), BOTH, request, &FORMS);
    let words = page.words;
    let (status, code, title, sentence) = match alert {
        Alert::Unknown { silent: 0, .. } => (
            StatusCode::NOT_FOUND,
            "unknown",
            words.unknown_title,
            words.unknown_sentence,
        ),
        Alert::CopiesOnly { silent: 0 } => (
            StatusCode::NOT_FOUND,
            "copies-only",
            words.copies_title,
            words.copies_sentence,
        ),
        Alert::Unknown { .. } | Alert::CopiesOnly { .. } => (
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            words.silent_title,
            words.silent_sentence,
        ),
        Alert::Deleted => (
            StatusCode::GONE,
            "deleted",
            words.deleted_title,
            words.deleted_sentence,
        ),
        Alert::Suspects(_) => (
            StatusCode::CONFLICT,
            "suspects",
            words.suspects_title,
            words.suspects_sentence,
        ),
        Alert::Endless => (
            StatusCode::LOOP_DETECTED,
            "endless",
            words.endless_title,
            words.endless_sentence,
        ),
        Alert::TooLong => (
            StatusCode::GATEWAY_TIMEOUT,
            "too-long",
            words.silent_title,
            words.silent_sentence,
        ),
    };
    page.status = status;
    let silent = match alert {
        Alert::Unknown { silent, .. } | Alert::CopiesOnly { silent } => *silent,
        _ => 0,
    };
    let suspects: &[String] = match alert {
        Alert::Suspects(suspects) => suspects,
        _ => &[],
    };
    let response = match page.form {
        Representation::Json => page.json(&json!({
            "ibi": ibi,
            "alert": code,
            "suspects": suspects,
            "archives_without_answer": silent,
        })),
        Representation::Html | Representation::Text => page.html(
            title,
            &html! {
                p { code { (ibi) } }
                p { (sentence) }
                @if !suspects.is_empty() {
                    ul {
                        @for suspect in suspects {
                            li { (link(&url_of(suspect), suspect)) }
                        }
                    }
                }
                @if silent > 0 {
                    p { (words.without_answer) ": " (silent) }
                }
            },
        ),
    };
    match status {
        StatusCode::SERVICE_UNAVAILABLE => answer::again_later(response, ASK_AGAIN),
        _ => response,
    }
}

/// The URL of an Archive: its address may be one already.
fn url_of(address: &str) -> String {
    if address.contains("://") {
        format!("{address}/")
    } else {
        format!("http://{address}/")
    }
}

/// The home page.
pub(super) fn home(resolver: &Resolver, request: &Parts) -> Response<Body> {
    let page = Page::asked(resolver.url(), BOTH, request, &FORMS);
    let archives = resolver.archives.all().len() + resolver.archives.federated().len();
    let words = page.words;
    match page.form {
        Representation::Json => page.json(&json!({ "archives": archives })),
        Representation::Html | Representation::Text => page.html(
            words.home_title,
            &html! {
                p { (words.home_sentence) }
                p { code { (resolver.url().at("8JMKD3MGP8W/34PGRBS")) } }
                p { (words.archives) ": " (archives) }
            },
        ),
    }
}
