//! The actors of the protocol of 2009, and the identifiers that are generated for them.

use std::net::IpAddr;
use std::time::Duration;

use super::bounds::{Bounds, DAYS_TO_TAKE_EFFECT};
use super::refusal::{RuleViolation, VerbError};
use super::verbs::Verbs;
use crate::registry::makers::{self, IdentifierMaker};
use crate::registry::{Registry, RegistryError, secret};
use ibi::distributor::{Granularity, TemporalDistributor};
use ibi::message;
use ibi::{Ibi, Rep, RepPrefix, Timestamp};
use ibifs_formats::registration::{Credentials, Email, Password, Provider, RegistrationAnswer};
use ibifs_sql::engine::{Row, Value, params};
use ibifs_sql::error::StoreError;

/// The longest time that a request waits for the date of its identifier.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// The most taken identifiers that are skipped, each a step of a millisecond.
const MOST_TAKEN: usize = 1000;
const DAY: i64 = 86_400;

/// A row of the table of actors.
#[derive(Clone, Debug)]
pub(super) struct ActorRow {
    pub(super) row: i64,
    /// Its identifier.
    pub(super) id: String,
    /// The name of its host, in lower case.
    pub(super) host: String,
    /// The port of its URLs.
    pub(super) port: u16,
    pub(super) email: String,
    /// The hash of its password.
    pub(super) secret: String,
    /// The client address from which it was registered, and its domain. None for an actor that is older than
    /// these columns.
    pub(super) client: Option<String>,
    pub(super) domain: Option<String>,
    /// The prefix of its identifiers.
    prefix: RepPrefix,
    pub(super) registered_at: Timestamp,
    /// The time at which it registered its last document. None if it has registered none, and is not yet in effect.
    pub(super) confirmed_at: Option<Timestamp>,
    /// The time since when none of its URLs has worked. None while one works.
    pub(super) dead_since: Option<Timestamp>,
    /// The last date that was used in an identifier of its prefix.
    last_date: Timestamp,
}

/// The columns that [`ActorRow::of_row`] reads.
const COLUMNS: &str = "id, rep, prefix, host, port, email, secret, client, domain, registered_at, \
                       confirmed_at, dead_since, last_date";

impl Registry {
    /// The actor, if the password is valid.
    pub(super) fn proven(&self, who: &Credentials) -> Result<ActorRow, VerbError> {
        let known = Verbs(&self.lock()).actor(&who.actor)?;
        match known {
            Some(actor) if secret::is_of(who.password.as_str(), &actor.secret) => return Ok(actor),
            Some(_) => {}
            // Takes as long as the check of a wrong password, so that the time does not show which actors
            // exist.
            None => secret::is_of_nothing(who.password.as_str()),
        }
        Err(RuleViolation::Credentials(who.actor.to_string()).into())
    }

