//! The log of a store, `STORE/log`: whatever ends a process, fills the disk, moves the clock or copies the store, each
//! event is there once, and whatever somebody changes in it is found.

use crate::support::{Disk, Format, TestEnv};

/// The functions of these scripts. That a store keeps a history is its first event.
const TOOLS: &str = r#"
# A store that keeps a history.
begins() { ibifs init $1 --host archive-a.example.org > init.out; echo 'history yes' >> $1/archive.ibi; }
# Each mint is told once, and the lines of the log are those of the index, in their order; the store is sound.
told() {
    ibifs history $1 --json > events; cut -d ' ' -f 3- $1/log/events/*.txt | cmp - events
    # The item of the Archive service is older than its history.
    diff <(jq -r 'select(.event == "minted").item' events | sort) \
        <(ibifs ls $1 | awk '$1 == "Original" { print $2 }' | grep -vxF "$(grep -o 'rep [^ }]*' $1/archive.ibi | cut -d ' ' -f 2)" | sort)
    ibifs fsck $1 > found || { cat found >&2; false; }
}
# The number of mints in the history of the store $1.
mints() { ibifs history $1 --json | jq -r 'select(.event == "minted").item' | wc -l; }
# What fsck finds in the store $1: codes and subjects.
finds() { timeout 60 ibifs fsck $1 --json > report || test $? = 1; jq -r '.findings[] | "\(.code) \(.subject)"' report; }
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{TOOLS}\n{script}"), expected);
}

/// A daemon that is killed again and again while it mints: each mint is in the log once.
#[test]
fn kills_lose_and_repeat_no_event() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; mkdir M
        for round in {1..10}; do
            ibifs mount S M
            (for i in {1..2000}; do mkdir M/.mint/$round-$i 2> gone || exit 0; done) & worker=$!
            # The log gets its events once a second.
            sleep 1.$((RANDOM % 10)); kill -9 $(daemon S); wait $worker; ibifs umount M
        done
        ibifs mount S M; ibifs umount M; told S; test $(wc -l < events) -gt 100"#,
    );
}

/// A full disk takes no events: the log gets them when there is room again.
#[test]
fn a_full_disk_only_delays_events() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 16);
    sh(
        &env,
        "begins disk/S; mkdir M; ibifs mount disk/S M; mkdir M/.mint/first; item=$(rep M/.mint/first)
         # The rights of an item are told once its files were counted.
         waits eval \"sqlite3 disk/S/relations.sqlite3 'SELECT rep FROM content JOIN item ON item.id = content.item' | grep -x $item\"; sleep 1.5
         dd if=/dev/zero of=disk/filler bs=1M status=none 2> full || true
         dd if=/dev/zero of=disk/filler2 bs=1 count=4096 status=none 2> full || true
         # Those that are answered are told, those that are not are not.
         for i in {1..300}; do mkdir M/.mint/x$i 2> full || break; done
         for mode in 700 750 700 750; do chmod $mode M/$item; done; sleep 2
         rm disk/filler*; mkdir M/.mint/last; ibifs umount M; test $(ibifs history --store disk/S $item | grep -c -e ' rights ' -e ' published ') = 4; ibifs mount disk/S M; ibifs umount M
         told disk/S; test $(wc -l < events) -ge 2",
    );
    drop(disk);
}

/// A history does not need its index: made again from the files it is the same, also by `reindex`, and in a copy.
#[test]
fn the_history_needs_only_its_files() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; mkdir M; ibifs mint S --count 300 > minted; ibifs mount S M; rm -r M/$(head -n 1 minted); ibifs umount M
         ibifs history S > before; as_before() { ibifs history $1 | head -n $(wc -l < before) | cmp - before; }
         ibifs reindex S; as_before S; lose_index S; ibifs mount S M; as_before S; ibifs umount M; ibifs fsck S
         rsync -a --exclude 'relations.sqlite3*' S/ C; ibifs reindex C 2> said; as_before C; ibifs fsck C
         lose_index C; ibifs fsck --repair C > repaired; as_before C; ibifs history C > before
         ibifs mint C > more 2> said; as_before C; test $(ibifs history C | wc -l) = $(($(wc -l < before) + 1)); ibifs fsck C",
    );
}

/// An index that is made again from the lines of the log takes none of another one than the entry.
#[test]
fn a_rebuilt_index_takes_no_forged_line() {
    let env = TestEnv::new().with_index_file();
    prints(
        &env,
        r#"begins S; ibifs mint S --count 300 > minted; sed -i '/^280 /s/"minted"/"removed"/' S/log/events/*.txt; lose_index S
         for i in 1 2; do ibifs mint S > more 2> said; grep -o 'the line of entry 280 is .*' said | sort -u; done
         ibifs history S 2> out | grep -c ' removed ' || true; finds S | grep log-; sed -i '/^280 /s/"removed"/"minted"/' S/log/events/*.txt
         ibifs mint S > more; told S; rm S/log/key; { ibifs fsck S || true; } | grep -o 'restore the directory' | wc -l"#,
        "the line of entry 280 is missing in 'log/events', or damaged; restore the directory 'log' of the store from a backup\n\
         the line of entry 280 is missing in 'log/events', or damaged; restore the directory 'log' of the store from a backup\n0\n\
         log-damaged log/events\n1",
    );
}

/// The end of a history is in the log when that goes on, with its time.
#[test]
fn a_gap_in_the_history_is_told() {
    let env = TestEnv::new();
    prints(
        &env,
        "begins S; ibifs mint S > minted; sed -i '/^history yes/d' S/archive.ibi; ibifs mint S > minted; ibifs history S > out 2> said || true
         sleep 1; echo 'history yes' >> S/archive.ibi; ibifs mint S > minted; ibifs history S | sed 's/^[^ ]*  *//; s/ [^ ]*archive-a.*//'; test \"$(ibifs history S --json | jq -r .time | sed -n '3p; 5p' | sort -r)\" = \"$(ibifs history S --json | jq -r .time | sed -n '3p; 5p')\"; ibifs fsck S",
        "policy       root\nminted       root\npolicy       root\nminted       root\npolicy       root (no history)\n4 items, 0 findings",
    );
}

