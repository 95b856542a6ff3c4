//! The address of a server, the user as whom it is asked, and the protection of the connection.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};

use super::{described, password, tls};
use crate::error::StoreError;
use crate::index_url::{IndexUrl, NamedBy};
use ibi::message;
use ibi::message::Message;

/// The time for which a connection to one of several hosts of a URL is tried.
const PER_HOST: Duration = Duration::from_secs(1);

/// The time that data may be unacknowledged, and that a silent connection is not probed.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// The milliseconds after which the server gives up a transaction of a host that has stopped, so that its locks do
/// not stop the others.
pub(super) const IDLE_IN_TRANSACTION: u64 = 5_000;

/// The server of an index.
pub(super) struct Address {
    /// Host, port and database, for messages.
    pub(super) place: String,
    config: Config,
    tls: Option<tls::Connector>,
    /// Whether there is a password that this server does not get.
    is_withheld: bool,
}

impl Address {
    /// Reads what a URL, the environment and the file of passwords say.
    pub(super) fn of(url: &IndexUrl) -> Result<Address, StoreError> {
        let place = url.place().to_owned();
        let refuse = |what: Message| StoreError::Away {
            place: place.clone(),
            what,
        };
        let (text, certificates) = url.without_certificates();
        let mut config = Config::from_str(&text).map_err(|error| refuse(described(&error)))?;
        config
            .application_name("ibifs")
            .connect_timeout(PER_HOST)
            .tcp_user_timeout(UNACKNOWLEDGED)
            .keepalives(true)
            .keepalives_idle(UNACKNOWLEDGED);
        // An address beside the name of a host is where the connection goes.
        let is_where_it_says = config.get_hostaddrs().is_empty();
        let hosts = config.get_hosts();
        let is_local = is_where_it_says
            && hosts.iter().all(|host| match host {
                Host::Tcp(name) => name == "localhost" || name == "127.0.0.1" || name == "::1",
                Host::Unix(_) => true,
            });
        let is_socket = is_local && hosts.iter().all(|host| matches!(host, Host::Unix(_)));
        let is_plain = match config.get_ssl_mode() {
            SslMode::Disable => true,
            SslMode::Prefer => is_local && certificates.is_none(),
            _ => false,
        };
        let tls = if is_plain {
            None
        } else {
            Some(tls::connector(certificates.as_deref()).map_err(refuse)?)
        };
        let mut is_withheld = false;
        if let Some(password) = password::find(&config).map_err(refuse)? {
            let is_named =
                is_where_it_says && (password.is_for_these || url.origin() == NamedBy::Caller);
            let is_protected = url.origin() == NamedBy::Store && (is_socket || tls.is_some());
            if is_named || is_protected {
                config.password(password.text);
            } else {
                is_withheld = true;
            }
            if tls.is_some() {
                // If a server, or a machine in between, refuses TLS, the password would be sent as it is.
                config.ssl_mode(SslMode::Require);
            }
        }
        Ok(Address {
            place,
            config,
            tls,
            is_withheld,
        })
    }

    /// Returns why no connection was made.
    fn refused(&self, error: &tokio_postgres::Error) -> Message {
        let what = described(error);
        if !self.is_withheld {
            return what;
        }
        message!(
            "{what}; a password is sent to a server that archive.ibi names only by TLS and for a store of your own, or if PGHOST and PGPORT, or host and port in the file of passwords, name it",
            what
        )
    }

    /// Connects. The task of the connection runs on the runtime that polls this.
    pub(super) async fn connect(&self) -> Result<Client, Message> {
        let client = match &self.tls {
            Some(tls) => {
                let (client, connection) = self
                    .config
                    .connect(tls.clone())
                    .await
                    .map_err(|error| self.refused(&error))?;
                tokio::spawn(connection);
                client
            }
            None => {
                let (client, connection) = self
                    .config
                    .connect(NoTls)
                    .await
                    .map_err(|error| self.refused(&error))?;
                tokio::spawn(connection);
                client
            }
        };
        let set = format!("SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION}");
        let set = client.batch_execute(&set).await;
        set.map_err(|error| described(&error))?;
        // All statements are of few rows found by an index: to plan one for its values, or to compile it, takes longer
        // than to run it, and a plan made while a table was empty would read the whole table until the server has
        // counted its rows. Another server that speaks the protocol may not know these.
        for set in [
            "plan_cache_mode = force_generic_plan",
            "jit = off",
            "enable_seqscan = off",
        ] {
            if let Err(error) = client.batch_execute(&format!("SET {set}")).await {
                log::debug!("{set}: {}", described(&error));
            }
        }
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without TLS, a password and the index would be readable on the network.
    #[test]
    fn another_host_is_asked_by_tls() {
        let uses_tls = |url: &str| {
            let url = IndexUrl::parse(url).expect(url);
            Address::of(&url).expect("an address").tls.is_some()
        };
        assert!(uses_tls("postgres://u@db.example.org/d"));
        assert!(uses_tls("postgres://u@127.0.0.1/d?sslmode=require"));
        assert!(!uses_tls("postgres://u@127.0.0.1/d"));
        assert!(!uses_tls("postgres://u@db.example.org/d?sslmode=disable"));
    }
}
