//! The resolver (ibi-resolution(7)), tested with curl, between stub Archives that answer as a test requires.

use std::time::{Duration, Instant};

use ibifs::formats::query::Query;

use super::served::{Served, registry};
use super::stub::{Reply, Stub};
use crate::support::TestEnv;

const ITEM: &str = "example.org/items/2009/02.16.17.46";

/// A resolver between Archives, each of which answers `urlRequest` in its way.
struct Fixture {
    // Dropped in this order.
    resolver: Served,
    env: TestEnv,
    stubs: Vec<Stub>,
}

type Answer = Box<dyn Fn(&Query) -> Reply + Send + Sync>;

impl Fixture {
    fn new(answers: Vec<Answer>) -> Fixture {
        let env = TestEnv::new();
        let registry = registry(&env, "r.db");
        let stubs: Vec<Stub> = answers
            .into_iter()
            .enumerate()
            .map(|(number, answer)| Stub::start(number, answer))
            .collect();
        for stub in &stubs {
            stub.include(&registry);
        }
        let resolver = Served::resolver(
            &env,
            "--address urlib.example.org --trusted-proxy 127.0.0.1",
        );
        Fixture {
            env,
            resolver,
            stubs,
        }
    }

    /// The status and where a reader is sent.
    fn goes(&self, path: &str, options: &str) -> String {
        let url = format!("{}/{path}", self.resolver.url);
        self.env.sh(&format!(
            "curl -s -o body -w '%{{http_code}} %{{redirect_url}}' {options} '{url}'"
        ))
    }

    /// The alert that a program receives.
    fn alert(&self, path: &str) -> String {
        let status = self.goes(path, "-H 'Accept: application/json'");
        format!("{}{}", status, self.env.sh("jq -r .alert body"))
    }
}

fn says(text: impl Into<String>) -> Answer {
    let text = text.into();
    Box::new(move |_| Reply::Text(text.clone()))
}

fn silent() -> Answer {
    Box::new(|_| Reply::Never)
}

/// Holds the item, at a URL, in a state.
fn holds(url: &str, state: &str) -> String {
    format!(
        "ibi {{rep {ITEM}}} contenttype Data state {state} url {url} urlkey 1234567890-1234567890"
    )
}

