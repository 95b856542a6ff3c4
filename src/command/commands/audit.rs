//! `ibifs audit`: its arguments and its output.

use std::cell::Cell;
use std::time::Duration;

use serde_json::json;

use super::access::StoreAccess;
use super::backup::noted_directory;
use super::repair::{self, archive_place, place_of};
use super::scrub::item_in;
use super::transfer::is_same;
use super::{network, put_out, say, usage};
use crate::archive::answering::audit_key;
use crate::archive::audit::{Audit, AuditFinding, AuditPeer, AuditTally, Side, StorePeer};
use crate::archive::finding::Severity;
use crate::archive::repair::{CopyPlace, Repair, RepairFinding, StorePlace};
use crate::archive::transfer::{Local, TransferError};
use crate::archive::tree::joined;
use crate::archive::{Archive, Facts};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::audit::SaidOfItself;
use crate::formats::base_url::BaseUrl;
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use crate::formats::item::{Names, State};
use crate::formats::tlog::note::SignerKey;
use crate::web::audit::ArchivePeer;
use crate::web::remote_archive::is_url;
use ibi::message::{Localize, Message};
use ibi::{message, plural};

/// A place as it can be mended, and from which the other one is.
struct End<'a> {
    access: &'a StoreAccess,
    name: &'a str,
    facts: Facts,
    is_backup: bool,
}

/// The other place.
enum Other<'a> {
    Store(Box<End<'a>>),
    /// An Archive, which mends its own files.
    Archive(&'a str),
}

pub(super) fn run(options: &cli::Audit) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    if let Some(mounted) = access.asked() {
        let path = mounted.mount_point.display();
        return Err(Failure::new(
            Exit::Refused,
            message!(
                "'{path}': only the owner of the store that is mounted there audits it; let the owner run the command",
                path
            ),
        ));
    }
    access.learn();
    let store = Local::reading(&access.store)?;
    let Some(with) = options.with.as_deref().filter(|_| !options.key) else {
        let key = own_key(&store)?;
        say(&format!("{}\n", key.verifier()))?;
        return Ok(Exit::Done);
    };
    let names = options.items.iter().map(|text| item_in(&access, text));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let facts = |local: &Local| local.archive().facts().clone();
    let here = End {
        access: &access,
        name: "",
        facts: facts(&store),
        is_backup: false,
    };
    if is_url(with) {
        let mut peer = archive_peer(with, &store, options)?;
        return audit(
            options,
            &store,
            (&here, &Other::Archive(with)),
            &names,
            &mut peer,
        );
    }
    let place = place_of(with);
    let name = place.to_string_lossy();
    let other = StoreAccess::at(&place)?;
    if is_same(&other.store, &access.store) {
        return Err(usage(message!(
            "'{from}' is the store itself; name another place that has copies",
            from = with
        )));
    }
    let there = Local::reading(&other.store)?;
    let backup = there.service().matches(store.service());
    let end = End {
        access: &other,
        name: &name,
        facts: facts(&there),
        is_backup: backup,
    };
    let directory = backup.then(|| noted_directory(&other.store));
    let mut peer = StorePeer::new(there, &name, directory);
    audit(
        options,
        &store,
        (&here, &Other::Store(Box::new(end))),
        &names,
        &mut peer,
    )
}

/// The key of an Archive for audits.
fn own_key(store: &Local) -> Result<SignerKey, Failure> {
    let archive = store.archive();
    let key = audit_key(archive.tree(), archive.facts());
    key.map_err(|error| Failure::new(Exit::Failed, error))
}

/// The Archive at a URL, with the key that `archive.ibi` has of it.
fn archive_peer(with: &str, store: &Local, options: &cli::Audit) -> Result<ArchivePeer, Failure> {
    let url = BaseUrl::parse(with).map_err(usage)?;
    let mut listed = store.archive().facts().audits.iter();
    let (url, key) = listed.find(|(it, _)| *it == url).ok_or_else(|| {
        usage(message!(
            "archive.ibi does not list '{url}'; add 'audit {{URL KEY}}', with what the Archive has at URL/audit-key",
            url = with
        ))
    })?;
    let facts = store.archive().facts();
    let said = SaidOfItself {
        service: facts.service.clone(),
        place: facts.place.clone(),
    };
    Ok(ArchivePeer::new(
        url,
        key,
        (&said, own_key(store)?),
        &network(&options.network)?,
    )?)
}

