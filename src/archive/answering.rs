//! Audits by other Archives: their items are read here, and they are shown that it was done.
//!
//! Only Archives that `audit` in `archive.ibi` lists may ask, since each request reads the disk. A request is answered once: it is
//! later than all before of the same Archive, and not much older or newer than now. An Archive has one request at a time. What
//! the public may not read is answered like what is not held.
//!
//! The key of the Archive for audits is in `audit/` in the store; its signatures are of texts that begin with what they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::learned::{AUDIT, LearnedFile};
use super::signing_key::{KeyError, key, key_directory};
use super::tree::Tree;
use super::{Clock, Facts, ReadAgain, ReadAs, SystemClock};
use crate::formats::audit::{
    AnswerHead, AnswerLine, AuditAnswer, AuditError, AuditProof, AuditRequest, Challenge,
    ItemAnswer, LONGEST_ANSWER, Role, SaidOfItself, SentFiles,
};
use crate::formats::fixity::Digest;
use crate::formats::item::Names;
use crate::formats::learned::{Learned, LearnedFrom};
use crate::formats::tlog::note::{KeyKind, SignerKey, VerifierKey};
use crate::os::random;
use ibi::{Ibi, Timestamp};
use rustix::io::Errno;

/// The most microseconds between the time of a request and now.
const FARTHEST: u64 = 15 * 60 * 1_000_000;
/// The interval at which an Archive that waits sees that it goes on.
const SHOWN_EVERY: Duration = Duration::from_secs(5);
/// The time for which lines wait for others, with which they are sent.
const SENT_EVERY: Duration = Duration::from_millis(50);
/// The time for which files are read without a rest.
const READ_AT_ONCE: Duration = Duration::from_millis(50);
/// The most damaged files of an answer that are remembered.
const MOST_DAMAGED: usize = 1_000;

/// Opens the key with which an Archive audits others and answers their audits. It is made where there is none.
///
/// # Errors
/// The store cannot be written, or what was written before is damaged.
pub fn audit_key(store: &Tree, facts: &Facts) -> Result<SignerKey, KeyError> {
    let directory = key_directory(store, AUDIT)?;
    key(&directory, AUDIT, (&facts.address(), KeyKind::Ed25519))
}

/// The reason why an Archive has no answer.
#[derive(Debug)]
pub enum NotAudited {
    /// The request is none, or is not one of a listed Archive.
    Refused(AuditError),
    /// Its time is not about now.
    Time,
    /// A request of the same Archive had this time or a later one: it was sent before.
    Replayed,
    /// Another request of the same Archive is being answered.
    Busy,
    /// No proof is waited for, or another one.
    NotExpected,
    /// The system has no random numbers.
    Random(Errno),
}

impl From<AuditError> for NotAudited {
    fn from(error: AuditError) -> NotAudited {
        NotAudited::Refused(error)
    }
}

/// The requests of an Archive, as far as they are known.
#[derive(Debug, Default)]
struct Asked {
    /// The time of its last request.
    time: u64,
    is_busy: bool,
    /// The last answer.
    expected: Option<(Challenge, Vec<Expected>)>,
}

/// An item that was read.
#[derive(Debug)]
struct Expected {
    item: Ibi,
    /// The digest that the Archive which has asked computes if it has the same.
    digest: Digest,
    /// Whether the files here are what was recorded of them, as far as that is known.
    is_whole: bool,
}

/// Answers the audits of listed Archives.
#[derive(Debug)]
pub struct AuditService {
    key: SignerKey,
    known: Vec<VerifierKey>,
    /// The files for what is learned of each, by its key, where one can be kept.
    learned: BTreeMap<String, LearnedFile>,
    /// The percentage of the time for which files are read, for all together.
    share: u8,
    asked: Mutex<BTreeMap<String, Asked>>,
}

