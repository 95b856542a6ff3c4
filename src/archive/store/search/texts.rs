//! The words of descriptions and of files, for searches of both.
//!
//! A database of its own, beside that of the descriptions, since reading files takes long. The text of each file is kept,
//! so that a file is read once, however often its item changes. It knows files by their paths and what changes with them.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rustix::fs::AtFlags;

use super::{SearchIndex, StoreError, mark, query};
use crate::archive::store::ItemId;
use crate::formats::search::SearchField;
use crate::sql::engine::{Value, params};

/// As in the relation store: one entry for each version, and no entry is ever changed.
const MIGRATIONS: &[&str] = &["
    -- The words of each item, in the columns of SearchField. The texts themselves are not kept.
    CREATE VIRTUAL TABLE words USING fts5 (
        title, creator, subject, abstract, year, type, language, collection, other, text,
        content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );

    -- What was recorded of an item: a digest of its description and of the versions of its files.
    CREATE TABLE entry (item INTEGER PRIMARY KEY, mark BLOB NOT NULL) STRICT;

    -- Always empty: items are listed by the other index.
    CREATE TABLE value (field TEXT, text TEXT, item INTEGER) STRICT;

    -- The text of each file that was read, compressed; empty if it has none.
    CREATE TABLE file (
        item    INTEGER NOT NULL,
        path    BLOB NOT NULL,
        version TEXT NOT NULL,
        text    BLOB NOT NULL,
        PRIMARY KEY (item, path)
    ) STRICT, WITHOUT ROWID;

    -- Items of which a file may have changed.
    CREATE TABLE stale (item INTEGER PRIMARY KEY) STRICT;

    -- Up to which item all are recorded as they were at a change of the index, or later; NULL when all are.
    CREATE TABLE progress (
        one    INTEGER PRIMARY KEY CHECK (one = 1),
        epoch  INTEGER NOT NULL,
        number INTEGER NOT NULL,
        item   INTEGER
    ) STRICT;
"];

/// A file, and what differs as soon as its content may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Its path in the item.
    pub path: Vec<u8>,
    /// See above.
    pub version: String,
}

/// A file whose text is known. The text is empty if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The file.
    pub file: FileVersion,
    /// Its text.
    pub text: String,
}

/// The open database.
#[derive(Debug)]
pub struct TextIndex {
    index: SearchIndex,
}

impl TextIndex {
    /// Opens the database of this name in a store's directory, and creates it if necessary.
    pub fn open(directory: BorrowedFd<'_>, file: &str) -> Result<TextIndex, StoreError> {
        let index = SearchIndex::open_with(directory, file, MIGRATIONS, &SearchField::ALL)?;
        Ok(TextIndex { index })
    }

    /// Opens the database of this name, if it exists.
    pub fn open_existing(
        directory: BorrowedFd<'_>,
        file: &str,
    ) -> Result<Option<TextIndex>, StoreError> {
        match rustix::fs::statat(directory, file, AtFlags::SYMLINK_NOFOLLOW) {
            Err(_) => Ok(None),
            Ok(_) => TextIndex::open(directory, file).map(Some),
        }
    }

