//! A temporary environment of mounted Archives and a shell in it, cleaned up when dropped.

mod disk;
mod postgres;
mod proxy;
mod rng;
mod user;

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use disk::{Disk, Format};
pub use postgres::{Postgres, Stop};
pub use proxy::TcpProxy;
pub use rng::{Rng, seed};
pub use user::User;

/// The number that an environment variable holds, for switching a test to its long form.
pub fn switch(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: '{text}' is not a number")),
    )
}

/// Panics unless a script printed exactly this. Its text comes last: reports of failures are cut off at their ends.
#[track_caller]
pub fn assert_printed(printed: &str, expected: &str, script: &str) {
    let lines = printed.lines().zip(expected.lines());
    let same = lines
        .take_while(|(printed, expected)| printed == expected)
        .count();
    assert!(
        printed == expected,
        "line {} differs\n--- printed\n{printed}\n--- expected\n{expected}\n--- script\n{script}",
        same + 1
    );
}

/// Does what gives its time up to three times until that is less than this: on a machine that is busy with other tests one
/// time may be longer, whereas a wait is there each time.
#[track_caller]
pub fn takes_less_than(bound: Duration, mut act: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    while took.len() < 3 {
        let last = act();
        if last < bound {
            return;
        }
        took.push(last);
    }
    panic!("{took:?}, not {bound:?}");
}

/// The bound of what takes this time where nothing is waited for: on a busy machine all takes longer.
pub fn without_a_wait(usual: Duration) -> Duration {
    Duration::from_millis(500) + 2 * usual
}

/// The time that this thread has had a processor, whatever else the machine does.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a structure that lives until the call returns.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(read, 0, "the clock of the thread");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time that something takes.
pub fn time_of(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

/// A port on loopback that is free, and stays so while its server is stopped: the kernel gives none of these to clients.
fn free_port() -> u16 {
    static NEXT_PORT: AtomicU32 = AtomicU32::new(0);
    let ports = 20_000..32_000;
    // Processes of tests that run at once begin at different places.
    let first = std::process::id().wrapping_mul(61);
    (0..ports.len())
        .find_map(|_| {
            let number = first.wrapping_add(NEXT_PORT.fetch_add(1, Ordering::Relaxed));
            let port = ports.start + (number % ports.len() as u32) as u16;
            let bound = std::net::TcpListener::bind(("127.0.0.1", port));
            bound.is_ok().then_some(port)
        })
        .expect("a free port")
}

/// The directory of Python's own program, if what is in PATH is a script that looks for it, which takes ten times as long.
fn python() -> Option<&'static Path> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = DIRECTORY.get_or_init(|| {
        let path = std::env::var_os("PATH")?;
        let first = std::env::split_paths(&path).find_map(|directory| {
            let mut start = [0; 2];
            let mut file = std::fs::File::open(directory.join("python3")).ok()?;
            file.read_exact(&mut start).ok().map(|()| start)
        });
        if first? != *b"#!" {
            return None;
        }
        let mut python = Command::new("python3");
        let told = python.args(["-c", "import sys; print(sys.executable)"]);
        let program = String::from_utf8(told.output().ok()?.stdout).ok()?;
        Some(Path::new(program.trim()).parent()?.to_owned())
    });
    found.as_deref()
}

/// A directory of its own for one test, with whatever it has mounted in it.
#[derive(Debug)]
pub struct TestEnv {
    root: PathBuf,
    /// The server for the databases of scripts.
    postgres: Option<&'static Postgres>,
    /// Whether the test is about the file of an index.
    is_index_a_file: bool,
    /// The directory that `root` shows, if another filesystem is mounted there.
    backing: Option<PathBuf>,
    began: Instant,
}

/// The features of the filesystem beneath that a test needs and bindfs lacks, because it looks up every file by its
/// path.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// RENAME_NOREPLACE, RENAME_EXCHANGE and RENAME_WHITEOUT of renameat2(2), so that `init` prints no notice.
    RenameFlags,
    /// A file that was removed is still there for who has it open, in its directory no name of it is left.
    OpenAfterRemoval,
    /// The names of a file share its attributes at once.
    HardLinks,
    /// Paths of more than 4,096 bytes.
    LongPaths,
    /// Flags of files (ioctl_iflags(2)).
    FileFlags,
    /// SEEK_HOLE of lseek(2).
    Holes,
    /// Access control lists that count when permissions are checked.
    AccessLists,
    /// The kernel knows the names that it has looked up until they change, so that it answers without a server.
    LastingNames,
    /// Locks of this machine alone, so that it knows who holds them.
    LocalLocks,
    /// All of POSIX: it is what a mount is compared with, call by call.
    Posix,
}

