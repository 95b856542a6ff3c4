//! Unit tests of the store's directories that need no privileges.

use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::root::DIRECTORIES;
use super::*;
use crate::os::testing::TemporaryDirectory;
use rustix::io::Errno;

const ITEM: &str = "col/a.example/b/2020/01.02.03.04.05";

struct Fixture {
    directory: TemporaryDirectory,
    tree: Tree,
    place: Place,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = TemporaryDirectory::new();
        let tree = Tree::create(directory.path()).expect("a store");
        tree.make_own_directories().expect("directories");
        let rep = ibi::Rep::parse(ITEM.strip_prefix("col/").expect("col")).expect("a rep");
        Fixture {
            directory,
            tree,
            place: Place::of_rep(&rep),
        }
    }

    /// A fixture whose item is placed and holds only a sidecar.
    fn with_item() -> Fixture {
        let fixture = Fixture::new();
        let staged = fixture.stage(Filled::Empty);
        let placed = fixture.tree.place_item(&staged, &fixture.place);
        placed.expect("placed");
        fixture
    }

    fn stage(&self, filled: Filled) -> StagedItem {
        let staged = self
            .tree
            .stage_item(&self.place, b"sidecar\n", None, filled);
        staged.expect("staged")
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.directory.path().join(below)
    }

    fn names(&self, below: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(below)).expect(below);
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

fn errno<T>(result: Result<T, TreeError>) -> Option<Errno> {
    result.err().map(|error| error.errno())
}

#[test]
fn a_store_is_its_owners_and_is_completed_on_open() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("known")).expect("made");
    set_mode(&fixture.path("known"), 0o710);
    for (name, is_open) in [("new", false), ("known", true)] {
        let made = Tree::create(&fixture.path(name)).expect("a store");
        assert_eq!(made.is_open_to_others().expect("asked"), is_open, "{name}");
    }
    std::fs::remove_dir(fixture.path("deleted")).expect("removed");
    std::fs::remove_dir(fixture.path("staging")).expect("removed");
    std::fs::write(fixture.path("staging"), "").expect("written");
    Tree::open(fixture.directory.path()).expect("opens");
    for name in DIRECTORIES {
        assert!(fixture.path(name).is_dir(), "{name}");
    }
    let missing = fixture.path("missing");
    assert_eq!(errno(Tree::open_as_it_is(&missing)), Some(Errno::NOENT));
}

#[test]
fn a_staged_item_appears_whole_or_leaves_nothing() {
    for (filled, expected) in [
        (Filled::Empty, &[".ibi"][..]),
        (Filled::WithDoc, &[".ibi", "doc"]),
    ] {
        let fixture = Fixture::new();
        fixture.tree.discard(&fixture.stage(filled));
        assert_eq!(fixture.names("staging"), [""; 0]);
        assert!(!fixture.path(ITEM).exists());
        let staged = fixture.stage(filled);
        fixture
            .tree
            .place_item(&staged, &fixture.place)
            .expect("placed");
        assert_eq!(fixture.names(ITEM), expected);
        fixture.tree.sync_item(&fixture.place).expect("synced");
        // The place is taken now.
        let second = fixture.stage(filled);
        let placed = fixture.tree.place_item(&second, &fixture.place);
        assert_eq!(errno(placed), Some(Errno::EXIST));
        fixture.tree.discard(&second);
        fixture.tree.take_back(&fixture.place).expect("taken back");
        assert!(!fixture.path(ITEM).exists());
        assert_eq!(fixture.names("staging"), [""; 0]);
    }
}

#[test]
fn a_temporary_name_that_is_taken_is_passed_over() {
    let fixture = Fixture::new();
    for number in 0..3 {
        for what in ["mint", "import", "write"] {
            let name = format!("staging/{what}-{}-{number}", std::process::id());
            std::fs::write(fixture.path(&name), "another's").expect("written");
        }
    }
    let staged = fixture.stage(Filled::Empty);
    fixture
        .tree
        .write_small(".", "small", b"text", None)
        .expect("written");
    let (directory, _) = fixture
        .tree
        .stage_directory(&fixture.place)
        .expect("staged");
    fixture.tree.discard(&staged);
    fixture.tree.discard_all(&directory);
    assert_eq!(std::fs::read(fixture.path("small")).expect("read"), b"text");
    let left = fixture.tree.left_in_staging();
    assert_eq!(left.len(), 9, "{left:?}");
    fixture.tree.clear_staging();
    assert!(fixture.tree.left_in_staging().is_empty());
}

