//! Bytes as hexadecimal digits.

use std::fmt;

/// Prints bytes as pairs of lower-case hexadecimal digits, without separators.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The value of a hexadecimal digit in either case.
pub fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (&[0], "00"),
            (&[0x0f, 0xf0, 0xff], "0ff0ff"),
            (b"az", "617a"),
        ] {
            assert_eq!(Hex(bytes).to_string(), expected);
        }
        assert_eq!(
            ["0", "9", "a", "F", "g", "/"].map(|it| digit(it.as_bytes()[0])),
            [Some(0), Some(9), Some(10), Some(15), None, None]
        );
    }
}
