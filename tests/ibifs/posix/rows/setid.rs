//! Set-id bits: which calls, by whom, take them away; and the mask of an access control list.

use super::{Row, answers, row};

/// Alice as each class of user, and root: owner and group of the file.
const CLASSES: [(&str, &str, &str, &str); 4] = [
    ("the owner", "alice", "alice", "alice"),
    ("a member of the group", "alice", "bob", "staff"),
    ("another", "alice", "bob", "bob"),
    ("root", "root", "bob", "bob"),
];

/// The calls on the file `f`, whose open descriptor is `a`.
const CALLS: &[(&str, &str)] = &[
    ("write", "write a x"),
    ("pwrite at the end", "pwrite a 4 x"),
    ("append", "setfl a O_APPEND; @USER write a x"),
    ("write of nothing", "write a ''"),
    (
        "write with O_DIRECT",
        "b: open f O_RDWR|O_DIRECT => *; @USER direct-write b 0 4096 => *",
    ),
    (
        "write to a mapping",
        "m: map a 4096 shared rw; @USER mapwrite m 0 x; @USER msync m",
    ),
    ("truncate", "truncate f 2"),
    ("truncate to the same size", "truncate f 4"),
    ("ftruncate", "ftruncate a 2"),
    ("ftruncate beyond", "ftruncate a 9000"),
    ("open with O_TRUNC", "open f O_WRONLY|O_TRUNC"),
    ("fallocate", "fallocate a 0 0 8192"),
    ("fallocate keeping the size", "fallocate a KEEP 0 8192"),
    ("punch a hole", "fallocate a PUNCH|KEEP 0 2"),
    ("zero a range", "fallocate a ZERO 0 2"),
    ("copy a range", "copyrange s 0 a 0 3"),
    ("copy a file", "sendfile s a 3"),
    ("set an attribute", "setx f user.x y"),
    ("touch", "touch f"),
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, user, owner, group) in CLASSES {
        for mode in ["06777", "04777", "02767", "06666"] {
            for (name, call) in CALLS {
                rows.push(row(
                    format!("{name} by {class} of a file with {mode}"),
                    format!(
                        "s: open source O_CREAT|O_RDWR 0666; write s source; seek s 0 SET => 0
                         b: open f O_CREAT|O_RDWR 0666; write b text; chown f {owner} {group}; chmod f {mode}
                         @{user} a: open f O_RDWR; --; @{user} {}",
                        call.replace("USER", user)
                    ),
                ));
            }
        }
    }
    for mode in ["06777", "02767", "06755", "02745", "07777"] {
        for (user, uid, gid) in [
            ("root", "-", "-"),
            ("root", "bob", "-"),
            ("root", "-", "bob"),
            ("root", "alice", "alice"),
            ("alice", "-", "-"),
            ("alice", "alice", "-"),
            ("alice", "-", "staff"),
            ("alice", "alice", "alice"),
            ("bob", "-", "-"),
        ] {
            for kind in ["open f O_CREAT|O_RDWR", "mkdir f", "mknod f fifo"] {
                rows.push(row(
                    format!("chown {uid}:{gid} by {user}, mode {mode}, {kind}"),
                    format!(
                        "{kind}; chown f alice alice; chmod f {mode}; --; @{user} chown f {uid} {gid}{}",
                        // To whom the file is not, taking bits away is not allowed either.
                        if user == "bob" { " => *" } else { "" }
                    ),
                ));
            }
        }
    }
    for (user, expected) in [("root", "ok"), ("alice", "ok"), ("bob", "EPERM")] {
        for group in ["alice", "staff", "bob"] {
            for kind in ["open f O_CREAT|O_RDWR", "mkdir f"] {
                rows.push(row(
                    format!("an ACL set by {user} on a set-id file of alice:{group}, {kind}"),
                    format!(
                        "{kind}; chown f alice {group}; chmod f 06777; --
                         @{user} setacl f u::rwx,u:bob:r-x,g::r-x,m::rwx,o::r-x{}",
                        answers(expected)
                    ),
                ));
                rows.push(row(
                    format!("a plain ACL set by {user} on a set-id file of alice:{group}, {kind}"),
                    format!(
                        "{kind}; chown f alice {group}; chmod f 06777; --
                         @{user} setacl f u::rwx,g::r-x,o::r-x{}",
                        answers(expected)
                    ),
                ));
            }
        }
    }
    for (mode, mask) in [
        ("0700", "---"),
        ("0740", "r--"),
        ("0770", "rwx"),
        ("0610", "--x"),
    ] {
        let owner = if mode == "0610" { "rw-" } else { "rwx" };
        rows.push(row(
            format!("chmod {mode} sets the mask of an ACL"),
            format!(
                "open f O_CREAT; setacl f u::rwx,u:alice:rwx,g::r-x,m::rwx,o::---; --; chmod f {mode}
                 getacl f => u::{owner},u:60001:rwx,g::r-x,m::{mask},o::---"
            ),
        ));
    }
    rows
}
