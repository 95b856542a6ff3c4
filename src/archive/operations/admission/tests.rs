use super::super::testing::{OTHER_USER, TestArchive, creator, elsewhere, names};
use super::super::{Acceptance, Clock, Process, Stranger};
use super::*;

const FOREIGN: &str = "a.example/b/2001/01.01.00.00";

#[test]
fn names_of_the_own_name_space() {
    let archive = TestArchive::new();
    let own = archive.facts().ibip_prefix();
    let minted = archive.new_item();
    let own_ibip = minted.names.ibip().expect("an IBIp").to_string();
    assert!(own_ibip.starts_with(&own.to_string()));
    for (name, is_own) in [
        ("archive.example/store/2026/01.01.00.00", true),
        ("ARCHIVE.example/Store/2026/01.01.00.00", true),
        ("archive.example/store@80/2026/01.01.00.00", true),
        ("archive.example/store@8080/2026/01.01.00.00", false),
        ("archive.example/store2/2026/01.01.00.00", false),
        (FOREIGN, false),
        (own_ibip.as_str(), true),
        ("8JMKD3MGP8W/35MMLL8", false),
    ] {
        let ibi: Ibi = name.parse().expect(name);
        assert_eq!(archive.is_own(&ibi), is_own, "{name}");
    }
}

