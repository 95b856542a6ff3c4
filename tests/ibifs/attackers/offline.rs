//! Commands on a store in which a user has put something else in the place of every file and
//! directory of ours.

use super::canary::{Canary, SECRET};
use crate::support::{TestEnv, switch};

/// The replacements for a file or directory; `$1` is its path.
const INSTEAD: &[(&str, &str)] = &[
    ("a link to a file", "ln -s $OUT/secret $1"),
    ("a link to a directory", "ln -s $OUT/item $1"),
    (
        "a link to nothing, for whoever makes files through it",
        "ln -s $OUT/empty/made $1",
    ),
    ("a second name of somebody's file", "ln $OUT/notes $1"),
    ("a second name of somebody's database", "ln $OUT/base $1"),
    ("a FIFO", "mkfifo $1"),
    ("a device", "mknod $1 c 1 7"),
    ("a huge file", "truncate -s 4T $1 || truncate -s 4G $1"),
    ("a directory", "mkdir -p $1/x; echo y > $1/x/y"),
];

/// The files and directories that are replaced, in the store S.
const PLACES: &[&str] = &[
    "archive.ibi",
    "lock",
    "ledger",
    "relations.sqlite3",
    "relations.sqlite3-wal",
    "relations.sqlite3-shm",
    "relations.sqlite3-journal",
    "staging",
    "reserve",
    "deleted",
    "deleted/col",
    "ibip",
    "col",
    "$LEVEL",
    "$YEAR",
    "$ITEM",
    "$ITEM/.ibi",
    "$ITEM/.ibi.metadata",
    "$ITEM/doc",
    "$GONE",
];

/// Every command that changes a store, and the daemon; none may hang, whatever else it says. Beside
/// its own lock, no user removes what has taken the place of something.
const COMMANDS: &str = "
    try() { timeout -k 1 20 \"$@\" < /dev/null || test $? -lt 124; }
    # Not all of a huge file: what is printed is kept in memory.
    show() { try head -c 100000 \"$@\"; }
    all() {
        try ibifs status $1; try ibifs mint $1; try ibifs show --store $1 $REP
        try ibifs relate --store $1 $REP --next-edition $OTHER
        try ibifs mount $1 M
        if mountpoint -q M; then
            try mkdir M/.mint/x; try ls -lR M; show \"M/$REP:\" \"M/$REP:(oai_dc)\" \"M/$REP?GetFileList\"
            # Whom a link in an item leads outside opens that by itself.
            for f in M/$REP/doc/f M/$REP/.ibi; do case $(realpath $f) in \"$PWD\"/M/*) show $f;; esac; done
            try ln -s ../../../$OTHER \"M/$REP+(pt)\"; try rm -r M/$THIRD
            try rm M/$REP/.ibi; try ibifs umount M
        fi
        try ibifs fsck --repair $1; try ibifs reindex $1; try ibifs mint $1; try ibifs fsck $1
    }";

/// All of it, in every place: nothing outside is changed, removed or printed.
#[test]
fn nothing_outside_is_touched_by_commands() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host archive-a.example.org; mkdir M; for i in 1 2 3 4; do ibifs mint S | head -1; done > reps
              cd S/col; for r in $(cat ../../reps); do mkdir $r/doc/a; echo text > $r/doc/f; echo title: x > $r/.ibi.metadata; done
              cd ../..; ibifs mount S M; rm -r M/$(sed -n 4p reps); ibifs umount M");
    let canary = Canary::new(&env);
    let is_long = switch("IBIFS_TEST_ATTACKS").is_some();
    let mut cases = 0;
    for (number, place) in PLACES.iter().enumerate() {
        for (kind, (what, instead)) in INSTEAD.iter().enumerate() {
            // A database of another user is where a database belongs.
            if instead.contains("base") != (*place == "relations.sqlite3")
                && instead.contains("ln $OUT")
            {
                continue;
            }
            // The short form: every place, and every eighth of what may take it.
            let is_own = number < 4 && matches!(kind, 0 | 3 | 4);
            if !is_long && !is_own && (number + kind) % 8 != 0 {
                continue;
            }
            cases += 1;
            let output = env.run(&format!(
                "OUT=$PWD/outside REP=$(sed -n 1p reps) OTHER=$(sed -n 2p reps) THIRD=$(sed -n 3p reps)
                 rm -rf T; cp -a S T
                 ITEM=col/$REP YEAR=$(dirname col/$REP) LEVEL=$(dirname $(dirname $(dirname col/$REP))) GONE=deleted/col/$(sed -n 4p reps)
                 {COMMANDS}
                 set -- T/{place}; rm -rf $1; {instead}
                 set +e; all T 2>&1; true",
            ));
            let messages = String::from_utf8_lossy(&output.stdout).into_owned();
            let case = format!("{what} at {place}");
            canary.is_untouched(&format!("{case}:\n{messages}"));
            // A user who can give a file a second name may read and write it (fs.protected_hardlinks): what
            // it says there is that one's own.
            let is_theirs = instead.contains("ln $OUT") && place.contains("$ITEM");
            assert!(
                is_theirs || !messages.contains(SECRET),
                "messages with {case}:\n{messages}"
            );
            assert!(!messages.contains("panicked"), "{case}:\n{messages}");
            assert!(!messages.contains("Killed"), "{case}:\n{messages}");
            env.sh("! mountpoint -q M || umount -l M");
        }
    }
    println!("{cases} cases, each with ten commands and a mount");
    assert!(cases >= 25, "{cases} cases");
}
