//! OAI-PMH: each answer is accepted by the protocol's schema, and no harvester misses a change.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// Asking the service; each answer has to be valid.
const ASK: &str = r#"
valid() { xmllint --nonet --noout --schema "$SCHEMA" "$1" 2> against || { cat "$1" against >&2; return 1; }; }
# A harvester asks again while the records are being updated, which takes longer on a busy machine.
oai()   { local code end=$((SECONDS + 60))
    while code=$(curl -sS -D head -o answer -w '%{http_code}' "$U/oai?$1" "${@:2}"); [ "$code" = 503 ] && [ $SECONDS -lt $end ]; do sleep 0.2; done
    [ "$code" = 200 ] && valid answer; }
# What the last answer says: values by XPath, without namespaces.
of()    { xmllint --nonet --xpath "string(//*[local-name()='$1'])" answer; }
all()   { { xmllint --nonet --xpath "//*[local-name()='$1']" answer 2> /dev/null || true; } | sed 's/<[^>]*>/\n/g' | sed '/^$/d'; }
errors() { oai "$@"; xmllint --nonet --xpath "//*[local-name()='error']/@code" answer | tr -d ' "' | sed 's/code=//'; }
list()  { oai "verb=$1&metadataPrefix=oai_dc${2:+&$2}"; }
# The headers of the last answer, one a line: local name, and whether it is deleted.
headers() { { xmllint --nonet --xpath "//*[local-name()='header']" answer 2> /dev/null || true; } | tr -d '\n' |
    sed 's;</header>;\n;g' | sed 's/.*<header\( status="deleted"\)\?[^>]*>.*<identifier>oai:archive-a.example.org:\([^<]*\)<.*/\2\1/; s/ status="deleted"/ deleted/'; }
next_second() { sleep "$(date +%N | awk '{print 1.01 - $1 / 1000000000}')"; }
# What the file has of the items whose reps are in files of their own, by these files' names.
named() { for name in report data note shut gone second next made; do [ ! -e $name ] ||
    sed "s;^$(cat $name)\( deleted\)\?\$;$name\1;" -i "$1"; done; sort "$1" | paste -sd' '; }
# All headers of a list that is followed to its end, into the file all; how many answers it took.
follow() { local token count=1
    list "$1" "${2:-}"; headers > all
    while token=$(of resumptionToken); [ -n "$token" ]; do
        oai "verb=$1" -G --data-urlencode "resumptionToken=$token"; headers >> all; count=$((count + 1))
    done
    echo "$count"; }
"#;

/// A test environment whose store is served, with further options if there are any.
fn serve(env: TestEnv, options: &str) -> Fixture {
    let served = Served::start(&env, &format!("A.store {options}"));
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema/oai_answer.xsd");
    Fixture::new(env, served, format!("SCHEMA={schema}\n{ASK}"))
}

/// A report with metadata of its own item, one with a text, a removed one, and one that no user may read.
fn library() -> Fixture {
    library_in(TestEnv::new())
}

