//! A long time under load: what the daemon holds, in memory and on disk, does not grow, and a hostile user
//! keeps no other user waiting.

mod clients;
mod strangers;
mod web;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::attackers::waits::Lease;
use crate::concurrency::{crowd::Crowd, crowd::TIMEOUT, sound};
use crate::support::{TestEnv, User, switch};

/// The resources that the daemon holds at a moment.
#[derive(Clone, Debug)]
struct Sample {
    seconds: u64,
    /// Resident memory, and the most there ever was, in KiB.
    memory: u64,
    peak: u64,
    descriptors: u64,
    threads: u64,
    /// Bytes of the index and of its log.
    index: u64,
    log: u64,
    staged: u64,
    removed: u64,
    nodes: u64,
    handles: u64,
    backings: u64,
}

impl Sample {
    #[track_caller]
    fn take(env: &TestEnv, daemon: &str, started: Instant) -> Sample {
        let store = env.root().join("A.store");
        let status = std::fs::read_to_string(format!("/proc/{daemon}/status")).expect("it runs");
        let held = attribute(&env.root().join("A"), "user.ibi.held");
        let size = |name: &str| std::fs::metadata(store.join(name)).map_or(0, |file| file.len());
        Sample {
            seconds: started.elapsed().as_secs(),
            memory: after(&status, "VmRSS:"),
            peak: after(&status, "VmHWM:"),
            descriptors: entries(Path::new(&format!("/proc/{daemon}/fd"))),
            threads: after(&status, "Threads:"),
            index: size("relations.sqlite3"),
            log: size("relations.sqlite3-wal"),
            staged: entries(&store.join("staging")),
            removed: files_below(&store.join("deleted")),
            nodes: after(&held, "nodes"),
            handles: after(&held, "handles"),
            backings: after(&held, "backings"),
        }
    }
}

/// The number after a word.
#[track_caller]
fn after(text: &str, word: &str) -> u64 {
    let mut words = text.split_whitespace().skip_while(|found| *found != word);
    let number = words
        .nth(1)
        .unwrap_or_else(|| panic!("no {word} in {text}"));
    number.parse().expect("a number")
}

#[track_caller]
fn attribute(path: &Path, name: &str) -> String {
    let mut value = [0_u8; 256];
    let length = rustix::fs::getxattr(path, name, &mut value).expect("an attribute of the mount");
    String::from_utf8_lossy(&value[..length]).into_owned()
}

fn entries(directory: &Path) -> u64 {
    std::fs::read_dir(directory).map_or(0, |entries| entries.count() as u64)
}

fn files_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let count = |entry: std::fs::DirEntry| {
        if entry.path().is_dir() {
            files_below(&entry.path())
        } else {
            1
        }
    };
    entries.map(count).sum()
}

/// Has the kernel forget what no user uses.
fn drop_caches() {
    std::fs::write("/proc/sys/vm/drop_caches", "2").expect("root may");
}

/// The number in the middle. On a busy machine what is closed waits now and then: the most is that of
/// the machine.
fn median_of<T>(samples: &[T], of: impl Fn(&T) -> u64) -> u64 {
    let mut numbers: Vec<u64> = samples.iter().map(of).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// Prints how a number develops, and fails if it is higher in the second half of the samples than in the first, by more than
/// a tenth and `room`. `seconds` is when a sample was taken.
#[track_caller]
fn stays<T>(
    samples: &[T],
    seconds: impl Fn(&T) -> u64,
    what: &str,
    of: &dyn Fn(&T) -> u64,
    room: u64,
) {
    let (middle, last) = samples.split_at(samples.len() / 2);
    let (was, is) = (median_of(middle, of), median_of(last, of));
    let an_hour = slope_of(samples, |sample| {
        (seconds(sample) as f64, of(sample) as f64)
    });
    let most = samples.iter().map(of).max().expect("samples");
    println!(
        "{what}: {was}, then {is}, at most {most}; by the line of best fit {an_hour:+.0} an hour"
    );
    assert!(
        is <= was + was / 10 + room,
        "{what} grew from {was} to {is}"
    );
}

/// The growth of a number in an hour, by the line that fits the samples best: their seconds and numbers.
fn slope_of<T>(samples: &[T], of: impl Fn(&T) -> (f64, f64)) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&T) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|s| of(s).0), mean(&|s| of(s).1));
    let above = mean(&|s| (of(s).0 - x) * (of(s).1 - y));
    let below = mean(&|s| (of(s).0 - x).powi(2));
    if below > 0.0 {
        above / below * 3600.0
    } else {
        0.0
    }
}

