//! Opening: every combination of flags with every kind of name.

use super::{Row, answers, make, row};

const KINDS: [&str; 6] = ["reg", "dir", "linked", "link", "fifo", "none"];

/// Flags, and what they answer for each of the kinds.
const FLAGS: &[(&str, [&str; 6])] = &[
    ("O_RDONLY", ["ok", "ok", "ok", "ENOENT", "ok", "ENOENT"]),
    (
        "O_WRONLY",
        ["ok", "EISDIR", "ok", "ENOENT", "ENXIO", "ENOENT"],
    ),
    ("O_RDWR", ["ok", "EISDIR", "ok", "ENOENT", "ok", "ENOENT"]),
    ("O_RDONLY|O_CREAT", ["ok", "EISDIR", "ok", "ok", "ok", "ok"]),
    ("O_RDWR|O_CREAT", ["ok", "EISDIR", "ok", "ok", "ok", "ok"]),
    (
        "O_WRONLY|O_CREAT|O_EXCL",
        ["EEXIST", "EEXIST", "EEXIST", "EEXIST", "EEXIST", "ok"],
    ),
    (
        "O_WRONLY|O_CREAT|O_TRUNC",
        ["ok", "EISDIR", "ok", "ok", "ENXIO", "ok"],
    ),
    (
        "O_WRONLY|O_CREAT|O_APPEND",
        ["ok", "EISDIR", "ok", "ok", "ENXIO", "ok"],
    ),
    (
        "O_RDWR|O_CREAT|O_NOFOLLOW",
        ["ok", "EISDIR", "ELOOP", "ELOOP", "ok", "ok"],
    ),
    (
        "O_WRONLY|O_TRUNC",
        ["ok", "EISDIR", "ok", "ENOENT", "ENXIO", "ENOENT"],
    ),
    (
        "O_RDONLY|O_TRUNC",
        ["ok", "EISDIR", "ok", "ENOENT", "ok", "ENOENT"],
    ),
    (
        "O_WRONLY|O_APPEND",
        ["ok", "EISDIR", "ok", "ENOENT", "ENXIO", "ENOENT"],
    ),
    (
        "O_DIRECTORY",
        ["ENOTDIR", "ok", "ENOTDIR", "ENOENT", "ENOTDIR", "ENOENT"],
    ),
    (
        "O_DIRECTORY|O_WRONLY",
        [
            "ENOTDIR", "EISDIR", "ENOTDIR", "ENOENT", "ENOTDIR", "ENOENT",
        ],
    ),
    (
        "O_DIRECTORY|O_NOFOLLOW",
        ["ENOTDIR", "ok", "ENOTDIR", "ENOTDIR", "ENOTDIR", "ENOENT"],
    ),
    // Older kernels make a file here.
    ("O_DIRECTORY|O_CREAT", ["*", "*", "*", "*", "*", "*"]),
    ("O_NOFOLLOW", ["ok", "ok", "ELOOP", "ELOOP", "ok", "ENOENT"]),
    ("O_PATH", ["ok", "ok", "ok", "ENOENT", "ok", "ENOENT"]),
    (
        "O_PATH|O_NOFOLLOW",
        ["ok", "ok", "ok", "ok", "ok", "ENOENT"],
    ),
    (
        "O_PATH|O_DIRECTORY",
        ["ENOTDIR", "ok", "ENOTDIR", "ENOENT", "ENOTDIR", "ENOENT"],
    ),
    (
        "O_RDWR|O_SYNC",
        ["ok", "EISDIR", "ok", "ENOENT", "ok", "ENOENT"],
    ),
    (
        "O_RDWR|O_DSYNC",
        ["ok", "EISDIR", "ok", "ENOENT", "ok", "ENOENT"],
    ),
    // Filesystems differ in whether they accept O_DIRECT.
    ("O_RDWR|O_DIRECT", ["*", "*", "*", "*", "*", "*"]),
    ("O_ACCMODE", ["*", "*", "*", "*", "*", "*"]),
    (
        "O_RDONLY|O_EXCL",
        ["ok", "ok", "ok", "ENOENT", "ok", "ENOENT"],
    ),
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (flags, expected) in FLAGS {
        for (kind, expected) in KINDS.iter().zip(expected) {
            for user in ["root", "alice"] {
                rows.push(row(
                    format!("open a {kind} with {flags} as {user}"),
                    format!(
                        "{}; --; @{user} open name {flags}|O_NONBLOCK 0640{}",
                        make(kind, "name"),
                        answers(expected)
                    ),
                ));
            }
        }
    }
    for (kind, expected) in KINDS
        .iter()
        .zip(["ok", "EISDIR", "ok", "ok", "ENXIO", "ok"])
    {
        if *kind != "fifo" {
            rows.push(row(
                format!("creat over a {kind}"),
                format!(
                    "{}; --; creat name 0601{}",
                    make(kind, "name"),
                    answers(expected)
                ),
            ));
        }
    }
    for (owner, expected) in [("alice", "ok"), ("bob", "EPERM"), ("root", "EPERM")] {
        for kind in ["reg", "dir"] {
            rows.push(row(
                format!("open a {kind} of {owner} with O_NOATIME as alice"),
                format!(
                    "{}; chown name {owner} {owner}; --; @alice open name O_RDONLY|O_NOATIME{}",
                    make(kind, "name"),
                    answers(expected)
                ),
            ));
        }
    }
    for (name, script) in DESCRIPTORS {
        rows.push(row(*name, script));
    }
    rows
}

