//! The cache: one process, several mounts; what is fetched, pinned and dropped; files that the kernel reads itself; the
//! limit.

use super::World;
use super::proxy::Mode;
use crate::ordinary_user::as_user;
use crate::support::{Disk, Format};

/// A second mount with the same cache is made by the process that uses it. That process ends with its last mount.
#[test]
fn several_mounts_use_one_cache() {
    let world = World::mounted();
    world.prints(
        r#"mkdir N; cat M/$one/doc/x.txt; P=$(process)
        ibifs world N --archive $PROXY --cache C --json | jq -r .mount_point | sed "s:.*/::"; test $P = $(process)
        cat N/$one/doc/x.txt; ibifs world status N --json | jq -c '.requests, (.mounts | map(sub(".*/"; "")))'
        ibifs umount M; cat N/$one/doc/x.txt; ibifs umount N; waits is_over $P; test ! -e C/socket
        complains ibifs world status N"#,
        "text\nN\ntext\n0\n[\"M\",\"N\"]\ntext\nibifs: PATH is no mount of PATH, or its process is gone\n3",
    );
}

/// Answers that a mount has from its servers do not count for a mount that asks others.
#[test]
pub fn a_mount_knows_its_own_items_only() {
    let world = World::mounted();
    world.prints(
        r#"mkdir N O; cat M/$one/doc/x.txt; ibifs world N --archive http://127.0.0.1:1 --cache C
        LC_ALL=C cat N/$one/doc/x.txt 2>&1 | sed 's/.*: //' || true; ibifs umount N
        ibifs world O --archive http://127.0.0.1:1 --archive $PROXY --cache C; cat O/$one/doc/x.txt; ibifs umount O"#,
        "text\nNo route to host\ntext",
    );
}

/// Of commands that start at once, one uses the cache, and mounts for the others.
#[test]
fn commands_at_once_find_one_process() {
    let world = World::new();
    world.prints(
        r#"four() { test $(ibifs world status N1 --json | jq '.mounts | length') = 4; }
        for round in 1 2 3; do
            for n in 1 2 3 4; do mkdir -p N$n; ibifs world N$n --archive $PROXY --cache C & done; wait
            # A mount of the round before may still be ending.
            for n in 1 2 3 4; do cat N$n/$one/doc/x.txt; done; waits four; echo 4
            # The next round may meet the process while it ends.
            for n in 1 2 3 4; do ibifs umount N$n & done; wait
        done | sort | uniq -c | sed 's/^ *//'"#,
        "3 4\n12 text",
    );
}

/// In the foreground the command waits until its mount is unmounted, and unmounts it if a signal asks for that.
#[test]
fn a_command_in_the_foreground_waits_for_its_mount() {
    let world = World::mounted();
    world.prints(
        r#"mkdir N; mounted() { mountpoint -q N; }; ibifs world N --archive $PROXY --cache C -f 2> log & waits mounted
        ibifs umount N; wait $!; echo $?
        ibifs world N --archive $PROXY --cache C -f 2> log & waits mounted; kill $!; wait $!; echo $?
        mounted || echo unmounted; cat M/$one/doc/x.txt
        ibifs world N --archive $PROXY --cache C -f 2> log & waits mounted; sleep 0.5; kill -KILL $(process); wait $! || echo $?
        mounted || echo unmounted; tail -n 1 log; ibifs umount M; world; cat M/$one/doc/x.txt"#,
        "0\n0\nunmounted\ntext\n1\nunmounted\nibifs: the process that uses the cache is gone\ntext",
    );
}

