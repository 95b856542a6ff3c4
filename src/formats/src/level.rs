//! The names directly below a level of an Archive, as a text that it publishes, so that a client can list the Archive
//! level by level, as its mount does.
//!
//! The text is ASCII, in pages. A page begins with `level 1` and a line `of` with the permission bits in octal, the time
//! of the last change in seconds and nanoseconds, and the path of the level as it is recorded: `.` for the root. Then it
//! has a line for each name: `level` or `prefix` with the same three words, or `item` with the name alone. Bytes are
//! percent-encoded. Names come in the order of their bytes in lower case, where that of a level ends with a slash;
//! prefixes, in upper case, come last. The last line is `end`, or `more` and the place at which the next page begins. A
//! text without it was cut off.
//!
//! The text is not trusted: a name that cannot be below the level is refused.

use std::fmt;

use ibi::ibip::prefix_key;
use ibi::message::{Localize, Message};
use ibi::pairs::{percent_decode, percent_encode};
use ibi::rep::component_key;
use ibi::{display_message, message};

use crate::tree_name::LevelPath;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/x-ibi-level";
/// The most names of one page.
pub const MOST_NAMES: usize = 4_096;

/// The first line: the name of the format, and its version.
const FIRST: &str = "level 1";
/// The longest accepted place, in bytes.
const LONGEST_PLACE: usize = 1024;

/// The known attributes of a directory above items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelStat {
    /// Permission bits, as `chmod` has them.
    pub mode: u16,
    /// Time of the last change: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
}

/// A kind of name below a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A further level of reps, or in the root a prefix of IBIps.
    Level(LevelStat),
    /// An item.
    Item,
}

/// A name below a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelName {
    /// One component.
    pub name: String,
    /// Its kind.
    pub kind: NameKind,
}

/// A page of what is below a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelPage {
    /// The level, as it is recorded.
    pub path: LevelPath,
    /// Its attributes.
    pub stat: LevelStat,
    /// The names.
    pub names: Vec<LevelName>,
    /// The beginning of the next page, as the Archive understands it.
    pub next: Option<Vec<u8>>,
}

/// The last name of a list, to which further names are added in order.
#[derive(Clone, Debug, Default)]
pub struct ListOrder(String);

impl ListOrder {
    /// Whether a name below a level comes after all that were added, which is then noted.
    pub fn add(&mut self, path: &LevelPath, name: &LevelName) -> bool {
        match path.order(&name.name, name.kind) {
            Some(order) if order > self.0 => {
                self.0 = order;
                true
            }
            _ => false,
        }
    }
}

/// An error in a page, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError {
    line: usize,
    what: Message,
}

impl Localize for LevelError {
    fn message(&self) -> Message {
        message!(
            "line {line} of the level: {what}",
            line = self.line,
            what = self.what
        )
    }
}

display_message!(LevelError);

impl std::error::Error for LevelError {}

impl LevelPath {
    /// The place of a name below this level in its list, the same for all spellings. None if nothing can have it.
    #[must_use]
    pub fn order(&self, name: &str, kind: NameKind) -> Option<String> {
        match kind {
            NameKind::Level(_) => match self.below(name)? {
                // After all reps.
                LevelPath::Prefix(prefix) => Some(format!("~{}/", prefix_key(&prefix))),
                _ => Some(format!("{}/", component_key(name))),
            },
            NameKind::Item => self.item_key(name),
        }
    }
}

impl LevelStat {
    fn parse(mode: &str, time: &str) -> Option<LevelStat> {
        let mode = u16::from_str_radix(mode, 8).ok()?;
        let (seconds, nanoseconds) = time.split_once('.')?;
        let modified = (seconds.parse().ok()?, nanoseconds.parse().ok()?);
        // As of entries of an item: no set-user-ID and set-group-ID.
        let is_good = mode <= 0o7777 && modified.1 < 1_000_000_000;
        is_good.then_some(LevelStat {
            mode: mode & 0o1777,
            modified,
        })
    }
}

impl fmt::Display for LevelStat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = self.modified;
        write!(f, "{:o} {seconds}.{nanoseconds:09}", self.mode)
    }
}

fn text_of(word: &str) -> Option<String> {
    String::from_utf8(percent_decode(word)).ok()
}