/// A backup in the middle of work has a log that counts what its index knows: it goes on from there, with each event once.
#[test]
fn a_backup_goes_on_with_its_log() {
    let env = TestEnv::new().with_index_file();
    sh(
        &env,
        r#"trap 'touch enough' EXIT; begins S; mkdir M N; ibifs mount S M
         (i=0; while test ! -e enough; do mkdir M/.mint/$((i++)); done) & worker=$!
         for round in 1 2 3; do
             sleep 1.2; ibifs backup S B > said; rm -rf R; cp -a B R; ibifs fsck R > found || { cat found >&2; false; }
             test $(stat -c %a R/log/key R/log/events | xargs | tr ' ' -) = 600-700; cmp S/log/key R/log/key
             ibifs mount R N; mkdir N/.mint/own$round; ibifs umount N; ibifs history R --json > events; ibifs fsck R
             cut -d ' ' -f 3- R/log/events/*.txt | cmp - events; jq -r 'select(.event == "minted").item' events | sort > told
             # Its log may be a moment newer than its items.
             test -z "$(uniq -d told; ibifs ls R | awk '$1 == "Original" { print $2 }' | tail -n +2 | sort | comm -13 told -)"
         done
         touch enough; wait $worker; ibifs umount M; told S"#,
    );
    // Up to date, and without what the store has no more.
    sh(
        &env,
        "ibifs backup S B > said; diff -r -x told S/log B/log; mv S/log gone; ibifs backup S B | grep -q log-set-back; test ! -e B/log
         { ibifs fsck B || true; } | grep ^log-set-back:",
    );
}

/// What grows while it is copied is no finding: a backup needs no more lines than the checkpoint counts.
#[test]
fn a_backup_does_not_wait_for_a_steady_log() {
    let env = TestEnv::new();
    sh(
        &env,
        "trap 'touch enough' EXIT; begins S; ibifs mint S --count 300 > minted; lines=$(echo S/log/events/*.txt)
         (exec >> $lines; while test ! -e enough; do echo growing; done) & worker=$!
         ibifs backup S B; touch enough; wait $worker; ibifs fsck B; ibifs mint B > minted; test $(mints B) = 301",
    );
}

/// The lines of a batch, its checkpoint and the name of that are synced: three syncs between two checkpoints.
#[test]
fn a_batch_of_events_costs_three_syncs() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; mkdir M; ibifs mount S M; size() { sed -n 2p S/log/checkpoint; }; grown() { test $(size) -gt $before; }
         minted() { before=$(size); mkdir M/.mint/$1; waits grown; }
         waits size; minted first
         strace -f -qq -e trace=fsync,fdatasync,syncfs,renameat,renameat2 -o messages -p $(daemon S) & traced $(daemon S)
         for i in 1 2 3 4; do minted $i; done; kill %1; wait %1 || true
         writer=$(sed -n 's/ .*"checkpoint".*//p' messages | sort -u)
         # A call during which another thread makes one has a second line, "resumed".
         awk -v writer="$writer" '$1 == writer && /sync\(/ { syncs += made > 0 } /"checkpoint"/ { made++; all = syncs }
             END { if (made < 3 || all != 3 * (made - 1)) { print all " syncs of " made " batches"; exit 1 } }' messages"#,
    );
}

