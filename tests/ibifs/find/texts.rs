//! Searches by words of files, where an Archive has that: what is read, what each user finds by it, that changes are
//! noticed, and that no file makes a search wait.

use crate::http::served::{Fixture, Served};
use crate::support::TestEnv;

/// `pdf TEXT [OPERATORS]`: a PDF file with this text. `item NAME PATH`: an item with this file, from standard input.
/// `found QUERY...`: the names of the items that the command finds, in the order in which it prints them, and `looked`
/// after it has looked at all files. `tree QUERY`: those that the mount finds, once it finds any; `gone QUERY` waits until
/// it finds none.
const TOOLS: &str = r#"
pdf() {
    page=${2:-"BT /F 12 Tf 50 700 Td ($1) Tj ET"}
    printf '%%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Count 1/Kids[3 0 R]>>\nendobj\n'
    printf '3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F <</Type/Font/Subtype/Type1'
    printf '/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>>>>>/Contents 4 0 R>>\nendobj\n'
    printf '4 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n%%%%EOF\n' ${#page} "$page"
}
item() { mint A $1 > items/$1; cat > "A/$(< items/$1)/doc/$2"; printf 'title: Item %s\n' $1 > "A/$(< items/$1):"; }
found() { ibifs find --store A.store --json "$@" > found.json 2> why || test $? = 3; jq -r '.[].rep' < found.json | named; }
named() { while read -r rep; do (cd items; grep -lx "$rep" * || true); done | tr '\n' ' '; }
looked() { found --complete "$@"; }
names() { ${as:-} sh -c 'for link in "A/.find/$1"/*; do readlink "$link" || true; done' - "$1" | sed 's;^\(\.\./\)*;;' | named | sorted | sed 's/ $//'; }
tree() { for try in $(seq 60); do names=$(names "$1"); test -z "$names" || break; sleep 0.5; done; echo -n "$names "; }
gone() { for try in $(seq 60); do test -n "$(names "$1")" || return 0; sleep 0.5; done; echo "$1 is found"; }
as_user() { setpriv --reuid=60001 --regid=60001 --clear-groups "$@"; }
"#;

/// A mounted store whose texts are searched, with items by names in `items`.
fn library(script: &str) -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        "{TOOLS}\nchmod 755 .; mkdir A items; ibifs init A.store --host archive-a.example.org --search texts > /dev/null
         ibifs mount A.store A -o allow_other\n{script}"
    ));
    env
}

/// Reads all texts, so that no search has to wait for one on a busy machine.
const READ: &str = "ibifs find --complete x --store A.store 2> why || test $? = 3\n";

const ITEMS: &str = r#"
    item plain notes.txt <<< 'The monsoon came late.'
    item latin notas.txt < <(printf 'A mon\347\343o tardia\n')
    item page page.html <<< '<html><style>monsoon{}</style><p class="hurricane">Tempest&amp;rain</html>'
    item paper paper.pdf < <(pdf 'A tempest over Bel\351m')
    item data data.bin < <(printf 'monsoon\0')
    item about empty.txt < /dev/null
    printf 'title: Monsoon\n' > "A/$(< items/about):"
"#;

