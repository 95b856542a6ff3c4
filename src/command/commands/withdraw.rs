//! `ibifs withdraw`, `restore` and `remove`: an item that is not shown any more, shown again, or gone.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, XattrFlags};
use rustix::io::Errno;
use serde_json::Value;

use super::access::{self, Named, StoreAccess};
use super::copies::copies_of;
use super::{say, transfer};
use crate::archive::backup;
use crate::archive::store::Item;
use crate::archive::transfer::Local;
use crate::archive::tree::SIDECAR;
use crate::archive::{ArchiveError, Clock, Process, SystemClock, is_draft};
use crate::command::cli::{Remove, Restore, Withdraw};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::copies::CopyKind;
use crate::formats::item::MOST_CHARACTERS;
use crate::os::deep::{DeepEntry, walk_noting};
use crate::os::directory::Directory;
use crate::os::opening::{by_descriptor, remove_attribute, set_attribute};
use ibi::message::Message;
use ibi::{message, plural};

const ATTRIBUTE: &str = "user.ibi.withdrawn";

pub(super) fn withdraw(options: &Withdraw) -> Result<Exit, Failure> {
    check(&options.reason)?;
    let named = access::find(&options.item, options.store.as_deref())?;
    held(&named)?;
    withdrawn(&named, &options.reason)?;
    say_copies(&named);
    done(&named, options.output.json)
}

pub(super) fn restore(options: &Restore) -> Result<Exit, Failure> {
    if let Some(from) = &options.from {
        return restore_from(options, from);
    }
    let named = access::find(&options.item, options.store.as_deref())?;
    let item = named.names.preferred();
    let was_withdrawn = match named.access.path_in_mount(&named.names) {
        Some(path) => match opened(&path)
            .and_then(|it| remove_attribute(it.descriptor().as_fd(), ATTRIBUTE))
        {
            Err(Errno::NODATA) => false,
            done => done.map(|()| true).map_err(|errno| {
                let only = message!("only the owner of {item} may restore it", item);
                refused(only, &message!("restoring {item}", item), errno)
            })?,
        },
        None => named
            .access
            .change(|archive| archive.edit(&Process, |it| it.restore_withdrawn(&named.names)))?,
    };
    if !was_withdrawn {
        let message = message!("{item} was not withdrawn", item);
        eprintln!("ibifs: {}", OneLine(localized(&message)));
    }
    done(&named, options.output.json)
}

/// Puts an item of a backup back, or writes it to a directory.
fn restore_from(options: &Restore, from: &Path) -> Result<Exit, Failure> {
    let path = backup::find(from)?;
    let source = Local::reading(&path)?;
    let named = access::find(&options.item, Some(&path))?;
    let Some(item) = source.archive().held(&named.names)? else {
        return Err(Failure::new(
            Exit::NotFound,
            message!(
                "the backup '{path}' has no item '{name}'; 'ibifs backup --list' shows others",
                path = path.display(),
                name = named.names.preferred()
            ),
        ));
    };
    let names = item.names;
    let is_of_backup = transfer::is_same(&named.access.store, &path);
    if let Some(to) = &options.to {
        crate::archive::transfer::restore_to(&source, &names, to, &mut |_| ())?;
        return done(&Named::new(named.access, names), options.output.json);
    }
    let access = match &options.store {
        Some(store) => StoreAccess::at(store)?,
        None if is_of_backup => StoreAccess::for_identifier(None, &options.item)?,
        None => named.access,
    };
    let to = transfer::changing(&access)?;
    let restored = crate::archive::transfer::restore(&source, &names, &to, &mut |_| ());
    to.close();
    restored.map_err(|error| Failure::from(error).before(&names.preferred()))?;
    done(&Named::new(access, names), options.output.json)
}

