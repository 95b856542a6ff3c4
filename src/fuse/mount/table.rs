//! The system's table of mounts, as this process sees it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
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
    /// The filesystem's device, as two numbers.
    pub(super) device: String,
    /// What of the filesystem is mounted there.
    pub(super) root: PathBuf,
}

impl Mounted {
    /// Whether it is an ibifs mount.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs"
    }

    /// How files are read and written there, as its daemon says; None where it does not answer.
    pub fn data(&self) -> Option<String> {
        let mut text = vec![0; 1024];
        let length =
            rustix::fs::getxattr(&self.mount_point, crate::fuse::fs::DATA, &mut text).ok()?;
        text.truncate(length);
        String::from_utf8(text).ok()
    }
}

/// What is mounted, as this process sees it.
pub fn mounts() -> Vec<Mounted> {
    read_table("self").unwrap_or_default()
}

/// What is mounted, as another process sees it; None where we may not know.
pub(super) fn mounts_of(pid: u32) -> Option<Vec<Mounted>> {
    read_table(&pid.to_string())
}

fn read_table(process: &str) -> Option<Vec<Mounted>> {
    // Bytes, not text: somebody else's mount point may be called anything.
    let table = std::fs::read(format!("/proc/{process}/mountinfo")).ok()?;
    let lines = table.split(|byte| *byte == b'\n');
    Some(lines.filter_map(parse_mount).collect())
}

fn parse_mount(line: &[u8]) -> Option<Mounted> {
    // A blank within a word is written otherwise.
    let mut words = line.split(|byte| *byte == b' ');
    let device = words.nth(2)?;
    let root = words.next()?;
    let mount_point = words.next()?;
    let mut after = words.skip_while(|word| *word != b"-").skip(1);
    Some(Mounted {
        device: String::from_utf8_lossy(device).into_owned(),
        root: unescape(root),
        mount_point: unescape(mount_point),
        kind: String::from_utf8_lossy(after.next()?).into_owned(),
        source: unescape(after.next()?),
    })
}

/// The table writes space, tab, line end and backslash as three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text;
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
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_table_is_read_with_its_escapes() {
        let line = b"36 35 0:42 / /mnt/a\\040b rw,nosuid shared:1 - fuse.ibifs /store\\134x rw";
        let mounted = parse_mount(line).expect("a good line");
        assert_eq!(mounted.mount_point, PathBuf::from("/mnt/a b"));
        assert_eq!(
            (&*mounted.device, &*mounted.root),
            ("0:42", std::path::Path::new("/"))
        );
        assert_eq!(mounted.source, PathBuf::from("/store\\x"));
        assert!(mounted.is_ours());
    }
}
