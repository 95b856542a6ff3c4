//! `ibifs import` of a table: the whole table is checked before anything is written.

use std::path::Path;

use std::io::Read;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::json;

use crate::archive::tree::SIDECAR;
use crate::archive::{Archive, Planned, Process};
use crate::command::cli;
use crate::command::commands::access::StoreAccess;
use crate::command::commands::say;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::formats::table::{self, RowError};
use crate::os::directory::Directory;
use crate::os::opening::{self, NOT_REGULAR};
use crate::os::writing;
use ibi::message::Localize;
use ibi::{message, plural};

/// A larger file is not a table: a table of all known items is smaller.
const LARGEST: u64 = 1 << 30;

pub(super) fn run(
    options: &cli::Import,
    access: &StoreAccess,
    source: &Path,
) -> Result<Exit, Failure> {
    let shown = source.display();
    let failed = |error: &dyn Localize| {
        let path = &shown;
        Failure::new(Exit::Failed, message!("'{path}': {error}", path, error))
    };
    let unfit = message!("neither a directory nor a table; name one of the two");
    let opened = opening::regular(source, OFlags::empty());
    let file = opened.map_err(|errno| match errno {
        NOT_REGULAR => failed(&unfit),
        errno => failed(&std::io::Error::from(errno)),
    })?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    if read.map_err(|error| failed(&error))? as u64 > LARGEST {
        return Err(failed(&unfit));
    }
    let table = table::parse(&bytes);
    let rows = table.rows.len() + table.faults.len();
    let archive = access.read()?;
    let (planned, found) = archive
        .depositor(&Process)
        .plan(&table.rows, options.replace)?;
    let mut faults = table.faults;
    faults.extend(found);
    faults.sort_by_key(|fault| fault.line);
    for fault in &faults {
        say(&fault_line(fault, options.output.json))?;
    }
    let changes: Vec<&Planned> = planned
        .iter()
        .filter(|plan| !plan.changed.is_empty())
        .collect();
    if options.dry_run {
        for plan in &changes {
            say(&plan_line(plan, options.output.json))?;
        }
    }
    let is_done = faults.is_empty() && !options.dry_run;
    if is_done {
        write(access, &archive, &changes)?;
    }
    let tally = TableCounts {
        rows,
        faults: faults.len(),
        changed: changes.len(),
        unchanged: planned.len() - changes.len(),
        is_done,
    };
    say(&tally.text(options.output.json))?;
    Ok(if faults.is_empty() {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Writes the sidecars, through the mount if the store is mounted, as an editor would.
fn write(access: &StoreAccess, archive: &Archive, changes: &[&Planned]) -> Result<(), Failure> {
    let at = |plan: &Planned, failure: Failure| {
        let left = message!(
            "the rows before it are written; run the same command again when it is corrected"
        );
        let what = plan.names.preferred();
        let place = message!("line {line}: {what}", line = plan.line, what);
        failure.and(&left).before(&place)
    };
    if access.mount_point.is_some() {
        for plan in changes {
            through_mount(access, archive, plan).map_err(|failure| at(plan, failure))?;
        }
        return Ok(());
    }
    if changes.is_empty() {
        return Ok(());
    }
    let mut failure = None;
    access.change(|archive| {
        for plan in changes {
            if let Err(error) = archive.edit(&Process, |it| {
                it.replace_sidecar(&plan.names, &plan.sidecar)
            }) {
                failure = Some(at(plan, error.into()));
                break;
            }
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), Err)
}

fn through_mount(access: &StoreAccess, archive: &Archive, plan: &Planned) -> Result<(), Failure> {
    let Some(item) = access.path_in_mount(&plan.names) else {
        return Ok(());
    };
    replace_sidecar(&item, &plan.sidecar)
        .map_err(|errno| Failure::new(Exit::Failed, std::io::Error::from(errno).message()))?;
    let known = archive.store().accepted_sidecar(&plan.names)?;
    if known.as_ref() == Some(&plan.sidecar) {
        Ok(())
    } else {
        Err(Failure::new(
            Exit::Refused,
            message!("its new sidecar was not accepted; 'ibifs fsck' shows why"),
        ))
    }
}

/// Replaces the sidecar of an item in the mount, whose directory another user may write. It keeps owner and mode: what its
/// owner has written into it is not said by the user who imports.
fn replace_sidecar(item: &Path, sidecar: &[u8]) -> Result<(), Errno> {
    let item = Directory::open(item)?;
    let (stat, mode) = match item.entry(SIDECAR) {
        Ok(old) => (*old.stat(), old.stat().st_mode),
        // It is one of the owner of the item.
        Err(Errno::NOENT) => (item.stat()?, 0o644),
        Err(errno) => return Err(errno),
    };
    let (name, file) = item.create_random(&format!("{SIDECAR}.new-"), 0o600)?;
    let written = writing::write_all(&file, sidecar)
        .and_then(|()| writing::give(&file, (stat.st_uid, stat.st_gid)))
        // After the owner, whose change may remove bits.
        .and_then(|()| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777)))
        .and_then(|()| item.rename_over(&name, &item, SIDECAR));
    if written.is_err() {
        let _ = item.remove_file(&name);
    }
    written
}

fn fault_line(fault: &RowError, is_json: bool) -> String {
    if is_json {
        json::line(&json!({ "line": fault.line, "sentence": fault.what }))
    } else {
        format!("{}\n", crate::command::terminal::OneLine(localized(fault)))
    }
}

fn plan_line(plan: &Planned, is_json: bool) -> String {
    if is_json {
        let mut object = json::names(&plan.names);
        object.insert("line".into(), json!(plan.line));
        object.insert("pairs".into(), json!(plan.changed));
        json::line(&object.into())
    } else {
        let item = plan.names.preferred();
        let line = message!(
            "line {line}: {item}: {pairs}",
            line = plan.line,
            item,
            pairs = plan.changed.join(", ")
        );
        format!("{}\n", localized(&line))
    }
}

/// The result of a table.
struct TableCounts {
    rows: usize,
    faults: usize,
    changed: usize,
    unchanged: usize,
    is_done: bool,
}

impl TableCounts {
    fn text(&self, is_json: bool) -> String {
        let TableCounts {
            rows,
            faults,
            changed,
            unchanged,
            is_done,
        } = self;
        if is_json {
            let value = json!({
                "rows": rows,
                "faults": faults,
                "changed": changed,
                "unchanged": unchanged,
                "written": is_done,
            });
            return json::line(&value);
        }
        let rows = plural!("{count} row", "{count} rows", count = *rows);
        let unchanged = *unchanged;
        let line = match (*faults, is_done) {
            (0, true) => message!(
                "{rows}: {changed}, {unchanged}",
                rows,
                changed = plural!(
                    "{count} item changed",
                    "{count} items changed",
                    count = *changed
                ),
                unchanged = plural!("{count} unchanged", "{count} unchanged", count = unchanged)
            ),
            (0, false) => message!(
                "{rows}: {changed}, {unchanged} not",
                rows,
                changed = plural!(
                    "{count} item would be changed",
                    "{count} items would be changed",
                    count = *changed
                ),
                unchanged
            ),
            _ => message!(
                "{rows}, {faults}: nothing was changed",
                rows,
                faults = plural!(
                    "{count} of them invalid",
                    "{count} of them invalid",
                    count = *faults
                )
            ),
        };
        format!("{}\n", localized(&line))
    }
}
