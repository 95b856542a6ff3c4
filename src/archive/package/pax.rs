//! The name and the content of a member of a tar file by its extended headers (pax). Unknown keywords that would change
//! these are refused: what is passed over comes in as garbage.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read};

use ibi::message;
use ibi::message::Message;
use tar::PaxExtensions;

/// The bytes of a block of a tar file.
const BLOCK: usize = 512;
/// The longest map of a sparse file in its content, in bytes.
const LONGEST_MAP: usize = 1 << 20;

/// The extended headers of a member.
#[derive(Debug, Default)]
pub(super) struct Pax {
    /// The name of a file, if they have it.
    pub(super) name: Option<Vec<u8>>,
    /// The places of the data of a sparse file.
    pub(super) sparse: Option<Sparse>,
}

/// A sparse file, in one of the formats 0.0, 0.1 and 1.0 of GNU tar.
#[derive(Debug)]
pub(super) struct Sparse {
    /// The length of the file.
    pub(super) size: u64,
    /// Offsets and lengths; None if they are in front of the content.
    map: Option<Vec<u64>>,
}

impl Pax {
    /// Reads the headers.
    ///
    /// # Errors
    /// They cannot be read, or change what ibifs does not know.
    pub(super) fn read(headers: PaxExtensions<'_>) -> Result<Pax, Message> {
        let (mut name, mut sparse_name) = (None, None);
        let (mut size, mut is_sparse, mut is_in_content) = (None, false, false);
        let mut map = Vec::new();
        for header in headers {
            // The library reads no value with a line end.
            let header = header.map_err(|_| {
                message!("its extended headers cannot be read, or have a name with a line end")
            })?;
            let value = header.value_bytes();
            let number = || {
                let text = std::str::from_utf8(value).ok();
                let number = text.and_then(|text| text.parse::<u64>().ok());
                number.ok_or_else(not_valid)
            };
            let key = header.key().unwrap_or_default();
            is_sparse |= key.starts_with("GNU.sparse.");
            match key {
                "path" => name = Some(value.to_vec()),
                "GNU.sparse.name" => sparse_name = Some(value.to_vec()),
                "GNU.sparse.size" | "GNU.sparse.realsize" => size = Some(number()?),
                "GNU.sparse.offset" | "GNU.sparse.numbytes" => map.push(number()?),
                "GNU.sparse.map" => {
                    let numbers = value
                        .split(|byte| *byte == b',')
                        .filter(|text| !text.is_empty());
                    let numbers = numbers.map(|text| std::str::from_utf8(text).ok()?.parse().ok());
                    map = numbers.collect::<Option<_>>().ok_or_else(not_valid)?;
                }
                "GNU.sparse.major" => is_in_content = number()? == 1,
                "GNU.sparse.minor" | "GNU.sparse.numblocks" => {
                    number()?;
                }
                "SCHILY.realsize" | "SUN.holesdata" => return Err(not_known(key)),
                key if key.starts_with("GNU.sparse.") => return Err(not_known(key)),
                _ => {}
            }
        }
        let sparse = match size {
            Some(size) if is_sparse => {
                let map = (!is_in_content).then_some(map);
                Some(Sparse { size, map })
            }
            _ if is_sparse => return Err(not_valid()),
            _ => None,
        };
        Ok(Pax {
            name: sparse_name.or(name),
            sparse,
        })
    }
}

impl Sparse {
    /// The content of the file, of a member that has `stored` bytes.
    ///
    /// # Errors
    /// The map is not valid.
    pub(super) fn content<R: Read>(
        self,
        mut stored: R,
        mut length: u64,
    ) -> Result<Expanded<R>, Message> {
        let map = match self.map {
            Some(map) => map,
            None => map_in_content(&mut stored, &mut length)?,
        };
        let mut pieces = VecDeque::new();
        let mut at: u64 = 0;
        let mut data: u64 = 0;
        let (ranges, rest) = map.as_chunks::<2>();
        for [offset, bytes] in ranges {
            let hole = offset.checked_sub(at).ok_or_else(not_valid)?;
            at = offset.checked_add(*bytes).ok_or_else(not_valid)?;
            data += bytes;
            pieces.extend([(false, hole), (true, *bytes)]);
        }
        let last = self.size.checked_sub(at).ok_or_else(not_valid)?;
        pieces.push_back((false, last));
        if data != length || !rest.is_empty() {
            return Err(not_valid());
        }
        Ok(Expanded { stored, pieces })
    }
}

/// The map that is in front of the content in format 1.0: lines with numbers, the first with how many pairs follow.
fn map_in_content(stored: &mut impl Read, length: &mut u64) -> Result<Vec<u64>, Message> {
    let (mut numbers, mut line) = (Vec::<u64>::new(), Vec::new());
    for _ in 0..LONGEST_MAP / BLOCK {
        let mut block = [0; BLOCK];
        stored.read_exact(&mut block).map_err(|_| not_valid())?;
        *length = length.checked_sub(BLOCK as u64).ok_or_else(not_valid)?;
        for byte in block {
            if byte != b'\n' {
                line.push(byte);
            } else if !line.is_empty() {
                let number = std::str::from_utf8(&line)
                    .ok()
                    .and_then(|it| it.parse().ok());
                numbers.push(number.ok_or_else(not_valid)?);
                line.clear();
                if numbers.len() as u64 > numbers[0].checked_mul(2).ok_or_else(not_valid)? {
                    return Ok(numbers.split_off(1));
                }
            }
        }
    }
    Err(not_valid())
}

/// A sparse file with zeros where it has no data.
#[derive(Debug)]
pub(super) struct Expanded<R> {
    stored: R,
    /// Whether there are data, and how many bytes.
    pieces: VecDeque<(bool, u64)>,
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.pieces.front().is_some_and(|(_, left)| *left == 0) {
            self.pieces.pop_front();
        }
        let Some((is_data, left)) = self.pieces.front_mut() else {
            return Ok(0);
        };
        let most = usize::try_from(*left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let Some(buffer) = buffer.get_mut(..most).filter(|buffer| !buffer.is_empty()) else {
            return Ok(0);
        };
        let read = if *is_data {
            self.stored.read(buffer)?
        } else {
            buffer.fill(0);
            most
        };
        if read == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        *left -= read as u64;
        Ok(read)
    }
}

fn not_valid() -> Message {
    message!("what its extended headers say of a sparse file is not valid")
}

fn not_known(key: &str) -> Message {
    message!(
        "its extended header {key} changes its content in a way that ibifs does not know; unpack it yourself, and import the directory",
        key
    )
}
