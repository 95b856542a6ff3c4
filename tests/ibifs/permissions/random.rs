//! The same random tree in a native directory and inside an item, the same random operations of the
//! same random users: the same answers, owners, modes and access control lists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;

use crate::support::{Needs, Rng, TestEnv, User, seed, switch};

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// Numbers that users, owners and lists are of.
const UIDS: [u32; 4] = [0, 60001, 60002, 60003];
const GIDS: [u32; 5] = [0, 60001, 60002, 60010, 60011];

/// The operations of a user. Names are relative to the tree.
#[derive(Clone, Debug)]
enum Deed {
    MakeDirectory(String, u32),
    Create(String, i32, u32),
    Open(String, i32),
    Node(String, u32),
    Link(String, String),
    Symlink(String),
    Rename(String, String, u32),
    Remove(String, bool),
    Mode(String, u32),
    Owner(String, Option<u32>, Option<u32>),
    Truncate(String, u64),
    Touch(String, bool),
    SetAttribute(String, &'static str, Vec<u8>),
    GetAttribute(String, &'static str),
    RemoveAttribute(String, &'static str),
    List(String),
    Look(String),
    May(String, u32),
}

/// One deed of a user with an umask, to be done below a directory.
struct Job {
    deed: Deed,
    umask: u32,
    below: PathBuf,
}

/// The number of operations in one tree before the other's turn.
const TURN: u64 = 25;

/// A user's thread.
struct Actor {
    user: User,
    jobs: Sender<Job>,
    answers: Receiver<String>,
}

impl Actor {
    fn new(user: User) -> Actor {
        let (jobs, received) = channel::<Job>();
        let (sent, answers) = channel();
        let who = user.clone();
        std::thread::spawn(move || {
            who.become_in_thread();
            for job in received {
                rustix::process::umask(Mode::from_raw_mode(job.umask));
                let answer = job.deed.done_below(&job.below);
                let printed =
                    answer.unwrap_or_else(|errno| format!("errno {}", errno.raw_os_error()));
                if sent.send(printed).is_err() {
                    return;
                }
            }
        });
        Actor {
            user,
            jobs,
            answers,
        }
    }

    fn act(&self, deed: &Deed, umask: u32, below: &Path) -> String {
        let job = Job {
            deed: deed.clone(),
            umask,
            below: below.to_owned(),
        };
        self.jobs.send(job).expect("a thread");
        self.answers.recv().expect("an answer")
    }
}

impl Deed {
    fn done_below(&self, tree: &Path) -> Result<String, Errno> {
        let at = |name: &String| tree.join(name);
        let bits = |mode: &u32| Mode::from_raw_mode(*mode);
        let flags = |flags: &i32| OFlags::from_bits_retain(*flags as u32) | OFlags::CLOEXEC;
        match self {
            Deed::MakeDirectory(name, mode) => rustix::fs::mkdir(at(name), bits(mode))?,
            Deed::Create(name, how, mode) => {
                let how = flags(how) | OFlags::CREATE | OFlags::NONBLOCK;
                drop(rustix::fs::open(at(name), how, bits(mode))?);
            }
            Deed::Open(name, how) => {
                let how = flags(how) | OFlags::NONBLOCK;
                let file = rustix::fs::open(at(name), how, Mode::empty())?;
                let is_file = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode)
                    == FileType::RegularFile;
                if is_file && how.contains(OFlags::WRONLY) {
                    rustix::io::write(&file, b"x")?;
                }
            }
            Deed::Node(name, mode) => {
                rustix::fs::mknodat(CWD, at(name), FileType::Fifo, bits(mode), 0)?;
            }
            Deed::Link(from, to) => rustix::fs::link(at(from), at(to))?,
            Deed::Symlink(name) => rustix::fs::symlink("a", at(name))?,
            Deed::Rename(from, to, how) => {
                let how = RenameFlags::from_bits_retain(*how);
                rustix::fs::renameat_with(CWD, at(from), CWD, at(to), how)?;
            }
            Deed::Remove(name, true) => rustix::fs::rmdir(at(name))?,
            Deed::Remove(name, false) => rustix::fs::unlink(at(name))?,
            Deed::Mode(name, mode) => rustix::fs::chmod(at(name), bits(mode))?,
            Deed::Owner(name, uid, gid) => {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                rustix::fs::chownat(CWD, at(name), uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Deed::Truncate(name, size) => {
                let file = rustix::fs::open(at(name), OFlags::WRONLY | OFlags::NONBLOCK, bits(&0))?;
                rustix::fs::ftruncate(file, *size)?;
            }
            Deed::Touch(name, now) => {
                let time = match now {
                    true => Timespec {
                        tv_sec: 0,
                        tv_nsec: rustix::fs::UTIME_NOW,
                    },
                    false => Timespec {
                        tv_sec: 77,
                        tv_nsec: 7,
                    },
                };
                let times = Timestamps {
                    last_access: time,
                    last_modification: time,
                };
                rustix::fs::utimensat(CWD, at(name), &times, AtFlags::empty())?;
            }
            Deed::SetAttribute(name, attribute, value) => {
                rustix::fs::setxattr(at(name), *attribute, value, XattrFlags::empty())?;
            }
            Deed::GetAttribute(name, attribute) => {
                let mut value = vec![0; 4096];
                let count = rustix::fs::getxattr(at(name), *attribute, &mut value[..])?;
                return Ok(format!("{:?}", &value[..count]));
            }
            Deed::RemoveAttribute(name, attribute) => {
                rustix::fs::removexattr(at(name), *attribute)?;
            }
            Deed::List(name) => {
                let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let directory = rustix::fs::open(at(name), how, Mode::empty())?;
                let mut names = Vec::new();
                for entry in rustix::fs::Dir::read_from(directory)? {
                    names.push(entry?.file_name().to_owned());
                }
                names.sort();
                return Ok(format!("{names:?}"));
            }
            Deed::Look(name) => return Ok(shown(&rustix::fs::lstat(at(name))?)),
            Deed::May(name, access) => {
                let access = Access::from_bits_retain(*access);
                rustix::fs::accessat(CWD, at(name), access, AtFlags::EACCESS)?;
            }
        }
        Ok("done".to_owned())
    }
}

fn shown(stat: &rustix::fs::Stat) -> String {
    let size = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => 0,
        _ => stat.st_size,
    };
    format!(
        "{:o} {}:{} {size} {}",
        stat.st_mode, stat.st_uid, stat.st_gid, stat.st_nlink
    )
}

/// Every path with its owner, mode, links, size and lists, as root sees them.
fn portrait(tree: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![tree.to_owned()];
    while let Some(path) = waiting.pop() {
        let stat = rustix::fs::lstat(&path).expect("it is there");
        let mut line = shown(&stat);
        for name in [ACCESS, DEFAULT, "user.x", "security.capability"] {
            let mut value = vec![0; 4096];
            if let Ok(count) = rustix::fs::lgetxattr(&path, name, &mut value[..]) {
                line.push_str(&format!(" {name}={:?}", &value[..count]));
            }
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let names = std::fs::read_dir(&path).expect("a listing");
            waiting.extend(names.map(|entry| entry.expect("a name").path()));
        }
        let below = path.strip_prefix(tree).expect("below").to_owned();
        found.insert(below, line);
    }
    found
}

fn name(rng: &mut Rng) -> String {
    let mut path = String::new();
    for _ in 0..[1, 1, 2, 2, 3][rng.below(5)] {
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(["a", "b", "c", "d"][rng.below(4)]);
    }
    path
}

fn mode(rng: &mut Rng) -> u32 {
    let usual = [
        0o777, 0o755, 0o700, 0o770, 0o1777, 0o2775, 0o3777, 0o6777, 0o4755, 0o2755,
    ];
    if rng.percent(60) {
        usual[rng.below(usual.len())]
    } else {
        rng.below(0o10000) as u32
    }
}

/// An access control list as the kernel reads it; now and then one that it refuses.
fn list(rng: &mut Rng) -> Vec<u8> {
    let mut entries: Vec<(u16, u32)> = vec![(1, u32::MAX)];
    let mut named = false;
    for uid in UIDS {
        if rng.percent(30) {
            entries.push((2, uid));
            named = true;
        }
    }
    entries.push((4, u32::MAX));
    for gid in GIDS {
        if rng.percent(25) {
            entries.push((8, gid));
            named = true;
        }
    }
    if named != rng.percent(5) {
        entries.push((16, u32::MAX));
    }
    entries.push((32, u32::MAX));
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, id) in entries {
        bytes.extend(tag.to_le_bytes());
        let permissions = if rng.percent(50) {
            7
        } else {
            rng.below(8) as u16
        };
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn deed(rng: &mut Rng) -> Deed {
    let path = name(rng);
    let access = [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR][rng.below(3)];
    let attribute = [ACCESS, DEFAULT, "user.x"][rng.below(3)];
    match rng.below(100) {
        0..13 => Deed::MakeDirectory(path, mode(rng)),
        13..24 => {
            let how = [0, libc::O_EXCL, libc::O_TRUNC][rng.below(3)];
            Deed::Create(path, access | how, mode(rng))
        }
        24..32 => {
            let how = [0, 0, libc::O_TRUNC, libc::O_APPEND][rng.below(4)];
            Deed::Open(path, access | how)
        }
        32..34 => Deed::Node(path, mode(rng)),
        34..37 => Deed::Link(path, name(rng)),
        37..38 => Deed::Symlink(path),
        38..44 => {
            let how = [0, 0, 0, 1, 2][rng.below(5)];
            Deed::Rename(path, name(rng), how)
        }
        44..50 => Deed::Remove(path, rng.percent(50)),
        50..60 => Deed::Mode(path, mode(rng)),
        60..68 => {
            let uid = rng.percent(60).then(|| UIDS[rng.below(UIDS.len())]);
            let gid = rng.percent(60).then(|| GIDS[rng.below(GIDS.len())]);
            Deed::Owner(path, uid, gid)
        }
        68..70 => Deed::Truncate(path, rng.below(9) as u64),
        70..72 => Deed::Touch(path, rng.percent(50)),
        72..82 => {
            let value = if attribute == "user.x" {
                vec![rng.byte()]
            } else {
                list(rng)
            };
            Deed::SetAttribute(path, attribute, value)
        }
        82..84 => Deed::GetAttribute(path, attribute),
        84..86 => Deed::RemoveAttribute(path, attribute),
        86..90 => Deed::List(path),
        90..95 => Deed::Look(path),
        _ => Deed::May(path, 1 + rng.below(7) as u32),
    }
}

/// Thousands of operations by seven users.
#[test]
fn random_operations_of_random_users_are_as_natively() {
    let operations = switch("IBIFS_TEST_OPERATIONS").unwrap_or(6_000);
    let seed = seed();
    let env = TestEnv::with(Needs::Posix);
    let trees = env.sh(
        "chmod 755 .; mkdir -p native/t; mkdir A; ibifs init A.store --host archive-a.example.org > /dev/null
         ibifs mount -o suid,dev A.store A; mkdir -p A/.mint/it/doc/t; chmod 1777 A/.mint/it/doc/t native/t
         rep A/.mint/it; echo; ibip A/.mint/it",
    );
    let native = env.root().join("native/t");
    let mounted: Vec<PathBuf> = trees
        .lines()
        .map(|item| env.root().join("A").join(item).join("doc/t"))
        .collect();
    let store = env
        .root()
        .join("A.store/col")
        .join(trees.lines().next().expect("a rep"));
    let actors = [
        User::root(),
        User::new(60001, 60001, &[]),
        User::new(60001, 60001, &[60010]),
        User::new(60002, 60002, &[60010, 60011]),
        User::new(60002, 60010, &[60001]),
        User::new(60003, 60011, &[]),
        User::new(60003, 60003, &[0]),
    ]
    .map(Actor::new);
    let mut rng = Rng::from_seed(seed);
    let mut done = Vec::new();
    let (mut allowed, mut forbidden) = (0, 0);
    for number in 0..operations {
        // Root does what makes room, the others more.
        let actor = if rng.percent(20) {
            &actors[0]
        } else {
            &actors[rng.below(actors.len())]
        };
        let (deed, umask) = (deed(&mut rng), [0, 0o022, 0o077, 0o007][rng.below(4)]);
        // Each in turn, after everything has been looked at: what owner a directory has by a change
        // in the other tree, the kernel learns when it is looked at.
        let tree = &mounted[(number / TURN) as usize % mounted.len()];
        let expected = actor.act(&deed, umask, &native);
        let answer = actor.act(&deed, umask, tree);
        done.push(format!(
            "{number}: {:?} {deed:?} umask {umask:o}: {expected}",
            actor.user
        ));
        let last = || done[done.len().saturating_sub(25)..].join("\n");
        assert_eq!(answer, expected, "IBIFS_TEST_SEED={seed}\n{}", last());
        match expected.strip_prefix("errno ") {
            Some("1" | "13") => forbidden += 1,
            Some(_) => {}
            None => allowed += 1,
        }
        if (number + 1) % TURN == 0 || number + 1 == operations {
            let expected = portrait(&native);
            let trees = [&mounted[0], &mounted[1], &store.join("doc/t")];
            for tree in trees {
                let found = portrait(tree);
                for path in expected.keys().chain(found.keys()) {
                    let (found, expected) = (found.get(path), expected.get(path));
                    assert_eq!(
                        found,
                        expected,
                        "{} in {}, IBIFS_TEST_SEED={seed}\n{}",
                        path.display(),
                        tree.display(),
                        last()
                    );
                }
            }
        }
    }
    println!("{operations} operations, {allowed} allowed, {forbidden} forbidden");
    assert!(allowed > operations / 20 && forbidden > operations / 20);
}
