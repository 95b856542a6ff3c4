//! The process in which `ibifs serve` draws: it gives up all rights before it reads the file.

use std::io::{Read, Write};

use crate::command::cli::PreviewHelper;
use crate::command::exit::{Exit, Failure};
use crate::formats::picture::{self, Drawn, LONGEST};
use crate::os::confinement::{Bounds, confine};
use ibi::message;

/// An image needs up to 192 MiB, and a file 64 MiB.
const BOUNDS: Bounds = Bounds {
    memory: 768 * 1024 * 1024,
    seconds: 4,
    written: LONGEST as u64 + 4,
};

pub(super) fn run(options: &PreviewHelper) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, error);
    confine(&BOUNDS).map_err(failed)?;
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let nothing = || Failure::new(Exit::Failed, message!("it cannot be drawn"));
    let drawn = Drawn::of_media_type(&options.media_type).ok_or_else(nothing)?;
    let picture = picture::draw(drawn, bytes).ok_or_else(nothing)?;
    let mut output = std::io::stdout().lock();
    output.write_all(&picture.to_bytes()).map_err(failed)?;
    output.flush().map_err(failed)?;
    Ok(Exit::Done)
}
