//! Items that are withdrawn, shown again, and removed with a reason, by their owners, who are not root.

use crate::http::served::Served;
use crate::support::TestEnv;

/// alice and bob, who share nothing but the right to deposit, and an item of a user with a title and a file.
const USERS: &str = r#"
    as() { local who=$1; shift; case $who in
        alice) setpriv --reuid 60001 --regid 60001 --clear-groups "$@";;
        bob) setpriv --reuid 60002 --regid 60002 --clear-groups "$@";;
        *) "$@";;
    esac; }
    minted() { local ibi; ibi=$(as $1 ibifs mint "${@:3}" A | head -n 1); printf 'title: %s\ncreator: Silva, Ana\ndate: 2026\n' "$2" | as $1 tee "A/$ibi:" > /dev/null
        echo 'hidden text' | as $1 tee A/$ibi/doc/text.txt > /dev/null; echo $ibi; }
    refused() { local code=0; "$@" > out 2> err || code=$?; echo "$code $(sed "s|$ibi|ITEM|g" err)"; }
    # What readers get by each name, and what lists say.
    forms() { for name in $ibi $opaque; do for tail in '' '?page' /text.txt /doc/text.txt ':' ':(oai_dc)' ':(datacite)' '?inventory' '?bag' '?cite=apa' '?linkset' '?ibiurl.verblist=GetFileList'; do
        status -L "$U/$name$tail"; done; done | sort | uniq -c | tr -s ' '; status -L $U/col/$ibi/doc/text.txt; status -L $U/col/$ibi/
        curl -so /dev/null -w '%{http_code}\n' -X PROPFIND -H 'Depth: 1' $U/dav/$ibi/; }
    # The name of an item ends with an instant, which another item may have as its date, with other marks between its numbers.
    lists() { local name=${ibi##*/}; name=${name//./\\.}; for list in / /feed.atom /sitemap-0.xml '/search?q=rain' "/col/$(dirname $ibi)/"; do
        curl -s "$U$list" | grep -cE "$name([^.0-9]|\$)|$opaque|Withheld" | sed 's/^[1-9].*/shown/' || true; done | uniq
        curl -s "$U/oai?verb=ListRecords&metadataPrefix=oai_dc" | grep -o -e 'status="deleted"' -e Withheld | uniq || true; }
    # Lists are of what the service has seen: it sees a change a moment later, not in all lists at once.
    listed() { for n in $(seq 100); do lists > now; [ "$(< now)" = "$1" ] && break; sleep .1; done; cat now; }
"#;

fn prepare(env: &TestEnv) {
    env.sh("chmod 755 .; chmod 1777 A; [ $(stat -c %a A.store) = 700 ]");
}

/// An owner withdraws an item: others see neither it nor anything of it but the citation, the date and the reason; and shows it again.
#[test]
fn an_item_is_withdrawn_and_shown_again() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            one=$(minted alice 'First rain'); ibi=$(minted alice 'Withheld rain' --edition-of A/$one); opaque=$(ibip A/$ibi); status -L "$U/$ibi/text.txt"
            listed $'shown\nWithheld'
            refused as bob ibifs withdraw A/$ibi --reason no; stat -c %a A/$ibi
            refused as alice ibifs withdraw A/$ibi --reason $'two\nlines'; refused as alice ibifs withdraw A/$ibi --reason ' '; refused as alice ibifs withdraw A/$ibi --reason $(printf %1001s | tr ' ' x)
            reason='Table 3 <script>alert(1)</script> {{is}} 100% wrong'
            as alice ibifs withdraw A/$ibi --reason "$reason"; stat -c %a A/$ibi A/$opaque
            as alice cat A/$ibi/doc/text.txt; no as bob ls A/$ibi; no as bob cat A/$opaque/doc/text.txt
            forms; curl -s $U/$ibi?page > page; grep -o -e 'Table 3 &lt;script&gt;alert(1)&lt;/script&gt; {{is}} 100% wrong' -e 'Silva, A[^<]*Withheld rain' page; no grep '<script>alert' page
            curl -sH 'Accept-Language: pt' $U/$ibi | grep -o 'Este item foi retirado' | head -n 1
            curl -sH 'Accept: application/json' $U/$ibi | jq -r '.reason, .state, (.withdrawn_at | length), (.citation | length > 20)'
            status -H 'Accept: application/ld+json' $U/$ibi; status -H 'Accept: application/vnd.datacite.datacite+json' $U/$ibi
            listed $'0\nstatus="deleted"'; readlink "A/$one!" | sed "s|.*$one\$|ONE|"; status -L "$U/$one!"
            curl -s "$U/$one?page" | grep -o "$ibi.*withdrawn" | sed "s|$ibi.*small>|ITEM |"; curl -sH 'Accept: application/json' "$U/$one?page" | jq .removed_relations.nextedition.withdrawn
            ibifs show A/$one | sed -n "s|^nextedition *$ibi|ITEM|p"; ibifs show A/$one --json | jq .removed_relations.nextedition.withdrawn
            ibifs ls A | sed -n "s|$ibi $opaque|ITEM|p"; as alice ibifs ls A --json --titles | jq -r '.[] | select(.withdrawn).title'; as bob ibifs ls A | grep -c -e "$ibi " -e withdrawn || true; ibifs status A | grep ^items; ibifs status A --json | jq '.[].items.withdrawn'
            as alice ibifs show A/$ibi --json > shown; ibifs show A/$ibi --json | diff - shown; jq -r '.withdrawn.reason, .draft, .state' shown; refused as alice ibifs publish A/$ibi
            {{ as bob ibifs find --store A withheld 2> /dev/null || true; }} | wc -l
            # Again: the reason is another one, and the date stays. After a rebuild from the tree it is the same.
            was=$(jq -r .withdrawn.date shown); as alice ibifs withdraw A/$ibi --reason other; [ $was = $(ibifs show A/$ibi --json | jq -r .withdrawn.date) ]
            ibifs umount A; ibifs reindex A.store > /dev/null; ibifs fsck A.store | tail -n 1; forms | sort | uniq | tail -n 3; ibifs mount A.store A
            refused as bob ibifs restore A/$ibi | sed 's/.*only/only/'; as alice ibifs restore A/$ibi; stat -c %a A/$ibi; as bob cat A/$opaque/doc/text.txt; status -L "$U/$ibi/text.txt"; grep -c -e withdrawn -e citation A/$ibi/.ibi || true
            refused as alice ibifs restore A/$ibi; readlink "A/$one!" | grep -c $ibi"#
        ),
        "200\nshown\nWithheld\n4 ibifs: only the owner of ITEM may withdraw it\n755\n2 ibifs: the reason is not one line of text\n2 ibifs: the reason is not one line of text
