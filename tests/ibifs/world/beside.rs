//! Items of other Archives in a mounted store: `-o world=URL`.

use std::time::{Duration, Instant};

use super::proxy::Mode;
use super::{TOOLS, World};
use crate::http::served::Served;
use crate::support::{TestEnv, takes_less_than, time_of, without_a_wait};

/// The functions that scripts use. The store B has the item `mine`, whose links lead to items of A.
const BESIDE: &str = r#"
OUT=world-archive=${PROXY-},world-cache=C
beside() { ibifs mount B.store B -o $OUT "$@"; }
# How many processes show the items of other Archives in B.
worlds() { pgrep -fc -- "--foreground .*-- $PWD/B/.world\$" || true; }
ended() { test $(worlds) = 0; }
said() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed 's/.*: //'; }
mounts() { { findmnt -nro FSTYPE -R B || true; } | paste -sd ' '; }
requests() { ibifs world status B/.world --json | jq .requests; }
"#;

impl World {
    /// The Archive A is served, and B is a store with links to it, which is not mounted.
    fn beside() -> World {
        let world = World::new();
        world.sh(
            r#"ibifs init B.store --host archive-b.example.net > /dev/null; mkdir B; ibifs mount B.store B
            mine=$(ibifs mint B | head -n 1); echo own > B/$mine/doc/own
            ln -s ../../../../../$one/doc/x.txt B/$mine/doc/out
            ln -sfn ../../../$two "B/$mine!"; ln -sfn ../../../$one "B/$mine+(pt)"
            echo "mine=$mine mineibip=$(ibip B/$mine)" >> vars; ibifs umount B"#,
        );
        world
    }

    #[track_caller]
    fn says(&self, script: &str, expected: &str) {
        self.prints(&format!("{BESIDE}\n{script}"), expected);
    }

    /// Twice the time in which B is unmounted while the network answers, and less than a second longer.
    fn usual_end(&self) -> Duration {
        self.says("beside; cat B/.world/$one/doc/x.txt", "text");
        let end = || self.says("cat B/$mine/doc/own; ibifs umount B; mounts", "own\n");
        without_a_wait(time_of(end))
    }
}

/// They are in `.world`, which is a mount of a process of its own, and in no list.
#[test]
fn they_are_beside_the_items_of_a_store() {
    let world = World::beside();
    world.says(
        r#"beside; cat B/.world/$one/doc/x.txt B/.world/$ibip/doc/x.txt B/$mine/doc/own; mounts; worlds
        ls -A B; ls -A B | grep -c world || true; ibifs world status B/.world --json | jq .items; stat -c %A B/.world
        said mkdir B/.world; said rmdir B/.world; said ls B/.world; no cat B/$one/doc/x.txt
        ibifs umount B; mounts; waits ended; test -d C"#,
        "text\ntext\nown\nfuse.ibifs fuse.ibifs-world\n1\nexample.net\n0\n2\ndr-xr-xr-x\nFile exists\n\
         Device or resource busy\nPermission denied\n",
    );
    // The default cache is the user's.
    world.says(
        r#"ibifs mount B.store B -o world-archive=$PROXY -o list=all,world-cache-size=64M; cat B/.world/$one/doc/x.txt
        ls -A B | grep '^\.' | paste -sd ' '; ibifs world status B/.world --json | jq .cache.limit
        ibifs umount B; waits ended; test -d .cache/ibifs/world; rm -r .cache"#,
        "text\n.find .mint\n67108864",
    );
}

/// A network that does not answer delays neither a mount nor the end of one, and the store is used meanwhile.
#[test]
fn the_store_does_not_wait_for_the_network() {
    let world = World::beside();
    let usual = world.usual_end();
    for script in [
        "beside -o world=http://127.0.0.1:1,world=http://192.0.2.1,http://192.0.2.2",
        "ibifs mount B.store B -o world=http://no-such-host.invalid,world-cache=C",
    ] {
        let end = || {
            world.sh(&format!("{BESIDE}\n{script}"));
            world.proxy.set(Mode::Stall);
            world.sh(&format!(
                "{BESIDE}\n(cat B/.world/$two/doc/y > /dev/null 2>&1 & ls B/.world/8JMKD3MGP8W/34PGRBS > /dev/null 2>&1 &)"
            ));
            let begun = Instant::now();
            world.says("cat B/$mine/doc/own; ibifs umount B; mounts", "own\n");
            let took = begun.elapsed();
            world.proxy.set(Mode::Pass);
            took
        };
        takes_less_than(usual, end);
    }
    let begun = Instant::now();
    world.says(
        r#"ibifs mount B.store B -o world=http://127.0.0.1:1,world-cache=D; said ls B/.world/$one; ibifs umount B"#,
        "No route to host",
    );
    assert!(begun.elapsed() < Duration::from_secs(5) + usual);
}

