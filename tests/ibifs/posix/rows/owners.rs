//! Owners and groups.

use super::{KINDS, Row, answers, make, row};

/// Returns the answer of chown to a user for a file of alice's, whose group is staff.
fn expected(user: &str, uid: &str, gid: &str) -> &'static str {
    match (user, uid, gid) {
        ("root", ..) | (_, "-", "-") => "ok",
        ("alice", "-" | "alice", "-" | "alice" | "staff") => "ok",
        _ => "EPERM",
    }
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for user in ["root", "alice", "bob"] {
        for uid in ["-", "root", "alice", "bob"] {
            for gid in ["-", "root", "alice", "staff", "bob"] {
                for kind in ["reg", "dir"] {
                    rows.push(row(
                        format!("chown {uid}:{gid} of a {kind} of alice:staff by {user}"),
                        format!(
                            "{}; chown name alice staff; --; @{user} chown name {uid} {gid}{}",
                            make(kind, "name"),
                            answers(expected(user, uid, gid))
                        ),
                    ));
                }
            }
        }
    }
    for kind in KINDS {
        for user in ["root", "alice", "bob"] {
            for gid in ["staff", "bob", "-"] {
                rows.push(row(
                    format!("lchown -:{gid} of a {kind} of alice by {user}"),
                    format!(
                        "{}; lchown name alice alice; --; @{user} lchown name - {gid}{}",
                        make(kind, "name"),
                        answers(expected(user, "-", gid))
                    ),
                ));
            }
        }
    }
    for (user, gid) in [
        ("root", "bob"),
        ("alice", "staff"),
        ("alice", "bob"),
        ("bob", "bob"),
    ] {
        for kind in ["reg", "dir"] {
            rows.push(row(
                format!("fchown -:{gid} of an open {kind} of alice by {user}"),
                format!(
                    "{}; chown name alice alice; a: open name O_RDONLY; --; @{user} fchown a - {gid}{}",
                    make(kind, "name"),
                    answers(expected(user, "-", gid))
                ),
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
        "chown follows a link",
        "open f O_CREAT; symlink f l; --; chown l alice bob; stat f => reg 0644 60001 60002 n1 s0; lstat l => link 0777 0 0 n1 s1",
    ),
    (
        "lchown does not",
        "open f O_CREAT; symlink f l; --; lchown l alice bob; stat f => reg 0644 0 0 n1 s0; lstat l => link 0777 60001 60002 n1 s1",
    ),
    (
        "chown of a dangling link",
        "symlink none l; --; chown l alice alice => ENOENT; lchown l alice alice",
    ),
    (
        "chown through another name",
        "open f O_CREAT; link f g; --; chown f alice staff; stat g => reg 0644 60001 60100 n2 s0",
    ),
    (
        "what alice makes is hers",
        "--; @alice open f O_CREAT; @alice mkdir d; @alice symlink x l; @alice mknod p fifo; @alice bind s; stat f => reg 0644 60001 60001 n1 s0",
    ),
    (
        "what bob makes in alice's directory is his",
        "@alice mkdir d 0777; --; @bob open d/f O_CREAT; @bob mkdir d/e; stat d/f => reg 0644 60002 60002 n1 s0",
    ),
    (
        "a set-gid directory gives its group",
        "mkdir d; chown d root staff; chmod d 02777; --; @bob open d/f O_CREAT 0664; @bob mkdir d/e; @bob symlink x d/l; stat d/f => reg 0664 60002 60100 n1 s0; stat d/e => dir 2755 60002 60100 n2 s4096",
    ),
    (
        "a set-gid directory takes a set-gid bit off",
        "mkdir d; chown d root staff; chmod d 02777; --; @bob open d/f O_CREAT 02775; @alice open d/g O_CREAT 02775; @bob open d/h O_CREAT 02664; stat d/f => reg 0775 60002 60100 n1 s0; stat d/g => reg 2775 60001 60100 n1 s0",
    ),
    (
        "moved into a set-gid directory a group stays",
        "mkdir d; chown d root staff; chmod d 02777; @bob open f O_CREAT; --; @bob rename f d/f; stat d/f => reg 0644 60002 60002 n1 s0",
    ),
    (
        "given away, a file is no more alice's",
        "@alice open f O_CREAT; --; chown f bob bob; @alice chmod f 0600 => EPERM; @alice chown f - alice => EPERM; @alice utimes f 1.0 1.0 => EPERM",
    ),
    (
        "large numbers",
        "open f O_CREAT; --; chown f 4294967294 4294967294; stat f => reg 0644 4294967294 4294967294 n1 s0; chown f 2147483648 0",
    ),
];
