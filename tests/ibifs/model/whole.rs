//! The whole of both trees, of the store and of what items say of each other, beside the model.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::client::{attribute_names, kind_of, listing, seen};
use super::files::{Body, Ino};
use super::perform::Model;
use super::tree::{Node, TAILS, View, Who, below, split};

/// Everything about each path, as a line.
type Lines = BTreeMap<String, String>;

/// The names of the virtual attributes.
const WORDS: [&str; 16] = [
    "rep",
    "ibip",
    "state",
    "archiveservice",
    "language",
    "target",
    "lastedition",
    "nextedition",
    "metadata",
    "editionof",
    "metadataof",
    "translationof",
    "translation.pt",
    "translation.en",
    "translation.fr",
    "nonsense",
];

/// The paths of the real mount and store.
pub struct Real<'a> {
    pub mount: &'a Path,
    pub store: &'a Path,
}

/// The differences, a line each; none where all is as the model says.
pub fn differences(model: &Model, real: &Real<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut numbers = Numbers::default();
    let mut starts = vec![(Node::Root, String::new())];
    let mut prefixes: Vec<String> = model.tree.folders.iter().cloned().collect();
    for item in model.held() {
        prefixes.extend(model.item(item).names.prefix().map(str::to_owned));
    }
    prefixes.sort();
    prefixes.dedup();
    starts.extend(
        prefixes
            .into_iter()
            .map(|prefix| (Node::Prefix(prefix.clone()), prefix)),
    );
    starts.push((Node::Mint, ".mint".to_owned()));
    for (start, path) in starts {
        let (mut expected, mut met) = (Lines::new(), Lines::new());
        expect(model, &start, &path, &mut expected, &mut numbers);
        meet(real.mount, &path, &mut met, &mut numbers);
        compare(&expected, &met, &mut found);
    }
    numbers.check(&mut found);
    related(model, real.mount, &mut found);
    stored(model, real.store, &mut found);
    found
}

fn compare(expected: &Lines, met: &Lines, found: &mut Vec<String>) {
    let mut paths: Vec<&String> = expected.keys().chain(met.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let nothing = "nothing".to_owned();
        let expected = expected.get(path).unwrap_or(&nothing);
        let met = met.get(path).unwrap_or(&nothing);
        if expected != met {
            found.push(format!("{path}: expected {expected}, met {met}"));
        }
    }
}

/// Content as a line has it: sidecars in full, a number for everything else.
fn content(name: &str, bytes: &[u8]) -> String {
    if name == ".ibi" {
        format!(" {:?}", String::from_utf8_lossy(bytes))
    } else {
        format!(" {}", sum(bytes))
    }
}

/// A number for content.
fn sum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// The numbers of regular files: one number for one file, whatever its names and trees.
#[derive(Default)]
struct Numbers {
    expected: HashMap<String, Ino>,
    met: HashMap<String, u64>,
}

impl Numbers {
    fn check(&self, found: &mut Vec<String>) {
        let (mut numbers, mut files) = (HashMap::new(), HashMap::new());
        for (path, ino) in &self.expected {
            let Some(number) = self.met.get(path) else {
                continue;
            };
            if numbers.entry(*ino).or_insert(*number) != number {
                found.push(format!("{path}: one file has two numbers"));
            }
            if files.entry(*number).or_insert(*ino) != ino {
                found.push(format!("{path}: two files have number {number}"));
            }
        }
    }
}

