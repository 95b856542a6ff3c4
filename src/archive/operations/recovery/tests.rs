use super::super::recovery_log::MANY;
use super::super::testing::{OTHER_USER, TestArchive, creator, elsewhere, language, names};
use super::super::{Fact, Process, Stranger};
use super::*;
use ibi::relation::RelationKind;

const REP: &str = "a.example/b/2001/01.01.00.00";

/// An Archive with a copy.
fn with_copy() -> (TestArchive, Item) {
    let archive = TestArchive::new();
    let item = archive.copy(REP);
    (archive, item)
}

/// An Archive with a copy for which a tombstone was written, as the first step of a removal.
fn with_copy_and_tombstone() -> (TestArchive, Item) {
    let (archive, item) = with_copy();
    let tombstone = archive
        .edit(&Process, |it| it.tombstone_of(&item))
        .expect("a tombstone")
        .to_bytes();
    let written = archive
        .tree()
        .write_tombstone(&Place::of(&item.names), &tombstone);
    written.expect("written");
    (archive, item)
}

#[track_caller]
fn assert_no_findings(archive: &TestArchive) {
    assert_eq!(archive.findings(), Vec::<String>::new());
}

/// The recovery log: dirty regions, joint changes and unsettled items.
fn logged(archive: &TestArchive) -> [usize; 3] {
    let store = archive.store();
    [
        store.dirty_regions().expect("read").len(),
        store.joint_changes().expect("read").len(),
        store.unsettled().expect("read").len(),
    ]
}

/// Crashes, and checks that the start changes none of these sidecars.
#[track_caller]
fn assert_unchanged_by_a_crash(archive: &mut TestArchive, items: &[&Item], kind: &RelationKind) {
    let before = texts(archive, items);
    archive.crash();
    assert_eq!(texts(archive, items), before, "{kind:?}");
}

/// Changes a relation of an original, without what follows for the item at the other end.
fn set_relation(archive: &TestArchive, item: &Item, kind: RelationKind, far: &Item) {
    let far = far.names.clone();
    let edit = move |sidecar: &mut Sidecar| sidecar.set_relation(&kind, &far);
    let edited = archive.edit(&Process, |it| it.edit_sidecar(item, edit));
    edited.expect("edited");
}

/// The recovery log is empty after a regular end.
#[test]
fn a_regular_end_leaves_nothing_to_recover() {
    let mut archive = TestArchive::new();
    let (one, other) = (archive.new_item(), archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &other);
    archive.copy(REP);
    let [regions, joint, unsettled] = logged(&archive);
    assert_ne!(regions, 0);
    assert_eq!(joint, 1);
    assert_ne!(unsettled, 0);
    archive.close();
    assert_eq!(logged(&archive), [0; 3]);
    archive.reopen();
    assert_no_findings(&archive);
}

#[test]
fn a_copy_that_the_crash_took_is_forgotten() {
    let (mut archive, item) = with_copy();
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::remove_dir_all(&path).expect("removed"));
    assert_eq!(archive.held(&item.names).expect("read"), None);
    assert_no_findings(&archive);
}

#[test]
fn a_directory_that_the_index_does_not_know_is_registered() {
    let mut archive = TestArchive::new();
    archive.copy(REP);
    archive.crash_and(|store| {
        std::fs::create_dir(store.join("col/a.example/b/2001/01.02.00.00")).expect("made");
    });
    let found = archive
        .find_named("a.example/b/2001/01.02.00.00")
        .expect("read");
    assert_eq!(found.map(|item| item.state), Some(State::Copy));
    assert_no_findings(&archive);
}

#[test]
fn a_sidecar_that_was_not_synced_comes_back() {
    for lost in [&b""[..], &[0; 120][..]] {
        let (mut archive, item) = with_copy();
        let path = archive.file(&item, ".ibi");
        let before = std::fs::read(&path).expect("a sidecar");
        archive.crash_and(|_| std::fs::write(&path, lost).expect("written"));
        assert_eq!(std::fs::read(&path).expect("a sidecar"), before);
        archive.crash_and(|_| std::fs::remove_file(&path).expect("removed"));
        assert_eq!(std::fs::read(&path).expect("a sidecar"), before);
        assert_no_findings(&archive);
    }
}

