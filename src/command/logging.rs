//! The log: to standard error, to the journal, or to the system's log.
//!
//! A command and a mount in the foreground write to standard error. If standard error is the journal,
//! each line begins with its priority, as in sd-daemon(3). A mount in the background has closed the
//! terminal and writes to `/dev/log`, which journald and syslog daemons read.
//!
//! `RUST_LOG` sets the level. A level that is set here overrides it for all of ibifs.

use std::io::Write;
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};

use ibi::Timestamp;
use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::RwLock;

use crate::archive::{Clock, SystemClock};
use crate::command::terminal::OneLine;
use crate::fuse::mount::LogChange;

/// The socket of the system's log.
const SYSTEM_LOG: &str = "/dev/log";

/// The facility of daemons, as syslog(3) numbers it.
const DAEMON: u8 = 3 << 3;

static LOGGER: Logger = Logger {
    chosen: RwLock::new(None),
};

/// Whether standard error has been closed.
static IS_DETACHED: AtomicBool = AtomicBool::new(false);

/// The logger, which is replaced when the level changes.
struct Logger {
    chosen: RwLock<Option<env_logger::Logger>>,
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.with(|logger| logger.enabled(metadata))
            .unwrap_or(false)
    }

    fn log(&self, record: &Record<'_>) {
        self.with(|logger| logger.log(record));
    }

    fn flush(&self) {}
}

impl Logger {
    fn with<T>(&self, action: impl FnOnce(&env_logger::Logger) -> T) -> Option<T> {
        self.chosen.read().as_ref().map(action)
    }

    fn choose(&self, level: Option<LevelFilter>) {
        let logger = build(level);
        log::set_max_level(logger.filter());
        *self.chosen.write() = Some(logger);
    }
}

/// Starts the log at the level of RUST_LOG; by default, warnings and errors.
pub fn start() {
    LOGGER.choose(None);
    if log::set_logger(&LOGGER).is_err() {
        log::warn!("another logger was there first");
    }
}

/// Logs messages of ibifs of this level and above from now on.
pub fn set_level(level: LevelFilter) {
    LOGGER.choose(Some(level));
}

/// Raises or lowers the level by one, between errors and debug.
pub fn change(change: LogChange) {
    let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug];
    let is_logged = |level: &&Level| {
        let metadata = Metadata::builder().level(**level).target("ibifs").build();
        LOGGER.enabled(&metadata)
    };
    let count = levels.iter().take_while(is_logged).count();
    let wanted = match change {
        LogChange::More => count,
        LogChange::Less => count.saturating_sub(2),
    };
    let Some(level) = levels.get(wanted) else {
        return;
    };
    // Logged at the lower of the two levels, where warnings may be shown.
    let report = || log::warn!("logging {} and graver", level.as_str().to_lowercase());
    if change == LogChange::Less {
        report();
    }
    set_level(level.to_level_filter());
    if change == LogChange::More {
        report();
    }
}

/// Records that standard error is about to be closed, unless it is the journal; returns whether to close it.
pub fn leave_terminal() -> bool {
    let leaves = !is_journal();
    IS_DETACHED.store(leaves, Ordering::SeqCst);
    leaves
}

/// Whether standard error is the journal: JOURNAL_STREAM has its device and inode (systemd.exec(5)).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    // The link in /proc resolves to a socket as well.
    let Ok(stat) = std::fs::metadata("/proc/self/fd/2") else {
        return false;
    };
    stream == format!("{}:{}", stat.st_dev(), stat.st_ino())
}

/// The priority prefix of the line that reports why a command failed, if standard error is the journal.
#[must_use]
pub fn mark_of_failure() -> &'static str {
    if is_journal() { "<3>" } else { "" }
}

fn build(level: Option<LevelFilter>) -> env_logger::Logger {
    let mut builder =
        env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"));
    if let Some(level) = level {
        builder.filter_module("ibifs", level);
    }
    let to_journal = is_journal();
    builder.format(move |out, record| {
        let text = OneLine(record.args()).to_string();
        let priority = priority(record.level());
        if to_journal {
            writeln!(out, "<{priority}>{text}")
        } else if IS_DETACHED.load(Ordering::SeqCst) {
            write_to_system(priority, &text);
            Ok(())
        } else {
            let (time, level) = (now(), record.level());
            writeln!(out, "[{time} {level:<5}] {text}")
        }
    });
    builder.build()
}

/// The current time in seconds, as in RFC 3339.
fn now() -> String {
    Timestamp::from_unix(SystemClock.now().seconds(), 0).to_rfc3339()
}

/// The priority as syslog(3) numbers it.
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Writes to the system's log, if there is one.
fn write_to_system(priority: u8, text: &str) {
    let Ok(socket) = UnixDatagram::unbound() else {
        return;
    };
    // A log daemon that does not read must not block the mount.
    let _ = socket.set_nonblocking(true);
    let line = format!(
        "<{}>ibifs[{}]: {text}",
        DAEMON + priority,
        std::process::id()
    );
    let _ = socket.send_to(line.as_bytes(), SYSTEM_LOG);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_those_of_syslog() {
        let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug];
        assert_eq!(levels.map(priority), [3, 4, 6, 7]);
    }
}