/// The messages of inclusion and exclusion, byte for byte, and each refusal in a sentence.
#[test]
fn archives_are_included_and_excluded() {
    let env = TestEnv::new();
    let stub = Stub::start(1, |_| Reply::Text(String::new()));
    let service = "J8LNKB5R7W/3FUQHC5";
    env.sh(&format!("echo 1427244889-5349022633744855 > key; chmod 600 key; ibifs resolver register --db r.db --key-file key {}", stub.service));
    let resolver = Served::resolver(&env, "");
    let message = |subject: &str, address: &str, key: &str| {
        format!(
            "{}/{service}?servicesubject={subject}&archiveaddress={address}&archiveserviceibi={}&archiveip=127.0.0.1\
             &archiveprotocol=HTTP&archiveplatformversion=2014:11.09.02.16.15&archiveadmemailaddress=banon@dpi.inpe.br\
             &registrationkey={key}",
            resolver.url, stub.service
        )
    };
    let good = "1427244889-5349022633744855";
    let asks = |url: &str, expected: &str| {
        resolver.prints(
            &env,
            &format!("curl -s -w ' %{{http_code}}' '{url}'"),
            expected,
        );
    };
    asks(
        &message("inclusionRequest", &stub.address, good),
        "status.archive included status.confirmation successful 200",
    );
    assert_eq!(stub.received("inclusionConfirmationRequest").len(), 1);
    let listed = env.sh("ibifs resolver list --db r.db");
    assert!(
        listed.starts_with(&format!("{}  {} since 20", stub.service, stub.address)),
        "{listed}"
    );
    // A HEAD changes nothing.
    let heads = |subject: &str| {
        let url = message(subject, "127.0.0.1:1", good);
        let script = format!("curl -sI '{url}' | tr -d '\\r' | grep -i -E '^(HTTP|allow)'");
        let head = resolver.sh(&env, &script).to_ascii_lowercase();
        assert_eq!(head, "http/1.1 405 method not allowed\nallow: get");
        assert_eq!(env.sh("ibifs resolver list --db r.db"), listed);
    };
    heads("inclusionRequest");
    heads("exclusionRequest");
    // No server listens there: included all the same, but not in the place of an address that answers.
    let away = || {
        asks(
            &message("inclusionRequest", "127.0.0.1:1", good),
            "status.archive included status.confirmation unsuccessful 200",
        );
        asks(
            &message("exclusionRequest", "127.0.0.1:1", good),
            "status.archive excluded 200",
        );
    };
    away();
    assert_eq!(env.sh("ibifs resolver list --db r.db"), listed);
    asks(
        &message("exclusionRequest", &stub.address, good),
        "status.archive excluded 200",
    );
    away();
    env.prints(
        "ibifs resolver list --db r.db --json | jq -c '.[] | [.address, .email, .included]'",
        "[null,null,null]",
    );
    for (url, sentence) in [
        (
            message(
                "inclusionRequest",
                &stub.address,
                "1427244889-5349022633744856",
            ),
            "the registration key is not that of",
        ),
        (
            message("exclusionRequest", &stub.address, "1427244889"),
            "the registration key is not that of",
        ),
        (
            message("inclusionRequest", &stub.address, good).replace("/s1/", "/s2/"),
            "no Archive is registered with the service",
        ),
    ] {
        let answer = resolver.sh(&env, &format!("curl -s -w ' %{{http_code}}' '{url}'"));
        assert!(
            answer.starts_with(sentence) && answer.ends_with(" 403"),
            "{answer}"
        );
    }
    for (url, sentence) in [
        (
            message("inclusionRequest", "http://x", good),
            "'http://x' is not an archiveaddress; write host or host:port, without http://",
        ),
        (
            message("inclusionRequest", &stub.address, "12"),
            "a registration key is 10 digits or more",
        ),
        (
            message("urlRequest", &stub.address, good),
            "servicesubject 'urlRequest' is neither inclusionRequest nor exclusionRequest",
        ),
        (
            message("inclusionRequest", &stub.address, good).replace("&archiveip=127.0.0.1", ""),
            "the query has no archiveip",
        ),
    ] {
        let answer = resolver.sh(&env, &format!("curl -s -w ' %{{http_code}}' '{url}'"));
        assert!(
            answer.starts_with(sentence) && answer.ends_with(" 400"),
            "{answer}"
        );
    }
    // A key that was lost is replaced, and who is forgotten is not included any more, at once.
    let key = env.sh(&format!(
        "ibifs resolver register --db r.db {}",
        stub.service
    ));
    asks(
        &message("inclusionRequest", &stub.address, &key),
        "status.archive included status.confirmation successful 200",
    );
    env.sh(&format!("ibifs resolver unregister --db r.db {}; ibifs resolver list --db r.db > list; test ! -s list", stub.service));
    resolver.sh(
        &env,
        "waits eval 'curl -s -H \"Accept: application/json\" $U/ | jq -e \".archives == 0\"'",
    );
    env.complains(
        &format!("ibifs resolver unregister --db r.db {}", stub.service),
        "no Archive is registered with the service",
    );
}

/// The resolver passes requests on, or not, and thanks Archives, as the documents say.
#[test]
fn archives_are_asked_and_thanked_as_the_documents_say() {
    let fixture = Fixture::new(vec![
        says(holds("http://a.example.org/x%20y", "Original")),
        says(""),
    ]);
    let path = format!("{ITEM}?ibiurl.requireditemstatus=Original");
    let options =
        "-H 'Accept-Language: pt-BR' -H 'X-Forwarded-For: 172.16.44.200, no address, 150.163.68.1'";
    assert_eq!(
        fixture.goes(&path, options),
        "302 http://a.example.org/x%20y"
    );
    let reader = "clientinformation.ipaddress=172.16.44.200%20150.163.68.1%20127.0.0.1";
    for stub in &fixture.stubs {
        assert_eq!(
            stub.hears("urlRequest", 1),
            [format!(
                "{reader}&parsedibiurl.ibi={ITEM}&parsedibiurl.verblist=&servicesubject=urlRequest"
            )]
        );
    }
    assert_eq!(
        fixture.stubs[0].hears("acknowledgment", 1),
        [format!(
            "{reader}&contenttype=Data&ibi=rep%20{ITEM}&servicesubject=acknowledgment&state=Original\
             &url=http://a.example.org/x%2520y&url.persistent=http://urlib.example.org:80/{ITEM}%3Fibiurl.requireditemstatus%3DOriginal\
             &urlkey=1234567890-1234567890"
        )]
    );
    // A reader who only looks is not counted.
    assert_eq!(
        fixture.goes(ITEM, "--head"),
        "302 http://a.example.org/x%20y"
    );
    assert_eq!(
        fixture.goes(&format!("{ITEM}/a/b"), ""),
        "302 http://a.example.org/x%20y"
    );
    assert!(fixture.stubs[0].hears("urlRequest", 3)[2].contains("&parsedibiurl.filepath=/a/b&"));
    assert_eq!(fixture.stubs[0].hears("acknowledgment", 2).len(), 2);
    assert_eq!(fixture.stubs[1].received("acknowledgment").len(), 0);
}

