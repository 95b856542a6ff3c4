//! Hostile names, sizes and kinds of files. Inside an item the native filesystem is the measure:
//! the same deeds get the same answers. Everywhere else the answer is success or an errno that
//! ibifs-tree(7) lists; never a panic, a hang or EIO. What has been made is listed byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, OFlags, XattrFlags};
use rustix::io::Errno;

use super::support::{Needs, TestEnv, switch};

/// Returns every byte that a name can hold, alone and next to letters.
fn names() -> Vec<Vec<u8>> {
    let bytes = (1..=255u8).filter(|byte| *byte != b'/');
    bytes
        .flat_map(|b| [vec![b], vec![b, b'a'], vec![b'a', b], vec![b'a', b, b'z']])
        .collect()
}

/// Every such byte, alone and between letters.
fn few_names() -> Vec<Vec<u8>> {
    let all = names();
    all.chunks(4)
        .flat_map(|of_byte| [of_byte[0].clone(), of_byte[3].clone()])
        .collect()
}

fn join(directory: &Path, name: &[u8]) -> PathBuf {
    directory.join(OsStr::from_bytes(name))
}

/// Returns the result of a call: 0 or the errno.
fn answer<T>(result: Result<T, Errno>) -> i32 {
    match result {
        Ok(_) => 0,
        Err(errno) => errno.raw_os_error(),
    }
}

fn make_directory(path: &Path) -> Result<(), Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))
}

fn make_node(path: &Path, kind: FileType) -> Result<(), Errno> {
    // 1, 5 is /dev/zero.
    let device = rustix::fs::makedev(1, 5);
    rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o644), device)
}

fn write(path: &Path, text: &[u8]) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644))?;
    std::fs::File::from(file)
        .write_all(text)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// A directory's names with what they hold: a file's bytes, a link's text.
fn listed(directory: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("its kind");
            let path = entry.path();
            let holds = match () {
                () if kind.is_dir() => b"a directory".to_vec(),
                () if kind.is_symlink() => std::fs::read_link(&path)
                    .expect("a link")
                    .into_os_string()
                    .into_vec(),
                () => std::fs::read(&path).expect("a file"),
            };
            (entry.file_name().into_vec(), holds)
        })
        .collect()
}

/// A test environment with the Archive A, a native directory, and one item in both trees.
struct Fixture {
    env: TestEnv,
    /// A native directory on the same filesystem as the store.
    native: PathBuf,
    /// The item in the rep tree.
    rep: PathBuf,
    /// The item in the IBIp tree.
    ibip: PathBuf,
    /// The item in the store.
    stored: PathBuf,
}

impl Fixture {
    #[track_caller]
    fn new() -> Fixture {
        Fixture::in_env(TestEnv::new())
    }

    fn in_env(env: TestEnv) -> Fixture {
        let env = env.with_a();
        env.sh("mkdir native && mkdir -p A/.mint/x/doc");
        let rep = env.sh("rep A/.mint/x");
        let ibip = env.sh("ibip A/.mint/x");
        let root = env.root().to_owned();
        Fixture {
            native: root.join("native"),
            stored: root.join("A.store/col").join(&rep),
            rep: root.join("A").join(rep),
            ibip: root.join("A").join(ibip),
            env,
        }
    }

    /// The greatest size of the daemon so far, in KiB, and how many descriptors it holds.
    fn daemon(&self) -> (u64, usize) {
        let pid = self.env.sh("daemon A.store");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a daemon");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let size = size.and_then(|size| size.parse().ok()).expect("a size");
        let held = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors");
        (size, held.count())
    }
}

#[test]
fn names_of_every_byte_inside_an_item() {
    let fixture = Fixture::new();
    let names = names();
    let deeds = |base: &Path| {
        let directory = base.join("names");
        make_directory(&directory).expect("a directory");
        let mut answers = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let path = join(&directory, name);
            let made = match number % 4 {
                0 => write(&path, name),
                1 => make_directory(&path),
                2 => rustix::fs::symlink(OsStr::from_bytes(name), &path),
                _ => rustix::fs::symlink(OsStr::from_bytes(b"../names"), &path)
                    .and_then(|()| rustix::fs::unlink(&path))
                    .and_then(|()| write(&path, name)),
            };
            answers.push(answer(made));
            answers.push(answer(rustix::fs::lstat(&path)));
        }
        let held = directory.join("attributes");
        write(&held, b"").expect("a file");
        for name in &names {
            let mut attribute = b"user.".to_vec();
            attribute.extend(name);
            let attribute = OsStr::from_bytes(&attribute);
            let value: Vec<u8> = (0..=255).collect();
            answers.push(answer(rustix::fs::setxattr(
                &held,
                attribute,
                &value,
                XattrFlags::CREATE,
            )));
            let mut found = vec![0; 300];
            let length = rustix::fs::getxattr(&held, attribute, &mut found[..]);
            answers.push(answer(length));
            assert_eq!(&found[..length.unwrap_or(0)], &value[..length.unwrap_or(0)]);
            let mut list = vec![0; 300];
            let length = rustix::fs::listxattr(&held, &mut list[..]).expect("a list");
            let is_told = list[..length]
                .split(|byte| *byte == 0)
                .any(|messages| messages == attribute.as_bytes());
            answers.push(i32::from(is_told));
            answers.push(answer(rustix::fs::removexattr(&held, attribute)));
        }
        answers
    };
    let measure = deeds(&fixture.native);
    let expected = listed(&fixture.native.join("names"));
    let distinct: BTreeSet<&Vec<u8>> = names.iter().collect();
    assert_eq!(expected.len(), distinct.len()); // "." is none, "attributes" is one
    for (made, met) in [(&fixture.rep, &fixture.ibip), (&fixture.ibip, &fixture.rep)] {
        assert_eq!(deeds(made), measure, "in {}", made.display());
        for place in [made, met, &fixture.stored] {
            assert_eq!(
                listed(&place.join("names")),
                expected,
                "{}",
                place.display()
            );
        }
        if made == &fixture.rep {
            fixture.env.sh(&format!(
                "rsync -aX --delete {rep}/names/ by-rsync/ && diff -r --no-dereference native/names by-rsync
                 tar -C {ibip} -cf - names | tar -xf - && diff -r --no-dereference native/names names
                 rsync -aX native/names/ {ibip}/doc/ && rsync -aXni --delete native/names/ {rep}/doc/ > second
                 test ! -s second
                 cmp <(cd native/names && ls -1bA) <(cd {ibip}/names && ls -1bA)
                 rm -r {rep}/names {ibip}/doc",
                rep = fixture.rep.display(),
                ibip = fixture.ibip.display(),
            ));
        }
    }
}

