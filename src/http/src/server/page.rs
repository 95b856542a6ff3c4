//! The frame of every page: the head, the style, the link to the home page, and the headers of the answer.

pub mod accept;
pub mod html;

use axum::body::Body;
use axum::http::header::{CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use maud::{Markup, html};
use serde_json::Value;

use super::answer;
use accept::Representation;
use html::{escaped, finished, link, with_prefix};
use ibifs_formats::base_url::BaseUrl;

/// The style of all pages.
const STYLE: &str = include_str!("page/style.css");

/// The icon of the service in a browser.
const ICON: &str = include_str!("page/icon.svg");

/// The answer to the names of the icon: that in every head, and the one that browsers ask for without one.
pub fn icon(name: &str) -> Option<Response<Body>> {
    let is_icon = matches!(name, "favicon.svg" | "favicon.ico");
    is_icon.then(|| answer::fresh(answer::whole(StatusCode::OK, "image/svg+xml", ICON)))
}

/// The start of every head. Void elements are closed, which XML requires and HTML allows; maud does not close
/// them.
const META: &str = "<meta charset=\"utf-8\" />\n\
     <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
     <meta name=\"color-scheme\" content=\"light dark\" />\n";

/// The page runs nothing but what [`allow_copying`] lets it, and loads nothing from elsewhere. The style is identified by its digest.
const POLICY: &str = "default-src 'none'; \
     style-src 'sha256-agq8ZOp0rBVX9k/Ep2ytU4kUvW2xIr/O/irDCygX8FU='; \
     img-src 'self'; media-src 'self'; frame-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The one script of pages: it shows the buttons that copy what the links before them lead to. Without it they are not
/// shown. It has no `<` and no `&`, which XML and HTML read differently.
const COPYING: &str = include_str!("page/copy.js");

/// The further rights of a page with that script.
const COPYING_POLICY: &str =
    "script-src 'sha256-Rmy/0oyuKg8JRr/dGn3SP6vXw35a+zngaaOiKgJgjwk='; connect-src 'self'";

/// The element of a page's head with the script.
pub fn copying() -> String {
    format!("<script>{COPYING}</script>\n")
}

/// Lets the script of a page run.
pub fn allow_copying(response: &mut Response<Body>) {
    let policy = format!("{POLICY}; {COPYING_POLICY}");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
}

/// A page by itself, for a file: a title, and content that is finished.
#[must_use]
pub fn alone(language: &str, title: &str, main: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"{language}\">\
         <head>{META}<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{main}</main>\n</body>\n</html>\n"
    )
}

/// The texts of pages in one language.
pub trait Words: 'static {
    /// The language, as HTML and HTTP name it.
    fn tag(&self) -> &'static str;
}

/// A page in the reader's language and preferred form.
pub struct Page<'a, W: Words> {
    /// The URL of the service.
    pub url: &'a BaseUrl,
    /// The texts of the page in the language of the reader.
    pub words: &'static W,
    /// The preferred form.
    pub form: Representation,
    /// The status of the answer.
    pub status: StatusCode,
}

impl<W: Words> Page<'_, W> {
    /// A page that is available in these languages and forms. The first of each is the default.
    pub fn asked<'a>(
        url: &'a BaseUrl,
        languages: [&'static W; 2],
        request: &Parts,
        forms: &[Representation],
    ) -> Page<'a, W> {
        Page {
            url,
            words: accept::words(&request.headers, languages),
            form: accept::form(&request.headers, forms),
            status: StatusCode::OK,
        }
    }

    /// The answer in JSON.
    pub fn json(&self, value: &Value) -> Response<Body> {
        let prefix = self.url.prefix();
        if prefix.is_empty() {
            return self.sent("application/json", format!("{value:#}\n"));
        }
        let mut value = value.clone();
        html::with_prefix_in_json(prefix, &mut value);
        self.sent("application/json", format!("{value:#}\n"))
    }

    /// The answer as lines of text.
    pub fn text(&self, text: String) -> Response<Body> {
        self.sent("text/plain; charset=utf-8", text)
    }

    /// The answer as a page with this title and content.
    pub fn html(&self, title: &str, main: &Markup) -> Response<Body> {
        self.html_with(title, "", main)
    }

    /// The same with more elements of the head, finished, with absolute URLs.
    pub fn html_with(&self, title: &str, more: &str, main: &Markup) -> Response<Body> {
        let language = self.words.tag();
        let address = self.url.address();
        let head = finished(&html! { title { (title) " - " (address) } });
        let body = html! {
            body {
                header { (link("/", address)) }
                main {
                    h1 { bdi { (title) } }
                    (main)
                }
            }
        };
        let prefix = self.url.prefix();
        let body = with_prefix(prefix, finished(&body));
        let document = format!(
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"{language}\">\
             <head>{META}{head}\
             <link rel=\"icon\" href=\"{prefix}/favicon.svg\" type=\"image/svg+xml\" />\n{more}<style>{STYLE}</style>\n</head>\n{body}</html>\n"
        );
        let mut response = self.sent("text/html; charset=utf-8", document);
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language));
        response
    }

    fn sent(&self, content_type: &'static str, body: String) -> Response<Body> {
        let response = answer::whole(self.status, content_type, body);
        answer::fresh(answer::by_language(answer::by_accept(response)))
    }
}
