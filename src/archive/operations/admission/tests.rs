use super::super::Actor;
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
        assert_eq!(archive.facts.is_own(&ibi), is_own, "{name}");
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
        let refused = archive
            .depositor(&Process)
            .register(&names(name), creator());
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
    let last = archive.keeper().go_on_from_present().expect("asked");
    let date = item.names.rep().map(ibi::Rep::timestamp);
    assert_eq!(last, date);
    // A known item keeps its name.
    assert!(
        archive
            .depositor(&Stranger)
            .refuse_unminted(&item.names)
            .is_ok()
    );
    let other = names("archive.example/store/2026/01.02.03.30");
    assert!(archive.depositor(&Process).refuse_unminted(&other).is_ok());
    let refused = archive.depositor(&OTHER_USER).refuse_unminted(&other);
    assert!(
        matches!(refused, Err(ArchiveError::NotMintedYet { .. })),
        "{refused:?}"
    );
    let beyond = names("archive.example/store/2026/01.02.05.30");
    let refused = archive.depositor(&Process).refuse_unminted(&beyond);
    assert!(
        matches!(refused, Err(ArchiveError::NotMintedYet { .. })),
        "{refused:?}"
    );
}

fn refusal(archive: &TestArchive, item: &Item) -> Option<ArchiveError> {
    match archive
        .edit(&Process, |it| it.accept_sidecar(item.id))
        .expect("asked")
    {
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
    assert!(
        archive
            .depositor(&Stranger)
            .check_alias(&one, &alias)
            .is_ok()
    );
    let taken = archive.depositor(&Stranger).check_alias(&other, &alias);
    assert!(
        matches!(taken, Err(ArchiveError::AliasTaken { .. })),
        "{taken:?}"
    );
    let ibip = AliasPair::parse("8JMKD3MGP8W/35MMLL8").expect("an alias");
    assert!(is_ibip(&ibip) && !is_ibip(&alias));
    let refused = archive.depositor(&Stranger).check_alias(&one, &ibip);
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
        .depositor(&Process)
        .register(&name, creator())
        .expect("registered");
    let mut sidecar = Sidecar::new(&name);
    sidecar.set_archive_service(&archive.facts().service);
    for (user, may) in [(&OTHER_USER as &dyn Actor, false), (&Process, true)] {
        let refused = archive
            .depositor(user)
            .refusal(&item, &name, &sidecar)
            .expect("asked");
        assert_eq!(refused.is_none(), may, "{refused:?}");
    }
    sidecar.set_archive_service(&elsewhere());
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &name, &sidecar);
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
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &both, &sidecar);
    let refused = refused.expect("asked");
    assert!(
        matches!(refused, Some(ArchiveError::MayNotName { .. })),
        "{refused:?}"
    );
    let allowed = archive
        .depositor(&Process)
        .refusal(&item, &both, &sidecar)
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
        let refused = archive.depositor(user).refuse_elsewhere(&asked, &known);
        assert_eq!(refused.is_ok(), may, "{asked} {known}: {refused:?}");
    }
}

/// Sets the mode of a directory of a store.
fn set_mode(archive: &TestArchive, path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(archive.path().join(path), mode).expect("a mode");
}

#[test]
fn who_may_make_a_level_may_write_in_the_last_one_that_exists() {
    let archive = TestArchive::new();
    archive.copy(FOREIGN);
    for (modes, may) in [
        ([0o755, 0o755, 0o755], [false, false, false, false]),
        ([0o757, 0o755, 0o755], [true, true, false, false]),
        // Without search permission nothing is made.
        ([0o752, 0o755, 0o755], [false, false, false, false]),
        ([0o755, 0o757, 0o755], [false, false, true, false]),
        ([0o755, 0o755, 0o757], [false, false, false, true]),
        ([0o754, 0o757, 0o757], [false, false, false, false]),
        ([0o755, 0o750, 0o757], [false, false, false, false]),
    ] {
        for (path, mode) in ["col", "col/a.example", "col/a.example/b"]
            .into_iter()
            .zip(modes)
        {
            set_mode(&archive, path, mode);
        }
        let found = [
            "col",
            "col/new.example/b",
            "col/a.example/c",
            "col/a.example/b/2002",
        ]
        .map(|path| {
            archive
                .depositor(&OTHER_USER)
                .may_make(path)
                .expect("asked")
        });
        assert_eq!(found, may, "{modes:?}");
        assert!(
            archive
                .depositor(&Process)
                .may_make("col/a.example/c")
                .expect("asked")
        );
    }
    set_mode(&archive, "col", 0o755);
}

