//! `ibifs cite`: the citation of an item.

use serde_json::json;

use super::{access, say};
use crate::archive::ArchiveError;
use crate::command::cli::Cite;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language;
use crate::formats::citation::{CitationError, CitationLanguage, cite, style_names};

pub(super) fn run(options: &Cite) -> Result<Exit, Failure> {
    let Some(item) = &options.item else {
        return list_styles(options.output.json);
    };
    let language = match options.language.as_deref() {
        Some(language) if language.eq_ignore_ascii_case("en") => CitationLanguage::English,
        None if language::chosen().is_none() => CitationLanguage::English,
        _ => CitationLanguage::Portuguese,
    };
    let named = access::find(item, options.store.as_deref())?;
    let archive = named.archive()?;
    let Some(item) = archive.held(&named.names)? else {
        return Err(ArchiveError::Unknown {
            name: named.names.preferred(),
        }
        .into());
    };
    let description = archive.read_as(&|read| read()).description(&item, None)?;
    let citation = cite(&description, &options.style, language).map_err(|error| {
        let exit = match error {
            CitationError::UnknownStyle { .. } | CitationError::NoBibliography { .. } => {
                Exit::Usage
            }
            CitationError::NotCited { .. } => Exit::Failed,
        };
        Failure::new(exit, error)
    })?;
    say(&if options.output.json {
        let mut value = json::names(&item.names);
        value.insert("style".to_owned(), json!(options.style));
        value.insert("language".to_owned(), json!(language.to_string()));
        value.insert("citation".to_owned(), json!(citation));
        json::pretty(&value.into())
    } else {
        format!("{citation}\n")
    })?;
    Ok(Exit::Done)
}

fn list_styles(is_json: bool) -> Result<Exit, Failure> {
    let names: Vec<&str> = style_names().collect();
    say(&if is_json {
        json::pretty(&json!({ "styles": names }))
    } else {
        names.join("\n") + "\n"
    })?;
    Ok(Exit::Done)
}
