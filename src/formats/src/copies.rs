//! Copies of items: what an Archive wants, which copies it knows, and whether these are enough. No clock, no disk.
//!
//! A copy is a line of pairs, such as
//! `kind archive holder sid.inpe.br/a@80/2008/03.17.15.17 place {br sp} proved 2026-11-29T20:00:00Z outcome good`.
//! It counts when its content was compared, not when it was made.

use std::collections::BTreeSet;

use crate::item::{Names, one_line, period, period_text};
use ibi::Timestamp;
use ibi::pairs::{Pairs, Value, percent_decode, percent_encode};

/// The most characters of the reason for which another Archive has withdrawn or removed an item.
const MOST_OF_REASON: usize = 200;

/// The largest number of copies or places that an Archive may want.
const MOST: u32 = 100;

/// The most packages of an item that are noted; the oldest are forgotten.
const MOST_EXPORTS: usize = 10;

/// The copies of each item that an Archive wants, its own one among them. None of what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyPolicy {
    /// The number of copies.
    pub copies: Option<u32>,
    /// The number below which no copy is removed.
    pub minimum: Option<u32>,
    /// The number of places in which they are.
    pub places: Option<u32>,
    /// The seconds for which the proof of a copy counts.
    pub proved: Option<i64>,
}

impl CopyPolicy {
    /// Reads the pairs of `archive.ibi`.
    ///
    /// # Errors
    /// The name of the pair that is not valid.
    pub fn of(pairs: &Pairs) -> Result<CopyPolicy, &'static str> {
        let word = |name| match pairs.get(name) {
            None => Ok(None),
            Some(Value::Word(word)) => Ok(Some(word.as_str())),
            Some(Value::List(_)) => Err(name),
        };
        let number = |name| match word(name)? {
            None => Ok(None),
            Some(text) => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                let number = text.parse().ok().filter(|_| is_plain);
                let number = number.filter(|number| (1..=MOST).contains(number));
                number.map(Some).ok_or(name)
            }
        };
        let policy = CopyPolicy {
            copies: number("copies")?,
            minimum: number("minimum")?,
            places: number("places")?,
            proved: match word("proved")? {
                None => None,
                Some(text) => Some(period(text).ok_or("proved")?),
            },
        };
        if policy.is_sound() {
            Ok(policy)
        } else if policy.minimum > policy.copies {
            Err("minimum")
        } else {
            Err("places")
        }
    }

    /// The same, with what another one says where this one says nothing.
    #[must_use]
    pub fn or(self, other: CopyPolicy) -> CopyPolicy {
        CopyPolicy {
            copies: self.copies.or(other.copies),
            minimum: self.minimum.or(other.minimum),
            places: self.places.or(other.places),
            proved: self.proved.or(other.proved),
        }
    }

    /// Whether no number is larger than that of the copies.
    fn is_sound(&self) -> bool {
        let most = Some(self.copies.unwrap_or(MOST));
        self.minimum <= most && self.places <= most
    }

    /// The pairs, a line each.
    fn pairs(&self) -> impl Iterator<Item = String> {
        let numbers = [
            ("copies", self.copies),
            ("minimum", self.minimum),
            ("places", self.places),
        ];
        let numbers = numbers
            .into_iter()
            .filter_map(|(name, number)| Some(format!("{name} {}", number?)));
        let proved = self.proved.map(|it| format!("proved {}", period_text(it)));
        numbers.chain(proved)
    }

    /// The text of `archive.ibi`.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.pairs().map(|pair| pair + "\n").collect()
    }

    /// Whether the Archive wants anything of its copies.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self != CopyPolicy::default()
    }

    /// Whether a proof counts at an instant.
    #[must_use]
    pub fn counts(&self, proof: &Proof, now: &Timestamp) -> bool {
        let age = now.seconds().saturating_sub(proof.at.seconds());
        proof.is_good && self.proved.is_none_or(|longest| age <= longest)
    }

    /// Counts what is proved at an instant.
    #[must_use]
    pub fn count(&self, copies: &[KnownCopy], now: &Timestamp) -> CopyCount {
        let counts = |copy: &&KnownCopy| {
            let is_removed = copy.gone.as_ref().is_some_and(|gone| gone.is_removed);
            !is_removed && copy.proof.as_ref().is_some_and(|it| self.counts(it, now))
        };
        let proved: Vec<&KnownCopy> = copies.iter().filter(counts).collect();
        let places = proved.iter().map(|copy| &copy.place);
        let places: BTreeSet<_> = places.filter(|place| !place.is_empty()).collect();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (copies, places) = (number(proved.len()), number(places.len()));
        CopyCount {
            copies,
            places,
            is_enough: self.copies.is_none_or(|wanted| copies >= wanted)
                && self.minimum.is_none_or(|wanted| copies >= wanted)
                && self.places.is_none_or(|wanted| places >= wanted),
        }
    }
}

