//! The preview of the content on the page of an item. It bars no reader.

use super::served::{Fixture, Served};
use crate::collections::validators;
use crate::support::TestEnv;

/// Items with one file each: `items/NAME` has the name of the item.
const ITEMS: &str = r##"
mkdir items
item() { mint A $1 > items/$1; cat > "A/$(< items/$1)/doc/$2"; }
item readme README.md << 'END'
# Rain
See [the table](data.csv), <script>alert(1)</script> and [this](javascript:alert(1)).

| Station | mm |
|---|---|
| Manaus | 210 |

    code  of two
    lines
END
item table data.csv << 'END'
station;mm
"Manaus; north";210
<b>;1
END
item latin note.txt < <(printf 'S\343o Jos\351\n\n\033[31mred\n')
item long long.txt < <(seq 1000)
item picture map.svg << 'END'
<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script><circle r="9"/></svg>
END
item photo dot.png < <(base64 -d <<< iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)
item sound voice.mp3 <<< sound
item video film.webm <<< film
item paper paper.pdf <<< '%PDF-1.4'
item page page.html <<< '<script>alert(1)</script>'
item zeros zeros.txt < <(head -c 100 /dev/zero)
item empty empty.txt < /dev/null
item hidden hidden.txt <<< secret
chmod 600 "A/$(< items/hidden)/doc/hidden.txt"
item large large.png < <(truncate -s 9M /dev/stdout | cat; head -c 9000000 /dev/zero)
ibifs relate A/$(< items/readme) --next-edition $(< items/table)
ibifs relate A/$(< items/table) --next-edition $(< items/latin)
echo '%T Rain, second edition' > A/$(< items/table)/.ibi.metadata
ln -s ../../../$(< items/long) "A/$(< items/table)+(pt)"
"##;

