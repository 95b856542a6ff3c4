//! A user who may write the store's own directories, natively, and puts links, FIFOs, devices and
//! other people's files where the daemon and the commands go: nothing outside the store is touched
//! or printed.

mod answers;
mod authors;
mod caches;
mod canary;
mod copying;
mod databases;
mod declaring;
mod deposits;
mod handshakes;
mod imports;
mod inclusions;
mod labels;
mod lists;
mod lock;
mod long_texts;
mod minting;
mod mounts;
mod names;
mod offline;
mod peers;
mod powers;
mod proofs;
mod public;
mod races;
mod registrations;
mod relations;
mod requests;
mod reserve;
pub mod resolver;
mod rollback;
mod shares;
mod showing;
mod shown;
mod threads;
mod two_names;
mod unit;
pub mod waits;
pub mod web;
