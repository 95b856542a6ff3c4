//! The claims about items of which so much is claimed that it takes long to read: it is read once for all requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::archive::store::{Item, ItemId};
use crate::archive::{ArchiveError, Claims};
use crate::web::archive::Site;

/// The time that claims are kept while the index does not change. Permissions change without it.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// The time of reading claims above which they are kept.
const LONG: Duration = Duration::from_millis(20);

/// It is kept for so many times as long as reading took, even if the index changes: else who changes something all the
/// time has it read for each request.
const TIMES: u32 = 10;

/// The claims about items.
#[derive(Debug, Default)]
pub(in super::super) struct KeptClaims(Mutex<HashMap<ItemId, Place>>);

/// The claims about an item, locked while they are read.
type Place = Arc<Mutex<Option<Kept>>>;

#[derive(Debug)]
struct Kept {
    claims: Claims,
    version: i64,
    read: Instant,
    cost: Duration,
}

impl KeptClaims {
    /// Returns what is claimed of an item.
    pub(super) fn of(&self, site: &Site, item: &Item) -> Result<Claims, ArchiveError> {
        // Read before the claims, so that those of a later version are not taken for those of this one.
        let Some(version) = site.index_version() else {
            return site.archive.claims(item);
        };
        let place = self.place(item.id);
        let mut place = place.lock();
        if let Some(kept) = &*place
            && (version <= kept.version || kept.read.elapsed() < kept.cost.saturating_mul(TIMES))
            && kept.read.elapsed() < KEPT_FOR
        {
            return Ok(kept.claims.clone());
        }
        *place = None;
        let version = site.index_version().unwrap_or(version);
        let read = Instant::now();
        let claims = site.archive.claims(item)?;
        let cost = read.elapsed();
        if cost > LONG {
            *place = Some(Kept {
                claims: claims.clone(),
                version,
                read,
                cost,
            });
        }
        Ok(claims)
    }

    fn place(&self, id: ItemId) -> Place {
        let mut items = self.0.lock();
        let is_kept = |kept: &Option<Kept>| {
            kept.as_ref()
                .is_some_and(|kept| kept.read.elapsed() < KEPT_FOR)
        };
        // A request that reads or waits has a reference.
        items.retain(|_, place| {
            Arc::strong_count(place) > 1 || place.try_lock().is_none_or(|kept| is_kept(&kept))
        });
        Arc::clone(items.entry(id).or_default())
    }
}
