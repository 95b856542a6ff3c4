//! Restricts SQLite to the files of its databases: by their directory, and never through a link.
//!
//! SQLite itself goes by path, follows a link there, overwrites any file that has the name of its log, and
//! waits for a FIFO. This module therefore replaces its system calls. A database is named by the descriptor
//! of its directory, which no other process can swap. SQLite opens only files in such a directory, and only
//! regular files without a second name.

#![expect(
    clippy::disallowed_methods,
    reason = "SQLite goes by path; where the path leads is looked at first"
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Once;
use std::time::{Duration, Instant};

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_os::mounts::mounts;
use rusqlite::{Connection, Transaction, TransactionBehavior, ffi};

/// The reason why a file with a database's name is not opened as a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It does not exist.
    Missing,
    /// It is a directory, a device or a pipe.
    NotAFile,
    /// It is a link or has a second name (hard link).
    Shared,
}

impl Localize for Unfit {
    fn message(&self) -> Message {
        match self {
            Unfit::Missing => message!("is not there"),
            Unfit::NotAFile => message!("is not a file"),
            Unfit::Shared => {
                message!("it is a link, or has a second name, and may be another user's file")
            }
        }
    }
}

display_message!(Unfit);

/// The path of a database in an open directory; valid as long as the directory is open.
pub fn path_in(directory: BorrowedFd<'_>, name: &OsStr) -> PathBuf {
    static GUARD: Once = Once::new();
    GUARD.call_once(guard);
    PathBuf::from(format!("{DESCRIPTORS}{}", directory.as_raw_fd())).join(name)
}

/// The path for opening a database for reading. SQLite makes a file beside a database that it reads. On a
/// read-only filesystem the path declares the database immutable instead, unless a crash has left a log,
/// without which SQLite would read incomplete data.
pub fn path_to_read(path: PathBuf, directory: BorrowedFd<'_>) -> PathBuf {
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    if !has_log && is_fixed(directory) {
        PathBuf::from(format!("file:{}?immutable=1", path.display()))
    } else {
        path
    }
}

/// Whether a filesystem as a whole is read-only. A filesystem that is mounted elsewhere for writing is not,
/// even if this mount of it is read-only.
fn is_fixed(directory: BorrowedFd<'_>) -> bool {
    let Ok(stat) = rustix::fs::fstat(directory) else {
        return false;
    };
    let (major, minor) = (
        rustix::fs::major(stat.st_dev),
        rustix::fs::minor(stat.st_dev),
    );
    let device = format!("{major}:{minor}");
    let mounts = mounts();
    let mut here = mounts.iter().filter(|mount| mount.device == device);
    here.any(|mount| mount.is_fixed)
}

/// The purpose for which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFor {
    /// It must exist.
    Reading,
    /// It is created where it is missing, and must have no second name.
    Writing,
}

/// Gives a plain error for what SQLite would refuse without a reason: a file that is not this database's
/// alone.
pub fn check(directory: BorrowedFd<'_>, name: &OsStr, purpose: OpenFor) -> Result<(), Unfit> {
    let path = path_in(directory, name);
    let is_written = purpose == OpenFor::Writing;
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_written => {
            Err(Unfit::Missing)
        }
        Ok(found) if !found.is_file() && !found.is_symlink() => Err(Unfit::NotAFile),
        Ok(found) if !found.is_file() || (is_written && found.nlink() > 1) => Err(Unfit::Shared),
        _ => Ok(()),
    }
}

/// An error of opening a database, without its `/proc` path, which means nothing to a user.
pub fn plain(error: rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(text)) => {
            let plain = text.split(": /proc").next().map(str::to_owned);
            rusqlite::Error::SqliteFailure(code, plain)
        }
        error => error,
    }
}

/// The reason why a database does not have a schema that this program knows.
#[derive(Debug)]
pub enum SchemaError {
    /// SQLite refused or failed.
    Sqlite(rusqlite::Error),
    /// A newer ibifs has written it.
    Newer {
        /// The schema version found.
        found: usize,
        /// The newest one this program knows.
        known: usize,
    },
    /// The version number is not valid.
    Version(i64),
}

impl From<rusqlite::Error> for SchemaError {
    fn from(error: rusqlite::Error) -> SchemaError {
        SchemaError::Sqlite(error)
    }
}

