//! The settings of a mount.

use std::path::PathBuf;

use rustix::mount::MountFlags;

use crate::formats::base_url::BaseUrl;

/// The settings of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldSettings {
    /// The resolvers that are asked.
    pub resolvers: Vec<BaseUrl>,
    /// The Archives that are asked before.
    pub archives: Vec<BaseUrl>,
    /// Whether the levels are those that the first Archive lists.
    pub is_listed: bool,
    /// The flags for the kernel.
    pub flags: MountFlags,
    /// The directory of the cache.
    pub cache: PathBuf,
    /// The limit of the cache in bytes, if one was named.
    pub limit: Option<u64>,
    /// Whether Archives that others name may have addresses of private networks.
    pub allows_private: bool,
    /// Whether other users may access the mount.
    pub allow_other: bool,
    /// Certificates of more authorities.
    pub ca_file: Option<PathBuf>,
}

impl WorldSettings {
    /// The flags of all such mounts.
    pub const FLAGS: MountFlags = MountFlags::RDONLY
        .union(MountFlags::NOSUID)
        .union(MountFlags::NODEV);

    /// The first service that is asked: what the table of mounts shows as the source.
    #[must_use]
    pub fn source(&self) -> String {
        let first = self.resolvers.first().or(self.archives.first());
        first.map_or_else(|| "ibi".to_owned(), BaseUrl::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_mount_is_the_first_service_that_is_asked() {
        let urls = |all: &[&str]| -> Vec<BaseUrl> {
            all.iter()
                .map(|url| BaseUrl::parse(url).expect("a URL"))
                .collect()
        };
        for (resolvers, archives, expected) in [
            (&["http://r.org"][..], &["http://a.org"][..], "http://r.org"),
            (&[], &["http://a.org", "http://b.org"], "http://a.org"),
            (&[], &[], "ibi"),
        ] {
            let settings = WorldSettings {
                resolvers: urls(resolvers),
                archives: urls(archives),
                is_listed: false,
                flags: WorldSettings::FLAGS,
                cache: PathBuf::new(),
                limit: None,
                allows_private: false,
                allow_other: false,
                ca_file: None,
            };
            assert_eq!(settings.source(), expected);
        }
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        assert_eq!(WorldSettings::FLAGS, flags);
    }
}
