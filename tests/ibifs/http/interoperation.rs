//! Two Archives, mounted and served, and a resolver between them: what a reader meets who follows
//! persistent links with curl and with a browser.

use super::served::Served;
use super::stub::{Reply, Stub};
use crate::support::TestEnv;

/// The Archives and their places.
struct Fixture {
    // Dropped in this order.
    a: Served,
    b: Served,
    resolver: Served,
    env: TestEnv,
}

/// An Archive that is served and has included itself with the resolver.
fn included(env: &TestEnv, resolver: &Served, store: &str) -> Served {
    env.sh(&format!(
        "ibifs resolver register --db r.db $(sed -n 's/^ibi.archiveservice {{rep \\([^ ]*\\) .*/\\1/p' {store}/archive.ibi) > {store}.key; chmod 600 {store}.key"
    ));
    let mut served = Served::start(
        env,
        &format!(
            "{store} --address 127.0.0.1:0 --resolver {} --registration-key-file {store}.key --email a@example.org",
            resolver.url
        ),
    );
    let line = served.line();
    assert_eq!(
        line,
        format!("included with {}/J8LNKB5R7W/3FUQHC5", resolver.url)
    );
    served
}

impl Fixture {
    fn new() -> Fixture {
        let env = TestEnv::new().with_a().with_b();
        let resolver = Served::resolver(&env, "");
        let a = included(&env, &resolver, "A.store");
        let b = included(&env, &resolver, "B.store");
        Fixture {
            env,
            resolver,
            a,
            b,
        }
    }

