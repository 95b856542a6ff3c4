//! Waiting that ends when the process that waits gets a signal.

use std::future::Future;
use std::time::Duration;

use crate::os::caller::is_interrupted;
use crate::world::error::ForeignError;

/// The interval at which it looks whether the process has got a signal.
const INTERVAL: Duration = Duration::from_millis(200);

/// Waits for an answer, unless a signal interrupts this thread meanwhile.
pub(crate) async fn for_thread<T>(
    thread: u32,
    answer: impl Future<Output = Result<T, ForeignError>>,
) -> Result<T, ForeignError> {
    tokio::pin!(answer);
    loop {
        match tokio::time::timeout(INTERVAL, &mut answer).await {
            Ok(answer) => return answer,
            Err(_) if is_interrupted(thread) => return Err(ForeignError::Interrupted),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_comes_late_is_given() {
        let late = async {
            tokio::time::sleep(INTERVAL + INTERVAL / 2).await;
            Ok(7)
        };
        let thread = std::process::id();
        assert_eq!(for_thread(thread, late).await, Ok(7));
        let missing = async { Err::<u32, _>(ForeignError::Missing) };
        assert_eq!(
            for_thread(thread, missing).await,
            Err(ForeignError::Missing)
        );
    }
}
