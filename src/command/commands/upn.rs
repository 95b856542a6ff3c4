//! `ibifs upn`: the table of name spaces of `upn:` names.

use serde_json::{Value, json};

use super::access::{self, StoreAccess};
use super::{say, usage};
use crate::archive::{change_name_spaces, name_spaces};
use crate::command::cli::Upn;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::name_spaces::{NameSpace, name_of};
use crate::fuse::mount::{Mounted, mounts};
use ibi::message;

pub(super) fn run(options: &Upn) -> Result<Exit, Failure> {
    let store = match &options.place {
        Some(place) => StoreAccess::at(place)?.store,
        None => only_mounted()?,
    };
    let mut text = String::new();
    if let Some(name) = &options.name {
        let prefixes = options.prefixes.iter().map(String::as_str);
        let entry = NameSpace::new(name, prefixes).map_err(usage)?;
        text = entry.line();
        change_name_spaces(&store, |table| table.set(entry))?;
    } else if let Some(name) = &options.remove {
        let name = name_of(name).map_err(usage)?;
        if !change_name_spaces(&store, |table| table.remove(&name))? {
            return Err(Failure::new(
                Exit::NotFound,
                message!("name space {name} is not registered", name),
            ));
        }
    } else {
        text = name_spaces(&store)?.iter().map(NameSpace::line).collect();
    }
    if options.output.json {
        let table = name_spaces(&store)?;
        let entry = |it: &NameSpace| json!({ "name": it.name(), "prefixes": it.prefixes() });
        text = json::pretty(&table.iter().map(entry).collect::<Value>());
    }
    say(&text)?;
    Ok(Exit::Done)
}

/// The store of the mount in which this process is, or of the only mount.
fn only_mounted() -> Result<std::path::PathBuf, Failure> {
    if let Some(mounted) = access::of_working_directory() {
        access::check_owner(&mounted)?;
        return Ok(mounted.source);
    }
    let mut ours = mounts().into_iter().filter(Mounted::is_ours);
    match (ours.next(), ours.next()) {
        (Some(only), None) => {
            access::check_owner(&only)?;
            Ok(only.source)
        }
        (None, _) => Err(usage(message!("no store is mounted; name a store"))),
        (Some(_), Some(_)) => Err(usage(message!(
            "several stores are mounted; name one of them"
        ))),
    }
}