fn expect(model: &Model, node: &Node, path: &str, lines: &mut Lines, numbers: &mut Numbers) {
    for name in model.tree.list(node) {
        if *node == Node::Mint && !model.tree.is_label_of(Who::Root, &name) {
            continue;
        }
        let path = below(path, &name);
        // Prefixes are met by themselves.
        let Ok(found) = model.tree.look(node, &name) else {
            continue;
        };
        let seen = model.seen(node, &found);
        let mut line = format!("{} {:?}", seen.kind, seen.size);
        if let Node::File(ino, _) = &found {
            let (mode, uid, gid, links) = seen.owned.unwrap_or_default();
            line += &format!(" {mode:o} {uid}:{gid} {links}");
            for (name, value) in &model.tree.files.get(*ino).attributes {
                line += &format!(" {name}={}", sum(value));
            }
            match &model.tree.files.get(*ino).body {
                Body::File(bytes) => {
                    line += &content(&name, bytes);
                    numbers.expected.insert(path.clone(), *ino);
                }
                Body::Link(_) => {
                    line += &format!(" {:?}", model.tree.read_link(node, &found));
                }
                Body::Directory(_) => {}
            }
        }
        lines.insert(path.clone(), line);
        if model.tree.is_directory(&found) {
            expect(model, &found, &path, lines, numbers);
        }
    }
}

fn meet(mount: &Path, path: &str, lines: &mut Lines, numbers: &mut Numbers) {
    let start = match path {
        // The others are no items.
        "" => 4,
        _ => 2,
    };
    meet_below(mount, path, start, lines, numbers);
}

fn meet_below(
    mount: &Path,
    path: &str,
    item_depth: usize,
    lines: &mut Lines,
    numbers: &mut Numbers,
) {
    let directory = mount.join(path);
    let listed = match listing(&directory.to_string_lossy()) {
        Ok(listed) => listed,
        Err(error) => {
            lines.insert(format!("{path} listed"), error.to_string());
            return;
        }
    };
    for (name, kind, number) in listed {
        let path = below(path, &name);
        let whole = mount.join(&path).to_string_lossy().into_owned();
        let stat = match rustix::fs::lstat(&*whole) {
            Ok(stat) => stat,
            Err(error) => {
                lines.insert(path, error.to_string());
                continue;
            }
        };
        let seen = seen(&stat);
        let mut line = format!("{} {:?}", seen.kind, seen.size);
        // The root's listing has prefixes, too, whose items lie less deep.
        let is_prefix = item_depth == 4
            && !path
                .split('/')
                .next()
                .is_some_and(|name| name.contains('.'));
        let item_depth = if is_prefix { 2 } else { item_depth };
        if path.split('/').count() >= item_depth {
            let (mode, uid, gid, links) = seen.owned.unwrap_or_default();
            line += &format!(" {mode:o} {uid}:{gid} {links}");
            for name in attribute_names(&whole).unwrap_or_default() {
                let mut value = vec![0; 4096];
                let length = rustix::fs::lgetxattr(&*whole, &*name, &mut value[..]).unwrap_or(0);
                line += &format!(" {name}={}", sum(&value[..length]));
            }
            match seen.kind {
                'f' => {
                    let bytes = std::fs::read(&whole).unwrap_or_default();
                    line += &content(&name, &bytes);
                    numbers.met.insert(path.clone(), stat.st_ino);
                }
                'l' => {
                    let target = std::fs::read_link(&whole).ok();
                    line += &format!(
                        " {:?}",
                        target.map(|target| target.to_string_lossy().into_owned())
                    );
                }
                _ => {}
            }
        }
        // A file that has got the number of one that is gone, and that the kernel still knows, has
        // another one, above these bits; a listing cannot tell.
        let low = |number: u64| number & ((1 << 50) - 1);
        if kind != seen.kind || low(number) != low(stat.st_ino) {
            line += &format!(" listed as {kind} {number}, found as {}", stat.st_ino);
        }
        lines.insert(path.clone(), line);
        if seen.kind == 'd' {
            meet_below(mount, &path, item_depth, lines, numbers);
        }
    }
}

