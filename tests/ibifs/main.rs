//! The one test binary: its modules are promises of the manual, shown on real mounts with the real
//! tools.

mod clock;
mod command_line;
mod concurrency;
mod damage;
mod deposit;
mod documents;
mod fsck;
mod house;
mod index;
mod inside;
mod metadata;
mod mint;
mod modifiers;
mod ordinary_user;
mod posix;
mod power;
mod readme;
mod refusals;
mod scale;
mod scrub;
mod session;
mod soak;
mod support;
mod texts;
mod trees;
