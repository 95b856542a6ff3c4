//! Operations at random, most of them such that something comes of them.

use super::files::Body;
use super::operation::{Act, Data, Edit, How, Operation, Text, Where};
use super::perform::Model;
use super::tree::{ALICE, Node, STAFF, TAILS, View, Who};
use crate::support::Rng;

const FILES: [&str; 6] = ["f0", "f1", "f2", "f3", "f4", "f5"];
const DIRECTORIES: [&str; 5] = ["doc", "d0", "d1", "d2", "d3"];
const LINKS: [&str; 4] = ["l0", "l1", "l2", "l3"];
const MODES: [u32; 8] = [0o755, 0o755, 0o700, 0o777, 0o750, 0o644, 0o600, 0o666];
const ATTRIBUTES: [&str; 4] = ["user.a", "user.b", "user.ibi.note", "user.long"];
/// The items that declare a relation to an item.
const FACTS: [&str; 10] = [
    "user.ibi.nextedition",
    "user.ibi.translation.pt",
    "user.ibi.translation.en",
    "user.ibi.metadata",
    "user.ibi.editionof",
    "user.ibi.translationof",
    "user.ibi.metadataof",
    "user.ibi.language",
    "user.ibi.target",
    "user.ibi.state",
];
const RELATIONS: [&str; 6] = ["!", "+(pt)", "+(en)", "+(fr)", ":", "?GetTranslation(pt)"];
const PAIRS: [&str; 5] = [
    "ibi.nextedition",
    "ibi.translation(pt)",
    "ibi.metadata",
    "ibi.editionof",
    "ibi.translationof",
];
/// So many items are there at a time, about.
const ITEMS: usize = 9;
/// No directory is deeper.
const DEPTH: usize = 4;

/// Thinks of operations.
#[derive(Debug)]
pub struct Random {
    rng: Rng,
    next_item: usize,
    next_name: usize,
}

impl Random {
    pub fn new(rng: Rng) -> Random {
        Random {
            rng,
            // Smaller numbers are the service and what the other Archive has.
            next_item: 1000,
            next_name: 0,
        }
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.rng.of(all).expect("something to choose from")
    }

    fn held(&mut self, model: &Model) -> usize {
        let held = model.held();
        self.of(&held)
    }

    fn view(&mut self, model: &Model, item: usize) -> View {
        let labelled = model.tree.labels.values().any(|labelled| *labelled == item);
        let view = match self.rng.below(100) {
            0..45 => View::Rep,
            45..90 => View::Ibip,
            _ if labelled => View::Label,
            _ => View::Rep,
        };
        match model.path_of(item, view).is_some() && known_as(model, item, view) {
            true => view,
            false if known_as(model, item, View::Rep) => View::Rep,
            false => View::Ibip,
        }
    }

    /// One of the two trees.
    fn tree(&mut self, model: &Model, item: usize) -> View {
        match self.view(model, item) {
            View::Label => View::Rep,
            view => view,
        }
    }

    /// A directory somewhere in an item, by its path, and how deep it lies.
    fn directory(&mut self, model: &Model, item: usize) -> String {
        let mut at = model.item(item).root;
        let mut path = String::new();
        for _ in 0..DEPTH {
            if self.rng.percent(35) {
                break;
            }
            let names = model.tree.files.names(at).iter();
            let below: Vec<(&String, &u64)> = names
                .filter(|(_, ino)| model.tree.files.is_directory(**ino))
                .collect();
            let Some((name, ino)) = self.rng.of(&below) else {
                break;
            };
            path = super::tree::below(&path, name);
            at = **ino;
        }
        path
    }

