//! The other item, or the text, that a name with a modifier or with `?GetFileList` leads to.
//!
//! Answers are held in memory, up to a limit in bytes, for as long as `fresh` says.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::formats::inventory::{Entry, EntryKind, Page};
use crate::formats::item::Names;
use crate::world::error::ForeignError;
use crate::world::remote::fresh::{Fresh, Recalled};
use crate::world::remote::items::ForeignItems;
use crate::world::remote::requests::{ItemAnswer, LOOKUP_TIMEOUT, Located};
use crate::world::remote::sources::SourceNumber;
use ibi::Ibi;
use ibi::relation::Request;

/// The bytes of answers that are kept in memory.
const MOST_KEPT: u64 = 64 << 20;
/// The number of answers that are expected.
const EXPECTED: usize = 4096;
/// The memory that an answer takes beyond its text, in bytes.
const OVERHEAD: u64 = 256;
/// The longest list of files, in bytes.
const LONGEST_LIST: usize = 48 << 20;

/// A question about an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RelatedQuestion {
    /// The thing that the identifier with its modifier leads to.
    Modifier(String),
    /// The list of the files of the item to which this name leads.
    Files(String),
}

impl RelatedQuestion {
    /// The question that is asked beside an item.
    pub(crate) fn of(ibi: &Ibi, request: Request) -> RelatedQuestion {
        match request {
            Request::Modifier(modifier) => RelatedQuestion::Modifier(format!("{ibi}{modifier}")),
            Request::FileList(Some(modifier)) => RelatedQuestion::Files(format!("{ibi}{modifier}")),
            Request::FileList(None) => RelatedQuestion::Files(ibi.to_string()),
        }
    }

    /// The identifier with its modifier.
    fn name(&self) -> &str {
        match self {
            RelatedQuestion::Modifier(name) | RelatedQuestion::Files(name) => name,
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum RelatedAnswer {
    /// An item.
    Item(Names),
    /// A text.
    Text(Arc<[u8]>),
}

type RelatedSlot = Arc<Fresh<RelatedAnswer>>;

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<RelatedQuestion, RelatedSlot> for ByLength {
    fn weight(&self, wanted: &RelatedQuestion, answer: &RelatedSlot) -> u64 {
        let text = match answer.value().as_deref() {
            Some(RelatedAnswer::Text(text)) => text.len(),
            _ => 0,
        };
        OVERHEAD + (text + wanted.name().len()) as u64
    }
}

/// The answers that are known.
pub(crate) struct RelatedItems {
    items: Arc<ForeignItems>,
    known: Cache<RelatedQuestion, RelatedSlot, ByLength>,
}

impl fmt::Debug for RelatedItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelatedItems").finish_non_exhaustive()
    }
}

impl RelatedItems {
    /// No answers yet.
    pub(crate) fn new(items: Arc<ForeignItems>) -> RelatedItems {
        RelatedItems {
            items,
            known: Cache::with_weighter(EXPECTED, MOST_KEPT, ByLength),
        }
    }

    /// An answer that is known. None if a request is needed first.
    pub(crate) fn now(
        self: &Arc<Self>,
        wanted: &RelatedQuestion,
    ) -> Option<Result<RelatedAnswer, ForeignError>> {
        let slot = self.known.get(wanted)?;
        let answer = match slot.recall() {
            Recalled::Nothing => return None,
            Recalled::Missing => return Some(Err(ForeignError::Missing)),
            Recalled::Known(answer) => answer,
            Recalled::Due(answer) => {
                let (related, wanted) = (Arc::clone(self), wanted.clone());
                tokio::spawn(async move {
                    if let Err(trouble) = related.ask(&wanted, slot).await {
                        log::info!("{}: {trouble}", wanted.name());
                    }
                });
                answer
            }
        };
        Some(Ok(RelatedAnswer::clone(&answer)))
    }

    /// The answer.
    pub(crate) async fn find(
        self: &Arc<Self>,
        wanted: &RelatedQuestion,
    ) -> Result<RelatedAnswer, ForeignError> {
        match self.now(wanted) {
            Some(answer) => answer,
            None => {
                let slot = Fresh::new(wanted.name(), Arc::clone(self.items.clock()));
                self.ask(wanted, Arc::new(slot)).await
            }
        }
    }

    async fn ask(
        &self,
        wanted: &RelatedQuestion,
        slot: RelatedSlot,
    ) -> Result<RelatedAnswer, ForeignError> {
        let answer = match wanted {
            RelatedQuestion::Modifier(name) => self.modifier(name).await,
            RelatedQuestion::Files(name) => self.files(name).await,
        };
        let answer = slot.settle(answer);
        if matches!(answer, Ok(_) | Err(ForeignError::Missing)) {
            self.known.insert(wanted.clone(), slot);
        }
        answer.map(|answer| RelatedAnswer::clone(&answer))
    }

    async fn modifier(&self, name: &str) -> Result<RelatedAnswer, ForeignError> {
        let (items, until) = (Arc::clone(&self.items), Instant::now() + LOOKUP_TIMEOUT);
        let owned = name.to_owned();
        let ask = move |number: SourceNumber| {
            let (items, name) = (Arc::clone(&items), owned.clone());
            async move {
                match items.remote().archives().get(number) {
                    Some(archive) => of_archive(&items, &archive.at(""), &name, until).await,
                    None => of_resolver(&items, &name, until).await,
                }
            }
        };
        self.items.ask_sources(name, until, ask).await
    }

