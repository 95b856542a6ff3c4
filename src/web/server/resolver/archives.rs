//! The Archives that are asked: which there are, which of them have gone silent, and which answered last
//! for a prefix.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::formats::item::Names;
use crate::formats::query::encoded;
use crate::web::registry::{Address, ArchiveId, Maker, Registered};

/// How long an Archive may take for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for one that has not answered for a while.
const SHORT_PATIENCE: Duration = Duration::from_millis(250);
/// So many answers that do not come make a while.
const SILENCE: u32 = 3;
/// No Archive is asked more at once.
const MOST_WAITING: usize = 512;
/// For so many prefixes is known which Archive answered last.
const MOST_REMEMBERED: usize = 100_000;

/// An Archive that is included.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: ArchiveId,
    /// Where it is reached.
    pub(super) address: String,
    /// The URL of its service.
    pub(super) service: String,
    /// Questions in a row that it has not answered.
    failures: AtomicU32,
    /// Questions that wait for its answer.
    waiting: AtomicUsize,
}

/// A question that waits for an answer.
#[derive(Debug)]
pub(super) struct Waiting<'a>(&'a Asked);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Asked {
    /// How long to wait for an answer.
    pub(super) fn patience(&self) -> Duration {
        if self.failures.load(Ordering::Relaxed) < SILENCE {
            PATIENCE
        } else {
            SHORT_PATIENCE
        }
    }

    /// Begins to ask it; None where too many questions wait already.
    pub(super) fn begin(&self) -> Option<Waiting<'_>> {
        let waiting = Waiting(self);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
            Some(waiting)
        } else {
            None
        }
    }

    /// Notes whether it has answered.
    pub(super) fn note(&self, has_answered: bool) {
        if has_answered {
            self.failures.store(0, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Archives {
    included: RwLock<Arc<Vec<Arc<Asked>>>>,
    /// How many are registered and not included: they give no answer.
    absent: AtomicUsize,
    /// By prefix, who answered last.
    remembered: Mutex<HashMap<String, ArchiveId>>,
    /// Who holds originals of which maker, as far as it is in the database.
    originals: Mutex<HashSet<(ArchiveId, Maker)>>,
}

impl Archives {
    /// Takes over who is included now; what is known of those who were stays.
    pub(super) fn replace(&self, registered: &[Registered]) {
        let known = self.all();
        let asked = |archive: &Registered| {
            let address = &archive.included.as_ref()?.address;
            let service = service_url(address, &archive.service);
            let is_known = |known: &&Arc<Asked>| known.id == archive.id && known.service == service;
            Some(known.iter().find(is_known).map_or_else(
                || {
                    Arc::new(Asked {
                        id: archive.id,
                        address: address.to_string(),
                        service: service.clone(),
                        failures: AtomicU32::new(0),
                        waiting: AtomicUsize::new(0),
                    })
                },
                Arc::clone,
            ))
        };
        let included: Vec<Arc<Asked>> = registered.iter().filter_map(asked).collect();
        let absent = registered.len() - included.len();
        self.absent.store(absent, Ordering::Relaxed);
        *self.included.write() = Arc::new(included);
    }

    /// Who is included.
    pub(super) fn all(&self) -> Arc<Vec<Arc<Asked>>> {
        Arc::clone(&self.included.read())
    }

    /// How many are registered and not included.
    pub(super) fn absent(&self) -> usize {
        self.absent.load(Ordering::Relaxed)
    }

    /// Notes that an Archive holds the original of an identifier; tells whether it may be the first with
    /// the prefix.
    pub(super) fn note_original(&self, maker: &Maker, archive: &Asked) -> bool {
        let mut known = self.originals.lock();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert((archive.id, maker.clone()))
    }

    /// Who answered last for an identifier with this one's prefix.
    pub(super) fn remembered(&self, ibi: &str) -> Option<Arc<Asked>> {
        let id = *self.remembered.lock().get(prefix(ibi))?;
        self.all().iter().find(|known| known.id == id).cloned()
    }

    /// Remembers who answered.
    pub(super) fn remember(&self, ibi: &str, archive: &Asked) {
        let mut remembered = self.remembered.lock();
        // It is soon learnt again.
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(prefix(ibi).to_owned(), archive.id);
    }
}

/// The URL of an Archive's service (SPEC 8).
pub(super) fn service_url(address: &Address, service: &Names) -> String {
    let service = encoded(service.preferred().as_bytes());
    format!("http://{address}/{service}")
}

/// What the identifiers of one maker have in common: the first two parts of a rep, the first of an IBIp.
fn prefix(ibi: &str) -> &str {
    let slashes: Vec<usize> = ibi.match_indices('/').map(|(at, _)| at).collect();
    let end = match slashes.as_slice() {
        [_, second, _] => *second,
        [first, ..] => *first,
        [] => ibi.len(),
    };
    ibi.get(..end).unwrap_or(ibi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(
            prefix("sid.inpe.br/mtc-m18@80/2009/02.16.17.46"),
            "sid.inpe.br/mtc-m18@80"
        );
        assert_eq!(prefix("8JMKD3MGP8W/34PGRBS"), "8JMKD3MGP8W");
        assert_eq!(prefix("x"), "x");
    }

    #[test]
    fn who_goes_silent_is_waited_for_a_short_while() {
        let asked = Asked {
            id: ArchiveId::for_test(1),
            address: "a".to_owned(),
            service: "http://a/b".to_owned(),
            failures: AtomicU32::new(0),
            waiting: AtomicUsize::new(0),
        };
        for _ in 0..SILENCE {
            assert_eq!(asked.patience(), PATIENCE);
            asked.note(false);
        }
        assert_eq!(asked.patience(), SHORT_PATIENCE);
        asked.note(true);
        assert_eq!(asked.patience(), PATIENCE);
        let waiting: Vec<Waiting<'_>> = (0..MOST_WAITING).filter_map(|_| asked.begin()).collect();
        assert!(waiting.len() == MOST_WAITING && asked.begin().is_none());
        drop(waiting);
        assert!(asked.begin().is_some());
    }
}
