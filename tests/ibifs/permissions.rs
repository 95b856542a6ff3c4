//! Who may do what: inside items as on the native filesystem, above them as the manual says, and
//! no user gains anything by a set-id bit, a capability, a device or a user namespace.

mod above;
mod powers;
mod random;
