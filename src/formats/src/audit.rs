//! Audits among Archives: each of two reads the files of items again, and shows the other that it did.
//!
//! A request, an answer and a proof are lines, signed as C2SP signed-note has it, and begin with what they are. Both sides draw
//! a nonce. The digest of a file is over both nonces, the keys of both Archives, the item, the path, the size, and then the
//! content, so that it cannot be computed without the content, before the nonces are known, or for another pair of Archives.
//! A side sends a digest over that and its role, so that the other side cannot send it back as its own.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};

use crate::base_url::{BaseUrl, Scheme};
use crate::copies::{Gone, decoded_words};
use crate::fixity::Digest;
use crate::item::Names;
use crate::tlog::LogError;
use crate::tlog::note::{Note, SignerKey, VerifierKey};
use ibi::Ibi;
use ibi::message::{Localize, Message};
use ibi::pairs::{Pairs, percent_decode, percent_encode};
use ibi::{display_message, message};

/// The address of requests, below the URL of an Archive.
pub const PATH: &str = "audit";
/// The address of the public key.
pub const KEY_PATH: &str = "audit-key";
/// The most items of a request.
pub const MOST_ITEMS: usize = 500;
/// The most withdrawals and removals of which a request tells.
pub const MOST_GONE: usize = 50;
/// The longest time of a request, in seconds.
pub const MOST_SECONDS: u64 = 3600;
/// The longest request or proof, in bytes.
pub const LONGEST_REQUEST: usize = 256 << 10;
/// The longest answer, in bytes.
pub const LONGEST_ANSWER: usize = 64 << 20;
/// The most files of an item that an answer lists.
pub const MOST_FILES: usize = 100_000;
/// The longest service and place of an Archive, in bytes.
const LONGEST_SAID: usize = 512;

/// The first lines, which keep the signatures of texts apart, also from those of other texts.
const REQUEST: &str = "ibifs-audit-1 request";
const ANSWER: &str = "ibifs-audit-1 answer";
const PROOF: &str = "ibifs-audit-1 proof";
/// The line of an answer that shows that it goes on.
const READING: &str = "reading";
/// The word of a line of a request about an item that was withdrawn or removed.
const GONE: &str = "gone";
/// The lines before the items of an answer.
const HEAD_LINES: usize = 7;

/// The reason for which a text of an audit is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditError {
    /// This line is not what an audit has there.
    Line(usize),
    /// The text is not signed, or not by the key that it names.
    Signature(LogError),
    /// No listed Archive has the key that it names.
    Unknown,
    /// It is for another Archive than this one, or for a key that it had before.
    OtherArchive,
    /// It is about another request.
    OtherRequest,
    /// It is about other items than were asked for.
    OtherItems,
}

impl Localize for AuditError {
    fn message(&self) -> Message {
        match self {
            AuditError::Line(line) => message!("line {line} is not one of an audit", line),
            AuditError::Signature(error) => error.message(),
            AuditError::Unknown => {
                message!("no Archive that 'audit' in archive.ibi lists has this key")
            }
            AuditError::OtherArchive => message!(
                "it is for another Archive than this one, or for a key that this one had before"
            ),
            AuditError::OtherRequest => message!("it belongs to another request"),
            AuditError::OtherItems => message!("it is about other items than were asked for"),
        }
    }
}

display_message!(AuditError);

impl std::error::Error for AuditError {}

impl From<LogError> for AuditError {
    fn from(error: LogError) -> AuditError {
        AuditError::Signature(error)
    }
}

/// The side of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The Archive that asks.
    Asker,
    /// The Archive that answers.
    Answerer,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Asker => "asker",
            Role::Answerer => "answerer",
        }
    }
}

/// The two Archives of an audit, by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The Archive that asks.
    pub asker: VerifierKey,
    /// The Archive that answers.
    pub answerer: VerifierKey,
}

impl Parties {
    fn parse(lines: &mut Lines<'_>) -> Result<Parties, AuditError> {
        let key = |word: &str| {
            let key = VerifierKey::parse(word).ok()?;
            (key.to_string() == word).then_some(key)
        };
        Ok(Parties {
            asker: lines.value("asker", key)?,
            answerer: lines.value("answerer", key)?,
        })
    }
}

impl std::fmt::Display for Parties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "asker {}\nanswerer {}", self.asker, self.answerer)
    }
}

