//! `ibifs repair`: its arguments and its output.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;
use serde_json::json;

use super::access::StoreAccess;
use super::backup::noted_directory;
use super::scrub::{item_in, names_of};
use super::transfer::{changing, is_same};
use super::{network, put_out, say, usage};
use crate::archive::audit::{Audit, AuditTally, StorePeer};
use crate::archive::repair::{CopyPlace, Repair, RepairFinding, StorePlace};
use crate::archive::transfer::Local;
use crate::archive::tree::{SIDECAR, Tree, joined};
use crate::archive::{Archive, backup};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::base_url::BaseUrl;
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use crate::formats::item::Names;
use crate::fuse::namespace::CHANGED_BESIDE;
use crate::os::directory::Directory;
use crate::os::opening;
use crate::web::remote_archive::is_url;
use crate::world::copy::{ArchivePlace, CopySource};
use ibi::message::Message;
use ibi::{message, plural};

pub(super) fn run(options: &cli::Repair) -> Result<Exit, Failure> {
    let (access, items) = store_and_items(options)?;
    if items.is_empty() != options.all {
        return Err(usage(message!("name the items, or all of them with --all")));
    }
    let names = items.iter().map(|text| item_in(&access, text));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let mut places = Vec::new();
    for from in &options.from {
        places.push(copy_place(from, &access, options)?);
    }
    let is_json = options.output.json;
    if Archive::is_generation(&access.store) {
        let store = Local::reading(&access.store)?;
        let (others, _lock) = backup::other_generations(&access.store)?;
        let told = options.from.iter().find_map(|it| origin(&store, it));
        let told = told.as_ref();
        return mend(
            &store,
            &access,
            (told, Some(&others)),
            &names,
            &mut places,
            is_json,
        );
    }
    let store = changing(&access)?;
    let told = (Some(&access), None);
    let done = mend(&store, &access, told, &names, &mut places, is_json);
    store.close();
    done
}

/// The path of a store, or of the generation of a backup that is meant.
pub(super) fn place_of(text: &str) -> PathBuf {
    let path = PathBuf::from(text);
    backup::find(&path).unwrap_or(path)
}

/// The store of which a backup is, if it is the one at this place.
fn origin(backup: &Local, place: &str) -> Option<StoreAccess> {
    let access = StoreAccess::at(Path::new(place)).ok()?;
    let is_its_own = backup
        .service()
        .matches(&access.read().ok()?.facts().service);
    is_its_own.then_some(access)
}

/// The store, which is the first argument without --store, and the items.
fn store_and_items(options: &cli::Repair) -> Result<(StoreAccess, &[String]), Failure> {
    match (&options.store, options.paths.split_first()) {
        (Some(store), _) => Ok((
            StoreAccess::at(&backup::find(store).unwrap_or_else(|_| store.clone()))?,
            &options.paths,
        )),
        (None, Some((store, items))) => Ok((StoreAccess::at(&place_of(store))?, items)),
        (None, None) => Err(usage(message!("name the store"))),
    }
}

/// An Archive that may have what is damaged.
pub(super) fn archive_place(
    url: &str,
    options: &cli::NetworkOptions,
) -> Result<Box<dyn CopyPlace>, Failure> {
    let base = BaseUrl::parse(url).map_err(usage)?;
    let source = CopySource::new(&network(options)?, vec![base], Vec::new(), false)
        .map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(Box::new(ArchivePlace::new(source, url)))
}

/// A place that may have what is damaged.
fn copy_place(
    from: &str,
    access: &StoreAccess,
    options: &cli::Repair,
) -> Result<Box<dyn CopyPlace>, Failure> {
    if is_url(from) {
        return archive_place(from, &options.network);
    }
    let other = StoreAccess::at(&place_of(from))?;
    if is_same(&other.store, &access.store) {
        return Err(usage(message!(
            "'{from}' is the store itself; name another place that has copies",
            from
        )));
    }
    Ok(Box::new(StorePlace::new(
        Local::reading(&other.store)?,
        from,
    )))
}

