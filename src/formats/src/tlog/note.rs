//! Signed notes: a text, an empty line, and a line for each signature (C2SP signed-note 1.0.0).

use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::{BASE64, Expected, LogError, decoded};
use base64::Engine as _;

/// The mark before each signature: an em dash and a space.
const MARK: &str = "\u{2014} ";

/// The most signatures that are read of a note.
const MOST_SIGNATURES: usize = 100;

/// The texts that a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The text of a note.
    Ed25519,
    /// A checkpoint, with the time at which it was seen (tlog-cosignature 1.0.0).
    Cosignature,
}

impl KeyKind {
    fn byte(self) -> u8 {
        match self {
            KeyKind::Ed25519 => 0x01,
            KeyKind::Cosignature => 0x04,
        }
    }

    fn of(byte: u8) -> Option<KeyKind> {
        let kinds = [KeyKind::Ed25519, KeyKind::Cosignature];
        kinds.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// The public part of a key, with its name: `NAME+HASH+KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    kind: KeyKind,
    public: [u8; 32],
}

impl VerifierKey {
    /// A key.
    ///
    /// # Errors
    /// [`LogError::Key`] if it cannot have the name.
    pub fn new(name: &str, kind: KeyKind, public: [u8; 32]) -> Result<VerifierKey, LogError> {
        if is_name(name) {
            let name = name.to_owned();
            Ok(VerifierKey { name, kind, public })
        } else {
            Err(LogError::Key)
        }
    }

    /// Parses `NAME+HASH+KEY`.
    ///
    /// # Errors
    /// [`LogError::Key`] if it has another form, or its hash is another one.
    pub fn parse(text: &str) -> Result<VerifierKey, LogError> {
        let parts = || {
            let (name, rest) = text.trim().split_once('+')?;
            let (hash, key) = rest.split_once('+')?;
            let (kind, public) = decoded(key)?
                .split_first()
                .map(|(kind, key)| (*kind, key.to_vec()))?;
            let key = VerifierKey::new(name, KeyKind::of(kind)?, public.try_into().ok()?).ok()?;
            (key.hash_text() == hash).then_some(key)
        };
        parts().ok_or(LogError::Key)
    }

    /// The name of who signs with it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The texts that it signs.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Whether the key is the same, under any name.
    #[must_use]
    pub fn is_same_key(&self, other: &VerifierKey) -> bool {
        self.public == other.public
    }

    fn typed(&self) -> Vec<u8> {
        [&[self.kind.byte()], &self.public[..]].concat()
    }

    /// The four bytes by which signatures name the key.
    fn hash(&self) -> [u8; 4] {
        let named = [self.name.as_bytes(), b"\n", &self.typed()].concat();
        let mut hash = [0; 4];
        let digest = digest(&SHA256, &named);
        hash.copy_from_slice(digest.as_ref().get(..4).unwrap_or(&[0; 4]));
        hash
    }

    fn hash_text(&self) -> String {
        format!("{:08x}", u32::from_be_bytes(self.hash()))
    }

    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.public);
        key.verify(message, signature).is_ok()
    }
}

impl std::fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = BASE64.encode(self.typed());
        write!(f, "{}+{}+{key}", self.name, self.hash_text())
    }
}

/// A key that signs. Its text is kept like a password.
pub struct SignerKey {
    verifier: VerifierKey,
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SignerKey").field(&self.verifier).finish()
    }
}

impl SignerKey {
    /// The key that 32 random bytes are.
    ///
    /// # Errors
    /// [`LogError::Key`] if it cannot have the name.
    pub fn new(name: &str, kind: KeyKind, seed: &[u8; 32]) -> Result<SignerKey, LogError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| LogError::Key)?;
        let public = pair.public_key().as_ref().try_into();
        let public = public.map_err(|_| LogError::Key)?;
        let verifier = VerifierKey::new(name, kind, public)?;
        Ok(SignerKey { verifier, pair })
    }

    /// The public part.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// The line of a signature of a text.
    #[must_use]
    pub fn signature_of(&self, text: &str) -> Signature {
        self.signature(&self.sign(text.as_bytes()))
    }

    pub(super) fn signature(&self, bytes: &[u8]) -> Signature {
        Signature {
            name: self.verifier.name.clone(),
            hash: self.verifier.hash(),
            bytes: bytes.to_vec(),
        }
    }
}

/// A signature of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    name: String,
    hash: [u8; 4],
    bytes: Vec<u8>,
}

impl Signature {
    /// The bytes of the signature, if it is said to be one of this key.
    pub(super) fn by(&self, key: &VerifierKey) -> Option<&[u8]> {
        (self.name == key.name && self.hash == key.hash()).then_some(&self.bytes)
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = BASE64.encode([&self.hash[..], &self.bytes].concat());
        writeln!(f, "{MARK}{} {bytes}", self.name)
    }
}

/// A text and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The text, which ends in a newline.
    pub text: String,
    /// The signatures, in their order.
    pub signatures: Vec<Signature>,
}