    /// Runs a script in which `$R`, `$A` and `$B` are where the three are reached, and `to` prints the
    /// status and where the resolver sends a reader.
    #[track_caller]
    fn prints(&self, script: &str, expected: &str) {
        let (r, a, b) = (&self.resolver.url, &self.a.url, &self.b.url);
        self.env.prints(
            &format!(
                "R={r} A={a} B={b}
                 to() {{ curl -s -o body -w '%{{http_code}} %{{redirect_url}}\\n' \"${{@:2}}\" \"$R/$1\" | sed \"s|$A|A|; s|$B|B|\"; }}
                 {script}"
            ),
            expected,
        );
    }
}

/// Everything that issue and documents name, in one walk.
#[test]
fn readers_are_led_between_two_archives() {
    let fixture = Fixture::new();
    let env = &fixture.env;
    env.sh(
        r#"
        # In A an English report with two files; its next edition and its Portuguese translation are in B.
        mint A report > x; mkdir -p A/$(< x)/doc/maps
        echo one > A/$(< x)/doc/index.html; echo map > "A/$(< x)/doc/maps/Bahia & São.txt"
        ibip A/.mint/report > xi
        mint B second > y; echo two > B/$(< y)/doc/index.html
        echo 'title: The second edition' > B/$(< y):
        mint B traducao > z; echo dois > B/$(< z)/doc/index.html
        sed -i '$a language pt' B/$(< z)/.ibi; sed -i '$a language en' A/$(< x)/.ibi
        ibifs relate A/$(< x) --next-edition $(< y)
        ibifs relate A/$(< x) --translation $(< z) --lang pt
        "#,
    );
    // A plain identifier, in both forms, and what is behind it.
    fixture.prints(
        "for ibi in $(< x) $(< xi); do to $ibi; done; curl -sL $R/$(< xi)",
        &format!(
            "302 A/col/{0}/doc/index.html\n302 A/col/{0}/doc/index.html\none",
            env.sh("cat x")
        ),
    );
    // A path, as it is and encoded; a path that is not there.
    fixture.prints(
        "curl -sL \"$R/$(< x)/maps/Bahia%20%26%20S%C3%A3o.txt\"; to $(< x)/maps/none",
        "map\n404 ",
    );
    // The list of files.
    fixture.prints(
        "curl -sL -H 'Accept: application/json' \"$R/$(< xi)?ibiurl.verblist=GetFileList\" | jq -r '.files[].path'",
        "doc/index.html\ndoc/maps/Bahia & São.txt",
    );
    // Example 8.2 of the documents: the last edition is one that A knows by name only.
    fixture.prints(
        "to $(< x)!:\\(oai_dc\\) | sed 's|/[^/]*:(oai_dc)|/Y:(oai_dc)|'; curl -sL \"$R/$(< x)!:(oai_dc)\" | xmllint --xpath 'string(//*[local-name()=\"title\"])' -
         curl -sL \"$R/$(< xi)!\"; curl -sL \"$R/$(< xi)?ibiurl.verblist=GetLastEdition\"",
        &format!("302 B/{}/Y:(oai_dc)\nThe second edition\ntwo\ntwo", env.sh("dirname $(cat y)")),
    );
    // The language of the reader chooses between A and B, and so does that of the link.
    fixture.prints(
        "for language in pt pt-BR,en en-GB,pt; do curl -sL -H \"Accept-Language: $language\" $R/$(< x)+; done
         curl -sL \"$R/$(< x)+(pt)\"; to \"$(< x)+(fr)\"
         curl -s -o body -D - $R/$(< x)+ | grep -i '^vary' | tr -d '\\r'",
        "dois\ndois\none\ndois\n404 \nvary: Accept, Accept-Language",
    );
    // A statement of A about an item of B leads on to B, with the rest of the way.
    env.sh("echo 'title: A tradução' > B/$(< z):");
    fixture.prints(
        "curl -sL \"$R/$(< x)+(pt):(oai_dc)\" | xmllint --xpath 'string(//*[local-name()=\"title\"])' -",
        "A tradução",
    );
    // The original among copies.
    env.sh("cp -a A/$(< x) B/$(dirname $(< x))/ 2> /dev/null || { mkdir -p B/$(dirname $(< x)); cp -a A/$(< x) B/$(dirname $(< x))/; }; test $(state B/$(< x)) = Copy");
    fixture.prints(
        "for i in 1 2 3; do to \"$(< x)?ibiurl.requireditemstatus=Original\"; done | sort -u",
        &format!("302 A/col/{}/doc/index.html", env.sh("cat x")),
    );
    // B claims it, too.
    env.sh(
        "service() { sed -n 's/^ibi.archiveservice //p' $1.store/archive.ibi; }
         sed \"s|^ibi.archiveservice .*|ibi.archiveservice $(service B)|\" A/$(< x)/.ibi > claim; cp claim B/$(< x)/.ibi
         test $(state B/$(< x)) = Original",
    );
    fixture.prints(
        "to \"$(< x)?ibiurl.requireditemstatus=Original\" -H 'Accept: application/json'
         jq -r '.alert, (.suspects | length)' body",
        "409 \nsuspects\n2",
    );
    // Removed in B, it is the one of A again; removed in both, it is gone; what was never there is not.
    env.sh("rm -r B/$(< x)");
    fixture.prints(
        "to \"$(< x)?ibiurl.requireditemstatus=Original\" | cut -d ' ' -f 1; rm -r A/$(< x); to $(< x); to $(< xi)
         grep -c '<h1><bdi>Removed' body; to example.org/nobody/2001/01.01.01.01",
        "302\n410 \n410 \n1\n404 ",
    );
}

/// A resolver leads `archive.cgi` to the zip file of the item, and `attachment.cgi` to the download, at the Archive
/// that holds it, by either form of the identifier.
#[test]
fn a_resolver_leads_to_downloads() {
    let fixture = Fixture::new();
    fixture.env.sh(
        "mint B thesis > x; ibip B/.mint/thesis > xi; mkdir B/$(< x)/doc/maps
         echo first > B/$(< x)/doc/index.html; echo map > \"B/$(< x)/doc/maps/São.txt\"
         mint B secret > s; echo secret > B/$(< s)/doc/x; chmod 700 B/$(< s)",
    );
    fixture.prints(
        r#"
        for ibi in $(< x) $(< xi) ibi:$(< xi); do
            curl -sSL --fail -o whole.zip -w '%{content_type} %{num_redirects}\n' $R/archive.cgi/$ibi
            rm -rf whole; unzip -q whole.zip -d whole; (cd whole; find . -name index.html -execdir cat {} +; find . -name 'São.txt' -execdir cat {} +)
        done
        mkdir saved; cd saved
        curl -sSL --fail -OJ "$R/attachment.cgi/$(< ../x)/doc/maps/S%C3%A3o.txt"; cat S*
        curl -sSL -D - -o file $R/attachment.cgi/$(< ../xi) | tr -d '\r' | grep -i '^content-disposition'; cat file; cd ..
        to archive.cgi/$(< x) | sed "s:$(< x):X:"; to attachment.cgi/$(< x)/maps/S%C3%A3o.txt | sed "s:$(< x):X:"
        for list in $(< xi)?GetFormats "$(< x)?ibiurl.verblist=GetFormats" "$(< x):(formats)"; do curl -sSL --fail "$R/$list" | head -n 1 | cut -f 1; done
        for none in archive.cgi/$(< s) attachment.cgi/$(< s)/doc/x archive.cgi/x.y/none/2009/01.01.01.01 attachment.cgi/$(< x)/none archive.cgi/; do
            curl -sL -o body -w '%{http_code}\n' $R/$none
        done"#,
        &format!(
            "{}map\ncontent-disposition: attachment; filename=\"index.html\"\nfirst\n302 B/archive.cgi/X\n\
             302 B/attachment.cgi/X/doc/maps/S%C3%A3o.txt\noai_dc\noai_dc\noai_dc\n404\n404\n404\n404\n404",
            "application/zip 1\nfirst\nmap\n".repeat(3)
        ),
    );
}

/// A resolver completes `upn:` names by its table: by the first prefix under which an Archive has the item.
#[test]
fn a_resolver_completes_names_of_name_spaces() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A > names; head -n 1 names > x; echo content > A/$(< x)/doc/f.txt
         echo 'ABCDEF none.example/none' $(dirname $(dirname $(< x))) > table; echo BAD > bad
         for file in bad none; do
             status=0; ibifs resolver --db r.db --upn $file --listen 127.0.0.1:0 2> said || status=$?
             test $status = 1; grep -q \"^ibifs: $file: \" said
         done",
    );
    let resolver = Served::resolver(&env, "--upn table");
    let a = included(&env, &resolver, "A.store");
    resolver.prints(
        &env,
        "suffix=$(basename $(dirname $(< x)))/$(basename $(< x))
         for path in upn:ABCDEF:$suffix upn:abcdef:$suffix/f.txt upn:ABCDEF:$(< x) upn:QQQQQQ:$(< x); do get -L $U/$path; done
         for path in upn:QQQQQQ:$suffix upn:ABCDEF:2001/01.01.01.01 upn:ABCDEF:x; do status $U/$path; done",
        "content\ncontent\ncontent\ncontent\n404\n404\n404",
    );
    drop(a);
}

