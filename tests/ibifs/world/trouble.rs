//! What happens while Archives do not answer, or lie.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::World;
use super::proxy::{Mode, answering};
use crate::support::TestEnv;

impl World {
    /// Stops the service until what is returned is dropped.
    fn stop(&self) -> Stopped {
        let process = i32::try_from(self.served.process()).expect("a process");
        let process = Pid::from_raw(process).expect("a process");
        kill_process(process, Signal::STOP).expect("a signal");
        Stopped(process)
    }
}

/// A process that is stopped.
struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// An Archive that hangs delays a lookup by two seconds, and many lookups by no more. What is cached is read. Unmounting
/// and mounting take no time.
#[test]
fn an_archive_that_hangs() {
    let world = World::mounted();
    world.sh("cat M/$one/doc/x.txt; stat M/$two");
    let stopped = world.stop();
    let begun = Instant::now();
    world.prints(
        r#"python3 -c '
import errno, itertools, os, threading, time
def look(name):
    try: os.stat("M/8JMKD3MGP8W/34P" + "".join(name)); found.append("found")
    except OSError as error: found.append(errno.errorcode[error.errno])
found, begun = [], time.monotonic()
threads = [threading.Thread(target=look, args=(n,)) for n in itertools.islice(itertools.product("ABCDEFGHJK", repeat=4), 1000)]
for t in threads: t.start()
for t in threads: t.join()
print(len(found), *set(found), time.monotonic() - begun < 3)'"#,
        "1000 EHOSTUNREACH True",
    );
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let begun = Instant::now();
    world.prints(
        "cat M/$one/doc/x.txt; ls M/$one/doc | wc -l; stat -f M > /dev/null; ibifs world status M --json | jq -r '.silent | length'",
        "text\n14\n1",
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
    let begun = Instant::now();
    world.sh("ibifs umount M; world; ibifs umount M");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Offline it serves what it has.
    world.prints("world; cat M/$one/doc/x.txt", "text");
    drop(stopped);
}

/// A read waits ten seconds for a byte and is EIO then; it goes on if the Archive is back before.
#[test]
fn a_read_waits_ten_seconds() {
    let world = World::mounted();
    world.sh("stat M/$one");
    world.proxy.set(Mode::Stall);
    let begun = Instant::now();
    world.prints(
        "{ LC_ALL=C cat M/$one/doc/x.txt 2>&1 || true; } | sed 's/.*: //'",
        "Input/output error",
    );
    let took = begun.elapsed();
    assert!((8..14).contains(&took.as_secs()), "{took:?}");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(Duration::from_secs(3));
            world.proxy.set(Mode::Pass);
        });
        world.proxy.set(Mode::Refuse);
        world.prints("cat M/$one/doc/x.txt", "text");
    });
}

/// Trouble is never ENOENT, and never an empty directory; ENOENT is what an Archive says.
#[test]
fn trouble_is_not_enoent() {
    let world = World::mounted();
    let says = "says() { { LC_ALL=C \"$@\" 2>&1 || true; } | sed 's/.*: //'; }\n";
    for mode in [
        Mode::Refuse,
        Mode::Stall,
        Mode::Cut(10),
        Mode::Cut(300),
        Mode::Corrupt(9),
    ] {
        world.proxy.set(mode);
        let said = world.sh(&format!("{says} says ls M/$one"));
        assert_eq!(said, "No route to host", "{mode:?}");
        world.proxy.set(Mode::Pass);
        world.sh("ibifs umount M; world");
    }
    world.prints(
        &format!("{says} says ls -d M/8JMKD3MGP8W/34PGRBS M/x.org/a/2020/01.01.01.01; ls M/$one"),
        "No such file or directory\nNo such file or directory\ndoc",
    );
}

/// A process that was killed leaves a mount that the next mount, or umount, clears.
#[test]
fn a_killed_process_leaves_nothing() {
    let world = World::mounted();
    world.prints(
        r#"end() { kill -9 $(< C/lock); while kill -0 $(< C/lock) 2> /dev/null; do sleep 0.02; done; }
        cat M/$one/doc/x.txt; end; no stat -f M; world; cat M/$one/doc/x.txt
        end; ibifs umount M; no ibifs umount M; ls -A M | wc -l"#,
        "text\ntext\n0",
    );
}

/// An Archive that lies costs a lookup, and nothing else.
#[test]
fn a_hostile_archive() {
    let env = TestEnv::new();
    env.sh("mkdir M");
    let ibi = "8JMKD3MGP8W/34PGRBS";
    let head = format!("inventory 1\nibi {{ibip {ibi}}}\n");
    let own = "directory 755 1.0 .\n";
    let page = |text: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/x-ibi-inventory\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        )
    };
    let long: String = (0..19_000)
        .map(|number| format!("fifo 644 1.0 f{number:09}\n"))
        .collect();
    for (what, answer, error) in [
        (
            "slash",
            page(&format!("{head}{own}file 644 1.0 a/b 1 1 -\nend\n")),
            "Input/output error",
        ),
        (
            "dots",
            page(&format!("{head}{own}file 644 1.0 ../b 1 1 -\nend\n")),
            "Input/output error",
        ),
        ("cut", page(&format!("{head}{own}")), "Input/output error"),
        (
            "other",
            page(&format!(
                "inventory 1\nibi {{ibip 8JMKD3MGP8W/34PGRBB}}\n{own}end\n"
            )),
            "Input/output error",
        ),
        (
            "html",
            page("<html>").replace("text/x-ibi-inventory", "text/html"),
            "Operation not supported",
        ),
        (
            "status",
            "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "No route to host",
        ),
        (
            "not http",
            "220 mail\r\n\r\n".to_owned(),
            "No route to host",
        ),
        (
            "elsewhere",
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:22/x\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
            "No route to host",
        ),
        (
            "circle",
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "No route to host",
        ),
        (
            "endless",
            page(&format!("{head}{own}{long}more f000018999\n")),
            "Input/output error",
        ),
    ] {
        let url = answering(answer);
        let said = env.sh(&format!(
            "ibifs world M --archive {url} --cache C --cache-size 64M; {{ LC_ALL=C timeout 100 ls M/{ibi} 2>&1 || true; }} | sed 's/.*: //'
             ibifs umount M"
        ));
        assert_eq!(said, error, "{what}");
    }
}
