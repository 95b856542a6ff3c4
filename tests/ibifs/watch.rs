//! `ibifs watch`: what happens to items, for programs that build on it.

use crate::support::TestEnv;

/// `events` prints the events of items in lines: without positions, with words in place of identifiers.
const TOOLS: &str = r#"
events() { jq -rs --arg one "$(cat one 2> no)" --arg two "$(cat two 2> no)" '.[] | select(.event != "relation") | [.event, (if .rep == $one then "one" elif .rep == $two then "two" elif .rep then "other" else "" end), (.state // ""), (.relations // {} | keys | join(","))] | join(" ")' "$@" | sed 's/ *$//'; }
last() { jq -rs 'map(.position // empty) | last' "$@"; }
# Waits until a file has so many lines.
until_lines() { local end=$((SECONDS + 60)); until test $(wc -l < $2) -ge $1; do [ $SECONDS -lt $end ] || { cat $2; return 1; }; sleep .05; done; }
"#;

fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{TOOLS}\n{script}"), expected);
}

#[test]
fn events_go_on_from_a_position() {
    let env = TestEnv::new();
    prints(
        &env,
        r#"ibifs init A --host archive-a.example.org > /dev/null
        ibifs mint A | head -n 1 > one; ibifs watch A --once > all; events all
        ibifs watch A --once --from $(last all) | wc -l
        ibifs watch A --once --from now > now; events now; test "$(last now)" = "$(last all)" && echo same"#,
        "start\npresent other Original\npresent one Original\nready\n0\nready\nsame",
    );
    prints(
        &env,
        r#"ibifs mint A | head -n 1 > two; ibifs watch A --once --from $(last all) > more; events more
        ibifs relate A/col/$(< one) --next-edition $(< two) > said; ibifs watch A --once --from $(last more) > related; events related | sort
        mkdir M; ibifs mount A M; rm -r M/$(< two); ibifs umount M
        ibifs watch A --once --from $(last related) > removed; events removed | sort -u
        # From an earlier position, each item once, as it is now.
        ibifs watch A --once --from $(last all) | events | sort"#,
        "added two Original\nchanged one Original nextedition\nchanged two Original editionof\n\
         removed two Deleted\n\
         changed one Original nextedition\nremoved two Deleted",
    );
}

/// A watch that runs sees what daemon and commands do, and goes on when the daemon or the index is another one.
#[test]
fn a_watch_outlives_daemons_and_indexes() {
    let env = TestEnv::new();
    prints(
        &env,
        r#"ibifs init A --host archive-a.example.org > /dev/null; mkdir M; ibifs mount A M
        timeout 100 ibifs watch M --from now > seen & W=$!
        until_lines 1 seen; mkdir M/.mint/x; rep M/.mint/x > one; until_lines 2 seen
        ibifs umount M; ibifs mint A | head -n 1 > two; until_lines 3 seen
        ibifs mount A M; kill -9 $(daemon A); ibifs umount M; ibifs mount A M; mkdir M/.mint/y; until_lines 4 seen; events seen
        P=$(last seen); ibifs umount M; ibifs reindex A > said; until_lines 10 seen; tail -n +5 seen > again; events again | sort
        lose_index A; ibifs watch A --once --from $P 2> why || echo $?; ibifs mint A > said; until_lines 17 seen
        # A position of an index that is no more is one from the start.
        ibifs watch A --once --from $P | events | sort | uniq -c | sed 's/^ *//'; kill $W"#,
        "ready\nadded one Original\nadded two Original\nadded other Original\n\
         present one Original\npresent other Original\npresent other Original\npresent two Original\nready\nstart\n\
         1\n1 present one Original\n3 present other Original\n1 present two Original\n1 ready\n1 start",
    );
}

