//! A list with a signature, by which a resolver knows that it comes from a peer (ibi-resolution(7), "Peers").
//!
//! The lines that the form adds to a list begin with `#`, which others pass over.

use std::fmt;

use ibi::Timestamp;
use ibi::pairs::{Pairs, Value};

use super::key::{PublicKey, SigningKey};
use super::{Admitted, FederatedArchive, FederationError, LONGEST_LIST, SERVICE, parse, written};
use crate::item::Names;

/// The beginning of what is signed, so that no signature of another kind of text is taken for one of a list.
const CONTEXT: &[u8] = b"ibifs federatedArchives 1\n";
/// The beginning of the first line.
const FIRST: &str = "# signed ";
/// The beginning of a line that names the service of an Archive that is registered and not included.
const ABSENT: &str = "# absent ";
/// The beginning of the last line.
const SIGNATURE: &str = "# signature ";
const SERIAL: &str = "serial";
const TIME: &str = "time";

/// A list that its resolver has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedList {
    /// Greater than that of each earlier list of the resolver.
    pub serial: u64,
    /// The time at which it was signed.
    pub time: Timestamp,
    /// The services of Archives that are registered with the resolver, and not included.
    pub absent: Vec<Names>,
    /// The Archives that are included.
    pub archives: Vec<FederatedArchive>,
}

/// The reason why a signed list is refused, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedListError {
    /// It has more bytes than a list may have.
    Long,
    /// It has no signature, or another form.
    Unsigned,
    /// The signature is not that of the peer's key.
    Signature,
    /// It is signed, and not a list.
    List(FederationError),
}

