//! Stores on filesystems that lack what ext4 has. `IBIFS_TEST_BENEATH=bindfs`, or =DIRECTORY, runs the other modules there.

use crate::http::served::Served;
use crate::support::{Disk, Format, Needs, TestEnv, on_bindfs};

/// Without RENAME_NOREPLACE (renameat2(2)), as on bindfs, CephFS, GlusterFS and NFS, everything is made and moved, and
/// nothing is replaced.
#[test]
fn a_filesystem_without_noreplace() {
    let env = TestEnv::new().on_bindfs().with_a().with_b();
    env.prints(
        r#"mkdir dir; no python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); sys.exit(libc.renameat2(-100, b"dir", -100, b"new", 1) != 0)'
        one=$(ibifs mint A | head -n 1); two=$(ibifs mint A --edition-of A/$one | head -n 1); three=$(mint A label)
        echo text > A/$one/doc/x; test "$(readlink "A/$one!")" = ../../../$two; test $three = $(rep A/.mint/label)
        cp -a A/$one B/$(dirname $one) 2> /dev/null || { mkdir -p B/$(dirname $one); cp -a A/$one B/$(dirname $one); }
        state B/$one; echo; cat B/$one/doc/x
        # An item that came by its IBIp moves when its sidecar names its rep.
        mkdir -p A/8JMKD3MGP7W/3EPGUE5
        printf 'ibi {rep sid.inpe.br/mtc-m19/2013/09.04.12.27.57 ibip 8JMKD3MGP7W/3EPGUE5}\n' > A/8JMKD3MGP7W/3EPGUE5/.ibi
        ls A/sid.inpe.br/mtc-m19/2013
        ibifs export A/$one --bagit bags | tail -n 1; rm -r A/$two; no ls A/$two; ibifs umount A; ibifs umount B
        for n in $(seq 20); do ibifs mint A.store; done | sort | uniq -d
        ibifs fsck A.store | cut -d: -f1; ibifs fsck B.store"#,
        "Copy\ntext\n09.04.12.27.57\n1 item: 1 written, 0 unchanged\nremoved-target\n24 items, 1 finding\n2 items, 0 findings",
    );
}

/// `ibifs init` reports what the filesystem of a store cannot do.
#[test]
fn what_a_filesystem_cannot_do_is_said() {
    let on_disk = TestEnv::with(Needs::RenameFlags);
    on_disk.prints(
        "ibifs init s --host a.example.org 2>&1 > /dev/null; ls s/staging",
        "",
    );
    let env = TestEnv::new().on_bindfs();
    env.prints(
        "ibifs init s --host a.example.org 2>&1 > /dev/null | cut -d: -f1-3; ls s/staging",
        "ibifs: notice: the filesystem of the store has no RENAME_NOREPLACE
ibifs: warning: the filesystem of the store keeps access control lists and does not check them
ibifs: notice: the filesystem of the store has no birth times of files",
    );
    env.prints(
        "mkdir A; ibifs mount s A -o log=info 2>&1 | grep -c 'does not check them' || true; ibifs umount A; ls s/staging",
        "1",
    );
    // A user who cannot act as another user does not know.
    env.prints(
        "chmod 755 .; mkdir u; chown 60001:60001 u
         setpriv --reuid 60001 --regid 60001 --clear-groups ibifs init u/s --host a.example.org 2>&1 > /dev/null | cut -d: -f1-3; ls u/s/staging",
        "ibifs: notice: the filesystem of the store has no RENAME_NOREPLACE
ibifs: notice: the filesystem of the store has no birth times of files",
    );
}