pub(super) fn remove(options: &Remove) -> Result<Exit, Failure> {
    let reason = options.reason.as_deref().unwrap_or_default();
    if options.reason.is_some() {
        check(reason)?;
    }
    let named = access::find(&options.item, options.store.as_deref())?;
    let item = held(&named)?;
    let shown = named.names.preferred();
    let only = message!("only the owner of {item} may remove it", item = shown);
    let what = message!("removing {item}", item = shown);
    let path = named.access.directory_of(&named.names);
    let failed = |errno| refused(only.clone(), &what, errno);
    let directory = opened(&path).map_err(failed)?;
    let stat = directory.stat().map_err(failed)?;
    let user = rustix::process::geteuid();
    if !user.is_root() && user.as_raw() != stat.st_uid {
        return Err(failed(Errno::PERM));
    }
    check_removal(&directory, &shown)?;
    let now = SystemClock.now();
    if item.life.sealed.is_some_and(|seal| seal.holds_at(&now)) {
        return Err(Failure::new(
            Exit::Refused,
            message!(
                "{item} is sealed, and its files cannot be removed; 'ibifs unseal' ends that",
                item = shown
            ),
        ));
    }
    if !options.force {
        check_copies(&named)?;
    }
    // Its citation and the reason are written while its description is there: as long as it is not removed completely, it is
    // withdrawn. Nothing of a draft becomes public.
    let was_public = !is_draft(stat.st_mode) || item.life.withdrawn.is_some();
    if !is_draft(stat.st_mode) || item.life.withdrawn.is_some() && options.reason.is_some() {
        withdrawn(&named, reason)?;
    }
    match named.access.path_in_mount(&named.names) {
        Some(path) => {
            directory.clear().map_err(failed)?;
            let above = path.parent().unwrap_or(&path);
            let name = path.file_name().unwrap_or_default();
            opened(above)
                .and_then(|above| above.remove_directory(name.as_bytes()))
                .map_err(failed)?;
        }
        None => {
            for (name, _) in directory.entries().map_err(failed)? {
                if name == SIDECAR.as_bytes() {
                    continue;
                }
                match directory.directory(&name) {
                    Ok(below) => below
                        .clear()
                        .and_then(|()| directory.remove_directory(&name)),
                    Err(_) => directory.remove_file(&name),
                }
                .map_err(failed)?;
            }
            named
                .access
                .change(|archive| archive.edit(&Process, |it| it.remove(item.id)))?;
        }
    }
    if was_public {
        say_copies(&named);
    }
    done(&named, options.output.json)
}

/// Says which Archives are known to have copies of an item that was public, and how they learn of what became of it here.
fn say_copies(named: &Named) {
    let (Ok(archive), Ok(known)) = (named.archive(), copies_of(&named.access, &named.names)) else {
        return;
    };
    let own = archive.facts().service.preferred();
    let others = known
        .copies
        .into_iter()
        .filter(|copy| copy.kind == CopyKind::Archive && copy.holder != own && copy.gone.is_none());
    let holders: Vec<String> = others.map(|copy| copy.holder).collect();
    if !holders.is_empty() {
        let line = plural!(
            "{count} known copy, in {holders}; its Archive learns of it at the next 'ibifs audit' of the two, and decides",
            "{count} known copies, in {holders}; their Archives learn of it at the next 'ibifs audit' with each, and decide",
            count = holders.len(),
            holders = holders.join(", ")
        );
        eprintln!("ibifs: {}", OneLine(localized(&line)));
    }
}

/// Refuses to remove a copy if fewer are left than the Archive wants at least.
fn check_copies(named: &Named) -> Result<(), Failure> {
    let facts = named.archive()?.facts();
    let Some(minimum) = facts.policy_of(&named.names).minimum else {
        return Ok(());
    };
    let known = copies_of(&named.access, &named.names)?;
    match known.too_few_without(facts, &SystemClock.now()) {
        None => Ok(()),
        Some(left) => Err(Failure::new(
            Exit::Refused,
            message!(
                "{item} is left as it is: of the {minimum} proved copies that archive.ibi wants at least there would be {left}; copy it with 'ibifs copy', or give --force",
                item = named.names.preferred(),
                left,
                minimum
            ),
        )),
    }
}

