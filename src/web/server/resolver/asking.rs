//! Asks the Archives, in rounds, for the target of a persistent URL (ibi-resolution(7), "Resolution").

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::Resolver;
use crate::archive::Clock;
use crate::formats::item::State;
use crate::formats::resolution::{AnswerMeaning, ArchiveQuery, Location, Persistent};
use crate::web::client::archive_service::ArchiveService;
use crate::web::registry::{IdentifierMaker, RegistryError};
use crate::web::server::threads;
use ibi::Ibi;
use ibi::relation::{Language, Request};

/// The most rounds, each of which follows an edition or a relation.
const MOST_ROUNDS: usize = 16;
/// The timeout of a resolution.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the Archive that answered last for a prefix has before the others are asked, too.
const HEAD_START: Duration = Duration::from_millis(50);
/// How long a round waits for the Archive that holds the original, after another has answered about relations
/// of the item.
const PRECEDENCE: Duration = Duration::from_secs(1);

/// The result of a resolution.
pub(super) enum Resolution {
    Found(Arc<ArchiveService>, Location),
    /// A URL that an actor has registered, if no Archive knows the item (ibi-resolution(7)).
    Registered(String),
    Alert(Alert),
}

/// Why a reader is not redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Alert {
    /// No Archive knows the item or, if `is_known`, what is requested of it. `silent` Archives did not
    /// answer.
    Unknown { silent: usize, is_known: bool },
    /// The item was removed.
    Deleted,
    /// The original is required, and only copies were found.
    CopiesOnly { silent: usize },
    /// Several Archives claim to hold the original.
    Suspects(Vec<String>),
    /// Editions or relations form a cycle, or lead too far.
    Endless,
    /// The resolution timed out.
    TooLong,
}

/// All registered Archives have answered, and none knows the item.
const NOBODYS: Alert = Alert::Unknown {
    silent: 0,
    is_known: false,
};

/// The result of one round.
enum RoundResult {
    Found(Arc<ArchiveService>, Location),
    Onward(ArchiveQuery),
    Alert(Alert),
}

/// Resolves a persistent URL.
pub(super) async fn resolve(
    resolver: &Arc<Resolver>,
    persistent: &Persistent,
    languages: &[Language],
    reader: &str,
) -> Resolution {
    let search = search(resolver, persistent, languages, reader);
    let found = tokio::time::timeout(SEARCH_TIMEOUT, search).await;
    found.unwrap_or(Resolution::Alert(Alert::TooLong))
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
        match round.run().await {
            RoundResult::Found(archive, reached) => return Resolution::Found(archive, reached),
            // Registration is open to all, so a registered URL counts only if no Archive knows the
            // identifier.
            RoundResult::Alert(alert) if alert == NOBODYS => {
                let registered = registered(&round).await;
                return registered.map_or(Resolution::Alert(alert), Resolution::Registered);
            }
            RoundResult::Alert(alert) => return Resolution::Alert(alert),
            RoundResult::Onward(next) => question = next,
        }
    }
    Resolution::Alert(Alert::Endless)
}

