//! `ibifs init`: makes a new store, or adopts a tree of repositories.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{print, say, usage};
use crate::archive::tree::{Tree, TreeError};
use crate::archive::{Archive, ArchiveError, Setup, SystemClock};
use crate::command::cli::Init;
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::item::Names;
use crate::fuse::mount::Mounted;
use ibi::distributor::Granularity;
use ibi::persistent::{Identifier, PersistentKind, PersistentName};
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
    refuse_mount(&store)?;
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
        url: options.url.clone(),
        resolver: options.resolver.clone(),
        searched: options.search,
        index: options.index.clone(),
        adopts: options.adopt.is_some(),
    };
    if let Some(host) = &setup.host {
        check_host(host)?;
    }
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
    for lack in archive.tree().lacks().map_err(ArchiveError::from)? {
        eprintln!(
            "ibifs: {}: {}",
            localized(&lack.severity()),
            localized(&lack)
        );
    }
    if archive
        .tree()
        .is_open_to_others()
        .map_err(ArchiveError::from)?
    {
        let note = message!(
            "other users may enter '{store}' and read the index, with the sidecars of all items; if they must not, run 'chmod 700 {store}'",
            store = store.display()
        );
        eprintln!("ibifs: {}", localized(&note));
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

/// Refuses a store among the levels of a mounted store, where only identifiers have a place. In an item it is
/// a directory as any other.
fn refuse_mount(store: &Path) -> Result<(), Failure> {
    let Ok(store) = std::path::absolute(store) else {
        return Ok(());
    };
    let is_there = |path: &&Path| path.exists();
    let Some(above) = store.ancestors().find(is_there) else {
        return Ok(());
    };
    let Ok(found) = above.canonicalize() else {
        return Ok(());
    };
    let below = store.strip_prefix(above).unwrap_or(Path::new(""));
    let path = found.join(below);
    let Some(mounted) = Mounted::containing(&path) else {
        return Ok(());
    };
    let in_mount = path.strip_prefix(&mounted.mount_point).unwrap_or(&path);
    if is_in_item(in_mount) {
        return Ok(());
    }
    Err(usage(message!(
        "'{path}' is in the mount of the store '{store}', where every directory is a part of an identifier; make the new store elsewhere",
        path = store.display(),
        store = mounted.source.display()
    )))
}

/// Whether a path from the root of a mount leads into an item.
fn is_in_item(path: &Path) -> bool {
    let names: Vec<&str> = path.iter().filter_map(OsStr::to_str).collect();
    let is_item = |depth: usize| {
        let named = names.get(..depth).filter(|_| names.len() > depth);
        named.is_some_and(|named| {
            named.first() == Some(&".mint") || Ibi::from_str(&named.join("/")).is_ok()
        })
    };
    is_item(2) || is_item(4)
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

/// Refuses what is often typed for the name of a host.
fn check_host(host: &str) -> Result<(), Failure> {
    if host.contains('/') {
        return Err(usage(message!(
            "'{host}' is no host name but a URL or a path; give the name alone, such as archive.example.org, and the URL with --url",
            host
        )));
    }
    if !host.is_ascii() {
        return Err(usage(message!(
            "host '{host}' has letters beyond ASCII; give the name as it is in the DNS, where such a part begins with 'xn--'",
            host
        )));
    }
    Ok(())
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

/// The names of a service, each as an identifier or as a link to the item.
fn service_names(texts: &[String]) -> Result<Option<Names>, Failure> {
    let ibi = |text: &String| match PersistentName::parse(text) {
        Ok(PersistentName {
            kind: PersistentKind::Item,
            identifier: Identifier::Ibi(ibi),
            request: None,
            ..
        }) => Ok(ibi),
        _ => Ibi::parse(text),
    };
    let ibis: Result<Vec<Ibi>, _> = texts.iter().map(ibi).collect();
    Ok(Names::collect(ibis.map_err(usage)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_mount_leads_into_an_item_or_not() {
        for (path, is) in [
            ("", false),
            ("new.store", false),
            ("any/word/2020", false),
            ("iconet.com.br/banon/2001/02.10.22.55", false),
            ("iconet.com.br/banon/2001/02.10.22.55/doc", true),
            ("8JMKD3MGP8W/34PGRBS", false),
            ("8JMKD3MGP8W/34PGRBS/store", true),
            (".mint/new", false),
            (".mint/new/store", true),
        ] {
            assert_eq!(is_in_item(Path::new(path)), is, "{path}");
        }
    }
}
