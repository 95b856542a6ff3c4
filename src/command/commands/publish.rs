//! `ibifs publish`: lets all users into the directory of a draft.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::access::{self, Named};
use super::items::{mounted, title};
use super::seal::seal_of;
use super::{print, say, usage};
use crate::archive::tree::Place;
use crate::archive::{ArchiveError, Clock, Fact, Process, SystemClock, is_draft, opened};
use crate::command::cli::Publish;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::os::deep::{DeepEntry, open_far, walk_noting};
use crate::os::directory::Directory;
use crate::os::opening::{found, set_attribute, set_mode};
use ibi::{Timestamp, message, plural};

pub(super) fn run(options: &Publish) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let item = named.names.preferred();
    let available = options.embargo.as_ref();
    if available.is_some_and(|at| *at <= SystemClock.now()) {
        return Err(usage(message!(
            "--embargo {date} is not in the future",
            date = options
                .embargo
                .as_ref()
                .map(Timestamp::to_rfc3339)
                .unwrap_or_default()
        )));
    }
    let known = named.archive()?.held(&named.names)?;
    if known.as_ref().is_some_and(|it| it.life.withdrawn.is_some()) {
        return Err(Failure::new(
            Exit::Refused,
            message!("{item} is withdrawn; 'ibifs restore' shows it again", item),
        ));
    }
    let in_mount = named.access.path_in_mount(&named.names);
    let (title, link) = match &in_mount {
        Some(path) => mounted::title_and_link(path),
        None => in_store(&named)?,
    };
    if title.is_none() && !options.untitled {
        return Err(Failure::new(
            Exit::Refused,
            message!(
                "{item} has no title, by which readers find and cite it; write 'title: ...' to '{item}:' in the mount, or publish it with --untitled",
                item
            ),
        ));
    }
    // Written before anybody else may enter.
    if let Some(at) = available {
        withhold(&named, in_mount.as_deref(), at)?;
    }
    // A command that was stopped has announced it already.
    let announced = known.and_then(|it| it.life.sealed);
    let sealed = match (options.seal_after, announced) {
        (None, _) => None,
        (Some(_), Some(announced)) => Some(announced),
        (after, None) => Some(seal_of(&named, after)?),
    };
    let was_draft = match &in_mount {
        Some(path) => open_in_mount(path).map_err(|errno| refused(&item, errno))?,
        None => {
            let publish = |archive: &crate::archive::Archive| {
                archive.edit(&Process, |it| it.publish(&named.names))
            };
            named.access.change(publish)?
        }
    };
    if !was_draft {
        let message = message!("{item} was no draft: all users may enter it", item);
        eprintln!("ibifs: {}", OneLine(localized(&message)));
    }
    let native = || named.access.store.join(Place::of(&named.names).as_str());
    let closed = still_closed(&in_mount.unwrap_or_else(native));
    if closed > 0 {
        let message = plural!(
            "{count} file or directory in it is closed to other users; 'chmod -R a+rX' opens it",
            "{count} files and directories in it are closed to other users; 'chmod -R a+rX' opens them",
            count = closed
        );
        eprintln!("ibifs: {}", OneLine(localized(&message)));
    }
    let page = print::page_of(&link);
    say(&if options.output.json {
        let mut object = json::names(&named.names);
        object.insert("title".into(), json!(title));
        object.insert("persistent_url".into(), json!(link));
        object.insert("page_url".into(), json!(page));
        object.insert("closed".into(), json!(closed));
        object.insert(
            "available".into(),
            json!(available.map(Timestamp::to_rfc3339)),
        );
        object.insert(
            "sealed".into(),
            json!(sealed.as_ref().map(print::seal_json)),
        );
        json::pretty(&Value::Object(object))
    } else {
        format!("{link}\n{}\n", page.unwrap_or_default())
    })?;
    Ok(Exit::Done)
}

/// The title and the link of an item of a store that is not mounted.
fn in_store(named: &Named) -> Result<(Option<String>, String), Failure> {
    let archive = named.archive()?;
    let item = archive.held(&named.names)?;
    let item = item.ok_or_else(|| ArchiveError::Unknown {
        name: named.names.preferred(),
    })?;
    let link = archive.facts().persistent_url(&item.names);
    Ok((title(archive, &item), link))
}

/// Writes into the sidecar until when the files of an item are withheld.
fn withhold(named: &Named, in_mount: Option<&Path>, at: &Timestamp) -> Result<(), Failure> {
    let item = named.names.preferred();
    let Some(path) = in_mount else {
        let fact = || Fact::Available(Some(at.clone()));
        let write = |archive: &crate::archive::Archive| {
            archive.edit(&Process, |it| it.set_fact(&named.names, fact()))
        };
        return named.access.change(write);
    };
    let found = found(access::bytes(path), OFlags::empty());
    let set = |item: OwnedFd| {
        let date = at.to_rfc3339();
        let (name, flags) = ("user.ibi.available".to_owned(), XattrFlags::empty());
        set_attribute(item.as_fd(), name, date.as_bytes(), flags)
    };
    found.and_then(set).map_err(|errno| refused(&item, errno))
}

/// Opens an item in a mount, with the rights of this user. Returns whether it was a draft.
fn open_in_mount(path: &Path) -> Result<bool, Errno> {
    let directory = Directory::open(path)?;
    let mode = rustix::fs::fstat(directory.descriptor())?.st_mode;
    set_mode(
        directory.descriptor().as_fd(),
        Mode::from_raw_mode(opened(mode)),
    )?;
    Ok(is_draft(mode))
}

fn refused(item: &str, errno: Errno) -> Failure {
    match errno {
        Errno::PERM | Errno::ACCESS => Failure::new(
            Exit::Refused,
            message!("only the owner of {item} may publish it", item),
        ),
        errno => access::refused(&message!("publishing {item}", item), errno),
    }
}

/// The number of files and directories in an item that other users may not read. They stay as they are: some may be
/// closed on purpose.
fn still_closed(path: &Path) -> u64 {
    let Ok(item) = Directory::open(path) else {
        return 0;
    };
    let (mut files, mut unreadable, mut closed) = (Vec::new(), 0, 0);
    let walked = walk_noting(
        item.descriptor(),
        b"",
        |entry| match entry {
            DeepEntry::Entry(path) => files.push(path),
            DeepEntry::Unreadable(..) => unreadable += 1,
        },
        |directory, _| {
            let mode = rustix::fs::fstat(directory).map(|stat| stat.st_mode);
            closed += u64::from(mode.is_ok_and(|mode| mode & 0o005 != 0o005));
        },
    );
    if let Err(errno) = walked {
        log::debug!(
            "what is closed in '{}' is not known: {errno}",
            path.display()
        );
    }
    for file in files {
        let found = open_far(item.descriptor(), &file, OFlags::PATH | OFlags::NOFOLLOW);
        let stat = found.and_then(rustix::fs::fstat);
        closed += u64::from(stat.is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && stat.st_mode & 0o004 == 0
        }));
    }
    closed + unreadable
}
