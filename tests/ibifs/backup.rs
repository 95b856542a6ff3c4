//! `ibifs backup`: a store that is the same, whatever goes on meanwhile and however it ends.

use crate::concurrency::crowd::Crowd;
use crate::support::{Disk, Format, Needs, Rng, TestEnv, seed, switch};

/// The functions of these scripts: they print the differences between the store A.store and its backup D.
const TOOLS: &str = r#"
differs() {
    for area in col ibip deleted fixity; do
        test ! -d A.store/$area || rsync -aHAXni --delete --exclude=/progress --exclude="ddd*" A.store/$area/ D/$area/
    done
    # Paths longer than the system takes at once are beyond rsync.
    diff <(cd A.store/col; find . -printf '%p %y %s %m %T@\n' | sort) <(cd D/col; find . -printf '%p %y %s %m %T@\n' | sort)
    diff <(ibifs ls A.store) <(ibifs ls D)
}
# The sound store that D should be now.
sound() { ibifs fsck D 2> complained > found || { cat found complained >&2; false; }; }
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

/// A mounted Archive with an item of everything that a filesystem holds, at `$item`.
fn environment() -> TestEnv {
    let env = TestEnv::with(Needs::LongPaths).with_a();
    env.sh(
        r#"mkdir -p A/.mint/x/doc; item=$(realpath A/.mint/.x); there=A.store/col/${item#*/A/}; echo $item > item
         cd $item/doc; echo one > one; ln one two; ln -s one link; ln -s /nowhere/at/all dangling; mkfifo fifo
         truncate -s 20M sparse; printf end | dd of=sparse bs=1M seek=15 conv=notrunc status=none
         setfattr -n user.colour -v blue one; setfacl -m u:1234:r one; mkdir -p deep/deeper; echo x > deep/deeper/file
         setfattr -n user.shape -v round deep; setfacl -d -m u:1234:rx deep; chmod 2751 deep; chown 12:34 deep/deeper
         cp /bin/true set; chown 12:34 set; chmod 4711 set; touch -h -d '2001-02-03 04:05:06.123456789' link
         touch -d '2001-02-03 04:05:06.987654321' deep/deeper/file deep/deeper
         printf x > $'new\nline'; printf x > $'\xff'; chmod 500 deep/deeper; mkdir empty; cd - > /dev/null
         mknod $there/doc/null c 1 3
         python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $there/doc/socket
         python3 - $there/doc <<'END'
import os, sys
os.chdir(sys.argv[1])
for level in range(40):
    os.mkdir('d' * 200); os.chdir('d' * 200)
open('deep', 'w').write('deep')
END
         ibifs mint A --edition-of $item > next; ibifs mint A --translation-of $item --lang pt > /dev/null
         mkdir -p A/8JMKD3MGP8W/34PGRBS; echo x > A/8JMKD3MGP8W/34PGRBS/file
         mkdir A/.mint/removed; ibifs ls A > /dev/null; rm -r $(realpath A/.mint/.removed)
         chmod 750 A.store; ibifs scrub A > /dev/null"#,
    );
    env
}

