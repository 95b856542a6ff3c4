//! Announces to a resolver that the Archive is up, and that it shuts down (ibi-resolution(7), "Inclusion").

use std::time::Duration;

use crate::formats::base_url::BaseUrl;
use crate::http::client::Reach;
use crate::http::client::{Client, Network};
use crate::resolver::registry::{Inclusion, PAIRS_READ, READ_HERE, RESOLVER_SERVICE};
use ibi::message::{Localize, Message};
use ibi::pairs::Pairs;
use ibi::{Ibi, message};

/// The timeout of a request. The resolver checks that it reaches the Archive before it answers.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The timeout of a request during shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 4096;
/// The first and the longest pause before another attempt. Each pause is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The announcement of an Archive to a resolver.
#[derive(Clone, Debug)]
pub struct Announcement {
    service: String,
    inclusion: Inclusion,
    client: Client,
}

/// The result of a message.
struct Done {
    message: Message,
    /// Whether the resolver reaches the Archive.
    is_reached: bool,
    reads_prefixes: bool,
}

impl Announcement {
    /// An announcement to the resolver at a URL: the URL of its service, or of the resolver itself. None for any other
    /// URL.
    #[must_use]
    pub fn new(resolver: &str, inclusion: Inclusion, network: &Network) -> Option<Announcement> {
        let url = BaseUrl::parse(resolver).ok()?;
        let components: Vec<&str> = url.prefix().split('/').skip(1).collect();
        // The service of a resolver has an identifier, as that of an Archive.
        let is_service = [2, 4].iter().any(|count| {
            let at = components.len().checked_sub(*count);
            let end = at.and_then(|at| components.get(at..));
            end.is_some_and(|end| Ibi::parse(&end.join("/")).is_ok())
        });
        Some(Announcement {
            service: if is_service {
                url.to_string()
            } else {
                url.at(RESOLVER_SERVICE)
            },
            inclusion,
            client: Client::new(network, Reach::Any),
        })
    }

    /// The same with the prefixes of items that the Archive holds.
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Vec<String>) -> Announcement {
        self.inclusion.prefixes = prefixes;
        self
    }

    /// Requests inclusion until the resolver confirms that it reaches the Archive. Passes each new result to `report`.
    /// The prefixes are sent in a second message, if the resolver says that it reads them.
    pub async fn include(mut self, report: impl Fn(&Message) + Send + Sync) {
        let mut prefixes = std::mem::take(&mut self.inclusion.prefixes);
        let (mut pause, longest) = PAUSES;
        let mut reported = None;
        loop {
            match self.ask("inclusionRequest", TIMEOUT).await {
                Ok(done) => {
                    let sentence = done.message.to_string();
                    if reported.as_ref() != Some(&sentence) {
                        report(&done.message);
                        reported = Some(sentence);
                    }
                    if done.reads_prefixes && !prefixes.is_empty() {
                        self.inclusion.prefixes = std::mem::take(&mut prefixes);
                        if let Err(error) = self.ask("inclusionRequest", TIMEOUT).await {
                            log::warn!("no prefixes are announced to {}: {error}", self.service);
                        }
                    }
                    if done.is_reached {
                        return;
                    }
                }
                Err(error) => log::warn!(
                    "not included with {}: {error}; asking again in {pause:?}",
                    self.service
                ),
            }
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Requests exclusion, once.
    pub async fn exclude(self) {
        if let Err(error) = self.ask("exclusionRequest", SHUTDOWN_TIMEOUT).await {
            log::warn!("not excluded with {}: {error}", self.service);
        }
    }

    /// Sends a message.
    async fn ask(&self, subject: &str, timeout: Duration) -> Result<Done, Message> {
        let url = format!("{}?{}", self.service, self.inclusion.query(subject));
        let answer = self.client.get_with_headers(&url, LONGEST_ANSWER, timeout);
        let (headers, answer) = answer.await.map_err(|error| error.message())?;
        let reads_prefixes = headers
            .get(PAIRS_READ)
            .is_some_and(|pairs| pairs == READ_HERE);
        let pairs = Pairs::parse(&answer).map_err(|error| error.message())?;
        let status = pairs.get("status.archive").map(ToString::to_string);
        let confirmation = pairs.get("status.confirmation").map(ToString::to_string);
        let resolver = &self.service;
        let message = match (status.as_deref(), confirmation.as_deref()) {
            (Some("included"), Some("unsuccessful")) => message!(
                "included with {resolver}, which does not reach {address} itself",
                resolver,
                address = self.inclusion.url.short()
            ),
            (Some("included"), _) => message!("included with {resolver}", resolver),
            (Some("excluded"), _) => message!("excluded from {resolver}", resolver),
            _ => return Err(message!("the answer is not that of a resolver")),
        };
        Ok(Done {
            message,
            is_reached: confirmation.as_deref() != Some("unsuccessful"),
            reads_prefixes,
        })
    }
}
