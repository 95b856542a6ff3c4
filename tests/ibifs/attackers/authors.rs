//! Statements of a sidecar about other items count with the rights of the user who has written it, not of the owner of
//! the file. In whichever way a text gets into a sidecar of another user, it gains no rights, neither now nor after a
//! reindex or a repair. Statements that owners write in their own way continue to count.

use crate::support::TestEnv;

/// A mount of root in which others may mint. `r` is root's, and so is the file `open` in an item of root, which
/// all may write; `p` is an item of the user 60002. `copy N` is a copy of root.
const SCENE: &str = r#"
as() { setpriv --reuid 60001 --regid 60001 --clear-groups "$@"; }
other() { setpriv --reuid 60002 --regid 60002 --clear-groups "$@"; }
col=A.store/col
# An item of root, of 60001.
roots() { S=$(mint A s$RANDOM$RANDOM$RANDOM); I=$S; }
own() { local label=o$RANDOM$RANDOM$RANDOM; as mkdir -p A/.mint/$label/doc; O=$(labelled A $label as); I=$O; }
# The text of the item $1, with claims on the item $2.
claiming() { cat $col/$1/.ibi; echo 'language pt'; for kind in editionof metadataof translationof; do echo "ibi.$kind {rep $2}"; done; }
# new: the item $I claims the item of root.
new() { claiming $I $(<r) > new; chmod 644 new; }
claims() { new; as cp new A/$O/.ibi; }
# A bag of an item of another Archive, theirs/, which claims the item of root, and the same in theirs.zip.
packed() { [ -e B.store ] || ibifs init B.store --host archive-b.example.org > /dev/null; S=$(ibifs mint B.store | head -n 1); I=$S
    rm -rf theirs*; mkdir -p theirs/data; printf 'BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n' > theirs/bagit.txt
    { cat B.store/col/$S/.ibi; for kind in editionof metadataof translationof; do echo "ibi.$kind {rep $(<r)}"; done; } > theirs/data/.ibi
    (cd theirs; sha512sum data/.ibi > manifest-sha512.txt); python3 -m zipfile -c theirs.zip theirs/; chown -R 60001:60001 theirs*; }
# The names of all items that one of the items of others leads to.
leads() { for to in r p; do for tail in '!' ':' '+(pt)'; do
    case $(readlink "A/$(<$to)$tail" || :) in ''|*$(basename $(<$to))) ;; *) echo "$to$tail leads to $(readlink "A/$(<$to)$tail")";; esac
done; cmp -s $col/$(<$to)/.ibi $to.before || echo "$to is changed"; done; }
again() { ibifs umount A; "$@" > /dev/null || :; ibifs mount A.store A; }
"#;

fn fixture() -> TestEnv {
    let env = TestEnv::new();
    let script = "chmod 755 .; ibifs init A.store --host archive-a.example.org > /dev/null
        mkdir A; ibifs mount A.store A; chmod 1777 A; mint A r > r; chmod 700 A/$(<r); mint A w > w
        other mkdir -p A/.mint/p/doc; labelled A p other > p; for to in r p; do cat $col/$(<$to)/.ibi > $to.before; done";
    sh(&env, script);
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{SCENE}{script}"))
}

