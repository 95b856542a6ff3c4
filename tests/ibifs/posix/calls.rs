//! The calls that a step can make, by name.

mod attributes;
mod content;
mod directories;
mod extended;
mod flags;
mod locks;
mod names;
mod opening;
mod processes;
mod space;
mod words;

use std::collections::BTreeMap;

use super::row::Step;
use super::system::{acting_as, errno_name, sys};
use words::Words;

/// The answer of a call: a text to compare, empty where success says it all, or an errno.
type Outcome = Result<String, i32>;

/// The descriptors, mappings, children and inode numbers that a row holds between its steps.
#[derive(Debug, Default)]
pub struct Bench {
    files: BTreeMap<String, i32>,
    maps: BTreeMap<String, (usize, usize)>,
    children: BTreeMap<String, i32>,
    inodes: BTreeMap<String, u64>,
}

/// Takes a step and says what came of it.
pub fn take(bench: &mut Bench, step: &Step) -> String {
    match acting_as(step.user, || perform(bench, step)) {
        Ok(text) if text.is_empty() => "ok".to_owned(),
        Ok(text) => text,
        Err(errno) => errno_name(errno),
    }
}

fn perform(bench: &mut Bench, step: &Step) -> Outcome {
    let words = Words::new(step);
    let rooms = [
        names::call,
        opening::call,
        content::call,
        attributes::call,
        extended::call,
        space::call,
        locks::call,
        directories::call,
        flags::call,
        processes::call,
    ];
    let mut outcomes = rooms.iter().filter_map(|call| call(bench, &words));
    outcomes
        .next()
        .unwrap_or_else(|| panic!("no such call: {}", step.text))
}

fn done(answer: super::system::Answer) -> Outcome {
    answer.map(|_| String::new())
}

impl Bench {
    fn file(&self, words: &Words<'_>, at: usize) -> i32 {
        let name = words.word(at);
        let found = self.files.get(name);
        // A row whose open fails goes on; what it then does with nothing is EBADF for all.
        found.copied().unwrap_or(-1)
    }

    fn keep(&mut self, words: &Words<'_>, descriptor: i64) {
        let descriptor = descriptor as i32;
        match &words.step.bound {
            Some(name) => {
                if let Some(old) = self.files.insert(name.clone(), descriptor) {
                    let _ = sys!(SYS_close, old);
                }
            }
            None => {
                let _ = sys!(SYS_close, descriptor);
            }
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for (address, length) in self.maps.values() {
            let _ = sys!(SYS_munmap, *address, *length);
        }
        for descriptor in self.files.values() {
            let _ = sys!(SYS_close, *descriptor);
        }
        for child in self.children.values() {
            let _ = sys!(SYS_kill, *child, libc::SIGKILL);
            let _ = sys!(SYS_wait4, *child, 0, 0, 0);
        }
    }
}
