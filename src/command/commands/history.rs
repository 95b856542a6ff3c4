//! `ibifs history`, `prove` and `verify`: what was done to items, and proofs of that.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::json;

use super::access::{self, StoreAccess};
use super::{daemon, network, say, usage};
use crate::archive::log_files::{LogFileError, LogReader};
use crate::archive::store::EventRow;
use crate::archive::{ArchiveError, Process, event_in, log_of};
use crate::command::cli::{Cosign, History, Prove, Verify};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::base_url::BaseUrl;
use crate::formats::history::earlier::{as_it_was, tellers};
use crate::formats::history::{EventKind, Told, proved};
use crate::formats::item::Names;
use crate::formats::question::Line;
use crate::formats::timestamping::StampRequest;
use crate::formats::tlog::checkpoint::seen_at;
use crate::formats::tlog::note::{Note, Signature, VerifierKey};
use crate::formats::tlog::policy::Policy;
use crate::formats::tlog::proof::Proof;
use crate::http::client::Network;
use crate::os::random;
use crate::web::witness::{WitnessError, ask_stamp, ask_witness};
use ibi::message;
use ibi::message::{Localize, Message};

/// The most bytes of a proof and of a policy.
const LONGEST: u64 = 1 << 20;

pub(super) fn history(options: &History) -> Result<Exit, Failure> {
    let (access, names) = target(options)?;
    let is_json = options.output.json;
    let is_meant = |told: &Told| {
        let kind = options.kind.as_deref().is_none_or(|kind| {
            let code = EventKind::of(&told.event).and_then(EventKind::premis);
            kind == told.event || code.is_some_and(|(code, _)| code == kind)
        });
        kind && options
            .since
            .as_ref()
            .is_none_or(|since| told.time >= *since)
    };
    let mut any = false;
    let mut print = |event: &EventRow| {
        any = true;
        match Told::parse(&event.line) {
            Some(told) if is_meant(&told) && is_json => say(&format!("{}\n", event.line)),
            Some(told) if is_meant(&told) => say(&line(&told, names.is_none())),
            _ => Ok(()),
        }
    };
    if let Some(mounted) = access.asked() {
        let question = Line::new("history");
        let question = match &names {
            Some(names) => question.with_names("item", names),
            None => question,
        };
        let mut printed = Ok(());
        daemon::each_line(&mounted, &question, |line| {
            if let (Ok(()), Some(event)) = (&printed, event_in(line)) {
                printed = print(&event);
            }
        })?;
        return printed.map(|()| Exit::Done);
    }
    let archive = access.read()?;
    archive.each_event(names.as_ref(), &mut print)?;
    if any || archive.facts().history {
        Ok(Exit::Done)
    } else {
        Err(Failure::new(
            Exit::NotFound,
            message!(
                "this store keeps no history; add 'history yes' to archive.ibi, and mount it again"
            ),
        ))
    }
}

/// The store, and the item; None for all of them.
fn target(options: &History) -> Result<(StoreAccess, Option<Names>), Failure> {
    let store = options.store.as_deref();
    let Some(target) = options.target.as_deref() else {
        return Ok((StoreAccess::named(store)?, None));
    };
    if let Ok(path) = std::fs::canonicalize(target)
        && let Ok(access) = StoreAccess::at(&path)
        && [Some(&access.store), access.mount_point.as_ref()].contains(&Some(&path))
    {
        return Ok((access, None));
    }
    let named = access::find(target, store)?;
    Ok((named.access, Some(named.names)))
}

fn line(told: &Told, has_item: bool) -> String {
    let was = as_it_was(told);
    let time = was.time.to_rfc3339();
    let mut line = format!("{time:24} {:12} {}", was.event, was.agent);
    if has_item && !told.item.is_empty() {
        line.push_str(&format!(" {}", told.item));
    }
    if !was.note.is_empty() {
        line.push_str(&format!(" ({})", was.note));
    }
    if let Some(tellers) = tellers(told) {
        line.push_str(&format!(
            ", {}",
            localized(&message!("told by {tellers}", tellers))
        ));
    }
    format!("{}\n", OneLine(line))
}

