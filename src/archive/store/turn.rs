//! The turn to change tree and index together, for hosts that share a store. It is a locked row of the server: hosts get
//! it in the order in which they ask, and that of a host that dies is free as soon as the server notices.

use parking_lot::MutexGuard;

use super::{Store, StoreError};
use crate::sql::engine::Postgres;

/// The turn of this process, until it is dropped.
#[derive(Debug)]
pub struct Turn<'store> {
    server: MutexGuard<'store, Option<Postgres>>,
}

impl Store {
    /// Waits for the turn of this process. The caller has no other thread wait for it meanwhile.
    pub(in crate::archive) fn take_turn(&self) -> Result<Turn<'_>, StoreError> {
        let mut server = self.turn.lock();
        if let Some(url) = &self.url {
            let connected = match server.take() {
                Some(connected) => connected,
                None => Postgres::connect(url, self.lock().timeout())?,
            };
            connected.take_turn()?;
            *server = Some(connected);
        }
        Ok(Turn { server })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(server) = &*self.server
            && let Err(error) = server.end_turn()
        {
            // Another host may have begun a change before this one has ended.
            log::warn!(
                "a change of tree and index took longer than its turn: {}",
                error.cause()
            );
            *self.server = None;
        }
    }
}
