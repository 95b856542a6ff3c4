//! The model: who is where, what is open, and what each operation answers.

use std::collections::BTreeMap;

use super::archive::{
    self, Item, METADATA, NEXT, Names, Pairs, TRANSLATION_OF, Value, inverse, language_of, set,
    unset, written,
};
use super::files::{Body, Ino};
use super::operation::{Act, Answer, Edit, GONE_OR_DENIED, How, Operation, Seen, Text, Where};
use super::tree::{Node, OUTSIDE, STAFF, Tree, View, Who, below, is_year, split};

/// An open file.
#[derive(Clone, Debug)]
struct Handle {
    ino: Ino,
    is_readable: bool,
    is_writable: bool,
    appends: bool,
    position: u64,
}

/// A client: where it is, and what it has open.
#[derive(Clone, Debug)]
pub struct Client {
    pub directory: Node,
    /// The directories above it when it came there.
    above: Vec<Node>,
    handles: BTreeMap<usize, Handle>,
}

/// Whether the kernel allows only root to make hard links to others' files.
fn hard_links_are_protected() -> bool {
    std::fs::read_to_string("/proc/sys/fs/protected_hardlinks").is_ok_and(|text| text.trim() == "1")
}

/// The whole model.
#[derive(Clone, Debug)]
pub struct Model {
    pub tree: Tree,
    pub clients: Vec<Client>,
    /// The service of the other Archive.
    pub other_service: Names,
    /// The names of items where they come from.
    pub origins: BTreeMap<usize, Names>,
    /// The file that `stat` was last asked about.
    pub noticed: Option<Ino>,
    /// The file to which the last operation appended.
    pub appended: Option<Ino>,
    protects_links: bool,
}

type Outcome = Result<Answer, i32>;

/// Names in `.mint` and beside items that no tool stages.
pub fn may_be_staged(name: &str) -> bool {
    name.starts_with('.') || name.ends_with('~') || (name.starts_with("Cu") && name.len() == 8)
}

/// The mask that is taken from the modes 0777 and 0666.
pub const UMASK: u32 = 0o022;

impl Model {
    pub fn new(service: Names, other_service: Names, clients: usize) -> Model {
        let client = Client {
            directory: Node::Root,
            above: Vec::new(),
            handles: BTreeMap::new(),
        };
        let mut model = Model {
            tree: Tree::default(),
            clients: vec![client; clients],
            other_service,
            origins: BTreeMap::new(),
            noticed: None,
            appended: None,
            protects_links: hard_links_are_protected(),
        };
        model.minted(0, service, None, Who::Root, 0o755);
        model.with_doc(0, Who::Root, 0o755);
        model
    }

    pub fn item(&self, number: usize) -> &Item {
        &self.tree.items.items[&number]
    }

    fn change(&mut self, number: usize) -> &mut Item {
        self.tree.items.items.entry(number).or_default()
    }

    pub fn held(&self) -> Vec<usize> {
        let items = self.tree.items.items.iter();
        let held = items.filter(|(_, item)| item.is_held);
        held.map(|(number, _)| *number).collect()
    }

    /// The files that are open.
    pub fn open_slots(&self, client: usize) -> Vec<usize> {
        self.clients[client].handles.keys().copied().collect()
    }

    /// Forgets files that no user can reach any more.
    pub fn tidy(&mut self) {
        let mut roots: Vec<Ino> = self.tree.staged.values().copied().collect();
        let held = self.tree.items.items.values().filter(|item| item.is_held);
        roots.extend(held.map(|item| item.root));
        for client in &self.clients {
            roots.extend(client.handles.values().map(|handle| handle.ino));
            if let Node::File(ino, _) = client.directory {
                roots.push(ino);
            }
        }
        self.tree.files.forget_all_but(roots);
    }

    /// An item in which a file has a name, and its path there.
    pub fn place_of(&self, ino: Ino) -> Option<(usize, String)> {
        let found = |item: &usize| {
            let path = self.tree.files.path_below(self.item(*item).root, ino)?;
            Some((*item, path))
        };
        self.held().iter().find_map(found)
    }

    /// Returns the path of an item in the store.
    pub fn place_in_store(&self, item: usize) -> String {
        let Names { rep, ibip } = &self.item(item).names;
        match (rep, ibip) {
            (Some(rep), _) => format!("col/{rep}"),
            (None, ibip) => format!("ibip/{}", ibip.as_deref().unwrap_or_default()),
        }
    }

    /// The open file behind a number, if what is written to it is appended.
    pub fn appending(&self, client: usize, slot: usize) -> Option<Ino> {
        let handle = self.clients[client].handles.get(&slot)?;
        (handle.appends && handle.is_writable).then_some(handle.ino)
    }

    /// The path of an item in a tree; None where it has no name there.
    pub fn path_of(&self, item: usize, view: View) -> Option<String> {
        let here = self.tree.items.items.get(&item);
        let names = match (here, self.origins.get(&item)) {
            (Some(item), _) if item.is_known => &item.names,
            (_, Some(origin)) => origin,
            (item, None) => &item?.names,
        };
        match view {
            View::Rep => names.rep.clone(),
            View::Ibip => names.ibip.clone(),
            View::Label => {
                let mut labels = self.tree.labels.iter();
                let label = labels.find(|(_, labelled)| **labelled == item)?.0;
                Some(format!(".mint/{label}"))
            }
        }
    }

    /// A path as text; None where there is nothing to be called so.
    pub fn text_of(&self, at: &Where) -> Option<String> {
        match at {
            Where::In {
                item,
                view,
                tail,
                path,
                shout,
            } => {
                let mut name = self.path_of(*item, *view)?;
                if *shout {
                    name = name.to_ascii_uppercase();
                }
                Some(
                    below(&format!("{name}{tail}"), path)
                        .trim_end_matches('/')
                        .to_owned(),
                )
            }
            Where::Beside { item, view, name } => {
                let path = self.path_of(*item, *view)?;
                Some(below(split(&path).0, name))
            }
            Where::At(path) | Where::Here(path) => Some(path.clone()),
        }
    }

    pub fn text(&self, text: &Text) -> Option<String> {
        match text {
            Text::Plain(text) => Some(text.clone()),
            Text::Item {
                before,
                item,
                view,
                behind,
            } => Some(format!("{before}{}{behind}", self.path_of(*item, *view)?)),
        }
    }

    /// The sidecar that some edits make of an item's.
    pub fn edited(&self, number: usize, edits: &[Edit]) -> Option<Pairs> {
        let item = self.tree.items.items.get(&number)?;
        let bare = || vec![("ibi".to_owned(), Value::Names(item.names.clone()))];
        let mut pairs = item.pairs.clone().unwrap_or_else(bare);
        for edit in edits {
            match edit {
                Edit::Relation(kind, target) => {
                    let names = match self.origins.get(target) {
                        Some(names) => names.clone(),
                        None => self.tree.items.items.get(target)?.names.clone(),
                    };
                    set(&mut pairs, kind, Value::Names(names));
                }
                Edit::Text(name, value) => set(&mut pairs, name, Value::Text(value.clone())),
                Edit::Unset(name) => unset(&mut pairs, name),
                Edit::Service { is_ours } => {
                    let service = match is_ours {
                        true => self.item(0).names.clone(),
                        false => self.other_service.clone(),
                    };
                    set(&mut pairs, "ibi.archiveservice", Value::Names(service));
                }
                Edit::Names => {
                    let names = self.origins.get(&number)?.clone();
                    set(&mut pairs, "ibi", Value::Names(names));
                }
            }
        }
        Some(pairs)
    }

