//! The reserve of a filesystem for root, and quotas, bind users of a mount as they do natively.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::support::{Disk, Format, TestEnv, User};

const MIB: u64 = 1 << 20;

/// Other tests may have a mount namespace that still has it.
const UNMOUNT: &str =
    "for again in $(seq 200); do umount A 2> /dev/null && break; sleep 0.05; done";

/// An ordinary user.
fn user() -> User {
    User::new(60_001, 60_001, &[])
}

/// A mounted store on a disk of its own of 64 MiB, with a directory of the user's in an item, by both
/// trees, and one beside the store.
struct Fixture {
    env: TestEnv,
    disk: Disk,
    native: PathBuf,
    views: [PathBuf; 2],
}

impl Fixture {
    fn new(passthrough: &str, options: &[&str]) -> Fixture {
        let env = TestEnv::new();
        let disk = Disk::made_with(env.root(), "disk", Format::Ext4, 64, options);
        let names = env.sh(&format!(
            "ibifs init disk/A.store --host archive-a.example.org > /dev/null; mkdir A
             ibifs mount -o passthrough={passthrough} disk/A.store A
             chmod 755 disk; mkdir disk/native; mkdir -p A/.mint/item/doc; chmod 755 A/.mint
             chown 60001:60001 disk/native A/.mint/item A/.mint/item/doc
             rep A/.mint/item; echo; ibip A/.mint/item"
        ));
        let views = names.split_whitespace();
        let views: Vec<_> = views.map(|it| env.root().join("A").join(it)).collect();
        let views = <[PathBuf; 2]>::try_from(views).expect("two names");
        Fixture {
            native: disk.directory().join("native"),
            views: views.map(|view| view.join("doc")),
            disk,
            env,
        }
    }

    /// Returns the number of free bytes, those for root included.
    fn free(&self) -> u64 {
        rustix::fs::sync();
        let printed = rustix::fs::statvfs(self.disk.directory()).expect("it is mounted");
        printed.f_bfree * printed.f_frsize
    }

    /// Runs something as the user, who is then refused more; gives how much it left free, and what it
    /// was refused with. What it made is removed again.
    #[track_caller]
    fn left(&self, directory: &Path, fill: Fill) -> (u64, Errno) {
        let before = self.free();
        let path = directory.join("f");
        let errno = user().run(|| fill(&path)).expect_err("there is no end");
        let left = self.free();
        user()
            .run(|| std::fs::remove_file(&path))
            .expect("it is the user's");
        let started = Instant::now();
        while self.free() + MIB < before {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "it is not freed"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        (left, errno)
    }
}

type Fill = fn(&Path) -> Result<(), Errno>;

fn made(path: &Path, append: bool) -> File {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(!append)
        .append(append)
        .create(true);
    options.mode(0o666).open(path).expect("it can be made")
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).expect("from the system")
}

fn writes(file: &File) -> Result<(), Errno> {
    let bytes = [7; 1 << 16];
    loop {
        std::io::Write::write_all(&mut &*file, &bytes).map_err(|error| errno(&error))?;
    }
}

const WAYS: [(&str, Fill); 6] = [
    ("write", |path| writes(&made(path, false))),
    ("append", |path| writes(&made(path, true))),
    ("pwrite beyond the end", |path| {
        let file = made(path, false);
        file.set_len(100 * MIB).expect("a hole");
        for at in 0.. {
            let written = file.write_all_at(&[7; 4096], at * 4096);
            written.map_err(|error| errno(&error))?;
        }
        Ok(())
    }),
    ("fallocate", |path| {
        let file = made(path, false);
        for at in 0.. {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), at * MIB, MIB)?;
        }
        Ok(())
    }),
    ("fallocate of all at once", |path| {
        let file = made(path, false);
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 50 * MIB)
    }),
    ("copy_file_range", |path| {
        let file = made(path, false);
        file.write_all_at(&[7; MIB as usize], 0)
            .expect("some space");
        for at in 1.. {
            let (mut from, mut to) = (0, at * MIB);
            let mut left = MIB as usize;
            while left > 0 {
                left -= rustix::fs::copy_file_range(
                    &file,
                    Some(&mut from),
                    &file,
                    Some(&mut to),
                    left,
                )?;
            }
        }
        Ok(())
    }),
];

