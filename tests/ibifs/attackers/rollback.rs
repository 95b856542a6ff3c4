//! The disk of a store is set back to an earlier state, while nothing of what was minted since is known
//! to it any more: no name is handed out twice, as long as the clock is right.

use crate::support::{Disk, Format, TestEnv};

/// `mints COUNT FILE` mints in the mount and writes both names of each down; `minted STORE COUNT FILE`
/// mounts for it. `rested STORE` has nothing minted in it for months: the first name is the minute's.
const MINTED: &str = r#"
mints() {
    python3 - $1 <<'END' >> $2
import os, sys
for number in range(int(sys.argv[1])):
    name = f'M/.mint/n{number}'
    os.mkdir(name)
    for form in ('rep', 'ibip'):
        print(os.getxattr(name, f'user.ibi.{form}').decode())
END
}
minted() { ibifs mount $1 M; mints $2 $3; ibifs umount M; }
rested() {
    sed -i 's/^last .*/last 2026-01-01T00:00:00Z/' $1/ledger
    in_database $1/relations.sqlite3 "update ledger set last='2026-01-01T00:00:00Z'"
}
"#;

/// The number of items minted before and after.
const MANY: usize = 200;

fn script(env: &TestEnv, script: &str) {
    env.sh(&format!("{MINTED}{script}"));
}

/// The names minted before and after are different ones.
#[track_caller]
fn none_twice(env: &TestEnv) {
    env.prints("cat before after | wc -l", &(4 * MANY).to_string());
    env.prints("cat before after | sort | uniq -d", "");
}

fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir M; ibifs init S --host archive-a.example.org --ip 192.0.2.1");
    env
}

/// The nightly copy of many sites, of a mounted store, put back by the same means in the same minute.
#[test]
fn an_rsync_of_a_mounted_store_is_put_back() {
    for options in ["-aHAX", "-aHAX --inplace", "-aHAX --checksum"] {
        let env = environment();
        script(
            &env,
            &format!(
                "rested S; ibifs mount S M; rsync -aHAX S/ copy/
                 mints {MANY} before; ibifs umount M
                 rsync {options} --delete copy/ S/; minted S {MANY} after 2> printed
                 grep -q 'this store was copied or restored' printed"
            ),
        );
        none_twice(&env);
    }
}

/// The same by `cp -a`, over what is there and in its place, of a store at rest and of a mounted one.
#[test]
fn a_cp_is_put_back() {
    let back = [
        "cp -a copy/. S/",
        "rm -r S; cp -a copy S",
        "rm -r S; mv copy S",
    ];
    for (number, back) in back.iter().enumerate() {
        let env = environment();
        let copy = match number % 2 {
            0 => "ibifs mount S M; cp -a S copy",
            _ => "cp -a S copy; ibifs mount S M",
        };
        script(
            &env,
            &format!(
                "rested S; {copy}; mints {MANY} before; ibifs umount M; {back}
                 minted S {MANY} after 2> printed; grep -q 'this store was copied or restored' printed"
            ),
        );
        none_twice(&env);
    }
}

/// A disk that is set back as a whole, as by the snapshot of a volume or of a virtual machine, cannot
/// know it: nothing distinguishes its state from that of a store that rested meanwhile.
#[test]
fn a_disk_is_set_back() {
    for format in [Format::Ext4, Format::Xfs] {
        for is_mounted in [true, false] {
            let env = TestEnv::new();
            let size = if format == Format::Xfs { 300 } else { 96 };
            let disk = Disk::new(env.root(), "disk", format, size);
            env.sh("mkdir M; ibifs init disk/S --host archive-a.example.org --ip 192.0.2.1");
            script(&env, "rested disk/S");
            if is_mounted {
                env.sh("ibifs mount disk/S M; sync -f disk; fsfreeze -f disk
                     cp --sparse=always disk.img snapshot; fsfreeze -u disk");
            } else {
                disk.unmount();
                env.sh("cp --sparse=always disk.img snapshot");
                disk.mount();
                env.sh("ibifs mount disk/S M");
            }
            script(&env, &format!("mints {MANY} before; ibifs umount M"));
            disk.unmount();
            env.sh("mv snapshot disk.img");
            disk.mount();
            script(&env, &format!("minted disk/S {MANY} after"));
            none_twice(&env);
        }
    }
}

/// Commands hand out no name twice: on a store at rest, at every granularity, and the one that makes a store.
#[test]
fn commands_hand_out_nothing_twice() {
    for granularity in ["1", "1/10", "1/1000", "1/1000000000"] {
        let env = TestEnv::new();
        script(
            &env,
            &format!(
                "make() {{ ibifs init S --host archive-a.example.org --ip 192.0.2.1 --granularity {granularity} --json |
                         jq -r '.archiveservice[]'; }}
                 make > before; cp -a S copy; for i in 1 2; do ibifs mint S; done >> before
                 rm -r S; cp -a copy S; for i in 1 2; do ibifs mint S; done > after
                 rm -r S; make >> after; ibifs mint S >> after"
            ),
        );
        env.prints("cat before after | wc -l", "14");
        env.prints("cat before after | sort | uniq -d", "");
    }
}
