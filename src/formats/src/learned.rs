//! What the service for audits by other Archives leaves for a process that keeps the ledger: lines, a batch for each exchange.
//! A batch begins with when it was and what the other Archive says of itself. No clock, disk or key.

use crate::copies::{Gone, decoded};
use crate::fixity::Found;
use ibi::pairs::{percent_decode, percent_encode};
use ibi::{Ibi, Timestamp};

/// The first words of lines.
const FROM: &str = "from";
const SAME: &str = "same";
const OTHER: &str = "other";
const DAMAGED: &str = "damaged";
const GONE: &str = "gone";
/// The service of an Archive that has not said one.
const NONE: &str = "-";

/// The other Archive of an exchange, as it has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedFrom {
    /// When it was.
    pub at: Timestamp,
    /// The identifier of its service; None if it has said none.
    pub service: Option<String>,
    /// The place that it says it is in.
    pub place: Vec<String>,
}

/// A fact about an item that was learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learned {
    /// Whether the other Archive has the content that is here.
    Compared(Ibi, bool),
    /// A file here is not what was recorded of it.
    Damaged(Ibi, Vec<u8>, Found),
    /// The other Archive has withdrawn or removed it.
    Gone(Ibi, Gone),
}

impl Learned {
    /// The item.
    #[must_use]
    pub fn item(&self) -> &Ibi {
        match self {
            Learned::Compared(item, _) | Learned::Damaged(item, ..) | Learned::Gone(item, _) => {
                item
            }
        }
    }

    fn parse(line: &str) -> Option<Learned> {
        let mut words = line.split(' ');
        let (first, item) = (words.next()?, Ibi::parse(words.next()?).ok()?);
        let read = match first {
            SAME => Learned::Compared(item, true),
            OTHER => Learned::Compared(item, false),
            DAMAGED => {
                let found = Found::parse(words.next()?)?;
                Learned::Damaged(item, percent_decode(words.next()?), found)
            }
            GONE => Learned::Gone(item, Gone::parse(words.by_ref())?),
            _ => return None,
        };
        words.next().is_none().then_some(read)
    }
}

impl std::fmt::Display for Learned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Learned::Compared(item, true) => writeln!(f, "{SAME} {item}"),
            Learned::Compared(item, false) => writeln!(f, "{OTHER} {item}"),
            Learned::Damaged(item, path, found) => {
                writeln!(f, "{DAMAGED} {item} {found} {}", percent_encode(path))
            }
            Learned::Gone(item, gone) => writeln!(f, "{GONE} {item} {gone}"),
        }
    }
}

impl LearnedFrom {
    fn parse(line: &str) -> Option<LearnedFrom> {
        let mut words = line.split(' ');
        if words.next() != Some(FROM) {
            return None;
        }
        let at = Timestamp::parse_rfc3339(words.next()?).ok()?;
        let service = decoded(words.next()?);
        Some(LearnedFrom {
            at,
            service: (service != NONE).then_some(service),
            place: words.map(decoded).collect(),
        })
    }
}

impl std::fmt::Display for LearnedFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let service = self.service.as_ref().map(percent_encode);
        write!(f, "{FROM} {} ", self.at.to_rfc3339())?;
        f.write_str(service.as_deref().unwrap_or(NONE))?;
        let mut place = self.place.iter();
        place.try_for_each(|word| write!(f, " {}", percent_encode(word)))?;
        writeln!(f)
    }
}

/// The text of a batch.
#[must_use]
pub fn batch_text(from: &LearnedFrom, lines: &[Learned]) -> String {
    let lines: String = lines.iter().map(Learned::to_string).collect();
    format!("{from}{lines}")
}

/// Parses batches. A line that is none is left out, and so is what follows on a first line that is none.
#[must_use]
pub fn parse_batches(bytes: &[u8]) -> Vec<(LearnedFrom, Vec<Learned>)> {
    let text = String::from_utf8_lossy(bytes);
    // What has no end was cut off by a crash.
    let (text, _) = text.rsplit_once('\n').unwrap_or_default();
    let (mut batches, mut current): (Vec<(LearnedFrom, Vec<Learned>)>, _) = (Vec::new(), false);
    for line in text.lines() {
        if line.split(' ').next() == Some(FROM) {
            let from = LearnedFrom::parse(line);
            current = from.is_some();
            batches.extend(from.map(|from| (from, Vec::new())));
        } else if let Some((_, lines)) = batches.last_mut().filter(|_| current) {
            lines.extend(Learned::parse(line));
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixity::Digest;

    #[test]
    fn batches_are_read_back() {
        let item = Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name");
        let at = Timestamp::parse_rfc3339("2026-11-30T12:00:00Z").expect("a time");
        let from = LearnedFrom {
            at: at.clone(),
            service: Some("a.example.org/x/2008/03.17.15.17".to_owned()),
            place: vec!["br".to_owned(), "s\u{e3}o paulo".to_owned()],
        };
        let unsaid = LearnedFrom {
            service: None,
            place: Vec::new(),
            ..from.clone()
        };
        let lines = vec![
            Learned::Compared(item.clone(), true),
            Learned::Compared(item.clone(), false),
            Learned::Gone(item.clone(), Gone::new(true, &at, "no more")),
            Learned::Damaged(
                item.clone(),
                b"doc/\xff x\n".to_vec(),
                Found::Content(Digest([5; 32])),
            ),
            Learned::Damaged(item, b"doc/-".to_vec(), Found::Nothing),
        ];
        let text = batch_text(&from, &lines) + &batch_text(&unsaid, &lines);
        let all = vec![(from, lines.clone()), (unsaid, lines.clone())];
        assert_eq!(parse_batches(text.as_bytes()), all);
        // What a crash has cut off, and lines of others.
        for end in 0..text.len() {
            let cut = parse_batches(&text.as_bytes()[..end]);
            assert!(cut.len() <= 2 && cut.iter().all(|(_, it)| lines.starts_with(it)));
        }
        let broken = format!(
            "same 8JMKD3MGP8W/34PGRBS\nx\n{text}from never -\nsame 8JMKD3MGP8W/34PGRBS\nsame a b\nsame 8JMKD3MGP8W/34PGRBS x\n"
        );
        assert_eq!(parse_batches(broken.as_bytes()), all);
    }
}
