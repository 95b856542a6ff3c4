//! Answers that come at once, and those that come later.

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::fixture::Adapter;
use crate::fuse::fs::outcome::{Outcome, Wait};
use crate::fuse::fs::scheduler::{JobQueue, Scheduler};
use crate::fuse::inode::NodeKind;
use crate::fuse::inside::{AttributeChange, ErrnoResult};
use crate::os::opening;

fn is_later<T>(answer: ErrnoResult<Outcome<T>>) -> Option<bool> {
    answer
        .ok()
        .map(|answer| matches!(answer, Outcome::Later(_)))
}

#[test]
fn what_takes_long_is_answered_later() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    let ibip = item.names.ibip().expect("an IBIp").to_string();
    let (prefix, _) = ibip.split_once('/').expect("a prefix");
    let (caller, sidecar) = (adapter.caller, format!("{rep}/.ibi"));
    let list = format!("{rep}?GetFileList");
    let open = |path: &str| is_later(adapter.open_file(caller, adapter.number(path), 0));
    let ask = |path: &str| is_later(adapter.attributes(caller, adapter.number(path)));
    let open_list = |path: &str| is_later(adapter.open_directory(caller, adapter.number(path)));
    let mkdir =
        |path: &str| is_later(adapter.make_directory(caller, adapter.name(path), (0o755, 0)));
    let rmdir = |path: &str| is_later(adapter.remove_directory(caller, adapter.name(path)));
    let handle = adapter
        .open(&sidecar, libc::O_RDONLY)
        .expect("opens")
        .handle;
    for (later, expected, what) in [
        (open(&sidecar), false, "open of a file"),
        (open(&list), true, "open of a generated text"),
        (ask(&sidecar), false, "getattr of a file"),
        (ask(&list), true, "getattr of a generated text"),
        (open_list(&rep), false, "opendir in an item"),
        (open_list(prefix), false, "opendir of a prefix"),
        (
            open_list(".find"),
            true,
            "opendir of names that are read at once",
        ),
        (mkdir(&format!("{rep}/d")), false, "mkdir in an item"),
        (mkdir(".mint/report"), true, "mkdir that mints"),
        (rmdir(&format!("{rep}/d")), false, "rmdir"),
        (
            is_later(Ok(adapter.sync(&caller, handle, true))),
            true,
            "fsync",
        ),
    ] {
        assert_eq!(later, Some(expected), "{what}");
    }
}

