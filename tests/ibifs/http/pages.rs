//! Pages for people: what they say, in two languages and as JSON, and that nothing in an item can
//! make them say or do anything else.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// Asking a page of the server `$A`, with its headers in the file `head`.
const ASK: &str = r#"
A=${U#http://}
get()  { curl -sS --globoff --path-as-is -D head -o body "${@:2}" "http://$A$1"; cat body; }
pt()   { get "$1" -H 'Accept-Language: pt-BR,pt;q=0.9,en;q=0.5' "${@:2}"; }
json() { get "$1" -H 'Accept: application/json' "${@:2}"; }
code() { get "$@" > /dev/null; sed -n '1s/[^ ]* \([0-9]*\).*/\1/p' head; }
# What is asked of the page, as XML.
has()  { xmllint --nonet --xpath "$1" body; }
"#;

/// A test environment whose store is served.
fn serve(env: TestEnv) -> Fixture {
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, ASK)
}

/// `lang=` in the query has precedence over the header, and is not part of the requested path.
#[test]
fn a_reader_chooses_the_language_by_the_query() {
    let library = serve(library());
    library.prints(
        r#"R=$(cat gone); lang() { get "$1" "${@:2}" > /dev/null; sed -n 's/^content-language: //p' head | tr -d '\r'; }
        lang '/?lang=pt'; lang '/?lang=en' -H 'Accept-Language: pt'; lang '/?lang=xx,' -H 'Accept-Language: pt'; lang '/'
        lang '/search?q=Tides&lang=pt-BR'; grep -q Tides body && echo found; lang "/$R?page&lang=pt"; lang "/$R?lang=pt&page"; lang '/?x=1&lang=pt&y=2'"#,
        "pt\nen\npt\nen\npt\nfound\npt\npt\npt",
    );
}

/// The pages say so where the files of an item may not be read; where there are none, that there are none.
#[test]
fn restricted_files_are_called_so() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs mint A | head -n 1 > shut; echo x > A/$(< shut)/doc/x; chmod 700 A/$(< shut)/doc
            ibifs mint A | head -n 1 > none; ibifs mint A | head -n 1 > one; echo x > A/$(< one)/doc/x; chmod 600 A/$(< one)/doc/x
            echo 'contact curator@library.example.org' >> A.store/archive.ibi; ibifs umount A; ibifs mount A.store A");
    let served = serve(env);
    served.prints(
        r#"for item in $(cat shut one none); do for query in page ibiurl.verblist=GetFileList; do
            get "/$item?$query" > /dev/null; grep -o 'There are no public files\|Access to the files of this item is restricted' body
        done; done | uniq -c | tr -s ' '; pt "/$(cat shut)?page" | grep -c 'é restrito'; get "/$(cat shut)?page" > /dev/null; grep -o 'mailto:[^"]*' body
        curl -s "$U/oai?verb=Identify" | grep -o 'adminEmail>[^<]*' | head -n 1"#,
        " 4 Access to the files of this item is restricted\n 2 There are no public files\n1\nmailto:curator@library.example.org\nadminEmail>curator@library.example.org",
    );
    let env = served.end();
    let asked = r#"curl -s "$U/$(cat shut)?page" | grep -o 'mailto:[^"]*'"#;
    Served::start(&env, "A.store --email desk@library.example.org").prints(
        &env,
        asked,
        "mailto:desk@library.example.org",
    );
    env.exits(
        "sed -i 's/^contact .*/contact nobody/' A.store/archive.ibi; ibifs umount A; ibifs mount A.store A",
        1,
    );
}

/// A report of two editions with a translation and metadata, and what else an Archive holds.
fn library() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        report=$(mint A report); next=$(mint A next); pt=$(mint A pt); data=$(mint A data)
        printf '%01234d' 0 > "A/$report/doc/report.pdf"
        mkdir "A/$report/doc/figures"
        echo one > "A/$report/doc/figures/1 & 2.txt"
        touch -d 2009-02-16T17:46:05Z "A/$report/doc/report.pdf"
        sed -i '$a language en' "A/$report/.ibi"
        ln -sfn "$PWD/A/$next" "A/$report!"
        ln -sfn "$PWD/A/$pt" "A/$report+(pt)"
        ln -sfn "$PWD/A/$data" "A/$report:"
        cat > "A/$data/doc/record.bib" <<'END'
