//! Copies of items of other Archives in a store: by cp, rsync and `ibifs copy`, whole or to be continued.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use super::proxy::{Mode, answering};
use super::{TOOLS, World};
use crate::http::served::Served;
use crate::support::{Disk, Format, TestEnv};

/// `same` compares an item with its copy: names, kinds, modes, links, times to the nanosecond and content, except for what
/// the public may not read. `tail1` prints the sums of a copy.
const COMPARE: &str = r#"
names() { (cd "$1"; find . ! -name .ibi ! -path ./doc/secret ! -path './doc/shut*' -printf '%P %y %m %T@ %l ' \( -type f -printf '%n %s' -o -true \) -printf '\n' | LC_ALL=C sort); }
same() { find "$1" "$2" -exec stat --cached=never {} + > /dev/null; names "$1" > 1st; names "$2" > 2nd; diff -a 1st 2nd; diff -r --no-dereference "$1" "$2" -x secret -x shut -x .ibi -x pipe; }
sums() { tail -n 1 | sed 's/^\([0-9]*\) items*, .* bytes*;/\1,/'; }
listed() { ibifs ls "$1" | wc -l; }
"#;

/// A World with the store B, which is not mounted; nothing in the item `one` is a FIFO.
fn with_b(world: World) -> World {
    world.sh("rm A/$one/doc/pipe; ibifs init B.store --host archive-b.example.net; mkdir B");
    world
}

#[track_caller]
fn prints(world: &World, script: &str, expected: &str) {
    world.prints(&format!("{COMPARE}{script}"), expected);
}

/// An item is fetched by any spelling of its identifier, with all that is public of it, and once; also into a mounted store.
#[test]
fn an_item_is_fetched() {
    for mount in ["", "ibifs mount B.store B"] {
        let world = with_b(World::new());
        prints(
            &world,
            &format!(
                r#"mkdir "A/$one+(pt)"; about=$(ibifs mint A --metadata-of A/$one | head -n 1); {mount}
                copy() {{ ibifs copy --from $PROXY "$@" B.store; }}
                copy $one | sums; same A/$one B.store/col/$one; ls B.store/handover/incoming | wc -l
                state() {{ ibifs show --store B.store $1 | sed -n 's/^state *//p'; }}; state $one; state $ibip
                diff A/$one/.ibi B.store/col/$one/.ibi; ibifs show --store B.store $one | grep -c translation
                for name in $ibip ibi:$ibip https://resolver.example.org/$ibip $PROXY/$one; do copy "$name" | sums; done
                ibifs copy $PROXY/$ibip B.store | sums
                copy "$one!" | sums; state $two; copy 6RPa7umaZ/UaJFT | sums; cat B.store/ibip/6RPa7umaZ/UaJFT/doc/x
                copy --with-metadata $one | sums; state $about
                ! mountpoint -q B || ibifs umount B; ibifs fsck B.store | tail -n 1; ibifs scrub B.store | grep -c recorded"#
            ),
            "1, 0 unchanged, 0 skipped\n0\nCopy\nCopy\n1\n\
             0, 1 unchanged, 0 skipped\n0, 1 unchanged, 0 skipped\n0, 1 unchanged, 0 skipped\n0, 1 unchanged, 0 skipped\n\
             0, 1 unchanged, 0 skipped\n\
             1, 0 unchanged, 0 skipped\nCopy\n1, 0 unchanged, 0 skipped\nold\n\
             1, 1 unchanged, 0 skipped\nCopy\n5 items, 0 findings\n1",
        );
    }
}

