//! A long time of readers, crawlers, harvesters and clients that misbehave, while items come and go in the mount: what
//! the service holds does not grow, and its readers are answered.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use super::clients::{CLIENTS, LONG, Load, read};
use super::{after, entries, stays};
use crate::http::served::Served;
use crate::support::{TestEnv, switch};

/// The numbers of items that stay, and that come and go.
const ITEMS: usize = 200;
const PASSING: usize = 100;
/// The number of readers whose waiting times are measured.
const READERS: usize = 2;

/// The resources that the service holds at a moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: u64,
    /// Resident memory, in KiB.
    memory: u64,
    descriptors: u64,
    threads: u64,
}

impl Sample {
    fn take(process: u32, started: Instant) -> Sample {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
        Sample {
            seconds: started.elapsed().as_secs(),
            memory: after(&status, "VmRSS:"),
            descriptors: entries(Path::new(&format!("/proc/{process}/fd"))),
            threads: after(&status, "Threads:"),
        }
    }
}

/// An Archive whose texts are searched, with items of some files each, and one with long files.
fn library() -> (TestEnv, Vec<String>, String) {
    let env = TestEnv::new();
    let script = format!(
        r#"chmod 755 .; mkdir A
        ibifs init A.store --host archive-a.example.org --search texts > /dev/null
        ibifs mount A.store A -o allow_other
        for number in $(seq {ITEMS}); do
            item=$(ibifs mint A | head -n 1); echo "$item"
            echo "text$((number % 30)) of number$number" > "A/$item/doc/text.txt"
            printf '# Number %d\n\n[text](text.txt)\n' "$number" > "A/$item/doc/README.md"
            printf 'title: Of number%d word%d\ncreator: Banon, G.\ndate: %d\n' "$number" "$number" $((1990 + number % 30)) > "A/$item:"
        done > items
        item=$(ibifs mint A | head -n 1); echo "$item" > long
        head -c {LONG} /dev/urandom > "A/$item/doc/long"; cp "A/$item/doc/long" "A/$item/doc/more"
        ibifs find --complete x --store A.store 2> why || test $? = 3"#
    );
    env.sh(&script);
    let items = env.sh("cat items").lines().map(str::to_owned).collect();
    let long = env.sh("cat long").trim_end().to_owned();
    (env, items, long)
}

