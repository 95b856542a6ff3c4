//! `ibifs mount` and `ibifs umount`.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::world_companion::WorldCompanion;
use super::{print, remote, say, start};
use crate::archive::{Holder, holder, is_held_by};
use crate::command::cli::{Mount, Umount};
use crate::command::exit::{Exit, Failure};
use crate::command::logging;
use crate::fuse::mount::Mounted;
use ibi::message;

/// The time that `umount` waits for the daemon to close the store.
const UMOUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// The time that the users of an unmounted tree may keep its daemon running.
const UMOUNT_GRACE: Duration = Duration::from_secs(1);

/// The time that a daemon that has released its store may take to end.
const ENDING: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

pub(super) fn mount(options: &Mount) -> Result<Exit, Failure> {
    if remote::is_url(&options.store) {
        return remote::mount(options);
    }
    remote::refuse_for_store(options)?;
    let settings =
        crate::fuse::mount::Settings::parse(&options.options, |name| std::env::var(name).ok())?;
    let is_missing = |path: &Path| !path.try_exists().unwrap_or(true);
    if is_missing(&options.store) && is_missing(&options.mount_point) {
        return Err(Failure::new(
            Exit::NotFound,
            message!(
                "neither the store '{store}' nor the mount point '{mount_point}' exists; create the store with 'ibifs init' and the mount point with 'mkdir'",
                store = options.store.display(),
                mount_point = options.mount_point.display()
            ),
        ));
    }
    let beside = WorldCompanion::new(&settings.world, &options.mount_point)?;
    if !options.foreground {
        let exit = start::mount_in_background(options)?;
        if exit == Exit::Done {
            start::mounted(options)?;
        }
        return Ok(exit);
    }
    if let Some(level) = settings.log {
        logging::set_level(level);
    }
    let starter = start::Starter::new(options, beside.map(|beside| Box::new(beside) as _));
    crate::fuse::mount::serve(&options.store, &options.mount_point, &settings, &starter)?;
    Ok(Exit::Done)
}

/// Returns what another user has mounted there.
fn of_another(path: &Path) -> Option<Mounted> {
    let mut mounts = crate::fuse::mount::mounts().into_iter();
    mounts.rfind(|mount| mount.mount_point == path && mount.is_of_another())
}

pub(super) fn umount(options: &Umount) -> Result<Exit, Failure> {
    let shown = options.mount_point.display();
    let path = crate::fuse::mount::resolve(&options.mount_point);
    let at_path = |mount: &Mounted| mount.is_world() && mount.mount_point == path;
    if let Some(mounted) = crate::fuse::mount::mounts().into_iter().rfind(at_path) {
        return umount_world(options, &mounted);
    }
    let mounted = crate::fuse::mount::mounts()
        .into_iter()
        .filter(Mounted::is_ours)
        .rfind(|mount| mount.mount_point == path);
    let Some(mounted) = mounted else {
        if let Some(other) = of_another(&path) {
            return Err(Failure::new(
                Exit::Refused,
                message!(
                    "user {user} has mounted the filesystem at '{shown}'; unmount it with 'umount'",
                    user = other.user.unwrap_or_default(),
                    shown
                ),
            ));
        }
        return Err(Failure::new(
            Exit::NotFound,
            message!("no store is mounted at '{shown}'", shown),
        ));
    };
    let before = holder(&mounted.source);
    let daemon = before
        .as_ref()
        .and_then(|it| process_of(&mounted.source, it));
    crate::fuse::mount::unmount_world(&mounted.mount_point);
    let gone = crate::fuse::mount::cut_off_killed(&mounted.mount_point);
    if !gone {
        unmount(options, &mounted)?;
    }
    // Excludes a daemon that was started since.
    let ours = || holder(&mounted.source).filter(|holder| Some(holder) == before.as_ref());
    let started = Instant::now();
    let mut is_asked = false;
    while let Some(holder) = ours() {
        if started.elapsed() > UMOUNT_TIMEOUT {
            return Err(Failure::new(
                Exit::Busy,
                message!(
                    "'{shown}' is unmounted, but its daemon does not end; end process {pid}",
                    shown,
                    pid = holder.pid.unwrap_or(0)
                ),
            ));
        }
        // The tree is in use, which keeps the daemon running: the daemon is asked to end anyway.
        if !is_asked && started.elapsed() > UMOUNT_GRACE {
            is_asked = true;
            if !end_daemon(&mounted.source, &holder) && ours().is_some() {
                return Err(Failure::new(
                    Exit::Busy,
                    message!(
                        "'{shown}' is unmounted, but its daemon does not end, and the process that '{lock}' names is not seen to be the daemon: none was ended; find it with 'fuser -v {lock}'",
                        shown,
                        lock = mounted.source.join("lock").display()
                    ),
                ));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // It has released the store, and may have other files open until it has ended: the disk could not be unmounted.
    if let Some(daemon) = daemon {
        wait_for_end(&daemon);
    }
    if options.output.json {
        say(&print::mount_json(&mounted.source, &mounted.mount_point))?;
    }
    Ok(Exit::Done)
}

fn unmount(options: &Umount, mounted: &Mounted) -> Result<(), Failure> {
    let shown = options.mount_point.display();
    crate::fuse::mount::unmount(&mounted.mount_point).map_err(|refused| {
        let who = match other_user(mounted) {
            Some(user) => message!(
                "{user} has mounted it; unmount it as that user or as root",
                user
            ),
            None => message!("see who uses it with 'fuser -m {shown}'", shown),
        };
        let message = message!(
            "'{shown}' could not be unmounted: {refused}; {who}",
            shown,
            refused,
            who
        );
        Failure::new(Exit::Busy, message)
    })
}

/// Unmounts items of other Archives. Their process ends by itself.
fn umount_world(options: &Umount, mounted: &Mounted) -> Result<Exit, Failure> {
    unmount(options, mounted)?;
    if options.output.json {
        say(&print::world_json(
            &mounted.source.to_string_lossy(),
            &mounted.mount_point,
        ))?;
    }
    Ok(Exit::Done)
}

/// The name of the user who mounted it, if the caller is neither that user nor root.
fn other_user(mounted: &Mounted) -> Option<String> {
    let caller = rustix::process::geteuid();
    let is_other = |user: &u32| !caller.is_root() && *user != caller.as_raw();
    mounted
        .user
        .filter(is_other)
        .map(crate::os::identity::user_name)
}

/// The process that has a store, if it is seen to be the one that its lock names.
fn process_of(store: &Path, holder: &Holder) -> Option<OwnedFd> {
    let number = holder.pid.and_then(|pid| i32::try_from(pid).ok())?;
    // Opened first, so that the check is about this process even if its number is reused.
    let process = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
    is_held_by(store, holder.pid?).then_some(process)
}

/// Asks the daemon of a store, and no other process, to end; returns whether it was asked.
fn end_daemon(store: &Path, holder: &Holder) -> bool {
    let daemon = process_of(store, holder);
    daemon.is_some_and(|daemon| pidfd_send_signal(&daemon, Signal::TERM).is_ok())
}

/// Waits until a process that has released its store has ended, for [`ENDING`] at most.
fn wait_for_end(process: &OwnedFd) {
    let mut events = [PollFd::new(process, PollFlags::IN)];
    let _ = poll(&mut events, Some(&ENDING));
}
