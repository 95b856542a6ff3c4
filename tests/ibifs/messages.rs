//! Messages of the commands: which store they mean, what they have changed, and where to look next.

use crate::http::served::Served;
use crate::support::TestEnv;

/// With several mounts, an identifier is looked up in the one in which the command runs.
#[test]
fn the_working_directory_names_the_store() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mint A tides > tides; echo 'title: Tides' > \"A/$(< tides):\"; ibifs upn B SAILOR example.org/sea");
    env.prints(
        "cd A/$(< tides); ibifs show $(< ../../../../../tides) | grep ^title; ibifs find tides | wc -l
         cd ../../../../../B; ibifs upn",
        "title            Tides\n1\nSAILOR example.org/sea",
    );
    env.exits("cd B; ibifs show $(< ../tides)", 3);
    env.exits("cd B; ibifs find tides", 3);
    env.complains("ibifs find tides", "several stores are mounted");
    env.complains("ibifs upn", "several stores are mounted");
}

/// A search through the mount prints what one in the store does, in the same order.
#[test]
fn both_ways_of_a_search_agree() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        mint A old > old; echo 'title: Rainfall' > "A/$(< old):"
        mint A note > note; printf 'title: Notes\ndescription: on rainfall\n' > "A/$(< note):"
        mint A new > new; echo 'title: Rainfall, second edition' > "A/$(< new):"
        ibifs relate A/$(< old) --next-edition A/$(< new) > said
        chmod 755 .; chmod 700 A.store"#);
    let both = r#"
        as_user() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
        ibifs find rainfall --store A --json > direct; as_user ibifs find rainfall --store A --json > mounted
        ibifs find rainfall --store A > direct.txt; as_user ibifs find rainfall --store A > mounted.txt"#;
    env.prints(
        &format!("{both}\ncmp direct mounted; cmp direct.txt mounted.txt; jq -r '.[] | [.title, .ibip != null, .lastedition.rep] | @tsv' direct \\
            | sed \"s;$(< new);NEW;\" | sort"),
        "Notes\ttrue\t\nRainfall\ttrue\tNEW\nRainfall, second edition\ttrue\t",
    );
    env.prints("grep -c 'last edition: ' direct.txt", "1");
    // The description of the first is not of the title: it comes last.
    env.prints("jq -r '.[-1].title' mounted", "Notes");
}

/// `relate` and `unrelate` say what they did, and what was so before; by the mount and in the store.
#[test]
fn a_relation_that_is_replaced_is_named() {
    for mount in ["ibifs mount A.store A", "true"] {
        let env = TestEnv::new().with_a();
        env.sh(&format!(
            "for n in a b c; do mint A $n > $n; done; ibifs umount A; {mount}"
        ));
        let plain = |script: &str| {
            format!(
                "{{ {script}; }} 2>&1 | sed \"s;^ibifs: ;;; s;$(< a)\\([,:]\\|$\\);ONE\\1;g; s;$(< b)\\([,:]\\|$\\);TWO\\1;g; s;$(< c)\\([,:]\\|$\\);THREE\\1;g\""
            )
        };
        let relate = "ibifs relate --store A.store $(< a)";
        env.prints(
            &plain(&format!(
                "{relate} --next-edition $(< b); {relate} --next-edition $(< b); {relate} --next-edition $(< c)
                 {relate} --translation $(< b) --lang pt
                 ibifs unrelate --store A.store $(< a) --next-edition"
            )),
            "ONE: nextedition TWO\nONE: nextedition TWO\nONE: nextedition THREE, in place of TWO\n\
             ONE: translation(pt) TWO\nONE: nextedition removed, which was THREE",
        );
        env.prints(
            &plain(&format!(
                "{relate} --translation $(< c) --lang pt --json | jq -r '.target.rep, .previous.rep'
                 ibifs unrelate --store A.store $(< a) --translation --lang pt --json | jq -r '.target, .previous.rep'"
            )),
            "THREE\nTWO\nnull\nTHREE",
        );
        env.exits("ibifs unrelate --store A.store $(< a) --next-edition", 3);
    }
}