/// A process that was killed leaves mounts that umount and the next command clear.
#[test]
fn mounts_of_a_killed_process_are_cleared() {
    let world = World::mounted();
    world.prints(
        r#"mkdir N O; for n in N O; do ibifs world $n --archive $PROXY --cache C; done; P=$(process); kill -KILL $P
        waits is_over $P; ibifs umount M; ibifs world N --archive $PROXY --cache C; ibifs world O --archive $PROXY --cache C
        cat N/$one/doc/x.txt; mount | grep -c "$PWD/[MNO] "; P=$(process); kill $P; waits is_over $P
        mount | grep -c "$PWD/[MNO] " || true; ls C/socket 2> /dev/null || true"#,
        "text\n2\n0",
    );
}

/// The process mounts nothing for a command that sees other files at the same path, and is heard by its user alone.
#[test]
fn others_are_not_heard() {
    let world = World::mounted();
    world.prints(
        r#"mkdir N; complains unshare -m ibifs world N --archive $PROXY --cache C; stat -c %a C C/socket
        mkdir D; chmod 777 D; complains ibifs world N --archive $PROXY --cache D
        chmod 755 C; chmod 666 C/socket; setpriv --reuid 65534 --clear-groups /usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.connect("C/socket")
try:
    s.send(b"ibifs-world 1\nview x\nfetch 1\nend\n"); s.shutdown(1); print(s.recv(9))
except OSError:
    print(b"")'
        python3 -c '
import socket
for text in b"", b"x", b"ibifs-world 1\nview x\nmount /\n", b"ibifs-world 1\nview x\nfetch 9\nend\n":
    s = socket.socket(socket.AF_UNIX); s.connect("C/socket"); s.send(text); s.shutdown(1); print(s.recv(7))'"#,
        "ibifs: the process that uses the cache sees other files, as in a container; name another directory with --cache\n5\n\
         700\n600\nibifs: the cache PATH belongs to another user, or others may write it; name another directory with \
         --cache\n1\nb''\nb'refused'\nb'refused'\nb'refused'\nb'refused'",
    );
}

/// Whole items are fetched, by their identifiers and by paths, and can be read when the Archive is away.
#[test]
fn fetched_items_are_there_without_network() {
    let world = World::mounted();
    world.prints(
        r#"ibifs world fetch M $one "M/${one}!" > out; sed "s:$two:TWO:; s:$one:ONE:; s/[0-9]* bytes/BYTES/" out
        ibifs world fetch M 8JMKD3MGP8W/34PGRBS M/$one/doc/x.txt --json > out || echo $?
        jq -c '.ibi != null, .files, .error' out; complains ibifs world fetch M nothing; complains ibifs world fetch . $one"#,
        "ONE: 6 files, BYTES\nTWO: 1 file, BYTES\n3\n\
         true\nnull\n\"8JMKD3MGP8W/34PGRBS: no Archive holds it, or the cache does not\"\ntrue\n6\nnull\n\
         ibifs: PATH is no item below PATH\n2\nibifs: PATH is no mount of PATH, or its process is gone\n3",
    );
    world.proxy.set(Mode::Stall);
    world.prints(
        r#"asked cmp M/$one/doc/big A/$one/doc/big; cat "M/$one/doc/a b/c/deep"; ibifs umount M; world
        asked cmp M/$one/doc/big A/$one/doc/big; cat M/$two/doc/y"#,
        "0\ndeep\n0\nsecond",
    );
}

