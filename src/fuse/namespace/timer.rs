//! Time as it passes: handed in, so that tests need not wait.

use std::time::{Duration, Instant};

/// A monotonic clock.
pub(super) trait Timer: std::fmt::Debug + Send + Sync {
    /// The present.
    fn now(&self) -> Instant;
    /// Returns after a time.
    fn sleep(&self, time: Duration);
}

/// The system's clock.
#[derive(Debug)]
pub(super) struct SystemTimer;

impl Timer for SystemTimer {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A clock that advances only by sleeping.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct ManualTimer(parking_lot::Mutex<Instant>);

#[cfg(test)]
impl Default for ManualTimer {
    fn default() -> ManualTimer {
        ManualTimer(parking_lot::Mutex::new(Instant::now()))
    }
}

#[cfg(test)]
impl Timer for ManualTimer {
    fn now(&self) -> Instant {
        *self.0.lock()
    }

    fn sleep(&self, time: Duration) {
        *self.0.lock() += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_while_the_system_sleeps() {
        let before = SystemTimer.now();
        SystemTimer.sleep(Duration::from_millis(5));
        assert!(SystemTimer.now() - before >= Duration::from_millis(5));
    }
}
