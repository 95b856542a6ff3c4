//! The interface for programs: `--json` of every command, and its exit status.

use std::collections::BTreeSet;

use clap::CommandFactory;
use ibifs::command::cli::Cli;

use crate::support::{Needs, TestEnv};
use schema::Schema;

mod schema;

/// A script that starts a service, waits until it says where it listens, and ends it.
macro_rules! service {
    ($command:literal) => {
        concat!(
            "rm -f said; ",
            $command,
            " > said & p=$!; until test -s said; do sleep 0.02; done; kill $p; wait $p; cat said"
        )
    };
}

/// Each command, what makes it say something in JSON, and a part of what that must be, for jq.
const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "init",
        "ibifs init C.store --host c.example.org --json",
        r#".host == "c.example.org""#,
    ),
    (
        "mount",
        "mkdir C; ibifs mount C.store C --json",
        r#".mount_point | endswith("C")"#,
    ),
    (
        "umount",
        "ibifs umount C --json",
        r#".store | endswith("/C.store")"#,
    ),
    (
        "status",
        "ibifs status --json A",
        r#".[0].index == "current" and .[0].used_by.pid > 1"#,
    ),
    ("mint", "ibifs mint A --json", ".rep != .ibip"),
    (
        "show",
        "ibifs show A/$(cat one) --json",
        r#".state == "Original""#,
    ),
    ("seal", "ibifs seal A/$(cat one) --json", ".rep != null"),
    (
        "unseal",
        "ibifs unseal A/$(cat one) --reason typo --json",
        ".rep != null",
    ),
    (
        "withdraw",
        "ibifs withdraw A/$(cat one) --reason because --json",
        ".rep != null",
    ),
    (
        "restore",
        "ibifs restore A/$(cat one) --json",
        ".rep != null",
    ),
    (
        "remove",
        "ibifs remove A/$(ibifs mint A | head -n 1) --json",
        ".rep != null",
    ),
    (
        "publish",
        "chmod 750 A/$(cat one); ibifs publish --untitled A/$(cat one) --json",
        r#".closed == 0 and (.page_url | endswith("?page"))"#,
    ),
    (
        "cite",
        "ibifs cite --list-styles --json; ibifs cite A/$(cat one) --style abnt --language pt-BR --json",
        r#".language == "pt-BR" and (.citation | length > 0)"#,
    ),
    (
        "find",
        "printf 'title: Tides\\ncreator: Souza\\n' > \"A/$(cat one):\"; ibifs find tides --store A --json",
        r#".[0].title == "Tides" and .[0].creators == ["Souza"]"#,
    ),
    (
        "history",
        "ibifs init H --host archive-h.example.org > init; echo 'history yes' >> H/archive.ibi; ibifs mint H > made; ibifs history H --json",
        r#".event == "minted" and .type == "cre" and .outcome == "success""#,
    ),
    (
        "verify",
        "ibifs prove --store H $(head -n 1 made) > proof; ibifs verify proof --store H --json",
        r#".index + 1 == .size and .event.event == "minted""#,
    ),
    (
        "cosign",
        "echo 'witness {http://127.0.0.1:1 w+d41461e9+BAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f}' >> H/archive.ibi; ibifs cosign H --json || true",
        ".size > 0 and (.witnesses[0].error | length) > 0",
    ),
    (
        "watch",
        "ibifs watch A --once --json",
        r#".event == "ready" and (.position | length) > 17"#,
    ),
    (
        "relate",
        "ibifs relate A/$(cat one) --metadata A/$(cat two) --json",
        r#".relation == "metadata" and .target.rep != null"#,
    ),
    (
        "unrelate",
        "ibifs unrelate A/$(cat one) --metadata --json",
        r#".relation == "metadata" and .target == null"#,
    ),
    ("ls", "ibifs ls A --json", "length == 5"),
    (
        "reindex",
        "ibifs reindex --json B.store",
        ".items == 1 and .findings == []",
    ),
    (
        "fsck",
        "ibifs fsck --json B.store",
        ".items == 1 and .errors == 0",
    ),
    ("scrub", "ibifs scrub --json A", ".items == 4"),
    (
        "repair",
        "ibifs backup A whole > /dev/null; ibifs repair A --all --from whole --json",
        ".items == 4 and .mended == 0 and .left == 0",
    ),
    (
        "audit",
        "ibifs audit A --with whole --json",
        ".items == 4 and .good == 4 and .remaining == 0",
    ),
    ("backup", "ibifs backup --json A saved", ".items == 4"),
    (
        "report",
        "ibifs report A --ndsa --json",
        "(.cells | length) == 20 and .backed_up != null and .audited != null and .scrubbed != null",
    ),
    (
        "copies",
        "ibifs copies A $(cat one) --json",
        ".enough and .counted == 2 and .copies[1].kind == \"backup\"",
    ),
    (
        "export",
        "ibifs export --json --bagit A/$(cat one) bags",
        ".items == 1 and .written == 1",
    ),
    (
        "import",
        "ibifs import --json B.store bags",
        ".packages == 1 and .taken == 1",
    ),
    (
        "copy",
        "ibifs copy A/$(cat two) B.store --json",
        ".items == 1 and .skipped == 0",
    ),
    (
        "transfer",
        "ibifs transfer A/$(cat one) B.store --json",
        ".items == 1 and .skipped == 0",
    ),
    (
        "claim",
        "ibifs mount B.store D && rm -r D/$(cat one) && ibifs umount D && ibifs claim A/$(cat one) --from B.store --json",
        ".items == 1 and .skipped == 0",
    ),
    (
        "upn",
        "ibifs upn A abcdef a.b/c 8JMKD3MGP8W --json",
        r#". == [{"name": "ABCDEF", "prefixes": ["a.b/c", "8JMKD3MGP8W"]}]"#,
    ),
    (
        "serve",
        service!("ibifs serve --listen 127.0.0.1:0 --json B.store"),
        r#".url | startswith("http://127.0.0.1:")"#,
    ),
    (
        "resolver",
        service!("ibifs resolver --db db --listen 127.0.0.1:0 --json"),
        r#".url | startswith("http://127.0.0.1:")"#,
    ),
    (
        "resolver register",
        "ibifs resolver register --db db 8JMKD3MGP8W/34PGRBS --json",
        r#".ibip == "8JMKD3MGP8W/34PGRBS" and .key != null"#,
    ),
    (
        "resolver key",
        "ibifs resolver key --db db --json",
        ".key | length == 43",
    ),
    (
        "resolver list",
        "ibifs resolver list --db db --json",
        "length == 1",
    ),
    (
        "resolver unregister",
        "ibifs resolver unregister --db db 8JMKD3MGP8W/34PGRBS --json",
        r#".ibip == "8JMKD3MGP8W/34PGRBS""#,
    ),
    (
        "resolver actors",
        "ibifs resolver actors --db db --json",
        ". == []",
    ),
    (
        "resolver documents",
        "ibifs resolver documents --db db --json",
        ". == []",
    ),
    (
        "id explain",
        "ibifs id explain --json 8JMKD3MGP8W/34PGRBS",
        ".port == 800",
    ),
    (
        "id check",
        "ibifs id check --json 8jmkd3mgp8w/34pgrbs",
        r#".ibip == "8jmkd3mgp8w/34pgrbs""#,
    ),
    (
        "quickstart",
        "ibifs quickstart --json demo",
        r#".mount_point | startswith("/") and endswith("/demo")"#,
    ),
    (
        "world",
        "mkdir W; ibifs world W --archive http://127.0.0.1:1 --cache cache --json",
        r#".source == "http://127.0.0.1:1" and (.mount_point | endswith("/W"))"#,
    ),
    (
        "world status",
        "ibifs world status W --json",
        ".cache.limit == 10737418240 and .requests == 0 and .silent == [] and .pinned.items == 0",
    ),
    (
        "world fetch",
        "ibifs world fetch W $(cat one) --json || true",
        ".files == null and .error != null",
    ),
    (
        "world pin",
        "ibifs world pin W $(cat one) --json || true",
        ".files == null and .error != null",
    ),
    (
        "world drop",
        "ibifs world drop W $(cat one) --json || true; ibifs umount W",
        ".files == null and .error != null",
    ),
];

