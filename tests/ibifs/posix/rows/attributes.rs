//! Modes.

use super::{KINDS, Row, answers, make, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in ["reg", "dir", "fifo", "char"] {
        for (owner, group) in [
            ("alice", "alice"),
            ("alice", "staff"),
            ("alice", "root"),
            ("bob", "staff"),
        ] {
            for user in ["root", "alice", "bob"] {
                let expected = if user == "root" || user == owner {
                    "ok"
                } else {
                    "EPERM"
                };
                // A set-gid bit falls where the owner is not in the group.
                for mode in ["0", "0640", "02755", "06711", "01777"] {
                    rows.push(row(
                        format!("chmod {mode} of a {kind} of {owner}:{group} by {user}"),
                        format!(
                            "{}; chown name {owner} {group}; --; @{user} chmod name {mode}{}",
                            make(kind, "name"),
                            answers(expected)
                        ),
                    ));
                }
            }
        }
    }
    for kind in ["reg", "dir", "fifo"] {
        for (user, expected) in [("root", "ok"), ("alice", "ok"), ("bob", "EPERM")] {
            rows.push(row(
                format!("fchmod of an open {kind} by {user}"),
                format!(
                    "{}; chown name alice alice; a: open name O_RDONLY|O_NONBLOCK; --; @{user} fchmod a 02711{}",
                    make(kind, "name"),
                    answers(expected)
                ),
            ));
        }
    }
    for kind in KINDS {
        rows.push(row(
            format!("lchmod of a {kind}"),
            // Kernels before 6.6 have no such call.
            format!(
                "{}; --; lchmod name 0600 => *; lstat name => *",
                make(kind, "name")
            ),
        ));
    }
    for (name, script) in OTHERS {
        rows.push(row(*name, script));
    }
    rows
}

const OTHERS: &[(&str, &str)] = &[
    (
        "chmod follows a link",
        "open f O_CREAT; symlink f l; --; chmod l 0600; stat f => reg 0600 0 0 n1 s0; lstat l => link 0777 0 0 n1 s1",
    ),
    (
        "chmod of a dangling link",
        "symlink none l; --; chmod l 0600 => ENOENT",
    ),
    (
        "chmod through another name",
        "open f O_CREAT; link f g; stat g; --; chmod f 0640; stat g => reg 0640 0 0 n2 s0",
    ),
    (
        "chmod of an open file",
        "a: open f O_CREAT|O_RDWR; --; chmod f 0; fstat a => reg 0000 0 0 n1 s0; write a x => 1; open f O_RDWR",
    ),
    (
        "fchmod of a file open for writing",
        "@alice a: open f O_CREAT|O_WRONLY; --; @alice fchmod a 0444; @alice write a x => 1; @bob fchmod a 0600 => EPERM",
    ),
    (
        "a mode has twelve bits",
        "open f O_CREAT; --; chmod f 0177777; stat f => reg 7777 0 0 n1 s0",
    ),
    (
        "the sticky bit of an ordinary user's file",
        "@alice open f O_CREAT; --; @alice chmod f 01644; stat f => reg 1644 60001 60001 n1 s0",
    ),
    (
        "access by the real user",
        "open f O_CREAT 0600; --; @alice access f R => EACCES; access f R; access f X => EACCES; @alice access f F; @alice access none F => ENOENT",
    ),
    (
        "access of root to what is executable by nobody",
        "open f O_CREAT 0666; mkdir d 0; --; access f X => EACCES; access d X; access d R|W|X",
    ),
    (
        "laccess of a link",
        "symlink none l; --; laccess l F; access l F => ENOENT; laccess l R|W|X",
    ),
    (
        "statx tells the basic fields",
        "open f O_CREAT; mkdir d; --; statx f basic => 7ff; statx d basic => 7ff; statx f attributes",
    ),
    (
        "statx tells the block size",
        "open f O_CREAT; mkdir d; --; statx f blocksize => *; statx d blocksize => *",
    ),
    (
        "statx tells the time of birth",
        "open f O_CREAT; --; statx f birth => *",
    ),
    (
        "statfs tells the same filesystem",
        "open f O_CREAT; --; statfs . => *; statfs f => *",
    ),
    (
        "statfs needs search permission",
        "mkdir d 0700; mkdir d/e; --; @alice statfs d/e => EACCES; statfs none => ENOENT",
    ),
    (
        "syncing",
        "a: open f O_CREAT|O_RDWR; b: open . O_RDONLY; write a x; --; sync a; datasync a; sync b; datasync b; syncfs a; syncfs b; syncrange a",
    ),
    (
        "syncing what is read only",
        "open f O_CREAT; a: open f O_RDONLY; --; sync a; datasync a; syncfs a",
    ),
    (
        "a fifo is not synced",
        "mknod p fifo; a: open p O_RDWR|O_NONBLOCK; --; sync a => EINVAL",
    ),
    (
        "working directory",
        "mkdir d; mkdir d/e; --; chdir d/e; open f O_CREAT; chdir ../..; cat d/e/f => ''; chdir d/e/f => ENOTDIR; chdir none => ENOENT",
    ),
    (
        "working directory by descriptor",
        "mkdir d; open f O_CREAT; a: open d O_PATH; b: open f O_RDONLY; --; fchdir a; open g O_CREAT; fchdir b => ENOTDIR; chdir ..; cat d/g => ''",
    ),
    (
        "working directory that alice may not enter",
        "mkdir d 0700; --; @alice chdir d => EACCES; a: open d O_RDONLY; @alice fchdir a => EACCES; fchdir a; @alice stat f => EACCES",
    ),
];
