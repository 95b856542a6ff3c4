//! The request to a witness to cosign a checkpoint, and the list of the logs for which a witness does (C2SP tlog-witness
//! 1.0.0).

use ring::digest::{SHA256, digest};

use super::checkpoint::{Checkpoint, hash};
use super::merkle::{Hash, MOST_HASHES, leaf};
use super::note::{KeyKind, Note, VerifierKey};
use super::{BASE64, Expected, LogError, number};
use crate::fixity::Digest;
use base64::Engine as _;

/// The address of requests to a witness, below its URL.
pub const PATH: &str = "add-checkpoint";

/// The media type of the answer that has the size of the checkpoint that was cosigned last.
pub const SIZE_TYPE: &str = "text/x.tlog.size";

/// The most keys of logs: a witness has a file open for each.
pub const MOST_LOGS: usize = 1000;

/// A request to cosign a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The size of the checkpoint that the witness cosigned last; 0 if there is none.
    pub old: u64,
    /// The hashes that lead from that checkpoint to this one.
    pub proof: Vec<Hash>,
    /// The signed checkpoint.
    pub note: Note,
}

impl AddCheckpoint {
    /// Parses a request; nothing is checked.
    ///
    /// # Errors
    /// The first line that is not one of a request.
    pub fn parse(text: &str) -> Result<AddCheckpoint, LogError> {
        let not_old = LogError::line(1, Expected::OldSize);
        let (head, note) = text.split_once("\n\n").ok_or(not_old.clone())?;
        let mut lines = (1..).zip(head.split('\n'));
        let old = lines.next().and_then(|(_, line)| line.strip_prefix("old "));
        let old = old.and_then(number).ok_or(not_old)?;
        let proof = lines.map(|(at, line)| {
            let hash = hash(line).filter(|_| at <= MOST_HASHES + 1);
            hash.ok_or(LogError::line(at, Expected::Hash))
        });
        let proof = proof.collect::<Result<Vec<_>, _>>()?;
        let before = proof.len() + 2;
        let note = Note::parse(note).map_err(|error| error.after(before))?;
        Ok(AddCheckpoint { old, proof, note })
    }
}

impl std::fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "old {}", self.old)?;
        for hash in &self.proof {
            writeln!(f, "{}", BASE64.encode(hash))?;
        }
        write!(f, "\n{}", self.note)
    }
}

/// Parses the size of the checkpoint that was cosigned last.
#[must_use]
pub fn size_in(text: &str) -> Option<u64> {
    number(text.strip_suffix('\n')?)
}

/// Parses the keys of the logs for which a witness cosigns: one a line, after which a comment may begin with `#`.
///
/// # Errors
/// The first line that has no key, or one of a line before.
pub fn logs(text: &str) -> Result<Vec<VerifierKey>, LogError> {
    let mut keys: Vec<VerifierKey> = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let mut words = line.split_whitespace();
        let Some(word) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let is_good = words.next().is_none_or(|word| word.starts_with('#'));
        let key = VerifierKey::parse(word).ok().filter(|_| is_good);
        let key = key.filter(|key| key.kind() == KeyKind::Ed25519 && !keys.contains(key));
        if keys.len() == MOST_LOGS {
            return Err(LogError::line(at, Expected::End));
        }
        keys.push(key.ok_or(LogError::line(at, Expected::LogKey))?);
    }
    Ok(keys)
}

/// The name of the file in which a witness keeps what it knows of a log.
#[must_use]
pub fn file_name(origin: &str) -> String {
    let hash = digest(&SHA256, origin.as_bytes());
    let hash = hash.as_ref().try_into().unwrap_or_default();
    Digest(hash).to_string()
}

/// The line in which a witness keeps the checkpoint of a log that it cosigned last: size and root, and a hash of both and
/// of the log's name, by which a line that was written in part is found.
#[must_use]
pub fn record(checkpoint: &Checkpoint) -> String {
    let check = Digest(leaf(checkpoint.to_string().as_bytes()));
    format!("{} {} {check}", checkpoint.size, Digest(checkpoint.root))
}

