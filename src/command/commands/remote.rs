//! `ibifs mount URL MNT`: one Archive elsewhere as a mount.

use std::path::{Path, PathBuf};

use ibi::message;

use super::world::{default_cache, failure};
use super::{print, say, start};
use crate::command::cli::{Mount, byte_count};
use crate::command::exit::{Exit, Failure};
use crate::command::logging;
use crate::formats::base_url::BaseUrl;
use crate::fuse::mount::Settings;
use crate::world::mount::WorldSettings;

/// Options of the mount of a store that mean nothing here.
const OF_STORES: [&str; 9] = [
    "lang",
    "list",
    "passthrough",
    "placement",
    "portable-names",
    "shared",
    "shared-store",
    "suid",
    "dev",
];

/// The options of a mount of an Archive that `-o` has.
#[derive(Debug)]
pub(super) struct RemoteOptions {
    settings: Settings,
    cache: Option<PathBuf>,
    limit: Option<u64>,
    ca_file: Option<PathBuf>,
}

/// Whether what is to be mounted is an Archive elsewhere.
pub(super) fn is_url(store: &Path) -> bool {
    let text = store.to_string_lossy();
    ["http://", "https://"].iter().any(|scheme| {
        let begin = text.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    })
}

/// The URL of the Archive that is to be mounted.
pub(super) fn url(store: &Path) -> Result<BaseUrl, Failure> {
    let text = store.to_string_lossy();
    BaseUrl::parse(&text).map_err(super::usage)
}

impl RemoteOptions {
    /// Parses the values of `-o`.
    pub(super) fn parse(texts: &[String]) -> Result<RemoteOptions, Failure> {
        let (mut cache, mut limit, mut ca_file) = (None, None, None);
        let mut others = Vec::new();
        for word in texts.iter().flat_map(|text| text.split(',')) {
            match word.split_once('=') {
                Some(("cache", directory)) => cache = Some(PathBuf::from(directory)),
                Some(("cache-size", size)) => {
                    limit = Some(byte_count(size).ok_or_else(|| refused(word))?);
                }
                Some(("ca-file", file)) => ca_file = Some(PathBuf::from(file)),
                _ => {
                    let name = word.split_once('=').map_or(word, |(name, _)| name);
                    if OF_STORES.contains(&name) {
                        return Err(refused(word));
                    }
                    others.push(word);
                }
            }
        }
        let settings = Settings::parse(&[others.join(",")], |_| None);
        Ok(RemoteOptions {
            settings: settings.map_err(|_| refused(&others.join(",")))?,
            cache,
            limit,
            ca_file,
        })
    }
}

fn refused(option: &str) -> Failure {
    super::usage(message!(
        "'{option}' is no option of the mount of an Archive elsewhere; the options are allow_other, ca-file=, cache=, cache-size=, exec, log=, noexec, nosymfollow, ro",
        option = option.escape_debug().to_string()
    ))
}

/// Refuses options for Archives elsewhere where a store is mounted.
pub(super) fn refuse_for_store(options: &Mount) -> Result<(), Failure> {
    let is_given = options.cache.is_some()
        || options.cache_size.is_some()
        || options.network.ca_file.is_some();
    if is_given {
        return Err(super::usage(message!(
            "--cache, --cache-size and --ca-file are for the URL of an Archive, and '{store}' is none",
            store = options.store.display()
        )));
    }
    Ok(())
}

/// Mounts an Archive elsewhere.
pub(super) fn mount(options: &Mount) -> Result<Exit, Failure> {
    let url = url(&options.store)?;
    let given = RemoteOptions::parse(&options.options)?;
    let mut reached = options.network.clone();
    reached.ca_file = reached.ca_file.or(given.ca_file);
    let network = super::network(&reached)?;
    if !options.foreground {
        let exit = start::mount_in_background(options)?;
        if exit == Exit::Done && options.output.json {
            say(&print::world_json(&url.to_string(), &options.mount_point))?;
        }
        return Ok(exit);
    }
    if let Some(level) = given.settings.log {
        logging::set_level(level);
    }
    let cache = match options.cache.clone().or(given.cache) {
        Some(cache) => cache,
        None => default_cache()?,
    };
    // Another process may mount it, which is in another directory.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let settings = WorldSettings {
        resolvers: Vec::new(),
        archives: vec![url],
        is_listed: true,
        flags: WorldSettings::FLAGS | given.settings.flags(),
        cache: absolute(cache),
        limit: options.cache_size.or(given.limit),
        allows_private: false,
        allow_other: given.settings.allow_other,
        ca_file: reached.ca_file.map(absolute),
    };
    let starter = start::Starter::of_archive(options);
    let stays = options.ready_fd.is_none();
    crate::world::mount::serve(&options.mount_point, &settings, &network, stays, &starter)
        .map_err(failure)?;
    Ok(Exit::Done)
}
