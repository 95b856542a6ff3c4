//! The lists of federated Archives (ibi-resolution(7), "Federated Archives") that a resolver reads at start
//! and again from time to time, from files and from the network.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use rustix::fs::OFlags;
use tokio::task::JoinSet;

use super::Resolver;
use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_formats::federation::{self, Admitted, FederatedArchive, FederationError, LONGEST_LIST};
use ibifs_http::client::Reach;
use ibifs_http::client::{Client, ClientError};
use ibifs_http::server::threads;
use ibifs_os::opening::{NOT_REGULAR, regular};

/// The interval at which a file is read.
const FILE_INTERVAL: Duration = Duration::from_secs(5);
/// The interval at which a URL is read.
const URL_INTERVAL: Duration = Duration::from_secs(15 * 60);
/// The interval after a URL could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// The timeout of a URL.
const URL_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSource {
    /// A file of the administrator, which may name any address.
    File(PathBuf),
    /// A URL. The list there may name public addresses only, unless the resolver allows others.
    Url(String),
}

/// The reason why a list is not read.
#[derive(Debug)]
pub enum ListError {
    /// A URL of another scheme than `http` and `https`, or one that is malformed.
    Url(String),
    /// The file is not a regular one.
    NotFile,
    /// The file cannot be read.
    File(std::io::Error),
    /// The URL cannot be read, with the reason.
    Network(Message),
    /// It is not a list.
    List(FederationError),
}

impl Localize for ListError {
    fn message(&self) -> Message {
        match self {
            ListError::Url(url) => message!("'{url}' is not a URL", url),
            ListError::NotFile => message!("it is not a regular file"),
            ListError::File(error) => error.message(),
            ListError::Network(error) => error.clone(),
            ListError::List(error) => error.message(),
        }
    }
}

display_message!(ListError);

impl std::error::Error for ListError {}

impl fmt::Display for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListSource::File(path) => path.display().fmt(f),
            ListSource::Url(url) => f.write_str(url),
        }
    }
}

impl ListSource {
    /// Reads what an administrator writes: a URL, or else the path of a file.
    ///
    /// # Errors A URL that cannot be asked.
    pub fn parse(text: &str) -> Result<ListSource, ListError> {
        if !text.contains("://") {
            return Ok(ListSource::File(text.into()));
        }
        let is_web = ["http://", "https://"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        let is_good = is_web && text.parse::<Uri>().is_ok();
        let good = is_good.then(|| ListSource::Url(text.to_owned()));
        good.ok_or_else(|| ListError::Url(text.to_owned()))
    }

    /// Returns which addresses its Archives may have.
    pub(super) fn reach(&self) -> Reach {
        match self {
            ListSource::File(_) => Reach::Any,
            ListSource::Url(_) => Reach::Public,
        }
    }

    /// Reads the list, if it is in a file.
    ///
    /// # Errors The file cannot be read, or is not a list.
    pub fn read_file(&self) -> Result<Option<Vec<FederatedArchive>>, ListError> {
        let ListSource::File(path) = self else {
            return Ok(None);
        };
        let file = regular(path, OFlags::empty()).map_err(|errno| match errno {
            NOT_REGULAR => ListError::NotFile,
            errno => ListError::File(errno.into()),
        })?;
        let mut bytes = Vec::new();
        let most = LONGEST_LIST as u64 + 1;
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(ListError::File)?;
        let list = federation::parse(&bytes, Admitted::All);
        list.map(Some).map_err(ListError::List)
    }

    async fn read(
        &self,
        client: &Client,
        admitted: Admitted,
    ) -> Result<Vec<FederatedArchive>, ListError> {
        let ListSource::Url(url) = self else {
            let source = self.clone();
            let read = threads::aside(move || source.read_file()).await;
            let read =
                read.map_err(|error| ListError::Network(Message::foreign(error.to_string())))?;
            return Ok(read?.unwrap_or_default());
        };
        let bytes = client.get(url, LONGEST_LIST, URL_TIMEOUT).await;
        let bytes = bytes.map_err(|error: ClientError| ListError::Network(error.message()))?;
        federation::parse(&bytes, admitted).map_err(ListError::List)
    }

    fn interval(&self, has_failed: bool) -> Duration {
        match (self, has_failed) {
            (ListSource::File(_), _) => FILE_INTERVAL,
            (ListSource::Url(_), false) => URL_INTERVAL,
            (ListSource::Url(_), true) => RETRY_INTERVAL,
        }
    }
}

/// Starts reading each list again whenever its interval has passed.
pub(super) fn start(resolver: &Arc<Resolver>, tasks: &mut JoinSet<()>) {
    for (at, source) in resolver.lists.iter().enumerate() {
        tasks.spawn(follow(Arc::clone(resolver), at, source.clone()));
    }
}

/// Reads one list again and again. The last one stays in force while none can be read, which is logged once.
async fn follow(resolver: Arc<Resolver>, at: usize, source: ListSource) {
    let admitted = if resolver.allows_private {
        Admitted::All
    } else {
        Admitted::Public
    };
    let mut has_failed = false;
    loop {
        match source.read(&resolver.client, admitted).await {
            Ok(archives) => {
                let count = archives.len();
                if resolver.archives.federate(at, archives) {
                    log::info!("{source} lists {count} Archives");
                } else if has_failed {
                    log::info!("{source} is read again");
                }
                has_failed = false;
            }
            Err(error) if !has_failed => {
                log::warn!("{source}: {error}; the last list stays in force");
                has_failed = true;
            }
            Err(error) => log::debug!("{source}: {error}"),
        }
        tokio::time::sleep(source.interval(has_failed)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        let file = ListSource::parse("lists/a.txt").expect("a file");
        assert_eq!(file, ListSource::File("lists/a.txt".into()));
        assert_eq!(file.reach(), Reach::Any);
        let url = ListSource::parse("http://urlib.net/federatedArchives.txt").expect("a URL");
        assert_eq!(url.reach(), Reach::Public);
        let url = ListSource::parse("https://urlib.net/federatedArchives.txt").expect("a URL");
        assert_eq!(url.reach(), Reach::Public);
        for (bad, sentence) in [
            ("ftp://x/y", "'ftp://x/y' is not a URL"),
            ("http://", "'http://' is not a URL"),
        ] {
            let error = ListSource::parse(bad).expect_err(bad);
            assert_eq!(error.to_string(), sentence);
        }
    }
}