/// A request to read items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRequest {
    /// The Archives.
    pub parties: Parties,
    /// Microseconds since 1970. Each request of an Archive is later than those before.
    pub time: u64,
    /// The nonce of the Archive that asks.
    pub nonce: Digest,
    /// The seconds after which no further item is read.
    pub seconds: u64,
    /// Whether the answer lists the files of items.
    pub wants_files: bool,
    /// Items that the Archive which asks has withdrawn or removed.
    pub gone: Vec<(Ibi, Gone)>,
    /// The items.
    pub items: Vec<Ibi>,
}

impl AuditRequest {
    /// The signed text.
    #[must_use]
    pub fn signed(&self, key: &SignerKey) -> String {
        signed(self.to_string(), key)
    }

    /// Parses a request that one of these keys has signed.
    ///
    /// # Errors
    /// It is no request, or none of these has signed it.
    pub fn open(text: &str, known: &[VerifierKey]) -> Result<AuditRequest, AuditError> {
        let note = Note::parse(text)?;
        let mut lines = Lines::of(&note.text, REQUEST)?;
        let parties = Parties::parse(&mut lines)?;
        if !known.contains(&parties.asker) {
            return Err(AuditError::Unknown);
        }
        note.check(&parties.asker)?;
        let seconds = |word: &str| number(word).filter(|it| (1..=MOST_SECONDS).contains(it));
        let request = AuditRequest {
            parties,
            time: lines.value("time", number)?,
            nonce: lines.value("nonce", hash)?,
            seconds: lines.value("seconds", seconds)?,
            wants_files: lines.value("files", |word| match word {
                "yes" => Some(true),
                "no" => Some(false),
                _ => None,
            })?,
            gone: lines.some(GONE, |line| {
                let mut words = line.split(' ');
                let item = ibi_of(words.next()?)?;
                let gone = Gone::parse(words)?;
                // In the one form in which it is written.
                (format!("{item} {gone}") == line).then_some((item, gone))
            })?,
            items: lines.rest(|lines| lines.value("item", ibi_of))?,
        };
        match request.items.len() {
            1..=MOST_ITEMS if request.gone.len() <= MOST_GONE => Ok(request),
            _ => Err(AuditError::Line(lines.at)),
        }
    }
}

impl std::fmt::Display for AuditRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = if self.wants_files { "yes" } else { "no" };
        write!(
            f,
            "{REQUEST}\n{}time {}\nnonce {}\nseconds {}\nfiles {files}\n",
            self.parties, self.time, self.nonce, self.seconds
        )?;
        for (item, gone) in &self.gone {
            writeln!(f, "{GONE} {item} {gone}")?;
        }
        self.items
            .iter()
            .try_for_each(|item| writeln!(f, "item {item}"))
    }
}

/// The nonces and the Archives that a digest is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The Archives.
    pub parties: Parties,
    /// The nonce of the Archive that asks, and that of the one that answers.
    pub nonces: (Digest, Digest),
}

impl Challenge {
    fn begun(&self, what: &str) -> Vec<u8> {
        let (asker, answerer) = self.nonces;
        let mut bytes = format!("ibifs-audit-1 {what}\n{}", self.parties).into_bytes();
        bytes.extend(asker.0);
        bytes.extend(answerer.0);
        bytes
    }

    /// The bytes before the content of a file, whose SHA-256 digest with it is the one that a side keeps.
    #[must_use]
    pub fn before(&self, item: &Ibi, path: &[u8], size: u64) -> Vec<u8> {
        let mut bytes = self.begun("content");
        push(&mut bytes, item.to_string().as_bytes());
        push(&mut bytes, path);
        bytes.extend(size.to_be_bytes());
        bytes
    }

    /// The digest of a file that a side sends.
    #[must_use]
    pub fn of_file(&self, role: Role, kept: &Digest) -> Digest {
        let mut bytes = self.begun(&format!("file of {}", role.word()));
        bytes.extend(kept.0);
        sha256(&bytes)
    }

    /// The digest of an item that a side sends, over those of its files that it keeps.
    #[must_use]
    pub fn of_item(&self, role: Role, item: &Ibi, kept: &BTreeMap<Vec<u8>, Digest>) -> Digest {
        let mut bytes = self.begun(&format!("item of {}", role.word()));
        push(&mut bytes, item.to_string().as_bytes());
        for (path, digest) in kept {
            push(&mut bytes, path);
            bytes.extend(digest.0);
        }
        sha256(&bytes)
    }
}

/// Adds bytes after their length, so that no two lists of them are the same.
fn push(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_be_bytes());
    bytes.extend(part);
}

fn sha256(bytes: &[u8]) -> Digest {
    Digest(
        digest(&SHA256, bytes)
            .as_ref()
            .try_into()
            .unwrap_or([0; 32]),
    )
}

