//! The record of a package for preservation systems, in PREMIS: its files, and what was done to the item.

use std::collections::HashMap;

use super::PackageError;
use super::naming::{PAYLOAD, payload_path};
use super::reading::{StagedFiles, digests};
use super::writing::PackageWriter;
use crate::archive::Archive;
use crate::archive::scrub::recorded_formats;
use crate::archive::store::Item;
use crate::archive::tree::{Place, Tree};
use crate::formats::fixity::Digest;
use crate::formats::premis::{self, PremisEvent, PremisFile};
use crate::formats::pronom::Formats;

/// The record, unless it would be very long. `packed`: the day on which the package is made.
pub(super) fn text(
    tree: &Tree,
    item: &Item,
    staged: &StagedFiles,
    events: &[PremisEvent],
    packed: Option<&str>,
) -> Option<String> {
    let is_payload = |path: &str| path.starts_with(&format!("{PAYLOAD}/"));
    let payload = staged.files.iter().filter(|(path, _)| is_payload(path));
    let formats: HashMap<(String, Digest), Formats> =
        recorded_formats(tree, Place::of(&item.names).as_str())
            .unwrap_or_default()
            .into_iter()
            .map(|(path, formats)| ((payload_path(&path), formats.digest), formats))
            .collect();
    let files = payload.map(|(path, digests)| PremisFile {
        path,
        length: digests.length,
        sha512: &digests.sha512,
        formats: formats.get(&(path.clone(), digests.sha256)),
    });
    let is_short = files.clone().count() <= premis::MOST_FILES;
    is_short.then(|| premis::document(&item.names, files, events, packed))
}

/// Adds the record to what was copied of an item with a history. It names no day, so that a package differs from the last
/// one only if the item does.
pub(super) fn add(
    archive: &Archive,
    item: &Item,
    staged: &mut StagedFiles,
    writer: &mut PackageWriter<'_>,
) -> Result<(), PackageError> {
    let events = archive.premis_events(&item.names)?;
    if events.is_empty() {
        return Ok(());
    }
    if let Some(text) = text(archive.tree(), item, staged, &events, None) {
        writer.whole(premis::PREMIS, text.as_bytes())?;
        staged.add(premis::PREMIS.to_owned(), digests(text.as_bytes()), true);
    }
    Ok(())
}
