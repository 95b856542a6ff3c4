//! The names directly below a level of an Archive, as a text that it publishes, so that a client can list the Archive
//! level by level, as its mount does.
//!
//! The text has pages, see [`super::entry`]. A page begins with `level 1` and an entry `of`, whose path is that of the
//! level as it is recorded: `.` for the root. Then it has an entry `level` or `prefix` for each name, or `item` with the
//! name alone. Names come in the order of their bytes in lower case, where that of a level ends with a slash; prefixes,
//! in upper case, come last. A name that cannot be below the level is refused.

use std::fmt;

use ibi::ibip::prefix_key;
use ibi::message;
use ibi::message::Message;
use ibi::pairs::{percent_decode, percent_encode};
use ibi::rep::component_key;

use crate::entry::{EntryLine, EntryStat, EntryText, LineError, PageReader, write_end};
use crate::tree_name::LevelPath;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/x-ibi-level";
/// The most names of one page.
pub const MOST_NAMES: usize = 4_096;

/// The longest accepted place, in bytes.
const LONGEST_PLACE: usize = 1024;

/// A kind of name below a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A further level of reps, or in the root a prefix of IBIps.
    Level(EntryStat),
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
    pub stat: EntryStat,
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

/// A page, and the order of its names.
struct Reader(LevelPage, ListOrder);

impl PageReader for Reader {
    const TEXT: EntryText = EntryText::Level;
    const FIRST: &str = "level 1";

    fn begin(line: &str) -> Option<Reader> {
        let line = EntryLine::parse(line)?;
        let is_head = line.kind == "of" && line.more.is_empty();
        let page = LevelPage {
            path: LevelPath::parse(str::from_utf8(&line.path).ok()?)?,
            stat: line.stat.without_set_ids(),
            names: Vec::new(),
            next: None,
        };
        is_head.then(|| Reader(page, ListOrder::default()))
    }

    fn add(&mut self, line: &str) -> Result<(), Message> {
        let Reader(page, order) = self;
        let name = read_name(&page.path, line);
        let name = name.ok_or_else(|| message!("it is no name of the level"))?;
        if !order.add(&page.path, &name) {
            return Err(message!("the names are not in order"));
        }
        if page.names.len() >= MOST_NAMES {
            return Err(message!("the page has too many names"));
        }
        page.names.push(name);
        Ok(())
    }

    fn can_go_on(&self, place: &[u8]) -> bool {
        !place.is_empty() && place.len() <= LONGEST_PLACE
    }
}

impl LevelPage {
    /// Parses a page.
    ///
    /// # Errors
    /// A line that is not valid, a name that cannot be below the level, or a page that was cut off.
    pub fn parse(text: &[u8]) -> Result<LevelPage, LineError> {
        let (Reader(page, _), next) = Reader::read(text)?;
        Ok(LevelPage { next, ..page })
    }
}

fn read_name(path: &LevelPath, line: &str) -> Option<LevelName> {
    if let Some(("item", name)) = line.split_once(' ')
        && !name.contains(' ')
    {
        let name = String::from_utf8(percent_decode(name)).ok()?;
        path.item_key(&name)?;
        let kind = NameKind::Item;
        return Some(LevelName { name, kind });
    }
    let line = EntryLine::parse(line).filter(|line| line.more.is_empty())?;
    let name = String::from_utf8(line.path).ok()?;
    let word = match path.below(&name)? {
        _ if path.has_items() => return None,
        LevelPath::Prefix(_) => "prefix",
        _ => "level",
    };
    let kind = NameKind::Level(line.stat.without_set_ids());
    (line.kind == word).then_some(LevelName { name, kind })
}

impl fmt::Display for LevelPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match &self.path {
            LevelPath::Root => ".".to_owned(),
            path => percent_encode(path.as_str().as_bytes()),
        };
        writeln!(f, "{}\nof {} {path}", Reader::FIRST, self.stat)?;
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
        write_end(f, self.next.as_deref())
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
        let stat = EntryStat {
            mode: 0o755,
            modified: (1, 0),
        };
        let order = |name: &str| LevelPath::Root.order(name, NameKind::Level(stat));
        let names = ["a.org-b", "a.org.b", "A.org", "b.org", "8JMKD3MGP8W"];
        assert!(names.windows(2).all(|two| order(two[0]) < order(two[1])));
    }
}
