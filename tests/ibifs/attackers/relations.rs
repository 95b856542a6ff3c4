//! A user who owns one item changes nothing that is said of the items of others, whichever way the claim
//! comes; it is shown, and followed by nothing.

use std::time::{Duration, Instant};

use crate::http::served::Served;
use crate::support::TestEnv;

/// A mount of root in which others may mint; `r1` has the next edition `r2`, `plain` has none; both are
/// root's. `mallory` owns `own`.
const SCENE: &str = r#"
as() { setpriv --reuid 60001 --regid 60001 --clear-groups "$@"; }
other() { setpriv --reuid 60002 --regid 60002 --clear-groups "$@"; }
says() { cat "A.store/col/$1/.ibi"; }
"#;

fn fixture() -> TestEnv {
    let env = TestEnv::new();
    let script = "chmod 755 .; ibifs init A.store --host archive-a.example.org > /dev/null
        mkdir A; ibifs mount A.store A; chmod 1777 A
        for name in r1 r2 plain; do mint A $name > $name; done; ln -sfn ../$(<r2) \"A/$(<r1)!\"
        as mkdir -p A/.mint/own/doc; labelled A own as > own; cp A.store/col/$(<own)/.ibi good";
    env.sh(&format!("{SCENE}{script}"));
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{SCENE}{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    env.prints(&format!("{SCENE}{script}"), expected);
}

/// Asserts that nothing that root's items say has changed, and that nothing leads to mallory's.
#[track_caller]
fn untouched(env: &TestEnv) {
    let script = r#"
        says $(<r1) | diff - r1.before; says $(<r2) | diff - r2.before; says $(<plain) | diff - plain.before
        readlink "A/$(<r1)!" | grep -o '[^/]*$' | diff - <(grep -o '[^/]*$' r2)
        for tail in '!' ':' '+(pt)' '+(en)' '+' '?GetTranslation'; do
            case "$(readlink "A/$(<plain)$tail" || :)" in *$(basename $(<own))) echo "$tail leads to mallory";; esac
            p=$(ibip A/$(<plain)); case "$(readlink "A/$p$tail" || :)" in *$(ibip A/$(<own) | cut -d/ -f2)) echo "$tail leads to mallory";; esac
        done
        for name in nextedition lastedition metadata metadataof editionof translationof translation.pt translation.en; do
            getfattr --only-values -n user.ibi.$name A/$(<plain) 2> /dev/null | grep -F "$(<own)" || :
        done
        getfattr --only-values -n user.ibi.language A/$(<plain) 2> /dev/null || :"#;
    prints(env, script, "");
}

const BEFORE: &str = "for name in r1 r2 plain; do says $(<$name) > $name.before; done\n";

/// All that a sidecar can say of another item, one after the other.
const WORDS: [&str; 6] = [
    "ibi.editionof",
    "ibi.metadataof",
    "ibi.translationof",
    "ibi.nextedition",
    "ibi.metadata",
    "ibi.translation(en)",
];

#[test]
fn attributes_change_no_items_of_others() {
    let env = fixture();
    sh(&env, BEFORE);
    sh(&env, "as setfattr -n user.ibi.language -v pt A/$(<own)");
    for word in WORDS {
        let name = word
            .strip_prefix("ibi.")
            .expect("a pair")
            .replace("(en)", ".en");
        for target in ["r1", "plain"] {
            let script = format!(
                "as setfattr -n user.ibi.{name} -v $(<{target}) A/$(<own); says $(<own) | grep -cF '{word}'"
            );
            prints(&env, &script, "1");
            untouched(&env);
            sh(&env, &format!("as setfattr -x user.ibi.{name} A/$(<own)"));
            untouched(&env);
        }
    }
    // Nor may mallory declare or take back at the items of others.
    for script in [
        "setfattr -n user.ibi.nextedition -v $(<own) A/$(<plain)",
        "setfattr -n user.ibi.language -v pt A/$(<plain)",
        "setfattr -x user.ibi.nextedition A/$(<r1)",
        "ln -sfn ../$(<own) \"A/$(<plain)!\"",
        "rm \"A/$(<r1)!\"",
        "mkdir \"A/$(<plain)+(pt)\"",
        "ibifs relate A/$(<plain) --next-edition $(<own)",
        "ibifs unrelate A/$(<r1) --next-edition",
        "ibifs mint A --edition-of $(<plain)",
    ] {
        prints(&env, &format!("no as {script} && echo refused"), "refused");
        untouched(&env);
    }
}