/// The wishes of an Archive for the copies of items whose rep or IBIp begins in a way: the name of the pair of `archive.ibi`.
pub const COLLECTION: &str = "collection";

/// The copies that an Archive wants of a part of its items: `collection {example.org/archive/ copies 4 places 3}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionPolicy {
    /// The beginning of the reps or IBIps of these items.
    pub prefix: String,
    /// The policy there; a number that it does not have is that of all items.
    pub policy: CopyPolicy,
}

impl CollectionPolicy {
    /// Reads the pairs of `archive.ibi`, which may have one for each collection.
    ///
    /// # Errors
    /// The value of the pair that is not valid.
    pub fn all_of(pairs: &Pairs, all: CopyPolicy) -> Result<Vec<CollectionPolicy>, String> {
        let named = pairs.iter().filter(|(name, _)| *name == COLLECTION);
        let read = |(_, value): (&str, &Value)| {
            CollectionPolicy::parse(value, all).ok_or_else(|| value.words().join(" "))
        };
        named.map(read).collect()
    }

    fn parse(value: &Value, all: CopyPolicy) -> Option<CollectionPolicy> {
        let (prefix, words) = value.words().split_first()?;
        let pairs = Pairs::parse(words.join(" ").as_bytes()).ok()?;
        let is_known = |name| ["copies", "minimum", "places", "proved"].contains(&name);
        if words.is_empty() || !pairs.iter().all(|(name, _)| is_known(name)) {
            return None;
        }
        let policy = CopyPolicy::of(&pairs).ok()?;
        let prefix = decoded(prefix);
        policy
            .or(all)
            .is_sound()
            .then_some(CollectionPolicy { prefix, policy })
    }

    /// The text of `archive.ibi`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let words: Vec<String> = [percent_encode(&self.prefix)]
            .into_iter()
            .chain(self.policy.pairs())
            .collect();
        format!("{COLLECTION} {{{}}}\n", words.join(" "))
    }

    /// The policy for an item, by the longest beginning of a name of it.
    #[must_use]
    pub fn choose(collections: &[CollectionPolicy], names: &Names, all: CopyPolicy) -> CopyPolicy {
        let meant = collections.iter().filter(|it| names.begin_with(&it.prefix));
        let longest = meant.max_by_key(|it| it.prefix.len());
        longest.map_or(all, |it| it.policy.or(all))
    }
}

/// The copies of an item that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyCount {
    /// The number of copies.
    pub copies: u32,
    /// The number of places in which they are.
    pub places: u32,
    /// Whether these are as many as the policy wants.
    pub is_enough: bool,
}

/// The kind of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// An item of an Archive.
    Archive,
    /// A part of a backup.
    Backup,
    /// A package that was written for others.
    Export,
}

impl CopyKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            CopyKind::Archive => "archive",
            CopyKind::Backup => "backup",
            CopyKind::Export => "export",
        }
    }

    fn from_word(word: &str) -> Option<CopyKind> {
        let kinds = [CopyKind::Archive, CopyKind::Backup, CopyKind::Export];
        kinds.into_iter().find(|kind| kind.word() == word)
    }
}

/// The comparison of a copy with the recorded digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// When it was made.
    pub at: Timestamp,
    /// Whether the content was the same.
    pub is_good: bool,
}

impl Proof {
    fn of(pairs: &Pairs) -> Option<Proof> {
        let word = |name: &str| pairs.get(name).and_then(|value| value.words().first());
        Some(Proof {
            at: Timestamp::parse_rfc3339(word("proved")?).ok()?,
            is_good: word("outcome")? == "good",
        })
    }

    fn to_pairs(&self) -> String {
        format!(" proved {} outcome {}", self.at.to_rfc3339(), self.word())
    }

    /// The word for its outcome.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.is_good { "good" } else { "bad" }
    }
}

/// The end of an item, by the word of its Archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Whether it was removed; otherwise it was withdrawn.
    pub is_removed: bool,
    /// When.
    pub at: Timestamp,
    /// The reason, in one line; empty if none was given.
    pub reason: String,
}

