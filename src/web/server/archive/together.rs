//! Whether the index has changed, asked once for all requests that are there at a time.

use parking_lot::Mutex;
use std::sync::Arc;

use tokio::sync::OnceCell;

/// Asks a question for several at once, each of whom is told what is asked after he has come. Those who
/// come to one thread, which so goes on to the next when one waits.
#[derive(Debug)]
pub(super) struct Together<T> {
    /// What those who come now wait for: it has not been asked yet.
    next: Mutex<Arc<OnceCell<T>>>,
}

impl<T> Default for Together<T> {
    fn default() -> Together<T> {
        Together {
            next: Mutex::default(),
        }
    }
}

impl<T: Copy + Send + Sync> Together<T> {
    /// What is told by `ask`, which is called after this is.
    pub(super) async fn told(&self, ask: impl FnOnce() -> T + Send) -> T {
        let question = Arc::clone(&self.next.lock());
        let first = async {
            // All others who are ready to be answered come before this goes on.
            tokio::task::yield_now().await;
            let mut next = self.next.lock();
            if Arc::ptr_eq(&next, &question) {
                *next = Arc::default();
            }
            drop(next);
            ask()
        };
        *question.get_or_init(|| first).await
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
    fn one_question_for_all_who_are_there() {
        let (together, count) = (Together::default(), AtomicUsize::new(0));
        let ask = || count.fetch_add(1, Ordering::SeqCst);
        run(async {
            let told = tokio::join!(together.told(ask), together.told(ask), together.told(ask));
            assert_eq!(told, (0, 0, 0));
            assert_eq!(together.told(ask).await, 1, "who comes later asks anew");
        });
        assert_eq!(count.into_inner(), 2);
    }

    /// Who comes when the question is being asked is told what is asked after that.
    #[test]
    fn nobody_is_told_what_was_asked_before() {
        let together: Together<usize> = Together::default();
        let late = Mutex::new(None);
        run(async {
            let told = together.told(|| {
                *late.lock() = Some(Arc::clone(&together.next.lock()));
                7
            });
            assert_eq!(told.await, 7);
        });
        let late = late.lock().take().expect("it was asked");
        assert_eq!(
            late.get(),
            None,
            "who comes then waits for another question"
        );
    }

    /// Whoever has begun to ask may go away.
    #[test]
    fn another_goes_on_in_place_of_who_leaves() {
        let together: Together<usize> = Together::default();
        run(async {
            let mut first = Box::pin(together.told(|| 1));
            let mut second = Box::pin(together.told(|| 2));
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
