//! OAI-PMH at `/oai`.
//!
//! All records are updated before a list begins, so a small Archive lists its present items. For a large
//! Archive the client waits at most [`UPDATE_TIMEOUT`], and gets the result of the last complete update. After the
//! first request the update is repeated about every ten minutes, but never takes more than half of the
//! time.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Method, Request as HttpRequest, Response, StatusCode};
use tokio::sync::{Notify, Semaphore, watch};

use super::Site;
use super::file::media_type;
use crate::archive::ArchiveError;
use crate::archive::store::{DiskFault, Harvest, ItemId, StoreError, Window};
use crate::formats::base_url::BaseUrl;
use crate::formats::oai::{
    FORMAT, Header, ListPosition, ListSelection, OaiAnswer, OaiArguments, OaiContent, OaiError,
    OaiErrorCode, OaiFormat, OaiRecord, OaiRequest, RepositoryDescription, collection_of,
    identifier, named_by, set_of, sets_of,
};
use crate::formats::query::FormFields;
use crate::http::server::{answer, form, threads};
use crate::web::harvest::{HarvestedRecord, Harvester, RecordPage, name_of};
use crate::web::service::content_url;
use ibi::message;
use ibi::message::Message;

/// The path of the service.
const PATH: &str = "oai";

/// The longest arguments in a body, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// The most records in one answer.
const RECORDS: usize = 100;
/// The most headers in one answer.
const HEADERS: usize = 1000;
/// The size of the records after which an answer is full, in bytes.
const ENOUGH: usize = 4 * 1024 * 1024;
/// The most collections that are listed as sets.
const MOST_COLLECTIONS: usize = 10_000;
/// The most answers that are prepared at a time. Further requests wait.
const AT_ONCE: usize = 8;
/// The time that a request that begins a list waits for the update of all records.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest pause between two updates if no request comes.
const REST: Duration = Duration::from_secs(10 * 60);
/// The seconds after which a client may try again during the first update.
const ASK_AGAIN: u16 = 30;
/// The number of items that are updated in one step.
const STEP: usize = 256;

/// The state of the service.
#[derive(Debug)]
pub(super) struct Oai {
    email: String,
    base_url: String,
    harvest: OnceLock<Harvest>,
    is_begun: AtomicBool,
    /// The number of updates that have begun.
    begun: AtomicU64,
    /// The number of updates that have ended.
    ended: watch::Sender<u64>,
    wanted: Notify,
    /// The fault of the disk by which the last update has failed.
    fault: Mutex<Option<DiskFault>>,
    places: Semaphore,
}

impl Oai {
    pub(super) fn new(url: &BaseUrl, email: String) -> Oai {
        Oai {
            email,
            base_url: url.at(PATH),
            harvest: OnceLock::new(),
            is_begun: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: watch::Sender::new(0),
            wanted: Notify::new(),
            fault: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// The address for mail about the Archive.
    pub(super) fn email(&self) -> &str {
        &self.email
    }

    /// Waits until an update that begins after this call has ended.
    async fn gone_through(&self) {
        let next = self.begun.load(Ordering::SeqCst) + 1;
        self.wanted.notify_one();
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|ended| *ended >= next).await;
    }
}

/// Whether a path belongs to this service.
pub(super) fn is_of(path: &str) -> bool {
    path == PATH
}

/// The database of the records: in the store, or temporary if that cannot be written.
pub(super) fn harvest(site: &Site) -> Result<&Harvest, StoreError> {
    if let Some(harvest) = site.oai.harvest.get() {
        return Ok(harvest);
    }
    let archive = &site.archive;
    let opened = match Harvest::open(archive.tree().root(), archive.facts().index.as_ref()) {
        Ok(harvest) => harvest,
        // A server that is away comes back, and what others harvest there is not forgotten here.
        Err(error) if archive.facts().index.is_some() => return Err(error),
        Err(error) => {
            log::warn!(
                "the records of harvesters cannot be stored, and all of them are sent again after the next start: {error}"
            );
            Harvest::temporary()?
        }
    };
    Ok(site.oai.harvest.get_or_init(|| opened))
}

/// Opens the database of the records for writing.
pub(super) fn open(site: &Site) -> Result<(), StoreError> {
    harvest(site).map(drop)
}

fn harvester(site: &Site, format: OaiFormat) -> Result<Harvester<'_>, StoreError> {
    Ok(Harvester {
        format,
        archive: site.public(),
        harvest: harvest(site)?,
        clock: &site.clock,
        file: Box::new(|names, path| {
            let url = site.url.at(&content_url(names, path));
            (url, media_type(path))
        }),
    })
}

