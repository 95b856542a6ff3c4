//! The cache in a directory of its own.

use std::os::unix::fs::{FileExt, PermissionsExt};

use super::*;
use crate::os::testing::TemporaryDirectory;

/// A piece of a test, in bytes: some fill the least cache.
const PIECE: u64 = 4 << 20;

struct Fixture {
    directory: TemporaryDirectory,
    cache: Arc<Cache>,
}

fn open(directory: &TemporaryDirectory, limit: u64) -> Result<Arc<Cache>, CacheError> {
    Cache::open(&directory.join("cache"), Some(limit))
}

fn fixture() -> Fixture {
    let directory = TemporaryDirectory::new();
    let cache = open(&directory, LEAST).expect("a cache");
    Fixture { directory, cache }
}

fn bytes(of: u8, length: u64) -> (Digest, Vec<u8>) {
    let bytes = vec![of; usize::try_from(length).expect("a length")];
    (Digest(Sha256::digest(&bytes).into()), bytes)
}

impl Fixture {
    /// Puts a piece that is this byte again and again.
    fn put(&self, of: u8) -> Digest {
        let (digest, bytes) = bytes(of, PIECE);
        let reserved = self.cache.reserve(PIECE).expect("room");
        self.cache.put_piece(reserved, &digest, &bytes);
        digest
    }

    /// Puts more pieces than the least cache has room for.
    fn fill(&self, from: u8) {
        for of in from..from + 20 {
            self.put(of);
        }
    }

    fn has(&self, digest: &Digest) -> bool {
        self.cache.piece(digest, PIECE).is_some()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join("cache").join(name)
    }

    fn again(self) -> Fixture {
        let Fixture { directory, cache } = self;
        drop(cache);
        let cache = open(&directory, LEAST).expect("a cache");
        Fixture { directory, cache }
    }
}

#[test]
fn the_piece_that_was_not_used_for_the_longest_time_is_removed_first() {
    let it = fixture();
    let first: Vec<_> = (0..15).map(|of| it.put(of)).collect();
    assert!(first.iter().all(|digest| it.cache.has_piece(digest)));
    assert!(it.has(&first[0]), "it is used");
    let last = it.put(99);
    assert!(it.has(&first[0]) && it.has(&last) && !it.has(&first[1]));
    let usage = it.cache.usage();
    assert!(usage.bytes <= usage.limit, "{usage}");
    assert!(!it.path(&Cache::piece_file(&first[1])).exists());
}

#[test]
fn room_that_is_reserved_counts_until_it_is_given_back() {
    let it = fixture();
    let before = it.cache.usage().bytes;
    let reserved = it.cache.reserve(5000).expect("room");
    assert_eq!(it.cache.usage().bytes, before + 2 * BLOCK);
    drop(reserved);
    assert_eq!(it.cache.usage().bytes, before);
    let all = it.cache.reserve(LEAST - OVERHEAD).expect("room");
    assert_eq!(it.cache.reserve(1).err(), Some(ForeignError::Full));
    drop(all);
    assert_eq!(it.cache.reserve(LEAST).err(), Some(ForeignError::Full));
}

#[test]
fn what_is_pinned_stays_and_leaves_room_for_others() {
    let it = fixture();
    let pinned = it.put(1);
    let room = it.cache.room_for_pins();
    let pin = Pin {
        what: "an item".to_owned(),
        files: [Cache::piece_file(&pinned)].into(),
    };
    it.cache.pin("key", pin.clone()).expect("a pin");
    assert_eq!(it.cache.room_for_pins(), room - PIECE - BLOCK);
    it.fill(10);
    assert!(it.has(&pinned));
    let it = it.again();
    assert_eq!(it.cache.pinned("key"), Some(pin.clone()), "after a restart");
    it.fill(40);
    assert!(it.has(&pinned) && !it.cache.discard_unpinned(&Cache::piece_file(&pinned)));
    assert_eq!(
        it.cache.all_pinned(),
        (vec!["an item".to_owned()], PIECE + BLOCK)
    );
    assert_eq!(it.cache.unpin("key"), Some(pin));
    assert_eq!(it.cache.unpin("key"), None);
    it.fill(70);
    assert!(!it.has(&pinned));
}

#[test]
fn a_file_stays_as_long_as_one_of_its_pins() {
    let it = fixture();
    let name = Cache::piece_file(&it.put(1));
    let pin = Pin {
        what: "x".to_owned(),
        files: [name.clone()].into(),
    };
    it.cache.pin("a", pin.clone()).expect("a pin");
    it.cache.pin("b", pin.clone()).expect("a pin");
    it.cache.pin("b", pin).expect("the same pin again");
    it.cache.unpin("a");
    assert!(it.cache.is_pinned(&name) && !it.cache.discard_unpinned(&name));
    it.cache.unpin("b");
    assert!(!it.cache.is_pinned(&name) && it.cache.discard_unpinned(&name));
    assert!(!it.cache.discard_unpinned(&name), "it is gone");
}

#[test]
fn files_are_kept_for_now_also_before_they_are_there() {
    let it = fixture();
    let (digest, _) = bytes(1, PIECE);
    let mut keeping = it.cache.keep_for_now();
    keeping.add(Cache::piece_file(&digest));
    keeping.add(Cache::piece_file(&digest));
    it.put(1);
    it.fill(10);
    assert!(it.has(&digest));
    drop(keeping);
    it.fill(40);
    assert!(!it.has(&digest));
}

