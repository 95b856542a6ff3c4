//! `ibifs status`: the user of a store, its items and its index; and where items of other Archives are mounted.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::access::{StoreAccess, check_owner};
use super::{daemon, say};
use crate::archive::store::{HostState, Sharing};
use crate::archive::{
    IndexState, PendingTransfer, Service, ServiceState, Status, SystemClock, holder, is_held_by,
    services,
};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::item::State;
use crate::formats::question::Line;
use crate::fuse::fs::DataPath;
use crate::fuse::mount::{Mounted, data, mounts, resolve};
use crate::os::identity;
use crate::os::system_files;
use ibi::message::{Localize, Message};
use ibi::{Timestamp, message, plural};

/// The clock of `/proc`, in ticks per second: USER_HZ, which is 100 on all platforms of Linux.
const TICKS: i64 = 100;

/// The most removed originals that are listed by name.
const NAMED: usize = 5;

pub(super) fn run(options: &cli::Status) -> Result<Exit, Failure> {
    let ours = || mounts().into_iter().filter(Mounted::is_ours);
    let worlds = || mounts().into_iter().filter(Mounted::is_world);
    let is_at = |mounted: &Mounted, path: &Path| mounted.mount_point == resolve(path);
    let worlds: Vec<Mounted> = match &options.store {
        None => worlds().collect(),
        Some(path) => worlds()
            .rfind(|mounted| is_at(mounted, path))
            .into_iter()
            .collect(),
    };
    let stores: Vec<StoreReport> = match &options.store {
        // A store of another user is not opened before it is named.
        None => ours()
            .filter(|mount| check_owner(mount).is_ok())
            .map(StoreReport::from)
            .collect(),
        Some(_) if !worlds.is_empty() => Vec::new(),
        Some(path) => {
            let access = StoreAccess::at(path)?;
            access.learn();
            let mounted =
                ours().find(|mount| Some(&mount.mount_point) == access.mount_point.as_ref());
            vec![mounted.map_or_else(|| StoreReport::unmounted(access.store), StoreReport::from)]
        }
    };
    let is_empty = stores.is_empty() && worlds.is_empty();
    say(&match (options.output.json, is_empty) {
        (true, _) => {
            let stores = stores.iter().map(StoreReport::value);
            json::pretty(&stores.chain(worlds.iter().map(world_value)).collect())
        }
        (false, true) => format!("{}\n", localized(&message!("no store is mounted"))),
        (false, false) => {
            let stores = stores.iter().map(StoreReport::text);
            let paragraphs: Vec<String> = stores.chain(worlds.iter().map(world_text)).collect();
            paragraphs.join("\n")
        }
    })?;
    Ok(Exit::Done)
}

/// Returns where items of other Archives are mounted, and whom their process asks first.
fn world_value(mounted: &Mounted) -> Value {
    json!({
        "source": mounted.source.to_string_lossy(),
        "mount_point": json::path(&mounted.mount_point),
    })
}

/// The same as a text.
fn world_text(mounted: &Mounted) -> String {
    let (source, at) = (mounted.source.display(), mounted.mount_point.display());
    format!("source   {}\nmounted  {}\n", OneLine(source), OneLine(at))
}

/// A store, its mount and its daemon.
struct StoreReport {
    store: PathBuf,
    mount_point: Option<PathBuf>,
    data: Option<DataPath>,
    server: Option<Writer>,
    status: Status,
    /// None if the caller may not read which.
    services: Option<Vec<(Service, ServiceState)>>,
}

impl From<Mounted> for StoreReport {
    fn from(mounted: Mounted) -> StoreReport {
        let access = StoreAccess {
            store: mounted.source.clone(),
            mount_point: Some(mounted.mount_point.clone()),
        };
        let report = if access.is_shut() {
            StoreReport::asked(&mounted)
        } else {
            StoreReport::unmounted(mounted.source.clone())
        };
        StoreReport {
            data: data(&mounted),
            mount_point: Some(mounted.mount_point),
            ..report
        }
    }
}

impl StoreReport {
    fn unmounted(store: PathBuf) -> StoreReport {
        StoreReport {
            server: Writer::of(&store),
            status: Status::of(&store, &SystemClock),
            services: services(&store),
            store,
            mount_point: None,
            data: None,
        }
    }

    /// Returns what the daemon of a mount says to a user who may not enter the store.
    fn asked(mounted: &Mounted) -> StoreReport {
        let (mut server, mut status) = (None, Status::of_mount());
        let asked = daemon::each_line(mounted, &Line::new("status"), |line| {
            if let Some(pid) = line.get("pid").and_then(|pid| pid.parse().ok()) {
                server = Some(Writer::with(Some(pid), Some(pid)));
            }
            status.add(line);
        });
        if let Err(failure) = asked {
            status.index = IndexState::Unreadable;
            status.trouble = Some(failure.message);
        }
        StoreReport {
            store: mounted.source.clone(),
            mount_point: None,
            data: None,
            server,
            status,
            services: None,
        }
    }

