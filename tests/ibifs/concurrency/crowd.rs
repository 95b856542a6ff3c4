//! Several processes that use a mounted Archive at once, and a watcher that none waits
//! too long for anything.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::support::TestEnv;

const SCRIPT: &str = include_str!("crowd.py");

/// No user waits longer for an operation.
pub const TIMEOUT: Duration = Duration::from_secs(5);
/// The same on a machine where each operation takes long, since others use its processors: this is the most, and before that
/// so many times as long as an operation takes there on average.
const BUSY: (Duration, u32) = (Duration::from_secs(30), 20);
/// The time for which the watcher sleeps.
const PAUSE: Duration = Duration::from_millis(200);
/// Operations that run tools, which are many operations.
const TOOLS: [&str; 4] = ["copy", "renew", "rsync", "tar"];
/// Nor longer for a tool.
const TOOL_PATIENCE: Duration = Duration::from_secs(60);

/// The errors that the processes may get: another process was faster, or the rules are against it. EBADMSG
/// is for a relation of an item that another one's sidecar is just being copied into.
const REASONS: [&str; 10] = [
    "EBADMSG",
    "ENOENT",
    "EEXIST",
    "ELOOP",
    "EPERM",
    "ENOTEMPTY",
    "ENODATA",
    "ENOTDIR",
    "EISDIR",
    "ESTALE",
];
/// The reason for which a link may be refused: tar puts an empty file in its place for a while.
const REASON_OF_A_LINK: &str = "EINVAL:directories";

/// The report of a process.
#[derive(Debug)]
pub struct Report {
    /// The number of operations.
    pub operations: u64,
    /// The duration of the longest operation.
    pub longest: Duration,
    /// The name of that operation.
    pub slowest: String,
}

impl Report {
    /// Whether no operation took longer than it may, where the process ran for this time.
    pub fn is_soon(&self, seconds: u64) -> bool {
        self.longest < longest(Duration::from_secs(seconds), self.operations)
    }
}

/// The longest time that an operation may take where so many took this time.
fn longest(time: Duration, operations: u64) -> Duration {
    let (most, times) = BUSY;
    let operations = u32::try_from(operations).unwrap_or(u32::MAX).max(1);
    TIMEOUT.max((time / operations * times).min(most))
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Report {
            operations,
            longest,
            slowest,
        } = self;
        write!(
            f,
            "{operations} operations, the longest {longest:?} ({slowest})"
        )
    }
}

/// The processes, in the environment of the Archive A.
pub struct Crowd<'a> {
    env: &'a TestEnv,
    children: Vec<Child>,
    began: Instant,
    until: Instant,
}

impl<'a> Crowd<'a> {
    /// Starts them.
    #[track_caller]
    pub fn start(env: &'a TestEnv, count: usize, seconds: u64, load: &str) -> Crowd<'a> {
        std::fs::write(env.root().join("crowd.py"), SCRIPT).expect("a script");
        let start = |number: usize| {
            let script = format!("exec python3 crowd.py {number} {seconds} {load}");
            let mut command = env.command(&script);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("bash runs")
        };
        Crowd {
            env,
            children: (1..=count).map(start).collect(),
            began: Instant::now(),
            until: Instant::now() + Duration::from_secs(seconds),
        }
    }

    /// Waits for their end, looking now and then at each; `look` is called in between. One that
    /// waits too long ends the test with a report of what the daemon and it are doing.
    #[track_caller]
    pub fn watch(mut self, mut look: impl FnMut() + Send) -> Vec<Report> {
        let is_over = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            // In a thread of its own: the watcher may wait too long as well.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    look();
                    std::thread::sleep(PAUSE);
                }
            });
            let report = self.wait();
            is_over.store(true, Ordering::Relaxed);
            report
        });
        if let Err(report) = report {
            panic!("{report}");
        }
        self.children.drain(..).map(report_of).collect()
    }

    /// Waits for their end. Where one waits too long, they are ended, and a report is the answer.
    fn wait(&mut self) -> Result<(), String> {
        loop {
            let mut alive = 0;
            for child in &mut self.children {
                alive += usize::from(child.try_wait().expect("a child").is_none());
            }
            if alive == 0 {
                return Ok(());
            }
            if let Some(stuck) = self.stuck() {
                let report = self.report(&stuck);
                self.end();
                return Err(report);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns the process that waits too long, and for what it waits.
    fn stuck(&self) -> Option<String> {
        // The reader of its script and the writer of its end have a while for it.
        let is_late = Instant::now() > self.until + TOOL_PATIENCE * 2;
        for (index, child) in self.children.iter().enumerate() {
            let path = self.env.root().join(format!("at-{}", index + 1));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let mut words = text.split_whitespace();
            let (Some(count), Some(since), Some(what)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(since) = since.parse() else { continue };
            let since = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(since);
            let waits = since.elapsed().unwrap_or_default();
            let limit = if TOOLS.contains(&what) {
                TOOL_PATIENCE
            } else {
                longest(self.began.elapsed(), count.parse().unwrap_or(1))
            };
            if waits > limit || is_late {
                let process = child.id();
                return Some(format!(
                    "process {process} waits for operation {count}, {what}, since {waits:?}"
                ));
            }
        }
        None
    }

    /// Returns what each process does, as the kernel reports it.
    fn report(&self, stuck: &str) -> String {
        let mut report = format!("{stuck}\n");
        let daemon = self.env.sh("daemon A.store");
        let mut all: Vec<u32> = daemon.parse().into_iter().collect();
        all.extend(self.children.iter().map(Child::id));
        for process in all {
            let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let tell = |name: &str| -> String {
                    let text = std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
                    text.trim().replace('\n', "\n      ")
                };
                report.push_str(&format!(
                    "  {process} {} {}: {}\n    {}\n      {}\n",
                    task.file_name().to_string_lossy(),
                    tell("comm"),
                    tell("wchan"),
                    tell("syscall"),
                    tell("stack")
                ));
            }
        }
        report
    }

    /// Ends them, and the daemon, without which none can wait for it.
    fn end(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        self.env.run("kill -9 $(daemon A.store); umount -l A");
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// Returns what a process printed at its end. It may have complained of nothing, and been refused only what
/// others or the rules had taken.
#[track_caller]
fn report_of(child: Child) -> Report {
    let output = child.wait_with_output().expect("a child");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaint.is_empty(),
        "{complaint}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let mut word = || {
        words
            .next()
            .unwrap_or_else(|| panic!("the process printed only {text}"))
    };
    let report = Report {
        operations: word().parse().expect("a number"),
        longest: Duration::from_secs_f64(word().parse().expect("a number")),
        slowest: word().to_owned(),
    };
    for refused in words {
        let (error, _) = refused.split_once(':').unwrap_or_default();
        assert!(
            REASONS.contains(&error) || refused == REASON_OF_A_LINK,
            "was refused: {text}"
        );
    }
    report
}
