//! `ibifs copies`: a copy counts when its content was compared, in the ledgers of both stores, and what an Archive wants of
//! its copies is said, reported and kept.

use crate::http::served::Served;
use crate::support::TestEnv;

/// Two stores that are not mounted, in places of their own, of which A wants two copies and holds `one`.
fn pair() -> TestEnv {
    let env = TestEnv::new();
    env.sh("ibifs init A --host archive-a.example.org > said; ibifs init B --host archive-b.example.net > said
         echo 'place {br sp} copies 2 minimum 1 places 2 proved 30d' >> A/archive.ibi
         echo 'place {de bonn}' >> B/archive.ibi
         ibifs mint A | head -n 1 > one; echo text > A/col/$(< one)/doc/file");
    env
}

/// The kinds, places and outcomes of the copies of an item, and what counts.
pub const KNOWN: &str = r#"known() { ibifs copies $1 $2 --json | jq -r \
    '([.copies[] | "\(.kind) \(.place | join(" ")) \(.outcome)"] | join(", ")) + "; \(.counted) \(.places) \(.enough)"'; }"#;

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{KNOWN}\n{script}"), expected);
}

/// Both sides know of a copy after it was compared, also when the index is made again and when the item is gone; nothing is
/// written into the item.
#[test]
fn a_copy_that_was_compared_is_known_on_both_sides() {
    for mounts in ["", "mkdir M N; ibifs mount A M; ibifs mount B N"] {
        let env = pair();
        env.sh(mounts);
        let (a, b) = if mounts.is_empty() {
            ("A", "B")
        } else {
            ("M", "N")
        };
        prints(
            &env,
            &format!("known {a} $(< one)"),
            "archive br sp null; 0 0 false",
        );
        env.sh(&format!("ibifs scrub {a}"));
        prints(
            &env,
            &format!(
                "known {a} $(< one); ibifs copies {a} --short | sed 's/.*: //'
                 ibifs copy --store {a} $(< one) {b} > said
                 known {a} $(< one); known {b} $(< one); ibifs copies {a} --short
                 ibifs copies {a} $(< one) --json | jq -r '.copies[1].holder' > holder; ibifs status B --json | jq -r '.[0].archiveservice.rep' | cmp - holder
                 diff -r A/col/$(< one) B/col/$(< one)"
            ),
            "archive br sp good; 1 1 false\n1 of 2 copies, 1 of 2 places\n\
             archive br sp good, archive de bonn good; 2 2 true\n\
             archive de bonn null, archive br sp good; 1 1 true",
        );
        // What is found unchanged by its times was not compared: the proof is the one before.
        prints(
            &env,
            &format!(
                "ibifs copies {a} $(< one) --json > before; ibifs copy --store {a} $(< one) {b} > said
                 ibifs copies {a} $(< one) --json | cmp - before; ! ibifs copies {a} --json --short | grep ."
            ),
            "",
        );
        env.sh("for m in M N; do ! mountpoint -q $m || ibifs umount $m; done");
        prints(
            &env,
            "rm A/relations.sqlite3*; ibifs reindex A > said; known A $(< one)
             ibifs remove --store A $(< one); known A $(< one); ibifs status A | grep ^copies | sed 's; in .*;;'
             ibifs status A --json | jq -r '.[0].removed_originals[0].copies[]' | cmp - holder",
            "archive br sp good, archive de bonn good; 2 2 true\narchive de bonn good; 1 1 false\n\
             copies   1 of them has copies that have no original now,",
        );
    }
}

/// A list has the number of copies that count of each item, but of that of the service.
#[test]
fn a_list_has_what_counts() {
    let env = pair();
    env.prints(
        "ibifs scrub A > said; ibifs copy --store A $(< one) B > said; ibifs remove --store B $(< one) --force
         for store in A B; do ibifs ls $store --copies | awk '{ print $1, $4 }' | sort; done
         ibifs ls A --copies --json | jq -c 'map(.copies) | sort'; ibifs ls A --json | grep -c copies || true",
        "Original -\nOriginal 2\nDeleted 1\nOriginal -\n[null,2]\n0",
    );
}