#[test]
fn the_reserve_of_the_disk_is_not_for_users() {
    for passthrough in ["yes", "no"] {
        let fixture = Fixture::new(passthrough, &["-m", "30"]);
        for (way, fill) in WAYS {
            let (natively, refusal) = fixture.left(&fixture.native, fill);
            assert_eq!(refusal, Errno::NOSPC, "{way}");
            for view in &fixture.views {
                let shown = format!("{way} in {} passthrough={passthrough}", view.display());
                let (left, refusal) = fixture.left(view, fill);
                assert_eq!(refusal, Errno::NOSPC, "{shown}");
                assert!(
                    left.abs_diff(natively) < 2 * MIB,
                    "{shown}: {left} bytes are left, natively {natively}"
                );
            }
        }
    }
}

#[test]
fn pages_of_a_mapping_do_not_take_the_reserve() {
    for passthrough in ["yes", "no"] {
        let fixture = Fixture::new(passthrough, &["-m", "30"]);
        let reserve = {
            let printed = rustix::fs::statvfs(fixture.disk.directory()).expect("it is mounted");
            (printed.f_bfree - printed.f_bavail) * printed.f_frsize
        };
        for view in &fixture.views {
            // A write to a page for which there is no space may end the process (SIGBUS).
            let _ = fixture.env.run(&format!(
                "setpriv --reuid 60001 --regid 60001 --clear-groups \
                 xfs_io -f -c 'truncate 55m' -c 'mmap -w 0 55m' -c 'mwrite 0 55m' -c 'msync -s 0 55m' {}/f",
                view.display()
            ));
            let left = fixture.free();
            assert!(
                left + MIB > reserve,
                "{left} of {reserve}, passthrough={passthrough}"
            );
            user()
                .run(|| std::fs::remove_file(view.join("f")))
                .expect("it is the user's");
            fixture.free();
        }
    }
}

/// Small writes are refused, too, when only the reserve is left; root and the index continue.
#[test]
fn a_full_disk_refuses_users_everything_and_root_nothing() {
    for passthrough in ["yes", "no"] {
        // Small inodes, so that attributes and links need blocks.
        let fixture = Fixture::new(
            passthrough,
            &["-m", "30", "-I", "128", "-O", "^inline_data"],
        );
        let long = "l".repeat(200);
        fixture.env.sh(
            "chmod 777 disk disk/native A; mkdir disk/native/there; touch disk/native/there/file
             chown -R 60001:60001 disk/native; chmod 1777 A",
        );
        for view in &fixture.views {
            let doc = view.display();
            let fill = fixture.native.join("fill");
            let mut filler = None;
            user().run(|| {
                let _ = writes(&made(&view.join("file"), false));
                filler = Some(made(&fill, false));
            });
            let filler = filler.expect("a file");
            let (mut length, mut last) = (0, 0);
            // The filesystem frees removed files some time later, also between two attempts.
            let mut fill_up = || {
                for _ in 0..5 {
                    rustix::fs::sync();
                    user().run(|| {
                        for size in [MIB, 4096, 1024] {
                            let keep = FallocateFlags::empty();
                            while rustix::fs::fallocate(&filler, keep, length, size).is_ok() {
                                length += size;
                            }
                        }
                        // One block more of that file may need another one that says where it is.
                        for _ in 0..64 {
                            last += 1;
                            let small = fixture.native.join(format!("fill-{last}"));
                            let written = File::create(small).and_then(|mut it| it.write_all(b"x"));
                            if written.is_err() {
                                break;
                            }
                        }
                    });
                }
            };
            let as_user = "setpriv --reuid 60001 --regid 60001 --clear-groups";
            let root = fixture.env.root().display().to_string();
            for (what, undone) in [
                (
                    format!("mkdir {doc}/directory"),
                    format!("rmdir {doc}/directory"),
                ),
                (format!("ln -s {long} {doc}/link"), format!("rm {doc}/link")),
                (
                    format!("setfattr -n user.a -v {long}{long} {doc}/file"),
                    format!("setfattr -x user.a {doc}/file"),
                ),
                (
                    format!("mkdir {root}/A/.mint/other"),
                    format!("rmdir {root}/A/.mint/other"),
                ),
                (
                    format!("setfattr -n user.ibi.language -v en {doc}/.."),
                    format!("setfattr -x user.ibi.language {doc}/.."),
                ),
                (
                    format!("mkdir {root}/A/8JMKD3MGP7W"),
                    format!("rmdir {root}/A/8JMKD3MGP7W"),
                ),
            ] {
                // A block may be freed between the two; who could use the reserve would succeed each time.
                let mut complaint = String::new();
                for _ in 0..10 {
                    fill_up();
                    let output = fixture.env.run(&format!("{as_user} {what}"));
                    complaint = String::from_utf8_lossy(&output.stderr).into_owned();
                    if !output.status.success() {
                        break;
                    }
                    fixture.env.run(&format!("{as_user} {undone}"));
                }
                assert!(
                    complaint.contains("No space left on device"),
                    "{what}: {complaint} passthrough={passthrough}"
                );
            }
            drop(filler);
            // Root mints, and users can remove what they have.
            fixture.env.sh(&format!(
                "mkdir -p A/.mint/root/doc; echo text > A/.mint/root/doc/file; rm A/.mint/.root
                 {as_user} rm -f {doc}/file disk/native/fill disk/native/fill-*
                 for again in $(seq 200); do {as_user} mkdir {doc}/directory && break; sync; sleep 0.05; done 2> /dev/null
                 {as_user} rmdir {doc}/directory"
            ));
        }
        fixture
            .env
            .sh(&format!("{UNMOUNT}\nibifs fsck disk/A.store"));
    }
}