/// Pinned items stay, also after a restart, until they are dropped. More than fits is refused.
#[test]
fn pinned_items_stay() {
    let world = World::new();
    world.prints(
        r#"for n in $(seq 8); do head -c 7000000 /dev/urandom > A/$two/doc/f$n; done; world --cache-size 64M
        ibifs world pin M $one > /dev/null; complains ibifs world pin M $two | sed "s:$two:TWO:; s/[0-9]\{5,\}/N/g"
        others() { for n in $(seq 8); do cmp M/$two/doc/f$n A/$two/doc/f$n; done; }
        others; ibifs umount M; world --cache-size 64M; others
        ibifs world status M --json | jq -c ".pinned | .items, .bytes > 9000000, .ibis == [\"$one\"]""#,
        "ibifs: TWO: it takes N bytes, and the cache has room for N; drop what is pinned, or mount with a higher \
         --cache-size\n4\n1\ntrue\ntrue",
    );
    world.proxy.set(Mode::Refuse);
    world.prints(
        r#"cmp M/$one/doc/big A/$one/doc/big; ibifs world drop M $one > /dev/null; ls C/pins | wc -l
        ibifs world status M --json | jq -c '.pinned'; complains ibifs world drop M $one | sed "s:$one:ONE:""#,
        "0\n{\"items\":0,\"bytes\":0,\"ibis\":[]}\n\
         ibifs: ONE: no Archive holds it, or the cache does not\n3",
    );
    world.proxy.set(Mode::Pass);
    world.sh("waits cmp M/$one/doc/big A/$one/doc/big");
}

