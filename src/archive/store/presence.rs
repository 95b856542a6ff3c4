//! Which process writes an index in a server. flock(2) keeps processes of one machine apart; those of others see a row
//! of the table `host`.
//!
//! The row is renewed every [`BEAT`] and counts for [`LAPSE`], by the clock of the server. Each transaction that writes
//! looks for its own row, so that a process that was taken for dead, and goes on later, writes nothing.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::engine::{Connection, Postgres, Sync, params};
use super::{SOON, Store, StoreError, random_number, spawn};
use crate::formats::index_url::IndexUrl;
use crate::os::identity::Process;

/// How often a row is renewed.
const BEAT: Duration = Duration::from_secs(3);

/// For how many seconds a row counts.
const LAPSE: i64 = 15;

/// How long a process may take to end after it has released its locks.
const ENDING: Duration = Duration::from_secs(3);

/// How long it waits for such a process before it looks again.
const GLANCE: Duration = Duration::from_millis(100);

/// A process that has an index open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Where it has mounted the store, if it has.
    pub mount_point: Option<String>,
    /// For how many seconds it has had the index open.
    pub open_for: u64,
    /// How many seconds ago it was last heard of.
    pub silent_for: u64,
}

/// The row of this process. The thread that renews it ends with this value.
#[derive(Debug)]
pub(super) struct Presence {
    id: i64,
    /// Nothing is sent; the thread notices when it is dropped.
    _needed: Sender<()>,
}

const HOSTS: &str = "SELECT id, name, machine, pid, started, mount_point,
    CAST(extract(epoch FROM clock_timestamp() - since) AS BIGINT) AS open_for,
    CAST(extract(epoch FROM clock_timestamp() - beat) AS BIGINT) AS silent_for
    FROM host ORDER BY since, id";

impl Store {
    /// Registers this process as the one that writes the index, if it is in a server.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process writes it, of which was heard lately.
    pub fn enter(&self) -> Result<(), StoreError> {
        let Some(url) = &self.url else {
            return Ok(());
        };
        let own = Process::own();
        let node = rustix::system::uname();
        let name = node.nodename().to_string_lossy().into_owned();
        let id = random_number()?;
        let connection = self.lock();
        let started = Instant::now();
        let enter = || {
            connection.transact(Sync::Now, |transaction| {
                for (other, process, state) in rows(transaction)? {
                    if !process.has_ended() && state.silent_for < LAPSE.unsigned_abs() {
                        return Err(StoreError::InUse {
                            host: state.host,
                            pid: state.pid,
                        });
                    }
                    transaction.execute("DELETE FROM host WHERE id = ?1", params![other])?;
                }
                transaction.execute(
                    "INSERT INTO host (id, name, machine, pid, started, since, beat)
                 VALUES (?1, ?2, ?3, ?4, ?5, clock_timestamp(), clock_timestamp())",
                    params![
                        id,
                        &name,
                        &own.machine,
                        own.pid,
                        i64::try_from(own.started).unwrap_or(i64::MAX)
                    ],
                )
            })
        };
        // The caller has the lock of the store's directory: a process of this machine has released it, and is ending.
        loop {
            match enter() {
                Err(StoreError::InUse { host, .. })
                    if host == name && started.elapsed() < ENDING =>
                {
                    std::thread::sleep(GLANCE);
                }
                entered => break entered?,
            }
        }
        connection.write_as(Some(id));
        let (needed, end) = mpsc::channel();
        let url = url.clone();
        spawn("presence", move || renew(&url, id, &end))?;
        *self.presence.lock() = Some(Presence {
            id,
            _needed: needed,
        });
        Ok(())
    }

    /// Notes where this process has mounted the store.
    pub fn mounted_at(&self, mount_point: &str) -> Result<(), StoreError> {
        let id = self.presence.lock().as_ref().map(|presence| presence.id);
        let Some(id) = id else { return Ok(()) };
        self.write(Sync::Now, |transaction| {
            let sql = "UPDATE host SET mount_point = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id, mount_point])
        })
    }

    /// Removes the row of this process.
    pub fn leave(&self) {
        let Some(presence) = self.presence.lock().take() else {
            return;
        };
        let connection = self.lock();
        connection.write_as(None);
        let sql = "DELETE FROM host WHERE id = ?1";
        if let Err(error) = connection.execute(sql, params![presence.id]) {
            log::debug!(
                "the index counts as in use for {LAPSE} s: {}",
                error.cause()
            );
        }
    }

    /// The processes that have the index open for writing, the first one first; none if the index is a file.
    pub fn hosts(&self) -> Result<Vec<HostState>, StoreError> {
        if self.url.is_none() {
            return Ok(Vec::new());
        }
        let found = rows(&self.lock())?.into_iter();
        Ok(found
            .filter(|(_, process, _)| !process.has_ended())
            .map(|(_, _, state)| state)
            .collect())
    }
}

/// All rows: their numbers, the processes, and what is known of them.
fn rows(connection: &Connection) -> Result<Vec<(i64, Process, HostState)>, StoreError> {
    connection.each(HOSTS, &[], |row| {
        let pid: u32 = row.get("pid")?;
        let seconds = |column: &str| -> Result<u64, StoreError> {
            Ok(row.get::<i64>(column)?.max(0).unsigned_abs())
        };
        Ok((
            row.get("id")?,
            Process {
                machine: row.get("machine")?,
                pid,
                started: row.get::<i64>("started")?.unsigned_abs(),
            },
            HostState {
                host: row.get("name")?,
                pid,
                mount_point: row.get("mount_point")?,
                open_for: seconds("open_for")?,
                silent_for: seconds("silent_for")?,
            },
        ))
    })
}

/// Renews a row while it is needed. A command that ends soon has no second connection.
fn renew(url: &IndexUrl, id: i64, end: &Receiver<()>) {
    let mut server = None;
    while end.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
        if server.is_none() {
            server = Postgres::connect(url, SOON).ok();
        }
        let Some(server) = &server else { continue };
        let sql = "UPDATE host SET beat = clock_timestamp() WHERE id = ?1";
        if let Err(error) = server.execute(sql, params![id]) {
            log::debug!("the server of the index is away: {}", error.cause());
        }
    }
}
