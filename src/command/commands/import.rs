//! `ibifs import`: a table of data that the tree does not have, or packages of items.

mod minted;
mod packages;
mod staging;
mod table;

use crate::archive::package;
use crate::command::cli;
use crate::command::exit::{Exit, Failure};

use ibi::message;

use super::access::StoreAccess;

pub(super) fn run(options: &cli::Import) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    let source = &options.source;
    let metadata = std::fs::metadata(source).map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        let path = source.display();
        Failure::new(exit, message!("'{path}': {error}", path, error))
    })?;
    if options.mint {
        minted::run(options, &access)
    } else if metadata.is_dir() || metadata.is_file() && package::is_packed(source)? {
        packages::run(options, &access)
    } else {
        table::run(options, &access)
    }
}