/// Begins a write transaction at once, so that no other process writes between reading and writing.
pub fn writing(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// The time that opening or writing a database waits for other connections.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Allows readers beside one writer, and makes a second writer wait. While several connections open a new
/// database, SQLite may refuse this at once, without its own waiting; it is tried again until the timeout.
/// An error of the disk may leave the database without a log although SQLite reports success. The change is then tried
/// once more, since a process that gives up its rights could not write such a database.
pub fn share(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let started = Instant::now();
    let mut is_left = false;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode != "wal" && !is_left => is_left = true,
            Err(error) if is_busy(&error) && started.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other.map(drop),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// The number of migrations that a database has had.
pub fn version(connection: &Connection) -> Result<usize, SchemaError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    usize::try_from(found).map_err(|_| SchemaError::Version(found))
}

/// Applies the missing migrations to a database in one transaction.
pub fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), SchemaError> {
    let known = migrations.len();
    if version(connection)? == known {
        return Ok(());
    }
    let transaction = writing(connection)?;
    let found = version(&transaction)?;
    let missing = migrations
        .get(found..)
        .ok_or(SchemaError::Newer { found, known })?;
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", known as i64)?;
    Ok(transaction.commit()?)
}

const DESCRIPTORS: &str = "/proc/self/fd/";

/// The prefix of SQLite's own temporary files.
const TEMPORARY: &[u8] = b"etilqs_";

/// Replaces SQLite's system calls by those of this module.
fn guard() {
    type Call = unsafe extern "C" fn();
    type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
    type Look = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;
    type Remove = unsafe extern "C" fn(*const c_char) -> c_int;
    type Map = unsafe extern "C" fn(
        *mut c_void,
        libc::size_t,
        c_int,
        c_int,
        c_int,
        libc::off_t,
    ) -> *mut c_void;
    // SAFETY: SQLite knows the type of each call by its name, and these are those types.
    let calls = unsafe {
        [
            (c"open", std::mem::transmute::<Open, Call>(open)),
            (c"lstat", std::mem::transmute::<Look, Call>(libc::stat)),
            (c"unlink", std::mem::transmute::<Remove, Call>(unlink)),
            (c"mmap", std::mem::transmute::<Map, Call>(map)),
        ]
    };
    // SAFETY: the names end with a NUL, and the default VFS lives as long as the process.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) else {
            return;
        };
        for (name, call) in calls {
            set(vfs, name.as_ptr(), Some(call));
        }
    }
}

/// The meaning of a path to this module.
enum Meaning {
    /// A file of a database, in a directory given by its descriptor.
    Ours,
    /// The directory itself.
    Directory,
    /// A temporary file, a source of random numbers, or `/dev/null`.
    Elsewhere,
    Stranger,
}

fn meaning(path: &CStr) -> Meaning {
    let bytes = path.to_bytes();
    let slash = bytes.iter().rposition(|byte| *byte == b'/');
    let (above, name) = bytes.split_at(slash.map_or(0, |slash| slash + 1));
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if above == DESCRIPTORS.as_bytes() && is_number(name) {
        return Meaning::Directory;
    }
    if name.starts_with(TEMPORARY) || matches!(bytes, b"/dev/null" | b"/dev/urandom") {
        return Meaning::Elsewhere;
    }
    // SQLite derives names only from a path that it was given here.
    let number = above.strip_prefix(DESCRIPTORS.as_bytes());
    let number = number.and_then(|number| number.strip_suffix(b"/"));
    if number.is_some_and(is_number) && !name.is_empty() {
        Meaning::Ours
    } else {
        Meaning::Stranger
    }
}

fn refuse(errno: c_int) -> c_int {
    // SAFETY: the pointer is to this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    -1
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: SQLite's paths end with a NUL.
    let name = unsafe { CStr::from_ptr(path) };
    let is_new = libc::O_CREAT | libc::O_EXCL;
    match meaning(name) {
        Meaning::Ours => open_with_first_error(name, flags, mode),
        // SAFETY: as above.
        Meaning::Directory | Meaning::Elsewhere => unsafe { libc::open(path, flags, mode) },
        // A temporary file without a name.
        Meaning::Stranger if flags & libc::O_TMPFILE == libc::O_TMPFILE && flags & is_new != 0 => {
            // SAFETY: as above.
            unsafe { libc::open(path, flags, mode) }
        }
        Meaning::Stranger => refuse(libc::EACCES),
    }
}

