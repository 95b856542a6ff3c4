//! The outcome of each item that was copied, transferred or claimed.

use serde_json::{Value, json};

use crate::archive::transfer::{Moved, NotSent, Skip, TransferError, TransferOutcome, Way};
use crate::command::commands::{cannot_print, put_out, say};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::item::Names;
use ibi::{message, plural};

/// Counts of the outcomes.
#[derive(Default)]
struct OutcomeCounts {
    done: u64,
    unchanged: u64,
    skipped: u64,
    files: u64,
    bytes: u64,
    /// The number of the skipped ones that no Archive has.
    not_found: u64,
    is_wrong: bool,
    was_sent: bool,
    was_fetched: bool,
}

/// Acts on the first of some items.
pub(super) fn one_by_one(
    names: &[Names],
    act: impl FnMut(&Names) -> Result<TransferOutcome, TransferError>,
) -> Vec<Result<TransferOutcome, TransferError>> {
    names.first().map(act).into_iter().collect()
}

/// Acts on all items and prints the outcome of each. `act` gets the items that are left, acts on at least the
/// first of them, and returns their outcomes.
pub(super) fn each_item(
    names: &[Names],
    is_json: bool,
    mut act: impl FnMut(&[Names]) -> Vec<Result<TransferOutcome, TransferError>>,
) -> Result<Exit, Failure> {
    let mut report = OutcomeReport::new(names.len(), is_json);
    let mut count = 0;
    while let Some(left) = names.get(count..).filter(|left| !left.is_empty()) {
        let begun = count;
        for (names, outcome) in left.iter().zip(act(left)) {
            report.add(names, outcome)?;
            count += 1;
        }
        if count == begun {
            let lost = message!("a thread ended early; run the command again");
            return Err(Failure::new(Exit::Failed, lost));
        }
    }
    report.end()
}

/// Prints the outcome of each item, and the sums at the end.
pub(super) struct OutcomeReport {
    tally: OutcomeCounts,
    progress: ProgressLine,
    is_json: bool,
    count: u64,
}

impl OutcomeReport {
    /// The report of so many items.
    pub(super) fn new(items: usize, is_json: bool) -> OutcomeReport {
        OutcomeReport {
            tally: OutcomeCounts::default(),
            progress: ProgressLine::of_items(|| Some(items as u64)),
            is_json,
            count: 0,
        }
    }

    /// Prints the outcome of an item. Fails with what concerns more than it.
    pub(super) fn add(
        &mut self,
        names: &Names,
        outcome: Result<TransferOutcome, TransferError>,
    ) -> Result<(), Failure> {
        let outcome = outcome.map_err(|error| Failure::from(error).before(&names.preferred()))?;
        self.tally.add(&outcome);
        let text = if self.is_json {
            json::line(&outcome_json(names, &outcome))
        } else {
            outcome_line(names, &outcome)
        };
        self.progress
            .aside(|| put_out(&text))
            .map_err(|error| cannot_print(&error))?;
        if let TransferOutcome::Copied(moved) | TransferOutcome::HandedOver(moved) = &outcome
            && let Some(what) = moved.not_sent.sentence()
        {
            let name = names.preferred();
            let line = localized(&message!("not sent over HTTP: {what}", what)).to_string();
            self.progress.aside(|| eprintln!("ibifs: {name}: {line}"));
        }
        if let TransferOutcome::Copied(Moved {
            mended: count @ 1..,
            ..
        }) = &outcome
        {
            let line = plural!(
                "{count} file that was damaged at the destination was copied again",
                "{count} files that were damaged at the destination were copied again",
                count = *count
            );
            let (name, line) = (names.preferred(), localized(&line));
            self.progress.aside(|| eprintln!("ibifs: {name}: {line}"));
        }
        self.count += 1;
        self.progress.at(self.count);
        Ok(())
    }

    /// Prints the sums.
    pub(super) fn end(self) -> Result<Exit, Failure> {
        let tally = self.tally;
        drop(self.progress);
        say(&if self.is_json {
            tally.json()
        } else {
            tally.line()
        })?;
        if tally.was_sent {
            let owners = message!(
                "owners and groups are not sent over HTTP: there everything belongs to the user of the other Archive"
            );
            eprintln!("ibifs: {}", localized(&owners));
        }
        if tally.was_fetched {
            let fetched = message!(
                "of what is fetched over HTTP, owners, access control lists, extended attributes, set-user-ID and set-group-ID bits do not arrive, nor what the public may not read"
            );
            eprintln!("ibifs: {}", localized(&fetched));
        }
        let done = tally.done + tally.unchanged;
        Ok(match (tally.is_wrong, tally.skipped, done) {
            // No Archive has any of them.
            (true, skipped, 0) if tally.not_found == skipped => Exit::NotFound,
            (true, ..) => Exit::Failed,
            // No item was copied, transferred or claimed.
            (false, 1.., 0) => Exit::Refused,
            _ => Exit::Done,
        })
    }
}

