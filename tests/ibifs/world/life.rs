//! Items of other Archives that are withdrawn, withheld until a date, or sealed.

use super::World;

/// Decisions about an item at its Archive hold in a mount within a minute, and so does the end of an embargo.
#[test]
fn decisions_at_an_archive_hold_in_a_mount() {
    let world = World::archive_served(
        ". ./vars; three=$(ibifs mint A | head -n 1); echo text > A/$three/doc/x; echo three=$three >> vars; ibifs seal A/$three > /dev/null",
    );
    world.prints(
        r#"why() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed "s/.*: //"; }
        world; cat M/$three/doc/x M/$two/doc/y; cat M/$one/doc/x.txt; why touch M/$three/doc/x; ls M/$one/doc | wc -l
        ibifs withdraw A/$two --reason wrong; setfattr -n user.ibi.available -v $(date -u -d '+75 seconds' +%Y-%m-%dT%H:%M:%SZ) A/$one; until=$(($(date +%s) + 75))
        sleep 61; for item in $one $two; do stat -L M/$item/doc > /dev/null; done; sleep 2
        why cat M/$two/doc/y; why ls M/$two; why cat M/$one/doc/x.txt; why cat M/$one/doc/none; ls -A M/$one; cat M/$one/.ibi.metadata
        # An Archive that is slow is asked again later.
        while ! [ -e M/$one/doc/x.txt ]; do [ $(date +%s) -lt $((until + 150)) ]; sleep .5; done; [ $(date +%s) -ge $until ]; cat M/$one/doc/x.txt; why cat M/$one/doc/none
        # One that is mounted now.
        forget; setfattr -n user.ibi.available -v 2099-01-31 A/$one; world; why cat M/$one/doc/x.txt; why stat M/$two"#,
        "text
second
text
Read-only file system
14
No such file or directory
No such file or directory
Permission denied
Permission denied
.ibi
.ibi.metadata
title: Rainfall
text
No such file or directory
Permission denied
No such file or directory",
    );
}
