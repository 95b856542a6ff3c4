//! Finds the store and the item that a user names: by a store, a mount point, a path in either, or an
//! identifier alone.

use std::cell::OnceCell;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use super::daemon;
use crate::archive::learned::{AUDIT, take_in};
use crate::archive::store::By;
use crate::archive::tree::{Place, Tree};
use crate::archive::{
    Archive, ArchiveError, FACTS, Holder, Process, Related, SystemClock, holder, is_held_by,
    leave_event, name_spaces, names_in_mount, read_written, reader_of,
};
use crate::command::exit::{Exit, Failure};
use crate::formats::history::EventKind;
use crate::formats::item::Names;
use crate::formats::name_spaces::NameSpaces;
use crate::fuse::mount::{Mounted, mounts};
use crate::os::mounts::is_trusted;
use ibi::message::{Localize, Message};
use ibi::persistent::{Identifier, PersistentError, PersistentName, is_link};
use ibi::relation::{Request, split_name};
use ibi::{Ibi, message};

/// A store, and its mount point, if it is mounted.
#[derive(Clone, Debug)]
pub(super) struct StoreAccess {
    pub(super) store: PathBuf,
    pub(super) mount_point: Option<PathBuf>,
}

impl StoreAccess {
    /// The store or mount that contains a path.
    pub(super) fn at(path: &Path) -> Result<StoreAccess, Failure> {
        let found = std::fs::canonicalize(path).ok().and_then(|path| {
            if let Some(mounted) = Mounted::containing(&path) {
                return Some(StoreAccess::of_mount(mounted));
            }
            let store = path
                .ancestors()
                .find(|above| above.join("archive.ibi").is_file())?;
            Some(Ok(StoreAccess::of_store(store)))
        });
        found.unwrap_or_else(|| Err(ArchiveError::not_found(path).into()))
    }

    fn of_mount(mounted: Mounted) -> Result<StoreAccess, Failure> {
        check_owner(&mounted)?;
        Ok(StoreAccess {
            store: mounted.source,
            mount_point: Some(mounted.mount_point),
        })
    }

    /// The store that is mounted at a path; None if the path is not a mount point of a store.
    pub(super) fn of_mount_point(path: &Path) -> Result<Option<PathBuf>, Failure> {
        let resolved = std::fs::canonicalize(path).ok();
        let mounted = resolved.and_then(|path| {
            Mounted::containing(&path).filter(|mounted| mounted.mount_point == path)
        });
        let access = mounted.map(StoreAccess::of_mount).transpose()?;
        Ok(access.map(|access| access.store))
    }

    /// A store, by its path.
    pub(super) fn of_store(store: &Path) -> StoreAccess {
        // Without a mount point in the lock file, the table of mounts has it.
        let mount_point = |holder: Holder| match (holder.mount_point, holder.pid) {
            (Some(stated), _) => is_mounted_at(store, &stated).then_some(stated),
            (None, Some(pid)) if is_held_by(store, pid) => {
                let mut mounts = mounts().into_iter().filter(Mounted::is_ours);
                Some(mounts.rfind(|mount| is_of(store, mount))?.mount_point)
            }
            (None, _) => None,
        };
        StoreAccess {
            store: store.to_owned(),
            mount_point: holder(store).and_then(mount_point),
        }
    }

    /// The store of an identifier: the one named, else the one around.
    pub(super) fn for_identifier(store: Option<&Path>, text: &str) -> Result<StoreAccess, Failure> {
        match store {
            Some(store) => StoreAccess::at(store),
            None => StoreAccess::around(
                message!(
                    "'{text}' is not a path, and no store is mounted; name a store with --store",
                    text
                ),
                message!(
                    "several stores are mounted; name the store of '{text}' with --store",
                    text
                ),
            ),
        }
    }

    /// The store of a path, else the one around.
    pub(super) fn named(place: Option<&Path>) -> Result<StoreAccess, Failure> {
        match place {
            Some(place) => StoreAccess::at(place),
            None => StoreAccess::around(
                message!("no store is mounted; name a store"),
                message!("several stores are mounted; name one of them"),
            ),
        }
    }

