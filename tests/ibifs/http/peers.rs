//! Several resolvers for one federation: each asks the Archives that are registered with another one, by its signed
//! list.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::resolver::redirect;
use super::served::{Served, registry};
use super::stub::{Reply, Stub};
use crate::support::TestEnv;

/// A web server at a fixed address that has the list of a resolver, or what a test puts there.
pub struct Mirror {
    /// The URL of the web server.
    pub url: String,
    text: Arc<Mutex<String>>,
}

impl Mirror {
    /// Starts one that has an empty text. It ends with the process of the tests.
    pub fn start() -> Mirror {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let text = Arc::new(Mutex::new(String::new()));
        let served = Arc::clone(&text);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                if lines.take_while(|line| !line.is_empty()).count() > 0 {
                    let text = served.lock().expect("a text").clone();
                    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
                    let _ = write!(stream, "{head} {}\r\n\r\n{text}", text.len());
                }
            }
        });
        Mirror { url, text }
    }

    /// Puts a text there.
    pub fn put(&self, text: &str) {
        text.clone_into(&mut self.text.lock().expect("a text"));
    }

    /// Puts there what a resolver publishes.
    fn copy(&self, env: &TestEnv, resolver: &Served) -> String {
        let list = resolver.sh(env, "get $U/federatedArchives.txt") + "\n";
        self.put(&list);
        list
    }
}

/// The item of an Archive, whose prefix says nothing of who has it.
fn item(number: usize) -> String {
    format!("example.org/items/2009/02.16.17.{number:02}")
}

fn holder(number: usize) -> Stub {
    Stub::start(number, move |query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        Reply::Text(if ibi == item(number) {
            format!("ibi {{rep {ibi}}} state Original url http://s{number}/")
        } else {
            String::new()
        })
    })
}

/// The key of the resolver with this database, with which a stub is included.
fn included(env: &TestEnv, database: &str, stub: &Stub) -> String {
    let registry = registry(env, database);
    stub.include(&registry);
    env.sh(&format!("ibifs resolver key --db {database}"))
}

fn start(env: &TestEnv, database: &str, options: &str) -> Served {
    Served::within(
        env,
        "",
        &format!("resolver --db {database} {options} 2>> {database}.log"),
    )
}

fn location(resolver: &Served, path: &str) -> String {
    redirect(&format!("{}/{path}", resolver.url)).1
}

