//! Files outside the store, and whether they were touched.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::TestEnv;

/// The content of every file outside; nothing inside has it.
pub const SECRET: &str = "what-nobody-inside-may-learn";

/// A directory outside a store, in which every file is as it was.
#[derive(Debug)]
pub struct Canary {
    pub path: PathBuf,
    before: BTreeMap<PathBuf, String>,
}

impl Canary {
    /// Makes `outside` in a test environment: files, directories and a database of the names that lie in stores,
    /// old, of several owners and modes.
    pub fn new(env: &TestEnv) -> Canary {
        env.sh(&format!(
            "mkdir outside; cd outside
             for d in . item item/doc item/doc/a level level/2026 level/2026/item/doc/a \
                      staging staging/deep deleted/col empty; do
                 mkdir -p $d; for f in f g notes .ibi .ibi.metadata ledger lock secret; do
                     printf 'title: {SECRET}\\nlanguage {SECRET}\\n' > $d/$f
                 done
             done
             rm -r empty; mkdir empty
             python3 -c 'import sqlite3; c = sqlite3.connect(\"base\"); c.execute(\"create table item(rep)\"); c.commit()'
             mkfifo fifo; chmod 600 secret; chmod 700 level; chmod 4755 g; chown 60001:60002 f item/f item
             setfacl -m u:60002:r notes; setfattr -n user.secret -v {SECRET} f item
             find . -exec touch -h -d 2001-02-03T04:05:06 {{}} +; cd .."
        ));
        let path = env.root().join("outside");
        let before = portrait(&path);
        assert!(before.len() > 50, "{before:#?}");
        Canary { path, before }
    }

    /// Returns the differences from before, a line each.
    pub fn differences(&self) -> Vec<String> {
        let now = portrait(&self.path);
        let mut printed = Vec::new();
        for (path, before) in &self.before {
            match now.get(path) {
                Some(after) if after == before => {}
                after => printed.push(format!("{}: {before} -> {after:?}", path.display())),
            }
        }
        let new = now.keys().filter(|path| !self.before.contains_key(*path));
        printed.extend(new.map(|path| format!("{} is new", path.display())));
        printed
    }

    /// It was not touched.
    #[track_caller]
    pub fn is_untouched(&self, by: &str) {
        let printed = self.differences();
        assert!(printed.is_empty(), "by {by}:\n{}", printed.join("\n"));
    }
}

/// Every path with its stat, xattrs and content. Neither time of access, nor link count and
/// change time, which a user who links a file into the store changes.
fn portrait(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let stat = path.symlink_metadata().expect("it is there");
        let mut line = format!(
            "{:o} {}:{} {} {}.{:09}",
            stat.mode(),
            stat.uid(),
            stat.gid(),
            stat.size(),
            stat.mtime(),
            stat.mtime_nsec()
        );
        let mut names = vec![0u8; 4096];
        let count = rustix::fs::llistxattr(&path, &mut names[..]).expect("names");
        for name in names[..count].split(|byte| *byte == 0) {
            let name = String::from_utf8_lossy(name);
            let mut value = vec![0u8; 4096];
            if let Ok(count) = rustix::fs::lgetxattr(&path, &*name, &mut value[..]) {
                line.push_str(&format!(" {name}={:?}", &value[..count]));
            }
        }
        if stat.is_dir() {
            let names = std::fs::read_dir(&path).expect("a listing");
            waiting.extend(names.map(|entry| entry.expect("a name").path()));
        } else if stat.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            line.push_str(&format!(" {:?}", String::from_utf8_lossy(&bytes)));
        }
        found.insert(path, line);
    }
    found
}
