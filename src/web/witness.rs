//! Asks a witness to cosign a checkpoint (C2SP tlog-witness 1.0.0), or a time stamping authority for a stamp (RFC 3161).

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Builder;

use crate::formats::base_url::BaseUrl;
use crate::formats::timestamping::{QUERY_TYPE, StampRequest};
use crate::formats::tlog::checkpoint::seen_at;
use crate::formats::tlog::merkle::Hash;
use crate::formats::tlog::note::{Note, Signature, VerifierKey};
use crate::formats::tlog::witness::{AddCheckpoint, PATH, size_in};
use crate::http::client::{ClientError, Network, Pool, Reach, read};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The timeout of a connection attempt, and of a request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// The reason why there is no cosignature.
#[derive(Debug)]
pub enum WitnessError {
    /// The checkpoint that the witness cosigned last has this size: the hashes must lead from there.
    Known(u64),
    /// The witness is not reached, or refuses.
    Client(ClientError),
    /// The answer has no cosignature of the checkpoint by the key of the witness.
    NotCosigned,
}

impl Localize for WitnessError {
    fn message(&self) -> Message {
        match self {
            WitnessError::Known(size) => message!(
                "the witness knows the log with {size} entries, and not as it is said to have been",
                size
            ),
            WitnessError::Client(error) => error.message(),
            WitnessError::NotCosigned => {
                message!("the answer is no cosignature of the checkpoint by the key of the witness")
            }
        }
    }
}

display_message!(WitnessError);

impl std::error::Error for WitnessError {}

impl From<ClientError> for WitnessError {
    fn from(error: ClientError) -> WitnessError {
        WitnessError::Client(error)
    }
}

/// Asks the witness with a URL and a key to cosign a checkpoint. The hashes lead to it from the one with `old` entries; 0
/// is before the first one.
///
/// # Errors
/// [`WitnessError::Known`] if the witness cosigned another one last: the caller asks again, with the hashes from there.
pub fn ask_witness(
    url: &BaseUrl,
    key: &VerifierKey,
    old: u64,
    proof: &[Hash],
    note: &Note,
    network: &Network,
) -> Result<Signature, WitnessError> {
    let asked = AddCheckpoint {
        old,
        proof: proof.to_vec(),
        note: note.clone(),
    };
    let request = Request::post(url.at(PATH));
    match exchange(request, asked.to_string().into_bytes(), network) {
        Ok(lines) => cosignature(note, key, &lines).ok_or(WitnessError::NotCosigned),
        Err(ClientError::Status(409, text)) => Err(match size_in(&text) {
            Some(size) => WitnessError::Known(size),
            None => ClientError::Status(409, text).into(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Asks the time stamping authority at a URL.
///
/// # Errors
/// It is not reached, or does not answer with 200.
pub fn ask_stamp(
    url: &str,
    request: &StampRequest,
    network: &Network,
) -> Result<Bytes, ClientError> {
    let post = Request::post(url).header(CONTENT_TYPE, QUERY_TYPE);
    exchange(post, request.to_der(), network)
}

/// Sends a request, and reads its answer.
fn exchange(request: Builder, body: Vec<u8>, network: &Network) -> Result<Bytes, ClientError> {
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|_| ClientError::Url)?;
    let failed = |error: std::io::Error| ClientError::Failed(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let answer = async {
        let pool = Pool::new(network, Reach::Any, CONNECT_TIMEOUT);
        // No redirection is followed: a witness is where its administrator says.
        read(pool.send(network, request).await?, LONGEST_ANSWER).await
    };
    let answer = runtime.block_on(async { tokio::time::timeout(TIMEOUT, answer).await });
    answer.unwrap_or(Err(ClientError::IdleTimer(TIMEOUT)))
}

/// The cosignature by a key among the lines of an answer. Those by other keys are passed over.
fn cosignature(note: &Note, key: &VerifierKey, lines: &[u8]) -> Option<Signature> {
    let lines = std::str::from_utf8(lines).ok()?;
    let answered = Note::parse(&format!("{}\n{lines}", note.text)).ok()?;
    let mut signatures = answered.signatures.into_iter();
    signatures.find(|signature| {
        let alone = Note {
            text: note.text.clone(),
            signatures: vec![signature.clone()],
        };
        seen_at(&alone, key).is_ok()
    })
}
