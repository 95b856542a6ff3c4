//! Keys that an Archive signs with, each in a directory of the store that only its owner may enter.

use std::io::Read;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::tree::{Action, Tree, TreeError};
use crate::formats::fixity::Digest;
use crate::formats::tlog::note::{KeyKind, SignerKey};
use crate::os::directory::Directory;
use crate::os::random;
use crate::os::writing::{self, Durability};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The files with a key, and with the public part of it.
const KEY: &str = "key";
const PUBLIC_KEY: &str = "key.pub";
/// The longest text of a key that is read, in bytes.
const LONGEST: u64 = 4096;

/// The reason why there is no key, or it cannot be used.
#[derive(Debug)]
pub enum KeyError {
    /// The system refuses something.
    System(TreeError),
    /// A file has other content than was written there.
    Damaged {
        /// Its path in the store.
        path: String,
        /// The directory of the key.
        directory: &'static str,
    },
}

impl Localize for KeyError {
    fn message(&self) -> Message {
        match self {
            KeyError::System(error) => error.message(),
            KeyError::Damaged { path, directory } => message!(
                "'{path}' of the store is damaged; move '{directory}' away to begin with another key",
                path,
                directory
            ),
        }
    }
}

display_message!(KeyError);

impl std::error::Error for KeyError {}

pub(super) fn failed(action: Action, path: &str, errno: Errno) -> KeyError {
    KeyError::System(TreeError::new(action, path, errno))
}

pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Opens the directory of a key in the store, and makes it where it is missing. It is locked, and the lock ends with the
/// descriptor, which no one else has.
pub(super) fn key_directory(store: &Tree, name: &str) -> Result<Directory, KeyError> {
    let opened = || {
        let above = Directory::reopened(store.root())?;
        let directory = match above.make_directory(name, 0o700) {
            Err(Errno::EXIST) => above.directory(name)?,
            made => {
                above.sync()?;
                made?
            }
        };
        rustix::fs::flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    };
    opened().map_err(|errno| failed(Action::Open, name, errno))
}

/// Makes a file, which is on disk when this returns.
pub(super) fn make(
    directory: &Directory,
    name: &str,
    bytes: &[u8],
    mode: u32,
) -> Result<(), Errno> {
    let new = format!("{name}.new");
    // Left behind by a crash: only who holds the lock writes here.
    let _ = directory.remove_file(&new);
    let file = writing::create(directory, &new, bytes, mode, None)?;
    let (from, to) = ((directory, new.as_str()), (directory, name));
    writing::rename_into_place(&file, from, to, Durability::Synced)?;
    directory.sync()
}

/// Reads the key in a directory, or makes one, which has this name and is of this kind.
pub(super) fn key(
    directory: &Directory,
    above: &'static str,
    (name, kind): (&str, KeyKind),
) -> Result<SignerKey, KeyError> {
    let path = format!("{above}/{KEY}");
    let damaged = || KeyError::Damaged {
        path: path.clone(),
        directory: above,
    };
    let seed = match directory.file(KEY) {
        Ok(file) => {
            let mut text = Vec::new();
            let read = file.take(LONGEST).read_to_end(&mut text);
            read.map_err(|error| failed(Action::Read, &path, errno_of(&error)))?;
            Digest::parse(text.trim_ascii_end()).ok_or_else(damaged)?.0
        }
        Err(Errno::NOENT) => {
            let drawn = random::draw::<32>();
            let seed = drawn.map_err(|errno| failed(Action::Read, random::SOURCE, errno))?;
            let text = format!("{}\n", Digest(seed));
            let made = make(directory, KEY, text.as_bytes(), 0o600);
            made.map_err(|errno| failed(Action::Make, &path, errno))?;
            seed
        }
        Err(errno) => return Err(failed(Action::Open, &path, errno)),
    };
    let key = SignerKey::new(name, kind, &seed).map_err(|_| damaged())?;
    let text = format!("{}\n", key.verifier());
    let made = make(directory, PUBLIC_KEY, text.as_bytes(), 0o644);
    let shown = format!("{above}/{PUBLIC_KEY}");
    made.map_err(|errno| failed(Action::Make, &shown, errno))?;
    Ok(key)
}
