//! Content: reading, writing, truncating, direct I/O, mappings, programs.

use super::{Row, row};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // Direct I/O by offset, length and address; which of them are aligned enough the disk says.
    for offset in [0, 512, 4096, 1] {
        for length in [4096, 512, 100] {
            for address in [0, 512, 1] {
                rows.push(row(
                    format!("direct I/O of {length} at {offset} from {address} beyond a page"),
                    format!(
                        "a: open f O_CREAT|O_RDWR; ftruncate a 20000; b: open f O_RDWR|O_DIRECT => *; --
                         direct-write b {offset} {length} {address} => *; direct-read b {offset} {length} {address} => *
                         pread a 0 20000 => *"
                    ),
                ));
            }
        }
    }
    for size in ["0", "1", "4095", "4096", "4097", "131072", "1M", "3000000"] {
        for (name, call) in [
            ("truncate", "truncate f SIZE"),
            ("ftruncate", "ftruncate a SIZE"),
            ("write behind", "pwrite a SIZE end"),
        ] {
            rows.push(row(
                format!("{name} to {size}"),
                format!(
                    "a: open f O_CREAT|O_RDWR; write a ~5000; --; {}; fstat a => *; pread a 4000 200 => *",
                    call.replace("SIZE", size)
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
        "truncate below nothing",
        "open f O_CREAT; a: open f O_RDWR; --; truncate f -1 => EINVAL; ftruncate a -1 => EINVAL",
    ),
    (
        "truncate of a directory",
        "mkdir d; --; truncate d 0 => EISDIR",
    ),
    (
        "truncate of special files",
        "mknod p fifo; mknod s socket; symlink none l; --; truncate p 0 => EINVAL; truncate s 0 => EINVAL; truncate l 0 => ENOENT; truncate none 0 => ENOENT",
    ),
    (
        "truncate too far",
        "a: open f O_CREAT|O_RDWR; --; ftruncate a 9223372036854775807 => EFBIG; truncate f 9223372036854775807 => EFBIG; fstat a => reg 0644 0 0 n1 s0",
    ),
    (
        "truncate by who may only write",
        "@bob open f O_CREAT 0622; chmod f 0222; truncate f 9; --; @alice truncate f 3; @alice a: open f O_WRONLY; @alice ftruncate a 1; @alice open f O_WRONLY|O_TRUNC; @alice open f O_RDONLY => EACCES; stat f => reg 0222 60002 60002 n1 s0",
    ),
    (
        "ftruncate after the mode is gone",
        "@alice a: open f O_CREAT|O_RDWR; chmod f 0; --; @alice ftruncate a 5; @alice truncate f 3 => EACCES; fstat a => reg 0000 60001 60001 n1 s5",
    ),
    (
        "truncated bytes are gone",
        "a: open f O_CREAT|O_RDWR; write a abcdef; --; ftruncate a 2; ftruncate a 5; pread a 0 9 => 'ab...'",
    ),
    (
        "truncate is seen by another descriptor and a mapping",
        "a: open f O_CREAT|O_RDWR; write a ~5000; b: open f O_RDONLY; m: map b 5000 shared r; --; truncate f 3; pread b 0 9 => 'nnn'; mapped m 0 6 => 'nnn...'",
    ),
    (
        "write far out",
        "a: open f O_CREAT|O_RDWR; --; pwrite a 100000 x => 1; fstat a => reg 0644 0 0 n1 s100001; pread a 99997 9 => '...x'; pread a 0 3 => '...'; pread a 200000 3 => ''",
    ),
    (
        "write at the last byte there is",
        "a: open f O_CREAT|O_RDWR; --; pwrite a 9223372036854775807 x => *; pwrite a -1 x => EINVAL; pread a -1 4 => EINVAL",
    ),
    (
        "write through one descriptor, read through another",
        "a: open f O_CREAT|O_RDWR; b: open f O_RDONLY; --; write a one; read b 9 => 'one'; write a two; read b 9 => 'two'; stat f => reg 0644 0 0 n1 s6",
    ),
    (
        "write through one name, read through another",
        "open f O_CREAT; link f g; --; a: open f O_WRONLY; write a text; cat g => 'text'; stat g => reg 0644 0 0 n2 s4",
    ),
    (
        "read of a directory",
        "mkdir d; a: open d O_RDONLY; --; read a 4 => EISDIR; pread a 0 4 => EISDIR; write a x => EBADF",
    ),
    (
        "read with O_APPEND",
        "a: open f O_CREAT|O_RDWR|O_APPEND; write a abc; --; seek a 0 SET => 0; read a 2 => 'ab'; write a d; read a 2 => ''; cat f => 'abcd'",
    ),
    (
        "a large file in pieces",
        "a: open f O_CREAT|O_RDWR; write a ~1M => 1048576; write a ~300000 => 300000; --; fstat a => reg 0644 0 0 n1 s1348576; pread a 1048000 2000; pread a 0 1M; pread a 1348570 100 => 'nnnnnn'",
    ),
    (
        "a mapping of a file that is empty",
        "a: open f O_CREAT|O_RDWR; --; m: map a 4096 shared rw; ftruncate a 10; mapwrite m 0 text; pread a 0 10 => 'text......'",
    ),
    (
        "a shared mapping is the file",
        "a: open f O_CREAT|O_RDWR; write a ~8192; m: map a 8192 shared rw; --; mapwrite m 10 mapped; pread a 8 10 => 'nnmappednn'; pwrite a 5000 written; mapped m 4998 11 => 'nnwrittennn'; cat f",
    ),
    (
        "a shared mapping after the file is closed",
        "a: open f O_CREAT|O_RDWR; write a ~4096; m: map a 4096 shared rw; close a; --; mapwrite m 0 mapped; msync m; b: open f O_RDONLY; pread b 0 8 => 'mappednn'",
    ),
    (
        "a shared mapping that is never synced",
        "a: open f O_CREAT|O_RDWR; write a ~4096; --; m: map a 4096 shared rw; mapwrite m 0 mapped; unmap m; close a; b: open f O_RDONLY; pread b 0 8 => 'mappednn'",
    ),
    (
        "two mappings are one",
        "a: open f O_CREAT|O_RDWR; write a ~4096; b: open f O_RDWR; m: map a 4096 shared rw; n: map b 4096 shared rw; --; mapwrite m 0 one; mapped n 0 4 => 'onen'; mapwrite n 3 two; mapped m 0 6 => 'onetwo'",
    ),
    (
        "a private mapping is not the file",
        "a: open f O_CREAT|O_RDWR; write a ~4096; m: map a 4096 private rw; --; mapwrite m 0 mine; pread a 0 4 => 'nnnn'; mapped m 0 5 => 'minen'",
    ),
    (
        "a private mapping of a file open for reading",
        "a: open f O_CREAT|O_RDWR; write a ~4096; b: open f O_RDONLY; --; m: map b 4096 private rw; mapwrite m 0 mine; cat f; map b 4096 shared rw => EACCES",
    ),
    (
        "a mapping of a file open for writing only",
        "a: open f O_CREAT|O_WRONLY; --; map a 4096 shared rw => EACCES; map a 4096 private r => EACCES",
    ),
    (
        "a mapping of a directory",
        "mkdir d; a: open d O_RDONLY; --; map a 4096 shared r => ENODEV",
    ),
    (
        "a mapping at an offset",
        "a: open f O_CREAT|O_RDWR; pwrite a 4096 second; --; m: map a 4096 shared rw 4096; mapped m 0 6 => 'second'; mapwrite m 0 S; pread a 4096 6 => 'Second'; map a 4096 shared r 100 => EINVAL",
    ),
    (
        "a mapping and direct I/O",
        "a: open f O_CREAT|O_RDWR; write a ~8192; sync a; b: open f O_RDWR|O_DIRECT => *; m: map a 8192 shared rw; --; direct-write b 0 4096 => *; mapped m 0 4 => *; mapwrite m 4096 text; msync m; direct-read b 4096 4096 => *",
    ),
    (
        "a mapping keeps its file when renamed over",
        "a: open f O_CREAT|O_RDWR; write a old; m: map a 3 shared r; b: open g O_CREAT|O_RDWR; write b new; --; rename g f; mapped m 0 3 => 'old'",
    ),
    ("a program runs", "program f 0755; --; run f => status 0"),
    (
        "a program without permission to run",
        "program f 0644; --; run f => EACCES; chmod f 0755; run f => status 0",
    ),
    (
        "a program that alice may run, not read",
        "program f 0755; chmod f 0711; --; @alice open f O_RDONLY => EACCES; @alice run f => status 0",
    ),
    (
        "a program that alice may read, not run",
        "program f 0755; chmod f 0744; --; @alice run f => EACCES",
    ),
    (
        "a program in a directory that may not be searched",
        "mkdir d 0755; program d/f 0755; chmod d 0700; --; @alice run d/f => EACCES",
    ),
    (
        "what is no program",
        "a: open f O_CREAT|O_RDWR 0755; write a text; close a; mkdir d; --; run f => ENOEXEC; run d => EACCES; run none => ENOENT",
    ),
    (
        "a program that runs is not written",
        "program f 0755; --; p: start f; open f O_WRONLY => ETXTBSY; open f O_RDWR|O_TRUNC => ETXTBSY; truncate f 0 => ETXTBSY; open f O_RDONLY; chmod f 0700; end p; open f O_WRONLY",
    ),
    (
        "a program that is open for writing does not run",
        "program f 0755; a: open f O_WRONLY; --; run f => ETXTBSY; close a; run f => status 0",
    ),
    (
        "a program that runs is renamed and removed",
        "program f 0755; --; p: start f; rename f g; unlink g; end p",
    ),
    (
        "a program that runs is replaced",
        "program f 0755; open g O_CREAT 0755; --; p: start f; rename g f; end p; cat f => ''",
    ),
    (
        "a fifo carries bytes",
        "mknod f fifo; --; a: open f O_RDWR|O_NONBLOCK; write a text => 4; read a 9 => 'text'; read a 9 => EAGAIN; seek a 0 SET => ESPIPE; b: open f O_RDONLY|O_NONBLOCK; write a more; read b 9 => 'more'",
    ),
    (
        "a device is a device",
        "mknod f char 0666; --; a: open f O_RDWR; write a text => 4; read a 4 => ''",
    ),
    (
        "a socket is not opened",
        "mknod f socket; --; open f O_RDONLY => ENXIO; open f O_RDWR => ENXIO; open f O_PATH",
    ),
    (
        "a block device that is not there",
        "mknod f block; --; open f O_RDONLY => *",
    ),
];
