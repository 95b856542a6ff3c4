//! `ibifs backup --keep`: generations that share files, of which none is ever changed by another, whatever stops a backup.

use crate::support::{Disk, Format, TestEnv};

/// A store S with three items whose reps are in `reps`, and functions for the generations in G.
fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh("ibifs init S --host archive-a.example.org
         for count in 1 2 3; do
             rep=$(ibifs mint S | head -n 1); echo $rep >> reps
             echo text$count > S/col/$rep/doc/file; ln S/col/$rep/doc/file S/col/$rep/doc/again
         done");
    env
}

const TOOLS: &str = r#"
back() { ibifs backup S G --keep 9d,9w,9m,9y "$@"; }
# Gives the newest generation the date of a day, so that it stays when others are made.
dated() { mv G/$(ls G | grep -v '^2026-0[1-9]-01T000000Z$' | grep ^2 | tail -n 1) G/2026-0$1-01T000000Z; }
newest() { ls -d G/2* | tail -n 1; }
# All that a generation holds, but the number of names of its files and the time of the last one.
state() { (cd $1; find . ! -path ./staging -printf '%p %y %s %m %U %G %T@ %l\n' | sort; find . -type f ! -name 'relations*' -exec sha256sum {} + | sort); }
item() { sed -n $1p reps; }
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{TOOLS}\n{script}"), expected);
}

/// A file that has not changed is one file in all generations, with all its names; one of which the content, the mode,
/// the owner or an attribute has changed is not, and no generation changes when another is made, read or mounted.
#[test]
fn generations_share_what_has_not_changed() {
    let env = environment();
    sh(
        &env,
        "for count in 4 5 6 7; do echo $count > S/col/$(item 1)/doc/$count; done; back; dated 1; state G/2026-01* > before
         sleep .05; cd S/col/$(item 1)/doc; printf X | dd of=4 conv=notrunc status=none; touch -r 5 4
         chmod 600 5; chown 12:34 6; setfattr -n user.colour -v blue 7; cd - > /dev/null; back",
    );
    prints(
        &env,
        "old=G/2026-01-01T000000Z/col; new=$(newest)/col
         for name in file again 4 5 6 7; do
             test $old/$(item 1)/doc/$name -ef $new/$(item 1)/doc/$name && echo $name || true
         done
         stat -c %h $new/$(item 2)/doc/file $new/$(item 2)/.ibi; test $new/$(item 1)/doc/file -ef $new/$(item 1)/doc/again
         diff -r S/col $new; stat -c '%a %u %g' $new/$(item 1)/doc/[56]; getfattr --only-values -n user.colour $new/$(item 1)/doc/7
         getfattr --only-values -n user.colour $old/$(item 1)/doc/7 2> /dev/null || true",
        "file\nagain\n4\n1\n600 0 0\n644 12 34\nblue",
    );
    sh(
        &env,
        "first=G/2026-01-01T000000Z; ibifs fsck $first; ibifs ls $first; ibifs show --store $first $(item 1)
         mkdir M; ibifs mount -o ro $first M; cmp M/$(item 1)/doc/file S/col/$(item 1)/doc/file; no touch M/$(item 1)/doc/new
         ibifs umount M; state $first | diff before -",
    );
    for change in [
        "mint $(newest)",
        "mount $(newest) M",
        "reindex $(newest)",
        "fsck --repair $(newest)",
        "relate $(newest)/col/$(item 1) --metadata $(newest)/col/$(item 2)",
    ] {
        let change = format!("{TOOLS}\nibifs {change}");
        env.exits(&change, 4);
        env.complains(&change, "is one generation of a backup");
    }
    // A store that can be changed is made of one.
    sh(
        &env,
        "ibifs backup G/2026-01-01T000000Z E; ibifs mint E; ibifs fsck E; state G/2026-01-01T000000Z | diff before -",
    );
}

