//! The findings of a check: one table of codes, which ibifs-fsck(1) also lists.

use std::collections::BTreeSet;

use crate::archive::finding::{Severity, findings, with_detail};
use crate::formats::item::Names;
use ibi::message::{Localize, Message};

findings! {
    const ALL:
    /// The stable code of a kind of finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Code {
        FactsMissing "facts-missing" Error repaired
            "archive.ibi is not there"
            "--repair writes what the index keeps of it; otherwise put it back from a backup"
        FactsBroken "facts-broken" Error repaired
            "archive.ibi cannot be read"
            "--repair sets it aside as archive.ibi.broken-1 and writes what the index keeps of it"
        FactsChanged "facts-changed" Error reported
            "archive.ibi is not what it was when the store was last used"
            "write it as it was, or run 'ibifs reindex' if the change is meant"
        IndexMissing "index-missing" Error repaired
            "the index is not there"
            "--repair makes it anew from the tree"
        IndexDamaged "index-damaged" Error repaired
            "the index is damaged"
            "--repair sets it aside as relations.sqlite3.broken-1 and makes it anew from the tree"
        IndexNewer "index-newer" Error reported
            "the index was written by a newer ibifs"
            "use a newer ibifs"
        IndexOlder "index-older" Notice repaired
            "the index was written by an older ibifs"
            "the next mount or --repair brings it up to date"
        AreaMissing "area-missing" Error reported
            "a directory of the store is not there, and the index knows of something in it"
            "put it back, or mount what belongs there; nothing is repaired before"
        Unreadable "unreadable" Error reported
            "something in the tree cannot be read"
            "see to the disk or to the permissions; nothing is repaired before"
        NotIndexed "not-indexed" Error repaired
            "an item of the tree is missing in the index"
            "--repair or 'ibifs reindex' adds it"
        IndexDiffers "index-differs" Error repaired
            "tree and index disagree"
            "the tree counts: --repair or 'ibifs reindex' makes the index anew"
        NotInTree "not-in-tree" Error repaired
            "an item of the index is neither in the tree nor among the removed"
            "put it back from a backup; --repair records it as removed"
        MintUnfinished "mint-unfinished" Notice repaired
            "an item was minted before a crash and is not in the tree yet"
            "the next mount or --repair makes its directory"
        BrokenSidecar "broken-sidecar" Error repaired
            "the sidecar cannot be believed"
            "--repair sets it aside as .ibi.broken-1 and writes what the index knows"
        ForeignSidecar "foreign-sidecar" Error repaired
            "the sidecar names another item"
            "--repair sets it aside as .ibi.broken-1 and writes what the index knows"
        MissingSidecar "missing-sidecar" Warning repaired
            "the sidecar is not there, and the index knows what it said"
            "--repair writes it again"
        ChangedSidecar "changed-sidecar" Warning repaired
            "the sidecar is not the one that was last believed"
            "--repair believes it and keeps what an original said before as .ibi.before-1"
        BrokenTombstone "broken-tombstone" Warning repaired
            "the record of a removed item cannot be believed; the item counts as removed all the same"
            "--repair writes what the index knows"
        MissingTombstone "missing-tombstone" Warning repaired
            "the record of a removed item is not there"
            "--repair writes what the index knows"
        ChangedTombstone "changed-tombstone" Warning repaired
            "the record of a removed item is not the one that was last believed"
            "--repair believes it"
        LeftTombstone "left-tombstone" Notice repaired
            "an item that is here has a record of its removal as well"
            "--repair removes the record"
        NameTaken "name-taken" Error reported
            "two items claim one name; the second is not found by it"
            "correct one of the two sidecars"
        AliasTaken "alias-taken" Warning reported
            "two items claim one alias; the second is not found by it"
            "correct one of the two sidecars"
        NameRefused "name-refused" Warning reported
            "the sidecar claims what the item may not have here; it is not accepted"
            "correct the sidecar; or have a user who may make that name remove it and put it there again, through the mount"
        NotMoved "not-moved" Warning repaired
            "the sidecar gives the item a rep, and the item is still in the directory of its IBIp"
            "--repair or 'ibifs reindex' moves it to the directory of its rep"
        NotMinted "not-minted" Error reported
            "an item has a name of this Archive's own name space that has not been minted"
            "remove the item; minting goes on, and passes over its date when the time comes"
        SpelledTwice "spelled-twice" Warning reported
            "two directories differ in nothing but the case of their letters; identifiers ignore case"
            "move the items of one into the other"
        StrayName "stray-name" Warning reported
            "this name is no identifier; the mount does not show it"
            "move it away"
        NotADirectory "not-a-directory" Warning reported
            "something else lies where a directory should; the mount does not show it"
            "move it away"
        EditionCycle "edition-cycle" Error reported
            "its editions go in a circle"
            "take one of them back with 'ibifs unrelate'"
        RelationsDiffer "relations-differ" Warning reported
            "two items claim to be the same relation of a third"
            "take back the first with 'ibifs unrelate', or the other with 'setfattr -x user.ibi.editionof' (or metadataof)"
        OneSided "one-sided" Notice repaired
            "a relation of two originals is written in one of the two sidecars only"
            "--repair writes it in the other"
        ServiceMissing "service-missing" Error repaired
            "the item of the Archive service is not held here as an original"
            "--repair makes it again"
        LedgerBroken "ledger-broken" Warning repaired
            "the ledger cannot be read"
            "minting goes on from the present: the next mount or --repair writes it anew"
        LedgerDiffers "ledger-differs" Error repaired
            "ledger and index disagree about the last date handed out"
            "the later one counts: the next mount or --repair writes it in both"
        DateBehind "date-behind" Error repaired
            "an item is later than the last date handed out, which could be handed out again"
            "--repair or 'ibifs reindex' goes on from the item's date"
        DateAhead "date-ahead" Error reported
            "the last date handed out lies in the future, so that minting is refused until then"
            "set the clock; if it had run ahead and is right now, give --repair --clock-is-right"
        TwoOriginals "two-originals" Error reported
            "another Archive claims this original as well"
            "decide who holds it, and have the sidecar of the other one name that Archive's service"
        OriginalRemoved "original-removed" Warning reported
            "the Archive that held the original has removed it, so that this copy has no original"
            "make the copy the original with 'ibifs claim', if it is to be kept"
        HandoverPending "handover-pending" Warning reported
            "an item is being handed over, and the other Archive may not have taken it yet"
            "give the same 'ibifs transfer' or 'ibifs claim' again"
        HandoverBroken "handover-broken" Error reported
            "it cannot be read to whom an item is being handed over"
            "see what the other Archive says of the item, and remove the note"
        StagingLeft "staging-left" Notice repaired
            "something half made was left behind"
            "the next mount or --repair clears it away"
        LoosePermissions "loose-permissions" Warning repaired
            "anybody may write what only the Archive should"
            "--repair takes that permission away"
        StoreOpen "store-open" Warning reported
            "other users may enter the store itself, past the mount"
            "take that away with 'chmod o-x', unless a service of another user reads the store"
    }
}

