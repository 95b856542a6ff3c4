//! Requests by which Archives are included with a resolver, sent again later by another one, and those of an Archive
//! that names the address of another one: who answers where it is stays there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::http::served::Served;
use crate::http::stub::{Reply, Stub};
use crate::support::TestEnv;

/// A reader of the wire before a resolver: it passes on the requests of an Archive, and stores them.
struct Tap {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Tap {
    fn start(resolver: &Served) -> Tap {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (to, heard) = (resolver.address().to_owned(), Arc::default());
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                pass_on(stream, &to, &hears);
            }
        });
        Tap { url, heard }
    }

    /// The last request with this subject, as its path and query.
    fn last(&self, subject: &str) -> String {
        // What an Archive sends at its end may be read here after that.
        for _ in 0..600 {
            let heard = self.heard.lock().expect("nobody panics with it");
            if let Some(found) = heard.iter().rev().find(|it| it.contains(subject)) {
                return found.clone();
            }
            drop(heard);
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no {subject}");
    }
}

fn pass_on(mut stream: TcpStream, to: &str, heard: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let target = request.split(' ').nth(1).unwrap_or_default();
    heard
        .lock()
        .expect("nobody panics with it")
        .push(target.to_owned());
    let mut resolver = TcpStream::connect(to).expect("the resolver");
    let head = format!("GET {target} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    resolver.write_all(head.as_bytes()).expect("passed on");
    let mut answer = Vec::new();
    resolver.read_to_end(&mut answer).expect("an answer");
    let _ = stream.write_all(&answer);
}

/// `says TARGET` sends a request from another address of this machine, and prints the answer and its status; `is_at` prints
/// where the Archive is included.
const TOOLS: &str = r#"
says() { curl -s -g --interface 127.0.0.2 -w ' %{http_code}' "$U$1" | tr -s '\r\n' ' '; echo; }
is_at() { ibifs resolver list --db r.db --json | jq -r '.[].address'; }
"#;

fn prints(env: &TestEnv, resolver: &Served, script: &str, expected: &str) {
    resolver.prints(env, &format!("{TOOLS}{script}"), expected);
}

const KEPT: &str = "status.archive included status.confirmation unsuccessful 200";
const EXCLUDED: &str = "status.archive excluded 200";

/// An Archive that has moved to another address is not set back, nor excluded, by its earlier requests; with a new key, or
/// unregistered, it is not reached by them at all.
#[test]
fn no_earlier_request_sets_an_archive_back() {
    let env = TestEnv::new().with_a();
    env.sh("mint A page > x; echo here > A/$(< x)/doc/index.html
        sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi > service
        ibifs resolver register --db r.db $(< service) > key; chmod 600 key");
    let resolver = Served::resolver(&env, "");
    let tap = Tap::start(&resolver);
    let start = || {
        let options = format!(
            "A.store --address 127.0.0.1:0 --resolver {} --registration-key-file key --email a@b.example",
            tap.url
        );
        let mut archive = Served::start(&env, &options);
        assert!(archive.line().starts_with("included with "));
        archive
    };
    let old = start();
    let included = tap.last("inclusionRequest");
    assert!(
        included.contains(&old.address().replace(':', "%3A")) || included.contains(old.address())
    );
    drop(old);
    let excluded = tap.last("exclusionRequest");
    let now = start();
    let address = now.address();
    prints(
        &env,
        &resolver,
        &format!("says '{included}'; is_at; says '{excluded}'; is_at; get -L $U/$(< x)"),
        &format!("{KEPT}\n{address}\n{EXCLUDED}\n{address}\nhere"),
    );
    // While it is away it is not reached anyway; when it is back, it is where it is.
    let address = address.to_owned();
    drop(now);
    prints(
        &env,
        &resolver,
        &format!("says '{included}'; is_at | grep -c {address} || true"),
        &format!("{KEPT}\n0"),
    );
    let now = start();
    let address = now.address();
    prints(
        &env,
        &resolver,
        &format!(
            "is_at; get -L $U/$(< x); ibifs resolver register --db r.db $(< service) > other
             for it in '{included}' '{excluded}'; do says \"$it\" | grep -o 'is not that of\\|403'; done; is_at
             ibifs resolver unregister --db r.db $(< service)
             for it in '{included}' '{excluded}'; do says \"$it\" | grep -o 'no Archive is registered\\|403'; done; is_at"
        ),
        &format!(
            "{address}\nhere\nis not that of\n403\nis not that of\n403\n{address}\nno Archive is registered\n403\nno Archive is registered\n403"
        ),
    );
}

/// An Archive that the resolver does not reach repeats its request, so that it is included when it is reached.
#[test]
fn an_archive_that_is_not_reached_asks_again() {
    let env = TestEnv::new().with_a();
    env.sh("ibifs resolver register --db r.db $(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi) > key; chmod 600 key");
    let resolver = Served::resolver(&env, "");
    let tap = Tap::start(&resolver);
    let options = format!(
        "A.store --url http://127.0.0.1:1 --resolver {} --registration-key-file key --email a@b.example",
        tap.url
    );
    let mut archive = Served::within(&env, "", &format!("serve {options}"));
    assert!(archive.line().contains("does not reach 127.0.0.1:1 itself"));
    for _ in 0..1200 {
        let heard = tap.heard.lock().expect("nobody panics with it");
        if heard
            .iter()
            .filter(|it| it.contains("inclusionRequest"))
            .count()
            > 2
        {
            return;
        }
        drop(heard);
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it has asked {:?}", tap.heard.lock());
}

/// The request of an Archive for inclusion, or exclusion, at an address.
fn request(subject: &str, service: &str, address: &str) -> String {
    format!(
        "/J8LNKB5R7W/3FUQHC5?servicesubject={subject}&archiveaddress={address}&archiveserviceibi={service}&archiveip=127.0.0.1\
         &archiveprotocol=HTTP&archiveplatformversion=1&archiveadmemailaddress=a@b&registrationkey=1234567890"
    )
}

/// Registers services with the key of [`request`].
fn register(env: &TestEnv, services: &[&str]) {
    env.sh(&format!(
        "echo 1234567890 > known; chmod 600 known; for it in {}; do ibifs resolver register --db r.db --key-file known $it; done",
        services.join(" ")
    ));
}

const OTHER: &str = "stub.example.org/s2/2020/01.01.01.01";

/// An Archive that names the address of another one is refused as long as that one answers there, and repeats its
/// request.
#[test]
fn no_archive_is_included_at_the_address_of_another() {
    let env = TestEnv::new().with_a();
    let service =
        env.sh("sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A.store/archive.ibi");
    register(&env, &[&service, OTHER]);
    let resolver = Served::resolver(&env, "");
    let archive = Served::start(&env, "A.store");
    let address = archive.address();
    let own = request("inclusionRequest", &service, address);
    let strange = request("inclusionRequest", OTHER, address);
    prints(
        &env,
        &resolver,
        &format!(
            "says '{own}' > said; says '{strange}'; is_at; ibifs resolver key --db r.db > /dev/null; waits eval 'curl -s $U/federatedArchives.txt | grep \"^# sign\"'; curl -s $U/federatedArchives.txt | grep -v '^# sign' | sort"
        ),
        &format!(
            "http://{address} is the address of {service}, which answers there 409\n{address}\nnull\n# absent ibi.archiveservice {{rep {OTHER}}}\narchiveaddress {address} ibi.archiveservice {{rep {service}}}"
        ),
    );
    drop(archive);
    prints(&env, &resolver, &format!("says '{strange}'"), KEPT);
}

/// Two Archives whose addresses are one, since one of them was excluded, or both answer to everything: what one says is not
/// taken for the word of the other, and the list of the resolver stays one that others read.
#[test]
fn what_one_archive_says_is_not_what_another_at_its_address_says() {
    let env = TestEnv::new();
    let item = "stub.example.org/s2/2021/02.02.02.02";
    let one = Stub::start(1, move |query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        Reply::Text(format!(
            "ibi {{rep {ibi}}} ibi.archiveservice {{rep stub.example.org/s1/2020/01.01.01.01}} state Original contenttype Data url http://one.example/ urlkey 1234567890"
        ))
    });
    register(&env, &[&one.service, OTHER]);
    let resolver = Served::resolver(&env, "");
    let send = |subject: &str, service: &str| {
        let request = request(subject, service, &one.address);
        resolver.sh(&env, &format!("{TOOLS} says '{request}'"))
    };
    let goes = |path: &str| {
        let script =
            format!("curl -s -o /dev/null -w '%{{http_code}}%{{redirect_url}}' \"$U/{path}\"");
        resolver.sh(&env, &script)
    };
    for service in [&one.service, OTHER] {
        send("inclusionRequest", service);
    }
    // The maker of the item is not there: what the other one claims is worth a copy, and is not claimed by two.
    let required = format!("{item}?ibiurl.requireditemstatus=Original");
    assert_eq!(goes(&required), "503");
    assert_eq!(goes(item), "302http://one.example/");
    resolver.prints(
        &env,
        "chmod 755 .; curl -s $U/federatedArchives.txt | tee list | wc -l; chmod 644 list
         timeout 5 ibifs resolver --db second.db --federated-archives list --listen 127.0.0.1:0 | grep -c http || true",
        "1\n1",
    );
    // Only the maker is included, at an address that is now the other one's.
    send("exclusionRequest", &one.service);
    assert_eq!(goes(&required), "503");
    assert_eq!(goes(item), "503");
}
