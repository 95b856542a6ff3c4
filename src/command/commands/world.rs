//! `ibifs world`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ibi::pairs::{Pairs, percent_decode};
use ibi::{Ibi, message, plural};
use serde_json::json;

use super::{cannot_print, print, put_out, say, start};
use crate::command::cli::{World, WorldCommand, WorldKeep, WorldStatus};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::command::terminal::OneLine;
use crate::world::mount::{
    AskError, CacheError, KeepAction, KeepError, KeepReport, WorldError, WorldSettings,
};

pub(super) fn run(options: &World) -> Result<Exit, Failure> {
    match (&options.command, &options.mount_point) {
        (Some(WorldCommand::Status(status)), _) => self::status(status),
        (Some(WorldCommand::Fetch(items)), _) => keep(KeepAction::Fetch, items),
        (Some(WorldCommand::Pin(items)), _) => keep(KeepAction::Pin, items),
        (Some(WorldCommand::Drop(items)), _) => keep(KeepAction::Drop, items),
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
    let settings = WorldSettings {
        resolvers: options.resolver.clone(),
        archives: options.archive.clone(),
        is_listed: false,
        flags: WorldSettings::FLAGS,
        // The process leaves the directory in which it is started.
        cache: std::path::absolute(&cache).unwrap_or(cache),
        limit: options.cache_size,
        allows_private: options.allow_private,
        allow_other: rustix::process::geteuid().is_root(),
        ca_file: options.network.ca_file.as_ref().map(|file| {
            let absolute = std::path::absolute(file);
            absolute.unwrap_or_else(|_| file.clone())
        }),
    };
    if !options.foreground {
        let arguments = arguments(options, &settings);
        let exit = start::in_background(&arguments, &[mount_point.as_os_str()])?;
        if exit == Exit::Done && options.output.json {
            let source = settings.source();
            say(&print::world_json(&source, mount_point))?;
        }
        return Ok(exit);
    }
    let starter = start::Starter::of_world(options.ready_fd, mount_point);
    // A process that waits for this in the background does not need it if another one has mounted.
    let stays = options.ready_fd.is_none();
    crate::world::mount::serve(mount_point, &settings, &network, stays, &starter)
        .map_err(failure)?;
    Ok(Exit::Done)
}

pub(super) fn failure(error: WorldError) -> Failure {
    match error {
        WorldError::Mount(error) => error.into(),
        WorldError::Cache(CacheError::Used(_)) => Failure::new(Exit::Busy, error),
        WorldError::Ask(error) => asked(error),
        WorldError::Cache(_) | WorldError::System(_) => Failure::new(Exit::Failed, error),
    }
}

fn asked(error: AskError) -> Failure {
    let exit = match error {
        AskError::Silent | AskError::Elsewhere => Exit::Busy,
        AskError::Gone | AskError::Refused(_) | AskError::System(_) => Exit::Failed,
    };
    Failure::new(exit, error)
}

/// The arguments of the process in the background.
fn arguments(options: &World, settings: &WorldSettings) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["world".into()];
    let mut add = |name: &str, value: &OsStr| arguments.extend([name.into(), value.into()]);
    for resolver in &options.resolver {
        add("--resolver", resolver.to_string().as_ref());
    }
    for archive in &options.archive {
        add("--archive", archive.to_string().as_ref());
    }
    add("--cache", settings.cache.as_os_str());
    if let Some(limit) = settings.limit {
        add("--cache-size", limit.to_string().as_ref());
    }
    if let Some(file) = &settings.ca_file {
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
pub(super) fn default_cache() -> Result<PathBuf, Failure> {
    let caches = caches().ok_or_else(|| {
        super::usage(message!(
            "neither XDG_CACHE_HOME nor HOME names a directory for the cache; name one with --cache, or with the mount option world-cache="
        ))
    })?;
    Ok(caches.join("world"))
}

/// The directory of this user for what can be fetched again.
pub(super) fn caches() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    // A service, and what mount(8) starts when the machine does, has no home.
    let is_root = rustix::process::geteuid().is_root();
    let caches = caches.or_else(|| is_root.then(|| PathBuf::from("/var/cache")));
    Some(caches?.join("ibifs"))
}

/// Returns what the process of a mount holds and has done.
fn status_of(mount_point: &Path) -> Result<Pairs, Failure> {
    let shown = mount_point.display();
    crate::world::mount::status(mount_point).ok_or_else(|| {
        let message = message!(
            "'{shown}' is no mount of 'ibifs world', or its process is gone",
            shown
        );
        Failure::new(Exit::NotFound, message)
    })
}

fn status(options: &WorldStatus) -> Result<Exit, Failure> {
    let pairs = status_of(&options.mount_point)?;
    let words = |name: &str| pairs.get(name).map(|value| value.words().to_vec());
    let path = |word: &String| PathBuf::from(OsString::from_vec(percent_decode(word)));
    let paths = |name: &str| -> Vec<PathBuf> {
        let words = words(name).unwrap_or_default();
        words.iter().map(path).collect()
    };
    if !options.output.json {
        let mut lines = String::new();
        for (name, value) in pairs.iter() {
            let value = match name {
                "mount" => continue,
                "cache" | "mounts" => {
                    let paths = paths(name);
                    let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
                    OneLine(paths.join(" ")).to_string()
                }
                _ => value.words().join(" "),
            };
            lines.push_str(&format!("{name:12}  {value}\n"));
        }
        say(&lines)?;
        return Ok(Exit::Done);
    }
    let number = |name: &str| words(name)?.first()?.parse::<u64>().ok();
    let mounts: Vec<_> = paths("mounts")
        .iter()
        .map(|path| json::path(path))
        .collect();
    say(&json::pretty(&json!({
        "mount_point": json::path(&options.mount_point),
        "cache": {
            "path": paths("cache").first().map(|path| json::path(path)),
            "bytes": number("bytes"),
            "limit": number("limit"),
            "files": number("files"),
        },
        "mounts": mounts,
        "pinned": {
            "items": number("pinned"),
            "bytes": number("pinned_bytes"),
            "ibis": words("pinned_items").unwrap_or_default(),
        },
        "items": number("items"),
        "nodes": number("nodes"),
        "passthrough": number("passthrough"),
        "requests": number("requests"),
        "silent": words("silent").unwrap_or_default(),
    })))?;
    Ok(Exit::Done)
}

/// The identifier of the item that a user named, by it or by a path below the mount point.
fn named(mount_point: &Path, text: &str) -> Result<Ibi, Failure> {
    let root = std::fs::canonicalize(mount_point).unwrap_or_else(|_| mount_point.to_owned());
    let of_path = |path: &Path| {
        let absolute = std::path::absolute(path).ok()?;
        // A modifier is a link. An item that cannot be reached has a name all the same.
        let resolved = std::fs::canonicalize(&absolute).unwrap_or(absolute);
        let below = resolved.strip_prefix(&root).ok()?;
        let parts: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
        let parts = parts?;
        let of = |depth: usize| Ibi::parse(&parts.get(..depth)?.join("/")).ok();
        of(2).or_else(|| of(4))
    };
    let path = Path::new(text);
    let by_path = || path.symlink_metadata().ok().and_then(|_| of_path(path));
    let by_name = || Ibi::parse(text).ok();
    let found = by_path().or_else(by_name);
    let found = found.or_else(|| of_path(path));
    let found = found.or_else(|| of_path(&mount_point.join(text)));
    found.ok_or_else(|| {
        super::usage(message!(
            "'{text}' is no item below '{root}'",
            text,
            root = root.display()
        ))
    })
}

fn keep(action: KeepAction, options: &WorldKeep) -> Result<Exit, Failure> {
    let pairs = status_of(&options.mount_point)?;
    let items = options.items.iter();
    let items = items.map(|text| named(&options.mount_point, text));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let progress = ProgressLine::of(&message!("MB"), || None);
    let (mut exit, mut printed) = (Exit::Done, Ok(()));
    let mut report = |report: KeepReport| {
        let text = match report {
            KeepReport::Progress(done, _) => return progress.at_bytes(done / 1_000_000, done),
            KeepReport::Done(ibi, files, bytes) if options.output.json => {
                let ibi = ibi.to_string();
                json::line(&json!({"ibi": ibi, "files": files, "bytes": bytes, "error": null}))
            }
            KeepReport::Done(ibi, files, bytes) => {
                let files = plural!("{n} file", "{n} files", n = files);
                let line = message!(
                    "{ibi}: {files}, {bytes} bytes",
                    ibi = ibi.to_string(),
                    files,
                    bytes
                );
                format!("{}\n", localized(&line))
            }
            KeepReport::Failed(ibi, error) => {
                let failure = failed(&error).before(&ibi.to_string());
                if exit == Exit::Done {
                    exit = failure.exit;
                }
                if !options.output.json {
                    return progress.aside(|| eprintln!("ibifs: {failure}"));
                }
                let error = failure.message.to_string();
                let ibi = ibi.to_string();
                json::line(&json!({"ibi": ibi, "files": null, "bytes": null, "error": error}))
            }
        };
        if printed.is_ok() {
            printed = progress.aside(|| put_out(&text));
        }
    };
    crate::world::mount::keep(&pairs, action, &items, &mut report).map_err(asked)?;
    drop(progress);
    printed.map_err(|error| cannot_print(&error))?;
    Ok(exit)
}

fn failed(error: &KeepError) -> Failure {
    match error {
        KeepError::Missing => Failure::new(
            Exit::NotFound,
            message!("no Archive holds it, or the cache does not"),
        ),
        KeepError::TooLarge(need, room) => {
            let message = message!(
                "it takes {need} bytes, and the cache has room for {room}; drop what is pinned, or mount with a higher --cache-size",
                need = *need,
                room = *room
            );
            Failure::new(Exit::Refused, message)
        }
        KeepError::Failed(why) => Failure::new(Exit::Failed, ibi::message::Message::foreign(why)),
    }
}
