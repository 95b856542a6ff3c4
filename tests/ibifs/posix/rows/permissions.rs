//! Permissions by mode: owner, member of the group, other, root, for files and directories.

use super::{Row, answers, row};

/// Alice as each class of user, and root: the file's owner and group, and the bits that count.
const CLASSES: [(&str, &str, &str, &str, u32); 4] = [
    ("the owner", "alice", "alice", "staff", 6),
    ("a member of the group", "alice", "bob", "staff", 3),
    ("another", "alice", "bob", "root", 0),
    ("root", "root", "bob", "staff", 9),
];

/// Modes that distinguish the classes: all bits, none, one bit of the class alone, and all but its
/// own.
fn modes(shift: u32) -> Vec<u32> {
    let shift = shift.min(6);
    vec![
        0o777,
        4 << shift,
        2 << shift,
        1 << shift,
        0o777 & !(7 << shift),
    ]
}

/// The bits that a class has of a mode; root has all, execution only where any class has.
fn bits(mode: u32, shift: u32) -> u32 {
    match shift {
        9 => 0o6 | u32::from(mode & 0o111 != 0),
        shift => mode >> shift & 7,
    }
}

fn needs(needed: u32, mode: u32, shift: u32) -> &'static str {
    if bits(mode, shift) & needed == needed {
        "ok"
    } else {
        "EACCES"
    }
}

/// Calls on a file, and the bits they need.
const ON_FILES: &[(&str, u32)] = &[
    ("open f O_RDONLY", 4),
    ("open f O_WRONLY", 2),
    ("open f O_RDWR", 6),
    ("open f O_WRONLY|O_TRUNC", 2),
    ("open f O_RDONLY|O_TRUNC", 6),
    ("truncate f 2", 2),
    ("touch f", 2),
    ("access f R|W|X", 7),
    ("access f X", 1),
    ("eaccess f R", 4),
    ("getx f user.x", 4),
    ("setx f user.x new", 2),
];

/// Calls on a directory or below it, and the bits they need.
const ON_DIRECTORIES: &[(&str, u32)] = &[
    ("names d", 4),
    ("stat d/f", 1),
    ("open d/f O_RDONLY", 1),
    ("open d/new O_CREAT|O_RDWR", 3),
    ("mkdir d/new", 3),
    ("symlink x d/new", 3),
    ("mknod d/new fifo", 3),
    ("unlink d/f", 3),
    ("rmdir d/e", 3),
    ("rename d/f d/g", 3),
    ("rename d/f g", 3),
    ("link g d/g", 3),
    ("chdir d", 1),
    ("access d W", 2),
];

pub fn all() -> Vec<Row> {
    let mut rows = files();
    rows.extend(directories());
    rows.extend(components());
    rows
}

fn files() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, user, owner, group, shift) in CLASSES {
        for mode in modes(shift) {
            for (call, needed) in ON_FILES {
                let mut expected = needs(*needed, mode, shift);
                if *call == "touch f" && shift == 6 {
                    expected = "ok";
                }
                if call.starts_with("getx") && expected == "ok" {
                    expected = "*";
                }
                // Each call has a file of its own, so that what one does is not the other's doing.
                rows.push(row(
                    format!("{call} by {class}, mode {mode:04o}"),
                    format!(
                        "a: open f O_CREAT|O_RDWR; write a text; setx f user.x old; chown f {owner} {group}
                         chmod f 0{mode:o}; --; @{user} {call}{}",
                        answers(expected)
                    ),
                ));
            }
        }
    }
    rows
}

fn directories() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, user, owner, group, shift) in CLASSES {
        for mode in modes(shift) {
            for (call, needed) in ON_DIRECTORIES {
                // Root searches every directory.
                let has = bits(mode, shift) | u32::from(shift == 9);
                let expected = match has & needed == *needed {
                    true if call.starts_with("names") => "e f",
                    true => "ok",
                    false => "EACCES",
                };
                rows.push(row(
                    format!("{call} by {class}, mode {mode:04o}"),
                    format!(
                        "mkdir d; open d/f O_CREAT|O_RDWR 0666; mkdir d/e 0777; open g O_CREAT|O_RDWR 0666
                         chown d {owner} {group}; chmod d 0{mode:o}; --; @{user} {call}{}",
                        answers(expected)
                    ),
                ));
            }
        }
    }
    rows
}

/// Search permission on every component of a path.
fn components() -> Vec<Row> {
    let mut rows = Vec::new();
    for at in 0..4 {
        let path = ["a", "a/b", "a/b/c", "a/b/c/d"][at];
        for (what, expected) in [("0755", "ok"), ("0644", "EACCES"), ("0711", "ok")] {
            for call in ["open a/b/c/d/f O_RDONLY", "stat a/b/c/d/f", "chdir a/b/c/d"] {
                rows.push(row(
                    format!("{call} as alice where {path} has {what}"),
                    format!(
                        "mkdir a; mkdir a/b; mkdir a/b/c; mkdir a/b/c/d; open a/b/c/d/f O_CREAT 0666
                         chmod {path} {what}; --; @alice {call}{}",
                        answers(expected)
                    ),
                ));
            }
        }
    }
    rows.push(row(
        "a change of mode is seen at once by who has looked before",
        "mkdir d 0755; open d/f O_CREAT 0644; @alice stat d/f; --; chmod d 0700; @alice stat d/f => EACCES
         chmod d 0755; @alice stat d/f; chmod d/f 0; @alice open d/f O_RDONLY => EACCES
         chmod d/f 0444; @alice open d/f O_RDONLY",
    ));
    rows
}