fn audit(
    options: &cli::Audit,
    store: &Local,
    (here, there): (&End<'_>, &Other<'_>),
    names: &[Names],
    peer: &mut dyn AuditPeer,
) -> Result<Exit, Failure> {
    let is_json = options.output.json;
    let index = is_json.then(|| store.archive());
    let progress = ProgressLine::of_items(|| match names.len() {
        0 => store.archive().store().held_items().ok(),
        some => u64::try_from(some).ok(),
    });
    let (mended, left) = (Cell::new(0_u64), Cell::new(0_u64));
    let count = |counter: &Cell<u64>| counter.set(counter.get() + 1);
    let mut report = |finding: &AuditFinding| {
        if finding.code.severity() == Severity::Error {
            count(&left);
        }
        let printed = Printed {
            code: finding.code.word(),
            peer: finding.peer.as_deref(),
            item: &finding.item,
            path: &finding.path,
            kept: None,
            sentence: finding.sentence(),
        };
        progress.aside(|| put_out(&printed.text(index)))
    };
    let mut mend = |side: Side, names: &Names| {
        let (to, peer) = match (side, there) {
            (Side::Here, _) => (here, None),
            (Side::There, Other::Store(there)) => (&**there, Some(there.name)),
            (Side::There, Other::Archive(_)) => return Ok(Some(message!("its Archive mends it"))),
        };
        if let Some(why) = to.why_not(names)? {
            return Ok(Some(why));
        }
        let mut report = |finding: &RepairFinding| {
            count(if finding.is_left() { &left } else { &mended });
            let access = match there {
                Other::Store(there) if there.is_backup => here.access,
                _ => to.access,
            };
            repair::tell(access, finding);
            let printed = Printed {
                code: finding.code.word(),
                peer,
                item: &finding.item,
                path: &finding.path,
                kept: finding.kept.as_deref(),
                sentence: finding.sentence(),
            };
            progress.aside(|| put_out(&printed.text(index)))
        };
        let from = match (side, there) {
            (Side::There, _) => here.as_place(),
            (Side::Here, Other::Store(there)) => there.as_place(),
            (Side::Here, Other::Archive(url)) => archive_place(url, &options.network),
        };
        match from {
            Ok(from) => to.mend(from, names, &mut report),
            Err(failure) => Ok(Some(failure.message)),
        }
    };
    let mut audit = Audit {
        store,
        peer,
        report: &mut report,
        mend: &mut mend,
        progress: &mut |items, bytes| progress.at_bytes(items, bytes),
        tally: AuditTally::default(),
    };
    let minutes = |count: u64| Duration::from_secs(count.saturating_mul(60));
    let done = match names {
        [] => audit.all(options.minutes.map(minutes)),
        names => audit.some(names),
    };
    let tally = audit.tally;
    drop(progress);
    let (mended, left) = (mended.get(), left.get());
    let counts = counts(&tally, mended, left);
    if names.is_empty() && tally.items > 0 {
        let tell = |access: &StoreAccess, other: &str| {
            access.tell(EventKind::Audited, None, &format!("{other}: {counts}"));
        };
        tell(here.access, options.with.as_deref().unwrap_or_default());
        if let Other::Store(there) = there
            && !there.is_backup
        {
            tell(there.access, &json::path(&here.access.store));
        }
    }
    done?;
    say(&if is_json {
        json::line(&json!({
            "items": tally.items, "good": tally.good, "files": tally.files, "bytes": tally.bytes,
            "mended": mended, "left": left, "remaining": tally.wanted - tally.items,
        }))
    } else {
        format!("{}\n", localized(&counts))
    })?;
    Ok(if left > 0 { Exit::Failed } else { Exit::Done })
}

