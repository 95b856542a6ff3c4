//! Asks another Archive to read items again, while the same are read here.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::runtime::Runtime;

use crate::archive::transfer::TransferError;
use crate::archive::{Clock, SystemClock};
use crate::formats::audit::{
    AnswerHead, AnswerLine, AuditAnswer, AuditError, AuditProof, AuditRequest, Challenge,
    ItemAnswer, LONGEST_ANSWER, PATH, Parties, SaidOfItself,
};
use crate::formats::base_url::BaseUrl;
use crate::formats::copies::Gone;
use crate::formats::fixity::Digest;
use crate::formats::tlog::note::{SignerKey, VerifierKey};
use crate::http::client::{ClientError, Network, Pool, Reach, read};
use crate::os::random;
use ibi::message::{Localize, Message};
use ibi::{Ibi, display_message, message};

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time without a line.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that the other Archive has beside twice the time of the request.
const MORE_TIME: Duration = Duration::from_secs(60);
/// The longest answer of a line for each item, in bytes: its head, and each line.
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_LINE: usize = 4 << 10;
/// The longest answer to a proof, in bytes.
const LONGEST_NOTE: usize = 1 << 10;
/// The number of times that a busy Archive is asked.
const TRIES: u32 = 6;

/// The reason why another Archive has not shown that it has something.
#[derive(Debug)]
pub enum AuditFailure {
    /// It is not reached, or refuses.
    Client(ClientError),
    /// Its answer is not one to the request.
    Answer(AuditError),
    /// Its answer has not come in this time.
    Late(Duration),
    /// The same cannot be read here.
    Here(Box<TransferError>),
    /// This process has no random numbers, or no threads.
    System(std::io::Error),
}

impl Localize for AuditFailure {
    fn message(&self) -> Message {
        match self {
            AuditFailure::Client(error) => error.message(),
            AuditFailure::Answer(error) => message!("its answer: {error}", error),
            AuditFailure::Late(time) => message!(
                "its answer has not come in {time}",
                time = format!("{time:?}")
            ),
            AuditFailure::Here(error) => error.message(),
            AuditFailure::System(error) => error.message(),
        }
    }
}

display_message!(AuditFailure);

impl std::error::Error for AuditFailure {}

impl From<ClientError> for AuditFailure {
    fn from(error: ClientError) -> AuditFailure {
        AuditFailure::Client(error)
    }
}

impl From<AuditError> for AuditFailure {
    fn from(error: AuditError) -> AuditFailure {
        AuditFailure::Answer(error)
    }
}

/// Another Archive that is asked.
#[derive(Debug)]
pub struct AuditedArchive {
    runtime: Runtime,
    asking: Asking,
    key: SignerKey,
    own: SaidOfItself,
    parties: Parties,
}

/// The way by which it is asked.
#[derive(Clone, Debug)]
struct Asking {
    pool: Pool<Full<Bytes>>,
    network: Network,
    url: String,
}

