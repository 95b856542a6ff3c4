//! `ibifs resolver`: the resolver over HTTP, and the list of Archives registered with it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::{listen, print, say, secret};
use crate::archive::{Clock, SystemClock};
use crate::command::cli::{Actors, Documents, Register, Resolver, ResolverCommand};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::formats::base_url::BaseUrl;
use crate::formats::federation::FederatedArchive;
use crate::formats::item::Names;
use crate::formats::name_spaces::NameSpaces;
use crate::http::server;
use crate::os::caller::Caller;
use crate::resolver::registry::{ArchiveKey, Registry, RegistryError, RegistryPlace};
use crate::resolver::service as resolver;
use crate::resolver::service::ListSource;
use ibi::message::Message;
use ibi::{Ibi, message};

/// The most bytes that are read of a table of name spaces.
const LONGEST_TABLE: u64 = 1 << 20;

/// A list of federated Archives, with what has been read of it.
type FederatedList = (ListSource, Option<Vec<FederatedArchive>>);

pub(super) fn run(options: &Resolver) -> Result<Exit, Failure> {
    match &options.command {
        Some(ResolverCommand::Register(options)) => register(options),
        Some(ResolverCommand::Unregister(options)) => {
            let registry = Registry::open(&options.db)?;
            let service = service(&options.service)?;
            registry.unregister(&service)?;
            if options.output.json {
                say(&json::pretty(&json::names(&service).into()))?;
            }
            Ok(Exit::Done)
        }
        Some(ResolverCommand::List(options)) => {
            let archives = Registry::open(&options.db)?.archives()?;
            say(&if options.output.json {
                print::registered_json(&archives)
            } else {
                print::registered_text(&archives)
            })?;
            Ok(Exit::Done)
        }
        Some(ResolverCommand::Key(options)) => {
            let key = Registry::open(&options.db)?.key(options.new)?;
            say(&if options.output.json {
                json::pretty(&json!({ "key": key.to_string() }))
            } else {
                format!("{key}\n")
            })?;
            Ok(Exit::Done)
        }
        Some(ResolverCommand::Actors(options)) => actors(options),
        Some(ResolverCommand::Documents(options)) => documents(options),
        None => answer(options),
    }
}

fn actors(options: &Actors) -> Result<Exit, Failure> {
    let removed = ids(&options.remove)?;
    let registry = Registry::open(&options.db)?;
    for id in &removed {
        registry.remove_actor(id)?;
    }
    if removed.is_empty() {
        let actors = registry.actors()?;
        say(&if options.output.json {
            print::actors_json(&actors)
        } else {
            print::actors_text(&actors)
        })?;
    } else if options.output.json {
        say(&print::removed_json("actor", &removed))?;
    }
    Ok(Exit::Done)
}

fn documents(options: &Documents) -> Result<Exit, Failure> {
    let removed = ids(&options.remove)?;
    let registry = Registry::open(&options.db)?;
    for id in &removed {
        registry.remove_document(id)?;
    }
    if removed.is_empty() {
        let documents = registry.documents()?;
        say(&if options.output.json {
            print::documents_json(&documents)
        } else {
            print::documents_text(&documents)
        })?;
    } else if options.output.json {
        say(&print::removed_json("document", &removed))?;
    }
    Ok(Exit::Done)
}

fn ids(texts: &[String]) -> Result<Vec<Ibi>, Failure> {
    let refused = |error: ibi::ParseError| Failure::new(Exit::Usage, error);
    texts
        .iter()
        .map(|text| Ibi::parse(text).map_err(refused))
        .collect()
}

