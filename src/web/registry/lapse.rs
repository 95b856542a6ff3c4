//! Actors that lapse: those none of whose URLs has worked for two years.
//!
//! This module selects the URLs to try and records the results; the caller tries them. Only some URLs of an
//! actor are tried at a time, the next ones the next time. An actor lapses when none has worked for two
//! years, each has been tried in that time, and the actor has registered no document meanwhile.

use rusqlite::{OptionalExtension, params};

use super::verbs::Verbs;
use super::{Registry, RegistryError};
use crate::archive::database;
use crate::formats::registration::WebUrl;
use ibi::Timestamp;

/// An actor lapses after so many days in which no URL works.
pub const LAPSE_DAYS: i64 = 2 * 365;
/// The days between two trials of an actor whose URLs work, or that registers documents.
const REST_DAYS: i64 = 30;
/// How many URLs are tried at a time. With one trial a day, two years cover as many as an actor may have.
const MOST_TRIED: usize = 16;
const DAY: i64 = 86_400;

/// An actor whose URLs are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToTry {
    row: i64,
    /// Its identifier.
    pub actor: String,
    /// URLs of its documents. One that works is enough.
    pub urls: Vec<WebUrl>,
    confirmed_at: String,
    /// The registration after which the next trial begins. None if these URLs are the last.
    next: Option<i64>,
}

impl Registry {
    /// The actor whose URLs are to be tried next. None if no trial is due.
    ///
    /// # Errors The database cannot be read.
    pub fn to_try(&self, now: &Timestamp) -> Result<Option<ToTry>, RegistryError> {
        let ago = |days: i64| Timestamp::from_unix(now.seconds() - days * DAY, 0).to_rfc3339();
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT id, rep, confirmed_at, tried_to FROM actor
             WHERE confirmed_at < ?1
               AND (tried_at IS NULL OR tried_at < ?1 OR (dead_since IS NOT NULL AND tried_at < ?2))
             ORDER BY tried_at LIMIT 1",
        )?;
        let found = statement.query_row([ago(REST_DAYS), ago(1)], |row| {
            let after: i64 = row.get("tried_to")?;
            let to_try = ToTry {
                row: row.get("id")?,
                actor: row.get("rep")?,
                urls: Vec::new(),
                confirmed_at: row.get("confirmed_at")?,
                next: None,
            };
            Ok((to_try, after))
        });
        let Some((mut to_try, after)) = found.optional()? else {
            return Ok(None);
        };
        let mut statement = connection.prepare_cached(
            "SELECT id, ifnull(url, (SELECT url FROM metadata WHERE registration = registration.id
                                     ORDER BY position LIMIT 1)) AS url
             FROM registration WHERE actor = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        )?;
        let most = i64::try_from(MOST_TRIED).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![to_try.row, after, most])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let last: i64 = row.get("id")?;
            to_try.next = (count == MOST_TRIED).then_some(last);
            let url: Option<String> = row.get("url")?;
            let url = url.and_then(|url| WebUrl::parse("url", &url).ok());
            to_try.urls.extend(url);
        }
        Ok(Some(to_try))
    }

    /// Records whether any of the URLs works. Returns whether the actor has lapsed, and is deleted.
    ///
    /// # Errors The database cannot be written.
    pub fn tried(
        &self,
        tried: &ToTry,
        works: bool,
        now: &Timestamp,
    ) -> Result<bool, RegistryError> {
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let now_text = now.to_rfc3339();
        transaction.execute(
            "UPDATE actor SET
                 tried_at = ?3, tried_to = ?4,
                 tried_all = CASE WHEN ?5 THEN 0 ELSE max(tried_all, ?6) END,
                 dead_since = CASE WHEN ?5 THEN NULL ELSE ifnull(dead_since, ?3) END
             WHERE id = ?1 AND confirmed_at = ?2",
            params![
                tried.row,
                tried.confirmed_at,
                now_text,
                tried.next.unwrap_or(0),
                works,
                tried.next.is_none(),
            ],
        )?;
        let limit = now.seconds() - LAPSE_DAYS * DAY;
        let limit = Timestamp::from_unix(limit, 0).to_rfc3339();
        let lapsed = transaction.query_row(
            "SELECT 1 FROM actor WHERE id = ?1 AND confirmed_at = ?2 AND confirmed_at <= ?3
                                   AND dead_since <= ?3 AND tried_all",
            params![tried.row, tried.confirmed_at, limit],
            |_| Ok(()),
        );
        let has_lapsed = lapsed.optional()?.is_some();
        if has_lapsed {
            Verbs(&transaction).forget_actor(tried.row)?;
        }
        transaction.commit()?;
        Ok(has_lapsed)
    }
}
