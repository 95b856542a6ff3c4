//! The three subjects of the Archive service (ibi-resolution(7), "Archive service").

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};

use super::{Site, SiteHandle, failure};
use crate::archive::tree::Dependencies;
use crate::archive::tree::TreeError;
use crate::formats::item::Names;
use crate::formats::query::{Query, percent_decoded};
use crate::http::server::answer;
use crate::os::random;
use crate::web::service::{Service, UrlAnswer, UrlRequest, WantedItems};
use ibi::Ibi;
use ibi::pairs::{Pairs, Value};
use ibi::relation::Request;

/// Whether a path is an identifier of the Archive's service, in either form.
pub(super) fn is_of(site: &Site, path: &str) -> bool {
    let text = percent_decoded(path.trim_end_matches('/'));
    text.and_then(|text| Ibi::parse(&text).ok())
        .is_some_and(|ibi| site.archive.facts().service.matches(&Names::from(ibi)))
}

/// Answers a request to the service.
pub(super) async fn answer(handle: &SiteHandle, request: &Parts) -> Response<Body> {
    let (method, query) = (&request.method, request.uri.query().unwrap_or(""));
    let site = &handle.site;
    let bad = |sentence: &str| answer::refusal(StatusCode::BAD_REQUEST, sentence);
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(error) => return bad(&error.to_string()),
    };
    let one = |name: &str, value: Value| {
        let mut pairs = Pairs::default();
        pairs.set(name, value);
        answer::pairs(&pairs)
    };
    match query.get("servicesubject") {
        Some("inclusionConfirmationRequest") => one("confirmation", Value::Word("yes".to_owned())),
        // An acknowledgment counts an access, and HEAD must not change anything.
        Some("acknowledgment") if *method == Method::HEAD => answer::no_method(method, "GET"),
        Some("acknowledgment") => {
            let issued = query.get("urlkey");
            match issued.and_then(|key| site.keys.acknowledge(key)) {
                Some(asked) => {
                    let returned = query.get("ibi").and_then(named);
                    if let Err(refusal) = count(site, site.client(request), asked, returned).await {
                        return refusal;
                    }
                }
                None => log::info!("the acknowledgment has no valid key and is not counted"),
            }
            let words = ["acknowledgment", "received"].map(str::to_owned);
            one("notice", Value::List(words.into()))
        }
        Some("urlRequest") => match question(&query) {
            Ok(question) => url_list(handle, site.client(request), question).await,
            Err(sentence) => bad(&sentence),
        },
        Some(other) => bad(&format!(
            "servicesubject '{other}' is not one of urlRequest, acknowledgment and inclusionConfirmationRequest"
        )),
        None => bad("the query has no servicesubject"),
    }
}

/// The names in the `ibi` of an acknowledgment: `rep R ibip P`, or one of the two, with or without its word.
fn named(words: &str) -> Option<Names> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    match words.as_slice() {
        [one] => Ibi::parse(one).ok().map(Names::from),
        _ => Names::from_value(&Value::List(words)).ok(),
    }
}

/// Counts an access for the item that is returned to the reader, which may be a related one; for the one that was asked
/// for if the acknowledgment does not name one that is held here.
async fn count(
    site: &Arc<Site>,
    client: IpAddr,
    asked: String,
    returned: Option<Names>,
) -> Result<(), Response<Body>> {
    let item = match returned {
        Some(names) => {
            let searched = Arc::clone(site);
            let found = site
                .aside(client, move || searched.archive.held(&names))
                .await?;
            found.map_err(|error| failure::fault(&error))?
        }
        None => None,
    };
    let item = item.map_or(asked, |item| item.names.preferred());
    log::info!("{item} was reached");
    site.accesses.count(item);
    Ok(())
}

fn question(query: &Query) -> Result<UrlRequest, String> {
    let ibi = query
        .get("parsedibiurl.ibi")
        .ok_or("the query has no parsedibiurl.ibi")?;
    let wanted = match query.get("parsedibiurl.verblist").map(str::trim) {
        None => WantedItems::All,
        Some("") => WantedItems::Itself,
        Some(verbs) => {
            WantedItems::By(Request::parse_verbs(verbs).map_err(|error| error.to_string())?)
        }
    };
    let path = query.get_bytes("parsedibiurl.filepath");
    Ok(UrlRequest {
        ibi: ibi.to_owned(),
        filepath: path.filter(|path| !path.is_empty()).map(<[u8]>::to_vec),
        wanted,
    })
}

/// The cached answer if it is still valid. Otherwise the search runs in a thread that may block.
async fn url_list(handle: &SiteHandle, client: IpAddr, question: UrlRequest) -> Response<Body> {
    let site = &handle.site;
    let version = handle.index_version().await;
    let tree = site.archive.tree();
    if let Some(version) = version
        && let Some(cached) = site.cache.answer(version, &question, tree)
    {
        return with_key(site, &cached.answer);
    }
    let searched = Arc::clone(site);
    let found = move || search(&searched, version, question);
    let found = site.aside(client, found).await;
    found.unwrap_or_else(|refusal| refusal)
}

fn search(site: &Site, version: Option<i64>, question: UrlRequest) -> Response<Body> {
    let dependencies = Dependencies::default();
    let began = site.clock.seconds();
    let service = Service {
        archive: site.public().recording(&dependencies),
        url: &site.url,
    };
    let answer = match service.answer(&question) {
        Ok(answer) => answer,
        Err(error) => return failure::fault(&error),
    };
    let response = with_key(site, &answer);
    if let (Some(version), Some(validator)) = (version, dependencies.validator(began)) {
        site.cache.add_answer(version, question, answer, validator);
    }
    response
}

fn with_key(site: &Site, answer: &UrlAnswer) -> Response<Body> {
    let random = match random::draw() {
        Ok(bytes) => u64::from_ne_bytes(bytes),
        Err(errno) => {
            return failure::fault(
                &TreeError::new(crate::archive::tree::Action::Read, random::SOURCE, errno).into(),
            );
        }
    };
    answer::written_pairs(answer.with_key(|item| {
        let second = site.clock.seconds();
        site.keys.issue(item, second, random)
    }))
}