/// Documented in ibifs-tree(7), "REFUSALS".
const REFUSALS: [i32; 7] = [
    0,
    libc::ENOENT,
    libc::EINVAL,
    libc::EPERM,
    libc::EEXIST,
    libc::EISDIR,
    libc::ENOTEMPTY,
];

#[test]
fn names_of_every_byte_above_items() {
    let fixture = Fixture::new();
    let names = few_names();
    let parts: Vec<&Path> = fixture.rep.ancestors().collect();
    let [item, year, word, subdomain, root, ..] = parts[..] else {
        panic!("an item has four levels");
    };
    let prefix = fixture.ibip.parent().expect("a prefix");
    let rep_suffix = item.file_name().expect("a name").as_bytes();
    let ibip_suffix = fixture.ibip.file_name().expect("a name").as_bytes();
    for (level, suffix) in [
        (root, None),
        (subdomain, None),
        (word, None),
        (year, Some(rep_suffix)),
        (prefix, Some(ibip_suffix)),
    ] {
        for name in &names {
            let beside = suffix.map(|suffix| [suffix, name].concat());
            for name in [Some(name), beside.as_ref()].into_iter().flatten() {
                let path = join(level, name);
                let shown = path.to_string_lossy();
                if name == b"." {
                    continue;
                }
                let found = answer(rustix::fs::lstat(&path));
                let made = answer(make_directory(&path));
                let removed = answer(rustix::fs::rmdir(&path));
                let linked = answer(rustix::fs::symlink("nowhere", &path));
                let unlinked = answer(rustix::fs::unlink(&path));
                let written = answer(write(&path, b"x"));
                let _ = rustix::fs::unlink(&path);
                let fifo = answer(make_node(&path, FileType::Fifo));
                for messages in [found, made, linked, unlinked, written, fifo] {
                    assert!(REFUSALS.contains(&messages), "{messages} for {shown:?}");
                }
                // The call made a level or an item there, which went away again; or it made a link to one: to the
                // item's metadata, or to what comes back in another spelling.
                if made == 0 && removed == libc::ENOTDIR {
                    let item = std::fs::canonicalize(&path).expect("a link to an item");
                    let _ = rustix::fs::rmdir(item);
                } else {
                    assert!(made != 0 || removed == 0, "{removed} for {shown:?}");
                }
                assert!(
                    [libc::EPERM, libc::EEXIST].contains(&fifo),
                    "{fifo} for {shown:?}"
                );
            }
        }
    }
    fixture.env.sh("ibifs umount A && ibifs fsck A.store");
}

#[test]
fn labels_of_every_byte() {
    let fixture = Fixture::new();
    let mint = fixture.env.root().join("A/.mint");
    let mut taken = vec![b"x".to_vec()];
    for byte in (1..=255u8).filter(|byte| *byte != b'/') {
        let label = [b'a', byte, b'z'];
        let made = answer(make_directory(&join(&mint, &label)));
        if byte.is_ascii() {
            assert_eq!(made, 0, "{byte}");
            taken.push(label.to_vec());
        } else {
            assert_eq!(made, libc::EINVAL, "{byte}");
        }
    }
    let longest = [b'l'; 255];
    assert_eq!(answer(make_directory(&join(&mint, &longest))), 0);
    taken.push(longest.to_vec());
    taken.push("São José 😀".as_bytes().to_vec());
    make_directory(&mint.join("São José 😀")).expect("a label in UTF-8");
    taken.sort();
    let found: Vec<Vec<u8>> = listed(&mint).into_keys().collect();
    assert_eq!(found, taken);
    for label in &taken {
        assert!(join(&mint, label).is_dir());
        // The link of the longest label would be a longer name: with that label goes the item.
        let removed = match label.len() {
            255 => rustix::fs::rmdir(join(&mint, label)),
            _ => rustix::fs::unlink(join(&mint, &[b".", label.as_slice()].concat())),
        };
        assert_eq!(answer(removed), 0);
    }
    assert!(listed(&mint).is_empty());
    fixture.env.prints(
        "ls A/example.org/archive-a/*/ | grep -c '^[0-9]'",
        &taken.len().to_string(),
    );
}

