use super::*;

fn page(after: &str, path: &str, lines: &str) -> SentPage {
    let shown = if path.is_empty() { "." } else { path };
    SentPage {
        after: after.as_bytes().to_vec(),
        tag: format!("\"{after}\""),
        text: format!("level 1\nof 755 1.000000000 {shown}\n{lines}").into_bytes(),
    }
}

fn found(listing: &RemoteListing, name: &str) -> String {
    match listing.level(name) {
        ListingSays::There(found) => found.name.clone(),
        other => format!("{other:?}"),
    }
}

#[test]
fn names_are_found_in_any_spelling_as_far_as_pages_have_come() {
    let first = page(
        "",
        "",
        "level 755 1.000000000 A.org\nlevel 755 1.000000000 c.org\nmore lx\n",
    );
    let begun = RemoteListing::begin(&LevelPath::Root, &first).expect("a level");
    for (name, expected) in [
        ("c.org", "c.org"),
        ("a.org", "A.org"),
        ("b.org", "Missing"),
        ("d.org", "Nothing"),
        ("..", "Missing"),
    ] {
        assert_eq!(found(&begun, name), expected);
    }
    let next = page("lx", "", "prefix 755 1.000000000 8JMKD3MGP8W\nend\n");
    let whole = begun.with(&next).expect("a level");
    assert!(is_longer(&whole, &begun) && whole.is_complete() && !begun.is_complete());
    assert_eq!(found(&whole, "d.org"), "Missing");
    assert_eq!(found(&whole, "8jmkd3mgp8w"), "8JMKD3MGP8W");
    assert_eq!(whole.get(2).expect("a name").name, "8JMKD3MGP8W");
    assert!(whole.get(3).is_none());
    assert_eq!(whole.sent(), [first, next]);
}

#[test]
fn what_an_archive_may_not_say_is_refused() {
    let first = page("", "", "level 755 1.0 a.org\nmore lx\n");
    let begun = RemoteListing::begin(&LevelPath::Root, &first).expect("a level");
    for bad in [
        page("lx", "", "level 755 1.0 A.org\nend\n"),
        page("lx", "", "level 755 1.0 b.org\nmore lx\n"),
        page("lx", "b.org", "end\n"),
        page("lx", "", "level 755 1.0 b.org\n"),
    ] {
        assert!(begun.with(&bad).is_err(), "{bad:?}");
    }
    let other = page("", "a.org", "end\n");
    assert!(RemoteListing::begin(&LevelPath::Root, &other).is_err());
}

use crate::world::remote::fresh::tests::SetClock;
use crate::world::remote::testing::{Peer, answer, cache};

fn sent(lines: &str) -> Vec<u8> {
    let page = page("", "a.org", lines);
    answer(
        200,
        "content-type: text/x-ibi-level\r\netag: \"1\"\r\n",
        &page.text,
    )
}

fn levels(peer: &Peer, cache: &Arc<Cache>, clock: &Arc<SetClock>) -> Arc<Levels> {
    let clock = Arc::clone(clock) as Arc<dyn AnswerClock>;
    Arc::new(Levels::new(
        &peer.url,
        peer.archive(),
        Arc::clone(cache),
        clock,
    ))
}

#[tokio::test]
async fn a_level_is_fetched_page_by_page_and_once() {
    let peer = Peer::answering(|head| match head {
        head if head.contains("?level=x ") => sent("level 755 1.0 c\nend\n"),
        _ => sent("level 755 1.0 b\nmore x\n"),
    })
    .await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let path = LevelPath::parse("a.org").expect("a level");
    for _ in 0..2 {
        let levels = levels(&peer, &cache, &clock);
        let mut listing = levels.find(&path).await.expect("a level");
        while !listing.is_complete() {
            listing = levels.longer(&listing).await.expect("a level");
        }
        assert_eq!((listing.len(), peer.asked()), (2, 2));
        assert!(
            levels
                .now(&path)
                .expect("a level")
                .expect("a level")
                .is_complete()
        );
    }
}

#[tokio::test]
async fn a_level_is_missing_for_a_minute_and_an_archive_without_a_root_lists_nothing() {
    let peer = Peer::answering(|_| answer(404, "", b"")).await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let levels = levels(&peer, &cache, &clock);
    let path = LevelPath::parse("a.org").expect("a level");
    for (seconds, asked) in [(0, 1), (59, 1), (1, 2)] {
        clock.pass(seconds);
        assert_eq!(levels.find(&path).await.err(), Some(ForeignError::Missing));
        assert_eq!(peer.asked(), asked, "{seconds}");
    }
    let root = levels.find(&LevelPath::Root).await;
    assert!(matches!(root, Err(ForeignError::Unsupported(_))));
}

#[tokio::test]
async fn a_level_that_is_the_same_counts_for_another_minute() {
    let peer = Peer::answering(|head| match head.to_lowercase() {
        head if head.contains("if-none-match") => answer(304, "", b""),
        _ => sent("end\n"),
    })
    .await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let levels = levels(&peer, &cache, &clock);
    let path = LevelPath::parse("a.org").expect("a level");
    levels.find(&path).await.expect("a level");
    clock.pass(60);
    levels.now(&path).expect("a level").expect("a level");
    let slot = levels.known.slot(&path.key());
    for _ in 0..500 {
        if slot.age() == std::time::Duration::ZERO {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!((slot.age(), peer.asked()), (std::time::Duration::ZERO, 2));
}
