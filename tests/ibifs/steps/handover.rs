//! A hand-over is stopped at each durable step of either side, by a kill or an error: at no instant do
//! two Archives claim the original, at each of them one has the content, and the same command again
//! brings the original to the other Archive, once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output};

use super::command::command;
use super::stride;
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

/// No hand-over has so many steps.
const MANY: usize = 1000;

/// Of the steps of copying every so manieth; with `IBIFS_TEST_STEPS=1` every one.
const STRIDE: usize = 17;

/// Two stores, `S` and `D`, mounted at `M` and `N` where they are; `S` holds the original `one`, and
/// `D` a copy of it.
#[derive(Debug)]
struct Pair {
    env: TestEnv,
    rep: String,
}

/// The process that is supervised, and the store that is mounted or served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// The command, with no store mounted.
    Command,
    /// The command, with both mounted.
    CommandOverMounts,
    /// The daemon of the store that gives.
    Giver,
    /// The daemon of the store that takes.
    Taker,
    /// The command, over HTTP.
    Sender,
    /// The service of the Archive that takes, over HTTP.
    Service,
}

impl Stopped {
    fn is_served(self) -> bool {
        matches!(self, Stopped::Sender | Stopped::Service)
    }

    fn is_mounted(self) -> bool {
        self != Stopped::Command && !self.is_served()
    }
}

