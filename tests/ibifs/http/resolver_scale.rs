//! The choice of the Archives that a resolver queries: 1,000 of them, played by one process (`IBIFS_TEST_SECONDS` for
//! longer), the cases in which the one that it asks first does not have the answer, and many readers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ibifs::formats::query::Query;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::resolver::redirect;
use super::served::{Served, registry};
use super::stub::{Reply, Stub};
use crate::support::{TestEnv, switch};

const ARCHIVES: usize = 1000;
/// The delay of the slow Archives.
const SLOW: Duration = Duration::from_millis(200);

/// Archives in one thread. Number `n` has the items whose prefix ends in `-n`.
struct Federation {
    addresses: Vec<String>,
    /// Requests to the service of any of them, other than acknowledgments.
    requests: Arc<AtomicUsize>,
    _end: tokio::sync::oneshot::Sender<()>,
}

fn is_silent(number: usize) -> bool {
    number % 20 == 19
}

fn is_slow(number: usize) -> bool {
    number % 20 == 9
}

impl Federation {
    fn start(archives: usize) -> Federation {
        // Each Archive has a socket, and each connection.
        let known = getrlimit(Resource::Nofile);
        let most = 8192.min(known.maximum.unwrap_or(u64::MAX));
        if known.current.is_some_and(|current| current < most) {
            let raised = Rlimit {
                current: Some(most),
                ..known
            };
            setrlimit(Resource::Nofile, raised).expect("a limit");
        }
        let listeners: Vec<std::net::TcpListener> = (0..archives)
            .map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"))
            .collect();
        let address = |it: &std::net::TcpListener| it.local_addr().expect("one").to_string();
        let addresses = listeners.iter().map(address).collect();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                for (number, listener) in listeners.into_iter().enumerate() {
                    listener.set_nonblocking(true).expect("set");
                    let listener = TcpListener::from_std(listener).expect("a socket");
                    let counted = Arc::clone(&counted);
                    tokio::spawn(async move {
                        while let Ok((stream, _)) = listener.accept().await {
                            tokio::spawn(talk(stream, number, Arc::clone(&counted)));
                        }
                    });
                }
                let _ = ended.await;
            });
        });
        Federation {
            addresses,
            requests,
            _end: end,
        }
    }

    /// Registers and includes all: to hash a key for each would take a minute.
    fn include(&self, env: &TestEnv) {
        drop(registry(env, "r.db"));
        let rows = self.addresses.iter().enumerate().map(|(number, address)| {
            format!(
                "INSERT INTO archive (rep, secret, registered_at, address, ip, version, email, included_at, prefixes)
                 VALUES ('example.org/own-{number}/2020/01.01.01.01', 'x', '2026-01-01T00:00:00Z', '{address}',
                         '127.0.0.1', '1', 'a@b', '2026-01-01T00:00:00Z', 'example.org/announced-{number}');"
            )
        });
        let rows: String = rows.collect();
        std::fs::write(env.root().join("rows"), format!("BEGIN; {rows} COMMIT;")).expect("a file");
        env.sh("sqlite3 r.db < rows");
    }

    /// Asks for an item of an Archive. Returns how long it took, and how many requests that caused.
    #[track_caller]
    fn ask(
        &self,
        resolver: &Served,
        prefix: &str,
        holder: usize,
        item: usize,
    ) -> (Duration, usize) {
        let before = self.requests.load(Ordering::SeqCst);
        let (minute, second) = (item / 60 % 60, item % 60);
        let path = format!("example.org/{prefix}-{holder}/2009/02.16.17.{minute:02}.{second:02}");
        let url = format!("{}/{path}", resolver.url);
        // On a machine that is busy with something else an Archive may be too late: the reader tries again.
        let is_late = |location: &str| location.starts_with("HTTP/1.1 503");
        let mut answers = (0..20).map(|_| redirect(&url));
        let found = answers.find(|(_, location)| !is_late(location));
        let (took, location) = found.expect("an answer in time");
        assert_eq!(location, format!("http://a{holder}.example.org/"), "{path}");
        (took, self.requests.load(Ordering::SeqCst) - before)
    }

    /// Waits until no more requests come of what has been answered already.
    fn settle(&self) {
        loop {
            let before = self.requests.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
            if self.requests.load(Ordering::SeqCst) == before {
                return;
            }
        }
    }
}

