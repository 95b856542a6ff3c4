//! Making names: every call that makes one, and everything that can be in its way.

use super::{KINDS, Row, answers, make, row};

/// Calls that make a name, with what they need.
const MAKERS: &[(&str, &str)] = &[
    ("open <name> O_CREAT|O_EXCL|O_RDWR 0644", ""),
    ("mkdir <name> 0755", ""),
    ("symlink target <name>", ""),
    ("mknod <name> reg 0644", ""),
    ("mknod <name> fifo 0644", ""),
    ("mknod <name> socket 0644", ""),
    ("mknod <name> char 0644", ""),
    ("mknod <name> block 0644", ""),
    (
        "link source <name>",
        "open source O_CREAT 0666; chown source alice alice",
    ),
    ("rename source <name> NOREPLACE", "open source O_CREAT 0666"),
];

/// The conditions under which a name is made: a precondition, the name, the caller, and the answer.
const CONDITIONS: &[(&str, &str, &str, &str, &str)] = &[
    ("a free name", "", "name", "root", "ok"),
    ("a free name", "", "name", "alice", "ok"),
    ("a name of 255 bytes", "", "~255", "root", "ok"),
    ("a name of 256 bytes", "", "~256", "root", "ENAMETOOLONG"),
    ("a path of 4095 bytes", "", "~4095/name", "root", "ok"),
    (
        "a path of 4096 bytes",
        "",
        "~4096/name",
        "root",
        "ENAMETOOLONG",
    ),
    ("no name", "", "''", "root", "ENOENT"),
    ("a missing parent", "", "none/name", "root", "ENOENT"),
    (
        "a file as parent",
        "open f O_CREAT",
        "f/name",
        "root",
        "ENOTDIR",
    ),
    (
        "a fifo as parent",
        "mknod f fifo",
        "f/name",
        "root",
        "ENOTDIR",
    ),
    (
        "a dangling link as parent",
        "symlink none l",
        "l/name",
        "root",
        "ENOENT",
    ),
    (
        "a link to a directory as parent",
        "mkdir d; symlink d l",
        "l/name",
        "root",
        "ok",
    ),
    ("a loop as parent", "symlink l l", "l/name", "root", "ELOOP"),
    (
        "a loop of two as parent",
        "symlink m l; symlink l m",
        "l/name",
        "root",
        "ELOOP",
    ),
    ("a parent of 256 bytes", "", "~256", "alice", "ENAMETOOLONG"),
    (
        "a parent that may not be written",
        "mkdir d 0755",
        "d/name",
        "alice",
        "EACCES",
    ),
    (
        "a parent that may not be searched",
        "mkdir d 0766",
        "d/name",
        "alice",
        "EACCES",
    ),
    (
        "a parent whose group may write",
        "mkdir d 0770; chown d root staff",
        "d/name",
        "alice",
        "ok",
    ),
    (
        "a parent whose group bob is not in",
        "mkdir d 0770; chown d root staff",
        "d/name",
        "bob",
        "EACCES",
    ),
    (
        "a set-gid parent",
        "mkdir d; chown d root staff; chmod d 02777",
        "d/name",
        "alice",
        "ok",
    ),
    (
        "a set-gid parent",
        "mkdir d; chown d root staff; chmod d 02777",
        "d/name",
        "bob",
        "ok",
    ),
    ("a sticky parent", "mkdir d 01777", "d/name", "bob", "ok"),
];

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (call, needs) in MAKERS {
        for (condition, before, name, user, expected) in CONDITIONS {
            let device = call.contains(" char") || call.contains(" block");
            let expected = match *expected {
                "ok" if device && *user != "root" => "EPERM",
                // The kernel asks first whether the caller may make devices at all.
                "EACCES" if device => "*",
                // A link to alice's file is not bob's to make where links are protected.
                "ok" if call.starts_with("link") && *user == "bob" => "*",
                other => other,
            };
            rows.push(row(
                format!("{call}: {condition}, as {user}"),
                format!(
                    "{needs}; {before}; --; @{user} {}{}",
                    call.replace("<name>", name),
                    answers(expected)
                ),
            ));
        }
        for kind in KINDS {
            rows.push(row(
                format!("{call}: where a {kind} is"),
                format!(
                    "{needs}; {}; --; {} => EEXIST",
                    make(kind, "name"),
                    call.replace("<name>", "name")
                ),
            ));
        }
    }
    for kind in ["reg", "dir", "fifo"] {
        for mask in ["022", "0777", "027"] {
            for mode in ["0666", "0777", "02755", "01777", "04711"] {
                rows.push(row(
                    format!("a {kind} of mode {mode} made with umask {mask}"),
                    format!(
                        "--; @alice umask {mask} => *; @alice {}",
                        match kind {
                            "reg" => format!("open f O_CREAT|O_RDWR {mode}"),
                            "dir" => format!("mkdir f {mode}"),
                            _ => format!("mknod f fifo {mode}"),
                        }
                    ),
                ));
            }
        }
    }
    for (name, script) in OTHERS {
        rows.push(row(*name, script));
    }
    rows.push(every_byte());
    rows.push(forty_links());
    rows
}