/// The notice of `ibifs init` about bindfs, for [`TestEnv::lacks`].
pub const UNCHECKED_LISTS: &str =
    "the filesystem of the store keeps access control lists and does not check them";

thread_local! {
    static ON_BINDFS: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test whose environment lies on bindfs, as with `IBIFS_TEST_BENEATH=bindfs`.
pub fn on_bindfs(test: fn()) {
    ON_BINDFS.set(true);
    test();
    ON_BINDFS.set(false);
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl TestEnv {
    /// An empty test environment, on the filesystem that `IBIFS_TEST_BENEATH` names: `bindfs`, or that of an absolute
    /// path, below which it lies; else on that of the temporary directory.
    #[track_caller]
    pub fn new() -> TestEnv {
        let beneath = std::env::var("IBIFS_TEST_BENEATH");
        match beneath.as_deref() {
            _ if ON_BINDFS.get() => TestEnv::in_temporary_directory().on_bindfs(),
            Ok("bindfs") => TestEnv::in_temporary_directory().on_bindfs(),
            Ok(path) if path.starts_with('/') => TestEnv::below(Path::new(path)),
            Ok(other) => panic!("IBIFS_TEST_BENEATH: '{other}' is not 'bindfs' nor a path"),
            Err(_) => TestEnv::in_temporary_directory(),
        }
    }

    /// The same for a test of something that bindfs or a filesystem of a network does not have: always on the filesystem
    /// of the temporary directory.
    #[track_caller]
    pub fn with(_needed: Needs) -> TestEnv {
        TestEnv::in_temporary_directory()
    }

    #[track_caller]
    fn in_temporary_directory() -> TestEnv {
        TestEnv::below(&std::env::temp_dir())
    }

    /// Without /dev/fuse nothing here can be shown: that is a failure, not a skip.
    #[track_caller]
    fn below(directory: &Path) -> TestEnv {
        assert!(
            Path::new("/dev/fuse").exists(),
            "these tests mount for real and need /dev/fuse"
        );
        std::fs::create_dir_all(directory).expect("a temporary directory");
        let root = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let root = directory.join(format!("ibifs-test-{}-{number}", std::process::id()));
            match std::fs::create_dir(&root) {
                // An earlier process with this number has left it: one of its tests had failed.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| root).expect("a temporary directory"),
            }
        };
        TestEnv {
            root,
            postgres: None,
            is_index_a_file: false,
            backing: None,
            began: Instant::now(),
        }
    }

    /// The same, where everything lies on bindfs, a filesystem without RENAME_NOREPLACE, as those of networks are.
    #[track_caller]
    pub fn on_bindfs(mut self) -> TestEnv {
        if self.backing.is_some() {
            return self;
        }
        let backing = self.root.with_extension("backing");
        std::fs::create_dir_all(&backing).expect("a temporary directory");
        let mounted = Command::new("bindfs")
            // Of no device and no set-user-id bit, as is usual, is decided by the mount and not by the filesystem.
            .args(["-o", "dev,suid"])
            .args([&backing, &self.root])
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "bindfs mounts"
        );
        self.backing = Some(backing);
        self
    }

    /// The same, where scripts may make databases with `database`.
    pub fn with_postgres(mut self) -> TestEnv {
        self.postgres = Some(Postgres::shared());
        self
    }

    /// The same for a test of the file of an index or a registry, also with `IBIFS_TEST_INDEX=postgres`.
    pub fn with_index_file(mut self) -> TestEnv {
        self.is_index_a_file = true;
        self
    }

    /// The environment's directory; scripts run in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes and mounts the Archive A (archive-a.example.org): store `A.store`, mounted at `A`.
    #[track_caller]
    pub fn with_a(self) -> TestEnv {
        self.sh(
            "ibifs init A.store --host archive-a.example.org && mkdir A && ibifs mount A.store A",
        );
        self
    }

    /// Makes and mounts the Archive B (archive-b.example.net): store `B.store`, mounted at `B`.
    #[track_caller]
    pub fn with_b(self) -> TestEnv {
        self.sh(
            "ibifs init B.store --host archive-b.example.net && mkdir B && ibifs mount B.store B",
        );
        self
    }

    /// Whether `ibifs init` says this of the filesystem beneath. What the test leaves out then is printed.
    #[track_caller]
    pub fn lacks(&self, lack: &str, left_out: &str) -> bool {
        let said = self.sh(
            "command ibifs init probed --host probed.example.org 2>&1 > /dev/null; rm -r probed",
        );
        let lacks = said.contains(lack);
        if lacks {
            println!("left out: {left_out}, since {lack}");
        }
        lacks
    }

    /// A script to be run in the environment.
    pub fn command(&self, script: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_ibifs"));
        let mut directories = vec![program.parent().expect("a directory").to_owned()];
        directories.extend(python().map(Path::to_owned));
        let index = match std::env::var("IBIFS_TEST_INDEX").as_deref() {
            _ if self.is_index_a_file => "",
            Ok("postgres") => IN_POSTGRES,
            Ok(other) => panic!("IBIFS_TEST_INDEX: '{other}' is not an index of the tests"),
            Err(_) => "",
        };
        let mut command = Command::new("bash");
        if !index.is_empty() || self.postgres.is_some() {
            let server = self.postgres.unwrap_or_else(Postgres::shared);
            command.env("POSTGRES", server.port().to_string());
            directories.extend(postgres::program("psql").parent().map(Path::to_owned));
        }
        directories.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        command
            .arg("-c")
            .arg(format!("set -euo pipefail\n{PRELUDE}\n{index}\n{script}"))
            .current_dir(&self.root)
            .env(
                "PATH",
                std::env::join_paths(directories).expect("a path list"),
            )
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("HOME", &self.root)
            .env_remove("LANGUAGE")
            // CI, if it is set, gives colours to terminals that have none as well.
            .env_remove("CI")
            .env_remove("RUST_LOG")
            .env_remove("IBIFS_STORE");
        command
    }

    /// Runs a script that must succeed and gives what it prints, without the last line end.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(
            output.status.success(),
            "script failed ({})\n--- complained\n{}\n--- printed\n{}\n--- script\n{script}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout)
        );
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        printed.strip_suffix('\n').unwrap_or(&printed).to_owned()
    }

    /// Runs a script, whatever comes of it.
    pub fn run(&self, script: &str) -> Output {
        self.command(script).output().expect("bash runs")
    }

    /// Runs a script that must print exactly this.
    #[track_caller]
    pub fn prints(&self, script: &str, expected: &str) {
        let printed = self.sh(script);
        assert_printed(&printed, expected, script);
    }

    /// Runs a script that must fail, complaining of this in some line.
    #[track_caller]
    pub fn complains(&self, script: &str, expected: &str) {
        let output = self.run(script);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "should have failed: {script}");
        assert!(
            complaint.contains(expected),
            "complaint of: {script}\nexpected: {expected}\ngot: {complaint}"
        );
    }

    /// Runs a script that must end with this exit status.
    #[track_caller]
    pub fn exits(&self, script: &str, expected: i32) {
        let output = self.run(script);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{script}\n{complaint}"
        );
    }
}

