//! Files of the store's own are damaged, while it is mounted and while it is not.

use super::fixture::Fixture;

/// The kinds of damage to the index, with a name: each in the shell, in the store.
const OF_THE_INDEX: &[(&str, &str)] = &[
    ("emptied", ": > relations.sqlite3"),
    ("cut short", "truncate -s 6000 relations.sqlite3"),
    (
        "text",
        "echo 'this is text' > text; mv text relations.sqlite3",
    ),
    (
        "a directory",
        "mv relations.sqlite3 ../aside; mkdir relations.sqlite3",
    ),
    ("deleted", "rm relations.sqlite3"),
    ("header flipped", "flip relations.sqlite3 3"),
    (
        "schema flipped",
        "flip relations.sqlite3 $(seq 100 40 4000)",
    ),
    (
        "rows flipped",
        "flip relations.sqlite3 $(seq 4096 97 60000)",
    ),
    ("log deleted", "rm -f relations.sqlite3-wal"),
    (
        "log flipped",
        "test ! -e relations.sqlite3-wal || flip relations.sqlite3-wal $(seq 0 501 9000)",
    ),
    (
        "all deleted",
        "rm -f relations.sqlite3 relations.sqlite3-wal relations.sqlite3-shm",
    ),
];

const FLIP: &str = r#"
flip() {
    python3 -c 'import sys
file = open(sys.argv[1], "r+b")
for at in map(int, sys.argv[2:]):
    file.seek(at); byte = file.read(1)
    if byte: file.seek(at); file.write(bytes([byte[0] ^ 0x5A]))' "$@"
}
"#;

/// A script that damages something while the store is mounted or while it is not, and prints what
/// becomes of it, a line each.
fn tale(mounted: bool, damage: &str, after: &str) -> String {
    format!(
        "set +e; exec 2>&1; {FLIP}
         label() {{ if mkdir M/.mint/$1; then rep M/.mint/$1 >> reps; echo >> reps; echo mints; fi; }}
         mounted() {{ ibifs mount S M && {{ echo mounts; daemon S > pid; }}; }}
         if {mounted}; then mounted; label a; echo 'damaged now'; fi
         (cd S; {damage})
         if ! {mounted}; then mounted; fi
         if mountpoint -q M; then
             cat M/$(< one)/doc/file M/$(< two)/.ibi > /dev/null && echo reads
             label b
             timeout 60 setfattr -n user.ibi.metadata -v $(< two) M/$(< three) && echo relates
             timeout 60 stat M/$(< three) > /dev/null && echo stats
             kill -0 $(< pid) && echo alive
             ibifs umount M && echo unmounts
         fi
         {after}"
    )
}

/// After all damage of the index: it is named with the remedy, the remedy works, nothing is lost and
/// no name is handed out twice.
const MENDED: &str = "
    ibifs fsck S > found 2>&1 || { cat found; grep -q 'reindex\\|--repair' found && echo 'named with the remedy'; }
    ibifs reindex S > /dev/null 2>&1 && echo reindexed
    ibifs fsck S > /dev/null && echo clean
    ibifs ls S > list
    for rep in $(cat reps); do grep -q \"$rep \" list || echo \"lost $rep\"; done
    ibifs mint S | head -n 1 > new && grep -qxFf new reps && echo 'handed out twice'";

/// After any damage to the index the daemon continues and reads what it knows, and the check names the remedy, which
/// brings everything back.
#[test]
fn a_damaged_index_is_named_and_rebuilt() {
    for mounted in [false, true] {
        for (what, damage) in OF_THE_INDEX {
            let fixture = Fixture::new("");
            let output = fixture.environment().run(&tale(mounted, damage, MENDED));
            let printed = String::from_utf8_lossy(&output.stdout);
            let complain = |why: &str| panic!("index {what}, mounted {mounted}: {why}\n{printed}");
            let says = |line: &str| printed.lines().any(|printed| printed == line);
            for line in ["reindexed", "clean"] {
                if !says(line) {
                    complain(line);
                }
            }
            if printed.contains("lost ") || says("handed out twice") {
                complain("not all is there");
            }
            if mounted || says("mounts") {
                for line in ["reads", "stats", "alive", "unmounts"] {
                    if !says(line) {
                        complain(line);
                    }
                }
            }
            let is_clean = !fixture.environment().root().join("found").exists()
                || std::fs::read_to_string(fixture.environment().root().join("found"))
                    .is_ok_and(|found| found.contains(" 0 findings"));
            if !is_clean && !says("named with the remedy") {
                complain("not named");
            }
        }
    }
}

/// The kinds of damage to a file or directory of the store, with a name.
const OF_A_FILE: &[(&str, &str)] = &[
    ("emptied", ": > FILE"),
    ("cut short", "truncate -s 20 FILE"),
    ("flipped", "flip FILE $(seq 1 9 200)"),
    ("text", "echo 'this is text' > FILE"),
    ("a directory", "rm FILE; mkdir FILE"),
    ("a link", "rm FILE; ln -s /etc/passwd FILE"),
    ("a device", "rm FILE; mknod FILE c 1 5"),
    ("a FIFO", "rm FILE; mkfifo FILE"),
    ("deleted", "rm FILE"),
];

