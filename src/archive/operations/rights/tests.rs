use std::os::unix::fs::PermissionsExt;

use super::super::Process;
use super::super::testing::{OTHER_USER, TestArchive};
use super::*;

fn set_mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
}

#[test]
fn who_may_write_the_sidecar_may_say_what_the_item_is() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let (directory, sidecar) = (archive.file(&item, ""), archive.file(&item, ".ibi"));
    for (directory_mode, sidecar_mode, may) in [
        (0o755, 0o644, false),
        (0o755, 0o646, true),
        // The sidecar is not accessible.
        (0o754, 0o646, false),
        // The sidecar can be replaced.
        (0o757, 0o644, true),
        // In a sticky directory it cannot.
        (0o1757, 0o644, false),
        (0o756, 0o644, false),
    ] {
        set_mode(&directory, directory_mode);
        set_mode(&sidecar, sidecar_mode);
        let found = archive
            .depositor(&OTHER_USER)
            .may_write_sidecar(&item.names, Traversal::Skipped);
        assert_eq!(
            found.expect("asked"),
            may,
            "{directory_mode:o} {sidecar_mode:o}"
        );
        assert_eq!(
            archive.depositor(&OTHER_USER).refuse_others(&item).is_ok(),
            may
        );
        assert!(
            archive
                .depositor(&Process)
                .may_write_sidecar(&item.names, Traversal::Skipped)
                .expect("asked")
        );
        assert!(
            !archive
                .depositor(&Stranger)
                .may_write_sidecar(&item.names, Traversal::Skipped)
                .expect("asked")
        );
    }
}

#[test]
fn the_way_to_an_item_counts_where_it_is_asked_for() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    set_mode(&archive.file(&item, ".ibi"), 0o666);
    let year = archive.path().join(Place::of(&item.names).parent());
    for (mode, may) in [(0o755, true), (0o750, false)] {
        set_mode(&year, mode);
        let by_way = archive
            .depositor(&OTHER_USER)
            .may_write_sidecar(&item.names, Traversal::Checked)
            .expect("asked");
        assert_eq!(by_way, may);
        assert!(
            archive
                .depositor(&OTHER_USER)
                .may_write_sidecar(&item.names, Traversal::Skipped)
                .expect("asked")
        );
    }
    set_mode(&year, 0o755);
}

#[test]
fn the_author_of_a_sidecar_is_its_owner() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let author = archive.author(&item.names).expect("asked");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(author.map(|author| author.uid), Some(uid));
    // A sidecar that came over the network has no author here.
    let sidecar = archive.file(&item, ".ibi");
    set_mode(&sidecar, 0o1644);
    assert_eq!(archive.author(&item.names).expect("asked"), None);
    std::fs::remove_file(&sidecar).expect("removed");
    assert_eq!(archive.author(&item.names).expect("asked"), None);
}

#[test]
fn a_writer_says_nothing_with_more_rights_than_the_owner() {
    let archive = TestArchive::new();
    let (item, other) = (archive.new_item(), archive.new_item());
    let may = |actor: &dyn Actor| {
        archive.depositor(actor).with_writer(&item.names, |writer| {
            archive
                .depositor(writer)
                .may_write_sidecar(&other.names, Traversal::Checked)
        })
    };
    assert!(may(&Process).expect("asked"));
    assert!(!may(&OTHER_USER).expect("asked"));
    set_mode(&archive.file(&item, ".ibi"), 0o1644);
    assert!(!may(&Process).expect("asked"));
    assert!(
        !archive
            .may_declare_for(&item.names, &other.names)
            .expect("asked")
    );
    assert!(
        archive
            .may_declare_for(&other.names, &item.names)
            .expect("asked")
    );
}

