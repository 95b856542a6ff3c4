//! Mounting and unmounting: the checks before a mount, its options, signals, and shutdown in bounded time.

mod answers;
mod asking;
mod attach;
mod conversation;
mod error;
mod level_works;
mod nesting;
mod settings;
mod signals;
mod socket;
mod table;
mod world_options;
mod world_place;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::archive::finding::Severity;
use crate::archive::learned::keep_taking_in;
use crate::archive::store::By;
use crate::archive::tree::SIDECAR;
use crate::archive::{
    Archive, ArchiveError, Process, SystemClock, keep_log, watch_content, watch_peers, watch_seals,
};
use crate::formats::history::EventKind;
use crate::fuse::fs::{Ibifs, KernelCache, MountRoot, SessionCache};
use crate::fuse::namespace::{Namespace, Options};
use crate::os::caller::Caller;
use crate::os::opening;
use crate::os::system_files;
use conversation::Asked;
use ibi::message;
use ibi::message::{Localize, Message};
use rustix::fs::OFlags;
use rustix::io::Errno;
use socket::DaemonSocket;

pub use answers::{MOST_COMPLETED, SHOWN};
pub use asking::{Answer, AskError, ask};
pub use error::{MountError, option_stems, option_words};
pub use settings::Settings;
pub use table::{Mounted, data, mounts};
pub use world_options::WorldOptions;
pub use world_place::{is_inside, unmount_world, world_place};

pub(crate) use attach::Attachment;
pub(crate) use signals::{block_signals, wait_for_signal, wake};

/// The time that an unmount waits for processes that still use the tree, and a mount for a daemon that shuts down.
const LAST_ORDERS: Duration = Duration::from_secs(5);

/// A change of what is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// One level more.
    More,
    /// One level less.
    Less,
}

/// Receives the events of a mount, for the program that started it.
pub trait Watcher {
    /// The tree is usable.
    fn ready(&self);
    /// The mount is about to end.
    fn stopping(&self);
    /// A signal requests more or less logging.
    fn change_log(&self, change: LogChange);
}

/// Mounts a store and serves it until it is unmounted or a signal ends it.
pub fn serve(
    store: &Path,
    mount_point: &Path,
    settings: &Settings,
    watcher: &impl Watcher,
) -> Result<(), MountError> {
    settings.check()?;
    let (store, mount_point) = check(store, mount_point)?;
    if settings.allow_other && !crate::os::caller::can_act_as_others() {
        return Err(MountError::CannotAct);
    }
    wait_for_leaving(&store);
    let archive = Arc::new(open(&store, settings)?);
    log_lacks(&archive);
    detach_dead_mounts_of(&store);
    crate::os::limits::raise_descriptor_limit();
    block_signals();
    let world = settings.world.is_wanted();
    let world = world.then(|| world_place::world_entry(&mount_point));
    let world = world.transpose()?;
    let options = Options {
        languages: settings.languages.clone(),
        list_all: settings.list_all,
        portable_names: settings.portable_names,
        world,
        fallback: settings.world.fallback,
    };
    let namespace = Namespace::new(Arc::clone(&archive), options)?;
    let cache = Arc::new(OnceLock::<Box<dyn KernelCache>>::new());
    let root = Arc::new(OnceLock::new());
    let failed = |error: std::io::Error| MountError::Failed {
        cause: error.message(),
    };
    let access_times = settings.access_times(archive.tree().path());
    let filesystem = Ibifs::new(
        namespace,
        settings.passthrough,
        settings.placement,
        access_times,
        Arc::clone(&cache),
        &root,
        wake,
    )
    .map_err(failed)?;
    let changes = filesystem.level_changes();
    let session = settings.attach(filesystem, &store, &mount_point)?;
    let _ = cache.set(Box::new(SessionCache::of(&session).map_err(failed)?));
    archive.describe_mount(&mount_point);
    if archive.is_shared() {
        archive.store().watch().map_err(ArchiveError::from)?;
        watch_peers(&archive).map_err(failed)?;
    }
    if !settings.is_read_only() {
        archive.keeper().hold_arrivals()?;
    }
    let background = session.spawn().map_err(failed)?;
    // The tree is usable when its root answers.
    let _ = root.set(MountRoot::at(&mount_point).map_err(failed)?);
    // The first file opened shows whether passthrough works, which `ibifs status` then reports.
    let own = mount_point.join(archive.facts().service.preferred());
    if let Err(errno) = opening::regular(own.join(SIDECAR), OFlags::empty()) {
        log::info!("{}: {errno}", own.display());
    }
    log::info!(
        "{} is mounted at {}",
        store.display(),
        mount_point.display()
    );
    if !settings.is_read_only() {
        let open = changes.items_being_written();
        let nobody = Caller::NOBODY.acts_as();
        watch_content(&archive, nobody, as_nobody, open).map_err(failed)?;
        watch_seals(&archive).map_err(failed)?;
        if archive.facts().history {
            keep_log(&archive).map_err(failed)?;
        }
        keep_taking_in(&archive).map_err(failed)?;
    }
    let socket = DaemonSocket::start(Asked {
        changes,
        takes_work: !settings.is_read_only() && !archive.is_shared(),
        is_for_others: settings.allow_other,
    });
    let socket = socket.inspect_err(|error| {
        log::warn!("commands cannot ask this mount: {error}");
    });
    watcher.ready();
    wait_for_end(background, &mount_point, watcher);
    drop(socket);
    archive.tell(By::of(&Process), EventKind::Unmounted, None, "");
    archive.close();
    Ok(())
}

