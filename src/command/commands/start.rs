//! Starts the daemon: the command that returns when the tree is usable, and the process in the foreground.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sd_notify::NotifyState;

use super::{print, say};
use crate::archive::store::StoreError;
use crate::archive::{Archive, ArchiveError, SystemClock};
use crate::command::cli::Mount;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::logging;
use crate::command::terminal::OneLine;
use crate::fuse::mount::{LogChange, Watcher};
use crate::os::system_files;
use ibi::message;
use ibi::message::Message;

/// Prints that a store is mounted, if JSON is requested.
pub(super) fn mounted(options: &Mount) -> Result<(), Failure> {
    if options.output.json {
        say(&print::mount_json(&options.store, &options.mount_point))
    } else {
        Ok(())
    }
}

/// Starts the daemon of a mount in the background.
pub(super) fn mount_in_background(options: &Mount) -> Result<Exit, Failure> {
    let mut arguments: Vec<OsString> = vec!["mount".into()];
    // It reports errors in the format that was requested here.
    if options.output.json {
        arguments.push("--json".into());
    }
    for text in &options.options {
        arguments.extend(["-o".into(), text.into()]);
    }
    // The process leaves the directory in which it is started.
    for (name, path) in [
        ("--cache", &options.cache),
        ("--ca-file", &options.network.ca_file),
    ] {
        if let Some(path) = path {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            arguments.extend([name.into(), path.into()]);
        }
    }
    if let Some(size) = options.cache_size {
        arguments.extend(["--cache-size".into(), size.to_string().into()]);
    }
    let places = [options.store.as_os_str(), options.mount_point.as_os_str()];
    in_background(&arguments, &places)
}

fn failed(what: Message, error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, message!("{what}: {error}", what, error))
}

/// Starts this program again, in the foreground. Its errors go to our standard error. `arguments` are the command and its
/// options, `places` its paths. Returns the process, and the pipe that it closes after it has written that the tree is
/// usable. It stays in our process group until then: at a mount point of autofs the kernel lets the group of the
/// automounter pass, and has all other processes wait until its mount command has ended.
pub(super) fn spawn(
    arguments: &[OsString],
    places: &[&OsStr],
) -> Result<(Child, std::fs::File), Failure> {
    let program =
        std::env::current_exe().map_err(|error| failed(message!("this program"), error))?;
    let (read, write) =
        rustix::pipe::pipe().map_err(|error| failed(message!("a pipe"), error.into()))?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--foreground");
    command.arg("--ready-fd").arg(write.as_raw_fd().to_string());
    command.arg("--").args(places);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // The service manager expects the notification from the program that started this one.
    command.env_remove("NOTIFY_SOCKET");
    // The child must not inherit the reading end, or the pipe would stay open.
    rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC)
        .map_err(|error| failed(message!("a pipe"), error.into()))?;
    crate::os::starting::inherit_only(&mut command, write.as_raw_fd());
    let child = command
        .spawn()
        .map_err(|error| failed(message!("the daemon"), error))?;
    drop(write);
    Ok((child, std::fs::File::from(read)))
}

/// Waits until a process that was started reports that its tree is usable; false if it ends before.
pub(super) fn is_ready(mut pipe: std::fs::File) -> std::io::Result<bool> {
    let mut reported = Vec::new();
    pipe.read_to_end(&mut reported)?;
    Ok(!reported.is_empty())
}

/// Starts this program again in the background, and waits until it reports that the tree is usable.
pub(super) fn in_background(arguments: &[OsString], places: &[&OsStr]) -> Result<Exit, Failure> {
    let (mut child, pipe) = spawn(arguments, places)?;
    if is_ready(pipe).map_err(|error| failed(message!("the daemon"), error))? {
        return Ok(Exit::Done);
    }
    // The reason has been printed on our standard error.
    let status = child
        .wait()
        .map_err(|error| failed(message!("the daemon"), error))?;
    Ok(match status.code() {
        Some(2) => Exit::Usage,
        Some(3) => Exit::NotFound,
        Some(4) => Exit::Refused,
        Some(5) => Exit::Busy,
        Some(6) => Exit::NoFuse,
        _ => Exit::Failed,
    })
}