@techreport{r, title = {Tides <of> Guanabara \& beyond}, author = {Maria Souza}, year = {2009}}
END
        mint A gone > gone; rm -r "A/$(cat gone)"
        echo "$report" > report; echo "$next" > next; echo "$pt" > pt; echo "$data" > data
    "#);
    env
}

#[test]
fn an_item_in_english() {
    let fixture = serve(library());
    fixture.prints(
        r#"
        R=$(cat report)
        get "/col/$R/" > /dev/null
        sed -n '1s/\r//p' head
        grep -i -E '^(vary|content-type|content-language):' head | tr -d '\r' | sort
        has 'string(/*[local-name()="html"]/@lang)'
        has 'string(//*[local-name()="h1"])'
        grep -c "<code>$R</code>" body
        grep -c "<code>$(ibip A/$R)</code>" body
        sed -n '/<body/,$p' body | grep -o "http://archive-a.example.org/[^\"<]*" | sort -u | sed "s;$(ibip A/$R);IBIP;"
        grep -o "<a href=\"/$(cat next)?page\"" body | sort | uniq -c | tr -s ' '
        grep -o "href=\"/$(cat pt)?page\"" body | wc -l
        grep -o "href=\"/$(cat data)?page\"" body | wc -l
        grep -o '<dt>[^<]*</dt>' body | sed 's/<[^>]*>//g'
        grep -o 'href="/col[^"]*"' body | sed "s;$R;REP;" | sort
        grep -o '1.2 kB' body
        grep -o '2009-02-16 17:46:05 UTC' body | head -1
        grep -o 'href="/[^"]*oai_dc[^"]*"' body | sed "s;$R;REP;"
        grep -o 'href="[^"]*GetFileList"' body | sed "s;$R;REP;"
    "#,
        r#"HTTP/1.1 200 OK
content-language: en
content-type: text/html; charset=utf-8
vary: Accept, Accept-Language, Accept-Encoding
en
Tides <of> Guanabara & beyond
1
1
http://archive-a.example.org/IBIP
 2 <a href="/NEXT?page"
1
1
Type
Name (rep)
Name (IBIp)
Persistent link
State
Language
Identified
Last changed
Accesses
pt
href="/col/REP/doc/figures/1%20%26%202.txt"
href="/col/REP/doc/report.pdf"
href="/col/REP/doc/report.pdf"
href="/col/REP/doc/report.pdf"
1.2 kB
2009-02-16 17:46:05 UTC
href="/REP:(oai_dc)"
href="/REP?ibiurl.verblist=GetFileList""#
            .replace("NEXT", &fixture.env.sh("cat next"))
            .as_str(),
    );
}

#[test]
fn an_item_in_portuguese() {
    let fixture = serve(library());
    fixture.prints(
        r#"
        pt "/col/$(cat next)/" > /dev/null
        grep -i '^content-language' head | tr -d '\r'
        has 'string(/*[local-name()="html"]/@lang)'
        grep -o '<h2>[^<]*</h2>' body | sed 's/<[^>]*>//g'
        grep -o 'Esta é a última edição.' body
        grep -o "href=\"/$(cat report)?page\"" body | sort -u | wc -l
        grep -o 'Não há arquivos públicos.' body
        pt "/col/$(cat report)/" > /dev/null
        grep -o '1,2 kB' body
    "#,
        "content-language: pt
pt
Sobre este item
Arquivos
Como citar
Nomes e estado
Edições
Metadados
Esta é a última edição.
1
Não há arquivos públicos.
1,2 kB",
    );
}

