//! A user who owns an item and its copy in another store, and exchanges names in the copy while root copies: what root
//! makes is never anything else's, nothing waits, and no other item is left out.

use std::ffi::{CString, OsStr};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::waits::Lease;
use crate::http::served::Served;
use crate::support::{TestEnv, User};

/// Two mounted Archives, A with two items of the user 1001, `one` and `two`, and B with copies of them.
fn pair() -> TestEnv {
    let env = TestEnv::new().with_a().with_b();
    env.sh(&format!(
        "{TOOLS} chmod 1777 A B; chmod 755 .; as mkdir -p A/.mint/1/doc A/.mint/2/doc; as sh -c 'echo text > A/.mint/1/doc/x; echo text > A/.mint/2/doc/x'
         labelled A 1 as > one; labelled A 2 as > two; ibifs copy A/$(< one) A/$(< two) B > copied; test $(stat -c %u B/$(< one) B/$(< two) | sort -u) = 1001"
    ));
    env
}

const TOOLS: &str = "as() { setpriv --reuid=1001 --regid=1001 --clear-groups \"$@\"; };";

fn stranger() -> User {
    User::new(1001, 1001, &[])
}

/// Calls `met` with each name that is made in a directory, until `is_over`, or a test has failed that would have set it.
fn watch(directory: &Path, is_over: &AtomicBool, mut met: impl FnMut(&OsStr)) {
    let path = CString::new(directory.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the path ends with a NUL and lives for the calls; the new descriptor has no other owner.
    let events = unsafe {
        let events = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
        assert!(libc::inotify_add_watch(events, path.as_ptr(), libc::IN_CREATE) >= 0);
        OwnedFd::from_raw_fd(events)
    };
    let mut buffer = [0; 64 << 10];
    let end = Instant::now() + Duration::from_secs(200);
    while !is_over.load(Ordering::Relaxed) && Instant::now() < end {
        let mut polled = [PollFd::new(&events, PollFlags::IN)];
        let soon = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        poll(&mut polled, Some(&soon)).expect("polled");
        let Ok(length) = rustix::io::read(&events, &mut buffer) else {
            continue;
        };
        let mut rest = &buffer[..length];
        // struct inotify_event: the length of the name is in its last four bytes.
        while let Some((head, names)) = rest.split_at_checked(16) {
            let length = u32::from_ne_bytes([head[12], head[13], head[14], head[15]]) as usize;
            let (name, next) = names.split_at(length);
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            met(OsStr::from_bytes(name));
            rest = next;
        }
    }
}

/// As the user 1001, puts links to a file of root in the place of all that root makes in the copy of `one`, and moves
/// directories away, while the script runs. Returns how often that was done.
fn exchanging(env: &TestEnv, script: &str) -> usize {
    let item =
        |name: &str| -> PathBuf { env.root().join("B").join(env.sh(&format!("cat {name}"))) };
    let (one, two) = (item("one"), item("two"));
    let (secret, is_over) = (env.root().join("secret"), AtomicBool::new(false));
    let mut count = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stranger().become_in_thread();
            let link = |count: usize| {
                let link = two.join(format!("link{count}"));
                let _ = std::fs::remove_file(&link);
                std::os::unix::fs::symlink(&secret, &link).expect("made");
                link
            };
            let mut ready = link(count);
            watch(&one, &is_over, |name| {
                if !name.as_bytes().starts_with(b".ibifs-copy-") {
                    return;
                }
                let made = one.join(name);
                if std::fs::rename(&ready, &made).is_ok() {
                    count += 1;
                    ready = link(count);
                } else if std::fs::rename(&made, one.join(format!("away{count}"))).is_ok() {
                    count += 1;
                    let _ = std::os::unix::fs::symlink(env.root(), &made);
                }
            });
        });
        env.sh(script);
        is_over.store(true, Ordering::Relaxed);
    });
    count
}

/// FIFOs and files are copied beside a user who exchanges what is not complete: no mode, owner or time of a file of root
/// changes.
#[test]
fn what_is_exchanged_meanwhile_is_not_touched() {
    let env = pair();
    env.sh("echo secret > secret; chmod 600 secret; touch -d 2001-01-01 secret; stat -c '%a %u %g %s %y' secret > before");
    let mut count = 0;
    for turn in 0..6 {
        let script = format!(
            "{TOOLS} as bash -c 'cd A/'$(< one)'/doc; for i in {{1..80}}; do mkfifo -m 666 {turn}f$i; done; for i in {{1..5}}; do echo $i > {turn}x$i; done'
             timeout 120 ibifs copy A/$(< one) B > /dev/null 2>&1 || test $? = 1"
        );
        count += exchanging(&env, &script);
        env.prints(
            "stat -c '%a %u %g %s %y' secret | diff before -; echo $(ls)",
            "A A.store B B.store before copied one secret two",
        );
    }
    assert!(count > 0, "nothing was exchanged");
    // Undisturbed, it is complete again.
    env.prints(
        "ibifs copy A/$(< one) B > /dev/null; find A/$(< one) -printf '%P %y %m %U %s\\n' | sort > a; find B/$(< one) -printf '%P %y %m %U %s\\n' | sort | diff a - | grep -v -e '^[<>]  d' -e ' f .*/\\?.ibi' | grep '^[<>]' || true",
        "",
    );
}

