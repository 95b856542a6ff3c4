//! Resolvers that share a registry, in a PostgreSQL server.

use std::time::{Duration, Instant};

use super::served::Served;
use super::stub::{Reply, Stub};
use crate::support::{Postgres, Stop, TcpProxy, TestEnv};

const ITEM: &str = "example.org/items/2009/02.16.17.46";
const DOCUMENT: &str = "3D446S8B8W/34U55T2";
/// The time that an answer may take, with the start of the client program on a busy machine. One that waits for the server
/// takes a minute.
const SOON: Duration = Duration::from_secs(8);

/// The functions that every script here may use. `S` is the service of the stub and `A` its address.
const TOOLS: &str = r#"
code() { curl -s -m 10 -o body -w '%{http_code} %{redirect_url}\n' "$@"; }
include() {
    code "$U/J8LNKB5R7W/3FUQHC5?servicesubject=${1}Request&archiveaddress=$A&archiveserviceibi=$S&archiveip=127.0.0.1&archiveprotocol=HTTP&archiveplatformversion=1&archiveadmemailaddress=a@b&registrationkey=$(< key)"
}
# Until a command prints this.
awaits() { local wanted=$1 i; shift; for i in $(seq 100); do [[ $("$@") = "$wanted" ]] && return; sleep 0.1; done; "$@"; cat body; return 1; }
"#;

struct Fixture {
    env: TestEnv,
    stub: Stub,
}

impl Fixture {
    /// An Archive that is registered in a database.
    fn new(url: &str) -> Fixture {
        let env = TestEnv::new();
        let stub = Stub::start(1, |query| {
            let is_item = query.get("parsedibiurl.ibi") == Some(ITEM);
            let held = format!("ibi {{rep {ITEM}}} state Original url http://a.example.org/x");
            Reply::Text(if is_item { held } else { String::new() })
        });
        env.sh(&format!(
            "echo 1427244889-5349022633744855 > key; chmod 600 key
             ibifs resolver register --db '{url}' --key-file key {}",
            stub.service
        ));
        Fixture { env, stub }
    }

    fn resolver(&self, url: &str, log: &str) -> Served {
        let command = format!("resolver --db '{url}' --registration-2009 2> {log}");
        Served::within(&self.env, "env RUST_LOG=info", &command)
    }

    #[track_caller]
    fn prints(&self, resolver: &Served, script: &str, expected: &str) {
        let (service, address) = (&self.stub.service, &self.stub.address);
        let script = format!("S={service}; A={address}\n{TOOLS}\n{script}");
        resolver.prints(&self.env, &script, expected);
    }

    /// Each request that needs the database is answered soon that it cannot be reached, and others as before.
    #[track_caller]
    fn is_without_database(&self, resolver: &Served) {
        for (script, expected) in [
            (
                "include inclusion; cat body",
                "503 \nthe resolver's database cannot be reached now; try again later",
            ),
            ("include exclusion", "503 "),
            (
                &format!(
                    "code $U/ -d verb=DisplayIDRegistration -d actorID={DOCUMENT} -d password=12xY3z -d documentID={DOCUMENT}; grep -c 'try again later' body"
                ),
                "503 \n1",
            ),
            (
                &format!("code $U/{DOCUMENT}; cat body"),
                "503 \nthe resolver's database cannot be reached now; try again later",
            ),
            (&format!("code $U/{ITEM}"), "302 http://a.example.org/x"),
        ] {
            let started = Instant::now();
            self.prints(resolver, script, expected);
            let taken = started.elapsed();
            assert!(taken < SOON, "{script}: {taken:?}");
        }
    }
}

/// Each resolver reads what the other one writes. While the server is away both say so; then both continue.
#[test]
fn two_resolvers_have_one_registry() {
    let server = Postgres::start();
    let url = server.url(&server.create_database());
    let fixture = Fixture::new(&url);
    let one = fixture.resolver(&url, "one.log");
    let two = fixture.resolver(&url, "two.log");
    fixture.prints(&two, &format!("code $U/{ITEM}"), "503 ");
    fixture.prints(&one, "include inclusion", "200 ");
    fixture.prints(
        &two,
        &format!("awaits '302 http://a.example.org/x' code $U/{ITEM}"),
        "",
    );
    fixture.prints(
        &one,
        "code $U/ -d verb=RegisterActor -d computerName=hermes -d domainName=dpi.inpe.br -d port=80 -d eMailAddress=a@b -d password=12xY3z
         grep -o 'dpi.inpe.br/hermes@80/[^<]*' body > actor",
        "200 ",
    );
    let document = format!(
        "code $U/ -d verb=RegisterDocument -d actorID=$(< actor) -d password=12xY3z -d documentID={DOCUMENT} -d documentURL=http://hermes.dpi.inpe.br/a -d documentLastUpdate=2008-07-17T17:22:06Z"
    );
    fixture.prints(&two, &document, "200 ");
    let led = format!("awaits '302 http://hermes.dpi.inpe.br/a' code $U/{DOCUMENT}");
    fixture.prints(&one, &led, "");
    fixture.prints(&two, &led, "");

    // A peer may read their list from either.
    fixture.env.sh(&format!("ibifs resolver key --db '{url}'"));
    let same = format!(
        "list() {{ curl -s -D head $1/federatedArchives.txt > $2; grep -io '^etag: .*' head >> $2; }}
         both() {{ list {} a; list {} b; grep -ci '^etag' a; cmp a b; }}; awaits 1 both",
        one.url, two.url
    );
    fixture.prints(&one, &same, "");
    fixture.prints(&one, &format!("include inclusion; {same}"), "200 ");

    for (count, how) in [(1, Stop::Fast), (2, Stop::Immediate)] {
        server.stop(how);
        // Also some time later, when the connection is made again.
        for _ in 0..2 {
            fixture.is_without_database(&one);
            fixture.is_without_database(&two);
            std::thread::sleep(Duration::from_millis(700));
        }
        let started = Instant::now();
        fixture.env.complains(
            &format!("ibifs resolver list --db '{url}'"),
            "cannot be reached",
        );
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
        server.start_again();
        for resolver in [&one, &two] {
            fixture.prints(resolver, &led, "");
            fixture.prints(resolver, "include inclusion", "200 ");
        }
        // Each stop is logged once, or by a connection that was left as well, but not by each request.
        for log in ["one.log", "two.log"] {
            let read = format!("awaits {count} grep -c 'is read again' {log}");
            fixture.prints(&one, &read, "");
            let logged = fixture
                .env
                .sh(&format!("grep -c 'cannot be reached' {log}"));
            let logged: usize = logged.parse().expect("a count");
            assert!((count..=2 * count).contains(&logged), "{logged}");
        }
    }
    fixture.prints(&one, "include exclusion", "200 ");
    fixture.prints(&two, &format!("awaits '503 ' code $U/{ITEM}"), "");
    fixture.env.sh(&format!(
        "ibifs resolver unregister --db '{url}' {}",
        fixture.stub.service
    ));
    fixture.prints(&two, &format!("awaits '404 ' code $U/{ITEM}"), "");
}

