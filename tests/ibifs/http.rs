//! The HTTP door, `ibifs serve` and `ibifs resolver`, asked with the programs that people ask with.

mod access_log;
mod content;
mod dav;
mod federation;
mod https;
mod interoperation;
mod kept;
mod limits;
mod looks;
mod machines;
mod metrics;
mod oai;
mod pages;
mod pictures;
mod preview;
mod registration;
mod resolver;
pub mod served;
mod service;
pub mod stub;
mod threads;
mod transfer;
mod urls;
mod zip;
