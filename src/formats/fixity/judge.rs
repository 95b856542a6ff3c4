//! What it means that a file has this digest now.

use super::{Digest, Note, Written};

/// What a file is, beside what is recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds what it held.
    Same,
    /// Nothing was recorded of it.
    New,
    /// It has been written since.
    Changed,
    /// It holds something else, and its time says that nobody has written it.
    Damaged,
    /// It holds what it held, and the manifest says something else.
    WrongManifest,
}

/// Judges a file by its line of the manifest, by what is noted beside that, and by what it is now.
///
/// The time of modification decides, not that of the inode: a copy of a store keeps the one and not
/// the other, and a file that is not what was copied is damaged. Whoever writes a file and sets
/// its time back is found so, too. Where nothing is noted, the worst is taken for true.
pub fn judge(
    known: Option<&Digest>,
    note: Option<&Note>,
    found: &Digest,
    written: &Written,
) -> Verdict {
    let Some(known) = known else {
        return Verdict::New;
    };
    if found == known {
        return Verdict::Same;
    }
    match note {
        Some(note) if note.digest == *found && note.written.as_ref() == Some(written) => {
            Verdict::WrongManifest
        }
        Some(note) if note.digest == *known && note.written.as_ref() != Some(written) => {
            Verdict::Changed
        }
        _ => Verdict::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Digest = Digest([1; 32]);
    const NOW: Digest = Digest([2; 32]);
    const THEN: Written = Written {
        size: 3,
        seconds: 4,
        nanoseconds: 5,
    };

    #[test]
    fn time_and_digest_decide() {
        let later = Written {
            nanoseconds: 6,
            ..THEN
        };
        let note = |digest, written| Some(Note { digest, written });
        let all = [
            (None, None, Verdict::New),
            (Some(NOW), None, Verdict::Same),
            (Some(NOW), note(OLD, Some(THEN)), Verdict::Same),
            (Some(OLD), None, Verdict::Damaged),
            (Some(OLD), note(OLD, Some(THEN)), Verdict::Damaged),
            (Some(OLD), note(OLD, Some(later)), Verdict::Changed),
            (Some(OLD), note(OLD, None), Verdict::Changed),
            (Some(OLD), note(NOW, Some(THEN)), Verdict::WrongManifest),
            (Some(OLD), note(NOW, Some(later)), Verdict::Damaged),
            (
                Some(OLD),
                note(Digest([3; 32]), Some(THEN)),
                Verdict::Damaged,
            ),
        ];
        for (known, note, expected) in all {
            let verdict = judge(known.as_ref(), note.as_ref(), &NOW, &THEN);
            assert_eq!(verdict, expected, "{known:?} {note:?}");
        }
    }
}
