//! Hostile registrations by the protocol of 2009: what is no value, addresses that are not those of a provider, thousands of
//! requests, and several for one prefix.

use super::resolver::{ON, TOOLS};
use crate::http::served::{Fixture, Served};
use crate::support::TestEnv;

fn fixture() -> Fixture {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, ON);
    Fixture::new(env, resolver, format!("{TOOLS}{MORE}"))
}

/// `registers NAME VALUE ...` registers an actor with these values in the place of good ones, `documents NAME VALUE ...` a
/// document of the actor in the file `www`, each from a client of its own; a value `@FILE` is that of a file.
const MORE: &str = r#"
set_pairs() { declare -gA pairs=(); while [ $# -gt 1 ]; do pairs[$1]=$2; shift 2; done; }
sent() { local given=() name; for name in "${!pairs[@]}"; do
        case ${pairs[$name]} in @*) given+=(--data-urlencode "$name${pairs[$name]}");; *) given+=(--data-urlencode "$name=${pairs[$name]}");; esac; done
    curl -s --interface 127.0.$((N++ / 200 % 200 + 1)).$((N % 200 + 2)) -o answer -w '%{http_code} ' "${given[@]}" "$U/"
    xmllint --xpath 'local-name(/answer/*[1])' answer 2> /dev/null || echo text; }