/// Modifiers and attributes of all items, in both trees, and that removed ones are not there.
fn related(model: &Model, mount: &Path, found: &mut Vec<String>) {
    let mut note = |path: &str, expected: String, met: String| {
        if expected != met {
            found.push(format!("{path}: expected {expected}, met {met}"));
        }
    };
    for (number, item) in &model.tree.items.items {
        for view in [View::Rep, View::Ibip] {
            let known = match view {
                View::Rep => &item.names.rep,
                _ => &item.names.ibip,
            };
            let Some(path) = known else { continue };
            let whole = mount.join(path).to_string_lossy().into_owned();
            if !item.is_held {
                let met = rustix::fs::lstat(&*whole).map(|_| "something");
                note(path, "Err(NOENT)".to_owned(), shown(met));
                continue;
            }
            let (above, name) = split(path);
            let directory = match view {
                View::Rep => Node::Level(above.to_owned()),
                _ => Node::Prefix(above.to_owned()),
            };
            for (tail, _) in &TAILS {
                let name = format!("{name}{tail}");
                let whole = format!("{whole}{tail}");
                let expected = match model.tree.look(&directory, &name) {
                    Ok(Node::Link(target)) => format!("l {target}"),
                    Ok(_) => "f".to_owned(),
                    Err(errno) => format!("{errno}"),
                };
                let met = match rustix::fs::lstat(&*whole) {
                    Ok(stat) => match kind_of(rustix::fs::FileType::from_raw_mode(stat.st_mode)) {
                        'l' => match rustix::fs::readlink(&*whole, Vec::new()) {
                            Ok(target) => format!("l {}", target.to_string_lossy()),
                            Err(errno) => format!("l {errno:?}"),
                        },
                        kind => kind.to_string(),
                    },
                    Err(errno) => format!("{}", errno.raw_os_error()),
                };
                note(&below(above, &name), expected, met);
            }
            for word in WORDS {
                let attribute = format!("user.ibi.{word}");
                let expected = model.fact(*number, word);
                let mut value = vec![0; 4096];
                let met = rustix::fs::lgetxattr(&*whole, &*attribute, &mut value[..]);
                let met = met.map(|length| String::from_utf8_lossy(&value[..length]).into_owned());
                let met = met.map_err(|errno| errno.raw_os_error());
                note(
                    &format!("{path} {attribute}"),
                    format!("{expected:?}"),
                    format!("{met:?}"),
                );
            }
        }
    }
}

fn shown(outcome: Result<&str, rustix::io::Errno>) -> String {
    match outcome {
        Err(rustix::io::Errno::NOENT) => "Err(NOENT)".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The store itself, as any program can read it.
fn stored(model: &Model, store: &Path, found: &mut Vec<String>) {
    for (number, item) in &model.tree.items.items {
        let place = model.place_in_store(*number);
        let record = store.join("deleted").join(&place);
        if *number != 0 && record.exists() == item.is_held && item.pairs.is_some() {
            found.push(format!(
                "{place}: held {}, but its record is there or not",
                item.is_held
            ));
        }
        let directory = store.join(&place);
        if !item.is_held {
            if directory.exists() || !record.exists() {
                found.push(format!("{place}: removed, but there, or without a record"));
            }
            continue;
        }
        let (mut expected, mut met) = (Lines::new(), Lines::new());
        expect_stored(model, item.root, &place, &mut expected);
        let mut numbers = Numbers::default();
        meet_below(store, &place, 0, &mut met, &mut numbers);
        compare(&expected, &met, found);
    }
}

fn expect_stored(model: &Model, directory: Ino, path: &str, lines: &mut Lines) {
    for (name, ino) in model.tree.files.names(directory) {
        let path = below(path, name);
        let inode = model.tree.files.get(*ino);
        let (kind, size) = match &inode.body {
            Body::File(bytes) => ('f', Some(bytes.len() as u64)),
            Body::Link(target) => ('l', Some(target.len() as u64)),
            Body::Directory(_) => ('d', None),
        };
        let links = model.tree.files.links(*ino);
        let mut line = format!(
            "{kind} {size:?} {:o} {}:{} {links}",
            inode.mode, inode.uid, inode.gid
        );
        for (name, value) in &inode.attributes {
            line += &format!(" {name}={}", sum(value));
        }
        match &inode.body {
            Body::File(bytes) => line += &content(name, bytes),
            Body::Link(target) => line += &format!(" {:?}", Some(target)),
            Body::Directory(_) => {}
        }
        lines.insert(path.clone(), line);
        if kind == 'd' {
            expect_stored(model, *ino, &path, lines);
        }
    }
}