impl Gone {
    /// Makes the end of an item, with a reason of limited length.
    #[must_use]
    pub fn new(is_removed: bool, at: &Timestamp, reason: &str) -> Gone {
        let reason: String = reason
            .chars()
            .map(|sign| if sign.is_control() { ' ' } else { sign })
            .collect();
        Gone {
            is_removed,
            at: Timestamp::from_unix(at.seconds(), 0),
            reason: one_line(&reason).chars().take(MOST_OF_REASON).collect(),
        }
    }

    /// The word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.is_removed {
            "removed"
        } else {
            "withdrawn"
        }
    }

    /// Parses it; None of what is not written so.
    pub fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Gone> {
        let is_removed = match words.next()? {
            "removed" => true,
            "withdrawn" => false,
            _ => return None,
        };
        let at = Timestamp::parse_rfc3339(words.next()?).ok()?;
        let reason = words.next().map(decoded).unwrap_or_default();
        let gone = Gone::new(is_removed, &at, &reason);
        let is_it = gone.reason == reason && words.next().is_none();
        is_it.then_some(gone)
    }
}

/// The word, the time, and the reason if there is one.
impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.word(), self.at.to_rfc3339())?;
        match &*self.reason {
            "" => Ok(()),
            reason => write!(f, " {}", percent_encode(reason)),
        }
    }
}

/// A copy of an item that an Archive knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCopy {
    /// Its kind.
    pub kind: CopyKind,
    /// The identifier of the Archive's service, its URL where that is not known, the directory of a backup, or the path of a package.
    pub holder: String,
    /// When it was made, of a backup and a package.
    pub made: Option<Timestamp>,
    /// The place that its Archive says; empty if none is known.
    pub place: Vec<String>,
    /// The last proof; None if it was never compared.
    pub proof: Option<Proof>,
    /// The end of the item, by the word of the Archive there.
    pub gone: Option<Gone>,
    /// The time of the withdrawal or removal here of which its Archive was told.
    pub told: Option<Timestamp>,
}

impl KnownCopy {
    /// A copy that was never compared, in a place that is not known.
    #[must_use]
    pub fn new(kind: CopyKind, holder: String) -> KnownCopy {
        KnownCopy {
            kind,
            holder,
            made: None,
            place: Vec::new(),
            proof: None,
            gone: None,
            told: None,
        }
    }

    /// The copy of a line; None of a line that has none.
    #[must_use]
    pub fn parse(line: &str) -> Option<KnownCopy> {
        let pairs = Pairs::parse(line.as_bytes()).ok()?;
        let word = |name: &str| pairs.get(name).and_then(|value| value.words().first());
        Some(KnownCopy {
            kind: CopyKind::from_word(word("kind")?)?,
            holder: decoded(word("holder")?),
            made: word("made").and_then(|made| Timestamp::parse_rfc3339(made).ok()),
            place: pairs.get("place").map(decoded_words).unwrap_or_default(),
            proof: Proof::of(&pairs),
            gone: pairs
                .get("gone")
                .and_then(|value| Gone::parse(value.words().iter().map(String::as_str))),
            told: word("told").and_then(|at| Timestamp::parse_rfc3339(at).ok()),
        })
    }

    /// Its line.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = format!(
            "kind {} holder {}",
            self.kind.word(),
            percent_encode(&self.holder)
        );
        if let Some(made) = &self.made {
            line.push_str(&format!(" made {}", made.to_rfc3339()));
        }
        line.push_str(&place_pair(&self.place));
        if let Some(proof) = &self.proof {
            line.push_str(&proof.to_pairs());
        }
        if let Some(gone) = &self.gone {
            line.push_str(&format!(" gone {{{gone}}}"));
        }
        if let Some(told) = &self.told {
            line.push_str(&format!(" told {}", told.to_rfc3339()));
        }
        line + "\n"
    }
}

/// The pair of a place; nothing of one that is not known.
fn place_pair(place: &[String]) -> String {
    let words: Vec<String> = place.iter().map(percent_encode).collect();
    match words.as_slice() {
        [] => String::new(),
        words => format!(" place {{{}}}", words.join(" ")),
    }
}

/// The words of a value, without percent-encoding.
#[must_use]
pub fn decoded_words(value: &Value) -> Vec<String> {
    value.words().iter().map(|word| decoded(word)).collect()
}

