//! Creating a store: the identity of the new Archive, its service's own item, and the adoption of
//! existing items.

use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use super::{
    Archive, ArchiveError, CheckReport, Clock, Facts, ItemProgress, Stranger, WAIT_LIMIT, lock,
    own_files,
};
use crate::archive::store::{self, Sharing, Store};
use crate::archive::tree::{Action, DIRECTORIES, Filled, Place, Tree, TreeError};
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::CopyPolicy;
use crate::formats::hex::Hex;
use crate::formats::item::Names;
use crate::formats::search::Searched;
use crate::os::directory::Directory;
use crate::os::identity::host_name;
use crate::os::opening::read_regular;
use crate::os::random;
use crate::sql::index_url::IndexUrl;
use ibi::distributor::{Granularity, TemporalDistributor};
use ibi::message;
use ibi::{Ibi, Ibip, Rep, RepPrefix};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The Archive's facts until the store is complete.
const UNFINISHED: &str = "archive.ibi.new";

/// The file that explains the store to readers without ibifs, and its text.
const README: &str = "README.txt";
const README_TEXT: &str = include_str!("init/README.txt");

/// The options of `ibifs init`. The defaults are chosen so that two Archives never mint the same name.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Host name.
    pub host: Option<String>,
    /// HTTP port, 80 if left out.
    pub port: Option<u16>,
    /// Address for IBIps.
    pub ip: Option<IpAddr>,
    /// Port for IBIps, 800 if left out.
    pub ip_port: Option<u16>,
    /// Granularity, 1/1000 s if left out.
    pub granularity: Option<Granularity>,
    /// The identity of a lost Archive that is to be rebuilt.
    pub service: Option<Names>,
    /// The URL at which it is served.
    pub url: Option<BaseUrl>,
    /// The resolver that persistent links name.
    pub resolver: Option<BaseUrl>,
    /// The texts that searches read, descriptions if left out.
    pub searched: Option<Searched>,
    /// The index in a database server; a file in the store if left out.
    pub index: Option<IndexUrl>,
    /// Whether the directory is that of a tree of repositories, which are adopted.
    pub adopts: bool,
}

