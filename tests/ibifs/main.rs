//! The one test binary: its modules are promises of the manual, shown on real mounts with the real
//! tools.

mod documents;
mod house;
mod metadata;
mod mint;
mod readme;
mod support;
mod texts;
