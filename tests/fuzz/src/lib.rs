//! What must hold of any input: one function for each target.
//!
//! The fuzzer calls these bodies with inputs of its making; the tests replay the committed corpus
//! through the same ones. A body panics where a promise is broken; that nothing else panics, hangs
//! or takes memory without bound is what the fuzzer watches.

pub mod answers;
pub mod databases;
pub mod descriptions;
pub mod entries;
pub mod facts;
pub mod federations;
pub mod harvests;
pub mod headers;
pub mod identifiers;
pub mod imports;
pub mod learned;
pub mod links;
pub mod manifests;
pub mod metadata;
pub mod modifiers;
pub mod names;
pub mod options;
pub mod packed;
pub mod peers;
pub mod previews;
pub mod propfinds;
pub mod queries;
pub mod questions;
pub mod searches;
pub mod services;
pub mod sidecars;

use std::fmt::Display;

/// A body, as the targets and the replay call it.
pub type Check = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Check); 26] = [
    ("answers", answers::check),
    ("databases", databases::check),
    ("descriptions", descriptions::check),
    ("entries", entries::check),
    ("facts", facts::check),
    ("federations", federations::check),
    ("harvests", harvests::check),
    ("headers", headers::check),
    ("identifiers", identifiers::check),
    ("imports", imports::check),
    ("learned", learned::check),
    ("links", links::check),
    ("manifests", manifests::check),
    ("metadata", metadata::check),
    ("modifiers", modifiers::check),
    ("names", names::check),
    ("options", options::check),
    ("packed", packed::check),
    ("peers", peers::check),
    ("previews", previews::check),
    ("propfinds", propfinds::check),
    ("queries", queries::check),
    ("questions", questions::check),
    ("searches", searches::check),
    ("services", services::check),
    ("sidecars", sidecars::check),
];

/// An error becomes a sentence that can be shown on a terminal: no control characters, and short
/// however long the input is.
fn sentence(error: &(dyn std::error::Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        plain(error);
        next = error.source();
    }
}

fn plain(shown: &(impl Display + ?Sized)) {
    let text = shown.to_string();
    assert!(!text.is_empty(), "an error says nothing");
    assert!(
        !text.chars().any(char::is_control),
        "control characters in {text:?}"
    );
    assert!(text.len() < 8192, "{} bytes of error", text.len());
}

/// The input as text; most of what is read here is text or nothing.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// The input up to its first line end, and the rest.
fn two_lines(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}
