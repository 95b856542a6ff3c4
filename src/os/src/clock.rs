//! A source of the current time.

use std::time::SystemTime;

use ibi::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The present instant, UTC.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Not the calendar library's own clock, which panics after the last year that it can represent.
        match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Timestamp::from_unix(
                i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                after.subsec_nanos(),
            ),
            Err(_) => Timestamp::from_unix(0, 0),
        }
    }
}
