//! Events and the log, without a mount.

use std::io::Write as _;

use crate::archive::log_files::LogReader;
use crate::archive::operations::testing::TestArchive;
use crate::archive::store::By;
use crate::formats::history::EventKind;

/// An Archive that keeps a history.
fn archive() -> TestArchive {
    let mut archive = TestArchive::new();
    archive.crash_and(|path| {
        let facts = std::fs::File::options()
            .append(true)
            .open(path.join("archive.ibi"));
        writeln!(facts.expect("it is there"), "history yes").expect("it is written");
    });
    archive
}

/// The thread of a mount and its end may take events to the log at once.
#[test]
fn threads_log_each_event_once() {
    let archive = archive();
    for _ in 0..10 {
        for _ in 0..30 {
            archive.tell(By::Program, EventKind::Reindexed, None, "");
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| archive.append_history().expect("it is logged"));
            }
        });
    }
    let log = LogReader::open(archive.tree().root()).expect("the log");
    let size = log.map(|log| log.checkpoint().size);
    let told = archive.store().events_after(0, 10_000).expect("events");
    assert_eq!(size, Some(told.len() as u64));
    assert_eq!(
        told.last().and_then(|it| it.logged),
        Some(told.len() as i64 - 1)
    );
}
