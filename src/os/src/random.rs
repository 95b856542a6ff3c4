//! Random numbers of the system: getrandom(2), the only source for tokens, keys and names.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// The source that error messages name.
pub const SOURCE: &str = "/dev/urandom";

/// Random bytes, suitable for secrets.
///
/// # Errors
/// The system returns none, see getrandom(2). The caller must report this: a guessable token is worse
/// than none.
pub fn draw<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_filled_and_differ_each_time() {
        // More than getrandom(2) returns at once when a signal arrives (256 bytes).
        let draw_many = || draw::<1000>().expect("the system has random numbers");
        let (first, second) = (draw_many(), draw_many());
        assert_ne!(first, second);
        assert!(first[900..].iter().any(|byte| *byte != 0));
        assert_eq!(draw::<0>(), Ok([]));
    }
}
