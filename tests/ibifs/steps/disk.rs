//! A disk that is full, or takes no writes any more.

use super::fixture::Fixture;
use super::operations;
use super::supervisor::What;
use crate::support::{Disk, Format, TestEnv};

/// A full disk: a request for space fails with ENOSPC, everything is read, items can be
/// removed, and with room again everything works. Nothing is half made.
#[test]
fn a_full_disk_is_named_and_can_be_emptied() {
    for format in [Format::Ext4, Format::Xfs] {
        let env = TestEnv::new();
        let size = match format {
            Format::Ext4 => 12,
            Format::Xfs => 300,
        };
        let disk = Disk::new(env.root(), "disk", format, size);
        env.sh(
            "ibifs init disk/S --host archive-a.example.org; mkdir M; ibifs mount disk/S M
             for i in 1 2 3 4; do mint M $i > rep$i; echo $i > M/.mint/$i/doc/f; done
             cat disk/S/col/$(< rep2)/.ibi > side; echo 'language pt' >> side",
        );
        // To the last block, and the last inode's room.
        env.run("cat /dev/zero > disk/filler; cat /dev/zero > disk/filler2
             for i in $(seq 2000); do head -c 4000 /dev/zero > disk/small$i || break; done; sync -f disk");
        for full in [
            "for i in $(seq 40); do mkdir M/.mint/x$i || exit 1; done",
            "for i in $(seq 40); do head -c 8192 /dev/zero > M/$(< rep1)/doc/g$i || exit 1; done",
            "for i in $(seq 40); do ibifs relate --store disk/S $(< rep1) --next-edition $(< rep2) || exit 1
                 ibifs unrelate --store disk/S $(< rep1) --next-edition || exit 1; done",
        ] {
            env.complains(full, "No space left on device");
        }
        env.run("cp side M/$(< rep2)/.ibi");
        env.prints("cat M/$(< rep1)/doc/f M/$(< rep2)/doc/f", "1\n2");
        env.sh("for i in 3 4; do rm -r M/$(< rep$i); no stat M/$(< rep$i); done");
        env.sh("rm -f disk/filler disk/filler2 disk/small*
             mkdir -p M/.mint/y/doc; echo text > M/$(< rep1)/doc/h; cp side M/$(< rep2)/.ibi
             ibifs relate --store disk/S $(< rep1) --next-edition $(< rep2)
             test $(readlink -f M/$(< rep1)!) = $(readlink -f M/$(< rep2))
             ibifs umount M; ibifs fsck disk/S");
        env.prints(
            "ibifs ls disk/S | grep -c Deleted; for i in 1 2; do ibifs ls disk/S | grep -c \"$(< rep$i) \"; done",
            "2\n1\n1",
        );
        drop(disk);
    }
}

/// Where blocks are smaller than pages, and there is room for some of those of the file beside the index and not for all, a command
/// says that the disk is full. SQLite writes one byte a page, and a write to a block without room ended the process (SIGBUS).
#[test]
fn a_full_disk_with_small_blocks_ends_no_command() {
    let env = TestEnv::new();
    let disk = Disk::made_with(
        env.root(),
        "disk",
        Format::Ext4,
        20,
        &["-b", "1024", "-m", "0"],
    );
    env.sh("ibifs init disk/S --host archive-a.example.org; ibifs mint disk/S; head -c 65536 /dev/zero > disk/spare
         cat /dev/zero > disk/filler 2> /dev/null || true");
    env.run("for i in $(seq 300); do echo x > disk/s$i || break; done; sync -f disk");
    env.prints(
        "for spare in 56 48 40 32 8; do
             truncate -s ${spare}K disk/spare; sync -f disk
             for command in ls mint; do
                 status=0; ibifs $command disk/S > said 2>&1 || status=$?
                 test $status = 0 || { test $status = 1 && grep -q 'No space left\\|disk is full' said; } || { echo $spare $command $status; cat said; }
             done
         done",
        "",
    );
    env.sh("rm disk/filler; ibifs mint disk/S; ibifs fsck disk/S");
    drop(disk);
}

/// A filesystem that turns read-only under the daemon, a quota that is used up, a store that may not
/// be written any more: each change is refused with that errno, reading goes on, and when writing
/// works again all changes do.
#[test]
fn a_disk_that_takes_no_writes_is_named_and_read() {
    let fixture = Fixture::new("");
    let changes = [
        &operations::MINT,
        &operations::MINT_TRANSLATION,
        &operations::RELATE,
        &operations::RELATE_ANEW,
        &operations::RENAME_SIDECAR,
        &operations::COPY_BY_REP,
        &operations::COPY_BY_IBIP,
    ];
    for errno in [libc::EROFS, libc::EDQUOT, libc::EACCES] {
        fixture.put_back();
        let daemon = fixture.mount();
        let (before, _) = fixture.look();
        daemon.arm(1, What::FailOn(errno));
        for change in changes {
            let printed = (change.make)(&fixture).expect_err(change.name);
            assert_eq!(
                printed.raw_os_error(),
                Some(errno),
                "{}: {printed}",
                change.name
            );
            assert!(!(change.is_made)(&fixture), "{}", change.name);
        }
        for number in 1..=3 {
            let read = std::fs::read_to_string(fixture.item(number).join("doc/file"));
            assert!(read.is_ok_and(|text| text.len() > 3), "{errno}");
        }
        daemon.disarm();
        let (after, report) = fixture.look();
        assert_eq!((after, report.findings), (before, Vec::new()), "{errno}");
        for change in changes {
            (change.make)(&fixture).unwrap_or_else(|error| panic!("{}: {error}", change.name));
            assert!((change.is_made)(&fixture), "{}", change.name);
        }
        fixture.unmount();
        daemon.wait();
        assert_eq!(fixture.repair(), Vec::<String>::new(), "{errno}");
    }
}

/// ext4 turns itself read-only when it finds an error: reading goes on, changes are refused, the
/// daemon can be unmounted, and mounted again nothing is missing.
#[test]
fn a_filesystem_that_turns_read_only_harms_nothing() {
    let env = TestEnv::new();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 16);
    disk.remount("errors=remount-ro");
    env.sh(
        "ibifs init disk/S --host archive-a.example.org; mkdir M; ibifs mount disk/S M
         mint M one > one; echo text > M/.mint/one/doc/file; sync -f disk
         device=$(findmnt -no SOURCE disk); echo 1 > /sys/fs/ext4/${device#/dev/}/trigger_fs_error",
    );
    env.prints("cat M/$(< one)/doc/file", "text");
    env.complains("mkdir M/.mint/two", "Read-only file system");
    env.complains("echo more > M/$(< one)/doc/more", "Read-only file system");
    env.prints("cat M/$(< one)/doc/file", "text");
    env.sh("ibifs umount M");
    disk.unmount();
    // It has noted the error for a check.
    env.run("e2fsck -fy disk.img");
    disk.mount();
    env.sh("ibifs mount disk/S M; mkdir M/.mint/two; ibifs umount M; ibifs fsck disk/S");
    env.prints("ibifs ls disk/S | wc -l", "3");
}