#[test]
fn a_sidecar_keeps_or_gets_the_mark_of_a_stranger() {
    let own = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    let (uid, gid) = own;
    let (user, marked) = (Author::User { uid, gid }, Author::Marked { uid, gid });
    for (author, before, item, expected) in [
        (user, 0o1644, 0o777, 0o644),
        (Author::Same, 0o644, 0o755, 0o644),
        (Author::Same, 0o1644, 0o755, 0o1644),
        // Others may have written it.
        (Author::Same, 0o664, 0o755, 0o1644),
        (Author::Same, 0o646, 0o755, 0o1644),
        (marked, 0o644, 0o755, 0o1644),
        (Author::Unknown, 0o644, 0o755, 0o644),
        (Author::Unknown, 0o644, 0o775, 0o1644),
        (Author::Unknown, 0o644, 0o757, 0o1644),
    ] {
        let fixture = Fixture::with_item();
        let sidecar = fixture.path(ITEM).join(SIDECAR);
        set_mode(&sidecar, before);
        set_mode(&fixture.path(ITEM), item);
        let written = fixture.tree.write_sidecar(&fixture.place, b"new", author);
        assert_eq!(written, Ok(()));
        assert_eq!(mode(&sidecar), expected, "{author:?} {before:o} {item:o}");
        let read = fixture.tree.read_sidecar(&fixture.place);
        assert_eq!(read, Ok(Some(b"new".to_vec())));
    }
    let fixture = Fixture::with_item();
    let large = vec![b'x'; SMALL_FILE_LIMIT as usize + 1];
    let written = fixture
        .tree
        .write_sidecar(&fixture.place, &large, Author::Same);
    assert_eq!(errno(written), Some(Errno::FBIG));
}

#[test]
fn what_is_set_aside_or_kept_takes_the_first_free_number() {
    let fixture = Fixture::with_item();
    for expected in ["aside-1", "aside-2"] {
        let written = fixture.tree.write_small(ITEM, "bad", b"x", None);
        written.expect("written");
        let aside = fixture.tree.set_aside(ITEM, "bad", "aside");
        assert_eq!(aside, Ok(Some(expected.to_owned())));
    }
    assert_eq!(fixture.tree.set_aside(ITEM, "bad", "aside"), Ok(None));
    for content in [b"first", b"later"] {
        let is_kept = fixture.tree.keep(&fixture.place, "before", content);
        assert_eq!(is_kept, Ok(()));
    }
    let names = [".ibi", "aside-1", "aside-2", "before-1", "before-2"];
    assert_eq!(fixture.names(ITEM), names);
    let second = std::fs::read(fixture.path(ITEM).join("before-2"));
    assert_eq!(second.expect("read"), b"later");
}

#[test]
fn refused_files_are_linked_and_the_same_bytes_once() {
    let fixture = Fixture::with_item();
    let keep = |bytes: &[u8]| {
        let written = fixture.tree.write_small(ITEM, "bad", bytes, None);
        written.expect("written");
        let file = fixture.tree.open_in_item(&fixture.place, "bad");
        let file = file.expect("opened").expect("is there");
        assert_eq!(
            fixture.tree.read_candidate(file.as_fd()).as_deref(),
            Ok(bytes)
        );
        let kept = fixture
            .tree
            .keep_refused(&fixture.place, file.as_fd(), Some(bytes));
        kept.expect("kept")
    };
    for (bytes, name) in [("a", "1"), ("b", "2"), ("a", "1"), ("b", "2")] {
        assert_eq!(keep(bytes.as_bytes()), format!(".ibi.broken-{name}"));
    }
    for number in 3..120_u32 {
        let expected = format!(".ibi.broken-{}", number.min(99));
        assert_eq!(keep(&number.to_le_bytes()), expected);
    }
    let last = std::fs::read(fixture.path(ITEM).join(".ibi.broken-99"));
    assert_eq!(last.expect("read"), 119_u32.to_le_bytes());
    let taken_back = fixture
        .tree
        .take_back_refused(&fixture.place, ".ibi.broken-1");
    assert_eq!(taken_back, Ok(()));
    assert_eq!(
        fixture.tree.read_sidecar(&fixture.place),
        Ok(Some(b"a".to_vec()))
    );
}

