//! Start and stop: checks before a mount, its options, signals, and an end that always comes.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::mount::MountFlags;

use crate::archive::{Archive, ArchiveError, SystemClock};
use crate::fs::Ibifs;
use crate::namespace::{Namespace, Options};
use crate::relation::Language;

/// How long an unmount asked for by a signal waits for those who still use the tree.
const LAST_ORDERS: Duration = Duration::from_secs(5);

/// Why a store was not mounted.
#[derive(Debug)]
pub enum MountError {
    /// The store could not be opened.
    Archive(ArchiveError),
    /// The mount point is not there or no directory.
    MountPoint {
        /// The path given.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// One of store and mount point lies in the other.
    Nested {
        /// The store.
        store: PathBuf,
        /// The mount point.
        mount_point: PathBuf,
    },
    /// Something is mounted there already.
    Mounted {
        /// The mount point.
        path: PathBuf,
    },
    /// `/dev/fuse` is not there or not ours to open.
    NoFuse {
        /// The system's answer.
        cause: std::io::Error,
    },
    /// An ordinary user needs fusermount3.
    NoHelper,
    /// A mount option that does not exist.
    Option {
        /// The option as given.
        text: String,
    },
    /// The system refused the mount.
    Failed {
        /// What it said.
        cause: String,
    },
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountError::Archive(error) => error.fmt(f),
            MountError::MountPoint { path, cause } => write!(
                f,
                "mount point '{}': {cause}; make it with 'mkdir -p {}'",
                path.display(),
                path.display()
            ),
            MountError::Nested { store, mount_point } => write!(
                f,
                "mount point '{}' and store '{}' lie one in the other; mount it elsewhere",
                mount_point.display(),
                store.display()
            ),
            MountError::Mounted { path } => write!(
                f,
                "something is mounted at '{}' already; end it with 'ibifs umount {}'",
                path.display(),
                path.display()
            ),
            MountError::NoFuse { cause } => {
                let remedy = match cause.kind() {
                    std::io::ErrorKind::PermissionDenied => {
                        "let everybody open it, as Debian does: 'chmod 666 /dev/fuse' as root"
                    }
                    _ => {
                        "load the module with 'modprobe fuse', in a container pass the device in \
                         (--device /dev/fuse)"
                    }
                };
                write!(f, "cannot open /dev/fuse: {cause}; {remedy}")
            }
            MountError::NoHelper => f.write_str(
                "an ordinary user needs fusermount3 to mount; install it with 'apt install fuse3'",
            ),
            MountError::Option { text } => write!(
                f,
                "no mount option '{text}'; there are {}",
                OPTION_NAMES.join(", ")
            ),
            MountError::Failed { cause } => write!(f, "the mount was refused: {cause}"),
        }
    }
}

impl std::error::Error for MountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MountError::Archive(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ArchiveError> for MountError {
    fn from(error: ArchiveError) -> Self {
        MountError::Archive(error)
    }
}

/// What `-o` takes; a word ended by `=` has a value.
const OPTION_NAMES: [&str; 19] = [
    "lang=",
    "list=",
    "passthrough=",
    "allow_other",
    "ro",
    "rw",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "sync",
    "async",
    "dirsync",
    "defaults",
    "default_permissions",
];

/// What a mount is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Languages that `+` prefers.
    pub languages: Vec<Language>,
    /// Whether listings show everything.
    pub list_all: bool,
    /// Whether the kernel may read and write files without us.
    pub passthrough: bool,
    /// Whether other users may enter.
    pub allow_other: bool,
    /// What the kernel is told.
    flags: Vec<MountOption>,
}

