//! An item that an Archive holds, and what of it a store receives.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use crate::archive::transfer::{
    Inventory as Contents, InventoryEntry, InventoryKind, Skip, TransferError,
};
use crate::archive::tree::SIDECAR;
use crate::formats::fixity::{Digest, shown};
use crate::formats::inventory::{Entry, EntryKind, FileEntry, Page};
use crate::formats::item::{Names, Sidecar};
use crate::web::service::content_url;
use crate::world::error::ForeignError;
use crate::world::remote::inventory::{ForeignInventory, Position};
use crate::world::remote::items::is_named;
use ibi::relation::RelationKind;
use ibi::{AliasPair, Ibi, Timestamp, message};

/// The item that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct CopyRequest {
    /// An identifier, with or without a modifier.
    pub(crate) name: String,
    /// The identity that the item must have. None if a modifier leads to it.
    pub(crate) identity: Option<Identity>,
}

/// Proof that an item is the one that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// One of its names.
    Ibi(Ibi),
    /// An alias in its sidecar.
    Alias(AliasPair),
}

impl CopyRequest {
    /// The item with these names.
    pub(crate) fn of(names: &Names) -> CopyRequest {
        let name = names.preferred();
        let identity = Ibi::parse(&name).ok().map(Identity::Ibi);
        CopyRequest { name, identity }
    }
}

/// The known digests of an item's files.
pub(crate) type Digests = HashMap<Position, Digest>;

/// An item that an Archive holds.
#[derive(Debug)]
pub(crate) struct ItemToCopy {
    inventory: ForeignInventory,
    base: String,
    sidecar: Sidecar,
    /// The sidecar as it is.
    text: Vec<u8>,
}

impl ItemToCopy {
    /// Its names.
    pub(crate) fn names(&self) -> &Names {
        self.inventory.names()
    }

    /// The item that is its metadata.
    pub(crate) fn metadata(&self) -> Option<Names> {
        let mut relations = self.sidecar.relations().into_iter();
        let found = relations.find(|(kind, _)| matches!(kind, RelationKind::Metadata));
        found.map(|(_, names)| names)
    }

    /// Returns what its Archive says of it.
    pub(crate) fn sidecar(&self) -> &Sidecar {
        &self.sidecar
    }

    /// The URL of its Archive.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The URL of a file.
    pub(crate) fn url(&self, entry: &Entry) -> String {
        let below = content_url(self.names(), &entry.path);
        format!("{}/{below}", self.base)
    }