fn answer(options: &Resolver) -> Result<Exit, Failure> {
    crate::os::caller::set_no_new_privileges();
    // clap requires it where there is no subcommand.
    let none = RegistryPlace::File(PathBuf::new());
    let mut registry = Some(Registry::open(options.db.as_ref().unwrap_or(&none))?);
    let mut lists = Some(lists(&options.federated_archives)?);
    let mut table = options.upn.as_deref().map(name_spaces).transpose()?;
    let network = super::network(&options.network)?;
    let (mut failure, mut refused) = (None, None);
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
        let socket = listen::socket_url(local, config.tls);
        let url = match (&options.url, &options.address) {
            (Some(url), _) => url.clone(),
            (None, Some(address)) => BaseUrl::of_address(address),
            (None, None) => BaseUrl::of_address(&local.to_string()),
        };
        let url = listen::public_url(url, local, config.tls);
        let made = registry.take().map(|registry| {
            let clock = server::SiteClock::new(SystemClock);
            let made = resolver::Resolver::new(registry, url, &network, clock)?;
            let made = made.allowing_private(options.allow_private);
            made.with_peers(options.peer.clone())
        });
        let made = match made {
            Some(Ok(made)) => {
                let made = made.behind(proxies.clone());
                let made = made.federated(lists.take().unwrap_or_default());
                let made = made.completing(table.take().unwrap_or_default());
                Arc::new(if options.registration_2009 {
                    made.registering()
                } else {
                    made
                })
            }
            Some(Err(error)) => {
                failure = Some(error);
                return server::Started::nothing();
            }
            None => return server::Started::nothing(),
        };
        // The database is open, and the lists have been read once.
        if let Err(error) = Caller::NOBODY.become_for_good() {
            refused = Some(listen::cannot_give_up(&error));
            return server::Started::nothing();
        }
        say(&if options.output.json {
            print::listening_json(&made.url().short(), &socket, config.metrics)
        } else {
            let line = message!(
                "resolving for {address} at {url}",
                address = made.url().short(),
                url = socket
            );
            format!(
                "{}\n{}",
                localized(&line),
                listen::metrics_line(config.metrics)
            )
        })
        .unwrap_or_else(|failure| log::warn!("{failure}"));
        let (answering, ending) = (Arc::clone(&made), Arc::clone(&made));
        server::Started {
            kinds: Some(resolver::kinds(&made)),
            monitored: Some(Arc::clone(&made) as Arc<_>),
            responders: Some(Box::new(move || {
                resolver::responder(Arc::clone(&answering))
            })),
            begin: || {},
            beside: Some(Box::pin(resolver::go_on(made))),
            afterwards: Some(Box::pin(resolver::end(ending))),
        }
    });
    listened.map_err(|error| listen::cannot_listen(options.listen, &error))?;
    match (failure, refused) {
        (Some(error), _) => Err(error.into()),
        (None, Some(refused)) => Err(refused),
        (None, None) => Ok(Exit::Done),
    }
}

/// The table of name spaces in a file.
fn name_spaces(path: &Path) -> Result<NameSpaces, Failure> {
    let failed = |error: Message| {
        let path = path.display();
        Failure::new(Exit::Failed, message!("{path}: {error}", path, error))
    };
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        #[expect(
            clippy::disallowed_methods,
            reason = "the user named it; it may be a pipe"
        )]
        let file = std::fs::File::open(path)?;
        file.take(LONGEST_TABLE).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| failed(Message::foreign(error.to_string())))?;
    NameSpaces::parse(&bytes).map_err(failed)
}

/// The lists of federated Archives. Those in files are read now, so that a fault is seen at once.
fn lists(texts: &[String]) -> Result<Vec<FederatedList>, Failure> {
    let read = |text: &String| {
        let source = ListSource::parse(text).map_err(|error| Failure::new(Exit::Usage, error))?;
        let archives = source.read_file().map_err(|error| {
            Failure::new(
                Exit::Failed,
                message!("{path}: {error}", path = text, error),
            )
        })?;
        Ok((source, archives))
    };
    texts.iter().map(read).collect()
}

fn register(options: &Register) -> Result<Exit, Failure> {
    let services = options.service.iter().map(|text| service(text));
    let services = services.collect::<Result<Vec<Names>, Failure>>()?;
    let registry = Registry::open(&options.db)?;
    for service in services {
        let key = match &options.key_file {
            Some(file) => secret::key(file)?,
            None => ArchiveKey::drawn().map_err(|error| {
                Failure::new(Exit::Failed, message!("random numbers: {error}", error))
            })?,
        };
        registry.register(&service, &key, &SystemClock.now())?;
        say(&if options.output.json {
            let mut object = json::names(&service);
            object.insert("key".into(), json!(key.to_string()));
            json::line(&object.into())
        } else {
            format!("{key}\n")
        })?;
    }
    Ok(Exit::Done)
}

fn service(text: &str) -> Result<Names, Failure> {
    let refused = |error: ibi::ParseError| Failure::new(Exit::Usage, error);
    Ibi::parse(text).map(Names::from).map_err(refused)
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Failure {
        let exit = match error {
            RegistryError::NotRegistered(_)
            | RegistryError::NoActor(_)
            | RegistryError::NoDocument(_) => Exit::NotFound,
            RegistryError::TwoArchives(_)
            | RegistryError::WrongKey(_)
            | RegistryError::Open { .. } => Exit::Refused,
            RegistryError::NoName => Exit::Usage,
            _ => Exit::Failed,
        };
        Failure::new(exit, error)
    }
}
