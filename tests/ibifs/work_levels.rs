//! `ibifs work` in a level of the tree, or its root: collections arrive at the speed of the disk, and are taken in afterwards.

use crate::support::TestEnv;

/// A function `collection DIR N`: a collection of items as other Archives have them, each with two files, every third with
/// an IBIp as well, every tenth with a next edition.
const COLLECTION: &str = r#"collection() { python3 - "$@" << 'PY'
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
rep = lambda i: 'a.example.com/src/2021/01.%02d.%02d.%02d.07' % (1 + i // 1440, i // 60 % 24, i % 60)
for i in range(count):
    item = os.path.join(top, rep(i)); os.makedirs(item + '/doc')
    with open(item + '/.ibi', 'w') as out:
        out.write('ibi {rep %s%s}\nibi.archiveservice {rep example.com/src/2020/01.01.00.00}\n' % (rep(i), ' ibip QABCDSTQQW/3' + 'RSTW'[i // 3 % 4] + 'PGR' + 'BEF'[i // 12] + 'S' if i % 3 == 0 and i < 36 else ''))
        if i % 10 == 0 and i + 1 < count: out.write('ibi.nextedition {rep %s}\n' % rep(i + 1))
    for name in 'fg':
        with open(item + '/doc/' + name, 'w') as out: out.write(name * 200)
PY
}
"#;

fn sh(env: &TestEnv, script: &str) {
    env.sh(&format!("{COLLECTION}{script}"));
}

/// Each item is there by both names and with its modifiers, in the store and through the mount.
#[test]
fn a_collection_arrives_by_any_program() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "collection SRC 40; items=a.example.com/src/2021
         # The kernel remembers that nothing is there.
         ! ls A/a.example.com A/$items/01.01.00.00.07 2> /dev/null
         ibifs work A -- rsync -aHAX SRC/ A/ > said; [ ! -s said ]
         diff -r --no-dereference SRC A.store/col -x example.org > differences || true; [ ! -s differences ]
         diff -r SRC/a.example.com A/a.example.com; [ $(ls A/$items | wc -l) = 40 ]
         cmp \"A/$items/01.01.00.00.07!/doc/f\" SRC/$items/01.01.00.01.07/doc/f
         readlink \"A/$items/01.01.00.10.07!\" | grep -q '/01.01.00.11.07$'
         for item in SRC/$items/*; do
             ibip=$(sed -n 's/.* ibip \\([^}]*\\)}.*/\\1/p' $item/.ibi); [ -z \"$ibip\" ] || cmp A/$ibip/doc/f $item/doc/f
         done
         [ $(ls A/QABCDSTQQW | wc -l) = 12 ]
         # Nothing moves a second time, and nothing is read again.
         ibifs work A -- rsync -aHAXi SRC/ A/ > said; [ ! -s said ]
         # Others arrive in a level below, by other programs.
         for way in 'cp -a TWO/. A/a.example.com' 'tar -C A/a.example.com -xf three.tar'; do
             mkdir -p TWO; rm -rf TWO/*; cp -a SRC/a.example.com/src TWO/${way%% *}
             for item in TWO/*/2021/*; do sed -i \"s,a.example.com/src,a.example.com/${way%% *},; s, ibip [^}]*,,\" $item/.ibi; done
             tar -C TWO -cf three.tar .
             ibifs work A/a.example.com -- $way
             [ $(ls A/a.example.com/${way%% *}/2021 | wc -l) = 40 ]; cat \"A/a.example.com/${way%% *}/2021/01.01.00.00.07!/doc/f\" > /dev/null
         done
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// A prefix of IBIps is a level with the items that have no rep. Where all have one, it is none.
#[test]
fn a_prefix_is_a_level() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mkdir -p A/QABCDSTQQW/3RPGRBS/doc
         ibifs work A/QABCDSTQQW -- sh -euc 'ls A/QABCDSTQQW; mkdir -p A/QABCDSTQQW/3SPGRBS/doc; echo x > A/QABCDSTQQW/3SPGRBS/doc/x' > said
         grep -qx 3RPGRBS said; cat A/QABCDSTQQW/3SPGRBS/doc/x; ibifs show A/QABCDSTQQW/3SPGRBS --store A > /dev/null
         mint A first > first; status=0; ibifs work A/$(dirname $(ibip A/$(< first))) -- true 2> why || status=$?
         [ $status = 4 ]; grep -q 'all items of this prefix have a rep; work in the level of their reps' why
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// unison fills directories beside the names that it makes, and keeps its own state elsewhere.
#[test]
fn unison_works_in_a_level() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "export UNISON=$(mktemp -d); trap 'rm -r $UNISON' EXIT; collection SRC 10; mkdir A/a.example.com
         ibifs work A/a.example.com -- unison -batch -auto -ui text SRC/a.example.com A/a.example.com > said 2>&1 || { cat said; exit 1; }
         diff -r SRC/a.example.com A/a.example.com; cat A/QABCDSTQQW/3RPGRBS/doc/f > /dev/null
         rm -r SRC/a.example.com/src/2021/01.01.00.03.07; echo new > SRC/a.example.com/src/2021/01.01.00.04.07/doc/f
         ibifs work A/a.example.com -- unison -batch -auto -ui text SRC/a.example.com A/a.example.com > said 2>&1 || { cat said; exit 1; }
         diff -r SRC/a.example.com A/a.example.com; ls A.store/deleted/col/a.example.com/src/2021/01.01.00.03.07
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// Removed items get tombstones, changed sidecars count, and the item of the service stays.
#[test]
fn removals_and_changes_are_taken_in() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "collection SRC 20; items=a.example.com/src/2021; ibifs work A -- rsync -a SRC/ A/
         mint A first > first; cat A/$items/01.01.00.03.07/doc/f A/$items/01.01.00.04.07/.ibi > /dev/null
         rm -r SRC/$items/01.01.00.03.07; echo 'target doc/g' >> SRC/$items/01.01.00.04.07/.ibi
         ibifs work A/a.example.com -- rsync -a --delete SRC/a.example.com/ A/a.example.com/
         no ls A/$items/01.01.00.03.07; ls A.store/deleted/col/$items/01.01.00.03.07
         ibifs show A/$items/01.01.00.04.07 --store A | grep -q 'doc/g'
         # A program that would remove all of the Archive.
         status=0; ibifs work A -- rsync -a --delete SRC/ A/ 2> why || status=$?; [ $status = 4 ]
         grep -q 'the item of the service itself cannot be removed; it was made again' why; ls A/$(< first) 2> /dev/null && exit 1
         ls A.store/deleted/col/$(< first); [ $(ls A/$items | wc -l) = 19 ]
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// The names of the mount's own minted items cannot be invented, and what is refused is kept, named and not served.
#[test]
fn refused_directories_are_kept_named_and_not_served() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first; level=$(dirname $(< first)); own=${level%/*}/2100/01.01.00.00
         status=0; ibifs work A -- sh -c \"mkdir -p A/$own/doc A/a.example.com/src/2021/notes; echo x > A/$own/doc/x
             mkdir -p A/a.example.com/src/2021/01.01.00.00; echo 'ibi {rep b.example.com/src/2021/01.01.00.00}' > A/a.example.com/src/2021/01.01.00.00/.ibi\" 2> why || status=$?
         [ $status = 4 ]; [ $(wc -l < why) = 3 ]; grep -q \"^ibifs: 'col/$own' is refused, and not served: \" why
         grep -q \"'col/a.example.com/src/2021/notes' is refused, and not served: its name is not that of an item\" why
         grep -q \"'col/a.example.com/src/2021/01.01.00.00' is refused\" why
         cat A.store/col/$own/doc/x; no cat A/$own/doc/x; no ibifs show A/$own
         # The place of the third gives it its name.
         ls A/a.example.com/src/2021/01.01.00.00/.ibi; no ls A/b.example.com
         ibifs umount A; ibifs fsck A.store > found || true; for code in not-minted stray-name foreign-sidecar; do grep -q $code found; done
         ibifs reindex A.store > /dev/null || true; ibifs mount A.store A; no cat A/$own/doc/x; ibifs umount A",
    );
    env.exits("ibifs work A.store/col -- true", 2);
}

/// Others see the paths of reps at once, names and modifiers when the program has ended; they go on with what they do, in
/// the same level and in others.
#[test]
fn others_work_meanwhile() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "collection SRC 30; items=a.example.com/src/2021; ibifs work A -- rsync -a SRC/a.example.com A/
         # What waits for these ends if the script fails.
         trap 'touch ready go' EXIT; mkdir -p A.store/col/b.example.com
         sed 's,a.example.com/src/2021/01.01.00.00.07,b.example.com/src/2021/01.01.00.00.07,; s, ibip [^}]*, ibip QABCDSTQQW/3RSSGRS,' SRC/$items/01.01.00.00.07/.ibi > sidecar
         ibifs work A -- bash -euc \"mkdir -p A/b.example.com/src/2021/01.01.00.00.07/doc; cp sidecar A/b.example.com/src/2021/01.01.00.00.07/.ibi
             echo > ready; until [ -e go ]; do sleep 0.05; done\" & work=$!
         ibifs work A/a.example.com -- bash -euc \"until [ -e ready ]; do sleep 0.05; done; echo new > A/$items/01.01.00.05.07/doc/new; rm -r A/$items/01.01.00.06.07; echo > second\" & other=$!
         until [ -e ready ]; do sleep 0.05; done
         ls A/b.example.com/src/2021/01.01.00.00.07/.ibi
         # The mount mints, removes and takes copies in as before.
         mint A meanwhile > minted; mkdir A/b.example.com/src/2021/02.02.00.00; echo x > A/b.example.com/src/2021/02.02.00.00/file
         rm -r A/$items/01.01.00.07.07
         wait $other; [ -e second ]; cat A/$items/01.01.00.05.07/doc/new; no ls A/$items/01.01.00.06.07
         echo > go; wait $work
         cmp A/QABCDSTQQW/3RSSGRS/.ibi sidecar; cat A/$(< minted)/.ibi A/b.example.com/src/2021/02.02.00.00/file > /dev/null
         ls A.store/deleted/col/$items/01.01.00.0[67].07
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// The daemon takes in what a program leaves whose `ibifs work` was killed, and its next start what it could not itself.
#[test]
fn nothing_is_lost_when_a_process_is_killed() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        "collection SRC 20; items=a.example.com/src/2021
         ibifs work A -- bash -euc 'rsync -a SRC/ A/; echo > ready; exec sleep 1000' & work=$!
         until [ -e ready ]; do sleep 0.05; done; child=$(pgrep -P $work); kill -9 $work; kill -9 $child
         waits ls A/QABCDSTQQW; cat \"A/$items/01.01.00.00.07!/doc/f\" > /dev/null; rm ready
         collection TWO 30
         ibifs work A -- bash -euc 'rsync -a TWO/ A/; echo > ready; exec sleep 1000' 2> why & work=$!
         until [ -e ready ]; do sleep 0.05; done; child=$(pgrep -P $work); kill -9 $(daemon A.store); kill -9 $child
         status=0; wait $work || status=$?; [ $status = 137 ]
         umount -l A || true; ibifs mount A.store A; cat \"A/$items/01.01.00.20.07!/doc/f\" > /dev/null; [ $(ls A/$items | wc -l) = 30 ]
         # The daemon is killed while the program goes on: its end says so.
         status=0; ibifs work A -- bash -euc \"mkdir -p A/c.example.com/src/2021/01.01.00.00; kill -9 $(daemon A.store)\" 2> why || status=$?
         [ $status = 1 ]; grep -q 'is gone; its next start takes in what has changed' why
         umount -l A || true; ibifs mount A.store A; ibifs show A/c.example.com/src/2021/01.01.00.00 > /dev/null
         # An unmount in the middle ends neither.
         ibifs work A -- bash -euc 'mkdir -p A/d.example.com/src/2021/01.01.00.00; echo > ready2; until [ -e go ]; do sleep 0.05; done' 2> why & work=$!
         until [ -e ready2 ]; do sleep 0.05; done; daemon=$(daemon A.store); ibifs umount A || umount -l A; echo > go; status=0; wait $work || status=$?
         [ $status = 0 ] || [ $status = 1 ]; waits no kill -0 $daemon
         ibifs mount A.store A; ibifs show A/d.example.com/src/2021/01.01.00.00 > /dev/null
         ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}

/// A user who may not write in the level may not work in it, nor lead root out of the store by what is in one's own level.
#[test]
fn a_user_gets_no_right() {
    let env = TestEnv::new();
    env.sh(
        "mkdir bin A; cp $(command -v ibifs) bin; chmod 755 .; ibifs init A.store --host archive-a.example.org > /dev/null
         chmod 755 A.store; ibifs mount -o allow_other A.store A
         as() { setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=$PWD/bin:/usr/bin:/bin HOME=/ \"$@\"; }
         mkdir -p A.store/col/u.example.com/src A.store/col/r.example.com; chown -R 65534:65534 A.store/col/u.example.com
         status=0; as ibifs work A/r.example.com -- true 2> why || status=$?; [ $status = 4 ]; grep -q 'Permission denied' why
         status=0; as ibifs work A -- true 2> why || status=$?; [ $status = 4 ]
         as ibifs work A/u.example.com -- sh -c 'mkdir -p A/u.example.com/src/2021/01.01.00.00; ! mkdir A/r.example.com/x' 2> /dev/null
         ibifs show A/u.example.com/src/2021/01.01.00.00 > /dev/null; [ $(stat -c %u A/u.example.com/src/2021/01.01.00.00) = 65534 ]
         # The user's own level becomes a link to a directory of root.
         mkdir victim; as sh -c \"mv A.store/col/u.example.com/src A.store/col/u.example.com/was; ln -s $PWD/victim A.store/col/u.example.com/src\"
         ! ibifs work A/u.example.com/src -- sh -c 'echo x > A/u.example.com/src/x' 2> why; [ ! -e victim/x ]
         as sh -c 'rm A.store/col/u.example.com/src; mv A.store/col/u.example.com/was A.store/col/u.example.com/src'
         chmod 700 A.store; ibifs umount A; ibifs fsck A.store | grep -q ' 0 findings'",
    );
}