/// A store without a policy has no finding; one with it has a notice, which does not fail; pairs that are not valid are named.
#[test]
fn a_policy_is_checked() {
    let env = pair();
    env.prints(
        "ibifs fsck B | tail -n 1; ibifs fsck A | sed 's/: .*//'",
        "1 item, 0 findings\ntoo-few-copies\n2 items, 1 finding",
    );
    for (pair, why) in [
        (
            "copies none",
            "'none' is not a valid value of 'copies': it is a number from 1 to 100",
        ),
        (
            "copies 2 minimum 3",
            "'3' is not a valid value of 'minimum': it is a number",
        ),
        (
            "proved 90",
            "'90' is not a valid value of 'proved': it is a period such as 90d",
        ),
    ] {
        env.sh(&format!(
            "cp B/archive.ibi kept; echo '{pair}' >> B/archive.ibi"
        ));
        env.complains("ibifs copies B", why);
        env.sh("mv kept B/archive.ibi");
    }
    // An old proof does not count, and that of a clock that was ahead does.
    env.sh("ibifs scrub A > said; ibifs copy --store A $(< one) B > said");
    prints(
        &env,
        "ledger=A/fixity/col/$(< one)/copies; known A $(< one)
         sed -i 's/proved 20../proved 2020/' $ledger; known A $(< one)
         sed -i 's/proved 2020/proved 2100/; $s/good/bad/' $ledger; known A $(< one)",
        "archive br sp good, archive de bonn good; 2 2 true\n\
         archive br sp good, archive de bonn good; 1 1 false\n\
         archive br sp good, archive de bonn bad; 1 1 false",
    );
}

