//! Files of the kernel and of the administrator of the machine, below `/proc`, `/sys`, `/dev` and `/etc`.
//!
//! No other user changes what these paths lead to, so they are opened by path. Others are reached
//! through [`super::directory`] and [`super::opening`].

#![expect(
    clippy::disallowed_methods,
    reason = "no other user changes what these paths lead to"
)]

use std::fs::{File, OpenOptions};
use std::path::Path;

/// The directories of these files.
const PLACES: [&str; 4] = ["/proc", "/sys", "/dev", "/etc"];

fn checked<P: AsRef<Path>>(path: P) -> P {
    debug_assert!(PLACES.iter().any(|place| path.as_ref().starts_with(place)));
    path
}

/// Reads a whole file.
pub fn read(path: impl AsRef<Path>) -> std::io::Result<Vec<u8>> {
    std::fs::read(checked(path))
}

/// Reads a whole file of UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> std::io::Result<String> {
    std::fs::read_to_string(checked(path))
}

/// Writes to a file of the kernel.
pub fn write(path: impl AsRef<Path>, text: &str) -> std::io::Result<()> {
    std::fs::write(checked(path), text)
}

/// Opens a device for reading and writing.
pub fn open_device(path: &str) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(checked(path))
}

/// The names in a directory; none if it cannot be listed.
pub fn names_in(directory: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(checked(directory)).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}