    /// Runs a change for an authenticated actor in one transaction.
    pub(super) fn change<T>(
        &self,
        actor: &ActorRow,
        mut work: impl FnMut(&Verbs<'_>) -> Result<T, VerbError>,
    ) -> Result<T, VerbError> {
        self.write(|connection| {
            let verbs = Verbs(connection);
            verbs.check_secret(actor)?;
            work(&verbs)
        })
    }

    /// Registers an actor. Returns the identifier again to an actor that is registered already.
    pub(super) fn register_actor(
        &self,
        provider: &Provider,
        email: &Email,
        password: &Password,
        client: IpAddr,
        now: &Timestamp,
    ) -> Result<(RegistrationAnswer, Duration), VerbError> {
        let prefix = provider.prefix().canonical();
        let known = Verbs(&self.lock()).actor_at(&prefix)?;
        let known = match known {
            Some(actor) if secret::is_of(password.as_str(), &actor.secret) => {
                return Ok((RegistrationAnswer::Actor(actor.id), Duration::ZERO));
            }
            Some(actor) if actor.holds_its_place(now) => {
                return Err(other_password(provider).into());
            }
            known => known,
        };
        let kept = secret::kept(password.as_str())?;
        let (client, domain) = (client.to_string(), provider.domain());
        self.write(|connection| {
            let verbs = Verbs(connection);
            match (&known, verbs.actor_at(&prefix)?) {
                (None, None) => {
                    verbs.refuse_archives(
                        &IdentifierMaker::of_host(provider.host()),
                        provider.host(),
                    )?;
                    verbs.see_to_room_for_an_actor(self.bounds, &client, domain, now)?;
                    let (rep, wait) = verbs.new_label(provider.prefix(), None, now)?;
                    connection.execute(
                        "INSERT INTO actor (id, rep, prefix, host, port, email, secret, registered_at,
                                            last_date, client, domain)
                         VALUES ((SELECT coalesce(max(id), 0) + 1 FROM actor),
                                 ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                        params![
                            rep.canonical(),
                            &prefix,
                            provider.host(),
                            provider.port(),
                            email.as_str(),
                            &kept,
                            now.to_rfc3339(),
                            rep.timestamp().to_rfc3339(),
                            &client,
                            domain,
                        ],
                    )?;
                    Ok((RegistrationAnswer::Actor(rep.canonical()), wait))
                }
                (Some(_), Some(actor)) if !actor.holds_its_place(now) => {
                    verbs.refuse_archives(
                        &IdentifierMaker::of_host(provider.host()),
                        provider.host(),
                    )?;
                    let is_elsewhere = actor.client.as_deref() != Some(client.as_str());
                    if is_elsewhere {
                        verbs.see_to_room_from(self.bounds, &client)?;
                    }
                    connection.execute(
                        "UPDATE actor SET email = ?2, secret = ?3, registered_at = ?4, client = ?5,
                                          domain = ?6
                         WHERE id = ?1",
                        params![
                            actor.row,
                            email.as_str(),
                            &kept,
                            now.to_rfc3339(),
                            &client,
                            domain,
                        ],
                    )?;
                    Ok((RegistrationAnswer::Actor(actor.id), Duration::ZERO))
                }
                // Another request has registered it meanwhile.
                _ => Err(other_password(provider).into()),
            }
        })
    }

    /// Changes an actor's password.
    pub(super) fn change_password(
        &self,
        who: &Credentials,
        password: &Password,
    ) -> Result<RegistrationAnswer, VerbError> {
        let actor = self.proven(who)?;
        let kept = secret::kept(password.as_str())?;
        self.change(&actor, |verbs| {
            let set = "UPDATE actor SET secret = ?2 WHERE id = ?1";
            verbs.0.execute(set, params![actor.row, &kept])?;
            let sentence = format!("the password of {} is changed", actor.id);
            Ok(RegistrationAnswer::Confirmed(sentence))
        })
    }

    /// Changes an actor's e-mail address.
    pub(super) fn change_email(
        &self,
        who: &Credentials,
        email: &Email,
    ) -> Result<RegistrationAnswer, VerbError> {
        let actor = self.proven(who)?;
        self.change(&actor, |verbs| {
            let set = "UPDATE actor SET email = ?2 WHERE id = ?1";
            verbs.0.execute(set, params![actor.row, email.as_str()])?;
            let sentence = format!("the e-mail address of {} is changed", actor.id);
            Ok(RegistrationAnswer::Confirmed(sentence))
        })
    }
}

fn other_password(provider: &Provider) -> RuleViolation {
    RuleViolation::OtherPassword {
        host: provider.host().to_owned(),
        port: provider.port(),
    }
}

impl ActorRow {
    fn of_row(row: &Row<'_>) -> Result<ActorRow, StoreError> {
        let broken = |what: &str| StoreError::Broken {
            what: message!("{what} of an actor", what),
        };
        let time = |column: &str| -> Result<Option<Timestamp>, StoreError> {
            let text: Option<String> = row.get(column)?;
            let time = text.map(|text| Timestamp::parse_rfc3339(&text)).transpose();
            time.map_err(|_| broken(column))
        };
        let some = |column: &str| time(column)?.ok_or_else(|| broken(column));
        let prefix: String = row.get("prefix")?;
        Ok(ActorRow {
            row: row.get("id")?,
            id: row.get("rep")?,
            host: row.get("host")?,
            port: row.get("port")?,
            email: row.get("email")?,
            secret: row.get("secret")?,
            client: row.get("client")?,
            domain: row.get("domain")?,
            prefix: RepPrefix::parse(&prefix).map_err(|_| broken("prefix"))?,
            registered_at: some("registered_at")?,
            confirmed_at: time("confirmed_at")?,
            dead_since: time("dead_since")?,
            last_date: some("last_date")?,
        })
    }

