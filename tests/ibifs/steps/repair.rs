//! A repair is stopped at each durable step, by a kill or an error: the item has the damaged file or the whole one, the damaged
//! one is not lost, and the same command again mends it.

use super::command::{at_steps, command, stop_at};
use super::supervisor::What;
use crate::http::served::Served;
use crate::support::TestEnv;

const REPAIR: [&str; 5] = ["repair", "D", "--all", "--from", "S"];

/// A store `S`, and a copy `D` of it of which one file is damaged.
fn stores() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir before
         ibifs init S --host archive-a.example.org > /dev/null
         ibifs init D --host archive-b.example.net > /dev/null
         ibifs mint S | head -n 1 > item; file=col/$(< item)/doc/file
         echo whole > S/$file; touch -d '1 hour ago' S/$file; ibifs copy --store S $(< item) D > /dev/null
         ibifs scrub D > /dev/null; echo broken | head -c 6 > D/$file; touch -r S/$file D/$file; echo $file > file
         cp -a D before");
    env
}

/// Repairs with a step stopped. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let store = env.root().join("D");
    let ended = stop_at(env, &REPAIR, &store, (at, what));
    let step = ended.step;
    let there = env.sh("cat D/$(< file); cat D/damaged/$(< item)/doc/* 2> /dev/null || true");
    let is_one = there.starts_with("broken") || there == "whole\nbroken";
    assert!(is_one, "{step}: {there}");
    if !ended.reached {
        return false;
    }
    let again = command(env, &REPAIR).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    let whole = env.sh(
        "cat D/$(< file); cat D/damaged/$(< item)/doc/*; echo; stat -c %h D/$(< file) D/damaged/$(< item)/doc/*
         find D/staging D/handover/incoming D/fixity/damaged -type f; ibifs scrub D; ibifs fsck D | tail -n 1",
    );
    assert_eq!(
        whole, "whole\nbroken\n1\n1\n2 items, 1 file, 6 bytes\n2 items, 0 findings",
        "{step}"
    );
    true
}

#[test]
fn killed_while_a_file_is_mended() {
    let env = stores();
    at_steps(2, 5, |at| stops_at(&env, at, What::Kill));
}

#[test]
fn failing_while_a_file_is_mended() {
    let env = stores();
    at_steps(2, 5, |at| stops_at(&env, at, What::Fail(libc::ENOSPC)));
}

/// A store `S`, and a copy `D` of it that has lost the item.
fn stores_with_a_lost_item() -> TestEnv {
    let env = stores();
    env.sh("rm -r D before/D; cp -a S/$(< file) was; ibifs init D --host archive-b.example.net > /dev/null
         ibifs copy --store S $(< item) D > /dev/null; ibifs scrub D > /dev/null; rm -r D/col/$(< item); cp -a D before");
    env
}

/// Brings a lost item back with a step stopped, and again. False where it ended without having come to that.
#[track_caller]
fn brings_back_at(env: &TestEnv, from: &str, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let repair = ["repair", "D", "--all", "--from", from];
    let ended = stop_at(env, &repair, &env.root().join("D"), (at, what));
    let step = ended.step;
    if !ended.reached {
        return false;
    }
    let again = command(env, &repair).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    let whole = env.sh(
        "cmp D/$(< file) was; stat -c %y D/$(< file) was | uniq | wc -l; diff S/col/$(< item)/.ibi D/col/$(< item)/.ibi
         ls -A D/col/$(< item)/doc; find D/staging D/fixity/damaged -type f; ibifs scrub D; ibifs fsck D | tail -n 1",
    );
    assert_eq!(
        whole, "1\nfile\n2 items, 1 file, 6 bytes\n2 items, 0 findings",
        "{step}"
    );
    true
}

#[test]
fn killed_while_an_item_is_brought_back() {
    let env = stores_with_a_lost_item();
    at_steps(2, 5, |at| brings_back_at(&env, "S", at, What::Kill));
}

#[test]
fn failing_while_an_item_is_brought_back() {
    let env = stores_with_a_lost_item();
    let full = What::Fail(libc::ENOSPC);
    at_steps(2, 5, |at| brings_back_at(&env, "S", at, full));
}

#[test]
fn killed_while_an_item_is_brought_back_from_a_url() {
    let env = stores_with_a_lost_item();
    let served = Served::start(&env, "S");
    at_steps(2, 5, |at| brings_back_at(&env, &served.url, at, What::Kill));
}

/// A file that two generations share is mended with a step stopped, and again: both have the whole file, and the third, in which
/// it was another one, is as it was.
#[test]
fn stopped_while_generations_are_mended() {
    let env = stores();
    env.sh("for n in 1 2 3; do
             test $n != 2 || { echo newer > S/$(< file); touch -d '1 hour ago' S/$(< file); ibifs scrub S > /dev/null; sleep .05; }
             ibifs backup S G --keep 9d,9m > /dev/null; mv $(ls -d G/2* | tail -n 1) G/200$n-01-01T000000Z
         done
         sick=G/2003-01-01T000000Z/$(< file); touch -r $sick time; printf X | dd of=$sick conv=notrunc status=none; touch -r time $sick
         cp -a G before");
    let repair = ["repair", "G", "--all", "--from", "S"];
    for what in [What::Kill, What::Fail(libc::ENOSPC)] {
        at_steps(2, 5, |at| {
            env.sh("rm -rf G; cp -a before/G .");
            let ended = stop_at(&env, &repair, &env.root().join("G"), (at, what));
            let step = ended.step;
            let there = env.sh("cat G/2001*/$(< file); { cat G/200[23]*/$(< file) G/2003*/damaged/$(< item)/doc/* 2> /dev/null || true; } | LC_ALL=C sort -u | head -n 1");
            assert!(there == "whole\nXewer" || !ended.reached, "{step}: {there}");
            if !ended.reached {
                return false;
            }
            let again = command(&env, &repair).output().expect("it runs");
            assert!(again.status.success(), "{step}: {again:?}");
            let whole = env.sh(
                "cat G/200*/$(< file); find G/*/handover/incoming -type f; for it in G/2*; do ibifs fsck $it | tail -n 1; done",
            );
            let clean = ["2 items, 0 findings"; 3].join("\n");
            assert_eq!(whole, format!("whole\nnewer\nnewer\n{clean}"), "{step}");
            true
        });
    }
}