/// What a power cut leaves of the last tile and bundle is no finding, proves what it proved, and is written again.
#[test]
fn the_last_tile_is_written_again() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; ibifs mint S --count 300 | grep example.org > minted; mkdir M; item=$(tail -n 1 minted)
         last() { echo S/log/tile/{0,entries}/*.p/*; }; test $(last | wc -w) = 2
         for change in 'rm $(last)' 'truncate -s 0 $(last)' 'truncate -s -40 $(last)' 'truncate -s -40 $(last); truncate -s +40 $(last)' 'rm -r S/log/tile/{0,entries}/*.p'; do
             eval "$change"; test -z "$(finds S)"; ibifs prove --store S $item > proof; ibifs verify --store S proof
             rm -rf B; ibifs backup S B > said; test -z "$(finds B)"
             ibifs mount S M; ibifs umount M; told S; ibifs prove --store S $item > proof; ibifs verify --store S proof
         done"#,
    );
    prints(
        &env,
        r#"for file in S/log/tile/{0,entries}/*.p/*; do cp -a $file whole; printf x | dd of=$file conv=notrunc bs=1 seek=9 status=none; finds S; cp -a whole $file; done | sed 's/p.*/p/'"#,
        "log-damaged log/tile/0/001.p
log-damaged log/tile/entries/001.p",
    );
}