registers() { set_pairs verb RegisterActor computerName www domainName evil.example port 80 eMailAddress a@b password secret123 "$@"; sent; }
documents() { set_pairs verb RegisterDocument actorID "$(< www)" password secret123 documentURL http://www.evil.example/a documentLastUpdate 2026-01-01T00:00:00Z "$@"; sent; }
is_alive() { curl -s -o /dev/null -w '%{http_code}\n' $U/; ibifs resolver actors --db r.db --json | jq length; ibifs resolver documents --db r.db --json | jq length; }
N=0
"#;

/// A value that is too long, has characters that it may not have, is the address of a machine, or leads elsewhere is
/// refused in XML, and nothing is registered.
#[test]
fn what_is_no_value_is_refused() {
    let fixture = fixture();
    fixture.prints(
        r#"
        head -c 400000 /dev/zero | tr '\0' a > long; head -c 300 long > longer; printf 'a\0b' > nul; printf 'a\r\nLocation: http://x' > lines
        printf '\xff\xfe' > bytes; printf '\xd0\xb5vil' > other; L=$(head -c 64 long)
        for computer in '<x>&"' ../.. . '' "$L" @long @longer @nul @lines @bytes @other 'a b' a.b '*' '%00' '[::1]' "'; DROP TABLE actor; --"; do registers computerName "$computer"; done > said
        for domain in '<x>' ../../x . '' a..b -a "$L.b" @long @nul @lines @bytes 10.0.0.1 127.0.0.1 '[::1]'; do registers domainName "$domain"; done >> said
        registers computerName 127 domainName 0.0.1 >> said; registers computerName 10 domainName 1.1.1 >> said
        for port in 0 65536 -1 +80 '' 80x 080000 99999999999999999999 @long @nul; do registers port "$port"; done >> said
        for email in '' a a@ @b 'a b@c' '<a>@b c' @long @longer @nul @lines; do registers eMailAddress "$email"; done >> said
        for password in '' short @long @longer @nul @lines; do registers password "$password"; done >> said
        sort said | uniq -c | tr -s ' '; is_alive"#,
        " 57 400 errorMessage\n 2 400 text\n200\n0\n0",
    );
    fixture.prints(
        r#"
        registers > /dev/null; xmllint --xpath 'string(//actorID)' answer > www
        for url in http://127.0.0.1/ http://127.1/ http://0x7f.1/ http://2130706433/ 'http://[::1]/' 'http://[::ffff:127.0.0.1]/' http://localhost/ http://10.0.0.1/ \
            http://169.254.169.254/latest 'http://www.evil.example@127.0.0.1/' 'http://127.0.0.1#@www.evil.example/' 'http://127.0.0.1\@www.evil.example/' http://www.evil.example.127.0.0.1/ \
            http://www.evil.example:22/ https://www.evil.example/ javascript:alert file:///etc/passwd //www.evil.example/ 'http:www.evil.example/' @long @nul @lines @bytes 'http://www.evil.example:80:80/'; do
            for name in documentURL nextEditionURL; do documents $name "$url"; done; done > said
        for id in x '../../../etc/passwd' "$(head -c 5000 long)" @long @nul @lines a.b/c/2026/01.01.01.01.01.01.01 a.b/c/2026/13.45.99.99 a.b/c/2999/01.01.01.01 '<a>/b/2026/01.01.01.01'; do documents documentID "$id"; done >> said
        for date in x 2026-01-01 9999-99-99T00:00:00Z @long @nul; do documents documentLastUpdate "$date"; done >> said
        documents fingerprint x >> said; documents originalDocument maybe >> said; documents actorID x >> said; documents actorID @long >> said; documents more x >> said
        sort said | uniq -c | tr -s ' '; is_alive
        # What one may register cannot break out of the head of the redirection, nor out of the answer.
        documents documentURL "http://www.evil.example/a\"<>'|  ]]>&amp;%0d%0aSet-Cookie: a=b" documentID 3D446S8B8W/34U55T2
        curl -s -D - -o /dev/null $U/3D446S8B8W/34U55T2 | grep -i '^location\|^set-cookie' | tr -d '\r'"#,
        " 66 400 errorMessage\n 2 400 text\n200\n1\n0\n200 documentID\n\
         location: http://www.evil.example/a%22%3C%3E'%7C%20%20]]%3E&amp;%0d%0aSet-Cookie:%20a=b",
    );
}

/// Of several actors for one prefix the first has it, in every spelling; another port is another actor, who makes no
/// identifiers of the first.
#[test]
fn a_prefix_has_one_actor() {
    let fixture = fixture();
    fixture.prints(
        r#"
        registers > /dev/null; xmllint --xpath 'string(//actorID)' answer > www
        registers; cmp www <(xmllint --xpath 'string(//actorID)' answer)
        registers password other123; registers password other123 computerName WWW domainName Evil.EXAMPLE.; registers password other123 port 080
        registers password other123 port 8080; xmllint --xpath 'string(//actorID)' answer > port; cut -d/ -f1,2 www port
        documents actorID "$(< port)" password other123 documentURL http://www.evil.example:8080/theirs documentID evil.example/www@80/2026/01.01.01.01 originalDocument yes
        to evil.example/www@80/2026/01.01.01.01; to 'evil.example/www@80/2026/01.01.01.01?ibiurl.requireditemstatus=Original'
        documents documentURL http://www.evil.example/own documentID evil.example/www@80/2026/01.01.01.01 originalDocument yes
        to evil.example/www@80/2026/01.01.01.01; to 'evil.example/www@80/2026/01.01.01.01?ibiurl.requireditemstatus=Original'
        for i in 1 2 3 4 5 6 7 8; do curl -s --interface 127.0.3.$i --data-urlencode computerName=new -d verb=RegisterActor -d domainName=evil.example -d port=80 -d eMailAddress=a@b -d password=secret$i $U/ > answer$i & done; wait
        grep -l actorID answer? | wc -l; grep -l 'registered already, with another password' answer? | wc -l"#,
        "200 actorID\n400 errorMessage\n400 errorMessage\n400 errorMessage\n200 actorID\nevil.example/www@80\nevil.example/www@8080\n\
         200 documentID\n302 http://www.evil.example:8080/theirs\n404 \n200 documentID\n302 http://www.evil.example/own\n302 http://www.evil.example/own\n1\n7",
    );
}

/// Thousands of requests of one client, and of a network of IPv6 addresses, wait for each other, and not others for them.
#[test]
fn thousands_of_requests_delay_no_other_client() {
    let fixture = fixture();
    fixture.prints(
        r#"
        trap 'ends $flood; wait $flood 2> /dev/null || true' EXIT
        registers > /dev/null; xmllint --xpath 'string(//actorID)' answer > www; documents documentID 3D446S8B8W/34U55T2 > /dev/null
        for i in $(seq 3000); do printf 'url = "%s/?verb=RegisterActor&computerName=c%d&domainName=d%d.example&port=80&eMailAddress=a@b&password=secret123"\n-o /dev/null\n' $U $i $i; done > urls
        curl -s -Z --parallel-max 64 --interface 127.0.0.2 -K urls -w '%{http_code}\n' > codes & flood=$!
        until [ -s codes ]; do sleep .05; done
        begun=$(date +%s%N); for i in 1 2 3; do registers computerName other$i; to 3D446S8B8W/34U55T2; done
        took=$((($(date +%s%N) - begun) / 1000000)); [ $took -lt 10000 ] && echo soon || echo $took ms
        ends $flood; wait $flood 2> /dev/null || true; sort -u codes | grep -v '^\(200\|400\|503\)$' || true
        ibifs resolver actors --db r.db --json | jq -c '[.[].client] | group_by(.) | map(select(.[0] == "127.0.0.2") | length <= 20)'"#,
        &format!("{}soon\n[true]", "200 actorID\n302 http://www.evil.example/a\n".repeat(3)),
    );
}
