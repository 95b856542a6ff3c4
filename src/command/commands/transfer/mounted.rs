//! A mount of which this user may not enter the store, as the destination of copies: its daemon says what it has of an item,
//! and the item is written through the mount, with the rights of this user.

use super::super::daemon;
use crate::archive::ArchiveError;
use crate::archive::transfer::{
    ByteProgress, CompareWhen, Destination, Local, Moved, RemoteStatus, Skip, TransferError,
};
use crate::command::exit::Failure;
use crate::formats::item::Names;
use crate::fuse::mount::Mounted;
use ibi::message;
use ibi::message::Localize;
use rustix::io::Errno;

/// The mount, with what its daemon has said of the item that was asked for last.
pub(super) struct AskedMount<'a> {
    mounted: &'a Mounted,
    known: Local,
}

impl AskedMount<'_> {
    pub(super) fn at(mounted: &Mounted) -> Result<AskedMount<'_>, Failure> {
        let known = known(mounted, None)?;
        Ok(AskedMount { mounted, known })
    }
}

/// Asks the daemon of a mount about an item.
pub(super) fn known(mounted: &Mounted, names: Option<&Names>) -> Result<Local, TransferError> {
    let names = names.map(Names::preferred);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let archive = daemon::about(mounted, &names);
    let archive = archive.map_err(|failure| TransferError::System(failure.message))?;
    Ok(Local::in_mount(archive, &mounted.mount_point))
}

impl Destination for AskedMount<'_> {
    fn service(&self) -> &Names {
        self.known.service()
    }

    fn status(&mut self, names: &Names) -> Result<RemoteStatus, TransferError> {
        self.known = known(self.mounted, Some(names))?;
        self.known.state_of(names)
    }

    fn receive(
        &mut self,
        source: &Local,
        names: &Names,
        original_at: Option<&Names>,
        comparison: CompareWhen,
        progress: &mut ByteProgress<'_>,
    ) -> Result<Moved, TransferError> {
        let received = self
            .known
            .receive(source, names, original_at, comparison, progress);
        received.map_err(of_this_user)
    }

    fn expect(&mut self, _: &Names, _: &Names) -> Result<String, TransferError> {
        Err(not_owner())
    }

    fn take(&mut self, _: &Names, _: &Names, _: &str) -> Result<(), TransferError> {
        Err(not_owner())
    }

    fn cancel(&mut self, _: &Names, _: &Names) -> Result<(), TransferError> {
        Err(not_owner())
    }
}

fn not_owner() -> TransferError {
    TransferError::System(message!("only the owner of the store transfers originals"))
}

/// Turns what this user may not do into a skipped item: of another one that may be different.
pub(super) fn of_this_user(error: TransferError) -> TransferError {
    match error {
        TransferError::Archive(ArchiveError::Tree(cause))
            if matches!(cause.errno(), Errno::ACCESS | Errno::PERM) =>
        {
            Skip::NotTaken(cause.message()).into()
        }
        other => other,
    }
}
