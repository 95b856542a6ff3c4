//! The system's table of mounts, as this process sees it.

use std::path::PathBuf;

/// One line of the table of mounts.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// Where.
    pub mount_point: PathBuf,
    /// What: the store, for one of ours.
    pub source: PathBuf,
    /// The filesystem type.
    pub kind: String,
}

impl Mounted {
    /// Whether it is an ibifs mount.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs"
    }

    /// How files are read and written there, as its daemon says; None where it does not answer.
    pub fn data(&self) -> Option<String> {
        let mut text = vec![0; 1024];
        let length = rustix::fs::getxattr(&self.mount_point, crate::fs::DATA, &mut text).ok()?;
        text.truncate(length);
        String::from_utf8(text).ok()
    }
}

/// What is mounted, as this process sees it.
pub fn mounts() -> Vec<Mounted> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let mut after = right.split(' ');
    Some(Mounted {
        mount_point: PathBuf::from(unescape(left.split(' ').nth(4)?)),
        kind: after.next()?.to_owned(),
        source: PathBuf::from(unescape(after.next()?)),
    })
}

/// The table writes space, tab, line end and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_table_is_read_with_its_escapes() {
        let line = "36 35 0:42 / /mnt/a\\040b rw,nosuid shared:1 - fuse.ibifs /store\\134x rw";
        let mounted = parse_mount(line).expect("a good line");
        assert_eq!(mounted.mount_point, PathBuf::from("/mnt/a b"));
        assert_eq!(mounted.source, PathBuf::from("/store\\x"));
        assert!(mounted.is_ours());
    }
}
