//! The part of the kernel's cache above the items that a change makes stale.

use crate::archive::Bringing;
use crate::fuse::inode::NodeId;
use crate::fuse::inside::AttributeChange;
use crate::fuse::namespace::{Closing, Stale};

use super::fixture::{Fixture, ibip, rep};

const YEAR: &str = "example.com/src/2021";

/// The attributes that were invalidated since the last call.
fn invalidated(fixture: &Fixture) -> Vec<NodeId> {
    fixture.namespace.invalidate_items(&fixture.cache);
    let stale = std::mem::take(&mut *fixture.cache.before_reply.lock());
    let attributes = stale.into_iter().filter_map(|stale| match stale {
        Stale::Attributes(node) => Some(node),
        _ => None,
    });
    attributes.collect()
}

#[test]
fn an_added_item_makes_stale_only_the_levels_that_have_changed() {
    let fixture = Fixture::new();
    for (parent, name) in [
        ("", "example.com"),
        ("example.com", "src"),
        ("example.com/src", "2021"),
        (YEAR, "01.01.00.00.07"),
    ] {
        fixture.mkdir(parent, name).expect(name);
    }
    invalidated(&fixture);

    // The kernel itself drops the attributes of the year.
    fixture.mkdir(YEAR, "01.01.00.01.07").expect("an item");
    assert_eq!(invalidated(&fixture), []);

    // The sidecar changes the item's own directory only.
    let path = format!("{YEAR}/01.01.00.01.07");
    let name = path.parse().expect("a rep");
    let item = fixture.item_at(&name).expect("an item");
    fixture.write(&item, ".ibi", &format!("ibi {{rep {path}}}\n"));
    let sidecar = fixture.node(&format!("{path}/.ibi"));
    let by = fixture.context();
    let how = Closing {
        bringing: Bringing::Other,
        is_last: false,
    };
    let closed = fixture
        .namespace
        .file_closed(&by, &sidecar, &fixture.caller, how);
    assert_eq!(closed, Ok(None));
    let accepted = fixture.store().sidecar(item.id).expect("the index");
    assert!(accepted.is_some());
    assert_eq!(invalidated(&fixture), []);

    // A new year changes the level above it.
    let above = fixture.node("example.com/src").id;
    fixture.mkdir("example.com/src", "2022").expect("a year");
    let item = fixture.mkdir("example.com/src/2022", "01.01.00.00.07");
    item.expect("an item");
    assert_eq!(invalidated(&fixture), [above]);
}

/// The kernel would cache attributes from before the change, since nothing was invalidated.
#[test]
fn an_entry_has_the_attributes_after_a_change_that_did_not_find_its_node() {
    let fixture = Fixture::new();
    let item = fixture.mint(None);
    let directory = fixture.node(&rep(&item));
    let entry = fixture.namespace.fresh(|| {
        // Its node is in the table from here on only: the change does not know it.
        let mut before = fixture.find(&ibip(&item))?;
        fixture.namespace.nodes.forget(before.node.id, 1);
        let change = AttributeChange {
            mode: Some(0o700),
            ..AttributeChange::default()
        };
        let by = fixture.context();
        let namespace = &fixture.namespace;
        namespace.set_attributes(&by, &directory, None, &change, || false)?;
        before.node = fixture.node(&ibip(&item));
        Ok(before)
    });
    let entry = entry.expect("an entry");
    assert_eq!(fixture.take_stale(), []);
    assert_eq!(entry.attr.permissions & 0o777, 0o700);
}
