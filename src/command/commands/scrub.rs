//! `ibifs scrub`: its arguments and its output.

use std::cell::OnceCell;

use serde_json::{Map, Value, json};

use super::access::{self, StoreAccess};
use super::say;
use crate::archive::scrub::{
    FormatTool, Scrub, ScrubFinding, ScrubOptions, ScrubTally, manifest_digest, scrubbed_at,
};
use crate::archive::store::By;
use crate::archive::tree::{Place, Tree, joined};
use crate::archive::{Archive, ArchiveError, keeps_history};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::fixity::{Digest, shown};
use crate::formats::history::{EventKind, Told};
use crate::formats::item::Names;
use ibi::message::Message;
use ibi::{Ibi, Timestamp};
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
        formats: options
            .formats
            .as_deref()
            .map(|program| FormatTool::find(program, options.signatures.as_deref()))
            .transpose()
            .map_err(|why| Failure::new(Exit::Usage, why))?,
    };
    let progress = ProgressLine::of_items(|| match places.len() {
        0 => access.read().ok()?.store().held_items().ok(),
        some => u64::try_from(some).ok(),
    });
    let is_told = !options.dry_run && keeps_history(&tree);
    let index = OnceCell::new();
    let index = || index.get_or_init(|| access.read().ok()).as_ref();
    let mut telling = Telling {
        access: &access,
        index: &index,
        named: places.clone(),
        tree: &tree,
        item: String::new(),
        before: None,
        manifest: None,
        wrong: Vec::new(),
        changed: Vec::new(),
        is_accepted: false,
    };
    let mut report = |finding: &ScrubFinding| {
        if is_told {
            telling.found(finding);
        }
        let text = if options.output.json {
            finding_json(finding, index())
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
        scrub.all()
    } else {
        scrub.some(&places)
    };
    drop(progress);
    if is_told {
        telling.ended(tally.as_ref().ok(), places.is_empty());
    }
    let tally = tally?;
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

/// Tells the history of the store what a scrub has found.
struct Telling<'a> {
    access: &'a StoreAccess,
    tree: &'a Tree,
    /// The index, if it can be read: a scrub needs none.
    index: &'a dyn Fn() -> Option<&'a Archive>,
    /// The items that were named, and are not known to be wrong.
    named: Vec<Place>,
    /// The place of the last item with findings, and when it was scrubbed before.
    item: String,
    before: Option<Timestamp>,
    /// The digest of its manifest at that time.
    manifest: Option<Digest>,
    /// The faults of its files, and the changes.
    wrong: Vec<String>,
    changed: Vec<String>,
    is_accepted: bool,
}

