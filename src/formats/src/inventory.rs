//! The contents of an item, as a text that an Archive publishes, so that a client can show all of the item's names
//! without a further request.
//!
//! The text has pages, see [`super::entry`]. A page begins with `inventory 1` and the item's names as the pair `ibi`. A
//! kind requires, of a file, its size, its version, and its recorded digest or `-`, which `,pieces` follows if the
//! digests of its pieces are recorded. The item's own directory is `.`; it comes first, then come the texts, and the
//! others follow in the order of their paths, where that of a directory ends with a slash. The next page begins after a
//! path.

use std::fmt;

use super::entry::{
    self, EntryLine, EntryText, LineError, PageReader, check_path, check_target, parse_size,
    write_end,
};
use super::fixity::Digest;
use super::item::Names;
use ibi::message;
use ibi::message::Message;
use ibi::pairs::{Pairs, percent_decode, percent_encode};

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/x-ibi-inventory";
/// The length of the pieces of a file whose digests an Archive tells, in bytes.
pub const CHUNK: u64 = 4 << 20;
/// The most entries of one page.
pub const MOST_ENTRIES: usize = 20_000;

/// The mark after the digest of a file whose pieces have recorded digests.
const PIECES: &str = ",pieces";

/// A kind of entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory; the item's own has the empty path.
    Directory,
    /// A regular file that is read at the URL of its path.
    File(FileEntry),
    /// A regular file with this content, which is not read at a URL: the sidecar, or the metadata text.
    Text(Vec<u8>),
    /// A symbolic link, and its target.
    Link(Vec<u8>),
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
}

/// The known attributes of a regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its size in bytes.
    pub size: u64,
    /// Its entity tag, without the quotes (RFC 9110, section 8.8.3).
    pub version: String,
    /// Its recorded digest.
    pub digest: Option<Digest>,
    /// Whether the digests of its pieces are recorded, too.
    pub has_pieces: bool,
    /// The same for all names of one file. None for a file with one name.
    pub identity: Option<u64>,
}

/// One entry of an item. It has no extended attributes.
pub type Entry = entry::Entry<EntryKind>;

/// A page of an inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The item's names.
    pub names: Names,
    /// Entries, in the order of their paths.
    pub entries: Vec<Entry>,
    /// The path after which the next page begins. That of a directory ends with a slash.
    pub next: Option<Vec<u8>>,
}

impl Entry {
    /// The path by which entries are ordered: that of a directory ends with a slash.
    fn place(&self) -> Vec<u8> {
        let mut place = self.path.clone();
        if self.kind == EntryKind::Directory && !place.is_empty() {
            place.push(b'/');
        }
        place
    }

    fn parse(line: &str) -> Option<Entry> {
        let line = EntryLine::parse(line)?;
        let kind = match (line.kind, &line.more[..]) {
            ("directory", []) => EntryKind::Directory,
            ("file", more) => EntryKind::File(FileEntry::parse(more)?),
            ("text", [text]) => EntryKind::Text(percent_decode(text)),
            ("link", [target]) => EntryKind::Link(percent_decode(target)),
            ("fifo", []) => EntryKind::Fifo,
            ("socket", []) => EntryKind::Socket,
            _ => return None,
        };
        Some(Entry {
            path: line.path,
            kind,
            stat: line.stat.without_set_ids(),
            attributes: Vec::new(),
        })
    }

    fn check(&self) -> Result<(), Message> {
        let path = &self.path;
        if path.is_empty() {
            return match self.kind {
                EntryKind::Directory => Ok(()),
                _ => Err(message!("the item is not a directory")),
            };
        }
        check_path(path)?;
        match &self.kind {
            EntryKind::Link(target) => check_target(target),
            EntryKind::Text(_) if path.contains(&b'/') => {
                Err(message!("a text is not in a directory of the item"))
            }
            _ => Ok(()),
        }
    }
}

