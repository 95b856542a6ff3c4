//! The threads that answer: a connection stays with one of them from its beginning to its end, so that
//! they need not wake each other.

use std::future::Future;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::{MOST_ASIDE, TICK};

/// Running threads; they end when this is dropped, and when what they wait for on disks has come.
#[derive(Debug)]
pub(super) struct Threads {
    each: Vec<Thread>,
    next: usize,
}

#[derive(Debug)]
struct Thread {
    handle: Handle,
    /// Never sent to: its end is the thread's.
    going_on: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Threads {
    /// Starts one for each processor. Each does `begin` first; others that it starts, for what may have to
    /// wait, do not stay whom it has become.
    pub(super) fn start(begin: fn()) -> std::io::Result<Threads> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let each = (0..count).map(|_| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads((MOST_ASIDE / count).max(1))
                .on_thread_start(crate::caller::stay_oneself)
                .build()?;
            Thread::start(runtime, begin)
        });
        Ok(Threads {
            each: each.collect::<std::io::Result<_>>()?,
            next: 0,
        })
    }

    /// Where the next connection is answered, and its place in the list of all.
    pub(super) fn next(&mut self) -> (usize, &Handle) {
        self.next = (self.next + 1) % self.each.len();
        (self.next, &self.each[self.next].handle)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.each.len()
    }
}

impl Thread {
    fn start(runtime: Runtime, begin: fn()) -> std::io::Result<Thread> {
        let (going_on, end) = oneshot::channel();
        let handle = runtime.handle().clone();
        let run = move || {
            begin();
            runtime.block_on(until(end));
        };
        let thread = std::thread::Builder::new().name("answers".to_owned());
        Ok(Thread {
            handle,
            going_on: Some(going_on),
            thread: Some(thread.spawn(run)?),
        })
    }
}

/// Goes on until the end.
///
/// A timer that is to fire before all others wakes the thread that sets it, by a system call. None of
/// those that requests set is before this one.
async fn until(end: impl Future) {
    let mut ticks = tokio::time::interval(TICK);
    let ticking = async {
        loop {
            ticks.tick().await;
        }
    };
    tokio::select! {
        _ = end => {}
        () = ticking => {}
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for thread in &mut self.each {
            thread.going_on = None;
        }
        for thread in &mut self.each {
            if let Some(Err(_)) = thread.thread.take().map(JoinHandle::join) {
                log::error!("a thread that answers has ended by a fault");
            }
        }
    }
}
