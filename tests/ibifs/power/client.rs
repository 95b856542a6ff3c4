//! A client of the mount: does what its random source say, with items of its own, and reports to the model what each
//! step may leave on disk before it takes it, and what it has promised as soon as it is answered.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use ibi::{Ibip, IbipPrefix, Rep, RepPrefix, Timestamp};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};

use super::model::{End, Entry, Facts, FileKey, Item, Key, PIECE, Presence, inverse, language};
use super::record::{Record, Stop};
use crate::support::Rng;

type Done<T = ()> = Result<T, Stop>;

/// More items than this, and one is removed.
const ENOUGH: usize = 12;

const KINDS: [&str; 4] = [
    "ibi.nextedition",
    "ibi.metadata",
    "ibi.translation(pt)",
    "ibi.translation(fr)",
];

pub struct Client<'a> {
    pub number: usize,
    pub mount: PathBuf,
    pub rng: Rng,
    pub record: &'a Record,
    /// The items that no other user changes meanwhile, removed ones included.
    pub items: BTreeMap<Key, Item>,
    pub next_key: Key,
    /// The Archive service that the sidecar of an original here names.
    pub service: String,
    /// Mints that were asked for and of which no name was seen.
    pub unseen: usize,
    /// Of these, how many were answered.
    pub answered: usize,
    /// The items that this client minted as relations. Each is a directory for it, not a link that it could remove or
    /// replace.
    pub made: Vec<(Key, &'static str)>,
    /// Names of new items.
    pub printed: Vec<String>,
    /// A number that no two clients, cycles or stores share, for labels and copies.
    pub serial: usize,
}

