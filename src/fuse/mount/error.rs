//! The reasons why a store was not mounted, each with its remedy.

use std::path::PathBuf;

use crate::archive::ArchiveError;
use ibi::Quoted;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The options of `-o`. An option that ends with `=` has a value.
pub(super) const OPTION_NAMES: [&str; 38] = [
    "lang=",
    "list=",
    "log=",
    "passthrough=",
    "placement=",
    "allow_other",
    "portable-names",
    "shared",
    "shared-store",
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
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "symfollow",
    "nosymfollow",
    "sync",
    "async",
    "dirsync",
    "world=",
    "world-archive=",
    "world-cache=",
    "world-cache-size=",
    "world-ca-file=",
    "world-allow-private",
];

/// Values of these options, as completion offers them. Of languages there are more.
const OPTION_VALUES: [(&str, &[&str]); 7] = [
    ("lang=", &["en", "pt"]),
    ("list=", &["all", "items"]),
    ("log=", &["error", "warn", "info", "debug"]),
    ("passthrough=", &["yes", "no"]),
    ("placement=", &["yes", "no"]),
    ("allow_other", &["=yes", "=no"]),
    ("world=", &["fallback"]),
];

/// The options of `-o` with their values, as they may be written.
pub fn option_words() -> impl Iterator<Item = String> {
    OPTION_NAMES.into_iter().flat_map(|name| {
        let values = OPTION_VALUES.iter().find(|(option, _)| *option == name);
        let values = values.map_or(&[][..], |(_, values)| values);
        let alone = (!name.ends_with('=')).then(|| name.to_owned());
        let with = values.iter().map(move |value| format!("{name}{value}"));
        alone.into_iter().chain(with)
    })
}

/// The options whose values are the user's, up to the value.
pub fn option_stems() -> impl Iterator<Item = &'static str> {
    let has_values = |name: &&str| OPTION_VALUES.iter().any(|(option, _)| option == name);
    let names = OPTION_NAMES.into_iter();
    names.filter(move |name| name.ends_with('=') && !has_values(name))
}

/// The reason why a store was not mounted.
#[derive(Debug)]
pub enum MountError {
    /// The store could not be opened.
    Archive(ArchiveError),
    /// The mount point does not exist or is not a directory.
    MountPoint {
        /// The path.
        path: PathBuf,
        /// The reason.
        cause: Message,
    },
    /// The store lies in the mount point, or the mount point in the store.
    Nested {
        /// The store.
        store: PathBuf,
        /// The mount point.
        mount_point: PathBuf,
    },
    /// The store or the mount point lies in a mount whose daemon has exited.
    Dead {
        /// The store that was mounted.
        store: PathBuf,
        /// Its mount point.
        mount_point: PathBuf,
    },
    /// The store's filesystem is read-only, and the mount is not.
    ReadOnlyDisk {
        /// The store.
        store: PathBuf,
    },
    /// An ibifs mount is already at the mount point.
    Mounted {
        /// The mount point.
        path: PathBuf,
    },
    /// `/dev/fuse` does not exist or cannot be opened.
    NoFuse {
        /// The system's error.
        cause: std::io::Error,
    },
    /// fusermount3 is missing, which an ordinary user needs.
    NoHelper,
    /// The system does not allow ordinary users to open a mount to others.
    AllowOther,
    /// Root lacks the capabilities to act as the users of the mount, as in a container or service.
    CannotAct,
    /// An ordinary user asks for a mount in which symbolic links are not followed.
    SymlinksFollowed,
    /// An unknown mount option.
    Option {
        /// The option as given.
        text: String,
    },
    /// A name that does not exist in a mount that is written to would lead somewhere.
    Fallback,
    /// An option of what is shown of other Archives, which are not shown.
    NoWorld {
        /// The option.
        option: &'static str,
    },
    /// An ordinary user has no directory for mounts.
    NoWorldPlace,
    /// The system refused the mount.
    Failed {
        /// The system's message.
        cause: Message,
    },
}

impl Localize for MountError {
    fn message(&self) -> Message {
        match self {
            MountError::Archive(error) => error.message(),
            MountError::MountPoint { path, cause } => message!(
                "mount point '{path}': {cause}; make it with 'mkdir -p {path}'",
                path = path.display(),
                cause
            ),
            MountError::Nested { store, mount_point } => message!(
                "mount point '{mount_point}' and store '{store}' are one inside the other; mount it elsewhere",
                mount_point = mount_point.display(),
                store = store.display()
            ),
            MountError::Dead { store, mount_point } => message!(
                "the daemon that had mounted '{mount}' is gone; unmount it with 'ibifs umount \
                 {mount}', or mount it again with 'ibifs mount {store} {mount}'",
                mount = mount_point.display(),
                store = store.display()
            ),
            MountError::ReadOnlyDisk { store } => message!(
                "store '{store}' is on a read-only filesystem; mount it with '-o ro'",
                store = store.display()
            ),
            MountError::Mounted { path } => message!(
                "something is already mounted at '{path}'; unmount it with 'ibifs umount {path}'",
                path = path.display()
            ),
            MountError::NoFuse { cause } => {
                let remedy = match cause.kind() {
                    std::io::ErrorKind::PermissionDenied => {
                        message!(
                            "let all users open it, as Debian does: 'chmod 666 /dev/fuse' as root"
                        )
                    }
                    _ => {
                        message!(
                            "load the module with 'modprobe fuse', in a container pass the device in \
                         (--device /dev/fuse)"
                        )
                    }
                };
                message!("cannot open /dev/fuse: {cause}; {remedy}", cause, remedy)
            }
            MountError::NoHelper => message!(
                "an ordinary user needs fusermount3 to mount; install it with 'apt install fuse3'"
            ),
            MountError::AllowOther => message!(
                "allow_other is refused to ordinary users; root can allow it with a line \
                 'user_allow_other' in /etc/fuse.conf, or mount without it"
            ),
            MountError::CannotAct => message!(
                "root cannot act here as the users of the mount: CAP_SETUID or CAP_SETGID is missing; add \
                 both to the container or service, or mount for root alone with '-o allow_other=no'"
            ),
            MountError::SymlinksFollowed => message!(
                "nosymfollow needs root, since fusermount3 does not set it; mount as root, or without it"
            ),
            MountError::Option { text } => message!(
                "unknown mount option {text}; the options are {option_names}",
                text = Quoted(text),
                option_names = OPTION_NAMES.join(", ")
            ),
            MountError::Fallback => message!(
                "world=fallback needs 'ro': a name that does not exist must be free to be made; mount with \
                 '-o ro,world=URL,world=fallback'"
            ),
            MountError::NoWorld { option } => message!(
                "{option} needs world=URL, with the URL of a resolver, or world-archive=URL",
                option
            ),
            MountError::NoWorldPlace => message!(
                "none of XDG_RUNTIME_DIR, XDG_CACHE_HOME and HOME names a directory at which the items of \
                 other Archives could be mounted; set XDG_RUNTIME_DIR"
            ),
            MountError::Failed { cause } => message!("the mount was refused: {cause}", cause),
        }
    }
}

display_message!(MountError);

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
