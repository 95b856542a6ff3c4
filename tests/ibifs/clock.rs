//! The clock: set back and forth, frozen, before 1995, far ahead. No name is handed out twice, and
//! a mint that cannot get one fails at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ibi::Timestamp;
use ibifs::outside::archive::{Archive, ArchiveError, CheckCode, Clock, Process, Setup};

use crate::support::{Rng, TestEnv, seed, switch};

/// A clock that is set by hand, in nanoseconds since 1970.
#[derive(Clone)]
struct Hand(Arc<AtomicI64>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        let now = self.0.load(Ordering::Relaxed);
        Timestamp::from_nanoseconds(i128::from(now)).expect("this century")
    }
}

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;
/// 2026-11-21T00:00:00Z
const TODAY: i64 = 1_795_219_200 * SECOND;

/// A clock that jumps at random, stands still and runs, under an Archive that mints and is opened
/// again, after a regular end and without one (`IBIFS_TEST_OPERATIONS` for more): no two names are
/// alike, and a refusal hands out nothing.
#[test]
fn whatever_the_clock_does_no_name_is_handed_out_twice() {
    let mut rng = Rng::from_seed(seed());
    let env = TestEnv::new();
    let store = env.root().join("store");
    let clock = Hand(Arc::new(AtomicI64::new(TODAY)));
    let setup = Setup {
        host: Some("archive-a.example.org".to_owned()),
        ..Setup::default()
    };
    let (mut archive, _) =
        Archive::init(&store, &setup, Box::new(clock.clone()), &mut |_| ()).expect("a new store");
    let mut names = BTreeSet::new();
    let (mut refused, mut opened) = (0, 0);
    for step in 0..switch("IBIFS_TEST_OPERATIONS").unwrap_or(3000) {
        let now = clock.0.load(Ordering::Relaxed);
        let next = match rng.below(1000) {
            0..3 => now - HOUR,
            3..12 => now + HOUR,
            12..60 => now - rng.below(5_000_000_000) as i64,
            60..400 => now,
            _ => now + rng.below(50_000_000) as i64,
        };
        clock.0.store(next, Ordering::Relaxed);
        if rng.percent(1) {
            opened += 1;
            if rng.percent(50) {
                archive.close();
            }
            drop(archive);
            archive = Archive::open(&store, Box::new(clock.clone())).expect("the same store");
        }
        let depositor = archive.depositor(&Process);
        let minted = depositor
            .reserve()
            .and_then(|it| depositor.mint_reserved(&it.date, None, None));
        match minted {
            Ok(item) => {
                let rep = item.names.rep().expect("a rep").canonical();
                let ibip = item.names.ibip().expect("an IBIp").canonical();
                assert!(names.insert(rep), "step {step}: {} twice", item.names);
                assert!(names.insert(ibip), "step {step}: {} twice", item.names);
            }
            Err(ArchiveError::Wait(_)) => refused += 1,
            Err(error) => panic!("step {step}: {error}"),
        }
    }
    println!(
        "{} minted, {refused} refused, opened {opened} times",
        names.len() / 2
    );
    assert!(names.len() > 100 && refused > 0 && opened > 0);
}

