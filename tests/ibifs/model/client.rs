//! Real processes' threads, each with a directory and open files of its own, that do what they are
//! printed by system calls.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, XattrFlags};
use rustix::io::Errno;

use super::operation::{Act, Answer, How, Operation, Seen};
use super::tree::Who;
use crate::posix::row::User;
use crate::posix::system::{acting_as, detach};

/// An operation with everything that has to be known for it.
#[derive(Clone, Debug)]
pub struct Call {
    pub operation: Operation,
    /// The path that is meant, or both.
    pub paths: Vec<String>,
    /// The target or value.
    pub text: String,
    /// The content of a sidecar.
    pub bytes: Vec<u8>,
}

/// The result of an operation.
#[derive(Debug)]
pub struct Reply {
    pub answer: Answer,
    /// The time at which the content was last changed, if it was requested.
    pub time: Option<(i64, i64)>,
    pub took: Duration,
}

/// A client.
pub struct Client {
    calls: Option<Sender<Call>>,
    replies: Receiver<Reply>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Longer than any wait that ends.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    pub fn start() -> Client {
        let (calls, received) = channel::<Call>();
        let (send, replies) = channel();
        let thread = std::thread::spawn(move || {
            detach();
            let mut desk = Desk::default();
            for call in received {
                let started = Instant::now();
                desk.time = None;
                let answer = desk.perform(&call);
                let reply = Reply {
                    answer,
                    time: desk.time,
                    took: started.elapsed(),
                };
                if send.send(reply).is_err() {
                    return;
                }
            }
        });
        Client {
            calls: Some(calls),
            replies,
            thread: Some(thread),
        }
    }

    /// Has it do something, and waits for it; None where that takes too long.
    pub fn perform(&self, call: Call) -> Option<Reply> {
        let calls = self.calls.as_ref().expect("a client that runs");
        calls.send(call).expect("a client that listens");
        self.replies.recv_timeout(TIMEOUT).ok()
    }

    /// Ends it, with all that it has open.
    pub fn end(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a client that ends well");
        }
    }
}

/// The state of a client.
#[derive(Default)]
struct Desk {
    handles: BTreeMap<usize, OwnedFd>,
    time: Option<(i64, i64)>,
}

type Outcome = Result<Answer, Errno>;

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn attribute(path: &str, name: &str) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::lgetxattr(path, name, &mut value[..])?;
    value.truncate(length);
    Ok(value)
}

pub fn kind_of(kind: FileType) -> char {
    match kind {
        FileType::RegularFile => 'f',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        _ => '?',
    }
}

pub fn seen(stat: &Stat) -> Seen {
    let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
    Seen {
        kind,
        size: (kind != 'd').then_some(stat.st_size as u64),
        owned: Some((
            stat.st_mode & 0o7777,
            stat.st_uid,
            stat.st_gid,
            stat.st_nlink,
        )),
    }
}

/// The names in a directory, with what they are and their numbers.
pub fn listing(path: &str) -> std::io::Result<Vec<(String, char, u64)>> {
    use std::os::unix::fs::DirEntryExt;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = match kind {
            _ if kind.is_dir() => 'd',
            _ if kind.is_symlink() => 'l',
            _ if kind.is_file() => 'f',
            _ if kind.is_fifo() => 'p',
            _ => '?',
        };
        names.push((
            entry.file_name().to_string_lossy().into_owned(),
            kind,
            entry.ino(),
        ));
    }
    names.sort();
    Ok(names)
}

/// The names of attributes that any user may set.
pub fn attribute_names(path: &str) -> Result<Vec<String>, Errno> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..])?;
    let names = names[..length].split(|byte| *byte == 0);
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("user.")).collect();
    names.sort();
    Ok(names)
}

/// In a process of its own: what a program that has just made a directory sees is not what others see.
fn apart(action: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    // SAFETY: the child makes system calls alone and ends without running anything of this process.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(action().map_or_else(|errno| errno.raw_os_error(), |()| 0)),
            -1 => panic!("no process"),
            child => {
                let mut status = 0;
                while libc::waitpid(child, &mut status, 0) == -1 {}
                match libc::WEXITSTATUS(status) {
                    0 => Ok(()),
                    errno => Err(Errno::from_raw_os_error(errno)),
                }
            }
        }
    }
}

fn make_directory(path: &str, mode: u32) -> Result<(), Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(mode))
}

