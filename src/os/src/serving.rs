//! The server of a filesystem's files: this machine, from its disk, or a process (FUSE), or another machine.
//!
//! A server does not know of descriptors with O_PATH, so that it may give the inode number of a file that was removed to
//! another one, and the descriptor leads nowhere. And it keeps a file that is removed while it is open under another
//! name, in the same directory (`.fuse_hidden...`, `.nfs...`), which cannot be removed until the file is closed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Stat, Statx, StatxFlags};
use rustix::io::Errno;

/// The holder of the files of a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The kernel, on a disk or in memory.
    Kernel,
    /// A process, by FUSE.
    Process,
    /// Another machine.
    Machine,
}

/// `f_type` of FUSE (statfs(2)).
const FUSE: u64 = 0x6573_5546;

/// Those of NFS, SMB (two), Ceph, 9P and AFS.
const NETWORKS: [u64; 6] = [
    0x6969,
    0xff53_4d42,
    0xfe53_4d42,
    0x00c3_6400,
    0x0102_1997,
    0x5346_414f,
];

impl Server {
    /// Returns who has the file of a descriptor. The kernel, if it does not say.
    pub fn of(file: impl AsFd) -> Server {
        // The type is signed and of 32 bits on some machines.
        match rustix::fs::fstatfs(file).map(|found| found.f_type as u64 & 0xffff_ffff) {
            Ok(FUSE) => Server::Process,
            Ok(found) if NETWORKS.contains(&found) => Server::Machine,
            _ => Server::Kernel,
        }
    }
}

/// Whether servers give such a name to a file that is removed while it is open.
pub fn is_kept_open(name: &[u8]) -> bool {
    name.starts_with(b".fuse_hidden") || name.starts_with(b".nfs")
}

/// The attributes of an open file as its server has them. Those that the kernel remembers may be a second old, and its
/// times are its own until it asks.
pub fn attributes(file: impl AsFd) -> Result<Statx, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    rustix::fs::statx(file, "", flags, StatxFlags::BASIC_STATS)
}

/// The same as fstat(2) has it. A file that has several names may have attributes of each of them, in the kernel.
pub fn stat(file: impl AsFd) -> Result<Stat, Errno> {
    // The kernel remembers the answer of the server.
    attributes(&file)?;
    rustix::fs::fstat(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_the_files_of_proc() {
        let proc = std::fs::File::open("/proc").expect("a directory");
        assert_eq!(Server::of(&proc), Server::Kernel);
    }
}
