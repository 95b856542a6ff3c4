//! What an export needs of the disk that it writes to, and what is left there when it fails or is stopped.

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