/// Everything is in it, byte for byte and bit for bit; it is a sound store, and its files have the
/// digests of the original's.
#[test]
fn a_backup_has_everything() {
    let env = environment();
    env.prints(
        "ibifs backup A D | cut -d: -f1; ls D/relations.sqlite3* D/staging",
        "5 items\nD/relations.sqlite3\n\nD/staging:",
    );
    assert_eq!(sh(&env, "sound; differs"), "");
    env.prints(
        "there=D/col/$(sed 's|.*/A/||' item); stat -c '%h %a %U %y' $there/doc/two
         test $(stat -c %b $there/doc/sparse) -lt 4000; cmp $there/doc/sparse A.store/${there#D/}/doc/sparse
         test $there/doc/one -ef $there/doc/two; stat -c %a D D/fixity; ibifs scrub D | sed 's/.*bytes/read/'",
        &env.sh(
            "there=A.store/col/$(sed 's|.*/A/||' item); stat -c '%h %a %U %y' $there/doc/two
             printf '750\\n700\\nread\\n'",
        ),
    );
    // Again: nothing moves but what says when.
    env.sh(
        "find D/col -type f -printf '%p %i %C@\\n' | sort > before; ibifs backup A D > printed
         find D/col -type f -printf '%p %i %C@\\n' | sort | cmp - before",
    );
    assert_eq!(sh(&env, "sound; differs"), "");
}

/// An edited, linked, removed or converted file is so in the backup, and a file that has rotted does not overwrite its
/// good copy.
#[test]
fn an_earlier_backup_is_brought_up_to_date() {
    let env = environment();
    env.sh(
        "ibifs backup A D; item=$(< item); there=A.store/col/${item#*/A/}; cd $item/doc; sleep .1
         touch -r set time; printf Y | dd of=set bs=1 seek=100 conv=notrunc status=none; touch -r time set; rm time
         rm two; ln deep/deeper/file two; ln set again; rm fifo; mkdir fifo; echo in > fifo/in; rm -r empty
         ln -sfn elsewhere link; rm dangling; echo file > dangling; setfattr -x user.colour one; chmod 644 one
         setfacl -b deep; chmod 700 deep/deeper; cd - > /dev/null
         rm -r A/8JMKD3MGP8W/34PGRBS; mkdir -p A/8JMKD3MGP8W/3ABCDEF; ibifs mint A > /dev/null
         ibifs unrelate --next-edition $item; rm -r A/$(head -n 1 next); ibifs backup A D",
    );
    assert_eq!(sh(&env, "sound; differs"), "");
}

/// Bits that fall over on the disk change no time: scrub finds them, and the next backup does not
/// put them over the good copy, which is then put back.
#[test]
fn what_rots_is_found_and_stays_good_in_the_backup() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 16);
    env.sh(
        "ibifs init disk/store --host archive-a.example.org; rep=$(ibifs mint disk/store | head -n 1)
         echo $rep > rep; file=disk/store/col/$rep/doc/file
         { head -c 10000 /dev/urandom | base64; echo the bits of this line fall over; } > $file; cp $file good
         touch -d '1 hour ago' $file; ibifs scrub disk/store; ibifs backup disk/store D",
    );
    disk.unmount();
    env.sh("python3 -c '
with open(\"disk.img\", \"r+b\") as image:
    at = image.read().index(b\"the bits of this line\"); image.seek(at); image.write(b\"uhe\")'");
    disk.mount();
    env.exits("ibifs scrub disk/store > printed", 1);
    env.prints(
        "sed 's/:.*doc/ doc/; s/:.*//; q' printed",
        "damaged doc/file",
    );
    env.sh(
        "ibifs backup disk/store D; cmp good D/col/$(< rep)/doc/file; ibifs fsck D; ibifs scrub D
         cp -p D/col/$(< rep)/doc/file disk/store/col/$(< rep)/doc/file; ibifs scrub disk/store",
    );
}

/// Minting continues in a backup that is mounted, with no name that the store has handed out since.
#[test]
fn a_backup_is_a_store_and_mints_no_name_again() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A; ibifs backup A D; for count in 1 2 3 4 5; do ibifs mint A; done; mkdir M
         ibifs umount A; ibifs mount D M; for count in 1 2 3 4 5; do ibifs mint M; done > minted
         mkdir -p M/.mint/y/doc; ls M/.mint/y/doc; ibifs umount M",
    );
    env.prints(
        "test $(wc -l < minted) = 10; ibifs ls A.store | grep -c -F -f minted || true",
        "0",
    );
    // Of the two it is the one with the later dates now: it is not made a backup again.
    env.exits("ibifs backup A.store D", 4);
    env.complains(
        "ibifs backup A.store D",
        "'D': it has been used as a store and holds {rep",
    );
    env.sh("ibifs backup D E; ibifs fsck E; ibifs fsck D");
}

/// While eight processes mint, write, relate, remove and copy, every backup is a sound store. Copying
/// is made slow, so that much has changed between the first file and the last. `IBIFS_TEST_SECONDS`
/// for longer.
#[test]
fn a_backup_of_a_busy_mount_is_sound() {
    let seconds = switch("IBIFS_TEST_SECONDS").unwrap_or(6);
    let env = TestEnv::new().with_a();
    env.sh("for count in $(seq 40); do mkdir A/.mint/x$count; done");
    let mut backups = 0;
    Crowd::start(&env, 8, seconds, "grow").watch(|| {
        env.sh(&format!(
            "status=0
             strace -f --seccomp-bpf -o log -e trace=copy_file_range \\
                 -e inject=copy_file_range:delay_exit=20000 ibifs backup A D{} > printed || status=$?
             ! grep -v -e ^unsteady -e ' items: ' printed && grep -q ' items: ' printed && test $status -lt 2",
            backups % 2
        ));
        sh(
            &env,
            &format!("rm -rf D; cp -a D{} D; sound; rm -r D", backups % 2),
        );
        backups += 1;
    });
    println!("{backups} backups");
    assert!(backups > 0);
    env.sh("rm -rf D; mv D0 D; ibifs backup A D");
    assert_eq!(sh(&env, "sound; differs"), "");
}

