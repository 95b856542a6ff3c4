//! Desktop and synchronising programs in a mount: the system calls that they make, since most of them are not
//! installed where the tests run.

use crate::support::TestEnv;

/// `as 1001 COMMAND` runs it as an ordinary user.
const AS: &str = "as() { setpriv --reuid $1 --regid $1 --clear-groups \"${@:2}\"; }
     tmp() { echo \"${1%/*}/.unison.${1##*/}.23f096536e733b2b70a186f2ccbe5ce7.unison.tmp\"; }\n";

/// unison fills a directory beside the name that it makes, and renames it: an item into its year, and a
/// level with items into the root, by root and by an ordinary user.
#[test]
fn a_directory_is_filled_beside_its_name() {
    for who in ["", "as 1001"] {
        let env = TestEnv::new().with_a();
        env.sh(&format!(
            "{AS} chmod 777 A; mkdir -p new.org/w/2020/01.01.01.0{{1,2}}/doc/deep; r=new.org/w/2020/01.01.01.01
             echo \"ibi {{rep $r ibip 8JMKD3MGP8W/34PGRBS}}\" > $r/.ibi; echo text > $r/doc/deep/file
             ln -s ../../01.01.01.02/doc $r/doc/climbs; chmod -R go+rX new.org; chmod 2750 $r/doc/deep; test '{who}' = '' || chown -R 1001:1001 new.org; chmod 2750 $r/doc/deep
             t=$(tmp A/new.org); {who} mkdir $t; no mkdir $t; {who} cp -a new.org/. $t/; ls -A A | no grep unison
             ls $t/w/2020 > seen; {who} mv -T $t A/new.org; no ls $t; test -z \"$(ls A.store/staging)\"
             diff -r --no-dereference new.org A/new.org; test $(rep A/8JMKD3MGP8W/34PGRBS) = $r; rep A/new.org/w/2020/01.01.01.02
             test \"$(stat -c %a A/$r/doc/deep)\" = 2750; test \"$(readlink A/8JMKD3MGP8W/34PGRBS/doc/climbs)\" = ../../../new.org/w/2020/01.01.01.02/doc
             r=new.org/w/2020/03.03.03.03; t=$(tmp A/$r); {who} mkdir -m 700 $t; {who} bash -c \"echo 'ibi {{rep $r}}' > $t/.ibi; echo x > $t/x\"
             {who} mv -T $t A/$r; cat A/$r/x; test $(stat -c %a A/$r) = 700; grep $r A/$r/.ibi
             ibifs ls A | grep -c new.org | grep -qx 3"
        ));
        // The prefix is made under the rules of mkdir.
        env.complains(
            &format!("{AS} t=$(tmp A/other.org); mkdir -p $t/no_word; mv -T $t A/other.org"),
            // So mv(1) reads EINVAL.
            "to a subdirectory of itself",
        );
        env.complains(
            &format!("{AS} t=$(tmp A/file.org); mkdir -p $t; touch $t/file; mv -T $t A/file.org"),
            "Operation not permitted",
        );
        env.sh(&format!(
            "{AS} year=$(date +%Y); mkdir -p A/example.org/archive-a/$year; r=A/example.org/archive-a/$year/12.31.23.59.59
             t=$(tmp $r); mkdir $t; no mv -T $t $r; rmdir $t; no ls $t
             t=$(tmp A/other.org); rm -r $t; t=$(tmp A/file.org); rm -r $t; test -z \"$(ls A.store/staging)\"
             no ls A/other.org A/file.org; ibifs umount A; chmod o-rwx A.store; ibifs fsck A.store"
        ));
    }
}

/// A user who may not make names in a level stages no directory there, and renames no other's.
#[test]
fn a_staged_directory_belongs_to_its_maker() {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{AS} mkdir -p A/new.org/w/2020; no as 1001 mkdir $(tmp A/x.org); no as 1001 mkdir $(tmp A/new.org/w/2020/01.01.01.01)
         chmod 777 A A/new.org/w/2020; t=$(tmp A/new.org/w/2020/01.01.01.01); as 1001 mkdir $t; as 1001 touch $t/file
         no as 1002 mv -T $t A/new.org/w/2020/01.01.01.01; no as 1002 rmdir $t; no as 1002 touch $t/other
         as 1001 mv -T $t A/new.org/w/2020/01.01.01.01; test $(stat -c %u A/new.org/w/2020/01.01.01.01) = 1001
         t=$(tmp A/left.org); mkdir $t; echo x > $t/x; ibifs umount A; ibifs mount A.store A; no ls $t
         test -z \"$(ls A.store/staging)\"; mkdir A/8JMKD3MGP8W; no mkdir $(tmp A/8JMKD3MGP8W/34PGRBS)"
    ));
}

