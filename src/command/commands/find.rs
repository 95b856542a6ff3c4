//! `ibifs find`: items by words of their descriptions, and of their files.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::access::StoreAccess;
use super::{daemon, say};
use crate::archive::scrub::recorded_formats;
use crate::archive::store::ItemId;
use crate::archive::tree::Place;
use crate::archive::{Archive, ArchiveError, SearchIndexes, SearchPage, SearchScope, SearchStop};
use crate::command::cli::Find;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::command::terminal::OneLine;
use crate::formats::item::{Names, State};
use crate::formats::metadata::{DublinCore, Element};
use crate::formats::pronom::is_puid;
use crate::formats::question::Line;
use crate::formats::search::{SearchField, SearchQuery};
use crate::fuse::mount::{Mounted, SHOWN};
use ibi::message;

/// The time for which the text of files is read before a search.
const READING: Duration = Duration::from_secs(10);

/// The number of items whose formats are read at a time.
const PAGE: usize = 500;

/// An item that was found.
struct FoundItem {
    names: Names,
    core: DublinCore,
    /// Its last edition, if that is another item.
    last_edition: Option<Names>,
}

pub(super) fn run(options: &Find) -> Result<Exit, Failure> {
    let (formats, words) = formats_in(&options.words.join(" "));
    if let Some(value) = &options.year
        && !value.split('-').all(|year| year.parse::<u16>().is_ok())
    {
        let value = value.clone();
        return Err(Failure::new(
            Exit::Usage,
            message!(
                "'{value}' is not a year, as 2010, and not two of them, as 2008-2010",
                value
            ),
        ));
    }
    let creators = options
        .creator
        .iter()
        .map(|name| (SearchField::Creator, name));
    let years = options.year.iter().map(|year| (SearchField::Year, year));
    let types = options.r#type.iter().map(|word| (SearchField::Type, word));
    let fields = creators.chain(years).chain(types);
    let fields = fields.map(|(field, value)| (field, value.as_str()));
    let wanted = match SearchQuery::of_words(&words, fields.clone()) {
        Ok(wanted) => Some(wanted),
        Err(_) if words.is_empty() && !formats.is_empty() => None,
        Err(text) => {
            return Err(Failure::new(
                Exit::Usage,
                message!("'{text}' has no word that an item must have", text),
            ));
        }
    };
    let access = StoreAccess::for_identifier(options.store.as_deref(), &words)?;
    let (found, has_more) = match access.asked() {
        Some(_) if !formats.is_empty() => {
            return Err(Failure::new(
                Exit::Failed,
                message!("formats are found by who may read the store"),
            ));
        }
        Some(mounted) => in_mount(&mounted, &words, fields, options.limit)?,
        None => in_store(&access.read()?, wanted.as_ref(), &formats, options)?,
    };
    if found.is_empty() {
        // Most commands name the store first.
        let is_store = |word: &&String| StoreAccess::at(Path::new(word)).is_ok();
        let none = match options.words.first().filter(is_store) {
            Some(store) => message!(
                "no item has all of these words; '{store}' was searched for as one of them: name a store with '--store {store}'",
                store
            ),
            None => match unknown_field(&words) {
                Some(name) => {
                    let fields = SearchField::ALL.map(SearchField::name).join(", ");
                    message!(
                        "no item has all of these words; '{name}' is not a field, so '{name}:' was searched for as a word; the fields are {fields}",
                        name,
                        fields
                    )
                }
                None => message!("no item has all of these words"),
            },
        };
        return Err(Failure::new(Exit::NotFound, none));
    }
    if options.output.json {
        let values: Value = found.iter().map(as_json).collect();
        say(&json::pretty(&values))?;
    } else {
        say(&found.iter().map(line).collect::<String>())?;
        if has_more {
            let count = options.limit.to_string();
            let message = message!("only the first {count} are shown; see --limit", count);
            eprintln!("ibifs: {}", localized(&message));
        }
    }
    Ok(Exit::Done)
}

/// The PUIDs after `format:` in a query, and its other words.
fn formats_in(words: &str) -> (Vec<String>, String) {
    let mut formats = Vec::new();
    let others = words.split(' ').filter(|word| {
        let puid = word.strip_prefix("format:").filter(|puid| is_puid(puid));
        formats.extend(puid.map(str::to_owned));
        puid.is_none()
    });
    let others = others.collect::<Vec<_>>().join(" ");
    (formats, others)
}

/// At most so many items of a store, and whether there are more.
fn in_store(
    archive: &Archive,
    wanted: Option<&SearchQuery>,
    formats: &[String],
    options: &Find,
) -> Result<(Vec<FoundItem>, bool), Failure> {
    let page = match wanted {
        Some(wanted) if formats.is_empty() => {
            let indexes = up_to_date(archive, options)?;
            archive
                .read_as(&|read| read())
                .search(&indexes, wanted, 0, options.limit)?
        }
        wanted => with_formats(archive, wanted, formats, options)?,
    };
    let mut found = Vec::new();
    for item in page.items {
        let description = archive.read_as(&|read| read()).description(&item, None)?;
        let last = archive.last_edition(&item.names).ok();
        found.push(FoundItem {
            last_edition: last.filter(|last| !last.matches(&item.names)),
            names: item.names,
            core: description.record.core,
        });
    }
    Ok((found, page.has_more))
}

