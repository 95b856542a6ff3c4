//! The limits that bind each client to its share.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::served::Served;
use crate::support::TestEnv;

/// The time that a client may take for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

fn serve() -> (TestEnv, Served) {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org");
    let served = Served::start(&env, "A.store");
    (env, served)
}

#[track_caller]
fn connect(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(served.address()).expect("somebody listens");
    stream
        .set_read_timeout(Some(2 * HEAD_TIMEOUT))
        .expect("a time limit");
    stream
}

/// Sends the bytes and reads until the other side ends the connection.
fn answer_to(served: &Served, request: &[u8]) -> String {
    let mut stream = connect(served);
    // It may be refused, and the connection closed, before all of it is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A thousand clients who begin a request and never end it keep no other user from an answer, and are sent
/// away after ten seconds.
#[test]
fn clients_that_never_finish_delay_no_others() {
    let (env, served) = serve();
    let started = Instant::now();
    let mut slow: Vec<TcpStream> = (0..1000)
        .map(|number| {
            let mut stream = connect(&served);
            let begun = format!("GET /{number} HTTP/1.1\r\nHost: x\r\nX-Slow: ");
            stream.write_all(begun.as_bytes()).expect("it is taken");
            stream
        })
        .collect();
    let asked = Instant::now();
    env.sh(&format!("curl -s -o /dev/null -m 5 {}/nothing", served.url));
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    let mut rest = [0; 1024];
    for stream in &mut slow {
        while stream.read(&mut rest).expect("they are sent away") > 0 {}
    }
    let took = started.elapsed();
    assert!(took >= HEAD_TIMEOUT && took < 2 * HEAD_TIMEOUT, "{took:?}");
}

/// A thousand clients at once each get their answer.
#[test]
fn a_thousand_clients_at_once_are_answered() {
    let (_world, served) = serve();
    let mut streams: Vec<TcpStream> = (0..1000).map(|_| connect(&served)).collect();
    for stream in &mut streams {
        stream
            .write_all(b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("it is taken");
    }
    for stream in &mut streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}

/// Input that is not a request, or is too long for one, is refused and ended.
#[test]
fn what_is_no_request_is_refused() {
    let (_world, served) = serve();
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(20_000));
    let headers = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "a".repeat(20_000)
    );
    for (request, status) in [
        (
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
            "400",
        ),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (long.as_bytes(), "4"),
        (headers.as_bytes(), "431"),
        (
            b"TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "405",
        ),
    ] {
        let answer = answer_to(&served, request);
        let line = answer.lines().next().unwrap_or_default();
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status}")),
            "{line:?} to {:?}",
            String::from_utf8_lossy(&request[..request.len().min(60)])
        );
    }
}

/// Lists of a directory with 45,000 files, more than are sorted at once, are whole and in order; and while
/// more of them are made than there are processors, a client that asks for something small does not wait.
#[test]
fn long_lists_delay_no_other_request() {
    let env = TestEnv::new().with_a();
    env.sh(
        "ibifs mint A | head -n 1 > long; ibifs mint A | head -n 1 > short; echo short > A/$(<short)/doc/a.txt
         cd A.store/col/$(<long)/doc
         python3 -c 'import os
for n in range(45000): os.close(os.open(\"%d\" % (n * 7919 % 45000), os.O_CREAT))'",
    );
    let served = Served::start(&env, "A.store");
    served.sh(
        &env,
        "L=\"$U/$(<long)?ibiurl.verblist=GetFileList\"
         for n in 1 2 3 4 5 6; do get \"$L\" -H 'Accept: text/plain' > list$n & done
         sleep 0.2
         for n in 1 2 3 4 5; do
             test $(get -m 2 $U/col/$(<short)/doc/a.txt) = short
             get -m 2 \"$U/$(<short)\" -H 'Accept: application/json' | contains a.txt
         done
         test $(jobs -rp | wc -l) = 6; wait
         seq 0 44999 | sed 's;^;doc/;' | LC_ALL=C sort > all; cat list1 | cmp - all; cmp list6 all
         ibifs umount A",
    );
}

/// An answer may take longer than a client may stall, as long as the client takes it.
#[test]
fn a_long_download_is_not_cut() {
    let env = TestEnv::new().with_a();
    env.sh(
        "one=$(ibifs mint A | head -n 1); truncate -s 70M A/$one/doc/long; echo one=$one > vars",
    );
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        ". ./vars; for url in col/$one/doc/long archive.cgi/$one; do
             curl -sS --limit-rate 2M $U/$url | wc -c &
         done | sort | sed 's/....$/..../'; wait",
        "7340....\n7340....",
    );
}
