//! The report of a store on the levels of digital preservation of the NDSA (version 2.0, 2019).
//!
//! A cell of the table has a result for what can be counted here, and names what only the archivist can state.

use super::copies::ItemCopies;
use super::{Archive, ArchiveError};
use crate::archive::log_files::LogReader;
use crate::archive::scrub::{LastScrub, recorded_formats};
use crate::archive::tree::Place;
use crate::formats::copies::BackupNote;
use crate::formats::tlog::checkpoint::seen_at;
use ibi::Timestamp;
use ibi::message;
use ibi::message::Message;

/// The age up to which a scrub counts if `archive.ibi` does not say one, in seconds.
const SCRUBBED: i64 = 90 * 86_400;

/// The areas of the table; each has four levels.
pub const AREAS: [&str; 5] = ["storage", "integrity", "control", "metadata", "content"];

/// The result of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The figure meets the level.
    Yes,
    /// It does not.
    No,
    /// Nothing of it can be counted.
    Yours,
}

/// A cell of the table.
#[derive(Clone, Debug)]
pub struct ReportCell {
    /// One of [`AREAS`].
    pub area: &'static str,
    /// From 1 to 4.
    pub level: u8,
    /// Whether it is met.
    pub met: Met,
    /// The figure that was counted.
    pub figure: Message,
    /// The time of that, if it has one of its own.
    pub at: Option<Timestamp>,
    /// The command that shows it.
    pub command: &'static str,
    /// The statement that the archivist has to add.
    pub yours: Option<Message>,
}

/// The report of a store on its preservation.
#[derive(Clone, Debug)]
pub struct PreservationReport {
    /// The time of the report.
    pub at: Timestamp,
    /// The items that are held, without that of the service.
    pub items: u64,
    /// Those with fewer copies than the policy wants.
    pub short: u64,
    /// When the last scrub of all was completed.
    pub scrubbed: Option<Timestamp>,
    /// The time when an item was last compared with a copy elsewhere.
    pub audited: Option<Timestamp>,
    /// The backup that was made last.
    pub backup: Option<BackupNote>,
    /// When a witness last cosigned the log.
    pub cosigned: Option<Timestamp>,
    /// The events in the log; None without a history.
    pub events: Option<u64>,
    /// The twenty cells, by areas and levels.
    pub cells: Vec<ReportCell>,
}

/// A cell without its place: result, figure, time, command, and what is left to the archivist.
type Row = (
    Met,
    Message,
    Option<Timestamp>,
    &'static str,
    Option<Message>,
);

/// The numbers of items.
#[derive(Default)]
struct ItemCounts {
    all: u64,
    short: u64,
    with_digests: u64,
    with_formats: u64,
    titled: u64,
    copied: u64,
    audited: Option<Timestamp>,
    two_in_two: u64,
    three_in_two: u64,
    three_in_three: u64,
}

impl ItemCounts {
    fn add(&mut self, known: &ItemCopies, has_title: bool, has_formats: bool) {
        let (copies, places) = (known.count.copies, known.count.places);
        let own = known.copies.first();
        let others = known.copies.iter().skip(1);
        let proved = others.filter_map(|copy| copy.proof.as_ref().map(|proof| &proof.at));
        self.audited = proved.chain(&self.audited).max().cloned();
        self.all += 1;
        self.short += u64::from(!known.count.is_enough);
        self.with_digests += u64::from(own.is_some_and(|own| own.proof.is_some()));
        self.titled += u64::from(has_title);
        self.with_formats += u64::from(has_formats);
        self.copied += u64::from(copies >= 2);
        self.two_in_two += u64::from(copies >= 2 && places >= 2);
        self.three_in_two += u64::from(copies >= 3 && places >= 2);
        self.three_in_three += u64::from(copies >= 3 && places >= 3);
    }

    fn are_all(&self, some: u64) -> Met {
        if some == self.all && some > 0 {
            Met::Yes
        } else {
            Met::No
        }
    }

    fn copies(&self, some: u64, copies: u32, places: u32) -> Message {
        message!(
            "{some} of {all} items have {copies} proved copies in {places} places",
            some,
            all = self.all,
            copies,
            places
        )
    }
}

