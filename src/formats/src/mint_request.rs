//! The ioctl(2) by which `ibifs mint --count` asks the daemon of a mount for further items, on the directory of one that it has
//! just minted: the number of items in, the names of those that were minted out.

use crate::item::Names;
use ibi::{Ibi, Ibip, Rep};

/// The bytes of question and answer.
pub const SIZE: usize = 8192;
/// The number of the request: it reads and writes [`SIZE`] bytes.
pub const COMMAND: u32 = 3 << 30 | (SIZE as u32) << 16 | (b'i' as u32) << 8 | 0xb1;
/// The most items of one request.
pub const MOST: usize = 32;
/// The bytes by which the names of items of one Archive differ at most, and what is between them.
const SLACK: usize = 64;

/// The question for so many items.
#[must_use]
pub fn question(count: usize) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let count = u32::try_from(count.min(MOST)).unwrap_or_default();
    bytes[..4].copy_from_slice(&count.to_ne_bytes());
    bytes
}

/// The number of items of a question, at most as many as the answer has room for, by the names of one. None for what is no
/// question.
#[must_use]
pub fn parse_question(bytes: &[u8], like: &Names) -> Option<usize> {
    let count = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
    let room = SIZE / (line(like).len() + SLACK);
    Some(count.min(MOST).min(room.max(1)))
}

fn line(names: &Names) -> String {
    let rep = names.rep().map_or("-", Rep::as_str);
    let ibip = names.ibip().map_or("-", Ibip::as_str);
    format!("{rep} {ibip}\n")
}

/// The answer with the names of these items.
#[must_use]
pub fn answer(all: &[Names]) -> Vec<u8> {
    let mut bytes = all.iter().map(line).collect::<String>().into_bytes();
    bytes.resize(bytes.len().max(SIZE), 0);
    bytes
}

/// Parses an answer; None for other bytes.
#[must_use]
pub fn parse_answer(bytes: &[u8]) -> Option<Vec<Names>> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()?;
    let names = |line: &str| {
        let forms = line.split(' ').filter(|form| *form != "-");
        let forms: Result<Vec<Ibi>, _> = forms.map(Ibi::parse).collect();
        Names::collect(forms.ok()?)
    };
    text.strip_suffix('\n')?.split('\n').map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        let forms = text.split(' ').map(|form| Ibi::parse(form).expect(form));
        Names::collect(forms).expect(text)
    }

    #[test]
    fn questions_and_answers_are_read_as_written() {
        let one = names("sid.inpe.br/mtc-m18@80/2008/03.17.15.17 8JMKD3MGP8W/34PGRBS");
        for (asked, expected) in [(1, 1), (31, 31), (32, 32), (10_000, 32)] {
            assert_eq!(parse_question(&question(asked), &one), Some(expected));
        }
        assert_eq!(parse_question(&question(0), &one), None);
        assert_eq!(parse_question(&[1, 0], &one), None);
        let other = names("8JMKD3MGP8W/35MMLL8");
        let all = [one, other];
        assert_eq!(parse_answer(&answer(&all)).as_deref(), Some(&all[..]));
    }

    #[test]
    fn an_answer_has_room_for_what_is_asked() {
        let host = ["a".repeat(60).as_str(); 4].join(".");
        let long = names(&format!(
            "{host}/archive@65535/2026/11.28.23.34.54.123456789 8JMKD3MGP8W/34PGRBS"
        ));
        let count = parse_question(&question(32), &long).expect("a count");
        assert!((1..32).contains(&count), "{count}");
        assert_eq!(answer(&vec![long; count]).len(), SIZE);
    }

    #[test]
    fn other_answers_are_none() {
        for bytes in [
            &b""[..],
            b"\0",
            b"a b\n\0",
            b"\xff\n\0",
            b"8JMKD3MGP8W/35MMLL8",
            b"- -\n",
        ] {
            assert_eq!(parse_answer(bytes), None, "{bytes:?}");
        }
    }
}