/// Commands that are refused, each with its exit status.
const REFUSALS: &[(&str, i32)] = &[
    ("init", 2),
    ("init --adopt nowhere", 3),
    ("init B.store", 4),
    ("mount B.store D -o nothing", 2),
    ("mount nowhere D", 3),
    ("mount nowhere nothing", 3),
    ("mount B.store nowhere", 3),
    ("mount B.store B.store/col", 4),
    ("mount A.store D", 5),
    ("mount B.store A", 5),
    ("umount", 2),
    ("umount nowhere", 3),
    ("status nowhere", 3),
    ("mint", 2),
    ("mint A --translation-of A/$(cat one) --lang long", 2),
    ("mint nowhere", 3),
    ("mint A --edition-of 8JMKD3MGP8W/34PGRBS", 3),
    ("show A", 2),
    ("show no-identifier --store A", 2),
    ("show 8JMKD3MGP8W/34PGRBS --store A", 3),
    ("publish A/$(cat one)", 4),
    ("publish 8JMKD3MGP8W/34PGRBS --store A", 3),
    ("cite A/$(cat one) --style none", 2),
    ("cite A/$(cat one) --language fr", 2),
    ("cite A/$(cat one) --list-styles", 2),
    ("cite", 2),
    ("find", 2),
    ("watch A --from 7", 2),
    ("watch none", 3),
    ("find '*' --store A", 2),
    ("find nothing-like-it --store A", 3),
    ("cite 8JMKD3MGP8W/34PGRBS --store A", 3),
    ("relate A/$(cat one)", 2),
    (
        "relate 8JMKD3MGP8W/34PGRBS --metadata A/$(cat one) --store A",
        3,
    ),
    ("relate A/$(cat one) --next-edition A/$(cat one)", 4),
    ("unrelate A/$(cat one) --translation", 2),
    ("unrelate A/$(cat one) --metadata", 3),
    ("ls A --state Lost", 2),
    ("ls nowhere", 3),
    ("reindex nowhere", 3),
    ("reindex A.store", 5),
    ("fsck nowhere", 3),
    ("fsck --repair A.store", 5),
    ("scrub A --accept", 2),
    ("scrub A 8JMKD3MGP8W", 2),
    ("scrub nowhere", 3),
    ("repair A --all", 2),
    ("repair A --from B.store", 2),
    ("repair A --all --from A.store", 2),
    ("repair nowhere --all --from B.store", 3),
    ("backup nowhere saved2", 3),
    ("backup A A/saved", 4),
    ("copies nowhere", 3),
    ("report nowhere", 3),
    ("copies A 8JMKD3MGP8W/34PGRBS", 3),
    ("export A bags", 2),
    ("export --ocfl A/$(cat one) A.store/root", 4),
    ("import nowhere bags", 3),
    ("import B.store nowhere", 3),
    ("copy A/$(cat one)", 2),
    (
        "copy A/$(cat one) http://127.0.0.1:1/8JMKD3MGP8W/34PGRBS",
        2,
    ),
    ("copy A/$(cat one) nowhere", 3),
    ("transfer --store A 8JMKD3MGP8W/34PGRBS B.store", 3),
    ("transfer A/$(cat one) A", 4),
    ("serve nowhere", 3),
    ("resolver register --db db2 no-identifier", 2),
    ("resolver unregister --db db2 8JMKD3MGP8W/34PGRBS", 3),
    ("world D", 2),
    ("world --resolver http://127.0.0.1:1", 2),
    ("world D --resolver ftp://127.0.0.1", 2),
    (
        "world nowhere --resolver http://127.0.0.1:1 --cache cache",
        3,
    ),
    ("world D --resolver http://127.0.0.1:1 --cache one", 1),
    ("world status D", 3),
    ("world fetch D $(cat one)", 3),
    ("world pin D", 2),
    ("world drop D $(cat one)", 3),
    ("upn A abc a.b", 2),
    ("upn A ABCDEF", 2),
    ("upn A --remove NOBODY", 3),
    ("id check no-identifier", 1),
];

