//! The table of mounts, `/proc/PID/mountinfo`: see proc_pid_mountinfo(5).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::system_files;

/// One line of the table of mounts.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// The mount point.
    pub mount_point: PathBuf,
    /// The source: a device, or the store of a mounted store.
    pub source: PathBuf,
    /// The filesystem type.
    pub kind: String,
    /// The filesystem's device, as `MAJOR:MINOR`.
    pub device: String,
    /// The directory of the filesystem that is mounted there.
    pub root: PathBuf,
    /// Whether the filesystem as a whole is read-only, not just this mount of it.
    pub is_fixed: bool,
    /// The user who mounted a FUSE filesystem.
    pub user: Option<u32>,
}

impl Mounted {
    /// Whether root or the user of this process has mounted it. Other users give their mounts any type and source, and
    /// answer or not: nothing of theirs counts, and nothing in them is opened without being asked for.
    pub fn is_trusted(&self) -> bool {
        self.user.is_some_and(is_trusted)
    }

    /// Returns whether another user has mounted it by FUSE.
    pub fn is_of_another(&self) -> bool {
        self.user.is_some_and(|user| !is_trusted(user))
    }

    /// Returns whether it is an ibifs mount of root or of this user.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs" && self.is_trusted()
    }

    /// Returns whether it is a mount of items of other Archives, of root or of this user.
    pub fn is_world(&self) -> bool {
        self.kind == "fuse.ibifs-world" && self.is_trusted()
    }

    /// The ibifs mount that contains a canonical path.
    pub fn containing(path: &Path) -> Option<Mounted> {
        mounts()
            .into_iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.as_os_str().len())
            .filter(Mounted::is_ours)
    }
}

/// Returns whether a user is root, or the one of this process.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// The mounts that this process sees; empty where `/proc` cannot be read.
pub fn mounts() -> Vec<Mounted> {
    read_table("self").unwrap_or_default()
}

/// The mounts that another process sees; None where they cannot be read.
pub fn mounts_of(pid: u32) -> Option<Vec<Mounted>> {
    read_table(&pid.to_string())
}

fn read_table(process: &str) -> Option<Vec<Mounted>> {
    // Bytes, not text: another user's mount point may have any name.
    let table = system_files::read(format!("/proc/{process}/mountinfo")).ok()?;
    let lines = table.split(|byte| *byte == b'\n');
    Some(lines.filter_map(parse).collect())
}

/// Parses a line such as `36 35 8:1 / /mnt rw shared:1 - ext4 /dev/sda1 ro,errors=continue`. The number of
/// words before the `-` varies; the last word has the options of the filesystem itself.
fn parse(line: &[u8]) -> Option<Mounted> {
    // A space within a word is escaped.
    let mut words = line.split(|byte| *byte == b' ');
    let device = words.nth(2)?;
    let root = words.next()?;
    let mount_point = words.next()?;
    let mut after = words.skip_while(|word| *word != b"-").skip(1);
    let (kind, source) = (after.next()?, after.next()?);
    let options = after.next().unwrap_or_default();
    let mut options = options.split(|byte| *byte == b',');
    let user = options
        .clone()
        .find_map(|option| option.strip_prefix(b"user_id="))
        .and_then(|user| std::str::from_utf8(user).ok()?.parse().ok());
    Some(Mounted {
        device: String::from_utf8_lossy(device).into_owned(),
        root: unescape(root),
        mount_point: unescape(mount_point),
        kind: String::from_utf8_lossy(kind).into_owned(),
        source: unescape(source),
        is_fixed: options.any(|option| option == b"ro"),
        user,
    })
}

/// Decodes space, tab, line end and backslash, which the table has as three octal digits.
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
    fn a_line_is_read_with_its_escapes() {
        let line = b"36 35 0:42 / /mnt/a\\040b rw,nosuid shared:1 - fuse.ibifs /store\\134x rw";
        let mounted = parse(line).expect("a good line");
        assert_eq!(mounted.mount_point, PathBuf::from("/mnt/a b"));
        assert_eq!(
            (&*mounted.device, &*mounted.root),
            ("0:42", std::path::Path::new("/"))
        );
        assert_eq!(mounted.source, PathBuf::from("/store\\x"));
        assert_eq!(mounted.kind, "fuse.ibifs");
    }

    #[test]
    fn mounts_of_root_and_of_this_user_are_trusted() {
        let own = rustix::process::geteuid().as_raw();
        for (options, expected) in [
            ("rw,user_id=0,group_id=0".to_owned(), (true, false)),
            (
                format!("rw,user_id={own},group_id=0,allow_other"),
                (true, false),
            ),
            (format!("rw,user_id={},group_id=0", own + 1), (false, true)),
            ("rw".to_owned(), (false, false)),
        ] {
            let line = format!("36 35 0:42 / /m rw - fuse.ibifs /store {options}");
            let mounted = parse(line.as_bytes()).expect("a good line");
            let found = (mounted.is_trusted(), mounted.is_of_another());
            assert_eq!(found, expected, "{options}");
        }
    }

    #[test]
    fn a_read_only_filesystem_is_distinguished_from_a_read_only_mount() {
        let is_fixed = |line: &[u8]| parse(line).expect("a good line").is_fixed;
        assert!(is_fixed(
            b"1 2 8:1 / /m ro - ext4 /dev/sda1 ro,errors=continue"
        ));
        assert!(!is_fixed(
            b"1 2 8:1 / /m ro - ext4 /dev/sda1 rw,errors=remount-ro"
        ));
        assert!(!is_fixed(
            b"1 2 8:1 / /m ro shared:7 master:3 - ext4 /dev/sda1"
        ));
    }

    #[test]
    fn a_line_that_is_cut_short_is_passed_over() {
        for line in [
            &b""[..],
            b"36 35 8:1 / /mnt rw",
            b"36 35 8:1 / /mnt rw - ext4",
        ] {
            assert!(parse(line).is_none());
        }
        assert!(!mounts().is_empty());
    }

    #[test]
    fn a_mount_is_ours_by_its_type() {
        for (kind, expected) in [("fuse.ibifs", true), ("fuse", false), ("fuse.sshfs", false)] {
            let mounted = Mounted {
                mount_point: "/m".into(),
                source: "/store".into(),
                kind: kind.to_owned(),
                device: "0:42".to_owned(),
                root: "/".into(),
                is_fixed: false,
                user: Some(0),
            };
            assert_eq!(mounted.is_ours(), expected);
        }
    }
}