/// Reads the line of a log. None if it is damaged.
#[must_use]
pub fn recorded(origin: &str, line: &str) -> Option<Checkpoint> {
    let mut words = line.split(' ');
    let checkpoint = Checkpoint {
        origin: origin.to_owned(),
        size: words.next().and_then(number)?,
        root: Digest::parse(words.next()?.as_bytes())?.0,
    };
    (record(&checkpoint) == line).then_some(checkpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::note::SignerKey;

    /// The example of the specification.
    const REQUEST: &str = "old 20852014\n\
        PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n\
        jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=\n\
        5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=\n\
        /6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=\n\
        \n\
        example.com/behind-the-sofa\n\
        20852163\n\
        CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\
        \n\
        \u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n\
        \u{2014} example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=\n";

    #[test]
    fn the_example_is_read_and_written() {
        let request = AddCheckpoint::parse(REQUEST).expect("a request");
        assert_eq!((request.old, request.proof.len()), (20_852_014, 4));
        assert_eq!(request.note.signatures.len(), 2);
        assert_eq!(request.to_string(), REQUEST);
    }

    #[test]
    fn what_is_no_request() {
        let hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
        let (_, note) = REQUEST.split_once("\n\n").expect("a note");
        let with = |count| format!("old 1\n{}\n{note}", hash.repeat(count));
        assert!(AddCheckpoint::parse(&with(63)).is_ok());
        for (text, line, expected) in [
            (String::new(), 1, Expected::OldSize),
            ("old 1\n".to_owned(), 1, Expected::OldSize),
            (REQUEST.replace("old ", "old  "), 1, Expected::OldSize),
            (REQUEST.replace("old 2", "old 02"), 1, Expected::OldSize),
            (REQUEST.replace("old 2", "Old 2"), 1, Expected::OldSize),
            (REQUEST.replace("8Y7S", "8Y-S"), 3, Expected::Hash),
            (REQUEST.replace("swk=", "swl="), 3, Expected::Hash),
            (REQUEST.replace('\n', "\r\n"), 1, Expected::OldSize),
            (with(64), 65, Expected::Hash),
            (REQUEST.replace("example.com/b", "\t"), 7, Expected::Text),
            (REQUEST.trim_end().to_owned(), 11, Expected::Signature),
        ] {
            let wrong = LogError::line(line, expected);
            assert_eq!(AddCheckpoint::parse(&text), Err(wrong), "{text:?}");
        }
        assert_eq!(size_in("20852163\n"), Some(20_852_163));
        for text in ["", "\n", "1", "01\n", "+1\n", " 1\n", "1\n\n", "1\r\n"] {
            assert_eq!(size_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn logs_of_a_witness() {
        let key = |name: &str, kind, seed| {
            let key = SignerKey::new(name, kind, &[seed; 32]).expect("a key");
            key.verifier().clone()
        };
        let one = key("one.example.org/log", KeyKind::Ed25519, 1);
        // A log may change its key, and both are accepted then.
        let later = key("one.example.org/log", KeyKind::Ed25519, 2);
        let witness = key("one.example.org/log", KeyKind::Cosignature, 3);
        let text = format!("# Neighbours.\n\n  {one}  # until 2027\n{later}\r\n");
        assert_eq!(logs(&text), Ok(vec![one.clone(), later]));
        assert_eq!(logs(""), Ok(Vec::new()));
        let wrong = |line| Err(LogError::line(line, Expected::LogKey));
        assert_eq!(logs(&format!("{text}{one}\n")), wrong(5));
        assert_eq!(logs(&format!("{witness}\n")), wrong(1));
        assert_eq!(logs("\nlog\n"), wrong(2));
        assert_eq!(logs(&format!("{one} {witness}\n")), wrong(1));
        let numbered = key("example.org/log#1", KeyKind::Ed25519, 1);
        assert_eq!(logs(&format!("\t{numbered}\t#")), Ok(vec![numbered]));
        let many = |count: u32| {
            let line = |number| key(&format!("log-{number}"), KeyKind::Ed25519, 1).to_string();
            (0..count).map(line).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(logs(&many(1000)).map(|keys| keys.len()), Ok(1000));
        let end = LogError::line(1001, Expected::End);
        assert_eq!(logs(&many(1001)), Err(end));
    }
    #[test]
    fn a_record_is_whole_and_of_its_log() {
        let checkpoint = Checkpoint {
            origin: "example.org/log".to_owned(),
            size: 12,
            root: [7; 32],
        };
        let line = record(&checkpoint);
        let read = |line: &str| recorded("example.org/log", line);
        assert_eq!(read(&line), Some(checkpoint));
        assert_eq!(recorded("example.org/other", &line), None);
        for (from, to) in [("12 ", "13 "), ("12 ", "012 "), ("07", "08"), (" ", "  ")] {
            assert_eq!(read(&line.replacen(from, to, 1)), None, "{from:?}");
        }
        for end in 0..line.len() {
            assert_eq!(read(&line[..end]), None);
        }
        // That of sha256sum(1).
        assert_eq!(
            file_name("example.com"),
            "a379a6f6eeafb9a55e378c118034e2751e682fab9f2d30ab13d2125586ce1947"
        );
    }
}