/// Runs a read as the public, which is what services publish.
fn as_nobody(read: &mut dyn FnMut()) {
    let ran = Caller::NOBODY.read(|| {
        read();
        Ok::<(), Errno>(())
    });
    if let Err(errno) = ran {
        log::debug!("items cannot be read as the user nobody: {errno}");
    }
}

/// Logs what the filesystem of the store cannot do.
fn log_lacks(archive: &Archive) {
    match archive.tree().lacks() {
        Ok(lacks) => lacks.iter().for_each(|lack| match lack.severity() {
            Severity::Notice => log::info!("{lack}"),
            Severity::Warning | Severity::Error => log::warn!("{lack}"),
        }),
        // A full or read-only disk has its own reports.
        Err(error) => log::info!("{error}"),
    }
}

/// Waits until a mount that is ready has ended, or ends it when a signal asks for that.
fn wait_for_end(background: fuser::BackgroundSession, mount_point: &Path, watcher: &impl Watcher) {
    let mut is_over = wait_for_signal(|change| watcher.change_log(change));
    watcher.stopping();
    if !is_over {
        unmount_or_log(mount_point);
        let until = Instant::now() + LAST_ORDERS;
        while !background.guard.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        is_over = background.guard.is_finished();
    }
    if is_over {
        // The session is over, but releasing its resources may take time.
        if let Err(error) = background.join() {
            log::warn!("the session ended with: {error}");
        }
    } else {
        log::warn!("the tree is still in use; its users lose it now");
        std::mem::forget(background);
    }
}

