//! Asks the process that uses a cache: for a mount, or for whole items in the cache.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::fuse::mount::{Mounted, Watcher, block_signals, mounts, unmount, wait_for_signal, wake};
use crate::os::opening::{self, by_descriptor};
use crate::world::cache::open_directory;
use crate::world::mount::control::{connect, send_with, view};
use crate::world::mount::messages::{Answer, KeepAction, KeepError, ProcessTask, Question};
use crate::world::mount::namespace::STATUS;
use crate::world::mount::settings::WorldSettings;
use ibi::Ibi;
use ibi::pairs::{Pairs, percent_decode};

/// The time that a mount may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time that an unmount may take.
const LAST_ORDERS: Duration = Duration::from_secs(5);

/// The reason why the process that uses a cache did not do what was asked.
#[derive(Debug)]
pub enum AskError {
    /// It does not answer.
    Silent,
    /// It sees other files, as in a container.
    Elsewhere,
    /// It is gone before its mounts were unmounted.
    Gone,
    /// Another reason.
    Refused(String),
    /// The system.
    System(std::io::Error),
}

/// Returns what the process of a mount holds and has done. None if that is not a mount of items of other Archives, or
/// its process is gone.
#[must_use]
pub fn status(mount_point: &Path) -> Option<Pairs> {
    let mut text = vec![0; 64 << 10];
    let length = rustix::fs::getxattr(mount_point, STATUS, &mut text).ok()?;
    text.truncate(length);
    Pairs::parse(&text).ok()
}

/// Waits until a mount is usable, which is when it answers. This process may have to do that, and not the one that has
/// mounted: at a mount point of autofs that one waits until our command has ended.
#[expect(
    clippy::disallowed_methods,
    reason = "it was just mounted for this process"
)]
pub(crate) fn wait_for_answer(mount_point: &Path) -> std::io::Result<()> {
    rustix::fs::statfs(mount_point)?;
    Ok(())
}

/// The answers to a question, which a descriptor may go with.
fn ask(
    cache: &Path,
    asked: ProcessTask,
    descriptor: Option<BorrowedFd<'_>>,
) -> std::io::Result<BufReader<UnixStream>> {
    let question = Question {
        view: view(),
        asked,
    };
    let mut stream = connect(cache)?;
    let text = question.written();
    let sent = send_with(&stream, text.as_bytes(), descriptor)?;
    stream.write_all(&text.as_bytes()[sent..])?;
    stream.shutdown(Shutdown::Write)?;
    Ok(BufReader::new(stream))
}

/// The next answer. None if there is no other one.
fn next(answers: &mut BufReader<UnixStream>) -> std::io::Result<Option<Answer>> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let answer = Answer::parse(&line);
    answer
        .map(Some)
        .ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// Asks the process that uses the cache for a mount. With `stays` this waits until it is unmounted, and unmounts it if a
/// signal asks for that. None if there was no answer because the process begins or ends: then it is worth while to ask
/// again.
pub(crate) fn mount(
    mount_point: &Path,
    settings: &WorldSettings,
    stays: bool,
    watcher: &impl Watcher,
) -> Option<Result<(), AskError>> {
    let asked = ProcessTask::Mount(mount_point.to_owned(), settings.clone());
    // Another user who has put a directory in its place since would say that it is mounted.
    let cache = open_directory(&settings.cache).ok()?;
    let cache = by_descriptor(cache.as_fd());
    let place = opening::found(mount_point, OFlags::DIRECTORY).ok();
    let answers = ask(Path::new(&cache), asked, place.as_ref().map(AsFd::as_fd));
    drop(place);
    let mut answers = answers.ok()?;
    // Before a thread is started.
    block_signals();
    let _ = answers.get_ref().set_read_timeout(Some(TIMEOUT));
    match next(&mut answers) {
        Ok(Some(Answer::Ready)) => {}
        Ok(Some(Answer::Elsewhere)) => return Some(Err(AskError::Elsewhere)),
        Ok(Some(Answer::Refused(why))) => return Some(Err(AskError::Refused(why))),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            return Some(Err(AskError::Silent));
        }
        _ => return None,
    }
    if let Err(error) = wait_for_answer(mount_point) {
        return Some(Err(AskError::System(error)));
    }
    watcher.ready();
    if !stays {
        return Some(Ok(()));
    }
    let _ = answers.get_ref().set_read_timeout(None);
    let waiting = std::thread::spawn(move || {
        let answer = next(&mut answers);
        wake();
        matches!(answer, Ok(Some(Answer::Ended)))
    });
    let is_over = wait_for_signal(|change| watcher.change_log(change));
    watcher.stopping();
    if !is_over {
        if let Err(refused) = unmount(mount_point) {
            return Some(Err(AskError::Refused(refused)));
        }
        let until = Instant::now() + LAST_ORDERS;
        while !waiting.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        return Some(Ok(()));
    }
    if waiting.join().unwrap_or(false) || !is_mounted(mount_point) {
        return Some(Ok(()));
    }
    let _ = unmount(mount_point);
    Some(Err(AskError::Gone))
}

fn is_mounted(mount_point: &Path) -> bool {
    let is_there = |mount: &Mounted| mount.is_world() && mount.mount_point == mount_point;
    mounts().iter().any(is_there)
}

/// A report while items are fetched, pinned or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReport {
    /// So many bytes of so many are in the cache.
    Progress(u64, u64),
    /// An item is done, with so many files and bytes.
    Done(Ibi, u64, u64),
    /// An item is not done.
    Failed(Ibi, KeepError),
}

/// Fetches, pins or drops items of a mount, whose [`status`] this is.
///
/// # Errors
/// Its process does not answer.
pub fn keep(
    status: &Pairs,
    action: KeepAction,
    items: &[Ibi],
    report: &mut dyn FnMut(KeepReport),
) -> Result<(), AskError> {
    let word = |name: &str| status.get(name).and_then(|value| value.words().first());
    let cache =
        word("cache").map(|word| PathBuf::from(std::ffi::OsString::from_vec(percent_decode(word))));
    let number = word("mount").and_then(|word| word.parse().ok());
    let (Some(cache), Some(number)) = (cache, number) else {
        return Err(AskError::Gone);
    };
    let asked = ProcessTask::Keep(action, number, items.to_vec());
    let mut answers = ask(&cache, asked, None).map_err(AskError::System)?;
    loop {
        match next(&mut answers).map_err(AskError::System)? {
            Some(Answer::Progress(done, all)) => report(KeepReport::Progress(done, all)),
            Some(Answer::Item(ibi, files, bytes)) => report(KeepReport::Done(ibi, files, bytes)),
            Some(Answer::ForeignError(ibi, error)) => report(KeepReport::Failed(ibi, error)),
            Some(Answer::Done) => return Ok(()),
            Some(Answer::Refused(why)) => return Err(AskError::Refused(why)),
            _ => return Err(AskError::Gone),
        }
    }
}