    /// Opens a database that ends with this process.
    pub fn temporary() -> Result<TextIndex, StoreError> {
        let index = SearchIndex::temporary_with(MIGRATIONS, &SearchField::ALL)?;
        Ok(TextIndex { index })
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &SearchIndex {
        &self.index
    }

    /// The digest of what is recorded of an item.
    pub fn mark(&self, item: ItemId) -> Result<Option<Vec<u8>>, StoreError> {
        self.index.run(|connection| mark(connection, item.0))
    }

    /// The files of an item that were read, in the order of their paths.
    pub fn files(&self, item: ItemId) -> Result<Vec<FileVersion>, StoreError> {
        let sql = "SELECT path, version FROM file WHERE item = ?1 ORDER BY path";
        self.index.run(|connection| {
            connection.each(sql, params![item.0], |row| {
                Ok(FileVersion {
                    path: row.get(0)?,
                    version: row.get(1)?,
                })
            })
        })
    }

    /// The text of a file of an item, of at most so many bytes. None if it was not read.
    pub fn text(
        &self,
        item: ItemId,
        path: &[u8],
        longest: usize,
    ) -> Result<Option<String>, StoreError> {
        let sql = "SELECT text FROM file WHERE item = ?1 AND path = ?2";
        let values = params![item.0, path];
        let found: Option<Vec<u8>> = self
            .index
            .run(|connection| connection.first(sql, values, |row| row.get(0)))?;
        Ok(found.map(|bytes| expanded(&bytes, longest)))
    }

    /// Records the text of a file.
    pub fn put_file(&self, item: ItemId, file: &FileText) -> Result<(), StoreError> {
        let text = compressed(&file.text);
        let file = &file.file;
        self.execute(
            "INSERT OR REPLACE INTO file VALUES (?1, ?2, ?3, ?4)",
            params![item.0, &*file.path, &file.version, &*text],
        )
    }

    /// Forgets the files of an item but these.
    pub fn keep_files(&self, item: ItemId, kept: &[FileVersion]) -> Result<(), StoreError> {
        let known = self.files(item)?;
        let gone: Vec<&FileVersion> = known.iter().filter(|it| !kept.contains(it)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.index.transact(|transaction| {
            for file in &gone {
                let sql = "DELETE FROM file WHERE item = ?1 AND path = ?2";
                transaction.execute(sql, params![item.0, &*file.path])?;
            }
            Ok(())
        })
    }

    /// Records items of which a file may have changed.
    pub fn note_stale(&self, items: &[ItemId]) -> Result<(), StoreError> {
        if items.is_empty() {
            return Ok(());
        }
        self.index.transact(|transaction| {
            for item in items {
                let sql = "INSERT OR IGNORE INTO stale VALUES (?1)";
                transaction.execute(sql, params![item.0])?;
            }
            Ok(())
        })
    }

    /// The items of which a file may have changed, and that are not taken yet.
    pub fn stale(&self, most: usize) -> Result<Vec<ItemId>, StoreError> {
        let sql = "SELECT item FROM stale ORDER BY item LIMIT ?1";
        self.index.run(|connection| {
            connection.each(sql, params![query::limit(most)], |row| {
                Ok(ItemId(row.get(0)?))
            })
        })
    }

    /// Records that the files of an item are about to be looked at.
    pub fn take_stale(&self, item: ItemId) -> Result<(), StoreError> {
        self.execute("DELETE FROM stale WHERE item = ?1", params![item.0])
    }

    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<(), StoreError> {
        self.index.run(|connection| connection.execute(sql, values))
    }
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(text.as_bytes());
    // Writing to memory does not fail.
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}

fn expanded(bytes: &[u8], longest: usize) -> String {
    let mut text = Vec::new();
    let limit = u64::try_from(longest).unwrap_or(u64::MAX);
    // A damaged text is not found.
    let _ = ZlibDecoder::new(bytes).take(limit).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept() {
        let index = TextIndex::temporary().expect("a database");
        let file = |path: &[u8], version: &str| FileVersion {
            path: path.to_vec(),
            version: version.to_owned(),
        };
        let (one, two) = (file(b"doc/a", "1"), file(b"doc/b\xff", "1"));
        for file in [&one, &two] {
            let text = FileText {
                file: file.clone(),
                text: "Maré".repeat(100),
            };
            index.put_file(ItemId(7), &text).expect("kept");
        }
        assert_eq!(index.files(ItemId(7)).expect("files"), [one.clone(), two]);
        let text = index.text(ItemId(7), b"doc/b\xff", 8).expect("a text");
        assert_eq!(text.as_deref(), Some("MaréMar"));
        let changed = file(b"doc/b\xff", "2");
        index
            .keep_files(ItemId(7), &[one.clone(), changed])
            .expect("kept");
        assert_eq!(index.files(ItemId(7)).expect("files"), [one]);
        index
            .note_stale(&[ItemId(3), ItemId(2), ItemId(3)])
            .expect("noted");
        assert_eq!(index.stale(9).expect("items"), [ItemId(2), ItemId(3)]);
        index.take_stale(ItemId(2)).expect("taken");
        assert_eq!(index.stale(9).expect("items"), [ItemId(3)]);
    }
}