impl Telling<'_> {
    fn found(&mut self, finding: &ScrubFinding) {
        if finding.item != self.item {
            self.end_item();
            self.item.clone_from(&finding.item);
            // Before it is recorded that it was scrubbed now.
            let before = scrubbed_at(self.tree, &self.item);
            self.before = before.map(|(seconds, rest)| Timestamp::from_unix(seconds, rest));
            self.manifest = manifest_digest(self.tree, &self.item);
            self.is_accepted = true;
        }
        let note = format!("{} {}", finding.code.word(), shown(&finding.path));
        if finding.code.is_wrong() {
            self.named.retain(|place| place.as_str() != finding.item);
            self.is_accepted &= finding.accepted;
            self.wrong.push(note);
        } else if finding.code.is_change() {
            self.changed.push(note);
        }
    }

    fn end_item(&mut self) {
        let wrong = std::mem::take(&mut self.wrong).join(", ");
        let changed = std::mem::take(&mut self.changed).join(", ");
        let Some(names) = names_of(&self.item) else {
            return;
        };
        if !wrong.is_empty() {
            self.tell_wrong(&names, &wrong);
        }
        if !changed.is_empty() {
            self.tell_change(&names, &changed);
        }
    }

    /// Tells what is wrong with an item, unless that was the last that was told of its files.
    fn tell_wrong(&self, names: &Names, note: &str) {
        if self.is_accepted {
            let note = format!("accepted: {note}");
            return self.access.tell(EventKind::Scrubbed, Some(names), &note);
        }
        let mut last = None;
        if let Some(index) = (self.index)() {
            // It is told again where it is not known.
            let _ = index.each_event(Some(names), |event| {
                let told = Told::parse(&event.line);
                let of_files = told.filter(|it| it.kind().is_some_and(EventKind::is_of_fixity));
                last = of_files.or(last.take());
                Ok::<(), ArchiveError>(())
            });
        }
        let is_told = |told: Told| told.kind() == Some(EventKind::Damaged) && told.note == note;
        if !last.is_some_and(is_told) {
            self.access.tell(EventKind::Damaged, Some(names), note);
        }
    }

    /// Tells of a change since the last scrub: the digests of the manifest before and after it, and which it is if no event
    /// tells it, as one beside the mount. The daemon of a mounted store may still tell it.
    fn tell_change(&self, names: &Names, note: &str) {
        let now = manifest_digest(self.tree, &self.item);
        let manifests = self.manifest.zip(now).filter(|(before, now)| before != now);
        let manifests = manifests
            .map(|(before, now)| message!("manifest {before} -> {now}", before, now).to_string());
        if self.access.mount_point.is_some() {
            if let Some(note) = manifests {
                self.access.tell(EventKind::Scrubbed, Some(names), &note);
            }
            return;
        }
        let known = (self.index)().zip(self.before.as_ref());
        let is_untold = known.map(|(index, since)| index.is_untold(names, since));
        if matches!(is_untold, Some(Ok(true))) {
            let note = message!("not told before: {note}", note);
            let notes = manifests.into_iter().chain([note.to_string()]);
            let note = notes.collect::<Vec<_>>().join("; ");
            self.access
                .tell_by(By::Program, EventKind::Changed, Some(names), &note);
        } else if let Some(note) = manifests {
            self.access.tell(EventKind::Scrubbed, Some(names), &note);
        }
    }

    /// Tells of the items that were named, or of the whole pass.
    fn ended(&mut self, tally: Option<&ScrubTally>, is_pass: bool) {
        self.end_item();
        let Some(tally) = tally else {
            return;
        };
        for place in &self.named {
            let names = names_of(place.as_str());
            self.access.tell(EventKind::Scrubbed, names.as_ref(), "");
        }
        if is_pass {
            let note = counts(tally).to_string();
            self.access.tell(EventKind::Scrubbed, None, &note);
        }
    }
}

/// The names of the item at a place.
pub(super) fn names_of(place: &str) -> Option<Names> {
    let (_, name) = place.split_once('/')?;
    Ibi::parse(name).ok().map(Names::from)
}

/// The place of an item that a user named. An item that is not in the index may be in the tree.
fn place(access: &StoreAccess, text: &str) -> Result<Place, Failure> {
    Ok(Place::of(&item_in(access, text)?))
}

/// The same, by its names.
pub(super) fn item_in(access: &StoreAccess, text: &str) -> Result<Names, Failure> {
    match (access::find(text, Some(&access.store)), Ibi::parse(text)) {
        (Ok(named), _) if named.access.store != access.store => Err(Failure::new(
            Exit::NotFound,
            message!(
                "'{text}' is in another store, '{store}'",
                text,
                store = named.access.store.display()
            ),
        )),
        (Ok(named), _) => Ok(named.names),
        (Err(_), Ok(ibi)) => Ok(Names::from(ibi)),
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

fn finding_json(finding: &ScrubFinding, index: Option<&Archive>) -> String {
    let mut object = json::names_at(index, &finding.item);
    object.insert("code".into(), json!(finding.code.word()));
    object.insert("path".into(), json!(shown(&finding.path)));
    object.insert("sentence".into(), json!(finding.sentence()));
    object.insert("accepted".into(), json!(finding.accepted));
    json::line(&object.into())
}

/// The counts of files and findings.
fn counts(tally: &ScrubTally) -> Message {
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
    line
}

fn tally_line(tally: &ScrubTally, dry_run: bool) -> String {
    let mut line = counts(tally);
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
    if tally.identified > 0 {
        let identified = plural!(
            "format of {count} file identified",
            "formats of {count} files identified",
            count = tally.identified
        );
        line = message!("{line}, {identified}", line, identified);
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
        "identified": tally.identified,
        "found": found,
    });
    json::line(&value)
}