/// The functions that every script of these tests may use.
const PRELUDE: &str = r#"
# The names of an item, from any path to it.
rep()  { getfattr --absolute-names --only-values -n user.ibi.rep  "$1"; }
ibip() { getfattr --absolute-names --only-values -n user.ibi.ibip "$1"; }
state() { getfattr --absolute-names --only-values -n user.ibi.state "$1"; }
# The rep of what lies under a label: labelled MOUNT LABEL [COMMAND to act as the user who made it].
labelled() { local to; to=$("${@:3}" readlink "$1/.mint/.$2") && printf '%s' "${to#../}"; }
# What must fail; bash itself passes over a failing `! command`.
no() { ! "$@" 2> /dev/null; }
# Waits until a command succeeds.
waits() { local end=$((SECONDS + 60)); until "$@" > /dev/null 2>&1; do [ $SECONDS -lt $end ] || { echo "never: $*" >&2; exit 1; }; sleep 0.02; done; }
# Waits until strace has all threads of a process.
traced() { local task; for task in /proc/$1/task/*; do waits eval "[ ! -e $task ] || grep -q '^TracerPid:.[1-9]' $task/status"; done; }
# Ends those of these processes that the shell has in the background: the number of one that has ended may be another's by now.
ends() { local process running; running=" $(jobs -rp | xargs) "; for process; do [[ $running != *" $process "* ]] || kill $process 2> /dev/null || true; done; }
# Whether the standard input contains this: read to its end, where `grep -q` stops and a program that still writes fails.
contains() { grep "$@" > /dev/null; }
# The process of the daemon that has the store $1.
daemon() { sed -n 's/^pid //p' "$1/lock"; }
# Mints in a mount under a label and prints the rep.
mint() { mkdir -p "$1/.mint/$2/doc" && rep "$1/.mint/$2"; }
# Sorts words.
sorted() { tr ' ' '\n' | sed '/^$/d' | sort | tr '\n' ' '; }
# Removes the index of the store $1.
lose_index() { rm "$1"/relations.sqlite3*; }
# Executes a statement in the database of an index or of a resolver, of which the file is given.
in_database() { sqlite3 "$@"; }
# Where the database $1 of a resolver is.
registry_at() { printf '%s' "$1"; }
# Sets the clock that `faked COMMAND` sees: absolute, or so far from the machine's. faketime(1) fails where a process with
# its number was killed before: that has left its semaphore.
at() { echo "$1" > now.new; mv now.new now; }
faked() {
    LD_PRELOAD=$(echo /usr/lib/*/faketime/libfaketimeMT.so.1) FAKETIME_NO_CACHE=1 \
        FAKETIME_TIMESTAMP_FILE=$PWD/now FAKETIME_DONT_FAKE_MONOTONIC=1 "$@"
}
# Mints in A under a label and adds the rep to the file `names`.
minted() { mkdir -p A/.mint/$1/doc && echo "$(rep A/.mint/$1)" >> names; }
# Executes a command instead of the shell.
becomes() { exec "$@"; }
# A new database, and its URL.
database() {
    local name="archive_$$_$RANDOM$RANDOM"
    psql -qh 127.0.0.1 -p "$POSTGRES" -U ibifs postgres -c "CREATE DATABASE $name"
    printf 'postgres://ibifs@127.0.0.1:%s/%s' "$POSTGRES" "$name"
}
"#;