/// Answers the requests of a connection as Archive `number`.
async fn talk(stream: TcpStream, number: usize, counted: Arc<AtomicUsize>) {
    let _ = stream.set_nodelay(true);
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some(end) = received.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            received.drain(..end + 4);
            let target = head.split(' ').nth(1).unwrap_or_default();
            let query = target.split_once('?').map_or("", |(_, query)| query);
            let query = Query::parse(query).expect("a query");
            let mut text = "notice {acknowledgment received}".to_owned();
            if query.get("servicesubject") == Some("urlRequest") {
                counted.fetch_add(1, Ordering::SeqCst);
                if is_silent(number) {
                    continue;
                }
                if is_slow(number) {
                    tokio::time::sleep(SLOW).await;
                }
                let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
                let holder = ibi.split(['/', '-']).nth(2);
                let is_here = holder.and_then(|it| it.parse().ok()) == Some(number);
                text = if is_here {
                    format!("ibi {{rep {ibi}}} state Original url http://a{number}.example.org/")
                } else {
                    String::new()
                };
            }
            let length = text.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}");
            // It fits into the buffer of the socket.
            if stream.writable().await.is_err() || stream.try_write(answer.as_bytes()).is_err() {
                return;
            }
        }
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read(&mut buffer) {
            Ok(count) if count > 0 => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

fn memory(resolver: &Served) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", resolver.process()));
    let status = status.expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("a number of KiB")
}

/// Prints times and requests of resolutions; returns the time that half and that 99 of 100 take, and the requests
/// that half and 90 of 100 cause at most.
fn weighed(what: &str, mut asked: Vec<(Duration, usize)>) -> ([Duration; 2], [usize; 2]) {
    asked.sort();
    let time = |percent: usize| asked[asked.len() * percent / 100].0;
    let times = [time(50), time(99)];
    let sum: usize = asked.iter().map(|(_, requests)| requests).sum();
    let mean = sum as f64 / asked.len() as f64;
    asked.sort_by_key(|(_, requests)| *requests);
    let requests = [50, 90].map(|percent| asked[asked.len() * percent / 100].1);
    println!(
        "{what}: {} resolutions, half in {:?}, 99 of 100 in {:?}; {mean:.2} requests each, half {}, 90 of 100 {}",
        asked.len(),
        times[0],
        times[1],
        requests[0],
        requests[1]
    );
    (times, requests)
}

