//! What every page has around it: the head, the style, the way home, and the headers of the answer.

pub(super) mod accept;
pub(super) mod html;

use axum::body::Body;
use axum::http::header::{CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, HeaderValue, VARY};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use serde_json::Value;

use super::answer;
use accept::Form;
use html::Html;

/// The one style of all pages.
const STYLE: &str = include_str!("page/style.css");

/// Nothing is fetched and nothing runs but the style, which is known by its digest.
const POLICY: &str = "default-src 'none'; \
     style-src 'sha256-lkxFAHHECdCsXav9F+ayRm8PhsOiNVD4sIKxEumIqBU='; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What pages say, in one language.
pub(super) trait Words: 'static {
    /// The language, as HTML and HTTP name it.
    fn tag(&self) -> &'static str;
}

/// An answer to be given in the reader's language, in the form that the reader wants.
pub(super) struct Page<'a, W: Words> {
    /// Where the service is reached that answers.
    pub(super) address: &'a str,
    pub(super) words: &'static W,
    pub(super) form: Form,
    pub(super) status: StatusCode,
}

impl<W: Words> Page<'_, W> {
    /// A page that there is in these languages and forms, the first where none is wanted.
    pub(super) fn asked<'a>(
        address: &'a str,
        languages: [&'static W; 2],
        request: &Parts,
        forms: &[Form],
    ) -> Page<'a, W> {
        Page {
            address,
            words: accept::words(&request.headers, languages),
            form: accept::form(&request.headers, forms),
            status: StatusCode::OK,
        }
    }

    /// The answer in JSON.
    pub(super) fn json(&self, value: &Value) -> Response<Body> {
        self.sent("application/json", format!("{value:#}\n"))
    }

    /// The answer as lines of text.
    pub(super) fn text(&self, text: String) -> Response<Body> {
        self.sent("text/plain; charset=utf-8", text)
    }

    /// The answer as a page of this title.
    pub(super) fn html(&self, title: &str, main: impl FnOnce(&mut Html)) -> Response<Body> {
        let mut html = Html::default();
        let language = self.words.tag();
        let root = [
            ("xmlns", "http://www.w3.org/1999/xhtml"),
            ("lang", language),
        ];
        html.tag("html", &root, |html| {
            html.tag("head", &[], |html| {
                html.void("meta", &[("charset", "utf-8")]);
                let content = "width=device-width, initial-scale=1";
                html.void("meta", &[("name", "viewport"), ("content", content)]);
                html.void(
                    "meta",
                    &[("name", "color-scheme"), ("content", "light dark")],
                );
                html.line("title", &format!("{title} - {}", self.address));
                html.style(STYLE);
            });
            html.tag("body", &[], |html| {
                html.tag("header", &[], |html| html.link("/", self.address));
                html.tag("main", &[], |html| {
                    html.tag("h1", &[], |html| {
                        html.tag("bdi", &[], |html| html.text(title));
                    });
                    main(html);
                });
            });
        });
        let mut response = self.sent("text/html; charset=utf-8", html.document());
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language));
        response
    }

    fn sent(&self, content_type: &'static str, body: String) -> Response<Body> {
        let mut response = answer::whole(self.status, content_type, body);
        let varies = HeaderValue::from_static("Accept, Accept-Language");
        response.headers_mut().insert(VARY, varies);
        answer::fresh(response)
    }
}