impl Note {
    /// Parses a signed note; no signature is checked.
    ///
    /// # Errors
    /// The first line that is not one of a signed note.
    pub fn parse(note: &str) -> Result<Note, LogError> {
        let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let is_text = |text: &str| !text.chars().any(|sign| sign != '\n' && sign.is_control());
        // The text may have empty lines of its own.
        let (text, signed) = match note.rfind("\n\n") {
            Some(end) if is_text(note) => note.split_at(end + 1),
            _ => return Err(LogError::line(1, Expected::Text)),
        };
        let before = lines(text) + 1;
        let signed = signed.strip_prefix('\n').unwrap_or(signed);
        if signed.is_empty() || !signed.ends_with('\n') || lines(signed) > MOST_SIGNATURES {
            return Err(LogError::line(before + 1, Expected::Signature));
        }
        let mut signatures = Vec::new();
        for (at, line) in signed.lines().enumerate() {
            let signature = signature_in(line);
            let wrong = LogError::line(before + 1 + at, Expected::Signature);
            signatures.push(signature.ok_or(wrong)?);
        }
        let text = text.to_owned();
        Ok(Note { text, signatures })
    }

    /// Whether a signature is said to be one of this key.
    #[must_use]
    pub fn has_one_of(&self, key: &VerifierKey) -> bool {
        self.signatures.iter().any(|it| it.by(key).is_some())
    }

    /// Checks that a key has signed the text.
    ///
    /// # Errors
    /// [`LogError::NotSigned`] if no signature is said to be one of it, [`LogError::Forged`] if one is and is not.
    pub fn check(&self, key: &VerifierKey) -> Result<(), LogError> {
        let name = key.name.clone();
        let mut signatures = self
            .signatures
            .iter()
            .filter_map(|it| it.by(key))
            .peekable();
        if signatures.peek().is_none() {
            return Err(LogError::NotSigned { name });
        }
        if signatures.all(|bytes| key.has_signed(self.text.as_bytes(), bytes)) {
            Ok(())
        } else {
            Err(LogError::Forged { name })
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|it| write!(f, "{it}"))
    }
}

fn signature_in(line: &str) -> Option<Signature> {
    let (name, bytes) = line.strip_prefix(MARK)?.split_once(' ')?;
    let bytes = decoded(bytes)?;
    let (hash, bytes) = bytes.split_first_chunk::<4>()?;
    (is_name(name) && !bytes.is_empty()).then(|| Signature {
        name: name.to_owned(),
        hash: *hash,
        bytes: bytes.to_vec(),
    })
}

/// Whether a key can have this name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(|sign: char| sign.is_whitespace() || sign.is_control() || sign == '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the documentation of Go's package note.
    const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\n\
        \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn the_example_of_another_program() {
        let key = VerifierKey::parse(KEY).expect("a key");
        assert_eq!(key.to_string(), KEY);
        let note = Note::parse(NOTE).expect("a note");
        assert_eq!(note.check(&key), Ok(()));
        assert_eq!(note.to_string(), NOTE);
        let key_text = decoded("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz").expect("a key");
        let seed = key_text.last_chunk::<32>().expect("a seed");
        let signer = SignerKey::new("PeterNeumann", KeyKind::Ed25519, seed).expect("a key");
        assert_eq!(signer.verifier(), &key);
        assert_eq!(signer.signature_of(&note.text), note.signatures[0]);
    }

    #[test]
    fn what_was_changed_is_seen() {
        let key = VerifierKey::parse(KEY).expect("a key");
        let check = |text: &str| Note::parse(text).and_then(|note| note.check(&key));
        let forged = LogError::Forged {
            name: "PeterNeumann".to_owned(),
        };
        assert_eq!(
            check(&NOTE.replace("the answer", "an answer")),
            Err(forged.clone())
        );
        let other = NOTE.replace("x08go/ZJ", "x08go/ZK");
        assert_eq!(check(&other), Err(forged.clone()));
        // A good signature beside a forged one makes no good note.
        let both = format!(
            "{NOTE}{}",
            other.lines().last().expect("a signature").to_owned() + "\n"
        );
        assert_eq!(check(&both), Err(forged));
        let other_key = NOTE.replace("x08go/ZJ", "y08go/ZJ");
        let not_signed = LogError::NotSigned {
            name: "PeterNeumann".to_owned(),
        };
        assert_eq!(check(&other_key), Err(not_signed.clone()));
        assert_eq!(check(&NOTE.replace("PeterN", "PetraN")), Err(not_signed));
    }

    #[test]
    fn what_is_no_note() {
        for (text, line, expected) in [
            ("", 1, Expected::Text),
            ("a\n", 1, Expected::Text),
            ("a\n\n", 3, Expected::Signature),
            ("a\n\n\u{2014} x\n", 3, Expected::Signature),
            ("a\n\n\u{2014} x AAAA\n", 3, Expected::Signature),
            ("a\n\n\u{2014} x AAAAAA\n", 3, Expected::Signature),
            ("a\n\n\u{2014} x AAAAAA==", 3, Expected::Signature),
            ("a\n\n- x AAAAAA==\n", 3, Expected::Signature),
            ("a\u{1b}\n\n\u{2014} x AAAAAAA=\n", 1, Expected::Text),
            ("a\n\n\u{2014} x AAAAAAA=\nb\n", 4, Expected::Signature),
        ] {
            assert_eq!(
                Note::parse(text),
                Err(LogError::line(line, expected)),
                "{text:?}"
            );
        }
        let many = format!("a\n\n{}", "\u{2014} x AAAAAAA=\n".repeat(101));
        assert_eq!(
            Note::parse(&many),
            Err(LogError::line(3, Expected::Signature))
        );
        for key in [
            "",
            "PeterNeumann",
            "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10",
            "PeterNeumann+c74f20a3+BRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
            "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        ] {
            assert_eq!(VerifierKey::parse(key), Err(LogError::Key), "{key:?}");
        }
    }
}
