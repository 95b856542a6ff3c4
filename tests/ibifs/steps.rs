//! Every durable step of every change: the daemon is killed before it, or it fails, and what was
//! promised holds.
//!
//! A change is made again and again from the same store, stopped at its first, second, third durable
//! step and so on, until it ends without having come to the step.

mod claim;
mod copies;
mod damage;
mod deposit;
mod disk;
mod errors;
mod fixture;
mod handover;
mod kill;
mod network;
mod operations;
mod supervisor;