#[test]
fn a_sidecar_that_the_index_has_not_seen_is_accepted() {
    let (mut archive, item) = with_copy();
    let mut sidecar = archive.sidecar(&item);
    sidecar.set_target("map.pdf");
    let path = archive.file(&item, ".ibi");
    archive.crash_and(|_| std::fs::write(&path, sidecar.to_bytes()).expect("written"));
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
    assert_no_findings(&archive);
}

#[test]
fn a_relation_at_one_end_only_is_finished() {
    for kept in [0, 1] {
        let mut archive = TestArchive::new();
        let ends = [archive.new_item(), archive.new_item()];
        let before = std::fs::read(archive.file(&ends[1 - kept], ".ibi")).expect("a sidecar");
        archive.declare(&ends[0], RelationKind::NextEdition, &ends[1]);
        // The crash loses the new declaration of one of the two.
        let path = archive.file(&ends[1 - kept], ".ibi");
        archive.crash_and(|_| std::fs::write(&path, before).expect("written"));
        let declared = |item: &Item| archive.sidecar(item).relations().len();
        let [near, far] = &ends;
        assert_eq!(declared(near), declared(far), "kept {kept}");
        assert_no_findings(&archive);
    }
}

/// The sidecars of some items on disk.
fn texts(archive: &TestArchive, items: &[&Item]) -> Vec<String> {
    let text =
        |item: &&Item| std::fs::read_to_string(archive.file(item, ".ibi")).expect("a sidecar");
    items.iter().map(text).collect()
}

/// Three items, the third of which is in Portuguese: it declares that it is the next edition,
/// metadata or translation of the first, which declares nothing of that kind.
fn with_claim(archive: &TestArchive, kind: RelationKind, back: RelationKind) -> [Item; 3] {
    let [one, other, claimant] = [archive.new_item(), archive.new_item(), archive.new_item()];
    let fact = Fact::Language(Some(language("pt")));
    let set = archive.edit(&Process, |it| it.set_fact(&claimant.names, fact));
    set.expect("a language");
    // A declaration of an item itself has precedence over the claim. Then an editor removes it.
    archive.declare(&one, kind, &other);
    archive.declare(&claimant, back, &one);
    archive.edit_raw(&one, |sidecar| {
        sidecar.remove_relation(&kind);
    });
    archive
        .edit(&Process, |it| it.accept_sidecar(one.id))
        .expect("accepted");
    assert!(archive.sidecar(&one).relations().is_empty());
    assert_eq!(archive.sidecar(&claimant).relations().len(), 1);
    [one, other, claimant]
}

/// Kinds of relations with their inverses, each with another kind.
fn kinds() -> [(RelationKind, RelationKind, RelationKind); 3] {
    use RelationKind::{EditionOf, Metadata, MetadataOf, NextEdition, Translation, TranslationOf};
    let [french, portuguese] = ["fr", "pt"].map(language);
    [
        (NextEdition, EditionOf, Translation(french)),
        (Metadata, MetadataOf, Translation(french)),
        (Translation(portuguese), TranslationOf, Metadata),
    ]
}

/// A declaration at one end only stays so, whatever else the two items have declared since.
#[test]
fn a_start_after_a_kill_changes_no_sidecar() {
    for (kind, back, joint) in kinds() {
        let mut archive = TestArchive::new();
        let [one, other, claimant] = with_claim(&archive, kind, back);
        let items = [&one, &other, &claimant];
        archive.declare(&claimant, joint, &one);
        assert_unchanged_by_a_crash(&mut archive, &items, &kind);
        // A claim against what the first item declares, in a sidecar that a user has written.
        archive.declare(&one, kind, &other);
        for claims in [false, true] {
            archive.edit_raw(&claimant, |sidecar| {
                sidecar.remove_relation(&back);
                if claims {
                    sidecar.set_relation(&back, &one.names);
                }
            });
            let accepted = archive.edit(&Process, |it| it.accept_sidecar(claimant.id));
            accepted.expect("accepted");
        }
        assert_unchanged_by_a_crash(&mut archive, &items, &kind);
    }
}

