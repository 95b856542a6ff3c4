//! A user who takes leases on files of their own, puts FIFOs in their place, and opens more than their
//! share: no other user waits, in the mount, over HTTP or at a command.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::http::served::Served;
use crate::support::{TestEnv, User};

/// Longer than anything takes that does not wait for a lease, with others busy on the machine; the
/// kernel lets a lease keep an open waiting for 45 seconds.
const SOON: Duration = Duration::from_secs(20);

fn stranger() -> User {
    User::new(1001, 1001, &[])
}

/// A file with a lease on it; given back when dropped.
pub struct Lease(File);

impl Lease {
    /// Takes one as the user who owns the file.
    pub fn take(user: &User, path: &Path) -> Lease {
        // SAFETY: sets no handler: the signal of a broken lease is ignored.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let take = || {
            let file = File::options()
                .read(true)
                .write(true)
                .open(path)
                .expect("one's own file");
            // SAFETY: takes no pointer; the descriptor is open.
            let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
            (file, taken)
        };
        // The kernel may hold the file for a moment after it was closed.
        let end = Instant::now() + SOON;
        loop {
            let (file, taken) = user.run(take);
            if taken == 0 {
                return Lease(file);
            }
            assert!(
                Instant::now() < end,
                "no lease on {path:?}: {}",
                std::io::Error::last_os_error()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Maps the file for writing, until the process ends, and changes its first byte.
    fn map(&self) {
        let (protection, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let file = self.0.as_raw_fd();
        // SAFETY: a new mapping of an open file that is longer than a byte and is not cut short.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 1, protection, shared, file, 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.cast::<u8>().write(b'x');
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
    }
}

/// A mount of root that others may mint in, whose store they can enter, with an item of the stranger
/// that holds so many files.
struct Fixture {
    env: TestEnv,
    rep: String,
    ibip: String,
}

impl Fixture {
    fn new(files: usize) -> Fixture {
        let env = TestEnv::new().with_a();
        env.sh("chmod 1777 A; chmod 755 . A.store");
        let label = env.root().join("A/.mint/theirs");
        stranger().run(|| {
            std::fs::create_dir_all(label.join("doc")).expect("minted");
            for number in 0..files {
                std::fs::write(label.join(format!("doc/f{number}")), "content").expect("written");
            }
        });
        let target = stranger().run(|| std::fs::read_link(env.root().join("A/.mint/.theirs")));
        let target = target.expect("the maker's label");
        let rep = target
            .to_string_lossy()
            .trim_start_matches("../")
            .to_owned();
        let ibip = env.sh(&format!("ibip A/{rep}"));
        // No file stays open that would keep a lease away.
        env.sh("ibifs umount A; ibifs mount A.store A");
        Fixture { env, rep, ibip }
    }

    fn beneath(&self, path: &str) -> PathBuf {
        self.env
            .root()
            .join("A.store/col")
            .join(&self.rep)
            .join(path)
    }

    fn file(&self, view: usize, path: &str) -> PathBuf {
        let name = [&self.rep, &self.ibip][view % 2];
        self.env.root().join("A").join(name).join(path)
    }

    fn leases(&self, files: usize) -> Vec<Lease> {
        let path = |number| self.beneath(&format!("doc/f{number}"));
        (0..files)
            .map(|number| Lease::take(&stranger(), &path(number)))
            .collect()
    }

    /// Does what another user does: lists the root, looks something up in both trees, mints an item, writes and removes
    /// it.
    #[track_caller]
    fn others_go_on(&self, turn: &str) {
        let began = Instant::now();
        self.env.sh(&format!(
            "ls A > /dev/null; ls A/{rep} A/{ibip}/doc > /dev/null; stat A/{rep}/doc/f0 > /dev/null
             mkdir -p A/.mint/{turn}/doc; echo text > A/.mint/{turn}/doc/f; grep -q text A/$(rep A/.mint/{turn})/doc/f
             setfattr -n user.ibi.language -v en A/.mint/{turn}",
            rep = self.rep,
            ibip = self.ibip,
        ));
        let took = began.elapsed();
        assert!(took < SOON, "another user waited for {took:?}");
    }
}

/// truncate(2).
#[track_caller]
fn cut(path: &Path, length: i64) {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the path ends with a NUL and lives for the call.
    assert_eq!(unsafe { libc::truncate(path.as_ptr(), length) }, 0);
}

/// A call that opens, cuts short or runs the file in either tree waits for the lease, and no other request does. Once
/// the lease is given back the callers have what they requested.
#[test]
fn a_lease_delays_its_own_readers_only() {
    const FILES: usize = 24;
    let fixture = Fixture::new(FILES);
    let leases = fixture.leases(FILES);
    let waiting: Vec<_> = (0..FILES)
        .map(|number| {
            let path = fixture.file(number, &format!("doc/f{number}"));
            std::thread::spawn(move || {
                stranger().run(|| match number % 4 {
                    0 | 1 => assert_eq!(std::fs::read(&path).expect("read"), b"content"),
                    2 => {
                        cut(&path, 3);
                        assert_eq!(std::fs::read(&path).expect("read"), b"con");
                    }
                    _ => {
                        std::fs::write(&path, "other").expect("written");
                        assert_eq!(std::fs::read(&path).expect("read"), b"other");
                    }
                });
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    fixture.others_go_on("one");
    fixture.others_go_on("two");
    assert!(
        waiting.iter().all(|reader| !reader.is_finished()),
        "a lease is passed over"
    );
    let open = |flags: OFlags| rustix::fs::open(fixture.file(1, "doc/f0"), flags, Mode::empty());
    let refused = open(OFlags::RDONLY | OFlags::NONBLOCK);
    assert_eq!(refused.err(), Some(Errno::AGAIN));
    drop(leases);
    for reader in waiting {
        reader.join().expect("it has what it asked for");
    }
    let data = fixture.env.sh("getfattr --only-values -n user.ibi.data A");
    assert!(
        !data.contains("daemon") || data.contains("old-kernel"),
        "{data}"
    );
}

/// A user has so many waiting at once; the next ones are refused, and another user is not.
#[test]
fn a_user_has_so_many_waiting_at_once() {
    let fixture = Fixture::new(2);
    let leases = fixture.leases(2);
    let path = fixture.file(0, "doc/f0");
    let waiting: Vec<_> = (0..80)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || stranger().run(|| std::fs::read(&path).map(drop)))
        })
        .collect();
    let end = Instant::now() + SOON;
    let refused = || waiting.iter().filter(|reader| reader.is_finished()).count();
    while refused() < 16 {
        assert!(Instant::now() < end, "{} refused", refused());
        std::thread::sleep(Duration::from_millis(10));
    }
    let other = fixture.file(1, "doc/f1");
    let reader = std::thread::spawn(move || std::fs::read(other));
    fixture.others_go_on("three");
    assert!(!reader.is_finished());
    drop(leases);
    assert_eq!(reader.join().expect("no panic").expect("read"), b"content");
    let outcomes = waiting
        .into_iter()
        .map(|reader| reader.join().expect("no panic"));
    let refused = outcomes.filter(|outcome| {
        let errno = outcome.as_ref().err().and_then(Errno::from_io_error);
        assert!(
            errno.is_none_or(|errno| errno == Errno::AGAIN),
            "{outcome:?}"
        );
        errno.is_some()
    });
    assert_eq!(refused.count(), 16);
}

/// A sidecar with a lease on it, or a FIFO in its place, is not read, and what is changed of other items
/// does not wait; nor does the daemon keep a processor busy.
#[test]
fn a_sidecar_that_cannot_be_read_delays_no_request() {
    let fixture = Fixture::new(1);
    let env = &fixture.env;
    env.sh("mkdir A/.mint/mine");
    let change = || {
        let began = Instant::now();
        let theirs = fixture.file(0, "");
        let attacker = std::thread::spawn(move || {
            stranger().run(|| {
                let flags = rustix::fs::XattrFlags::empty();
                rustix::fs::setxattr(&theirs, "user.ibi.language", b"pt", flags)
            })
        });
        std::thread::sleep(Duration::from_millis(200));
        env.sh("setfattr -n user.ibi.language -v en A/.mint/mine; setfattr -n user.ibi.language -v pt A/.mint/mine");
        let took = began.elapsed();
        assert!(
            took < SOON,
            "the change of another item waited for {took:?}"
        );
        attacker.join().expect("no panic")
    };
    let lease = Lease::take(&stranger(), &fixture.beneath(".ibi"));
    let before = processor_time(env);
    assert_eq!(change(), Err(Errno::BUSY));
    let used = processor_time(env) - before;
    assert!(
        used < Duration::from_secs(1),
        "the daemon was busy for {used:?}"
    );
    drop(lease);
    assert_eq!(change(), Ok(()));
    stranger().run(|| {
        let sidecar = fixture.beneath(".ibi");
        std::fs::remove_file(&sidecar).expect("one's own");
        let (mode, kind) = (Mode::from_raw_mode(0o666), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &sidecar, kind, mode, 0).expect("made");
    });
    assert!(change().is_err());
    fixture.others_go_on("four");
}

/// The processor time that the daemon of A.store has used.
fn processor_time(env: &TestEnv) -> Duration {
    let ticks = env.sh("cut -d ' ' -f 14,15 /proc/$(daemon A.store)/stat");
    let ticks: u64 = ticks
        .split(' ')
        .map(|number| number.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 10)
}

/// Over HTTP a reader of a file with a lease on it must request it again, and no other reader waits.
#[test]
fn readers_over_http_do_not_wait_for_a_lease() {
    const FILES: usize = 12;
    let fixture = Fixture::new(FILES);
    let env = &fixture.env;
    let served = Served::start(env, "A.store");
    // The item and its files are known, so that the thread that answers opens them.
    let rep = &fixture.rep;
    let get_all = |look: &str| {
        let script = format!(
            "for i in $(seq 0 {}); do {look} $U/col/{rep}/doc/f$i; done",
            FILES - 1
        );
        served.sh(env, &script)
    };
    assert_eq!(
        get_all("status")
            .lines()
            .filter(|line| *line == "200")
            .count(),
        FILES
    );
    let lease = fixture.leases(FILES);
    // The service sends from memory what it has read within the last second.
    std::thread::sleep(Duration::from_millis(1100));
    let began = Instant::now();
    assert_eq!(
        get_all("status")
            .lines()
            .filter(|line| *line == "503")
            .count(),
        FILES
    );
    assert_eq!(get_all("line retry-after").lines().count(), FILES);
    served.sh(env, &format!("get $U/ > /dev/null; get $U/{rep} > /dev/null; get $U/{rep}?ibiurl.verblist=GetFileList | grep f3 > /dev/null"));
    assert!(began.elapsed() < 2 * SOON, "{:?}", began.elapsed());
    drop(lease);
    assert_eq!(
        get_all("status")
            .lines()
            .filter(|line| *line == "200")
            .count(),
        FILES
    );
}

/// Commands pass over what a lease or a FIFO keeps from them, name it, and end.
#[test]
fn commands_name_what_they_cannot_open_and_go_on() {
    let fixture = Fixture::new(3);
    let env = &fixture.env;
    env.sh("mkdir -p A/.mint/mine/doc; echo text > A/.mint/mine/doc/f; rep A/.mint/mine > mine; ibifs scrub A.store > scrubbed || true; ibifs umount A");
    let leases = [Lease::take(&stranger(), &fixture.beneath("doc/f1"))];
    let rep = &fixture.rep;
    let name = |command: &str, named: &str| {
        let began = Instant::now();
        let output = env.run(&format!("{command} 2>&1"));
        let took = began.elapsed();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(took < SOON, "{command}: {took:?}\n{printed}");
        assert!(
            printed.contains(named),
            "{command} does not name {named}:\n{printed}"
        );
    };
    name("ibifs scrub A.store", "doc/f1");
    name("ibifs backup A.store copy", "doc/f1");
    name(
        &format!("ibifs export --bagit --store A.store {rep} bags"),
        "doc/f1",
    );
    drop(leases);
    let leases = [Lease::take(&stranger(), &fixture.beneath(".ibi"))];
    name("ibifs fsck A.store", rep);
    name("ibifs reindex A.store", "");
    drop(leases);
    env.sh("ibifs reindex A.store");
    env.prints(
        &format!("ibifs mount A.store A; cat A/{rep}/doc/f1; cat A/$(<mine)/doc/f"),
        "contenttext",
    );
}

/// A name that is not there costs no listing of its directory, and is found in another spelling as soon
/// as it is made.
#[test]
fn missing_names_beside_many_are_cheap() {
    let fixture = Fixture::new(1);
    let env = &fixture.env;
    env.sh("cd A.store/col; seq -f 's%05g.org' 20000 | xargs mkdir");
    let ask = |from: usize| {
        let before = processor_time(env);
        stranger().run(|| {
            for number in 0..1000 {
                let name = format!("A/missing{}.org", from + number);
                assert!(std::fs::symlink_metadata(env.root().join(name)).is_err());
            }
        });
        processor_time(env) - before
    };
    let used = ask(0);
    assert!(
        used < Duration::from_millis(1500),
        "1,000 missing names: {used:?}"
    );
    // To make and remove names in between costs a listing now and then.
    let used = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            stranger().run(|| {
                for number in 0..300 {
                    let name = env.root().join(format!("A/made{number}.org"));
                    std::fs::create_dir(&name).expect("made");
                    std::fs::remove_dir(&name).expect("removed");
                }
            });
        });
        let used = ask(1000);
        other.join().expect("no panic");
        used
    });
    assert!(
        used < Duration::from_secs(3),
        "1,000 missing names beside others: {used:?}"
    );
    env.sh("mkdir A/New.org; test $(readlink A/new.ORG) = New.org; test -d A/S00017.org
         rmdir A/New.org; no test -d A/new.org; mkdir A/new.org; test $(readlink A/NEW.org) = new.org
         mkdir A.store/col/Beneath.org; for i in $(seq 100); do test -d A/beneath.org && break; sleep 0.1; done
         test $(readlink A/beneath.org) = Beneath.org");
}

/// The list of an item's files is made once for all who ask while nothing changes, never says what was
/// before, and is not for users who may not read all of it; a user who asks for one that is long keeps
/// no other user waiting.
#[test]
fn lists_of_files_are_cached_and_delay_no_request() {
    let fixture = Fixture::new(1);
    let env = &fixture.env;
    let list = fixture.file(0, "").join("?GetFileList");
    let list = PathBuf::from(list.to_str().expect("a path").replace("/?", "?"));
    let in_item = fixture.beneath("doc");
    stranger().run(|| {
        std::fs::create_dir(in_item.join("many")).expect("made");
        for number in 0..20_000 {
            File::create(in_item.join(format!("many/{number}"))).expect("made");
        }
    });
    let whole = std::fs::read(&list).expect("read");
    assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 20_001);
    // A file that has just been made may have changed since without showing it.
    std::thread::sleep(Duration::from_millis(2500));
    let length = |path: &Path| std::fs::metadata(path).expect("printed").len();
    assert_eq!(length(&list), whole.len() as u64);
    let before = processor_time(env);
    for _ in 0..100 {
        assert_eq!(length(&list), whole.len() as u64);
    }
    let used = processor_time(env) - before;
    assert!(
        used < Duration::from_secs(1),
        "100 times the same list: {used:?}"
    );
    env.sh(&format!(
        "cp '{0}' copy; cmp copy '{0}'; tail -c 8 '{0}' > /dev/null",
        list.display()
    ));
    let name = fixture.file(1, "doc/zz");
    for turn in 0..5 {
        File::create(&name).expect("made");
        let printed = std::fs::read(&list).expect("read");
        assert!(printed.ends_with(b"doc/zz\n"), "turn {turn}");
        assert_eq!(length(&list), printed.len() as u64);
        std::fs::remove_file(&name).expect("removed");
        assert_eq!(std::fs::read(&list).expect("read"), whole, "turn {turn}");
    }
    // Made again for each who asks, since it changes all the time.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        use std::sync::atomic::Ordering;
        for number in 0..8 {
            let (list, is_over, fixture) = (&list, &is_over, &fixture);
            scope.spawn(move || {
                stranger().run(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let _ = std::fs::metadata(list);
                        let _ = File::create(fixture.file(0, &format!("doc/many/x{number}")));
                        let _ =
                            std::fs::remove_file(fixture.file(0, &format!("doc/many/x{number}")));
                    }
                });
            });
        }
        fixture.others_go_on("five");
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            let began = Instant::now();
            std::fs::symlink_metadata(fixture.file(1, "doc/nothing")).expect_err("not there");
            longest = longest.max(began.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        println!("the longest wait of another user: {longest:?}");
        assert!(longest < Duration::from_secs(2), "{longest:?}");
    });
    env.sh(&format!("chmod 700 A/{}/doc/many", fixture.rep));
    let other = User::new(1002, 1002, &[]);
    let refused = other
        .run(|| std::fs::metadata(&list))
        .expect_err("not for all");
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    let refused = other.run(|| std::fs::read(&list)).expect_err("not for all");
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    stranger().run(|| assert!(std::fs::metadata(&list).is_ok()));
}

