//! Requests whose end is ambiguous, with another request hidden in the body: a proxy in front of the service may see one
//! request where the service sees two, and then gives the second answer to another client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::http::served::Served;
use crate::support::TestEnv;

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";

/// Headers that say in two ways how long a body is, or in a way that readers take differently, and what follows them.
const AMBIGUOUS: &[(&str, &str)] = &[
    (
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "d\r\nverb=Identify\r\n0\r\n\r\n",
    ),
    (
        "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "d\r\nverb=Identify\r\n0\r\n\r\n",
    ),
    (
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "0\r\n\r\n",
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n",
        "0\r\n\r\n",
    ),
    ("Content-Length: 0\r\nContent-Length: 34\r\n", ""),
    ("Content-Length: 34\r\nContent-Length: 0\r\n", ""),
    ("Content-Length: 0, 34\r\n", ""),
    ("Content-Length: +0\r\n", ""),
    ("Content-Length: -1\r\n", ""),
    ("Content-Length: 0x0\r\n", ""),
    ("Content-Length : 0\r\n", ""),
    ("Content-Length: 18446744073709551616\r\n", ""),
    ("Transfer-Encoding: identity\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
    ("X: y\r\n Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "0\r\n\r\n",
    ),
    ("Transfer-Encoding: chunked\r\n", "0\n\n"),
    ("Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "-0\r\n\r\n"),
    (
        "Transfer-Encoding: chunked\r\n",
        "10000000000000000\r\n\r\n",
    ),
    ("X: y\r\n\0Content-Length: 0\r\n", ""),
];

/// Returns what is answered on one connection until it is closed.
fn answered(served: &Served, request: &str) -> String {
    let mut stream = TcpStream::connect(served.address()).expect("it listens");
    let timeout = Some(Duration::from_secs(30));
    stream.set_read_timeout(timeout).expect("a time limit");
    // It may have been closed already.
    let _ = stream.write_all(request.as_bytes());
    let mut answers = Vec::new();
    let mut part = [0; 4096];
    // A reset is an end, too.
    while let Ok(count @ 1..) = stream.read(&mut part) {
        answers.extend_from_slice(&part[..count]);
    }
    String::from_utf8_lossy(&answers).into_owned()
}

#[test]
fn no_request_is_hidden_in_another() {
    let env = TestEnv::new().with_a();
    for served in [Served::start(&env, "A.store"), Served::resolver(&env, "")] {
        for method in ["POST /oai", "GET /", "GET /shown"] {
            for (headers, body) in AMBIGUOUS {
                let request =
                    format!("{method} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}{HIDDEN}");
                let answers = answered(&served, &request);
                let count = answers.matches("HTTP/1.1 ").count();
                assert!(count <= 1, "{request:?} is answered by {answers}");
            }
        }
        // Two that are not ambiguous are two.
        let plain = "GET /shown HTTP/1.1\r\nHost: x\r\n\r\n";
        let last = HIDDEN.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let answers = answered(&served, &format!("{plain}{last}"));
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 2, "{answers}");
    }
}
