//! The reasons why an item was not copied or transferred: one table of codes, which ibifs-copy(1) and
//! ibifs-claim(1) list as well.

use crate::archive::finding::{Severity, findings};
use crate::archive::manifest::BrokenSeal;
use crate::formats::item::Names;
use ibi::Timestamp;
use ibi::message::{Localize, Message};

findings! {
    /// The reason why an item was not copied or transferred. For a notice nothing is wrong with the item or
    /// the transfer.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Skip {
        RemovedHere "removed-here" Notice
            "it was removed here"
        OriginalThere "original-there" Notice
            "the destination holds the original"
        RemovedThere "removed-there" Notice
            "it was removed at the destination; use --bring-back to copy it anyway"
        // The same, where the time is known.
        RemovedThereAt(when: Box<Timestamp>) "removed-there" Notice
            "it was removed at the destination at {when}; use --bring-back to copy it anyway"
            (when = when.to_rfc3339())
        Withdrawn(said: String) "withdrawn" Notice
            "the Archive that was asked has withdrawn it: {said}"
        // The same, where there is a copy.
        WithdrawnCopy(said: String) "withdrawn" Notice
            "the Archive of the original has withdrawn it, and with it the copy here: {said}"
        Service "service" Notice
            "it is the item of the Archive's own service, which belongs to that Archive alone"
        NotOriginal "not-original" Notice
            "the Archive that holds the original is not known here"
        // The same, where the Archive that holds it is known.
        NotOriginalOf(holder: Box<Names>) "not-original" Notice
            "the original is held by the Archive {holder}"
        GivenTo(other: Box<Names>) "given" Warning
            "it is being transferred to the Archive {other}; finish that first"
        // The same, where it is cancelled.
        TakenBack(other: Box<Names>) "given" Warning
            "its transfer to the Archive {other} is being cancelled; finish that with 'ibifs transfer --cancel'"
        NotPending "not-pending" Notice
            "no transfer of it to that Archive is pending"
        TwoOriginals "two-originals" Error
            "both Archives claim the original; see 'ibifs fsck --with'"
        // According to the record of a scrub.
        Damaged(path: String) "damaged" Error
            "'{path}' is damaged here; mend it with 'ibifs repair', or restore it from a copy"
        // The same, in a backup.
        DamagedInBackup(path: String) "damaged" Error
            "'{path}' is damaged, or was changed in the backup after that was made; name another generation or backup, or copy what is there with cp(1)"
        // The digests were recorded, of files with the same size and time.
        Disputed(path: String) "disputed" Error
            "'{path}' has another digest than was recorded of it at the destination, and the same size and time; compare both with a third copy"
        BrokenSeal(seal: Box<BrokenSeal>) "broken-seal" Error
            "its files are not those that were sealed: {seal}"
        // It cannot be read, or changed during each attempt.
        Unread(what: Message) "unread" Error
            "it cannot be read completely: {what}"
        Changed "changed" Warning
            "it was changed here during the transfer; try again when it is no longer written"
        // The same, where it is fetched.
        ChangedThere "changed" Warning
            "it was changed at its Archive during the copy; try again when it is no longer written"
        NotFound "not-found" Error
            "no Archive that was asked has it; name another with --from, or a resolver with --resolver"
        Unreachable(why: Message) "unreachable" Error
            "it cannot be fetched: {why}; the same command goes on where it was stopped"
        Differs(path: String) "differs" Error
            "'{path}' differs at the destination; try again"
        NotTaken(why: Message) "not-taken" Error
            "the destination does not accept it: {why}"
        NotCopied(what: Message) "not-copied" Error
            "not all of it can be copied: {what}"
        OriginalHere "original-here" Notice
            "the original is held here already"
        NoArchive "other-archive" Notice
            "its sidecar names no Archive that holds the original"
        OtherArchive(holder: Box<Names>) "other-archive" Notice
            "its sidecar names the Archive {holder} as the original's; claim it from that one"
        UnknownThere(other: Box<Names>) "unknown-there" Notice
            "the Archive {other} does not know it, and has no record of its removal"
        StillOriginal(other: Box<Names>) "still-original" Notice
            "the Archive {other} still holds the original"
        CopyThere(other: Box<Names>) "copy-there" Notice
            "the Archive {other} holds a copy of it, and no record of its removal"
        WentOn(holder: Box<Names>) "went-on" Notice
            "the original was transferred on to the Archive {holder}"
    }
}

impl Skip {
    /// The reason to send to the other Archive, without the sentence around a reason of its own.
    #[must_use]
    pub fn sentence(&self) -> Message {
        match self {
            Skip::NotTaken(why) => why.clone(),
            other => other.message(),
        }
    }

    /// Whether this is expected and no error.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.severity() == Severity::Notice
    }
}