/// Answers a request to the service.
pub(super) async fn answer(site: Arc<Site>, request: HttpRequest<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let arguments = match parts.method {
        Method::POST => match form::in_body(&parts, body, LONGEST_BODY).await {
            Ok(arguments) => arguments,
            Err(refusal) => return *refusal,
        },
        _ => parts.uri.query().unwrap_or_default().to_owned(),
    };
    let asked = match FormFields::parse(&arguments) {
        Ok(fields) => OaiArguments::read(&fields),
        Err(error) => OaiArguments::unreadable(error.to_string()),
    };
    if is_beginning(&asked) {
        update(&site).await;
    } else {
        begin(&site);
    }
    // Taken before a place of all clients, so that one of them does not wait in all of these.
    let _turn = site.turn(site.client(&parts)).await;
    let Ok(_place) = site.oai.places.acquire().await else {
        return refuse_for_now(&site);
    };
    let make = {
        let site = Arc::clone(&site);
        move || reply(&site, &asked)
    };
    match answer::aside(make).await {
        Ok(Ok(Some(document))) => {
            let kind = "text/xml; charset=utf-8";
            answer::fresh(answer::whole(StatusCode::OK, kind, document))
        }
        Ok(Ok(None)) => refuse_for_now(&site),
        Ok(Err(error)) => {
            log::warn!("harvesters are not answered: {error}");
            error
                .disk_fault()
                .map_or_else(|| refuse_for_now(&site), answer::disk)
        }
        Err(refusal) => refusal,
    }
}

fn begin(site: &Arc<Site>) {
    if !site.oai.is_begun.swap(true, Ordering::SeqCst) {
        tokio::spawn(go_on(Arc::clone(site)));
    }
}

/// Waits a few seconds until what has changed is noticed, for a list that begins.
pub(super) async fn update(site: &Arc<Site>) {
    begin(site);
    let _ = tokio::time::timeout(UPDATE_TIMEOUT, site.oai.gone_through()).await;
}

/// The protocol's own way of making a harvester try again later, or what is wrong with the disk.
pub(super) fn refuse_for_now(site: &Site) -> Response<Body> {
    if let Some(fault) = *site.oai.fault.lock() {
        return answer::disk(fault);
    }
    let sentence = "the records are being updated; try again later";
    answer::busy(sentence, ASK_AGAIN)
}

/// Whether a request begins a list.
fn is_beginning(asked: &OaiArguments) -> bool {
    match &asked.request {
        Ok(OaiRequest::ListIdentifiers(listed) | OaiRequest::ListRecords(listed)) => {
            listed.after.is_none()
        }
        Ok(OaiRequest::ListSets) => true,
        _ => false,
    }
}

/// The document of an answer. None until the first update has ended.
fn reply(site: &Site, asked: &OaiArguments) -> Result<Option<Vec<u8>>, ArchiveError> {
    let said = match &asked.request {
        Ok(request) => said(site, request)?,
        Err(faults) => Some((site.clock.seconds(), OaiContent::Faults(faults.clone()))),
    };
    Ok(said.map(|(at, reply)| {
        let answer = OaiAnswer {
            base_url: &site.oai.base_url,
            at,
            arguments: &asked.arguments,
            reply,
        };
        answer.to_xml()
    }))
}

