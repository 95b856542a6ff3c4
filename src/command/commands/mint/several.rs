//! `ibifs mint --count`: several items, whose dates and records are written together.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::super::access::{self, StoreAccess};
use super::super::{print, say};
use super::{Doc, mint_through, owner_in_store};
use crate::archive::{ArchiveError, Process};
use crate::command::cli::Mint;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::item::{Names, State};
use crate::formats::mint_request::{COMMAND, MOST, parse_answer, question};
use crate::os::directory::Directory;
use crate::os::opening;
use ibi::message;

/// The items that are minted so far.
struct Minted {
    all: Vec<Names>,
    count: usize,
    json: bool,
}

impl Minted {
    /// The number of those that are asked for next; None if all are there.
    fn next(&self) -> Option<usize> {
        let left = self.count.saturating_sub(self.all.len());
        (left > 0).then_some(left.min(MOST))
    }

    /// Prints names as soon as their items exist, so that the output tells what there is when this process is killed.
    fn add(&mut self, names: Vec<Names>) -> Result<(), Failure> {
        let text: String = names.iter().map(print::names_text).collect();
        self.all.extend(names);
        if self.json { Ok(()) } else { say(&text) }
    }
}

pub(super) fn mint(access: &StoreAccess, count: usize, options: &Mint) -> Result<Exit, Failure> {
    let json = options.output.json;
    let mut minted = Minted {
        all: Vec::new(),
        count,
        json,
    };
    let done = if access.mount_point.is_some() {
        in_mount(access, &mut minted, options.draft)
    } else {
        in_store(access, &mut minted, options.draft)
    };
    if json && (done.is_ok() || !minted.all.is_empty()) {
        let item = |names: &Names| json::item_with(names, State::Original, None);
        say(&json::pretty(&minted.all.iter().map(item).collect()))?;
    }
    done.map(|()| Exit::Done).map_err(|failure| {
        let error = failure.message;
        let made = minted.all.len();
        let message = message!(
            "{made} of {count} items were minted: {error}",
            made,
            count,
            error
        );
        Failure::new(failure.exit, message)
    })
}

fn in_store(access: &StoreAccess, minted: &mut Minted, is_draft: bool) -> Result<(), Failure> {
    access.change(|archive| {
        let depositor = archive.depositor(&Process);
        let owner = owner_in_store(archive, is_draft);
        while let Some(count) = minted.next() {
            let items = depositor.mint_some(count, owner)?;
            if let Err(failure) = minted.add(items.into_iter().map(|it| it.names).collect()) {
                return Ok::<_, ArchiveError>(Err(failure));
            }
        }
        Ok(Ok(()))
    })?
}

/// The first item is minted by mkdir(2), and those after it by a request on its directory. Where the daemon knows no such
/// request, or not the item any more, another one is minted by mkdir(2).
fn in_mount(access: &StoreAccess, minted: &mut Minted, is_draft: bool) -> Result<(), Failure> {
    let mut first: Option<Directory> = None;
    while let Some(count) = minted.next() {
        match first.as_ref().map(|first| beside(first, count)) {
            Some(Ok(names)) => minted.add(names)?,
            Some(Err(errno)) if !matches!(errno, Errno::NOTTY | Errno::PERM) => {
                return Err(access::refused(&message!("minting"), errno));
            }
            Some(Err(_)) | None => {
                let names = mint_through(access, None, Doc::Made, is_draft)?;
                let path = access.path_in_mount(&names);
                let found = path.and_then(|path| opening::found(&path, OFlags::DIRECTORY).ok());
                first = found.and_then(|found| Directory::reopened(found).ok());
                minted.add(vec![names])?;
            }
        }
    }
    Ok(())
}

fn beside(first: &Directory, count: usize) -> Result<Vec<Names>, Errno> {
    let mut bytes = question(count);
    first.control(COMMAND, &mut bytes)?;
    parse_answer(&bytes).ok_or(Errno::IO)
}
