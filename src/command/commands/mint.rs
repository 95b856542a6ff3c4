//! `ibifs mint`: through the mount if the store is mounted, by the mkdir that a shell would use.

mod from;
mod inherited;
mod several;

use std::path::Path;

use super::access::{self, Named, StoreAccess};
use super::relations::{check_in_mount, relate_through};
use super::{language, print, say};
use crate::archive::tree::Owner;
use crate::archive::{Archive, Process, Relative, attribute_of};
use crate::command::cli::Mint;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::item::{Names, State};
use crate::os::directory::Directory;
use from::{Deposit, Files};
use ibi::{Ibi, message};
use inherited::Inherited;

/// The `doc/` of a newly minted item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doc {
    Made,
    /// The directory that is deposited in the item may have another one.
    Missing,
}

pub(super) fn mint(options: &Mint) -> Result<Exit, Failure> {
    let access = StoreAccess::named_to_change(options.place.as_deref())?;
    if let Some(count) = options.count {
        return several::mint(&access, count, options);
    }
    let deposit = Deposit::of(options, &access)?;
    let language = language(options.lang.as_deref())?;
    let item = |text: &str| {
        let named = access::find(text, Some(access.place()))?;
        Ok::<Names, Failure>(named.names)
    };
    let relative = match (
        &options.edition_of,
        &options.translation_of,
        &options.metadata_of,
        language,
    ) {
        (Some(of), ..) => Some(Relative::Edition(item(of)?)),
        (_, Some(of), _, Some(language)) => Some(Relative::Translation(item(of)?, language)),
        (_, _, Some(of), _) => Some(Relative::Metadata(item(of)?)),
        _ => None,
    };
    let inherited = match &relative {
        Some(Relative::Edition(of)) if options.with_metadata => Some(Inherited::of(&access, of)?),
        _ => None,
    };
    let files = match &relative {
        Some(Relative::Edition(of)) if options.with_files => Some(Files::of(&access, of)?),
        _ => None,
    };
    let names = match &deposit {
        None => {
            let doc = if files.is_some() {
                Doc::Missing
            } else {
                Doc::Made
            };
            mint_through(&access, relative.as_ref(), doc, options.draft)?
        }
        Some(deposit) => deposit
            .make(|| mint_through(&access, relative.as_ref(), Doc::Missing, options.draft))?,
    };
    if let Some(files) = files {
        files.copy_to(&names)?;
    }
    if let Some(inherited) = inherited {
        let mint_metadata = || {
            let relative = Relative::Metadata(names.clone());
            mint_through(&access, Some(&relative), Doc::Made, options.draft)
        };
        inherited.copy_to(&access, &names, mint_metadata)?;
    }
    say(&if options.output.json {
        json::pretty(&json::item_with(&names, State::Original, None).into())
    } else {
        print::names_text(&names)
    })?;
    Ok(Exit::Done)
}

/// Mints an item, and moves a directory into it, which lies in an open one.
pub(super) fn with_directory(
    access: &StoreAccess,
    above: &Directory,
    name: &str,
) -> Result<Names, Failure> {
    let deposit = Deposit::moving(access, above, name)?;
    deposit.make(|| mint_through(access, None, Doc::Missing, false))
}

/// Mints through the mount if the store is mounted, by the mkdir that a shell would use.
#[expect(clippy::disallowed_methods, reason = "the daemon makes an item of it")]
fn mint_through(
    access: &StoreAccess,
    relative: Option<&Relative>,
    doc: Doc,
    is_draft: bool,
) -> Result<Names, Failure> {
    let Some(mount_point) = &access.mount_point else {
        return access.change(|archive| {
            let owner = owner_in_store(archive, is_draft);
            Ok(archive.depositor(&Process).mint(relative, owner)?.names)
        });
    };
    let label = format!("mint-{}", std::process::id());
    let path = match relative {
        None => mount_point.join(".mint").join(&label),
        Some(relative) => {
            if access.is_shut() {
                check_in_mount(access, relative)?;
            } else {
                access
                    .read()?
                    .depositor(&Process)
                    .check_relative(relative)?;
            }
            let tail = match relative {
                Relative::Edition(_) => "!".to_owned(),
                Relative::Translation(_, language) => format!("+({language})"),
                Relative::Metadata(_) => ":".to_owned(),
            };
            mount_point.join(format!("{}{tail}", relative.source().preferred()))
        }
    };
    let mode = rustix::fs::Mode::from_raw_mode(0o777);
    let others = rustix::fs::Mode::RWXO;
    let made = if is_draft { mode - others } else { mode };
    match (rustix::fs::mkdir(access::bytes(&path), made), relative) {
        (Ok(()), _) => {}
        // The last edition of an item without a next one is the item itself: the name exists.
        (Err(rustix::io::Errno::EXIST), Some(relative)) => {
            return mint_and_relate(access, relative, doc, is_draft);
        }
        (Err(error), _) => {
            if error == rustix::io::Errno::AGAIN && !access.is_shut() {
                access.read()?.depositor(&Process).check_wait()?;
            }
            if error == rustix::io::Errno::ACCESS {
                return Err(Failure::new(
                    Exit::Failed,
                    message!(
                        "minting: permission denied; users who may write to '{mount_point}' may mint there: ask its owner for that permission",
                        mount_point = mount_point.display()
                    ),
                ));
            }
            return Err(access::refused(&message!("minting"), error));
        }
    }
    let names = minted_names(&path)?;
    // `doc/` is where a person puts the files of the new item.
    if doc == Doc::Made
        && let Err(error) = rustix::fs::mkdir(access::bytes(&path.join("doc")), mode)
        && error != rustix::io::Errno::EXIST
    {
        return Err(access::refused(
            &message!("making doc/ in what was minted"),
            error,
        ));
    }
    if relative.is_none() {
        let label = mount_point.join(".mint").join(format!(".{label}"));
        let _ = rustix::fs::unlink(access::bytes(&label));
    }
    Ok(names)
}

/// The owner of what is minted in a store that is not mounted: as ever, or this process of a draft.
fn owner_in_store(archive: &Archive, is_draft: bool) -> Option<Owner> {
    let owner = Owner {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mode: 0o755,
        doc_mode: 0o755,
    };
    (is_draft || archive.facts().drafts).then(|| owner.of_draft())
}

/// Mints first and then relates, for a relation that mkdir cannot express.
fn mint_and_relate(
    access: &StoreAccess,
    relative: &Relative,
    doc: Doc,
    is_draft: bool,
) -> Result<Names, Failure> {
    let names = mint_through(access, None, doc, is_draft)?;
    let named = Named::new(access.clone(), relative.source().clone());
    relate_through(&named, &relative.kind(), &names)?;
    Ok(names)
}

fn minted_names(path: &Path) -> Result<Names, Failure> {
    let read = |attribute: &str| {
        let text = attribute_of(path, attribute)?;
        Ibi::parse(&text).ok()
    };
    Names::collect(
        [read("user.ibi.rep"), read("user.ibi.ibip")]
            .into_iter()
            .flatten(),
    )
    .ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            message!("the mount does not report what it has minted"),
        )
    })
}
