//! A naive tree of plain maps, and random operations on it and on a real mount: each answers the
//! same, and now and then the whole of both is compared.
//!
//! A run is identified by its seed: `IBIFS_TEST_SEED` does it again, `IBIFS_TEST_OPERATIONS` says how many
//! operations, and `IBIFS_TEST_SHRINK=1` looks for the fewest that still make a difference.

mod archive;
mod client;
mod dangling;
mod files;
mod operation;
mod perform;
mod random;
mod tree;
mod whole;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{Needs, Rng, TestEnv, seed, switch};
use archive::{Names, Pairs, written};
use client::{Call, Client, Reply};
use files::{Body, Ino};
use operation::{Act, Operation, Where};
use perform::Model;
use random::Random;
use tree::{View, Who, split};

/// The number of clients.
const CLIENTS: usize = 2;
/// After so many operations all is compared.
const WHOLE: usize = 4000;
/// A filesystem's clock is no coarser, also where the machine below a virtual one is busy.
const TICK: Duration = Duration::from_millis(100);
/// No user waits longer, whatever else the machine does: its disk may be busy for some seconds with what other tests write.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A mount, its clients, and the model of it.
struct Trial {
    model: Model,
    clients: Vec<Client>,
    /// The reported times of change, with the number of changes before, and the time of the report.
    times: HashMap<Ino, (u64, (i64, i64), Instant)>,
    longest: (Duration, String),
    /// Items before the mount, of those whose changes are told at its end.
    before: BTreeMap<usize, Before>,
    done: usize,
    last: Vec<String>,
    is_passing: bool,
    env: TestEnv,
}

/// The content of the files of an item by their paths, with what may have changed it; of a directory, by its path and a
/// slash, only the latter.
type ItemFiles = BTreeMap<String, (Vec<u8>, (Ino, u64))>;

/// An item of which changes are told.
#[derive(Debug)]
struct Before {
    files: ItemFiles,
    /// Mode, owner and group of its directory.
    rights: String,
    pairs: Option<Pairs>,
}

/// A difference, in words.
type Difference = String;

/// The lines of a history that have one of these names.
fn of_items(history: &str, names: &[&str]) -> String {
    let lines = history.lines();
    let of_them = lines.filter(|line| names.iter().any(|name| line.contains(name)));
    of_them.collect::<Vec<_>>().join("\n")
}

/// Names that the other Archive has given.
fn origins() -> Vec<Names> {
    let prefix = ibi::IbipPrefix::parse("8JMKD3MGP8W").expect("a good prefix");
    let one = |day: usize| {
        let rep = format!("example.net/archive-b/2024/01.{day:02}.10.00.0{}", day % 10);
        let date = ibi::Rep::parse(&rep).expect("a good rep").timestamp();
        let ibip = ibi::Ibip::mint(&prefix, &date).expect("a good date");
        Names {
            rep: Some(rep),
            ibip: Some(ibip.to_string()),
        }
    };
    (1..=9).map(one).collect()
}

impl Trial {
    fn start() -> Trial {
        let env = TestEnv::with(Needs::RenameFlags);
        env.sh(
            "ibifs init A.store --host archive-a.example.org > /dev/null; mkdir A; echo 'history yes' >> A.store/archive.ibi
             ibifs mount -o lang=en:fr A.store A",
        );
        let names = |text: &str| {
            let (rep, ibip) = text.split_once(' ').expect("a rep and an IBIp");
            Names {
                rep: Some(rep.to_owned()),
                ibip: Some(ibip.to_owned()),
            }
        };
        let service = names(&env.sh("ibifs ls A.store | sed 's/  */ /g' | cut -d ' ' -f 2,3"));
        let mut origins = origins();
        let other_service = origins.pop().expect("some names");
        let mut model = Model::new(service, other_service, CLIENTS);
        model.origins = origins
            .into_iter()
            .enumerate()
            .map(|(index, names)| (index + 1, names))
            .collect();
        let mut trial = Trial {
            model,
            clients: (0..CLIENTS).map(|_| Client::start()).collect(),
            times: HashMap::new(),
            longest: Default::default(),
            before: BTreeMap::new(),
            done: 0,
            last: Vec::new(),
            is_passing: true,
            env,
        };
        trial.enter().expect("the clients are in the mount");
        trial
    }

    /// Has all clients go to the mount's root.
    fn enter(&mut self) -> Result<(), Difference> {
        for client in 0..CLIENTS {
            let operation = Operation {
                client,
                who: Who::Root,
                act: Act::Enter(Where::At(String::new())),
            };
            self.perform(&operation)?;
        }
        Ok(())
    }

