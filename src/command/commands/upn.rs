//! `ibifs upn`: the table of name spaces of `upn:` names.

use serde_json::{Value, json};

use super::access::StoreAccess;
use super::{say, usage};
use crate::archive::change_name_spaces;
use crate::command::cli::Upn;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::name_spaces::{NameSpace, name_of};
use ibi::message;

pub(super) fn run(options: &Upn) -> Result<Exit, Failure> {
    let access = StoreAccess::named(options.place.as_deref())?;
    let store = &access.store;
    let mut text = String::new();
    if let Some(name) = &options.name {
        let prefixes = options.prefixes.iter().map(String::as_str);
        let entry = NameSpace::new(name, prefixes).map_err(usage)?;
        text = entry.line();
        change_name_spaces(store, |table| table.set(entry))?;
    } else if let Some(name) = &options.remove {
        let name = name_of(name).map_err(usage)?;
        if !change_name_spaces(store, |table| table.remove(&name))? {
            return Err(Failure::new(
                Exit::NotFound,
                message!("name space {name} is not registered", name),
            ));
        }
    } else {
        text = access.name_spaces()?.iter().map(NameSpace::line).collect();
    }
    if options.output.json {
        let table = access.name_spaces()?;
        let entry = |it: &NameSpace| json!({ "name": it.name(), "prefixes": it.prefixes() });
        text = json::pretty(&table.iter().map(entry).collect::<Value>());
    }
    say(&text)?;
    Ok(Exit::Done)
}