/// Four processes that keep as many items and files as there were, for 20 seconds
/// (`IBIFS_TEST_SOAK` for longer): the daemon's memory, descriptors, threads and nodes stay as they
/// were, the index grows by what is removed alone, and what the kernel forgets the daemon forgets.
#[test]
fn a_long_time_under_load_leaves_the_daemon_as_it_was() {
    let seconds = switch("IBIFS_TEST_SOAK").unwrap_or(20);
    let env = TestEnv::new().with_a();
    let daemon = env.sh("daemon A.store");
    env.sh(
        "for number in $(seq 16); do mkdir -p A/.mint/i$number/doc; echo text > A/.mint/i$number/doc/f0; done",
    );
    let started = Instant::now();
    let mut samples = Vec::new();
    let every = Duration::from_secs((seconds / 120).max(1));
    let (mut next, mut next_drop) = (every, Duration::from_secs(seconds / 10));
    let printed = Crowd::start(&env, 4, seconds, "steady").watch(|| {
        if started.elapsed() > next {
            next += every;
            let sample = Sample::take(&env, &daemon, started);
            println!("{sample:?}");
            samples.push(sample);
        }
        if started.elapsed() > next_drop {
            next_drop += Duration::from_secs((seconds / 10).max(1));
            drop_caches();
        }
    });
    for printed in &printed {
        assert!(printed.longest < TIMEOUT, "{printed}");
        println!("{printed}");
    }
    let before = Sample::take(&env, &daemon, started);
    // One pass spares what was used lately, and what is closed is closed by a thread of its own.
    let mut after = before.clone();
    for _ in 0..20 {
        if after.nodes < 20 && after.handles == 0 && after.descriptors < 40 {
            break;
        }
        drop_caches();
        std::thread::sleep(Duration::from_millis(500));
        after = Sample::take(&env, &daemon, started);
    }
    println!("{before:?}\n{after:?}");
    assert!(
        after.nodes < 20 && after.handles == 0,
        "{before:?}\n{after:?}"
    );
    assert!(after.descriptors < 40, "{after:?}");
    assert_eq!(after.staged, 0);

    // The first third is for warming up.
    let (_, warm) = samples.split_at(samples.len() / 3);
    println!("memory: {} KiB at most", after.peak);
    let flat = |what: &str, of: &dyn Fn(&Sample) -> u64, room: u64| {
        stays(warm, |sample| sample.seconds, what, of, room);
    };
    flat("memory (KiB)", &|s| s.memory, 4096);
    flat("descriptors", &|s| s.descriptors, 64);
    flat("threads", &|s| s.threads, 8);
    flat("nodes", &|s| s.nodes, 500);
    flat("handles", &|s| s.handles, 32);
    flat("backings", &|s| s.backings, 200);
    flat("log (bytes)", &|s| s.log, 8 << 20);
    // Each removed item leaves a record, for ever.
    flat(
        "index (bytes) without its records",
        &|s| s.index.saturating_sub(s.removed * 2048),
        256 << 10,
    );
    sound(&env);
}

/// The times that requests took.
#[derive(Debug, Default)]
struct Waits {
    each: Vec<Duration>,
    longest: Duration,
    what: &'static str,
}

