//! Policies: which logs are trusted, and how many of which witnesses must have seen a checkpoint (C2SP tlog-policy).

use std::collections::HashSet;

use super::checkpoint::{Checkpoint, seen_at};
use super::note::{KeyKind, Note, VerifierKey};
use super::{Expected, LogError, number};

/// The quorum that asks for no witness.
const NONE: &str = "none";

/// The logs, the witnesses and the quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    logs: Vec<VerifierKey>,
    witnesses: Vec<(String, VerifierKey)>,
    groups: Vec<Group>,
    quorum: String,
}

/// Witnesses and groups, of which some must have seen a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    name: String,
    threshold: usize,
    members: Vec<String>,
}

/// A checkpoint as a policy asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// The log at the time.
    pub checkpoint: Checkpoint,
    /// The witnesses that have seen it, by their names in the policy, and when, in seconds since 1970.
    pub seen: Vec<(String, u64)>,
}

impl Policy {
    /// The policy that trusts one log, and asks for no witness.
    #[must_use]
    pub fn of_log(key: VerifierKey) -> Policy {
        Policy {
            logs: vec![key],
            witnesses: Vec::new(),
            groups: Vec::new(),
            quorum: NONE.to_owned(),
        }
    }

    /// Parses a policy.
    ///
    /// # Errors
    /// The first line that is not one of a policy.
    pub fn parse(text: &str) -> Result<Policy, LogError> {
        let mut policy = Policy {
            logs: Vec::new(),
            witnesses: Vec::new(),
            groups: Vec::new(),
            quorum: String::new(),
        };
        let lines = text.split('\n').count();
        for (at, line) in (1..).zip(text.split('\n')) {
            let is_good = line.chars().all(|sign| sign == '\t' || !sign.is_control());
            let words: Vec<&str> = line
                .split([' ', '\t'])
                .filter(|word| !word.is_empty())
                .collect();
            let read = if is_good {
                policy.read(&words)
            } else {
                Err(Expected::Policy)
            };
            read.map_err(|expected| LogError::line(at, expected))?;
        }
        if policy.quorum.is_empty() {
            return Err(LogError::line(lines, Expected::Quorum));
        }
        Ok(policy)
    }

    /// Reads a line.
    fn read(&mut self, words: &[&str]) -> Result<(), Expected> {
        match words {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["log", key, rest @ ..] if rest.len() < 2 => {
                let key = new_key(key, KeyKind::Ed25519, self.logs.iter())?;
                self.logs.push(key);
            }
            ["witness", name, key, rest @ ..] if rest.len() < 2 => {
                let known = self.witnesses.iter().map(|(_, key)| key);
                let key = new_key(key, KeyKind::Cosignature, known)?;
                let name = self.new_name(name)?;
                self.witnesses.push((name, key));
            }
            ["group", name, threshold, members @ ..] if !members.is_empty() => {
                let name = self.new_name(name)?;
                let threshold = match *threshold {
                    "any" => 1,
                    "all" => members.len(),
                    count => number(count)
                        .and_then(|count| count.try_into().ok())
                        .unwrap_or(0),
                };
                if threshold == 0 || threshold > members.len() {
                    return Err(Expected::Threshold);
                }
                let mut group = Group {
                    name,
                    threshold,
                    members: Vec::new(),
                };
                for member in members {
                    let groups = self.groups.iter().chain([&group]);
                    let is_taken = groups.flat_map(|it| &it.members).any(|it| it == member);
                    if is_taken || !self.has(member) {
                        return Err(Expected::Member);
                    }
                    group.members.push((*member).to_owned());
                }
                self.groups.push(group);
            }
            ["quorum", name] if self.quorum.is_empty() => {
                if *name != NONE && !self.has(name) {
                    return Err(Expected::Member);
                }
                self.quorum = (*name).to_owned();
            }
            ["quorum", _] => return Err(Expected::Quorum),
            _ => return Err(Expected::Policy),
        }
        Ok(())
    }

