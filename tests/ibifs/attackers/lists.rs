//! Lists of Archives that a resolver reads, from a peer that has gone bad, from an impostor, and from files: too
//! long, without end, signed by another, old, contradictory, and of what is registered here.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ibi::Timestamp;
use ibifs::formats::federation::{SigningKey, signature_line};
use ibifs::formats::query::Query;

use crate::http::peers::Mirror;
use crate::http::served::{Served, registry};
use crate::http::stub::{Reply, Stub};
use crate::support::TestEnv;

const ITEM: &str = "example.org/items/2009/02.16.17.46";

fn key(number: u8) -> SigningKey {
    SigningKey::of_seed(&[number; 32]).expect("a key")
}

/// A list with these lines, signed now.
fn signed(key: &SigningKey, serial: u64, lines: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.expect("after 1970").as_secs();
    let time = Timestamp::from_unix(seconds.cast_signed(), 0).to_rfc3339();
    let text = format!("# signed serial {serial} time {time}\n{lines}");
    format!("{text}{}", signature_line(text.as_bytes(), key))
}

fn line(address: &str, service: &str) -> String {
    format!("archiveaddress {address} ibi.archiveservice {{rep {service}}}\n")
}

/// An Archive that claims the original of everything, at a URL of its own.
fn holder(number: usize) -> Stub {
    Stub::start(number, move |query| claimed(query, number))
}

fn claimed(query: &Query, number: usize) -> Reply {
    let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
    Reply::Text(format!(
        "ibi {{rep {ibi}}} state Original contenttype Data url http://s{number}/ urlkey 1234567890"
    ))
}

/// Answers every request at its URL with a body that it continues to write until the client has left.
fn endless(
    write: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Copy + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let _ = lines.take_while(|line| !line.is_empty()).count();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
                while write(&mut stream).is_ok() {}
            });
        }
    });
    url
}

fn start(env: &TestEnv, options: &str) -> Served {
    env.sh("chmod 755 .");
    Served::resolver(env, &format!("{options} --allow-private 2>> log"))
}

#[track_caller]
fn logs(env: &TestEnv, sentence: &str) {
    env.sh(&format!(
        "for i in $(seq 300); do grep -qF '{sentence}' log && exit; sleep .1; done; cat log; exit 1"
    ));
}

/// The status, and where a reader is sent.
fn goes(env: &TestEnv, resolver: &Served, path: &str) -> String {
    let script = format!("curl -s -o /dev/null -w '%{{http_code}}%{{redirect_url}}' \"$U/{path}\"");
    resolver.sh(env, &script)
}

/// Waits until a reader is sent there.
#[track_caller]
fn leads(env: &TestEnv, resolver: &Served, path: &str, to: &str) {
    resolver.sh(
        env,
        &format!("for i in $(seq 100); do curl -s -o /dev/null -w '%{{redirect_url}}' $U/{path} | contains '^{to}$' && exit; sleep .1; done; cat log; exit 1"),
    );
}