/// A request that is answered. No other of the same Archive is until it is dropped.
#[derive(Debug)]
pub struct AuditTurn {
    service: Arc<AuditService>,
    request: AuditRequest,
    head: AnswerHead,
    began: Instant,
}

/// The comparison of what an Archive has computed with what was read here.
#[derive(Debug)]
pub struct SharedProof {
    /// The Archive.
    pub asker: VerifierKey,
    /// The number of items that both have.
    pub same: u64,
    /// The items of which it has something else.
    pub other: Vec<Ibi>,
}

impl AuditService {
    /// Opens the service of an Archive, which reads files for at most this percentage of the time. None if it lists no Archive.
    ///
    /// # Errors
    /// There is no key, and none can be made.
    pub fn open(store: &Tree, facts: &Facts, share: u8) -> Result<Option<AuditService>, KeyError> {
        if facts.audits.is_empty() {
            return Ok(None);
        }
        let own = audit_key(store, facts)?;
        let known: Vec<VerifierKey> = facts.audits.iter().map(|(_, key)| key.clone()).collect();
        let learned = known.iter().filter_map(|key| {
            let opened = LearnedFile::open(store, key);
            let opened = opened.inspect_err(|error| {
                log::warn!("what audits by {} show is not noted: {error}", key.name());
            });
            Some((key.to_string(), opened.ok()?))
        });
        Ok(Some(AuditService {
            key: own,
            learned: learned.collect(),
            share,
            known,
            asked: Mutex::default(),
        }))
    }

    /// Returns its public key.
    pub fn key(&self) -> &VerifierKey {
        self.key.verifier()
    }

    /// Begins to answer a request, at a time in microseconds since 1970.
    ///
    /// # Errors
    /// The reason why it is not answered; nothing was read then.
    pub fn begin(
        self: &Arc<AuditService>,
        text: &str,
        facts: &Facts,
        now: u64,
    ) -> Result<AuditTurn, NotAudited> {
        let request = AuditRequest::open(text, &self.known)?;
        if request.parties.answerer != *self.key() {
            return Err(AuditError::OtherArchive.into());
        }
        if request.time.abs_diff(now) > FARTHEST {
            return Err(NotAudited::Time);
        }
        let nonce = random::draw::<32>().map_err(NotAudited::Random)?;
        {
            let mut asked = self.asked.lock();
            let asked = asked.entry(request.parties.asker.to_string()).or_default();
            if asked.is_busy {
                return Err(NotAudited::Busy);
            }
            if request.time <= asked.time {
                return Err(NotAudited::Replayed);
            }
            (asked.time, asked.is_busy, asked.expected) = (request.time, true, None);
        }
        // What has no room is told again.
        let gone = request.gone.iter().cloned();
        let gone: Vec<Learned> = gone.map(|(item, gone)| Learned::Gone(item, gone)).collect();
        if !self.learn(&request.parties.asker, None, &gone) {
            if let Some(asked) = self
                .asked
                .lock()
                .get_mut(&request.parties.asker.to_string())
            {
                asked.is_busy = false;
            }
            return Err(NotAudited::Busy);
        }
        let challenge = Challenge {
            parties: request.parties.clone(),
            nonces: (request.nonce, Digest(nonce)),
        };
        Ok(AuditTurn {
            service: Arc::clone(self),
            request,
            head: AnswerHead {
                challenge,
                said: SaidOfItself {
                    service: facts.service.clone(),
                    place: facts.place.clone(),
                },
            },
            began: Instant::now(),
        })
    }