/// A sidecar that is written, copied, renamed or linked into place.
#[test]
fn sidecars_change_no_items_of_others() {
    let env = fixture();
    sh(&env, BEFORE);
    let ways = [
        "as cp new A/$(<own)/.ibi",
        "as bash -c 'cat new > A/$(<own)/.ibi'",
        "as rsync -a --no-o --no-g new A/$(<own)/.ibi",
        "as install -m 644 new A/$(<own)/.ibi",
        "as cp new A/$(<own)/x; as mv A/$(<own)/x A/$(<own)/.ibi",
        "as cp new A/$(<own)/x; as rm A/$(<own)/.ibi; as ln -f A/$(<own)/x A/$(<own)/.ibi; as rm A/$(<own)/x",
        // A program of root closes the file that mallory has written.
        "exec 7>> A/$(<own)/.ibi; as bash -c 'cat new > A/$(<own)/.ibi'; exec 7>&-",
    ];
    for way in ways {
        for target in ["r1", "plain"] {
            let script = format!(
                "(cat good; echo 'language pt'; for word in '{}'; do echo \"$word {{rep $(<{target})}}\"; done) > new
                 chmod 644 new; {way}; says $(<own) | diff - new",
                WORDS.join("' '")
            );
            prints(&env, &script, "");
            untouched(&env);
            sh(&env, "as cp good A/$(<own)/.ibi");
        }
        untouched(&env);
    }
    // Two hundred at once.
    let script = "for n in $(seq 40); do mint A many$n; done > many
        (cat good; n=0; while read rep; do n=$((n + 1))
            printf 'ibi.translation(%s) {rep %s}\\n' $(printf 'a%b' \"\\\\x$(printf %x $((97 + n % 26)))\")-A$(printf \"\\\\x$(printf %x $((65 + n % 26)))\") $rep
         done < many) | sort -u > new; as cp new A/$(<own)/.ibi
        while read rep; do says $rep; done < many | grep -c -e translationof -e language || :";
    prints(&env, script, "0");
}

/// A claim is shown to people and followed by nothing: command, pages, service and harvest.
#[test]
fn claims_are_shown_and_not_followed() {
    let env = fixture();
    let script = "as setfattr -n user.ibi.editionof -v $(<plain) A/$(<own)
        as setfattr -n user.ibi.metadata -v $(<plain) A/$(<own)
        as bash -c \"echo 'claimed title' > 'A/$(<own)/doc/x'\"";
    sh(&env, script);
    let shown = sh(&env, "ibifs show A/$(<plain)");
    let own = sh(&env, "cat own");
    assert!(
        shown.contains(&format!("claimed by       {own}, ibi.editionof")),
        "{shown}"
    );
    assert!(!shown.contains("nextedition"), "{shown}");
    let json = sh(
        &env,
        "ibifs show --json A/$(<plain) | jq -r '.claims[] | .rep + \" \" + .relation' | sort",
    );
    assert_eq!(json, format!("{own} editionof\n{own} metadata"), "JSON");
    let served = Served::start(&env, "A");
    let page = served.sh(&env, "get -H 'Accept: text/html' $U/$(<plain)");
    assert!(page.contains("Claimed by") && page.contains(&own), "{page}");
    let json = served.sh(
        &env,
        "get -H 'Accept: application/json' $U/$(<plain) | jq -c '[.next_edition, .metadata_of, (.claims | length)]'",
    );
    assert_eq!(json, "[null,null,2]");
    served.prints(
        &env,
        "get \"$U/$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi)?servicesubject=urlRequest&parsedibiurl.ibi=$(<plain)\" | grep -cF $(<own) || :",
        "0",
    );
    served.prints(
        &env,
        "get \"$U/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$(<plain)\" | grep -c '<error' || :",
        "0",
    );
    served.prints(
        &env,
        "line location \"$U/$(<plain)!\" | grep -cF $(<own) || :",
        "0",
    );
    // Items that mallory hides are not named.
    served.prints(
        &env,
        "chmod 700 A/$(<own); get -H 'Accept: application/json' $U/$(<plain) | jq '.claims | length'",
        "0",
    );
}

/// A thousand items of a user that claim to be what one item has cost its readers nothing: a hundred looks at the
/// relations of the item take less time of the processor than one look at each of the thousand, and commands and pages
/// list the first hundred.
#[test]
fn many_claims_delay_nobody() {
    let env = fixture();
    let script = "ibifs umount A
        for time in {11..20}.{11..12}.{10..59}; do
            item=x.org/y/2001/01.$time; mkdir -p A.store/col/$item/doc
            printf '%s\n' \"ibi {rep $item}\" \"$(sed -n 2p good)\" \"ibi.editionof {rep $(<plain)}\" \"ibi.metadataof {rep $(<plain)}\" > A.store/col/$item/.ibi
            chown 60001:60001 A.store/col/$item/.ibi
        done
        ibifs reindex A.store > /dev/null; ibifs mount A.store A";
    sh(&env, script);
    let script = "used() { set -- $(sed 's/.*) //' /proc/$(daemon A.store)/stat); echo $((${12} + ${13})); }
        before=$(used); for n in $(seq 100); do readlink \"A/$(<plain)!\" \"A/$(<plain)+(pt)\" > /dev/null || :; done
        echo $((($(used) - before) * 1000 / $(getconf CLK_TCK)))";
    let spent: u64 = sh(&env, script).trim().parse().expect("milliseconds");
    assert!(spent < 1_000, "{spent} ms");
    let begun = Instant::now();
    prints(
        &env,
        "ibifs show --json A/$(<plain) | jq '(.claims | length), .other_claims'; ibifs show A/$(<plain) | grep -c '^claimed by'
         readlink \"A/$(<plain)!\" | grep -c x.org || :",
        "100\n1900\n101\n0",
    );
    let served = Served::start(&env, "A");
    served.prints(
        &env,
        "get -H 'Accept: application/json' $U/$(<plain) | jq '.claims | length'",
        "100",
    );
    let taken = begun.elapsed();
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}

/// The data on disk alone decides: the answers are the same with the index made newly, after repairs, and when a
/// statement was put there past the daemon.
#[test]
fn reindex_and_repair_follow_the_same_rule() {
    let env = fixture();
    sh(&env, BEFORE);
    let script = "for word in editionof metadataof translationof; do
            (cat good; echo 'language pt'; echo \"ibi.$word {rep $(<plain)}\") > new; chmod 644 new
            as cp new A/$(<own)/.ibi; ibifs umount A; ibifs reindex A.store | grep -v indexed || :
            ibifs fsck A.store | grep -v ' 0 findings' || :
            ibifs fsck --repair A.store > /dev/null; ibifs mount A.store A; says $(<own) | diff - new
        done";
    prints(&env, script, "");
    untouched(&env);
    let script = "ibifs umount A; (cat good; echo \"ibi.nextedition {rep $(<plain)}\") > A.store/col/$(<own)/.ibi
        ibifs fsck --repair A.store > /dev/null; ibifs fsck A.store; ibifs mount A.store A";
    prints(&env, script, "5 items, 0 findings");
    untouched(&env);
    // A kill in the middle changes nothing of that.
    let script = "(cat good; echo \"ibi.editionof {rep $(<plain)}\") > new; as cp new A/$(<own)/.ibi
        kill -9 $(daemon A.store); while ! ibifs umount A 2> /dev/null && mountpoint -q A; do :; done
        ibifs mount A.store A";
    sh(&env, script);
    untouched(&env);
}

/// A claim on a copy counts where the claimant may write that copy, now as after a reindex; one that
/// another user wrote in a directory that is open to all is that user's.
#[test]
fn claims_on_copies_go_by_who_may_write_the_copy() {
    let env = fixture();
    let script = "mkdir -p A/x.org/y/2001/01.01.00.00 A/x.org/y/2001/01.01.00.01
        as bash -c 'cd A/x.org/y/2001/01.01.00.00 && echo no > x' 2> /dev/null && exit 1
        chown 60001:60001 A/x.org/y/2001/01.01.00.01
        as setfattr -n user.ibi.editionof -v x.org/y/2001/01.01.00.00 A/$(<own)
        readlink 'A/x.org/y/2001/01.01.00.00!' || echo none
        as setfattr -n user.ibi.editionof -v x.org/y/2001/01.01.00.01 A/$(<own)
        readlink 'A/x.org/y/2001/01.01.00.01!' | grep -cF $(<own)
        setfattr -n user.ibi.editionof -v x.org/y/2001/01.01.00.00 A/$(<r2)
        readlink 'A/x.org/y/2001/01.01.00.00!' | grep -cF $(<r2)
        ibifs umount A; ibifs reindex A.store > /dev/null; ibifs mount A.store A
        readlink 'A/x.org/y/2001/01.01.00.01!' | grep -cF $(<own)
        readlink 'A/x.org/y/2001/01.01.00.00!' | grep -cF $(<r2)
        # As an earlier version has left it, which did not record who speaks.
        ibifs umount A; if test -e A.store/relations.sqlite3; then in_database A.store/relations.sqlite3 'UPDATE relation SET speaker = NULL'; fi
        ibifs mount A.store A; readlink 'A/x.org/y/2001/01.01.00.01!' | grep -cF $(<own)
        readlink 'A/x.org/y/2001/01.01.00.00!' | grep -cF $(<r2)
        setfattr -x user.ibi.editionof A/$(<r2); chmod 777 A/$(<plain)
        as setfattr -n user.ibi.editionof -v x.org/y/2001/01.01.00.00 A/$(<plain)
        readlink 'A/x.org/y/2001/01.01.00.00!' || echo none
        as rm A/$(<plain)/.ibi; cat A/$(<plain)/.ibi | grep -c editionof
        readlink 'A/x.org/y/2001/01.01.00.00!' || echo none";
    // rm and the last edition of an item without a next one: the item itself.
    let itself = "../../../x.org/y/2001/01.01.00.00";
    prints(
        &env,
        script,
        &format!("{itself}\n1\n1\n1\n1\n1\n1\n{itself}\n1\n{itself}"),
    );
}

/// A user who may write at both ends has both written, as before, and takes back both.
#[test]
fn who_may_write_both_ends_relates_both() {
    let env = fixture();
    let script = "as mkdir A/.mint/second; labelled A second as > second
        as setfattr -n user.ibi.editionof -v $(<own) A/$(<second); says $(<own) | grep -c nextedition
        as setfattr -x user.ibi.editionof A/$(<second); says $(<own) | grep -c nextedition || :
        setfattr -n user.ibi.nextedition -v $(<own) A/$(<plain); says $(<own) | grep -c editionof
        stat -c %u A/$(<own)/.ibi A/$(<plain)/.ibi
        as setfattr -x user.ibi.editionof A/$(<own); says $(<own) | grep -c editionof || :
        says $(<plain) | grep -c nextedition";
    prints(&env, script, "1\n0\n1\n60001\n0\n0\n1");
}

/// An item that an Archive sends over the network speaks with no rights: neither of the originals here, nor
/// of copies that root holds, with the store mounted or not, nor after a reindex.
#[test]
fn what_a_peer_sends_is_a_claim() {
    for mounted in [true, false] {
        let env = fixture();
        sh(
            &env,
            "ibifs init B --host archive-b.example.net > /dev/null; ibifs mint B | head -n 1 > sent
             held=archive-c.example.com/c/2020/01.01.01.01; mkdir -p A/$held; echo $held > held
             head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > token; cp token tokens; chmod 600 token tokens
             for name in r1 r2 plain; do says $(<$name) > $name.before; done
             for far in plain held; do for word in editionof metadataof translationof; do
                 echo \"ibi.$word {rep $(<$far)}\"
             done > words.$far; done
             cat B/col/$(<sent)/.ibi > good.sent",
        );
        if !mounted {
            env.sh("ibifs umount A");
        }
        let served = Served::start(&env, "A.store --transfer-token-file tokens");
        for words in ["plain", "held"] {
            sh(
                &env,
                &format!(
                    "{{ cat good.sent words.{words}; echo language pt; }} > B/col/$(<sent)/.ibi; ibifs reindex B
                     ibifs copy --store B --token-file token $(<sent) {}",
                    served.url
                ),
            );
        }
        drop(served);
        if !mounted {
            env.sh("ibifs mount A.store A");
        }
        let unmoved = "for name in r1 r2 plain; do says $(<$name) | diff - $name.before; done
             stat -c %a A.store/col/$(<sent)/.ibi
             for far in plain held; do for tail in '!' ':' '+(pt)' '+'; do
                 case \"$(readlink \"A/$(<$far)$tail\" || :)\" in *$(basename $(<sent))) echo \"$far$tail is followed\";; esac
             done; done
             ibifs show A/$(<held) | grep -c 'claimed by'";
        prints(&env, unmoved, "1644\n3");
        env.sh("ibifs umount A; ibifs reindex A.store; ibifs mount A.store A");
        prints(&env, unmoved, "1644\n3");
    }
}
