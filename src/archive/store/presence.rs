//! The processes that write an index in a server. flock(2) keeps processes of one machine apart; those of others see a
//! row of the table `host`.
//!
//! The row is renewed every [`BEAT`] and counts for [`LAPSE`], by the clock of the server, and from its start on: no
//! process could renew a row while it was down. Each transaction that writes
//! looks for its own row, so that a process that was taken for dead, and goes on later, writes nothing. A process that
//! removes the row of another takes over the recovery marks of that one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::{SOON, Store, StoreError, random_number, spawn};
use crate::os::identity::{Process, host_name};
use crate::sql::engine::{Connection, Postgres, Sync, params};
use crate::sql::index_url::IndexUrl;

/// The interval at which a row is renewed.
pub const BEAT: Duration = Duration::from_secs(3);

/// The time after which it is tried again if that has failed.
const BEAT_AGAIN: Duration = Duration::from_secs(1);

/// The seconds for which a row counts.
const LAPSE: i64 = 15;

/// The time that a process may take to end after it has released its locks.
const ENDING: Duration = Duration::from_secs(3);

/// The time that it waits for such a process before it looks again.
const GLANCE: Duration = Duration::from_millis(100);

/// The other processes that may write the store, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// None may.
    Alone,
    /// Those may that say so themselves.
    Shared,
}

/// The state of the row of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Present,
    /// Another process has removed it: this one was not heard of for too long.
    Lapsed,
}

/// A process that has an index open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// The path at which it has mounted the store, if it has.
    pub mount_point: Option<String>,
    /// The other processes that may write the index, too.
    pub sharing: Sharing,
    /// The seconds for which it has had the index open.
    pub open_for: u64,
    /// The seconds since it was last heard of.
    pub silent_for: u64,
    /// The number of its recovery marks: what has to be looked at again if it ends now.
    pub marks: u64,
}

impl HostState {
    /// Whether it counts: it was heard of lately.
    pub fn is_alive(&self) -> bool {
        self.silent_for < LAPSE.unsigned_abs()
    }
}

/// The row of this process. The thread that renews it ends with this value.
#[derive(Debug)]
pub(super) struct Presence {
    id: Arc<AtomicI64>,
    /// Nothing is sent; the thread notices when it is dropped.
    _needed: Sender<()>,
}

const HOSTS: &str = "SELECT id, name, machine, pid, started, mount_point, shared,
    CAST(extract(epoch FROM clock_timestamp() - since) AS BIGINT) AS open_for,
    CAST(extract(epoch FROM clock_timestamp() - greatest(beat, pg_postmaster_start_time())) AS BIGINT) AS silent_for,
    (SELECT count(*) FROM unsettled WHERE abs(unsettled.host) = host.id)
      + (SELECT count(*) FROM touched WHERE abs(touched.host) = host.id)
      + (SELECT count(*) FROM joint WHERE abs(joint.host) = host.id) AS marks
    FROM host ORDER BY since, id";

/// The condition for marks of processes that have no row.
const ORPHANED: &str = "abs(host) NOT IN (SELECT id FROM host)";

/// A row: its number, the process, and what is known of it.
type HostRow = (i64, Process, HostState);

impl Store {
    /// Registers this process as one that writes the index, if it is in a server, and takes over the recovery marks of
    /// those that have ended.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process, of which was heard lately, writes it, and not both share it.
    pub(in crate::archive) fn enter(&self, sharing: Sharing) -> Result<(), StoreError> {
        let Some(url) = &self.url else {
            return Ok(());
        };
        let id = random_number()? & i64::MAX;
        self.insert_row(id, sharing)?;
        let (needed, end) = mpsc::channel();
        let (url, id) = (url.clone(), Arc::new(AtomicI64::new(id)));
        let renewed = Arc::clone(&id);
        spawn("presence", move || renew(&url, &renewed, &end))?;
        *self.presence.lock() = Some(Presence {
            id,
            _needed: needed,
        });
        Ok(())
    }

