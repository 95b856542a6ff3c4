//! The directory `.find`: any name in it is a query, and a directory of links to the items that it finds.
//!
//! A directory in such a directory finds those of its items that meet another query. A link has the name of its item
//! with `_` in place of the slashes. A reader finds what it could reach by its path.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::names::text;
use super::siblings::reading_as;
use super::{DirectoryEntry, Entry, Namespace};
use crate::archive::store::Item;
use crate::archive::{
    ArchiveError, RunAs, SearchCache, SearchIndexes, SearchPage, SearchScope, WrittenFiles,
};
use crate::formats::item::{Names, State};
use crate::formats::search::SearchQuery;
use crate::fuse::errno;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;
use ibi::Ibi;

/// The most links of a directory.
const MOST_LINKS: usize = 10_000;

/// The depth to which queries may be nested, and the bytes that they may have together.
const DEEPEST: usize = 16;
const LONGEST: usize = 2_000;

/// The time that a listing waits until the search index is up to date. Items read by then stay for the next one.
const LISTING_TIMEOUT: Duration = Duration::from_secs(20);
/// The same of a lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// The search indexes of the mount, which are opened by the first search.
#[derive(Debug)]
pub(super) struct Searches {
    /// For the user as whom the mount runs, who may read everything.
    own: SearchCache,
    /// For all other users: what everyone may read, so that no search says what is in a private description.
    public: SearchCache,
    /// The items in which files were written since the texts were last searched.
    written: Arc<WrittenFiles>,
}

impl Default for Searches {
    fn default() -> Searches {
        Searches {
            own: SearchCache::of(SearchScope::All),
            public: SearchCache::of(SearchScope::Public),
            written: Arc::default(),
        }
    }
}

/// Runs a read as some user.
type ReadAs = fn(&mut dyn FnMut());

/// Runs a read as the user of whom everyone has the rights.
fn as_public(read: &mut dyn FnMut()) {
    let act = reading_as(&Caller::NOBODY);
    act(read);
}

/// Runs a read as the mount.
fn as_mount(read: &mut dyn FnMut()) {
    read();
}

/// Returns which items a caller searches, and as whom they are read. EACCES if others are not told apart, as in the
/// mount of an ordinary user, who searches there alone.
fn scope_of(caller: &Caller) -> ErrnoResult<(SearchScope, ReadAs)> {
    let is_own = caller.uid == 0 || caller.uid == rustix::process::geteuid().as_raw();
    match (is_own, caller.is_other()) {
        (true, _) => Ok((SearchScope::All, as_mount)),
        (false, true) => Ok((SearchScope::Public, as_public)),
        (false, false) => Err(Errno::ACCESS),
    }
}

/// The indexes that a caller searches, and the user as whom its items are read.
struct Searched {
    indexes: Arc<SearchIndexes>,
    act: ReadAs,
}

/// The query of a path below `.find`; None if a name in it has no word.
pub(crate) fn query_of(path: &str) -> Option<SearchQuery> {
    let mut names = path.split('/').map(SearchQuery::parse);
    let first = names.next()??;
    names.try_fold(first, |query, more| Some(query.and(more?)))
}

/// The name of an item's link.
pub(crate) fn name_of_link(names: &Names) -> String {
    let name = match names.ibip() {
        Some(ibip) => ibip.to_string(),
        None => names.preferred(),
    };
    name.replace('/', "_")
}

/// The name of the item that has a link of this name. No identifier has the sign that links have for slashes.
pub(crate) fn named_by_link(name: &str) -> Option<Names> {
    if name.contains('/') {
        return None;
    }
    Ibi::parse(&name.replace('_', "/")).ok().map(Names::from)
}

/// The target of a link in the directory of a query.
fn link_target(path: &str, names: &Names) -> Vec<u8> {
    let above = path.split('/').count() + 1;
    format!("{}{}", "../".repeat(above), names.preferred()).into_bytes()
}

impl Namespace {
    /// The search indexes for a caller, and as whom their items are read. The descriptions are up to date; EAGAIN if
    /// they are not within a time, and then more of them are the next time.
    fn searched(&self, caller: &Caller, timeout: Duration) -> ErrnoResult<Searched> {
        let (scope, act) = scope_of(caller)?;
        match self
            .indexes_of(scope)
            .up_to_date(&self.archive, &act, timeout)?
        {
            Some(indexes) => Ok(Searched {
                indexes: Arc::clone(indexes),
                act,
            }),
            None => {
                log::info!("the search index is not complete yet");
                Err(Errno::AGAIN)
            }
        }
    }

