//! The process that reads PDF files for searches: it gives up all rights before it reads the file.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::command::cli::TextHelper;
use crate::command::exit::{Exit, Failure};
use crate::formats::pdf_text::pdf_text;
use crate::os::confinement::{Bounds, confine};
use ibi::message;

/// No page is begun after this time.
const READING: Duration = Duration::from_secs(5);
/// The bound of the whole, with what a page may need beyond that.
const SECONDS: u64 = 8;
/// A file needs 64 MiB, and its streams more.
const MEMORY: u64 = 512 * 1024 * 1024;
/// The longest text, in bytes.
const LONGEST: usize = 1024 * 1024;

pub(super) fn run(options: &TextHelper) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, error);
    let longest = options.longest.min(LONGEST);
    confine(&Bounds {
        memory: MEMORY,
        seconds: SECONDS,
        written: longest as u64,
    })
    .map_err(failed)?;
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock();
    input.read_to_end(&mut bytes).map_err(failed)?;
    let began = Instant::now();
    let text = pdf_text(bytes, longest, &|| began.elapsed() < READING);
    let text = text.ok_or_else(|| Failure::new(Exit::Failed, message!("it has no text")))?;
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).map_err(failed)?;
    output.flush().map_err(failed)?;
    Ok(Exit::Done)
}