/// The files that a user puts in the place of the mark of an incomplete copy: a FIFO, a link, a directory, a socket, a
/// file with a lease on it.
#[test]
fn nothing_in_the_place_of_the_mark_waits_or_ends_the_command() {
    let env = pair();
    env.sh("echo secret > secret; chmod 600 secret");
    for (turn, put) in [
        "mkfifo -m 666 $M",
        "ln -s $PWD/secret $M",
        "ln -s /dev/zero $M",
        "mkdir -p $M/below; echo x > $M/below/x",
        "python3 -c 'import socket, os; socket.socket(socket.AF_UNIX).bind(\".ibifs-copy-uncompared\")'",
        "echo x > $M; chmod 400 $M",
    ]
    .into_iter()
    .enumerate()
    {
        env.prints(
            &format!(
                "{TOOLS} M=.ibifs-copy-uncompared; export M; as sh -c 'echo {turn} > A/'$(< one)'/doc/y; echo {turn} > A/'$(< two)'/doc/y'
                 (cd B/$(< one); as sh -c {put}); timeout -k 1 20 ibifs copy A/$(< one) A/$(< two) B | tail -n 1
                 cat B/$(< one)/doc/y B/$(< two)/doc/y; test -e B/$(< one)/$M || echo unmarked; stat -c '%a %s' secret",
                put = format_args!("'{}'", put.replace('\'', "'\\''")),
            ),
            &format!("2 items, 2 files, 4 bytes; 0 unchanged, 0 skipped\n{turn}\n{turn}\nunmarked\n600 7"),
        );
    }
    env.sh(&format!("{TOOLS} as sh -c 'echo lease > A/'$(< one)'/doc/y; echo x > B/'$(< one)'/.ibifs-copy-uncompared'; ibifs umount B; ibifs mount B.store B; chmod 755 B.store"));
    let mark = env.sh("echo B.store/col/$(< one)/.ibifs-copy-uncompared");
    let _lease = Lease::take(&stranger(), &env.root().join(mark));
    env.prints(
        "timeout 20 ibifs copy A/$(< one) B > /dev/null; cat B/$(< one)/doc/y",
        "lease",
    );
}

/// The same over HTTP, where the service would keep all others waiting.
#[test]
fn a_mark_over_http_keeps_no_one_waiting() {
    let env = pair();
    env.sh("head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > token; touch tokens; chmod 600 token tokens");
    let a = Served::start(&env, "A.store");
    env.sh(&format!("echo \"$(< token) {}\" > tokens", a.url));
    let b = Served::start(&env, "B.store --transfer-token-file tokens");
    for (turn, put) in ["mkfifo -m 666", "ln -s /dev/zero", "mkdir"]
        .into_iter()
        .enumerate()
    {
        env.prints(
            &format!(
                "{TOOLS} as sh -c 'echo {turn} > A/'$(< one)'/doc/y; cd B/'$(< one)'; {put} .ibifs-copy-uncompared'
                 timeout -k 1 20 ibifs copy --token-file token A/$(< one) {} > /dev/null; cat B/$(< one)/doc/y; chown -R 1001 B/$(< one)",
                b.url
            ),
            &turn.to_string(),
        );
    }
}

/// A backup is not made where another user may exchange what is in it, and a user who exchanges the directory itself while
/// it is made leads it nowhere else.
#[test]
fn a_backup_is_made_nowhere_else() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > x; mkdir victim; echo x > victim/file; stat -c '%a %u' victim > before
            mkdir theirs shared above; chown 1001 theirs above; chmod 1777 shared; echo x > shared/staging; chown 1001 shared/staging");
    let (above, victim, is_over) = (
        env.root().join("above"),
        env.root().join("victim"),
        AtomicBool::new(false),
    );
    let (count, mut away) = (AtomicUsize::new(0), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stranger().become_in_thread();
            watch(&above, &is_over, |name| {
                let made = above.join(name);
                if name == "dest"
                    && std::fs::symlink_metadata(&made).is_ok_and(|made| made.is_dir())
                    && std::fs::rename(&made, above.join(format!("away{away}"))).is_ok()
                {
                    away += 1;
                    // The next backup may have begun meanwhile.
                    let is_exchanged = std::os::unix::fs::symlink(&victim, &made).is_ok();
                    count.fetch_add(usize::from(is_exchanged), Ordering::Relaxed);
                }
            });
        });
        for turn in 0..60 {
            if turn >= 10 && count.load(Ordering::Relaxed) > 0 {
                break;
            }
            env.sh("timeout 60 ibifs backup A.store above/dest > /dev/null 2>&1 || true; rm -rf above/dest");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(count.into_inner() > 0, "nothing was exchanged");
    env.prints("ls victim; stat -c '%a %u' victim | diff before -", "file");
    env.complains("ibifs backup A.store theirs", "other users can write in");
    env.complains("ibifs backup A.store shared", "other users can write in");
    env.prints("ls theirs; ls shared", "staging");
    // An empty directory of root is closed to others.
    env.prints("mkdir -m 1777 open; ibifs backup A.store open > /dev/null; stat -c %a open; ibifs backup A.store open | tail -n 1 | cut -d ' ' -f 1-2", "700\n2 items:");
}
