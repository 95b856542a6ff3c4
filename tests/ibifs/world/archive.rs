//! One Archive as a mount (`ibifs mount URL MNT`): listed level by level, so that a collection is migrated over HTTP.

use super::proxy::{Mode, answering};
use super::{TOOLS, World};
use crate::http::https::AUTHORITY;
use crate::http::served::Served;
use crate::support::{TestEnv, time_of};

/// Mounts the Archive.
const ARCHIVE: &str = r#"
archive() { ibifs mount $PROXY M --cache C "$@"; }
# What find sees, but for the sizes of directories and how many they hold.
look() { (cd "$1"; find . -printf '%P %y %m %n %s %l %T@\n' | sed -E 's/ d ([0-9]+) [0-9]+ [0-9]+/ d \1/' | LC_ALL=C sort); }
"#;

/// The Archive A of the other tests, with items of other makers, served and mounted at `M`.
fn mounted() -> World {
    let env = World::archive();
    env.sh(
        "for rep in sid.inpe.br/MTC-m13@80/2005/08.10.14.18 sid.inpe.br/mtc-m18@80/2009/07.21.14.43; do
            mkdir -p A/$rep/doc; echo $rep > A/$rep/doc/name; done; touch -d '2001-01-01T00:00:00.123456789Z' A/sid.inpe.br",
    );
    let world = World::of(env);
    world.sh(&format!("{ARCHIVE} archive"));
    world
}

impl World {
    #[track_caller]
    fn shows(&self, script: &str, expected: &str) {
        self.prints(&format!("{ARCHIVE}{script}"), expected);
    }
}

