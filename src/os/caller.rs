//! The process behind a request, and acting with its user, groups and umask.
//!
//! A new file in an item belongs to the caller and inherits the group of a set-group-ID directory and the
//! default ACL, exactly as on the native filesystem. To get this, the file is made with the caller's
//! credentials, see credentials(7), which are set for the calling thread only.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::os::charging::{self, Acts, ChargedUser};
use crate::os::credentials;

/// The process behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Thread number of the calling process; 0 for a request of the kernel itself.
    pub pid: u32,
}

thread_local! {
    /// This thread's umask, once it has one of its own.
    static UMASK: Cell<Option<u32>> = const { Cell::new(None) };
    /// The user as whom this thread acts between requests, see [`Caller::act_by_default`].
    static DEFAULT: Cell<Option<Caller>> = const { Cell::new(None) };
}

/// Whether this process may act as other users.
static MAY_ACT: LazyLock<bool> = LazyLock::new(|| rustix::process::geteuid().is_root());

/// The capabilities over files of other users. A thread that acts as another user drops these.
const OVER_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MKNOD);

/// The capabilities that an acting thread drops, including CAP_SYS_RESOURCE, which grants root's reserve on a
/// disk and overrides quotas.
const LOST: CapabilitySet = LOST_WITH_THE_USER.union(CapabilitySet::SYS_RESOURCE);

/// What the kernel drops when the filesystem user changes from 0, see capabilities(7).
const LOST_WITH_THE_USER: CapabilitySet = OVER_FILES.union(CapabilitySet::MAC_OVERRIDE);

/// Groups and capabilities of a process beside its user and first group.
#[derive(Debug)]
struct Powers {
    groups: Vec<u32>,
    capabilities: CapabilitySet,
}

impl Powers {
    const NONE: Powers = Powers {
        groups: Vec::new(),
        capabilities: CapabilitySet::empty(),
    };
}

/// Whether this process has no supplementary groups, so that a thread acting as a user has none either.
static HAS_NO_GROUPS: LazyLock<bool> =
    LazyLock::new(|| rustix::process::getgroups().is_ok_and(|groups| groups.is_empty()));

/// Whether this process has given up root and can act as no other user, see [`Caller::become_for_good`].
static HAS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Sets `no_new_privs`, see PR_SET_NO_NEW_PRIVS(2const): programs that this process runs get no more rights
/// than it has. Must be called before other threads exist.
pub fn set_no_new_privileges() {
    if let Err(errno) = rustix::thread::set_no_new_privs(true) {
        log::warn!("programs that are run may have more rights than this one: {errno}");
    }
}

/// Gives up the supplementary groups of this process, which makes [`Caller::read`] cheaper. Must be called
/// before the first such call.
pub fn give_up_groups() {
    if *MAY_ACT {
        // SAFETY: an empty list, so that no pointer is followed. The C library's function, unlike the raw
        // system call, changes all threads.
        let given_up = unsafe { libc::setgroups(0, std::ptr::null()) };
        log::debug!("the groups are given up: {}", given_up == 0);
    }
}

/// Makes this thread act as the process, if the thread that started it acts as another user by default.
pub fn act_as_process() {
    if *MAY_ACT && !HAS_GIVEN_UP.load(Ordering::Relaxed) {
        DEFAULT.set(None);
        back();
    }
}

/// Whether this process can act as the users who send requests. The test runs in a separate thread.
pub fn can_act_as_others() -> bool {
    if !*MAY_ACT {
        return true;
    }
    let tried = std::thread::spawn(|| {
        let other = Caller::NOBODY;
        let is_other = || Ok::<_, Errno>(credentials::acted_as() == (other.uid, other.gid));
        let groups = [other.gid];
        let powers = Powers {
            groups: groups.to_vec(),
            capabilities: CapabilitySet::empty(),
        };
        other.act_with(&powers, is_other) == Ok(true)
            && credentials::acted_as() == credentials::OURSELVES
    });
    tried.join().unwrap_or(false)
}

/// Makes this thread act as the process, or as its default user.
fn back() {
    credentials::become_ourselves();
    if let Some(staying) = DEFAULT.get()
        && credentials::become_other(staying.uid, staying.gid).is_err()
    {
        // Reads of the default user still work, with more system calls.
        DEFAULT.set(None);
        credentials::become_ourselves();
    }
}

