//! OCFL objects: an object for each item, with a version for each export that differs from the last.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::files::{is_missing, read_small};
use super::inventory::{ByDigest, INVENTORY, OcflInventory, SIDECAR};
use super::ocfl::path_of;
use super::reading::{HeldContent, digests, stage};
use super::work::{ExportDirectory, make_directories, write_file};
use super::writing::PackageWriter;
use super::{ExportOutcome, PackageError, Problem, preserved};
use crate::archive::store::Item;
use crate::archive::tree::{Action, open_far};
use crate::archive::{Archive, Clock};
use crate::formats::item::Names;
use ibi::message;
use ibi::message::Localize;

/// The file that makes a directory an object.
pub(super) const DECLARATION: &str = "0=ocfl_object_1.1";
/// The prefix of the identifiers of objects.
pub(super) const RESOLVER: &str = "http://urlib.net/";

/// The identifier of an item's object; it does not depend on the case of the item's name.
fn id_of(names: &Names) -> String {
    let name = match (names.rep(), names.ibip()) {
        (Some(rep), _) => rep.canonical(),
        (None, Some(ibip)) => ibip.canonical(),
        (None, None) => String::new(),
    };
    format!("{RESOLVER}{name}")
}

/// Makes an object of an item, or a new version of an existing one. `count` receives the bytes read, and 0 at the
/// start of each file.
pub(super) fn make(
    archive: &Archive,
    item: &Item,
    work: &ExportDirectory,
    clock: &dyn Clock,
    count: &mut dyn FnMut(u64),
) -> Result<ExportOutcome, PackageError> {
    let id = id_of(&item.names);
    let path = path_of(&id);
    let (known, held) = match work.open(&path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(object) => {
            complete(work, &object, &path).map_err(|error| unfit(&path, &error))?;
            let inventory = inventory_of(&object).map_err(|error| unfit(&path, &error))?;
            let held = held_by(&object, &inventory);
            (Some(inventory), held)
        }
        Err(errno) if is_missing(errno) => (None, HeldContent::default()),
        Err(errno) => return Err(PackageError::io(Action::Open, &path)(errno)),
    };
    let mut writer = PackageWriter::directory(work)?;
    let mut staged = stage(archive, item, &mut writer, Some(held), count)?;
    preserved::add(archive, item, &mut staged, &mut writer)?;
    let mut state = ByDigest::new();
    for (path, digests) in &staged.files {
        let paths = state.entry(digests.sha512.clone()).or_default();
        paths.push(path.clone());
    }
    let is_new = known.is_none();
    let mut inventory = known.unwrap_or_else(|| OcflInventory::new(&id));
    if inventory.id != id {
        let what = message!("it is of {id}", id = inventory.id);
        return Err(unfit(&path, &what));
    }
    let sorted = |state: &ByDigest| -> ByDigest {
        let mut state = state.clone();
        state.values_mut().for_each(|paths| paths.sort());
        state
    };
    if !is_new && sorted(&inventory.state) == sorted(&state) {
        return Ok(ExportOutcome::Unchanged(path));
    }
    let version = format!("v{}", inventory.head + 1);
    let made = if is_new {
        format!("object/{version}")
    } else {
        version.clone()
    };
    for digest in state.keys() {
        if inventory.manifest.contains_key(digest) {
            continue;
        }
        let Some(first) = staged.written.get(digest) else {
            continue;
        };
        move_content(work, first, &format!("{made}/content/{first}"))?;
        let content = format!("{version}/content/{first}");
        inventory.manifest.insert(digest.clone(), vec![content]);
    }
    let facts = archive.facts();
    let user = (facts.host.as_str(), facts.persistent_url(&facts.service));
    inventory.add(state, &clock.now().to_rfc3339(), (user.0, &user.1));
    let text = inventory.to_bytes();
    let sidecar = format!("{} {INVENTORY}\n", digests(&text).sha512);
    let write = |directory: &str| {
        write_file(&work.directory, &format!("{directory}{INVENTORY}"), &text)?;
        write_file(
            &work.directory,
            &format!("{directory}{SIDECAR}"),
            sidecar.as_bytes(),
        )
    };
    write(&format!("{made}/"))?;
    let failed = |errno| match errno {
        Errno::EXIST | Errno::NOTEMPTY => PackageError::Unfit {
            what: message!(
                "'{path}' holds '{version}', which its inventory does not name: an export was interrupted; \
                 remove '{path}/{version}'",
                path,
                version
            ),
        },
        errno => PackageError::io(Action::Make, &path)(errno),
    };
    if is_new {
        write("object/")?;
        write_file(
            &work.directory,
            &format!("object/{DECLARATION}"),
            b"ocfl_object_1.1\n",
        )?;
        work.appear("object", &path).map_err(failed)?;
        return Ok(ExportOutcome::New(path));
    }
    write("")?;
    work.appear(&version, &format!("{path}/{version}"))
        .map_err(failed)?;
    for name in [INVENTORY, SIDECAR] {
        work.replace(name, &format!("{path}/{name}"))
            .map_err(failed)?;
    }
    Ok(ExportOutcome::Version(path, inventory.head))
}

