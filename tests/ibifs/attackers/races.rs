//! A user who swaps directories and files of a mounted store while clients walk it.
//!
//! The clients follow no link themselves, not even one that the mount shows them: whatever is touched
//! or printed of outside, the daemon has done.

use std::ffi::{CString, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::Errno;

use super::canary::{Canary, SECRET};
use crate::support::{Rng, TestEnv, User, seed, switch};

/// Longer than any request may take, with others busy on the machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The state that attackers and clients share.
struct Field {
    store: PathBuf,
    mount: PathBuf,
    outside: PathBuf,
    /// The directory in which attackers store what they swap in.
    scratch: PathBuf,
    items: Vec<String>,
    is_over: AtomicBool,
    swaps: AtomicU64,
    requests: AtomicU64,
    answered: AtomicU64,
    /// The number of attackers and clients that still run.
    busy: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl Field {
    fn item(&self, rng: &mut Rng) -> &str {
        let at = rng.below(self.items.len());
        &self.items[at]
    }

    /// Opens a directory of the store, itself following none of the links that others put there.
    fn open(&self, directory: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(CWD, directory, flags, Mode::empty(), resolve)
    }

    /// Puts something of ours in the place of a path, and the path's own thing back after a moment.
    fn swap(&self, path: &Path, ours: &Path) {
        let (above, name) = (
            path.parent().expect("a directory"),
            path.file_name().expect("a name"),
        );
        let Ok(above) = self.open(above) else {
            return;
        };
        let aside = ours.with_extension("aside");
        let exchange =
            || match rustix::fs::renameat_with(&above, name, CWD, ours, RenameFlags::EXCHANGE) {
                // A filesystem without it, as bindfs: for a moment there is nothing.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    rustix::fs::renameat(&above, name, CWD, &aside)?;
                    let placed = rustix::fs::renameat(CWD, ours, &above, name);
                    rustix::fs::renameat(CWD, &aside, CWD, ours).and(placed)
                }
                done => done,
            };
        if exchange().is_err() {
            return;
        }
        self.swaps.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
        // A client may have removed or renamed what was swapped in.
        if exchange().is_err() {
            let flags = RenameFlags::NOREPLACE;
            let _ = rustix::fs::renameat_with(CWD, ours, &above, name, flags);
        }
    }

    /// One attacker: swaps until it is over.
    fn attack(&self, number: usize, mut rng: Rng) {
        let mut count = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            count += 1;
            let ours = self.scratch.join(format!("{number}-{count}"));
            let item = self.store.join("col").join(self.item(&mut rng));
            let level = item.parent().expect("a year").to_owned();
            let top = level.ancestors().nth(2).expect("a subdomain").to_owned();
            let link = |to: &str| rustix::fs::symlink(self.outside.join(to), &ours);
            let (path, made) = match (number, rng.below(6)) {
                // Directories of items, and above them.
                (0, 0) => (item.join("doc/a"), link("item/doc/a")),
                (0, 1) => (item.join("doc"), link("item/doc")),
                (0, 2) => (item, link("item")),
                (0, 3) => (level, link("level/2026")),
                (0, 4) => (top, link("level")),
                (0, _) => (item.join("doc/a"), self.fill(&ours)),
                // Files of items.
                (1, 0) => (item.join(".ibi"), link("item/.ibi")),
                (1, 1) => (item.join(".ibi.metadata"), link("secret")),
                (1, 2) => (item.join("doc/f"), link("secret")),
                (1, 3) => (item.join("doc/f"), fifo(CWD, &ours)),
                (1, 4) => (item.join(".ibi"), fifo(CWD, &ours)),
                (1, _) => (item.join(".ibi.metadata"), fifo(CWD, &ours)),
                // The store's own.
                (_, 0) => (self.store.join("staging"), link("staging")),
                (_, 1) => (self.store.join("deleted"), link("deleted")),
                (_, 2) => (self.store.join("ibip"), link(".")),
                (_, 3) => (self.store.join("ledger"), link("f")),
                (_, _) => {
                    self.ambush(&mut rng);
                    continue;
                }
            };
            if made.is_ok() {
                self.swap(&path, &ours);
            }
            let _ = std::fs::remove_file(&ours).or_else(|_| std::fs::remove_dir_all(&ours));
        }
    }

    fn fill(&self, ours: &Path) -> Result<(), Errno> {
        rustix::fs::mkdir(ours, Mode::from_raw_mode(0o777))?;
        rustix::fs::symlink(self.outside.join("secret"), ours.join("f"))
    }

    /// Waits where the daemon will make its next files, with second names of files outside.
    fn ambush(&self, rng: &mut Rng) {
        let resolve = ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let staging = self.store.join("staging");
        let Ok(staging) = rustix::fs::openat2(CWD, staging, flags, Mode::empty(), resolve) else {
            return;
        };
        // With 400 names there are enough; else the numbers ahead are tried as well.
        let names = names(&staging).unwrap_or_default();
        let ahead = if names.len() < 400 { 5 } else { 0 };
        for name in names {
            let name = name.to_string_lossy().into_owned();
            let Some((what, number)) = name.rsplit_once('-') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            for next in number + 1..number + 1 + ahead {
                let next = format!("{what}-{next}");
                let _ = match rng.below(4) {
                    0 => rustix::fs::symlinkat(self.outside.join("staging"), &staging, &next),
                    1 => self.second_name(&staging, &next),
                    2 => rustix::fs::symlinkat(self.outside.join("empty/made"), &staging, &next),
                    _ => fifo(&staging, Path::new(&next)),
                };
            }
            // And while it is being filled.
            if what == "mint" {
                let _ = self.second_name(&staging, &format!("{name}/.ibi"));
            }
        }
    }

    fn second_name(&self, directory: &OwnedFd, name: &str) -> Result<(), Errno> {
        let notes = self.outside.join("notes");
        rustix::fs::linkat(CWD, notes, directory, name, AtFlags::empty())
    }

    /// One client: does at random what any user may do with a tree.
    fn visit(&self, mut rng: Rng, who: &str) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mount = rustix::fs::open(&self.mount, flags, Mode::empty()).expect("the mount");
        while !self.is_over.load(Ordering::Relaxed) {
            let started = Instant::now();
            self.requests.fetch_add(1, Ordering::Relaxed);
            let (what, messages) = self.request(&mount, &mut rng);
            if started.elapsed() > TIMEOUT {
                self.tell(format!("{who} waited {:?} for {what}", started.elapsed()));
            }
            if let Ok(messages) = messages {
                self.answered.fetch_add(1, Ordering::Relaxed);
                if messages
                    .windows(SECRET.len())
                    .any(|part| part == SECRET.as_bytes())
                {
                    self.tell(format!("{who} was messages a secret by {what}"));
                }
            }
        }
    }

    fn tell(&self, what: String) {
        self.wrong.lock().expect("a list").push(what);
    }

    /// A request, and what it was answered.
    fn request(&self, mount: &OwnedFd, rng: &mut Rng) -> (String, Result<Vec<u8>, Errno>) {
        let item = self.item(rng).to_owned();
        let below = ["", "doc", "doc/a"][rng.below(3)];
        let name = match below {
            "" => [".ibi", ".ibi.metadata", "new", "doc"][rng.below(4)],
            _ => ["f", "g", "new", "a", "secret"][rng.below(5)],
        };
        let other = ["f", "moved"][rng.below(2)];
        let directory = format!("{item}/{below}");
        let what = rng.below(22);
        let shown = format!("request {what} of {name} in {directory}");
        let answer = self.ask(mount, rng, &item, &directory, name, other, what);
        (shown, answer)
    }

    #[allow(clippy::too_many_arguments, reason = "one request's numbers and names")]
    fn ask(
        &self,
        mount: &OwnedFd,
        rng: &mut Rng,
        item: &str,
        directory: &str,
        name: &str,
        other: &str,
        what: usize,
    ) -> Result<Vec<u8>, Errno> {
        let open = |path: &str, flags: OFlags| {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let mode = if flags.contains(OFlags::CREATE) {
                Mode::from_raw_mode(0o666)
            } else {
                Mode::empty()
            };
            rustix::fs::openat2(mount, path, flags, mode, resolve)
        };
        let way = OFlags::PATH | OFlags::DIRECTORY;
        let path = format!("{directory}/{name}");
        let nothing = Ok(Vec::new());
        match what {
            0 | 1 => read(&open(&path, OFlags::RDONLY)?),
            2 => {
                let file = open(&path, OFlags::WRONLY | OFlags::CREATE)?;
                is_regular(&file)?;
                rustix::io::write(&file, b"a client's words")?;
                nothing
            }
            3 => {
                let file = open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?;
                is_regular(&file)?;
                rustix::fs::ftruncate(&file, 7)?;
                read(&file)
            }
            4 => list(&open(directory, OFlags::RDONLY | OFlags::DIRECTORY)?),
            5 => {
                let bits = Mode::from_raw_mode([0o600, 0o644, 0o755][rng.below(3)]);
                rustix::fs::fchmod(open(&path, OFlags::RDONLY)?, bits)?;
                nothing
            }
            6 => {
                let (uid, gid) = (Uid::from_raw(60001), Gid::from_raw(60001));
                let at = open(directory, way)?;
                rustix::fs::chownat(&at, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
                nothing
            }
            7 => {
                let value = [rng.byte(); 4];
                let flags = XattrFlags::empty();
                rustix::fs::fsetxattr(open(&path, OFlags::RDONLY)?, "user.said", &value, flags)?;
                nothing
            }
            8 => {
                let mut value = vec![0; 4096];
                let file = open(&path, OFlags::RDONLY)?;
                let count = rustix::fs::fgetxattr(&file, "user.secret", &mut value[..])?;
                value.truncate(count);
                Ok(value)
            }
            9 => {
                let time = Timespec {
                    tv_sec: 7,
                    tv_nsec: 7,
                };
                let times = Timestamps {
                    last_access: time,
                    last_modification: time,
                };
                let at = open(directory, way)?;
                rustix::fs::utimensat(&at, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
                nothing
            }
            10 => {
                let at = open(directory, way)?;
                rustix::fs::renameat(&at, name, &at, other)?;
                nothing
            }
            11 => {
                let (from, to) = (open(directory, way)?, open(&format!("{item}/doc"), way)?);
                rustix::fs::renameat_with(&from, name, &to, other, RenameFlags::EXCHANGE)?;
                nothing
            }
            12 => {
                rustix::fs::unlinkat(open(directory, way)?, name, AtFlags::empty())?;
                nothing
            }
            13 => {
                rustix::fs::mkdirat(open(directory, way)?, name, Mode::from_raw_mode(0o777))?;
                nothing
            }
            14 => {
                remove_all(&open(directory, OFlags::RDONLY | OFlags::DIRECTORY)?);
                nothing
            }
            15 => {
                let at = open(directory, way)?;
                rustix::fs::linkat(&at, name, &at, other, AtFlags::empty())?;
                nothing
            }
            16 => {
                let at = open(".mint", way)?;
                let label = format!("label-{}", rng.number());
                rustix::fs::mkdirat(&at, label.as_str(), Mode::from_raw_mode(0o755))?;
                let _ = rustix::fs::unlinkat(&at, label.as_str(), AtFlags::REMOVEDIR);
                nothing
            }
            17 => {
                let (year, last) = item.rsplit_once('/').expect("a rep");
                let target = format!("../../../{}", self.item(rng));
                let at = open(year, way)?;
                let name = format!("{last}+(pt)");
                let _ = rustix::fs::unlinkat(&at, name.as_str(), AtFlags::empty());
                rustix::fs::symlinkat(target, &at, name.as_str())?;
                nothing
            }
            18 => {
                let (year, last) = item.rsplit_once('/').expect("a rep");
                let tail = ["!", ":", "+", "+(pt)"][rng.below(4)];
                let link =
                    rustix::fs::readlinkat(open(year, way)?, format!("{last}{tail}"), Vec::new())?;
                Ok(link.into_bytes())
            }
            19 => {
                let tail = [":", ":(oai_dc)", "?GetFileList"][rng.below(3)];
                read(&open(&format!("{item}{tail}"), OFlags::RDONLY)?)
            }
            20 => {
                let file = open(&format!("{item}/.ibi"), OFlags::RDWR)?;
                is_regular(&file)?;
                let text = read(&file)?;
                rustix::io::pwrite(&file, &text, 0)?;
                Ok(text)
            }
            _ => {
                let mut value = vec![0; 4096];
                let name = ["user.ibi.rep", "user.ibi.state", "user.ibi.alias"][rng.below(3)];
                let at = open(item, OFlags::RDONLY | OFlags::DIRECTORY)?;
                let count = rustix::fs::fgetxattr(&at, name, &mut value[..])?;
                value.truncate(count);
                Ok(value)
            }
        }
    }
}

fn fifo(directory: impl AsFd, path: &Path) -> Result<(), Errno> {
    rustix::fs::mknodat(
        directory,
        path,
        FileType::Fifo,
        Mode::from_raw_mode(0o666),
        0,
    )
}

fn is_regular(file: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(Errno::LOOP),
    }
}

