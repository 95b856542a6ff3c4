//! `ibifs import --mint`: a package without an identifier, a zip or tar file or a directory becomes a new item, and each
//! package of a directory of packages. A package that an item was made of already makes none.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::packages::below;
use super::staging;
use crate::archive::package::{self, PackageError, PackageIdentity};
use crate::archive::tree::Place;
use crate::command::cli;
use crate::command::commands::access::StoreAccess;
use crate::command::commands::{mint, print, say};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::command::terminal::OneLine;
use crate::formats::item::{Names, State};
use crate::os::directory::Directory;
use ibi::message::Localize;
use ibi::{message, plural};

pub(super) fn run(
    options: &cli::Import,
    access: &StoreAccess,
    source: &Path,
) -> Result<Exit, Failure> {
    let mut made = made(access)?;
    let Some(paths) = packages_in(source)? else {
        let names = one(access, source, &mut made)?;
        say(&if options.output.json {
            json::pretty(&json::item_with(&names, State::Original, None).into())
        } else {
            print::names_text(&names)
        })?;
        return Ok(Exit::Done);
    };
    let (mut exit, mut taken) = (Exit::Done, 0);
    for path in &paths {
        let shown = below(source, path).display().to_string();
        let (word, names, sentence) = match one(access, &below(source, path), &mut made) {
            Ok(names) => {
                taken += 1;
                (message!("taken"), Some(names), None)
            }
            Err(failure) => {
                exit = Exit::Failed;
                (message!("not taken"), None, Some(failure.message))
            }
        };
        if options.output.json {
            let mut object = names.as_ref().map_or_else(json::no_names, json::names);
            object.insert("package".into(), json!(shown));
            let outcome = if names.is_some() {
                "taken"
            } else {
                "not-taken"
            };
            object.insert("outcome".into(), json!(outcome));
            object.insert("sentence".into(), json!(sentence));
            say(&json::line(&object.into()))?;
            continue;
        }
        let rest = names.map_or_else(
            || sentence.as_ref().map(localized).unwrap_or_default(),
            |names| names.preferred(),
        );
        say(&format!(
            "{}: {}: {}\n",
            localized(&word),
            OneLine(shown),
            OneLine(rest)
        ))?;
    }
    if options.output.json {
        say(&json::line(
            &json!({ "packages": paths.len(), "taken": taken, "dry_run": false }),
        ))?;
    } else {
        let packages = plural!("{count} package", "{count} packages", count = paths.len());
        let taken = plural!("{count} taken in", "{count} taken in", count = taken);
        say(&format!(
            "{}\n",
            localized(&message!("{packages}, {taken}", packages, taken))
        ))?;
    }
    Ok(exit)
}

/// The packages in a directory of packages; None for a package itself, or another directory or file.
fn packages_in(source: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let Ok(root) = Directory::open(source) else {
        return Ok(None);
    };
    if root.directory("doc").is_ok() {
        return Ok(None);
    }
    let (packages, others) = match package::find_with_others(root.descriptor(), source) {
        Err(PackageError::Nothing { .. }) => return Ok(None),
        found => found?,
    };
    if packages.iter().any(|path| path.as_os_str().is_empty()) {
        return Ok(None);
    }
    match others.first() {
        None => Ok(Some(packages)),
        Some(other) => Err(Failure::new(
            Exit::Refused,
            message!(
                "'{path}' has packages, and '{other}', which is in none; name the packages, or move all to 'doc' in a directory for one item of all",
                path = source.display(),
                other = OneLine(other.display().to_string()).to_string()
            ),
        )),
    }
}

/// The items that were made of packages.
type Made = Vec<(PackageIdentity, Names)>;

/// Finds what items were made of. A store that is shut to the caller is not read.
fn made(access: &StoreAccess) -> Result<Made, Failure> {
    let mut made = Made::new();
    if access.mount_point.is_some() && access.is_shut() {
        return Ok(made);
    }
    let archive = access.read()?;
    archive.store().each_item(|item| {
        let opened = archive.tree().open_item(&Place::of(&item.names));
        if let Some(identity) = opened.ok().and_then(package::made_from) {
            made.push((identity, item.names.clone()));
        }
        Ok(())
    })?;
    Ok(made)
}

/// Makes an item of a source, unless an item was made of it.
fn one(access: &StoreAccess, source: &Path, made: &mut Made) -> Result<Names, Failure> {
    let staging = staging::beside(source)?;
    let progress = ProgressLine::of(&message!("files"), || None);
    let (mut files, mut bytes) = (0, 0);
    let mut count = |more: u64| {
        files += u64::from(more == 0);
        bytes += more;
        progress.at_bytes(files, bytes);
    };
    let staged = package::stage_unnamed(source, &staging, &mut count)?;
    drop(progress);
    let note =
        |sentence: &dyn Localize| eprintln!("ibifs: {}", OneLine(localized(&sentence.message())));
    for warning in &staged.warnings {
        let path = source.display();
        note(&message!("{path}: warning: {warning}", path, warning));
    }
    let known = staged
        .identity
        .as_ref()
        .and_then(|identity| made.iter().find(|(known, _)| known.is_of(identity)));
    if let (Some(identity), Some((known, names))) = (&staged.identity, known) {
        let item = names.preferred();
        if known.digest != identity.digest {
            return Err(Failure::new(
                Exit::Refused,
                message!(
                    "item {item} was made from a package with its identifier and other files; give it another identifier to make a new item",
                    item
                ),
            ));
        }
        note(&message!(
            "item {item} was made from this package before; nothing is made",
            item
        ));
        return Ok(names.clone());
    }
    let names = mint::with_directory(access, &staging, package::ITEM)?;
    access.tell_imported(&names, source);
    made.extend(staged.identity.map(|identity| (identity, names.clone())));
    Ok(names)
}
