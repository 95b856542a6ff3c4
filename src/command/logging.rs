//! Where what is worth knowing is told: standard error, the journal, or the system's log.
//!
//! A command and a mount in the foreground write to standard error. Where that is the journal, each
//! line begins with its priority, as sd-daemon(3) says. A mount in the background has let go of the
//! terminal and writes to `/dev/log`, which journald and syslog daemons read.
//!
//! `RUST_LOG` says what is told; a level set here counts for all of ibifs instead.

use parking_lot::RwLock;
use std::io::Write;
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::command::terminal::OneLine;

/// Where the system's log is read.
const SYSTEM_LOG: &str = "/dev/log";

/// The facility of daemons, as syslog(3) numbers it.
const DAEMON: u8 = 3 << 3;

static LOGGER: Logger = Logger {
    chosen: RwLock::new(None),
};

/// Whether standard error has been let go of.
static AWAY: AtomicBool = AtomicBool::new(false);

/// What logs, made anew when the level changes.
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

/// Starts to log, as RUST_LOG says: warnings and errors if it says nothing.
pub fn start() {
    LOGGER.choose(None);
    if log::set_logger(&LOGGER).is_err() {
        log::warn!("another logger was there first");
    }
}

/// From now on ibifs logs what is of this level or graver.
pub fn set_level(level: LevelFilter) {
    LOGGER.choose(Some(level));
}

/// Logs more by one level, or less: from errors alone to whatever there is.
pub fn change(more: bool) {
    let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug];
    let is_told = |level: &&Level| {
        let metadata = Metadata::builder().level(**level).target("ibifs").build();
        LOGGER.enabled(&metadata)
    };
    let told = levels.iter().take_while(is_told).count();
    let wanted = if more { told } else { told.saturating_sub(2) };
    let Some(level) = levels.get(wanted) else {
        return;
    };
    // Told while warnings are.
    let tell = || log::warn!("logging {} and graver", level.as_str().to_lowercase());
    if !more {
        tell();
    }
    set_level(level.to_level_filter());
    if more {
        tell();
    }
}

/// Standard error is about to be closed, unless it is the journal; says whether it should be.
pub fn leave_terminal() -> bool {
    let leaves = !is_journal();
    AWAY.store(leaves, Ordering::SeqCst);
    leaves
}

/// Whether standard error is read by journald: it says so in JOURNAL_STREAM, by device and inode.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    // Whatever it is: /proc has what a descriptor leads to, a socket too.
    let Ok(stat) = std::fs::metadata("/proc/self/fd/2") else {
        return false;
    };
    stream == format!("{}:{}", stat.st_dev(), stat.st_ino())
}

/// What a line on standard error begins with that says why a command has failed.
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
        } else if AWAY.load(Ordering::SeqCst) {
            tell_system(priority, &text);
            Ok(())
        } else {
            let (time, level) = (out.timestamp(), record.level());
            writeln!(out, "[{time} {level:<5}] {text}")
        }
    });
    builder.build()
}

/// As syslog(3) numbers them.
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Tells the system's log; where there is none, nobody.
fn tell_system(priority: u8, text: &str) {
    let Ok(socket) = UnixDatagram::unbound() else {
        return;
    };
    // A log that nobody empties must not hold up the mount.
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