/// The clock of a mounted store is set back and forth by an hour: minting is refused at once with
/// EAGAIN while the last date lies ahead, `ibifs mint` says until when, and goes on by itself
/// afterwards.
#[test]
fn a_clock_set_back_and_forth_refuses_and_goes_on() {
    let env = TestEnv::new();
    env.sh(
        "at +0; faked ibifs init A.store --host archive-a.example.org; mkdir A
         faked ibifs mount A.store A; minted before
         at -1h",
    );
    env.complains(
        "timeout 8 mkdir A/.mint/back",
        "Resource temporarily unavailable",
    );
    env.sh("no ls A/.mint/back; no ls A/.mint/.back; ls A/$(< names)/doc");
    env.complains(
        "faked timeout 8 ibifs mint A",
        "s away and the limit is 10 s: the clock was set back or the queue is long",
    );
    env.sh("at +0; sleep 1.1; minted again
         at +1h; minted forth; minted forth-2
         at +0");
    env.complains(
        "timeout 8 mkdir A/.mint/late",
        "Resource temporarily unavailable",
    );
    env.complains(
        "ibifs umount A; faked timeout 8 ibifs mint A.store",
        "the next free date, 20",
    );
    env.sh("at +1h; faked ibifs mint A.store | head -n 1 >> names");
    env.prints("sort -u names | wc -l; wc -l < names", "5\n5");
    env.complains(
        "at +0; faked ibifs fsck A.store | tee /dev/stderr; false",
        "date-ahead",
    );
    env.sh("at +2h; faked ibifs fsck A.store");
    // With the option that the clock is right, a mint need not wait.
    env.sh(
        "at +0; faked ibifs fsck --repair --clock-is-right A.store; faked ibifs fsck A.store
         faked ibifs mint A.store | head -n 1 >> names; sort names | uniq -d | no grep .",
    );
}

/// A clock that stands still hands out dates ahead of it, each to be waited for a little longer.
#[test]
fn a_frozen_clock_hands_out_no_name_twice() {
    let env = TestEnv::new();
    env.sh("at '2026-11-21 12:00:00'
         faked ibifs init A.store --host archive-a.example.org; mkdir A
         faked ibifs mount A.store A
         for i in $(seq 40); do minted frozen-$i & done; wait; sort -u names > once");
    env.prints("wc -l < names; wc -l < once", "40\n40");
    env.sh("ibifs umount A; at '2026-11-21 13:00:00'; faked ibifs fsck A.store");
}

/// With a clock before 1995, when the dates of IBIps begin, no store is made and none mints, and
/// nothing is left behind.
#[test]
fn a_clock_before_1995_is_refused() {
    let env = TestEnv::new();
    let why = "the next free date, 1995-08-01T00:00:00Z, is ";
    env.complains(
        "at '1990-01-01 00:00:00'; faked ibifs init A.store --host archive-a.example.org",
        why,
    );
    env.sh("no ls A.store");
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A
         faked ibifs mount A.store A; ls A");
    env.complains(
        "timeout 8 mkdir A/.mint/early",
        "Resource temporarily unavailable",
    );
    env.complains(
        "faked timeout 8 ibifs mint A",
        "s away and the limit is 10 s",
    );
    env.sh("at +5s; minted later; ibifs umount A; faked ibifs fsck A.store");
}

/// A clock far ahead mints; when it is right again, minting is refused until then, fsck names it,
/// and a user who knows that the clock is right now goes on from the present: with other names, also
/// when the dates ahead come.
#[test]
fn a_clock_far_ahead_is_found_and_overcome() {
    let env = TestEnv::new();
    let clock = Hand(Arc::new(AtomicI64::new(TODAY)));
    let store = env.root().join("A.store");
    let setup = Setup {
        host: Some("archive-a.example.org".to_owned()),
        ..Setup::default()
    };
    let at = |time: i64| clock.0.store(time, Ordering::Relaxed);
    let (archive, _) =
        Archive::init(&store, &setup, Box::new(clock.clone()), &mut |_| ()).expect("a new store");
    let mut names = BTreeSet::new();
    let mut mint = |archive: &Archive| {
        let item = archive
            .depositor(&ibifs::outside::archive::Process)
            .mint(None, None)?;
        assert!(names.insert(item.names.preferred()), "{} twice", item.names);
        Ok::<String, ArchiveError>(item.names.preferred())
    };
    let year = 365 * 24 * HOUR;
    let ahead = TODAY + 10 * year;
    at(ahead);
    let first = mint(&archive).expect("minted far ahead");
    at(ahead + 2);
    let second = mint(&archive).expect("minted far ahead");
    archive.close();
    drop(archive);

    at(TODAY + HOUR);
    let open = || Archive::open(&store, Box::new(clock.clone())).expect("the store");
    let archive = open();
    let wait = mint(&archive).expect_err("refused").to_string();
    assert!(wait.contains("is 315356400.0 s away"), "{wait}");
    let found = Archive::check(&store, &clock, &mut |_| ())
        .expect("a check")
        .findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, CheckCode::DateAhead);

    let last = archive
        .keeper()
        .go_on_from_present()
        .expect("the clock is right now");
    assert!(last.is_some_and(|last| last.seconds() == ahead / SECOND));
    assert!(
        archive
            .keeper()
            .go_on_from_present()
            .expect("again")
            .is_none()
    );
    let found = Archive::check(&store, &clock, &mut |_| ())
        .expect("a check")
        .findings;
    assert!(found.is_empty(), "{found:?}");
    mint(&archive).expect("minted at present");
    archive.close();
    drop(archive);
    // Neither a new start nor a rebuilt index goes back to what is ahead.
    let archive = open();
    archive
        .keeper()
        .reindex(&mut |_| ())
        .expect("the index anew");
    at(TODAY + HOUR + SECOND);
    mint(&archive).expect("minted at present");
    // The items of the dates ahead are there, and removed ones may come back.
    for name in [&first, &second] {
        let item = archive
            .find_named(name)
            .expect("an answer")
            .expect("the item");
        archive
            .tree()
            .sync_item(&ibifs::outside::archive::tree::Place::of(&item.names))
            .expect("there");
    }
    // At their time these dates are passed over.
    at(ahead);
    mint(&archive).expect("minted ten years later");
    at(ahead + 2);
    mint(&archive).expect("minted ten years later");
}
