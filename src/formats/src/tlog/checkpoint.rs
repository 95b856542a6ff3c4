//! Checkpoints: what a log was at a time (C2SP tlog-checkpoint 1.0.0), and that witnesses have seen it
//! (tlog-cosignature 1.0.0).

use super::merkle::Hash;
use super::note::{KeyKind, Note, Signature, SignerKey, VerifierKey};
use super::{BASE64, Expected, LogError, decoded, number};
use base64::Engine as _;

/// The size of a log and its root. Further lines of a checkpoint are kept, and mean nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log, `archive.example.org/log`.
    pub origin: String,
    /// The number of entries.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Hash,
}

impl Checkpoint {
    /// Parses the text of a checkpoint without signatures.
    ///
    /// # Errors
    /// The first line that is not one of a checkpoint.
    pub fn parse(text: &str) -> Result<Checkpoint, LogError> {
        let mut lines = text.split('\n');
        let mut next = || lines.next().unwrap_or_default();
        let origin = next().to_owned();
        if origin.is_empty() {
            return Err(LogError::line(1, Expected::Origin));
        }
        let size = number(next()).ok_or(LogError::line(2, Expected::Size))?;
        let root = hash(next()).ok_or(LogError::line(3, Expected::Hash))?;
        if text.contains("\n\n") {
            return Err(LogError::line(4, Expected::Text));
        }
        Ok(Checkpoint { origin, size, root })
    }

    /// Parses a signed checkpoint, and checks that a log has signed it.
    ///
    /// # Errors
    /// It is not a checkpoint, not signed by the key, or one of another log than that of the key's name.
    pub fn open(note: &Note, key: &VerifierKey) -> Result<Checkpoint, LogError> {
        note.check(key)?;
        let checkpoint = Checkpoint::parse(&note.text)?;
        if checkpoint.origin == key.name() {
            Ok(checkpoint)
        } else {
            let found = checkpoint.origin;
            Err(LogError::Origin { found })
        }
    }
}

impl std::fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let root = BASE64.encode(self.root);
        writeln!(f, "{}\n{}\n{root}", self.origin, self.size)
    }
}

/// A hash in Base64.
pub(super) fn hash(text: &str) -> Option<Hash> {
    decoded(text)?.try_into().ok()
}

/// The text that a witness signs.
fn cosigned(text: &str, seconds: u64) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

/// The signature of a witness that has seen a checkpoint at a time, in seconds since 1970.
#[must_use]
pub fn cosign(key: &SignerKey, text: &str, seconds: u64) -> Signature {
    let signature = key.sign(cosigned(text, seconds).as_bytes());
    key.signature(&[&seconds.to_be_bytes(), &signature[..]].concat())
}

/// The time at which a witness has seen a checkpoint, in seconds since 1970.
///
/// # Errors
/// [`LogError::NotSigned`] if there is no cosignature by the key, [`LogError::Forged`] if none is good.
pub fn seen_at(note: &Note, witness: &VerifierKey) -> Result<u64, LogError> {
    let name = witness.name().to_owned();
    let mut signatures = note
        .signatures
        .iter()
        .filter_map(|it| it.by(witness))
        .peekable();
    if witness.kind() != KeyKind::Cosignature || signatures.peek().is_none() {
        return Err(LogError::NotSigned { name });
    }
    let time_of = |bytes: &[u8]| {
        let (time, signature) = bytes.split_first_chunk::<8>()?;
        let seconds = u64::from_be_bytes(*time);
        let message = cosigned(&note.text, seconds);
        let is_good = witness.has_signed(message.as_bytes(), signature);
        is_good.then_some(seconds)
    };
    signatures
        .filter_map(time_of)
        .max()
        .ok_or(LogError::Forged { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(name: &str, kind: KeyKind, seed: u8) -> SignerKey {
        SignerKey::new(name, kind, &[seed; 32]).expect("a key")
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: "example.org/log".to_owned(),
            size: 109_482,
            root: [7; 32],
        }
    }

    #[test]
    fn a_checkpoint_is_that_of_its_log() {
        let log = signer("example.org/log", KeyKind::Ed25519, 1);
        let text = checkpoint().to_string();
        let note = Note {
            signatures: vec![log.signature_of(&text)],
            text,
        };
        let note = Note::parse(&note.to_string()).expect("a note");
        assert_eq!(Checkpoint::open(&note, log.verifier()), Ok(checkpoint()));
        // Lines that a later version of the format has.
        let more = Checkpoint::parse(&format!("{}more\n", note.text));
        assert_eq!(more, Ok(checkpoint()));
        let other = signer("example.org/other", KeyKind::Ed25519, 1);
        let note = Note {
            signatures: vec![other.signature_of(&note.text)],
            ..note
        };
        let found = "example.org/log".to_owned();
        assert_eq!(
            Checkpoint::open(&note, other.verifier()),
            Err(LogError::Origin { found })
        );
    }

    #[test]
    fn what_is_no_checkpoint() {
        let root = BASE64.encode([7; 32]);
        for (text, line, expected) in [
            (String::new(), 1, Expected::Origin),
            ("log\n".to_owned(), 2, Expected::Size),
            (format!("log\n01\n{root}\n"), 2, Expected::Size),
            (format!("log\n-1\n{root}\n"), 2, Expected::Size),
            (format!("log\n+1\n{root}\n"), 2, Expected::Size),
            (
                format!("log\n99999999999999999999\n{root}\n"),
                2,
                Expected::Size,
            ),
            ("log\n1\nAAAA\n".to_owned(), 3, Expected::Hash),
            (format!("log\n1\n{root}AAAA\n"), 3, Expected::Hash),
            (format!("log\n1\n{root}\na\n\nb\n"), 4, Expected::Text),
        ] {
            assert_eq!(
                Checkpoint::parse(&text),
                Err(LogError::line(line, expected)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn witnesses_say_when() {
        let witness = signer("witness.example.org", KeyKind::Cosignature, 2);
        let text = checkpoint().to_string();
        let at = |seconds| cosign(&witness, &text, seconds);
        let note = |signatures: Vec<Signature>| Note {
            text: text.clone(),
            signatures,
        };
        let seen = |note: &Note| seen_at(note, witness.verifier());
        assert_eq!(seen(&note(vec![at(1_700_000_000)])), Ok(1_700_000_000));
        assert_eq!(seen(&note(vec![at(5), at(7), at(6)])), Ok(7));
        let name = || "witness.example.org".to_owned();
        assert_eq!(
            seen(&note(Vec::new())),
            Err(LogError::NotSigned { name: name() })
        );
        let mut late = cosign(&witness, &text, 5);
        late = witness.signature(
            &[
                &9_u64.to_be_bytes(),
                &late.by(witness.verifier()).expect("its own")[8..],
            ]
            .concat(),
        );
        assert_eq!(
            seen(&note(vec![late])),
            Err(LogError::Forged { name: name() })
        );
        // A log is not a witness of itself, and a witness does not sign for the log.
        let log = signer("witness.example.org", KeyKind::Ed25519, 2);
        let signed = note(vec![log.signature_of(&text)]);
        assert_eq!(seen(&signed), Err(LogError::NotSigned { name: name() }));
        assert_eq!(
            seen_at(&signed, log.verifier()),
            Err(LogError::NotSigned { name: name() })
        );
    }
}
