//! GET and HEAD: files as everywhere in this service, and for a collection its page.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, Response};

use super::PATH;
use super::propfind;
use super::target::{Target, answered};
use crate::archive::store::Item;
use crate::http::server::answer::Refusal;
use crate::http::server::languages;
use crate::web::archive::content::{
    ContentReply, Path, PathEnd, TEXT_NAME, answer_below, digest_of, failed, no_file, read_path,
    redirect,
};
use crate::web::archive::file::Source;
use crate::web::archive::{Site, SiteHandle, pages};

/// Answers GET or HEAD.
pub(super) async fn answer(handle: SiteHandle, request: Request<Body>) -> Response<Body> {
    let parts = Arc::new(request.into_parts().0);
    answer_below(&handle, &parts, PATH.as_bytes(), reply).await
}

fn reply(
    site: &Arc<Site>,
    version: Option<i64>,
    request: &Parts,
) -> Result<(ContentReply, bool), Refusal> {
    let path = read_path(request.uri.path())?;
    let below = path.components.get(1..).unwrap_or_default();
    let preferences = languages::preferred(&request.headers);
    // The links of a page are relative to it.
    let page = |target| match path.end {
        PathEnd::Slash => propfind::page(site, target, below),
        PathEnd::Name => {
            let path = request.uri.path().trim_start_matches('/');
            Ok(redirect(&format!("/{path}/")))
        }
    };
    answered(site, below, &preferences, |target| match target {
        Target::Level(_) => page(target).map(ContentReply::Answer),
        Target::Content(item, in_item) => {
            note(site, version, &path, &item, &in_item);
            let found = site.public().open_content(&item, &in_item);
            let found = found.map_err(failed)?;
            match found.is_file() {
                false => page(Target::Content(item, in_item)).map(ContentReply::Answer),
                true if path.end == PathEnd::Slash => Err(no_file()),
                true => {
                    site.refuse_damaged(&item, &found, &in_item)?;
                    Ok(ContentReply::File {
                        digest: digest_of(site, &item, &found, &in_item, request),
                        source: Source::Open(found),
                        name: in_item,
                        location: None,
                        is_download: false,
                    })
                }
            }
        }
        Target::Text(item) => Ok(ContentReply::File {
            source: Source::Open(site.public().open_metadata_text(&item).map_err(failed)?),
            name: TEXT_NAME.to_vec(),
            location: None,
            is_download: false,
            digest: None,
        }),
        Target::Description(item, from, format) => {
            let root = site.public().open_content(&item, b"");
            root.map_err(failed)?;
            let document = pages::description(site, &item, from.as_ref(), format);
            Ok(ContentReply::Answer(document))
        }
    })
}

/// Notes an item that was asked for by a rep, so that its next file is opened without the index.
fn note(site: &Site, version: Option<i64>, path: &Path, item: &Item, in_item: &[u8]) {
    let named = path.components.get(1..5).map(|parts| parts.join(&b'/'));
    let rest = path.components.get(5..).map(|parts| parts.join(&b'/'));
    if let (Some(version), Some(named), Some(rest)) = (version, named, rest)
        && rest == in_item
        && let Ok(name) = String::from_utf8(named)
        && let Ok(rep) = ibi::Rep::parse(&name)
        && item
            .names
            .rep()
            .is_some_and(|own| own.canonical() == rep.canonical())
    {
        site.cache.add_item(version, name, item.clone());
    }
}