    /// The store of a path, else that of the mount in which this process is: what cannot be undone is done in no other one.
    pub(super) fn named_to_change(place: Option<&Path>) -> Result<StoreAccess, Failure> {
        match (place, of_working_directory()) {
            (Some(place), _) => StoreAccess::at(place),
            (None, Some(mounted)) => StoreAccess::of_mount(mounted),
            (None, None) => Err(super::usage(message!(
                "the working directory is in no mount; name a store or a mount point"
            ))),
        }
    }

    /// The store of the mount in which this process is, else the only one mounted; else why there is none.
    fn around(none: Message, several: Message) -> Result<StoreAccess, Failure> {
        if let Some(mounted) = of_working_directory() {
            return StoreAccess::of_mount(mounted);
        }
        let mut ours: Vec<Mounted> = mounts().into_iter().filter(Mounted::is_ours).collect();
        match (ours.pop(), ours.is_empty()) {
            (Some(only), true) => StoreAccess::of_mount(only),
            (None, _) => Err(super::usage(none)),
            (Some(_), false) => Err(super::usage(several)),
        }
    }

    /// The table of name spaces.
    pub(super) fn name_spaces(&self) -> Result<NameSpaces, Failure> {
        Ok(match self.asked() {
            Some(mounted) => daemon::about(&mounted, &[])?.name_spaces()?,
            None => name_spaces(&self.store)?,
        })
    }

    /// Whether this user may not read the store, or does not see it: its mount is asked then.
    pub(super) fn is_shut(&self) -> bool {
        let facts = rustix::fs::access(self.store.join(FACTS), Access::READ_OK);
        matches!(facts, Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR))
    }

    /// The mount that is asked about items, where this user may not read the store.
    pub(super) fn asked(&self) -> Option<Mounted> {
        self.mounted().filter(|_| self.is_shut())
    }

    /// The mount of the store.
    pub(super) fn mounted(&self) -> Option<Mounted> {
        let mount_point = self.mount_point.as_ref()?;
        let mut mounts = mounts().into_iter().filter(Mounted::is_ours);
        mounts.rfind(|mount| mount.mount_point == *mount_point)
    }

    /// The path by which other commands and functions are told of it.
    pub(super) fn place(&self) -> &Path {
        match &self.mount_point {
            Some(mount_point) if self.is_shut() => mount_point,
            _ => &self.store,
        }
    }

    /// The Archive, for reading what concerns the items of some names and texts: the whole of it, or these and what is
    /// connected with them, as far as this user may see it.
    pub(super) fn read_about(&self, names: &[&str]) -> Result<Archive, Failure> {
        match self.asked() {
            Some(mounted) => daemon::about(&mounted, names),
            None => self.read(),
        }
    }

    /// The Archive, for reading.
    pub(super) fn read(&self) -> Result<Archive, Failure> {
        Ok(Archive::open_read_only(&self.store)?)
    }

    /// Takes in what the service of the store has learned in audits by other Archives, if this user may write it. The index is
    /// opened only where there can be any.
    pub(super) fn learn(&self) {
        let listens = |tree: Tree| tree.is_directory(AUDIT);
        if self.tree_to_note_in().is_some_and(listens)
            && let Ok(archive) = self.read()
        {
            take_in(&archive);
        }
    }

    /// The store, if it may be written in: a generation of a backup stays as it is.
    fn tree_to_note_in(&self) -> Option<Tree> {
        let is_fixed = self.is_shut() || Archive::is_generation(&self.store);
        let tree = (!is_fixed).then(|| Tree::open_as_it_is(&self.store));
        tree?.ok()
    }

    /// Tells the history of the store what this command does, if this user may enter it.
    pub(super) fn tell(&self, kind: EventKind, item: Option<&Names>, note: &str) {
        self.tell_by(By::of(&Process), kind, item, note);
    }

    /// The same of an action of another user, or a finding of the program.
    pub(super) fn tell_by(&self, by: By, kind: EventKind, item: Option<&Names>, note: &str) {
        if let Some(tree) = self.tree_to_note_in() {
            leave_event(&tree, by, kind, item, note);
        }
    }

    /// The same of an item that was made from a package.
    pub(super) fn tell_imported(&self, item: &Names, package: &Path) {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        self.tell(EventKind::Imported, Some(item), &name);
    }

    /// Changes the Archive directly, for a store that is not mounted, and closes it even after an error, so
    /// that the next start needs no recovery.
    pub(super) fn change<T>(
        &self,
        act: impl FnOnce(&Archive) -> Result<T, ArchiveError>,
    ) -> Result<T, Failure> {
        let archive = Archive::open_beside(&self.store, Box::new(SystemClock))?;
        let done = act(&archive);
        archive.close();
        Ok(done?)
    }

    /// An item's directory in the mount.
    pub(super) fn path_in_mount(&self, names: &Names) -> Option<PathBuf> {
        Some(self.mount_point.as_ref()?.join(names.preferred()))
    }

    /// An item's directory: in the mount, or in a store that is not mounted.
    pub(super) fn directory_of(&self, names: &Names) -> PathBuf {
        let place = || self.store.join(Place::of(names).as_str());
        self.path_in_mount(names).unwrap_or_else(place)
    }
}