/// The same of those that have files of all these formats: of the items found by words, or of all items. Reads the record of
/// each.
fn with_formats(
    archive: &Archive,
    wanted: Option<&SearchQuery>,
    formats: &[String],
    options: &Find,
) -> Result<SearchPage, Failure> {
    let indexes = wanted.map(|_| up_to_date(archive, options)).transpose()?;
    let (mut page, mut read, mut last) = (SearchPage::default(), 0, ItemId(0));
    loop {
        let (items, has_more) = match (wanted, &indexes) {
            (Some(wanted), Some(indexes)) => {
                let reader = archive.read_as(&|read| read());
                let next = reader.search(indexes, wanted, read, PAGE)?;
                (next.items, next.has_more)
            }
            _ => {
                let next = archive.store().items_after(last, PAGE);
                let next = next.map_err(ArchiveError::from)?;
                let is_full = next.len() == PAGE;
                (next, is_full)
            }
        };
        for item in items {
            (read, last) = (read + 1, item.id);
            let recorded = match item.state {
                State::Deleted => continue,
                _ => recorded_formats(archive.tree(), Place::of(&item.names).as_str())?,
            };
            let has = |puid| recorded.values().any(|it| it.puids.contains(puid));
            if formats.iter().all(has) {
                if page.items.len() == options.limit {
                    page.has_more = true;
                    return Ok(page);
                }
                page.items.push(item);
            }
        }
        if !has_more {
            return Ok(page);
        }
    }
}

/// The same, as the daemon of a mount answers.
fn in_mount<'a>(
    mounted: &Mounted,
    words: &str,
    fields: impl Iterator<Item = (SearchField, &'a str)>,
    limit: usize,
) -> Result<(Vec<FoundItem>, bool), Failure> {
    let question = Line::new("find").with("words", words).with("limit", limit);
    let question = fields.fold(question, |line, (field, value)| {
        line.with(field.name(), value)
    });
    let (mut found, mut has_more) = (Vec::new(), false);
    daemon::each_line(mounted, &question, |line| {
        has_more |= line.word() == "more";
        let Some(names) = line.names("item") else {
            return;
        };
        let mut core = DublinCore::default();
        for (name, element) in SHOWN {
            line.all(name).for_each(|value| core.push(element, value));
        }
        found.push(FoundItem {
            names,
            core,
            last_edition: line.names("last"),
        });
    })?;
    Ok((found, has_more))
}

/// The search indexes of a store. Where one cannot be written, it is made for this command alone.
fn up_to_date(archive: &Archive, options: &Find) -> Result<SearchIndexes, Failure> {
    let indexes = archive.search_indexes(SearchScope::All)?;
    let progress = ProgressLine::of_items(|| archive.store().held_items().ok());
    archive
        .read_as(&|read| read())
        .update_search(&indexes.descriptions, &mut |read| {
            progress.at(read);
            SearchStop::GoOn
        })?;
    if let Some(texts) = &indexes.texts {
        if options.complete {
            texts.look_again().map_err(ArchiveError::from)?;
        }
        let until = Instant::now() + READING;
        let is_complete = archive
            .read_as(&|read| read())
            .update_texts(texts, &mut |examined| {
                progress.at(examined);
                if options.complete || Instant::now() < until {
                    SearchStop::GoOn
                } else {
                    SearchStop::Stop
                }
            });
        drop(progress);
        let note = match is_complete {
            Ok(true) => return Ok(indexes),
            Ok(false) => {
                message!("the text of some files is not read yet; search again, or with --complete")
            }
            Err(error) => message!("the text of some files cannot be read: {error}", error),
        };
        eprintln!("ibifs: {}", localized(&note));
    }
    Ok(indexes)
}

fn line(found: &FoundItem) -> String {
    let name = found.names.preferred();
    let title = found.core.first(Element::Title).unwrap_or(&name);
    let creator = found.core.first(Element::Creator);
    let creator = creator.map_or(String::new(), |name| format!("  {name}"));
    let last = found.last_edition.as_ref().map_or(String::new(), |last| {
        let last = last.preferred();
        format!("  {}", localized(&message!("(last edition: {last})", last)))
    });
    format!("{}\n", OneLine(format!("{name}  {title}{creator}{last}")))
}

/// The text before a colon in one of the words, unless it is the name of a field.
fn unknown_field(words: &str) -> Option<String> {
    words.split_whitespace().find_map(|word| {
        let (name, _) = word.trim_start_matches('-').split_once(':')?;
        let is_name = !name.is_empty() && name.chars().all(char::is_alphabetic);
        (is_name && SearchField::from_name(name).is_none()).then(|| name.to_owned())
    })
}

fn as_json(found: &FoundItem) -> Value {
    let core = &found.core;
    let all = |element| core.values(element).collect::<Vec<_>>();
    let mut object = json::names(&found.names);
    object.insert("title".to_owned(), json!(core.first(Element::Title)));
    object.insert("creators".to_owned(), json!(all(Element::Creator)));
    object.insert("dates".to_owned(), json!(all(Element::Date)));
    object.insert("types".to_owned(), json!(all(Element::Type)));
    let last = found.last_edition.as_ref().map(json::names);
    object.insert("lastedition".to_owned(), json!(last));
    object.into()
}
