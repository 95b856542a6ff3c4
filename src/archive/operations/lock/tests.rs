use super::*;
use crate::os::testing::TemporaryDirectory;

fn tree() -> (TemporaryDirectory, Tree) {
    let directory = TemporaryDirectory::new();
    let tree = Tree::create(directory.path()).expect("a store");
    tree.make_own_directories().expect("directories");
    (directory, tree)
}

/// An exclusive lock of another open file, as of another process.
fn locked(path: &Path) -> std::fs::File {
    let file = std::fs::File::open(path).expect("opens");
    rustix::fs::flock(&file, WRITER).expect("locked");
    file
}

#[test]
fn a_lock_is_described_and_released() {
    let (directory, tree) = tree();
    assert!(holder(directory.path()).is_none());
    let own = std::process::id();
    let lock = Lock::take(&tree).expect("free");
    assert_eq!(lock.previous().word, None);
    lock.mounted_at(Path::new("/mnt/a b"));
    lock.describe(&tree, "first").expect("written");
    assert_eq!(lock.word().as_deref(), Some("first"));
    let found = holder(directory.path()).expect("held");
    assert_eq!(
        (found.pid, found.mount_point.as_deref()),
        (Some(own), Some(Path::new("/mnt/a b")))
    );
    assert!(is_held_by(directory.path(), own));
    assert!(!is_held_by(directory.path(), 1));
    match Lock::take(&tree) {
        Err(ArchiveError::Busy(busy)) => assert_eq!(busy.pid, Some(own)),
        other => panic!("{other:?}"),
    }
    assert!(!ReadLock::of(directory.path()).is_alone());
    drop(lock);
    assert!(holder(directory.path()).is_none());
    assert!(!is_held_by(directory.path(), own));
    assert!(ReadLock::of(directory.path()).is_alone());
    let lock = Lock::take(&tree).expect("free again");
    assert_eq!(lock.previous().word.as_deref(), Some("first"));
}

#[test]
fn a_shorter_description_leaves_nothing_of_the_longer_one() {
    let (directory, tree) = tree();
    let lock = Lock::take(&tree).expect("free");
    lock.describe(&tree, &"w".repeat(100)).expect("written");
    lock.describe(&tree, "short").expect("written");
    let text = std::fs::read_to_string(directory.join(FILE)).expect("read");
    assert_eq!(text, format!("word short\npid {}\n", std::process::id()));
}

#[test]
fn a_removed_lock_file_does_not_release_the_store() {
    let (directory, tree) = tree();
    let lock = Lock::take(&tree).expect("free");
    std::fs::remove_file(directory.join(FILE)).expect("removed");
    let found = holder(directory.path()).expect("held");
    assert_eq!(found.pid, Some(std::process::id()), "from the directory");
    assert!(is_held_by(directory.path(), std::process::id()));
    assert!(!ReadLock::of(directory.path()).is_alone());
    let started = Instant::now();
    let refused = Lock::take(&tree);
    assert!(matches!(refused, Err(ArchiveError::Busy(_))), "{refused:?}");
    assert!(started.elapsed() < TIMEOUT / 2, "it is no command");
    // It is made again by the next description.
    lock.describe(&tree, "again").expect("written");
    assert!(locked_by_other(&directory.join(FILE)));
    drop(lock);
    Lock::take(&tree).expect("free");
}

fn locked_by_other(path: &Path) -> bool {
    let file = std::fs::File::open(path).expect("opens");
    rustix::fs::flock(&file, READER) == Err(Errno::WOULDBLOCK)
}

#[test]
fn the_lock_file_must_be_one_of_this_store() {
    let (directory, tree) = tree();
    let outside = TemporaryDirectory::new();
    std::fs::write(outside.join("file"), "x").expect("written");
    std::os::unix::fs::symlink(outside.join("file"), directory.join(FILE)).expect("a link");
    let refused = Lock::take(&tree);
    let Err(ArchiveError::Lock { what }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.to_string().ends_with("remove it"), "{what}");
    let content = std::fs::read_to_string(outside.join("file"));
    assert_eq!(content.expect("read"), "x");
}

#[test]
fn readers_share_a_store() {
    let (directory, tree) = tree();
    drop(Lock::take(&tree).expect("free"));
    let (one, other) = (
        ReadLock::of(directory.path()),
        ReadLock::of(directory.path()),
    );
    assert!(one.is_alone() && other.is_alone());
    assert!(holder(directory.path()).is_none(), "a reader is no holder");
    drop((one, other));
    let file = locked(&directory.join(FILE));
    assert!(!ReadLock::of(directory.path()).is_alone());
    drop(file);
    let file = locked(directory.path());
    assert!(!ReadLock::of(directory.path()).is_alone());
    drop(file);
}

#[test]
fn a_lock_is_waited_for_while_it_is_only_tested() {
    let (directory, tree) = tree();
    drop(Lock::take(&tree).expect("free"));
    let path = directory.join(FILE);
    let other = locked(&path);
    let file = std::fs::File::open(&path).expect("opens");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lock_soon(&file));
        std::thread::sleep(GLANCE / 2);
        drop(other);
        assert_eq!(waiting.join().expect("no panic"), Ok(()));
    });
    assert!(locked_by_other(&path));
    let again = std::fs::File::open(&path).expect("opens");
    let locked = lock_soon(&again);
    assert_eq!(locked, Err(Errno::WOULDBLOCK), "it is held for good");
}

