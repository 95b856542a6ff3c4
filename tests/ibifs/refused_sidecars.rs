//! A bad sidecar fails where it is written: the program that writes it gets EINVAL, its bytes are kept in
//! the item, and the sidecar in force stays.

use crate::support::TestEnv;

/// The ways in which a program writes the file `bad` as the sidecar of the item `$D`, with its complaint.
const WAYS: [(&str, &str); 12] = [
    ("cp bad $D/.ibi", "Invalid argument"),
    ("cp --remove-destination bad $D/.ibi", "Invalid argument"),
    ("bash -c \"cat bad > $D/.ibi\"", "Invalid argument"),
    ("bash -c \"/bin/echo bad >> $D/.ibi\"", "Invalid argument"),
    ("dd if=bad of=$D/.ibi status=none", "Invalid argument"),
    ("bash -c \"tee $D/.ibi < bad\"", "Invalid argument"),
    ("install -m 644 bad $D/.ibi", "Invalid argument"),
    ("sed -i s/^ibi/}/ $D/.ibi", "Invalid argument"),
    ("rsync -a source/ $D/", "Invalid argument"),
    ("rsync -a --inplace source/ $D/", "Invalid argument"),
    ("tar -C $D -xf source.tar", "Invalid argument"),
    ("cp -a source/. $D/", "Invalid argument"),
];

/// The Archive A with an item of root and one of user 1001; `as` runs a program as a user.
fn world() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{AS} chmod 1777 A; mint A mine > mine; as 1001 mkdir A/.mint/his; labelled A his as 1001 > his
         mkdir source; printf 'ibi {{rep unterminated\\n' > source/.ibi; cp source/.ibi bad
         chmod -R a+rX source bad; tar -C source -cf source.tar .ibi; cp A/$(<mine)/.ibi good-0
         cp A/$(<his)/.ibi good-1001; chmod a+r *"
    ));
    env
}

const AS: &str = "as() { if test $1 = 0; then \"${@:2}\"; else
     setpriv --reuid $1 --regid $1 --clear-groups \"${@:2}\"; fi; }\n";

/// Each way in both trees, by root and by an ordinary user, with the kernel's passthrough and without.
#[test]
fn a_bad_sidecar_fails_where_it_is_written() {
    let env = world();
    for option in ["", "-o passthrough=no"] {
        env.sh(&format!("ibifs umount A; ibifs mount {option} A.store A"));
        for (way, complaint) in WAYS {
            env.sh(&format!(
                "{AS} for who in 0 1001; do
                     item=mine; test $who = 0 || item=his
                     for D in A/$(<$item) A/$(ibip A/$(<$item)); do
                         ls -i $D/.ibi > /dev/null
                         if as $who {way} 2> printed > /dev/null; then echo \"$who $D\"; exit 1; fi
                         grep -q '{complaint}' printed; cmp good-$who $D/.ibi
                         test $(stat -c %u:%a $D/.ibi) = $who:644
                         test \"$(ls -A $D | grep ibi | xargs)\" = '.ibi .ibi.broken-1'
                         no cmp good-$who $D/.ibi.broken-1; as $who rm $D/.ibi.broken-1
                     done
                 done"
            ));
        }
    }
    env.sh("test $(state A/$(<mine)) = Original; ibifs umount A; ibifs fsck A.store");
}

