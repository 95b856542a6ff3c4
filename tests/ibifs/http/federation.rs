//! `federatedArchives.txt`: published by a resolver, and read from a file and from a URL.

use std::time::Duration;

use super::served::{Served, registry};
use super::stub::{Reply, Stub};
use crate::support::TestEnv;

const ITEM: &str = "example.org/items/2009/02.16.17.46";

/// A line of a list.
fn line(address: &str, service: &str) -> String {
    format!("archiveaddress {address} ibi.archiveservice {{rep {service}}}\n")
}

/// A stub that holds the item in a state, at a URL of its own.
fn holder(number: usize, state: &'static str) -> Stub {
    Stub::start(number, move |_| {
        Reply::Text(format!(
            "ibi {{rep {ITEM}}} contenttype Data state {state} url http://s{number}/ urlkey 1234567890-1234567890"
        ))
    })
}

fn nothing(number: usize) -> Stub {
    Stub::start(number, |_| Reply::Text(String::new()))
}

fn list_of(env: &TestEnv, name: &str, text: &str) {
    let path = env.root().join(name);
    std::fs::write(path.with_extension("new"), text).expect("a list");
    std::fs::rename(path.with_extension("new"), path).expect("a list");
}

/// Runs a resolver between registered Archives, with these lists.
fn resolver(env: &TestEnv, registered: &[&Stub], options: &str) -> Served {
    let registry = registry(env, "r.db");
    for stub in registered {
        stub.include(&registry);
    }
    drop(registry);
    // A resolver of root reads its lists again as another user.
    env.sh("chmod 755 .");
    Served::resolver(env, &format!("{options} 2> log"))
}

const GOES: &str = "goes() { curl -s -o body -w '%{http_code} %{redirect_url}\n' \"$U/$1\"; }\n";

#[track_caller]
fn goes(env: &TestEnv, resolver: &Served, path: &str, expected: &str) {
    resolver.prints(env, &format!("{GOES} goes '{path}'"), expected);
}

/// A resolver that has no Archive registered finds items in two running Archives by the list that another
/// resolver, with which they are included, publishes.
#[test]
fn two_archives_are_found_by_a_list() {
    let env = TestEnv::new().with_a().with_b();
    let first = Served::resolver(&env, "");
    let service = |store: &str| {
        env.sh(&format!(
            "sed -n 's/^ibi.archiveservice {{rep \\([^ ]*\\) .*/\\1/p' {store}/archive.ibi"
        ))
    };
    let mut archives = ["A.store", "B.store"].map(|store| {
        env.sh(&format!(
            "ibifs resolver register --db r.db {} > {store}.key; chmod 600 {store}.key",
            service(store)
        ));
        Served::start(
            &env,
            &format!(
                "{store} --address 127.0.0.1:0 --resolver {} --registration-key-file {store}.key --email a@example.org",
                first.url
            ),
        )
    });
    for archive in &mut archives {
        assert!(archive.line().starts_with("included with "));
    }
    env.sh("mint A page > x; echo here > A/$(< x)/doc/index.html
         mint B page > y; echo there > B/$(< y)/doc/index.html");
    let published = first.sh(&env, "curl -s $U/federatedArchives.txt | tee list");
    let expected = ["A.store", "B.store"].map(service);
    let expected: Vec<String> = expected
        .iter()
        .zip(&archives)
        .map(|(service, archive)| {
            let service = service.trim();
            line(archive.address(), service)
        })
        .collect();
    let without_ibip = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| match line.split_once(" ibip ") {
            Some((before, _)) => format!("{before}}}\n"),
            None => format!("{line}\n"),
        });
        lines.collect()
    };
    assert_eq!(without_ibip(&published), expected);
    first.prints(
        &env,
        "line content-type $U/federatedArchives.txt; status -I $U/federatedArchives.txt; status -d x $U/federatedArchives.txt",
        "text/plain\n200\n405",
    );
    env.sh("chmod 755 .");
    let second = Served::within(
        &env,
        "",
        "resolver --db second.db --federated-archives list",
    );
    second.prints(&env, "get -L $U/$(< x) $U/$(< y)", "here\nthere");
    second.prints(&env, "status $U/example.org/none/2001/01.01.01.01", "404");
    // It does not publish a list that it was given.
    second.prints(&env, "curl -s $U/federatedArchives.txt | wc -c", "0");
    drop((second, archives, first));
}

/// Registered Archives are asked first: those of a list only where none of these answers, and never where an
/// Archive is registered.
#[test]
fn registered_archives_have_precedence() {
    let env = TestEnv::new();
    let (one, other, off) = (
        holder(1, "Original"),
        holder(2, "Original"),
        holder(3, "Copy"),
    );
    list_of(
        &env,
        "list",
        &(line(&other.address, &other.service) + &line(&off.address, &off.service)),
    );
    // The third is registered, and has never been included.
    env.sh(&format!(
        "ibifs resolver register --db r.db {} > key",
        off.service
    ));
    let served = resolver(&env, &[&one], "--federated-archives list");
    let required = format!("{ITEM}?ibiurl.requireditemstatus=Original");
    goes(&env, &served, ITEM, "302 http://s1/");
    goes(&env, &served, &required, "302 http://s1/");
    assert_eq!(other.received("urlRequest"), [""; 0]);
    drop(served);
    let env = TestEnv::new();
    let registered = nothing(4);
    list_of(&env, "list", &line(&other.address, &other.service));
    let served = resolver(&env, &[&registered], "--federated-archives list");
    goes(&env, &served, ITEM, "302 http://s2/");
    goes(&env, &served, &required, "302 http://s2/");
    assert_eq!(registered.received("urlRequest").len(), 2);
    assert_eq!(off.received("urlRequest"), [""; 0]);
    assert_eq!(other.hears("acknowledgment", 2).len(), 2);
    // A resolver is not an Archive: two that list each other do not query each other without end.
    served.prints(
        &env,
        "status \"$U/8JMKD3MGP8W/34PGRBS?parsedibiurl.ibi=x&servicesubject=urlRequest\"",
        "400",
    );
}