/// Mints, changes and removes items in the mount, so that as many are there as before.
fn change(load: &Load, mount: &Path) -> u64 {
    let mut number = 0;
    while !load.is_over() {
        number += 1;
        let label = format!("passing{number}");
        let made = mount.join(".mint").join(&label);
        fs::create_dir(&made).expect("minted");
        fs::create_dir_all(made.join("doc")).expect("made");
        fs::write(
            made.join("doc/text.txt"),
            format!("text{} passing", number % 30),
        )
        .expect("written");
        let link = fs::read_link(mount.join(format!(".mint/.{label}"))).expect("a label");
        let item = link.to_string_lossy().trim_start_matches("../").to_owned();
        let _ = fs::remove_dir(&made);
        fs::write(
            mount.join(format!("{item}:")),
            format!("title: Passing {number}\n"),
        )
        .expect("written");
        let mut passing = load.passing.write().expect("no panic");
        passing.push_back(item);
        let oldest = (passing.len() > PASSING)
            .then(|| passing.pop_front())
            .flatten();
        let changed = passing.get(passing.len() / 2).cloned();
        drop(passing);
        if let Some(changed) = changed {
            fs::write(
                mount.join(changed).join("doc/text.txt"),
                format!("changed {number}"),
            )
            .expect("written");
        }
        if let Some(oldest) = oldest {
            fs::remove_dir_all(mount.join(oldest)).expect("removed");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    number
}

/// Counts the statuses in the access log, and lists the requests that were answered with a 5xx other than 503.
fn statuses(log: &Path) -> (BTreeMap<u64, u64>, Vec<String>) {
    let (mut counts, mut faults) = (BTreeMap::new(), Vec::new());
    for line in fs::read_to_string(log).expect("a log").lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let status = entry["status"].as_u64().expect("a status");
        *counts.entry(status).or_default() += 1;
        if status >= 500 && status != 503 {
            faults.push(line.to_owned());
        }
    }
    (counts, faults)
}

/// Readers, crawlers, harvesters, searches, and clients that send slowly, read nothing, break off and send what is no
/// request, for 24 seconds (`IBIFS_TEST_SOAK` for longer), while items are minted, changed and removed: the service's
/// memory, descriptors and threads stay as they were, readers are answered, nothing is answered with 5xx but 503 while
/// a list is read for the first time, nothing is logged, and the store is in order.
#[test]
fn a_long_time_of_clients_leaves_the_service_as_it_was() {
    let seconds = switch("IBIFS_TEST_SOAK").unwrap_or(24);
    let (env, items, long_item) = library();
    let served = Served::within(
        &env,
        "2> served.log",
        "serve A.store --access-log access.log --access-log-format json",
    );
    let load = Load {
        address: served.address().to_owned(),
        items,
        passing: RwLock::new(VecDeque::new()),
        long: long_item,
        is_over: AtomicBool::new(false),
        counts: Mutex::default(),
        waits: Mutex::default(),
    };
    let mount: PathBuf = env.root().join("A");
    let started = Instant::now();
    let before = Sample::take(served.process(), started);
    let mut samples = Vec::new();
    let changed = std::thread::scope(|scope| {
        let load = &load;
        for seed in 0..READERS as u64 {
            scope.spawn(move || load.run("reads", read, seed));
        }
        for (number, (name, client)) in (100..).zip(CLIENTS) {
            scope.spawn(move || load.run(name, client, number));
        }
        let changes = scope.spawn(|| change(load, &mount));
        let every = Duration::from_secs((seconds / 120).max(1));
        while started.elapsed() < Duration::from_secs(seconds) && !changes.is_finished() {
            std::thread::sleep(every);
            let sample = Sample::take(served.process(), started);
            println!("{sample:?}");
            samples.push(sample);
        }
        load.is_over.store(true, Ordering::Relaxed);
        changes.join().expect("no panic")
    });
    println!(
        "{:?}, and {changed} changes",
        load.counts.lock().expect("no panic")
    );

    // The connections of clients that are gone are closed.
    let mut rest = Sample::take(served.process(), started);
    for _ in 0..80 {
        if rest.descriptors <= before.descriptors + 32 {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        rest = Sample::take(served.process(), started);
    }
    println!("before {before:?}\nafter {rest:?}");
    assert!(
        rest.descriptors <= before.descriptors + 32,
        "{before:?} {rest:?}"
    );

    // The first third is for warming up.
    let (_, warm) = samples.split_at(samples.len() / 3);
    let flat = |what: &str, of: &dyn Fn(&Sample) -> u64, room: u64| {
        stays(warm, |sample| sample.seconds, what, of, room);
    };
    flat("memory (KiB)", &|s| s.memory, 8192);
    flat("descriptors", &|s| s.descriptors, 64);
    flat("threads", &|s| s.threads, 16);

    let mut waits = load.waits.into_inner().expect("no panic");
    waits.sort_unstable();
    let part = |percent: usize| waits[(waits.len() - 1) * percent / 100];
    println!(
        "{} reads: {:?} (median), {:?} (99 of 100), {:?} at most",
        waits.len(),
        part(50),
        part(99),
        part(100)
    );
    assert!(waits.len() > 100);
    // The clients need more of the machine than the service, and other tests run beside it.
    let most = Duration::from_secs(10);
    assert!(part(99) < most, "{:?}", part(99));

    drop(served);
    let (counts, faults) = statuses(&env.root().join("access.log"));
    println!("statuses: {counts:?}");
    assert_eq!(faults, [""; 0]);
    env.prints("cat served.log", "");
    env.sh("ibifs umount A; ibifs fsck A.store");
}
