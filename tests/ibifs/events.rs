//! The events of items, and the users who cause them: one line in the log at each front end.

use crate::http::served::Served;
use crate::support::TestEnv;

/// `lines FILE` prints the events in a log, with words in place of identifiers.
const LINES: &str = r#"
export RUST_LOG=ibifs::events=info
as() { setpriv --reuid=$1 --regid=$1 --clear-groups "${@:2}"; }
service() { sed -n 's/^ibi.archiveservice {rep \([^ ]*\) .*/\1/p' $1/archive.ibi; }
lines() {
    set -- "$@" one $(cat one 2> no || true) A $(service A) B $(test ! -d B || service B)
    sed -n 's/^\[[^ ]* INFO *\] //p' "$1" > found; shift
    while test $# -gt 1; do sed -i "s;$2 ;$1 ;g" found; shift 2; done
    sed -E 's;[a-z0-9.-]+/[a-z0-9-]+/[0-9]{4}/[0-9.]+;ITEM;g' found
}
"#;

#[test]
fn events_of_a_mount() {
    let env = TestEnv::new();
    env.prints(
        &format!(
            r#"{LINES}
            ibifs init A --host archive-a.example.org > /dev/null; mkdir M
            ibifs mount --foreground A M < /dev/null > said 2> log & D=$!
            for i in $(seq 200); do mountpoint -q M && break; sleep .05; done
            chmod 1777 M; as 1001 mkdir M/.mint/x; R=$(labelled M x as 1001); mkdir M/.mint/y
            echo $R > one; cp -a M/$R kept
            # What is refused is no event.
            ! as 1002 rm -r M/$R 2> why
            chmod 777 M/$(dirname $R); as 1001 rm -r M/$R
            mkdir M/$R; ibifs umount M; wait $D; lines log"#
        ),
        "mint one by uid 1001\nmint ITEM by uid 0\nremove one by uid 1001\nrestore one by uid 0",
    );
}

#[test]
fn events_of_commands() {
    let env = TestEnv::new();
    env.prints(
        &format!(
            r#"{LINES}
            ibifs init A --host archive-a.example.org > /dev/null; ibifs init B --host archive-b.example.net > /dev/null
            ibifs mint A 2> log | head -n 1 > one; echo text > A/col/$(< one)/doc/file
            ibifs copy --store A $(< one) B > said 2>> log; ibifs copy --store A $(< one) B > said 2>> log
            ibifs transfer --store A $(< one) B > said 2>> log
            mkdir M; RUST_LOG=error ibifs mount B M; rm -r M/$(< one); ibifs umount M
            ibifs claim --store A $(< one) --from B > said 2>> log; lines log"#
        ),
        "mint one by uid 0\nreceive one from A by uid 0\ntake one from A by uid 0\n\
         give one to B by uid 0\ngive one to A by uid 0\nclaim one from B by uid 0",
    );
}

#[test]
fn events_over_http() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A --host archive-a.example.org > /dev/null; ibifs init B --host archive-b.example.net > /dev/null
         ibifs mint A | head -n 1 > one; echo text > A/col/$(< one)/doc/file
         head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > token; touch tokens; chmod 600 token tokens",
    );
    let a = Served::start(&env, "A");
    env.sh(&format!("echo \"$(< token) {}\" > tokens", a.url));
    let b = Served::within(
        &env,
        "env RUST_LOG=ibifs::events=info bash -c 'exec \"$@\" 2> log' bash",
        "serve B --transfer-token-file tokens",
    );
    env.prints(
        &format!(
            r#"{LINES}
            ibifs transfer --store A --token-file token $(< one) {} > said 2> given; lines log; lines given"#,
            b.url
        ),
        "receive one from A by peer\ntake one from A by peer\ngive one to B by uid 0",
    );
}
