//! Operations inside an item, on the native filesystem beneath, by descriptor.
//!
//! No operation takes a path: a directory is a descriptor, a name one component in it, and a file that is
//! open with O_PATH is reached through `/proc/self/fd`. The kernel has checked the caller's permissions
//! (`default_permissions`); what is made is made with the caller's credentials. The module knows neither
//! items nor identifiers.

mod attributes;
mod content;
mod listing;
mod names;
mod xattrs;

use rustix::io::Errno;

pub use attributes::{
    AttributeChange, CAPABILITY, NewTime, attributes, change, check_access, check_loss,
    check_removal, statistics,
};
pub use content::{
    Where, allocate, control, copied_at_once, copy_range, read, seek, sync, write_as,
};
pub use listing::{ListedPart, list, list_part};
pub use names::{
    New, Removal, content_flags, create, find, find_open, link, make, open, open_directory,
    open_or_append, read_link, remove, rename, rename_for,
};
pub use xattrs::{get_attribute, list_attributes, remove_attribute, set_attribute};

/// The result of an operation on the native filesystem.
pub type ErrnoResult<T> = Result<T, Errno>;

#[cfg(test)]
mod tests;