/// A check of the directory checks the newest generation, one that is named by its date, or each of them, and repairs none.
#[test]
fn generations_are_checked_by_their_directory() {
    let env = environment();
    prints(
        &env,
        r#"(back; dated 1; back) > said; rm -r G/2026-01*/col/$(item 1); named() { sed "s;.*/$(basename $(newest)):;newest:;; s;.*/2026-01.*:;old:;"; }
        ibifs fsck G | named; (no ibifs fsck G --all) > said; named < said | sed 's/^not-in-tree: .*/lost/'
        (no ibifs fsck G --all --json) | jq '.errors > 0'; (no ibifs fsck G --all --json) | wc -l; (no ibifs fsck G@2026-01-01 --json) | jq -r .store | sed 's;.*/;;'; no ibifs fsck G@2025"#,
        "newest:\n4 items, 0 findings\nold:\nlost\n3 items, 1 finding\nnewest:\n4 items, 0 findings\ntrue\nfalse\n2\n2026-01-01T000000Z",
    );
    for (command, status) in [
        ("ibifs fsck S --all", 2),
        ("ibifs fsck G --all --repair", 2),
        ("ibifs fsck G --repair", 4),
        ("rm -r G/2*; ibifs fsck G", 4),
    ] {
        env.exits(command, status);
    }
}

/// A new generation is the newest one, also where the one before it has a date to come, which is said; it is not removed.
#[test]
fn a_new_generation_is_the_newest_one() {
    let env = environment();
    prints(
        &env,
        "back > /dev/null; mv $(newest) G/2099-01-01T000000Z
         for count in 1 2; do
             ibifs mint S > /dev/null; ibifs backup S G --keep 1d | sed '1s/Z: .*/Z/; 2d'; diff -r S/col $(newest)/col
         done
         ibifs backup S G --keep 1d --json | jq -c '[.code, .path, .generation]'",
        "ahead: 2099-01-01T000000Z\ngeneration 2099-01-01T000001Z; 1 generation in all\nremoved generation 2099-01-01T000000Z\n\
         ahead: 2099-01-01T000001Z\ngeneration 2099-01-01T000002Z; 1 generation in all\nremoved generation 2099-01-01T000001Z\n\
         [\"ahead\",\"2099-01-01T000002Z\",null]\n[null,null,\"2099-01-01T000003Z\"]",
    );
    // Of several in one second each has a later date.
    prints(
        &env,
        "rm -r G; made() { ibifs backup S G --keep 9d --json | jq -r .generation; }; for count in 1 2 3 4; do made; done > made; sort -uc made; tail -n 1 made | diff - <(basename $(newest))",
        "",
    );
}

/// Three generations over removals and renames, in a mounted store: each has what there was.
#[test]
fn a_generation_has_what_was_removed_or_renamed_later() {
    let env = TestEnv::new().with_a();
    sh(
        &env,
        r#"ln -s A.store S
        for count in 1 2 3; do
            mkdir A/.mint/x$count; realpath --relative-to A A/.mint/.x$count >> reps; echo $count > A/$(item $count)/file
        done
        back; dated 1; rm -r A/$(item 1); mv A/$(item 2)/file A/$(item 2)/other; back; dated 2
        rm -r A/$(item 2); echo new > A/$(item 3)/file; ibifs mint A > /dev/null; back"#,
    );
    prints(
        &env,
        r#"for generation in G/2026-01* G/2026-02* $(newest); do
            ibifs fsck $generation > /dev/null
            for count in 1 2 3; do
                ibifs show --store $generation $(item $count) | sed -n 's/^state *//p' | tr '\n' ' '
                (cd $generation/col/$(item $count) 2> /dev/null && grep -r . --exclude .ibi | tr '\n' ' ') || true
            done
            ibifs ls $generation | wc -l
        done
        ibifs backup --list G --json | jq -c '[.items, .finished, .ownBytes > 0]'"#,
        "Original file:1 Original file:2 Original file:3 4\n\
         Deleted Original other:2 Original file:3 4\n\
         Deleted Deleted Original file:new 5\n\
         [4,true,true]\n[3,true,true]\n[3,true,true]",
    );
}