thread_local! {
    /// The file that the thread could not open for writing, and the error.
    static NOT_WRITTEN: RefCell<Option<(CString, i32)>> = const { RefCell::new(None) };
}

/// Opens a file. What SQLite cannot open for writing it opens for reading, and where there is no file it would report that
/// instead of the reason why none could be made.
fn open_with_first_error(name: &CStr, flags: c_int, mode: c_int) -> c_int {
    let opened = open_ours(name, flags, mode);
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if opened >= 0 {
        NOT_WRITTEN.set(None);
        return opened;
    }
    if flags & libc::O_CREAT != 0 {
        NOT_WRITTEN.set(Some((name.to_owned(), errno)));
        return refuse(errno);
    }
    match NOT_WRITTEN.take() {
        Some((not_written, first)) if not_written.as_c_str() == name && errno == libc::ENOENT => {
            refuse(first)
        }
        _ => refuse(errno),
    }
}

fn open_ours(name: &CStr, flags: c_int, mode: c_int) -> c_int {
    let is_new = libc::O_CREAT | libc::O_EXCL;
    loop {
        // Found first with O_PATH: opening a FIFO would wait, and opening a device may have an effect.
        let look = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the name ends with a NUL.
        let found = unsafe { libc::open(name.as_ptr(), look) };
        if found >= 0 {
            let opened = if flags & is_new == is_new {
                refuse(libc::EEXIST)
            } else {
                open_found(found, flags & !is_new & !libc::O_NOFOLLOW)
            };
            // SAFETY: takes no pointer; the descriptor is owned here. It leaves errno as it is.
            unsafe { libc::close(found) };
            return opened;
        }
        let errno = std::io::Error::last_os_error().raw_os_error();
        if errno != Some(libc::ENOENT) || flags & libc::O_CREAT == 0 {
            return -1;
        }
        // SAFETY: as above.
        let made = unsafe { libc::open(name.as_ptr(), flags | is_new, mode) };
        let errno = std::io::Error::last_os_error().raw_os_error();
        if made >= 0 || errno != Some(libc::EEXIST) {
            return made;
        }
    }
}

/// Opens a file that has been found, if it belongs to a database alone.
fn open_found(found: c_int, flags: c_int) -> c_int {
    // SAFETY: stat is a structure of numbers, which the call fills.
    let stat = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(found, &mut stat) != 0 {
            return -1;
        }
        stat
    };
    let is_written = flags & libc::O_ACCMODE != libc::O_RDONLY;
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG if stat.st_nlink <= 1 || !is_written => {}
        libc::S_IFREG => return refuse(libc::EMLINK),
        _ => return refuse(libc::ELOOP),
    }
    match CString::new(format!("{DESCRIPTORS}{found}")) {
        // SAFETY: the path ends with a NUL.
        Ok(path) => unsafe { libc::open(path.as_ptr(), flags | libc::O_NONBLOCK) },
        Err(_) => refuse(libc::EINVAL),
    }
}

/// Maps a part of the file that has the index of a log. SQLite has written one byte of each page of it, which is one block of
/// several where these are smaller than pages. A write to a block that the disk has no room for would end the process (SIGBUS).
unsafe extern "C" fn map(
    address: *mut c_void,
    length: libc::size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    if protection & libc::PROT_WRITE != 0 {
        let whole = libc::off_t::try_from(length).unwrap_or(libc::off_t::MAX);
        // SAFETY: takes no pointer. A filesystem that cannot do it says so.
        let made = unsafe { libc::fallocate(file, libc::FALLOC_FL_KEEP_SIZE, offset, whole) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        if made != 0 && [libc::ENOSPC, libc::EDQUOT].contains(&errno) {
            refuse(errno);
            return libc::MAP_FAILED;
        }
    }
    // SAFETY: the arguments are those of SQLite, which checks the result.
    unsafe { libc::mmap(address, length, protection, flags, file, offset) }
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: SQLite's paths end with a NUL.
    match meaning(unsafe { CStr::from_ptr(path) }) {
        // SAFETY: as above.
        Meaning::Ours | Meaning::Elsewhere => unsafe { libc::unlink(path) },
        Meaning::Directory | Meaning::Stranger => refuse(libc::EACCES),
    }
}
