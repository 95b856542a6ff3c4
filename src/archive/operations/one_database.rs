//! The one database that has the index of a store. The tree records which it is: a second one, such as a dump that was
//! put into another server, knows neither what the first one gives out nor its processes. An identity in the database
//! would not do, since a dump has it as well.

use ibi::message;
use ibi::message::{Localize, Message};

use super::ArchiveError;
use super::own_files::DATABASE;
use crate::archive::store::{HostState, Store};
use crate::archive::tree::Tree;
use crate::sql::index_url::{IndexUrl, NamedBy};

/// Records the database of a store that is opened for writing.
///
/// # Errors
/// Another database is recorded, and a process writes it, or may do so.
pub(super) fn record(tree: &Tree, index: Option<&IndexUrl>) -> Result<(), ArchiveError> {
    let recorded = tree.read_small(DATABASE)?.and_then(|text| {
        let text = String::from_utf8(text).ok()?;
        IndexUrl::parse(text.trim_end()).ok()
    });
    if recorded.as_ref().map(IndexUrl::place) == index.map(IndexUrl::place) {
        return Ok(());
    }
    if let Some(recorded) = recorded {
        let place = recorded.place().to_owned();
        // Its server was named by an archive.ibi of the same owner.
        let named_by = index.map_or(NamedBy::StoreOfAnother, IndexUrl::origin);
        if let Some(why) = still_written(tree, &recorded.named_by(named_by)) {
            return Err(ArchiveError::OtherDatabase {
                place,
                why,
                record: tree.path().join(DATABASE),
            });
        }
    }
    match index {
        Some(index) => {
            let text = format!("{index}\n");
            tree.write_small(".", DATABASE, text.as_bytes(), None)?;
        }
        None => tree.remove_own(DATABASE)?,
    }
    Ok(())
}

/// Returns who writes a database, or why that is not known.
fn still_written(tree: &Tree, index: &IndexUrl) -> Option<Message> {
    let hosts = Store::open_read_only(tree.root(), Some(index)).and_then(|store| store.hosts());
    match hosts {
        Ok(hosts) => hosts.iter().find(|host| host.is_alive()).map(writer),
        Err(error) => Some(error.message()),
    }
}

fn writer(host: &HostState) -> Message {
    message!(
        "process {pid} of '{host}' writes it",
        pid = host.pid,
        host = host.host.clone()
    )
}
