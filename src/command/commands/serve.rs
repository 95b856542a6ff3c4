//! `ibifs serve`: the Archive service over HTTP.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::access::StoreAccess;
use super::{failed_at, listen, print, say, secret, usage};
use crate::archive::answering::AuditService;
use crate::archive::store::By;
use crate::archive::transfer::{Local, Tokens};
use crate::archive::witness::Witness;
use crate::archive::{Archive, Clock, Facts, ServiceRecord, SystemClock};
use crate::command::cli::Serve;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::formats::base_url::BaseUrl;
use crate::formats::tlog::witness::logs;
use crate::http::server::{self, SiteClock, Started};
use crate::resolver::registry::Inclusion;
use crate::web::announcement::Announcement;
use crate::web::archive::{self, Receiver, Site};
use ibi::message::Message;
use ibi::{Timestamp, message};

/// The most bytes that are read of a list of keys.
const LONGEST_LIST: u64 = 1 << 20;

pub(super) fn run(options: &Serve) -> Result<Exit, Failure> {
    // Before other threads start and before anything is read for clients.
    crate::os::caller::set_no_new_privileges();
    crate::os::caller::give_up_groups();
    let access = StoreAccess::at(&options.store)?;
    let archive = access.read()?;
    let facts = archive.facts();
    let url = match (&options.url, &options.address) {
        (Some(url), _) => url.clone(),
        (None, Some(address)) => BaseUrl::of_address(address),
        (None, None) => facts.base_url(),
    };
    // An invalid option is reported before any file is opened.
    announcements(
        options,
        facts,
        &listen::public_url(url.clone(), ([0; 4], 80).into(), None),
    )?;
    let facts = facts.clone();
    let witness = witness(options, &archive)?;
    let audits =
        AuditService::open(archive.tree(), &facts, options.audit_share).unwrap_or_else(|error| {
            log::warn!("audits by other Archives are not answered: {error}");
            None
        });
    let mut receiver = receiver(options)?;
    let mut refused = None;
    let is_json = options.output.json;
    let report = move |line: &Message| {
        put(&if is_json {
            json::line(&json!({ "message": line }))
        } else {
            format!("{}\n", localized(line))
        });
    };
    let record = record(&access);
    let proxies = server::Proxies::new(&options.trusted_proxy);
    let tls = listen::tls(options.tls_cert.as_deref(), options.tls_key.as_deref())?;
    let metrics = listen::metrics(options.monitoring.metrics)?;
    let access_log = listen::access_log(&options.monitoring)?;
    let config = server::ServerConfig {
        listen: options.listen,
        proxies: &proxies,
        tls: tls.as_ref(),
        metrics: metrics.as_ref(),
        access_log: access_log.as_ref(),
    };
    let listened = server::run(&config, |local| {
        // With port 0 the port is known only now.
        let url = listen::public_url(url, local, config.tls);
        let socket = listen::socket_url(local, config.tls);
        let announcements = match announcements(options, &facts, &url) {
            Ok(announcements) => announcements,
            Err(failure) => {
                refused = Some(failure);
                return Started::nothing();
            }
        };
        let site = Site::new(
            archive,
            url,
            email(options, &facts),
            SiteClock::new(SystemClock),
        );
        let site = site.behind(proxies.clone());
        // Receiving items requires root, because their files keep their owners.
        if receiver.is_none()
            && let Err(error) = site.give_up_root()
        {
            refused = Some(listen::cannot_give_up(&error));
            return Started::nothing();
        }
        if let Some(record) = &record {
            let user = crate::os::identity::user_name(rustix::process::geteuid().as_raw());
            let url = site.url().to_string();
            let since = Timestamp::from_unix(SystemClock.now().seconds(), 0);
            if let Err(error) = record.describe(&user, &socket, &url, &since) {
                log::warn!("'ibifs status' does not show this service: {error}");
            }
        }
        let site = Arc::new(
            site.receiving(receiver.take())
                .witnessing(witness)
                .audited(audits),
        );
        put(&if is_json {
            print::listening_json(&site.url().short(), &socket, config.metrics)
        } else {
            let line = message!(
                "serving {address} at {url}",
                address = site.url().short(),
                url = socket
            );
            format!(
                "{}\n{}",
                localized(&line),
                listen::metrics_line(config.metrics)
            )
        });
        archive::started(site, announcements, report)
    });
    listened.map_err(|error| listen::cannot_listen(options.listen, &error))?;
    refused.map_or(Ok(Exit::Done), Err)
}

