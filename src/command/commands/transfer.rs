//! `ibifs copy`, `ibifs transfer`, `ibifs claim` and `ibifs fsck --with`: the choice of items, and the
//! output for each. Items that are fetched from Archives by HTTP are in [`fetched`].

mod fetched;
mod mounted;
mod outcomes;

use std::collections::BTreeSet;
use std::path::Path;

use super::access::{self, StoreAccess};
use super::daemon::Wanted;
use super::items::items;
use super::{failed_at, usage};
use crate::archive::store::Item;
use crate::archive::transfer::{
    self, Cancelled, CompareWhen, Destination, Local, Remover, TransferError, TransferOutcome,
};
use crate::archive::{Archive, ArchiveError, CheckFinding};
use crate::command::cli::{Claim, Copy, NetworkOptions, Selection, Transfer};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::formats::item::{Names, State};
use crate::http::client::Network;
use crate::web::remote_archive::{Remote, RemoteArchive, is_url};
use ibi::relation::RelationKind;
use ibi::{Ibi, message, plural};
use mounted::AskedMount;
use outcomes::{each_item, one_by_one};

pub(super) fn copy(options: &Copy) -> Result<Exit, Failure> {
    let (texts, destination) = split(&options.paths)?;
    if let Some(exit) = fetched::copy(options, texts, destination)? {
        return Ok(exit);
    }
    let wanted = ItemChoice {
        texts,
        selection: &options.selection,
        state: options.state.map(State::from),
        by_state: options.state.is_some(),
        pending: false,
    };
    let access = wanted.access()?;
    let to = To::at(destination, &options.selection)?;
    to.refuse(&access)?;
    let is_json = options.selection.output.json;
    let comparison = if options.verify {
        CompareWhen::Verify
    } else {
        CompareWhen::IfNew
    };
    let how = (options.selection.bring_back, comparison);
    if access.asked().is_some() {
        let names = wanted.names_asked(&access)?;
        let mut unanswered = None;
        let mut one = |names: &[Names], to: &mut dyn Destination| {
            let part = names.get(..MOST_ASKED).unwrap_or(names);
            match source_of(&access, part) {
                Ok(source) => transfer::copy_first(&source, part, to, how, &mut |_| ()),
                Err(failure) => {
                    unanswered = Some(failure);
                    Vec::new()
                }
            }
        };
        let done = to.with(|to| each_item(&names, is_json, |names| one(names, to)));
        return done.map_err(|failure| unanswered.unwrap_or(failure));
    }
    let source = Local::reading(&access.store)?;
    let names = wanted.names(&source, &access)?;
    to.with(|to| {
        each_item(&names, is_json, |names| {
            transfer::copy_first(&source, names, to, how, &mut |_| ())
        })
    })
}

pub(super) fn hand_over(options: &Transfer) -> Result<Exit, Failure> {
    let (texts, destination) = split(&options.paths)?;
    let wanted = ItemChoice {
        texts,
        selection: &options.selection,
        state: (!options.cancel).then_some(State::Original),
        by_state: false,
        pending: options.pending,
    };
    let access = wanted.access()?;
    if options.receiver_is_gone {
        return cancel_without(options, destination, &wanted, &access);
    }
    let to = To::at(destination, &options.selection)?;
    to.refuse(&access)?;
    if let To::Store(to) = &to {
        refuse_shut(to)?;
    }
    let source = changing(&access)?;
    let done = wanted.names(&source, &access).and_then(|names| {
        let (is_json, back) = (options.selection.output.json, options.selection.bring_back);
        to.with(|to| {
            let mut one = |it: &_| {
                if options.cancel {
                    transfer::cancel(&source, it, &mut Cancelled::With(to))
                } else {
                    transfer::hand_over(&source, it, to, back, &mut |_| ())
                }
            };
            each_item(&names, is_json, |names| one_by_one(names, &mut one))
        })
    });
    source.close();
    done
}