#[test]
fn a_pool_of_one_thread_answers_one_after_the_other() {
    let mut adapter = Adapter::new();
    let inner = Arc::get_mut(&mut adapter.inner).expect("no job has it");
    inner.scheduler = Scheduler::with_one_thread().expect("a thread");
    let (item, rep) = adapter.mint();
    std::fs::write(adapter.archive.file(&item, "doc/report.txt"), "").expect("a file");
    let number = adapter.number(&format!("{rep}?GetFileList"));
    let (answered, answers) = channel();
    let (go_on, gate) = channel::<()>();
    let mut gate = Some(gate);
    for at in 0..3 {
        let (answered, gate) = (answered.clone(), gate.take());
        let asked = adapter.attributes(adapter.caller, number);
        adapter.answer(asked, move |_, found| {
            if let Some(gate) = gate {
                gate.recv().expect("opened");
            }
            let size = found.map(|(_, attr)| attr.size);
            let answer = (at, size, thread::current().id());
            answered.send(answer).expect("heard");
        });
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!(
        answers.try_recv(),
        Err(TryRecvError::Empty),
        "the first one blocks"
    );
    go_on.send(()).expect("it waits");
    let answers: Vec<_> = answers.iter().take(3).collect();
    let order: Vec<_> = answers.iter().map(|(at, ..)| *at).collect();
    assert_eq!(order, [0, 1, 2]);
    for (_, size, thread) in &answers {
        assert!(size.is_ok_and(|size| size > 0), "{size:?}");
        assert_eq!(*thread, answers[0].2, "one thread answers all");
        assert_ne!(*thread, thread::current().id());
    }
}

#[test]
fn a_job_that_is_refused_its_turn_is_answered_with_the_errno() {
    let adapter = Adapter::new();
    let (answered, answers) = channel();
    let (go_on, gate) = channel::<()>();
    let gate = Arc::new(parking_lot::Mutex::new(gate));
    let most = 1024;
    for at in 0..most + 2 {
        let answered = answered.clone();
        let gate = Arc::clone(&gate);
        let answer: Outcome<()> = Outcome::later(Wait::Queue(JobQueue::Processor), 7, move |_| {
            gate.lock().recv().map_err(|_| Errno::IO)
        });
        adapter.answer(Ok(answer), move |_, done| {
            answered.send((at, done)).expect("heard");
        });
    }
    assert_eq!(answers.recv(), Ok((most + 1, Err(Errno::AGAIN))));
    drop(go_on);
    for _ in 0..=most {
        let (_, done) = answers.recv().expect("an answer");
        assert_eq!(done, Err(Errno::IO));
    }
}

#[test]
fn a_mint_goes_on_after_its_request() {
    let adapter = Adapter::new();
    let name = (adapter.number(".mint"), OsStr::new("report"));
    let made = adapter.make_directory(adapter.caller, name, (0o755, 0));
    let Ok(Outcome::Later(_)) = &made else {
        panic!("not minted");
    };
    let (sender, receiver) = channel();
    adapter.answer(made, move |_, minted| {
        let minted = (minted, thread::current().id());
        sender.send(minted).expect("received");
    });
    let minted = receiver.recv_timeout(Duration::from_secs(30));
    let (entry, thread) = minted.expect("a reply");
    let entry = entry.expect("an item");
    assert!(matches!(entry.node.kind, NodeKind::Item(_)), "{entry:?}");
    assert_ne!(thread, thread::current().id());
}

#[test]
fn a_request_that_a_lease_blocks_is_answered_when_it_is_released() {
    // SAFETY: no handler of ours is set; the signal that reports a broken lease is ignored.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    let path = adapter.archive.file(&item, "a");
    std::fs::write(&path, "text").expect("a file");
    let number = adapter.number(&format!("{rep}/a"));
    let lease = |file: &std::fs::File, kind: libc::c_int| {
        // SAFETY: takes no pointer; the descriptor is open.
        let set = || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
        // A job closes its file after it has answered.
        assert!((0..1000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            set() == 0
        }));
    };
    let leased = std::fs::OpenOptions::new().write(true).open(&path);
    let leased = leased.expect("a file");
    let caller = adapter.caller;

    lease(&leased, libc::F_WRLCK);
    let refused = adapter.open_file(caller, number, libc::O_NONBLOCK);
    assert_eq!(refused.err(), Some(opening::LEASED));
    let (answered, answers) = channel();
    let opened = adapter.open_file(caller, number, libc::O_RDONLY);
    assert!(matches!(opened, Ok(Outcome::Later(_))));
    adapter.answer(opened, move |inner, opened| {
        let opened = opened.map(|opened| inner.register(opened, |_| Err(Errno::PERM.into())));
        let handle = opened.map(|opened| opened.handle);
        answered.send(handle).expect("heard");
    });
    thread::sleep(Duration::from_millis(20));
    assert_eq!(answers.try_recv(), Err(TryRecvError::Empty));
    lease(&leased, libc::F_UNLCK);
    let handle = answers.recv_timeout(Duration::from_secs(30));
    let handle = handle.expect("an answer").expect("opened");
    assert_eq!(adapter.read_file(handle, 0, 9).as_deref(), Ok(&b"text"[..]));
    assert_eq!(adapter.close(handle), Ok(()));

    lease(&leased, libc::F_WRLCK);
    let change = AttributeChange {
        size: Some(2),
        ..AttributeChange::default()
    };
    let changed = adapter.set_attributes(caller, number, None, change);
    assert!(matches!(changed, Ok(Outcome::Later(_))));
    lease(&leased, libc::F_UNLCK);
    let (_, attr) = adapter.wait(changed).expect("changed");
    assert_eq!(attr.size, 2);
}