/// The reply to a valid request, with the second for which it is valid.
fn said(site: &Site, request: &OaiRequest) -> Result<Option<(i64, OaiContent)>, ArchiveError> {
    let host = &site.archive.facts().host;
    let at = site.clock.seconds();
    let reply = match request {
        OaiRequest::ListSets => match sets(site)? {
            Some(sets) => sets,
            None => return Ok(None),
        },
        OaiRequest::Identify => identity(site, at)?,
        OaiRequest::ListMetadataFormats { identifier: None } => {
            OaiContent::Formats(OaiFormat::ALL.to_vec())
        }
        OaiRequest::ListMetadataFormats {
            identifier: Some(identifier),
        } => match found(site, identifier, FORMAT)? {
            None => unknown(identifier),
            Some(found) if found.stamped.is_deleted => {
                let sentence = format!("'{identifier}' is deleted");
                fault(OaiErrorCode::NoMetadataFormats, sentence)
            }
            Some(_) => formats_of(site, identifier)?,
        },
        OaiRequest::GetRecord { identifier, format } => match found(site, identifier, *format)? {
            None => unknown(identifier),
            Some(found) if found.metadata.is_none() && !found.stamped.is_deleted => {
                let prefix = format.prefix();
                let sentence = format!(
                    "'{identifier}' lacks what is mandatory in {prefix}, and is available in other formats"
                );
                fault(OaiErrorCode::CannotDisseminateFormat, sentence)
            }
            Some(found) => OaiContent::Record(record(host, found)),
        },
        OaiRequest::ListIdentifiers(listed) => {
            let part = part(site, listed, |harvester, window| {
                harvester.headers(window, HEADERS)
            })?;
            return Ok(part.map(|part| {
                list(host, listed, part, |records, next| {
                    let headers = records.into_iter().map(|record| record.header);
                    OaiContent::Headers(headers.collect(), next)
                })
            }));
        }
        OaiRequest::ListRecords(listed) => {
            let part = part(site, listed, |harvester, window| {
                harvester.records(window, RECORDS, ENOUGH)
            })?;
            return Ok(part.map(|part| list(host, listed, part, OaiContent::Records)));
        }
    };
    Ok(Some((at, reply)))
}

/// The formats in which one record is available.
fn formats_of(site: &Site, identifier: &str) -> Result<OaiContent, ArchiveError> {
    let mut formats = Vec::new();
    for format in OaiFormat::ALL {
        let found = found(site, identifier, format)?;
        if found.is_some_and(|found| found.metadata.is_some()) {
            formats.push(format);
        }
    }
    Ok(OaiContent::Formats(formats))
}

/// The collections whose items have records. None until the first update has ended.
fn sets(site: &Site) -> Result<Option<OaiContent>, ArchiveError> {
    let harvest = harvest(site)?;
    if !harvest.is_whole()? {
        return Ok(None);
    }
    let of = |name: &str| collection_of(name).to_owned();
    let collections = harvest.beginnings(&of, MOST_COLLECTIONS)?;
    Ok(Some(if collections.is_empty() {
        fault(
            OaiErrorCode::NoSetHierarchy,
            "this Archive has no records yet, and so no sets".into(),
        )
    } else {
        OaiContent::Sets(sets_of(&collections))
    }))
}

fn fault(code: OaiErrorCode, sentence: String) -> OaiContent {
    OaiContent::Faults(vec![OaiError::new(code, sentence)])
}

fn unknown(identifier: &str) -> OaiContent {
    let sentence = format!("'{identifier}' is not a record of this Archive");
    fault(OaiErrorCode::IdDoesNotExist, sentence)
}

fn identity(site: &Site, at: i64) -> Result<OaiContent, ArchiveError> {
    let harvest = harvest(site)?;
    Ok(OaiContent::Repository(RepositoryDescription {
        name: format!("Archive {}", site.archive.facts().host),
        email: site.oai.email.clone(),
        earliest: harvest.earliest()?.unwrap_or(at),
        is_persistent: harvest.is_kept(),
    }))
}

