//! Zip and tar files that are imported: names, sizes, links, and what they unpack to.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ibifs::outside::archive::texts::{format, is_zipped_bag, unpacked};

use super::sentence;

/// The most bytes that an input may unpack to.
const MOST: u64 = 1 << 20;

static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

/// A directory for an input, which has another one to unpack to. It is in memory where the system has such a place.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("ibifs-fuzz-{}-{number}", std::process::id());
        let place = Place(above.join(name));
        std::fs::create_dir(&place.0).expect("a directory");
        std::fs::create_dir(place.to()).expect("a directory");
        place
    }

    fn to(&self) -> PathBuf {
        self.0.join("to")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is unpacked stays in its directory, and is directories and regular files of at most so many bytes.
pub fn check(data: &[u8]) {
    let _ = is_zipped_bag(data);
    match format(data) {
        None => return,
        // A few bytes expand to a tar file that takes long; it is tried as it is.
        Some("tar.gz") => return,
        Some(_) => {}
    }
    let place = Place::new();
    let result = unpacked(data, &place.to(), MOST);
    let beside = std::fs::read_dir(&place.0).expect("a directory").count();
    assert_eq!(beside, 1, "something is beside the directory");
    let found = below(&place.to());
    match result {
        Ok(written) => {
            assert_eq!(found, written);
            assert!(written <= MOST, "{written} bytes");
        }
        Err(error) => sentence(&error),
    }
}

/// The length of all files of a directory together.
fn below(directory: &Path) -> u64 {
    let mut length = 0;
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let found = path.symlink_metadata().expect("an entry");
            assert_eq!(found.permissions().mode() & 0o7000, 0, "{}", path.display());
            if found.is_dir() {
                waiting.push(path);
            } else {
                assert!(found.is_file() && found.nlink() == 1, "{}", path.display());
                length += found.len();
            }
        }
    }
    length
}
