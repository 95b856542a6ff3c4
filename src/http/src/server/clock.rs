//! The clock of a site. The caller passes it in, so that tests can use another than the system's.

use std::fmt;
use std::sync::Arc;

use ibi::Timestamp;
use ibifs_os::clock::Clock;

/// A clock that all requests of a site share.
#[derive(Clone)]
pub struct SiteClock(Arc<dyn Clock>);

impl SiteClock {
    /// This clock.
    pub fn new(clock: impl Clock + 'static) -> SiteClock {
        SiteClock(Arc::new(clock))
    }

    /// The present time, in Unix seconds.
    pub fn seconds(&self) -> i64 {
        self.now().seconds()
    }
}

impl Clock for SiteClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl fmt::Debug for SiteClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteClock").finish_non_exhaustive()
    }
}
