//! The places where rows are run: a native directory, and an item in both trees of a mount.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::calls::{Bench, take};
use super::row::Row;
use super::snapshot;
use super::system::sys;
use crate::support::{Needs, TestEnv};

/// The place where files are read and written through the daemon.
pub const IBIP_TREE: &str = "the IBIp tree";
pub const WITHOUT_PASSTHROUGH: &str = "the rep tree without passthrough";

/// A directory for rows, and the same one natively.
#[derive(Debug)]
pub struct Place {
    pub name: &'static str,
    pub directory: PathBuf,
    pub backing: PathBuf,
}

/// A native directory, and an item of a mount with passthrough and of one without.
#[derive(Debug)]
pub struct Places {
    pub env: TestEnv,
    pub native: Place,
    pub mounted: Vec<Place>,
}

impl Places {
    /// With an item of a mount without passthrough beside it where asked.
    #[track_caller]
    pub fn new(through_daemon: bool) -> Places {
        let env = TestEnv::with(Needs::Posix);
        env.sh("mkdir native");
        let root = env.root().to_owned();
        let mut mounted = Vec::new();
        let archives = [("A", "yes"), ("B", "no")];
        for (archive, passthrough) in archives.into_iter().take(1 + usize::from(through_daemon)) {
            env.sh(&format!(
                "ibifs init {archive}.store --host archive.example.org; mkdir {archive}
                 ibifs mount -o allow_other,suid,dev,passthrough={passthrough} {archive}.store {archive}
                 mkdir -p {archive}/.mint/it/doc"
            ));
            let rep = env.sh(&format!("rep {archive}/.mint/it"));
            let ibip = env.sh(&format!("ibip {archive}/.mint/it"));
            let backing = root.join(format!("{archive}.store/col/{rep}"));
            let mut place = |name, identifier: &str| {
                mounted.push(Place {
                    name,
                    directory: root.join(archive).join(identifier),
                    backing: backing.clone(),
                });
            };
            match passthrough {
                "yes" => {
                    place("the rep tree", &rep);
                    place(IBIP_TREE, &ibip);
                }
                _ => place(WITHOUT_PASSTHROUGH, &rep),
            }
        }
        let native = Place {
            name: "native",
            directory: root.join("native"),
            backing: root.join("native"),
        };
        Places {
            env,
            native,
            mounted,
        }
    }
}

/// The effects of a row in a place.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The answer of each step.
    pub answers: Vec<String>,
    /// The paths that were there afterwards.
    pub paths: BTreeMap<PathBuf, String>,
}

impl Seen {
    /// The same without some of the times of its paths.
    pub fn without(&self, letters: &str) -> Seen {
        let line = |line: &String| {
            let words = line.split(' ').filter(|word| match word.split_once(':') {
                Some((letter, _)) => letter.is_empty() || !letters.contains(letter),
                None => true,
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let paths = self.paths.iter();
        let paths = paths.map(|(path, printed)| (path.clone(), line(printed)));
        Seen {
            answers: self.answers.clone(),
            paths: paths.filter(|(_, printed)| !printed.is_empty()).collect(),
        }
    }
}

/// The number of rows that are prepared before they are tested, so that one wait serves them all. Each may hold files
/// open, so there are no more.
const AT_ONCE: usize = 64;

/// Waits for the next tick of the kernel's clock for file times, which may take long where the machine below a virtual one
/// is busy.
fn wait_for_a_tick() {
    let now = || {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a structure that lives until the call returns.
        let read = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
        assert_eq!(read, 0, "the clock");
        (time.tv_sec, time.tv_nsec)
    };
    let before = now();
    while now() == before {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Place {
    /// Runs rows, each in a directory of its own; `prefix` keeps theirs from others'.
    /// `between` is done before the tested steps.
    pub fn run(&self, prefix: &str, rows: &[Row], between: impl Fn()) -> Vec<Seen> {
        let mut all = Vec::new();
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let started = clock.expect("after 1970").as_secs() as i64;
        for (part, rows) in rows.chunks(AT_ONCE).enumerate() {
            let name = |at: usize| format!("{prefix}-{}", part * AT_ONCE + at);
            let mut prepared = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                self.make(&name(at));
                self.enter(&name(at));
                let mut bench = Bench::default();
                let answers = row.before.iter().map(|step| take(&mut bench, step));
                let answers: Vec<String> = answers.collect();
                prepared.push((bench, answers));
            }
            let before: Vec<snapshot::Before> = (0..rows.len())
                .map(|at| {
                    self.enter(&name(at));
                    snapshot::before(&self.backing.join(name(at)))
                })
                .collect();
            between();
            wait_for_a_tick();
            for (at, row) in rows.iter().enumerate() {
                let (bench, answers) = &mut prepared[at];
                self.enter(&name(at));
                answers.extend(row.tested.iter().map(|step| take(bench, step)));
                self.enter(&name(at));
                let backing = self.backing.join(name(at));
                let paths = snapshot::after(&before[at], started, &backing);
                *bench = Bench::default();
                let answers = std::mem::take(answers);
                all.push(Seen { answers, paths });
            }
        }
        std::env::set_current_dir("/").expect("away from the mount");
        all
    }

    fn make(&self, name: &str) {
        let path = self.directory.join(name);
        std::fs::create_dir(&path).expect("a directory for a row");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&path, mode).expect("open to all");
    }

    /// Goes to a row's directory; the directory and umask are this thread's own.
    fn enter(&self, name: &str) {
        enter(&self.directory.join(name));
    }
}

fn enter(path: &Path) {
    std::env::set_current_dir(path).expect("a row's directory");
    sys!(SYS_umask, 0).expect("an umask");
}
