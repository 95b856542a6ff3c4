//! `ibifs restore --from` and `ibifs backup --drill`: what a backup has can be had again, and that is tried.

use crate::support::TestEnv;

const TOOLS: &str = r#"
item() { sed -n $1p reps; }
# Owner, mode, times, targets and digests of a directory and of all that is in it.
state() { (cd $1; find . ! -type d -printf '%p %y %s %m %U %G %n %T@ %l\n' | sort; find . -type d -printf '%p %m %U %G %T@\n' | sort
          find . -type f -exec sha256sum {} + | sort; getfattr -R -d . | sort); }
"#;

fn script(script: &str) -> String {
    format!("{TOOLS}\n{script}")
}

/// A mounted store A with three items in `reps`, the first with all kinds of files and a relation, and its generations in G.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"for count in 1 2 3; do
            mkdir -p A/.mint/x$count/doc; realpath --relative-to A A/.mint/.x$count >> reps; echo $count > A/$(item $count)/doc/file
        done
        ibifs relate A/$(item 1) --metadata A/$(item 2); cd A/$(item 1)/doc; ln file again; ln -s file link; mkdir sub; chmod 2750 sub
        echo x > sub/set; chown 12:34 sub/set; chmod 4711 sub/set; setfattr -n user.colour -v blue file; touch -d '1 hour ago' sub/set; touch -d '2001-02-03 04:05:06.7' file sub
        cd - > /dev/null; ibifs scrub A > /dev/null; ibifs backup A G --keep 9d,9m; cp -a A.store/col/$(item 1) was; state was > before"#,
    ));
    env
}

/// An item that was removed comes back as it was, in a mounted store and in one that is not, with its state, its relations and all
/// metadata.
#[test]
fn a_removed_item_is_put_back_as_it_was() {
    let env = environment();
    for (remove, restore) in [
        ("rm -r A/$(item 1)", "ibifs restore A/$(item 1) --from G"),
        (
            "rm -r A/$(item 1)",
            "ibifs restore $(item 1) --from G@2 --store A",
        ),
        (
            "rm -r A/$(item 1); ibifs umount A",
            "ibifs restore $(item 1) --from $(ls -d G/2* | tail -n 1) --store A.store; ibifs fsck A.store; ibifs mount A.store A",
        ),
    ] {
        env.sh(&script(remove));
        env.prints(
            &script("ibifs show --store A.store $(item 1) | grep ^state"),
            "state            Deleted",
        );
        env.sh(&script(&format!(
            "{restore}; state A.store/col/$(item 1) | diff before -; ls A/$(item 1)/doc > /dev/null; ibifs fsck A.store"
        )));
        env.prints(
            &script("ibifs show --store A.store $(item 1) | grep -e ^state -e ^metadata | wc -l"),
            "2",
        );
    }
    // Lost, and not removed.
    env.sh(&script(
        "ibifs umount A; rm -r A.store/col/$(item 1); ibifs restore $(item 1) --from G --store A.store
         state A.store/col/$(item 1) | diff before -; ibifs fsck A.store; ibifs mount A.store A",
    ));
    // Removed in the newest generation, it is in the one before.
    env.sh(&script(
        "rm -r A/$(item 1); mv G/2* G/2026-01-01T000000Z; ibifs backup A G --keep 9d,9m",
    ));
    env.exits(&script("ibifs restore $(item 1) --from G --store A"), 3);
    env.exits(
        &script("ibifs restore $(item 1) --from G@2025 --store A"),
        4,
    );
    env.sh(&script(
        "ibifs restore $(item 1) --from G@2026-01-01 --store A; state A.store/col/$(item 1) | diff before -",
    ));
}