    /// Whether all that an operation speaks of has a name.
    pub fn is_possible(&self, operation: &Operation) -> bool {
        let has = |at: &Where| match at {
            Where::Here(text) => self.is_sure(operation.client, text),
            at => self.text_of(at).is_some(),
        };
        let is_open = |slot: &usize| self.clients[operation.client].handles.contains_key(slot);
        let is_held = |item: &usize| {
            self.tree
                .items
                .items
                .get(item)
                .is_some_and(|item| item.is_held)
        };
        let is_inside =
            |at: &Where, follow| has(at) && self.find(operation, at, follow) != Err(OUTSIDE);
        // No user may change what is above items here.
        let is_no_level = |at: &Where, follow| match self.find(operation, at, follow) {
            Ok(node) => matches!(node, Node::File(..)),
            Err(_) => true,
        };
        // The author of an item's sidecar follows from the owners and modes of the item and of that file: here all are
        // root's, and others write in neither. The tests of attackers have the declarations of others.
        let speaks = |at: &Where, follow| {
            let is_sidecar = self
                .parent(operation, at)
                .is_ok_and(|(_, name)| name == ".ibi");
            is_sidecar
                || self
                    .find(operation, at, follow)
                    .is_ok_and(|node| match node {
                        Node::File(ino, _) => self.tree.item_of(ino).is_some(),
                        _ => false,
                    })
        };
        let is_beside = |at: &Where| {
            self.parent(operation, at)
                .is_ok_and(|(parent, _)| !matches!(parent, Node::File(..)))
        };
        let is_not_roots = |at: &Where| {
            self.find(operation, at, false)
                .is_ok_and(|node| match node {
                    Node::File(ino, _) => self.tree.files.get(ino).uid != 0,
                    _ => false,
                })
        };
        // Whether others may read a list of files or a record is asked when it is opened or its size is
        // reported, not when its name is looked up.
        let is_told = |at: &Where| match at {
            Where::In { tail, path, .. } => {
                path.is_empty() || !(tail.contains("GetFileList") || tail.contains("oai_dc"))
            }
            _ => true,
        };
        let is_of_others = |act: &Act| {
            let text = format!("{act:?}");
            text.contains("GetFileList") || text.contains("oai_dc")
        };
        match &operation.act {
            Act::Get(at) | Act::Stat(at) if is_told(at) => {}
            act if operation.who == Who::Alice && is_of_others(act) => return false,
            Act::ChangeMode { at, mode } if mode & 0o1022 != 0 && speaks(at, true) => return false,
            Act::ChangeOwner { at, .. } if speaks(at, false) => return false,
            Act::Rename { from, to, .. } | Act::Link { from, to }
                if speaks(to, false) && is_not_roots(from)
                    || speaks(from, false) && is_not_roots(to) =>
            {
                return false;
            }
            Act::MakeDirectory { at, .. }
            | Act::Remove(at)
            | Act::RemoveDirectory(at)
            | Act::Put { at, .. }
            | Act::MakeLink { at, .. }
            | Act::SetAttribute { at, .. }
            | Act::Open { at, .. }
            | Act::Link { to: at, .. }
            | Act::Rename { to: at, .. }
                if operation.who == Who::Alice && (is_beside(at) || speaks(at, true)) =>
            {
                return false;
            }
            Act::Rename { from, .. } if operation.who == Who::Alice && is_beside(from) => {
                return false;
            }
            _ => {}
        }
        match &operation.act {
            Act::List(at)
            | Act::Enter(at)
            | Act::Get(at)
            | Act::Put { at, .. }
            | Act::Truncate { at, .. } => is_inside(at, true),
            Act::Stat(at)
            | Act::ReadLink(at)
            | Act::RemoveDirectory(at)
            | Act::Remove(at)
            | Act::ListAttributes(at) => is_inside(at, false),
            Act::ChangeOwner { at, .. }
            | Act::GetAttribute { at, .. }
            | Act::RemoveAttribute { at, .. } => is_inside(at, false) && is_no_level(at, false),
            // Items are minted by other operations, and what is above them is open to all.
            Act::MakeDirectory { at, mode } => {
                let is_good = match self.parent(operation, at) {
                    Ok((Node::File(..), _)) => true,
                    Ok((Node::Mint, name)) => name.starts_with('.'),
                    Ok(_) => *mode == 0o755,
                    Err(_) => true,
                };
                is_inside(at, false) && is_good
            }
            Act::ChangeMode { at, .. } => is_inside(at, true) && is_no_level(at, true),
            Act::MintRelated { item, at } => has(at) && !self.tree.items.items.contains_key(item),
            Act::Open { slot, at, .. } => {
                is_inside(at, true) && is_no_level(at, true) && !is_open(slot)
            }
            Act::Read { slot, .. }
            | Act::Write { slot, .. }
            | Act::Cut { slot, .. }
            | Act::StatOpen { slot }
            | Act::Sync { slot }
            | Act::Close { slot } => is_open(slot),
            Act::MakeLink { target, at } => is_inside(at, false) && self.text(target).is_some(),
            Act::SetAttribute { at, value, .. } => {
                is_inside(at, false) && is_no_level(at, false) && self.text(value).is_some()
            }
            // A symbolic link that climbs and has two names would have to say two things.
            Act::Link { from, to } => {
                let climbs = match self.find(operation, from, false) {
                    Ok(Node::File(ino, _)) => match &self.tree.files.get(ino).body {
                        Body::Link(target) => target.starts_with('.'),
                        _ => false,
                    },
                    _ => false,
                };
                is_inside(from, false) && is_inside(to, false) && !climbs
            }
            // A relative path leads to the same file only as long as the client's directory has stayed where it was.
            Act::Rename { from, to, .. } => {
                let Client {
                    directory, above, ..
                } = &self.clients[operation.client];
                let is_here = matches!(from, Where::Here(_)) || matches!(to, Where::Here(_));
                let has_stayed =
                    !matches!(directory, Node::File(..)) || self.all_above(directory) == *above;
                is_inside(from, false) && is_inside(to, false) && (has_stayed || !is_here)
            }
            Act::Mint { item, .. } => !self.tree.items.items.contains_key(item),
            Act::Bring { item, view } => !is_held(item) && self.path_of(*item, *view).is_some(),
            Act::RemoveItem { item, view } => is_held(item) && self.path_of(*item, *view).is_some(),
            Act::Sidecar {
                item, view, edits, ..
            } => {
                is_held(item)
                    && self.path_of(*item, *view).is_some()
                    && self.edited(*item, edits).is_some()
            }
            Act::RemoveSidecar { item, view } => {
                is_held(item)
                    && self.path_of(*item, *view).is_some()
                    && self.item(*item).pairs.is_some()
            }
            Act::Remount { .. } => true,
        }
    }

    fn all_above(&self, node: &Node) -> Vec<Node> {
        let mut all = vec![self.tree.above(node)];
        while let Some(last) = all.last()
            && *last != Node::Outside
        {
            all.push(self.tree.above(last));
        }
        all
    }

    /// Whether it is sure what a path from a client's directory means. Where the directory has been
    /// removed, or moved in the other tree, the kernel goes up from it to where it was.
    fn is_sure(&self, client: usize, path: &str) -> bool {
        let Client {
            directory, above, ..
        } = &self.clients[client];
        let is_plain = !path.contains('/') && path != "..";
        if !matches!(directory, Node::File(..)) {
            return is_plain;
        }
        if self.all_above(directory) == *above {
            return true;
        }
        // In the directory of a label that has been forgotten nothing is found any more.
        if self.tree.above(directory) == Node::Outside
            && matches!(directory, Node::File(ino, View::Label) if self.tree.item_of(*ino).is_some())
        {
            return false;
        }
        let found = self.tree.look(directory, path);
        is_plain && !found.is_ok_and(|found| self.kind_of(&found) == 'l')
    }

    fn start(&self, operation: &Operation, at: &Where) -> Node {
        match at {
            Where::Here(_) => self.clients[operation.client].directory.clone(),
            _ => Node::Root,
        }
    }

    /// Returns the node that a path leads to.
    pub fn find(&self, operation: &Operation, at: &Where, follow: bool) -> Result<Node, i32> {
        let text = self.text_of(at).ok_or(libc::ENOENT)?;
        let start = self.start(operation, at);
        self.tree.walk(operation.who, &start, &text, follow)
    }

    /// The directory and the last name of a path.
    fn parent(&self, operation: &Operation, at: &Where) -> Result<(Node, String), i32> {
        let text = self.text_of(at).ok_or(libc::ENOENT)?;
        let (above, name) = split(&text);
        let start = self.start(operation, at);
        let directory = self.tree.walk(operation.who, &start, above, true)?;
        self.enterable(operation.who, &directory)?;
        Ok((directory, name.to_owned()))
    }

    fn enterable(&self, who: Who, directory: &Node) -> Result<(), i32> {
        match () {
            _ if !self.tree.is_directory(directory) => Err(libc::ENOTDIR),
            _ if !self.tree.may(who, directory, 1) => Err(libc::EACCES),
            _ => Ok(()),
        }
    }

    fn is_dead(&self, directory: &Node) -> bool {
        matches!(directory, Node::File(ino, _) if self.tree.files.get(*ino).is_dead)
    }