/// The mount of an Archive looks as the mount of its store, except for what the public may not read. It costs a request
/// for each level and each item.
#[test]
fn it_is_as_the_mount_of_its_store() {
    let world = mounted();
    world.shows(
        r#"public() { grep -a -v -e /secret -e /shut -e '^ d' -e '\.ibi '; }
        # The root is known since its attributes were asked for.
        asked find M > asked; levels=$(find A -mindepth 1 -maxdepth 3 | grep -vc UaJFT) items=$(ibifs ls A | wc -l); test $(< asked) = $((levels + items))
        asked find M -ls; look A | public > a; look M | public | diff -a a -; diff -r --no-dereference -x secret -x shut -x pipe A M
        stat -c %y A M | uniq | wc -l; stat -c %A M M/sid.inpe.br
        asked eval 'no ls M/nowhere.org; no ls M/sid.inpe.br/x; no ls M/.Trash-0; no ls M/sid.inpe.br/MTC-m13@80/x'
        asked no ls M/sid.inpe.br/MTC-m13@80/2005/08.10.14.19; asked no ls M/8JMKD3MGP8W; asked no ls M/8JMKD3MGP8W
        readlink M/SID.inpe.br; cat M/SID.inpe.br/mtc-M13@80/2005/08.10.14.18/doc/name; cat M/$ibip/doc/x.txt
        readlink M/$one! | sed "s:$two:TWO:"; ls M/${ibip%/*} | wc -l; says() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed 's/.*: //'; }
        says mkdir M/x.org; says touch M/sid.inpe.br/x; mount | sed -n "s|$PROXY.* on $PWD/M type \([^ ]*\) (\([^,]*\),.*|\1 \2|p"
        ibifs status | grep -A 1 "^source *$PROXY" | sed "s|$PWD|DIR|; s|$PROXY|URL|"; ibifs status --json | jq -c --arg url $PROXY '.[] | select(.source == $url) | keys'"#,
        "0\n1\ndrwxr-xr-x\ndrwxr-xr-x\n0\n1\n1\n0\nsid.inpe.br\nsid.inpe.br/MTC-m13@80/2005/08.10.14.18\ntext\n../../../TWO\n3\n\
         Read-only file system\nRead-only file system\nfuse.ibifs-world ro\n\
         source   URL\nmounted  DIR/M\n[\"mount_point\",\"source\"]",
    );
}

/// A path that is known costs no listing of what is beside the item: the root is known since its attributes were asked for,
/// every second level by the one above it, then come the item and its file.
#[test]
fn a_known_path_lists_nothing_else() {
    let world = mounted();
    world.shows(
        r#"asked cat M/sid.inpe.br/MTC-m13@80/2005/08.10.14.18/doc/name; asked ls M; asked stat M/sid.inpe.br M/6RPa7umaZ; asked find M/6RPa7umaZ
        ibifs umount M; archive; asked ls M M/sid.inpe.br M/sid.inpe.br/MTC-m13@80"#,
        "3\n0\n0\n2\n1",
    );
}

/// `rsync` migrates a collection over https: until the second run moves nothing, also after one that was interrupted.
/// Copies know their names, their relations and the Archive of their originals.
#[test]
fn rsync_migrates_a_collection_over_https() {
    let env = World::archive();
    env.sh(&format!(
        r#"{AUTHORITY}
        authority ca; certificate own; for number in $(seq 300); do
            rep=sid.inpe.br/mtc-m$((number % 3))@80/200$((number % 4))/0$((number % 9 + 1)).1$((number % 7)).14.$((number % 47 + 10)).$((number % 49 + 10))
            mkdir -p A/$rep/doc; echo $number > A/$rep/doc/name; done
        touch -d '1999-12-31T23:59:59.123456789Z' A/sid.inpe.br/mtc-m1@80/2001/*/doc/name"#,
    ));
    let served = Served::start(
        &env,
        "A.store --tls-cert own.pem --tls-key own.key --address 127.0.0.1:0",
    );
    served.prints(
        &env,
        &format!(
            r#"{TOOLS}{ARCHIVE}
        PROXY=${{U/127.0.0.1/localhost}}; no ibifs mount $PROXY N --cache D; archive --ca-file ca.pem
        ibifs init B.store --host archive-b.example.net > /dev/null; mkdir B; ibifs mount B.store B
        # One that is interrupted in the middle.
        rsync -aHAX --bwlimit=300 M/ B/ & while test $(ibifs ls B | wc -l) -lt 20; do sleep 0.02; done; kill $!; no wait $!
        rsync -aHAX M/ B/; rsync -aHAX M/ B/; rsync -aHAXin M/ B/; asked rsync -aHAXin M/ B/
        diff -r --no-dereference -x pipe -x example.net M B; look M | grep -a -v '^ d' > m; look B | grep -a -v -e '^ d' -e example.net > b; diff -a m b
        ibifs umount B; ibifs fsck B.store | tail -n 1 | sed 's/[0-9]* items/ITEMS/'; ibifs mount B.store B
        ibifs ls B | grep -c ^Original; test $(ibifs ls B | grep -c ^Copy) = $(ibifs ls A | wc -l); readlink "B/$one!" | sed "s:$two:TWO:"
        stat -c %h B/$one/doc/hard; stat -c %y B/sid.inpe.br/mtc-m1@80/2001/*/doc/name | sort -u
        show() {{ ibifs show --json $1/$one | jq -c .archiveservice; }}; test "$(show A)" = "$(show B)"
        ibifs umount B; ibifs umount M"#
        ),
        "0\nITEMS, 0 findings\n1\n../../../TWO\n2\n1999-12-31 23:59:59.123456789 +0000",
    );
}

/// `cp -a` copies an item.
#[test]
fn cp_copies_an_item() {
    let world = mounted();
    world.shows(
        r#"ibifs init B.store --host archive-b.example.net > /dev/null; mkdir B; ibifs mount B.store B; mkdir -p B/${one%/*}
        cp -a M/$one B/${one%/*}/; cp -a M/6RPa7umaZ B/; diff -r --no-dereference M/$one B/$one -x pipe; ibip B/$one | grep -cx $ibip; state B/6RPa7umaZ/UaJFT; echo
        ibifs umount B"#,
        "1\nCopy",
    );
}

/// Trouble is no missing name and no empty directory; what is known is given; mounting and unmounting send no request.
#[test]
fn trouble_is_no_empty_directory() {
    let world = mounted();
    let usual = time_of(|| drop(world.sh(&format!("{ARCHIVE} ibifs umount M; archive"))));
    let usual = usual.as_millis();
    world.proxy.set(Mode::Stall);
    let says = r#"says() { { LC_ALL=C "$@" 2>&1 || true; } | sed 's/.*: //'; }
        within() { local start=$(date +%s%N); "${@:2}"; test $((($(date +%s%N) - start) / 1000000)) -lt $(($1 + 2 * ${usual-0})) || echo slow; }"#;
    let mut shown = String::new();
    // On a machine that is busy all takes longer, and one time may be longer than others; a wait is there each time.
    for _ in 0..3 {
        shown = world.sh(&format!(
            r#"{ARCHIVE}{says}
        mountpoint -q M || archive; usual={usual}
        within 2500 says ls M; within 500 says ls M; says ls M/sid.inpe.br; within 1000 stat -c %F M; within 500 ibifs umount M
        within 500 archive; within 500 ibifs umount M"#
        ));
        if !shown.contains("slow") {
            break;
        }
    }
    assert_eq!(
        shown,
        "No route to host\nNo route to host\nNo route to host\ndirectory"
    );
    world.proxy.set(Mode::Pass);
    world.shows("archive; find M > /dev/null; ibifs umount M", "");
    world.proxy.set(Mode::Refuse);
    world.shows(
        &format!(
            r#"{says}
        archive; ls M M/sid.inpe.br; asked find M; says ls M/nowhere.org; no ls M/x.org 2> said"#
        ),
        "M:\n6RPa7umaZ\nexample.org\nsid.inpe.br\n\nM/sid.inpe.br:\nMTC-m13@80\nmtc-m18@80\n0\nNo such file or directory",
    );
}

/// Answers of an Archive about a level count for a minute. A lookup after that gets the old answer once more, while
/// the Archive is asked; then the new one.
#[test]
fn levels_count_for_a_minute() {
    let world = mounted();
    world.shows(
        r#"ibifs umount M; at +0; faked ibifs mount $PROXY M --cache C
        ls M/sid.inpe.br; ls M; mkdir -p A/sid.inpe.br/new@80/2010/01.01.00.00/doc; rm -r A/6RPa7umaZ/UaJFT; ls M/sid.inpe.br
        # The kernel keeps it for a second.
        at +61; sleep 1.1; asked eval 'ls M/sid.inpe.br | wc -l > count; waits test -e M/sid.inpe.br/new@80; sleep 1'; cat count; ls M/sid.inpe.br; find M/sid.inpe.br/new@80 | wc -l
        ls M > /dev/null; waits no test -e M/6RPa7umaZ; ls M; no ls M/6RPa7umaZ/UaJFT"#,
        "MTC-m13@80\nmtc-m18@80\n6RPa7umaZ\nexample.org\nsid.inpe.br\nMTC-m13@80\nmtc-m18@80\n2\n2\nMTC-m13@80\nmtc-m18@80\nnew@80\n4\nexample.org\nsid.inpe.br",
    );
}

/// A level of many items comes in pages, while it is listed.
#[test]
fn a_large_level_comes_in_pages() {
    let env = TestEnv::new();
    env.sh(
        r#"ibifs init A.store --host archive-a.example.org > /dev/null; mkdir M
        python3 -c '
import os
for number in range(9000):
    os.makedirs("A.store/col/a.org/w/2001/%02d.%02d.%02d.%02d" % (number // 28 // 24 // 60 % 12 + 1, number // 24 // 60 % 28 + 1, number // 60 % 24, number % 60))
'
        ibifs reindex A.store > /dev/null"#,
    );
    let world = World::of(env);
    world.shows(
        r#"archive; asked ls -f M/a.org/w/2001; ls -f M/a.org/w/2001 | sort -u | wc -l; asked ls M/a.org/w/2001
        ibifs umount M; archive; asked ls M/a.org/w/2001; exec 3< <(ls -f M/a.org/w/2001); read -r -u 3 name; exec 3<&-"#,
        "6\n9002\n0\n0",
    );
}

/// mount(8) and fstab(5) have it as any filesystem; what means nothing for it is refused.
#[test]
fn mount_8_mounts_it() {
    let world = World::new();
    world.shows(
        r#"ln -s $(command -v ibifs) mount.ibifs; says() { { LC_ALL=C "$@" 2>&1 || echo $?; } | sed "s/; the options.*//"; }
        ./mount.ibifs $PROXY/ M -o rw,_netdev,nofail,noexec,cache=$PWD/C,cache-size=64M; findmnt -n -o OPTIONS M | tr ',' '\n' | grep -cx -e ro -e noexec -e nosuid
        ls M; ibifs world status M --json | jq .cache.limit; ibifs umount M --json | jq -c 'keys'
        says ./mount.ibifs $PROXY M -o lang=pt; says ibifs mount $PROXY M -o list=all; says ibifs mount $PROXY M -o nothing; ./mount.ibifs -s $PROXY M -o nothing,cache=$PWD/C
        ibifs umount M; says ibifs mount http:// M; says ibifs mount A.store N --cache C; ibifs mount $PROXY M --cache C --json | jq -c .source | grep -c $PROXY"#,
        "3\n6RPa7umaZ\nexample.org\n67108864\n[\"mount_point\",\"source\"]\n\
         ibifs: 'lang=pt' is no option of the mount of an Archive elsewhere\n1\nibifs: 'list=all' is no option of the mount of an Archive elsewhere\n2\n\
         ibifs: 'nothing' is no option of the mount of an Archive elsewhere\n2\n\
         ibifs: 'http://' is not the URL of a service; write https://host, https://host:port or https://host/path, without a query\n2\n\
         ibifs: --cache, --cache-size and --ca-file are for the URL of an Archive, and 'A.store' is none\n2\n1",
    );
}

/// An Archive that lies about its levels costs a listing, and nothing else.
#[test]
fn a_hostile_archive() {
    let env = TestEnv::new();
    env.sh("mkdir M");
    let of = "level 1\nof 755 1.0 .\n";
    let page = |text: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/x-ibi-level\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        )
    };
    let many: String = (0..4_000)
        .map(|number| format!("level 755 1.0 a{number:05}.org\n"))
        .collect();
    for (what, answer, error) in [
        (
            "slash",
            page(&format!("{of}level 755 1.0 a%2Fb\nend\n")),
            "Input/output error",
        ),
        (
            "dots",
            page(&format!("{of}level 755 1.0 ..\nend\n")),
            "Input/output error",
        ),
        (
            "item",
            page(&format!("{of}item a.org\nend\n")),
            "Input/output error",
        ),
        (
            "hidden",
            page(&format!("{of}level 755 1.0 .bashrc\nend\n")),
            "Input/output error",
        ),
        (
            "twice",
            page(&format!(
                "{of}level 755 1.0 a.org\nlevel 755 1.0 A.org\nend\n"
            )),
            "Input/output error",
        ),
        (
            "cut",
            page(&format!("{of}level 755 1.0 a.org\n")),
            "Input/output error",
        ),
        (
            "other",
            page("level 1\nof 755 1.0 a.org\nend\n"),
            "Input/output error",
        ),
        (
            "endless",
            page(&format!("{of}{many}more x\n")),
            "Input/output error",
        ),
        (
            "empty and endless",
            page(&format!("{of}more x\n")),
            "Input/output error",
        ),
        (
            "html",
            page("<html>").replace("text/x-ibi-level", "text/html"),
            "Operation not supported",
        ),
        (
            "an old one",
            "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "Operation not supported",
        ),
        (
            "status",
            "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "No route to host",
        ),
    ] {
        let mut said = String::new();
        // On a busy machine an answer may come after the time limit, and the host counts as silent.
        for _ in 0..3 {
            let url = answering(answer.clone());
            said = env.sh(&format!(
                "ibifs mount {url} M --cache C --cache-size 64M; {{ LC_ALL=C timeout 20 ls M 2>&1 > listed || true; }} | sed 's/.*: //'
                 test ! -s listed || grep -c a00000.org listed > /dev/null; stat M > /dev/null; ibifs umount M"
            ));
            if said == error {
                break;
            }
        }
        assert_eq!(said, error, "{what}");
    }
}