/// Ways in which a text of 60001 gets into a sidecar of root: `$S` is root's item, `$O` that of 60001.
const WAYS: [&str; 28] = [
    "roots; new; chmod 666 A/$S/.ibi; as bash -c 'cat new > A/'$S/.ibi",
    "roots; new; chmod 666 A/$S/.ibi; tail -n 4 new > rest; as bash -c 'cat rest >> A/'$S/.ibi",
    "roots; new; chmod 666 A/$S/.ibi; as bash -c 'cat new > A/'$S/.ibi; chmod 644 A/$S/.ibi",
    "roots; new; chmod 666 A/$S/.ibi; as truncate -s 0 A/$S/.ibi 2> /dev/null || :; as dd if=new of=A/$S/.ibi conv=notrunc status=none; chmod go-w A/$S/.ibi",
    "roots; new; cp new A/$S/from; chmod 666 A/$S/.ibi; as /usr/bin/python3 ways.py copy A/$S/.ibi; chmod 644 A/$S/.ibi",
    "roots; new; chmod 666 A/$S/.ibi; as /usr/bin/python3 ways.py map A/$S/.ibi; chmod 644 A/$S/.ibi",
    "roots; new; chmod 666 A/$S/.ibi; as /usr/bin/python3 ways.py allocate A/$S/.ibi; chmod 644 A/$S/.ibi",
    "roots; new; chgrp 60001 A/$S/.ibi; chmod 664 A/$S/.ibi; as cp new A/$S/.ibi; chmod g-w A/$S/.ibi",
    "roots; new; setfacl -m u:60001:rw A/$S/.ibi; as cp new A/$S/.ibi",
    "roots; new; setfacl -m u:60001:rw A/$S/.ibi; as cp new A/$S/.ibi; setfacl -b A/$S/.ibi",
    "roots; chmod 777 A/$S; chmod 666 A/$S/.ibi; for kind in editionof metadataof; do as setfattr -n user.ibi.$kind -v $(<r) A/$S; done",
    // The file is open before root closes it to others.
    "roots; new; chmod 666 A/$S/.ibi; /usr/bin/python3 ways.py late A/$S/.ibi",
    // A sidecar that was written outside the mount is rewritten by root's command.
    "roots; new; chmod 666 $col/$S/.ibi; cat new > $col/$S/.ibi; again ibifs reindex A.store; setfattr -n user.ibi.language -v fr A/$S",
    // Files of root that others may write become the sidecar of an item of 60001.
    "own; new; opened; as ln A/$(<w)/doc/open A/$O/.ibi.new; as mv -f A/$O/.ibi.new A/$O/.ibi",
    "own; new; opened; as ln A/$(<w)/doc/open A/$O/.ibi.new; as mv -f A/$O/.ibi.new A/$O/.ibi; rm A/$(<w)/doc/open; chmod 644 A/$O/.ibi",
    "own; new; opened; as ln A/$(<w)/doc/open A/$O/x; as /usr/bin/python3 ways.py exchange A/$O/x A/$O/.ibi; as rm A/$O/x; rm A/$(<w)/doc/open",
    "roots; new; chmod 666 A/$S/.ibi; own; as ln A/$S/.ibi A/$O/x; as cp new A/$O/x; chmod 644 A/$S/.ibi; as rm A/$O/x; as true > /dev/null",
    // Root's commands go over what 60001 has said.
    "own; claims; chown -R root:root A/$O",
    "own; claims; printf 'rep,language\\n%s,fr\\n' $O > t.csv; ibifs import A t.csv --replace > /dev/null; grep -q 'language fr' A/$O/.ibi",
    "own; claims; sed -i s/pt/fr/ A/$O/.ibi",
    "own; claims; setfattr -n user.ibi.language -v fr A/$O",
    "own; claims; /usr/bin/python3 ways.py replace A/$O/.ibi",
    "own; claims; again true; ibifs umount A; printf 'rep,language\\n%s,fr\\n' $O > t.csv; ibifs import A.store t.csv --replace > /dev/null; ibifs mount A.store A",
    "own; new; chown 60001:60001 new; cp -a new A/$O/.ibi; rsync -a new A/$O/.ibi; ibifs relate A/$O --metadata $(<w); vim -es -u NONE -c 's/^/#/' -c u -c wq! A/$O/.ibi || :",
    // Root imports what 60001 has packed.
    "packed; ibifs import A theirs > /dev/null; test -e A/$S/.ibi",
    "packed; ibifs import --same-owner A theirs.zip > /dev/null; test -e A/$S/.ibi",
    "packed; chown -R root:root theirs theirs/data; chown 60001 theirs/data/.ibi; again true; ibifs umount A; ibifs import A.store theirs > /dev/null; ibifs mount A.store A; test -e A/$S/.ibi",
    // From one user to another.
    "own; claiming $O $(<p) > new; chmod 644 new; as cp new A/$O/.ibi; chown 60002:60002 A/$O/.ibi; chown -R 60002:60002 A/$O",
];

const PROGRAM: &str = r#"import ctypes, mmap, os, sys
way, path = sys.argv[1:3]
new = open('new', 'rb').read()
if way == 'exchange':
    assert not ctypes.CDLL(None).renameat2(-100, path.encode(), -100, sys.argv[3].encode(), 2)
    sys.exit()
if way == 'replace':
    text = open(path, 'rb').read().replace(b'language pt', b'language fr')
    open(path + '.tmp', 'wb').write(text); os.rename(path + '.tmp', path)
    sys.exit()
def user(uid):
    os.setresgid(uid, uid, 0); os.setresuid(uid, uid, 0)
if way == 'late':
    user(60001)
f = os.open(path, os.O_RDWR)
if way == 'copy':
    os.ftruncate(f, 0); assert os.copy_file_range(os.open(path[:-4] + 'from', os.O_RDONLY), f, len(new)) == len(new)
