//! What the public is told of the history of items, and the log that anyone may check.

use super::served::Served;
use crate::support::TestEnv;

/// The schema of PREMIS.
const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema/premis.xsd");

/// Waits until all events are in the log, which gets them once a second.
const LOGGED: &str = r#"
logged() { waits eval '[ $(in_database A.store/relations.sqlite3 "SELECT (SELECT count(*) FROM event) - size FROM event_log") = 0 ]'; }
"#;

/// A mounted store that keeps a history, which other users may pass.
fn kept() -> TestEnv {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org > /dev/null; echo 'history yes' >> A.store/archive.ibi
         mkdir A; ibifs mount A.store A; chmod 755 .",
    );
    env
}

/// Neither items that are not public nor people are named, in no form.
#[test]
fn the_public_is_told_of_public_items_and_not_of_people() {
    let env = kept();
    env.sh(&format!(
        r#"{LOGGED}for name in one next shut gone; do mint A $name > $name; done; ibifs mint A --draft | head -n 1 > draft; chmod 1777 A
        ln -sfn "$PWD/A/$(< next)" "A/$(< one)!"; chmod 700 "A/$(< shut)"; ln -sfn "$PWD/A/$(< shut)" "A/$(< one)+(pt)"
        echo 'title: Tides' > "A/$(< one):"; ibifs withdraw "A/$(< gone)" --reason 'wrong & late'; logged"#
    ));
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"
        one=$(< one); get $U/$one?history > told; line content-type $U/$one?history; line cache-control $U/$one?history
        jq -c 'select(.event | IN("minted", "related")) | [.event, .type, .item, .agent, .outcome, .note]' told | sed "s;$one;ONE;; s;$(< next);NEXT;"
        jq -r 'keys[]' told | sort -u | paste -sd' '; status -H "If-None-Match: $(line etag $U/$one?history)" $U/$one?history
        for name in shut draft gone; do status "$U/$(< $name)?history"; status "$U/$(< $name):(premis)"; done | paste -sd' '
        get "$U/$one:(premis)" > premis; line content-type "$U/$one:(premis)"; xmllint --nonet --noout --schema {SCHEMA} premis
        value() {{ xmllint --nonet --xpath "$1" premis | sort -u | paste -sd' '; }}
        [ $(value "count(//*[local-name()='event'])") = $(wc -l < told) ]; value "//*[local-name()='agentType']/text()"; value "//*[local-name()='eventType'][contains(@valueURI, '/cre')]/text()"
        value "//*[local-name()='linkingObjectIdentifierValue']/text()" | sed "s;$one;ONE;"
        setpriv --reuid 60001 --regid 60001 --clear-groups cat "A/$one:(premis)" | cmp - premis
        get "$U/$one:(formats)" | cut -f 1 | tail -n 2; grep -c ^premis "A/$one:(formats)"; ls "A/$one:(premis)" > /dev/null
        get -H 'Accept: text/html' "$U/$one?page" > page; grep -o '<h2>History</h2>\|Relations changed' page
        get -H 'Accept: text/html' -H 'Accept-Language: pt' "$U/$one?page" | grep -o '<h2>Histórico</h2>'
        get -H 'Accept: application/json' "$U/$one?page" > json; jq -r '.history[0].event, .history_url' json | sed "s;$one;ONE;" | paste -sd' '
        # The one who acted, the host, and the other item are in the log alone.
        cat told premis page json > all; for text in '"root' '>root' "$(hostname)" "$(< shut)" "$(ibip A/$(< shut))"; do grep -c -e "$text" all || true; done | uniq
        ibifs history "A/$one" | grep -c -e "$(< shut)"; ibifs history "A/$one" | grep -q ' root'"#
        ),
        "application/x-ndjson\nno-cache\n\
         [\"minted\",\"cre\",\"ONE\",\"user\",\"success\",null]\n\
         [\"related\",\"mem\",\"ONE\",\"user\",\"success\",\"ibi.nextedition NEXT\"]\n\
         agent event item note outcome program time type\n304\n404 404 404 404 410 410\n\
         application/xml; charset=utf-8\nperson software\ncreation\nONE\ncff\npremis\n1\n\
         <h2>History</h2>\nRelations changed\n<h2>Histórico</h2>\nminted /ONE?history\n0\n1",
    );
}

/// Without a history there is nothing, and nothing is listed.
#[test]
fn an_archive_without_a_history_tells_nothing() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one");
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#"
        one=$(< one); for path in "$one?history" "$one:(premis)" log/checkpoint log/key.pub log/tile/0/000.p/1; do status "$U/$path"; done | paste -sd' '
        get "$U/$one:(formats)" | grep -c premis || true; no ls "A/$one:(premis)"; get "$U/$one?page" | grep -c History || true"#,
        "404 404 404 404 404\n0\n0",
    );
}

/// The root of a log from its tiles, as RFC 6962 has it.
const CHECK: &str = r#"
import base64, hashlib, sys, urllib.request
url = sys.argv[1]
get = lambda path: urllib.request.urlopen(f"{url}/log/{path}").read()
sha = lambda data: hashlib.sha256(data).digest()
def root(leaves):
    if len(leaves) == 1: return leaves[0]
    k = 1
    while k * 2 < len(leaves): k *= 2
    return sha(b"\1" + root(leaves[:k]) + root(leaves[k:]))