impl fmt::Display for SignedListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignedListError::Long => write!(f, "the list has more than {LONGEST_LIST} bytes"),
            SignedListError::Unsigned => f.write_str(
                "the list is not signed; its resolver needs a key, see 'ibifs resolver key'",
            ),
            SignedListError::Signature => {
                f.write_str("the list is not signed with the key that is configured for this peer")
            }
            SignedListError::List(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SignedListError {}

impl SignedList {
    /// Writes the list with its signature.
    #[must_use]
    pub fn signed(&self, key: &SigningKey) -> String {
        let mut pairs = Pairs::default();
        pairs.set(SERIAL, Value::Word(self.serial.to_string()));
        pairs.set(TIME, Value::Word(self.time.to_rfc3339()));
        let mut text = line(FIRST, &pairs);
        for service in &self.absent {
            let mut pairs = Pairs::default();
            pairs.set(SERVICE, service.to_value());
            text.push_str(&line(ABSENT, &pairs));
        }
        text.push_str(&written(&self.archives));
        let signature = signature_line(text.as_bytes(), key);
        text.push_str(&signature);
        text
    }

    /// Reads a list that was signed with the secret key to this one. Its Archives may have any address.
    ///
    /// # Errors
    /// It was signed with another key, or is not a list.
    pub fn verified(bytes: &[u8], key: &PublicKey) -> Result<SignedList, SignedListError> {
        if bytes.len() > LONGEST_LIST {
            return Err(SignedListError::Long);
        }
        let last = bytes.trim_ascii_end();
        let end = last
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let (text, last) = last.split_at(end);
        let signature = last.strip_prefix(SIGNATURE.as_bytes());
        let signature = signature.ok_or(SignedListError::Unsigned)?;
        if !key.has_signed(&[CONTEXT, text].concat(), signature) {
            return Err(SignedListError::Signature);
        }
        SignedList::read(text)
    }

    fn read(text: &[u8]) -> Result<SignedList, SignedListError> {
        let mut lines = text.split(|byte| *byte == b'\n');
        let first = lines.next().and_then(|line| pairs(line, FIRST));
        let word = |name: &str| Some(first.as_ref()?.get(name)?.to_string());
        let serial = word(SERIAL).and_then(|serial| serial.parse().ok());
        let time = word(TIME).and_then(|time| Timestamp::parse_rfc3339(&time).ok());
        let absent = lines.filter_map(|line| pairs(line, ABSENT));
        let absent = absent.filter_map(|pairs| Names::from_value(pairs.get(SERVICE)?).ok());
        Ok(SignedList {
            serial: serial.ok_or(SignedListError::Unsigned)?,
            time: time.ok_or(SignedListError::Unsigned)?,
            absent: absent.collect(),
            archives: parse(text, Admitted::All).map_err(SignedListError::List)?,
        })
    }
}

/// The last line of a list, whose lines before it are this text.
#[must_use]
pub fn signature_line(text: &[u8], key: &SigningKey) -> String {
    let signature = key.sign(&[CONTEXT, text].concat());
    format!("{SIGNATURE}{signature}\n")
}

fn line(begin: &str, pairs: &Pairs) -> String {
    let text = pairs.to_string();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    format!("{begin}{}\n", words.join(" "))
}

fn pairs(line: &[u8], begin: &str) -> Option<Pairs> {
    Pairs::parse(line.strip_prefix(begin.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "archiveaddress a.example.org ibi.archiveservice {rep example.org/a/2020/01.01.01.01}\n";

    fn key(number: u8) -> SigningKey {
        SigningKey::of_seed(&[number; 32]).expect("a key")
    }

    fn list() -> SignedList {
        let absent = ibi::Ibi::parse("example.org/b/2020/01.01.01.01").expect("a rep");
        SignedList {
            serial: 1_795_500_000,
            time: Timestamp::from_unix(1_795_500_000, 0),
            absent: vec![Names::from(absent)],
            archives: parse(LIST.as_bytes(), Admitted::All).expect("a list"),
        }
    }

    #[test]
    fn a_signed_list_is_a_list() {
        let text = list().signed(&key(1));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "# signed serial 1795500000 time 2026-11-24T06:00:00Z"
        );
        assert_eq!(
            lines[1],
            "# absent ibi.archiveservice {rep example.org/b/2020/01.01.01.01}"
        );
        assert_eq!(lines[2], LIST.trim_end());
        assert!(lines[3].starts_with(SIGNATURE) && lines.len() == 4);
        assert_eq!(
            parse(text.as_bytes(), Admitted::Public),
            Ok(list().archives)
        );
        let public = key(1).public();
        assert_eq!(SignedList::verified(text.as_bytes(), &public), Ok(list()));
        let empty = SignedList {
            absent: Vec::new(),
            archives: Vec::new(),
            ..list()
        };
        let text = empty.signed(&key(1));
        assert_eq!(SignedList::verified(text.as_bytes(), &public), Ok(empty));
    }

    #[test]
    fn what_the_peer_has_not_signed_is_refused() {
        let text = list().signed(&key(1));
        let public = key(1).public();
        let refused = |bytes: &[u8]| SignedList::verified(bytes, &public).expect_err("refused");
        let other = SignedList::verified(text.as_bytes(), &key(2).public());
        assert_eq!(other, Err(SignedListError::Signature));
        for at in 0..text.trim_end().len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let error = refused(&bytes);
            let is_refused = matches!(
                error,
                SignedListError::Signature | SignedListError::Unsigned
            );
            assert!(is_refused, "{at}: {error}");
        }
        assert_eq!(refused(LIST.as_bytes()), SignedListError::Unsigned);
        assert_eq!(refused(b""), SignedListError::Unsigned);
        assert_eq!(refused(b"# signature "), SignedListError::Unsigned);
        assert_eq!(
            refused(&vec![b' '; LONGEST_LIST + 1]),
            SignedListError::Long
        );
        // A line more, before the signature and after it.
        let more = text.replacen(LIST, &format!("{LIST}#\n"), 1);
        assert_eq!(refused(more.as_bytes()), SignedListError::Signature);
        assert_eq!(
            refused(format!("{text}{LIST}").as_bytes()),
            SignedListError::Unsigned
        );
        // Signed by the peer, and no list.
        let sign = |text: &str| {
            let signature = signature_line(text.as_bytes(), &key(1));
            format!("{text}{signature}")
        };
        assert_eq!(refused(sign("x\n").as_bytes()), SignedListError::Unsigned);
        assert_eq!(
            refused(sign("# signed serial -1 time x\n").as_bytes()),
            SignedListError::Unsigned
        );
        let first = text.lines().next().expect("a line");
        let error = refused(sign(&format!("{first}\nx y\n")).as_bytes());
        assert!(matches!(error, SignedListError::List(_)), "{error}");
    }
}
