//! `ibifs backup --list`: the generations of a backup.

use std::path::Path;

use rustix::io::Errno;
use serde_json::json;

use super::super::{failed_at, say};
use crate::archive::backup::{self, BackupError, Generation};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use ibi::message::Localize;
use ibi::{message, plural};

pub(super) fn run(path: &Path, is_json: bool) -> Result<Exit, Failure> {
    let listed = backup::list(path).map_err(|errno| {
        let exit = match errno {
            Errno::NOENT | Errno::NOTDIR => Exit::NotFound,
            _ => Exit::Failed,
        };
        failed_at(path, exit, &std::io::Error::from(errno).message())
    })?;
    let listed = listed.ok_or_else(|| BackupError::NoGeneration {
        path: path.to_owned(),
        date: String::new(),
    })?;
    // Which blocks are shared, the filesystem alone knows.
    let is_known = !listed.iter().any(|generation| generation.shares_blocks);
    let mut text = String::new();
    for generation in &listed {
        let own = is_known
            .then(|| backup::own_size(path, generation).ok())
            .flatten();
        text.push_str(&if is_json {
            line_json(generation, own)
        } else {
            line(generation, own)
        });
    }
    say(&text)?;
    Ok(Exit::Done)
}

fn line(generation: &Generation, own: Option<u64>) -> String {
    let items = generation.items.unwrap_or_default();
    let items = plural!("{count} item", "{count} items", count = items);
    let state = match generation.date {
        Some(_) => items,
        None => message!("not finished"),
    };
    let name = &generation.name;
    let line = match own {
        Some(own) => message!(
            "{name}  {state}, {bytes} of its own",
            name,
            state,
            bytes = plural!("{count} byte", "{count} bytes", count = own)
        ),
        None => message!("{name}  {state}", name, state),
    };
    format!("{}\n", localized(&line))
}

fn line_json(generation: &Generation, own: Option<u64>) -> String {
    let value = json!({
        "name": generation.name,
        "date": generation.date.as_ref().map(|date| date.to_rfc3339()),
        "items": generation.items,
        "ownBytes": own,
        "finished": generation.date.is_some(),
    });
    json::line(&value)
}