/// An Archive, as it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidOfItself {
    /// Its service.
    pub service: Names,
    /// The place that it is in.
    pub place: Vec<String>,
}

impl SaidOfItself {
    fn parse(lines: &mut Lines<'_>) -> Result<SaidOfItself, AuditError> {
        let value = |lines: &mut Lines<'_>, name: &str| {
            let line = lines
                .next()
                .and_then(|line| Pairs::parse(line.as_bytes()).ok());
            line.and_then(|pairs| pairs.get(name).cloned())
        };
        let service = value(lines, "service");
        let service = service.and_then(|value| Names::from_value(&value).ok());
        let service = service.ok_or(AuditError::Line(lines.at))?;
        if service.preferred().len() > LONGEST_SAID {
            return Err(AuditError::Line(lines.at));
        }
        let place = value(lines, "place").map(|place| decoded_words(&place));
        // It comes into the ledger of each item.
        let length = |place: &Vec<String>| place.iter().map(String::len).sum::<usize>();
        let place = place.filter(|place| length(place) <= LONGEST_SAID);
        Ok(SaidOfItself {
            service,
            place: place.ok_or(AuditError::Line(lines.at))?,
        })
    }

    /// The name of the holder in a ledger: its service, if that is at the address of its key, and else its URL. Another Archive
    /// than that of the key is not taken for the holder, whatever it says.
    #[must_use]
    pub fn holder(service: Option<&str>, url: &BaseUrl, key: &VerifierKey) -> String {
        let service = service.filter(|service| is_at(service, key.name()));
        service.map_or_else(|| url.to_string(), str::to_owned)
    }

    /// The same of an Archive that has shown no key: its service, if that is at the address of its URL.
    #[must_use]
    pub fn holder_at(service: Option<&str>, url: &BaseUrl) -> String {
        let address = match url.address().strip_suffix(":80") {
            Some(host) if url.scheme() == Scheme::Http => host,
            _ => url.address(),
        };
        let service = service.filter(|service| is_at(service, address));
        service.map_or_else(|| url.to_string(), str::to_owned)
    }
}

impl std::fmt::Display for SaidOfItself {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place: Vec<String> = self.place.iter().map(percent_encode).collect();
        write!(
            f,
            "service {}\nplace {{{}}}\n",
            self.service,
            place.join(" ")
        )
    }
}

/// Whether the identifier of a service has an address.
fn is_at(service: &str, of: &str) -> bool {
    let names = Ibi::parse(service).ok().map(Names::from);
    let rep = names.as_ref().and_then(Names::rep);
    rep.is_some_and(|rep| {
        let address = match rep.port() {
            80 => rep.host(),
            port => format!("{}:{port}", rep.host()),
        };
        address == of
    })
}

/// Whether a ledger names the Archive at a URL with a key so: it had another service, or had said none.
#[must_use]
pub fn is_name_of(holder: &str, url: &BaseUrl, key: &VerifierKey) -> bool {
    holder == url.to_string() || is_at(holder, key.name())
}

/// The first lines of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// The nonces, of which the first is that of the request.
    pub challenge: Challenge,
    /// The Archive that answers.
    pub said: SaidOfItself,
}

impl AnswerHead {
    /// Parses the head of an answer to a request, once all its lines have come. None before that.
    ///
    /// # Errors
    /// It is no head, or that of another answer.
    pub fn parse(text: &str, request: &AuditRequest) -> Result<Option<AnswerHead>, AuditError> {
        if text.bytes().filter(|byte| *byte == b'\n').count() < HEAD_LINES {
            return Ok(None);
        }
        AnswerHead::read(&mut Lines::of(text, ANSWER)?, request).map(Some)
    }

    fn read(lines: &mut Lines<'_>, request: &AuditRequest) -> Result<AnswerHead, AuditError> {
        let parties = Parties::parse(lines)?;
        let nonces = (lines.value("asked", hash)?, lines.value("nonce", hash)?);
        if parties != request.parties || nonces.0 != request.nonce {
            return Err(AuditError::OtherRequest);
        }
        Ok(AnswerHead {
            challenge: Challenge { parties, nonces },
            said: SaidOfItself::parse(lines)?,
        })
    }
}

impl std::fmt::Display for AnswerHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Challenge { parties, nonces } = &self.challenge;
        write!(
            f,
            "{ANSWER}\n{parties}asked {}\nnonce {}\n{}",
            nonces.0, nonces.1, self.said
        )
    }
}