/// A copy that an interruption has left in the tree, and whose sidecar was not accepted, gets its names from the next one.
#[test]
fn a_copy_that_was_not_accepted_is_completed() {
    let world = with_b(World::new());
    prints(
        &world,
        r#"ibifs copy --from $PROXY $one B.store | sums; ibifs show --store B.store $one --json | jq -r .ibip > before
        sqlite3 B.store/relations.sqlite3 "UPDATE item SET ibip = NULL, ibip_key = NULL, sidecar = NULL WHERE rep = '$one'"
        { ibifs fsck B.store || true; } | grep -o ^name-refused; ibifs copy --from $PROXY $one B.store | sums; ibifs show --store B.store $one --json | jq -r .ibip | diff before -
        ibifs fsck B.store"#,
        "1, 0 unchanged, 0 skipped\nname-refused\n1, 0 unchanged, 0 skipped\n2 items, 0 findings",
    );
}

/// An unchanged item costs one request. Of a changed one only files with other content come, and of a long file the
/// bytes from the first piece that differs.
#[test]
fn a_second_copy_moves_what_has_changed() {
    for scrub in ["", "ibifs scrub A.store"] {
        let world = with_b(World::archive_served(scrub));
        world.sh("ibifs copy --from $PROXY $one B.store");
        let before = world.proxy.sent();
        world.sh("ibifs copy --from $PROXY $one B.store | grep -q '^unchanged'");
        assert!(world.proxy.sent() - before < 10_000);
        let before = world.proxy.sent();
        prints(
            &world,
            "echo more >> A/$one/doc/x.txt; ibifs copy --from $PROXY $one B.store | sums; same A/$one B.store/col/$one",
            "1, 0 unchanged, 0 skipped",
        );
        assert!(world.proxy.sent() - before < 20_000);
        let before = world.proxy.sent();
        prints(
            &world,
            "printf ZZ | dd of=A/$one/doc/big conv=notrunc bs=1 seek=8700000 status=none; rm A/$one/doc/nothing
             ibifs copy --from $PROXY $one B.store | sums; same A/$one B.store/col/$one; ibifs fsck B.store | tail -n 1",
            "1, 0 unchanged, 0 skipped\n2 items, 0 findings",
        );
        assert!(world.proxy.sent() - before < 1_000_000);
    }
}

/// A run of a script, which ends when this is dropped.
struct Run(Child);

impl Run {
    fn of(env: &TestEnv, script: &str) -> Run {
        let mut command = env.command(script);
        command.stdout(std::process::Stdio::null());
        Run(command.spawn().expect("bash runs"))
    }