fn minted(path: &str) -> Outcome {
    let name = |name| -> Result<String, Errno> {
        Ok(String::from_utf8_lossy(&attribute(path, name)?).into_owned())
    };
    Ok(Answer::Minted(
        name("user.ibi.rep")?,
        name("user.ibi.ibip")?,
    ))
}

impl Desk {
    fn perform(&mut self, call: &Call) -> Answer {
        let user = match call.operation.who {
            Who::Root => User::Root,
            Who::Alice => User::Alice,
        };
        let outcome = acting_as(user, || self.try_to(call));
        outcome.unwrap_or_else(|errno| Answer::Refused(errno.raw_os_error()))
    }

    fn handle(&self, slot: usize) -> Result<&OwnedFd, Errno> {
        self.handles.get(&slot).ok_or(Errno::BADF)
    }

    fn seen(&mut self, stat: &Stat) -> Answer {
        self.time = Some((stat.st_mtime, stat.st_mtime_nsec as i64));
        Answer::Seen(seen(stat))
    }

    fn try_to(&mut self, call: &Call) -> Outcome {
        let path = call.paths.first().map_or("", String::as_str);
        if let Act::ChangeMode { .. } | Act::ChangeOwner { .. } | Act::Link { .. } =
            call.operation.act
            && call.operation.who != Who::Root
        {
            // The kernel knows the owner of a directory or link only as of its last request in this tree.
            let _ = rustix::fs::stat(path);
            let _ = rustix::fs::lstat(path);
        }
        match &call.operation.act {
            Act::Stat(_) => {
                let stat = rustix::fs::lstat(path)?;
                return Ok(self.seen(&stat));
            }
            Act::List(_) => {
                let names = listing(path).map_err(errno)?.into_iter();
                let names = names.map(|(name, kind, _)| (name, kind));
                return Ok(Answer::Names(names.collect()));
            }
            Act::ReadLink(_) => {
                let target = rustix::fs::readlink(path, Vec::new())?;
                return Ok(Answer::Text(target.to_string_lossy().into_owned()));
            }
            Act::Enter(_) => rustix::process::chdir(path)?,
            Act::Get(_) => return Ok(Answer::Bytes(std::fs::read(path).map_err(errno)?)),
            Act::Put {
                flags, mode, data, ..
            } => {
                let flags = OFlags::from_bits_retain(*flags as u32) | OFlags::WRONLY;
                let file = rustix::fs::open(path, flags, Mode::from_raw_mode(*mode))?;
                write_all(&file, &data.bytes())?;
            }
            Act::Open {
                slot, flags, mode, ..
            } => {
                let flags = OFlags::from_bits_retain(*flags as u32) | OFlags::CLOEXEC;
                let file = rustix::fs::open(path, flags, Mode::from_raw_mode(*mode))?;
                self.handles.insert(*slot, file);
            }
            Act::Read {
                slot,
                offset,
                length,
            } => {
                let (mut bytes, mut done) = (vec![0; *length], 0);
                while done < *length {
                    let room = &mut bytes[done..];
                    match rustix::io::pread(self.handle(*slot)?, room, offset + done as u64)? {
                        0 => break,
                        count => done += count,
                    }
                }
                bytes.truncate(done);
                return Ok(Answer::Bytes(bytes));
            }
            Act::Write { slot, offset, data } => {
                let (file, bytes) = (self.handle(*slot)?, data.bytes());
                let count = match offset {
                    Some(offset) => rustix::io::pwrite(file, &bytes, *offset)?,
                    None => rustix::io::write(file, &bytes)?,
                };
                let here = rustix::fs::SeekFrom::Current(0);
                return Ok(Answer::Written {
                    count: count as u64,
                    position: rustix::fs::seek(file, here)?,
                });
            }
            Act::Cut { slot, length } => rustix::fs::ftruncate(self.handle(*slot)?, *length)?,
            Act::StatOpen { slot } => {
                let stat = rustix::fs::fstat(self.handle(*slot)?)?;
                return Ok(self.seen(&stat));
            }
            Act::Sync { slot } => rustix::fs::fsync(self.handle(*slot)?)?,
            Act::Close { slot } => drop(self.handles.remove(slot)),
            Act::Truncate { length, .. } => {
                let name = std::ffi::CString::new(path).map_err(|_| Errno::INVAL)?;
                // SAFETY: the pointer is to a C string that lives for the call.
                if unsafe { libc::truncate(name.as_ptr(), *length as i64) } != 0 {
                    return Err(errno(std::io::Error::last_os_error()));
                }
            }
            Act::MakeDirectory { mode, .. } => make_directory(path, *mode)?,
            Act::RemoveDirectory(_) => rustix::fs::rmdir(path)?,
            Act::Remove(_) => rustix::fs::unlink(path)?,
            Act::MakeLink { .. } => rustix::fs::symlink(call.text.as_str(), path)?,
            Act::Link { .. } => {
                rustix::fs::linkat(CWD, path, CWD, call.paths[1].as_str(), AtFlags::empty())?;
            }
            Act::Rename { flags, .. } => {
                let (to, flags) = (
                    call.paths[1].as_str(),
                    RenameFlags::from_bits_retain(*flags),
                );
                let rename = || rustix::fs::renameat_with(CWD, path, CWD, to, flags);
                match rename() {
                    // A directory that has moved in the other tree and is in use in this one the kernel
                    // cannot find while it renames; it does when it is asked before, as mv does.
                    Err(Errno::STALE) => {
                        let _ = (rustix::fs::lstat(path), rustix::fs::lstat(to));
                        rename()?;
                    }
                    outcome => outcome?,
                }
            }
            Act::ChangeMode { mode, .. } => rustix::fs::chmod(path, Mode::from_raw_mode(*mode))?,
            Act::ChangeOwner { owner, .. } => {
                let (uid, gid) = *owner;
                let uid = Some(rustix::fs::Uid::from_raw(uid));
                let gid = Some(rustix::fs::Gid::from_raw(gid));
                rustix::fs::chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Act::SetAttribute { name, flags, .. } => {
                let flags = XattrFlags::from_bits_retain(*flags as u32);
                rustix::fs::lsetxattr(path, *name, call.text.as_bytes(), flags)?;
            }
            Act::GetAttribute { name, .. } => return Ok(Answer::Bytes(attribute(path, name)?)),
            Act::ListAttributes(_) => {
                let names = attribute_names(path)?.into_iter();
                return Ok(Answer::Names(names.map(|name| (name, 'x')).collect()));
            }
            Act::RemoveAttribute { name, .. } => rustix::fs::lremovexattr(path, *name)?,
            Act::Mint { with_doc: true, .. } => {
                apart(|| make_directory(path, 0o755))?;
                let doc = format!("{path}/doc");
                let twice = (make_directory(&doc, 0o755), make_directory(&doc, 0o755));
                if twice != (Ok(()), Err(Errno::EXIST)) {
                    return Ok(Answer::Text(format!("mkdir doc, twice: {twice:?}")));
                }
                return minted(path);
            }
            Act::Mint { .. } => {
                apart(|| make_directory(path, 0o755))?;
                make_directory(&format!("{path}/doc"), 0o755)?;
                return minted(path);
            }
            Act::MintRelated { .. } => {
                apart(|| make_directory(path, 0o755))?;
                // It is a link for all but its maker.
                return minted(&format!("{path}/."));
            }
            Act::Bring { .. } => {
                for (index, path) in call.paths.iter().enumerate() {
                    match make_directory(path, 0o755) {
                        Err(Errno::EXIST) if index + 1 < call.paths.len() => {}
                        outcome => outcome?,
                    }
                }
            }
            Act::RemoveItem { .. } => std::fs::remove_dir_all(path).map_err(errno)?,
            Act::Sidecar { how, .. } => write_sidecar(path, *how, &call.bytes)?,
            Act::RemoveSidecar { .. } => {
                let sidecar = format!("{path}/.ibi");
                apart(|| rustix::fs::unlink(&sidecar))?;
            }
            Act::Remount { .. } => {
                self.handles.clear();
                rustix::process::chdir("/")?;
            }
        }
        Ok(Answer::Done)
    }
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = rustix::io::write(file, rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

fn write_sidecar(item: &str, how: How, bytes: &[u8]) -> Result<(), Errno> {
    let (path, beside) = (format!("{item}/.ibi"), format!("{item}/..ibi.Ab12Cd"));
    let mode = Mode::from_raw_mode(0o644);
    let flags = OFlags::WRONLY | OFlags::CREATE;
    match how {
        How::Over => {
            let file = rustix::fs::open(&path, flags | OFlags::TRUNC, mode)?;
            write_all(&file, bytes)
        }
        How::Beside => {
            let file = rustix::fs::open(&beside, flags | OFlags::EXCL, mode)?;
            write_all(&file, bytes)?;
            drop(file);
            rustix::fs::rename(&beside, &path)
        }
    }
}