/// Killed at any moment, a backup says that it is not finished, and the next one finishes it.
#[test]
fn a_killed_backup_is_known_and_finished_later() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org
         for count in $(seq 30); do
             there=A.store/col/$(ibifs mint A.store | head -n 1)/doc
             for file in 1 2 3 4 5; do head -c 200000 /dev/urandom > $there/$file; done
         done");
    // Killed before it could say what it is.
    env.sh(
        "mkdir -p D/col D/ibip D/deleted D/staging; echo half > D/staging/write-1-0; touch D/lock
         ibifs backup A.store D; ibifs fsck D; rm -r D
         mkdir -p D/col/x E/staging; touch D/lock E/staging/site",
    );
    env.exits("ibifs backup A.store D", 4);
    env.exits("ibifs backup A.store E", 4);
    env.sh("rm -r D E");
    let mut rng = Rng::from_seed(seed());
    let mut unfinished = 0;
    for round in 0..8 {
        let seconds = (5 + rng.below(250)) as f64 / 1000.0;
        let killed = env.run(&format!(
            "timeout -s KILL {seconds} ibifs backup A.store D || exit $?"
        ));
        if killed.status.code() == Some(137) {
            unfinished += 1;
            let output = env.run("ibifs fsck D");
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            // It was killed before there was a directory, or before the directory said what it is.
            let has_note = env.root().join("D/backup.ibi").exists();
            let is_told = if has_note {
                complaint.contains("is an unfinished backup")
            } else {
                complaint.contains("does not exist") || complaint.contains("has no archive.ibi")
            };
            let is_sound = output.status.success();
            assert!(is_told || is_sound, "{complaint}");
        }
        if round % 3 == 2 {
            env.sh("ibifs backup A.store D");
            assert_eq!(sh(&env, "sound; differs"), "", "after {seconds} s");
            env.sh("find A.store/col -name 3 | shuf -n 10 | while read file; do echo new > $file; done");
        }
    }
    println!("{unfinished} of 8 were killed in the middle");
    env.sh("ibifs backup A.store D; sed -i /finished/d D/backup.ibi");
    env.exits("mkdir M; ibifs mount D M", 4);
    // The store is lost, and what there is of the backup must do.
    env.sh("rm D/backup.ibi; lose_index D; ibifs reindex D");
    assert_eq!(sh(&env, "sound; differs"), "");
}

