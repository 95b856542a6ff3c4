//! The arguments that mount(8) passes to its helper: `mount.fuse.ibifs STORE MNT [-sfnv] [-o OPTIONS]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Parser;

/// Mount a store, called by mount(8)
#[derive(Debug, Parser)]
#[command(
    name = "mount.ibifs",
    version,
    after_help = "Called by mount(8) for the types ibifs and fuse.ibifs. See mount.ibifs(8)."
)]
pub struct MountHelper {
    /// Directory of the store, or URL of an Archive elsewhere
    pub store: PathBuf,
    /// Where to mount it
    pub mount_point: PathBuf,
    /// Mount options, joined by commas
    #[arg(short = 'o', value_name = "OPTIONS")]
    pub options: Vec<String>,
    /// Do everything but mount
    #[arg(short = 'f')]
    pub fake: bool,
    /// Pass over options that there are not
    #[arg(short = 's')]
    pub sloppy: bool,
    /// Write nothing to /etc/mtab, which is never written
    #[arg(short = 'n')]
    pub no_mtab: bool,
    /// Say what is mounted where
    #[arg(short = 'v')]
    pub verbose: bool,
    /// Mount namespace, which mount(8) enters itself where it can
    #[arg(short = 'N', value_name = "NAMESPACE")]
    pub namespace: Option<PathBuf>,
    /// Type of the filesystem
    #[arg(short = 't', value_name = "TYPE")]
    pub kind: Option<String>,
    /// Whether mount.fuse3(8) has called, which adds suid and dev of its own.
    #[arg(skip)]
    pub through_mount_fuse: bool,
}

impl MountHelper {
    /// The arguments of a program that was called as mount(8) calls: by the name of a helper; or, as
    /// mount.fuse3(8) does, with a path or a URL where a command should be.
    #[must_use]
    pub fn called(arguments: &[OsString]) -> Option<Result<MountHelper, clap::Error>> {
        let name = arguments
            .first()
            .and_then(|path| Path::new(path).file_name());
        let is_helper = |name: &OsStr| name == "mount.ibifs" || name == "mount.fuse.ibifs";
        if name.is_some_and(is_helper) {
            return Some(MountHelper::try_parse_from(arguments));
        }
        let first = arguments.get(1)?;
        let is_source = |begin: &str| first.as_bytes().starts_with(begin.as_bytes());
        ["/", "http://", "https://"]
            .into_iter()
            .any(is_source)
            .then(|| {
                let mut helper = MountHelper::try_parse_from(arguments)?;
                helper.through_mount_fuse = true;
                Ok(helper)
            })
    }

    /// The options that are for the mount, not for its caller, one by one.
    #[must_use]
    pub fn words(&self) -> Vec<&str> {
        let words = self.options.iter().flat_map(|text| text.split(','));
        let is_meant = |word: &&str| !(self.through_mount_fuse && matches!(*word, "suid" | "dev"));
        words.filter(is_meant).collect()
    }
}