/// A list of 10 MB and one without end, from a peer, at a URL and in a file, fast and a byte at a time: each is refused, the
/// last ones stay, the resolver holds no more of one than a list may have, and answers meanwhile.
#[test]
fn a_list_without_end_is_refused() {
    let env = TestEnv::new();
    let (of_peer, of_file) = (holder(1), holder(2));
    let long = "# nothing\n".repeat(1 << 20);
    let mirror = Mirror::start();
    mirror.put(&signed(
        &key(1),
        1,
        &line(&of_peer.address, &of_peer.service),
    ));
    let fast = endless(|stream| stream.write_all(&[b'#'; 1 << 16]));
    let slow = endless(|stream| {
        std::thread::sleep(Duration::from_secs(1));
        stream.write_all(b"#")
    });
    let far = Mirror::start();
    far.put(&long);
    let listed = line(&of_file.address, &of_file.service);
    std::fs::write(env.root().join("list"), listed).expect("a list");
    let peers = [(&mirror.url, 1), (&fast, 2), (&slow, 3)];
    let peers = peers.map(|(url, number)| format!("--peer {url}={}", key(number).public()));
    let resolver = start(
        &env,
        &format!(
            "{} --federated-archives list --federated-archives {}/x",
            peers.join(" "),
            far.url
        ),
    );
    leads(&env, &resolver, ITEM, "http://s1/");
    let memory = |name: &str| -> u64 {
        let path = format!("/proc/{}/status", resolver.process());
        let status = std::fs::read_to_string(path).expect("a status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect(name);
        line.trim_matches(|it: char| !it.is_ascii_digit())
            .parse()
            .expect("KiB")
    };
    let before = memory("VmRSS:");
    mirror.put(&long);
    std::fs::write(env.root().join("list.new"), &long).expect("a list");
    env.sh("mv list.new list");
    for (source, why) in [
        (
            mirror.url.as_str(),
            "the answer has more than 1048576 bytes",
        ),
        (&fast, "the answer has more than 1048576 bytes"),
        (&slow, "no answer in 10s"),
        (
            &format!("{}/x", far.url),
            "the answer has more than 1048576 bytes",
        ),
        ("list", "the list has more than 1048576 bytes"),
    ] {
        logs(
            &env,
            &format!("{source}: {why}; the last list stays in force"),
        );
        let begun = Instant::now();
        assert_eq!(goes(&env, &resolver, ITEM), "302http://s1/");
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{source}: {:?}",
            begun.elapsed()
        );
    }
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < 24 << 10, "by {grown} KiB");
    // The list in the file is still there, after those that are asked first.
    assert!(of_peer.received("urlRequest").len() > 5);
    mirror.put(&signed(&key(1), 2, ""));
    leads(&env, &resolver, ITEM, "http://s2/");
}

/// A list with the signature of another peer, an earlier one with fewer Archives or another one of the same number, one that
/// contradicts itself, and one from the future: the last good one stays.
#[test]
fn a_list_that_is_not_the_last_of_its_peer_is_refused() {
    let env = TestEnv::new();
    let (one, two) = (holder(1), holder(2));
    let (first, second) = (Mirror::start(), Mirror::start());
    let [one_line, two_line] = [&one, &two].map(|it| line(&it.address, &it.service));
    let early = signed(&key(1), 5, "");
    let good = signed(&key(1), 6, &one_line);
    first.put(&good);
    second.put(&signed(&key(2), 9, ""));
    let [to_first, to_second] = [(&first, 1), (&second, 2)]
        .map(|(mirror, number)| format!("--peer {}={}", mirror.url, key(number).public()));
    let resolver = start(&env, &format!("{to_first} {to_second}"));
    leads(&env, &resolver, ITEM, "http://s1/");
    let not_signed = "not signed with the key that is configured for this peer";
    let signed_later = |text: &str, by: &str| {
        let text = text.replacen("time 20", by, 1);
        let end = text.find("# signature").expect("a signature");
        format!(
            "{}{}",
            &text[..end],
            signature_line(&text.as_bytes()[..end], &key(1))
        )
    };
    let twice = "line 3: it has the same address or service as line 2";
    let earlier = "the list has the serial number 5, and 6 was there before";
    let (too_far, unsigned) = ("which is too far from the time", "the list is not signed");
    let [same, same_service, same_address] = [
        format!("{one_line}{one_line}"),
        format!("{one_line}{}", line(&two.address, &one.service)),
        format!(
            "{two_line}{}",
            line(&two.address, "x.org/y/2020/01.01.01.01")
        ),
    ]
    .map(|lines| signed(&key(1), 7, &lines));
    let [future, past] = ["time 21", "time 19"].map(|by| signed_later(&signed(&key(1), 8, ""), by));
    // The same sentence is not logged twice in a row.
    for (list, why) in [
        (signed(&key(2), 99, &two_line), not_signed),
        (early.clone(), earlier),
        (good.replace("serial 6", "serial 7"), not_signed),
        (same, twice),
        (good.replacen(&one_line, "", 1), not_signed),
        (same_service, twice),
        (format!("{good}{two_line}"), unsigned),
        (same_address, twice),
        (future, too_far),
        (past, too_far),
    ] {
        env.sh(": > log");
        first.put(&list);
        logs(&env, &format!("{}: ", first.url));
        logs(&env, why);
        logs(&env, "; the last list stays in force");
        assert_eq!(goes(&env, &resolver, ITEM), "302http://s1/", "{list}");
    }
    // A list in the place of that of another peer says nothing there, either.
    assert_eq!(two.received("urlRequest"), [""; 0]);
    // After a restart with that of before, too.
    first.put(&early);
    drop(resolver);
    env.sh(": > log");
    let resolver = start(&env, &format!("{to_first} {to_second}"));
    logs(
        &env,
        "the list has the serial number 5, and 6 was there before",
    );
    assert_eq!(goes(&env, &resolver, ITEM), "302http://s1/");
}