impl Waits {
    fn timed(&mut self, what: &'static str, act: impl FnOnce()) {
        let began = Instant::now();
        act();
        let took = began.elapsed();
        self.each.push(took);
        if took > self.longest {
            (self.longest, self.what) = (took, what);
        }
    }

    /// The longest time of 99 in 100 requests.
    fn most(&self) -> Duration {
        let mut each = self.each.clone();
        each.sort_unstable();
        each.get(each.len() * 99 / 100).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let (count, most, longest) = (self.each.len(), self.most(), self.longest);
        let (most, longest) = (milliseconds(most), milliseconds(longest));
        let what = self.what;
        write!(
            f,
            "{count} requests, 99 of 100 within {most:.1} ms, the longest ({what}) {longest:.1} ms"
        )
    }
}

/// Goes on until it is over, and says what took longest.
fn waits(own: &Path, shared: &Path, is_over: &AtomicBool) -> Waits {
    let mut waits = Waits::default();
    while !is_over.load(Ordering::Relaxed) {
        live(own, shared, &mut waits);
        std::thread::sleep(Duration::from_millis(2));
    }
    waits
}

/// Works as a user does, in a directory of their own and beside it.
fn live(own: &Path, shared: &Path, waits: &mut Waits) {
    let file = own.join("file");
    waits.timed("write", || {
        std::fs::write(&file, "text").expect("written");
    });
    waits.timed("read", || {
        assert_eq!(std::fs::read(&file).expect("read"), b"text");
    });
    waits.timed("stat", || {
        assert_eq!(std::fs::metadata(&file).expect("printed").len(), 4);
    });
    waits.timed("list", || {
        assert!(std::fs::read_dir(own).expect("listed").count() > 0);
    });
    let other = own.join("other");
    waits.timed("rename", || {
        std::fs::rename(&file, &other).expect("renamed");
    });
    waits.timed("remove", || {
        std::fs::remove_file(&other).expect("removed");
    });
    let directory = own.join("directory");
    waits.timed("mkdir", || {
        std::fs::create_dir(&directory).expect("made");
    });
    waits.timed("rmdir", || {
        std::fs::remove_dir(&directory).expect("removed");
    });
    waits.timed("list what is shared", || {
        assert!(std::fs::read_dir(shared).expect("listed").count() > 0);
    });
    waits.timed("look for what is not there", || {
        assert!(std::fs::metadata(shared.join("not-there.org")).is_err());
    });
}

/// Mints as a user, and returns the item's rep.
fn mint(mount: &Path, user: &User, label: &str) -> String {
    let made = mount.join(".mint").join(label);
    user.run(|| std::fs::create_dir_all(made.join("doc")).expect("minted"));
    let link = mount.join(format!(".mint/.{label}"));
    let target = user
        .run(|| std::fs::read_link(link))
        .expect("the maker's label");
    target
        .to_string_lossy()
        .trim_start_matches("../")
        .to_owned()
}

