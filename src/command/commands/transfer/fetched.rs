//! `ibifs copy` of items that other Archives hold: where they are looked for, and the destination.

use std::collections::VecDeque;
use std::path::Path;

use super::is_same;
use super::outcomes::OutcomeReport;
use crate::archive::Archive;
use crate::archive::transfer::{Local, TransferError, TransferOutcome};
use crate::command::cli::Copy;
use crate::command::commands::access::{self, StoreAccess};
use crate::command::commands::usage;
use crate::command::exit::{Exit, Failure};
use crate::formats::base_url::BaseUrl;
use crate::formats::item::Names;
use crate::formats::resolution::item_of;
use crate::fuse::mount::{Mounted, mounts};
use crate::http::client::Network;
use crate::web::remote_archive::is_url;
use crate::world::copy::{CopyDestination, CopyRequest, CopySource, Identity};
use ibi::message;
use ibi::persistent::{Identifier, is_link};
use ibi::relation::Request;

/// The Archives and resolvers that are asked for an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hosts {
    archives: Vec<BaseUrl>,
    resolvers: Vec<BaseUrl>,
}

/// An item to be fetched.
struct Wanted {
    asked: CopyRequest,
    names: Option<Names>,
    hosts: Hosts,
}

/// Copies items that are fetched from other Archives. None if all of them are in a store of this machine.
pub(super) fn copy(
    options: &Copy,
    texts: &[String],
    destination: &str,
) -> Result<Option<Exit>, Failure> {
    let hosts = Hosts {
        archives: options.from.clone(),
        resolvers: options.resolver.clone(),
    };
    if texts.is_empty() {
        return if hosts == Hosts::default() {
            Ok(None)
        } else {
            Err(usage(message!(
                "name the items that are fetched with --from or --resolver; for all items of an Archive mount it and copy from the mount"
            )))
        };
    }
    let to = if is_url(destination) {
        None
    } else {
        StoreAccess::at(Path::new(destination)).ok()
    };
    let Some(to) = to else {
        // The items are in a store, or it is reported that the destination is not one.
        return if hosts == Hosts::default() || !is_url(destination) {
            Ok(None)
        } else {
            Err(usage(message!(
                "items of other Archives are copied to a store on this machine; '{destination}' is a URL",
                destination
            )))
        };
    };
    let archive = to.read()?;
    let chooser = Chooser {
        options,
        archive: &archive,
        to: &to,
        hosts,
    };
    let mut wanted = VecDeque::new();
    let mut held = None;
    for text in texts {
        match chooser.choose(text)? {
            Some(one) => wanted.push_back(one),
            None => held = Some(text),
        }
    }
    match (held, wanted.is_empty()) {
        (_, true) => Ok(None),
        (Some(text), false) => Err(usage(message!(
            "'{text}' is in a store of this machine and others are fetched; copy them with two commands",
            text
        ))),
        (None, false) => fetch(options, &to, wanted).map(Some),
    }
}

struct Chooser<'a> {
    options: &'a Copy,
    archive: &'a Archive,
    to: &'a StoreAccess,
    hosts: Hosts,
}

impl Chooser<'_> {
    /// Chooses where an item is fetched from. None if it is in a store of this machine.
    fn choose(&self, text: &str) -> Result<Option<Wanted>, Failure> {
        let path = Path::new(text);
        if path.symlink_metadata().is_ok() {
            return in_world(path);
        }
        if let Some(store) = self.options.selection.store.as_deref() {
            match access::find(text, Some(store)) {
                Err(failure) if failure.exit == Exit::NotFound => {}
                found => return found.map(|_| None),
            }
        } else if self.hosts == Hosts::default() {
            match access::find(text, None) {
                Ok(named) if !is_same(&named.access.store, &self.to.store) => return Ok(None),
                _ => {}
            }
        }
        let hosts = self.hosts_for(text);
        if hosts == Hosts::default() {
            return Ok(None);
        }
        let name = access::read_identifier(self.archive, text)?;
        let (identity, names) = match &name.identifier {
            Identifier::Ibi(ibi) => (
                Some(Identity::Ibi(ibi.clone())),
                Some(Names::from(ibi.clone())),
            ),
            Identifier::Alias(alias) => (Some(Identity::Alias(alias.clone())), None),
            Identifier::Level(_) => (None, None),
        };
        let base = name.identifier.to_string();
        let asked = match &name.request {
            None => CopyRequest {
                name: base,
                identity,
            },
            Some(Request::Modifier(modifier)) => CopyRequest {
                name: format!("{base}{modifier}"),
                identity: None,
            },
            Some(Request::FileList(_)) => {
                return Err(usage(message!("'{text}' leads to no item", text)));
            }
        };
        Ok(Some(Wanted {
            asked,
            names,
            hosts,
        }))
    }

    /// Tells who is asked for an item: whom the user names, else the host of a URL, else the destination's resolver.
    fn hosts_for(&self, text: &str) -> Hosts {
        if self.hosts != Hosts::default() {
            return self.hosts.clone();
        }
        let of_url = is_link(text).then(|| item_of(text)).flatten();
        let base = of_url.and_then(|(base, _)| BaseUrl::parse(&base).ok());
        let resolvers = match &base {
            Some(base) => vec![base.clone()],
            None => self.archive.facts().resolver.iter().cloned().collect(),
        };
        Hosts {
            archives: base.into_iter().collect(),
            resolvers,
        }
    }
}