impl End<'_> {
    /// Why nothing of an item is mended here; None if it may be.
    fn why_not(&self, names: &Names) -> Result<Option<Message>, TransferError> {
        if Archive::is_generation(&self.access.store) {
            return Ok(Some(message!(
                "it is in a generation of a backup; mend it in all of them with 'ibifs repair {path} --all --from STORE'",
                path = json::path(&self.access.store)
            )));
        }
        if self.is_backup || self.facts.repairs_originals {
            return Ok(None);
        }
        let archive = Archive::open_read_only(&self.access.store)?;
        let item = archive.held(names)?;
        Ok(item.filter(|item| item.state == State::Original).map(|_| {
            message!(
                "it is an original; mend it with 'ibifs repair', or let audits do so with 'repair {{original yes}}' in archive.ibi"
            )
        }))
    }

    /// The place from which the other end is mended.
    fn as_place(&self) -> Result<Box<dyn CopyPlace>, Failure> {
        let name = if self.name.is_empty() {
            json::path(&self.access.store)
        } else {
            self.name.to_owned()
        };
        let store = Local::reading(&self.access.store)?;
        Ok(Box::new(StorePlace::new(store, &name)))
    }

    /// Mends an item from the other end. Returns why that could not be tried.
    fn mend(
        &self,
        from: Box<dyn CopyPlace>,
        names: &Names,
        report: &mut dyn FnMut(&RepairFinding) -> std::io::Result<()>,
    ) -> Result<Option<Message>, TransferError> {
        // A backup is no store that is used: nothing else than the file is changed in it.
        let opened = if self.is_backup {
            Local::reading(&self.access.store)
        } else {
            let mount_point = self.access.mount_point.as_deref();
            Local::changing(&self.access.store, mount_point)
        };
        let store = match opened {
            Ok(store) => store,
            Err(error) => return Ok(Some(error.message())),
        };
        let lock = self
            .is_backup
            .then(|| Archive::hold(store.archive().tree()));
        if let Some(Err(error)) = &lock {
            return Ok(Some(error.message()));
        }
        let mut places = [from];
        let mut repair = Repair {
            store: &store,
            places: &mut places,
            report,
            renewed: &|names, paths| repair::renewed(self.access, names, paths),
            progress: &mut |_, _| (),
            items: 0,
            generations: None,
        };
        let done = repair.item(names);
        store.close();
        // One that cannot be mended now, on a full disk or where it is read only, is for the next pass.
        Ok(done.err().map(|error| error.message()))
    }
}

/// A line of the output.
struct Printed<'a> {
    code: &'a str,
    /// The place in which it is so; None for the store that is audited.
    peer: Option<&'a str>,
    item: &'a str,
    path: &'a [u8],
    kept: Option<&'a [u8]>,
    sentence: Message,
}

impl Printed<'_> {
    /// A line of text, or of JSON with the names that an index has.
    fn text(&self, index: Option<&Archive>) -> String {
        if index.is_none() {
            let path = joined(self.item.as_bytes(), self.path);
            let path = match self.peer {
                Some(peer) => joined(peer.as_bytes(), &path),
                None => path,
            };
            let sentence = repair::with_kept(self.sentence.clone(), self.kept);
            return format!(
                "{}: {}: {}\n",
                self.code,
                shown(&path),
                localized(&sentence)
            );
        }
        let mut object = json::names_at(index, self.item);
        object.insert("code".into(), json!(self.code));
        object.insert("in".into(), json!(self.peer));
        object.insert("path".into(), json!(shown(self.path)));
        object.insert("kept".into(), json!(self.kept.map(shown)));
        object.insert("sentence".into(), json!(self.sentence));
        json::line(&object.into())
    }
}

fn counts(tally: &AuditTally, mended: u64, left: u64) -> Message {
    let line = message!(
        "{items} compared, {files}, {bytes}: {mended}, {left}",
        items = plural!("{count} item", "{count} items", count = tally.items),
        files = plural!("{count} file", "{count} files", count = tally.files),
        bytes = plural!("{count} byte", "{count} bytes", count = tally.bytes),
        mended = plural!(
            "{count} file mended",
            "{count} files mended",
            count = mended
        ),
        left = plural!(
            "{count} left to see to",
            "{count} left to see to",
            count = left
        )
    );
    match tally.wanted - tally.items {
        0 => line,
        rest => message!(
            "{line}; {rest} for the next time",
            line,
            rest = plural!("{count} item", "{count} items", count = rest)
        ),
    }
}
