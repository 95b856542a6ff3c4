//! Items whose files are withheld until a date: what says so, what gives them out, and that the date ends it by itself.

use super::served::Served;
use crate::support::TestEnv;

/// A draft with files, whose words are searched for, and a server. A reader has asked for the files before they are withheld.
fn environment() -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"i=$(ibifs mint A | head -n 1); o=$(ibifs mint A | head -n 1); echo "i=$i o=$o" > vars; mkdir -p A/$i/doc/subdir A/$o/doc
         printf 'title: Rainfall\ncreator: Souza, Maria\ndate: 2026\n' > "A/$i:"; echo secretword | tee A/$i/doc/thesis.txt > A/$i/doc/subdir/x
         echo open > A/$o/doc/x; setfattr -n user.ibi.target -v doc/thesis.txt A/$i; ln -s ../../$(basename $o)/doc/x A/$i/doc/out; ln -s thesis.txt A/$i/doc/wayto; mkfifo A/$i/pipe
         sed -i '$a search texts' A.store/archive.ibi; ibifs umount A; ibifs mount A.store A"#,
    );
    let served = Served::start(&env, "A.store");
    // A search waits only for a second for files that are read for the first time.
    let read = "waits eval '[ $(found) = 1 ]'";
    served.prints(&env, &format!("{LOOK} {read}; paths; found; told"), OPEN);
    (env, served)
}

/// `paths` has the statuses of all names of a file, of a directory, of a link and of none; `told` counts the answers that
/// name a file; `found` searches for a word of it.
const LOOK: &str = r#". ./vars; ibip=$(ibip A/$i)
    service=$(sed -n 's/^ibi.archiveservice.*ibip \(.*\)}/\1/p' A.store/archive.ibi)
    paths() { for path in thesis.txt wayto subdir/x subdir out nothing; do for name in $i/$path $ibip/doc/$path col/$i/doc/$path dav/$i/doc/$path; do status $U/$name; done | paste -sd' '; done
        for query in archive.cgi/$i "$i?bag"; do status $U/$query; done | paste -sd' '; }
    told() { { for query in "$i" "$i?page" "$i?inventory" "$i?linkset" "$i?ibiurl.verblist=GetFileList" "$i:(jsonld)" "$i:(bibtex)"; do curl -sS -H 'Accept: text/html' "$U/$query"; curl -sS -H 'Accept: application/json' "$U/$query"; done
        curl -sSI "$U/$i?page"; curl -sS -X PROPFIND -H 'Depth: 1' $U/dav/$i/; curl -sS -X PROPFIND -H 'Depth: 1' $U/dav/$i/doc/; curl -sS $U/dav/$i/
        curl -sS "$U/oai?verb=ListRecords&metadataPrefix=oai_openaire"; curl -sS "$U/$service?servicesubject=urlRequest&parsedibiurl.ibi=$i&parsedibiurl.verblist="; } > answers
        { grep -cE 'thesis|wayto|pipe|subdir' answers || true; } | sed 's/^[1-9].*/named/'; }
    found() { curl -sS -H 'Accept: application/json' "$U/search?q=secretword" | grep -c Rainfall || true; }
    oai() { curl -sS "$U/oai?verb=ListRecords&metadataPrefix=$1" | grep -oE '(info:eu-repo|<(datacite:)?rights|<datacite:date d|<date d)[^<]*'; }
"#;

const OPEN: &str = "200 200 200 200\n200 200 200 200\n200 200 200 200\n302 302 302 302\n302 302 302 404\n404 404 404 404\n200 200\n1\nnamed";
const CLOSED: &str = "403 403 403 403\n403 403 403 403\n403 403 403 403\n403 403 403 403\n403 403 403 403\n403 403 403 403\n403 403\n0\n0";