/// Of the Archives of lists, the one that answered for a prefix is asked before the others of the lists, and never before
/// registered ones.
#[test]
fn the_archive_of_a_list_that_answered_is_asked_before_the_others() {
    let env = TestEnv::new();
    let (registered, has, other) = (nothing(1), holder(2, "Original"), nothing(3));
    let both = line(&other.address, &other.service) + &line(&has.address, &has.service);
    list_of(&env, "list", &both);
    let served = resolver(&env, &[&registered], "--federated-archives list");
    goes(&env, &served, ITEM, "302 http://s2/");
    std::thread::sleep(Duration::from_millis(300));
    let before = other.received("urlRequest").len();
    for _ in 0..3 {
        goes(&env, &served, ITEM, "302 http://s2/");
    }
    assert_eq!(other.received("urlRequest").len(), before);
    assert_eq!(registered.received("urlRequest").len(), 4);
    // Now a registered one has it.
    let copy = holder(4, "Copy");
    copy.include(&registry(&env, "r.db"));
    served.prints(
        &env,
        &format!("{GOES} for i in $(seq 100); do goes {ITEM} | grep s4 && break; sleep .1; done"),
        "302 http://s4/",
    );
}

/// A file is read again; one that is not a list leaves the last in force, and is logged once.
#[test]
fn a_file_is_read_again() {
    let env = TestEnv::new();
    let (one, other) = (holder(1, "Copy"), holder(2, "Copy"));
    env.complains(
        "echo x > list; ibifs resolver --db r.db --listen 127.0.0.1:0 --federated-archives list",
        "list: line 1: line 1, column 2 of the list of pairs",
    );
    env.complains(
        "ibifs resolver --db r.db --listen 127.0.0.1:0 --federated-archives ftp://x/list",
        "is not a URL",
    );
    env.complains(
        "mkfifo fifo; ibifs resolver --db r.db --listen 127.0.0.1:0 --federated-archives fifo",
        "fifo: it is not a regular file",
    );
    list_of(&env, "list", &line(&one.address, &one.service));
    let served = resolver(&env, &[], "--federated-archives list");
    goes(&env, &served, ITEM, "302 http://s1/");
    let good = line(&one.address, &one.service);
    list_of(&env, "list", &format!("# a list\n{good}{good}"));
    let said =
        "list: line 3: it has the same address or service as line 2; the last list stays in force";
    env.sh(&format!(
        "for i in $(seq 200); do grep -q '{said}' log && break; sleep .1; done; grep -q '{said}' log"
    ));
    goes(&env, &served, ITEM, "302 http://s1/");
    std::thread::sleep(Duration::from_secs(6));
    env.prints(&format!("grep -c '{said}' log"), "1");
    list_of(&env, "list", &line(&other.address, &other.service));
    served.prints(
        &env,
        &format!("{GOES} for i in $(seq 200); do goes {ITEM} | grep s2 && break; sleep .1; done"),
        "302 http://s2/",
    );
}

/// A list that comes by URL makes the resolver ask no machine of a private network, by address or by name;
/// the administrator's own file may name one.
#[test]
fn a_list_of_the_network_leads_to_no_private_address() {
    let env = TestEnv::new();
    let one = holder(1, "Copy");
    let port = one.address.rsplit(':').next().expect("a port").to_owned();
    let list = |text: String| Stub::text(text);
    let private = list(line(&one.address, &one.service));
    let named = list(line(&format!("localhost:{port}"), &one.service));
    let served = resolver(
        &env,
        &[],
        &format!("--federated-archives http://{private}/federatedArchives.txt"),
    );
    let said = format!("line 1: {} is not a public address", one.address);
    env.sh(&format!(
        "for i in $(seq 100); do grep -q '{said}' log && break; sleep .1; done; grep -q '{said}' log"
    ));
    goes(&env, &served, ITEM, "404 ");
    drop(served);
    // A name is looked up when the Archive is queried. It counts as one that does not answer.
    let served = resolver(
        &env,
        &[],
        &format!("--federated-archives http://{named}/list"),
    );
    served.prints(
        &env,
        &format!("{GOES} for i in $(seq 100); do goes {ITEM} | grep 503 && break; sleep .1; done"),
        "503 ",
    );
    drop(served);
    assert_eq!(one.received("urlRequest"), [""; 0]);
    list_of(
        &env,
        "list",
        &line(&format!("localhost:{port}"), &one.service),
    );
    let served = resolver(
        &env,
        &[],
        &format!("--federated-archives list --federated-archives http://{named}/list"),
    );
    goes(&env, &served, ITEM, "302 http://s1/");
}
