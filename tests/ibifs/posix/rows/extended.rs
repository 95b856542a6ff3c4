//! Extended attributes and access control lists.

use super::{KINDS, Row, answers, make, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in KINDS {
        let plain = kind == "reg" || kind == "dir";
        for user in ["root", "alice", "bob"] {
            for (space, expected) in [
                ("user.x", if plain { "ok" } else { "EPERM" }),
                ("trusted.x", if user == "root" { "ok" } else { "EPERM" }),
                ("security.x", "*"),
                ("system.x", "EOPNOTSUPP"),
                ("nonsense", "EOPNOTSUPP"),
                ("user.", "EINVAL"),
            ] {
                // On special files the kernel refuses before it looks at the name's end.
                let expected = match space {
                    "user." if !plain => "EPERM",
                    "system.x" | "nonsense" if user != "root" => "*",
                    _ => expected,
                };
                rows.push(row(
                    format!("lsetx {space} of a {kind} by {user}"),
                    format!(
                        "{}; lchown name alice alice; --; @{user} lsetx name {space} value{}
                         @{user} lgetx name {space} => *; @{user} lrmx name {space} => *",
                        make(kind, "name"),
                        answers(expected)
                    ),
                ));
            }
            let expected = match (kind, user) {
                ("link", _) => "EOPNOTSUPP",
                (_, "bob") => "EPERM",
                _ => "ok",
            };
            rows.push(row(
                format!("an ACL set on a {kind} by {user}"),
                format!(
                    "{}; lchown name alice alice; --; @{user} setacl name u::rwx,u:bob:r--,g::r-x,m::r-x,o::---{}",
                    match kind {
                        // setxattr follows links; a dangling one leads nowhere.
                        "link" => "mkdir d; symlink d name".to_owned(),
                        kind => make(kind, "name"),
                    },
                    answers(match (kind, user) {
                        ("link", "root") => "ok",
                        ("link", _) => "EPERM",
                        _ => expected,
                    })
                ),
            ));
        }
    }
    for (inherit, before) in [
        ("a named user", "u::rwx,u:alice:rwx,g::r-x,m::rwx,o::---"),
        ("a small mask", "u::rwx,u:alice:rwx,g::rwx,m::r--,o::r--"),
        ("the three plain entries", "u::rwx,g::r-x,o::---"),
        ("nothing for all", "u::---,g::---,o::---"),
        ("a named group", "u::rw-,g::r--,g:staff:rwx,m::rwx,o::--x"),
    ] {
        for mode in ["0777", "0640", "02770", "0"] {
            for user in ["root", "bob"] {
                for call in ["open d/f O_CREAT|O_RDWR", "mkdir d/f", "mknod d/f fifo"] {
                    rows.push(row(
                        format!("{call} {mode} by {user} under a default ACL with {inherit}"),
                        format!(
                            "mkdir d 0777; chmod d 0777; setdefault d {before}; --; umask 077 => *; @{user} {call} {mode}"
                        ),
                    ));
                }
            }
        }
    }
    for (name, script) in OTHERS {
        rows.push(row(*name, script));
    }
    rows
}