/// The commands that can be given, with those below others; `prefix` is what stands before them.
fn commands(command: &clap::Command, prefix: &str, found: &mut BTreeSet<String>) {
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        let name = format!("{prefix}{}", below.get_name());
        commands(below, &format!("{name} "), found);
        // `ibifs id` alone is nothing to say.
        if !below.is_subcommand_required_set() {
            found.insert(name);
        }
    }
}

fn environment() -> TestEnv {
    let env = TestEnv::with(Needs::RenameFlags).with_a();
    env.sh("mint A one > one; mint A two > two; mkdir D
         ibifs init B.store --host archive-b.example.net");
    env
}

/// Every command says what it did in JSON if it is asked to. Nothing else is on standard output, and
/// nothing at all on standard error.
#[test]
fn every_command_answers_in_json() {
    let messages: BTreeSet<String> = ANSWERS
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    let mut known = BTreeSet::new();
    commands(&Cli::command(), "", &mut known);
    // It prints a program for a shell.
    known.remove("completions");
    // It prints a text in a form of its own.
    known.remove("prove");
    // It prints what the command prints that it runs.
    known.remove("work");
    assert_eq!(messages, known, "ANSWERS has each command with its --json");
    let env = environment();
    let schema = Schema::read();
    for (name, command, expected) in ANSWERS {
        // Of several lines the last has the sums.
        env.prints(
            &format!(
                "{{ {command}; }} 2> complaint > answer; jq -se '.[-1] | {expected}' answer; cat complaint"
            ),
            "true",
        );
        schema.holds(&name.replace(' ', "-"), &env.sh("cat answer"));
    }
    env.sh("ibifs umount demo");
}

/// A command on something that is absent, refused, not understood or in use ends with the status for that, with or
/// without `--json`. It prints nothing but one complaint, in JSON where that was requested.
#[test]
fn refusals_have_their_status() {
    let env = environment();
    let script: String = REFUSALS
        .iter()
        .flat_map(|(command, _)| [(*command).to_owned(), format!("{command} --json")])
        .map(|command| {
            format!(
                "status=0; ibifs {command} > out 2> complaint || status=$?
                 test ! -s out; {}; echo $status\n",
                if command.ends_with("--json") {
                    "jq -c . complaint >> complaints; jq -e \".status == $status\" complaint > /dev/null"
                } else {
                    "head -c 7 complaint | grep -qE '^(ibifs: |error: )'"
                }
            )
        })
        .collect();
    let printed = env.sh(&script);
    let mut messages = printed.lines();
    for (command, expected) in REFUSALS {
        for json in ["", " --json"] {
            let expected = expected.to_string();
            assert_eq!(messages.next(), Some(expected.as_str()), "{command}{json}");
        }
    }
    Schema::read().holds("error", &env.sh("cat complaints"));
    // A scrub at work, a port that is taken, a demonstration that is mounted.
    env.sh("ibifs scrub A; ibifs quickstart demo");
    env.exits("flock A.store/fixity/progress ibifs scrub --json A", 5);
    env.exits("ibifs quickstart --json demo", 5);
    env.sh("ibifs umount demo");
}

/// `ibifs status` shows who holds a store, how many items there are, how many were minted lately, and
/// how the index is: of a mounted store, one that is not, and one that is damaged.
#[test]
fn status_shows_how_a_store_is() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; mint A two > two; mint A three; rmdir A/$(cat two)/doc; rmdir A/$(cat two)
              mkdir -p A/b.example.org/b/1999/01.01.01.01
              # Another process sees an item that has arrived a moment later.
              for i in $(seq 100); do ibifs status A --json | jq -e '.[0].items.copies == 1' > seen && break; sleep 0.05; done");
    let is = |place: &str, expected: &str| {
        env.prints(
            &format!("ibifs status {place} --json | jq -e '.[0] | {expected}'"),
            "true",
        );
    };
    is(
        "A",
        r#".items == {"originals": 3, "copies": 1, "removed": 1, "withdrawn": 0}"#,
    );
    is(
        "A",
        ".minted.hour == 4 and .minted.day == 4 and .minted.month == 4",
    );
    is(
        "A.store",
        &format!(".used_by.pid == {}", env.sh("daemon A.store")),
    );
    is(
        "A",
        r#".used_by.user == "root" and .index == "current" and .trouble == null"#,
    );
    // It was started in the last minute.
    env.sh(
        "since=$(date +%s -d $(ibifs status A --json | jq -r '.[0].used_by.since'))
              test $(($(date +%s) - since)) -lt 60 -a $((since - $(date +%s))) -lt 3",
    );
    env.prints(
        "ibifs status A | sed -n '4,10s/[0-9]\\{4\\}-[^ ]*Z/DATE/p;4,10s/^index.*/&/p;4,10s/^items.*/&/p' | sed 's/process [0-9]*/process N/'",
        "used by  process N of root since DATE\nitems    3 originals, 1 copy, 1 removed\nlast     DATE\nindex    current",
    );
    // A user writes something into the lock: it is reported as a hint only.
    env.sh("cp A.store/lock lock; sed s/^pid.*/pid\\ 1/ lock > other; cat other > A.store/lock");
    is(
        "A.store",
        ".used_by.user == null and .used_by.since == null",
    );
    // The lock says nothing of a process that has ended, and the system is queried.
    env.sh("sed s/^pid.*/pid\\ $$/ lock > other; cat other > A.store/lock");
    is(
        "A.store",
        &format!(
            r#".used_by.pid == {} and .used_by.user == "root""#,
            env.sh("sed -n 's/^pid //p' lock")
        ),
    );
    // Old names count as old; 40 days later nothing was minted lately.
    env.sh("cat lock > A.store/lock; ibifs umount A");
    is(
        "A.store",
        r#".used_by == null and .mount_point == null and .index == "current""#,
    );
    env.prints(
        "ibifs status A.store | sed -n 's/^used by  //p'",
        "no process",
    );
    env.prints(
        "at +40d; faked ibifs status A.store | sed -n 's/^minted   //p'",
        "0 in the last hour, 0 in the last day, 0 in the last 30 days",
    );
    // After a crash the index may be behind, until the next start.
    env.sh("ibifs mount A.store A; mint A four; p=$(daemon A.store)
              kill -9 $p; while kill -0 $p; do sleep 0.01; done 2> /dev/null; umount -l A");
    is("A.store", r#".index == "behind" and .items.originals == 4"#);
    env.sh("ibifs mount A.store A; ibifs umount A");
    is("A.store", r#".index == "current""#);
    for (damage, index) in [
        (
            "in_database A.store/relations.sqlite3 'PRAGMA user_version = 3'",
            "older",
        ),
        (
            "in_database A.store/relations.sqlite3 'PRAGMA user_version = 999'",
            "newer",
        ),
        (
            "dd if=/dev/urandom of=A.store/relations.sqlite3 bs=4096 count=1 conv=notrunc status=none",
            "damaged",
        ),
        ("lose_index A.store", "missing"),
    ] {
        env.sh(damage);
        is(
            "A.store",
            &format!(r#".index == "{index}" and .items == null and .trouble != null"#),
        );
        env.prints(
            &format!("ibifs status A.store | grep -c '^index    {index}: '"),
            "1",
        );
    }
}
