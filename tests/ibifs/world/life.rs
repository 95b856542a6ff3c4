//! Items of other Archives that are withdrawn, withheld until a date, or sealed.

use super::World;

/// Decisions about an item at its Archive hold in a mount within a minute, and so does the end of an embargo.
#[test]
fn decisions_at_an_archive_hold_in_a_mount() {
    let world = World::archive_served(
        ". ./vars; three=$(ibifs mint A | head -n 1); echo text > A/$three/doc/x; echo three=$three >> vars; ibifs seal A/$three > /dev/null
        four=$(ibifs mint A | head -n 1); echo text > A/$four/doc/x.txt; echo four=$four >> vars",
    );
    world.prints(
        r#"why() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed "s/.*: //"; }
        # An embargo that ends before the minute of what is asked now.
        until=$(($(date +%s) + 55)); setfattr -n user.ibi.available -v $(date -u -d @$until +%Y-%m-%dT%H:%M:%SZ) A/$four
        world; why cat M/$four/doc/x.txt; [ $(date +%s) -lt $until ]; cat M/$three/doc/x M/$two/doc/y; cat M/$one/doc/x.txt; why touch M/$three/doc/x; ls M/$one/doc | wc -l
        ibifs withdraw A/$two --reason wrong; setfattr -n user.ibi.available -v 2099-01-31 A/$one
        sleep 61; stat -L M/$one/doc M/$two/doc M/$four > /dev/null; waits no cat M/$two/doc/y; waits no cat M/$one/doc/x.txt
        why cat M/$two/doc/y; why ls M/$two; why cat M/$one/doc/x.txt; why cat M/$one/doc/none; ls -A M/$one; cat M/$one/.ibi.metadata
        # An Archive that is slow is asked again later.
        while ! [ -e M/$four/doc/x.txt ]; do [ $(date +%s) -lt $((until + 150)) ]; sleep .5; done; cat M/$four/doc/x.txt; why cat M/$four/doc/none
        # One that is mounted now.
        forget; world; why cat M/$one/doc/x.txt; why stat M/$two"#,
        "Permission denied
text
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
