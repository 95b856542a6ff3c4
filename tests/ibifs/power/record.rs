//! The record of operations and answers, in their order, and of the moment of the cut.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a client stops.
#[derive(Debug)]
pub enum Stop {
    /// The power is cut.
    Cut,
    /// Something was refused before the power was cut.
    Refused(String),
}

/// The steps of all clients.
#[derive(Debug)]
pub struct Record {
    lines: Mutex<Vec<String>>,
    begun: AtomicUsize,
    /// At which numbers of begun steps something is to happen to the disk.
    moments: Vec<usize>,
    tell: Sender<()>,
    cut: AtomicBool,
}

impl Record {
    pub fn new(moments: Vec<usize>, tell: Sender<()>) -> Record {
        Record {
            lines: Mutex::default(),
            begun: AtomicUsize::new(0),
            moments,
            tell,
            cut: AtomicBool::new(false),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn say(&self, line: String) {
        self.lines().push(line);
    }

    /// From now on what fails is no failure.
    pub fn power_goes(&self) {
        self.cut.store(true, Ordering::SeqCst);
        self.say("-- the power is cut".to_owned());
    }

    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// One step of a client: begun, done, answered.
    pub fn step<T, E: std::fmt::Display>(
        &self,
        client: usize,
        what: impl Fn() -> String,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Stop> {
        if self.is_cut() {
            return Err(Stop::Cut);
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        self.say(format!("{number} client {client}: {}", what()));
        if self.moments.contains(&number) {
            // There is no listener when the cut is over.
            let _ = self.tell.send(());
        }
        let outcome = act();
        // Answers from now on are ignored: XFS, for one, may say that a file is synced when it is being cut off.
        match outcome {
            Ok(_) if self.is_cut() => {
                self.say(format!("{number} done, unheard"));
                Err(Stop::Cut)
            }
            Ok(value) => {
                self.say(format!("{number} done"));
                Ok(value)
            }
            Err(error) => {
                self.say(format!("{number} failed: {error}"));
                if self.is_cut() {
                    Err(Stop::Cut)
                } else {
                    Err(Stop::Refused(format!("{number} {}: {error}", what())))
                }
            }
        }
    }

    /// Returns the number of steps that were begun.
    pub fn count(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Adds the record to a file.
    pub fn keep(&self, file: &Path, title: &str) {
        let mut text = format!("== {title}\n");
        for line in self.lines().iter() {
            let _ = writeln!(text, "{line}");
        }
        let mut options = std::fs::OpenOptions::new();
        let opened = options.append(true).create(true).open(file);
        let mut opened = opened.expect("a record");
        std::io::Write::write_all(&mut opened, text.as_bytes()).expect("a record");
    }
}