fn serve() -> Fixture {
    let env = TestEnv::new().with_a();
    env.sh(ITEMS);
    let served = Served::start(&env, "A.store");
    let ask = r#"
A=${U#http://}
page() { curl -sS "http://$A/$(< items/$1)?page" -H 'Accept: text/html' "${@:2}" > body; cat body; }
has()  { xmllint --nonet --xpath "$1" body; }
figure='//*[local-name()="figure"]'
"#;
    Fixture::new(env, served, ask)
}

#[test]
fn a_page_shows_the_content() {
    let fixture = serve();
    fixture.prints(
        r#"
        page readme > /dev/null; has "string($figure//*[local-name()='h3'])"
        has "string($figure//*[local-name()='td'][2])"; has "count($figure//*[local-name()='br'])"
        has "count($figure//*[local-name()='a'])"
        has "string($figure//*[local-name()='a'][1]/@href)" | sed "s;$(< items/readme);REP;"
        no grep -i -e '<script>.' -e javascript: body
        page table > /dev/null; has "count($figure//*[local-name()='tr'])"
        has "string($figure//*[local-name()='td'][1])"; grep -c '&lt;b&gt;' body
        page latin > /dev/null; has "string($figure//*[local-name()='p'][1])"; has "string($figure//*[local-name()='p'][3])"
        page long > /dev/null; has "count($figure//*[local-name()='p'])"; grep -o 'Only the beginning is shown' body
        page long -H 'Accept-Language: pt' > /dev/null; grep -o 'Só o início é mostrado' body
        "#,
        "Rain\n210\n2\n2\n/col/REP/doc/data.csv\n3\nManaus; north\n1\nSão José\n\\u{1b}[31mred\n61\n\
         Only the beginning is shown\nSó o início é mostrado",
    );
    // The browser gets a picture, sound or film as it gets any file, and a PDF when the reader requests it.
    fixture.prints(
        r#"
        for kind in picture/img sound/audio video/video paper/iframe; do
            name=${kind%/*}; page $name > /dev/null
            curl -s -o /dev/null -w '%{http_code} %{content_type}\n' "http://$A$(has "string($figure//*[local-name()='${kind#*/}']/@src)")"
        done
        has "count($figure/*[local-name()='details'][not(@open)]/*[local-name()='iframe'])"
        curl -sI "http://$A/$(< items/picture)?page" | grep -o "img-src 'self'; media-src 'self'; frame-src 'self';"
        "#,
        "200 image/svg+xml\n200 audio/mpeg\n200 video/webm\n200 application/pdf\n1\n\
         img-src 'self'; media-src 'self'; frame-src 'self';",
    );
    // A file that is a program, not a text, empty, not public or very large is not shown.
    fixture.sh(
        "for name in page zeros empty hidden large; do page $name > /dev/null; no grep '<figure' body; done; no grep secret body",
    );
}

/// Editions are a line in the order of time; what an item is related to is shown by its title.
#[test]
fn editions_are_a_line() {
    let fixture = serve();
    fixture.prints(
        r#"
        page latin > /dev/null
        has "count(//*[local-name()='ol'][@class='editions']/*)"
        has "string(//*[local-name()='ol']/*[2]/*[local-name()='a'])"
        has "string(//*[local-name()='ol']/*[3]/@aria-current)"; grep -o 'This is the last edition' body
        page table > /dev/null
        has "string(//*[local-name()='ol']/*[1]/*[local-name()='a'])" | sed "s;$(< items/readme);FIRST;"
        has "string(//*[local-name()='ol']/*[2]/@aria-current)"; no grep 'This is the last edition' body
        curl -sS "http://$A/$(< items/latin)?page" -H 'Accept: application/json' |
            jq -c '[.previous_edition.title, (.earlier_editions | map(.title)), .later_editions]'
        curl -sS "http://$A/$(< items/long)?page" -H 'Accept: application/json' | jq .translation_of.title
        "#,
        "3\nRain, second edition\ntrue\nThis is the last edition\nFIRST\ntrue\n\
         [\"Rain, second edition\",[\"Rain, second edition\",null],[]]\n\"Rain, second edition\"",
    );
    // Sidecars may say that editions follow each other in a circle.
    fixture.sh(
        r#"
        echo "ibi.nextedition {rep $(< items/readme)}" >> A.store/col/$(< items/latin)/.ibi
        echo "ibi.editionof {rep $(< items/latin)}" >> A.store/col/$(< items/readme)/.ibi
        ibifs umount A; ibifs reindex A.store
        page table > /dev/null; test $(has "count(//*[local-name()='ol'][@class='editions']/*)") -le 17
        "#,
    );
}

/// A citation is copied by a button, which is not there without a script; the link before it is.
#[test]
fn a_citation_is_copied() {
    let fixture = serve();
    fixture.sh(
        r#"
        echo '%A Gerald Banon' >> A/$(< items/table)/.ibi.metadata
        browse() { timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --enable-logging=stderr \
            --user-data-dir="$PWD/profile" --virtual-time-budget=10000 --dump-dom "$@" 2> complaints > dom; }
        page table > /dev/null
        test "$(grep -c '<button type="button" hidden="hidden" data-copied=' body)" = "$(grep -c '?cite=' body)"
        page table | contains '<button'; curl -sS "http://$A/$(< items/table)?page" -H 'Accept: text/html' -H 'Accept-Language: pt' | contains '>Copiar</button>'
        # The policy lets the script run, and nothing else.
        browse "http://$A/$(< items/table)?page"
        no grep 'hidden=' dom; grep -q '<button type="button" data-copied="Copied: ABNT"' dom; no grep -i 'security policy' complaints
        # What is copied is the citation.
        cat > page.py << 'END'
import sys
test = """<script>
Object.defineProperty(navigator, 'clipboard', {value: {write: async items => {
    const blob = await items[0].getType('text/plain');
    document.title = 'copied ' + await blob.text();
}}});
addEventListener('load', () => document.querySelector('button').click());
</script>"""
page = open('body').read()
print(page.replace('<head>', f'<head><base href="{sys.argv[1]}" />{test}'))
END
        python3 page.py "http://$A/" > page.html
        browse --disable-web-security "file://$PWD/page.html"
        link=$(grep -o 'href="[^"]*?cite=[^"]*"' body | head -1 | cut -d '"' -f 2)
        curl -sS --fail "http://$A$link" > citation
        grep -o '<title>copied [^<]*' dom > copied
        test "$(cut -c 15- copied)" = "$(sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' citation)"
        grep -q '<output>Copied: ' dom
        "#,
    );
}

/// The rules of WCAG 2.2 AA that a program can examine (axe) are kept by all kinds of pages, at the width of a
/// phone and of a desk, light and dark.
#[test]
fn no_page_bars_a_reader() {
    let fixture = serve();
    let python = validators().join("python");
    fixture.sh(&format!(
        r#"
        cat > page.py << 'END'
import sys, axe_playwright_python as package
page = open('body').read()
if sys.argv[2:] == ['worse']:
    page = page.replace('<h1>', '<img src="x.png" /><h1>')
axe = open(package.__path__[0] + '/axe.min.js').read()
run = """
setTimeout(() => axe.run(document, {{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}})
    .then(found => {{
        const lines = found.violations.map(it => it.id + ': ' + it.nodes.map(node => node.html).join(' '));
        const said = document.createElement('pre');
        said.textContent = ['examined ' + found.passes.length, ...lines, 'end'].join('\\n');
        document.body.replaceChildren(said);
    }}), 0)
"""
page = page.replace('</head>', f'<base href="{{sys.argv[1]}}" /><script>{{axe}}</script></head>')
print(page.replace('</body>', f'<script>{{run}}</script></body>'))
END
        examine() {{ timeout 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
            --user-data-dir="$PWD/profile" --virtual-time-budget=10000 "$@" --dump-dom "file://$PWD/page.html" \
            2> complaints | sed -n '/examined/,/^end/p' | sed 's;.*<pre>;;' > found; }}
        number=0
        for path in / /search?q=rain /search?by=year /nothing.example "/$(< items/readme)?ibiurl.verblist=GetFileList" \
            $(for name in readme table latin long picture photo sound video paper; do echo "/$(< items/$name)?page"; done); do
            curl -sS -H 'Accept: text/html' "http://$A$path" > body
            '{0}' page.py "http://$A/" > page.html
            for look in '--window-size=390,900' '--window-size=1280,900 --blink-settings=preferredColorScheme=0'; do
                examine $look
                grep -q '^examined [1-9][0-9]' found || {{ echo "$path was not examined"; cat found complaints; exit 1; }}
                test $(wc -l < found) = 2 || {{ echo "$path $look"; cat found; exit 1; }}
                number=$((number + 1))
            done
        done
        test $number = 28
        # It would find a picture without a text.
        '{0}' page.py "http://$A/" worse > page.html; examine; grep -q '^image-alt' found
        "#,
        python.display()
    ));
}
