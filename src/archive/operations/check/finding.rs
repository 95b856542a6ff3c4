//! The findings of a check: one table of codes, which ibifs-fsck(1) also lists.

use std::collections::BTreeSet;

use crate::archive::finding::{Severity, findings, with_detail};
use crate::formats::item::Names;
use ibi::message::{Localize, Message};

/// Called now and then with the number of items read so far.
pub type ItemProgress<'a> = dyn FnMut(u64) + 'a;

// A finding that depositors can cause alone, with their own items, is a notice: it does not make the check of all fail.
findings! {
    const ALL:
    /// The stable code of a kind of finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum CheckCode {
        FactsMissing "facts-missing" Error repaired
            "archive.ibi is missing"
            "--repair writes what the index keeps of it; otherwise restore it from a backup"
        FactsBroken "facts-broken" Error repaired
            "archive.ibi cannot be read"
            "--repair sets it aside as archive.ibi.broken-1 and writes what the index keeps of it"
        FactsChanged "facts-changed" Error reported
            "archive.ibi is not what it was when the store was last used"
            "restore it, or run 'ibifs reindex' if the change is intended"
        IndexMissing "index-missing" Error repaired
            "the index is missing"
            "--repair rebuilds it from the tree"
        IndexDamaged "index-damaged" Error repaired
            "the index is damaged"
            "--repair sets it aside as relations.sqlite3.broken-1 and rebuilds it from the tree"
        IndexNewer "index-newer" Error reported
            "the index was written by a newer ibifs"
            "use a newer ibifs"
        IndexOlder "index-older" Notice repaired
            "the index was written by an older ibifs"
            "the next mount or --repair brings it up to date"
        AreaMissing "area-missing" Error reported
            "a directory of the store is missing, and the index has items in it"
            "restore it, or mount the filesystem that belongs there; nothing is repaired until then"
        Unreadable "unreadable" Error reported
            "something in the tree cannot be read"
            "check the disk and the permissions; nothing is repaired until then"
        NotIndexed "not-indexed" Error repaired
            "an item of the tree is missing in the index"
            "--repair or 'ibifs reindex' adds it"
        IndexDiffers "index-differs" Error repaired
            "tree and index disagree"
            "the tree is authoritative: --repair or 'ibifs reindex' rebuilds the index"
        NotInTree "not-in-tree" Error repaired
            "an item of the index is neither in the tree nor among the removed"
            "restore it from a backup; --repair records it as removed"
        MintUnfinished "mint-unfinished" Notice repaired
            "an item was minted before a crash and is not in the tree yet"
            "the next mount or --repair creates its directory"
        BrokenSidecar "broken-sidecar" Error repaired
            "the sidecar is not valid"
            "--repair sets it aside as .ibi.broken-1 and writes what the index knows"
        ForeignSidecar "foreign-sidecar" Error repaired
            "the sidecar names another item"
            "--repair sets it aside as .ibi.broken-1 and writes what the index knows"
        MissingSidecar "missing-sidecar" Warning repaired
            "the sidecar is missing, and the index has its content"
            "--repair writes it again"
        ChangedSidecar "changed-sidecar" Warning repaired
            "the sidecar has changed since it was last accepted"
            "--repair accepts it, and keeps the previous sidecar of an original as .ibi.before-1"
        BrokenTombstone "broken-tombstone" Warning repaired
            "the record of a removed item is not valid; the item still counts as removed"
            "--repair writes what the index knows"
        MissingTombstone "missing-tombstone" Warning repaired
            "the record of a removed item is missing"
            "--repair writes what the index knows"
        ChangedTombstone "changed-tombstone" Warning repaired
            "the record of a removed item has changed since it was last accepted"
            "--repair accepts it"
        LeftTombstone "left-tombstone" Notice repaired
            "an item that exists also has a record of its removal"
            "--repair removes the record"
        NameTaken "name-taken" Error reported
            "two items claim one name; the second is not found by it"
            "correct one of the two sidecars"
        AliasTaken "alias-taken" Notice reported
            "two items claim one alias; the second is not found by it"
            "correct one of the two sidecars"
        NameRefused "name-refused" Notice reported
            "the sidecar claims what the item may not have here; it is not accepted"
            "correct the sidecar, or let a user who may create that name remove it and write it again through the mount"
        NotMoved "not-moved" Warning repaired
            "the sidecar gives the item a rep, and the item is still in the directory of its IBIp"
            "--repair or 'ibifs reindex' moves it to the directory of its rep"
        NotMinted "not-minted" Error reported
            "a directory has a name of this Archive's own name space that has not been minted; it is not served"
            "move it away; minting continues, and skips its date"
        SpelledTwice "spelled-twice" Warning reported
            "two directories differ only in the case of their letters; identifiers ignore case"
            "move the items of one into the other"
        StrayName "stray-name" Warning reported
            "this name is not an identifier; the mount does not show it"
            "move it away"
        NotADirectory "not-a-directory" Warning reported
            "this is not a directory, where one is expected; the mount does not show it"
            "move it away"
        EditionCycle "edition-cycle" Notice reported
            "its editions form a cycle"
            "remove one of the relations with 'ibifs unrelate'"
        RelationsDiffer "relations-differ" Notice reported
            "two items claim to be the same relation of a third"
            "remove the first with 'ibifs unrelate', or the other with 'setfattr -x user.ibi.editionof' (or metadataof)"
        RemovedTarget "removed-target" Notice reported
            "a relation leads to an item that was removed here; it is kept as history, and not followed"
            "remove it with 'ibifs unrelate', if it need not be kept"
        OneSided "one-sided" Notice repaired
            "a relation of two originals is written in one of the two sidecars only"
            "--repair writes it in the other"
        ServiceMissing "service-missing" Error repaired
            "the item of the Archive service is not held here as an original"
            "--repair creates it again"
        LedgerBroken "ledger-broken" Warning repaired
            "the ledger cannot be read"
            "minting continues from the present: the next mount or --repair writes a new one"
        LedgerDiffers "ledger-differs" Error repaired
            "ledger and index disagree about the last date issued"
            "the later date is used: the next mount or --repair writes it to both"
        DateBehind "date-behind" Error repaired
            "an item has a later date than the last one issued, and its date could be issued again"
            "--repair or 'ibifs reindex' continues from the item's date"
        DateAhead "date-ahead" Error reported
            "the last date issued is in the future, so minting is refused until then"
            "set the clock; if it was ahead and is right now, use --repair --clock-is-right"
        TwoOriginals "two-originals" Error reported
            "another Archive also claims this original"
            "decide which Archive holds it, and make the sidecar of the other one name that Archive's service"
        OriginalRemoved "original-removed" Warning reported
            "the Archive that held the original has removed it, so this copy has no original"
            "run 'ibifs claim' to make the copy the original, if it should be kept"
        HandoverPending "handover-pending" Warning reported
            "an item is being transferred, and the other Archive may not have accepted it yet"
            "run the same 'ibifs transfer' or 'ibifs claim' again, or cancel it with 'ibifs transfer --cancel'"
        HandoverCancelled "handover-cancelled" Notice reported
            "a transfer was cancelled because the other Archive was declared gone; it may hold a second original"
            "if that Archive comes back, run 'ibifs transfer --cancel' with its store or URL"
        HandoverBroken "handover-broken" Error reported
            "the note of the Archive to which an item is being transferred cannot be read"
            "ask the other Archive which of the two holds the item, and remove the note"
        LogDamaged "log-damaged" Error reported
            "the log of the store is damaged, or was changed"
            "restore the directory 'log' of the store from a backup"
        LogSetBack "log-set-back" Error reported
            "the log has fewer entries than the index knows"
            "restore the directory 'log' of the store from a newer backup; until then no event is logged"
        LogDiffers "log-differs" Error reported
            "log and index have different events"
            "compare both with a backup, and restore the one that was changed"
        StrayEvent "stray-event" Warning reported
            "what lies where events wait for the log is no event that ibifs has left there; it is not logged"
            "look at it, and remove it"
        DamagedFiles "damaged-files" Error reported
            "files of the item are damaged or lost, as the last scrub or a copy has found"
            "mend them with 'ibifs repair', or see 'ibifs scrub'"
        StagingLeft "staging-left" Notice repaired
            "an interrupted operation has left something behind"
            "the next mount or --repair removes it"
        ArrivalLeft "arrival-left" Notice repaired
            "what has arrived of an item over HTTP has not been continued for 7 days"
            "--repair and 'ibifs serve' remove it"
        LoosePermissions "loose-permissions" Warning repaired
            "all users may write what only the Archive should"
            "--repair removes that permission"
        UnknownField "unknown-field" Notice reported
            "the metadata text has a field with an unknown name; the field is not read"
            "correct the name; ibifs-tree(7) has the names"
        BrokenMetadata "broken-metadata" Notice reported
            "the metadata text, or a line of it, cannot be read"
            "correct it"
        DoubtfulField "doubtful-field" Notice reported
            "a date, an ORCID iD or a command of TeX in the metadata text is not understood; it stays as it is"
            "correct it, if it is wrong"
        NoTitle "no-title" Notice reported
            "the metadata text has no title"
            "add one"
        TooFewCopies "too-few-copies" Notice reported
            "items have fewer proved copies than archive.ibi wants"
            "copy them with 'ibifs copy', or have their copies compared again; 'ibifs copies --short' lists them"
        StoreOpen "store-open" Warning reported
            "other users may enter the store directly, without the mount"
            "remove that permission with 'chmod o-x', unless a service of another user reads the store"
    }
}