/// Everything that can be done with a name that is too long, and what it answered.
fn deeds_of_a_name(directory: &Path, name: &[u8]) -> Vec<i32> {
    let path = join(directory, name);
    let free = directory.join(".free");
    let mut answers = vec![
        answer(rustix::fs::lstat(&path)),
        answer(make_directory(&path)),
        answer(rustix::fs::rmdir(&path)),
        answer(rustix::fs::symlink("nowhere", &path)),
        answer(rustix::fs::unlink(&path)),
        answer(write(&path, b"x")),
        answer(rustix::fs::rename(&path, &free)),
        answer(rustix::fs::rename(&free, &path)),
        answer(rustix::fs::unlink(&path)),
        answer(make_node(&path, FileType::Fifo)),
    ];
    let _ = rustix::fs::unlink(&path);
    answers.push(answer(rustix::fs::link(directory.join("linked"), &path)));
    let _ = rustix::fs::unlink(&path);
    answers
}

#[test]
fn names_of_255_bytes_and_of_one_more() {
    let fixture = Fixture::new();
    for place in [&fixture.native, &fixture.rep] {
        write(&place.join("linked"), b"").expect("a file");
    }
    for length in [254, 255, 256, 1000, 1024, 1025, 4000] {
        let name = vec![b'n'; length];
        let measure = deeds_of_a_name(&fixture.native, &name);
        assert_eq!(measure.contains(&libc::ENAMETOOLONG), length > 255);
        for place in [&fixture.rep, &fixture.ibip] {
            assert_eq!(deeds_of_a_name(place, &name), measure, "{length}");
        }
    }
    let parts: Vec<&Path> = fixture.rep.ancestors().collect();
    let prefix = fixture.ibip.parent().expect("a prefix");
    let mint = fixture.env.root().join("A/.mint");
    let suffixes = [&fixture.rep, &fixture.ibip].map(|item| item.file_name().expect("a name"));
    let mut directories = parts[1..5].to_vec();
    directories.extend([prefix, &mint]);
    for directory in directories {
        for length in [255usize, 256, 300, 1024] {
            let mut names = vec![vec![b'n'; length], vec![b'9'; length]];
            names.push([b".", &vec![b'n'; length - 1][..]].concat());
            for suffix in suffixes {
                for tail in ["!", ":", ":(", "+(pt):(", "?GetMetadata(", "?GetFileList"] {
                    let mut name = [suffix.as_bytes(), tail.as_bytes()].concat();
                    name.resize(length - 1, b'f');
                    name.push(b')');
                    names.push(name);
                }
            }
            for name in names {
                let shown = String::from_utf8_lossy(&name);
                let answers = deeds_of_a_name(directory, &name);
                // Two of the deeds begin with a name that is not there.
                let mut others = answers
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| ![7, 10].contains(at));
                let all_too_long = others.all(|(_, messages)| *messages == libc::ENAMETOOLONG);
                let any_too_long = answers.contains(&libc::ENAMETOOLONG);
                assert!(
                    if length > 255 {
                        all_too_long
                    } else {
                        !any_too_long
                    },
                    "{shown} in {}: {answers:?}",
                    directory.display()
                );
                assert!(!answers.contains(&libc::EIO), "{shown}: {answers:?}");
            }
        }
    }
    // A format of the greatest length is not one that we have; the item is there as ever.
    fixture.env.prints("ls -A A/.mint", "x");
}

#[test]
fn attributes_and_links_of_the_greatest_length() {
    let fixture = Fixture::new();
    let deeds = |place: &Path| {
        let mut answers = Vec::new();
        let set = |name: &str, value: &[u8]| {
            answer(rustix::fs::setxattr(
                place,
                name,
                value,
                XattrFlags::empty(),
            ))
        };
        for length in [250, 255, 256, 300] {
            answers.push(set(&format!("user.{}", "x".repeat(length - 5)), b"v"));
        }
        for length in [0, 1000, 3000, 4096, 65535, 65536, 65537] {
            answers.push(set("user.v", &vec![b'v'; length]));
            let mut found = vec![0; 70_000];
            let found = rustix::fs::getxattr(place, "user.v", &mut found[..]);
            answers.push(found.map_or(-1, |length| i32::try_from(length).expect("small")));
        }
        for length in [4090, 4094, 4095, 4096] {
            let path = place.join(format!("link-{length}"));
            let text = vec![b'x'; length];
            answers.push(answer(rustix::fs::symlink(OsStr::from_bytes(&text), &path)));
            answers.push(answer(rustix::fs::readlink(&path, Vec::new())));
        }
        for name in ["user.v"]
            .into_iter()
            .map(str::to_owned)
            .chain([250, 255].map(|length| format!("user.{}", "x".repeat(length - 5))))
        {
            let _ = rustix::fs::removexattr(place, name);
        }
        for length in [4090, 4094, 4095] {
            rustix::fs::unlink(place.join(format!("link-{length}"))).expect("a link");
        }
        answers
    };
    let measure = deeds(&fixture.native);
    assert!(measure.contains(&libc::ENAMETOOLONG) && measure.contains(&libc::E2BIG));
    assert_eq!(deeds(&fixture.rep), measure);
    assert_eq!(deeds(&fixture.ibip), measure);
    // A link that climbs is longer in one tree than in the other.
    let climbing = |climbs: usize, length: usize| {
        let mut text = b"../".repeat(climbs);
        text.resize(length, b'y');
        text
    };
    let make = |place: &Path, name: &str, text: &[u8]| {
        answer(rustix::fs::symlink(
            OsStr::from_bytes(text),
            place.join(name),
        ))
    };
    let read = |place: &Path, name: &str| match rustix::fs::readlink(place.join(name), Vec::new()) {
        Ok(text) => i32::try_from(text.as_bytes().len()).expect("short"),
        Err(errno) => -errno.raw_os_error(),
    };
    assert_eq!(make(&fixture.rep, "over", &climbing(4, 4095)), 0);
    assert_eq!(
        (read(&fixture.rep, "over"), read(&fixture.ibip, "over")),
        (4095, 4089)
    );
    // One that stops half way up is written from the root, and may then be too long for any reader.
    assert_eq!(make(&fixture.rep, "half", &climbing(1, 4095)), 0);
    assert_eq!(read(&fixture.rep, "half"), 4095);
    assert_eq!(read(&fixture.ibip, "half"), -libc::ENAMETOOLONG);
    assert_eq!(
        answer(rustix::fs::stat(fixture.ibip.join("half"))),
        libc::ENAMETOOLONG
    );
    assert_eq!(make(&fixture.rep, "fits", &climbing(1, 4000)), 0);
    assert!(read(&fixture.ibip, "fits") > 4000);
    // Written in the IBIp tree it may become too long to keep.
    assert_eq!(make(&fixture.ibip, "kept", &climbing(2, 4089)), 0);
    assert_eq!(
        (read(&fixture.rep, "kept"), read(&fixture.ibip, "kept")),
        (4095, 4089)
    );
    assert_eq!(
        make(&fixture.ibip, "long", &climbing(2, 4090)),
        libc::ENAMETOOLONG
    );
    fixture
        .env
        .sh(&format!("ls -l {} > /dev/null", fixture.rep.display()));
}