/// One page of a list, and how many records the list has. None until the first update has ended.
fn part(
    site: &Site,
    listed: &ListSelection,
    look: impl Fn(&Harvester<'_>, &Window) -> Result<RecordPage, ArchiveError>,
) -> Result<Option<(RecordPage, u64)>, ArchiveError> {
    let harvester = harvester(site, listed.format)?;
    if !harvester.harvest.is_whole()? {
        return Ok(None);
    }
    let size = match &listed.after {
        Some(position) => position.size,
        None => harvester.harvest.count(&window(listed))?,
    };
    let mut window = window(listed);
    let mut part = look(&harvester, &window)?;
    // The whole page may have changed just now, and be empty. Continue with the next.
    while part.found.is_empty() && part.next.is_some() {
        window.after = part.next;
        part = look(&harvester, &window)?;
    }
    Ok(Some((part, size)))
}

fn list(
    host: &str,
    listed: &ListSelection,
    (part, size): (RecordPage, u64),
    content: impl FnOnce(Vec<OaiRecord>, Option<Option<ListPosition>>) -> OaiContent,
) -> (i64, OaiContent) {
    let next = next(&part, size, listed);
    let found = part.found.into_iter();
    let records: Vec<OaiRecord> = found.map(|found| record(host, found)).collect();
    let reply = if records.is_empty() {
        fault(OaiErrorCode::NoRecordsMatch, no_records(listed))
    } else {
        content(records, next)
    };
    (part.at, reply)
}

fn no_records(listed: &ListSelection) -> String {
    match listed.after {
        None => "no record has changed in this period".to_owned(),
        Some(_) => "the list has no more records".to_owned(),
    }
}

fn found(
    site: &Site,
    identifier: &str,
    format: OaiFormat,
) -> Result<Option<HarvestedRecord>, ArchiveError> {
    match named_by(&site.archive.facts().host, identifier) {
        Some(ibi) => harvester(site, format)?.record(&name_of(ibi)),
        None => Ok(None),
    }
}

fn record(host: &str, found: HarvestedRecord) -> OaiRecord {
    OaiRecord {
        header: Header {
            identifier: identifier(host, &found.stamped.name),
            datestamp: found.stamped.datestamp,
            is_deleted: found.stamped.is_deleted,
            set: set_of(&found.stamped.name),
        },
        metadata: found.metadata,
    }
}

fn window(listed: &ListSelection) -> Window {
    let after = listed.after.as_ref();
    Window {
        from: listed.from,
        until: listed.until,
        after: after.map(|position| (position.datestamp, position.name.clone())),
        below: listed.collection.clone(),
        with_form: listed.format == OaiFormat::Openaire,
    }
}

fn next(part: &RecordPage, size: u64, listed: &ListSelection) -> Option<Option<ListPosition>> {
    let before = listed.after.as_ref().map_or(0, |position| position.listed);
    let next = part.next.clone().map(|(datestamp, name)| ListPosition {
        datestamp,
        name,
        until: listed.until,
        format: listed.format,
        collection: listed.collection.clone(),
        listed: before.saturating_add(part.found.len() as u64),
        size,
    });
    match (next, &listed.after) {
        (None, None) => None,
        (next, _) => Some(next),
    }
}

/// Repeats the update of all records.
async fn go_on(site: Arc<Site>) {
    let oai = &site.oai;
    loop {
        let count = oai.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let begin = Instant::now();
        let done = go_through(&site).await;
        *oai.fault.lock() = match &done {
            Ok(()) => None,
            Err(error) => {
                log::warn!("not all records were updated: {error}");
                error.disk_fault()
            }
        };
        let took = begin.elapsed();
        oai.ended.send_replace(count);
        tokio::time::sleep(took).await;
        let rest = REST.max(took.saturating_mul(9));
        let _ = tokio::time::timeout(rest, oai.wanted.notified()).await;
    }
}

/// Updates all records in small steps, so that shutdown does not wait for more than one.
async fn go_through(site: &Arc<Site>) -> Result<(), ArchiveError> {
    let mut after = Some(ItemId(0));
    while let Some(id) = after {
        after = apart(site, move |harvester| harvester.go_through_items(id, STEP)).await?;
    }
    let mut after = Some(String::new());
    while let Some(name) = after {
        after = apart(site, move |harvester| {
            harvester.go_through_records(&name, STEP)
        })
        .await?;
    }
    apart(site, |harvester| {
        let now = || harvester.clock.now().seconds();
        Ok(harvester.harvest.set_whole(&now)?)
    })
    .await
}

/// Runs work in a thread that may block.
async fn apart<T: Send + 'static>(
    site: &Arc<Site>,
    act: impl FnOnce(&Harvester<'_>) -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    let site = Arc::clone(site);
    let done = threads::aside(move || act(&harvester(&site, FORMAT)?));
    match done.await {
        Ok(done) => done,
        // The service shuts down, and this task with it.
        Err(error) if error.is_cancelled() => std::future::pending().await,
        Err(error) => Err(ArchiveError::Store(StoreError::Broken {
            what: message!(
                "updating the records: {error}",
                error = Message::foreign(error.to_string())
            ),
        })),
    }
}