/// A store with events in three months, under a clock that goes on from month to month.
const THREE_MONTHS: &str = "
    at '2027-01-15 12:00:00'; faked ibifs init S --host archive-a.example.org > init.out; echo 'history yes' >> S/archive.ibi
    faked ibifs mint S --count 300 > minted; cp -a S older
    at '2027-02-15 12:00:00'; faked ibifs mint S --count 300 > minted
    at '2027-03-15 12:00:00'; faked ibifs mint S --count 2 > minted
    finds() { faked timeout 60 ibifs fsck $1 --json > report || test $? = 1; jq -r '.findings[] | \"\\(.code) \\(.subject)\"' report; }
    # What fsck finds in a copy of the store after a change.
    changed() { test -e T || cp -a S T; rm -rf T/log T/relations*; cp -a S/log S/relations* T; (cd T/log; eval \"$1\"); finds T | sort | xargs; }";

/// Whatever is changed in the files of the log is found.
#[test]
fn each_change_of_the_log_is_found() {
    let env = TestEnv::new();
    sh(&env, &format!("{THREE_MONTHS}\nls S/log/events | xargs | grep '2027-01.txt 2027-02.txt 2027-03.txt'; finds S > none; test ! -s none
        faked ibifs init O --host archive-a.example.org > init.out; echo 'history yes' >> O/archive.ibi; faked ibifs mint O > minted"));
    for (change, found) in [
        (
            "sed -i 3s/minted/removed/ events/2027-02.txt",
            "log-damaged log/events",
        ),
        (
            "sed -E -i '3{s/^([0-9]+ )e/\\1d/;t;s/ ./ e/}' events/2027-02.txt",
            "log-damaged log/events",
        ),
        ("sed -i '$d' events/2027-01.txt", "log-damaged log/events"),
        (
            "truncate -s -9 events/2027-03.txt",
            "log-damaged log/events",
        ),
        ("rm events/2027-02.txt", "log-damaged log/events"),
        ("rm -r events", "log-damaged log/events"),
        (
            "mv tile/0/000 x; mv tile/0/001 tile/0/000; mv x tile/0/001",
            "log-damaged log/tile/0/000 log-damaged log/tile/0/001",
        ),
        ("rm tile/0/000", "log-damaged log/tile/0/000"),
        (
            "printf xyz | dd of=tile/entries/000 conv=notrunc bs=1 seek=99 status=none",
            "log-damaged log/tile/entries/000",
        ),
        ("sed -i 2s/.*/1/ checkpoint", "log-damaged log"),
        ("rm checkpoint", "log-damaged log"),
        ("rm key", "log-damaged log"),
        ("rm key.pub", "log-damaged log"),
        ("cp ../../O/log/key .", "log-damaged log"),
        ("cp ../../O/log/key.pub .", "log-damaged log"),
        // With all that signs it is a log; it has neither as many entries nor these.
        (
            "cp ../../O/log/{key,key.pub,checkpoint} .",
            "log-damaged log/checkpoint log-set-back log",
        ),
        (
            "rm -r ../log; cp -r ../../O/log ..",
            "log-differs log log-set-back log",
        ),
        ("rm -r ../log; cp -r ../../older/log ..", "log-set-back log"),
        ("rm -r ../log", "log-set-back log"),
        (
            "in_database ../relations.sqlite3 \"UPDATE event SET item = NULL, line = 'x' WHERE number = 301\"",
            "log-differs log",
        ),
        (
            "in_database ../relations.sqlite3 \"DELETE FROM event WHERE number = 301\"",
            "log-differs log",
        ),
    ] {
        let script = format!("{TOOLS}\nchanged_log() {{ changed \"$(< change)\"; }}");
        std::fs::write(env.root().join("change"), change).expect("it is written");
        let functions = THREE_MONTHS.split_once("finds()").expect("functions").1;
        let printed = env.sh(&format!("{script}\nfinds(){functions}\nchanged_log"));
        assert_eq!(printed, found, "{change}");
    }
}

/// What a crash left unnoted in the index, be it many batches, is noted at the next start, and not logged again.
#[test]
fn events_that_are_in_the_log_are_not_logged_again() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; ibifs mint S --count 2500 > minted; ibifs history S > before
         in_database S/relations.sqlite3 'UPDATE event_log SET size = 18'
         ibifs mint S > minted; ibifs history S | head -n 2501 | cmp - before; told S; test $(wc -l < events) = 2502",
    );
}

/// An event that waits in an index that was set back comes after those that the log has got since.
#[test]
fn an_event_of_an_older_index_waits_for_its_turn() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; ibifs mint S --count 4 | grep example.org > minted; item=$(tail -n 1 minted)
         in_database S/relations.sqlite3 "CREATE TEMP TABLE last AS SELECT * FROM event WHERE number = 5;
             DELETE FROM event WHERE number > 3; DELETE FROM event_item WHERE first > 3 AND first < 5; UPDATE event_log SET size = 3;
             UPDATE event_item SET first = 4 WHERE first = 5;
             INSERT INTO event SELECT 4, 4, randomblob(16), replace(line, '"minted"', '"described"') FROM last"
         test $(mints S) = 2; ibifs history S | tail -n 1 | grep "described.*$item"
         ibifs mint S > more; told S; test $(mints S) = 5; jq -r .event events | tail -n 2 | xargs | grep '^described minted$'
         ibifs history --store S $item --json | jq -r .event | xargs | grep '^minted described$'
         ibifs history --store S $(sed -n 3p minted) --json | jq -r .event | xargs | grep '^minted$'"#,
    );
}