/// A word without percent-encoding.
pub(crate) fn decoded(word: &str) -> String {
    String::from_utf8_lossy(&percent_decode(word)).into_owned()
}

/// A backup of the whole store, as far as the store knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupNote {
    /// Its directory.
    pub directory: String,
    /// When it was last brought up to date.
    pub made: Timestamp,
    /// The number of items that it had then.
    pub items: u64,
    /// Where it is, in words; empty if that was never said.
    pub place: Vec<String>,
    /// The last proof, by a drill.
    pub proof: Option<Proof>,
}

impl BackupNote {
    fn parse(line: &str) -> Option<BackupNote> {
        let pairs = Pairs::parse(line.as_bytes()).ok()?;
        let word = |name: &str| pairs.get(name).and_then(|value| value.words().first());
        Some(BackupNote {
            directory: decoded(word("directory")?),
            made: Timestamp::parse_rfc3339(word("made")?).ok()?,
            items: word("items")?.parse().ok()?,
            place: pairs.get("place").map(decoded_words).unwrap_or_default(),
            proof: Proof::of(&pairs),
        })
    }

    fn to_line(&self) -> String {
        let (directory, made) = (percent_encode(&self.directory), self.made.to_rfc3339());
        let place = place_pair(&self.place);
        let proof = self.proof.as_ref().map(Proof::to_pairs).unwrap_or_default();
        format!(
            "directory {directory} made {made} items {}{place}{proof}\n",
            self.items
        )
    }
}

/// Parses the backups of a store: one a line. Other lines are left out.
#[must_use]
pub fn parse_backups(bytes: &[u8]) -> Vec<BackupNote> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(BackupNote::parse).collect()
}

/// The text of the backups of a store.
#[must_use]
pub fn backups_text(backups: &[BackupNote]) -> String {
    backups.iter().map(BackupNote::to_line).collect()
}

/// Notes that a backup was made. What it was proved by is of the content that it had before, and counts until it is too old;
/// its place stays.
pub fn note_backup(backups: &mut Vec<BackupNote>, made: BackupNote) {
    let is_it = |known: &&mut BackupNote| known.directory == made.directory;
    match backups.iter_mut().find(is_it) {
        Some(known) => {
            let (proof, place) = (known.proof.take(), std::mem::take(&mut known.place));
            *known = BackupNote {
                proof: made.proof.clone().or(proof),
                place: Some(made.place.clone())
                    .filter(|it| !it.is_empty())
                    .unwrap_or(place),
                ..made
            };
        }
        None => backups.push(made),
    }
}

/// Parses a ledger: a copy a line. Other lines are left out.
#[must_use]
pub fn parse_copies(bytes: &[u8]) -> Vec<KnownCopy> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(KnownCopy::parse).collect()
}

/// The text of a ledger.
#[must_use]
pub fn copies_text(copies: &[KnownCopy]) -> String {
    copies.iter().map(KnownCopy::to_line).collect()
}

/// Notes a copy in a ledger, in place of what was known of it. A place that is not known now stays. One that is good is not gone.
pub fn note_copy(copies: &mut Vec<KnownCopy>, copy: KnownCopy) {
    let is_it = |known: &&mut KnownCopy| (known.kind, &known.holder) == (copy.kind, &copy.holder);
    match copies.iter_mut().find(is_it) {
        Some(known) => {
            if !copy.place.is_empty() {
                known.place = copy.place;
            }
            let is_good = copy.proof.as_ref().is_some_and(|proof| proof.is_good);
            let before = known.gone.take().filter(|_| !is_good);
            known.gone = copy.gone.or(before);
            let before = known.told.take().filter(|_| !is_good);
            known.told = copy.told.or(before);
            known.proof = copy.proof.or(known.proof.take());
            known.made = copy.made.or(known.made.take());
        }
        None => copies.push(copy),
    }
    let exports = copies.iter().filter(|copy| copy.kind == CopyKind::Export);
    if exports.clone().count() > MOST_EXPORTS {
        let oldest = exports.min_by(|one, other| one.made.cmp(&other.made));
        let oldest = oldest.map(|copy| copy.holder.clone());
        copies
            .retain(|copy| copy.kind != CopyKind::Export || Some(&copy.holder) != oldest.as_ref());
    }
}