/// Makes a chain of directories below one, step by step, and a file at its end, which it gives.
fn chain(below: &Path, name: &str, depth: usize) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = rustix::fs::open(below, flags, Mode::empty()).expect("a directory");
    for _ in 0..depth {
        rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o755)).expect("a directory");
        here = rustix::fs::openat(&here, name, flags, Mode::empty()).expect("the directory");
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(rustix::fs::openat(&here, "end", flags, Mode::from_raw_mode(0o644)).expect("a file"));
    here
}

#[test]
fn paths_of_4096_bytes() {
    let fixture = Fixture::new();
    let deeds = |place: &Path| {
        chain(place, "long-name-of-a-directory", 160);
        let mut answers = Vec::new();
        for length in [4094, 4095, 4096, 5000] {
            let mut path = place.as_os_str().as_bytes().to_vec();
            while path.len() + 26 + 255 < length {
                path.extend(b"/long-name-of-a-directory");
            }
            path.push(b'/');
            path.resize(length.min(path.len() + 255), b'f');
            path.resize(length, b'f');
            let path = PathBuf::from(std::ffi::OsString::from_vec(path));
            answers.push(answer(write(&path, b"x")));
            answers.push(answer(rustix::fs::lstat(&path)));
            answers.push(answer(rustix::fs::unlink(&path)));
            answers.push(answer(make_directory(&path)));
            answers.push(answer(rustix::fs::rmdir(&path)));
            answers.push(answer(rustix::fs::symlink(&path, place.join("to"))));
            answers.push(answer(rustix::fs::stat(place.join("to"))));
            let _ = rustix::fs::unlink(place.join("to"));
        }
        answers
    };
    let measure = deeds(&fixture.native);
    assert!(measure.contains(&0) && measure.contains(&libc::ENAMETOOLONG));
    assert_eq!(deeds(&fixture.rep), measure);
    fixture.env.sh(&format!(
        "rm -r {}/long-name-of-a-directory",
        fixture.ibip.display()
    ));
    assert_eq!(deeds(&fixture.ibip), measure);
}

#[test]
fn trees_deeper_than_any_path() {
    // Long form: IBIFS_TEST_DEPTH=20000.
    let depth = switch("IBIFS_TEST_DEPTH").map_or(1500, |depth| depth as usize);
    let fixture = Fixture::in_env(TestEnv::with(Needs::LongPaths));
    chain(&fixture.native, "deep", depth);
    chain(&fixture.rep, "deep", depth);
    let (rep, ibip) = (fixture.rep.display(), fixture.ibip.display());
    let count = (depth + 1).to_string();
    for place in [format!("{rep}"), format!("{ibip}"), "native".to_owned()] {
        let find = format!("find {place}/deep | wc -l");
        fixture.env.prints(&find, &count);
        // Beyond this tar itself overflows its stack, natively too.
        if depth <= 5000 {
            let tar = format!("tar -C {place} -cf - deep | tar -tf - | wc -l");
            fixture.env.prints(&tar, &count);
        }
    }
    let expected = format!("{}end", "deep/".repeat(depth));
    let started = Instant::now();
    for place in [&rep, &ibip] {
        fixture
            .env
            .prints(&format!("cat '{place}?GetFileList'"), &expected);
        fixture
            .env
            .sh(&format!("xmllint --noout '{place}:(oai_dc)'"));
    }
    println!("listed in {:.1} s", started.elapsed().as_secs_f64());
    fixture.env.sh(&format!(
        "ibifs show {rep} && rm -r native/deep {ibip}/deep"
    ));
    // A file that has a path can be copied, in and out.
    chain(&fixture.native, "d", 600);
    fixture.env.sh(&format!(
        "cp -a native/d {rep}/ && cp -a {ibip}/d copied && diff -r native/d copied
         rsync -a {rep}/d synced/ && diff -r native/d synced/d && rm -r {rep}/d"
    ));
    let (size, held) = fixture.daemon();
    println!("{depth} deep: the daemon took {size} KiB at most and holds {held} descriptors");
    assert!(size < 128 * 1024, "{size} KiB");
    fixture.env.sh("ibifs umount A && ibifs fsck A.store");
}