    fn new_name(&self, name: &str) -> Result<String, Expected> {
        let is_new = name != NONE && !self.has(name);
        is_new.then(|| name.to_owned()).ok_or(Expected::NewName)
    }

    fn has(&self, name: &str) -> bool {
        self.witnesses.iter().any(|(it, _)| it == name)
            || self.groups.iter().any(|it| it.name == name)
    }

    /// Checks that a log of the policy has signed a checkpoint, and that the quorum has seen it.
    ///
    /// # Errors
    /// No log has signed it, a signature of a log or a witness of the policy is forged, or there is no quorum.
    pub fn check(&self, note: &Note) -> Result<Trusted, LogError> {
        let mut signed = Err(LogError::NoLog);
        for log in &self.logs {
            signed = match (Checkpoint::open(note, log), signed) {
                // Another log may have signed it.
                (Err(LogError::NotSigned { .. }), Ok(before)) => Ok(before),
                (Err(error @ LogError::NotSigned { .. }), Err(_)) => Err(error),
                (opened, _) => Ok(opened?),
            };
        }
        let checkpoint = signed?;
        let mut seen = Vec::new();
        for (name, witness) in &self.witnesses {
            match seen_at(note, witness) {
                Ok(time) => seen.push((name.clone(), time)),
                Err(LogError::NotSigned { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Each group is after its members.
        let mut have: HashSet<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        for group in &self.groups {
            let count = group
                .members
                .iter()
                .filter(|it| have.contains(it.as_str()))
                .count();
            if count >= group.threshold {
                have.insert(&group.name);
            }
        }
        if self.quorum == NONE || have.contains(self.quorum.as_str()) {
            Ok(Trusted { checkpoint, seen })
        } else {
            let wanted = self.quorum.clone();
            let found = seen.len();
            Err(LogError::Witnesses { found, wanted })
        }
    }
}

/// Parses a key that is not known yet, under any name.
fn new_key<'a>(
    text: &str,
    kind: KeyKind,
    mut known: impl Iterator<Item = &'a VerifierKey>,
) -> Result<VerifierKey, Expected> {
    let key = VerifierKey::parse(text).map_err(|_| Expected::Key)?;
    let is_new = key.kind() == kind && !known.any(|it| it.is_same_key(&key));
    is_new.then_some(key).ok_or(Expected::Key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::checkpoint::cosign;
    use crate::tlog::note::SignerKey;

    fn log(name: &str) -> SignerKey {
        SignerKey::new(name, KeyKind::Ed25519, &[1; 32]).expect("a key")
    }

    fn witness(seed: u8) -> SignerKey {
        let name = format!("w{seed}.example.org");
        SignerKey::new(&name, KeyKind::Cosignature, &[seed; 32]).expect("a key")
    }

    /// The example of the specification, with three witnesses of one organization and two of another.
    fn policy() -> String {
        let mut text = format!(
            "# a comment\n\nlog {} https://example.org/\n",
            log("example.org/log").verifier()
        );
        for seed in 1..6 {
            text += &format!("\twitness  W{seed} {}\n", witness(seed).verifier());
        }
        text + "group X 2 W1 W2 W3\ngroup Y any W4 W5\ngroup X-and-Y all X Y\nquorum X-and-Y\n"
    }

    fn note(witnesses: &[u8]) -> Note {
        let checkpoint = Checkpoint {
            origin: "example.org/log".to_owned(),
            size: 5,
            root: [7; 32],
        };
        let text = checkpoint.to_string();
        let cosigned = witnesses
            .iter()
            .map(|seed| cosign(&witness(*seed), &text, (*seed).into()));
        let signatures = [log("example.org/log").signature_of(&text)]
            .into_iter()
            .chain(cosigned);
        Note {
            signatures: signatures.collect(),
            text,
        }
    }

    #[test]
    fn a_quorum_is_as_the_groups_say() {
        let policy = Policy::parse(&policy()).expect("a policy");
        for (witnesses, is_quorum) in [
            (&[1, 2, 4][..], true),
            (&[5, 3, 1], true),
            (&[1, 2, 3, 4, 5], true),
            (&[1, 2, 3], false),
            (&[1, 4, 5], false),
            // A witness that the policy does not know, and one that has signed twice.
            (&[1, 4, 9], false),
            (&[1, 1, 4], false),
            (&[], false),
        ] {
            let checked = policy.check(&note(witnesses));
            assert_eq!(checked.is_ok(), is_quorum, "{witnesses:?}: {checked:?}");
        }
        let seen = policy.check(&note(&[4, 1, 2])).expect("a quorum").seen;
        assert_eq!(
            seen,
            [("W1", 1), ("W2", 2), ("W4", 4)].map(|(it, at)| (it.to_owned(), at))
        );
        let text = self::policy().replace("quorum X-and-Y", "quorum none");
        let none = Policy::parse(&text).expect("a policy");
        assert!(none.check(&note(&[])).is_ok());
        let mut forged = note(&[1]);
        forged.signatures[1] = cosign(&witness(1), "another text\n", 1);
        let name = "w1.example.org".to_owned();
        assert_eq!(none.check(&forged), Err(LogError::Forged { name }));
    }

    #[test]
    fn any_log_of_the_policy_may_have_signed() {
        let second = SignerKey::new("example.org/log", KeyKind::Ed25519, &[9; 32]).expect("a key");
        let first = format!("log {}\n", log("example.org/log").verifier());
        let other = format!("log {}\n", second.verifier());
        let check = |logs: &str| {
            Policy::parse(&format!("{logs}quorum none\n"))
                .expect("a policy")
                .check(&note(&[]))
        };
        assert!(check(&format!("{first}{other}")).is_ok());
        assert!(check(&format!("{other}{first}")).is_ok());
        let name = "example.org/log".to_owned();
        assert_eq!(check(&other), Err(LogError::NotSigned { name }));
        assert_eq!(check(""), Err(LogError::NoLog));
    }

    #[test]
    fn what_is_no_policy() {
        let key = witness(7).verifier().to_string();
        let same_key = key.replace("w7.", "w8.");
        let renamed =
            SignerKey::new("w8.example.org", KeyKind::Cosignature, &[7; 32]).expect("a key");
        for (line, expected) in [
            ("logs a".to_owned(), Expected::Policy),
            ("log".to_owned(), Expected::Policy),
            (format!("log {key}"), Expected::Key),
            (format!("witness a {same_key}"), Expected::Key),
            (
                format!("witness a {key}\nwitness b {}", renamed.verifier()),
                Expected::Key,
            ),
            (format!("witness W1 {key}"), Expected::NewName),
            (format!("witness X {key}"), Expected::NewName),
            (format!("witness none {key}"), Expected::NewName),
            (format!("witness a {key} url more"), Expected::Policy),
            (format!("witness a {key}\ngroup b 2 a"), Expected::Threshold),
            (format!("witness a {key}\ngroup b 0 a"), Expected::Threshold),
            (
                format!("witness a {key}\ngroup b 01 a"),
                Expected::Threshold,
            ),
            (
                format!("witness a {key}\ngroup b all a a"),
                Expected::Member,
            ),
            ("group b any W1".to_owned(), Expected::Member),
            ("group b any b".to_owned(), Expected::Member),
            ("group b any none".to_owned(), Expected::Member),
            ("group b any".to_owned(), Expected::Policy),
            ("quorum X".to_owned(), Expected::Quorum),
            ("a\u{7}".to_owned(), Expected::Policy),
        ] {
            let text = format!("{}{line}\n", policy());
            let at = text.trim_end().split('\n').count();
            assert_eq!(
                Policy::parse(&text),
                Err(LogError::line(at, expected)),
                "{line}"
            );
        }
        let text = policy();
        let without = text.replace("quorum X-and-Y\n", "");
        let lines = without.split('\n').count();
        assert_eq!(
            Policy::parse(&without),
            Err(LogError::line(lines, Expected::Quorum))
        );
        let unknown = text.replace("quorum X-and-Y", "quorum other");
        assert_eq!(
            Policy::parse(&unknown),
            Err(LogError::line(lines, Expected::Member))
        );
    }
}
