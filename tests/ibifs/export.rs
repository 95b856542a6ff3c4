//! The needs of an export on the disk that it writes to, and its remains there when it fails or is stopped.

use crate::support::{Disk, Format, TestEnv};

/// An Archive with an item of a file of 40 MiB that no compression makes smaller, `doc/large`. Its rep is in `x`.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > x; head -c 40M /dev/urandom > A/$(< x)/doc/large");
    env
}

#[test]
fn a_zip_file_needs_no_more_room_than_it_takes() {
    let env = environment();
    // Not enough for the item twice.
    let _disk = Disk::new(env.root(), "disk", Format::Ext4, 72);
    env.sh("ibifs export --bagit --zip A/$(< x) disk/zips; zip=$(find disk/zips -name '*.zip')
         unzip -qt $zip; unzip -p $zip '*/data/doc/large' | cmp - A/$(< x)/doc/large; unzip -l $zip | grep manifest-sha512");
    env.prints("ls -A disk/zips", "example.org");
}

#[test]
fn a_bag_that_exists_is_not_copied_again() {
    let env = environment();
    env.sh("ibifs export --bagit A/$(< x) bags; ibifs export --bagit --zip A/$(< x) bags");
    for format in ["--bagit", "--bagit --zip"] {
        env.sh(&format!(
            "no strace -f -e trace=openat,openat2 -o trace ibifs export {format} A/$(< x) bags > said
             grep 'exists already' said; grep .ibifs-export trace; no grep large trace"
        ));
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_left() {
    let env = environment();
    let _disk = Disk::new(env.root(), "disk", Format::Ext4, 24);
    env.sh("mint A y > y");
    for format in ["--bagit", "--bagit --zip", "--ocfl"] {
        env.sh(&format!(
            "no ibifs export {format} A/$(< x) A/$(< y) disk/to > said; test ! -s complaint
             test \"$(grep -c 'cannot write .*large.*No space left on device' said)\" = 1; grep '^2 items: 1 written' said
             find disk/to | tee found; no grep -e large -e ibifs-export found; rm -r disk/to"
        ));
    }
}

#[test]
fn a_version_needs_room_for_what_is_new() {
    let env = environment();
    env.sh("ln A/$(< x)/doc/large A/$(< x)/doc/large2");
    let _disk = Disk::new(env.root(), "disk", Format::Ext4, 72);
    env.sh(
        "ibifs export --ocfl A/$(< x) disk/root; echo text > A/$(< x)/doc/small; ibifs export --ocfl A/$(< x) disk/root > said
         grep '^version 2: ' said; find disk/root -name '*small*' -o -name '*large*' > found; test $(wc -l < found) = 2
         cmp A/$(< x)/doc/large $(grep large found); ibifs export --ocfl A/$(< x) disk/root | grep ^unchanged
         mkdir B; ibifs init B.store --host archive-b.example.org; ibifs mount B.store B; ibifs import B disk/root
         cmp A/$(< x)/doc/large B/$(< x)/doc/large2; cmp A/$(< x)/doc/small B/$(< x)/doc/small",
    );
}

#[test]
fn content_is_shared_where_the_filesystem_can() {
    let env = TestEnv::new();
    let _disk = Disk::new(env.root(), "disk", Format::Xfs, 320);
    env.sh(
        "ibifs init disk/S --host archive-a.example.org; mkdir M; ibifs mount disk/S M; mint M x > x
         head -c 60M /dev/urandom > M/$(< x)/doc/large; sync -f disk; df --output=used disk | tail -n 1 > before
         for format in --bagit --ocfl; do
             ibifs export $format M/$(< x) disk/$format; cmp $(find disk/$format -name large) M/$(< x)/doc/large
         done
         sync -f disk; test $(($(df --output=used disk | tail -n 1) - $(< before))) -lt 8192
         (cd disk/--bagit/$(< x); sha512sum -c --quiet manifest-sha512.txt); ibifs umount M",
    );
}

#[test]
fn an_export_that_was_stopped_is_continued() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mint A x > x; echo 1 > A/$(< x)/doc/f; ibifs export --ocfl A/$(< x) root; object=$(dirname $(find root -name v1))
         mkdir first; cp $object/inventory* first; echo 2 > A/$(< x)/doc/f; ibifs export --ocfl A/$(< x) root
         mkdir second; cp $object/inventory* second; echo $object > object",
    );
    // Stopped before the inventory of the object, and before the digest of that, was the new one.
    for left in ["first/*", "first/*.sha512"] {
        env.sh(&format!(
            "cp {left} $(< object); ibifs export --ocfl A/$(< x) root | grep ^unchanged
             for file in inventory.json inventory.json.sha512; do cmp second/$file $(< object)/$file; done"
        ));
    }
    env.sh(
        "cp first/* $(< object); echo 3 > A/$(< x)/doc/f; ibifs export --ocfl A/$(< x) root | grep '^version 3'
         cp first/* $(< object); rm $(< object)/v2/inventory.json; no ibifs export --ocfl A/$(< x) root > said
         grep 'v2.*which its inventory does not name' said",
    );
}

#[test]
fn what_a_killed_export_leaves_is_removed_by_the_next() {
    let env = environment();
    env.sh(
        "for format in --bagit '--bagit --zip' --ocfl; do
             strace -f -qq -o /dev/null -e trace=syncfs -e inject=syncfs:signal=KILL ibifs export $format A/$(< x) to && exit 1
             find to -name large -o -name '*.zip' -o -name v1 > left; grep ibifs-export/ left; no grep -v ibifs-export/ left
             ibifs export $format A/$(< x) to; find to > left; no grep ibifs-export left; rm -r to
         done",
    );
}

#[test]
fn a_package_that_is_there_after_a_power_cut_is_complete() {
    let env = environment();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 128);
    env.sh(
        "mint A y > y; head -c 3000000 /dev/urandom > A/$(< y)/doc/f; mkfifo lines
         strace -f -qq -o /dev/null -e trace=renameat2 -e inject=renameat2:delay_enter=20s:when=2 \
             ibifs export --bagit A/$(< y) A/$(< x) disk/bags > lines & echo $! > pid
         read line < lines; echo \"$line\"; sleep 0.5; dd if=/dev/zero of=disk/other bs=4k count=1 conv=fsync",
    );
    disk.cut();
    env.run("kill $(< pid); pkill -P $(< pid)");
    disk.unmount();
    disk.mount();
    env.sh("cd disk/bags/$(< y); sha512sum -c --quiet manifest-sha512.txt");
}