/// An item that the store has lost, and a file that cannot be read, are in the new generation as they were in the last one.
#[test]
fn a_new_generation_keeps_what_was_lost() {
    let env = environment();
    sh(
        &env,
        "back; dated 1; rm -r S/col/$(item 1); echo changed > S/col/$(item 2)/doc/file",
    );
    let failing = "strace -f -o log -P S/col/$(item 2)/doc/file -P S/col/$(item 2)/doc/again \
                   -e inject=copy_file_range,pread64:error=EIO ibifs backup S G --keep 9d,9m > printed";
    env.exits(&format!("{TOOLS}\n{failing}"), 1);
    prints(
        &env,
        "sed -n 's/: .*//p' printed | sort -u; cat $(newest)/col/$(item 1)/doc/file $(newest)/col/$(item 2)/doc/file
         ibifs fsck $(newest)",
        "4 items\nkept\nnot-copied\ntext1\ntext2\n4 items, 0 findings",
    );
    sh(
        &env,
        "back > printed; cmp $(newest)/col/$(item 2)/doc/file S/col/$(item 2)/doc/file",
    );
    prints(&env, "sed 's/:.*//' printed | head -n 2", "kept\n4 items");
}

/// What a depositor has written does not make a backup fail; it is said.
#[test]
fn a_fault_in_a_sidecar_does_not_fail_a_backup() {
    let env = environment();
    sh(&env, "sed -i 's/^ibi /orcid\\nibi /' S/col/$(item 1)/.ibi");
    for backup in ["ibifs backup S D", "ibifs backup S G --keep 2d"] {
        env.prints(
            &format!("{backup} | sed 's/:.*//' | head -n 2"),
            "unsound\n4 items",
        );
    }
}

/// A backup that is stopped at any step, or for which a step fails, leaves the earlier generations as they were, and none that
/// could be taken for a whole one; the next one goes on.
#[test]
fn a_backup_may_stop_at_every_step() {
    let env = environment();
    sh(
        &env,
        "back; dated 1; echo new > S/col/$(item 1)/doc/file; back; dated 2; sleep .05; echo newer > S/col/$(item 2)/doc/new
         ibifs mint S > /dev/null; for old in 1 2; do state G/2026-0$old* > before$old; done; mv G G0",
    );
    for (fault, calls) in [
        (
            "signal=KILL",
            &[
                "renameat",
                "renameat2",
                "linkat",
                "mkdirat",
                "unlinkat",
                "syncfs",
                "fsync",
            ][..],
        ),
        ("error=ENOSPC", &["linkat", "mkdirat", "openat"]),
        ("error=EIO", &["fsync", "syncfs", "renameat2"]),
    ] {
        for call in calls {
            // The first ones, then some of the many.
            for step in [1, 2, 3, 5, 9, 17, 33] {
                let done = sh(
                    &env,
                    &format!(
                        r#"rm -rf G; cp -a G0 G; status=0
                        strace -f -qq -o log -e trace={call} -e inject={call}:{fault}:when={step} \
                            ibifs backup S G --keep 1d,1m > printed 2> complained || status=$?
                        for old in 1 2; do
                            test ! -e G/2026-0$old* || state G/2026-0$old* | diff before$old - || exit 1
                        done
                        case $(newest) in *2026-02*) test -e G/2026-01* ;; esac
                        for left in G/unfinished G/removing; do
                            test ! -e $left || ibifs fsck $left > found 2>&1 || grep -q -e 'unfinished backup' -e 'no archive.ibi' found
                        done
                        back > /dev/null; ibifs fsck $(newest) > /dev/null; diff -r S/col $(newest)/col
                        ls G | grep -v -e ^2 -e ^lock$ -e ^generations.ibi$ || true; grep -q INJECTED log || echo over"#
                    ),
                );
                assert!(
                    done.trim().is_empty() || done.trim().ends_with("over"),
                    "{fault} {call} {step}: {done}"
                );
                if done.contains("over") {
                    break;
                }
            }
        }
    }
}

/// On a full disk the earlier generations stay, and the next backup goes on when there is room.
#[test]
fn a_full_disk_leaves_the_earlier_generations() {
    let env = environment();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 16);
    sh(
        &env,
        "ln -s disk/G G; ibifs backup S disk/G --keep 9d,9m; dated 1; state G/2026-01* > before
         head -c 30000000 /dev/urandom > S/col/$(item 1)/doc/large",
    );
    env.exits("ibifs backup S disk/G --keep 9d,9m", 1);
    prints(
        &env,
        "state G/2026-01* | diff before -; ls G/ | grep -v lock; (ibifs ls G/unfinished 2>&1 || true) | grep -o 'is an unfinished backup'
         ibifs backup --list G/ | sed 's/ of .*//; s/[0-9]* bytes/some/'",
        "2026-01-01T000000Z\ngenerations.ibi\nunfinished\nis an unfinished backup\n\
         2026-01-01T000000Z  4 items, some\nunfinished  not finished, some",
    );
    sh(
        &env,
        "truncate -s 1M S/col/$(item 1)/doc/large; ibifs backup S disk/G --keep 9d,9m; ibifs fsck $(newest)
         diff -r S/col $(newest)/col; state G/2026-01* | diff before -; no ls G/unfinished",
    );
    drop(disk);
}