/// One inconsistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// Its kind.
    pub code: CheckCode,
    /// The item, by its name, or the path below the store.
    pub subject: String,
    /// Details of this finding, if any.
    pub detail: Option<Message>,
    /// Whether a repair can correct it.
    pub repairable: bool,
    /// Whether it was repaired.
    pub repaired: bool,
    /// The item's names, if the finding is about an item.
    pub(super) names: Option<Box<Names>>,
}

impl CheckFinding {
    pub(super) fn new(code: CheckCode, subject: impl Into<String>) -> CheckFinding {
        CheckFinding {
            code,
            subject: subject.into(),
            detail: None,
            repairable: code.is_repairable(),
            repaired: false,
            names: None,
        }
    }

    pub(super) fn of(code: CheckCode, names: &Names) -> CheckFinding {
        CheckFinding {
            names: Some(Box::new(names.clone())),
            ..CheckFinding::new(code, names.preferred())
        }
    }

    pub(super) fn with_detail(self, detail: impl Localize) -> CheckFinding {
        CheckFinding {
            detail: Some(detail.message()),
            ..self
        }
    }

    /// A sentence that describes the finding.
    #[must_use]
    pub fn sentence(&self) -> Message {
        with_detail(self.code, self.detail.as_ref())
    }

    /// Whether it is an error or a warning that has not been repaired.
    #[must_use]
    pub fn is_left(&self) -> bool {
        !self.repaired && self.code.severity() != Severity::Notice
    }

    /// Identifies the finding in a later pass.
    pub(super) fn identity(&self) -> (CheckCode, String) {
        (self.code, self.subject.clone())
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// The number of items in the tree.
    pub items: u64,
    /// Whether another process was writing the store meanwhile.
    pub in_use: bool,
    /// The inconsistencies.
    pub findings: Vec<CheckFinding>,
}

impl CheckReport {
    pub(super) fn add(&mut self, finding: CheckFinding) {
        self.findings.push(finding);
    }

    pub(super) fn has(&self, code: CheckCode) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    pub(super) fn identities(&self) -> BTreeSet<(CheckCode, String)> {
        self.findings.iter().map(CheckFinding::identity).collect()
    }

    /// The subjects of the findings with this code.
    pub(super) fn subjects(&self, code: CheckCode) -> BTreeSet<String> {
        let those = self.findings.iter().filter(|finding| finding.code == code);
        those.map(|finding| finding.subject.clone()).collect()
    }

    /// The number of findings that have this severity and are not repaired.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let counts =
            |finding: &&CheckFinding| !finding.repaired && finding.code.severity() == severity;
        self.findings.iter().filter(counts).count()
    }
}