/// Restores the thread's own user and group when the read ends, also by a panic.
struct ReadingAsCaller {
    #[allow(dead_code, reason = "held, not read")]
    acts: Acts,
}

impl Drop for ReadingAsCaller {
    fn drop(&mut self) {
        back();
    }
}

/// Restores the thread's own credentials when the act ends, also by a panic.
struct Acting {
    own: Option<CapabilitySets>,
    #[allow(dead_code, reason = "held, not read")]
    acts: Acts,
}

impl Drop for Acting {
    fn drop(&mut self) {
        back();
        let groups: &[u32] = match DEFAULT.get() {
            None => &[0],
            Some(_) => &[],
        };
        if let Err(errno) = set_groups(groups) {
            log::error!("this thread's groups are not its own: {errno}");
        }
        if let Some(own) = self.own
            && own.effective.contains(CapabilitySet::SYS_RESOURCE)
        {
            charging::set_effective(own, own.effective);
        }
    }
}

impl Caller {
    /// The user `nobody`, who owns no files and has the permissions of others.
    pub const NOBODY: Caller = Caller {
        uid: 65534,
        gid: 65534,
        pid: 0,
    };

    /// Runs `make` with this caller's credentials and umask.
    ///
    /// # Errors
    /// Those of `make`; EPERM, without a call of `make`, where this thread could not become the caller.
    pub fn make<T, E: From<Errno>>(
        &self,
        umask: u32,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        set_umask(umask);
        self.act(make)
    }

