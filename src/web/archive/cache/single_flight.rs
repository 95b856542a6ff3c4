//! Single flight: one read for all requests that wait for it.
//!
//! quick_cache's guards coalesce requests too, but a request would join a read that began before it arrived,
//! and could miss a change. Here it joins a read that has not begun.

use parking_lot::Mutex;
use std::sync::Arc;

use tokio::sync::OnceCell;

/// Coalesces the requests of one thread for a value. Each gets a value that is read after the request.
#[derive(Debug)]
pub(in super::super) struct SingleFlight<T> {
    /// The read that has not begun yet, which requests join.
    next: Mutex<Arc<OnceCell<T>>>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> SingleFlight<T> {
        SingleFlight {
            next: Mutex::default(),
        }
    }
}

impl<T: Copy + Send + Sync> SingleFlight<T> {
    /// The value, read by this or another request, but always after this is called.
    pub(in super::super) async fn get(&self, read: impl FnOnce() -> T + Send) -> T {
        let flight = Arc::clone(&self.next.lock());
        let first = async {
            // Let all other requests that this thread has received join first.
            tokio::task::yield_now().await;
            let mut next = self.next.lock();
            if Arc::ptr_eq(&next, &flight) {
                *next = Arc::default();
            }
            drop(next);
            read()
        };
        *flight.get_or_init(|| first).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn one_reading_for_all_requests_that_have_arrived() {
        let (version, count) = (SingleFlight::default(), AtomicUsize::new(0));
        let read = || count.fetch_add(1, Ordering::SeqCst);
        run(async {
            let values = tokio::join!(version.get(read), version.get(read), version.get(read));
            assert_eq!(values, (0, 0, 0));
            assert_eq!(version.get(read).await, 1, "a later request reads again");
        });
        assert_eq!(count.into_inner(), 2);
    }

    /// A request that arrives during a read joins the next one.
    #[test]
    fn no_request_gets_what_was_read_before_it() {
        let version: SingleFlight<usize> = SingleFlight::default();
        let late = Mutex::new(None);
        run(async {
            let value = version.get(|| {
                *late.lock() = Some(Arc::clone(&version.next.lock()));
                7
            });
            assert_eq!(value.await, 7);
        });
        let late = late.lock().take().expect("it was read");
        assert_eq!(late.get(), None, "a late request waits for another reading");
    }

    /// The request that has begun to read may be dropped.
    #[test]
    fn another_request_reads_in_place_of_one_that_is_dropped() {
        let version: SingleFlight<usize> = SingleFlight::default();
        run(async {
            let mut first = Box::pin(version.get(|| 1));
            let mut second = Box::pin(version.get(|| 2));
            tokio::select! {
                biased;
                _ = &mut first => unreachable!("it has to wait first"),
                _ = &mut second => unreachable!("it waits for the first"),
                () = std::future::ready(()) => drop(first),
            }
            assert_eq!(second.await, 2);
        });
    }
}