    /// Waits until so many bytes of a file have arrived in a store.
    #[track_caller]
    fn until_there_are(&self, bytes: u64, store: &Path) {
        let started = Instant::now();
        let parts = || {
            let items = std::fs::read_dir(store.join("handover/incoming")).ok()?;
            let files = items
                .flatten()
                .filter_map(|item| std::fs::read_dir(item.path()).ok());
            let files = files.flatten().flatten();
            let parts = files.filter(|it| it.path().extension().is_some_and(|end| end == "part"));
            parts.filter_map(|it| Some(it.metadata().ok()?.len())).max()
        };
        while parts().is_none_or(|length| length < bytes) {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "it does not arrive"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(mut self) {
        let _ = self.0.kill();
        let status = self.0.wait().expect("its end");
        assert_eq!(status.signal(), Some(9), "it has ended early");
    }
}

/// A copy that was killed has added nothing, and goes on where it was.
#[test]
fn a_killed_copy_goes_on() {
    for mount in ["", "ibifs mount B.store B"] {
        let world = with_b(World::new());
        let store = world.env.root().join("B.store");
        world.sh(mount);
        world.proxy.set(Mode::Slow);
        let copy = "ibifs copy --from $PROXY $one B.store";
        let run = Run::of(&world.env, &format!(". ./vars; exec {copy}"));
        run.until_there_are(3_000_000, &store);
        run.kill();
        prints(&world, "listed B.store; ! test -e B.store/col/$one", "1");
        world.proxy.set(Mode::Pass);
        let before = world.proxy.sent();
        prints(
            &world,
            &format!(
                "{copy} | sums; same A/$one B.store/col/$one; ls B.store/handover/incoming | wc -l; listed B.store
                 ! mountpoint -q B || ibifs umount B; ibifs fsck B.store | tail -n 1"
            ),
            "1, 0 unchanged, 0 skipped\n0\n2\n2 items, 0 findings",
        );
        assert!(world.proxy.sent() - before < 6_200_000);
    }
}

/// Connections that are cut again and again are continued; a byte that changed on the way is fetched again or an error.
#[test]
fn a_bad_network_makes_no_bad_copy() {
    let world = with_b(World::new());
    world.proxy.set(Mode::Cut(1_000_000));
    prints(
        &world,
        "ibifs copy --from $PROXY $one B.store | sums; same A/$one B.store/col/$one",
        "1, 0 unchanged, 0 skipped",
    );
    for at in [0, 100, 450, 600, 5_000, 3_000_000] {
        world.proxy.set(Mode::Corrupt(at));
        world.sh(&format!(
            r#"{COMPARE} rm -rf D; ibifs init D --host archive-d.example.org > /dev/null
            if timeout 60 ibifs copy --from $PROXY $one D > said 2> /dev/null; then same A/$one D/col/$one
            else test $? -le 3; test $(listed D) = 1; ! test -e D/col/$one; fi; ibifs fsck D"#
        ));
    }
    world.proxy.set(Mode::Refuse);
    prints(
        &world,
        "{ ibifs copy --from $PROXY $two B.store || echo $?; } | sed -n '1s/.*: \\(unreachable\\): .*/\\1/p;$p'; listed B.store",
        "unreachable\n1\n2",
    );
}

/// An Archive that lies leaves nothing, and a clear error.
#[test]
fn an_archive_that_lies_leaves_nothing() {
    let world = with_b(World::scrubbed());
    prints(
        &world,
        r#"X=A.store/col/$one/doc; when=$(stat -c %y $X/big); printf ZZ | dd of=$X/big conv=notrunc bs=1 seek=5000000 status=none
        touch -d "$when" $X/big; { ibifs copy --from $PROXY $one B.store || echo $?; } | sed "s:$one:ONE:"; listed B.store
        mkfifo A/$two/pipe; { ibifs copy --from $PROXY $two B.store || echo $?; } | sed "s:$two:TWO:"
        ibifs copy --from $PROXY 8JMKD3MGP8W/34PGRBS B.store > /dev/null || echo $?; listed B.store"#,
        "skipped: ONE: unread: it cannot be read completely: the bytes differ from their digest\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n1\n1\n\
         skipped: TWO: not-copied: not all of it can be copied: 'pipe' is a FIFO, a socket or a device, which is not sent over HTTP\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n1\n3\n1",
    );
    let page = |lines: &str| {
        let text =
            format!("inventory 1\nibi {{ibip 8JMKD3MGP8W/34PGRBS}}\ndirectory 755 1.0 .\n{lines}");
        let length = text.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/x-ibi-inventory\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
        )
    };
    for (lines, code) in [
        ("file 644 1.0 x 1000000000000000 1 -\nend\n", "not-taken"),
        ("file 644 1.0 x 100 1 -\nmore x\n", "unread"),
        ("file 644 1.0 ../x 100 1 -\nend\n", "unread"),
        (
            "text 644 1.0 .ibi ibi%20%7Bibip%208JMKD3MGP8W%2F34PGRBT%7D%0A\nend\n",
            "not-taken",
        ),
        ("file 644 1.0 x 100000 1 -\nend\n", "unreachable"),
    ] {
        let url = answering(page(lines));
        prints(
            &world,
            &format!(
                "{{ timeout 60 ibifs copy --from {url} 8JMKD3MGP8W/34PGRBS B.store || echo $?; }} | sed -n '1s/.*RBS: \\([a-z-]*\\).*/\\1/p;$p'; listed B.store"
            ),
            &format!("{code}\n1\n1"),
        );
    }
    // Another item than the one that was asked for, and a name that this store gives out.
    let url = answering(page("end\n"));
    prints(
        &world,
        &format!(
            "ibifs copy --from {url} 6RPa7umaZ/UaJFT B.store > /dev/null || echo $?; ibifs fsck B.store | tail -n 1"
        ),
        "1\n1 item, 0 findings",
    );
}

/// A disk without room is an error at the beginning, and one that fills up later on; then the same command goes on.
#[test]
fn a_full_disk_leaves_nothing() {
    let world = with_b(World::new());
    let disk = Disk::new(world.env.root(), "disk", Format::Ext4, 200);
    world.sh("ibifs init disk/S --host archive-s.example.net");
    let store = disk.directory().join("S");
    let copy = "ibifs copy --from $PROXY $one disk/S";
    prints(
        &world,
        &format!(
            r#"left() {{ df --output=avail -B 1 disk | tail -n 1; }}; fallocate -l $(($(left) - 70000000)) disk/filler
            {{ {copy} || echo $?; }} | sed -E "s:$one:ONE:; s/[0-9]+ are free/MANY are free/"; listed disk/S; rm disk/filler"#
        ),
        "skipped: ONE: not-taken: the destination does not accept it: there is not enough space for it: 9000022 bytes are needed, MANY are free\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n1\n1",
    );
    world.proxy.set(Mode::Slow);
    let script = format!(". ./vars; {copy} 2> complaint || echo $? > status");
    let mut run = Run::of(&world.env, &script);
    run.until_there_are(2_000_000, &store);
    world.sh("dd if=/dev/zero of=disk/filler bs=1M status=none 2> /dev/null || true");
    let status = run.0.wait();
    assert!(status.is_ok());
    world.proxy.set(Mode::Pass);
    let before = world.proxy.sent();
    prints(
        &world,
        &format!(
            "cat status; grep -c 'No space left on device' complaint; listed disk/S; rm disk/filler
             {copy} | sums; same A/$one disk/S/col/$one; ibifs fsck disk/S | tail -n 1"
        ),
        "1\n1\n1\n1, 0 unchanged, 0 skipped\n2 items, 0 findings",
    );
    assert!(world.proxy.sent() - before < 7_500_000);
}

/// A resolver finds the Archive: the one that is named, or that of the destination. Addresses that are not public are asked
/// if the user allows it.
#[test]
fn a_resolver_finds_the_item() {
    let env = World::archive();
    env.sh(
        "rm A/$(. ./vars; echo $one)/doc/pipe
         ibifs resolver register --db r.db $(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' A.store/archive.ibi) > key
         chmod 600 key; ibifs umount A; ibifs init B.store --host archive-b.example.net",
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
    resolver.prints(
        &env,
        &format!(
            r#"{TOOLS}{COMPARE} R={}; . ./vars
            code() {{ {{ "$@" || echo $?; }} | sed -n 's/^skipped: [^:]*: \([^:]*\).*/\1/p;$p'; }}
            code ibifs copy --resolver $R $one B.store
            ibifs copy --resolver http://127.0.0.1:1 --resolver $R --allow-private $one B.store | sums
            ibifs copy $R/$ibip --allow-private B.store | sums
            ibifs copy --resolver $R --allow-private "$one!" B.store | sums
            code ibifs copy --resolver $R --allow-private 8JMKD3MGP8W/34PGRBS B.store
            # Where one store is mounted on the machine, it is asked first: here none is seen to be.
            echo "resolver $R/" >> B.store/archive.ibi
            unshare -m bash -euc 'umount -l -a -t fuse.ibifs || true; ibifs copy --allow-private 6RPa7umaZ/UaJFT B.store' | sums
            ibifs fsck B.store | tail -n 1"#,
            resolver.url
        ),
        "unreachable\n1\n1, 0 unchanged, 0 skipped\n0, 1 unchanged, 0 skipped\n1, 0 unchanged, 0 skipped\n\
         not-found\n3\n1, 0 unchanged, 0 skipped\n4 items, 0 findings",
    );
    drop(served);
}

/// Arguments that make no sense together are refused: a choice, a destination at a URL, items of a store beside
/// others.
#[test]
fn what_cannot_be_fetched_is_refused() {
    let world = with_b(World::new());
    prints(
        &world,
        r#"says() { LC_ALL=C "$@" 2>&1 || echo $?; }
        says ibifs copy --from $PROXY --prefix example.org B.store; says ibifs copy --from $PROXY $one http://127.0.0.1:1/
        says ibifs copy --from $PROXY A/$one $two B.store | sed "s:$one:ONE:"
        says ibifs copy --from $PROXY $one A.store | sed "s:$one:ONE:"
        says ibifs copy --from ftp://x $one B.store | tail -n 1; ibifs copy --from $PROXY A/$one B.store | sums"#,
        "ibifs: name the items that are fetched with --from or --resolver; for all items of an Archive mount it and copy from the mount\n2\n\
         ibifs: items of other Archives are copied to a store on this machine; 'http://127.0.0.1:1/' is a URL\n2\n\
         ibifs: 'A/ONE' is in a store of this machine and others are fetched; copy them with two commands\n2\n\
         skipped: ONE: original-there: the destination holds the original\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n4\n2\n1, 0 unchanged, 0 skipped",
    );
}

/// cp, rsync and `ibifs copy` from a mount make the same copy, in both trees of a mounted store and in one that is not
/// mounted. A second rsync moves what has changed.
#[test]
fn a_mount_is_copied_from() {
    let world = with_b(World::new());
    prints(
        &world,
        r#"world; ibifs mount B.store B; other=$(ibip A/$two); mkdir "A/$one+(pt)"
        # rsync leaves directories and links with a time of the same second.
        find A/$one A/$two ! -type f -exec touch -h -d 2021-03-04T05:06:07.8 {} +
        mkdir -p B/${one%/*}; cp -a M/$one B/${one%/*}/; same A/$one B/$one; same A/$ibip B/$ibip
        test "$(readlink "B/$one+(pt)")" = "$(readlink "A/$one+(pt)")"
        mkdir -p B/${other%/*}; rsync -aH M/$other B/${other%/*}/; same A/$two B/$two; same A/$other B/$other
        state B/$one; echo; state B/$two; echo; cmp B/$one/.ibi A/$one/.ibi; cmp B/$two/.ibi A/$two/.ibi
        echo new > A/$two/doc/new; touch -d 2001-01-01 A/$two/doc/y; P=$(process); ibifs umount M; waits is_over $P; rm -r C/items; world
        rsync -aHi M/$two/ B/$two/ | grep -v '/$'
        # Interrupted: what was read once comes from the cache.
        rm -r B/$one; mkdir -p B/$one/doc; head -c 5000000 M/$one/doc/big > B/$one/doc/big
        before=$(requests); rsync -aH --append-verify M/$one/ B/$one/; test $(($(requests) - before)) -lt 6; same A/$one B/$one
        ibifs copy M/$two B.store > /dev/null; ibifs copy M/$one/doc/x.txt B.store > /dev/null; same A/$two B/$two
        ibifs umount B; ibifs fsck B.store | tail -n 1; ibifs scrub B.store | grep -c recorded
        ibifs init D --host archive-d.example.org > /dev/null; ibifs copy M/$ibip D | sums; same A/$one D/col/$one
        { ibifs copy M/${ibip%/*} D 2>&1 || echo $?; } | tail -n 1; ibifs fsck D | tail -n 1; ibifs umount M"#,
        "Copy\nCopy\n>f+++++++++ doc/new\n>f..t...... doc/y\n\
         3 items, 0 findings\n1\n1, 0 unchanged, 0 skipped\n2\n2 items, 0 findings",
    );
}
