//! Mounting as an ordinary user, and where FUSE is not to be had.

use crate::support::World;

/// Runs a script as an ordinary user with a /dev of its own, which holds /dev/fuse as Debian has it
/// unless `prepare` takes it away.
fn as_user(world: &World, prepare: &str, script: &str) -> std::process::Output {
    std::fs::write(world.root().join("script"), script).expect("a script");
    world.run(&format!(
        "mkdir -p bin home; cp $(command -v ibifs) bin; chmod 777 . home
         unshare -m bash -c '
             mount -t tmpfs none /dev
             for n in null:1:3 zero:1:5 urandom:1:9 fuse:10:229; do
                 IFS=: read -r name major minor <<< $n
                 mknod -m 666 /dev/$name c $major $minor
             done
             ln -s /proc/self/fd /dev/fd
             {prepare}
             export HOME=$PWD/home PATH=$PWD/bin:/usr/bin:/bin
             exec setpriv --reuid 65534 --regid 65534 --clear-groups bash -eu script'"
    ))
}

#[track_caller]
fn says(output: &std::process::Output, status: i32, printed: &str, complaint: &str) {
    let told = (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned(),
        String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned(),
    );
    assert_eq!(
        told,
        (Some(status), printed.to_owned(), complaint.to_owned())
    );
}

/// An ordinary user mounts through fusermount3, mints, deposits and unmounts; what it makes is its
/// own.
#[test]
fn an_ordinary_user_mounts_through_fusermount3() {
    let world = World::new();
    let output = as_user(
        &world,
        "",
        "cd home; ibifs init S --host u.example.org > /dev/null; mkdir m; ibifs mount S m
         mkdir m/.mint/x; echo text > m/.mint/x/doc/file; cat m/.mint/$(readlink m/.mint/.x)/doc/file
         mkdir -p tree/doc; echo more > tree/doc/file; cp -a tree m/.mint/
         cat m/.mint/tree/doc/file; stat -c %U m/.mint/tree/doc/file m/.mint/x/.ibi
         cmp m/.mint/x/doc/file S/col/$(ibifs ls m example.org --json | grep -o 'example[^\"]*' | sed -n 2p)/doc/file
         ibifs umount m; ibifs fsck S",
    );
    says(
        &output,
        0,
        "text\nmore\nnobody\nnobody\n3 items, 0 findings",
        "",
    );
}

/// Without /dev/fuse, without the right to open it, without fusermount3: each says what to do, with
/// exit status 6.
#[test]
fn where_fuse_is_not_to_be_had_the_remedy_is_named() {
    let mount = "cd home; test -e S || ibifs init S --host u.example.org > /dev/null; mkdir -p m; ibifs mount S m";
    let world = World::new();
    says(
        &as_user(&world, "rm /dev/fuse", mount),
        6,
        "",
        "ibifs: cannot open /dev/fuse: No such file or directory (os error 2); load the module with \
         'modprobe fuse', in a container pass the device in (--device /dev/fuse)",
    );
    says(
        &as_user(&world, "chmod 600 /dev/fuse", mount),
        6,
        "",
        "ibifs: cannot open /dev/fuse: Permission denied (os error 13); let everybody open it, as \
         Debian does: 'chmod 666 /dev/fuse' as root",
    );
    says(
        &as_user(
            &world,
            "",
            &mount.replace("ibifs mount", "PATH=../bin ibifs mount"),
        ),
        6,
        "",
        "ibifs: an ordinary user needs fusermount3 to mount; install it with 'apt install fuse3'",
    );
}