/// Returns what `ibifs status` reads of this service. A service that may not write in the store is not shown there.
fn record(access: &StoreAccess) -> Option<ServiceRecord> {
    match ServiceRecord::begin(&access.store) {
        Ok(record) => record,
        Err(error) => {
            log::info!("'ibifs status' does not show this service: {error}");
            None
        }
    }
}

fn put(text: &str) {
    say(text).unwrap_or_else(|failure| log::warn!("{failure}"));
}

/// The receiver of items from other Archives, if a token file is given.
fn receiver(options: &Serve) -> Result<Option<Receiver>, Failure> {
    let Some(file) = &options.transfer_token_file else {
        return Ok(None);
    };
    let text = secret::read(file)?;
    let tokens = Tokens::parse(&text).map_err(|error| failed_at(file, Exit::Usage, &error))?;
    let store = StoreAccess::at(&options.store)?.store;
    let open = move || {
        // The store may have been mounted or unmounted since.
        let mount_point = StoreAccess::of_store(&store).mount_point;
        Local::changing(&store, mount_point.as_deref())
            .map(|local| local.for_strangers(By::Program))
    };
    Ok(Some(Receiver::new(
        tokens,
        Box::new(open),
        &super::network(&options.network)?,
    )))
}

/// The witness of other logs, if a list of them is given.
fn witness(options: &Serve, archive: &Archive) -> Result<Option<Witness>, Failure> {
    let Some(file) = &options.witness_logs else {
        return Ok(None);
    };
    let text = read(file).map_err(|error| failed_at(file, Exit::Failed, &error))?;
    let keys = logs(&text).map_err(|error| failed_at(file, Exit::Usage, &error))?;
    let opened = Witness::open(archive.tree(), &archive.facts().host, keys);
    opened
        .map(Some)
        .map_err(|error| Failure::new(Exit::Failed, error))
}

/// Reads a list that the administrator has named.
fn read(file: &Path) -> std::io::Result<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the user named it; it may be a pipe"
    )]
    let opened = std::fs::File::open(file)?;
    let mut text = String::new();
    opened.take(LONGEST_LIST).read_to_string(&mut text)?;
    Ok(text)
}

/// The address for mail about the Archive.
fn email(options: &Serve, facts: &Facts) -> String {
    let given = options.email.clone().or_else(|| facts.contact.clone());
    given.unwrap_or_else(|| format!("postmaster@{}", facts.host))
}

/// The announcements to the resolvers that are named. One key is for all, several are for one each.
fn announcements(
    options: &Serve,
    facts: &Facts,
    url: &BaseUrl,
) -> Result<Vec<Announcement>, Failure> {
    let (resolvers, files) = (&options.resolver, &options.registration_key_file);
    if files.len() > 1 && files.len() != resolvers.len() {
        return Err(usage(message!(
            "--registration-key-file is there {files} times and --resolver {resolvers} times; name one file for all resolvers, or one for each in their order",
            files = files.len(),
            resolvers = resolvers.len()
        )));
    }
    let network = super::network(&options.network)?;
    let files = files
        .iter()
        .chain(std::iter::repeat_n(files.last(), resolvers.len()).flatten());
    let announcement = |(resolver, file): (&String, &PathBuf)| {
        let inclusion = Inclusion {
            url: url.clone(),
            service: facts.service.clone(),
            ip: facts.ip,
            version: concat!("ibifs-", env!("CARGO_PKG_VERSION")).to_owned(),
            email: email(options, facts),
            key: secret::key(file)?,
            prefixes: Vec::new(),
        };
        let refused = || {
            usage(message!(
                "'{url}' is not the URL of a resolver; write https://host, or the URL of its service",
                url = resolver
            ))
        };
        Announcement::new(resolver, inclusion, &network).ok_or_else(refused)
    };
    resolvers.iter().zip(files).map(announcement).collect()
}
