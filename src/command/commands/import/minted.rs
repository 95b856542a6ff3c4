//! `ibifs import --mint`: a package without an identifier, a zip or tar file or a directory becomes a new item.

use std::path::Path;

use super::staging;
use crate::archive::package;
use crate::command::cli;
use crate::command::commands::access::StoreAccess;
use crate::command::commands::{mint, print, say};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::progress::ProgressLine;
use crate::formats::item::State;
use ibi::message;

pub(super) fn run(
    options: &cli::Import,
    access: &StoreAccess,
    source: &Path,
) -> Result<Exit, Failure> {
    let staging = staging::beside(source)?;
    let progress = ProgressLine::of(&message!("files"), || None);
    let (mut files, mut bytes) = (0, 0);
    let mut count = |more: u64| {
        files += u64::from(more == 0);
        bytes += more;
        progress.at_bytes(files, bytes);
    };
    package::stage_unnamed(source, &staging, &mut count)?;
    drop(progress);
    let names = mint::with_directory(access, &staging, package::ITEM)?;
    say(&if options.output.json {
        json::pretty(&json::item_with(&names, State::Original, None).into())
    } else {
        print::names_text(&names)
    })?;
    Ok(Exit::Done)
}