/// The history is printed from any point of the log on, each event once, whoever writes the log meanwhile.
#[test]
fn a_watch_follows_the_log() {
    let env = TestEnv::new();
    prints(
        &env,
        r#"ibifs init A --host archive-a.example.org > said; echo 'history yes' >> A/archive.ibi; mkdir M; chmod 755 .
        begin=$(date -u +%Y-%m-%dT%H:%M:%SZ); ibifs mint A --count 3 > said; ibifs watch A --since 0 --once > all
        jq -r .number all | paste -sd' '; ibifs history A --json | diff - <(jq -c 'del(.number)' all)
        for point in 2 4 18446744073709551615 2100-01-01 2020-01-01 $begin; do ibifs watch A --since $point --once | wc -l; done | paste -sd' '
        ibifs watch A --since yesterday --once 2> said || echo $?; ibifs watch A --since 1 --from now 2> said || echo $?
        timeout 200 ibifs watch A --since 2 > seen & W=$!
        until_lines 2 seen; ibifs mint A > said; until_lines 3 seen
        ibifs mount A M; chmod 1777 M; setpriv --reuid 60001 --regid 60001 --clear-groups mkdir M/.mint/x; until_lines 5 seen
        # A user who may not enter the store asks the daemon.
        asks() { setpriv --reuid 60001 --regid 60001 --clear-groups ibifs watch M --since "$@"; }
        asks 0 --once | tail -n 1 | jq -r '.event, .uid'; asks 7 --once | wc -l
        touch asked; setpriv --reuid 60001 --regid 60001 --clear-groups timeout 100 ibifs watch M --since 0 > asked & U=$!; until_lines 1 asked; before=$(wc -l < asked); setpriv --reuid 60001 --regid 60001 --clear-groups mkdir M/.mint/y
        until_lines $((before + 1)) asked; kill $U; kill -9 $(daemon A); ibifs umount M; lose_index A; ibifs reindex A > said
        ibifs mint A --count 1500 > said
        size=$(sed -n 2p A/log/checkpoint); until_lines $((size - 2)) seen; kill $W
        jq -r .number seen | diff - <(seq 2 $((size - 1))); ibifs history A --json | tail -n +3 | diff - <(jq -c 'del(.number)' seen)"#,
        "0 1 2 3\n2 0 0 0 4 4\n2\n2\nminted\n60001\n0",
    );
}

/// A relation is an event of its own, with both ends, by any author; once, and after a restart.
#[test]
fn relations_are_events() {
    let env = TestEnv::new();
    prints(
        &env,
        r#"relations() { jq -r --arg one "$(cat one)" --arg two "$(cat two)" 'def name: if .rep == $one then "one" elif .rep == $two then "two" else "other" end; select(.event == "relation") | [name, .relation, (.target | name), (.declared | tostring)] | join(" ")' "$@"; }
        ibifs init A --host archive-a.example.org > /dev/null; ibifs mint A | head -n 1 > one; ibifs mint A | head -n 1 > two
        ibifs watch A --once --from now > none; ibifs relate A/col/$(< one) --next-edition $(< two) > said
        ibifs watch A --once --from $(last none) > some; relations some | sort; echo -; jq -r .event some | sort
        echo -; for at in $(jq -r .position some); do ibifs watch A --once --from $at | wc -l; done
        echo -; mkdir M; ibifs mount A M; ibifs watch M --once --from $(last some) | wc -l
        ibifs umount M; ibifs unrelate A/col/$(< one) --next-edition > said; ibifs watch A --once --from $(last some) > gone; relations gone | sort
        # Since the beginning, a relation is what it is now.
        echo -; ibifs watch A --once --from $(last none) | relations | sort
        ibifs relate A/col/$(< one) --next-edition $(< two) > said; ibifs watch A --once --from now > now
        echo -; ibifs mount A M; rm -r M/$(< two); ibifs umount M; ibifs watch A --once --from $(last now) | relations"#,
        "one nextedition two true\ntwo editionof one true\n-\nchanged\nchanged\nrelation\nrelation\n-\n4\n2\n2\n0\n-\n0\n\
         one nextedition two false\ntwo editionof one false\n-\n\
         one nextedition two false\ntwo editionof one false\n-\n\
         two editionof one false",
    );
}

#[test]
fn a_watch_ends_with_its_reader() {
    let env = TestEnv::new();
    env.prints(
        r#"ibifs init A --host archive-a.example.org > /dev/null
        timeout 60 ibifs watch A | head -n 1 > first & W=$!
        # It learns that nobody reads any more with the next event.
        waits test -s first; while kill -0 $W 2> /dev/null; do ibifs mint A > said; sleep .1; done; wait $W && echo ended"#,
        "ended",
    );
    for (options, status) in [("A --from 7", 2), ("none", 3)] {
        env.exits(&format!("ibifs watch --once {options}"), status);
    }
}
