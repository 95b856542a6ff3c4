//! What is particular to Linux, for the Archive and both front ends. Knows nothing of items or identifiers.
//!
//! - [`system_files`]: files of the kernel and of the administrator of the machine.
//! - [`credentials`]: what a thread takes of a caller, and gives back.
//! - [`umask`]: the umask of a thread.
//! - [`random`]: random numbers of the system.
//! - [`mounts`]: the table of mounts.
//! - [`answering`]: system calls that may never be answered.
//! - [`processors`]: the processors on which threads run.
//! - [`charging`]: the user to whom written disk blocks are charged.
//! - [`opening`]: opening files that other users own, without waiting for them.
//! - [`entries`]: the names in an open directory.
//! - [`deep`]: paths of any length and directories of any depth.
//! - [`serving`]: whether a filesystem is a disk, or files that a server has.
//! - [`renaming`]: renaming that replaces nothing, on any filesystem.
//! - [`directory`]: a directory in which other users may write, and all in it by descriptor.
//! - [`private_directory`]: a directory that only this user may enter.
//! - [`writing`]: whole files, made under a temporary name and renamed into place.
//! - [`identity`]: which process this is, for processes of other machines.
//! - [`limits`]: the limit on open files of this process.
//! - [`memory`]: giving free memory back to the system.
//! - [`namespaces`]: a command in a mount namespace of its own.
//! - [`starting`]: a command that goes on after this process.
//! - [`caller`]: the process behind a request, and acting as its user.
//! - [`access_times`]: whether reading changes times of access.
//! - [`access_lists`]: whether a filesystem checks access control lists.
//! - [`confinement`]: a process that computes for this one, and can do nothing else.

pub(crate) mod access_lists;
pub(crate) mod access_times;
pub(crate) mod answering;
pub(crate) mod caller;
pub(crate) mod charging;
pub(crate) mod confinement;
pub(crate) mod credentials;
pub(crate) mod deep;
pub(crate) mod directory;
pub(crate) mod entries;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod mounts;
pub(crate) mod namespaces;
pub(crate) mod opening;
pub(crate) mod private_directory;
pub(crate) mod processors;
pub(crate) mod random;
pub(crate) mod renaming;
pub(crate) mod serving;
pub(crate) mod starting;
pub(crate) mod system_files;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod umask;
pub(crate) mod writing;