    /// Registers a process again that has lapsed. It has another number then, and the marks that it has left, unless
    /// another process has taken them over.
    pub(in crate::archive) fn enter_again(&self, sharing: Sharing) -> Result<(), StoreError> {
        let presence = self.presence.lock();
        let Some(presence) = &*presence else {
            return Ok(());
        };
        let id = random_number()? & i64::MAX;
        self.lock().write_as(None);
        self.insert_row(id, sharing)?;
        presence.id.store(id, Ordering::SeqCst);
        Ok(())
    }

    fn insert_row(&self, id: i64, sharing: Sharing) -> Result<(), StoreError> {
        let own = Process::own();
        let name = host_name();
        let connection = self.lock();
        let started = Instant::now();
        let insert = || {
            connection.transact(Sync::Now, |transaction| {
                for (other, process, state) in rows(transaction)? {
                    let is_own = process == own;
                    let shares = sharing == Sharing::Shared && state.sharing == sharing;
                    if is_own || is_gone(&process, &state) {
                        delete(transaction, other)?;
                    } else if !shares {
                        return Err(StoreError::InUse {
                            host: state.host,
                            pid: state.pid,
                        });
                    }
                }
                transaction.execute(
                    "INSERT INTO host (id, shared, name, machine, pid, started, since, beat)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, clock_timestamp(), clock_timestamp())",
                    params![
                        id,
                        i64::from(sharing == Sharing::Shared),
                        &name,
                        &own.machine,
                        own.pid,
                        i64::try_from(own.started).unwrap_or(i64::MAX)
                    ],
                )?;
                take_marks(transaction, id)
            })
        };
        // The caller has the lock of the store's directory: a process of this machine has released it, and is ending.
        loop {
            match insert() {
                Err(StoreError::InUse { host, .. })
                    if host == name && started.elapsed() < ENDING =>
                {
                    std::thread::sleep(GLANCE);
                }
                entered => break entered?,
            }
        }
        connection.write_as(Some(id));
        Ok(())
    }

    /// Returns whether this process may still write.
    pub fn standing(&self) -> Result<Standing, StoreError> {
        let Some(id) = self.own_number() else {
            return Ok(Standing::Present);
        };
        let sql = "SELECT 1 FROM host WHERE id = ?1";
        Ok(if self.lock().exists(sql, params![id])? {
            Standing::Present
        } else {
            Standing::Lapsed
        })
    }

