//! `ibifs world` beside the daemon of a store: a process of its own, so that the daemon never waits for the network.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::start::Companion;
use super::{start, world};
use crate::command::cli;
use crate::command::exit::Failure;
use crate::fuse::mount::{WorldOptions, is_inside, resolve, unmount_world, world_place};
use ibi::message;
use ibi::message::{Localize, Message};

/// The time that a mount waits until the other process has mounted. That uses no network, but reads the cache.
const STARTUP: Duration = Duration::from_secs(5);

/// The process that shows the items of other Archives in a mounted store.
pub(super) struct WorldCompanion<'a> {
    arguments: Vec<OsString>,
    mount_point: &'a Path,
    resolved: OnceCell<PathBuf>,
}

impl<'a> WorldCompanion<'a> {
    /// Returns what the options of a mount ask for, if anything.
    ///
    /// # Errors
    /// A value is not valid, or there is no directory for the cache.
    pub(super) fn new(
        options: &WorldOptions,
        mount_point: &'a Path,
    ) -> Result<Option<WorldCompanion<'a>>, Failure> {
        if !options.is_wanted() {
            return Ok(None);
        }
        Ok(Some(WorldCompanion {
            arguments: arguments(options)?,
            mount_point,
            resolved: OnceCell::new(),
        }))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "an ordinary user's own directory; root's is in the mount"
    )]
    fn try_start(&self, mount_point: &Path) -> Result<(), Message> {
        // One of a daemon that was killed may still be there.
        unmount_world(mount_point);
        let place = world_place(mount_point).map_err(|error| error.message())?;
        if !is_inside() {
            std::fs::create_dir_all(&place)
                .map_err(|error| message!("{path}: {error}", path = place.display(), error))?;
        }
        let started = start::spawn(&self.arguments, &[place.as_os_str()]);
        let (mut child, pipe) = started.map_err(|failure| failure.message)?;
        let (sender, receiver) = mpsc::channel();
        let shown = place.display().to_string();
        let waiting = std::thread::Builder::new().name("world".into());
        let waiting = waiting.spawn(move || {
            let _ = sender.send(start::is_ready(pipe).unwrap_or(false));
            match child.wait() {
                Ok(status) if status.success() => log::info!("{shown} has ended"),
                Ok(status) => log::warn!("the process of {shown} has ended: {status}"),
                Err(error) => log::warn!("the process of {shown}: {error}"),
            }
        });
        waiting.map_err(|error| error.message())?;
        match receiver.recv_timeout(STARTUP) {
            Ok(true) => Ok(()),
            // The process has said why. No item there is said not to exist.
            Ok(false) => {
                if !is_inside() {
                    let shut = std::fs::Permissions::from_mode(0o0);
                    let _ = std::fs::set_permissions(&place, shut);
                }
                Err(message!("'ibifs world' does not run"))
            }
            Err(_) => Err(message!("'ibifs world' does not answer")),
        }
    }
}

impl Companion for WorldCompanion<'_> {
    /// If that fails the tree is used without.
    fn start(&self) {
        let mount_point = self.resolved.get_or_init(|| resolve(self.mount_point));
        if let Err(reason) = self.try_start(mount_point) {
            let report = message!(
                "no items of other Archives are shown in '{mount_point}': {reason}",
                mount_point = mount_point.display(),
                reason
            );
            log::error!("{report}");
        }
    }

    /// The process ends by itself when what it shows is unmounted.
    fn stop(&self) {
        if let Some(mount_point) = self.resolved.get() {
            unmount_world(mount_point);
        }
    }
}

/// The arguments of the process.
fn arguments(options: &WorldOptions) -> Result<Vec<OsString>, Failure> {
    let mut arguments: Vec<OsString> = vec!["world".into()];
    let mut add = |name: &str, value: &OsStr| arguments.extend([name.into(), value.into()]);
    for resolver in &options.resolvers {
        add("--resolver", resolver.to_string().as_ref());
    }
    for archive in &options.archives {
        add("--archive", archive.to_string().as_ref());
    }
    let cache = match &options.cache {
        Some(cache) => std::path::absolute(cache).unwrap_or_else(|_| cache.clone()),
        None => world::default_cache()?,
    };
    add("--cache", cache.as_os_str());
    if let Some(size) = &options.cache_size {
        let bytes = cli::bytes(size).map_err(|error| {
            super::usage(message!("world-cache-size={size}: {error}", size, error))
        })?;
        add("--cache-size", bytes.to_string().as_ref());
    }
    if let Some(file) = &options.ca_file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        add("--ca-file", file.as_os_str());
    }
    if options.allows_private {
        arguments.push("--allow-private".into());
    }
    Ok(arguments)
}
