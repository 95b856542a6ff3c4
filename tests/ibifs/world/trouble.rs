//! Archives that do not answer, or lie.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::World;
use super::proxy::{Mode, answering, serving};
use crate::support::{Rng, TestEnv, seed, switch, takes_less_than, time_of, without_a_wait};

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
    let mount = || drop(world.sh("ibifs umount M; world"));
    let mounting = without_a_wait(time_of(mount));
    let look = |silent: &str| {
        world.prints(
            "cat M/$one/doc/x.txt; ls M/$one/doc | wc -l; stat -f M > /dev/null; ibifs world status M --json | jq -r '.silent | length'",
            &format!("text\n14\n{silent}"),
        );
    };
    let looking = without_a_wait(time_of(|| look("0")));
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
print(len(found), *set(found), time.monotonic() - begun < 30)'"#,
        "1000 EHOSTUNREACH True",
    );
    // One after the other they would take minutes.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    takes_less_than(looking, || {
        // It counts as silent for five seconds and more after a lookup.
        world.sh("no stat M/8JMKD3MGP8W/34PGRBS");
        time_of(|| look("1"))
    });
    takes_less_than(mounting, || time_of(mount));
    world.sh("ibifs umount M");
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

/// Answers of an Archive count for a minute. A lookup after that gets the old answer once more, while the Archive is
/// asked; then the new one.
#[test]
fn answers_count_for_a_minute() {
    let world = World::mounted();
    world.prints(
        r#"X=M/$one/doc; cat $X/x.txt M/$two/doc/y; no stat M/8JMKD3MGP8W/34PGRBS; before=$(stat -c %i $X/x.txt) big=$(stat -c %i $X/big)
        echo other > A/$one/doc/x.txt; rm -r A/$one/doc/empty; echo file > A/$one/doc/empty; rm "A/$one/doc/a b/c/deep"; echo new > A/$one/doc/new
        echo third > A/6RPa7umaZ/UaJFT/doc/x; cat $X/x.txt; asked eval 'cat $X/x.txt; no stat $X/new; no stat M/8JMKD3MGP8W/34PGRBS'
        sleep 61; asked eval 'ls $X; waits test -e $X/new; sleep 1'; cat $X/x.txt $X/new $X/empty; ls "$X/a b/c"; no stat "$X/a b/c/deep"; echo gone
        test $before != $(stat -c %i $X/x.txt); echo 2 > /proc/sys/vm/drop_caches; test $big = $(stat -c %i $X/big); test $big = $(ls -i $X | sed -n 's/ big$//p' | tr -d ' '); test $(getfattr --only-values -n user.ibi.age M/$one) -lt 60
        asked eval 'ls M/$two; waits eval "test \$(requests) -gt $before"; sleep .2'; cat M/$two/doc/y; asked no stat M/8JMKD3MGP8W/34PGRBS"#,
        "text\nsecond\ntext\n0\n2\nother\nnew\nfile\ngone\n1\nsecond\n1",
    );
}

