//! A peer that answers what a test says.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::formats::base_url::BaseUrl;
use crate::http::client::Network;
use crate::os::testing::TemporaryDirectory;
use crate::world::cache::Cache;
use crate::world::remote::requests::RemoteServers;

/// The identifier of the items of these tests.
pub(crate) const ITEM: &str = "8JMKD3MGP8W/34PGRBS";

/// A server, and the requests that it has got.
pub(crate) struct Peer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// An answer of HTTP.
pub(crate) fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    announcing(status, headers, body, body.len())
}

/// An answer that announces another length than its own.
pub(crate) fn announcing(status: u16, headers: &str, body: &[u8], length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A page of an inventory of an item, with these lines.
pub(crate) fn inventory(item: &str, tag: &str, lines: &str) -> Vec<u8> {
    let text = format!("inventory 1\nibi {{ibip {item}}}\n{lines}");
    let headers = format!("content-type: text/x-ibi-inventory\r\netag: \"{tag}\"\r\n");
    answer(200, &headers, text.as_bytes())
}

impl Peer {
    /// Answers each request, of which the test gets the head.
    pub(crate) async fn answering(
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (requests, answer) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(answer));
        let asked = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else {
                            return;
                        };
                        head.push(byte);
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    asked.lock().push(head.clone());
                    let _ = stream.write_all(&answer(&head)).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Peer { url, requests }
    }

    /// Returns the number of requests.
    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().len()
    }

    /// The last request.
    pub(crate) fn last(&self) -> String {
        self.requests.lock().last().cloned().unwrap_or_default()
    }

    /// Asks this peer as an Archive.
    pub(crate) fn archive(&self) -> Arc<RemoteServers> {
        let url = BaseUrl::parse(&self.url).expect("a URL");
        let network = Network::new(None).expect("a network");
        Arc::new(RemoteServers::new(&network, Vec::new(), vec![url], true))
    }

    /// Asks this peer as a resolver.
    pub(crate) fn resolver(&self) -> Arc<RemoteServers> {
        let url = BaseUrl::parse(&self.url).expect("a URL");
        let network = Network::new(None).expect("a network");
        Arc::new(RemoteServers::new(&network, vec![url], Vec::new(), true))
    }
}

/// A cache in a directory of its own.
pub(crate) fn cache() -> (TemporaryDirectory, Arc<Cache>) {
    let directory = TemporaryDirectory::new();
    let cache = Cache::open(&directory.join("cache"), None).expect("a cache");
    (directory, cache)
}
