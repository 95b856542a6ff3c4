//! The access log: a line for each request, whatever the request holds.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::served::Served;
use crate::support::TestEnv;

fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A --host archive-a.example.org > /dev/null; ibifs mint A | head -n 1 > one
         printf 'seven b' > A/col/$(< one)/doc/a.txt",
    );
    env
}

/// Waits until a file has so many lines, and prints them without the first fields up to the time.
const LINES: &str = r#"
lines() {
    waits eval "test \$(wc -l < '$2') -ge $1"
    sed -E 's;\[[0-9]{2}/[A-Z][a-z]{2}/20[0-9]{2}:[0-9]{2}:[0-9]{2}:[0-9]{2} \+0000\];TIME;' "$2"
}
"#;

#[test]
fn a_line_for_each_request() {
    let env = environment();
    let served = Served::start(&env, "A --access-log log --trusted-proxy 127.0.0.1");
    let printed = served.sh(
        &env,
        &format!(
            r#"{LINES}
            one=$(< one); f=col/$one/doc/a.txt
            get -A agent -e http://x.org/ $U/$f > page; get -A agent -I $U/$f > page; get -A agent -r 0-1 $U/$f > page
            status -A agent -H 'X-Forwarded-For: 198.51.100.1, 203.0.113.9' $U/no > page
            status -A agent -X PUT $U/no > page
            status -A '"><b>\' -H "$(printf 'Referer: a\tb\xffc')" "$U/q?a=%22&password=secret&x=%0a" > page
            lines 6 log | sed "s;$one;ONE;g"; stat -c %a log"#
        ),
    );
    let lines: Vec<&str> = printed.lines().collect();
    let begin = |client: &str| format!("{client} - - TIME ");
    let own = begin("127.0.0.1");
    for (line, expected) in lines.iter().zip([
        format!("{own}\"GET /col/ONE/doc/a.txt HTTP/1.1\" 200 7 \"http://x.org/\" \"agent\""),
        format!("{own}\"HEAD /col/ONE/doc/a.txt HTTP/1.1\" 200 0 \"-\" \"agent\""),
        format!("{own}\"GET /col/ONE/doc/a.txt HTTP/1.1\" 206 2 \"-\" \"agent\""),
    ]) {
        assert_eq!(*line, expected);
    }
    assert!(
        lines[3].starts_with(&format!(
            "{}\"GET /no HTTP/1.1\" 404 ",
            begin("203.0.113.9")
        )),
        "{printed}"
    );
    assert!(
        lines[4].starts_with(&format!("{own}\"PUT /no HTTP/1.1\" 405 ")),
        "{printed}"
    );
    let hostile = format!("{own}\"GET /q?a=%22&password=-&x=%0a HTTP/1.1\" 404 ");
    assert!(lines[5].starts_with(&hostile), "{printed}");
    assert!(
        lines[5].ends_with(r#" "a\x09b\xFFc" "\x22><b>\x5C""#),
        "{printed}"
    );
    assert_eq!(&lines[6..], ["640"], "{printed}");
}

/// A client that leaves has a line with what it was sent, and so has each request of a connection.
#[test]
fn connections_that_end_early() {
    let env = environment();
    env.sh("truncate -s 200M A/col/$(< one)/doc/big");
    let served = Served::start(&env, "A --access-log log");
    let one = env.sh("cat one");
    let mut stream = TcpStream::connect(served.address()).expect("connected");
    let request = |path: &str| {
        format!(
            "GET /col/{}/doc/{path} HTTP/1.1\r\nHost: a\r\n\r\n",
            one.trim()
        )
    };
    let both = request("a.txt") + &request("big");
    stream.write_all(both.as_bytes()).expect("written");
    stream.read_exact(&mut [0; 10_000]).expect("read");
    drop(stream);
    let printed = env.sh(&format!("{LINES}\nlines 2 log"));
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        lines[0].contains("a.txt HTTP/1.1\" 200 7 \"-\" \"-\""),
        "{printed}"
    );
    let sent = lines[1]
        .split("big HTTP/1.1\" 200 ")
        .nth(1)
        .expect(&printed);
    let sent: u64 = sent
        .split(' ')
        .next()
        .expect(&printed)
        .parse()
        .expect(&printed);
    assert!((9_000..200 << 20).contains(&sent), "{printed}");
}

/// logrotate renames the file and sends SIGHUP, as to other services; a file that cannot be had changes nothing.
#[test]
fn the_log_is_opened_again() {
    let env = environment();
    env.sh("mkdir logs; chmod 777 logs; chmod 711 .");
    let served = Served::start(&env, "A --access-log logs/log --access-log-format json");
    let pid = served.process();
    env.prints(
        &format!(
            r#"{LINES}
            U={}
            curl -s -o /dev/null -A 'é"\' "$U/?one"; lines 1 logs/log > said
            mv logs/log logs/log.1; kill -HUP {pid}
            waits test -e logs/log
            curl -s -o /dev/null $U/two; lines 1 logs/log > said; wc -l < logs/log.1
            rm logs/log; mkdir logs/log; kill -HUP {pid}; sleep .3; curl -s -o /dev/null -w '%{{http_code}}\n' $U/
            python3 - <<'END'
import json
line = json.load(open("logs/log.1"))
print(*line)
print(line["client"], line["method"], line["target"], line["protocol"], line["status"], line["user_agent"], line["referer"], line["bytes"] > 0, 0 < line["seconds"] < 5)
import datetime; datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00"))
END"#,
            served.url
        ),
        "1\n200\ntime client method target protocol referer user_agent status bytes seconds\n\
         127.0.0.1 GET /?one HTTP/1.1 200 é\"\\ None True True",
    );
}

/// On standard output, and of a resolver; all lines are there when it has ended.
#[test]
fn the_log_on_standard_output() {
    let env = TestEnv::new();
    let mut served = Served::resolver(&env, "--access-log -");
    served.sh(&env, "status \"$U/?registrationkey=secret\"");
    let line = served.line();
    assert!(
        line.contains("\"GET /?registrationkey=- HTTP/1.1\" "),
        "{line}"
    );
    env.sh(&format!(
        "curl -s -o no {0}/a {0}/b; kill {1}",
        served.url,
        served.process()
    ));
    assert!(served.line().contains("GET /a "));
    assert!(served.line().contains("GET /b "));
}

/// A reader of standard output who has stopped reading does not keep the service from answering or ending.
#[test]
fn a_reader_that_does_not_read() {
    let env = TestEnv::new();
    env.sh("ibifs init A --host archive-a.example.org > /dev/null");
    let served = Served::start(&env, "A --access-log -");
    // More than a pipe holds.
    served.prints(
        &env,
        &format!(
            r#"agent=$(printf '%04000d' 0); for i in $(seq 60); do echo "url = $U/no"; echo 'output = no'; done > list
            curl -s -A "$agent" -K list; status $U/no; kill {0}
            for i in $(seq 150); do kill -0 {0} 2> no || break; grep -q '^State:.Z' /proc/{0}/status 2> no && break; sleep .1; done
            test $i -lt 150 && echo ended"#,
            served.process()
        ),
        "404\nended",
    );
}

#[test]
fn what_is_refused() {
    let env = environment();
    for (options, said) in [
        ("--access-log no/log", "ibifs: no/log: No such file"),
        ("--access-log-format json", "--access-log"),
        ("--access-log log --access-log-format xml", "xml"),
    ] {
        let script = format!(
            "! ibifs serve A --listen 127.0.0.1:0 {options} 2> why; grep -c -e '{said}' why | sed 's/.*/said/'"
        );
        env.prints(&script, "said");
    }
}