impl Archive {
    /// Creates a new store, mints the Archive service's own item in it and opens it. Items in `col/` of a directory that
    /// is adopted are indexed, those of the Archive's own name space become originals, and inconsistencies are reported.
    /// The mode of an existing directory stays as it is.
    ///
    /// # Errors
    /// The directory is a store, has something else in it and is not adopted, or its files cannot be made.
    pub fn init(
        path: &Path,
        setup: &Setup,
        clock: Box<dyn Clock>,
        progress: &mut ItemProgress<'_>,
    ) -> Result<(Archive, CheckReport), ArchiveError> {
        if path.join(own_files::FACTS).exists() {
            return Err(ArchiveError::IsAStore {
                path: path.to_owned(),
            });
        }
        let mut setup = setup.clone();
        // An IPv4 address in the form of IPv6 is that address.
        setup.ip = setup.ip.map(|ip| ip.to_canonical());
        let unfinished = unfinished(path);
        if let Some(rep) = setup.service.as_ref().and_then(Names::rep) {
            setup.host.get_or_insert_with(|| rep.host());
            setup.port.get_or_insert_with(|| rep.port());
        }
        if let Some(ibip) = setup.service.as_ref().and_then(Names::ibip) {
            setup.ip = setup.ip.or(ibip.address());
            setup.ip_port = setup.ip_port.or(ibip.port());
        }
        if let Some(before) = &unfinished {
            setup.host.get_or_insert_with(|| before.host.clone());
            setup.port.get_or_insert(before.port);
            setup.ip.get_or_insert(before.ip);
            setup.ip_port.get_or_insert(before.ip_port);
            setup.granularity.get_or_insert(before.granularity);
            setup.url = setup.url.or_else(|| before.url.clone());
            setup.resolver = setup.resolver.or_else(|| before.resolver.clone());
            setup.searched.get_or_insert(before.searched);
            setup.index = setup.index.or_else(|| before.index.clone());
        }
        let not_drawn = |errno| TreeError::new(Action::Read, random::SOURCE, errno);
        let host = match &setup.host {
            Some(host) => host.clone(),
            None => default_host().map_err(not_drawn)?,
        };
        let port = setup.port.unwrap_or(80);
        let rep_prefix = ibi::RepPrefix::from_host(&host, port)?;
        let mut facts = Facts {
            host: host.to_ascii_lowercase(),
            port,
            ip: match setup.ip {
                Some(ip) => ip,
                None => default_address().map_err(not_drawn)?,
            },
            ip_port: setup.ip_port.unwrap_or(800),
            granularity: setup.granularity.unwrap_or_default(),
            // If no service was given, the minted one replaces this below.
            service: setup
                .service
                .clone()
                .unwrap_or_else(|| Names::from(Ibi::Rep(Rep::mint(&rep_prefix, &clock.now())))),
            url: setup.url.clone(),
            resolver: setup.resolver.clone(),
            commitment: unfinished
                .as_ref()
                .and_then(|before| before.commitment.clone()),
            searched: setup.searched.unwrap_or_default(),
            serves_hidden: false,
            contact: None,
            drafts: false,
            sealed_after: None,
            history: false,
            witnesses: Vec::new(),
            audits: Vec::new(),
            place: Vec::new(),
            threats: Vec::new(),
            policy: CopyPolicy::default(),
            collections: Vec::new(),
            repairs_originals: false,
            index: setup.index.clone(),
        };
        // If the clock is out of the range of names, nothing is created.
        TemporalDistributor::new(facts.granularity, None).reserve(&clock.now(), WAIT_LIMIT)?;
        let is_continued = unfinished.is_some();
        if let Some(before) = unfinished
            && setup.service.is_none()
            && (&before.host, before.port) == (&facts.host, facts.port)
            && (before.ip, before.ip_port) == (facts.ip, facts.ip_port)
        {
            facts.service = before.service.clone();
            setup.service = Some(before.service);
        }
        let tree = Tree::create(path)?;
        if !setup.adopts {
            refuse_unfit(&tree, is_continued)?;
        }
        tree.make_own_directories()?;
        let lock = lock::Lock::take(&tree)?;
        let store = Store::open(tree.root(), facts.index.as_ref())?;
        refuse_other_index(&store, &facts, is_continued)?;
        store.enter(Sharing::Alone)?;
        // Names that this host minted before, in a store that is lost, are earlier than now. They may
        // be restored, and are never minted again.
        let start = clock.now();
        let last = if setup.service.is_none() {
            // For a single name it is not worth waiting a whole minute.
            let granularity = if facts.granularity == Granularity::MINUTE {
                Granularity::SECOND
            } else {
                facts.granularity
            };
            let mut distributor = TemporalDistributor::new(granularity, Some(start.clone()));
            let reservation = distributor.reserve(&clock.now(), WAIT_LIMIT)?;
            std::thread::sleep(reservation.wait);
            let ibip = Ibip::mint(&facts.ibip_prefix(), &reservation.date)?;
            let rep = Rep::mint(&rep_prefix, &reservation.date);
            facts.service = Names::both(rep, ibip);
            reservation.date
        } else {
            clock.now()
        };
        store.set_last_date(&last)?;
        let mut archive = Archive::over(facts, tree, store, clock, Some(lock::Hold::Alone(lock)));
        archive.dates.restart(Some(last), start);
        if let Some(rep) = archive.facts.service.rep() {
            let rep = archive.as_spelled_here(rep)?;
            let ibip = archive.facts.service.ibip().cloned();
            archive.facts.service = Names::new(Some(rep), ibip).unwrap_or(archive.facts.service);
        }
        let text = archive.facts.to_text();
        archive
            .tree
            .write_small(".", UNFINISHED, text.as_bytes(), None)?;
        explain(&archive.tree)?;
        // The service's item may have been recorded before an interruption.
        archive.edit(&Stranger, |it| it.make_again())?;
        if !archive
            .tree
            .is_directory(Place::of(&archive.facts.service).as_str())
        {
            let service = archive.facts.service.clone();
            archive
                .depositor(&Stranger)
                .make(&service, None, None, Filled::WithDoc)?;
        }
        let report = archive.keeper().adopt(progress)?;
        archive.store.set_facts(text.as_bytes())?;
        archive.keeper().change_word(false)?;
        // This rename makes the directory a store.
        archive
            .tree
            .rename_small(".", UNFINISHED, own_files::FACTS)?;
        Ok((archive, report))
    }
}

