//! The content of a row's directory: every path with its stat, xattrs and content.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use libc::{AT_FDCWD, AT_SYMLINK_NOFOLLOW};

use super::system::{errno_name, room, sys};

type Time = (i64, u32);

/// The answer of statx(2) for a file.
#[derive(Clone, Debug)]
pub struct Seen {
    pub mode: u32,
    pub links: u32,
    pub owner: u32,
    pub group: u32,
    pub size: u64,
    pub inode: u64,
    pub device: (u32, u32),
    pub blocks: u64,
    pub block_size: u32,
    pub mask: u32,
    pub attributes: u64,
    /// Of access, of content, of attributes.
    pub times: [Time; 3],
}

/// Looks at a path; flags are those of statx.
pub fn look(directory: i32, path: &CString, flags: i32) -> Result<Seen, i32> {
    // SAFETY: a structure of numbers, for which zeros are values.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
    sys!(SYS_statx, directory, *path, flags, mask, room(&mut stat))?;
    let time = |time: libc::statx_timestamp| (time.tv_sec, time.tv_nsec);
    Ok(Seen {
        mode: stat.stx_mode.into(),
        links: stat.stx_nlink,
        owner: stat.stx_uid,
        group: stat.stx_gid,
        size: stat.stx_size,
        inode: stat.stx_ino,
        device: (stat.stx_rdev_major, stat.stx_rdev_minor),
        blocks: stat.stx_blocks,
        block_size: stat.stx_blksize,
        mask: stat.stx_mask,
        attributes: stat.stx_attributes,
        times: [
            time(stat.stx_atime),
            time(stat.stx_mtime),
            time(stat.stx_ctime),
        ],
    })
}

/// Looks at an open file.
pub fn looked(descriptor: i32) -> Result<Seen, i32> {
    look(descriptor, &CString::default(), libc::AT_EMPTY_PATH)
}

impl Seen {
    fn kind(&self) -> &'static str {
        match self.mode & libc::S_IFMT {
            libc::S_IFREG => "reg",
            libc::S_IFDIR => "dir",
            libc::S_IFLNK => "link",
            libc::S_IFIFO => "fifo",
            libc::S_IFSOCK => "socket",
            libc::S_IFCHR => "char",
            _ => "block",
        }
    }

    /// Type, mode, owner, group, links, size, and of a device its number.
    pub fn shown(&self) -> String {
        let mut text = format!(
            "{} {:04o} {} {} n{} s{}",
            self.kind(),
            self.mode & 0o7777,
            self.owner,
            self.group,
            self.links,
            self.size
        );
        if self.device != (0, 0) {
            text.push_str(&format!(" {}:{}", self.device.0, self.device.1));
        }
        text
    }
}

/// The times of every file before the steps that are tested, by inode number.
pub type Before = BTreeMap<u64, [Time; 3]>;

/// Looks at every path of a row's directory, here the present one. The names are read from
/// `backing`, the same directory natively, so that the times of access stay as they are.
pub fn before(backing: &Path) -> Before {
    let mut found = Before::new();
    let mut waiting = vec![PathBuf::from(".")];
    while let Some(path) = waiting.pop() {
        let Ok(seen) = look(AT_FDCWD, &c_path(&path), AT_SYMLINK_NOFOLLOW) else {
            continue;
        };
        if seen.kind() == "dir" {
            let names = names(&backing.join(&path)).unwrap_or_default();
            waiting.extend(names.into_iter().map(|name| path.join(name)));
        }
        found.insert(seen.inode, seen.times);
    }
    found
}

/// Everything about every path of the present directory, a line each; and one more for a path of
/// which the mount reports otherwise than the store, the directory `backing`.
pub fn after(before: &Before, started: i64, backing: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![PathBuf::from(".")];
    while let Some(path) = waiting.pop() {
        let name = c_path(&path);
        let line = match look(AT_FDCWD, &name, AT_SYMLINK_NOFOLLOW) {
            Err(errno) => errno_name(errno),
            Ok(seen) => {
                if let Some(printed) = stale(&seen, &backing.join(&path)) {
                    let name = format!("{} beside the store", path.display());
                    found.insert(PathBuf::from(name), printed);
                }
                if seen.kind() == "dir" {
                    match names(&path) {
                        Ok(names) if names.len() > 100 => {}
                        Ok(names) => waiting.extend(names.iter().map(|name| path.join(name))),
                        Err(errno) => panic!("{}: {}", path.display(), errno_name(errno)),
                    }
                }
                let mut line = seen.shown();
                // A directory's size is the backing filesystem's business, and the same here.
                line.push_str(&times(&seen, before.get(&seen.inode), started));
                line.push_str(&extended(&name));
                line.push_str(&content(&name, &seen));
                line
            }
        };
        found.insert(path, line);
    }
    found
}