/// A full disk is reported plainly, and the backup continues when there is room.
#[test]
fn a_full_disk_is_reported() {
    let env = TestEnv::new().with_a();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 16);
    env.sh("mkdir -p A/.mint/x/doc; head -c 30000000 /dev/urandom > A/.mint/x/doc/large; echo x > A/.mint/x/doc/small");
    env.exits("ibifs backup A disk/D", 1);
    env.complains(
        "ibifs backup A disk/D",
        "/doc/large': No space left on device (os error 28)",
    );
    env.complains("mkdir M; ibifs mount disk/D M", "is an unfinished backup");
    env.sh(
        "truncate -s 1M A/.mint/x/doc/large; ibifs backup A disk/D; ibifs fsck disk/D
         cmp disk/D/col/*/*/*/*/doc/large A/.mint/x/doc/large",
    );
    drop(disk);
}

/// A backup is made where nothing can be lost by it.
#[test]
fn no_backup_is_made_over_something_else() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("ibifs backup B B.backup; mkdir full other; echo x > full/file; ln -s A.store/col link");
    for (destination, why) in [
        ("A.store", "would be inside the store"),
        ("A.store/backup", "would be inside the store"),
        ("link/backup", "would be inside the store"),
        (".", "would be inside the store, or the store inside it"),
        ("A", "is in a mounted store"),
        ("A/example.org/backup", "is in a mounted store"),
        ("B/backup", "is in a mounted store"),
        ("full", "is not empty and not a backup"),
        ("B.store", "is not empty and not a backup"),
        ("B.backup", "is the backup of another Archive"),
    ] {
        env.exits(&format!("ibifs backup A {destination}"), 4);
        env.complains(&format!("ibifs backup A {destination}"), why);
    }
    env.exits("ibifs backup A no/such/place", 1);
    env.exits("ibifs backup full other", 3);
    env.prints(
        "ls A.store/col full other; no ls no",
        "A.store/col:\nexample.org\n\nfull:\nfile\n\nother:",
    );
    env.sh("ibifs backup A D; mkdir M; ibifs mount D M");
    env.exits("ibifs backup A D", 5);
    env.sh("ibifs umount M; ibifs backup A D");
}

/// A file that is written all the while is reported; so is one that cannot be read, whose earlier copy
/// stays. The rest is in the backup.
#[test]
fn what_cannot_be_copied_is_reported() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mkdir -p A/.mint/x/doc; item=$(realpath A/.mint/.x); there=A.store/col/${item#*/A/}; echo $there > there
         echo x > $item/doc/steady; echo good > $item/doc/sick; ibifs backup A D; echo changed > $item/doc/sick
         echo x > $item/doc/busy",
    );
    let failing =
        "strace -f -o log -P $(< there)/doc/sick -e inject=copy_file_range,pread64:error=EIO";
    env.exits(&format!("{failing} ibifs backup A.store D > printed"), 1);
    env.prints(
        "sed -n 's/: .*doc/ doc/; 1p' printed; cat D/$(cut -d/ -f2- there)/doc/sick",
        "not-copied doc/sick: is not in the backup as it is now: Input/output error (os error 5)\ngood",
    );
    env.sh(
        "ibifs fsck D; ibifs backup A D; cmp D/$(cut -d/ -f2- there)/doc/sick $(< there)/doc/sick",
    );
    env.sh("python3 -c '
import sys
with open(sys.argv[1], \"r+b\") as file:
    while True:
        file.seek(0); file.write(b\"y\"); file.flush()' $(< there)/doc/busy & writer=$!
         until grep -q y $(< there)/doc/busy; do sleep .02; done; status=0
         strace -f -o log -P $(< there)/doc/busy -e inject=copy_file_range:delay_exit=300000 \
             ibifs backup A D > printed || status=$?
         kill $writer; test $status = 1");
    env.prints(
        "sed -n 's/: .*doc/ doc/; 1p' printed; ibifs fsck D 2> /dev/null",
        "unsteady doc/busy: changed each time that it was copied; run the backup again when it is no longer written: \
         it was written during each attempt\n2 items, 0 findings",
    );
}

/// A file that the store has lost without a removal stays in the backup. A store that is not sound has a backup that
/// says the same.
#[test]
fn a_backup_keeps_what_the_store_has_lost() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org; rep=$(ibifs mint A.store | head -n 1); echo $rep > rep
         other=$(ibifs mint A.store | head -n 1); echo x > A.store/col/$rep/doc/file; ibifs backup A.store D
         rm -r A.store/col/$rep; sed -i 's/^ibi /language pt\\nibi /' A.store/col/$other/.ibi",
    );
    env.sh("ibifs backup A.store D > printed");
    env.prints(
        "cat D/col/$(< rep)/doc/file; sed 's/:.*//' printed",
        "x\nunsound\nkept\n3 items",
    );
    env.sh(
        "diff -r A.store/col D/col | grep -v 'Only in D' || true; ibifs reindex D; ibifs fsck D",
    );
    env.prints(
        "ibifs show --store D $(< rep) | grep state",
        "state            Original",
    );
}

/// A user who may write in an item cannot have anything copied from outside of it.
#[test]
fn no_link_is_followed_out_of_an_item() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mkdir -p A/.mint/x/doc outside; item=$(realpath A/.mint/.x); there=$PWD/A.store/col/${item#*/A/}
         for count in $(seq 300); do echo secret > outside/$count; echo harmless > $item/doc/$count; done
         ln -s $PWD/outside $there/away
         python3 - $there <<'END' &
import os, sys, ctypes
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None)
while True:
    libc.renameat2(-100, b'doc', -100, b'away', 2)
END
         swapper=$!
         for count in 1 2 3 4 5 6; do rm -rf D; ibifs backup A D > printed || true; done
         kill $swapper; no grep -r secret D; ibifs backup A D; no grep -r secret D; grep -rq harmless D",
    );
}