/// One claims the original, none does, two do; an item that was removed, one that no Archive knows.
#[test]
fn originals_and_alerts() {
    let original = |url: &str| says(holds(url, "Original"));
    let copy = || says(holds("http://copy.example.org/", "Copy"));
    let required = format!("{ITEM}?ibiurl.requireditemstatus=Original");
    let fixture = Fixture::new(vec![
        copy(),
        original("http://a.example.org/"),
        copy(),
        says(""),
    ]);
    assert_eq!(fixture.goes(&required, ""), "302 http://a.example.org/");
    let fixture = Fixture::new(vec![copy(), copy()]);
    assert_eq!(fixture.alert(&required), "404 copies-only");
    assert_eq!(fixture.goes(ITEM, ""), "302 http://copy.example.org/");
    let fixture = Fixture::new(vec![
        original("http://a.example.org/"),
        copy(),
        original("http://b.example.org/"),
    ]);
    assert_eq!(fixture.alert(&required), "409 suspects");
    let mut suspects = [&fixture.stubs[0], &fixture.stubs[2]].map(|stub| stub.address.clone());
    suspects.sort();
    fixture
        .env
        .prints("jq -r '.suspects[]' body", &suspects.join("\n"));
    assert_eq!(fixture.goes(&required, "-H 'Accept-Language: pt'"), "409 ");
    for suspect in &suspects {
        fixture.env.sh(&format!(
            "grep -q 'Mais de um original' body; grep -q '{suspect}' body"
        ));
    }
    assert_eq!(fixture.stubs[0].received("acknowledgment").len(), 0);
    let removed = format!("ibi {{rep {ITEM}}} state Deleted timestamp 2009-07-21T14:43:31Z");
    let fixture = Fixture::new(vec![says(""), says(removed.clone())]);
    assert_eq!(fixture.alert(ITEM), "410 deleted");
    let fixture = Fixture::new(vec![says(removed), copy()]);
    assert_eq!(fixture.goes(ITEM, ""), "302 http://copy.example.org/");
    // The alert names the item that was removed: here the translation.
    let other = "example.org/items/2010/01.01.00.00";
    let fixture = Fixture::new(vec![Box::new(move |query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        Reply::Text(if ibi == other {
            format!("ibi {{rep {other}}} state Deleted timestamp 2009-07-21T14:43:31Z")
        } else {
            format!("ibi {{rep {ibi}}} state Original ibi.translation(pt) {{rep {other}}}")
        })
    })]);
    assert_eq!(fixture.alert(&format!("{ITEM}+(pt)")), "410 deleted");
    fixture.env.prints("jq -r .ibi body", other);
    let fixture = Fixture::new(vec![says("")]);
    assert_eq!(fixture.alert(ITEM), "404 unknown");
    for (path, status) in [
        ("", "200 "),
        ("favicon.ico", "200 "),
        (&format!("{ITEM}:!"), "400 "),
        (&format!("{ITEM}?ibiurl.verblist=x"), "400 "),
    ] {
        assert_eq!(fixture.goes(path, ""), status, "{path}");
    }
}

/// Pairs of the query that are not those of the system are for the item itself, and are passed on.
#[test]
fn other_pairs_of_the_query_are_passed_on() {
    let fixture = Fixture::new(vec![Box::new(|query| {
        let verbs = query.get("parsedibiurl.verblist").unwrap_or_default();
        let more = if verbs.is_empty() { "" } else { "?list" };
        Reply::Text(holds(&format!("http://a.example.org/x{more}"), "Original"))
    })]);
    for (query, expected) in [
        ("?foo=bar&lang=pt&q=a%20b+c", "x?foo=bar&lang=pt&q=a%20b+c"),
        (
            "?ibiurl.requireditemstatus=Original&x=%FF&ibiurl.y=1&page",
            "x?x=%FF",
        ),
        (
            "?ibiurl.verblist=GetFileList&verb=GetRecord",
            "x?list&verb=GetRecord",
        ),
        ("", "x"),
    ] {
        let expected = format!("302 http://a.example.org/{expected}");
        assert_eq!(fixture.goes(&format!("{ITEM}{query}"), ""), expected);
    }
}