/// Nothing that is there is overwritten: an item, a directory, another Archive.
#[test]
fn nothing_is_overwritten_by_a_restore() {
    let env = environment();
    env.sh(&script(
        "echo new > A/$(item 1)/doc/file; mkdir there; ibifs init B --host archive-b.example.org",
    ));
    for (restore, why) in [
        ("ibifs restore A/$(item 1) --from G", "is here already"),
        (
            "ibifs restore $(item 1) --from G --to there",
            "'there' exists; name a new directory",
        ),
        (
            "ibifs restore $(item 1) --from G --store B",
            "which is another one",
        ),
        (
            "ibifs restore $(item 1) --from there",
            "is no finished backup",
        ),
        (
            "chmod 755 .; chmod 700 G; setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent ibifs backup --drill G",
            "may not be read: permission denied",
        ),
    ] {
        env.complains(&script(restore), why);
    }
    env.prints(&script("cat A/$(item 1)/doc/file; ls -A there"), "new");
    // To a directory it is written all the same, as it was.
    env.sh(&script(
        "ibifs restore $(item 1) --from G --to old; state old | diff before -; ibifs restore A/$(item 1) --from G --to older; state older | diff before -",
    ));
}

/// A restore that was stopped at any step is ended by the same command; a damaged file is not put back.
#[test]
fn a_restore_may_stop_at_every_step() {
    let env = environment();
    env.sh(&script(
        "rm -r A/$(item 1); ibifs umount A; cp -a A.store S0",
    ));
    for (fault, call) in [
        ("signal=KILL", "renameat"),
        ("signal=KILL", "openat"),
        ("signal=KILL", "mkdirat"),
        ("signal=KILL", "fsync"),
        ("signal=KILL", "syncfs"),
        ("error=ENOSPC", "openat"),
        ("error=ENOSPC", "mkdirat"),
        ("error=EIO", "fsync"),
    ] {
        // The 34th file that is opened is the new sidecar, where no other libraries are looked for.
        for step in [1, 2, 3, 5, 8, 13, 21, 34, 55, 89] {
            let over = env.sh(&script(&format!(
                "rm -rf A.store; cp -a S0 A.store; unset LD_LIBRARY_PATH
                 strace -f -qq -o log -e trace={call} -e inject={call}:{fault}:when={step} \
                     ibifs restore $(item 1) --from G --store A.store > printed 2> complained || true
                 state A.store/col/$(item 1) 2> /dev/null | cmp -s before - || ibifs restore $(item 1) --from G --store A.store
                 state A.store/col/$(item 1) | diff before -; ibifs fsck A.store > /dev/null; grep -q INJECTED log || echo over"
            )));
            if over.contains("over") {
                break;
            }
        }
    }
    env.sh(&script(
        "rm -rf A.store; cp -a S0 A.store; file=$(ls G/2*/col/$(item 1)/doc/file); touch -r $file time; printf Y | dd of=$file conv=notrunc; touch -r time $file",
    ));
    env.complains(
        &script("ibifs restore $(item 1) --from G --store A.store"),
        "is damaged, or was changed in the backup",
    );
    env.sh(&script("no ls A.store/col/$(item 1)"));
}

