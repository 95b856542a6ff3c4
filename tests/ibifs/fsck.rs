//! `ibifs fsck`: every code has a store in `tests/stores` that is found so, and repaired where that is
//! promised; whatever changes an answer is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ibifs::outside::archive::CheckCode;

use crate::support::TestEnv;

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores")
}

/// The lines of a file of a fixture, if it is there.
fn lines(code: &str, name: &str) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(stores().join(code).join(name)).ok()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// Makes the sound store in a new environment, as `store`, in this state: a copy of it, indexed.
fn sound() -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        "cp -r {}/sound store; chmod 700 store; mkdir -p store/staging; ibifs reindex store 2> /dev/null",
        stores().display()
    ));
    env
}

/// The variables and functions that a break may use.
const WORDS: &str = "cd store
    col=col/example.org/archive/2009
    report=$col/02.16.17.46; second=$col/02.17.08.00; metadata=$col/02.18.09.30
    gone=deleted/$col/02.19.10.00
    I() { in_database relations.sqlite3 \"PRAGMA foreign_keys = on; $1\" > ../said; }";

/// Everything in the store: names, kinds, modes, links and bytes.
const STATE: &str = "cd store && find . -printf '%P %y %m %l\\n' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum";

/// The findings of a report in the file `report`, as `severity subject`.
const FINDINGS: &str = "jq -r '.findings[] | \"\\(.code) \\(.severity) \\(.subject)\"' report";

/// Fsck as the user who must not read everything, or with the Archive that claims something too.
fn fsck(code: &str, options: &str) -> String {
    match code {
        "unreadable" => format!(
            "setpriv --reuid=65534 --regid=65534 --clear-groups $(command -v ibifs) fsck store {options}"
        ),
        "two-originals" | "original-removed" => format!("ibifs fsck store --with other {options}"),
        _ => format!("ibifs fsck store {options}"),
    }
}

/// The files of a store that do not belong to the index, with their digests.
fn files(env: &TestEnv) -> BTreeMap<String, String> {
    let text = env.sh("cd store && find . -type f ! -name 'relations.sqlite3' \
        ! -name 'relations.sqlite3-*' ! -name ledger ! -name lock -printf '%P\\0' | xargs -0 sha256sum");
    text.lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(digest, name)| (name.to_owned(), digest.to_owned()))
        .collect()
}

/// Returns the files that were added, changed and deleted.
fn changes(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &&String| match (before.get(*name), after.get(*name)) {
        (None, _) => Some(format!("A {name}")),
        (_, None) => Some(format!("D {name}")),
        (before, after) => (before != after).then(|| format!("M {name}")),
    };
    names.iter().filter_map(change).collect()
}

/// A store broken in one way: found so and not otherwise, untouched by looking, repaired where that
/// is promised and then sound, with nothing else changed.
fn shows(code: CheckCode) {
    let word = code.word();
    let env = sound();
    env.prints("ibifs fsck store", "7 items, 0 findings");
    let script = std::fs::read_to_string(stores().join(word).join("break")).expect(word);
    env.sh(&format!("umask 022; {WORDS}\n{script}"));
    let expected: BTreeSet<String> = lines(word, "found")
        .expect(word)
        .iter()
        .map(|line| format!("{word} {line}"))
        .collect();
    let is_notice = code.severity().to_string() == "notice";
    let status = i32::from(!is_notice);

    let before = env.sh(STATE);
    env.exits(&format!("{} > report", fsck(word, "--json")), status);
    let found: BTreeSet<String> = env.sh(FINDINGS).lines().map(str::to_owned).collect();
    assert_eq!(found, expected, "{}", env.sh("cat report"));
    env.exits(&format!("{} > printed", fsck(word, "--dry-run")), status);
    assert_eq!(env.sh(STATE), before, "{word}: looking changed the store");
    let promised = lines(word, "changes");
    let would = env.sh("grep -c 'would be repaired)' printed || true");
    let count = if promised.is_some() {
        expected.len()
    } else {
        0
    };
    assert_eq!(would, count.to_string(), "{}", env.sh("cat printed"));
    assert_eq!(promised.is_some(), code.is_repairable(), "{word}");

    let before = files(&env);
    env.run(&format!("{} > repaired", fsck(word, "--repair --json")));
    let mut after = files(&env);
    // The check is told, if there is a history.
    after.retain(|name, _| !name.starts_with("log/told/") || before.contains_key(name));
    let Some(promised) = promised else {
        assert_eq!(after, before, "{word}");
        env.exits(&fsck(word, ""), status);
        return;
    };
    assert_eq!(changes(&before, &after), promised, "{word}");
    env.prints("jq '[.findings[].repaired] | all' repaired", "true");
    env.exits(&fsck(word, "--json > report"), 0);
    env.prints(FINDINGS, "");
    for change in &promised {
        // A file that was set aside is there byte for byte.
        if let Some(aside) = change.strip_prefix("A ")
            && let Some((name, _)) = aside.rsplit_once(".broken-")
            && let Some(digest) = before.get(name)
        {
            assert_eq!(after.get(aside), Some(digest), "{aside}");
        }
    }
}

