//! The content of an item as a text, for Archives that communicate over HTTP only.
//!
//! The text has a line for each entry (see [`crate::formats::entry`]), and after it one for each of its extended
//! attributes. A directory stands before its entries, and a file before its further names.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use super::not_sent::{NotSent, mode_without_list};
use crate::archive::backup::{UserAttributes, attributes_of};
use crate::archive::tree::{SIDECAR, Tree, each_entry_of, entry_stat, joined};
use crate::formats::entry::{
    Entry, EntryLine, EntryStat, EntryText, LONGEST_NAME, LineError, check_path, check_target,
    parse_size,
};
use crate::formats::fixity::{Digest, Manifest, shown};
use ibi::message;
use ibi::message::Message;
use ibi::pairs::{percent_decode, percent_encode};

/// The longest attribute value that Linux stores, in bytes.
const LONGEST_VALUE: usize = 65_536;

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InventoryKind {
    /// A directory; the item's own has the empty path.
    Directory,
    /// A regular file: digest, and size in bytes.
    File(Digest, u64),
    /// A symbolic link, and its target.
    Link(Vec<u8>),
    /// Another name of the file at this path.
    Same(Vec<u8>),
}

/// One entry of an item, with the extended attributes of users, without set-user-ID and set-group-ID bits.
pub type InventoryEntry = Entry<InventoryKind>;

/// Everything in an item except its sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The entries; each follows those that it depends on.
    pub entries: Vec<InventoryEntry>,
}

impl Inventory {
    /// The inventory of an item's directory; `manifest` has the digests of its files.
    ///
    /// # Errors
    /// The path of an entry that cannot be represented: a FIFO, a socket, a device, or a file that has
    /// changed since the digests were taken.
    pub fn of(directory: &Tree, manifest: &Manifest) -> Result<Inventory, Message> {
        Ok(Inventory::with_not_sent(directory, manifest)?.0)
    }

    /// The same, and what the text leaves out.
    ///
    /// # Errors
    /// As for [`Inventory::of`].
    pub fn with_not_sent(
        directory: &Tree,
        manifest: &Manifest,
    ) -> Result<(Inventory, NotSent), Message> {
        let mut lister = Lister {
            directory,
            manifest,
            first_names: HashMap::new(),
            waiting: vec![Vec::new()],
            entries: Vec::new(),
            item: None,
            not_sent: NotSent::default(),
        };
        while let Some(path) = lister.waiting.pop() {
            lister.list(path)?;
        }
        let entries = lister.entries;
        Ok((Inventory { entries }, lister.not_sent))
    }

    /// Parses the text of an inventory.
    ///
    /// # Errors
    /// An invalid line; a path that occurs twice, has `..`, has no directory before it, or is that of the
    /// sidecar; an attribute that is not a user's.
    pub fn parse(text: &str) -> Result<Inventory, LineError> {
        let mut inventory = Inventory::default();
        let mut known = SeenPaths::default();
        for (at, line) in text.lines().enumerate() {
            let fault = |what| LineError {
                text: EntryText::Inventory,
                line: at + 1,
                what,
            };
            if let ["attribute", name, value] = line.split(' ').collect::<Vec<_>>()[..] {
                let last = inventory.entries.last_mut();
                let last = last.ok_or(fault(message!("an attribute without an entry")))?;
                let attribute = (percent_decode(name), percent_decode(value));
                check_attribute(&attribute).map_err(fault)?;
                last.attributes.push(attribute);
                continue;
            }
            let entry = parse_entry(line).ok_or(fault(message!("it is not an entry")))?;
            known.take(&entry).map_err(fault)?;
            inventory.entries.push(entry);
        }
        Ok(inventory)
    }

    /// The total size of all files, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files()
            .fold(0, |sum, (_, _, size)| sum.saturating_add(size))
    }

    /// Its files, by path, with digest and size.
    pub fn files(&self) -> impl Iterator<Item = (&[u8], Digest, u64)> {
        self.entries.iter().filter_map(|entry| match entry.kind {
            InventoryKind::File(digest, size) => Some((&entry.path[..], digest, size)),
            _ => None,
        })
    }

    /// The digests of all names of files.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let mut manifest: Manifest = self
            .files()
            .map(|(path, digest, _)| (path.to_vec(), digest))
            .collect();
        for entry in &self.entries {
            if let InventoryKind::Same(first) = &entry.kind
                && let Some(digest) = manifest.get(first).copied()
            {
                manifest.insert(entry.path.clone(), digest);
            }
        }
        manifest
    }
}

