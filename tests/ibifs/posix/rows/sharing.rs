//! Locks, listings, flags, handles: what more than one has a hand in.

use super::{Row, answers, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let conflict = |held: &str, wanted: &str| held == "write" || wanted == "write";
    for (held_call, opens) in [
        ("lock", "lock"),
        ("oflock", "oflock"),
        ("lock", "oflock"),
        ("oflock", "lock"),
    ] {
        for held in ["read", "write"] {
            for wanted in ["read", "write"] {
                for (start, length, meets) in
                    [(0, 0, true), (9, 1, true), (10, 5, false), (100, 0, false)]
                {
                    let expected = if meets && conflict(held, wanted) {
                        "EAGAIN"
                    } else {
                        "ok"
                    };
                    rows.push(row(
                        format!("{held_call} {held} of 0-9 against {opens} {wanted} of {length} from {start}"),
                        format!(
                            "a: open f O_CREAT|O_RDWR; --; {held_call} a {held} 0 10; other {opens} f {wanted} {start} {length}{}
                             {held_call} a none 0 10; other {opens} f {wanted} {start} {length}",
                            answers(expected)
                        ),
                    ));
                }
            }
        }
    }
    for held in ["shared", "exclusive"] {
        for wanted in ["shared", "exclusive"] {
            let expected = match (held, wanted) {
                ("shared", "shared") => "ok",
                _ => "EAGAIN",
            };
            rows.push(row(
                format!("flock {held} against {wanted}"),
                format!(
                    "a: open f O_CREAT|O_RDWR 0666; b: open f O_RDWR; --; flock a {held}; flock b {wanted}{0}; other flock f {wanted}{0}
                     @alice other flock f {wanted}{0}; close a; flock b {wanted}; flock b none; other flock f exclusive",
                    answers(expected)
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
        "OFD locks of two descriptors",
        "a: open f O_CREAT|O_RDWR; b: open f O_RDWR; --; oflock a write 0 10; oflock b read 5 1 => EAGAIN; getlock b write 0 0 => write 0 10; oflock b write 10 0; getlock a write 0 0 => write 10 0; close a; oflock b write 0 0; getlock b write 0 0 => free",
    ),
    (
        "POSIX locks of two descriptors of one process",
        "a: open f O_CREAT|O_RDWR; b: open f O_RDWR; --; lock a write 0 10; lock b write 0 10; other lock f write 0 1 => EAGAIN; close b; other lock f write 0 1",
    ),
    (
        "a lock through another name",
        "a: open f O_CREAT|O_RDWR; link f g; --; lock a write 0 0; other lock g read 0 1 => EAGAIN; flock a exclusive; other flock g shared => EAGAIN",
    ),
    (
        "a lock needs a descriptor that fits",
        "open f O_CREAT; a: open f O_RDONLY; b: open f O_WRONLY; --; lock a write 0 0 => EBADF; lock b read 0 0 => EBADF; oflock a write 0 0 => EBADF; lock a read 0 0; lock b write 0 0; flock a exclusive",
    ),
    (
        "the kinds of locks do not meet",
        "a: open f O_CREAT|O_RDWR; --; flock a exclusive; other lock f write 0 0; lock a write 0 0; other flock f exclusive => EAGAIN",
    ),
    (
        "a lock on a directory",
        "mkdir d; a: open d O_RDONLY; b: open d O_RDONLY; --; flock a exclusive; flock b shared => EAGAIN; lock a read 0 0; lock a write 0 0 => EBADF",
    ),
    (
        "a lock made stronger and weaker",
        "a: open f O_CREAT|O_RDWR; --; lock a read 0 100; other lock f read 0 1; lock a write 10 10; other lock f read 5 1; other lock f read 15 1 => EAGAIN; lock a read 10 10; other lock f read 15 1; other lock f write 15 1 => EAGAIN",
    ),
    (
        "a lock with a wrong range",
        "a: open f O_CREAT|O_RDWR; --; lock a write -1 1 => EINVAL; lock a write 100 -10; other lock f write 95 1 => EAGAIN; other lock f write 100 1",
    ),
    (
        "a listing has each name once",
        "mkdir d; fill d 300; --; count d => 300 300; count d 512 => 300 300",
    ),
    (
        "a listing of 600 names",
        "mkdir d; fill d 600 a-name-that-is-rather-long-for-a-name-; --; count d => 600 600; count d 400 => 600 600",
    ),
    (
        "a listing tells types",
        "mkdir d; open d/a O_CREAT; mkdir d/b; symlink x d/c; mknod d/d fifo; mknod d/e socket; mknod d/f char; mknod d/g block; --; types d => a:8 b:4 c:10 d:1 e:12 f:2 g:6",
    ),
    (
        "a listing tells inode numbers",
        "mkdir d; open d/a O_CREAT; mkdir d/b; symlink x d/c; mknod d/d fifo; link d/a d/e; --; listed-inode d => 0 wrong",
    ),
    (
        "seeking in a listing",
        "mkdir d; fill d 200; --; seeks d => 202 entries, 0 wrong",
    ),
    (
        "seeking in a listing of 400 names",
        "mkdir d; fill d 400; --; seeks d => 402 entries, 0 wrong",
    ),
    (
        "names removed while they are listed",
        "mkdir d; fill d 300; --; remove-while-listing d => 300 met, 0 twice, 0 left",
    ),
    (
        "names renamed while they are listed",
        "mkdir d; fill d 200; --; rename-while-listing d => 200 met, 0 twice, 200 left",
    ),
    (
        "a listing made anew sees what is new",
        "mkdir d; open d/a O_CREAT; a: open d O_RDONLY; listfd a => 1; open d/b O_CREAT; --; rewind a; listfd a => 2; unlink d/a; rewind a; listfd a => 1; listfd a => 0",
    ),
    (
        "a listing by a descriptor that others change",
        "mkdir d 0777; fill d 10; a: open d O_RDONLY; --; @alice open d/new O_CREAT; listfd a => 11; unlink d/new; rewind a; listfd a => 10",
    ),
    (
        "two listings stand where they stand",
        "mkdir d; fill d 10; a: open d O_RDONLY; b: open d O_RDONLY; --; listfd a => 10; listfd a => 0; listfd b => 10",
    ),
    (
        "a listing of a file",
        "open f O_CREAT; --; names f => ENOTDIR; names none => ENOENT",
    ),
    (
        "a listing of a directory that is gone",
        "mkdir d; mkdir d/e; a: open d/e O_RDONLY; rmdir d/e; --; listfd a => ENOENT",
    ),
    (
        "a listing of an empty directory",
        "mkdir d; --; count d => 0 0; seeks d => 2 entries, 0 wrong",
    ),
    (
        "flags are read and set",
        "open f O_CREAT; --; getflags f => ok; setflags f NODUMP; getflags f => NODUMP; setflags f -NODUMP; getflags f => ok",
    ),
    (
        "flags of a directory",
        "mkdir d; --; setflags d NODUMP; getflags d => NODUMP; open d/f O_CREAT; getflags d/f => *",
    ),
    (
        "append only",
        "a: open f O_CREAT|O_RDWR; write a text; --; setflags f APPEND; open f O_WRONLY => EPERM; open f O_WRONLY|O_TRUNC|O_APPEND => EPERM; b: open f O_WRONLY|O_APPEND; write b more; truncate f 0 => EPERM; unlink f => EPERM; rename f g => EPERM; link f g => EPERM; chmod f 0600 => EPERM; setflags f -APPEND; unlink f",
    ),
    (
        "immutable",
        "open f O_CREAT; --; setflags f IMMUTABLE; open f O_WRONLY => EPERM; open f O_RDONLY; unlink f => EPERM; rename f g => EPERM; link f g => EPERM; chmod f 0600 => EPERM; chown f alice alice => EPERM; touch f => *; setx f user.x y => EPERM; truncate f 0 => EPERM; setflags f -IMMUTABLE; unlink f",
    ),
    (
        "an immutable directory",
        "mkdir d; open d/f O_CREAT; --; setflags d IMMUTABLE; open d/new O_CREAT => EPERM; mkdir d/new => EPERM; unlink d/f => EPERM; rename d/f d/g => EPERM; rmdir d => EPERM; stat d/f; setflags d -IMMUTABLE; unlink d/f",
    ),
    (
        "flags are not an ordinary user's",
        "@alice open f O_CREAT; --; @alice setflags f IMMUTABLE => EPERM; @alice setflags f APPEND => EPERM; @alice setflags f NODUMP; @bob setflags f -NODUMP => EPERM",
    ),
    ("a generation", "open f O_CREAT; --; generation f => *"),
    (
        "an unknown ioctl",
        "open f O_CREAT; mkdir d; --; ioctl f 30000 => ENOTTY; ioctl d 30000 => ENOTTY",
    ),
    (
        "a handle opens its file",
        "open f O_CREAT; mkdir d; symlink f l; --; handle f; handle d; handle l",
    ),
    (
        "a handle is root's to open",
        "open f O_CREAT 0666; --; @alice handle f => EPERM",
    ),
];
