//! Each durable step of a copy, of a transfer and of a service over HTTP fails, once or from then on, on either side.
//!
//! In the short form a sample of the steps, each in one of four ways, which take turns; with `IBIFS_TEST_STEPS=N` each
//! write counts, and every N-th step fails in all ways.

use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::errors::WAYS;
use super::supervisor::{Supervised, What};
use crate::support::{TestEnv, switch};

/// Nothing has so many steps.
const MANY: usize = 1000;

/// The time for which a service may continue after its client has the answer.
const AFTERWARDS: Duration = Duration::from_millis(20);

/// The process whose steps fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// The command's.
    Command,
    /// The service's, while it is asked.
    Service,
    /// The service's, from its start on.
    Start,
}

/// A change over HTTP or between stores. Scripts run in a directory of `one` and `two`, the reps of two items in the
/// store `S`, with the empty store `D`; `$U` is the URL of the service.
#[derive(Debug)]
struct Exchange {
    name: &'static str,
    /// The script that prepares more than the stores.
    prepare: &'static str,
    /// The arguments of the service.
    service: Option<&'static str>,
    stopped: Stopped,
    /// The directory of the steps.
    watched: &'static str,
    /// Makes it, or goes on with it where it was stopped. Fails if it was not made.
    make: &'static str,
    /// Fails where it is visible and incomplete.
    is_whole: &'static str,
    /// Fails where it has not been made; runs when the service has ended.
    is_made: &'static str,
    /// Steps whose errors need not be reported, as nothing depends on them; `*` at the end stands for anything.
    needless: &'static [&'static str],
    /// Of the steps every so manieth is tried in the short form.
    stride: usize,
}

/// The steps that a store can do without: the last words of ledger and lock when it is closed, whose errors are
/// logged, the checkpoint of SQLite's log then, the owner of files that have it already, and the removal of remains.
const CLOSING: &[&str] = &[
    "openat staging/write-*",
    "write staging/write-*",
    "fchmod staging/write-*",
    "fsync staging/write-*",
    "renameat staging/write-*",
    "unlinkat staging/*",
    "unlinkat handover/incoming/*",
    "ftruncate lock",
    "write lock",
    "fsync lock",
    "pwrite64 relations.sqlite3",
    "ftruncate relations.sqlite3",
    "fsync relations.sqlite3",
    "unlink relations.sqlite3-*",
    "fchown relations.sqlite3-*",
];

const TOOLS: &str = r#"
# Asks, prints the answer and its status, and fails where that is an error.
asks() { local status; status=$(curl -sS -o answer -w '%{http_code}' "$@"); cat answer; echo "status $status"; test "$status" -lt 400; }
service() { sed -n 's/^ibi.archiveservice {rep \([^ ]*\).*/\1/p' $1/archive.ibi; }
# What is at the other place is all of the item.
same() { diff -r --no-dereference -x .ibi S/col/$1 D/col/$1; }
"#;

/// An item whose sidecar is at the destination has all its content there.
const NO_HALF_ITEM: &str = "for one in $(< one) $(< two); do
         for sidecar in {S,before/S}/col/$one/.ibi; do ! cmp -s $sidecar D/col/$one/.ibi || same $one; done
     done";

impl Exchange {
    #[track_caller]
    fn environment(&self) -> TestEnv {
        let env = TestEnv::new().with_index_file();
        env.sh(&format!(
            "ibifs init S --host archive-a.example.org > /dev/null
             ibifs init D --host archive-b.example.net > /dev/null
             for name in one two; do
                 ibifs mint S | head -n 1 > $name; seq 2000 > S/col/$(< $name)/doc/file
                 ln S/col/$(< $name)/doc/file S/col/$(< $name)/doc/link; echo $name > S/col/$(< $name)/doc/$name
             done
             for i in $(seq 8); do printf 0123456789abcdef; done > token; chmod 600 token
             {TOOLS}
             {}
             mkdir before; cp -a S D $(find . -maxdepth 1 -name 'R') before",
            self.prepare
        ));
        env
    }

