//! The life of an item, for its owner, who is not root: removed, taken back, and what remains of it for others.

use std::path::Path;

use crate::http::served::Served;
use crate::support::TestEnv;

/// alice and bob, who share nothing but the right to deposit, in a mount whose store is closed to them.
const USERS: &str = r#"
    as() { local who=$1; shift; case $who in
        alice) setpriv --reuid 60001 --regid 60001 --clear-groups "$@";;
        bob) setpriv --reuid 60002 --regid 60002 --clear-groups "$@";;
        *) "$@";;
    esac; }
    # An item of a user, by its rep.
    minted() { as $1 mkdir -p A/.mint/$2/doc; rep A/.mint/$2 2> /dev/null || as $1 getfattr --only-values -n user.ibi.rep A/.mint/$2; as $1 rm A/.mint/.$2; }
"#;

fn prepare(env: &TestEnv) {
    env.sh("chmod 755 .; chmod 1777 A; [ $(stat -c %a A.store) = 700 ]");
}

/// Who owns an item removes it by each of its names, also below a level that is root's, as in January; others do not.
#[test]
fn an_item_is_removed_by_its_owner() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    env.prints(
        &format!(
            r#"{USERS}
            for n in 1 2 3; do minted alice $n > $n; echo text > A/$(< $n)/doc/x; done; year=A/$(dirname $(< 1))
            stat -c '%a %U' $year A.store/col/${{year#A/}}
            for n in 1 2 3; do no as bob rm -rf A/$(< $n); no as bob rm -rf A/$(ibip A/$(< $n)); test -f A/$(< $n)/doc/x; done
            gone=$(ibip A/$(< 2)); as alice rm -r A/$(< 1) A/$gone; no ls A/$(< 1); no ls A/$(< 2); no ls A/$gone
            # A copy that a user brings, beside others in a level of that user's.
            as alice mkdir -p A/b.example/c/2001/01.01.01.01; as alice rm -r A/b.example; chown -R 60002 A/$(< 3)
            no as alice rmdir A/$(< 3); as bob rm -rf A/$(< 3)/doc; as bob rm -r A/$(< 3); no ls A/$(< 3)
            ibifs umount A; ibifs fsck A.store; ibifs ls A.store --state Deleted | wc -l"#
        ),
        "1777 root\n755 root\n1 item, 0 findings\n4",
    );
}

/// What is taken back by its label was never there for readers and harvesters, and its name is not given out again.
#[test]
fn a_mint_that_is_taken_back_is_not_public() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            as alice mkdir A/.mint/oops A/.mint/full; oops=$(as alice readlink A/.mint/.oops); oops=${{oops#../}}; opaque=$(ibip A/$oops)
            as alice touch A/.mint/full/x; no as alice rmdir A/.mint/full; status $U/$oops
            as alice rmdir A/.mint/oops; no as alice stat A/.mint/oops; no ls A/$oops
            public() {{ for name in $oops $opaque; do status $U/$name; status $U/$name?page; status "$U/$name:(oai_dc)"; done | uniq
                for list in / /feed.atom /sitemap-0.xml '/oai?verb=ListIdentifiers&metadataPrefix=oai_dc' "/search?q=${{oops##*/}}"; do
                    curl -s "$U$list" | grep -cE "($oops|$opaque)([^.0-9A-Z]|\$)" || true; done | uniq; }}
            public; ibifs status A.store | grep -c 'removed .*original' || true
            # By its own name it leaves a public record.
            full=$(as alice readlink A/.mint/.full); full=${{full#../}}; as alice rm -r A/$full; status $U/$full; ibifs status A.store | grep -c 'removed .*original'
            next=$(minted alice oops); [ $next != $oops ]
            # After a rebuild from the tree, and in a copy of the store.
            ibifs umount A; ibifs reindex A.store > /dev/null; ibifs fsck A.store; public"#
        ),
        "200\n404\n0\n0\n410\n1\n2 items, 0 findings\n404\n0",
    );
}

/// After a related item was removed its relations lead to what is left, are shown as removed, and may be replaced.
#[test]
fn no_relation_leads_to_a_removed_item() {
    no_relation_leads_to_a_removed_item_in(&TestEnv::new().with_a());
}

pub fn no_relation_leads_to_a_removed_item_in(env: &TestEnv) {
    prepare(env);
    let served = Served::start(env, "A.store");
    served.prints(
        env,
        &format!(
            r#"{USERS}
            one=$(minted alice one); two=$(as alice ibifs mint A --edition-of A/$one | head -n 1); three=$(as alice ibifs mint A --edition-of A/$two | head -n 1)
            pt=$(as alice ibifs mint A --translation-of A/$one --lang pt | head -n 1); about=$(as alice ibifs mint A --metadata-of A/$one | head -n 1)
            word() {{ local sed=; for name in one two three pt about; do sed+=";s/${{!name//\//\\/}}(\$|[^.0-9])/${{name^^}}\1/g"; done; sed -E "$sed"; }}
            ends() {{ for tail in ! '+(pt)' :; do readlink "A/$one$tail" || echo none; done | sed 's|.*/\.\./||' | word | paste -sd' '; }}
            asks() {{ curl -s "$U/$(ibifs ls A.store | sed -n 's/^Original \([^ ]*\) .*/\1/p' | head -n 1)?servicesubject=urlRequest&parsedibiurl.ibi=$one" | tr -d '\r' | grep -c -e '^ibi.nextedition' -e 'translation(pt)' -e "$about" || true; }}
            ends; as alice rm -r A/$two; ends; as alice ibifs show A/$one > shown; ibifs show A/$one | diff - shown; grep -e edition shown | word
            readlink "A/$(ibip A/$one)!" | sed "s|$(ibip A/$three)|THREE|; s|.*/||"
            as alice rm -r A/$three A/$pt A/$about; ends; asks
            for form in '' --json; do as alice ibifs show A/$one $form > shown; ibifs show $one --store A.store $form | diff - shown; done
            as alice ibifs show A/$one | grep -e edition -e translation -e metadata | word
            curl -s "$U/$one?page" | grep -o -e 'held elsewhere' -e '>removed<' | uniq -c | tr -s ' '
            status "$U/$one!"; status "$U/$one+(pt)"
            echo 'title: T' | as alice tee "A/$one:" > /dev/null; cat "A/$one:"
            # Another edition takes the place.
            four=$(as alice ibifs mint A --edition-of A/$one | head -n 1); [ $(readlink "A/$one!") = ../../../$four ]; as alice ibifs unrelate A/$one --translation --lang pt 2> /dev/null
            ibifs umount A; ibifs fsck A.store | word; ibifs reindex A.store > /dev/null; ibifs fsck A.store | tail -n 1"#
        ),
        "THREE PT ABOUT\nTHREE PT ABOUT\nlastedition      THREE\nnextedition      THREE\nnextedition      TWO, removed\nTHREE
ONE none none\n0\nlastedition      ONE\nmetadata         ABOUT, removed\nnextedition      TWO, removed\ntranslation(pt)  PT, removed
 3 >removed<\n200\n404\ntitle: T
removed-target: ONE: a relation leads to an item that was removed here; it is kept as history, and not followed: \
         ibi.metadata ABOUT; remove it with 'ibifs unrelate', if it need not be kept (notice)
3 items, 1 finding\n3 items, 1 finding",
    );
}

/// A draft is made, filled and described unseen, and published by its owner; others see it then in every list.
#[test]
fn a_draft_is_seen_when_it_is_published() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            known=$(minted alice known); as alice ibifs mint A --draft --json > minted; draft=$(jq -r .rep minted); opaque=$(jq -r .ibip minted)
            stat -c '%a %u' A/$draft A/$draft/doc; echo 'secretive text' | as alice tee A/$draft/doc/text.txt > /dev/null
            as alice ibifs show A/$draft --json | jq -c '[.draft, .title]'; ibifs show A/$known --json | jq .draft
            # Not without a title, and not by others.
            code=0; as alice ibifs publish A/$draft 2> /dev/null || code=$?; echo $code; stat -c %a A/$draft
            printf 'title: Unheard rain\n' | as alice tee "A/$draft:" > /dev/null
            code=0; as bob ibifs publish A/$draft 2> /dev/null || code=$?; test $code != 0; stat -c %a A/$draft
            next=$(as alice ibifs mint A --draft --edition-of A/$known | head -n 1)
            list() {{ curl -s "$U$1" | tr '<>"/ ?' '\n' | grep -cxE "${{draft##*/}}|${{opaque#*/}}|$opaque|Unheard" | sed 's/^[1-9].*/shown/' || true; }}
            seen() {{ for name in $draft $opaque; do for tail in '' '?page' /text.txt ':' ':(oai_dc)' '?inventory'; do status -L "$U/$name$tail"; done; done | uniq
                for list in / /feed.atom /sitemap-0.xml '/oai?verb=ListIdentifiers&metadataPrefix=oai_dc' '/search?q=unheard' "/col/$(dirname $draft)?level" "/col/$(dirname $draft)/"; do
                    list "$list"; done | uniq; {{ as bob ibifs find unheard --store A 2> /dev/null || true; }} | wc -l; as bob ls A/$draft > /dev/null 2>&1 || echo closed; curl -sH 'Accept: application/json' $U/ | jq .items; status -L "$U/$known!"; }}
            seen
            as alice ibifs publish A/$draft > said; sed "s|$opaque|OPAQUE|" said; stat -c %a A/$draft
            # The service sees it a moment later, not in all lists at once.
            for n in $(seq 100); do seen > now; [ "$(paste -sd' ' now)" = '200 shown 1 3 200' ] && break; sleep .1; done; cat now
            as alice ibifs publish A/$draft --json 2> /dev/null | jq -c '[.title, .closed]'
            # Files that are closed stay so, and are counted.
            as alice chmod 600 A/$draft/doc/text.txt; as alice ibifs publish A/$draft 2>&1 | grep -c '1 file or directory in it is closed'
            # What was removed as a draft is not public then.
            as alice rm -r A/$next; status $U/$next; ibifs umount A; ibifs fsck A.store | tail -n 1"#
        ),
        "750 60001\n755 60001\n[true,null]\nfalse\n4\n750\n750\n404\n0\n0\nclosed\n2\n200
http://archive-a.example.org/OPAQUE\nhttp://archive-a.example.org/OPAQUE?page\n755\n200\nshown\n1\n3\n200
[\"Unheard rain\",0]\n1\n404\n3 items, 1 finding",
    );
}