/// `ibifs remove` removes no copy below the minimum without --force, in a store, in a mount and for a user who may not enter
/// the store.
#[test]
fn no_copy_is_removed_below_the_minimum() {
    let env = pair();
    let refused = "of the 1 proved copies that archive.ibi wants at least there would be 0";
    env.complains("ibifs remove --store A $(< one)", refused);
    env.exits("ibifs remove --store A $(< one)", 4);
    env.sh("mkdir M; ibifs mount A M; chmod 755 .; chmod 1777 M
         as() { setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent \"$@\"; }
         as ibifs mint M | head -n 1 > theirs; as sh -c \"echo more > M/$(< theirs)/doc/file\"");
    env.complains("ibifs remove M/$(< one)", refused);
    let by_user = "setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent ibifs";
    env.complains(&format!("{by_user} remove M/$(< theirs)"), refused);
    env.prints(
        &format!(
            "test -e M/$(< theirs)/doc/file
        {by_user} copies M $(< theirs) --json | jq -r '.copies[].holder' | wc -l
        {by_user} remove M/$(< theirs) --force; test ! -e M/$(< theirs)
        ibifs copy --store A $(< one) B > said; ibifs remove M/$(< one); test ! -e M/$(< one)"
        ),
        "1",
    );
}

/// A copy by the URL of an Archive is noted by the one that sends it, with the place that the other one says.
#[test]
fn a_copy_by_url_is_known_to_the_sender() {
    let env = pair();
    env.sh("head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > token; echo \"$(< token) http://127.0.0.1:9\" > tokens; chmod 600 token tokens
         ibifs scrub A > said");
    let b = Served::start(&env, "B --transfer-token-file tokens");
    prints(
        &env,
        &format!(
            "ibifs copy --store A $(< one) {} --token-file token > said 2>&1; known A $(< one)",
            b.url
        ),
        "archive br sp good, archive de bonn good; 2 2 true",
    );
}

/// A copy that is fetched from a URL is noted by the Archive that fetches it, with the URL where nothing shows which Archive
/// answers there; one that was not compared is not.
#[test]
fn a_copy_from_a_url_is_known_to_the_receiver() {
    let env = pair();
    env.sh("ibifs scrub A > said; ibifs scrub B > said");
    let a = Served::start(&env, "A");
    let url = &a.url;
    prints(
        &env,
        &format!(
            r#"holders() {{ ibifs copies B $(< one) --json | jq -c '.copies[1:][] | [.holder, .outcome]' | sed -E 's,{url},URL,; s,/20[^"]*,,'; }}
               ibifs copy --from {url} $(< one) B --allow-private > said; holders; cp B/fixity/col/$(< one)/copies noted
               rm B/fixity/col/$(< one)/copies; ibifs copy --from {url} $(< one) B --allow-private > said; holders
               ibifs copy --from {url} $(< one) B --allow-private --verify > said; holders
               rm B/fixity/col/$(< one)/copies; key=$(ibifs audit A --key); echo "audit {{{url} $key}}" >> B/archive.ibi
               ibifs copy --from {url} $(< one) B --allow-private --verify > said; holders"#
        ),
        "[\"URL\",\"good\"]\n[\"example.org/archive-a\",null]\n[\"example.org/archive-a\",null]\n[\"URL\",\"good\"]\n\
         [\"example.org/archive-a\",null]\n[\"example.org/archive-a\",\"good\"]",
    );
}

/// A file that a scrub finds damaged makes the copy here a bad one, until it is put back.
#[test]
fn damage_here_does_not_count() {
    let env = pair();
    prints(
        &env,
        "file=A/col/$(< one)/doc/file; touch -d '1 hour ago' $file; ibifs scrub A > said; known A $(< one); cp -a $file good
         printf X | dd of=$file conv=notrunc status=none; touch -r good $file; ! ibifs scrub A > said; known A $(< one)
         sleep 1.1; cp -a good $file; ibifs scrub A > said; known A $(< one)",
        "archive br sp good; 1 1 false\narchive br sp bad; 0 0 false\narchive br sp good; 1 1 false",
    );
}

/// A backup is listed with the items that were there, and proves nothing.
#[test]
fn a_backup_is_known_and_does_not_count() {
    let env = pair();
    prints(
        &env,
        "sleep 1.1; ibifs scrub A > said; ibifs backup A saved > said; sleep 1.1; ibifs mint A | head -n 1 > two
         known A $(< one); known A $(< two); ibifs copies A $(< one) --json | jq -r '.copies[1].holder' | sed 's;.*/;;'",
        "archive br sp good, backup  null; 1 1 false\narchive br sp null; 0 0 false\nsaved",
    );
}

/// A backup counts in the place that was said of it once, if it was tried after it was made, and not for an item that has changed since.
#[test]
fn a_backup_counts_in_its_place() {
    let env = pair();
    prints(
        &env,
        "file=A/col/$(< one)/doc/file; touch -d '1 hour ago' $file; sleep 1.1; ibifs scrub A > said; try() { ibifs backup --drill saved --store A > said; known A $(< one); }
         ibifs backup A saved --place 'de bonn' > said; ibifs backup A saved > said; known A $(< one); try; ibifs audit A --with saved > said
         echo more >> $file; touch -d '30 minutes ago' $file; sleep 1.1; ibifs scrub A > said; known A $(< one); try; ibifs backup A saved > said; try
         ibifs copies A $(< one) --json | jq -r '.copies[1].made' > made; grep -qf made A/backups.ibi",
        "archive br sp good, backup de bonn null; 1 1 false\narchive br sp good, backup de bonn good; 2 2 true\n\
         archive br sp good, backup de bonn null; 1 1 false\narchive br sp good, backup de bonn null; 1 1 false\n\
         archive br sp good, backup de bonn good; 2 2 true",
    );
}

/// What a backup is proved to have of an item that was removed since counts, until the backup is made again without it.
#[test]
fn a_removed_item_counts_in_its_backup() {
    let env = pair();
    prints(
        &env,
        "ibifs mint A | head -n 1 > two; for it in $(cat one two); do touch -d '1 hour ago' A/col/$it/doc/*; done
         sleep 1.1; ibifs scrub A > said; ibifs backup A saved > said; ibifs audit A --with saved $(< one) > said; known A $(< one)
         # The time of a removal is one of whole seconds.
         sleep 1.1; ibifs remove --store A $(< one) 2> said; grep 'that are left' said || true; known A $(< one)
         ibifs remove --store A $(< two) --force 2> said; grep -o 'that are left.*' said; known A $(< two); ibifs backup A saved > said; known A $(< one)",
        "archive br sp good, backup  good; 2 1 false\nbackup  good; 1 0 false\nthat are left: 0\n; 0 0 false\n; 0 0 false",
    );
}

/// A package is listed by the path that the user gave, also when it is written again, and proves nothing; a user who may not enter
/// the store is not told where.
#[test]
fn a_package_is_known_and_does_not_count() {
    let env = pair();
    prints(
        &env,
        "ibifs scrub A > said; ibifs export --ocfl --store A $(< one) out/objects > said; ibifs export --ocfl --store A $(< one) out/objects > said
         ibifs export --bagit --store A $(< one) bags > said; known A $(< one); no ibifs export --bagit --store A $(< one) A > said 2>&1
         holders() { jq -r '.copies[] | select(.made) | .holder' | sed 's;\\(objects\\|bags\\)/.*;\\1;'; }
         ibifs copies A $(< one) --json | holders; ls -d $(ibifs copies A $(< one) --json | jq -r '.copies[2].holder') | wc -l
         mkdir M; ibifs mount A M; chmod 755 .
         setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent ibifs copies M $(< one) --json | holders",
        "archive br sp good, export  null, export  null; 1 1 false\nout/objects\nbags\n1\n-\n-",
    );
}

/// A policy for a part of the items counts there, for lists, checks and removals, and for users of a mount.
#[test]
fn a_collection_has_a_policy_of_its_own() {
    let env = pair();
    env.sh("ibifs scrub A > said; dirname $(< one) > year; cp A/archive.ibi kept");
    let script = |pairs: &str| {
        format!(
            "(cat kept; for pair in {pairs}; do echo \"collection {{$pair}}\"; done) > A/archive.ibi
             ibifs copies A --short | sed 's/.*: //'; ibifs fsck A | tail -n 1; ibifs report A --json | jq -c .short; ! ibifs remove --store A $(< one) 2>&1 | grep -o 'of the .* proved'"
        )
    };
    env.prints(
        &script("\"$(< year)/ copies 1 places 1\" \"elsewhere copies 9 minimum 9\""),
        "2 items, 0 findings\n0\nof the 1 proved",
    );
    env.prints(
        &script(
            "\"$(cut -d/ -f1 year) copies 1 places 1 minimum 1\" \"$(< year) copies 5 minimum 4\"",
        ),
        "1 of 5 copies, 1 of 2 places\n2 items, 1 finding\n1\nof the 4 proved",
    );
    env.prints(
        "mkdir M; ibifs mount A M; chmod 755 .; setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent ibifs copies M --short | sed 's/.*: //'; ibifs umount M",
        "1 of 5 copies, 1 of 2 places",
    );
    env.complains(
        "echo 'collection {a.example copies}' >> A/archive.ibi; ibifs copies A",
        "'a.example copies' is not a valid value of 'collection': it is the beginning of identifiers and pairs",
    );
}

/// A report is a page that a browser and an XML parser read, whatever the store is called.
#[test]
fn a_report_is_a_page() {
    let env = pair();
    env.prints(
        r#"mv A 'a & <b>'; ibifs report 'a & <b>' --html > page; python3 -c "
import xml.etree.ElementTree as xml; x = '{http://www.w3.org/1999/xhtml}'
page = xml.parse('page').getroot(); print(len(page.findall('.//' + x + 'tr')), page.find('.//' + x + 'h1').text.endswith('/a & <b>'))""#,
        "20 True",
    );
}

/// Whatever lies in the place of a ledger: no command waits for it, follows it, or writes elsewhere.
#[test]
fn a_ledger_may_be_anything() {
    let env = pair();
    env.sh("ibifs scrub A > said; ibifs copy --store A $(< one) B > said; echo kept > elsewhere");
    for break_it in [
        "mkfifo $ledger",
        "ln -s $PWD/elsewhere $ledger",
        "truncate -s 3G $ledger",
        "mkdir $ledger",
        "printf 'kind archive holder {\\nx\\n\\377' > $ledger",
    ] {
        env.sh(&format!(
            "ledger=A/fixity/col/$(< one)/copies; rm -rf $ledger; {break_it}
             timeout 20 ibifs copies A > said 2>&1 || test $? -lt 100
             echo more >> A/col/$(< one)/doc/file; timeout 20 ibifs copy --store A $(< one) B > said
             timeout 20 ibifs status A > said; timeout 20 ibifs scrub A > said; test \"$(< elsewhere)\" = kept"
        ));
    }
}
