//! Times: setting them, and what changes them.

use super::{KINDS, Row, answers, make, row};

/// Alice as owner, as another who may write, and as another who may not; and root.
const CLASSES: [(&str, &str, &str, &str); 4] = [
    ("the owner", "alice", "alice", "0400"),
    ("another who may write", "alice", "bob", "0666"),
    ("another who may not write", "alice", "bob", "0644"),
    ("root", "root", "bob", "0"),
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, user, owner, mode) in CLASSES {
        for (accessed, changed) in [
            ("now", "now"),
            ("omit", "omit"),
            ("now", "omit"),
            ("omit", "now"),
            ("1.5", "2.7"),
            ("omit", "3.9"),
            ("4.1", "omit"),
            ("now", "5.5"),
        ] {
            let expected = match (class, accessed, changed) {
                ("the owner" | "root", ..) | (_, "omit", "omit") => "ok",
                ("another who may write", "now", "now") => "ok",
                ("another who may not write", "now", "now") => "EACCES",
                _ => "EPERM",
            };
            for (call, before) in [("utimes f", ""), ("futimes a", "; a: open f O_RDONLY")] {
                rows.push(row(
                    format!("{call} {accessed} {changed} by {class}"),
                    format!(
                        "open f O_CREAT{before}; chown f {owner} {owner}; utimes f 7.0 8.0; chmod f {mode}; --
                         @{user} {call} {accessed} {changed}{}",
                        answers(expected)
                    ),
                ));
            }
        }
    }
    for kind in KINDS {
        for (accessed, changed) in [
            ("0.0", "0.1"),
            ("-1.0", "-1.999999999"),
            ("-1000000000.5", "-2.1"),
            ("2147483648.0", "4294967296.7"),
            ("9000000000.123456789", "1.000000001"),
        ] {
            rows.push(row(
                format!("lutimes {accessed} {changed} of a {kind}"),
                format!(
                    "{}; --; lutimes name {accessed} {changed}",
                    make(kind, "name")
                ),
            ));
        }
    }
    for (name, call) in CHANGES {
        rows.push(row(
            format!("what changes: {name}"),
            format!("{CHANGED}; --; {call}"),
        ));
    }
    for (name, script) in OTHERS {
        rows.push(row(*name, script));
    }
    rows
}

/// The files that exist before a change.
const CHANGED: &str = "a: open f O_CREAT|O_RDWR 0666; write a text; open g O_CREAT; mkdir d; mkdir d/e; open d/f O_CREAT
    symlink f l; mknod p fifo; link f h; setx f user.x y; c: open d O_RDONLY; w: open f O_WRONLY; z: open g O_RDWR";

