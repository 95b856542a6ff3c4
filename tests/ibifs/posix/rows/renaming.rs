//! Renaming: every type onto every other, the flags of renameat2, and what cannot be renamed.

use super::{Row, answers, make, row};

const KINDS: [&str; 9] = [
    "reg", "dir", "full", "link", "fifo", "socket", "char", "block", "none",
];

fn is_directory(kind: &str) -> bool {
    kind == "dir" || kind == "full"
}

fn plain(from: &str, to: &str) -> &'static str {
    match (from, to) {
        ("none", _) => "ENOENT",
        (_, "none") => "ok",
        (from, "full") if is_directory(from) => "ENOTEMPTY",
        (from, to) if is_directory(from) && !is_directory(to) => "ENOTDIR",
        (from, to) if !is_directory(from) && is_directory(to) => "EISDIR",
        _ => "ok",
    }
}

fn with_flags(flags: &str, from: &str, to: &str) -> &'static str {
    match (flags, from, to) {
        (_, "none", _) => "ENOENT",
        ("NOREPLACE", _, "none") => "ok",
        ("NOREPLACE", ..) => "EEXIST",
        ("EXCHANGE", _, "none") => "ENOENT",
        ("EXCHANGE", ..) => "ok",
        _ => plain(from, to),
    }
}

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for from in KINDS {
        for to in KINDS {
            let before = format!("{}; {}; mkdir sub 0777", make(from, "old"), make(to, "new"));
            let mut push = |flags: &str, user: &str, expected: &str| {
                rows.push(row(
                    format!("rename a {from} onto a {to} as {user} {flags}"),
                    format!(
                        "{before}; --; @{user} rename old new {flags}{}",
                        answers(expected)
                    ),
                ));
            };
            push("", "root", plain(from, to));
            push("EXCHANGE", "alice", with_flags("EXCHANGE", from, to));
            if matches!(to, "none" | "reg" | "dir") {
                push("NOREPLACE", "bob", with_flags("NOREPLACE", from, to));
                push("WHITEOUT", "root", plain(from, to));
            }
        }
        // Into another directory.
        let expected = plain(from, "none");
        rows.push(row(
            format!("rename a {from} into another directory as alice"),
            format!(
                "{}; mkdir sub 0777; --; @alice rename old sub/new{}",
                make(from, "old"),
                // A directory that is not alice's has its `..` to write.
                answers(expected)
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
        "rename into itself",
        "mkdir d; mkdir d/e; --; rename d d/f => EINVAL; rename d d/e/f => EINVAL; rename d d/e => EINVAL",
    ),
    (
        "rename onto an ancestor",
        "mkdir d; mkdir d/e; mkdir d/e/f; --; rename d/e/f d/e => ENOTEMPTY; rename d/e/f d => ENOTEMPTY",
    ),
    (
        "exchange with an ancestor",
        "mkdir d; mkdir d/e; --; rename d d/e EXCHANGE => EINVAL; rename d/e d EXCHANGE => EINVAL",
    ),
    (
        "rename onto itself",
        "open f O_CREAT; --; rename f f; rename f f NOREPLACE => EEXIST; rename f f EXCHANGE",
    ),
    (
        "rename onto another name of the same file",
        "open f O_CREAT; link f g; --; rename f g; stat f => reg 0644 0 0 n2 s0; stat g => reg 0644 0 0 n2 s0",
    ),
    (
        "rename onto another name takes a count",
        "open f O_CREAT; open g O_CREAT; link g h; --; rename f g; stat h => reg 0644 0 0 n1 s0",
    ),
    (
        "rename of dots",
        "mkdir d; --; rename d/. e => EBUSY; rename d/.. e => EBUSY; rename d . => EBUSY; rename . e => EBUSY",
    ),
    (
        "rename to a name of 255 bytes",
        "open f O_CREAT; --; rename f ~255; rename ~255 f",
    ),
    (
        "rename to a name of 256 bytes",
        "open f O_CREAT; --; rename f ~256 => ENAMETOOLONG; rename ~256 f => ENAMETOOLONG",
    ),
    (
        "rename to a path of 4096 bytes",
        "open f O_CREAT; --; rename f ~4096/g => ENAMETOOLONG; rename f ~4095/g",
    ),
    (
        "rename to and from nothing",
        "open f O_CREAT; --; rename f '' => ENOENT; rename '' g => ENOENT",
    ),
    (
        "rename below what is not there",
        "open f O_CREAT; --; rename f none/g => ENOENT; rename none/f g => ENOENT",
    ),
    (
        "rename below a file",
        "open f O_CREAT; open g O_CREAT; --; rename f g/h => ENOTDIR; rename g/h f => ENOTDIR",
    ),
    (
        "rename below a loop",
        "open f O_CREAT; symlink l l; --; rename f l/g => ELOOP; rename l/f g => ELOOP; rename l m",
    ),
    (
        "rename with a slash behind it",
        "open f O_CREAT; mkdir d; --; rename f/ g => ENOTDIR; rename f g/ => ENOTDIR; rename d/ e/; rename e f/ => ENOTDIR",
    ),
    (
        "rename with flags that exclude each other",
        "open f O_CREAT; open g O_CREAT; --; rename f g NOREPLACE|EXCHANGE => EINVAL; rename f g WHITEOUT|EXCHANGE => EINVAL; rename f g UNKNOWN => EINVAL",
    ),
    (
        "exchange of two directories",
        "mkdir d; mkdir e; open d/one O_CREAT; open e/two O_CREAT; --; rename d e EXCHANGE; names d => two; names e => one",
    ),
    (
        "exchange of a directory and a file below another",
        "mkdir d; mkdir d/e; open f O_CREAT; --; rename d/e f EXCHANGE; stat d => dir 0755 0 0 n2 s4096; lstat f => dir 0755 0 0 n2 s4096; lstat d/e => reg 0644 0 0 n1 s0",
    ),
    (
        "a whiteout stays behind",
        "open f O_CREAT; --; rename f g WHITEOUT; lstat f => char 0000 0 0 n1 s0",
    ),
    (
        "a whiteout stays behind for alice",
        "@alice open f O_CREAT; --; @alice rename f g WHITEOUT; lstat f => char 0000 60001 60001 n1 s0",
    ),
    (
        "rename of an open file",
        "a: open f O_CREAT|O_RDWR; --; rename f g; write a text; cat g => 'text'; fstat a => reg 0644 0 0 n1 s4",
    ),
    (
        "rename of an open directory",
        "mkdir d; a: open d O_RDONLY; --; rename d e; mkdir fd:a/x; names e => x; listfd a => 1",
    ),
    (
        "rename of a directory that is the working one",
        "mkdir d; --; chdir d; rename ../d ../e; mkdir x; chdir ../e/x",
    ),
    (
        "rename onto an open directory",
        "mkdir d; mkdir e; a: open e O_RDONLY; --; rename d e; fstat a => dir 0755 0 0 n0 s4096; mkdir fd:a/x => ENOENT",
    ),
    (
        "rename needs write on the old directory",
        "mkdir d 0755; open d/f O_CREAT 0666; --; @alice rename d/f g => EACCES; @alice rename d/f d/g => EACCES",
    ),
    (
        "rename needs write on the new directory",
        "mkdir d 0755; @alice open f O_CREAT 0666; --; @alice rename f d/g => EACCES",
    ),
    (
        "rename of a directory that is not alice's",
        "mkdir d 0755; mkdir e 0777; --; @alice rename d f; @alice rename f e/f => EACCES",
    ),
    (
        "rename of a directory that is alice's",
        "@alice mkdir d 0755; mkdir e 0777; --; @alice rename d e/f; stat e => dir 0777 0 0 n3 s4096",
    ),
    (
        "exchange of directories that are not alice's",
        "mkdir d 0755; mkdir e 0777; mkdir e/d 0755; --; @alice rename d e/d EXCHANGE => EACCES",
    ),
    (
        "times stay, change times do not",
        "open f O_CREAT; utimes f 1.1 2.2; mkdir d; --; rename f d/f",
    ),
    (
        "attributes stay",
        "open f O_CREAT 0640; setx f user.x y; setacl f u::rw-,u:alice:r--,g::r--,m::r--,o::---; --; rename f g; getx g user.x => 'y'; getacl g => u::rw-,u:60001:r--,g::r--,m::r--,o::---",
    ),
];