/// A relation that the user might not write at the other end is not written by the start either.
#[test]
fn a_far_end_that_was_refused_stays_after_a_kill() {
    for (kind, ..) in kinds() {
        let mut archive = TestArchive::new();
        let items = [archive.new_item(), archive.new_item()];
        let [one, other] = &items;
        archive.edit_raw(one, |sidecar| sidecar.set_relation(&kind, &other.names));
        let accepted = archive.edit(&OTHER_USER, |it| it.accept_sidecar(one.id));
        accepted.expect("accepted");
        assert_eq!(archive.store().relations_of(one.id).expect("read").len(), 1);
        assert!(archive.sidecar(other).relations().is_empty());
        assert_unchanged_by_a_crash(&mut archive, &[one, other], &kind);
    }
}

/// The first sidecar of a joint change was written, or none.
#[test]
fn a_joint_change_is_finished_and_nothing_else() {
    for (kind, back, joint) in kinds() {
        for is_begun in [false, true] {
            let mut archive = TestArchive::new();
            let [one, other, claimant] = with_claim(&archive, kind, back);
            archive.declare(&one, joint, &other);
            let items = [&one, &other, &claimant];
            let before = texts(&archive, &items);
            let declared = archive.store().relations_of(one.id).expect("read");
            let others = [&claimant, &other].map(|item| Place::of(&item.names));
            let begun = archive.recovery.begin_joint(&one.names, &declared, &others);
            begun.expect("logged");
            if is_begun {
                set_relation(&archive, &one, joint, &claimant);
            }
            archive.crash();
            assert_eq!(archive.store().joint_changes().expect("read").len(), 0);
            if !is_begun {
                assert_eq!(texts(&archive, &items), before, "{kind:?}");
                continue;
            }
            let inverse = super::super::far_ends::inverse(&joint);
            assert_eq!(
                archive.sidecar(&one).relations(),
                [(joint, claimant.names.clone())]
            );
            assert!(archive.sidecar(&other).relations().is_empty());
            let mut found = archive.sidecar(&claimant).relations();
            found.sort();
            let mut expected = [(back, one.names.clone()), (inverse, one.names.clone())];
            expected.sort();
            assert_eq!(found, expected, "{kind:?}");
        }
    }
}

/// After an error: the other end is written before the next change, and no other relation.
#[test]
fn a_relation_that_was_queued_is_finished_and_nothing_else() {
    for (kind, back, joint) in kinds() {
        let archive = TestArchive::new();
        let [one, _, claimant] = with_claim(&archive, kind, back);
        let place = Place::of(&one.names);
        let change = archive.recovery.begin(&place, ChangeDurability::Synced);
        let change = change.expect("begun").of_relations(Some(Vec::new()));
        set_relation(&archive, &one, joint, &claimant);
        drop(change);
        assert_eq!(archive.sidecar(&claimant).relations().len(), 1);
        archive
            .edit(&Stranger, |it| it.restore_sidecar(one.id))
            .expect("nothing to do");
        assert_eq!(
            archive.sidecar(&one).relations(),
            [(joint, claimant.names.clone())]
        );
        assert_eq!(archive.sidecar(&claimant).relations().len(), 2, "{kind:?}");
    }
}

#[test]
fn a_removal_that_was_cut_short_is_taken_back() {
    let (mut archive, item) = with_copy_and_tombstone();
    archive.crash();
    assert_eq!(archive.again(&item).state, State::Copy);
    let tombstone = archive.tree().read_tombstone(&Place::of(&item.names));
    assert_eq!(tombstone.expect("read"), None);
    assert_no_findings(&archive);
}

#[test]
fn a_removal_that_the_index_has_not_seen_is_finished() {
    let (mut archive, item) = with_copy_and_tombstone();
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::remove_dir_all(&path).expect("removed"));
    let found = archive.again(&item);
    assert_eq!(found.state, State::Deleted);
    assert!(found.removed_at.is_some());
    assert_no_findings(&archive);
}