/// A process that waits for the network, where a link of the store has led it, keeps neither mount.
#[test]
fn who_waits_for_the_network_keeps_no_mount() {
    let world = World::beside();
    let usual = world.usual_end();
    let ended = |end: &str| {
        world.sh(&format!("{BESIDE}\nbeside -o ro,world=fallback; exec 3< B/$ibip/doc/big; head -c 10 <&3 > /dev/null"));
        world.proxy.set(Mode::Stall);
        let script = format!(
            r#"{BESIDE}
            for name in 8JMKD3MGP8W/34PGRBS $two/doc/y .world/8JMKD3MGP8W/34PGRBT; do
                (cat B/$name 2>&1 | sed 's/.*: //' >> said &)
            done
            exec 3< B/$ibip/doc/big; sleep 0.2; begun=$(date +%s%N); {end}; echo $(( ($(date +%s%N) - begun) / 1000000 ))
            waits eval 'test $(wc -l < said) = 3'; no grep -vx -e 'Software caused connection abort' -e 'No route to host' said
            grep -c 'No route to host' said || true; rm said
            exec 3<&-; waits eval 'test -z "$(mounts)"'; waits ended"#
        );
        let printed = world.sh(&script);
        world.proxy.set(Mode::Pass);
        // After two seconds a lookup ends by itself.
        match printed.split_once('\n') {
            Some((took, "0")) => Duration::from_millis(took.parse().expect("milliseconds")),
            _ => Duration::MAX,
        }
    };
    for end in [
        "ibifs umount B",
        "kill $(daemon B.store); waits eval 'test -z \"$(mounts)\"'",
    ] {
        takes_less_than(usual, || ended(end));
    }
}

/// The other mount ends with the store's mount, in whatever way that ends. A process that was killed leaves nothing
/// that the next mount does not clear.
#[test]
fn both_mounts_end_together() {
    let world = World::beside();
    for end in [
        "ibifs umount B",
        "umount -l B",
        "umount -R B",
        "fusermount3 -uz B",
        "umount B/.world; umount B",
        "kill $(daemon B.store)",
        "kill -9 $(daemon B.store); ibifs umount B",
        // The next mount detaches it.
        "kill -9 $(daemon B.store); waits eval '! stat -f B'; beside; ibifs umount B",
        "pkill -9 -f -- \"-- $PWD/B/.world\\$\"; waits eval '! stat -f B/.world'; ibifs umount B",
    ] {
        world.says(
            &format!("beside; cat B/.world/$one/doc/x.txt; {end}; waits eval 'test -z \"$(mounts)\"'; waits ended; ls B | wc -l"),
            "text\n0",
        );
    }
}

/// A process that is killed takes nothing from the store: what it showed is not said not to exist, and the same command
/// that mounts elsewhere shows it again.
#[test]
fn a_process_that_is_killed_leaves_the_store() {
    let world = World::beside();
    world.says(
        r#"beside; kill -9 $(pgrep -f -- "-- $PWD/B/.world\$"); waits ended; waits eval '! stat -f B/.world'
        said cat B/.world/$one/doc/x.txt; cat B/$mine/doc/own; ibifs world B/.world --archive $PROXY --cache C
        cat B/.world/$one/doc/x.txt; umount B/.world; said cat B/.world/$one/doc/x.txt; ibifs umount B"#,
        "Transport endpoint is not connected\nown\ntext\nNo route to host",
    );
}

/// A cache that cannot be used is reported, and the store is mounted without.
#[test]
fn without_a_cache_the_store_is_mounted_all_the_same() {
    let world = World::beside();
    world.says(
        r#"echo > file; ibifs mount B.store B -o world-archive=$PROXY,world-cache=file 2> complaint; grep -c 'no items of other Archives' complaint
        cat B/$mine/doc/own; said ls B/.world/$one; ibifs umount B"#,
        "1\nown\nNo route to host",
    );
}

/// In the foreground, as a service manager starts it, a signal ends both.
#[test]
fn in_the_foreground_it_is_the_same() {
    let world = World::beside();
    world.says(
        r#"ibifs mount -f B.store B -o $OUT & waits test -d B/.world/$one; cat B/.world/$one/doc/x.txt
        kill -INT %1; wait %1; waits eval 'test -z "$(mounts)"'; waits ended"#,
        "text",
    );
}