/// Of a pinned item that changes at its Archive the newest content stays.
#[test]
fn a_pinned_item_follows_its_archive() {
    let world = World::mounted();
    world.prints(
        r#"ibifs world pin M $one > /dev/null; before=$(ibifs world status M --json | jq .pinned.bytes)
        head -c 5000000 /dev/urandom > A/$one/doc/more; rm A/$one/doc/big; ibifs umount M
        # What was said counts for a minute.
        for f in C/items/*; do python3 -c 'import hashlib, sys
b = open(sys.argv[1], "rb").read().split(b"\n", 2); b = b"1000000000\n" + b[2]
open(sys.argv[1], "wb").write(hashlib.sha256(b).hexdigest().encode() + b"\n" + b)' $f; done
        world; ls M/$one/doc > /dev/null; follows() { ibifs world status M --json | jq -e ".pinned.bytes < $before"; }; waits follows
        asked cmp M/$one/doc/more A/$one/doc/more; ibifs world status M --json | jq .pinned.items"#,
        "0\n1",
    );
}

/// The kernel reads a complete file of the cache itself if root has mounted, also while the process stands still.
#[test]
fn the_kernel_reads_complete_files() {
    let world = World::mounted();
    world.prints(
        r#"X=M/$one/doc; cat $X/x.txt; cmp $X/big A/$one/doc/big
        # The file is put together when it is closed.
        open() { exec 3<&- 4<&-; exec 3< $X/x.txt 4< $X/big; test $(ibifs world status M --json | jq .passthrough) = 2; }; waits open
        echo 3 > /proc/sys/vm/drop_caches; kill -STOP $(process)
        timeout 60 cat <&3; timeout 60 cmp - A/$one/doc/big <&4 && echo same; kill -CONT $(process)
        # Its pieces are those of other files, too, and are not on the disk twice.
        mkdir -p A/$two/doc; head -c 8388608 A/$one/doc/big > A/$two/doc/part; ibifs umount M 2> /dev/null || true; exec 3<&- 4<&-
        waits test ! -e C/socket; world; cmp M/$two/doc/part A/$two/doc/part; asked cat M/$one/doc/big"#,
        "text\ntext\nsame\n0",
    );
}

/// A file that another program has changed in the cache while the kernel reads it is a right file for who opens it then.
#[test]
fn a_file_that_changed_while_it_was_open_is_right_at_the_next_open() {
    let world = World::mounted();
    world.prints(
        r#"X=M/$one/doc; cat $X/x.txt; exec 3< $X/x.txt; ibifs world status M --json | jq .passthrough
        for f in $(find C/pieces -type f -size -9c); do printf X | dd of=$f conv=notrunc status=none; done
        complains cat $X/x.txt | sed 's/.*: //'; exec 3<&-; cat $X/x.txt"#,
        "text\n1\nInput/output error\n1\ntext",
    );
}

/// An ordinary user has mounts, too, whose files the process reads.
#[test]
fn an_ordinary_user_shares_a_cache() {
    let world = World::new();
    let output = as_user(
        &world.env,
        "",
        r#". ./vars; mkdir home/M home/N; for n in M N; do ibifs world home/$n --archive $PROXY --cache home/C; done
        cat home/M/$one/doc/x.txt; cmp home/M/$one/doc/big A/$one/doc/big; cmp home/N/$one/doc/big A/$one/doc/big
        ibifs world pin home/N $one > /dev/null
        ibifs world status home/N --json | jq '.pinned.items, (.mounts | length), .passthrough'
        for n in M N; do ibifs umount home/$n; done"#,
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!((&*printed, &*complained), ("text\n1\n2\n0\n", ""));
}

/// The limit holds while several programs read more than it, whatever else is done.
#[test]
fn the_limit_holds_for_several_readers() {
    let world = World::new();
    world.prints(
        r#"for n in $(seq 10); do head -c 9000000 /dev/urandom > A/$one/doc/f$n; done; world --cache-size 64M
        over() { while test ! -e done; do used=$({ du -s --block-size=1 C 2> /dev/null || true; } | cut -f 1)
            test $used -le $((64 << 20)) || echo over $used; sleep 0.02; done; }
        trap 'touch done' EXIT; over & OVER=$!; READ=
        for from in 1 4 7; do for n in $(seq $from 10) $(seq 1 $from); do cmp M/$one/doc/f$n A/$one/doc/f$n; done & READ+=" $!"; done
        wait $READ; ibifs world fetch M $two > /dev/null; touch done; wait $OVER
        ibifs world status M --json | jq '.cache.bytes <= .cache.limit'; grep -q ' [0-9]\{6\} kB' /proc/$(process)/status || true
        awk '/VmHWM/ && $2 > 400000 { print "memory", $2 }' /proc/$(process)/status"#,
        "true",
    );
}

/// A cache on a disk that is full is smaller than its limit. Files are never short.
#[test]
fn a_full_disk_is_no_short_file() {
    let world = World::new();
    world.prints(
        r#"truncate -s 40M disk; mkfs.ext4 -q disk; mkdir D; mount -o loop disk D; trap 'ibifs umount M || true; waits umount D' EXIT
        for n in 1 2 3 4; do head -c 20000000 /dev/urandom > A/$one/doc/f$n; done
        ibifs world M --archive $PROXY --cache D/C
        for n in 1 2 3 4 3 2 1; do cmp M/$one/doc/f$n A/$one/doc/f$n; done; complains ibifs world fetch M $one | sed 's/.*: //'"#,
        "the cache is full\n1",
    );
}

/// The process is killed, or its disk cut off, while pieces are written: no byte of what it has left is delivered that is
/// not the Archive's.
#[test]
fn what_a_crash_has_torn_is_not_delivered() {
    let world = World::new();
    let disk = Disk::new(world.env.root(), "disk", Format::Ext4, 160);
    world.sh("for n in $(seq 4); do head -c 9000000 /dev/urandom > A/$two/doc/f$n; done");
    let begin = "ibifs world M --archive $PROXY --cache disk/C; cp disk/C/lock process";
    let read = "for f in A/$two/doc/*; do cat M/$two/doc/${f##*/}; done > /dev/null 2>&1 &";
    let kill =
        "kill -KILL $(< process); waits is_over $(< process); wait || true; umount -l M || true";
    for round in 0..2 {
        world.sh(&format!(
            "{begin}; {read} sleep 0.{}; {kill}",
            round * 2 + 2
        ));
    }
    world.sh(&format!(
        "rm -r disk/C; {begin}; sync; {read} until ls disk/C/files/* > /dev/null 2>&1; do sleep 0.01; done; sleep 0.2; sync disk/C/lock"
    ));
    disk.cut();
    world.sh(kill);
    disk.unmount();
    disk.mount();
    world.prints(
        &format!("{begin}; diff -r A/$two/doc M/$two/doc && echo same; ibifs umount M; waits is_over $(< process)"),
        "same",
    );
}
