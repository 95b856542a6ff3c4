//! Whole items in the cache: they are fetched, pinned, so that they stay, and dropped.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::formats::inventory::EntryKind;
use crate::world::cache::{Keeping, Pin};
use crate::world::error::ForeignError;
use crate::world::mount::messages::KeepError;
use crate::world::mount::namespace::ForeignTree;
use crate::world::remote::content::RemoteFile;
use crate::world::remote::items::ForeignItem;
use ibi::Ibi;

/// The number of files that are fetched at a time.
const AT_A_TIME: usize = 4;

/// The part of what is asked for that is in the cache, in bytes.
#[derive(Debug, Default)]
pub(crate) struct KeepProgress {
    pub(crate) done: AtomicU64,
    pub(crate) all: AtomicU64,
}

/// The part of an item that is in the cache: files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl From<ForeignError> for KeepError {
    fn from(trouble: ForeignError) -> KeepError {
        match trouble {
            ForeignError::Missing => KeepError::Missing,
            trouble => KeepError::Failed(trouble.to_string()),
        }
    }
}

/// The files of an item, each once.
fn files_of(item: &ForeignItem) -> Vec<Arc<RemoteFile>> {
    let entries = item.inventory.entries().iter().zip(0..);
    let files = entries.filter_map(|(entry, position)| match &entry.kind {
        EntryKind::File(file) if item.inventory.first_name(position).0 == position => {
            let url = item.file_url(&entry.path);
            Some(Arc::new(RemoteFile::new(url, file.clone())))
        }
        _ => None,
    });
    files.collect()
}

/// Fetches all files of an item. With `is_pinned` they stay in the cache until they are dropped.
pub(crate) async fn fetch(
    namespace: &Arc<ForeignTree>,
    ibi: &Ibi,
    is_pinned: bool,
    progress: &Arc<KeepProgress>,
) -> Result<KeptFiles, KeepError> {
    let slot = namespace.items.find(ibi).await?;
    let item = slot.value().ok_or(KeepError::Missing)?;
    let (cache, content) = (&namespace.cache, &namespace.content);
    // Pins are counted one after the other, so that together they keep the limit.
    let _turn = if is_pinned {
        Some(cache.pinning.lock().await)
    } else {
        None
    };
    let files = files_of(&item);
    let mut counted = HashSet::new();
    let need: u64 = files
        .iter()
        .map(|file| content.takes(file, is_pinned, &mut counted))
        .sum();
    let room = if is_pinned {
        cache.room_for_pins()
    } else {
        cache.usage().limit
    };
    if need > room {
        return Err(KeepError::TooLarge(need, room));
    }
    let bytes = files.iter().map(|file| file.size()).sum();
    progress.all.fetch_add(bytes, Ordering::Relaxed);
    let keeping = Arc::new(Mutex::new(cache.keep_for_now()));
    if is_pinned {
        keeping.lock().add(namespace.items.file_of(slot.key()));
    }
    let kept = KeptFiles {
        files: files.len() as u64,
        bytes,
    };
    let mut running = JoinSet::new();
    for file in &files {
        let file = Arc::clone(file);
        while running.len() >= AT_A_TIME {
            over(running.join_next().await)?;
        }
        let (namespace, keeping) = (Arc::clone(namespace), Arc::clone(&keeping));
        let progress = Arc::clone(progress);
        running.spawn(async move { load(&namespace, &file, is_pinned, &keeping, &progress).await });
    }
    while let Some(ended) = running.join_next().await {
        over(Some(ended))?;
    }
    // A disk may be full before the limit is reached.
    if !files.iter().all(|file| content.is_held(file)) {
        return Err(ForeignError::Full.into());
    }
    if is_pinned {
        let pin = Pin {
            what: ibi.to_string(),
            files: keeping.lock().names().clone(),
        };
        cache.pin(&namespace.items.key_of(slot.key()), pin)?;
    }
    Ok(kept)
}

fn over(
    ended: Option<Result<Result<(), ForeignError>, tokio::task::JoinError>>,
) -> Result<(), KeepError> {
    match ended {
        Some(Ok(done)) => Ok(done?),
        Some(Err(error)) => Err(KeepError::Failed(error.to_string())),
        None => Ok(()),
    }
}

async fn load(
    namespace: &Arc<ForeignTree>,
    file: &Arc<RemoteFile>,
    is_pinned: bool,
    keeping: &Mutex<Keeping>,
    progress: &KeepProgress,
) -> Result<(), ForeignError> {
    let content = &namespace.content;
    let keep = |name: String| {
        if is_pinned {
            keeping.lock().add(name);
        }
    };
    keep(content.digests_file(file));
    for number in file.pieces() {
        content.load(file, number, &keep).await?;
        let size = file.piece_size(number);
        progress.done.fetch_add(size, Ordering::Relaxed);
    }
    if namespace.is_read_by_kernel() {
        let (content, file) = (Arc::clone(content), Arc::clone(file));
        let made = tokio::task::spawn_blocking(move || content.assemble(&file));
        let _ = made.await;
    }
    Ok(())
}

/// An item has changed at its Archive: if it is pinned, what is new of it is fetched, and what is old is let go.
pub(crate) async fn follow(namespace: &Arc<ForeignTree>, key: &str) {
    let Ok(ibi) = Ibi::parse(key) else {
        return;
    };
    if namespace
        .cache
        .pinned(&namespace.items.key_of(key))
        .is_none()
    {
        return;
    }
    match fetch(namespace, &ibi, true, &Arc::default()).await {
        Ok(kept) => log::info!("{ibi} has changed; {} files are pinned", kept.files),
        Err(error) => log::warn!("{ibi} has changed, and what was pinned stays: {error:?}"),
    }
}

/// Removes an item from the cache, and no longer keeps it. Files that other pins keep stay.
pub(crate) fn remove(namespace: &Arc<ForeignTree>, ibi: &Ibi) -> Result<KeptFiles, KeepError> {
    let (cache, items) = (&namespace.cache, &namespace.items);
    let key = ibi.canonical();
    let pin = cache.unpin(&items.key_of(&key));
    let item = items.held(ibi);
    let mut names = pin.map(|pin| pin.files).unwrap_or_default();
    let mut kept = KeptFiles::default();
    for file in item.iter().flat_map(|item| files_of(item)) {
        names.extend(namespace.content.held_files(&file));
        namespace.content.forget(&file);
        kept.files += 1;
        kept.bytes += file.size();
    }
    names.insert(items.file_of(&key));
    let mut is_removed = false;
    for name in names {
        is_removed |= cache.discard_unpinned(&name);
    }
    if is_removed {
        Ok(kept)
    } else {
        Err(KeepError::Missing)
    }
}