/// Opens a store for writing. If its filesystem is read-only, opens it for reading, which requires `-o ro`.
fn open(store: &Path, settings: &Settings) -> Result<Archive, MountError> {
    let is_fixed = opening::found(store, OFlags::empty())
        .and_then(rustix::fs::fstatvfs)
        .is_ok_and(|disk| disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
    let archive = match (is_fixed, settings.is_read_only()) {
        (true, true) => Archive::open_read_only(store)?,
        (false, true) if Archive::is_generation(store) => Archive::open_read_only(store)?,
        (true, false) => {
            return Err(MountError::ReadOnlyDisk {
                store: store.to_owned(),
            });
        }
        (false, _) if settings.shared => Archive::open_shared(store, Box::new(SystemClock))?,
        (false, _) => Archive::open(store, Box::new(SystemClock))?,
    };
    archive.store().answer_soon();
    Ok(archive)
}

fn check(store: &Path, mount_point: &Path) -> Result<(PathBuf, PathBuf), MountError> {
    let resolved = check_mount_point(mount_point)?;
    let store = match std::fs::canonicalize(store) {
        Ok(store) => store,
        Err(_) => {
            let dead = dead_mount_above(store);
            return Err(dead.unwrap_or_else(|| ArchiveError::not_found(store).into()));
        }
    };
    if nesting::is_nested(&store, &resolved) {
        return Err(MountError::Nested {
            store,
            mount_point: resolved,
        });
    }
    check_fuse()?;
    Ok((store, resolved))
}

/// Checks that this user can mount anything.
pub(crate) fn check_fuse() -> Result<(), MountError> {
    if let Err(error) = system_files::open_device("/dev/fuse") {
        return Err(MountError::NoFuse { cause: error });
    }
    let in_path = |name: &str| {
        // mount(8) removes PATH when it acts for an ordinary user.
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    if !rustix::process::geteuid().is_root() && !in_path("fusermount3") && !in_path("fusermount") {
        return Err(MountError::NoHelper);
    }
    Ok(())
}

/// The directory at which something is to be mounted. A mount whose daemon has exited is detached from it.
pub(crate) fn check_mount_point(mount_point: &Path) -> Result<PathBuf, MountError> {
    let bad = |cause: Message| MountError::MountPoint {
        path: mount_point.to_owned(),
        cause,
    };
    detach_dead_mount(mount_point);
    check_mounts_at(&resolve(mount_point))?;
    let resolved = table::canonical(mount_point)
        .ok_or_else(|| bad(message!("a filesystem on the way to it does not answer")))?
        .map_err(|error| dead_mount_above(mount_point).unwrap_or_else(|| bad(error.message())))?;
    check_mounts_at(&resolved)?;
    if !resolved.is_dir() {
        return Err(bad(message!("not a directory")));
    }
    // An automounter has mounted there because of that look.
    check_mounts_at(&resolved)?;
    Ok(resolved)
}

/// Refuses a path at which a store is mounted, or that lies in what another user has mounted, by the table of mounts
/// alone.
fn check_mounts_at(path: &Path) -> Result<(), MountError> {
    let mounts = mounts();
    // Only the topmost mount matters; mounts below it are hidden.
    let seen = mounts.iter().rfind(|mount| mount.mount_point == path);
    if seen.is_some_and(|mount| mount.is_ours() || mount.is_world()) {
        return Err(MountError::Mounted {
            path: path.to_owned(),
        });
    }
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point));
    let above = above.max_by_key(|mount| mount.mount_point.as_os_str().len());
    match above.filter(|mount| mount.is_of_another()) {
        None => Ok(()),
        Some(mount) => Err(MountError::MountPoint {
            path: path.to_owned(),
            cause: message!(
                "user {user} has mounted a filesystem at '{place}'; unmount it, or name another directory",
                user = mount.user.unwrap_or_default(),
                place = mount.mount_point.display()
            ),
        }),
    }
}

