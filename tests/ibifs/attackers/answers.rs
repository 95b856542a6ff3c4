//! The storage of answers in a shared cache: one that depends on a header of the request says so, in whichever form it
//! is sent.

use crate::http::served::{Fixture, Served};
use crate::support::TestEnv;

/// Each URL whose answers differ by a header names that header in all of them. Otherwise a cache would give a reader what
/// another one has asked for.
#[test]
fn an_answer_names_the_headers_by_which_it_differs() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"ibifs mint A | head -n 1 > one; ibifs mint A | head -n 1 > other
        for name in one other; do echo "title: Title of $name" > "A/$(< $name):"; echo text > A/$(< $name)/doc/f.txt; done
        setfattr -n user.ibi.language -v en A/$(< one); setfattr -n user.ibi.translation.pt -v $(< other) A/$(< one)"#,
    );
    let served = Served::start(&env, "A.store");
    let tools = r#"
    accepts=('*/*' text/html application/json image/png); languages=(en pt)
    # What an answer says, without what differs each time, and the headers that it names.
    ask() { curl -s -D head -o body --path-as-is --globoff "$@" || true; tr -d '\r' < head > h; { head -n 1 h; grep -i '^\(location\|content-type\|content-language\):' h || true; cat body; } | sha256sum; }
    named() { { grep -i '^vary:' h || true; } | tr 'A-Z' 'a-z'; }
    check() { # METHOD PATH HEADER VALUES...
        local method=$1 path=$2 header=$3 value first= differs= silent=; shift 3
        for value; do
            ask -X $method -H 'Depth: 0' -H "$header: $value" "$U$path" > now
            test -z "$first" && first=$(< now); test "$first" = "$(< now)" || differs=1
            named | grep -q "${header,,}\b" || silent=1
        done
        test -z "$differs$silent" || test -z "$differs" || test -z "$silent" || echo "$method $path: $header"
    }
    "#;
    Fixture::new(env, served, tools).prints(
        r#"
        for item in $(< one) $(ibip A/$(< one)); do
            for by in '' : + +: '+:(oai_dc)' '+(pt):' '?ibiurl.verblist=GetFileList' +/f.txt +/none; do
                for above in / /dav/; do
                    check GET "$above$item$by" Accept "${accepts[@]}"; check GET "$above$item$by" Accept-Language "${languages[@]}"
                done
                check PROPFIND "/dav/$item$by" Accept-Language "${languages[@]}"
            done
        done
        # A refusal where a reader of another language gets an answer, or may get one later.
        chmod 700 "A/$(< one)"; line vary "$U/dav/$(< one)+"; chmod 755 "A/$(< one)"
        line vary "$U/dav/$(< one)+/none"; line vary -X PROPFIND -H 'Depth: 0' "$U/dav/$(< one)+/none"
        ask "$U/$(< one):" > /dev/null; named; ask "$U/$(< one)+:" > /dev/null; named"#,
        "Accept-Language\nAccept-Language\nAccept-Language\nvary: accept\nvary: accept, accept-language",
    );
}