    /// At most so many items that meet a query and that a caller may see, the best first; `act` reads as the caller. None if
    /// the search index is not up to date within a time, and then more of it is the next time.
    pub fn search(
        &self,
        caller: &Caller,
        act: RunAs<'_>,
        query: &SearchQuery,
        most: usize,
        timeout: Duration,
    ) -> Result<Option<SearchPage>, ArchiveError> {
        let (scope, read_as) = scope_of(caller).unwrap_or((SearchScope::Public, as_public));
        let Some(indexes) = self
            .indexes_of(scope)
            .up_to_date(&self.archive, &read_as, timeout)?
        else {
            return Ok(None);
        };
        self.searches.written.pass_on(&self.archive);
        self.archive.read_texts_aside(indexes, read_as);
        let found = self.archive.read_as(act).search(indexes, query, 0, most)?;
        Ok(Some(found))
    }

    fn indexes_of(&self, scope: SearchScope) -> &SearchCache {
        match scope {
            SearchScope::All => &self.searches.own,
            SearchScope::Public => &self.searches.public,
        }
    }

    /// Notes that the text of a file, or the names in a directory, may have changed.
    pub(super) fn note_written(&self, node: &Node) {
        if node.is_in_item()
            && let Ok(file) = node.file()
        {
            self.searches.written.note(&self.archive, file.as_fd());
        }
    }

    /// Looks up a name below `.find`: the link of an item that the path finds, or another query.
    pub(super) fn lookup_found(
        &self,
        caller: &Caller,
        path: &str,
        name: &OsStr,
    ) -> ErrnoResult<Entry> {
        let name = text(name)?;
        // Programs look for such names in every directory.
        if name.starts_with('.') {
            return Err(Errno::NOENT);
        }
        if !path.is_empty()
            && let Some(item) = self.item_of_link(name)?
        {
            let query = query_of(path).ok_or(Errno::NOENT)?;
            let indexes = self.searched(caller, LOOKUP_TIMEOUT)?.indexes;
            let act = reading_as(caller);
            if self.may_find(caller, &item)?
                && self
                    .archive
                    .read_as(&act)
                    .is_found(&indexes, &query, &item)?
            {
                let target = link_target(path, &item.names);
                return self.virtual_entry(View::Rep, NodeKind::Link(target));
            }
            return Err(Errno::NOENT);
        }
        if SearchQuery::parse(name).is_none() {
            return Err(Errno::NOENT);
        }
        let path = match path {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        if path.len() > LONGEST || path.split('/').count() > DEEPEST {
            return Err(Errno::NAMETOOLONG);
        }
        self.virtual_entry(View::Rep, NodeKind::Found(path))
    }

    fn item_of_link(&self, name: &str) -> ErrnoResult<Option<Item>> {
        let Some(names) = named_by_link(name) else {
            return Ok(None);
        };
        let item = self
            .archive
            .store()
            .find_by_names(&names)
            .map_err(errno::of_index)?;
        let is_shown =
            |item: &Item| item.state != State::Deleted && name_of_link(&item.names) == name;
        Ok(item.filter(is_shown))
    }

    fn may_find(&self, caller: &Caller, item: &Item) -> ErrnoResult<bool> {
        let act = reading_as(caller);
        Ok(self.archive.read_as(&act).is_public(item)?)
    }

    /// The links to the items that a path below `.find` finds.
    pub(super) fn list_found(
        &self,
        caller: &Caller,
        path: &str,
    ) -> ErrnoResult<Vec<DirectoryEntry>> {
        let query = query_of(path).ok_or(Errno::NOENT)?;
        let Searched { indexes, act } = self.searched(caller, LISTING_TIMEOUT)?;
        self.searches.written.pass_on(&self.archive);
        self.archive.read_texts_aside(&indexes, act);
        let act = reading_as(caller);
        let page = self
            .archive
            .read_as(&act)
            .search(&indexes, &query, 0, MOST_LINKS)?;
        if page.has_more {
            log::info!(
                "more than {MOST_LINKS} items are found by '{path}'; the others are not listed"
            );
        }
        let listed = page.items.iter().map(|item| {
            let target = link_target(path, &item.names);
            self.virtual_listed(name_of_link(&item.names), NodeKind::Link(target))
        });
        Ok(listed.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_its_item() {
        for name in [
            "8JMKD3MGP8W/34PGRBS",
            "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        ] {
            let names = Names::from(Ibi::parse(name).expect(name));
            let link = name.replace('/', "_");
            assert_eq!(name_of_link(&names), link);
            let found = named_by_link(&link);
            assert!(found.is_some_and(|found| found.matches(&names)), "{name}");
        }
        for name in ["rainfall", "a_b", "", "_", "____", "é_é"] {
            assert!(named_by_link(name).is_none(), "{name}");
        }
    }

    #[test]
    fn queries_are_nested() {
        let query = |path| query_of(path).map(|query| query.expression());
        let nested = query("creator:banon/year:2009");
        assert_eq!(
            nested.as_deref(),
            Some("creator : \"banon\" AND year : \"2009\"")
        );
        assert_eq!(query("rain/--"), None);
        let target = link_target(
            "a/b",
            &Names::from(Ibi::parse("8JMKD3MGP8W/34PGRBS").expect("a name")),
        );
        assert_eq!(target, b"../../../8JMKD3MGP8W/34PGRBS");
    }
}
