//! The copies of items, for the administrator: metrics, and a page at their address. A thread counts them now and then; no request
//! waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use maud::html;
use parking_lot::Mutex;

use super::public;
use crate::archive::store::Store;
use crate::archive::{Archive, CopyFigures};
use crate::formats::copies::{BackupNote, CollectionPolicy};
use crate::http::server::metrics::{MetricKind, MetricsText};
use crate::http::server::page::html::finished;
use crate::http::server::page::{Words, accept, alone};
use ibi::Timestamp;

/// The shortest time between two counts, and in times of what a count takes.
const COUNT_EVERY: Duration = Duration::from_secs(3600);
const REST: u32 = 20;

/// The most items that are named.
const MOST_NAMED: usize = 100;

/// The figures of the last count.
#[derive(Debug, Default)]
pub(super) struct CopyCounter(Arc<Mutex<Counting>>);

#[derive(Debug, Default)]
struct Counting {
    figures: Option<CopyFigures>,
    /// When the next count may begin; None before the first.
    next: Option<Instant>,
    is_running: bool,
}

impl CopyCounter {
    /// The last figures; None before the first count has ended. Begins another one if it is time.
    pub(super) fn figures(
        &self,
        archive: &Arc<Archive>,
        index: &Arc<Store>,
    ) -> Option<CopyFigures> {
        let mut counting = self.0.lock();
        let is_due = counting.next.is_none_or(|next| next <= Instant::now());
        if is_due && !counting.is_running {
            let (archive, index, to) = (archive.clone(), index.clone(), self.0.clone());
            let thread = std::thread::Builder::new().name("copies".to_owned());
            let spawned = thread.spawn(move || count(&archive, &index, &to));
            counting.is_running = spawned.is_ok();
        }
        counting.figures.clone()
    }
}

fn count(archive: &Archive, index: &Store, to: &Mutex<Counting>) {
    let begun = Instant::now();
    // Users of this machine may read the page, too.
    let counted = archive.copy_figures(index, |item, count| {
        count < MOST_NAMED && public(archive).is_public(item).unwrap_or(false)
    });
    let mut counting = to.lock();
    counting.is_running = false;
    counting.next = Some(Instant::now() + COUNT_EVERY.max(begun.elapsed() * REST));
    match counted {
        Ok(figures) => counting.figures = Some(figures),
        Err(error) => log::warn!("copies are not counted: {error}"),
    }
}

/// The last backup that was made, and the last that was tried.
fn last(backups: &[BackupNote]) -> [Option<&Timestamp>; 2] {
    let made = backups.iter().map(|backup| &backup.made).max();
    let tried = backups.iter().filter_map(|backup| backup.proof.as_ref());
    [made, tried.map(|proof| &proof.at).max()]
}

/// Adds what is known to the metrics.
pub(super) fn measure(
    figures: Option<&CopyFigures>,
    backups: &[BackupNote],
    text: &mut MetricsText,
) {
    if let Some(figures) = figures {
        let name = "ibifs_items_short_of_copies";
        let help = "Items with fewer copies that count than archive.ibi wants, by state; counted once an hour at most.";
        text.metric(name, MetricKind::Gauge, help);
        text.sample(name, &[("state", "original")], figures.short_originals);
        text.sample(name, &[("state", "copy")], figures.short_copies);
    }
    let [made, tried] = last(backups);
    for (name, help, at) in [
        (
            "ibifs_copies_counted_timestamp_seconds",
            "When the copies of all items were last counted, in Unix seconds.",
            figures.map(|figures| &figures.at),
        ),
        (
            "ibifs_last_audit_timestamp_seconds",
            "When an item was last compared with a copy elsewhere, as of that count, in Unix seconds.",
            figures.and_then(|figures| figures.audited.as_ref()),
        ),
        (
            "ibifs_last_backup_timestamp_seconds",
            "When the last backup of the store was made, in Unix seconds.",
            made,
        ),
        (
            "ibifs_last_drill_timestamp_seconds",
            "When a restore of a backup was last tried, in Unix seconds.",
            tried,
        ),
    ] {
        if let Some(at) = at {
            text.single(name, MetricKind::Gauge, help, at.seconds());
        }
    }
}

