//! The answers for programs: content negotiation, signposts, the head of a page, robots.txt and the site map.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// Asking for the item in the file `report`, with the headers of the answer in the file `head`.
const ASK: &str = r#"
R=$(cat report); I=$(ibip "A/$R")
# It is asked again while the records are being updated, which takes longer on a busy machine.
ask()   { local end=$((SECONDS + 60))
    while curl -sS --globoff -D head -o body "$U$1" "${@:2}" || return; tr -d '\r' < head > lines
        [ "$(code)" = 503 ] && [ $SECONDS -lt $end ]; do sleep 0.2; done; }
code()  { sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' lines; }
line()  { sed -n "s/^$1: //Ip" lines; }
links() { line link | sed 's/, </\n</g' | sed "s;http://archive-a.example.org;U;; s;$(< pt);PT;; s;$(< next);NEXT;; s;$R;R;; s;$I;I;"; }
"#;

fn library() -> Fixture {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        report=$(mint A report); next=$(mint A next); pt=$(mint A pt)
        printf '%01234d' 0 > "A/$report/doc/report.pdf"; echo x > "A/$report/doc/data.csv"
        setfattr -n user.ibi.target -v report.pdf "A/$report"
        ln -sfn "$PWD/A/$next" "A/$report!"; ln -sfn "$PWD/A/$pt" "A/$report+(pt)"
        cat > record <<'END'
@article{r, title = {Tides </script><b> & "more"}, author = {Souza, Maria and Lima, Ana}, year = {2009}, month = {2}, journal = {Acta}, pages = {10--12}, doi = {10.1000/182}, copyright = {CC BY https://creativecommons.org/licenses/by/4.0/}}
END
        cp record "A/$report:"
        secret=$(mint A secret); chmod 700 "A/$secret"
        echo "$report" > report; echo "$next" > next; echo "$pt" > pt; echo "$secret" > secret
    "#);
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, ASK)
}

/// A citation in a style, Dublin Core in Turtle, and the other name of BibTeX.
#[test]
fn citations_and_turtle_are_negotiated() {
    library().prints(
        r#"
        accept() { ask "/$R" -H "Accept: $1"; echo "$(code) $(line content-type)"; }
        accept text/x-bibliography; grep -o '^Souza, M[^(]*(2009' body
        accept 'text/x-bibliography; style=ieee'; grep -o '^.*Souza' body; accept 'text/x-bibliography; style=none'
        accept application/bibtex; grep -c '^@' body; accept text/turtle; grep -e 'dc:title' -e dc:creator body
        "#,
        r#"200 text/x-bibliography; charset=utf-8
Souza, M., & Lima, A. (2009
200 text/x-bibliography; charset=utf-8
M. Souza
400 text/plain; charset=utf-8
200 application/bibtex; charset=utf-8
1
200 text/turtle; charset=utf-8
    dc:title "Tides </script><b> & \"more\"" ;
    dc:creator "Souza, Maria" ;
    dc:creator "Lima, Ana" ;"#,
    );
}

/// `lastmod` is the time of what was read: a description that is overwritten in place moves it in both lists, the record
/// of a metadata item in that of the descriptions, and a file of the item in that of the pages.
#[test]
fn the_last_change_is_that_of_what_was_read() {
    let library = library();
    let times = || {
        // A list is cached for ten seconds.
        std::thread::sleep(std::time::Duration::from_secs(11));
        library.sh(
            r#"for list in resourcelist-0 sitemap-0; do
                ask "/$list.xml"; grep -o "$R[:?][^<]*</loc><lastmod>[^<]*" body | sed 's/.*lastmod>//'
            done"#,
        )
    };
    library.sh(
        "find A/$R -exec touch -d 2020-01-02T03:04:05Z {} +; data=$(ibifs mint A | head -n 1); echo $data > data
         touch -d 2020-01-02T03:04:05Z A/$R/.ibi.metadata 'A.store/col/'$R/.ibi 'A.store/col/'$R/.ibi.metadata",
    );
    let before = "2020-01-02T03:04:05Z\n2020-01-02T03:04:05Z";
    assert_eq!(times(), before);
    library.sh("touch -d 2031-01-01T00:00:00Z A.store/col/$R/.ibi.metadata");
    assert_eq!(times(), "2031-01-01T00:00:00Z\n2031-01-01T00:00:00Z");
    library.sh("mkdir -p A/$R/doc/sub; echo x > A/$R/doc/sub/x; touch -d 2032-01-01T00:00:00Z A/$R/doc/sub/x");
    assert_eq!(times(), "2031-01-01T00:00:00Z\n2032-01-01T00:00:00Z");
    library.sh(
        "ln -sfn \"$PWD/A/$(< data)\" \"A/$R:\"; touch -d 2033-01-01T00:00:00Z A/$(< data)/doc",
    );
    assert_eq!(times(), "2033-01-01T00:00:00Z\n2033-01-01T00:00:00Z");
}

#[test]
fn a_description_is_negotiated() {
    library().prints(
        r#"
        accept() { ask "/$R" -H "Accept: $1"; echo "$(code) $(line content-type) $(line vary | sed 's/, Accept-Encoding//')"; }
        accept application/x-bibtex; sed -n '/title/p' body
        accept application/x-research-info-systems; tr -d '\r' < body | sed "s;$I;I;g"
        accept application/vnd.citationstyles.csl+json; jq -r '.[0].title' body
        accept application/ld+json; jq -r '.["@type"]' body
        accept application/vnd.datacite.datacite+xml; xmllint --noout body
        accept application/vnd.datacite.datacite+json; jq -r '.doi, .types.resourceTypeGeneral' body
        accept 'application/x-bibtex;q=0.4, application/ld+json'
        # Who names no format gets what all readers get.
        accept '*/*'; accept text/html; accept application/pdf; accept 'text/html, application/ld+json;q=0.9'
        accept application/json; jq -r .title body
        accept image/png; grep -c application/x-bibtex body
        ask "/$(cat next)" -H 'Accept: image/png'; code
        ask "/$(cat secret)" -H 'Accept: application/x-bibtex'; code
        ask "/$R!" -H 'Accept: application/x-bibtex'; code; grep -c Tides body || true
        "#,
        r#"200 application/x-bibtex; charset=utf-8 Accept
  title = {{Tides </script><b> \& "more"}},
200 application/x-research-info-systems; charset=utf-8 Accept
TY  - JOUR
AU  - Souza, Maria
AU  - Lima, Ana
TI  - Tides </script><b> & "more"
PY  - 2009
DA  - 2009/02//
JO  - Acta
SP  - 10
EP  - 12
DO  - 10.1000/182
ID  - I
UR  - http://archive-a.example.org/I
ER  - 
200 application/vnd.citationstyles.csl+json Accept
Tides </script><b> & "more"
200 application/ld+json Accept
ScholarlyArticle
200 application/vnd.datacite.datacite+xml; charset=utf-8 Accept
200 application/vnd.datacite.datacite+json Accept
10.1000/182
JournalArticle
200 application/ld+json Accept
302 text/plain; charset=utf-8 Accept
302 text/plain; charset=utf-8 Accept
302 text/plain; charset=utf-8 Accept
302 text/plain; charset=utf-8 Accept
200 application/json Accept, Accept-Language
Tides </script><b> & "more"
406 text/plain; charset=utf-8 Accept
1
406
404
200
0"#,
    );
}

#[test]
fn links_lead_programs_to_what_belongs_to_an_item() {
    library().prints(
        r#"
        ask "/$R"; code; line location | sed "s;$R;R;"; links | grep -E 'cite-as|linkset|collection|ibtex'
        ask "/$R?page"; code; line content-type; links | grep -v describedby
        ask "/$R?linkset"; line content-type
        jq -r '.linkset[0] | .anchor, (keys - ["anchor"] | join(" ")), .item[0].type, .alternate[0].hreflang[0]' body | sed "s;$R;R;"
        ask "/$(cat secret)?page"; code; ask "/$(cat secret)?linkset"; code
        "#,
        r#"302
/col/R/doc/report.pdf
<U/I>; rel="cite-as"
<U/R?linkset>; rel="linkset"; type="application/linkset+json"
<U/R:(BibINPE)>; rel="describedby"; type="application/x-bibtex"
<U/R:(bibtex)>; rel="describedby"; type="application/x-bibtex"
<U/R?page>; rel="collection"; type="text/html"
200
text/html; charset=utf-8
<U/I>; rel="cite-as"
<U/R?linkset>; rel="linkset"; type="application/linkset+json"
<https://schema.org/AboutPage>; rel="type"
<https://schema.org/ScholarlyArticle>; rel="type"
<https://creativecommons.org/licenses/by/4.0/>; rel="license"
<U/col/R/doc/data.csv>; rel="item"; type="text/csv"
<U/col/R/doc/report.pdf>; rel="item"; type="application/pdf"
<U/archive.cgi/R>; rel="item"; type="application/zip"
<U/NEXT>; rel="latest-version"
<U/NEXT>; rel="successor-version"
<U/PT>; rel="alternate"; hreflang="pt"
application/linkset+json
http://archive-a.example.org/R?page
alternate cite-as describedby item latest-version license linkset successor-version type
text/csv
pt
404
404"#,
    );
}

#[test]
fn the_head_of_a_page_describes_its_item() {
    library().prints(
        r#"
        ask "/$R?page"
        xmllint --noout body
        grep -o '<meta name="citation_[^>]*>' body | sed "s;$U;U;; s;$R;R;"
        python3 - body <<'END'
import html.parser, json, sys
class Reader(html.parser.HTMLParser):
    inside = False
    def handle_starttag(self, tag, attributes): self.inside = tag == 'script' and dict(attributes)
    def handle_endtag(self, tag): self.inside = False
    def handle_data(self, data):
        if self.inside: print(self.inside, json.loads(data)['name'])
Reader().feed(open(sys.argv[1]).read())
END
        "#,
        r#"<meta name="citation_title" content="Tides &lt;/script&gt;&lt;b&gt; &amp; &quot;more&quot;" />
<meta name="citation_author" content="Souza, Maria" />
<meta name="citation_author" content="Lima, Ana" />
<meta name="citation_publication_date" content="2009/02" />
<meta name="citation_journal_title" content="Acta" />
<meta name="citation_doi" content="10.1000/182" />
<meta name="citation_abstract_html_url" content="http://archive-a.example.org/R?page" />
<meta name="citation_pdf_url" content="http://archive-a.example.org/col/R/doc/report.pdf" />
{'type': 'application/ld+json'} Tides </script><b> & "more""#,
    );
}

#[test]
fn search_engines_find_all_that_is_public() {
    library().prints(
        r#"
        ask /robots.txt; line content-type; sed "s;$U;U;" body
        ask /sitemap.xml; xmllint --noout body; grep -o '<loc>.*</loc>' body | sed "s;$U;U;"
        ask /sitemap-0.xml; line content-type; xmllint --noout body
        grep -c '<loc>' body; grep -c "<loc>http://archive-a.example.org/$R?page</loc><lastmod>20" body; grep -c "$(cat secret)" body || true
        # Every page of the map is there.
        grep -o '<loc>[^<]*' body | sed "s;<loc>http://archive-a.example.org;$U;" | while read -r url; do curl -sS -o /dev/null -w '%{http_code}\n' "$url"; done | uniq -c | tr -s ' '
        ask /sitemap-1.xml; code; grep -c '<loc>' body || true
        for name in 00 -1 x 99999999999999999999 999999999999999999; do ask "/sitemap-$name.xml"; code; done | tr '\n' ' '
        "#,
        "text/plain; charset=utf-8\nUser-agent: *\nDisallow: /archive.cgi/\nDisallow: /dav/\n\
         Sitemap: http://archive-a.example.org/sitemap.xml\n\
         <loc>http://archive-a.example.org/sitemap-0.xml</loc>\n\
         application/xml; charset=utf-8\n4\n1\n0\n 4 200\n404\n0\n404 404 404 404 404 ",
    );
}

/// Aggregators go from the well-known place to the list of all descriptions (ResourceSync).
#[test]
fn aggregators_find_all_descriptions() {
    library().prints(
        r#"
        path=.well-known/resourcesync
        for step in 1 2 3 4; do
            ask "/$path"; code; xmllint --noout body; grep -o 'rs:md capability="[a-z]*"' body | head -n 1
            path=$(grep -o '<loc>[^<]*' body | head -n 1 | sed 's;<loc>http://[^/]*/;;')
        done
        grep -c '<url>' body; grep -c "/$R:(oai_dc)</loc><lastmod>20[^<]*</lastmod><rs:md type=\"application/xml\"/><rs:ln rel=\"describes\" href=\"http://archive-a.example.org/$R\"/>" body
        grep -c "$(cat secret)" body || true
        ask "/$path" -g; code; grep -c '<oai_dc:dc' body; ask /resourcelist-1.xml; code; ask /.well-known/other; code
        "#,
        "200\nrs:md capability=\"description\"\n200\nrs:md capability=\"capabilitylist\"\n200\nrs:md capability=\"resourcelist\"\n\
         200\nrs:md capability=\"resourcelist\"\n3\n1\n0\n200\n1\n404\n404",
    );
}

/// A client of ResourceSync with the resource list alone, and with the list of changes after it.
const AGGREGATOR: &str = r#"
cat > aggregate.py <<'END'
import sys, time, urllib.request, xml.etree.ElementTree as E
S, R = "{http://www.sitemaps.org/schemas/sitemap/0.9}", "{http://www.openarchives.org/rs/terms/}"
here = sys.argv[1]

def got(url):
    url = url.replace("http://archive-a.example.org", here)
    while True:
        try:
            with urllib.request.urlopen(url) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(.2)

def read(url):
    return E.fromstring(got(url))

def leads(root, capability):
    [loc] = [u.find(S + "loc").text for u in root if u.tag == S + "url" and u.find(R + "md").get("capability") == capability]
    return loc

def entries(index):
    for part in index.findall(S + "sitemap"):
        for url in read(part.find(S + "loc").text).findall(S + "url"):
            yield url.find(S + "loc").text, url.find(R + "md")

source = read(here + "/.well-known/resourcesync")
capabilities = read(leads(source, "capabilitylist"))

def baseline():
    index = read(leads(capabilities, "resourcelist"))
    return index.find(R + "md").get("at"), {loc: got(loc) for loc, _ in entries(index)}

def changed(held, since):
    index = read(leads(capabilities, "changelist"))
    md = index.find(R + "md")
    assert md.get("capability") == "changelist"
    if md.get("from") > since:
        print("all again")
        return baseline()
    told = []
    for loc, md in entries(index):
        if md.get("datetime") <= since:
            continue
        told.append(md.get("change"))
        if md.get("change") == "deleted":
            held.pop(loc, None)
        else:
            held[loc] = got(loc)
    print(*sorted(told))
    return md_until(index), held

def md_until(index):
    return index.find(R + "md").get("until")
END
"#;

/// A client that takes the resource list once and then only the changes has what the resource list has.
#[test]
fn aggregators_find_what_has_changed() {
    let fixture = library();
    fixture.prints(
        &format!(
            r#"{AGGREGATOR}
        ask /changelist.xml; code
        cat > sync.py <<'END'
from aggregate import *
import subprocess
def step(script):
    subprocess.run(["bash", "-euc", script], check=True, stdout=subprocess.DEVNULL)
# Only changes after all was noticed once are told.
got(here + "/changelist.xml")
time.sleep(1.1)
since, held = baseline()
print(len(held))
for script in ["mkdir A/.mint/new; echo 'title: Other' > A/$(cat next):; rm -r A/$(cat pt)",
               "chmod 700 A/$(cat next)",
               "chmod 755 A/$(cat next); rm -r A/$(cat report)"]:
    step(script)
    since, held = changed(held, since)
    _, whole = baseline()
    print(held == whole, len(held))
since, held = changed(held, since)
END
        python3 sync.py "$U"
        ask /changelist.xml; xmllint --noout body; grep -o 'rs:ln[^>]*' body | head -n 1
        ask "$(grep -o '/changelist-[0-9]*.xml' body | tail -n 1)"; xmllint --noout body; grep -o '<rs:md change="deleted"[^>]*' body | sed 's/20[^"]*Z/T/'; grep -c "$(cat secret)" body || true
        for name in -1 00 x 99999999999 99999999999999999999; do ask "/changelist-$name.xml"; code; done | tr '\n' ' '"#
        ),
        "200\n3\ncreated deleted updated updated\nTrue 3\ndeleted updated\nTrue 2\ncreated deleted\nTrue 2\n\n\
         rs:ln rel=\"up\" href=\"http://archive-a.example.org/capabilitylist.xml\"/\n\
         <rs:md change=\"deleted\" datetime=\"T\"/\n<rs:md change=\"deleted\" datetime=\"T\"/\n0\n404 404 404 404 404 ",
    );
}

/// The page leads to citations, which are made on request.
#[test]
fn items_are_cited() {
    library().prints(
        r#"
        ask "/$R?page"; grep -o "href=\"/$R?cite=[a-z]*\"" body | sed "s;$R;R;" | head -n 2
        ask "/$R?cite=abnt"; code; line content-type; line vary; cat body
        ask "/$R?cite=abnt" -H 'Accept-Language: pt-BR'; cat body
        ask "/$R?cite=none"; code; cat body | head -c 30; echo; ask "/$(cat secret)?cite=apa"; code; ask "/$R?cite=%ff"; code
        "#,
        r#"href="/R?cite=abnt"
href="/R?cite=apa"
200
text/plain; charset=utf-8
Accept-Language
SOUZA, Maria; LIMA, Ana. Tides </script><b> & "more". Acta, p. 10–12, Feb. 2009.
SOUZA, Maria; LIMA, Ana. Tides </script><b> & "more". Acta, p. 10–12, fev. 2009.
400
'none' is not a style; the sty
404
302"#,
    );
}

/// The latest items as a feed, and how a browser searches.
#[test]
fn feeds_and_searches_are_announced() {
    library().prints(
        r#"
        ask /; grep -o '<link rel="[^"]*" type="[^"]*"' body
        ask /feed.atom; line content-type; xmllint --noout body; grep -c '<entry>' body; grep -c "$(cat secret)" body || true
        python3 - body <<'END'
import sys, xml.etree.ElementTree as E
A = "{http://www.w3.org/2005/Atom}"
feed = E.parse(sys.argv[1]).getroot()
print([t for e in feed.findall(A + "entry") if (t := e.find(A + "title").text).startswith("Tides")], feed.find(A + "updated").text[:2], feed.find(A + "link").get("href"))
END
        ask /opensearch.xml; line content-type; xmllint --noout body; grep -o 'template="[^"]*"' body
        "#,
        r#"<link rel="alternate" type="application/atom+xml"
<link rel="search" type="application/opensearchdescription+xml"
application/atom+xml; charset=utf-8
4
0
['Tides </script><b> & "more"'] 20 http://archive-a.example.org/
application/opensearchdescription+xml; charset=utf-8
template="http://archive-a.example.org/search?q={searchTerms}""#,
    );
}

/// Texts of the service are compressed for who accepts it, and the same without; files of items are not, since a
/// part of a file is a part of its own bytes.
#[test]
fn texts_are_compressed() {
    let fixture = library();
    fixture.prints(
        r#"
        seq 100000 > "A/$(cat report)/doc/numbers.txt"
        head() { curl -sS -o got -D head "$U$1" "${@:2}"; tr -d '\r' < head | grep -i '^content-encoding' || echo plain; }
        for path in "/$(cat report)?page" '/oai?verb=ListRecords&metadataPrefix=oai_dc'; do
            head "$path" -H 'Accept: */*'; mv got whole; grep -ci '^vary:.*accept-encoding' head
            head "$path" -H 'Accept-Encoding: gzip'; gunzip < got | sed 's;<responseDate>[^<]*;;' > one
            sed 's;<responseDate>[^<]*;;' whole | cmp - one; test $(stat -c %s got) -lt $(($(stat -c %s whole) / 2))
            head "$path" -H 'Accept-Encoding: gzip;q=0.5, zstd'; test "$(od -An -tx1 -N4 got)" = ' 28 b5 2f fd'
            head "$path" -H 'Accept-Encoding: gzip;q=0, br'
            head "$path" -I -H 'Accept-Encoding: gzip'
        done
        head "/col/$(cat report)/doc/numbers.txt" -H 'Accept-Encoding: gzip, zstd'; seq 100000 | cmp - got
        head "/col/$(cat report)/doc/numbers.txt" -H 'Accept-Encoding: gzip' -r 10-19; stat -c %s got
        head /robots.txt -H 'Accept-Encoding: gzip'
        "#,
        "plain\n1\ncontent-encoding: gzip\ncontent-encoding: zstd\nplain\ncontent-encoding: gzip\n\
         plain\n1\ncontent-encoding: gzip\ncontent-encoding: zstd\nplain\ncontent-encoding: gzip\n\
         plain\nplain\n10\nplain",
    );
}

/// A service informs what an item is and what is promised of its identifier, as ARKs have it; the administrator says
/// what is promised.
#[test]
fn an_item_informs_of_its_commitment() {
    let fixture = library();
    fixture.prints(
        r#"
        ask "/$R?info"; code; line content-type; sed "s;http://[^ ]*/$(ibip A/$R);LINK;" body
        ask "/$(cat next)?info"; sed -n 2,3p body; ask "/$(cat secret)?info"; code
        "#,
        "200\ntext/plain; charset=utf-8\nerc:\nwho: Souza, Maria; Lima, Ana\nwhat: Tides </script><b> & \"more\"\n\
         when: 2009-02\nwhere: LINK\nerc-support:\nwho: archive-a.example.org\n\
         what: The identifier is never given to another item. If the item is removed from this Archive, its name and \
         the date of the removal are kept.\nwhere: http://archive-a.example.org/\n\
         who: (:unav)\nwhat: (:unav)\n404",
    );
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; echo 'commitment {Kept for 100 years, or longer.}' >> A.store/archive.ibi");
    Served::start(&env, "A.store").prints(
        &env,
        "get \"$U/$(cat one)?info\" | grep 'Kept'; ibifs umount A; ibifs fsck A.store | tail -n 1",
        "what: Kept for 100 years, or longer.\n2 items, 0 findings",
    );
}