fn mend(
    store: &Local,
    access: &StoreAccess,
    (told, generations): (Option<&StoreAccess>, Option<&[Tree]>),
    names: &[Names],
    places: &mut [Box<dyn CopyPlace>],
    is_json: bool,
) -> Result<Exit, Failure> {
    let progress = ProgressLine::of_items(|| match names.len() {
        0 => store.archive().store().held_items().ok(),
        some => u64::try_from(some).ok(),
    });
    let (mut mended, mut left) = (0, 0);
    let mut proofs: BTreeMap<String, Vec<Names>> = BTreeMap::new();
    let mut report = |finding: &RepairFinding| {
        if finding.is_left() {
            left += 1;
        } else {
            mended += 1;
            if let Some(told) = told {
                tell(told, finding);
            }
            if let Some(from) = finding.from()
                && let Some(names) = names_of(&finding.item)
            {
                let of_place = proofs.entry(from.to_owned()).or_default();
                if of_place.last() != Some(&names) {
                    of_place.push(names);
                }
            }
        }
        let text = if is_json {
            finding_json(finding, store.archive())
        } else {
            finding_line(finding)
        };
        progress.aside(|| put_out(&text))
    };
    let mut repair = Repair {
        store,
        places,
        report: &mut report,
        renewed: &|names, paths| renewed(access, names, paths),
        progress: &mut |items, bytes| progress.at_bytes(items, bytes),
        items: 0,
        generations,
    };
    match names {
        [] => repair.all()?,
        names => names.iter().try_for_each(|names| repair.item(names))?,
    }
    let items = repair.items;
    drop(progress);
    // A generation keeps no ledger.
    for (from, items) in proofs.iter().filter(|_| generations.is_none()) {
        if let Err(failure) = prove(access, from, items) {
            log::warn!(
                "what was mended from '{from}' is not proved: {}",
                failure.message
            );
        }
    }
    say(&if is_json {
        json::line(&json!({ "items": items, "mended": mended, "left": left }))
    } else {
        let line = message!(
            "{items}: {mended}, {left}",
            items = plural!("{count} item", "{count} items", count = items),
            mended = plural!(
                "{count} file mended",
                "{count} files mended",
                count = mended
            ),
            left = plural!("{count} left damaged", "{count} left damaged", count = left)
        );
        format!("{}\n", localized(&line))
    })?;
    Ok(if left > 0 { Exit::Failed } else { Exit::Done })
}

/// Compares items that were mended with the store from which they were; the ledgers of both note it. An Archive compares by its
/// own audits.
fn prove(access: &StoreAccess, from: &str, items: &[Names]) -> Result<(), Failure> {
    if is_url(from) {
        return Ok(());
    }
    let other = StoreAccess::at(&place_of(from))?;
    // The history is told as by an audit.
    let store = Local::reading(&access.store)?;
    let there = Local::reading(&other.store)?;
    let is_backup = there.service().matches(store.service());
    let directory = is_backup.then(|| noted_directory(&other.store));
    let mut audit = Audit {
        store: &store,
        peer: &mut StorePeer::new(there, from, directory),
        report: &mut |_| Ok(()),
        mend: &mut |_, _| Ok(Some(message!("its Archive mends it"))),
        progress: &mut |_, _| (),
        tally: AuditTally::default(),
    };
    Ok(audit.some(items)?)
}

/// Tells the history of a store that a file was mended.
pub(super) fn tell(access: &StoreAccess, finding: &RepairFinding) {
    if !finding.is_left() {
        // Without the path by which the user called the place.
        let source = finding.source.as_deref().unwrap_or_default();
        let said = [finding.code.word(), "from", source].join(" ");
        let note = match &finding.path[..] {
            [] => said,
            path => format!("{}: {said}", shown(path)),
        };
        access.tell(EventKind::Mended, names_of(&finding.item).as_ref(), &note);
    }
}

/// Has the daemon of a mounted store look up names again.
pub(super) fn renewed(access: &StoreAccess, names: &Names, paths: &[Vec<u8>]) {
    let Some(item) = access.path_in_mount(names) else {
        return;
    };
    for path in paths {
        let value = [b"-", &path[..], b"\0"].concat();
        let told = Directory::open(&item)
            .and_then(|item| item.entry(SIDECAR))
            .and_then(|sidecar| {
                let flags = XattrFlags::empty();
                opening::set_attribute(sidecar.as_fd(), CHANGED_BESIDE, &value, flags)
            });
        if let Err(errno) = told {
            log::warn!(
                "{names}: the mount may show what {} was before, until it is mounted again: {errno}",
                shown(path)
            );
        }
    }
}

fn finding_line(finding: &RepairFinding) -> String {
    let path = shown(&joined(finding.item.as_bytes(), &finding.path)).to_string();
    let word = finding.code.word();
    let sentence = with_kept(finding.sentence(), finding.kept.as_deref());
    format!("{word}: {path}: {}\n", localized(&sentence))
}

/// A sentence, with the place of the damaged file that is kept.
pub(super) fn with_kept(sentence: Message, kept: Option<&[u8]>) -> Message {
    match kept {
        Some(kept) => message!(
            "{sentence}; the damaged file is kept as '{kept}'",
            sentence,
            kept = shown(kept)
        ),
        None => sentence,
    }
}

fn finding_json(finding: &RepairFinding, archive: &Archive) -> String {
    let mut object = json::names_at(Some(archive), &finding.item);
    object.insert("code".into(), json!(finding.code.word()));
    object.insert("path".into(), json!(shown(&finding.path)));
    object.insert("kept".into(), json!(finding.kept.as_deref().map(shown)));
    object.insert("sentence".into(), json!(finding.sentence()));
    json::line(&object.into())
}