    /// Starts the service, under supervision if its steps fail.
    #[track_caller]
    fn serve(
        &self,
        env: &TestEnv,
        armed: Option<(usize, What)>,
    ) -> (String, Option<Service>, Option<Supervised>) {
        let Some(service) = self.service else {
            return (String::new(), None, None);
        };
        let mut command = env.command(&format!("becomes ibifs {service} --listen 127.0.0.1:0"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let watched = env.root().join(self.watched);
        let (supervised, mut child) = match self.stopped {
            Stopped::Command => (None, command.spawn().expect("it runs")),
            Stopped::Service | Stopped::Start => {
                let (supervised, child) = Supervised::start(&mut command, &watched, armed);
                (Some(supervised), child)
            }
        };
        let mut line = String::new();
        let printed = child.stdout.take().expect("its output");
        let read = BufReader::new(printed).read_line(&mut line);
        read.expect("a line");
        let url = line.trim_end().rsplit(' ').next().unwrap_or_default();
        (
            url.trim_end_matches('/').to_owned(),
            Some(Service(Some(child))),
            supervised,
        )
    }

    fn script(&self, url: &str) -> String {
        format!("U={url}\n{TOOLS}\n{}", self.make)
    }

    /// Whether there was a step to fail.
    #[track_caller]
    fn fails_at(&self, env: &TestEnv, at: usize, way: What) -> bool {
        env.sh("rm -rf S D R answer acknowledged; cp -a before/. .");
        let armed = (self.stopped == Stopped::Start).then_some((at, way));
        let (mut url, mut service, mut supervised) = self.serve(env, armed);
        let mut output = None;
        if url.is_empty() && self.service.is_some() {
            // It has not started, and said why.
            let ended = service
                .take()
                .and_then(|mut service| service.0.take())
                .map(Child::wait_with_output);
            output = ended.and_then(Result::ok);
        } else if self.stopped == Stopped::Command {
            let mut command = env.command(&self.script(&url));
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let watched = env.root().join(self.watched);
            let (command, child) = Supervised::start(&mut command, &watched, Some((at, way)));
            output = child.wait_with_output().ok();
            supervised = Some(command);
        } else {
            if let Some(supervised) = &supervised
                && self.stopped == Stopped::Service
            {
                supervised.arm(at, way);
            }
            output = output.or_else(|| Some(env.run(&self.script(&url))));
        }
        let output = output.expect("it ends");
        std::thread::sleep(AFTERWARDS);
        let supervised = supervised.expect("somebody's steps are counted");
        supervised.disarm();
        let steps = supervised.steps();
        let step = format!("{}, {way:?} at {}", self.name, supervised.step());
        let is_reached = supervised.reached();
        let whole = env.run(&format!("{TOOLS}\n{}", self.is_whole));
        assert!(whole.status.success(), "{step}: {}", shown(&whole));
        if is_reached && output.status.success() {
            let mut refused = steps.clone().split_off(at - 1);
            let made = match way {
                What::Fail(_) => refused.split_off(1),
                _ => Vec::new(),
            };
            // A step that failed once is made with the next number.
            let is_made =
                |step: &String| made.iter().any(|made| unnumbered(made) == unnumbered(step));
            // The log has the error of what the index says last, and of the last sync: the next start reads again what changed.
            let is_logged = shown(&output).contains("cannot write the ledger: ");
            // A copy that is not noted is made, and its proof is to be made again.
            let is_noted = shown(&output).contains(" are not noted: ");
            let is_sync = |step: &String| step.starts_with("syncfs ");
            let is_last_sync = |at: usize| is_logged && steps.iter().rposition(is_sync) == Some(at);
            let last = is_logged.then_some(&"pwrite64 relations.sqlite3-wal");
            let is_needless = |step: &String| {
                let step_there = step.replace("S/", "").replace("D/", "");
                let mut needless = self.needless.iter().chain(CLOSING).chain(last);
                // What a crash had left.
                let is_of_before = step.starts_with("unlinkat ") && step.ends_with(".new");
                is_made(step)
                    || is_of_before
                    || is_noted && step_there.contains(" fixity")
                    || needless.any(|needless| is_like(&step_there, needless))
            };
            let is_needed = |(number, step): &(usize, &String)| {
                let at = at - 1 + number;
                !is_needless(step)
                    && !is_synced(&steps, at)
                    && !is_last_of_log(&steps, at)
                    && !is_last_sync(at)
            };
            let needed = refused.iter().enumerate().find(is_needed);
            let around = &steps[at.saturating_sub(4)..steps.len().min(at + 6)];
            assert_eq!(
                needed,
                None,
                "{step}: nobody was told: {around:#?} {}",
                shown(&output)
            );
        } else if is_reached {
            says_why(&step, &output, way);
            // The same again, by the same service if it runs.
            if self.service.is_some() && service.is_none() {
                let (again, child, _) = self.serve(env, None);
                (url, service) = (again, child);
            }
            let again = env.run(&self.script(&url));
            assert!(
                again.status.success(),
                "{step}, then again: {}",
                shown(&again)
            );
        } else {
            assert!(output.status.success(), "{step}: {}", shown(&output));
        }
        let log = end(service);
        let made = env.run(&format!("{TOOLS}\n{}", self.is_made));
        assert!(
            made.status.success(),
            "{step}: not made: {}{log}",
            shown(&made)
        );
        env.prints(
            // A repair removes the files whose removal failed.
            "for s in S D; do ibifs fsck --repair $s > /dev/null || true; ibifs fsck $s | tail -n 1; ls -A $s/staging; done | sed 's/^[0-9]* items\\?, //'
             find S/handover D/handover -path '*/incoming/*' -prune -o -type f ! -name lock -print 2> /dev/null || true",
            "0 findings\n0 findings",
        );
        supervised.wait();
        is_reached
    }

    /// Lets steps fail one after the other. Who asked is told, nothing incomplete is seen, the same is made as soon
    /// as the error has gone, and nothing is left that a repair does not remove.
    #[track_caller]
    fn at_its_steps(&self) {
        let env = self.environment();
        let long = switch("IBIFS_TEST_STEPS").and_then(|every| usize::try_from(every).ok());
        let (all, stride) = (long.is_some(), long.unwrap_or(self.stride));
        let (mut steps, mut failed) = (0, 0);
        'steps: for at in (1..MANY).step_by(stride) {
            let ways = if all {
                &WAYS[..]
            } else {
                &WAYS[(at / stride) % WAYS.len()..][..1]
            };
            for way in ways {
                if !self.fails_at(&env, at, *way) {
                    break 'steps;
                }
                failed += 1;
            }
            steps += 1;
        }
        println!("{}: {steps} steps, {failed} errors", self.name);
        assert!(
            failed > 0 && steps < MANY / stride,
            "{} has steps",
            self.name
        );
    }
}

/// Whether a step is the one of a list that is, or begins with what stands before its `*`.
fn is_like(step: &str, needless: &str) -> bool {
    match needless.strip_suffix('*') {
        Some(beginning) => step.starts_with(beginning),
        None => step == needless,
    }
}

/// Whether a step is a sync of what was synced before and not written since, as when SQLite closes a database.
fn is_synced(steps: &[String], index: usize) -> bool {
    let (what, file) = steps[index].split_once(' ').unwrap_or_default();
    if !matches!(what, "fsync" | "fdatasync" | "syncfs") {
        return false;
    }
    for step in steps[..index].iter().rev() {
        let (before, files) = step.split_once(' ').unwrap_or_default();
        let is_same = files.split(' ').any(|name| name == file);
        match before {
            "syncfs" => return true,
            "fsync" | "fdatasync" if is_same => return true,
            "fsync" | "fdatasync" => {}
            _ if is_same || what == "syncfs" => return false,
            _ => {}
        }
    }
    false
}

/// Whether a step is the sync of SQLite's log with which a database is closed: what has to be durable was synced when it was
/// committed, and what may be lost with a power cut until the next such commit, the record of a copy, is found again.
fn is_last_of_log(steps: &[String], index: usize) -> bool {
    let (what, file) = steps[index].split_once(' ').unwrap_or_default();
    let is_later_write = |step: &String| step.starts_with("pwrite") && step.ends_with(file);
    what == "fsync"
        && file.ends_with("relations.sqlite3-wal")
        && !steps[index..].iter().any(is_later_write)
}

fn unnumbered(step: &str) -> String {
    step.chars().filter(|it| !it.is_ascii_digit()).collect()
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Checks that the output names the error, or is the answer of a service to one: the disk is full, or cannot be
/// written.
#[track_caller]
fn says_why(step: &str, output: &Output, way: What) {
    let printed = shown(output);
    let why = match way {
        What::Fail(libc::ENOSPC) | What::FailOn(libc::ENOSPC) => [
            "No space left on device",
            "database or disk is full",
            "status 507",
        ],
        _ => ["Input/output error", "disk I/O error", "status 503"],
    };
    let is_told = why.iter().any(|why| printed.contains(why));
    assert!(is_told, "{step}: {printed}");
}

/// A service that runs.
#[derive(Debug)]
struct Service(Option<Child>);

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ends a service, which ends as it should, and gives what it has logged.
#[track_caller]
fn end(service: Option<Service>) -> String {
    let Some(service) = service.and_then(|mut service| service.0.take()) else {
        return String::new();
    };
    kill_process(Pid::from_child(&service), Signal::TERM).expect("it has not ended early");
    let output = service.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", shown(&output));
    shown(&output)
}

const COPY: Exchange = Exchange {
    name: "copy between stores",
    prepare: "",
    service: None,
    stopped: Stopped::Command,
    watched: ".",
    make: "ibifs copy --store S --state original D",
    is_whole: NO_HALF_ITEM,
    is_made: "same $(< one); same $(< two)",
    // What cannot be shared or linked is written.
    needless: &[
        "copy_file_range *",
        "linkat handover/incoming/*",
        "openat reserve",
        "fallocate relations.sqlite3-shm",
        "unlinkat fixity/damaged/*",
    ],
    stride: 70,
};

#[test]
fn copy_between_stores() {
    COPY.at_its_steps();
}

#[test]
fn copy_from_a_url() {
    Exchange {
        name: "copy from a URL",
        service: Some("serve S"),
        make: "ibifs copy --from $U $(< one) $(< two) D",
        ..COPY
    }
    .at_its_steps();
}

#[test]
fn a_lost_item_from_a_url() {
    Exchange {
        name: "a lost item from a URL",
        prepare: "ibifs copy --store S --state original D > /dev/null; ibifs scrub D > /dev/null; rm -r D/col/$(< one)",
        service: Some("serve S"),
        watched: "D",
        make: "ibifs repair D --all --from $U",
        // Its sidecar may be there again before its content, which is marked so.
        is_whole: "test -e D/col/$(< one)/.ibifs-copy-uncompared || test ! -e D/col/$(< one)/.ibi || same $(< one)",
        stride: 20,
        ..COPY
    }
    .at_its_steps();
}

/// The service of `D` takes what `S` gives.
const TRANSFER: Exchange = Exchange {
    name: "transfer, in the sender",
    prepare: "echo \"$(< token) $(service S)\" > tokens; chmod 600 tokens",
    service: Some("serve D --transfer-token-file tokens"),
    stopped: Stopped::Command,
    watched: "S",
    make: "state=$(ibifs show --store S $(< one)); pending=$(find S/handover -path '*/col/*' -type f 2> /dev/null || true)
           if [[ -n $pending || $state = *Original* ]]; then ibifs transfer --store S --token-file token $(< one) $U; fi",
    is_whole: NO_HALF_ITEM,
    is_made: "same $(< one)
        test \"$(for s in S D; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done | paste -sd ' ')\" = 'Copy Original'",
    needless: &[],
    stride: 60,
};

#[test]
fn transfer_in_the_sender() {
    TRANSFER.at_its_steps();
}

#[test]
fn transfer_in_the_service() {
    Exchange {
        name: "transfer, in the service",
        stopped: Stopped::Service,
        watched: "D",
        stride: 70,
        ..TRANSFER
    }
    .at_its_steps();
}

/// The records that the service of `S` writes.
const SERVED: Exchange = Exchange {
    name: "harvested records",
    prepare: "",
    service: Some("serve S"),
    stopped: Stopped::Service,
    watched: "S",
    make: "asks \"$U/oai?verb=ListIdentifiers&metadataPrefix=oai_dc\" | tee list; test $(grep -o '<identifier>' list | wc -l) = 2",
    is_whole: "true",
    is_made: "true",
    needless: &["fchown harvest.sqlite3-*"],
    stride: 3,
};

#[test]
fn harvested_records() {
    SERVED.at_its_steps();
}

/// Accesses are acknowledged at once and written down within five seconds: what fails is written the next time.
#[test]
fn accesses() {
    Exchange {
        name: "accesses",
        make: "key=$(curl -sS \"$U/$(service S)?servicesubject=urlRequest&parsedibiurl.ibi=$(< one)&parsedibiurl.verblist=\" | tr -d '\\r' | sed -n 's/^urlkey //p')
               asks \"$U/$(service S)?servicesubject=acknowledgment&urlkey=$key\"; echo >> acknowledged; sleep 5.3",
        is_made: "test $(sqlite3 S/accesses.sqlite3 'SELECT sum(count) FROM access') = $(wc -l < acknowledged)",
        needless: &["*"],
        stride: 2,
        ..SERVED
    }
    .at_its_steps();
}

/// Without the databases beside the index a service that starts answers all the same, as ibifs-serve(1) says.
#[test]
fn a_service_that_starts() {
    Exchange {
        name: "a service that starts",
        stopped: Stopped::Start,
        needless: &["*"],
        stride: 50,
        ..SERVED
    }
    .at_its_steps();
}

/// Small pictures and the search are answered, or refused with the reason, whatever cannot be kept.
#[test]
fn pictures_and_searches() {
    Exchange {
        name: "pictures and searches",
        prepare: "python3 -c \"import struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
row = b'\\0' + (bytes(range(256)) * 2)[:96 * 3]
open('S/col/$(< one)/doc/x.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 96, 75, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(row * 75)) + chunk(b'IEND', b''))\"",
        make: "asks \"$U/col/$(< one)/doc/x.png?preview\" | tail -c 200
               found() { asks \"$U/search?q=2026\" -H 'Accept: application/json'; }
               found > found || { sleep 0.3; found; }",
        needless: &["*"],
        stride: 3,
        ..SERVED
    }
    .at_its_steps();
}

/// The register of a resolver, in `R`.
const REGISTER: Exchange = Exchange {
    name: "an Archive registered by the command",
    prepare: "mkdir R; chmod 700 R; ibifs resolver register --db R/r.db example.org/other/2020/01.01.01.01 > key",
    service: None,
    stopped: Stopped::Command,
    watched: "R",
    make: "ibifs resolver register --db R/r.db $(service S) > key",
    is_whole: "true",
    is_made: "ibifs resolver list --db R/r.db | grep -q $(service S)",
    // The file is there already, and what is in the log is brought into it the next time.
    needless: &[
        "openat r.db",
        "pwrite64 r.db",
        "ftruncate r.db",
        "fsync r.db",
        "unlink r.db-*",
        "fchown r.db-*",
    ],
    stride: 7,
};

#[test]
fn an_archive_registered_by_the_command() {
    REGISTER.at_its_steps();
}

/// A database that is made is never open to others, whatever fails.
#[test]
fn a_resolvers_database_that_is_made() {
    Exchange {
        name: "a resolver's database that is made",
        prepare: "mkdir R",
        is_whole: "test ! -e R/r.db || test $(stat -c %a R/r.db) = 600",
        needless: &[
            "pwrite64 r.db",
            "ftruncate r.db",
            "fsync r.db",
            "unlink r.db-*",
            "fchown r.db-*",
        ],
        ..REGISTER
    }
    .at_its_steps();
}

#[test]
fn an_archive_included_with_a_resolver() {
    Exchange {
        name: "an Archive included with a resolver",
        service: Some("resolver --db R/r.db"),
        stopped: Stopped::Service,
        make: "asks \"$U/J8LNKB5R7W/3FUQHC5?servicesubject=inclusionRequest&archiveaddress=127.0.0.1:9&archiveserviceibi=example.org/other/2020/01.01.01.01&archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=1&archiveadmemailaddress=a@example.org&registrationkey=$(< key)\"",
        is_made: "ibifs resolver list --db R/r.db --json | grep -q '127.0.0.1:9'",
        ..REGISTER
    }
    .at_its_steps();
}

#[test]
fn an_actor_of_the_protocol_of_2009() {
    Exchange {
        name: "an actor of the protocol of 2009",
        service: Some("resolver --db R/r.db --registration-2009"),
        stopped: Stopped::Service,
        make: "asks \"$U/?verb=RegisterActor&computerName=hermes&domainName=example.org&port=80&eMailAddress=x@example.org&password=12xY3z\"",
        is_made: "ibifs resolver actors --db R/r.db | grep -q hermes",
        ..REGISTER
    }
    .at_its_steps();
}
