//! An Archive with which items are compared: it shows what it has by digests over nonces and content.

use std::time::Duration;

use super::asking::{AuditFailure, AuditedArchive};
use crate::archive::audit::{AuditPeer, Comparison, ReadHere};
use crate::archive::scrub::ItemDigests;
use crate::archive::transfer::TransferError;
use crate::formats::audit::{
    Challenge, ItemAnswer, MOST_GONE, MOST_ITEMS, MOST_SECONDS, Role, SaidOfItself, is_name_of,
};
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::{CopyKind, Gone, KnownCopy};
use crate::formats::fixity::Digest;
use crate::formats::item::Names;
use crate::formats::tlog::note::{SignerKey, VerifierKey};
use crate::http::client::Network;
use ibi::message::Localize;
use ibi::{Ibi, message};

/// An Archive that is asked.
#[derive(Debug)]
pub struct ArchivePeer {
    archive: AuditedArchive,
    url: BaseUrl,
    key: VerifierKey,
    name: String,
    own: Names,
    copy: KnownCopy,
    gone: Option<Gone>,
}

impl ArchivePeer {
    /// The Archive at a URL with a key, which is asked with the key of this Archive, which says `own` of itself.
    ///
    /// # Errors
    /// It is not reached, or does not answer as that Archive.
    pub fn new(
        url: &BaseUrl,
        peer: &VerifierKey,
        (own, key): (&SaidOfItself, SignerKey),
        network: &Network,
    ) -> Result<ArchivePeer, TransferError> {
        let name = url.to_string();
        let archive = AuditedArchive::new(url, peer, (own.clone(), key), network);
        let archive = archive.map_err(|error| failed(&name, &error))?;
        // Its service and its place are in each answer.
        let mut nothing = |_: &Challenge, _: &Ibi| Ok(());
        let asked = archive.ask((vec![ibi_of(&own.service)?], false), 1, &[], &mut nothing);
        let (head, _) = asked.map_err(|error| failed(&name, &error))?.into_parts();
        let SaidOfItself { service, place } = head.said;
        if service.matches(&own.service) {
            return Err(TransferError::SameArchive);
        }
        let service = service.preferred();
        Ok(ArchivePeer {
            archive,
            url: url.clone(),
            key: peer.clone(),
            own: own.service.clone(),
            gone: None,
            name,
            copy: KnownCopy {
                place,
                ..KnownCopy::new(
                    CopyKind::Archive,
                    SaidOfItself::holder(Some(&service), url, peer),
                )
            },
        })
    }

    fn failed(&self, error: &AuditFailure) -> TransferError {
        failed(&self.name, error)
    }
}

fn failed(url: &str, what: &dyn Localize) -> TransferError {
    TransferError::Remote(message!("the Archive at {url}: {what}", url, what))
}

/// The identifier by which an item is asked for.
fn ibi_of(names: &Names) -> Result<Ibi, TransferError> {
    let parsed = Ibi::parse(&names.preferred());
    parsed.map_err(|error| TransferError::System(error.message()))
}

impl AuditPeer for ArchivePeer {
    fn name(&self) -> &str {
        &self.name
    }

    fn copy(&self) -> KnownCopy {
        self.copy.clone()
    }

    fn is_named(&self, holder: &str) -> bool {
        is_name_of(holder, &self.url, &self.key)
    }

    fn said_gone(&mut self) -> Option<Gone> {
        self.gone.take()
    }