/// One inconsistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub code: Code,
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

impl Finding {
    pub(super) fn new(code: Code, subject: impl Into<String>) -> Finding {
        Finding {
            code,
            subject: subject.into(),
            detail: None,
            repairable: code.is_repairable(),
            repaired: false,
            names: None,
        }
    }

    pub(super) fn of(code: Code, names: &Names) -> Finding {
        Finding {
            names: Some(Box::new(names.clone())),
            ..Finding::new(code, names.preferred())
        }
    }

    pub(super) fn saying(self, detail: impl Localize) -> Finding {
        Finding {
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
    pub(super) fn identity(&self) -> (Code, String) {
        (self.code, self.subject.clone())
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Report {
    /// How many items are in the tree.
    pub items: u64,
    /// Whether another process was writing the store meanwhile.
    pub in_use: bool,
    /// The inconsistencies.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(super) fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }

    pub(super) fn identities(&self) -> BTreeSet<(Code, String)> {
        self.findings.iter().map(Finding::identity).collect()
    }

    /// The subjects of the findings with this code.
    pub(super) fn subjects(&self, code: Code) -> BTreeSet<String> {
        let those = self.findings.iter().filter(|finding| finding.code == code);
        those.map(|finding| finding.subject.clone()).collect()
    }

    /// The number of findings that have this severity and are not repaired.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let counts = |finding: &&Finding| !finding.repaired && finding.code.severity() == severity;
        self.findings.iter().filter(counts).count()
    }
}