impl LevelPage {
    /// Parses a page.
    ///
    /// # Errors
    /// A line that is not valid, a name that cannot be below the level, or a page that was cut off.
    pub fn parse(text: &[u8]) -> Result<LevelPage, LevelError> {
        let fault = |line, what| LevelError { line, what };
        let text = str::from_utf8(text).map_err(|_| fault(1, message!("it is not text")))?;
        let mut lines = text.lines().zip(1..);
        if lines.next().map(|(line, _)| line) != Some(FIRST) {
            return Err(fault(1, message!("it is no level of a known version")));
        }
        let head = lines.next().and_then(|(line, _)| read_head(line));
        let (path, stat) = head.ok_or_else(|| fault(2, message!("the level is not named")))?;
        let (mut names, mut order) = (Vec::new(), ListOrder::default());
        for (line, number) in lines {
            let next = match line.split_once(' ') {
                None if line == "end" => Some(None),
                Some(("more", place)) => Some(Some(percent_decode(place))),
                _ => None,
            };
            if let Some(next) = next {
                let is_place = |place: &Vec<u8>| !place.is_empty() && place.len() <= LONGEST_PLACE;
                if next.as_ref().is_some_and(|next| !is_place(next)) {
                    return Err(fault(number, message!("the next page begins elsewhere")));
                }
                return Ok(LevelPage {
                    path,
                    stat,
                    names,
                    next,
                });
            }
            let name = read_name(&path, line);
            let name = name.ok_or_else(|| fault(number, message!("it is no name of the level")))?;
            if !order.add(&path, &name) {
                return Err(fault(number, message!("the names are not in order")));
            }
            if names.len() >= MOST_NAMES {
                return Err(fault(number, message!("the page has too many names")));
            }
            names.push(name);
        }
        Err(fault(0, message!("the end is missing")))
    }
}

fn read_head(line: &str) -> Option<(LevelPath, LevelStat)> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["of", mode, time, path] = words[..] else {
        return None;
    };
    let path = match path {
        "." => String::new(),
        path => text_of(path)?,
    };
    Some((LevelPath::parse(&path)?, LevelStat::parse(mode, time)?))
}

fn read_name(path: &LevelPath, line: &str) -> Option<LevelName> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        [word @ ("level" | "prefix"), mode, time, name] if !path.has_items() => {
            let name = text_of(name)?;
            let is_prefix = matches!(path.below(&name)?, LevelPath::Prefix(_));
            let stat = LevelStat::parse(mode, time)?;
            (is_prefix == (word == "prefix")).then_some(LevelName {
                name,
                kind: NameKind::Level(stat),
            })
        }
        ["item", name] => {
            let (name, kind) = (text_of(name)?, NameKind::Item);
            path.item_key(&name)?;
            Some(LevelName { name, kind })
        }
        _ => None,
    }
}