/// The mount of a store in which the working directory is.
pub(super) fn of_working_directory() -> Option<Mounted> {
    Mounted::containing(&std::env::current_dir().ok()?).filter(Mounted::is_ours)
}

/// Refuses the store that a mount names if another user owns it, who decides which database is asked.
pub(super) fn check_owner(mounted: &Mounted) -> Result<(), Failure> {
    match std::fs::symlink_metadata(&mounted.source) {
        Ok(found) if !is_trusted(found.uid()) => Err(Failure::new(
            Exit::Refused,
            message!(
                "the store '{store}', which is mounted at '{path}', belongs to user {user}; name the store itself if you trust that user",
                store = mounted.source.display(),
                path = mounted.mount_point.display(),
                user = found.uid()
            ),
        )),
        // A store that is not there, or may not be seen, is refused where it is opened.
        _ => Ok(()),
    }
}

/// Whether a store is mounted there according to the system; its lock file is not trusted.
fn is_mounted_at(store: &Path, mount_point: &Path) -> bool {
    let mut mounts = mounts().into_iter().filter(Mounted::is_ours);
    mounts.any(|mount| mount.mount_point == mount_point && is_of(store, &mount))
}

/// Whether a mount is of this store.
fn is_of(store: &Path, mount: &Mounted) -> bool {
    let source = mount.source.as_path();
    let [this, that] = [store, source].map(|path| std::fs::metadata(path).ok());
    let is_same =
        |(this, that): (Metadata, Metadata)| (this.dev(), this.ino()) == (that.dev(), that.ino());
    // The table of mounts is text, whereas the path of a store may have any bytes.
    this.zip(that).is_some_and(is_same) || source.as_os_str() == store.to_string_lossy().as_ref()
}

/// The levels of identifiers of a canonical path, if it lies in a mount or store.
pub(super) fn level_of(path: &Path) -> Option<PathBuf> {
    if let Some(mounted) = Mounted::containing(path) {
        return path
            .strip_prefix(&mounted.mount_point)
            .ok()
            .map(Path::to_owned);
    }
    let store = path
        .ancestors()
        .find(|above| above.join("archive.ibi").is_file())?;
    let below = path.strip_prefix(store).ok()?;
    let area = below
        .strip_prefix("col")
        .or_else(|_| below.strip_prefix("ibip"));
    area.ok().map(Path::to_owned)
}

/// Whether a path, which need not exist, lies in an ibifs mount.
pub(super) fn is_in_mount(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let resolved = absolute
        .ancestors()
        .find_map(|above| std::fs::canonicalize(above).ok());
    resolved.is_some_and(|path| Mounted::containing(&path).is_some())
}

/// An item that a user named, and the store it is in.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) access: StoreAccess,
    pub(super) names: Names,
    /// The part of the index that was read to find it, if that has all that is connected with it.
    known: OnceCell<Archive>,
}

impl Named {
    pub(super) fn new(access: StoreAccess, names: Names) -> Named {
        let known = OnceCell::new();
        Named {
            access,
            names,
            known,
        }
    }