    /// A name in a directory: mostly one that is there, of a kind that is wanted.
    fn name(
        &mut self,
        model: &Model,
        item: usize,
        directory: &str,
        kinds: &str,
        there: usize,
    ) -> String {
        if self.rng.percent(there) {
            let mut at = model.item(item).root;
            for name in directory.split('/').filter(|name| !name.is_empty()) {
                match model.tree.files.find(at, name) {
                    Some(ino) => at = ino,
                    None => return "f0".to_owned(),
                }
            }
            let kind = |ino: &u64| match model.tree.files.get(*ino).body {
                Body::File(_) => 'f',
                Body::Directory(_) => 'd',
                Body::Link(_) => 'l',
            };
            let names = model.tree.files.names(at).iter();
            let names: Vec<&String> = names
                .filter(|(name, ino)| !name.starts_with(".ibi") && kinds.contains(kind(ino)))
                .map(|(name, _)| name)
                .collect();
            if let Some(name) = self.rng.of(&names) {
                return (*name).clone();
            }
        }
        let kinds: Vec<char> = kinds.chars().collect();
        let kind = if self.rng.percent(90) {
            self.of(&kinds)
        } else {
            self.of(&['f', 'd', 'l'])
        };
        let name = match kind {
            'f' => self.of(&FILES),
            'd' => self.of(&DIRECTORIES),
            _ => self.of(&LINKS),
        };
        name.to_owned()
    }

    /// A path inside an item, or below the directory where a client is.
    fn place(&mut self, model: &Model, client: usize, kinds: &str, there: usize) -> Where {
        if self.rng.percent(15)
            && let Node::File(ino, _) = model.clients[client].directory
        {
            let names: Vec<&String> = model.tree.files.names(ino).keys().collect();
            let name = match self.rng.of(&names) {
                Some(name) if self.rng.percent(there) && !name.starts_with(".ibi") => {
                    (*name).clone()
                }
                _ => self
                    .of(&[
                        "f0", "f1", "d0", "l0", "../f0", "../f1", "../d1", "d0/f0", "../../f1",
                    ])
                    .to_owned(),
            };
            return Where::Here(name);
        }
        let item = self.held(model);
        self.place_in(model, item, kinds, there)
    }

    fn place_in(&mut self, model: &Model, item: usize, kinds: &str, there: usize) -> Where {
        let directory = self.directory(model, item);
        let name = self.name(model, item, &directory, kinds, there);
        self.inside(model, item, super::tree::below(&directory, &name))
    }

    fn inside(&mut self, model: &Model, item: usize, path: String) -> Where {
        let view = self.view(model, item);
        Where::In {
            item,
            view,
            tail: "",
            path,
            shout: false,
        }
    }

    /// Somewhere to look, in any of the ways that there are.
    fn anywhere(&mut self, model: &Model, client: usize, kinds: &str) -> Where {
        let item = self.held(model);
        match self.rng.below(20) {
            0 => {
                let path = if self.rng.percent(40) {
                    String::new()
                } else {
                    self.directory(model, item)
                };
                self.inside(model, item, path)
            }
            1 => Where::In {
                item,
                view: self.tree(model, item),
                tail: "",
                path: String::new(),
                shout: true,
            },
            2 | 3 => {
                let (tail, path) = (
                    self.of(&TAILS).0,
                    self.of(&["", "", "doc", "doc/f0", "f0", ".ibi"]),
                );
                Where::In {
                    item,
                    view: self.tree(model, item),
                    tail,
                    path: path.to_owned(),
                    shout: self.rng.percent(10),
                }
            }
            4 => Where::At(
                self.of(&[
                    "",
                    ".mint",
                    "example.org",
                    "EXAMPLE.ORG",
                    "example.net/archive-b",
                    "no/such",
                    "example.org/archive-a/1999",
                    "8JMKD3MGP8W",
                    "8jmkd3mgp8w",
                    "ZZZZ",
                    ".mint/nobody",
                    "example.net/archive-b/2024/01.01.00.00",
                    "8JMKD3MGP8W/22",
                    ".mint/.nobody",
                    "a b",
                    "\u{e9}",
                ])
                .to_owned(),
            ),
            5 => {
                let model_item = &model.tree.items.items;
                let all: Vec<usize> = model_item
                    .keys()
                    .copied()
                    .chain(model.origins.keys().copied())
                    .collect();
                let item = self.of(&all);
                Where::In {
                    item,
                    view: self.of(&[View::Rep, View::Ibip]),
                    tail: self.of(&["", "", "!", ":(oai_dc)"]),
                    path: String::new(),
                    shout: false,
                }
            }
            6 => self.inside(model, item, ".ibi".to_owned()),
            7 => match model.clients[client].directory {
                Node::File(..) => Where::Here(
                    self.of(&[".", "..", "../..", "../../..", "../doc", "./."])
                        .to_owned(),
                ),
                _ => Where::At(".mint".to_owned()),
            },
            8 => {
                let labels: Vec<&String> = model.tree.labels.keys().collect();
                match self.rng.of(&labels) {
                    Some(label) => Where::At(format!(".mint/.{label}")),
                    None => Where::At(".mint/".to_owned()),
                }
            }
            _ => self.place(model, client, kinds, 85),
        }
    }