/// A user with leases, FIFOs, a directory of 200,000 entries (20,000 in the short form), and as many open
/// files as they get, each asked for in a loop: no other user waits. In the long form (`IBIFS_TEST_SOAK`,
/// on a machine that does nothing else) no request of another user takes 0.2 s; in the short form the
/// bound allows for what else the machine does, by what the same requests take on the disk itself.
#[test]
fn a_hostile_user_delays_no_other_user() {
    let long = switch("IBIFS_TEST_SOAK");
    let (seconds, entries) = match long {
        Some(seconds) => (seconds, 200_000),
        None => (8, 20_000),
    };
    let env = TestEnv::new().with_a();
    env.sh("chmod 1777 A; chmod 755 . A.store; mkdir -p native/own native/shared/example.org; chmod -R 777 native");
    let (hostile, victim) = (User::new(1001, 1001, &[]), User::new(1002, 1002, &[]));
    let mount = env.root().join("A");
    let (theirs, own, piped) = (
        mint(&mount, &hostile, "theirs"),
        mint(&mount, &victim, "own"),
        mint(&mount, &hostile, "piped"),
    );
    let beneath = |rep: &str, path: &str| env.root().join("A.store/col").join(rep).join(path);
    hostile.run(|| {
        let many = beneath(&theirs, "doc/many");
        std::fs::create_dir(&many).expect("made");
        for number in 0..entries {
            std::fs::File::create(many.join(number.to_string())).expect("made");
        }
        for number in 0..16 {
            std::fs::write(beneath(&theirs, &format!("doc/f{number}")), "text").expect("written");
        }
        let sidecar = beneath(&piped, ".ibi");
        std::fs::remove_file(&sidecar).expect("one's own");
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &sidecar, fifo, mode, 0).expect("made");
    });
    env.sh("ibifs umount A; ibifs mount A.store A");
    let mut leased: Vec<_> = (0..16)
        .map(|number| beneath(&theirs, &format!("doc/f{number}")))
        .collect();
    leased.push(beneath(&theirs, ".ibi"));
    let leases: Vec<Lease> = leased
        .iter()
        .map(|path| Lease::take(&hostile, path))
        .collect();

    let is_over = AtomicBool::new(false);
    let item = mount.join(&theirs);
    let list = mount.join(format!("{theirs}?GetFileList"));
    let declare = |path: &Path| {
        let flags = rustix::fs::XattrFlags::empty();
        let _ = rustix::fs::setxattr(path, "user.ibi.language", b"pt", flags);
    };
    let attack = |number: usize, turn: u64| match number {
        0 => declare(&item),
        1 => declare(&mount.join(&piped)),
        2 => drop(std::fs::metadata(&list)),
        3 => drop(std::fs::read(&list)),
        4 => drop(std::fs::read_dir(item.join("doc/many")).map(Iterator::count)),
        5 => {
            let entries = std::fs::read_dir(item.join("doc/many"));
            let entries = entries.into_iter().flatten().flatten();
            entries.take(2000).for_each(|entry| drop(entry.metadata()));
        }
        6 => {
            let name = mount.join(format!("missing{turn}.org"));
            let _ = std::fs::metadata(&name);
            let _ = std::fs::create_dir(&name);
            let _ = std::fs::remove_dir(&name);
        }
        _ => {
            let mut open = Vec::new();
            while let Ok(file) = std::fs::File::open(item.join("doc/many/0")) {
                open.push(file);
                if open.len() > 20_000 || is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
    };
    let (through, natively) = std::thread::scope(|scope| {
        for number in 0..8 {
            let (attack, is_over, hostile) = (&attack, &is_over, &hostile);
            scope.spawn(move || {
                hostile.run(|| {
                    let mut turn = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        turn += 1;
                        attack(number, turn);
                    }
                });
            });
        }
        // Those who wait for the leases, to the end.
        for path in leased.iter().take(16) {
            let path = item.join("doc").join(path.file_name().expect("a name"));
            let hostile = &hostile;
            scope.spawn(move || hostile.run(|| std::fs::read(path).map(drop)));
        }
        let live_in = |own: PathBuf, shared: PathBuf| {
            let (is_over, victim) = (&is_over, &victim);
            move || victim.run(|| waits(&own, &shared, is_over))
        };
        let through = scope.spawn(live_in(mount.join(&own).join("doc"), mount.clone()));
        let native = env.root().join("native");
        let natively = scope.spawn(live_in(native.join("own"), native.join("shared")));
        // The leases last 45 seconds at most.
        std::thread::sleep(Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
        drop(leases);
        (
            through.join().expect("no panic"),
            natively.join().expect("no panic"),
        )
    });
    println!("through the mount: {through}\non the disk itself: {natively}");
    assert!(through.each.len() > 100, "{through}");
    let most = match long {
        Some(_) => Duration::from_millis(200),
        None => Duration::from_secs(2) + 4 * natively.longest,
    };
    assert!(through.longest < most, "{through}, not {most:?}");
    env.sh("ibifs umount A; ibifs mount A.store A; ls A > /dev/null");
}
