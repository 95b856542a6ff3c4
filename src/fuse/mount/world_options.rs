//! The mount options that concern items of other Archives. The process that shows them is started by the program that
//! mounts; this module neither starts it nor reads its files.

use std::path::PathBuf;

use super::MountError;
use crate::formats::base_url::BaseUrl;

/// The items of other Archives that a mount shows.
#[derive(Clone, Debug, Default)]
pub struct WorldOptions {
    /// The resolvers that are asked.
    pub resolvers: Vec<BaseUrl>,
    /// The Archives that are asked before.
    pub archives: Vec<BaseUrl>,
    /// The directory of the cache.
    pub cache: Option<PathBuf>,
    /// The limit of the cache, as written.
    pub cache_size: Option<String>,
    /// More certificates.
    pub ca_file: Option<PathBuf>,
    /// Whether Archives that others name may have addresses of private networks.
    pub allows_private: bool,
    /// Whether names of items that are not held here lead to those of other Archives.
    pub fallback: bool,
}

impl WorldOptions {
    /// Whether items of other Archives are shown.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !(self.resolvers.is_empty() && self.archives.is_empty())
    }

    /// Reads a value of `world=`; None if it is not one.
    pub(super) fn take_world(&mut self, value: &str) -> Option<()> {
        if value == "fallback" {
            self.fallback = true;
        } else {
            self.resolvers.push(BaseUrl::parse(value).ok()?);
        }
        Some(())
    }

    /// Reads an option with a value; None if it is not one of these, or has a value that it cannot have.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Option<()> {
        let path = || (!value.is_empty()).then(|| PathBuf::from(value));
        match name {
            "world" => self.take_world(value)?,
            "world-archive" => self.archives.push(BaseUrl::parse(value).ok()?),
            "world-cache" => self.cache = Some(path()?),
            "world-cache-size" => self.cache_size = Some(value.to_owned()),
            "world-ca-file" => self.ca_file = Some(path()?),
            _ => return None,
        }
        Some(())
    }

    /// Whether these options can be together.
    pub(super) fn check(&self, is_read_only: bool) -> Result<(), MountError> {
        if self.is_wanted() {
            if self.fallback && !is_read_only {
                return Err(MountError::Fallback);
            }
            return Ok(());
        }
        let given = [
            ("world=fallback", self.fallback),
            ("world-cache=", self.cache.is_some()),
            ("world-cache-size=", self.cache_size.is_some()),
            ("world-ca-file=", self.ca_file.is_some()),
            ("world-allow-private", self.allows_private),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(MountError::NoWorld { option }),
            None => Ok(()),
        }
    }
}