/// A rename that is refused changes neither name. What is refused again is kept once, other bytes beside
/// it, and a good sidecar is accepted as ever.
#[test]
pub fn what_is_refused_is_kept_and_named() {
    let env = world();
    env.sh(
        "D=A/$(<mine); cp bad $D/new; inode=$(stat -c %i $D/.ibi)
         no mv $D/new $D/.ibi; cmp bad $D/new; cmp good-0 $D/.ibi; test $(stat -c %i $D/.ibi) = $inode
         no cp bad $D/.ibi; cmp bad $D/.ibi.broken-1; test ! -e $D/.ibi.broken-2
         echo other > other; no cp other $D/.ibi; cmp bad $D/.ibi.broken-1; cmp other $D/.ibi.broken-2
         (cat good-0; echo language pt) > better; cp better $D/.ibi; cmp better $D/.ibi
         test $(getfattr --only-values -n user.ibi.language $D) = pt
         mv $D/new $D/doc/; no mv -T $D/doc/new $D/.ibi; cmp better $D/.ibi",
    );
    // The sidecar of another item, and one that is too large.
    env.sh(
        "D=A/$(<mine); cp $D/.ibi before; no cp good-1001 $D/.ibi; cmp before $D/.ibi
         cmp good-1001 $D/.ibi.broken-3; head -c 1048577 /dev/zero > large
         if cp large $D/.ibi 2> printed; then exit 1; fi; grep -q 'File too large' printed
         cmp large $D/.ibi.broken-4; cmp before $D/.ibi",
    );
    // An item that had none keeps none, and the copy is complete but for it.
    env.sh(
        "copy=A/example.net/library/2003/08.25.08.47.40; mkdir -p ${copy%/*}; mkdir source/doc; echo x > source/doc/x
         no cp -a source $copy; test ! -e $copy/.ibi; cmp bad $copy/.ibi.broken-1; cmp source/doc/x $copy/doc/x
         no rsync -a source/ $copy/; test ! -e $copy/.ibi; test \"$(ls -A $copy | xargs)\" = '.ibi.broken-1 doc'
         echo 'ibi {rep example.net/library/2003/08.25.08.47.40}' > source/.ibi; rsync -a source/ $copy/
         cmp source/.ibi $copy/.ibi; ibifs umount A; ibifs fsck A.store",
    );
}

/// Several processes write one open file: what is not complete when one of them closes it is refused
/// then, and accepted when it is complete. A file that is left empty stays, and fsck names it.
#[test]
fn a_sidecar_may_be_written_in_parts() {
    let env = world();
    env.sh(
        "D=A/$(<mine); (cat good-0; echo language pt) > better
         { head -c 20 better || true; tail -c +21 better; } > $D/.ibi 2> printed
         grep -q 'Invalid argument' printed; cmp better $D/.ibi; test \"$(ls -A $D | xargs)\" = '.ibi doc'
         test $(getfattr --only-values -n user.ibi.language $D) = pt
         { echo ibi; /bin/echo '{' || true; echo end; } > $D/.ibi 2> printed; cmp better $D/.ibi
         test \"$(xargs < <(tr '{' x < $D/.ibi.broken-1))\" = 'ibi x end'; rm $D/.ibi.broken-1
         no truncate -s 0 $D/.ibi; test ! -s $D/.ibi; test $(state $D) = Original; cat better >> $D/.ibi
         cmp better $D/.ibi; test \"$(ls -A $D | xargs)\" = '.ibi doc'
         ibifs umount A; ibifs fsck A.store; ibifs mount A.store A
         no truncate -s 0 $D/.ibi; ibifs umount A; no ibifs fsck A.store; ibifs fsck --repair A.store
         cmp better A.store/col/$(<mine)/.ibi",
    );
}

/// A program that fills a new item copies a directory: the sidecar of another item in it is left out, a
/// malformed one is refused.
#[test]
fn a_deposit_leaves_the_sidecar_of_another_item_out() {
    let env = world();
    env.sh(
        "mkdir other; cp good-1001 other/.ibi; echo text > other/text
         cp -a other A/.mint/copied; rsync -a other A/.mint/; tar -cf other.tar other; tar -C A/.mint -xf other.tar
         for label in copied other; do
             D=A/$(labelled A $label); cmp other/text $D/text; test ! -e $D/.ibi.broken-1
             no cmp other/.ibi $D/.ibi; test $(state $D) = Original
         done
         no cp -a source A/.mint/bad; D=A/$(labelled A bad); cmp bad $D/.ibi.broken-1; test $(state $D) = Original
         ibifs umount A; ibifs fsck A.store",
    );
}

/// Editors, where they are installed.
#[test]
fn editors_are_refused_a_bad_sidecar() {
    let env = world();
    for edit in [
        "vim -u NONE -es -c '%s/ibi/x {/' -c 'wq!' $D/.ibi",
        "vim -u NONE -es -c 'set backupcopy=yes' -c '%s/ibi/x {/' -c 'wq!' $D/.ibi",
    ] {
        env.sh(&format!(
            "D=A/$(<mine); no {edit}; cmp good-0 $D/.ibi; grep -q '^x {{' $D/.ibi.broken-1; rm $D/.ibi.broken-1
             test \"$(ls -A $D | xargs)\" = '.ibi doc'"
        ));
    }
}