/// Notes a copy of an Archive of which `is_its` knows all names by which it may be noted: it has one line.
pub fn note_copy_of(
    copies: &mut Vec<KnownCopy>,
    copy: KnownCopy,
    is_its: &dyn Fn(&KnownCopy) -> bool,
) {
    copies.retain(|known| known.holder == copy.holder || !is_its(known));
    note_copy(copies, copy);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<CopyPolicy, &'static str> {
        CopyPolicy::of(&Pairs::parse(text.as_bytes()).expect("pairs"))
    }

    fn copy(holder: &str, place: &str, proved: Option<(&str, bool)>) -> KnownCopy {
        KnownCopy {
            place: place.split_whitespace().map(str::to_owned).collect(),
            proof: proved.map(|(at, is_good)| Proof {
                at: Timestamp::parse_rfc3339(at).expect("a time"),
                is_good,
            }),
            ..KnownCopy::new(CopyKind::Archive, holder.to_owned())
        }
    }

    #[test]
    fn policies() {
        let all = policy("copies 3 minimum 2 places 2 proved 90d").expect("valid");
        assert!(all.is_any());
        assert_eq!((all.copies, all.proved), (Some(3), Some(7_776_000)));
        assert!(!policy("host a.example").expect("valid").is_any());
        for (text, name) in [
            ("copies 0", "copies"),
            ("copies +1", "copies"),
            ("copies 101", "copies"),
            ("copies {1 2}", "copies"),
            ("copies 2 minimum 3", "minimum"),
            ("copies 2 places 3", "places"),
            ("proved 90", "proved"),
        ] {
            assert_eq!(policy(text), Err(name), "{text}");
        }
    }

    #[test]
    fn policies_of_collections() {
        let read = |text: &str| {
            let pairs = Pairs::parse(text.as_bytes()).expect("pairs");
            let all = CopyPolicy::of(&pairs).expect("valid");
            CollectionPolicy::all_of(&pairs, all).map(|found| (found, all))
        };
        let text = "copies 3 minimum 2
            collection {example.org/archive/ copies 4 proved 1d}
            collection {example.org/archive/2026/ minimum 1}
            collection {8JMKD3MGP8W/ places 3}";
        let (found, all) = read(text).expect("valid");
        let names = |text| Names::from(ibi::Ibi::parse(text).expect(text));
        let of = |text| {
            let it = CollectionPolicy::choose(&found, &names(text), all);
            (it.copies, it.minimum, it.places, it.proved)
        };
        assert_eq!(
            of("example.com/archive/2026/11.22.10.15"),
            (Some(3), Some(2), None, None)
        );
        assert_eq!(
            of("example.org/archive/2025/11.22.10.15"),
            (Some(4), Some(2), None, Some(86_400))
        );
        assert_eq!(
            of("example.org/archive/2026/11.22.10.15"),
            (Some(3), Some(1), None, None)
        );
        assert_eq!(of("8JMKD3MGP8W/34PGRBS"), (Some(3), Some(2), Some(3), None));
        let again: String = found.iter().map(CollectionPolicy::to_text).collect();
        assert_eq!(read(&format!("{}{again}", all.to_text())), Ok((found, all)));
        for wrong in [
            "collection example.org",
            "collection {}",
            "collection {example.org copies}",
            "collection {example.org copies 0}",
            "collection {example.org copy 2}",
            "copies 3 collection {example.org minimum 4}",
            "minimum 2 collection {example.org copies 1}",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_proved_counts() {
        let policy = policy("copies 2 places 2 proved 1d").expect("valid");
        let now = Timestamp::parse_rfc3339("2026-11-29T12:00:00Z").expect("a time");
        let good = copy("a", "br sp", Some(("2026-11-29T00:00:00Z", true)));
        let count = |copies: &[KnownCopy]| {
            let count = policy.count(copies, &now);
            (count.copies, count.places, count.is_enough)
        };
        assert_eq!(count(std::slice::from_ref(&good)), (1, 1, false));
        for (other, expected) in [
            (
                copy("b", "br rj", Some(("2026-11-28T13:00:00Z", true))),
                (2, 2, true),
            ),
            (
                copy("b", "br sp", Some(("2026-11-28T13:00:00Z", true))),
                (2, 1, false),
            ),
            (
                copy("b", "", Some(("2026-11-28T13:00:00Z", true))),
                (2, 1, false),
            ),
            (
                copy("b", "br rj", Some(("2026-11-28T11:00:00Z", true))),
                (1, 1, false),
            ),
            (
                copy("b", "br rj", Some(("2026-11-29T11:00:00Z", false))),
                (1, 1, false),
            ),
            (copy("b", "br rj", None), (1, 1, false)),
        ] {
            assert_eq!(count(&[good.clone(), other.clone()]), expected, "{other:?}");
        }
    }

    #[test]
    fn what_became_of_a_copy_is_noted_until_it_is_good_again() {
        let at = Timestamp::parse_rfc3339("2026-11-29T00:00:00Z").expect("a time");
        let gone = Gone::new(true, &at, " a\tlost \n{battle}% ");
        assert_eq!(gone.reason, "a lost {battle}%");
        let text = gone.to_string();
        assert_eq!(Gone::parse(text.split(' ')), Some(gone.clone()));
        for broken in [
            "",
            "removed",
            "lost 2026-11-29T00:00:00Z",
            "removed never",
            "removed 2026-11-29T00:00:00Z a b",
            "removed 2026-11-29T00:00:00Z a%0Ab",
        ] {
            assert_eq!(Gone::parse(broken.split(' ')), None, "{broken}");
        }
        assert_eq!(
            Gone::new(false, &at, &"x".repeat(999)).reason.len(),
            MOST_OF_REASON
        );
        let good = copy("a", "br", Some(("2026-11-28T00:00:00Z", true)));
        let mut copies = vec![KnownCopy {
            gone: Some(gone.clone()),
            told: Some(at.clone()),
            ..good.clone()
        }];
        assert_eq!(parse_copies(copies_text(&copies).as_bytes()), copies);
        let counted = |copies: &[KnownCopy]| CopyPolicy::default().count(copies, &at).copies;
        assert_eq!(counted(&copies), 0);
        note_copy(
            &mut copies,
            copy("a", "", Some(("2026-11-29T00:00:00Z", false))),
        );
        assert_eq!(
            (&copies[0].gone, &copies[0].told),
            (&Some(gone), &Some(at.clone()))
        );
        note_copy(&mut copies, good);
        assert_eq!((&copies[0].gone, &copies[0].told), (&None, &None));
        assert_eq!(counted(&copies), 1);
    }

    #[test]
    fn a_ledger_is_read_back() {
        let mut copies = vec![
            copy(
                "a/b@80/2008/03.17.15.17",
                "br são",
                Some(("2026-11-29T00:00:00Z", true)),
            ),
            copy("/mnt/a disk/{x}%", "", None),
        ];
        let text = copies_text(&copies);
        assert_eq!(parse_copies(text.as_bytes()), copies);
        assert_eq!(
            parse_copies(format!("{{\nx y\n{text}kind").as_bytes()),
            copies
        );
        note_copy(
            &mut copies,
            copy(
                "a/b@80/2008/03.17.15.17",
                "",
                Some(("2026-11-30T00:00:00Z", false)),
            ),
        );
        assert_eq!(copies.len(), 2);
        assert_eq!(copies[0].place, ["br", "são"]);
        assert_eq!(copies[0].proof.as_ref().map(Proof::word), Some("bad"));
    }

    /// Of packages that are made again and again in new places, the newest are known, and copies stay.
    #[test]
    fn packages_are_forgotten() {
        let mut copies = vec![copy("a", "br sp", None)];
        for day in (10..30).chain([10, 29]) {
            let made = Timestamp::parse_rfc3339(&format!("2026-11-{day}T00:00:00Z")).ok();
            let package = KnownCopy {
                kind: CopyKind::Export,
                made,
                ..copy(&format!("bags {day}"), "", None)
            };
            note_copy(&mut copies, package);
        }
        assert_eq!(copies.len(), 1 + MOST_EXPORTS);
        let holders: Vec<&str> = copies.iter().map(|copy| copy.holder.as_str()).collect();
        assert_eq!(
            (holders[0], holders[1], holders[10]),
            ("a", "bags 20", "bags 29")
        );
        assert_eq!(parse_copies(copies_text(&copies).as_bytes()), copies);
        let made = Timestamp::parse_rfc3339("2026-11-29T00:00:00Z").expect("a time");
        let mut backups = Vec::new();
        for place in [vec!["de".to_owned(), "köln".to_owned()], Vec::new()] {
            let (directory, made) = ("/a b".to_owned(), made.clone());
            let note = BackupNote {
                directory,
                made,
                items: 1,
                place,
                proof: None,
            };
            note_backup(&mut backups, note);
        }
        assert_eq!(backups.len(), 1);
        assert_eq!(backups[0].place, ["de", "köln"]);
        assert_eq!(parse_backups(backups_text(&backups).as_bytes()), backups);
    }
}