/// Where the filesystem shares blocks, generations share those of files that have not changed: they take the room once, and a
/// change of one leaves the others. A drill finds it, and the other one is restored.
#[test]
fn generations_share_blocks() {
    let env = environment();
    let disk = Disk::new(env.root(), "disk", Format::Xfs, 300);
    sh(
        &env,
        "ln -s disk/G G; head -c 20000000 /dev/urandom > S/col/$(item 1)/doc/large; touch -d '1 hour ago' S/col/$(item 1)/doc/large
         ibifs scrub S; ibifs backup S disk/G --keep 9d,9m; dated 1; state G/2026-01* > before; sync -f disk
         df --output=used -B1 disk | tail -n 1 > used; sleep .05; echo new > S/col/$(item 2)/doc/file; ibifs backup S disk/G --keep 9d,9m; sync -f disk",
    );
    let large =
        "old=G/2026-01-01T000000Z/col/$(item 1)/doc/large; new=$(newest)/col/$(item 1)/doc/large";
    prints(
        &env,
        &format!(
            "{large}; echo $(( $(df --output=used -B1 disk | tail -n 1) - $(< used) < 5000000 )); no test $old -ef $new; stat -c %h $old $new
             for file in $old $new; do filefrag -v $file | grep -q shared && echo shared; done; ibifs backup --list G/ | grep -c 'of its own' || true
             ibifs backup --drill G/ | grep -o '[0-9]* findings'; state G/2026-01* | diff before -
             touch -r $new time; printf X | dd of=$new conv=notrunc status=none; touch -r time $new; cmp -s $new S/col/$(item 1)/doc/large || echo changed
             state G/2026-01* | diff before -; {{ ibifs backup --drill G/ || true; }} | cut -d: -f1 | head -n 1
             ibifs backup --drill G/@2026-01-01 | grep -o '[0-9]* findings'
             no ibifs restore $(item 1) --from G/ --to none 2> said; ibifs restore $(item 1) --from G/@2026-01-01 --to there > /dev/null; cmp there/doc/large $old"
        ),
        "1\n1\n1\nshared\nshared\n0\n0 findings\nchanged\ndamaged\n0 findings",
    );
    drop(disk);
}