/// The answer for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemAnswer {
    /// Its files were read.
    Read(Digest),
    /// It is not held, or not shown to all.
    Missing,
    /// It could not be read.
    Unread,
    /// It was public, and was withdrawn or removed.
    Gone(Gone),
}

/// A line of an answer after its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerLine {
    /// A file of the item whose line follows.
    File(Vec<u8>, Digest),
    /// An item.
    Item(Ibi, ItemAnswer),
    /// A long file is being read.
    Reading,
    /// The end: whether all items were read, or the time was over.
    End(bool),
}

impl AnswerLine {
    /// Parses a line, without its end. None of any other text.
    #[must_use]
    pub fn parse(line: &str) -> Option<AnswerLine> {
        if line == READING {
            return Some(AnswerLine::Reading);
        }
        let mut words = line.split(' ');
        let read = match (words.next()?, words.next()?) {
            ("file", digest) => {
                let path = words.next().filter(|path| !path.is_empty())?;
                AnswerLine::File(percent_decode(path), hash(digest)?)
            }
            ("item", item) => {
                let answer = match words.next()? {
                    "missing" => ItemAnswer::Missing,
                    "unread" => ItemAnswer::Unread,
                    word @ ("removed" | "withdrawn") => {
                        let rest = std::iter::once(word).chain(words.by_ref());
                        ItemAnswer::Gone(Gone::parse(rest)?)
                    }
                    digest => ItemAnswer::Read(hash(digest)?),
                };
                AnswerLine::Item(ibi_of(item)?, answer)
            }
            ("end", "complete") => AnswerLine::End(true),
            ("end", "late") => AnswerLine::End(false),
            _ => return None,
        };
        words.next().is_none().then_some(read)
    }
}

impl std::fmt::Display for AnswerLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AnswerLine::File(path, digest) => writeln!(f, "file {digest} {}", percent_encode(path)),
            AnswerLine::Item(item, ItemAnswer::Read(digest)) => writeln!(f, "item {item} {digest}"),
            AnswerLine::Item(item, ItemAnswer::Missing) => writeln!(f, "item {item} missing"),
            AnswerLine::Item(item, ItemAnswer::Unread) => writeln!(f, "item {item} unread"),
            AnswerLine::Item(item, ItemAnswer::Gone(gone)) => writeln!(f, "item {item} {gone}"),
            AnswerLine::Reading => writeln!(f, "{READING}"),
            AnswerLine::End(true) => writeln!(f, "end complete"),
            AnswerLine::End(false) => writeln!(f, "end late"),
        }
    }
}

/// The files of an item as a side has sent them.
pub type SentFiles = BTreeMap<Vec<u8>, Digest>;

/// A whole answer, whose signature was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditAnswer {
    /// Its first lines.
    pub head: AnswerHead,
    /// The first items of the request, or all, with the files if these were asked for.
    pub items: Vec<(ItemAnswer, SentFiles)>,
}

impl AuditAnswer {
    /// Parses a whole answer to a request.
    ///
    /// # Errors
    /// The Archive that was asked has not signed it, or it is not about what was asked.
    pub fn open(text: &str, request: &AuditRequest) -> Result<AuditAnswer, AuditError> {
        let note = Note::parse(text)?;
        note.check(&request.parties.answerer)?;
        let mut lines = Lines::of(&note.text, ANSWER)?;
        let head = AnswerHead::read(&mut lines, request)?;
        let (mut items, mut files) = (Vec::new(), SentFiles::new());
        let mut asked = request.items.iter();
        let is_whole = loop {
            let line = lines.next().and_then(AnswerLine::parse);
            match line.ok_or(AuditError::Line(lines.at))? {
                AnswerLine::File(path, digest) => {
                    let is_new = files.insert(path, digest).is_none();
                    if !is_new || !request.wants_files || files.len() > MOST_FILES {
                        return Err(AuditError::Line(lines.at));
                    }
                }
                AnswerLine::Item(item, answer) => {
                    if asked.next() != Some(&item) {
                        return Err(AuditError::OtherItems);
                    }
                    items.push((answer, std::mem::take(&mut files)));
                }
                AnswerLine::Reading => {}
                AnswerLine::End(is_whole) => break is_whole,
            }
        };
        if is_whole != asked.next().is_none() || !files.is_empty() {
            return Err(AuditError::OtherItems);
        }
        match lines.next() {
            None => Ok(AuditAnswer { head, items }),
            Some(_) => Err(AuditError::Line(lines.at)),
        }
    }