pub(super) fn prove(options: &Prove) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let proof = match named.access.asked() {
        Some(mounted) => {
            let mut proof = None;
            let question = Line::new("prove").with_names("item", &named.names);
            daemon::each_line(&mounted, &question, |line| {
                proof = line.get("text").map(str::to_owned).or(proof.take());
            })?;
            proof
        }
        None => {
            let archive = named.access.read()?;
            archive.prove_last(&named.names, |_| Ok(true))?
        }
    };
    let Some(proof) = proof else {
        let names = named.names;
        return Err(Failure::new(
            Exit::NotFound,
            message!(
                "no event of {names} is in the log; events get there within a second, if archive.ibi has 'history yes'",
                names
            ),
        ));
    };
    say(&proof)?;
    Ok(Exit::Done)
}

pub(super) fn cosign(options: &Cosign) -> Result<Exit, Failure> {
    let access = StoreAccess::named(options.store.as_deref())?;
    let witnesses = access.read()?.facts().witnesses.clone();
    if witnesses.is_empty() && options.tsa.is_none() && !options.new_key {
        return Err(usage(message!(
            "archive.ibi names no witness; add 'witness {{URL KEY}}', with what the witness publishes at URL/witness-key"
        )));
    }
    let new_key = options.new_key.then(|| new_key(&access)).transpose()?;
    let log = log_of(&access.store)?;
    let network = network(&options.network)?;
    let before = log.witnessed().map_err(ArchiveError::from)?;
    let mut note = log.note().clone();
    let mut failures = 0;
    let mut report = Vec::new();
    for (url, key) in &witnesses {
        let known = before.as_ref();
        let known = known.filter(|(note, _)| seen_at(note, key).is_ok());
        let old = known.map_or(0, |(_, checkpoint)| checkpoint.size);
        let asked = match ask(&log, url, key, old, &network) {
            // It has seen more than is kept here.
            Err(Unseen::Witness(WitnessError::Known(size))) => ask(&log, url, key, size, &network),
            asked => asked,
        };
        let said = match asked {
            Ok(signature) => {
                note.signatures.push(signature);
                None
            }
            Err(error) => {
                failures += 1;
                Some(error.message())
            }
        };
        report.push((url, said));
    }
    if note.signatures.len() > log.note().signatures.len() {
        log.keep_witnessed(&note).map_err(ArchiveError::from)?;
    }
    let size = log.checkpoint().size;
    let stamped = options.tsa.as_deref();
    let stamped = stamped.map(|url| (url, stamp(&log, url, &note, &network)));
    failures += stamped
        .iter()
        .filter(|(_, stamped)| stamped.is_err())
        .count();
    if options.output.json {
        let witness = |(url, said): &(&BaseUrl, Option<Message>)| {
            let error = said.as_ref().map(localized);
            json!({ "url": url.to_string(), "error": error })
        };
        let witnesses: Vec<_> = report.iter().map(witness).collect();
        let mut object = json!({ "size": size, "witnesses": witnesses });
        if let Some(key) = &new_key {
            object["key"] = json!(key);
        }
        if let Some((url, stamped)) = &stamped {
            let error = stamped.as_ref().err().map(localized);
            object["stamp"] = json!({ "url": url, "error": error });
        }
        say(&json::pretty(&object))?;
    } else {
        if let Some(key) = &new_key {
            let line = message!("the log has the key {key} now", key);
            say(&format!("{}\n", localized(&line)))?;
        }
        for (url, said) in &report {
            let url = url.to_string();
            let line = match said {
                None => message!("{url} has cosigned the log with {size} events", url, size),
                Some(error) => message!("{url}: {error}", url, error),
            };
            say(&format!("{}\n", localized(&line)))?;
        }
        if let Some((url, stamped)) = &stamped {
            let line = match stamped {
                Ok(true) => message!("{url} has stamped the log with {size} events", url, size),
                Ok(false) => message!("the log with {size} events has a time stamp already", size),
                Err(error) => message!("{url}: {error}", url, error),
            };
            say(&format!("{}\n", localized(&line)))?;
        }
    }
    Ok(if failures == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Gives the log of a store another key. Returns its public part.
fn new_key(access: &StoreAccess) -> Result<String, Failure> {
    let Some(mounted) = access.mounted() else {
        let key = access.change(|archive| archive.replace_log_key(&Process))?;
        return Ok(key.to_string());
    };
    let mut key = String::new();
    daemon::each_line(&mounted, &Line::new("new-key"), |line| {
        key = line.get("text").unwrap_or_default().to_owned();
    })?;
    Ok(key)
}

/// Has an authority stamp a checkpoint. False if one with as many events was stamped before: it has the earlier time.
fn stamp(log: &LogReader, url: &str, note: &Note, network: &Network) -> Result<bool, Message> {
    if log.is_stamped().map_err(|error| error.message())? {
        return Ok(false);
    }
    let random = random::draw().map_err(|errno| std::io::Error::from(errno).message())?;
    let request = StampRequest::new(note.to_string().as_bytes(), random);
    let answer = ask_stamp(url, &request, network).map_err(|error| error.message())?;
    request.check(&answer).map_err(|error| error.message())?;
    let kept = log.keep_stamp(note, &answer);
    kept.map(|()| true).map_err(|error| error.message())
}

/// The reason why a witness has not cosigned the log.
enum Unseen {
    Log(LogFileError),
    Witness(WitnessError),
}

impl Unseen {
    fn message(&self) -> Message {
        match self {
            Unseen::Log(error) => error.message(),
            Unseen::Witness(error) => error.message(),
        }
    }
}

fn ask(
    log: &LogReader,
    url: &BaseUrl,
    key: &VerifierKey,
    old: u64,
    network: &Network,
) -> Result<Signature, Unseen> {
    let proof = log.consistency(old).map_err(Unseen::Log)?;
    ask_witness(url, key, old, &proof, log.note(), network).map_err(Unseen::Witness)
}

pub(super) fn verify(options: &Verify) -> Result<Exit, Failure> {
    let path = options.file.display();
    let text = read(&options.file)?;
    let refused = |error: &dyn Localize| {
        Failure::new(Exit::Failed, message!("'{path}': {error}", path, error))
    };
    let proof = Proof::parse(&text).map_err(|error| refused(&error))?;
    let policy = match (&options.policy, &options.store) {
        (Some(file), _) => {
            let path = file.display();
            Policy::parse(&read(file)?)
                .map_err(|error| usage(message!("'{path}': {error}", path, error)))?
        }
        (None, store) => {
            let store = store.as_deref().unwrap_or(Path::new("."));
            let log = log_of(&StoreAccess::at(store)?.store)?;
            let key = log.key_of(&proof.checkpoint);
            Policy::of_log(key.map_err(|error| refused(&error))?)
        }
    };
    let Some((entry, line)) = proved(&proof) else {
        return Err(refused(&message!("it has no event of ibifs")));
    };
    let trusted = proof
        .check(&entry, &policy)
        .map_err(|error| refused(&error))?;
    let (checkpoint, index) = (&trusted.checkpoint, proof.index);
    say(&if options.output.json {
        let seen = trusted.seen.iter();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        json::pretty(&json!({
            "log": checkpoint.origin,
            "size": checkpoint.size,
            "index": index,
            "event": event,
            "witnesses": seen.map(|(name, at)| json!({ "name": name, "time": at })).collect::<Vec<_>>(),
        }))
    } else {
        let told = message!(
            "event {index} of {size} of the log {origin}",
            index,
            size = checkpoint.size,
            origin = &checkpoint.origin
        );
        let mut text = format!("{}\n{line}\n", localized(&told));
        for (name, at) in &trusted.seen {
            let at = ibi::Timestamp::from_unix(at.cast_signed(), 0).to_rfc3339();
            let seen = message!("seen by {name} at {at}", name, at);
            text.push_str(&format!("{}\n", localized(&seen)));
        }
        text
    })?;
    Ok(Exit::Done)
}

#[expect(clippy::disallowed_methods, reason = "the user names it")]
fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(LONGEST).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text))
    };
    let path = path.display();
    read.map_err(|error| Failure::new(Exit::Failed, message!("'{path}': {error}", path, error)))?;
    Ok(text)
}