2 ibifs: the reason has 1001 characters; it may have 1000\n750\n750\nhidden text\n 24 410\n410\n410\n404\nSilva, A. (2026). Withheld rain
Table 3 &lt;script&gt;alert(1)&lt;/script&gt; {is} 100% wrong\nEste item foi retirado\nTable 3 <script>alert(1)</script> {is} 100% wrong\nnull\n20\ntrue\n410\n410\n0
status=\"deleted\"\nONE\n200\nITEM withdrawn\ntrue\nITEM, withdrawn\ntrue
Original ITEM withdrawn\nWithheld rain\n0\nitems    3 originals, 0 copies, 0 removed; 1 withdrawn\n1\nTable 3 <script>alert(1)</script> {is} 100% wrong\nfalse\nOriginal\n4 ibifs: ITEM is withdrawn; 'ibifs restore' shows it again\n0
3 items, 0 findings\n 24 410\n404\n410\n3 ibifs: no item 'ITEM' is held here\n755\nhidden text\n200\n0\n0 ibifs: ITEM was not withdrawn\n1",
    );
}

/// A draft is not withdrawn, and nothing of one that is removed is public.
#[test]
fn nothing_of_a_draft_becomes_public() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            ibi=$(minted alice 'Withheld rain' --draft); opaque=$(ibip A/$ibi)
            refused as alice ibifs withdraw A/$ibi --reason because | sed 's/{{.*}}/ITEM/'; refused as bob ibifs remove $ibi --store A | cut -c1-2
            # A sidecar that says it of itself.
            printf 'withdrawn {{2026-01-01T00:00:00Z forged}}\n' | as alice tee -a A/$ibi/.ibi > /dev/null; status $U/$ibi
            as alice ibifs remove A/$ibi; no as alice ls A/$ibi; status $U/$ibi; no grep -r Withheld A.store/deleted; curl -s $U/$ibi | grep -c -e Withheld -e forged || true
            ibifs umount A; ibifs fsck A.store | tail -n 1"#
        ),
        "4 ibifs: item ITEM is closed to other users, as a draft is; there is nothing to withdraw\n3 \n404\n404\n0\n1 item, 0 findings",
    );
}