/// With `drafts yes` whatever mints makes a draft, also a program that sets the mode of what it copies.
#[test]
fn an_archive_may_make_drafts_alone() {
    let env = TestEnv::new();
    env.prints(
        &format!(
            r#"{USERS}
            ibifs init A.store --host archive-a.example.org > /dev/null; echo 'drafts yes' >> A.store/archive.ibi; ibifs fsck A.store; mkdir A; ibifs mount A.store A
            chmod 755 .; chmod 1777 A; mkdir -p s/own/doc; echo text > s/own/doc/x; chmod -R a+rX s; cp -r s/own s/more; chown -R 60001 s
            as alice mkdir A/.mint/a; as alice cp -a s/own A/.mint/b; as alice rsync -a s/own/ A/.mint/c; as alice ibifs mint A > d; as alice ibifs mint A --from s/more > e
            as alice ibifs mint A --count 3 --json > f; as alice mkdir "A/$(labelled A a as alice)+(pt)"
            for item in $(for l in a b c; do labelled A $l as alice; echo; done) $(head -qn 1 d e) $(jq -r .[].rep f); do stat -c '%a %u' A/$item; done | uniq -c | tr -s ' '
            stat -Lc %a "A/$(labelled A a as alice)+(pt)" A/$(head -n 1 d)/doc A/$(head -n 1 e)/doc A/$(jq -r .[1].rep f)/doc | uniq -c | tr -s ' '
            # Its owner opens one by its own name, or publishes it.
            as alice chmod 755 A/$(labelled A a as alice); as alice ibifs publish --untitled A/$(labelled A b as alice) > /dev/null
            for l in a b c; do stat -c %a A/$(labelled A $l as alice); done; as bob cat A/$(labelled A b as alice)/doc/x
            ibifs umount A; one=$(ibifs mint A.store | head -n 1); stat -c %a A.store/col/$one A.store/col/$one/doc; ibifs publish --untitled $one --store A.store > /dev/null
            stat -c %a A.store/col/$one; ibifs fsck A.store"#
        ),
        "1 item, 0 findings\n 8 750 60001\n 1 750\n 3 755\n755\n755\n750\ntext\n750\n755\n755\n11 items, 0 findings",
    );
}