    fn data(&mut self) -> Data {
        let length = match self.rng.below(20) {
            0 => 0,
            1 => 5000 + self.rng.below(60_000),
            _ => 1 + self.rng.below(200),
        };
        Data {
            letter: self.rng.byte(),
            length,
        }
    }

    fn slot(&mut self, model: &Model, client: usize) -> Option<usize> {
        let slots = model.open_slots(client);
        self.rng.of(&slots).copied()
    }

    /// The target of a link inside items: a neighbour, or what lies far above.
    fn target(&mut self, model: &Model) -> Text {
        let item = self.held(model);
        let up = "../".repeat(self.rng.below(8));
        let name = self.of(&["f0", "d0/f1", "l0", "d0", "doc/f0", "x"]);
        match self.rng.below(10) {
            0 => Text::Plain("/nowhere".to_owned()),
            1..4 => Text::Plain(name.to_owned()),
            4..7 => Text::Plain(format!("{up}{name}")),
            7 => Text::Plain(self.of(&["..", "../.."]).to_owned()),
            _ => Text::Item {
                before: up,
                item,
                view: self.of(&[View::Rep, View::Ibip]),
                behind: self.of(&["", "/doc", "/doc/f0", "!"]).to_owned(),
            },
        }
    }

    /// The target of a relation: an item, held or not.
    fn related(&mut self, model: &Model, before: &str) -> Text {
        let mut all: Vec<usize> = model.held();
        all.extend(model.origins.keys().take(3));
        if self.rng.percent(3) {
            return Text::Plain("../../no/item".to_owned());
        }
        let item = self.of(&all);
        Text::Item {
            before: before.to_owned(),
            item,
            view: self.tree(model, item),
            behind: String::new(),
        }
    }

    /// Now and then an item that leads to this one from edition to edition.
    fn earlier(&mut self, model: &Model, item: usize) -> Option<Text> {
        let names = &model.item(item).names;
        let mut held = model.held();
        held.retain(|other| model.tree.items.leads_to(&model.item(*other).names, names));
        let item = *self.rng.of(&held).filter(|_| held.len() > 1)?;
        self.rng.percent(40).then(|| Text::Item {
            before: "../".to_owned(),
            item,
            view: self.tree(model, item),
            behind: String::new(),
        })
    }

    fn new_item(&mut self) -> usize {
        self.next_item += 1;
        self.next_item
    }

    fn new_name(&mut self, before: &str) -> String {
        self.next_name += 1;
        format!("{before}{:04}", self.next_name % 10_000)
    }

