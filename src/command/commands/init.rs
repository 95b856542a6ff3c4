//! `ibifs init`: makes a new store, or adopts a tree of repositories.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use super::{print, say, usage};
use crate::archive::tree::{Tree, TreeError};
use crate::archive::{Archive, Setup, SystemClock};
use crate::command::cli::Init;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::item::Names;
use ibi::distributor::Granularity;
use ibi::{Ibi, message};

pub(super) fn init(options: &Init) -> Result<Exit, Failure> {
    let store = match (&options.store, &options.adopt) {
        (None, Some(adopted)) => adopted_store(adopted)?,
        (Some(store), None) => store.clone(),
        (Some(store), Some(adopted)) if adopted_store(adopted)? == *store => store.clone(),
        (Some(store), Some(adopted)) => {
            return Err(usage(message!(
                "a tree is adopted in place: move '{tree}' to '{place}' and use --adopt alone",
                tree = adopted.display(),
                place = store.join("col").display()
            )));
        }
        (None, None) => return Err(usage(message!("name the directory of the new store"))),
    };
    let granularity = options
        .granularity
        .as_deref()
        .map(Granularity::parse)
        .transpose()
        .map_err(usage)?;
    // A rebuilt Archive gets its host from the identifier of its service.
    let given = options.host.as_ref().or(options.email.as_ref());
    let is_open = given.is_none() && options.service.is_empty();
    let asked = if is_open && !options.output.json {
        ask_for_host()?
    } else {
        None
    };
    let is_chosen = !is_open || asked.is_some();
    let setup = Setup {
        host: given.cloned().or(asked),
        port: options.port,
        ip: options.ip,
        ip_port: options.ip_port,
        granularity,
        service: service_names(&options.service)?,
    };
    let progress = ProgressLine::of_items(|| items_below(&store));
    let (archive, report) = Archive::init(&store, &setup, Box::new(SystemClock), &mut |items| {
        progress.at(items);
    })?;
    drop(progress);
    for finding in &report.findings {
        eprint!(
            "ibifs: {}",
            print::finding_line(finding, print::Repairs::Made)
        );
    }
    let facts = archive.facts();
    say(&if options.output.json {
        print::facts_json(&store, facts)
    } else {
        let created = message!(
            "{store} is an Archive now: reps begin {rep_prefix}, IBIps {ibip_prefix}\nmount it with 'ibifs mount {store} MNT'",
            store = store.display(),
            rep_prefix = facts.rep_prefix()?,
            ibip_prefix = facts.ibip_prefix()
        );
        format!("{}\n", localized(&created))
    })?;
    if !is_chosen {
        let note = message!(
            "no --host was given: the reps begin with {prefix} for ever; for another name, remove the store now and create it with --host",
            prefix = facts.rep_prefix()?
        );
        eprintln!("ibifs: {}", localized(&note));
    }
    archive.close();
    Ok(Exit::Done)
}

/// Asks a person at a terminal for the host name, which can never be changed; None for the default, or
/// without a terminal.
fn ask_for_host() -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(None);
    }
    eprintln!(
        "{}",
        localized(&message!(
            "The identifiers of this Archive begin with the name of its host, and never change. Choose a name that the institution will keep, such as archive.example.org."
        ))
    );
    eprint!(
        "{} ",
        localized(&message!(
            "Host name (empty: this machine's, or a random one):"
        ))
    );
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::new(Exit::Failed, message!("standard input: {error}", error)))?;
    let host = line.trim();
    Ok((!host.is_empty()).then(|| host.to_owned()))
}

/// The number of items in an adopted tree: four levels of directories, which are read quickly.
fn items_below(store: &Path) -> Option<u64> {
    let tree = Tree::open_as_it_is(store).ok()?;
    let mut count = 0;
    let counted = tree.each_item::<TreeError>(|_, _| {
        count += 1;
        Ok(())
    });
    counted.ok().map(|()| count)
}

/// The store of an adopted tree: the directory that has `col/`, or the parent of `col/` itself.
fn adopted_store(directory: &Path) -> Result<PathBuf, Failure> {
    if directory.join("col").is_dir() {
        return Ok(directory.to_owned());
    }
    let resolved = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    match (resolved.file_name(), resolved.parent()) {
        (Some(name), Some(parent)) if name == "col" && resolved.is_dir() => Ok(parent.to_owned()),
        _ => Err(Failure::new(
            Exit::NotFound,
            message!(
                "'{directory}' has no directory col to adopt; put the tree of repositories there",
                directory = directory.display()
            ),
        )),
    }
}

fn service_names(texts: &[String]) -> Result<Option<Names>, Failure> {
    let ibis: Result<Vec<Ibi>, _> = texts.iter().map(|text| Ibi::parse(text)).collect();
    Ok(Names::collect(ibis.map_err(usage)?))
}
