//! Proofs that an entry is in a log, which anyone can check offline and years later (C2SP tlog-proof).

use super::checkpoint::{Checkpoint, hash};
use super::merkle::{Hash, MOST_HASHES, check_inclusion, leaf};
use super::note::Note;
use super::policy::{Policy, Trusted};
use super::{BASE64, Expected, LogError, decoded, number};
use base64::Engine as _;

/// The first line of a proof.
pub const MAGIC: &str = "c2sp.org/tlog-proof@v1";

/// A proof that an entry is in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Data of the log about the entry, which the proof does not prove.
    pub extra: Option<Vec<u8>>,
    /// The number of the entry.
    pub index: u64,
    /// The hashes from the entry to the root.
    pub hashes: Vec<Hash>,
    /// The signed checkpoint.
    pub checkpoint: Note,
}

impl Proof {
    /// Parses a proof; nothing is checked.
    ///
    /// # Errors
    /// The first line that is not one of a proof.
    pub fn parse(text: &str) -> Result<Proof, LogError> {
        let Some((head, checkpoint)) = text.split_once("\n\n") else {
            let expected = if text.starts_with(MAGIC) {
                Expected::Text
            } else {
                Expected::Magic
            };
            return Err(LogError::line(1, expected));
        };
        let mut lines = (1..).zip(head.split('\n')).peekable();
        if lines.next().is_none_or(|(_, line)| line != MAGIC) {
            return Err(LogError::line(1, Expected::Magic));
        }
        let extra = lines.next_if(|(_, line)| line.starts_with("extra "));
        let extra = extra.map(|(at, line)| {
            let bytes = decoded(line.trim_start_matches("extra "));
            bytes.ok_or(LogError::line(at, Expected::Hash))
        });
        let extra = extra.transpose()?;
        let (at, line) = lines.next().unwrap_or((2, ""));
        let index = line.strip_prefix("index ").and_then(number);
        let index = index.ok_or(LogError::line(at, Expected::Index))?;
        let hashes = lines.map(|(at, line)| {
            let hash = hash(line).filter(|_| at <= MOST_HASHES + 3);
            hash.ok_or(LogError::line(at, Expected::Hash))
        });
        let hashes = hashes.collect::<Result<Vec<_>, _>>()?;
        let before = head.split('\n').count() + 1;
        let checkpoint = Note::parse(checkpoint).map_err(|error| error.after(before))?;
        Ok(Proof {
            extra,
            index,
            hashes,
            checkpoint,
        })
    }

    /// Checks that an entry is in a log of a policy, and that witnesses have seen it as the policy asks.
    ///
    /// # Errors
    /// Those of [`Policy::check`], and [`LogError::NotIncluded`].
    pub fn check(&self, entry: &[u8], policy: &Policy) -> Result<Trusted, LogError> {
        let trusted = policy.check(&self.checkpoint)?;
        let Checkpoint { size, root, .. } = &trusted.checkpoint;
        check_inclusion((self.index, &leaf(entry)), &self.hashes, (*size, root))?;
        Ok(trusted)
    }
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{MAGIC}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", BASE64.encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        for hash in &self.hashes {
            writeln!(f, "{}", BASE64.encode(hash))?;
        }
        write!(f, "\n{}", self.checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::checkpoint::cosign;
    use crate::tlog::merkle::{inclusion, root};
    use crate::tlog::note::{KeyKind, SignerKey};
    use std::convert::Infallible;

    fn proof() -> (Proof, String) {
        let log = SignerKey::new("example.org/log", KeyKind::Ed25519, &[1; 32]).expect("a key");
        let witness =
            SignerKey::new("one.example.org", KeyKind::Cosignature, &[2; 32]).expect("a key");
        let leaves: Vec<Hash> = (0..300_u64).map(|it| leaf(&it.to_be_bytes())).collect();
        let mut part = |begin: u64, end: u64| {
            let part = root(&leaves[begin as usize..end as usize]);
            Ok::<Hash, Infallible>(part.expect("some entries"))
        };
        let Ok(hashes) = inclusion(260, 300, &mut part);
        let checkpoint = Checkpoint {
            origin: "example.org/log".to_owned(),
            size: 300,
            root: root(&leaves).expect("some entries"),
        };
        let text = checkpoint.to_string();
        let signatures = vec![log.signature_of(&text), cosign(&witness, &text, 5)];
        let proof = Proof {
            extra: Some(b"beside".to_vec()),
            index: 260,
            hashes,
            checkpoint: Note { text, signatures },
        };
        let policy = format!(
            "log {}\nwitness one {}\nquorum one\n",
            log.verifier(),
            witness.verifier()
        );
        (proof, policy)
    }

    #[test]
    fn a_proof_is_checked_offline() {
        let (proof, policy) = proof();
        let policy = Policy::parse(&policy).expect("a policy");
        let read = Proof::parse(&proof.to_string()).expect("a proof");
        assert_eq!(read, proof);
        let entry = 260_u64.to_be_bytes();
        let trusted = read.check(&entry, &policy).expect("proved");
        assert_eq!(trusted.checkpoint.size, 300);
        assert_eq!(trusted.seen, [("one".to_owned(), 5)]);
        assert_eq!(read.check(b"other", &policy), Err(LogError::NotIncluded));
        // The log says that it is smaller.
        let smaller = Proof::parse(&proof.to_string().replace("\n300\n", "\n299\n"));
        let name = "example.org/log".to_owned();
        let checked = smaller.expect("a proof").check(&entry, &policy);
        assert_eq!(checked, Err(LogError::Forged { name }));
    }

    #[test]
    fn what_is_no_proof() {
        let text = proof().0.to_string();
        let lines = |text: &str| text.split('\n').count();
        for (wrong, line, expected) in [
            (String::new(), 1, Expected::Magic),
            (text.replace("@v1", "@v2"), 1, Expected::Magic),
            (text.replace("extra ", "extra -"), 2, Expected::Hash),
            (text.replace("index 260", "index 0260"), 3, Expected::Index),
            (text.replace("index 260\n", ""), 3, Expected::Index),
            (
                text.replace("index 260\n", "index 260\nAAAA\n"),
                4,
                Expected::Hash,
            ),
            (
                text.replace("\u{2014} one", "one"),
                lines(&text) - 1,
                Expected::Signature,
            ),
            (MAGIC.to_owned(), 1, Expected::Text),
        ] {
            assert_eq!(
                Proof::parse(&wrong),
                Err(LogError::line(line, expected)),
                "{wrong}"
            );
        }
        let long = format!(
            "index 260\n{}",
            format!("{}\n", BASE64.encode([0; 32])).repeat(100)
        );
        let long = Proof::parse(&text.replace("index 260\n", &long));
        assert_eq!(long, Err(LogError::line(67, Expected::Hash)));
    }
}
