//! The threads that answer. A connection stays with one thread, so that threads need not wake each other.

use std::cell::RefCell;
use std::future::Future;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::TICK;

thread_local! {
    /// The runtime that runs blocking work for this thread.
    static ASIDE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Runs work that may wait for a disk or another process in a blocking thread. All threads that answer share
/// these threads, see [`super::MOST_ASIDE`].
pub fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    match ASIDE.with_borrow(Option::clone) {
        Some(handle) => handle.spawn_blocking(work),
        None => tokio::task::spawn_blocking(work),
    }
}

/// Running threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Threads {
    each: Vec<Thread>,
    next: usize,
}

#[derive(Debug)]
struct Thread {
    handle: Handle,
    /// Nothing is sent. Dropping it ends the thread.
    going_on: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Threads {
    /// Starts a thread for each processor. Each runs `begin` first. The current runtime runs their blocking
    /// work.
    pub fn start(begin: fn()) -> std::io::Result<Threads> {
        let aside = Handle::current();
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let each = (0..count).map(|_| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                // For Tokio's own blocking work, such as name lookups.
                .on_thread_start(ibifs_os::caller::act_as_process)
                .build()?;
            Thread::start(runtime, begin, aside.clone())
        });
        Ok(Threads {
            each: each.collect::<std::io::Result<_>>()?,
            next: 0,
        })
    }

    /// The runtime that answers the next connection, and its index.
    pub fn next(&mut self) -> (usize, &Handle) {
        self.next = (self.next + 1) % self.each.len();
        (self.next, &self.each[self.next].handle)
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.each.len()
    }
}

impl Thread {
    fn start(runtime: Runtime, begin: fn(), aside: Handle) -> std::io::Result<Thread> {
        let (going_on, end) = oneshot::channel();
        let handle = runtime.handle().clone();
        let run = move || {
            begin();
            ASIDE.set(Some(aside));
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

/// Runs until `end` is ready.
///
/// Setting a timer that is earlier than all others wakes the thread by a system call. This one is always
/// earlier than those that requests set.
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
                log::error!("a thread of the server has ended because of an error");
            }
        }
    }
}