/// A server that is silent, as when a cable is pulled.
#[test]
fn a_silent_server_is_not_waited_for() {
    let server = Postgres::start();
    let proxy = TcpProxy::start(server.port());
    let url = server.url(&server.create_database());
    let url = url.replace(&server.port().to_string(), &proxy.port().to_string());
    let fixture = Fixture::new(&url);
    let resolver = fixture.resolver(&url, "log");
    fixture.prints(&resolver, "include inclusion", "200 ");
    for away in [TcpProxy::freeze, TcpProxy::cut] {
        away(&proxy);
        for _ in 0..3 {
            fixture.is_without_database(&resolver);
            std::thread::sleep(Duration::from_millis(300));
        }
        proxy.mend();
        fixture.prints(&resolver, "awaits '200 ' include inclusion", "");
    }
}

/// Both make the schema and register the same Archive at once. An index and a registry have a database each.
#[test]
fn a_registry_is_made_once() {
    let env = TestEnv::new().with_postgres();
    env.prints(
        r#"database > url; for i in 1 2 3 4 5 6; do ibifs resolver register --db "$(< url)" 8JMKD3MGP8W/34PGRBS > key.$i & done; wait
        cat key.* | wc -l; ibifs resolver list --db "$(< url)" --json | jq length
        ibifs resolver key --db "$(< url)" > a; ibifs resolver key --db "$(< url)" | cmp - a
        psql -At "$(< url)" -c 'SELECT version FROM ibifs_registry'"#,
        "6\n1\n1",
    );
    env.complains(
        r#"ibifs init s --host a.example.org --index "$(< url)""#,
        "it holds other data of ibifs; name an empty database",
    );
    env.complains(
        r#"database > other; ibifs init t --host a.example.org --index "$(< other)" > /dev/null
        ibifs resolver list --db "$(< other)""#,
        "it holds other data of ibifs; name an empty database",
    );
    env.prints(
        r#"ibifs fsck t; ibifs resolver list --db "$(< url)" | wc -l"#,
        "1 item, 0 findings\n1",
    );
}

/// The password comes from a file, and is in no message and no list of processes.
#[test]
fn a_password_is_nowhere_to_be_read() {
    let server = Postgres::start_with_tls();
    let url = server.url(&server.create_database());
    let (_, rest) = url.split_once("://ibifs:").expect("a password");
    let (password, place) = rest.split_once('@').expect("a password");
    let place = place.split('?').next().unwrap_or_default();
    let env = TestEnv::new();
    std::fs::write(
        env.root().join(".pgpass"),
        format!("*:*:*:ibifs:{password}\n"),
    )
    .expect("written");
    let authority = server.authority();
    let url = format!(
        "postgres://ibifs@{place}?sslmode=require&sslrootcert={}",
        authority.display()
    );
    env.sh("chmod 600 .pgpass");
    let resolver = Served::within(
        &env,
        "env RUST_LOG=debug",
        &format!("resolver --db '{url}' 2> log"),
    );
    server.stop(Stop::Fast);
    env.sh("for i in $(seq 100); do grep -q 'cannot be reached' log && exit; sleep 0.1; done; cat log; exit 1");
    server.start_again();
    env.sh("for i in $(seq 100); do grep -q 'is read again' log && exit; sleep 0.1; done; cat log; exit 1");
    env.prints(
        &format!(
            "tr '\\0' ' ' < /proc/{}/cmdline | cat - log | grep -c '{password}' || true",
            resolver.process()
        ),
        "0",
    );
    env.prints(
        "{ ibifs resolver list --db postgres://u:secret@h/d 2>&1 || true; } > said; grep -c secret said || true; grep -o 'PGPASSFILE' said",
        "0\nPGPASSFILE",
    );
    env.sh("rm .pgpass");
    env.complains(
        &format!("ibifs resolver list --db '{url}'"),
        "the resolver's database in",
    );
}