origin, size, expected = get("checkpoint").decode().split("\n")[:3]
def level(name, size):
    whole, part = divmod(size, 256)
    tiles = [f"tile/{name}/{n:03}" for n in range(whole)]
    return [get(tile) for tile in tiles + [f"tile/{name}/{whole:03}.p/{part}"] * (part > 0)]
hashes = lambda tiles: [tile[at:at + 32] for tile in tiles for at in range(0, len(tile), 32)]
leaves = hashes(level(0, int(size)))
assert len(leaves) == int(size)
assert base64.b64encode(root(leaves)).decode() == expected, "root"
above = hashes(level(1, int(size) // 256))
assert above == [root(leaves[n * 256:n * 256 + 256]) for n in range(len(above))], "level 1"
entries = [bundle[at + 2:at + 34] for bundle in level("entries", int(size)) for at in range(0, len(bundle), 34)]
assert [sha(b"\0" + entry) for entry in entries] == leaves, "entries"
print(origin, len(above), "whole")
"#;

/// Anyone checks the log from what is served of it: hashes, and nothing of what they are about.
#[test]
fn the_log_is_published() {
    let env = kept();
    env.sh(&format!(
        "{LOGGED}ibifs mint A > /dev/null; cat > check.py <<'END'\n{CHECK}END\nlogged"
    ));
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(r#"{LOGGED}
        python3 check.py $U; size=$(get $U/log/checkpoint | sed -n 2p); get $U/log/tile/0/000.p/$size > before; get $U/log/tile/entries/000.p/$size > entries
        ibifs mint --count 300 A > /dev/null; logged; python3 check.py $U; [ $(get $U/log/checkpoint | sed -n 2p) -gt 300 ]
        # What a checkpoint of before needs is still there, now as the beginning of a wider tile.
        get $U/log/tile/0/000.p/$size | cmp - before; get $U/log/tile/entries/000.p/$size | cmp - entries; get $U/log/tile/0/000 | head -c $(stat -c %s before) | cmp - before
        for path in checkpoint key.pub tile/0/000 tile/0/000.p/1 tile/entries/000; do line content-type $U/log/$path; line cache-control $U/log/$path; done | paste -d '|' - -
        get $U/log/key.pub | cmp - A.store/log/key.pub; status -I $U/log/tile/0/000
        for path in key events events/$(date -u +%Y-%m).txt tile/0 tile/0/000.p/256 tile/0/000/ tile/00/000 tile/0/0 tile/1/000 tile/0/001 tile/0/001.p/255 tile/0/../../key %74ile/0/000 tile/0/000.new ''; do
            status $U/log/$path; done | sort | uniq -c | tr -s ' '"#),
        "archive-a.example.org/log 0 whole\narchive-a.example.org/log 1 whole\n\
         text/plain; charset=utf-8|no-cache\ntext/plain; charset=utf-8|no-cache\n\
         application/octet-stream|public, max-age=31536000, immutable\n\
         application/octet-stream|public, max-age=31536000, immutable\n\
         application/octet-stream|public, max-age=31536000, immutable\n200\n 15 404",
    );
}

/// Packages have all of the history, with who did it; an object gets no version for having been exported.
#[test]
fn packages_have_the_history() {
    let env = kept();
    env.prints(
        &format!(
            r#"
        one=$(mint A one); echo x > A/$one/doc/a; chmod 700 A/$one; echo 'title: Tides' > "A/$one:"; sleep 2
        ibifs export --bagit A/$one bags | tail -n 1; ibifs export --ocfl A/$one root | tail -n 1; ibifs export --ocfl A/$one root | tail -n 1
        cp bags/$one/metadata/preservation/premis.xml bag; cp $(find root -name premis.xml) object; find root -name premis.xml | wc -l
        value() {{ xmllint --nonet --xpath "$2" $1 | sort -u | paste -sd' '; }}
        for name in bag object; do xmllint --nonet --noout --schema {SCHEMA} $name; value $name "//*[local-name()='agentName']/text()"
            value $name "//*[local-name()='eventDetail'][.='minted']/text()"; value $name "count(//*[local-name()='object'])"; done
        count=$(ibifs history A/$one --json | grep -vc '"exported"'); echo $(($(value object "count(//*[local-name()='event'])") - count)) $(($(value bag "count(//*[local-name()='event'])") - count))
        echo 'title: Tides again' > "A/$one:"; sleep 2; ibifs export --ocfl A/$one root | tail -n 1
        ibifs init B.store --host b.example.org > /dev/null; ibifs import B.store root | tail -n 1; ibifs init C.store --host c.example.org > /dev/null; ibifs import C.store bags | tail -n 1
        find B.store/col C.store/col -name premis.xml | wc -l"#
        ),
        "1 item: 1 written, 0 unchanged\n1 item: 1 written, 0 unchanged\n1 item: 0 written, 1 unchanged\n1\n\
         ibifs root\nminted\n4\nibifs root\nminted\n4\n0 1\n1 item: 1 written, 0 unchanged\n\
         1 package, 1 taken in\n1 package, 1 taken in\n0",
    );
}
