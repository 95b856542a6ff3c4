//! `ibifs copy` of items that other Archives hold: where they are looked for, and the destination.

use std::collections::VecDeque;
use std::path::Path;
use std::time::SystemTime;

use super::is_same;
use super::mounted::{known, of_this_user};
use super::outcomes::OutcomeReport;
use crate::archive::transfer::{Local, Skip, TransferError, TransferOutcome};
use crate::archive::tree::Tree;
use crate::archive::{Archive, ArchiveError, attribute_of};
use crate::command::cli::Copy;
use crate::command::commands::access::{self, StoreAccess};
use crate::command::commands::usage;
use crate::command::commands::world::caches;
use crate::command::exit::{Exit, Failure};
use crate::formats::base_url::BaseUrl;
use crate::formats::item::{Life, Names, State};
use crate::formats::query::encoded;
use crate::formats::resolution::item_of;
use crate::fuse::mount::{Mounted, mounts};
use crate::http::client::Network;
use crate::web::remote_archive::{RemoteArchive, is_url, withdrawal_at};
use crate::world::copy::{CopyDestination, CopyRequest, CopySource, Identity, ItemToCopy};
use ibi::message;
use ibi::message::Localize;
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
    let archive = to.read_about(&[])?;
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
        let found = attribute_of(&resolved, attribute);
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
    let to = Receiver::at(access, options)?;
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
                let skip = match skip {
                    Skip::NotFound => withdrawn(&one.hosts, names, &network, &to)?,
                    skip => skip,
                };
                report.add(names, Ok(TransferOutcome::Skipped(skip)))?;
                continue;
            }
            (Err(error), _) => return Err(Failure::from(error).before(&one.asked.name)),
        };
        let names = found.names().clone();
        let metadata = found.metadata().filter(|_| options.selection.with_metadata);
        let outcome = match to.receive(source, &one.asked, found) {
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

/// Finds out whether an item that is not found at the Archives is withdrawn at one of them. If that one holds the original
/// of a copy in the store, the copy is withdrawn with it.
fn withdrawn(
    hosts: &Hosts,
    names: &Names,
    network: &Network,
    to: &Receiver<'_>,
) -> Result<Skip, Failure> {
    for base in &hosts.archives {
        let Some(life) = withdrawal_at(base, names, network) else {
            continue;
        };
        let Some(said) = life.withdrawn.as_ref().map(ToString::to_string) else {
            continue;
        };
        // Its holder is the one that its sidecar names, and the answer must be that one's.
        let is_holder = |holder: &Names| {
            let url = base.at(&encoded(holder.preferred().as_bytes()));
            let asked = RemoteArchive::at(&url, network).and_then(|it| it.has_withdrawn(names));
            asked.unwrap_or_else(|error| {
                log::info!("{names}: {}", error.message());
                false
            })
        };
        return Ok(if to.withdraw(names, &life, is_holder)? {
            Skip::WithdrawnCopy(said)
        } else {
            Skip::Withdrawn(said)
        });
    }
    Ok(Skip::NotFound)
}

fn source(hosts: &Hosts, network: &Network, allows_private: bool) -> Result<CopySource, Failure> {
    let (archives, resolvers) = (hosts.archives.clone(), hosts.resolvers.clone());
    CopySource::new(network, archives, resolvers, allows_private)
        .map_err(|error| Failure::new(Exit::Failed, error))
}

/// The store that items are fetched to.
struct Receiver<'a> {
    access: &'a StoreAccess,
    /// The mount that is asked where this user may not enter the store, and this user's own directory for arriving files.
    asked: Option<(Mounted, Tree)>,
    brings_back: bool,
    verifies: bool,
}

impl Receiver<'_> {
    fn at<'a>(access: &'a StoreAccess, options: &Copy) -> Result<Receiver<'a>, Failure> {
        Ok(Receiver {
            access,
            asked: match access.asked() {
                Some(mounted) => Some((mounted, own_arrivals()?)),
                None => None,
            },
            brings_back: options.selection.bring_back,
            verifies: options.verify,
        })
    }

    /// The store, for reading what it has of an item.
    fn reading(&self, names: &Names) -> Result<Local, TransferError> {
        match &self.asked {
            Some((mounted, _)) => known(mounted, Some(names)),
            None => Local::reading(&self.access.store),
        }
    }

    /// The same for changing the item.
    fn changing(&self, names: &Names) -> Result<Local, TransferError> {
        match &self.asked {
            Some((mounted, _)) => known(mounted, Some(names)),
            None => Local::changing(&self.access.store, self.access.mount_point.as_deref()),
        }
    }

    /// Withdraws the copy of an item whose holder `is_holder` knows. Returns whether there is such a copy.
    fn withdraw(
        &self,
        names: &Names,
        life: &Life,
        is_holder: impl Fn(&Names) -> bool,
    ) -> Result<bool, TransferError> {
        let local = self.reading(names)?;
        let copy = local.archive().held(names)?;
        let copy = copy.filter(|item| item.state == State::Copy);
        let Some(copy) = copy.filter(|item| item.service.as_ref().is_some_and(is_holder)) else {
            return Ok(false);
        };
        let local = self.changing(names)?;
        let done = local.withdraw_copy(&copy, life);
        local.close();
        done?;
        Ok(true)
    }

    fn receive(
        &self,
        source: &CopySource,
        asked: &CopyRequest,
        found: ItemToCopy,
    ) -> Result<TransferOutcome, TransferError> {
        let names = found.names().clone();
        let local = self.reading(&names)?;
        let own = self.asked.as_ref().map(|(_, own)| own);
        let to = CopyDestination {
            arrivals: own.unwrap_or_else(|| local.archive().tree()),
            store: &local,
            is_mounted: self.access.mount_point.is_some(),
            brings_back: self.brings_back,
            verifies: self.verifies,
            open: &|| self.changing(&names),
        };
        let done = source.copy(asked, found, &to);
        if own.is_some() {
            done.map_err(of_this_user)
        } else {
            done
        }
    }
}

/// The directory of this user for items that arrive at a mount of which this user may not enter the store.
fn own_arrivals() -> Result<Tree, Failure> {
    let caches = caches().ok_or_else(|| {
        usage(message!(
            "neither XDG_CACHE_HOME nor HOME names a directory for the files that arrive"
        ))
    })?;
    let tree = Tree::create(&caches.join("copy")).map_err(ArchiveError::from)?;
    let now = SystemTime::now();
    for key in tree.abandoned_arrivals(now).map_err(ArchiveError::from)? {
        let _ = tree.remove_abandoned(&key, now);
    }
    Ok(tree)
}
