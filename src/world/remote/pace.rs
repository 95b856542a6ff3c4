//! A watch on what is read: it has to arrive, and not so slowly that the reader would wait for good.

use std::time::{Duration, Instant};

use crate::world::remote::requests::READ_TIMEOUT;

/// The number of bytes that must come in [`READ_TIMEOUT`], 1 KiB in a second.
const LEAST: usize = 10 << 10;
/// The time to wait before it asks a server again that does not answer.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

/// The pace of a download.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    bytes: usize,
}

impl Pace {
    /// The pace of a download that begins.
    pub(crate) fn begin() -> Pace {
        Pace {
            since: Instant::now(),
            bytes: 0,
        }
    }

    /// Notes that bytes have come.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= LEAST {
            *self = Pace::begin();
        }
    }

    /// Returns when it has lasted too long, unless enough bytes come before.
    pub(crate) fn until(&self) -> Instant {
        self.since + READ_TIMEOUT
    }

    /// The time until then.
    pub(crate) fn left(&self) -> Duration {
        self.until().saturating_duration_since(Instant::now())
    }

    /// Returns whether there is no time for another attempt.
    pub(crate) fn is_over(&self) -> bool {
        self.left() <= PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_bytes_now_and_then_are_not_enough() {
        let begun = Instant::now() - READ_TIMEOUT;
        let mut pace = Pace {
            since: begun,
            bytes: 0,
        };
        pace.took(LEAST - 1);
        assert!(pace.is_over() && pace.left() == Duration::ZERO);
        pace.took(1);
        assert!(!pace.is_over() && pace.until() > begun + READ_TIMEOUT);
    }

    #[test]
    fn a_download_has_ten_seconds_and_no_attempt_at_their_end() {
        for (seconds, is_over) in [(0, false), (9, false), (10, true), (11, true)] {
            let pace = Pace {
                since: Instant::now() - Duration::from_secs(seconds),
                bytes: 0,
            };
            assert_eq!(pace.is_over(), is_over, "{seconds}");
        }
        let nearly = Pace {
            since: Instant::now() - READ_TIMEOUT + PAUSE / 2,
            bytes: 0,
        };
        assert!(nearly.is_over(), "there is no time to wait and ask again");
    }
}