#[test]
fn the_same_as_json() {
    let fixture = serve(library());
    fixture.prints(
r#"
        R=$(cat report)
        json "/$R" > /dev/null; grep -i '^content-type' head | tr -d '\r'
        jq -r '.rep, .state, .title, .language, .accesses, .has_more_files' body | sed "s;$R;REP;"
        test "$(jq -r .ibip body)" = "$(ibip "A/$R")"
        test "$(jq -r .next_edition.rep body)" = "$(cat next)"
        test "$(jq -r .last_edition.url body)" = "/$(cat next)"
        test "$(jq -r .metadata.rep body)" = "$(cat data)"
        jq -c '.previous_edition, .metadata_of, .translation_of, [.translations[] | .language, .held]' body
        jq -c '.files[] | [.path, .size]' body
        jq -r '.files[1].changed_at' body
        json "/$(cat pt)" | jq -r '.translation_of.rep' | cmp - report
        json "/$(cat next)" | jq -r '.previous_edition.rep' | cmp - report
        json "/$(cat data)" | jq -r '.metadata_of.rep' | cmp - report
        "#,
        r#"content-type: application/json
REP
Original
Tides <of> Guanabara & beyond
en
0
false
null
null
null
["pt",true]
["doc/figures/1 & 2.txt",6]
["doc/report.pdf",1234]
2009-02-16T17:46:05Z"#
            .replace(",6]", ",4]")
            .as_str(),
    );
}

#[test]
fn accesses_are_shown() {
    let fixture = serve(library());
    fixture.prints(
r#"
        R=$(cat report); S=$(sed -n 's/^ibi.archiveservice {rep \([^ }]*\).*/\1/p' A.store/archive.ibi)
        key=$(get "/$S?servicesubject=urlRequest&parsedibiurl.ibi=$R" | tr -d '\r' | sed -n 's/^urlkey //p')
        # A HEAD counts nothing.
        curl -sI "http://$A/$S?servicesubject=acknowledgment&urlkey=$key" | head -n 1 | tr -d '\r'
        json "/$R" | jq .accesses
        for twice in 1 2; do
            get "/$S?servicesubject=acknowledgment&urlkey=$key" > /dev/null
            json "/$R" | jq .accesses
        done
    "#,
        "HTTP/1.1 405 Method Not Allowed\n0\n1\n1",
    );
}

/// Accesses that were counted outlive the service, by the seconds and at its end; a backup has them.
#[test]
fn accesses_are_kept() {
    const REACH: &str = r#"
        R=$(cat report); S=$(sed -n 's/^ibi.archiveservice {rep \([^ }]*\).*/\1/p' A.store/archive.ibi)
        printed() { json "/$R" | jq .accesses; }
        reach() {
            local key=$(get "/$S?servicesubject=urlRequest&parsedibiurl.ibi=$R" | tr -d '\r' | sed -n 's/^urlkey //p')
            get "/$S?servicesubject=acknowledgment&urlkey=$key" > /dev/null; printed; }
    "#;
    let prints = |fixture: &Fixture, script: &str, expected: &str| {
        fixture.prints(&format!("{REACH}{script}"), expected);
    };
    let fixture = serve(library());
    prints(&fixture, "reach; reach", "1\n2");
    let fixture = serve(fixture.end());
    prints(&fixture, "printed; reach", "2\n3");
    // Another service of the same store knows what this one has written, and adds its own.
    let other = Served::start(&fixture.env, "A.store");
    let script = format!(
        "A={}; waits eval '[ $(printed) = 3 ]'; reach",
        other.address()
    );
    prints(&fixture, &script, "4");
    drop(other);
    let env = fixture.end();
    env.prints(
        "ibifs umount A; ibifs fsck A.store | tail -n 1 | cut -d ' ' -f 3-
         ibifs backup A.store D > /dev/null; mv A.store old; mv D A.store",
        "0 findings",
    );
    let fixture = serve(env);
    prints(&fixture, "printed", "4");
    // Something else has its name.
    let env = fixture.end();
    env.sh("rm A.store/accesses.sqlite3*; touch victim; ln -s ../victim A.store/accesses.sqlite3");
    let fixture = serve(env);
    prints(&fixture, "reach", "1");
    fixture.end().prints("wc -c < victim", "0");
}