const OTHERS: &[(&str, &str)] = &[
    (
        "an attribute is there and gone",
        "open f O_CREAT; --; getx f user.x => ENODATA; rmx f user.x => ENODATA; setx f user.x one; getx f user.x => 'one'; setx f user.x two; getx f user.x => 'two'; rmx f user.x; getx f user.x => ENODATA",
    ),
    (
        "create and replace",
        "open f O_CREAT; --; setx f user.x a replace => ENODATA; setx f user.x a create; setx f user.x b create => EEXIST; setx f user.x c replace; getx f user.x => 'c'; setx f user.y c both => ENODATA",
    ),
    (
        "an empty value",
        "open f O_CREAT; --; setx f user.x ''; getx f user.x => ''; listx f => user.x",
    ),
    (
        "room for a value",
        "open f O_CREAT; setx f user.x value; --; getx f user.x 0 => 5 bytes; getx f user.x 4 => ERANGE; getx f user.x 5 => 'value'; listx f 0 => 7; listx f 6 => ERANGE; listx f 7 => 7",
    ),
    (
        "names of attributes at their limit",
        "open f O_CREAT; --; setx f user.nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn v; setx f ~256 v => ERANGE; getx f ~256 => ERANGE; setx f '' v => ERANGE",
    ),
    (
        "long values",
        "open f O_CREAT; --; setx f user.x ~1000; getx f user.x => 1000 bytes; setx f user.y ~2900 => *; setx f user.z ~4000 => *; setx f user.w ~65536 => *; getx f user.w => *; setx f user.v ~65537 => E2BIG; listx f => *",
    ),
    (
        "many attributes",
        "open f O_CREAT; --; setx f user.a ~100; setx f user.b ~100; setx f user.c ~100; setx f user.d ~100; setx f user.e ~100; setx f user.f ~100; listx f => user.a,user.b,user.c,user.d,user.e,user.f; rmx f user.c; listx f => user.a,user.b,user.d,user.e,user.f",
    ),
    (
        "through a descriptor",
        "a: open f O_CREAT|O_RDONLY; --; fsetx a user.x y; fgetx a user.x => 'y'; frmx a user.x; fgetx a user.x => ENODATA",
    ),
    (
        "through a link",
        "open f O_CREAT; symlink f l; --; setx l user.x y; getx f user.x => 'y'; lgetx l user.x => ENODATA; lsetx l trusted.x z; getx f trusted.x => ENODATA; lgetx l trusted.x => 'z'",
    ),
    (
        "through another name",
        "open f O_CREAT; link f g; --; setx f user.x y; getx g user.x => 'y'; rmx g user.x; getx f user.x => ENODATA",
    ),
    (
        "without permission to read",
        "open f O_CREAT; setx f user.x y; chmod f 0200; --; @alice getx f user.x => EACCES; @alice listx f => user.x",
    ),
    (
        "without permission to write",
        "open f O_CREAT 0644; --; @alice setx f user.x y => EACCES; @alice rmx f user.x => EACCES",
    ),
    (
        "with permission to write only",
        "open f O_CREAT 0622; chmod f 0222; --; @alice setx f user.x y; @alice getx f user.x => EACCES",
    ),
    (
        "on a sticky directory",
        "mkdir d; chmod d 01777; --; @alice setx d user.x y => EPERM; setx d user.x y",
    ),
    (
        "trusted ones are not shown to users",
        "open f O_CREAT; setx f trusted.x y; setx f user.x y; --; @alice listx f => user.x; listx f => trusted.x,user.x; @alice getx f trusted.x => ENODATA",
    ),
    (
        "security ones",
        "open f O_CREAT; setx f security.ibifs y; --; @alice getx f security.ibifs => 'y'; @alice setx f security.ibifs z => *; @alice rmx f security.ibifs => *; getx f security.ibifs => *",
    ),
    (
        "capabilities fall with a write",
        "program f 0755; setx f security.capability %01%00%00%02%00%04%00%00%00%00%00%00%00%00%00%00%00%00%00%00; --; lgetx f security.capability 100 => *; a: open f O_WRONLY; pwrite a 0 x; getx f security.capability => ENODATA",
    ),
    (
        "capabilities fall with a chown",
        "open f O_CREAT; setx f security.capability %01%00%00%02%00%04%00%00%00%00%00%00%00%00%00%00%00%00%00%00; --; chown f alice alice; getx f security.capability => ENODATA",
    ),
    (
        "capabilities are not a user's to set",
        "@alice open f O_CREAT; --; @alice setx f security.capability %01%00%00%02%00%04%00%00%00%00%00%00%00%00%00%00%00%00%00%00 => EPERM",
    ),
    (
        "a wrong capability",
        "open f O_CREAT; --; setx f security.capability nonsense => EINVAL",
    ),
    (
        "on nothing",
        "--; setx none user.x y => ENOENT; getx none user.x => ENOENT; listx none => ENOENT; rmx none user.x => ENOENT",
    ),
    (
        "an ACL grants",
        "open f O_CREAT 0600; --; @alice open f O_RDWR => EACCES; setacl f u::rw-,u:alice:rw-,g::---,m::rw-,o::---; @alice open f O_RDWR; @bob open f O_RDONLY => EACCES",
    ),
    (
        "an ACL of a group grants",
        "open f O_CREAT 0600; --; setacl f u::rw-,g::---,g:staff:r--,m::r--,o::---; @alice open f O_RDONLY; @alice open f O_WRONLY => EACCES; @bob open f O_RDONLY => EACCES",
    ),
    (
        "an ACL denies",
        "open f O_CREAT; --; setacl f u::rw-,u:alice:---,g::r--,m::r--,o::r--; @alice open f O_RDONLY => EACCES; @bob open f O_RDONLY",
    ),
    (
        "a mask limits",
        "open f O_CREAT; --; setacl f u::rw-,u:alice:rw-,g::r--,m::r--,o::---; @alice open f O_WRONLY => EACCES; @alice open f O_RDONLY; chmod f 0660; @alice open f O_WRONLY; chmod f 0600; @alice open f O_RDONLY => EACCES",
    ),
    (
        "an ACL of three entries is a mode",
        "open f O_CREAT; --; setacl f u::rwx,g::r-x,o::--x; stat f => reg 0751 0 0 n1 s0; getacl f => ENODATA; listx f",
    ),
    (
        "an ACL sets the mode",
        "open f O_CREAT; --; setacl f u::rw-,u:alice:rwx,g::---,m::rwx,o::--x; stat f => reg 0671 0 0 n1 s0",
    ),
    (
        "an ACL is removed",
        "open f O_CREAT; setacl f u::rw-,u:alice:rwx,g::r--,m::rwx,o::---; --; rmx f system.posix_acl_access; stat f => reg 0670 0 0 n1 s0; getacl f => ENODATA; rmx f system.posix_acl_access => *",
    ),
    (
        "a default ACL on a file",
        "open f O_CREAT; --; setdefault f u::rwx,g::r-x,o::--- => EACCES; getdefault f => ENODATA",
    ),
    (
        "a default ACL is removed",
        "mkdir d; setdefault d u::rwx,g::r-x,o::---; --; getdefault d => u::rwx,g::r-x,o::---; rmx d system.posix_acl_default; getdefault d => ENODATA; mkdir d/e; getdefault d/e => ENODATA",
    ),
    (
        "a default ACL is inherited by directories",
        "mkdir d; setdefault d u::rwx,u:alice:r-x,g::r-x,m::r-x,o::---; --; mkdir d/e; getdefault d/e => u::rwx,u:60001:r-x,g::r-x,m::r-x,o::---; open d/e/f O_CREAT 0666; getacl d/e/f => u::rw-,u:60001:r-x,g::r-x,m::r--,o::---",
    ),
    (
        "a wrong ACL",
        "open f O_CREAT; --; setx f system.posix_acl_access nonsense => EOPNOTSUPP; setacl f u::rwx,u:alice:rwx,g::r-x,o::--- => EINVAL; setacl f g::r-x,o::--- => EINVAL; stat f => reg 0644 0 0 n1 s0",
    ),
    (
        "an ACL on a set-gid directory",
        "mkdir d; chown d root staff; chmod d 02775; setdefault d u::rwx,g::rwx,u:bob:rwx,m::rwx,o::--- => EINVAL; setdefault d u::rwx,u:bob:rwx,g::rwx,m::rwx,o::---; setacl d u::rwx,u:bob:rwx,g::rwx,m::rwx,o::---; --; @bob open d/f O_CREAT 0666; @bob mkdir d/e 0777",
    ),
];