    /// Removes the rows of processes that are gone, and takes over their recovery marks. Returns whether there are any.
    pub(in crate::archive) fn take_over(&self) -> Result<bool, StoreError> {
        let Some(id) = self.own_number() else {
            return Ok(false);
        };
        let connection = self.lock();
        // Most of the time there is nothing to do, and nothing is written.
        let is_any_gone = rows(&connection)?
            .iter()
            .any(|(other, process, state)| *other != id && is_gone(process, state));
        let is_marked = "SELECT 1 FROM host WHERE id = ?1 AND (
            EXISTS (SELECT 1 FROM unsettled WHERE ORPHANED)
            OR EXISTS (SELECT 1 FROM touched WHERE ORPHANED)
            OR EXISTS (SELECT 1 FROM joint WHERE ORPHANED)
            OR EXISTS (SELECT 1 FROM content_mark WHERE ORPHANED))";
        let is_marked = is_marked.replace("ORPHANED", ORPHANED);
        if !is_any_gone && !connection.exists(&is_marked, params![id])? {
            return Ok(false);
        }
        connection.transact(Sync::Now, |transaction| {
            for (other, process, state) in rows(transaction)? {
                if other != id && is_gone(&process, &state) {
                    delete(transaction, other)?;
                }
            }
            take_marks(transaction, id)
        })?;
        Ok(true)
    }

    /// Notes where this process has mounted the store.
    pub(in crate::archive) fn mounted_at(&self, mount_point: &str) -> Result<(), StoreError> {
        let Some(id) = self.own_number() else {
            return Ok(());
        };
        self.write(Sync::Now, |transaction| {
            let sql = "UPDATE host SET mount_point = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id, mount_point])
        })
    }

    /// The number of this process among those that write the index, if it is in a server.
    pub fn own_number(&self) -> Option<i64> {
        let presence = self.presence.lock();
        let presence = presence.as_ref()?;
        Some(presence.id.load(Ordering::SeqCst))
    }

    /// Removes the row of this process.
    pub(in crate::archive) fn leave(&self) {
        let Some(presence) = self.presence.lock().take() else {
            return;
        };
        let connection = self.lock();
        connection.write_as(None);
        // A dump that is put back has the rows of earlier numbers.
        let own = Process::own();
        let sql = "DELETE FROM host WHERE id = ?1 OR machine = ?2 AND pid = ?3 AND started = ?4";
        let values = params![
            presence.id.load(Ordering::SeqCst),
            &own.machine,
            own.pid,
            i64::try_from(own.started).unwrap_or(i64::MAX)
        ];
        if let Err(error) = connection.execute(sql, values) {
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

    /// The numbers of the processes that have the index open for writing.
    pub fn host_numbers(&self) -> Result<HashSet<i64>, StoreError> {
        let numbers = self
            .lock()
            .each("SELECT id FROM host", &[], |row| row.get(0))?;
        Ok(numbers.into_iter().collect())
    }
}

/// Whether a process has ended or counts as dead.
fn is_gone(process: &Process, state: &HostState) -> bool {
    process.has_ended() || !state.is_alive()
}

fn delete(connection: &Connection, id: i64) -> Result<(), StoreError> {
    connection.execute("DELETE FROM host WHERE id = ?1", params![id])
}

/// Makes the marks of processes that have no row those that this process has taken over.
fn take_marks(connection: &Connection, id: i64) -> Result<(), StoreError> {
    for table in ["unsettled", "joint"] {
        let sql = format!("UPDATE {table} SET host = ?1 WHERE {ORPHANED}");
        connection.execute(&sql, params![-id])?;
    }
    // Several may have left the same mark.
    for (table, column) in [("touched", "level"), ("content_mark", "block")] {
        let sql = format!(
            "INSERT INTO {table} ({column}, host) SELECT DISTINCT {column}, CAST(?1 AS BIGINT) FROM {table}
             WHERE {ORPHANED} ON CONFLICT DO NOTHING"
        );
        connection.execute(&sql, params![-id])?;
        connection.execute(&format!("DELETE FROM {table} WHERE {ORPHANED}"), &[])?;
    }
    Ok(())
}

/// All rows.
fn rows(connection: &Connection) -> Result<Vec<HostRow>, StoreError> {
    connection.each(HOSTS, &[], |row| {
        let pid: u32 = row.get("pid")?;
        let number = |column: &str| -> Result<u64, StoreError> {
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
                sharing: match row.get::<i64>("shared")? {
                    0 => Sharing::Alone,
                    _ => Sharing::Shared,
                },
                open_for: number("open_for")?,
                silent_for: number("silent_for")?,
                marks: number("marks")?,
            },
        ))
    })
}

/// Renews a row while it is needed. A command that ends soon has no second connection.
fn renew(url: &IndexUrl, id: &AtomicI64, end: &Receiver<()>) {
    let mut server = None;
    let mut pause = BEAT;
    while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = BEAT_AGAIN;
        if server.is_none() {
            server = Postgres::connect(url, SOON).ok();
        }
        let Some(server) = &server else { continue };
        let sql = "UPDATE host SET beat = clock_timestamp() WHERE id = ?1";
        match server.execute(sql, params![id.load(Ordering::SeqCst)]) {
            Ok(()) => pause = BEAT,
            Err(error) => log::debug!("the server of the index is away: {}", error.cause()),
        }
    }
}