#[test]
fn levels_that_were_made_in_vain_are_removed() {
    let fixture = Fixture::with_item();
    let tree = &fixture.tree;
    let path = "col/a.example/word/2020";
    let missing = tree.missing_levels(path);
    assert_eq!(missing, ["col/a.example/word/2020", "col/a.example/word"]);
    tree.make_levels(path).expect("made");
    assert_eq!(tree.missing_levels(path), Vec::<String>::new());
    assert_eq!(tree.remove_levels(&missing), Ok(()));
    assert_eq!(tree.missing_levels(path), missing);
    // A level that holds something by now stays, and those above it.
    tree.make_levels(&format!("{path}/01.01.01.01"))
        .expect("made");
    assert_eq!(tree.remove_levels(&missing), Ok(()));
    assert_eq!(tree.missing_levels(path), Vec::<String>::new());
}

#[test]
fn a_tombstone_is_for_those_who_could_read_the_item() {
    for (level, item, expected) in [
        (0o755, 0o755, 0o644),
        (0o755, 0o700, 0o600),
        (0o755, 0o751, 0o600),
        (0o750, 0o755, 0o600),
        (0o711, 0o755, 0o644),
    ] {
        let fixture = Fixture::with_item();
        set_mode(&fixture.path("col/a.example/b"), level);
        set_mode(&fixture.path(ITEM), item);
        let written = fixture.tree.write_tombstone(&fixture.place, b"removed");
        assert_eq!(written, Ok(()));
        let path = fixture.path("deleted").join(ITEM);
        assert_eq!(mode(&path), expected, "{level:o} {item:o}");
        let read = fixture.tree.read_tombstone(&fixture.place);
        assert_eq!(read, Ok(Some(b"removed".to_vec())));
        for _ in 0..2 {
            assert_eq!(fixture.tree.remove_tombstone(&fixture.place), Ok(()));
        }
        assert_eq!(fixture.tree.read_tombstone(&fixture.place), Ok(None));
    }
}

#[test]
fn only_an_item_without_files_is_removed() {
    let fixture = Fixture::with_item();
    std::fs::write(fixture.path(ITEM).join("file"), "").expect("written");
    assert_eq!(fixture.tree.holds_only_sidecar(&fixture.place), Ok(false));
    let removed = fixture.tree.remove_item(&fixture.place);
    assert_eq!(errno(removed), Some(Errno::NOTEMPTY));
    assert_eq!(fixture.names(ITEM), [".ibi", "file"]);
    std::fs::remove_file(fixture.path(ITEM).join("file")).expect("removed");
    assert_eq!(fixture.tree.holds_only_sidecar(&fixture.place), Ok(true));
    assert_eq!(fixture.tree.remove_item(&fixture.place), Ok(()));
    assert!(!fixture.path(ITEM).exists());
}

#[test]
fn an_item_is_moved_to_a_free_place_alone() {
    let fixture = Fixture::with_item();
    let ibip = ibi::Ibip::parse("8JMKD3MGP8W/34PGRBS").expect("an IBIp");
    let other = Place::of_ibip(&ibip);
    std::fs::create_dir_all(fixture.path(other.as_str())).expect("made");
    let moved = fixture.tree.move_item(&other, &fixture.place);
    assert_eq!(errno(moved), Some(Errno::EXIST));
    assert!(fixture.path(other.as_str()).exists());
    fixture.tree.remove_item(&fixture.place).expect("removed");
    assert_eq!(fixture.tree.move_item(&other, &fixture.place), Ok(()));
    assert!(fixture.path(ITEM).exists() && !fixture.path(other.as_str()).exists());
}

#[test]
fn neither_links_nor_files_of_others_are_opened() {
    let fixture = Fixture::with_item();
    let outside = TemporaryDirectory::new();
    std::fs::write(outside.path().join("file"), "secret").expect("written");
    std::os::unix::fs::symlink(outside.path(), fixture.path("col/link")).expect("made");
    std::os::unix::fs::symlink("archive.ibi", fixture.path("own-link")).expect("made");
    std::fs::write(fixture.path("own"), "").expect("written");
    std::fs::hard_link(fixture.path("own"), fixture.path("own-twin")).expect("linked");
    let tree = &fixture.tree;
    assert_eq!(errno(tree.read_small("col/link/file")), Some(Errno::LOOP));
    assert_eq!(errno(tree.open_directory("col/link")), Some(Errno::LOOP));
    assert_eq!(errno(tree.open_directory("col/../..")), Some(Errno::XDEV));
    for (name, expected) in [
        ("own-link", Errno::LOOP),
        ("own-twin", Errno::MLINK),
        ("col", Errno::LOOP),
    ] {
        assert_eq!(errno(tree.open_own(name)), Some(expected), "{name}");
    }
    assert!(tree.open_own("new").is_ok() && fixture.path("new").exists());
    let large = vec![b'x'; SMALL_FILE_LIMIT as usize + 1];
    std::fs::write(fixture.path("large"), &large).expect("written");
    assert_eq!(errno(tree.read_small("large")), Some(Errno::FBIG));
    assert_eq!(errno(tree.read_small("col")), Some(Errno::INVAL));
    assert_eq!(tree.read_small("missing"), Ok(None));
}