#[test]
fn a_change_that_was_dropped_is_read_before_the_next() {
    let (archive, item) = with_copy();
    let change = archive.begin_write(item.id).expect("begun");
    archive.edit_raw(&item, |sidecar| sidecar.set_target("map.pdf"));
    drop(change);
    assert_eq!(archive.again(&item).target, None);
    // Any change that takes the lock for changes triggers the recovery.
    archive
        .edit(&Stranger, |it| it.restore_sidecar(item.id))
        .expect("nothing to do");
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
    // A change that is done is not read again.
    let change = archive.begin_write(item.id).expect("begun");
    archive.edit_raw(&item, |sidecar| sidecar.set_target("other.pdf"));
    change.done();
    archive
        .edit(&Stranger, |it| it.restore_sidecar(item.id))
        .expect("nothing to do");
    assert_eq!(archive.again(&item).target.as_deref(), Some("map.pdf"));
}

#[test]
fn a_move_that_the_index_has_not_seen_is_read_before_the_next_change() {
    let (old, new) = ("8JMKD3MGP8W/35MMLL8", REP);
    let places = [old, new].map(|name| Place::of(&names(name)));
    for order in [[0, 1], [1, 0]] {
        for is_accepted in [false, true] {
            let archive = TestArchive::new();
            let item = if is_accepted {
                archive.copy(old)
            } else {
                archive
                    .depositor(&Process)
                    .register(&names(old), creator())
                    .expect("registered")
            };
            let both = format!("ibi {{rep {new} ibip {old}}}\n");
            archive.write_raw(&item, both.as_bytes());
            let [from, to] = &places;
            // The move fails where it is synced, and cannot be undone.
            archive.tree.move_item(from, to).expect("moved");
            for place in order.map(|index| places[index].clone()) {
                let queued = Queued::at(place, ChangeDurability::Unsynced);
                archive.recovery.queue(queued);
            }
            archive
                .edit(&Stranger, |it| it.restore_sidecar(item.id))
                .ok();
            let found = archive.held(&names(old)).expect("read").expect("the item");
            assert_eq!(found.names, names_of(&both));
            assert_no_findings(&archive);
        }
    }
}

fn names_of(sidecar: &str) -> Names {
    let sidecar = Sidecar::parse(sidecar.as_bytes()).expect("a sidecar");
    sidecar.names().clone()
}

