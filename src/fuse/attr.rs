//! Attributes of a node, as plain values: what `stat` reports.

use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// A point in time: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// The attributes that `stat` reports of a node, except its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// Size in bytes.
    pub size: u64,
    /// Blocks of 512 bytes in use.
    pub blocks: u64,
    /// Last access.
    pub accessed: Time,
    /// Last change of content.
    pub modified: Time,
    /// Last change of attributes.
    pub changed: Time,
    /// File type.
    pub kind: FileType,
    /// Permission bits, set-id and sticky bits.
    pub permissions: u16,
    /// Hard links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node.
    pub device: u32,
    /// Preferred block size.
    pub block_size: u32,
}

impl Attr {
    /// The attributes of an open file.
    pub fn of(descriptor: impl AsFd) -> Result<Attr, Errno> {
        Ok(Attr::from(rustix::fs::fstat(descriptor)?))
    }

    /// The attributes of a virtual node, with the times and the owner of `like`.
    pub fn virtual_like(like: &Attr, kind: FileType, permissions: u16, size: u64) -> Attr {
        Attr {
            size,
            blocks: size.div_ceil(512),
            kind,
            permissions,
            links: if kind == FileType::Directory { 2 } else { 1 },
            device: 0,
            ..*like
        }
    }
}

impl From<Stat> for Attr {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the widths differ between architectures"
    )]
    fn from(stat: Stat) -> Attr {
        let time = |seconds: i64, nanoseconds: i64| Time {
            seconds,
            nanoseconds: nanoseconds.clamp(0, 999_999_999) as u32,
        };
        Attr {
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            accessed: time(stat.st_atime as i64, stat.st_atime_nsec as i64),
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            kind: FileType::from_raw_mode(stat.st_mode),
            permissions: (stat.st_mode & 0o7777) as u16,
            links: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
            uid: stat.st_uid,
            gid: stat.st_gid,
            device: stat.st_rdev as u32,
            block_size: u32::try_from(stat.st_blksize).unwrap_or(4096),
        }
    }
}
