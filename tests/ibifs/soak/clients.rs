//! Clients of a service over HTTP, good ones and bad ones, each of which does one thing over and over.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use ibi::pairs::percent_encode;

use crate::support::Rng;

/// The time that an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of pages that a crawler visits before it begins again.
const MOST_PAGES: usize = 3000;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The state that all clients share.
#[derive(Debug)]
pub struct Load {
    /// The address at which the service listens.
    pub address: String,
    /// Items that stay.
    pub items: Vec<String>,
    /// Items that are there now and are removed later.
    pub passing: RwLock<VecDeque<String>>,
    /// The item with files of `LONG` bytes.
    pub long: String,
    pub is_over: AtomicBool,
    /// The number of rounds of each kind of client.
    pub counts: Mutex<BTreeMap<&'static str, u64>>,
    /// The time that a reader waited for each answer.
    pub waits: Mutex<Vec<Duration>>,
}

/// The length of a long file.
pub const LONG: u64 = 16 << 20;

/// A client: what it does in one turn.
pub type Client = fn(&Load, &mut Rng);

/// All clients but the reader, with their names.
pub const CLIENTS: [(&str, Client); 13] = [
    ("crawls", crawl),
    ("harvests", harvest),
    ("slow heads", send_slowly),
    ("unread answers", leave_unread),
    ("idle connections", stay_idle),
    ("half-closed connections", close_half),
    ("ranges", read_ranges),
    ("conditional requests", ask_again),
    ("searches", search),
    ("broken downloads", break_off),
    ("odd requests", ask_oddly),
    ("lists of the drive", list_drive),
    ("lists of files and levels", list_levels),
];

impl Load {
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Goes on until it is over.
    pub fn run(&self, name: &'static str, client: Client, seed: u64) {
        let mut rng = Rng::from_seed(seed);
        while !self.is_over() {
            client(self, &mut rng);
            *self
                .counts
                .lock()
                .expect("no panic")
                .entry(name)
                .or_default() += 1;
            // Clients of which there is one of a kind do not use up the machine.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .set_read_timeout(Some(TIMEOUT))
            .expect("a time limit");
        stream
            .set_write_timeout(Some(TIMEOUT))
            .expect("a time limit");
        stream
    }

    /// Sends a request with further lines of headers, and reads the whole answer.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, lines: &str) -> Answer {
        let mut stream = self.connect();
        let request = format!("{method} {path} HTTP/1.0\r\nHost: x\r\n{lines}\r\n");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        read.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("{method} {path}: no answer"));
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Answer {
            status: status.unwrap_or_else(|| panic!("{method} {path}: {head}")),
            head,
            body: bytes.split_off(end + 4),
        }
    }

    #[track_caller]
    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    fn item(&self, rng: &mut Rng) -> String {
        rng.of(&self.items).expect("items").clone()
    }

    /// One of all items, which may just be removed.
    fn any_item(&self, rng: &mut Rng) -> String {
        let passing = self.passing.read().expect("no panic");
        match passing.get(rng.below(2 * passing.len())) {
            Some(item) => item.clone(),
            None => self.item(rng),
        }
    }
}

/// A reader, who waits for each answer, and gets it.
pub fn read(load: &Load, rng: &mut Rng) {
    let item = load.item(rng);
    let path = match rng.below(4) {
        0 => "/".to_owned(),
        1 => format!("/{item}"),
        2 => format!("/{item}:(bibtex)"),
        _ => format!("/col/{item}/doc/text.txt"),
    };
    let asked = Instant::now();
    let answer = load.get(&path);
    load.waits.lock().expect("no panic").push(asked.elapsed());
    assert!(
        [200, 302, 303].contains(&answer.status),
        "{path}: {}",
        answer.head
    );
}

