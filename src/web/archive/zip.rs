//! An item as one zip file, made while it is sent: neither the file nor a list of its entries is made
//! beforehand, and no thread waits for the client.
//!
//! The entries are what the public may read. Their names begin with the name of the item, so that two items
//! that are unpacked in one directory lie as in a store, and the relative links between them hold. An error,
//! or a file that changes while it is sent, ends the connection: a zip file without its end is not taken for
//! a whole one.

mod bag;
mod body;
mod entry;
mod error;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::file::attachment;
use super::{Site, failure};
use crate::archive::store::Item;
use crate::http::server::answer;
use crate::http::server::share::{Share, Shares};
use body::ZipBody;

/// The most zip files that are sent at a time.
const MOST_AT_ONCE: usize = 64;
/// The number of these that one client has, so that others find some that are free.
const MOST_OF_CLIENT: usize = 16;
/// The number of these places that a bag takes, for which twice as much is held in memory.
const PLACES_OF_A_BAG: usize = 4;
/// The seconds after which a refused client may try again.
const ASK_AGAIN: u16 = 30;

/// The places of zip files that are sent at a time.
#[derive(Debug)]
pub(super) struct ZipLimit {
    places: Arc<Semaphore>,
    of_clients: Shares,
}

impl Default for ZipLimit {
    fn default() -> ZipLimit {
        ZipLimit {
            places: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            of_clients: Shares::new(MOST_OF_CLIENT),
        }
    }
}

/// The places of a zip file that is sent.
type Turn = (OwnedSemaphorePermit, Share);

impl ZipLimit {
    /// Takes places. None if the client, or all clients, have too many.
    fn take(&self, client: IpAddr, places: usize) -> Option<Turn> {
        let share = self.of_clients.take_several(client, places)?;
        let count = u32::try_from(places).ok()?;
        let turn = Arc::clone(&self.places).try_acquire_many_owned(count);
        Some((turn.ok()?, share))
    }
}

/// The form of an item in a zip file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Its files, below its name.
    Item,
    /// A BagIt bag.
    Bag,
}

/// Answers with an item that the public may read. Its first entries are found before the answer begins: what may be wrong
/// with the item as a whole, such as its removal, is still said by the status.
pub(super) async fn answer(
    site: &Arc<Site>,
    item: Item,
    layout: Layout,
    client: IpAddr,
) -> Response<Body> {
    let places = match layout {
        Layout::Item => 1,
        Layout::Bag => PLACES_OF_A_BAG,
    };
    let Some(turn) = site.zips.take(client, places) else {
        let sentence = "too many items are being sent as zip files; ask again in a while";
        return answer::busy(sentence, ASK_AGAIN);
    };
    let name = item.names.preferred().replace('/', "_");
    let item = Arc::new(item);
    let found = {
        let (site, item) = (Arc::clone(site), Arc::clone(&item));
        answer::aside(move || body::entries(&site, &item, b"")).await
    };
    let first = match found {
        Ok(Ok(first)) => first,
        Ok(Err(error)) => return failure::of(&error),
        Err(refusal) => return refusal,
    };
    let body = Body::new(ZipBody::new(Arc::clone(site), item, first, layout, turn));
    let mut response = answer::fresh(answer::whole(StatusCode::OK, "application/zip", body));
    let lines = response.headers_mut();
    lines.insert(header::ACCEPT_RANGES, HeaderValue::from_static("none"));
    if let Some(disposition) = attachment(format!("{name}.zip").as_bytes()) {
        lines.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}