    /// The next operation; an operation may be two, where one alone would come to nothing.
    pub fn next(&mut self, model: &Model) -> Vec<Operation> {
        let client = self.rng.below(model.clients.len());
        let who = if self.rng.percent(12) {
            Who::Alice
        } else {
            Who::Root
        };
        let as_root = |act| Operation {
            client,
            who: Who::Root,
            act,
        };
        if self.rng.below(1000) < 40 {
            return self.at_items(model).into_iter().map(as_root).collect();
        }
        if self.rng.below(1000) < 10 {
            let acts = self.names_of_one(model);
            return acts.into_iter().map(as_root).collect();
        }
        let act = self.inside_items(model, client);
        let mut operations = vec![Operation { client, who, act }];
        // Appended bytes come after the ones that another client has written meanwhile.
        if let Act::Write { slot, .. } = operations[0].act
            && let Some(ino) = model.appending(client, slot)
            && let Some((item, path)) = model.place_of(ino)
            && self.rng.percent(60)
        {
            let at = self.inside(model, item, path);
            let act = if self.rng.percent(70) {
                Act::Put {
                    at,
                    flags: self.of(&[libc::O_APPEND, libc::O_APPEND, libc::O_TRUNC, 0]),
                    mode: 0o644,
                    data: self.data(),
                }
            } else {
                Act::Truncate {
                    at,
                    length: self.rng.below(3000) as u64,
                }
            };
            let other = (client + 1) % model.clients.len();
            let between = Operation {
                client: other,
                who: Who::Root,
                act,
            };
            operations.insert(0, between);
        }
        operations
    }

    /// A file or link gets a name and loses one, and is asked for in both trees before and after.
    fn names_of_one(&mut self, model: &Model) -> Vec<Act> {
        let item = self.held(model);
        let at = |view: View, path: &str| Where::In {
            item,
            view,
            tail: "",
            path: path.to_owned(),
            shout: false,
        };
        let mut views = vec![View::Rep, View::Ibip];
        views.retain(|view| known_as(model, item, *view));
        let stat = |paths: &[&str]| -> Vec<Act> {
            let mut acts = Vec::new();
            for view in &views {
                acts.extend(paths.iter().map(|path| Act::Stat(at(*view, path))));
            }
            acts
        };
        if self.rng.percent(50) {
            // The other name lies in a new directory, which is known in one tree only.
            let view = self.of(&views);
            let (old, new) = (self.new_name("m"), self.new_name("n"));
            let (first, second) = (format!("{new}/first"), format!("{new}/second"));
            let link = |path: &str| Act::MakeLink {
                target: Text::Plain("f0".to_owned()),
                at: at(view, path),
            };
            let mut acts = vec![link(&old)];
            acts.extend(stat(&[&old]));
            acts.push(Act::MakeDirectory {
                at: at(view, &new),
                mode: 0o755,
            });
            acts.push(Act::Link {
                from: at(self.of(&views), &old),
                to: at(view, &first),
            });
            acts.extend(stat(&[&old]));
            let replaces = self.rng.percent(50);
            if replaces {
                acts.push(link(&second));
                acts.push(Act::Rename {
                    from: at(view, &second),
                    to: at(view, &first),
                    flags: 0,
                });
            } else {
                acts.push(Act::Remove(at(view, &first)));
            }
            acts.extend(stat(&[&old, &first]));
            acts.push(Act::Remove(at(view, &old)));
            acts.push(Act::Remove(at(view, &first)));
            acts.push(Act::RemoveDirectory(at(view, &new)));
            return acts;
        }
        let kinds = self.of(&["f", "l", "l"]);
        let old = self.directory_entry(model, item, kinds);
        let Where::In { path: new, .. } = self.place_in(model, item, kinds, 0) else {
            return Vec::new();
        };
        let mut acts = stat(&[&old, &new]);
        acts.push(Act::Link {
            from: at(self.of(&views), &old),
            to: at(self.of(&views), &new),
        });
        acts.extend(stat(&[&old, &new]));
        let view = self.of(&views);
        let (loses, other) = if self.rng.percent(50) {
            (&new, &old)
        } else {
            (&old, &new)
        };
        acts.push(match self.rng.below(3) {
            0 => Act::Rename {
                from: at(view, &self.directory_entry(model, item, kinds)),
                to: at(view, loses),
                flags: self.of(&[0, libc::RENAME_EXCHANGE]),
            },
            1 => Act::Rename {
                from: at(view, loses),
                to: at(view, other),
                flags: self.of(&[0, libc::RENAME_EXCHANGE]),
            },
            _ => Act::Remove(at(view, loses)),
        });
        acts.extend(stat(&[&old, &new]));
        acts
    }

