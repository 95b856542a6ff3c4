//! `ibifs report`: what a store can show of its preservation, for an auditor.

use serde_json::{Value, json};

use super::access::StoreAccess;
use super::say;
use crate::archive::{Met, PreservationReport, ReportCell};
use crate::command::cli::Report;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::{chosen, localized};
use crate::command::terminal::OneLine;
use crate::http::server::page::alone;
use crate::http::server::page::html::escaped;
use ibi::Timestamp;
use ibi::message::{Localize, Message};
use ibi::{message, plural};

pub(super) fn run(options: &Report) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    let archive = access.read()?;
    let report = archive.preservation()?;
    if options.html {
        return super::put_out(&page(&access.store.display().to_string(), &report))
            .map(|()| Exit::Done)
            .map_err(|error| super::cannot_print(&error));
    }
    say(&if options.output.json {
        let mut object = json::names(&archive.facts().service);
        object.insert("store".into(), json!(json::path(&access.store)));
        object.extend(value(&report));
        json::pretty(&object.into())
    } else {
        let mut text = String::new();
        if !options.ndsa {
            text = format!(
                "{}\n{}\n",
                OneLine(access.store.display()),
                summary(&report)
            );
        }
        text + &table(&report)
    })?;
    Ok(Exit::Done)
}

/// The report as a page.
fn page(store: &str, report: &PreservationReport) -> String {
    let text = |message: &Message| escaped(&localized(message));
    let lines = summary(report);
    let lines = lines
        .lines()
        .map(|line| format!("<li>{}</li>\n", escaped(line)));
    let rows = report.cells.iter().map(|cell| {
        let time = cell.at.as_ref().map(|at| format!(", {}", at.to_rfc3339()));
        let yours = cell.yours.as_ref().map(|yours| {
            let yours = message!("yours to state: {yours}", yours);
            format!("<br/><small>{}</small>", text(&yours))
        });
        format!(
            "<tr><th>{} {}</th><td>{}</td><td>{}{}{}</td><td><code>{}</code></td></tr>\n",
            text(&area(cell)),
            cell.level,
            text(&met(cell.met).1),
            text(&cell.figure),
            time.unwrap_or_default(),
            yours.unwrap_or_default(),
            escaped(cell.command)
        )
    });
    let (lines, rows): (String, String) = (lines.collect(), rows.collect());
    let language = if chosen().is_some() { "pt-BR" } else { "en" };
    let main = format!(
        "<p>{}</p>\n<ul>\n{lines}</ul>\n<table>\n<tbody>\n{rows}</tbody>\n</table>\n",
        report.at.to_rfc3339()
    );
    alone(language, store, &main)
}

/// The time of something that may never have been.
fn time(at: Option<&Timestamp>) -> Message {
    match at {
        Some(at) => Message::foreign(at.to_rfc3339()),
        None => message!("never"),
    }
}

fn summary(report: &PreservationReport) -> String {
    let backup = report.backup.as_ref();
    let drill = backup.and_then(|backup| backup.proof.as_ref());
    let lines = [
        plural!("{count} item", "{count} items", count = report.items),
        plural!(
            "{count} item has fewer proved copies than archive.ibi wants",
            "{count} items have fewer proved copies than archive.ibi wants",
            count = report.short
        ),
        message!(
            "last complete scrub: {time}",
            time = time(report.scrubbed.as_ref())
        ),
        message!(
            "last comparison with a copy elsewhere: {time}",
            time = time(report.audited.as_ref())
        ),
        message!(
            "last backup: {time}",
            time = time(backup.map(|it| &it.made))
        ),
        message!(
            "last proof of a backup: {time}",
            time = time(drill.map(|it| &it.at))
        ),
        message!(
            "last cosignature of the log: {time}",
            time = time(report.cosigned.as_ref())
        ),
    ];
    lines
        .iter()
        .map(|line| format!("{}\n", localized(line)))
        .collect()
}

fn met(met: Met) -> (&'static str, Message) {
    match met {
        Met::Yes => ("met", message!("met")),
        Met::No => ("not-met", message!("not met")),
        Met::Yours => ("yours", message!("yours to state")),
    }
}

fn area(cell: &ReportCell) -> Message {
    match cell.area {
        "storage" => message!("storage"),
        "integrity" => message!("integrity"),
        "control" => message!("control"),
        "metadata" => message!("metadata"),
        _ => message!("content"),
    }
}

/// The levels of the NDSA, a paragraph for each cell.
fn table(report: &PreservationReport) -> String {
    let paragraph = |cell: &ReportCell| {
        let at = cell.at.as_ref().map(|at| format!(", {}", at.to_rfc3339()));
        let head = format!(
            "{} {}: {}",
            localized(&area(cell)),
            cell.level,
            localized(&met(cell.met).1)
        );
        let figure = localized(&cell.figure).to_string() + &at.unwrap_or_default();
        let mut text = format!("{head}\n  {}\n", OneLine(figure));
        if let Some(yours) = &cell.yours {
            let yours = message!("yours to state: {yours}", yours);
            text.push_str(&format!("  {}\n", localized(&yours)));
        }
        text + &format!("  $ {}\n", cell.command)
    };
    report.cells.iter().map(paragraph).collect()
}

fn value(report: &PreservationReport) -> serde_json::Map<String, Value> {
    let time = |at: Option<&Timestamp>| json!(at.map(Timestamp::to_rfc3339));
    let backup = report.backup.as_ref();
    let drill = backup.and_then(|backup| backup.proof.as_ref());
    let cells = report.cells.iter().map(|cell| {
        json!({
            "area": cell.area,
            "level": cell.level,
            "result": met(cell.met).0,
            "figure": cell.figure,
            "time": time(cell.at.as_ref()),
            "command": cell.command,
            "yours": cell.yours.as_ref().map(Localize::message),
        })
    });
    let pairs = [
        ("time", time(Some(&report.at))),
        ("items", json!(report.items)),
        ("short", json!(report.short)),
        ("scrubbed", time(report.scrubbed.as_ref())),
        ("audited", time(report.audited.as_ref())),
        ("backed_up", time(backup.map(|it| &it.made))),
        ("backup_proved", time(drill.map(|it| &it.at))),
        ("cosigned", time(report.cosigned.as_ref())),
        ("events", json!(report.events)),
        ("cells", cells.collect()),
    ];
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