/// Writes the text for readers without ibifs, unless something has its name.
fn explain(tree: &Tree) -> Result<(), TreeError> {
    let there = Directory::reopened(tree.root()).and_then(|root| root.entry(README));
    match there {
        Err(Errno::NOENT) => tree.write_small(".", README, README_TEXT.as_bytes(), None),
        there => there
            .map(drop)
            .map_err(|errno| TreeError::new(Action::Read, README, errno)),
    }
}

/// Refuses a directory that has anything but what a creation that was interrupted leaves, or in which every user may write.
fn refuse_unfit(tree: &Tree, is_continued: bool) -> Result<(), ArchiveError> {
    let shown = tree.path().display();
    let failed = |errno| TreeError::new(Action::OpenStore, &shown.to_string(), errno);
    let unfit = |what| Err(ArchiveError::UnfitDirectory { what });
    let directory = Directory::reopened(tree.root()).map_err(failed)?;
    let entries = if is_continued {
        Vec::new()
    } else {
        directory.entries().map_err(failed)?
    };
    for (name, _) in entries {
        let name = String::from_utf8_lossy(&name);
        // Nothing is in a level before the facts are written, which begins in `staging`.
        let is_begun = |level: &str| {
            let entries = directory.directory(level)?.entries()?;
            let is_facts = |name: &[u8]| level == "staging" && name.starts_with(b"write-");
            Ok(entries.iter().all(|(name, _)| is_facts(name)))
        };
        let is_own = match &*name {
            "lost+found" | lock::FILE => true,
            level if DIRECTORIES.contains(&level) => is_begun(level).map_err(failed)?,
            file => file.starts_with(store::FILE),
        };
        if !is_own {
            return unfit(message!(
                "'{path}' has '{name}' in it, which is no part of a new store; name a new or an empty directory, or adopt a tree of repositories with --adopt",
                path = shown,
                name
            ));
        }
    }
    let stat = directory.stat().map_err(failed)?;
    if Mode::from_raw_mode(stat.st_mode).contains(Mode::WOTH) {
        return unfit(message!(
            "every user may write in '{path}'; name another directory, or run 'chmod o-w {path}'",
            path = shown
        ));
    }
    Ok(())
}

/// Refuses the database of another Archive: one has one Archive.
fn refuse_other_index(
    store: &Store,
    facts: &Facts,
    is_continued: bool,
) -> Result<(), ArchiveError> {
    let Some(url) = &facts.index else {
        return Ok(());
    };
    let is_ours = match store.facts()? {
        Some(known) => {
            is_continued && Facts::parse(&known).is_ok_and(|known| known.is_same_archive(facts))
        }
        None => is_continued || store.is_empty()?,
    };
    if is_ours {
        Ok(())
    } else {
        Err(ArchiveError::IndexInUse {
            place: url.place().to_owned(),
        })
    }
}

/// The facts of an Archive whose creation was interrupted. It continues under the same name.
fn unfinished(path: &Path) -> Option<Facts> {
    Facts::parse(&read_regular(path.join(UNFINISHED), OFlags::NOFOLLOW).ok()?).ok()
}

/// The machine's own host name if it is fully qualified, else a random name below it, so that two
/// stores on one laptop never mint the same name.
fn default_host() -> Result<String, Errno> {
    let node = host_name().to_ascii_lowercase();
    if node.contains('.') && RepPrefix::from_host(&node, 80).is_ok() {
        return Ok(node);
    }
    let word = format!("archive-{}", Hex(&random::draw::<4>()?));
    let local = format!("{word}.{node}.local");
    Ok(match RepPrefix::from_host(&local, 80) {
        Ok(_) => local,
        Err(_) => format!("{word}.local"),
    })
}

/// A private address, drawn at random as in RFC 4193: two Archives on one machine must not mint the
/// same IBIp, and a laptop has no permanent public address.
fn default_address() -> Result<IpAddr, Errno> {
    let drawn = random::draw::<5>()?;
    Ok(IpAddr::V6(Ipv6Addr::new(
        0xfd00 | u16::from(drawn[0]),
        u16::from_be_bytes([drawn[1], drawn[2]]),
        u16::from_be_bytes([drawn[3], drawn[4]]),
        0,
        0,
        0,
        0,
        1,
    )))
}

#[cfg(test)]
mod tests;