/// A log that was set back alone is refused, reported, and left as it is; the store works, and when the log is there again
/// it gets the events of the meantime. (An older copy of the whole store agrees with itself: only a witness knows better.)
#[test]
fn a_log_that_was_set_back_is_refused() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; mkdir M; ibifs mint S > minted; cp -a S/log older; ibifs mint S > minted; cp -a S/log newer
         rm -r S/log; cp -a older S/log
         ibifs mint S 2> said > minted
         grep 'STORE/log has 2 events, and the index knows of 3: the log was set back' said
         ibifs mount S M; mkdir M/.mint/x; sleep 1.5; ibifs umount M; diff -r older S/log
         test $(mints S) = 4",
    );
    prints(&env, "finds S", "log-set-back log");
    sh(
        &env,
        "echo broken > S/ledger; ibifs fsck --repair S > printed || test $? = 1; grep ^log-set-back: printed
         grep '^ledger-broken: .*repaired' printed; diff -r -x told older S/log; ls S/log/told | grep -q .
         rm -r S/log; cp -a newer S/log; ibifs mount S M; ibifs umount M; told S; test $(mints S) = 4",
    );
}

/// Two stores that were one have two logs under one key: the one does not take that of the other, though it has grown.
#[test]
fn another_log_under_the_same_key_is_refused() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; ibifs mint S > minted; cp -a S T; ibifs mint S > minted; ibifs mint T --count 2 > minted 2> copied
         mv S/log own; cp -a T/log S/log; ibifs mint S 2> said > minted
         grep 'event 2 of STORE/log is not the one that the index knows' said; diff -r T/log S/log",
    );
    prints(&env, "finds S", "log-differs log");
    sh(
        &env,
        "rm -r S/log; mv own S/log; ibifs mint S > minted; told S; test $(mints S) = 4",
    );
}

/// An index of an older version has the events of the log again, and that it was brought up to date is told once.
#[test]
fn an_older_index_gets_the_history_again() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; ibifs mint S --count 300 > minted; ibifs history S > before
         in_database S/relations.sqlite3 'DROP TABLE event; DROP TABLE event_item; DROP TABLE event_log; PRAGMA user_version = 14'
         ibifs mint S > minted; ibifs mint S > minted; ibifs history S | head -n 301 | cmp - before
         ibifs history S --type upgraded | grep -c '(from version 14)$' | grep '^1$'; told S",
    );
}