/// A process that runs beside a daemon.
pub(super) trait Companion {
    /// Starts it, once the tree is usable.
    fn start(&self);
    /// Ends it, before the tree is unmounted.
    fn stop(&self);
}

/// The starter of a mount that stays in the foreground: the command that waits for it, systemd, or a person.
pub(super) struct Starter<'a> {
    /// The descriptor on which the command waits.
    ready_fd: Option<i32>,
    /// The text about what is mounted, for the service manager.
    status: Message,
    /// The process that runs beside it.
    companion: Option<Box<dyn Companion + 'a>>,
    /// Prints what is mounted.
    print: Box<dyn Fn() -> Result<(), Failure> + 'a>,
}

impl<'a> Starter<'a> {
    /// The starter of a mount of a store.
    pub(super) fn new(
        options: &'a Mount,
        companion: Option<Box<dyn Companion + 'a>>,
    ) -> Starter<'a> {
        let store = options.store.display();
        let mount_point = options.mount_point.display();
        Starter {
            ready_fd: options.ready_fd,
            status: message!("{store} is mounted at {mount_point}", store, mount_point),
            companion,
            print: Box::new(|| mounted(options)),
        }
    }

    /// The starter of a mount of an Archive elsewhere.
    pub(super) fn of_archive(options: &'a Mount) -> Starter<'a> {
        Starter {
            print: Box::new(|| Ok(())),
            ..Starter::new(options, None)
        }
    }

    /// The starter of a mount of items of other Archives.
    pub(super) fn of_world(ready_fd: Option<i32>, mount_point: &Path) -> Starter<'a> {
        let mount_point = mount_point.display();
        Starter {
            ready_fd,
            status: message!("items of other Archives are at {mount_point}", mount_point),
            companion: None,
            print: Box::new(|| Ok(())),
        }
    }

    /// Notifies systemd, if it started this process; see sd_notify(3).
    fn notify(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state) {
            log::warn!("cannot notify the service manager ($NOTIFY_SOCKET): {error}");
        }
    }
}

impl Watcher for Starter<'_> {
    fn ready(&self) {
        if let Some(companion) = &self.companion {
            companion.start();
        }
        (self.print)().unwrap_or_else(|failure| log::warn!("{failure}"));
        report_ready(self.ready_fd);
        let status = OneLine(&self.status).to_string();
        self.notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
    }

    fn stopping(&self) {
        self.notify(&[NotifyState::Stopping]);
        if let Some(companion) = &self.companion {
            companion.stop();
        }
    }

    fn change_log(&self, change: LogChange) {
        logging::change(change);
    }
}

/// Begins a session, closes the terminal, and reports that the tree is usable.
fn report_ready(descriptor: Option<i32>) {
    let Some(descriptor) = descriptor else {
        return;
    };
    // It fails for a process that has begun one.
    let _ = rustix::process::setsid();
    // SAFETY: the process that passed this number opened it for this process only.
    let pipe = unsafe { OwnedFd::from_raw_fd(descriptor) };
    if logging::leave_terminal()
        && let Ok(null) = system_files::open_device("/dev/null")
    {
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    let _ = std::env::set_current_dir("/");
    let _ = rustix::io::write(&pipe, b"ready\n");
}

/// Opens a store whose index may be damaged. A file that is not a database is renamed first.
pub(super) fn open_for_reindex(path: &Path) -> Result<Archive, Failure> {
    match Archive::open_for_reindex(path, Box::new(SystemClock)) {
        Err(ArchiveError::Store(error)) if error.is_damage() => reopen(path, &error),
        other => Ok(other?),
    }
}

/// Renames a damaged database and opens the store with an empty one.
pub(super) fn reopen(path: &Path, error: &StoreError) -> Result<Archive, Failure> {
    let aside = Archive::set_index_aside(path)?.unwrap_or_default();
    let report = message!("{error}; it is set aside as {aside}", error, aside);
    eprintln!("ibifs: {}", OneLine(localized(&report)));
    Ok(Archive::open_for_reindex(path, Box::new(SystemClock))?)
}
