//! `ibifs work`: a command finds the directories of the store under the paths of items.

use crate::support::TestEnv;

/// The command works on the store itself, sees nothing else of it there, and what it has done is seen through
/// both trees of the mount when it has ended.
#[test]
fn what_the_command_has_done_is_seen_at_once() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first; mint A second > second; rep=A/$(< first); ibip=A/$(ibip $rep); native=A.store/col/$(< first)
         mkdir $rep/old $rep/changed $rep/again; for f in gone replaced grown renamed; do echo $f > $rep/doc/$f; done
         echo x > $rep/old/file; ln -s doc/grown $rep/link; echo y > $rep/again/file
         # Everything is in the caches of the kernel, that it is missing as well.
         look() { for tree in $rep $ibip; do (cd $tree; find . -printf '%p %y %s %n %T@\n' | sort; cat doc/* again/* 2>&1; ! cat new fresh/file made 2>&1; cat link); done; }
         look > before; look | diff before -
         [ \"$(stat -f -c %T $rep)\" = fuseblk ] || [ \"$(stat -f -c %T $rep)\" = fuse ]
         ibifs work $rep -- bash -euc \"
             [ $rep -ef $native ]; [ ! A/$(< second) -ef A.store/col/$(< second) ]; stat -f -c %T $rep > kind
             cd $rep; rm doc/gone; echo new > new; echo text > tmp; mv tmp doc/replaced; echo more >> doc/grown; mv doc/renamed doc/other
             rm -r old; mkdir fresh made; echo f > fresh/file; chmod 700 changed; rm -r again; mkdir again; echo z > again/file
             ln -sfn doc/other link\"
         no grep -q fuse kind; look > after
         (cd $native; find . -printf '%p %y %s %n %T@\n' | sort) > truth
         head -n $(wc -l < truth) after | diff truth -
         for tree in $rep $ibip; do
             [ ! -e $tree/doc/gone ]; [ ! -e $tree/old ]; [ ! -e $tree/doc/renamed ]
             grep -qx more $tree/doc/grown; grep -qx text $tree/doc/replaced; grep -qx f $tree/fresh/file; grep -qx z $tree/again/file
             [ \"$(readlink $tree/link)\" = doc/other ]; [ \"$(stat -c %a $tree/changed)\" = 700 ]
         done
         no mountpoint -q $rep; ibifs umount A; ibifs fsck A.store",
    );
}

/// Items by identifier, several at once, from inside one, and a shell where no command is given.
#[test]
fn items_are_named_in_any_way() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first; mint A second > second
         ibifs work --store A $(< first) $(ibip A/$(< second)) -- sh -c \"echo one > A/$(< first)/doc/one; echo two > A/$(ibip A/$(< second))/doc/two\"
         cat A/$(< first)/doc/one; cat A/$(< second)/doc/two
         (cd A/$(< first)/doc; ibifs work . -- sh -c 'stat -f -c %T .; pwd; echo here > here'; cat here; pwd -P) > said
         no grep -q fuse said; grep -qx here said; tail -n 1 said | grep -qx \"$PWD/A/$(< first)/doc\"
         echo 'echo shell > A/'$(< first)'/doc/shell' | SHELL=/bin/bash ibifs work A/$(< first); cat A/$(< first)/doc/shell
         ibifs umount A; ibifs fsck A.store",
    );
    env.complains(
        "ibifs work A.store/col/$(< first) -- true",
        "is not mounted; mount it first",
    );
    env.exits("ibifs work A.store/col/$(< first) -- true", 4);
    env.exits("ibifs work --store A.store nothing/here -- true", 3);
}

/// The status is that of the command, and signals reach it.
#[test]
fn status_and_signals_are_those_of_the_command() {
    let env = TestEnv::new().with_a();
    env.sh("mint A first > first");
    env.exits("ibifs work A/$(< first) -- sh -c 'exit 42'", 42);
    env.exits("ibifs work A/$(< first) -- sh -c 'kill -9 $$'", 137);
    env.complains(
        "ibifs work A/$(< first) -- /nonexistent/command",
        "/nonexistent/command: No such file",
    );
    env.sh(
        "ibifs work A/$(< first) -- bash -c 'trap \"echo caught > got; exit 7\" TERM; echo > ready; while :; do sleep 0.05; done' & work=$!
         until [ -e ready ]; do sleep 0.05; done; kill -TERM $work; status=0; wait $work || status=$?; [ $status = 7 ]; grep -qx caught got",
    );
}

/// A sidecar that the command leaves is accepted as one that arrives, or refused, kept and restored, whether it was
/// written in place, replaced or removed; also if `ibifs work` or the daemon is killed.
#[test]
fn a_sidecar_is_read_again() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A first > first; mint A second > second; item=A/$(< first); cp $item/.ibi good
         ibifs work $item -- sh -c \"echo 'ibi.nextedition {rep $(< second)}' >> $item/.ibi\"
         getfattr --only-values -n user.ibi.nextedition $item | grep -qx $(< second); cp $item/.ibi good
         status=0; ibifs work $item -- sh -c \"echo 'ibi {rep example.org/other/2026/01.01.01.01}' > $item/.ibi\" 2> why || status=$?
         [ $status = 4 ]; grep -q \"was refused, and the one in force stays; it is kept as '.ibi.broken-1'\" why; cmp good $item/.ibi; ls $item/.ibi.broken-1
         status=0; ibifs work $item -- sh -c \"echo 'ibi {rep example.org/other/2026/01.01.01.01}' > new; cp new $item/.new; mv $item/.new $item/.ibi\" 2> why || status=$?
         [ $status = 4 ]; grep -q 'was refused again' why; cmp good $item/.ibi; [ ! -e $item/.ibi.broken-2 ]
         status=0; ibifs work $item -- sh -c \"echo other > $item/.new; mv $item/.new $item/.ibi\" 2> why || status=$?
         [ $status = 4 ]; grep -q \"kept as '.ibi.broken-2'\" why; cmp good $item/.ibi; [ \"$(cat $item/.ibi.broken-2)\" = other ]
         ls -A $item | xargs | grep -qx '.ibi .ibi.broken-1 .ibi.broken-2 doc'
         ibifs work $item -- rm $item/.ibi; cmp good $item/.ibi
         # The command is killed, or the daemon.
         ibifs work $item -- sh -c \"sed -i '/nextedition/d' $item/.ibi; echo > ready; exec sleep 1000\" & work=$!
         until [ -e ready ]; do sleep 0.05; done; child=$(pgrep -P $work); kill -9 $work; kill -9 $child
         waits no getfattr --only-values -n user.ibi.nextedition $item; rm ready
         ibifs work $item -- sh -c \"echo 'ibi.nextedition {rep $(< second)}' >> $item/.ibi; echo > ready; exec sleep 1000\" & work=$!
         until [ -e ready ]; do sleep 0.05; done; child=$(pgrep -P $work); kill -9 $(daemon A.store); kill -9 $child; wait $work || true
         umount -l A || true; ibifs mount A.store A; getfattr --only-values -n user.ibi.nextedition $item | grep -qx $(< second)
         ibifs umount A; ibifs fsck A.store",
    );
}

/// A user has in the command the rights that the user has in the store, and none in what is closed.
#[test]
fn a_user_gets_no_right() {
    let env = TestEnv::new();
    env.sh(
        "mkdir bin A; cp $(command -v ibifs) bin; chmod 755 .; ibifs init A.store --host archive-a.example.org > /dev/null
         chmod 755 A.store; ibifs mount -o allow_other A.store A; chmod 1777 A; mint A roots > roots; echo secret > A/$(< roots)/doc/secret; chmod 600 A/$(< roots)/doc/secret
         as() { setpriv --reuid 65534 --regid 65534 --clear-groups env PATH=$PWD/bin:/usr/bin:/bin HOME=/ \"$@\"; }
         as ibifs mint A | head -n 1 > own
         as ibifs work A/$(< own) A/$(< roots) -- bash -c \"stat -f -c %T A/$(< own); id -u; echo mine > A/$(< own)/doc/mine
             ! cat A/$(< roots)/doc/secret; ! touch A/$(< roots)/doc/x; ! ls A.store/staging/x; ! mount -t tmpfs none /mnt\" > said 2> why
         no grep -q fuse said; grep -qx 65534 said; [ $(grep -c 'Permission denied' why) -ge 2 ]
         cat A/$(< own)/doc/mine; [ \"$(stat -c %u A/$(< own)/doc/mine)\" = 65534 ]; [ ! -e A/$(< roots)/doc/x ]
         chmod 700 A.store; status=0; as ibifs work A/$(< own) -- true 2> why || status=$?; [ $status = 4 ]
         grep -q 'works in it through the mount only' why
         ibifs umount A; ibifs fsck A.store",
    );
}