    fn mount(&self) -> PathBuf {
        self.env.root().join("A")
    }

    fn store(&self) -> PathBuf {
        self.env.root().join("A.store")
    }

    /// A path as a client gives it.
    fn path(&self, at: &Where) -> String {
        let text = self.model.text_of(at).unwrap_or_default();
        match at {
            Where::Here(_) => text,
            _ => self.mount().join(text).to_string_lossy().into_owned(),
        }
    }

    /// An operation with all that a client has to know for it.
    fn call(&self, operation: &Operation) -> Call {
        let item = |item: usize, view: View| {
            let path = self.model.path_of(item, view).unwrap_or_default();
            self.mount().join(path).to_string_lossy().into_owned()
        };
        let mut call = Call {
            operation: operation.clone(),
            paths: Vec::new(),
            text: String::new(),
            bytes: Vec::new(),
        };
        match &operation.act {
            Act::Stat(at)
            | Act::List(at)
            | Act::ReadLink(at)
            | Act::Enter(at)
            | Act::Get(at)
            | Act::RemoveDirectory(at)
            | Act::Remove(at)
            | Act::ListAttributes(at)
            | Act::Put { at, .. }
            | Act::Open { at, .. }
            | Act::Truncate { at, .. }
            | Act::MakeDirectory { at, .. }
            | Act::ChangeMode { at, .. }
            | Act::ChangeOwner { at, .. }
            | Act::GetAttribute { at, .. }
            | Act::RemoveAttribute { at, .. }
            | Act::MintRelated { at, .. } => call.paths.push(self.path(at)),
            Act::MakeLink { target: text, at }
            | Act::SetAttribute {
                at, value: text, ..
            } => {
                call.paths.push(self.path(at));
                call.text = self.model.text(text).unwrap_or_default();
            }
            Act::Link { from, to } | Act::Rename { from, to, .. } => {
                call.paths = vec![self.path(from), self.path(to)];
            }
            Act::Mint { label, .. } => call
                .paths
                .push(self.path(&Where::At(format!(".mint/{label}")))),
            Act::Bring { item, view } => {
                let mut path = self.model.path_of(*item, *view).unwrap_or_default();
                while !path.is_empty() {
                    call.paths.insert(0, self.path(&Where::At(path.clone())));
                    path = split(&path).0.to_owned();
                }
            }
            Act::RemoveItem { item: number, view } | Act::RemoveSidecar { item: number, view } => {
                call.paths.push(item(*number, *view));
            }
            Act::Sidecar {
                item: number,
                view,
                edits,
                ..
            } => {
                call.paths.push(item(*number, *view));
                let pairs = self.model.edited(*number, edits).unwrap_or_default();
                call.bytes = written(&pairs);
            }
            Act::Read { .. }
            | Act::Write { .. }
            | Act::Cut { .. }
            | Act::StatOpen { .. }
            | Act::Sync { .. }
            | Act::Close { .. }
            | Act::Remount { .. } => {}
        }
        call
    }

    /// Does an operation, the model's way and really.
    fn perform(&mut self, operation: &Operation) -> Result<(), Difference> {
        if !self.model.is_possible(operation) {
            return Ok(());
        }
        self.done += 1;
        let call = self.call(operation);
        let (paths, text) = (call.paths.join(" "), call.text.clone());
        let clients = match operation.act {
            Act::Remount { .. } => 0..CLIENTS,
            _ => operation.client..operation.client + 1,
        };
        let expected = self.model.perform(operation);
        let mut reply: Option<Reply> = None;
        for client in clients {
            reply = self.clients[client].perform(call.clone());
        }
        let number = self.done;
        let printed = format!("{number}: {operation:?}\n      {paths} {text}");
        let Some(reply) = reply else {
            return Err(format!("{printed}\n  no answer"));
        };
        self.last
            .push(format!("{printed}\n      {:?}", reply.answer));
        if self.last.len() > 30 {
            self.last.remove(0);
        }
        if reply.took > self.longest.0 {
            self.longest = (reply.took, printed.clone());
        }
        if !expected.is_met_by(&reply.answer) {
            let at = &self.model.clients[operation.client].directory;
            let met = &reply.answer;
            return Err(format!(
                "{printed}\n  in {at:?}\n  expected {expected:?}\n  met      {met:?}"
            ));
        }
        self.model.learn(operation, &reply.answer);
        self.check_time(&reply)
            .and_then(|()| self.check_landing())
            .map_err(|what| format!("{printed}\n  {what}"))?;
        if let Act::Remount { kill } = operation.act {
            self.remount(kill)?;
        }
        Ok(())
    }

