use super::super::testing::{TestArchive, elsewhere, names};
use super::*;
use crate::formats::item::State;
use crate::os::testing::TemporaryDirectory;

#[test]
fn a_machine_gets_a_host_and_an_address_of_its_own() {
    for _ in 0..2 {
        let host = default_host().expect("a host");
        assert!(RepPrefix::from_host(&host, 80).is_ok(), "{host}");
        assert!(host.contains('.'), "{host}");
    }
    let [one, other] = [(); 2].map(|()| default_address().expect("an address"));
    assert_ne!(one, other);
    for address in [one, other] {
        let IpAddr::V6(address) = address else {
            panic!("{address}");
        };
        // RFC 4193: fd00::/8, drawn here.
        assert_eq!(address.segments()[0] >> 8, 0xfd, "{address}");
        assert_eq!(address.segments()[3..], [0, 0, 0, 0, 1]);
    }
}

/// A directory in which the creation of a store was interrupted, and the facts that were noted.
fn interrupted() -> (TemporaryDirectory, Facts) {
    let made = TestArchive::new();
    let facts = Facts {
        service: names("archive.example/store/2025/12.31.00.00"),
        ..made.facts().clone()
    };
    let directory = TemporaryDirectory::new();
    std::fs::write(directory.join(UNFINISHED), facts.to_text()).expect("written");
    (directory, facts)
}

#[test]
fn a_creation_that_was_interrupted_goes_on_under_the_same_name() {
    let (directory, facts) = interrupted();
    let archive = TestArchive::over(directory, &Setup::default());
    assert_eq!(archive.facts().to_text(), facts.to_text());
    let service = archive.held(&facts.service).expect("read");
    assert!(service.is_some());
    assert_eq!(archive.findings(), Vec::<String>::new());
}

#[test]
fn a_store_explains_itself_and_no_other_text_is_replaced() {
    let adopts = Setup {
        adopts: true,
        ..Setup::default()
    };
    for (theirs, expected) in [(None, README_TEXT), (Some("mine"), "mine")] {
        let directory = TemporaryDirectory::new();
        if let Some(text) = theirs {
            std::fs::write(directory.join(README), text).expect("written");
        }
        let archive = TestArchive::over(directory, &adopts);
        let text = archive.tree().read_small(README);
        assert_eq!(text, Ok(Some(expected.as_bytes().to_vec())));
    }
    // In both languages.
    for name in crate::archive::tree::DIRECTORIES {
        let count = README_TEXT.matches(&format!("\n  {name}/")).count();
        assert_eq!(count, 2, "{name}");
    }
}

#[test]
fn a_creation_with_another_name_begins_again() {
    let port = |port| Setup {
        port: Some(port),
        ..Setup::default()
    };
    let ip_port = Setup {
        ip_port: Some(8001),
        ..Setup::default()
    };
    let service = Setup {
        service: Some(names("archive.example/store/2025/01.01.00.00")),
        ..Setup::default()
    };
    for setup in [port(8080), ip_port, service] {
        let (directory, facts) = interrupted();
        let archive = TestArchive::over(directory, &setup);
        assert!(
            !archive.facts().service.matches(&facts.service),
            "{setup:?}"
        );
    }
}

/// A lost Archive is set up again by the name of its service, from which host and address follow.
#[test]
fn an_archive_that_was_lost_is_set_up_again_by_its_service() {
    let directory = TemporaryDirectory::new();
    let minted = "sid.inpe.br/mtc-m18/2010/01.01.00.00";
    std::fs::create_dir_all(directory.join("col").join(minted)).expect("made");
    let setup = Setup {
        host: Some("mtc-m18.sid.inpe.br".to_owned()),
        service: Some(elsewhere()),
        ..Setup::default()
    };
    let archive = TestArchive::over(directory, &setup);
    assert!(archive.facts().service.matches(&elsewhere()));
    let restored = archive.held(&names(minted)).expect("read");
    assert_eq!(restored.map(|item| item.state), Some(State::Original));
    // None of the dates that the lost Archive may have given out is given out again.
    let date = archive.reserve().expect("a date").date;
    assert!(date.seconds() >= archive.clock.now().seconds());
}
