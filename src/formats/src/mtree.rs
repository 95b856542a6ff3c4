//! The metadata of an item's files as a text in the format of mtree(5): kind, permission bits, owner,
//! modification time, target of a symbolic link, extended attributes.
//!
//! Bags and OCFL objects have only files and digests, and names in UTF-8. This text, which is part of the
//! package, has the rest: `contents` is the path of a file's content in the package, and the path in front is
//! that in the item, with any bytes. bsdtar(1) can read it, except for the extended attributes, for which
//! mtree(5) has no keyword. No input or output.

use crate::entry::{
    Attribute, EntryStat, EntryText, LineError, parse_mode, parse_time, stays_below,
};
use crate::fixity::abridged;
use ibi::message;
use ibi::message::Message;

/// The first line, which identifies the format.
const SIGNATURE: &str = "#mtree";

/// An entry of an item, or the item's own directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MtreeEntry {
    /// The path below the item, empty for the item's own directory.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: MtreeKind,
    /// Permission bits, including set-user-ID, set-group-ID and sticky, and the modification time.
    pub stat: EntryStat,
    /// User number of the owner.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Files with the same number are one file with several names.
    pub inode: Option<u64>,
    /// Extended attributes, including access control lists.
    pub attributes: Vec<Attribute>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MtreeKind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// The path of its content in the package.
        contents: Vec<u8>,
        /// Its length in bytes.
        size: u64,
    },
    /// A symbolic link, and its target.
    Link(Vec<u8>),
    /// A FIFO.
    Fifo,
}

/// The text of the entries, one line each, in their order, after a comment of one line.
#[must_use]
pub fn text(comment: &str, entries: &[MtreeEntry]) -> Vec<u8> {
    let mut text = format!("{SIGNATURE}\n# {comment}\n");
    for entry in entries {
        text.push_str(&line(entry));
    }
    text.into_bytes()
}

fn line(entry: &MtreeEntry) -> String {
    let path = match entry.path.as_slice() {
        [] => ".".to_owned(),
        path => format!("./{}", encode(path)),
    };
    let kind = match &entry.kind {
        MtreeKind::Directory => "type=dir".to_owned(),
        MtreeKind::File { contents, size } => {
            format!("type=file size={size} contents={}", encode(contents))
        }
        MtreeKind::Link(target) => format!("type=link link={}", encode(target)),
        MtreeKind::Fifo => "type=fifo".to_owned(),
    };
    let EntryStat { mode, modified } = entry.stat;
    let mut line = format!(
        "{path} {kind} mode={mode:04o} uid={} gid={} time={}.{:09}",
        entry.uid, entry.gid, modified.0, modified.1
    );
    if let Some(inode) = entry.inode {
        line.push_str(&format!(" inode={inode}"));
    }
    for (name, value) in &entry.attributes {
        line.push_str(&format!(" xattr.{}={}", encode(name), encode(value)));
    }
    line.push('\n');
    line
}

/// The comments, without the comment character.
pub fn comments(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"# "))
}

/// Parses the entries that [`text`] writes.
///
/// # Errors
/// The first invalid line: a path that is not below the item, a repeated path, a keyword that is missing
/// or has an invalid value. Unknown keywords are ignored.
pub fn parse(bytes: &[u8]) -> Result<Vec<MtreeEntry>, LineError> {
    let mut entries: Vec<MtreeEntry> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let fault = |what: Message| LineError {
            text: EntryText::Mtree,
            line: number + 1,
            what,
        };
        let text = std::str::from_utf8(line).map_err(|_| fault(message!("it is not ASCII")))?;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let entry = read(text).map_err(fault)?;
        if !known.insert(entry.path.clone()) {
            let shown = abridged(&entry.path);
            return Err(fault(message!("'{shown}' occurs twice", shown)));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read(text: &str) -> Result<MtreeEntry, Message> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let path = below_item(&decode(words.next().unwrap_or_default())?)?;
    let mut given = std::collections::BTreeMap::new();
    let mut attributes = Vec::new();
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name.strip_prefix("xattr.") {
            Some(name) => attributes.push((decode(name)?, decode(value)?)),
            None => {
                given.insert(name, value);
            }
        }
    }
    let value = |name: &str| {
        let value = given.get(name).copied();
        value.ok_or_else(|| message!("it has no {name}=", name))
    };
    let number = |name: &str| {
        let text = value(name)?;
        let number = text.parse::<u64>();
        number.map_err(|_| {
            message!(
                "{name}={text} is not a number",
                name,
                text = abridged(text.as_bytes())
            )
        })
    };
    let kind = match value("type")? {
        "dir" => MtreeKind::Directory,
        "file" => MtreeKind::File {
            contents: decode(value("contents")?)?,
            size: number("size")?,
        },
        "link" => MtreeKind::Link(decode(value("link")?)?),
        "fifo" => MtreeKind::Fifo,
        other => {
            return Err(message!(
                "type={other} is not one of dir, file, link and fifo",
                other = abridged(other.as_bytes())
            ));
        }
    };
    let owner = |name: &str| {
        if given.contains_key(name) {
            u32::try_from(number(name)?).map_err(|_| message!("{name} is too large", name))
        } else {
            Ok(0)
        }
    };
    let (mode, time) = (value("mode")?, value("time")?);
    let modified = parse_time(time).ok_or_else(|| {
        message!(
            "time={text} is not of the shape seconds.nanoseconds",
            text = abridged(time.as_bytes())
        )
    })?;
    let mode = parse_mode(mode).ok_or_else(|| {
        message!(
            "mode={text} are not permission bits in octal digits",
            text = abridged(mode.as_bytes())
        )
    })?;
    Ok(MtreeEntry {
        path,
        kind,
        stat: EntryStat { mode, modified },
        uid: owner("uid")?,
        gid: owner("gid")?,
        inode: given
            .contains_key("inode")
            .then(|| number("inode"))
            .transpose()?,
        attributes,
    })
}