/// An index that names the item with each event, as the first version with a history did, has the same events afterwards.
#[test]
fn an_index_with_a_name_in_each_event_is_read() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; ibifs mint S --count 50 | grep example.org > minted; mkdir M; ibifs mount S M; item=$(head -n 1 minted); other=$(tail -n 1 minted)
         ibifs relate M/$item --next-edition M/$other > out; rm -r M/$(sed -n 11p minted); ibifs umount M
         ibifs history S > before; ibifs history --store S $item > of_item; test $(wc -l < of_item) -ge 1
         in_database S/relations.sqlite3 \"CREATE TABLE older (number INTEGER PRIMARY KEY, item TEXT, salt BLOB NOT NULL, line TEXT NOT NULL, logged INTEGER) STRICT;
             INSERT INTO older SELECT number + 7, (SELECT name FROM event_item WHERE first = item), salt, line, number - 1 FROM event; DROP TABLE event; DROP TABLE event_item; DROP TABLE event_log;
             ALTER TABLE older RENAME TO event; CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
             CREATE INDEX event_waiting ON event (number) WHERE logged IS NULL; CREATE UNIQUE INDEX event_logged ON event (logged) WHERE logged IS NOT NULL;
             UPDATE event SET logged = NULL WHERE logged > 40; PRAGMA user_version = 15\"
         ibifs mint S > more; ibifs history S | head -n $(wc -l < before) | cmp - before; ibifs history --store S $item | cmp - of_item
         ibifs history S --json > events; cut -d ' ' -f 3- S/log/events/*.txt | cmp - events
         test $(in_database S/relations.sqlite3 'SELECT count(*) FROM event_item') = 51; ibifs fsck S",
    );
}

/// The clock is set back by two months: lines stay in their order, and the next month begins when it comes.
#[test]
fn a_clock_that_is_set_back_loses_no_event() {
    let env = TestEnv::new();
    sh(
        &env,
        "at '2027-03-15 12:00:00'; faked ibifs init S --host archive-a.example.org > init.out
         echo 'history yes' >> S/archive.ibi; faked ibifs mint S --count 2 | grep example.org > reps
         at '2027-01-15 12:00:00'; faked ibifs relate --store S $(head -n 1 reps) --next-edition $(tail -n 1 reps)
         at '2027-04-15 12:00:00'; faked ibifs mint S > minted
         cut -d ' ' -f 1 S/log/events/2027-03.txt | xargs | grep '^0 1 2 3 4$'
         cut -d ' ' -f 1 S/log/events/2027-04.txt | xargs | grep '^5$'
         test $(ls S/log/events | wc -l) = 2; faked ibifs history S --json > told
         cut -d ' ' -f 3- S/log/events/*.txt | cmp - told; faked ibifs fsck S",
    );
}

/// A process that has no lock leaves its events in files, which the next one that has it takes to the log, each once.
#[test]
fn events_that_are_left_are_taken_to_the_log() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; mkdir M; ibifs mint S > minted; item=$(head -n 1 minted)
         echo x > S/col/$item/doc/x; touch -d '1 hour ago' S/col/$item/doc/x
         test ! -e S/log/told; ibifs scrub --dry-run S; test ! -e S/log/told; ibifs scrub S
         test "$(stat -c '%a' S/log/told S/log/told/* | xargs)" = '700 600'
         # Not in the index yet, and told all the same, as the latest.
         test $(in_database S/relations.sqlite3 'SELECT count(*) FROM event') = 2
         ibifs history S | tail -n 1 | grep 'scrubbed  *root (2 items, 1 file, 2 bytes)$'; ibifs history S --type scrubbed > before
         # The content changes, and its time does not.
         touch -r S/col/$item/doc/x time; echo y > S/col/$item/doc/x; touch -r time S/col/$item/doc/x; sleep 1.1
         for round in 1 2; do ibifs scrub S > found || test $? = 1; grep ^damaged: found; done
         ibifs history S --json | jq -r 'select(.item) | [.event, .type, .outcome, .note // ""] | @csv' | xargs -n 1 | tail -n 1 | grep '^damaged,fix,failure,damaged doc/x$'
         test $(ls S/log/told | wc -l) = 4; ibifs mount S M
         taken() { waits eval 'test -z "$(ls S/log/told)"'; }; taken
         ibifs scrub S --accept $item > found; ibifs scrub S $item > found; ibifs scrub S > found
         taken
         ibifs history M/$item | sed 's/^[^ ]* *//; s/  */ /g' > told
         printf 'minted root\ndamaged root (damaged doc/x)\nscrubbed root (accepted: damaged doc/x)\nscrubbed root\n' | diff - told
         ibifs umount M; told S; test $(ibifs history S --type scrubbed | wc -l) = 6; ibifs history S --type scrubbed | head -n 1 | cmp - before
         ibifs fsck S"#,
    );
    // Without a history nothing is left.
    sh(
        &env,
        "ibifs init T > init.out; ibifs scrub T; test ! -e T/log",
    );
    // What root leaves is the owner's, who takes it.
    sh(
        &env,
        "begins U; chown -R 60001:60001 U; chmod 711 .; ibifs scrub U
         test \"$(stat -c '%u:%g' U/log U/log/told U/log/told/* | uniq)\" = 60001:60001
         setpriv --reuid 60001 --regid 60001 --clear-groups ibifs mint U > minted; ibifs history U --type scrubbed | grep -c root; ls U/log/told | wc -l | grep '^0$'",
    );
}