    async fn files(&self, name: &str) -> Result<RelatedAnswer, ForeignError> {
        let name = match Ibi::parse(name) {
            Ok(ibi) => ibi.to_string(),
            Err(_) => match self.modifier(name).await? {
                RelatedAnswer::Item(names) => names.preferred(),
                RelatedAnswer::Text(_) => return Err(ForeignError::Missing),
            },
        };
        let ibi =
            Ibi::parse(&name).map_err(|error| ForeignError::Unsupported(error.to_string()))?;
        let slot = self.items.find(&ibi).await?;
        let item = slot.value().ok_or(ForeignError::Missing)?;
        Ok(RelatedAnswer::Text(list(item.inventory.entries())?.into()))
    }
}

/// The list of files, as a mounted store has it (ibifs-tree(7)).
fn list(entries: &[Arc<Entry>]) -> Result<Vec<u8>, ForeignError> {
    let mut list = Vec::new();
    for entry in entries {
        // The files that ibifs adds to those of the item are texts.
        if matches!(entry.kind, EntryKind::Directory | EntryKind::Text(_)) {
            continue;
        }
        for byte in &entry.path {
            match byte {
                0..=31 | 127 | b'%' => list.extend(format!("%{byte:02X}").bytes()),
                byte => list.push(*byte),
            }
        }
        list.push(b'\n');
        if list.len() > LONGEST_LIST {
            return Err(ForeignError::Full);
        }
    }
    Ok(list)
}

async fn of_archive(
    items: &ForeignItems,
    base: &str,
    name: &str,
    until: Instant,
) -> Result<RelatedAnswer, ForeignError> {
    let base = base.trim_end_matches('/');
    match items.remote().describe(base, name, until).await? {
        ItemAnswer::Text(text) => Ok(RelatedAnswer::Text(text.into())),
        ItemAnswer::Pages(pages) => match pages.first().map(|page| Page::parse(&page.text)) {
            Some(Ok(page)) => Ok(RelatedAnswer::Item(page.names)),
            _ => Err(ForeignError::Broken(format!("{base}: no inventory"))),
        },
    }
}

async fn of_resolver(
    items: &ForeignItems,
    name: &str,
    until: Instant,
) -> Result<RelatedAnswer, ForeignError> {
    match items.remote().locate(name, until).await? {
        Located::Item(_, identifier) => {
            let ibi = Ibi::parse(&identifier);
            let ibi = ibi.map_err(|error| ForeignError::Unsupported(error.to_string()))?;
            Ok(RelatedAnswer::Item(Names::from(ibi)))
        }
        Located::Text(url) => {
            let text = items.remote().text(&url, until).await?;
            Ok(RelatedAnswer::Text(text.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::remote::fresh::AnswerClock;
    use crate::world::remote::fresh::tests::SetClock;
    use crate::world::remote::testing::{ITEM, Peer, answer, cache, inventory};

    #[tokio::test]
    async fn a_modifier_leads_to_an_item_or_a_text_for_a_minute() {
        let peer = Peer::answering(|head| match head {
            head if head.contains(":(bibtex)") || head.contains(":%28bibtex%29") => {
                answer(200, "content-type: text/plain\r\n", b"@misc{}")
            }
            _ => inventory(ITEM, "1", "directory 755 1.0 .\nend\n"),
        })
        .await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        let time = Arc::clone(&clock) as Arc<dyn AnswerClock>;
        let items = Arc::new(ForeignItems::new(peer.archive(), cache, time));
        let related = Arc::new(RelatedItems::new(items));
        let edition = RelatedQuestion::Modifier(format!("{ITEM}!"));
        let text = RelatedQuestion::Modifier(format!("{ITEM}:(bibtex)"));
        assert!(related.now(&edition).is_none());
        for _ in 0..2 {
            let found = related.find(&edition).await.expect("an item");
            assert!(matches!(found, RelatedAnswer::Item(names) if names.preferred() == ITEM));
            let found = related.find(&text).await.expect("a text");
            assert!(matches!(found, RelatedAnswer::Text(text) if *text == *b"@misc{}"));
        }
        assert_eq!(peer.asked(), 2);
        clock.pass(60);
        assert!(related.now(&edition).expect("the old answer").is_ok());
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(peer.asked(), 3);
    }

    #[tokio::test]
    async fn the_list_of_files_has_no_directories_and_no_control_characters() {
        let peer = Peer::answering(|_| {
            let lines = "directory 755 1.0 .\ntext 644 1.0 .ibi x\ndirectory 755 1.0 doc\n\
                         file 644 1.0 doc/a%0Ab%25 1 1 -\nlink 777 1.0 l doc\nend\n";
            inventory(ITEM, "1", lines)
        })
        .await;
        let (_directory, cache) = cache();
        let items = Arc::new(ForeignItems::new(peer.archive(), cache, SetClock::new()));
        let related = Arc::new(RelatedItems::new(items));
        let found = related.find(&RelatedQuestion::Files(ITEM.to_owned())).await;
        let Ok(RelatedAnswer::Text(text)) = found else {
            panic!("{found:?}");
        };
        assert_eq!(&*text, b"doc/a%0Ab%25\nl\n");
    }
}