impl fmt::Display for LevelPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match &self.path {
            LevelPath::Root => ".".to_owned(),
            path => percent_encode(path.as_str().as_bytes()),
        };
        writeln!(f, "{FIRST}\nof {} {path}", self.stat)?;
        for LevelName { name, kind } in &self.names {
            let word = match self.path.below(name) {
                Some(LevelPath::Prefix(_)) => "prefix",
                _ => "level",
            };
            let name = percent_encode(name.as_bytes());
            match kind {
                NameKind::Level(stat) => writeln!(f, "{word} {stat} {name}")?,
                NameKind::Item => writeln!(f, "item {name}")?,
            }
        }
        match &self.next {
            Some(place) => writeln!(f, "more {}", percent_encode(place)),
            None => writeln!(f, "end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "level 1\nof 755 1700000000.000000001 .\nlevel 1775 -1.000000000 localhost\n\
        level 755 1.000000000 sid.inpe.br\nprefix 755 1.000000000 8JMKD3MGP8W\n";
    const YEAR: &str = "level 1\nof 755 1.000000000 sid.inpe.br/mtc-m18@80/2009\n\
        item 02.16.17.46\nitem 07.21.14.43.05\n";
    const PREFIX: &str = "level 1\nof 755 1.000000000 8JMKD3MGP8W\nitem 34PGRBS\n";

    #[test]
    fn a_page_is_read_as_it_is_written() {
        for page in [ROOT, YEAR, PREFIX] {
            for end in ["end\n", "more la.org/%20x\n"] {
                let text = format!("{page}{end}");
                let page = LevelPage::parse(text.as_bytes()).expect("a page");
                assert_eq!(page.to_string(), text);
                assert_eq!(page.next.is_some(), end.starts_with("more"));
            }
        }
    }

    #[test]
    fn what_cannot_be_there_or_was_cut_off_is_refused() {
        let of = |path: &str| format!("level 1\nof 755 1.0 {path}\n");
        let parse = |text: &str| LevelPage::parse(text.as_bytes());
        for (path, bad) in [
            (".", "level 755 1.0 ..\nend\n"),
            (".", "level 755 1.0 .\nend\n"),
            (".", "level 755 1.0 \nend\n"),
            (".", "level 755 1.0 a.b%2Fc\nend\n"),
            (".", "level 755 1.0 a.b%00\nend\n"),
            (".", "level 755 1.0 a%20b\nend\n"),
            (".", "level 755 1.0 .Trash-0\nend\n"),
            (".", "level 755 1.0 8JMKD3MGP8W\nend\n"),
            (".", "prefix 755 1.0 a.b\nend\n"),
            (".", "level 99999 1.0 a.b\nend\n"),
            (".", "level 755 1.1000000000 a.b\nend\n"),
            (".", "level 755 1 a.b\nend\n"),
            (".", "level 755 1.0 b.a\nlevel 755 1.0 a.b\nend\n"),
            (".", "level 755 1.0 a.b\nlevel 755 1.0 A.b\nend\n"),
            (".", "prefix 755 1.0 8JMKD3MGP8W\nlevel 755 1.0 a.b\nend\n"),
            (".", "item a.b\nend\n"),
            (".", "file 755 1.0 a.b\nend\n"),
            (".", "level 755 1.0 a.b\n"),
            (".", "more \n"),
            ("a.b/c", "level 755 1.0 x\nend\n"),
            ("a.b/c", "item 2009\nend\n"),
            ("a.b/c/2009", "level 755 1.0 02.16.17.46\nend\n"),
            ("a.b/c/2009", "item 02.30.17.46\nend\n"),
            ("a.b/c/2009", "item 02.16.17.46%2Fx\nend\n"),
            ("8JMKD3MGP8W", "item 34PGRBS%21\nend\n"),
            ("8JMKD3MGP8W", "level 755 1.0 34PGRBS\nend\n"),
            ("a.b/c/2009/02.16.17.46", "end\n"),
            ("a..b", "end\n"),
            ("../x", "end\n"),
        ] {
            let text = format!("{}{bad}", of(path));
            assert!(parse(&text).is_err(), "{text}");
        }
        for bad in ["", "level 2\n", "level 1\nend\n", "<!DOCTYPE html>"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let names: String = (0..=MOST_NAMES)
            .map(|number| format!("level 755 1.0 a{number:05}.org\n"))
            .collect();
        assert!(parse(&format!("{}{names}end\n", of("."))).is_err());
        let place = "x".repeat(LONGEST_PLACE + 1);
        assert!(parse(&format!("{}more {place}\n", of("."))).is_err());
        assert!(parse(&format!("{}end\n", of("."))).is_ok());
    }

    #[test]
    fn spellings_of_a_path_have_one_key() {
        let key = |path: &str| LevelPath::parse(path).map(|path| path.key());
        assert_eq!(
            key("SID.inpe.br./MTC-m13@80"),
            key("sid.inpe.br/mtc-m13@80")
        );
        assert_eq!(key("8jmkd3mgp8w"), key("8JMKD3MGP8W"));
        assert_eq!(key(""), Some(String::new()));
        for none in ["a/b/2009/x", "a b", "a.b/c/x", "..", "a.b//2009"] {
            assert_eq!(key(none), None, "{none}");
        }
        let year = LevelPath::parse("a.b/c/2009").expect("a level");
        assert_eq!(
            year.item_key("02.16.17.46").as_deref(),
            Some("a.b/c/2009/02.16.17.46")
        );
        assert_eq!(year.item_key("02.16.17.46!"), None);
        let stat = LevelStat {
            mode: 0o755,
            modified: (1, 0),
        };
        let order = |name: &str| LevelPath::Root.order(name, NameKind::Level(stat));
        let names = ["a.org-b", "a.org.b", "A.org", "b.org", "8JMKD3MGP8W"];
        assert!(names.windows(2).all(|two| order(two[0]) < order(two[1])));
    }
}
