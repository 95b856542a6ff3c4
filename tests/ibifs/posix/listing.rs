//! Reading a directory as the kernel gives it: in parts, with where each entry ends.

use super::system::{room, sys};

/// A name in a directory.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub bytes: Vec<u8>,
    pub kind: u8,
    pub inode: u64,
    /// The position of the next entry, for seeking.
    pub next: i64,
}

/// One call's worth of entries; none at the end.
pub fn part(directory: i64, size: i64) -> Result<Vec<Entry>, i32> {
    let mut buffer = vec![0u8; size as usize];
    let count = sys!(SYS_getdents64, directory, room(&mut buffer[..]), size)? as usize;
    let mut entries = Vec::new();
    let mut at = 0;
    while at < count {
        let number = |from: usize| {
            let bytes = buffer[at + from..at + from + 8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let length = usize::from(buffer[at + 16]) | usize::from(buffer[at + 17]) << 8;
        let name = &buffer[at + 19..at + length];
        let end = name.iter().position(|byte| *byte == 0);
        let bytes = name[..end.unwrap_or(name.len())].to_vec();
        entries.push(Entry {
            name: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
            kind: buffer[at + 18],
            inode: number(0),
            next: number(8) as i64,
        });
        at += length;
    }
    Ok(entries)
}

/// All entries from where the directory stands, save `.` and `..`.
pub fn list(directory: impl Into<i64>, size: i64) -> Result<Vec<Entry>, i32> {
    let directory = directory.into();
    let mut all = Vec::new();
    loop {
        let entries = part(directory, size)?;
        if entries.is_empty() {
            break;
        }
        all.extend(entries);
    }
    all.retain(|entry| !is_dots(entry));
    Ok(all)
}

/// Whether it is `.` or `..`.
pub fn is_dots(entry: &Entry) -> bool {
    entry.name == "." || entry.name == ".."
}