/// While an Archive comes and goes, readers read what is in the item, or get an error.
#[test]
fn readers_while_an_archive_comes_and_goes() {
    let world = World::new();
    let seconds = switch("IBIFS_TEST_SECONDS").unwrap_or(12);
    world.sh("world --cache-size 64M; mkdir bad");
    let until = Instant::now() + Duration::from_secs(seconds);
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for reader in 0..8 {
            let (world, over) = (&world, &over);
            threads.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    world.sh(&format!(
                        r#"echo 1 > /proc/sys/vm/drop_caches
                        for f in x.txt big 'a b/c/deep' nothing; do
                            if timeout 30 cat "M/$one/doc/$f" > got{reader} 2> said{reader}; then cmp got{reader} "A/$one/doc/$f" || touch bad/{reader}
                            else cmp -n $(stat -c %s got{reader}) got{reader} "A/$one/doc/$f" || touch bad/{reader}
                                grep -qE 'No route to host|Input/output error' said{reader} || {{ cp said{reader} bad/{reader}; }}; fi
                        done"#
                    ));
                }
            });
        }
        let mut rng = Rng::from_seed(seed());
        while Instant::now() < until {
            world.proxy.set(match rng.below(6) {
                0 => Mode::Refuse,
                1 => Mode::Stall,
                2 => Mode::Cut(rng.below(6_000_000)),
                3 => Mode::Corrupt(rng.below(6_000_000)),
                _ => Mode::Pass,
            });
            std::thread::sleep(Duration::from_millis(100 + rng.below(1500) as u64));
        }
        world.proxy.set(Mode::Pass);
        over.store(true, Ordering::Relaxed);
    });
    world.prints(
        "tail -n 3 bad/* 2>&1 || true; ls bad | wc -l",
        "tail: cannot open 'bad/*' for reading: No such file or directory\n0",
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

/// A signal ends the waiting of the process that gets it.
#[test]
fn a_signal_ends_the_waiting() {
    let world = World::mounted();
    world.sh("stat M/$one");
    world.proxy.set(Mode::Stall);
    for signal in ["TERM", "KILL"] {
        let begun = Instant::now();
        world.sh(&format!(
            "cat M/$one/doc/big & sleep 0.5; kill -{signal} $!; no wait $!"
        ));
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(6), "{signal}: {took:?}");
        world.sh("sleep 1.1");
    }
}

/// Of several Archives one that hangs does not keep the others from being asked. An item that another one may have is
/// not missing.
#[test]
fn several_archives() {
    let world = World::new();
    world.proxy.set(Mode::Stall);
    let begun = Instant::now();
    world.prints(
        r#"ibifs world M --archive $PROXY --archive $U --cache C; ls M/$one; cat "M/$two!/doc/y"
        { LC_ALL=C ls -d M/8JMKD3MGP8W/34PGRBS 2>&1 || true; } | sed 's/.*: //'"#,
        "doc\nsecond\nNo route to host",
    );
    // Less than a read waits.
    assert!(begun.elapsed() < Duration::from_secs(10));
    world.proxy.set(Mode::Pass);
}

/// Inventories and texts without end take a bounded part of the memory. One of eight megabytes may take longer than a
/// lookup waits in a build without optimization (EHOSTUNREACH): then it is asked for again.
#[test]
fn memory_is_bounded() {
    let env = TestEnv::new();
    let url = serving(|path| {
        let name = path.split(['?', ':']).next().unwrap_or_default();
        let ibi = name.trim_start_matches('/');
        let (kind, text) = if path.contains(':') {
            ("text/plain", "x".repeat(1_000_000))
        } else {
            let line = format!("text 644 1.0 .ibi {}\n", "x".repeat(8_000_000));
            let head = format!("inventory 1\nibi {{ibip {ibi}}}\ndirectory 755 1.0 .\n");
            ("text/x-ibi-inventory", format!("{head}{line}end\n"))
        };
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        )
    });
    let resident = env.sh(&format!(
        r#"mkdir M; ibifs world M --archive {url} --cache C --cache-size 64M
        name() {{ printf 'M/8JMKD3MGP8W/34PGR%s' $(printf '%02d' $1 | tr 01 AB); }}
        for n in $(seq 10 69); do until stat "$(name $n)" > /dev/null 2>&1; do :; done; ls "$(name $n)" > /dev/null; sleep 0.02; done
        for n in $(seq 20 24); do for f in $(seq 30); do cat "$(name $n):(x$f)" > /dev/null; done; done; sleep 2; stat "$(name 10)" > /dev/null; sleep 2
        sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$(< C/lock)/status; ibifs umount M"#
    ));
    let kibibytes: u32 = resident.parse().expect("a number");

    assert!(kibibytes < 450_000, "{kibibytes} KiB");
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
