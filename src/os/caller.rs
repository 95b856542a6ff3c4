//! Who asks: acting with the caller's user, groups and umask, as the kernel would.
//!
//! What is made inside an item must belong to the caller, inherit the group of a set-gid directory
//! and the default ACL exactly as on the native filesystem; so it is made with the caller's
//! credentials, in the calling thread alone.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::os::credentials;
use crate::os::payer::{self, Acts, Payer};

/// The process behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User number.
    pub uid: u32,
    /// Group number.
    pub gid: u32,
    /// Thread number of the calling process; 0 where the kernel itself asks.
    pub pid: u32,
}

thread_local! {
    /// This thread's umask, once it has one of its own.
    static UMASK: Cell<Option<u32>> = const { Cell::new(None) };
    /// Whom this thread acts as while it acts as nobody else, see [`Caller::stay`].
    static STAYING: Cell<Option<Caller>> = const { Cell::new(None) };
}

/// Whether this process may act as others.
static MAY_ACT: LazyLock<bool> = LazyLock::new(|| rustix::process::geteuid().is_root());

/// What a process may do with files that are not its own. Who acts as another user loses these.
const OVER_FILES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MKNOD);

/// What else is lost: the right to spend what is kept for root and to pass over quotas.
const LOST: CapabilitySet = LOST_WITH_THE_USER.union(CapabilitySet::SYS_RESOURCE);

/// What the kernel takes with a change of the filesystem user.
const LOST_WITH_THE_USER: CapabilitySet = OVER_FILES.union(CapabilitySet::MAC_OVERRIDE);

/// What a process may do beyond what its user and first group may.
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

/// Whether this process has no groups beside its first, so that whoever is acted as has none either.
static HAS_NO_GROUPS: LazyLock<bool> =
    LazyLock::new(|| rustix::process::getgroups().is_ok_and(|groups| groups.is_empty()));

/// Whether this process has given root up: then it acts as itself alone, see [`Caller::become_for_good`].
static HAS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Lets no program that this process or its threads may run have more rights than they have. Before
/// there are other threads.
pub fn gain_nothing_anew() {
    if let Err(errno) = rustix::thread::set_no_new_privs(true) {
        log::warn!("programs that are run may have more rights than this one: {errno}");
    }
}

/// Gives up the groups of this process, for [`Caller::read`]; before the first such call.
pub fn give_up_groups() {
    if *MAY_ACT {
        // SAFETY: no groups, so that no pointer is followed. The C library's function, unlike the raw
        // system call, changes all threads.
        let given_up = unsafe { libc::setgroups(0, std::ptr::null()) };
        log::debug!("the groups are given up: {}", given_up == 0);
    }
}

/// Has this thread open files as this process again, where one that stays somebody else has started it.
pub fn stay_oneself() {
    if *MAY_ACT && !HAS_GIVEN_UP.load(Ordering::Relaxed) {
        STAYING.set(None);
        back();
    }
}

/// Whether this process can act as the users who ask it for something. Tried in a thread of its own.
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

/// Has this thread act as itself, or whom it stays.
fn back() {
    credentials::become_ourselves();
    if let Some(staying) = STAYING.get()
        && credentials::become_other(staying.uid, staying.gid).is_err()
    {
        // It reads as before, at the price of more system calls.
        STAYING.set(None);
        credentials::become_ourselves();
    }
}

/// Takes a caller's user and first group back, however the reading has ended.
struct Reading {
    #[allow(dead_code, reason = "held, not read")]
    acts: Acts,
}

impl Drop for Reading {
    fn drop(&mut self) {
        back();
    }
}

/// Takes a caller's credentials back, however the act has ended.
struct Acting {
    own: Option<CapabilitySets>,
    #[allow(dead_code, reason = "held, not read")]
    acts: Acts,
}

impl Drop for Acting {
    fn drop(&mut self) {
        back();
        let groups: &[u32] = match STAYING.get() {
            None => &[0],
            Some(_) => &[],
        };
        if let Err(errno) = set_groups(groups) {
            log::error!("this thread's groups are not its own: {errno}");
        }
        if let Some(own) = self.own
            && own.effective.contains(CapabilitySet::SYS_RESOURCE)
        {
            payer::set_effective(own, own.effective);
        }
    }
}

impl Caller {
    /// The user who has no files, and may do what all may.
    pub const NOBODY: Caller = Caller {
        uid: 65534,
        gid: 65534,
        pid: 0,
    };

    /// Runs `make` with this caller's credentials and umask.
    ///
    /// # Errors
    /// What `make` fails with; EPERM, and nothing is done, where this thread could not become the caller.
    pub fn make<T, E: From<Errno>>(
        &self,
        umask: u32,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        set_umask(umask);
        self.act(make)
    }