/// As with mv: the user writes in both directories, and in a sticky one moves its own alone.
#[test]
fn who_moves_an_item_may_take_it_and_place_it() {
    let archive = TestArchive::new();
    let item = archive.copy("8JMKD3MGP8W/35MMLL8");
    archive.copy(FOREIGN);
    let from = Place::of(&item.names);
    let to = Place::of(&names(FOREIGN));
    for (col, level, takes, moves) in [
        (0o755, 0o755, false, false),
        (0o757, 0o755, true, false),
        (0o757, 0o757, true, true),
        (0o755, 0o757, false, false),
        (0o1757, 0o757, false, false),
    ] {
        set_mode(&archive, "col", col);
        set_mode(&archive, to.parent(), level);
        let found = archive
            .depositor(&OTHER_USER)
            .may_take(&from)
            .expect("asked");
        assert_eq!(found, takes, "{col:o} {level:o}");
        let found = archive
            .depositor(&OTHER_USER)
            .may_move(&from, &to)
            .expect("asked");
        assert_eq!(found, moves, "{col:o} {level:o}");
    }
    set_mode(&archive, "col", 0o755);
    // A second name of an item that stays where it is only needs permission to make one.
    let item = archive.held(&names(FOREIGN)).expect("read").expect("held");
    let both = Names::both(
        FOREIGN.parse().expect(FOREIGN),
        "8JMKD3MGP8W/35MME4E".parse().expect("an IBIp"),
    );
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &both, &Sidecar::new(&both));
    assert!(matches!(
        refused.expect("asked"),
        Some(ArchiveError::MayNotName { .. })
    ));
    set_mode(&archive, "col", 0o1757);
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &both, &Sidecar::new(&both));
    assert!(
        refused.expect("asked").is_none(),
        "in a sticky directory, too"
    );
}

/// The name of a removed item stays its own, unless it had no other.
#[test]
fn the_name_of_a_removed_item_is_given_to_no_other() {
    let ibip = "8JMKD3MGP8W/35MMLL8";
    let other = "a.example/b/2001/01.02.00.00";
    let both = |rep: &str| Names::both(rep.parse().expect(rep), ibip.parse().expect(ibip));
    for (removed, is_free) in [(both(other), false), (names(ibip), true)] {
        let archive = TestArchive::new();
        let item = archive.copy(FOREIGN);
        let gone = archive.copy(&removed.preferred());
        archive.edit_raw(&gone, |sidecar| sidecar.set_names(&removed));
        assert!(refusal(&archive, &gone).is_none());
        archive.remove_whole(&archive.again(&gone));
        archive.edit_raw(&item, |sidecar| sidecar.set_names(&both(FOREIGN)));
        let refused = refusal(&archive, &item);
        assert_eq!(refused.is_none(), is_free, "{removed}: {refused:?}");
    }
}

#[test]
fn what_was_an_original_here_is_one_again_for_any_user() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let original = std::fs::read(archive.file(&item, ".ibi")).expect("a sidecar");
    archive.remove_whole(&item);
    let item = archive
        .depositor(&Process)
        .register(&item.names, creator())
        .expect("registered");
    assert_eq!(item.state, State::Copy);
    let sidecar = Sidecar::parse(&original).expect("a sidecar");
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &item.names, &sidecar);
    assert!(refused.expect("asked").is_none());
    assert!(archive.keeper().was_original(&item.names).expect("read"));
    let place = Place::of(&item.names);
    archive.tree().remove_tombstone(&place).expect("removed");
    assert!(!archive.keeper().was_original(&item.names).expect("read"));
    let refused = archive
        .depositor(&OTHER_USER)
        .refusal(&item, &item.names, &sidecar);
    assert!(matches!(
        refused.expect("asked"),
        Some(ArchiveError::NotMintedHere(_))
    ));
}

/// Makes the sidecar of an item one that came over the network: its author has no rights here.
fn brought(archive: &TestArchive, item: &Item) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o1644);
    std::fs::set_permissions(archive.file(item, ".ibi"), mode).expect("a mode");
}