#[test]
fn words_of_files_are_found() {
    let env = library(ITEMS);
    env.sh(READ);
    let served = Served::start(&env, "A.store");
    let ask = r#"
        ask() { curl -sS --globoff -G "$U/search" -H 'Accept: application/json' --data-urlencode "q=$1"; }
        titles() { ask "$1" | jq -c '[.items[].title]'; }
    "#;
    Fixture::new(env, served, format!("{TOOLS}{ask}")).prints(
        r#"
        # Descriptions come before texts, of which a word in the title of a page or its marks is none.
        found monsoon; found monção; found hurricane; found title:monsoon; found text:monsoon; echo
        found tempest | tr ' ' '\n' | sort | tr '\n' ' '; found '"a tempest over"'; found tempest -- belem -page; found belém title:paper; echo
        found monsoon -- -late; found monsoon -- -text:late; echo
        tree monsoon; tree belem; tree monsoon/late; test -e A/.find/belem/*; ! test -e "A/.find/rain/$(ls A/.find/belem)"; echo
        for try in $(seq 60); do titles belem | grep -q paper && break; sleep 0.5; done
        titles monsoon; titles belem; titles 'text:monsoon'; titles nothing
        stat -c %a A.store/search-text.sqlite3 A.store/search-public-text.sqlite3 | sort -u
        ibifs umount A; ibifs fsck A.store
        "#,
        "about plain latin about plain \npage paper paper paper paper \nabout plain about \nabout plain paper plain \n\
         [\"Monsoon\",\"Item plain\"]\n[\"Item paper\"]\n[\"Item plain\"]\n[]\n600\n7 items, 0 findings",
    );
}

/// No file is read where the search is not switched on; it can be switched on and off by hand.
#[test]
fn texts_are_searched_where_the_archive_says_so() {
    let env = library(ITEMS);
    env.prints(
        &format!(
            r#"{TOOLS}
            grep search A.store/archive.ibi; sed -i /^search/d A.store/archive.ibi; ibifs umount A; ibifs mount A.store A
            found monsoon; tree monsoon; found text:monsoon; ls A.store | grep -c text || true
            echo 'search texts' >> A.store/archive.ibi; found monsoon; rm A.store/search*; found monsoon; echo
            sed -i '/^search/s/texts/all/' A.store/archive.ibi
            {{ ibifs find monsoon --store A.store 2>&1 || true; }}
            {{ ibifs init B.store --search everything 2>&1 || true; }} | head -n 1
            "#
        ),
        "search texts\nabout about 0\nabout plain about plain \n\
         ibifs: archive.ibi: 'all' is not a valid value of 'search'; correct it, or restore it from a backup\n\
         error: invalid value 'everything' for '--search <WHAT>'",
    );
}

/// By a word of a file only an item is found whose file everyone may read, also after that has changed.
#[test]
fn a_secret_file_is_not_found() {
    let env = library(
        r#"
        for name in open shut group above listed; do item $name $name.txt <<< "typhoon in $name"; done
        chmod 600 "A/$(< items/shut)/doc/shut.txt"; chmod 640 "A/$(< items/group)/doc/group.txt"
        chmod 711 "A/$(< items/above)/doc"; setfacl -m u:60001:--- "A/$(< items/listed)/doc/listed.txt"
        item later later.txt <<< 'typhoon later'; item folder folder.txt <<< 'typhoon in a folder'; item own own.txt <<< 'typhoon of my own'
        chmod 700 "A/$(< items/own)"; ln -s ../doc/shut.txt "A/$(< items/shut)/link.txt"
        "#,
    );
    env.sh(READ);
    let served = Served::start(&env, "A.store");
    let ask = r#"
        public() { curl -sS -G "$U/search" -H 'Accept: application/json' --data-urlencode "q=$1" | jq -r '.items[].rep' | sort | named; }
    "#;
    Fixture::new(env, served, format!("{TOOLS}{ask}")).prints(
        r#"
        found typhoon | sorted; tree typhoon; echo
        for try in $(seq 60); do test "$(public typhoon | sorted)" != 'folder later open ' || break; sleep 0.5; done
        as=as_user tree typhoon; public typhoon | sorted; echo
        chmod 600 "A/$(< items/later)/doc/later.txt"; chmod 700 "A/$(< items/folder)/doc"
        tree typhoon; found typhoon | sorted; echo; public typhoon | sorted; as=as_user tree typhoon; echo
        link=$(cd A; ibip $(< ../items/later) | tr / _); ! test -L A/.find/typhoon/$link; ! as_user test -L A/.find/typhoon/$link
        tree later; echo
        chmod 644 "A/$(< items/shut)/doc/shut.txt"; looked shut typhoon
        "#,
        "folder later open own folder later open own \nfolder later open folder later open \n\
         open own open own \nopen open \nlater \nshut ",
    );
}

/// Each change of a file is noticed.
#[test]
fn changed_files_are_found() {
    let env = library(ITEMS);
    env.sh(READ);
    env.prints(
        &format!(
            r#"{TOOLS}
            tree late; tree tempest | wc -w
            # In place, by a rename, and by another name; in the tree at once, and after a second everywhere.
            echo 'The drought came early.' > "A/$(< items/plain)/doc/notes.txt"; gone late; tree drought
            sed -i s/drought/flood/ "A/$(< items/plain)/doc/notes.txt"; gone drought; tree flood
            pdf 'A breeze' > new; cp new "A/$(< items/paper)/doc/other.pdf"; tree breeze; tree belem
            mv "A/$(< items/page)/doc/page.html" "A/$(< items/about)/doc/empty.txt"; tree text:rain; looked text:rain; echo
            echo 'a squall' >> "A/$(< items/page)/new.txt"; for try in $(seq 60); do test -z "$(found squall)" || break; sleep 0.5; done; found squall; echo
            # What is removed is not found by its words; what changes without the mount is found when it is looked for.
            rm "A/$(< items/paper)/doc/paper.pdf"; gone belem; tree breeze; found belem; echo
            ibifs umount A; echo 'a mistral' > "A.store/col/$(< items/plain)/doc/notes.txt"; looked mistral; looked flood
            # An item, its description, and all indexes.
            ibifs mount A.store A; rm -r "A/$(< items/latin)"; gone monção; printf 'title: Gale\n' > "A/$(< items/plain):"; tree gale; tree gale/mistral; echo
            rm A.store/search*; found mistral; ibifs umount A; ibifs reindex A.store > /dev/null; found mistral gale
            "#
        ),
        "plain 2\nplain plain paper paper about about \npage \npaper \nplain plain plain \nplain plain ",
    );
}

/// A file that takes for ever, or is made to harm, is passed over; what is read costs no more than some seconds, and
/// no search waits for it.
#[test]
fn hostile_files_are_passed_over() {
    let env = library(
        r#"
        item good good.pdf < <(pdf 'a zephyr')
        item cut cut.pdf < <(pdf 'a zephyr' | head -c 300)
        item noise noise.pdf < <(echo '%PDF-1.4'; head -c 100000 /dev/urandom)
        item many many.pdf < <(pdf '' "BT /F 12 Tf $(yes '(zephyr) Tj' | head -n 200000) ET")
        python3 - << 'END'
import zlib
def pdf(name, objects, length=0):
    out = b"%PDF-1.4\n"
    for number, body in enumerate(objects, 1):
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    open(name, "wb").write(out + b"trailer\n<</Root 1 0 R>>\n%%EOF\n" + b" " * length)
def stream(data, more=b""):
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(data), more, data)
font = b"<</Font<</F <</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>/XObject<</X 5 0 R>>>>"
page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources %s/Contents 4 0 R>>" % font
catalog, pages = b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>"
packer = zlib.compressobj(9)
bomb = b"".join(packer.compress(b"BT /F 9 Tf (zephyr) Tj ET " * 40000) for _ in range(1000)) + packer.flush()
pdf("bomb.pdf", [catalog, pages, page, stream(bomb, b"/Filter/FlateDecode")])
pdf("loop.pdf", [catalog, b"<</Type/Pages/Count 9/Kids[2 0 R 3 0 R 2 0 R]>>", page, stream(b"/X Do"),
    stream(b"/X Do /X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources " + font)])
END
        for name in bomb loop; do item $name $name.pdf < $name.pdf; done
        item long long.txt < <(yes zephyr | head -c 3M; echo; echo breeze)
        item good2 good.txt <<< 'a zephyr and a breeze'
        "#,
    );
    env.prints(
        &format!(
            r#"{TOOLS}
            seconds() {{ begin=$(date +%s%N); "$@"; echo $(( ($(date +%s%N) - begin) / 1000000000 < $limit )) >> times; }}
            limit=5; seconds ls A/.find/zephyr > /dev/null; seconds ls A/.find/zephyr > /dev/null
            limit=60; seconds looked zephyr | tr ' ' '\n' | grep -x 'good\|good2\|long' | sort | tr '\n' ' '; found breeze; echo
            # They are not read a second time.
            limit=5; seconds looked zephyr > /dev/null
            sort -u times; du -m A.store/search-text.sqlite3 | awk '{{ print ($1 < 20) ? "small" : $1 }}'
            "#
        ),
        "good good2 long good2 \n1\nsmall",
    );
}