    /// The sidecar as it is.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// All entries, each that is a further name of a file with the first one.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Entry, Option<&Entry>)> {
        let entries = self.inventory.entries().iter().zip(0..);
        entries.map(|(entry, position)| {
            let (first, _) = self.inventory.first_name(position);
            let is_further = first != position;
            (&**entry, is_further.then(|| self.entry(first)))
        })
    }

    /// The texts that are not a sidecar.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&Entry, &[u8])> {
        let entries = self.inventory.entries().iter();
        entries.filter_map(|entry| match &entry.kind {
            EntryKind::Text(text) if entry.path != SIDECAR.as_bytes() => {
                Some((&**entry, text.as_slice()))
            }
            _ => None,
        })
    }

    /// An entry by its number.
    pub(crate) fn entry(&self, position: Position) -> &Entry {
        self.inventory.entry(position)
    }

    /// Refuses what is not sent: an item whose files its Archive withholds at `now`, one that says that it is withdrawn, or
    /// one with an entry that is no file.
    pub(crate) fn check(&self, now: &Timestamp) -> Result<(), TransferError> {
        let until = self.sidecar.life().available.as_ref();
        if let Some(until) = until.filter(|until| *until > now) {
            let until = until.to_rfc3339();
            return Err(
                Skip::NotCopied(message!("the files are withheld until {until}", until)).into(),
            );
        }
        // That is for the Archive of the original to say, which gives out nothing of it.
        if self.sidecar.life().withdrawn.is_some() {
            let why = message!("its sidecar says that it is withdrawn");
            return Err(Skip::NotCopied(why).into());
        }
        let mut entries = self.inventory.entries().iter();
        let unsent = entries.find(|it| matches!(it.kind, EntryKind::Fifo | EntryKind::Socket));
        unsent.map_or(Ok(()), |entry| Err(not_sent(entry)))
    }

    /// The item in an inventory.
    pub(crate) fn of_pages(
        base: &str,
        pages: Vec<Page>,
        asked: &CopyRequest,
    ) -> Result<ItemToCopy, ForeignError> {
        let broken = |what: String| ForeignError::Broken(format!("{base}: {what}"));
        let inventory = ForeignInventory::of_pages(pages)?;
        let names = inventory.names();
        let own = inventory.position(SIDECAR.as_bytes());
        let text = match own.map(|own| &inventory.entry(own).kind) {
            Some(EntryKind::Text(text)) => text.clone(),
            // An item may have none: then it has its name alone.
            _ => Sidecar::new(names).to_bytes(),
        };
        let sidecar = Sidecar::parse(&text).map_err(|error| broken(error.to_string()))?;
        let is_asked = match &asked.identity {
            None => true,
            Some(Identity::Ibi(ibi)) => is_named(names, ibi),
            Some(Identity::Alias(alias)) => sidecar.aliases().contains(alias),
        };
        if !is_asked {
            let name = &asked.name;
            return Err(broken(format!("it answers with {names} instead of {name}")));
        }
        Ok(ItemToCopy {
            base: base.to_owned(),
            inventory,
            sidecar,
            text,
        })
    }

    /// The files, each by its first name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Position, &Entry, &FileEntry)> {
        let entries = self.inventory.entries().iter();
        entries.zip(0..).filter_map(|(entry, position)| {
            let EntryKind::File(file) = &entry.kind else {
                return None;
            };
            let is_first = self.inventory.first_name(position).0 == position;
            is_first.then_some((position, &**entry, file))
        })
    }

    /// Its entries as a store receives them.
    pub(crate) fn contents(&self, digests: &Digests) -> Result<Contents, TransferError> {
        let mut contents = Contents::default();
        for (entry, position) in self.inventory.entries().iter().zip(0..) {
            let kind = match &entry.kind {
                EntryKind::Text(_) if entry.path == SIDECAR.as_bytes() => continue,
                EntryKind::Directory => InventoryKind::Directory,
                EntryKind::Link(target) => InventoryKind::Link(target.clone()),
                EntryKind::Text(text) => InventoryKind::File(digest_of(text), text.len() as u64),
                EntryKind::File(file) => {
                    let (first, _) = self.inventory.first_name(position);
                    match digests.get(&first) {
                        _ if first != position => {
                            InventoryKind::Same(self.inventory.entry(first).path.clone())
                        }
                        Some(digest) => InventoryKind::File(*digest, file.size),
                        None => return Err(not_sent(entry)),
                    }
                }
                EntryKind::Fifo | EntryKind::Socket => return Err(not_sent(entry)),
            };
            contents.entries.push(InventoryEntry {
                path: entry.path.clone(),
                kind,
                stat: entry.stat.without_set_ids(),
                attributes: Vec::new(),
            });
        }
        Ok(contents)
    }
}

/// The digest of a text.
pub(crate) fn digest_of(text: &[u8]) -> Digest {
    Digest(Sha256::digest(text).into())
}

