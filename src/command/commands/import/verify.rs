//! `ibifs import --verify`: packages are compared with their descriptions, and nothing is imported.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::packages::{Source, below};
use super::staging;
use crate::archive::package::{self, Found, Package, PackageError};
use crate::command::cli;
use crate::command::commands::say;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::command::terminal::OneLine;
use ibi::message;
use ibi::message::Localize;

pub(super) fn run(options: &cli::Import) -> Result<Exit, Failure> {
    let progress = ProgressLine::of(&message!("files"), || None);
    let mut exit = Exit::Done;
    for source in std::iter::once(&options.place).chain(&options.sources) {
        let sources = Source::open(source)?;
        let paths = match sources.packages() {
            Err(PackageError::Nothing { .. }) => vec![PathBuf::new()],
            found => found?,
        };
        for path in paths {
            let shown = below(source, &path);
            let opened = sources.found(&path).map_err(Failure::from);
            let opened = opened.and_then(|found| verified(found, source, &shown, &progress));
            progress.aside(|| report(options, &shown, &opened))?;
            if opened.is_err() {
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

fn verified(
    found: Found,
    source: &Path,
    shown: &Path,
    progress: &ProgressLine,
) -> Result<Package, Failure> {
    let (mut files, mut bytes) = (0, 0);
    let mut count = |more: u64| {
        files += u64::from(more == 0);
        bytes += more;
        progress.at_bytes(files, bytes);
    };
    let staging;
    let root = match found {
        Found::Directory(root) => root,
        Found::File(file) => {
            staging = staging::beside(source)?;
            package::unpack_package(file, shown, &staging, &mut count)?.into()
        }
    };
    Ok(package::open(root, &mut count)?)
}

fn report(
    options: &cli::Import,
    path: &Path,
    opened: &Result<Package, Failure>,
) -> Result<(), Failure> {
    let package = path.display().to_string();
    let warnings = opened.as_ref().map_or(&[][..], Package::warnings);
    if options.output.json {
        let warnings: Vec<_> = warnings.iter().map(|it| it.message().to_string()).collect();
        let sentence = opened
            .as_ref()
            .err()
            .map(|failure| failure.message.to_string());
        let value = json!({
            "package": package,
            "outcome": if opened.is_ok() { "valid" } else { "not-valid" },
            "sentence": sentence,
            "warnings": warnings,
        });
        return say(&json::line(&value));
    }
    for warning in warnings {
        let warning = message!("{path}: warning: {warning}", path = &package, warning);
        eprintln!("ibifs: {}", OneLine(localized(&warning)));
    }
    match opened {
        Ok(_) => say(&format!(
            "{}: {}\n",
            localized(&message!("valid")),
            OneLine(package)
        )),
        Err(failure) => {
            let line = format!("{package}: {}", localized(&failure.message));
            eprintln!("ibifs: {}", OneLine(line));
            Ok(())
        }
    }
}