/// A sidecar is read again when its last user has gone, if it can have changed since it was closed: a process
/// that has inherited the descriptor writes it, or a mapping does. With passthrough a mapping holds the file of the
/// store, and the last user of the mount's file has gone with its last descriptor.
#[test]
fn what_is_written_after_a_close_is_accepted() {
    let env = world();
    for option in ["", "-o passthrough=no"] {
        env.sh(&format!("ibifs umount A; ibifs mount {option} A.store A"));
        let mapping = if option.is_empty() {
            "closed_first"
        } else {
            "outlives"
        };
        env.sh(&format!("echo {mapping} > mapping"));
        env.sh(r#"python3 - A/$(<mine)/.ibi $(<mapping) <<'end'
import ctypes, mmap, os, sys, subprocess, time
def language():
    wanted = b'language en' if b'language pt' in open(sys.argv[1], 'rb').read() else b'language pt'
    return wanted, wanted + b'\n'
def shown(wanted):
    for _ in range(100):
        text = subprocess.run(['ibifs', 'show', os.path.dirname(sys.argv[1])], capture_output=True).stdout
        if wanted.split()[1] in [line.split()[-1] for line in text.splitlines() if line.startswith(b'language')]: return
        time.sleep(0.05)
    sys.exit('%s is not shown: %s' % (wanted, text))
def without(): return b''.join(line for line in open(sys.argv[1], 'rb') if b'language' not in line)

wanted, line = language(); rest = without()
file = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
ready, go = os.pipe()
if os.fork() == 0:
    os.close(go); os.read(ready, 1)
    os.write(file, line); os._exit(0)
os.write(file, rest); os.close(file); os.close(go); os.wait()
shown(wanted)

wanted, line = language()
libc = ctypes.CDLL(None, use_errno=True); libc.mmap.restype = ctypes.c_void_p
file = os.open(sys.argv[1], os.O_RDWR); size = os.fstat(file).st_size
mapped = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
if sys.argv[2] == 'outlives': os.close(file)
at = ctypes.string_at(mapped, size).find(b'language'); ctypes.memmove(mapped + at, line, len(line))
libc.munmap(ctypes.c_void_p(mapped), size)
if sys.argv[2] != 'outlives': os.close(file)
shown(wanted)
end"#);
    }
}

/// A sidecar that would take the service away from its item, or an original back from the Archive that has
/// it now, fails where it is written, too. It was restored without an error before.
#[test]
fn a_sidecar_that_contradicts_the_archive_fails_where_it_is_written() {
    let env = TestEnv::new();
    env.sh("mkdir M
         ibifs init A --host archive-a.example.org > /dev/null
         ibifs init B --host archive-b.example.net > /dev/null
         ibifs mint A | head -n 1 > one; ibifs mint A | head -n 1 > two; cp A/col/$(< one)/.ibi kept
         service=$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' A/archive.ibi); echo $service > service
         sed \"s:^ibi.archiveservice.*:ibi.archiveservice {rep $(< two)}:\" A/col/$service/.ibi > wrong
         ! cmp -s wrong A/col/$service/.ibi
         ibifs transfer --store A $(< one) B
         mkdir -p A/handover/col/$(dirname $(< one)); other=$(sed -n 's/^ibi.archiveservice //p' B/archive.ibi)
         printf 'ibi {rep %s}\\nto %s\\nword 0123456789abcdef\\n' $(< one) \"$other\" > A/handover/col/$(< one)
         ibifs mount A M");
    env.sh("for pair in 'kept one' 'wrong service'; do
             set $pair; D=M/$(< $2); cp $D/.ibi before
             if cp $1 $D/.ibi 2> printed; then exit 1; fi
             grep -q 'Invalid argument' printed; cmp before $D/.ibi; cmp $1 $D/.ibi.broken-1; rm $D/.ibi.broken-1
             if rsync -I --inplace $1 $D/.ibi 2> printed; then exit 1; fi
             grep -q 'Invalid argument' printed; cmp before $D/.ibi; cmp $1 $D/.ibi.broken-1; rm $D/.ibi.broken-1
             cp $1 $D/new; no mv $D/new $D/.ibi; cmp $1 $D/new; cmp before $D/.ibi; rm $D/new $D/.ibi.broken-1
         done
         test $(state M/$(< one)) = Copy; ibifs umount M
         test \"$(ibifs fsck A --json | jq -r '.findings[].code' | xargs)\" = handover-pending");
}