impl Settings {
    /// Reads the texts given with `-o`; languages that are not given are the user's own, from
    /// LANGUAGE, LC_ALL, LC_MESSAGES and LANG as `variable` tells them.
    pub fn parse(
        texts: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, MountError> {
        let mut settings = Settings {
            languages: Vec::new(),
            list_all: false,
            passthrough: true,
            allow_other: false,
            flags: Vec::new(),
        };
        // `lang=pt-BR,pt,en`: a word that is a language and no option goes on with the list.
        let mut in_languages = false;
        for word in texts.iter().flat_map(|text| text.split(',')) {
            if word.is_empty() {
                continue;
            }
            if in_languages
                && !OPTION_NAMES.contains(&word)
                && let Ok(language) = Language::parse(word)
            {
                settings.languages.push(language);
                continue;
            }
            in_languages = word.starts_with("lang=");
            settings.take(word)?;
        }
        if settings.languages.is_empty() {
            settings.languages = languages_of_user(variable);
        }
        Ok(settings)
    }

    fn take(&mut self, word: &str) -> Result<(), MountError> {
        let refuse = || MountError::Option {
            text: word.to_owned(),
        };
        match word.split_once('=') {
            Some(("lang", list)) => {
                for language in list.split(':').filter(|part| !part.is_empty()) {
                    let language = Language::parse(language).map_err(|_| refuse())?;
                    self.languages.push(language);
                }
            }
            Some(("list", "all")) => self.list_all = true,
            Some(("list", "items")) => self.list_all = false,
            Some(("passthrough", "yes")) => self.passthrough = true,
            Some(("passthrough", "no")) => self.passthrough = false,
            Some(_) => return Err(refuse()),
            None => match word {
                "allow_other" => self.allow_other = true,
                "defaults" | "default_permissions" => {}
                "ro" => self.flag(MountOption::RO, &MountOption::RW),
                "rw" => self.flag(MountOption::RW, &MountOption::RO),
                "suid" => self.flag(MountOption::Suid, &MountOption::NoSuid),
                "nosuid" => self.flag(MountOption::NoSuid, &MountOption::Suid),
                "dev" => self.flag(MountOption::Dev, &MountOption::NoDev),
                "nodev" => self.flag(MountOption::NoDev, &MountOption::Dev),
                "exec" => self.flag(MountOption::Exec, &MountOption::NoExec),
                "noexec" => self.flag(MountOption::NoExec, &MountOption::Exec),
                "atime" => self.flag(MountOption::Atime, &MountOption::NoAtime),
                "noatime" => self.flag(MountOption::NoAtime, &MountOption::Atime),
                "sync" => self.flag(MountOption::Sync, &MountOption::Async),
                "async" => self.flag(MountOption::Async, &MountOption::Sync),
                "dirsync" => self.flag(MountOption::DirSync, &MountOption::Async),
                _ => return Err(refuse()),
            },
        }
        Ok(())
    }

    /// The last of two options that exclude each other counts, as with mount(8).
    fn flag(&mut self, option: MountOption, instead_of: &MountOption) {
        self.flags
            .retain(|known| known != instead_of && *known != option);
        self.flags.push(option);
    }

    fn config(&self, store: &Path) -> Config {
        let mut config = Config::default();
        config.mount_options = self.flags.clone();
        config.mount_options.extend([
            MountOption::FSName(store.display().to_string()),
            MountOption::Subtype("ibifs".to_owned()),
            MountOption::DefaultPermissions,
        ]);
        config.acl = match self.allow_other {
            true => SessionACL::All,
            false => SessionACL::Owner,
        };
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        config.n_threads = Some(processors.clamp(2, 8) * 2);
        config.clone_fd = true;
        config
    }
}

impl Settings {
    /// Mounts. As root directly, because fuser leaves the subtype out there, by which `mount`, `df`
    /// and we ourselves know the mount; an ordinary user goes through fusermount3.
    fn attach(
        &self,
        filesystem: Ibifs,
        store: &Path,
        mount_point: &Path,
    ) -> std::io::Result<Session<Ibifs>> {
        let config = self.config(store);
        if !rustix::process::geteuid().is_root() {
            return Session::new(filesystem, mount_point, &config);
        }
        let device = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")?;
        let device = OwnedFd::from(device);
        let mut data = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions",
            device.as_raw_fd()
        );
        if self.allow_other {
            data.push_str(",allow_other");
        }
        let data = std::ffi::CString::new(data)?;
        rustix::mount::mount(
            store,
            mount_point,
            "fuse.ibifs",
            self.kernel_flags(),
            &*data,
        )?;
        let session = Session::from_fd(filesystem, device, config.acl, config);
        if session.is_err() {
            unmount(mount_point);
        }
        session
    }

    fn kernel_flags(&self) -> MountFlags {
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
        for option in &self.flags {
            match option {
                MountOption::RO => flags |= MountFlags::RDONLY,
                MountOption::Suid => flags -= MountFlags::NOSUID,
                MountOption::Dev => flags -= MountFlags::NODEV,
                MountOption::NoExec => flags |= MountFlags::NOEXEC,
                MountOption::NoAtime => flags |= MountFlags::NOATIME,
                MountOption::Sync => flags |= MountFlags::SYNCHRONOUS,
                MountOption::DirSync => flags |= MountFlags::DIRSYNC,
                _ => {}
            }
        }
        flags
    }
}

