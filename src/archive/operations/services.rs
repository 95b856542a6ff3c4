//! The services that run on a store: files in its directory that start with `serving.`, each locked by a process, which
//! it names. The lock ends with the process, however that ends; a file that is not locked is left, and used again.

use std::io::{Read, Write};
use std::path::Path;

use rustix::fs::FlockOperation;

use super::ArchiveError;
use super::lock::{is_locked, word_in};
use crate::archive::tree::Tree;
use crate::os::identity::{Process, host_name};
use crate::os::serving::Server;
use ibi::Timestamp;
use ibi::pairs::{percent_decode, percent_encode};

/// The start of the names of the files.
pub const SERVICE_FILES: &str = "serving.";

/// The most services of a host that are recorded.
const MOST: u32 = 64;

/// The longest text of a file.
const LONGEST: u64 = 8192;

/// A service that runs on a store, or that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name of its host.
    pub host: String,
    /// Its process.
    pub process: Process,
    /// The user as whom it runs.
    pub user: String,
    /// The URL of the socket on which it listens.
    pub address: String,
    /// The URL at which it is reached.
    pub url: String,
    /// The time at which it began to listen.
    pub since: Option<Timestamp>,
}

/// The state of a service, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceState {
    /// Its lock is held.
    Running,
    /// It is of another host, and the filesystem may not say here what is locked there.
    Unknown,
}

/// The record of the service of this process, until that ends.
#[derive(Debug)]
pub struct ServiceRecord {
    file: std::fs::File,
}

impl ServiceRecord {
    /// Takes a file that no other process has locked. None if there are too many services.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begin(store: &Path) -> Result<Option<ServiceRecord>, ArchiveError> {
        let tree = Tree::open_as_it_is(store)?;
        // Another host may not see that a file is locked.
        let host = match Server::of(tree.root()) {
            Server::Kernel => String::new(),
            Server::Process | Server::Machine => format!("{}.", host_name().replace('/', "_")),
        };
        for number in 1..=MOST {
            let file = tree.open_own(&format!("{SERVICE_FILES}{host}{number}"))?;
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                // It names another process.
                let _ = file.set_len(0);
                return Ok(Some(ServiceRecord { file }));
            }
        }
        Ok(None)
    }

    /// Writes who the service is, when it listens. Only the open file is used, so that this process may have given up its
    /// rights meanwhile.
    ///
    /// # Errors
    /// Those of writing.
    pub fn describe(
        &self,
        user: &str,
        address: &str,
        url: &str,
        since: &Timestamp,
    ) -> std::io::Result<()> {
        let process = Process::own();
        let (pid, started) = (process.pid.to_string(), process.started.to_string());
        let words = [
            ("host", host_name().as_str()),
            ("machine", &process.machine),
            ("pid", &pid),
            ("started", &started),
            ("user", user),
            ("address", address),
            ("url", url),
            ("since", &since.to_rfc3339()),
        ]
        .map(|(name, word)| format!("{name} {}\n", percent_encode(word)));
        (&self.file).write_all(words.concat().as_bytes())
    }
}

/// The services that run on a store. None if the caller may not read which.
pub fn services(store: &Path) -> Option<Vec<(Service, ServiceState)>> {
    let tree = Tree::open_as_it_is(store).ok()?;
    let mut names = Vec::new();
    let listed = tree.each_name(".", |name, _| {
        let name = std::str::from_utf8(name).unwrap_or_default();
        if name.starts_with(SERVICE_FILES) {
            names.push(name.to_owned());
        }
    });
    listed.ok()?;
    names.sort();
    let has_kernel = Server::of(tree.root()) == Server::Kernel;
    let machine = Process::own().machine;
    let mut found = Vec::new();
    for name in names {
        let Some(file) = tree.read_own(&name).ok()? else {
            continue;
        };
        // A service that starts at this instant takes the next file.
        let is_locked = is_locked(&file);
        let mut text = Vec::new();
        if file.take(LONGEST).read_to_end(&mut text).is_err() {
            continue;
        }
        let Some(service) = parse(&text) else {
            // It does not listen yet.
            continue;
        };
        if is_locked {
            found.push((service, ServiceState::Running));
        } else if !has_kernel && service.process.machine != machine {
            found.push((service, ServiceState::Unknown));
        }
    }
    Some(found)
}

fn parse(text: &[u8]) -> Option<Service> {
    let word = |name| {
        let word = percent_decode(&word_in(text, name)?);
        Some(String::from_utf8_lossy(&word).into_owned())
    };
    Some(Service {
        host: word("host")?,
        process: Process {
            machine: word("machine")?,
            pid: word("pid")?.parse().ok()?,
            started: word("started")?.parse().ok()?,
        },
        user: word("user")?,
        address: word("address")?,
        url: word("url")?,
        since: Timestamp::parse_rfc3339(&word("since")?).ok(),
    })
}
