//! A store that is served, or a resolver, on a free port of this machine, until dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use ibifs::resolver::registry::{Registry, RegistryPlace};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{TestEnv, assert_printed};

/// The database of a resolver in the environment: a file, or one in PostgreSQL with `IBIFS_TEST_INDEX=postgres`.
#[track_caller]
pub fn registry(env: &TestEnv, file: &str) -> Registry {
    let place = env.sh(&format!("registry_at \"$PWD/{file}\""));
    let place = RegistryPlace::parse(place.as_ref()).expect("a place");
    Registry::open(&place).expect("a registry")
}

/// The functions that every script here may use.
const TOOLS: &str = r#"
# The status, and the value of a header line, of an answer.
status() { curl -s -o /dev/null -w '%{http_code}\n' --path-as-is "$@"; }
line() { curl -s -D - -o /dev/null --path-as-is "${@:2}" | tr -d '\r' | sed -n "s/^$1: //Ip"; }
get() { curl -sS --fail --path-as-is "$@"; }
"#;

/// A running `ibifs serve` or `ibifs resolver`.
#[derive(Debug)]
pub struct Served {
    child: Child,
    /// The URL of the service: `http://127.0.0.1:port`.
    pub url: String,
    printed: BufReader<ChildStdout>,
}

impl Served {
    /// Serves a store of the environment: its name, and options if there are any.
    #[track_caller]
    pub fn start(env: &TestEnv, store: &str) -> Served {
        Served::run(env, &format!("serve {store}"))
    }

    /// Runs the resolver whose database is `r.db` in the environment, with these options.
    #[track_caller]
    pub fn resolver(env: &TestEnv, options: &str) -> Served {
        Served::run(env, &format!("resolver --db r.db {options}"))
    }

    #[track_caller]
    fn run(env: &TestEnv, command: &str) -> Served {
        Served::within(env, "", command)
    }

    /// Runs the command by another, which ends by executing it.
    #[track_caller]
    pub fn within(env: &TestEnv, by: &str, command: &str) -> Served {
        let script = format!("becomes {by} ibifs {command} --listen 127.0.0.1:0");
        let mut child = env
            .command(&script)
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash runs");
        let mut printed = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        printed.read_line(&mut line).expect("a line");
        let url = line.trim_end().rsplit(' ').next().unwrap_or_default();
        let url = url.trim_end_matches('/').to_owned();
        let is_url = ["http://127.0.0.1:", "https://127.0.0.1:"]
            .iter()
            .any(|begin| url.starts_with(begin));
        assert!(is_url, "printed: {line}");
        Served {
            child,
            url,
            printed,
        }
    }

    /// The next line that it prints.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.printed.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Returns the address at which it listens: `127.0.0.1:port`.
    pub fn address(&self) -> &str {
        self.url
            .trim_start_matches("http://")
            .trim_start_matches("https://")
    }

    /// Ends it by SIGKILL, as a crash does.
    #[track_caller]
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
        // What ends a service in order is not needed.
        std::mem::forget(self);
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Runs a script that must succeed; `$U` is where the store is served.
    #[track_caller]
    pub fn sh(&self, env: &TestEnv, script: &str) -> String {
        env.sh(&format!("U={}\n{TOOLS}\n{script}", self.url))
    }

    /// Runs a script that must print exactly this.
    #[track_caller]
    pub fn prints(&self, env: &TestEnv, script: &str, expected: &str) {
        let printed = self.sh(env, script);
        assert_printed(&printed, expected, script);
    }
}

/// A test environment of which something is served, and what its scripts may use.
#[derive(Debug)]
pub struct Fixture {
    /// The service. It ends before the environment does.
    pub served: Served,
    /// The environment.
    pub env: TestEnv,
    tools: String,
}

impl Fixture {
    /// A test environment, what is served of it, and the beginning of every script.
    pub fn new(env: TestEnv, served: Served, tools: impl Into<String>) -> Fixture {
        Fixture {
            served,
            env,
            tools: tools.into(),
        }
    }

    /// The environment, after nothing of it is served any more.
    pub fn end(self) -> TestEnv {
        drop(self.served);
        self.env
    }

    /// Runs a script that must succeed.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        let script = format!("{}\n{script}", self.tools);
        self.served.sh(&self.env, &script)
    }

    /// Runs a script that must print exactly this.
    #[track_caller]
    pub fn prints(&self, script: &str, expected: &str) {
        assert_printed(&self.sh(script), expected, script);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that hangs, which the test has found, does not hang the test.
        let signal = if std::thread::panicking() {
            Signal::KILL
        } else {
            Signal::TERM
        };
        let messages = kill_process(Pid::from_child(&self.child), signal);
        let status = self.child.wait();
        if !std::thread::panicking() {
            messages.expect("it has not ended early");
            let status = status.expect("its end");
            assert!(status.success(), "it ends with {status}");
        }
    }
}