/// Real unison copies a level into an Archive and from one Archive to another.
#[test]
fn unison_copies_levels_and_items() {
    let env = TestEnv::new().with_a().with_b();
    env.sh(
        // It takes its locks by counting the names of a file, which have a count each on bindfs.
        "export UNISON=$(mktemp -d); trap 'rm -r $UNISON' EXIT; unison() { command unison -batch -auto -ui text -links true \"$@\" > said 2>&1 || { cat said; return 1; }; }
         mkdir -p from/new.org/w/2020/01.01.01.01/doc; echo x > from/new.org/w/2020/01.01.01.01/doc/x
         echo 'ibi {rep new.org/w/2020/01.01.01.01 ibip 8JMKD3MGP8W/34PGRBS}' > from/new.org/w/2020/01.01.01.01/.ibi
         unison from/new.org A/new.org -force from/new.org; diff -r from/new.org A/new.org; test $(rep A/8JMKD3MGP8W/34PGRBS) = new.org/w/2020/01.01.01.01
         cp -a from/new.org/w/2020/01.01.01.01 A/new.org/w/2020/02.02.02.02 2> told || true; rm -f A/new.org/w/2020/02.02.02.02/.ibi*
         echo changed > A/new.org/w/2020/01.01.01.01/doc/x
         unison A/new.org B/new.org; diff -r A/new.org B/new.org; test $(rep B/8JMKD3MGP8W/34PGRBS) = new.org/w/2020/01.01.01.01
         test -z \"$(find A B -name '.unison*')\"; ibifs umount A; ibifs umount B; ibifs fsck A.store; ibifs fsck B.store",
    );
}