/// Met if it is so, and otherwise not.
fn met(is_so: bool) -> Met {
    if is_so { Met::Yes } else { Met::No }
}

/// Nothing to be counted, if what is to be counted before it is met.
fn yours_after(met: Met) -> Met {
    if met == Met::Yes { Met::Yours } else { met }
}

impl Archive {
    /// Reports what the store can show of its preservation.
    ///
    /// # Errors
    /// The index, the ledger of copies or the log cannot be read.
    pub fn preservation(&self) -> Result<PreservationReport, ArchiveError> {
        let now = self.clock.now();
        let mut counts = ItemCounts::default();
        self.each_copies::<ArchiveError>(|known| {
            let item = self.held(&known.names)?;
            let title = item.map(|item| self.read_as(&|read| read()).title(&item));
            let formats = recorded_formats(&self.tree, Place::of(&known.names).as_str());
            let has_formats = formats.is_ok_and(|formats| !formats.is_empty());
            counts.add(&known, matches!(title, Some(Ok(Some(_)))), has_formats);
            Ok(())
        })?;
        let mut backups = self.backups()?;
        backups.sort_by(|one, other| one.made.cmp(&other.made));
        let scrubbed = LastScrub::open(&self.tree).and_then(|last| last.completed());
        let log = LogReader::open(self.tree.root())?;
        let cosigned = match &log {
            Some(log) => log.witnessed()?.and_then(|(note, _)| {
                let witnesses = self.facts.witnesses.iter();
                let seen = witnesses.filter_map(|(_, key)| seen_at(&note, key).ok());
                seen.max()
            }),
            None => None,
        };
        let instant = |seconds| Timestamp::from_unix(seconds, 0);
        let mut report = PreservationReport {
            items: counts.all,
            short: counts.short,
            scrubbed: scrubbed.map(instant),
            audited: counts.audited.clone(),
            backup: backups.pop(),
            cosigned: cosigned.map(|at| instant(at.cast_signed())),
            events: log.map(|log| log.checkpoint().size),
            at: instant(now.seconds()),
            cells: Vec::new(),
        };
        report.cells = self.cells(&report, &counts);
        Ok(report)
    }