/// Ends what an export began that was stopped while it added a version. The version was complete before it came to its
/// place; the inventory of the object, or the digest of that, may still be the one before.
fn complete(work: &ExportDirectory, object: &OwnedFd, path: &str) -> Result<(), PackageError> {
    let Some(text) = read_small(object, INVENTORY.as_bytes())? else {
        return Ok(());
    };
    let Ok(inventory) = OcflInventory::parse(&text) else {
        return Ok(());
    };
    let version = |number: u64| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = open_far(object, format!("v{number}").as_bytes(), flags).ok()?;
        let of_version = inventory_of(&directory).ok()?;
        Some((directory, of_version))
    };
    let next = version(inventory.head.saturating_add(1));
    let next = next.filter(|(_, next)| next.follows(&inventory) && inventory_of(object).is_ok());
    let last = || version(inventory.head).filter(|_| inventory_of(object).is_err());
    let Some((directory, _)) = next.or_else(last) else {
        return Ok(());
    };
    let read = |name: &str| -> Result<Vec<u8>, PackageError> {
        Ok(read_small(&directory, name.as_bytes())?.unwrap_or_default())
    };
    let (wanted, sidecar) = (read(INVENTORY)?, read(SIDECAR)?);
    if inventory_of(object).is_err() && wanted != text {
        // Another program has changed it.
        return Ok(());
    }
    for (name, text) in [(INVENTORY, wanted), (SIDECAR, sidecar)] {
        write_file(&work.directory, name, &text)?;
        work.replace(name, &format!("{path}/{name}"))
            .map_err(PackageError::io(Action::Make, path))?;
    }
    Ok(())
}

/// The content that an object has. A file that is missing there has no length, and is not looked for.
fn held_by(object: &OwnedFd, inventory: &OcflInventory) -> HeldContent {
    let length = |path: &String| {
        let stat = rustix::fs::statat(object, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        u64::try_from(stat.st_size).ok()
    };
    let paths = inventory.manifest.values().flatten();
    HeldContent {
        digests: inventory.manifest.keys().cloned().collect(),
        lengths: paths.filter_map(length).collect(),
    }
}

fn unfit(path: &str, what: &dyn Localize) -> PackageError {
    PackageError::Unfit {
        what: message!(
            "the object '{path}' that exists is not valid: {what}; correct it, or name another directory",
            path,
            what
        ),
    }
}

fn move_content(work: &ExportDirectory, from: &str, to: &str) -> Result<(), PackageError> {
    let failed = |errno| PackageError::io(Action::Move, from)(errno);
    let parent = to.rsplit_once('/').map_or(".", |(parent, _)| parent);
    make_directories(&work.directory, parent.as_bytes()).map_err(failed)?;
    let place = |path: &str| {
        let (parent, _) = path.rsplit_once('/').unwrap_or((".", path));
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_far(&work.directory, parent.as_bytes(), flags)
    };
    let name = |path: &str| {
        path.rsplit_once('/')
            .map_or(path.to_owned(), |(_, name)| name.to_owned())
    };
    let (from_parent, to_parent) = (place(from).map_err(failed)?, place(to).map_err(failed)?);
    rustix::fs::renameat(&from_parent, name(from), &to_parent, name(to)).map_err(failed)
}

/// The inventory of an object, if it matches its recorded digest.
pub(super) fn inventory_of(object: &OwnedFd) -> Result<OcflInventory, PackageError> {
    let read = |name: &str| {
        let bytes = read_small(object, name.as_bytes())?;
        bytes.ok_or_else(|| PackageError::broken(name, message!("it is not there")))
    };
    let text = read(INVENTORY)?;
    let inventory =
        OcflInventory::parse(&text).map_err(|what| PackageError::broken(INVENTORY, what))?;
    let digest = read(SIDECAR)?;
    let digest = String::from_utf8_lossy(&digest).to_ascii_lowercase();
    if digest.split_whitespace().next() == Some(digests(&text).sha512.as_str()) {
        Ok(inventory)
    } else {
        Err(PackageError::file(INVENTORY.as_bytes(), Problem::Differs))
    }
}