/// The URL that an actor has registered for the target.
async fn registered(round: &QueryRound<'_>) -> Option<String> {
    round.resolver.registrations.as_ref()?;
    let ibi = Ibi::parse(&round.question.ibi).ok()?;
    let is_list = matches!(round.question.request, Some(Request::FileList(_)));
    if is_list || round.question.filepath.is_some() {
        return None;
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
    match found.await {
        Ok(Ok(record)) => {
            let steps = round.question.steps();
            let url = record
                .as_ref()?
                .url(steps, round.is_original_required, &round.languages);
            url.map(str::to_owned)
        }
        Ok(Err(error)) => {
            log::warn!("{error}");
            None
        }
        Err(error) => {
            log::error!("{error}");
            None
        }
    }
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

/// The answer of an Archive.
struct ReceivedAnswer {
    meaning: AnswerMeaning,
    /// Whether it is about relations of an item whose original is elsewhere.
    is_hearsay: bool,
}

/// The answers received so far.
#[derive(Default)]
struct AnswerTally {
    originals: Vec<(Arc<ArchiveService>, Location)>,
    has_copy: bool,
    is_deleted: bool,
    is_known: bool,
    onward: Option<ArchiveQuery>,
    /// The first result from an Archive that does not hold the original, and how long to wait for one that
    /// does.
    hearsay: Option<(Instant, RoundResult)>,
    silent: usize,
}

impl QueryRound<'_> {
    async fn run(&self) -> RoundResult {
        let mut answers = Answers::new();
        let result = self.answered(&mut answers).await;
        // Pending answers are still received, since their connections could not be reused otherwise.
        answers.detach_all();
        result
    }

    async fn answered(&self, answers: &mut Answers) -> RoundResult {
        let all = self.resolver.archives.all();
        // An Archive that is registered and not included may still hold the item.
        let mut tally = AnswerTally {
            silent: self.resolver.archives.absent(),
            ..AnswerTally::default()
        };
        let remembered = if self.is_original_required {
            // All Archives must answer.
            None
        } else {
            self.resolver.archives.remembered(&self.question.ibi)
        };
        if let Some(first) = &remembered {
            self.ask(first, answers);
            let answer = tokio::time::timeout(HEAD_START, answers.join_next()).await;
            if let Ok(Some(Ok((archive, answer)))) = answer
                && let Some(round) = self.take(archive, answer, &mut tally)
            {
                return round;
            }
        }
        let is_asked = |archive: &&Arc<ArchiveService>| {
            remembered
                .as_ref()
                .is_some_and(|first| Arc::ptr_eq(first, archive))
        };
        for archive in all.iter().filter(|archive| !is_asked(archive)) {
            self.ask(archive, answers);
        }
        if let Some(round) = self.taken(answers, &mut tally).await {
            return round;
        }
        // Archives of lists come after registered ones, and do not learn what these answer.
        if !tally.is_settled() {
            for archive in self.resolver.archives.federated().iter() {
                self.ask(archive, answers);
            }
            if let Some(round) = self.taken(answers, &mut tally).await {
                return round;
            }
        }
        tally.result()
    }

    /// Takes the answers of the Archives that have been asked. Returns the result if one of them ends the
    /// round.
    async fn taken(&self, answers: &mut Answers, tally: &mut AnswerTally) -> Option<RoundResult> {
        while let Some(answer) = self.next(answers, tally).await {
            match answer {
                Ok((archive, answer)) => {
                    if let Some(round) = self.take(archive, answer, tally) {
                        return Some(round);
                    }
                }
                Err(error) => {
                    log::error!("{error}");
                    tally.silent += 1;
                }
            }
        }
        None
    }

    /// The next answer. None if all have come, or the wait for the others is over.
    async fn next(
        &self,
        answers: &mut Answers,
        tally: &AnswerTally,
    ) -> Option<Result<(Arc<ArchiveService>, Option<ReceivedAnswer>), JoinError>> {
        match &tally.hearsay {
            None => answers.join_next().await,
            Some((until, _)) => tokio::time::timeout_at(*until, answers.join_next())
                .await
                .ok()?,
        }
    }

    /// Asks one Archive. The result is added to `answers`.
    fn ask(&self, archive: &Arc<ArchiveService>, answers: &mut Answers) {
        let query = self.question.query(self.reader);
        let client = self.resolver.client_of(archive).clone();
        let archive = Arc::clone(archive);
        let (question, languages) = (Arc::clone(&self.question), Arc::clone(&self.languages));
        let reader = self.reader.to_owned();
        answers.spawn(async move {
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
            archive.note(answer.is_ok());
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
        answer: Option<ReceivedAnswer>,
        tally: &mut AnswerTally,
    ) -> Option<RoundResult> {
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
                self.resolver
                    .archives
                    .remember(&self.question.ibi, &archive);
                if reached.state == Some(State::Original) && self.question.steps().is_empty() {
                    self.note_original(&archive);
                }
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
                tally.onward.get_or_insert(next);
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
        let registry = Arc::clone(&self.resolver.registry);
        let clock = self.resolver.clock.clone();
        // In the background, so that the reader does not wait.
        threads::aside(move || {
            if let Err(error) = registry.note_maker(id, &maker, &clock.now()) {
                log::warn!("{error}");
            }
        });
    }
}

impl AnswerTally {
    /// Whether the answers decide, so that Archives of lists are not asked.
    fn is_settled(&self) -> bool {
        self.hearsay.is_some() || self.onward.is_some() || !self.originals.is_empty()
    }

    /// The result of all answers.
    fn result(mut self) -> RoundResult {
        if let Some((_, round)) = self.hearsay {
            return round;
        }
        if self.originals.len() > 1 {
            let suspects = self.originals.iter();
            let mut suspects: Vec<String> = suspects
                .map(|(archive, _)| archive.address.clone())
                .collect();
            suspects.sort();
            return RoundResult::Alert(Alert::Suspects(suspects));
        }
        let (silent, is_known) = (self.silent, self.is_known || self.is_deleted);
        match (self.originals.pop(), self.onward) {
            (Some((archive, reached)), _) => RoundResult::Found(archive, reached),
            (None, Some(next)) => RoundResult::Onward(next),
            (None, None) if self.has_copy => RoundResult::Alert(Alert::CopiesOnly { silent }),
            (None, None) if self.is_deleted && silent == 0 => RoundResult::Alert(Alert::Deleted),
            (None, None) => RoundResult::Alert(Alert::Unknown { silent, is_known }),
        }
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
