//! A read-only mount: nothing is changed, everything is read.

use super::{Row, row};

/// Begins the name of the row that reads an extended attribute.
pub const ATTRIBUTE: &str = "an attribute";

/// These are prepared while the mount is writable.
pub fn rows() -> Vec<Row> {
    let calls = [
        "open f O_WRONLY",
        "open f O_RDWR",
        "open f O_RDONLY|O_TRUNC",
        "open new O_CREAT|O_RDWR",
        "mkdir new",
        "symlink x new",
        "mknod new fifo",
        "mknod new reg",
        "link f new",
        "rename f new",
        "rename f d EXCHANGE",
        "unlink f",
        "rmdir d",
        "chmod f 0600",
        "chown f alice alice",
        "lchown l alice alice",
        "truncate f 0",
        "utimes f 1.0 1.0",
        "touch f",
        "setx f user.new y",
        "rmx f user.x",
        "setacl f u::rw-,g::r--,o::---",
        "access f W",
    ];
    let mut rows = Vec::new();
    for call in calls {
        for user in ["root", "alice"] {
            // Whether permission or the mount is asked first differs by call, not by filesystem.
            let expected = if user == "root" { "EROFS" } else { "*" };
            rows.push(row(
                format!("{call} as {user} where nothing may be written"),
                format!("{BEFORE}; --; @{user} {call} => {expected}"),
            ));
        }
    }
    for (name, script) in [
        (
            "reading",
            "cat f => ''; names d => e; readlink l => f; access f R",
        ),
        (ATTRIBUTE, "getx f user.x => 'y'"),
        (
            "what is there already",
            "mkdir d => EEXIST; open f O_CREAT|O_EXCL => EEXIST; symlink x f => EEXIST; open f O_CREAT|O_RDONLY",
        ),
        (
            "what is not there",
            "unlink none => EROFS; rmdir none => EROFS; rename none x => EROFS; link none x => ENOENT; chmod none 0600 => ENOENT; stat none => ENOENT",
        ),
        (
            "an opened fifo",
            "a: open p O_RDWR|O_NONBLOCK; write a x => 1",
        ),
    ] {
        rows.push(row(
            format!("{name} where nothing may be written"),
            format!("{BEFORE}; --; {script}"),
        ));
    }
    rows
}

const BEFORE: &str =
    "open f O_CREAT 0666; mkdir d 0777; mkdir d/e; symlink f l; mknod p fifo 0666; setx f user.x y";
