//! A line of the log for each change that is refused, at the level `debug`.

use std::fmt;

use super::Inner;
use super::names::NameIn;
use crate::fuse::inode::NodeId;
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;

impl Inner {
    /// Makes a change of a name, and logs if it is refused.
    pub(super) fn change<T>(
        &self,
        request: fmt::Arguments<'_>,
        caller: &Caller,
        (parent, name): NameIn<'_>,
        act: impl FnOnce() -> ErrnoResult<T>,
    ) -> ErrnoResult<T> {
        let changed = act();
        if let Err(errno) = &changed
            && log::log_enabled!(log::Level::Debug)
        {
            let (place, uid) = (self.namespace.place(NodeId(parent.0)), caller.uid);
            let error = std::io::Error::from(*errno);
            log::debug!("refused: {request} {name:?} in {place}, user {uid}: {error}");
        }
        changed
    }
}