impl OutcomeCounts {
    fn add(&mut self, outcome: &TransferOutcome) {
        match outcome {
            TransferOutcome::Copied(moved) | TransferOutcome::HandedOver(moved) => {
                self.done += 1;
                self.files += moved.files;
                self.bytes += moved.bytes;
                let went = moved.files > 0;
                self.was_sent |= went && moved.not_sent.way == Way::Sent;
                self.was_fetched |= went && moved.not_sent.way == Way::Fetched;
            }
            TransferOutcome::Claimed { .. } | TransferOutcome::Cancelled { .. } => self.done += 1,
            TransferOutcome::Unchanged => self.unchanged += 1,
            TransferOutcome::Skipped(skip) => {
                self.skipped += 1;
                self.is_wrong |= !skip.is_expected();
                self.not_found += u64::from(matches!(skip, Skip::NotFound));
            }
        }
    }

    fn line(&self) -> String {
        let line = message!(
            "{items}, {files}, {bytes}; {unchanged}, {skipped}",
            items = plural!("{count} item", "{count} items", count = self.done),
            files = plural!("{count} file", "{count} files", count = self.files),
            bytes = plural!("{count} byte", "{count} bytes", count = self.bytes),
            unchanged = plural!(
                "{count} unchanged",
                "{count} unchanged",
                count = self.unchanged
            ),
            skipped = plural!("{count} skipped", "{count} skipped", count = self.skipped)
        );
        format!("{}\n", localized(&line))
    }

    fn json(&self) -> String {
        json::line(&json!({
            "items": self.done,
            "files": self.files,
            "bytes": self.bytes,
            "unchanged": self.unchanged,
            "skipped": self.skipped,
        }))
    }
}

fn outcome_line(names: &Names, outcome: &TransferOutcome) -> String {
    let name = names.preferred();
    match outcome {
        TransferOutcome::Copied(_) => format!("copied: {name}\n"),
        TransferOutcome::HandedOver(_) => format!("handed-over: {name}\n"),
        TransferOutcome::Claimed { .. } => format!("claimed: {name}\n"),
        TransferOutcome::Cancelled { .. } => format!("cancelled: {name}\n"),
        TransferOutcome::Unchanged => format!("unchanged: {name}\n"),
        TransferOutcome::Skipped(skip) => {
            format!("skipped: {name}: {}: {}\n", skip.word(), localized(skip))
        }
    }
}

/// Returns what was not sent over HTTP, null where nothing is known of it.
fn not_sent_json(not_sent: &NotSent) -> Value {
    match not_sent.way {
        Way::Local | Way::Fetched => Value::Null,
        Way::Sent => json!({
            "owners": not_sent.owners, "access_lists": not_sent.access_lists,
            "set_ids": not_sent.set_ids, "attributes": not_sent.attributes,
        }),
    }
}

fn outcome_json(names: &Names, outcome: &TransferOutcome) -> Value {
    let mut object = json::names(names);
    let more = match outcome {
        TransferOutcome::Copied(moved) => json!({
            "outcome": "copied", "files": moved.files, "bytes": moved.bytes, "mended": moved.mended,
            "not_sent": not_sent_json(&moved.not_sent),
        }),
        TransferOutcome::HandedOver(moved) => json!({
            "outcome": "handed-over", "files": moved.files, "bytes": moved.bytes,
            "not_sent": not_sent_json(&moved.not_sent),
        }),
        TransferOutcome::Claimed { is_remembered } => json!({
            "outcome": "claimed", "noted_there": is_remembered,
        }),
        TransferOutcome::Cancelled { is_safe } => json!({
            "outcome": "cancelled", "two_possible": !is_safe,
        }),
        TransferOutcome::Unchanged => json!({ "outcome": "unchanged" }),
        TransferOutcome::Skipped(skip) => json!({
            "outcome": "skipped", "code": skip.word(), "sentence": skip.to_string(),
        }),
    };
    if let Value::Object(more) = more {
        object.extend(more);
    }
    object.into()
}
