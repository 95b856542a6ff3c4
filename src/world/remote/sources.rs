//! The servers to ask: the Archives that the user has named, and the resolvers.
//!
//! The source that answered last for a prefix is asked first. The next one is asked as soon as one says that it does not
//! know the name or cannot be reached, or has not answered in half a second. The first answer counts. A name is missing
//! only if all sources say so.

use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::world::error::ForeignError;

/// The time that one source has before the next one is asked, too.
const HEAD_START: Duration = Duration::from_millis(500);
/// The most prefixes for which the last answer is remembered.
const MOST_PREFIXES: usize = 10_000;

/// The number of a source: the Archives in the order in which the user has named them, then the resolvers as one.
pub(crate) type SourceNumber = usize;

/// The source that has answered, for each prefix.
#[derive(Debug, Default)]
pub(crate) struct SourceOrder(Mutex<HashMap<String, SourceNumber>>);

impl SourceOrder {
    /// The numbers of the sources in the order in which they are asked for this identifier.
    fn order(&self, prefix: &str, count: usize) -> Vec<SourceNumber> {
        let known = self.0.lock().get(prefix).copied();
        let others = (0..count).filter(|number| Some(*number) != known);
        known
            .into_iter()
            .filter(|number| *number < count)
            .chain(others)
            .collect()
    }

    fn remember(&self, prefix: &str, number: SourceNumber) {
        let mut known = self.0.lock();
        if known.len() >= MOST_PREFIXES {
            known.clear();
        }
        known.insert(prefix.to_owned(), number);
    }

    /// Asks sources until one has an answer.
    pub(crate) async fn ask<T, F>(
        &self,
        name: &str,
        count: usize,
        until: Instant,
        ask: impl Fn(SourceNumber) -> F,
    ) -> Result<T, ForeignError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, ForeignError>> + Send + 'static,
    {
        let prefix = prefix_of(name);
        let mut waiting = self.order(prefix, count).into_iter().peekable();
        let (mut asked, mut trouble) = (JoinSet::new(), None);
        loop {
            if let Some(number) = waiting.next() {
                let answer = ask(number);
                asked.spawn(async move { (number, answer.await) });
            }
            let turn = if waiting.peek().is_some() {
                (Instant::now() + HEAD_START).min(until)
            } else {
                // Each one keeps its own time.
                until + HEAD_START
            };
            match tokio::time::timeout_at(turn.into(), asked.join_next()).await {
                Ok(Some(Ok((number, Ok(answer))))) => {
                    self.remember(prefix, number);
                    return Ok(answer);
                }
                Ok(Some(Ok((_, Err(ForeignError::Missing))))) => {}
                Ok(Some(Ok((_, Err(error))))) => trouble = Some(error),
                Ok(Some(Err(error))) => trouble = Some(ForeignError::Broken(error.to_string())),
                Ok(None) => break,
                Err(_) if waiting.peek().is_some() => {}
                Err(_) => {
                    let late = ForeignError::Unreachable("no answer in time".to_owned());
                    return Err(trouble.unwrap_or(late));
                }
            }
        }
        Err(trouble.unwrap_or(ForeignError::Missing))
    }
}

/// The part of a name that the identifiers of one maker share: the first two components of a rep, the first of an IBIp.
fn prefix_of(name: &str) -> &str {
    let mut slashes = name.match_indices('/').map(|(at, _)| at);
    match (slashes.next(), slashes.next(), slashes.next()) {
        (Some(_), Some(second), Some(_)) => &name[..second],
        (Some(first), ..) => &name[..first],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REP: &str = "sid.inpe.br/mtc-m18@80/2009/02.16.17.46!";

    /// Returns what three sources answer, each after so many milliseconds, and which are asked.
    async fn asked(
        sources: &SourceOrder,
        answers: [(u64, Result<u32, ForeignError>); 3],
    ) -> (Result<u32, ForeignError>, Vec<SourceNumber>) {
        let asked = std::sync::Arc::new(Mutex::new(Vec::new()));
        let until = Instant::now() + Duration::from_secs(2);
        let found = sources
            .ask(REP, 3, until, |number| {
                let ((wait, answer), asked) = (answers[number].clone(), asked.clone());
                asked.lock().push(number);
                async move {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    answer
                }
            })
            .await;
        let asked = asked.lock().clone();
        (found, asked)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn the_source_that_answered_is_asked_first() {
        let sources = SourceOrder::default();
        let silent = ForeignError::Unreachable("silent".to_owned());
        run(async {
            let missing = (0, Err(ForeignError::Missing));
            let answers = [missing.clone(), (0, Ok(7)), missing.clone()];
            assert_eq!(
                asked(&sources, answers.clone()).await,
                (Ok(7), vec![0, 1]),
                "in order"
            );
            assert_eq!(asked(&sources, answers).await, (Ok(7), vec![1]), "known");
            // One that is slow delays the others by half a second.
            let answers = [(0, Ok(3)), (5000, Ok(7)), missing.clone()];
            assert_eq!(asked(&sources, answers).await, (Ok(3), vec![1, 0]));
            let all = [missing.clone(), missing.clone(), missing.clone()];
            assert_eq!(asked(&sources, all).await.0, Err(ForeignError::Missing));
            // Trouble of one is not that the name is missing.
            let one = [missing.clone(), (0, Err(silent.clone())), missing];
            assert_eq!(asked(&sources, one).await.0, Err(silent));
        });
    }

    #[test]
    fn prefixes() {
        for (name, expected) in [
            (REP, "sid.inpe.br/mtc-m18@80"),
            ("8JMKD3MGP8W/34PGRBS", "8JMKD3MGP8W"),
            ("x", "x"),
        ] {
            assert_eq!(prefix_of(name), expected);
        }
    }
}