/// The remains of an interrupted operation are removed however deep they are: by a mount, by a repair, by the next
/// export, with few descriptors.
#[test]
fn deep_trees_that_were_left_are_removed() {
    // Long form: IBIFS_TEST_DEPTH=20000.
    let depth = switch("IBIFS_TEST_DEPTH").map_or(1500, |depth| depth as usize);
    let env = TestEnv::with(Needs::LongPaths).with_a();
    env.sh("ibifs umount A; mkdir -p exported/.ibifs-export; touch exported/.ibifs-export/.made-by-ibifs-export");
    for (place, deed) in [
        ("A.store/staging", "ibifs mount A.store A && ibifs umount A"),
        ("A.store/staging", "ibifs fsck --repair A.store"),
        (
            "exported/.ibifs-export",
            "ibifs export --bagit A.store/col/*/*/*/* exported",
        ),
    ] {
        let left = env.root().join(place);
        chain(&left, "left", depth);
        let other = chain(&left, "other", depth / 2);
        rustix::fs::mkdirat(&other, "empty", Mode::empty()).expect("a directory");
        rustix::fs::symlinkat("/etc", &other, "link").expect("a link");
        env.sh(&format!("ulimit -n 256; {deed}"));
        env.prints(
            &format!("mkdir -p {place}; find {place} -mindepth 1 | wc -l"),
            "0",
        );
    }
}

#[test]
fn a_directory_of_many_entries() {
    // Long form: IBIFS_TEST_ENTRIES=1000000.
    let count = switch("IBIFS_TEST_ENTRIES").map_or(20_000, |count| count as usize);
    let fixture = Fixture::new();
    let (before, _) = fixture.daemon();
    let timed = |what: &str, deed: &dyn Fn()| {
        let started = Instant::now();
        deed();
        println!("{what}: {:.1} s", started.elapsed().as_secs_f64());
    };
    let many = fixture.rep.join("doc/many");
    make_directory(&many).expect("a directory");
    timed("create", &|| {
        for number in 0..count {
            write(&many.join(format!("entry-{number:07}")), b"").expect("a file");
        }
    });
    let messages = count.to_string();
    let (rep, ibip) = (fixture.rep.display(), fixture.ibip.display());
    for (what, script) in [
        ("ls -U", format!("ls -U {ibip}/doc/many | wc -l")),
        ("ls -l", format!("ls -l {rep}/doc/many | grep -c entry")),
        ("find", format!("find {ibip}/doc/many -type f | wc -l")),
        ("?GetFileList", format!("cat '{rep}?GetFileList' | wc -l")),
        (
            "tar",
            format!("tar -C {rep}/doc -cf - many | tar -tf - | grep -c entry"),
        ),
    ] {
        timed(what, &|| fixture.env.prints(&script, &messages));
    }
    fixture.env.sh(&format!("cat '{rep}:(oai_dc)' > /dev/null"));
    timed("rm -r", &|| {
        drop(fixture.env.sh(&format!("rm -r {ibip}/doc/many")));
    });
    assert!(listed(&fixture.stored.join("doc")).is_empty());
    let (size, held) = fixture.daemon();
    println!(
        "{count} entries: the daemon took {size} KiB at most, {before} KiB before, and holds {held} descriptors"
    );
    // The kernel keeps what it has met as it likes; a kibibyte for each is plenty.
    assert!(size < before + 32 * 1024 + count as u64, "{size} KiB");
}