/// Cancels transfers to an Archive that the user declares gone for good.
fn cancel_without(
    options: &Transfer,
    receiver: &str,
    wanted: &ItemChoice<'_>,
    access: &StoreAccess,
) -> Result<Exit, Failure> {
    let receiver = Ibi::parse(receiver).map_err(|error| {
        usage(message!(
            "with --receiver-is-gone the destination is the identifier of the service of the Archive that is gone, as 'ibifs status' prints it: '{receiver}': {error}",
            receiver,
            error
        ))
    })?;
    let receiver = Names::from(receiver);
    let source = changing(access)?;
    let mut unsafe_count = 0_u64;
    let done = wanted.names(&source, access).and_then(|names| {
        let mut one = |it: &_| {
            let outcome = transfer::cancel(&source, it, &mut Cancelled::Without(&receiver));
            let is_safe = !matches!(outcome, Ok(TransferOutcome::Cancelled { is_safe: false }));
            unsafe_count += u64::from(!is_safe);
            outcome
        };
        each_item(&names, options.selection.output.json, |names| {
            one_by_one(names, &mut one)
        })
    });
    source.close();
    if unsafe_count > 0 {
        eprintln!(
            "ibifs: {}",
            localized(&plural!(
                "the Archive {receiver} may hold {count} of these originals as well; if it comes back, run 'ibifs transfer --cancel' with its store or URL before anyone uses it",
                "the Archive {receiver} may hold {count} of these originals as well; if it comes back, run 'ibifs transfer --cancel' with its store or URL before anyone uses it",
                count = unsafe_count,
                receiver
            ))
        );
    }
    done
}

/// The most items about which a daemon is asked at once.
const MOST_ASKED: usize = 100;

/// A mount of which this user may not enter the store, as the source of some items.
fn source_of(access: &StoreAccess, items: &[Names]) -> Result<Local, Failure> {
    let names: Vec<String> = items.iter().map(Names::preferred).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(Local::of(access.read_about(&names)?))
}

/// Makes the copies in one store originals.
pub(super) fn claim(options: &Claim) -> Result<Exit, Failure> {
    let store = options.store.as_deref();
    let named = options.items.iter().map(|text| access::find(text, store));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = named.first() else {
        return Err(usage(message!("name the items")));
    };
    if let Some(other) = named
        .iter()
        .find(|it| !is_same(&it.access.store, &first.access.store))
    {
        return Err(usage(message!(
            "{item} is in another store than the first item, '{store}'; one store at a time",
            item = other.names,
            store = other.access.store.display()
        )));
    }
    let names: Vec<Names> = named.iter().map(|it| it.names.clone()).collect();
    if is_url(&options.from) {
        let mut other = RemoteArchive::at(&options.from, &super::network(&options.network)?)?;
        let done = claim_each(&first.access, &names, &mut other, options.output.json);
        if matches!(done, Ok(Exit::Done)) {
            eprintln!(
                "ibifs: {}",
                localized(&message!(
                    "the other Archive has recorded nothing: make sure that it does not make the items originals again, and that no third Archive claims them"
                ))
            );
        }
        return done;
    }
    let access = StoreAccess::at(Path::new(&options.from))?;
    if is_same(&access.store, &first.access.store) {
        return Err(TransferError::SameArchive.into());
    }
    let mut other = changing(&access)?;
    let done = claim_each(&first.access, &names, &mut other, options.output.json);
    other.close();
    done
}

fn claim_each(
    access: &StoreAccess,
    names: &[Names],
    other: &mut dyn Remover,
    is_json: bool,
) -> Result<Exit, Failure> {
    let mut local = changing(access)?;
    let mut one = |it: &_| transfer::claim(&mut local, it, other);
    let done = each_item(names, is_json, |names| one_by_one(names, &mut one));
    local.close();
    done
}

pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    // A store may lie where this user may not look.
    let resolved = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    resolved(one) == resolved(other)
}

/// Refuses a mount of which this user may not enter the store: which Archive holds an original is in its records.
fn refuse_shut(access: &StoreAccess) -> Result<(), Failure> {
    let Some(mounted) = access.asked() else {
        return Ok(());
    };
    let message = message!(
        "'{path}': only the owner of the store that is mounted there transfers and claims originals; let the owner run the command, or copy the items with 'ibifs copy'",
        path = mounted.mount_point.display()
    );
    Err(Failure::new(Exit::Refused, message))
}