#[test]
fn a_sidecar_goes_to_the_user_who_replaces_it() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let after = |actor: &dyn Actor| {
        archive
            .depositor(actor)
            .author_after(&item.names)
            .expect("asked")
    };
    assert_eq!(after(&Process), Author::Same);
    let user = OwnerOnDisk {
        uid: OTHER_USER.uid,
        gid: Some(7),
    };
    let (uid, gid) = (OTHER_USER.uid, 7);
    assert_eq!(after(&user), Author::User { uid, gid });
    set_mode(&archive.file(&item, ".ibi"), 0o666);
    assert_eq!(after(&user), Author::Same);
}

#[test]
fn two_users_together_have_the_rights_of_both() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let directory = std::fs::File::open(archive.file(&item, "")).expect("opened");
    let uid = rustix::process::geteuid().as_raw();
    for (first, second, may, owns) in [
        (&Process as &dyn Actor, &Process as &dyn Actor, true, true),
        (&Process, &OTHER_USER, false, false),
        (&OTHER_USER, &Process, false, false),
    ] {
        let both = Both(first, second);
        assert_eq!(both.may(directory.as_fd(), Access::WRITE_OK), may);
        assert_eq!(both.owns(uid), owns);
        assert_eq!(both.owner(), second.owner());
    }
}

/// The writer of a sidecar is limited by the owner of the file, unless they are the same.
#[test]
fn the_owner_of_a_sidecar_acts_for_itself() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let uid = rustix::process::geteuid().as_raw();
    let owns = |actor: &dyn Actor| {
        let owned = archive
            .depositor(actor)
            .with_writer(&item.names, |writer| Ok(writer.owns(uid)));
        owned.expect("a writer")
    };
    assert!(owns(&Process));
    let user = OwnerOnDisk {
        uid: OTHER_USER.uid,
        gid: Some(7),
    };
    assert!(!owns(&user));
    // The other user may enter, the owner may not (unless it is root).
    let directory = std::fs::File::open(archive.file(&item, "doc")).expect("opened");
    set_mode(&archive.file(&item, "doc"), 0o077);
    let may = archive.depositor(&user).with_writer(&item.names, |writer| {
        Ok(writer.may(directory.as_fd(), Access::EXEC_OK))
    });
    set_mode(&archive.file(&item, "doc"), 0o755);
    assert_eq!(may.expect("asked"), rustix::process::geteuid().is_root());
}

/// Files in a directory with the setgid bit have its group, whichever user makes them.
#[test]
fn the_group_of_a_sidecar_counts_if_its_author_has_chosen_it() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let gid = || {
        let author = archive.author(&item.names).expect("asked");
        author.expect("an author").gid
    };
    let group = rustix::process::getegid().as_raw();
    assert_eq!(gid(), Some(group));
    set_mode(&archive.file(&item, ".."), 0o2755);
    assert_eq!(gid(), None);
}

/// A directory in the place of the sidecar is not written to, however open it is.
#[test]
fn what_is_not_a_file_is_replaced_and_not_written() {
    let archive = TestArchive::new();
    let item = archive.new_item();
    let sidecar = archive.file(&item, ".ibi");
    std::fs::remove_file(&sidecar).expect("removed");
    std::fs::create_dir(&sidecar).expect("made");
    set_mode(&sidecar, 0o777);
    let may = archive
        .depositor(&OTHER_USER)
        .may_write_sidecar(&item.names, Traversal::Skipped);
    assert!(!may.expect("asked"));
    let user = OwnerOnDisk {
        uid: OTHER_USER.uid,
        gid: Some(7),
    };
    let after = archive
        .depositor(&user)
        .author_after(&item.names)
        .expect("asked");
    let (uid, gid) = (user.uid, 7);
    assert_eq!(after, Author::User { uid, gid });
    // In a sticky directory its owner alone replaces it.
    set_mode(&archive.file(&item, ""), 0o1777);
    let may = |uid| {
        let user = OwnerOnDisk { uid, gid: None };
        let may = archive
            .depositor(&user)
            .may_write_sidecar(&item.names, Traversal::Skipped);
        may.expect("asked")
    };
    let owner = rustix::process::geteuid().as_raw();
    assert!(may(owner) && !may(OTHER_USER.uid) && !may(1));
}