#[test]
fn many_levels_are_not_all_kept_in_the_log() {
    let archive = TestArchive::new();
    for year in 0..MANY {
        archive.copy(&format!("a.example/b/{}/01.01.00.00", 1900 + year));
    }
    // They are synced in a separate thread.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while archive.store().dirty_regions().expect("read").len() >= MANY {
        assert!(std::time::Instant::now() < until, "still {MANY}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn an_item_in_the_tree_is_registered() {
    let archive = TestArchive::new();
    let place = archive.path().join("col").join(REP);
    std::fs::create_dir_all(&place).expect("a directory");
    let mut sidecar = Sidecar::new(&names(REP));
    sidecar.set_archive_service(&elsewhere());
    std::fs::write(place.join(".ibi"), sidecar.to_bytes()).expect("a sidecar");
    let rep = REP.parse().expect("a rep");
    let item = archive.item_at(&rep).expect("an item");
    assert_eq!(item.service, Some(elsewhere()));
    let rep = "a.example/b/2001/01.02.00.00".parse().expect("a rep");
    let absent = archive.item_at(&rep);
    assert!(
        matches!(absent, Err(ArchiveError::Unknown { .. })),
        "{absent:?}"
    );
    assert_no_findings(&archive);
}

#[test]
fn a_change_in_progress_keeps_its_level_in_the_log() {
    let archive = TestArchive::new();
    let item = archive.copy(REP);
    let is_logged = || {
        let regions = archive.store().dirty_regions().expect("read");
        regions.contains(&"col/a.example/b/2001".to_owned())
    };
    let changes = [(); 2].map(|()| archive.begin_write(item.id).expect("begun"));
    for change in changes {
        archive.keeper().settle_now().expect("settled");
        assert!(is_logged());
        change.done();
    }
    archive.keeper().settle_now().expect("settled");
    assert!(!is_logged());
    archive.begin_write(item.id).expect("begun").done();
    assert!(is_logged(), "each change after that is logged again");
}

/// A log that an earlier process has left dirty is cleared at a regular end, too.
#[test]
fn the_log_of_a_killed_process_is_cleared_at_the_next_regular_end() {
    let mut archive = TestArchive::new();
    archive.copy(REP);
    archive.crash();
    assert_ne!(logged(&archive)[0], 0);
    archive.close();
    assert_eq!(logged(&archive)[0], 0);
}

/// Otherwise a start after a crash would finish the joint change again, over the later one.
#[test]
fn a_later_change_of_one_end_clears_the_joint_change() {
    let archive = TestArchive::new();
    let [one, other, third] = [(); 3].map(|()| archive.new_item());
    archive.declare(&one, RelationKind::NextEdition, &other);
    let logged = || archive.store().joint_changes().expect("read").len();
    let set = |item: &Item| {
        let fact = Fact::Target(Some(b"x".to_vec()));
        archive
            .edit(&Process, |it| it.set_fact(&item.names, fact))
            .expect("set");
    };
    assert_eq!(logged(), 1);
    set(&third);
    assert_eq!(logged(), 1, "another item");
    set(&other);
    assert_eq!(logged(), 0);
}

#[test]
fn a_sidecar_that_is_broken_after_a_crash_leaves_what_was_accepted() {
    let mut archive = TestArchive::new();
    let item = archive.copy(REP);
    let path = archive.file(&item, ".ibi");
    archive.crash_and(|_| std::fs::write(&path, "ibi {").expect("written"));
    assert_eq!(archive.again(&item), item);
    assert_eq!(std::fs::read(&path).expect("kept"), b"ibi {");
}

#[test]
fn a_removed_item_that_is_made_again_beneath_keeps_both_its_names() {
    let mut archive = TestArchive::new();
    let item = archive.new_item();
    archive.remove_whole(&item);
    let path = archive.file(&item, "");
    archive.crash_and(|_| std::fs::create_dir(&path).expect("made"));
    let found = archive.held(&item.names).expect("read").expect("the item");
    assert_eq!((found.names, found.state), (item.names, State::Copy));
}

#[test]
fn a_place_that_was_queued_and_is_gone_is_forgotten() {
    let archive = TestArchive::new();
    let item = archive.copy(REP);
    drop(archive.begin_write(item.id).expect("begun"));
    std::fs::remove_dir_all(archive.file(&item, "")).expect("removed");
    // Minting is a change, too.
    archive.new_item();
    assert_eq!(archive.held(&item.names).expect("read"), None);
    assert!(!archive.recovery.is_queued());
}

#[test]
fn a_minted_item_that_has_been_changed_is_not_made_again() {
    let mut archive = TestArchive::new();
    let [changed, lost] = [archive.new_item(), archive.new_item()];
    let mut sidecar = archive.sidecar(&changed);
    sidecar.set_target("map.pdf");
    let (path, gone) = (archive.file(&changed, ".ibi"), archive.file(&lost, ""));
    drop(archive.begin_write(changed.id).expect("begun"));
    archive.crash_and(|_| {
        std::fs::write(&path, sidecar.to_bytes()).expect("written");
        std::fs::remove_dir_all(&gone).expect("removed");
    });
    assert_eq!(archive.again(&changed).target.as_deref(), Some("map.pdf"));
    assert!(archive.file(&lost, "doc").is_dir());
    assert_no_findings(&archive);
}

#[test]
fn an_item_that_was_removed_before_it_was_synced_is_settled() {
    let archive = TestArchive::new();
    let [gone, kept] = [archive.new_item(), archive.new_item()];
    assert_eq!(archive.store().unsettled().expect("read").len(), 2);
    std::fs::remove_dir_all(archive.file(&gone, "")).expect("removed");
    archive.keeper().settle_now().expect("settled");
    assert_eq!(archive.store().unsettled().expect("read").len(), 0);
    assert!(archive.file(&kept, "doc").is_dir());
}