/// The manual's statements on access control lists hold: on bindfs a list that grants or refuses access counts in the
/// mount for existing files, and not for minting, relations, or reading over HTTP. On a disk it counts everywhere.
#[test]
fn lists_that_are_not_checked() {
    let on_disk = TestEnv::with(Needs::AccessLists);
    let on_bindfs = TestEnv::new().on_bindfs();
    for (env, expected, served) in [
        (on_disk, "text\nno\nmade\nno", "404"),
        (on_bindfs, "text\nno\nno\nrelated", "200"),
    ] {
        env.prints(
            r#"as() { setpriv --reuid 60001 --regid 60001 --clear-groups "$@" 2> /dev/null; }
            chmod 755 .; ibifs init S --host a.example.org > /dev/null 2>&1; mkdir A; ibifs mount S A; chmod 755 A
            i=A/$(mint A x); chmod 777 $(dirname $i); mkdir $i/mine; echo text > $i/yes; echo text > $i/no
            chmod 600 $i/yes; setfacl -m u:60001:rx $i $i/doc; setfacl -m u:60001:r $i/yes; setfacl -m u:60001:rwx $i/mine
            setfacl -m u:60001:- $i/no; as cat $i/yes; as cat $i/no || echo no; as touch $i/mine/new && echo made || echo no
            chmod 777 $i; chmod 666 $i/.ibi; setfacl -m u:60001:- $i; as mkdir "$i+(pt)" && echo related || echo no
            setfacl -b $i; setfacl -m u:65534:- $i/no; echo -n ${i#A/} > rep"#,
            expected,
        );
        let status = "curl -s -o /dev/null -w '%{http_code}' $U/$(< rep)/no";
        Served::start(&env, "S").prints(&env, status, served);
    }
}

/// A directory becomes an item by renaming its entries, without RENAME_NOREPLACE, and keeps its time; room is set aside
/// without fallocate(2).
#[test]
fn a_directory_is_deposited() {
    let env = TestEnv::new().on_bindfs().with_a();
    env.prints(
        r#"mkdir -p one/doc/sub two/doc; echo one > one/doc/sub/file; echo two > two/doc/file; ln -s file two/doc/link
        for at in "A two" "A.store one"; do set -- $at; ibifs mint $1 --from $2 > $2.names; test ! -e $2; done
        cat A.store/col/$(head -n 1 one.names)/doc/sub/file A.store/col/$(head -n 1 two.names)/doc/link
        mkdir -p old/doc; touch -d @7 old; old=$(ibifs mint A --from old | head -n 1); stat -c %Y A/$old
        stat -c %s A.store/reserve
        ibifs umount A; ibifs fsck A.store"#,
        "one\ntwo\n7\n262144\n4 items, 0 findings",
    );
}

/// A server in user space gives the inode number of a removed file to the next one although the daemon has the old one
/// open, and knows a file that has two names by the one by which it was found. Neither confuses what is read.
#[test]
fn inode_numbers_are_used_again() {
    let env = TestEnv::new().on_bindfs().with_a();
    env.prints(
        r#"D=A/$(mint A label)/doc; cd $D
        for n in $(seq 40); do
            echo $n > x; test $(< x) = $n; rm x; mkdir x; echo $n > x/y; test $(< x/y) = $n; rm -r x; ln -s $n x; test $(readlink x) = $n; rm x
            echo $n > t; ln t f; rm t; test $(< f) = $n; echo $((n + 1)) > t; mv t f; test $(< f) = $((n + 1)); rm f
        done; ls"#,
        "",
    );
}

/// Mounts A where the daemon may have few files open; `$D` is a directory in it.
const FEW_OPEN: &str = "ibifs init A.store --host archive-a.example.org > /dev/null 2>&1; mkdir A
        setpriv --bounding-set -sys_resource bash -c 'ulimit -n 1024; exec ibifs mount A.store A'
        D=A/$(mint A label)/doc
        ";

/// The daemon has the kernel forget files that have no handles, so that it may know more files than the daemon may
/// have open. Files that a program has open stay.
#[test]
fn more_files_are_known_than_may_be_open() {
    let env = TestEnv::new().on_bindfs();
    env.prints(
        &(FEW_OPEN.to_owned()
            + r#"echo first > $D/open; exec 5>> $D/open
        for ((n = 0; n < 2000; n++)); do echo $n > $D/$n; done; cat $D/? | tail -n 1; find $D -type f -size 5c | wc -l
        ls -l $D | wc -l; echo second >&5; exec 5>&-; cat $D/open; readlink /proc/self/fd/7 7< $D/1999 | grep -c deleted || true
        # The kernel forgets them after it has been asked to.
        waits eval '(($(getfattr --only-values -n user.ibi.held A | cut -d " " -f 2) < 400))'
        ibifs umount A; ibifs fsck A.store"#),
        "9\n1000\n2002\nfirst\nsecond\n0\n2 items, 0 findings",
    );
}

/// Listings tell the types of files also while the kernel forgets fewer than it was asked to, and what a program has open
/// meanwhile stays open.
#[test]
fn listings_tell_types_while_files_are_forgotten() {
    let env = TestEnv::new().on_bindfs();
    env.prints(
        &(FEW_OPEN.to_owned()
            + r#"for ((n = 0; n < 2000; n++)); do echo $n > $D/$n; done
        cat > scan.py <<'END'
import os, sys
opened = open(sys.argv[1] + '/17', 'a')
for first in [True] + [False] * 5:
    for entry in os.scandir(sys.argv[1]):
        assert entry.is_file(follow_symlinks=False), entry
        # From then on this process is given attributes with its listings.
        if first: os.stat(entry.path)
    opened.write('x'); opened.flush(); assert os.fstat(opened.fileno()).st_size
END
        scans=(); for n in 1 2 3 4; do python3 scan.py $D & scans+=($!); done
        for scan in "${scans[@]}"; do wait $scan; done
        tail -n 1 $D/17; umount A"#),
        "xxxxxxxxxxxxxxxxxxxxxxxx",
    );
}

/// Each name of a file has attributes of its own in the kernel, until these are asked for. What is served of a file is the
/// same by every name at once, or readers of its inventory would take it for one that has changed.
#[test]
fn a_file_is_served_the_same_by_every_name() {
    let env = TestEnv::new().on_bindfs().with_a();
    env.sh(
        "r=$(mint A label); echo x > A/$r/doc/one; ln A/$r/doc/one A/$r/doc/two; echo -n $r > rep",
    );
    Served::start(&env, "A.store").prints(
        &env,
        r#"tag() { curl -sI $U/$(< rep)/doc/$1 | sed -n 's/^etag: //p'; }
        for mode in 600 644 640 644; do tag one > /dev/null; chmod $mode A/$(< rep)/doc/two; done
        test -n "$(tag two)"; test "$(tag one)" = "$(tag two)"; echo same"#,
        "same",
    );
}

/// A server renames a file that is removed while it is open, in the same directory. The daemon holds none open that no
/// program reads any more, so that directories can be removed.
#[test]
fn what_was_read_is_removed() {
    let env = TestEnv::new().on_bindfs().with_a();
    env.prints(
        r#"D=A/$(mint A label)/doc
        for n in $(seq 5); do
            mkdir $D/sub; for f in $(seq 20); do echo $f > $D/sub/$f; done; cat $D/sub/* > /dev/null; rm -r $D/sub
        done; ls $D"#,
        "",
    );
}

/// A file is removed as soon as it was read, and its directory with it, although the daemon has not closed it yet and the
/// server keeps it under another name until then. One that a program has open keeps its directory.
#[test]
fn what_is_being_closed_is_removed() {
    let env = TestEnv::new().on_bindfs().with_a();
    env.prints(
        r#"I=A/$(mint A label); daemon=$(daemon A.store)
        # The kernel is asked to let go of each file this much later.
        strace -f -qq -o /dev/null -e inject=ioctl:delay_enter=100000 -p $daemon & trap "kill $!" EXIT; traced $daemon
        for n in 1 2 3; do mkdir $I/doc/x; echo $n > $I/doc/x/y; cat $I/doc/x/y; rm -r $I/doc/x; done
        mkdir $I/doc/x; echo open > $I/doc/x/y; exec 5< $I/doc/x/y; no rm -r $I/doc/x; cat <&5; exec 5<&-; rm -r $I/doc/x
        cat $I/.ibi > /dev/null; echo item > $I/y; cat $I/y; rm -r $I; ls -d $I 2> /dev/null || echo removed"#,
        "1\n2\n3\nopen\nitem\nremoved",
    );
}

/// The promises that most depend on the filesystem hold on bindfs: the other tests of their modules are run there in
/// the long form.
#[test]
fn documents_read_the_same() {
    on_bindfs(crate::session::a_document_reads_the_same_by_every_name);
}

#[test]
fn items_are_removed_and_come_back() {
    on_bindfs(crate::session::a_removed_item_comes_back_as_the_original_it_was);
    on_bindfs(crate::deposit::items_are_removed_and_come_back);
}

#[test]
fn sidecars_are_refused_and_read_new() {
    on_bindfs(crate::refused_sidecars::what_is_refused_is_kept_and_named);
    on_bindfs(crate::trees::a_sidecar_that_changes_is_read_new_at_once);
}

#[test]
fn relations_are_declared_with_a_deposit() {
    on_bindfs(crate::mint_from::a_relation_is_declared_as_well);
}

/// The state of the files before and after a transfer is the server's, not what the kernel remembers of it.
#[test]
fn originals_are_transferred() {
    on_bindfs(crate::transfer::an_original_goes_over_and_comes_back);
}

#[test]
fn items_of_other_archives_are_read() {
    on_bindfs(crate::world::cache::a_mount_knows_its_own_items_only);
}

#[test]
fn git_works_in_an_item() {
    on_bindfs(crate::inside::git_works);
}

/// A file that was linked to its new name is renamed to the end when the command is repeated.
#[test]
fn a_deposit_that_was_cut_off_is_completed() {
    let env = TestEnv::new().on_bindfs();
    env.prints(
        r#"ibifs init S --host a.example.org > /dev/null 2>&1; mkdir -p dir; echo x > dir/file
        strace -f -o trace -e inject=unlinkat:signal=KILL:when=1 -P $PWD/dir ibifs mint S --from dir > /dev/null 2>&1 || true
        test -e dir/file; test S/col/*/*/*/*/file -ef dir/file
        ibifs mint S --from dir > /dev/null; test ! -e dir; ls S/col/*/*/*/*/file | wc -l; ibifs fsck S"#,
        "1\n2 items, 0 findings",
    );
}

/// Init reports a filesystem with times of whole seconds, as MooseFS, and a deposit or a backup of files with finer
/// times is complete.
#[test]
fn times_are_whole_seconds() {
    let env = TestEnv::new();
    let small_inodes = ["-I", "128"];
    let _disk = Disk::made_with(env.root(), "disk", Format::Ext4, 64, &small_inodes);
    env.prints(
        "ibifs init disk/S --host a.example.org 2>&1 > /dev/null | cut -d: -f1-3",
        "ibifs: warning: the filesystem of the store keeps times of whole seconds
ibifs: notice: the filesystem of the store has no birth times of files",
    );
    env.prints(
        r#"mkdir -p A from/doc; ibifs mount disk/S A; echo x > from/doc/x; echo y > from/doc/y
        touch -d '2020-02-02 02:02:02.123456789' from/doc/x
        i=$(ibifs mint A --from from | head -n 1); test ! -e from; stat -c %y A/$i/doc/x; cat A/$i/doc/*; ibifs umount A
        ibifs init T --host b.example.org > /dev/null 2>&1; j=$(ibifs mint T | head -n 1); f=T/col/$j/doc/x; echo x > $f
        touch -d '2020-02-02 02:02:02.123456789' $f; sleep 1.1; ibifs backup T disk/T > /dev/null; c=disk/T/col/$j/doc/x
        before=$(stat -c '%i %z' $c); sleep 1.1; ibifs backup T disk/T > /dev/null; test "$before" = "$(stat -c '%i %z' $c)"
        ibifs fsck disk/S"#,
        "2020-02-02 02:02:02.000000000 +0000\nx\ny\n2 items, 0 findings",
    );
}