/// A damaged file of a generation is mended in all generations that share it, by one new file; what they have besides stays as it
/// was. The next backup would only take the damaged file over. A generation in which the file was another one is not changed.
#[test]
fn a_damaged_file_is_mended_in_all_generations() {
    let env = environment();
    sh(
        &env,
        "touch -d '2 hours ago' S/col/$(item 1)/doc/file; ibifs scrub S > /dev/null; back; dated 1
         echo text4 > S/col/$(item 1)/doc/file; touch -d '1 hour ago' S/col/$(item 1)/doc/file; ibifs scrub S > /dev/null; sleep .05
         back; dated 2; back; dated 3; for n in 1 2 3; do state G/2026-0$n* > before$n; done
         file=$(newest)/col/$(item 1)/doc/file; touch -r $file time; printf X | dd of=$file conv=notrunc status=none; touch -r time $file
         sleep .05; back; head -c 1 $(newest)/col/$(item 1)/doc/file > damaged",
    );
    let mend = r#"mends() { ibifs repair "$@" > said || true; sed 's/: col[^ ]*\/2[0-9]*\/[0-9.]*\//: /; s/ again, from .*/ again/; s/;.*//' said; }"#;
    prints(
        &env,
        &format!(
            "{mend}\n cat damaged; {{ ibifs audit S --with G || true; }} | grep -o \"ibifs repair.*/2.*--all --from STORE\" | sed 's/ [^ ]*G.2[^ ]*/ G/' | uniq
             mends G@2026-03 --all --from S; own=nothing; for n in 1 2 3; do test $n != 3 || own='^[.] d \\|[.]/damaged\\|[.]/handover'; state G/2026-0$n* | grep -v \"$own\" > now; grep -v \"$own\" before$n | diff - now;  done
             cat G/2*/col/$(item 1)/doc/file; stat -c %h $(newest)/col/$(item 1)/doc/file; cat G/2026-03*/damaged/$(item 1)/doc/*
             ibifs audit S --with G | tail -n 1 | sed 's/.*: //'; for it in G/2*; do ibifs fsck $it | tail -n 1; mends $it --all --from S; done"
        ),
        &format!(
            "Xibifs repair G --all --from STORE\nmended: doc/again: has the recorded content again\n4 items: 1 file mended, 0 left damaged\n\
             text1\ntext4\ntext4\ntext4\n6\nXext4\n0 files mended, 0 left to see to\n{}",
            ["4 items, 0 findings\n4 items: 0 files mended, 0 left damaged"; 4].join("\n")
        ),
    );
}

/// Nothing that a stranger has put in the place of a generation is followed, read for long, or removed; and what is no
/// directory of generations, or one of others, is left alone.
#[test]
fn no_generation_is_made_over_something_else() {
    let env = environment();
    sh(
        &env,
        r#"back; mkdir outside strangers; echo secret > outside/archive.ibi; chown 1234 strangers
        cp G/generations.ibi strangers; ln -s $PWD/outside G/2026-12-31T000000Z; mkfifo G/2026-12-30T000000Z
        mkdir -p G/2026-12-29T000000Z; mkfifo G/2026-12-29T000000Z/backup.ibi; ln -s $PWD/outside G/lost+found; state outside > before
        timeout 60 ibifs backup S G --keep 1d; timeout 60 ibifs backup --list G > listed; state outside | diff before -
        test $(wc -l < listed) = 1; ls -d G/2026-12-31T000000Z G/2026-12-30T000000Z G/2026-12-29T000000Z
        ibifs backup S D; mkdir full; echo x > full/file; ibifs init B --host archive-b.example.org; ibifs backup B BG --keep 1d"#,
    );
    for (destination, why) in [
        ("strangers", "other users can write in"),
        ("D", "is a backup without generations"),
        ("full", "is not empty and not a backup"),
        ("BG", "is the backup of another Archive"),
        ("S/G", "would be inside the store"),
        ("G/2*Z/", "not a backup"),
    ] {
        let backup = format!("ibifs backup S {destination} --keep 1d");
        if destination.contains('*') {
            let backup = "ibifs backup S $(ls -d G/2*Z | head -n 1) --keep 1d";
            env.exits(backup, 4);
            continue;
        }
        env.exits(&backup, 4);
        env.complains(&backup, why);
    }
    env.exits("ibifs backup S G", 4);
    env.complains("ibifs backup S G", "has generations; give --keep");
    env.exits("ibifs backup S X --keep 7", 2);
    env.exits("ibifs backup --list D", 4);
    env.exits("ibifs backup --list nowhere", 3);
    // What is not finished is no place for a link.
    sh(
        &env,
        "ln -s $PWD/outside G/unfinished; state outside > before",
    );
    env.exits("ibifs backup S G --keep 1d", 1);
    sh(&env, "rm G/unfinished; ln -s $PWD/outside G/removing");
    env.exits("ibifs backup S G --keep 1d", 1);
    sh(
        &env,
        "state outside | diff before -; rm G/removing; ibifs backup S G --keep 1d",
    );
}

/// Two backups at once into one directory are made one after the other.
#[test]
fn two_backups_at_once_wait_for_each_other() {
    let env = environment();
    sh(
        &env,
        "back & back; wait $!; for generation in G/2*; do ibifs fsck $generation; done; diff -r S/col $(newest)/col",
    );
}

/// Where the filesystem can share nothing, a backup says so, and copies.
#[test]
fn a_filesystem_without_links_is_told() {
    let env = environment();
    prints(
        &env,
        "rm S/col/*/*/*/*/doc/again; back > /dev/null; dated 1; sleep .05
         strace -f -qq -o log -e inject=linkat:error=EPERM ibifs backup S G --keep 9d,9m | tail -n 1
         diff -r S/col $(newest)/col; stat -c %h $(newest)/col/$(item 1)/.ibi",
        "the filesystem can share nothing among generations: each one takes the room of all files\n1",
    );
}