/// The texts of the page.
struct CopyWords {
    tag: &'static str,
    title: &'static str,
    counting: &'static str,
    counted: &'static str,
    wanted: &'static str,
    originals: &'static str,
    copies: &'static str,
    audited: &'static str,
    never: &'static str,
    backup: [&'static str; 4],
    item: [&'static str; 3],
    more: &'static str,
}

impl Words for CopyWords {
    fn tag(&self) -> &'static str {
        self.tag
    }
}

static ENGLISH: CopyWords = CopyWords {
    tag: "en",
    title: "Copies",
    counting: "The copies are being counted; ask again in a moment.",
    counted: "Counted at",
    wanted: "What archive.ibi wants:",
    originals: "Originals with fewer copies:",
    copies: "Copies with fewer copies:",
    audited: "Last comparison with a copy elsewhere:",
    never: "never",
    backup: ["Backup in", "Items", "Made", "Tried"],
    item: ["Item", "Copies that count", "Places"],
    more: "There are more; 'ibifs copies STORE --short' lists all, also those that are not public.",
};

static PORTUGUESE: CopyWords = CopyWords {
    tag: "pt",
    title: "Cópias",
    counting: "As cópias estão sendo contadas; pergunte de novo em instantes.",
    counted: "Contadas em",
    wanted: "O que archive.ibi quer:",
    originals: "Originais com menos cópias:",
    copies: "Cópias com menos cópias:",
    audited: "Última comparação com uma cópia em outro lugar:",
    never: "nunca",
    backup: ["Backup em", "Itens", "Feito em", "Experimentado em"],
    item: ["Item", "Cópias que contam", "Lugares"],
    more: "Há mais; 'ibifs copies ACERVO --short' lista todos, também os que não são públicos.",
};

/// The page with all that.
pub(super) fn page(
    archive: &Archive,
    figures: Option<&CopyFigures>,
    backups: &[BackupNote],
    headers: &HeaderMap,
) -> String {
    let words = accept::words(headers, [&ENGLISH, &PORTUGUESE]);
    let seconds = |at: &Timestamp| Timestamp::from_unix(at.seconds(), 0).to_rfc3339();
    let time = |at: Option<&Timestamp>| at.map_or(words.never.to_owned(), seconds);
    let facts = archive.facts();
    let collections = facts.collections.iter().map(CollectionPolicy::to_text);
    let wanted = facts.policy.to_text() + &collections.collect::<String>();
    let main = html! {
        @if let Some(figures) = figures {
            p { (words.counted) " " (seconds(&figures.at)) }
            ul {
                li { (words.originals) " " (figures.short_originals) }
                li { (words.copies) " " (figures.short_copies) }
                li { (words.audited) " " (time(figures.audited.as_ref())) }
            }
        } @else {
            p { (words.counting) }
        }
        @if facts.has_policy() {
            p { (words.wanted) }
            ul { @for pair in wanted.lines() { li { code { (pair) } } } }
        }
        table {
            thead { tr { @for head in words.backup { th { (head) } } } }
            tbody {
                @for backup in backups {
                    tr {
                        td { (backup.place.join(" ")) }
                        td { (backup.items) }
                        td { (seconds(&backup.made)) }
                        td { (time(backup.proof.as_ref().map(|proof| &proof.at))) @if let Some(proof) = &backup.proof { " " (proof.word()) } }
                    }
                }
            }
        }
        @if let Some(figures) = figures {
            table {
                thead { tr { @for head in words.item { th { (head) } } } }
                tbody {
                    @for known in &figures.named {
                        tr {
                            td { (known.names.preferred()) }
                            td { (known.count.copies) }
                            td { (known.count.places) }
                        }
                    }
                }
            }
            @if figures.short_originals + figures.short_copies > figures.named.len() as u64 {
                p { (words.more) }
            }
        }
    };
    let title = format!("{}: {}", words.title, facts.service.preferred());
    alone(words.tag, &title, &finished(&main))
}
