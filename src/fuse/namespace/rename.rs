//! rename(2) and renameat2(2): which renames there are, and what each makes stale.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{FileType, RenameFlags};
use rustix::io::Errno;

use super::Namespace;
use super::invalidation::{Context, Losing, Stale};
use super::staged_directories::is_staged_directory;
use crate::archive::{ContentChange, WriteIntent};
use crate::fuse::inode::{Node, View};
use crate::fuse::inside::{self, ErrnoResult};

/// A side of a rename: whether its directory is in an item, and in which tree.
#[derive(Clone, Copy, Debug)]
struct Side {
    is_in_item: bool,
    view: View,
}

impl Side {
    fn of(parent: &Node) -> Side {
        Side {
            is_in_item: parent.is_in_item(),
            view: parent.view,
        }
    }
}

/// A kind of rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// A rename on the native filesystem.
    Native,
    /// A staged name or a metadata text beside items.
    Beside,
    /// Both names lead to one symbolic link, seen in two trees, or are exchanged: nothing to do. The kernel, to
    /// which they are two nodes, moves one into the place of the other, unless they are exchanged.
    Same {
        /// Whether the kernel considers the node of the new name removed.
        is_replaced: bool,
    },
    /// Refused.
    Refused(Errno),
}

/// Decides what a rename is; `same` says what both names lead to, if it is one file.
fn plan(from: Side, to: Side, flags: u32, same: impl FnOnce() -> Option<FileType>) -> Plan {
    let is_exchange = flags & RenameFlags::EXCHANGE.bits() != 0;
    match (from.is_in_item, to.is_in_item) {
        (false, false) => Plan::Beside,
        // An item or a level keeps its name. A file of an item may be copied out.
        (false, true) => Plan::Refused(Errno::PERM),
        (true, false) => Plan::Refused(Errno::XDEV),
        (true, true) if from.view == to.view => Plan::Native,
        (true, true) => match same() {
            // After a success the kernel would take the node of the new name for removed, and processes whose
            // working directory it is would find nothing in it.
            Some(FileType::Directory) if !is_exchange => Plan::Refused(Errno::BUSY),
            Some(_) => Plan::Same {
                is_replaced: !is_exchange,
            },
            // A directory or link is another node in each tree. The kernel locks both directories during a
            // rename, so that neither name can be invalidated before the answer. Tools then copy.
            None => Plan::Refused(Errno::XDEV),
        },
    }
}

impl Namespace {
    /// Renames, with the flags of renameat2(2).
    pub fn rename(
        &self,
        by: &Context<'_>,
        (parent, name): (&Node, &OsStr),
        (new_parent, new_name): (&Node, &OsStr),
        flags: u32,
    ) -> ErrnoResult<()> {
        let same = || self.same_file((parent, name), (new_parent, new_name));
        match plan(Side::of(parent), Side::of(new_parent), flags, same) {
            Plan::Native => {
                self.rename_inside(by, (parent, name), (new_parent, new_name), flags)?;
                self.note_written(new_parent);
                Ok(())
            }
            Plan::Beside if is_staged_directory(name) => {
                if flags & !RenameFlags::NOREPLACE.bits() != 0 {
                    return Err(Errno::INVAL);
                }
                self.place_staged_directory(by, (parent, name), (new_parent, new_name))
            }
            Plan::Beside => {
                let caller = by.caller;
                let renamed = self.rename_beside(caller, parent, name, new_parent, new_name, flags);
                self.settle(by, renamed)
            }
            Plan::Same { is_replaced } => {
                if is_replaced {
                    self.renamed_to_itself(new_parent, new_name);
                }
                by.cache.invalidate_after_reply(vec![
                    Stale::Name(new_parent.id, new_name.to_owned()),
                    Stale::Name(parent.id, name.to_owned()),
                ]);
                Ok(())
            }
            Plan::Refused(errno) => Err(errno),
        }
    }