/// A path in the item without the leading `.`. The text is not trusted.
fn below_item(path: &[u8]) -> Result<Vec<u8>, Message> {
    let path = match path {
        b"." => return Ok(Vec::new()),
        path => path.strip_prefix(b"./").unwrap_or_default(),
    };
    if stays_below(path) {
        Ok(path.to_owned())
    } else {
        Err(message!("it begins with no path of the shape ./a/b"))
    }
}

/// Letters, digits and some punctuation unchanged, every other byte as `\ooo`.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(*byte)),
            b'.' | b'/' | b'_' | b'-' | b'+' | b'@' | b',' | b':' | b'~' | b'%' => {
                text.push(char::from(*byte));
            }
            byte => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text
}

fn decode(text: &str) -> Result<Vec<u8>, Message> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            decoded.push(*first);
            continue;
        }
        let digits = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        decoded.push(byte.ok_or_else(|| message!("a \\ is not followed by three octal digits"))?);
        rest = &after[3..];
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &[u8], kind: MtreeKind) -> MtreeEntry {
        MtreeEntry {
            path: path.to_owned(),
            kind,
            stat: EntryStat {
                mode: 0o4755,
                modified: (-1, 5),
            },
            uid: 1000,
            gid: 0,
            inode: None,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let all: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
        let file = MtreeKind::File {
            contents: b"data/doc/a =3D".to_vec(),
            size: u64::MAX,
        };
        let entries = [
            entry(b"", MtreeKind::Directory),
            entry(b"doc", MtreeKind::Directory),
            MtreeEntry {
                inode: Some(3),
                attributes: vec![
                    (b"user.a=b \xff".to_vec(), all.clone()),
                    (b"user.c".to_vec(), vec![]),
                ],
                ..entry(&[b"doc/", &all[..]].concat(), file)
            },
            entry(b"doc/l", MtreeKind::Link(b"../../x\n\xe7".to_vec())),
            entry(b"f", MtreeKind::Fifo),
        ];
        let text = text("ibi {rep a}", &entries);
        assert!(text.is_ascii());
        assert_eq!(comments(&text).collect::<Vec<_>>(), [b"ibi {rep a}"]);
        assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 7);
        assert_eq!(parse(&text), Ok(entries.to_vec()));
        for cut in 0..text.len() {
            drop(parse(&text[..cut]));
        }
    }

    #[test]
    fn it_is_what_mtree_5_has() {
        let file = MtreeKind::File {
            contents: b"data/doc/relat=F3rio.pdf".to_vec(),
            size: 7,
        };
        assert_eq!(
            text(
                "ibi {rep a}",
                &[
                    entry(b"", MtreeKind::Directory),
                    entry(b"doc/relat\xf3rio.pdf", file)
                ]
            ),
            b"#mtree\n# ibi {rep a}\n\
              . type=dir mode=4755 uid=1000 gid=0 time=-1.000000005\n\
              ./doc/relat\\363rio.pdf type=file size=7 contents=data/doc/relat\\075F3rio.pdf \
              mode=4755 uid=1000 gid=0 time=-1.000000005\n"
        );
    }

    #[track_caller]
    fn bad(line: &str, sentence: &str) {
        let error = parse(format!("#mtree\n{line}\n").as_bytes()).expect_err(line);
        assert_eq!(error.to_string(), format!("line 2: {sentence}"));
    }

    #[test]
    fn what_is_not_understood() {
        const SHAPE: &str = "it begins with no path of the shape ./a/b";
        for path in [
            "../a",
            "./../a",
            "./a/../b",
            "/etc/passwd",
            "./a//b",
            "./a/",
            "./a\\000",
            "./",
        ] {
            bad(&format!("{path} type=dir mode=755 time=0.0"), SHAPE);
        }
        bad("./a mode=755 time=0.0", "it has no type=");
        bad(
            "./a type=block mode=755 time=0.0",
            "type=block is not one of dir, file, link and fifo",
        );
        bad("./a type=file mode=755 time=0.0", "it has no contents=");
        bad(
            "./a type=dir mode=77777 time=0.0",
            "mode=77777 are not permission bits in octal digits",
        );
        bad(
            "./a type=dir mode=755 time=x",
            "time=x is not of the shape seconds.nanoseconds",
        );
        bad(
            "./a\\9 type=dir mode=755 time=0.0",
            "a \\ is not followed by three octal digits",
        );
        bad(
            "./a\\é type=dir",
            "a \\ is not followed by three octal digits",
        );
        let twice = "./a type=dir mode=755 time=0.0\n".repeat(2);
        let error = parse(twice.as_bytes()).expect_err("twice");
        assert_eq!(error.to_string(), "line 2: 'a' occurs twice");
    }
}
