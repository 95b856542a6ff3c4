//! `ibifs relate` and `ibifs unrelate`.

use super::access::{self, Named, StoreAccess};
use super::{language, print, say, usage};
use crate::archive::{Process, Relative, attribute_of};
use crate::command::cli::{Relate, Unrelate};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::item::Names;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{OFlags, XattrFlags};

use crate::os::opening;
use ibi::message;
use ibi::relation::RelationKind;

pub(super) fn relate(options: &Relate) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let language = language(options.lang.as_deref())?;
    let (kind, target) = match (
        &options.next_edition,
        &options.translation,
        &options.metadata,
        language,
    ) {
        (Some(target), ..) => (RelationKind::NextEdition, target),
        (_, Some(target), _, Some(language)) => (RelationKind::Translation(language), target),
        (_, _, Some(target), _) => (RelationKind::Metadata, target),
        _ => {
            return Err(usage(message!(
                "name the relation: --next-edition, --translation or --metadata"
            )));
        }
    };
    let target = match access::find(target, Some(named.access.place())) {
        Ok(target) => target.names,
        // The related item need not be in this Archive.
        Err(failure) if failure.exit == Exit::NotFound => access::names_in(target)?,
        Err(failure) => return Err(failure),
    };
    let previous = previous_target(&named, &kind);
    let previous = previous.filter(|previous| !previous.matches(&target));
    relate_through(&named, &kind, &target)?;
    say_change(&named, &kind, (Some(target), previous), options.output.json)
}

/// The item to which one has a relation, as far as it is known here.
fn previous_target(named: &Named, kind: &RelationKind) -> Option<Names> {
    let archive = named.archive().ok()?;
    let item = archive.held(&named.names).ok()??;
    let relations = archive.relations(&item).ok()?;
    let name = short_name(kind);
    let known = relations.into_iter().find(|(known, _)| *known == name);
    known.map(|(_, target)| target)
}

/// Prints a relation, and the one that it replaces or that is removed.
fn say_change(
    named: &Named,
    kind: &RelationKind,
    (target, previous): (Option<Names>, Option<Names>),
    is_json: bool,
) -> Result<Exit, Failure> {
    if is_json {
        let (target, previous) = (target.as_ref(), previous.as_ref());
        say(&print::relation_json(&named.names, kind, target, previous))?;
        return Ok(Exit::Done);
    }
    let (item, kind) = (named.names.preferred(), short_name(kind));
    let [target, previous] = [target, previous].map(|names| names.map(|names| names.preferred()));
    let line = match (target, previous) {
        (Some(target), None) => message!("{item}: {kind} {target}", item, kind, target),
        (Some(target), Some(previous)) => message!(
            "{item}: {kind} {target}, in place of {previous}",
            item,
            kind,
            target,
            previous
        ),
        (None, Some(previous)) => message!(
            "{item}: {kind} removed, which was {previous}",
            item,
            kind,
            previous
        ),
        (None, None) => message!("{item}: {kind} removed", item, kind),
    };
    eprintln!("ibifs: {}", OneLine(localized(&line)));
    Ok(Exit::Done)
}

/// The name of a relation without what all have in front: `translation(pt)`.
fn short_name(kind: &RelationKind) -> String {
    let pair = kind.pair_name();
    pair.strip_prefix("ibi.").unwrap_or(&pair).to_owned()
}

/// The attribute of a relation: `user.ibi.translation.pt` for `translation(pt)`.
fn attribute_name(kind: &RelationKind) -> String {
    let name = short_name(kind);
    format!("user.ibi.{}", name.replace('(', ".").replace(')', ""))
}

fn refused_relation(kind: &RelationKind, named: &Named, error: rustix::io::Errno) -> Failure {
    let (kind, names) = (short_name(kind), &named.names);
    access::refused(&message!("ibi.{kind} of {names}", kind, names), error)
}

/// Returns what a mount says against a relation of a new item with one that is there, for a user who may not enter the
/// store: after the mint it would be too late.
pub(super) fn check_in_mount(access: &StoreAccess, relative: &Relative) -> Result<(), Failure> {
    let named = Named::new(access.clone(), relative.source().clone());
    let kind = relative.kind();
    let Some(path) = access.path_in_mount(&named.names) else {
        return Ok(());
    };
    if attribute_of(&path, &attribute_name(&kind)).is_some() {
        return Err(refused_relation(&kind, &named, rustix::io::Errno::EXIST));
    }
    rustix::fs::access(access::bytes(&path), rustix::fs::Access::WRITE_OK)
        .map_err(|error| refused_relation(&kind, &named, error))
}

pub(super) fn relate_through(
    named: &Named,
    kind: &RelationKind,
    target: &Names,
) -> Result<(), Failure> {
    let Some(path) = named.access.path_in_mount(&named.names) else {
        return named
            .access
            .change(|archive| archive.edit(&Process, |it| it.relate(&named.names, kind, target)));
    };
    let set = |item: OwnedFd| {
        let (name, value) = (attribute_name(kind), target.preferred());
        opening::set_attribute(item.as_fd(), name, value.as_bytes(), XattrFlags::empty())
    };
    let found = opening::found(access::bytes(&path), OFlags::empty());
    found
        .and_then(set)
        .map_err(|error| refused_relation(kind, named, error))
}

pub(super) fn unrelate(options: &Unrelate) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let kind = match (
        options.next_edition,
        options.metadata,
        language(options.lang.as_deref())?,
    ) {
        (true, ..) => RelationKind::NextEdition,
        (_, true, _) => RelationKind::Metadata,
        (_, _, Some(language)) => RelationKind::Translation(language),
        _ => {
            return Err(usage(message!(
                "name the relation: --next-edition, --translation or --metadata"
            )));
        }
    };
    let previous = previous_target(&named, &kind);
    match named.access.path_in_mount(&named.names) {
        None => named
            .access
            .change(|archive| archive.edit(&Process, |it| it.unrelate(&named.names, &kind)))?,
        Some(path) => opening::found(access::bytes(&path), OFlags::empty())
            .and_then(|item| opening::remove_attribute(item.as_fd(), attribute_name(&kind)))
            .map_err(|error| refused_relation(&kind, &named, error))?,
    }
    say_change(&named, &kind, (None, previous), options.output.json)
}