impl Pair {
    fn new() -> Pair {
        let env = TestEnv::new();
        env.sh("mkdir M N before
             ibifs init S --host archive-a.example.org > /dev/null
             ibifs init D --host archive-b.example.net > /dev/null
             ibifs mint S | head -n 1 > one; ibifs mint S --edition-of $(< one) > /dev/null
             echo one > S/col/$(< one)/doc/file; ln S/col/$(< one)/doc/file S/col/$(< one)/doc/link
             ibifs copy --store S $(< one) D > /dev/null
             for i in $(seq 8); do printf 0123456789abcdef; done > token
             echo \"$(< token) $(sed -n 's/^ibi.archiveservice {rep \\([^ }]*\\).*/\\1/p' S/archive.ibi)\" > tokens
             chmod 600 token tokens
             cp -a S D before");
        let rep = env.sh("cat one");
        Pair { env, rep }
    }

    /// Has nothing of the item be copied before.
    fn uncopied(self) -> Pair {
        self.env.sh(
            "rm -rf before/D D; ibifs init D --host archive-b.example.net > /dev/null
             cp -a D before",
        );
        self
    }

    fn put_back(&self) {
        self.env.sh("rm -rf S D; cp -a before/S before/D .");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        command(&self.env, arguments)
    }

    /// The hand-over, to a store, a mount or a URL.
    fn transfer(&self, stopped: Stopped, url: &str) -> Command {
        let (from, to) = match stopped {
            stopped if stopped.is_served() => ("S", url),
            stopped if stopped.is_mounted() => ("M", "N"),
            _ => ("S", "D"),
        };
        let mut command = self.command(&["transfer", "--store", from, &self.rep, to]);
        if stopped.is_served() {
            command.args(["--token-file", "token"]);
        }
        command
    }

    /// Mounts both stores, one of them under supervision.
    #[track_caller]
    fn mount(&self, supervised: Option<&str>) -> Option<Supervised> {
        let mut found = None;
        for (store, mount_point) in [("S", "M"), ("D", "N")] {
            let mut command = self.command(&["mount", store, mount_point]);
            let output = if supervised == Some(store) {
                let root = self.env.root();
                let (daemon, child) = Supervised::start(&mut command, root, None);
                found = Some(daemon);
                child.wait_with_output()
            } else {
                command.output()
            };
            let output = output.expect("it runs");
            assert!(output.status.success(), "{output:?}");
        }
        found
    }

    fn unmount(&self) {
        for mount_point in ["M", "N"] {
            if super::fixture::is_mounted(&self.env.root().join(mount_point)) {
                self.env.sh(&format!("ibifs umount {mount_point}"));
            }
        }
    }

    /// Serves the store that takes; where, and what serves it.
    #[track_caller]
    fn serve(&self, supervised: bool) -> (String, Child, Option<Supervised>) {
        let mut command = self.command(&["serve", "D", "--listen", "127.0.0.1:0"]);
        command.args(["--transfer-token-file", "tokens"]);
        let (daemon, mut child) = if supervised {
            let root = self.env.root();
            let (daemon, child) = Supervised::start(&mut command, root, None);
            (Some(daemon), child)
        } else {
            (None, command.spawn().expect("it runs"))
        };
        let mut line = String::new();
        let printed = child.stdout.take().expect("its output");
        let read = BufReader::new(printed).read_line(&mut line);
        read.expect("a line");
        let url = line.trim_end().rsplit(' ').next().unwrap_or_default();
        assert!(url.starts_with("http://"), "{:?}", child.wait_with_output());
        (url.to_owned(), child, daemon)
    }

    /// Whether a store claims the original, as the sidecar in its tree says: what counts.
    fn claims(&self, store: &str) -> bool {
        let read = |path: String| std::fs::read_to_string(self.env.root().join(path));
        let facts = read(format!("{store}/archive.ibi")).expect("the facts");
        let mut facts = facts.lines();
        let service = facts.find(|line| line.starts_with("ibi.archiveservice "));
        let sidecar = read(format!("{store}/col/{}/.ibi", self.rep)).unwrap_or_default();
        sidecar.lines().any(|line| Some(line) == service)
    }

    fn has_content(&self, store: &str) -> bool {
        ["file", "link"].iter().all(|name| {
            let path = format!("{store}/col/{}/doc/{name}", self.rep);
            std::fs::read(self.env.root().join(path)).is_ok_and(|bytes| bytes == b"one\n")
        })
    }

    /// Checks the invariant that holds at every instant.
    #[track_caller]
    fn is_safe(&self, step: &str) {
        let claims = ["S", "D"].map(|store| self.claims(store));
        assert!(claims != [true, true], "two originals, {step}");
        let contents = ["S", "D"].map(|store| self.has_content(store));
        assert!(contents.contains(&true), "no content, {step}");
        for (claims, content) in claims.iter().zip(contents) {
            assert!(!claims || content, "claimed without its content, {step}");
        }
    }

    /// Checks the result at the end.
    #[track_caller]
    fn is_handed_over(&self, step: &str) {
        self.is_safe(step);
        assert!(self.claims("D") && !self.claims("S"), "not there, {step}");
        let both = self.has_content("S") && self.has_content("D");
        assert!(both, "not at both, {step}");
        let messages = self.env.sh("find S/handover D/handover -type f ! -name lock
             for s in S D; do
                 ibifs show --store $s $(< one) | sed -n 's/^state *//p'; ibifs fsck $s | tail -n 1
             done");
        let messages: Vec<&str> = messages.lines().collect();
        let (giver, taker) = ("3 items, 0 findings", "2 items, 0 findings");
        assert_eq!(messages, ["Copy", giver, "Original", taker], "{step}");
    }

    /// Puts the stores back, and starts what runs beside the command: where the service is, the service, and the process
    /// whose steps are stopped if it is not the command.
    #[track_caller]
    fn begin(&self, stopped: Stopped) -> (String, Option<Child>, Option<Supervised>) {
        self.put_back();
        let daemon = match stopped {
            Stopped::Command => None,
            Stopped::CommandOverMounts => {
                self.mount(None);
                None
            }
            Stopped::Giver => self.mount(Some("S")),
            Stopped::Taker => self.mount(Some("D")),
            Stopped::Sender | Stopped::Service => {
                let (url, child, supervised) = self.serve(stopped == Stopped::Service);
                return (url, Some(child), supervised);
            }
        };
        (String::new(), None, daemon)
    }

    /// Starts the same for the same command again, with nothing stopped.
    #[track_caller]
    fn begin_again(&self, stopped: Stopped) -> (String, Option<Child>) {
        if stopped.is_mounted() {
            self.mount(None);
        }
        if stopped.is_served() {
            let (url, child, _) = self.serve(false);
            return (url, Some(child));
        }
        (String::new(), None)
    }

    /// Makes the hand-over with a step stopped. False where it ended without having come to that.
    #[track_caller]
    fn stops_at(&self, stopped: Stopped, at: usize, what: What) -> bool {
        let (url, service, daemon) = self.begin(stopped);
        let command = self.transfer(stopped, &url);
        let (supervised, output) = self.run_stopped(command, daemon, at, what);
        let reached = supervised.reached();
        let step = format!("{stopped:?}, {what:?} at {}", supervised.step());
        self.is_safe(&step);
        self.unmount();
        end(service);
        supervised.wait();
        if !reached {
            assert!(output.status.success(), "{step}: {output:?}");
            self.is_handed_over("unstopped");
            return false;
        }
        self.is_safe(&step);
        let (url, service) = self.begin_again(stopped);
        let again = self.transfer(stopped, &url).output().expect("it runs");
        end(service);
        self.unmount();
        // A second call is refused if the first has completed: the item is no longer an original.
        let is_done = again.status.code() == Some(4) && self.claims("D");
        assert!(again.status.success() || is_done, "{step}: {again:?}");
        self.is_handed_over(&step);
        true
    }

    /// Runs the command, of which a step is stopped, or of the daemon that is given.
    fn run_stopped(
        &self,
        mut command: Command,
        daemon: Option<Supervised>,
        at: usize,
        what: What,
    ) -> (Supervised, Output) {
        match daemon {
            Some(daemon) => {
                daemon.arm(at, what);
                let output = command.output().expect("it runs");
                daemon.disarm();
                (daemon, output)
            }
            None => {
                let root = self.env.root();
                let (supervised, child) = Supervised::start(&mut command, root, Some((at, what)));
                (supervised, child.wait_with_output().expect("it ends"))
            }
        }
    }

    #[track_caller]
    fn at_steps(&self, stopped: Stopped, what: What, stride: usize) {
        let steps = (1..MANY).step_by(stride);
        let count = steps
            .take_while(|at| self.stops_at(stopped, *at, what))
            .count();
        println!("{stopped:?}, {what:?}: stopped at {count} steps");
        assert!(count > 2, "{stopped:?} has steps");
    }
}

/// Ends a service that is not needed any more.
fn end(service: Option<Child>) {
    if let Some(mut service) = service {
        let _ = service.kill();
        let _ = service.wait();
    }
}

/// A transfer that was begun and is cancelled, with the receiver or without it.
impl Pair {
    /// Puts the transfer back to where the giver had named the receiver, and the receiver not got the token.
    fn begun(self) -> Pair {
        self.env.sh(
            "service() { sed -n 's/^ibi.archiveservice {rep \\([^ }]*\\).*/\\1/p' $1/archive.ibi; }
             rm -rf S D; cp -a before/S before/D .
             for s in S D; do mkdir -p -m 700 $s/handover; mkdir -p $s/handover/col/$(dirname $(< one)); done
             printf 'ibi {rep %s}\\nto {rep %s}\\nword 0123abcd\\n' $(< one) $(service D) > S/handover/col/$(< one)
             printf 'ibi {rep %s}\\nfrom {rep %s}\\nword 0123abcd\\n' $(< one) $(service S) > D/handover/col/$(< one)
             sed -i \"s|^ibi.archiveservice .*|$(grep ^ibi.archiveservice D/archive.ibi)|\" S/col/$(< one)/.ibi; ibifs reindex S
             service D > gone
             rm -rf before; mkdir before; cp -a S D before",
        );
        self
    }

    fn cancel(&self, stopped: Stopped, url: &str, is_gone: bool) -> Command {
        let gone = self.env.sh("cat gone");
        let (from, to) = match stopped {
            stopped if stopped.is_served() => ("S", url),
            stopped if stopped.is_mounted() => ("M", "N"),
            _ => ("S", "D"),
        };
        let to = if is_gone { &gone } else { to };
        let mut command = self.command(&["transfer", "--cancel", "--store", from, &self.rep, to]);
        if is_gone {
            command.arg("--receiver-is-gone");
        }
        if stopped.is_served() {
            command.args(["--token-file", "token"]);
        }
        command
    }

    /// Cancels the transfer with a step stopped, and again. False where it ended without having come to that.
    #[track_caller]
    fn cancel_stops_at(&self, stopped: Stopped, is_gone: bool, at: usize, what: What) -> bool {
        let (url, service, daemon) = self.begin(stopped);
        let command = self.cancel(stopped, &url, is_gone);
        let (supervised, output) = self.run_stopped(command, daemon, at, what);
        let reached = supervised.reached();
        let step = format!("cancel, {stopped:?}, {what:?} at {}", supervised.step());
        self.is_safe(&step);
        self.unmount();
        end(service);
        supervised.wait();
        self.is_safe(&step);
        if !reached {
            assert!(output.status.success(), "{step}: {output:?}");
        } else {
            let (url, service) = self.begin_again(stopped);
            let again = self.cancel(stopped, &url, is_gone);
            let again = { again }.output().expect("it runs");
            end(service);
            self.unmount();
            // A second call is refused if the first has completed: the transfer is no longer pending.
            let is_done = again.status.code() == Some(4) && self.claims("S");
            assert!(again.status.success() || is_done, "{step}: {again:?}");
        }
        self.is_safe(&step);
        assert!(self.claims("S") && !self.claims("D"), "not here, {step}");
        let records = self.env.sh(
            "find S/handover D/handover -type f ! -name lock | cut -d / -f 1 | xargs
             ibifs fsck S | cut -d : -f 1; ibifs fsck D | cut -d : -f 1",
        );
        let records: Vec<&str> = records.lines().collect();
        let kept: &[&str] = &[
            "S D",
            "handover-cancelled",
            "3 items, 1 finding",
            "2 items, 0 findings",
        ];
        let none: &[&str] = &["", "3 items, 0 findings", "2 items, 0 findings"];
        assert_eq!(records, if is_gone { kept } else { none }, "{step}");
        reached
    }

    #[track_caller]
    fn cancel_at_steps(&self, stopped: Stopped, is_gone: bool, what: What, stride: usize) {
        let steps = (1..MANY).step_by(stride);
        let count = steps
            .take_while(|at| self.cancel_stops_at(stopped, is_gone, *at, what))
            .count();
        println!("cancel, {stopped:?}, {what:?}: stopped at {count} steps");
        assert!(count > 2, "{stopped:?} has steps");
    }
}

#[test]
fn a_cancellation_is_killed() {
    let pair = Pair::new().begun();
    pair.cancel_at_steps(Stopped::Command, false, What::Kill, stride(5));
    pair.cancel_at_steps(Stopped::Command, false, What::Fail(libc::ENOSPC), stride(6));
}

#[test]
fn a_cancellation_without_the_receiver_is_killed() {
    let pair = Pair::new().begun();
    pair.cancel_at_steps(Stopped::Command, true, What::Kill, stride(4));
    pair.cancel_at_steps(Stopped::Command, true, What::Fail(libc::ENOSPC), stride(5));
}

#[test]
fn a_cancellation_over_mounts_is_killed() {
    let pair = Pair::new().begun();
    pair.cancel_at_steps(Stopped::CommandOverMounts, false, What::Kill, stride(4));
    pair.cancel_at_steps(Stopped::Giver, true, What::Kill, 1);
}

#[test]
fn the_service_is_killed_during_a_cancellation() {
    let pair = Pair::new().begun();
    pair.cancel_at_steps(Stopped::Sender, false, What::Kill, stride(5));
    pair.cancel_at_steps(Stopped::Service, false, What::Kill, stride(3));
}

#[test]
fn killed_while_it_copies() {
    let pair = Pair::new().uncopied();
    pair.at_steps(Stopped::Command, What::Kill, stride(STRIDE));
    pair.at_steps(Stopped::Command, What::Fail(libc::ENOSPC), stride(STRIDE));
}

#[test]
fn killed_between_stores() {
    Pair::new().at_steps(Stopped::Command, What::Kill, stride(7));
}

#[test]
fn failing_between_stores() {
    Pair::new().at_steps(Stopped::Command, What::Fail(libc::EIO), stride(8));
}

#[test]
fn killed_between_mounts() {
    Pair::new().at_steps(Stopped::CommandOverMounts, What::Kill, stride(7));
}

#[test]
fn the_daemon_that_gives_is_killed() {
    Pair::new().at_steps(Stopped::Giver, What::Kill, 1);
}

#[test]
fn the_daemon_that_takes_is_killed() {
    Pair::new().at_steps(Stopped::Taker, What::Kill, 1);
}

#[test]
fn the_sender_is_killed() {
    Pair::new().at_steps(Stopped::Sender, What::Kill, stride(7));
}

#[test]
fn the_service_that_takes_is_killed() {
    Pair::new().at_steps(Stopped::Service, What::Kill, stride(9));
}

#[test]
fn the_service_that_takes_is_killed_while_it_copies() {
    let pair = Pair::new().uncopied();
    pair.at_steps(Stopped::Service, What::Kill, stride(STRIDE));
    pair.at_steps(Stopped::Service, What::Fail(libc::EIO), stride(STRIDE));
}
