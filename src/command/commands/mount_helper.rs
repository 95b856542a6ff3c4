//! The helper of mount(8) for the types `ibifs` and `fuse.ibifs`.

use super::world_companion::WorldCompanion;
use super::{remote, start};
use crate::command::cli::{Mount, MountHelper, NetworkOptions, Output};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::logging;
use crate::fuse::mount::{Mounted, Settings, mounts, resolve};
use ibi::message;

/// mount(8): the invocation or the permissions were wrong.
const USAGE: u8 = 1;
/// mount(8): the mount failed.
const FAILED: u8 = 32;

/// Options of the kernel that mount(8) passes on at a remount.
const OF_THE_KERNEL: [&str; 6] = [
    "user_id=",
    "group_id=",
    "rootmode=",
    "max_read=",
    "blksize=",
    "allow_other",
];

/// Mounts or remounts; the result is an exit status of mount(8).
pub fn run(helper: &MountHelper) -> u8 {
    let result = if helper.words().contains(&"remount") {
        remount(helper)
    } else {
        mount(helper)
    };
    match result {
        Ok(Exit::Done) => 0,
        Ok(Exit::Usage) => USAGE,
        Ok(_) => FAILED,
        Err(failure) => {
            eprintln!("{}ibifs: {failure}", logging::mark_of_failure());
            match failure.exit {
                Exit::Usage => USAGE,
                _ => FAILED,
            }
        }
    }
}

fn settings(words: &[&str]) -> Result<Settings, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    Ok(Settings::parse(&[words.join(",")], variable)?)
}

fn mount(helper: &MountHelper) -> Result<Exit, Failure> {
    let mut words = helper.words();
    let check: fn(&[&str]) -> Result<(), Failure> = if remote::is_url(&helper.store) {
        // mount(8) has these options unless others are given.
        words.retain(|word| !matches!(*word, "rw" | "suid" | "dev"));
        remote::url(&helper.store)?;
        |words| remote::RemoteOptions::parse(&[words.join(",")]).map(drop)
    } else {
        |words| settings(words).map(drop)
    };
    if helper.sloppy {
        words = known(&words, check);
    }
    check(&words)?;
    if !remote::is_url(&helper.store) {
        WorldCompanion::new(&settings(&words)?.world, &helper.mount_point)?;
    }
    if let Some(namespace) = &helper.namespace {
        return Err(Failure::new(
            Exit::Usage,
            message!(
                "a mount namespace is entered with 'nsenter --mount={namespace} mount ...', not with -N",
                namespace = namespace.display()
            ),
        ));
    }
    if helper.fake {
        return Ok(Exit::Done);
    }
    let exit = start::mount_in_background(&Mount {
        store: helper.store.clone(),
        mount_point: helper.mount_point.clone(),
        options: vec![words.join(",")],
        cache: None,
        cache_size: None,
        network: NetworkOptions::default(),
        foreground: false,
        ready_fd: None,
        output: Output::default(),
    })?;
    if helper.verbose && exit == Exit::Done {
        let is_mounted = localized(&message!(
            "{store} is mounted at {mount_point}",
            store = helper.store.display(),
            mount_point = helper.mount_point.display()
        ));
        super::say(&format!("ibifs: {is_mounted}\n"))?;
    }
    Ok(exit)
}

/// The words that are known options.
fn known<'a>(words: &[&'a str], check: impl Fn(&[&str]) -> Result<(), Failure>) -> Vec<&'a str> {
    let mut known = Vec::new();
    for word in words {
        // A word after `lang=` may be a language.
        known.push(*word);
        if check(&known).is_err() {
            known.pop();
        }
    }
    known
}

/// Changes the options of the kernel, such as `ro`. The options of the daemon stay as they are.
fn remount(helper: &MountHelper) -> Result<Exit, Failure> {
    let mut words = helper.words();
    words.retain(|word| {
        *word != "remount" && !OF_THE_KERNEL.iter().any(|known| word.starts_with(known))
    });
    let settings = settings(&words)?;
    let shown = helper.mount_point.display();
    let path = resolve(&helper.mount_point);
    let is_there = |mount: &Mounted| mount.is_ours() && mount.mount_point == path;
    if !mounts().iter().any(is_there) {
        return Err(Failure::new(
            Exit::NotFound,
            message!("no store is mounted at '{shown}'", shown),
        ));
    }
    settings.check_remount(&path)?;
    if helper.fake {
        return Ok(Exit::Done);
    }
    settings.remount(&path).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                message!("only root can remount; unmount, and mount with the other options")
            }
            std::io::ErrorKind::ResourceBusy => {
                message!("a file is open for writing; 'fuser -vm' shows by which process")
            }
            _ => message!("unmount, and mount with the other options"),
        };
        Failure::new(
            Exit::Failed,
            message!(
                "remounting '{shown}': {error}; {remedy}",
                shown,
                error,
                remedy
            ),
        )
    })?;
    Ok(Exit::Done)
}