/// Follows all links of the pages, from the first and from the list of all items.
fn crawl(load: &Load, _: &mut Rng) {
    let first = ["/", "/robots.txt", "/sitemap.xml"].map(str::to_owned);
    let mut waiting = VecDeque::from(first);
    let mut known: HashSet<String> = waiting.iter().cloned().collect();
    while let Some(path) = waiting.pop_front().filter(|_| !load.is_over()) {
        let answer = load.get(&path);
        let text = answer.text();
        let of_attributes = text
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        let of_elements = text
            .split("<loc>")
            .skip(1)
            .map(|rest| rest.split('<').next());
        let links = of_attributes.chain(of_elements).flatten();
        for link in links.chain(answer.header("location")) {
            let link = link.replace("&amp;", "&");
            let below = link.split_once("://").map_or(link.as_str(), |(_, rest)| {
                rest.find('/').map_or("/", |at| &rest[at..])
            });
            let path = below.split('#').next().unwrap_or_default().to_owned();
            let is_page = path.starts_with('/') && !path.contains(' ');
            if is_page && known.len() < MOST_PAGES && known.insert(path.clone()) {
                waiting.push_back(path);
            }
        }
    }
}

/// Reads the whole list of records, with tokens, and then what has changed since.
fn harvest(load: &Load, rng: &mut Rng) {
    let verb = *rng.of(&["ListRecords", "ListIdentifiers"]).expect("verbs");
    let mut asked = format!("/oai?verb={verb}&metadataPrefix=oai_dc");
    if rng.percent(50) {
        asked.push_str("&from=2026-01-01");
    }
    let mut since = None;
    loop {
        let answer = load.get(&asked);
        let text = answer.text();
        let within = |begin: &str| {
            let (_, rest) = text.split_once(begin)?;
            let (_, rest) = rest.split_once('>')?;
            Some(rest.split('<').next()?.to_owned())
        };
        since = since.or_else(|| within("<responseDate"));
        let token = within("<resumptionToken").filter(|token| !token.is_empty());
        let Some(token) = token.filter(|_| !load.is_over()) else {
            break;
        };
        let token = percent_encode(token.as_bytes()).replace('&', "%26");
        asked = format!("/oai?verb={verb}&resumptionToken={token}");
    }
    let Some(since) = since.filter(|_| !load.is_over()) else {
        return load.pause(Duration::from_secs(1));
    };
    load.pause(Duration::from_secs(1));
    load.get(&format!(
        "/oai?verb={verb}&metadataPrefix=oai_dc&from={since}"
    ));
    load.get("/feed.atom");
}

/// Sends the heads of requests a byte a second, until they are refused or it is over.
fn send_slowly(load: &Load, rng: &mut Rng) {
    let mut streams: Vec<TcpStream> = (0..20).map(|_| load.connect()).collect();
    let head = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", load.item(rng));
    for byte in head.bytes().take(15) {
        for stream in &mut streams {
            let _ = stream.write_all(&[byte]);
        }
        load.pause(Duration::from_secs(1));
    }
}

/// Asks for long files and reads no byte, or a few.
fn leave_unread(load: &Load, rng: &mut Rng) {
    let mut streams: Vec<TcpStream> = (0..5).map(|_| load.connect()).collect();
    for stream in &mut streams {
        let request = format!(
            "GET /col/{}/doc/long HTTP/1.1\r\nHost: x\r\n\r\n",
            load.long
        );
        let _ = stream.write_all(request.as_bytes());
        let mut some = vec![0; rng.below(2) * 100_000];
        let _ = stream.read_exact(&mut some);
    }
    load.pause(Duration::from_secs(
        *rng.of(&[0, 1, 5, 40]).expect("seconds"),
    ));
}

/// Opens connections and leaves them, some after an answer.
fn stay_idle(load: &Load, rng: &mut Rng) {
    let mut streams: Vec<TcpStream> = (0..20).map(|_| load.connect()).collect();
    for stream in streams.iter_mut().take(10) {
        let _ = stream.write_all(b"GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n");
        let _ = stream.read(&mut [0; 4096]);
    }
    load.pause(Duration::from_secs(
        *rng.of(&[0, 1, 3, 15]).expect("seconds"),
    ));
}