/// Write permission of other users is removed, but not from a file with a second name.
#[test]
fn loose_permissions_are_tightened() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("file"), "").expect("written");
    set_mode(&fixture.path("file"), 0o666);
    set_mode(&fixture.path("deleted"), 0o777);
    for (name, before, after) in [("file", 0o666, 0o664), ("deleted", 0o777, 0o775)] {
        assert_eq!(fixture.tree.mode_of(name), Some(before));
        assert_eq!(fixture.tree.tighten(name), Ok(()));
        assert_eq!(fixture.tree.mode_of(name), Some(after));
    }
    std::fs::hard_link(fixture.path("file"), fixture.path("twin")).expect("linked");
    assert_eq!(errno(fixture.tree.tighten("file")), Some(Errno::MLINK));
    assert_eq!(fixture.path("file").metadata().expect("there").nlink(), 2);
}

/// The second in which all files made so far count as settled.
fn later() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs().cast_signed() + 10
}

#[test]
fn a_validator_notices_each_change_to_what_an_answer_depends_on() {
    type Change = fn(&Path);
    let changes: [(&str, Change, bool); 6] = [
        ("nothing", |_| (), true),
        (
            "content",
            |item| std::fs::write(item.join("d/file"), "longer").expect("written"),
            false,
        ),
        ("mode", |item| set_mode(&item.join("d/file"), 0o600), false),
        (
            "a name beside",
            |item| std::fs::write(item.join("d/other"), "").expect("written"),
            false,
        ),
        (
            "the missing path",
            |item| std::fs::write(item.join("missing"), "").expect("written"),
            false,
        ),
        (
            "the item",
            |item| std::fs::rename(item, item.with_extension("moved")).expect("moved"),
            false,
        ),
    ];
    for (name, change, expected) in changes {
        let fixture = Fixture::with_item();
        let item = fixture.path(ITEM);
        std::fs::create_dir(item.join("d")).expect("made");
        std::fs::write(item.join("d/file"), "text").expect("written");
        let dependencies = Dependencies::default();
        let open = fixture.tree.open_for_reader(&fixture.place).expect("open");
        let found = Dependencies::at(Some(&dependencies), &open, b"d/file", || Ok(1));
        assert_eq!(found, Ok(1));
        let missing: Result<(), _> =
            Dependencies::at(Some(&dependencies), &open, b"missing", || Err(Errno::NOENT));
        assert_eq!(missing, Err(Errno::NOENT));
        let validator = dependencies.validator(later()).expect("all is settled");
        change(&item);
        assert_eq!(validator.is_current(&fixture.tree), expected, "{name}");
    }
}

#[test]
fn there_is_no_validator_of_what_cannot_be_checked_again() {
    let fixture = Fixture::with_item();
    let item = fixture.path(ITEM);
    std::os::unix::fs::symlink(".ibi", item.join("link")).expect("made");
    let open = fixture.tree.open_for_reader(&fixture.place).expect("open");
    let made = |record: &dyn Fn(&Dependencies), began| {
        let dependencies = Dependencies::default();
        record(&dependencies);
        dependencies.validator(began).is_some()
    };
    let read = |path: &'static [u8], answer: Result<(), Errno>| {
        let open = &open;
        move |dependencies: &Dependencies| {
            let _ = Dependencies::at(Some(dependencies), open, path, || answer);
        }
    };
    assert!(made(&|_| (), later()));
    assert!(made(&read(b".ibi", Ok(())), later()));
    assert!(!made(&read(b".ibi", Ok(())), later() - 10), "just written");
    assert!(!made(&read(b"link", Ok(())), later()));
    assert!(!made(&read(b".ibi", Err(Errno::MFILE)), later()));
    assert!(!made(&Dependencies::give_up, later()));
}