/// Opens a store for changes.
pub(super) fn changing(access: &StoreAccess) -> Result<Local, Failure> {
    refuse_shut(access)?;
    Ok(Local::changing(
        &access.store,
        access.mount_point.as_deref(),
    )?)
}

/// The items, and the destination.
pub(super) fn split(paths: &[String]) -> Result<(&[String], &str), Failure> {
    match paths {
        [items @ .., destination] => Ok((items, destination)),
        [] => Err(usage(message!("name the items and the destination"))),
    }
}

/// The destination of the items.
enum To<'a> {
    Store(StoreAccess),
    Url(&'a str, String, Network),
}

impl To<'_> {
    fn at<'a>(text: &'a str, selection: &Selection) -> Result<To<'a>, Failure> {
        if !is_url(text) {
            return Ok(To::Store(StoreAccess::at(Path::new(text))?));
        }
        let file = selection.token_file.as_deref().ok_or_else(|| {
            usage(message!(
                "'{text}' is a URL: give the file of its token with --token-file",
                text
            ))
        })?;
        let read = super::secret::read(file)?;
        match read.split_whitespace().next() {
            Some(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                let network = super::network(&selection.network)?;
                Ok(To::Url(text, token.to_owned(), network))
            }
            _ => Err(failed_at(
                file,
                Exit::Usage,
                &message!("it contains no token"),
            )),
        }
    }

    /// Rejects the store of the items as destination, because its lock would block.
    fn refuse(&self, access: &StoreAccess) -> Result<(), Failure> {
        match self {
            To::Store(to) if is_same(&access.store, &to.store) => {
                Err(TransferError::SameArchive.into())
            }
            _ => Ok(()),
        }
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut dyn Destination) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self {
            To::Store(access) => {
                if let Some(mounted) = access.asked() {
                    return act(&mut AskedMount::at(&mounted)?);
                }
                let mut local = changing(access)?;
                let done = act(&mut local);
                local.close();
                done
            }
            To::Url(url, token, network) => act(&mut Remote::at(url, token, network)?),
        }
    }
}

/// The selection of items by a user.
struct ItemChoice<'a> {
    texts: &'a [String],
    selection: &'a Selection,
    state: Option<State>,
    /// Whether the user has selected items by state.
    by_state: bool,
    pending: bool,
}

impl ItemChoice<'_> {
    /// Whether items are selected by their properties, not by name.
    fn is_choice(&self) -> bool {
        self.selection.prefix.is_some()
            || self.selection.year.is_some()
            || self.pending
            || self.by_state
    }

    /// The store of the items.
    fn access(&self) -> Result<StoreAccess, Failure> {
        let store = self.selection.store.as_deref();
        match (self.texts.first(), store) {
            (Some(_), _) if self.is_choice() => Err(usage(message!(
                "name the items, or choose them by --prefix, --year, --state or --pending; not both"
            ))),
            (Some(text), store) => Ok(access::find(text, store)?.access),
            (None, _) if !self.is_choice() => Err(usage(message!(
                "name the items before the destination, or choose them by --prefix, --year or --state"
            ))),
            (None, None) => Err(usage(message!("name the store of the items with --store"))),
            (None, Some(store)) => StoreAccess::at(store),
        }
    }

    /// The items of a mount whose store this user may not enter.
    fn names_asked(&self, access: &StoreAccess) -> Result<Vec<Names>, Failure> {
        let names = match self.texts {
            _ if self.pending => Vec::new(),
            [] => {
                let Selection { prefix, year, .. } = self.selection;
                held_items(access, prefix.as_deref(), *year, self.state)?
            }
            texts => self.named(texts, access)?,
        };
        if !self.selection.with_metadata {
            return Ok(names);
        }
        let mut all = Vec::new();
        for part in names.chunks(MOST_ASKED) {
            all.extend(with_metadata(&source_of(access, part)?, part.to_vec())?);
        }
        Ok(all)
    }

    fn names(&self, source: &Local, access: &StoreAccess) -> Result<Vec<Names>, Failure> {
        let names = match self.texts {
            [] => self.chosen(source, access)?,
            texts => self.named(texts, access)?,
        };
        if self.selection.with_metadata {
            with_metadata(source, names)
        } else {
            Ok(names)
        }
    }

    fn named(&self, texts: &[String], access: &StoreAccess) -> Result<Vec<Names>, Failure> {
        let store = self.selection.store.as_deref();
        let found = texts.iter().map(|text| {
            let named = access::find(text, store)?;
            if is_same(&named.access.store, &access.store) {
                Ok(named.names)
            } else {
                Err(usage(message!(
                    "'{text}' is in another store than the first item, '{store}'; one store at a time",
                    text,
                    store = named.access.store.display()
                )))
            }
        });
        found.collect()
    }

    fn chosen(&self, source: &Local, access: &StoreAccess) -> Result<Vec<Names>, Failure> {
        if self.pending {
            let handovers = source.archive().handovers()?.into_iter();
            let given = handovers.filter(|(_, handover)| handover.is_pending());
            return Ok(given.map(|(names, _)| names).collect());
        }
        let Selection { prefix, year, .. } = self.selection;
        held_items(access, prefix.as_deref(), *year, self.state)
    }
}