/// A browser shows the item behind a link, and the alert of one that was removed.
#[test]
fn a_browser_is_led_to_the_item() {
    let fixture = Fixture::new();
    fixture.env.sh(
        "mint A page > x; echo '<!DOCTYPE html><title>t</title><h1>Here it is</h1>' > A/$(< x)/doc/index.html
         mint A gone > g; rm -r A/$(< g)",
    );
    fixture.prints(
        "browse() { timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \\
            --user-data-dir=$PWD/profile --virtual-time-budget=2000 --accept-lang=pt-BR --dump-dom \"$1\" 2> complaints; }
         browse $R/$(< x) | grep -o '<h1>.*</h1>'; browse $R/$(< g) | grep -o '<h1>.*</h1>'; browse $R/ | grep -o 'Arquivos: .'",
        "<h1>Here it is</h1>\n<h1><bdi>Removido</bdi></h1>\nArquivos: 2",
    );
}

/// An Archive that is switched off is not asked any more, and is again where it is switched on, at another port;
/// a resolver that starts later than the Archives, or is started again, knows them.
#[test]
fn archives_come_and_go() {
    let Fixture {
        env,
        resolver,
        a,
        b,
    } = Fixture::new();
    env.sh("mint A page > x; echo here > A/$(< x)/doc/index.html");
    drop((a, b));
    env.prints("ibifs resolver list --db r.db | grep -c excluded", "2");
    // An Archive that is switched off may have it.
    resolver.prints(&env, "status $U/$(< x)", "503");
    let a = Served::start(
        &env,
        &format!(
            "A.store --address 127.0.0.1:0 --resolver {}/J8LNKB5R7W/3FUQHC5 --registration-key-file A.store.key --email a@b.example",
            resolver.url
        ),
    );
    env.prints(
        &format!(
            "for i in $(seq 100); do curl -sL {}/$(< x) | grep ^here && break; sleep .1; done",
            resolver.url
        ),
        "here",
    );
    drop(resolver);
    let resolver = Served::resolver(&env, "");
    resolver.prints(&env, "get -L $U/$(< x)", "here");
    drop(a);
    env.complains(
        "ibifs serve A.store --listen 127.0.0.1:0 --resolver ftp://x --registration-key-file A.store.key --email a@b.example",
        "'ftp://x' is not the URL of a resolver; write https://host, or the URL of its service",
    );
    env.complains(
        "echo 12 > bad; chmod 600 bad; ibifs serve A.store --listen 127.0.0.1:0 --resolver http://x --registration-key-file bad --email a@b.example",
        "bad: a registration key is 10 digits or more",
    );
    env.complains(
        "ibifs serve A.store --resolver http://x",
        "--registration-key-file",
    );
}