/// A store can be checked while it is mounted and at work: operations under way are not findings, faults are, and a
/// repair is refused.
#[test]
fn a_store_is_looked_over_beside_its_daemon() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first
        (i=0; while test ! -e enough; do
            mint A x > x; ibifs relate A/$(<first) --next-edition $(<x); echo note$i w >> A/$(<x)/.ibi
            rm -r A/$(<x); rmdir A/.mint/x 2> gone || true; i=$((i + 1))
        done; echo $i > rounds) & worker=$!
        for i in 1 2 3; do ibifs fsck A.store --json > report-$i || touch failed; done
        touch enough; wait $worker; test $(<rounds) -gt 0",
    );
    // Until the next one is declared, its relation may lead to the item that was removed.
    for report in ["report-1", "report-2", "report-3"] {
        env.prints(
            &format!("jq -c '[.in_use, .errors, .warnings, (.findings | map(select(.code != \"removed-target\" or .subject != $first)))]' --arg first $(<first) {report}"),
            "[true,0,0,[]]",
        );
    }
    env.sh("echo garbage > A.store/col/$(<first)/.ibi");
    env.exits("ibifs fsck A.store > printed", 1);
    env.prints("cut -d: -f1 printed | head -n 1", "broken-sidecar");
    env.exits("ibifs fsck --repair A.store", 5);
}

/// A sidecar that was changed while the store was not mounted is accepted only on request: what it says changes no answer, the daemon does not rewrite it, fsck and reindex name it.
#[test]
fn a_sidecar_changed_beside_us_is_not_accepted_unasked() {
    let env = TestEnv::new().with_a();
    env.sh(
        "for n in a b c; do mint A $n > $n; done; ibifs relate A/$(<a) --next-edition $(<b)
        ibifs umount A; sed -i s,$(<b),$(<c), A.store/col/$(<a)/.ibi; cp A.store/col/$(<a)/.ibi changed
        ibifs mount A.store A",
    );
    env.prints("readlink \"A/$(<a)!\" | grep -c /$(basename $(<b))$", "1");
    env.sh("no ibifs relate A/$(<a) --metadata $(<c); cmp changed A.store/col/$(<a)/.ibi");
    env.exits("ibifs fsck A.store > printed", 1);
    env.prints("grep -c ^changed-sidecar: printed", "1");
    env.complains(
        "ibifs umount A; ibifs relate $(<a) --metadata $(<c) --store A.store",
        "has changed since it was last accepted",
    );
    env.sh("ibifs reindex A.store 2> printed; grep ^ibifs:.changed-sidecar: printed");
    env.prints(
        "ibifs show $(<a) --store A.store | grep -c \"nextedition *$(<c)\"",
        "1",
    );
    env.sh("ibifs relate $(<a) --metadata $(<c) --store A.store");
}

/// archive.ibi decides which names are minted: changed, it is accepted by reindex alone.
#[test]
fn changed_facts_are_not_accepted_unasked() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A
        sed -i s/^host.*/host.archive-b.example.org/ A.store/archive.ibi; sed -i s/^host./host\\ / A.store/archive.ibi");
    for command in ["ibifs mint A.store", "ibifs mount A.store A"] {
        env.complains(command, "archive.ibi is not what it was");
    }
    env.exits("ibifs fsck --repair A.store > printed", 1);
    env.prints("cut -d: -f1 printed | head -n 1", "facts-changed");
    env.sh("grep -q \"it says 'host archive-b.example.org' and said 'host archive-a.example.org'\" printed
        ibifs reindex A.store");
    env.prints(
        "ibifs mint A.store | head -n 1 | cut -d/ -f1,2",
        "example.org/archive-b",
    );
}

