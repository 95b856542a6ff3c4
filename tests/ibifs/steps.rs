//! Every durable step of every change: the daemon is killed before it, or it fails, and what was
//! promised holds.
//!
//! A change is made again and again from the same store, stopped at one durable step after the other, until it
//! ends without having come to the step. Usually some of the steps are tried, with `IBIFS_TEST_STEPS=1` all.

mod claim;
mod command;
mod copies;
mod damage;
mod decisions;
mod deposit;
mod disk;
mod drill;
mod errors;
mod fixture;
mod handover;
mod history;
mod kill;
mod network;
mod operations;
mod repair;
mod supervisor;

use crate::support::switch;

/// The distance from one step that is tried to the next: 1 in the long form, else twice this number.
fn stride(half: usize) -> usize {
    switch("IBIFS_TEST_STEPS").map_or(2 * half, |_| 1)
}
