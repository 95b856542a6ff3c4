//! `ibifs import`: a table of data that the tree does not have, or packages of items.

mod minted;
mod packages;
mod staging;
mod table;
mod verify;

use std::path::Path;

use crate::archive::package;
use crate::command::cli;
use crate::command::exit::{Exit, Failure};

use ibi::message;

use super::access::StoreAccess;

pub(super) fn run(options: &cli::Import) -> Result<Exit, Failure> {
    if options.verify {
        return verify::run(options);
    }
    let access = StoreAccess::at(&options.place)?;
    let mut exit = Exit::Done;
    for source in &options.sources {
        let one = one(options, &access, source)?;
        // A failure takes precedence over a refusal.
        if exit != Exit::Failed && one != Exit::Done {
            exit = one;
        }
    }
    Ok(exit)
}

/// Imports one source.
fn one(options: &cli::Import, access: &StoreAccess, source: &Path) -> Result<Exit, Failure> {
    let metadata = std::fs::metadata(source).map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        let path = source.display();
        Failure::new(exit, message!("'{path}': {error}", path, error))
    })?;
    if options.mint {
        minted::run(options, access, source)
    } else if metadata.is_dir() || metadata.is_file() && package::is_packed(source)? {
        packages::run(options, access, source)
    } else {
        table::run(options, access, source)
    }
}
