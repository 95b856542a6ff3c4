//! The key that signs the log, and the keys that did before.
//!
//! A log gets another key in these steps, after each of which a crash leaves a log that goes on: the new key is drawn, the
//! checkpoint is signed with both keys, the old key is noted with that checkpoint, from which moment on the log is that of the
//! new key, and the files of the keys are replaced.

use super::error::{LogFileError, failed};
use super::files::{CHECKPOINT, LogFiles, PUBLIC, PUBLIC_KEY, Writing, shown};
use super::line::bytes_of;
use crate::archive::tree::Action;
use crate::formats::hex::Hex;
use crate::formats::tlog::checkpoint::Checkpoint;
use crate::formats::tlog::note::{KeyKind, Note, SignerKey, VerifierKey};
use crate::os::random;

/// The seed of the key that signs checkpoints, in hexadecimal digits.
const KEY: &str = "key";

/// The seed of the key that signs them later.
pub(super) const NEXT_KEY: &str = "key.next";

/// The keys with which they were signed before.
pub(super) const OLD_KEYS: &str = "old-keys";

/// The mode of a key.
const SECRET: u32 = 0o600;

/// The text between two old keys.
const BETWEEN: &str = "\n\n";

/// A key that a log had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldKey {
    /// The key.
    pub key: VerifierKey,
    /// The last checkpoint that it has signed, as has the key after it.
    pub note: Note,
    /// The checkpoint.
    pub last: Checkpoint,
}

impl OldKey {
    fn parse(text: &str) -> Option<OldKey> {
        let (key, note) = text.split_once('\n')?;
        let (key, note) = (VerifierKey::parse(key).ok()?, Note::parse(note).ok()?);
        let last = Checkpoint::open(&note, &key).ok()?;
        Some(OldKey { key, note, last })
    }
}

/// Reads the keys that a log had, the oldest first.
pub(super) fn old_keys(files: &LogFiles) -> Result<Vec<OldKey>, LogFileError> {
    let text = files.text(OLD_KEYS)?.unwrap_or_default();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let texts = text.split("\n\n\n").filter(|text| !text.is_empty());
    let keys = texts.map(|text| OldKey::parse(&format!("{text}\n")));
    let path = shown(OLD_KEYS);
    let keys: Option<Vec<_>> = keys.collect();
    keys.ok_or(LogFileError::Damaged { path })
}

/// Reads the key that checks the checkpoint. None if there is none yet.
pub(super) fn public_key(files: &LogFiles) -> Result<Option<VerifierKey>, LogFileError> {
    let Some(text) = files.text(PUBLIC_KEY)? else {
        return Ok(None);
    };
    let path = shown(PUBLIC_KEY);
    let key = VerifierKey::parse(&text).ok();
    let key = key.filter(|it| format!("{it}\n") == text);
    key.map(Some).ok_or(LogFileError::Damaged { path })
}

/// Reads the key of a log, or draws that of a new one with this name, and ends what a crash has left of getting another key.
pub(super) fn key_of(
    files: &LogFiles,
    origin: &str,
    is_new: bool,
) -> Result<SignerKey, LogFileError> {
    let public = public_key(files)?;
    if is_new && public.is_none() && files.text(KEY)?.is_none() {
        draw(files, KEY)?;
    }
    // An Archive that has got another name goes on with its log.
    let origin = public.as_ref().map_or(origin, VerifierKey::name);
    let mut key = signer(files, KEY, origin)?;
    let old = old_keys(files)?;
    if old.iter().any(|old| old.key == *key.verifier()) {
        files.rename(NEXT_KEY, KEY)?;
        key = signer(files, KEY, origin)?;
    }
    match public {
        Some(public) if public == *key.verifier() => {}
        Some(public) if old.last().is_none_or(|old| old.key != public) => {
            let path = shown(PUBLIC_KEY);
            return Err(LogFileError::Damaged { path });
        }
        _ => publish(files, &key)?,
    }
    Ok(key)
}

/// Reads the key with which checkpoints are to be signed later, or draws it.
pub(super) fn next_key(files: &LogFiles, origin: &str) -> Result<SignerKey, LogFileError> {
    if files.text(NEXT_KEY)?.is_none() {
        draw(files, NEXT_KEY)?;
    }
    signer(files, NEXT_KEY, origin)
}

/// Notes the key of a log as an old one, with the last checkpoint, and puts the next one in its place.
pub(super) fn replace(
    files: &LogFiles,
    old: &SignerKey,
    next: &SignerKey,
    last: &Checkpoint,
) -> Result<(), LogFileError> {
    let text = last.to_string();
    let signatures = vec![old.signature_of(&text), next.signature_of(&text)];
    let note = Note { text, signatures }.to_string();
    let mut texts = files.text(OLD_KEYS)?.unwrap_or_default();
    if !texts.is_empty() {
        texts.push_str(BETWEEN);
    }
    texts.push_str(&format!("{}\n{note}", old.verifier()));
    LogFiles::check_length(OLD_KEYS, &texts)?;
    write(files, CHECKPOINT, &note, PUBLIC)?;
    write(files, OLD_KEYS, &texts, PUBLIC)?;
    files.rename(NEXT_KEY, KEY)?;
    publish(files, next)
}

fn publish(files: &LogFiles, key: &SignerKey) -> Result<(), LogFileError> {
    write(files, PUBLIC_KEY, &format!("{}\n", key.verifier()), PUBLIC)
}

fn draw(files: &LogFiles, path: &str) -> Result<(), LogFileError> {
    let seed: [u8; 32] = random::draw().map_err(failed(Action::Read, random::SOURCE))?;
    write(files, path, &format!("{}\n", Hex(&seed)), SECRET)
}

/// Writes a file of the log, and waits until it is on disk.
pub(super) fn write(
    files: &LogFiles,
    path: &str,
    text: &str,
    mode: u32,
) -> Result<(), LogFileError> {
    let mut writing = Writing::to(files);
    writing.file(path, text.as_bytes(), mode)?;
    writing.sync().map(drop)
}

/// Reads the key that signs.
pub(super) fn signing_key(files: &LogFiles, origin: &str) -> Result<SignerKey, LogFileError> {
    signer(files, KEY, origin)
}

fn signer(files: &LogFiles, file: &str, origin: &str) -> Result<SignerKey, LogFileError> {
    let path = shown(file);
    let text = files.text(file)?;
    let text = text.ok_or(LogFileError::Missing { path: path.clone() })?;
    let seed = text.strip_suffix('\n').and_then(bytes_of::<32>);
    let seed = seed.ok_or(LogFileError::Damaged { path })?;
    let origin = origin.to_owned();
    SignerKey::new(&origin, KeyKind::Ed25519, &seed).map_err(|_| LogFileError::Name { origin })
}