/// Bins are refused with one error in both trees and under a label, and what a lock file of a document needs
/// works in an item.
#[test]
fn bins_and_lock_files() {
    let env = TestEnv::new().with_a();
    env.sh("mint A it > it; mkdir -p A/8JMKD3MGP8W A/new.org/w/2020");
    for level in [
        "A",
        "A/new.org",
        "A/new.org/w/2020",
        "A/8JMKD3MGP8W",
        "A/.mint",
    ] {
        for bin in [".Trash", ".Trash-0", ".Trash-1001"] {
            env.complains(&format!("mkdir {level}/{bin}"), "Operation not permitted");
        }
    }
    env.prints("ls -A A", "example.org\nnew.org");
    env.sh("cd A/$(<it)/doc; echo text > X.odt
         python3 -c \"
import os
lock = os.open('.~lock.X.odt#', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
os.write(lock, b',user,host,22.11.2026 23:59,file:///;')
os.close(lock); os.unlink('.~lock.X.odt#')
os.symlink('user@host.1234:1', '.#X.odt'); assert os.readlink('.#X.odt') == 'user@host.1234:1'
os.unlink('.#X.odt')
\"; ls -A | grep -qx X.odt; mkdir .Trash-0");
}

/// A store is not made among the levels of a mounted one, where `ibifs init` left directories before; in an
/// item it is a directory as any other.
#[test]
fn no_store_is_made_among_levels() {
    let env = TestEnv::new().with_a();
    env.sh("mint A it > it; ln -s A link");
    for path in [
        "A/new.store",
        "link/any/word",
        "A",
        "A/$(<it)",
        "A/.mint/new",
    ] {
        env.complains(
            &format!("ibifs init {path} --host archive-b.example.net"),
            "every directory is a part of an identifier",
        );
    }
    env.prints("ls A", "example.org");
    env.sh("test -z \"$(ls -A A/$(<it)/doc)\"; ibifs init A/$(<it)/doc/store --host archive-b.example.net; ibifs fsck A/$(<it)/doc/store");
}

/// A new store is made in a new or an empty directory, whose mode stays. A file that another user has put in one is
/// not touched, and no message proposes it.
#[test]
fn no_store_is_made_over_something_else() {
    let env = TestEnv::new();
    env.sh("mkdir -p taken .dot/lost+found with-col/col/x.org/y/2020/01.01.00.00 fifo wide; echo a > taken/f; touch .dot/.hidden
        mkfifo fifo/lock2; chmod 1777 wide; find taken .dot with-col fifo wide -printf '%p %m %i %T@\n' > before");
    for (directory, name) in [
        ("taken", "f"),
        (".dot", ".hidden"),
        ("with-col", "col"),
        ("fifo", "lock2"),
    ] {
        env.complains(
            &format!("ibifs init {directory} --host a.example.org"),
            &format!("'{name}' in it, which is no part of a new store"),
        );
    }
    env.complains(
        "ibifs init wide --host a.example.org",
        "every user may write in",
    );
    env.sh("find taken .dot with-col fifo wide -printf '%p %m %i %T@\n' | diff before -");
    env.sh("for of in 'ibifs ls' 'ibifs fsck' 'ibifs status' 'ibifs mint'; do ! $of taken 2> said; ! grep init said; done");
    env.sh("mkdir -p old/lost+found; chmod 710 old; ibifs init old --host a.example.org 2> said; grep 'other users may enter' said
        ibifs fsck old | tail -n 1 | grep ' 0 errors\\| 0 findings\\|1 finding'");
    env.prints("stat -c %a old; ibifs init new/dir/s --host b.example.org > /dev/null; stat -c %a new/dir new/dir/s", "710\n755\n700");
    env.sh("ibifs init --adopt with-col --host a.example.org > /dev/null; stat -c %a with-col | grep -x 755
        ibifs show --store with-col x.org/y/2020/01.01.00.00 | grep -q .");
}

/// Modifiers in the spelling that SMB can carry do in both trees what they do in the others: they are looked
/// up, listed, declared, written and removed. Without the option there are no such names.
#[test]
fn modifiers_have_portable_names() {
    let env = TestEnv::new().with_a();
    env.sh("for n in a b; do mint A $n > $n; ibip A/$(<$n) > $n.ibip; done; ibifs umount A; ibifs mount -o portable-names,list=all A.store A");
    for view in ["", ".ibip"] {
        env.sh(&format!(
            "a=$(<a{view}); b=$(<b{view}); X=A/$a; up=$(dirname $a | sed 's/[^/]*/../g')
             ln -sfn $up/$b \"$X=GetLastEdition\"; readlink \"$X!\" > seen
             readlink \"$X=GetLastEdition\" | diff seen -; test $(rep \"$X=GetLastEdition/\") = $(<b)
             grep -q \"ibi.nextedition.*$(<b)\" $X/.ibi; rm \"$X=GetLastEdition\"; no grep -q nextedition $X/.ibi
             echo 'title: Rainfall' > \"$X=GetMetadata\"; test \"$(cat \"$X:\")\" = 'title: Rainfall'
             sed -i s/Rain/Snow/ \"$X=GetMetadata\"; rsync -a \"$X=GetMetadata\" copied; test \"$(<copied)\" = 'title: Snowfall'
             cat \"$X=GetMetadata(oai_dc)\" > record; cat \"$X:(oai_dc)\" | cmp - record; grep -q Snowfall record
             cat \"$X=GetLastEdition+GetMetadata(oai_dc)\" | cmp - record
             cat \"$X=GetFileList\" > list; cat \"$X?GetFileList\" | cmp - list
             for sign in $'\\uf03a' $'\\uf022'; do test \"$(cat \"$X$sign\")\" = 'title: Snowfall'; cat \"$X$sign(oai_dc)\" | cmp - record; done
             for sign in $'\\uf03f' $'\\uf025'; do cat \"$X${{sign}}GetFileList\" | cmp - list; done
             rm \"$X=GetMetadata\"; no cat \"$X:\"; no ls \"$X=\"; no ls \"$X=getmetadata\"; no ls \"$X=GetMetadata=\"
             mkdir \"$X=GetTranslation(pt)\"; rep \"$X+(pt)/\" > made; grep -q \"translation(pt).*$(<made)\" $X/.ibi
             rm \"$X=GetTranslation(pt)\"; no ls \"$X+(pt)\""
        ));
    }
    env.sh("X=A/$(<a); ln -sfn ../../../../$(<b) \"$X=GetTranslation(pt-BR)\"; ln -sfn ../../../../$(<b) \"$X=GetLastEdition\"
         name=$(basename $(<a)); ls A/$(dirname $(<a)) > listed; grep -qx \"$name=GetLastEdition\" listed
         grep -qx \"$name=GetTranslation(pt-BR)\" listed; no grep '[:?!]' listed; no grep '+(' listed
         ibifs umount A; ibifs mount A.store A; no ls \"A/$(<a)=GetLastEdition\"; no ls \"A/$(<a)\"$'\\uf03a'; ls \"A/$(<a)!\"
         ibifs umount A; ibifs fsck A.store");
    env.prints(
        "ibifs id explain '8JMKD3MGP8W/34PGRBS=GetLastEdition+GetMetadata(oai_dc)' --json | jq -r '.canonical, .modifier'",
        "8JMKD3MGP8W/34PGRBS\n!:(oai_dc)",
    );
    env.exits("ibifs id explain '8JMKD3MGP8W/34PGRBS=notes'", 1);
}