/// An item is removed as a whole or not at all, with its citation and the reason, in a mount and in a store.
#[test]
fn an_item_is_removed_with_its_reason() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            ibi=$(minted alice 'Withheld rain'); opaque=$(ibip A/$ibi); as alice mkdir A/$ibi/doc/closed; echo x | as alice tee A/$ibi/doc/closed/x > /dev/null; as alice chmod 555 A/$ibi/doc/closed
            refused as bob ibifs remove A/$ibi; refused as alice ibifs remove A/$ibi; as alice cat A/$ibi/doc/text.txt A/$ibi/doc/closed/x; stat -c %a A/$ibi
            as alice chmod 755 A/$ibi/doc/closed; as alice ibifs remove A/$ibi --reason 'a duplicate'; no ls A/$ibi; forms; curl -sH 'Accept: application/json' $U/$ibi | jq -r '.reason, .state, .citation' | sed 's| http.*||'
            as alice ibifs show $ibi --store A --json | jq -r '.withdrawn.reason, .citation' | sed 's| http.*||'; curl -s $U/$ibi | grep -c 'This item was removed'
            kept=$(minted alice 'Kept rain'); plain=$(minted alice 'Plain rain'); (cd A/$plain; as alice rm .ibi.metadata doc/*); as alice rm -r A/$plain; curl -sH 'Accept: application/json' $U/$plain | jq -r '.reason, .citation' | sed 's| http.*||'
            # Of a description that others could not read nothing is kept.
            closed=$(minted alice 'Closed rain'); as alice chmod 600 A/$closed/.ibi.metadata; as alice rm A/$closed/.ibi.metadata; as alice rm -r A/$closed; curl -sH 'Accept: application/json' $U/$closed | jq -r .citation
            ibifs umount A; mkdir B; echo outside > B/x; ln -s $PWD/B A.store/col/$kept/doc/link
            ibifs remove $kept --store A.store --reason 'kept no more'; cat B/x; curl -sH 'Accept: application/json' $U/$kept | jq -r '.reason, .citation' | sed 's| http.*||'; ibifs fsck A.store | tail -n 1
            ibifs reindex A.store > /dev/null; status $U/$ibi; refused ibifs remove $(ibifs ls A.store --state original | sed 's/^Original *\([^ ]*\) .*/\1/' | head -n 1) --store A.store | cut -c1-2"#
        ),
        "4 ibifs: only the owner of ITEM may remove it\n4 ibifs: ITEM is left as it is, since you may not remove what is in its directory 'doc/closed'
hidden text\nx\n755\n 24 410\n410\n410\n404\na duplicate\nDeleted\nSilva, A. (2026). Withheld rain.\na duplicate\nSilva, A. (2026). Withheld rain.\n2\nnull\nSilva, A. (2026). Plain rain.\nnull
outside\nkept no more\nSilva, A. (2026). Kept rain.\n1 item, 0 findings\n410\n4 ",
    );
}

/// An original that is withdrawn is still the original: the holder of a copy cannot claim it. A copy is withdrawn with it.
#[test]
fn what_is_withdrawn_is_not_claimed() {
    let env = TestEnv::new().with_a().with_b();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{USERS}
            ibi=$(minted alice 'Rain'); ibifs copy A/$ibi B > /dev/null; service=$(sed -n 's/.*ibi.archiveservice.*ibip \([^ }}]*\).*/\1/p' A/$ibi/.ibi)
            claim() {{ ibifs claim --store B $ibi --from "$U/$service" 2>&1 | grep -o -e 'still .*original' -e 'removed.*' || true; ibifs show --store B $ibi | sed -n 's/^state *//p'; }}
            claim; as alice ibifs withdraw A/$ibi --reason wrong; claim; as bob cat B/$ibi/doc/text.txt
            # The copy learns it with the next one.
            ibifs copy A/$ibi B > /dev/null; no as bob cat B/$ibi/doc/text.txt; ibifs show B/$ibi --json | jq -r .withdrawn.reason; ibifs umount B; ibifs fsck B.store"#
        ),
        "still holds the original\nCopy\nstill holds the original\nCopy\nhidden text\nwrong\n2 items, 0 findings",
    );
}