impl fmt::Display for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let (word, more) = match &entry.kind {
                InventoryKind::Directory => ("directory", String::new()),
                InventoryKind::File(digest, size) => ("file", format!(" {digest} {size}")),
                InventoryKind::Link(target) => ("link", format!(" {}", percent_encode(target))),
                InventoryKind::Same(first) => ("same", format!(" {}", percent_encode(first))),
            };
            let path = percent_encode(&entry.path);
            writeln!(f, "{word} {} {path}{more}", entry.stat)?;
            for (name, value) in &entry.attributes {
                let (name, value) = (percent_encode(name), percent_encode(value));
                writeln!(f, "attribute {name} {value}")?;
            }
        }
        Ok(())
    }
}

/// Lists an item's directory.
struct Lister<'a> {
    directory: &'a Tree,
    manifest: &'a Manifest,
    /// By device and inode number, the first name of each file that has several.
    first_names: HashMap<(u64, u64), Vec<u8>>,
    waiting: Vec<Vec<u8>>,
    entries: Vec<InventoryEntry>,
    /// The state of the item's directory.
    item: Option<Stat>,
    not_sent: NotSent,
}

impl Lister<'_> {
    /// Adds an entry with all its attributes, of which the users' are sent.
    fn add(
        &mut self,
        path: Vec<u8>,
        kind: InventoryKind,
        stat: &Stat,
        mut attributes: UserAttributes,
    ) {
        let item = *self.item.get_or_insert(*stat);
        if !matches!(kind, InventoryKind::Same(_)) {
            self.not_sent.count(&item, stat, &attributes);
        }
        let mode = mode_without_list(stat.st_mode, &attributes) & 0o1777;
        attributes.retain(|(name, _)| name.starts_with(b"user."));
        attributes.sort();
        self.entries.push(Entry {
            path,
            kind,
            stat: EntryStat {
                mode: u16::try_from(mode).unwrap_or(0),
                ..entry_stat(stat)
            },
            attributes,
        });
    }

    fn list(&mut self, path: Vec<u8>) -> Result<(), Message> {
        let failed = |errno: Errno| {
            message!(
                "'{path}': {error}",
                path = shown(&path),
                error = std::io::Error::from(errno)
            )
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = self.directory.open_far(&path, flags).map_err(failed)?;
        let stat = rustix::fs::fstat(&opened).map_err(failed)?;
        let attributes = attributes_of(&opened).map_err(failed)?;
        let mut names = Vec::new();
        each_entry_of(&opened, |name, is_directory| {
            names.push((name.to_vec(), is_directory));
        })
        .map_err(failed)?;
        names.sort();
        self.add(path.clone(), InventoryKind::Directory, &stat, attributes);
        for (name, is_directory) in names {
            let below = joined(&path, &name);
            match is_directory {
                true => self.waiting.push(below),
                false if below == SIDECAR.as_bytes() => {}
                false => self.file(&opened, &name, below)?,
            }
        }
        Ok(())
    }

    /// Adds an entry that is not a directory.
    fn file(&mut self, parent: &OwnedFd, name: &[u8], path: Vec<u8>) -> Result<(), Message> {
        let failed = |errno: Errno| {
            message!(
                "'{path}': {error}",
                path = shown(&path),
                error = std::io::Error::from(errno)
            )
        };
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let key = (stat.st_dev, stat.st_ino);
        let mut attributes = UserAttributes::new();
        let first = self.first_names.get(&key);
        let kind = match (FileType::from_raw_mode(stat.st_mode), first) {
            (FileType::RegularFile, Some(first)) => InventoryKind::Same(first.clone()),
            (FileType::RegularFile, None) => {
                let digest = self.manifest.get(&path);
                let digest =
                    *digest.ok_or_else(|| message!("'{path}' is new", path = shown(&path)))?;
                if stat.st_nlink > 1 {
                    self.first_names.insert(key, path.clone());
                }
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                let opened = self.directory.open_far(&path, flags).map_err(failed)?;
                attributes = attributes_of(&opened).map_err(failed)?;
                InventoryKind::File(digest, u64::try_from(stat.st_size).unwrap_or_default())
            }
            (FileType::Symlink, _) => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new());
                InventoryKind::Link(target.map_err(failed)?.into_bytes())
            }
            _ => {
                let path = shown(&path);
                return Err(message!(
                    "'{path}' is a FIFO, a socket or a device, which is not sent over HTTP",
                    path
                ));
            }
        };
        self.add(path, kind, &stat, attributes);
        Ok(())
    }
}

/// The paths of a text that have been read so far.
#[derive(Default)]
struct SeenPaths {
    paths: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
    files: BTreeSet<Vec<u8>>,
}