/// No answer has a file or its name until the date, and each of them does from then on, with nothing done in between.
#[test]
fn files_are_withheld_until_the_date() {
    let (env, served) = environment();
    let closed = format!(
        "{LOOK} setfattr -n user.ibi.available -v 2099-01-31 A/$i; paths; found; told
         curl -sS -H 'Accept: text/html' \"$U/$i?page\" | grep -o 'withheld until.*UTC'; curl -sS -D head -H 'Accept: application/json' $U/$i/thesis.txt | jq -r .available; grep -i ^cache-control head | tr -d '\\r'
         curl -sS -H 'Accept: text/html' -H 'Accept-Language: pt' $U/$i/none | grep -c 'retidos até'; curl -sS $U/dav/$i/doc/
         curl -sS -H 'Accept: application/json' \"$U/$i?page\" | jq -r '.access, .available, (.files | length), .zip_url, .bag_url'
         oai oai_dc; oai oai_openaire; curl -sS \"$U/$i:(datacite)\" | grep Available; curl -sS \"$U/$i:(datacite_json)\" | jq -c '.dates[1]'; curl -sS \"$U/$i:(jsonld)\" | jq -r .conditionsOfAccess
         ibifs show A/$i | grep ^available; ibifs show --json A/$i | jq -r .available; cat A/$i/doc/thesis.txt
         # In a mount of this machine the item would be found without the service.
         ibifs umount A; ibifs init B.store --host b.example.org > /dev/null; no ibifs copy $U/$i B.store > /dev/null; ibifs copy $U/$i B.store > said 2>&1 || true; grep -o 'the files are withheld until.*' said; no ibifs show --store B.store $i; ibifs mount A.store A"
    );
    let said = "
withheld until <time datetime=\"2099-01-31T00:00:00Z\">2099-01-31 00:00:00 UTC
2099-01-31T00:00:00Z
cache-control: no-cache
1
the files of this item are withheld until 2099-01-31T00:00:00Z
embargoed access
2099-01-31T00:00:00Z
0
null
null
info:eu-repo/date/embargoEnd/2099-01-31
info:eu-repo/semantics/embargoedAccess
<datacite:date dateType=\"Issued\">2026
<datacite:date dateType=\"Available\">2099-01-31
<datacite:rights rightsURI=\"http://purl.org/coar/access_right/c_f1cf\">embargoed access
    <date dateType=\"Available\">2099-01-31</date>
{\"date\":\"2099-01-31\",\"dateType\":\"Available\"}
embargoed access until 2099-01-31
available        2099-01-31T00:00:00Z
2099-01-31T00:00:00Z
secretword
the files are withheld until 2099-01-31T00:00:00Z";
    served.prints(&env, &closed, &format!("{CLOSED}{said}"));
    // Not a request is sent that could notice the end before it.
    served.prints(
        &env,
        &format!(
            "{LOOK} before() {{ for n in $i/thesis.txt col/$i/doc/thesis.txt archive.cgi/$i; do status $U/$n; done | uniq; found; told; }}
             # On a busy machine they take longer.
             began=$SECONDS; before > same; at=$(date -u -d \"+$((3 * (SECONDS - began) + 6)) seconds\" +%Y-%m-%dT%H:%M:%SZ)
             sed -i \"s/^available.*/available $at/\" A/$i/.ibi; before
             while [ $(date +%s) -le $(date -d $at +%s) ]; do sleep 0.2; done; waits eval '[ $(found) = 1 ]'; paths; found; told
             oai oai_dc | sed 's/20..-.*/DAY/'; oai oai_openaire | tail -n 1
             rm A/$i/pipe A/$i/doc/out; ibifs copy $U/$i B.store > /dev/null; cat B.store/col/$i/doc/thesis.txt; grep -c ^available B.store/col/$i/.ibi"
        ),
        &format!("403\n0\n0\n{OPEN}\ninfo:eu-repo/date/embargoEnd/DAY\ninfo:eu-repo/semantics/openAccess\n<datacite:rights rightsURI=\"http://purl.org/coar/access_right/c_abf2\">open access\nsecretword\n1"),
    );
}

/// `ibifs publish --embargo` writes the date before anybody may enter, as the owner through a mount or in a store.
#[test]
fn a_draft_is_published_with_an_embargo() {
    let env = TestEnv::new().with_a();
    env.prints(
        r#"chmod 755 .; chmod 1777 A; as() { setpriv --reuid 60001 --regid 60001 --clear-groups "$@"; }
        i=$(as ibifs mint A --draft | head -n 1); as sh -c "mkdir A/$i/doc; echo x > A/$i/doc/x; echo 'title: T' > 'A/$i:'"
        no ibifs publish A/$i --embargo 2020-01-01; no ibifs publish A/$i --embargo soon; stat -c %a A/$i; grep -c available A/$i/.ibi || true
        no setpriv --reuid 60002 --regid 60002 --clear-groups ibifs publish A/$i --embargo 2099-01-31
        as ibifs publish --json A/$i --embargo 2099-01-31 | jq -r .available; stat -c %a A/$i; grep available A/$i/.ibi
        as setfattr -x user.ibi.available A/$i; grep -c available A/$i/.ibi || true; no as setfattr -n user.ibi.available -v never A/$i
        ibifs umount A; ibifs publish A.store/col/$i --embargo 2099-01-31T12:00:00Z > /dev/null; ibifs show --json --store A.store $i | jq -r .available; ibifs fsck A.store | tail -n 1"#,
        "750\n0\n2099-01-31T00:00:00Z\n755\navailable 2099-01-31T00:00:00Z\n0\n2099-01-31T12:00:00Z\n2 items, 0 findings",
    );
}

/// Until the date other users of the machine do not read the files either, in both trees; owner, group and root do.
#[test]
fn other_users_of_a_mount_wait_for_the_date() {
    let env = TestEnv::new().with_a();
    env.prints(
        r#"chmod 755 .; chmod 1777 A; as() { setpriv --reuid $1 --regid $2 --clear-groups "${@:3}"; }; why() { { LC_ALL=C "$@" 2>&1 > /dev/null || true; } | sed 's/.*: //'; }
        i=$(as 60001 60001 ibifs mint A | head -n 1); as 60001 60001 sh -c "mkdir A/$i/doc/in; echo text > A/$i/doc/x; echo deep > A/$i/doc/in/y; echo 'title: T' > 'A/$i:'"; j=$(ibip A/$i); as 60002 60002 cat A/$i/doc/x
        as 60001 60001 setfattr -n user.ibi.available -v 2099-01-31 A/$i
        for f in $i/doc/x $j/doc/x $i/doc/in/y; do why as 60002 60002 cat A/$f; done; as 60001 60001 cat A/$i/doc/x; as 60002 60001 cat A/$j/doc/x; cat A/$i/doc/x; as 60002 60002 ls A/$i/doc; as 60002 60002 cat A/$i/.ibi.metadata
        why as 60002 60002 cp A/$i/doc/x .; as 60002 60002 head -c 9 A/$i/.ibi | wc -c
        # Also after a new start, and not a moment longer.
        began=$SECONDS; ibifs umount A; ibifs mount A.store A
        at=$(date -u -d "+$((3 * (SECONDS - began) + 4)) seconds" +%Y-%m-%dT%H:%M:%SZ); as 60001 60001 setfattr -n user.ibi.available -v $at A/$i; ibifs umount A; ibifs mount A.store A
        why as 60002 60002 cat A/$i/doc/x; while [ $(date +%s) -lt $(date -d $at +%s) ]; do sleep 0.1; done; as 60002 60002 cat A/$i/doc/x A/$j/doc/in/y
        as 60001 60001 setfattr -n user.ibi.available -v 2099-01-31 A/$i; why as 60002 60002 cat A/$i/doc/x; as 60001 60001 setfattr -x user.ibi.available A/$i; as 60002 60002 cat A/$i/doc/x"#,
        "text\nPermission denied\nPermission denied\nPermission denied\ntext\ntext\ntext\nin\nx\ntitle: T\nPermission denied\n9\nPermission denied\ntext\ndeep\nPermission denied\ntext",
    );
}
