//! Texts in pages, as inventories and levels are.

use std::time::{Duration, Instant};

use hyper::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use tokio::sync::SemaphorePermit;

use super::{LONGEST_TEXT, LOOKUP_TIMEOUT, RemoteServers, host, unreachable};
use crate::formats::inventory::MEDIA_TYPE;
use crate::formats::query::encoded;
use crate::http::client::ClientError;
use crate::http::client::fetch::{Fetch, Fetched};
use crate::world::error::ForeignError;

/// The time that an inventory may take in all.
const INVENTORY_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest page of an inventory, in bytes.
const LONGEST_PAGE: usize = 16 << 20;
/// The longest inventory, in bytes and pages.
const LONGEST_INVENTORY: usize = 160 << 20;
const MOST_PAGES: usize = 64;
/// The bytes that are read of an inventory before it counts as large.
const LARGE: usize = 1 << 20;

/// A page of an inventory as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentPage {
    /// The path after which it begins.
    pub(crate) after: Vec<u8>,
    /// Its entity tag, with the quotes.
    pub(crate) tag: String,
    /// The text.
    pub(crate) text: Vec<u8>,
}

/// A text in pages that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paged<'a> {
    /// The URL, without a query.
    pub(crate) url: &'a str,
    /// The query for the first page. Those for further pages have a value.
    pub(crate) query: &'a str,
    /// The media type of the pages.
    pub(crate) media_type: &'a str,
}

/// The answer to a request for what is in an item.
#[derive(Debug)]
pub(crate) enum ItemAnswer {
    /// All pages.
    Pages(Vec<SentPage>),
    /// The name leads to a text instead of an item.
    Text(Vec<u8>),
}

/// The answer to a request for a page.
pub(crate) enum PageAnswer {
    /// A page.
    Page(SentPage),
    /// It has not changed.
    Same,
    /// Another text.
    Text(Vec<u8>),
}

impl RemoteServers {
    /// All pages of the inventory of a name at an Archive.
    pub(crate) async fn describe(
        &self,
        base: &str,
        name: &str,
        until: Instant,
    ) -> Result<ItemAnswer, ForeignError> {
        let url = format!("{base}/{}", encoded(name.as_bytes()));
        let (asked, end) = (inventory_at(&url), Instant::now() + INVENTORY_TIMEOUT);
        let (mut pages, mut length) = (Vec::new(), 0);
        let (mut after, mut until) = (Vec::new(), until);
        let mut turn = None;
        loop {
            let page = self.page(&asked, &after, None, until, &mut turn);
            match page.await? {
                PageAnswer::Text(text) => return Ok(ItemAnswer::Text(text)),
                PageAnswer::Same => {
                    return Err(ForeignError::Broken(format!("{}: status 304", host(base))));
                }
                PageAnswer::Page(page) => {
                    length += page.text.len();
                    let next = next_of(&page.text);
                    pages.push(page);
                    let Some(next) = next else {
                        return Ok(ItemAnswer::Pages(pages));
                    };
                    if length > LONGEST_INVENTORY || pages.len() >= MOST_PAGES || next <= after {
                        let text = format!("{}: the inventory has no end", host(base));
                        return Err(ForeignError::Broken(text));
                    }
                    after = next;
                }
            }
            until = (Instant::now() + LOOKUP_TIMEOUT).min(end);
            if Instant::now() >= end {
                return Err(unreachable(base, "the inventory takes too long"));
            }
        }
    }

    /// Whether the pages of an inventory are still what the Archive has.
    pub(crate) async fn is_same(
        &self,
        base: &str,
        name: &str,
        pages: &[(Vec<u8>, String)],
    ) -> Result<bool, ForeignError> {
        let url = format!("{base}/{}", encoded(name.as_bytes()));
        let pages = pages
            .iter()
            .map(|(after, tag)| (after.as_slice(), tag.as_str()));
        self.are_same(&inventory_at(&url), pages).await
    }