/// Of what is changed beside the mount no event tells, until a scrub finds it; what is changed through it is told already.
#[test]
fn a_scrub_tells_what_was_changed_beside_the_mount() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; mkdir M; ibifs mint S --count 2 | grep example.org > minted; one=$(sed -n 1p minted); two=$(sed -n 2p minted)
         for item in $one $two; do echo x > S/col/$item/doc/x; echo z > S/col/$item/doc/z; done; ibifs scrub S; ibifs mount S M
         known() { test $(in_database S/relations.sqlite3 'SELECT count(*) FROM content') = 3; }; waits known
         sleep 1.1; echo more >> M/$two/doc/x; ibifs umount M; sha256sum S/fixity/col/$two/manifest-sha256.txt | cut -c 1-64 > before
         echo more >> S/col/$one/doc/x; rm S/col/$one/doc/z; echo y > S/col/$one/doc/y; ibifs scrub S > found; ibifs scrub S > found
         after=$(sha256sum S/fixity/col/$two/manifest-sha256.txt | cut -c 1-64)
         lines() { ibifs history --store S $1 | sed "s/^[^ ]* *//; s/  */ /g; s/$(< before)/BEFORE/; s/$after/AFTER/"; }
         lines $one | sed -E 's/[0-9a-f]{64}/DIGEST/g' | diff - <(printf 'minted root\nchanged ibifs (manifest BEFORE -> DIGEST; not told before: changed doc/x, new doc/y, missing doc/z)\n')
         lines $two | diff - <(printf 'minted root\nchanged root (manifest BEFORE)\nscrubbed root (manifest BEFORE -> AFTER)\n'); ibifs mint S > minted; told S
         # What was before is not known where the record is older than that.
         known() { test $(in_database S/relations.sqlite3 'SELECT count(*) FROM content') = 4; }
         for round in 1 2; do ibifs mount S M; waits known; echo more >> M/$two/doc/x; ibifs umount M; done
         lines $two | tail -n 2 | diff - <(printf 'changed root (manifest AFTER)\nchanged root\n')"#,
    );
}

/// A check that may repair is told also if it finds nothing to repair; one that changes nothing is not.
#[test]
fn a_check_without_repairs_is_told() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; ibifs mint S > minted; cp -a S before; ibifs fsck S; diff -r before S; ibifs fsck --repair S > found
         ibifs mint S > minted; ibifs history S --type val | sed 's/^[^ ]* *//; s/  */ /g' | diff - <(echo checked root); told S
         ibifs init T > init.out; cp -a T same; ibifs fsck --repair T; diff -r -x '*-shm' -x '*-wal' -x lock same T",
    );
}

/// A check that may repair is told with the outcome of PREMIS: as failed if errors are left, also after repairs.
#[test]
fn a_check_that_leaves_errors_is_told_as_failed() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; item=$(ibifs mint S | grep example.org); file=S/col/$item/doc/file; echo whole > $file; touch -d '1 hour ago' $file; ibifs scrub S > found
         touch -r $file time; echo other > $file; touch -r time $file; no ibifs scrub S > found
         for change in 'mkdir -p S/col/x.org/a/2020/1.2' 'rm S/col/$item/.ibi'; do eval "$change"; no ibifs fsck --repair S > found; ibifs mint S > minted; done
         echo whole > $file; touch -r time $file; ibifs scrub S > found; no ibifs fsck --repair S > found; ibifs mint S > minted
         ibifs history S --json | jq -r 'select(.event | . == "checked" or . == "repaired") | "\(.event) \(.type) \(.outcome) \(.note)"' |
             paste -sd, | diff - <(echo checked val failure damaged-files stray-name,repaired rec success missing-sidecar,checked val failure damaged-files stray-name,checked val success stray-name)
         rm -r S/col/x.org; told S"#,
    );
}

