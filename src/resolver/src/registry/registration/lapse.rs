//! Actors that lapse: those none of whose URLs has worked for two years.
//!
//! This module selects the URLs to try and records the results; the caller tries them. Only some URLs of an
//! actor are tried at a time, the next ones the next time. An actor lapses when none has worked for two
//! years, each has been tried in that time, and the actor has registered no document meanwhile.

use super::verbs::Verbs;
use crate::registry::{Registry, RegistryError};
use ibi::Timestamp;
use ibifs_formats::registration::WebUrl;
use ibifs_sql::engine::params;

/// An actor lapses after so many days in which no URL works.
pub const LAPSE_DAYS: i64 = 2 * 365;
/// The days between two trials of an actor whose URLs work, or that registers documents.
const REST_DAYS: i64 = 30;
/// The number of URLs that are tried at a time. With one trial a day, two years cover as many as an actor may have.
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
        // One that was never tried comes first; engines differ in where they put NULL.
        let found = connection.first(
            "SELECT id, rep, confirmed_at, tried_to FROM actor
             WHERE confirmed_at < ?1
               AND (tried_at IS NULL OR tried_at < ?1 OR (dead_since IS NOT NULL AND tried_at < ?2))
             ORDER BY coalesce(tried_at, '') LIMIT 1",
            params![ago(REST_DAYS), ago(1)],
            |row| {
                let to_try = ToTry {
                    row: row.get("id")?,
                    actor: row.get("rep")?,
                    urls: Vec::new(),
                    confirmed_at: row.get("confirmed_at")?,
                    next: None,
                };
                Ok((to_try, row.get::<i64>("tried_to")?))
            },
        )?;
        let Some((mut to_try, after)) = found else {
            return Ok(None);
        };
        let most = i64::try_from(MOST_TRIED).unwrap_or(i64::MAX);
        let rows = connection.each(
            "SELECT id, coalesce(url, (SELECT url FROM metadata
                                       WHERE registration = registration.id
                                       ORDER BY position LIMIT 1)) AS url
             FROM registration WHERE actor = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            params![to_try.row, after, most],
            |row| Ok((row.get::<i64>("id")?, row.get::<Option<String>>("url")?)),
        )?;
        if rows.len() == MOST_TRIED {
            to_try.next = rows.last().map(|(last, _)| *last);
        }
        let urls = rows.into_iter().filter_map(|(_, url)| url);
        to_try.urls = urls
            .filter_map(|url| WebUrl::parse("url", &url).ok())
            .collect();
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
        let limit = now.seconds() - LAPSE_DAYS * DAY;
        let limit = Timestamp::from_unix(limit, 0).to_rfc3339();
        self.write(|connection| {
            connection.execute(
                "UPDATE actor SET
                     tried_at = ?3, tried_to = ?4,
                     tried_all = CASE WHEN ?5 = 1 THEN 0 WHEN ?6 = 1 THEN 1 ELSE tried_all END,
                     dead_since = CASE WHEN ?5 = 1 THEN NULL ELSE coalesce(dead_since, ?3) END
                 WHERE id = ?1 AND confirmed_at = ?2",
                params![
                    tried.row,
                    &tried.confirmed_at,
                    now.to_rfc3339(),
                    tried.next.unwrap_or(0),
                    works,
                    tried.next.is_none(),
                ],
            )?;
            let has_lapsed = connection.exists(
                "SELECT 1 FROM actor WHERE id = ?1 AND confirmed_at = ?2 AND confirmed_at <= ?3
                                       AND dead_since <= ?3 AND tried_all = 1",
                params![tried.row, &tried.confirmed_at, &limit],
            )?;
            if has_lapsed {
                Verbs(connection).forget_actor(tried.row)?;
            }
            Ok(has_lapsed)
        })
    }
}