    fn tell_gone(&mut self, _own: &str, gone: &[(Names, Gone)]) -> Result<(), TransferError> {
        for some in gone.chunks(MOST_GONE) {
            let named = some
                .iter()
                .map(|(names, gone)| Ok((ibi_of(names)?, gone.clone())));
            let named = named.collect::<Result<Vec<_>, TransferError>>()?;
            let (asked, mut nothing) = (vec![ibi_of(&self.own)?], |_: &Challenge, _: &Ibi| Ok(()));
            let told = self.archive.ask((asked, false), 1, &named, &mut nothing);
            told.map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// It says so when it is asked, which names the item to it.
    fn may_hold(
        &mut self,
        _names: &Names,
        is_public: &dyn Fn() -> bool,
    ) -> Result<bool, TransferError> {
        Ok(is_public())
    }

    fn both(
        &mut self,
        names: &Names,
        here: &mut ReadHere<'_>,
        _progress: &mut dyn FnMut(u64),
    ) -> Result<[Option<ItemDigests>; 2], TransferError> {
        let mut found = None;
        let mut read = |challenge: &Challenge, item: &Ibi| {
            let before = |path: &[u8], size| challenge.before(item, path, size);
            found = Some(here(names, Some(&before))?);
            Ok(())
        };
        let asked = self
            .archive
            .ask((vec![ibi_of(names)?], true), MOST_SECONDS, &[], &mut read);
        let asked = asked.map_err(|error| self.failed(&error))?;
        let (head, mut items) = asked.into_parts();
        let here = match found {
            Some(found) => found,
            None => here(names, None)?,
        };
        let (answer, files) = items
            .pop()
            .unwrap_or((ItemAnswer::Missing, Default::default()));
        let mut there = ItemDigests::default();
        match answer {
            ItemAnswer::Missing => return Ok([here, None]),
            ItemAnswer::Gone(gone) => {
                self.gone = Some(gone);
                return Ok([here, None]);
            }
            ItemAnswer::Unread => {
                let why = message!("the Archive says so; see its log");
                there.unread.push((Vec::new(), why));
            }
            ItemAnswer::Read(_) => {
                for (path, sent) in files {
                    let kept = here.as_ref().and_then(|here| here.answers.get(&path));
                    let is_same =
                        |kept: &&Digest| head.challenge.of_file(Role::Answerer, kept) == sent;
                    // What is not the same has some other digest than here.
                    let digest = kept.filter(is_same).copied().unwrap_or(sent);
                    there.answers.insert(path, digest);
                }
            }
        }
        Ok([here, Some(there)])
    }

    fn batch(&self) -> usize {
        MOST_ITEMS
    }

    fn compare(
        &mut self,
        items: &[Names],
        time: Duration,
        here: &mut ReadHere<'_>,
    ) -> Result<Vec<Comparison>, TransferError> {
        let asked = items.iter().map(ibi_of).collect::<Result<Vec<_>, _>>()?;
        let seconds = time.as_secs().clamp(1, MOST_SECONDS);
        let mut found = Vec::new();
        let mut read = |challenge: &Challenge, item: &Ibi| {
            let at = asked.iter().position(|it| it == item);
            let names = at.and_then(|at| items.get(at));
            if let Some(names) = names {
                let before = |path: &[u8], size| challenge.before(item, path, size);
                found.push((item.clone(), here(names, Some(&before))?));
            }
            Ok(())
        };
        let answer = self
            .archive
            .ask((asked.clone(), false), seconds, &[], &mut read);
        let (head, answers) = answer.map_err(|error| self.failed(&error))?.into_parts();
        let mut found = found.into_iter().peekable();
        let (mut compared, mut shown) = (Vec::new(), Vec::new());
        for (item, (answer, _)) in asked.iter().zip(answers) {
            let read = found
                .next_if(|(it, _)| it == item)
                .and_then(|(_, here)| here);
            compared.push(match (answer, read) {
                (ItemAnswer::Read(sent), Some(here)) => {
                    let of = |role| head.challenge.of_item(role, item, &here.answers);
                    shown.push((item.clone(), of(Role::Asker)));
                    if sent == of(Role::Answerer) && is_whole(&here) {
                        Comparison::Same(here)
                    } else {
                        Comparison::Open
                    }
                }
                (ItemAnswer::Missing, _) => Comparison::Missing,
                (ItemAnswer::Gone(gone), _) => Comparison::Gone(gone),
                _ => Comparison::Open,
            });
        }
        // It need not take it: what it has was shown.
        if let Err(error) = self.archive.show(&head, shown) {
            log::info!("{}: what is here is not shown there: {error}", self.name);
        }
        Ok(compared)
    }
}

/// Whether an item is as it was recorded.
fn is_whole(here: &ItemDigests) -> bool {
    let faults = [&here.damaged, &here.altered, &here.absent];
    faults.iter().all(|it| it.is_empty()) && here.unread.is_empty()
}