#[test]
fn the_list_of_files() {
    let fixture = serve(library());
    fixture.prints(
        r#"
        L="/$(cat report)?ibiurl.verblist=GetFileList"
        get "$L" -H 'Accept: text/plain'
        grep -i '^content-type' head | tr -d '\r'
        json "$L" | jq -c '[.files[].path], .next_url'
        json "$L&after=doc/figures/1%20%26%202.txt" | jq -c '[.files[].path]'
        json "$L&after=doc/figures" | jq -c '[.files[].path]'
        json "$L&after=%25FF" | jq -c '[.files[].path]'
        pt "$L" | grep -c 'href="/col/'
        has 'count(//*[local-name()="td"])'
    "#,
        r#"doc/figures/1 & 2.txt
doc/report.pdf
content-type: text/plain; charset=utf-8
["doc/figures/1 & 2.txt","doc/report.pdf"]
null
["doc/report.pdf"]
["doc/figures/1 & 2.txt","doc/report.pdf"]
[]
2
4"#,
    );
}

/// An item's page shows a thousand files; the list continues from part to part, and misses none.
#[test]
fn many_files() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        mint A many > many
        mkdir A.store/col/"$(cat many)"/doc/deep
        seq -f 'A.store/col/'"$(cat many)"'/doc/%g' 5000 | xargs touch
        # Names in the middle of the list that are neither UTF-8 nor plain in a URL.
        seq -f 'A.store/col/'"$(cat many)"$'/doc/deep/%g%%\xff' 6000 | xargs touch
    "#);
    let fixture = serve(env);
    fixture.prints(
r#"
        R=$(cat many); L="/$R?ibiurl.verblist=GetFileList"
        json "/$R" | jq -c '[(.files | length), .has_more_files]'
        get "/col/$R/" | grep -c 'Not all files are shown here.'
        : > all
        while [[ $L != null ]]; do
            json "$L" | jq -r '.files[].path' | tee -a all | wc -l
            grep -c '^link: <.*>; rel="next"' head || true
            L=$(jq -r .next_url body)
        done
        LC_ALL=C sort -u all | cmp - all
        wc -l < all
        get "/$R?ibiurl.verblist=GetFileList" -H 'Accept: text/plain' | sed 's/%25%FF$/%\\xff/' | cmp - all
        get "/$R?ibiurl.verblist=GetFileList" | grep -c 'More files'
    "#,
        "[1000,true]
1
10000
1
1000
0
11000
1",
    );
}

#[test]
fn the_metadata_page() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        mint A item > item
        printf 'title: Marés\ncreator: <script>alert(1)</script>\ncreator: B\n' > "A/$(cat item):"
    "#);
    let fixture = serve(env);
    fixture.prints(
        r#"
        R=$(cat item)
        get "/col/$R/" | grep -o "href=\"/$R:\"" | sed "s;$R;REP;"
        pt "/$R:" -H 'Accept: text/html' > /dev/null
        grep -o '<th scope="row">[^<]*</th>' body | sed 's/<[^>]*>//g' | sort -u
        grep -c '<script' body || true
        grep -o '<bdi>&lt;script[^<]*</bdi>' body
        json "/$R:" | jq -c '.dublin_core.title, .dublin_core.creator'
        get "/$R?ibiurl.verblist=GetMetadata" -H 'Accept: text/html' | grep -c 'Marés'
    "#,
        r#"href="/REP:"
Criador
Data
Identificador
Tipo
Título
0
<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>
["Marés"]
["<script>alert(1)</script>","B"]
1"#,
    );
}

#[test]
fn removed_and_unknown() {
    let fixture = serve(library());
    fixture.prints(
        r#"
        G=$(cat gone)
        code "/$G"; grep -c "<code>$G</code>" body; grep -o '<h1>.*</h1>' body | sed 's/<[^>]*>//g'
        grep -c '<time datetime="20[0-9TZ:-]*">' body
        json "/$G" | jq -c '.status, .state, .rep == "'"$G"'", (.removed_at | length)'
        code '/%3Cb%3Eno%0Aname'; grep -o '<code>.*</code>' body
        code "/$(cat report)x"
        json '/a.b/c/2009/02.16.17.46' | jq -c .
        code '/%ff'; code '/%'; code '/../../etc/passwd'; code '/%2e%2e/%2e%2e/etc/passwd'
        code "/$(cat report)!!"; cat body
        code "/$(cat report)?ibiurl.verblist=GetAll"
    "#,
        r#"410
1
This item was removed
1
410
"Deleted"
true
20
404
<code>&lt;b&gt;no\nname</code>
404
{"status":404,"error":"Not found","name":"a.b/c/2009/02.16.17.46"}
404
400
404
404
400
modifier '!!' is not one of the fourteen compositions of last edition, translation and metadata
400"#,
    );
}