    /// Compares what an Archive has computed with what was read for it.
    ///
    /// # Errors
    /// No answer was given to which this belongs.
    pub fn compare(&self, text: &str) -> Result<SharedProof, NotAudited> {
        let proof = AuditProof::open(text, &self.known)?;
        let asker = proof.challenge.parties.asker.clone();
        let expected = {
            let mut asked = self.asked.lock();
            let last = asked.get_mut(&asker.to_string());
            let last = last
                .filter(|it| !it.is_busy)
                .and_then(|it| it.expected.take());
            last.filter(|(challenge, _)| *challenge == proof.challenge)
        };
        let (_, expected) = expected.ok_or(NotAudited::NotExpected)?;
        let of = |item: &Ibi| expected.iter().find(|here| here.item == *item);
        let is_same =
            |(item, digest): &&(Ibi, Digest)| of(item).is_some_and(|here| here.digest == *digest);
        let (same, other): (Vec<_>, Vec<_>) = proof.items.iter().partition(is_same);
        // Of a file that is damaged here nothing shows what the other Archive has.
        let whole = proof.items.iter().filter_map(|(item, digest)| {
            let here = of(item).filter(|here| here.is_whole)?;
            Some(Learned::Compared(item.clone(), here.digest == *digest))
        });
        let said = Some(&proof.said);
        self.learn(&asker, said, &whole.collect::<Vec<_>>());
        Ok(SharedProof {
            asker,
            same: same.len() as u64,
            other: other.into_iter().map(|(item, _)| item.clone()).collect(),
        })
    }
}

impl AuditService {
    /// Rests after files were read since an instant, so that readers have the disk and the processors. Archives that ask at a
    /// time share what is read for audits.
    fn rest(&self, reading: &mut Instant) {
        let read = reading.elapsed();
        if read >= READ_AT_ONCE {
            let asking = self.asked.lock().values().filter(|it| it.is_busy).count();
            std::thread::sleep(rest_after(read, self.share, asking));
            *reading = Instant::now();
        }
    }

    /// Leaves what was learned for a process that may note it. Returns whether there is room for it.
    fn learn(&self, of: &VerifierKey, said: Option<&SaidOfItself>, lines: &[Learned]) -> bool {
        let from = LearnedFrom {
            at: Timestamp::from_unix(SystemClock.now().seconds(), 0),
            service: said.map(|said| said.service.preferred()),
            place: said.map(|said| said.place.clone()).unwrap_or_default(),
        };
        let file = self.learned.get(&of.to_string());
        file.is_none_or(|file| file.add(&from, lines))
    }
}

impl AuditTurn {
    /// Reads the items that a reader may see, and sends the answer line by line. It ends early if `send` returns that no more is
    /// wanted.
    pub fn answer(self, reader: &ReadAs<'_>, send: &mut dyn FnMut(String) -> bool) {
        let mut sending = Sending {
            text: String::new(),
            sent: 0,
            last: Instant::now(),
            send,
        };
        let (mut expected, mut damaged) = (Vec::new(), Vec::new());
        let is_complete = sending.add(&self.head.to_string())
            && self.items(reader, &mut sending, (&mut expected, &mut damaged));
        self.service
            .learn(&self.request.parties.asker, None, &damaged);
        if is_complete {
            let signature = AuditAnswer::signature(&sending.text, &self.service.key);
            sending.text.push_str(&signature);
            let mut asked = self.service.asked.lock();
            if let Some(asked) = asked.get_mut(&self.asker()) {
                asked.expected = Some((self.head.challenge.clone(), expected));
                // Before the end is sent, after which the Archive may send its proof.
                asked.is_busy = false;
            }
            drop(asked);
            sending.flush();
        }
    }

    fn asker(&self) -> String {
        self.request.parties.asker.to_string()
    }