elif way == 'map':
    os.ftruncate(f, len(new)); m = mmap.mmap(f, len(new)); m[:] = new; m.flush(); m.close()
elif way == 'allocate':
    os.posix_fallocate(f, 0, len(new)); os.pwrite(f, new, 0)
elif way == 'late':
    os.setresuid(0, 0, 0); os.chmod(path, 0o644); user(60001)
    os.ftruncate(f, 0); os.pwrite(f, new, 0)
os.close(f)
"#;

/// A file of root that all may write has the text `new`.
const OPENED: &str = "opened() { rm -f A/$(<w)/doc/open; echo > A/$(<w)/doc/open; chmod 666 A/$(<w)/doc/open; as bash -c 'cat new > A/'$(<w)/doc/open; }\n";

#[test]
fn a_text_speaks_for_the_user_who_has_written_it() {
    let env = fixture();
    std::fs::write(env.root().join("ways.py"), PROGRAM).expect("a program");
    let leads = |script: &str| {
        let script = format!("{OPENED}{script}\nleads");
        sh(&env, &script)
    };
    let mut wrong = Vec::new();
    let mut note = |when: &str, found: String| {
        if !found.is_empty() {
            wrong.push(format!("{when}:\n{found}\n"));
        }
    };
    for way in WAYS {
        note(
            way,
            leads(&format!(
                "{way}\necho \"$I {}\" >> made",
                way.replace(['"', '$'], "")
            )),
        );
    }
    note("reindex", leads("again ibifs reindex A.store"));
    note("repair", leads("again ibifs fsck --repair A.store"));
    // Root removes the sidecars, which are restored.
    note(
        "restored",
        leads(
            "while read item rest; do rm -f A/$item/.ibi; done < made; again ibifs reindex A.store",
        ),
    );
    let made = sh(&env, "cat made");
    assert!(wrong.is_empty(), "{}\n{made}", wrong.join(""));
}

/// Ways in which owners write their sidecars. `$I` is the item, `$C` a copy that the same user holds, and `new` the text,
/// which claims it.
const OWN_WAYS: [&str; 12] = [
    "$who bash -c 'cat new > A/'$I/.ibi",
    "$who cp new A/$I/.ibi",
    "$who cp new A/$I/x; $who mv -f A/$I/x A/$I/.ibi",
    "$who cp new A/$I/x; $who ln -f A/$I/x A/$I/.ibi; $who rm A/$I/x",
    "$who cp new A/$I/.ibi; $who sed -i s/pt/fr/ A/$I/.ibi",
    "$who cp new A/$I/.ibi; $who vim -es -u NONE -c 's/^/#/' -c u -c wq! A/$I/.ibi || :",
    "$who cp new A/$I/.ibi; $who vim -es -u NONE --cmd 'set backupcopy=no' -c '%s/pt/fr/' -c wq! A/$I/.ibi || :",
    "$who cp new A/$I/from; $who cp -a A/$I/from A/$I/.ibi",
    "$who cp new A/$I/from; $who rsync -a A/$I/from A/$I/.ibi",
    "$who install -m 644 new A/$I/.ibi",
    "$who cp new A/$I/y; cd A/$I; $who git init -q; $who git config user.email a@b; $who git config user.name a
        $who cp y .ibi; $who git add .ibi; $who git commit -qm x; $who git rm -q --cached .ibi; $who git checkout -qf HEAD; cd - > /dev/null",
    "$who setfattr -n user.ibi.editionof -v $C A/$I",
];

#[test]
fn what_owners_write_goes_on_counting() {
    let env = fixture();
    let mut script = String::new();
    for (user, make) in [("", "roots"), ("as", "own")] {
        for (number, way) in OWN_WAYS.iter().enumerate() {
            script.push_str(&format!(
                "who={user}; export HOME=$PWD; {make}; C=x.org/y$who/2001/01.01.00.{number:02}; mkdir -p A/$C; chown --reference=A/$I A/$C
                 claiming $I $C > new; chmod 644 new
                 {way}
                 echo \"$C $I $who {number}\" >> made\n"
            ));
        }
    }
    sh(&env, &script);
    let check = "while read copy item rest; do
        case $(readlink \"A/$copy!\") in *$item) ;; *) echo \"$rest is not followed\";; esac; done < made";
    for when in [
        "true",
        "ibifs reindex A.store",
        "ibifs fsck --repair A.store",
    ] {
        let found = sh(&env, &format!("again {when}; {check}"));
        assert_eq!(found, "", "after {when}");
    }
}
