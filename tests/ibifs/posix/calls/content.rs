//! Reading, writing, mapping.

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::system::{Answer, room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let file = || bench.file(words, 1);
    Some(match words.name() {
        "write" => {
            let text = words.bytes(2);
            counted(sys!(SYS_write, file(), text, text.len()))
        }
        "pwrite" => {
            let text = words.bytes(3);
            let offset = words.number(2);
            counted(sys!(SYS_pwrite64, file(), text, text.len(), offset))
        }
        "read" => reading(words.number(2), |buffer| {
            sys!(SYS_read, file(), room(buffer), buffer.len())
        }),
        "pread" => reading(words.number(3), |buffer| {
            let offset = words.number(2);
            sys!(SYS_pread64, file(), room(buffer), buffer.len(), offset)
        }),
        "cat" => cat(bench, words),
        "direct-write" => {
            let buffer = Aligned::new(words.number(3) as usize, b'd');
            let (address, length) = buffer.part(words);
            counted(sys!(SYS_pwrite64, file(), address, length, words.number(2)))
        }
        "direct-read" => {
            let buffer = Aligned::new(words.number(3) as usize, 0);
            let (address, length) = buffer.part(words);
            counted(sys!(SYS_pread64, file(), address, length, words.number(2)))
        }
        "map" => map(bench, words),
        "mapped" => {
            let start = bench.mapped(words);
            let text: Vec<u8> = (0..words.number(3) as usize)
                // SAFETY: inside a mapping that lives until the row ends; others may write to it
                // at the same time, hence volatile.
                .map(|at| unsafe { std::ptr::read_volatile((start + at) as *const u8) })
                .collect();
            Ok(show(&text))
        }
        "mapwrite" => {
            let start = bench.mapped(words);
            for (at, byte) in words.bytes(3).into_iter().enumerate() {
                // SAFETY: as above, and mapped for writing.
                unsafe { std::ptr::write_volatile((start + at) as *mut u8, byte) };
            }
            Ok(String::new())
        }
        "msync" => {
            let (address, length) = bench.maps[words.word(1)];
            done(sys!(SYS_msync, address, length, libc::MS_SYNC))
        }
        "unmap" => {
            let (address, length) = bench.maps.remove(words.word(1)).expect("a mapping");
            done(sys!(SYS_munmap, address, length))
        }
        "sendfile" => {
            let to = bench.file(words, 2);
            counted(sys!(SYS_sendfile, to, file(), 0, words.number(3)))
        }
        _ => return None,
    })
}

fn counted(answer: Answer) -> Outcome {
    answer.map(|count| count.to_string())
}

/// Short texts as they are, holes as dots, long ones by length and a sum.
fn show(bytes: &[u8]) -> String {
    if bytes.len() > 60 {
        let sum = bytes.iter().enumerate().fold(7u64, |sum, (at, byte)| {
            sum.wrapping_mul(31)
                .wrapping_add(u64::from(*byte) + at as u64)
        });
        return format!("{}:{sum:x}", bytes.len());
    }
    let text: String = bytes
        .iter()
        .map(|byte| match byte {
            0 => '.',
            b' '..=b'~' => *byte as char,
            _ => '?',
        })
        .collect();
    format!("'{text}'")
}

fn reading(length: i64, read: impl FnOnce(&mut [u8]) -> Answer) -> Outcome {
    let mut buffer = vec![0u8; length as usize];
    let count = read(&mut buffer)?;
    Ok(show(&buffer[..count as usize]))
}

/// Opens a file for reading and reads it.
fn cat(bench: &Bench, words: &Words<'_>) -> Outcome {
    let path = words.path(bench, 1);
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = sys!(SYS_openat, libc::AT_FDCWD, path, flags, 0)?;
    let text = reading(1 << 20, |buffer| {
        sys!(SYS_read, file, room(buffer), buffer.len())
    });
    sys!(SYS_close, file)?;
    text
}

/// A buffer that begins at a page.
struct Aligned {
    bytes: Vec<u8>,
}

impl Aligned {
    fn new(length: usize, fill: u8) -> Aligned {
        let bytes = vec![fill; length + 8192];
        Aligned { bytes }
    }

    /// The address, off the page by the fourth argument, and the length.
    fn part(&self, words: &Words<'_>) -> (usize, i64) {
        let page = (self.bytes.as_ptr() as usize).next_multiple_of(4096);
        let off = words.get(4).map_or(0, |_| words.number(4)) as usize;
        (page + off, words.number(3))
    }
}

/// `m: map f LENGTH shared|private r|rw [OFFSET]`
fn map(bench: &mut Bench, words: &Words<'_>) -> Outcome {
    let length = words.number(2) as usize;
    let kind = match words.word(3) {
        "shared" => libc::MAP_SHARED,
        _ => libc::MAP_PRIVATE,
    };
    let access = match words.word(4) {
        "r" => libc::PROT_READ,
        "x" => libc::PROT_READ | libc::PROT_EXEC,
        _ => libc::PROT_READ | libc::PROT_WRITE,
    };
    let offset = words.get(5).map_or(0, |_| words.number(5));
    let file = bench.file(words, 1);
    let address = sys!(SYS_mmap, 0, length, access, kind, file, offset)? as usize;
    match &words.step.bound {
        Some(name) => {
            bench.maps.insert(name.clone(), (address, length));
        }
        None => {
            sys!(SYS_munmap, address, length)?;
        }
    }
    Ok(String::new())
}

impl Bench {
    /// An address in a mapping, by its name and an offset.
    fn mapped(&self, words: &Words<'_>) -> usize {
        let (address, length) = self.maps[words.word(1)];
        let offset = words.number(2) as usize;
        assert!(offset < length, "outside of the mapping");
        address + offset
    }
}
