//! Mounts a filesystem.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use rustix::mount::MountFlags;

use super::{MountError, unmount_or_log};
use crate::os::system_files;
use ibi::message::Message;

/// The flags that fusermount3 has. It has others since 3.17 only.
const FLAGS_OF_FUSERMOUNT: [(MountFlags, MountOption); 7] = [
    (MountFlags::RDONLY, MountOption::RO),
    (MountFlags::NOSUID, MountOption::NoSuid),
    (MountFlags::NODEV, MountOption::NoDev),
    (MountFlags::NOEXEC, MountOption::NoExec),
    (MountFlags::NOATIME, MountOption::NoAtime),
    (MountFlags::SYNCHRONOUS, MountOption::Sync),
    (MountFlags::DIRSYNC, MountOption::DirSync),
];

/// The way in which a filesystem is mounted.
#[derive(Debug)]
pub(crate) struct Attachment<'a> {
    /// The source that the table of mounts shows.
    pub(crate) source: &'a Path,
    /// Its type, after `fuse.`.
    pub(crate) subtype: &'static str,
    /// The flags for the kernel.
    pub(crate) flags: MountFlags,
    /// Whether other users may access it.
    pub(crate) allow_other: bool,
    /// The number of threads that take requests.
    pub(crate) threads: usize,
}

impl Attachment<'_> {
    fn config(&self) -> Config {
        let mut config = Config::default();
        let is_given = |(flag, _): &(MountFlags, MountOption)| self.flags.contains(*flag);
        let given = FLAGS_OF_FUSERMOUNT.into_iter().filter(is_given);
        config.mount_options = given.map(|(_, option)| option).collect();
        config.mount_options.extend([
            MountOption::FSName(self.source.display().to_string()),
            MountOption::Subtype(self.subtype.to_owned()),
            MountOption::DefaultPermissions,
        ]);
        config.acl = if self.allow_other {
            SessionACL::All
        } else {
            SessionACL::Owner
        };
        config.n_threads = Some(self.threads);
        config.clone_fd = true;
        config
    }

    /// Mounts the file system. As root directly, because fuser would omit the subtype, by which `mount`, `df`
    /// and ibifs itself recognize the mount. An ordinary user goes through fusermount3.
    pub(crate) fn attach<F: Filesystem>(
        &self,
        filesystem: F,
        mount_point: &Path,
    ) -> Result<Session<F>, MountError> {
        let is_root = rustix::process::geteuid().is_root();
        // The others change nothing that a user could rely on.
        if !is_root && self.flags.contains(MountFlags::NOSYMFOLLOW) {
            return Err(MountError::SymlinksFollowed);
        }
        let session = if is_root {
            self.attach_as_root(filesystem, mount_point)
        } else {
            Session::new(filesystem, mount_point, &self.config())
        };
        session.map_err(|error| match error.kind() {
            // fuser reports the message of fusermount3 this way.
            ErrorKind::PermissionDenied if !is_root && self.allow_other => MountError::AllowOther,
            _ => MountError::Failed {
                cause: Message::foreign(error.to_string().trim_end()),
            },
        })
    }

    fn attach_as_root<F: Filesystem>(
        &self,
        filesystem: F,
        mount_point: &Path,
    ) -> std::io::Result<Session<F>> {
        let config = self.config();
        let device = system_files::open_device("/dev/fuse")?;
        let device = OwnedFd::from(device);
        let mut data = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions",
            device.as_raw_fd()
        );
        if self.allow_other {
            data.push_str(",allow_other");
        }
        let data = std::ffi::CString::new(data)?;
        let kind = format!("fuse.{}", self.subtype);
        rustix::mount::mount(self.source, mount_point, kind, self.flags, &*data)?;
        let session = Session::from_fd(filesystem, device, config.acl, config);
        if session.is_err() {
            unmount_or_log(mount_point);
        }
        session
    }
}
