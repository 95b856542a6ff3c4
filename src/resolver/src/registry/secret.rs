//! Hashes of keys and passwords (argon2id): enough to check a secret, too little to recover it.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use super::RegistryError;

/// The hash that [`is_of_nothing`] compares with. None if it cannot be computed.
static OF_NOTHING: LazyLock<Option<String>> = LazyLock::new(|| kept("").ok());

/// The hash of a secret.
pub(super) fn kept(secret: &str) -> Result<String, RegistryError> {
    let hash = Argon2::default().hash_password(secret.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(RegistryError::Hash)
}

/// Whether a secret has this hash.
pub(super) fn is_of(secret: &str, kept: &str) -> bool {
    PasswordHash::new(kept).is_ok_and(|kept| {
        Argon2::default()
            .verify_password(secret.as_bytes(), &kept)
            .is_ok()
    })
}

/// Takes as long as [`is_of`] for a wrong secret.
pub(super) fn is_of_nothing(secret: &str) {
    if let Some(kept) = OF_NOTHING.as_deref() {
        std::hint::black_box(is_of(secret, kept));
    }
}

/// Computes the hash that [`is_of_nothing`] compares with, which would otherwise delay its first call.
pub(super) fn prepare() {
    LazyLock::force(&OF_NOTHING);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_again_and_not_kept() {
        let first = kept("12xY3z").expect("a hash");
        assert!(first.starts_with("$argon2id$") && !first.contains("12xY3z"));
        assert!(is_of("12xY3z", &first) && !is_of("12xY3Z", &first));
        assert_ne!(kept("12xY3z").expect("a hash"), first);
        assert!(!is_of("12xY3z", "12xY3z"));
    }
}