    /// The path of something in an item.
    fn directory_entry(&mut self, model: &Model, item: usize, kinds: &str) -> String {
        let directory = self.directory(model, item);
        let name = self.name(model, item, &directory, kinds, 95);
        super::tree::below(&directory, &name)
    }

    /// Chooses an operation inside items, or a look anywhere.
    fn inside_items(&mut self, model: &Model, client: usize) -> Act {
        let slot = self.slot(model, client);
        match (self.rng.below(100), slot) {
            (0..10, _) => Act::Stat(self.anywhere(model, client, "fdl")),
            (10..15, _) => Act::List(self.anywhere(model, client, "d")),
            (15..19, _) => Act::ReadLink(self.anywhere(model, client, "l")),
            (19..26, _) => Act::Get(self.anywhere(model, client, "fl")),
            (26..32, _) => Act::Put {
                at: self.place(model, client, "f", 50),
                flags: self.of(&[
                    libc::O_CREAT,
                    libc::O_CREAT | libc::O_TRUNC,
                    libc::O_CREAT | libc::O_EXCL,
                    libc::O_APPEND,
                    libc::O_TRUNC,
                    0,
                ]),
                mode: self.of(&[0o666, 0o644, 0o600, 0o660]),
                data: self.data(),
            },
            (32..37, _) if model.open_slots(client).len() < 6 => Act::Open {
                slot: (0..)
                    .find(|slot| !model.open_slots(client).contains(slot))
                    .unwrap_or(99),
                at: self.place(model, client, "f", 75),
                flags: self.of(&[
                    libc::O_RDONLY,
                    libc::O_RDWR,
                    libc::O_RDWR | libc::O_CREAT,
                    libc::O_WRONLY | libc::O_APPEND,
                    libc::O_RDWR | libc::O_APPEND | libc::O_CREAT,
                    libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
                    libc::O_RDWR | libc::O_TRUNC,
                ]),
                mode: self.of(&[0o666, 0o600, 0o444]),
            },
            (37..42, Some(slot)) => Act::Read {
                slot,
                offset: self.rng.below(300) as u64,
                length: 1 + self.rng.below(3000),
            },
            (42..49, Some(slot)) => Act::Write {
                slot,
                offset: if self.rng.percent(60) {
                    Some(self.rng.below(5000) as u64)
                } else {
                    None
                },
                data: self.data(),
            },
            (49..51, Some(slot)) => Act::Cut {
                slot,
                length: self.rng.below(3000) as u64,
            },
            (51..54, Some(slot)) => Act::StatOpen { slot },
            (54..57, Some(slot)) => {
                if self.rng.percent(4) {
                    Act::Sync { slot }
                } else {
                    Act::Close { slot }
                }
            }
            (57..59, _) => Act::Truncate {
                at: self.place(model, client, "f", 90),
                length: self.rng.below(3000) as u64,
            },
            (59..64, _) => Act::MakeDirectory {
                at: self.place(model, client, "d", 20),
                mode: self.of(&[0o755, 0o777, 0o700]),
            },
            (64..67, _) => Act::RemoveDirectory(self.place(model, client, "d", 85)),
            (67..71, _) => Act::Remove(self.place(model, client, "fl", 90)),
            (71..75, _) => Act::MakeLink {
                target: self.target(model),
                at: self.place(model, client, "l", 20),
            },
            (75..78, _) => Act::Link {
                from: {
                    let kinds = self.of(&["f", "l"]);
                    self.place(model, client, kinds, 95)
                },
                to: self.place(model, client, "f", 15),
            },
            (78..86, _) => self.rename(model, client),
            // An item's own directory, too: what modifiers show is for those who may read it.
            (86..89, _) if self.rng.percent(8) => {
                let item = self.held(model);
                Act::ChangeMode {
                    at: self.inside(model, item, String::new()),
                    mode: self.of(&[0o755, 0o755, 0o750, 0o711, 0o744]),
                }
            }
            (86..89, _) => Act::ChangeMode {
                at: self.place(model, client, "fd", 95),
                mode: self.of(&MODES),
            },
            (89..91, _) => Act::ChangeOwner {
                at: self.place(model, client, "fdl", 95),
                owner: self.of(&[(0, 0), (ALICE, ALICE), (ALICE, STAFF), (0, STAFF)]),
            },
            (91..94, _) => {
                let length = self.rng.below(90);
                Act::SetAttribute {
                    at: self.place(model, client, "fd", 95),
                    name: self.of(&ATTRIBUTES),
                    value: Text::Plain("v".repeat(length)),
                    flags: self.of(&[0, 0, libc::XATTR_CREATE, libc::XATTR_REPLACE]),
                }
            }
            (94, _) => Act::RemoveAttribute {
                at: self.place(model, client, "fd", 95),
                name: self.of(&ATTRIBUTES),
            },
            (95, _) => Act::ListAttributes(self.place(model, client, "fdl", 95)),
            (96..98, _) => {
                let item = self.held(model);
                if self.rng.percent(50) {
                    Act::GetAttribute {
                        at: self.inside(model, item, String::new()),
                        name: self.of(&FACTS),
                    }
                } else {
                    Act::GetAttribute {
                        at: self.place(model, client, "fdl", 95),
                        name: self.of(&ATTRIBUTES),
                    }
                }
            }
            (98, _) => {
                let item = self.held(model);
                let directory = self.directory(model, item);
                Act::Enter(self.inside(model, item, directory))
            }
            _ => Act::Stat(self.place(model, client, "fdl", 95)),
        }
    }

