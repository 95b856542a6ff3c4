//! The one test binary: its modules are promises of the manual, shown on real mounts with the real
//! tools.

#![allow(
    clippy::disallowed_methods,
    reason = "a test works in a directory of its own"
)]

mod answers;
mod attackers;
mod backup;
mod bags;
mod beneath;
mod beside;
mod claim;
mod clock;
mod cluster;
mod collections;
mod command_line;
mod completion;
mod concurrency;
mod content;
mod corpus;
mod damage;
mod deposit;
mod descriptions;
mod documents;
mod events;
mod export;
mod find;
mod forms;
mod fsck;
mod help;
mod hostile;
mod http;
mod import_mint;
mod index;
mod inside;
mod language;
mod latin;
mod layout;
mod messages;
mod metadata;
mod metadata_texts;
mod mint;
mod mint_count;
mod mint_from;
mod model;
mod modifiers;
mod mounting;
mod objects;
mod ordinary_user;
mod package;
mod packed;
mod permissions;
mod posix;
mod postgres;
mod power;
mod progress;
mod readme;
mod refusals;
mod refused_sidecars;
mod scale;
mod scrub;
mod services;
mod session;
mod soak;
mod steps;
mod support;
mod texts;
mod tools;
mod transfer;
mod trees;
mod watch;
mod work;
mod work_levels;
mod world;