/// With `world=fallback` a name of an item that is not held here leads to the other Archives, and a relative link to one
/// of its files does.
#[test]
fn with_the_fallback_links_between_archives_hold() {
    let world = World::beside();
    world.says(
        r#"beside -o ro,world=fallback; IFS=/ read -r a b c d <<< "$one"
        readlink B/$one B/$ibip "B/$ibip!" "B/$one?GetLastEdition+GetMetadata(bibtex)" | sed "s:$one:ONE:; s:$ibip:IBIP:"
        cat B/$mine/doc/out B/$ibip/doc/x.txt "B/$ibip!/doc/y" "B/$one:"; (cd B/$mineibip/doc; cat out)
        stat -c '%F %A' B/$a B/$a/$b/$c B/${ibip%/*} B/8JMKD3MGP8W; said ls B/$a; ls -A B
        no stat B/a..b; no stat B/.x; no stat B/$a/$b/x; no stat B/$a/$b/$c/doc; no stat B/${ibip%/*}/_
        said mkdir B/new.org; said touch B/$a/x; said cat B/8JMKD3MGP8W/34PGRBS/doc/x
        cat "B/$mine!/doc/y" "B/$mineibip+(pt)/doc/x.txt"; no stat "B/$mine+(en)"; no stat "B/$mine?"
        (cd B; find . | wc -l; find -L . 2> /dev/null | wc -l) ; ibifs umount B"#,
        "../../../.world/ONE\n../.world/IBIP\n../.world/IBIP!\n../../../.world/ONE!:(bibtex)\n\
         text\ntext\nsecond\ntitle: Rainfall\ntext\n\
         directory d--x--x--x\ndirectory d--x--x--x\ndirectory d--x--x--x\ndirectory d--x--x--x\n\
         Permission denied\nexample.net\nFile exists\nRead-only file system\nNo such file or directory\n\
         second\ntext\n12\n12",
    );
}

/// In a mount that is written to, a name that does not exist is free.
#[test]
fn the_fallback_is_for_mounts_that_are_read_only() {
    let world = World::beside();
    let env: &TestEnv = &world.env;
    for (options, refused) in [
        ("$OUT,world=fallback", "world=fallback needs 'ro'"),
        ("ro,world=fallback", "world=fallback needs world=URL"),
        ("world-cache=C", "world-cache= needs world=URL"),
        ("world=urlib.net", "unknown mount option 'world=urlib.net'"),
        (
            "$OUT,world-cache-size=x",
            "world-cache-size=x: not a number of bytes",
        ),
    ] {
        env.complains(
            &format!(". ./vars\n{BESIDE}\nibifs mount B.store B -o {options}"),
            refused,
        );
    }
    world.says(
        r#"beside; said ls B/$one; mkdir -p B/${one%/*}; cp -a B/.world/$one B/${one%/*}/; cat B/$one/doc/x.txt
        readlink B/$mine/doc/out | sed "s:$one:ONE:"; cat B/$mine/doc/out; state B/$one; echo; rsync -aHAX --itemize-changes B/.world/$one/ B/$one/
        ibifs umount B; ibifs fsck B.store | tail -n 1"#,
        "No such file or directory\ntext\n../../../../../ONE/doc/x.txt\ntext\nCopy\n3 items, 0 findings",
    );
}

/// A modifier that leads to an item that is not held here leads to the other Archives; once it is held, to it.
#[test]
fn modifiers_lead_out() {
    let world = World::beside();
    world.says(
        r#"shown() { readlink "$@" | sed "s:$one$:ONE:; s:$two$:TWO:"; }
        ibifs mount B.store B; shown "B/$mine!" "B/$mineibip!"; no cat "B/$mine!/doc/y"; ibifs umount B
        beside; shown "B/$mine!" "B/$mineibip!" "B/$mine+(pt)"; cat "B/$mine!/doc/y" "B/$mineibip!/doc/y"
        getfattr --only-values -n user.ibi.nextedition B/$mine | sed "s:$two:TWO:"; echo
        # What it shows declares the same.
        ln -sfn "$(readlink "B/$mine!")" "B/$mine!"; grep nextedition B/$mine/.ibi | sed "s:$two:TWO:"
        mkdir -p B/${two%/*}; cp -a B/.world/$two B/${two%/*}/; shown "B/$mine!"; cat "B/$mine!/doc/y"
        ibifs umount B; ibifs mount B.store B -o $OUT,list=all; ls -l B/${mine%/*} | grep -c 'pt).*-> .*world'; ibifs umount B"#,
        "../../../TWO\n../TWO\n../../../.world/TWO\n../.world/TWO\n../../../.world/ONE\nsecond\nsecond\nTWO\n\
         ibi.nextedition {rep TWO}\n../../../TWO\nsecond\n1",
    );
}

/// Programs that walk through a store send no request.
#[test]
fn what_walks_is_not_led_out() {
    let world = World::beside();
    world.says(
        r#"walk() { local before=$(requests); "$@" > walked 2>&1 || { cat walked; exit 1; }; echo $(($(requests) - before)); }
        # As Baloo, Tracker and updatedb read it: each name, its type and its attributes.
        indexed() { python3 -c '
import os, sys
for above, directories, files in os.walk(sys.argv[1]):
    for name in directories + files:
        path = os.path.join(above, name); os.lstat(path); os.listxattr(path, follow_symlinks=False)
        if os.path.isfile(path) and not os.path.islink(path): open(path, "rb").read()' "$1"; }
        for options in $OUT ro,$OUT,world=fallback; do
            ibifs mount B.store B -o $options; cat B/.world/$one/doc/x.txt > /dev/null
            walk find B -ls; walk find B -xdev -type f -exec cat {} +; walk du -a B; walk du -x B; walk ls -lR B; walk tar -cf t.tar B
            walk rsync -a B/ copy/; walk rsync -aHAX --delete B/ copy/; walk cp -a B all; walk grep -r own B; walk indexed B; walk indexed $PWD/B
            walk df B; no grep -r world walked copy; rm -r all copy
            ibifs umount B
        done | sort | uniq -c | sed 's/^ *//'; no tar -tf t.tar '*.world*'"#,
        "26 0",
    );
}

/// Links and editions that lead from Archive to Archive and back end: ELOOP.
#[test]
fn loops_between_archives_end() {
    let env = World::archive();
    env.sh(
        r#"ibifs init B.store --host archive-b.example.net > /dev/null; mkdir B
        for archive in A B; do
            service=$(sed -n 's/^ibi.archiveservice {rep \([^ ]*\) .*/\1/p' $archive.store/archive.ibi)
            ibifs resolver register --db r.db $service > key.$archive; chmod 600 key.$archive
        done"#,
    );
    let resolver = Served::resolver(&env, "");
    let serve = |archive: &str| {
        let options = format!(
            "{archive}.store --address 127.0.0.1:0 --resolver {} --registration-key-file key.{archive} --email a@example.org",
            resolver.url
        );
        let mut served = Served::start(&env, &options);
        assert!(served.line().starts_with("included with "));
        served
    };
    let (_first, _second) = (serve("A"), serve("B"));
    let script = r#"ibifs mount B.store B; mine=$(ibifs mint B | head -n 1) third=$(ibifs mint A | head -n 1)
        # The items of A and B link to each other, and to what their modifiers lead to.
        ln -s ../../../../../$mine/doc/round A/$one/doc/round; ln -s ../../../../../$one/doc/round B/$mine/doc/round
        ln -s ../../../../../$one/doc/self A/$one/doc/self
        ln -s "../../../../../$two!/doc/e" A/$one/doc/e; ln -s "../../../../../$one!/doc/e" A/$two/doc/e
        # The third's next edition is B's.
        ln -sfn ../../../$mine "A/$third!"; echo found > B/$mine/doc/here; ibifs umount B
        OUT=ro,world=$U,world-allow-private,world=fallback; ibifs mount B.store B -o $OUT,world-cache=C
        for link in $mine/doc/round $one/doc/round .world/$one/doc/round .world/$mine/doc/round $one/doc/self $one/doc/e .world/$two/doc/e; do
            said cat B/$link
        done | sort | uniq -c | sed 's/^ *//'
        cat "B/$third!/doc/here" "B/.world/$third!/doc/here"; ibifs umount B
        # The next edition of that is the third.
        ibifs mount B.store B; ln -sfn ../../../$third "B/$mine!"; ibifs umount B; ibifs mount B.store B -o $OUT,world-cache=D
        for item in $third .world/$third .world/$mine; do said cat "B/$item!/doc/here"; done | sort | uniq -c | sed 's/^ *//'
        ibifs umount B"#;
    resolver.prints(
        &env,
        &format!("{TOOLS}\n{BESIDE}\n{script}"),
        "7 Too many levels of symbolic links\nfound\nfound\n3 Too many levels of symbolic links",
    );
}