    fn value(&self) -> Value {
        let server = self.server.as_ref();
        let items = self.status.items;
        let minted = self.status.minted.as_ref();
        let data = self.data;
        json!({
            "store": json::path(&self.store),
            "archiveservice": self.status.service.as_ref().map(json::names),
            "mount_point": self.mount_point.as_deref().map(json::path),
            "used_by": server.map(|server| json!({
                "pid": server.pid,
                "user": server.user,
                "since": server.since.as_ref().map(Timestamp::to_rfc3339),
            })),
            "items": items.map(|items| json!({
                "originals": items.originals,
                "copies": items.copies,
                "removed": items.removed,
                "withdrawn": items.withdrawn,
            })),
            "content": self.status.content.map(|content| json!({
                "items": content.items,
                "files": content.files,
                "bytes": content.bytes,
            })),
            "removed_originals": self.status.removed.iter().map(|removed| {
                let at = removed.at.to_rfc3339();
                let mut object = json::item_with(&removed.names, State::Deleted, Some(at));
                object.insert("copies".into(), json!(removed.copies));
                object
            }).collect::<Vec<_>>(),
            "pending_transfers": self.status.transfers.iter().map(|it| {
                let mut object = json::names(&it.names);
                object.insert("to".to_owned(), it.to.preferred().into());
                object.insert("cancelled".to_owned(), it.is_cancelled.into());
                object
            }).collect::<Vec<_>>(),
            "damaged": self.status.damaged.iter().map(|(names, files)| {
                let mut object = json::names(names);
                object.insert("files".to_owned(), json!(files));
                object
            }).collect::<Vec<_>>(),
            "originals_gone": self.status.originals_gone.iter().map(|(names, copy)| {
                let mut object = json::names(names);
                object.insert("holder".to_owned(), json!(copy.holder));
                object.insert("gone".to_owned(), json::gone(copy.gone.as_ref()));
                object
            }).collect::<Vec<_>>(),
            "minted": minted.map(|minted| json!({
                "hour": minted.hour,
                "day": minted.day,
                "month": minted.month,
                "last": minted.last.as_ref().map(Timestamp::to_rfc3339),
            })),
            "index": self.status.index.word(),
            "index_server": self.status.server.as_ref().map(|server| &server.place),
            "hosts": self.hosts().map(|host| json!({
                "host": host.host,
                "pid": host.pid,
                "mount_point": host.mount_point,
                "open_seconds": host.open_for,
                "silent_seconds": host.silent_for,
                "alive": host.is_alive(),
                "shared": host.sharing == Sharing::Shared,
                "marks": host.marks,
            })).collect::<Vec<_>>(),
            "services": self.services.as_ref().map(|services| {
                services.iter().map(service_value).collect::<Vec<_>>()
            }),
            "trouble": self.status.trouble,
            "data": data.map(data_word),
            "data_reason": data.and_then(DataPath::reason).map(|reason| reason.message()),
        })
    }

    /// The processes that write the index, if it is in a server.
    fn hosts(&self) -> impl Iterator<Item = &HostState> {
        let server = self.status.server.as_ref();
        server.into_iter().flat_map(|server| &server.hosts)
    }