    /// Runs `act` with this caller's credentials. What depends on the caller, such as whether set-id bits
    /// survive a write, is then as on the native filesystem.
    ///
    /// # Errors
    /// Those of `act`; EPERM, without a call of `act`, where this thread could not become the caller.
    pub fn act<T, E: From<Errno>>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.is_other() {
            self.act_with(&self.powers(), act)
        } else {
            act()
        }
    }

    /// Like [`Caller::act`], for a result that outlives this request and then serves other callers: without
    /// the groups, which take as long to read as ten files to open, and without clearing set-id bits.
    ///
    /// # Errors
    /// Those of [`Caller::act`].
    pub fn act_for_others<T, E: From<Errno>>(
        &self,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let powers = Powers {
            groups: Vec::new(),
            capabilities: CapabilitySet::FSETID,
        };
        if self.is_other() {
            self.act_with(&powers, act)
        } else {
            act()
        }
    }

    /// Like [`Caller::act_for_others`], for reads. In a process that has given up its groups, it needs half
    /// as many system calls.
    ///
    /// # Errors
    /// Those of [`Caller::act`].
    pub fn read<T, E: From<Errno>>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        charging::stop();
        if !self.is_other() || !*HAS_NO_GROUPS {
            return self.act_for_others(read);
        }
        if DEFAULT.get() == Some(*self) || charging::is_acting() {
            return read();
        }
        let _reading = ReadingAsCaller {
            acts: charging::act(),
        };
        credentials::become_other(self.uid, self.gid)?;
        read()
    }

    /// Makes this thread act as this caller by default, that is between requests of other callers. A
    /// [`Caller::read`] as this caller then needs no further system call. A thread that it starts calls
    /// [`act_as_process`]. This works only in a process that has given up its groups; otherwise, or if the
    /// system refuses, reads cost as much as before.
    pub fn act_by_default(&self) {
        if !self.is_other() || !*HAS_NO_GROUPS {
            return;
        }
        match credentials::become_other(self.uid, self.gid) {
            Ok(()) => DEFAULT.set(Some(*self)),
            Err(_) => back(),
        }
    }

    /// Makes all threads of this process become this caller permanently, without capabilities. Does nothing
    /// in a process that does not run as root.
    ///
    /// # Errors
    /// The system refuses the change. The process must end then.
    pub fn become_for_good(&self) -> std::io::Result<()> {
        if !*MAY_ACT {
            return Ok(());
        }
        // SAFETY: no pointer is followed. The C library's functions change all threads.
        let is_done = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(self.gid, self.gid, self.gid) == 0
                && libc::setresuid(self.uid, self.uid, self.uid) == 0
        };
        if !is_done {
            return Err(std::io::Error::last_os_error());
        }
        // Checked, because these calls may behave differently in a container.
        // SAFETY: as above.
        let is_root_again = unsafe { libc::setresuid(u32::MAX, 0, u32::MAX) == 0 };
        let capabilities = rustix::thread::capabilities(None)?;
        if is_root_again
            || !capabilities.permitted.is_empty()
            || credentials::acted_as() != (self.uid, self.gid)
        {
            return Err(Errno::PERM.into());
        }
        HAS_GIVEN_UP.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn act_with<T, E: From<Errno>>(
        &self,
        powers: &Powers,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if charging::is_acting() {
            // Already as this caller: within a request a thread acts for one caller only.
            return act();
        }
        let acts = charging::act();
        let own = match DEFAULT.get() {
            None => charging::own_capabilities(),
            Some(_) => rustix::thread::capabilities(None).ok(),
        };
        let _acting = Acting { own, acts };
        set_groups(&powers.groups)?;
        credentials::become_other(self.uid, self.gid)?;
        if let Some(own) = own {
            let kept = own.effective - LOST;
            if kept | powers.capabilities != own.effective - LOST_WITH_THE_USER {
                charging::set_effective(own, kept | powers.capabilities);
            }
        }
        act()
    }

    /// The user to whom writes for this caller are charged; None for root, and in a process that acts as one
    /// user only.
    pub fn charged_user(&self) -> Option<ChargedUser> {
        self.is_other().then_some(ChargedUser {
            uid: self.uid,
            gid: self.gid,
        })
    }

    /// Runs `write` for this caller, within the disk reserve and the quotas of its user. The permission must
    /// have been checked before.
    pub fn charged<T>(&self, mut write: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        match charging::charged_to(self.charged_user(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.with_own_reserve(errno, write),
            outcome => outcome,
        }
    }

    /// Like [`Caller::charged`], for one of many writes of the same caller: later ones need no further system
    /// calls. The thread keeps the user's numbers until [`charging::stop`].
    pub fn charged_and_keep<T>(
        &self,
        mut write: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match charging::charged_to_and_keep(self.charged_user(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.with_own_reserve(errno, write),
            outcome => outcome,
        }
    }

    /// Repeats a write that found no space for the user. The filesystem's reserve may belong to a group of
    /// the caller (`resgid=`, see ext4(5)), or the caller may have CAP_SYS_RESOURCE.
    fn with_own_reserve<T>(
        &self,
        errno: Errno,
        write: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if !self.is_other() || charging::is_acting() {
            return Err(errno);
        }
        let powers = self.powers();
        let more = powers.capabilities & CapabilitySet::SYS_RESOURCE;
        if powers.groups.is_empty() && more.is_empty() {
            return Err(errno);
        }
        let powers = Powers {
            capabilities: OVER_FILES | more,
            ..powers
        };
        self.act_with(&powers, write)
    }

    /// Whether acting as this caller differs from acting as the process.
    pub fn is_other(&self) -> bool {
        *MAY_ACT && !HAS_GIVEN_UP.load(Ordering::Relaxed) && (self.uid != 0 || self.gid != 0)
    }

    /// The caller's supplementary groups and its capabilities over files of other users; both are empty where
    /// they cannot be read.
    fn powers(&self) -> Powers {
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return Powers::NONE;
        };
        let groups = line_of(&status, "Groups:")
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        Powers {
            groups,
            capabilities: self.capabilities(&status) & LOST,
        }
    }

    /// Whether the caller is in a group.
    pub fn belongs_to(&self, group: u32) -> bool {
        self.gid == group || self.powers().groups.contains(&group)
    }

    /// Whether the caller has the rights of an owner over every file (CAP_FOWNER).
    pub fn owns_all(&self) -> bool {
        !self.is_other() || self.powers().capabilities.contains(CapabilitySet::FOWNER)
    }

    /// Whether set-id bits survive a write by the caller (CAP_FSETID).
    pub fn keeps_set_id(&self) -> bool {
        !self.is_other() || self.powers().capabilities.contains(CapabilitySet::FSETID)
    }

    /// Whether the caller may see `trusted.` attributes (CAP_SYS_ADMIN), see xattr(7).
    pub fn administers(&self) -> bool {
        if self.uid == 0 {
            return true;
        }
        std::fs::read_to_string(format!("/proc/{}/status", self.pid)).is_ok_and(|status| {
            self.capabilities(&status)
                .contains(CapabilitySet::SYS_ADMIN)
        })
    }

    /// The effective capabilities in a process's status. Those of a process in another user namespace have no
    /// meaning here.
    fn capabilities(&self, status: &str) -> CapabilitySet {
        let effective = u64::from_str_radix(line_of(status, "CapEff:").trim(), 16).unwrap_or(0);
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
        match effective {
            0 => CapabilitySet::empty(),
            _ if namespace(&self.pid.to_string()) != namespace("self") => CapabilitySet::empty(),
            _ => CapabilitySet::from_bits_retain(effective),
        }
    }

    /// Whether a signal is pending that the caller neither blocks nor ignores, or the caller has ended.
    pub fn is_interrupted(&self) -> bool {
        if self.pid == 0 {
            return false;
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.pid)) else {
            return true;
        };
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
                .unwrap_or(0)
        };
        let pending = mask("SigPnd:") | mask("ShdPnd:");
        let held_back = mask("SigBlk:") | mask("SigIgn:");
        // SIGCHLD, SIGURG, SIGWINCH and SIGCONT do nothing unless they are caught.
        let idle = 1 << (17 - 1) | 1 << (23 - 1) | 1 << (28 - 1) | 1 << (18 - 1);
        pending & !held_back & !(idle & !mask("SigCgt:")) != 0
    }
}

