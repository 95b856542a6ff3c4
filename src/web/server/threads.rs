//! The threads that answer: a connection stays with one of them from its beginning to its end, so that
//! they need not wake each other.

use std::cell::RefCell;
use std::future::Future;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

use super::TICK;

thread_local! {
    /// Where a thread that answers has done what may have to wait.
    static ASIDE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Does what may have to wait for a disk or another process in a thread that keeps nobody else waiting;
/// all threads that answer share them, see [`super::MOST_ASIDE`].
pub(super) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    match ASIDE.with_borrow(Option::clone) {
        Some(handle) => handle.spawn_blocking(work),
        None => tokio::task::spawn_blocking(work),
    }
}

/// Running threads; they end when this is dropped.
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
    /// Starts one for each processor. Each does `begin` first. What may have to wait is done by threads of
    /// the runtime that this is called in.
    pub(super) fn start(begin: fn()) -> std::io::Result<Threads> {
        let aside = Handle::current();
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let each = (0..count).map(|_| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                // What Tokio itself has done aside, such as looking names up.
                .on_thread_start(crate::os::caller::act_as_process)
                .build()?;
            Thread::start(runtime, begin, aside.clone())
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