/// What is marked as damaged in a store is reported by a backup, and marked there, unless the backup has a good copy; when it is
/// mended, the mark goes.
#[test]
fn a_backup_marks_what_is_damaged_in_the_store() {
    let env = TestEnv::new();
    env.prints(
        r#"ibifs init S --host archive-s.example.org > said; item=$(ibifs mint S | head -n 1); doc=col/$item/doc; echo 1 > S/$doc/bad; touch -d '1 hour ago' S/$doc/*
        ibifs scrub S > said; ibifs backup S good > said; flip() { touch -r S/$doc/bad time; printf $1 | dd of=S/$doc/bad conv=notrunc status=none; touch -r time S/$doc/bad; }
        ibifs backup S H --keep 1d > said; flip X; (no ibifs scrub S) > said
        backup() { ibifs backup S "$@" > said; grep '^unsound' said | grep -o damaged-files || true; }
        backup new; backup G --keep 1d; backup good; backup H --keep 9d; cat good/$doc/bad H/*/$doc/bad
        for it in new G good H; do { ibifs fsck $it || true; } | tail -n 1 | grep -o '[0-9]* finding.*'; done
        # What is written in its place is copied.
        echo 2 > S/$doc/bad; backup good; cat good/$doc/bad
        echo 1 > S/$doc/bad; touch -r time S/$doc/bad; ibifs scrub S > said; backup new; backup G --keep 1d; ibifs fsck new | tail -n 1"#,
        "damaged-files\ndamaged-files\n1\n1\n1 finding\n1 finding\n0 findings\n0 findings\n2\n2 items, 0 findings",
    );
}

/// A drill finds what was lost, written or altered in a backup after that was finished, and not what was removed or written in the
/// store before.
#[test]
fn a_drill_finds_what_a_backup_has_lost() {
    let env = TestEnv::new();
    env.sh(&script(
        "ibifs init S --host archive-s.example.org
         for count in 1 2 3 4; do
             ibifs mint S | head -n 1 >> reps; echo $count | tee S/col/$(item $count)/doc/{one,two} > /dev/null
             touch -d '1 hour ago' S/col/$(item $count)/doc/*
         done
         ibifs scrub S; rm S/col/$(item 1)/doc/one; echo more >> S/col/$(item 1)/doc/two; ibifs backup S D; ibifs backup S G --keep 1d; sleep .1
         for backup in D G; do ibifs backup --drill $backup; done",
    ));
    env.prints(
        &script(
            r#"lose() { rm -r $1/col/$(item 2)/doc/one $1/col/$(item 3); sed -i '/two/s/^......../01234567/' $1/fixity/col/$(item 2)/manifest-sha256.txt
                     echo encrypted > $1/col/$(item 4)/doc/one; echo new > $1/col/$(item 4)/doc/new; }
             lose D; lose $(echo G/2*)
             for backup in D G; do { ibifs backup --drill $backup || true; } | sed "s;$(item 2)\([:/]\);2\1;; s;$(item 3)\([:/]\);3\1;; s;$(item 4)\([:/]\);4\1;" | cut -d: -f1,2 | grep ': col' | sort; done"#,
        ),
        "damaged: col/2/doc/two
damaged: col/4/doc/new
damaged: col/4/doc/one
not-restored: col/2/doc/one
not-restored: col/3
"
            .repeat(2)
            .trim_end(),
    );
}

/// What was changed, replaced or removed in a backup after it was made is not put back, nor written elsewhere. What was changed in
/// the store before, since the last scrub, is.
#[test]
fn what_was_changed_in_a_backup_is_not_restored() {
    let env = environment();
    env.prints(
        &script(
            r#"sleep 1.1; echo newer > A/$(item 2)/doc/file; rm A/$(item 3)/doc/file; ln -s ../.. A/$(item 3)/doc/file; mv A/$(item 1)/doc/sub/set A/$(item 3)/doc/set; ibifs backup A G --keep 1d > /dev/null
            for count in 2 3; do rm -r A/$(item $count); ibifs restore $(item $count) --from G --store A > /dev/null; done; cat A/$(item 2)/doc/file; ls A/$(item 3)/doc
            rm -r A/$(item 1); ibifs umount A; mv G G0; there=$(basename G0/2*); sleep .05
            for harm in 'rm $f' 'echo overwritten > $f' 'rm $f; ln -s /etc/passwd $f' 'ln -f $b/archive.ibi $f' 'echo overwritten > $f; rm -r $b/fixity/col/*'; do
                rm -rf G; cp -a G0 G; b=G/$there; f=$b/col/$(item 1)/doc/file; eval "$harm"
                for to in "--store A.store" "--store A.store --to new"; do { ibifs restore $(item 1) --from G $to 2>&1 || true; } | grep -o -e "is damaged, or was changed" -e "not those that were recorded here" || echo "$harm"; no ls A.store/col/$(item 1); no ls new; done
            done | uniq -c | sed 's/^ *//'
            rm -rf G; cp -a G0 G; rm -r G/$there/fixity/col/* G/$there/col/$(item 1)/doc/file
            { ibifs restore $(item 1) --from G --store A.store 2>&1 || true; } | grep -o 'not those that were recorded here'; no ls A.store/col/$(item 1); ibifs restore $(item 1) --from G0 --to new > /dev/null; cat new/doc/file"#,
        ),
        "newer\nfile\nset\n8 is damaged, or was changed\n1 not those that were recorded here\n1 is damaged, or was changed\nnot those that were recorded here\n1",
    );
}

/// A drill without findings proves a backup only if it was of all of the newest generation, with a digest of each file; one with
/// findings counts, also of a sample.
#[test]
fn a_drill_of_a_part_proves_nothing() {
    let env = TestEnv::new();
    env.prints(
        r#"ibifs init S --host archive-s.example.org > said; file=col/$(ibifs mint S | head -n 1)/doc/file; echo one > S/$file; touch -d '1 hour ago' S/$file
        try() { { ibifs backup --drill "$@" --store S || true; } | sed -n 's/.* it does not count: //p'; grep -o 'outcome [a-z]*' S/backups.ibi || true; }
        flip() { touch -r $1/$file time; printf $2 | dd of=$1/$file conv=notrunc status=none; touch -r time $1/$file; }
        ibifs backup S G --keep 9d > said; try G; mv G/2* G/2020-01-01T000000Z; ibifs scrub S > said
        ibifs backup S G --keep 9d > said; try G --sample 9; try G@2020; try G
        for store in '--store S' '--store S --sample 1' ''; do ibifs backup --drill G $store --json | jq .counts; done
        new=$(ls -d G/2* | tail -n 1); flip $new X; try $new --sample 9; try G --sample 0; try G@2020
        flip G/2020* o; flip $new o; (cd $new; ibifs backup --drill . --store ../../S > /dev/null); grep -o 'outcome [a-z]*' S/backups.ibi"#,
        "1 file has no recorded digest; run 'ibifs scrub' and back up again\n\
         a sample does not prove the rest\nit is not the newest generation\noutcome good\ntrue\nfalse\nnull\n\
         outcome bad\na sample does not prove the rest\noutcome bad\nit is not the newest generation\noutcome bad\noutcome good",
    );
}

/// A drill compares every file, finds one that was changed on the disk, and leaves nothing behind.
#[test]
fn a_drill_finds_a_planted_fault() {
    let env = environment();
    env.prints(
        &script(
            "mkdir T; export TMPDIR=$PWD/T; ibifs backup --drill G | sed 's/.*: //; s/; [0-9.]* s$//'; ls T
             ibifs backup --drill G@2 --sample 1 --json | jq -c '[.items, .compared, .found]'; ls T
             ibifs backup A D > /dev/null; ibifs backup --drill D | grep -o '[0-9]* findings'",
        ),
        "4 items restored; compared 4 items, 5 files, 5 with a recorded digest; 0 findings\n[1,1,0]\n0 findings",
    );
    env.sh(&script(
        "find G D -type f | xargs sha256sum > sums; file=$(ls G/2*/col/$(item 1)/doc/sub/set); touch -r $file time
         printf Y | dd of=$file conv=notrunc; touch -r time $file",
    ));
    env.exits("TMPDIR=$PWD/T ibifs backup --drill G > printed", 1);
    env.prints(
        &script("sed -n 's/: .*doc/ doc/p' printed; ls T; no sha256sum -c --quiet sums | grep -c FAILED"),
        "damaged doc/sub/set: does not have the digest that is recorded in the backup, or was written there later\n1",
    );
    // The store is told, if it is its own.
    env.sh(
        r#"ibifs init H --host archive-h.example.org; echo 'history yes' >> H/archive.ibi; item=$(ibifs mint H | grep example.org)
         file=col/$item/doc/file; echo whole > H/$file; touch -d '1 hour ago' H/$file; ibifs scrub H > said; ibifs backup H HG --keep 1d
         ibifs backup --drill HG --store H; grep -q 'outcome good' H/backups.ibi
         file=$(echo HG/2*/$file); touch -r $file time; echo other > $file; touch -r time $file; no ibifs backup --drill HG --store H > said
         ibifs history H --json | jq -r 'select(.event == "drilled") | .outcome' | paste -sd, | diff - <(echo success,failure)"#,
    );
    env.exits("ibifs backup --drill HG --store A", 4);
    // One that is not finished, and a scratch directory that is not there.
    env.sh("sed -i /finished/d D/backup.ibi");
    env.exits("ibifs backup --drill D", 4);
    env.exits("TMPDIR=/nowhere ibifs backup --drill G", 1);
}
