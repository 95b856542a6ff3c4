//! `ibifs claim`: a copy whose original was removed becomes the original, once.

use std::io::{BufRead, BufReader};

use crate::support::TestEnv;

/// Two stores, mounted at `M` and `N`: `A` holds the original `one`.
fn pair() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir M N
         ibifs init A --host archive-a.example.org > /dev/null
         ibifs init B --host archive-b.example.net > /dev/null
         ibifs mint A | head -n 1 > one; echo text > A/col/$(< one)/doc/file
         ibifs mount A M; ibifs mount B N; mkdir -p N/$(dirname $(< one))");
    env
}

const STATES: &str =
    "for s in A B; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done";

const CHECK: &str =
    "ibifs umount M; ibifs umount N; ibifs fsck A | tail -n 1; ibifs fsck B | tail -n 1";

const CLEAN: &str = "1 item, 0 findings\n2 items, 0 findings";

/// An item that was moved between two mounts is an original again by one command.
#[test]
fn an_item_that_was_moved_is_put_right() {
    let env = pair();
    env.sh("mv M/$(< one) N/$(dirname $(< one))/; grep -q text N/$(< one)/doc/file");
    env.prints(STATES, "Deleted\nCopy");
    env.exits("ibifs fsck B --with A > messages", 1);
    env.sh("grep -q 'original-removed.*archive-a' messages; grep -q 'ibifs claim' messages");
    // The Archive that removed it names it as well.
    env.exits("ibifs fsck A --with B > messages", 1);
    env.sh("grep -q 'original-removed.*removed here.*archive-b.*ibifs claim' messages");
    env.sh("ibifs claim N/$(< one) --from M | grep -q ^claimed:");
    env.prints("ibifs fsck A --with B | tail -n 1", "1 item, 0 findings");
    env.prints(STATES, "Deleted\nOriginal");
    env.prints("ibifs fsck B --with A | tail -n 1", "2 items, 0 findings");
    env.exits("ibifs claim N/$(< one) --from M", 4);
    env.prints(CHECK, CLEAN);
    // The record of the removal names who has it now, in the index as well.
    env.sh(
        "service=$(sed -n 's/^ibi.archiveservice //p' B/archive.ibi); ibifs reindex A
         grep -qF \"ibi.archiveservice $service\" A/deleted/col/$(< one)
         ibifs fsck A",
    );
}

/// A mirror of a root keeps the service of the other Archive, and is silent about it with the filter of ibifs-tree(7).
#[test]
fn a_mirror_of_a_root_says_nothing_twice() {
    let env = pair();
    let mirror = "rsync -aHAXi --delete -f 'P /example.net/***' M/ N/ 2>&1";
    env.sh(mirror);
    env.prints(mirror, "");
    env.prints(STATES, "Original\nCopy");
    env.sh("ibifs show N/$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' B/archive.ibi) | grep -q 'state *Original'");
    // Without it rsync complains, and the service stays all the same.
    env.sh(
        "rsync -aHAXi --delete M/ N/ > said 2>&1; grep -q 'cannot delete non-empty directory' said",
    );
    env.sh("ibifs show N/$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\) .*/\\1/p' B/archive.ibi) | grep -q 'state *Original'");
}

/// An item that is put back where it was removed, even as the original it was, is a copy there.
#[test]
fn nothing_makes_it_an_original_where_it_was_removed() {
    for is_mounted in [true, false] {
        let env = pair();
        env.sh("cp -a M/$(< one) old; mv M/$(< one) N/$(dirname $(< one))/");
        let (to, from) = if is_mounted {
            ("N/$(< one)", "M")
        } else {
            ("--store B $(< one)", "A")
        };
        if !is_mounted {
            env.sh("ibifs umount M; ibifs umount N");
        }
        env.sh(&format!("ibifs claim {to} --from {from}"));
        if !is_mounted {
            env.sh("ibifs mount A M; ibifs mount B N");
        }
        env.sh("cp -a old M/$(< one)");
        env.prints(STATES, "Copy\nOriginal");
        env.sh("rm -r M/$(< one); cp -a N/$(< one) M/$(< one); no cp old/.ibi M/$(< one)/.ibi; cmp old/.ibi M/$(< one)/.ibi.broken-1; rm M/$(< one)/.ibi.broken-1");
        env.prints(STATES, "Copy\nOriginal");
        // It comes back by a transfer, and is the original there.
        env.sh("rm M/$(< one)/.ibi; ibifs transfer N/$(< one) M");
        env.prints(STATES, "Original\nCopy");
    }
}