/// Names of every byte that a name can have, one alone and one at the end of another.
fn every_byte() -> Row {
    let mut script = String::from("--");
    for byte in (1..=255u8).filter(|byte| *byte != b'/' && *byte != b'.') {
        script.push_str(&format!(
            "\nopen %{byte:02x} O_CREAT|O_EXCL; mkdir x%{byte:02x}"
        ));
    }
    script.push_str("\nopen ... O_CREAT|O_EXCL; open .. O_CREAT|O_EXCL => EEXIST; open . O_CREAT|O_EXCL => EEXIST");
    script.push_str("\ncount . => 507 507");
    row("names with every byte", script)
}

/// As many links in a row as the kernel follows, and one more.
fn forty_links() -> Row {
    let mut script = String::from("open l0 O_CREAT");
    for link in 1..=41 {
        script.push_str(&format!("\nsymlink l{} l{link}", link - 1));
    }
    script.push_str("\n--\nopen l40 O_RDONLY; open l41 O_RDONLY => ELOOP; lstat l41");
    row("forty links in a row and one more", script)
}

const OTHERS: &[(&str, &str)] = &[
    (
        "mkdir of dot",
        "--; mkdir . => EEXIST; mkdir .. => EEXIST; mkdir ./ => EEXIST",
    ),
    ("mkdir with a slash behind it", "--; mkdir d/; mkdir e//"),
    (
        "a file with a slash behind it",
        "--; open f/ O_CREAT => EISDIR; mknod f/ reg => ENOENT; symlink x f/ => ENOENT",
    ),
    (
        "mknod without a type makes a regular file",
        "--; mknod f none 0604; stat f => reg 0604 0 0 n1 s0",
    ),
    ("mknod of a directory", "--; mknod f dir => EPERM"),
    ("mknod of a link", "--; mknod f link => EINVAL"),
    (
        "a device with large numbers",
        "--; mknod f big 0600; stat f => char 0600 0 0 n1 s0 2748:74565",
    ),
    (
        "a whiteout by an ordinary user",
        "--; @alice mknod f whiteout 0600",
    ),
    (
        "bind makes a socket",
        "--; bind s; lstat s => socket 0777 0 0 n1 s0",
    ),
    (
        "bind where a name is",
        "open s O_CREAT; --; bind s => EADDRINUSE",
    ),
    (
        "bind by alice with her umask",
        "--; umask 027 => *; @alice bind s",
    ),
    ("an empty link", "--; symlink '' l => ENOENT"),
    (
        "a link of 4095 bytes",
        "--; symlink ~4095 l; readlink l => 4095 bytes; lstat l => link 0777 0 0 n1 s4095; open l O_RDONLY => ENAMETOOLONG",
    ),
    (
        "a link of 4096 bytes",
        "--; symlink ~4096 l => ENAMETOOLONG",
    ),
    (
        "a link with strange bytes",
        "--; symlink %ff%0a%25x l; lstat l => link 0777 0 0 n1 s4",
    ),
    (
        "a link to itself",
        "symlink l l; --; open l O_RDONLY => ELOOP; stat l => ELOOP; readlink l => l; chmod l 0600 => ELOOP; truncate l 0 => ELOOP; access l F => ELOOP",
    ),
    (
        "readlink of what is no link",
        "open f O_CREAT; mkdir d; mknod p fifo; --; readlink f => EINVAL; readlink d => EINVAL; readlink p => EINVAL; readlink none => ENOENT; readlink f/x => ENOTDIR",
    ),
    (
        "a link's mode and owner",
        "--; @alice umask 077 => *; @alice symlink x l; lstat l => link 0777 60001 60001 n1 s1",
    ),
    (
        "link to a directory",
        "mkdir d; --; link d e => EPERM; @alice link d e => EPERM",
    ),
    ("link to what is not there", "--; link none f => ENOENT"),
    (
        "link to a symbolic link",
        "symlink nowhere l; --; link l m; lstat m => link 0777 0 0 n2 s7",
    ),
    (
        "link to where a symbolic link leads",
        "open f O_CREAT; symlink f l; --; linkf l m; stat m => reg 0644 0 0 n2 s0",
    ),
    (
        "link to where a dangling link leads",
        "symlink none l; --; linkf l m => ENOENT",
    ),
    (
        "link to a fifo",
        "mknod f fifo; --; link f g; stat g => fifo 0644 0 0 n2 s0",
    ),
    (
        "link to a socket",
        "mknod f socket; --; link f g; stat g => socket 0644 0 0 n2 s0",
    ),
    (
        "link to a character device",
        "mknod f char; --; link f g; stat g => char 0644 0 0 n2 s0 1:3",
    ),
    (
        "link to a block device",
        "mknod f block; --; link f g; stat g => block 0644 0 0 n2 s0 7:200",
    ),
    ("link onto itself", "open f O_CREAT; --; link f f => EEXIST"),
    (
        "links count",
        "open f O_CREAT; --; link f g; link g h; stat f => reg 0644 0 0 n3 s0; unlink f; stat h => reg 0644 0 0 n2 s0; rename g h; stat h => reg 0644 0 0 n2 s0; unlink g; stat h => reg 0644 0 0 n1 s0",
    ),
    (
        "directories count",
        "mkdir d; --; mkdir d/a; mkdir d/b; stat d => dir 0755 0 0 n4 s4096; rmdir d/a; stat d => dir 0755 0 0 n3 s4096; rename d/b b; stat d => dir 0755 0 0 n2 s4096; stat b => dir 0755 0 0 n2 s4096",
    ),
    (
        "an inode number stays",
        "open f O_CREAT; i: inode f; mkdir d; --; rename f d/g; j: inode d/g; same i j => yes; link d/g h; k: inode h; same i k => yes; chmod h 0600; l: inode h; same i l => yes",
    ),
    (
        "a directory's inode number stays",
        "mkdir d; i: inode d; mkdir e; --; rename d e/f; j: inode e/f; same i j => yes",
    ),
    (
        "a new file has another inode number",
        "a: open f O_CREAT|O_RDWR; i: inode f; --; unlink f; open f O_CREAT; j: inode f; same i j => no; k: finode a; same i k => yes",
    ),
    (
        "through an open directory",
        "mkdir d; a: open d O_RDONLY; --; mkdir fd:a/e; symlink x fd:a/l; rename fd:a/e fd:a/f; unlink fd:a/l; names d => f",
    ),
    (
        "in a directory that is gone",
        "mkdir d; a: open d O_RDONLY; rmdir d; --; mkdir fd:a/e => ENOENT; open fd:a/f O_CREAT => ENOENT; symlink x fd:a/l => ENOENT; mknod fd:a/p fifo => ENOENT; stat fd:a/f => ENOENT; listfd a => ENOENT; fstat a => *",
    ),
    (
        "in another filesystem",
        "open f O_CREAT; mkdir m; mount m; open m/g O_CREAT; --; link f m/x => EXDEV; rename f m/x => EXDEV; rename m/g f => EXDEV; link m/g g => EXDEV; umount m",
    ),
    (
        "a whole tree below",
        "--; mkdir a; mkdir a/b; mkdir a/b/c; open a/b/c/f O_CREAT; link a/b/c/f f; rename a/b b; cat b/c/f => ''",
    ),
];