/// After any damage to a sidecar its item and all others are there, no process waits for it or follows it, the check
/// names it, and its repair gives back what was accepted, every byte kept.
#[test]
fn a_damaged_sidecar_is_named_and_repaired() {
    let after = "
        timeout 60 ibifs fsck S > found; grep -q \"^broken-sidecar: .*$(< three)\" found && echo named
        timeout 60 ibifs reindex S > /dev/null 2>&1 && echo reindexed
        ibifs fsck --repair S > /dev/null; ibifs fsck S > /dev/null && echo clean
        ibifs ls S | grep \"$(< three) \"
        cmp before/col/$(< three)/.ibi S/col/$(< three)/.ibi && echo 'as before'
        ls -A S/col/$(< three) | grep broken";
    for mounted in [false, true] {
        for (what, damage) in OF_A_FILE {
            let fixture = Fixture::new("");
            let damage = damage.replace("FILE", "col/$(< ../three)/.ibi");
            let output = fixture.environment().run(&tale(mounted, &damage, after));
            let printed = String::from_utf8_lossy(&output.stdout);
            let is_kept = *what != "deleted";
            let mut expected = vec![
                "reads",
                "mints",
                "stats",
                "alive",
                "unmounts",
                "reindexed",
                "clean",
            ];
            if is_kept {
                expected.extend(["named", ".ibi.broken-1", "as before"]);
            } else {
                // Written again by the relation declared meanwhile.
                expected.push("relates");
            }
            for line in expected {
                assert!(
                    printed.lines().any(|printed| printed == line),
                    "sidecar {what}, mounted {mounted}: {line}?\n{printed}"
                );
            }
            assert_eq!(
                is_kept,
                !printed.contains("relates"),
                "sidecar {what}\n{printed}"
            );
            assert!(printed.contains("Original"), "sidecar {what}\n{printed}");
        }
    }
}

/// The store's own files and directories, and how each is damaged.
const OWN: &[&str] = &[
    "archive.ibi",
    "lock",
    "ledger",
    "staging",
    "reserve",
    "deleted",
];

/// After any damage to the store's own files nothing is lost: the store continues, or one sentence names the damage
/// and a remedy.
#[test]
fn own_files_are_made_again_or_named() {
    let damages = [
        ("missing", "rm -rf FILE"),
        ("empty", "rm -rf FILE; : > FILE"),
        ("text", "rm -rf FILE; echo 'this is text' > FILE"),
        ("a directory", "rm -rf FILE; mkdir FILE"),
    ];
    for mounted in [false, true] {
        for file in OWN {
            for (what, damage) in damages {
                let fixture = Fixture::new("");
                let damage = damage.replace("FILE", file);
                let after = "ibifs fsck S && echo clean; ibifs fsck --repair S; ibifs ls S > list
                     for rep in $(cat reps); do grep -q \"$rep \" list || echo \"lost $rep\"; done
                     ibifs mint S | head -n 1 > new && grep -qxFf new reps && echo 'handed out twice'";
                let output = fixture.environment().run(&tale(mounted, &damage, after));
                let printed = String::from_utf8_lossy(&output.stdout);
                let says = |line: &str| printed.lines().any(|printed| printed == line);
                let context = format!("{file} {what}, mounted {mounted}\n{printed}");
                assert!(!says("handed out twice"), "{context}");
                if mounted || says("mounts") {
                    // Changes are prepared in `staging`, which only the next start makes again.
                    let takes_changes = *file != "staging" || !mounted;
                    for line in ["reads", "mints", "relates", "alive", "unmounts"] {
                        let is_change = ["mints", "relates"].contains(&line);
                        assert!(
                            says(line) || is_change && !takes_changes,
                            "{line}? {context}"
                        );
                    }
                }
                let refused = match (*file, what) {
                    ("archive.ibi", _) => "archive.ibi",
                    ("lock", "a directory") => "is not a file of this store alone; remove it",
                    // The tombstone of a removed item is gone: the check says so and writes it again.
                    ("deleted", _) => "missing-tombstone",
                    _ => "",
                };
                match refused {
                    "" => {
                        // Without the lock it is not known when a daemon has ended.
                        let is_known = *file != "lock" || !mounted;
                        let is_mended = says("clean") || printed.contains(" 1 repaired");
                        assert!(is_mended || !is_known, "{context}");
                        assert!(!printed.contains("lost "), "{context}");
                    }
                    refused => assert!(printed.contains(refused), "{context}"),
                }
                if *file == "deleted" || *file == "archive.ibi" {
                    assert!(!printed.contains("lost "), "{context}");
                }
            }
        }
    }
}
