//! A store that is put back as it was as often as needed, mounted under supervision.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ibifs::outside::archive::{Archive, CheckReport, SystemClock};

use super::command::command;
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

/// A store `S`, mounted at `M`, that begins as the store `before`: the items `one`, `two` and
/// `three`, of which `two` is the next edition of `one`, and `four`, which was removed.
#[derive(Debug)]
pub struct Fixture {
    env: TestEnv,
    reps: Vec<String>,
}

/// The content of the index, line by line, without the dates of the ledger.
pub type Answers = Vec<String>;

impl Fixture {
    /// A fixture whose store has been prepared by a script as well.
    #[track_caller]
    pub fn new(prepare: &str) -> Fixture {
        let env = TestEnv::new();
        env.sh(&format!(
            "mkdir M; ibifs init S --host archive-a.example.org > /dev/null
             for name in one two three four; do ibifs mint S | head -n 1 | tee $name; done > reps
             for name in one two three; do echo $name > S/col/$(< $name)/doc/file; done
             ibifs relate --store S $(< one) --next-edition $(< two)
             ibifs mount S M; rm -r M/$(< four); ibifs umount M
             {prepare}
             cp -a S before"
        ));
        let reps = env.sh("cat reps").lines().map(str::to_owned).collect();
        Fixture { env, reps }
    }

    /// The environment it lies in.
    pub fn environment(&self) -> &TestEnv {
        &self.env
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.env.root().join("S")
    }

    /// A path in the mount.
    pub fn mounted(&self, path: impl AsRef<Path>) -> PathBuf {
        self.env.root().join("M").join(path)
    }

    /// The rep of `one`, `two`, `three` or `four`, counted from 1.
    pub fn rep(&self, number: usize) -> &str {
        &self.reps[number - 1]
    }

    /// An item's directory in the mount.
    pub fn item(&self, number: usize) -> PathBuf {
        self.mounted(self.rep(number))
    }

    /// Puts the store back as it was.
    #[track_caller]
    pub fn put_back(&self) {
        let _ = std::fs::remove_dir_all(self.store());
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.env.root().join("before"));
        let status = copy.arg(self.store()).status().expect("cp runs");
        assert!(status.success(), "the store is put back");
    }

    /// A command of ours that works in the environment's directory; the argument `{1}` is the first rep.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let named = |argument: &&str| {
            match argument.strip_prefix('{') {
                Some(number) => self.rep(number.trim_end_matches('}').parse().expect("a number")),
                None => argument,
            }
            .to_owned()
        };
        let named: Vec<String> = arguments.iter().map(named).collect();
        let arguments: Vec<&str> = named.iter().map(String::as_str).collect();
        command(&self.env, &arguments)
    }

    /// Runs a command of ours, whatever comes of it.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    /// Runs a command of ours that must succeed, and gives what it prints.
    #[track_caller]
    pub fn ibifs(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "ibifs {arguments:?} ended with {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command of ours under supervision, armed from its beginning.
    pub fn supervised(&self, arguments: &[&str], at: usize, what: What) -> (Supervised, Output) {
        let mut command = self.command(arguments);
        let (supervised, child) = Supervised::start(&mut command, &self.store(), Some((at, what)));
        let output = child.wait_with_output().expect("it ends");
        (supervised, output)
    }

    /// Mounts under supervision. Nothing is counted yet. The daemon itself reads and writes files.
    #[track_caller]
    pub fn mount(&self) -> Supervised {
        let mut command = self.command(&["mount", "-o", "passthrough=no", "S", "M"]);
        let (supervised, child) = Supervised::start(&mut command, &self.store(), None);
        let output = child.wait_with_output().expect("it ends");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        supervised
    }

    /// Takes a dead mount away and mounts again, unsupervised, and gives the time that it took.
    #[track_caller]
    pub fn mount_again(&self) -> Duration {
        let started = Instant::now();
        self.detach();
        self.ibifs(&["mount", "S", "M"]);
        started.elapsed()
    }

    /// Unmounts.
    #[track_caller]
    pub fn unmount(&self) {
        self.ibifs(&["umount", "M"]);
    }

    /// Takes away a mount that may be there, dead or alive.
    pub fn detach(&self) {
        if is_mounted(&self.mounted("")) {
            self.ibifs(&["umount", "M"]);
        }
    }

    /// Makes the check repair what it finds, after which there is nothing more to find; gives what it
    /// found.
    #[track_caller]
    pub fn repair(&self) -> Vec<String> {
        let found = self.run(&["fsck", "S"]);
        if found.status.success() {
            return Vec::new();
        }
        self.ibifs(&["fsck", "--repair", "S"]);
        self.ibifs(&["fsck", "S"]);
        let printed = String::from_utf8_lossy(&found.stdout).into_owned();
        printed.lines().map(str::to_owned).collect()
    }

    /// Returns the content of the index and the findings of a check; beside the daemon, too.
    #[track_caller]
    pub fn look(&self) -> (Answers, CheckReport) {
        let archive = Archive::open_read_only(&self.store()).expect("the store opens");
        let mut items = Vec::new();
        let listed = archive.store().each_item(|item| {
            items.push(item.clone());
            Ok(())
        });
        listed.expect("the index answers");
        let say = |item: &ibifs::outside::archive::store::Item| {
            let relations = archive.store().relations_of(item.id);
            format!("{item:?} {:?}", relations.expect("the index answers"))
        };
        let answers = items.iter().map(say).collect();
        let report = Archive::check(&self.store(), &SystemClock, &mut |_| ());
        (answers, report.expect("the store is checked"))
    }

    /// Every item that was known in the beginning is known, whole, and the acknowledged relation is
    /// there.
    #[track_caller]
    pub fn is_whole(&self, step: &str) {
        let listed = self.ibifs(&["ls", "S"]);
        for rep in &self.reps {
            assert!(
                listed.contains(rep),
                "{rep} is forgotten after {step}\n{listed}"
            );
        }
        for line in listed.lines() {
            let mut words = line.split_whitespace();
            let (state, rep) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let place = self.store().join("col").join(rep);
            match state {
                "Deleted" => assert!(!place.exists(), "{line} is there after {step}"),
                "Original" => assert!(
                    place.join(".ibi").is_file(),
                    "{line} is not whole after {step}"
                ),
                _ => assert!(
                    place.is_dir() || rep == "-",
                    "{line} is not there after {step}"
                ),
            }
        }
    }
}

/// Whether something is mounted there, dead or alive.
pub fn is_mounted(path: &Path) -> bool {
    let table = std::fs::read("/proc/self/mountinfo").expect("the table of mounts");
    let wanted = path.as_os_str().as_bytes();
    let wanted = wanted.strip_suffix(b"/").unwrap_or(wanted);
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .any(|mounted| mounted == wanted)
}