#[test]
fn a_piece_that_was_changed_is_removed() {
    let it = fixture();
    let digest = it.put(1);
    let file = File::options()
        .write(true)
        .open(it.path(&Cache::piece_file(&digest)));
    let file = file.expect("a file");
    file.write_all_at(b"x", 5).expect("a write");
    assert!(!it.has(&digest) && !it.cache.has_piece(&digest));
    let short = it.put(2);
    let file = File::options()
        .write(true)
        .open(it.path(&Cache::piece_file(&short)));
    file.expect("a file").set_len(9).expect("a length");
    assert!(!it.has(&short));
}

#[test]
fn a_text_that_was_changed_or_torn_is_removed() {
    for harm in [&b""[..], b"x", b"\n"] {
        let it = fixture();
        it.cache
            .put(CachedText::Item, "name", b"a text\nof two lines");
        let held = it.cache.get(CachedText::Item, "name");
        assert_eq!(held.as_deref(), Some(&b"a text\nof two lines"[..]));
        assert_eq!(it.cache.get(CachedText::Level, "name"), None);
        std::fs::write(it.path("items/name"), harm).expect("a write");
        assert_eq!(it.cache.get(CachedText::Item, "name"), None);
        assert!(!it.path("items/name").exists());
    }
}

#[test]
fn texts_and_pieces_outlive_the_process_and_what_was_being_written_does_not() {
    let it = fixture();
    let digest = it.put(1);
    it.cache.put(CachedText::Level, "name", b"x");
    std::fs::write(it.path("new/7"), b"half").expect("a write");
    let before = it.cache.usage();
    let it = it.again();
    assert_eq!(it.cache.usage(), before);
    assert!(it.has(&digest) && !it.path("new/7").exists());
    assert_eq!(
        it.cache.get(CachedText::Level, "name").as_deref(),
        Some(&b"x"[..])
    );
}

#[test]
fn a_limit_below_what_is_pinned_is_refused() {
    let it = fixture();
    it.cache.set_limit(2 * LEAST).expect("a limit");
    let files = (0..16).map(|of| Cache::piece_file(&it.put(of))).collect();
    let what = "x".to_owned();
    it.cache.pin("key", Pin { what, files }).expect("a pin");
    let refused = it.cache.set_limit(LEAST);
    assert!(
        matches!(refused, Err(CacheError::Pinned(..))),
        "{refused:?}"
    );
    assert_eq!(it.cache.usage().limit, 2 * LEAST);
}

#[test]
fn a_lower_limit_removes_what_is_over_it() {
    let it = fixture();
    it.cache.set_limit(2 * LEAST).expect("a limit");
    it.fill(0);
    it.cache.set_limit(1).expect("the least limit");
    let usage = it.cache.usage();
    assert_eq!(
        (usage.limit, usage.bytes <= LEAST),
        (LEAST, true),
        "{usage}"
    );
}

#[test]
fn pieces_become_one_file_that_the_kernel_can_read() {
    let it = fixture();
    let (last, end) = bytes(3, 10);
    let digests = [it.put(1), it.put(2), last];
    let size = 2 * PIECE + 10;
    assert!(it.cache.whole(&digests, size).is_none());
    let reserved = it.cache.reserve(10).expect("room");
    it.cache.put_piece(reserved, &last, &end);
    it.cache.assemble(&digests, size);
    let whole = it.cache.whole(&digests, size).expect("a whole file");
    assert_eq!(whole.file.metadata().expect("attributes").len(), size);
    assert!(
        !it.path(&Cache::piece_file(&digests[0])).exists(),
        "it is not there twice"
    );
    assert!(it.has(&digests[1]), "it is in the whole file");
    it.fill(10);
    assert!(it.cache.whole(&digests, size).is_some(), "it is in use");
    drop(whole);
    it.fill(40);
    assert!(it.cache.whole(&digests, size).is_none() && !it.has(&digests[1]));
}

#[test]
fn a_whole_file_that_was_changed_is_not_read() {
    let it = fixture();
    let digests = [it.put(1), it.put(2)];
    it.cache.assemble(&digests, 2 * PIECE);
    let name = std::fs::read_dir(it.path("files"))
        .expect("a folder")
        .next();
    let path = name.expect("a file").expect("a file").path();
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(b"x", PIECE + 1).expect("a write");
    assert!(it.cache.whole(&digests, 2 * PIECE).is_none());
    assert!(!it.has(&digests[1]));
}

#[test]
fn another_process_cannot_use_the_cache() {
    let it = fixture();
    let used = open(&it.directory, LEAST);
    assert!(matches!(used, Err(CacheError::Used(_))), "{used:?}");
    drop(it.cache);
    assert!(open(&it.directory, LEAST).is_ok());
}

#[test]
fn a_directory_of_others_is_no_cache() {
    let directory = TemporaryDirectory::new();
    let path = directory.join("cache");
    std::fs::create_dir(&path).expect("a directory");
    std::fs::write(path.join(".hidden"), b"").expect("a file");
    assert!(open(&directory, LEAST).is_ok(), "hidden files are ignored");
    let other = TemporaryDirectory::new();
    let path = other.join("cache");
    std::fs::create_dir(&path).expect("a directory");
    std::fs::write(path.join("thesis.tex"), b"").expect("a file");
    let foreign = open(&other, LEAST);
    assert!(
        matches!(foreign, Err(CacheError::Foreign(_))),
        "{foreign:?}"
    );
    let third = TemporaryDirectory::new();
    let path = third.join("cache");
    std::fs::create_dir(&path).expect("a directory");
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&path, mode).expect("a mode");
    let writable = open(&third, LEAST);
    assert!(matches!(writable, Err(CacheError::Open(_))), "{writable:?}");
}