/// The error of an entry that is not a directory, file or link.
fn not_sent(entry: &Entry) -> TransferError {
    let path = shown(&entry.path);
    Skip::NotCopied(message!(
        "'{path}' is a FIFO, a socket or a device, which is not sent over HTTP",
        path
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: &str = "8JMKD3MGP8W/34PGRBS";
    const SIDECAR_TEXT: &str = "text 644 1.0 .ibi ibi%20%7Bibip%208JMKD3MGP8W/34PGRBS%7D%0A";

    fn found(lines: &str, identity: Option<Identity>) -> Result<ItemToCopy, ForeignError> {
        let text = format!("inventory 1\nibi {{ibip {ITEM}}}\ndirectory 755 1.0 .\n{lines}end\n");
        let page = Page::parse(text.as_bytes()).expect("a page");
        let name = ITEM.to_owned();
        ItemToCopy::of_pages("http://a.org", vec![page], &CopyRequest { name, identity })
    }

    fn ibi(text: &str) -> Option<Identity> {
        Ibi::parse(text).ok().map(Identity::Ibi)
    }

    #[test]
    fn an_item_has_the_identity_that_is_asked_for() {
        let alias = AliasPair::parse("LK47B6/x1").ok().map(Identity::Alias);
        assert!(alias.is_some());
        for (identity, is_good) in [
            (None, true),
            (ibi(ITEM), true),
            (ibi("8JMKD3MGP8W/34PGRB2"), false),
            (alias, false),
        ] {
            let found = found("", identity.clone());
            assert_eq!(found.is_ok(), is_good, "{identity:?}");
            assert!(matches!(found, Ok(_) | Err(ForeignError::Broken(_))));
        }
    }

    #[test]
    fn a_sidecar_that_is_none_is_refused_and_a_missing_one_has_the_name_alone() {
        let bare = found("", None).expect("an item");
        assert!(String::from_utf8_lossy(bare.text()).contains(ITEM));
        let good = found(&format!("{SIDECAR_TEXT}\n"), None).expect("an item");
        assert_eq!(good.text(), b"ibi {ibip 8JMKD3MGP8W/34PGRBS}\n");
        let bad = found("text 644 1.0 .ibi %7B\n", None);
        assert!(matches!(bad, Err(ForeignError::Broken(_))));
    }

    #[test]
    fn a_fifo_is_not_copied() {
        for (lines, is_copied) in [
            ("file 644 1.0 a 1 1 -\n", true),
            ("link 777 1.0 l a\n", true),
            ("fifo 644 1.0 p\n", false),
            ("socket 644 1.0 s\n", false),
        ] {
            let found = found(lines, None).expect("an item");
            let now = Timestamp::from_unix(0, 0);
            assert_eq!(found.check(&now).is_ok(), is_copied, "{lines}");
        }
    }

    #[test]
    fn an_item_is_copied_when_its_embargo_is_over() {
        let sidecar = "text 644 1.0 .ibi ibi%20%7Bibip%208JMKD3MGP8W/34PGRBS%7D%0Aavailable%201970-01-02%0A\n";
        let found = found(sidecar, None).expect("an item");
        for (second, is_copied) in [(86_399, false), (86_400, true)] {
            let checked = found.check(&Timestamp::from_unix(second, 0));
            assert_eq!(checked.is_ok(), is_copied, "{second}");
        }
    }

    #[test]
    fn an_item_does_not_say_of_itself_that_it_is_withdrawn() {
        let sidecar = "text 644 1.0 .ibi ibi%20%7Bibip%208JMKD3MGP8W/34PGRBS%7D%0Awithdrawn%202026-01-01T00:00:00Z%0A\n";
        let found = found(sidecar, None).expect("an item");
        assert!(found.check(&Timestamp::from_unix(0, 0)).is_err());
    }

    #[test]
    fn a_file_with_two_names_is_fetched_once() {
        let lines = format!(
            "{SIDECAR_TEXT}\nfile 6755 1.5 a 1 v - 7\nfile 644 1.0 b 1 v - 7\nlink 777 1.0 l a\n"
        );
        let found = found(&lines, None).expect("an item");
        let files: Vec<_> = found
            .files()
            .map(|(at, entry, _)| (at, entry.path.clone()))
            .collect();
        let [(position, path)] = &files[..] else {
            panic!("{files:?}");
        };
        assert_eq!(path, b"a");
        assert!(found.contents(&Digests::new()).is_err(), "it has not come");
        let digests = Digests::from([(*position, digest_of(b"x"))]);
        let contents = found.contents(&digests).expect("contents");
        let kinds: Vec<_> = contents
            .entries
            .iter()
            .map(|it| (&it.path[..], &it.kind))
            .collect();
        assert_eq!(
            kinds[1],
            (&b"a"[..], &InventoryKind::File(digest_of(b"x"), 1))
        );
        assert_eq!(kinds[2], (&b"b"[..], &InventoryKind::Same(b"a".to_vec())));
        assert_eq!(kinds[3], (&b"l"[..], &InventoryKind::Link(b"a".to_vec())));
        assert_eq!(kinds.len(), 4, "without the sidecar");
        assert_eq!(
            u32::from(contents.entries[1].stat.mode),
            0o755,
            "it is nobody's set-user-ID program"
        );
    }
}