    /// Whether the registration still excludes others.
    fn holds_its_place(&self, now: &Timestamp) -> bool {
        let age = now.seconds() - self.registered_at.seconds();
        self.confirmed_at.is_some() || age <= DAYS_TO_TAKE_EFFECT * DAY
    }
}

impl Verbs<'_> {
    /// The actor with this identifier.
    pub(super) fn actor(&self, id: &Ibi) -> Result<Option<ActorRow>, StoreError> {
        self.one("rep", &id.canonical())
    }

    fn actor_at(&self, prefix: &str) -> Result<Option<ActorRow>, StoreError> {
        self.one("prefix", prefix)
    }

    fn one(&self, column: &'static str, text: &str) -> Result<Option<ActorRow>, StoreError> {
        let select = format!("SELECT {COLUMNS} FROM actor WHERE {column} = ?1");
        self.0.first(&select, params![text], ActorRow::of_row)
    }

    /// All actors in order of registration, each with its number of documents and copies.
    pub(super) fn all_actors(&self) -> Result<Vec<(ActorRow, u64)>, StoreError> {
        let select = format!(
            "SELECT {COLUMNS}, (SELECT count(*) FROM registration WHERE actor = actor.id) AS documents
             FROM actor ORDER BY id"
        );
        self.0.each(&select, &[], |row| {
            let documents: i64 = row.get("documents")?;
            Ok((
                ActorRow::of_row(row)?,
                u64::try_from(documents).unwrap_or(0),
            ))
        })
    }

    /// Refuses what a registered Archive makes.
    pub(super) fn refuse_archives(
        &self,
        maker: &IdentifierMaker,
        what: &str,
    ) -> Result<(), VerbError> {
        if makers::is_of_an_archive(self.0, maker)? {
            Err(RuleViolation::OfAnArchive(what.to_owned()).into())
        } else {
            Ok(())
        }
    }

    /// Enforces the limit on the actors of one client address.
    fn see_to_room_from(&self, bounds: Bounds, client: &str) -> Result<(), VerbError> {
        let select = "SELECT count(*) FROM actor WHERE client = ?1";
        if self.count(select, params![client])? < bounds.actors_of_client {
            Ok(())
        } else {
            Err(RuleViolation::TooManyActorsOf("client address", bounds.actors_of_client).into())
        }
    }

    /// Enforces the limits on actors. At the overall limit, deletes actors that have not taken effect in
    /// time. Their identifiers are not generated again, since those have a date in the past.
    fn see_to_room_for_an_actor(
        &self,
        bounds: Bounds,
        client: &str,
        domain: &str,
        now: &Timestamp,
    ) -> Result<(), VerbError> {
        self.see_to_room_from(bounds, client)?;
        let of_domain = "SELECT count(*) FROM actor WHERE domain = ?1";
        if self.count(of_domain, params![domain])? >= bounds.actors_of_domain {
            return Err(RuleViolation::TooManyActorsOf("domain", bounds.actors_of_domain).into());
        }
        let most = bounds.actors;
        if self.count("SELECT count(*) FROM actor", &[])? < most {
            return Ok(());
        }
        let lapsed = now.seconds() - DAYS_TO_TAKE_EFFECT * DAY;
        let delete =
            "DELETE FROM actor WHERE effective_at IS NULL AND registered_at < ?1 RETURNING id";
        let lapsed = Timestamp::from_unix(lapsed, 0).to_rfc3339();
        if self.0.exists(delete, params![lapsed])? {
            Ok(())
        } else {
            Err(RuleViolation::TooManyActors(most).into())
        }
    }