    /// Its first lines, and the items.
    #[must_use]
    pub fn into_parts(self) -> (AnswerHead, Vec<(ItemAnswer, SentFiles)>) {
        (self.head, self.items)
    }

    /// The signature of an answer, after its lines and an empty one.
    #[must_use]
    pub fn signature(lines: &str, key: &SignerKey) -> String {
        format!("\n{}", key.signature_of(lines))
    }
}

/// The digests of items that the Archive which asks has computed, for the one that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditProof {
    /// Nonces and Archives.
    pub challenge: Challenge,
    /// The Archive that has asked.
    pub said: SaidOfItself,
    /// The items, in the order of the request.
    pub items: Vec<(Ibi, Digest)>,
}

impl AuditProof {
    /// Whether a text says that it is a proof, and no request.
    #[must_use]
    pub fn is_of(text: &str) -> bool {
        text.lines().next() == Some(PROOF)
    }

    /// The signed text.
    #[must_use]
    pub fn signed(&self, key: &SignerKey) -> String {
        signed(self.to_string(), key)
    }

    /// Parses a proof that one of these keys has signed.
    ///
    /// # Errors
    /// It is no proof, or none of these has signed it.
    pub fn open(text: &str, known: &[VerifierKey]) -> Result<AuditProof, AuditError> {
        let note = Note::parse(text)?;
        let mut lines = Lines::of(&note.text, PROOF)?;
        let parties = Parties::parse(&mut lines)?;
        if !known.contains(&parties.asker) {
            return Err(AuditError::Unknown);
        }
        note.check(&parties.asker)?;
        let nonces = (lines.value("asked", hash)?, lines.value("nonce", hash)?);
        let challenge = Challenge { parties, nonces };
        let said = SaidOfItself::parse(&mut lines)?;
        let items = lines.rest(|lines| {
            lines.value("item", |line| {
                let (item, digest) = line.split_once(' ')?;
                Some((ibi_of(item)?, hash(digest)?))
            })
        })?;
        match items.len() {
            0..=MOST_ITEMS => Ok(AuditProof {
                challenge,
                said,
                items,
            }),
            _ => Err(AuditError::Line(lines.at)),
        }
    }
}

impl std::fmt::Display for AuditProof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Challenge { parties, nonces } = &self.challenge;
        write!(
            f,
            "{PROOF}\n{parties}asked {}\nnonce {}\n{}",
            nonces.0, nonces.1, self.said
        )?;
        let mut items = self.items.iter();
        items.try_for_each(|(item, digest)| writeln!(f, "item {item} {digest}"))
    }
}

fn signed(text: String, key: &SignerKey) -> String {
    let signatures = vec![key.signature_of(&text)];
    Note { text, signatures }.to_string()
}

