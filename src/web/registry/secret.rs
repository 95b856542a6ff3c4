//! What is kept of a key or password: enough to know it again, too little to learn it (argon2id).

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use super::RegistryError;

/// What is kept of a secret that nothing has, made as all others are; None where nothing can be.
static OF_NOTHING: LazyLock<Option<String>> = LazyLock::new(|| kept("").ok());

/// What is kept of a secret.
pub(super) fn kept(secret: &str) -> Result<String, RegistryError> {
    let hash = Argon2::default().hash_password(secret.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(RegistryError::Hash)
}

/// Whether a secret is the one of which this was kept.
pub(super) fn is_of(secret: &str, kept: &str) -> bool {
    PasswordHash::new(kept).is_ok_and(|kept| {
        Argon2::default()
            .verify_password(secret.as_bytes(), &kept)
            .is_ok()
    })
}

/// Takes as long as to tell that a secret is not the one of which something was kept.
pub(super) fn is_of_nothing(secret: &str) {
    if let Some(kept) = OF_NOTHING.as_deref() {
        std::hint::black_box(is_of(secret, kept));
    }
}

/// Makes ready what [`is_of_nothing`] compares with, which else takes part of the first such call.
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
