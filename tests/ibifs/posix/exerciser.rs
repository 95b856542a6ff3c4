//! One file, changed at random through two descriptors, one in each tree, and a model in memory that
//! must agree: reads, writes, truncation, mappings, holes, zeroes, copies, syncs, reopening.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use super::places::Places;
use super::system::{detach, errno_name, room, sys};
use crate::support::{Rng, seed, switch};

/// As long as the file may become.
const LONGEST: usize = 256 * 1024;

struct Exerciser {
    paths: [CString; 2],
    files: [i32; 2],
    model: Vec<u8>,
    rng: Rng,
    done: Vec<String>,
}

/// The fault, or the name of the errno.
type Outcome = Result<(), String>;

fn failed(what: &str) -> impl Fn(i32) -> String + '_ {
    move |errno| format!("{what}: {}", errno_name(errno))
}

impl Exerciser {
    fn open(&mut self, which: usize) -> Outcome {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC;
        let path = self.paths[which].clone();
        let file = sys!(SYS_openat, libc::AT_FDCWD, path, flags, 0o644).map_err(failed("open"))?;
        self.files[which] = file as i32;
        Ok(())
    }

    /// A range of at most 64 KiB, often at the borders of pages.
    fn range(&mut self, limit: usize) -> (usize, usize) {
        let mut offset = self.rng.below(limit);
        let mut length = 1 + self.rng.below(65_536);
        if self.rng.below(3) == 0 {
            offset &= !4095;
        }
        if self.rng.below(3) == 0 {
            length = length.next_multiple_of(4096);
        }
        (offset, length.min(limit - offset))
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let first = self.rng.below(251);
        (0..length).map(|at| (first + at * 7 % 255) as u8).collect()
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[offset..end].copy_from_slice(bytes);
    }

    fn step(&mut self) -> Outcome {
        let which = self.rng.below(2);
        let file = self.files[which];
        let size = self.model.len();
        let what = self.rng.below(100);
        let name = |text: String| format!("{text} through {}", ["rep", "IBIp"][which]);
        match what {
            0..25 => {
                let (offset, length) = self.range(LONGEST);
                self.done.push(name(format!("read {length} at {offset}")));
                let mut buffer = vec![0u8; length];
                let count = sys!(SYS_pread64, file, room(&mut buffer[..]), length, offset)
                    .map_err(failed("read"))? as usize;
                let end = (offset + length).min(size).max(offset);
                let expected = self.model.get(offset..end).unwrap_or_default();
                agree(&buffer[..count], expected, offset)
            }
            25..45 => {
                let (offset, length) = self.range(LONGEST);
                self.done.push(name(format!("write {length} at {offset}")));
                let bytes = self.bytes(length);
                let count =
                    sys!(SYS_pwrite64, file, bytes, length, offset).map_err(failed("write"))?;
                self.put(offset, &bytes[..count as usize]);
                Ok(())
            }
            45..55 => {
                let new = self.rng.below(LONGEST);
                self.done.push(name(format!("truncate to {new}")));
                self.model.resize(new, 0);
                sys!(SYS_ftruncate, file, new).map_err(failed("truncate"))?;
                Ok(())
            }
            55..70 if size > 0 => {
                let (offset, length) = self.range(size);
                let writes = what < 63;
                let verb = if writes { "write" } else { "read" };
                self.done
                    .push(name(format!("{verb} mapped {length} at {offset}")));
                self.mapped(file, offset, length, writes)
            }
            70..76 if size > 0 => {
                let (offset, length) = self.range(LONGEST);
                self.done.push(name(format!("punch {length} at {offset}")));
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                sys!(SYS_fallocate, file, mode, offset, length).map_err(failed("punch"))?;
                let end = (offset + length).min(size);
                self.model.get_mut(offset..end).unwrap_or_default().fill(0);
                Ok(())
            }
            76..82 => {
                let (offset, length) = self.range(LONGEST);
                let keeps = self.rng.below(2) == 0;
                self.done
                    .push(name(format!("zero {length} at {offset}, keeps {keeps}")));
                let keep = i32::from(keeps) * libc::FALLOC_FL_KEEP_SIZE;
                let mode = libc::FALLOC_FL_ZERO_RANGE | keep;
                sys!(SYS_fallocate, file, mode, offset, length).map_err(failed("zero"))?;
                if !keeps && size < offset + length {
                    self.model.resize(offset + length, 0);
                }
                let end = (offset + length).min(self.model.len());
                self.model.get_mut(offset..end).unwrap_or_default().fill(0);
                Ok(())
            }
            82..86 => {
                let (offset, length) = self.range(LONGEST);
                self.done
                    .push(name(format!("allocate {length} at {offset}")));
                sys!(SYS_fallocate, file, 0, offset, length).map_err(failed("allocate"))?;
                self.model.resize(size.max(offset + length), 0);
                Ok(())
            }
            86..92 if size > 1 => self.copy(which),
            92..95 => {
                self.done.push(name("sync".to_owned()));
                sys!(SYS_fsync, file).map_err(failed("sync"))?;
                Ok(())
            }
            _ => {
                self.done.push(name("reopen".to_owned()));
                sys!(SYS_close, file).map_err(failed("close"))?;
                self.open(which)
            }
        }
    }