/// A copy that was fetched is withdrawn when the Archive of its original says so, and by no other one, and is shown again after it.
#[test]
fn a_fetched_copy_is_withdrawn_with_its_original() {
    for mount in ["true", "ibifs mount B.store B"] {
        let env = TestEnv::new().with_a();
        prepare(&env);
        env.sh("mkdir B; for s in B C D; do ibifs init $s.store --host archive-${s,}.example.net > /dev/null; done; printf %064d 1 > token; touch tokens; chmod 600 token tokens");
        let other = Served::start(&env, "C.store");
        env.sh(&format!("echo \"$(< token) {}\" > tokens", other.url));
        let there = Served::start(&env, "B.store --transfer-token-file tokens");
        let (c, b) = (&other.url, &there.url);
        let served = Served::start(&env, "A.store");
        served.prints(
            &env,
            &format!(
                r#"{USERS}
                ibi=$(minted alice 'Rain'); for s in B C; do ibifs copy --from $U $ibi $s.store > /dev/null 2>&1; done; {mount}
                says() {{ {{ LC_ALL=C ibifs copy "$@" || echo $?; }} 2> /dev/null | grep -v ^0 | sed "s|$ibi|ITEM|; s|20..-..-..T..:..:..Z|DATE|"; }}
                here() {{ ibifs show --store B.store $ibi --json | jq -r .withdrawn.reason; stat -c %a B.store/col/$ibi; }}
                # The holder of another copy withdraws it, and says so when it is asked and by itself.
                ibifs withdraw --store C.store $ibi --reason forged; says --from {c} $ibi B.store; says --store C.store --token-file token $ibi {b}; here
                as alice ibifs withdraw A/$ibi --reason 'Table 3 <is> wrong'; says --from {c} --from $U $ibi B.store; says --from $U $ibi D.store; no ibifs show --store D.store $ibi
                says --from $U $ibi B.store; here; for s in A B; do grep -e ^withdrawn -e ^citation $s.store/col/$ibi/.ibi | md5sum; done | uniq | wc -l; says --from $U $ibi B.store
                as alice ibifs restore A/$ibi; says --from $U $ibi B.store | cut -d: -f1 | head -n 1; here; ! mountpoint -q B || ibifs umount B; ibifs fsck B.store | tail -n 1"#
            ),
            "skipped: ITEM: withdrawn: the Archive that was asked has withdrawn it: DATE forged\n4
skipped: ITEM: not-taken: the destination does not accept it: the Archive that holds the original has not withdrawn it\n1\nnull\n755
skipped: ITEM: withdrawn: the Archive that was asked has withdrawn it: DATE forged\n4\nskipped: ITEM: withdrawn: the Archive that was asked has withdrawn it: DATE Table 3 <is> wrong\n4
skipped: ITEM: withdrawn: the Archive of the original has withdrawn it, and with it the copy here: DATE Table 3 <is> wrong\n4\nTable 3 <is> wrong\n750\n1
skipped: ITEM: withdrawn: the Archive of the original has withdrawn it, and with it the copy here: DATE Table 3 <is> wrong\n4\ncopied\nnull\n755\n2 items, 0 findings",
        );
    }
}

/// A copy that its own Archive withdraws or removes is told apart from one whose original is withdrawn.
#[test]
fn a_copy_is_withdrawn_and_removed_alone() {
    let env = TestEnv::new().with_a().with_b();
    prepare(&env);
    env.prints(
        &format!(
            r#"{USERS}
            ibi=$(minted alice 'Rain'); ibifs copy A/$ibi B > /dev/null; now() {{ ibifs show $ibi --store $1 --json | jq -c '[.state, .withdrawn.reason, .withdrawn.copy]'; }}
            ibifs withdraw B/$ibi --reason moved; now B; ibifs show B/$ibi | sed -n 's/^copywithdrawn *[^ ]* //p'; ibifs copy A/$ibi B > /dev/null; now B; stat -c %a B/$ibi
            ibifs remove B/$ibi --reason 'not ours'; now B; now A; as alice ibifs withdraw A/$ibi --reason wrong; ibifs copy A/$ibi B --bring-back > /dev/null; now B
            ibifs remove B/$ibi; now B; ibifs umount B; ibifs reindex B.store > /dev/null; now B.store; ibifs fsck B.store | tail -n 1"#
        ),
        r#"["Copy","moved",true]
moved
["Copy",null,null]
755
["Deleted","not ours",true]
["Original",null,null]
["Copy","wrong",false]
["Deleted","wrong",false]
["Deleted","wrong",false]
1 item, 0 findings"#,
    );
}
