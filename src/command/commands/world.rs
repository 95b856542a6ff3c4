//! `ibifs world`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ibi::message;
use ibi::pairs::Pairs;
use serde_json::json;

use super::{print, say, start};
use crate::command::cli::{World, WorldCommand, WorldStatus};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::world::mount::{CacheError, STATUS, WorldError, WorldSettings};

pub(super) fn run(options: &World) -> Result<Exit, Failure> {
    match (&options.command, &options.mount_point) {
        (Some(WorldCommand::Status(status)), _) => self::status(status),
        (None, Some(mount_point)) => mount(options, mount_point),
        (None, None) => Err(super::usage(message!("no mount point is named"))),
    }
}

fn mount(options: &World, mount_point: &Path) -> Result<Exit, Failure> {
    let cache = match &options.cache {
        Some(cache) => cache.clone(),
        None => default_cache()?,
    };
    // A URL or a certificate that is not valid is reported before a process is started.
    let network = super::network(&options.network)?;
    if !options.foreground {
        let exit = start::in_background(&arguments(options, &cache), &[mount_point.as_os_str()])?;
        if exit == Exit::Done && options.output.json {
            let first = options.resolver.first().or(options.archive.first());
            let source = first.map(ToString::to_string).unwrap_or_default();
            say(&print::world_json(&source, mount_point))?;
        }
        return Ok(exit);
    }
    let settings = WorldSettings {
        resolvers: options.resolver.clone(),
        archives: options.archive.clone(),
        cache,
        limit: options.cache_size,
        allows_private: options.allow_private,
        allow_other: rustix::process::geteuid().is_root(),
    };
    let starter = start::Starter::of_world(options.ready_fd, mount_point);
    crate::world::mount::serve(mount_point, &settings, &network, &starter).map_err(failure)?;
    Ok(Exit::Done)
}

fn failure(error: WorldError) -> Failure {
    match error {
        WorldError::Mount(error) => error.into(),
        WorldError::Cache(CacheError::Used(_)) => Failure::new(Exit::Busy, error),
        WorldError::Cache(_) | WorldError::System(_) => Failure::new(Exit::Failed, error),
    }
}

/// The arguments of the process in the background.
fn arguments(options: &World, cache: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["world".into()];
    let mut add = |name: &str, value: &OsStr| arguments.extend([name.into(), value.into()]);
    for resolver in &options.resolver {
        add("--resolver", resolver.to_string().as_ref());
    }
    for archive in &options.archive {
        add("--archive", archive.to_string().as_ref());
    }
    // The process leaves the directory in which it is started.
    let cache = std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned());
    add("--cache", cache.as_os_str());
    add("--cache-size", options.cache_size.to_string().as_ref());
    if let Some(file) = &options.network.ca_file {
        add("--ca-file", file.as_os_str());
    }
    if options.allow_private {
        arguments.push("--allow-private".into());
    }
    if options.output.json {
        arguments.push("--json".into());
    }
    arguments
}

/// The directory for what can be fetched again (XDG Base Directory Specification).
fn default_cache() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let caches = caches.ok_or_else(|| {
        super::usage(message!(
            "neither XDG_CACHE_HOME nor HOME names a directory for the cache; name one with --cache"
        ))
    })?;
    Ok(caches.join("ibifs/world"))
}

fn status(options: &WorldStatus) -> Result<Exit, Failure> {
    let shown = options.mount_point.display();
    let mut text = vec![0; 64 << 10];
    let read = rustix::fs::getxattr(&options.mount_point, STATUS, &mut text);
    let pairs = match read {
        Ok(length) => {
            text.truncate(length);
            Pairs::parse(&text).map_err(|error| Failure::new(Exit::Failed, error))?
        }
        Err(_) => {
            let message = message!(
                "'{shown}' is no mount of 'ibifs world', or its process is gone",
                shown
            );
            return Err(Failure::new(Exit::NotFound, message));
        }
    };
    if !options.output.json {
        let mut lines = String::new();
        for (name, value) in pairs.iter() {
            lines.push_str(&format!("{name:8}  {}\n", value.words().join(" ")));
        }
        say(&lines)?;
        return Ok(Exit::Done);
    }
    let number = |name: &str| {
        let word = pairs.get(name).and_then(|value| value.words().first());
        word.and_then(|word| word.parse::<u64>().ok())
    };
    let silent = pairs.get("silent").map(|value| value.words().to_vec());
    say(&json::pretty(&json!({
        "mount_point": json::path(&options.mount_point),
        "cache": {"bytes": number("bytes"), "limit": number("limit"), "files": number("files")},
        "items": number("items"),
        "nodes": number("nodes"),
        "requests": number("requests"),
        "silent": silent.unwrap_or_default(),
    })))?;
    Ok(Exit::Done)
}