#[test]
fn many_labels() {
    // Long form: IBIFS_TEST_LABELS=5000.
    let count = switch("IBIFS_TEST_LABELS").unwrap_or(100);
    let fixture = Fixture::new();
    fixture.env.prints(
        &format!(
            "rm A/.mint/.x
             for ((i = 0; i < {count}; i++)); do echo A/.mint/label-$i/doc; done | xargs mkdir -p
             ls -U A/.mint | wc -l; ls -l A/.mint | grep -c label-; ls -d A/.mint/*/doc | wc -l
             readlink A/.mint/.label-$(({count} - 1)) | grep -c /
             for ((i = 0; i < {count}; i++)); do echo A/.mint/.label-$i; done | xargs rm; ls -A A/.mint | wc -l"
        ),
        &format!("{count}\n{count}\n{count}\n1\n0"),
    );
    let (size, _) = fixture.daemon();
    println!("{count} labels: the daemon took {size} KiB at most");
}

/// Puts a file of a kind at a path, as an attacker with the store in hands would.
fn put(kind: &str, path: &Path) {
    let _ = std::fs::remove_file(path);
    let _ = std::fs::remove_dir_all(path);
    let made = match kind {
        "fifo" => make_node(path, FileType::Fifo),
        "socket" => make_node(path, FileType::Socket),
        "device" => make_node(path, FileType::CharacterDevice),
        "directory" => make_directory(path),
        "dangling" => rustix::fs::symlink("nowhere", path),
        "loop" => rustix::fs::symlink(path.file_name().expect("a name"), path),
        "outside" => rustix::fs::symlink("/etc/passwd", path),
        _ => panic!("no kind {kind}"),
    };
    made.unwrap_or_else(|errno| panic!("{kind} at {}: {errno}", path.display()));
}

const KINDS: [&str; 7] = [
    "fifo",
    "socket",
    "device",
    "directory",
    "dangling",
    "loop",
    "outside",
];

#[test]
fn kinds_of_files_in_the_place_of_a_sidecar() {
    let fixture = Fixture::new();
    let copy = fixture.env.root().join("A/other.org/word/2020/01.02.03.04");
    for kind in KINDS {
        std::fs::create_dir_all(&copy).expect("a copy");
        let direct = copy.join(".ibi");
        put(kind, &direct);
        let aside = copy.join("aside");
        put(kind, &aside);
        fixture.env.sh(&format!(
            "cd {copy}
             test \"$(state .)\" = Copy
             touch x
             timeout 20 ls -la . > /dev/null
             timeout 20 cat '../01.02.03.04:(oai_dc)' > /dev/null
             timeout 20 cat '../01.02.03.04?GetFileList' > /dev/null
             timeout 20 ibifs show . > /dev/null
             timeout 20 mv -fT aside .ibi
             test \"$(state .)\" = Copy
             timeout 20 ln -sfn ../../../../{item} '../01.02.03.04!' 2> /dev/null || true
             cd / && timeout 20 rm -r {copy}",
            copy = copy.display(),
            item = fixture.env.sh("rep A/.mint/x"),
        ));
    }
    // In an original it is the same, and what is in the way is reported.
    for kind in KINDS {
        put(kind, &fixture.stored.join(".ibi"));
        put(kind, &fixture.stored.join(".ibi.metadata"));
        fixture.env.sh(&format!(
            "test \"$(state {item})\" = Original
             timeout 20 ls -la {item} > /dev/null
             timeout 20 cat '{item}?GetFileList' > /dev/null
             timeout 20 cat '{item}:(oai_dc)' > /dev/null || true
             timeout 20 cat '{item}:' > /dev/null < /dev/null || true
             timeout 20 ln -s {item} '{item}+(pt)' 2> /dev/null || true
             ibifs umount A
             timeout 20 ibifs fsck A.store > found || true
             grep -q 'sid' found
             timeout 20 ibifs reindex A.store 2> /dev/null || true
             timeout 20 ibifs mount A.store A",
            item = fixture.rep.display(),
        ));
    }
}

/// The store's own files are taken as found: whatever lies in their place, no command hangs, and
/// none draws on the terminal.
#[test]
fn kinds_of_files_in_the_place_of_the_stores_own() {
    let env = TestEnv::new();
    env.sh("ibifs init clean --host archive-a.example.org && mkdir M");
    let store = env.root().join("A.store");
    for name in [
        "archive.ibi",
        "lock",
        "ledger",
        "relations.sqlite3",
        "col",
        "deleted",
        "staging",
        "reserve",
    ] {
        for kind in KINDS {
            env.sh("rm -rf A.store && cp -a clean A.store");
            put(kind, &store.join(name));
            env.sh(
                "for command in 'ls A.store' 'status A.store' 'mint A.store' 'fsck A.store' \
                    'reindex A.store' 'mount A.store M'; do
                    status=0
                    timeout 20 ibifs $command > out 2>&1 || status=$?
                    ((status < 7)) || { echo \"$command: $status\"; exit 1; }
                    no grep -P '[\\x00-\\x08\\x0b-\\x1f\\x7f]' out
                 done
                 if mountpoint -q M; then timeout 20 ls M > /dev/null; ibifs umount M; fi",
            );
        }
    }
}

/// A copy with this sidecar, written as a tool would; where it is in the mount.
fn copy_with(env: &TestEnv, date: &str, sidecar: &[u8]) -> PathBuf {
    let copy = env.root().join("A/other.org/word/2020").join(date);
    std::fs::create_dir_all(&copy).expect("a copy");
    std::fs::write(copy.join(".ibi"), sidecar).expect("a sidecar");
    copy
}

#[test]
fn sidecars_of_every_size() {
    const LIMIT: usize = 1 << 20;
    let fixture = Fixture::new();
    let env = &fixture.env;
    let names = |date: &str| format!("ibi {{rep other.org/word/2020/{date}}}\n");
    let state_of = |path: &Path| env.sh(&format!("ibifs show {}", path.display()));
    // As many pairs as fit, to the last byte.
    let mut pairs = names("01.01.00.00").into_bytes();
    while pairs.len() + 4 < LIMIT {
        pairs.extend(b"a 1\n");
    }
    pairs.resize(LIMIT, b'\n');
    let full = copy_with(env, "01.01.00.00", &pairs);
    // One byte too many, a million pairs, a hundred thousand relations: too large to be accepted.
    pairs.push(b'\n');
    let mut large = vec![copy_with(env, "01.01.00.01", &pairs)];
    large.push(copy_with(
        env,
        "01.01.00.02",
        &[
            names("01.01.00.02").into_bytes(),
            b"a 1\n".repeat(1_000_000),
        ]
        .concat(),
    ));
    let letters = || b'a'..=b'z';
    let languages: Vec<String> = letters()
        .flat_map(|a| letters().map(move |b| (a, b)))
        .flat_map(|(a, b)| letters().map(move |c| [a, b, b'-', b'A', c.to_ascii_uppercase()]))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    let relation = |(at, language): (usize, &String)| {
        let year = 1000 + at;
        format!("ibi.translation({language}) {{rep a.b/c/{year}/02.16.17.46}}\n")
    };
    let many: String = languages.iter().enumerate().map(relation).collect();
    large.push(copy_with(
        env,
        "01.01.00.03",
        format!("{}{}", names("01.01.00.03"), many.repeat(6)).as_bytes(),
    ));
    // Seventeen thousand relations fit.
    let mut started = Instant::now();
    let related = copy_with(
        env,
        "01.01.00.04",
        format!("{}{many}", names("01.01.00.04")).as_bytes(),
    );
    let taken_in = started.elapsed().as_secs_f64();
    started = Instant::now();
    let count = env.sh(&format!(
        "ibifs show {} | grep -c translation",
        related.display()
    ));
    let messages = started.elapsed().as_secs_f64();
    println!("{count} relations taken in after {taken_in:.1} s, messages in {messages:.1} s");
    assert_eq!(count, languages.len().to_string());
    env.prints(
        &format!("readlink '{}+(zz-AZ)'", related.display()),
        "../../../a.b/c/18575/02.16.17.46",
    );
    let name = |letter: &str| letter.repeat(255);
    let far = format!("{}/{}/2009/02.16.17.46", name("s"), name("w"));
    let long = copy_with(
        env,
        "01.01.00.05",
        format!("{}ibi.nextedition {{rep {far}}}\n", names("01.01.00.05")).as_bytes(),
    );
    env.prints(
        &format!("readlink '{}!'", long.display()),
        &format!("../../../{far}"),
    );
    for path in [&full, &related, &long] {
        assert!(state_of(path).contains("Copy"));
        env.sh(&format!("rm -r {}", path.display()));
    }
    // A text that is too large is refused, and stays next to the item.
    for path in &large {
        assert!(state_of(path).contains("Copy"));
    }
    let (size, _) = fixture.daemon();
    println!("sidecars: the daemon took {size} KiB at most");
    assert!(size < 256 * 1024, "{size} KiB");
    env.prints(
        "ls -A A/other.org/word/2020/*/ | grep -c '^.ibi.broken-1$'",
        &large.len().to_string(),
    );
    env.sh("ibifs umount A; ibifs fsck A.store");
}

#[test]
fn a_sidecar_does_not_grow_beyond_what_is_read() {
    const LIMIT: usize = 1 << 20;
    let fixture = Fixture::new();
    let env = &fixture.env;
    let sidecar = fixture.rep.join(".ibi");
    let mut text = std::fs::read(&sidecar).expect("a sidecar");
    text.extend(b"x.filling ");
    text.resize(LIMIT - 1, b'x');
    text.push(b'\n');
    std::fs::write(&sidecar, &text).expect("a full sidecar");
    let item = fixture.rep.display();
    env.sh("mkdir -p A/.mint/other/doc");
    let other = env.sh("rep A/.mint/other");
    for change in [
        format!("ln -sfn ../../../{other} '{item}+(pt)'"),
        format!("setfattr -n user.ibi.nextedition -v {other} {item}"),
        format!("setfattr -n user.ibi.target -v {} {item}", "x".repeat(100)),
        format!("mkdir '{item}+(fr)'"),
    ] {
        env.complains(&change, "File too large");
        assert_eq!(
            std::fs::read(&sidecar).expect("a sidecar"),
            text,
            "{change}"
        );
    }
    env.prints(&format!("state {item}"), "Original");
    env.sh("ibifs umount A && ibifs fsck A.store && ibifs reindex A.store");
}

#[test]
fn metadata_of_every_kind_and_size() {
    const LIMIT: usize = 1 << 20;
    let fixture = Fixture::new();
    let env = &fixture.env;
    let item = fixture.rep.display();
    let asks = format!(
        "set -o pipefail; timeout 20 cat '{item}:(oai_dc)' | xmllint --xpath \"string(//*[local-name()='title'])\" -"
    );
    env.sh(&format!("mkdir '{item}:' && mkdir -p '{item}:/doc'"));
    let doc = PathBuf::from(format!("{item}:/doc"));
    let record = doc.join("record.bib");
    let bibtex = |length: usize| {
        let mut text = b"@misc{k, title = {held}}\n".to_vec();
        text.resize(length, b'\n');
        text
    };
    std::fs::write(&record, bibtex(LIMIT)).expect("a record");
    env.prints(&asks, "held");
    std::fs::write(&record, bibtex(LIMIT + 1)).expect("a record");
    env.prints(&asks, "");
    for kind in KINDS {
        put(kind, &record);
        env.prints(&asks, "");
        put(kind, &doc.join("other.xml"));
        put(kind, &doc.join("\u{1b}[31m\n.xml"));
        std::fs::write(doc.join("good.enw"), "%0 Report\n%T held\n").expect("a record");
        env.prints(&asks, "held");
        env.sh(&format!("rm -rf '{item}:/doc'/*"));
    }
    // The text next to an item, at the limit and beyond it.
    let text = |length: usize| {
        let mut text = b"title: held\n".to_vec();
        text.resize(length, b'\n');
        text
    };
    env.sh("mkdir -p A/.mint/y/doc");
    let bare = env.root().join("A").join(env.sh("rep A/.mint/y"));
    let asks = asks.replace(&item.to_string(), &bare.display().to_string());
    let beside = format!("{}:", bare.display());
    std::fs::write(&beside, text(LIMIT)).expect("a text");
    env.prints(&asks, "held");
    std::fs::write(&beside, text(LIMIT + 1)).expect("a text");
    env.complains(&asks, "File too large");
}

#[test]
fn a_hostile_target_and_hostile_names_draw_nothing_on_the_terminal() {
    let fixture = Fixture::new();
    let env = &fixture.env;
    let item = fixture.rep.display();
    let orders = "$'a\\e[2J\\e]0;x\\a\\nstate            Original\\r\\x7f\\u009b31m'";
    env.sh(&format!("setfattr -n user.ibi.target -v {orders} {item}"));
    let shown = env.sh(&format!("ibifs show {item}"));
    assert!(
        shown.contains(
            "\ntarget           a\\u{1b}[2J\\u{1b}]0;x\\u{7}\\nstate            Original\\r\\u{7f}\\u{9b}31m\n"
        ),
        "{shown}"
    );
    // For a program it is whole.
    let json = format!("ibifs show --json {item}");
    let printed = env.sh(&json);
    assert!(
        !printed.contains(|c: char| c.is_control() && c != '\n'),
        "{printed}"
    );
    let read = "import json, sys; print(ascii(json.load(sys.stdin)['target']))";
    env.prints(
        &format!("{json} | python3 -c \"{read}\""),
        r"'a\x1b[2J\x1b]0;x\x07\nstate            Original\r\x7f\x9b31m'",
    );
    // Texts of every kind, with hostile names wherever a name may stand.
    env.sh(
        "ibifs umount A
         bad=$'\\e[31m\\n\\a\\u009b'
         mkdir -p A.store/col/$bad/b/c/d A.store/col/a.b/$bad/c/d A.store/ibip/$bad/x A.store/deleted/col/a.b/c/2000
         touch A.store/deleted/col/a.b/c/2000/$bad A.store/staging/$bad
         printf 'ibi.alias {a\\033 b}' > A.store/col/example.org/archive-a/*/*/.ibi || true
         mkdir \"store$bad\" \"mount$bad\"
         ibifs init \"new$bad\" --host a.b.org > /dev/null",
    );
    let commands = [
        "fsck A.store",
        "fsck --json A.store",
        "reindex A.store",
        "ls A.store",
        "show --store A.store a.b/c/2000/01.01.00.00",
        "$bad",
        "--$bad",
        "init new$bad",
        "init store$bad --host $bad",
        "init other$bad --host a.b.org",
        "init x --granularity $bad --host a.b",
        "init x --service $bad --host a.b",
        "init x --port $bad",
        "mount A.store mount$bad",
        "status mount$bad",
        "umount mount$bad",
        "umount mount$bad",
        "mount new$bad mount$bad",
        "status --json mount$bad",
        "mount new$bad mount$bad",
        "umount mount$bad",
        "mount A.store M -o $bad",
        "mount A.store nowhere$bad",
        "mount nowhere$bad M",
        "fsck nowhere$bad",
        "show $bad",
        "show nowhere$bad/$bad",
        "ls --state $bad A.store",
        "ls --prefix $bad A.store",
        "mint --lang $bad --translation-of x A.store",
        "relate $bad --next-edition $bad",
        "id check $bad",
        "id explain $bad",
    ];
    for command in commands {
        let words: Vec<String> = command
            .split(' ')
            .map(|word| format!("\"{word}\""))
            .collect();
        let script = format!(
            "bad=$'\\e[31m\\n\\a\\u009b\\r'\nRUST_LOG=debug timeout 30 ibifs {}",
            words.join(" ")
        );
        let output = env.run(&script);
        let status = output.status.code();
        assert!(
            status.is_some_and(|status| status < 7),
            "{command}: {status:?}"
        );
        for messages in [output.stdout, output.stderr] {
            let messages = String::from_utf8(messages).expect("UTF-8");
            assert!(
                !messages.contains(|c: char| c.is_control() && c != '\n'),
                "{command}: {messages:?}"
            );
        }
    }
}

/// Store and mount point may be called anything, and no mount with such a name, whosever it is,
/// keeps the commands from finding the others.
#[test]
fn stores_and_mount_points_of_any_name() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"store=$'st\xff\n \\040x' mount=$'m\xfe\t \\x' strange=$'strange\xff'
          mkdir "$strange" && mount -t tmpfs none "$strange"
          mkdir -p A/.mint/x/doc
          ibifs init "$store" --host archive-b.example.net > /dev/null && mkdir "$mount"
          ibifs mount "$store" "$mount"
          for place in "$mount" "$store"; do
            ibifs mint "$place" > /dev/null
            ibifs status "$place" | grep -q '^mounted  .*/m'
          done
          mkdir -p "$mount/.mint/x/doc" && state "$mount/.mint/x" | grep -q Original
          ibifs ls "$mount" > first && ibifs ls "$store" > second
          cmp first second && test $(wc -l < first) = 4
          no ibifs mount "$store" A.store
          ibifs show --store "$mount" "$(rep "$mount/.mint/x")" > /dev/null
          ibifs umount "$mount" && ibifs fsck "$store"
          ibifs ls A > /dev/null && ibifs umount A && umount "$strange""#,
    );
}