/// The items of a store that are held and meet some conditions. The item of the service, which stays in its Archive, is not
/// among them.
pub(super) fn held_items(
    access: &StoreAccess,
    prefix: Option<&str>,
    year: Option<u32>,
    state: Option<State>,
) -> Result<Vec<Names>, Failure> {
    let (items, service) = items(access, state, prefix, Wanted::default())?;
    let year = year.map(|year| format!("{year:04}"));
    let is_meant = |item: &Item| {
        item.state != State::Deleted
            && !item.names.matches(&service)
            && (year.is_none() || year_of(&item.names) == year)
    };
    let meant = items.into_iter().map(|listed| listed.item).filter(is_meant);
    Ok(meant.map(|item| item.names).collect())
}

/// The year in an item's identifier, the rep if it has one.
fn year_of(names: &Names) -> Option<String> {
    let date = match (names.rep(), names.ibip()) {
        (Some(rep), _) => rep.timestamp(),
        (None, ibip) => ibip?.timestamp(),
    };
    date.to_rfc3339().split('-').next().map(str::to_owned)
}

/// The items without repetition, each followed by its metadata item.
fn with_metadata(source: &Local, names: Vec<Names>) -> Result<Vec<Names>, Failure> {
    let archive = source.archive();
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    for names in names {
        let item = source.item(&names)?;
        let mut metadata = None;
        for (kind, names) in archive.store().relations_of(item.id)? {
            if matches!(kind, RelationKind::Metadata) {
                metadata = archive.held(&names)?;
            }
        }
        for item in [Some(item), metadata].into_iter().flatten() {
            if known.insert(item.id) {
                all.push(item.names);
            }
        }
    }
    Ok(all)
}

/// The findings of a check with another Archive: the originals that both claim.
pub(super) fn claimed_by_both(
    store: &Path,
    other: &str,
    network: &NetworkOptions,
) -> Result<Vec<CheckFinding>, Failure> {
    Archive::inspect(store, |archive| claimed_by(archive, other, network))
}

fn claimed_by(
    archive: &Archive,
    other: &str,
    network: &NetworkOptions,
) -> Result<Vec<CheckFinding>, Failure> {
    let refuse_same = |service: &Names| {
        if service.matches(&archive.facts().service) {
            Err(TransferError::SameArchive)
        } else {
            Ok(())
        }
    };
    if is_url(other) {
        let asked = RemoteArchive::at(other, &super::network(network)?)?;
        refuse_same(asked.service())?;
        let says = |names: &Names| asked.state(names);
        return Ok(archive.check_with::<TransferError>(asked.service(), says)?);
    }
    let other = StoreAccess::at(Path::new(other))?.read()?;
    let service = &other.facts().service;
    refuse_same(service)?;
    let says = |names: &Names| {
        let item = other.store().find_by_names(names)?;
        Ok(item.map(|item| item.state))
    };
    Ok(archive.check_with::<ArchiveError>(service, says)?)
}