/// 1,000 Archives, 50 of which never answer and 50 of which take 200 ms: a prefix that is known or announced costs one
/// request, also after a restart, and one that is slow is waited for. The times are those of a release build with
/// `IBIFS_TEST_MILLISECONDS=400`.
#[test]
fn a_thousand_archives() {
    let env = TestEnv::new().with_index_file();
    let federation = Federation::start(ARCHIVES);
    federation.include(&env);
    let resolver = Served::resolver(&env, "");
    let limit = Duration::from_millis(switch("IBIFS_TEST_MILLISECONDS").unwrap_or(5000));
    let seconds = switch("IBIFS_TEST_SECONDS");
    let speaking = |turn: usize| {
        let number = turn * 37 % ARCHIVES;
        if is_silent(number) {
            number - 1
        } else {
            number
        }
    };
    // After three times the resolver leaves the Archives alone that never answer.
    for turn in 0..3 {
        federation.ask(&resolver, "first", speaking(turn), 0);
    }
    std::thread::sleep(Duration::from_millis(2300));
    let new = if seconds.is_some() { 60 } else { 20 };
    let asked = (0..new).map(|turn| {
        if seconds.is_some() {
            federation.settle();
        }
        federation.ask(&resolver, "p", speaking(turn), 0)
    });
    let (times, _) = weighed("new prefixes", asked.collect());
    federation.settle();
    assert!(times[1] < limit, "{times:?}");
    let slow = (0..new).filter(|turn| is_slow(speaking(*turn))).count();
    assert!(slow > 0 && slow < new, "{slow}");
    let started = memory(&resolver);
    let known = |resolver: &Served, what: &str, rounds: usize| {
        let asked =
            (0..rounds).map(|turn| federation.ask(resolver, "p", speaking(turn % new), 1 + turn));
        let (times, requests) = weighed(what, asked.collect());
        assert!(times[1] < limit, "{what}: {times:?}");
        assert_eq!(requests, [1, 1], "{what}");
    };
    known(&resolver, "known prefixes", 300);
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    while Instant::now() < until {
        known(&resolver, "known prefixes", 3000);
        println!("memory: {} KiB", memory(&resolver));
    }
    let ended = memory(&resolver);
    println!("memory: {started} KiB, then {ended} KiB");
    assert!(ended < started + 8192, "{started} KiB, then {ended} KiB");
    for what in ["own", "announced"] {
        let asked = (0..60).map(|turn| federation.ask(&resolver, what, speaking(turn * 3 + 1), 0));
        // Slow ones that only announce a prefix are not waited for.
        let (_, requests) = weighed(what, asked.filter(|(took, _)| *took < SLOW).collect());
        assert_eq!(requests[0], 1, "{what}");
        federation.settle();
    }
    drop(resolver);
    let resolver = Served::resolver(&env, "");
    known(&resolver, "after a restart", 60);
}

/// A reader who asks for one item after the other, of announced prefixes, and once in 500 times for one that no
/// Archive has. Returns how long the answers took, and how many said that an Archive is too late, which happens on a
/// machine that is busy with something else.
async fn read(
    address: String,
    reader: usize,
    archives: usize,
    until: Instant,
) -> (Vec<Duration>, usize) {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let (mut took, mut late) = (Vec::new(), 0);
    let mut received = Vec::new();
    for turn in 0.. {
        if Instant::now() > until {
            break;
        }
        let number = (reader * 31 + turn * 37) % archives;
        let holder = number - usize::from(is_silent(number) || is_slow(number));
        let prefix = match (reader + turn) % 500 {
            0 => format!("nobody-x{reader}.{turn}"),
            _ => format!("announced-{holder}"),
        };
        let (minute, second) = (turn / 60 % 60, turn % 60);
        let request = format!(
            "GET /example.org/{prefix}/2009/02.16.17.{minute:02}.{second:02} HTTP/1.1\r\nHost: r\r\n\r\n"
        );
        let asked = Instant::now();
        stream.write_all(request.as_bytes()).await.expect("sent");
        let head = loop {
            if let Some(head) = answer_in(&mut received) {
                break head;
            }
            let count = stream.read_buf(&mut received).await.expect("an answer");
            assert!(count > 0, "the resolver has closed the connection");
        };
        took.push(asked.elapsed());
        let is_late = ["HTTP/1.1 503", "HTTP/1.1 504"]
            .iter()
            .any(|it| head.starts_with(it));
        late += usize::from(is_late && !prefix.starts_with("nobody"));
        let is_right = if prefix.starts_with("nobody") {
            head.starts_with("HTTP/1.1 404")
        } else {
            let location = format!("location: http://a{holder}.example.org/\r\n");
            head.starts_with("HTTP/1.1 302") && head.contains(&location)
        };
        assert!(is_late || is_right, "{request}{head}");
    }
    (took, late)
}

