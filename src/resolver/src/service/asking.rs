//! Asks the Archives, in rounds, for the target of a persistent URL (ibi-resolution(7), "Resolution").

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::Resolver;
use super::tally::{Alert, AnswerTally, RoundResult};
use crate::archive_service::ArchiveService;
use crate::registry::{IdentifierMaker, RegistryError};
use ibi::Ibi;
use ibi::relation::Language;
use ibifs_formats::item::State;
use ibifs_formats::resolution::{AnswerMeaning, ArchiveQuery, Location, Persistent};
use ibifs_http::server::threads;
use ibifs_os::clock::Clock;

/// The most rounds, each of which follows an edition or a relation.
const MOST_ROUNDS: usize = 16;
/// The timeout of a resolution.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
/// The time that Archives that only announce a prefix have before the others are asked, too.
const HEAD_START: Duration = Duration::from_millis(50);
/// The most requests to Archives that are in progress, besides those that ask likely ones. A reader who waits for room
/// still takes the answers of the likely Archives: with more room, many new readers at once had all Archives asked because
/// the likely ones were late, which made these still later.
pub(super) const MOST_PENDING: usize = 2048;
/// The time that a round waits for the Archive that holds the original, after another has answered about relations
/// of the item.
const PRECEDENCE: Duration = Duration::from_secs(1);

/// The result of a resolution.
pub(super) enum Resolution {
    Found(Arc<ArchiveService>, Location),
    /// A URL that an actor has registered, if no Archive knows the item (ibi-resolution(7)).
    Registered(String),
    /// An alert about the item with this identifier, which may be a related one.
    Alert(Alert, String),
    /// No Archive knows the item, and the registry cannot be asked.
    Failed(RegistryError),
}

/// All registered Archives have answered, and none knows the item.
const UNKNOWN_TO_ALL: Alert = Alert::Unknown {
    silent: 0,
    is_known: false,
};

/// Resolves a persistent URL.
pub(super) async fn resolve(
    resolver: &Arc<Resolver>,
    persistent: &Persistent,
    languages: &[Language],
    reader: &str,
) -> Resolution {
    let search = search(resolver, persistent, languages, reader);
    let found = tokio::time::timeout(SEARCH_TIMEOUT, search).await;
    found.unwrap_or_else(|_| Resolution::Alert(Alert::TooLong, persistent.question.ibi.clone()))
}

async fn search(
    resolver: &Arc<Resolver>,
    persistent: &Persistent,
    languages: &[Language],
    reader: &str,
) -> Resolution {
    let mut asked_before = HashSet::new();
    let mut question = persistent.question.clone();
    while asked_before.len() < MOST_ROUNDS && asked_before.insert(question.clone()) {
        let round = QueryRound {
            resolver,
            question: Arc::new(question),
            languages: languages.into(),
            reader,
            is_original_required: persistent.is_original_required,
        };
        let ibi = round.question.ibi.clone();
        match round.run().await {
            RoundResult::Found(archive, reached) => return Resolution::Found(archive, reached),
            // Registration is open to all, so a registered URL counts only if no Archive knows the
            // identifier.
            RoundResult::Alert(alert) if alert == UNKNOWN_TO_ALL => {
                return match registered(&round).await {
                    Ok(Some(url)) => Resolution::Registered(url),
                    Ok(None) => Resolution::Alert(alert, ibi),
                    Err(error) => Resolution::Failed(error),
                };
            }
            RoundResult::Alert(alert) => return Resolution::Alert(alert, ibi),
            RoundResult::Onward(next) => question = next,
        }
    }
    Resolution::Alert(Alert::Endless, persistent.question.ibi.clone())
}

/// Without the protocol of 2009 no actor registers a URL.
#[cfg(not(feature = "registration-2009"))]
async fn registered(_: &QueryRound<'_>) -> Result<Option<String>, RegistryError> {
    Ok(None)
}

/// The URL that an actor has registered for the target.
#[cfg(feature = "registration-2009")]
async fn registered(round: &QueryRound<'_>) -> Result<Option<String>, RegistryError> {
    if round.resolver.registrations.is_none() {
        return Ok(None);
    }
    let Ok(ibi) = Ibi::parse(&round.question.ibi) else {
        return Ok(None);
    };
    let is_list = matches!(
        round.question.request,
        Some(ibi::relation::Request::FileList(_))
    );
    let is_of_a_peer = round.resolver.archives.is_of_a_peer(&ibi);
    if is_list || round.question.filepath.is_some() || is_of_a_peer {
        return Ok(None);
    }
    let registry = Arc::clone(&round.resolver.registry);
    let found = threads::aside(move || {
        if registry.is_of_an_archive(&ibi)? {
            // An Archive that makes the identifiers of this prefix has precedence over older registrations.
            Ok::<_, RegistryError>(None)
        } else {
            registry.registered_document(&ibi)
        }
    });
    let found = found.await;
    let record = found.unwrap_or_else(|error| {
        Err(RegistryError::Broken(ibi::message::Message::foreign(
            error.to_string(),
        )))
    });
    let steps = round.question.steps();
    Ok(record?.and_then(|record| {
        let url = record.url(steps, round.is_original_required, &round.languages);
        url.map(str::to_owned)
    }))
}