#[test]
fn what_is_no_copy_without_an_original_is_refused() {
    let env = pair();
    env.sh(
        "ibifs init C --host archive-c.example.com > /dev/null; ibifs mint A | head -n 1 > two
         ibifs copy --store A $(< one) B > /dev/null",
    );
    let refused = |command: &str, why: &str| {
        env.exits(command, 4);
        env.sh(&format!(
            "{command} > messages || true; grep -qF '{why}' messages"
        ));
    };
    refused(
        "ibifs claim --store B $(< one) --from A",
        "still holds the original",
    );
    refused(
        "ibifs claim --store A $(< one) --from B",
        "held here already",
    );
    refused(
        "ibifs claim --store B $(< one) --from C",
        "claim it from that one",
    );
    env.complains("ibifs claim --store B $(< two) --from A", "is held here");
    env.complains(
        "ibifs claim --store B $(< one) --from B",
        "are the same Archive",
    );
    env.sh("ibifs umount M; ibifs copy --store A $(< one) C > /dev/null
         service=$(sed -n 's/^ibi.archiveservice //p' C/archive.ibi)
         ibifs transfer --store A $(< one) C > /dev/null");
    refused(
        "ibifs claim --store B $(< one) --from A",
        "holds a copy of it",
    );
    env.sh(
        "ibifs mint C | head -n 1 > three; ibifs copy --store C $(< three) B > /dev/null
         cp -a C C.before; ibifs mount C M; rm -r M/$(< three); ibifs umount M",
    );
    refused(
        "ibifs claim --store B $(< three) --from A",
        "claim it from that one",
    );
    env.sh("ibifs claim --store B $(< three) --from C; ibifs fsck B --with C");
    // A record of nothing.
    env.sh(
        "ibifs mint A | head -n 1 > four; ibifs copy --store A $(< four) B > /dev/null
         ibifs mount A M; rm -r M/$(< four); ibifs umount M
         rm -r A/deleted/col/$(< four); lose_index A; ibifs reindex A",
    );
    refused(
        "ibifs claim --store B $(< four) --from A",
        "does not know it",
    );
}

/// Of two Archives that claim it at once one gets it.
#[test]
fn it_is_claimed_once() {
    let env = pair();
    env.sh("ibifs init C --host archive-c.example.com > /dev/null
         ibifs copy --store A $(< one) B > /dev/null; ibifs copy --store A $(< one) C > /dev/null
         rm -r M/$(< one)");
    let states =
        "for s in B C; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done | sort";
    env.sh("for again in 1 2 3 4 5; do for s in B C; do
                 ibifs claim --store $s $(< one) --from A > messages.$s 2>&1 &
             done; wait; done");
    env.prints(states, "Copy\nOriginal");
    env.sh("ibifs claim --store B $(< one) --from A > messages || true
         ibifs claim --store C $(< one) --from A >> messages || true
         grep -q 'was transferred on to the Archive' messages; grep -q 'held here already' messages");
    env.prints(states, "Copy\nOriginal");
}

/// Over HTTP the service says that it was removed.
#[test]
fn a_service_proves_the_removal() {
    let env = pair();
    let mut server = env
        .command("exec ibifs serve A --listen 127.0.0.1:0")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut line = String::new();
    let printed = server.stdout.take().expect("its output");
    BufReader::new(printed)
        .read_line(&mut line)
        .expect("a line");
    let url = line.trim_end().rsplit(' ').next().unwrap_or_default();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        env.sh(&format!(
            "ibifs copy --store A $(< one) B > /dev/null
             echo {url}$(sed -n 's/^ibi.archiveservice.* ibip \\([^}}]*\\)}}/\\1/p' A/archive.ibi) > url"
        ));
        env.exits("ibifs claim --store B $(< one) --from $(< url)", 4);
        env.sh(
            "rm -r M/$(< one); ibifs status A > messages; grep -q '^removed.*original' messages; cat messages",
        );
        env.exits("ibifs fsck B --with $(< url) > messages", 1);
        env.sh("grep -q original-removed messages
             ibifs claim --json --store B $(< one) --from $(< url) 2> note > messages
             grep -q '\"noted_there\":false' messages; grep -q 'has recorded nothing' note");
        env.prints(STATES, "Deleted\nOriginal");
    }));
    let _ = server.kill();
    let _ = server.wait();
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}