impl Client<'_> {
    /// Works until the power is cut; says what was refused before.
    pub fn work(&mut self) -> Result<(), String> {
        loop {
            match self.operation() {
                Ok(()) => {}
                Err(Stop::Cut) => return Ok(()),
                Err(Stop::Refused(what)) => return Err(what),
            }
        }
    }

    fn step<T, E: std::fmt::Display>(
        &self,
        what: impl Fn() -> String,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Done<T> {
        self.record.step(self.number, what, act)
    }

    fn operation(&mut self) -> Done {
        let here = self.items.values().filter(|item| item.is_here()).count();
        if here == 0 {
            return self.mint();
        }
        if here > ENOUGH {
            return self.remove();
        }
        match self.rng.below(100) {
            0..12 => self.mint(),
            12..17 => self.mint_related(),
            17..28 => self.write(false),
            28..38 => self.write(true),
            38..43 => self.write_in_place(),
            43..52 => self.edit(),
            52..62 => self.relate(),
            62..67 => self.unrelate(),
            67..73 => self.copy_in(),
            73..77 => self.remove(),
            77..82 => self.rename(),
            82..85 => self.unlink(),
            85..92 => self.replace_sidecar(),
            92..96 => self.sync_directory(),
            96..98 => self.copy_back(),
            _ => self.make_directory(),
        }
    }

    fn item(&self, key: Key) -> &Item {
        &self.items[&key]
    }

    fn item_mut(&mut self, key: Key) -> &mut Item {
        self.items.get_mut(&key).expect("a client's own item")
    }

    fn any(&mut self, wanted: impl Fn(&Item) -> bool) -> Option<Key> {
        let keys: Vec<Key> = self
            .items
            .iter()
            .filter(|(_, item)| wanted(item))
            .map(|(key, _)| *key)
            .collect();
        self.rng.of(&keys).copied()
    }

    /// An item's directory in one of the two trees.
    fn path(&mut self, key: Key) -> PathBuf {
        let by_rep = self.rng.percent(50);
        let item = &self.items[&key];
        self.mount.join(match (by_rep, item.answers) {
            (true, [true, _]) | (_, [_, false]) => &item.rep,
            _ => &item.ibip,
        })
    }

    fn fresh_key(&mut self) -> Key {
        self.next_key += 1;
        self.next_key
    }

    fn fresh_serial(&mut self) -> usize {
        self.serial += 1;
        self.serial
    }

    // Mints.

    fn attribute(&self, path: &Path, name: &str) -> Done<String> {
        let what = || format!("{name} of {}", path.display());
        self.step(what, || {
            let mut value = vec![0; 4096];
            let length = getxattr(path, name, &mut value)?;
            value.truncate(length);
            Ok::<_, rustix::io::Errno>(String::from_utf8_lossy(&value).into_owned())
        })
    }

    /// A mkdir that mints.
    fn mkdir_mint(&mut self, path: &Path) -> Done {
        self.unseen += 1;
        self.step(
            || format!("mint: mkdir {}", path.display()),
            || fs::create_dir(path),
        )?;
        self.answered += 1;
        Ok(())
    }

    fn minted(&mut self, rep: String, ibip: String, facts: Facts) -> Key {
        self.unseen -= 1;
        self.answered -= 1;
        self.printed.push(rep.clone());
        let key = self.fresh_key();
        self.items.insert(key, Item::minted(rep, ibip, facts));
        key
    }

    fn mint(&mut self) -> Done {
        let serial = self.fresh_serial();
        let label = format!("report-{}-{serial}", self.number);
        let path = self.mount.join(".mint").join(&label);
        self.mkdir_mint(&path)?;
        let link = self.mount.join(format!(".mint/.{label}"));
        let target = self.step(
            || format!("readlink {}", link.display()),
            || fs::read_link(&link),
        )?;
        let rep = target.to_string_lossy().replacen("../", "", 1);
        let facts = Facts {
            original: true,
            ..Default::default()
        };
        // Its name has been seen, whether or not there is time for the other form.
        let key = self.minted(rep, String::new(), facts);
        let ibip = self.attribute(&path, "user.ibi.ibip")?;
        self.item_mut(key).ibip = ibip;
        Ok(())
    }

    /// A relation that an item does not have.
    fn free_kind(&mut self, key: Key) -> Option<&'static str> {
        let known = &self.items[&key].says().relations;
        let is_free = |kind: &&str| !known.contains_key(*kind) && !self.is_claimed(key, kind);
        let free: Vec<&str> = KINDS.into_iter().filter(is_free).collect();
        self.rng.of(&free).copied()
    }

    /// Whether another item says that it is a relation of this one, which does not say so itself: a
    /// relation that was half declared when the power was cut.
    fn is_claimed(&self, source: Key, kind: &str) -> bool {
        let end = self.items[&source].says().relations.get(kind);
        let claim = (inverse(kind), &End::Item(source));
        self.items.iter().any(|(key, item)| {
            let said = item.says().relations.get(claim.0);
            said == Some(claim.1) && end != Some(&End::Item(*key))
        })
    }

    fn mint_related(&mut self) -> Done {
        let Some(source) = self.any(|item| item.is_original() && !item.ibip.is_empty()) else {
            return self.mint();
        };
        let Some(kind) = self.free_kind(source) else {
            return self.mint();
        };
        let path = self.path(source);
        // It may lead somewhere without being declared: to the item itself where that is the last
        // edition, or in this language. Then no directory can be made there.
        if fs::symlink_metadata(sibling(&path, modifier(kind))).is_ok() {
            return self.mint();
        }
        let mut facts = self.item(source).says().clone();
        facts.relations.insert(kind.to_owned(), End::Fresh);
        self.item_mut(source).facts.push_back(facts);
        self.mkdir_mint(&sibling(&path, modifier(kind)))?;
        self.item_mut(source).facts_synced();
        let rep = self.attribute(&path, &attribute_name(kind))?;
        let mut facts = Facts {
            original: true,
            ..Default::default()
        };
        facts
            .relations
            .insert(inverse(kind).to_owned(), End::Item(source));
        if let Some(language) = language(kind) {
            facts
                .words
                .insert("language".to_owned(), language.to_owned());
        }
        let key = self.minted(rep.clone(), String::new(), facts);
        let said = self.item_mut(source).facts.back_mut().expect("facts");
        said.relations.insert(kind.to_owned(), End::Item(key));
        self.made.push((source, kind));
        let path = self.mount.join(rep);
        let ibip = self.attribute(&path, "user.ibi.ibip")?;
        self.item_mut(key).ibip = ibip;
        Ok(())
    }

    // Files.

    /// Bytes of which no piece is like another, and none like one written before.
    fn bytes(&mut self) -> Vec<u8> {
        let pieces = if self.rng.percent(20) {
            self.rng.below(4000)
        } else {
            self.rng.below(300)
        };
        let serial = self.fresh_serial();
        let mut bytes = Vec::with_capacity(pieces * PIECE);
        for piece in 0..pieces {
            let _ = writeln!(bytes, "{:03}-{serial:05}-{piece:05}", self.number);
        }
        bytes.truncate(bytes.len().saturating_sub(self.rng.below(PIECE)));
        bytes
    }

    /// A directory in an item, which has at least `doc`.
    fn any_directory(&mut self, key: Key) -> Option<String> {
        let names = &self.items[&key].shape().names;
        let directories: Vec<String> = names
            .iter()
            .filter(|(_, entry)| **entry == Entry::Directory)
            .map(|(path, _)| path.clone())
            .collect();
        self.rng.of(&directories).cloned()
    }

    /// A place for a file, where there may be one.
    fn place_for_file(&mut self, key: Key) -> Option<String> {
        let directory = self.any_directory(key)?;
        Some(format!("{directory}/f{}", self.rng.below(4)))
    }

    /// The file at a path, made in the model where it is not there.
    fn file_at(&mut self, key: Key, path: &str) -> FileKey {
        let item = self.item_mut(key);
        if let Some(Entry::File(file)) = item.shape().names.get(path) {
            return *file;
        }
        let file = item.new_file();
        let entry = Entry::File(file);
        item.change(|shape| {
            shape.names.insert(path.to_owned(), entry);
        });
        file
    }

    /// Makes a file or makes it again, and leaves it open.
    fn write_file(&mut self, key: Key, item: &Path, path: &str, bytes: &[u8]) -> Done<File> {
        let file = self.file_at(key, path);
        let versions = &mut self.item_mut(key).contents[file].versions;
        versions.push(Vec::new());
        versions.push(bytes.to_vec());
        let whole = item.join(path);
        let opened = self.step(
            || format!("create {}", whole.display()),
            || File::create(&whole),
        )?;
        self.step(
            || format!("write {} bytes to {}", bytes.len(), whole.display()),
            || (&opened).write_all(bytes),
        )?;
        Ok(opened)
    }

    /// An fsync of a file: what it holds is on disk.
    fn sync_content(&mut self, key: Key, path: &str, opened: &File) -> Done {
        let name = format!("{path} of {}", self.item(key).rep);
        self.step(|| format!("fsync {name}"), || opened.sync_all())?;
        let file = self.file_at(key, path);
        self.item_mut(key).contents[file].sync();
        Ok(())
    }

    /// An fsync of a file that has just been made or emptied: what it holds is on disk, and so are its
    /// name and whatever was done before, since ext4 and XFS keep the order of such changes.
    fn sync_file(&mut self, key: Key, path: &str, opened: &File) -> Done {
        self.sync_content(key, path, opened)?;
        self.item_mut(key).names_synced();
        Ok(())
    }

    fn any_item(&mut self) -> Option<Key> {
        self.any(|item| item.is_here() && !item.ibip.is_empty())
    }

    fn write(&mut self, synced: bool) -> Done {
        let Some(key) = self.any_item() else {
            return self.mint();
        };
        let (Some(path), item) = (self.place_for_file(key), self.path(key)) else {
            return self.mint();
        };
        let bytes = self.bytes();
        let opened = self.write_file(key, &item, &path, &bytes)?;
        if synced {
            self.sync_file(key, &path, &opened)
        } else {
            Ok(())
        }
    }

    fn any_file(&mut self, key: Key) -> Option<(String, FileKey)> {
        let files = self.items[&key].files();
        self.rng.of(&files).cloned()
    }

    fn write_in_place(&mut self) -> Done {
        let Some(key) = self.any(|item| item.is_here() && !item.files().is_empty()) else {
            return self.write(false);
        };
        let Some((path, file)) = self.any_file(key) else {
            return Ok(());
        };
        let item = self.path(key);
        let mut bytes = self.item(key).contents[file].last().to_vec();
        let new = self.bytes();
        // From one piece to another, not beyond the end.
        let from = self.rng.below(bytes.len() / PIECE + 1) * PIECE;
        let count = (bytes.len() - from).min(new.len()) / PIECE * PIECE;
        bytes[from..from + count].copy_from_slice(&new[..count]);
        self.item_mut(key).contents[file].versions.push(bytes);
        let whole = item.join(&path);
        let opened = self.step(
            || format!("open {}", whole.display()),
            || OpenOptions::new().write(true).open(&whole),
        )?;
        self.step(
            || format!("write {count} bytes at {from} of {}", whole.display()),
            || opened.write_all_at(&new[..count], from as u64),
        )?;
        if self.rng.percent(30) {
            self.sync_content(key, &path, &opened)
        } else {
            Ok(())
        }
    }

    /// As an editor does it: written beside, synced, renamed into place.
    fn edit(&mut self) -> Done {
        let Some(key) = self.any_item() else {
            return self.mint();
        };
        let (Some(path), item) = (self.place_for_file(key), self.path(key)) else {
            return self.mint();
        };
        let temporary = format!("{path}.new");
        let bytes = self.bytes();
        let opened = self.write_file(key, &item, &temporary, &bytes)?;
        self.sync_file(key, &temporary, &opened)?;
        self.rename_in_item(key, &item, &temporary, &path)?;
        if self.rng.percent(50) {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            self.sync_directory_of(key, &item.join(directory))?;
        }
        Ok(())
    }

    fn rename_in_item(&mut self, key: Key, item: &Path, from: &str, to: &str) -> Done {
        self.item_mut(key).change(|shape| {
            if let Some(entry) = shape.names.remove(from) {
                shape.names.insert(to.to_owned(), entry);
            }
        });
        let (old, new) = (item.join(from), item.join(to));
        self.step(
            || format!("rename {} to {}", old.display(), new.display()),
            || fs::rename(&old, &new),
        )
    }

    fn rename(&mut self) -> Done {
        let Some(key) = self.any(|item| item.is_here() && !item.files().is_empty()) else {
            return self.write(true);
        };
        let (Some((from, _)), Some(to)) = (self.any_file(key), self.place_for_file(key)) else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        let item = self.path(key);
        self.rename_in_item(key, &item, &from, &to)
    }

    fn unlink(&mut self) -> Done {
        let Some(key) = self.any(|item| item.is_here() && !item.files().is_empty()) else {
            return self.write(false);
        };
        let Some((path, _)) = self.any_file(key) else {
            return Ok(());
        };
        let item = self.path(key);
        self.remove_name(key, &item, &path, false)
    }

    fn remove_name(&mut self, key: Key, item: &Path, path: &str, is_directory: bool) -> Done {
        self.item_mut(key).change(|shape| {
            shape.names.remove(path);
        });
        let whole = item.join(path);
        self.step(
            || format!("rm {}", whole.display()),
            || {
                if is_directory {
                    fs::remove_dir(&whole)
                } else {
                    fs::remove_file(&whole)
                }
            },
        )
    }

    fn make_directory(&mut self) -> Done {
        let Some(key) = self.any_item() else {
            return self.mint();
        };
        let Some(directory) = self.any_directory(key) else {
            return Ok(());
        };
        let path = format!("{directory}/d{}", self.rng.below(3));
        if self.item(key).shape().names.contains_key(&path) || path.len() > 20 {
            return Ok(());
        }
        let item = self.path(key);
        self.make_directory_at(key, &item, &path)
    }

    fn make_directory_at(&mut self, key: Key, item: &Path, path: &str) -> Done {
        self.item_mut(key).change(|shape| {
            shape.names.insert(path.to_owned(), Entry::Directory);
        });
        let whole = item.join(path);
        self.step(
            || format!("mkdir {}", whole.display()),
            || fs::create_dir(&whole),
        )
    }

    /// An fsync of a directory of an item: the names in it are on disk. So are all that came before,
    /// as on ext4 and XFS, if the directory has changed since.
    fn sync_directory_of(&mut self, key: Key, directory: &Path) -> Done {
        self.step(
            || format!("fsync directory {}", directory.display()),
            || File::open(directory)?.sync_all(),
        )?;
        self.item_mut(key).names_synced();
        Ok(())
    }

    fn sync_directory(&mut self) -> Done {
        let Some(key) = self.any_item() else {
            return self.mint();
        };
        let (Some(directory), item) = (self.any_directory(key), self.path(key)) else {
            return self.mint();
        };
        // XFS has nothing to do for a directory that has not changed: a name is made in it first.
        let path = format!("{directory}/s{}", self.fresh_serial());
        drop(self.write_file(key, &item, &path, b"")?);
        self.sync_directory_of(key, &item.join(directory))
    }

    // Relations.

    /// An item that can be the other end: it is that of no other.
    fn any_end(&mut self, source: Key, kind: &str) -> Option<Key> {
        let all = &self.items;
        let is_taken = |key: Key| {
            all.values().any(|item| {
                item.says()
                    .relations
                    .iter()
                    .any(|(known, end)| inverse(known) == inverse(kind) && *end == End::Item(key))
            })
        };
        let fits = |item: &Item| {
            let said = item.says();
            let other = said.words.get("language");
            !said.relations.contains_key(inverse(kind))
                && language(kind).is_none_or(|wanted| other.is_none_or(|other| other == wanted))
        };
        // Only forward, so that editions never go in a circle.
        let keys: Vec<Key> = all
            .range(source + 1..)
            .filter(|(key, item)| {
                item.is_here() && !item.ibip.is_empty() && fits(item) && !is_taken(**key)
            })
            .map(|(key, _)| *key)
            .collect();
        self.rng.of(&keys).copied()
    }

    /// Notes the statements of the sidecars after a relation is set or taken back, as far as they are originals.
    fn note_relation(&mut self, source: Key, kind: &str, target: Option<Key>) -> Vec<Key> {
        let before = self.item(source).says().relations.get(kind).cloned();
        let mut changed = vec![source];
        let ours = Some(&End::Item(source));
        if let Some(End::Item(far)) = before
            && Some(far) != target
            && let Some(item) = self.items.get(&far)
            && item.is_original()
            && item.says().relations.get(inverse(kind)) == ours
        {
            self.say(far, |facts| {
                facts.relations.remove(inverse(kind));
            });
            changed.push(far);
        }
        if let Some(far) = target
            && self.item(far).is_original()
        {
            self.say(far, |facts| {
                let back = inverse(kind).to_owned();
                facts.relations.insert(back, End::Item(source));
                if let Some(language) = language(kind) {
                    let known = facts.words.entry("language".to_owned());
                    known.or_insert_with(|| language.to_owned());
                }
            });
            changed.push(far);
        }
        self.say(source, |facts| {
            match target {
                Some(far) => facts.relations.insert(kind.to_owned(), End::Item(far)),
                None => facts.relations.remove(kind),
            };
        });
        changed
    }

    fn say(&mut self, key: Key, change: impl FnOnce(&mut Facts)) {
        let item = self.item_mut(key);
        let mut facts = item.says().clone();
        change(&mut facts);
        item.facts.push_back(facts);
    }

    fn related(&mut self, changed: &[Key]) {
        for key in changed {
            self.item_mut(*key).facts_synced();
        }
    }

    fn relate(&mut self) -> Done {
        let Some(source) = self.any(|item| item.is_original() && !item.ibip.is_empty()) else {
            return self.mint();
        };
        let kind = *self.rng.of(&KINDS).expect("kinds");
        if self.is_claimed(source, kind) {
            return self.mint();
        }
        let Some(target) = self.any_end(source, kind) else {
            return self.mint_related();
        };
        let path = self.path(source);
        let name = sibling(&path, modifier(kind));
        let end = self.end_from(&path, target);
        // It may lead somewhere without being declared.
        let has_one = fs::symlink_metadata(&name).is_ok();
        let changed = self.note_relation(source, kind, Some(target));
        let is_link = self.rng.percent(60) && !self.made.contains(&(source, kind));
        match (is_link, has_one) {
            (false, _) => {
                let attribute = attribute_name(kind);
                let value = self.item(target).rep.clone();
                self.step(
                    || format!("setxattr {attribute}={value} of {}", path.display()),
                    || setxattr(&path, &attribute, value.as_bytes(), XattrFlags::empty()),
                )?;
            }
            (_, false) => self.step(
                || format!("ln -s {} {}", end.display(), name.display()),
                || symlink(&end, &name),
            )?,
            (_, true) => {
                let serial = self.fresh_serial() % 1000;
                let staged = name.with_file_name(format!("Cu{}{serial:03}ab", self.number));
                self.step(
                    || format!("ln -s {} {}", end.display(), staged.display()),
                    || symlink(&end, &staged),
                )?;
                self.step(
                    || format!("rename {} to {}", staged.display(), name.display()),
                    || fs::rename(&staged, &name),
                )?;
            }
        }
        self.related(&changed);
        Ok(())
    }

    /// Returns the text of a link beside an item that leads to another.
    fn end_from(&self, path: &Path, target: Key) -> PathBuf {
        let below = path.strip_prefix(&self.mount).unwrap_or(path);
        let mut end = PathBuf::new();
        for _ in below.components().skip(1) {
            end.push("..");
        }
        end.join(match below.components().count() {
            2 => &self.item(target).ibip,
            _ => &self.item(target).rep,
        })
    }

    fn unrelate(&mut self) -> Done {
        let is_ours = |kind: &str| !kind.ends_with("of");
        let Some(source) = self.any(|item| {
            let said = item.says();
            item.is_original()
                && !item.ibip.is_empty()
                && said.relations.keys().any(|kind| is_ours(kind))
        }) else {
            return self.relate();
        };
        let said = &self.items[&source].says().relations;
        let is_said = |kind: &&str| said.contains_key(*kind);
        let kinds: Vec<&str> = KINDS.into_iter().filter(is_said).collect();
        let kind = *self.rng.of(&kinds).expect("kinds");
        let path = self.path(source);
        let changed = self.note_relation(source, kind, None);
        if self.rng.percent(50) && !self.made.contains(&(source, kind)) {
            let name = sibling(&path, modifier(kind));
            self.step(
                || format!("rm {}", name.display()),
                || match fs::remove_file(&name) {
                    // The item at the other end was removed: the relation is history, and has no name.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        removexattr(&path, attribute_name(kind)).map_err(Error::from)
                    }
                    removed => removed,
                },
            )?;
        } else {
            let attribute = attribute_name(kind);
            self.step(
                || format!("removexattr {attribute} of {}", path.display()),
                || removexattr(&path, &attribute),
            )?;
        }
        self.related(&changed);
        Ok(())
    }

    // Sidecars.

    /// A sidecar written beside and renamed onto `.ibi`.
    fn replace_sidecar(&mut self) -> Done {
        let Some(key) = self.any(|item| item.is_original() && !item.ibip.is_empty()) else {
            return self.copy_in();
        };
        let item = self.path(key);
        let sidecar = item.join(".ibi");
        let before = self.step(
            || format!("read {}", sidecar.display()),
            || fs::read_to_string(&sidecar),
        )?;
        let without = |name: &str| -> String {
            let begin = format!("{name} ");
            let lines = before.lines().filter(|line| !line.starts_with(&begin));
            lines.flat_map(|line| [line, "\n"]).collect()
        };
        let serial = self.fresh_serial();
        let what = self.rng.below(4);
        let (text, changed) = match what {
            0 | 1 => {
                let name = ["note", "target"][what];
                let value = format!("v{serial}.txt");
                self.say(key, |facts| {
                    facts.words.insert(name.to_owned(), value.clone());
                });
                (format!("{}{name} {value}\n", without(name)), vec![key])
            }
            2 => {
                let Some(kind) = self.free_kind(key) else {
                    return Ok(());
                };
                let Some(target) = self.any_end(key, kind) else {
                    return Ok(());
                };
                let names = self.names_of(target);
                let changed = self.note_relation(key, kind, Some(target));
                (format!("{before}{kind} {names}\n"), changed)
            }
            _ => {
                let known = self.item(key).says().relations.keys();
                let known: Vec<String> = known
                    .filter(|kind| !kind.ends_with("of"))
                    .cloned()
                    .collect();
                let Some(kind) = self.rng.of(&known).cloned() else {
                    return Ok(());
                };
                let changed = self.note_relation(key, &kind, None);
                (without(&kind), changed)
            }
        };
        let name = if self.rng.percent(50) {
            ".ibi.new".to_owned()
        } else {
            format!("..ibi.{:06}", serial % 1_000_000)
        };
        let opened = self.write_file(key, &item, &name, text.as_bytes())?;
        if self.rng.percent(50) {
            self.sync_file(key, &name, &opened)?;
        }
        drop(opened);
        self.item_mut(key).change(|shape| {
            shape.names.remove(&name);
        });
        let from = item.join(&name);
        self.step(
            || {
                format!(
                    "rename {} to {}: {text:?}",
                    from.display(),
                    sidecar.display()
                )
            },
            || fs::rename(&from, &sidecar),
        )?;
        // Whether it was synced before or not: the Archive that holds the original answers for it.
        self.related(&changed);
        Ok(())
    }

    fn names_of(&self, key: Key) -> String {
        let item = self.item(key);
        format!("{{rep {} ibip {}}}", item.rep, item.ibip)
    }

    // Items that come and go.

    fn copy_in(&mut self) -> Done {
        // No clock: the same seed makes the same names, and no two clients the same.
        let seconds = 1_000_000_000 + (self.number * 1_000_000 + self.fresh_serial()) * 60;
        let date = Timestamp::from_unix(i64::try_from(seconds).expect("a date"), 0);
        let host = RepPrefix::from_host("library.example.net", 80).expect("a prefix");
        let address = IbipPrefix::from_address("192.0.2.7".parse().expect("an address"), 800);
        let rep = Rep::mint(&host, &date).to_string();
        let ibip = Ibip::mint(&address, &date).expect("an IBIp").to_string();
        let key = self.fresh_key();
        let by_rep = self.rng.percent(50);
        let place = if by_rep { rep.clone() } else { ibip.clone() };
        self.items.insert(key, Item::coming(rep, ibip));
        let text = format!(
            "ibi {}\nibi.archiveservice {{rep example.net/library/1999/01.01.00.00}}\n\
             ibi.nextedition {{rep example.net/library/1999/01.02.00.00}}\nnote v{key}\n",
            self.names_of(key)
        );
        self.arrive(key, &place, &text)
    }

    /// Makes the levels above an item, the item, `doc`, files and the sidecar, as `cp -a` does.
    fn arrive(&mut self, key: Key, place: &str, sidecar: &str) -> Done {
        let mut path = self.mount.clone();
        let levels: Vec<&str> = place.split('/').collect();
        for level in &levels[..levels.len() - 1] {
            path.push(level);
            self.step(
                || format!("mkdir {}", path.display()),
                || match fs::create_dir(&path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                    other => other,
                },
            )?;
        }
        let item = self.mount.join(place);
        self.item_mut(key).change(|shape| {
            shape.presence = Presence::Here;
        });
        self.step(
            || format!("item: mkdir {}", item.display()),
            || fs::create_dir(&item),
        )?;
        self.make_directory_at(key, &item, "doc")?;
        let mut opened = Vec::new();
        for number in 0..self.rng.below(3) {
            let bytes = self.bytes();
            let path = format!("doc/f{number}");
            opened.push((path.clone(), self.write_file(key, &item, &path, &bytes)?));
        }
        let is_original = sidecar.contains(&self.service);
        let bytes = Some(sidecar.as_bytes().to_vec());
        self.item_mut(key).copied.push(bytes.clone());
        if is_original {
            self.say(key, |facts| facts.original = true);
        }
        let name = item.join(".ibi");
        let written = self.step(
            || format!("create {}", name.display()),
            || File::create(&name),
        )?;
        self.step(
            || format!("write {}: {sidecar:?}", name.display()),
            || (&written).write_all(sidecar.as_bytes()),
        )?;
        let is_synced = self.rng.percent(50);
        if is_synced {
            self.step(
                || format!("fsync {}", name.display()),
                || written.sync_all(),
            )?;
        }
        // Closed, it is taken in.
        self.step(|| format!("close {}", name.display()), || close(written))?;
        if is_original {
            self.item_mut(key).facts_synced();
        }
        if is_synced {
            self.item_mut(key).copied = vec![bytes];
            for (path, file) in &opened {
                self.sync_file(key, path, file)?;
            }
            self.sync_directory_of(key, &item.join("doc"))?;
            self.sync_directory_of(key, &item)?;
        }
        Ok(())
    }

    /// rm -r of an item.
    fn remove(&mut self) -> Done {
        let Some(key) = self.any_item() else {
            return self.mint();
        };
        let item = self.path(key);
        let names: Vec<(String, Entry)> = self
            .item(key)
            .shape()
            .names
            .iter()
            .map(|(path, entry)| (path.clone(), *entry))
            .collect();
        for (path, entry) in names.into_iter().rev() {
            self.remove_name(key, &item, &path, entry == Entry::Directory)?;
        }
        // Files that a repair has set aside.
        for name in [".ibi.broken-1", ".ibi.before-1"] {
            let aside = item.join(name);
            if aside.exists() {
                self.step(
                    || format!("rm {}", aside.display()),
                    || fs::remove_file(&aside),
                )?;
            }
        }
        let sidecar = item.join(".ibi");
        self.item_mut(key).copied.push(None);
        self.step(
            || format!("rm {}", sidecar.display()),
            || match fs::remove_file(&sidecar) {
                // A copy need not have one.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                other => other,
            },
        )?;
        self.item_mut(key)
            .change(|shape| shape.presence = Presence::Removed);
        self.step(
            || format!("item: rmdir {}", item.display()),
            || fs::remove_dir(&item),
        )?;
        self.item_mut(key).names_synced();
        Ok(())
    }

    /// An item that was removed is copied in again.
    fn copy_back(&mut self) -> Done {
        // Statements of others about it do not become its own when it comes back.
        let related: Vec<End> = self
            .items
            .values()
            .flat_map(|item| item.says().relations.values().cloned())
            .collect();
        let removed: Vec<Key> = self
            .items
            .iter()
            .filter(|(_, item)| item.shape().presence == Presence::Removed)
            .filter(|(key, item)| !item.ibip.is_empty() && !related.contains(&End::Item(**key)))
            .map(|(key, _)| *key)
            .collect();
        let Some(key) = self.rng.of(&removed).copied() else {
            return self.remove();
        };
        let was_original = self.item(key).says().original;
        let mut text = format!("ibi {}\n", self.names_of(key));
        if was_original {
            text.push_str(&format!("ibi.archiveservice {}\n", self.service));
        }
        let item = self.item_mut(key);
        item.copied = vec![None];
        item.answers = [true; 2];
        item.facts = [Facts::default()].into();
        let place = item.rep.clone();
        self.arrive(key, &place, &text)
    }
}

/// Closes a file and says what came of it.
fn close(file: File) -> Result<(), Error> {
    // SAFETY: the descriptor is ours and is not used any more.
    match unsafe { libc::close(std::os::fd::IntoRawFd::into_raw_fd(file)) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn sibling(item: &Path, modifier: &str) -> PathBuf {
    let mut path = item.as_os_str().to_owned();
    path.push(modifier);
    PathBuf::from(path)
}

fn modifier(kind: &str) -> &'static str {
    match kind {
        "ibi.nextedition" => "!",
        "ibi.metadata" => ":",
        "ibi.translation(pt)" => "+(pt)",
        _ => "+(fr)",
    }
}

fn attribute_name(kind: &str) -> String {
    let name = format!("user.{kind}");
    name.replace('(', ".").replace(')', "")
}
