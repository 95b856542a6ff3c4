//! `ibifs scrub`: its arguments and its output.

use serde_json::{Map, Value, json};

use super::access::{self, StoreAccess};
use super::say;
use crate::archive::scrub::{Scrub, ScrubFinding, ScrubOptions, ScrubTally};
use crate::archive::tree::{Place, Tree, joined};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::fixity::shown;
use crate::formats::item::Names;
use ibi::Ibi;
use ibi::{message, plural};

pub(super) fn run(options: &cli::Scrub) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    let tree = Tree::open(&access.store).map_err(crate::archive::ArchiveError::from)?;
    let places = options
        .items
        .iter()
        .map(|text| place(&access, text))
        .collect::<Result<Vec<_>, _>>()?;
    let scrub_options = ScrubOptions {
        accept: options.accept,
        dry_run: options.dry_run,
        restart: options.restart,
        part: options.part,
        rate: options.rate,
    };
    let progress = ProgressLine::of_items(|| match places.len() {
        0 => access.read().ok()?.store().held_items().ok(),
        some => u64::try_from(some).ok(),
    });
    let mut report = |finding: &ScrubFinding| {
        let text = if options.output.json {
            finding_json(finding)
        } else {
            finding_line(finding)
        };
        progress.aside(|| super::put_out(&text))
    };
    let mut count = |items, bytes| progress.at_bytes(items, bytes);
    let scrub = Scrub::new(&tree, scrub_options, &mut report, &mut count)?;
    let tally = if places.is_empty() {
        if let Some(last) = scrub.goes_on_after() {
            eprintln!(
                "ibifs: {}",
                localized(&message!("continuing after {last}", last))
            );
        }
        scrub.all()?
    } else {
        scrub.some(&places)?
    };
    drop(progress);
    say(&if options.output.json {
        tally_json(&tally)
    } else {
        tally_line(&tally, options.dry_run)
    })?;
    Ok(if tally.is_wrong {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// The place of an item that a user named. An item that is not in the index may be in the tree.
fn place(access: &StoreAccess, text: &str) -> Result<Place, Failure> {
    match (access::find(text, Some(&access.store)), Ibi::parse(text)) {
        (Ok(named), _) if named.access.store != access.store => Err(Failure::new(
            Exit::NotFound,
            message!(
                "'{text}' is in another store, '{store}'",
                text,
                store = named.access.store.display()
            ),
        )),
        (Ok(named), _) => Ok(Place::of(&named.names)),
        (Err(_), Ok(ibi)) => Ok(Place::of(&Names::from(ibi))),
        (Err(failure), Err(_)) => Err(failure),
    }
}

fn finding_line(finding: &ScrubFinding) -> String {
    let path = joined(finding.item.as_bytes(), &finding.path);
    let (word, sentence) = (finding.code.word(), finding.sentence());
    let sentence = if finding.accepted {
        message!("{sentence} (accepted)", sentence)
    } else {
        sentence
    };
    format!("{word}: {}: {}\n", shown(&path), localized(&sentence))
}

fn finding_json(finding: &ScrubFinding) -> String {
    let (_, name) = finding.item.split_once('/').unwrap_or_default();
    let mut object = json::names_in(name);
    object.insert("code".into(), json!(finding.code.word()));
    object.insert("path".into(), json!(shown(&finding.path)));
    object.insert("sentence".into(), json!(finding.sentence()));
    object.insert("accepted".into(), json!(finding.accepted));
    json::line(&object.into())
}

fn tally_line(tally: &ScrubTally, dry_run: bool) -> String {
    let mut line = message!(
        "{items}, {files}, {bytes}",
        items = plural!("{count} item", "{count} items", count = tally.items),
        files = plural!("{count} file", "{count} files", count = tally.files),
        bytes = plural!("{count} byte", "{count} bytes", count = tally.bytes)
    );
    for (code, count) in &tally.found {
        let code = code.word();
        line = message!("{line}, {count} {code}", line, count, code);
    }
    if tally.recorded > 0 {
        let recorded = if dry_run {
            plural!(
                "{count} item not recorded yet",
                "{count} items not recorded yet",
                count = tally.recorded
            )
        } else {
            plural!(
                "{count} item recorded for the first time",
                "{count} items recorded for the first time",
                count = tally.recorded
            )
        };
        line = message!("{line}, {recorded}", line, recorded);
    }
    format!("{}\n", localized(&line))
}

fn tally_json(tally: &ScrubTally) -> String {
    let found: Map<String, Value> = tally
        .found
        .iter()
        .map(|(code, count)| (code.word().to_owned(), json!(count)))
        .collect();
    let value = json!({
        "items": tally.items,
        "files": tally.files,
        "bytes": tally.bytes,
        "recorded": tally.recorded,
        "found": found,
    });
    json::line(&value)
}