/// With `IBIFS_TEST_INDEX=postgres`, new stores have their index in PostgreSQL, and resolvers their registry.
const IN_POSTGRES: &str = r#"
registry_at() {
    [ -e "$1.url" ] || database > "$1.url"
    cat "$1.url"
}
# Sets `arguments` to its own, with the URL of a database for each file of a resolver's.
placed() {
    local argument last=
    arguments=()
    for argument; do
        if [[ $last = --db && $argument != postgres:* ]]; then
            argument=$(registry_at "$argument")
        fi
        arguments+=("$argument") last=$argument
    done
}
becomes() {
    local arguments
    placed "$@"
    exec "${arguments[@]}"
}
ibifs() {
    local arguments
    placed "$@"
    if [ "${1-}" = init ] && [[ " $* " != *" --index "* ]]; then
        command ibifs "$@" --index "$(database)"
    else
        command ibifs "${arguments[@]}"
    fi
}
# What a test does to the file of an index or of a registry is done to the database.
place() {
    if [ -e "$1.url" ]; then cat "$1.url"; else sed -n 's/^index //p' "$(dirname "$1")/archive.ibi"; fi
}
in_database() {
    local statement=${2#PRAGMA *;}
    [[ $statement != *'INSERT OR IGNORE'* ]] || statement="${statement/OR IGNORE /} ON CONFLICT DO NOTHING"
    psql -qAt -v ON_ERROR_STOP=1 "$(place "$1")" -c "$statement"
}
lose_index() {
    psql -q "$(place "$1/relations.sqlite3")" -c 'SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public'
}
"#;

impl TestEnv {
    /// Notes how long the test has had the environment, where `tests/run` asks for it. The thread has the name of the test.
    fn note_time(&self) {
        if let Some(path) = std::env::var_os("IBIFS_TEST_TIMES") {
            let test = std::thread::current();
            let time = self.began.elapsed().as_secs();
            let line = format!("{time} {}\n", test.name().unwrap_or("?"));
            let file = OpenOptions::new().append(true).open(path);
            let noted = file.and_then(|mut file| file.write_all(line.as_bytes()));
            noted.expect("the time is noted");
        }
    }

    /// Unmounts what is mounted below the directory, the last mounted first.
    fn unmount_all(&self) {
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        // Mount points of other tests may not be UTF-8.
        let table = String::from_utf8_lossy(&table).into_owned();
        let below = format!("{}/", self.root.display());
        for line in table.lines().rev() {
            if let Some(mounted) = line.split(' ').nth(4)
                && (mounted.starts_with(&below) || Path::new(mounted) == self.root)
            {
                let quiet = Command::new("umount").arg("-l").arg(mounted).output();
                drop(quiet);
            }
        }
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        self.unmount_all();
        self.note_time();
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.root.display());
            return;
        }
        // After a lazy unmount a daemon writes until its last descriptor is closed.
        let deadline = Instant::now() + Duration::from_secs(10);
        for directory in std::iter::once(&self.root).chain(&self.backing) {
            while std::fs::remove_dir_all(directory).is_err() && directory.exists() {
                if Instant::now() > deadline {
                    eprintln!("could not be removed: {}", directory.display());
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
                self.unmount_all();
            }
        }
    }
}
