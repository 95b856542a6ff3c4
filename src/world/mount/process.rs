//! The process that uses a cache: its mounts, and what other processes of the user ask of it.
//!
//! Each mount asks those that its user has named, and knows its own items; the cache is shared. The process ends with its
//! last mount.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

use fuser::{BackgroundSession, INodeNo, Notifier};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::fuse::mount::{Attachment, MountError, wake};
use crate::http::client::Network;
use crate::world::cache::Cache;
use crate::world::mount::fs::WorldFs;
use crate::world::mount::keeping;
use crate::world::mount::mounts::Mounts;
use crate::world::mount::namespace::{ForeignStale, ForeignTree};
use crate::world::mount::settings::WorldSettings;
use crate::world::remote::requests::RemoteServers;
use ibi::message;
use ibi::message::Localize;

/// The number of threads that take the requests of a mount. None of them waits for the network.
const THREADS: usize = 4;

/// The process that uses a cache.
#[derive(Debug)]
pub(crate) struct WorldProcess {
    pub(crate) cache: Arc<Cache>,
    pub(crate) mounts: Arc<Mounts>,
    handle: Handle,
    namespaces: Mutex<BTreeMap<u64, Arc<ForeignTree>>>,
}

/// A mount of this process.
#[derive(Debug)]
pub(crate) struct Attached {
    process: Arc<WorldProcess>,
    number: u64,
    session: BackgroundSession,
    ended: Receiver<()>,
}

impl WorldProcess {
    /// A process without a mount.
    pub(crate) fn new(cache: Arc<Cache>, handle: Handle) -> Arc<WorldProcess> {
        Arc::new(WorldProcess {
            cache,
            mounts: Arc::default(),
            handle,
            namespaces: Mutex::default(),
        })
    }

    /// The names of the mount with this number.
    pub(crate) fn namespace(&self, number: u64) -> Option<Arc<ForeignTree>> {
        self.namespaces.lock().get(&number).cloned()
    }

    /// Mounts the items of other Archives. `target` leads to the mount point, too. None if the process ends.
    pub(crate) fn attach(
        self: &Arc<Self>,
        mount_point: &Path,
        target: &Path,
        settings: &WorldSettings,
        network: &Network,
    ) -> Option<Result<Attached, MountError>> {
        let number = self.mounts.begin(mount_point)?;
        let attached = self.attach_as(number, mount_point, target, settings, network);
        if attached.is_err() {
            self.end(number);
        }
        Some(attached)
    }

    fn end(&self, number: u64) {
        self.namespaces.lock().remove(&number);
        if self.mounts.end(number) {
            wake();
        }
    }

    fn attach_as(
        self: &Arc<Self>,
        number: u64,
        mount_point: &Path,
        target: &Path,
        settings: &WorldSettings,
        network: &Network,
    ) -> Result<Attached, MountError> {
        let (resolvers, archives) = (settings.resolvers.clone(), settings.archives.clone());
        let remote = RemoteServers::new(network, resolvers, archives, settings.allows_private);
        let (cache, mounts) = (Arc::clone(&self.cache), Arc::clone(&self.mounts));
        let mut namespace = ForeignTree::new(remote, cache, mounts, number);
        if let (true, Some(archive)) = (settings.is_listed, settings.archives.first()) {
            namespace = namespace.listing(&archive.at(""));
        }
        let namespace = Arc::new(namespace);
        let notifier = Arc::new(OnceLock::new());
        follow_what_changes(&namespace, &notifier);
        let (at_end, ended) = channel();
        let at_end = move || {
            let _ = at_end.send(());
        };
        let handle = self.handle.clone();
        let filesystem = WorldFs::new(Arc::clone(&namespace), handle, Box::new(at_end));
        let source = settings.source();
        let attachment = Attachment {
            source: Path::new(&source),
            subtype: "ibifs-world",
            flags: settings.flags,
            allow_other: settings.allow_other,
            threads: THREADS,
        };
        let failed = |error: std::io::Error| MountError::Failed {
            cause: error.message(),
        };
        self.namespaces
            .lock()
            .insert(number, Arc::clone(&namespace));
        let session = attachment.attach(filesystem, target)?;
        let _ = notifier.set(session.notifier());
        let session = session.spawn().map_err(failed)?;
        log::info!("items of other Archives are at {}", mount_point.display());
        Ok(Attached {
            process: Arc::clone(self),
            number,
            session,
            ended,
        })
    }
}

impl Attached {
    /// Waits in a thread of its own until it is unmounted. Then this is called.
    pub(crate) fn wait(self, and_then: impl FnOnce() + Send + 'static) {
        let waiting = std::thread::Builder::new().name("mount".to_owned());
        let process = Arc::clone(&self.process);
        let number = self.number;
        let started = waiting.spawn(move || {
            // It also ends when the session is dropped.
            let _ = self.ended.recv();
            if let Err(error) = self.session.join() {
                log::warn!("the session ended with: {error}");
            }
            and_then();
            self.process.end(self.number);
        });
        if let Err(error) = started {
            log::error!("{}: {error}", message!("the daemon"));
            process.end(number);
        }
    }
}

/// Tells the kernel to forget the names and attributes of an item that has changed, and follows it where it is pinned.
fn follow_what_changes(namespace: &Arc<ForeignTree>, notifier: &Arc<OnceLock<Notifier>>) {
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
                    ForeignStale::Name(above, name) => {
                        notifier.inval_entry(INodeNo(*above), OsStr::from_bytes(name))
                    }
                    ForeignStale::Directory(number) => notifier.inval_inode(INodeNo(*number), 0, 0),
                };
                if let Err(error) = done {
                    log::debug!("{stale:?}: {error}");
                }
            }
        });
        if after.is_some() {
            let key = slot.key().to_owned();
            tokio::spawn(async move { keeping::follow(&namespace, &key).await });
        }
    }));
}