    /// Runs `act` with this caller's credentials: what depends on who asks, such as whether set-id
    /// bits survive a write, then comes out as on the native filesystem.
    ///
    /// # Errors
    /// What `act` fails with; EPERM, and nothing is done, where this thread could not become the caller.
    pub fn act<T, E: From<Errno>>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.is_other() {
            self.act_with(&self.powers(), act)
        } else {
            act()
        }
    }

    /// The same for what outlives this request and others then use: without the groups, which take
    /// as long to read as opening a file ten times, and letting set-id bits be.
    ///
    /// # Errors
    /// As of [`Caller::act`].
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

    /// The same for what is only read, in a process that has given its groups up: half as many system
    /// calls.
    ///
    /// # Errors
    /// As of [`Caller::act`].
    pub fn read<T, E: From<Errno>>(&self, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        payer::stop();
        if !self.is_other() || !*HAS_NO_GROUPS {
            return self.act_for_others(read);
        }
        if STAYING.get() == Some(*self) || payer::is_acting() {
            return read();
        }
        let _reading = Reading { acts: payer::act() };
        credentials::become_other(self.uid, self.gid)?;
        read()
    }

    /// Has this thread act as this caller for good, but while it acts as another one: what it then
    /// reads with [`Caller::read`] costs no further system calls. A thread that it starts is to
    /// [`stay_oneself`]. Only in a process that has given its groups up; else, and where it is refused,
    /// each reading costs what it did.
    pub fn stay(&self) {
        if !self.is_other() || !*HAS_NO_GROUPS {
            return;
        }
        match credentials::become_other(self.uid, self.gid) {
            Ok(()) => STAYING.set(Some(*self)),
            Err(_) => back(),
        }
    }

    /// Has this process, all its threads, become this caller for good: it has no capabilities then, and
    /// no way back. Nothing for a process that is not root's.
    ///
    /// # Errors
    /// What the system refuses. The process must end then.
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
        // Looked at, since nothing is as it seems in a container.
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
        if payer::is_acting() {
            // As this caller already: none acts for another within a request.
            return act();
        }
        let acts = payer::act();
        let own = match STAYING.get() {
            None => payer::own_capabilities(),
            Some(_) => rustix::thread::capabilities(None).ok(),
        };
        let _acting = Acting { own, acts };
        set_groups(&powers.groups)?;
        credentials::become_other(self.uid, self.gid)?;
        if let Some(own) = own {
            let kept = own.effective - LOST;
            if kept | powers.capabilities != own.effective - LOST_WITH_THE_USER {
                payer::set_effective(own, kept | powers.capabilities);
            }
        }
        act()
    }

    /// Who pays for what is written for this caller: None for root, and where all is done as one user.
    pub fn payer(&self) -> Option<Payer> {
        self.is_other().then_some(Payer {
            uid: self.uid,
            gid: self.gid,
        })
    }

    /// Writes to the disk for this caller, who pays for it and whom reserve and quotas bind; whether it
    /// may do so has been decided already.
    pub fn spend<T>(&self, mut write: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        match payer::paid_by(self.payer(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.spend_more(errno, write),
            outcome => outcome,
        }
    }

    /// The same for one of many writes by the same caller, which then cost no further system calls.
    /// The thread pays on until [`payer::stop`].
    pub fn spend_on<T>(&self, mut write: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        match payer::paid_by_and_stay(self.payer(), &mut write) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.spend_more(errno, write),
            outcome => outcome,
        }
    }

    /// Where no space is left for a user: a filesystem may keep some for a group of the caller's
    /// (`resgid=`), and the caller may have the capability itself.
    fn spend_more<T>(
        &self,
        errno: Errno,
        write: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if !self.is_other() || payer::is_acting() {
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

    /// Whether acting as this caller differs from acting as ourselves.
    pub fn is_other(&self) -> bool {
        *MAY_ACT && !HAS_GIVEN_UP.load(Ordering::Relaxed) && (self.uid != 0 || self.gid != 0)
    }

    /// The caller's supplementary groups and what it may do with others' files; none of either
    /// where they cannot be read.
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

    /// Whether every file counts as the caller's own.
    pub fn owns_all(&self) -> bool {
        !self.is_other() || self.powers().capabilities.contains(CapabilitySet::FOWNER)
    }

    /// Whether set-id bits outlive what the caller writes.
    pub fn keeps_set_id(&self) -> bool {
        !self.is_other() || self.powers().capabilities.contains(CapabilitySet::FSETID)
    }

    /// Whether the caller may see the attributes that are for administrators.
    pub fn administers(&self) -> bool {
        if self.uid == 0 {
            return true;
        }
        std::fs::read_to_string(format!("/proc/{}/status", self.pid)).is_ok_and(|status| {
            self.capabilities(&status)
                .contains(CapabilitySet::SYS_ADMIN)
        })
    }

    /// The capabilities in a process's status. In a user namespace of its own anybody has all of
    /// them, which mean nothing here.
    fn capabilities(&self, status: &str) -> CapabilitySet {
        let effective = u64::from_str_radix(line_of(status, "CapEff:").trim(), 16).unwrap_or(0);
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
        match effective {
            0 => CapabilitySet::empty(),
            _ if namespace(&self.pid.to_string()) != namespace("self") => CapabilitySet::empty(),
            _ => CapabilitySet::from_bits_retain(effective),
        }
    }

    /// Whether a signal that the caller does not block or ignore is waiting for it, or it is gone.
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

/// The threads of one program: what one of them has made, another one may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    number: i32,
    /// When it was started, in the kernel's ticks: a number is given to other programs later.
    started: u64,
    /// What no other has had since the system started, where the kernel has such numbers (Linux 6.9).
    unique: u64,
}

impl Caller {
    /// The thread group of the calling thread, by what the system tells of any process; None where it is
    /// not told, as of a process of another namespace.
    pub fn thread_group(&self) -> Option<ThreadGroup> {
        if self.pid == 0 {
            return None;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let number = line_of(&status, "Tgid:").trim().parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The program's name may hold anything; it ends with the last bracket.
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

/// Where the start time stands in `/proc/PID/stat`, behind the program's name.
const STARTED: usize = 19;

/// What a process's status says of a matter.
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
