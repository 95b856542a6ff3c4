//! The keys with which resolvers sign their lists: Ed25519 (RFC 8032).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use ibi::message::{Localize, Message};
use ibi::{Quoted, display_message, message};

/// The length of a key, in bytes.
const LENGTH: usize = 32;

/// The key that verifies the lists of a resolver.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; LENGTH]);

/// The secret key of a resolver.
pub struct SigningKey(Ed25519KeyPair);

/// The text is not a public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKeyError(String);

impl Localize for PublicKeyError {
    fn message(&self) -> Message {
        message!(
            "{text} is not the public key of a resolver; write the one that 'ibifs resolver key' prints there",
            text = Quoted(&self.0)
        )
    }
}

display_message!(PublicKeyError);

impl std::error::Error for PublicKeyError {}

impl PublicKey {
    /// Parses the text of a key.
    ///
    /// # Errors The text does not have the form of a key.
    pub fn parse(text: &str) -> Result<PublicKey, PublicKeyError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(PublicKey)
            .ok_or_else(|| PublicKeyError(text.to_owned()))
    }

    /// Whether a text in base64 is the signature of a message by the secret key to this one.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        key.verify(message, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SigningKey {
    /// The key of random bytes. None for another number of bytes.
    #[must_use]
    pub fn of_seed(seed: &[u8]) -> Option<SigningKey> {
        Ed25519KeyPair::from_seed_unchecked(seed)
            .ok()
            .map(SigningKey)
    }

    /// The key that verifies what this one signs.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; LENGTH];
        // Both have the same length.
        for (byte, of_key) in bytes.iter_mut().zip(self.0.public_key().as_ref()) {
            *byte = *of_key;
        }
        PublicKey(bytes)
    }

    /// The signature of a message, in base64.
    pub(super) fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(message))
    }
}

/// Does not print the key, which is a secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_standard() {
        // RFC 8032, 7.1, test 1.
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let seed: Vec<u8> = (0..seed.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&seed[at..at + 2], 16).expect("digits"))
            .collect();
        let key = SigningKey::of_seed(&seed).expect("a key");
        let public = key.public();
        assert_eq!(
            public.to_string(),
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        );
        assert_eq!(PublicKey::parse(&public.to_string()), Ok(public));
        let signature = key.sign(b"");
        assert!(public.has_signed(b"", signature.as_bytes()));
        assert!(!public.has_signed(b"x", signature.as_bytes()));
        assert!(!public.has_signed(b"", b"x"));
        assert!(SigningKey::of_seed(&seed[1..]).is_none());
        for bad in [
            "",
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR",
            "=",
            "\u{e9}",
        ] {
            assert!(PublicKey::parse(bad).is_err(), "{bad}");
        }
    }
}