/// The commands of 'A depositor's day' in the README, by a user who is not root.
#[test]
fn a_day_of_a_depositor_is_as_the_readme_has_it() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md");
    let (_, day) = readme
        .split_once("\n## A depositor's day\n")
        .expect("the day");
    let (_, day) = day.split_once("```sh\n").expect("commands");
    let (day, _) = day.split_once("```").expect("their end");
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    let mount = env.root().join("A");
    let day = day.replace("/srv/ibifs/archive", &mount.display().to_string());
    std::fs::write(env.root().join("day"), day).expect("written");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            mkdir home; printf '2026-01-01,9,80\n' > home/rainfall.csv; chown -R 60001 home
            cat >> day <<< 'echo "item=$item next=$next mistake=$mistake" > ~/names'
            as alice env HOME=$PWD/home bash -euo pipefail day > said; . home/names
            tail -n 1 said | sed "s|http.*/$(ibip A/$next)$|LINK|"
            cat "A/$item/doc/rainfall.csv" "A/$item!/doc/rainfall.csv"; no as alice touch A/$next/doc/x
            of() {{ ibifs show --store A $1 --json | jq -r "$2"; }}
            of $item .draft; of $next '.sealed != null'; of $next .state
            for name in $item $next $mistake; do status $U/$name; done; curl -s $U/$mistake | grep -o 'minted twice'"#
        ),
        "Souza, A. (2026). Rainfall. LINK\n2026-01-01,9,80\n2026-01-01,9.80\nfalse\ntrue\nOriginal\n302\n302\n410\nminted twice",
    );
}