/// On kernels with quotas: each of the three kinds, for blocks and for inodes.
#[test]
fn quotas_bind_each_writer() {
    for passthrough in ["yes", "no"] {
        let env = TestEnv::new();
        let options = [
            "-O",
            "quota,project",
            "-E",
            "quotatype=usrquota:grpquota:prjquota",
        ];
        let script = format!(
            "truncate -s 64M disk.img; mkfs.ext4 -q -F {} disk.img; mkdir disk
             mount -o loop,usrquota,grpquota,prjquota disk.img disk",
            options.join(" ")
        );
        let mounted = env.run(&script);
        if !mounted.status.success() {
            println!(
                "SKIPPED: this kernel has no quotas: {}",
                String::from_utf8_lossy(&mounted.stderr)
            );
            return;
        }
        env.sh(&format!(
            "chmod 755 disk; ibifs init disk/A.store --host archive-a.example.org > /dev/null; mkdir A
             ibifs mount -o passthrough={passthrough} disk/A.store A; chmod 755 A/.mint
             mkdir -p A/.mint/item/doc A/.mint/project/doc
             chown 60001:60001 A/.mint/item/doc A/.mint/project/doc; chmod 1777 A
             for name in item project; do rep A/.mint/$name > $name; done"
        ));
        let as_user = "setpriv --reuid 60001 --regid 60001 --clear-groups";
        for (kind, directory) in [
            ("-u 60001", "item"),
            ("-g 60001", "item"),
            ("-P 7", "project"),
        ] {
            let doc = format!("A/$(<{directory})/doc");
            if kind.starts_with("-P") {
                env.sh("chattr -R -p 7 disk/A.store/col/$(rep A/.mint/project)
                     chattr -R +P disk/A.store/col/$(rep A/.mint/project)");
            }
            env.sh(&format!("setquota {kind} 0 8192 0 40 disk"));
            for fill in [
                format!("dd if=/dev/zero of={doc}/f bs=64k"),
                format!("fallocate -l 20M {doc}/f"),
                format!("for number in $(seq 100); do : > {doc}/f$number || exit 1; done"),
                format!("for number in $(seq 100); do mkdir {doc}/d$number || exit 1; done"),
            ] {
                env.complains(
                    &format!("{as_user} bash -c '{fill}'"),
                    "Disk quota exceeded",
                );
                env.sh(&format!(
                    "[ $(du -sk disk/A.store/col/$(rep A/.mint/{directory}) | cut -f1) -lt 9000 ]; rm -rf {doc}/*"
                ));
            }
            if !kind.starts_with("-P") {
                let fill = "for number in $(seq 100); do mkdir A/.mint/n$number || exit 1; done";
                env.complains(
                    &format!("{as_user} bash -c '{fill}'"),
                    "Disk quota exceeded",
                );
            }
            // The Archive continues to work, and so does its sidecar under a project's quota.
            env.sh(&format!(
                "mkdir A/.mint/root{directory}; rmdir A/.mint/root{directory}
                 setquota {kind} 0 0 0 0 disk; setfattr -n user.ibi.language -v en A/.mint/{directory}"
            ));
        }
        env.sh(&format!(
            "{UNMOUNT}\nibifs fsck disk/A.store; umount -l disk"
        ));
    }
}