/// The threads of one process: one of them may continue what another one has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    number: i32,
    /// Its start time in clock ticks since boot: process numbers are reused.
    started: u64,
    /// Its pidfd inode number, which is unique since boot (Linux 6.9); 0 on older kernels.
    unique: u64,
}

impl Caller {
    /// The thread group of the calling thread, as `/proc` shows it; None where it does not, as for a
    /// process of another PID namespace.
    pub fn thread_group(&self) -> Option<ThreadGroup> {
        if self.pid == 0 {
            return None;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let number = line_of(&status, "Tgid:").trim().parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The program's name may hold any byte; it ends at the last bracket.
        let (_, after_name) = stat.rsplit_once(')')?;
        let started = after_name.split_whitespace().nth(STARTED)?.parse().ok()?;
        let process = Pid::from_raw(number)?;
        let opened = rustix::process::pidfd_open(process, PidfdFlags::empty()).ok();
        let unique = opened.and_then(|process| rustix::fs::fstat(process).ok());
        Some(ThreadGroup {
            number,
            started,
            unique: unique.map_or(0, |stat| stat.st_ino),
        })
    }
}

/// The field of the start time in `/proc/PID/stat`, counted from after the program's name.
const STARTED: usize = 19;

/// The value of a field in a process's status, see proc_pid_status(5).
fn line_of<'a>(status: &'a str, matter: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(matter));
    line.unwrap_or_default()
}

fn set_umask(umask: u32) {
    let known = UMASK.get();
    if known == Some(umask) {
        return;
    }
    // SAFETY: neither call takes a pointer. The first detaches this thread's umask (and working
    // directory, which we never use) from the other threads'. Where it is refused the umask is set
    // for all of them.
    unsafe {
        if known.is_some() || libc::unshare(libc::CLONE_FS) == 0 {
            UMASK.set(Some(umask));
        }
        libc::umask(umask);
    }
}