    /// Returns whether the answer is complete.
    fn items(
        &self,
        reader: &ReadAs<'_>,
        sending: &mut Sending<'_>,
        (expected, damaged): (&mut Vec<Expected>, &mut Vec<Learned>),
    ) -> bool {
        let most = Duration::from_secs(self.request.seconds);
        let (mut reading, mut is_first) = (Instant::now(), true);
        for item in &self.request.items {
            let is_late = self.began.elapsed() >= most;
            if is_late {
                return sending.add(&AnswerLine::End(false).to_string());
            }
            let before = damaged.len();
            let read = self.item(reader, item, (sending, &mut reading), damaged);
            let Some((answer, files)) = read else {
                return false;
            };
            let mut lines = String::new();
            let challenge = &self.head.challenge;
            if self.request.wants_files {
                for (path, kept) in &files {
                    let digest = challenge.of_file(Role::Answerer, kept);
                    lines.push_str(&AnswerLine::File(path.clone(), digest).to_string());
                }
            }
            let is_long = sending.text.len() + lines.len() > LONGEST_ANSWER / 2;
            if is_long && !is_first {
                return sending.add(&AnswerLine::End(false).to_string());
            }
            let answer = if is_long { ItemAnswer::Unread } else { answer };
            if !is_long {
                sending.text.push_str(&lines);
            }
            let digest = challenge.of_item(Role::Asker, item, &files);
            if matches!(answer, ItemAnswer::Read(_)) {
                expected.push(Expected {
                    item: item.clone(),
                    digest,
                    is_whole: damaged.len() == before,
                });
            }
            is_first = false;
            damaged.truncate(MOST_DAMAGED);
            if !sending.add(&AnswerLine::Item(item.clone(), answer).to_string()) {
                return false;
            }
        }
        sending.add(&AnswerLine::End(true).to_string())
    }

    /// Reads an item. None if no more is wanted.
    fn item(
        &self,
        reader: &ReadAs<'_>,
        ibi: &Ibi,
        (sending, reading): (&mut Sending<'_>, &mut Instant),
        damaged: &mut Vec<Learned>,
    ) -> Option<(ItemAnswer, SentFiles)> {
        let challenge = &self.head.challenge;
        let names = Names::from(ibi.clone());
        let shown = reader.held(&names).and_then(|item| match item {
            Some(item) if reader.is_public(&item)? => Ok(Some(item)),
            _ => Ok(None),
        });
        let read = shown.and_then(|item| {
            let Some(item) = item else {
                let known = reader.store().find_by_names(&names)?;
                let gone = known.map(|item| reader.gone(&item)).transpose()?.flatten();
                let answer = gone.map_or(ItemAnswer::Missing, ItemAnswer::Gone);
                return Ok(Some((answer, SentFiles::new())));
            };
            let mut again = ReadAgain {
                before: &|path, size| challenge.before(ibi, path, size),
                goes_on: &mut || {
                    self.service.rest(reading);
                    let waiting = Instant::now();
                    let goes_on = sending.goes_on();
                    // It may have waited for the other Archive.
                    *reading += waiting.elapsed();
                    goes_on
                },
                damaged: &mut |path, found| {
                    damaged.push(Learned::Damaged(ibi.clone(), path.to_vec(), found));
                },
            };
            let files = reader.read_again(&item, &mut again)?;
            self.service.rest(reading);
            Ok(files.map(|files| {
                let digest = challenge.of_item(Role::Answerer, ibi, &files);
                (ItemAnswer::Read(digest), files)
            }))
        });
        read.unwrap_or_else(|error| {
            log::warn!(
                "{ibi} cannot be read for {}: {error}",
                self.request.parties.asker.name()
            );
            Some((ItemAnswer::Unread, SentFiles::new()))
        })
    }
}

/// The rest after files were read for a time, of Archives that ask at a time and have this percentage together.
fn rest_after(read: Duration, share: u8, asking: usize) -> Duration {
    let (share, asking) = (
        u32::from(share.max(1)),
        u32::try_from(asking).unwrap_or(u32::MAX),
    );
    read * asking.saturating_mul(100).saturating_sub(share) / share
}

impl Drop for AuditTurn {
    fn drop(&mut self) {
        let mut asked = self.service.asked.lock();
        // After the end of an answer another request may have begun.
        if let Some(asked) = asked.get_mut(&self.asker())
            && asked.time == self.request.time
        {
            asked.is_busy = false;
        }
    }
}

/// An answer that is sent.
struct Sending<'a> {
    /// All lines, which are signed at the end.
    text: String,
    /// The bytes of them that were sent.
    sent: usize,
    last: Instant,
    send: &'a mut dyn FnMut(String) -> bool,
}