    fn rename_inside(
        &self,
        by: &Context<'_>,
        (parent, name): (&Node, &OsStr),
        (new_parent, new_name): (&Node, &OsStr),
        flags: u32,
    ) -> ErrnoResult<()> {
        self.check_candidates(by, (parent, name), (new_parent, new_name), flags)?;
        let (from, to) = (parent.file()?, new_parent.file()?);
        let content = [
            self.change_unsealed(by.caller, parent, Some(name))?,
            self.change_unsealed(by.caller, new_parent, Some(new_name))?,
        ];
        let changes = [
            self.changing(parent, name)?,
            self.changing(new_parent, new_name)?,
        ];
        if flags & RenameFlags::NOREPLACE.bits() != 0 {
            self.make_room(by.caller, new_parent, new_name)?;
        }
        let Losing { mut stale, sidecar } = self.losing(new_parent, new_name);
        inside::rename_for(from.as_fd(), name, to.as_fd(), new_name, flags, by.caller)?;
        content.iter().flatten().for_each(ContentChange::made);
        self.note_moved(parent, (new_parent, new_name));
        let both = [(new_parent, new_name), (parent, name)];
        let given = if flags & RenameFlags::EXCHANGE.bits() != 0 {
            self.note_moved(new_parent, (parent, name));
            &both[..]
        } else {
            &both[..1]
        };
        if let Some(node) = sidecar {
            self.note_speaker(&node)?;
        }
        self.note_deposit(by.caller, new_parent);
        stale.extend(self.stale_names(parent, Some(name)));
        stale.extend(self.stale_names(new_parent, Some(new_name)));
        if parent.id != new_parent.id {
            let links = given
                .iter()
                .flat_map(|(at, name)| self.stale_links(at, name));
            stale.extend(links);
        }
        let moved = given.iter().flat_map(|(at, name)| self.moved(at, name));
        let mut moved: Vec<Stale> = moved.collect();
        if parent.id == new_parent.id {
            stale.extend(moved);
            by.cache.invalidate(stale);
        } else {
            by.cache.invalidate(stale);
            let links = given
                .iter()
                .filter_map(|(at, name)| self.moved_link(at, name));
            moved.extend(links);
            // Before, the kernel moves nothing from one directory to another.
            by.cache.invalidate_after_reply(moved);
        }
        for (directory, name) in [(parent, name), (new_parent, new_name)] {
            self.name_made(by, directory, name)?;
        }
        self.settle(by, self.name_gone(by.caller, parent, name))?;
        changes.into_iter().flatten().for_each(WriteIntent::done);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_sides_has_its_plan() {
        let side = |is_in_item, view| Side { is_in_item, view };
        let (item, level) = (side(true, View::Rep), side(false, View::Rep));
        let (ibip, mint) = (side(true, View::Ibip), side(true, View::Mint));
        let exchange = RenameFlags::EXCHANGE.bits();
        let (directory, link) = (Some(FileType::Directory), Some(FileType::Symlink));
        let nothing = |is_replaced| Plan::Same { is_replaced };
        for (from, to, flags, same, planned) in [
            (item, item, 0, None, Plan::Native),
            (item, item, 0, directory, Plan::Native),
            (mint, mint, exchange, None, Plan::Native),
            (level, level, 0, None, Plan::Beside),
            (level, item, 0, None, Plan::Refused(Errno::PERM)),
            (item, level, 0, None, Plan::Refused(Errno::XDEV)),
            (item, ibip, 0, None, Plan::Refused(Errno::XDEV)),
            (mint, item, exchange, None, Plan::Refused(Errno::XDEV)),
            (item, ibip, 0, link, nothing(true)),
            (ibip, mint, exchange, link, nothing(false)),
            (item, ibip, 0, directory, Plan::Refused(Errno::BUSY)),
            (ibip, mint, exchange, directory, nothing(false)),
        ] {
            let found = plan(from, to, flags, || same);
            assert_eq!(found, planned, "{from:?} {to:?} {flags}");
        }
    }
}