/// Takes an answer out of what was received, and returns its head.
fn answer_in(received: &mut Vec<u8>) -> Option<String> {
    let end = received.windows(4).position(|it| it == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("a length").parse().expect("a number");
    if received.len() < end + length {
        return None;
    }
    received.drain(..end + length);
    Some(head)
}

/// With 1,000 readers and 200 Archives the resolver needs as much memory, and as many descriptors, in the last third of the
/// time as in the second.
#[test]
fn a_thousand_readers() {
    let env = TestEnv::new().with_index_file();
    let seconds = switch("IBIFS_TEST_SECONDS");
    let (archives, readers) = (200, if seconds.is_some() { 1000 } else { 100 });
    let federation = Federation::start(archives);
    federation.include(&env);
    let resolver = Served::resolver(&env, "");
    let duration = Duration::from_secs(seconds.unwrap_or(6));
    let until = Instant::now() + duration;
    let address = resolver.address().to_owned();
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut all = tokio::task::JoinSet::new();
            for reader in 0..readers {
                all.spawn(read(address.clone(), reader, archives, until));
            }
            all.join_all().await
        })
    });
    let descriptors = || {
        let all = std::fs::read_dir(format!("/proc/{}/fd", resolver.process()));
        all.expect("its descriptors").count()
    };
    let mut looked = Vec::new();
    while Instant::now() < until {
        looked.push((memory(&resolver), descriptors()));
        std::thread::sleep(duration / 60);
    }
    let answers = asking.join().expect("all readers were answered");
    let late: usize = answers.iter().map(|(_, late)| late).sum();
    let mut took: Vec<Duration> = answers.into_iter().flat_map(|(took, _)| took).collect();
    took.sort();
    let third = |number: usize| {
        let part = &looked[looked.len() * number / 3..looked.len() * (number + 1) / 3];
        let middle = |of: fn(&(usize, usize)) -> usize| {
            let mut values: Vec<usize> = part.iter().map(of).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        (middle(|it| it.0), middle(|it| it.1))
    };
    let thirds = [third(0), third(1), third(2)];
    let time = |permille: usize| took[took.len() * permille / 1000];
    println!(
        "{readers} readers, {archives} Archives, {duration:?}: {} answers, {late} of them 503 or 504, half in {:?}, 99 of 100 in {:?}; \
         memory (KiB) and descriptors by thirds: {thirds:?}",
        took.len(),
        time(500),
        time(990)
    );
    let [_, second, third] = thirds;
    // Beside other programs a few seconds say less: a resolver that collapses refuses nearly all.
    let (each, tenths) = if seconds.is_some() { (5, 1) } else { (1, 9) };
    assert!(
        took.len() > each * readers && late * 10 < took.len() * tenths,
        "{} {late}",
        took.len()
    );
    // In a few seconds not all connections have been made.
    let more = seconds.map_or(second.0 / 2, |_| second.0 / 20);
    assert!(third.0 <= second.0 + more + 512, "{thirds:?}");
    // One for each reader, one for each request in progress, and the idle ones for the next request.
    assert!(third.1 <= 5000, "{thirds:?}");
}

const FIRST: &str = "example.org/items/2009/02.16.17.01";
const SECOND: &str = "example.org/items/2009/02.16.17.02";

/// A stub that holds the items with these ends, at a URL of its own.
fn holder(number: usize, ends: &'static str, state: &'static str) -> Stub {
    Stub::start(number, move |query| answer(query, number, ends, state))
}

fn answer(query: &Query, number: usize, ends: &str, state: &str) -> Reply {
    let ibi = query.get("parsedibiurl.ibi").unwrap_or_default();
    let is_here = ends
        .split(' ')
        .any(|end| !end.is_empty() && ibi.ends_with(end));
    Reply::Text(if is_here {
        format!("ibi {{rep {ibi}}} state {state} url http://s{number}/")
    } else {
        String::new()
    })
}

fn resolver(env: &TestEnv, archives: &[(&Stub, &str)]) -> Served {
    let registry = registry(env, "r.db");
    for (stub, prefixes) in archives {
        stub.announce(&registry, prefixes);
    }
    drop(registry);
    Served::resolver(env, "")
}

fn counts(stubs: &[&Stub]) -> Vec<usize> {
    std::thread::sleep(Duration::from_millis(300));
    stubs
        .iter()
        .map(|stub| stub.received("urlRequest").len())
        .collect()
}

