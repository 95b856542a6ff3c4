//! Mounts the items of other Archives, and unmounts them. Neither uses the network.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fuse::mount::{
    MountError, Watcher, block_signals, check_fuse, check_mount_point, unmount, wait_for_signal,
};
use crate::http::client::Network;
use crate::world::cache::{Cache, CacheError};
use crate::world::mount::asking;
use crate::world::mount::asking::AskError;
use crate::world::mount::control;
use crate::world::mount::process::WorldProcess;
use crate::world::mount::settings::WorldSettings;
use ibi::message;
use ibi::message::{Localize, Message};

/// The time to wait for a process of the cache that begins or ends.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time that an unmount waits for processes that still use the tree.
const LAST_ORDERS: Duration = Duration::from_secs(5);

/// The reason why it was not mounted.
#[derive(Debug)]
pub enum WorldError {
    /// The mount point, or the system.
    Mount(MountError),
    /// The cache.
    Cache(CacheError),
    /// The process that uses the cache.
    Ask(AskError),
    /// The system.
    System(std::io::Error),
}

impl Localize for AskError {
    fn message(&self) -> Message {
        match self {
            AskError::Silent => message!("the process that uses the cache does not answer"),
            AskError::Elsewhere => message!(
                "the process that uses the cache sees other files, as in a container; name another directory with --cache"
            ),
            AskError::Gone => message!("the process that uses the cache is gone"),
            AskError::Refused(why) => message!(
                "the process that uses the cache refuses: {why}",
                why = Message::foreign(why)
            ),
            AskError::System(error) => error.message(),
        }
    }
}

ibi::display_message!(AskError);

impl std::error::Error for AskError {}

impl Localize for WorldError {
    fn message(&self) -> Message {
        match self {
            WorldError::Mount(error) => error.message(),
            WorldError::Cache(error) => error.message(),
            WorldError::Ask(error) => error.message(),
            WorldError::System(error) => error.message(),
        }
    }
}

ibi::display_message!(WorldError);

impl std::error::Error for WorldError {}

impl From<MountError> for WorldError {
    fn from(error: MountError) -> WorldError {
        WorldError::Mount(error)
    }
}

/// Mounts the items of other Archives and serves them until they are unmounted or a signal ends it. If another process
/// uses the cache, that one mounts them; with `stays` this waits until they are unmounted, too.
///
/// # Errors
/// The mount point or the cache cannot be used, or the system refuses.
pub fn serve(
    mount_point: &Path,
    settings: &WorldSettings,
    network: &Network,
    stays: bool,
    watcher: &impl Watcher,
) -> Result<(), WorldError> {
    let until = Instant::now() + TIMEOUT;
    loop {
        // Each time: a process that was asked may have ended since.
        let mount_point = check_mount_point(mount_point)?;
        check_fuse()?;
        match Cache::open(&settings.cache, settings.limit) {
            Ok(cache) => return hold(cache, &mount_point, settings, network, watcher),
            Err(CacheError::Used(path)) => {
                if let Some(asked) = asking::mount(&mount_point, settings, stays, watcher) {
                    return asked.map_err(WorldError::Ask);
                }
                if Instant::now() > until {
                    return Err(WorldError::Cache(CacheError::Used(path)));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(WorldError::Cache(error)),
        }
    }
}

/// Mounts, and does so for other processes that ask for it, until the last mount is unmounted.
fn hold(
    cache: Arc<Cache>,
    mount_point: &Path,
    settings: &WorldSettings,
    network: &Network,
    watcher: &impl Watcher,
) -> Result<(), WorldError> {
    crate::os::limits::raise_descriptor_limit();
    block_signals();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(WorldError::System)?;
    let listener = control::bind(cache.directory()).map_err(WorldError::System)?;
    let process = WorldProcess::new(Arc::clone(&cache), runtime.handle().clone());
    let attached = process.attach(mount_point, mount_point, settings, network);
    let attached = attached.unwrap_or(Err(MountError::NoHelper))?;
    attached.wait(|| ());
    asking::wait_for_answer(mount_point).map_err(WorldError::System)?;
    runtime.spawn(control::listen(listener, Arc::clone(&process)));
    watcher.ready();
    let is_over = wait_for_signal(|change| watcher.change_log(change));
    watcher.stopping();
    control::unbind(cache.directory());
    process.mounts.close();
    if !is_over {
        unmount_all(&process);
    }
    // Requests that wait for the network are given up.
    runtime.shutdown_background();
    Ok(())
}

fn unmount_all(process: &WorldProcess) {
    for path in process.mounts.paths() {
        if let Err(refused) = unmount(&path) {
            log::warn!("unmounting {}: {refused}", path.display());
        }
    }
    let until = Instant::now() + LAST_ORDERS;
    while !process.mounts.paths().is_empty() {
        if Instant::now() > until {
            return log::warn!("the tree is still in use; its users lose it now");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
