//! The record of a file or directory in a zip file (PKWARE APPNOTE.TXT 6.3.10; the extra field `UT` of
//! Info-ZIP's `proginfo/extrafld.txt`).

use std::io::Write;

use rawzip::extra_fields::ExtraFieldId;
use rawzip::path::EntryPath;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, DataDescriptorOutput, Header, ZipArchiveWriter, ZipEntryWriter};

use super::error::ZipError;
use ibi::Timestamp;

/// `S_IFREG` and `S_IFDIR`: the file types in the attributes of an entry.
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
/// Bit 11 of the flags of an entry: its name is UTF-8.
const UTF_8: u16 = 1 << 11;
/// The position of the flags in the header before an entry, and in its header in the list at the end.
const LOCAL_FLAGS: usize = 6;
const CENTRAL_FLAGS: usize = 8;
/// The position in a header in the list of the lengths of the name and of two more fields, and the length
/// without them.
const CENTRAL_LENGTHS: usize = 28;
const CENTRAL_LENGTH: usize = 46;

/// Whether a name has the flag for UTF-8. A name in ASCII needs none. A name that is not UTF-8 is written as it
/// is, without the flag, as Info-ZIP's `zip` does on Unix; `unzip` there gives it back unchanged.
///
/// The library sets the flag only together with a change of some names, such as one with a colon. So all
/// names are written as they are, and the flag is set by [`flag_local`] and [`flag_central`].
pub(super) fn is_flagged(name: &[u8]) -> bool {
    !name.is_ascii() && std::str::from_utf8(name).is_ok()
}

fn set_flag(headers: &mut [u8], at: usize) {
    if let Some([low, high]) = headers.get_mut(at..at + 2) {
        [*low, *high] = (u16::from_le_bytes([*low, *high]) | UTF_8).to_le_bytes();
    }
}

/// Sets the flag in the header before an entry.
pub(super) fn flag_local(header: &mut [u8]) {
    set_flag(header, LOCAL_FLAGS);
}

/// Sets the flags in the list at the end, whose headers are in the order of `flagged`.
pub(super) fn flag_central(list: &mut [u8], flagged: &[bool]) {
    let mut at = 0;
    for is_flagged in flagged {
        let length = |number: usize| {
            let field = at + CENTRAL_LENGTHS + 2 * number;
            match list.get(field..field + 2) {
                Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
                _ => 0,
            }
        };
        let next = at + CENTRAL_LENGTH + length(0) + length(1) + length(2);
        if *is_flagged {
            set_flag(list, at + CENTRAL_FLAGS);
        }
        at = next;
    }
}

/// The extended timestamp: bit 0 stands for the time of the last change, in Unix seconds.
fn timestamp(seconds: i64) -> [u8; 5] {
    let seconds = u32::try_from(seconds.max(0)).unwrap_or(u32::MAX);
    let [a, b, c, d] = seconds.to_le_bytes();
    [1, a, b, c, d]
}

/// The facts that an entry states of a file or directory.
pub(super) struct Attributes {
    /// Its last change.
    pub(super) changed: Timestamp,
    /// Its permissions, as `chmod` has them.
    pub(super) permissions: u32,
}

/// Writes a directory.
pub(super) fn directory(
    archive: &mut ZipArchiveWriter<impl Write>,
    path: &[u8],
    found: &Attributes,
) -> Result<(), ZipError> {
    let seconds = found.changed.seconds();
    archive
        .new_dir(EntryPath::verbatim(path))
        .last_modified(UtcDateTime::from_unix(seconds))
        .unix_permissions(DIRECTORY | found.permissions)
        .extra_field(
            ExtraFieldId::EXTENDED_TIMESTAMP,
            &timestamp(seconds),
            Header::LOCAL,
        )?
        .create()?;
    Ok(())
}

/// Begins a file of this length. Its bytes are written next, as they are, and then [`end`] is called.
pub(super) fn begin<'a, W: Write>(
    archive: &'a mut ZipArchiveWriter<W>,
    path: &[u8],
    found: &Attributes,
    length: u64,
) -> Result<ZipEntryWriter<'a, W>, ZipError> {
    let seconds = found.changed.seconds();
    let mut entry = archive
        .new_file(EntryPath::verbatim(path))
        .compression_method(CompressionMethod::STORE)
        .last_modified(UtcDateTime::from_unix(seconds))
        .unix_permissions(REGULAR | found.permissions)
        .extra_field(
            ExtraFieldId::EXTENDED_TIMESTAMP,
            &timestamp(seconds),
            Header::LOCAL,
        )?;
    if length >= u64::from(u32::MAX) {
        // For a program that reads while it receives: the lengths after the bytes have 64 bits.
        entry = entry.extra_field(ExtraFieldId::ZIP64, &[0; 16], Header::LOCAL)?;
    }
    let (entry, _) = entry.start()?;
    Ok(entry)
}

/// Ends a file with this checksum.
pub(super) fn end<W: Write>(
    entry: ZipEntryWriter<'_, W>,
    checksum: u32,
    length: u64,
) -> Result<(), ZipError> {
    entry.finish(DataDescriptorOutput::new(checksum, length))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(names: &[&[u8]]) -> (Vec<u8>, usize) {
        let attributes = Attributes {
            changed: Timestamp::from_unix(0, 0),
            permissions: 0o644,
        };
        let mut archive = ZipArchiveWriter::new(Vec::new());
        for name in names {
            let entry = begin(&mut archive, name, &attributes, 0).expect("an entry");
            end(entry, 0, 0).expect("its end");
        }
        let start = usize::try_from(archive.stream_offset()).expect("short");
        (archive.finish().expect("a zip file"), start)
    }

    #[test]
    fn names_are_written_as_they_are() {
        let names: [&[u8]; 5] = [
            b"a:b\\c",
            "Título: a".as_bytes(),
            b"Relat\xf3rio",
            "\u{1f5c4}".as_bytes(),
            b"z",
        ];
        let (mut file, start) = names_of(&names);
        let flagged: Vec<bool> = names.iter().map(|name| is_flagged(name)).collect();
        assert_eq!(flagged, [false, true, false, true, false]);
        flag_central(&mut file[start..], &flagged);
        let read = rawzip::ZipArchive::from_slice(&file).expect("a zip file");
        let found: Vec<(Vec<u8>, bool)> = read
            .entries()
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_path().as_bytes().to_vec();
                (name, entry.flags().is_utf8())
            })
            .collect();
        let expected = names.iter().zip(&flagged);
        let expected: Vec<_> = expected
            .map(|(name, flag)| (name.to_vec(), *flag))
            .collect();
        assert_eq!(found, expected);
        flag_local(&mut file);
        assert_eq!(u16::from_le_bytes([file[6], file[7]]), UTF_8 | 8);
    }

    #[test]
    fn times_fit_the_field() {
        assert_eq!(timestamp(-1), [1, 0, 0, 0, 0]);
        assert_eq!(timestamp(0x0102_0304), [1, 4, 3, 2, 1]);
        assert_eq!(timestamp(i64::MAX), [1, 255, 255, 255, 255]);
    }
}
