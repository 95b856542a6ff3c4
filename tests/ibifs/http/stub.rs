//! An Archive that answers what a test wants, on a free port of this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ibifs::formats::query::Query;
use ibifs::resolver::registry::{Inclusion, Registry};

use ibifs::outside::archive::{Clock, SystemClock};

/// The reply of a stub to a question.
pub enum Reply {
    /// It answers this, with status 200.
    Text(String),
    /// It answers these bytes, status line and all.
    Raw(Vec<u8>),
    /// It takes the question and never answers.
    Never,
}

type Answer = dyn Fn(&Query) -> Reply + Send + Sync;

/// A running stub. It ends with the test's process.
pub struct Stub {
    /// The address of the stub: `127.0.0.1:port`.
    pub address: String,
    /// The identifier of its service.
    pub service: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    /// Starts one; `answer` is for `urlRequest`, and for `inclusionRequest` to a resolver. Everything else is answered as an Archive does.
    pub fn start(number: usize, answer: impl Fn(&Query) -> Reply + Send + Sync + 'static) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (answer, heard): (Arc<Answer>, _) = (Arc::new(answer), Arc::default());
        let stub = Stub {
            address,
            service: format!("stub.example.org/s{number}/2020/01.01.01.01"),
            heard: Arc::clone(&heard),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
                std::thread::spawn(move || talk(stream, answer.as_ref(), &heard));
            }
        });
        stub
    }

    /// Starts a server that answers every request with this text, and returns its address.
    pub fn text(text: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                if lines.take_while(|line| !line.is_empty()).count() > 0 {
                    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length:";
                    let _ = write!(stream, "{head} {}\r\n\r\n{text}", text.len());
                }
            }
        });
        address
    }

    /// Registers and includes it.
    pub fn include(&self, registry: &Registry) {
        self.announce(registry, "");
    }

    /// Registers and includes it, with the prefixes that it announces.
    pub fn announce(&self, registry: &Registry, prefixes: &str) {
        let (inclusion, now) = (self.inclusion(prefixes), SystemClock.now());
        registry
            .register(&inclusion.service, &inclusion.key, &now)
            .expect("registered");
        registry.include(&inclusion, &now).expect("included");
        // Hashing a key takes much memory, which the allocator keeps, and each fork of the tests' process
        // copies its page tables.
        // SAFETY: takes no pointer.
        unsafe { libc::malloc_trim(0) };
    }

    /// Excludes it, as when it is stopped.
    pub fn exclude(&self, registry: &Registry) {
        registry.exclude(&self.inclusion("")).expect("excluded");
    }

    fn inclusion(&self, prefixes: &str) -> Inclusion {
        let key = "1234567890";
        let query = format!(
            "archiveaddress={}&archiveserviceibi={}&archiveip=127.0.0.1&archiveprotocol=HTTP\
             &archiveplatformversion=1&archiveadmemailaddress=a@b&registrationkey={key}&archiveprefixes={}",
            self.address,
            self.service,
            prefixes.replace(' ', "%20")
        );
        Inclusion::of(&Query::parse(&query).expect("a query")).expect("good")
    }

    /// The queries that it has got with this subject, oldest first.
    pub fn received(&self, subject: &str) -> Vec<String> {
        let heard = self.heard.lock().expect("nobody panics with it");
        let subject = format!("servicesubject={subject}");
        heard
            .iter()
            .filter(|query| query.contains(&subject))
            .cloned()
            .collect()
    }

    /// Waits until it has got so many.
    #[track_caller]
    pub fn hears(&self, subject: &str, count: usize) -> Vec<String> {
        for _ in 0..500 {
            let heard = self.received(subject);
            if heard.len() >= count {
                return heard;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{subject}: {:?}", self.received(subject));
    }
}

fn talk(stream: TcpStream, answer: &Answer, heard: &Mutex<Vec<String>>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(request)) = lines.next() {
        // The headers say nothing that matters here.
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let target = request.split(' ').nth(1).unwrap_or_default();
        let text = target.split_once('?').map_or("", |(_, query)| query);
        heard
            .lock()
            .expect("nobody panics with it")
            .push(text.to_owned());
        let query = Query::parse(text).expect("a query");
        let reply = match query.get("servicesubject") {
            Some("urlRequest" | "inclusionRequest") => answer(&query),
            Some("acknowledgment") => Reply::Text("notice {acknowledgment received}".to_owned()),
            _ => Reply::Text("confirmation yes".to_owned()),
        };
        let bytes = match reply {
            Reply::Text(text) => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length:";
                format!("{head} {}\r\n\r\n{text}", text.len()).into_bytes()
            }
            Reply::Raw(bytes) => bytes,
            // Until the client goes away: a thread that stayed would make each later fork of the tests'
            // process slow.
            Reply::Never => {
                while lines.next().is_some_and(|line| line.is_ok()) {}
                return;
            }
        };
        if writer.write_all(&bytes).is_err() {
            return;
        }
    }
}