    fn rename(&mut self, model: &Model, client: usize) -> Act {
        let flags = self.of(&[0, 0, 0, 0, libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE]);
        let item = self.held(model);
        let kinds = self.of(&["f", "f", "d", "l", "fdl"]);
        let there = match flags {
            libc::RENAME_EXCHANGE => 90,
            _ => 30,
        };
        match self.rng.below(10) {
            // In one item and, mostly, in one tree.
            0..7 => {
                let view = self.view(model, item);
                let in_view = |at: Where| match at {
                    Where::In { item, path, .. } => Where::In {
                        item,
                        view,
                        tail: "",
                        path,
                        shout: false,
                    },
                    at => at,
                };
                let from = in_view(self.place_in(model, item, kinds, 92));
                let to = in_view(self.place_in(model, item, kinds, there));
                Act::Rename { from, to, flags }
            }
            _ => Act::Rename {
                from: self.place(model, client, kinds, 92),
                to: self.place(model, client, kinds, there),
                flags,
            },
        }
    }

    fn beside(&mut self, model: &Model, item: usize, tail: &'static str) -> Where {
        Where::In {
            item,
            view: self.tree(model, item),
            tail,
            path: String::new(),
            shout: false,
        }
    }

    /// Chooses an operation on a whole item.
    fn at_items(&mut self, model: &Model) -> Vec<Act> {
        let item = self.held(model);
        let count = model.held().len();
        match self.rng.below(100) {
            0..12 => {
                let tail = self.of(&RELATIONS);
                let at = self.beside(model, item, tail);
                let target = self.earlier(model, item);
                let target = target.unwrap_or_else(|| self.related(model, "../"));
                vec![Act::Remove(at.clone()), Act::MakeLink { target, at }]
            }
            12..24 => {
                let name = self.of(&FACTS);
                let value = match name {
                    "user.ibi.language" => Text::Plain(self.of(&["pt", "en", "fr"]).to_owned()),
                    "user.ibi.target" => Text::Plain(self.new_name("file-")),
                    _ => self.related(model, ""),
                };
                vec![Act::SetAttribute {
                    at: self.inside(model, item, String::new()),
                    name,
                    value,
                    flags: self.of(&[0, 0, 0, libc::XATTR_CREATE, libc::XATTR_REPLACE]),
                }]
            }
            24..32 => vec![Act::RemoveAttribute {
                at: self.inside(model, item, String::new()),
                name: self.of(&FACTS),
            }],
            32..40 => {
                let tail = self.of(&[
                    "!",
                    "+",
                    "+(pt)",
                    "+(en)",
                    ":",
                    "?GetLastEdition",
                    "!:",
                    ":(oai_dc)",
                ]);
                vec![Act::Remove(self.beside(model, item, tail))]
            }
            40..46 => {
                // As ln -f and rsync do it.
                let view = self.tree(model, item);
                let staged = Where::Beside {
                    item,
                    view,
                    name: self.new_name(".staged-"),
                };
                let mut acts = vec![Act::MakeLink {
                    target: self.related(model, "../"),
                    at: staged.clone(),
                }];
                if self.rng.percent(80) {
                    let tail = self.of(&RELATIONS);
                    let at = self.beside(model, item, tail);
                    let to = match at {
                        Where::In {
                            item,
                            tail,
                            path,
                            shout,
                            ..
                        } => Where::In {
                            item,
                            view,
                            tail,
                            path,
                            shout,
                        },
                        at => at,
                    };
                    acts.push(Act::Rename {
                        from: staged,
                        to,
                        flags: 0,
                    });
                }
                acts
            }
            46..52 => {
                let at = self.beside(model, item, ":");
                if self.rng.percent(80) {
                    vec![Act::Put {
                        at,
                        flags: libc::O_CREAT | libc::O_TRUNC,
                        mode: 0o644,
                        data: Data {
                            letter: b'\n',
                            length: self.rng.below(2),
                        },
                    }]
                } else {
                    vec![Act::Remove(at)]
                }
            }
            52..58 => {
                let edits = self.edits(model, item);
                vec![Act::Sidecar {
                    item,
                    view: self.view(model, item),
                    how: self.of(&[How::Over, How::Beside]),
                    edits,
                }]
            }
            58..60 => vec![Act::RemoveSidecar {
                item,
                view: self.view(model, item),
            }],
            60..66 if count < ITEMS + 3 => vec![Act::Mint {
                item: self.new_item(),
                label: self.new_name("label-"),
                with_doc: self.rng.percent(50),
            }],
            66..69 if count < ITEMS + 3 => {
                let tail = self.of(&RELATIONS);
                vec![Act::MintRelated {
                    item: self.new_item(),
                    at: self.beside(model, item, tail),
                }]
            }
            69..77 if count < ITEMS + 3 => {
                let known = model
                    .tree
                    .items
                    .items
                    .iter()
                    .filter(|(_, item)| !item.is_held);
                let mut gone: Vec<usize> = known.map(|(number, _)| *number).collect();
                gone.extend(
                    model
                        .origins
                        .keys()
                        .filter(|number| !model.tree.items.items.contains_key(number)),
                );
                let Some(item) = self.rng.of(&gone).copied() else {
                    return Vec::new();
                };
                let view = self.of(&[View::Rep, View::Ibip]);
                let view = match model.path_of(item, view) {
                    Some(_) => view,
                    None => View::Rep,
                };
                let mut acts = vec![Act::Bring { item, view }];
                if self.rng.percent(80) {
                    let mut edits = vec![Edit::Service {
                        is_ours: self.rng.percent(30),
                    }];
                    if model.origins.contains_key(&item) {
                        edits.push(Edit::Names);
                    }
                    acts.push(Act::Sidecar {
                        item,
                        view,
                        how: self.of(&[How::Over, How::Beside]),
                        edits,
                    });
                }
                acts
            }
            77..83 if count > ITEMS && item != 0 => vec![Act::RemoveItem {
                item,
                view: self.view(model, item),
            }],
            83..86 => {
                let labels: Vec<&String> = model.tree.labels.keys().collect();
                match (self.rng.of(&labels), self.rng.percent(50)) {
                    (Some(label), true) => {
                        vec![Act::RemoveDirectory(Where::At(format!(".mint/{label}")))]
                    }
                    (Some(label), false) => vec![Act::Remove(Where::At(format!(".mint/.{label}")))],
                    (None, _) => Vec::new(),
                }
            }
            _ => vec![self.forbidden(model, item)],
        }
    }