/// An identifier whose prefix is that of a registered Archive that answers does not wait for one that is switched off,
/// unless that one has answered for the prefix before.
#[test]
fn an_archive_that_is_off_hides_nothing_of_the_others() {
    let removed = |query: &Query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        Reply::Text(match ibi.rsplit('.').next() {
            Some("01") => format!("ibi {{rep {ibi}}} state Deleted timestamp 2009-07-21T14:43:31Z"),
            _ => String::new(),
        })
    };
    let has_one = |query: &Query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        Reply::Text(match ibi.rsplit('.').next() {
            Some("03") => format!("ibi {{rep {ibi}}} state Original url http://b.example.org/"),
            _ => String::new(),
        })
    };
    let fixture = Fixture::new(vec![Box::new(removed), Box::new(has_one)]);
    let off = |fixture: &Fixture| {
        fixture.stubs[1].exclude(&registry(&fixture.env, "r.db"));
        // The resolver notices within a second.
        std::thread::sleep(Duration::from_millis(2500));
    };
    off(&fixture);
    let of_the_first = |last: &str| format!("stub.example.org/s0/2009/02.16.17.{last}");
    assert_eq!(fixture.alert(&of_the_first("01")), "410 deleted");
    assert_eq!(fixture.alert(&of_the_first("02")), "404 unknown");
    // It may have what is of no other, or of itself.
    assert_eq!(fixture.alert(ITEM), "503 unavailable");
    let of_the_second = "stub.example.org/s1/2009/02.16.17.02";
    assert_eq!(fixture.alert(of_the_second), "503 unavailable");
    // Once it has answered for the prefix, it may have other items of it.
    let fixture = Fixture::new(vec![Box::new(removed), Box::new(has_one)]);
    let transferred = of_the_first("03");
    assert_eq!(fixture.goes(&transferred, ""), "302 http://b.example.org/");
    off(&fixture);
    assert_eq!(fixture.alert(&of_the_first("01")), "503 unavailable");
}

/// A resolver continues a question: to the next edition, to a related item; a circle and an endless row end.
#[test]
fn questions_go_on() {
    let edition = |number: u32| format!("example.org/items/2009/02.16.17.{number:02}");
    let next = move |query: &Query, most: u32| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
        let number: u32 = ibi
            .rsplit('.')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        Reply::Text(match number {
            number if number < most => format!(
                "ibi {{rep {ibi}}} ibi.nextedition {{rep {}}}",
                edition(number + 1)
            ),
            _ => format!("ibi {{rep {ibi}}} url.lastedition http://last.example.org/{number}"),
        })
    };
    let fixture = Fixture::new(vec![Box::new(move |query| next(query, 12)), says("")]);
    assert_eq!(
        fixture.goes("example.org/items/2009/02.16.17.00!", ""),
        "302 http://last.example.org/12"
    );
    let fixture = Fixture::new(vec![Box::new(move |query| next(query, 59))]);
    assert_eq!(
        fixture.alert("example.org/items/2009/02.16.17.00!"),
        "508 endless"
    );
    let circle = Box::new(move |query: &Query| {
        let ibi = query.get("parsedibiurl.ibi").unwrap_or_default().to_owned();
        let other = if ibi.ends_with("00") {
            edition(1)
        } else {
            edition(0)
        };
        Reply::Text(format!("ibi {{rep {ibi}}} ibi.nextedition {{rep {other}}}"))
    });
    let fixture = Fixture::new(vec![circle]);
    assert_eq!(
        fixture.alert("example.org/items/2009/02.16.17.00!"),
        "508 endless"
    );
    // Each time it is queried for the item's state as well, which it leaves out.
    assert_eq!(fixture.stubs[0].received("urlRequest").len(), 4);
}

