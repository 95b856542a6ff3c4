//! The parts that are particular to Linux, for the Archive and its front ends. Knows nothing of items or identifiers,
//! of `ibi` only what a time is.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`clock`]: a source of the current time.
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
//! - [`running`]: another program, and what it writes.
//! - [`confinement`]: a process that computes for this one, and can do nothing else.
//! - [`testing`]: a temporary directory for unit tests, here and in the packages above.
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "a test works in a directory of its own"
    )
)]
#![allow(rustdoc::private_intra_doc_links)]

pub mod access_lists;
pub mod access_times;
pub mod answering;
pub mod caller;
pub mod charging;
pub mod clock;
pub mod confinement;
mod credentials;
pub mod deep;
pub mod directory;
pub mod entries;
pub mod identity;
pub mod limits;
pub mod memory;
pub mod mounts;
pub mod namespaces;
pub mod opening;
pub mod private_directory;
pub mod processors;
pub mod random;
pub mod renaming;
pub mod running;
pub mod serving;
pub mod starting;
pub mod system_files;
pub mod testing;
mod umask;
pub mod writing;