/// Files whose paths are longer than 250 MB together are too many for a list of them, which says so;
/// whatever else is asked of the item is answered.
#[test]
fn a_list_of_files_ends_at_250_megabytes() {
    let fixture = Fixture::in_env(TestEnv::with(Needs::LongPaths));
    // A thousand directories deep a path has 256,004 bytes before the file's own name.
    let held = chain(&fixture.stored.join("doc"), &"d".repeat(255), 1000);
    let end = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let make = |from: usize, to: usize| {
        for number in from..to {
            write(&end.join(format!("{number:06}")), b"").expect("a file");
        }
    };
    make(0, 970);
    let (rep, ibip) = (fixture.rep.display(), fixture.ibip.display());
    let list = |tree: &dyn std::fmt::Display| format!("cat '{tree}?GetFileList' | wc -lc | xargs");
    for tree in [&rep, &ibip] {
        fixture.env.prints(&list(&tree), "971 248586678");
    }
    make(970, 980);
    for tree in [&rep, &ibip] {
        fixture
            .env
            .complains(&format!("cat '{tree}?GetFileList'"), "File too large");
    }
    fixture.env.sh(&format!(
        "mkdir -p A/.mint/y/doc; ibifs relate A/.mint/y --metadata {rep}; no cat 'A/$(rep A/.mint/y):(oai_dc)'
         ls '{rep}' > /dev/null; cat '{rep}:(oai_dc)' > /dev/null; ibifs show {rep}; rm -r {rep}; ibifs umount A; ibifs fsck A.store"
    ));
}