    pub(super) fn count(&self, select: &str, of: &[Value<'_>]) -> Result<u64, VerbError> {
        let count: i64 = self.0.value(select, of)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Refuses an actor whose password has changed since it was authenticated.
    pub(super) fn check_secret(&self, actor: &ActorRow) -> Result<(), VerbError> {
        let select = "SELECT 1 FROM actor WHERE id = ?1 AND secret = ?2";
        if self.0.exists(select, params![actor.row, &actor.secret])? {
            Ok(())
        } else {
            Err(RuleViolation::Credentials(actor.id.clone()).into())
        }
    }

    /// Records that an actor has registered a document.
    pub(super) fn confirm(&self, actor: &ActorRow, now: &Timestamp) -> Result<(), VerbError> {
        self.0.execute(
            "UPDATE actor SET effective_at = coalesce(effective_at, ?2), confirmed_at = ?2,
                              dead_since = NULL
             WHERE id = ?1",
            params![actor.row, now.to_rfc3339()],
        )?;
        Ok(())
    }

    /// A new identifier for a document of this actor.
    pub(super) fn new_document(
        &self,
        actor: &ActorRow,
        now: &Timestamp,
    ) -> Result<(Rep, Duration), VerbError> {
        // Read the actor again: other requests may have got identifiers since.
        let last = self.actor_at(&actor.prefix.canonical())?;
        let last = last.map(|actor| actor.last_date);
        let (rep, wait) = self.new_label(&actor.prefix, last, now)?;
        self.use_date(&Ibi::from(rep.clone()))?;
        Ok((rep, wait))
    }

    /// Records a date that an actor has used itself, so that it is not generated again.
    pub(super) fn use_date(&self, id: &Ibi) -> Result<(), VerbError> {
        let Ibi::Rep(rep) = id else {
            return Ok(());
        };
        let Ok(prefix) = RepPrefix::parse(rep.prefix()) else {
            return Ok(());
        };
        if let Some(actor) = self.actor_at(&prefix.canonical())?
            && rep.timestamp() > actor.last_date
        {
            let set = "UPDATE actor SET last_date = ?2 WHERE id = ?1";
            let date = rep.timestamp().to_rfc3339();
            self.0.execute(set, params![actor.row, date])?;
        }
        Ok(())
    }

    /// The next identifier of a prefix (ibi(7), "Dates"), and how long the answer must wait for its date.
    fn new_label(
        &self,
        prefix: &RepPrefix,
        last: Option<Timestamp>,
        now: &Timestamp,
    ) -> Result<(Rep, Duration), VerbError> {
        let mut dates = TemporalDistributor::new(Granularity::default(), last);
        for _ in 0..MOST_TAKEN {
            let reserved = dates
                .reserve(now, WAIT_LIMIT)
                .map_err(RuleViolation::NoDate)?;
            let rep = Rep::mint(prefix, &reserved.date);
            let select =
                "SELECT 1 FROM document WHERE ibi = ?1 UNION SELECT 1 FROM actor WHERE rep = ?1";
            if !self.0.exists(select, params![rep.canonical()])? {
                return Ok((rep, reserved.wait));
            }
        }
        Err(RuleViolation::Taken.into())
    }

    /// The identifier of the actor in this row.
    pub(super) fn actor_id(&self, row: i64) -> Result<String, VerbError> {
        let select = "SELECT rep FROM actor WHERE id = ?1";
        let found = self.0.first(select, params![row], |row| row.get("rep"))?;
        Ok(found.ok_or_else(|| RegistryError::Broken(message!("an actor")))?)
    }
}