impl Sending<'_> {
    /// Adds lines. They are sent now and then. Returns whether more is wanted.
    fn add(&mut self, lines: &str) -> bool {
        self.text.push_str(lines);
        let is_first = self.sent == 0;
        if is_first || self.last.elapsed() >= SENT_EVERY {
            return self.flush();
        }
        true
    }

    /// Shows that the answer goes on, if it has not for a while. Returns whether more is wanted.
    fn goes_on(&mut self) -> bool {
        if self.last.elapsed() < SHOWN_EVERY {
            return true;
        }
        self.add(&AnswerLine::Reading.to_string())
    }

    fn flush(&mut self) -> bool {
        let lines = self.text.get(self.sent..).unwrap_or_default().to_owned();
        (self.sent, self.last) = (self.text.len(), Instant::now());
        (self.send)(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::testing::TestArchive;
    use crate::formats::audit::Parties;

    #[test]
    fn archives_that_ask_share_the_time() {
        let read = Duration::from_millis(60);
        for (share, asking, rest) in [
            (100, 1, 0),
            (50, 1, 60),
            (50, 3, 300),
            (100, 2, 60),
            (1, 1, 5_940),
        ] {
            assert_eq!(rest_after(read, share, asking), Duration::from_millis(rest));
        }
        assert!(rest_after(read, 0, 0).is_zero());
    }

    #[test]
    fn a_listed_archive_has_one_request_at_a_time_and_each_once() {
        let archive = TestArchive::new();
        let asker = SignerKey::new("b.example.net", KeyKind::Ed25519, &[1; 32]).expect("a key");
        let listed = format!("audit {{http://b.example.net {}}}\n", asker.verifier());
        let text = archive.facts().to_text() + &listed;
        let facts = Facts::parse(text.as_bytes()).expect("facts");
        assert!(facts.to_text().ends_with(&listed));
        assert!(
            AuditService::open(archive.tree(), archive.facts(), 50).is_ok_and(|it| it.is_none())
        );
        let opened = AuditService::open(archive.tree(), &facts, 50).expect("a key");
        let service = Arc::new(opened.expect("a service"));
        let again = AuditService::open(archive.tree(), &facts, 50).expect("a key");
        assert_eq!(again.expect("a service").key(), service.key());
        let request = |time| {
            let request = AuditRequest {
                parties: Parties {
                    asker: asker.verifier().clone(),
                    answerer: service.key().clone(),
                },
                time,
                nonce: Digest([1; 32]),
                seconds: 1,
                wants_files: true,
                gone: Vec::new(),
                items: vec![Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name")],
            };
            request.signed(&asker)
        };
        let now = 1_764_489_600_000_000;
        let begin = |time| service.begin(&request(time), &facts, now);
        let turn = begin(now).expect("a turn");
        assert!(matches!(begin(now + 1), Err(NotAudited::Busy)));
        drop(turn);
        assert!(matches!(begin(now), Err(NotAudited::Replayed)));
        assert!(matches!(begin(now + FARTHEST + 1), Err(NotAudited::Time)));
        let turn = begin(now + 1).expect("a turn");
        let mut answer = String::new();
        let reader = archive.read_as(&|read| read());
        turn.answer(&reader, &mut |lines| {
            answer.push_str(&lines);
            true
        });
        assert!(
            answer.contains("\nitem 8JMKD3MGP8W/34PGRBS missing\nend complete\n\n"),
            "{answer}"
        );
        // The client that goes away leaves nothing behind.
        let turn = begin(now + 2).expect("a turn");
        turn.answer(&reader, &mut |_| false);
        assert!(begin(now + 3).is_ok());
    }
}
