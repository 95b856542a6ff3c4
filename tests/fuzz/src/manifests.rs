//! Manifests of bags and of scrubs, and inventories of OCFL objects.

use ibifs::formats::bag::{DECLARED, Declaration, tags};
use ibifs::formats::fixity::{manifest_text, notes_text, parse_manifest, parse_notes};
use ibifs::outside::archive::OcflInventory;

use super::plain;

/// What is read is written and read back as the same.
pub fn check(data: &[u8]) {
    let (manifest, bad) = parse_manifest(data);
    assert_eq!(
        parse_manifest(&manifest_text(&manifest)),
        (manifest.clone(), Vec::new())
    );
    assert!(bad.is_sorted());
    let declared = Declaration::parse(DECLARED.as_bytes()).expect("our own");
    for declared in Declaration::parse(data).into_iter().chain([declared]) {
        let entries = declared.manifest(data, 64).unwrap_or_default();
        let paths = entries.iter().map(|entry| &entry.paths);
        let fetched = declared.fetched(data).unwrap_or_default();
        for path in paths.chain(&fetched).flatten() {
            assert!(
                !path.starts_with(b"/")
                    && !path.split(|byte| *byte == b'/').any(|name| name == b"..")
            );
        }
    }
    let _ = tags(data);
    let notes = parse_notes(data);
    assert_eq!(parse_notes(&notes_text(&notes)), notes);
    match OcflInventory::parse(data) {
        Ok(inventory) => object(inventory),
        Err(error) => plain(&error),
    }
}

/// An inventory reads back, also with a version more.
fn object(mut inventory: OcflInventory) {
    let read = |inventory: &OcflInventory| {
        let again = OcflInventory::parse(&inventory.to_bytes()).expect("its own text");
        assert_eq!((&again.id, again.head), (&inventory.id, inventory.head));
        assert_eq!(again.manifest, inventory.manifest);
        assert_eq!(again.state, inventory.state);
    };
    read(&inventory);
    let state = inventory.manifest.clone();
    inventory.add(state, "2026-11-22T00:00:00Z", ("a.org", "http://a.org"));
    read(&inventory);
}