/// Lines of a word and its value.
struct Lines<'a> {
    rest: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str, first: &str) -> Result<Lines<'a>, AuditError> {
        let mut lines = Lines { rest: text, at: 0 };
        let is_it = lines.next() == Some(first);
        is_it.then_some(lines).ok_or(AuditError::Line(1))
    }

    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        let (line, rest) = self.rest.split_once('\n')?;
        self.rest = rest;
        Some(line)
    }

    fn value<T>(
        &mut self,
        word: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, AuditError> {
        let line = self.next().and_then(|line| line.split_once(' '));
        let value = line.filter(|(first, _)| *first == word);
        let value = value.and_then(|(_, value)| read(value));
        value.ok_or(AuditError::Line(self.at))
    }

    /// The values of the lines with this word that follow.
    fn some<T>(
        &mut self,
        word: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, AuditError> {
        let mut found = Vec::new();
        while self.rest.split(' ').next() == Some(word) {
            found.push(self.value(word, &read)?);
        }
        Ok(found)
    }

    /// The values of all lines that follow.
    fn rest<T>(
        &mut self,
        read: impl Fn(&mut Lines<'a>) -> Result<T, AuditError>,
    ) -> Result<Vec<T>, AuditError> {
        let mut found = Vec::new();
        while !self.rest.is_empty() {
            found.push(read(self)?);
        }
        Ok(found)
    }
}

/// An identifier in the one form in which it is written.
fn ibi_of(text: &str) -> Option<Ibi> {
    let ibi = Ibi::parse(text).ok()?;
    (ibi.to_string() == text).then_some(ibi)
}

fn hash(text: &str) -> Option<Digest> {
    let digest = Digest::parse(text.as_bytes())?;
    (digest.to_string() == text).then_some(digest)
}

fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlog::note::KeyKind;
    use ibi::Timestamp;

    fn key(name: &str, seed: u8) -> SignerKey {
        SignerKey::new(name, KeyKind::Ed25519, &[seed; 32]).expect("a key")
    }

    fn asker() -> SignerKey {
        key("a.example.org", 1)
    }

    fn answerer() -> SignerKey {
        key("b.example.org:8080", 2)
    }

    fn items() -> Vec<Ibi> {
        ["8JMKD3MGP8W/34PGRBS", "a.example.org/x/2008/03.17.15.17"]
            .map(|text| Ibi::parse(text).expect("an identifier"))
            .to_vec()
    }

    fn request(wants_files: bool) -> AuditRequest {
        AuditRequest {
            parties: Parties {
                asker: asker().verifier().clone(),
                answerer: answerer().verifier().clone(),
            },
            time: 1_764_489_600_000_001,
            nonce: Digest([3; 32]),
            seconds: 60,
            wants_files,
            gone: Vec::new(),
            items: items(),
        }
    }

    fn head() -> AnswerHead {
        let service = Pairs::parse(b"service {rep b.example.org/s/2026/01.01.00.00}");
        let service = service.expect("a pair").get("service").cloned();
        AnswerHead {
            challenge: Challenge {
                parties: request(false).parties,
                nonces: (Digest([3; 32]), Digest([4; 32])),
            },
            said: SaidOfItself {
                service: Names::from_value(&service.expect("a value")).expect("names"),
                place: vec!["br".to_owned(), "s\u{e3}o paulo".to_owned()],
            },
        }
    }

    fn answered(lines: &[AnswerLine]) -> String {
        let lines: String = lines.iter().map(AnswerLine::to_string).collect();
        let text = format!("{}{lines}", head());
        format!("{text}{}", AuditAnswer::signature(&text, &answerer()))
    }

    fn item(number: usize, answer: ItemAnswer) -> AnswerLine {
        AnswerLine::Item(items()[number].clone(), answer)
    }

    #[test]
    fn a_request_is_read_back_if_a_listed_archive_has_signed_it() {
        let known = [asker().verifier().clone()];
        for wants_files in [false, true] {
            let request = request(wants_files);
            let text = request.signed(&asker());
            assert_eq!(AuditRequest::open(&text, &known), Ok(request));
        }
        let at = Timestamp::parse_rfc3339("2026-11-29T00:00:00Z").expect("a time");
        let gone = [
            Gone::new(true, &at, "it is wrong"),
            Gone::new(false, &at, ""),
        ];
        let telling = AuditRequest {
            gone: items().into_iter().zip(gone.clone()).collect(),
            ..request(false)
        };
        let text = telling.signed(&asker());
        assert_eq!(AuditRequest::open(&text, &known), Ok(telling));
        let text = request(false).signed(&asker());
        assert_eq!(AuditRequest::open(&text, &[]), Err(AuditError::Unknown));
        let others = [answerer(), key("a.example.org", 9)].map(|it| it.verifier().clone());
        assert_eq!(AuditRequest::open(&text, &others), Err(AuditError::Unknown));
        let forged = request(false).signed(&key("a.example.org", 9));
        assert!(matches!(
            AuditRequest::open(&forged, &known),
            Err(AuditError::Signature(_))
        ));
        for (from, to) in [
            ("files no", "files yes"),
            ("seconds 60", "seconds 61"),
            ("34PGRBS", "34PGRBT"),
            ("request", "answer"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert!(AuditRequest::open(&changed, &known).is_err(), "{changed}");
        }
    }

    #[test]
    fn what_is_no_request() {
        let known = [asker().verifier().clone()];
        let good = request(false).to_string();
        let (head, _) = good.split_once("item ").expect("items");
        let with = |count| format!("{head}{}", format!("item {}\n", items()[0]).repeat(count));
        for (text, line) in [
            (good.replace("audit-1", "audit-2"), 1),
            (good.replace("asker ", "asker  "), 2),
            (good.replace("time 1", "time 01"), 4),
            (good.replace("nonce 03", "nonce 3"), 5),
            (good.replace("seconds 60", "seconds 0"), 6),
            (good.replace("seconds 60", "seconds 3601"), 6),
            (good.replace("files no", "files maybe"), 7),
            (good.replace("item 8", "items 8"), 8),
            (good.replace("item 8JMKD3", "item  8JMKD3"), 8),
            (format!("{good}item\n"), 10),
            (good.replacen("item", "gone", 1), 8),
            (
                good.replacen(
                    "item",
                    &format!("gone {} lost 2026-11-29T00:00:00Z\nitem", items()[0]),
                    1,
                ),
                8,
            ),
            (
                good.replacen(
                    "item",
                    &format!("gone {}  removed 2026-11-29T00:00:00Z\nitem", items()[0]),
                    1,
                ),
                8,
            ),
            (
                good.replacen(
                    "item",
                    &(format!("gone {} removed 2026-11-29T00:00:00Z\n", items()[0])
                        .repeat(MOST_GONE + 1)
                        + "item"),
                    1,
                ),
                9 + MOST_GONE + 1,
            ),
            (with(0), 7),
            (with(MOST_ITEMS + 1), 7 + MOST_ITEMS + 1),
        ] {
            let signed = signed(text, &asker());
            let opened = AuditRequest::open(&signed, &known);
            assert_eq!(opened, Err(AuditError::Line(line)), "{signed}");
        }
        assert!(AuditRequest::open(&signed(with(MOST_ITEMS), &asker()), &known).is_ok());
        for text in ["", "\n\n", "ibifs-audit-1 request\n\n"] {
            assert!(AuditRequest::open(text, &known).is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_answer_is_read_back() {
        for gone in [
            "withdrawn 2026-11-29T00:00:00Z no%20more",
            "removed 2026-11-29T00:00:00Z",
        ] {
            let line = format!("item {} {gone}", items()[0]);
            let parsed = AnswerLine::parse(&line).expect("a line");
            assert!(matches!(parsed, AnswerLine::Item(_, ItemAnswer::Gone(_))));
            assert_eq!(parsed.to_string(), line.clone() + "\n");
            assert_eq!(AnswerLine::parse(&(line + " x y")), None);
        }
        let digest = ItemAnswer::Read(Digest([5; 32]));
        let text = answered(&[
            item(0, digest.clone()),
            item(1, ItemAnswer::Missing),
            AnswerLine::End(true),
        ]);
        let none = SentFiles::new;
        let expected = AuditAnswer {
            head: head(),
            items: vec![(digest.clone(), none()), (ItemAnswer::Missing, none())],
        };
        assert_eq!(AuditAnswer::open(&text, &request(false)), Ok(expected));
        let heads = (0..text.len()).filter_map(|end| {
            let text = text.get(..end)?;
            AnswerHead::parse(text, &request(false)).expect("a head, or part of one")
        });
        assert!(heads.inspect(|it| assert_eq!(*it, head())).count() > 100);
        let path = b"doc/\xff x\n".to_vec();
        let text = answered(&[
            AnswerLine::Reading,
            AnswerLine::File(path.clone(), Digest([6; 32])),
            item(0, digest.clone()),
            AnswerLine::End(false),
        ]);
        let files = SentFiles::from([(path, Digest([6; 32]))]);
        let answer = AuditAnswer::open(&text, &request(true)).expect("an answer");
        assert_eq!(answer.items, vec![(digest, files)]);
        // No files were asked for.
        let opened = AuditAnswer::open(&text, &request(false));
        assert_eq!(opened, Err(AuditError::Line(9)));
    }

    #[test]
    fn an_answer_is_about_what_was_asked() {
        let digest = ItemAnswer::Read(Digest([5; 32]));
        let (one, two) = (item(0, digest.clone()), item(1, digest.clone()));
        let (end, late) = (AnswerLine::End(true), AnswerLine::End(false));
        let good = answered(&[one.clone(), two.clone(), end.clone()]);
        let open = |text: &str| AuditAnswer::open(text, &request(true));
        assert!(open(&good).is_ok());
        // One that was given before, or to another Archive.
        let later = AuditRequest {
            nonce: Digest([9; 32]),
            ..request(true)
        };
        let opened = AuditAnswer::open(&good, &later);
        assert_eq!(opened, Err(AuditError::OtherRequest));
        let mut other = request(true);
        other.parties.asker = key("c.example.org", 3).verifier().clone();
        let opened = AuditAnswer::open(&good, &other);
        assert_eq!(opened, Err(AuditError::OtherRequest));
        other.parties = request(true).parties;
        other.parties.answerer = key("c.example.org", 3).verifier().clone();
        let opened = AuditAnswer::open(&good, &other);
        assert!(matches!(opened, Err(AuditError::Signature(_))));
        let file = AnswerLine::File(b"a".to_vec(), Digest([1; 32]));
        for (lines, expected) in [
            (vec![&two, &one, &end], AuditError::OtherItems),
            (vec![&one, &end], AuditError::OtherItems),
            (vec![&one, &two, &late], AuditError::OtherItems),
            (vec![&one, &two, &two, &end], AuditError::OtherItems),
            (vec![&one, &two, &end, &end], AuditError::Line(11)),
            (vec![&one, &two], AuditError::Line(10)),
            (vec![&one, &two, &file, &end], AuditError::OtherItems),
            (vec![&file, &file, &one, &two, &end], AuditError::Line(9)),
        ] {
            let lines: Vec<AnswerLine> = lines.into_iter().cloned().collect();
            assert_eq!(open(&answered(&lines)), Err(expected), "{lines:?}");
        }
        for (from, to) in [
            ("05", "06"),
            ("complete", "late"),
            ("place", "placed"),
            ("\n\n", "\n"),
        ] {
            assert!(open(&good.replacen(from, to, 1)).is_err(), "{from}");
        }
    }

    #[test]
    fn a_proof_is_read_back() {
        let items = items().into_iter().map(|item| (item, Digest([7; 32])));
        let proof = AuditProof {
            challenge: head().challenge,
            said: head().said,
            items: items.collect(),
        };
        let text = proof.signed(&asker());
        assert!(AuditProof::is_of(&text) && !AuditProof::is_of(&request(false).to_string()));
        let known = [asker().verifier().clone()];
        assert_eq!(AuditProof::open(&text, &known), Ok(proof));
        assert_eq!(AuditProof::open(&text, &[]), Err(AuditError::Unknown));
        let changed = text.replacen("07", "08", 1);
        assert!(AuditProof::open(&changed, &known).is_err());
    }

    #[test]
    fn a_holder_is_at_the_address_of_its_key() {
        let url = BaseUrl::parse("https://b.example.org/x").expect("a URL");
        let key = answerer();
        let holder = |service| SaidOfItself::holder(service, &url, key.verifier());
        let service = "example.org/b@8080/2026/01.01.00.00";
        assert_eq!(holder(Some(service)), service);
        for other in ["example.org/b/2026/01.01.00.00", "8JMKD3MGP8W/34PGRBS", ""] {
            assert_eq!(holder(Some(other)), url.to_string(), "{other}");
            assert!(!is_name_of(other, &url, key.verifier()), "{other}");
        }
        assert_eq!(holder(None), url.to_string());
        for known in [
            service,
            "example.org/b@8080/2025/01.01.00.00",
            &*url.to_string(),
        ] {
            assert!(is_name_of(known, &url, key.verifier()), "{known}");
        }
    }

    #[test]
    fn a_holder_without_a_key_is_at_the_address_of_its_url() {
        let (on_80, on_8080) = (
            "example.org/b/2026/01.01.00.00",
            "example.org/b@8080/2026/01.01.00.00",
        );
        for (url, service, is_it) in [
            ("http://b.example.org", on_80, true),
            ("https://b.example.org", on_80, true),
            ("http://b.example.org:8080", on_8080, true),
            ("http://b.example.org:8080", on_80, false),
            ("http://c.example.org", on_80, false),
        ] {
            let url = BaseUrl::parse(url).expect("a URL");
            let holder = SaidOfItself::holder_at(Some(service), &url);
            assert_eq!(holder == service, is_it, "{url} {holder}");
            assert!(is_it || holder == url.to_string());
        }
    }

    #[test]
    fn a_digest_is_of_one_side_one_pair_and_one_time() {
        let challenge = head().challenge;
        let of = |challenge: &Challenge| {
            let kept = sha256(&challenge.before(&items()[0], b"a", 3));
            let files = SentFiles::from([(b"a".to_vec(), kept)]);
            let sent = [Role::Asker, Role::Answerer].map(|role| {
                let item = challenge.of_item(role, &items()[0], &files);
                [challenge.of_file(role, &kept), item]
            });
            sent.concat()
        };
        let mut others = [(); 3].map(|()| challenge.clone());
        others[0].nonces.0 = Digest([8; 32]);
        others[1].nonces.1 = Digest([8; 32]);
        others[2].parties.answerer = key("c.example.org", 3).verifier().clone();
        let seen = others.iter().chain([&challenge]).flat_map(of);
        assert_eq!(seen.collect::<std::collections::HashSet<_>>().len(), 16);
        // It is clear where each part before the content ends.
        let before = |item: usize, path, size| challenge.before(&items()[item], path, size);
        let texts = std::collections::HashSet::from([
            before(0, b"a", 1),
            before(0, b"a", 2),
            before(0, b"ab", 1),
            before(1, b"a", 1),
        ]);
        assert_eq!(texts.len(), 4);
    }
}