/// Single calls; the times of every path are compared afterwards.
const CHANGES: &[(&str, &str)] = &[
    ("nothing", "stat f"),
    ("reading", "pread a 0 4"),
    (
        "reading with O_NOATIME",
        "n: open f O_RDONLY|O_NOATIME; read n 4",
    ),
    ("reading a link", "readlink l"),
    ("following a link", "stat l"),
    ("listing", "names d"),
    ("writing", "pwrite a 0 x"),
    ("writing nothing", "pwrite a 0 ''"),
    ("writing beyond the end", "pwrite a 9000 x"),
    ("appending", "setfl a O_APPEND; write a x"),
    (
        "writing a mapping",
        "m: map a 4 shared rw; mapwrite m 0 x; msync m",
    ),
    ("reading a mapping", "m: map a 4 shared r; mapped m 0 4"),
    ("truncating", "truncate f 1"),
    ("truncating to the same size", "truncate f 4"),
    ("ftruncate", "ftruncate a 1"),
    ("ftruncate to the same size", "ftruncate a 4"),
    ("ftruncate by a writer", "ftruncate w 2"),
    ("opening with O_TRUNC", "open f O_WRONLY|O_TRUNC"),
    (
        "opening an empty file with O_TRUNC",
        "open g O_WRONLY|O_TRUNC",
    ),
    (
        "opening with O_CREAT what is there",
        "open f O_CREAT|O_RDWR",
    ),
    ("creating", "open new O_CREAT"),
    ("creating below", "open d/new O_CREAT"),
    ("mkdir below", "mkdir d/new"),
    ("symlink below", "symlink x d/new"),
    ("mknod below", "mknod d/new fifo"),
    ("link below", "link f d/new"),
    ("unlink of one of two names", "unlink h"),
    ("unlink below", "unlink d/f"),
    ("rmdir below", "rmdir d/e"),
    ("rename below", "rename d/f d/new"),
    ("rename of a directory", "rename d/e d/new"),
    ("rename of a directory to elsewhere", "rename d/e e"),
    ("rename onto another", "rename g f"),
    ("exchange", "rename g f EXCHANGE"),
    ("exchange with what is below", "rename g d/e EXCHANGE"),
    ("chmod", "chmod f 0600"),
    ("chmod to the same mode", "chmod f 0666"),
    ("chmod of a directory", "chmod d 0700"),
    ("chown", "chown f alice alice"),
    ("chown to the same owner", "chown f 0 0"),
    ("chown of nothing", "chown f - -"),
    ("lchown of a link", "lchown l alice alice"),
    ("setting an attribute", "setx f user.z y"),
    ("setting an attribute to the same value", "setx f user.x y"),
    ("removing an attribute", "rmx f user.x"),
    ("reading an attribute", "getx f user.x"),
    (
        "setting an ACL",
        "setacl f u::rw-,u:alice:r--,g::r--,m::r--,o::---",
    ),
    ("setting a plain ACL", "setacl f u::rw-,g::r--,o::---"),
    (
        "setting a default ACL",
        "setdefault d u::rwx,u:alice:r--,g::r-x,m::r-x,o::---",
    ),
    ("touching", "touch f"),
    ("setting the time of access", "utimes f 3.4 omit"),
    ("setting the time of change", "utimes f omit 3.4"),
    ("setting no time", "utimes f omit omit"),
    ("fallocate", "fallocate a 0 0 9000"),
    ("fallocate keeping the size", "fallocate a KEEP 0 90000"),
    ("fallocate of what is there", "fallocate a 0 0 4"),
    ("punching", "fallocate a PUNCH|KEEP 0 4"),
    ("zeroing", "fallocate a ZERO 0 4"),
    ("copying a range", "copyrange a 0 z 0 4 => 4"),
    ("copying an empty range", "copyrange z 0 a 0 4 => 0"),
    ("sendfile", "sendfile a z 4"),
    ("seeking", "seek a 0 HOLE => 4"),
    ("syncing", "sync a"),
    ("locking", "flock a exclusive; lock a write 0 0"),
    ("closing", "close a"),
    ("a refused write", "b: open f O_RDONLY; write b x => EBADF"),
    ("a refused chmod", "@alice chmod f 0600 => EPERM"),
    ("a refused mkdir", "mkdir d => EEXIST"),
    ("a refused rmdir", "rmdir d => ENOTEMPTY"),
    ("a refused rename", "rename g d => EISDIR"),
    ("a refused link", "link g f => EEXIST"),
];

const OTHERS: &[(&str, &str)] = &[
    (
        "nanoseconds out of range",
        "open f O_CREAT; --; utimes f 1.1000000000 2.0 => EINVAL; utimes f omit 2.2000000000 => EINVAL",
    ),
    (
        "utimes follows a link",
        "open f O_CREAT; symlink f l; --; utimes l 1.1 2.2",
    ),
    (
        "lutimes does not",
        "open f O_CREAT; symlink f l; --; lutimes l 1.1 2.2",
    ),
    (
        "lutimes of somebody else's link",
        "symlink x l; --; @alice lutimes l 1.0 1.0 => EPERM; @alice lutimes l now now",
    ),
    (
        "utimes of a dangling link",
        "symlink none l; --; utimes l 1.0 1.0 => ENOENT",
    ),
    (
        "times set on an open file stay after writing to another name",
        "a: open f O_CREAT|O_RDWR; write a x; --; futimes a 1.1 2.2; link f g; chmod g 0600",
    ),
    (
        "times set after a write stay at closing",
        "a: open f O_CREAT|O_RDWR; --; write a text; futimes a 1.1 2.2; close a",
    ),
    (
        "times set after a write to a mapping stay",
        "a: open f O_CREAT|O_RDWR; write a text; m: map a 4 shared rw; --; mapwrite m 0 TEXT; msync m; utimes f 1.1 2.2; unmap m; close a",
    ),
    (
        "beyond what a filesystem keeps",
        "open f O_CREAT; --; utimes f 99999999999.0 99999999999.5 => *; utimes f -99999999999.0 -99999999999.5 => *",
    ),
    (
        "touch of what may not be written",
        "open f O_CREAT 0444; --; @alice touch f => EACCES; touch f",
    ),
    (
        "touch of a read-only file by its owner",
        "@alice open f O_CREAT 0444; utimes f 1.0 1.0; --; @alice touch f",
    ),
];