    /// The time of change of a content that has not changed is the same, and else no earlier one; of a
    /// directory, a later one.
    fn check_time(&mut self, reply: &Reply) -> Result<(), Difference> {
        let (Some(ino), Some(time)) = (self.model.noticed, reply.time) else {
            return Ok(());
        };
        let (files, now) = (&self.model.tree.files, Instant::now());
        let (changes, changed) = (files.get(ino).changes, files.get(ino).changed);
        let must_differ = |seen: Instant| files.is_directory(ino) && changed > seen + TICK;
        match self.times.insert(ino, (changes, time, now)) {
            Some((before, old, _)) if before == changes && old != time => Err(format!(
                "not changed since {old:?}, but the time is {time:?}"
            )),
            Some((_, old, _)) if old > time => {
                Err(format!("changed later, but {time:?} is before {old:?}"))
            }
            Some((before, old, seen)) if before != changes && old == time && must_differ(seen) => {
                Err(format!("changed, but the time still is {old:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that appended bytes lie behind all that was there, in the store itself; a read may come from the
    /// kernel's memory.
    fn check_landing(&self) -> Result<(), Difference> {
        let Some(ino) = self.model.appended else {
            return Ok(());
        };
        let Some((item, path)) = self.model.place_of(ino) else {
            return Ok(());
        };
        let path = self
            .store()
            .join(self.model.place_in_store(item))
            .join(path);
        let met = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let Body::File(expected) = &self.model.tree.files.get(ino).body else {
            return Ok(());
        };
        if met == *expected {
            Ok(())
        } else {
            Err(format!(
                "appended, but {} has {} bytes that should be other {} bytes",
                path.display(),
                met.len(),
                expected.len()
            ))
        }
    }

    /// All is compared.
    fn whole(&mut self) -> Result<(), Difference> {
        self.model.tidy();
        let (mount, store) = (self.mount(), self.store());
        let real = whole::Real {
            mount: &mount,
            store: &store,
        };
        let found = whole::differences(&self.model, &real);
        if found.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "after {} operations:\n  {}",
                self.done,
                found.join("\n  ")
            ))
        }
    }

    fn mount_again(&mut self) {
        // The kernel reads and writes files, or the daemon, by turns.
        self.is_passing = !self.is_passing;
        let passthrough = if self.is_passing { "yes" } else { "no" };
        self.env.sh(&format!(
            "ibifs mount -o lang=en:fr,passthrough={passthrough} A.store A"
        ));
    }

    /// Ends the mount and starts it again; everything is as it was, but for labels.
    fn remount(&mut self, kill: bool) -> Result<(), Difference> {
        if kill {
            drop(self.env.sh("pid=$(daemon A.store); kill -9 $pid; while test -d /proc/$pid; do sleep .01; done; umount -l A"));
        } else {
            // Of an item that was not counted no change is told: it is new until it is left alone.
            self.sound(
                "for i in {1..600}; do
                     test 0 != $(in_database A.store/relations.sqlite3 \"SELECT count(*) FROM item WHERE state <> 'Deleted' AND id NOT IN (SELECT item FROM content)\") || break
                     sleep .1
                 done",
            )?;
            self.sound("ibifs umount A")?;
            self.checked()?;
            self.listed()?;
            self.told()?;
        }
        // What a killed daemon has not told yet is lost.
        self.before = if kill {
            BTreeMap::new()
        } else {
            self.counted()
        };
        self.mount_again();
        self.enter()?;
        self.whole()
    }

    /// Runs a script that must succeed.
    fn sound(&self, script: &str) -> Result<(), Difference> {
        let output = self.env.run(script);
        let printed = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            Ok(())
        } else {
            Err(format!("{script}\n{printed}{complaint}"))
        }
    }

    /// fsck finds what sidecars say against each other, as they may, and nothing else that is worse than a notice.
    fn checked(&self) -> Result<(), Difference> {
        let output = self.env.run("ibifs fsck A.store");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mentions_of = |line: &str| {
            if let Some((item, _)) = line
                .strip_prefix("edition-cycle: ")
                .and_then(|it| it.split_once(": "))
            {
                return Some(format!("{item} goes in a circle"));
            }
            let (item, claim) = line.strip_prefix("relations-differ: ")?.split_once(": ")?;
            let (_, claim) = claim.split_once(": its ")?;
            let (kind, claim) = claim.split_once(" is ")?;
            let (other, _) = claim.split_once(", and ")?.1.split_once(" says ")?;
            Some(format!("{item} {kind} {other}"))
        };
        let is_grave = |line: &str| line.ends_with("(warning)") || line.ends_with("(error)");
        let grave = |line: &str| is_grave(line).then(|| line.to_owned());
        let mut met: Vec<String> = printed
            .lines()
            .filter_map(|line| mentions_of(line).or_else(|| grave(line)))
            .collect();
        met.sort();
        let expected = self.model.tree.items.contested();
        // Contradicting statements of users make no check fail.
        if met == expected && output.status.success() {
            Ok(())
        } else {
            Err(format!(
                "ibifs fsck: {}, expected {expected:#?}\n{printed}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    }

    /// The items as `ibifs ls` lists them.
    fn listed(&self) -> Result<(), Difference> {
        let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
        let items = self
            .model
            .tree
            .items
            .items
            .iter()
            .filter(|(_, item)| item.is_known);
        let mut expected: Vec<String> = items
            .map(|(number, item)| {
                let Names { rep, ibip } = &item.names;
                format!(
                    "{} {} {}",
                    self.model.state(*number),
                    shown(rep),
                    shown(ibip)
                )
            })
            .collect();
        expected.sort();
        let met = self
            .env
            .sh("ibifs ls A.store | sed -E 's/  */ /g; s/ draft$//' | sort");
        if met == expected.join("\n") {
            Ok(())
        } else {
            Err(format!(
                "ibifs ls: expected\n{}\nmet\n{met}",
                expected.join("\n")
            ))
        }
    }

    /// The files of the items that the index has counted, which is when they are no new ones any more.
    fn counted(&self) -> BTreeMap<usize, Before> {
        let counted = self.env.sh(
            "in_database A.store/relations.sqlite3 'SELECT coalesce(rep, ibip) FROM item JOIN content ON content.item = item.id'",
        );
        let counted: BTreeSet<&str> = counted.lines().collect();
        let held = self.model.held().into_iter();
        let known = held.filter(|item| {
            let Names { rep, ibip } = &self.model.item(*item).names;
            let name = rep.as_ref().or(ibip.as_ref());
            name.is_some_and(|name| counted.contains(name.as_str()))
        });
        let before = |item| Before {
            files: self.files_of(item),
            rights: self.rights_of(item),
            pairs: self.model.item(item).pairs.clone(),
        };
        known.map(|item| (item, before(item))).collect()
    }

    fn rights_of(&self, item: usize) -> String {
        let root = self.model.tree.files.get(self.model.item(item).root);
        format!("{:04o} {}:{}", root.mode & 0o7777, root.uid, root.gid)
    }

    fn files_of(&self, item: usize) -> ItemFiles {
        let files = &self.model.tree.files;
        let mut found = ItemFiles::new();
        let mut waiting = vec![(String::new(), self.model.item(item).root)];
        while let Some((above, directory)) = waiting.pop() {
            let touched = files.get(directory).touched;
            found.insert(format!("{above}/"), (Vec::new(), (directory, touched)));
            for (name, ino) in files.names(directory) {
                let path = format!("{above}/{name}");
                let inode = files.get(*ino);
                let content = match &inode.body {
                    Body::Directory(_) => {
                        waiting.push((path, *ino));
                        continue;
                    }
                    Body::File(bytes) => bytes.clone(),
                    Body::Link(target) => target.clone().into_bytes(),
                };
                if !path.starts_with("/.ibi") {
                    found.insert(path, (content, (*ino, inode.touched)));
                }
            }
        }
        found
    }

    /// Files, rights and sidecar of an item have changed since the mount if that is told of it, and only then.
    fn told_changes(&self, history: &str) -> Result<(), Difference> {
        let lines = history.lines();
        let lines = lines.map(|line| serde_json::from_str(line).expect("JSON"));
        let mut events: Vec<serde_json::Value> = lines.collect();
        let text = |event: &serde_json::Value, name: &str| {
            event[name].as_str().unwrap_or_default().to_owned()
        };
        let mounted = events.iter().rposition(|it| text(it, "event") == "mounted");
        events.drain(..mounted.unwrap_or_default());
        for (number, before) in &self.before {
            let item = self.model.item(*number);
            if !item.is_held {
                continue;
            }
            let Names { rep, ibip } = &item.names;
            let is_its = |event: &&serde_json::Value| {
                let name = Some(text(event, "item"));
                name == *rep || name == *ibip
            };
            let of_it = events.iter().filter(is_its);
            let told: Vec<(String, String)> = of_it
                .map(|event| (text(event, "event"), text(event, "note")))
                .collect();
            let is = |words: &[&str]| told.iter().any(|(it, _)| words.contains(&it.as_str()));
            // It was another one meanwhile.
            if is(&["removed", "arrived", "restored"]) {
                continue;
            }
            let differs = |why: &str| {
                let names = &item.names;
                let names =
                    [&names.rep, &names.ibip].map(|name| name.as_deref().unwrap_or("no name"));
                format!("{}\nhistory: of {names:?} {why}", of_items(history, &names))
            };
            let now = self.files_of(*number);
            let content = |files: &ItemFiles| -> Vec<(String, Vec<u8>)> {
                let files = files.iter();
                files
                    .map(|(path, (content, _))| (path.clone(), content.clone()))
                    .collect()
            };
            let has_other = content(&before.files) != content(&now);
            if has_other && !is(&["changed"]) {
                let other = now.iter().filter(|(path, (content, _))| {
                    before.files.get(*path).is_none_or(|(it, _)| it != content)
                });
                let other: Vec<&String> = other.map(|(path, _)| path).collect();
                let paths: Vec<&String> = before.files.keys().collect();
                return Err(differs(&format!(
                    "no change is told: {other:?} is other than it was, of {paths:?}"
                )));
            }
            if is(&["changed"]) && before.files == now {
                return Err(differs(&format!("is told a change: {:?}", now.keys())));
            }
            let mut rights = before.rights.clone();
            for (event, note) in &told {
                if ["rights", "published"].contains(&event.as_str()) {
                    let (from, to) = note.split_once(" -> ").unwrap_or_default();
                    if from != rights || from == to {
                        return Err(differs(&format!("is told {note} after {rights}")));
                    }
                    to.clone_into(&mut rights);
                }
            }
            if rights != self.rights_of(*number) {
                let now = self.rights_of(*number);
                return Err(differs(&format!("is told {rights}, and it is {now}")));
            }
            let has_other = before.pairs != item.pairs;
            if has_other && !is(&["described", "related", "transferred"]) {
                let was = &before.pairs;
                return Err(differs(&format!(
                    "no change of {was:?} to {:?}",
                    item.pairs
                )));
            }
        }
        Ok(())
    }

    /// By its history each item is there or removed as it is by the list, and was minted once at most.
    fn told(&self) -> Result<(), Difference> {
        let history = self.env.sh("ibifs history A.store --json");
        self.told_changes(&history)?;
        let mut last: BTreeMap<String, (usize, String)> = BTreeMap::new();
        let mut minted = BTreeSet::new();
        for (number, line) in history.lines().enumerate() {
            let told: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let (Some(item), Some(event)) = (told["item"].as_str(), told["event"].as_str()) else {
                continue;
            };
            if event == "minted" && !minted.insert(item.to_owned()) {
                let events = of_items(&history, &[item]);
                return Err(format!("{events}\nhistory: {item} is minted twice"));
            }
            if ["minted", "arrived", "restored", "removed"].contains(&event) {
                last.insert(item.to_owned(), (number, event.to_owned()));
            }
        }
        let list = self.env.sh("ibifs ls A.store | sed -E 's/  */ /g'");
        for line in list.lines() {
            let mut words = line.split(' ');
            let state = words.next().unwrap_or_default();
            let told = words.filter_map(|name| last.remove(name)).max();
            let is_gone = told.as_ref().is_some_and(|(_, event)| event == "removed");
            // A directory without a sidecar has not arrived yet.
            let is_bare = told.is_none() && state == "Copy";
            if is_gone != (state == "Deleted") && !is_bare {
                let names: Vec<&str> = line.split(' ').skip(1).filter(|it| it.len() > 1).collect();
                let events = of_items(&history, &names);
                return Err(format!("{events}\nhistory: {line} is {told:?}"));
            }
        }
        match last.into_iter().find(|(_, (_, event))| event != "removed") {
            Some((item, (_, event))) => {
                let events = of_items(&history, &[&item]);
                Err(format!("{list}\n{events}\nhistory: {item} is {event}"))
            }
            None => Ok(()),
        }
    }

    /// The end: the store is sound, and a rebuilt index from it says the same.
    fn finish(mut self) -> Result<(Duration, String), Difference> {
        self.whole()?;
        for client in &mut self.clients {
            client.end();
        }
        self.sound("ibifs umount A")?;
        self.checked()?;
        self.listed()?;
        self.told()?;
        self.sound("lose_index A.store; ibifs reindex A.store")?;
        self.checked()?;
        self.listed()?;
        self.told()?;
        self.mount_again();
        self.model.perform(&Operation {
            client: 0,
            who: Who::Root,
            act: Act::Remount { kill: false },
        });
        self.whole()?;
        Ok(self.longest)
    }
}

/// Does operations from a list, to the first difference.
fn replay(operations: &[Operation]) -> Option<Difference> {
    let mut trial = Trial::start();
    for operation in operations {
        if let Err(difference) = trial.perform(operation) {
            return Some(difference);
        }
    }
    trial.finish().err()
}

/// Returns the lines that two runs have in common if they differ from the model in the same way.
fn essence(difference: &str) -> Vec<&str> {
    let printed = |line: &&str| line.starts_with("  expected") || line.starts_with("  met");
    let printed: Vec<&str> = difference.lines().filter(printed).collect();
    let act = difference.split("act: ").nth(1);
    let act = act.and_then(|act| act.split(|c: char| !c.is_alphabetic()).next());
    if printed.is_empty() {
        difference.split(' ').take(1).collect()
    } else {
        act.into_iter().chain(printed).collect()
    }
}

/// Leaves out what is not needed for a difference, half by half and then one by one.
fn shrink(mut operations: Vec<Operation>, difference: &str) -> Vec<Operation> {
    let is_same =
        |met: Option<Difference>| met.is_some_and(|met| essence(&met) == essence(difference));
    let end = Instant::now() + Duration::from_secs(300);
    let mut size = operations.len() / 2;
    while size > 0 {
        let mut start = 0;
        while start < operations.len() && Instant::now() < end {
            let mut fewer = operations.clone();
            fewer.drain(start..(start + size).min(operations.len()));
            if is_same(replay(&fewer)) {
                operations = fewer;
            } else {
                start += size;
            }
        }
        size /= 2;
    }
    operations
}

/// Two clients, both trees, two users: whatever they do, the mount answers as the model does, also
/// after two remounts and a daemon that was killed.
#[test]
fn random_operations_answer_as_the_model_does() {
    let seed = seed();
    let count = switch("IBIFS_TEST_OPERATIONS").unwrap_or(15_000) as usize;
    let mut random = Random::new(Rng::from_seed(seed));
    let mut trial = Trial::start();
    let mut all = Vec::new();
    let started = Instant::now();
    let outcome = 'run: {
        while trial.done < count {
            let remounts = [count / 4, count / 2, count * 3 / 4];
            let before = trial.done;
            for operation in random.next(&trial.model) {
                all.push(operation.clone());
                if let Err(difference) = trial.perform(&operation) {
                    break 'run Err(difference);
                }
            }
            let passed = |number: usize| before < number && trial.done >= number;
            if let Some(which) = remounts.iter().position(|number| passed(*number)) {
                let operation = Operation {
                    client: 0,
                    who: Who::Root,
                    act: Act::Remount { kill: which == 1 },
                };
                all.push(operation.clone());
                if let Err(difference) = trial.perform(&operation) {
                    break 'run Err(difference);
                }
            } else if before / WHOLE != trial.done / WHOLE
                && let Err(difference) = trial.whole()
            {
                break 'run Err(difference);
            }
        }
        Ok(())
    };
    let last = trial.last.join("\n    ");
    let done = trial.done;
    match outcome.and_then(|()| trial.finish()) {
        Ok((longest, which)) => {
            println!(
                "{done} operations in {:?}, the longest {longest:?}:\n{which}",
                started.elapsed()
            );
            assert!(longest < TIMEOUT, "seed {seed}: {longest:?} for {which}");
        }
        Err(difference) => {
            if switch("IBIFS_TEST_SHRINK").is_some() {
                println!("fewest operations:");
                for operation in shrink(all, &difference) {
                    println!("    {operation:?}");
                }
            }
            let again = format!("IBIFS_TEST_SEED={seed} IBIFS_TEST_OPERATIONS={count}");
            // Not captured with the rest, which a log of a whole run may lack.
            let _ = writeln!(std::io::stderr(), "model: again: {again}\n{difference}");
            panic!(
                "{difference}\n\
                 again: {again}\n\
                 after {done} operations, the last ones\n    {last}"
            );
        }
    }
}
