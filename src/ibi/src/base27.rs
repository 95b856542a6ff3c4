//! Numbers of any length from one base to another, and the 27 digits of an IBIp.
//!
//! Schoolbook arithmetic on digits, most significant first: the text of an IPv6 address in base 17 needs up to 160
//! bits, more than `u128` holds. Callers bound the length (at most 64 digits), so quadratic time does not matter. This
//! module does not know what a number stands for.

/// The digits from 0 to 26; `W` and `X` are separators, the other five letters are not used.
const DIGITS: &[u8; 27] = b"23456789ABCDEFGHJKLMNPQRSTU";

/// The value of one base 27 digit, in either case.
pub(super) fn value(character: char) -> Option<u8> {
    let upper = u8::try_from(character).ok()?.to_ascii_uppercase();
    let index = DIGITS.iter().position(|digit| *digit == upper)?;
    u8::try_from(index).ok()
}

/// Writes digits of base `from`, most significant first, in base `to`; no leading zeros, and zero has no digits.
pub(super) fn convert(digits: &[u8], from: u16, to: u16) -> Vec<u8> {
    let mut result: Vec<u8> = Vec::new(); // least significant first while it grows
    for digit in digits {
        let mut carry = u16::from(*digit);
        for place in &mut result {
            let sum = u16::from(*place) * from + carry;
            *place = (sum % to) as u8; // below `to`, which is at most 53
            carry = sum / to;
        }
        while carry > 0 {
            result.push((carry % to) as u8);
            carry /= to;
        }
    }
    result.reverse();
    result
}

/// Writes a number given by its digits of base `from` in base 27; zero is `2`.
pub(super) fn encode(digits: &[u8], from: u16) -> String {
    let converted = convert(digits, from, 27);
    if converted.is_empty() {
        return char::from(DIGITS[0]).to_string();
    }
    converted
        .iter()
        .filter_map(|digit| DIGITS.get(usize::from(*digit)))
        .map(|digit| char::from(*digit))
        .collect()
}

/// Writes a whole number in base 27.
pub(super) fn encode_number(number: u64) -> String {
    let decimal: Vec<u8> = number.to_string().bytes().map(|byte| byte - b'0').collect();
    encode(&decimal, 10)
}

/// Reads base 27 as digits of base `to`; anything that is not a base 27 digit makes it `None`.
pub(super) fn decode(text: &str, to: u16) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(value).collect();
    Some(convert(&digits?, 27, to))
}

/// Reads base 27 as a whole number; `None` when it is not one or does not fit.
pub(super) fn decode_number(text: &str) -> Option<u64> {
    text.chars().try_fold(0u64, |number, character| {
        number
            .checked_mul(27)?
            .checked_add(u64::from(value(character)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn number(decimal: &str, base27: &str) {
        let digits: Vec<u8> = decimal.bytes().map(|byte| byte - b'0').collect();
        assert_eq!(encode(&digits, 10), base27);
        let back: String = decode(base27, 10)
            .expect("base 27 digits")
            .iter()
            .map(|digit| char::from(digit + b'0'))
            .collect();
        assert_eq!(back, decimal.trim_start_matches('0'));
    }

    #[test]
    fn the_table_of_the_document() {
        number("0", "2");
        number("1", "3");
        number("19050", "U5H");
        number("480992662", "38G3TS3");
        number("4588904456580", "J8LNKAN8P");
        number("478239719325051908572237", "7URMDHLL9SSN2D89M");
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(encode_number(19050), "U5H");
        assert_eq!(decode_number("u5h"), Some(19050));
        assert_eq!(decode_number("U5W"), None);
        assert_eq!(decode_number(&encode_number(u64::MAX)), Some(u64::MAX));
        assert_eq!(decode_number(&"U".repeat(14)), None);
        assert_eq!(decode("IOVYZ", 10), None);
        assert_eq!(decode("é", 10), None);
    }

    #[test]
    fn every_length_reads_back() {
        for length in 1..=64 {
            for top in 1..27u8 {
                let digits: Vec<u8> = (0..length).map(|place| (top + place) % 27).collect();
                for base in [10, 11, 17] {
                    let there = convert(&digits, 27, base);
                    let trimmed: Vec<u8> = digits
                        .iter()
                        .copied()
                        .skip_while(|digit| *digit == 0)
                        .collect();
                    assert_eq!(convert(&there, base, 27), trimmed);
                }
            }
        }
    }
}