impl AuditedArchive {
    /// The Archive at a URL with a key, which this Archive asks with its own one, and to which it says `own` of itself.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn new(
        url: &BaseUrl,
        peer: &VerifierKey,
        (own, key): (SaidOfItself, SignerKey),
        network: &Network,
    ) -> Result<AuditedArchive, AuditFailure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Ok(AuditedArchive {
            // The answer is received while this thread reads.
            runtime: runtime.map_err(AuditFailure::System)?,
            asking: Asking {
                // No redirection is followed: the Archive is where the administrator says.
                pool: Pool::new(network, Reach::Any, CONNECT_TIMEOUT),
                network: network.clone(),
                url: url.at(PATH),
            },
            parties: Parties {
                asker: key.verifier().clone(),
                answerer: peer.clone(),
            },
            key,
            own,
        })
    }

    /// Has items read there, and their files listed if that is wanted, for at most so many seconds, and tells what was withdrawn or
    /// removed here. `here` is called with each that was read there, while further ones are.
    ///
    /// # Errors
    /// The answer is not one, or does not come, and nothing of it counts; or `here` fails.
    pub fn ask(
        &self,
        (items, wants_files): (Vec<Ibi>, bool),
        seconds: u64,
        gone: &[(Ibi, Gone)],
        here: &mut dyn FnMut(&Challenge, &Ibi) -> Result<(), TransferError>,
    ) -> Result<AuditAnswer, AuditFailure> {
        let mut tries = 0;
        loop {
            let request = AuditRequest {
                gone: gone.to_vec(),
                ..self.request(items.clone(), wants_files, seconds)?
            };
            let text = request.signed(&self.key);
            let (asking, asked) = (self.asking.clone(), request.clone());
            let (sender, events) = channel();
            let longest = Duration::from_secs(2 * seconds) + MORE_TIME;
            let receiving = async move {
                let response = asking.post(text).await?;
                let answer = tokio::time::timeout(longest, receive(response, &asked, &sender));
                answer.await.unwrap_or(Err(AuditFailure::Late(longest)))
            };
            let receiving = self.runtime.spawn(receiving);
            let mut challenge = None;
            let mut failed = None;
            // They end when all has been received, or cannot be.
            for event in events {
                match event {
                    Begun::Head(head) => challenge = Some(head),
                    Begun::Item(item) if failed.is_none() => {
                        let read = challenge.as_ref().map(|challenge| here(challenge, &item));
                        failed = read.and_then(Result::err);
                    }
                    Begun::Item(_) => {}
                }
            }
            if let Some(error) = failed {
                receiving.abort();
                return Err(AuditFailure::Here(Box::new(error)));
            }
            let text = self.runtime.block_on(receiving);
            let text = text.map_err(|error| std::io::Error::other(error.to_string()));
            match text.map_err(AuditFailure::System)? {
                Err(AuditFailure::Client(ClientError::Status(503, _))) if tries < TRIES => {
                    tries += 1;
                    let pause = Duration::from_secs(1 << tries);
                    std::thread::sleep(pause);
                }
                text => return Ok(AuditAnswer::open(&text?, &request)?),
            }
        }
    }

    /// Sends what was computed here for an answer. The other Archive learns from it that its items are here.
    ///
    /// # Errors
    /// It is not reached, or refuses.
    pub fn show(&self, head: &AnswerHead, items: Vec<(Ibi, Digest)>) -> Result<(), AuditFailure> {
        let proof = AuditProof {
            challenge: head.challenge.clone(),
            said: self.own.clone(),
            items,
        };
        let text = proof.signed(&self.key);
        let sent = async {
            let sent = async {
                let response = self.asking.post(text).await?;
                Ok(read(response, LONGEST_NOTE).await.map(drop)?)
            };
            let sent = tokio::time::timeout(IDLE_TIMEOUT, sent).await;
            sent.unwrap_or(Err(AuditFailure::Late(IDLE_TIMEOUT)))
        };
        self.runtime.block_on(sent)
    }

    fn request(
        &self,
        items: Vec<Ibi>,
        wants_files: bool,
        seconds: u64,
    ) -> Result<AuditRequest, AuditFailure> {
        let nonce = random::draw::<32>();
        let time = SystemClock.now().as_nanoseconds() / 1000;
        Ok(AuditRequest {
            parties: self.parties.clone(),
            time: u64::try_from(time).unwrap_or_default(),
            nonce: Digest(nonce.map_err(|errno| AuditFailure::System(errno.into()))?),
            seconds,
            wants_files,
            gone: Vec::new(),
            items,
        })
    }
}

impl Asking {
    async fn post(&self, text: String) -> Result<Response<Incoming>, AuditFailure> {
        let request = Request::post(&self.url).body(Full::new(Bytes::from(text)));
        let request = request.map_err(|_| ClientError::Url)?;
        let sent = self.pool.send(&self.network, request);
        let sent = tokio::time::timeout(IDLE_TIMEOUT, sent).await;
        Ok(sent.map_err(|_| ClientError::IdleTimer(IDLE_TIMEOUT))??)
    }
}

/// A part of an answer, whose signature has not come.
enum Begun {
    Head(Challenge),
    /// An item that was read.
    Item(Ibi),
}

/// Receives an answer, and passes on what has come of it.
async fn receive(
    response: Response<Incoming>,
    request: &AuditRequest,
    events: &Sender<Begun>,
) -> Result<String, AuditFailure> {
    if response.status() != 200 {
        let refused = tokio::time::timeout(IDLE_TIMEOUT, read(response, LONGEST_HEAD)).await;
        let refused = refused.map_err(|_| ClientError::IdleTimer(IDLE_TIMEOUT))?;
        return match refused {
            Err(error) => Err(error.into()),
            Ok(_) => Err(AuditError::Line(1).into()),
        };
    }
    let most = if request.wants_files {
        LONGEST_ANSWER
    } else {
        LONGEST_HEAD + LONGEST_LINE * request.items.len()
    };
    let (mut body, mut bytes, mut passed) = (response.into_body(), Vec::new(), 0);
    let mut asked = request.items.iter().peekable();
    loop {
        let frame = tokio::time::timeout(IDLE_TIMEOUT, body.frame()).await;
        let frame = frame.map_err(|_| ClientError::IdleTimer(IDLE_TIMEOUT))?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|error| ClientError::Failed(error.to_string()))?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > most {
            return Err(ClientError::TooLong(most).into());
        }
        if passed == 0 {
            let begun = String::from_utf8_lossy(&bytes);
            if let Some(head) = AnswerHead::parse(&begun, request)? {
                passed = head.to_string().len();
                let _ = events.send(Begun::Head(head.challenge));
            }
        }
        while passed > 0
            && let Some(rest) = bytes.get(passed..)
            && let Some(end) = rest.iter().position(|byte| *byte == b'\n')
        {
            let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
            if let Some(AnswerLine::Item(item, answer)) = AnswerLine::parse(&line)
                && asked.next_if(|it| **it == item).is_some()
                && matches!(answer, ItemAnswer::Read(_))
            {
                let _ = events.send(Begun::Item(item));
            }
            passed += end + 1;
        }
    }
    String::from_utf8(bytes).map_err(|_| AuditError::Line(1).into())
}