    /// Whether pages, each by its beginning and entity tag, are still what the Archive has.
    pub(crate) async fn are_same(
        &self,
        asked: &Paged<'_>,
        pages: impl Iterator<Item = (&[u8], &str)>,
    ) -> Result<bool, ForeignError> {
        for (after, tag) in pages {
            let until = Instant::now() + LOOKUP_TIMEOUT;
            let mut turn = None;
            let page = self.page(asked, after, Some(tag), until, &mut turn);
            let answer = page.await?;
            if !matches!(answer, PageAnswer::Same) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A page, unless it is the one with this entity tag. One that is large waits for its turn, which lasts until all pages
    /// are read.
    pub(crate) async fn page<'a>(
        &'a self,
        asked: &Paged<'_>,
        after: &[u8],
        tag: Option<&str>,
        until: Instant,
        turn: &mut Option<SemaphorePermit<'a>>,
    ) -> Result<PageAnswer, ForeignError> {
        let mut url = format!("{}?{}", asked.url, asked.query);
        if !after.is_empty() {
            url.push('=');
            url.push_str(&encoded(after));
        }
        let mut fetch = Fetch::get(&url).with(ACCEPT, &format!("{}, text/plain", asked.media_type));
        if let Some(tag) = tag {
            fetch = fetch.with(IF_NONE_MATCH, tag);
        }
        let answer = self.look(&url, &fetch, until).await?;
        match answer.status() {
            200 => {}
            304 => return Ok(PageAnswer::Same),
            404 | 410 => return Err(ForeignError::Missing),
            status => return Err(unreachable(&url, format!("status {status}"))),
        }
        let kind = answer.header(hyper::header::CONTENT_TYPE).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim().to_owned();
        let tag = answer.header(ETAG).unwrap_or("").to_owned();
        let (is_page, is_text) = (kind == asked.media_type, kind != "text/html");
        if !is_page && !is_text {
            let text = format!("{}: the Archive does not tell what is there", host(&url));
            return Err(ForeignError::Unsupported(text));
        }
        let most = if is_page { LONGEST_PAGE } else { LONGEST_TEXT };
        let text = tokio::time::timeout(INVENTORY_TIMEOUT, self.body(answer, most, turn)).await;
        let text = text.map_err(|_| unreachable(&url, "it takes too long"))?;
        let text = text.map_err(|error| match error {
            ClientError::TooLong(_) => ForeignError::Broken(format!("{}: {error}", host(&url))),
            error => unreachable(&url, error),
        })?;
        Ok(if is_page {
            PageAnswer::Page(SentPage {
                after: after.to_vec(),
                tag,
                text,
            })
        } else {
            PageAnswer::Text(text)
        })
    }

    async fn body<'a>(
        &'a self,
        mut answer: Fetched,
        most: usize,
        turn: &mut Option<SemaphorePermit<'a>>,
    ) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(bytes) = answer.next(LOOKUP_TIMEOUT).await? {
            if body.len() + bytes.len() > most {
                return Err(ClientError::TooLong(most));
            }
            if body.len() > LARGE && turn.is_none() {
                *turn = self.large.acquire().await.ok();
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }
}

/// The inventory of an item at this URL.
fn inventory_at(url: &str) -> Paged<'_> {
    Paged {
        url,
        query: "inventory",
        media_type: MEDIA_TYPE,
    }
}