/// What one host decides about an item holds at another one that shares the store.
#[test]
fn decisions_hold_on_every_host() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        &format!(
            r#"{USERS}
            database > url; ibifs init s --host a.example.org --index "$(< url)" > /dev/null; mkdir m n; chmod 755 .
            ibifs mount s m -o shared; ibifs mount s n -o shared; chmod 1777 m; other() {{ sleep 1.1; }}; other
            item=$(as alice ibifs mint m --draft | head -n 1); as alice mkdir -p m/$item/doc; as alice sh -c "echo text > m/$item/doc/x; echo 'title: Rain' > m/$item:"
            other; no as bob ls n/$item; as alice ibifs publish n/$item --embargo 2099-01-31 > /dev/null; other; no as bob cat m/$item/doc/x; as alice cat m/$item/doc/x; as bob ls m/$item/doc; ibifs show m/$item --json | jq -r .available
            as alice ibifs seal n/$item > /dev/null; other; no as alice sh -c "echo more >> m/$item/doc/x"; no touch m/$(ibip n/$item)/doc/y; ibifs show m/$item --json | jq '.sealed != null'
            no as bob ibifs unseal m/$item --reason mine; as alice ibifs unseal m/$item --reason more; other; as alice touch n/$item/doc/y
            at=$(as alice ibifs seal m/$item --after 10s); other; as alice touch n/$item/doc/z; until [[ $(date -u +%FT%TZ) > $at ]]; do sleep .1; done; for there in m n; do no as alice touch $there/$item/doc/z; done
            until [ "$(ibifs show n/$item --json | jq .sealed.digest)" != null ]; do sleep .5; done; as alice ibifs unseal n/$item --reason more; other; as alice touch m/$item/doc/z
            no as bob ibifs withdraw n/$item --reason mine; as alice ibifs withdraw m/$item --reason wrong; other; no as bob ls n/$item; ibifs show n/$item --json | jq -r .withdrawn.reason
            as alice ibifs restore n/$item; other; as bob ls m/$item/doc
            no as bob ibifs remove m/$item; as alice ibifs remove n/$item --reason gone; other; no ls m/$item; ibifs show --store m $item | sed -n 's/^state *//p'
            ibifs umount m; ibifs umount n; ibifs fsck s"#
        ),
        "text\nx\n2099-01-31T00:00:00Z\ntrue\nwrong\nx\ny\nz\nDeleted\n1 item, 0 findings",
    );
}
