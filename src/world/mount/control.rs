//! The socket in the directory of a cache, by which the process that uses the cache is asked. The process of another user
//! is not heard, except root's.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};

use crate::http::client::Network;
use crate::os::directory::Directory;
use crate::os::opening::{self, by_descriptor};
use crate::world::mount::keeping::{self, KeepProgress};
use crate::world::mount::messages::{
    Answer, KeepAction, KeepError, LONGEST, ProcessTask, Question,
};
use crate::world::mount::process::WorldProcess;
use crate::world::mount::settings::WorldSettings;
use ibi::Ibi;

/// The name of the socket.
const SOCKET: &str = "socket";
/// The time that a question may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which the progress is sent.
const OFTEN: Duration = Duration::from_millis(200);

/// The directory of a cache.
fn opened(directory: &Path) -> std::io::Result<Directory> {
    Ok(opening::found(directory, OFlags::DIRECTORY)?.into())
}

/// The socket of this process.
pub(crate) fn bind(directory: &Path) -> std::io::Result<std::os::unix::net::UnixListener> {
    let listener = opened(directory)?.bind(SOCKET, 0o600)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A connection to the process that uses a cache.
pub(crate) fn connect(directory: &Path) -> std::io::Result<std::os::unix::net::UnixStream> {
    opened(directory)?.connect(SOCKET)
}

/// Sends the beginning of a text, with a descriptor, and returns how many bytes that are.
pub(crate) fn send_with(
    stream: &std::os::unix::net::UnixStream,
    text: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        let descriptors = std::slice::from_ref(descriptor);
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let text = [IoSlice::new(text)];
    Ok(sendmsg(stream, &text, &mut ancillary, SendFlags::empty())?)
}

/// A question, and the descriptor that has come with its beginning.
async fn arriving(stream: &mut UnixStream) -> std::io::Result<(String, Option<OwnedFd>)> {
    let mut text = vec![0; 4096];
    let (length, descriptor) = stream
        .async_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let beginning = &mut [IoSliceMut::new(&mut text)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = recvmsg(&*stream, beginning, &mut ancillary, flags)?;
            let descriptor = ancillary.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
                _ => None,
            });
            Ok((received.bytes, descriptor))
        })
        .await?;
    text.truncate(length);
    stream.take(LONGEST).read_to_end(&mut text).await?;
    let text = String::from_utf8(text).map_err(|_| std::io::ErrorKind::InvalidData)?;
    Ok((text, descriptor))
}

/// Removes the socket of this process.
pub(crate) fn unbind(directory: &Path) {
    let _ = opened(directory).map(|directory| directory.remove_file(SOCKET));
}

/// Returns what decides which files a process sees at a path: its mount namespace, and its root.
pub(crate) fn view() -> String {
    let namespace = std::fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
    let root = std::fs::metadata("/").map(|root| (root.dev(), root.ino()));
    format!("{} {:?}", namespace.display(), root.ok())
}

/// Answers until the process ends.
pub(crate) async fn listen(listener: std::os::unix::net::UnixListener, process: Arc<WorldProcess>) {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return log::error!("the socket of the cache: {error}"),
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let process = Arc::clone(&process);
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, process).await {
                        log::debug!("a question to the cache: {error}");
                    }
                });
            }
            Err(error) => {
                log::warn!("the socket of the cache: {error}");
                tokio::time::sleep(OFTEN).await;
            }
        }
    }
}

async fn answer(mut stream: UnixStream, process: Arc<WorldProcess>) -> std::io::Result<()> {
    let asking = stream.peer_cred()?.uid();
    if asking != 0 && asking != rustix::process::geteuid().as_raw() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let arriving = tokio::time::timeout(TIMEOUT, arriving(&mut stream));
    let (text, descriptor) = arriving.await??;
    let Some(question) = Question::parse(&text) else {
        let answer = Answer::Refused("the question is that of another version of ibifs".to_owned());
        return send(&mut stream, &answer).await;
    };
    match question.asked {
        ProcessTask::Mount(..) if question.view != view() => {
            send(&mut stream, &Answer::Elsewhere).await
        }
        ProcessTask::Mount(path, settings) => {
            mount(&mut stream, process, path, descriptor, settings).await
        }
        ProcessTask::Keep(action, number, items) => {
            keep(&mut stream, &process, action, number, items).await
        }
    }
}

async fn send(stream: &mut UnixStream, answer: &Answer) -> std::io::Result<()> {
    stream.write_all(answer.written().as_bytes()).await
}

/// Mounts, and says so again when it is unmounted. Says nothing if the process ends.
async fn mount(
    stream: &mut UnixStream,
    process: Arc<WorldProcess>,
    path: PathBuf,
    descriptor: Option<OwnedFd>,
    settings: WorldSettings,
) -> std::io::Result<()> {
    let mounted = tokio::task::spawn_blocking(move || {
        if let Some(limit) = settings.limit {
            process
                .cache
                .set_limit(limit)
                .map_err(|error| error.to_string())?;
        }
        let network = Network::new(settings.ca_file.as_deref());
        let network = network.map_err(|error| error.to_string())?;
        // On the way to a mount point of autofs this process would wait. fusermount3 has other descriptors.
        let descriptor = descriptor.filter(|_| rustix::process::geteuid().is_root());
        let target = descriptor.as_ref().map(|it| by_descriptor(it.as_fd()));
        let target = target.map_or_else(|| path.clone(), PathBuf::from);
        let attached = process.attach(&path, &target, &settings, &network);
        let attached = attached.transpose();
        attached.map_err(|error| error.to_string())
    });
    let attached = match mounted.await? {
        Ok(Some(attached)) => attached,
        Ok(None) => return Ok(()),
        Err(why) => return send(stream, &Answer::Refused(why)).await,
    };
    let (at_end, ended) = tokio::sync::oneshot::channel();
    attached.wait(move || {
        let _ = at_end.send(());
    });
    send(stream, &Answer::Ready).await?;
    let _ = ended.await;
    send(stream, &Answer::Ended).await
}

async fn keep(
    stream: &mut UnixStream,
    process: &Arc<WorldProcess>,
    action: KeepAction,
    number: u64,
    items: Vec<Ibi>,
) -> std::io::Result<()> {
    let Some(namespace) = process.namespace(number) else {
        return send(
            stream,
            &Answer::Refused("it is no longer mounted".to_owned()),
        )
        .await;
    };
    let progress = Arc::<KeepProgress>::default();
    for ibi in items {
        let kept = match action {
            KeepAction::Drop => keeping::remove(&namespace, &ibi),
            KeepAction::Fetch | KeepAction::Pin => {
                let is_pinned = action == KeepAction::Pin;
                let fetching = keeping::fetch(&namespace, &ibi, is_pinned, &progress);
                tokio::pin!(fetching);
                loop {
                    tokio::select! {
                        kept = &mut fetching => break kept,
                        () = tokio::time::sleep(OFTEN) => {
                            let [done, all] = [&progress.done, &progress.all]
                                .map(|number| number.load(Ordering::Relaxed));
                            // A client that no longer listens has ended, and the fetching with it.
                            send(stream, &Answer::Progress(done, all)).await?;
                        }
                    }
                }
            }
        };
        let answer = match kept {
            Ok(kept) => Answer::Item(ibi, kept.files, kept.bytes),
            Err(error) => {
                if let KeepError::Failed(why) = &error {
                    log::info!("{ibi}: {why}");
                }
                Answer::ForeignError(ibi, error)
            }
        };
        send(stream, &answer).await?;
    }
    send(stream, &Answer::Done).await
}