#[test]
fn a_sidecar_read_from_the_tree_adds_the_names_that_its_author_may_make() {
    let archive = TestArchive::new();
    let item = archive.copy(FOREIGN);
    let ibip = "8JMKD3MGP8W/35MMLL8";
    let both = Names::both(FOREIGN.parse().expect(FOREIGN), ibip.parse().expect(ibip));
    let named = Item {
        names: both.clone(),
        ..item.clone()
    };
    let place = names(FOREIGN);
    for (is_brought, was_accepted, known, is_refused) in [
        (false, false, Some(&item), false),
        (true, false, Some(&item), true),
        (true, true, Some(&item), false),
        (true, false, None, false),
        (true, false, Some(&named), false),
    ] {
        if is_brought {
            brought(&archive, &item);
        }
        let evidence = Evidence {
            last: None,
            was_accepted,
            item: known,
        };
        let record = Record::bare(both.clone(), State::Copy);
        let refused = archive.keeper().refusal_of_read(&place, &record, &evidence);
        let refused = refused.expect("asked");
        assert_eq!(
            matches!(refused, Some(ArchiveError::MayNotName { .. })),
            is_refused,
            "{is_brought} {was_accepted} {known:?}: {refused:?}"
        );
    }
}

#[test]
fn an_original_read_from_the_tree_was_minted_here_as_far_as_is_known() {
    let own = "archive.example/store/2025/01.01.00.00";
    let archive = TestArchive::new();
    let item = archive
        .depositor(&Process)
        .register(&names(own), creator())
        .expect("registered");
    archive.write_raw(&item, &Sidecar::new(&names(own)).to_bytes());
    let foreign = archive.copy(FOREIGN);
    brought(&archive, &foreign);
    let own_ibip = archive.new_item().names.ibip().expect("an IBIp").clone();
    let earlier_host = Names::both(FOREIGN.parse().expect(FOREIGN), own_ibip);
    let original = Item {
        state: State::Original,
        ..item.clone()
    };
    let removed = Item {
        state: State::Deleted,
        ..item.clone()
    };
    let last = archive.depositor(&Stranger).handed_out().expect("read");
    let refuses = |names: &Names, state, known: Option<&Item>, was_accepted| {
        let evidence = Evidence {
            last: last.as_ref(),
            was_accepted,
            item: known,
        };
        let place = names.rep().cloned().map(Ibi::Rep).map(Names::from);
        let record = Record::bare(names.clone(), state);
        let refused = archive
            .keeper()
            .refusal_of_read(&place.expect("a rep"), &record, &evidence);
        let refused = refused.expect("asked");
        assert!(
            matches!(refused, None | Some(ArchiveError::NotMintedHere(_))),
            "{refused:?}"
        );
        refused.is_some()
    };
    let (claim, copy) = (State::Original, State::Copy);
    let mine = &item.names;
    for is_brought in [false, true] {
        if is_brought {
            brought(&archive, &item);
        }
        // The owner of the store is its administrator.
        assert_eq!(refuses(mine, claim, Some(&item), false), is_brought);
        assert!(!refuses(mine, claim, Some(&item), true), "accepted before");
        assert!(!refuses(mine, claim, Some(&original), false));
        assert!(!refuses(mine, copy, Some(&item), false), "no claim");
        // With the index the knowledge of what was minted is lost.
        assert!(!refuses(mine, claim, None, false));
        assert!(!refuses(mine, claim, Some(&removed), false));
    }
    assert!(!refuses(&foreign.names, claim, Some(&foreign), false));
    // Under an earlier host name only where the owner of the sidecar could not have made the level; this one could.
    assert!(refuses(&earlier_host, claim, None, false));
}

#[test]
fn an_item_is_read_by_its_place_until_it_is_moved() {
    let archive = TestArchive::new();
    let item = archive.copy(FOREIGN);
    let read = archive
        .depositor(&Stranger)
        .read_admitted(&item.names, &item)
        .expect("read");
    assert_eq!(read.service, Some(elsewhere()));
    let ibip = "8JMKD3MGP8W/35MMLL8";
    let unmoved = archive
        .depositor(&Process)
        .register(&names(ibip), creator())
        .expect("registered");
    let other = "a.example/b/2001/01.02.00.00";
    let both = Names::both(other.parse().expect(other), ibip.parse().expect(ibip));
    archive.write_raw(&unmoved, &Sidecar::new(&both).to_bytes());
    let read = archive
        .depositor(&Stranger)
        .read_admitted(&names(ibip), &unmoved)
        .expect("read");
    assert_eq!((read.names, read.sidecar), (names(ibip), None));
}