    fn text(&self) -> String {
        let mut text = format!("store    {}\n", OneLine(self.store.display()));
        match &self.mount_point {
            None => text.push_str("mounted  no\n"),
            Some(at) => text.push_str(&format!(
                "mounted  {}\ndata     {}\n",
                OneLine(at.display()),
                localized(&self.data.map_or_else(
                    || message!("its daemon does not answer"),
                    |data| data.message()
                ))
            )),
        }
        let server = self.server.as_ref();
        let unknown = || message!("not known: this user may not read the store");
        let server = match (server, &self.services) {
            (Some(server), _) => server.message(),
            (None, _) if self.hosts().any(HostState::is_alive) => plural!(
                "{count} process of a shared store, see 'host'",
                "{count} processes of a shared store, see 'host'",
                count = self.hosts().filter(|host| host.is_alive()).count()
            ),
            (None, Some(_)) => message!("no process"),
            (None, None) => unknown(),
        };
        text.push_str(&format!("used by  {}\n", localized(&server)));
        match &self.services {
            None => text.push_str(&format!("serve    {}\n", localized(&unknown()))),
            Some(services) => {
                for (service, state) in services {
                    let line = service_line(service, *state);
                    text.push_str(&format!("serve    {}\n", OneLine(localized(&line))));
                }
            }
        }
        if let Some(items) = &self.status.items {
            let withdrawn = items.withdrawn;
            let items = message!(
                "{originals}, {copies}, {removed}",
                originals = plural!(
                    "{count} original",
                    "{count} originals",
                    count = items.originals
                ),
                copies = plural!("{count} copy", "{count} copies", count = items.copies),
                removed = plural!("{count} removed", "{count} removed", count = items.removed)
            );
            let items = match withdrawn {
                0 => items,
                count => {
                    let withdrawn = plural!("{count} withdrawn", "{count} withdrawn", count);
                    message!("{items}; {withdrawn}", items, withdrawn)
                }
            };
            text.push_str(&format!("items    {}\n", localized(&items)));
        }
        if let Some(content) = &self.status.content {
            let content = message!(
                "{files} of {bytes} bytes in {items}",
                files = plural!("{count} file", "{count} files", count = content.files),
                bytes = content.bytes,
                items = plural!("{count} item", "{count} items", count = content.items)
            );
            text.push_str(&format!("content  {}\n", localized(&content)));
        }
        if let Some(minted) = &self.status.minted {
            let rate = message!(
                "{hour} in the last hour, {day} in the last day, {month} in the last 30 days",
                hour = minted.hour,
                day = minted.day,
                month = minted.month
            );
            text.push_str(&format!("minted   {}\n", localized(&rate)));
            if let Some(last) = &minted.last {
                text.push_str(&format!("last     {}\n", last.to_rfc3339()));
            }
        }
        if !self.status.removed.is_empty() {
            let first = self.status.removed.iter().take(NAMED);
            let mut named: Vec<String> = first.map(|it| it.names.preferred()).collect();
            if self.status.removed.len() > NAMED {
                named.push("...".to_owned());
            }
            let removed = plural!(
                "{count} original in the last 30 days: {names}",
                "{count} originals in the last 30 days: {names}",
                count = self.status.removed.len(),
                names = named.join(", ")
            );
            text.push_str(&format!("removed  {}\n", localized(&removed)));
            let copied = self
                .status
                .removed
                .iter()
                .filter(|it| !it.copies.is_empty());
            let holders: BTreeSet<&String> = copied.clone().flat_map(|it| &it.copies).collect();
            let holders: Vec<&str> = holders.into_iter().map(String::as_str).collect();
            if !holders.is_empty() {
                let copied = plural!(
                    "{count} of them has copies that have no original now, in {holders}; run 'ibifs claim' there",
                    "{count} of them have copies that have no original now, in {holders}; run 'ibifs claim' there",
                    count = copied.count(),
                    holders = holders.join(", ")
                );
                text.push_str(&format!("copies   {}\n", localized(&copied)));
            }
        }
        if !self.status.damaged.is_empty() {
            let first = self.status.damaged.iter().take(NAMED);
            let mut named: Vec<String> = first.map(|(names, _)| names.preferred()).collect();
            if self.status.damaged.len() > NAMED {
                named.push("...".to_owned());
            }
            let damaged = plural!(
                "{count} file, damaged or lost; mend it with 'ibifs repair': {names}",
                "{count} files, damaged or lost; mend them with 'ibifs repair': {names}",
                count = self
                    .status
                    .damaged
                    .iter()
                    .map(|(_, files)| files)
                    .sum::<u64>(),
                names = named.join(", ")
            );
            text.push_str(&format!("damaged  {}\n", localized(&damaged)));
        }
        if !self.status.originals_gone.is_empty() {
            let first = self.status.originals_gone.iter().take(NAMED);
            let mut named: Vec<String> = first.map(|(names, _)| names.preferred()).collect();
            if self.status.originals_gone.len() > NAMED {
                named.push("...".to_owned());
            }
            let gone = plural!(
                "{count} copy whose original was withdrawn or removed, see 'ibifs copies'; withdraw or remove it, or keep it: {names}",
                "{count} copies whose originals were withdrawn or removed, see 'ibifs copies'; withdraw or remove them, or keep them: {names}",
                count = self.status.originals_gone.len(),
                names = named.join(", ")
            );
            text.push_str(&format!("gone     {}\n", OneLine(localized(&gone))));
        }
        let (cancelled, going): (Vec<_>, Vec<_>) =
            self.status.transfers.iter().partition(|it| it.is_cancelled);
        let named = |transfers: &[&PendingTransfer]| {
            let first = transfers.iter().take(NAMED);
            let first = first.map(|it| format!("{} > {}", it.names.preferred(), it.to.preferred()));
            let more = (transfers.len() > NAMED).then(|| "...".to_owned());
            first.chain(more).collect::<Vec<_>>().join(", ")
        };
        if !going.is_empty() {
            let going = plural!(
                "{count} original, not finished; run the same 'ibifs transfer' again, or with --cancel: {names}",
                "{count} originals, not finished; run the same 'ibifs transfer' again, or with --cancel: {names}",
                count = going.len(),
                names = named(&going)
            );
            text.push_str(&format!("sending  {}\n", localized(&going)));
        }
        if !cancelled.is_empty() {
            let cancelled = plural!(
                "{count} original, being cancelled; run the same 'ibifs transfer --cancel' again: {names}",
                "{count} originals, being cancelled; run the same 'ibifs transfer --cancel' again: {names}",
                count = cancelled.len(),
                names = named(&cancelled)
            );
            text.push_str(&format!("sending  {}\n", localized(&cancelled)));
        }
        let index = self.status.index.word();
        text.push_str(&match &self.status.trouble {
            Some(trouble) => format!("index    {index}: {}\n", OneLine(localized(trouble))),
            None => format!("index    {index}\n"),
        });
        if let Some(service) = &self.status.service {
            text.push_str(&format!("service  {}\n", service.preferred()));
        }
        if let Some(server) = &self.status.server {
            text.push_str(&format!("server   {}\n", OneLine(&server.place)));
        }
        for host in self.hosts() {
            let at = host.mount_point.as_deref().unwrap_or("-");
            let (name, pid, silent) = (&host.host, host.pid, host.silent_for);
            let state = message!(
                "{name}, process {pid}, {at}, heard of {silent} s ago",
                name,
                pid,
                at,
                silent
            );
            text.push_str(&format!("host     {}\n", OneLine(localized(&state))));
        }
        text
    }
}

