//! The meaning of a file's current digest.

use super::{Digest, Note, Written};

/// The state of a file, compared with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The content is unchanged.
    Same,
    /// The file is not recorded.
    New,
    /// The file has been written since.
    Changed,
    /// The content differs, but its time shows no write.
    Damaged,
    /// The content matches the note, but the manifest has another digest.
    WrongManifest,
}

/// Compares a file with its line of the manifest and the note beside that.
///
/// The modification time decides, not the time of the inode: a copy of a store preserves the former and not
/// the latter, and a file that differs from its original is damaged. This also finds a write after which the
/// time was set back. Without a note, damage is assumed.
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
