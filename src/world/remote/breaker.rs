//! Hosts that do not answer are left alone for a while, so that not every process waits for them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time that a host is left alone after its first failure. Doubled by each further one.
const SHORTEST: Duration = Duration::from_secs(5);
/// The longest time that a host is left alone.
const LONGEST: Duration = Duration::from_secs(60);
/// The most hosts that are remembered.
const MOST_HOSTS: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Silence {
    pause: Duration,
    until: Instant,
}

/// The hosts that do not answer.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<HashMap<String, Silence>>);

impl Breaker {
    /// Whether a host is left alone.
    pub(crate) fn is_open(&self, host: &str, now: Instant) -> bool {
        let silent = self.0.lock();
        silent.get(host).is_some_and(|silence| now < silence.until)
    }

    /// Notes that a host has answered.
    pub(crate) fn answered(&self, host: &str) {
        self.0.lock().remove(host);
    }

    /// Notes that a host has not answered. Failures of requests that were sent together count once.
    pub(crate) fn failed(&self, host: &str, now: Instant) {
        let mut silent = self.0.lock();
        if silent.len() >= MOST_HOSTS {
            silent.retain(|_, silence| now < silence.until);
        }
        let pause = match silent.get(host) {
            Some(silence) if now < silence.until => return,
            Some(silence) => (silence.pause * 2).min(LONGEST),
            None if silent.len() >= MOST_HOSTS => return,
            None => SHORTEST,
        };
        let until = now + pause;
        silent.insert(host.to_owned(), Silence { pause, until });
    }

    /// The hosts that are left alone.
    pub(crate) fn silent(&self, now: Instant) -> Vec<String> {
        let silent = self.0.lock();
        let mut hosts: Vec<String> = silent
            .iter()
            .filter(|(_, silence)| now < silence.until)
            .map(|(host, _)| host.clone())
            .collect();
        hosts.sort();
        hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_host_is_left_alone_longer_and_longer() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let mut now = start;
        assert!(!breaker.is_open("a", now));
        for pause in [5, 10, 20, 40, 60, 60] {
            breaker.failed("a", now);
            breaker.failed("a", now);
            assert!(breaker.is_open(
                "a",
                now + Duration::from_secs(pause) - Duration::from_millis(1)
            ));
            assert!(!breaker.is_open("b", now));
            assert_eq!(breaker.silent(now), ["a"]);
            now += Duration::from_secs(pause);
            assert!(!breaker.is_open("a", now), "{pause}");
        }
        breaker.answered("a");
        breaker.failed("a", now);
        assert!(!breaker.is_open("a", now + SHORTEST));
    }

    #[test]
    fn as_many_hosts_as_a_liar_names_are_remembered_within_a_limit() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for number in 0..2 * MOST_HOSTS {
            breaker.failed(&number.to_string(), now);
        }
        assert_eq!(breaker.silent(now).len(), MOST_HOSTS);
    }

    #[test]
    fn a_host_that_answers_is_asked_at_once_and_the_next_failure_is_its_first() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.failed("a", now);
        breaker.failed("a", now + SHORTEST);
        breaker.answered("a");
        assert!(!breaker.is_open("a", now + SHORTEST));
        assert!(breaker.silent(now + SHORTEST).is_empty());
    }
}