    /// Reads or writes a range of the file through a shared mapping of its pages.
    fn mapped(&mut self, file: i32, offset: usize, length: usize, writes: bool) -> Outcome {
        let start = offset & !4095;
        let whole = offset + length - start;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let address = sys!(SYS_mmap, 0, whole, access, libc::MAP_SHARED, file, start)
            .map_err(failed("map"))? as usize;
        let bytes = self.bytes(length);
        let first = address + (offset - start);
        let mut seen = vec![0u8; length];
        for at in 0..length {
            let place = (first + at) as *mut u8;
            // SAFETY: within the mapping made above, below the end of the file, and unmapped only
            // after this.
            unsafe {
                if writes {
                    place.write_volatile(bytes[at]);
                } else {
                    seen[at] = place.read_volatile();
                }
            }
        }
        let synced = match self.rng.below(2) {
            0 => sys!(SYS_msync, address, whole, libc::MS_SYNC),
            _ => Ok(0),
        };
        sys!(SYS_munmap, address, whole).map_err(failed("unmap"))?;
        synced.map_err(failed("msync"))?;
        if writes {
            self.put(offset, &bytes);
            Ok(())
        } else {
            agree(&seen, &self.model[offset..offset + length], offset)
        }
    }

    /// Copies a range to another place in the same file, which it does not reach into.
    fn copy(&mut self, which: usize) -> Outcome {
        let size = self.model.len();
        let (offset, length) = self.range(size);
        let to = self.rng.below(LONGEST - length);
        if to < offset + length && offset < to + length {
            return Ok(());
        }
        self.done.push(format!("copy {length} at {offset} to {to}"));
        let (mut from, mut target) = (offset as i64, to as i64);
        let mut left = length;
        let (one, other) = (self.files[which], self.files[1 - which]);
        while left > 0 {
            let (from, target) = (room(&mut from), room(&mut target));
            let count = sys!(SYS_copy_file_range, one, from, other, target, left, 0)
                .map_err(failed("copy"))? as usize;
            if count == 0 {
                return Err(format!("nothing copied, {left} left"));
            }
            left -= count;
        }
        let bytes = self.model[offset..offset + length].to_vec();
        self.put(to, &bytes);
        Ok(())
    }

    /// The size, and now and then the whole content, through the other tree.
    fn look(&mut self) -> Outcome {
        for file in self.files {
            let seen = super::snapshot::looked(file).map_err(failed("stat"))?;
            if seen.size != self.model.len() as u64 {
                return Err(format!(
                    "size {}, should be {}",
                    seen.size,
                    self.model.len()
                ));
            }
        }
        if self.rng.below(50) != 0 {
            return Ok(());
        }
        let mut buffer = vec![0u8; LONGEST + 1];
        let file = self.files[self.rng.below(2)];
        let count = sys!(SYS_pread64, file, room(&mut buffer[..]), LONGEST + 1, 0)
            .map_err(failed("read"))?;
        agree(&buffer[..count as usize], &self.model, 0)
    }
}

fn agree(seen: &[u8], expected: &[u8], offset: usize) -> Outcome {
    if seen.len() != expected.len() {
        return Err(format!("{} bytes, not {}", seen.len(), expected.len()));
    }
    match seen
        .iter()
        .zip(expected)
        .position(|(one, other)| one != other)
    {
        None => Ok(()),
        Some(at) => Err(format!(
            "byte {} is {}, should be {}",
            offset + at,
            seen[at],
            expected[at]
        )),
    }
}

/// Changes a file at random for a second with passthrough and a second without
/// (`IBIFS_TEST_SECONDS` for longer), from a seed that is printed (`IBIFS_TEST_SEED` for the same
/// again): every byte that is read is the one that was written last.
#[test]
fn a_file_changed_at_random_through_both_trees_is_what_was_written() {
    let seconds = switch("IBIFS_TEST_SECONDS").unwrap_or(1);
    let seed = seed();
    let places = Places::new(true);
    let daemon = places.mounted[2].directory.join("f");
    let [rep, ibip] = [0, 1].map(|at| places.mounted[at].directory.join("f"));
    let native = places.native.directory.join("f");
    // The native file shows that the model is right.
    for (paths, name) in [
        ([&native, &native], "native"),
        ([&rep, &ibip], "with passthrough"),
        ([&daemon, &daemon], "without passthrough"),
    ] {
        let seconds = if name == "native" {
            0.2
        } else {
            seconds as f64
        };
        let paths = paths.map(|path| CString::new(path.as_os_str().as_bytes()).expect("no NUL"));
        let exercise = move || {
            detach();
            let mut exerciser = Exerciser {
                paths,
                files: [-1, -1],
                model: Vec::new(),
                rng: Rng::from_seed(seed),
                done: Vec::new(),
            };
            exerciser.open(0).and_then(|()| exerciser.open(1))?;
            let end = Instant::now() + Duration::from_secs_f64(seconds);
            while Instant::now() < end {
                let outcome = exerciser.step().and_then(|()| exerciser.look());
                outcome.map_err(|wrong| {
                    let count = exerciser.done.len();
                    let last = &exerciser.done[count.saturating_sub(30)..];
                    format!("step {count}: {wrong}\n{}", last.join("\n"))
                })?;
            }
            Ok(exerciser.done.len())
        };
        let messages: Result<usize, String> =
            std::thread::spawn(exercise).join().expect("a thread");
        match messages {
            Ok(count) => println!("{name}: {count} steps"),
            Err(wrong) => panic!("seed {seed}, {name}: {wrong}"),
        }
    }
}