/// Each code has a store that shows it, and no other has.
#[test]
fn every_finding_has_a_store() {
    let kept: BTreeSet<String> = std::fs::read_dir(stores())
        .expect("tests/stores")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "sound")
        .collect();
    let codes: BTreeSet<String> = CheckCode::ALL
        .iter()
        .map(|code| code.word().to_owned())
        .collect();
    let different: Vec<_> = kept.symmetric_difference(&codes).collect();
    assert!(
        different.is_empty(),
        "codes without a directory in tests/stores, or directories without a code: {different:?}"
    );
}

macro_rules! shown {
    ($($name:ident $code:ident)*) => {
        /// Each of these stores is found as what it is.
        mod stores_of {
            use super::*;
            $(#[test] fn $name() { shows(CheckCode::$code); })*
        }

        /// The tests above are all there are codes for.
        #[test]
        fn every_store_is_tested() {
            let shown: BTreeSet<CheckCode> = [$(CheckCode::$code),*].into();
            assert_eq!(shown, CheckCode::ALL.iter().copied().collect());
        }
    };
}

shown! {
    facts_missing FactsMissing
    facts_broken FactsBroken
    facts_changed FactsChanged
    index_missing IndexMissing
    index_damaged IndexDamaged
    index_newer IndexNewer
    index_older IndexOlder
    area_missing AreaMissing
    unreadable Unreadable
    not_indexed NotIndexed
    index_differs IndexDiffers
    not_in_tree NotInTree
    mint_unfinished MintUnfinished
    broken_sidecar BrokenSidecar
    foreign_sidecar ForeignSidecar
    missing_sidecar MissingSidecar
    changed_sidecar ChangedSidecar
    broken_tombstone BrokenTombstone
    missing_tombstone MissingTombstone
    changed_tombstone ChangedTombstone
    left_tombstone LeftTombstone
    name_taken NameTaken
    alias_taken AliasTaken
    name_refused NameRefused
    not_moved NotMoved
    not_minted NotMinted
    spelled_twice SpelledTwice
    stray_name StrayName
    not_a_directory NotADirectory
    edition_cycle EditionCycle
    relations_differ RelationsDiffer
    removed_target RemovedTarget
    one_sided OneSided
    service_missing ServiceMissing
    ledger_broken LedgerBroken
    ledger_differs LedgerDiffers
    date_behind DateBehind
    date_ahead DateAhead
    log_damaged LogDamaged
    log_set_back LogSetBack
    log_differs LogDiffers
    stray_event StrayEvent
    damaged_files DamagedFiles
    staging_left StagingLeft
    loose_permissions LoosePermissions
    unknown_field UnknownField
    broken_metadata BrokenMetadata
    doubtful_field DoubtfulField
    no_title NoTitle
    too_few_copies TooFewCopies
    store_open StoreOpen
    two_originals TwoOriginals
    original_removed OriginalRemoved
    handover_pending HandoverPending
    handover_cancelled HandoverCancelled
    arrival_left ArrivalLeft
    handover_broken HandoverBroken
}

/// The room that is set aside is a file of the store's own: no other user may write it, and whatever
/// takes its place is neither followed nor in the way of anything.
#[test]
fn the_reserve_is_the_stores_own() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init S --host archive-a.example.org > /dev/null; mkdir M; ibifs mint S > /dev/null",
    );
    env.prints("ibifs fsck S", "2 items, 0 findings");
    env.prints("stat -c %s S/reserve", "262144");
    env.sh("chmod 646 S/reserve; ibifs fsck S > printed || true; grep -q '^loose-permissions: reserve: ' printed
              ibifs fsck --repair S | grep -q repaired; ibifs fsck S; stat -c %a S/reserve | grep -qx 644");
    for instead in [
        "ln -s ../notes S/reserve",
        "ln notes S/reserve",
        "mkdir -p S/reserve/x",
        "mkfifo S/reserve",
        "truncate -s 1T S/reserve",
        ":",
    ] {
        env.sh(&format!(
            "rm -rf S/reserve; echo somebody > notes; {instead}
             timeout 20 ibifs mount S M; mkdir M/.mint/x; timeout 20 ibifs umount M; timeout 20 ibifs fsck S
             grep -qx somebody notes"
        ));
    }
}
