//! A store on a disk of its own, and the cycles that it goes through.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ibifs::formats::item::State;
use ibifs::outside::archive::store::Store;

use super::check::{self, Directory};
use super::client::Client;
use super::model::{End, Facts, Item, Key, Presence};
use super::record::Record;
use crate::support::{Disk, Format, Rng, TestEnv};

/// The number of clients that work at once.
const CLIENTS: usize = 3;

/// The sums over many cycles.
#[derive(Debug, Default)]
pub struct Tally {
    pub cycles: usize,
    pub steps: usize,
    pub names: usize,
    /// Cycles after which a check of what the cut has left, before any start, found something to
    /// repair, by what it found first.
    pub findings: BTreeMap<String, usize>,
}

/// A store, and all that was promised of it so far.
pub struct Rig {
    env: TestEnv,
    disk: Disk,
    service: String,
    own: String,
    items: BTreeMap<Key, Item>,
    names: BTreeSet<String>,
    next_key: Key,
    cycle: usize,
    /// The numbers of mints that were answered, and that were requested, whose name was not seen.
    unseen: (usize, usize),
}

impl Rig {
    pub fn new(format: Format) -> Rig {
        let env = TestEnv::new();
        let mebibytes = match format {
            Format::Ext4 => 128,
            Format::Xfs => 320,
        };
        let disk = Disk::new(env.root(), "disk", format, mebibytes);
        std::fs::create_dir(env.root().join("A")).expect("a mount point");
        let mut rig = Rig {
            env,
            disk,
            service: String::new(),
            own: String::new(),
            items: BTreeMap::new(),
            names: BTreeSet::new(),
            next_key: 0,
            cycle: 0,
            unseen: (0, 0),
        };
        let made = rig.ibifs(&["init", "--host", "archive-a.example.org", "disk/store"]);
        assert!(made.status.success(), "{}", complaint(&made));
        let facts = std::fs::read_to_string(rig.store().join("archive.ibi")).expect("facts");
        let line = facts
            .lines()
            .find_map(|line| line.strip_prefix("ibi.archiveservice "));
        rig.service = line.expect("a service").to_owned();
        let rep = rig.service.split(' ').nth(1).expect("a rep").to_owned();
        rig.own = rep.rsplitn(3, '/').last().expect("a prefix").to_owned();
        rig
    }

    fn store(&self) -> PathBuf {
        self.env.root().join("disk/store")
    }

    fn mount_point(&self) -> PathBuf {
        self.env.root().join("A")
    }

    fn ibifs(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ibifs"))
            .args(arguments)
            .current_dir(self.env.root())
            .env_remove("IBIFS_STORE")
            .output()
            .expect("ibifs runs")
    }