#[track_caller]
fn leads(resolver: &Served, ibi: &str, to: &str) -> Duration {
    let (took, location) = redirect(&format!("{}/{ibi}", resolver.url));
    assert_eq!(location, to, "{ibi}");
    took
}

/// An Archive that announces the prefixes of others costs one request, once, and gets no reader.
#[test]
fn who_announces_the_prefixes_of_others_costs_one_request() {
    let env = TestEnv::new().with_index_file();
    let (liar, right) = (holder(1, "", "Original"), holder(2, "01 02", "Original"));
    let others = [holder(3, "", "Copy"), holder(4, "", "Copy")];
    let all = "example.org/items example.org/s2 stub.example.org/s2";
    let served = resolver(
        &env,
        &[
            (&liar, all),
            (&right, "example.org/items"),
            (&others[0], ""),
            (&others[1], ""),
        ],
    );
    let stubs = [&liar, &right, &others[0], &others[1]];
    leads(&served, FIRST, "http://s2/");
    let before = counts(&stubs);
    // On a busy machine the head start of what is announced may pass.
    assert_eq!(before[..2], [1, 1]);
    assert!(before[2..].iter().all(|count| *count <= 1), "{before:?}");
    leads(&served, SECOND, "http://s2/");
    assert_eq!(
        counts(&stubs),
        [before[0], before[1] + 1, before[2], before[3]]
    );
    // A name that begins with the service of an Archive is asked of that Archive first, even if another announces it.
    leads(
        &served,
        "stub.example.org/s2/2009/02.16.17.01",
        "http://s2/",
    );
    assert_eq!(counts(&stubs)[0], before[0]);
}

/// Two Archives share a prefix, as after a transfer: both are remembered, and no other one is queried.
#[test]
fn two_archives_that_share_a_prefix() {
    let env = TestEnv::new().with_index_file();
    let (one, two, other) = (
        holder(1, "01", "Original"),
        holder(2, "02", "Original"),
        holder(3, "", "Copy"),
    );
    let served = resolver(&env, &[(&one, ""), (&two, ""), (&other, "")]);
    leads(&served, FIRST, "http://s1/");
    leads(&served, SECOND, "http://s2/");
    let before = counts(&[&one, &two, &other]);
    for _ in 0..3 {
        leads(&served, FIRST, "http://s1/");
        leads(&served, SECOND, "http://s2/");
    }
    assert_eq!(counts(&[&one, &two, &other])[2], before[2]);
}

/// One that holds the original and is slow is waited for, and no other one is asked; one that has become silent delays
/// a reader for a moment and then no more, and has the others asked.
#[test]
fn slow_and_silent() {
    let env = TestEnv::new().with_index_file();
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let slow = Stub::start(1, move |query| {
        if gone.load(Ordering::SeqCst) {
            return Reply::Never;
        }
        std::thread::sleep(Duration::from_millis(150));
        answer(query, 1, "01 02", "Original")
    });
    let copy = holder(2, "02", "Copy");
    let other = holder(3, "", "Copy");
    let served = resolver(&env, &[(&slow, ""), (&copy, ""), (&other, "")]);
    leads(&served, FIRST, "http://s1/");
    let before = counts(&[&slow, &copy, &other]);
    for _ in 0..3 {
        let took = leads(&served, FIRST, "http://s1/");
        assert!(took > Duration::from_millis(100), "{took:?}");
    }
    let after = counts(&[&slow, &copy, &other]);
    assert_eq!(after, [before[0] + 3, before[1], before[2]]);
    is_gone.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let took = leads(&served, SECOND, "http://s2/");
        assert!(took < Duration::from_millis(1900), "{took:?}");
    }
    // Its timeouts have passed by then.
    std::thread::sleep(Duration::from_millis(2200));
    let before = counts(&[&slow, &copy, &other]);
    for _ in 0..3 {
        leads(&served, SECOND, "http://s2/");
    }
    let after = counts(&[&slow, &copy, &other]);
    assert!(
        after[0] <= before[0] + 1 && after[2] == before[2],
        "{before:?} {after:?}"
    );
}