/// Refuses a reason that is no line of text.
fn check(reason: &str) -> Result<(), Failure> {
    let count = reason.chars().count();
    let fault = if reason.trim().is_empty() || reason.chars().any(char::is_control) {
        message!("the reason is not one line of text")
    } else if count > MOST_CHARACTERS {
        message!(
            "the reason has {count} characters; it may have {most}",
            count,
            most = MOST_CHARACTERS
        )
    } else {
        return Ok(());
    };
    Err(Failure::new(Exit::Usage, fault))
}

/// The item, which must be held here.
fn held(named: &Named) -> Result<Item, Failure> {
    let name = named.names.preferred();
    let item = named.archive()?.held(&named.names)?;
    Ok(item.ok_or(ArchiveError::Unknown { name })?)
}

/// Withdraws an item: in a mount with the rights of this user.
fn withdrawn(named: &Named, reason: &str) -> Result<(), Failure> {
    let Some(path) = named.access.path_in_mount(&named.names) else {
        let change = |archive: &crate::archive::Archive| {
            archive.edit(&Process, |it| it.withdraw(&named.names, reason))
        };
        return named.access.change(change);
    };
    let item = named.names.preferred();
    let directory = opened(&path).and_then(|it| Ok((it.stat()?, it)));
    let set = directory.map(|(stat, directory)| {
        let file = directory.descriptor().as_fd();
        let set = set_attribute(file, ATTRIBUTE, reason.as_bytes(), XattrFlags::empty());
        // Its owner is refused a draft alone.
        (set, is_draft(stat.st_mode))
    });
    match set {
        Ok((Ok(()), _)) => Ok(()),
        Ok((Err(Errno::PERM), true)) => Err(ArchiveError::Draft(named.names.clone().into()).into()),
        Ok((Err(errno), _)) | Err(errno) => {
            let only = message!("only the owner of {item} may withdraw it", item);
            Err(refused(only, &message!("withdrawing {item}", item), errno))
        }
    }
}

fn opened(path: &Path) -> Result<Directory, Errno> {
    Directory::open(path)
}

fn refused(only: Message, what: &Message, errno: Errno) -> Failure {
    match errno {
        Errno::PERM | Errno::ACCESS => Failure::new(Exit::Refused, only),
        errno => access::refused(what, errno),
    }
}

/// Refuses to remove an item of which this user could remove a part alone.
fn check_removal(item: &Directory, shown: &str) -> Result<(), Failure> {
    let mut first: Option<Vec<u8>> = None;
    let mut unreadable = None;
    let walked = walk_noting(
        item.descriptor(),
        b"",
        |entry| {
            if let DeepEntry::Unreadable(path, _) = entry {
                unreadable.get_or_insert(path);
            }
        },
        |directory, path| {
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            let file = by_descriptor(directory.as_fd());
            if rustix::fs::accessat(rustix::fs::CWD, file, wanted, AtFlags::EACCESS).is_err() {
                first.get_or_insert_with(|| path.to_vec());
            }
        },
    );
    if let Err(errno) = walked {
        return Err(access::refused(
            &message!("removing {item}", item = shown),
            errno,
        ));
    }
    match first.or(unreadable) {
        None => Ok(()),
        Some(path) => Err(Failure::new(
            Exit::Refused,
            message!(
                "{item} is left as it is, since you may not remove what is in its directory '{path}'",
                item = shown,
                path = String::from_utf8_lossy(&path)
            ),
        )),
    }
}

fn done(named: &Named, is_json: bool) -> Result<Exit, Failure> {
    if is_json {
        say(&json::pretty(&Value::Object(json::names(&named.names))))?;
    }
    Ok(Exit::Done)
}
