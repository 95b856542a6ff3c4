//! `ibifs copy`, `ibifs transfer` and `ibifs fsck --with` between stores of one machine.

use crate::support::{Needs, TestEnv};

/// Two stores, of which `A` holds `one`, its next edition `two` and its metadata `about`; none is mounted.
fn pair() -> TestEnv {
    pair_on(TestEnv::new())
}

fn pair_on(env: TestEnv) -> TestEnv {
    env.sh("mkdir M N
         ibifs init A --host archive-a.example.org > /dev/null
         ibifs init B --host archive-b.example.net > /dev/null
         ibifs mint A | head -n 1 > one
         ibifs mint A --edition-of $(< one) | head -n 1 > two
         ibifs mint A --metadata-of $(< one) | head -n 1 > about
         cd A/col/$(< one)/doc
         echo text > file; ln file link; ln -s ../../elsewhere climbing; mkfifo pipe
         truncate -s 3M sparse; echo end >> sparse; chmod 640 file
         setfattr -n user.note -v kept file; touch -d '2001-02-03 04:05:06.789' file");
    env
}

const STATES: &str =
    "for s in A B; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done";

/// A copy is the same for rsync, whether the destination is mounted or not. Content that is there already is not
/// copied again, and a copy that lost something gets it back.
#[test]
fn a_copy_is_the_item_as_it_is() {
    for mount in ["", "ibifs mount B N; ibifs mount A M"] {
        let env = pair_on(TestEnv::with(Needs::Holes));
        let to = if mount.is_empty() { "B" } else { "N" };
        let (in_a, in_b) = if mount.is_empty() {
            ("A/col", "B/col")
        } else {
            ("M", "N")
        };
        env.sh(mount);
        let copied = env.sh(&format!("ibifs copy --store A $(< one) {to}"));
        assert!(copied.starts_with("copied: "), "{copied}");
        env.prints(
            "rsync -aHAXni --delete A/col/$(< one)/ B/col/$(< one)/; stat -c %h B/col/$(< one)/doc/file
             test $(stat -c %b B/col/$(< one)/doc/sparse) -lt 100 && echo sparse",
            "2\nsparse",
        );
        let again = env.sh(&format!("ibifs copy --store A $(< one) {to}"));
        assert!(
            again.ends_with("0 items, 0 files, 0 bytes; 1 unchanged, 0 skipped"),
            "{again}"
        );
        env.sh(&format!(
            "cd {in_b}/$(< one)/doc; rm link; echo other > more; cd ~; echo new > {in_a}/$(< one)/doc/new
             ibifs copy --store A $(< one) {to}; diff -r --no-dereference A/col/$(< one)/.ibi B/col/$(< one)/.ibi
             test -e B/col/$(< one)/doc/link -a -e B/col/$(< one)/doc/new -a ! -e B/col/$(< one)/doc/more"
        ));
        env.prints(STATES, "Original\nCopy");
        env.sh("for m in M N; do ! mountpoint -q $m || ibifs umount $m; done; ibifs fsck A; ibifs fsck B");
    }
}

/// Items are chosen by what they are, the item of the service is no such; what is not copied is reported with
/// the reason.
#[test]
fn items_are_chosen_and_skipped_with_the_reason() {
    let env = pair();
    let year = "$(cut -d / -f 3 one)";
    env.prints(
        &format!(
            "ibifs copy --store A --prefix example.org/archive-a --year {year} --json B |
             grep -c '\"outcome\":\"copied\"'"
        ),
        "3",
    );
    env.prints(
        "ibifs copy --store A --prefix example.net B",
        "0 items, 0 files, 0 bytes; 0 unchanged, 0 skipped",
    );
    env.prints(
        "ibifs copy --store A --year 1999 B",
        "0 items, 0 files, 0 bytes; 0 unchanged, 0 skipped",
    );
    env.prints(
        "ibifs copy --store A --state Original B | grep -c ^unchanged",
        "3",
    );
    env.prints(
        "ibifs copy --store A --with-metadata $(< one) B | grep -c ^unchanged",
        "2",
    );
    for bad in [
        "ibifs copy --store A B",
        "ibifs transfer --store A B",
        "ibifs copy --store A --year 2026 $(< one) B",
    ] {
        env.exits(bad, 2);
    }
    env.complains(
        "ibifs copy A/col/$(< one)",
        "name the items before the destination",
    );
    env.complains(
        "ibifs copy --store A $(< one) A",
        "source and destination are the same Archive",
    );
    let says = |script: &str, code: &str, status: i32| {
        env.exits(script, status);
        let printed = env.run(script).stdout;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        assert!(
            printed.contains(&format!(": {code}: ")),
            "{script}: {printed}"
        );
    };
    says("ibifs transfer --store B $(< one) A", "not-original", 4);
    says("ibifs copy --store B $(< one) A", "original-there", 4);
    says(
        "ibifs transfer A/col/$(grep -o 'example.org/[^ ]*' A/archive.ibi | head -n 1) B",
        "service",
        4,
    );
    env.sh("ibifs mount B N; rm -r N/$(< two); ibifs umount N");
    says("ibifs copy --store A $(< two) B", "removed-there", 4);
    says("ibifs transfer --store A $(< two) B", "removed-there", 4);
    says("ibifs copy --store B $(< two) A", "removed-here", 4);
    env.prints(
        "ibifs copy --store A --bring-back $(< two) B | head -n 1 | cut -d : -f 1",
        "copied",
    );
    env.sh("ibifs fsck A; ibifs fsck B");
}

/// A file that has rotted is not copied over its good copy, nor handed over.
#[test]
fn damage_is_not_spread() {
    let env = pair();
    env.sh(
        "ibifs copy --store A $(< one) B; touch -d '2 hours ago' A/col/$(< one)/doc/file; ibifs scrub A
         cd A/col/$(< one)/doc; touch -r file ../../time; printf rott > file.new; echo >> file.new
         cat file.new > file; rm file.new; touch -r ../../time file; rm ../../time",
    );
    for command in ["copy", "transfer"] {
        let script = format!("ibifs {command} --store A $(< one) B");
        env.exits(&script, 1);
        let printed = String::from_utf8_lossy(&env.run(&script).stdout).into_owned();
        assert!(printed.contains(": damaged: 'doc/"), "{printed}");
        env.prints("cat B/col/$(< one)/doc/file", "text");
    }
    env.prints(STATES, "Original\nCopy");
}

/// An original goes over and comes back, by stores and by mounts; what it is related to stays so, and a
/// second item follows it by its own command.
#[test]
pub fn an_original_goes_over_and_comes_back() {
    for mount in ["", "ibifs mount A M; ibifs mount B N"] {
        let env = pair();
        let (from, to) = if mount.is_empty() {
            ("A", "B")
        } else {
            ("M", "N")
        };
        env.sh(mount);
        let sidecar = env.sh("grep -v archiveservice A/col/$(< one)/.ibi");
        let printed = env.sh(&format!("ibifs transfer --store {from} $(< one) {to}"));
        assert!(printed.starts_with("handed-over: "), "{printed}");
        env.prints(STATES, "Copy\nOriginal");
        env.prints("cmp A/col/$(< one)/.ibi B/col/$(< one)/.ibi; grep -v archiveservice A/col/$(< one)/.ibi", &sidecar);
        env.prints(
            "ibifs show --store A $(< two) | sed -n 's/^editionof *//p'",
            &env.sh("cat one"),
        );
        env.exits(&format!("ibifs transfer --store {from} $(< one) {to}"), 4);
        env.sh(&format!("ibifs transfer --store {from} $(< two) {to}; ibifs transfer --store {to} $(< one) {from}"));
        env.prints(STATES, "Original\nCopy");
        env.sh("for m in M N; do ! mountpoint -q $m || ibifs umount $m; done");
        env.sh("ibifs fsck A; ibifs fsck B; ibifs reindex A; ibifs reindex B");
        env.prints(STATES, "Original\nCopy");
        env.prints("find A/handover B/handover -type f ! -name lock", "");
    }
}

/// While a hand-over is pending, nothing makes the item an original of the first Archive again; fsck names
/// it, the same command finishes it, and so does --pending.
#[test]
fn what_was_given_is_not_taken_back_by_accident() {
    for again in ["$(< one)", "--pending"] {
        let env = pair();
        env.sh(
            "ibifs copy --store A $(< one) B; cp A/col/$(< one)/.ibi before
             b=$(sed -n 's/^ibi.archiveservice //p' B/archive.ibi)
             mkdir -p A/handover/col/$(dirname $(< one))
             printf 'ibi {rep %s}\\nto %s\\nword 00\\n' $(< one) \"$b\" > A/handover/col/$(< one)
             ibifs mount A M; { grep -v archiveservice before; echo ibi.archiveservice \"$b\"; } > given
             cp given M/$(< one)/.ibi",
        );
        env.prints(STATES, "Copy\nCopy");
        // Even a copy from the other Archive, which does not know it yet.
        env.sh("cp before M/$(< one)/.ibi || true; rsync -a B/col/$(< one)/ M/$(< one)/ || true");
        env.prints(STATES, "Copy\nCopy");
        env.sh("ibifs umount M");
        env.prints(
            "{ ibifs fsck A || true; } | cut -d : -f 1",
            "handover-pending\n4 items, 1 finding",
        );
        env.prints(
            &format!("ibifs transfer --store A {again} B | cut -d : -f 1 | head -n 1"),
            "handed-over",
        );
        env.prints(STATES, "Copy\nOriginal");
        env.sh("ibifs fsck A; ibifs fsck B");
    }
}

/// A third Archive cannot have what is pending; one that has the original already ends it.
#[test]
fn what_is_pending_goes_to_one_archive() {
    let env = pair();
    env.sh(
        "ibifs init C --host archive-c.example.com > /dev/null; ibifs transfer --store A $(< one) B
         b=$(sed -n 's/^ibi.archiveservice //p' B/archive.ibi)
         printf 'ibi {rep %s}\\nto %s\\nword 00\\n' $(< one) \"$b\" > A/handover/col/$(< one)",
    );
    env.exits("ibifs transfer --store A $(< one) C", 1);
    env.prints(
        "{ ibifs transfer --store A $(< one) C || true; } | cut -d : -f 3 | head -n 1",
        " given",
    );
    // It has gone on from there meanwhile, and does not come back to be an original of B.
    env.sh("ibifs transfer --store B $(< one) C; ibifs transfer --store A $(< one) B");
    env.prints(
        "for s in A B C; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; ibifs fsck $s > /dev/null; done",
        "Copy\nCopy\nOriginal",
    );
    env.sh("printf broken > A/handover/col/$(< one)");
    env.exits("ibifs fsck A", 1);
    env.prints(
        "{ ibifs fsck A || true; } | head -n 1 | cut -d : -f 1",
        "handover-broken",
    );
}

/// A user who restores a backup may have an original twice: the check with the other Archive names it.
#[test]
fn two_originals_are_named() {
    let env = pair();
    env.sh("cp -a A before; ibifs transfer --store A $(< one) B; ibifs fsck A --with B; ibifs fsck B --with A");
    env.exits("ibifs fsck before --with B", 1);
    env.prints(
        "{ ibifs fsck before --with B || true; } | sed -n \"s|$(< one)|it|;s/:.*the Archive/: the Archive/;1p\" | cut -d ' ' -f 1-3",
        "two-originals: the Archive",
    );
    env.prints(
        "{ ibifs fsck B --with before --json || true; } | grep -c '\"two-originals\"'",
        "1",
    );
    env.sh("ibifs mount B N");
    env.exits("ibifs fsck before --with N", 1);
    env.complains(
        "ibifs fsck A --with before",
        "source and destination are the same Archive",
    );
}

/// The service of a store, as its facts have it.
const SERVICE: &str =
    "service() { sed -n 's/^ibi.archiveservice {rep \\([^ }]*\\).*/\\1/p' $1/archive.ibi; }
     holder() { sed -i \"s|^ibi.archiveservice .*|$(grep ^ibi.archiveservice $1/archive.ibi)|\" $2; }";

/// Begins the transfer of `one` from `A` to `B`, as if it were stopped before `B` got the token.
fn pending() -> TestEnv {
    let env = pair();
    env.sh(&format!(
        "{SERVICE}
         ibifs copy --store A $(< one) B; mkdir -p -m 700 {{A,B}}/handover/col/$(dirname $(< one))
         printf 'ibi {{rep %s}}\\nto {{rep %s}}\\nword 0123abcd\\n' $(< one) $(service B) > A/handover/col/$(< one)
         printf 'ibi {{rep %s}}\\nfrom {{rep %s}}\\nword 0123abcd\\n' $(< one) $(service A) > B/handover/col/$(< one)
         holder B A/col/$(< one)/.ibi; ibifs reindex A"
    ));
    env.prints(STATES, "Copy\nCopy");
    env
}

const RECORDS: &str = "find A/handover B/handover -type f ! -name lock";

/// The receiver discards its token, and then the original stays; the transfer can begin again.
#[test]
fn a_transfer_is_cancelled_with_its_receiver() {
    for (mount, from, to) in [
        ("true", "A", "B"),
        ("ibifs mount A M; ibifs mount B N", "M", "N"),
    ] {
        let env = pending();
        env.sh(mount);
        env.prints(
            "ibifs status A | sed -n 's/^sending  \\([^;]*;\\).*/\\1/p'; ibifs status A --json |
             jq -r '.[0].pending_transfers[] | .rep, .to, .cancelled' | sed \"s|$(< one)|one|\"",
            "1 original, not finished;\none\nexample.net/archive-b/2026/11.22.10.15\nfalse"
                .replace(
                    "example.net/archive-b/2026/11.22.10.15",
                    &env.sh(&format!("{SERVICE}; service B")),
                )
                .as_str(),
        );
        env.prints(
            &format!(
                "ibifs transfer --cancel --store {from} --pending {to} | sed \"s|$(< one)|one|\""
            ),
            "cancelled: one\n1 item, 0 files, 0 bytes; 0 unchanged, 0 skipped",
        );
        env.prints(STATES, "Original\nCopy");
        env.prints(RECORDS, "");
        // The token that was drawn is of no use any more, nor is there anything to cancel.
        env.exits(
            &format!("ibifs transfer --cancel --store {from} $(< one) {to}"),
            4,
        );
        env.sh(&format!("ibifs transfer --store {from} $(< one) {to}"));
        env.prints(STATES, "Copy\nOriginal");
        env.sh("for m in M N; do ! mountpoint -q $m || ibifs umount $m; done; ibifs fsck A; ibifs fsck B");
    }
}

/// A receiver that has claimed the original, or has given it on, refuses.
#[test]
fn what_was_accepted_is_not_cancelled() {
    let env = pending();
    env.sh("cp A/handover/col/$(< one) record; ibifs transfer --store A $(< one) B; cp record A/handover/col/$(< one)");
    let cancel = "ibifs transfer --cancel --store A $(< one) B";
    env.exits(cancel, 4);
    env.prints(
        &format!("{{ {cancel} || true; }} | head -n 1 | cut -d : -f 3"),
        " original-there",
    );
    env.prints(STATES, "Copy\nOriginal");
    env.sh("ibifs init C --host archive-c.example.com > /dev/null; ibifs transfer --store B $(< one) C");
    env.exits(cancel, 4);
    env.prints(
        &format!("{{ {cancel} || true; }} | head -n 1 | cut -d : -f 3"),
        " went-on",
    );
    // Another Archive than the receiver cannot answer for it.
    env.exits("ibifs transfer --cancel --store A $(< one) C", 1);
    env.prints(STATES, "Copy\nCopy");
}

/// The user declares that the receiver is gone. It is remembered, and the conflict is found when it comes back.
#[test]
fn a_receiver_that_is_gone_is_remembered() {
    for (mount, from) in [("true", "A"), ("ibifs mount A M", "M")] {
        let env = pending();
        // It had accepted the original, and the giver does not know.
        env.sh(
            "cp A/handover/col/$(< one) record; cp A/col/$(< one)/.ibi named
             ibifs transfer --store A $(< one) B; cp record A/handover/col/$(< one); mv B gone",
        );
        env.sh(mount);
        let gone = format!(
            "{SERVICE}; ibifs transfer --cancel --receiver-is-gone --store {from} $(< one)"
        );
        env.exits(
            &format!("{SERVICE}; ibifs transfer --cancel --store {from} $(< one) B"),
            3,
        );
        env.exits(&format!("{SERVICE}; ibifs transfer --receiver-is-gone --store {from} $(< one) $(service gone)"), 2);
        env.exits(&format!("{gone} B"), 2);
        env.exits(&format!("{gone} $(service A)"), 4);
        env.exits(&format!("{gone} $(< two)"), 1);
        env.prints(
            "ibifs show --store A $(< one) | sed -n 's/^state *//p'",
            "Copy",
        );
        env.complains(
            &format!("{gone} $(service gone); false"),
            "may hold 1 of these originals",
        );
        env.prints(
            "ibifs show --store A $(< one) | sed -n 's/^state *//p'",
            "Original",
        );
        env.exits(&format!("{gone} $(service gone)"), 4);
        // No error, but it is not forgotten, whatever becomes of the item.
        env.prints(
            "ibifs fsck A | cut -d : -f 1",
            "handover-cancelled\n4 items, 1 finding",
        );
        env.sh("mv gone B");
        for command in ["ibifs transfer --cancel", "ibifs transfer"] {
            let command = format!("{command} --store {from} $(< one) B");
            env.exits(&command, 1);
            env.prints(
                &format!("{{ {command} || true; }} | head -n 1 | cut -d : -f 3"),
                " two-originals",
            );
        }
        env.exits("ibifs fsck A --with B", 1);
        // The user decides; then it is settled.
        env.sh(&format!("{SERVICE}; holder A B/col/$(< one)/.ibi; ibifs reindex B
             ibifs transfer --cancel --store {from} $(< one) B; ! mountpoint -q M || ibifs umount M"));
        env.prints(STATES, "Original\nCopy");
        env.prints(RECORDS, "");
        env.sh("ibifs fsck A --with B; ibifs fsck B --with A");
    }
}

/// As long as the giver claims the original, the token was never sent: no Archive has to be declared gone.
#[test]
fn a_transfer_that_had_only_begun_is_cancelled_without_a_trace() {
    let env = pending();
    env.sh(&format!(
        "{SERVICE}; holder A A/col/$(< one)/.ibi; ibifs reindex A
         ibifs transfer --cancel --receiver-is-gone --store A $(< one) $(service B) 2> said; ! test -s said"
    ));
    env.prints(STATES, "Original\nCopy");
    env.prints("find A/handover -type f ! -name lock", "");
    env.sh("ibifs fsck A");
}

/// A user without rights in the store cancels nothing.
#[test]
fn a_transfer_is_not_cancelled_by_others() {
    let env = pending();
    env.sh("chmod 755 .; chmod -R a+rX A B; ibifs mount A M");
    let cancel = format!(
        "{SERVICE}; b=$(service B); setpriv --reuid 1000 --regid 1000 --clear-groups \
         ibifs transfer --cancel --receiver-is-gone --store M $(< one) $b"
    );
    assert_ne!(env.run(&cancel).status.code(), Some(0));
    env.sh("ibifs umount M");
    env.prints(STATES, "Copy\nCopy");
}
