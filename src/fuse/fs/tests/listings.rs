//! Listings, from any offset on.

use std::ffi::OsStr;

use fuser::FileHandle;

use super::fixture::Adapter;
use crate::fuse::inode::NodeId;

/// Lists from an offset on, until `most` names are listed: the names, each with the offset after it.
fn list(adapter: &Adapter, handle: FileHandle, offset: u64, most: usize) -> Vec<(String, u64)> {
    let mut listed = Vec::new();
    let done = adapter.list(handle, offset, |_, line| {
        if listed.len() == most {
            return true;
        }
        listed.push((line.name.to_string_lossy().into_owned(), line.next));
        false
    });
    assert_eq!(done, Ok(()));
    listed
}

/// Lists all names, in replies of so many.
fn list_in(adapter: &Adapter, handle: FileHandle, most: usize) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    loop {
        let offset = all.last().map_or(0, |(_, next)| *next);
        let part = list(adapter, handle, offset, most);
        if part.is_empty() {
            return all;
        }
        all.extend(part);
    }
}

#[test]
fn a_listing_goes_on_from_each_of_its_offsets() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    let (other, _) = adapter.mint();
    for name in ["b", "c", "d", "e"] {
        std::fs::write(adapter.archive.file(&item, name), "").expect("a file");
    }
    let ibip = other.names.ibip().expect("an IBIp").to_string();
    let (prefix, _) = ibip.split_once('/').expect("a prefix");
    let (year, _) = rep.rsplit_once('/').expect("levels");
    for (path, names) in [
        ("", &[".", ".."][..]),
        (year, &[".", ".."][..]),
        (prefix, &[".", ".."][..]),
        (".mint", &[".", ".."][..]),
        (&rep, &[".", "..", ".ibi", "b", "c", "d", "doc", "e"][..]),
    ] {
        let handle = adapter.open_list(path);
        let all = list_in(&adapter, handle, usize::MAX);
        for name in names {
            assert!(
                all.iter().any(|(listed, _)| listed == name),
                "{path}: {all:?}"
            );
        }
        for most in 1..3 {
            assert_eq!(list_in(&adapter, handle, most), all, "{path}, {most} each");
        }
        for (at, (_, next)) in all.iter().enumerate() {
            let rest = list(&adapter, handle, *next, usize::MAX);
            assert_eq!(rest, all[at + 1..], "{path} after {at}");
        }
        drop(adapter.handles.remove(handle));
    }
    assert_eq!(adapter.handles.len(), 0);
}

/// The names of a listing with nodes, and those that have a node. One that does not fit ends it.
fn with_nodes(adapter: &Adapter, path: &str, most: usize) -> (Vec<String>, Vec<NodeId>) {
    let (handle, directory) = (adapter.open_list(path), adapter.number(path));
    let directory = NodeId(directory.0);
    let (mut names, mut nodes) = (Vec::new(), Vec::new());
    let done = adapter.list_with_nodes(&adapter.caller, directory, handle, 0, |line, _, entry| {
        if names.len() == most {
            return true;
        }
        names.push(line.name.to_string_lossy().into_owned());
        nodes.extend(entry.map(|entry| entry.node.id));
        false
    });
    assert_eq!(done, Ok(()));
    drop(adapter.handles.remove(handle));
    names.sort();
    (names, nodes)
}

#[test]
fn a_process_that_looks_up_what_it_lists_gets_nodes_with_the_next_listing() {
    let adapter = Adapter::new();
    let (item, rep) = adapter.mint();
    std::fs::write(adapter.archive.file(&item, "a"), "").expect("a file");
    let (names, nodes) = with_nodes(&adapter, &rep, usize::MAX);
    assert_eq!((names, nodes), (vec![".".into(), "..".into()], vec![]));
    let parent = adapter.number(&rep);
    let found = adapter.look_up(&adapter.caller, parent, OsStr::new("a"));
    adapter.forget_node(found.expect("found").node.id, 1);
    let (names, nodes) = with_nodes(&adapter, &rep, usize::MAX);
    assert_eq!(names, [".", "..", ".ibi", "a", "doc"]);
    assert_eq!(nodes.len(), 3);
    for id in nodes {
        assert!(adapter.namespace.nodes.get(id).is_some());
        adapter.forget_node(id, 1);
        assert!(adapter.namespace.nodes.get(id).is_none());
    }
    let before = adapter.namespace.nodes.len();
    let (names, nodes) = with_nodes(&adapter, &rep, 3);
    assert_eq!((names.len(), nodes.len()), (3, 1));
    let after = adapter.namespace.nodes.len();
    assert_eq!(after, before + 1, "one that did not fit is forgotten");
}