/// A file that another user puts where events wait is not taken to the log, nor is it read without end, and fsck says so.
#[test]
fn strange_files_among_waiting_events_are_refused() {
    let env = TestEnv::new();
    sh(
        &env,
        r#"begins S; ibifs mint S > minted; ibifs scrub S; name=$(ls S/log/told); mkdir elsewhere; cp -p S/log/told/$name elsewhere/event; chmod 644 elsewhere/event
         mv S before; : > empty"#,
    );
    for made in [
        "ln -s $PWD/elsewhere/event $at",
        "ln elsewhere/event $at",
        "mkfifo $at",
        "mkdir $at",
        "truncate -s 1G $at",
        "cp elsewhere/event $at; chown 60002 $at",
        "sed 's/^0/1/' elsewhere/event > $at",
        "sed 's/ [0-9a-f]/ x/' elsewhere/event > $at",
        "tr -d '\n' < elsewhere/event > $at",
        "sed 's/{.*/{}/' elsewhere/event > $at",
        "cp elsewhere/event $at; echo >> $at",
        "cp elsewhere/event ${at%?}; at=${at%?}; touch S/log/told/00000000000000000000000000000000",
    ] {
        sh(
            &env,
            &format!(
                r#"rm -rf S; cp -a before S; at=$(echo S/log/told/*); rm $at; {made}
                 finds S | grep -q '^stray-event log/told/'; timeout 20 ibifs mint S > minted 2> said; grep -c 'is no event that ibifs has left' said | grep '^1$'
                 timeout 20 ibifs mint S > minted 2> said; cmp said empty
                 test $(ibifs history S --type scrubbed | wc -l) = 0; grep -c '"scrubbed"' elsewhere/event | grep '^1$'
                 finds S | grep -c '^stray-event log/told/' | grep '^[12]$'; ibifs scrub S; ibifs mint S > minted; test $(ibifs history S --type scrubbed | wc -l) = 1
                 rm -rf S/log/told; ibifs fsck S"#
            ),
        );
    }
    // Not even a directory that leads elsewhere.
    sh(
        &env,
        r#"for made in 'ln -s ../../elsewhere' 'mkfifo' 'touch'; do
             rm -rf S; cp -a before S; rm -r S/log/told; $made S/log/told
             timeout 20 ibifs scrub S 2> said; grep "history has no event 'scrubbed'" said; ls elsewhere | grep '^event$'
             timeout 20 ibifs history S | grep -c minted | grep '^1$'; finds S | grep '^log-damaged log$'
         done"#,
    );
}

/// Whoever owns the store puts a link, a FIFO or another name of a file in the place of a file of the log: root's commands
/// neither wait for it nor write elsewhere, and the store works.
#[test]
fn links_and_pipes_in_the_log_lead_nowhere() {
    let env = TestEnv::new();
    sh(
        &env,
        "begins S; mkdir M; ibifs mint S > minted; ibifs scrub S; mkdir elsewhere; echo kept > elsewhere/file; mv S before",
    );
    for path in [
        "log",
        "log/key",
        "log/key.pub",
        "log/checkpoint",
        "log/checkpoint.new",
        "log/events",
        "log/events/*.txt",
        "log/tile",
        "log/tile/0/000.p/1",
        "log/tile/0/000.p/2",
        "log/tile/0/000.p/2.new",
        "log/tile/entries",
        "log/told",
        "log/told/*",
    ] {
        for made in [
            "ln -s $PWD/elsewhere $at",
            "ln -s $PWD/elsewhere/file $at",
            "ln -s $PWD/elsewhere/new $at",
            "ln elsewhere/file $at",
            "mkfifo $at",
        ] {
            sh(
                &env,
                &format!(
                    "rm -rf S B; cp -a before S; at=$(echo S/{path}); rm -rf $at; {made}
                     timeout 20 ibifs mount S M; mkdir M/.mint/x; timeout 20 ibifs umount M
                     timeout 20 ibifs fsck S > found || test $? = 1
                     timeout 20 ibifs backup S B > said 2>&1 || test $? = 1
                     timeout 20 ibifs history S | grep -c minted | grep '^2$'
                     ls elsewhere | grep '^file$'; echo kept | cmp - elsewhere/file"
                ),
            );
        }
    }
}
