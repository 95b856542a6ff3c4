//! Mounts the items of other Archives, and unmounts them. Neither uses the network.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, MountOption, Notifier};
use rustix::mount::MountFlags;

use crate::formats::base_url::BaseUrl;
use crate::fuse::mount::{
    Attachment, MountError, Watcher, block_signals, check_fuse, check_mount_point, wait_for_end,
    wake,
};
use crate::web::client::Network;
use crate::world::cache::Cache;
use crate::world::fs::WorldFs;
use crate::world::namespace::{Namespace, Stale};
use crate::world::remote::Remote;
use ibi::message::{Localize, Message};

pub use crate::world::cache::CacheError;

/// The attribute of the root that says what the process holds and has done.
pub const STATUS: &str = "user.ibi.status";
/// How many threads take requests. None of them waits for the network.
const THREADS: usize = 4;

/// What is mounted, and how.
#[derive(Debug)]
pub struct WorldSettings {
    /// The resolvers that are asked.
    pub resolvers: Vec<BaseUrl>,
    /// The Archives that are asked before.
    pub archives: Vec<BaseUrl>,
    /// The directory of the cache.
    pub cache: PathBuf,
    /// The limit of the cache in bytes.
    pub limit: u64,
    /// Whether Archives that others name may have addresses of private networks.
    pub allows_private: bool,
    /// Whether other users may access the mount.
    pub allow_other: bool,
}

/// Why it was not mounted.
#[derive(Debug)]
pub enum WorldError {
    /// The mount point, or the system.
    Mount(MountError),
    /// The cache.
    Cache(CacheError),
    /// The system.
    System(std::io::Error),
}

impl Localize for WorldError {
    fn message(&self) -> Message {
        match self {
            WorldError::Mount(error) => error.message(),
            WorldError::Cache(error) => error.message(),
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

/// Mounts the items of other Archives and serves them until they are unmounted or a signal ends it.
///
/// # Errors
/// The mount point or the cache cannot be used, or the system refuses.
pub fn serve(
    mount_point: &Path,
    settings: &WorldSettings,
    network: &Network,
    watcher: &impl Watcher,
) -> Result<(), WorldError> {
    let mount_point = check_mount_point(mount_point)?;
    check_fuse()?;
    let cache = Cache::open(&settings.cache, settings.limit).map_err(WorldError::Cache)?;
    crate::os::limits::raise_descriptor_limit();
    block_signals();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(WorldError::System)?;
    let (resolvers, archives) = (settings.resolvers.clone(), settings.archives.clone());
    let remote = Remote::new(network, resolvers, archives, settings.allows_private);
    let namespace = Arc::new(Namespace::new(remote, cache));
    let notifier = Arc::new(OnceLock::new());
    forget_what_changes(&namespace, &notifier);
    let filesystem = WorldFs::new(Arc::clone(&namespace), runtime.handle().clone(), wake);
    let source = settings.resolvers.first().or(settings.archives.first());
    let source = source.map_or_else(|| "ibi".to_owned(), BaseUrl::to_string);
    let attachment = Attachment {
        source: Path::new(&source),
        subtype: "ibifs-world",
        options: &[MountOption::RO, MountOption::NoSuid, MountOption::NoDev],
        flags: MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV,
        allow_other: settings.allow_other,
        threads: THREADS,
    };
    let session = attachment.attach(filesystem, &mount_point)?;
    let _ = notifier.set(session.notifier());
    let background = session.spawn().map_err(WorldError::System)?;
    // It is usable when its root answers.
    std::fs::metadata(&mount_point).map_err(WorldError::System)?;
    log::info!("items of other Archives are at {}", mount_point.display());
    watcher.ready();
    wait_for_end(background, &mount_point, watcher);
    // Requests that wait for the network are given up.
    runtime.shutdown_background();
    Ok(())
}

/// Tells the kernel to forget the names and attributes of an item that has changed.
fn forget_what_changes(namespace: &Arc<Namespace>, notifier: &Arc<OnceLock<Notifier>>) {
    let (known, notifier) = (Arc::downgrade(namespace), Arc::clone(notifier));
    namespace.items.notify(Box::new(move |slot, before, after| {
        let (Some(namespace), Some(notifier)) = (known.upgrade(), notifier.get()) else {
            return;
        };
        let (stale, notifier) = (namespace.stale(slot, before, after), notifier.clone());
        // The kernel may make it wait for a process that waits for us.
        tokio::task::spawn_blocking(move || {
            for stale in stale {
                let done = match &stale {
                    Stale::Name(above, name) => {
                        notifier.inval_entry(INodeNo(*above), OsStr::from_bytes(name))
                    }
                    Stale::Directory(number) => notifier.inval_inode(INodeNo(*number), 0, 0),
                };
                if let Err(error) = done {
                    log::debug!("{stale:?}: {error}");
                }
            }
        });
    }));
}