    /// Runs ibifs, which must succeed.
    fn done(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.ibifs(arguments);
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("ibifs {arguments:?}: {}", complaint(&output)))
        }
    }

    /// The process that has the store.
    fn daemon(&self) -> Result<i32, String> {
        let lock = std::fs::read_to_string(self.store().join("lock"));
        let lock = lock.map_err(|error| error.to_string())?;
        let pid = lock.lines().find_map(|line| line.strip_prefix("pid "));
        pid.and_then(|pid| pid.parse().ok())
            .ok_or_else(|| format!("lock: {lock}"))
    }

    /// One cycle: work, a cut, a start, and all that must hold then. Where something does not, the
    /// record of the cycle lies beside the disk.
    pub fn cycle(&mut self, rng: &mut Rng, tally: &mut Tally) {
        self.cycle += 1;
        let title = format!("cycle {} of this store", self.cycle);
        let moments = moments(rng);
        let (tell, heard) = channel();
        let record = Record::new(moments.clone(), tell);
        let outcome = self.run(rng, tally, &record, &moments, &heard);
        tally.cycles += 1;
        tally.steps += record.count();
        record.keep(&self.env.root().join("record"), &title);
        if let Err(what) = outcome {
            panic!("{title} ({:?}): {what}", self.disk);
        }
    }

    fn run(
        &mut self,
        rng: &mut Rng,
        tally: &mut Tally,
        record: &Record,
        moments: &[usize],
        heard: &std::sync::mpsc::Receiver<()>,
    ) -> Result<(), String> {
        let data = ["passthrough=yes", "passthrough=no"][usize::from(rng.percent(30))];
        self.done(&["mount", "-o", data, "disk/store", "A"])?;
        let daemon = self.daemon()?;
        let mut clients = self.clients(rng, record);
        let mut mood = rng.clone();
        let mut standing = "";
        let refused = std::thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter_mut()
                .map(|client| scope.spawn(|| client.work()))
                .collect();
            for number in 0..moments.len() {
                // A client that is refused something stops; then there are no more moments.
                while let Err(RecvTimeoutError::Timeout) =
                    heard.recv_timeout(Duration::from_millis(100))
                {
                    if threads
                        .iter()
                        .all(std::thread::ScopedJoinHandle::is_finished)
                    {
                        break;
                    }
                }
                let hesitation = Duration::from_micros(mood.below(3000) as u64);
                let started = Instant::now();
                while started.elapsed() < hesitation {
                    std::hint::spin_loop();
                }
                if number + 1 < moments.len() {
                    self.write_out(mood.below(4), record);
                } else {
                    standing = self.standing(daemon);
                    record.power_goes();
                    self.disk.cut();
                }
            }
            if mood.percent(50) {
                std::thread::sleep(Duration::from_millis(2));
            }
            kill(daemon);
            // By force: a daemon that was just telling the kernel to forget a name cannot die while a
            // client waits for it in the same directory.
            let force = rustix::mount::UnmountFlags::FORCE | rustix::mount::UnmountFlags::DETACH;
            let _ = rustix::mount::unmount(self.mount_point(), force);
            threads
                .into_iter()
                .filter_map(|thread| thread.join().expect("a client ends").err())
                .collect::<Vec<String>>()
        });
        rng.number();
        self.gather(clients)?;
        self.disk.unmount();
        self.disk.mount();
        if !refused.is_empty() {
            return Err(format!("refused before the cut, {standing}: {refused:?}"));
        }
        // The first access after the cut, by the mount or by a command, finds the store as it is.
        if rng.percent(60) {
            self.look(tally, record)?;
            self.check_offline(true, tally, record)
        } else {
            self.check_offline(false, tally, record)?;
            self.look(tally, record)
        }
    }

    /// Whether the mount is as it was made. A process that takes the daemon's number for another's, on a machine where
    /// numbers are used again soon, may have ended it: then every name is missing.
    fn standing(&self, daemon: i32) -> &'static str {
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let at = format!(" {} ", self.mount_point().display());
        let is_mounted = String::from_utf8_lossy(&table).contains(&at);
        match (is_mounted, Path::new(&format!("/proc/{daemon}")).exists()) {
            (true, true) => "by the daemon",
            (true, false) => "after the daemon was killed",
            (false, _) => "after the daemon was ended by a signal, or A unmounted",
        }
    }

    /// Writes out a part that the kernel may write at any time by itself: names without the content of files (a commit
    /// of the journal), the index without names, or everything.
    fn write_out(&self, what: usize, record: &Record) {
        record.say(format!("-- the kernel writes out ({what})"));
        let elsewhere = self.disk.directory().join("elsewhere");
        // The cut may come first: then nothing of this succeeds, nor need it.
        match what {
            0 | 1 => {
                if let Ok(mut file) = std::fs::File::create(elsewhere) {
                    let _ = file.write_all(b"x").and_then(|()| file.sync_all());
                }
            }
            2 => {
                if let Ok(log) = std::fs::File::open(self.store().join("relations.sqlite3-wal")) {
                    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&log);
                    let flags = libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
                    // SAFETY: the descriptor is open until the call returns.
                    unsafe { libc::sync_file_range(descriptor, 0, 0, flags) };
                }
            }
            _ => {
                if let Ok(directory) = std::fs::File::open(self.disk.directory()) {
                    let _ = rustix::fs::syncfs(directory);
                }
            }
        }
    }

    /// The clients of a cycle. Items that are related go to the same one.
    fn clients<'a>(&mut self, rng: &mut Rng, record: &'a Record) -> Vec<Client<'a>> {
        let mut clients: Vec<Client<'a>> = (0..CLIENTS)
            .map(|number| Client {
                number,
                mount: self.mount_point(),
                rng: Rng::from_seed(rng.number()),
                record,
                items: BTreeMap::new(),
                next_key: self.next_key + number * 100_000,
                service: self.service.clone(),
                unseen: 0,
                answered: 0,
                made: Vec::new(),
                printed: Vec::new(),
                serial: self.cycle * 10_000,
            })
            .collect();
        self.next_key += CLIENTS * 100_000;
        let mut items = std::mem::take(&mut self.items);
        while let Some(key) = items.keys().next().copied() {
            let mut group = BTreeMap::new();
            let mut waiting = vec![key];
            while let Some(key) = waiting.pop() {
                let Some(item) = items.remove(&key) else {
                    continue;
                };
                waiting.extend(ends(&item));
                waiting.extend(
                    items
                        .iter()
                        .filter(|(_, other)| ends(other).contains(&key))
                        .map(|(other, _)| *other),
                );
                group.insert(key, item);
            }
            clients[rng.below(CLIENTS)].items.extend(group);
        }
        clients
    }

    /// Takes back from the clients what they did.
    fn gather(&mut self, clients: Vec<Client<'_>>) -> Result<(), String> {
        let (mut unseen, mut answered) = (0, 0);
        for client in clients {
            unseen += client.unseen;
            answered += client.answered;
            for name in client.printed {
                if !self.names.insert(name.clone()) {
                    return Err(format!("{name} was handed out twice"));
                }
            }
            self.items.extend(client.items);
        }
        self.unseen = (answered, unseen);
        Ok(())
    }

    /// Looks at everything through a mount, then unmounts.
    fn look(&mut self, tally: &mut Tally, record: &Record) -> Result<(), String> {
        self.done(&["mount", "disk/store", "A"])?;
        let looked = self.look_at_all(tally, record);
        let unmounted = self.done(&["umount", "A"]);
        looked.and(unmounted).map(drop)
    }

    fn look_at_all(&mut self, tally: &mut Tally, record: &Record) -> Result<(), String> {
        let mount = self.mount_point();
        let rows = self.rows()?;
        let unseen = self.take_in_unseen(&rows, record)?;
        let directory = Directory::of(&self.items);
        let mut settled = BTreeMap::new();
        for (key, item) in &self.items {
            let found = check::find(&mount, item)?;
            check::check(item, found.as_ref(), &directory, &unseen)?;
            let now = check::settled(item, found.as_ref(), &directory);
            // Before its sidecar is there, one that comes by its IBIp has no rep.
            let row = rows.get(&item.rep).or(rows.get(&item.ibip));
            let agrees = match now.shape().presence {
                Presence::Here => {
                    if now.says().original {
                        row == Some(&State::Original)
                    } else {
                        row == Some(&State::Copy)
                    }
                }
                Presence::Removed => row == Some(&State::Deleted),
                Presence::Never => row.is_none_or(|state| *state == State::Deleted),
            };
            if !agrees {
                return Err(format!("{} is listed as {row:?}; {now:?}", item.rep));
            }
            self.look_at_relations(&now)?;
            settled.insert(*key, now);
        }
        tally.names = tally.names.max(self.names.len());
        self.items = settled;
        let here: BTreeSet<String> = rows
            .into_iter()
            .filter(|(_, state)| *state != State::Deleted)
            .map(|(name, _)| name)
            .collect();
        let mut listed = check::listed(&mount)?;
        listed.retain(|name| !self.service.contains(name.as_str()));
        if listed == here {
            Ok(())
        } else {
            Err(format!(
                "the tree and the index differ: {:?}",
                listed.symmetric_difference(&here).collect::<Vec<_>>()
            ))
        }
    }

    /// Asked by its attributes, an item says the same as its sidecar.
    fn look_at_relations(&self, item: &Item) -> Result<(), String> {
        if !item.is_original() {
            return Ok(());
        }
        let path = self.mount_point().join(&item.rep);
        for (kind, end) in &item.says().relations {
            if let End::Item(key) = end
                && let Some(other) = self.items.get(key)
                && !self.mount_point().join(&other.rep).exists()
            {
                // It was removed: the relation is history, and no attribute.
                continue;
            }
            let name = format!("user.{kind}").replace('(', ".").replace(')', "");
            let said = check::attribute(&path, &name)?;
            let expected = match end {
                End::Item(key) => self
                    .items
                    .get(key)
                    .map_or(Vec::new(), |item| vec![item.rep.clone(), item.ibip.clone()]),
                End::Elsewhere(name) => vec![name.clone()],
                End::Fresh => Vec::new(),
            };
            if !expected.contains(&said) {
                return Err(format!(
                    "{name} of {} is {said}, not {expected:?}",
                    item.rep
                ));
            }
        }
        Ok(())
    }

    /// All that the index knows, by rep, or by IBIp where there is none.
    fn rows(&self) -> Result<BTreeMap<String, State>, String> {
        let directory = std::fs::File::open(self.store()).map_err(|error| error.to_string())?;
        let store = Store::open_read_only(directory.as_fd(), None);
        let store = store.map_err(|error| error.to_string())?;
        let mut rows = BTreeMap::new();
        let outcome = store.each_item(|item| {
            rows.insert(item.names.preferred(), item.state);
            Ok(())
        });
        outcome.map_err(|error| error.to_string())?;
        rows.retain(|name, _| !self.service.contains(name.as_str()));
        Ok(rows)
    }

    /// Items whose mint was cut off before their name was seen: as many as were answered are there,
    /// and no more than were asked for.
    fn take_in_unseen(
        &mut self,
        rows: &BTreeMap<String, State>,
        record: &Record,
    ) -> Result<BTreeSet<Key>, String> {
        let mut taken = BTreeSet::new();
        let own = format!("{}/", self.own);
        let new: Vec<String> = rows
            .keys()
            .filter(|name| name.starts_with(&own) && !self.names.contains(*name))
            .cloned()
            .collect();
        let (answered, unseen) = self.unseen;
        if new.len() < answered || new.len() > unseen {
            return Err(format!(
                "{unseen} mints were cut off, {answered} of them after the answer; there are {new:?}"
            ));
        }
        self.unseen = (0, 0);
        let mount = self.mount_point();
        for rep in new {
            record.say(format!("-- minted and not seen before the cut: {rep}"));
            let ibip = check::attribute(&mount.join(&rep), "user.ibi.ibip")?;
            let item = Item::minted(rep.clone(), ibip, Facts::default());
            let found = check::find(&mount, &item)?;
            // All that it must be, but for whose relation it is.
            let names: Vec<&String> = found.iter().flat_map(check::Found::paths).collect();
            if !names.is_empty() || !found.as_ref().is_some_and(check::Found::is_original) {
                return Err(format!("{rep} is half minted: {names:?}"));
            }
            self.names.insert(rep);
            self.next_key += 1;
            taken.insert(self.next_key);
            let mut directory = Directory::of(&self.items);
            directory.add(&item, self.next_key);
            let item = check::settled(&item, found.as_ref(), &directory);
            self.items.insert(self.next_key, item);
        }
        Ok(taken)
    }

    /// A check finds nothing, after a start. As the cut has left the store, it may find what a start
    /// would repair, and repairs it when asked to. The index made again says the same.
    fn check_offline(
        &self,
        is_started: bool,
        tally: &mut Tally,
        record: &Record,
    ) -> Result<(), String> {
        let output = self.ibifs(&["fsck", "disk/store"]);
        let found = String::from_utf8_lossy(&output.stdout).into_owned();
        // A notice alone is no failure, and yet something that a start repairs.
        // A relation to an item that was removed stays, and is said.
        let is_clean = found
            .lines()
            .all(|line| line.starts_with("removed-target:") || line.contains(" items, "));
        if !output.status.success() || !is_clean {
            record.say(format!("-- fsck: {found}{}", complaint(&output)));
            if is_started {
                return Err(format!("after a start there is left: {found}"));
            }
            let (first, _) = found.split_once(':').unwrap_or((&found, ""));
            *tally.findings.entry(first.to_owned()).or_default() += 1;
            self.done(&["fsck", "--repair", "disk/store"])
                .map_err(|what| format!("{what}\nafter\n{found}"))?;
            self.done(&["fsck", "disk/store"])?;
        }
        let before = self.dump()?;
        self.done(&["reindex", "disk/store"])?;
        let after = self.dump()?;
        if before == after {
            Ok(())
        } else {
            let differs = |a: &[String], b: &[String]| -> Vec<String> {
                a.iter().filter(|line| !b.contains(line)).cloned().collect()
            };
            Err(format!(
                "reindex changes answers: {:?} become {:?}",
                differs(&before, &after),
                differs(&after, &before)
            ))
        }
    }

    /// All that the index says, without its own numbers.
    fn dump(&self) -> Result<Vec<String>, String> {
        let questions = "
            SELECT 'item', rep, ibip, state, service_rep, service_ibip, language, target, removed_at,
                hex(sidecar) FROM item ORDER BY rep, ibip;
            SELECT 'relation', rep, ibip, kind, target_rep, target_ibip
                FROM relation JOIN item ON id = source ORDER BY rep, ibip, kind;
            SELECT 'alias', name, rep, ibip FROM alias JOIN item ON id = item ORDER BY name;
            SELECT 'ledger', coalesce(reserved, last) FROM ledger;";
        let output = Command::new("sqlite3")
            .arg(self.store().join("relations.sqlite3"))
            .arg(questions)
            .output()
            .expect("sqlite3 runs");
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().map(str::to_owned).collect())
        } else {
            Err(complaint(&output))
        }
    }
}

/// The items of the model that an item is related with.
fn ends(item: &Item) -> Vec<Key> {
    let ends = item.says().relations.values();
    ends.filter_map(|end| match end {
        End::Item(key) => Some(*key),
        _ => None,
    })
    .collect()
}

/// At which steps the kernel writes something out, and, last, at which the power is cut.
fn moments(rng: &mut Rng) -> Vec<usize> {
    let steps = match rng.below(12) {
        // So many that the index begins to write over its log.
        0 => 1500,
        1..5 => 400,
        _ => 120,
    };
    let cut = rng.below(steps);
    let mut moments: Vec<usize> = (0..rng.below(4)).map(|_| rng.below(cut)).collect();
    moments.push(cut);
    moments.sort_unstable();
    moments.dedup();
    moments
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn kill(process: i32) {
    if let Some(process) = rustix::process::Pid::from_raw(process) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
}
