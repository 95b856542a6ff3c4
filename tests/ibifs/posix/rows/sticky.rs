//! Sticky directories: who owns the directory, the file, or neither.

use super::{Row, answers, links_are_protected, make, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for mode in ["01777", "01775"] {
        for holder in ["root", "alice", "bob"] {
            for owner in ["alice", "bob"] {
                for user in ["root", "alice", "bob"] {
                    let group = mode == "01775";
                    let may_write = user == "root" || user == holder || !group || user == "alice";
                    let allowed = match () {
                        () if !may_write => "EACCES",
                        () if mode == "0777" || user == "root" => "ok",
                        () if user == holder || user == owner => "ok",
                        () => "EPERM",
                    };
                    for (kind, call) in [
                        ("reg", "unlink d/name"),
                        ("dir", "rmdir d/name"),
                        ("fifo", "rename d/name d/new"),
                        ("dir", "rename d/name d/new"),
                        ("link", "rename d/own d/name"),
                        ("reg", "rename d/own d/name EXCHANGE"),
                        ("reg", "rename d/name moved"),
                    ] {
                        rows.push(row(
                            format!("{call}, a {kind} of {owner}, in a directory of {holder} with {mode}, by {user}"),
                            format!(
                                "mkdir d; {}; lchown d/name {owner} {owner}; open d/own O_CREAT; chown d/own {user} {user}
                                 chown d {holder} staff; chmod d {mode}; --; @{user} {call}{}",
                                make(kind, "d/name"),
                                answers(allowed)
                            ),
                        ));
                    }
                }
            }
        }
    }
    for (what, before, expected) in [
        (
            "a file of bob that alice may only read",
            "open f O_CREAT; chown f bob bob; chmod f 0644",
            "EPERM",
        ),
        (
            "a file of bob that alice may write",
            "open f O_CREAT; chown f bob bob; chmod f 0666",
            "ok",
        ),
        (
            "a file of bob that is set-uid",
            "open f O_CREAT; chown f bob bob; chmod f 04777",
            "EPERM",
        ),
        (
            "a file of bob that is set-gid and executable",
            "open f O_CREAT; chown f bob bob; chmod f 02777",
            "EPERM",
        ),
        (
            "a file of bob that is set-gid and not executable",
            "open f O_CREAT; chown f bob bob; chmod f 02666",
            "ok",
        ),
        (
            "a fifo of bob",
            "mknod f fifo; chown f bob bob; chmod f 0666",
            "EPERM",
        ),
        (
            "a socket of bob",
            "mknod f socket; chown f bob bob; chmod f 0666",
            "EPERM",
        ),
        (
            "a device of bob",
            "mknod f char; chown f bob bob; chmod f 0666",
            "EPERM",
        ),
        ("a link of bob", "symlink x f; lchown f bob bob", "EPERM"),
        (
            "her own fifo",
            "mknod f fifo; chown f alice alice; chmod f 0",
            "ok",
        ),
        ("her own link", "symlink x f; lchown f alice alice", "ok"),
        (
            "her own file without any mode",
            "open f O_CREAT; chown f alice alice; chmod f 0",
            "ok",
        ),
        (
            "a file of staff that she may write",
            "open f O_CREAT; chown f bob staff; chmod f 0660",
            "ok",
        ),
        (
            "a file of staff that she may only read",
            "open f O_CREAT; chown f bob staff; chmod f 0640",
            "EPERM",
        ),
    ] {
        for sticky in ["0777", "01777"] {
            let expected = match expected {
                "EPERM" if !links_are_protected() => "ok",
                other => other,
            };
            rows.push(row(
                format!("alice links to {what} in a directory with {sticky}"),
                format!(
                    "{before}; mkdir d {sticky}; --; @alice link f d/g{}",
                    answers(expected)
                ),
            ));
        }
    }
    // The kernel's settings decide whether others' files in such directories are opened.
    for (kind, call) in [
        ("reg", "open d/name O_RDWR|O_CREAT 0666"),
        ("fifo", "open d/name O_RDWR|O_CREAT|O_NONBLOCK 0666"),
        ("linked", "open d/name O_RDONLY"),
    ] {
        for mode in ["01777", "01770", "0777"] {
            rows.push(row(
                format!("alice opens a {kind} of bob in a directory with {mode}"),
                format!(
                    "mkdir d; {}; lchown d/name bob bob; chown d root staff; chmod d {mode}; --; @alice {call} => *",
                    make(kind, "d/name")
                ),
            ));
        }
    }
    rows
}