/// Waits for a daemon that is shutting down. umount(8) returns when the mount has disappeared, but its daemon
/// may still need a moment to release the store.
fn wait_for_leaving(store: &Path) {
    let is_leaving = || {
        let holder = crate::archive::holder(store)?;
        let mount_point = holder.mount_point?;
        let mounts = table::mounts_of(holder.pid?)?;
        let is_there = |mount: &Mounted| mount.is_ours() && mount.mount_point == mount_point;
        Some(!mounts.iter().any(is_there))
    };
    let until = Instant::now() + LAST_ORDERS;
    while is_leaving() == Some(true) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Detaches ibifs mounts whose daemon has exited, one after the other while they lie on top of each other.
fn detach_dead_mount(mount_point: &Path) {
    let resolved = resolve(mount_point);
    cut_off_killed(&resolved);
    let is_ours =
        |mount: &&Mounted| (mount.is_ours() || mount.is_world()) && mount.mount_point == resolved;
    for _ in mounts().iter().filter(is_ours) {
        if table::is_dead(&resolved) != Some(true) {
            return;
        }
        log::warn!(
            "{} was mounted by a daemon that is gone",
            resolved.display()
        );
        unmount_or_log(&resolved);
    }
}

/// Detaches the dead mounts of a store that this process has opened, at all mount points: bind mounts of a
/// tree outlive its daemon.
fn detach_dead_mounts_of(store: &Path) {
    for mount in mounts() {
        if mount.is_ours() && mount.source == store {
            detach_dead_mount(&mount.mount_point);
        }
    }
}

/// The dead mount in which a path lies.
fn dead_mount_above(path: &Path) -> Option<MountError> {
    let path = std::path::absolute(path).ok()?;
    let mounts = mounts();
    let is_above = |mount: &&Mounted| mount.is_ours() && path.starts_with(&mount.mount_point);
    let mount = mounts.iter().rfind(is_above)?;
    let is_dead = table::is_dead(&mount.mount_point) == Some(true);
    is_dead.then(|| MountError::Dead {
        store: mount.source.clone(),
        mount_point: mount.mount_point.clone(),
    })
}

/// Aborts the mount of a daemon that was killed while one of its threads waited in the kernel for a
/// directory. That thread would deadlock with the process that has locked the directory and waits for the
/// daemon. Returns whether this has unmounted it.
pub fn cut_off_killed(mount_point: &Path) -> bool {
    let mut gone = false;
    for mount in mounts() {
        if mount.mount_point != mount_point || !mount.is_ours() {
            continue;
        }
        let pid = crate::archive::holder(&mount.source).and_then(|holder| holder.pid);
        let is_daemon = |pid: &u32| crate::archive::is_held_by(&mount.source, *pid);
        if pid.filter(is_daemon).is_some_and(is_killed) {
            log::warn!("the daemon of {} was killed", mount_point.display());
            // A busy mount is not unmounted, but its waiting requests are aborted.
            let flags = rustix::mount::UnmountFlags::FORCE;
            gone |= rustix::mount::unmount(mount_point, flags).is_ok();
        }
    }
    gone
}

/// Whether a process has been killed and has not exited yet.
fn is_killed(pid: u32) -> bool {
    let status = system_files::read_text(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
    };
    let is_waiting = |name: &str| {
        let signals = value(name).and_then(|text| u64::from_str_radix(text, 16).ok());
        signals.is_some_and(|signals| signals & 1 << (libc::SIGKILL - 1) != 0)
    };
    value("State:").is_some_and(|state| state.starts_with(['Z', 'X']))
        || is_waiting("SigPnd:")
        || is_waiting("ShdPnd:")
}

/// The absolute path of a mount point. Works for a dead mount too, since the mount itself is not accessed.
pub fn resolve(mount_point: &Path) -> PathBuf {
    let through_parent = || {
        let absolute = std::path::absolute(mount_point).ok()?;
        let parent = table::canonical(absolute.parent()?)?.ok()?;
        Some(parent.join(absolute.file_name()?))
    };
    let is_mounted = |path: &PathBuf| mounts().iter().any(|mount| mount.mount_point == *path);
    through_parent()
        .filter(is_mounted)
        .or_else(|| table::canonical(mount_point)?.ok())
        .or_else(through_parent)
        .unwrap_or_else(|| mount_point.to_owned())
}

/// Unmounts; lazily if a process still uses the mount. An ordinary user goes through fusermount3. The error
/// is the last message of the kernel or of fusermount3.
pub fn unmount(mount_point: &Path) -> Result<(), String> {
    use rustix::mount::UnmountFlags;
    let mut refused = String::new();
    for flags in [UnmountFlags::empty(), UnmountFlags::DETACH] {
        match rustix::mount::unmount(mount_point, flags) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::PERM) => break,
            Err(error) => refused = error.to_string(),
        }
    }
    for flag in ["-u", "-uz"] {
        let mut command = std::process::Command::new("fusermount3");
        refused = match command.arg(flag).arg("--").arg(mount_point).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            // Without fusermount3, the kernel's message is reported.
            Err(_) if !refused.is_empty() => refused,
            Err(error) => format!("fusermount3: {error}"),
        };
    }
    Err(refused)
}

/// Unmounts what no process uses; returns whether it is unmounted.
fn unmount_idle(mount_point: &Path) -> bool {
    use rustix::mount::UnmountFlags;
    match rustix::mount::unmount(mount_point, UnmountFlags::empty()) {
        Err(rustix::io::Errno::PERM) => {
            let mut command = std::process::Command::new("fusermount3");
            let output = command.arg("-u").arg("--").arg(mount_point).output();
            output.is_ok_and(|output| output.status.success())
        }
        unmounted => unmounted.is_ok(),
    }
}

fn unmount_or_log(mount_point: &Path) {
    if let Err(refused) = unmount(mount_point) {
        log::warn!("unmounting {}: {refused}", mount_point.display());
    }
}
