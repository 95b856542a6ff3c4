//! A long time under load: what the daemon holds, in memory and on disk, does not grow.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::concurrency::{crowd::Crowd, crowd::PATIENCE, sound};
use crate::support::{World, switch};

/// What the daemon holds at a moment.
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
    fn take(world: &World, daemon: &str, started: Instant) -> Sample {
        let store = world.root().join("A.store");
        let status = std::fs::read_to_string(format!("/proc/{daemon}/status")).expect("it runs");
        let held = attribute(&world.root().join("A"), "user.ibi.held");
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
    let count = |entry: std::fs::DirEntry| match entry.path().is_dir() {
        true => files_below(&entry.path()),
        false => 1,
    };
    entries.map(count).sum()
}

/// Has the kernel forget what nobody uses.
fn drop_caches() {
    std::fs::write("/proc/sys/vm/drop_caches", "2").expect("root may");
}

/// The number in the middle. On a busy machine what is closed waits now and then: the most tells of
/// the machine.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    let mut numbers: Vec<u64> = samples.iter().map(of).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

/// How much a number grows in an hour, by the line that fits the samples best.
fn slope(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|s| s.seconds as f64), mean(&|s| of(s) as f64));
    let above = mean(&|s| (s.seconds as f64 - x) * (of(s) as f64 - y));
    let below = mean(&|s| (s.seconds as f64 - x).powi(2));
    match below > 0.0 {
        true => above / below * 3600.0,
        false => 0.0,
    }
}

/// Four processes that keep as many items and files as there were, for 20 seconds
/// (`IBIFS_TEST_SOAK` for longer): the daemon's memory, descriptors, threads and nodes stay as they
/// were, the index grows by what is removed alone, and what the kernel forgets the daemon forgets.
#[test]
fn a_long_time_under_load_leaves_the_daemon_as_it_was() {
    let seconds = switch("IBIFS_TEST_SOAK").unwrap_or(20);
    let world = World::new().with_a();
    let daemon = world.sh("daemon A.store");
    world.sh(
        "for number in $(seq 16); do mkdir A/.mint/i$number; echo text > A/.mint/i$number/doc/f0; done",
    );
    let started = Instant::now();
    let mut samples = Vec::new();
    let every = Duration::from_secs((seconds / 120).max(1));
    let (mut next, mut next_drop) = (every, Duration::from_secs(seconds / 10));
    let told = Crowd::start(&world, 4, seconds, "steady").watch(|| {
        if started.elapsed() > next {
            next += every;
            let sample = Sample::take(&world, &daemon, started);
            println!("{sample:?}");
            samples.push(sample);
        }
        if started.elapsed() > next_drop {
            next_drop += Duration::from_secs((seconds / 10).max(1));
            drop_caches();
        }
    });
    for told in &told {
        assert!(told.longest < PATIENCE, "{told}");
        println!("{told}");
    }
    let before = Sample::take(&world, &daemon, started);
    // One pass spares what was used lately, and what is closed is closed by a thread of its own.
    let mut after = before.clone();
    for _ in 0..20 {
        if after.nodes < 20 && after.handles == 0 && after.descriptors < 40 {
            break;
        }
        drop_caches();
        std::thread::sleep(Duration::from_millis(500));
        after = Sample::take(&world, &daemon, started);
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
    let (middle, last) = warm.split_at(warm.len() / 2);
    println!("memory: {} KiB at most", after.peak);
    let flat = |what: &str, of: &dyn Fn(&Sample) -> u64, room: u64| {
        let (was, is, an_hour) = (median(middle, of), median(last, of), slope(warm, of));
        let most = warm.iter().map(of).max().expect("samples");
        println!(
            "{what}: {was}, then {is}, at most {most}; by the line of best fit {an_hour:+.0} an hour"
        );
        assert!(
            is <= was + was / 10 + room,
            "{what} grew from {was} to {is}"
        );
    };
    flat("memory (KiB)", &|s| s.memory, 4096);
    flat("descriptors", &|s| s.descriptors, 64);
    flat("threads", &|s| s.threads, 8);
    flat("nodes", &|s| s.nodes, 500);
    flat("handles", &|s| s.handles, 32);
    flat("backings", &|s| s.backings, 200);
    flat("log (bytes)", &|s| s.log, 8 << 20);
    // Whatever is removed leaves a record, for ever.
    flat(
        "index (bytes) without its records",
        &|s| s.index.saturating_sub(s.removed * 2048),
        256 << 10,
    );
    sound(&world);
}
