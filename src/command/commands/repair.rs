//! `ibifs repair`: its arguments and its output.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::XattrFlags;
use serde_json::json;

use super::access::StoreAccess;
use super::scrub::{item_in, names_of};
use super::transfer::{changing, is_same};
use super::{network, put_out, say, usage};
use crate::archive::repair::{CopyPlace, Repair, RepairFinding, StorePlace};
use crate::archive::transfer::Local;
use crate::archive::tree::{SIDECAR, joined};
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
    let store = changing(&access)?;
    let done = mend(&store, &access, &names, &mut places, options.output.json);
    store.close();
    done
}

/// The store, which is the first argument without --store, and the items.
fn store_and_items(options: &cli::Repair) -> Result<(StoreAccess, &[String]), Failure> {
    match (&options.store, options.paths.split_first()) {
        (Some(store), _) => Ok((StoreAccess::at(store)?, &options.paths)),
        (None, Some((store, items))) => Ok((StoreAccess::at(Path::new(store))?, items)),
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
    let other = StoreAccess::at(Path::new(from))?;
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
    names: &[Names],
    places: &mut [Box<dyn CopyPlace>],
    is_json: bool,
) -> Result<Exit, Failure> {
    let progress = ProgressLine::of_items(|| match names.len() {
        0 => store.archive().store().held_items().ok(),
        some => u64::try_from(some).ok(),
    });
    let (mut mended, mut left) = (0, 0);
    let mut report = |finding: &RepairFinding| {
        if finding.is_left() {
            left += 1;
        } else {
            mended += 1;
            tell(access, finding);
        }
        let text = if is_json {
            finding_json(finding)
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
    };
    match names {
        [] => repair.all()?,
        names => names.iter().try_for_each(|names| repair.item(names))?,
    }
    let items = repair.items;
    drop(progress);
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

/// Tells the history of a store that a file was mended.
pub(super) fn tell(access: &StoreAccess, finding: &RepairFinding) {
    if !finding.is_left() {
        let note = format!("{}: {}", shown(&finding.path), finding.code);
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

fn finding_json(finding: &RepairFinding) -> String {
    let (_, name) = finding.item.split_once('/').unwrap_or_default();
    let mut object = json::names_in(name);
    object.insert("code".into(), json!(finding.code.word()));
    object.insert("path".into(), json!(shown(&finding.path)));
    object.insert("kept".into(), json!(finding.kept.as_deref().map(shown)));
    object.insert("sentence".into(), json!(finding.sentence()));
    json::line(&object.into())
}