fn set_groups(groups: &[u32]) -> Result<(), Errno> {
    // SAFETY: the pointer and length describe a live slice; the raw system call, unlike the C
    // library's function, changes this thread only.
    let set = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    match set {
        0 => Ok(()),
        _ => Err(Errno::PERM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process of the test, as a caller.
    fn own() -> Caller {
        Caller {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            pid: std::process::id(),
        }
    }

    /// The number of a process that has ended.
    fn gone() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("runs");
        child.wait().expect("ends");
        child.id()
    }

    #[test]
    fn a_field_of_a_status_is_found_by_its_name() {
        let status = "Name:\tcat\nTgid:\t7\nGroups:\t4 20 \nSigPnd:\t0\n";
        for (field, expected) in [("Tgid:", "\t7"), ("Groups:", "\t4 20 "), ("CapEff:", "")] {
            assert_eq!(line_of(status, field), expected);
        }
    }

    #[test]
    fn the_threads_of_a_process_are_one_group() {
        let here = own().thread_group().expect("a process of ours");
        let thread = std::thread::spawn(|| {
            let pid = rustix::thread::gettid().as_raw_nonzero().get();
            let caller = Caller {
                pid: u32::try_from(pid).expect("positive"),
                ..own()
            };
            caller.thread_group()
        });
        assert_eq!(thread.join().expect("ends"), Some(here));
        let other = |pid| Caller { pid, ..own() }.thread_group();
        assert!(other(1).is_none_or(|init| init != here));
        assert_eq!(other(0), None);
        assert_eq!(other(gone()), None);
    }

    #[test]
    fn a_caller_that_is_gone_counts_as_interrupted() {
        for (pid, expected) in [(0, false), (own().pid, false), (gone(), true)] {
            assert_eq!(Caller { pid, ..own() }.is_interrupted(), expected, "{pid}");
        }
    }

    #[test]
    fn a_caller_belongs_to_its_first_and_its_other_groups() {
        let groups = rustix::process::getgroups().expect("listed");
        let groups = groups.into_iter().map(rustix::process::Gid::as_raw);
        for group in groups.chain([own().gid]) {
            assert!(own().belongs_to(group), "{group}");
        }
        assert!(!own().belongs_to(0x7fff_0001));
        // For a process that has ended, only the numbers in the request are known.
        let caller = Caller {
            pid: gone(),
            ..own()
        };
        assert!(caller.belongs_to(caller.gid));
        assert!(!caller.belongs_to(0x7fff_0001));
    }

    /// As root the credentials change during the act; an ordinary user acts as itself.
    #[test]
    fn an_act_has_the_credentials_of_the_caller_and_gives_them_up() {
        let before = credentials::acted_as();
        let inside = Caller::NOBODY.act(|| Ok::<_, Errno>(credentials::acted_as()));
        let expected = if Caller::NOBODY.is_other() {
            (Caller::NOBODY.uid, Caller::NOBODY.gid)
        } else {
            before
        };
        assert_eq!(inside, Ok(expected));
        assert_eq!(credentials::acted_as(), before);
        let failed = Caller::NOBODY.act(|| Err::<(), _>(Errno::NOSPC));
        assert_eq!(failed, Err(Errno::NOSPC));
        assert_eq!(credentials::acted_as(), before);
        let unwound = std::panic::catch_unwind(|| {
            Caller::NOBODY.act(|| -> Result<(), Errno> { std::panic::resume_unwind(Box::new(())) })
        });
        assert!(unwound.is_err());
        assert_eq!(credentials::acted_as(), before);
        assert!(can_act_as_others());
    }

    #[test]
    fn a_write_is_charged_to_the_caller_and_the_numbers_are_given_up() {
        let before = credentials::acted_as();
        let mut tries = 0;
        let written = Caller::NOBODY.charged(|| {
            tries += 1;
            Ok(credentials::acted_as())
        });
        let expected = match Caller::NOBODY.charged_user() {
            Some(user) => (user.uid, user.gid),
            None => before,
        };
        assert_eq!(written, Ok(expected));
        assert_eq!((tries, credentials::acted_as()), (1, before));
        let failed = Caller::NOBODY.charged(|| Err::<(), _>(Errno::IO));
        assert_eq!(failed, Err(Errno::IO));
        let kept = Caller::NOBODY.charged_and_keep(|| Ok(credentials::acted_as()));
        assert_eq!(kept, Ok(expected));
        charging::stop();
        assert_eq!(credentials::acted_as(), before);
    }

    #[test]
    fn guards_of_charging_nest() {
        let user = |uid| Some(ChargedUser { uid, gid: uid });
        assert_eq!(charging::charged_user(), None);
        let outer = charging::charge_to(user(7));
        {
            let _inner = charging::charge_to(None);
            assert_eq!(charging::charged_user(), None);
        }
        assert_eq!(charging::charged_user(), user(7));
        drop(outer);
        assert_eq!(charging::charged_user(), None);
    }
}