/// A resolver of the documents gets the pairs of the documents alone. One that says that it reads prefixes gets them in a
/// second message, and that of ibifs says so.
#[test]
fn prefixes_are_announced_to_resolvers_that_read_them() {
    for reads_prefixes in [false, true] {
        let env = TestEnv::new().with_a();
        env.sh("echo 1427244889-5349022633744855 > key; chmod 600 key");
        let stub = Stub::start(1, move |_| {
            let line = if reads_prefixes {
                "ibifs-pairs-read: archiveprefixes\r\n"
            } else {
                ""
            };
            let text = "status.archive included status.confirmation successful";
            let head = format!("HTTP/1.1 200 OK\r\n{line}Content-Length: {}", text.len());
            Reply::Raw(format!("{head}\r\n\r\n{text}").into_bytes())
        });
        let options = format!(
            "A.store --address 127.0.0.1:0 --resolver http://{} --registration-key-file key --email a@example.org",
            stub.address
        );
        let served = Served::start(&env, &options);
        let count = 1 + usize::from(reads_prefixes);
        let heard = stub.hears("inclusionRequest", count);
        let have_prefixes: Vec<bool> = heard
            .iter()
            .map(|query| query.contains("&archiveprefixes=example.org/archive-a"))
            .collect();
        assert_eq!(have_prefixes, [false, true][..count], "{heard:?}");
        drop(served);
        assert_eq!(stub.received("inclusionRequest").len(), count);
    }
    let env = TestEnv::new().with_a();
    let resolver = Served::resolver(&env, "");
    let _served = included(&env, &resolver, "A.store");
    let message = "servicesubject=inclusionRequest&archiveaddress=127.0.0.1:1&archiveip=127.0.0.1&archiveprotocol=HTTP\
        &archiveplatformversion=1&archiveadmemailaddress=a@b";
    resolver.prints(
        &env,
        &format!(
            "service=$(sed -n 's/^ibi.archiveservice {{rep \\([^ ]*\\) .*/\\1/p' A.store/archive.ibi)
             line ibifs-pairs-read \"$U/J8LNKB5R7W/3FUQHC5?{message}&archiveserviceibi=$service&registrationkey=$(< A.store.key)\""
        ),
        "archiveprefixes",
    );
}