/// One question to all Archives.
struct QueryRound<'a> {
    resolver: &'a Arc<Resolver>,
    question: Arc<ArchiveQuery>,
    languages: Arc<[Language]>,
    reader: &'a str,
    is_original_required: bool,
}

type Answers = JoinSet<(Arc<ArchiveService>, Option<ReceivedAnswer>)>;
type AskedAnswer = Result<(Arc<ArchiveService>, Option<ReceivedAnswer>), JoinError>;

/// A round in progress.
struct Answering {
    answers: Answers,
    asked: Vec<Arc<ArchiveService>>,
    tally: AnswerTally,
}

impl Answering {
    fn has_asked(&self, archive: &Arc<ArchiveService>) -> bool {
        self.asked.iter().any(|asked| Arc::ptr_eq(asked, archive))
    }
}

/// The answer of an Archive.
struct ReceivedAnswer {
    meaning: AnswerMeaning,
    /// Whether it is about relations of an item whose original is elsewhere.
    is_hearsay: bool,
}

impl QueryRound<'_> {
    async fn run(&self) -> RoundResult {
        let makers = self.makers().await;
        let mut round = Answering {
            answers: Answers::new(),
            asked: Vec::new(),
            // An Archive that is registered and not included may still hold the item.
            tally: AnswerTally {
                silent: self.resolver.archives.absent(),
                makers: makers.into_iter().map(|maker| (maker, false)).collect(),
                concerned: self.resolver.archives.concerned(&self.question.ibi),
                ..AnswerTally::default()
            },
        };
        let result = self.answered(&mut round).await;
        // Pending answers are still received, since their connections could not be reused otherwise.
        round.answers.detach_all();
        result.unwrap_or_else(|| round.tally.result())
    }

    /// The services of the Archives to which the prefix of the identifier belongs: a service with such an identifier, or
    /// the first that was recorded as its maker, if the original is required.
    async fn makers(&self) -> Vec<String> {
        let archives = &self.resolver.archives;
        let Ok(maker) = Ibi::parse(&self.question.ibi).map(|ibi| IdentifierMaker::of(&ibi)) else {
            return Vec::new();
        };
        let known = archives.makers(&maker);
        if !known.is_empty() || !self.is_original_required {
            return known;
        }
        let registry = Arc::clone(&self.resolver.registry);
        let first = threads::aside(move || registry.first_maker(&maker)).await;
        match first {
            Ok(Ok(first)) => first
                .and_then(|first| archives.service_of(first))
                .into_iter()
                .collect(),
            // Readers are answered without the database, as far as they can be.
            Ok(Err(error)) => {
                log::debug!("{error}");
                Vec::new()
            }
            Err(error) => {
                log::error!("{error}");
                Vec::new()
            }
        }
    }

    /// Asks until an answer ends the round. None if the answers have to be weighed.
    async fn answered(&self, round: &mut Answering) -> Option<RoundResult> {
        let archives = &self.resolver.archives;
        if let Some(found) = self.ask_likely(round).await {
            return Some(found);
        }
        let all = archives.all();
        let room = match self.room_for(all.len(), round).await {
            Ok(room) => room,
            Err(found) => return Some(found),
        };
        // Meanwhile another reader may have found who answers.
        if let Some(found) = self.ask_likely(round).await {
            return Some(found);
        }
        self.ask_all(&all, room, round);
        if let Some(found) = self.taken(round).await {
            return Some(found);
        }
        // Archives of lists come after registered ones, and do not learn what these answer.
        if round.tally.is_settled() {
            return None;
        }
        if let Some(first) = archives.likely_of_lists(&self.question.ibi)
            && !self.is_original_required
        {
            let head_start = first.head_start();
            self.ask(&first, None, round);
            if let Some(found) = self.taken_within(head_start, round).await {
                return Some(found);
            }
        }
        let federated = archives.federated();
        if !federated.is_empty() {
            let room = match self.room_for(federated.len(), round).await {
                Ok(room) => room,
                Err(found) => return Some(found),
            };
            self.ask_all(&federated, room, round);
        }
        self.taken(round).await
    }

    /// Asks the Archives that probably answer, one and then the others, and waits for each as long as it usually
    /// takes. If the original is required, all must answer, and none is asked first.
    async fn ask_likely(&self, round: &mut Answering) -> Option<RoundResult> {
        if self.is_original_required {
            return None;
        }
        let mut likely = self.resolver.archives.likely(&self.question.ibi);
        likely.retain(|it| !round.has_asked(&it.archive));
        let is_first_proven = likely.first().is_some_and(|first| first.is_proven);
        let alone = usize::from(is_first_proven);
        let (first, others) = likely.split_at(alone);
        for stage in [first, others] {
            let proven = stage.iter().filter(|it| it.is_proven);
            let head_start = proven.map(|it| it.archive.head_start()).max();
            for it in stage {
                self.ask(&it.archive, None, round);
            }
            let head_start = head_start.unwrap_or(HEAD_START);
            if !stage.is_empty()
                && let Some(found) = self.taken_within(head_start, round).await
            {
                return Some(found);
            }
        }
        None
    }

    /// Waits until so many more requests may be in progress, and takes the answers that come meanwhile, which may end
    /// the round.
    async fn room_for(
        &self,
        count: usize,
        round: &mut Answering,
    ) -> Result<OwnedSemaphorePermit, RoundResult> {
        let count = u32::try_from(count.min(MOST_PENDING)).unwrap_or(0);
        let room = Arc::clone(&self.resolver.room).acquire_many_owned(count);
        let mut room = std::pin::pin!(room);
        loop {
            tokio::select! {
                biased;
                room = &mut room => match room {
                    Ok(room) => return Ok(room),
                    // Cannot happen: the semaphore is never closed.
                    Err(_) => return Err(RoundResult::Alert(Alert::TooLong)),
                },
                Some(answer) = round.answers.join_next() => {
                    if let Some(found) = self.received(answer, &mut round.tally) {
                        return Err(found);
                    }
                }
            }
        }
    }

    /// Asks all of these that have not been asked. Those that have stopped answering are left alone and count as
    /// silent, unless all must answer.
    fn ask_all(
        &self,
        archives: &[Arc<ArchiveService>],
        mut room: OwnedSemaphorePermit,
        round: &mut Answering,
    ) {
        let before = std::mem::take(&mut round.asked);
        for archive in archives {
            if before.iter().any(|asked| Arc::ptr_eq(asked, archive)) {
                continue;
            }
            if !self.is_original_required && archive.is_left_alone() {
                round.tally.silent += 1;
            } else {
                self.ask(archive, room.split(1), round);
            }
        }
        round.asked.extend(before);
    }

    /// Takes answers for so long, or until all have come or others must be asked. Returns the result if one of them
    /// ends the round.
    async fn taken_within(&self, time: Duration, round: &mut Answering) -> Option<RoundResult> {
        let until = Instant::now() + time;
        while round.tally.hearsay.is_none()
            && let Ok(Some(answer)) =
                tokio::time::timeout_at(until, round.answers.join_next()).await
        {
            let found = self.received(answer, &mut round.tally);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Takes the answers of the Archives that have been asked. Returns the result if one of them ends the
    /// round.
    async fn taken(&self, round: &mut Answering) -> Option<RoundResult> {
        while let Some(answer) = Self::next(&mut round.answers, &round.tally).await {
            let found = self.received(answer, &mut round.tally);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn received(&self, answer: AskedAnswer, tally: &mut AnswerTally) -> Option<RoundResult> {
        match answer {
            Ok((archive, answer)) => self.take(archive, answer, tally),
            Err(error) => {
                log::error!("{error}");
                tally.silent += 1;
                None
            }
        }
    }

    /// The next answer. None if all have come, or the wait for the others is over.
    async fn next(answers: &mut Answers, tally: &AnswerTally) -> Option<AskedAnswer> {
        match &tally.hearsay {
            None => answers.join_next().await,
            Some((until, _)) => tokio::time::timeout_at(*until, answers.join_next())
                .await
                .ok()?,
        }
    }

    /// Asks one Archive. The request holds its part of the room until the answer has come.
    fn ask(
        &self,
        archive: &Arc<ArchiveService>,
        room: Option<OwnedSemaphorePermit>,
        round: &mut Answering,
    ) {
        round.asked.push(Arc::clone(archive));
        let query = self.question.query(self.reader);
        let client = self.resolver.client_of(archive).clone();
        let archive = Arc::clone(archive);
        let (question, languages) = (Arc::clone(&self.question), Arc::clone(&self.languages));
        let reader = self.reader.to_owned();
        round.answers.spawn(async move {
            let _room = room;
            let answer = archive.ask(&client, &query).await;
            // The answer may lack the pairs that show who holds the original. Ask for the item itself, too.
            let item = match answer
                .as_ref()
                .ok()
                .and_then(|it| question.about_the_item(it))
            {
                Some(about) => archive.ask(&client, &about.query(&reader)).await.ok(),
                None => None,
            };
            let answer = match answer {
                Ok(pairs) => Some(ReceivedAnswer {
                    meaning: question.meaning(&pairs, &languages),
                    is_hearsay: question.is_hearsay(item.as_ref().unwrap_or(&pairs)),
                }),
                Err(error) => {
                    log::info!("{} does not answer: {error}", archive.address);
                    None
                }
            };
            (archive, answer)
        });
    }

    /// Adds an answer. The first that satisfies ends the round, unless all must answer, or it is hearsay: the
    /// Archive that holds the original has precedence for the relations of its item.
    fn take(
        &self,
        archive: Arc<ArchiveService>,
        mut answer: Option<ReceivedAnswer>,
        tally: &mut AnswerTally,
    ) -> Option<RoundResult> {
        if let Some(answer) = &mut answer {
            tally.note_answer(&archive);
            let is_accepted = tally.accepts(&archive);
            answer.is_hearsay |= !is_accepted && !self.question.steps().is_empty();
            self.remember(&archive, answer, tally.is_known_by(&archive));
        }
        let is_hearsay = answer.as_ref().is_some_and(|answer| answer.is_hearsay);
        let round = self.weigh(archive, answer, tally)?;
        if !is_hearsay {
            return Some(round);
        }
        tally
            .hearsay
            .get_or_insert_with(|| (Instant::now() + PRECEDENCE, round));
        None
    }

    /// Remembers an Archive that has what is requested, or holds the original and knows where that is.
    fn remember(&self, archive: &Arc<ArchiveService>, answer: &ReceivedAnswer, is_known: bool) {
        let is_itself = self.question.steps().is_empty();
        let is_original = match &answer.meaning {
            AnswerMeaning::Reached(reached) if is_itself => {
                let is_original = is_known && reached.state == Some(State::Original);
                if is_original {
                    self.note_original(archive);
                }
                is_original
            }
            AnswerMeaning::Reached(_) => !answer.is_hearsay,
            AnswerMeaning::Onward(_) if !is_itself && !answer.is_hearsay => true,
            _ => return,
        };
        let archives = &self.resolver.archives;
        archives.remember(&self.question.ibi, archive, is_original);
    }

    fn weigh(
        &self,
        archive: Arc<ArchiveService>,
        answer: Option<ReceivedAnswer>,
        tally: &mut AnswerTally,
    ) -> Option<RoundResult> {
        match answer.map(|answer| answer.meaning) {
            None => tally.silent += 1,
            Some(AnswerMeaning::Nothing) => {}
            Some(AnswerMeaning::Unsatisfying) => tally.is_known = true,
            Some(AnswerMeaning::Deleted) => tally.is_deleted = true,
            Some(AnswerMeaning::Reached(reached)) => {
                match (self.is_original_required, reached.state) {
                    (false, _) => return Some(RoundResult::Found(archive, reached)),
                    (true, Some(State::Original)) => tally.originals.push((archive, reached)),
                    (true, _) => tally.has_copy = true,
                }
            }
            Some(AnswerMeaning::Onward(next)) => {
                if !self.is_original_required {
                    return Some(RoundResult::Onward(next));
                }
                tally.onward.push((archive, next));
            }
        }
        None
    }
}

impl QueryRound<'_> {
    /// Records that the maker of the identifier is an Archive that holds the original.
    fn note_original(&self, archive: &ArchiveService) {
        let Ok(ibi) = Ibi::parse(&self.question.ibi) else {
            return;
        };
        // No Archive of a list is a maker: its administrator has registered nothing here.
        let Some(id) = archive.id else {
            return;
        };
        let maker = IdentifierMaker::of(&ibi);
        if !self.resolver.archives.note_original(&maker, id) {
            return;
        }
        let resolver = Arc::clone(self.resolver);
        // In the background, so that the reader does not wait.
        threads::aside(move || {
            let now = resolver.clock.now();
            if let Err(error) = resolver.registry.note_maker(id, &maker, &now) {
                let level = if error.is_temporary() {
                    log::Level::Debug
                } else {
                    log::Level::Warn
                };
                log::log!(level, "{error}");
                resolver.archives.forget_original(&maker, id);
            }
        });
    }
}

/// Notifies an Archive that its answer was chosen, in the background.
pub(super) fn acknowledge(resolver: &Arc<Resolver>, archive: &Arc<ArchiveService>, query: String) {
    let client = resolver.client_of(archive).clone();
    let archive = Arc::clone(archive);
    tokio::spawn(async move {
        if let Err(error) = archive.acknowledge(&client, &query).await {
            log::info!("{} takes no acknowledgment: {error}", archive.address);
        }
    });
}