/// The path after which the page behind this one begins, read without its entries.
pub(crate) fn next_of(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"\n")?;
    let cut = text.iter().rposition(|byte| *byte == b'\n')?;
    let last = str::from_utf8(&text[cut + 1..]).ok()?;
    last.strip_prefix("more ").map(ibi::pairs::percent_decode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_named_in_the_last_line() {
        assert_eq!(next_of(b"a\nmore doc/a%20b\n"), Some(b"doc/a b".to_vec()));
        for none in [&b"a\nend\n"[..], b"more x", b"", b"\n"] {
            assert_eq!(next_of(none), None);
        }
    }

    use crate::world::remote::testing::{ITEM, Peer, answer, inventory};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test]
    async fn pages_are_asked_for_until_the_last_one() {
        let peer = Peer::answering(|head| match head {
            head if head.contains("?inventory=a ") => inventory(ITEM, "2", "end\n"),
            _ => inventory(ITEM, "1", "directory 755 1.0 .\nmore a\n"),
        })
        .await;
        let found = peer.archive().describe(&peer.url, ITEM, soon()).await;
        let Ok(ItemAnswer::Pages(pages)) = found else {
            panic!("{found:?}");
        };
        let begun: Vec<_> = pages
            .iter()
            .map(|page| (&page.after[..], &page.tag[..]))
            .collect();
        assert_eq!(begun, [(&b""[..], "\"1\""), (b"a", "\"2\"")]);
        assert_eq!(peer.asked(), 2);
    }

    #[tokio::test]
    async fn an_inventory_without_an_end_is_refused() {
        for next in ["b", "a", "%00"] {
            let page = format!("more {next}\n");
            let peer = Peer::answering(move |head| match head {
                head if head.contains("?inventory ") => inventory(ITEM, "1", "more b\n"),
                _ => inventory(ITEM, "2", &page),
            })
            .await;
            let found = peer.archive().describe(&peer.url, ITEM, soon()).await;
            assert!(
                matches!(found, Err(ForeignError::Broken(_))),
                "{next} {found:?}"
            );
            assert_eq!(peer.asked(), 2, "{next}");
        }
    }

    #[tokio::test]
    async fn answers_that_are_no_page_have_their_meaning() {
        let html = "content-type: text/html; charset=utf-8\r\n";
        for (status, headers, expected) in [
            (404, "", "Missing"),
            (410, "", "Missing"),
            (500, "", "Unreachable"),
            (403, "", "Unreachable"),
            (304, "", "Broken"),
            (200, html, "Unsupported"),
        ] {
            let peer = Peer::answering(move |_| answer(status, headers, b"")).await;
            let found = peer.archive().describe(&peer.url, ITEM, soon()).await;
            let found = format!("{:?}", found.expect_err("trouble"));
            assert!(found.starts_with(expected), "{status}: {found}");
        }
        let peer = Peer::answering(|_| answer(200, "content-type: text/plain\r\n", b"x")).await;
        let found = peer.archive().describe(&peer.url, ITEM, soon()).await;
        assert!(matches!(found, Ok(ItemAnswer::Text(text)) if text == b"x"));
    }

    #[tokio::test]
    async fn a_page_that_is_too_long_is_not_read_to_its_end() {
        let text = vec![b'x'; LONGEST_TEXT + 1];
        let peer =
            Peer::answering(move |_| answer(200, "content-type: text/plain\r\n", &text)).await;
        let found = peer.archive().describe(&peer.url, ITEM, soon()).await;
        assert!(matches!(found, Err(ForeignError::Broken(_))), "{found:?}");
    }

    #[tokio::test]
    async fn pages_are_the_same_if_the_archive_says_so_of_each() {
        let peer = Peer::answering(|head| match head.to_lowercase() {
            head if head.contains("if-none-match: \"1\"") => answer(304, "", b""),
            _ => inventory(ITEM, "3", "end\n"),
        })
        .await;
        let page = |tag: &str| (Vec::new(), tag.to_owned());
        for (pages, expected) in [
            (vec![page("\"1\"")], true),
            (vec![page("\"1\""), page("\"1\"")], true),
            (vec![page("\"1\""), page("\"2\"")], false),
        ] {
            let is_same = peer.archive().is_same(&peer.url, ITEM, &pages).await;
            assert_eq!(is_same, Ok(expected), "{pages:?}");
        }
    }
}