#[test]
fn own_names_are_admitted_up_to_the_last_one_handed_out() {
    let archive = TestArchive::new();
    archive.new_item();
    for (name, may) in [
        ("archive.example/store/2025/01.01.00.00", true),
        ("archive.example/store/2026/01.02.03.04.05", true),
        ("archive.example/store/2026/01.02.03.04.06", false),
        ("archive.example/store/2027/01.01.00.00", false),
        ("archive.example/store@80/2027/01.01.00.00", false),
        ("a.example/b/2027/01.01.00.00", true),
    ] {
        let refused = archive.register(&Process, &names(name), creator());
        match refused {
            Ok(item) => assert!(may && item.state == State::Copy, "{name}"),
            Err(ArchiveError::NotMintedYet { name: refused }) => {
                assert!(!may, "{name}");
                assert_eq!(refused, names(name).preferred());
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn after_a_clock_ran_ahead_its_dates_are_put_back_by_the_administrator() {
    let archive = TestArchive::new();
    let present = archive.clock.now();
    archive.clock.advance_milliseconds(3_600_000);
    let item = archive.new_item();
    archive.clock.set(present);
    let last = archive.go_on_from_present().expect("asked");
    let date = item.names.rep().map(ibi::Rep::timestamp);
    assert_eq!(last, date);
    // A known item keeps its name.
    assert!(archive.refuse_unminted(&Stranger, &item.names).is_ok());
    let other = names("archive.example/store/2026/01.02.03.30");
    assert!(archive.refuse_unminted(&Process, &other).is_ok());
    let refused = archive.refuse_unminted(&OTHER_USER, &other);
    assert!(
        matches!(refused, Err(ArchiveError::NotMintedYet { .. })),
        "{refused:?}"
    );
    let beyond = names("archive.example/store/2026/01.02.05.30");
    let refused = archive.refuse_unminted(&Process, &beyond);
    assert!(
        matches!(refused, Err(ArchiveError::NotMintedYet { .. })),
        "{refused:?}"
    );
}

fn refusal(archive: &TestArchive, item: &Item) -> Option<ArchiveError> {
    match archive.accept_sidecar(&Process, item.id).expect("asked") {
        Acceptance::Rejected(error) => Some(error),
        Acceptance::Accepted(_) | Acceptance::Unchanged => None,
    }
}

#[test]
fn no_item_gets_the_name_of_another() {
    let archive = TestArchive::new();
    let ibip = "8JMKD3MGP8W/35MMLL8";
    let [one, other] = [FOREIGN, "a.example/b/2001/01.02.00.00"].map(|name| archive.copy(name));
    let claim = |item: &Item| {
        let rep = item.names.rep().cloned().expect("a rep");
        let both = Names::both(rep, ibip.parse().expect(ibip));
        archive.edit_raw(item, |sidecar| sidecar.set_names(&both));
        refusal(&archive, item)
    };
    assert!(claim(&one).is_none());
    let refused = claim(&other);
    assert!(
        matches!(refused, Some(ArchiveError::Exists(_))),
        "{refused:?}"
    );
    let found = archive.find_named(ibip).expect("read");
    assert_eq!(found.map(|found| found.id), Some(one.id));
    assert_eq!(
        archive.findings(),
        [format!("name-taken {}", other.names.preferred())]
    );
}

#[test]
fn no_item_gets_an_alias_of_another_or_an_ibip_as_alias() {
    let archive = TestArchive::new();
    let alias = AliasPair::parse("lib/map").expect("an alias");
    let [one, other] = [FOREIGN, "a.example/b/2001/01.02.00.00"].map(|name| archive.copy(name));
    archive.edit_raw(&one, |sidecar| sidecar.add_alias(&alias));
    assert!(refusal(&archive, &one).is_none());
    let one = archive.again(&one);
    assert!(archive.check_alias(&one, &alias).is_ok());
    let taken = archive.check_alias(&other, &alias);
    assert!(
        matches!(taken, Err(ArchiveError::AliasTaken { .. })),
        "{taken:?}"
    );
    let ibip = AliasPair::parse("8JMKD3MGP8W/35MMLL8").expect("an alias");
    assert!(is_ibip(&ibip) && !is_ibip(&alias));
    let refused = archive.check_alias(&one, &ibip);
    assert!(
        matches!(refused, Err(ArchiveError::NoAlias { .. })),
        "{refused:?}"
    );
}

#[test]
fn the_owner_of_the_store_makes_an_original_of_what_lies_in_its_name_space() {
    let archive = TestArchive::new();
    archive.new_item();
    let name = names("archive.example/store/2025/01.01.00.00");
    let item = archive
        .register(&Process, &name, creator())
        .expect("registered");
    let mut sidecar = Sidecar::new(&name);
    sidecar.set_archive_service(&archive.facts().service);
    for (user, may) in [(&OTHER_USER as &dyn Actor, false), (&Process, true)] {
        let refused = archive
            .refusal(user, &item, &name, &sidecar)
            .expect("asked");
        assert_eq!(refused.is_none(), may, "{refused:?}");
    }
    sidecar.set_archive_service(&elsewhere());
    let refused = archive.refusal(&OTHER_USER, &item, &name, &sidecar);
    assert!(refused.expect("asked").is_none());
}

#[test]
fn another_user_gives_an_item_no_second_name() {
    let archive = TestArchive::new();
    let item = archive.copy(FOREIGN);
    let both = Names::both(
        item.names.rep().cloned().expect("a rep"),
        "8JMKD3MGP8W/35MMLL8".parse().expect("an IBIp"),
    );
    let sidecar = Sidecar::new(&both);
    let refused = archive.refusal(&OTHER_USER, &item, &both, &sidecar);
    let refused = refused.expect("asked");
    assert!(
        matches!(refused, Some(ArchiveError::MayNotName { .. })),
        "{refused:?}"
    );
    let allowed = archive
        .refusal(&Process, &item, &both, &sidecar)
        .expect("asked");
    assert!(allowed.is_none(), "{allowed:?}");
}

#[test]
fn a_removed_item_comes_back_where_it_is_made() {
    let archive = TestArchive::new();
    let ibip = "8JMKD3MGP8W/35MMLL8";
    let both = Names::both(FOREIGN.parse().expect(FOREIGN), ibip.parse().expect(ibip));
    for (user, asked, known, may) in [
        (&OTHER_USER as &dyn Actor, names(ibip), both.clone(), false),
        (&OTHER_USER, names(FOREIGN), both.clone(), true),
        (&OTHER_USER, names(ibip), names(ibip), true),
        (&Process, names(ibip), both.clone(), true),
    ] {
        let refused = archive.refuse_elsewhere(user, &asked, &known);
        assert_eq!(refused.is_ok(), may, "{asked} {known}: {refused:?}");
    }
}
