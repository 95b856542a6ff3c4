//! Names, attributes and links.

use super::{TOOLS, World};
use crate::http::served::Served;

/// Items are found by both forms of their identifiers, and their files are as in the mount of their Archive, except for
/// what the public may not read.
#[test]
fn an_item_is_as_in_its_archive() {
    let world = World::mounted();
    world.prints(
        r#"list() { (cd "$1"; find . -printf '%P %y %m %n %s %l %T@\n' | LC_ALL=C sort); }
        # Directories have other sizes; the sidecar has the owner's own times.
        same() { sed -E 's/ d ([0-9]+) [0-9]+ [0-9]+/ d \1/' | grep -a -v -e '^secret' -e '^shut' -e '^out'; }
        list A/$one/doc | same > one; list M/$one/doc | same | diff -a one -
        list A/$ibip/doc | same > two; list M/$ibip/doc | same | diff -a two -; wc -l < one
        readlink M/$one/doc/out | sed "s:$two:TWO:"; readlink M/$ibip/doc/out | sed "s:$two:TWO:"
        cat M/$one/doc/out/doc/y M/$ibip/doc/out/doc/y M/6RPa7umaZ/UaJFT/doc/x
        diff -r --no-dereference 'A/'$one'/doc/a b' 'M/'$ibip'/doc/a b'; cat "M/$one/doc/"$'c\x01\n' "M/$one/doc/"Relat*
        echo; cmp M/$one/doc/big A/$one/doc/big; cmp M/$ibip/doc/big A/$one/doc/big
        stat -c %h M/$one/doc/x.txt; test M/$one/doc/x.txt -ef M/$one/doc/hard; diff M/$one/.ibi A/$one/.ibi
        stat -f -c %T M; mount | sed -n "s:.* $PWD/M type \([^ ]*\) (\([^,]*\),nosuid,nodev.*:\1 \2:p""#,
        "16\n../../../../../TWO\n../../../TWO\nsecond\nsecond\nold\ncontrollatin\n2\nfuseblk\nfuse.ibifs-world ro",
    );
}

/// The levels above items answer without asking anybody, and list nothing; a program that walks is not led out.
#[test]
fn levels_are_not_listed() {
    let world = World::mounted();
    world.prints(
        r#"IFS=/ read -r a b c d <<< "$one"
        asked eval 'no ls M; no ls M/$a; no ls M/$a/$b; no ls M/$a/$b/$c; no ls M/${ibip%/*}; find M 2> /dev/null || true
            stat M/$a/$b/$c M/x.org/y M/8JMKD3MGP8W; no stat M/a..b; no stat M/.Trash-0; no stat M/$a/$b/x; df M; stat -f M
            no stat M/$a/$b/$c/99.01.01.01; no stat M/8JMKD3MGP8W/_'
        stat -c '%A' M M/$a M/$a/$b M/${ibip%/*}; { LC_ALL=C ls M 2>&1 || true; } | sed "s:.*'M':M:""#,
        "0\ndr-xr-xr-x\nd--x--x--x\nd--x--x--x\nd--x--x--x\nM: Permission denied",
    );
}

/// One request for an item; what is in it costs none.
#[test]
fn what_is_in_an_item_costs_no_request() {
    let world = World::mounted();
    world.prints(
        r#"asked stat M/$one; asked find M/$one -ls; asked ls -lR M/$one; asked readlink M/$one/doc/link
        asked cat M/$one/.ibi M/$one/.ibi.metadata; asked no stat M/$one/doc/none; asked cat M/$one/doc/x.txt
        asked cat M/$one/doc/x.txt M/$one/doc/hard"#,
        "1\n0\n0\n0\n0\n0\n1\n0",
    );
}

/// Modifiers lead to other items, or are texts.
#[test]
fn modifiers_are_beside_the_item() {
    let world = World::mounted();
    world.prints(
        r#"readlink "M/$one!" | sed "s:$two:TWO:"; cat "M/$one!/doc/y" "M/$ibip!/doc/y"; cat "M/$one:"
        readlink "M/$ibip!" | sed "s:$(ibip A/$two):TWO:"; head -n 1 "M/$one:(bibtex)" | grep -c '^@'
        no stat "M/$one+(pt)"; no stat "M/$one+("; cat "M/$two!/doc/y"; chmod 644 A/$one/doc/secret; chmod 755 A/$one/doc/shut
        cmp "M/$two?GetFileList" "A/$two?GetFileList"; cmp "M/$ibip?GetLastEdition+GetFileList" "A/$two?GetFileList"
        cat "A/$one?GetFileList" > list; forget; world; cmp "M/$one?GetFileList" list"#,
        "../../../TWO\nsecond\nsecond\ntitle: Rainfall\n../TWO\n1\nsecond",
    );
}

/// Nothing is written, and the errno is that of a read-only filesystem.
#[test]
fn it_is_read_only() {
    let world = World::mounted();
    world.prints(
        r#"says() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed 's/.*: //' | sort -u; }
        X=M/$one/doc
        { says touch $X/new; says mkdir $X/new; says rm -f $X/x.txt; says ln -s a $X/l; says ln $X/x.txt $X/h; says mv $X/x.txt $X/z
        says chmod 600 $X/x.txt; says truncate -s 0 $X/x.txt; says setfattr -n user.a -v b $X/x.txt; says mkdir M/x.org
        says mkfifo $X/f; says rmdir $X/empty; says touch -c $X/x.txt; says dd if=/dev/null of=$X/x.txt conv=notrunc; } | sort | uniq -c | sed 's/^ *//'
        getfattr -d -m - $X/x.txt M/$one; getfattr --only-values -n user.ibi.archive M/$one | grep -cx $PROXY
        test $(getfattr --only-values -n user.ibi.age M/$one) -lt 60
        getfattr --only-values -n user.ibi.source $X/x.txt | sed "s|$PROXY||; s|$one|ONE|""#,
        "1 File exists\n13 Read-only file system\n1\n/col/ONE/doc/hard",
    );
}

/// A resolver finds the Archive; one that does not answer is passed over. Archives that it names must have public
/// addresses, unless the user allows more.
#[test]
fn a_resolver_finds_the_archive() {
    let env = World::archive();
    env.sh(
        "ibifs resolver register --db r.db $(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' A.store/archive.ibi) > key
         chmod 600 key",
    );
    let resolver = Served::resolver(&env, "");
    let mut served = Served::start(
        &env,
        &format!(
            "A.store --address 127.0.0.1:0 --resolver {} --registration-key-file key --email a@example.org",
            resolver.url
        ),
    );
    assert!(served.line().starts_with("included with "));
    env.sh(&format!("echo PROXY={} >> vars", served.url));
    let options = format!("--resolver http://127.0.0.1:1 --resolver {}", resolver.url);
    resolver.prints(
        &env,
        &format!(
            r#"{TOOLS}
            ibifs world M {options} --cache C; {{ LC_ALL=C ls M/$one 2>&1 || true; }} | sed 's/.*: //'; ibifs umount M
            ibifs world M {options} --cache C --allow-private; ls M/$one; cat M/$ibip/doc/x.txt
            readlink "M/$one!" | sed "s:$two:TWO:"; cat "M/$one:"; no stat M/8JMKD3MGP8W/34PGRBS
            {{ LC_ALL=C ls -d M/8JMKD3MGP8W/34PGRBS 2>&1 || true; }} | sed 's/.*: //'"#
        ),
        "No route to host\ndoc\ntext\n../../../TWO\ntitle: Rainfall\nNo such file or directory",
    );
    env.sh("ibifs umount M");
    drop(served);
}
