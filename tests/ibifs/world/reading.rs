//! Reads return the bytes that the Archive has, or an error: never another byte.

use super::World;
use super::proxy::Mode;

/// A byte that is changed on the way is not delivered, wherever it is: in the head, in digests, in the file.
#[test]
fn a_byte_that_changed_on_the_way_is_not_delivered() {
    let world = World::mounted();
    world.sh("cp -a A/$one/doc/x.txt x; stat M/$one");
    for at in [0, 100, 400, 450, 480, 600, 5_000, 3_000_000] {
        world.proxy.set(Mode::Corrupt(at));
        world.sh(
            r#"for f in x.txt big 'a b/c/deep'; do
                if timeout 30 cat "M/$one/doc/$f" > got 2> /dev/null; then cmp got "A/$one/doc/$f"; else test -s got && cmp -n $(stat -c %s got) got "A/$one/doc/$f" || true; fi
            done; forget; world; stat M/$one > /dev/null || true"#,
        );
    }
    world.proxy.set(Mode::Pass);
    world.sh("forget; world; cmp M/$one/doc/big A/$one/doc/big; diff M/$one/doc/x.txt x");
}

/// A byte that is changed in the cache is not delivered: what is damaged is fetched again.
#[test]
fn a_byte_that_changed_in_the_cache_is_not_delivered() {
    let world = World::mounted();
    world.prints(
        r#"X=M/$one/doc; cmp $X/big A/$one/doc/big; cat $X/x.txt
        flip() { for f in $(find C/pieces C/files C/lists C/items C/digests -type f); do
            python3 -c 'import sys
f = open(sys.argv[1], "r+b"); b = f.read(); f.seek(len(b) // 2); f.write(bytes([b[len(b) // 2] ^ 1]))' $f; done; }
        # When the file of several pieces is one file, which has their place, nothing else is moved.
        whole() { waits bash -c 'test -n "$(find C/files -type f)" -a -z "$(find C/pieces -type f -size +9c)"'; }
        whole; flip; echo 3 > /proc/sys/vm/drop_caches; cmp $X/big A/$one/doc/big; cat $X/x.txt
        whole; flip; ibifs umount M; world; cmp $X/big A/$one/doc/big; cat $X/x.txt
        # What a crash has torn.
        ibifs umount M; for f in $(find C/pieces C/files -type f); do truncate -s 3 $f; done; world; cmp $X/big A/$one/doc/big; cat $X/x.txt"#,
        "text\ntext\ntext\ntext",
    );
}

/// A file that was damaged at its Archive since a scrub has recorded its digest is an error.
#[test]
fn a_file_that_was_damaged_at_its_archive_is_not_delivered() {
    let world = World::scrubbed();
    world.prints(
        r#"X=A.store/col/$one/doc; when=$(stat -c %y $X/big)
        printf Z | dd of=$X/x.txt conv=notrunc bs=1 seek=1 status=none; touch -d 2020-02-02T02:02:02.5 $X/x.txt
        printf ZZ | dd of=$X/big conv=notrunc bs=1 seek=5000000 status=none; touch -d "$when" $X/big; world
        part() { { LC_ALL=C dd if=M/$one/doc/$1 bs=1M skip=$2 count=1 status=none 2>&1 > got || true; } | sed 's/.*: //'; wc -c < got; }
        part x.txt 0; part big 0; part big 4; part big 8
        # Where the digest of the whole file alone is recorded, nothing of it is given.
        forget; rm A.store/fixity/col/$one/*.pieces; world; part big 0"#,
        "Input/output error\n0\n1048576\nInput/output error\n0\n611392\nInput/output error\n0",
    );
}

/// Of a file whose pieces have recorded digests, the pieces that are read are fetched, and no others.
#[test]
fn a_piece_is_compared_with_its_recorded_digest() {
    let world = World::scrubbed();
    world.prints(
        r#"world; stat M/$one/doc/big > /dev/null; asked tail -c 9 M/$one/doc/big; find C/pieces -type f | wc -l
        cmp M/$one/doc/big A/$one/doc/big; curl -s "$U/$one?inventory" | grep -o ',pieces'"#,
        "2\n1\n,pieces",
    );
}

/// A file whose digest is recorded is compared as a whole before its first byte is given; then its pieces are cached.
#[test]
fn a_recorded_digest_is_compared() {
    let world = World::scrubbed();
    world.prints(
        r#"rm A.store/fixity/col/$one/*.pieces; world; head -c 1 M/$one/doc/big | cmp -n 1 - A/$one/doc/big
        asked cat M/$one/doc/big; asked cmp M/$one/doc/big A/$one/doc/big
        made() { test -z "$(ls C/pieces)"; }; waits made; cat C/files/* | wc -c"#,
        "0\n0\n9000000",
    );
}

/// A connection that is cut is no short file: reading goes on, or is an error.
#[test]
fn a_connection_that_is_cut_is_no_short_file() {
    let world = World::mounted();
    world.sh("stat M/$one");
    for after in [0, 50, 100_000, 5_000_000] {
        world.proxy.set(Mode::Cut(after));
        world.sh(
            "if timeout 60 cat M/$one/doc/big > got 2> /dev/null; then cmp got A/$one/doc/big; else cmp -n $(stat -c %s got) got A/$one/doc/big; fi",
        );
    }
    world.proxy.set(Mode::Pass);
    world.sh("cmp M/$one/doc/big A/$one/doc/big");
}

/// A file that has changed at its Archive is ESTALE for who has it open, and a new file for who looks again.
#[test]
fn a_changed_file_is_a_new_file() {
    let world = World::mounted();
    world.prints(
        r#"X=M/$one/doc; before=$(stat -c %i $X/x.txt); exec 3< $X/x.txt; echo other > A/$one/doc/x.txt
        { LC_ALL=C cat <&3 2>&1 || true; } | sed 's/.*: //'; ibifs umount M > /dev/null || true; exec 3<&-; rm -rf C; world
        cat $X/x.txt"#,
        "Stale file handle\nother",
    );
}

/// The limit of the cache is never exceeded, and everything can be read all the same.
#[test]
fn the_limit_of_the_cache_holds() {
    let world = World::new();
    world.prints(
        r#"for n in $(seq 12); do head -c 12000000 /dev/urandom > A/$one/doc/f$n; done
        world --cache-size 64M
        over() { while test ! -e done; do used=$({ du -s --block-size=1 C 2> /dev/null || true; } | cut -f 1)
            test $used -le $((64 << 20)) || echo over $used; sleep 0.02; done; }
        over & for n in $(seq 12) $(seq 12 -1 1); do cmp M/$one/doc/f$n A/$one/doc/f$n; done; touch done; wait
        ibifs world status M --json | jq '.cache.bytes <= .cache.limit, .cache.limit'
        ibifs umount M; world --cache-size 64M; cmp M/$one/doc/f1 A/$one/doc/f1"#,
        "true\n67108864",
    );
}

/// A copy is verified and knows its names and its original; one that was interrupted goes on.
#[test]
fn copying_makes_a_verified_copy() {
    let world = World::mounted();
    world.prints(
        r#"ibifs init B.store --host archive-b.example.net > /dev/null; mkdir B; ibifs mount B.store B
        mkdir -p B/${one%/*}; cp -a M/$one B/${one%/*}/; diff -r --no-dereference M/$one/doc B/$one/doc -x pipe
        state B/$one; echo; ibip B/$one | grep -cx $ibip; stat -c %h B/$one/doc/hard; readlink "B/$one!" | sed "s:$two:TWO:"
        rsync -aHAX M/$two/ B/$two/; cat B/$two/doc/y; rsync -aHAX -i M/$two/ B/$two/; state B/$two; echo
        ibifs fsck B.store | tail -n 1; ibifs umount B"#,
        "Copy\n1\n2\n../../../TWO\nsecond\nCopy\n3 items, 0 findings",
    );
}