fn languages_of_user(variable: impl Fn(&str) -> Option<String>) -> Vec<Language> {
    let first = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let list = variable("LANGUAGE").unwrap_or_default();
    let mut languages = Vec::new();
    for locale in list.split(':').chain(first.as_deref()) {
        // Like gettext: whoever reads fr_FR and finds none reads any other French.
        let exact = Language::from_locale(locale);
        let any_country = exact.map(|language| language.without_country());
        for language in [exact, any_country].into_iter().flatten() {
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
    }
    languages
}

/// Mounts a store and serves it until it is unmounted or a signal ends it. `ready` is called once
/// the tree is usable.
pub fn serve(
    store: &Path,
    mount_point: &Path,
    settings: &Settings,
    ready: impl FnOnce(),
) -> Result<(), MountError> {
    let (store, mount_point) = check(store, mount_point)?;
    let archive = Arc::new(Archive::open(&store, Box::new(SystemClock))?);
    raise_descriptor_limit();
    block_signals();
    let options = Options {
        languages: settings.languages.clone(),
        list_all: settings.list_all,
    };
    let namespace = Namespace::new(Arc::clone(&archive), options)?;
    let notifier = Arc::new(OnceLock::new());
    let failed = |error: std::io::Error| MountError::Failed {
        cause: error.to_string(),
    };
    let filesystem =
        Ibifs::new(namespace, settings.passthrough, Arc::clone(&notifier), wake).map_err(failed)?;
    let session = settings
        .attach(filesystem, &store, &mount_point)
        .map_err(failed)?;
    let _ = notifier.set(session.notifier());
    archive.describe_mount(&mount_point);
    let background = session.spawn().map_err(failed)?;
    // The tree is usable when its root answers.
    std::fs::read_dir(&mount_point).map_err(failed)?;
    log::info!(
        "{} is mounted at {}",
        store.display(),
        mount_point.display()
    );
    ready();
    if !wait_for_signal() {
        unmount(&mount_point);
        let until = Instant::now() + LAST_ORDERS;
        while !background.guard.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if background.guard.is_finished() {
        if let Err(error) = background.join() {
            log::warn!("the session ended with: {error}");
        }
    } else {
        log::warn!("the tree is still in use; its users lose it now");
        std::mem::forget(background);
    }
    archive.close();
    Ok(())
}

fn check(store: &Path, mount_point: &Path) -> Result<(PathBuf, PathBuf), MountError> {
    let bad = |cause: String| MountError::MountPoint {
        path: mount_point.to_owned(),
        cause,
    };
    detach_dead_mount(mount_point);
    let resolved = std::fs::canonicalize(mount_point).map_err(|error| bad(error.to_string()))?;
    if !resolved.is_dir() {
        return Err(bad("not a directory".to_owned()));
    }
    let store = std::fs::canonicalize(store).map_err(|_| ArchiveError::NotAStore {
        path: store.to_owned(),
    })?;
    if resolved.starts_with(&store) || store.starts_with(&resolved) {
        return Err(MountError::Nested {
            store,
            mount_point: resolved,
        });
    }
    if mounts()
        .iter()
        .any(|mount| mount.mount_point == resolved && mount.is_ours())
    {
        return Err(MountError::Mounted { path: resolved });
    }
    if let Err(error) = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
    {
        return Err(MountError::NoFuse { cause: error });
    }
    let in_path = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    if !rustix::process::geteuid().is_root() && !in_path("fusermount3") && !in_path("fusermount") {
        return Err(MountError::NoHelper);
    }
    Ok((store, resolved))
}

/// A mount of ours whose daemon is gone answers nothing any more; it is taken away.
fn detach_dead_mount(mount_point: &Path) {
    let answer = std::fs::metadata(mount_point).map_err(|error| error.raw_os_error());
    let resolved = resolve(mount_point);
    if answer.err() == Some(Some(libc::ENOTCONN))
        && mounts()
            .iter()
            .any(|mount| mount.is_ours() && mount.mount_point == resolved)
    {
        log::warn!(
            "{} was mounted by a daemon that is gone",
            resolved.display()
        );
        unmount(&resolved);
    }
}

/// The absolute path of a mount point, of a dead one too, which cannot itself be asked.
pub fn resolve(mount_point: &Path) -> PathBuf {
    let through_parent = || {
        let absolute = std::path::absolute(mount_point).ok()?;
        let parent = std::fs::canonicalize(absolute.parent()?).ok()?;
        Some(parent.join(absolute.file_name()?))
    };
    std::fs::canonicalize(mount_point)
        .ok()
        .or_else(through_parent)
        .unwrap_or_else(|| mount_point.to_owned())
}

/// Unmounts; lazily where somebody is still in it. An ordinary user goes through fusermount3.
pub fn unmount(mount_point: &Path) -> bool {
    use rustix::mount::UnmountFlags;
    for flags in [UnmountFlags::empty(), UnmountFlags::DETACH] {
        match rustix::mount::unmount(mount_point, flags) {
            Ok(()) => return true,
            Err(rustix::io::Errno::PERM) => break,
            Err(error) => log::info!("unmounting {}: {error}", mount_point.display()),
        }
    }
    ["-u", "-uz"].iter().any(|flag| {
        std::process::Command::new("fusermount3")
            .arg(flag)
            .arg("--")
            .arg(mount_point)
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// One line of the table of mounts.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// Where.
    pub mount_point: PathBuf,
    /// What: the store, for one of ours.
    pub source: PathBuf,
    /// The filesystem type.
    pub kind: String,
}

impl Mounted {
    /// Whether it is an ibifs mount.
    pub fn is_ours(&self) -> bool {
        self.kind == "fuse.ibifs"
    }
}

/// What is mounted, as this process sees it.
pub fn mounts() -> Vec<Mounted> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let mut after = right.split(' ');
    Some(Mounted {
        mount_point: PathBuf::from(unescape(left.split(' ').nth(4)?)),
        kind: after.next()?.to_owned(),
        source: PathBuf::from(unescape(after.next()?)),
    })
}

/// The table writes space, tab, line end and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A node the kernel knows holds a descriptor; a big tree needs many.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let known = getrlimit(Resource::Nofile);
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let wanted = [most, known.maximum];
    for limit in wanted.into_iter().flatten() {
        let limits = Rlimit {
            current: Some(limit),
            maximum: Some(limit.max(known.maximum.unwrap_or(limit))),
        };
        if setrlimit(Resource::Nofile, limits).is_ok() {
            return;
        }
    }
}

/// The signals that end a mount, and the one that tells that the kernel has let go of it.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];

fn signal_set() -> libc::sigset_t {
    // SAFETY: an all-zero sigset_t is a valid place to write to, and both functions only write it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in ENDING {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Called before any thread is started, so that all of them leave these signals to the waiting one.
fn block_signals() {
    let set = signal_set();
    // SAFETY: the set is initialised and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
}

/// Waits; true if the kernel has let go of the mount, false if a signal asks for its end.
fn wait_for_signal() -> bool {
    let set = signal_set();
    loop {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        if unsafe { libc::sigwait(&set, &mut signal) } == 0 {
            return signal == libc::SIGUSR1;
        }
    }
}

/// Tells the waiting thread that the session is over.
fn wake() {
    // SAFETY: sends a blocked signal to this very process.
    unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn settings(texts: &[&str], environment: &[(&str, &str)]) -> Result<Settings, MountError> {
        let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
        Settings::parse(&texts, |name| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    fn languages(texts: &[&str], environment: &[(&str, &str)]) -> String {
        let languages = settings(texts, environment)
            .expect("good options")
            .languages;
        languages
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn languages_come_from_the_option_or_the_environment() {
        assert_eq!(languages(&["lang=pt-BR,pt,en"], &[]), "pt-BR pt en");
        assert_eq!(languages(&["lang=pt,ro"], &[]), "pt");
        assert_eq!(languages(&["lang=pt:ro,allow_other"], &[]), "pt ro");
        assert_eq!(
            languages(&[], &[("LANGUAGE", "pt_BR:en"), ("LANG", "en_US.UTF-8")]),
            "pt-BR pt en en-US"
        );
        assert_eq!(languages(&[], &[("LANG", "C.UTF-8")]), "");
        assert_eq!(
            languages(&["ro"], &[("LC_ALL", "fr_FR"), ("LANG", "en_US")]),
            "fr-FR fr"
        );
    }

    #[test]
    fn an_unknown_option_is_named_with_those_there_are() {
        let error = settings(&["lang=pt,lst=all"], &[]).expect_err("no such option");
        assert!(
            error
                .to_string()
                .starts_with("no mount option 'lst=all'; there are lang=, list=,")
        );
        assert!(
            settings(&["list=all,ro,rw,suid"], &[])
                .expect("good")
                .list_all
        );
    }

    #[test]
    fn the_mount_table_is_read_with_its_escapes() {
        let line = "36 35 0:42 / /mnt/a\\040b rw,nosuid shared:1 - fuse.ibifs /store\\134x rw";
        let mounted = parse_mount(line).expect("a good line");
        assert_eq!(mounted.mount_point, PathBuf::from("/mnt/a b"));
        assert_eq!(mounted.source, PathBuf::from("/store\\x"));
        assert!(mounted.is_ours());
    }
}
