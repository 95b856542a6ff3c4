use super::*;
use crate::formats::inventory::FileEntry;
use crate::world::remote::testing::{Peer, announcing, answer, cache};

fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

fn file(peer: &Peer, size: u64, digest: Option<Digest>) -> Arc<RemoteFile> {
    let entry = FileEntry {
        size,
        version: "v".to_owned(),
        digest,
        has_pieces: false,
        identity: None,
    };
    Arc::new(RemoteFile::new(format!("{}/x", peer.url), entry))
}

#[tokio::test]
async fn bytes_are_fetched_once_and_read_in_part() {
    let peer = Peer::answering(|_| answer(206, "", b"abcdef")).await;
    let (_directory, cache) = cache();
    let content = Arc::new(RemoteContent::new(peer.archive(), cache));
    let file = file(&peer, 6, Some(digest_of(b"abcdef")));
    assert_eq!(content.now(&file, 0, 3), None);
    for (offset, length, expected) in [
        (0, 3, &b"abc"[..]),
        (4, 9, b"ef"),
        (6, 1, b""),
        (90, 1, b""),
    ] {
        let read = content.read(&file, offset, length).await.expect("bytes");
        assert_eq!(read, expected, "{offset}");
        assert_eq!(
            content.now(&file, offset, length).as_deref(),
            Some(expected)
        );
    }
    assert_eq!(peer.asked(), 1);
    assert!(content.is_held(&file));
}

#[tokio::test]
async fn bytes_of_a_peer_that_lies_are_not_read() {
    for (sent, announced) in [(&b"abcdeX"[..], 6), (b"abcdefg", 7), (b"abcdefabcdef", 12)] {
        let peer = Peer::answering(move |_| announcing(206, "", sent, announced)).await;
        let (_directory, cache) = cache();
        let content = Arc::new(RemoteContent::new(peer.archive(), cache));
        let file = file(&peer, 6, Some(digest_of(b"abcdef")));
        let read = content.read(&file, 0, 6).await;
        assert!(matches!(read, Err(ForeignError::Broken(_))), "{read:?}");
        assert_eq!(peer.asked(), 2, "it is fetched once more");
        assert!(!content.is_held(&file));
    }
}

#[tokio::test]
async fn a_download_goes_on_where_it_was_cut() {
    let peer = Peer::answering(|head| match head.to_lowercase() {
        head if head.contains("bytes=0-5") => announcing(206, "", b"abc", 6),
        head if head.contains("bytes=3-5") => answer(206, "", b"def"),
        _ => answer(500, "", b""),
    })
    .await;
    let (_directory, cache) = cache();
    let content = Arc::new(RemoteContent::new(peer.archive(), cache));
    let file = file(&peer, 6, Some(digest_of(b"abcdef")));
    assert_eq!(
        content.read(&file, 0, 6).await.as_deref(),
        Ok(&b"abcdef"[..])
    );
    assert_eq!(peer.asked(), 2);
}

#[tokio::test]
async fn a_short_file_without_a_record_has_the_digest_that_its_archive_announces() {
    let good = "repr-digest: sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:\r\n";
    for (headers, bytes, is_good) in [
        (good, b"abc", true),
        (good, b"abX", false),
        ("", b"abc", false),
    ] {
        let peer = Peer::answering(move |_| answer(206, headers, bytes)).await;
        let (_directory, cache) = cache();
        let content = Arc::new(RemoteContent::new(peer.archive(), cache));
        let file = file(&peer, 3, None);
        assert_eq!(
            content.read(&file, 0, 3).await.is_ok(),
            is_good,
            "{headers}"
        );
        assert!(peer.last().to_lowercase().contains("want-repr-digest"));
    }
}

#[tokio::test]
async fn a_file_that_has_changed_is_not_fetched_again() {
    let peer = Peer::answering(|_| answer(412, "", b"")).await;
    let (_directory, cache) = cache();
    let content = Arc::new(RemoteContent::new(peer.archive(), cache));
    let file = file(&peer, 3, Some(digest_of(b"abc")));
    assert_eq!(content.read(&file, 0, 3).await, Err(ForeignError::Changed));
    assert_eq!(peer.asked(), 1);
}
