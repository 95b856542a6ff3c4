//! Holes, allocation, seeking, copying.

use super::{Row, answers, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for mode in [
        "0",
        "KEEP",
        "PUNCH|KEEP",
        "ZERO",
        "ZERO|KEEP",
        "COLLAPSE",
        "INSERT",
    ] {
        for (offset, length) in [
            ("0", "4096"),
            ("4096", "8192"),
            ("100", "5000"),
            ("60K", "8K"),
            ("64K", "4096"),
            ("1M", "4096"),
        ] {
            rows.push(row(
                format!("fallocate {mode} of {length} at {offset}"),
                format!(
                    "a: open f O_CREAT|O_RDWR; write a ~64K; --; fallocate a {mode} {offset} {length} => *
                     fstat a => *; allocated a => *; pread a 0 1M => *; seek a 0 DATA => *; seek a 0 HOLE => *; seek a 5000 DATA => *"
                ),
            ));
        }
        rows.push(row(
            format!("fallocate {mode} without permission"),
            format!(
                "open f O_CREAT; a: open f O_RDONLY; mkdir d; b: open d O_RDONLY; mknod p fifo; c: open p O_RDWR|O_NONBLOCK; --
                 fallocate a {mode} 0 4096 => EBADF; fallocate b {mode} 0 4096 => EBADF; fallocate c {mode} 0 4096 => ESPIPE"
            ),
        ));
    }
    for (mode, offset, length, expected) in [
        ("0", "0", "0", "EINVAL"),
        ("0", "-1", "4096", "EINVAL"),
        ("0", "0", "-1", "EINVAL"),
        ("PUNCH", "0", "4096", "EOPNOTSUPP"),
        ("UNKNOWN", "0", "4096", "EOPNOTSUPP"),
        ("0", "9223372036854775807", "4096", "EFBIG"),
        ("PUNCH|ZERO|KEEP", "0", "4096", "EOPNOTSUPP"),
    ] {
        rows.push(row(
            format!("fallocate {mode} of {length} at {offset} is refused"),
            format!(
                "a: open f O_CREAT|O_RDWR; write a text; --; fallocate a {mode} {offset} {length}{}",
                answers(expected)
            ),
        ));
    }
    for at in [
        "0", "4095", "4096", "100K", "1M", "1048575", "1052672", "2M", "3M", "-1",
    ] {
        for whence in ["DATA", "HOLE"] {
            rows.push(row(
                format!("seek {whence} from {at}"),
                format!(
                    "a: open f O_CREAT|O_RDWR; pwrite a 1M ~4096; ftruncate a 2M; --; seek a {at} {whence} => *; seek a 0 CUR => *"
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
        "seek",
        "a: open f O_CREAT|O_RDWR; write a abcdef; --; seek a 2 SET => 2; seek a 2 CUR => 4; seek a -1 END => 5; seek a 100 END => 106; seek a -1 SET => EINVAL; seek a -200 CUR => EINVAL; seek a 0 UNKNOWN => EINVAL; write a x; fstat a => reg 0644 0 0 n1 s107",
    ),
    (
        "seek to data in an empty file",
        "a: open f O_CREAT|O_RDWR; --; seek a 0 DATA => ENXIO; seek a 0 HOLE => ENXIO",
    ),
    (
        "seek in a directory and a fifo",
        "mkdir d; a: open d O_RDONLY; mknod p fifo; b: open p O_RDWR|O_NONBLOCK; --; seek a 0 SET => 0; seek b 0 SET => ESPIPE; seek b 0 DATA => ESPIPE",
    ),
    (
        "data that is written is found at once",
        "a: open f O_CREAT|O_RDWR; ftruncate a 1M; --; pwrite a 512K ~4096; seek a 0 DATA => 524288; seek a 512K HOLE => 528384; fallocate a PUNCH|KEEP 512K 4096; seek a 0 DATA => ENXIO",
    ),
    (
        "copy a range",
        "a: open f O_CREAT|O_RDWR; write a abcdefgh; b: open g O_CREAT|O_RDWR; --; copyrange a 2 b 0 4 => 4; cat g => 'cdef'; copyrange a 6 b 10 100 => 2; fstat b => reg 0644 0 0 n1 s12; copyrange a 100 b 0 4 => 0; copyrange a 0 b 0 0 => 0",
    ),
    (
        "copy a range within a file",
        "a: open f O_CREAT|O_RDWR; write a abcdefgh; --; copyrange a 0 a 8 8 => 8; cat f => 'abcdefghabcdefgh'; copyrange a 0 a 4 8 => EINVAL",
    ),
    (
        "copy a long range",
        "a: open f O_CREAT|O_RDWR; write a ~1M; b: open g O_CREAT|O_RDWR; --; copyrange a 0 b 0 1M => 1048576; cat g",
    ),
    (
        "copy what may not be copied",
        "a: open f O_CREAT|O_RDWR; write a x; b: open f O_RDONLY; mkdir d; c: open d O_RDONLY; e: open g O_CREAT|O_WRONLY|O_APPEND; w: open f O_WRONLY; --; copyrange a 0 b 0 1 => EBADF; copyrange c 0 a 0 1 => EISDIR; copyrange a 0 e 0 1 => EBADF; copyrange w 0 a 0 1 => EBADF",
    ),
    (
        "copy from a fifo",
        "mknod p fifo; a: open p O_RDWR|O_NONBLOCK; b: open f O_CREAT|O_RDWR; --; copyrange a 0 b 0 1 => EINVAL; copyrange b 0 a 0 1 => EINVAL",
    ),
    (
        "copy between filesystems",
        "a: open /proc/version O_RDONLY; b: open f O_CREAT|O_RDWR; --; copyrange a 0 b 0 5 => *",
    ),
    (
        "sendfile",
        "a: open f O_CREAT|O_RDWR; write a abcdef; seek a 0 SET => 0; b: open g O_CREAT|O_RDWR; --; sendfile a b 4 => 4; sendfile a b 100 => 2; cat g => 'abcdef'",
    ),
    (
        "clone",
        "a: open f O_CREAT|O_RDWR; write a ~4096; sync a; b: open g O_CREAT|O_RDWR; --; clone b a => *; cat g => *",
    ),
    (
        "advice and readahead",
        "a: open f O_CREAT|O_RDWR; write a text; --; advise a; readahead a 4096; pread a 0 9 => 'text'",
    ),
    (
        "allocation is counted",
        "a: open f O_CREAT|O_RDWR; --; fallocate a 0 0 1M; allocated a => *; fstat a => reg 0644 0 0 n1 s1048576; fallocate a KEEP 1M 1M; allocated a => *; fstat a => reg 0644 0 0 n1 s1048576; ftruncate a 0; allocated a => 0",
    ),
    (
        "allocation beyond the end is read as nothing",
        "a: open f O_CREAT|O_RDWR; write a text; --; fallocate a 0 0 8192; pread a 0 6 => 'text..'; pread a 8190 9 => '..'",
    ),
    (
        "punching is seen by others",
        "a: open f O_CREAT|O_RDWR; write a ~8192; b: open f O_RDONLY; m: map b 8192 shared r; pread b 0 10; mapped m 0 4; --; fallocate a PUNCH|KEEP 0 4096; pread b 0 4 => '....'; mapped m 0 4 => '....'; pread b 4096 4 => 'nnnn'",
    ),
    (
        "zeroing is seen by others",
        "a: open f O_CREAT|O_RDWR; write a ~8192; b: open f O_RDONLY; pread b 0 10; --; fallocate a ZERO 2 4; pread b 0 8 => 'nn....nn'",
    ),
];