/// The calls that an open file allows after a change of its name and mode.
const DESCRIPTORS: &[(&str, &str)] = &[
    (
        "a file made read only can be written by its maker",
        "--; @alice a: open f O_RDWR|O_CREAT|O_EXCL 0400; @alice write a text => 4; @alice open f O_WRONLY => EACCES",
    ),
    (
        "a file made without any mode can be read by its maker",
        "--; @alice a: open f O_RDWR|O_CREAT 0; @alice write a text; @alice pread a 0 9 => 'text'; @alice open f O_RDONLY => EACCES",
    ),
    (
        "reading goes on after the mode is gone",
        "a: open f O_CREAT|O_RDWR 0666; write a text; @alice b: open f O_RDONLY; chmod f 0; --; @alice pread b 0 4 => 'text'; @alice open f O_RDONLY => EACCES",
    ),
    (
        "writing goes on after the mode is gone",
        "a: open f O_CREAT|O_RDWR 0666; @alice b: open f O_WRONLY; chmod f 0; --; @alice write b text => 4; @alice ftruncate b 2; @alice open f O_WRONLY => EACCES",
    ),
    (
        "writing goes on after the owner is another",
        "@alice a: open f O_CREAT|O_RDWR 0600; chown f bob bob; --; @alice write a text => 4; @alice ftruncate a 3; @alice fchmod a 0666 => EPERM",
    ),
    (
        "listing goes on after the mode is gone",
        "mkdir d 0755; mkdir d/e; @alice a: open d O_RDONLY; chmod d 0; --; @alice listfd a => 1; @alice open d O_RDONLY => EACCES",
    ),
    (
        "a directory without search is entered by its descriptor no more",
        "mkdir d 0755; open d/f O_CREAT 0666; @alice a: open d O_RDONLY; chmod d 0; --; @alice stat fd:a/f => EACCES; @alice fchdir a => EACCES",
    ),
    (
        "a descriptor for reading does not write",
        "a: open f O_CREAT|O_RDONLY 0666; --; write a text => EBADF; ftruncate a 1 => EINVAL; fallocate a 0 0 4096 => EBADF; pwrite a 0 x => EBADF",
    ),
    (
        "a descriptor for writing does not read",
        "a: open f O_CREAT|O_WRONLY 0666; --; read a 4 => EBADF; pread a 0 4 => EBADF; map a 4096 shared r => EACCES",
    ),
    (
        "a descriptor with O_PATH does next to nothing",
        "open f O_CREAT 0666; a: open f O_PATH; --; read a 4 => EBADF; write a x => EBADF; fchmod a 0600 => EBADF; fchown a alice alice => EBADF; ftruncate a 0 => EBADF; sync a => EBADF; fstat a => reg 0666 0 0 n1 s0; fgetx a user.x => EBADF; flock a shared => EBADF; chmod fd:a 0640; setx fd:a user.x y",
    ),
    (
        "appending goes to the end",
        "a: open f O_CREAT|O_WRONLY|O_APPEND 0666; b: open f O_WRONLY|O_APPEND; --; write a one; write b two; write a three; cat f => 'onetwothree'",
    ),
    (
        "appending passes over the offset of pwrite",
        "a: open f O_CREAT|O_WRONLY|O_APPEND 0666; write a one; --; pwrite a 0 two; cat f => 'onetwo'",
    ),
    (
        "appending is switched on and off",
        "a: open f O_CREAT|O_RDWR 0666; write a one; --; setfl a O_APPEND; getfl a => 2 O_APPEND; seek a 0 SET; write a two; cat f => 'onetwo'; setfl a O_RDONLY; getfl a => 2 none; seek a 0 SET; write a X; cat f => 'Xnetwo'",
    ),
    (
        "truncating at open",
        "a: open f O_CREAT|O_RDWR 0666; write a text; --; open f O_WRONLY|O_TRUNC; fstat a => reg 0666 0 0 n1 s0; pread a 0 9 => ''",
    ),
    (
        "truncating at open needs write permission",
        "a: open f O_CREAT|O_RDWR 0644; write a text; --; @alice open f O_RDONLY|O_TRUNC => EACCES; @alice open f O_WRONLY|O_TRUNC => EACCES; cat f => 'text'",
    ),
    (
        "a file with no name is made and linked",
        "--; a: open . O_TMPFILE|O_RDWR 0640; write a text; fstat a => reg 0640 0 0 n0 s4; linkfd a f; cat f => 'text'; fstat a => reg 0640 0 0 n1 s4",
    ),
    (
        "a file with no name and O_EXCL cannot be linked",
        "--; a: open . O_TMPFILE|O_RDWR|O_EXCL 0640; linkfd a f => ENOENT",
    ),
    (
        "a file with no name needs write access",
        "--; open . O_TMPFILE => EINVAL; open . O_TMPFILE|O_WRONLY",
    ),
    (
        "a nameless file needs a directory",
        "open f O_CREAT; --; open f O_TMPFILE|O_RDWR => ENOTDIR; open g O_TMPFILE|O_RDWR => ENOENT",
    ),
    (
        "an open file's status flags",
        "a: open f O_CREAT|O_RDWR 0666; --; setfl a O_NONBLOCK; getfl a => 2 O_NONBLOCK",
    ),
    (
        "two descriptors have two offsets",
        "a: open f O_CREAT|O_RDWR 0666; write a abcdef; b: open f O_RDONLY; --; read b 2 => 'ab'; seek a 0 CUR => 6; read b 2 => 'cd'; seek a 1 SET => 1; read a 2 => 'bc'",
    ),
    (
        "opened anew through its descriptor",
        "a: open f O_CREAT|O_RDWR 0666; write a text; --; b: open fd:a O_RDONLY; read b 9 => 'text'; c: open fd:a O_WRONLY|O_TRUNC; cat f => ''",
    ),
    (
        "opened anew through its descriptor needs permission",
        "@alice a: open f O_CREAT|O_RDWR 0400; --; @alice open fd:a O_WRONLY => EACCES; @alice b: open fd:a O_RDONLY",
    ),
];