/// A peer names an Archive that is registered here at another address, another Archive at its address, and others whose
/// services have its prefix: nothing of it is theirs, and it is asked where it is.
#[test]
fn no_list_of_a_peer_is_about_what_is_registered_here() {
    let env = TestEnv::new();
    let is_silent = Arc::new(AtomicBool::new(false));
    let silence = Arc::clone(&is_silent);
    let maker = Stub::start(0, move |query| {
        if silence.load(Ordering::Relaxed) {
            return Reply::Never;
        }
        claimed(query, 0)
    });
    maker.include(&registry(&env, "r.db"));
    let item = "stub.example.org/s0/2021/02.02.02.02";
    let evil: Vec<Stub> = (1..6).map(holder).collect();
    let with_prefix = |number: usize| {
        let service = format!("stub.example.org/s0/20{number:02}/01.01.01.01");
        line(&evil[number].address, &service)
    };
    let mirror = Mirror::start();
    let peer = format!("--peer {}={}", mirror.url, key(1).public());
    let resolver = start(&env, &peer);
    let required = format!("{item}?ibiurl.requireditemstatus=Original");
    let there = "302http://s0/";
    let cases = [
        // The registered Archive at another address.
        (line(&evil[0].address, &maker.service), there),
        // Another one at its address.
        (
            line(&maker.address, "evil.example/x/2020/01.01.01.01"),
            there,
        ),
        // One, and more of them than are taken for makers, with its prefix.
        (with_prefix(1), "409"),
        ((1..5).map(with_prefix).collect(), "409"),
    ];
    for (number, (lines, expected)) in cases.iter().enumerate() {
        // Archives that are not there, so that it is seen which list is in force.
        let away = (0..=number).map(|it| {
            line(
                &format!("127.0.0.1:{}", it + 1),
                &format!("away.org/a{it}/2020/01.01.01.01"),
            )
        });
        let away: String = away.collect();
        mirror.put(&signed(
            &key(1),
            number as u64 + 1,
            &format!("{away}{lines}"),
        ));
        let count = number + 2 + if number < 2 { 0 } else { lines.lines().count() };
        resolver.sh(
            &env,
            &format!("for i in $(seq 100); do test $(curl -s -H 'Accept: application/json' $U/ | jq .archives) = {count} && exit; sleep .1; done; cat log; exit 1"),
        );
        assert_eq!(goes(&env, &resolver, item), there, "{lines}");
        assert_eq!(goes(&env, &resolver, &required), *expected, "{lines}");
    }
    assert_eq!(evil[0].received("urlRequest"), [""; 0]);
    // While it is silent, what the others claim is worth a copy.
    is_silent.store(true, Ordering::Relaxed);
    assert_eq!(goes(&env, &resolver, &required), "503");
}