/// Returns the difference between the mount's report of a path and the store, whose changes the mount shows at once.
/// The access time is left out, because a look changes it.
fn stale(printed: &Seen, backing: &Path) -> Option<String> {
    let stored = look(AT_FDCWD, &c_path(backing), AT_SYMLINK_NOFOLLOW).ok()?;
    let mut words = Vec::new();
    if printed.shown() != stored.shown() {
        words.push(format!(
            "{}, in the store {}",
            printed.shown(),
            stored.shown()
        ));
    }
    for (at, letter) in [(1, "m"), (2, "c")] {
        if printed.times[at] != stored.times[at] {
            words.push(format!("{letter}:stale"));
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// Of each time: whether it is the one before, a new one of this test, or which.
fn times(seen: &Seen, before: Option<&[Time; 3]>, started: i64) -> String {
    let mut text = String::new();
    for (at, letter) in ["a", "m", "c"].iter().enumerate() {
        let time = seen.times[at];
        let recent = (started - 60..started + 3600).contains(&time.0);
        let printed = match before {
            Some(before) if before[at] == time => "same".to_owned(),
            _ if recent => "new".to_owned(),
            _ => format!("{}.{:09}", time.0, time.1),
        };
        text.push_str(&format!(" {letter}:{printed}"));
    }
    text
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

/// The names in a directory, which keeps its time of access where the filesystem can.
fn names(directory: &Path) -> Result<Vec<OsString>, i32> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOATIME;
    let opened = sys!(SYS_openat, AT_FDCWD, c_path(directory), flags, 0)?;
    let listed = super::listing::list(opened, 32768);
    sys!(SYS_close, opened)?;
    let names = listed?.into_iter();
    let mut names: Vec<OsString> = names.map(|entry| OsString::from_vec(entry.bytes)).collect();
    names.sort();
    Ok(names)
}

/// The names of the extended attributes, in order.
pub fn attribute_names(path: &CString) -> Result<Vec<OsString>, i32> {
    let mut list = vec![0u8; 65536];
    let count = sys!(SYS_llistxattr, *path, room(&mut list[..]), 65536)?;
    list.truncate(count as usize);
    let mut names: Vec<OsString> = list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect();
    names.sort();
    Ok(names)
}

fn extended(path: &CString) -> String {
    let names = match attribute_names(path) {
        Ok(names) => names,
        Err(errno) => return format!(" xattrs:{}", errno_name(errno)),
    };
    let mut text = String::new();
    for name in names {
        let mut value = vec![0u8; 65536];
        let c_name = CString::new(name.as_bytes()).expect("no NUL");
        let count = sys!(SYS_lgetxattr, *path, c_name, room(&mut value[..]), 65536);
        let printed = match count {
            Err(errno) => errno_name(errno),
            Ok(count) if count > 100 => format!("{count} bytes"),
            Ok(count) => value[..count as usize]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        };
        text.push_str(&format!(" {}={printed}", name.display()));
    }
    text
}

fn content(path: &CString, seen: &Seen) -> String {
    if seen.kind() == "link" {
        let mut target = vec![0u8; 4096];
        return match sys!(SYS_readlinkat, AT_FDCWD, *path, room(&mut target[..]), 4096) {
            Err(errno) => format!(" -> {}", errno_name(errno)),
            Ok(count) => format!(" -> {}", String::from_utf8_lossy(&target[..count as usize])),
        };
    }
    if seen.kind() != "reg" || seen.size == 0 {
        return String::new();
    }
    let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
    let read = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 4 << 20), &mut bytes)?;
        Ok(bytes)
    });
    match read {
        Err(error) => format!(" content:{error}"),
        Ok(bytes) => {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            format!(" content:{:x}", hasher.finish())
        }
    }
}
