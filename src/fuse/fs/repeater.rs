//! Invalidations of attributes that are sent again.
//!
//! The kernel knows a node when the process that has asked for it goes on, which on a machine under load is long after
//! our reply. An invalidation before that is lost (ENOENT), and the attributes in the reply, which are older, would be
//! cached. So it is sent again until the kernel knows the node, or has no use for it: it has forgotten the node, or the
//! attributes have expired.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::lifetimes;
use crate::fuse::namespace::Stale;

/// The pause before the first time. Each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// An invalidation that the kernel has not taken.
struct Untaken {
    stale: Stale,
    since: Instant,
    /// Dropped when it is over.
    _waiting: Sender<Infallible>,
}

/// The thread that sends them; it ends with this value.
#[derive(Clone, Debug)]
pub(super) struct Repeater {
    queue: Sender<Untaken>,
}

impl Repeater {
    /// Starts the thread. `is_over` sends an invalidation once more, and returns false if it must be sent again.
    pub(super) fn start(
        is_over: impl Fn(&Stale) -> bool + Send + 'static,
    ) -> std::io::Result<Repeater> {
        let (queue, received) = channel();
        std::thread::Builder::new()
            .name("repeater".to_owned())
            .spawn(move || serve(&received, is_over))?;
        Ok(Repeater { queue })
    }

    /// Sends invalidations again. The receiver is disconnected when all of them are over.
    pub(super) fn repeat(&self, stale: Vec<Stale>) -> Receiver<Infallible> {
        let (waiting, over) = channel();
        for stale in stale {
            // The thread ends with the mount only.
            let _ = self.queue.send(Untaken {
                stale,
                since: Instant::now(),
                _waiting: waiting.clone(),
            });
        }
        over
    }
}

fn serve(received: &Receiver<Untaken>, is_over: impl Fn(&Stale) -> bool) {
    while let Ok(first) = received.recv() {
        let (mut untaken, mut pause) = (vec![first], FIRST_PAUSE);
        while !untaken.is_empty() {
            match received.recv_timeout(pause) {
                Ok(new) => {
                    untaken.push(new);
                    pause = FIRST_PAUSE;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => pause *= 2,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            untaken.retain(|untaken| {
                untaken.since.elapsed() < lifetimes::CACHED && !is_over(&untaken.stale)
            });
        }
    }
}