impl FileEntry {
    fn parse(words: &[&str]) -> Option<FileEntry> {
        let [size, version, digest, more @ ..] = words else {
            return None;
        };
        let (digest, has_pieces) = match digest.strip_suffix(PIECES) {
            Some(digest) => (digest, true),
            None => (*digest, false),
        };
        let digest = match digest {
            "-" if !has_pieces => None,
            digest => Some(Digest::parse(digest.as_bytes())?),
        };
        let identity = match more {
            [] => None,
            [identity] => Some(identity.parse().ok()?),
            _ => return None,
        };
        let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_version = !version.is_empty() && version.bytes().all(is_tag);
        is_version.then_some(FileEntry {
            size: parse_size(size)?,
            version: (*version).to_owned(),
            digest,
            has_pieces,
            identity,
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.kind {
            EntryKind::Directory => "directory",
            EntryKind::File(_) => "file",
            EntryKind::Text(_) => "text",
            EntryKind::Link(_) => "link",
            EntryKind::Fifo => "fifo",
            EntryKind::Socket => "socket",
        };
        let path = match self.path.as_slice() {
            [] => ".".to_owned(),
            path => percent_encode(path),
        };
        write!(f, "{word} {} {path}", self.stat)?;
        match &self.kind {
            EntryKind::File(file) => {
                write!(f, " {} {} ", file.size, file.version)?;
                match &file.digest {
                    Some(digest) if file.has_pieces => write!(f, "{digest}{PIECES}")?,
                    Some(digest) => digest.fmt(f)?,
                    None => f.write_str("-")?,
                }
                match file.identity {
                    Some(identity) => write!(f, " {identity}"),
                    None => Ok(()),
                }
            }
            EntryKind::Text(bytes) | EntryKind::Link(bytes) => {
                write!(f, " {}", percent_encode(bytes))
            }
            EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket => Ok(()),
        }
    }
}

/// A page, and the place of its last entry that is not a text.
struct Reader(Page, Vec<u8>);

impl PageReader for Reader {
    const TEXT: EntryText = EntryText::Inventory;
    const FIRST: &str = "inventory 1";

    fn begin(line: &str) -> Option<Reader> {
        let pairs = Pairs::parse(line.as_bytes()).ok()?;
        let page = Page {
            names: Names::from_value(pairs.get("ibi")?).ok()?,
            entries: Vec::new(),
            next: None,
        };
        Some(Reader(page, Vec::new()))
    }

    fn add(&mut self, line: &str) -> Result<(), Message> {
        let Reader(page, last) = self;
        let entry = Entry::parse(line).ok_or_else(|| message!("it is not an entry"))?;
        entry.check()?;
        let (is_text, place) = (matches!(entry.kind, EntryKind::Text(_)), entry.place());
        let is_after = if is_text {
            last.is_empty()
        } else {
            place > *last
        };
        if !page.entries.is_empty() && !is_after {
            return Err(message!("the entries are not in order"));
        }
        if page.entries.len() >= MOST_ENTRIES {
            return Err(message!("the page has too many entries"));
        }
        if !is_text {
            *last = place;
        }
        page.entries.push(entry);
        Ok(())
    }

    // A page after itself would be read without end.
    fn can_go_on(&self, place: &[u8]) -> bool {
        place == self.1
    }
}

impl Page {
    /// Parses a page.
    ///
    /// # Errors
    /// A line that is not valid, entries that are not in order, or a page that was cut off.
    pub fn parse(text: &[u8]) -> Result<Page, LineError> {
        let (Reader(page, _), next) = Reader::read(text)?;
        Ok(Page { next, ..page })
    }

    /// The path after which the page behind these entries begins.
    #[must_use]
    pub fn continued_after(entries: &[Entry]) -> Option<Vec<u8>> {
        let last = entries.last()?;
        Some(match last.kind {
            EntryKind::Text(_) => Vec::new(),
            _ => last.place(),
        })
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\nibi {}", Reader::FIRST, self.names)?;
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        write_end(f, self.next.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ibi::Ibi;

    const PAGE: &str = "inventory 1\n\
        ibi {ibip 8JMKD3MGP8W/34PGRBS}\n\
        directory 755 1700000000.000000001 .\n\
        text 644 1.000000000 .ibi ibi%20x%0A\n\
        directory 1755 1.500000000 doc\n\
        file 644 -1.000000000 doc/a%20b 12 1f-2-3 -\n\
        file 644 1.000000000 doc/c 0 1 \
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 77\n\
        file 644 1.000000000 doc/d 9000000 1 \
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855,pieces\n\
        link 777 1.000000000 doc/l ../../%FF\n\
        fifo 600 1.000000000 doc/p\n\
        socket 600 1.000000000 doc/s\n";

    #[test]
    fn a_page_is_read_as_it_is_written() {
        for end in ["end\n", "more doc/s\n"] {
            let text = format!("{PAGE}{end}");
            let page = Page::parse(text.as_bytes()).expect("a page");
            assert_eq!(page.to_string(), text);
            assert_eq!(page.entries[3].path, b"doc/a b");
            assert_eq!(page.next.is_some(), end.starts_with("more"));
            assert_eq!(
                Page::continued_after(&page.entries).expect("entries"),
                b"doc/s"
            );
        }
    }

    #[test]
    fn no_entry_has_set_id_bits() {
        let head = "inventory 1\nibi {ibip 8JMKD3MGP8W/34PGRBS}\n";
        let text = format!("{head}directory 7755 1.0 doc\nfile 6755 1.0 doc/x 0 1 -\nend\n");
        let page = Page::parse(text.as_bytes()).expect("a page");
        let modes = page.entries.iter().map(|entry| entry.stat.mode);
        assert_eq!(modes.collect::<Vec<_>>(), [0o1755, 0o755]);
    }

    #[test]
    fn what_leads_out_or_was_cut_off_is_refused() {
        let head = "inventory 1\nibi {ibip 8JMKD3MGP8W/34PGRBS}\n";
        for bad in [
            "",
            "directory 755 1.0 ..\nend\n",
            "directory 755 1.0 a/../b\nend\n",
            "directory 755 1.0 a//b\nend\n",
            "directory 755 1.0 /etc\nend\n",
            "directory 755 1.0 a%00b\nend\n",
            "file 644 1.0 . 1 2 -\nend\n",
            "file 644 1.0 b 1 2 -\nfile 644 1.0 a 1 2 -\nend\n",
            "file 644 1.0 b 1 2 -\nfile 644 1.0 b 1 2 -\nend\n",
            "file 644 1.0 b 99999999999999999999 2 -\nend\n",
            "file 644 1.0 b 18446744073709551615 2 -\nend\n",
            "file 644 1.0 b 1 \"2 -\nend\n",
            "file 644 1.0 b 1 2 123\nend\n",
            "file 644 1.0 b 1 2 -,pieces\nend\n",
            "file 644 1.0 b 1 2 -\nmore a\n",
            "device 644 1.0 b\nend\n",
            "fifo 777777 1.0 b\nend\n",
            "fifo 777 1.1000000000 b\nend\n",
            "link 777 1.0 b %00\nend\n",
            "link 777 1.0 b \nend\n",
        ] {
            let parsed = Page::parse(format!("{head}{bad}").as_bytes());
            assert!(parsed.is_err(), "{bad}: {parsed:?}");
        }
        for bad in [
            "",
            "inventory 2\nend\n",
            "inventory 1\nibi {}\nend\n",
            "<!DOCTYPE html>",
        ] {
            assert!(Page::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let long = format!("{head}fifo 644 1.0 {}\nend\n", "a".repeat(256));
        assert!(Page::parse(long.as_bytes()).is_err());
        assert!(Page::parse(format!("{head}end\n").as_bytes()).is_ok());
    }

    #[test]
    fn the_names_are_those_of_the_item() {
        let names = Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp"));
        let page = Page::parse(format!("{PAGE}end\n").as_bytes());
        assert_eq!(page.expect("a page").names, names);
    }
}
