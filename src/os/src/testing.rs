//! A temporary directory for unit tests.
//!
//! Compiled always: with a cargo feature, builds and tests would each compile all packages above.
#![allow(
    clippy::disallowed_methods,
    reason = "a test works in a directory of its own"
)]

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of this user alone that is removed with its contents at the end of the test.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one below the directory for temporary files.
    #[expect(clippy::new_without_default)]
    pub fn new() -> TemporaryDirectory {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ibifs-unit-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.expect("a temporary directory");
        TemporaryDirectory(path)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a name in it.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// The directory, open for reading.
    pub fn opened(&self) -> std::fs::File {
        std::fs::File::open(&self.0).expect("the directory opens")
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