/// Sends no more after a request, or in the middle of one.
fn close_half(load: &Load, rng: &mut Rng) {
    let request = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", load.any_item(rng));
    let sent = if rng.percent(50) {
        request.len()
    } else {
        rng.below(request.len())
    };
    let mut stream = load.connect();
    let _ = stream.write_all(&request.as_bytes()[..sent]);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Reads parts of a long file.
fn read_ranges(load: &Load, rng: &mut Rng) {
    let first = rng.number() % LONG;
    let last = (first + rng.number() % 100_000).min(LONG - 1);
    let path = format!("/col/{}/doc/long", load.long);
    let answer = load.ask("GET", &path, &format!("Range: bytes={first}-{last}\r\n"));
    assert_eq!(answer.status, 206, "{}", answer.head);
    assert_eq!(answer.body.len() as u64, last - first + 1);
    let beyond = load.ask("GET", &path, &format!("Range: bytes={LONG}-\r\n"));
    assert_eq!(beyond.status, 416, "{}", beyond.head);
}

/// Asks whether an item and its file are still the same.
fn ask_again(load: &Load, rng: &mut Rng) {
    let item = load.item(rng);
    for path in [format!("/col/{item}/doc/text.txt"), format!("/{item}")] {
        let answer = load.get(&path);
        let tag = answer.header("etag").unwrap_or("\"none\"");
        let again = load.ask("GET", &path, &format!("If-None-Match: {tag}\r\n"));
        assert!(
            [200, 302, 303, 304].contains(&again.status),
            "{path}: {}",
            again.head
        );
        load.ask("GET", &path, "If-Match: \"x\"\r\n");
        load.ask(
            "GET",
            &path,
            "If-Modified-Since: Sun, 06 Nov 2033 08:49:37 GMT\r\n",
        );
    }
}

/// Searches for words of descriptions and of files.
fn search(load: &Load, rng: &mut Rng) {
    let number = rng.below(300);
    for query in [
        format!("q=word{number}"),
        format!("q=title:number+text:text{}*", number % 30),
        format!("q=%22of+number{number}%22+-year:2000-2010"),
        "q=%22)+OR+NEAR(*".to_owned(),
        "by=year".to_owned(),
        format!("q=number&page={}", number % 5),
    ] {
        load.get(&format!("/search?{query}"));
    }
}

/// Breaks off downloads of items as zip files and of long files.
fn break_off(load: &Load, rng: &mut Rng) {
    let path = match rng.below(3) {
        0 => format!("/archive.cgi/{}", load.long),
        1 => format!("/archive.cgi/{}", load.any_item(rng)),
        _ => format!("/col/{}/doc/long", load.long),
    };
    let mut stream = load.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let _ = stream.write_all(request.as_bytes());
    let mut some = vec![0; rng.below(2_000_000)];
    let _ = stream.read(&mut some);
    if rng.percent(50) {
        let _ = stream.read_exact(&mut some);
    }
}

/// Sends requests that are refused, and some that have no answer.
fn ask_oddly(load: &Load, rng: &mut Rng) {
    let item = load.any_item(rng);
    for method in [
        "HEAD", "OPTIONS", "TRACE", "DELETE", "PUT", "POST", "BREW", "MKCOL",
    ] {
        load.ask(method, &format!("/{item}"), "Content-Length: 0\r\n");
    }
    for path in [
        "/%00",
        "/..%2f..%2fetc/passwd",
        "//",
        "/?servicesubject=urlRequest",
        "/oai?verb=x",
        "/nothing",
    ] {
        load.get(path);
    }
    load.ask(
        "GET",
        &format!("/{item}"),
        &format!("X: {}\r\n", "a".repeat(17_000)),
    );
    let mut stream = load.connect();
    let _ = stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
}

/// Lists the drive.
fn list_drive(load: &Load, rng: &mut Rng) {
    let item = load.any_item(rng);
    let mut path = "/dav".to_owned();
    for name in item.split('/').chain(["doc"]) {
        path = format!("{path}/{name}");
        load.ask(
            "PROPFIND",
            &format!("{path}/"),
            "Depth: 1\r\nContent-Length: 0\r\n",
        );
    }
    load.ask(
        "PROPFIND",
        &format!("{path}/text.txt"),
        "Depth: 0\r\nContent-Length: 0\r\n",
    );
}

/// Asks for the list of an item's files, for its inventory, and for what services ask.
fn list_levels(load: &Load, rng: &mut Rng) {
    let item = load.any_item(rng);
    load.get(&format!("/{item}?ibiurl.verblist=GetFileList"));
    load.get(&format!("/{item}!"));
    load.get(&format!("/{item}:(datacite)"));
    let level = item.rsplit_once('/').map_or("", |(level, _)| level);
    load.get(&format!("/{level}/"));
    load.get("/changelist.xml");
}