#[test]
fn the_archive_itself() {
    let fixture = serve(library());
    fixture.prints(
        r#"
        json / | jq -c '.host, .items, (.latest | length), [.latest[].title][3:]'
        test "$(jq -r '.latest[0].rep' body)" = "$(cat data)"
        pt / | grep -o 'Arquivo digital archive-a.example.org' | head -1
        has 'count(//*[local-name()="tbody"]/*)'
        grep -o "href=\"/$(cat report)?page\">.*</a>" body | sed 's/.*<bdi>//; s/<.*//'
    "#,
        r#""archive-a.example.org"
5
5
["Tides <of> Guanabara & beyond",null]
Arquivo digital archive-a.example.org
5
Tides &lt;of&gt; Guanabara &amp; beyond"#,
    );
}

/// A file that no user may read is not listed, and no name of a file gets out of its text.
#[test]
fn hostile_names() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        mint A item > item; D="A/$(cat item)/doc"
        echo a > "$D/\"><script>alert(1)</script>"   2> /dev/null || echo a > "$D/\"><script>alert(1)<"
        echo b > "$D/a&amp;b ' %41+#?.txt"
        echo c > "$D"/$'line\nend \e[31m'
        echo d > "$D"/$'Relat\xf3rio.pdf'
        echo e > "$D/$(printf 'fdp.\u202egnp')"
        echo f > "$D/javascript:alert(1)"
        mkdir "$D/-- ]]>" && echo g > "$D/-- ]]>/x"
        echo secret > "$D/secret"; chmod 000 "$D/secret"
        mkdir "$D/shut"; echo secret > "$D/shut/secret2"; chmod 000 "$D/shut"
        ln -s /etc/passwd "$D/out"; ln -s x "$D/-- ]]>/within"; mkfifo "$D/pipe"
    "#);
    let fixture = serve(env);
    let item = fixture.env.sh("cat item");
    for path in [
        format!("/{item}"),
        format!("/{item}?ibiurl.verblist=GetFileList"),
    ] {
        fixture.prints(
&format!(
                    r#"
            get '{path}' > /dev/null
            xmllint --noout body && xmllint --html --noout body 2>&1 | grep error | grep -v -E 'Tag (main|section|header|bdi|time|figure|figcaption|details|summary|output) invalid' || true
            # The script of pages ends a line with its begin.
            sed -e 's/<script type="application.ld+json">//' -e 's/^<script>$//' body | grep -c '<script' || true
            grep -o 'href="/col[^"]*"' body | sed 's;{item};REP;' | sort -u
            grep -E -c 'secret|passwd|pipe|"out"|\.ibi' body || true
            LC_ALL=C grep -c -P '[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae' body || true
            iconv -f utf-8 -t utf-8 body | cmp - body
            for name in 'Relat.xf3rio.pdf' 'line.nend .u{{1b}}\[31m' 'fdp..u{{202e}}gnp'; do grep -o "$name" body | sort -u; done
            "#
                ),
            r#"0
href="/col/REP/doc/%22%3E%3Cscript%3Ealert(1)%3C"
href="/col/REP/doc/--%20%5D%5D%3E/within"
href="/col/REP/doc/--%20%5D%5D%3E/x"
href="/col/REP/doc/Relat%F3rio.pdf"
href="/col/REP/doc/a%26amp%3Bb%20&#39;%20%2541%2B%23%3F.txt"
href="/col/REP/doc/fdp.%E2%80%AEgnp"
href="/col/REP/doc/javascript:alert(1)"
href="/col/REP/doc/line%0Aend%20%1B%5B31m"
0
0
Relat\xf3rio.pdf
line\nend \u{1b}[31m
fdp.\u{202e}gnp"#
                .replace("%26amp%3Bb", "%26amp;b")
                .as_str(),
        );
    }
}

