//! Telling a resolver that the Archive is switched on, and off again (SPEC 8, inclusion).

use std::time::Duration;

use crate::web::client::Client;
use crate::web::registry::Inclusion;
use crate::web::server::resolver::SERVICE;
use ibi::pairs::Pairs;

/// How long a resolver may take: it asks back whether the Archive is reached.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a resolver may take at the end, when nobody waits for it any more.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// The longest answer, in bytes.
const LONGEST_ANSWER: usize = 4096;
/// How long to wait before asking again, at first and at last.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// An Archive and the resolver that is told of it.
#[derive(Clone, Debug)]
pub struct Announcement {
    service: String,
    inclusion: Inclusion,
    client: Client,
}

impl Announcement {
    /// For the resolver at a URL: that of its service, or `http://host[:port]` alone. None where it is no
    /// such URL.
    #[must_use]
    pub fn new(resolver: &str, inclusion: Inclusion) -> Option<Announcement> {
        let uri: hyper::Uri = resolver.parse().ok()?;
        let is_http = uri.scheme_str() == Some("http") && uri.query().is_none();
        let authority = uri.authority().filter(|_| is_http)?;
        let path = match uri.path().trim_matches('/') {
            "" => SERVICE,
            path => path,
        };
        Some(Announcement {
            service: format!("http://{authority}/{path}"),
            inclusion,
            client: Client::default(),
        })
    }

    /// Asks to be included until the resolver says that it is so; tells what comes of it.
    pub async fn include(self, tell: impl Fn(&str) + Send) {
        let (mut pause, longest) = PAUSES;
        loop {
            match self.ask("inclusionRequest", PATIENCE).await {
                Ok(answer) => return tell(&answer),
                Err(error) => log::warn!(
                    "not included with {}: {error}; asking again in {pause:?}",
                    self.service
                ),
            }
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    }

    /// Asks once to be excluded.
    pub async fn exclude(self) {
        if let Err(error) = self.ask("exclusionRequest", END_PATIENCE).await {
            log::warn!("not excluded with {}: {error}", self.service);
        }
    }

    async fn ask(&self, subject: &str, patience: Duration) -> Result<String, String> {
        let url = format!("{}?{}", self.service, self.inclusion.query(subject));
        let answer = self.client.get(&url, LONGEST_ANSWER, patience).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let pairs = Pairs::parse(&answer).map_err(|error| error.to_string())?;
        let status = pairs.get("status.archive").map(ToString::to_string);
        let confirmation = pairs.get("status.confirmation").map(ToString::to_string);
        match (status.as_deref(), confirmation.as_deref()) {
            (Some("included"), Some("unsuccessful")) => Ok(format!(
                "included with {}, which does not reach {} itself",
                self.service, self.inclusion.address
            )),
            (Some("included"), _) => Ok(format!("included with {}", self.service)),
            (Some("excluded"), _) => Ok(format!("excluded from {}", self.service)),
            _ => Err("the answer is none of a resolver".to_owned()),
        }
    }
}
