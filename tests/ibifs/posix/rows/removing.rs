//! Removing names, and files that live on without one.

use super::{KINDS, Row, answers, make, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in KINDS.iter().chain(&["full", "none"]) {
        for user in ["root", "alice", "bob"] {
            let (unlink, rmdir) = match *kind {
                "dir" => ("EISDIR", "ok"),
                "full" => ("EISDIR", "ENOTEMPTY"),
                "none" => ("ENOENT", "ENOENT"),
                _ => ("ok", "ENOTDIR"),
            };
            for (call, expected) in [("unlink", unlink), ("rmdir", rmdir)] {
                rows.push(row(
                    format!("{call} of a {kind} by {user}"),
                    format!(
                        "{}; --; @{user} {call} name{}",
                        make(kind, "name"),
                        answers(expected)
                    ),
                ));
            }
        }
    }
    for (name, before, path, expected) in [
        ("a missing parent", "", "none/x", "ENOENT"),
        ("a file as parent", "open f O_CREAT", "f/x", "ENOTDIR"),
        ("a loop as parent", "symlink l l", "l/x", "ELOOP"),
        ("a name of 256 bytes", "", "~256", "ENAMETOOLONG"),
        ("a name of 255 bytes", "", "~255", "ENOENT"),
        ("a path of 4096 bytes", "", "~4096/x", "ENAMETOOLONG"),
        ("no name", "", "''", "ENOENT"),
    ] {
        for call in [
            "unlink", "rmdir", "chmod", "stat", "lstat", "readlink", "truncate", "access",
        ] {
            let more = match call {
                "chmod" => " 0600",
                "truncate" => " 0",
                "access" => " F",
                _ => "",
            };
            rows.push(row(
                format!("{call} with {name}"),
                format!("{before}; --; {call} {path}{more} => {expected}"),
            ));
        }
    }
    for (name, script) in OTHERS {
        rows.push(row(*name, script));
    }
    rows
}

const OTHERS: &[(&str, &str)] = &[
    (
        "rmdir of dots",
        "mkdir d; --; rmdir d/. => EINVAL; rmdir d/.. => ENOTEMPTY; rmdir . => EINVAL; unlink . => EISDIR; unlink .. => EISDIR",
    ),
    (
        "rmdir of a link to a directory",
        "mkdir d; symlink d l; --; rmdir l => ENOTDIR; rmdir l/ => ENOTDIR; unlink l",
    ),
    (
        "unlink with a slash behind it",
        "open f O_CREAT; mkdir d; --; unlink f/ => ENOTDIR; unlink d/ => EISDIR; rmdir d/",
    ),
    (
        "a removed name can be made anew",
        "open f O_CREAT; --; unlink f; mkdir f; rmdir f; symlink x f; unlink f; mknod f fifo",
    ),
    (
        "a mount point is busy",
        "mkdir d; mount d; --; rmdir d => EBUSY; rename d e => EBUSY; umount d; rmdir d",
    ),
    (
        "an open file without a name",
        "a: open f O_CREAT|O_RDWR 0644; write a text; unlink f; --; fstat a => reg 0644 0 0 n0 s4; pread a 0 9 => 'text'; pwrite a 4 more => 4; ftruncate a 6; pread a 0 9 => 'textmo'; fchmod a 0600; fchown a alice bob; futimes a 5.7 9.8; fstat a => reg 0600 60001 60002 n0 s6; fsetx a user.x y; fgetx a user.x => 'y'; sync a; linkfd a g => ENOENT; linkf fd:a g => ENOENT",
    ),
    (
        "an open file without a name is written by a mapping",
        "a: open f O_CREAT|O_RDWR; write a text; m: map a 4096 shared rw; unlink f; --; mapwrite m 0 TEXT; pread a 0 9 => 'TEXT'; close a; mapped m 0 4 => 'TEXT'",
    ),
    (
        "an open file without a name keeps its locks",
        "a: open f O_CREAT|O_RDWR; b: open f O_RDWR; unlink f; --; oflock a write 0 0; oflock b write 0 0 => EAGAIN; flock a exclusive; flock b shared => EAGAIN",
    ),
    (
        "an open file replaced by a rename",
        "a: open f O_CREAT|O_RDWR; write a old; b: open g O_CREAT|O_RDWR; write b new; --; rename g f; pread a 0 9 => 'old'; fstat a => reg 0644 0 0 n0 s3; cat f => 'new'; fstat b => reg 0644 0 0 n1 s3",
    ),
    (
        "an open file with another name left",
        "a: open f O_CREAT|O_RDWR; link f g; unlink f; --; write a text; cat g => 'text'; fstat a => reg 0644 0 0 n1 s4; linkf fd:a f; fstat a => reg 0644 0 0 n2 s4",
    ),
    (
        "an open file without a name in the place of a new one",
        "a: open f O_CREAT|O_RDWR; write a old; --; unlink f; b: open f O_CREAT|O_EXCL|O_RDWR; write b new; pread a 0 9 => 'old'; pread b 0 9 => 'new'; fstat a => reg 0644 0 0 n0 s3; fstat b => reg 0644 0 0 n1 s3",
    ),
    (
        "an open file without a name is opened anew",
        "a: open f O_CREAT|O_RDWR; write a text; unlink f; --; b: open fd:a O_RDWR; pread b 0 9 => 'text'; pwrite b 0 T; pread a 0 9 => 'Text'; open fd:a O_WRONLY|O_TRUNC; fstat b => reg 0644 0 0 n0 s0",
    ),
    (
        "an open file without a name is allocated and copied",
        "a: open f O_CREAT|O_RDWR; write a text; unlink f; b: open g O_CREAT|O_RDWR; --; fallocate a 0 0 8192; fstat a => reg 0644 0 0 n0 s8192; fallocate a PUNCH|KEEP 0 4096; copyrange b 0 a 0 4 => 0; copyrange a 0 b 0 100 => 100",
    ),
    (
        "an open file without a name by path through its descriptor",
        "a: open f O_CREAT|O_RDWR 0644; unlink f; --; chmod fd:a 0640; truncate fd:a 9; utimes fd:a 1.1 2.2; setx fd:a user.x y; chown fd:a alice alice; fstat a => reg 0640 60001 60001 n0 s9",
    ),
    (
        "a removed fifo, open",
        "mknod f fifo; a: open f O_RDWR|O_NONBLOCK; unlink f; --; write a text; read a 4 => 'text'; fstat a => fifo 0644 0 0 n0 s0",
    ),
    (
        "nothing below a removed directory",
        "mkdir d; chdir d; rmdir ../d; --; stat none => ENOENT",
    ),
];