/// Each is told what to do instead, and where to look.
#[test]
fn what_is_near_is_named() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one");
    for format in ["bibtex", "ris", "datacite"] {
        env.complains(
            &format!("ibifs cite A/$(< one) --style {format}"),
            &format!("'{format}' is a format of records and not a style of citations; read the file 'ITEM:({format})' of a mount"),
        );
    }
    env.complains("ibifs cite A/$(< one) --style none", "the styles are abnt");
    // The page, beside the link that may open a file.
    env.prints(
        "ibifs show A/$(< one) --json | jq -r '.page_url == .persistent_url + \"?page\"'
         test \"$(ibifs show A/$(< one) | sed -n 's/^page *//p')\" = \"$(ibifs show A/$(< one) | sed -n 's/^link *//p')?page\"",
        "true",
    );
    // A mount point names its store.
    env.prints(
        "ibifs fsck A | tail -n 1; ibifs fsck A --json | jq -r .store | sed 's;.*/;;'",
        "2 items, 0 findings\nA.store",
    );
    env.complains("ibifs fsck A/$(< one)", "name the store");
    // The service is in the status, and the sentence on removed originals does not know of copies.
    env.prints(
        "ibifs status A --json | jq -r '.[0].archiveservice.rep' > service; ibifs status A | grep -c \"^service  $(< service)$\"
         ibifs ls A | grep -c \" $(< service) \"; rm -r A/$(< one); ibifs status A | grep -c '^removed  1 original in the last 30 days: '; ibifs status A | grep -c ^copies || true",
        "1\n1\n1\n0",
    );
}

/// The destination of a copy may be the URL of a service, in both forms; that of another service is refused.
#[test]
fn an_archive_is_named_by_its_service() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs init B.store --host archive-b.example.net > said
            head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > token; echo \"$(< token) http://127.0.0.1:9\" > tokens; chmod 600 token tokens
            mint A one > one; ibifs ls B.store | awk '{print $2}' > rep; ibifs ls B.store | awk '{print $3}' > ibip");
    let b = Served::start(&env, "B.store --transfer-token-file tokens");
    let url = &b.url;
    env.prints(
        &format!(
            "for s in $(< rep) $(< ibip) $(< ibip)/; do ibifs copy A/$(< one) {url}/$s --token-file token 2> said | head -n 1 | cut -d : -f 1; done"
        ),
        "copied\nunchanged\nunchanged",
    );
    env.complains(
        &format!("ibifs copy A/$(< one) {url}/8JMKD3MGP8W/34PGRBS --token-file token"),
        "its service is",
    );
}

/// At the level `debug` the log has a line for each change that is refused.
#[test]
fn each_refusal_is_logged() {
    let env = TestEnv::new();
    env.sh("ibifs init S --host a.example.org > said; mkdir M
            RUST_LOG=debug ibifs mount -f S M < /dev/null > out 2> log & until mountpoint -q M; do sleep 0.05; done
            mint M one > one; mint M two > two");
    let refused = [
        ("touch M/x", "mknod|create", "\"x\" in the root"),
        (
            "touch M/example.org/x",
            "mknod|create",
            "\"x\" in \"example.org\"",
        ),
        ("mv M/$(< one) M/else", "rename to \"else\" of", "in \""),
        ("mkdir M/.mint/.x", "mkdir", "\".x\" in .mint"),
        ("touch M/.mint/.x", "mknod|create", "\".x\" in .mint"),
        (
            "rmdir M/example.org",
            "rmdir",
            "\"example.org\" in the root",
        ),
        (
            "ln -s x M/example.org/link",
            "symlink",
            "\"link\" in \"example.org\"",
        ),
        (
            "setfattr -n user.ibi.nextedition -v $(< one) M/$(< one)",
            "setxattr",
            "\"user.ibi.nextedition\" in $(< one)",
        ),
        (
            "setfattr -x user.ibi.metadata M/$(< one)",
            "removexattr",
            "\"user.ibi.metadata\" in $(< one)",
        ),
    ];
    for (change, request, place) in refused {
        env.sh(&format!(
            "before=$(wc -l < log); ! {change} 2> why
             tail -n +$((before + 1)) log | grep -E 'refused: ({request}) ' | grep -F \"{}\" | grep -q ', user 0: ' || {{ tail -n +$((before + 1)) log >&2; false; }}",
            place.replace('"', "\\\"")
        ));
    }
    // Making and removing files logs no refusal.
    env.prints(
        "before=$(wc -l < log); touch M/$(< one)/file; rm M/$(< one)/file; mkdir M/example.net; rmdir M/example.net
         tail -n +$((before + 1)) log | grep -c refused: || true; ibifs umount M; wait",
        "0",
    );
}