/// Waits until a resolver leads there.
#[track_caller]
fn leads(resolver: &Served, path: &str, to: &str) {
    for _ in 0..600 {
        if location(resolver, path) == to {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{path}: {}", location(resolver, path));
}

#[track_caller]
fn logs(env: &TestEnv, sentence: &str) {
    env.sh(&format!(
        "(waits grep '{sentence}' two.db.log) || {{ cat two.db.log; exit 1; }}"
    ));
}

fn status(env: &TestEnv, resolver: &Served, path: &str) -> String {
    resolver.sh(env, &format!("status $U/{path}"))
}

/// An Archive that is registered with one of two resolvers resolves at both, also after the other one is gone, and
/// after a restart. An Archive that is registered and switched off counts as one that has not answered, at both.
#[test]
fn any_resolver_of_a_federation_answers() {
    let env = TestEnv::new();
    let (one, two) = (holder(1), holder(2));
    let first_key = included(&env, "one.db", &one);
    let second_key = included(&env, "two.db", &two);
    assert_eq!(env.sh("ibifs resolver key --db one.db"), first_key);
    env.prints(
        "ibifs resolver key --db one.db --json | jq -r .key",
        &first_key,
    );
    let mirror = Mirror::start();
    let first = start(
        &env,
        "one.db",
        &format!("--peer {}={second_key} --allow-private", mirror.url),
    );
    let to_first = format!("--peer {}={first_key} --allow-private", first.url);
    let second = start(&env, "two.db", &to_first);
    mirror.copy(&env, &second);
    for resolver in [&first, &second] {
        leads(resolver, &item(1), "http://s1/");
        leads(resolver, &item(2), "http://s2/");
    }
    // The original is required: both Archives must answer.
    let before = two.received("urlRequest").len();
    let required = format!("{}?ibiurl.requireditemstatus=Original", item(1));
    leads(&second, &required, "http://s1/");
    assert_eq!(two.received("urlRequest").len(), before + 1);
    assert_eq!(status(&env, &second, &item(9)), "404");
    env.sh("ibifs resolver register --db one.db example.org/off/2020/01.01.01.01 > off.key");
    second.sh(
        &env,
        &format!("waits eval 'test $(status $U/{}) = 503'", item(9)),
    );
    drop(first);
    leads(&second, &item(1), "http://s1/");
    drop(second);
    let second = start(&env, "two.db", &to_first);
    leads(&second, &item(1), "http://s1/");
    leads(&second, &item(2), "http://s2/");
    // A peer of which nothing is known may have what no other one has.
    drop(second);
    let other = start(&env, "three.db", &to_first);
    assert_eq!(status(&env, &other, &item(1)), "503");
    for (value, sentence) in [
        (first_key.as_str(), "is not a peer; write its URL"),
        (
            &format!("ftp://x={first_key}"),
            "is not the URL of a service",
        ),
        ("http://x=y", "is not the public key of a resolver"),
    ] {
        env.complains(
            &format!("ibifs resolver --db one.db --listen 127.0.0.1:0 --peer={value}"),
            sentence,
        );
    }
}

/// A list that the peer has not signed, or signed before the last one, is refused with a line in the log, and the last
/// good one stays; no private address is asked unless that is allowed.
#[test]
fn what_a_peer_has_not_signed_is_refused() {
    let env = TestEnv::new();
    let (one, evil) = (
        holder(1),
        Stub::start(3, |_| {
            Reply::Text(format!(
                "ibi {{rep {}}} state Original url http://evil/",
                item(1)
            ))
        }),
    );
    let key = included(&env, "one.db", &one);
    let first = start(&env, "one.db", "");
    let mirror = Mirror::start();
    let old = mirror.copy(&env, &first);
    let peer = format!("--peer {}={key}", mirror.url);
    let second = start(&env, "two.db", &format!("{peer} --allow-private"));
    leads(&second, &item(1), "http://s1/");
    let line = format!(
        "archiveaddress {} ibi.archiveservice {{rep {}}}\n",
        evil.address, evil.service
    );
    // Without a signature, with that of another text, with that of another resolver.
    mirror.put(&line);
    logs(&env, "the list is not signed; its resolver needs a key");
    mirror.put(&old.replacen("\narchiveaddress", &format!("\n{line}archiveaddress"), 1));
    logs(
        &env,
        "not signed with the key that is configured for this peer; the last list stays in force",
    );
    env.sh("ibifs resolver key --db two.db");
    second.sh(
        &env,
        "waits eval 'curl -s $U/federatedArchives.txt | grep \"^# sign\"'",
    );
    let before = second.sh(&env, "get $U/federatedArchives.txt") + "\n";
    mirror.put(&before);
    // A later list, and then the old one again.
    let later = holder(2);
    included(&env, "one.db", &later);
    first.sh(
        &env,
        &format!(
            "waits eval 'curl -s $U/federatedArchives.txt | grep -F {}'",
            later.service
        ),
    );
    mirror.copy(&env, &first);
    second.sh(
        &env,
        "waits eval 'test $(curl -s -H \"Accept: application/json\" $U/ | jq .archives) = 2'",
    );
    mirror.put(&old);
    logs(&env, "was there before; the last list stays in force");
    assert_eq!(location(&second, &item(1)), "http://s1/");
    assert_eq!(evil.received("urlRequest"), [""; 0]);
    drop(second);
    // The number of the last list survives a restart. A private address is not asked.
    let heard = one.received("urlRequest").len();
    env.sh(": > two.db.log");
    let second = start(&env, "two.db", &peer);
    logs(&env, "was there before; the last list stays in force");
    assert_eq!(status(&env, &second, &item(1)), "503");
    assert_eq!(one.received("urlRequest").len(), heard);
    // A program that knows the list gets it once.
    first.prints(
        &env,
        "status -H \"If-None-Match: $(line etag $U/federatedArchives.txt)\" $U/federatedArchives.txt",
        "304",
    );
}

/// An Archive is included with two resolvers, and `ibifs world` continues with the second when the first is gone.
#[test]
fn an_archive_is_included_with_several_resolvers() {
    let env = TestEnv::new().with_a();
    env.sh("mint A page > x; echo here > A/$(< x)/doc/index.html
        sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi > service
        for r in one two; do ibifs resolver register --db $r.db $(< service) > $r.key; chmod 600 $r.key; done");
    let resolvers = ["one.db", "two.db"].map(|database| start(&env, database, ""));
    let [one, two] = &resolvers;
    let options = format!("--resolver {} --resolver {}", one.url, two.url);
    let keys = "--registration-key-file one.key --registration-key-file two.key";
    let mut archive = Served::start(
        &env,
        &format!("A.store --address 127.0.0.1:0 {options} {keys} --email a@example.org"),
    );
    let mut lines = [archive.line(), archive.line()];
    lines.sort();
    let mut expected = [one, two].map(|it| format!("included with {}/J8LNKB5R7W/3FUQHC5", it.url));
    expected.sort();
    assert_eq!(lines, expected);
    for resolver in [one, two] {
        resolver.prints(&env, "get -L $U/$(< x)", "here");
    }
    // Its prefixes are announced.
    env.sh("in_database one.db 'SELECT prefixes FROM archive' | grep -q \"$(cut -d/ -f1-2 x)\"");
    env.complains(
        &format!("ibifs serve A.store --listen 127.0.0.1:0 {options} --resolver http://x {keys}"),
        "name one file for all resolvers, or one for each in their order",
    );
    env.sh(&format!(
        "mkdir W; ibifs world W {options} --cache C --allow-private"
    ));
    env.prints("cat W/$(< x)/doc/index.html", "here");
    let [one, two] = resolvers;
    drop(one);
    env.sh("mint A other > y; echo there > A/$(< y)/doc/index.html");
    env.prints("cat W/$(< y)/doc/index.html", "there");
    env.sh("ibifs umount W");
    drop((archive, two));
}