/// Commands that take turns are waited for as long as they do.
#[test]
fn each_turn_is_waited_for_by_itself() {
    let started = Instant::now();
    let mut turn = Turn::begun(started);
    let mut lasts = |pid, seconds| turn.lasts(pid, started + Duration::from_secs(seconds));
    assert_eq!(lasts(None, 7), Duration::from_secs(7));
    assert_eq!(lasts(Some(1), 20), Duration::ZERO);
    assert_eq!(lasts(Some(1), 45), Duration::from_secs(25));
    assert_eq!(lasts(Some(2), 46), Duration::ZERO);
    assert_eq!(lasts(Some(2), 77), Duration::from_secs(31));
}

#[test]
fn a_holder_that_has_ended_is_not_reported() {
    let (directory, _tree) = tree();
    let path = directory.join(FILE);
    let of = |text: &str| {
        std::fs::write(&path, text).expect("written");
        read_holder(&std::fs::File::open(&path).expect("opens"))
    };
    let own = std::process::id();
    for (text, pid, mount_point) in [
        (format!("word x\npid {own}\n"), Some(own), None),
        (
            format!("pid {own}\nmountpoint /a%20b\n"),
            Some(own),
            Some("/a b"),
        ),
        ("mountpoint /a\n".to_owned(), None, Some("/a")),
        // Beyond the largest process number.
        ("pid 99999999\nmountpoint /a\n".to_owned(), None, None),
        ("pid x\n".to_owned(), None, None),
        ("pid {1 2}\n".to_owned(), None, None),
        ("{".to_owned(), None, None),
        (String::new(), None, None),
    ] {
        let found = of(&text);
        let found = (found.pid, found.mount_point);
        assert_eq!(found, (pid, mount_point.map(PathBuf::from)), "{text:?}");
    }
}

#[test]
fn a_file_is_itself_after_a_write() {
    let (directory, _tree) = tree();
    let path = directory.join("file");
    let open = || std::fs::File::open(&path).expect("opens");
    std::fs::write(&path, "1").expect("written");
    let before = fingerprint(&open()).expect("read");
    // The clock of inodes moves in steps.
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(&path, "2").expect("written");
    let after = fingerprint(&open()).expect("read");
    assert_ne!(before, after);
    assert!(is_same_file(&before, &after));
    std::fs::write(directory.join("copy"), "2").expect("written");
    std::fs::rename(directory.join("copy"), &path).expect("renamed");
    assert!(!is_same_file(&after, &fingerprint(&open()).expect("read")));
    for (this, that, expected) in [
        ("1-2-3", "1-2-4", true),
        ("1-2-3", "1-3-3", false),
        ("123", "123", false),
        ("1-2", "12", false),
    ] {
        assert_eq!(is_same_file(this, that), expected, "{this} {that}");
    }
}

#[test]
fn lines_of_fdinfo() {
    for (line, expected) in [
        ("lock:\t1: FLOCK  ADVISORY  WRITE 7 00:2a:5 0 EOF", true),
        ("lock:\t1: FLOCK  ADVISORY  READ 7 00:2a:5 0 EOF", false),
        ("lock:\t1: POSIX  ADVISORY  WRITE 7 00:2a:5 0 EOF", false),
        ("pos:\t0", false),
        ("", false),
    ] {
        assert_eq!(is_writers_lock(line), expected, "{line}");
    }
}

#[test]
fn words_differ() {
    let (one, other) = (new_word().expect("random"), new_word().expect("random"));
    assert_ne!(one, other);
    assert_eq!(one.len(), 32);
    assert_eq!(word_in(b"word x\npid 1\n", "pid").as_deref(), Some("1"));
    assert_eq!(word_in(b"word x\n", "pid"), None);
    assert_eq!(word_in(b"pid {1}\n", "pid"), None);
    assert_eq!(word_in(b"}", "pid"), None);
}

/// A command ends by itself, a mount does not.
#[test]
fn a_command_is_waited_for_and_a_mount_is_not() {
    let (_directory, tree) = tree();
    let lock = Lock::take(&tree).expect("free");
    lock.describe(&tree, "first").expect("written");
    let lock = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(10 * GLANCE);
            drop(lock);
        });
        Lock::take(&tree).expect("the command has ended")
    });
    lock.mounted_at(Path::new("/mnt"));
    lock.describe(&tree, "second").expect("written");
    let started = Instant::now();
    let refused = Lock::take(&tree);
    assert!(matches!(refused, Err(ArchiveError::Busy(_))), "{refused:?}");
    assert!(started.elapsed() < TIMEOUT / 2);
}

#[test]
fn a_process_between_its_two_locks_is_waited_for() {
    let (directory, tree) = tree();
    drop(Lock::take(&tree).expect("free"));
    let other = locked(directory.path());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(10 * GLANCE);
            drop(other);
        });
        Lock::take(&tree).expect("it has both locks, and releases them");
    });
}
