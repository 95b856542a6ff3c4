use super::*;
use crate::world::remote::fresh::tests::SetClock;
use crate::world::remote::testing::{ITEM, Peer, answer, cache, inventory};

const ROOT: &str = "directory 755 1.0 .\nend\n";

fn items(peer: &Peer, cache: &Arc<Cache>, clock: &Arc<SetClock>) -> (Arc<ForeignItems>, Ibi) {
    let clock = Arc::clone(clock) as Arc<dyn AnswerClock>;
    let items = ForeignItems::new(peer.archive(), Arc::clone(cache), clock);
    (Arc::new(items), Ibi::parse(ITEM).expect("an identifier"))
}

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..500 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come");
}

#[tokio::test]
async fn an_item_is_asked_for_once_also_by_later_processes() {
    let peer = Peer::answering(|_| inventory(ITEM, "1", ROOT)).await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    for _ in 0..2 {
        let (items, ibi) = items(&peer, &cache, &clock);
        assert!(items.now(&ibi).is_none());
        for _ in 0..2 {
            let slot = items.find(&ibi).await.expect("an item");
            assert_eq!(
                slot.value().expect("an item").url(),
                format!("{}/{ITEM}", peer.url)
            );
        }
        assert_eq!((peer.asked(), items.len()), (1, 1));
    }
}

#[tokio::test]
async fn an_item_with_another_name_is_refused() {
    for (item, lines) in [
        ("8JMKD3MGP8W/34PGRB2", ROOT),
        (ITEM, "end\n"),
        (ITEM, "directory 755 1.0 .\nfile 644 1.0 ../x 1 1 -\nend\n"),
        (ITEM, "directory 755 1.0 .\nfile 644 1.0 /x 1 1 -\nend\n"),
        (
            ITEM,
            "directory 755 1.0 .\nfile 644 1.0 x 1 1 -\nfile 644 1.0 x 1 1 -\nend\n",
        ),
        (ITEM, "directory 755 1.0 .\n"),
    ] {
        let peer = Peer::answering(move |_| inventory(item, "1", lines)).await;
        let ((_directory, cache), clock) = (cache(), SetClock::new());
        let (items, ibi) = items(&peer, &cache, &clock);
        let found = items.find(&ibi).await;
        assert!(
            matches!(found, Err(ForeignError::Broken(_))),
            "{item} {lines}"
        );
        assert_eq!(items.len(), 0);
    }
}

#[tokio::test]
async fn a_missing_item_is_asked_for_after_a_minute() {
    let peer = Peer::answering(|_| answer(404, "", b"")).await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let (items, ibi) = items(&peer, &cache, &clock);
    for (seconds, asked) in [(0, 1), (59, 1), (1, 2)] {
        clock.pass(seconds);
        assert_eq!(items.find(&ibi).await.err(), Some(ForeignError::Missing));
        assert_eq!(peer.asked(), asked, "{seconds}");
    }
}

#[tokio::test]
async fn a_change_is_noted_after_a_minute_while_the_old_item_is_given() {
    let peer = Peer::answering(|head| match head.to_lowercase() {
        head if head.contains("if-none-match") => inventory(ITEM, "2", ROOT),
        _ => inventory(
            ITEM,
            "2",
            "directory 755 1.0 .\nfile 644 1.0 x 1 1 -\nend\n",
        ),
    })
    .await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let (items, ibi) = items(&peer, &cache, &clock);
    let changes = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&changes);
    items.notify(Box::new(move |_, _, after| {
        noted.fetch_add(usize::from(after.is_some()), Ordering::Relaxed);
    }));
    let slot = items.find(&ibi).await.expect("an item");
    let old = slot.value().expect("an item");
    clock.pass(60);
    assert!(items.now(&ibi).expect("an item").is_ok());
    until(|| changes.load(Ordering::Relaxed) == 1).await;
    assert!(!Arc::ptr_eq(&old, &slot.value().expect("an item")));
    assert_eq!((slot.age(), peer.asked()), (Duration::ZERO, 3));
}

#[tokio::test]
async fn an_item_that_has_gone_is_missing_after_a_minute() {
    let is_gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let gone = Arc::clone(&is_gone);
    let peer = Peer::answering(move |_| {
        if gone.load(Ordering::Relaxed) {
            answer(404, "", b"")
        } else {
            inventory(ITEM, "1", ROOT)
        }
    })
    .await;
    let ((_directory, cache), clock) = (cache(), SetClock::new());
    let (items, ibi) = items(&peer, &cache, &clock);
    items.find(&ibi).await.expect("an item");
    is_gone.store(true, Ordering::Relaxed);
    clock.pass(60);
    assert!(items.now(&ibi).expect("an item").is_ok());
    until(|| matches!(items.now(&ibi), Some(Err(ForeignError::Missing)))).await;
    assert!(
        items.held(&ibi).is_none(),
        "neither in memory nor in the cache"
    );
}

#[test]
fn what_was_written_of_an_item_is_read_and_a_torn_record_is_not() {
    let page = SentPage {
        after: b"a b\n".to_vec(),
        tag: "\"1\"".to_owned(),
        text: b"x\n\xff".to_vec(),
    };
    let pages = [page.clone(), page];
    let text = written("http://a.org", ITEM, 7, &pages);
    let read = read_written(&text).expect("an item");
    assert_eq!(
        read,
        (
            7,
            "http://a.org".to_owned(),
            ITEM.to_owned(),
            pages.to_vec()
        )
    );
    for end in [0, 3, text.len() - 1] {
        assert_eq!(read_written(&text[..end]), None, "{end}");
    }
    assert_eq!(read_written(b"7\nu\nn\n9 t a\nxx"), None);
}