/// Every page is XML, and nothing in it runs or is fetched: it has the one style that its policy names, and data.
#[test]
fn pages_are_whole_and_shut() {
    let fixture = serve(library());
    fixture.sh(
r#"
        for path in / "/col/$(cat report)/" "/$(cat report)?ibiurl.verblist=GetFileList" "/$(cat gone)" /nothing; do
            for how in get pt; do
                $how "$path" > /dev/null
                xmllint --noout body
                test "$(has 'count(//*[local-name()="h1"])')" = 1
                test "$(has 'count(//*[local-name()="meta" and @name="viewport"])')" = 1
                test "$(has 'count(//@style | //@onclick | //*[local-name()="script"][@*][not(@type="application/ld+json")] | //*[local-name()="img"] | //*[local-name()="link"][not(@rel="cite-as" or @rel="linkset" or @rel="describedby" or @rel="alternate" or @rel="search" or @rel="icon")])')" = 0
                digest=$(python3 -c '
import base64, hashlib, re
style = re.search(b"<style>(.*?)</style>", open("body", "rb").read(), re.S).group(1)
print(base64.b64encode(hashlib.sha256(style).digest()).decode())')
                policy=$(grep -i '^content-security-policy:' head)
                # The one script is that of the policy.
                script=$(python3 -c '
import base64, hashlib, re
for script in re.findall(b"<script>(.*?)</script>", open("body", "rb").read(), re.S):
    print(base64.b64encode(hashlib.sha256(script).digest()).decode())')
                test -z "$script" || [[ $policy == *"; script-src 'sha256-$script'; connect-src 'self'"* ]]
                test -n "$script" || [[ $policy != *script-src* ]]
                [[ $policy == *"default-src 'none'; style-src 'sha256-$digest'; img-src 'self'; media-src 'self'; frame-src 'self'; base-uri 'none';"* ]]
            done
        done
        test "$(curl -sS -I "http://$A/" | grep -ci '^vary: Accept, Accept-Language')" = 1
    "#,
);
}

/// The icon has a name in each page, and browsers request it without one, too.
#[test]
fn services_have_an_icon() {
    let fixture = serve(library());
    fixture.prints(
        r#"get "/col/$(cat report)/" > /dev/null; has 'string(//*[@rel="icon"]/@href)'; grep -i '^content-type' head | tr -d '\r'
        for name in svg ico; do get /favicon.$name > /dev/null; xmllint --noout body; code /favicon.$name; done
        grep -i '^content-type' head | tr -d '\r'"#,
        "/favicon.svg\ncontent-type: text/html; charset=utf-8\n200\n200\ncontent-type: image/svg+xml",
    );
}

/// A browser shows the page with its style, and has nothing to complain of; the pictures, at the widths of
/// a phone and of a desk, are for a person who looks: IBIFS_TEST_PICTURES names where they are kept.
#[test]
fn in_a_browser() {
    let env = library();
    env.sh(
        "command -v chromium || { echo 'Chromium is missing; tests/run installs it' >&2; exit 1; }",
    );
    let fixture = serve(env);
    let out = std::env::var("IBIFS_TEST_PICTURES").unwrap_or_else(|_| ".".to_owned());
    fixture.sh(
&format!(
            r#"
        browse() {{ timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
            --user-data-dir="$PWD/profile" --virtual-time-budget=2000 "$@" 2> complaints; }}
        url="http://$A/col/$(cat report)/"
        browse --enable-logging=stderr --dump-dom "$url" > dom
        grep -o '<h1>.*</h1>' dom | grep 'Tides &lt;of&gt; Guanabara &amp; beyond'
        # It would complain here of what the policy keeps from the page.
        no grep -i 'content security policy' complaints
        browse --window-size=390,1400 --hide-scrollbars --screenshot='{out}/phone.png' "$url"
        browse --window-size=1280,1000 --hide-scrollbars --screenshot='{out}/desktop.png' "$url"
        test -s '{out}/phone.png' && test -s '{out}/desktop.png'
    "#
        ),
);
}