impl SeenPaths {
    fn take(&mut self, entry: &InventoryEntry) -> Result<(), Message> {
        let path = &entry.path;
        let is_root = path.is_empty() && entry.kind == InventoryKind::Directory;
        if self.paths.is_empty() != is_root {
            return Err(message!("the item's own directory comes first, once"));
        }
        if !is_root {
            check_path(path)?;
            if path == SIDECAR.as_bytes() {
                return Err(message!("the sidecar is sent apart"));
            }
            let parent = path.iter().rposition(|byte| *byte == b'/');
            let parent = parent.map_or(&b""[..], |cut| &path[..cut]);
            if !self.directories.contains(parent) {
                return Err(message!("its directory is not before it"));
            }
        }
        if !self.paths.insert(path.clone()) {
            return Err(message!("its path occurs twice"));
        }
        match &entry.kind {
            InventoryKind::Directory => drop(self.directories.insert(path.clone())),
            InventoryKind::File(..) => drop(self.files.insert(path.clone())),
            InventoryKind::Link(target) => check_target(target)?,
            InventoryKind::Same(first) if !self.files.contains(first) => {
                return Err(message!("the file of this name is not before it"));
            }
            InventoryKind::Same(_) => {}
        }
        Ok(())
    }
}

fn check_attribute((name, value): &(Vec<u8>, Vec<u8>)) -> Result<(), Message> {
    if !name.starts_with(b"user.") || name.contains(&0) || name.len() > LONGEST_NAME {
        return Err(message!("the attribute is not a user attribute"));
    }
    if value.len() > LONGEST_VALUE {
        Err(message!("the attribute is too long"))
    } else {
        Ok(())
    }
}

fn parse_entry(line: &str) -> Option<InventoryEntry> {
    let line = EntryLine::parse(line)?;
    let kind = match (line.kind, &line.more[..]) {
        ("directory", []) => InventoryKind::Directory,
        ("file", [digest, size]) => {
            InventoryKind::File(Digest::parse(digest.as_bytes())?, parse_size(size)?)
        }
        ("link", [target]) => InventoryKind::Link(percent_decode(target)),
        ("same", [first]) => InventoryKind::Same(percent_decode(first)),
        _ => return None,
    };
    // The owner may be another user here.
    let has_set_ids = line.stat != line.stat.without_set_ids();
    (!has_set_ids).then_some(Entry {
        path: line.path,
        kind,
        stat: line.stat,
        attributes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "directory 755 1.000000000 \n";

    #[test]
    fn an_inventory_reads_back() {
        let digest = "0".repeat(64);
        let text = format!(
            "{ROOT}attribute user.x y%20z\ndirectory 700 -1.000000005 doc\n\
             file 644 2.000000000 doc/a%20b {digest} 3\nsame 644 2.000000000 doc/c doc/a%20b\n\
             link 777 3.000000000 doc/l ../../x\n"
        );
        let inventory = Inventory::parse(&text).expect("it is good");
        assert_eq!(inventory.to_string(), text);
        assert_eq!(inventory.bytes(), 3);
        assert_eq!(inventory.manifest().len(), 2);
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn what_is_no_inventory() {
        let digest = "0".repeat(64);
        let bad = |lines: &str, what: &str| {
            let error = Inventory::parse(&format!("{ROOT}{lines}\n")).expect_err(lines);
            assert!(error.to_string().contains(what), "{lines}: {error}");
        };
        for path in ["../x", "/x", "a/../../x", ".", "..", "%2e%2e/x", "a//b", "x%00y"] {
            bad(&format!("file 644 1.0 {path} {digest} 3"), "path");
        }
        bad("directory 755 1.0 ..", "leaves the item");
        bad(&format!("file 644 1.0 .ibi {digest} 3"), "sidecar");
        bad(&format!("file 644 1.0 a/b {digest} 3"), "its directory is not before it");
        bad(&format!("link 777 1.0 a /tmp\nfile 644 1.0 a/b {digest} 3"), "its directory is not before it");
        bad(&format!("file 644 1.0 a {digest} 3\nfile 644 1.0 a {digest} 3"), "twice");
        bad("same 644 1.0 a b", "not before it");
        bad("fifo 644 1.0 a", "not an entry");
        bad("attribute trusted.x y", "not a user attribute");
        bad("directory 755 1.0 ", "comes first, once");
        bad("file 644 1.0 a 12 3", "not an entry");
        bad(&format!("file 4755 1.0 a {digest} 3"), "not an entry");
        assert!(Inventory::parse("link 777 1.0 a b\n").is_err());
    }
}