    /// The Archive, for reading what concerns the item.
    pub(super) fn archive(&self) -> Result<&Archive, Failure> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let archive = self.access.read_about(&[&self.names.preferred()])?;
        Ok(self.known.get_or_init(|| archive))
    }
}

/// Finds the item that a path or identifier names, modifiers included.
pub(super) fn find(text: &str, store: Option<&Path>) -> Result<Named, Failure> {
    let path = Path::new(text);
    if path.symlink_metadata().is_ok()
        && let Some(named) = at_path(path)?
    {
        return Ok(named);
    }
    let base = split_name(text).map_or(text, |(base, _)| base);
    if !is_link(text) && Ibi::parse(base).is_err() {
        if let Some(named) = at_missing_path(path)? {
            return Ok(named);
        }
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(super::usage(message!(
                "'{path}' is in no store and no mount; name an item",
                path
            )));
        }
    }
    // What can be no identifier of any store is named before one is looked for.
    if let Err(error) = read_written(text) {
        persistent_name(text, Err(error))?;
    }
    by_identifier(StoreAccess::for_identifier(store, text)?, text)
}

fn at_path(path: &Path) -> Result<Option<Named>, Failure> {
    let Ok(resolved) = std::fs::canonicalize(path) else {
        return Ok(None);
    };
    let Ok(access) = StoreAccess::at(&resolved) else {
        return Ok(None);
    };
    if Mounted::containing(&resolved).is_some() {
        for above in resolved.ancestors() {
            if let Some(names) = names_in_mount(above) {
                return Ok(Some(Named::new(access, names)));
            }
        }
        return Ok(None);
    }
    let below = resolved.strip_prefix(&access.store).unwrap_or(&resolved);
    let parts: Vec<String> = below
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let depth = match parts.first().map(String::as_str) {
        Some("col") => 4,
        Some("ibip") => 2,
        _ => return Ok(None),
    };
    let Some(components) = parts.get(1..=depth) else {
        return Ok(None);
    };
    by_identifier(access, &components.join("/")).map(Some)
}

/// The item of a path in a mount or store that does not exist. A removed item still has its names, and so has
/// the target of a modifier that is in another Archive.
fn at_missing_path(path: &Path) -> Result<Option<Named>, Failure> {
    let Ok(absolute) = std::path::absolute(path) else {
        return Ok(None);
    };
    let there = absolute.ancestors().find_map(|above| {
        let resolved = std::fs::canonicalize(above).ok()?;
        Some(resolved.join(absolute.strip_prefix(above).ok()?))
    });
    let Some((there, Ok(access))) = there.map(|there| {
        let access = StoreAccess::at(
            there
                .ancestors()
                .find(|above| above.exists())
                .unwrap_or(&there),
        );
        (there, access)
    }) else {
        return Ok(None);
    };
    let roots = [
        access
            .mount_point
            .clone()
            .unwrap_or_else(|| access.store.join("col")),
        access.store.join("col"),
        access.store.join("ibip"),
    ];
    let below = roots.iter().find_map(|root| there.strip_prefix(root).ok());
    let Some(below) = below.and_then(Path::to_str) else {
        return Ok(None);
    };
    // The root of the tree, or a level of identifiers above items; an item may be closed to this user.
    if there.is_dir() && Ibi::parse(below).is_err() {
        let shown = path.display();
        return Err(Failure::new(
            Exit::Usage,
            message!(
                "'{shown}' is a directory above items; name an item in it",
                shown
            ),
        ));
    }
    // No part of an identifier begins with a dot: '.mint' and its like.
    if below.starts_with('.') {
        let (path, error) = (path.display(), std::io::Error::from(Errno::NOENT));
        return Err(Failure::new(
            Exit::NotFound,
            message!("'{path}': {error}", path, error),
        ));
    }
    by_identifier(access, below).map(Some)
}

/// Reads an identifier in any form that ibi(7) lists; the item need not be known here.
pub(super) fn read_identifier(archive: &Archive, text: &str) -> Result<PersistentName, Failure> {
    persistent_name(text, archive.read_written(text)?)
}