    /// Whether a new name can be made in a directory.
    fn free(&self, who: Who, directory: &Node, name: &str) -> Result<(), i32> {
        match self.tree.look_as(who, directory, name) {
            Ok(_) => return Err(libc::EEXIST),
            Err(libc::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
        self.writable(who, directory)
    }

    /// Whether names can be made in a directory at all.
    fn writable(&self, who: Who, directory: &Node) -> Result<(), i32> {
        match (self.is_dead(directory), self.tree.may(who, directory, 2)) {
            (true, true) => Err(libc::ENOENT),
            // In the other tree than that in which it was removed the kernel does not know.
            (true, false) => Err(GONE_OR_DENIED),
            (false, false) => Err(libc::EACCES),
            (false, true) => Ok(()),
        }
    }

    /// Whether a name can be taken from a directory; `wants` says which kind it must be.
    fn removable(
        &self,
        who: Who,
        directory: &Node,
        victim: &Node,
        wants_directory: bool,
    ) -> Result<(), i32> {
        let is_directory = self.tree.is_directory(victim);
        match () {
            _ if !self.tree.may(who, directory, 2) => Err(libc::EACCES),
            _ if wants_directory && !is_directory => Err(libc::ENOTDIR),
            _ if !wants_directory && is_directory => Err(libc::EISDIR),
            _ => Ok(()),
        }
    }

    fn own(&self, who: Who, ino: Ino) -> bool {
        who == Who::Root || self.tree.files.get(ino).uid == who.owner().0
    }

    /// Performs an operation in the model, and returns the expected answer.
    pub fn perform(&mut self, operation: &Operation) -> Answer {
        (self.noticed, self.appended) = (None, None);
        self.try_to(operation).unwrap_or_else(Answer::Refused)
    }

    fn notice(&mut self, node: &Node) {
        if let Node::File(ino, _) = node {
            self.noticed = Some(*ino);
        }
    }

    fn try_to(&mut self, operation: &Operation) -> Outcome {
        let who = operation.who;
        match &operation.act {
            Act::Stat(at) => {
                let node = self.find(operation, at, false)?;
                self.notice(&node);
                let text = self.text_of(at).unwrap_or_default();
                let above = match &node {
                    // The text of a link depends on the place of the link.
                    Node::File(..) if !self.tree.is_directory(&node) => {
                        let start = self.start(operation, at);
                        self.tree.walk(who, &start, split(&text).0, true)?
                    }
                    _ => Node::Root,
                };
                Ok(Answer::Seen(self.seen(&above, &node)))
            }
            Act::List(at) => {
                let node = self.find(operation, at, true)?;
                if !self.tree.is_directory(&node) {
                    return Err(libc::ENOTDIR);
                }
                if !self.tree.may(who, &node, 4) {
                    return Err(libc::EACCES);
                }
                Ok(Answer::Names(self.names_in(who, &node)))
            }
            Act::ReadLink(at) => {
                let node = self.find(operation, at, false)?;
                if self.kind_of(&node) != 'l' {
                    return Err(libc::EINVAL);
                }
                let (above, _) = self.parent(operation, at)?;
                let target = self.tree.read_link(&above, &node);
                target.map(Answer::Text).ok_or(libc::EINVAL)
            }
            Act::Enter(at) => {
                let node = self.find(operation, at, true)?;
                self.enterable(who, &node)?;
                self.clients[operation.client].above = self.all_above(&node);
                self.clients[operation.client].directory = node;
                Ok(Answer::Done)
            }
            Act::Get(at) => match self.find(operation, at, true)? {
                Node::Text(text) => Ok(Answer::Bytes(text)),
                Node::DublinCore(item) => {
                    let names = self.item(item).names.clone();
                    let names = [names.rep, names.ibip].into_iter().flatten();
                    Ok(Answer::Document(names.collect()))
                }
                node @ Node::File(ino, _) => {
                    if !self.tree.may(who, &node, 4) {
                        return Err(libc::EACCES);
                    }
                    match &self.tree.files.get(ino).body {
                        Body::File(bytes) => Ok(Answer::Bytes(bytes.clone())),
                        _ => Err(libc::EISDIR),
                    }
                }
                _ => Err(libc::EISDIR),
            },
            Act::Put {
                at,
                flags,
                mode,
                data,
            } => {
                let handle = self.open(operation, at, *flags | libc::O_WRONLY, *mode)?;
                let length = if flags & libc::O_APPEND != 0 {
                    self.content(handle.ino).len()
                } else {
                    0
                };
                self.write_at(handle.ino, length, &data.bytes());
                self.appended = handle.appends.then_some(handle.ino);
                Ok(Answer::Done)
            }
            Act::Open {
                slot,
                at,
                flags,
                mode,
            } => {
                let handle = self.open(operation, at, *flags, *mode)?;
                self.clients[operation.client].handles.insert(*slot, handle);
                Ok(Answer::Done)
            }
            Act::Read {
                slot,
                offset,
                length,
            } => {
                let handle = &self.clients[operation.client].handles[slot];
                if !handle.is_readable {
                    return Err(libc::EBADF);
                }
                if self.tree.files.is_directory(handle.ino) {
                    return Err(libc::EISDIR);
                }
                let content = self.content(handle.ino);
                let start = (*offset as usize).min(content.len());
                let end = (start + length).min(content.len());
                Ok(Answer::Bytes(content[start..end].to_vec()))
            }
            Act::Write { slot, offset, data } => {
                let handle = self.clients[operation.client].handles[slot].clone();
                if !handle.is_writable {
                    return Err(libc::EBADF);
                }
                let start = match (handle.appends, offset) {
                    (true, _) => self.content(handle.ino).len(),
                    (false, Some(offset)) => *offset as usize,
                    (false, None) => handle.position as usize,
                };
                self.write_at(handle.ino, start, &data.bytes());
                let handles = &mut self.clients[operation.client].handles;
                let handle = handles.get_mut(slot).expect("it is open");
                if offset.is_none() && data.length > 0 {
                    handle.position = (start + data.length) as u64;
                }
                let (count, position) = (data.length as u64, handle.position);
                self.appended = handle.appends.then_some(handle.ino);
                Ok(Answer::Written { count, position })
            }
            Act::Cut { slot, length } => {
                let handle = self.clients[operation.client].handles[slot].clone();
                if !handle.is_writable {
                    return Err(libc::EINVAL);
                }
                self.cut(handle.ino, *length);
                Ok(Answer::Done)
            }
            Act::StatOpen { slot } => {
                let ino = self.clients[operation.client].handles[slot].ino;
                self.noticed = Some(ino);
                Ok(Answer::Seen(
                    self.seen(&Node::Root, &Node::File(ino, View::Rep)),
                ))
            }
            Act::Sync { .. } => Ok(Answer::Done),
            Act::Close { slot } => {
                self.clients[operation.client].handles.remove(slot);
                Ok(Answer::Done)
            }
            Act::Truncate { at, length } => {
                let node = self.find(operation, at, true)?;
                let ino = match node {
                    _ if self.tree.is_directory(&node) => return Err(libc::EISDIR),
                    Node::File(ino, _) => ino,
                    _ => return Err(libc::EPERM),
                };
                if !self.tree.may(who, &node, 2) {
                    return Err(libc::EACCES);
                }
                self.cut(ino, *length);
                Ok(Answer::Done)
            }
            Act::MakeDirectory { at, mode } => {
                let (directory, name) = self.parent(operation, at)?;
                self.free(who, &directory, &name)?;
                self.make_directory(who, &directory, &name, *mode)
            }
            Act::RemoveDirectory(at) => {
                let (directory, name) = self.parent(operation, at)?;
                let victim = self.tree.look_as(who, &directory, &name)?;
                self.removable(who, &directory, &victim, true)?;
                self.remove_directory(&directory, &name, &victim)
            }
            Act::Remove(at) => {
                let (directory, name) = self.parent(operation, at)?;
                let victim = self.tree.look_as(who, &directory, &name)?;
                self.removable(who, &directory, &victim, false)?;
                self.remove_name(&directory, &name)
            }
            Act::MakeLink { target, at } => {
                let (directory, name) = self.parent(operation, at)?;
                self.free(who, &directory, &name)?;
                let target = self.text(target).ok_or(libc::ENOENT)?;
                self.make_link(who, &directory, &name, &target)
            }
            Act::Link { from, to } => self.link(operation, from, to),
            Act::Rename { from, to, flags } => self.rename(operation, from, to, *flags),
            Act::ChangeMode { at, mode } => {
                let Node::File(ino, _) = self.find(operation, at, true)? else {
                    return Err(libc::EPERM);
                };
                if !self.own(who, ino) {
                    return Err(libc::EPERM);
                }
                self.tree.files.change_attributes(ino).mode = *mode;
                Ok(Answer::Done)
            }
            Act::ChangeOwner { at, owner } => {
                let Node::File(ino, _) = self.find(operation, at, false)? else {
                    return Err(libc::EPERM);
                };
                let inode = self.tree.files.get(ino);
                let (uid, gid) = who.owner();
                let may_give = owner.1 == gid || owner.1 == STAFF || owner.1 == inode.gid;
                if who != Who::Root && (inode.uid != uid || owner.0 != uid || !may_give) {
                    return Err(libc::EPERM);
                }
                let inode = self.tree.files.change_attributes(ino);
                (inode.uid, inode.gid) = *owner;
                Ok(Answer::Done)
            }
            Act::SetAttribute {
                at,
                name,
                value,
                flags,
            } => {
                let value = self.text(value).ok_or(libc::ENOENT)?;
                let node = self.find(operation, at, false)?;
                self.set_attribute(who, &node, name, &value, *flags)
            }
            Act::GetAttribute { at, name } => {
                let node = self.find(operation, at, false)?;
                let Node::File(ino, _) = node else {
                    return Err(libc::ENODATA);
                };
                if matches!(self.tree.files.get(ino).body, Body::Link(_)) {
                    return Err(libc::ENODATA);
                }
                if !self.tree.may(who, &node, 4) {
                    return Err(libc::EACCES);
                }
                if let (Some(item), Some(word)) =
                    (self.tree.item_of(ino), name.strip_prefix("user.ibi."))
                {
                    let value = self.fact(item, word)?;
                    return Ok(Answer::Bytes(value.into_bytes()));
                }
                let value = self.tree.files.get(ino).attributes.get(*name);
                value.cloned().map(Answer::Bytes).ok_or(libc::ENODATA)
            }
            Act::ListAttributes(at) => {
                let Node::File(ino, _) = self.find(operation, at, false)? else {
                    return Ok(Answer::Names(Vec::new()));
                };
                let names = self.tree.files.get(ino).attributes.keys();
                Ok(Answer::Names(
                    names.map(|name| (name.clone(), 'x')).collect(),
                ))
            }
            Act::RemoveAttribute { at, name } => {
                let node = self.find(operation, at, false)?;
                self.remove_attribute(who, &node, name)
            }
            Act::Mint { label, .. } => {
                self.enterable(who, &Node::Mint)?;
                self.free(who, &Node::Mint, label)?;
                Ok(Answer::Minted(String::new(), String::new()))
            }
            Act::MintRelated { at, .. } => {
                let (directory, name) = self.parent(operation, at)?;
                self.free(who, &directory, &name)?;
                let (item, kind) = self.mintable(&directory, &name)?;
                match self.item(item).names_in(&kind) {
                    Some(target) if !self.tree.items.is_removed(target) => Err(libc::EEXIST),
                    _ => Ok(Answer::Minted(String::new(), String::new())),
                }
            }
            Act::Bring { item, view } => self.bring(who, *item, *view),
            Act::RemoveItem { item, .. } => {
                self.remove_item(*item);
                Ok(Answer::Done)
            }
            Act::Sidecar {
                item, how, edits, ..
            } => {
                let pairs = self.edited(*item, edits).ok_or(libc::ENOENT)?;
                self.sidecar_written(*item, *how, pairs);
                Ok(Answer::Done)
            }
            Act::RemoveSidecar { item, .. } => {
                // It comes back.
                self.write_sidecar(*item);
                Ok(Answer::Done)
            }
            Act::Remount { .. } => {
                self.tree.labels.clear();
                self.tree.staged.clear();
                for client in &mut self.clients {
                    client.handles.clear();
                    client.directory = Node::Root;
                    client.above.clear();
                }
                Ok(Answer::Done)
            }
        }
    }

    /// Learns from the real answer what the model could not know.
    pub fn learn(&mut self, operation: &Operation, real: &Answer) {
        let Answer::Minted(rep, ibip) = real else {
            return;
        };
        let names = Names {
            rep: Some(rep.clone()),
            ibip: Some(ibip.clone()),
        };
        match &operation.act {
            Act::Mint { item, label, .. } => {
                self.minted(*item, names, None, operation.who, 0o755);
                self.with_doc(*item, operation.who, 0o755);
                self.tree.labels.insert(label.clone(), *item);
                self.tree.labelled_by.insert(label.clone(), operation.who);
            }
            Act::MintRelated { item, at } => {
                let mintable = self
                    .parent(operation, at)
                    .and_then(|(directory, name)| self.mintable(&directory, &name));
                let Ok((source, kind)) = mintable else {
                    return;
                };
                let language = language_of(&kind).map(str::to_owned);
                self.minted(*item, names.clone(), language, operation.who, 0o755);
                let source = self.item(source).names.clone();
                self.relate(&source, &kind, &names)
                    .expect("a new item is an original");
            }
            _ => {}
        }
    }

    /// `doc` is made in an item.
    fn with_doc(&mut self, number: usize, who: Who, mode: u32) {
        let root = self.item(number).root;
        let files = &mut self.tree.files;
        let doc = files.make(Body::Directory(BTreeMap::new()), mode, who.owner());
        files.enter(root, "doc", doc);
    }

    /// An item comes to be, empty.
    fn minted(
        &mut self,
        number: usize,
        names: Names,
        language: Option<String>,
        who: Who,
        mode: u32,
    ) {
        let files = &mut self.tree.files;
        let root = files.make(Body::Directory(BTreeMap::new()), mode, who.owner());
        let service = match number {
            0 => names.clone(),
            _ => self.item(0).names.clone(),
        };
        let mut pairs = vec![
            ("ibi".to_owned(), Value::Names(names.clone())),
            ("ibi.archiveservice".to_owned(), Value::Names(service)),
        ];
        if let Some(language) = language {
            pairs.push(("language".to_owned(), Value::Text(language)));
        }
        self.make_levels(&names);
        let item = self.change(number);
        *item = Item {
            names,
            is_known: true,
            is_held: true,
            was_original: false,
            root,
            pairs: Some(pairs),
        };
        self.write_sidecar(number);
    }

    fn make_levels(&mut self, names: &Names) {
        if let Some(rep) = &names.rep {
            let mut path = split(rep).0;
            while !path.is_empty() {
                self.tree.levels.insert(path.to_owned());
                path = split(path).0;
            }
        } else if let Some(prefix) = names.prefix() {
            self.tree.folders.insert(prefix.to_owned());
        }
    }

    /// Puts a new file in the place of an item's sidecar.
    fn write_sidecar(&mut self, number: usize) {
        let item = self.item(number).clone();
        let Some(pairs) = item.pairs else {
            return;
        };
        let root = self.tree.files.get(item.root);
        let owner = (root.uid, root.gid);
        let file = self
            .tree
            .files
            .make(Body::File(written(&pairs)), 0o644, owner);
        self.tree.files.enter(item.root, ".ibi", file);
    }

    fn edit(&mut self, number: usize, change: impl FnOnce(&mut Pairs)) {
        let pairs = self.item(number).pairs.clone();
        let mut edited = pairs.clone().unwrap_or_default();
        change(&mut edited);
        // A sidecar that says so already need not be written.
        if pairs.as_ref() != Some(&edited) {
            self.change(number).pairs = Some(edited);
            self.write_sidecar(number);
        }
    }

    fn content(&self, ino: Ino) -> &Vec<u8> {
        match &self.tree.files.get(ino).body {
            Body::File(bytes) => bytes,
            other => panic!("{ino} is {other:?}"),
        }
    }

    fn write_at(&mut self, ino: Ino, start: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Body::File(content) = &mut self.tree.files.change(ino).body {
            let end = start + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[start..end].copy_from_slice(bytes);
        }
    }

    fn cut(&mut self, ino: Ino, length: u64) {
        if let Body::File(content) = &mut self.tree.files.change(ino).body {
            content.resize(length as usize, 0);
        }
    }

    fn kind_of(&self, node: &Node) -> char {
        match node {
            Node::File(ino, _) => match self.tree.files.get(*ino).body {
                Body::File(_) => 'f',
                Body::Directory(_) => 'd',
                Body::Link(_) => 'l',
            },
            Node::Link(_) => 'l',
            Node::Text(_) | Node::DublinCore(_) => 'f',
            _ => 'd',
        }
    }

    pub fn seen(&self, above: &Node, node: &Node) -> Seen {
        let kind = self.kind_of(node);
        let owned = |ino: Ino| {
            let inode = self.tree.files.get(ino);
            (inode.mode, inode.uid, inode.gid, self.tree.files.links(ino))
        };
        let size = match node {
            Node::Text(text) => Some(text.len() as u64),
            Node::File(ino, _) if kind == 'f' => Some(self.content(*ino).len() as u64),
            _ if kind == 'l' => self
                .tree
                .read_link(above, node)
                .map(|target| target.len() as u64),
            _ => None,
        };
        Seen {
            kind,
            size,
            owned: match node {
                Node::File(ino, _) => Some(owned(*ino)),
                _ => None,
            },
        }
    }

    /// The names in a directory, with what they are.
    pub fn names_in(&self, who: Who, directory: &Node) -> Vec<(String, char)> {
        let mut names = Vec::new();
        for name in self.tree.list(directory) {
            if *directory == Node::Mint && !self.tree.is_label_of(who, &name) {
                continue;
            }
            let node = self
                .tree
                .look(directory, &name)
                .expect("a listed name is there");
            names.push((name, self.kind_of(&node)));
        }
        names.sort();
        names
    }

    fn open(
        &mut self,
        operation: &Operation,
        at: &Where,
        flags: i32,
        mode: u32,
    ) -> Result<Handle, i32> {
        let who = operation.who;
        let access = flags & libc::O_ACCMODE;
        let (is_readable, is_writable) = (access != libc::O_WRONLY, access != libc::O_RDONLY);
        let wanted = u32::from(is_readable) * 4 + u32::from(is_writable) * 2;
        let creates = flags & libc::O_CREAT != 0;
        let (mut directory, mut name) = self.parent(operation, at)?;
        let mut links = 0;
        let node = loop {
            let node = match self.tree.look_as(who, &directory, &name) {
                Err(libc::ENOENT) if creates => break None,
                other => other?,
            };
            if creates && flags & libc::O_EXCL != 0 {
                return Err(libc::EEXIST);
            }
            let Some(target) = self.tree.read_link(&directory, &node) else {
                break Some(node);
            };
            links += 1;
            if links > 40 {
                return Err(libc::ELOOP);
            }
            let (above, last) = split(&target);
            let start = if target.starts_with('/') {
                Node::Outside
            } else {
                directory.clone()
            };
            if last == ".." || last == "." {
                break Some(self.tree.walk(who, &start, &target, true)?);
            }
            directory = self.tree.walk(who, &start, above, true)?;
            self.enterable(who, &directory)?;
            name = last.to_owned();
        };
        let ino = match node {
            Some(node) => {
                if self.tree.is_directory(&node) && (creates || is_writable) {
                    return Err(libc::EISDIR);
                }
                let Node::File(ino, _) = node else {
                    // Text made by us is read only, for root as well.
                    return Err(if is_writable && who == Who::Root {
                        libc::EPERM
                    } else {
                        libc::EACCES
                    });
                };
                if !self.tree.may(who, &node, wanted) {
                    return Err(libc::EACCES);
                }
                if flags & libc::O_TRUNC != 0 {
                    self.cut(ino, 0);
                }
                if is_writable {
                    self.tree.files.change_attributes(ino);
                }
                ino
            }
            None => {
                // Directories beside items are shown as open to all users: what is made there is refused
                // for its name, not for who makes it.
                if !Model::has_siblings(&directory) {
                    self.writable(who, &directory)?;
                }
                let mode = mode & !UMASK;
                let ino = self
                    .tree
                    .files
                    .make(Body::File(Vec::new()), mode, who.owner());
                match &directory {
                    Node::File(above, _) => self.tree.files.enter(*above, &name, ino),
                    _ => self.make_beside(who, &directory, &name, ino)?,
                }
                ino
            }
        };
        Ok(Handle {
            ino,
            is_readable,
            is_writable,
            appends: flags & libc::O_APPEND != 0,
            position: 0,
        })
    }

    fn has_siblings(directory: &Node) -> bool {
        match directory {
            Node::Level(path) => is_year(path),
            Node::Prefix(_) => true,
            _ => false,
        }
    }

    /// A file made beside an item: its metadata text, or a staged one.
    fn make_beside(&mut self, who: Who, directory: &Node, name: &str, ino: Ino) -> Result<(), i32> {
        if !Model::has_siblings(directory) {
            return Err(libc::EPERM);
        }
        match self.tree.request(directory, name) {
            Some((item, ":" | "?GetMetadata", _)) => {
                let item = self.item(item).clone();
                if self.tree.items.target(&item.names, METADATA).is_some() {
                    return Err(libc::EPERM);
                }
                self.writable(who, &Node::File(item.root, View::Rep))?;
                self.tree.files.enter(item.root, ".ibi.metadata", ino);
                Ok(())
            }
            None if may_be_staged(name) => {
                self.tree
                    .staged
                    .insert((directory.clone(), name.to_owned()), ino);
                Ok(())
            }
            _ => Err(libc::EPERM),
        }
    }

    /// The relation that a name beside an item stands for, if it can be declared.
    fn relation(&self, directory: &Node, name: &str) -> Option<(usize, Option<String>)> {
        let (item, tail, _) = self.tree.request(directory, name)?;
        let kind = match tail {
            "!" | "?GetLastEdition" => Some(NEXT.to_owned()),
            ":" | "?GetMetadata" => Some(METADATA.to_owned()),
            "+(pt)" | "+(en)" | "+(fr)" => Some(format!("ibi.translation{}", &tail[1..])),
            "?GetTranslation(pt)" => Some("ibi.translation(pt)".to_owned()),
            _ => None,
        };
        Some((item, kind))
    }

    /// Returns the item and the relation for which a mkdir beside the item mints.
    fn mintable(&self, directory: &Node, name: &str) -> Result<(usize, String), i32> {
        match self.relation(directory, name) {
            Some((item, Some(kind))) => Ok((item, kind)),
            Some((_, None)) => Err(libc::EINVAL),
            None => Err(libc::ENOENT),
        }
    }

    fn make_directory(&mut self, who: Who, directory: &Node, name: &str, mode: u32) -> Outcome {
        match directory {
            Node::File(above, _) => {
                let body = Body::Directory(BTreeMap::new());
                let made = self.tree.files.make(body, mode & !UMASK, who.owner());
                self.tree.files.enter(*above, name, made);
                Ok(Answer::Done)
            }
            Node::Root if ibi::ibip::check_prefix(name).is_ok() => {
                self.tree.folders.insert(name.to_owned());
                Ok(Answer::Done)
            }
            Node::Root | Node::Level(_) => {
                let path = match directory {
                    Node::Level(path) => below(path, name),
                    _ => name.to_owned(),
                };
                let level = path.split('/').count();
                // Items are brought and minted by other operations.
                if level == 4 || ibi::rep::check_component(level, name).is_err() {
                    return Err(libc::EINVAL);
                }
                self.tree.levels.insert(path);
                Ok(Answer::Done)
            }
            _ => Err(libc::EINVAL),
        }
    }

    fn remove_directory(&mut self, directory: &Node, name: &str, victim: &Node) -> Outcome {
        match (directory, victim) {
            (_, Node::File(ino, _)) => match self.tree.item_of(*ino) {
                Some(0) => Err(libc::ENOTEMPTY),
                Some(item) => {
                    let names = self.tree.files.names(*ino).keys();
                    if names.filter(|name| *name != ".ibi").count() > 0 {
                        return Err(libc::ENOTEMPTY);
                    }
                    self.remove_item(item);
                    Ok(Answer::Done)
                }
                None => {
                    if !self.tree.files.names(*ino).is_empty() {
                        return Err(libc::ENOTEMPTY);
                    }
                    let Node::File(above, _) = directory else {
                        return Err(libc::EPERM);
                    };
                    self.tree.files.kill(*ino);
                    self.tree.files.leave(*above, name);
                    Ok(Answer::Done)
                }
            },
            (_, Node::Mint) => Err(libc::EPERM),
            (_, Node::Prefix(prefix)) => {
                let held = self.tree.items.items.values().filter(|item| item.is_held);
                let mut prefixes = held.filter_map(|item| item.names.prefix());
                if prefixes.any(|known| known.eq_ignore_ascii_case(prefix)) {
                    return Err(libc::ENOTEMPTY);
                }
                self.tree.folders.remove(prefix);
                Ok(Answer::Done)
            }
            (_, Node::Level(path)) => {
                if !self.tree.list(victim).is_empty() {
                    return Err(libc::ENOTEMPTY);
                }
                self.tree.levels.remove(path);
                Ok(Answer::Done)
            }
            _ => Err(libc::EPERM),
        }
    }

    fn remove_item(&mut self, number: usize) {
        let root = self.item(number).root;
        self.tree.files.kill(root);
        let was_original = self.tree.items.is_original(self.item(number));
        let item = self.change(number);
        item.is_held = false;
        item.was_original = was_original;
        item.pairs = None;
        self.tree.labels.retain(|_, labelled| *labelled != number);
    }

    fn remove_name(&mut self, directory: &Node, name: &str) -> Outcome {
        if let Node::File(above, _) = directory {
            self.tree.files.leave(*above, name);
            return Ok(Answer::Done);
        }
        if *directory == Node::Mint {
            self.tree.labels.remove(name.trim_start_matches('.'));
            return Ok(Answer::Done);
        }
        let staged = (directory.clone(), name.to_owned());
        if self.tree.staged.remove(&staged).is_some() {
            return Ok(Answer::Done);
        }
        let Some((number, tail, _)) = self.tree.request(directory, name) else {
            return Err(libc::EPERM);
        };
        let item = self.item(number).clone();
        let has_metadata = self.tree.items.target(&item.names, METADATA).is_some();
        if matches!(tail, ":" | "?GetMetadata") && !has_metadata {
            self.tree.files.leave(item.root, ".ibi.metadata");
            return Ok(Answer::Done);
        }
        let kind = match self.relation(directory, name) {
            Some((_, Some(kind))) => kind,
            _ if tail == "+" => {
                let Ok(archive::Related::Item(chosen)) = self.tree.items.resolve(
                    &item.names,
                    &[archive::Step::Translation(None)],
                    &super::tree::PREFERRED,
                ) else {
                    return Err(libc::EPERM);
                };
                let mut all = self.tree.items.translations(&item.names).into_iter();
                let found = all.find(|(_, names)| names.matches(&chosen));
                format!("ibi.translation({})", found.ok_or(libc::ENOENT)?.0)
            }
            _ => return Err(libc::EPERM),
        };
        self.unrelate(number, &kind)?;
        Ok(Answer::Done)
    }

    fn make_link(&mut self, who: Who, directory: &Node, name: &str, target: &str) -> Outcome {
        if let Node::File(above, view) = directory {
            let kept = self.tree.link_to_keep(*above, *view, target);
            let link = self.tree.files.make(Body::Link(kept), 0o777, who.owner());
            self.tree.files.enter(*above, name, link);
            return Ok(Answer::Done);
        }
        if !Model::has_siblings(directory) {
            return Err(libc::EPERM);
        }
        if self.tree.request(directory, name).is_some() {
            self.declare(directory, name, target)?;
            return self.tree.look(directory, name).map(|_| Answer::Done);
        }
        if !may_be_staged(name) {
            return Err(libc::EPERM);
        }
        let link = self
            .tree
            .files
            .make(Body::Link(target.to_owned()), 0o777, who.owner());
        self.tree
            .staged
            .insert((directory.clone(), name.to_owned()), link);
        Ok(Answer::Done)
    }

    /// The names that a text ends in.
    fn names_at_end_of(&self, text: &str) -> Option<Names> {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        let last = |count: usize| Some(parts[parts.len().checked_sub(count)?..].join("/"));
        let known = self.tree.items.items.values().map(|item| &item.names);
        let all: Vec<&Names> = known.chain(self.origins.values()).collect();
        let is = |known: &Option<String>, text: &Option<String>| matches!((known, text), (Some(known), Some(text)) if known.eq_ignore_ascii_case(text));
        let (rep, ibip) = (last(4), last(2));
        if all.iter().any(|names| is(&names.rep, &rep)) {
            return Some(Names { rep, ibip: None });
        }
        if all.iter().any(|names| is(&names.ibip, &ibip)) {
            return Some(Names { rep: None, ibip });
        }
        None
    }

    /// Declares what a link beside an item says.
    fn declare(&mut self, directory: &Node, name: &str, target: &str) -> Result<(), i32> {
        let (item, kind) = self.relation(directory, name).ok_or(libc::EPERM)?;
        let kind = kind.ok_or(libc::EINVAL)?;
        // A path from here may have no more than the item's last name.
        let mut parts: Vec<&str> = match directory {
            Node::Level(path) | Node::Prefix(path) => path.split('/').collect(),
            _ => Vec::new(),
        };
        for part in target.split('/') {
            match part {
                ".." => drop(parts.pop()),
                "" | "." => {}
                part => parts.push(part),
            }
        }
        let from_here = self.names_at_end_of(&parts.join("/"));
        let names = from_here.or_else(|| self.names_at_end_of(target));
        let source = self.item(item).names.clone();
        self.relate(&source, &kind, &names.ok_or(libc::EINVAL)?)
    }

    fn original(&self, names: &Names) -> Option<usize> {
        let number = self.tree.items.held_number(names)?;
        self.tree
            .items
            .is_original(self.item(number))
            .then_some(number)
    }

    fn declares(&self, number: usize, kind: &str, target: &Names) -> bool {
        let declared = self.item(number).names_in(kind);
        declared.is_some_and(|names| names.matches(target))
    }

    /// All sidecars belong to root here, who may write at both ends.
    fn relate(&mut self, source: &Names, kind: &str, target: &Names) -> Result<(), i32> {
        let direct = self.direct_of(kind, source)?;
        let is_inverse = direct.is_some();
        let back = direct.unwrap_or_else(|| inverse(kind).to_owned());
        let source = self.tree.items.complete(source);
        let target = self.tree.items.complete(target);
        let (older, newer) = if is_inverse {
            (&target, &source)
        } else {
            (&source, &target)
        };
        let is_edition = kind == NEXT || back == NEXT;
        if source.matches(&target) || (is_edition && self.tree.items.leads_to(newer, older)) {
            return Err(libc::ELOOP);
        }
        let (near, far) = (self.original(&source), self.original(&target));
        let said = far.and_then(|far| self.item(far).names_in(&back).cloned());
        let said = said.filter(|said| !self.tree.items.is_removed(said));
        let of_translation = |pairs: &mut Pairs| {
            if let Some(language) = language_of(kind)
                && !pairs.iter().any(|(name, _)| name == "language")
            {
                set(pairs, "language", Value::Text(language.to_owned()));
            }
        };
        match (near, far) {
            (None, None) => return Err(libc::EPERM),
            (None, Some(far)) => {
                if is_inverse && said.is_some_and(|other| !other.matches(&source)) {
                    return Err(libc::EEXIST);
                }
                self.edit(far, |pairs| {
                    set(pairs, &back, Value::Names(source.clone()));
                    of_translation(pairs);
                });
            }
            (Some(near), far) => {
                // The end to which it led until now no longer says so. Declared again, a relation stays
                // as it is at both ends.
                if !is_inverse
                    && let Some(before) = self.item(near).names_in(kind).cloned()
                    && !before.matches(&target)
                    && !says_otherwise(self.item(near), kind, &before)
                    && let Some(before) = self.original(&before)
                    && self.declares(before, inverse(kind), &source)
                {
                    self.let_go(before, inverse(kind), &source);
                }
                // The statements of the far end itself stay.
                if let Some(far) = far
                    && !(is_inverse && said.is_some())
                {
                    self.edit(far, |pairs| {
                        set(pairs, &back, Value::Names(source.clone()));
                        of_translation(pairs);
                    });
                }
                self.edit(near, |pairs| set(pairs, kind, Value::Names(target.clone())));
            }
        }
        Ok(())
    }

    /// An item is no longer this to another one; where it is that to a third one, it says so of it.
    fn let_go(&mut self, number: usize, kind: &str, other: &Names) {
        let items = &self.tree.items;
        let claims = items.relations_to(&self.item(number).names);
        let third = claims.into_iter().find(|(names, said, item)| {
            let says_so = match (&**said, item.language()) {
                (TRANSLATION_OF, Some(language)) => kind == format!("ibi.translation({language})"),
                (TRANSLATION_OF, None) => false,
                (said, _) => inverse(said) == kind,
            };
            says_so && items.is_original(item) && !names.matches(other)
        });
        let third = third.map(|(names, ..)| names);
        self.edit(number, |pairs| match third {
            Some(names) => set(pairs, kind, Value::Names(names)),
            None => unset(pairs, kind),
        });
    }

    /// Returns the relation of the other end, for one that is stated from the far end.
    fn direct_of(&self, kind: &str, source: &Names) -> Result<Option<String>, i32> {
        match kind {
            "ibi.editionof" => Ok(Some(NEXT.to_owned())),
            "ibi.metadataof" => Ok(Some(METADATA.to_owned())),
            TRANSLATION_OF => {
                let item = self.tree.items.held(source);
                let language = item.and_then(|item| item.language()).ok_or(libc::ENOENT)?;
                Ok(Some(format!("ibi.translation({language})")))
            }
            _ => Ok(None),
        }
    }

    fn unrelate(&mut self, number: usize, kind: &str) -> Result<(), i32> {
        let own = self.item(number).names.clone();
        let items = &self.tree.items;
        let (source, directs, target) = match kind {
            NEXT | METADATA => {
                let said = self
                    .item(number)
                    .names_in(kind)
                    .map(|it| items.complete(it));
                let target = said.or_else(|| items.target(&own, kind));
                (own.clone(), vec![kind.to_owned()], target)
            }
            _ => match language_of(kind) {
                Some(_) if self.item(number).names_in(kind).is_some() => {
                    let said = self.item(number).names_in(kind);
                    let target = said.map(|it| items.complete(it));
                    (own.clone(), vec![kind.to_owned()], target)
                }
                Some(language) => {
                    let target = items.declared_translation(&own, language);
                    (own.clone(), vec![kind.to_owned()], target)
                }
                None => {
                    let source = items.points_back(&own, kind).ok_or(libc::ENOENT)?;
                    // The other one may use any words for it.
                    let relations = items.held(&source).map(Item::relations);
                    let said = relations.unwrap_or_default().into_iter();
                    let direct = said.filter(|(known, target)| {
                        known != kind && inverse(known) == kind && target.matches(&own)
                    });
                    let directs = direct.map(|(known, _)| known).collect();
                    (source, directs, Some(own.clone()))
                }
            },
        };
        let back = match directs.first() {
            Some(direct) => inverse(direct).to_owned(),
            None => kind.to_owned(),
        };
        let target = target.ok_or(libc::ENOENT)?;
        let mut any = false;
        for (end, kinds, other) in [
            (&source, &directs, &target),
            (&target, &vec![back], &source),
        ] {
            let Some(item) = self.original(end) else {
                continue;
            };
            for kind in kinds {
                // One that is a translation into two languages is one until both are gone.
                let is_kept = kind == TRANSLATION_OF
                    && match (&*directs, self.original(&source)) {
                        ([direct], Some(source)) => {
                            says_otherwise(self.item(source), direct, &target)
                        }
                        _ => false,
                    };
                if self.declares(item, kind, other) && !is_kept {
                    self.let_go(item, kind, other);
                    any = true;
                }
            }
        }
        if any { Ok(()) } else { Err(libc::EPERM) }
    }

    fn link(&mut self, operation: &Operation, from: &Where, to: &Where) -> Outcome {
        let who = operation.who;
        let node = self.find(operation, from, false)?;
        let (directory, name) = self.parent(operation, to)?;
        match self.tree.look_as(who, &directory, &name) {
            Ok(_) => return Err(libc::EEXIST),
            Err(libc::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
        let Node::File(ino, _) = &node else {
            return Err(libc::EPERM);
        };
        if who != Who::Root && self.protects_links && !self.own(who, *ino) {
            let is_file = matches!(self.tree.files.get(*ino).body, Body::File(_));
            if !is_file || !self.tree.may(who, &node, 6) {
                if self.is_dead(&directory) {
                    return Err(GONE_OR_DENIED);
                }
                return Err(libc::EPERM);
            }
        }
        let Node::File(above, _) = &directory else {
            return Err(if self.tree.may(who, &directory, 2) {
                libc::EPERM
            } else {
                libc::EACCES
            });
        };
        if self.tree.is_directory(&node) {
            // If the other tree has removed the directory for the name, the kernel looks at the file to be linked
            // first.
            return Err(if self.is_dead(&directory) {
                GONE_OR_DENIED
            } else {
                self.free(who, &directory, &name)
                    .err()
                    .unwrap_or(libc::EPERM)
            });
        }
        self.free(who, &directory, &name)?;
        self.tree.files.enter(*above, &name, *ino);
        Ok(Answer::Done)
    }

    fn rename(&mut self, operation: &Operation, from: &Where, to: &Where, flags: u32) -> Outcome {
        let who = operation.who;
        let (old, old_name) = self.parent(operation, from)?;
        let (new, new_name) = self.parent(operation, to)?;
        let source = self.tree.look_as(who, &old, &old_name)?;
        let target = match self.tree.look_as(who, &new, &new_name) {
            Ok(target) => Some(target),
            Err(libc::ENOENT) => None,
            Err(errno) => return Err(errno),
        };
        let exchanges = flags == libc::RENAME_EXCHANGE;
        // The name in a removed directory is looked up before anything else is checked.
        if target.is_none() && self.is_dead(&new) && who != Who::Root {
            return Err(GONE_OR_DENIED);
        }
        match &target {
            Some(_) if flags == libc::RENAME_NOREPLACE => return Err(libc::EEXIST),
            None if exchanges => return Err(libc::ENOENT),
            _ => {}
        }
        // Neither may lie in the other, in the tree in which they are named.
        let lies_in = |inner: &Node, outer: &Node| {
            let mut at = inner.clone();
            while at != Node::Root && at != Node::Outside {
                if at == *outer {
                    return true;
                }
                at = self.tree.above(&at);
            }
            false
        };
        if self.tree.is_directory(&source) && lies_in(&new, &source) {
            return Err(libc::EINVAL);
        }
        if let Some(target) = &target
            && self.tree.is_directory(target)
            && lies_in(&old, target)
        {
            return Err(if exchanges {
                libc::EINVAL
            } else {
                libc::ENOTEMPTY
            });
        }
        if target.as_ref() == Some(&source) {
            return Ok(Answer::Done);
        }
        let is_directory = self.tree.is_directory(&source);
        self.removable(who, &old, &source, is_directory)?;
        let target_is_directory = target
            .as_ref()
            .is_some_and(|target| self.tree.is_directory(target));
        match &target {
            // From the other tree than that in which it was removed the kernel asks, and hears that of
            // the two trees first.
            None if self.is_dead(&new) && view_of(&old) != view_of(&new) => {
                return Err(GONE_OR_DENIED);
            }
            None => self.writable(who, &new)?,
            Some(target) => {
                let wants = if exchanges {
                    target_is_directory
                } else {
                    is_directory
                };
                self.removable(who, &new, target, wants)?;
            }
        }
        if old != new {
            // A directory that moves has another one above it.
            let moving = [
                (is_directory, Some(&source)),
                (exchanges && target_is_directory, target.as_ref()),
            ];
            for (moves, node) in moving {
                if let Some(node) = node
                    && moves
                    && !self.tree.may(who, node, 2)
                {
                    return Err(libc::EACCES);
                }
            }
        }
        match (&old, &new) {
            (Node::File(from, view), Node::File(to, new_view)) => {
                if view != new_view {
                    // A thing by its two names is renamed to itself, which changes nothing; but the kernel would
                    // take the directory of the new name for removed.
                    return match (&source, &target) {
                        (Node::File(one, _), Some(Node::File(other, _)))
                            if one == other && is_directory && !exchanges =>
                        {
                            Err(libc::EBUSY)
                        }
                        (Node::File(one, _), Some(Node::File(other, _))) if one == other => {
                            Ok(Answer::Done)
                        }
                        _ => Err(libc::EXDEV),
                    };
                }
                let Node::File(ino, _) = source else {
                    return Err(libc::EPERM);
                };
                if let (true, Some(Node::File(other, _))) = (exchanges, &target) {
                    self.tree.files.enter(*from, &old_name, *other);
                } else {
                    if let Some(Node::File(other, _)) = target
                        && target_is_directory
                    {
                        if !self.tree.files.names(other).is_empty() {
                            return Err(libc::ENOTEMPTY);
                        }
                        self.tree.files.kill(other);
                    }
                    self.tree.files.leave(*from, &old_name);
                }
                self.tree.files.enter(*to, &new_name, ino);
                Ok(Answer::Done)
            }
            (Node::File(..), _) => Err(libc::EXDEV),
            (_, Node::File(..)) => Err(libc::EPERM),
            _ => self.rename_beside(&old, &old_name, &new, &new_name, flags),
        }
    }

    /// Renames a staged file or directory to the name that it was made for.
    fn rename_beside(
        &mut self,
        old: &Node,
        name: &str,
        new: &Node,
        new_name: &str,
        flags: u32,
    ) -> Outcome {
        if !Model::has_siblings(old) || !Model::has_siblings(new) {
            return Err(libc::EPERM);
        }
        if flags & !libc::RENAME_NOREPLACE != 0 {
            return Err(libc::EINVAL);
        }
        let staged = self
            .tree
            .staged
            .get(&(old.clone(), name.to_owned()))
            .copied();
        let request = self
            .tree
            .request(new, new_name)
            .map(|(item, tail, _)| (item, tail));
        match (staged, request) {
            (Some(ino), Some((item, tail))) => {
                match self.tree.files.get(ino).body.clone() {
                    Body::Link(target) => self.declare(new, new_name, &target)?,
                    _ if matches!(tail, ":" | "?GetMetadata") => {
                        let item = self.item(item).clone();
                        if self.tree.items.target(&item.names, METADATA).is_some() {
                            return Err(libc::EPERM);
                        }
                        self.tree.files.enter(item.root, ".ibi.metadata", ino);
                    }
                    _ => return Err(libc::EPERM),
                }
                self.tree.staged.remove(&(old.clone(), name.to_owned()));
                Ok(Answer::Done)
            }
            (Some(ino), None) if may_be_staged(new_name) => {
                self.tree.staged.remove(&(old.clone(), name.to_owned()));
                self.tree
                    .staged
                    .insert((new.clone(), new_name.to_owned()), ino);
                Ok(Answer::Done)
            }
            _ => Err(libc::EPERM),
        }
    }

    fn set_attribute(
        &mut self,
        who: Who,
        node: &Node,
        name: &str,
        value: &str,
        flags: i32,
    ) -> Outcome {
        let Node::File(ino, _) = node else {
            return Err(libc::EOPNOTSUPP);
        };
        if matches!(self.tree.files.get(*ino).body, Body::Link(_)) {
            return Err(libc::EPERM);
        }
        if !self.tree.may(who, node, 2) {
            return Err(libc::EACCES);
        }
        let is_ours = self.tree.item_of(*ino).zip(name.strip_prefix("user.ibi."));
        let is_there = match is_ours {
            Some((item, word)) => self.fact(item, word).is_ok(),
            None => self.tree.files.get(*ino).attributes.contains_key(name),
        };
        match flags {
            libc::XATTR_CREATE if is_there => return Err(libc::EEXIST),
            libc::XATTR_REPLACE if !is_there => return Err(libc::ENODATA),
            _ => {}
        }
        let Some((item, word)) = is_ours else {
            let inode = self.tree.files.change_attributes(*ino);
            inode
                .attributes
                .insert(name.to_owned(), value.as_bytes().to_vec());
            return Ok(Answer::Done);
        };
        match word {
            "language" | "target" => {
                if !self.tree.items.is_original(self.item(item)) {
                    return Err(libc::EPERM);
                }
                self.edit(item, |pairs| {
                    set(pairs, word, Value::Text(value.to_owned()));
                });
                // Now the item can say into which language it translates another.
                let near = self.item(item).clone();
                if word == "language"
                    && let Some(other) = near.names_in(TRANSLATION_OF).cloned()
                {
                    self.update_far_end(&near, TRANSLATION_OF, &other, true);
                }
            }
            word => {
                let kind = kind_of(word).ok_or(libc::EPERM)?;
                let target = self.names_at_end_of(value).ok_or(libc::EINVAL)?;
                let source = self.item(item).names.clone();
                self.relate(&source, &kind, &target)?;
            }
        }
        Ok(Answer::Done)
    }

    fn remove_attribute(&mut self, who: Who, node: &Node, name: &str) -> Outcome {
        let Node::File(ino, _) = node else {
            return Err(libc::EOPNOTSUPP);
        };
        if matches!(self.tree.files.get(*ino).body, Body::Link(_)) {
            return Err(libc::EPERM);
        }
        if !self.tree.may(who, node, 2) {
            return Err(libc::EACCES);
        }
        let Some((item, word)) = self.tree.item_of(*ino).zip(name.strip_prefix("user.ibi.")) else {
            let inode = self.tree.files.change_attributes(*ino);
            let removed = inode.attributes.remove(name);
            return removed.map(|_| Answer::Done).ok_or(libc::ENODATA);
        };
        match word {
            "language" | "target" => {
                if !self.tree.items.is_original(self.item(item)) {
                    return Err(libc::EPERM);
                }
                self.edit(item, |pairs| unset(pairs, word));
            }
            word => {
                let kind = kind_of(word).ok_or(libc::EPERM)?;
                self.unrelate(item, &kind).map_err(|errno| match errno {
                    libc::ENOENT => libc::ENODATA,
                    errno => errno,
                })?;
            }
        }
        Ok(Answer::Done)
    }

    /// Returns the value of a virtual attribute.
    pub fn fact(&self, number: usize, word: &str) -> Result<String, i32> {
        let items = &self.tree.items;
        let item = self.item(number);
        let value = match word {
            "rep" => item.names.rep.clone(),
            "ibip" => item.names.ibip.clone(),
            "state" => Some(self.state(number).to_owned()),
            "archiveservice" => item.names_in("ibi.archiveservice").map(Names::preferred),
            "language" | "target" => item.text_in(word).map(str::to_owned),
            "lastedition" => {
                let last = items.last_edition(&item.names);
                Some(last.ok_or(libc::ELOOP)?.preferred())
            }
            word => {
                let kind = kind_of(word).ok_or(libc::ENODATA)?;
                let target = match (kind.as_str(), language_of(&kind)) {
                    (NEXT | METADATA, _) => items.target(&item.names, &kind),
                    (_, Some(language)) => items.declared_translation(&item.names, language),
                    _ => items.target(&item.names, &kind),
                };
                target.map(|names| names.preferred())
            }
        };
        value.ok_or(libc::ENODATA)
    }

    pub fn state(&self, number: usize) -> &'static str {
        let item = self.item(number);
        match self.tree.items.is_original(item) {
            _ if !item.is_held => "Deleted",
            true => "Original",
            false => "Copy",
        }
    }

    /// An item's directory is made; with its other name, where the index knows it.
    fn bring(&mut self, who: Who, number: usize, view: View) -> Outcome {
        if who != Who::Root {
            return Err(libc::EACCES);
        }
        let origin = match self.origins.get(&number) {
            Some(names) => names.clone(),
            None => self.item(number).names.clone(),
        };
        let known = self
            .tree
            .items
            .items
            .get(&number)
            .filter(|item| item.is_known);
        let names = match (known, view) {
            (Some(item), _) => item.names.clone(),
            (None, View::Ibip) => Names {
                rep: None,
                ibip: origin.ibip.clone(),
            },
            (None, _) => Names {
                rep: origin.rep.clone(),
                ibip: None,
            },
        };
        if view == View::Ibip
            && let Some(prefix) = origin.prefix()
            && self.tree.look(&Node::Root, prefix).is_err()
        {
            self.tree.folders.insert(prefix.to_owned());
        }
        if view == View::Rep {
            self.make_levels(&origin);
        }
        self.make_levels(&names);
        let body = Body::Directory(BTreeMap::new());
        let root = self.tree.files.make(body, 0o755, who.owner());
        *self.change(number) = Item {
            names,
            is_known: true,
            is_held: true,
            was_original: false,
            root,
            pairs: None,
        };
        Ok(Answer::Done)
    }

    /// A sidecar that a user has written is accepted.
    fn sidecar_written(&mut self, number: usize, how: How, pairs: Pairs) {
        let item = self.item(number).clone();
        let bytes = written(&pairs);
        match (how, self.tree.files.find(item.root, ".ibi")) {
            (How::Over, Some(file)) => {
                self.tree.files.change(file).body = Body::File(bytes);
            }
            _ => {
                let file = self.tree.files.make(Body::File(bytes), 0o644, (0, 0));
                self.tree.files.enter(item.root, ".ibi", file);
            }
        }
        if item.pairs.as_ref() == Some(&pairs) {
            return;
        }
        let mut before = if self.tree.items.is_original(&item) {
            item.relations()
        } else {
            Vec::new()
        };
        let language = pairs.iter().find(|(name, _)| name == "language");
        if language
            != item
                .pairs
                .iter()
                .flatten()
                .find(|(name, _)| name == "language")
        {
            // Into which language it translates another is said only now.
            before.retain(|(kind, _)| kind != TRANSLATION_OF);
        }
        if let Some((_, Value::Names(printed))) = pairs.iter().find(|(name, _)| name == "ibi") {
            let rep = item.names.rep.clone().or(printed.rep.clone());
            let ibip = match rep {
                Some(_) => printed.ibip.clone().or(item.names.ibip.clone()),
                None => item.names.ibip.clone(),
            };
            let names = Names { rep, ibip };
            self.make_levels(&names);
            self.change(number).names = names;
        }
        self.change(number).pairs = Some(pairs);
        self.update_far_ends(number, &before);
    }

    /// Writes the relations that an original declares again, or no longer, at the far ends that are originals.
    fn update_far_ends(&mut self, number: usize, before: &[(String, Names)]) {
        let near = self.item(number).clone();
        if !self.tree.items.is_original(&near) {
            return;
        }
        let now = near.relations();
        let is_in = |relations: &[(String, Names)], kind: &str, names: &Names| {
            let mut relations = relations.iter();
            relations.any(|(known, other)| known == kind && other.matches(names))
        };
        let gone = before
            .iter()
            .filter(|(kind, names)| !is_in(&now, kind, names));
        let new = now
            .iter()
            .filter(|(kind, names)| !is_in(before, kind, names));
        let gone = gone.map(|change| (change, false));
        for ((kind, names), is_new) in gone.chain(new.map(|change| (change, true))) {
            self.update_far_end(&near, kind, names, is_new);
        }
    }

    fn update_far_end(&mut self, near: &Item, kind: &str, names: &Names, is_new: bool) {
        let Some(far) = self.original(names) else {
            return;
        };
        let declared = self.item(far).relations();
        let says_so: Vec<String> = declared
            .iter()
            .filter(|(known, other)| known != kind && other.matches(&near.names))
            .filter(|(known, _)| inverse(known) == kind || known == inverse(kind))
            .map(|(known, _)| known.clone())
            .collect();
        if !is_new {
            if says_otherwise(near, kind, &self.item(far).names) {
                return;
            }
            for known in says_so {
                self.let_go(far, &known, &near.names);
            }
            return;
        }
        let back = match kind {
            TRANSLATION_OF => match near.language() {
                Some(language) => format!("ibi.translation({language})"),
                None => return,
            },
            kind => inverse(kind).to_owned(),
        };
        let is_direct = kind == NEXT || kind == METADATA || language_of(kind).is_some();
        let is_said =
            |(known, other): &(String, Names)| *known == back && !self.tree.items.is_removed(other);
        let is_taken = !is_direct && declared.iter().any(is_said);
        if !says_so.is_empty() || is_taken {
            return;
        }
        let near = near.names.clone();
        self.edit(far, |pairs| {
            set(pairs, &back, Value::Names(near));
            if let Some(language) = language_of(kind)
                && !pairs.iter().any(|(name, _)| name == "language")
            {
                set(pairs, "language", Value::Text(language.to_owned()));
            }
        });
    }
}

fn view_of(directory: &Node) -> Option<View> {
    match directory {
        Node::File(_, view) => Some(*view),
        _ => None,
    }
}

/// The pair of an attribute's last word.
fn kind_of(word: &str) -> Option<String> {
    match word {
        "nextedition" | "metadata" | "editionof" | "metadataof" | "translationof" => {
            Some(format!("ibi.{word}"))
        }
        word => {
            let language = word.strip_prefix("translation.")?;
            Some(format!("ibi.translation({language})"))
        }
    }
}

/// Whether an item has the other as its translation into another language, too.
fn says_otherwise(item: &Item, kind: &str, other: &Names) -> bool {
    let mut relations = item.relations().into_iter();
    language_of(kind).is_some()
        && relations.any(|(known, names)| {
            known != kind && language_of(&known).is_some() && names.matches(other)
        })
}