/// A service that runs on a store.
fn service_value((service, state): &(Service, ServiceState)) -> Value {
    json!({
        "host": service.host,
        "pid": service.process.pid,
        "user": service.user,
        "address": service.address,
        "url": service.url,
        "since": service.since.as_ref().map(Timestamp::to_rfc3339),
        "running": match state {
            ServiceState::Running => Some(true),
            ServiceState::Unknown => None,
        },
    })
}

/// The same as a text.
fn service_line(service: &Service, state: ServiceState) -> Message {
    let since = service
        .since
        .as_ref()
        .map_or_else(|| "-".to_owned(), Timestamp::to_rfc3339);
    let (address, pid, user, host) = (
        &service.address,
        service.process.pid,
        &service.user,
        &service.host,
    );
    match state {
        ServiceState::Running => message!(
            "{address}, process {pid} of {user} on {host} since {since}",
            address,
            pid,
            user,
            host,
            since
        ),
        ServiceState::Unknown => message!(
            "{address}, process {pid} of {user} on {host} since {since}; it may have ended: ask on that host",
            address,
            pid,
            user,
            host,
            since
        ),
    }
}

/// The data path of files in a word.
fn data_word(data: DataPath) -> &'static str {
    match data {
        DataPath::Kernel | DataPath::Untried => "passthrough",
        DataPath::Daemon(_) => "daemon",
    }
}

/// The process that has a store open for writing. The lock file is a hint: user and start time are shown only
/// if the system confirms that the process has the lock.
struct Writer {
    pid: Option<u32>,
    user: Option<String>,
    since: Option<Timestamp>,
}

impl Writer {
    fn of(store: &Path) -> Option<Writer> {
        let pid = holder(store)?.pid;
        Some(Writer::with(pid, pid.filter(|pid| is_held_by(store, *pid))))
    }

    /// The process with a number, if it is one that is known to write.
    fn with(pid: Option<u32>, known: Option<u32>) -> Writer {
        Writer {
            pid,
            user: known.and_then(user_of),
            since: known.and_then(start_of),
        }
    }

    fn message(&self) -> Message {
        let mut writer = match self.pid {
            Some(pid) => message!("process {pid}", pid),
            None => message!("an unknown process"),
        };
        if let Some(user) = &self.user {
            let user = OneLine(user).to_string();
            writer = message!("{writer} of {user}", writer, user);
        }
        if let Some(since) = &self.since {
            let since = since.to_rfc3339();
            writer = message!("{writer} since {since}", writer, since);
        }
        writer
    }
}

/// The name of a process's user.
fn user_of(pid: u32) -> Option<String> {
    let process = std::fs::metadata(format!("/proc/{pid}")).ok()?;
    Some(identity::user_name(process.uid()))
}

/// The start time of a process; `/proc` has it relative to the start of the system.
fn start_of(pid: u32) -> Option<Timestamp> {
    let ticks = i64::try_from(identity::started(pid)?).ok()?;
    let system = system_files::read_text("/proc/stat").ok()?;
    let boot = system
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?;
    let boot: i64 = boot.trim().parse().ok()?;
    Some(Timestamp::from_unix(boot.checked_add(ticks / TICKS)?, 0))
}