/// The item of a path in a mount of items of other Archives, and its Archive.
fn in_world(path: &Path) -> Result<Option<Wanted>, Failure> {
    let Ok(resolved) = std::fs::canonicalize(path) else {
        return Ok(None);
    };
    let mounted = mounts().into_iter();
    let mounted = mounted.filter(|mount| resolved.starts_with(&mount.mount_point));
    let mounted = mounted.max_by_key(|mount| mount.mount_point.as_os_str().len());
    if !mounted.is_some_and(|mount: Mounted| mount.is_world()) {
        return Ok(None);
    }
    let shown = path.display();
    let said = |attribute: &str| {
        let found = access::attribute_of(&resolved, attribute);
        found.filter(|text| !text.is_empty())
    };
    let name = said("user.ibi.rep").or_else(|| said("user.ibi.ibip"));
    let base = said("user.ibi.archive").and_then(|base| BaseUrl::parse(&base).ok());
    let (Some(name), Some(base)) = (name, base) else {
        return Err(usage(message!(
            "'{shown}' is a directory above items; name an item in it",
            shown
        )));
    };
    let names = access::names_in(&name)?;
    Ok(Some(Wanted {
        asked: CopyRequest::of(&names),
        names: Some(names),
        hosts: Hosts {
            archives: vec![base],
            resolvers: Vec::new(),
        },
    }))
}

/// Fetches items, and prints what became of each.
fn fetch(
    options: &Copy,
    access: &StoreAccess,
    mut wanted: VecDeque<Wanted>,
) -> Result<Exit, Failure> {
    let network = crate::command::commands::network(&options.selection.network)?;
    let store = Local::reading(&access.store)?;
    let open = || Local::changing(&access.store, access.mount_point.as_deref());
    let to = CopyDestination {
        store: &store,
        is_mounted: access.mount_point.is_some(),
        brings_back: options.selection.bring_back,
        open: &open,
    };
    let mut report = OutcomeReport::new(wanted.len(), options.selection.output.json);
    let mut sources: Vec<(Hosts, CopySource)> = Vec::new();
    let mut done: Vec<Names> = Vec::new();
    while let Some(one) = wanted.pop_front() {
        if one
            .names
            .as_ref()
            .is_some_and(|it| done.iter().any(|done| done.matches(it)))
        {
            continue;
        }
        let source = match sources.iter().position(|(hosts, _)| *hosts == one.hosts) {
            Some(at) => &sources[at].1,
            None => {
                let new = source(&one.hosts, &network, options.allow_private)?;
                sources.push((one.hosts.clone(), new));
                &sources[sources.len() - 1].1
            }
        };
        let found = match (source.find(&one.asked), &one.names) {
            (Ok(found), _) => found,
            (Err(TransferError::Skip(skip)), Some(names)) => {
                report.add(names, Ok(TransferOutcome::Skipped(skip)))?;
                continue;
            }
            (Err(error), _) => return Err(Failure::from(error).before(&one.asked.name)),
        };
        let names = found.names().clone();
        let metadata = found.metadata().filter(|_| options.selection.with_metadata);
        let outcome = match source.copy(&one.asked, found, &to) {
            Err(TransferError::Skip(skip)) => Ok(TransferOutcome::Skipped(skip)),
            outcome => outcome,
        };
        report.add(&names, outcome)?;
        done.push(names);
        if let Some(metadata) = metadata
            && !done.iter().any(|done| done.matches(&metadata))
        {
            wanted.push_front(Wanted {
                asked: CopyRequest::of(&metadata),
                names: Some(metadata),
                hosts: one.hosts,
            });
        }
    }
    report.end()
}

fn source(hosts: &Hosts, network: &Network, allows_private: bool) -> Result<CopySource, Failure> {
    let (archives, resolvers) = (hosts.archives.clone(), hosts.resolvers.clone());
    CopySource::new(network, archives, resolvers, allows_private)
        .map_err(|error| Failure::new(Exit::Failed, error))
}