/// Archives that are silent, dead, talk too much or say what is no answer keep no reader from what another
/// has; where none has it, the reader sees that not all have answered.
#[test]
fn archives_that_do_not_answer_delay_no_reader() {
    let raw = |text: String| -> Answer { Box::new(move |_| Reply::Raw(text.clone().into_bytes())) };
    let bad = || -> Vec<Answer> {
        vec![
            silent(),
            says("{{{"),
            says("é"),
            raw("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n".to_owned()),
            raw("no HTTP at all\r\n\r\n".to_owned()),
            raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n{}",
                "a b ".repeat(750_000)
            )),
            raw(
                "HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
                    .to_owned(),
            ),
        ]
    };
    let mut answers = bad();
    answers.push(says(holds("http://a.example.org/", "Original")));
    let fixture = Fixture::new(answers);
    // An Archive that is silent is waited for two seconds where no other one has it.
    let not_waited = |fixture: &Fixture, ibi: &str, expected: &str| {
        let (took, location) = redirect(&format!("{}/{ibi}", fixture.resolver.url));
        assert!(location.starts_with(expected), "{location}");
        assert!(took < Duration::from_millis(1900), "{took:?}");
    };
    for _ in 0..5 {
        not_waited(&fixture, ITEM, "http://a.example.org/");
    }
    let fixture = Fixture::new(bad());
    assert_eq!(fixture.alert(ITEM), "503 unavailable");
    fixture.env.prints("jq .archives_without_answer body", "7");
    // An Archive that is silent again and again is not waited for as long.
    for _ in 0..2 {
        fixture.goes(ITEM, "");
    }
    not_waited(&fixture, ITEM, "HTTP/1.1 503 ");
    // A reader is sent to a page, nowhere else.
    for url in ["javascript:alert(1)", "http://a/\u{7f}", "ftp://x/"] {
        let fixture = Fixture::new(vec![says(
            holds(&url.replace('\u{7f}', "%0d%0a"), "Original")
                .replace("http://a/%0d%0a", "http:/x"),
        )]);
        assert_eq!(fixture.alert(ITEM), "404 unknown", "{url}");
    }
}

/// An Archive that answered for a prefix is queried alone the next time; if it knows nothing any more, all are queried.
#[test]
fn who_answered_for_a_prefix_is_asked_first() {
    let knows = |last: &'static str, url: &'static str| -> Answer {
        Box::new(move |query| {
            let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
            Reply::Text(if ibi.ends_with(last) {
                format!("ibi {{rep {ibi}}} state Original url {url}")
            } else {
                String::new()
            })
        })
    };
    let fixture = Fixture::new(vec![
        knows("01", "http://a.example.org/"),
        knows("02", "http://b.example.org/"),
        says(""),
    ]);
    let first = "example.org/items/2009/02.16.17.01";
    let counts = || {
        fixture
            .stubs
            .iter()
            .map(|stub| stub.received("urlRequest").len())
            .collect::<Vec<_>>()
    };
    assert_eq!(fixture.goes(first, ""), "302 http://a.example.org/");
    // Those who are not waited for may hear of it a little later, or not at all; and on a busy machine the
    // others may be asked before the answer is there.
    let is_asked_alone = || {
        std::thread::sleep(Duration::from_millis(200));
        let before = counts();
        assert_eq!(fixture.goes(first, ""), "302 http://a.example.org/");
        counts() == [before[0] + 1, before[1], before[2]]
    };
    assert!((0..20).any(|_| is_asked_alone()));
    let before = counts();
    let second = "example.org/items/2009/02.16.17.02";
    assert_eq!(fixture.goes(second, ""), "302 http://b.example.org/");
    let now = counts();
    assert_eq!((now[0], now[1]), (before[0] + 1, before[1] + 1));
    std::thread::sleep(Duration::from_millis(200));
    let now = counts();
    // All must answer where the original is requested.
    assert_eq!(
        fixture.goes(&format!("{first}?ibiurl.requireditemstatus=Original"), ""),
        "302 http://a.example.org/"
    );
    assert_eq!(counts()[2], now[2] + 1);
}

/// Returns how long one question takes, with a connection of its own, and where it leads.
pub fn redirect(url: &str) -> (Duration, String) {
    use std::io::{Read, Write};
    let (address, path) = url
        .trim_start_matches("http://")
        .split_once('/')
        .expect("a path");
    let started = Instant::now();
    let mut stream = std::net::TcpStream::connect(address).expect("somebody listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let took = started.elapsed();
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    (took, location.unwrap_or(&answer).to_owned())
}
