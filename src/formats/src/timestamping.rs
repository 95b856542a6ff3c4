//! The request for a time stamp of a digest (RFC 3161), and its answer as far as it is read here: whether it is one of this
//! request. Its signature is for others to check, such as `openssl ts -verify`.

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ring::digest::{SHA256, digest};

/// The media type of a request.
pub const QUERY_TYPE: &str = "application/timestamp-query";

/// The tags of DER that are used here.
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// The algorithm SHA-256.
const ALGORITHM: [u8; 15] = [
    SEQUENCE, 13, 0x06, 9, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
];

/// A request for a stamp of a SHA-256 digest, with the certificate of who stamps.
#[derive(Clone, Debug)]
pub struct StampRequest {
    digest: Vec<u8>,
    nonce: Vec<u8>,
}

/// The reason why an answer is no stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampError {
    /// It is no answer of RFC 3161.
    Form,
    /// The authority refuses, with this status.
    Refused(u8),
    /// It is a stamp of something else.
    Other,
}

impl Localize for StampError {
    fn message(&self) -> Message {
        match self {
            StampError::Form => {
                message!("the answer is none of a time stamping authority (RFC 3161)")
            }
            StampError::Refused(status) => {
                message!(
                    "the time stamping authority refuses, with status {status}",
                    status
                )
            }
            StampError::Other => message!("the time stamp is not that of this request"),
        }
    }
}

display_message!(StampError);

impl std::error::Error for StampError {}

impl StampRequest {
    /// A request for a stamp of some bytes, with a random number that its answer repeats.
    #[must_use]
    pub fn new(stamped: &[u8], random: [u8; 8]) -> StampRequest {
        let mut nonce = random;
        // A positive number, in its shortest form.
        nonce[0] = nonce[0] & 0x7f | 0x40;
        StampRequest {
            digest: element(OCTETS, digest(&SHA256, stamped).as_ref()),
            nonce: element(INTEGER, &nonce),
        }
    }

    /// The request in DER.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        let imprint = element(SEQUENCE, &[&ALGORITHM, &self.digest[..]].concat());
        let (version, wants_certificate) = ([INTEGER, 1, 1], [0x01, 1, 0xff]);
        let parts = [&version[..], &imprint, &self.nonce, &wants_certificate];
        element(SEQUENCE, &parts.concat())
    }

    /// Checks that an answer has a stamp, and one of this request.
    ///
    /// # Errors
    /// It has none, or another one.
    pub fn check(&self, answer: &[u8]) -> Result<(), StampError> {
        let form = StampError::Form;
        let (whole, rest) = content(SEQUENCE, answer).ok_or(form)?;
        let (status, token) = content(SEQUENCE, whole).ok_or(form)?;
        let (status, _) = content(INTEGER, status).ok_or(form)?;
        match status {
            [0 | 1] => {}
            [status] => return Err(StampError::Refused(*status)),
            _ => return Err(form),
        }
        let (_, after) = content(SEQUENCE, token).ok_or(form)?;
        if !rest.is_empty() || !after.is_empty() {
            return Err(form);
        }
        let has = |part: &[u8]| token.windows(part.len()).any(|window| window == part);
        if has(&self.digest) && has(&self.nonce) {
            Ok(())
        } else {
            Err(StampError::Other)
        }
    }
}

/// An element of at most 127 bytes.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, content.len() as u8], content].concat()
}

/// The content of an element at the beginning of some bytes, and what follows it.
fn content(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long - 0x80))?;
            let length = digits.iter().fold(0, |sum, it| sum << 8 | usize::from(*it));
            (length, rest)
        }
        _ => return None,
    };
    (*first == tag).then_some(rest.split_at_checked(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with a status and a token of these parts.
    fn answer(status: u8, parts: &[&[u8]]) -> Vec<u8> {
        let status = element(SEQUENCE, &element(INTEGER, &[status]));
        let token = element(SEQUENCE, &parts.concat());
        element(SEQUENCE, &[status, token].concat())
    }

    #[test]
    fn a_request_has_its_digest_and_a_positive_number() {
        let der = StampRequest::new(b"x", [0xff; 8]).to_der();
        assert_eq!((der.len(), &der[..5]), (69, &[0x30, 67, 2, 1, 1][..]));
        assert_eq!(
            &der[der.len() - 13..],
            [2, 8, 0x7f, 255, 255, 255, 255, 255, 255, 255, 1, 1, 255]
        );
        let der = StampRequest::new(b"x", [0; 8]).to_der();
        assert_eq!(der[der.len() - 11], 0x40);
    }

    #[test]
    fn an_answer_is_that_of_its_request() {
        let request = StampRequest::new(b"x", [1; 8]);
        let (digest, nonce) = (&request.digest[..], &request.nonce[..]);
        let whole = answer(0, &[digest, nonce]);
        assert_eq!(request.check(&whole), Ok(()));
        assert_eq!(request.check(&answer(1, &[nonce, digest])), Ok(()));
        assert_eq!(
            request.check(&answer(2, &[digest, nonce])),
            Err(StampError::Refused(2))
        );
        assert_eq!(request.check(&answer(0, &[nonce])), Err(StampError::Other));
        assert_eq!(request.check(&answer(0, &[digest])), Err(StampError::Other));
        for end in 0..whole.len() {
            assert_eq!(request.check(&whole[..end]), Err(StampError::Form), "{end}");
        }
        let longer = [&whole[..], b"x"].concat();
        for wrong in [
            &longer[..],
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x83\xff\xff\xff",
            b"\x30\x80",
        ] {
            assert_eq!(request.check(wrong), Err(StampError::Form));
        }
        // A refusal has no token.
        let refusal = element(SEQUENCE, &element(SEQUENCE, &element(INTEGER, &[2])));
        assert_eq!(request.check(&refusal), Err(StampError::Refused(2)));
    }
}