    fn edits(&mut self, model: &Model, item: usize) -> Vec<Edit> {
        let mut edits = Vec::new();
        let held = model.held();
        match self.rng.below(6) {
            0 => {}
            1 => edits.push(Edit::Text("note", self.new_name("n"))),
            2 => edits.push(Edit::Unset(self.of(&PAIRS))),
            3 => edits.push(Edit::Text("language", self.of(&["pt", "en"]).to_owned())),
            4 if item != 0 => edits.push(Edit::Service {
                is_ours: self.rng.percent(60),
            }),
            _ => {
                let target = self.of(&held);
                if target != item {
                    edits.push(Edit::Relation(self.of(&PAIRS), target));
                }
            }
        }
        edits
    }

    /// Chooses an operation that is refused.
    fn forbidden(&mut self, model: &Model, item: usize) -> Act {
        let view = self.tree(model, item);
        let own = Where::In {
            item,
            view,
            tail: "",
            path: String::new(),
            shout: false,
        };
        let other = self.held(model);
        let beside = |name: &str| Where::Beside {
            item,
            view,
            name: name.to_owned(),
        };
        match self.rng.below(14) {
            0 => Act::Rename {
                from: own,
                to: beside("01.01.00.00"),
                flags: 0,
            },
            1 => Act::Rename {
                from: Where::At("example.org".to_owned()),
                to: Where::At("example.com".to_owned()),
                flags: 0,
            },
            2 => Act::MakeDirectory {
                at: Where::At(
                    self.of(&[
                        "a b",
                        "no good",
                        ".hidden",
                        "example.org/%",
                        "example.org/archive-a/20x6",
                        ".mint/.label",
                    ])
                    .to_owned(),
                ),
                mode: 0o755,
            },
            3 => Act::MakeDirectory {
                at: beside(self.of(&["02.30.00.00", "notes", "13.01.00.00"])),
                mode: 0o755,
            },
            4 => Act::Put {
                at: beside(self.of(&["notes.txt", "34", "a!"])),
                flags: libc::O_CREAT,
                mode: 0o644,
                data: self.data(),
            },
            5 => Act::Put {
                at: Where::At(
                    self.of(&["file", "example.org/file", ".mint/file"])
                        .to_owned(),
                ),
                flags: libc::O_CREAT,
                mode: 0o644,
                data: self.data(),
            },
            6 => Act::Put {
                at: self.beside(model, item, ":(oai_dc)"),
                flags: 0,
                mode: 0o644,
                data: self.data(),
            },
            7 => Act::RemoveDirectory(Where::At(
                self.of(&[
                    "example.org",
                    "example.org/archive-a",
                    ".mint",
                    "8JMKD3MGP8W",
                    "example.net",
                    "example.net/archive-b",
                    "example.net/archive-b/2024",
                ])
                .to_owned(),
            )),
            8 => Act::RemoveDirectory(own),
            9 => Act::MakeDirectory {
                at: self.beside(model, item, "!+(pt)"),
                mode: 0o755,
            },
            10 => Act::Rename {
                from: self.place_in(model, item, "f", 95),
                to: beside(".staged-file"),
                flags: 0,
            },
            11 => Act::Rename {
                from: own,
                to: self.place_in(model, other, "d", 10),
                flags: 0,
            },
            12 => Act::Link {
                from: self.place_in(model, item, "f", 95),
                to: beside(".staged-link"),
            },
            _ => Act::Remove(own),
        }
    }
}

/// Whether an item is known by its name in a tree already.
fn known_as(model: &Model, item: usize, view: View) -> bool {
    let Some(known) = model.tree.items.items.get(&item) else {
        return false;
    };
    match view {
        View::Rep => known.names.rep.is_some(),
        View::Ibip => known.names.ibip.is_some(),
        View::Label => true,
    }
}