fn read(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    is_regular(file)?;
    let mut bytes = vec![0; 1 << 16];
    let count = rustix::io::pread(file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

fn names(directory: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            found.push(OsString::from_vec(name));
        }
    }
    Ok(found)
}

fn list(directory: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let names = names(directory)?;
    Ok(names.join(OsString::from("\n").as_os_str()).into_vec())
}

/// Removes a directory as `rm -r` does, following no link.
fn remove_all(directory: &OwnedFd) {
    for name in names(directory).unwrap_or_default() {
        let name = CString::new(name.as_bytes()).expect("no NUL");
        if rustix::fs::unlinkat(directory, &*name, AtFlags::empty()).is_err() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(below) = rustix::fs::openat(directory, &*name, flags, Mode::empty()) {
                remove_all(&below);
            }
            let _ = rustix::fs::unlinkat(directory.as_fd(), &*name, AtFlags::REMOVEDIR);
        }
    }
}

/// Three attackers, and as clients root and two users, with and without passthrough.
#[test]
fn nothing_outside_is_touched_through_a_mount() {
    let seconds = switch("IBIFS_TEST_ATTACKS").unwrap_or(8);
    let seed = seed();
    for (turn, options) in ["list=all", "passthrough=no"].into_iter().enumerate() {
        let env = TestEnv::new();
        env.sh(&format!(
            "umask 0; chmod 755 .; ibifs init A.store --host archive-a.example.org; mkdir A scratch
             ibifs mount -o {options} A.store A; chmod 777 A A/*/*/* A/*/* A/*
             for i in 1 2 3 4 5 6 7 8; do
                 mkdir -p A/.mint/$i/doc/a; echo text > A/.mint/$i/doc/f; echo text > A/.mint/$i/doc/a/f
                 echo title: x > A/.mint/$i/.ibi.metadata; chown -R 6000$((i % 3)) A/.mint/$i
             done; for i in 1 2 3 4 5 6 7 8; do rep A/.mint/$i; echo; done > reps"
        ));
        let canary = Canary::new(&env);
        let reps = std::fs::read_to_string(env.root().join("reps")).expect("names");
        let field = Field {
            store: env.root().join("A.store"),
            mount: env.root().join("A"),
            outside: canary.path.clone(),
            scratch: env.root().join("scratch"),
            items: reps.split_whitespace().map(str::to_owned).collect(),
            is_over: AtomicBool::new(false),
            swaps: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            busy: AtomicU64::new(7),
            wrong: Mutex::default(),
        };
        let rng = |number: u64| Rng::from_seed(seed ^ (number + 100 * turn as u64));
        std::thread::scope(|scope| {
            let field = &field;
            for number in 0..3 {
                let rng = rng(number as u64);
                scope.spawn(move || {
                    field.attack(number, rng);
                    field.busy.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let users = [
                ("root", 0),
                ("alice", 60001),
                ("bob", 60002),
                ("root too", 0),
            ];
            for (number, (who, uid)) in users.into_iter().enumerate() {
                let rng = rng(10 + number as u64);
                scope.spawn(move || {
                    User::new(uid, uid, &[]).become_in_thread();
                    field.visit(rng, who);
                    field.busy.fetch_sub(1, Ordering::Relaxed);
                });
            }
            std::thread::sleep(Duration::from_secs(seconds) / 2);
            // On a busy machine not much has been done by then.
            let until = Instant::now() + 2 * TIMEOUT;
            let has_done_enough = || {
                let [swaps, answered] = [&field.swaps, &field.answered];
                swaps.load(Ordering::Relaxed) > 100 && answered.load(Ordering::Relaxed) > 200
            };
            while !has_done_enough() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            field.is_over.store(true, Ordering::Relaxed);
            let until = Instant::now() + TIMEOUT;
            while field.busy.load(Ordering::Relaxed) > 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            if field.busy.load(Ordering::Relaxed) > 0 {
                field.tell(format!("somebody still waits after {TIMEOUT:?}"));
                env.sh("kill -9 $(daemon A.store); umount -l A");
            }
        });
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        println!(
            "{options}: {} swaps, {} requests, {} of them answered",
            count(&field.swaps),
            count(&field.requests),
            count(&field.answered)
        );
        let wrong = field.wrong.into_inner().expect("a list");
        assert!(wrong.is_empty(), "seed {seed}\n{}", wrong.join("\n"));
        canary.is_untouched(&format!("seed {seed}, {options}"));
        assert!(count(&field.swaps) > 100 && count(&field.answered) > 200);
        // The daemon is there, minds its own business, and ends; the store can be repaired.
        env.sh(
            "rm -rf A.store/staging/* 2> /dev/null || true; timeout 20 mkdir A/.mint/last; timeout 60 ibifs umount A
             timeout 60 ibifs fsck --repair A.store > /dev/null || true; timeout 60 ibifs mount A.store A; ls -lR A > /dev/null || true",
        );
        canary.is_untouched("what came afterwards");
    }
}