/// The item of an identifier, optionally followed by a modifier or verbs.
fn by_identifier(access: StoreAccess, text: &str) -> Result<Named, Failure> {
    let archive = access.read_about(&[text])?;
    let unknown = |text: &str| {
        let name = text.to_owned();
        Failure::from(ArchiveError::Unknown { name })
    };
    let name = read_identifier(&archive, text)?;
    let base = name.identifier.to_string();
    let item = archive.find_named(&base)?.ok_or_else(|| unknown(&base))?;
    let Some(Request::Modifier(modifier)) = name.request else {
        let known = OnceCell::from(archive);
        let names = item.names;
        return Ok(Named {
            access,
            names,
            known,
        });
    };
    match archive.resolve(&item.names, &modifier, &[])? {
        Some(Related::Item(names)) => Ok(Named::new(access, names)),
        _ => Err(Failure::new(
            Exit::NotFound,
            message!("'{text}' leads to no item", text),
        )),
    }
}

/// Judges what was read from an identifier as a user writes it, or a link to an item, in any form that ibi(7) lists. A link to a
/// file of an item names the item.
fn persistent_name(
    text: &str,
    read: Result<PersistentName, PersistentError>,
) -> Result<PersistentName, Failure> {
    let base = match split_name(text) {
        Some((base, _)) if !is_link(text) => base,
        _ => text,
    };
    let no_identifier = |error: ibi::ParseError| {
        let message = message!(
            "'{base}' is neither a path nor an identifier: {error}",
            base,
            error
        );
        Failure::new(Exit::Usage, message)
    };
    match read {
        Ok(name) if matches!(name.identifier, Identifier::Level(_)) => {
            let shown = text;
            let message = message!(
                "'{shown}' is a directory above items; name an item in it",
                shown
            );
            Err(Failure::new(Exit::Usage, message))
        }
        // A text that is not a link may be the path of a file that does not exist.
        Ok(name) if !name.path.is_empty() && !is_link(text) => match Ibi::parse(base) {
            Err(error) => Err(no_identifier(error)),
            Ok(_) => Ok(name),
        },
        Ok(name) => Ok(name),
        Err(PersistentError::Modifier(error)) => Err(Failure::new(Exit::Usage, error)),
        Err(error) if is_link(text) => Err(Failure::new(Exit::Usage, error)),
        Err(error) => match Ibi::parse(base) {
            Err(error) => Err(no_identifier(error)),
            Ok(_) => Err(Failure::new(Exit::Usage, error)),
        },
    }
}

/// The names in an identifier or a link that a user names an item by; the item need not be known here.
pub(super) fn names_in(text: &str) -> Result<Names, Failure> {
    match persistent_name(text, reader_of(text).parse(text))?.identifier {
        Identifier::Ibi(ibi) => Ok(Names::from(ibi)),
        Identifier::Alias(_) | Identifier::Level(_) => {
            Ibi::parse(text).map(Names::from).map_err(super::usage)
        }
    }
}

/// The failure for an errno at the levels of identifiers of a mount.
pub(super) fn refused(what: &Message, error: Errno) -> Failure {
    let (exit, why) = match error {
        Errno::PERM => (
            Exit::Refused,
            message!("neither end is an original of this Archive; declare it where one is"),
        ),
        Errno::LOOP => (
            Exit::Refused,
            message!("the editions would form a cycle; an edition cannot follow itself"),
        ),
        Errno::EXIST => (
            Exit::Refused,
            message!("it has one already; remove it first with 'ibifs unrelate'"),
        ),
        Errno::AGAIN => (
            Exit::Refused,
            message!("the clock has been set back or too many mint at once; try again"),
        ),
        Errno::NOENT | Errno::NODATA => (Exit::NotFound, message!("no such item or relation")),
        Errno::NOTCONN => (
            Exit::Failed,
            message!("the daemon of the mount is gone; mount the store again"),
        ),
        Errno::ROFS => (Exit::Refused, message!("the mount is read-only")),
        other => (Exit::Failed, std::io::Error::from(other).message()),
    };
    Failure::new(exit, message!("{what}: {why}", what, why))
}

/// The bytes of a path, for system calls.
pub(super) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