/// A user has a share of the daemon's descriptors; requests beyond it are refused, and other users continue.
#[test]
fn a_user_has_a_share_of_the_descriptors() {
    let fixture = Fixture::new(1);
    let env = &fixture.env;
    env.sh("ibifs umount A; ulimit -n 4096; ibifs mount A.store A");
    let file = fixture.file(0, "doc/f0");
    let open_all = |user: &User, most: usize| {
        user.run(|| {
            let mut open = Vec::new();
            while open.len() < most {
                match File::open(&file) {
                    Ok(file) => open.push(file),
                    Err(error) => {
                        assert_eq!(Errno::from_io_error(&error), Some(Errno::NFILE));
                        break;
                    }
                }
            }
            open
        })
    };
    let theirs = open_all(&stranger(), 2000);
    assert_eq!(theirs.len(), 512, "an eighth");
    stranger().run(|| {
        let made = fixture.file(0, "doc/one-more");
        assert!(File::create(&made).is_err());
        assert!(!made.exists(), "it is refused before it is made");
        assert!(std::fs::read_dir(fixture.file(0, "doc")).is_err());
    });
    let others = open_all(&User::new(1002, 1002, &[]), 500);
    assert_eq!(others.len(), 500);
    assert_eq!(open_all(&User::root(), 600).len(), 600);
    fixture.others_go_on("six");
    drop(theirs);
    let end = Instant::now() + SOON;
    while stranger().run(|| File::open(&file)).is_err() {
        assert!(Instant::now() < end, "what is closed is given back");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A stranger who has leases on files of his own, maps them, and renames them all the while, natively and in the mount, keeps
/// those waiting who open these files, and no other request.
#[test]
fn a_lease_on_a_mapped_file_that_is_renamed_delays_its_own_readers_only() {
    const FILES: usize = 8;
    let fixture = Fixture::new(FILES);
    let leases = fixture.leases(FILES);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    // The first one is looked up by others, by its name.
    let paths: Vec<[PathBuf; 2]> = (1..FILES)
        .map(|number| match number % 2 {
            0 => ["doc/f", "doc/t"].map(|name| fixture.file(0, &format!("{name}{number}"))),
            _ => ["doc/f", "doc/t"].map(|name| fixture.beneath(&format!("{name}{number}"))),
        })
        .collect();
    let open = |number: usize| {
        let rep = &fixture.rep;
        // It may have neither name when each is looked up in turn.
        let script = format!(
            "for turn in {{1..1000}}; do for name in f t; do ! head -c 1 A/{rep}/doc/${{name}}{number} 2> /dev/null || exit 0; done; done; exit 1"
        );
        fixture.env.run(&script)
    };
    std::thread::scope(|scope| {
        let (is_over, paths) = (&is_over, &paths);
        let renaming = scope.spawn(move || {
            stranger().run(|| {
                leases.iter().for_each(Lease::map);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    for [from, to] in paths {
                        std::fs::rename(from, to).expect("one's own file");
                        std::fs::rename(to, from).expect("one's own file");
                    }
                }
            });
            leases
        });
        let open = &open;
        let readers: Vec<_> = (0..FILES)
            .map(|number| scope.spawn(move || open(number)))
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        for turn in ["one", "two", "three"] {
            fixture.others_go_on(turn);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let leases = renaming.join().expect("renamed all the while");
        assert!(
            readers.iter().any(|reader| !reader.is_finished()),
            "a lease delays its readers"
        );
        drop(leases);
        for reader in readers {
            assert!(reader.join().expect("no panic").status.success());
        }
    });
}