fn library_in(env: TestEnv) -> Fixture {
    let env = env.with_a();
    env.sh(r#"
        report=$(mint A report); data=$(mint A data); note=$(mint A note); shut=$(mint A shut)
        ln -sfn "$PWD/A/$data" "A/$report:"
        cat > "A/$data/doc/record.bib" <<'END'
@techreport{r, title = {Tides <of> Guanabara \& beyond}, author = {Maria Souza}, year = {2009}}
END
        echo 'title: A note' > "A/$note:"
        chmod 700 "A/$shut"
        mint A gone > gone; rm -r "A/$(cat gone)"
        echo "$report" > report; echo "$data" > data; echo "$note" > note; echo "$shut" > shut
    "#);
    serve(env, "--email keeper@example.org")
}

#[test]
fn all_six_verbs() {
    let fixture = library();
    fixture.prints(
        r#"
        oai verb=Identify
        grep -i ^content-type: head | tr -d '\r'
        for name in repositoryName protocolVersion adminEmail deletedRecord granularity; do of $name; done
        [ "$(of baseURL)" = http://archive-a.example.org/oai ]
        [ "$(of request)" = http://archive-a.example.org/oai ]
        oai verb=ListMetadataFormats
        of metadataPrefix; of schema; of metadataNamespace
        oai verb=ListSets; all setSpec; all setName
        for set in example.org:archive-a example.org; do oai "verb=ListIdentifiers&metadataPrefix=oai_dc&set=$set"; all setSpec | sort | uniq -c | tr -s ' '; done
        list ListIdentifiers; headers > all; named all
        list ListRecords; headers > all; named all
        all title; all creator
        xmllint --nonet --xpath "count(//*[local-name()='resumptionToken'])" answer
        oai "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$(cat report)"
        of title
        # It is what the mount gives.
        xmllint --nonet --xpath "//*[local-name()='dc']/*" answer | sed 's/ xmlns[:a-z]*="[^"]*"//g; s/></>\n</g' |
            sed 's/^ *//; /^$/d' > printed
        xmllint --nonet --xpath "//*[local-name()='dc']/*" "A/$(cat report):(oai_dc)" |
            sed 's/ xmlns[:a-z]*="[^"]*"//g; s/></>\n</g' | sed 's/^ *//; /^$/d' > given
        cmp printed given && wc -l < printed
        oai "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$(cat gone)"
        headers > all; named all; all metadata
        oai "verb=ListMetadataFormats&identifier=oai:archive-a.example.org:$(cat report)"; of metadataPrefix
    "#,
        "content-type: text/xml; charset=utf-8
Archive archive-a.example.org
2.0
keeper@example.org
persistent
YYYY-MM-DDThh:mm:ssZ
oai_dc
http://www.openarchives.org/OAI/2.0/oai_dc.xsd
http://www.openarchives.org/OAI/2.0/oai_dc/
example.org
example.org:archive-a
example.org
example.org/archive-a
 3 example.org:archive-a
 3 example.org:archive-a
gone deleted note report
gone deleted note report
Tides &lt;of&gt; Guanabara &amp; beyond
A note
Souza, Maria
0
Tides <of> Guanabara & beyond
7
gone deleted
oai_dc",
    );
}

/// The profile of OpenAIRE: what the public may read decides the access rights, and a record without what is mandatory
/// is in no list of it.
#[test]
fn openaire_has_what_it_requires() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        open=$(mint A open); shut=$(mint A shut); bare=$(mint A bare); none=$(mint A none)
        record() { printf '@%s{r, title = {%s}, author = {Souza, Maria and {Example Institute}}, year = {2009}, month = {2}%s}\n' "$@"; }
        record article 'Tides <of> & beyond' ', journal = {Acta}, keywords = {sea}, abstract = {High and low.}, language = {en}, publisher = {P}, copyright = {CC BY https://creativecommons.org/licenses/by/4.0/}' > text; cp text "A/$open:"
        echo x > "A/$open/doc/a b.pdf"; echo y > "A/$open/doc/data.csv"; echo z > "A/$open/doc/secret.csv"; chmod 600 "A/$open/doc/secret.csv"
        setfattr -n user.ibi.target -v 'a b.pdf' "A/$open"
        record dataset Rain ', license = {CC BY 4.0}, orcid = {0000-0002-1825-0097 Souza, Maria}' > text; cp text "A/$shut:"; echo x > "A/$shut/doc/rain.csv"; chmod 600 "A/$shut/doc/rain.csv"
        record misc Nothing ', doi = {10.1000/182}' > text; cp text "A/$bare:"
        echo 'title: No creator' > "A/$none:"; echo x > "A/$none/doc/x"
        for name in open shut bare none; do eval "echo \$$name" > $name; done
    "#);
    serve(env, "").prints(
        r#"
        inform() { oai "verb=$1&metadataPrefix=oai_openaire${2:+&$2}"; }
        of_item() { inform GetRecord "identifier=oai:archive-a.example.org:$(cat $1)"; }
        attribute() { xmllint --nonet --xpath "//*[local-name()='$1']/@$2" answer | sed 's/^ *//'; }
        inform ListRecords; of completeListSize; all title; all rights
        inform ListIdentifiers; headers > all; for name in open shut bare none; do sed "s;^$(cat $name)$;$name;" -i all; done; sort all | paste -sd' '
        of_item open; for name in creatorName familyName date resourceType description identifier subject licenseCondition language publisher citationTitle; do all $name; done | sed "s;$(cat open);OPEN;; s;/[A-Z0-9]*/[A-Z0-9]*$;/IBIP;"
        attribute resourceType uri; attribute rights rightsURI; attribute licenseCondition uri; attribute file objectType; attribute file mimeType; all file | sed "s;$(cat open);OPEN;"
        of_item shut; attribute resourceType uri; all file; all licenseCondition; attribute licenseCondition uri; all nameIdentifier
        of_item bare; attribute resourceType uri; all identifier | tail -n 1
        said() { errors "$@" | paste -sd' '; }
        said "verb=GetRecord&metadataPrefix=oai_openaire&identifier=oai:archive-a.example.org:$(cat none)"
        for name in open none; do oai "verb=ListMetadataFormats&identifier=oai:archive-a.example.org:$(cat $name)"; all metadataPrefix | paste -sd' '; done
        oai verb=ListMetadataFormats; all metadataPrefix | paste -sd' '; of schema
        # Who may read a file is part of the record.
        next_second; inform ListRecords; before=$(of responseDate); chmod 644 "A/$(cat shut)/doc/rain.csv"
        inform ListRecords "from=$before"; all title; all rights; attribute file objectType
        # What gets a creator gets the form.
        next_second; inform ListRecords; before=$(of responseDate); printf 'title: With\ncreator: Lima, Ana\n' > "A/$(cat none):"; inform ListRecords "from=$before"; all title
        "#,
        r#"
Tides &lt;of&gt; &amp; beyond
Rain
Nothing
open access
restricted access
metadata only access
bare open shut
Souza, Maria
Example Institute
Souza
2009-02
journal article
High and low.
oai:archive-a.example.org:OPEN
http://archive-a.example.org/IBIP
sea
CC BY https://creativecommons.org/licenses/by/4.0/
en
P
Acta
uri="http://purl.org/coar/resource_type/c_6501"
rightsURI="http://purl.org/coar/access_right/c_abf2"
uri="https://creativecommons.org/licenses/by/4.0/"
objectType="fulltext"
objectType="other"
mimeType="application/pdf"
mimeType="text/csv"
http://archive-a.example.org/col/OPEN/doc/a%20b.pdf
http://archive-a.example.org/col/OPEN/doc/data.csv
uri="http://purl.org/coar/resource_type/c_ddb1"
CC BY 4.0
uri="https://creativecommons.org/licenses/by/4.0/"
https://orcid.org/0000-0002-1825-0097
uri="http://purl.org/coar/resource_type/c_1843"
10.1000/182
cannotDisseminateFormat
oai_dc datacite oai_openaire
oai_dc datacite
oai_dc datacite oai_openaire
http://www.openarchives.org/OAI/2.0/oai_dc.xsd
Rain
open access
objectType="dataset"
With"#,
    );
}

/// Each error of the protocol, in a valid answer; where it is one of the arguments, these are not
/// repeated.
#[test]
fn each_error() {
    let fixture = library();
    fixture.prints(
        r#"
        said() { printf '%s: ' "$1"; errors "$@" | paste -sd' '; }
        id=oai:archive-a.example.org
        said ''; said verb=; said verb=Explain; said 'verb=Identify&verb=Identify'
        said 'verb=Identify&from=1970-01-01'; said 'verb=%'; said 'verb=%01%EF%BF%BF'
        said verb=GetRecord; said "verb=GetRecord&metadataPrefix=oai_dc"
        said "verb=GetRecord&metadataPrefix=oai_dc&identifier=%01%3C%22"
        said 'verb=ListRecords'
        said 'verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc'
        said 'verb=ListRecords&metadataPrefix=oai_dc&from=1970-02-30'
        said 'verb=ListRecords&metadataPrefix=oai_dc&from=2000-01-01&until=2001-01-01T00:00:00Z'
        said 'verb=ListRecords&metadataPrefix=oai_dc&from=2001-01-01&until=2000-01-01'
        said 'verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=x'
        said 'verb=ListRecords&resumptionToken=x'; said 'verb=ListSets&resumptionToken=x'
        said 'verb=ListIdentifiers&resumptionToken=,1,x/y%27OR%271,1,2'
        said 'verb=ListRecords&metadataPrefix=marc21'; said "verb=GetRecord&metadataPrefix=x&identifier=$id:x"
        said 'verb=ListIdentifiers&metadataPrefix=oai_dc&set=a:b'
        said 'verb=ListIdentifiers&metadataPrefix=x&set=a'
        said 'verb=ListRecords&metadataPrefix=oai_dc&until=2000-01-01'
        said 'verb=ListRecords&metadataPrefix=oai_dc&from=2999-01-01'
        for name in "x" "$id:x" "$id:sid.inpe.br/mtc-m18/2009/02.16.17.46" :: '?' "/$id" "oai:b.example.org:$(cat note)" \
            "$id:$(cat shut)" "$id:$(cat data)" "$id:$(ibip A/$(cat note))"; do
            said "verb=GetRecord&metadataPrefix=oai_dc&identifier=$name" | sed 's/.*: //'; done | uniq -c | tr -s ' '
        said "verb=ListMetadataFormats&identifier=$id:x"
        said "verb=ListMetadataFormats&identifier=$id:$(cat gone)" | sed 's/.*: //'
        errors 'verb=ListRecords&metadataPrefix=x' > x
        xmllint --nonet --xpath "//*[local-name()='request']/@*" answer | tr -d '\n'; echo
        errors 'verb=ListRecords' > x
        xmllint --nonet --xpath "count(//*[local-name()='request']/@*)" answer
    "#,
        ": badVerb
verb=: badVerb
verb=Explain: badVerb
verb=Identify&verb=Identify: badVerb
verb=Identify&from=1970-01-01: badArgument
verb=%: badArgument
verb=%01%EF%BF%BF: badVerb
verb=GetRecord: badArgument badArgument
verb=GetRecord&metadataPrefix=oai_dc: badArgument
verb=GetRecord&metadataPrefix=oai_dc&identifier=%01%3C%22: idDoesNotExist
verb=ListRecords: badArgument
verb=ListRecords&metadataPrefix=oai_dc&metadataPrefix=oai_dc: badArgument
verb=ListRecords&metadataPrefix=oai_dc&from=1970-02-30: badArgument
verb=ListRecords&metadataPrefix=oai_dc&from=2000-01-01&until=2001-01-01T00:00:00Z: badArgument
verb=ListRecords&metadataPrefix=oai_dc&from=2001-01-01&until=2000-01-01: badArgument
verb=ListRecords&metadataPrefix=oai_dc&resumptionToken=x: badArgument
verb=ListRecords&resumptionToken=x: badResumptionToken
verb=ListSets&resumptionToken=x: badResumptionToken
verb=ListIdentifiers&resumptionToken=,1,x/y%27OR%271,1,2: badResumptionToken
verb=ListRecords&metadataPrefix=marc21: cannotDisseminateFormat
verb=GetRecord&metadataPrefix=x&identifier=oai:archive-a.example.org:x: cannotDisseminateFormat
verb=ListIdentifiers&metadataPrefix=oai_dc&set=a:b: noRecordsMatch
verb=ListIdentifiers&metadataPrefix=x&set=a: cannotDisseminateFormat
verb=ListRecords&metadataPrefix=oai_dc&until=2000-01-01: noRecordsMatch
verb=ListRecords&metadataPrefix=oai_dc&from=2999-01-01: noRecordsMatch
 10 idDoesNotExist
verb=ListMetadataFormats&identifier=oai:archive-a.example.org:x: idDoesNotExist
noMetadataFormats
 verb=\"ListRecords\" metadataPrefix=\"x\"
0",
    );
}

/// A client that asks from the date of its last answer gets each change since, whatever made it, and of
/// nothing else that is a second older.
#[test]
fn no_change_is_missed() {
    let fixture = library();
    fixture
        .env
        .sh("R=$(mint A second); echo $R > second; N=$(mint A next); echo $N > next");
    fixture.prints(
        r#"
        # What is printed since the last visit, which was in a later second than the change before it.
        visit() { next_second; list ListIdentifiers; since=$(of responseDate)
            eval "$2"
            list ListIdentifiers "from=$since"; headers > since; printf '%s: ' "$1"; named since; }
        follow ListIdentifiers > /dev/null; named all
        visit nothing :
        visit 'metadata text' 'echo "title: Another" > "A/$(cat note):"'
        visit 'file of the metadata' 'sed -i s/Tides/Waves/ "A/$(cat data)/doc/record.bib"'
        visit 'its time set back' 'sed -i s/Waves/Winds/ "A/$(cat data)/doc/record.bib"
            touch -d 2001-01-01 "A/$(cat data)/doc/record.bib" "A/$(cat data)/doc"'
        visit 'content' 'echo x > "A/$(cat note)/doc/x"'
        visit 'language in the sidecar' 'sed -i "\$a language en" "A/$(cat second)/.ibi"'
        visit 'next edition' 'ln -sfn "$PWD/A/$(cat next)" "A/$(cat second)!"'
        visit 'no next edition' 'ibifs unrelate "A/$(cat second)" --next-edition'
        visit 'metadata of another' 'ln -sfn "$PWD/A/$(cat next)" "A/$(cat second):"'
        visit 'and no longer' 'ibifs unrelate "A/$(cat second)" --metadata'
        visit 'shut' 'chmod 700 "A/$(cat note)"'
        visit 'opened' 'chmod 755 "A/$(cat note)" "A/$(cat shut)"'
        visit 'metadata shut' 'chmod 700 "A/$(cat data)"'
        visit 'removed' 'rm -r "A/$(cat second)"'
        visit 'removed, its metadata not' 'rm -rf "A/$(cat report)"; [ -e "A/$(cat data)" ]'
        visit 'made' 'mint A made > made; true'
        follow ListIdentifiers > /dev/null; named all
    "#,
        "gone deleted next note report second
nothing: 
metadata text: note
file of the metadata: report
its time set back: report
content: 
language in the sidecar: second
next edition: next second
no next edition: next second
metadata of another: next deleted
and no longer: next
shut: note deleted
opened: note shut
metadata shut: report deleted
removed: second deleted
removed, its metadata not: 
made: made
gone deleted made next note report deleted second deleted shut",
    );
}

/// Hundreds of items are had whole in parts, while some go and come, with tokens that outlive the
/// service; what is made up instead of a token does no harm.
#[test]
fn lists_in_parts() {
    let env = TestEnv::new();
    env.sh(r#"
        here=sid.inpe.br/mtc-m18/2009
        mkdir -p A.store/col/$here/02.{10..19}.17.{10..34} A
        ibifs init --adopt A.store --host archive-a.example.org > /dev/null; ibifs mount A.store A
        printf '%s\n' $here/02.1{0,5,9}.17.12 > early
        rm -r $(sed 's;^;A/;' early)
    "#);
    let fixture = serve(env, "");
    fixture.prints(
        r#"
        follow ListRecords
        sort -u all | wc -l; grep -c ' deleted$' all
        sed 's/ deleted//' all | sort -u | wc -l
        for rep in $(cat early); do grep -c "^$rep deleted$" all; done | uniq -c | tr -s ' '
        # While it is followed, an item is removed whose record was printed.
        list ListRecords; headers > all; token=$(of resumptionToken)
        # In a later second than that of the others: a list has the records of a second by their names.
        sleep 1.1; first=$(sed '/deleted/d; q' all); rm -r "A/$first"; echo "$first" > first
        echo "$token" > token
    "#,
        "3\n250\n3\n250\n 3 1",
    );
    let fixture = serve(fixture.end(), "");
    fixture.prints(
        r#"
        first=$(cat first); token=$(cat token)
        while oai verb=ListRecords -G --data-urlencode "resumptionToken=$token"; headers >> all
            token=$(of resumptionToken); [ -n "$token" ]; do :; done
        # Noticed at the next list, printed at its end: lists are by whole seconds.
        sleep 1.1
        list ListRecords > x; token=$(of resumptionToken)
        sed 's/ deleted//' all | sort -u | wc -l
        follow ListIdentifiers; tail -1 all | sed "s;^$first;first;"
        # Made up: a list that begins elsewhere.
        all='8JMKD3MGP8W/34PGRBS'
        for token in ",0,$all" "0,0,$all" ",253402300799,$all" "253402300799,253402300799,$all"; do
            errors verb=ListIdentifiers -G --data-urlencode "resumptionToken=$token" 2> /dev/null || headers | wc -l
        done
    "#,
        "250\n1\nfirst deleted\n250\nnoRecordsMatch\nnoRecordsMatch\nnoRecordsMatch",
    );
}

/// The same by POST and by HEAD; what is refused.
#[test]
fn methods() {
    let fixture = library();
    fixture.prints(
        r#"
        oai '' -d verb=Identify; of repositoryName
        oai verb=Explain -d 'verb=ListIdentifiers&metadataPrefix=oai_dc'; headers | wc -l
        oai '' -H 'Content-Type: application/x-www-form-urlencoded; charset=utf-8' -d verb=ListMetadataFormats
        of metadataPrefix
        curl -sSI "$U/oai?verb=Identify" | sed -n '1s/\r//p'
        code() { status "$U/oai" "$@"; }
        code -X POST; code -H 'Content-Type: text/xml' -d verb=Identify
        head -c 65536 /dev/zero | tr '\0' x > most; echo x | cat most - > more
        code -d @most; code -d @more; code -d $'verb=\xff'; code -X PUT -d verb=Identify; code -X DELETE
        status "$U/" -d verb=Identify; status "$U/oai/" -d verb=Identify; status "$U/col/oai" -d verb=Identify
        status "$U/oai/"
    "#,
        "Archive archive-a.example.org
3
oai_dc
HTTP/1.1 200 OK
415
415
200
413
400
405
405
405
405
405
404",
    );
}

/// The records of reported items outlive the service; where they cannot be stored, all are reported again.
#[test]
fn reported_records_outlive_the_service() {
    // The same with a database server: `postgres::services_of_several_hosts`.
    let fixture = library_in(TestEnv::new().with_index_file());
    let dates = r#"list ListIdentifiers; all datestamp | sort"#;
    let before = fixture.sh(dates);
    fixture
        .env
        .prints("stat -c %A A.store/harvest.sqlite3", "-rw-r--r--");
    let env = fixture.end();
    env.sh("sleep 1.1; ibifs umount A; ibifs fsck A.store; ibifs reindex A.store; ibifs mount A.store A");
    let fixture = serve(env, "");
    assert_eq!(fixture.sh(dates), before);
    let env = fixture.end();
    // It is a backup's, which has none of it.
    env.sh("ibifs backup A.store D > /dev/null; [ ! -e D/harvest.sqlite3 ]");
    // It is lost, and something else has its name.
    env.sh("sleep 1.1; rm A.store/harvest.sqlite3*; touch victim; ln -s ../victim A.store/harvest.sqlite3");
    let fixture = serve(env, "");
    assert_ne!(fixture.sh(dates), before);
    fixture.prints(
        "oai verb=Identify; of deletedRecord; wc -c < victim",
        "transient\n0",
    );
}

/// Metadata of what is held elsewhere, an item with an IBIp alone, and the Archive's service.
#[test]
fn which_items_have_records() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        item() { mkdir -p "A/$1"; printf '%s\n' "${@:2}" > "A/$1/.ibi"; }
        other=sid.inpe.br/mtc-m18/2009
        item $other/02.16.17.46 "ibi {rep $other/02.16.17.46}" "ibi.archiveservice {rep $other/01.01.00.00}" \
            "ibi.metadataof {rep $other/02.16.17.40}"
        mkdir -p A/sid.inpe.br/MTC-m19@80/2010/01.01.00.00
        mkdir -p A/8JMKD3MGP8W/34PGRBS
    "#);
    let fixture = serve(env, "");
    fixture.prints(
        r#"
        list ListIdentifiers; headers | sort
        oai "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:ARCHIVE-a.example.org:sid.inpe.br/MTC-M19@80/2010/01.01.00.00"
        headers; all identifier | head -2
    "#,
        "8JMKD3MGP8W/34PGRBS
sid.inpe.br/mtc-m18/2009/02.16.17.46
sid.inpe.br/mtc-m19@80/2010/01.01.00.00
sid.inpe.br/mtc-m19@80/2010/01.01.00.00
oai:archive-a.example.org:sid.inpe.br/mtc-m19@80/2010/01.01.00.00
sid.inpe.br/MTC-m19@80/2010/01.01.00.00",
    );
}