    fn cells(&self, report: &PreservationReport, counts: &ItemCounts) -> Vec<ReportCell> {
        let two = counts.are_all(counts.two_in_two);
        let threats = match self.facts.threats.as_slice() {
            [] => message!("archive.ibi names no threat to its place"),
            words => message!("the threats here: {threats}", threats = words.join(" ")),
        };
        let wanted = self.facts.policy.proved.unwrap_or(SCRUBBED);
        let age = |at: &Timestamp| report.at.seconds().saturating_sub(at.seconds());
        let is_scrubbed = report.scrubbed.as_ref().is_some_and(|at| age(at) <= wanted);
        let scrub = if is_scrubbed {
            message!("all files were compared with their digests")
        } else {
            message!("no scrub of all files was completed in time")
        };
        let backed_up = report.backup.as_ref().map(|backup| backup.made.clone());
        let backup = match &report.backup {
            Some(backup) => message!(
                "index and digests of {items} items are in the backup '{directory}'",
                items = backup.items,
                directory = &backup.directory
            ),
            None => message!("no backup is known"),
        };
        let has_history = self.facts.history && report.events > Some(0);
        let events = match report.events {
            Some(count) => message!("{count} events are in the log", count),
            None => message!("the store keeps no history"),
        };
        let cosigned = match &report.cosigned {
            Some(_) => message!("a witness has cosigned the log"),
            None => message!("no witness has cosigned the log"),
        };
        let titles = message!(
            "{some} of {all} items have a title",
            some = counts.titled,
            all = counts.all
        );
        let formats = message!(
            "{some} of {all} items have formats identified by PRONOM",
            some = counts.with_formats,
            all = counts.all
        );
        let identify = "ibifs scrub STORE --formats fido";
        let elsewhere = message!("that the backup is not where the store is");
        let other_threats = message!(
            "the threats to the other places; how old their storage is and what follows it"
        );
        let mode = self.tree.mode_of(".").unwrap_or_default();
        let copies = "ibifs copies STORE --short";
        let rows: [Row; 20] = [
            (
                two,
                counts.copies(counts.two_in_two, 2, 2),
                None,
                copies,
                Some(message!("on which media they are")),
            ),
            (
                counts.are_all(counts.three_in_two),
                counts.copies(counts.three_in_two, 3, 2),
                None,
                copies,
                Some(message!("what the storage needs in order to work")),
            ),
            (
                yours_after(two),
                threats,
                None,
                copies,
                Some(other_threats.clone()),
            ),
            (
                yours_after(counts.are_all(counts.three_in_three)),
                counts.copies(counts.three_in_three, 3, 3),
                None,
                copies,
                Some(other_threats),
            ),
            (
                counts.are_all(counts.with_digests),
                message!(
                    "{some} of {all} items have recorded digests",
                    some = counts.with_digests,
                    all = counts.all
                ),
                report.scrubbed.clone(),
                "ibifs scrub STORE",
                Some(message!("that what comes in is free of viruses")),
            ),
            (
                met(backed_up.is_some()),
                backup.clone(),
                backed_up.clone(),
                "ibifs copies STORE",
                Some(elsewhere.clone()),
            ),
            (
                met(is_scrubbed),
                scrub,
                report.scrubbed.clone(),
                "ibifs scrub STORE",
                Some(message!("where the reports of scrubs are kept")),
            ),
            (
                counts.are_all(counts.copied),
                message!(
                    "{some} of {all} items have a second proved copy, from which damage can be mended",
                    some = counts.copied,
                    all = counts.all
                ),
                report.audited.clone(),
                "ibifs audit STORE --with PLACE",
                Some(message!("that damaged files are mended")),
            ),
            (
                Met::Yours,
                message!(
                    "the directory of the store has the mode {mode}",
                    mode = format!("{mode:04o}")
                ),
                None,
                "ibifs fsck STORE",
                Some(message!("who should read, write and remove")),
            ),
            (
                Met::Yours,
                message!(
                    "owners, modes and access control lists of the files decide, and hold in every way to them"
                ),
                None,
                "getfacl -R MNT",
                Some(message!("the list of who they are, and why")),
            ),
            (
                met(has_history),
                events.clone(),
                None,
                "ibifs history STORE",
                None,
            ),
            (
                yours_after(met(has_history)),
                cosigned,
                report.cosigned.clone(),
                "ibifs cosign --store STORE",
                Some(message!("who reads the log, and when")),
            ),
            (
                met(backed_up.is_some()),
                backup,
                backed_up,
                "ibifs ls STORE",
                Some(elsewhere),
            ),
            (
                counts.are_all(counts.titled),
                titles.clone(),
                None,
                "ibifs ls STORE --titles",
                Some(message!("what else must be known of an item")),
            ),
            (
                Met::Yours,
                message!("descriptions are Dublin Core, and checked"),
                None,
                "ibifs fsck STORE",
                Some(message!("which standards the descriptions must meet")),
            ),
            (met(has_history), events, None, "ibifs history STORE", None),
            (
                counts.are_all(counts.with_formats),
                formats.clone(),
                None,
                identify,
                None,
            ),
            (
                Met::Yours,
                formats,
                None,
                identify,
                Some(message!(
                    "which formats depositors are asked for, and that they are what they seem"
                )),
            ),
            (
                Met::Yours,
                message!("nothing is known of the obsolescence of formats"),
                None,
                identify,
                Some(message!("which formats become obsolete")),
            ),
            (
                Met::Yours,
                message!("a migrated item is a new edition of the former one, and both stay"),
                None,
                "ibifs show ITEM",
                Some(message!("which items are migrated, and how")),
            ),
        ];
        let places = AREAS
            .iter()
            .flat_map(|area| (1..=4).map(move |level| (*area, level)));
        let cell = |((area, level), (met, figure, at, command, yours))| ReportCell {
            area,
            level,
            met,
            figure,
            at,
            command,
            yours,
        };
        places.zip(rows).map(cell).collect()
    }
}
